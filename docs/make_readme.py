"""Brings README.md up to date with a tour: the table of what is checked, and the picture.

    make tour
    python docs/make_readme.py tour
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.render.tour_page import found_words
from attnlab.tour.record import Row

ROOT = Path(__file__).parents[1]
README, PICTURE, KEPT = ROOT / "README.md", "polytope_3d.png", ROOT / "docs" / "images" / "tour_polytope_3d.png"
BLOCK = re.compile(r"(<!-- tour: .*? -->\n).*?(<!-- end of tour -->)", re.DOTALL)


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a summary as a table of Markdown."""
    lines = ["| what is asked | verdict | what was found |", "| --- | --- | --- |"]
    lines += [" ".join(f"| {row.shows} | {row.verdict.replace('_', ' ')} | {found_words(row)} |".split())
              for row in (Row(**record) for record in records)]
    return "\n".join(lines)


def updated(text: str, records: Sequence[Mapping[str, Any]]) -> str:
    """The text of the page with the table of these records between its two marks."""
    missing = [record["name"] for record in records if record["verdict"] == "not here"]
    if missing:
        raise ValueError(f"This tour is not whole, it left out {', '.join(missing)}: fetch the models and make it again.")
    if not BLOCK.search(text):
        raise ValueError("The page must have the two comments that the table stands between.")
    return BLOCK.sub(lambda found: f"{found[1]}{table(records)}\n{found[2]}", text)


def main() -> None:
    """Write the table and keep the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where `attnlab tour` wrote")
    folder = parser.parse_args().folder
    text = updated(README.read_text(encoding="utf-8"), json.loads((folder / "summary.json").read_text(encoding="utf-8")))
    draft = README.with_suffix(".part")
    draft.write_text(text, encoding="utf-8")
    shutil.copyfile(folder / PICTURE, KEPT)
    os.replace(draft, README)


if __name__ == "__main__":
    main()
