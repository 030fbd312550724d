"""The master equation: z(t) = U(t) z(0) with stochastic U, what each cluster is made of, and what a
frozen generator misses.

U(infinity) is certified for V_h = I, from many starts; V_h = I and own V_h are compared with their
frozen generators over draws.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import xarray
from scipy.linalg import expm

from attnlab.analysis.clusters import cluster_labels
from attnlab.analysis.directions import direction_count
from attnlab.analysis.distances import diameter
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.mixtures import late_difference, lost_attention, mixture_error
from attnlab.analysis.propagators import (
    carry_names,
    direction_of,
    frozen_by_products,
    frozen_by_scipy,
    frozen_flow,
    frozen_value_flow,
    generator,
    plain_propagator,
    plain_value_propagator,
    rightmost_eigenvector,
    second_order,
)
from attnlab.analysis.rates import start_of_error
from attnlab.analysis.span import in_span
from attnlab.analysis.spectra import is_good_triple
from attnlab.engine import simulate
from attnlab.experiments.common.certified import SECONDS, WORK
from attnlab.experiments.common.heads import FAMILIES, HEADS, Trained, real_start, synthetic_heads
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.limits import limit
from attnlab.starts import uniform_cube
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

N, OWN_N = {"full": 30, "small": 8}, {"full": 30, "small": 6}
D = 3

SCALES = (0.1, 1.0, 3.0)
"""Factors of the starts: the cube [-1, 1]^3 for synthetic heads, an embedded piece of prose for
trained ones.
"""
DRAWS = {"full": {"synthetic": 6, "trained": 3}, "small": {"synthetic": 1, "trained": 1}}

SPREAD_DRAWS = 3
"""Draws at size small where draws are compared: the largest start with one head and with 16."""
STARTS = {
    "full": {"square": 20, "smaller square": 20, "trained": 6},
    "small": {"square": 6, "smaller square": 1, "trained": 1},
}
HALF_WIDTHS = {"square": 5.0, "smaller square": 1.5}
END_DRAWS, MOST_STEPS = {"full": {"one": 20, "several": 8}, "small": {"one": 5, "several": 1}}, 3000

FACTORS = (0.05, 0.1, 0.2)
"""Small starts of V = I, by which the error of the frozen generator must grow like the square."""

SIZES_OF_TOKENS = (0.0125, 0.025, 0.05)
"""The largest first token of the small starts with own values."""

END = 25.0
"""H t of the last moment of a run: double precision ends at about 30."""
EARLY = 1e-3
MOMENTS = np.concatenate([[0.0], np.geomspace(EARLY, END, 45)])

OWN_MOMENTS = np.concatenate([[0.0], np.geomspace(EARLY, 4.0, 33)])
"""In units of one over the spectral radius of sum_h V_h."""
RUNGE_KUTTA_STEP, BEFORE_STEPS = 0.05, 0.1

AGREED = 0.01
"""Two runs of a trained flow agree while no token differs by more than this part of the largest:
one line's width in a figure.
"""
SHOWN = (0.5, 1.0, 2.0)
BLOCK_TOKENS, BLOCK_D, PLAIN_TIME = 6, 2, 2.0
CLOSE = 0.01

LOST_SAVES = 1001
"""Times for the integral of 1 - P_ii: 1/40 apart up to END."""

ONE_DIRECTION = 0.1
"""Unit vectors that a chain of steps of at most this length joins are one direction: about six
degrees.
"""


@cache
def seed_of_head(many: int, d: int, is_good: bool) -> int:
    """The seed of the many-th synthetic head from seed 100 on that is (or is not) a good triple."""
    seed = 100 if many == 1 else seed_of_head(many - 1, d, is_good) + 1
    while is_good_triple(synthetic_heads(1, d, "own", rng=seed)) != is_good:
        seed += 1
    return seed


def _square(kind: str, n: int, draw: int) -> tuple[Weights, np.ndarray]:
    return Weights(V=np.eye(2)), uniform_cube(
        n, 2, low=-HALF_WIDTHS[kind], high=HALF_WIDTHS[kind], rng=draw
    )


def in_the_plane(context: Context, kind: str) -> Any:
    """U(t) and p(t) of one head, V = I, M = I, from a square: by the engine, by SciPy, and
    U(infinity) certified.
    """
    n = N[context.size]
    weights, x0 = _square(kind, n, 0)
    wide, start = carry_names(weights, x0)
    run = simulate(wide, start, t_end=PLAIN_TIME, times=[0.0, *SHOWN], rtol=1e-9)
    end = limit(wide, start, work=WORK, budget=SECONDS)
    z, U, p = plain_propagator(weights, x0, PLAIN_TIME, np.full(n, 1 / n))
    pair, triple = ("token", "source"), ("time", "token", "source")
    return xarray.Dataset(
        {
            "x0": (("token", "coordinate"), x0),
            "time": ("time", run.times),
            "U": (triple, run.rescaled[..., 2:]),
            "z": (("time", "token", "coordinate"), run.rescaled[..., :2]),
            "plain_U": (pair, U),
            "plain_p": ("token", p),
            "U_end": (pair, end.limits[:, 2:]),
            "z_end": (("token", "coordinate"), end.limits[:, :2]),
            "labels": ("token", end.labels),
            "leaders": ("token", end.leaders),
        },
        attrs={"grade": str(end.grade), "half_width": HALF_WIDTHS[kind], "t": PLAIN_TIME},
    )


def certified_start(context: Context, kind: str, draw: int, **_: str) -> dict[str, Any]:
    """U(infinity) of one head with V = I from a start: {"start": its row, "clusters": a row for
    each cluster}.
    """
    n = N[context.size]
    weights, x0 = (
        _square(kind, n, draw)
        if kind in HALF_WIDTHS
        else _case("trained", 1, n, context.shared, draw)
    )
    end = limit(*carry_names(weights, x0), work=WORK, budget=SECONDS)
    if end.labels.min() < 0:
        return {
            "start": {
                "grade": str(end.grade),
                "clusters": 0,
                "slow": 0,
                "off": np.nan,
                "plain_off": np.nan,
                "leader_share": np.nan,
            },
            "clusters": [],
        }
    d = x0.shape[1]
    z, U, leaders = end.limits[:, :d], end.limits[:, d:], np.unique(end.leaders)
    run = simulate(weights, x0, t_end=END, saves=LOST_SAVES, rtol=1e-8, throw=False)
    found = [
        {
            "weight": U[one, one],
            "promised": np.exp(-gone),
            "is_largest": int(U[one].argmax() == one),
        }
        for one, gone in zip(leaders, lost_attention(run, leaders), strict=True)
    ]
    slow = int((-np.linalg.eigvals(generator(weights, x0)).real < 1e-3).sum())
    return {
        "start": {
            "grade": str(end.grade),
            "clusters": len(leaders),
            "slow": slow,
            "off": mixture_error(U, z, x0, end.labels),
            "plain_off": late_difference(weights, x0, U, z, leaders),
            "leader_share": float(np.mean([one["is_largest"] for one in found])),
        },
        "clusters": found,
    }


def identity_case(
    context: Context, family: str, heads: int, scale: float, draw: int
) -> dict[str, Any]:
    """V_h = I: the numbers of a row, and the frozen generator's errors at all MOMENTS."""
    weights, x0 = _case(family, heads, N[context.size], context.shared, draw)
    row, error = _compared(weights, scale * x0)
    return {"row": row, "error": error}


