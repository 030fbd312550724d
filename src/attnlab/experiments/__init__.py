"""Experiments: one picture, the numbers behind it, and claims about them that can fail. One folder
per experiment.

    attnlab reproduce polytope_3d          al.reproduce("polytope_3d", "results")
    attnlab reproduce ./mine               the folder of an experiment from anywhere
    attnlab page polytope_3d               its page of the documentation, from its results

    paper/      the figures of the paper          slides/    the slides of the course, with their questions
    surveys/    many models, many systems         common/    what several experiments share

To add one
----------
Make a folder paper/NAME (or slides/, surveys/) with the files

    about.md         the head: title, cite, needs, source, showed, found, number, caveat, see; a
                     blank line; prose (folders.py)
    experiment.py    compute: Parts, a grid of cases and what is measured of one; parts.py says how
                     each kind of experiment fits
                     (or a function (size, progress) -> {name: xarray.Dataset}). specs(size), where
                     runs have a Spec
    claims.py        claims(data) -> [Claim]      numbers with an allowed interval that does not come from our own output
                     spoils {name: data -> data}  damages; every claim must fail under at least one of them (spoils.py has some)
    figures.py       figures(data) -> {name: Figure}, drawn from the data alone; film(data), a run
                     to film; film_options

The first figure has the name of the experiment. Nothing is registered: the folder is the entry. The
conformance test runs every experiment at size "small": each claim holds, fails under a spoil and
survives the disk, and each figure is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnlab.registry import FolderRegistry


def _load_folder(folder: Path) -> Any:
    # here, not above: a package does not import its own modules, see registry.import_name
    from attnlab.experiments.folders import load_folder

    return load_folder(folder)


_FOLDERS = {
    path.parent.name: path.parent for path in sorted(Path(__file__).parent.glob("*/*/about.md"))
}

experiments = FolderRegistry("experiment", _FOLDERS, _load_folder, package="attnlab.experiments")

from attnlab.experiments.reproduce import reproduce  # noqa: E402  (it needs the registry)

__all__ = ["experiments", "reproduce"]
