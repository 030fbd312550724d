"""Makes docs/limits.md: what the paper (arXiv:2305.05465) left open, answered by al.limit, with tables and figures.

    python docs/make_limits.py              every question: about half an hour on two cores
    python docs/make_limits.py --quick      few starts, small systems: two minutes; the page goes into the cache folder
    python docs/make_limits.py --retry      compute again what was undecided
    python docs/make_limits.py --fresh      forget what was computed before, as after a change of al.limit

Finished answers are kept as JSON in the user's cache folder, so an interrupted program goes on where it stopped. Each answer
depends on its seed only. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import platformdirs
import scipy
from limits_cases import (
    CODIMENSION,
    DIMENSIONS,
    LAWS,
    NUDGES,
    OWN_SIZES,
    POLYTOPES,
    Record,
    codimension,
    cross,
    high_dimension,
    own_of_cubes,
    polytope,
)
from limits_figures import plot_codimension, plot_polytopes
from limits_numbers import grades, paragraph
from limits_heads import HEADS
from limits_proofs import PROOFS
from limits_words import first_question, reading, second_question, third_question
from make_glossary import add_links

import attnlab as al

DOCS = Path(__file__).parent
CACHE = Path(platformdirs.user_cache_dir("attnlab")) / "limits_page"


class Answers:
    """Finished answers by key, in one JSON file that is replaced as a whole."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path, self.saved = path, time.monotonic()
        self.known: dict[str, Record] = {}
        if path.exists() and not fresh:
            self.known = json.loads(path.read_text())

    def get(self, key: str, compute: Callable[[], Record]) -> Record:
        """The answer of that key, computed where it is not known."""
        if key not in self.known:
            began = time.monotonic()
            self.known[key] = compute()
            print(f"{key}  {self.known[key].get('said', '')}  {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
            if time.monotonic() > self.saved + 2.0:
                self.save()
        return self.known[key]

    def save(self) -> None:
        """Write the file anew; a reader sees the old one or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self.known, indent=0, sort_keys=True))
        os.replace(draft, self.path)
        self.saved = time.monotonic()


def write_page(rows: dict[str, list[Record]], folder: Path) -> None:
    """limits.md and its figures."""
    plot_codimension(rows, folder / "images" / "limits_codimension.png")
    plot_polytopes(rows, folder / "images" / "limits_vertices.png")
    everything = [row for key, found in rows.items() if not key.startswith("own/") for row in found]
    page = "\n\n".join([
        "# Limits: what the paper left open",
        paragraph(f"""
        *The emergence of clusters in self-attention dynamics* (arXiv:2305.05465) proves what the rescaled tokens z = e^{{-tV}}
        x look like as t goes to infinity, and asks more than it proves; most of its pictures stop at T = 5. `al.limit` computes
        the limit itself and certifies it, or says that it cannot. This page uses it on {len(everything)} starts
        ({grades(everything)} exact / group / undecided) to answer three questions:
        """),
        "\n".join([
            "1. [How many limits does the codimension conjecture allow?](#1-the-codimension-conjecture-how-many-limits)",
            "   Two, for generic starts.",
            "2. [And in 128 dimensions?](#2-128-tokens-in-128-dimensions) Two.",
            "3. [How many vertices has the polytope for V = I?](#3-v--i-how-many-vertices-has-the-polytope)",
            "   Few: they settle near the number of corners for cubes, and grow slowly for Gaussian starts.",
        ]),
        first_question(rows), second_question(rows), third_question(rows), reading(rows), HEADS.strip(), PROOFS.strip(),
        "## To reproduce",
        paragraph(f"""
        `python docs/make_limits.py` writes this page and its figures (`--quick`: two minutes, a small version elsewhere). Seeds
        are fixed and every start depends on its seed alone; times in seconds depend on the machine, here two cores shared with
        other work. Made with attnlab {al.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy
        {scipy.__version__}, Numba {numba.__version__}.
        """),
    ])
    draft = folder / "limits.part"
    draft.write_text(add_links(page + "\n"))
    os.replace(draft, folder / "limits.md")


def compute(answers: Answers, quick: bool) -> dict[str, list[Record]]:
    """Every answer: rows of the tables by key."""
    rows: dict[str, list[Record]] = {}
    for name, n, starts in CODIMENSION:
        key = f"codimension/{name}/{n}"
        rows[key] = [answers.get(f"{key}/{seed}", lambda s=seed, a=name, m=n: codimension(a, m, s))
                     for seed in range(10 if quick else starts)]
    rows["cross"] = [answers.get(f"cross/{nudge:g}", lambda e=nudge: cross(e)) for nudge in NUDGES]
    for d, draws, work in DIMENSIONS[:1] if quick else DIMENSIONS:
        rows[f"dimension/{d}"] = [
            answers.get(f"dimension/{d}/{seed}", lambda s=seed, m=d, w=work: high_dimension(m, s, w))
            for seed in range(4 if quick else draws)
        ]
    for n, starts in POLYTOPES.items():
        for d in (2, 3):
            for law in LAWS.values():
                if n <= (100 if quick else 1000):
                    rows[f"polytope/{d}/{law}/{n}"] = [
                        answers.get(f"polytope/{d}/{law}/{n}/{seed}", lambda s=seed, a=law, m=n, e=d: polytope(a, m, e, s))
                        for seed in range(5 if quick else starts)
                    ]
    for d in (2, 3):
        rows[f"own/{d}"] = [answers.get(f"own/{d}/{n}", lambda m=n, e=d: own_of_cubes(m, e)) for n in OWN_SIZES]
    answers.save()
    return rows


def main() -> None:
    """Compute, then write the page and its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few starts, small systems; the page goes into the cache folder")
    parser.add_argument("--fresh", action="store_true", help="forget what was computed before")
    parser.add_argument("--retry", action="store_true", help="compute again what was undecided")
    given = parser.parse_args()
    answers = Answers(CACHE / "answers.json", given.fresh)
    if given.retry:
        answers.known = {key: row for key, row in answers.known.items() if row.get("grade") != "undecided"}
    try:
        rows = compute(answers, given.quick)
    finally:
        answers.save()
    folder = CACHE / "quick" if given.quick else DOCS
    (folder / "images").mkdir(parents=True, exist_ok=True)
    write_page(rows, folder)
    print(folder / "limits.md")


if __name__ == "__main__":
    main()
