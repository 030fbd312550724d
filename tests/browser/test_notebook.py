"""al.Explorer in a host without Jupyter: two views of one model, traits both ways, certificates,
and a quiet end.
"""

from __future__ import annotations

import pytest

pytest.importorskip(
    "anywidget", reason="anywidget is not installed (pip install 'attnlab[widget]')"
)

from notebook_host import Notebook  # noqa: E402
from screen import COMPLETE  # noqa: E402

import attnlab as al  # noqa: E402
from attnlab.explorer.presets import presets  # noqa: E402
from attnlab.run import limit_of_spec  # noqa: E402

SECOND = COMPLETE.replace("viewers[0]", "viewers[1]")


@pytest.fixture
def notebook(tab, tmp_path):
    tab.prefer(prefers_color_scheme="light")
    made = []

    def open_notebook(*given, cells=("a",), width=1280, **options) -> Notebook:
        made.append(Notebook(tab, tmp_path, al.Explorer(*given, **options), width))
        return made[-1].show(*cells)

    yield open_notebook
    for one in made:
        one.explorer.close()
        assert tab.complaints == [], tab.complaints


def stop(notebook: Notebook) -> None:
    """Pause where it is, and let Python know."""
    notebook.tab.evaluate(
        "attnlab.viewers[0].player.isPlaying && attnlab.viewers[0].layout.play.click()"
    )
    notebook.carry()


def drag_token(notebook: Notebook, token: int, dx: float, dy: float) -> None:
    """Drag the start of a token with the mouse."""
    if "drag" not in notebook.tab.evaluate("[...attnlab.viewers[0].show]"):
        notebook.click("[data-show=drag]")
    notebook.wait()
    x, y = notebook.starts()[token][:2]
    notebook.tab.drag((x, y), (x + dx, y + dy))
    notebook.wait()


def test_a_dragged_start_arrives_in_python(notebook):
    page = notebook("polygon")
    explorer = page.explorer
    before, seen = explorer.x0, []
    explorer.observe(lambda change: seen.append(change["name"]), ["spec", "moved"])
    assert explorer.moved == {} and explorer.spec == presets["polygon"].spec
    stop(page)
    drag_token(page, 5, 90, -60)
    page.carry()
    place = page.get("session.spec.start.moved['5']")
    assert explorer.moved == {5: place} and set(seen) == {"spec", "moved"}
    assert (
        explorer.x0[5].tolist() == place != before[5].tolist()
        and (explorer.x0[:5] == before[:5]).all()
    )
    assert al.run_spec(explorer.spec).x[0, 5].tolist() == place  # a Spec that run_spec takes
    x, y = page.starts()[5][:2]
    page.tab.drag((x, y), (x - 90, y + 60))
    page.wait()
    page.carry()
    assert explorer.moved == {} and explorer.spec == presets["polygon"].spec


def test_time_and_chosen_tokens_go_both_ways(notebook):
    page = notebook("polygon")
    explorer = page.explorer
    stop(page)
    page.tab.press_button(*page.clock(1.0))
    page.tab.release_button(*page.clock(1.0))
    page.carry()
    assert explorer.t == float("inf")
    explorer.t, explorer.selected = 1.25, [7, 3]
    page.carry()
    page.wait()
    assert page.get("player.t") == 1.25 and page.get("view.selected") == [7, 3]
    page.tab.click(*page.token(11))
    said = page.carry()
    assert explorer.selected == [11] and explorer.t == 1.25
    assert [sorted(message["state"]) for message in said] == [
        ["selected"]
    ]  # nothing else was said, and nothing came back


def test_python_changes_the_run(notebook):
    page = notebook("polygon")
    stop(page)
    spec = presets["late"].spec
    page.explorer.spec = spec
    assert page.carry() == []
    page.wait()
    assert page.get("session.recording.d") == 3 and page.get("session.spec") == spec.to_dict()
    assert (
        page.text("heading").startswith("Late leaders")
        and page.get("session.outcome.kind") == "certified"
    )
    page.explorer.height = 480
    page.carry()
    page.wait()
    assert page.get("layout.root.querySelector('.stage').offsetHeight") == 480


def test_two_views_of_one_model(notebook):
    page = notebook("polygon", cells=("a", "b"))
    tab = page.tab
    tab.wait_until(SECOND)
    assert tab.evaluate("[attnlab.viewers.length, workers]") == [2, 2]
    stop(page)
    drag_token(page, 5, 60, 40)
    page.carry()
    tab.wait_until(SECOND)
    place = page.explorer.moved[5]
    assert tab.evaluate("attnlab.viewers[1].session.spec.start.moved") == {"5": place}
    assert tab.evaluate("attnlab.viewers[1].session.recording.x0[5]") == place
    assert (
        page.get("session.outcome.kind")
        == tab.evaluate("attnlab.viewers[1].session.outcome.kind")
        == "estimated"
    )
    page.explorer.certify()
    page.carry()
    assert (
        page.get("session.outcome.kind")
        == tab.evaluate("attnlab.viewers[1].session.outcome.kind")
        == "certified"
    )
    tab.call("end", "a")
    assert (
        tab.evaluate("workers") == 1
        and tab.evaluate("document.getElementById('a').childElementCount") == 0
    )
    page.explorer.t = 2.5  # the other view still listens
    page.carry()
    assert tab.evaluate("attnlab.viewers[1].player.t") == 2.5
    tab.call("end", "b")
    assert tab.evaluate("[workers, model.listeners.length]") == [0, 0]


