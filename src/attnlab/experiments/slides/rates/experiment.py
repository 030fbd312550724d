"""How fast tokens and attention converge: exponential, double exponential or t^(-1/2), for which
heads and which V.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray
from scipy.stats import t as student

from attnlab.analysis.attention import log_leaks, log_unevenness, score_gaps
from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.decay import LAWS, best_law, fit_law, prediction_errors
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.intervals import bootstrap_interval
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.analysis.rates import fit_line
from attnlab.analysis.span import in_reach, in_span
from attnlab.engine import simulate
from attnlab.experiments.common import heads
from attnlab.experiments.common.halved import Halved
from attnlab.experiments.datasets import table, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.starts import normal
from attnlab.sweep.grid import Grid
from attnlab.types import Trajectory, Weights

N = 8

SIZE = 2.0
"""Standard deviation of the coordinates of synthetic starts."""
D = 4
CLOCK = np.linspace(0.0, 24.0, 49)

LONG_CLOCK = np.concatenate([[0.0], np.geomspace(0.1, 1000.0, 81)])
"""Saved times in units of 1 / H; with own V_h of 1 / the largest real part of an eigenvalue of sum
V_h, 0.3 at least.
"""

STEP = 0.1
"""Runge-Kutta step of trained heads with their own V_h in units of the clock; a second run has half
of it.
"""

SCALE = 0.01
"""Clusters are those at the end of a run, at this fraction of the largest token."""


@dataclass(frozen=True)
class Curves:
    """Logarithms over the clock (T,): size of the largest token, what should vanish of the tokens
    and of attention.

    leaks (T, heads, n): log(1 - max_j P_ij) of every row; alone (heads, n): whether its leader is a
    cluster of its own.
    """

    clock: np.ndarray
    size: np.ndarray
    tokens: np.ndarray
    attention: np.ndarray
    leaks: np.ndarray
    alone: np.ndarray
    is_ok: bool


def weights_of(family: str, values: str, count: int, rng: int, model: Any) -> Weights:
    """The heads of a case: values "negative" are V_h = -I. Families "plain": Q = K = I,
    "symmetric": M = I + GᵀG.
    """
    kind = "identity" if values == "negative" else values
    if family == "trained":
        weights = heads.trained_heads(model, count, kind)
    else:
        weights = heads.synthetic_heads(count, D, kind, rng=rng)
        if family != "synthetic":
            extra = np.swapaxes(weights.Q, 1, 2) @ weights.Q if family == "symmetric" else 0.0
            root = np.swapaxes(
                np.linalg.cholesky(np.eye(D) + extra + np.zeros((count, D, D))), 1, 2
            )
            weights = Weights(Q=root, K=root, V=weights.V)
    return weights


def run_of(
    weights: Weights, x0: np.ndarray, values: str, step: float = STEP
) -> tuple[Trajectory, np.ndarray]:
    """(run, clock) of one start."""
    options: dict[str, Any] = {"rtol": 1e-9, "max_steps": 2000, "throw": False}
    clock, unit = (LONG_CLOCK if values == "negative" else CLOCK), float(weights.heads)
    if values == "own":
        is_trained = weights.is_factored
        if is_trained:
            weights, x0 = in_reach(weights, x0, tolerance=1e-12)
        unit = max(0.3, growth_rate(weights, "real", from_factors=False))
        if is_trained:  # changes of leaders stop adaptive steps there
            clock = CLOCK[CLOCK <= 16.0]
            options |= {"stepper": "rk4", "dt": step / unit, "frame": "x"}
    else:
        weights, x0, _ = in_span(weights, x0)
        if values == "negative":
            weights = Weights(Q=weights.Q, K=weights.K, V=-weights.full_V)
    run = simulate(weights, x0, times=clock / unit, t_end=float(clock[-1] / unit), **options)
    return run, clock[: len(run.times)]


def curves_of(run: Trajectory, clock: np.ndarray, values: str) -> Curves:
    """The curves of a run."""
    states, log_scale = run.scaled_x()
    norms = np.linalg.norm(states, axis=-1)
    largest = np.log(norms.max(axis=-1))
    labels = cluster_labels(states[-1], SCALE * float(norms[-1].max()))
    gaps = score_gaps(run)
    leaks = log_leaks(gaps)
    with np.errstate(divide="ignore"):
        if values == "negative":
            tokens = np.log(np.sqrt((norms**2).mean(axis=-1))) + log_scale
            attention = leaks.max(axis=(1, 2)) if tokens[-1] > tokens[0] else log_unevenness(gaps)
        else:
            radius = np.linalg.norm(
                states - cluster_centres(states, labels)[:, labels], axis=-1
            ).max(axis=-1)
            tokens, attention = np.log(radius) - largest, leaks.max(axis=(1, 2))
    members = np.bincount(labels)
    alone = members[labels[gaps[-1].argmax(axis=-1)]] == 1
    ended_early = run.status.name in ("MAX_STEPS", "STALLED")
    return Curves(clock, largest + log_scale, tokens, attention, leaks, alone, not ended_early)


def window_of(clock: np.ndarray, values: str) -> np.ndarray:
    """The mask of the times at which laws are fitted and judged: late, but before the digits
    end.
    """
    if values == "negative":
        return np.asarray(clock >= clock[-1] / 4)
    return np.asarray((clock >= 0.4 * clock[-1]) & (clock <= 0.85 * clock[-1]))


def start_of(family: str, rng: int, model: Any) -> np.ndarray:
    """N tokens: normal ones, or for trained heads a piece of embedded text."""
    if family == "trained":
        return heads.real_start(model, N, rng)
    return normal(N, D, scale=SIZE, rng=rng)


PLANTED = {"exponential": -1.0, "double exponential": 1.0, "power law": -0.5}
"""Exponents of the planted data."""
SAMPLES = {"full": 400, "small": 100}

PLANTED_STARTS = 8
"""How often intervals are made of planted data, and of how many starts each."""

SPREAD, NOISE, MEMORY, POINTS = 0.05, 0.01, 0.9, 30
"""Standard deviation of the exponents of single starts, of the noise of log y, and the correlation
of neighbouring points.
"""


def planted(law: str, exponent: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(t, log y) of one start: a known exponent, and noise that neighbours share, as the points of
    one run do.
    """
    t = np.geomspace(30.0, 300.0, POINTS) if law == "power law" else np.linspace(4.0, 12.0, POINTS)
    steps = rng.normal(size=POINTS) * np.sqrt(1 - MEMORY**2)
    noise = np.empty(POINTS)
    noise[0] = rng.normal()
    for k in range(1, POINTS):
        noise[k] = MEMORY * noise[k - 1] + steps[k]
    if law == "double exponential":
        return t, -np.exp(exponent * t - 3.0 + NOISE * noise)
    return t, exponent * (t if law == "exponential" else np.log(t)) + NOISE * noise


