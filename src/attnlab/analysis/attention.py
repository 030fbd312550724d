"""Properties of an attention matrix P (..., n, n): its ranks, its entropy, its leaders, and its
Boolean rows.

P_ij is the weight that token i gives to token j; rows sum to 1.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis import observables, over_leading_axes
from attnlab.analysis.under_way import ValueAt, time_by_time
from attnlab.dynamics import attention
from attnlab.types import Trajectory

BOOLEAN_GAP = 40.0
"""A row counts as Boolean if every other weight is below e^{-40} = 4e-18 of the largest, below
double precision.
"""

NUMBERS_A_PAIR = 6
"""Arrays of the size of P that are held at once while P is computed: scores, gaps, exponents,
weights and their copies.
"""


def attention_rank(P: np.ndarray) -> np.ndarray:
    """The numerical rank of P (..., n, n) -> (...): singular values above n eps times the largest,
    as the paper counts.
    """
    return over_leading_axes(np.linalg.matrix_rank, np.asarray(P, dtype=float))


def eigenvalue_moduli(P: np.ndarray) -> np.ndarray:
    """|eigenvalues| of a matrix P (n, n), largest first (n,)."""
    return -np.sort(-np.abs(np.linalg.eigvals(P)))


def effective_rank(P: np.ndarray) -> np.ndarray:
    """exp(-sum_k p_k log p_k), p the singular values over their sum, of P (..., n, n) -> (...):
    from 1 to n, continuous.
    """
    return over_leading_axes(
        lambda matrix: np.exp(_entropy(_normalised_singular_values(matrix))),
        np.asarray(P, dtype=float),
    )


def _normalised_singular_values(matrix: np.ndarray) -> np.ndarray:
    values = np.linalg.svd(matrix, compute_uv=False)
    return values / values.sum()


def _entropy(p: np.ndarray) -> np.ndarray:
    """-sum p log p over the last axis, 0 log 0 = 0."""
    return -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=-1)


def row_entropy(P: np.ndarray) -> np.ndarray:
    """-sum_j P_ij log P_ij of each row of P (..., n, n) -> (..., n): 0 for a Boolean row, log n for
    a uniform one.
    """
    return _entropy(np.asarray(P, dtype=float))


def received(P: np.ndarray) -> np.ndarray:
    """The share of all attention that each token receives, (1/n) sum_i P_ij, P (..., n, n) -> (...,
    n).
    """
    return np.mean(P, axis=-2)


def leaders(P: np.ndarray) -> np.ndarray:
    """The token that each row attends to most, argmax_j P_ij (the first in a tie), P (..., n, n) ->
    (..., n) integers.
    """
    return np.argmax(P, axis=-1)


def log_weights(P: np.ndarray) -> np.ndarray:
    """log(P_ij / max_l P_il), P (..., n, n) -> the same shape: 0 at the leader, minus infinity
    where P underflows.
    """
    P = np.asarray(P, dtype=float)
    with np.errstate(divide="ignore"):
        return np.log(P / P.max(axis=-1, keepdims=True))


def is_boolean_row(P: np.ndarray, gap: float = BOOLEAN_GAP) -> np.ndarray:
    """Whether all log-weights of a row but the largest are below -gap, P (..., n, n) -> (..., n) of
    bool (Theorem 2.1).
    """
    logarithms = log_weights(P)
    if logarithms.shape[-1] == 1:
        return np.ones(logarithms.shape[:-1], dtype=bool)
    return np.partition(logarithms, -2, axis=-1)[..., -2] < -gap


@observables.register("attention_rank")
@time_by_time(NUMBERS_A_PAIR)
def observe_attention_rank(run: Trajectory) -> ValueAt:
    """The numerical rank of the attention matrix of each head, (*batch, T, h)."""
    return lambda at: attention_rank(attention(run, at=at))


@observables.register("attention_entropy")
@time_by_time(NUMBERS_A_PAIR)
def observe_attention_entropy(run: Trajectory) -> ValueAt:
    """The entropy of the attention rows, averaged over the tokens, of each head, (*batch, T, h)."""
    return lambda at: row_entropy(attention(run, at=at)).mean(axis=-1)


def score_gaps(run: Trajectory) -> np.ndarray:
    """Return the scores of a run less the largest of each row, (T, h, n, n): 0 at the leader.

    They say how Boolean attention is where 1 - max P underflows. The growth of the tokens is
    multiplied last, so that nothing overflows before.
    """
    states, log_scale = run.scaled_x()
    weights, x = run.dynamics.weights, states[:, None]
    keys = np.swapaxes(x @ np.swapaxes(weights.K, 1, 2), -1, -2)
    scores = (x @ np.swapaxes(weights.Q, 1, 2)) @ keys
    factor = np.exp(np.minimum(2 * log_scale, 600.0))[:, None, None, None]
    return np.asarray((scores - scores.max(axis=-1, keepdims=True)) * factor)


def log_leaks(gaps: np.ndarray) -> np.ndarray:
    """Return log(1 - max_j P_ij), (..., n), of gaps (..., n, n) as `score_gaps` gives them."""
    from scipy.special import logsumexp

    others = gaps.copy()
    np.put_along_axis(others, gaps.argmax(axis=-1)[..., None], -np.inf, axis=-1)
    odds = logsumexp(others, axis=-1)
    return np.asarray(odds - np.logaddexp(0.0, odds))


def log_unevenness(gaps: np.ndarray) -> np.ndarray:
    """Return the log of the largest |n P_ij - 1|, (T,), of gaps (T, h, n, n): -inf if uniform."""
    from scipy.special import softmax

    uneven = np.abs(gaps.shape[-1] * softmax(gaps, axis=-1) - 1)
    return np.asarray(np.log(uneven.max(axis=(1, 2, 3))))


def second_if_unrelated(P: np.ndarray, shuffles: int = 4) -> float:
    """Return |lambda_2| / H of the sum of H heads P (H, n, n) if they were unrelated.

    Each head keeps its rows, and which token has which row is drawn again, independently for each
    head. The mean over the shuffles.
    """
    rng, (heads, n, _) = np.random.default_rng(0), P.shape
    sums = [np.sum([one[rng.permutation(n)] for one in P], axis=0) for _ in range(shuffles)]
    return float(np.mean([np.sort(np.abs(np.linalg.eigvals(one)))[-2] for one in sums]) / heads)
