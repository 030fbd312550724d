"""The evidence for a check: the run, its error, and the limit of the flow from its start."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from attnlab import frames
from attnlab.engine import simulate
from attnlab.engine.simulation import add_error
from attnlab.exponential import Exponential
from attnlab.limits import limit as limit_of
from attnlab.limits.allowance import WORK as limit_work
from attnlab.limits.closed.problem import is_one_head_with_blocks
from attnlab.limits.heads.problem import has_different_scores
from attnlab.limits.problem import make_problem
from attnlab.limits.undecided import undecided
from attnlab.progress import Progress, as_progress
from attnlab.types import Limit, RunInterrupted, Status, Trajectory

WORK = limit_work / 2.0
"""Units of work for the limit of a checked run. An idle machine does them in the 30 seconds of a
check.
"""

RESOLUTION = 0.01
"""A length is resolved to this part of the range of the measured values, over the tokens and 0."""

FINER_TOO = 2.0
"""The error is at most this many times the difference to a ten times finer run (1.1 in most runs,
at most 1.8 in 400).
"""

FOREIGN = 10.0
"""If data are farther from the flow of their own start than this many errors, they are not data of
their equation.
"""

WALL = 30.0
"""lambda_1 t after which double precision cannot distinguish the tokens of a cluster (28 to 36 in
runs that stopped there).
"""

CONTINUED = np.linspace(1.0, 2.0, 9)
"""The saved times of a continued run, in units of its length."""

INTERRUPTED = "The check was interrupted before its verdicts were complete. None is given."
"""The message after Ctrl-C in a check."""


class Evidence:
    """One run (no batch) and the quantities derived from it. Each is computed once, when it is
    needed.
    """

    def __init__(
        self,
        run: Trajectory,
        budget: float = 30.0,
        work: float = WORK,
        progress: Progress | None = None,
        times: Sequence[float] | np.ndarray = (),
    ):
        if not (np.diff(run.times) > 0).all():
            raise ValueError(
                "The saved times of a run must ascend strictly. Sort its times and states before"
                " you check it."
            )
        if not (np.isfinite(run.states).all() and np.isfinite(run.log_scale).all()):
            raise ValueError(
                "The tokens of a run must be finite, but some are NaN or infinite. Cut it at its"
                " last good time."
            )
        self.run, self.budget, self.work = run, budget, work
        self.times = times  # further times at which the limit has the rescaled tokens
        self.progress = as_progress(
            progress
        )  # of the present statement; each computation takes half of the rest

    @cached_property
    def start(self) -> np.ndarray:
        """The tokens at the first saved time, (n, d); those of later times need not fit in
        double.
        """
        states, log_scale = self.run.scaled_x(slice(0, 1))
        return np.array(states[0] * np.exp(log_scale[0]))

    @cached_property
    def z(self) -> np.ndarray:
        """The rescaled tokens, (T, n, d)."""
        return self.run.rescaled

    @cached_property
    def error(self) -> float:
        """The error of the run relative to the largest token: run.error, or that of its own solver.

        It is twice the difference to a finer run, which has an error too. If tokens move, it is at
        least the tolerance of the finer run, because the difference is 0 if both took the same few
        steps.
        """
        solve, dynamics = self.run.solve, self.run.dynamics
        is_tolerance = solve.stepper == "adaptive" and not dynamics.is_layers
        is_still = bool((self.run.states == self.run.states[0]).all())
        claimed = FINER_TOO * (
            self.error_of_solver if self.run.error is None else float(self.run.error)
        )
        return max(claimed, solve.rtol / 10) if is_tolerance and not is_still else claimed

    @property
    def known_error(self) -> float:
        """The error of the run if it was measured, else NaN."""
        return float(self.__dict__.get("error", math.nan))

    @cached_property
    def error_of_solver(self) -> float:
        """The difference between a run with the stated solver and a finer run. The data themselves
        may have any error.
        """
        if len(self.run.times) < 2:
            return self.departure
        again = solve_again(self.run, self.start, progress=self.progress.next_part())
        if np.array_equal(again.states, self.run.states) and np.array_equal(
            again.log_scale, self.run.log_scale
        ):
            return self.departure
        is_whole = len(again.times) == len(self.run.times)
        return measure_error(again, self.start, self.progress.next_part()) if is_whole else math.nan

    @cached_property
    def departure(self) -> float:
        """The distance of the data from a finer solution of their equation from their start,
        relative to the largest token.
        """
        return measure_error(self.run, self.start, self.progress.next_part())

    @cached_property
    def scale(self) -> float:
        """The size of the tokens at the start, where z = x. Distances are relative to it."""
        return float(np.abs(self.start).max())

    @cached_property
    def limit(self) -> Limit:
        """The certified limit in all of F, with the tokens at the last saved time; undecided if
        only a part is known.
        """
        found = self.end
        if "growing" not in found.stats:
            return found
        shared = {"dynamics": found.dynamics, "x0": found.x0, "times": found.times, "t": found.t}
        reason = (
            "The statement needs the limit along all growing directions, forever. Less is known:"
            f" {found.reason}"
        )
        return undecided(shared, len(found.x0), np.zeros((found.x0.shape[1], 0)), reason)

    @cached_property
    def end(self) -> Limit:
        """The certified part of the limit: perhaps of groups only, along some directions, or up to
        a horizon.
        """
        found = limit_of(
            dataclasses.replace(self.run),
            times=np.unique([float(self.run.times[-1]), *self.times]),
            work=self.work,
            budget=self.budget,
            progress=self.progress.next_part(),
        )
        assert isinstance(found, Limit)  # of one run
        return found

    @cached_property
    def parts_in_F(self) -> np.ndarray:
        """Coordinates (T, n, k) along limit.basis of the projection of z on F."""
        dynamics = self.run.dynamics
        if has_different_scores(dynamics.weights) or is_one_head_with_blocks(dynamics):
            # F is spanned by coordinates, and the others are invariant, too
            return np.asarray(self.z @ self.limit.basis)
        problem = make_problem(dynamics, self.start)
        basis, inverse = problem.coordinates.basis, problem.coordinates.inverse
        assert basis is not None and inverse is not None
        projector = basis[:, problem.is_unstable] @ inverse[problem.is_unstable]
        return (parts_in(self.run, projector) @ inverse.T)[..., problem.is_unstable]

    @cached_property
    def continued(self) -> Trajectory:
        """The run from its own start to twice its time, solved in its own way; saved times 0 and
        those of CONTINUED.

        It is solved from the start, because with a feed-forward part the equation depends on time.
        """
        times = np.concatenate([[0.0], self.t_end * CONTINUED])
        return solve_again(
            self.run,
            self.start,
            times,
            max_steps=4 * self.run.solve.max_steps,
            progress=self.progress.next_part(),
        )

    @property
    def growth(self) -> float:
        """The largest growth rate of the tokens; 0 on the sphere and for layers, which have no
        precision wall in time.
        """
        dynamics = self.run.dynamics
        return (
            Exponential(dynamics.weights.total).rate
            if dynamics.is_value_linear and dynamics.dt is None
            else 0.0
        )

    @property
    def t_end(self) -> float:
        """The last saved time."""
        return float(self.run.times[-1])

    def longer_words(self, t_end: float) -> str:
        """Say that a run to t_end would decide or, if double precision ends before, that no run
        can.
        """
        if self.growth * t_end <= WALL:
            return f"t_end = {t_end:.3g} would decide"
        return (
            f"t_end = {t_end:.3g} is needed, but double precision ends near t ="
            f" {WALL / self.growth:.2g}: no run decides, a certified limit could"
        )

    def not_before_words(self, t_end: float) -> str:
        """Say that a longer run, at least to t_end, would decide, or that none can. The needed
        length is unknown.
        """
        if self.growth * 2 * t_end <= WALL:
            return f"a longer run would decide, but not before t_end = {t_end:.3g}"
        return (
            f"it must be at rest from t_end = {t_end:.3g} to twice that, but double precision ends"
            f" near t = {WALL / self.growth:.2g}: no run decides, a certified limit could"
        )

    @property
    def finer_words(self) -> str:
        """What to change to get a smaller error."""
        solve = self.run.solve
        if self.run.dynamics.is_layers:
            return "layers take no smaller steps; fewer layers would decide"
        if solve.stepper != "adaptive":
            return f'use stepper="adaptive" instead of "{solve.stepper}"'
        return f"use rtol={max(solve.rtol / 100, 1e-13):.0e} instead of {solve.rtol:.0e}"


def solve_again(
    run: Trajectory, start: np.ndarray, times: np.ndarray | None = None, **changes: Any
) -> Trajectory:
    """Solve the equation of the run from start (n, d) with the run's own options, to its saved
    times or to others.

    changes: options of simulate that differ, such as max_steps. Ctrl-C raises RunInterrupted: half
    a run decides nothing.
    """
    dynamics, solve = run.dynamics, run.solve
    times = run.times if times is None else times
    options: dict[str, Any] = {}
    if dynamics.dt is not None:
        options |= {"layers": round(float(times[-1]) / dynamics.dt), "times": times}
    else:
        options |= {
            name: getattr(solve, name)
            for name in ("rtol", "atol", "stepper", "dt", "frame", "max_steps", "rng")
        }
        options["times"] = times
    again = simulate(dynamics, start, throw=False, **(options | changes))
    if again.status is Status.INTERRUPTED:
        raise RunInterrupted(INTERRUPTED, again)
    return again


def measure_error(run: Trajectory, start: np.ndarray, progress: Progress) -> float:
    """Return the distance of the run from a finer solution from start (n, d), relative to its
    largest token.

    Raises RunInterrupted after Ctrl-C.
    """
    # without its own error, which an interrupted measurement would keep
    found = add_error(dataclasses.replace(run, error=None), start, progress)
    if found.error is None:
        raise RunInterrupted(INTERRUPTED, found)
    return float(found.error)


def range_of(values: np.ndarray) -> float:
    """Return the range of values (n,) over the tokens and 0; for vectors (n, m) the largest range
    of a coordinate.
    """
    return float(
        np.max(
            np.maximum(values.max(axis=0), 0.0) - np.minimum(values.min(axis=0), 0.0), initial=0.0
        )
    )


def resolution_of(evidence: Evidence, values: np.ndarray) -> float:
    """Return RESOLUTION times the range of the measured values, (n,) or (n, m), or of the first
    tokens if all are 0.
    """
    return RESOLUTION * (range_of(values) or evidence.scale or 1.0)


def parts_in(run: Trajectory, projector: np.ndarray) -> np.ndarray:
    """Return pi z (T, n, d), pi (d, d) a spectral projector of V: from eigen-coordinates if the run
    has them.

    z itself is not accurate enough: coordinates that blow up in it, like e^{-lambda t}, spoil the
    others by their rounding.
    """
    if run.frame != "x" or run.basis is None or run.growth is None or run.turn is None:
        return np.asarray(run.rescaled @ projector.T)
    size = np.linalg.norm(projector @ run.basis, axis=0)
    states = np.where(size > 1e-9 * size.max(initial=0.0), run.states, 0.0)
    return frames.unwind(
        states, run.times, run.log_scale, run.basis, run.growth, run.turn, run.dynamics.dt
    )


def leading_parts(run: Trajectory, rows: np.ndarray, rate: float) -> np.ndarray:
    """Return rows z (T, n, m) for rows (m, d) with rows V = rate rows, as e^{-rate t} rows x,
    without loss of digits.
    """
    states, log_scale = run.scaled_x()
    return states @ rows.T * np.exp(log_scale - rate * run.times)[:, None, None]


def error_of_leading_parts(evidence: Evidence, rows: np.ndarray, rate: float) -> float:
    """Return the error of the last of leading_parts."""
    states, log_scale = evidence.run.scaled_x(slice(-1, None))
    size = float(np.abs(states[0]).max()) * math.exp(float(log_scale[0]) - rate * evidence.t_end)
    return evidence.error * size * float(np.abs(rows).sum(axis=1).max())


def error_of_parts(evidence: Evidence, parts: np.ndarray, slowest: float) -> float:
    """Return the error of the last of parts (T, n, d); slowest: the smallest eigenvalue there.

    The run's error is relative to the largest token, in z and in x, and each gives a bound. The
    largest token is that of the true solution: in the run it may be smaller by the error, and
    nothing is known if the error is as large as the token.
    """
    if not evidence.error < 1.0:
        return math.inf
    run = evidence.run
    states, log_scale = run.scaled_x()
    log_x = float(log_scale[-1]) + math.log(max(float(np.abs(states[-1]).max()), 1e-300))
    by_x = math.exp(min(log_x - slowest * evidence.t_end, 700.0))
    size = max(
        min(by_x, float(np.abs(evidence.z[-1]).max())), float(np.abs(parts[-1]).max(initial=0.0))
    )
    return evidence.error / (1.0 - evidence.error) * size
