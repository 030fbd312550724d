"""Writes docs/tour.md, the table of what the tour asks and finds, with one of the tour's pictures.

make tour
python docs/make_tour.py tour
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from make_glossary import add_links

from attnlab.files import write_text
from attnlab.render.tour_page import found_words
from attnlab.tour.record import Row

ROOT = Path(__file__).parents[1]
PAGE, PICTURE, KEPT = (
    ROOT / "docs" / "tour.md",
    "polytope_3d.png",
    ROOT / "docs" / "images" / "tour_polytope_3d.png",
)

HEAD = """# The tour in one table

`make tour` installs attnlab and writes the whole story as one offline page, `tour/index.html`. The
table shows its questions and its answers. One row is one question.

![Forty tokens with V = I move to the vertices of a polytope](images/tour_polytope_3d.png)

*What to see: The hull (grey) of forty tokens. At t = 10 every token is at one of nine vertices,
and a ring marks the leader that sits there.*

- SUPPORTED: the run does what the theorem says, as far as its measured error can tell.
- UNDECIDED: the run is too short or too coarse to tell. In the row below no run in double precision
  could tell, and the certified limit answers instead.
- CERTIFIED: the limit was not simulated. After the stated time no leader can change, given the
  computed state at that time and its error. That error is an estimate.
- *proved* (in the last column): the same, and the error encloses every rounding since the first
  tokens.
- *right*, *in part*, *not so*: how near the idealised model is to the trained model, beside random
  weights and a simple guess ([the rule](sentences.md#questions-and-answers)).
- *no evidence*: the model does what the theory predicts, but so do weights that learned nothing.
"""


def write_page(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the page for the rows of a summary; refuse a tour that left something out."""
    missing = [record["name"] for record in records if record["verdict"] == "not here"]
    if missing:
        raise ValueError(
            f"This tour left out {', '.join(missing)}. Fetch the models and make the tour again."
        )
    rows = [Row(**record) for record in records]
    lines = ["| question | verdict | what was found |", "| --- | --- | --- |"]
    lines += [
        " ".join(f"| {row.shows} | {row.verdict.replace('_', ' ')} | {found_words(row)} |".split())
        for row in rows
    ]
    return add_links(HEAD + "\n" + "\n".join(lines) + "\n")


def main() -> None:
    """Write the page and keep the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where `attnlab tour` wrote")
    folder = parser.parse_args().folder
    write_text(PAGE, write_page(json.loads((folder / "summary.json").read_text(encoding="utf-8"))))
    shutil.copyfile(folder / PICTURE, KEPT)


if __name__ == "__main__":
    main()
