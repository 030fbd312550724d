"""How the number of heads changes clusters: under heads that disagree no token stands still, and
tokens merge.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_count
from attnlab.analysis.distances import diameter
from attnlab.analysis.plain_flow import euler_steps, rescaled_by_scipy
from attnlab.analysis.span import in_span
from attnlab.engine import simulate
from attnlab.experiments.common.certified import (
    certified_limit,
    distance_to_limits,
    facts_of,
)
from attnlab.experiments.common.halved import Halved
from attnlab.experiments.common.heads import (
    HEADS,
    VALUES,
    Trained,
    cube_start,
    real_start,
    synthetic_heads,
)
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

from . import flows

MANY, D = max(HEADS), 3

SYNTHETIC = ("synthetic", "alike")
"""Q_h and K_h independent, so that scores have no sign; or Q_h = K_h, so that every Q_h^T K_h is
positive definite.
"""

EULER_STEP = 0.1
"""The slides' time step."""

COMPARED = 6.0
"""The tau at which SciPy is asked."""

DRAWS = {"full": {10: 20, 30: 20, 100: 20, 300: 6}, "small": {10: 5, 20: 4}}
"""How many draws of weights and start for each n."""
CUBES = {"full": {10: 20, 30: 10, 100: 6, 300: 4}, "small": {5: 6, 10: 3, 20: 5}}

PIECES = {"full": {10: 10, 30: 10, 100: 6, 300: 3}, "small": {5: 2, 10: 10, 20: 3}}
"""Trained heads: random starts, and pieces of the paragraphs, for each n."""

FIRST_PIECE = {10: 90, 100: 3}
"""The first piece that is read (else 0): so that pieces of 10, 30 and 100 tokens do not overlap;
those of 300 do.
"""

SIZES = {"full": {"few": 30, "more": 100, "many": 300}, "small": {"few": 5, "more": 10, "many": 20}}
"""What few (at most), more and many tokens are in the words of the slides."""

STEP, FINE_STEP, TEXT_STEP, OWN_STEP, FINE_OWN_STEP = 0.1, 0.05, 0.2, 0.2, 0.15
"""Steps in tau; fine ones for one or two trained heads on the cube, where a change of leader turns
a token at once, and for sixteen trained heads with their own values, which depend on it most; long
ones for text, whose scores are soft at first.
"""

AT_MOST = 100
"""More tokens only with V_h = I; trained ones with one head and with all, of the cube with all."""

CERTIFIED = {1: 300, 2: 100, 4: 30, 8: 30, 16: 30}
"""For so many heads, limits are certified up to so many tokens. The work grows like H² n³, since
each row of each head changes its leader several times: a hundred tokens under sixteen heads take
minutes each. Trained heads act in a span of n dimensions: there more than 30 tokens only with one.
"""

OWN_DRAWS, OWN_TRAINED = {10: 10, 20: 1, 30: 10, 100: 3}, {"full": {30: 3}, "small": {5: 1}}
"""With the heads' own values: draws by n; trained heads, of which a run costs most, have fewer
starts of each kind.
"""

MIXTURES = 2000

PANELS: dict[str, dict[int, tuple[float, ...]]] = {
    "full": {30: (1.0, 7.0, 15.0), 100: (1.0, 10.0, 20.0)},
    "small": {10: (1.0, 3.0), 20: (1.0, 4.0)},
}
"""The times shown in the slides, by n."""
RUNS, DOING = ("narrow", "wide"), "{family}, n = {n}, {heads} heads"

PLACES = ("n", "heads", "values", "seed", "cosine", "half", "high")
"""The parts that are runs, the words for their progress, and the columns of the table of places."""


def cost(n: int, heads: int, **_: Any) -> float:
    """The work of a run."""
    return n**2 * heads


def synthetic(family: str, count: int, values: str, seed: int) -> Weights:
    """Gaussian heads in three dimensions; of the family "alike" with K_h = Q_h."""
    weights = synthetic_heads(count, D, values, rng=seed)
    if family == "synthetic":
        return weights
    return Weights(Q=weights.Q, V=weights.V, K=weights.Q, source=f"{weights.source}, K = Q")


def run_grids(size: str, is_wide: bool) -> list[Grid]:
    """All runs; wide ones are followed in NumPy, so that two may go at once."""
    found: list[tuple[Any, ...]] = [
        (
            family,
            values,
            "cube",
            n,
            HEADS,
            draws if values == "identity" else min(draws, OWN_DRAWS[n]),
        )
        for family in SYNTHETIC
        for values in VALUES
        for n, draws in DRAWS[size].items()
        if values == "identity" or n <= AT_MOST
    ]
    for start, many in (("cube", CUBES[size]), ("paragraph", PIECES[size])):
        found += [
            (
                "trained",
                "identity",
                start,
                n,
                HEADS if n <= AT_MOST else (MANY,) if start == "cube" else (1, MANY),
                draws,
            )
            for n, draws in many.items()
        ]
        found += [
            ("trained", "own", start, n, HEADS, draws) for n, draws in OWN_TRAINED[size].items()
        ]
    return grids_of(
        "family, values, start, n, heads, seed",
        [
            one
            for one in found
            if is_wide == (one[:2] == ("trained", "identity") and one[3] >= flows.WIDE)
        ],
        first=1,
    )