def _case(
    family: str, count: int, n: int, shared: Trained, draw: int, values: str = "identity"
) -> tuple[Weights, np.ndarray]:
    """Heads and first tokens; with V_h = I in the span of the tokens, with own values in all their
    dimensions.
    """
    if family == "synthetic":
        return synthetic_heads(count, D, values, rng=draw), uniform_cube(n, D, rng=draw)
    weights, x0 = shared.heads(count, values), real_start(shared.model, n, draw)
    return in_span(weights, x0)[:2] if values == "identity" else (weights, x0)


def _compared(weights: Weights, x0: np.ndarray) -> tuple[dict[str, Any], np.ndarray]:
    """The numbers of a row, and the error of the frozen generator relative to the largest first
    token.

    The end is certified; the error and whether U is stochastic are those of a run.
    """
    (n, d), H = x0.shape, weights.heads
    wide, start = carry_names(weights, x0)
    run = simulate(wide, start, t_end=END / H, times=MOMENTS / H, rtol=1e-8, throw=False)
    z, U, size = (
        run.rescaled[..., :d],
        run.rescaled[..., d:],
        float(np.linalg.norm(x0, axis=1).max()),
    )
    A = generator(weights, x0)
    error = _frozen_error(A, x0, z, size)
    ice = cluster_labels(frozen_flow(A, x0, [1e15])[0], CLOSE * float(diameter(x0)))
    closed = float(np.linalg.norm(second_order(weights, x0), axis=1).max() / size) / H**2
    coefficient, slope = start_of_error(MOMENTS[1:], error[1:])
    return {
        "row_sums": float(np.abs(U.sum(axis=-1) - 1).max()),
        "least": float(U.min()),
        **_mixtures(wide, start, x0, U[-1]),
        "frozen_clusters": int(ice.max()) + 1,
        "irreducible": int((A + np.eye(n)).min() > 0),
        "coefficient": coefficient,
        "closed_coefficient": closed,
        "slope": slope,
        "ended": float(run.times[-1] * H),
    }, error


