"""A feed-forward part after the attention: ReLU, tanh, ReLU with a random W. What approaches
hyperplanes, and what collapses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.distances import diameter
from attnlab.analysis.hyperplanes import three_planes
from attnlab.analysis.plain_flow import frame_by_scipy
from attnlab.engine import simulate
from attnlab.engine.threads import one_blas_thread
from attnlab.experiments.datasets import dataset_of, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.run import run_spec
from attnlab.sweep.grid import Grid
from attnlab.types import FeedForward, Spec, Trajectory, Weights
from attnlab.weights import weights_families

DRAWS = {"full": 100, "small": 8}
N = 20

UNTIL = 5.0
"""lambda_1 T: what tends to a hyperplane is within e^-5, less than 1 %, of it. Later the kinks of
the ReLU make it too stiff.
"""
MAX_STEPS = 1500
ROWS = {"relu": "ReLU, W = I", "tanh": "tanh, W = I", "random": "ReLU, W random"}
LAWS = {"cube": (-5.0, 5.0), "positive": (0.0, 5.0), "small": (-0.2, 0.2)}
CASES = (
    ("plane", "cube"),
    ("plane", "positive"),
    ("plane", "small"),
    ("space", "cube"),
    ("family", "cube"),
    ("family", "small"),
)
PUBLISHED = {"plane": "hyperplanes_2d", "space": "hyperplanes_3d_growing"}


def value_matrix(setting: str, draw: int) -> np.ndarray:
    """V of a good triple: one of the paper's, or that of a random one."""
    weights = (
        weights_families["good_triple"](d=3, rng=draw)
        if setting == "family"
        else weights_families["published"](matrix=PUBLISHED[setting])
    )
    return np.asarray(weights.full_V[0])


def drawn(setting: str, law: str, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(V, tokens (n, d), random W) of a draw, each from its own seed; W has entries U(-1, 1)."""
    V = value_matrix(setting, draw)
    rng = np.random.default_rng([16, draw])
    d = len(V)
    return V, rng.uniform(*LAWS[law], (N, d)), rng.uniform(-1, 1, (d, d))


def layer(row: str, W: np.ndarray) -> FeedForward:
    """The feed-forward part of a row of the picture."""
    return FeedForward(W=W if row == "random" else None, sigma="tanh" if row == "tanh" else "relu")


def leading_rate(V: np.ndarray) -> float:
    """lambda_1."""
    return float(np.linalg.eigvals(V).real.max())


def specs(size: str) -> dict[str, Spec]:
    """The three runs of the picture."""
    V, x0, W = drawn("plane", "cube", 0)
    end = UNTIL / leading_rate(V)
    extra: dict[str, dict[str, Any]] = {
        "relu": {"sigma": "relu"},
        "tanh": {"sigma": "tanh"},
        "random": {"sigma": "relu", "W": W.tolist()},
    }
    return {
        row: Spec(
            weights={"family": "published", "matrix": PUBLISHED["plane"]},
            start={"law": "given", "x": x0.tolist()},
            dynamics={"feedforward": extra[row]},
            solve={"t_end": end, "times": np.linspace(0, end, 61).tolist(), "measure_error": True},
        )
        for row in ROWS
    }


def run_shown(context: Context) -> dict[str, Any]:
    """The three runs of the picture, and the same by another program."""
    V, x0, W = drawn("plane", "cube", 0)
    runs = {row: run_spec(spec) for row, spec in specs(context.size).items()}
    times = runs["relu"].times
    context.progress(0.5, "the same by another program")
    with one_blas_thread():
        others = np.stack(
            [frame_by_scipy(V, np.eye(len(V)), x0, times, layer(row, W), rtol=1e-9) for row in ROWS]
        )
    return {
        **{row: dataset_of(run) for row, run in runs.items()},
        "independent": xarray.Dataset(
            {"z": (("row", "time", "token", "coordinate"), others)},
            coords={"row": list(ROWS), "time": times},
        ),
    }


def measure_draw(_: Context, setting: str, law: str, draw: int) -> list[dict[str, Any]]:
    """What the run of each row of the picture did."""
    V, x0, W = drawn(setting, law, draw)
    lines = []
    for row in ROWS:
        run = simulate(
            Weights(V=V),
            x0,
            t_end=UNTIL / leading_rate(V),
            saves=41,
            feedforward=layer(row, W),
            rtol=1e-6,
            max_steps=MAX_STEPS,
            throw=False,
        )
        lines.append(
            {
                "setting": setting,
                "law": law,
                "row": row,
                "draw": draw,
                **measured(run, W if row == "random" else None),
            }
        )
    return lines


def assemble(results: Results) -> dict[str, Any]:
    """The runs of the picture, and a table of many draws."""
    lines = [line for some in results.values("draws") for line in some]
    return {**results.values("shown")[0], "draws": table_of_rows(lines, "line", kind="draws")}


def measured(run: Trajectory, W: np.ndarray | None) -> dict[str, float]:
    """What is asked of a run: sizes at both ends, the distance to three hyperplanes, the largest
    fall and the largest speed.

    least: no token set can be nearer to 0 than this, by the coordinates of W^{-1} z that never
    decrease (ReLU).
    """
    z = run.z
    assert z is not None
    inverse = np.eye(run.d) if W is None else np.linalg.inv(W)
    rising = z @ inverse.T
    first, last = z[0], z[-1]
    widest = float(diameter(first))
    seldom = slice(
        None, None, 4
    )  # values between the integrator's steps are less exact near a kink
    steps = np.diff(z[seldom], axis=0) / np.diff(run.times[seldom])[:, None, None]
    return {
        "is_complete": float(run.is_ok),
        "reached": float(run.times[-1] * leading_rate(run.dynamics.weights.full_V[0])),
        "first_size": float(np.linalg.norm(first, axis=1).max()),
        "size": float(np.linalg.norm(last, axis=1).max()),
        "first_diameter": widest,
        "diameter": float(diameter(last)),
        "planes": three_planes(last) / widest,
        "fall": float(-np.diff(rising, axis=0).min() / np.abs(rising[0]).max()),
        "speed": float(np.abs(steps).max()),
        "least": float(max(0.0, (rising[0] / np.linalg.norm(inverse, axis=1)).max())),
    }


compute = Parts(
    {
        "shown": Part(run_shown, doing="the three runs of the picture", share=0.06),
        "draws": Part(
            measure_draw,
            Grid(
                {"setting, law": CASES, "draw": range(DRAWS["full"])},
                small={"draw": range(DRAWS["small"])},
            ),
            "{setting}, {law} starts",
            share=0.94,
        ),
    },
    assemble,
)
