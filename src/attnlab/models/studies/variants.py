"""Run the same tokens through the real stack and through stacks without some of its parts.

A variant is a function (model, x0, seen, options) -> iterable of Steps, from the embedded tokens x0
(n, d) on; `seen` (n, n) says which token sees which in the real model. Register a new one here, and
it appears in every table and figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab.models.checkpoints.forward import (
    FEEDFORWARD,
    NORMS,
    WINDOWS,
    Step,
    in_precision,
    layer_step,
    steps,
)
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.record import Layer, Norm, Parts
from attnlab.models.studies.idealised import idealised_steps
from attnlab.registry import Registry

variants: Registry[Callable[..., Iterable[Step]]] = Registry("variant")

TIMES_DEPTH = 4
"""A tied layer is repeated up to this many times the depth of its model."""

INITIAL = 0.02
"""The default standard deviation of untrained matrices: that of BERT, GPT-2 and llama2.c."""

MATRICES = ("query", "key", "value", "output", "inner", "gate", "outer")


@dataclass(frozen=True)
class Options:
    """Options of variants: the layer that the tied stack repeats, and the seed of random
    weights.
    """

    tied_layer: int = 0
    rng: int = 0


@variants.register("real")
def real(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """The model itself."""
    return steps(model.parts, x0, seen)


@variants.register("no_mlp")
def no_mlp(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """Without the feed-forward parts; norms stay."""
    return steps(model.parts, x0, seen, (FEEDFORWARD,))


@variants.register("no_norm")
def no_norm(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """Without the norms: identities instead."""
    return steps(model.parts, x0, seen, (NORMS,))


@variants.register("attention_only")
def attention_only(
    model: Model, x0: np.ndarray, seen: np.ndarray, options: Options
) -> Iterable[Step]:
    """Attention and residual sums alone, with their biases."""
    return steps(model.parts, x0, seen, (NORMS, FEEDFORWARD))


@variants.register("no_mask")
def no_mask(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """Every token sees every token. The same as real if the model has neither a causal mask nor a
    window.
    """
    return steps(model.parts, x0, np.ones_like(seen), (WINDOWS,))


@variants.register("tied")
def tied(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """One layer, repeated to four times the depth, without the final norm."""
    return repeat_layer(model, x0, seen, options.tied_layer, TIMES_DEPTH * model.config.layers)


def repeat_layer(
    model: Model, x: np.ndarray, seen: np.ndarray, layer: int, times: int
) -> Iterator[Step]:
    """Apply one layer of the model `times` times."""
    again = in_precision(model.parts.layers[layer], x.dtype)  # once, and not every time
    for _ in range(times):
        x, attention = layer_step(again, x, seen)
        yield Step(x, attention)


def matrices_of(layer: Layer) -> dict[str, np.ndarray]:
    """Return the matrices of the layer by name, attention first, without those that it does not
    have.
    """
    given = _fields_of(layer)
    return {name: given[name] for name in MATRICES if given.get(name) is not None}


def _fields_of(layer: Layer) -> dict[str, Any]:
    """Return the fields of attention and of the feed-forward part, if any."""
    return {name: value for block in layer.blocks for name, value in vars(block.mixer).items()}


@variants.register("twin")
def idealised(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """The theory's flow with the same matrices, one unit of time per layer; on a sphere, or reading
    normed tokens (pre-norm).
    """
    return idealised_steps(model, x0)


@variants.register("random")
def random(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """A null: Gaussian matrices of the same shapes and of the trained sizes, no biases, norms with
    gain 1.
    """
    return steps(learned_nothing(model, "random", options.rng).parts, x0, seen)


@variants.register("untrained")
def untrained(model: Model, x0: np.ndarray, seen: np.ndarray, options: Options) -> Iterable[Step]:
    """The other null: the same, with the sizes before training (standard deviation 0.02 unless the
    config has another).
    """
    return steps(learned_nothing(model, "untrained", options.rng).parts, x0, seen)


def initial_size(model: Model) -> float:
    """Return the standard deviation of the matrices before training, from the checkpoint's own
    config.
    """
    size = model.raw_config.get("initializer_range", INITIAL)
    return float(size) if isinstance(size, int | float) and 0 < size < np.inf else INITIAL


def learned_nothing(model: Model, null: str, rng: int) -> Model:
    """Return the model with new random matrices, as the variant `null` (random or untrained) has
    them.
    """
    size = initial_size(model) if null == "untrained" else None
    return replace(model, parts=random_parts(model.parts, rng, size))


def random_parts(parts: Parts, rng: int, size: float | None = None) -> Parts:
    """Return the stack of `parts` with new random matrices: normal entries with `size`, or with the
    old root mean square.
    """
    generator = np.random.default_rng([rng, parts.config.d, parts.config.layers])
    drawn: dict[int, Layer] = {}
    for layer in parts.layers:  # a tied layer is drawn once
        if id(layer) not in drawn:
            drawn[id(layer)] = _random_layer(layer, generator, size)
    layers = tuple(drawn[id(layer)] for layer in parts.layers)
    return replace(parts, layers=layers, final_norm=_plain_norm(parts.final_norm))


def _random_layer(layer: Layer, generator: np.random.Generator, given: float | None) -> Layer:
    changes: dict[str, Any] = {name: None for name in _fields_of(layer) if name.endswith("_bias")}
    for name, matrix in matrices_of(layer).items():
        size = given or float(np.sqrt(np.mean(np.square(matrix, dtype=float))))
        changes[name] = generator.normal(scale=size, size=matrix.shape)
    attention = layer.attention
    changes |= {
        "by_offset": None,
        "offset_rows": None,
        "query_norm": _plain_norm(attention.query_norm),
        "key_norm": _plain_norm(attention.key_norm),
    }
    return layer.change(**changes).change_norms(_plain_norm)


def _plain_norm(norm: Norm | None) -> Norm | None:
    return (
        None
        if norm is None
        else replace(norm, gain=np.ones_like(norm.gain, dtype=float), bias=None)
    )
