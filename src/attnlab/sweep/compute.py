"""What a worker does with a task: cells in, rows out. It touches no file.

Cells whose Specs differ only in the seed of the start are one batch, integrated by one call of `simulate`. A member of a batch
equals a run of its own to the last bit, so batches change nothing but the time. What fails in a batch is done again, one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from attnlab.batches import members
from attnlab.imports import UserFile, run_once
from attnlab.run import draw_start, resolve
from attnlab.spec import Spec, canonical_text
from attnlab.sweep.definition import SEEDS, put_values
from attnlab.sweep.engines import Task
from attnlab.sweep.grid import Cell
from attnlab.sweep.numbers import FOREVER, SAME_TIME, added_times, check_names, evaluate, needs_run
from attnlab.sweep.rows import OK, REFUSED, Row
from attnlab.types import Dynamics, Limit, Status, Trajectory

SENTENCES = (ValueError, LookupError, OSError)
"""Errors that say in a sentence what is wrong; others are said with their type."""

LONGEST_SENTENCE = 2000

SHORT = 10_000
"""Pairs of tokens up to which a run is taken to be short."""

Compute = Callable[[Task], list[Row]]


@dataclass(frozen=True)
class Equation:
    """What cells have in common that differ only in the seed of the start.

    start: the table [start]. options: keyword arguments of `simulate`. own: which of the saved times the Spec asked for.
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
    """Computes the tasks of one sweep. head: what `Sweep.head` returned. Its Python files are run, each once in a process."""

    def __init__(self, head: Mapping[str, Any]):
        run_once(UserFile(name, text) for name, text, _ in head.get("imports", ()))
        self.base, self.arrays = head["base"], head["arrays"]
        self.numbers, self.measured = head["numbers"], head["measured"]
        self.needs_run, self.times = needs_run(self.numbers), added_times(self.numbers)

    def __call__(self, task: Task) -> list[Row]:
        """The rows of a task, in the order of its cells."""
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
        """The rows of cells that differ in the seed only."""
        if len(group) > 1 and not is_timed and self.needs_run:
            began = time.perf_counter()
            try:
                equation, first = self._resolve(*group[0])
                if equation.dynamics.noise.is_none:     # members of a noisy batch have streams that no single run has
                    cells = [first, *(self._draw(equation, *one) for one in group[1:])]
                    runs = members(integrate(equation, np.stack([one.x0 for one in cells])))
                    share = (time.perf_counter() - began) / len(group)
                    return [self._measure(equation, one, run, share) for one, run in zip(cells, runs, strict=True)]
            except KeyboardInterrupt:                   # RunInterrupted is an Exception, too
                raise
            except Exception:                           # one of them: each alone will show which
                pass
        return [self._alone(digest, cell) for digest, cell in group]

    def _load(self, digest: str, cell: Cell) -> None:
        """Load, and perhaps compile, what runs need, so that timed cells do not pay for it."""
        try:
            equation, one = self._resolve(digest, cell)
            if self.needs_run and not equation.dynamics.is_layers:
                integrate(replace(equation, options={**equation.options, "max_steps": 1}), one.x0)
            # that leaves observables unloaded, so a short cell is computed twice
            if self.needs_run and equation.dynamics.weights.heads * len(one.x0) ** 2 <= SHORT:
                self._alone(digest, cell)
        except KeyboardInterrupt:
            raise
        except Exception:                               # its row will say it
            pass

    def _alone(self, digest: str, cell: Cell) -> Row:
        """The row of one cell: what it would be whatever came with it."""
        began = time.perf_counter()
        try:
            equation, one = self._resolve(digest, cell)
            run = integrate(equation, one.x0) if self.needs_run else None
            return self._measure(equation, one, run, time.perf_counter() - began)
        except KeyboardInterrupt:
            raise
        except Exception as problem:                    # also those of observables of the user's own
            words = " ".join(str(problem).split())
            words = words if words and isinstance(problem, SENTENCES) else f"{type(problem).__name__}: {words}"
            return Row(digest, REFUSED, cell, {}, words[:LONGEST_SENTENCE], time.perf_counter() - began, None, versions(),
                       self.measured)

    def _resolve(self, digest: str, cell: Cell) -> tuple[Equation, Run]:
        spec = Spec.from_dict(put_values(self.base, cell, self.arrays))
        equation, x0 = equation_of(spec, self.times)
        return equation, Run(digest, cell, spec.start.get("rng", 0), x0)

    def _draw(self, equation: Equation, digest: str, cell: Cell) -> Run:
        """A cell that differs from the first of its group in the seed."""
        seed = cell.get(SEEDS, equation.start.get("rng", 0))
        return Run(digest, cell, seed, draw_start({**equation.start, "rng": seed}, equation.dynamics.weights.d))

    def _measure(self, equation: Equation, one: Run, run: Trajectory | None, seconds: float) -> Row:
        """The row of a run that took so many seconds."""
        began = time.perf_counter()
        status, found, words = OK, {}, None
        if run is not None and run.status is not Status.OK:
            status, words = run.status.name.lower(), explain(run, one.x0)[:LONGEST_SENTENCE]
        else:
            found = evaluate(self.numbers, run, lambda: limit_of(equation, one.x0), equation.own)
        seconds += time.perf_counter() - began
        return Row(one.digest, status, one.cell, found, words, seconds, one.seed, versions(), self.measured)


