"""The explorer on the site: its still picture, the live frame, and the links of the exercises."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from screen import VIEWER, Screen

import attnlab as al
from exercises import QUESTIONS, exercises, spec_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

LIVE = "document.querySelector('.live-explorer')"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A page with what the front page of the site has about the explorer, and the files that it
    needs.
    """
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS / "_static", folder / "_static")
    shutil.copy(DOCS / "images" / "explorer.png", folder)
    al.explore(None, folder / "_static" / "explorer.html")
    opening = re.search(
        r'<div class="live-explorer".*?>', (DOCS / "index.md").read_text(encoding="utf-8")
    )[0]
    (folder / "index.html").write_text(
        '<!DOCTYPE html><html><head><meta charset="utf-8"><meta name="viewport"'
        ' content="width=device-width"><link rel="stylesheet" href="_static/site.css"><script'
        ' src="_static/live.js"></script></head><body><article'
        f' style="height:3000px">{opening}<p><img src="explorer.png" alt="The'
        ' explorer"></p></div></article></body></html>',
        encoding="utf-8",
    )
    return folder


def shown(tab) -> dict[str, bool]:
    """Which of picture and frame a reader sees."""
    heights = {
        tag: tab.evaluate(f"document.querySelector('{tag}')?.offsetHeight ?? 0")
        for tag in ("img", "iframe")
    }
    return {tag: height > 100 for tag, height in heights.items()}


def test_the_frame_comes_in_place_of_the_picture(tab, site):
    tab.open((site / "index.html").as_uri())
    tab.wait_until(f"{LIVE}.classList.contains('is-live')")
    assert shown(tab) == {"img": False, "iframe": True}
    tab.wait_until(
        "document.querySelector('iframe').contentWindow.length === 0 && performance.now() > 500"
    )
    assert tab.complaints == [] and all(
        address.startswith(("file:", "blob:", "data:")) for address in tab.requests
    )
    tab.tell("Emulation.setEmulatedMedia", media="print")
    assert shown(tab) == {"img": True, "iframe": False}
    tab.tell("Emulation.setEmulatedMedia", media="")


def test_without_scripts_and_on_a_phone_the_picture_stays(tab, site):
    address = (site / "index.html").as_uri()
    tab.open(address, 400, 800, is_phone=True)
    tab.rest(0.5)
    assert shown(tab) == {"img": True, "iframe": False}
    tab.click(200, 100)
    tab.wait_until("location.pathname.endsWith('/_static/explorer.html')")
    tab.tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(address)
        tab.rest(0.5)
    finally:
        tab.tell("Emulation.setScriptExecutionDisabled", value=False)
    assert shown(tab) == {"img": True, "iframe": False}


@pytest.mark.parametrize("number, fragment, answer", QUESTIONS, ids=lambda value: str(value))
def test_the_link_of_an_exercise_opens_its_run_and_asks_first(tab, site, number, fragment, answer):
    tab.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
    screen = Screen(tab, site / "_static" / "explorer.html").open(
        unescape(fragment), query="guess=1"
    )
    assert tab.evaluate(f"{VIEWER}.layout.notice.hidden")  # nothing to complain about
    assert al.Spec.from_dict(screen.get("session.spec")) == spec_of(fragment)
    assert "How many limits will there be?" in screen.text(
        "verdict"
    ) and "certified" not in screen.text("verdict")
    tab.evaluate(f"{VIEWER}.layout.verdict.querySelector('input').focus()")
    tab.type(str(answer))
    tab.press("Enter")
    tab.wait_until(f"!{VIEWER}.isSecret")
    outcome = screen.get("session.outcome.kind")
    assert outcome in ("certified", "estimated") and f"You said {answer}: right." in screen.text(
        "verdict"
    )
    if number == 7:
        tab.wait_until(f"{VIEWER}.layout.counts.textContent.includes('5 groups')")
        assert "stand in five groups" in exercises()[7]
