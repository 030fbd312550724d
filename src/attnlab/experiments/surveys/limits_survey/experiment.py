"""Certified limits of many starts: how many there are in F, in 128 dimensions, and with V = I."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.analysis.self_leaders import self_leaders
from attnlab.engine import simulate
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.types import Limit, Weights
from attnlab.weights import weights_families

PAPER_T = 5.0
"""The time at which the paper's figures stop."""

WATCHED = np.arange(0.0, 61.0)
"""Times at which clusters are counted."""

RESOLUTIONS = (0.01, 0.05)
"""Tokens within this part of the diameter make one cluster, single linkage."""

SYSTEMS = (
    ("C9", 30, 200),
    ("diag(1, 0.9, -0.5)", 30, 200),
    ("diag(1.2, 0.8, -0.5)", 30, 100),
    ("C9", 10, 100),
    ("C9", 100, 50),
)
"""V, tokens, starts; C9 is the paper's matrix."""

NUDGES = (0.0, 1e-9, 1e-6, 1e-3)
"""By which the symmetric example is perturbed."""

DIMENSIONS = ((32, 20), (64, 10), (128, 4))
"""d = n, draws."""

SMALL_DIMENSION = (12, 2)
DIMENSION_WORK = {12: 7.5e6, 32: 7.5e6, 64: 1.5e7, 128: 5e7}
POLYTOPE_WORK, SECONDS = 7.5e6, 3600.0
"""Units of work, and a cap in seconds that is not reached: the work decides, so that the machine
does not.
"""

LAWS = {"u5": "uniform [-5, 5]^d", "u1": "uniform [-1, 1]^d", "g5": "Gaussian, deviation 5"}
TOKENS = {10: 40, 20: 40, 50: 40, 100: 40, 200: 20, 500: 8, 1000: 4}
"""Tokens for V = I: starts."""

OWN_SIZES = (100, 1000, 10_000, 100_000)
OWN_STARTS = {"full": 100, "small": 30}


def value_matrix(name: str) -> np.ndarray:
    """V of one of SYSTEMS: the paper's matrix, or a diagonal one."""
    if name == "C9":
        return np.asarray(weights_families["published"](matrix="codimension").V[0])
    return np.diag(
        [float(entry) for entry in name.removeprefix("diag(").removesuffix(")").split(", ")]
    )


def row_of(end: Limit) -> dict[str, Any]:
    """What is kept of a Limit; count is -1 where it is undecided."""
    sizes = sorted(np.bincount(end.labels).tolist(), reverse=True) if end.certified else []
    leaders = np.unique(end.leaders).tolist() if end.certified else []
    return {
        "count": -1 if end.count is None else int(end.count),
        "grade": str(end.grade),
        "t": float(end.t),
        "events": len(end.events),
        "error": float(end.error),
        "k": int(end.basis.shape[1]),
        "sizes": " + ".join(map(str, sizes)),
        "leaders": ", ".join(map(str, leaders)),
        "reason": end.reason,
    }


def count_in_codimension(context: Context, matrix: str, n: int, start: int) -> dict[str, Any]:
    """The limit of n tokens from [-5, 5]^3, and the clusters that one counts on the way."""
    weights = Weights(V=value_matrix(matrix))
    x0 = np.random.default_rng([1, n, start]).uniform(-5.0, 5.0, (n, 3))
    end = limit(weights, x0, times=WATCHED)
    path = end.path
    assert path is not None
    values, vectors = np.linalg.eigh(
        weights.V[0]
    )  # V is symmetric: projections on F are orthogonal
    early = simulate(weights, x0, t_end=PAPER_T).rescaled[-1] @ end.basis
    row = {
        **row_of(end),
        "seen": np.array([clusters(tokens, RESOLUTIONS[0]) for tokens in path]),
        "early": np.array([clusters(early, share) for share in RESOLUTIONS]),
        "sides": -1,
        "is_extreme": -1,
        "check": float(np.abs(early - path[WATCHED.tolist().index(PAPER_T)]).max()),
        "first": float(values[-1]),
        "gap": float(values[-1] - values[-2]),
    }
    if end.certified:
        along = x0 @ vectors[:, -1]
        row["sides"] = len(np.unique(np.sign(end.limits @ vectors[:, -1])))
        row["is_extreme"] = int(
            set(np.unique(end.leaders)) == {int(np.argmax(along)), int(np.argmin(along))}
        )
    return row


def clusters(tokens: np.ndarray, share: float) -> float:
    """How many groups one sees in tokens (n, k) at that share of their diameter; NaN where they are
    not known.
    """
    return (
        float(cluster_count(tokens, share * float(diameter(tokens))))
        if np.isfinite(tokens).all()
        else float("nan")
    )


