"""What the portraits of the paper compute alike: tokens at t = 0, 1, 2, 5 and infinity, and the numerics behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.analysis.plain_flow import frame_by_scipy
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Data
from attnlab.limits import limit
from attnlab.progress import Progress
from attnlab.starts import uniform_cube
from attnlab.theory.statements.hull_shrinks import outward as leaves
from attnlab.types import Limit, Spec, Trajectory, Weights

PANELS = (0.0, 1.0, 2.0, 5.0)
"""The times of the published panels."""

PUBLISHED_END = 5.0
COMPARED = (0.5, 1.0, 2.0, 3.5, PUBLISHED_END)
"""The times at which another integrator is asked."""

STEPS = (0.1, 0.05, 0.025, 0.0125)
"""Euler steps; the authors' is the first."""

CUBE: dict[str, Any] = {"law": "uniform_cube", "low": -5.0, "high": 5.0}
film_options = {"kind": "tokens", "frames": 100}


def portrait_spec(weights: Mapping[str, Any], n: int, d: int, t_end: float) -> Spec:
    """A run from the cube [-5, 5]^d, rng 0, saved densely as long as the picture moves."""
    times = [*np.round(np.arange(0.0, 6.0, 0.05), 10).tolist(), *np.round(np.arange(6.0, t_end + 0.01, 0.25), 10).tolist()]
    return Spec(weights=dict(weights), start={**CUBE, "n": n, "d": d, "rng": 0},
                solve={"t_end": t_end, "times": times, "rtol": 1e-10, "measure_error": True})


def portrait(spec: Spec, progress: Progress, results: Sequence[str], later: Sequence[float] = ()) -> dict[str, Any]:
    """The run, its certified limit with the way there, the verdicts, and what other integrators say at T = 5."""
    ways = sorted({*np.round(np.arange(0.1, 6.01, 0.1), 10).tolist(), 8.0, 10.0, *later})
    data = study(spec, progress.part(0.0, 0.8), limit_times=ways, names=list(results))
    progress(0.85, "integrating again, by other means")
    data["numerics"] = numerics(run_in(data))
    progress(1.0)
    return data


def numerics(run: Trajectory) -> Any:
    """The tokens z at T = 5 by scipy's DOP853 and by Euler steps of z, the authors' scheme: a Dataset."""
    weights, start = run.dynamics.weights, rescaled(run)[0]
    euler = [simulate(weights, start, t_end=PUBLISHED_END, times=[0.0, PUBLISHED_END], stepper="euler", dt=dt, frame="z").z
             for dt in STEPS]
    exact = frame_by_scipy(weights.full_V[0], weights.M[0], start, COMPARED)
    return xarray.Dataset({
        "exact": (("token", "coordinate"), exact[-1]),
        "exact_at": (("moment", "token", "coordinate"), exact),
        "compared": ("moment", np.array(COMPARED)),
        "euler": (("step", "token", "coordinate"), np.stack([z[-1] for z in euler if z is not None])),
        "dt": ("step", np.array(STEPS)),
    })


def limits_of_starts(weights: Weights, n: int, count: int, progress: Progress) -> Any:
    """The certified limits of `count` starts, rng 1, 2, ...: points (start, token, in_F), NaN where undecided."""
    found = []
    for seed in range(1, count + 1):
        found.append(limit(weights, uniform_cube(n, weights.d, low=-5.0, high=5.0, rng=seed), work=750_000.0))
        progress(seed / count, f"start {seed} of {count}")
    points = np.stack([one.points if one.certified else np.full_like(one.points, np.nan) for one in found])
    return xarray.Dataset({"points": (("start", "token", "in_F"), points), "rng": ("start", np.arange(1, count + 1))})


def values_of(points: np.ndarray) -> np.ndarray:
    """The different points (m, k) among points (n, k): equal are those that agree to a millionth of the largest."""
    if not np.isfinite(points).all():
        return points[:0]
    return cluster_centres(points, cluster_labels(points, 1e-6 * max(float(np.abs(points).max()), 1e-300)))


def counts_of(starts: Any) -> np.ndarray:
    """The number of different limits of every start."""
    return np.array([len(values_of(points)) for points in starts["points"].values])


def euler_errors(data: Data) -> np.ndarray:
    """How far each token is off at T = 5: (step, token)."""
    return np.linalg.norm(data["numerics"]["euler"].values - data["numerics"]["exact"].values, axis=-1)


def rescaled(run: Trajectory) -> np.ndarray:
    """z (T, n, d) of a run that has one."""
    assert run.z is not None
    return run.z


def at_time(run: Trajectory, t: float) -> np.ndarray:
    """z at the saved time nearest to t."""
    return rescaled(run)[int(np.argmin(np.abs(run.times - t)))]


def rate(times: np.ndarray, values: np.ndarray, since: float) -> float:
    """The slope of log(values) over time from `since` on; NaN for fewer than three values."""
    late = (times >= since) & (values > 0)
    return float(np.polyfit(times[late], np.log(values[late]), 1)[0]) if late.sum() > 2 else float("nan")


def outward(z: np.ndarray) -> float:
    """How far a token of z (T, n, k) leaves the hull of the saved time before, over the first diameter."""
    return leaves(z)[0] / float(diameter(z[0]))


def all_vertices(points: np.ndarray) -> bool:
    """Whether every one of the different points (m, k) is a vertex of their hull."""
    return len(points) > 0 and len(convex_hull(points).vertices) == len(points)


def distance_to_leader(run: Trajectory, limit: Limit, dual: np.ndarray) -> np.ndarray:
    """The largest |dual (z_i - z_L(i))| at every saved time, (T,); dual (k, d), complex allowed."""
    z = rescaled(run)
    apart = z - z[:, np.where(limit.leaders >= 0, limit.leaders, np.arange(run.n))]
    return np.linalg.norm(apart @ dual.T, axis=-1).max(axis=1)


def distances(run: Trajectory, limit: Limit, dual: np.ndarray | None = None) -> np.ndarray:
    """The distance of every token to its limit, (T, n): in F, where dual (k, d) gives coordinates along limit.basis."""
    if dual is None:
        return np.linalg.norm(rescaled(run) - limit.limits, axis=-1)
    return np.linalg.norm((rescaled(run) @ dual.T - limit.points) @ limit.basis.T, axis=-1)


def film(data: Data) -> Trajectory:
    """The run, to be filmed."""
    return run_in(data)


def drawn_from(data: Data) -> tuple[Trajectory, Limit]:
    """The run and its limit."""
    return run_in(data), limit_in(data)