def test_the_reader_asks_for_a_certificate(notebook):
    page = notebook("polygon")
    explorer = page.explorer
    assert page.get("layout.watchCard.querySelector('.certify').hidden")  # it came with one
    stop(page)
    drag_token(page, 5, 90, -60)
    page.carry()
    assert explorer.limit is None and page.get("session.outcome.kind") == "estimated"
    page.click(".certify button")
    assert "Waiting for Python" in page.get("layout.watchCard.textContent")
    assert {"method": "custom", "content": {"kind": "certify"}} in page.carry()
    explorer._certifier.wait(120)
    page.carry()
    page.wait()
    assert explorer.limit.certified and explorer.limit.spec == explorer.spec
    assert (
        page.get("session.outcome.kind") == "certified"
        and page.get("session.outcome.count") == explorer.limit.count
    )
    assert f"{explorer.limit.count} limits, certified" in page.text("verdict")
    assert page.get("layout.watchCard.querySelector('.certify').hidden")
    x, y = page.starts()[5][:2]
    page.tab.drag((x, y), (x + 30, y))  # another start: no certificate any more
    page.wait()
    assert page.get("session.outcome.kind") == "estimated"
    page.carry()
    assert explorer.limit is None


def test_what_is_undecided_and_what_is_cancelled_is_said(notebook):
    page = notebook("pair")
    stop(page)
    page.click(".certify button")
    page.carry()
    page.explorer._certifier.wait(120)
    page.carry()
    words = page.get("layout.watchCard.querySelector('.certify').textContent")
    assert (
        "Undecided: " in words and words.startswith("Certify") and not page.explorer.limit.certified
    )
    page.click(".certify button")
    page.carry()
    page.tab.wait_until(
        "attnlab.viewers[0].layout.watchCard.querySelector('.certify').textContent.endsWith('Cancel')"
    )
    page.click(".certify button")
    page.carry()
    page.explorer._certifier.wait(120)
    page.carry()
    assert page.get("layout.watchCard.querySelector('.certify').textContent").startswith("Certify")


def test_what_python_refuses_is_said_and_taken_back(notebook):
    page = notebook("polygon")
    stop(page)
    too_many = {**page.explorer.spec.to_dict(), "start": {**page.explorer.spec.start, "n": 5000}}
    page.tab.call("(spec) => { model.set('spec', spec); model.save_changes(); }", too_many)
    page.carry()
    page.wait()
    assert page.explorer.spec == presets["polygon"].spec and page.get("session.spec.start.n") == 60
    assert "n must be at most 2000" in page.text("notice")
    page.click("[data-show=trails]")
    assert page.get("layout.notice.hidden")  # until the reader does something


def test_a_recording_plays_without_a_worker_and_gives_way_to_a_spec(notebook):
    run = al.run_spec(presets["polygon"].spec)
    page = notebook(run)
    assert page.tab.evaluate("workers") == 0 and page.get("session.recording.isEmbedded")
    assert page.get("layout.watchCard.querySelector('.certify')") is None
    stop(page)
    page.explorer.t = 2.0
    page.carry()
    assert page.get("player.t") == 2.0 and page.explorer.spec == run.spec
    page.explorer.spec = presets["boolean"].spec
    page.carry()
    page.tab.wait_until("workers === 1")
    assert page.explorer.recording is None


def test_it_keeps_the_style_of_the_notebook_out_and_follows_its_theme(notebook):
    page = notebook("polygon", width=700)
    tab = page.tab
    assert page.get("theme.name") == "light"
    style = "getComputedStyle(attnlab.viewers[0].layout.play)"
    assert (
        tab.evaluate(f"{style}.backgroundColor") != "rgb(255, 0, 0)"
        and tab.evaluate(f"{style}.letterSpacing") == "normal"
    )
    assert (
        page.get("layout.root.querySelector('.tabs').offsetHeight") > 0
    )  # as narrow as its cell, not as its window
    tab.evaluate("document.body.dataset.jpThemeLight = 'false'")
    tab.wait_until("attnlab.viewers[0].theme.name === 'dark'")
    assert page.get("layout.copies.textContent").startswith(
        "Python"
    )  # no link: a notebook's address holds no state


def test_the_limit_that_python_gave_is_shown(notebook):
    spec = presets["polygon"].spec
    moved = al.Spec.from_dict(
        {**spec.to_dict(), "start": {**spec.start, "moved": {"3": [0.5, 0.5]}}}
    )
    limit = limit_of_spec(moved)
    page = notebook(limit)
    assert page.explorer.spec == moved and page.get("session.outcome.kind") == "certified"
    assert page.get("session.outcome.count") == limit.count


@pytest.mark.parametrize("width", [1250, 1000, 700, 420])
def test_nothing_covers_anything_in_a_cell_of_any_width(notebook, width):
    page = notebook("polygon", width=width)
    stop(page)
    page.click("[data-show=drag]")
    page.wait()
    box = (
        "(name) =>"
        " attnlab.viewers[0].layout.root.querySelector(name).getBoundingClientRect().toJSON()"
    )
    hint, chips, transport = (
        page.tab.call(box, name) for name in (".hint", ".chips", ".transport")
    )
    assert hint["bottom"] <= chips["top"] + 1 and chips["bottom"] <= transport["top"] + 1
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
