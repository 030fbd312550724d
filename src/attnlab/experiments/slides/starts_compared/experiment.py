"""Starts on the circle or sphere against cube, normal and real embeddings: what remains of the
shape of the start at the end.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import cluster_count, cluster_labels
from attnlab.analysis.directions import unit
from attnlab.analysis.distances import diameter
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.hull import convex_hull
from attnlab.analysis.plain_flow import flow_by_scipy, polygon_radius
from attnlab.analysis.self_leaders import self_lead
from attnlab.analysis.span import identities, in_reach, in_span
from attnlab.engine import simulate
from attnlab.experiments.common import heads
from attnlab.experiments.common.heads import HEADS, VALUES, Trained, real_start, synthetic_heads
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.starts import circle, normal, sphere, uniform_cube
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

LAWS = ("sphere", "cube", "normal", "real")

SCALE = 0.01
"""Clusters are those at this fraction of the largest token of the moment."""
POLYGONS = (3, 5, 12, 24)
PICTURED = ("regular", *LAWS[:3])
PICTURED_SIZES = (1.0, 5.0)


def start_of(law: str, d: int, size: float, rng: int, n: int) -> np.ndarray:
    """n tokens of a law whose mean square norm is size^2, in expectation; law "real" is none of
    these, see heads.real_start.
    """
    if law == "sphere":
        return sphere(n, d, radius=size, rng=rng)
    if law == "cube":
        return uniform_cube(n, d, rng=rng) * size * np.sqrt(3 / d)
    return normal(n, d, scale=size / np.sqrt(d), rng=rng)


def plain(d: int, count: int = 1) -> Weights:
    """`count` equal heads with Q = K = V = I."""
    every = identities(count, d)
    return Weights(V=every, Q=every, K=every)


def polygons(_: Context) -> Any:
    """Regular polygons: radii of z by the engine (smallest, largest), by SciPy from the scalar
    equation, and certified limits.
    """
    times = np.linspace(0.0, 8.0, 17)
    rows = []
    for n in POLYGONS:
        x0 = circle(n, 2, equally_spaced=True)
        radii = np.linalg.norm(
            simulate(plain(2), x0, times=times, t_end=8.0, rtol=1e-11).rescaled, axis=-1
        )
        end = limit(plain(2), x0, work=250_000.0)
        count = end.labels.max() + 1 if end.certified else -1
        rows.append((radii.min(axis=1), radii.max(axis=1), polygon_radius(n, times), count))
    low, high, exact, limits = (np.array(column) for column in zip(*rows, strict=True))
    axes = ("polygon", "time")
    return xarray.Dataset(
        {
            "low": (axes, low),
            "high": (axes, high),
            "exact": (axes, exact),
            "limits": ("polygon", limits),
        },
        coords={"n": ("polygon", np.array(POLYGONS)), "time": times},
    )


def exact_runs(_: Context) -> Any:
    """Sixteen equal heads against one of sixteen times the time, and sixteen different ones against
    SciPy's DOP853.
    """
    x0 = start_of("cube", 2, 5.0, 0, 12)
    one = simulate(plain(2), x0, times=[0.0, 16.0], t_end=16.0, rtol=1e-11).rescaled[-1]
    sixteen = simulate(plain(2, 16), x0, times=[0.0, 1.0], t_end=1.0, rtol=1e-11).rescaled[-1]
    weights = heads.synthetic_heads(16, 2, "own")
    other = flow_by_scipy(weights, x0, 0.2)
    ours = simulate(weights, x0, times=[0.0, 0.2], t_end=0.2, rtol=1e-10).x[-1]
    axes = ("token", "coordinate")
    return xarray.Dataset(
        {
            "one": (axes, one),
            "sixteen": (axes, sixteen),
            "scipy": (axes, other),
            "ours": (axes, ours),
        }
    )


def pictures(_: Context) -> Any:
    """In the plane, one head: starts and their certified limits, {size} x {law}."""
    n = FOR_LIMITS
    starts = np.array(
        [
            [
                (
                    circle(n, 2, radius=reach, equally_spaced=True)
                    if law == "regular"
                    else start_of(law, 2, reach, 1, n)
                )
                for law in PICTURED
            ]
            for reach in PICTURED_SIZES
        ]
    )
    ends = [limit(plain(2), x0, work=250_000.0) for x0 in starts.reshape(-1, n, 2)]
    axes = ("size", "law", "token", "coordinate")
    return xarray.Dataset(
        {
            "start": (axes, starts),
            "limit": (axes, np.array([end.limits for end in ends]).reshape(starts.shape)),
            "count": (
                axes[:2],
                np.array([end.labels.max() + 1 for end in ends]).reshape(starts.shape[:2]),
            ),
        },
        coords={"size": list(PICTURED_SIZES), "law": list(PICTURED)},
    )


TOKENS = {"full": 24, "small": 10}

FOR_LIMITS = 24
"""Tokens of the starts whose limits are certified, at both sizes: that is cheap."""

SIZES = {"full": (0.5, 1.0, 2.0, 5.0, 20.0, 80.0), "small": (1.0, 80.0)}
"""Root mean square norm of the start."""

CROSSED = {"full": ((2, 1.0), (2, 5.0), (3, 5.0)), "small": ((2, 5.0),)}
"""(d, size) of the starts of synthetic heads. The slides' cube [-5, 5]^d has the size 5 sqrt(d /
3).
"""
STARTS = {
    "full": {"sizes": 8, "synthetic": 6, "trained": 3},
    "small": {"sizes": 3, "synthetic": 4, "trained": 3},
}
GEOMETRIES = ("euclidean", "sphere")

CLOCK = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0])
"""Saved times, in units of 1 / H where V_h = I, else of 1 / the largest real part of an eigenvalue
of sum V_h, 0.3 at least.
"""
OWN_CLOCK = CLOCK[CLOCK <= 12.0]

LATER = 24.0
"""Own V_h: a run has ended only if the clusters at the end of OWN_CLOCK are the same sets of tokens
at twice that time.
"""

STEPS = {"identity": 2000, "own": 800}
"""Adaptive steps that a run may take. Where leaders change without end, no number of them is
enough: such runs are left out.
"""

STEP = 0.2
"""Runge-Kutta steps of trained heads with their own V_h, in units of the clock; twice as long ones,
which go on to LATER, must give equal clusters.
"""


def measure_limits(_: Context, d: int, size: float, law: str, rng: int) -> dict[str, Any]:
    """One head, Q = K = V = I: certified limits, with projection too; vertices, and tokens that
    lead themselves at t = 0.
    """
    x0 = start_of(law, d, size, rng, FOR_LIMITS)
    lead = self_lead(x0)
    clear = 4 * np.log(len(x0))
    end = limit(plain(d), x0, work=125_000.0)
    leads_itself = (end.leaders == np.arange(len(x0))) & end.certified
    projected = -2
    if size == 1.0:
        on_sphere = limit(plain(d), unit(x0), geometry="sphere", work=125_000.0)
        projected = on_sphere.labels.max() + 1 if on_sphere.certified else -1
    return {
        "vertices": len(convex_hull(x0).vertices),
        "self_led": (lead >= 0).sum(),
        "surely": (lead > clear).sum(),
        "perhaps": (lead > -clear).sum(),
        "otherwise": np.sum(np.where(leads_itself, lead < -clear, lead > clear)),
        "limits": end.labels.max() + 1 if end.certified else -1,
        "limit_vertices": len(convex_hull(end.limits).vertices) if end.certified else -1,
        "projected": projected,
    }


def measure_synthetic(
    context: Context,
    d: int,
    size: float,
    heads: int,
    values: str,
    rng: int,
    law: str,
    geometry: str,
    **_: str,
) -> dict[str, Any]:
    """A run with Gaussian heads; heads and start are others for each rng."""
    x0 = start_of(law, d, size, rng, TOKENS[context.size])
    return _case(synthetic_heads(heads, d, values, rng=rng), x0, size, values, geometry)


@lru_cache(maxsize=2)
def pieces_of(model: Any, size: str) -> np.ndarray:
    """The embedded pieces of text (piece, n, d)."""
    return np.array(
        [real_start(model, TOKENS[size], piece) for piece in range(STARTS[size]["trained"])]
    )


def measure_trained(
    context: Context, heads: int, values: str, rng: int, law: str, geometry: str, **_: str
) -> dict[str, Any]:
    """A run with the heads of a model, from a piece of embedded text, or from another law of the
    same size.
    """
    pieces, model = pieces_of(context.shared.model, context.size), context.shared.model
    d, size = model.config.d, float(np.sqrt((pieces**2).sum(axis=-1).mean()))
    x0 = pieces[rng] if law == "real" else start_of(law, d, size, rng, TOKENS[context.size])
    return {
        "d": d,
        "size": size,
        **_case(context.shared.heads(heads, values), x0, size, values, geometry),
    }


def _case(
    weights: Weights, x0: np.ndarray, reach: float, values: str, geometry: str
) -> dict[str, Any]:
    """The numbers of one run: clusters, when they were the last ones, vertices, diameters, and
    whether the run has ended.
    """
    clock = CLOCK if values == "identity" else OWN_CLOCK
    is_stepped = values == "own" and weights.is_factored
    times = clock if values == "identity" or is_stepped else np.append(clock, LATER)
    growth = growth_rate(weights, "real")
    rate = float(weights.heads) if values == "identity" else max(0.3, growth)
    run = _simulated(weights, x0, reach, values, geometry, rate, times)
    every = run.scaled_x()[0]
    states, others = every[: len(clock)], list(every[len(clock) :])
    if is_stepped:
        ends = np.array([0.0, clock[-1], LATER])
        others += list(
            _simulated(weights, x0, reach, values, geometry, rate, ends, 2 * STEP).scaled_x()[0][1:]
        )
    sizes = np.linalg.norm(states, axis=-1).max(axis=-1)
    last = int(cluster_count(states[-1], SCALE * sizes[-1]))
    since = len(states) - 1  # clusters merge: one looks back from the end
    while since and cluster_count(states[since - 1], SCALE * sizes[since - 1]) == last:
        since -= 1
    # as many by chance would not be enough
    is_ok = run.is_ok and all(
        np.array_equal(_labels(states[-1]), _labels(other)) for other in others
    )
    shrinks = geometry == "euclidean" and values == "identity"
    return {
        "clusters": last,
        "merged": float(clock[since]),
        "diameter": float(diameter(states[-1]) / (2 * sizes[-1])),
        "first_diameter": float(diameter(states[0]) / (2 * sizes[0])),
        "vertices": _vertices(states[0]),
        "last_vertices": _vertices(states[-1]),
        "hull": (
            float(diameter(run.rescaled[-1]) / diameter(run.rescaled[0])) if shrinks else np.nan
        ),
        "reached": float(clock[len(states) - 1]),
        "is_ok": int(is_ok),
        "growth": growth,
    }


def _labels(x: np.ndarray) -> np.ndarray:
    """The cluster of each token (n,)."""
    return cluster_labels(x, SCALE * np.linalg.norm(x, axis=-1).max())


def _vertices(x: np.ndarray) -> int:
    """The vertices of the hull of the tokens; -1 where d is too large to list hulls."""
    return len(convex_hull(x).vertices) if x.shape[1] <= 3 else -1


def _simulated(
    weights: Weights,
    x0: np.ndarray,
    reach: float,
    values: str,
    geometry: str,
    rate: float,
    clock: np.ndarray,
    step: float = STEP,
) -> Any:
    """The run at the times of the clock: on the sphere the size of the start is in beta."""
    options: dict[str, Any] = {"rtol": 1e-7, "max_steps": STEPS[values], "throw": False}
    if geometry == "sphere":
        x0, options = unit(x0), options | {"geometry": "sphere", "beta": reach**2}
    if values == "identity":
        weights, x0, _ = in_span(weights, x0)
    elif weights.is_factored:  # changes of leaders stop adaptive steps there
        weights, x0 = in_reach(weights, x0)
        options |= {
            "stepper": "rk4",
            "dt": step / rate,
            "frame": "x" if geometry == "euclidean" else "auto",
        }
    return simulate(weights, x0, times=clock / rate, t_end=float(clock[-1] / rate), **options)


def assemble(results: Results) -> dict[str, Any]:
    """Certified limits over the size of the start, all cases of heads, and what is known
    exactly.
    """
    rows = [*results.rows("synthetic"), *results.rows("trained")]
    return {
        "sizes": table_of_rows(results.rows("sizes"), n=FOR_LIMITS),
        "cases": table_of_rows(
            rows, model=results.shared.name, why=results.why, n=TOKENS[results.size]
        ),
        **{name: results.values(name)[0] for name in ("polygons", "exact", "pictures")},
    }


def grid_of(part: str, size: str) -> Grid:
    """The cases of a part. Under projection trained heads leave the normal law out: it is the start
    on the sphere.
    """
    draws, cases = {"rng": range(STARTS[size][part])}, {"heads": HEADS, "values": VALUES}
    if part == "sizes":
        return Grid({"d": (2, 3), "size": SIZES[size], "law": LAWS[:3], **draws})
    if part == "synthetic":
        return Grid(
            {
                "family": [part],
                "d, size": CROSSED[size],
                **cases,
                **draws,
                "law": LAWS[:3],
                "geometry": GEOMETRIES,
            }
        )
    return Grid(
        {"family": [part], **cases, **draws, "law": LAWS, "geometry": GEOMETRIES},
        exclude=[{"law": "normal", "geometry": "sphere"}],
    )


compute = Parts(
    {
        "sizes": Part(
            measure_limits,
            partial(grid_of, "sizes"),
            "limits, {law} of size {size:g} in {d} dimensions",
            0.2,
        ),
        "synthetic": Part(
            measure_synthetic,
            partial(grid_of, "synthetic"),
            "{heads} heads, d = {d}, size {size:g}",
            0.2,
        ),
        "trained": Part(
            measure_trained,
            partial(grid_of, "trained"),
            "trained heads: {heads}, values: {values}",
            0.55,
            lambda heads, **_: heads,
        ),
        "polygons": Part(polygons, doing="regular polygons", share=0.02),
        "exact": Part(exact_runs, doing="equal heads", share=0.01),
        "pictures": Part(pictures, doing="starts and limits to be drawn", share=0.02),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
