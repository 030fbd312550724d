"""Integrate every member of a batch with the same serial code, so that a batch equals a loop to the
last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from attnlab.engine.compile import address_of
from attnlab.engine.coordinates import Coordinates, is_coupled
from attnlab.engine.memory import remembered
from attnlab.engine.options import extended_growth, wall_time
from attnlab.engine.plan import choose_path
from attnlab.engine.records import Record
from attnlab.engine.stepper import (
    INTERRUPTED,
    NON_FINITE,
    OK,
    PAUSED,
    STALLED,
    Control,
    integrate_small,
    make_control,
)
from attnlab.engine.system import Work, make_system, pad_count, work_shapes
from attnlab.engine.threads import pool, supervisors, wait_for
from attnlab.progress import Progress
from attnlab.types import Dynamics, Solve

ROUNDING = 1e-15
"""The finest relative accuracy of coupled coordinates: with a finer one the integrator would
stall.
"""

DOING = "integrating"
INLINE_WORK = 3_000_000
"""A run that computes more pairs of tokens than about this is done in a thread."""


class Outcome(NamedTuple):
    """The members' results: arrays over (member, ...)."""

    states: (
        np.ndarray
    )  # (b, T, n, d): NaN where not reached, and nothing at times that no member reached
    log_scale: np.ndarray  # (b, T)
    status: np.ndarray  # (b,) codes in the order of types.Status
    saved: np.ndarray  # (b,) how many of the times were reached
    reached: np.ndarray  # (b,) the last time reached
    steps: np.ndarray
    rejected: np.ndarray
    evaluations: np.ndarray
    path: str
    culprit: str = (
        ""  # the member whose result was not finite, where it is known and a run ended there
    )