def check_planted(context: Context, law: str) -> dict[str, np.ndarray]:
    """How often intervals over starts, and intervals from the points of one run, hold the truth;
    and right choices.
    """
    covered, naive, right = (np.zeros(SAMPLES[context.size], np.int8) for _ in range(3))
    rng = np.random.default_rng([7, LAWS.index(law)])
    for sample in range(len(right)):
        truths = PLANTED[law] + SPREAD * rng.normal(size=PLANTED_STARTS)
        runs = [planted(law, float(truth), rng) for truth in truths]
        fits = [fit_law(law, *run) for run in runs]
        low, high = bootstrap_interval(np.array([fit.slope for fit in fits]))
        covered[sample] = low <= PLANTED[law] <= high
        reach = student.ppf(0.975, POINTS - 2) * fits[0].slope_error
        naive[sample] = abs(fits[0].slope - truths[0]) <= reach
        right[sample] = best_law(prediction_errors(*runs[0])) == law
    return {"covered": covered, "naive": naive, "right": right}


CASES = (
    ("plain", "identity"),
    ("plain", "negative"),
    ("symmetric", "identity"),
    ("symmetric", "negative"),
    ("synthetic", "identity"),
    ("synthetic", "own"),
    ("synthetic", "negative"),
    ("trained", "identity"),
    ("trained", "own"),
    ("trained", "negative"),
)
STARTS = {"full": 10, "small": 3}

