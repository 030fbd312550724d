"""The velocity of tokens in a ball is bounded, and so is its dependence on the place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.distances import pairwise_distances
from attnlab.analysis.spectra import score_norm, value_norm
from attnlab.dynamics.attention import attention_matrices
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import setting
from attnlab.theory.sensitivity import decisive, one_time
from attnlab.theory.specimens import random_tokens, specimen
from attnlab.types import Dynamics, Trajectory
from attnlab.verdicts import Hypothesis, Measured, Theorem

RESOLUTION = 0.05
"""The resolution: velocities 5 % above their bound."""

COARSE = 1.0
"""If saved times are farther apart than this over |V|, the bounds are so wide that no plausible
data break them.
"""

SAMPLE = 200
"""The most tokens whose pairwise distances are followed."""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """One measure that every token sees, softmax attention in R^d, continuous time; any heads, any
    weights.
    """
    yield from setting(dynamics, any_heads=True)


def norms(dynamics: Dynamics) -> tuple[float, float]:
    """(|V|, 2 beta |M| |V|), summed over heads: with the largest token R, bounds of |x'| / R and of
    the Jacobian / R^2.
    """
    weights = dynamics.weights
    V = np.array([value_norm(weights, head) for head in range(weights.heads)])
    M = np.array([score_norm(weights, head) for head in range(weights.heads)])
    return float(V.sum()), float(2.0 * abs(dynamics.beta) * (M * V).sum())


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The constants, and the bounds at the start where it is known."""
    speed, slope = norms(dynamics)
    words, data = (
        f"With R = max_i |x_i|: |x_i'| <= {speed:.4g} R, Jacobian <= {slope:.4g} R^2",
        {"speed": speed, "slope": slope},
    )
    if x0 is not None:
        R = float(np.linalg.norm(x0, axis=1).max())
        data["radius"] = R
        words += f"; at the start, R = {R:.4g}, these are {speed * R:.4g} and {slope * R**2:.4g}"
    return words + f"; tokens grow at most like e^({speed:.4g} t).", data


@np.errstate(over="ignore", invalid="ignore")  # fixed steps may diverge beyond double
def measure(evidence: Evidence) -> Measured:
    """The largest part of its bound that is used by a step of a token, or by a change of log |x_i -
    x_j|, between saved times.
    """
    run = evidence.run
    if len(run.times) < 2:
        return one_time(1.0, RESOLUTION)
    speed, slope = norms(run.dynamics)
    scaled = run.scaled_x()
    found = [_used(evidence, scaled, number, speed, slope) for number in range(len(run.times) - 1)]
    values, errors = np.array(found).transpose(2, 1, 0)  # (2, T - 1) each: steps, then distances
    if np.mean(errors[0] <= RESOLUTION) < 0.5:  # the steps themselves are not resolved
        is_seen = np.zeros(values.shape, dtype=bool)
        errors = np.maximum(errors, np.median(errors[0]))
    else:
        is_seen = errors <= RESOLUTION
    if not np.isfinite(values - errors).any():
        needs = f"no step of this run could be measured: {evidence.finer_words}"
        return Measured(np.nan, 1.0, np.nan, RESOLUTION, "No step could be measured.", needs=needs)
    pick = np.unravel_index(
        decisive(values.ravel(), errors.ravel(), 1.0, is_seen.ravel()), values.shape
    )
    widest = float(np.diff(run.times).max())
    text = (
        f"Steps of all tokens and changes of log |x_i - x_j| between {len(run.times)} saved times"
        f" up to t = {evidence.t_end:.4g} beside what |x'| <= |V| R and |Jacobian| <= 2 beta |M|"
        f" |V| R^2 allow; nearest after t = {run.times[pick[1]]:.4g}"
    )
    return Measured(
        float(values[pick]),
        1.0,
        float(errors[pick]),
        RESOLUTION,
        text + ".",
        is_reached=speed * widest <= COARSE,
        needs=(
            f"saved times are up to {widest:.3g} apart, {speed * widest:.2g} / |V|; at most"
            f" {COARSE / max(speed, 1e-300):.3g} apart"
            f" (saves={int(np.ceil(speed * run.times[-1] / COARSE)) + 1}) would decide"
        ),
        details={
            "largest_speed_over_bound": float(values[0].max()),
            "largest_slope_over_bound": float(values[1].max()),
            "largest_jacobian_over_bound": _jacobians(run, slope),
            "pairs_out_of_sight": int((errors[1] > RESOLUTION).sum()),
        },
    )


