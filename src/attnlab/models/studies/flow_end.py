"""The certified end of a flow, in words and numbers: which tokens end together, which one leads, and
until when this holds.

With a complex leading pair no leader is the last: the tokens of a group take the lead in turn. Then
the limit holds up to a horizon, which is given in units of 1 / lambda_1 too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import VERBS, Displayed, short_repr
from attnlab.types import Limit, Weights

SHOWN = np.concatenate([np.linspace(0.0, 10.0, 21), np.linspace(12.0, 40.0, 15)])
"""lambda_1 times the times at which a flow shows the rescaled tokens on their way."""

ROTATING = ("rotating group", "rotating groups")
"""The kinds of certificates (`limit.stats["kind"]`) of groups whose leaders rotate."""

GROWS = 1e-9
"""A real part below this part of the largest modulus is 0."""


@dataclass(frozen=True, eq=False)
class FlowEnd(Displayed):
    """What is certified about the end of one head's flow.

    groups: the numbers of the tokens of each group, the largest group first; leaders: the token
    that a group follows in the end, None where that is open, or where leaders rotate. rate: the
    leading eigenvalue of V, the one with the largest real part. period: the time in which the lead
    goes round a rotating group, else None. points (groups, k): along the certified directions, k of
    `growing`, the leading one first. columns (k,): their columns in limit.basis. error: of
    the points, relative to the largest of them.
    """

    grade: str
    groups: tuple[tuple[int, ...], ...]
    leaders: tuple[int | None, ...]
    rate: complex
    decided: float
    horizon: float | None
    period: float | None
    growing: int
    points: np.ndarray
    columns: np.ndarray
    error: float
    __repr__ = short_repr
    instead = dict.fromkeys(VERBS, "It is a part of a Flow. Give the Flow.")

    @property
    def rotates(self) -> bool:
        """Whether the leading eigenvalues are a pair, and a group has two tokens or more."""
        return self.period is not None

    @property
    def record(self) -> dict[str, Any]:
        """The numbers, for JSON; times also in units of 1 / lambda_1."""
        return {
            "groups": [list(group) for group in self.groups],
            "group_leaders": list(self.leaders),
            "rotates": self.rotates,
            "period": self.period,
            "lambda1": self.rate,
            "decided": self.decided,
            "decided_lambda1_t": self.decided * self.rate.real,
            "horizon": self.horizon,
            "horizon_lambda1_t": None if self.horizon is None else self.horizon * self.rate.real,
            "known_directions": self.points.shape[1],
            "growing_directions": self.growing,
            "points": self.points,
            "relative_error": self.error,
        }


def leading_eigenvalue(weights: Weights) -> complex:
    """Return the eigenvalue of V of one head with the largest real part; of a pair the one above
    the axis.
    """
    values = _eigenvalues(weights)
    return complex(values[np.lexsort((-values.imag, -values.real))[0]])


def _eigenvalues(weights: Weights) -> np.ndarray:
    """Return the eigenvalues of V of one head; of V = B C those of C B, and one 0 for its
    kernel.
    """
    if not weights.is_factored:
        return np.linalg.eigvals(weights.V[0])
    B, C = weights.V[0][0], weights.V[1][0]
    return np.append(np.linalg.eigvals(C @ B), [0.0] if len(C) < len(B) else [])


def times_to_show(weights: Weights) -> np.ndarray:
    """Return the times at which a flow shows rescaled tokens on their way; none where nothing
    grows.
    """
    values = _eigenvalues(weights)
    rate = float(values.real.max())
    if not rate > GROWS * float(np.abs(values).max()):
        return np.zeros(0)
    return SHOWN / rate


def read_end(limit: Limit) -> FlowEnd | None:
    """Return what is certified about the groups of a limit of one head; None where nothing is."""
    if limit.count is None or (not limit.certified and limit.horizon is None):
        return None
    labels, leaders = np.asarray(limit.labels), np.asarray(limit.leaders)
    groups = sorted(
        (tuple(map(int, np.flatnonzero(labels == label))) for label in range(limit.count)),
        key=lambda group: (-len(group), group[0]),
    )
    rate = leading_eigenvalue(limit.dynamics.weights)
    rotates = limit.stats.get("kind") in ROTATING and len(groups[0]) > 1
    columns = leading_first(limit)
    points = np.array([limit.points[group[0]] for group in groups])[:, columns]
    size = float(np.abs(limit.points).max(initial=0.0))
    return FlowEnd(
        grade=str(limit.grade),
        groups=tuple(groups),
        leaders=tuple(_leader(leaders[list(group)]) for group in groups),
        rate=rate,
        decided=float(limit.t),
        horizon=limit.horizon,
        period=2.0 * math.pi / abs(rate.imag) if rotates else None,
        growing=int(limit.stats.get("growing", limit.basis.shape[1])),
        points=points,
        columns=columns,
        error=float(limit.error) / size if size > 0.0 else 0.0,
    )


def leading_first(limit: Limit) -> np.ndarray:
    """Return the columns of limit.basis in the order of their rates, the largest first.

    V maps their span to itself. Its matrix there has the rates on the diagonal, those of a pair
    twice.
    """
    basis = np.asarray(limit.basis)
    weights = limit.dynamics.weights
    moved = (
        weights.V[0][0] @ (weights.V[1][0] @ basis) if weights.is_factored else weights.V[0] @ basis
    )
    rates = np.diag(np.linalg.lstsq(basis, moved, rcond=None)[0])
    size = float(np.abs(rates).max(initial=0.0)) or 1.0
    return np.argsort(-np.round(rates / size, 9), kind="stable")  # a pair stays in its order


def _leader(leaders: np.ndarray) -> int | None:
    first = int(leaders[0])
    return first if first >= 0 and (leaders == first).all() else None
