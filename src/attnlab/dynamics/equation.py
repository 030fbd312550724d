"""From options to a Dynamics: every name, number and shape is checked here, once."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

from attnlab.registry import unknown_name
from attnlab.types import ACTIVATIONS, GEOMETRIES, KERNELS, MASKS, Dynamics, FeedForward, Weights


def equation(
    weights: Weights,
    *,
    geometry: str = "euclidean",
    kernel: str = "softmax",
    mask: str = "full",
    beta: float = 1.0,
    feedforward: FeedForward | Mapping[str, Any] | None = None,
    dt: float | None = None,
) -> Dynamics:
    """The checked Dynamics of these options; dt makes it residual layers."""
    if not isinstance(weights, Weights):
        raise TypeError(f"The weights must be an attnlab.Weights(Q=, K=, V=), got {type(weights).__name__}.")
    for kind, name, known in (("geometry", geometry, GEOMETRIES), ("kernel", kernel, KERNELS), ("mask", mask, MASKS)):
        if name not in known:
            raise unknown_name(kind, name, known)
    if not math.isfinite(as_float(beta)):
        raise ValueError(f"beta must be a finite number, got {beta!r}.")
    if dt is not None:
        dt = positive("dt", dt)
    if feedforward is not None:
        feedforward = _feedforward(feedforward, weights.d)
        if geometry == "sphere":
            raise ValueError(
                "The feed-forward variant is an equation for rescaled tokens z in R^d and has no version on the sphere. "
                'Use geometry="euclidean", or leave feedforward out.'
            )
        if kernel == "exp_mean":
            raise ValueError(
                'The feed-forward variant needs attention weights that sum to 1. Use kernel="softmax" or "hardmax".'
            )
        if dt is not None:
            raise ValueError(
                "The feed-forward variant is defined in continuous time only. Leave layers out; "
                'stepper="euler", frame="z", dt=... takes the steps the published scripts take.'
            )
    return Dynamics(weights, geometry, kernel, mask, float(beta), feedforward, dt)


def as_float(value: Any) -> float:
    """`value` as a float; NaN where it is no real number, and infinity where it is a whole number beyond all floats."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def positive(name: str, value: Any) -> float:
    """`value` as a float, or a ValueError that says it must be positive."""
    if not 0.0 < (number := as_float(value)) < math.inf:
        kind = "positive finite" if number == math.inf else "positive"
        raise ValueError(f"{name} must be a {kind} number, got {value!r}.")
    return number


def _feedforward(given: FeedForward | Mapping[str, Any], d: int) -> FeedForward:
    if isinstance(given, Mapping):
        known = ("W", "sigma", "bias", "bias_outside")
        for key in given:
            if key not in known:
                raise unknown_name("feedforward key", key, known)
        given = FeedForward(**given)
    if not isinstance(given, FeedForward):
        raise TypeError(f"feedforward must be an attnlab.FeedForward or a table of W, sigma, bias, got {type(given).__name__}.")
    if given.sigma not in ACTIVATIONS:
        raise unknown_name("activation", given.sigma, ACTIVATIONS)
    for name, shape in (("W", (d, d)), ("bias", (d,)), ("bias_outside", (d,))):
        value = getattr(given, name)
        if value is not None and value.shape != shape:
            raise ValueError(f"FeedForward.{name} must have shape {shape} to match V, got {value.shape}.")
    return given
