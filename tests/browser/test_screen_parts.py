"""Hover, sweep, copies, tables, fingers, words and many tokens, in a real browser."""

from __future__ import annotations

import base64
import io
import re
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from screen import THERE, VIEWER, Screen

import attnlab as al
from attnlab.explorer import explore
from attnlab.types import Spec


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(explore(None, tmp_path_factory.mktemp("explorer") / "page.html"))


@pytest.fixture
def screen(tab, page) -> Screen:
    tab.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
    return Screen(tab, page)


def test_hover_shows_the_row_of_attention(tab, screen):
    screen.open("preset=polygon&view.t=0.15")
    run = al.run_spec(
        al.Spec.from_dict(
            {**screen.get("session.spec"), "solve": {"times": [0.0, 0.15], "t_end": 0.15}}
        )
    )
    matrix = al.attention(run, -1)[0]
    token = int(np.abs(matrix.max(axis=1) - 0.7).argmin())  # one that attends to several
    most, share = int(matrix[token].argmax()), float(matrix[token].max())
    assert 0.5 < share < 0.9
    tab.wait_until(f"{VIEWER}.session.attention !== null")
    tab.move(*screen.token(token))
    tab.wait_until(f"!{VIEWER}.layout.tip.hidden")
    found = np.array(tab.evaluate(f"Array.from({VIEWER}.rowOf({token}))"))
    assert np.abs(found - matrix[token]).max() < 2e-3  # of the frame next to this time
    name = "itself" if most == token else f"token {most}"
    assert screen.text("tip") == f"token {token} attends to {name} ({round(100 * share)} %)"
    tab.move(5, 5)
    tab.wait_until(f"{VIEWER}.layout.tip.hidden")


def test_attention_is_that_of_this_time_once_the_run_is_complete(tab, screen):
    screen.open("preset=planes&view.t=2")  # first asked for when only early frames were there
    run = al.run_spec(
        al.Spec.from_dict(
            {**screen.get("session.spec"), "solve": {"times": [0.0, 2.0], "t_end": 2.0}}
        )
    )
    expected = al.attention(run, -1)[0]
    tab.wait_until(
        f"{VIEWER}.session.attention?.T === {VIEWER}.session.recording.T &&"
        f" !{VIEWER}.session.isAsking"
    )
    found = np.array(tab.evaluate(f"Array.from({VIEWER}.matrix())")).reshape(80, 80)
    assert (
        np.abs(found - expected).max() < 0.1 and np.abs(found - expected).mean() < 1e-4
    )  # of the frame next to it
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.97


def test_a_row_of_the_matrix_highlights_its_token(tab, screen):
    screen.open("preset=polygon&view.t=0.5")
    box = tab.evaluate(
        f"(() => {{ const b = {VIEWER}.heat.node.getBoundingClientRect(); return [b.left, b.top,"
        " b.height]; })()"
    )
    tab.move(box[0] + 40, box[1] + 10)
    tab.rest(0.2)
    assert screen.get("hover") == screen.get(f"session.order[{int(10 / (box[2] - 8) * 60)}]")


def test_a_sweep_fills_dots_and_a_dot_loads_its_run(tab, screen):
    screen.open("preset=polygon&view.t=0.5")
    screen.click(".sweep .go")
    tab.wait_until(f"{VIEWER}.sweep.points.length >= 14", patience=30)
    tab.wait_until(f"!{VIEWER}.sweep.isRunning", patience=120)
    points = screen.get("sweep.points")
    assert len(points) == 23 * 7 and {point["rng"] for point in points} == set(range(7))
    for value in (-0.5, 0.0, 0.5):  # full dots at 2 below 0.7
        assert [
            point["count"] for point in points if point["value"] == value and point["settled"]
        ].count(2) >= 5
    last = sorted(point["count"] for point in points if point["value"] == 1)
    assert last[3] > 3
    x, y = tab.evaluate(
        f"""(() => {{ const box = {VIEWER}.sweep.node.querySelector('canvas').getBoundingClientRect();
        return [box.right - 12, box.top]; }})()"""
    )
    found = next(dy for dy in range(4, 80, 2) if dot_under(tab, x, y + dy))
    tab.click(x, y + found + 4)  # not at the edge of its reach
    screen.wait()
    assert (
        screen.get("session.spec.weights.eigenvalues") == [1, 1]
        and screen.get("session.spec.start.n") == 40
    )
    rng, count = screen.get("session.spec.start.rng"), screen.get("session.outcome.count")
    assert [point["count"] for point in points if point["value"] == 1 and point["rng"] == rng] == [
        count
    ]


def dot_under(tab, x, y) -> bool:
    tab.move(x, y)
    tab.rest(0.02)
    return bool(tab.evaluate(f"{VIEWER}.sweep.node.querySelector('canvas').title"))