def _frozen_error(A: np.ndarray, x0: np.ndarray, z: np.ndarray, size: float) -> np.ndarray:
    """The error of the frozen generator at MOMENTS; NaN where the run z (time, n, d) did not get."""
    error = np.full(len(MOMENTS), np.nan)
    ice = frozen_flow(A, x0, MOMENTS)[: len(z)]
    error[: len(z)] = np.linalg.norm(z - ice, axis=-1).max(axis=1) / size
    return error


def _mixtures(wide: Weights, start: np.ndarray, x0: np.ndarray, last: np.ndarray) -> dict[str, Any]:
    """What the certified clusters of tokens with names (n, d + n) are made of; `last` is U (n, n)
    at the end of a run.

    weight: the largest entry in a row of U(infinity), where it is smallest. nearest: of the limit
    farthest from all first tokens. off: of U from mixtures. late: of `last` from U(infinity).
    """
    end = limit(wide, start, work=WORK, budget=SECONDS)
    if not end.certified:
        unknown = dict.fromkeys(("weight", "nearest", "off", "late"), np.nan)
        return {"grade": str(end.grade), "clusters": 0, **unknown}
    d, size = x0.shape[1], float(np.linalg.norm(x0, axis=1).max())
    z, U = end.limits[:, :d], end.limits[:, d:]
    return {
        "grade": str(end.grade),
        "clusters": int(end.labels.max()) + 1,
        "weight": float(U.max(axis=1).min()),
        "nearest": max(float(np.linalg.norm(x0 - one, axis=1).min()) for one in z) / size,
        "off": mixture_error(U, z, x0, end.labels),
        "late": float(np.abs(last - U).max()),
    }


def small_start(context: Context, draw: int, factor: float) -> dict[str, float]:
    """The largest error of the frozen generator over all times, for a small start of one head, V =
    I, M = I, in space.
    """
    weights, x0 = Weights(V=np.eye(D)), factor * uniform_cube(N[context.size], D, rng=draw)
    run = simulate(weights, x0, t_end=END, times=MOMENTS, rtol=1e-8, throw=False)
    size = float(np.linalg.norm(x0, axis=1).max())
    error = _frozen_error(generator(weights, x0), x0, run.rescaled, size)
    return {"worst": float(np.nanmax(error))}


