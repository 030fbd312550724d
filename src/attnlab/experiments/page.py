"""The page of one experiment in the documentation: half a screen for a reader in a hurry, then the
details.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.controls import escape_controls
from attnlab.experiments.folders import HURRY, load_named, read_about
from attnlab.experiments.results import read_record
from attnlab.files import write_bytes, write_text

TABLE = (
    "One row per claim: whether it holds; the claim in words; measured, the number that is"
    " compared; allowed, the interval with its reason; published, what the paper or the slides"
    " have. A dash: nothing."
)


class NoResults(ValueError):
    """There are no complete results of which a page could be written."""


def write_page(
    name: str | os.PathLike[str],
    results: str | os.PathLike[str] = "results",
    folder: str | os.PathLike[str] = "docs/experiments",
) -> Path:
    """Write the page of one experiment, folder/NAME.md and its picture folder/NAME.png, and return
    the page's path.

    name: an experiment of attnlab, or the path of a folder with one of yours. results: where
    `attnlab reproduce` wrote; only the results of this experiment are read. The words of the page
    come from the experiment, the numbers from the results.
    """
    experiment = load_named(name)
    made, target = Path(results) / experiment.name, Path(folder)
    record = read_record(made)
    if record is None:
        raise NoResults(
            f"There are no complete results in {made}. Run attnlab reproduce {os.fspath(name)} -o"
            f" {results} first."
        )
    if experiment.folder is not None:
        about = read_about(experiment.folder)
        record |= {
            "title": about.head["title"],
            "cite": about.head["cite"],
            "about": about.prose,
            "hurry": dict(about.head),
        }
    target.mkdir(parents=True, exist_ok=True)
    picture = target / f"{experiment.name}.png"
    write_bytes(picture, small_picture(made / f"{record['figures'][0]}.png"))
    page = target / f"{experiment.name}.md"
    write_text(page, page_text(record, picture.name))
    return page


def page_text(record: Mapping[str, Any], picture: str) -> str:
    """The page of a record, in Markdown; picture: the name of the file beside it."""
    claims = record["claims"]
    held = sum(bool(claim["holds"]) for claim in claims)
    parts = [f"# {_line(record['title'])}", *_in_a_hurry(record, picture)]
    if record["size"] != "full":
        parts.append(
            "**Made at reduced size.** The numbers below are not those of the full experiment."
        )
    if record.get("without"):
        parts.append(f"**Without trained weights:** {_line(record['without'])}")
    parts += ["## Details", f"`attnlab reproduce {record['name']}` · {_line(record['cite'])}"]
    parts += [" ".join(part.split()) for part in record["about"].split("\n\n")]
    parts += ["## Claims", f"{held} of {len(claims)} claims hold. {TABLE}", claim_table(claims)]
    for table in record.get("tables") or []:
        parts += [
            f"## {_line(table['heading'])}",
            _line(table["legend"]),
            data_table(table["columns"], table["rows"]),
        ]
    parts += [
        "## Files",
        (
            f"`attnlab reproduce {record['name']}` writes `results/{record['name']}` with all"
            " figures (PDF, PNG), the data (NetCDF, CSV) and the claims; `index.html` shows all"
            " of it."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _in_a_hurry(record: Mapping[str, Any], picture: str) -> list[str]:
    """What was shown, what we find, one figure, one number, one caveat; what about.md does not have
    is left out.
    """
    said = {key: _line(text) for key in HURRY if (text := (record.get("hurry") or {}).get(key))}
    parts = [
        f"**{words}** {said[key]}"
        for key, words in (("showed", "Shown:"), ("found", "Found:"))
        if key in said
    ]
    parts.append(f"![{_line(record['title'])}]({picture})")
    if see := (record.get("hurry") or {}).get("see"):
        parts.append(f"*What to see: {_line(see)}*")
    claim = next(
        (
            claim
            for claim in record["claims"]
            if said.get("number") and said["number"] in _line(claim["text"])
        ),
        None,
    )
    if claim is not None:
        parts.append(f"**One number:** {_number_line(claim)}")
    if "caveat" in said:
        parts.append(f"**A caveat:** {said['caveat']}")
    return parts


def _number_line(claim: Mapping[str, Any]) -> str:
    """The claim as one sentence: its quantity with the interval, or its words and the measured
    number.
    """
    words = (
        claim["says"]
        if claim.get("quantity")
        else f"{_line(claim['text']).rstrip('.')}: {_short(claim['measured'])}"
    )
    return (
        f"{words}. Expected: {claim.get('expected') or claim['allowed']}, because"
        f" {_line(claim['because'])}."
    )


def claim_table(claims: list[dict[str, Any]]) -> str:
    """The claims as a table."""
    rows = [
        "| | claim | measured | allowed, and why | published |",
        "| --- | --- | --- | --- | --- |",
    ]
    for claim in claims:
        sentence = _cell(claim["text"]) + (
            f" **{_cell(claim['says'])}.**" if claim.get("quantity") else ""
        )
        sentence += f" *Note:* {_cell(claim['differs'])}" if claim["differs"] else ""
        rows.append(
            f"| {'✓' if claim['holds'] else '✗'} | {sentence} | {_short(claim['measured'])} |"
            f" {_cell(claim['allowed'])}: {_cell(claim['because'])} |"
            f" {_cell(claim['published']) or '–'} |"
        )
    return "\n".join(rows)


def data_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns and rows of words as a table."""
    return "\n".join(
        "| " + " | ".join(map(_cell, line)) + " |"
        for line in [columns, ["---"] * len(columns), *rows]
    )


def small_picture(source: Path, width: int = 1100) -> bytes:
    """A picture at the width of a page, in few colours."""
    import io

    from PIL import Image

    out = io.BytesIO()
    with Image.open(source) as image:
        small = image.convert("RGB").resize(
            (width, round(image.height * width / image.width)), Image.Resampling.LANCZOS
        )
        small.quantize(colors=128, dither=Image.Dither.NONE).save(out, "png", optimize=True)
    return out.getvalue()


def _short(value: float | None) -> str:
    """Four digits, or a dash."""
    return "–" if value is None else f"{value:.4g}"


def _line(text: str) -> str:
    """Text on one line; characters that act on a terminal are escaped."""
    return escape_controls(" ".join(str(text).split()))


def _cell(text: str) -> str:
    """Text that does not end its cell of a table."""
    return _line(text).replace("|", "\\|")