CATCH = f"""(async (name) => {{ const make = URL.createObjectURL, click = HTMLAnchorElement.prototype.click; let blob, file;
    URL.createObjectURL = (one) => {{ blob = one; return make.call(URL, one); }};
    HTMLAnchorElement.prototype.click = function () {{ file = this.download; }};
    {VIEWER}.layout.root.querySelector(`[data-copy=${{name}}]`).click();
    for (let k = 0; k < 100 && !file; k++) await new Promise((f) => setTimeout(f, 30));
    URL.createObjectURL = make; HTMLAnchorElement.prototype.click = click;
    const bytes = new Uint8Array(await blob.arrayBuffer()); let text = ''; for (const b of bytes) text += String.fromCharCode(b);
    return [file, btoa(text)]; }})"""


def test_png_is_twice_as_large_and_not_empty(tab, screen):
    screen.open("preset=polytope&view.t=0.5")
    name, data = tab.call(CATCH, "png")
    picture = imread(io.BytesIO(base64.b64decode(data)), format="png")
    assert name == "attnlab_polytope.png"
    assert picture.shape[1] == 2 * round(screen.get("area.width")) and picture.shape[
        0
    ] == 2 * round(screen.get("area.height"))
    assert len(np.unique(picture[..., :3].reshape(-1, 3), axis=0)) > 500


def test_svg_has_the_tokens_where_the_screen_has_them(tab, screen):
    screen.open("preset=polygon&view.t=0.5")
    name, data = tab.call(CATCH, "svg")
    text = base64.b64decode(data).decode()
    assert name == "attnlab_polygon.svg" and "<script" not in text
    paths = [
        e.get("d")
        for e in xml.fromstring(text).iter()
        if e.tag.endswith("path") and (e.get("fill") or "").startswith("#")
    ]
    discs = [re.match(r"M([\d.]+) ([\d.]+)a([\d.]+) ", path) for path in paths]
    found = np.array([[float(disc[1]) + float(disc[3]), float(disc[2])] for disc in discs if disc])
    pixels = np.array(screen.picture())
    assert found.shape == pixels.shape == (60, 2)
    for axis in (0, 1):  # the exported picture has another margin at its foot
        slope, offset = np.polyfit(pixels[:, axis], found[:, axis], 1)
        assert (
            0.9 < slope < 1.2
            and np.abs(found[:, axis] - slope * pixels[:, axis] - offset).max() < 0.05
        )


def test_a_film_is_recorded_and_stopped(tab, screen):
    screen.open("preset=polygon&view.t=0.5", width=900, height=700)
    began = f"{VIEWER}.layout.root.querySelector('[data-copy=film]').click()"
    tab.evaluate(f"setTimeout(() => {began}, 900)")  # the second press stops it
    name, data = tab.call(CATCH, "film")
    assert (
        name in ("attnlab_polygon.mp4", "attnlab_polygon.webm")
        and len(base64.b64decode(data)) > 2000
    )
    tab.wait_until(f"{VIEWER}.film === null")
    assert screen.get("player.t") == 0.5 and screen.text("live") == "Film saved."


def test_what_comes_out_is_spoken(tab, screen):
    screen.open("preset=polygon&view.t=0.5")
    assert screen.text("live") == "Polygon: 5 limits, certified"
    tab.press("3")
    screen.wait()
    assert screen.text("live") == "Polytope: 11 limits, certified"


def test_text_is_shown_where_it_cannot_be_copied(tab, screen):
    tab.run_before_load("Object.defineProperty(navigator, 'clipboard', { value: undefined });")
    screen.open("preset=polygon&view.t=0.5")
    screen.click("[data-copy=toml]")
    tab.wait_until(f"{VIEWER}.layout.dialog.open")
    shown = tab.evaluate(f"{VIEWER}.layout.dialog.querySelector('textarea').value")
    assert Spec.from_toml(shown).start["n"] == 60
    tab.press("Escape")
    tab.wait_until(f"!{VIEWER}.layout.dialog.open")


def test_the_table_of_groups(tab, screen):
    screen.open("preset=polytope&view.t=0.5")
    screen.click("[data-copy=data]")
    tab.wait_until(f"{VIEWER}.layout.dialog.open")
    rows = tab.evaluate(f"""[...{VIEWER}.layout.dialog.querySelectorAll('tbody tr')]
        .map((row) => [...row.cells].map((cell) => cell.textContent))""")
    limit = screen.get("preset.limit")
    assert [row[0] for row in rows] == [chr(65 + k) for k in range(11)]
    assert sum(int(row[2]) for row in rows) == 80
    members = {frozenset(int(i) for i in row[5].split(", ")) for row in rows}
    labels = np.array(limit["labels"])
    assert members == {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(11)}
    leaders = {int(row[3]) for row in rows}
    assert leaders == set(limit["leaders"])