SLOW_STARTS = 3
"""Starts of trained heads with their own V_h, which take long."""
QUANTITIES = ("tokens", "attention")
EXPECTED = {
    ("tokens", "identity"): "exponential",
    ("attention", "identity"): "double exponential",
    ("tokens", "own"): "exponential",
    ("attention", "own"): "double exponential",
    ("tokens", "negative"): "power law",
    ("attention", "negative"): "power law",
}
DRAWN = (("trained", "identity"), ("plain", "negative"), ("synthetic", "negative"))


def start_grids(size: str) -> list[Grid]:
    """Every case with 1 to 16 heads and its starts."""
    slow = {("trained", "own"): SLOW_STARTS}
    return grids_of(
        "family, values, heads, rng",
        [(*case, heads.HEADS, slow.get(case, STARTS[size])) for case in CASES],
    )


def measure_start(context: Context, **case: Any) -> dict[str, Any]:
    """The fits of one start; the slopes of its rows of attention where V = I; its curves where they
    are drawn.
    """
    family, values, count, rng = case.values()
    model = context.shared.model
    weights, x0 = weights_of(family, values, count, rng, model), start_of(family, rng, model)
    is_stepped = values == "own" and weights.is_factored
    runs = Halved.follow(lambda step: run_of(weights, x0, values, step), STEP, when=is_stepped)
    curves = curves_of(*runs.coarse, values)
    finer = curves_of(*runs.fine, values) if runs.fine is not None else None
    return {
        "fits": _fits(values, Halved(curves, finer, STEP), lowest(runs.coarse[0])),
        "slopes": _row_slopes(curves) if values == "identity" else [],
        "curves": (curves.clock, curves.tokens, curves.attention, curves.leaks.min(axis=(1, 2))),
    }


def assemble(results: Results) -> dict[str, Any]:
    """Fits, rows of attention, what planted data say of the method, an independent integrator, and
    curves to draw.
    """
    measured, is_alone = np.array(
        [slope for one in results.values("starts") for slope in one["slopes"]]
    ).T
    planted = {
        name: (("law", "sample"), np.stack([one[name] for one in results.values("planted")]))
        for name in ("covered", "naive", "right")
    }
    drawn = {
        "{family}_{values}_{heads}".format(**case): one["curves"]
        for case, one in results.found["starts"]
        if case["rng"] == 0 and (case["family"], case["values"]) in DRAWN
    }
    length = max(len(clock) for clock, *_ in drawn.values())
    curves = {
        name: (
            ("part", "time"),
            np.stack(
                [np.pad(one, (0, length - len(one)), constant_values=np.nan) for one in parts]
            ),
        )
        for name, parts in drawn.items()
    }
    return {
        "fits": table_of_rows(
            results.rows("starts", "fits"), model=results.shared.name, why=results.why
        ),
        "rows": table({"slope": measured, "alone": is_alone.astype(int)}),
        "planted": xarray.Dataset(planted, coords={"law": list(LAWS)}),
        "scipy": results.values("scipy")[0],
        "curves": xarray.Dataset(curves),
    }


def lowest(run: Any) -> float:
    """The smallest eigenvalue of the symmetric part of sum_h Q_h^T K_h on the span of the tokens,
    over the largest modulus.
    """
    total = run.dynamics.weights.M.sum(axis=0)
    values = np.linalg.eigvalsh(total + total.T)
    return float(values[0] / np.abs(values).max())


def _slope(curves: Curves, quantity: str, law: str, values: str) -> float:
    """The exponent of a law in units of the clock; NaN where it cannot be fitted."""
    log_y = getattr(curves, quantity)
    usable = window_of(curves.clock, values) & np.isfinite(log_y)
    if usable.sum() < 10 or (law == "double exponential" and (log_y[usable] >= 0).any()):
        return float("nan")
    return fit_law(law, curves.clock[usable], log_y[usable]).slope


