"""Which token attends to which: leaders emerge. In the end there are one or two, but at T = 10 not
always yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import dataset_of, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.types import Spec, Weights

N, D, T, STEP = 20, 2, 10.0, 0.1
REFERENCE_TIME = 2.0


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V = B Bᵀ, M = C Cᵀ and the tokens; the entries of B, C and the tokens are uniform on [-1,
    1].
    """
    generator = np.random.default_rng(seed)
    B, C = generator.uniform(-1, 1, (2, D, D))
    return B @ B.T, C @ C.T, generator.uniform(-1, 1, (N, D))


def specs(size: str) -> dict[str, Spec]:
    """The run that is shown, rng = 0."""
    V, M, x0 = draw(0)
    return {
        "run": Spec(
            weights={"family": "given", "Q": M.tolist(), "K": np.eye(D).tolist(), "V": V.tolist()},
            start={"law": "given", "x": x0.tolist()},
            solve={"t_end": T, "saves": 201, "rtol": 1e-10},
        )
    }


def run_shown(context: Context) -> dict[str, Any]:
    """The run that is shown with its limit, the same by Euler, and the tokens at REFERENCE_TIME by
    SciPy.
    """
    V, M, x0 = draw(0)
    weights, times = Weights(Q=M, V=V), np.arange(0, round(T / STEP) + 1) * STEP
    euler = simulate(weights, x0, times=times, t_end=T, stepper="euler", dt=STEP, frame="x")
    x = flow_by_scipy(weights, x0, REFERENCE_TIME, rtol=1e-12)
    return {
        **study(specs(context.size)["run"], context.progress, names=["three_hyperplanes"]),
        "euler": dataset_of(euler),
        "reference": xarray.Dataset({"x": (("token", "coordinate"), x)}),
    }


def measure_draw(_: Context, seed: int) -> dict[str, Any]:
    """The leader of every token of a draw: at T by the flow and by Euler, and at infinity; and how
    far T is from that.
    """
    V, M, x0 = draw(seed)
    weights, (growth, modes) = Weights(Q=M, V=V), np.linalg.eigh(V)
    end = limit(weights, x0, work=500_000.0)
    final = np.where(end.leaders[:, None] >= 0, np.eye(N)[end.leaders], np.nan)
    # a run with a large λ₁ may end before T, where double precision does: its attention has long
    # been Boolean then
    options: dict[str, Any] = {"t_end": T, "times": np.linspace(0.0, T, 21), "throw": False}
    P = attention(simulate(weights, x0, rtol=1e-9, **options))[0]
    P_euler = attention(simulate(weights, x0, stepper="euler", dt=STEP, frame="x", **options))[0]
    return {
        "follows_flow": P.argmax(axis=1),
        "follows_euler": P_euler.argmax(axis=1),
        "follows_infinity": end.leaders,
        "leading": growth[1],
        "second": growth[0],
        "decided": end.t,
        "off": np.abs(P - final).max(),
        "rank": float(np.linalg.matrix_rank(P)),
        "rank_euler": float(np.linalg.matrix_rank(P_euler)),
        "level": end.limits @ modes[:, -1],
        "is_exact": np.int8(end.grade == "exact"),
    }


def assemble(results: Results) -> dict[str, Any]:
    """The Datasets of the run that is shown, and the table of many draws."""
    axes = {
        name: ("token",) for name in ("follows_flow", "follows_euler", "follows_infinity", "level")
    }
    return {**results.values("shown")[0], "many": table_of_rows(results.rows("many"), "draw", axes)}


compute = Parts(
    {
        "shown": Part(run_shown, doing="the run that is shown", share=0.2),
        "many": Part(
            measure_draw,
            Grid({"seed": range(200)}, small={"seed": range(30)}),
            "draw {seed}",
            share=0.8,
        ),
    },
    assemble,
)
