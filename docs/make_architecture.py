"""Write the part of docs/sentences.md about changes of the architecture and the scale of
clusters, and docs/architecture.json behind them.

    attnlab fetch minilm albert-chem rxnmapper rxnfp plbert stories15m smollm2-135m
    python docs/make_architecture.py                # a few minutes
    python docs/make_architecture.py --only-page
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from attnlab.experiments.surveys.sentences_survey.texts import (
    ENGLISH,
    FRESH_ENGLISH,
    FRESH_REACTIONS,
    REACTIONS,
)
from attnlab.files import write_text
from attnlab.models.catalog.sources import load
from attnlab.models.studies.agreement import many_from
from attnlab.models.studies.architecture import (
    NUMBERS,
    TRAINED,
    measure_architecture,
    summarize,
)
from attnlab.models.studies.sentences import sentence

FOLDER = Path(__file__).parent
PAGE, ROWS = FOLDER / "sentences.md", FOLDER / "architecture.json"
BEGIN, END = "<!-- architecture: begin -->\n", "<!-- architecture: end -->"

MANY, MANY_END = "<!-- few or many: begin -->\n", "<!-- few or many: end -->"

RANDOM_TEXTS, RANDOM_TOKENS = 20, 16
"""Texts of plbert: random ids."""

TEXTS: dict[str, Sequence[Any]] = {
    "minilm": ENGLISH + FRESH_ENGLISH,
    "albert-chem": REACTIONS + FRESH_REACTIONS,
    "rxnmapper": REACTIONS + FRESH_REACTIONS,
    "rxnfp": REACTIONS + FRESH_REACTIONS,
    "plbert": [
        np.random.default_rng([5, number]).integers(3, 100, RANDOM_TOKENS)
        for number in range(RANDOM_TEXTS)
    ],
    "stories15m": ENGLISH + FRESH_ENGLISH,
    "smollm2-135m": ENGLISH + FRESH_ENGLISH,
}


TWINS = {"rxnfp": ("rxnmapper", "trained with one shared layer: rxnmapper")}
"""{model: (another one that reads the same tokens and was trained on such texts, what differs)}."""


def measure() -> dict[str, Any]:
    """Return {"changes": {model: rows of the summary}, "many": {model: cosines, ascending}}."""
    frames: dict[str, pandas.DataFrame] = {}
    found, many = {}, {}
    for name, texts in TEXTS.items():
        frames[name] = measure_architecture(load(name, offline=True), texts)
        frame = frames[name]
        if name in TWINS:
            twin, difference = TWINS[name]
            other = frames[twin][frames[twin]["change"] == TRAINED]
            frame = pandas.concat([frame, other.assign(change=difference)])
        found[name] = [
            {
                key: round(value, 6) if isinstance(value, float) else value
                for key, value in row.items()
            }
            for row in summarize(frame).to_dict(orient="records")
        ]
        if not isinstance(texts[0], str):
            continue  # the grades are about sentences and reactions
        ends = [
            sentence(load(name, offline=True), text, only=["real"])["x"].values[0, -1]
            for text in texts
        ]
        many[name] = sorted(round(many_from(x), 4) for x in ends)
        print(name, flush=True)
    return {"changes": found, "many": many}


def write_many(many: dict[str, list[float]]) -> str:
    """Return the table of the cosines from which on tokens are in many clusters."""
    lines = [
        "| model | many at 0.7 | at 0.8 | at 0.9 | at 0.95 | many above: median | least | largest |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for model, cosines in many.items():
        counts = [sum(one < scale for one in cosines) for scale in (0.7, 0.8, 0.9, 0.95)]
        cells = [f"{count} of {len(cosines)}" for count in counts]
        cells += [f"{one:.2f}" for one in (np.median(cosines), cosines[0], cosines[-1])]
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write_section(rows: dict[str, list[dict[str, Any]]]) -> str:
    """Return the text between the markers: one row per model and change."""
    lines = [
        "| model | change | " + " | ".join(NUMBERS) + " |",
        "| --- | --- |" + " --- |" * len(NUMBERS),
    ]
    for model, found in rows.items():
        for change in dict.fromkeys(row["change"] for row in found):
            cells = [
                cell(next(r for r in found if (r["change"], r["number"]) == (change, number)))
                for number in NUMBERS
            ]
            lines.append(f"| {model} | {change} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def cell(row: dict[str, Any]) -> str:
    """Return the mean over texts as trained, else the difference with its interval."""
    if row["change"] == TRAINED:
        return f"{row['mean']:.2f}"
    half = (row["high"] - row["low"]) / 2
    return f"{row['difference']:+.2f} ± {half:.2f}"


def main() -> None:
    """Measure, and write the page."""
    if "--only-page" not in sys.argv:
        write_text(ROWS, json.dumps(measure(), indent=0) + "\n")
    rows = json.loads(ROWS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    for begin, end, section in (
        (BEGIN, END, write_section(rows["changes"])),
        (MANY, MANY_END, write_many(rows["many"])),
    ):
        text = f"{text.split(begin)[0]}{begin}{section}{end}{text.split(end)[1]}"
    write_text(PAGE, text)


if __name__ == "__main__":
    main()