def assemble(results: Results) -> dict[str, Any]:
    """Every run with its clusters; where clusters of paragraphs are; the slides' Euler steps; and
    what is known exactly.
    """
    data = {"euler": table_of_rows(results.rows("euler")), "checks": results.values("checks")[0]}
    data["cases"] = table_of_rows(
        [row for part in RUNS for row in results.rows(part, "row")],
        axes={"counts": ("tau",)},
        model=results.shared.name,
        why=results.why,
    )
    data["cases"].attrs.update(SIZES[results.size])
    places = [row for part in RUNS for row in results.rows(part, "places")]
    if places:
        data["places"] = table_of_rows(
            [{name: row[name] for name in PLACES} for row in places],
            "cluster",
            model=results.shared.name,
        )
    return data


def measure_run(context: Context, **case: Any) -> dict[str, Any]:
    """{"row": its numbers, "places": where clusters of a paragraph are}.

    grade: of the limit, "run" where none is certified; then count, kept and inner are those of the
    end of the run. count: limits. off: how far the last tokens are from them, over the first
    diameter. merging: the tau from which on the run has as many clusters as the limits seen at the
    same scale. counts: the number of clusters over time. Own values, by half the steps: halved, the
    number of clusters less that by whole ones; apart, how far tokens are apart then.
    """
    is_own = case["values"] == "own"
    weights, x0 = problem(context.shared, **case)
    facts: dict[str, Any] = {"halved": np.nan, "apart": np.nan}
    runs = Halved.follow(
        lambda step: flows.follow(weights, x0, case["values"], step, until_single=True),
        step_of(case["family"], case["values"], case["start"], case["heads"]),
        when=is_own,
    )
    flow = runs.best
    if is_own:
        counts = flows.count_at_end(flow)
        facts["halved"], facts["apart"] = runs.compare(_apart)
        facts |= {"grade": "run", "count": len(flow.centres), "kept": np.nan, "inner": 0}
        facts |= {"off": np.nan, "merging": np.nan}
        centres, tokens = flow.centres, flow.shapes[0]
    else:
        counts = flows.counts_over_time(flow)
        ends, centres = _end_of(weights, x0, flow, counts, is_certifiable(**case))
        facts, tokens = facts | ends, x0
    facts["gap"] = _gap(weights) if case["family"] == "alike" and case["heads"] == 1 else np.nan
    places = _places(centres, tokens) if case["start"] == "paragraph" else []
    return {"row": {**facts, "counts": counts}, "places": places}


def is_certifiable(family: str, n: int, heads: int, **_: Any) -> bool:
    """Whether a limit is asked for: V_h = I and so few tokens and heads that it takes seconds."""
    return n <= CERTIFIED[heads] and not (family == "trained" and n > 30 and heads > 1)


def _end_of(
    weights: Weights, x0: np.ndarray, flow: flows.Shapes, counts: np.ndarray, is_asked: bool
) -> tuple[dict[str, Any], np.ndarray]:
    """(where V_h = I ends, the limits (m, d) or the clusters of the run): by the certificate, and
    without one by the run.
    """
    end, points = certified_limit(weights, x0) if is_asked else (None, None)
    basis = in_span(weights, x0)[2]
    if end is None or points is None:
        kept, inner = flows.held(flow)
        return {
            "grade": "run" if end is None else str(end.grade),
            "count": len(flow.centres),
            "kept": kept,
            "inner": inner,
            "off": np.nan,
            "merging": flows.last_merging(counts),
        }, flow.centres @ basis.T
    facts = facts_of(end, points, x0)
    last = flow.shapes[-1] @ basis.T
    return {
        "grade": facts["grade"],
        "count": facts["count"],
        "kept": facts["kept"],
        "inner": facts["count"] - facts["corners"],
        "off": distance_to_limits(last, end, points, float(diameter(x0))),
        "merging": flows.last_merging(counts, facts["seen"]),
    }, points


def _apart(whole: flows.Shapes, half: flows.Shapes) -> tuple[float, float]:
    """(further clusters by half the steps, how far tokens are apart at the end, over the first
    diameter); NaN if incomplete.
    """
    if not (whole.is_complete and half.is_complete):
        return np.nan, np.nan
    last = min(len(half.shapes), len(whole.shapes)) - 1
    off = np.linalg.norm(half.shapes[last] - whole.shapes[last], axis=1).max()
    return len(half.centres) - len(whole.centres), float(off / diameter(half.shapes[0]))


def step_of(family: str, values: str, start: str, count: int) -> float:
    """The step in tau of a run."""
    if values == "own":
        return FINE_OWN_STEP if family == "trained" and count == MANY else OWN_STEP
    if start == "paragraph":
        return TEXT_STEP
    return FINE_STEP if family == "trained" and count <= 2 else STEP