def block(_: Context, draw: int, heads: int) -> dict[str, float]:
    """With their own V: x(t) = G(t) x(0) with G of size n d, by SciPy, beside the engine's run."""
    weights = synthetic_heads(heads, BLOCK_D, "own", rng=draw)
    x0 = 2 * uniform_cube(BLOCK_TOKENS, BLOCK_D, rng=draw)
    run = simulate(weights, x0, t_end=1.0, saves=2, rtol=1e-10)
    G = plain_value_propagator(weights, x0, 1.0)
    moved = (G @ x0.ravel()).reshape(x0.shape)
    sums = G.reshape(BLOCK_TOKENS, BLOCK_D, BLOCK_TOKENS, BLOCK_D).sum(axis=2)
    return {
        "off": float(np.abs(moved - run.x[-1]).max() / np.abs(run.x[-1]).max()),
        "sums_off": float(np.abs(sums - expm(weights.full_V.sum(axis=0))).max()),
    }


def _own_case(
    family: str, count: int, n: int, shared: Trained, draw: int
) -> tuple[Weights, np.ndarray, float]:
    """(weights, tokens, spectral radius of sum_h V_h) with own values."""
    weights, x0 = _case(family, count, n, shared, draw, "own")
    return weights, x0, growth_rate(weights, from_factors=False)


def _own_flow(
    weights: Weights,
    x0: np.ndarray,
    times: np.ndarray,
    radius: float,
    step: float | None = RUNGE_KUTTA_STEP,
) -> np.ndarray:
    """x (time, n, d) with own values, NaN after the run has stopped: adaptive in few dimensions, by
    steps of Runge and Kutta in many, where leaders change all the time; but the first moments,
    between the first steps, are adaptive there, too.

    step None: adaptive throughout.
    """
    x = np.full((len(times), *x0.shape), np.nan)
    options: dict[str, Any] = {"rtol": 1e-9, "max_steps": MOST_STEPS}
    many = len(times)
    if weights.d > D and step is not None:
        many = int((times * radius < BEFORE_STEPS).sum())
        fixed = simulate(
            weights,
            x0,
            t_end=times[-1],
            times=times,
            throw=False,
            stepper="rk4",
            dt=step / radius,
            frame="x",
        ).x
        x[: len(fixed)] = fixed
    if many > 1:
        found = simulate(
            weights, x0, t_end=times[many - 1], times=times[:many], throw=False, **options
        ).x
        x[: len(found)] = found
    return x


def own_case(context: Context, family: str, heads: int, scale: float, draw: int) -> dict[str, Any]:
    """Own V_h: the frozen expansion against the flow; and its errors over time."""
    weights, x0, radius = _own_case(family, heads, OWN_N[context.size], context.shared, draw)
    row, error = _own_compared(weights, scale * x0, radius, family == "trained")
    return {"row": row, "error": error}


def _own_compared(
    weights: Weights, x0: np.ndarray, radius: float, twice: bool
) -> tuple[dict[str, Any], np.ndarray]:
    """The numbers of a row, and the error relative to the largest token of the two, while the flow
    itself is known.

    twice: that is as long as a second run with steps twice as long agrees; else as long as the
    adaptive run goes.
    """
    times = OWN_MOMENTS / radius
    x, ice = _own_flow(weights, x0, times, radius), frozen_value_flow(weights, x0, times)
    largest = np.fmax(
        np.linalg.norm(x, axis=-1).max(axis=1), np.linalg.norm(ice, axis=-1).max(axis=1)
    )
    is_late = OWN_MOMENTS >= BEFORE_STEPS
    is_known = np.isfinite(x).all(axis=(1, 2))
    if twice:
        other = _own_flow(
            weights, x0, np.append(0.0, times[is_late]), radius, 2 * RUNGE_KUTTA_STEP
        )[1:]
        is_known[is_late] &= (
            np.linalg.norm(other - x[is_late], axis=-1).max(axis=1) <= AGREED * largest[is_late]
        )
    last = int(np.argmin(is_known)) - 1 if not is_known.all() else len(times) - 1
    error = np.linalg.norm(x - ice, axis=-1).max(axis=1) / largest
    error[last + 1 :] = np.nan
    closed = (
        np.linalg.norm(second_order(weights, x0), axis=1).max()
        / np.linalg.norm(x0, axis=1).max()
        / radius**2
    )
    coefficient, slope = start_of_error(OWN_MOMENTS[1:], (error * largest / largest[0])[1:])
    return {
        "coefficient": coefficient,
        "closed_coefficient": float(closed),
        "slope": slope,
        "directions": direction_count(x[last], ONE_DIRECTION),
        "frozen_directions": direction_count(ice[last], ONE_DIRECTION),
        **_foretold(weights, x0, radius),
        "trusted": float(OWN_MOMENTS[last]),
    }, error


