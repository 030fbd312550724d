"""Recordings of a trained head and of a sentence in a real browser: they play, scrub, name words,
and need no worker.
"""

from __future__ import annotations

import dataclasses

import pytest
from screen import VIEWER, Screen

import attnlab as al
import tiny_models
from attnlab.explorer import explore

WORDS = (
    "[CLS]",
    "<script>window.alerted = true</script>",
    "<img src=x onerror=alert(1)>",
    "cat",
    "[SEP]",
)
COUNTS_WORKERS = (
    "window.workers = 0; window.Worker = class { constructor() { window.workers += 1; throw new"
    " Error('no'); } };"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of one head and the sentence, whose words are a stranger's."""
    state, raw = tiny_models.bert()
    model = al.models.load(state, config=raw)
    flow = dataclasses.replace(
        al.models.flow(model, 1, 2, ids=[3, 1, 4, 2, 5], t_end=2.0, limit=False, check=False),
        words=WORDS,
    )
    data = al.models.sentence(model, ids=[3, 1, 4, 2, 5], only=["twin"]).assign_coords(
        word=("token", list(WORDS))
    )
    return explore([flow, data], tmp_path_factory.mktemp("trained") / "page.html")


@pytest.fixture
def screen(tab, page):
    tab.run_before_load(COUNTS_WORKERS)
    return Screen(tab, page)


def choose(screen: Screen, name: str) -> None:
    screen.click(f'[data-preset="{name}"]')
    own = f"{VIEWER}.preset.spec.weights.source"
    screen.tab.wait_until(
        f"{VIEWER}.preset.id === {name!r} && {VIEWER}.session.spec.weights.source === {own}"
    )
    screen.wait()


def test_a_head_plays_and_scrubs_without_a_worker(screen):
    screen.open()
    tab = screen.tab
    tab.wait_until(f"{VIEWER}.player.t > 0.1")  # it plays by itself
    screen.tab.click(*screen.clock(0.5))
    tau = screen.get("session.recording.tau")
    assert (
        screen.get("player.t") == pytest.approx(tau, rel=0.02)
        and screen.get("player.isPlaying") is False
    )
    held = screen.get("player.t")
    tab.rest(0.3)
    assert screen.get("player.t") == held
    assert tab.evaluate("window.workers") == 0 and tab.complaints == []
    assert all(address.startswith("file:") for address in tab.requests), tab.requests


def test_words_are_named_and_stay_words(screen):
    screen.open("view.t=0.3")
    for token, word in enumerate(WORDS):
        screen.tab.move(*screen.token(token))
        tips = f"{VIEWER}.layout.tip"
        screen.tab.wait_until(f"!{tips}.hidden && {tips}.textContent.includes('“')")
        hovered = screen.get("hover")
        assert screen.text("tip").startswith(f"“{WORDS[hovered]}”") and hovered >= 0
        if hovered == token:
            assert word in screen.text("tip")
    assert screen.tab.evaluate("window.alerted === undefined && document.images.length === 0")
    assert screen.tab.evaluate(f"{VIEWER}.layout.root.querySelectorAll('script, img').length") == 0
    assert screen.tab.complaints == []


def test_a_recording_says_how_much_and_draws_no_more(screen):
    """The tip names the share of the largest entry of a row, and the matrix shows that share and
    not 1.
    """
    screen.open("view.t=0.3")
    choose(screen, "real")
    screen.tab.press("Home")
    screen.wait()
    token, leader, share = screen.tab.evaluate(
        f"""(() => {{ const {{ n, leaders, shares }} = {VIEWER}.session.recording,
        token = Array.from({{ length: n }}, (_, i) => i).find((i) => leaders[i] >= 0 && leaders[i] !== i);
        return [token, leaders[token], shares[token]]; }})()"""
    )
    screen.tab.evaluate(f"{VIEWER}.hover = {token}, {VIEWER}.touch()")
    screen.wait()
    assert (
        screen.text("tip")
        == f"“{WORDS[token]}” attends most to “{WORDS[leader]}” ({round(100 * share)} %)"
    )
    assert 0 < share < 0.9 and screen.text("lead") == "largest entry of each row"
    P = screen.tab.evaluate(
        f"""(() => {{ const {{ session }} = {VIEWER}, {{ n, leaders, shares }} = session.recording;
        return session.matrixOf(leaders.subarray(0, n), shares.subarray(0, n))[{token} * n + {leader}]; }})()"""
    )
    assert P == pytest.approx(share)


def test_the_real_stack_beside_the_idealised_one(screen):
    screen.open("view.t=0.3")
    choose(screen, "real")
    assert screen.get("player.t") == 0 or screen.get(
        "player.isPlaying"
    )  # another clock begins again
    screen.tab.click(*screen.clock(0.75))
    assert screen.get("player.t") == pytest.approx(1.5, abs=0.02)  # the clock is even: two layers
    screen.wait()
    assert screen.text("letter") == "layer" and screen.text("time").strip() == "1.5"
    box, at = screen.get("box"), screen.get("player.t")
    choose(screen, "twin")
    assert (
        screen.get("player.t") == at
        and screen.get("box") == box
        and screen.text("heading").startswith("Idealised model")
    )
    screen.tab.press("End")
    assert screen.get("player.t") == 2 and screen.get("layout.veil.hidden")
    screen.tab.press("ArrowLeft")
    assert screen.get("player.t") == 1  # a step is a layer
    assert screen.tab.evaluate("window.workers") == 0 and screen.tab.complaints == []


def test_the_address_holds_the_view(screen):
    screen.open("view.t=0.3")
    choose(screen, "twin")
    screen.tab.click(*screen.clock(0.25))
    link = screen.tab.evaluate(f"{VIEWER}.link()")
    assert "preset=twin" in link and "weights" not in link and len(link.split("#")[1]) < 200
    screen.open(link.split("#")[1])
    assert screen.get("preset.id") == "twin" and screen.get("player.t") == pytest.approx(
        0.5, abs=0.02
    )
    assert screen.get("layout.notice.hidden")
    screen.open("preset=nonsense")
    assert "There is no preset" in screen.text("notice") and screen.get("session.recording.n") == 5


def test_python_is_copied_and_there_is_no_spec(screen):
    screen.open()
    assert screen.tab.evaluate(f"{VIEWER}.layout.root.querySelector('[data-copy=toml]').hidden")
    code = screen.get("session.recording.python")
    assert "al.models.flow(model, 1, 2" in code and "al.explore(flow)" in code


@pytest.mark.parametrize("name", ["until", "box", "ending", "words"])
def test_a_spoiled_recording_is_a_sentence(tab, page, tmp_path, name):
    spoils = {
        "until": ('"until":2.0', '"until":3.0'),
        "box": ('"half":[', '"half":["x",'),
        "words": ('"words":[', '"words":["x",'),
        "ending": ('"kind":"end"', '"kind":"<b>"'),
    }
    text = page.read_text("utf-8")
    assert spoils[name][0] in text
    other = tmp_path / "page.html"
    other.write_text(
        text.replace(*spoils[name]).replace('"preset":"L1H2"', '"preset":"real"'), encoding="utf-8"
    )
    tab.open(other.as_uri())
    tab.wait_until(
        "document.querySelector('[role=alert]')?.textContent.includes('The recording in this page"
        " is damaged')"
    )


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(screen, width):
    screen.open(width=width, is_phone=width < 600)
    assert (
        screen.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        and screen.tab.complaints == []
    )
