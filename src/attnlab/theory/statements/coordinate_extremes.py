"""Along a real eigenvalue of V that is not negative, the largest coordinate of z never grows and
the smallest never falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab import frames
from attnlab.analysis.spectra import ROUNDING, value_matrix
from attnlab.theory import theorems
from attnlab.theory.claims import all_times, each_time
from attnlab.theory.evidence import RESOLUTION, Evidence
from attnlab.theory.hypotheses import CLEAR, NAN, fact, has_averages, moved_by_values, positive
from attnlab.theory.specimens import in_z, random_tokens, specimen
from attnlab.types import Dynamics, Trajectory, Weights
from attnlab.verdicts import Hypothesis, Measured, Theorem

SMALLEST_FACTOR = 1e-12
"""Layers with |1 + dt lambda| below this forget a direction: z = (I + dt V)^{-k} x does not
exist.
"""


def left_eigenvectors(weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """(lambda (m,), phi* (m, d)), phi*_k V = lambda_k phi*_k, sum_a |phi*_ka| = 1, so that
    |phi*_k(z)| <= max_a |z_a|.

    Of factors V = B C only those of C B, m = r: along the others nothing moves.
    """
    from scipy import linalg

    V = value_matrix(weights)
    values, left = linalg.eig(V.small, left=True, right=False)
    rows = left.conj().T
    if V.is_factored:
        assert V.right is not None
        rows = rows @ V.right
    values, rows = with_real_pairs(values, rows, ROUNDING * float(np.linalg.norm(V.small)))
    sizes = np.abs(rows).sum(axis=1)
    kept = sizes > 0
    return values[kept], rows[kept] / sizes[kept, None]


def turn_real(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows (m, d) with real parts as long as phases make them, |imaginary part| / |real part| then
    (m,)).
    """
    squares = np.sum(rows * rows, axis=1)
    rows = rows * np.exp(-0.5j * np.angle(squares))[:, None]
    real, imaginary = np.linalg.norm(rows.real, axis=1), np.linalg.norm(rows.imag, axis=1)
    return rows, imaginary / np.where(real > 0, real, 1.0)


def with_real_pairs(
    values: np.ndarray, rows: np.ndarray, rounding: float
) -> tuple[np.ndarray, np.ndarray]:
    """(lambda, phi*) with one real eigenvalue in place of each pair r +- is that rounding alone has
    made of a double one.

    phi* = a + ib has a V = r a - s b: where s |b| is below rounding beside |a|, a is as good a left
    eigenvector as any.
    """
    rows, ratios = turn_real(rows)
    is_real = (values.imag != 0.0) & (np.abs(values.imag) * ratios <= rounding)
    values, rows = (
        np.where(is_real, values.real, values),
        np.where(is_real[:, None], rows.real, rows),
    )
    # of two conjugates the first
    kept = ~is_real | (np.cumsum(is_real) % 2 == 1)
    return values[kept], rows[kept]


def nearly_real(values: np.ndarray, rows: np.ndarray) -> bool:
    """Whether a pair of eigenvalues, not negative, may be a double real one as far as can be
    told.
    """
    imaginary = np.abs(values.imag) * turn_real(rows)[1]
    return bool((imaginary <= CLEAR * np.abs(values).max(initial=0.0))[values.real >= 0.0].any())


def is_monotone(weights: Weights, values: np.ndarray) -> np.ndarray:
    """Which of the eigenvalues (m,) are real and not negative; 0 is known to rounding only, and
    nothing moves there.
    """
    return (values.imag == 0.0) & (values.real >= -ROUNDING * np.abs(values).max(initial=0.0))


