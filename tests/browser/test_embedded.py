"""Viewers inside the tour, in a real browser: behind still pictures, one plays at a time, and the
page is whole without them.
"""

from __future__ import annotations

import pytest

import tiny_models
from attnlab.models import BadModel, load
from attnlab.models.catalog import fetch
from attnlab.tour import context, make_tour
from attnlab.tour.stops import theorems, trained_head

NAMES = ("polytope_3d", "past_the_wall", "trained_head")
WORDS = "the cat sat on it"
COUNTS_WORKERS = """window.workers = 0; const Native = window.Worker;
window.Worker = class extends Native { constructor(...all) { super(...all); window.workers += 1; }
  terminate() { window.workers -= 1; super.terminate(); } };"""
VIEWERS = "window.attnlab.viewers"


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """A tour with the polytope, the late leaders past the wall, and a head of a tiny model."""
    folder = tmp_path_factory.mktemp("tour")

    def fails(name, **options):
        raise BadModel(f"pip must deliver {name}, and did not.")

    with pytest.MonkeyPatch.context() as patch:
        model = read_tiny(folder / "model")
        patch.setattr(fetch, "fetch", fails)
        patch.setattr(context.Context, "model", lambda self, name: (model, ""))
        patch.setattr(trained_head, "TEXT", WORDS)
        patch.setattr(
            theorems,
            "PICTURES",
            tuple(one for one in theorems.PICTURES if one.name == "polytope_3d"),
        )
        make_tour(folder / "tour", only=["theorems", "past_the_wall", "trained_head"])
    return folder / "tour" / "index.html"


