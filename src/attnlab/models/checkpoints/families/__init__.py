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
from functools import wraps
from typing import Any

from attnlab.models.checkpoints.files import Renamed
from attnlab.models.checkpoints.record import BadModel, Parts, Tensors
from attnlab.registry import Registry

families: Registry[Any] = Registry(
    "family of checkpoints", package="attnlab.models.checkpoints.families"
)

Read = Callable[[Tensors, Mapping[str, Any]], Parts]


def family(
    name: str,
    *,
    model_types: Sequence[str],
    mark: str | None = None,
    aliases: Mapping[str, str] | None = None,
    inner: str | None = None,
) -> Callable[[Read], Read]:
    """Return a decorator that registers the reader of a family, and how to recognise the family.

    mark: the end of a tensor's name that only this family has. None if another family has all its
    names; then only model_type distinguishes them.
    aliases: other names under which transformers finds a key in the config.json of this family.
    inner: the prefix of the part that is read, which people also have alone: "encoder.".
    """

    def file_it(read: Read) -> Read:
        @wraps(read)
        def read_named(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
            return read(_with_prefix(tensors, raw, inner), use_own_names(raw, aliases or {}))

        read_named.model_types, read_named.mark = tuple(model_types), mark  # type: ignore[attr-defined]
        return families.register(name)(read_named)

    return file_it


CROSS = ("encoder_attn", "EncDecAttention")
"""What the attention of a decoder to its encoder is called."""


def _with_prefix(tensors: Tensors, raw: Mapping[str, Any], inner: str | None) -> Tensors:
    """Return the tensors with the prefix `inner`, if they are those of that part alone."""
    names = [str(name) for name in tensors]
    if inner is None or any(f".{inner}" in f".{name}" for name in names):
        return tensors
    is_decoder = any(".decoder." in f".{name}" for name in names) or any(
        word in name.split(".") for name in names for word in CROSS
    )
    if inner == "encoder." and (is_decoder or raw.get("is_decoder") is True):
        raise BadModel(
            f"This is the decoder of a {str(raw.get('model_type'))[:40]}, which also reads the"
            " states of an encoder. Only the encoder is computed here: give the whole model, or its"
            " encoder, model.get_encoder()."
        )
    return Renamed(tensors, {inner + name: name for name in names})


def use_own_names(raw: Mapping[str, Any], aliases: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the config with each number under the family's own key, also if it has another name
    there.
    """
    named = dict(raw)
    for alias, own in aliases.items():
        value = raw.get(alias)
        if value is None:
            continue
        if named.get(own, value) not in (value, None):
            raise BadModel(
                f"{alias} in the config is {str(value)[:60]!r}, but {own} is"
                f" {str(named[own])[:60]!r}. Both are names of the same number: keep the right one."
            )
        named[own] = value
    return named


def family_of(tensors: Tensors, raw_config: Mapping[str, Any]) -> str:
    """Return the name of the family, from the config or else from the names of the tensors."""
    said = raw_config.get("model_type")
    if said is not None:
        for name in families:
            if said in families[name].model_types:
                return name
        inside = raw_config.get("text_config")
        kind = inside.get("model_type") if isinstance(inside, Mapping) else None
        if any(kind in families[name].model_types for name in families):
            raise BadModel(
                f"This is a checkpoint of model_type {str(said)[:60]!r}, which reads texts and"
                f" something else. Its part for texts is of model_type {kind!r}, which is read here:"
                " give that part, as a model in memory (model.get_decoder() in transformers)."
            )
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
    """Return the model_types that are read, in one short sentence."""
    known = sorted({one for name in families for one in families[name].model_types})
    return f"Known: {', '.join(known)}."
