"""All tokens tend to 0, like t^(-1/2), and attention becomes uniform, when V = -I and Q^T K is
positive definite.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.energy import log_pair_sum
from attnlab.analysis.rates import fit_power_law
from attnlab.analysis.spectra import identity_margins
from attnlab.dynamics import attention
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import positive, setting, small, spd_scores
from attnlab.theory.specimens import specimen, with_states
from attnlab.types import Dynamics, Trajectory
from attnlab.verdicts import Hypothesis, Measured, Theorem

RESOLUTION = 0.01
"""The resolution of each relative number, and the part of the largest token at which it counts as
0.
"""

FOLLOWED = 0.1
"""The identity of L is judged between saved times where its own error is below this: then they are
close enough together.
"""

LAW = 0.05
"""2 s / r times the mean square must be this near to 1, and its logarithmic slope to -1, to count
as the power law.
"""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """V = -c I, c > 0, beta Q^T K = M symmetric positive definite: y(s) = M^{1/2} x(s / c) solves
    it for V = -I, M = I.
    """
    yield from setting(dynamics)
    if dynamics.weights.heads == 1:
        margins = identity_margins(dynamics.weights)
        yield small("V is a multiple of the identity", margins["distance"])
        yield positive("V = -cI with c > 0", -margins["factor"], 0.0)
    yield from spd_scores(dynamics)


def reduce_equation(dynamics: Dynamics) -> tuple[float, np.ndarray]:
    """(c, A): s = c t and y = A x, A^2 = beta Q^T K, turn the equation into y_i' = -sum_j
    softmax_j(<y_i, y_j>) y_j.
    """
    M = dynamics.beta * dynamics.weights.M[0]
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    return -identity_margins(dynamics.weights)["factor"], vectors * np.sqrt(values) @ vectors.T


def norm_bound(n: int) -> float:
    """R with R^2 e^{R^2} = (n - 1) / e: a token with |y_i| > R is coming closer to 0.

    d|y_i|^2 / ds = -2 sum_j P_ij <y_i, y_j>, where <y_i, y_i> e^{|y_i|^2} outweighs n - 1 terms s
    e^s >= -1/e.
    """
    from scipy.special import lambertw

    return math.sqrt(lambertw((n - 1) / math.e).real)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The statement and the rate, with the number of dimensions that count where x0 is known."""
    c, A = reduce_equation(dynamics)
    words = "All tokens x_i tend to 0 and every entry of P to 1/n"
    if x0 is None:
        return (
            words
            + f"; the mean of x^T M x falls like r / ({2 * c:.4g} t), r the affine dimension of the"
            " tokens.",
            {},
        )
    r = affine_rank(x0)
    law = (
        f"the mean of x^T M x falls like {r} / ({2 * c:.4g} t)"
        if r
        else f"they fall like e^(-{c:.4g} t)"
    )
    bound = max(float(np.linalg.norm(x0 @ A, axis=1).max()), norm_bound(len(x0)))
    return f"{words} = {1 / len(x0):.4g}; {law}.", {
        "rank": r,
        "largest": bound,
        "attention": 1 / len(x0),
    }


def affine_rank(x: np.ndarray) -> int:
    """The affine dimension of x (n, d): that of the span of x_i - x_j, which the flow keeps."""
    apart = x - x.mean(axis=0)
    sizes = np.linalg.svd(apart, compute_uv=False)
    return int(np.sum(sizes > 1e-12 * np.abs(x).max() * math.sqrt(len(x))))


