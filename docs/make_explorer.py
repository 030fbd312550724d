"""Takes the picture of the explorer, docs/images/explorer.png, with a headless Chromium, at twice
the size of its window.

python docs/make_explorer.py
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import attnlab as al
from attnlab.files import write_bytes

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "explorer.png"
STATE = "preset=polytope&view.t=0.62"
COLOURS = 255
"""A palette makes the picture a quarter as large: a screen has few colours, and their steps do not
show.
"""


def take_picture(folder: Path) -> bytes:
    """Return a screenshot (PNG) of the explorer in dark, with its sweep."""
    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    from screen import Screen
    from tab import Tab

    page = al.explore("polytope", folder / "explorer.html")
    with Tab(folder / "profile") as tab:
        tab.prefer(prefers_color_scheme="dark")
        screen = Screen(tab, page)
        tab.open(f"{page.as_uri()}#{STATE}", 1280, 800, scale=2)
        screen.wait()
        screen.click(".sweep .chip")
        tab.wait_until("!window.attnlab.viewers[0].sweep.isRunning", patience=120)
        tab.move(5, 5)
        tab.rest(1.0)
        return tab.screenshot()


def reduce_colours(picture: Image.Image) -> Image.Image:
    """Return the picture with a palette in which rare colours count: the background is most of the
    picture, and tokens little.
    """
    pixels = np.asarray(picture).reshape(-1, 3)
    _, kind, counts = np.unique(pixels >> 2 << 2, axis=0, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(kind.ravel(), channel) / counts for channel in pixels.T], axis=1)
    sample = np.repeat(np.rint(means).astype(np.uint8), np.ceil(counts**0.7).astype(int), axis=0)
    palette = Image.fromarray(sample[None]).quantize(COLOURS, Image.Quantize.MEDIANCUT, kmeans=3)
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Image.open(io.BytesIO(take_picture(Path(folder)))).convert("RGB")
    small = io.BytesIO()
    reduce_colours(picture).save(small, "PNG", optimize=True)
    write_bytes(PICTURE, small.getvalue())
    print(f"{PICTURE}: {picture.width} x {picture.height}, {len(small.getvalue()) / 1000:.0f} KB")


if __name__ == "__main__":
    main()
