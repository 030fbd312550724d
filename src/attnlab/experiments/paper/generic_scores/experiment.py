"""Any scores at all: V = I or diag(1, 1, -0.5), Q^T K with independent uniform entries, by the
signs of its symmetric part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.types import Spec, Weights

N, REACH = 25, 5.0
"""Tokens of a draw, and half the side of the square (or cube) that they start in."""

DRAWS = {"full": (200, 120, 50), "small": (24, 20, 10)}
"""With V = I, paranormal, and with V = I and the start in these SIZES."""
SIZES = {"full": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0), "small": (0.2, 1.0, 5.0)}

WORK = {"full": 25_000.0, "small": 6_250.0}
"""Units for one limit in F, about a second: more do not help where leaders inside a group still
change.
"""
TIMES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 18.0)
TIMES_IN_F = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)

CHECKED = 8.0
"""The time at which the runs are compared with another integrator."""

SCALE = 0.05
"""Groups of a run at its last time are counted at this distance, 1 % of REACH."""
CLASSES = ("positive definite", "indefinite", "negative definite")
VALUES = {2: np.eye(2), 3: np.diag([1.0, 1.0, -0.5])}


def scores_of(draw: int, d: int) -> np.ndarray:
    """M = Q^T K of a draw."""
    return np.random.default_rng([draw, 1]).uniform(-1.0, 1.0, (d, d))


def start_of(draw: int, d: int, size: float = REACH) -> np.ndarray:
    """The first tokens, as the law uniform_cube draws them."""
    return np.random.default_rng(draw).uniform(-1.0, 1.0, (N, d)) * size


def class_of(scores: np.ndarray) -> str:
    """The signs of the symmetric part of the block in F, the first two coordinates."""
    values = np.linalg.eigvalsh(scores[:2, :2] + scores[:2, :2].T)
    return CLASSES[0] if values[0] > 0 else CLASSES[2] if values[1] < 0 else CLASSES[1]


def first_of(kind: str, d: int) -> int:
    """The first draw of a class: the one that is drawn."""
    return next(draw for draw in range(1000) if class_of(scores_of(draw, d)) == kind)


def specs(size: str) -> dict[str, Spec]:
    """The six runs of the pictures: of each class the first draw."""
    del size
    made, solve = (
        {},
        {"t_end": 10.0, "times": np.linspace(0.0, 10.0, 201).tolist(), "measure_error": True},
    )
    for d, before in ((2, ""), (3, "paranormal_")):
        for kind in CLASSES:
            draw = first_of(kind, d)
            start = {
                "law": "uniform_cube",
                "n": N,
                "d": d,
                "low": -REACH,
                "high": REACH,
                "rng": draw,
            }
            weights = {"family": "given", "Q": np.eye(d), "K": scores_of(draw, d), "V": VALUES[d]}
            made[before + kind.replace(" ", "_")] = Spec(weights=weights, start=start, solve=solve)
    return made


def weights_of(draw: int, d: int) -> Weights:
    """The matrices of a draw: V = I in the plane, V = diag(1, 1, -0.5) in space."""
    return Weights(Q=np.eye(d), K=scores_of(draw, d), V=VALUES[d])


def measure_draw(context: Context, draw: int, d: int) -> dict[str, Any]:
    """z in F at the saved times and its certified limits, or the groups at the end of the run where
    nothing is certified.
    """
    times, work = (TIMES, 500_000.0) if d == 2 else (TIMES_IN_F, WORK[context.size])
    weights, x0 = weights_of(draw, d), start_of(draw, d)
    run = simulate(
        weights, x0, t_end=times[-1], times=times, rtol=1e-11, throw=False, max_steps=20_000
    )
    assert run.z is not None
    z = np.full((len(times), N, 2), np.nan)
    z[: len(run.times)] = run.z[..., :2]
    end = limit(weights, x0, work=work)
    points, labels = (end.limits[:, :2], end.labels) if end.certified else ended(run.z[-1][:, :2])
    return {
        "z": z,
        "scores": weights.M[0],
        "limit": points,
        "label": labels,
        "is_decided": np.int8(end.certified),
        "error": end.error if end.certified else np.nan,
    }


def ended(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centres (n, 2), labels (n,)) of the groups at SCALE, with which a run ends."""
    labels = cluster_labels(tokens, SCALE)
    return cluster_centres(tokens, labels)[labels], labels


