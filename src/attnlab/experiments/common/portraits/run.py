"""What all portraits of the paper compute: tokens at t = 0, 1, 2, 5 and infinity, and other
integrators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.analysis.plain_flow import frame_by_scipy
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_in, run_in, table_of_rows
from attnlab.experiments.parts import Context, Part, Results
from attnlab.experiments.record import Data
from attnlab.limits import limit
from attnlab.run import resolve
from attnlab.sweep.grid import Grid
from attnlab.theory.statements.hull_shrinks import outward as leaves
from attnlab.types import Limit, Spec, Trajectory

PANELS = (0.0, 1.0, 2.0, 5.0)
"""The times of the published panels."""

PUBLISHED_END = 5.0
COMPARED = (0.5, 1.0, 2.0, 3.5, PUBLISHED_END)
"""The times at which the run is compared with another integrator."""

STEPS = (0.1, 0.05, 0.025, 0.0125)
"""Euler steps; the authors' is the first."""

CUBE: dict[str, Any] = {"law": "uniform_cube", "low": -5.0, "high": 5.0}
film_options = {"kind": "tokens", "frames": 100}


def portrait_spec(weights: Mapping[str, Any], n: int, d: int, t_end: float) -> Spec:
    """A run from the cube [-5, 5]^d, rng 0, saved densely as long as the picture moves."""
    times = [
        *np.round(np.arange(0.0, 6.0, 0.05), 10).tolist(),
        *np.round(np.arange(6.0, t_end + 0.01, 0.25), 10).tolist(),
    ]
    return Spec(
        weights=dict(weights),
        start={**CUBE, "n": n, "d": d, "rng": 0},
        solve={"t_end": t_end, "times": times, "rtol": 1e-10, "measure_error": True},
    )


def run_part(spec: Spec, results: Sequence[str], later: Sequence[float] = ()) -> Part:
    """The part of the run: its certified limit with the way there, the verdicts, and what other
    integrators say at T = 5.
    """
    ways = sorted({*np.round(np.arange(0.1, 6.01, 0.1), 10).tolist(), 8.0, 10.0, *later})

    def measure(context: Context) -> dict[str, Any]:
        data = study(spec, context.progress, limit_times=ways, names=list(results))
        return {**data, "numerics": numerics(run_in(data))}

    return Part(measure, doing="the run of the picture")


def starts_part(spec: Spec, count: Mapping[str, int]) -> Part:
    """The part of more starts, rng 1, 2, ..: certified limits, points (token, in_F), NaN where
    undecided; count: by size.
    """

    def measure(_: Context, rng: int) -> dict[str, Any]:
        given = resolve(replace(spec, start={**spec.start, "rng": rng}))
        end = limit(given.dynamics, given.x0, work=750_000.0)
        return {"points": end.points if end.certified else np.full_like(end.points, np.nan)}

    return Part(measure, lambda size: Grid({"rng": range(1, count[size] + 1)}), "start {rng}")


def assemble(results: Results) -> dict[str, Any]:
    """The Datasets of the run and of further parts, and a table of the starts."""
    data = {
        name: one
        for part in results.found
        if part != "starts"
        for name, one in results.values(part)[0].items()
    }
    return {
        **data,
        "starts": table_of_rows(results.rows("starts"), "start", {"points": ("token", "in_F")}),
    }


def numerics(run: Trajectory) -> Any:
    """The tokens z at T = 5 by scipy's DOP853 and by Euler steps of z, the authors' scheme: a
    Dataset.
    """
    weights, start = run.dynamics.weights, rescaled(run)[0]
    euler = [
        simulate(
            weights,
            start,
            t_end=PUBLISHED_END,
            times=[0.0, PUBLISHED_END],
            stepper="euler",
            dt=dt,
            frame="z",
        ).z
        for dt in STEPS
    ]
    exact = frame_by_scipy(weights.full_V[0], weights.M[0], start, COMPARED)
    return xarray.Dataset(
        {
            "exact": (("token", "coordinate"), exact[-1]),
            "exact_at": (("moment", "token", "coordinate"), exact),
            "compared": ("moment", np.array(COMPARED)),
            "euler": (
                ("step", "token", "coordinate"),
                np.stack([z[-1] for z in euler if z is not None]),
            ),
            "dt": ("step", np.array(STEPS)),
        }
    )


def values_of(points: np.ndarray) -> np.ndarray:
    """The different points (m, k) among points (n, k): equal are those that agree to a millionth of
    the largest.
    """
    if not np.isfinite(points).all():
        return points[:0]
    return cluster_centres(
        points, cluster_labels(points, 1e-6 * max(float(np.abs(points).max()), 1e-300))
    )


def counts_of(starts: Any) -> np.ndarray:
    """The number of different limits of every start."""
    return np.array([len(values_of(points)) for points in starts["points"].values])


def euler_errors(data: Data) -> np.ndarray:
    """How far each token is off at T = 5: (step, token)."""
    return np.linalg.norm(
        data["numerics"]["euler"].values - data["numerics"]["exact"].values, axis=-1
    )


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
    return (
        float(np.polyfit(times[late], np.log(values[late]), 1)[0])
        if late.sum() > 2
        else float("nan")
    )


def outward(z: np.ndarray) -> float:
    """How far a token of z (T, n, k) leaves the hull of the saved time before, over the first
    diameter.
    """
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
    """The distance of every token to its limit, (T, n): in F, where dual (k, d) gives coordinates
    along limit.basis.
    """
    if dual is None:
        return np.linalg.norm(rescaled(run) - limit.limits, axis=-1)
    return np.linalg.norm((rescaled(run) @ dual.T - limit.points) @ limit.basis.T, axis=-1)


def film(data: Data) -> Trajectory:
    """The run, to be filmed."""
    return run_in(data)


def drawn_from(data: Data) -> tuple[Trajectory, Limit]:
    """The run and its limit."""
    return run_in(data), limit_in(data)