def log_rates(dynamics: Dynamics, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(own, largest), both (m,): phi*_k(x) = e^{own t} |phi*_k(z)|, and its largest modulus grows
    at most like e^{largest t}.
    """
    if dynamics.dt is None:
        return values.real, np.abs(values)
    return (
        np.log(np.abs(1.0 + dynamics.dt * values)) / dynamics.dt,
        np.log1p(dynamics.dt * np.abs(values)) / dynamics.dt,
    )


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """Rows of P are weights of a mean: any scores, any mask, layers too. V needs one real
    eigenvalue >= 0, no more.
    """
    yield fact("attention weights are not negative and sum to 1", has_averages(dynamics))
    yield moved_by_values(dynamics)
    yield fact("no feed-forward part", dynamics.feedforward.is_none)
    yield fact("one head", dynamics.weights.heads == 1)
    if dynamics.weights.heads == 1:
        values, rows = left_eigenvectors(dynamics.weights)
        chosen = values.real[is_monotone(dynamics.weights, values)]
        largest = float(chosen.max()) if chosen.size else NAN
        holds = True if chosen.size else None if nearly_real(values, rows) else False
        note = "a pair of eigenvalues may be a double one; a clear case would decide"
        yield Hypothesis(
            "V has a real eigenvalue that is not negative",
            largest,
            ">= 0",
            holds,
            note if holds is None else "",
        )
        if dynamics.dt is not None:
            least = float(np.abs(1.0 + dynamics.dt * values).min(initial=1.0))
            yield positive("I + dt V is invertible", least, SMALLEST_FACTOR)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The coordinates, and where x0 is known the intervals that they never leave."""
    values, rows = left_eigenvectors(dynamics.weights)
    chosen = is_monotone(dynamics.weights, values)
    data: dict[str, Any] = {"eigenvalues": values[chosen].real, "left": rows[chosen].real}
    words = (
        f"max_j phi*_k(z_j) never grows and min_j phi*_k(z_j) never falls, for {int(chosen.sum())}"
        f" of {len(values)} eigenvalues of V; |phi*_k(x_i)| <= C e^(|lambda_k| t) for all of them"
    )
    if x0 is not None:
        coordinates = x0 @ data["left"].T  # (n, m)
        data["intervals"] = np.stack(
            [coordinates.min(axis=0), coordinates.max(axis=0)], axis=1
        )  # (m, 2)
        data["C"] = np.abs(x0 @ rows.T).max(axis=0)
    if chosen.all() and len(values) == dynamics.weights.d:
        words += "; if V is diagonalizable, all z_i are bounded"
    return words + ".", data


def measure(evidence: Evidence) -> Measured:
    """The largest step outward of an extreme coordinate, and of |phi*_k(x)| beyond its envelope,
    relative to its range.
    """
    run, dynamics = evidence.run, evidence.run.dynamics
    values, rows = left_eigenvectors(dynamics.weights)
    chosen = is_monotone(dynamics.weights, values)
    scale = max(evidence.scale, 1e-300)
    coordinates = left_coordinates(evidence, values, rows) / scale  # (T, n, m)
    doubt = coordinate_errors(evidence, values) / scale + 1e-13 * np.abs(coordinates).max(
        axis=1
    )  # (T, m)
    monotone = coordinates[..., chosen].real
    above, below = (
        steps_outward(monotone.max(axis=1)),
        steps_outward(-monotone.min(axis=1)),
    )  # (T, m)
    own, largest = log_rates(dynamics, values)
    shrink = np.exp(-np.outer(run.times - run.times[0], largest - own))  # (T, m), <= 1
    beyond = np.abs(coordinates).max(axis=1) * shrink - np.abs(coordinates[0]).max(axis=0)  # (T, m)
    extremes = np.maximum(above, below)  # (T, m)
    growth = float(beyond[1:].max(initial=-np.inf)) if len(run.times) > 1 else 0.0
    details = {
        "eigenvalues": values[chosen].real,
        "largest_step_outward": float(extremes.max(initial=0.0)),
        "growth_beyond_envelope": growth,
        "first_extremes": (
            np.stack([monotone[0].min(axis=0), monotone[0].max(axis=0)], axis=1) * scale
        ),
        "last_extremes": (
            np.stack([monotone[-1].min(axis=0), monotone[-1].max(axis=0)], axis=1) * scale
        ),
    }
    what = (
        f"The largest step outward of the extremes of {int(chosen.sum())} coordinates, and growth"
        f" of {len(values)} beyond their envelopes, each relative to the range of that coordinate"
        " and 0"
    )
    if len(run.times) < 2:
        return all_times(
            evidence, 0.0, resolution=RESOLUTION, error=0.0, what=what, details=details
        )
    ranges = np.maximum(monotone.max(axis=1), 0.0) - np.minimum(monotone.min(axis=1), 0.0)  # (T, m)
    envelope = np.broadcast_to(np.abs(coordinates[0]).max(axis=0), beyond.shape)  # (T, m)
    return each_time(
        evidence,
        np.concatenate([extremes[1:], beyond[1:]], axis=1),
        2.0 * np.concatenate([doubt[1:, chosen], (doubt * shrink)[1:]], axis=1),
        np.concatenate([ranges[1:], envelope[1:]], axis=1),
        what=what,
        details=details,
    )


def steps_outward(largest: np.ndarray) -> np.ndarray:
    """How far values (T, m) are above the least before them: 0 where they never grow, however
    slowly they do.
    """
    return largest - np.minimum.accumulate(largest, axis=0)


def left_coordinates(evidence: Evidence, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """phi*_k(z_i(t)), (T, n, m), from the eigen-coordinates of the run where it has them.

    In z itself the coordinates that blow up drown the others. phi*_k vanishes on all eigenvectors
    of other eigenvalues.
    """
    run = evidence.run
    if run.frame != "x" or run.basis is None or run.growth is None or run.turn is None:
        return np.asarray(evidence.z @ rows.T)
    own = np.abs(run.growth - values.real[:, None]) <= 1e-7 * np.abs(values).max(
        initial=0.0
    )  # (m, d)
    unit = np.eye(run.d)
    z = frames.unwind(
        run.states, run.times, run.log_scale, unit, run.growth, run.turn, run.dynamics.dt
    )
    return np.asarray(z @ np.where(own, rows @ run.basis, 0.0).T)


def coordinate_errors(evidence: Evidence, values: np.ndarray) -> np.ndarray:
    """How far phi*_k(z_i(t)) may be off, (T, m): the run's error is relative to that time's largest
    token, in x and in z.

    Each gives a bound, e^{-own t} |x| and |z|; the first is the good one where other coordinates of
    z blow up.
    """
    run = evidence.run
    states, log_scale = run.scaled_x()
    own, _ = log_rates(run.dynamics, values)
    with np.errstate(divide="ignore", over="ignore"):
        log_x = log_scale + np.log(np.abs(states).max(axis=(1, 2)))
        by_x = np.exp(log_x[:, None] - np.outer(run.times, own))  # (T, m)
    if run.dynamics.is_layers:
        return evidence.error * by_x  # of layers only x is measured
    return evidence.error * np.minimum(by_x, np.abs(evidence.z).max(axis=(1, 2))[:, None])


def z_backward(run: Trajectory) -> Trajectory:
    """The rescaled tokens in reverse order of time; x in reverse would shrink, and its z all the
    more.
    """
    return in_z(run, run.rescaled[::-1].copy())


theorems.register("coordinate_extremes")(
    Theorem(
        name="coordinate_extremes",
        kind="theorem",
        statement=(
            "For a real eigenvalue lambda_k >= 0 of V with left eigenvector phi*_k, max_j"
            " phi*_k(z_j(t)) is non-increasing and min_j phi*_k(z_j(t)) non-decreasing; so z is"
            " bounded where V is diagonalizable with such eigenvalues only. For every eigenvalue"
            " |phi*_k(x_i(t))| <= e^{|lambda_k| t} max_j |phi*_k(x_j(0))|. Any Q, K, mask; softmax"
            " or hardmax; layers too."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 9, lemmas on"
            " the coordinates phi*_k"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(
            [[1.0, 0.3, 0.0], [0.1, 0.4, 0.2], [0.0, 0.0, -0.5]], t_end=8.0, mask="causal"
        ),
        breaks=lambda: specimen([[0.5, -1.0], [1.0, 0.5]], t_end=4.0),
        short=lambda: specimen(
            [[1.0, 0.3], [0.1, 0.4]], t_end=4.0, stepper="euler", dt=0.5, frame="x"
        ),
        spoil=z_backward,
        nonsense=random_tokens,
    )
)
