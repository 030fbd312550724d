"""What a worker does with a task: cells in, rows out. It touches no file.

Cells whose Specs differ only in their tokens are one batch, integrated by one call of `simulate`. A member of a batch equals a
run of its own to the last bit, so batches change nothing but the time. What fails in a batch is done again, one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from attnlab.batches import members
from attnlab.run import resolve
from attnlab.spec import Spec, canonical_text
from attnlab.sweep.definition import put_values
from attnlab.sweep.engines import Task
from attnlab.sweep.grid import Cell
from attnlab.sweep.numbers import FOREVER, added_times, evaluate, needs_run
from attnlab.sweep.rows import OK, REFUSED, Row
from attnlab.types import Dynamics, Limit, Status, Trajectory

REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, OSError)
"""Errors of one cell: it becomes a row with the sentence, and the others go on."""


class Prepared(NamedTuple):
    """A cell that is ready to be integrated. own: which of its saved times the Spec asked for; None: all."""

    digest: str
    cell: Cell
    spec: Spec
    dynamics: Dynamics
    x0: np.ndarray
    options: Mapping[str, Any]
    own: np.ndarray | None


class Computer:
    """Computes the tasks of one sweep. head: what `Sweep.head` returned."""

    def __init__(self, head: Mapping[str, Any]):
        self.base, self.arrays = head["base"], head["arrays"]
        self.numbers, self.measured = head["numbers"], head["measured"]
        self.needs_run, self.times = needs_run(self.numbers), added_times(self.numbers)

    def __call__(self, task: Task) -> list[Row]:
        """The rows of a task, in the order of its cells."""
        rows: dict[str, Row] = {}
        groups: dict[Any, list[Prepared]] = {}
        for digest, cell in task.cells:
            began = time.perf_counter()
            try:
                prepared = self._prepare(digest, cell)
            except REFUSALS as problem:
                rows[digest] = self._row(digest, cell, began, REFUSED, problem)
                continue
            alone = task.is_timed or not self.needs_run or not prepared.dynamics.noise.is_none
            groups.setdefault(digest if alone else _equation_of(prepared), []).append(prepared)
        for group in groups.values():
            rows |= {row.digest: row for row in self._compute(group)}
        return [rows[digest] for digest, _ in task.cells]

    def _prepare(self, digest: str, cell: Cell) -> Prepared:
        spec = Spec.from_dict(put_values(self.base, cell, self.arrays))
        resolved = resolve(spec)
        options, own = dict(resolved.options), None
        for key in spec.dynamics:
            options.pop(key, None)                      # they are in the Dynamics
        if self.times and "layers" not in options:
            options["times"], own = add_times(resolved.dynamics, options, self.times)
            options.pop("saves", None)
        return Prepared(digest, cell, spec, resolved.dynamics, resolved.x0, options, own)

    def _compute(self, group: list[Prepared]) -> Iterable[Row]:
        """The rows of cells that have one equation."""
        if len(group) > 1:
            began = time.perf_counter()
            try:
                runs = members(integrate(group[0].dynamics, np.stack([one.x0 for one in group]), group[0].options))
            except REFUSALS:
                runs = []
            if runs:
                shared = (time.perf_counter() - began) / len(group)
                return [self._measure(one, run, time.perf_counter() - shared)
                        for one, run in zip(group, runs, strict=True)]
        return [self._alone(one) for one in group]

    def _alone(self, one: Prepared) -> Row:
        began = time.perf_counter()
        try:
            run = integrate(one.dynamics, one.x0, one.options) if self.needs_run else None
        except REFUSALS as problem:
            return self._row(one.digest, one.cell, began, REFUSED, problem)
        return self._measure(one, run, began)

    def _measure(self, one: Prepared, run: Trajectory | None, began: float) -> Row:
        """The row of a run, which began so long ago."""
        seed = one.spec.start.get("rng", 0)
        if run is not None and run.status is not Status.OK:
            return self._row(one.digest, one.cell, began, run.status.name.lower(), explain(run, one.x0), seed)
        try:
            own = None if run is None or one.own is None else one.own[: len(run.times)]
            found = evaluate(self.numbers, run, lambda: limit_of(one), own)
        except REFUSALS as problem:
            return self._row(one.digest, one.cell, began, REFUSED, problem, seed)
        return Row(one.digest, OK, one.cell, found, None, time.perf_counter() - began, seed, versions(), self.measured)

    def _row(self, digest: str, cell: Cell, began: float, status: str, problem: object, seed: int | None = None) -> Row:
        words = " ".join(str(problem).split()) or type(problem).__name__
        return Row(digest, status, cell, {}, words[:2000], time.perf_counter() - began, seed, versions(), self.measured)


def integrate(dynamics: Dynamics, x0: np.ndarray, options: Mapping[str, Any]) -> Trajectory:
    """The run of first tokens (n, d) or (batch, n, d); one that fails is returned as far as it came."""
    from attnlab.engine import simulate

    return simulate(dynamics, x0, **options, throw=False)


def limit_of(one: Prepared) -> Limit:
    """The certified limit of a cell; its work ends it, never the clock."""
    from attnlab.limits import limit

    return limit(one.dynamics, one.x0, budget=FOREVER)


def explain(run: Trajectory, x0: np.ndarray) -> str:
    """Why a run stopped early, in a sentence."""
    from attnlab.analysis.blow_up import explain_blow_up

    return f"The run stopped at t = {run.stats['reached']:g} of {run.solve.t_end:g}. {explain_blow_up(run, 0, x0) or run.status.value}"


def add_times(dynamics: Dynamics, options: Mapping[str, Any], more: list[float]) -> tuple[list[float], np.ndarray]:
    """(times, own): the saved times of a run with these among them, and which of them it had before."""
    from attnlab.engine.options import solve_options

    asked = {key: options.get(key) for key in ("t_end", "layers", "times", "saves", "dt")}
    known = {key: options[key] for key in ("rtol", "atol", "stepper", "frame", "max_steps", "rng") if key in options}
    usual = {"rtol": 1e-8, "atol": 0.0, "stepper": "adaptive", "frame": "auto", "max_steps": 100_000}
    solve = solve_options(dynamics, **asked, **{**usual, **known})
    from attnlab.sweep.numbers import SAME_TIME

    new = [t for t in more if t <= solve.t_end and np.abs(solve.times - t).min() > SAME_TIME * max(t, 1.0)]
    times = np.union1d(solve.times, new)
    return times.tolist(), np.isin(times, solve.times)


@cache
def versions() -> str:
    """What a row was computed with."""
    import platform

    import numba

    from attnlab import __version__

    return f"attnlab {__version__}, numpy {np.__version__}, numba {numba.__version__}, Python {platform.python_version()}"


def _equation_of(one: Prepared) -> str:
    """Cells with equal texts have the same equation, the same solver and the same shape of tokens."""
    parts = [one.spec.weights, one.spec.dynamics, one.spec.solve, list(one.x0.shape), list(one.spec.observe)]
    return canonical_text(parts)


Compute = Callable[[Task], list[Row]]
