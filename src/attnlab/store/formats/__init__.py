"""Formats for other programs, one file per suffix: tables, NumPy arrays, MATLAB, JSON. `load` does
not read them.

To add one: a new file `formats/<suffix>.py` that registers a `Format`. The shared test in
`tests/store/test_formats.py` writes every sample of every kind with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.registry import Registry
from attnlab.store.packing import Kind

formats: Registry[Format] = Registry("format", package="attnlab.store.formats")


@dataclass(frozen=True)
class Format:
    """A format. write(thing, its kind, path) writes a file completely or not at all, or raises
    ValueError.
    """

    title: str
    write: Callable[[Any, Kind, Path], None]


def suffix_of(path: Path) -> str:
    """The suffix of a path in small letters, without its dot."""
    return path.suffix.lower().removeprefix(".")