def _foretold(weights: Weights, x0: np.ndarray, radius: float) -> dict[str, Any]:
    """How many directions the rightmost eigenvector of A has, and how far its eigenvalue exceeds
    those of sum_h V_h.
    """
    value, vector = rightmost_eigenvector(weights, x0)
    excess = value.real - np.linalg.eigvals(weights.full_V.sum(axis=0)).real.max()
    return {
        "foretold": direction_count(direction_of(vector), ONE_DIRECTION),
        "excess": float(excess / radius),
    }


def own_check(context: Context, family: str, heads: int) -> dict[str, float]:
    """exp(tA) x0 from a large start at t radius = 4: by Krylov, by SciPy's expm_multiply and, of
    one head, by products.
    """
    weights, x0, radius = _own_case(family, heads, OWN_N[context.size], context.shared, 0)
    x0, t = max(SCALES) * x0, OWN_MOMENTS[-1] / radius
    ice, other = frozen_value_flow(weights, x0, np.array([t]))[0], frozen_by_scipy(weights, x0, t)
    products = frozen_by_products(weights, x0, t) if heads == 1 else other
    return {
        name: float(np.abs(one - ice).max() / np.abs(ice).max())
        for name, one in (("off", other), ("products_off", products))
    }


def own_small_start(
    context: Context, family: str, heads: int, draw: int, length: float
) -> dict[str, float]:
    """The frozen expansion's error at t radius = 1 from a start whose largest token is small, with
    own values.
    """
    weights, x0, radius = _own_case(family, heads, OWN_N[context.size], context.shared, draw)
    x0, times = length * (x0 / np.linalg.norm(x0, axis=1).max()), np.array([0.0, 1.0]) / radius
    x, ice = _own_flow(weights, x0, times, radius, None), frozen_value_flow(weights, x0, times)
    return {"error": float(np.linalg.norm(x - ice, axis=-1).max() / length)}


def end_of_flow(context: Context, heads: int, is_good: int, draw: int) -> dict[str, Any]:
    """Directions of tokens late, from a large start with own synthetic values; other draws than
    elsewhere.
    """
    seed = seed_of_head(draw + 1, D, is_good == 1) if heads == 1 else 100 + draw
    weights, x0, radius = _own_case("synthetic", heads, OWN_N[context.size], context.shared, seed)
    x0 = max(SCALES) * x0
    late = _own_flow(weights, x0, np.array([0.0, END]) / radius, radius)[-1]
    ice = frozen_by_scipy(weights, x0, END / radius)
    return {
        "ended": int(np.isfinite(late).all()),
        "directions": direction_count(late, ONE_DIRECTION),
        "frozen_directions": direction_count(ice, ONE_DIRECTION),
        **_foretold(weights, x0, radius),
    }


