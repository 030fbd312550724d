"""How many clusters 1 to 16 heads leave where double precision ends, synthetic and trained, with V_h = I and their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import heads
from attnlab.experiments.datasets import table
from attnlab.experiments.random_polytopes import draw_points
from attnlab.progress import Progress

TOKENS = {"full": 30, "small": 12}
D, HALF_WIDTH, CLOSE = 24, 5.0, 0.01
STEPS = (480, 240)
"""Steps of rk4 for heads with their own V, where an adaptive run takes minutes; the second shows what the first is worth."""

TOLERANCES = (1e-7, 1e-6)
DRAWS = {"full": 3, "small": 1}
"""Of weights and start, or pieces of text; one only of trained heads with their own V, which take most of the time."""

DOUBLE_ENDS = 30.0
"""lambda_1 t at which double precision ends, about."""


def several_heads(size: str, model: str, progress: Progress) -> Any:
    """A row a case and draw: clusters in the end, those of a coarser run, lambda_1 t there, how far z left its first hull."""
    trained, why = heads.trained_model(size, model)
    cases = [(family, values, count, draw) for family in heads.FAMILIES if family == "synthetic" or trained is not None
             for values in heads.VALUES for count in heads.HEADS
             for draw in range(1 if (family, values) == ("trained", "own") else DRAWS[size])]
    rows = []
    for done, (family, values, count, draw) in enumerate(cases):
        progress(done / len(cases), f"{count} heads, {family}, V_h: {values}")
        if family == "trained":
            weights, x0 = heads.trained_heads(trained, count, values), heads.real_start(trained, TOKENS[size], draw)
        else:
            weights = heads.synthetic_heads(count, D, values, rng=draw)
            x0 = HALF_WIDTH * draw_points("cube", TOKENS[size], D, draw)
        rows.append((family, values, count, draw, *_at_the_end(weights, x0, values)))
    names = ("family", "values", "heads", "draw", "clusters", "again", "grown", "outward")
    return table(dict(zip(names, zip(*rows, strict=True), strict=True)), n=TOKENS[size], why=why,
                 trained="" if trained is None else trained.name,
                 start="" if trained is None else "any tokens" if trained.tokenizer_file is None else "pieces of our prose")


def _at_the_end(weights: Any, x0: np.ndarray, values: str) -> tuple[int, int, float, float]:
    """(clusters at the last time, those of a coarser run, lambda_1 t there, how far z left its first hull, NaN for own V)."""
    from attnlab.analysis.hull import directions, support
    from attnlab.engine import simulate

    if values == "identity":
        weights, x0, _ = heads.in_span(weights, x0)
    growth = float(weights.total.eigenvalues.real.max())
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
    return _clusters(run), _clusters(again), growth * float(run.times[-1]), outward


def _clusters(run: Any) -> int:
    """The number of clusters of the last tokens at a hundredth of the largest of them."""
    from attnlab.analysis.clusters import cluster_count

    last = run.scaled_x()[0][-1]
    return int(cluster_count(last, CLOSE * float(np.linalg.norm(last, axis=1).max())))
