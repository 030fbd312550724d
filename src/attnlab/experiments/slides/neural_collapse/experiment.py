"""Neural collapse of tokens: clusters become points at a known rate (NC1), but nothing makes a
simplex of them (NC2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.analysis.clusters import cluster_centres, cluster_labels, differing_pairs
from attnlab.analysis.collapse import centre_rank, nc1, nc2, nc2_of_points, plain_nc1, scatter_share
from attnlab.analysis.directions import unit
from attnlab.analysis.distances import diameter
from attnlab.analysis.growth import fastest_space, growth_rate
from attnlab.analysis.propagators import hold_attention
from attnlab.analysis.span import in_span
from attnlab.analysis.spectra import is_good_triple
from attnlab.batches import members
from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.certified import (
    SAME_POINT,
    certified_limit,
    distance_to_limits,
    final_attention,
)
from attnlab.experiments.common.heads import (
    HEADS,
    Trained,
    cube_start,
    real_start,
    synthetic_heads,
    trained_heads,
)
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.models.checkpoints.head_names import name_head
from attnlab.sweep.grid import Grid
from attnlab.types import Trajectory, Weights

KINDS = (("synthetic", "cube"), ("trained", "cube"), ("trained", "text"))
"""Families and starts: tokens uniform in [-5, 5]^d, or an embedded piece of prose, every start
another piece.
"""

STARTS: dict[str, dict[tuple[str, str, str], tuple[int, ...]]] = {
    "full": {
        ("synthetic", "cube", "identity"): (30, 40, 20, 12, 8),
        ("trained", "cube", "identity"): (14, 14, 6, 4, 4),
        ("trained", "text", "identity"): (24, 10, 6, 4, 4),
        ("synthetic", "cube", "own"): (60, 24, 24, 24, 24),
        ("trained", "cube", "own"): (3, 3, 3, 2, 2),
        ("trained", "text", "own"): (3, 3, 3, 2, 2),
    },
    "small": {
        ("synthetic", "cube", "identity"): (7, 6, 3, 2, 4),
        ("trained", "cube", "identity"): (3, 1, 1, 1, 1),
        ("trained", "text", "identity"): (3, 1, 1, 1, 1),
        ("synthetic", "cube", "own"): (6, 2, 2, 2, 2),
        ("trained", "cube", "own"): (1, 1, 1, 1, 1),
        ("trained", "text", "own"): (1, 1, 1, 1, 1),
    },
}
"""How many, for each of the HEADS. Each start draws synthetic heads again, and takes another single
trained head with V = I.
"""
TOKENS = {"full": {"synthetic": 40, "trained": 30}, "small": {"synthetic": 24, "trained": 14}}

D = 8
"""Of the synthetic heads."""

TAUS = np.arange(0.0, 22.01, 0.5)
"""Natural time: τ = Ht for V = I, τ = λt for own values, λ the largest real part of the eigenvalues
of the sum of the V_h.
"""

TOLERANCES = {1: 1e-8, 2: 1e-6, 4: 1e-6}
"""V = I and so many heads: adaptive steps; one head is compared with its limit to 1e-6."""

STEPS, WIDE_STEPS, WIDE = (0.08, 0.04), (0.16, 0.08), 100
"""Else Runge-Kutta steps in natural time, longer in so many dimensions: leaders change often, so
adaptive runs take minutes. With own values both, else the shorter one.
"""

WINDOW = (10.0, 18.0)
"""Where rates are measured: leaders are decided before it, and soon after it the spread drowns in
double precision.
"""

SCALE = 0.05
"""Own values: directions nearer than this are one cluster."""
SHUFFLES, NULL_DRAWS = 39, 199

PLANE = {"full": (20, 40), "small": (6, 24)}
"""Starts and tokens in the plane with M = I, where there are more clusters than a simplex of the
plane has corners.
"""
CURVES = ("nc1", "shuffled", "scatter", "angles", "norms")
ENDS = ("end_angles", "end_norms")
NUMBERS = (
    "rank",
    "rate",
    "frozen_rate",
    "scatter_rate",
    "angle_rate",
    "shuffled_p",
    "loop",
)
NULLS = (
    "null_angles",
    "null_norms",
    "null_low",
    "null_high",
    "place_angles",
    "place_norms",
    "span",
)


def heads_of_start(family: str, values: str, count: int, rng: int, trained: Any) -> Weights:
    """The heads of start `rng`: synthetic ones drawn for it, one trained head with V = I its own,
    else the first of the model.
    """
    if family == "synthetic":
        return synthetic_heads(count, D, values, rng=rng)
    if count > 1 or values == "own":
        return trained_heads(trained, count, values)
    config = trained.config
    layer, head = rng // config.heads % config.layers, rng % config.heads
    one = trained.weights(layer, head)
    return Weights(
        Q=one.Q,
        K=one.K,
        V=np.eye(config.d),
        source=f"{trained.name} {name_head(layer, head)}, values: {values}",
    )


def measure_group(
    context: Context, family: str, start: str, values: str, heads: int
) -> list[dict[str, Any]]:
    """The rows of one group: of synthetic heads one by one, of trained ones with own values all
    starts at once, on all cores.
    """
    n, trained, problems = TOKENS[context.size][family], context.shared.model, []
    many = STARTS[context.size][family, start, values][HEADS.index(heads)]
    for rng in range(many):
        weights = heads_of_start(family, values, heads, rng, trained)
        problems.append(
            (
                weights,
                real_start(trained, n, rng) if start == "text" else cube_start(n, weights.d, rng),
            )
        )
    facts = {"n": n, "d": problems[0][0].d}
    if (family, values) == ("trained", "own"):
        found = collapses(problems[0][0], np.array([x0 for _, x0 in problems]), values, range(many))
    else:
        found = [
            one
            for rng, (weights, x0) in enumerate(problems)
            for one in collapses(weights, x0[None], values, [rng])
        ]
    return [{**facts, **one} for one in found]


def collapses(
    weights: Weights, starts: np.ndarray, values: str, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """The numbers of the runs from starts (m, n, d) with the same weights; labels are those of the
    end, at all times.
    """
    if values == "identity":
        weights, start, _ = in_span(weights, starts[0])
        (run,) = runs_of(weights, start, growth_rate(weights, "real"), identity_way(weights))
        return [{"rng": seeds[0], "is_good": 0} | certified_collapse(weights, start, run, seeds[0])]
    growth = growth_rate(weights, "real")
    coarse, fine = (
        runs_of(weights, starts, growth, {"step": step})
        for step in (STEPS if weights.d < WIDE else WIDE_STEPS)
    )
    is_good, space = int(weights.heads == 1 and is_good_triple(weights)), fastest_space(weights)
    return [
        {"rng": rng, "is_good": is_good} | observed_collapse(x0, pair, rng, space)
        for rng, x0, *pair in zip(seeds, starts, coarse, fine, strict=True)
    ]


def off_space(directions: np.ndarray, space: np.ndarray) -> float:
    """How far the farthest of the directions (n, d) is from a space."""
    return float(np.linalg.norm(directions - directions @ space @ space.T, axis=1).max())


def identity_way(weights: Weights) -> dict[str, Any]:
    """How V = I is run: adaptive for few heads, else by the shorter steps."""
    if weights.heads in TOLERANCES:
        return {"rtol": TOLERANCES[weights.heads]}
    return {"step": (STEPS if weights.d < WIDE else WIDE_STEPS)[1]}


def runs_of(
    weights: Weights, starts: np.ndarray, growth: float, way: Mapping[str, float]
) -> list[Trajectory]:
    """The runs of all starts, adaptive or with steps in natural time."""
    options: dict[str, Any] = dict(way)
    if "step" in options:
        options = {"stepper": "rk4", "dt": options["step"] / growth, "frame": "x"}
    found = simulate(
        weights, starts, times=TAUS / growth, t_end=TAUS[-1] / growth, throw=False, **options
    )
    return members(found) if found.batch else [found]


def certified_collapse(
    weights: Weights, x0: np.ndarray, run: Trajectory, rng: int
) -> dict[str, Any]:
    """The numbers of one start with V = I: clusters are the certified limits, curves are of the
    run.

    off: how far the last tokens are from their limits, over the first diameter. moved: the most by
    which an entry of the attention at both ends of WINDOW differs from that of t = infinity.
    """
    path = followed_tokens(run, "identity")
    P = [attention(run, at=at_tau(tau, len(path))).mean(axis=0) for tau in WINDOW]
    end, points = certified_limit(weights, x0)
    found: dict[str, Any] = {
        "grade": str(end.grade),
        "is_decided": int(points is not None),
        "step_pairs": 0,
        "reached": TAUS[len(path) - 1],
        "off_lead": np.nan,
        **growth_of(run, len(path)),
    }
    if points is None:
        one = np.zeros(len(x0), int)
        found |= {"off": np.nan, "moved": np.nan, "limit_gap": np.nan}
        found |= measured(path, one, P[0], "identity", np.random.default_rng(0)) | {"clusters": 0}
        return found | dict.fromkeys((*NULLS, *ENDS), np.nan)
    labels, limits = np.array(end.labels), points[end.labels]
    late = final_attention(end, P[1])
    found |= {
        "off": distance_to_limits(path[-1], end, points, float(diameter(x0))),
        "moved": max(float(np.abs(one - late).max()) for one in P),
    }
    found |= measured(path, labels, P[0], "identity", np.random.default_rng([rng, 3]))
    if found["clusters"] > 1:
        found["rank"] = float(centre_rank(limits, labels, SAME_POINT * float(np.abs(points).max())))
    found |= ends_of(limits, labels, path[-1])
    return found | beside_chance(limits, labels, x0, "identity", np.random.default_rng([rng, 5]))


def ends_of(limits: np.ndarray, labels: np.ndarray, last: np.ndarray) -> dict[str, float]:
    """NC2 of the certified limits, and how far it is from that of the last tokens; NaN for fewer
    than two clusters, and the difference for fewer than three.
    """
    clusters = int(np.sum(np.bincount(labels) > 1))
    if clusters < 2:
        return dict.fromkeys((*ENDS, "limit_gap"), np.nan)
    here, seen = np.array(nc2(limits, labels)), np.array(nc2(last, labels))
    gap = float(np.abs(here - seen).max()) if clusters > 2 else np.nan
    return {**dict(zip(ENDS, here.tolist(), strict=True)), "limit_gap": gap}


def observed_collapse(
    x0: np.ndarray, runs: Sequence[Trajectory], rng: int, space: np.ndarray
) -> dict[str, Any]:
    """The numbers of one start with own values, from a coarse and a fine run: clusters are those of
    the last directions.

    A run is decided where the coarse one has the same clusters and the fine one comes to the end.
    """
    paths = [followed_tokens(run, "own") for run in runs]
    path, run = paths[1], runs[1]
    labelled = [cluster_labels(one[-1], SCALE) for one in paths]
    labels = labelled[1]
    P = [attention(run, at=at_tau(tau, len(path))).mean(axis=0) for tau in WINDOW]
    step_pairs = differing_pairs(*labelled)
    found = {
        "grade": "run",
        "is_decided": int(step_pairs == 0 and len(path) == len(TAUS)),
        "step_pairs": step_pairs,
        "off": np.nan,
        "moved": float(np.abs(P[1] - P[0]).max()),
        "reached": TAUS[len(path) - 1],
        "off_lead": off_space(path[-1], space),
        "limit_gap": np.nan,
        **growth_of(run, len(path)),
        **dict.fromkeys(ENDS, np.nan),
    }
    found |= measured(path, labels, P[0], "own", np.random.default_rng([rng, 3]))
    return found | beside_chance(path[-1], labels, x0, "own", np.random.default_rng([rng, 5]))


def growth_of(run: Trajectory, length: int) -> dict[str, float]:
    """The rate at which the tokens grow in WINDOW."""
    sizes = np.log(np.linalg.norm(run.scaled_x()[0], axis=(1, 2))) + run.log_scale
    first, last = (at_tau(tau, length) for tau in WINDOW)
    if last <= first:
        return {"size_rate": np.nan}
    return {"size_rate": float((sizes[last] - sizes[first]) / (TAUS[last] - TAUS[first]))}


def followed_tokens(run: Trajectory, values: str) -> np.ndarray:
    """What converges: z for V = I, the directions x / |x| for own values."""
    if values == "identity":
        return run.rescaled
    return unit(run.scaled_x()[0])


def at_tau(tau: float, length: int) -> int:
    """The number of the saved time nearest to τ, of a run that has so many."""
    return int(np.argmin(np.abs(TAUS[:length] - tau)))


def measured(
    path: np.ndarray, labels: np.ndarray, P: np.ndarray, values: str, generator: np.random.Generator
) -> dict[str, Any]:
    """NC1 and NC2 over time with the labels and with shuffled ones, and rates; NaN where fewer than
    two clusters are left.
    """
    sizes = np.bincount(labels)
    clusters = int(np.sum(sizes > 1))
    found: dict[str, Any] = {
        "clusters": clusters,
        "singles": int(np.sum(sizes == 1)),
        "largest": int(sizes.max()),
    }
    if clusters < 2:
        return (
            found
            | dict.fromkeys(CURVES, np.full(len(TAUS), np.nan))
            | dict.fromkeys(NUMBERS, np.nan)
        )
    shuffled = np.array([nc1(path, generator.permutation(labels)) for _ in range(SHUFFLES)])
    curves = dict(
        zip(
            CURVES,
            (
                nc1(path, labels),
                np.median(shuffled, axis=0),
                scatter_share(path, labels),
                *nc2(path, labels),
            ),
            strict=True,
        )
    )
    first, last = (at_tau(tau, len(path)) for tau in WINDOW)
    duration = (
        TAUS[last] - TAUS[first] if last > first else np.nan
    )  # own values may reach the wall before
    with np.errstate(divide="ignore", invalid="ignore"):  # the angles of two clusters are 0
        slope = {
            name: float(np.log(curve[last] / curve[first]) / duration)
            for name, curve in curves.items()
        }
    found |= {
        name: np.concatenate([curve, np.full(len(TAUS) - len(curve), np.nan)])
        for name, curve in curves.items()
    }
    found |= {
        "rate": slope["nc1"],
        "scatter_rate": slope["scatter"],
        "angle_rate": slope["angles"],
        "rank": np.nan,
        "frozen_rate": np.nan,
        "shuffled_p": float(np.mean([*(shuffled[:, last] <= curves["nc1"][last]), True])),
        "loop": (
            plain_nc1(path[at_tau(4.0, len(path))], labels) / curves["nc1"][at_tau(4.0, len(path))]
        ),
    }
    if values == "identity":
        later = hold_attention(P, path[first], duration)
        found["frozen_rate"] = float(np.log(nc1(later, labels) / curves["nc1"][first]) / duration)
    return found


def beside_chance(
    last: np.ndarray,
    labels: np.ndarray,
    x0: np.ndarray,
    values: str,
    generator: np.random.Generator,
) -> dict[str, float]:
    """NC2 of the last tokens beside that of chance: what chance has in the median, and which part
    of it is at most as large.

    V = I: chance takes as many tokens of the same start. Own values: what is left of a direction
    lies in the span of few eigenvectors, so chance takes as many directions, all alike, in the span
    of the last ones. Two clusters need no chance: NaN.
    """
    clusters = int(np.sum(np.bincount(labels) > 1))
    if clusters < 3:
        return dict.fromkeys(NULLS, np.nan)
    sizes = np.linalg.svd(cluster_centres(last, labels)[np.bincount(labels) > 1], compute_uv=False)
    span = int(np.sum(sizes > SCALE * sizes[0]))
    if values == "identity":
        draws = np.array(
            [x0[generator.choice(len(x0), clusters, replace=False)] for _ in range(NULL_DRAWS)]
        )
    else:
        draws = unit(generator.normal(size=(NULL_DRAWS, clusters, span)))
    angles, norms = nc2_of_points(draws)
    here = nc2(last, labels)
    return {
        "null_angles": float(np.median(angles)),
        "null_norms": float(np.median(norms)),
        "null_low": float(np.quantile(angles, 0.05)),
        "null_high": float(np.quantile(angles, 0.95)),
        "place_angles": float(np.mean(angles <= here[0])),
        "place_norms": float(np.mean(norms <= here[1])),
        "span": float(span),
    }


def measure_plane(context: Context, rng: int) -> list[dict[str, Any]]:
    """NC2 of a certified limit in the plane, one head with V = M = I, beside as many tokens of the
    start; no row if undecided.
    """
    x0 = cube_start(PLANE[context.size][1], 2, 100 + rng)
    end = limit(Weights(V=np.eye(2)), x0, work=250_000.0)
    labels = np.array(end.labels)
    if (
        not end.certified or np.sum(np.bincount(labels) > 1) < 3
    ):  # two are a simplex wherever they are
        return []
    angles, norms = (float(one) for one in nc2(end.limits, labels))
    return [
        {
            "clusters": int(np.sum(np.bincount(labels) > 1)),
            "d": 2,
            "angles": angles,
            "norms": norms,
            **beside_chance(
                np.array(end.limits), labels, x0, "identity", np.random.default_rng([rng, 5])
            ),
        }
    ]


GROUPS = [
    Grid({"family": [family], "start": [start], "values": [values], "heads": HEADS})
    for family, start, values in STARTS["full"]
]


def assemble(results: Results) -> dict[str, Any]:
    """One row per family, start, kind of values, number of heads and seed; and limits in the
    plane.
    """
    cases = table_of_rows(
        results.rows("cases"),
        axes=dict.fromkeys(CURVES, ("tau",)),
        why=results.why,
        model=results.shared.name,
    )
    return {
        "cases": cases.assign_coords(tau=TAUS),
        "plane": table_of_rows(results.rows("plane"), starts=PLANE[results.size][0]),
    }


compute = Parts(
    {
        "cases": Part(measure_group, GROUPS, "{family}, {start}, V {values}, {heads} heads", 0.95),
        "plane": Part(
            measure_plane,
            lambda size: Grid({"rng": range(PLANE[size][0])}),
            "the plane, start {rng}",
            0.05,
        ),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
