"""The versions that pyproject.toml declares."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def requirements(*extras: str) -> list[Requirement]:
    """What attnlab and these extras ask for; an extra of attnlab itself is replaced by what it asks for."""
    found = []
    for written in (*PROJECT["project"]["dependencies"], *(line for name in extras for line in EXTRAS[name])):
        asked = Requirement(written)
        found += requirements(*asked.extras) if asked.name == "attnlab" else [asked]
    return found


def lowest(asked: Requirement) -> Version:
    """The version after >=."""
    (bound,) = (Version(part.version) for part in asked.specifier if part.operator == ">=")
    return bound
