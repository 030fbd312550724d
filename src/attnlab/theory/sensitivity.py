"""The sensitivity of the velocity to the tokens along a path. The estimates about two nearby
solutions use it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from attnlab.dynamics.attention import attention_matrices
from attnlab.engine import simulate
from attnlab.theory.evidence import Evidence
from attnlab.types import Dynamics, Status, Weights
from attnlab.verdicts import Measured

MOST_SPANS = 48
"""The number of pieces of a run."""

WORK = 1e8
"""The most entries of attention matrices in a check. Further pieces are left out, evenly, but at
least four stay.
"""

LARGEST = 1e100
"""Tokens beyond this size are not solved again: their squares leave the range of double."""

JUMP = 0.3
"""If a row of attention changes by more than this between neighbours on a path, the change between
them is unresolved.
"""


def sensitivity(dynamics: Dynamics, x: np.ndarray) -> float:
    """A bound of the Jacobian of the velocity at the tokens x (n, d), as a map of (R^d)^n with the
    norm max_i |x_i|.

        |V| + beta |M^T x_i| sum_m P_im |V a_m| + beta sum_m P_im |V a_m| |M a_m|,      a_m = x_m - sum_l P_il x_l,

    the largest over i; several heads add up. From df_i/dx_m = P_im V (I + a_m (beta M^T x_i)^T),
    and V Cov_i beta M^T more where m = i. With |x_i| <= R it is at most |V| (1 + 2 beta |M| R^2).
    """
    from scipy.spatial.distance import cdist

    P, weights, beta = attention_matrices(dynamics, x), dynamics.weights, abs(dynamics.beta)
    total = np.zeros(len(x))
    for head, (M, V) in enumerate(zip(weights.M, weights.full_V, strict=True)):
        size, towards = np.linalg.norm(V, 2), beta * np.linalg.norm(x @ M, axis=1)  # (n,)
        mean = P[head] @ x
        moved, scored = (
            cdist(mean @ A.T, x @ A.T) for A in (V, beta * M)
        )  # of V a_m and beta M a_m, (n, n)
        total += size + (P[head] * moved * (towards[:, None] + scored)).sum(axis=1)
    return float(total.max())


def is_attention_known(dynamics: Dynamics, x: np.ndarray, error: float) -> bool:
    """Whether tokens x (n, d), with this error relative to the largest, still determine which token
    attends to which.

    Late in a run tokens of a cluster are closer than their error, so the leader is unknown and no
    linear bound holds.
    """
    reach = float(np.linalg.norm(x, axis=1).max()) ** 2
    for M in dynamics.beta * dynamics.weights.M:
        blur = 2.0 * float(np.linalg.norm(M, 2)) * reach * max(error, 1e-16)
        scores = x @ M @ x.T
        if dynamics.mask.is_causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        best = np.sort(scores, axis=1)[:, ::-1]
        if blur > 0.05 and len(x) > 1 and (best[:, 0] - best[:, 1] <= 2.0 * blur + 5.0).any():
            return False
    return True


def exponent(dynamics: Dynamics, times: np.ndarray, *paths: np.ndarray) -> float:
    """Return an upper sum of the sensitivity over times (T,), the largest over paths (T, n, d) and
    their middle.

    It is NaN if the paths are not resolved: attention jumps from one time to the next, or differs
    between paths. The sensitivity may then have a peak between them.
    """
    shown = [*paths, np.mean(paths, axis=0)] if len(paths) > 1 else list(paths)
    P = np.array([attention_matrices(dynamics, path) for path in shown])  # (paths, T, h, n, n)
    jumps = [np.abs(np.diff(P, axis=axis)).sum(axis=-1).max(initial=0.0) for axis in (0, 1)]
    if not max(jumps) <= JUMP:
        return float("nan")
    rates = np.array([[sensitivity(dynamics, x) for x in path] for path in shown]).max(
        axis=0
    )  # (T,)
    return float(np.sum(np.diff(times) * np.maximum(rates[1:], rates[:-1])))


def follow_paths(
    dynamics: Dynamics,
    starts: Sequence[np.ndarray],
    length: float,
    saves: int,
    *,
    is_backward: bool = False,
) -> tuple[float, list[np.ndarray]] | None:
    """Return (exponent, paths (saves, n, d)) of the flow, or the flow back, from each start (n, d);
    None if that fails.

    If attention changes fast, the paths get eight times as many times. If that is not enough, the
    exponent is NaN.
    """
    allowed, paths = float("nan"), None
    for number in (saves, 8 * saves - 7):
        found = [_solve(dynamics, x, length, number, is_backward) for x in starts]
        paths = [path for path in found if path is not None]
        if len(paths) < len(starts):
            return None
        allowed = exponent(dynamics, np.linspace(0.0, length, number), *paths)
        if allowed == allowed:
            break
    assert paths is not None
    return allowed, paths


def _solve(
    dynamics: Dynamics, x: np.ndarray, length: float, saves: int, is_backward: bool
) -> np.ndarray | None:
    """Return the path (saves, n, d) from x (n, d), or None if it fails. Backward: -V instead of V,
    with the same attention.
    """
    weights = dynamics.weights
    if is_backward:
        V = (-weights.V[0], weights.V[1]) if isinstance(weights.V, tuple) else -weights.V
        weights = Weights(Q=weights.Q, K=weights.K, V=V)
    run = simulate(
        dynamics.replace(weights=weights),
        x,
        t_end=length,
        saves=saves,
        rtol=1e-11,
        throw=False,
        max_steps=2000,
    )
    if run.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return np.array(run.x) if run.status is Status.OK else None


def one_time(bound: float, resolution: float) -> Measured:
    """Return the result for a single saved time: nothing can be measured."""
    return Measured(
        np.nan,
        bound,
        np.nan,
        resolution,
        "",
        needs="a run with at least two saved times would decide",
    )


def decisive(values: np.ndarray, errors: np.ndarray, bound: float, is_seen: np.ndarray) -> int:
    """Return the number of the decisive piece: one that breaks the bound by more than its error,
    else the largest one seen.
    """
    broken = int(np.nanargmax(values - errors))
    if values[broken] - errors[broken] > bound:
        return broken
    if is_seen.any():
        return int(np.argmax(np.where(is_seen, values, -np.inf)))
    return int(
        np.nanargmin(np.where(np.isfinite(values - errors), errors, np.nan))
    )  # none is seen: its error says why


@dataclasses.dataclass(frozen=True)
class Span:
    """A piece of a run from the saved time number `first` to number `last`, with the tokens at its
    ends (n, d).
    """

    first: int
    last: int
    start: np.ndarray
    end: np.ndarray
    length: float
    saves: int

    @property
    def sizes(self) -> tuple[float, float]:
        """The size of the largest token at either end."""
        return float(np.linalg.norm(self.start, axis=1).max()), float(
            np.linalg.norm(self.end, axis=1).max()
        )


def spans(evidence: Evidence, *, paths: int = 1) -> Iterator[Span]:
    """Yield the pieces of a run, end to end; for large runs only some. Pieces with too large tokens
    are left out.
    """
    run = evidence.run
    states, log_scale = run.scaled_x()
    x = states * np.exp(np.clip(log_scale, -230.0, 230.0))[:, None, None]
    size = np.abs(x).max(axis=(1, 2))
    reachable = (np.abs(log_scale) < 230.0) & (size < LARGEST) & (size > 0)
    count = min(len(run.times) - 1, MOST_SPANS)
    ends = np.unique(np.linspace(0, len(run.times) - 1, count + 1).round().astype(int))
    affordable = max(int(WORK / (paths * 9 * run.dynamics.weights.heads * run.n**2)), 4)
    chosen = np.unique(np.linspace(0, count - 1, min(count, affordable)).round().astype(int))
    for first, last in zip(ends[:-1][chosen], ends[1:][chosen], strict=True):
        if reachable[first] and reachable[last]:
            yield Span(
                int(first),
                int(last),
                x[first],
                x[last],
                float(run.times[last] - run.times[first]),
                9,
            )
