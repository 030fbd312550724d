"""Several heads with V_h = v_h I and fewer tokens than coordinates: tokens as combinations of the
first ones.

Every velocity is a combination of tokens, so x_i(t) = sum_j A_ij(t) X_j with the different first
tokens X (m, d), and

    A' = sum_h v_h P^h A,      P^h_ij = softmax_j( (A G_h A^T)_ij ),      G_h = beta X Q_h^T K_h X^T.

This is the same equation in m coordinates, with G_h in place of M_h, and it begins at A_ij = 1 where
token i is X_j, else 0. Nothing is projected: only the scores G_h of the first tokens are rounded, and
the bound of that is part of the problem. Any V_h that is not a multiple of I would act on X.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.limits.allowance import Allowance
from attnlab.limits.heads.problem import merged
from attnlab.limits.problem import EPSILON
from attnlab.limits.products import scores_between
from attnlab.limits.reasons import SHARED, sentence
from attnlab.limits.state import State, start_digest
from attnlab.limits.undecided import undecided
from attnlab.types import Dynamics, Limit, Weights

LEAST_COORDINATES = 9
"""In fewer coordinates nothing is gained."""


@dataclass(frozen=True, eq=False)
class Span:
    """An equation in the span of its first tokens."""

    frame: np.ndarray  # (m, d): the different first tokens
    number: np.ndarray  # (n,): which of them each token is
    dynamics: Dynamics  # in m coordinates
    M_error: np.ndarray  # (h, m, m): of beta G_h

    @property
    def start(self) -> np.ndarray:
        """The first tokens as combinations of themselves, (n, m)."""
        return np.eye(len(self.frame))[self.number]

    def lifted(
        self, limit: Limit, common: dict[str, Any], begin: float, allowance: Allowance
    ) -> Limit:
        """The Limit (of `dynamics`) in the coordinates of the equation itself, whose first tokens etc.
        are `common`.
        """
        frame, d = self.frame, self.frame.shape[1]
        # at the time 0, not `begin`
        x0 = common["x0"] if begin == 0.0 else limit.x0 @ frame
        with np.errstate(over="ignore", invalid="ignore"):
            z = limit.z @ frame if limit.z.size else np.zeros((len(limit.times), *x0.shape))
        shared = {
            **common,
            "x0": x0,
            "t": limit.t,
            "times": limit.times,
            "z": z,
            "path": z,
            "stats": limit.stats,
        }
        if not limit.certified:
            return undecided(shared, len(x0), np.eye(d), limit.reason)
        error = lifted_error(limit.points, limit.error, frame)
        points = limit.points @ frame
        token = find_close(limit.labels, points, error)
        if token is not None:
            reason = (
                f"Undecided (close limits) at t = {limit.t:.4g}:"
                f" {sentence('close limits', allowance, SHARED)}. Open: the limit of token {token}."
            )
            return undecided(shared, len(x0), np.eye(d), reason)
        held = {f"inside_{name}": value for name, value in limit.state.values.items()} | {
            "inside_way": np.array(limit.state.way),
            "inside_points": limit.points,
            "inside_error": limit.error,
            "inside_z": limit.z,
            "frame": frame,
            "number": self.number,
            "begin": limit.state.values["begin"],
            "start_digest": start_digest(common["dynamics"], x0),
        }
        first, rest = limit.certificate.split("\n\n", 1)
        lines = [
            f"span                 {len(frame)} different first tokens X in R^{d}, x_i = sum_j A_ij X_j:"
            " the numbers below are those of A",
            rest,
            f"error in R^{d:<9} {error.max():.2g}",
        ]
        return dataclasses.replace(
            limit,
            **shared,
            basis=np.eye(d),
            points=points,
            error=float(error.max()),
            certificate="\n\n".join([first, "\n".join(lines)]),
            state=State("span", held),
        )


def find_span(dynamics: Dynamics, x0: np.ndarray) -> Span | None:
    """The Span of first tokens x0 (n, d) under several heads; None where V_h are not all multiples of
    I to the last bit, or nothing is gained.
    """
    weights = dynamics.weights
    if weights.is_factored or weights.d < LEAST_COORDINATES:
        return None
    frame, number = np.unique(x0, axis=0, return_inverse=True)
    m, values = len(frame), weights.full_V[:, 0, 0]
    if m >= weights.d or not np.array_equal(
        weights.full_V, values[:, None, None] * np.eye(weights.d)
    ):
        return None
    found = scores_between(weights, frame)
    if found is None:
        return None
    scores, error = found
    inside = Weights(
        Q=np.tile(np.eye(m), (weights.heads, 1, 1)),
        K=scores,
        V=values[:, None, None] * np.eye(m),
        source=weights.source,
    )
    if [heads for heads, _ in merged(inside)] != [heads for heads, _ in merged(weights)]:
        return None  # scores of two heads that differ only outside the span
    size = abs(dynamics.beta)
    M_error = size * error + EPSILON * size * np.abs(scores)
    reduced = dataclasses.replace(dynamics, weights=inside)
    return Span(frame, number.ravel(), reduced, M_error)


def lifted_error(points: np.ndarray, error: float, frame: np.ndarray) -> np.ndarray:
    """How far points @ frame, (n, d), may be off along each coordinate, (d,): points (n, m) are off by
    at most `error`, and the product is rounded.
    """
    size = np.abs(frame)
    rounding = EPSILON * (len(frame) + 2.0) * (np.abs(points) @ size).max(axis=0, initial=0.0)
    return np.asarray(error * size.sum(axis=0) + rounding)


def find_close(labels: np.ndarray, points: np.ndarray, error: np.ndarray) -> int | None:
    """A token whose limit, of points (n, d), cannot be told apart from that of another label within
    the error (d,), if there is one. Combinations of tokens that depend on each other may be equal.
    """
    first = np.unique(labels, return_index=True)[1]
    for number, i in enumerate(first):
        others = first[number + 1 :]
        is_distinct = (np.abs(points[i] - points[others]) > 2.0 * error).any(axis=1)
        if not is_distinct.all():
            return int(others[np.argmin(is_distinct)])
    return None
