"""A LimitView: a Limit made ready for drawing, in one, two or three coordinates.

Only the projection of z on F, the span of the growing directions, has a limit; along the other
directions z is free, and mostly diverges. So every token is drawn with its free part as it was at
the start: it moves along F alone, to its limiting set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.colors import to_rgb
from scipy.linalg import LinAlgError, solve_sylvester

from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import MARKERS, NOTE, PALETTE, subscript
from attnlab.types import Limit


@dataclass(frozen=True, eq=False)
class LimitView:
    """What is drawn of a Limit, in m coordinates.

    lines (T, n, m): start, the times asked for, and the limiting set (which is missing where
    nothing is decided). marks (count, m): the limits, in the order of `groups`, which are lists of
    tokens, largest first. Where F = {0}: the places of x, if they are known. free (m, m - k): the
    directions along which z has no limit; none in a projection. times: of the rows of `lines`
    between the first and the limit. leaders: numbers of tokens. axes: a label a coordinate. paper:
    what the figure is drawn for.
    """

    limit: Limit
    lines: np.ndarray
    marks: np.ndarray
    groups: Sequence[np.ndarray]
    free: np.ndarray
    times: np.ndarray
    leaders: np.ndarray
    axes: Sequence[str]
    is_projected: bool = False
    paper: Paper = SCREEN

    @property
    def starts(self) -> np.ndarray:
        """The tokens at the start, (n, m)."""
        return self.lines[0]

    @property
    def size(self) -> float:
        """What the areas of marks are multiplied with."""
        return 0.45 if self.paper.is_narrow else 1.0

    @property
    def m(self) -> int:
        """The number of coordinates drawn."""
        return self.lines.shape[-1]

    @property
    def has_ends(self) -> bool:
        """Whether there are limits to draw."""
        return len(self.marks) > 0

    @property
    def group_colours(self) -> np.ndarray:
        """A colour a group, (groups, 3); grey where nothing is known."""
        if not self.has_ends:
            return np.array([to_rgb(NOTE)])
        return np.array([to_rgb(PALETTE[k % len(PALETTE)]) for k in range(len(self.groups))])

    @property
    def group_markers(self) -> list[str]:
        """A marker a group: another one when the colours begin again."""
        return [MARKERS[k // len(PALETTE) % len(MARKERS)] for k in range(len(self.groups))]

    @property
    def colours(self) -> np.ndarray:
        """A colour a token, (n, 3)."""
        colours = np.empty((len(self.starts), 3))
        for group, colour in zip(self.groups, self.group_colours, strict=True):
            colours[group] = colour
        return colours


def make_view(limit: Limit, paper: Paper = SCREEN) -> LimitView:
    """The LimitView of a Limit: the user's coordinates up to d = 3, else the fastest two of F, or
    the only one.
    """
    return replace(_view(limit), paper=paper)


def _view(limit: Limit) -> LimitView:
    n, d = limit.x0.shape
    k = limit.basis.shape[1]
    is_reached = np.isfinite(limit.z).all(axis=(1, 2)) if len(limit.times) else np.zeros(0, bool)
    history = np.concatenate([limit.x0[None], limit.z[is_reached].reshape(-1, n, d)])
    times = limit.times[is_reached]
    names = ["z"] if d == 1 else [f"z{subscript(i + 1)}" for i in range(d)]
    if k == 0 or not limit.certified:  # nothing converges, or it is not known where to
        shown = d if d <= 3 else 2
        if limit.places is not None:  # but x does, and z is not drawn
            groups = _groups(limit.labels)
            places, own = (
                limit.places[:, :shown],
                [name.replace("z", "x") for name in names[:shown]],
            )
            return LimitView(
                limit,
                np.stack([limit.x0[:, :shown], places]),
                places[[group[0] for group in groups]],
                groups,
                np.empty((shown, 0)),
                times[:0],
                np.empty(0, dtype=int),
                own,
                d > shown,
            )
        lines, times = (history[:1], times[:0]) if limit.certified else (history, times)
        return LimitView(
            limit,
            lines[..., :shown],
            np.empty((0, shown)),
            [np.arange(n)],
            np.empty((shown, 0)),
            times,
            np.empty(0, dtype=int),
            names[:shown],
            d > shown,
        )
    groups = _groups(limit.labels)
    firsts = [group[0] for group in groups]
    named = limit.leaders if limit.head_leaders is None else limit.head_leaders
    leaders = np.unique(named[named >= 0])
    dual, free = dual_basis(limit)
    inside = history @ dual.T  # (T, n, k): coordinates in F
    if d <= 3:
        moved = np.concatenate([inside, limit.points[None]]) - inside[0]
        lines = limit.x0 + moved @ limit.basis.T  # the free part as at the start
        return LimitView(limit, lines, limit.limits[firsts], groups, free, times, leaders, names)
    growth = np.diag(dual @ limit.dynamics.weights.total.dense() @ limit.basis)
    chosen = fastest(growth, np.ptp(limit.points, axis=0))
    lines = np.concatenate([inside, limit.points[None]])[..., chosen]
    labels = [_name(limit.basis, i, names, float(growth[i])) for i in chosen]
    return LimitView(
        limit,
        lines,
        limit.points[firsts][:, chosen],
        groups,
        np.empty((len(chosen), 0)),
        times,
        leaders,
        labels,
        len(chosen) < k,
    )


def fastest(growth: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The numbers of the two fastest coordinates (of the only one); of equally fast ones those
    spread widest.
    """
    rank = -np.round(
        growth / max(float(np.abs(growth).max()), 1e-300), 9
    )  # rounded: equal up to rounding is equal
    chosen = np.lexsort([-spread, rank])[:2]
    return chosen[np.lexsort([chosen, rank[chosen]])]


