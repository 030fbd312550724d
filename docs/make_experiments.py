"""Makes docs/experiments.md and docs/images/experiments/: every experiment with its picture and its claims.

    attnlab reproduce --all -o results && python docs/make_experiments.py results
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from make_glossary import add_links
from PIL import Image

from attnlab.experiments import experiments
from attnlab.experiments.results import read_record

FOLDER = Path(__file__).parent
WIDTH = 1100
"""Pixels of a picture on the page; the PDF that `reproduce` writes has all of them."""

SLIDES = "Sugolov"
"""Whose slides they are, as the experiments cite them."""

HEAD = """# Every experiment of the paper, and of the slides

Made by `attnlab reproduce --all` and `docs/make_experiments.py`; nothing on this page is typed by hand. `attnlab reproduce NAME`
makes one of them again: figures (PDF, PNG), movie, data (NetCDF, CSV), Specs, verdicts, and the claims below, each of which could
have failed: the allowed interval comes from a theorem, a closed form or somebody else's measurement, or is a plain reading of
a word, such as more than half for "the rule". `tests/conformance/test_experiments.py` spoils the data of each and sees it fail.

"""


def main() -> None:
    """Write the page from a folder of complete results."""
    results = Path(sys.argv[1])
    images = FOLDER / "images" / "experiments"
    images.mkdir(parents=True, exist_ok=True)
    records = [record for name in experiments if (record := read_record(results / name)) is not None and record["size"] == "full"]
    missing = set(experiments) - {record["name"] for record in records}
    if missing:
        sys.exit(f"There are no complete results of {', '.join(sorted(missing))} in {results}: attnlab reproduce --all")
    claims = [claim for record in records for claim in record["claims"]]
    text = HEAD + f"{sum(claim['holds'] for claim in claims)} of {len(claims)} claims hold, in {len(records)} experiments.\n\n"
    slides = [record for record in records if SLIDES in record["cite"]]
    papers = [record for record in records if record not in slides]
    for heading, some in (("The paper:", papers), ("The slides that ran it with trained weights, and their questions:", slides)):
        links = "\n".join(f"- [{record['title']}](#{anchor(record['title'])})" for record in some)
        text += f"{heading}\n\n{links}\n\n"
    for record in [*papers, *slides]:
        picture = images / f"{record['name']}.png"
        shrunk(results / record["name"] / f"{record['figures'][0]}.png", picture)
        text += section(record, f"images/experiments/{picture.name}")
    (FOLDER / "experiments.md").write_text(add_links(text.rstrip() + "\n"), encoding="utf-8")
    size = sum(path.stat().st_size for path in images.iterdir()) / 1e6
    print(f"{len(records)} experiments, {len(claims)} claims, {size:.1f} MB of pictures.")


def section(record: dict[str, Any], picture: str) -> str:
    """An experiment: its text, its picture, its claims."""
    rows = ""
    for claim in record["claims"]:
        sentence = cell(claim["text"]) + (f" *Note:* {cell(claim['differs'])}" if claim["differs"] else "")
        allowed = f"{cell(claim['allowed'])}: {cell(claim['because'])}"
        rows += (f"| {'✓' if claim['holds'] else '✗'} | {sentence} | {claim['measured']:.4g} | {allowed} | "
                 f"{cell(claim['published']) or '–'} |\n")
    about = "\n\n".join(" ".join(part.split()) for part in record["about"].split("\n\n"))
    return (f"## {record['title']}\n\n`attnlab reproduce {record['name']}` · "
            f"{record['cite']}\n\n{about}\n\n![{record['title']}]({picture})\n\n"
            f"| | claim | measured | allowed, and why | published |\n| --- | --- | --- | --- | --- |\n{rows}\n")


def anchor(heading: str) -> str:
    """Where a link to a heading leads, as readers of Markdown make it."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def cell(text: str) -> str:
    """Text that does not end its cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def shrunk(source: Path, target: Path) -> None:
    """A picture at the width of the page, in few colours."""
    with Image.open(source) as image:
        small = image.convert("RGB").resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
        small.quantize(colors=128, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main()
