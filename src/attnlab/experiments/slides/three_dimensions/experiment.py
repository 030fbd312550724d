"""Three dimensions: the hull of the tokens shrinks to a polytope, and every further head takes
corners away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.distances import diameter
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.hull import convex_hull, plain_facet_count
from attnlab.analysis.plain_flow import rescaled_by_scipy
from attnlab.analysis.span import in_span
from attnlab.engine import simulate
from attnlab.experiments.common.certified import (
    certified_limit,
    class_points,
    distance_to_limits,
    facts_of,
)
from attnlab.experiments.common.heads import (
    HEADS,
    Trained,
    cube_start,
    real_start,
    synthetic_heads,
)
from attnlab.experiments.common.portraits.run import outward, rescaled
from attnlab.experiments.datasets import dataset_of, run_in, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.experiments.record import Data
from attnlab.sweep.grid import Grid
from attnlab.theory.statements.polytope import residuals, special_points
from attnlab.theory.statements.win_in_every_head import beyond
from attnlab.types import Limit, Trajectory, Weights

D, MANY = 3, max(HEADS)

SPREAD = 0.3
"""The heads "near": Q_h = K_h = I + SPREAD G_h, G_h Gaussian, so that scores are positive and heads
differ a little.
"""
SYNTHETIC = ("near", "synthetic")
N = 20
"""Tokens. With forty under sixteen heads, three of five draws stayed undecided."""
DRAWS, OWN_DRAWS = {"full": 30, "small": 6}, {"full": 8, "small": 2}

WORK = 5e6
"""Units for one limit."""

STEP = 0.05
"""The step in tau of the runs that are not adaptive: own values, and trained heads."""

WATCHED = np.linspace(0.0, 4.0, 9)
"""With the heads' own V the hull is watched at these tau: later z = exp(-tW) x is known in the slow
directions only.
"""

SHOWN = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
"""The tau of the runs that are shown."""
COMPARED = 4.0


def near_heads(count: int, values: str, seed: int) -> Weights:
    """Heads with Q_h = K_h = I + SPREAD G_h; V_h = I, or I + SPREAD G'_h for values "own"."""
    G, _, other = np.moveaxis(np.random.default_rng([seed, D]).normal(size=(MANY, 3, D, D)), 1, 0)[
        :, :count
    ]
    Q, V = np.eye(D) + SPREAD * G, np.eye(D) + (SPREAD * other if values == "own" else 0.0 * other)
    return Weights(
        Q=Q, K=Q, V=V, source=f"{count} heads near the identity, rng = {seed}, values: {values}"
    )


def problem(family: str, count: int, values: str, seed: int, n: int) -> tuple[Weights, np.ndarray]:
    """Synthetic weights, and tokens uniform in [-5, 5]^3."""
    weights = (
        near_heads(count, values, seed)
        if family == "near"
        else synthetic_heads(count, D, values, rng=seed)
    )
    return weights, cube_start(n, D, seed)


def measure_end(context: Context, family: str, heads: int, seed: int) -> dict[str, Any]:
    """V_h = I, certified: {"row": the numbers of a draw, "polytope": those of one head near the
    identity}.

    beyond: how far a limit is beyond the plane of a class, over all heads and over the size of the
    limits.
    """
    weights, x0 = problem(family, heads, "identity", seed, N)
    end, points = certified_limit(weights, x0, WORK)
    row = facts_of(end, points, x0) | {"volume": np.nan, "beyond": np.nan}
    if points is None:
        return {"row": row, "polytope": []}
    classes, size = class_points(end, points), float(np.abs(points).max())
    row["volume"] = convex_hull(points).volume / convex_hull(x0).volume
    row["beyond"] = max(float(beyond(classes, points, M).max()) for M in weights.M) / size
    is_polytope = family == "near" and heads == 1
    return {"row": row, "polytope": [_polytope(points, weights.M[0])] if is_polytope else []}


def _polytope(points: np.ndarray, M: np.ndarray) -> dict[str, Any]:
    """Corners, edges, facets of the limit polytope of one head, and how far limits are from S."""
    hull, size = convex_hull(points), float(np.abs(points).max())
    return {
        "limits": len(points),
        "rank": hull.rank,
        "V": len(hull.vertices),
        "E": len(hull.edges),
        "F": plain_facet_count(points) if hull.rank == D else 0,
        "S": len(special_points(points[hull.vertices], M)),
        "residual": float(residuals(points, M, 1e-9 * size).max() / size),
    }


def measure_own(context: Context, heads: int, seed: int) -> dict[str, float]:
    """The heads' own V, near the identity: how far a token leaves the hull of the time before, in a
    run.
    """
    weights, x0 = problem("near", heads, "own", seed, N)
    rate = growth_rate(weights, from_factors=False)
    run = simulate(
        weights,
        x0,
        times=WATCHED / rate,
        t_end=WATCHED[-1] / rate,
        dt=STEP / rate,
        stepper="rk4",
        frame="x",
    )
    return {"outward": outward(rescaled(run))}


