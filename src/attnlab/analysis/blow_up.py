"""Explain why a run with the kernel exp_mean stopped at once: its weights are not normalised."""

from __future__ import annotations

import math

import numpy as np

from attnlab.types import Status, Trajectory

TOO_FAST = 100.0
"""A token is too fast that would move by so many times its size in one fixed step, or by t_end, and
by so many times more than with softmax.
"""

FAST_ANYWAY = 1e4
"""Where softmax too would move it by so much, the weights are not the reason."""

AT_ONCE, FIRST_STEPS = 10.0, 2
"""A blow-up is at once within so many times |x| / |x'| of the start, or within so many fixed
steps.
"""

ROWS_AT_ONCE = 256


def explain_blow_up(run: Trajectory, member: int = 0, x0: np.ndarray | None = None) -> str:
    """Return the reason and the remedy if exp_mean made a member fail at once, else an empty text.

    x0 (n, d): the first tokens of the member. None: those that the run saved at t = 0, if any.
    """
    status = np.ravel(np.asarray(run.status, dtype=object))[member]
    kernel = run.dynamics.kernel
    is_exp_mean = (
        kernel.is_exponential and not kernel.rows_sum_to_one and run.dynamics.scores.is_dot
    )
    is_candidate = is_exp_mean and status in (Status.STALLED, Status.NON_FINITE)
    if (
        not is_candidate or "not_finite" in run.stats
    ):  # there an observable was not finite, not a token
        return ""
    x0 = _first_tokens(run, member) if x0 is None else x0
    if x0 is None:
        return ""
    (head, row, column), score = _largest_score(run, x0)
    rate, softmax_rate = _log_rates(run, x0, row)
    clock = run.solve.dt if run.solve.dt is not None else run.solve.t_end
    reached, steps = (np.ravel(run.stats[name])[member] for name in ("reached", "steps"))
    is_early = (
        steps <= FIRST_STEPS if run.solve.dt is not None else _times(rate, reached) <= AT_ONCE
    )
    is_fast = _times(rate, clock) >= TOO_FAST and _times(softmax_rate, clock) < FAST_ANYWAY
    if not is_early or not is_fast or rate - softmax_rate < math.log(TOO_FAST):
        return ""
    weights = run.dynamics.weights
    is_square = row == column and np.array_equal(
        weights.Q[head].T @ weights.K[head], np.eye(weights.d)
    )
    size = f" = {math.exp(score):.1e}" if score < 700.0 else ", beyond double precision,"
    smaller = "beta, Q or K" if run.dynamics.geometry.is_unit_sphere else "the tokens, beta, Q or K"
    return (
        "exp_mean divides by the number of tokens, not by the sum of the weights, so a weight is"
        " e^{beta <Q x_i, K x_j>} / n. Here"
        f" {'beta |x|^2' if is_square else 'the largest beta <Q x_i, K x_j>'} = {score:.3g}, and"
        f" e^{score:.3g}{size} makes the first step too fast. Scale {smaller} down, or use the"
        " kernel softmax."
    )


def _first_tokens(run: Trajectory, member: int) -> np.ndarray | None:
    """The tokens (n, d) of a member at t = 0, None where the run did not save them."""
    if not len(run.times) or run.times[0] != 0.0:
        return None
    states, log_scale = run.scaled_x(slice(0, 1))
    first = states.reshape(-1, *states.shape[-3:])[member, 0]
    return first * math.exp(log_scale.reshape(-1)[member])


def _largest_score(run: Trajectory, x: np.ndarray) -> tuple[tuple[int, int, int], float]:
    """(head, row, column) of the largest beta <Q x_i, K x_j> among tokens that see each other, and
    that number.
    """
    weights, is_causal = run.dynamics.weights, run.dynamics.mask.is_causal
    found, largest = (0, 0, 0), -math.inf
    columns = np.arange(len(x))
    with np.errstate(over="ignore", invalid="ignore"):
        for head in range(weights.heads):
            keys = (x @ weights.K[head].T).T
            for first in range(0, len(x), ROWS_AT_ONCE):
                rows = columns[first : first + ROWS_AT_ONCE]
                scores = run.dynamics.beta * ((x[rows] @ weights.Q[head].T) @ keys)
                if is_causal:
                    scores = np.where(columns <= rows[:, None], scores, -np.inf)
                row, column = np.unravel_index(
                    np.nanargmax(np.nan_to_num(scores, nan=-np.inf)), scores.shape
                )
                if scores[row, column] > largest:
                    found, largest = (
                        (head, first + int(row), int(column)),
                        float(scores[row, column]),
                    )
    return found, largest


def _log_rates(run: Trajectory, x: np.ndarray, row: int) -> tuple[float, float]:
    """log(|x_row'| / |x|) at the start, with the largest coordinates: with exp_mean, and as it
    would be with softmax.
    """
    weights = run.dynamics.weights
    seen = x[: row + 1] if run.dynamics.mask.is_causal else x
    plain, softmax, tops = [], [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for head in range(weights.heads):
            scores = run.dynamics.beta * ((seen @ weights.K[head].T) @ (weights.Q[head] @ x[row]))
            tops.append(float(scores.max()))
            relative = np.exp(scores - tops[-1])
            value = relative @ seen
            for factor in (
                (weights.V[1][head], weights.V[0][head])
                if weights.is_factored
                else (weights.V[head],)
            ):
                value = factor @ value
            plain.append(value / len(seen))
            softmax.append(value / relative.sum())
        top = max(tops)
        fast = sum(math.exp(one - top) * value for one, value in zip(tops, plain, strict=True))
        slow = sum(softmax)
    if run.dynamics.geometry.is_unit_sphere:
        fast, slow = (value - (value @ x[row]) * x[row] for value in (fast, slow))
    size = float(np.abs(x).max())
    fast_size, slow_size = (
        float(np.abs(value).max()) / size if size > 0 else 0.0 for value in (fast, slow)
    )
    return (top + math.log(fast_size) if fast_size > 0 else -math.inf), (
        math.log(slow_size) if slow_size > 0 else -math.inf
    )


def _times(log_rate: float, time: float) -> float:
    """e^log_rate * time, infinity where that is too large."""
    if time <= 0 or log_rate == -math.inf:
        return 0.0
    exponent = log_rate + math.log(time)
    return math.exp(exponent) if exponent < 700.0 else math.inf
