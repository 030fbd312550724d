"""Families of checkpoints by name: one file each, a function read(tensors, raw_config) -> Parts.

    parts = families["bert"](tensors, {"model_type": "bert", "hidden_size": 384, ...})

To add one
----------
Write `families/<name>.py` with one function, decorated with

    @family("<name>", model_types=("<the word in config.json>",),
            mark="<the end of a tensor name only this family has>")

It takes its tensors from a `Reader`, which checks every shape against the config. `honour_keys`
refuses what the config asks for beyond that, and `Reader.refuse_unread` the tensors of a layer that
were not read. The parity test runs it against the original implementation once
`tests/parity/checkpoints.py` can make a tiny one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnlab.models.checkpoints.record import BadModel, Parts, Tensors
from attnlab.registry import Registry

families: Registry[Any] = Registry(
    "family of checkpoints", package="attnlab.models.checkpoints.families"
)

Read = Callable[[Tensors, Mapping[str, Any]], Parts]


def family(
    name: str, *, model_types: Sequence[str], mark: str | None = None
) -> Callable[[Read], Read]:
    """Return a decorator that registers the reader of a family, and how to recognise the family.

    mark: the end of a tensor's name that only this family has. None if another family has all its
    names; then only model_type distinguishes them.
    """

    def file_it(read: Read) -> Read:
        read.model_types, read.mark = tuple(model_types), mark  # type: ignore[attr-defined]
        return families.register(name)(read)

    return file_it


def family_of(tensors: Tensors, raw_config: Mapping[str, Any]) -> str:
    """Return the name of the family, from the config or else from the names of the tensors."""
    said = raw_config.get("model_type")
    if said is not None:
        for name in families:
            if said in families[name].model_types:
                return name
        raise BadModel(
            f"This is a checkpoint of model_type {str(said)[:60]!r}, which no family here can read."
            f" {_known()} It needs its own family: attnlab.models.checkpoints.families says how to"
            " add one."
        )
    for name in families:
        mark = families[name].mark
        if mark is not None and any(
            str(key) == mark or str(key).endswith("." + mark) for key in tensors
        ):
            return name
    some = ", ".join(repr(str(key)[:80]) for key in sorted(map(str, tensors))[:3])
    raise BadModel(
        f"The config names no model_type, and the names of the tensors ({some or 'none at all'})"
        f" match no family here. {_known()} Write the right model_type into the config."
    )


def _known() -> str:
    return (
        "Known: "
        + "; ".join(
            f"{name} (model_type {', '.join(families[name].model_types)})" for name in families
        )
        + "."
    )
