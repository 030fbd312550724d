"""How many limits for how many tokens: hull vertices, tokens that lead themselves, certified
limits, four laws of the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.hull import convex_hull, directions, support
from attnlab.analysis.plain_flow import rescaled_by_scipy
from attnlab.analysis.random_polytopes import (
    LAWS,
    draw_points,
    expected_self_leaders,
    expected_vertices,
)
from attnlab.analysis.self_leaders import self_leaders, settled_leaders
from attnlab.analysis.span import in_span
from attnlab.engine import simulate
from attnlab.experiments.common.heads import (
    FAMILIES,
    HEADS,
    VALUES,
    Trained,
    real_start,
    synthetic_heads,
)
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

SLIDES = 5.0
"""The slides start in [-5, 5]^d."""
SOLID = ["cube", "ball", "normal"]

TOKENS = {"full": 30, "small": 12}
D, CLOSE = 24, 0.01

STEPS = (480, 240)
"""Steps of rk4 for heads with their own V, where an adaptive run takes minutes; the second shows
what the first is worth.
"""
TOLERANCES = (1e-7, 1e-6)

HEAD_DRAWS = {"full": 3, "small": 1}
"""Of weights and start, or pieces of text; one only of trained heads with their own V, which take
most of the time.
"""

DOUBLE_ENDS = 30.0
"""lambda_1 t at which double precision ends, about."""


def head_grids(size: str) -> list[Grid]:
    """Every family and kind of values, 1 to 16 heads, and draws."""
    return grids_of(
        "family, values, heads, draw",
        [
            (
                family,
                values,
                HEADS,
                1 if (family, values) == ("trained", "own") else HEAD_DRAWS[size],
            )
            for family in FAMILIES
            for values in VALUES
        ],
    )


def measure_heads(
    context: Context, family: str, values: str, heads: int, draw: int
) -> dict[str, float]:
    """Clusters at the last time, those of a coarser run, lambda_1 t there, how far z left its first
    hull (own V: NaN).
    """
    n = TOKENS[context.size]
    if family == "trained":
        weights, x0 = context.shared.heads(heads, values), real_start(context.shared.model, n, draw)
    else:
        weights, x0 = (
            synthetic_heads(heads, D, values, rng=draw),
            SLIDES * draw_points("cube", n, D, draw),
        )
    if values == "identity":
        weights, x0, _ = in_span(weights, x0)
    growth = growth_rate(weights, "real")
    end = DOUBLE_ENDS / growth
    ways: list[dict[str, Any]] = [{"rtol": rtol} for rtol in TOLERANCES]
    if values == "own":
        ways = [{"stepper": "rk4", "dt": end / steps, "frame": "x"} for steps in STEPS]
    run, again = (simulate(weights, x0, t_end=end, saves=31, throw=False, **way) for way in ways)
    outward = float("nan")
    if values == "identity":
        z, sides = run.rescaled, directions(64, run.d)
        outward = float((support(z[1:], sides) - support(z[0], sides)).max() / np.abs(z[0]).max())
    return {
        "clusters": _clusters(run),
        "again": _clusters(again),
        "grown": growth * float(run.times[-1]),
        "outward": outward,
    }


def _clusters(run: Any) -> int:
    """The number of clusters of the last tokens at a hundredth of the largest of them."""
    last = run.scaled_x()[0][-1]
    return int(cluster_count(last, CLOSE * float(np.linalg.norm(last, axis=1).max())))


COUNTS = {"full": (10, 30, 100, 300, 1000, 3000), "small": (10, 30, 100)}
SCALES = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
STARTS = {"full": {10: 24, 30: 24, 100: 8, 300: 3}, "small": {10: 14, 30: 14}}
SHOWN = {"full": SCALES, "small": (0.1, 1.0, 2.0, SLIDES, 20.0)}
LARGE = [
    *((law, 2, 1000, scale, 3) for scale in (SLIDES, 20.0) for law in LAWS),
    *((law, 2, 1000, 0.5, 3) for law in SOLID),
    ("cube", 2, 3000, SLIDES, 5),
    ("normal", 2, 3000, SLIDES, 3),
    ("ball", 2, 3000, SLIDES, 1),
    ("ball", 2, 3000, 20.0, 2),
    ("sphere", 2, 3000, 20.0, 1),
]
SPACE = [
    (law, 3, n, SLIDES, starts)
    for n, starts in ((10, 12), (30, 12), (100, 4), (300, 3), (1000, 3))
    for law in LAWS
]

FURTHER = {
    "full": [*LARGE, *SPACE],
    "small": [
        ("cube", 2, 100, SLIDES, 4),
        ("ball", 2, 100, 20.0, 4),
        *(("sphere", 2, 100, scale, 4) for scale in (2.0, SLIDES, 20.0)),
        *((law, 3, 10, SLIDES, 2) for law in LAWS),
    ],
}
"""(law, d, n, scale, number of starts) beyond the table of all n of STARTS and all scales SHOWN in
the plane.
"""

ASKED: dict[str, list[tuple[Any, ...]]] = {
    "full": [
        *((LAWS, 2, n, (1.0, SLIDES), starts) for n, starts in ((10, 6), (30, 6), (100, 2))),
        *((LAWS, 2, n, SLIDES, starts) for n, starts in ((300, 3), (1000, 1))),
        ("cube", 2, 3000, SLIDES, 1),
    ],
    "small": [(LAWS, 2, 10, SLIDES, 1)],
}
"""(laws, d, n, scales, number of starts) for which al.limit is asked, all in the plane and all in
the table of limits.
"""
START = "law, d, n, scale, start"

WORK, SECONDS = 7.5e6, 600.0
"""Units and seconds for one certificate: far more than any takes. Seconds are a cap that a busy
machine does not reach either.
"""
DRAWS = {"full": 300, "small": 45}
LATER = 2.0


def hull_grids(size: str) -> list[Grid]:
    """The cells of the first hulls, in which DRAWS starts are counted."""
    return [
        Grid(
            {"law": LAWS, "d": (2, 3) if n <= 1000 else (2,), "n": [n]},
            exclude=[{"law": "sphere", "d": 3}],
        )
        for n in COUNTS[size]
    ]


def limit_grids(size: str) -> list[Grid]:
    """The starts whose limits are counted: the table, then those further."""
    table_of_all = [(LAWS, 2, n, SHOWN[size], starts) for n, starts in STARTS[size].items()]
    return grids_of(START, [*table_of_all, *FURTHER[size]])


def drawn(law: str, n: int, d: int, start: int) -> np.ndarray:
    """The tokens of one start, at scale 1; laws have numbers of their own, so that their starts are
    independent.
    """
    return draw_points(law, n, d, np.random.default_rng([LAWS.index(law), n, d, start]))


def measure_hulls(context: Context, law: str, d: int, n: int) -> dict[str, float]:
    """Mean numbers of vertices and of tokens that lead themselves at t = 0, with standard errors
    and exact expectations.
    """
    found = []
    for draw in range(DRAWS[context.size] if law != "sphere" else 1):
        x = drawn(law, n, d, draw)
        vertices = convex_hull(x).vertices
        found.append((len(vertices), len(self_leaders(x, vertices))))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    return {
        "vertices": mean[0],
        "leaders": mean[1],
        "vertices_error": error[0],
        "leaders_error": error[1],
        "expected_vertices": expected_vertices(law, d, n),
        "expected_leaders": expected_self_leaders(law, d, n),
    }


def measure_limits(
    _: Context, law: str, d: int, n: int, scale: float, start: int
) -> dict[str, Any]:
    """How many tokens lead themselves at first, how many limits there are, when that is final, and
    the leaders.
    """
    x = scale * drawn(law, n, d, start)
    final, t = final_leaders(x)
    farthest = int((x @ x.mean(axis=0)).argmax())
    is_farthest = final is not None and bool((final == farthest).all())
    row = {
        "leaders": len(self_leaders(x)),
        "limits": counted(final),
        "decided": t,
        "is_farthest": int(is_farthest),
    }
    return {"row": row, "final": final}


def certify(_: Context, law: str, d: int, n: int, scale: float, start: int) -> dict[str, Any]:
    """What al.limit certifies of a start; `others` is for `assemble`."""
    x = scale * drawn(law, n, d, start)
    end, outward, error = limit(Weights(V=np.eye(2)), x, work=WORK, budget=SECONDS), np.nan, np.nan
    if end.grade == "exact":
        size_of_x, sides = float(np.abs(x).max()), directions(64, 2)
        outward = (
            float((support(end.points @ end.basis.T, sides) - support(x, sides)).max()) / size_of_x
        )
        error = float(end.error) / size_of_x
    row = {
        "limits": np.nan if end.count is None else end.count,
        "grade": str(end.grade),
        "others": np.nan,
        "outward": outward,
        "error": error,
    }
    return {"row": row, "final": end.leaders}


def assemble(results: Results) -> dict[str, Any]:
    """The five tables; others: tokens to which al.limit gives another leader than the run of the
    same start does.
    """
    observed = {tuple(case.values()): one["final"] for case, one in results.found["limits"]}
    for case, one in results.found["certified"]:
        leaders = observed[tuple(case.values())]
        if one["row"]["grade"] == "exact" and leaders is not None:
            one["row"]["others"] = float((one["final"] != leaders).sum())
    model = results.shared.model
    start = (
        ""
        if model is None
        else "any tokens"
        if model.tokenizer_file is None
        else "pieces of our prose"
    )
    return {
        "hulls": table_of_rows(results.rows("hulls"), draws=DRAWS[results.size]),
        "limits": table_of_rows(results.rows("limits", "row")),
        "certified": table_of_rows(results.rows("certified", "row")),
        "reference": results.values("reference")[0],
        "heads": table_of_rows(
            results.rows("heads"),
            n=TOKENS[results.size],
            why=results.why,
            trained=results.shared.name,
            start=start,
        ),
    }


def reference(_: Context) -> Any:
    """Tokens z at t = 2 by the engine and by SciPy's DOP853, from a start of ten tokens in the
    square.
    """
    x = SLIDES * draw_points("cube", 10, 2, np.random.default_rng([10, 2, 0]))
    weights = Weights(V=np.eye(2))
    run = simulate(weights, x, t_end=LATER, saves=2, rtol=1e-9)
    axes, plain = ("token", "coordinate"), rescaled_by_scipy(weights, x, LATER)
    return xarray.Dataset(
        {"ours": (axes, run.rescaled[-1]), "plain": (axes, plain), "x0": (axes, x)}
    )


SAVED = (0.0, *np.arange(2.0, 25.0))
"""Not farther apart: for a thousand tokens on a circle leaders are clear only for a while before
rounding hides them again.
"""

MANY, EARLY = 1000, 10.0
"""So many tokens are first run to this time only, which is enough for large starts; still more with
a tenfold tolerance.

