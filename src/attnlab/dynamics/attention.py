"""The attention matrices: P_ij = weight that token i gives to token j, one matrix a head."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from attnlab.types import Dynamics, Trajectory

LARGEST_FACTOR = 1e300
"""Scores carry beta e^{2 log_scale}; beyond this any two scores that differ at all give weights 0 and 1."""


def score_factor(beta: float, log_scale: np.ndarray | float) -> np.ndarray:
    """beta e^{log_scale}, held back from infinity so that 0 * factor stays 0."""
    with np.errstate(over="ignore"):
        return np.clip(beta * np.exp(np.asarray(log_scale)), -LARGEST_FACTOR, LARGEST_FACTOR)


def _of_size_one(array: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(array / 2^e, e log 2) with the largest entry over `axes` in [1/2, 1), exactly."""
    exponent = np.frexp(np.abs(array).max(axis=axes, keepdims=True))[1]
    return np.ldexp(array, -exponent), np.squeeze(exponent, axis=axes) * np.log(2.0)


def attention_matrices(dynamics: Dynamics, y: np.ndarray, log_scale: np.ndarray | float = 0.0) -> np.ndarray:
    """P (..., h, n, n) of the tokens x = e^{log_scale} y, y (..., n, d): the kernel of the scores of what attention reads.

    Kernels that can are given the scores and the factor e^{2 log_scale} apart: nothing overflows.
    """
    if not dynamics.read.is_identity:
        y, log_scale = dynamics.read(y * np.exp(np.asarray(log_scale))[..., None, None]), 0.0
    # tokens of 1e150, or Q and K of that size, have scores of 1e300: their scales go into the factor
    y, log_y = _of_size_one(y, (-2, -1))
    (Q, log_Q), (K, log_K) = (_of_size_one(array, (-3, -2, -1)) for array in (dynamics.weights.Q, dynamics.weights.K))
    y = y[..., None, :, :]                                                     # (..., 1, n, d)
    if not dynamics.scores.is_dot:                                             # Q and K are then scaled alike
        log_Q = log_K = np.maximum(log_Q, log_K)
        Q, K = (array * np.exp(-log_Q) for array in (dynamics.weights.Q, dynamics.weights.K))
    scores = dynamics.scores.compare(y @ np.swapaxes(Q, 1, 2), y @ np.swapaxes(K, 1, 2))            # (..., h, n, n)
    n = scores.shape[-1]
    factor = score_factor(dynamics.beta, 2.0 * (log_scale + log_y) + log_Q + log_K)[..., None, None, None]
    signed, seen = np.where(factor < 0, -scores, scores), np.broadcast_to(dynamics.mask.seen(n), scores.shape)
    if dynamics.kernel.has_scale:
        weights: np.ndarray = dynamics.kernel.scaled_weights(signed, np.abs(factor), seen)
        return weights
    with np.errstate(over="ignore"):
        finite = np.clip(signed * np.abs(factor), -LARGEST_FACTOR, LARGEST_FACTOR)
    return checked_weights(dynamics.kernel, dynamics.kernel.weights(finite, seen), finite)


def checked_weights(kernel: Any, weights: Any, scores: np.ndarray) -> np.ndarray:
    """What a kernel returned for scores (..., n, n), if it has their shape and is not negative."""
    weights = np.asarray(weights)
    if weights.shape != scores.shape or weights.dtype.kind not in "fiub":
        raise ValueError(f'The kernel "{kernel.name}" must return real weights of the shape of its scores, {scores.shape}; got '
                         f"{weights.shape} of type {weights.dtype}.")
    if not kernel.may_be_negative and (weights < 0).any():
        raise ValueError(f'The kernel "{kernel.name}" must return weights of 0 or more, got {float(weights.min()):.3g}. If '
                         "weights may be negative, let it say may_be_negative = True.")
    return weights.astype(float, copy=False)


def attention(run: Trajectory, at: int = -1) -> np.ndarray:
    """The attention matrices (*batch, h, n, n) of a run at its saved time number `at`."""
    try:
        at = operator.index(at)
    except TypeError:
        raise TypeError(f"attention(run, at=) takes the number of a saved time, got {at!r}.") from None
    count = len(run.times)
    if not -count <= at < count:
        raise IndexError(f"The run has {count} saved times, numbered 0 to {count - 1}; got at = {at}.")
    at %= count
    states, log_scale = run.scaled_x(slice(at, at + 1))
    return attention_matrices(run.dynamics, states[..., 0, :, :], log_scale[..., 0])
