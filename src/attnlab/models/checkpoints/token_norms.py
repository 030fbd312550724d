"""The norms of the tokens that the attention of a layer reads: from the gains and biases of a norm,
or measured on texts.

The output of a norm is gain * u + bias. For LayerNorm the coordinates of u have mean 0 and mean
square 1, for RMSNorm mean square
1. If each coordinate has this mean square over the tokens too, E |gain * u + bias|^2 = sum gain^2 +
   bias^2. Trained tokens are
less uniform: over a few texts the measured |x|^2 is 0.6 to 1.9 times this value in minilm and
albert-chem, and 0.13 times in plbert.

A pre-norm layer reads the output of its own norm. If the gain is folded into the matrices, they
read u, and |u|^2 = d. A post-norm layer reads the last norm of the layer before it; the first layer
reads the embedding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.checkpoints.forward import apply_norm, enter, seen_by, steps
from attnlab.models.checkpoints.many import read_texts
from attnlab.models.checkpoints.record import Embedding, Layer, Norm, Parts

if TYPE_CHECKING:
    from attnlab.models.checkpoints.model import Model

FROM_GAINS, MEASURED, ASSUMED = "from the gains", "measured", "taken as sqrt(d)"
"""The source of a norm; the last one is for matrices without a model."""

SAMPLES, SAMPLE_TOKENS = 8, 16
"""How many inputs are read to measure a radius without a text, and how many tokens each one has."""


def expected_squares(parts: Parts, fold_norm: bool = True) -> np.ndarray:
    """Return the expected |x|^2 (layers,) of the tokens that each layer's attention reads, from
    gains and biases alone.
    """
    before = [
        _embedded_square(parts.embedding),
        *(_sum_square(layer) for layer in parts.layers[:-1]),
    ]
    norms = [layer.attention_block.norm_before for layer in parts.layers]
    own = [
        None if norm is None else parts.config.d if fold_norm else _square(norm) for norm in norms
    ]
    return np.array(
        [stream if read is None else read for stream, read in zip(before, own, strict=True)],
        dtype=float,
    )


def measure_squares(model: Model, texts: Sequence[Any], fold_norm: bool = True) -> np.ndarray:
    """Return the mean |x|^2 (layers,) of the tokens that each layer's attention reads, over all
    tokens of all texts.

    texts: each a text, ids (n,), or x (n, d) for a model without an embedding. The tokens that the
    model adds itself count: heads read them too.
    """
    found = []
    for tokens in read_texts(model, texts):
        states = model.hidden_states(tokens.given)[: model.config.layers]
        found.append(
            [
                np.square(read_by(model, number, x, fold_norm)).sum(axis=-1)
                for number, x in enumerate(states)
            ]
        )
    return np.concatenate(found, axis=1).mean(axis=1)


def measure_radius(model: Model, number: int) -> tuple[float, str]:
    """Return (radius, source): the root mean square norm of the tokens that the attention of a
    layer reads, for tokens that need no text.

    The model reads 8 inputs of 16 random ids, always the same ones. Without an embedding it reads
    standard normal tokens instead. In the first layer those are the stream itself: if no norm comes
    before attention, nothing is measured and the radius is sqrt(d). The radius has six digits, so
    that it is the same on every machine.
    """
    parts, rng = model.parts, np.random.default_rng(0)
    shape = (SAMPLES, min(SAMPLE_TOKENS, model.config.length))
    norm = parts.layers[number].attention_block.norm_before
    given: np.ndarray
    if parts.embedding is None:
        if number == 0 and norm is None:
            return math.sqrt(model.config.d), ASSUMED
        given, what = rng.standard_normal((*shape, model.config.d)), "random tokens"
    else:
        given, what = rng.integers(0, model.config.vocabulary, shape), "random ids"
    x = enter(parts, given, np.float64)
    seen = seen_by(model.config, np.ones(shape, dtype=bool))
    for step in islice(steps(parts, x, seen, keep=()), number):
        x = step.x
    read = read_by(model, number, x)
    radius = math.sqrt(float(np.square(read).sum(axis=-1).mean()))
    return float(f"{radius:.6g}"), f"{MEASURED} on {what}"


def read_by(model: Model, number: int, x: np.ndarray, fold_norm: bool = True) -> np.ndarray:
    """Return the tokens that the attention of a layer reads from the stream x (n, d).

    fold_norm: without the gain and bias of a norm before attention.
    """
    norm = model.parts.layers[number].attention_block.norm_before
    if norm is None:
        return x
    return apply_norm(replace(norm, gain=np.ones(x.shape[-1]), bias=None) if fold_norm else norm, x)


def entering(model: Model, number: int, given: np.ndarray, fold_norm: bool = True) -> np.ndarray:
    """Return the tokens (n, d) that the attention of a layer reads, as in `read_by`, for ids (n,),
    or for x (n, d) if the model has no embedding.
    """
    return read_by(model, number, model.hidden_states(given)[number], fold_norm)


def _square(norm: Norm) -> float:
    bias = 0.0 if norm.bias is None else float(np.square(norm.bias, dtype=float).sum())
    return float(np.square(norm.gain, dtype=float).sum()) + bias


def _sum_square(layer: Layer) -> float:
    """Return the same for the stream after a layer; NaN if no norm determines it."""
    norm = layer.blocks[-1].norm_sum
    return float("nan") if norm is None else _square(norm)


def _embedded_square(embedding: Embedding | None) -> float:
    """Return the same after the norm of the embedding, and after its projection if it is narrower
    than the stream.
    """
    norm = None if embedding is None else embedding.norm
    if embedding is None or norm is None:
        return float("nan")
    if embedding.projection is None:
        return _square(norm)
    matrix = np.asarray(embedding.projection, dtype=float) * np.asarray(
        norm.gain, dtype=float
    )  # (d, e)
    width = matrix.shape[1]
    if norm.kind == "layer" and width > 1:
        # u has no mean: its covariance is I - 1 1^T / e, times e / (e - 1) so that |u|^2 = e
        matrix = (matrix - matrix.mean(axis=1, keepdims=True)) * np.sqrt(width / (width - 1))
    middle = (
        np.zeros(len(matrix))
        if norm.bias is None
        else np.asarray(embedding.projection, dtype=float) @ norm.bias
    )
    if embedding.projection_bias is not None:
        middle = middle + embedding.projection_bias
    return float(np.square(matrix).sum() + np.square(middle).sum())
