"""attnlab list: everything that has a name."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.names import REQUIRED, Named, in_toml, in_words, named_things
from attnlab.cli.say import say
from attnlab.cli.summary import print_table

KIND = "Only what is of this kind, or of all kinds with this word in them: experiments, start, solve ..."


@verbs.register("list")
def list_names(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help=KIND, show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: kind, name, a line about it, its keys.")] = False,
) -> None:
    """Everything that can be named in a Spec or on this command line, each with one line about it and the keys it takes.

    A key in brackets may be left out; d may too, in one of the tables weights and start. docs/spec.md explains a Spec in full.
    """
    named = {**named_things(), "results": _results(), "experiments": _experiments()}
    if kind is not None:
        wanted = kind.strip().lower()
        chosen = {title: things for title, things in named.items() if wanted in title.lower()}
        if not wanted or not chosen:
            raise ValueError(f"There is no kind of names {kind!r}; there are: {', '.join(named)}.")
        named = chosen
    if as_json:
        records = {title: {name: _record(thing) for name, thing in things.items()} for title, things in named.items()}
        say(json.dumps(records, indent=2))
        return
    for title, things in named.items():
        columns, rows = ["name", "what it is"], [[name, thing.about] for name, thing in things.items()]
        if title.startswith("keys of"):
            columns, rows = [*columns, "default"], [[*row, in_toml(things[row[0]].default)] for row in rows]
        elif any(thing.keys is not None for thing in things.values()):
            columns, rows = [*columns, "keys"], [[*row, in_words(things[row[0]].keys or {})] for row in rows]
        print_table(title, columns, rows)


def _record(thing: Named) -> dict[str, Any]:
    """The thing as JSON holds it; of a key without a default nothing is said about it."""
    record: dict[str, Any] = {"about": thing.about}
    if thing.default is not None:
        record["default"] = thing.default
    if thing.keys is not None:
        record["keys"] = {
            name: {"required": default is REQUIRED} | ({} if default in (None, REQUIRED) else {"default": default})
            for name, default in thing.keys.items()
        }
    return record


def _experiments() -> dict[str, Named]:
    """What attnlab reproduce makes: {name: what it shows}."""
    from attnlab.experiments import experiments

    return {name: Named(experiments[name].title) for name in experiments}


def _results() -> dict[str, Named]:
    """What can be checked: {name: the first line about the file that registers it}."""
    from attnlab.theory import theorems

    found = {name: inspect.getdoc(inspect.getmodule(theorems[name].measure)) or theorems[name].statement for name in theorems}
    return {name: Named(text.splitlines()[0]) for name, text in found.items()}