def assemble(results: Results) -> dict[str, Any]:
    """Certified U(infinity) of many starts; all heads with V_h = I, with a frozen generator beside;
    the same with own V_h.
    """
    size, shared = results.size, results.shared
    facts = {"why": results.why, "trained": shared.name}
    data = dict(zip(("plane", "plane_smaller"), results.values("plane"), strict=True))
    data["certified"] = table_of_rows(
        results.rows("certified", "start"), "start", n=N[size], trained=shared.name
    )
    data["mixtures"] = table_of_rows(results.rows("certified", "clusters"), "cluster")
    for part, name, n, moments in (
        ("heads", "errors", N, MOMENTS),
        ("own", "own_errors", OWN_N, OWN_MOMENTS),
    ):
        data[part] = table_of_rows(results.rows(part, "row"), n=n[size], **facts)
        errors = np.array([one["error"] for one in results.values(part)])
        data[name] = xarray.Dataset(
            {"error": (("row", "moment"), errors), "tau": ("moment", moments)}
        )
    data["small_starts"] = table_of_rows(results.rows("small_starts"), "start", n=N[size])
    return data | {
        name: table_of_rows(results.rows(name))
        for name in ("blocks", "own_checks", "own_small_starts", "ends")
    }


KEYS = "family, heads, scale, draw"
ENDS_OF_HEADS = (min(HEADS), max(HEADS))


def start_grids(size: str) -> list[Grid]:
    """The starts of one head that are certified; those of a model say so by their family."""
    return grids_of(
        "family, kind, draw",
        [
            ("trained" if kind == "trained" else "synthetic", kind, many)
            for kind, many in STARTS[size].items()
        ],
    )


def head_grids(size: str) -> list[Grid]:
    """All heads with V_h = I; at size small more draws where draws are compared: the largest start,
    one head and 16.
    """
    most = {(count, max(SCALES)): SPREAD_DRAWS for count in ENDS_OF_HEADS}
    return grids_of(
        KEYS,
        [
            (family, count, scale, max(DRAWS[size][family], most.get((count, scale), 0)))
            for family in FAMILIES
            for count in HEADS
            for scale in SCALES
        ],
    )


def end_grids(size: str) -> list[Grid]:
    """One head that is a good triple, any other head, several heads."""
    draws = END_DRAWS[size]
    counts = HEADS[1:] if size == "full" else HEADS[-1:]
    return grids_of(
        "heads, is_good, draw", [(1, (1, 0), draws["one"]), (counts, 0, draws["several"])]
    )


def few_draws(size: str, full: int, small: int) -> range:
    """So many draws at each size."""
    return range(full if size == "full" else small)


compute = Parts(
    {
        "plane": Part(
            in_the_plane, Grid({"kind": tuple(HALF_WIDTHS)}), "one head, certified", 0.05
        ),
        "certified": Part(certified_start, start_grids, "certified start {draw}, {kind}", 0.2),
        "heads": Part(identity_case, head_grids, "{heads} heads, {family}", 0.35),
        "small_starts": Part(
            small_start,
            lambda size: Grid({"draw": few_draws(size, 6, 3), "factor": FACTORS}),
            share=0.02,
        ),
        "blocks": Part(
            block, lambda size: Grid({"draw": few_draws(size, 3, 1), "heads": HEADS}), share=0.02
        ),
        "own": Part(
            own_case,
            lambda size: grids_of(
                KEYS, [(family, HEADS, SCALES, DRAWS[size][family]) for family in FAMILIES]
            ),
            "{heads} heads with own values, {family}",
            0.3,
        ),
        "own_checks": Part(own_check, Grid({"family": FAMILIES, "heads": HEADS}), share=0.02),
        "own_small_starts": Part(
            own_small_start,
            lambda size: Grid(
                {
                    "family": FAMILIES,
                    "heads": ENDS_OF_HEADS,
                    "draw": few_draws(size, 3, 1),
                    "length": SIZES_OF_TOKENS,
                }
            ),
            share=0.02,
        ),
        "ends": Part(end_of_flow, end_grids, "late directions of {heads} heads", 0.05),
    },
    prepare=Trained,
    leave_out=Trained.without,
    assemble=assemble,
)
