"""The pages that attnlab writes, in a real browser: no errors, no network, nothing wider than the
window.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from chromium import Chromium, find_chromium

import attnlab as al
import tiny_models

pytestmark = pytest.mark.skipif(
    find_chromium() is None, reason="no Chromium is installed (apt-get install chromium)"
)
WIDTHS = (1200, 400)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def dossiers(tmp_path_factory) -> dict[str, Path]:
    """The dossier of a tied and of an untied tiny model."""
    from attnlab.explorer.embed import dossier_payloads, embed_viewers
    from attnlab.models.studies.dossier import dossier
    from attnlab.render.dossier import dossier_page

    folder, pages = tmp_path_factory.mktemp("dossiers"), {}
    for family in ("albert", "bert"):
        state, raw = getattr(tiny_models, family)()
        pages[family] = folder / f"{family}.html"
        found = dossier(al.models.load(state, config=raw), work=12_500.0)
        viewers = dossier_payloads(found)
        pages[family].write_text(
            dossier_page(found, None, viewers, embed_viewers(viewers)), encoding="utf-8"
        )
    return pages


@pytest.fixture(scope="module")
def gallery(tmp_path_factory) -> Path:
    from attnlab.experiments.gallery import reproduce_all

    folder = tmp_path_factory.mktemp("gallery")
    reproduce_all(folder, size="small", names=["collapse_to_origin"])
    return folder


@pytest.fixture(scope="module")
def tour(tmp_path_factory) -> Path:
    """A tour with one still and one moving picture, and stops of trained models that could not be
    fetched.
    """
    from attnlab.models import BadModel
    from attnlab.models.catalog import fetch
    from attnlab.tour import make_tour
    from attnlab.tour.stops import theorems

    def fails(name, **options):
        raise BadModel(f"pip must deliver {name}, and did not.")

    folder = tmp_path_factory.mktemp("tour")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "fetch", fails)
        patch.setattr(theorems, "FRAMES", 3)
        patch.setattr(theorems, "PICTURES", theorems.PICTURES[:2])
        make_tour(folder)
    return folder / "index.html"


def look(browser: Chromium, page: Path, width: int):
    """Visit a page, keep its picture where BROWSER_PICTURES says, and ask of it what every page
    must do.
    """
    seen = browser.visit(page.as_uri(), width)
    if folder := os.environ.get("BROWSER_PICTURES"):
        (Path(folder) / f"{page.parent.name}_{page.stem}_{width}.png").write_bytes(seen.screenshot)
    assert seen.complaints == []
    assert all(address.startswith(("file:", "data:")) for address in seen.requests), seen.requests
    assert seen.requests[0] == page.as_uri()
    assert (
        width - 20 <= seen.width <= width
        and seen.scroll_width <= seen.width
        and seen.too_wide == []
    )
    assert all(size > 0 for size in seen.images) and "attnlab" in seen.text
    return seen


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("family", ["albert", "bert"])
def test_the_dossier(browser, dossiers, family, width):
    seen = look(browser, dossiers[family], width)
    assert [address for address in seen.requests if address.startswith("file:")] == [
        dossiers[family].as_uri()
    ]  # itself alone
    assert seen.text.count("Play with it") == 2
    assert (
        len(seen.images) >= 5
        and "In short" in seen.text
        and ("The tied layer, iterated" in seen.text) == (family == "albert")
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_the_gallery_and_the_page_of_an_experiment(browser, gallery, width):
    assert "every experiment" in look(browser, gallery / "index.html", width).text
    page = look(browser, gallery / "collapse_to_origin" / "index.html", width)
    assert page.images and "Claims" in page.text
    assert all(
        address.startswith(gallery.as_uri())
        for address in page.requests
        if address.startswith("file:")
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_the_tour(browser, tour, width):
    seen = look(browser, tour, width)
    assert [address for address in seen.requests if address.startswith("file:")] == [
        tour.as_uri()
    ]  # itself alone
    assert (
        len(seen.images) == 6  # one of them is the limit that is proved
        and "SUPPORTED" in seen.text
        and "Where to go next" in seen.text
        and "Left out." in seen.text
    )


@pytest.mark.parametrize("body, what", [
    ("<script>console.error('no')</script>", "complaints"), ("<script>undefined_thing()</script>", "complaints"),
    ('<img src="missing.png">', "complaints"), ('<img src="http://127.0.0.1:9/a.png">', "requests"),
    ('<div style="width:3000px">wide</div>', "scroll_width"), ("<script>fetch('http://127.0.0.1:9/b')</script>", "requests"),
])  # fmt: skip
def test_what_must_not_be_is_seen(browser, tmp_path, body, what):
    page = tmp_path / "bad.html"
    page.write_text(f"<!DOCTYPE html><title>attnlab</title>{body}attnlab", encoding="utf-8")
    seen = browser.visit(page.as_uri(), 1200)
    bad = {
        "complaints": bool(seen.complaints),
        "requests": any("127.0.0.1" in address for address in seen.requests),
        "scroll_width": seen.scroll_width > 1200 and bool(seen.too_wide),
    }
    assert bad[what]
    with pytest.raises(AssertionError):
        look(browser, page, 1200)
