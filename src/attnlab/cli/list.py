"""attnlab list: everything that has a name."""

from __future__ import annotations

import inspect
import json
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.examples import example_names, example_title
from attnlab.cli.summary import print_table


@verbs.register("list")
def list_names(as_json: Annotated[bool, typer.Option("--json", help="Print JSON: kind, name, first line.")] = False) -> None:
    """Everything that can be named in a Spec or on this command line, each with one line about it."""
    named = named_things()
    if as_json:
        typer.echo(json.dumps(named, indent=2))
        return
    for kind, things in named.items():
        print_table(kind, ("name", "what it is"), things.items())


def named_things() -> dict[str, dict[str, str]]:
    """{kind: {name: first line}} of all registries and of the example Specs."""
    from attnlab.analysis import observables
    from attnlab.render import kinds
    from attnlab.starts import start_laws
    from attnlab.weights import weights_families

    registries = {
        "start laws": start_laws,
        "weights families": weights_families,
        "observables": observables,
        "kinds of figure": kinds,
    }
    named = {kind: {name: first_line(registry[name]) for name in registry} for kind, registry in registries.items()}
    named["example Specs"] = {name: example_title(name) for name in example_names()}
    return named


def first_line(thing: Any) -> str:
    """The first line about a function, or about the file of a kind of figure, which is a record of functions."""
    text = inspect.getdoc(thing if callable(thing) else inspect.getmodule(thing.draw))
    return text.splitlines()[0] if text else ""
