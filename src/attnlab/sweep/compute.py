"""Compute a task: cells in, rows out. It touches no file.

Cells whose Specs differ only in the seed of the start form one batch, integrated by one call of
`simulate`. A member of a batch equals a single run to the last bit, so batches change only the
time. If a batch fails, its cells are computed one by one.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from attnlab import __version__
from attnlab.analysis.blow_up import explain_blow_up
from attnlab.batches import members
from attnlab.engine import simulate
from attnlab.engine.options import solve_options
from attnlab.imports import UserFile, run_once
from attnlab.limits import limit
from attnlab.run import draw_start, resolve
from attnlab.spec import Spec, canonical_text
from attnlab.sweep.definition import SEEDS, put_values
from attnlab.sweep.engines import Task
from attnlab.sweep.grid import Cell
from attnlab.sweep.numbers import FOREVER, SAME_TIME, added_times, check_names, evaluate, needs_run
from attnlab.sweep.rows import OK, REFUSED, Row
from attnlab.types import Dynamics, Limit, Status, Trajectory

SENTENCES = (ValueError, LookupError, OSError)
"""Errors whose message is a sentence. Other errors are reported with their type."""

LONGEST_SENTENCE = 2000

SHORT = 10_000
"""A run counts as short up to this many pairs of tokens."""

Compute = Callable[[Task], list[Row]]


@dataclass(frozen=True)
class Equation:
    """The common part of cells that differ only in the seed of the start.

    start: the table [start]. options: keyword arguments of `simulate`. own: which of the saved
    times are in the Spec.
    """

    dynamics: Dynamics
    start: Mapping[str, Any]
    options: Mapping[str, Any]
    own: np.ndarray | None


@dataclass(frozen=True)
class Run:
    """A cell with its first tokens (n, d)."""

    digest: str
    cell: Cell
    seed: int
    x0: np.ndarray


class Computer:
    """Computes the tasks of one sweep. head: the result of `Sweep.head`. Each of its Python files
    runs once per process.
    """

    def __init__(self, head: Mapping[str, Any]):
        run_once(UserFile(name, text) for name, text, _ in head.get("imports", ()))
        self.base, self.arrays = head["base"], head["arrays"]
        self.numbers, self.measured = head["numbers"], head["measured"]
        self.needs_run, self.times = needs_run(self.numbers), added_times(self.numbers)

    def __call__(self, task: Task) -> list[Row]:
        """Return the rows of a task, in the order of its cells."""
        if task.is_timed:
            self._load(*task.cells[0])
        rows: list[Row] = []
        groups: dict[str, list[tuple[str, Cell]]] = {}
        for digest, cell in task.cells:
            common = {key: value for key, value in cell.items() if key != SEEDS}
            groups.setdefault(canonical_text(common), []).append((digest, cell))
        for group in groups.values():
            rows += self._compute(group, task.is_timed)
        place = {digest: number for number, (digest, _) in enumerate(task.cells)}
        return sorted(rows, key=lambda row: place[row.digest])

    def _compute(self, group: Sequence[tuple[str, Cell]], is_timed: bool) -> list[Row]:
        """Return the rows of cells that differ only in the seed."""
        if len(group) > 1 and not is_timed and self.needs_run:
            began = time.perf_counter()
            try:
                equation, first = self._resolve(*group[0])
                if (
                    equation.dynamics.noise.is_none
                ):  # members of a noisy batch have streams that no single run has
                    cells = [first, *(self._draw(equation, *one) for one in group[1:])]
                    runs = members(integrate(equation, np.stack([one.x0 for one in cells])))
                    share = (time.perf_counter() - began) / len(group)
                    return [
                        self._measure(equation, one, run, share)
                        for one, run in zip(cells, runs, strict=True)
                    ]
            except KeyboardInterrupt:  # RunInterrupted is an Exception, too
                raise
            except Exception:  # one cell fails: each alone shows which
                pass
        return [self._alone(digest, cell) for digest, cell in group]

    def _load(self, digest: str, cell: Cell) -> None:
        """Load, and perhaps compile, the code for runs, so that it does not count in timed
        cells.
        """
        try:
            equation, one = self._resolve(digest, cell)
            if self.needs_run and not equation.dynamics.is_layers:
                integrate(replace(equation, options={**equation.options, "max_steps": 1}), one.x0)
            # that leaves observables unloaded, so a short cell is computed twice
            if self.needs_run and equation.dynamics.weights.heads * len(one.x0) ** 2 <= SHORT:
                self._alone(digest, cell)
        except KeyboardInterrupt:
            raise
        except Exception:  # its row reports it
            pass

    def _alone(self, digest: str, cell: Cell) -> Row:
        """Return the row of one cell, computed alone."""
        began = time.perf_counter()
        try:
            equation, one = self._resolve(digest, cell)
            run = integrate(equation, one.x0) if self.needs_run else None
            return self._measure(equation, one, run, time.perf_counter() - began)
        except KeyboardInterrupt:
            raise
        except Exception as problem:  # also exceptions of the user's observables
            words = " ".join(str(problem).split())
            words = (
                words
                if words and isinstance(problem, SENTENCES)
                else f"{type(problem).__name__}: {words}"
            )
            return Row(
                digest,
                REFUSED,
                cell,
                {},
                words[:LONGEST_SENTENCE],
                time.perf_counter() - began,
                None,
                versions(),
                self.measured,
            )

    def _resolve(self, digest: str, cell: Cell) -> tuple[Equation, Run]:
        spec = Spec.from_dict(put_values(self.base, cell, self.arrays))
        equation, x0 = equation_of(spec, self.times)
        return equation, Run(digest, cell, spec.start.get("rng", 0), x0)

    def _draw(self, equation: Equation, digest: str, cell: Cell) -> Run:
        """Return the run of a cell that differs from the first of its group in the seed."""
        seed = cell.get(SEEDS, equation.start.get("rng", 0))
        return Run(
            digest,
            cell,
            seed,
            draw_start({**equation.start, "rng": seed}, equation.dynamics.weights.d),
        )

    def _measure(self, equation: Equation, one: Run, run: Trajectory | None, seconds: float) -> Row:
        """Return the row of a run that took so many seconds."""
        began = time.perf_counter()
        status, found, words = OK, {}, None
        if run is not None and run.status is not Status.OK:
            status, words = run.status.name.lower(), explain(run, one.x0)[:LONGEST_SENTENCE]
        else:
            found = evaluate(self.numbers, run, lambda: limit_of(equation, one.x0), equation.own)
        seconds += time.perf_counter() - began
        return Row(
            one.digest, status, one.cell, found, words, seconds, one.seed, versions(), self.measured
        )


def compute_json(head: Mapping[str, Any], task: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a task as plain JSON values. The last head is cached, because tasks of one
    sweep come together.
    """
    if _last.get("head") != head:
        _last.update(head=head, computer=Computer(head))
    return [row.to_json() for row in _last["computer"](Task.from_json(task))]


