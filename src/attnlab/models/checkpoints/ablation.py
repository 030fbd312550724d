"""Models without some of their parts: a head, the attention, the feed-forward part or the norms of
a layer.

What is taken away writes nothing, or its mean over texts. Both are other matrices and biases of the
same layer, so the result is a model like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.models.checkpoints.forward import FED, HEADS
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.checkpoints.many import batch_steps, batches, read_texts
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.record import FeedForward, Layer
from attnlab.models.checkpoints.slices import check_index
from attnlab.progress import Progress, as_progress


def ablate(
    model: Model,
    heads: Sequence[tuple[int, int]],
    attention: Sequence[int],
    feedforward: Sequence[int],
    norms: Sequence[int],
    mean: Sequence[Any] | None,
    progress: Progress | None = None,
) -> Model:
    """Return the model without these parts: see `Model.without`."""
    config = model.config
    chosen = _check_heads(heads, config.layers, config.heads)
    attention, feedforward, norms = (
        _check_layers(name, layers, config.layers)
        for name, layers in (
            ("attention", attention),
            ("feedforward", feedforward),
            ("norms", norms),
        )
    )
    if not (chosen or attention or feedforward or norms):
        raise ValueError(
            "Name what to leave out: heads=[(layer, head)], attention=[layer], feedforward=[layer]"
            " or norms=[layer]."
        )
    bare = [layer for layer in feedforward if not _has_feedforward(model.parts.layers[layer])]
    if bare:
        raise ValueError(f"{model.name} has no feed-forward part in layer {bare[0]}.")
    of_heads, of_fed = (
        (None, None) if mean is None else mean_outputs(model, mean, progress=progress)
    )
    layers: list[Layer] = []
    changed: dict[Any, Layer] = {}  # layers that were one layer stay one, if they lose the same
    for number, layer in enumerate(model.parts.layers):
        gone = (
            tuple(head for at, head in chosen if at == number),
            number in attention,
            number in feedforward,
            number in norms,
        )
        key = (id(layer), gone, None if mean is None or not any(gone) else number)
        if key not in changed:
            changed[key] = _change(
                layer,
                *gone,
                None if of_heads is None else of_heads[number],
                None if of_fed is None else of_fed[number],
            )
        layers.append(changed[key])
    is_tied = config.is_tied and len({id(layer) for layer in layers}) == 1
    parts = replace(model.parts, layers=tuple(layers), config=replace(config, is_tied=is_tied))
    said = _describe(chosen, attention, feedforward, norms)
    name = f"{model.name} without {said}{'' if mean is None else ' (mean over texts)'}"
    return replace(model, name=name, parts=parts, address=None)


def _check_layers(name: str, layers: Sequence[int], count: int) -> list[int]:
    if not isinstance(layers, Iterable):
        raise ValueError(
            f"{name} must be a list of layers, such as [0]; range({count}) means all of them. Got"
            f" {layers!r}."
        )
    return sorted({check_index("layer", layer, count) for layer in layers})


def _check_heads(
    heads: Sequence[tuple[int, int]], layers: int, count: int
) -> list[tuple[int, int]]:
    found = set()
    for one in heads:
        if not isinstance(one, tuple | list) or len(one) != 2:
            raise ValueError(f"heads must hold pairs (layer, head), such as (0, 3), got {one!r}.")
        found.add((check_index("layer", one[0], layers), check_index("head", one[1], count)))
    return sorted(found)


def _has_feedforward(layer: Layer) -> bool:
    return any(isinstance(block.mixer, FeedForward) for block in layer.blocks)


def _change(
    layer: Layer,
    heads: Collection[int],
    is_attention_gone: bool,
    is_feedforward_gone: bool,
    are_norms_gone: bool,
    of_heads: np.ndarray | None,
    of_fed: np.ndarray | None,
) -> Layer:
    """Return the layer without these parts; of_heads (h, d) and of_fed (d,) are written instead."""
    part = layer.attention
    changes: dict[str, Any] = {}
    gone = sorted(heads) if not is_attention_gone else list(range(len(part.output)))
    if gone:
        output, bias = np.array(part.output), part.output_bias
        output[gone] = 0
        if is_attention_gone and of_heads is None:
            bias = None
        if of_heads is not None:
            bias = of_heads[gone].sum(axis=0) + (0.0 if bias is None else bias)
        changes |= {"output": output, "output_bias": bias}
    if is_feedforward_gone:
        changes |= {"outer": np.zeros_like(layer.feedforward.outer), "outer_bias": of_fed}
    changed = layer.change(**changes) if changes else layer
    return changed.change_norms(lambda norm: None) if are_norms_gone else changed


def mean_outputs(
    model: Model, texts: Sequence[Any], progress: Progress | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return what each head (layers, h, d) and each feed-forward part (layers, d) adds to a token,
    the mean over all tokens of all texts.
    """
    config, tokens = model.config, read_texts(model, texts)
    of_heads = np.zeros((config.layers, config.heads, config.d))
    of_fed = np.zeros((config.layers, config.d))
    done, progress = 0, as_progress(progress)
    for batch in batches(model, tokens):
        is_there = np.arange(batch.x.shape[1]) < np.array(batch.lengths)[:, None]
        for layer, step in enumerate(batch_steps(model, batch, (HEADS, FED))):
            if step.heads is not None:
                of_heads[layer] += np.moveaxis(step.heads, 1, 2)[is_there].sum(axis=0)
            if step.fed is not None:
                of_fed[layer] += step.fed[is_there].sum(axis=0)
        done += len(batch.numbers)
        progress(done / len(tokens))
    count = sum(len(one.ids) for one in tokens)
    return of_heads / count, of_fed / count


def _describe(
    heads: Sequence[tuple[int, int]],
    attention: Sequence[int],
    feedforward: Sequence[int],
    norms: Sequence[int],
) -> str:
    found = [name_head(*one) for one in heads[:4]]
    found += [f"{len(heads) - 4} more heads"] if len(heads) > 4 else []
    for what, layers in (
        ("attention", attention),
        ("the feed-forward part", feedforward),
        ("the norms", norms),
    ):
        if layers:
            numbers = ", ".join(map(str, layers))
            found.append(f"{what} of layer{'s' if len(layers) > 1 else ''} {numbers}")
    return ", ".join(found)
