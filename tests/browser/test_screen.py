"""The screen of the explorer in a real browser, with real mouse and key events."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from screen import VIEWER, Screen

import attnlab as al
from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.explorer import explore
from attnlab.explorer.presets import presets
from attnlab.types import Spec

NAMES = presets.in_order()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(explore(None, tmp_path_factory.mktemp("explorer") / "page.html"))


@pytest.fixture
def screen(tab, page) -> Screen:
    tab.prefer(prefers_color_scheme="light")
    return Screen(tab, page)


def keep_picture(screen: Screen, name: str) -> None:
    """Keep what is on the screen where BROWSER_PICTURES says."""
    if folder := os.environ.get("BROWSER_PICTURES"):
        (Path(folder) / f"explorer_{name}.png").write_bytes(screen.tab.screenshot())


# ---- 1: quiet, whole, no wider than the window
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_is_quiet_and_fits(tab, screen, width, theme):
    tab.prefer(prefers_color_scheme=theme)
    for name in ("boolean", "polytope", "late", "sphere", "heads"):
        screen.open(f"preset={name}", width=width, is_phone=width < 600)
        keep_picture(screen, f"{name}_{width}_{theme}")
        assert screen.get("theme.name") == theme
        assert tab.complaints == []
        assert all(address.startswith(("file:", "blob:")) for address in tab.requests), tab.requests
        assert [address for address in tab.requests if address.startswith("file:")] == [
            f"{screen.page.as_uri()}"
        ]
        assert tab.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        cut = tab.evaluate(f"""[...{VIEWER}.layout.root.querySelectorAll(
            'h1, h2, .sentence, dd, .equation, .numbers, .counts, .chip, label, output')]
            .filter((node) => node.offsetParent && !node.closest('.chips, .presets') && node.scrollWidth > node.clientWidth + 1)
            .map((node) => node.textContent)""")
        assert cut == []
        if width == 1280:  # everything is there without scrolling
            assert tab.evaluate("document.documentElement.scrollHeight <= innerHeight")


# ---- 2: fast, and right at the end
def groups_of_python(spec: Spec, t_end: float) -> np.ndarray:
    """Labels of the tokens at the end of the run, at 1 % of the first diameter, counted along
    growing directions.
    """
    run = al.run_spec(
        Spec.from_dict({**spec.to_dict(), "solve": {"t_end": t_end, "saves": 2, "rtol": 1e-9}}),
        throw=False,
    )
    if run.dynamics.geometry == "sphere":
        first, last = run.x[0], run.x[-1]
    else:
        grows = run.growth > 0 if (run.growth > 0).any() else np.ones(run.d, bool)
        own = (
            run.x
            @ np.linalg.inv(run.basis).T
            * np.exp(-np.maximum(run.growth, 0.0) * run.times[:, None, None])
        )
        first, last = (
            own[0][:, grows] @ run.basis[:, grows].T,
            own[-1][:, grows] @ run.basis[:, grows].T,
        )
    return cluster_labels(last, OBSERVED_SCALE * float(diameter(first)))


def as_partition(labels) -> set[frozenset[int]]:
    return {
        frozenset(np.flatnonzero(np.asarray(labels) == label).tolist()) for label in set(labels)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_ends_in_the_groups_of_python(tab, screen, name):
    screen.open(f"preset={name}")
    labels, end = tab.evaluate(
        f"[Array.from({VIEWER}.session.recording.labels), {VIEWER}.session.recording.times.at(-1)]"
    )
    spec = presets[name].spec
    if name == "late":  # past double precision
        assert screen.get("session.recording.trusted") == pytest.approx(14.0)
    else:
        assert as_partition(labels) == as_partition(groups_of_python(spec, end))
    stored = tab.evaluate(f"{VIEWER}.preset.limit?.labels ?? null")
    if stored is not None:  # the certified groups are those at infinity
        assert screen.get("session.outcome.kind") == "certified"
        assert as_partition(tab.evaluate(f"{VIEWER}.session.outcome.labels")) == as_partition(
            stored
        )
        assert str(len(set(stored))) in screen.text("verdict")


# ---- 7: drag a start
def test_a_start_is_dragged_and_dragged_back(tab, screen):
    screen.open("preset=polygon&view.t=0.9")
    home = screen.get("session.recording.x0[5]")
    assert screen.get("session.outcome.kind") == "certified"
    screen.click("[data-show=drag]")
    screen.wait()
    assert "Drag the start" in screen.text("hint")
    before, (x, y) = np.array(screen.picture()), screen.starts()[5][:2]
    tab.press_button(x, y)
    tab.move(x + 20, y - 15, held=True)
    tab.rest(0.3)
    during = np.array(screen.picture())
    assert np.abs(during - before).max() > 1.0  # the picture follows while the hand moves
    tab.move(x + 120, y - 90, held=True)
    tab.rest(0.3)
    tab.release_button(x + 120, y - 90)
    screen.wait()
    moved = screen.get("session.spec.start.moved")
    assert list(moved) == ["5"] and all(value == round(value, 3) for value in moved["5"])
    after = np.array(screen.starts()[5][:2])
    assert np.abs(after - [x + 120, y - 90]).max() < 1.0
    assert screen.get("session.recording.x0[5]") == moved["5"] != home
    assert screen.get("player.t") == 0.9 and screen.get("session.outcome.kind") == "estimated"
    verdict = screen.text("verdict")
    assert (
        "estimated" in verdict and "certified" not in verdict and "token 5" in screen.text("watch")
    )
    keep_picture(screen, "dragged")
    tab.drag((x + 120, y - 90), (x, y))
    screen.wait()
    assert screen.get("session.spec.start.moved") is None
    assert screen.get("session.outcome.kind") == "certified" and "certified" in screen.text(
        "verdict"
    )
    assert np.abs(np.array(screen.picture()) - before).max() < 0.01


@pytest.mark.parametrize("name", ["boolean", "polytope", "circle", "sphere"])
def test_starts_are_dragged_in_every_geometry(tab, screen, name):
    screen.open(f"preset={name}&view.t=0")
    screen.click("[data-show=drag]")
    screen.wait()
    i = int(np.argmin([depth for *_, depth in screen.starts()]))  # the nearest, which nothing hides
    x, y, _ = screen.starts()[i]
    along = (10.0 * np.sign(y - 400), -10.0 * np.sign(x - 400))  # the circle
    across, down = along if name == "circle" else (-3.0, 25.0)
    tab.drag((x, y), (x + across, y + down))
    screen.wait()
    moved = screen.get("session.spec.start.moved")
    assert list(moved) == [str(i)]
    if name in ("circle", "sphere"):
        assert (
            abs(np.linalg.norm(moved[str(i)]) - 1) < 1e-8
        )  # what attnlab takes as a start on the sphere
    u, v, _ = screen.starts()[i]
    reach = {"sphere": 8.0, "circle": 4.0}.get(name, 1.0)
    assert (
        abs(v - (y + down)) < reach
        and abs(u - (x + (0.0 if name == "boolean" else across))) < reach
    )


# ---- 8: drag an eigenvalue
def test_an_eigenvalue_snaps_onto_another_and_the_theorem_follows(tab, screen):
    screen.open("preset=late&view.t=2")
    assert "Theorem 4.2" in screen.text("heading") and screen.text("heading").startswith(
        "Late leaders"
    )
    (x, y), (u, v) = screen.eigenvalue(-0.5), screen.eigenvalue(1)
    tab.drag((x, y), (u + 0.6, v + 2))
    screen.wait()
    assert screen.get("session.spec.weights.eigenvalues") == [1, 0.9, 1]
    assert "Late leaders" not in screen.text(
        "heading"
    ) and "Changed from Late leaders" in screen.text("watch")
    assert (
        "Theorem 5.2" in screen.text("heading")
        and screen.get("session.outcome.kind") != "certified"
    )
    keep_picture(screen, "eigenvalue")
    x, y = screen.eigenvalue(0.9)
    tab.drag((x, y), (screen.eigenvalue(1)[0], y))
    screen.wait()
    assert screen.get("session.spec.weights.eigenvalues") == [
        1,
        1,
        1,
    ] and "Theorem 3.1" in screen.text("heading")


def test_reals_become_a_pair_by_mouse_and_back_by_keys(tab, screen):
    screen.open("preset=polygon&view.t=1")
    x, y = screen.eigenvalue(1)
    tab.drag((x, y), (x - 12, y - 22))
    screen.wait()
    ((re, im),) = screen.get("session.spec.weights.eigenvalues")
    assert (
        re < 1
        and im > 0.3
        and all(abs(value / 0.05 - round(value / 0.05)) < 1e-9 for value in (re, im))
    )
    assert (
        "certified" not in screen.text("verdict") and screen.get("session.recording.turn[0]") != 0
    )
    screen.tab_to("Eigenvalue 1 of 1")
    for _ in range(round(im / 0.05)):
        tab.press("ArrowDown")
    screen.wait()
    assert screen.get("session.spec.weights.eigenvalues") == [re, re]
    screen.tab_to("Eigenvalue 2 of 2")
    tab.press("ArrowLeft")
    screen.wait()
    assert screen.get("session.spec.weights.eigenvalues") == [re, round(re - 0.05, 2)]


def test_a_matrix_is_shown_but_locked(tab, screen, tmp_path):
    spec = Spec(
        weights={"family": "given", "V": [[1.0, 0.4], [0.0, -0.5]]},
        solve={"t_end": 5},
        start={"law": "uniform_cube", "n": 20, "d": 2, "rng": 0},
    )
    other = Screen(tab, Path(explore(spec, tmp_path / "given.html", work=10.0)))
    other.open()
    assert other.text("heading").startswith("Parallel lines") and "Theorem 4.2" in other.text(
        "heading"
    )  # of the spectrum
    assert other.text("dragWord") == "locked" and "cannot be dragged" in other.get(
        "layout.dragWord.title"
    )
    x, y = other.eigenvalue(1)
    tab.drag((x, y), (x - 30, y))
    other.wait()
    assert other.get("session.spec.weights.family") == "given"


# ---- 9: the clock
def test_scrub_to_infinity(tab, screen):
    screen.open("preset=polytope&view.t=1")
    tab.click(*screen.clock(1.0))
    screen.wait()
    assert screen.get("player.t === Infinity") and "∞" in screen.text("time")
    assert screen.get(
        "layout.root.querySelector('.clock').getAttribute('aria-valuetext')"
    ).startswith("t = infinity")
    places = np.array(tab.evaluate(f"Array.from({VIEWER}.scene().places)")).reshape(-1, 3)
    limit = screen.get("preset.limit")
    assert np.abs(places - np.array(limit["points"])[limit["labels"]]).max() < 1e-5
    assert len(screen.picture()) == 80 and screen.text("counts").startswith("11 groups")
    tab.drag(screen.clock(0.999), screen.clock(0.3))
    screen.wait()
    assert screen.get("player.t") == pytest.approx(3 / 7, abs=0.02)


def test_infinity_without_a_limit_shows_a_sentence_and_no_points(tab, screen):
    screen.open("preset=pair&view.t=1")
    tab.click(*screen.clock(1.0))
    screen.wait()
    keep_picture(screen, "open_infinity")
    assert (
        screen.picture() == []
        and "does not know" in screen.text("veil")
        and not screen.get("layout.veil.hidden")
    )


def test_past_the_end_and_past_double_precision_there_is_a_sentence(tab, screen):
    screen.open("preset=late&view.t=20")
    assert screen.get("session.recording.trusted") < 20 and "double precision" in screen.text(
        "veil"
    )
    screen.open("preset=polytope&view.t=1")
    tab.click(*screen.clock(0.955))  # between the end of the run and infinity
    screen.wait()
    assert screen.get("scene().moment") == "gap" and "Nothing is computed" in screen.text("veil")
    screen.open("preset=polytope&view.t=1")
    assert screen.get("layout.veil.hidden")


# ---- 13: keys, names, motion
def test_the_keyboard_alone(tab, screen):
    tab.allow_clipboard()
    screen.open("preset=polytope&view.t=0.5")
    tab.press("2")
    screen.wait()
    assert screen.get("preset.id") == NAMES[1] and screen.get("player.isPlaying")
    tab.press(" ")
    assert not screen.get("player.isPlaying")
    now = screen.get("player.t")
    tab.press("ArrowRight")
    assert screen.get("player.t") > now
    tab.press("End")
    assert screen.get("player.t === Infinity")
    tab.press("Home")
    assert screen.get("player.t") == 0
    tab.press("r")
    screen.wait()
    assert screen.get("session.spec.start.rng") == presets[NAMES[1]].spec.start["rng"] + 1
    tab.press("t")
    assert screen.get("theme.name") == "dark"
    screen.tab_to("tokens n")
    n = screen.get("session.spec.start.n")
    tab.press("ArrowRight")
    tab.press("ArrowRight")
    screen.wait()
    assert screen.get("session.spec.start.n") == n + 2 and screen.focus() == "tokens n"
    screen.tab_to("TOML")
    tab.press("Enter")
    tab.wait_until(f"{VIEWER}.layout.live.textContent === 'TOML copied.'")
    copied = Spec.from_toml(tab.evaluate("navigator.clipboard.readText()"))
    assert copied.start["n"] == n + 2


def test_tokens_by_keyboard(tab, screen):
    screen.open("preset=polygon&view.t=0.9")
    tab.evaluate(f"{VIEWER}.layout.scene.focus()")
    tab.press("Enter")
    tab.wait_until(f"{VIEWER}.layout.live.textContent.includes('group A')")
    first = screen.get("view.selected[0]")
    tab.press("Tab")
    assert screen.get("view.selected[0]") != first and screen.get("session.colours[0]") is not None
    tab.press("Escape")
    assert screen.get("view.selected.length") == 0
    tab.press("Tab")
    assert screen.focus() != screen.get(
        "layout.scene.getAttribute('aria-label')"
    )  # and the tab key leaves the stage
    tab.evaluate(f"{VIEWER}.layout.scene.focus()")
    camera = screen.get("view.camera")
    tab.press("+")
    assert screen.get("view.camera[2]") > camera[2]


def test_shift_and_arrows_turn_the_picture(tab, screen):
    screen.open("preset=polytope&view.t=0.9")
    tab.evaluate(f"{VIEWER}.layout.scene.focus()")
    before = screen.get("view.camera")
    tab.press("ArrowLeft", "shift")
    assert screen.get("view.camera[0]") != before[0] and screen.get("player.t") == 0.9


@pytest.mark.parametrize("fragment", ["preset=polytope&view.t=1", "preset=heads&view.t=1"])
def test_every_control_has_a_name(tab, screen, fragment):
    screen.open(fragment)
    tab.tell("Accessibility.enable")
    nodes = tab.tell("Accessibility.getFullAXTree")["nodes"]
    tab.tell("Accessibility.disable")
    roles = {
        "button",
        "slider",
        "combobox",
        "spinbutton",
        "textbox",
        "link",
        "checkbox",
        "application",
        "img",
    }
    controls = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in roles
    ]
    assert len(controls) > 40
    assert [role for role, name in controls if not name.strip()] == []


def test_reduced_motion(tab, screen):
    tab.prefer(prefers_reduced_motion="reduce", prefers_color_scheme="dark")
    screen.open("preset=polytope")
    tab.rest(0.7)
    assert (
        screen.get("player.t") == 0
        and not screen.get("player.isPlaying")
        and not screen.get("quality.glow")
    )
    tab.press("3")
    screen.wait()
    tab.rest(0.4)
    assert screen.get("player.t") == 0
    tab.press(" ")  # asked for, it plays
    tab.wait_until(f"{VIEWER}.player.t > 0")


def test_it_plays_unasked_where_motion_is_welcome(tab, screen):
    tab.prefer(prefers_reduced_motion="no-preference")
    screen.open("preset=polytope")
    tab.wait_until(f"{VIEWER}.player.t > 0.05")


# ---- 15: teachers
@pytest.mark.parametrize("panel, selector, key", [
    ("presets", ".presets", "3"), ("controls", ".controls", "r"), ("theme", ".theme", "t"), ("verdict", ".watch", None),
    ("spectrum", ".plane", None), ("attention", ".heat", None), ("sweep", ".sweep", None), ("footer", "footer", None),
    ("legend", ".chips", None), ("equation", ".equation", None),
])  # fmt: skip
def test_a_hidden_panel_is_gone_with_its_keys(tab, screen, panel, selector, key):
    screen.open("preset=polygon&view.t=1")
    assert screen.get(f"layout.root.querySelector({selector!r}) !== null")
    screen.open("preset=polygon&view.t=1", query=f"hide={panel}")
    assert screen.get(f"layout.root.querySelector({selector!r}) === null")
    before = json.dumps(screen.get("state()"), sort_keys=True)
    if key:
        tab.press(key)
        tab.rest(0.3)
        assert json.dumps(screen.get("state()"), sort_keys=True) == before
    screen.wait()
    assert tab.complaints == [] and len(screen.picture()) == 60


def test_locked_controls_stay_as_they_are(tab, screen):
    screen.open("preset=polygon&view.t=1", query="lock=beta,spectrum,rng,drag")
    assert screen.get("layout.root.querySelector('[aria-label=\"sharpness β\"]').disabled")
    assert screen.get("layout.root.querySelector('[data-show=drag]').disabled")
    x, y = screen.eigenvalue(1)
    tab.drag((x, y), (x - 30, y))
    tab.press("r")
    screen.wait()
    assert screen.get("session.outcome.kind") == "certified"
    assert not screen.get("layout.root.querySelector('[aria-label=\"tokens n\"]').disabled")


def test_an_embedded_viewer_fills_a_small_frame(tab, screen, tmp_path):
    screen.open("preset=polytope&view.t=1", query="embed=1", width=600, height=400)
    bottom, right = tab.evaluate(f"""(() => {{
        const box = {VIEWER}.layout.root.querySelector('.stage').getBoundingClientRect();
        return [box.bottom, box.right]; }})()""")
    assert (
        bottom <= 401
        and right <= 600
        and tab.evaluate("document.documentElement.scrollWidth <= 600")
    )
    pixels = np.array(screen.picture())
    assert (pixels > 0).all() and (pixels[:, 1] < 330).all()
    outer = tmp_path / "outer.html"
    address = f"{screen.page.as_uri()}?embed=1&hide=presets,theme"
    frame = f'<iframe src="{address}" width="600" height="400" style="border:0"></iframe>'
    outer.write_text(f"<!DOCTYPE html><title>attnlab</title>{frame}", encoding="utf-8")
    tab.open(outer.as_uri(), 700, 500)
    tab.rest(1.5)
    assert tab.complaints == []
    assert len(set(tab.screenshot())) > 200  # a picture, not an empty frame


def test_guess_mode_keeps_the_answer(tab, screen):
    screen.open("preset=polygon&view.t=0.5", query="guess=1")
    assert "certified" not in screen.text("verdict") and screen.text("counts") == ""
    assert set(tab.evaluate(f"Array.from({VIEWER}.scene().colours)")) == {-1}
    tab.press("End")
    screen.wait()
    assert screen.picture() == [] and screen.text("lead") == ""
    screen.click(".guess input")
    tab.type("4")
    tab.press("Enter")
    screen.wait()
    assert "5 limits, certified" in screen.text("verdict") and "You said 4" in screen.text(
        "verdict"
    )
    assert len(screen.picture()) == 60 and set(
        tab.evaluate(f"Array.from({VIEWER}.scene().colours)")
    ) == {0, 1, 2, 3, 4}


# ---- 20: speed
def test_drawing_is_fast_or_becomes_simpler(tab, screen):
    screen.open("preset=polytope&start.n=200&view.t=0.3")
    tab.press(" ")
    tab.wait_until(f"{VIEWER}.cost > 0", patience=30)
    assert screen.get("cost") < 16 or screen.get("quality.trail") < 0.42