def integrate_members(
    coordinates: Coordinates, solve: Solve, frame: str, x0: np.ndarray, progress: Progress
) -> Outcome:
    """Integrate x0 (b, n, d), given in these coordinates, in `frame`; Ctrl-C or a cancel ends every
    member at its last step.
    """
    dynamics, group = coordinates.dynamics, coordinates.group
    b, n, d = x0.shape
    times = np.array(solve.times)  # compiled code takes writable arrays only
    count = len(solve.times)
    states, log_scale = (
        np.empty((b, count, n, d)),
        np.zeros((b, count)),
    )  # not touched where nothing is saved
    # a member that has not begun is like one that Ctrl-C stopped: only its start is known
    start = int(times[0] == 0.0)
    states[:, :start] = x0[:, None]
    results = np.zeros((b, 6))
    results[:, :2] = INTERRUPTED, start
    flag, reached = np.zeros(1, np.int64), np.zeros((b, 1))
    path = choose_path(dynamics, n)
    run: Any
    system: Any
    wall, extended = wall_time(dynamics, solve), extended_growth(dynamics, solve, frame)
    if path == "reference":
        extended = math.inf
    if path == "compiled":
        may_extend = extended < math.inf
        run = integrate_small
        system = remembered(
            dynamics,
            (n, frame, may_extend),
            lambda: Record(make_system(dynamics, n, frame, may_extend)),
        )
        n_pad = pad_count(n, bool(system.fields.is_tiled))
    elif path == "reference":
        from attnlab.engine.reference import ReferenceSystem, integrate_reference

        run, system = integrate_reference, ReferenceSystem(dynamics, n, frame, flag)
        n_pad = system.n_pad
    else:
        from attnlab.engine.large import integrate_large, large_system

        run, system = integrate_large, large_system(dynamics, n, frame, flag)
        n_pad = system.n_pad
    # if W couples no two groups of coordinates, rounding in each is relative to itself only
    rounding = ROUNDING if is_coupled(coordinates) else 0.0
    wall_address, may_meet_wall = 0, solve.t_end >= wall
    if path == "compiled" and may_meet_wall:
        from attnlab.engine.wall import is_past_wall

        wall_address = address_of(is_past_wall)

    needs_table, unsettled = path == "compiled" and system.fields.table_size > 0, list[int]()
    nobody = np.zeros(n, np.int64)  # equal tokens matter only at the wall

    def one(member: int, pause_after: int = 0) -> Callable[[], None] | None:
        """Integrate a member. If it was paused, return a function for the rest."""
        control = make_control(
            t_end=solve.t_end,
            rtol=solve.rtol,
            atol=solve.atol,
            dt=solve.dt or 0.0,
            first_step=0.0,
            rounding=rounding,
            wall_time=wall,
            extended_from=extended,
            n=n,
            wall_address=wall_address,
            max_steps=solve.max_steps,
            stepper=solve.stepper,
            pause_after=pause_after,
            is_sphere=not dynamics.geometry.is_linear,
            may_rescale=dynamics.is_value_linear and dynamics.feedforward.is_none,
            group=group,
            same_as=first_equal(x0[member]) if may_meet_wall else nobody,
            flag=flag,
            progress=reached[member],
        )
        y, saved, scale = (
            np.zeros((3 if pause_after else 2, d, n_pad)),
            np.zeros((count, d, n_pad)),
            np.zeros(count),
        )
        y[0, :, :n] = x0[member].T
        work = None
        if path == "compiled":
            shapes = work_shapes(system.fields)
            work = Record(Work(*map(np.zeros, shapes))) if needs_table else Record.zeros(shapes)

        def go_on(control: Control) -> bool:
            result = run(system, work, control, solve.stepper, y, times, saved, scale)[:6]
            if result[0] == PAUSED:
                return False
            results[member] = result
            if (
                work is not None
                and needs_table
                and work.fields.tile[0] > 0.0
                and result[0] in (STALLED, NON_FINITE)
            ):
                unsettled.append(member)
            if results[member, 0] == INTERRUPTED and results[member, 1] < start:
                results[member, 1] = (
                    start  # Ctrl-C before the first velocity: only the start is known
                )
                saved[:start, :, :n] = x0[member].T
            done = _finite_times(saved[: int(results[member, 1])])
            if done < results[member, 1]:
                # also inside an accepted step a dense output may overflow; a run ends before its
                # first bad time
                if results[member, 0] == OK:
                    results[member, 0] = NON_FINITE
                results[member, 1:3] = done, times[done - 1] if done else 0.0
            states[member, :done] = saved[:done, :, :n].transpose(0, 2, 1)
            log_scale[member, :done] = scale[:done]
            return True

        if go_on(control):
            return None
        return lambda: (go_on(control._replace(pause_after=0)), None)[1]

    # iterations over a table may take seconds: always react to Ctrl-C
    inline = _inline_steps(dynamics, n) if b == 1 and path == "compiled" and not needs_table else 0
    tasks: list[Callable[[], Any]] = []
    try:
        progress(0.0, DOING)
        if inline == 0:
            tasks = [partial(one, member) for member in range(b)]
        # a short run ends before a thread could start; a longer one continues in a thread, so that
        # Ctrl-C can end it
        elif (rest := one(0, inline)) is not None:
            tasks = [rest]
    except KeyboardInterrupt:
        results[:], results[:, :2] = (
            0.0,
            (INTERRUPTED, start),
        )  # also where it was all but done: it must not be lost
    if tasks:
        executor = pool() if path == "compiled" else supervisors()
        futures = [executor.submit(task) for task in tasks]
        wait_for(
            futures,
            flag,
            lambda: float(reached.mean()) / solve.t_end if solve.t_end > 0 else 1.0,
            progress,
            DOING,
        )
    for member in np.flatnonzero(results[:, 1] < results[:, 1].max()):
        states[member, int(results[member, 1]) : int(results[:, 1].max())] = np.nan
    status, saved, steps, rejected, evaluations = results[:, [0, 1, 3, 4, 5]].T.astype(
        int
    )  # the time may be any number
    culprit = (
        system.culprit
        if path == "reference"
        else f'kernel "{dynamics.kernel.name}"'
        if unsettled
        else ""
    )
    culprit = culprit if culprit and np.isin(status, (STALLED, NON_FINITE)).any() else ""
    return Outcome(
        states,
        log_scale,
        status,
        saved,
        results[:, 2].copy(),
        steps,
        rejected,
        evaluations,
        path,
        culprit,
    )


def _finite_times(saved: np.ndarray) -> int:
    """The number of times of saved (T, ...) before the first one that is not finite."""
    with np.errstate(all="ignore"):
        if math.isfinite(
            saved.sum()
        ):  # one pass without an array of its own, and almost always enough
            return len(saved)
    bad = ~np.isfinite(saved).reshape(len(saved), -1).all(axis=1)
    return int(bad.argmax()) if bad.any() else len(saved)


def _inline_steps(dynamics: Dynamics, n: int) -> int:
    """Return after how many steps (a few milliseconds) a single run moves to a thread; 0: at
    once.
    """
    weights = dynamics.weights
    return int(INLINE_WORK / (12 * weights.heads * n * n * max(1.0, weights.d / 4)))


def first_equal(x: np.ndarray) -> np.ndarray:
    """Return for each token the number of the first token equal to it, (n,)."""
    _, first, inverse = np.unique(x, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()].astype(np.int64)
