"""d = 1: attention becomes Boolean, of rank 1 or 2; and which dynamics can have made the ranks that were published."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp

from attnlab.dynamics import attention
from attnlab.dynamics.attention import attention_matrices
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import table
from attnlab.limits import limit
from attnlab.progress import Progress
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

STARTS = {"full": (*(("U", width) for width in (0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)), ("N", 0.45), ("N", 0.5)),
          "small": (("U", 0.85), ("U", 1.0))}
"""U: uniform on [-L, L]; N: normal of that deviation."""
SEEDS = {"full": 200, "small": 24}

U_START = 0.7
"""The symmetric start (-u, 0, u)."""


def specs(size: str) -> dict[str, Spec]:
    """The run whose matrices are shown: the first of the starts."""
    return {"run": Spec(weights={"family": "identity"}, start={"law": "uniform_cube", "n": N, "d": 1, "rng": 0},
                        solve={"t_end": 10.0, "saves": 101, "rtol": 1e-10, "measure_error": True})}


def draws(law: str, width: float, count: int) -> np.ndarray:
    """The starts (count, n, 1) of rng = 0, 1, ..; the same draws for every width."""
    generators = [np.random.default_rng(k) for k in range(count)]
    return width * np.stack([g.uniform(-1, 1, (N, 1)) if law == "U" else g.standard_normal((N, 1)) for g in generators])


def singular_values(x0: np.ndarray, options: dict[str, Any] | None) -> np.ndarray:
    """Singular values (start, time, n) of the attention matrices at TIMES."""
    weights = Weights(V=[[1.0]])
    if options is None:
        P = np.stack([attention_matrices(Dynamics.of(weights), x0, t) for t in TIMES], axis=1)[:, :, 0]
    else:
        run = simulate(weights, x0, t_end=TIMES[-1], times=TIMES, **options)
        P = np.stack([attention(run, at=k)[:, 0] for k in range(len(TIMES))], axis=1)
    return np.linalg.svd(P, compute_uv=False)


def ranks_of(values: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Numerical ranks: how many singular values exceed n eps times the largest, numpy's rule; `factor` times that."""
    threshold = factor * values.shape[-1] * np.finfo(float).eps * values[..., :1]
    return (values > threshold).sum(axis=-1)


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run with its limit, the limits and ranks of many starts, and the symmetric start."""
    data = study(specs(size)["run"], progress.part(0.0, 0.1), names=["low_rank_boolean"])
    data["ends"] = ends(SEEDS[size], progress.part(0.1, 0.35))
    starts = STARTS[size]
    ranks = np.zeros((len(starts), len(DYNAMICS), SEEDS[size], len(TIMES)), int)
    kept = np.zeros((len(DYNAMICS), SEEDS[size], len(TIMES), N))
    for k, start in enumerate(starts):
        for m, options in enumerate(DYNAMICS.values()):
            values = singular_values(draws(*start, SEEDS[size]), options)
            ranks[k, m] = ranks_of(values)
            if start == ("U", 1.0):
                kept[m] = values
            progress(0.35 + 0.6 * (k + m / len(DYNAMICS)) / len(starts), "ranks of many starts")
    data["ranks"] = xarray.Dataset(
        {"rank": (("start", "dynamics", "seed", "at"), ranks), "singular_values": (("dynamics", "seed", "at", "number"), kept),
         "t": ("at", list(TIMES)), "name_of_start": ("start", [f"{law} {width:g}" for law, width in starts]),
         "name_of_dynamics": ("dynamics", list(DYNAMICS))})
    data["symmetric"] = symmetric()
    return data


def ends(count: int, progress: Progress) -> Any:
    """The certified limits of the starts from [-1, 1]: rank of P* and whether its rows are those of the extreme tokens."""
    x0 = draws("U", 1.0, count)
    leaders, is_certified = np.zeros((count, N), int), np.zeros(count, np.int8)
    for k in range(count):
        end = limit(Weights(V=[[1.0]]), x0[k])
        leaders[k], is_certified[k] = end.leaders, end.grade == "exact"
        progress(k / count, "certifying limits")
    made = table({"is_certified": is_certified}, "seed")
    made["leaders"] = (("seed", "token"), leaders)
    made["start"] = (("seed", "token"), x0[:, :, 0])
    return made


def symmetric() -> Any:
    """Tokens (-u, 0, u): in plain double precision, by the equation of u alone, and the certified limit, which is symmetric."""
    times, x0 = np.linspace(0.0, 10.0, 101), np.array([[-U_START], [0.0], [U_START]])
    end = limit(Weights(V=[[1.0]]), x0)
    plain = simulate(Weights(V=[[1.0]]), x0, t_end=10.0, times=times, rtol=1e-12)

    def slope(t: float, log_z: np.ndarray) -> np.ndarray:
        small = np.exp(-np.exp(2 * (t + log_z)))                          # e^{-u²}; z = e^{-t} u
        return -(small + 2 * small**2) / (1 + small + small**2)

    alone = solve_ivp(slope, (0.0, 10.0), [np.log(U_START)], method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13)
    made = table({"t": times, "u": np.exp(times + alone.y[0])}, "time")
    made["x"] = (("time", "token"), plain.x[:, :, 0])
    made["leaders"], made["limits"] = ("token", end.leaders), ("token", end.limits[:, 0])
    return made
