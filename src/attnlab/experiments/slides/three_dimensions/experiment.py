"""Three dimensions: the hull of the tokens shrinks to a polytope, and every further head takes
corners away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import OBSERVED_SCALE
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull, plain_facet_count
from attnlab.analysis.plain_flow import rescaled_by_scipy
from attnlab.engine import simulate
from attnlab.experiments.common import merging as flows
from attnlab.experiments.common.heads import (
    HEADS,
    VALUES,
    Trained,
    cube_start,
    real_start,
    synthetic_heads,
)
from attnlab.experiments.common.portraits.run import outward, values_of
from attnlab.experiments.datasets import dataset_of, run_in, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.experiments.record import Data
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.theory.statements.polytope import residuals, special_points
from attnlab.types import Trajectory, Weights

from .figures import PICTURED

D, MANY = 3, max(HEADS)

SPREAD = 0.3
"""The heads "near": Q_h = K_h = I + SPREAD G_h, G_h Gaussian, so that scores are positive and heads
differ a little.
"""
SYNTHETIC = ("near", "synthetic")
N = {"full": 40, "small": 20}
DRAWS, OWN_DRAWS = {"full": 30, "small": 6}, {"full": 8, "small": 2}

STEP, FINE = {"identity": 0.1, "own": 0.15}, {"identity": 0.05, "own": 0.15}
"""Steps in tau: for many draws, and for what is shown."""

WATCHED = 4.0
"""With the heads' own V the hull is watched up to this tau: later z = exp(-tW) x is known in the
slow directions only.
"""

SHOWN = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
"""The tau of the accurate runs."""
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


def case_grids(size: str) -> list[Grid]:
    """Every family, kind of values and number of heads, with its draws."""
    return grids_of(
        "family, values, heads, seed",
        [
            (family, values, HEADS, (DRAWS if values == "identity" else OWN_DRAWS)[size])
            for family in SYNTHETIC
            for values in VALUES
        ],
        first=1,
    )


def measure_case(
    context: Context, family: str, values: str, heads: int, seed: int
) -> dict[str, Any]:
    """The numbers of one draw."""
    flow = flows.follow(
        *problem(family, heads, values, seed, N[context.size]), values, STEP[values]
    )
    return _ends(flow, values, flow.shapes)


def assemble(results: Results) -> dict[str, Any]:
    """The runs that are shown, SciPy, certified polytopes of one head, and all draws; with a model
    its heads, too.
    """
    shared, rows = results.shared, [*results.rows("cases"), *results.rows("trained", "row")]
    data = {
        **results.values("shown")[0],
        "checks": results.values("checks")[0],
        "polytopes": table_of_rows(results.rows("polytopes"), "draw", draws=DRAWS[results.size]),
        "cases": table_of_rows(rows, n=N[results.size], why=results.why, model=shared.name),
    }
    drawn = [one for case, one in results.found["trained"] if case["values"] == "identity"]
    if drawn:
        data["trained"] = xarray.Dataset(
            {
                "z": (
                    ("head_count", "panel", "token", "coordinate"),
                    np.stack([one["z"] for one in drawn]),
                ),
                "labels": (("head_count", "token"), np.stack([one["labels"] for one in drawn])),
            },
            attrs={
                "share": results.values("trained")[-1]["share"],
                "d": int(shared.model.config.d),
                "model": shared.name,
            },
        )
    return data


def shown(context: Context) -> dict[str, Any]:
    """Accurate runs of heads near the identity, V_h = I: z at the tau that are shown, for each H;
    and the run to be filmed.
    """
    n, runs, ends = N[context.size], {}, []
    for count in HEADS:
        weights, x0 = problem("near", count, "identity", 1, n)
        runs[count] = simulate(
            weights, x0, times=SHOWN / count, t_end=SHOWN[-1] / count, rtol=1e-9, frame="z"
        ).rescaled
        flow = flows.follow(weights, x0, "identity", FINE["identity"])
        ends.append(flow.labels)
    weights, x0 = problem("near", 4, "identity", 1, n)
    movie = simulate(weights, x0, t_end=2.0, saves=101, rtol=1e-8, frame="z")
    tokens = xarray.Dataset(
        {
            "z": (
                ("head_count", "tau", "token", "coordinate"),
                np.stack([runs[count] for count in HEADS]),
            ),
            "labels": (("head_count", "token"), np.stack(ends)),
            "tau": ("tau", SHOWN),
        }
    )
    return {"shown": tokens, "film": dataset_of(movie)}


def _ends(flow: flows.Shapes, values: str, space: np.ndarray) -> dict[str, Any]:
    """The numbers of a run seen in space (T, n, 3): corners, volume, who keeps them, how far a hull
    leaves the one before.
    """
    labels, is_whole = flow.labels, space is flow.shapes
    centres = np.array([space[-1][labels == k].mean(axis=0) for k in range(labels.max() + 1)])
    scale = OBSERVED_SCALE * float(diameter(space[0]))
    corners = int(flows.outer(centres, scale).sum()) if len(centres) > 1 else 1
    leaves = np.nan
    if values == "own" and is_whole:
        assert flow.run is not None and flow.run.z is not None
        leaves = outward(flow.run.z[flow.tau <= WATCHED])
    elif not is_whole and values == "identity":
        leaves = outward(space)
    return {
        "clusters": len(centres),
        "corners": corners,
        "movement": flows.movement(flow),
        "kept": flows.held(flow)[0] if values == "identity" and is_whole else np.nan,
        "volume": convex_hull(space[-1]).volume / convex_hull(space[0]).volume,
        "outward": leaves,
    }


def measure_polytope(context: Context, seed: int) -> list[dict[str, Any]]:
    """One head near the identity, certified: corners, edges, facets of the limit polytope; how far
    limits are from S.
    """
    weights, x0 = problem("near", 1, "identity", seed, N[context.size])
    end = limit(weights, x0, work=250_000.0)
    if not end.certified:
        return []
    points, M = values_of(end.limits), weights.M[0]
    hull = convex_hull(points)
    size = float(np.abs(points).max())
    return [
        {
            "limits": len(points),
            "rank": hull.rank,
            "V": len(hull.vertices),
            "E": len(hull.edges),
            "F": plain_facet_count(points) if hull.rank == D else 0,
            "S": len(special_points(points[hull.vertices], M)),
            "residual": float(residuals(points, M, 1e-9 * size).max() / size),
        }
    ]


def measure_trained(context: Context, family: str, values: str, heads: int) -> dict[str, Any]:
    """Trained heads on a paragraph, all in their own d, seen in the three principal components of
    the first tokens.
    """
    del family
    shared = context.shared
    flow = flows.follow(
        shared.heads(heads, values), real_start(shared.model, N[context.size]), values, FINE[values]
    )
    first = flow.shapes[0]
    _, sizes, axes = np.linalg.svd(first - first.mean(axis=0), full_matrices=False)
    space = flow.shapes @ axes[:D].T
    at = [int(np.argmin(np.abs(flow.tau - tau))) for tau in PICTURED]
    return {
        "row": {"seed": 1, **_ends(flow, values, space)},
        "z": space[at],
        "labels": flow.labels,
        "share": float((sizes[:D] ** 2).sum() / (sizes**2).sum()),
    }


def check(context: Context) -> Any:
    """Four heads near the identity at tau = COMPARED, by the runs and by SciPy's DOP853."""
    weights, x0 = problem("near", 4, "identity", 1, N[context.size] // 2)
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
        "polytopes": Part(
            measure_polytope,
            lambda size: Grid({"seed": range(1, DRAWS[size] + 1)}),
            "certified polytopes",
            0.15,
        ),
        "cases": Part(
            measure_case,
            case_grids,
            "{family}, {values}, {heads} heads",
            0.4,
            lambda heads, **_: heads,
        ),
        "trained": Part(
            measure_trained,
            Grid({"family": ["trained"], "values": VALUES, "heads": HEADS}),
            "trained, {values}, {heads} heads",
            0.25,
            lambda heads, **_: heads,
        ),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