def _name(basis: np.ndarray, column: int, names: Sequence[str], growth: float) -> str:
    """What a coordinate in F is called: as the user's own, where it is one."""
    places = np.flatnonzero(basis[:, column])
    if len(places) == 1 and basis[places[0], column] == 1.0:
        return names[places[0]]
    return (
        f"coordinate {column + 1} in F, growth {growth:.3g}"
        if basis.shape[1] > 1
        else f"coordinate in F, growth {growth:.3g}"
    )


def dual_basis(limit: Limit) -> tuple[np.ndarray, np.ndarray]:
    """(dual, free), for k > 0: a token x has coordinates dual @ x in F, dual (k, d); columns of
    free (d, d - k) span the rest.

    F is invariant under W = sum_h V_h: in an orthonormal basis that begins with one of F, W is [[S,
    R], [0, T]], and S X - X T = -R gives the other invariant subspace, the columns of [X; I].
    """
    basis, (d, k) = limit.basis, limit.basis.shape
    if k == d:
        return np.linalg.inv(basis), np.empty((d, 0))
    orthonormal = np.linalg.qr(basis, mode="complete")[0]
    W = orthonormal.T @ limit.dynamics.weights.total.dense() @ orthonormal
    try:
        X = solve_sylvester(W[:k, :k], -W[k:, k:], -W[:k, k:])
    except LinAlgError:
        raise ValueError(
            "The growing directions of V cannot be separated from the others: this Limit cannot be"
            " drawn."
        ) from None
    coordinates = (
        np.hstack([np.eye(k), -X]) @ orthonormal.T
    )  # (k, d), in the orthonormal basis of F
    dual = np.linalg.solve(orthonormal[:, :k].T @ basis, coordinates)
    return dual, orthonormal @ np.vstack([X, np.eye(d - k)])


def _groups(labels: np.ndarray) -> list[np.ndarray]:
    """The tokens of each label, largest group first; ties go by the smallest token number."""
    found = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return sorted(found, key=lambda group: (-len(group), int(group[0])))