def _fits(values: str, runs: Halved[Curves], sign: float) -> list[dict[str, Any]]:
    """For tokens and attention: the errors of the laws, the one that is chosen, and exponents;
    settled within a twentieth.
    """
    curves, clock = runs.coarse, runs.coarse.clock
    window = window_of(clock, values)
    growth = (
        fit_law("exponential", clock[window], curves.size[window]).slope
        if window.sum() >= 6
        else np.nan
    )
    rows = []
    for quantity in QUANTITIES:
        log_y = getattr(curves, quantity)
        usable = window & np.isfinite(log_y)
        expected = EXPECTED[quantity, values]
        runs_away = values == "negative" and bool(curves.tokens[-1] > curves.tokens[0])
        if runs_away:
            expected = "exponential" if quantity == "tokens" else "double exponential"
        row: dict[str, Any] = {
            "quantity": quantity,
            "law": "none",
            "slope": np.nan,
            "growth": growth,
            "lowest": sign,
            "runs_away": int(runs_away),
            "is_settled": int(curves.is_ok),
            "constant": np.nan,
            "by_size": np.nan,
        }
        row |= {f"error_{law.split()[0]}": np.nan for law in LAWS}
        if usable.sum() >= 10:
            errors = prediction_errors(clock[usable], log_y[usable])
            row |= {
                f"error_{law.split()[0]}": error for law, error in zip(LAWS, errors, strict=True)
            }
            row["law"] = best_law(errors)
            slope = partial(_slope, quantity=quantity, law=expected, values=values)
            row["slope"] = slope(curves)
            if runs.is_tried:
                row["is_settled"] = int(runs.agree(slope, relative=0.05))
            if quantity == "tokens":
                row["by_size"] = fit_line(curves.size[usable], log_y[usable]).slope
            if quantity == "tokens" and values == "negative":
                row["constant"] = float(2 * clock[-1] / min(N - 1, D) * np.exp(2 * log_y[-1]))
        rows.append(row)
    return rows


def _row_slopes(curves: Curves) -> list[tuple[float, bool]]:
    """(slope of log(-log(1 - P_max)), whether the leader is a cluster of its own) of every row of
    every head.
    """
    window = window_of(curves.clock, "identity")
    leaks = curves.leaks[window]
    usable = np.isfinite(leaks).all(axis=0) & (leaks < 0).all(axis=0)
    return [
        (
            fit_law("double exponential", curves.clock[window], leaks[:, head, row]).slope,
            bool(curves.alone[head, row]),
        )
        for head, row in zip(*np.nonzero(usable), strict=True)
    ]


def _scipy(_: Context) -> Any:
    """z of four synthetic heads with V_h = I at H t = 8, also by SciPy; and where 16 heads end that
    are asked for t = 15.
    """
    weights, x0 = weights_of("synthetic", "identity", 4, 0, None), start_of("synthetic", 0, None)
    other = flow_by_scipy(weights, x0, 2.0)
    ours = simulate(weights, x0, times=[0.0, 2.0], t_end=2.0, rtol=1e-11).x[-1]
    sixteen = weights_of("plain", "identity", 16, 0, None)
    late = simulate(sixteen, x0, times=np.linspace(0.0, 15.0, 601), t_end=15.0, throw=False)
    axes = ("token", "coordinate")
    return xarray.Dataset(
        {"ours": (axes, ours), "scipy": (axes, other)},
        attrs={"reached": float(16 * late.times[-1])},
    )


compute = Parts(
    {
        "starts": Part(
            measure_start,
            start_grids,
            "{heads} {family} heads, V {values}",
            0.9,
            lambda heads, **_: heads,
        ),
        "planted": Part(check_planted, Grid({"law": LAWS}), "planted data", share=0.09),
        "scipy": Part(_scipy, share=0.01),
    },
    prepare=heads.Trained,
    leave_out=heads.Trained.without,
    assemble=assemble,
)
