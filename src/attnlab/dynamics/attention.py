"""The attention matrices: P_ij = weight that token i gives to token j, one matrix a head."""

from __future__ import annotations

import operator

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
    """P (..., h, n, n) of the tokens x = e^{log_scale} y, y (..., n, d).

        softmax   P_ij = exp(beta s_ij) / sum_l exp(beta s_il),   s_ij = <Q x_i, K x_j>
        exp_mean  P_ij = exp(beta s_ij) / (number of tokens that i sees)
        hardmax   P_ij = 1 / |C_i| on C_i = argmax_j beta s_ij, else 0

    Differences to the row's maximum are taken before the factor e^{2 log_scale}: nothing overflows.
    """
    # tokens of 1e150, or Q and K of that size, have scores of 1e300: their scales go into the factor
    y, log_y = _of_size_one(y, (-2, -1))
    (Q, log_Q), (K, log_K) = (_of_size_one(array, (-3, -2, -1)) for array in (dynamics.weights.Q, dynamics.weights.K))
    y = y[..., None, :, :]                                                     # (..., 1, n, d)
    scores = (y @ np.swapaxes(Q, 1, 2)) @ np.swapaxes(y @ np.swapaxes(K, 1, 2), -1, -2)             # (..., h, n, n)
    n = scores.shape[-1]
    factor = score_factor(dynamics.beta, 2.0 * (log_scale + log_y) + log_Q + log_K)[..., None, None, None]
    signed = np.where(factor < 0, -scores, scores)
    if dynamics.mask == "causal":
        signed = np.where(np.tri(n, dtype=bool), signed, -np.inf)
    top = signed.max(axis=-1, keepdims=True)
    gaps = signed - top                                                        # <= 0, and exactly 0 at the maximum
    if dynamics.kernel == "hardmax":
        chosen = ((gaps == 0) | ((factor == 0) & ~np.isneginf(gaps))).astype(float)      # beta = 0: all are tied
        chosen[np.isnan(gaps)] = np.nan
        return chosen / chosen.sum(axis=-1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        # 0 * inf: a masked entry at factor 0 must stay masked
        exponents = np.where(np.isneginf(gaps), -np.inf, gaps * np.abs(factor))
        relative = np.exp(exponents)
        if dynamics.kernel == "softmax":
            return relative / relative.sum(axis=-1, keepdims=True)
        seen = np.arange(1, n + 1)[:, None] if dynamics.mask == "causal" else n
        return relative * np.exp(top * np.abs(factor)) / seen


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
