"""Write the table of docs/models.md that says where the tokens of trained heads end, and
docs/model_limits.json behind it.

    attnlab fetch minilm albert-chem plbert stories15m
    python docs/make_model_limits.py                # the limits that are missing in the JSON, then the page
    python docs/make_model_limits.py --only-page

A limit is decided by its work, so the rows do not depend on the machine. All heads take about six
minutes of one core.
"""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import attnlab as al
from attnlab.files import write_text
from attnlab.models.named import find_model, head_weights, text_tokens

FOLDER = Path(__file__).parent
PAGE, ROWS = FOLDER / "models.md", FOLDER / "model_limits.json"
BEGIN, END = "<!-- limits of trained heads: begin -->\n", "<!-- limits of trained heads: end -->"

MODELS = ("minilm", "stories15m", "plbert", "albert-chem")
TOKENS = 6
TEXT = "The quick brown fox jumps over the lazy dog"
WITHOUT_TEXT = ("plbert", "albert-chem")
"""Models of phonemes and of molecules: their tokens are drawn at random."""

WORK, BUDGET = 4e5, 3600.0

COLUMNS = {
    "all together": (
        "all tokens have one limit for ever; leaders are certified too, or need not be (grade"
        " group)"
    ),
    "two or more": "several limits for ever",
    "together, rotating": (
        "the leading eigenvalues are a pair: one group up to a horizon, whose leader changes for"
        " ever"
    ),
    "groups, rotating": "several such groups",
    "nothing grows": "no eigenvalue of V has a positive real part, so there are no limits of z",
    "undecided": "nothing is certified; the reason names the obstacle",
}


def tokens_of(model: str, layer: int) -> np.ndarray:
    """Return what the layer's attention reads of six tokens, (6, d)."""
    if model not in WITHOUT_TEXT:
        return text_tokens(model, text=TEXT, layer=layer, special=False, n=TOKENS, piece=0)
    ids = np.random.default_rng([3, TOKENS]).choice(np.arange(3, 100), TOKENS, replace=False)
    return text_tokens(model, ids=ids.tolist(), layer=layer)


def make_rows(known: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the row of each head that is not known yet."""
    for model in MODELS:
        config = find_model(model).config
        for layer in range(1 if config.is_tied else config.layers):
            for head in range(config.heads):
                name = f"{model} {layer} {head}"
                if name not in known:
                    began = time.process_time()
                    limit = al.limit(
                        head_weights(model, layer, head, True),
                        tokens_of(model, layer),
                        work=WORK,
                        budget=BUDGET,
                    )
                    yield (
                        name,
                        {
                            "model": model,
                            "grade": str(limit.grade),
                            "count": limit.count,
                            "horizon": limit.horizon,
                            "nothing_grows": (
                                limit.basis.shape[1] == 0 and "nothing grows" in limit.reason
                            ),
                            "reason": limit.reason if limit.grade == "undecided" else "",
                            "seconds": round(time.process_time() - began, 2),
                        },
                    )


def column_of(row: dict[str, Any]) -> str:
    """Return the column of the table that counts a row."""
    if row["grade"] == "undecided":
        return "nothing grows" if row["nothing_grows"] else "undecided"
    if row["horizon"] is not None:
        return "together, rotating" if row["count"] == 1 else "groups, rotating"
    return "all together" if row["count"] == 1 else "two or more"


def write_section(rows: dict[str, dict[str, Any]]) -> str:
    """Return the text between the markers."""
    found = {name: column_of(row) for name, row in rows.items()}
    lines = [
        "| model | heads | " + " | ".join(COLUMNS) + " |",
        "| --- |" + " --- |" * (len(COLUMNS) + 1),
    ]
    for model in (*MODELS, "all"):
        names = [name for name, row in rows.items() if model in (row["model"], "all")]
        counts = [sum(found[name] == column for name in names) for column in COLUMNS]
        lines.append(
            f"| {model} | {len(names)} | " + " | ".join(str(count) for count in counts) + " |"
        )
    said = [f"- *{column}*: {meaning}." for column, meaning in COLUMNS.items()]
    answered = [row for row in rows.values() if row["grade"] != "undecided"]
    several = [name for name in rows if found[name] in ("two or more", "groups, rotating")]
    left = [name for name in rows if found[name] == "undecided"]
    median = float(np.median([row["seconds"] for row in answered]))
    facts = (
        f"{len(answered)} of {len(rows)} heads are answered, in {median:.1g} s of processor time in"
        f" the median. More than one limit or group: {', '.join(several) or 'none'}. Undecided:"
        f" {', '.join(left) or 'none'} (model, layer, head)."
    )
    return "\n".join(
        [
            *lines,
            "",
            "*One row per model, one start per head. Numbers count heads.*",
            "",
            *said,
            "",
            textwrap.fill(facts, 120),
            "",
        ]
    )


def main() -> None:
    """Compute what is missing and write the page."""
    rows = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    if "--only-page" not in sys.argv:
        for name, row in make_rows(rows):
            rows[name] = row
            print(name, column_of(row), row["seconds"], flush=True)
            write_text(ROWS, json.dumps(rows, indent=1) + "\n")
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    write_text(PAGE, f"{before}{BEGIN}{write_section(rows)}{END}{after}")


if __name__ == "__main__":
    main()