def measure(evidence: Evidence) -> Measured:
    """The worst of: an increase of L, a departure from its identity, a token that grows beyond R;
    and how far x has come.
    """
    run = evidence.run
    if len(run.times) < 3:
        needs = "a run with at least three saved times would decide"
        return Measured(np.nan, 0.0, np.nan, RESOLUTION, "Too few saved times.", needs=needs)
    c, A = reduce_equation(run.dynamics)
    s, y = c * (run.times - run.times[0]), run.x @ A  # (T,), (T, n, d)
    norms = np.linalg.norm(y, axis=2)  # (T, n)
    size = norms.max(axis=1)
    # the run's error is relative to the largest coordinate of x
    doubt = (
        (evidence.error + 1e-15)
        * np.abs(run.x).max(axis=(1, 2))
        * np.linalg.norm(A, 2)
        * math.sqrt(run.d)
    )  # (T,)
    energy = log_pair_sum(y) - 2 * math.log(run.n)  # log(L / n^2) >= 0, and 0 at the origin only
    velocity, rate = _rates(y)
    # d log L = -2 sum_i (Z_i / L) <y_i', dy_i>, and a second order
    speed = np.linalg.norm(velocity, axis=2).max(axis=1)
    energy_doubt = (
        2 * speed * doubt + (1 + 2 * size**2) * doubt**2 + 1e-15 * (1 + 2 * math.log(run.n))
    )
    departure, checked = _identity(s, y, velocity, rate, energy, energy_doubt, doubt)
    tall, tallest = (np.where(values > 0, values, 1.0)[:-1] for values in (energy, size))
    grown = (norms[1:] - np.maximum(norms[:-1], norm_bound(run.n))).max(axis=1)  # (T - 1,)
    with np.errstate(over="ignore"):
        increase_error, growth_error = (
            (energy_doubt[1:] + energy_doubt[:-1]) / tall,
            (doubt[1:] + doubt[:-1]) / tallest,
        )
    beyond = {  # by how much, beyond its error, between saved times
        "increase of log L, relative to log(L / n^2)": np.diff(energy) / tall - increase_error,
        "departure of the drop of log L from its identity, relative to it": departure,
        "growth of a token beyond R, relative to the largest": grown / tallest - growth_error,
    }
    name = max(beyond, key=lambda one: float(beyond[one].max(initial=-1.0)))
    at, value = int(beyond[name].argmax()), float(beyond[name].max())
    error = max(float(np.median(increase_error)), float(np.median(growth_error)))
    left = float(size[-1] / size[0]) if size[0] > 0 else 0.0
    modes = _modes(y[-1], affine_rank(y[0]))
    r = len(modes)
    late = s >= 0.5 * s[-1]
    squares = np.mean(norms**2, axis=1)
    slope = (
        fit_power_law(s[late], squares[late]).slope
        if late.sum() >= 3 and squares[-1] > 0
        else np.nan
    )
    ratio = 2 * s[-1] / r * float(squares[-1]) if r else np.nan
    is_law = abs(ratio - 1) <= LAW and abs(slope + 1) <= LAW
    is_gone = left <= RESOLUTION
    uniform = float(np.abs(run.n * attention(run)[0] - 1).max())
    details = {
        "left_of_the_largest_token": left,
        "rank": r,
        "two_s_over_r_times_mean_square": ratio,
        "slope_of_mean_square": slope,
        "n_P_minus_1": uniform,
        "log_L_over_n2": float(energy[-1]),
        "identity_checked_on": f"{checked} of {len(s) - 2} intervals",
        "bound_of_norms": norm_bound(run.n),
        "worst_at": float(run.times[at + 1]),
    }
    text = (
        f"Worst over {len(s)} saved times, beyond its error: {name}. At t = {evidence.t_end:.4g}"
        f" the largest token has {left:.2g} of its first size, 2s/r mean|y|^2 = {ratio:.4g} (must"
        f" tend to 1), slope {slope:.4g} (to -1), n P is within {uniform:.2g} of 1."
    )
    return Measured(
        value,
        0.0,
        error if value <= 0 else 0.0,
        RESOLUTION,
        text,
        details=details,
        is_reached=(is_gone or is_law) and checked > 0,
        needs=_needed(s[-1], left, modes, c, checked, evidence),
    )


