"""The versions that pyproject.toml declares."""

from __future__ import annotations

import tomllib

from packaging.requirements import Requirement
from packaging.version import Version

from places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def requirements(*extras: str) -> list[Requirement]:
    """What attnlab asks for with these extras. An extra that asks for another extra of attnlab gets
    what that one asks for.
    """
    found: dict[str, Requirement] = {}
    lines = [
        *PROJECT["project"]["dependencies"],
        *(line for name in extras for line in EXTRAS[name]),
    ]
    for asked in map(Requirement, lines):
        for one in requirements(*asked.extras) if asked.name == "attnlab" else [asked]:
            found[str(one)] = one
    return list(found.values())


def lowest(asked: Requirement) -> Version:
    """The version after >=."""
    (bound,) = (Version(part.version) for part in asked.specifier if part.operator == ">=")
    return bound