def shown(context: Context) -> dict[str, Any]:
    """Accurate runs of heads near the identity, V_h = I: z at the tau that are shown, for each H;
    how far the last is from the certified limit; and the run to be filmed.
    """
    n, found = N, []
    for count in HEADS:
        weights, x0 = problem("near", count, "identity", 1, n)
        run = simulate(
            weights, x0, times=SHOWN / count, t_end=SHOWN[-1] / count, rtol=1e-9, frame="z"
        )
        found.append(_pictured(rescaled(run), *certified_limit(weights, x0, WORK)))
    weights, x0 = problem("near", 4, "identity", 1, n)
    movie = simulate(weights, x0, t_end=2.0, saves=101, rtol=1e-8, frame="z")
    tokens = _tokens(found).assign_coords(tau=SHOWN)
    return {"shown": tokens, "film": dataset_of(movie)}


def _pictured(z: np.ndarray, end: Limit, points: np.ndarray | None) -> dict[str, Any]:
    """Tokens z (tau, n, d), the label of each one's limit (-1 if undecided), and how far the last
    are from these.
    """
    return {
        "z": z,
        "labels": end.labels,
        "off": np.nan
        if points is None
        else distance_to_limits(z[-1], end, points, float(diameter(z[0]))),
    }


def _tokens(found: Sequence[Mapping[str, Any]], **facts: Any) -> Any:
    """A Dataset of tokens and labels for each number of heads."""
    axes = {"z": ("tau", "token", "coordinate"), "labels": ("token",)}
    return table_of_rows(found, "head_count", axes=axes, **facts)


def measure_trained(context: Context, family: str, heads: int) -> dict[str, Any]:
    """Trained heads on a paragraph, V_h = I, all in their own d, seen in the three principal
    components of the first tokens.
    """
    del family
    shared = context.shared
    weights, x0 = shared.heads(heads, "identity"), real_start(shared.model, N)
    reduced, start, basis = in_span(weights, x0)
    run = simulate(
        reduced,
        start,
        times=SHOWN / heads,
        t_end=SHOWN[-1] / heads,
        dt=STEP / heads,
        stepper="rk4",
        frame="z",
    )
    end, points = certified_limit(weights, x0, WORK)
    z = rescaled(run) @ basis.T
    found = _pictured(z, end, points)
    _, sizes, axes = np.linalg.svd(x0 - x0.mean(axis=0), full_matrices=False)
    seen = z @ axes[:D].T
    return {
        "row": {
            "seed": 1,
            **facts_of(end, points, x0),
            "volume": np.nan,
            "beyond": np.nan,
        },
        "tokens": {**found, "z": seen, "outward": outward(seen)},
        "share": float((sizes[:D] ** 2).sum() / (sizes**2).sum()),
    }


def assemble(results: Results) -> dict[str, Any]:
    """The runs that are shown, SciPy, certified ends of all draws and polytopes of one head; own
    values; with a model its heads, too.
    """
    shared, size = results.shared, results.size
    rows = [*results.rows("ends", "row"), *results.rows("trained", "row")]
    data = {
        **results.values("shown")[0],
        "checks": results.values("checks")[0],
        "polytopes": table_of_rows(results.rows("ends", "polytope"), "draw", draws=DRAWS[size]),
        "ends": table_of_rows(rows, n=N, why=results.why, model=shared.name),
        "own": table_of_rows(results.rows("own")),
    }
    drawn = results.values("trained")
    if drawn:
        data["trained"] = _tokens(
            [one["tokens"] for one in drawn],
            share=drawn[0]["share"],
            d=int(shared.model.config.d),
            model=shared.name,
        ).assign_coords(tau=SHOWN)
    return data


def check(context: Context) -> Any:
    """Four heads near the identity at tau = COMPARED, by the runs and by SciPy's DOP853."""
    weights, x0 = problem("near", 4, "identity", 1, N // 2)
    run = simulate(weights, x0, t_end=COMPARED / 4, saves=2, rtol=1e-10, frame="z").rescaled

    assert run is not None
    axes = ("token", "coordinate")
    return xarray.Dataset(
        {"run": (axes, run[-1]), "exact": (axes, rescaled_by_scipy(weights, x0, COMPARED))}
    )


def film(data: Data) -> Trajectory:
    """Four heads near the identity, to be filmed."""
    return run_in(data, "film")


compute = Parts(
    {
        "shown": Part(shown, doing="runs that are shown", share=0.15),
        "checks": Part(check, doing="the same by SciPy", share=0.05),
        "ends": Part(
            measure_end,
            lambda size: grids_of(
                "family, heads, seed", [(SYNTHETIC, HEADS, DRAWS[size])], first=1
            ),
            "certified ends, {family}, {heads} heads",
            0.6,
            lambda heads, **_: heads,
        ),
        "own": Part(
            measure_own,
            lambda size: grids_of("heads, seed", [(HEADS, OWN_DRAWS[size])], first=1),
            "own values, {heads} heads",
            0.1,
            lambda heads, **_: heads,
        ),
        "trained": Part(
            measure_trained,
            Grid({"family": ["trained"], "heads": HEADS}),
            "trained, {heads} heads",
            0.1,
            lambda heads, **_: heads,
        ),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
