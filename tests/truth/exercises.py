"""The exercises of docs/exercises.md: their texts, their links as Specs, and the answers they
give.
"""

from __future__ import annotations

import copy
import re
from html import unescape
from typing import Any

import attnlab as al
from attnlab.explorer.presets import presets
from places import DOCS

PAGE = DOCS / "exercises.md"

SECTION = re.compile(r"^## (\d+)\. (.*?)$(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)

LINK = re.compile(r'<a href="_static/explorer\.html\?guess=1#([^"]*)">')

ANSWER = re.compile(r"\*\*(\d+) (?:limits?|points?)\*\*")


def value_of(text: str) -> Any:
    """A value of an address: a number, numbers with commas, or a word."""
    if "," in text:
        return [value_of(part) for part in text.split(",")]
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def spec_of(fragment: str) -> al.Spec:
    """The Spec of a fragment: a preset and what is changed in it. tests/browser compares it with
    what the page reads.
    """
    entries = [part.split("=") for part in unescape(fragment).split("&")]
    assert entries[0][0] == "preset"
    table = copy.deepcopy(presets[entries[0][1]].spec.to_dict())
    for key, text in entries[1:]:
        section, name, *token = key.split(".")
        if token:
            table["start"].setdefault("moved", {})[token[0]] = value_of(text)
        elif section != "view":
            table.setdefault(section, {})[name] = value_of(text)
    return al.Spec.from_dict(table)


def exercises() -> dict[int, str]:
    """{number: text}"""
    return {
        int(number): text for number, _, text in SECTION.findall(PAGE.read_text(encoding="utf-8"))
    }


QUESTIONS = [
    (number, fragment, int(answer))
    for number, text in exercises().items()
    for fragment, answer in zip(LINK.findall(text), ANSWER.findall(text), strict=True)
]
