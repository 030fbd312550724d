"""Write the tables of docs/spec.md from signatures, docstrings and registries. To update the file:

    python -m attnlab.cli.reference docs/spec.md

A table is between <!-- begin NAME --> and <!-- end NAME -->. The rest of the file is written by
hand.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnlab.cli.names import Named, in_toml, in_words, named_things
from attnlab.files import write_text
from attnlab.starts import start_laws
from attnlab.weights import weights_families

REGION = re.compile(r"<!-- begin (.+?) -->\n.*?<!-- end \1 -->", re.DOTALL)


def update_tables(text: str) -> str:
    """Return the text with every table made again. A table that is not in `tables()` raises
    KeyError.
    """
    made = tables()
    return REGION.sub(
        lambda found: f"<!-- begin {found[1]} -->\n{made[found[1]]}\n<!-- end {found[1]} -->", text
    )


def tables() -> dict[str, str]:
    """Return {name: Markdown}, one table per kind of named thing."""
    named = named_things()
    made = {
        kind: _key_table(things) if kind.startswith("keys of") else _word_table(things)
        for kind, things in named.items()
    }
    for kind, registry in (("weights families", weights_families), ("start laws", start_laws)):
        made[kind] = "\n\n".join(
            _entry(name, thing, registry[name]) for name, thing in named[kind].items()
        )
    return made


def _word_table(things: Mapping[str, Named]) -> str:
    return _table(
        ("name", "what it is"),
        [(f"`{name}`", _cell(thing.about)) for name, thing in things.items()],
    )


def _key_table(things: Mapping[str, Named]) -> str:
    rows = [
        (f"`{name}`", _default(thing.default), _cell(thing.about)) for name, thing in things.items()
    ]
    return _table(("key", "default", "meaning"), rows)


def _entry(name: str, thing: Named, function: Callable[..., Any]) -> str:
    """Format a name with its keys, and below it its docstring, which explains the keys."""
    return (
        f"**`{name}`** — keys:"
        f" `{in_words(thing.keys or {})}`\n\n```text\n{inspect.getdoc(function)}\n```"
    )


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _default(value: Any) -> str:
    return "" if value is None else f"`{in_toml(value)}`"


def _cell(text: str) -> str:
    """Escape the characters that Markdown would read as markup: here they are mathematics."""
    return re.sub(r"([|<*_\[\]])", r"\\\1", text)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write_text(target, update_tables(target.read_text(encoding="utf-8")))
