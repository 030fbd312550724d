"""How many clusters 1 to 16 heads leave where double precision ends, synthetic and trained, with V_h = I and their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.hull import directions, support
from attnlab.analysis.random_polytopes import draw_points
from attnlab.analysis.span import in_span
from attnlab.engine import simulate
from attnlab.experiments.common.heads import FAMILIES, HEADS, VALUES, real_start, synthetic_heads
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Results, grids_of
from attnlab.sweep.grid import Grid

TOKENS = {"full": 30, "small": 12}
D, HALF_WIDTH, CLOSE = 24, 5.0, 0.01

STEPS = (480, 240)
"""Steps of rk4 for heads with their own V, where an adaptive run takes minutes; the second shows what the first is worth."""
TOLERANCES = (1e-7, 1e-6)

DRAWS = {"full": 3, "small": 1}
"""Of weights and start, or pieces of text; one only of trained heads with their own V, which take most of the time."""

DOUBLE_ENDS = 30.0
"""lambda_1 t at which double precision ends, about."""


def measure_heads(context: Context, family: str, values: str, heads: int, draw: int) -> dict[str, float]:
    """Clusters in the end, those of a coarser run, lambda_1 t there, and how far z left its first hull."""
    n = TOKENS[context.size]
    if family == "trained":
        weights, x0 = context.shared.heads(heads, values), real_start(context.shared.model, n, draw)
    else:
        weights, x0 = synthetic_heads(heads, D, values, rng=draw), HALF_WIDTH * draw_points("cube", n, D, draw)
    return _at_the_end(weights, x0, values)


def table_of_heads(results: Results) -> Any:
    """One row per case and draw."""
    model = results.shared.model
    return table_of_rows(results.rows("heads"), n=TOKENS[results.size], why=results.why, trained=results.shared.name,
                         start="" if model is None else "any tokens" if model.tokenizer_file is None else "pieces of our prose")


def head_grids(size: str) -> list[Grid]:
    """Every family and kind of values, 1 to 16 heads, and draws."""
    return grids_of("family, values, heads, draw", [
        (family, values, HEADS, 1 if (family, values) == ("trained", "own") else DRAWS[size])
        for family in FAMILIES for values in VALUES])


SEVERAL_HEADS = Part(measure_heads, head_grids, "{heads} heads, {family}, V_h: {values}", share=0.13)


def _at_the_end(weights: Any, x0: np.ndarray, values: str) -> dict[str, float]:
    """Clusters at the last time, those of a coarser run, lambda_1 t there, how far z left its first hull, NaN for own V."""
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
        assert run.z is not None
        sides = directions(64, run.d)
        outward = float((support(run.z[1:], sides) - support(run.z[0], sides)).max() / np.abs(run.z[0]).max())
    return {"clusters": _clusters(run), "again": _clusters(again), "grown": growth * float(run.times[-1]), "outward": outward}


def _clusters(run: Any) -> int:
    """The number of clusters of the last tokens at a hundredth of the largest of them."""
    last = run.scaled_x()[0][-1]
    return int(cluster_count(last, CLOSE * float(np.linalg.norm(last, axis=1).max())))