def test_fingers_turn_and_pinch(tab, screen):
    screen.open("preset=polytope&view.t=0.5", width=400, height=820, is_phone=True)
    before = screen.get("view.camera")
    x, y = screen.find(".scene")
    tab.touch("touchStart", (x, y))
    tab.touch("touchMove", (x + 30, y + 10))
    tab.touch("touchMove", (x + 60, y + 20))
    tab.touch("touchEnd")
    tab.rest(0.2)
    turned = screen.get("view.camera")
    assert turned[0] != before[0] and turned[1] != before[1] and turned[2] == before[2]
    tab.touch("touchStart", (x - 30, y), (x + 30, y))
    tab.touch("touchMove", (x - 50, y), (x + 50, y))
    tab.touch("touchMove", (x - 60, y), (x + 60, y))
    tab.touch("touchEnd")
    tab.rest(0.2)
    assert screen.get("view.camera[2]") == pytest.approx(2 * before[2], rel=0.2)


def test_tabs_of_a_phone_show_one_card_each(tab, screen):
    screen.open("preset=polytope&view.t=0.5", width=400, height=820, is_phone=True)
    shown = (
        f"[...{VIEWER}.layout.aside.children].filter((card) => card.offsetParent).map((card) =>"
        " card.classList[1])"
    )
    assert tab.evaluate(shown) == ["watch"]
    for name in ("matrices", "controls", "sweep"):
        screen.click(f".tabs [data-tab={name}]")
        tab.rest(0.2)
        assert tab.evaluate(shown) == [name]
    small = tab.evaluate(
        f"""[...{VIEWER}.layout.root.querySelectorAll('.play, .clock, .handle, .tabs button, .controls select')]
        .filter((e) => e.offsetParent && Math.min(e.offsetHeight, e.offsetWidth) < 44 &&
        !e.classList.contains('speed')).map((e) => e.className + e.tagName)"""
    )
    assert small == []


def test_many_tokens_play_while_they_are_computed(tab, screen):
    tab.prefer(prefers_reduced_motion="no-preference")
    screen.tab.open(screen.page.as_uri() + "#preset=polytope&start.n=500")
    tab.wait_until(f"{THERE} && {VIEWER}.player.t > 0.02", patience=30)
    screen.wait(patience=60)
    assert screen.get("session.recording.n") == 500 and tab.complaints == []


def test_the_status_of_a_run_that_ends_early_is_said(tab, screen):
    screen.open("preset=polygon&dynamics.kernel=exp_mean&view.t=0")
    assert screen.get("session.recording.status") != "OK"
    tab.press("End")
    tab.press("ArrowLeft")
    screen.wait()
    assert screen.text("veil") == screen.get("session.recording.sentence") != ""


def test_a_run_that_the_page_refuses_says_why_and_the_page_goes_on(tab, screen):
    screen.open("preset=polygon&view.t=0.5")
    tab.evaluate(
        f"{VIEWER}.session.change({{ ...{VIEWER}.session.spec, start: {{ law: 'nonsense', n: 4, d:"
        " 2 } })"
    )
    tab.wait_until(f"!{VIEWER}.layout.notice.hidden")
    assert "nonsense" in screen.text("notice")
    tab.press("3")
    screen.wait()
    assert screen.get("layout.notice.hidden") and screen.get("preset.id") == "polytope"


def test_a_certified_mark_leaves_at_once(tab, screen):
    """Also before the changed run has been computed."""
    screen.open("preset=polygon&view.t=0.5")
    kinds = tab.evaluate(f"""(() => {{
        const {{ session }} = {VIEWER}, spec = structuredClone(session.spec), before = session.outcome.kind;
        spec.start.moved = {{ 5: [1, 2] }}; session.change(spec); {VIEWER}.describe();
        return [before, session.outcome.kind, {VIEWER}.layout.verdict.textContent]; }})()""")
    assert kinds[:2] == ["certified", "open"] and "being computed" in kinds[2]


def test_words_are_labels_and_never_markup(tab, tmp_path):
    evil = "<img src=x onerror=window.hurt=1>"
    page = Path(explore("trained", tmp_path / "trained.html"))
    text = page.read_text(encoding="utf-8")
    assert '"[CLS]"' in text
    page.write_text(
        text.replace('"[CLS]"', '"' + evil.replace("<", "\\u003c") + '"'), encoding="utf-8"
    )
    tab.prefer(prefers_reduced_motion="reduce")
    screen = Screen(tab, page).open("view.t=0.5")
    words = screen.get("session.recording.words")
    assert evil in words
    tab.move(*screen.token(words.index(evil)))
    tab.rest(0.3)
    assert evil in screen.text("tip")
    screen.click("[data-copy=data]")
    tab.wait_until(f"{VIEWER}.layout.dialog.open")
    assert evil in screen.text("dialog") and not tab.evaluate("window.hurt")
    assert not any(
        address.startswith("blob:") for address in tab.requests
    )  # a recording needs no worker
    assert tab.complaints == []
