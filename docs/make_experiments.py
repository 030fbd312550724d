"""Writes docs/experiments.md, the list of all experiments: which figure of the paper or which
slide, and its page.

    python docs/make_experiments.py

The pages themselves come one by one: attnlab reproduce NAME && attnlab page NAME. A test fails if
the list is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from make_glossary import add_links

from attnlab.experiments import experiments
from attnlab.experiments.folders import read_about
from attnlab.files import write_text

FOLDER = Path(__file__).parent
PAGE = FOLDER / "experiments.md"
GROUPS = {
    "paper": (
        "The paper",
        (
            "*The emergence of clusters in self-attention dynamics* (arXiv:2305.05465), figure by"
            " figure."
        ),
    ),
    "slides": (
        "The slides",
        "The slides of the course, which ran the flow with trained weights, and their questions.",
    ),
    "surveys": (
        "Surveys",
        "Many systems, many models, many sentences, each with the same measure.",
    ),
}
HEAD = """# Every experiment of the paper, and of the slides

Each experiment has a page. It begins with half a screen for a reader in a hurry: what was shown,
what we find, one figure, one number and one caveat. Then come the text, and every claim with its
number and its allowed interval. That interval comes from a theorem, a closed form or another
person's measurement, never from our own output. A test damages the data of each experiment and
checks that each claim fails.

`attnlab reproduce NAME` runs an experiment again. It writes figures (PDF, PNG), a film, data
(NetCDF, CSV), Specs, verdicts and claims. `attnlab page NAME` writes its page. [How to write your
own](extending.md#an-experiment).

"""


def write_index() -> str:
    """Return the page: one table per group, one row per experiment."""
    text, pages = HEAD, []
    for group, (heading, words) in GROUPS.items():
        names = [name for name in experiments if group_of(name) == group]
        if not names:
            continue
        text += (
            f"## {heading}\n\n{words}\nOne row is one experiment: its source, what we find, its"
            " page, and how many of its claims hold.\n\n| figure or slide | what we find | page |"
            " claims |\n| --- | --- | --- | --- |\n"
        )
        for name in sorted(names, key=place_of):
            text += (
                f"| {cell(source_of(name))} | {cell(head_of(name).get('found', '–'))} |"
                f" [{cell(head_of(name)['title'])}](experiments/{name}.md) |"
                f" {count_claims(name)} |\n"
            )
            pages.append(name)
        text += "\n"
    listed = "\n".join(f"experiments/{name}" for name in pages)
    return add_links(f"{text}```{{toctree}}\n:hidden:\n\n{listed}\n```\n")


def head_of(name: str) -> Mapping[str, str]:
    """Return the head of about.md; of an experiment without a folder its title and citation."""
    if name in experiments.folders:
        return read_about(experiments.folders[name]).head
    return {"title": experiments[name].title, "cite": experiments[name].cite}


def group_of(name: str) -> str:
    """Return the folder in which an experiment lies."""
    return experiments.folders[name].parent.name if name in experiments.folders else "slides"


def source_of(name: str) -> str:
    """Return the figure or slide of an experiment; without one, what it cites."""
    return head_of(name).get("source") or head_of(name)["cite"]


def place_of(name: str) -> tuple[int, str]:
    """Return where an experiment stands in its table: by the first number of its source, such as a
    section.
    """
    number = re.search(r"\d+", source_of(name).partition(":")[0])
    return (int(number[0]) if number else 0, source_of(name))


def count_claims(name: str) -> str:
    """Return "9 of 9" from the page of an experiment, or a dash if it has no page yet."""
    page = FOLDER / "experiments" / f"{name}.md"
    found = (
        re.search(r"^(\d+ of \d+) claims hold", page.read_text(encoding="utf-8"), re.MULTILINE)
        if page.is_file()
        else None
    )
    return found[1] if found else "–"


def cell(text: str) -> str:
    """Return text that does not end its cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    write_text(PAGE, write_index())
