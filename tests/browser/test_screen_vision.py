"""Readers who do not see colours, and contrast of text."""

from __future__ import annotations

import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from screen import VIEWER, Screen

from attnlab.explorer import explore


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(explore(None, tmp_path_factory.mktemp("explorer") / "page.html"))


def colours_of_groups(screen: Screen, path: Path) -> np.ndarray:
    """The colours (groups, 3) of one token of each of the first six groups, as they are seen on the
    screen, 0 to 255.
    """
    screen.tab.screenshot(path)
    picture = np.round(imread(path)[..., :3] * 255)
    labels = np.array(screen.tab.evaluate(f"Array.from({VIEWER}.session.colours)"))
    places = [
        screen.token(int(np.flatnonzero(labels == group)[0]))
        for group in range(min(6, labels.max() + 1))
    ]
    return np.array([picture[round(y), round(x)] for x, y in places])


def least_distance(colours: np.ndarray) -> float:
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=2)
    return float(apart[~np.eye(len(colours), dtype=bool)].min())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "vision", ["none", "protanopia", "deuteranopia", "tritanopia", "achromatopsia"]
)
def test_groups_are_told_apart(tab, page, tmp_path, vision, theme):
    tab.prefer(
        prefers_color_scheme=theme, prefers_reduced_motion="reduce"
    )  # no glow over the colours
    screen = Screen(tab, page).open("preset=polytope&view.t=inf&view.show=limits")
    tab.see_as(vision)
    tab.rest(0.2)
    colours = colours_of_groups(screen, tmp_path / "seen.png")
    if vision != "achromatopsia":
        assert least_distance(colours) > 20  # the palette is safe for colour-blind readers
    letters = letters_of(screen)
    assert sorted(letters) == [chr(65 + k) for k in range(11)]  # and every limit has a letter
    screen.click("[data-show=shapes]")
    screen.wait()
    assert screen.get("show.has('shapes')")
    assert len(outlines_of(screen)) >= 6  # six outlines that differ by more than place and colour


def svg_of(screen: Screen) -> str:
    """The picture as SVG, caught before it is saved."""
    return str(
        screen.tab.evaluate(
            f"""(async () => {{ const make = URL.createObjectURL,
        click = HTMLAnchorElement.prototype.click; let blob;
        URL.createObjectURL = (one) => {{ blob = one; return make.call(URL, one); }};
        HTMLAnchorElement.prototype.click = () => {{}};
        {VIEWER}.layout.root.querySelector('[data-copy=svg]').click(); await new Promise((f) => setTimeout(f, 50));
        URL.createObjectURL = make; HTMLAnchorElement.prototype.click = click; return blob.text(); }})()"""
        )
    )


def elements(text: str, tag: str) -> list[xml.Element]:
    return [
        element for element in xml.fromstring(text).iter() if element.tag.rpartition("}")[2] == tag
    ]


def letters_of(screen: Screen) -> list[str]:
    """The letters beside limits, in the exported picture."""
    return [
        element.text.split()[0]
        for element in elements(svg_of(screen), "text")
        if element.get("font-weight") == "600" and element.get("fill") != "none"
    ]


def outlines_of(screen: Screen) -> set[str]:
    """Outlines of filled marks without their place: the commands of their paths."""
    marks = [
        element
        for element in elements(svg_of(screen), "path")
        if element.get("fill", "none").startswith("#")
    ]
    return {
        "".join(c for c in mark.get("d", "") if c.isalpha()) + str(mark.get("d", "").count(" "))
        for mark in marks
    }


CONTRAST = """(() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number), line = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 :
  ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * line(r) + 0.7152 * line(g) + 0.0722 * line(b);
  const groundOf = (node) => { for (let p = node; p; p = p.parentElement) { const c = parse(getComputedStyle(p).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const node of VIEWER.layout.root.querySelectorAll('*')) {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
    if (!own || !node.offsetParent || node.closest(':disabled, svg, option')) continue;
    const a = light(parse(getComputedStyle(node).color)), b = light(groundOf(node)), ratio = (Math.max(a,
    b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([node.textContent.trim().slice(0, 40), ratio]);
  }
  const hex = (c) => [1, 3, 5].map((k) => parseInt(c.slice(k, k + 2), 16)), { note, ink, ground, panel } = VIEWER.theme;
  for (const text of [note, ink]) for (const under of [...ground, panel]) {
    const a = light(hex(text)), b = light(hex(under)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([text, under, ratio]);
  }
  return bad; })()""".replace("VIEWER", VIEWER)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_text_has_contrast(tab, page, width, theme):
    tab.prefer(prefers_color_scheme=theme)
    screen = Screen(tab, page)
    moved = "preset=polygon&view.t=1&start.moved.3=1,1&view.show=drag"
    for fragment in ("preset=polytope&view.t=1", "preset=circle&view.t=inf", moved):
        screen.open(fragment, width=width, is_phone=width < 600)
        tab.rest(0.3)  # colours glide
        assert tab.evaluate(CONTRAST) == []


def test_the_measure_of_contrast_can_fail(tab, page):
    screen = Screen(tab, page).open("preset=polytope&view.t=1")
    tab.rest(0.3)
    tab.evaluate(f"{VIEWER}.layout.watch.style.color = '#999'")
    assert [words for words, *_ in tab.evaluate(CONTRAST)] == [screen.text("watch")[:40]]