def problem(
    shared: Trained, family: str, values: str, start: str, n: int, heads: int, seed: int
) -> tuple[Weights, np.ndarray]:
    """The weights and the first tokens of a run; of a paragraph the seed-th piece of n tokens that
    is read.
    """
    if family in SYNTHETIC:
        return synthetic(family, heads, values, seed), cube_start(n, D, seed)
    weights = shared.heads(heads, values)
    if start == "cube":
        return weights, cube_start(n, weights.d, seed)
    return weights, real_start(shared.model, n, FIRST_PIECE.get(n, 0) + seed - 1)


def _gap(weights: Weights) -> float:
    """How far a real positive leading eigenvalue of V is ahead of the others, over itself; 0 where
    another one leads.
    """
    values = np.linalg.eigvals(weights.full_V[0])
    first = values[np.argmax(values.real)]
    rest = np.delete(values.real, np.argmax(values.real))
    return (
        float((first.real - rest.max()) / first.real)
        if first.imag == 0 and first.real >= np.abs(values).max()
        else 0.0
    )


def _places(centres: np.ndarray, tokens: np.ndarray) -> list[dict[str, Any]]:
    """For each cluster: the cosine to the nearest first token, and what random mixtures of the
    tokens have there.
    """
    chance = flows.nearest_cosine(flows.random_mixtures(tokens, MIXTURES), tokens)
    return [
        {
            "cosine": float(cosine),
            "half": float(np.median(chance)),
            "high": float(np.quantile(chance, 0.95)),
        }
        for cosine in flows.nearest_cosine(centres, tokens)
    ]


def panels(size: str) -> Grid:
    """What the slides show: 16 heads, V_h = I, the cube."""
    return Grid({"family": (*SYNTHETIC, "trained"), "n": tuple(PANELS[size])})


def compare_euler(context: Context, family: str, n: int) -> list[dict[str, Any]]:
    """What the slides computed: Euler steps of x beside the flow as far as double precision goes, a
    row for each time.
    """
    times, found = PANELS[context.size][n], []
    weights, start, _ = in_span(*problem(context.shared, family, "identity", "cube", n, MANY, 1))
    flow = flows.follow(weights, start, "identity", step_of(family, "identity", "cube", MANY))
    scale = OBSERVED_SCALE * float(diameter(start))
    steps = euler_steps(weights, start, EULER_STEP, round(max(times) / EULER_STEP))
    for t in times:
        k = round(t / EULER_STEP)
        at = int(np.argmin(np.abs(flow.tau - MANY * t)))
        z = steps[k] / (1 + EULER_STEP * MANY) ** k
        found.append(
            {
                "t": t,
                "tau": MANY * t,
                "euler": int(cluster_count(z, scale)),
                "flow": int(cluster_count(flow.shapes[at], scale)) if MANY * t <= flows.END else -1,
                "off": float(np.linalg.norm(z - flow.shapes[at], axis=1).max() / diameter(start)),
                "growth": float(np.abs(steps[k]).max() / np.abs(steps[k - 1]).max()),
            }
        )
    return found


def checks(_: Context) -> Any:
    """Equal heads against one head; SciPy on a plain right-hand side; and where double precision
    ends.
    """
    one, x0 = synthetic("alike", 1, "identity", 1), cube_start(10, D, 1)
    equal = Weights(
        Q=np.repeat(one.Q, MANY, 0),
        K=np.repeat(one.K, MANY, 0),
        V=np.repeat(one.V, MANY, 0),
        source="equal heads",
    )
    first = simulate(one, x0, t_end=10.0, saves=41, rtol=1e-9, frame="z").rescaled
    second = simulate(equal, x0, t_end=10.0 / MANY, saves=41, rtol=1e-9, frame="z").rescaled
    walls, off = [], []
    for family, count in (("synthetic", MANY), ("alike", 4)):
        weights, start = synthetic(family, count, "identity", 2), cube_start(10, D, 2)
        theirs = rescaled_by_scipy(weights, start, COMPARED, rtol=1e-8)
        for flow in (
            flows.follow(weights, start, "identity", STEP),
            flows.with_summed_heads(weights, start, STEP, True),
        ):
            if flow.tau[-1] >= COMPARED:
                at = int(np.searchsorted(flow.tau, COMPARED))
                off.append(
                    float(np.linalg.norm(flow.shapes[at] - theirs, axis=1).max() / diameter(start))
                )
        long = simulate(
            weights,
            start,
            t_end=80 / count,
            saves=321,
            stepper="rk4",
            dt=0.25 / count,
            frame="z",
            throw=False,
        )
        walls.append(float(long.times[-1] * count) if not long.is_ok else np.inf)
    return xarray.Dataset(
        {
            "one": (("time", "token", "coordinate"), first),
            "equal": (("time", "token", "coordinate"), second),
            "off": ("compared", np.array(off)),
            "wall": ("run", np.array(walls)),
        }
    )


compute = Parts(
    {
        "narrow": Part(measure_run, partial(run_grids, is_wide=False), DOING, 0.3, cost),
        "wide": Part(measure_run, partial(run_grids, is_wide=True), DOING, 0.6, cost, at_once=2),
        "euler": Part(compare_euler, panels, "Euler steps, {family}, n = {n}", share=0.07),
        "checks": Part(checks, share=0.03),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