def _rates(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(y', d log L / ds) of tokens y (..., n, d), from the reduced equation: d log L / ds = -2
    sum_i Z_i |y_i'|^2 / L.
    """
    scores = y @ np.swapaxes(y, -1, -2)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    Z = weights.sum(axis=-1, keepdims=True)  # e^{-top} Z_i
    velocity = -(weights / Z) @ y
    share = np.log(Z[..., 0]) + top[..., 0]
    share = np.exp(share - np.logaddexp.reduce(share, axis=-1)[..., None])  # Z_i / L, (..., n)
    return velocity, -2 * np.sum(share * np.sum(velocity**2, axis=-1), axis=-1)


def _identity(s, y, velocity, rate, energy, energy_doubt, doubt) -> tuple[np.ndarray, int]:
    """(departure, beyond its error (T - 2,); where it can be seen): the drop of log L against the
    integral of its rate.

    Over three saved times, by Simpson's rule; its error is taken to be its difference to the
    trapezoidal rule, which is far too much, except where the rate has an inflection and the rules
    agree: so the largest of the neighbours counts. Both mean something only where the saved times
    follow the motion and the rate changes little; elsewhere -1. All relative to the integral.
    """
    first, second = np.diff(s)[:-1], np.diff(s)[1:]
    weights = 2 - second / first, (first + second) ** 2 / (first * second), 2 - first / second
    simpson = (
        (first + second) / 6 * sum(w * rate[k : len(s) - 2 + k] for k, w in enumerate(weights))
    )
    trapezoid = (first * (rate[:-2] + rate[1:-1]) + second * (rate[1:-1] + rate[2:])) / 2
    scale = np.where(simpson != 0, np.abs(simpson), 1.0)
    # y' is Lipschitz with constant 1 + 2 |y|^2, the shares Z_i / L change by 4 |y| dy
    typical, size = np.sqrt(-rate / 2), np.linalg.norm(y, axis=2).max(axis=1)
    of_velocity = (1 + 2 * size**2) * doubt / np.where(typical > 0, typical, 1.0)
    of_rate = (2 + of_velocity) * of_velocity + 4 * size * doubt  # (T,)
    both = energy_doubt[2:] + energy_doubt[:-2]
    differ = np.pad(np.abs(simpson - trapezoid), 1, mode="edge")
    differ = np.maximum(np.maximum(differ[:-2], differ[2:]), differ[1:-1])
    error = (differ + both) / scale + np.maximum(of_rate[:-2], of_rate[2:])
    is_followed = _is_followed(s, y, velocity)
    is_seen = (error <= FOLLOWED) & is_followed[:-1] & is_followed[1:]
    is_seen &= (rate[:-2] >= 2 * rate[2:]) & (rate[2:] >= 2 * rate[:-2])  # rates are negative
    departure = np.abs(energy[2:] - energy[:-2] - simpson) / scale
    return np.where(is_seen, departure - error, -1.0), int(is_seen.sum())


def _is_followed(s: np.ndarray, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """Whether no transient hides between two saved times, (T - 1,).

    Either the tokens move as far as their velocities say, or these cannot have changed, by the
    acceleration at both ends. (The first alone would pass over data that do not move as they
    should; the second, late, magnifies the noise of the velocities.)
    """

    def largest(vectors: np.ndarray) -> np.ndarray:
        return np.linalg.norm(vectors, axis=2).max(axis=1)

    step, moved = np.diff(s), np.diff(y, axis=0)
    is_consistent = largest(
        moved - step[:, None, None] / 2 * (velocity[1:] + velocity[:-1])
    ) <= FOLLOWED * largest(moved)
    speed = np.where(largest(velocity) > 0, largest(velocity), 1.0)
    ahead = (1e-4 * largest(y) / speed)[:, None, None]  # (T, 1, 1)
    change = (
        largest(_rates(y + ahead * velocity)[0] - velocity)
        / np.where(ahead > 0, ahead, 1.0)[:, 0, 0]
        / speed
    )
    return is_consistent | (step * np.maximum(change[1:], change[:-1]) <= 3 * FOLLOWED)


def _modes(y: np.ndarray, r: int) -> np.ndarray:
    """The r largest eigenvalues mu of the covariance of y (n, d): mu' = -2 mu^2 to leading
    order.
    """
    return (np.linalg.svd(y - y.mean(axis=0), compute_uv=False)[:r] ** 2) / len(y)


def _needed(
    s: float, left: float, modes: np.ndarray, c: float, checked: int, evidence: Evidence
) -> str:
    """Until when it must run: 1/mu grows by 2 a unit of s, and the law is seen once it is 2 s up to
    a twentieth.
    """
    if checked == 0 and evidence.error < RESOLUTION:
        closer = float(np.diff(evidence.run.times).min()) / 10
        return f"saved times are too far apart to follow L; some {closer:.2g} apart would decide"
    if len(modes) == 0:
        wanted = s + math.log(max(1.1 * left / RESOLUTION, 1.1))
    else:
        behind = float(np.abs(1 / np.maximum(modes, 1e-300) - 2 * s).max())
        wanted = max(behind / LAW, 2 * s, 40.0)
    seen = f"the largest token still has {left:.2g} of its first size, and no power law is seen"
    return f"{seen}; t_end = {wanted / c:.3g} would decide"


def _stuck(run: Trajectory) -> Trajectory:
    """The data with the tokens at rest from the middle of the times on."""
    states = run.states.copy()
    half = len(run.times) // 2
    states[half:] = states[half]
    return with_states(run, states)


def _random_tokens(run: Trajectory, rng: np.random.Generator) -> Trajectory:
    """The start of the run, then random tokens of its size, other ones at each time: in x, since z
    would make them decay.
    """
    x = rng.uniform(-1.0, 1.0, run.x.shape) * np.abs(run.x[0]).max()
    x[0] = run.x[0]
    return dataclasses.replace(
        run,
        frame="x",
        states=x,
        log_scale=np.zeros(len(run.times)),
        basis=None,
        growth=None,
        turn=None,
    )


theorems.register("collapse_to_origin")(
    Theorem(
        name="collapse_to_origin",
        kind="theorem",
        statement=(
            "For V = -c I, c > 0, and Q^T K = M symmetric positive definite all x_i(t) tend to 0"
            " and all entries of P to 1/n, from any start. L = sum_ij exp(x_i^T M x_j) never"
            " increases: dL/dt = -(2/c) sum_i Z_i |x_i'|_M^2, Z_i = sum_j of these."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 8, theorem for"
            " V = -I"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(-np.eye(3), t_end=100.0),
        breaks=lambda: specimen(np.diag([-1.0, -0.5]), t_end=4.0),
        short=lambda: specimen(-np.eye(3), t_end=3.0),
        spoil=_stuck,
        nonsense=_random_tokens,
        errata=(
            "The source states it for Q^T K = I; y = (Q^T K)^{1/2} x gives every symmetric positive"
            " definite Q^T K. The rate, mean square ~ r / (2t), r the affine dimension of the"
            " start, is not in the source: it is derived and measured, not proved."
        ),
    )
)
