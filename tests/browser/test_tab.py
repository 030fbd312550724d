"""The tab itself: what tests of the explorer rely on must act, and must see what goes wrong."""

from __future__ import annotations

import pytest
from tab import JavaScriptError, Tab

PAGE = """<!DOCTYPE html><title>tab</title><body style="margin:0"><canvas id="c" width="300" height="200"></canvas><input id="i">
<script>
  window.seen = [];
  for (const kind of ['pointerdown', 'pointermove', 'pointerup', 'wheel', 'click', 'touchstart'])
    c.addEventListener(kind, e => seen.push([kind, Math.round(e.clientX), Math.round(e.clientY), e.buttons]));
  addEventListener('keydown', e => seen.push(['key', e.key, e.code, e.shiftKey]));
</script>"""


@pytest.fixture
def page(tab: Tab, tmp_path):
    path = tmp_path / "tab.html"
    path.write_text(PAGE, encoding="utf-8")
    tab.open(path.as_uri())
    return tab


def test_values_promises_and_errors(page):
    assert page.evaluate("({a: [1, 2.5, 'x'], b: null})") == {"a": [1, 2.5, "x"], "b": None}
    assert page.evaluate("new Promise(r => setTimeout(() => r(7), 20))") == 7
    assert page.call("(a, b) => a.x + b", {"x": 1}, 2) == 3
    with pytest.raises(JavaScriptError, match="no such luck"):
        page.evaluate("Promise.reject(new Error('no such luck'))")
    with pytest.raises(AssertionError, match="Not true"):
        page.wait_until("false", patience=0.2)
    page.evaluate("setTimeout(() => { window.late = 5 }, 100)")
    assert page.wait_until("window.late") == 5


def test_hands_arrive(page):
    page.drag((20, 30), (120, 80), moves=5)
    seen = page.evaluate("seen")
    assert (
        ["pointerdown", 20, 30, 1] in seen
        and ["pointermove", 60, 50, 1] in seen
        and ["pointerup", 120, 80, 0] in seen
    )
    page.wheel(50, 50, 120)
    page.press("ArrowRight")
    page.press("Tab", "shift")
    page.press("r")
    page.press(" ")
    seen = page.wait_until("seen.some(e => e[0] === 'wheel') && seen")
    keys = [entry[1:] for entry in page.evaluate("seen") if entry[0] == "key"]
    assert keys == [
        ["ArrowRight", "ArrowRight", False],
        ["Tab", "Tab", True],
        ["r", "KeyR", False],
        [" ", "Space", False],
    ]
    page.evaluate("i.focus()")
    page.type("42")
    assert page.evaluate("i.value") == "42"


def test_media_complaints_and_scripts(page, tmp_path):
    address = page.evaluate("location.href")
    page.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    for feature in ("prefers-color-scheme: dark", "prefers-reduced-motion: reduce"):
        assert page.evaluate(f"matchMedia('({feature})').matches")
    assert page.complaints == [] and page.requests == [address]
    page.evaluate("console.warn('look here')")
    assert any("look here" in line for line in page.complaints)
    page.run_before_load("delete window.Worker")
    page.open(address, 400, 800)
    assert page.complaints == [] and page.evaluate("[typeof Worker, innerWidth]") == [
        "undefined",
        400,
    ]
    page.forget_scripts()
    page.open(address)
    assert page.evaluate("typeof Worker") == "function"
    assert page.screenshot()[:4] == b"\x89PNG"