def read_tiny(folder):
    """A tiny model with a tokenizer that knows WORDS."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tiny_models.write_folder(folder, *tiny_models.albert())
    tokenizer = Tokenizer(
        WordLevel(
            {"[UNK]": 0, **{word: i + 1 for i, word in enumerate(WORDS.split())}}, unk_token="[UNK]"
        )
    )
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return load(folder)


@pytest.fixture
def page(tab, tour):
    """The tour, with its buttons."""
    tab.run_before_load(COUNTS_WORKERS)
    tab.open(tour.as_uri())
    tab.wait_until("document.querySelectorAll('[data-attnlab] > button').length === 3")
    return tab


def press(tab, name: str) -> None:
    """Press the button of a viewer with the mouse."""
    x, y = tab.evaluate(
        f"""(() => {{ const button = document.querySelector('[data-attnlab={name}] > button');
        button.scrollIntoView({{ block: 'center', behavior: 'instant' }}); const box = button.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2]; }})()"""
    )
    tab.click(x, y)


def open_viewer(tab, name: str) -> int:
    """Open a viewer, bring it into sight, and return its number among those that are open."""
    number = tab.evaluate(f"{VIEWERS}.length")
    press(tab, name)
    tab.wait_until(
        f"{VIEWERS}.length === {number + 1} && {VIEWERS}[{number}].session.recording?.complete",
        patience=20,
    )
    tab.evaluate(
        f"document.querySelector('[data-attnlab={name}]').scrollIntoView({{ block: 'start',"
        " behavior: 'instant' })"
    )
    return number


def shown(tab, name: str) -> dict[str, str]:
    """How the parts of a place are displayed."""
    return tab.evaluate(
        f"""(() => {{ const place = document.querySelector('[data-attnlab={name}]');
        const look = (part) => {{ const node = place.querySelector(':scope > ' + part);
          return node ? getComputedStyle(node).display : 'missing'; }};
        return {{ still: look('figure'), button: look('button'), live: look('.attnlab-live') }}; }})()"""
    )


def test_nothing_runs_before_it_is_asked_for(page):
    assert page.evaluate(f"{VIEWERS}.length") == 0 and page.evaluate("window.workers") == 0
    assert all(
        shown(page, name) == {"still": "block", "button": "inline-block", "live": "missing"}
        for name in NAMES
    )
    assert (
        page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
        and page.complaints == []
    )
    assert all(address.startswith(("file:", "data:")) for address in page.requests)


def test_the_text_around_an_open_viewer_is_said_to_be_about_the_picture(page):
    note = (
        "(() => { const note = document.querySelector('[data-attnlab=polytope_3d] >"
        " .attnlab-note'); "
    )
    look = note + "return [getComputedStyle(note).display, note.textContent]; })()"
    assert page.evaluate(look)[0] == "none"
    open_viewer(page, "polytope_3d")
    display, text = page.evaluate(look)
    assert display == "block" and "describes the picture" in text
    press(page, "polytope_3d")
    assert page.evaluate(look)[0] == "none"


def test_one_plays_at_a_time(page):
    for count, name in enumerate(NAMES):
        number = open_viewer(page, name)
        page.wait_until(f"{VIEWERS}[{number}].player.isPlaying && {VIEWERS}[{number}].player.t > 0")
        assert page.evaluate(f"{VIEWERS}.map((viewer) => viewer.player.isPlaying)") == [
            False
        ] * count + [True]
        assert shown(page, name)["still"] == "none" and shown(page, name)["live"] == "block"
    page.evaluate(
        "document.querySelector('[data-attnlab=polytope_3d]').scrollIntoView({ behavior:"
        " 'instant' })"
    )
    page.evaluate(f"{VIEWERS}[0].layout.play.click()")
    assert page.evaluate(f"{VIEWERS}.map((viewer) => viewer.player.isPlaying)") == [
        True,
        False,
        False,
    ]
    assert page.evaluate("window.workers") == 2  # the head is a recording
    assert page.complaints == [] and all(
        one.startswith(("file:", "data:", "blob:")) for one in page.requests
    )


def test_the_certified_limit_past_the_wall(page):
    number = open_viewer(page, "past_the_wall")
    viewer = f"{VIEWERS}[{number}]"
    assert page.evaluate(f"{viewer}.session.outcome.kind") == "certified"
    assert "2 limits, certified" in page.evaluate(f"{viewer}.layout.verdict.textContent")
    page.evaluate(f"{viewer}.clock.node.focus()")
    page.press("End")
    page.wait_until(f"{viewer}.player.t === Infinity && !{viewer}.isDirty")
    far = page.evaluate(
        f"""(() => {{ const {{ places, outcome }} = {viewer}.session;   // along the two directions that grow
        return Math.max(...outcome.labels.map((label, i) => Math.hypot(places[3 * i] - outcome.points[label][0],
          places[3 * i + 1] - outcome.points[label][1]))); }})()"""
    )
    assert far < 1e-5 and page.evaluate(f"{viewer}.session.recording.trusted") == pytest.approx(
        14.0
    )


def test_a_viewer_closes(page):
    open_viewer(page, "polytope_3d")
    assert page.evaluate("window.workers") == 1
    press(page, "polytope_3d")
    page.wait_until(f"{VIEWERS}.length === 0")
    assert shown(page, "polytope_3d") == {
        "still": "block",
        "button": "inline-block",
        "live": "missing",
    }
    assert page.evaluate("window.workers") == 0  # its worker has ended
    press(page, "polytope_3d")
    press(page, "polytope_3d")  # faster than it opens
    page.rest(1.0)
    assert (
        page.evaluate(f"{VIEWERS}.length") == 0
        and page.evaluate("window.workers") == 0
        and page.complaints == []
    )


def test_print_shows_the_still_pictures(page):
    open_viewer(page, "polytope_3d")
    page.tell("Emulation.setEmulatedMedia", media="print")
    assert all(shown(page, name)["still"] == "block" for name in NAMES)
    assert shown(page, "polytope_3d")["live"] == "none" and all(
        shown(page, name)["button"] == "none" for name in NAMES
    )


def test_the_page_is_whole_without_javascript(tab, tour):
    tab.tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(tour.as_uri())
        assert (
            tab.evaluate("document.querySelectorAll('[data-attnlab] button, .attnlab-live').length")
            == 0
        )
        assert tab.evaluate(
            "[...document.images].every((image) => image.naturalWidth > 0 && image.offsetHeight >"
            " 100)"
        )
        assert tab.evaluate("document.querySelectorAll('[data-attnlab] > figure img').length") == 3
    finally:
        tab.tell("Emulation.setScriptExecutionDisabled", value=False)


def test_reduced_motion_moves_nothing(tab, tour):
    tab.prefer(prefers_reduced_motion="reduce")
    tab.open(tour.as_uri())
    tab.wait_until("document.querySelectorAll('[data-attnlab] > button').length === 3")
    number = open_viewer(tab, "trained_head")
    tab.rest(0.5)
    assert tab.evaluate(
        f"[{VIEWERS}[{number}].player.isPlaying, {VIEWERS}[{number}].player.t]"
    ) == [False, 0]


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(tab, tour, width):
    tab.open(tour.as_uri(), width, 860, is_phone=width < 600)
    tab.wait_until("document.querySelectorAll('[data-attnlab] > button').length === 3")
    for name in NAMES:
        open_viewer(tab, name)
    assert (
        tab.evaluate("document.documentElement.scrollWidth <= innerWidth") and tab.complaints == []
    )


def test_the_policy_lets_no_other_script_run(page):
    page.evaluate(
        """(() => { const script = document.createElement('script'); script.textContent = 'window.intruder = 1';
        document.body.append(script); })()"""
    )
    assert page.evaluate("window.intruder === undefined")


def test_a_stranger_s_record_is_a_sentence(tab, tour, tmp_path):
    text = tour.read_text("utf-8")
    spoiled = tmp_path / "page.html"
    spoiled.write_text(text.replace('{"version":1,"state"', '{"version":7,"state"'), "utf-8")
    tab.open(spoiled.as_uri())
    tab.wait_until("document.querySelectorAll('[data-attnlab] > button').length === 3")
    press(tab, "polytope_3d")
    tab.wait_until(
        "document.querySelector('[data-attnlab] [role=alert]')?.textContent.includes('must have the"
        " version')"
    )
    assert tab.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
