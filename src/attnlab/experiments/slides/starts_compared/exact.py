"""What starts_compared knows exactly: regular polygons, equal heads, SciPy's integrator; and the starts, by law."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.plain_flow import flow_by_scipy, polygon_radius
from attnlab.engine import simulate
from attnlab.experiments.common import heads
from attnlab.limits import limit
from attnlab.starts import circle, normal, sphere, uniform_cube
from attnlab.types import Weights

LAWS = ("sphere", "cube", "normal", "real")

SCALE = 0.01
"""Clusters are those at this fraction of the largest token of the moment."""
POLYGONS = (3, 5, 12, 24)
PICTURED = ("regular", *LAWS[:3])
PICTURED_SIZES = (1.0, 5.0)


def start_of(law: str, d: int, size: float, rng: int, n: int) -> np.ndarray:
    """n tokens of a law whose mean square norm is size^2, in expectation; law "real" is none of these, see heads.real_start."""
    if law == "sphere":
        return sphere(n, d, radius=size, rng=rng)
    if law == "cube":
        return uniform_cube(n, d, rng=rng) * size * np.sqrt(3 / d)
    return normal(n, d, scale=size / np.sqrt(d), rng=rng)


def plain(d: int, count: int = 1) -> Weights:
    """`count` equal heads with Q = K = V = I."""
    return Weights(V=np.repeat(np.eye(d)[None], count, axis=0), Q=np.repeat(np.eye(d)[None], count, axis=0),
                   K=np.repeat(np.eye(d)[None], count, axis=0))


def polygons() -> Any:
    """Regular polygons: radii of z by the engine (smallest, largest), by SciPy from the scalar equation, and certified limits."""
    times = np.linspace(0.0, 8.0, 17)
    rows = []
    for n in POLYGONS:
        x0 = circle(n, 2, equally_spaced=True)
        radii = np.linalg.norm(simulate(plain(2), x0, times=times, t_end=8.0, rtol=1e-11).rescaled, axis=-1)
        end = limit(plain(2), x0, work=250_000.0)
        count = end.labels.max() + 1 if end.certified else -1
        rows.append((radii.min(axis=1), radii.max(axis=1), polygon_radius(n, times), count))
    low, high, exact, limits = (np.array(column) for column in zip(*rows, strict=True))
    axes = ("polygon", "time")
    return xarray.Dataset({"low": (axes, low), "high": (axes, high), "exact": (axes, exact), "limits": ("polygon", limits)},
                          coords={"n": ("polygon", np.array(POLYGONS)), "time": times})


def exact_runs() -> Any:
    """Sixteen equal heads against one of sixteen times the time, and sixteen different ones against SciPy's DOP853."""
    x0 = start_of("cube", 2, 5.0, 0, 12)
    one = simulate(plain(2), x0, times=[0.0, 16.0], t_end=16.0, rtol=1e-11).rescaled[-1]
    sixteen = simulate(plain(2, 16), x0, times=[0.0, 1.0], t_end=1.0, rtol=1e-11).rescaled[-1]
    weights = heads.synthetic_heads(16, 2, "own")
    other = flow_by_scipy(weights, x0, 0.2)
    ours = simulate(weights, x0, times=[0.0, 0.2], t_end=0.2, rtol=1e-10).x[-1]
    axes = ("token", "coordinate")
    return xarray.Dataset({"one": (axes, one), "sixteen": (axes, sixteen), "scipy": (axes, other), "ours": (axes, ours)})


def pictures(n: int) -> Any:
    """In the plane, one head: starts and their certified limits, {size} x {law}."""
    starts = np.array([[circle(n, 2, radius=reach, equally_spaced=True) if law == "regular" else start_of(law, 2, reach, 1, n)
                        for law in PICTURED] for reach in PICTURED_SIZES])
    ends = [limit(plain(2), x0, work=250_000.0) for x0 in starts.reshape(-1, n, 2)]
    axes = ("size", "law", "token", "coordinate")
    return xarray.Dataset(
        {"start": (axes, starts), "limit": (axes, np.array([end.limits for end in ends]).reshape(starts.shape)),
         "count": (axes[:2], np.array([end.labels.max() + 1 for end in ends]).reshape(starts.shape[:2]))},
        coords={"size": list(PICTURED_SIZES), "law": list(PICTURED)})
