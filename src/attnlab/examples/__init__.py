"""The Specs that come with the package: one TOML file each, its first line a comment that says what
it shows.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from attnlab.registry import unknown_name
from attnlab.types import Spec

SUFFIX = ".toml"


def example_names() -> list[str]:
    """The names of the Specs that come with the package."""
    return sorted(
        entry.name.removesuffix(SUFFIX)
        for entry in _folder().iterdir()
        if entry.name.endswith(SUFFIX)
    )


def example_spec(name: str) -> Spec:
    """The Spec of that name."""
    return Spec.from_toml(_text(name))


def example_title(name: str) -> str:
    """What the Spec of that name shows: the comment on its first line."""
    return _text(name).splitlines()[0].removeprefix("#").strip()


def _text(name: str) -> str:
    if name not in example_names():
        raise unknown_name("example Spec", name, example_names())
    return (_folder() / f"{name}{SUFFIX}").read_text(encoding="utf-8")


def _folder() -> Traversable:
    return files(__name__)
