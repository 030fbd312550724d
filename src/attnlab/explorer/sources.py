"""The sources that explore can show: a preset, an example, a file or a record, as one run with its
facts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.examples import example_names, example_spec
from attnlab.explorer.presets import Preset, presets
from attnlab.explorer.trained import is_dossier, is_trained, name_source
from attnlab.registry import unknown_name
from attnlab.store import load
from attnlab.theory.verbs import members
from attnlab.types import Limit, Spec, Trajectory

TRAINED = "trained"
"""The preset that is a recording of a trained head."""

SPEC_SUFFIXES = (".toml", ".json")


@dataclass(frozen=True)
class Source:
    """One of: a preset, a Spec, a run, a limit, a result of al.models, a dossier. name: the name of
    the page.
    """

    name: str
    preset: Preset | None = None
    spec: Spec | None = None
    run: Trajectory | None = None
    limit: Limit | None = None
    of_model: Any = None
    dossier: Any = None
    is_trained: bool = False


def read_source(source: Any, member: int = 0) -> Source:
    """Return the Source for None, a name, a path, a Spec, a Trajectory, Limits, or Flows and
    sentences of al.models.
    """
    if source is None:
        first = presets[presets.in_order()[0]]
        return Source(first.name, preset=first)
    if isinstance(source, str | os.PathLike):
        return _read_name(str(source), member)
    if isinstance(source, Spec):
        return Source("A run", spec=source)
    if isinstance(source, Trajectory):
        return Source("A run", run=source)
    if isinstance(source, Limit):
        return Source("A limit", limit=source)
    if isinstance(source, list) and source and all(isinstance(one, Limit) for one in source):
        return Source("A limit", limit=source[check_member(member, len(source))])
    if is_trained(source):
        return Source(name_source(source), of_model=source)
    if is_dossier(source):
        return Source(source.model.name, dossier=source)
    raise TypeError(
        "explore shows a preset's name, a Spec, a Trajectory, a Limit, a Flow, the Dataset of"
        " al.models.sentence, a list of Flows and sentences, a Dossier of al.models.dossier, or the"
        f" path of a Spec or a saved result; got {type(source).__name__}."
    )


def known_names() -> list[str]:
    """Return the names that explore takes: presets, then examples."""
    return [*presets.in_order(), TRAINED, *example_names()]


def _read_name(name: str, member: int) -> Source:
    path = Path(name)
    if name in presets:
        return Source(presets[name].name, preset=presets[name])
    if name == TRAINED:
        return Source(TRAINED, is_trained=True)
    if not path.exists() and name in example_names():
        return Source(name, spec=example_spec(name))
    if not path.exists() and not path.suffix and len(path.parts) <= 1:
        raise unknown_name("preset, example or file", name, known_names())
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder: give a Spec (.toml, .json), a saved result (.nc), or the name of"
            " a preset."
        )
    if path.suffix.lower() in SPEC_SUFFIXES:
        try:
            return Source(path.stem, spec=Spec.load(path))
        except TypeError as problem:
            raise ValueError(str(problem)) from None

    found = load(path)
    try:
        read = read_source(found, member)
    except TypeError:
        shown = "a run, a limit, a flow or a sentence"
        raise ValueError(
            f"{path} holds {type(found).__name__}, and explore shows {shown}."
        ) from None
    return Source(path.stem, run=read.run, limit=read.limit, of_model=read.of_model)


def check_member(member: int, count: int) -> int:
    """Return the number of a member of a batch, or raise a ValueError."""
    if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < count:
        raise ValueError(
            f"member must be the number of one member, 0 to {count - 1}, got {member!r}."
        )
    return member


def take_member(run: Trajectory, member: int) -> Trajectory:
    """Return one member of a batch, cut at its last good time; a run without batch is itself."""
    if not run.batch:
        check_member(member, 1)
        return run
    found = members(run)
    return found[check_member(member, len(found))]
