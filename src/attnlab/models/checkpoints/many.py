"""Many texts through one model: in padded batches of similar length, into one labelled Dataset.

Padding stands at the end and no other token sees it. So a text in a batch gets the numbers that it
gets alone, to rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.capacity import check_memory
from attnlab.displayed import Displayed, short_repr
from attnlab.models.checkpoints.forward import (
    ATTENTION,
    FED,
    HEADS,
    Step,
    enter,
    seen_by,
    steps,
)
from attnlab.models.checkpoints.model import (
    Model,
    check_dtype,
    check_input,
    is_many,
    say_given,
)
from attnlab.models.checkpoints.tokens import Tokens, mark_special
from attnlab.progress import Progress, as_progress

if TYPE_CHECKING:
    import xarray

STREAM = "x"
KEPT = {
    STREAM: ("step", "token", "coordinate"),
    ATTENTION: ("layer", "head", "token", "attended"),
    HEADS: ("layer", "head", "token", "coordinate"),
    FED: ("layer", "token", "coordinate"),
}
"""What `run` keeps, and its axes after the text."""

MEANINGS = {
    STREAM: "tokens after each step; step 0 is the embedding",
    ATTENTION: "weight with which a token attends to another one",
    HEADS: "what a head adds to each token; their sum and the output bias is what attention adds",
    FED: "what the feed-forward part adds to each token, before a norm of it",
    "id": "number of each token in the vocabulary, -1 beyond the end",
}

LONGEST_BATCH = 1024
"""The most tokens of a batch with more than one text."""

STRETCH = 1.25
"""The longest text of a batch has at most so many times the tokens of the shortest one."""


@dataclass(frozen=True, eq=False)
class Batch(Displayed):
    """Some texts that run together: their numbers, their lengths, and who sees whom."""

    numbers: tuple[int, ...]  # of the texts
    lengths: tuple[int, ...]
    x: np.ndarray  # (texts, n, d): what enters layer 0
    seen: np.ndarray  # (texts, n, n)
    __repr__ = short_repr


def read_texts(model: Model, texts: Sequence[Any], special: bool = True) -> list[Tokens]:
    """Return the Tokens of each text. A text is a str, or ids (n,), or x (n, d) for a model without
    an embedding.
    """
    texts, found = check_texts(texts), []
    for number, text in enumerate(texts):
        try:
            found.append(_read_one(model, text, special))
        except ValueError as problem:
            if len(texts) == 1:
                raise
            raise ValueError(f"Text {number} of {len(texts)}, from 0: {problem}") from None
    return found


def list_texts(given: Any) -> list[Any]:
    """Return one text or several as a list. A str, an array and a list of numbers are one text."""
    is_array = isinstance(given, np.ndarray) and given.dtype.kind not in "UO"
    is_list = isinstance(given, list | tuple) and bool(given)
    if isinstance(given, str) or is_array or is_list and np.ndim(given[0]) == 0:
        return list(given) if is_many(given) else [given]
    return check_texts(given)


def check_texts(texts: Any, least: int = 1) -> list[Any]:
    """Return several texts as a list, `least` or more. Refuse what is no list of texts."""
    wanted = "texts must be a list of texts, or of arrays of ids (n,)"
    if isinstance(texts, str) or isinstance(texts, np.ndarray) and texts.dtype.kind not in "UO":
        raise ValueError(f"{wanted}, got {say_given(texts)}. Put it into a list.")
    if hasattr(texts, "keys") and getattr(texts, "ndim", 2) != 1:  # its names would be the texts
        raise ValueError(f"{wanted}, got {say_given(texts)}. Give one column or its values.")
    if isinstance(texts, bytes | bytearray) or not isinstance(texts, Iterable):
        raise ValueError(f"{wanted}, got {say_given(texts)}.")
    found = list(texts)
    if len(found) < least:
        raise ValueError("texts must hold at least one text, got an empty list.")
    return found


def check_text(text: Any) -> None:
    """Refuse what is neither a text nor numbers in a row."""
    if text is None or isinstance(text, bytes | bytearray | int | float):
        raise ValueError(f"A text must be a str or one array of numbers, got {say_given(text)}.")


def _read_one(model: Model, text: Any, special: bool) -> Tokens:
    if isinstance(text, str):
        if not text.strip():
            raise ValueError("Each text must hold a word, but one of them is empty. Leave it out.")
        ids, words = model.tokens(text, special)
        check_input(ids, model.parts)
        inner = model.tokens(text, special=False)[0] if special else ids
        return Tokens(ids, tuple(words), mark_special(ids, inner), text)
    check_text(text)
    given = check_input(text, model.parts)
    axes = 1 if model.parts.embedding is not None else 2
    if given.ndim != axes:
        shape = "(n,)" if axes == 1 else "(n, d)"
        raise ValueError(f"A text must be a str or one array {shape}, got shape {given.shape}.")
    ids = given if axes == 1 else np.arange(len(given))
    names = tuple(f"#{number}" for number in ids.tolist())
    return Tokens(ids, names, np.zeros(len(ids), dtype=bool), x=None if axes == 1 else given)


def batches(model: Model, tokens: Sequence[Tokens], dtype: Any = np.float64) -> Iterator[Batch]:
    """Yield all texts in batches of similar length, short texts first."""
    order = sorted(range(len(tokens)), key=lambda number: len(tokens[number].ids))
    group: list[int] = []
    for number in order:
        length = len(tokens[number].ids)
        shortest = len(tokens[group[0]].ids) if group else length
        if length * (len(group) + 1) > LONGEST_BATCH or length > STRETCH * shortest + 1:
            if group:
                yield _pad(model, tokens, group, dtype)
            group = []
        group.append(number)
    yield _pad(model, tokens, group, dtype)


def _pad(model: Model, tokens: Sequence[Tokens], group: Sequence[int], dtype: Any) -> Batch:
    lengths = tuple(len(tokens[number].ids) for number in group)
    first = tokens[group[0]].given
    shape = (len(group), max(lengths), *first.shape[1:])
    given = np.full(shape, _padding(model), dtype=first.dtype)
    for row, number, length in zip(given, group, lengths, strict=True):
        row[:length] = tokens[number].given
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    x = enter(model.parts, given, dtype, mask)
    return Batch(tuple(group), lengths, x, seen_by(model.config, mask))


def _padding(model: Model) -> int:
    """Return what stands in the place of padding: an id that the embedding does not drop."""
    embedding = model.parts.embedding
    if embedding is None:
        return 0
    if embedding.padding is not None:
        return embedding.padding
    return 1 if embedding.dropped == 0 else 0


def batch_steps(model: Model, batch: Batch, keep: Collection[str] = (ATTENTION,)) -> Iterator[Step]:
    """Yield what each layer does to a batch. Entries beyond the end of a text mean nothing."""
    return steps(model.parts, batch.x, batch.seen, keep=keep)


def run_texts(
    model: Model,
    texts: Sequence[Any],
    keep: Collection[str] = (STREAM,),
    special: bool = True,
    dtype: Any = np.float64,
    progress: Progress | None = None,
) -> xarray.Dataset:
    """Return what `keep` names of all texts, from one pass: see `Model.run`."""
    import xarray

    unknown = [name for name in keep if name not in KEPT]
    if unknown or not keep:
        raise ValueError(
            f"keep must hold some of {', '.join(KEPT)}, got {', '.join(unknown) or 'nothing'}."
        )
    check_dtype(dtype)
    config, tokens = model.config, read_texts(model, texts, special)
    n = max(len(one.ids) for one in tokens)
    sizes = {
        "step": config.layers + 1,
        "layer": config.layers,
        "head": config.heads,
        "token": n,
        "attended": n,
        "coordinate": config.d,
    }
    shapes = {name: (len(tokens), *(sizes[axis] for axis in KEPT[name])) for name in keep}
    check_memory(
        f"{' and '.join(keep)} of {len(tokens)} texts with up to {n} tokens",
        sum(int(np.prod(shape, dtype=object)) for shape in shapes.values()),
        "Give fewer or shorter texts, or keep less. al.models.survey measures without keeping.",
    )
    found = {name: np.full(shape, np.nan, dtype) for name, shape in shapes.items()}
    done, progress = 0, as_progress(progress)
    for batch in batches(model, tokens, dtype):
        for row, number in enumerate(batch.numbers):
            if STREAM in found:
                length = batch.lengths[row]
                found[STREAM][number, 0, :length] = batch.x[row, :length]
        for layer, step in enumerate(batch_steps(model, batch, set(keep) - {STREAM})):
            for row, (number, length) in enumerate(zip(batch.numbers, batch.lengths, strict=True)):
                if STREAM in found:
                    found[STREAM][number, layer + 1, :length] = step.x[row, :length]
                if ATTENTION in found:
                    found[ATTENTION][number, layer, :, :length, :length] = step.attention[
                        row, :, :length, :length
                    ]
                if FED in found and step.fed is not None:
                    found[FED][number, layer, :length] = step.fed[row, :length]
                if HEADS in found and step.heads is not None:
                    found[HEADS][number, layer, :, :length] = step.heads[row, :, :length]
        done += len(batch.numbers)
        progress(done / len(tokens))
    return xarray.Dataset(
        {name: (("text", *KEPT[name]), found[name], _about(name)) for name in keep},
        coords=token_coordinates(tokens),
        attrs={"kind": "texts", "model": model.name, "special": int(special)},
    )


def token_coordinates(tokens: Sequence[Tokens]) -> dict[str, Any]:
    """Return the labels of texts and their tokens: ids, words, which ones the model added, and how
    many there are.
    """
    n = max(len(one.ids) for one in tokens)
    ids, is_special = np.full((len(tokens), n), -1), np.zeros((len(tokens), n), dtype=np.int8)
    words = [[*one.words, *[""] * (n - len(one.ids))] for one in tokens]
    for row, one in enumerate(tokens):
        ids[row, : len(one.ids)] = one.ids
        is_special[row, : len(one.ids)] = one.is_special
    return {
        "content": ("text", [one.text for one in tokens]),
        "length": ("text", [len(one.ids) for one in tokens]),
        "id": (("text", "token"), ids, _about("id")),
        "word": (("text", "token"), np.array(words)),
        "is_special": (("text", "token"), is_special),
    }


def tokens_dataset(model: Model, texts: Sequence[Any], special: bool = True) -> xarray.Dataset:
    """Return the tokens of many texts: see `Model.tokens`."""
    import xarray

    labels = token_coordinates(read_texts(model, texts, special))
    attributes = {"kind": "tokens", "model": model.name, "special": int(special)}
    return xarray.Dataset({"id": labels.pop("id")}, coords=labels, attrs=attributes)


def _about(name: str) -> dict[str, str]:
    return {"long_name": MEANINGS[name], "units": "1"}
