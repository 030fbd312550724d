"""attnlab list: list the kinds of names, the names of one kind, or all names."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.names import REQUIRED, Listing, Named, in_toml, in_words, listings, outlined
from attnlab.cli.say import say
from attnlab.cli.summary import print_table
from attnlab.cli.words import KIND_MEANINGS
from attnlab.experiments import experiments
from attnlab.experiments.folders import titles

KIND = (
    "Only names of this kind, or of all kinds with this word in them: experiments, starts,"
    " solve ..."
)
OVERVIEW_LEGEND = (
    "One row per kind of names: kind; names, how many there are; what they are; how to see them."
    " attnlab list --all shows everything."
)


@verbs.register("list")
def list_names(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help=KIND, show_default=False)
    ] = None,
    is_all: Annotated[bool, typer.Option("--all", help="All names of all kinds.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: kind, name, one line about it, its keys.")
    ] = False,
) -> None:
    """List what a Spec or this command line can name: an overview of the kinds, or the names of one
    kind.

    Each name has one line about it and the keys it takes. A key in brackets may be left out; d may
    too, in one of the tables weights and start. docs/spec.md explains a Spec in full.
    """
    if is_all and kind is not None:
        raise ValueError(
            f"--all shows every kind, so KIND must be left out; got {kind!r}. Give one of the two."
        )
    known = {
        **listings(),
        "results": outlined("attnlab.theory.statements"),
        "experiments": Listing(lambda: list(experiments), _experiments),
    }
    if kind is None and not is_all and not as_json:
        rows = [
            [
                title,
                len(listing.names()),
                KIND_MEANINGS[title].about,
                f"attnlab list {KIND_MEANINGS[title].word}",
            ]
            for title, listing in known.items()
        ]
        print_table(
            "What can be named",
            OVERVIEW_LEGEND,
            ("kind", "names", "what they are", "how to see them"),
            rows,
        )
        return
    if kind is not None:
        known = _of_kind(known, kind)
    named = {title: listing.things() for title, listing in known.items()}
    if as_json:
        records = {
            title: {name: _record(thing) for name, thing in things.items()}
            for title, things in named.items()
        }
        say(json.dumps(records, indent=2))
        return
    for title, things in named.items():
        _print(title, things)


def _of_kind(known: dict[str, Listing], kind: str) -> dict[str, Listing]:
    """Return the kinds with this word in them, also as a plural: starts finds start laws."""
    wanted = kind.strip().lower()
    for word in (wanted, wanted.removesuffix("s")):
        chosen = {
            title: listing for title, listing in known.items() if word and word in title.lower()
        }
        if chosen:
            return chosen
    raise ValueError(f"Unknown kind {kind!r}. Known kinds: {', '.join(known)}.")


def _print(title: str, things: dict[str, Named]) -> None:
    legend, columns = "One row per name: name, and what it is", ["name", "what it is"]
    rows = [[name, thing.about] for name, thing in things.items()]
    if title.startswith("keys of"):
        legend += "; default, the value if the key is left out, a dash if there is none"
        columns.append("default")
        rows = [[*row, in_toml(things[row[0]].default)] for row in rows]
    elif any(thing.keys is not None for thing in things.values()):
        legend += "; keys, with their defaults, in brackets if they may be left out"
        columns.append("keys")
        rows = [[*row, in_words(things[row[0]].keys or {})] for row in rows]
    print_table(title, f"{legend}.", columns, rows)


def _record(thing: Named) -> dict[str, Any]:
    """Return the thing as plain JSON values. A key without a default has no entry `default`."""
    record: dict[str, Any] = {"about": thing.about}
    if thing.default is not None:
        record["default"] = thing.default
    if thing.keys is not None:
        record["keys"] = {
            name: (
                {"required": default is REQUIRED}
                | ({} if default in (None, REQUIRED) else {"default": default})
            )
            for name, default in thing.keys.items()
        }
    return record


def _experiments() -> dict[str, Named]:
    """Return {name: what it shows} of the experiments of attnlab reproduce."""
    return {name: Named(title) for name, title in titles().items()}
