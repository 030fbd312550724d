"""The page of attnlab explore, opened as a file: no complaints, no requests, the address, and
records from strangers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tab import Tab

import attnlab as al
from attnlab.explorer.presets import presets, stored_limits

VIEWER = "window.attnlab?.viewers?.[0]"
READY = f"Boolean({VIEWER}?.session?.recording?.complete)"
TEXT = (
    "(document.getElementById('attnlab').shadowRoot ?? document.body).textContent +"
    " document.body.innerText"
)
NOTICE = (
    "document.getElementById('attnlab').shadowRoot.querySelector('[role=alert],"
    " .notice')?.textContent ?? ''"
)
PATTERN = re.compile(
    r'(<script type="application/json" id="attnlab-payload">)(.*?)(</script>)', re.DOTALL
)


@pytest.fixture(scope="module")
def presets_page(tmp_path_factory) -> Path:
    return al.explore(None, tmp_path_factory.mktemp("explorer") / "page.html")


def spoil(page: Path, change, name: str = "spoiled.html") -> Path:
    """A copy of the page whose payload `change` has changed."""
    text = page.read_text("utf-8")
    payload = json.loads(PATTERN.search(text)[2])
    changed = change(payload)
    spoiled = page.with_name(name)
    record = json.dumps(payload if changed is None else changed).replace("<", "\\u003c")
    spoiled.write_text(
        PATTERN.sub(lambda found: found[1] + record + found[3], text), encoding="utf-8"
    )
    return spoiled


def open_page(tab: Tab, page: Path, address: str = "", **options) -> Tab:
    tab.open(page.as_uri() + address, **options)
    tab.wait_until(READY, patience=20)
    return tab


def state(tab: Tab) -> dict:
    return tab.evaluate(f"{VIEWER}.state()")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width, height", [(1280, 820), (400, 800)])
def test_nothing_but_itself(tab, presets_page, width, height, theme):
    tab.prefer(prefers_color_scheme=theme)
    open_page(tab, presets_page, width=width, height=height)
    for name in presets.in_order():
        tab.evaluate(
            f"{VIEWER}.setState({{...{VIEWER}.state(), preset: {name!r}, "
            f"spec: {VIEWER}.payload.presets.find(one => one.id === {name!r}).spec}})"
        )
        tab.wait_until(
            f"{VIEWER}.session.spec.start.rng === {presets[name].spec.start['rng']} && {READY}",
            patience=20,
        )
    assert tab.complaints == []
    assert tab.requests[0] == presets_page.as_uri() and all(
        one.startswith("blob:") for one in tab.requests[1:]
    )
    assert tab.evaluate(
        "document.documentElement.scrollWidth <= innerWidth"
    ) and "attnlab" in tab.evaluate("document.title")


def test_without_javascript_there_is_a_sentence(tab, presets_page):
    tab.tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(presets_page.as_uri())
        node = tab.tell("DOM.getDocument", depth=-1)["root"]
        assert "needs JavaScript" in json.dumps(node) and "Boolean limit – attnlab" in json.dumps(
            node, ensure_ascii=False
        )
    finally:
        tab.tell("Emulation.setScriptExecutionDisabled", value=False)


def test_certified_limits_arrive(tab, presets_page):
    open_page(tab, presets_page, "#preset=late")
    assert tab.evaluate(f"[{VIEWER}.session.outcome.kind, {VIEWER}.session.outcome.count]") == [
        "certified",
        2,
    ]
    assert state(tab)["preset"] == "late"


def test_run_is_offered(tab, presets_page):
    open_page(tab, presets_page)
    spec = {
        "weights": {"family": "spectrum", "eigenvalues": [1.0, 0.5], "basis": "identity"},
        "start": {"law": "uniform_cube", "n": 7, "d": 2, "rng": 3, "moved": {"2": [0.5, -0.5]}},
        "solve": {"t_end": 2.0, "saves": 5},
    }
    found = tab.call("spec => attnlab.run(spec)", spec)
    run = al.run_spec(al.Spec.from_dict(spec))
    np.testing.assert_allclose(found["times"], run.times)
    assert (
        np.abs(np.array(found["x"]) - run.x).max() < 1e-4 * np.abs(run.x).max()
        and found["status"] == "OK"
    )
    assert tab.evaluate("attnlab.version") == 1
    refused = tab.evaluate(
        "attnlab.run({weights: {family: 'goe', d: 3}, start: {law: 'normal', n: 3, d: 3}, solve:"
        " {t_end: 1}}).then(() => 'no', problem => problem.message)"
    )
    assert "goe" in refused


# --------------------------------------------------------------------------------------------------
# the address


ADDRESS = (
    "#weights.family=spectrum&weights.eigenvalues=1,0.25&weights.basis=identity&dynamics.beta=2.5&start.law=normal"
    "&start.n=17&start.d=2&start.rng=9&start.scale=1.5&start.moved.3=1.25,-0.125&solve.t_end=7&view.t=1.5&view.frame=z"
    "&view.camera=0.1,0.2,1.5&view.show=trails,limits&view.selected=3,5&view.theme=dark"
)


def test_the_address_opens_the_same_state(tab, presets_page):
    first = state(open_page(tab, presets_page, ADDRESS))
    frames = (
        "(r => [0, r.T - 1].map(k => Array.from(r.frames.limit.subarray(51 * k, 51 * k +"
        f" 51))))({VIEWER}.session.recording)"
    )
    pictures = tab.evaluate(frames)
    assert first["spec"] == {
        "weights": {"family": "spectrum", "eigenvalues": [1, 0.25], "basis": "identity"},
        "dynamics": {"beta": 2.5},
        "start": {
            "law": "normal",
            "n": 17,
            "d": 2,
            "rng": 9,
            "scale": 1.5,
            "moved": {"3": [1.25, -0.125]},
        },
        "solve": {"t_end": 7},
    }
    assert first["view"] == {
        "t": 1.5,
        "frame": "z",
        "camera": [0.1, 0.2, 1.5],
        "show": ["trails", "limits"],
        "selected": [3, 5],
        "theme": "dark",
    }
    link = tab.evaluate(f"{VIEWER}.link()")
    again = state(open_page(tab, presets_page, "#" + link.split("#", 1)[1].lstrip("#")))
    assert again == first and tab.evaluate(frames) == pictures and tab.complaints == []


def test_changes_are_written_into_the_address(tab, presets_page):
    open_page(tab, presets_page, "#preset=polygon")
    tab.evaluate(f"{VIEWER}.setTheme('dark'); {VIEWER}.tell()")
    tab.wait_until(
        "location.hash.includes('view.theme=dark') && location.hash.includes('preset=polygon')",
        patience=5,
    )
    now = state(tab)
    assert state(open_page(tab, presets_page, tab.evaluate("location.hash")))["spec"] == now["spec"]


def test_an_address_typed_later_is_followed(tab, presets_page):
    open_page(tab, presets_page)
    tab.evaluate(f"location.hash = {ADDRESS!r}")
    tab.wait_until(f"{VIEWER}.state().spec.start.n === 17 && {READY}", patience=20)
    assert state(tab)["view"]["frame"] == "z"


@pytest.mark.parametrize("address, says", [
    ("#start.n=100000", "start.n"), ("#weights.eigenvalues=1,NaN", "weights.eigenvalues"), ("#__proto__.x=1", "__proto__"),
    ("#%3Cscript%3Ealert(1)%3C/script%3E=1", "<script>"), ("#preset=nowhere", "nowhere"), ("#version=9", "version 9"),
    ("#weights.family=goe&start.law=normal&start.n=5&start.d=2", "cannot be shown"), ("#start.law=cubic", "cannot be shown"),
    ("#weights.family=given&weights.V=[[1,2]]&start.law=normal&start.n=5&start.d=2", "cannot be shown"),
    ("#" + "a" * 500_000, "cannot be read"),
])  # fmt: skip
def test_a_spoiled_address_is_a_sentence_on_a_working_page(tab, presets_page, address, says):
    open_page(tab, presets_page, address)
    notice = tab.evaluate(NOTICE)
    assert (
        says in notice
        and tab.complaints == []
        and tab.evaluate("document.querySelectorAll('script').length") == 4
    )
    assert state(tab)["spec"]["start"]["n"] == presets["boolean"].spec.start["n"] or says in (
        "nowhere",
        "version 9",
    )


def test_teachers_hide_and_lock_in_the_address(tab, presets_page):
    open_page(tab, presets_page, "?preset=polygon&hide=sweep,footer&lock=beta&guess=1&embed=1")
    assert tab.evaluate(
        f"[{VIEWER}.hide, {VIEWER}.payload.lock, {VIEWER}.payload.guess,"
        f" {VIEWER}.options.isEmbedded]"
    ) == [["sweep", "footer"], ["beta"], True, True]
    assert state(tab)["preset"] == "polygon" and tab.complaints == []


# ---------------------------------------------------------------------------------------------
# records from strangers


def other_spec(payload: dict) -> None:
    payload["presets"] = []
    payload["limits"] = [
        {**stored_limits()["polygon"]["limit"], "spec": presets["polygon"].spec.to_dict()}
    ]


def moved_spec(payload: dict) -> None:
    polygon = presets["polygon"].spec.to_dict()
    payload["limits"] = [{**stored_limits()["polygon"]["limit"], "spec": polygon}]
    payload["state"]["spec"] = {
        **polygon,
        "start": {**polygon["start"], "moved": {"7": [1.0, 1.0]}},
    }
    del payload["state"]["preset"]


@pytest.mark.parametrize("change", [other_spec, moved_spec])
def test_a_limit_of_another_spec_is_not_shown(tab, presets_page, change):
    open_page(tab, spoil(presets_page, change))
    assert (
        tab.evaluate(f"{VIEWER}.session.outcome.kind") in ("estimated", "open")
        and tab.complaints == []
    )
    assert "certified" not in tab.evaluate(f"{VIEWER}.layout.verdict.textContent")


def test_a_limit_of_this_spec_is(tab, presets_page):
    def same(payload):
        moved_spec(payload)
        payload["limits"][0]["spec"] = payload["state"]["spec"]

    open_page(tab, spoil(presets_page, same))
    assert tab.evaluate(f"{VIEWER}.session.outcome.kind") == "certified"


def spoiled_labels(payload: dict) -> None:
    payload["presets"][0]["limit"]["labels"] = [99] * 40


def spoiled_points(payload: dict) -> None:
    payload["presets"][0]["limit"]["points"] = [["<b>"], [None]]


@pytest.mark.parametrize("change", [spoiled_labels, spoiled_points])
def test_a_limit_that_does_not_fit_is_not_shown(tab, presets_page, change):
    open_page(tab, spoil(presets_page, change))
    assert tab.evaluate(f"{VIEWER}.session.outcome.kind") != "certified" and tab.complaints == []


@pytest.mark.parametrize("change, says", [
    (lambda payload: {**payload, "version": 2}, "version 2"), (lambda payload: {"version": 1}, "no Spec"),
    (lambda payload: [], "version"),
    (lambda payload: 3, "version"), (lambda payload: {**payload, "recording": {"version": 1, "n": 10**9}}, "at most 2000 tokens"),
    (lambda payload: {**payload, "recording": 3}, "must be a table"),
])  # fmt: skip
def test_another_record_is_one_sentence(tab, presets_page, change, says):
    tab.open(spoil(presets_page, change).as_uri())
    assert says in tab.wait_until("document.querySelector('.attnlab-problem')?.textContent")
    assert tab.complaints == []


def test_scripts_in_words_stay_words(tab, presets_page):
    bad = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'

    def change(payload):
        payload["presets"][0] |= {"name": bad, "watch": bad}
        payload["title"] = bad
        payload["presets"][0]["limit"]["reason"] = bad

    open_page(tab, spoil(presets_page, change))
    assert (
        bad in tab.evaluate(TEXT)
        and tab.evaluate("window.hacked === undefined")
        and tab.complaints == []
    )


# --------------------------------------------------------------------------------------------------
# recordings


def test_a_recording_plays_without_a_worker(tab, tmp_path):
    page = al.explore("trained", tmp_path / "trained.html")
    open_page(tab, page)
    assert tab.requests == [page.as_uri()] and tab.complaints == []
    n, d, words = tab.evaluate(f"(({{n, d, words}}) => [n, d, words])({VIEWER}.session.recording)")
    assert n == len(words) == 16 and d == 3
    assert "A trained head" in tab.evaluate(TEXT)
    address = tab.evaluate(f"{VIEWER}.link().split('#').slice(1).join('#').replace(/^#+/, '')")
    open_page(tab, page, f"#{address}")
    notice = tab.evaluate(NOTICE)
    assert notice == "" and tab.complaints == []


def test_a_forced_recording_has_the_certified_limit(tab, tmp_path):
    open_page(tab, al.explore("polygon", tmp_path / "polygon.html", record=True))
    assert tab.evaluate(f"[{VIEWER}.session.outcome.kind, {VIEWER}.session.outcome.count]") == [
        "certified",
        5,
    ]
    assert tab.complaints == [] and len(tab.requests) == 1


def test_inside_a_notebook(tab, tmp_path, presets_page):
    """The frame that a notebook shows: without an origin of its own, and still with its worker."""
    from attnlab.explorer.entry import Page

    host = tmp_path / "notebook.html"
    host.write_text(
        "<!DOCTYPE html><meta"
        f" charset=utf-8><title>notebook</title>{Page(presets_page)._repr_html_()}",
        encoding="utf-8",
    )
    tab.open(host.as_uri())
    tab.rest(2.0)
    assert tab.complaints == [] and tab.requests == [host.as_uri()]
    assert len(tab.screenshot()) > 60_000  # an empty frame is a few thousand bytes