def _used(
    evidence: Evidence,
    scaled: tuple[np.ndarray, np.ndarray],
    number: int,
    speed: float,
    slope: float,
) -> tuple[tuple[float, float], tuple[float, float]]:
    """((value, error) of the steps, the same of log |x_i - x_j|), as parts of their bounds, after
    saved time `number`.

    R cannot grow nor shrink faster than e^{|V| t}: over a time h, with R the smaller of both ends
    and a = |V| h,
    |x_i(t + h) - x_i(t)| <= R (e^a - 1)  and  |change of log |x_i - x_j|| <= 2 beta |M| |V| R^2 h (e^{2a} - 1) / 2a.
    """
    run, (states, log_scale) = evidence.run, scaled
    before, after = (
        states[number],
        states[number + 1] * np.exp(log_scale[number + 1] - log_scale[number]),
    )
    h = float(run.times[number + 1] - run.times[number])
    # e^{tV} itself is known to rounding times |V| t
    a, off = (
        speed * h,
        (evidence.error + 1e-15 * (1.0 + speed * float(run.times[number + 1]))) * np.sqrt(run.d),
    )
    sizes, moved = [_longest(x) for x in (before, after)], _longest(after - before)
    # moved / (R (e^a - 1)), where e^a may be beyond double and R below it
    one = math.exp(min(-a - math.log(max(min(sizes), 1e-300)), 700.0)) / max(-math.expm1(-a), 1e-9)
    steps = moved * one, off * sum(sizes) * one
    chosen = np.unique(np.linspace(0, run.n - 1, min(run.n, SAMPLE)).astype(int))
    pairs = np.triu_indices(len(chosen), 1)
    first, second = (pairwise_distances(x[chosen])[pairs] for x in (before, after))
    is_apart = (first > 0) & (second > 0)
    if not is_apart.any():
        return steps, (0.0, 0.0)
    first, second = first[is_apart], second[is_apart]
    with np.errstate(over="ignore"):
        square = np.float64(min(sizes)) ** 2 * np.exp(
            2.0 * log_scale[number]
        )  # R^2 in the user's units
        allowed = max(
            slope * square * h * (np.expm1(min(2.0 * a, 600.0)) / (2.0 * a) if a > 0 else 1.0), 1e-9
        )
        changes = np.abs(np.log(second) - np.log(first)) / allowed
        errors = (
            sum(
                _log_error(2.0 * off * size / d)
                for size, d in zip(sizes, (first, second), strict=True)
            )
            / allowed
        )
    # the pair that uses most of the bound among those whose distance the run resolves
    worst = (
        int(np.argmax(changes - errors))
        if (changes - errors).max() > 1.0 or not (errors <= RESOLUTION).any()
        else int(np.argmax(np.where(errors <= RESOLUTION, changes, -np.inf)))
    )
    return steps, (float(changes[worst]), float(errors[worst]))


def _longest(x: np.ndarray) -> float:
    """max_i |x_i| of x (n, d), whose squares may leave the range of double."""
    unit = float(np.abs(x).max())
    return unit * float(np.linalg.norm(x / unit, axis=1).max()) if unit > 0 else 0.0


def _log_error(part: np.ndarray) -> np.ndarray:
    """How far log |x_i - x_j| may be off where the distance is by this part of itself: by anything,
    from 1 on.
    """
    return np.where(part < 1.0, -np.log1p(-np.minimum(part, 1.0 - 1e-16)), np.inf)


def _jacobians(run: Trajectory, slope: float) -> float:
    """The largest norm of the x-Jacobian, sum_h V_h Cov_i beta M_h^T, over its bound, at a few
    tokens of a few saved times.
    """
    dynamics = run.dynamics
    states, log_scale = run.scaled_x()
    worst = 0.0
    for number in np.unique(np.linspace(0, len(run.times) - 1, 5).astype(int)):
        P = attention_matrices(dynamics, states[number], log_scale[number])
        x = states[number] / max(
            _longest(states[number]), 1e-300
        )  # both sides go with the square of its size
        R = float(np.linalg.norm(x, axis=1).max())
        for token in np.unique(np.linspace(0, run.n - 1, 16).astype(int)):
            total = np.zeros((run.d, run.d))
            for head, (M, V) in enumerate(
                zip(dynamics.weights.M, dynamics.weights.full_V, strict=True)
            ):
                apart = x - P[head, token] @ x
                total += dynamics.beta * V @ ((apart.T * P[head, token]) @ apart) @ M.T
            if slope * R > 0:
                worst = max(worst, float(np.linalg.norm(total, 2)) / (slope * R**2))
    return worst


def _twice_as_fast(run: Trajectory) -> Trajectory:
    """The run with every second of its states, as if no time had been left out."""
    kept = (len(run.times) + 1) // 2
    return dataclasses.replace(
        run,
        times=run.times[:kept],
        states=run.states[::2].copy(),
        log_scale=run.log_scale[::2].copy(),
    )


theorems.register("field_bounds")(
    Theorem(
        name="field_bounds",
        kind="estimate",
        statement=(
            "If all tokens are in the ball of radius R, every velocity X[mu](x) is at most |V| R"
            " long and its x-Jacobian at most 2 |Q^T K| |V| R^2. Checked on the tokens: between"
            " saved times none moves further, and no distance |x_i - x_j| grows or shrinks by a"
            " larger factor, than these bounds, integrated, allow."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 6, estimates"
            " of the velocity field"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen([[1.0, 0.3], [0.1, 0.4]], t_end=4.0),
        breaks=lambda: specimen(np.eye(2), t_end=2.0, mask="causal"),
        short=lambda: specimen(
            [[1.0, 0.3], [0.1, 0.4]], t_end=4.0, stepper="euler", dt=0.1, frame="x"
        ),
        spoil=_twice_as_fast,
        nonsense=random_tokens,
        errata=(
            "The growth of the field of all tokens, |F(x)| <= |V| |x|, holds with |x| = max_i |x_i|"
            " and not in the Euclidean norm of (R^d)^n, where a factor sqrt(n) is possible. The"
            " factor 2 of the Jacobian is not needed: a covariance in a ball is at most R^2."
        ),
    )
)
