"""The attention matrices: P_ij = weight that token i gives to token j, one matrix per head."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, cast

import numpy as np

from attnlab.axes.outputs import check_scores, check_tokens, check_weights
from attnlab.types import Dynamics, Trajectory

if TYPE_CHECKING:
    from attnlab.axes.kernels import ScaledKernel

LARGEST_FACTOR = 1e300
"""Scores contain beta e^{2 log_scale}. Beyond this, any two different scores give weights 0 and
1.
"""


def score_factor(beta: float, log_scale: np.ndarray | float) -> np.ndarray:
    """Return beta e^{log_scale}, bounded so that 0 * factor stays 0."""
    with np.errstate(over="ignore"):
        return np.clip(beta * np.exp(np.asarray(log_scale)), -LARGEST_FACTOR, LARGEST_FACTOR)


def _of_size_one(array: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(array / 2^e, e log 2) with the largest entry over `axes` in [1/2, 1), exactly."""
    exponent = np.frexp(np.abs(array).max(axis=axes, keepdims=True))[1]
    return np.ldexp(array, -exponent), np.squeeze(exponent, axis=axes) * np.log(2.0)


def attention_matrices(
    dynamics: Dynamics, y: np.ndarray, log_scale: np.ndarray | float = 0.0
) -> np.ndarray:
    """Return P (..., h, n, n) of the tokens x = e^{log_scale} y, y (..., n, d): read, scores,
    kernel.

    A ScaledKernel gets the scores and the factor e^{2 log_scale} separately, so that nothing
    overflows.
    """
    if not dynamics.read.is_identity:
        grown = y * np.exp(np.asarray(log_scale))[..., None, None]
        y, log_scale = check_tokens("read", dynamics.read, dynamics.read(grown), grown), 0.0
    # tokens of 1e150, or Q and K of that size, have scores of 1e300: their scales go into the
    # factor
    y, log_y = _of_size_one(y, (-2, -1))
    (Q, log_Q), (K, log_K) = (
        _of_size_one(array, (-3, -2, -1)) for array in (dynamics.weights.Q, dynamics.weights.K)
    )
    y = y[..., None, :, :]  # (..., 1, n, d)
    if not dynamics.scores.is_dot:  # Q and K are then scaled alike
        log_Q = log_K = np.maximum(log_Q, log_K)
        Q, K = (array * np.exp(-log_Q) for array in (dynamics.weights.Q, dynamics.weights.K))
    queries, keys = y @ np.swapaxes(Q, 1, 2), y @ np.swapaxes(K, 1, 2)  # (..., h, n, k)
    n = y.shape[-2]
    scores = check_scores(
        dynamics.scores, dynamics.scores.compare(queries, keys), (*queries.shape[:-1], n)
    )
    factor = score_factor(dynamics.beta, 2.0 * (log_scale + log_y) + log_Q + log_K)[
        ..., None, None, None
    ]
    signed, seen = (
        np.where(factor < 0, -scores, scores),
        np.broadcast_to(dynamics.mask.seen(n), scores.shape),
    )
    if dynamics.kernel.has_scale:
        kernel = cast("ScaledKernel", dynamics.kernel)
        return check_weights(kernel, kernel.scaled_weights(signed, np.abs(factor), seen), scores)
    with np.errstate(over="ignore"):
        finite = np.clip(signed * np.abs(factor), -LARGEST_FACTOR, LARGEST_FACTOR)
    return check_weights(dynamics.kernel, dynamics.kernel.weights(finite, seen), finite)


def attention(run: Trajectory, at: int = -1) -> np.ndarray:
    """Return the attention matrices of a run at one saved time.

    Parameters
    ----------
    run : Trajectory
        The run.
    at : int, optional
        The number of the saved time. The default is the last one.

    Returns
    -------
    array (*batch, h, n, n)
        The matrices P of h heads. Row i has the weights with which token i attends to the tokens.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0)
    >>> bool(np.allclose(al.attention(run, at=0).sum(axis=-1), 1.0))
    True
    """
    try:
        at = operator.index(at)
    except TypeError:
        raise TypeError(
            f"attention(run, at=) takes the number of a saved time, got {at!r}."
        ) from None
    count = len(run.times)
    if not -count <= at < count:
        raise IndexError(
            f"The run has {count} saved times, numbered 0 to {count - 1}; got at = {at}."
        )
    at %= count
    states, log_scale = run.scaled_x(slice(at, at + 1))
    return attention_matrices(run.dynamics, states[..., 0, :, :], log_scale[..., 0])
