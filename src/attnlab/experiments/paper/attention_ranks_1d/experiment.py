"""d = 1: attention becomes Boolean, of rank 1 or 2; and which dynamics can have made the ranks that
were published.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp

from attnlab.dynamics import attention
from attnlab.dynamics.attention import attention_matrices
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import table, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.types import Dynamics, Spec, Weights

TIMES = (0.0, 3.0, 5.0, 10.0)
N = 40

DYNAMICS: dict[str, dict[str, Any] | None] = {
    "flow": {"rtol": 1e-10},
    "Euler in z, 0.1": {"stepper": "euler", "dt": 0.1, "frame": "z"},
    "Euler in x, 0.1": {"stepper": "euler", "dt": 0.1, "frame": "x"},
    "Euler in x, 0.25": {"stepper": "euler", "dt": 0.25, "frame": "x"},
    "Euler in x, 0.5": {"stepper": "euler", "dt": 0.5, "frame": "x"},
    "no coupling": None,
}
"""What could have made the published ranks: options of simulate; None is x = e^t x(0)."""

STARTS = {
    "full": (
        *(("U", width) for width in (0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)),
        ("N", 0.45),
        ("N", 0.5),
    ),
    "small": (("U", 0.85), ("U", 1.0)),
}
"""U: uniform on [-L, L]; N: normal of that deviation."""
SEEDS = {"full": 200, "small": 24}

U_START = 0.7
"""The symmetric start (-u, 0, u)."""


def specs(size: str) -> dict[str, Spec]:
    """The run whose matrices are shown: the first of the starts."""
    return {
        "run": Spec(
            weights={"family": "identity"},
            start={"law": "uniform_cube", "n": N, "d": 1, "rng": 0},
            solve={"t_end": 10.0, "saves": 101, "rtol": 1e-10, "measure_error": True},
        )
    }


def draw(law: str, width: float, seed: int) -> np.ndarray:
    """The start (n, 1) of rng = 0, 1, ..; the same draw for every width."""
    generator = np.random.default_rng(seed)
    return width * (
        generator.uniform(-1, 1, (N, 1)) if law == "U" else generator.standard_normal((N, 1))
    )


def singular_values(x0: np.ndarray, options: dict[str, Any] | None) -> np.ndarray:
    """Singular values (start, time, n) of the attention matrices at TIMES."""
    weights = Weights(V=[[1.0]])
    if options is None:
        P = np.stack([attention_matrices(Dynamics.of(weights), x0, t) for t in TIMES], axis=1)[
            :, :, 0
        ]
    else:
        run = simulate(weights, x0, t_end=TIMES[-1], times=TIMES, **options)
        P = np.stack([attention(run, at=k)[:, 0] for k in range(len(TIMES))], axis=1)
    return np.linalg.svd(P, compute_uv=False)


def ranks_of(values: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Numerical ranks: how many singular values exceed n eps times the largest, numpy's rule;
    `factor` times that.
    """
    threshold = factor * values.shape[-1] * np.finfo(float).eps * values[..., :1]
    return (values > threshold).sum(axis=-1)


def run_shown(context: Context) -> dict[str, Any]:
    """The run that is shown, its limit and the verdict, and the symmetric start."""
    return {
        **study(specs(context.size)["run"], context.progress, names=["low_rank_boolean"]),
        "symmetric": symmetric(),
    }


def measure_end(_: Context, seed: int) -> dict[str, Any]:
    """The certified leaders of a start from [-1, 1]."""
    x0 = draw("U", 1.0, seed)
    end = limit(Weights(V=[[1.0]]), x0)
    return {
        "leaders": end.leaders,
        "is_certified": np.int8(end.grade == "exact"),
        "start": x0[:, 0],
    }


def measure_ranks(context: Context, law: str, width: float, dynamics: str) -> dict[str, Any]:
    """The ranks (seed, time) of all starts of a law by one of DYNAMICS; for the standard start also
    the singular values.
    """
    values = singular_values(
        np.stack([draw(law, width, seed) for seed in range(SEEDS[context.size])]),
        DYNAMICS[dynamics],
    )
    return {
        "rank": ranks_of(values),
        "singular_values": values if (law, width) == ("U", 1.0) else None,
    }


def assemble(results: Results) -> dict[str, Any]:
    """The Datasets of the run, a table of ends, and the ranks along axes of their own."""
    starts = STARTS[results.size]
    ranks = np.array([one["rank"] for one in results.values("ranks")]).reshape(
        len(starts), len(DYNAMICS), -1, len(TIMES)
    )
    kept = np.array(
        [
            one["singular_values"]
            for one in results.values("ranks")
            if one["singular_values"] is not None
        ]
    )
    made = xarray.Dataset(
        {
            "rank": (("start", "dynamics", "seed", "at"), ranks),
            "singular_values": (("dynamics", "seed", "at", "number"), kept),
            "t": ("at", list(TIMES)),
            "name_of_start": ("start", [f"{law} {width:g}" for law, width in starts]),
            "name_of_dynamics": ("dynamics", list(DYNAMICS)),
        }
    )
    ends = table_of_rows(
        results.values("ends"), "seed", {"leaders": ("token",), "start": ("token",)}
    )
    return {**results.values("shown")[0], "ends": ends, "ranks": made}


def symmetric() -> Any:
    """Tokens (-u, 0, u): in plain double precision, by the equation of u alone, and the certified
    limit, which is symmetric.
    """
    times, x0 = np.linspace(0.0, 10.0, 101), np.array([[-U_START], [0.0], [U_START]])
    end = limit(Weights(V=[[1.0]]), x0)
    plain = simulate(Weights(V=[[1.0]]), x0, t_end=10.0, times=times, rtol=1e-12)

    def slope(t: float, log_z: np.ndarray) -> np.ndarray:
        small = np.exp(-np.exp(2 * (t + log_z)))  # e^{-u²}; z = e^{-t} u
        return -(small + 2 * small**2) / (1 + small + small**2)

    alone = solve_ivp(
        slope, (0.0, 10.0), [np.log(U_START)], method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13
    )
    made = table({"t": times, "u": np.exp(times + alone.y[0])}, "time")
    made["x"] = (("time", "token"), plain.x[:, :, 0])
    made["leaders"], made["limits"] = ("token", end.leaders), ("token", end.limits[:, 0])
    return made


compute = Parts(
    {
        "shown": Part(run_shown, doing="the run that is shown", share=0.1),
        "ends": Part(
            measure_end,
            Grid({"seed": range(SEEDS["full"])}, small={"seed": range(SEEDS["small"])}),
            "limit {seed}",
            share=0.3,
        ),
        "ranks": Part(
            measure_ranks,
            lambda size: Grid({"law, width": STARTS[size], "dynamics": list(DYNAMICS)}),
            "ranks of starts {law} {width:g}, {dynamics}",
            share=0.6,
        ),
    },
    assemble,
)