_last: dict[str, Any] = {}


def check_worker(head: Mapping[str, Any], cell: Cell) -> str:
    """Return why this process cannot compute a cell that the main process can (an unknown name), or
    an empty text.
    """
    try:
        check_names(head["numbers"])
        equation_of(Spec.from_dict(put_values(head["base"], cell, head["arrays"])), ())
    except LookupError as problem:
        return (
            f"{problem} The workers do not know a name that this process knows. Give the file that"
            ' registers it with --import, or in Python with run(imports=["my.py"]).'
        )
    except Exception:  # the row of this cell reports it
        pass
    return ""


def equation_of(spec: Spec, more: Sequence[float]) -> tuple[Equation, np.ndarray]:
    """Return the equation and the first tokens of a Spec, with more saved times. Wrong names, keys
    and values are errors.
    """
    resolved = resolve(spec)
    options = dict(resolved.solve)
    solve = solve_of(resolved.dynamics, options)
    own = None
    if more and "layers" not in options:
        new = [
            t
            for t in more
            if t <= solve.t_end and np.abs(solve.times - t).min() > SAME_TIME * max(t, 1.0)
        ]
        options["times"] = np.union1d(solve.times, new).tolist()
        own = np.isin(options["times"], solve.times)
        options.pop("saves", None)
    return Equation(resolved.dynamics, dict(spec.start), options, own), resolved.x0


def solve_of(dynamics: Dynamics, options: Mapping[str, Any]) -> Any:
    """Return the checked options of [solve]. Nothing is compiled."""
    usual: dict[str, Any] = {
        "rtol": 1e-8,
        "atol": 0.0,
        "stepper": "adaptive",
        "frame": "auto",
        "max_steps": 100_000,
        **dict.fromkeys(("t_end", "layers", "times", "saves", "dt", "rng")),
    }
    return solve_options(
        dynamics, **{key: options.get(key, default) for key, default in usual.items()}
    )


def integrate(equation: Equation, x0: np.ndarray) -> Trajectory:
    """Return the run of first tokens (n, d) or (batch, n, d). A failed run is returned up to its
    end.
    """
    run = simulate(equation.dynamics, x0, **equation.options, throw=False)
    if Status.INTERRUPTED in np.ravel(np.asarray(run.status, dtype=object)).tolist():
        raise KeyboardInterrupt  # a cell is computed completely or not at all
    return run


def limit_of(equation: Equation, x0: np.ndarray) -> Limit:
    """Return the certified limit of a cell. Only its work is bounded, not its time."""
    return limit(equation.dynamics, x0, budget=FOREVER)


def explain(run: Trajectory, x0: np.ndarray) -> str:
    """Return a sentence about why a run stopped early."""
    reason = explain_blow_up(run, 0, x0) or run.status.value
    return f"The run stopped at t = {run.stats['reached']:g} of {run.solve.t_end:g}. {reason}"


@cache
def versions() -> str:
    """Return the versions of the libraries that compute a row."""
    return (
        f"attnlab {__version__}, numpy {np.__version__}, numba {version('numba')}, Python"
        f" {platform.python_version()}"
    )