def measure_size(_: Context, reach: float, draw: int) -> dict[str, Any]:
    """The limits of a draw, V = I, when its start is larger or smaller."""
    end = limit(weights_of(draw, 2), start_of(draw, 2, reach), work=500_000.0)
    return {"limit": end.limits, "label": end.labels}


def solve_by_scipy(_: Context, draw: int) -> dict[str, Any]:
    """z of a draw at CHECKED by SciPy's DOP853, on the equation written out in NumPy."""
    x = flow_by_scipy(weights_of(draw, 2), start_of(draw, 2), CHECKED, rtol=1e-11, atol=1e-12)
    return {"z": np.exp(-CHECKED) * x}


def study_shown(context: Context, name: str) -> dict[str, Any]:
    """A run of the pictures, its limit and verdicts."""
    return study(
        specs(context.size)[name],
        context.progress,
        name=name,
        names=["generic_scores", "hull_shrinks"],
        work=WORK[context.size],
    )


def assemble(results: Results) -> dict[str, Any]:
    """A table of draws for each V, the checked runs, the sizes along axes of their own, and the
    runs of the pictures.
    """
    axes = {
        "z": ("time", "token", "coordinate"),
        "scores": ("row", "column"),
        "limit": ("token", "coordinate"),
        "label": ("token",),
    }
    data = {
        name: table_of_rows(results.values(name), "draw", axes, d=d).assign_coords(time=list(times))
        for name, d, times in (("draws", 2, TIMES), ("paranormal", 3, TIMES_IN_F))
    }
    data["scipy"] = table_of_rows(
        results.values("scipy"), "draw", {"z": ("token", "coordinate")}, t=CHECKED
    )
    sizes = SIZES[results.size]
    found = {
        name: np.array([row[name] for row in results.values("sizes")])
        for name in ("limit", "label")
    }
    split = {
        name: values.reshape(len(sizes), -1, *values.shape[1:]) for name, values in found.items()
    }
    mean = np.array(
        [start_of(draw, 2, 1.0).mean(axis=0) for draw in range(split["label"].shape[1])]
    )
    data["sizes"] = xarray.Dataset(
        {
            "limit": (("size", "draw", "token", "coordinate"), split["limit"]),
            "label": (("size", "draw", "token"), split["label"]),
            "mean": (("draw", "coordinate"), mean),
        },
        coords={"size": np.array(sizes)},
    )
    for shown in results.values("shown"):
        data |= shown
    return data


compute = Parts(
    {
        "draws": Part(
            measure_draw,
            lambda size: Grid({"d": [2], "draw": range(DRAWS[size][0])}),
            "draw {draw}, V = I",
            share=0.3,
        ),
        "scipy": Part(
            solve_by_scipy,
            lambda size: Grid({"draw": range(DRAWS[size][0] // 8)}),
            "draw {draw} by SciPy",
            share=0.02,
        ),
        "sizes": Part(
            measure_size,
            lambda size: Grid({"reach": SIZES[size], "draw": range(DRAWS[size][2])}),
            "start of size {reach:g}",
            share=0.25,
        ),
        "paranormal": Part(
            measure_draw,
            lambda size: Grid({"d": [3], "draw": range(DRAWS[size][1])}),
            "paranormal draw {draw}",
            share=0.35,
        ),
        "shown": Part(
            study_shown, Grid({"name": list(specs("full"))}), "the run {name}", share=0.1
        ),
    },
    assemble,
)
