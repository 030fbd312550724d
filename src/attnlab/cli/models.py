"""attnlab models: list the trained models that have a name."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from attnlab.cli import verbs
from attnlab.cli.say import say
from attnlab.cli.summary import print_table

LEGEND = (
    "One row per model: name; family of checkpoints; width/heads/layers, where width is d; tied,"
    " whether all layers share their weights; cached, whether it is on this machine; download, its"
    " size and client; licence, as the uploader declares it; what it is."
)


@verbs.register("models")
def models(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: one record per model.")
    ] = False,
) -> None:
    """List the trained models that have a name: shape, whether it is cached, size of the download,
    licence.

    Licences are as the uploaders declare them. `attnlab fetch NAME` downloads a model.
    """
    from attnlab.models.catalog.catalog import cache_folder, in_megabytes, known_models

    if as_json:
        say(json.dumps([_record(name) for name in known_models], indent=2))
        return
    columns = (
        "name",
        "family",
        "width/heads/layers",
        "tied",
        "cached",
        "download",
        "licence",
        "what it is",
    )
    rows = []
    for name in known_models:
        one = _record(name)
        rows.append(
            (
                name,
                one["family"],
                f"{one['d']}/{one['heads']}/{one['layers']}",
                "yes" if one["is_tied"] else "no",
                "yes" if one["is_cached"] else "no",
                f"{in_megabytes(one['download'])}, {one['client']}",
                one["licence"],
                one["about"],
            )
        )
    print_table("models", LEGEND, columns, rows)
    say(f"Cached in {cache_folder()}.")
    missing = [row[0] for row in rows if row[4] == "no"]
    if missing:
        say(
            f"To download one: attnlab fetch {missing[0]}"
            + (", or attnlab fetch all." if len(missing) > 1 else ".")
        )


def _record(name: str) -> dict[str, Any]:
    from attnlab.models.catalog.catalog import Entry, cache_folder, is_cached, known_models

    entry: Entry = known_models[name]
    return {
        "name": name,
        "about": entry.about,
        "family": entry.family,
        "format": entry.format,
        "d": entry.d,
        "heads": entry.heads,
        "layers": entry.layers,
        "is_tied": entry.is_tied,
        "licence": entry.licence,
        "client": entry.client,
        "package": entry.package,
        "version": entry.version,
        "download": entry.archive_size,
        "size": entry.size,
        "is_cached": is_cached(name),
        "folder": str(cache_folder() / name),
        "sha256": entry.record()["sha256"],
    }