def count_symmetric(context: Context, nudge: float) -> dict[str, Any]:
    """Four tokens on the axes, V = diag(1.2, 0.8), perturbed by a nudge."""
    x0 = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    end = limit(
        Weights(V=np.diag([1.2, 0.8])),
        x0 + nudge * np.random.default_rng(0).standard_normal((4, 2)),
    )
    return {
        **row_of(end),
        "largest": float(np.abs(end.limits).max()) if end.certified else float("nan"),
    }


def count_in_dimension(context: Context, d: int, draw: int) -> dict[str, Any]:
    """The limit of d tokens from [-1/2, 1/2]^d, V as the paper draws it."""
    rng = np.random.default_rng([11, d, draw])
    A = rng.random((d, d)) * (rng.random((d, d)) < 0.1)
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    is_small = np.abs(values) <= 1.0
    values[is_small] = np.sign(values[is_small]) * rng.uniform(1.0, 2.0, int(is_small.sum()))
    x0 = rng.uniform(-0.5, 0.5, (d, d))
    end = limit(
        Weights(V=(vectors * values) @ vectors.T), x0, work=DIMENSION_WORK[d], budget=SECONDS
    )
    least, *_, second, first = np.sort(values).tolist()
    return {**row_of(end), "first": first, "second": second, "least": least, "gap": first - second}


def grids(part: str, size: str) -> list[Grid]:
    """The starts of every system; the draws of every dimension; the starts with V = I of every
    dimension and law.
    """
    is_full = size == "full"
    if part == "systems":
        return grids_of(
            "matrix, n, start", [(*case, starts if is_full else 2) for *case, starts in SYSTEMS]
        )
    if part == "dimensions":
        return grids_of("d, draw", DIMENSIONS if is_full else [SMALL_DIMENSION])
    tokens = TOKENS if is_full else dict.fromkeys((10, 20, 50), 3)
    return grids_of(
        "d, law, n, start",
        [(d, law, n, starts) for d in (2, 3) for law in LAWS for n, starts in tokens.items()],
    )


def draw_start(law: str, n: int, d: int, start: int) -> np.ndarray:
    """n tokens in R^d; both cubes have the same draws."""
    rng = np.random.default_rng([3, n, d, start])
    return (
        5.0 * rng.standard_normal((n, d))
        if law == "g5"
        else {"u5": 5.0, "u1": 1.0}[law] * rng.uniform(-1.0, 1.0, (n, d))
    )


def count_vertices(context: Context, d: int, law: str, n: int, start: int) -> dict[str, Any]:
    """The limit for V = I; the start's hull, and the tokens of the start that attend to themselves
    most.
    """
    x0 = draw_start(law, n, d, start)
    end = limit(Weights(V=np.eye(d)), x0, work=POLYTOPE_WORK, budget=SECONDS)
    own = self_leaders(x0)
    row = {
        **row_of(end),
        "hull": len(convex_hull(x0).vertices),
        "own": len(own),
        "vertices": -1,
        "led_by_own": -1,
    }
    if end.certified:
        row["vertices"] = len(
            convex_hull(end.limits[np.unique(end.labels, return_index=True)[1]]).vertices
        )
        row["led_by_own"] = len(np.intersect1d(own, end.leaders))
    return row


def count_self_leading(context: Context, d: int, n: int) -> dict[str, Any]:
    """The mean number of self-leading tokens of uniform starts in a cube; all of them are vertices
    of the hull.
    """
    found = []
    for start in range(OWN_STARTS[context.size]):
        x0 = np.random.default_rng([4, n, d, start]).uniform(-1.0, 1.0, (n, d))
        found.append(len(self_leaders(x0[convex_hull(x0).vertices])))
    return {
        "mean": float(np.mean(found)),
        "error": float(np.std(found, ddof=1) / np.sqrt(len(found))),
    }


def assemble(results: Results) -> dict[str, Any]:
    """A table for each question."""
    axes = {"seen": ["time"], "early": ["resolution"]}
    return {part: table_of_rows(results.rows(part), axes=axes) for part in results.found}


compute = Parts(
    {
        "systems": Part(
            count_in_codimension, partial(grids, "systems"), "V = {matrix}, {n} tokens", share=0.15
        ),
        "symmetric": Part(count_symmetric, Grid({"nudge": NUDGES}), "symmetric tokens", share=0.01),
        "dimensions": Part(
            count_in_dimension,
            partial(grids, "dimensions"),
            "{d} dimensions",
            share=0.3,
            work=lambda d, draw: d**3,
        ),
        "polytopes": Part(
            count_vertices,
            partial(grids, "polytopes"),
            "V = I, {n} tokens",
            share=0.5,
            work=lambda d, law, n, start: n**2,
        ),
        "self_leading": Part(
            count_self_leading,
            Grid({"d": (2, 3), "n": OWN_SIZES}, small={"n": OWN_SIZES[:3]}),
            "{n} tokens of a cube",
            share=0.04,
            work=lambda d, n: n,
        ),
    },
    assemble,
)