def compute_json(head: Mapping[str, Any], task: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a task, all as JSON holds it. The last head is kept, since tasks of one sweep follow each other."""
    if _last.get("head") != head:
        _last.update(head=head, computer=Computer(head))
    return [row.to_json() for row in _last["computer"](Task.from_json(task))]


_last: dict[str, Any] = {}


def check_worker(head: Mapping[str, Any], cell: Cell) -> str:
    """Why this process cannot compute a cell that the main process can, or an empty text: a name that it does not know."""
    try:
        check_names(head["numbers"])
        equation_of(Spec.from_dict(put_values(head["base"], cell, head["arrays"])), ())
    except LookupError as problem:
        return (f"{problem} The workers do not know a name that this process does: give the file that registers it with "
                '--import, or in Python with run(imports=["my.py"]).')
    except Exception:                                   # the row of this cell will say it
        pass
    return ""


def equation_of(spec: Spec, more: Sequence[float]) -> tuple[Equation, np.ndarray]:
    """The equation and the first tokens of a Spec, with more times to save. Every wrong name, key and value is an error."""
    resolved = resolve(spec)
    options = dict(resolved.solve)
    solve = solve_of(resolved.dynamics, options)
    own = None
    if more and "layers" not in options:
        new = [t for t in more if t <= solve.t_end and np.abs(solve.times - t).min() > SAME_TIME * max(t, 1.0)]
        options["times"] = np.union1d(solve.times, new).tolist()
        own = np.isin(options["times"], solve.times)
        options.pop("saves", None)
    return Equation(resolved.dynamics, dict(spec.start), options, own), resolved.x0


def solve_of(dynamics: Dynamics, options: Mapping[str, Any]) -> Any:
    """How a run will be integrated, after all checks of [solve]; nothing is compiled."""
    from attnlab.engine.options import solve_options

    usual: dict[str, Any] = {"rtol": 1e-8, "atol": 0.0, "stepper": "adaptive", "frame": "auto", "max_steps": 100_000,
             **dict.fromkeys(("t_end", "layers", "times", "saves", "dt", "rng"))}
    return solve_options(dynamics, **{key: options.get(key, default) for key, default in usual.items()})


def integrate(equation: Equation, x0: np.ndarray) -> Trajectory:
    """The run of first tokens (n, d) or (batch, n, d); one that fails is returned as far as it came."""
    from attnlab.engine import simulate

    run = simulate(equation.dynamics, x0, **equation.options, throw=False)
    if Status.INTERRUPTED in np.ravel(np.asarray(run.status, dtype=object)).tolist():
        raise KeyboardInterrupt                         # a cell is computed whole or not at all
    return run


def limit_of(equation: Equation, x0: np.ndarray) -> Limit:
    """The certified limit of a cell; its work ends it, never the clock."""
    from attnlab.limits import limit

    return limit(equation.dynamics, x0, budget=FOREVER)


def explain(run: Trajectory, x0: np.ndarray) -> str:
    """Why a run stopped early, in a sentence."""
    from attnlab.analysis.blow_up import explain_blow_up

    reason = explain_blow_up(run, 0, x0) or run.status.value
    return f"The run stopped at t = {run.stats['reached']:g} of {run.solve.t_end:g}. {reason}"


@cache
def versions() -> str:
    """What a row was computed with."""
    import platform
    from importlib.metadata import version

    from attnlab import __version__

    return f"attnlab {__version__}, numpy {np.__version__}, numba {version('numba')}, Python {platform.python_version()}"