Not on a circle, where most tokens lead themselves at first, and who is left is decided late.
"""


def final_leaders(x0: np.ndarray) -> tuple[np.ndarray | None, float]:
    """(the leader of every token (n,), the first saved time at which it is final); (None, last
    time) where it stays open.
    """
    weights, done = Weights(V=np.eye(x0.shape[1]), source="V = I, M = I"), 0.0
    is_early = len(x0) >= MANY and 2 * len(self_leaders(x0)) < len(x0)
    for end in (EARLY, SAVED[-1]) if is_early else (SAVED[-1],):
        times = [t for t in SAVED if t <= end]
        run = simulate(
            weights, x0, t_end=end, times=times, rtol=1e-6 if len(x0) <= MANY else 1e-5, throw=False
        )
        states, log_scale = run.scaled_x()
        for k in np.flatnonzero(run.times > done):
            leaders = settled_leaders(states[k] * np.exp(log_scale[k]))
            if leaders is not None:
                return leaders, float(run.times[k])
        done = float(run.times[-1])
    return None, done


def counted(leaders: np.ndarray | None) -> float:
    """The number of different leaders, NaN where they are open."""
    return float("nan") if leaders is None else float(len(np.unique(leaders)))


compute = Parts(
    {
        "hulls": Part(measure_hulls, hull_grids, "hulls, n = {n}", share=0.1),
        "limits": Part(measure_limits, limit_grids, "limits of {n} tokens", share=0.4),
        "certified": Part(
            certify,
            lambda size: grids_of(START, ASKED[size]),
            "certified limits of {n} tokens",
            0.35,
            lambda n, **_: n**2,
        ),
        "reference": Part(reference, share=0.02),
        "heads": Part(
            measure_heads, head_grids, "{heads} heads, {family}, V_h: {values}", share=0.13
        ),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
