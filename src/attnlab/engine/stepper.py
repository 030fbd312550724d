"""The integrator: one loop for every equation, frame, kernel and stepper.

`integrate` is compiled whole for small systems. For large ones the same text runs interpreted, with a velocity that uses all
cores (engine/large.py): so it keeps to calls of compiled functions and plain numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import boolean, float64, int64, types

from attnlab.engine.callers import caller, is_set
from attnlab.engine.compile import compiled
from attnlab.engine.field import fill_stages, system_type, work_type
from attnlab.engine.stages import (
    add_stages,
    clear,
    copy,
    dense_value,
    error_norm,
    fixed_value,
    largest,
    multiply_all,
    prepare_dense,
    renormalise,
    scaled_norm,
    smallest_group,
    tolerances,
)
from attnlab.engine.tables import STEP, table

OK, MAX_STEPS, STALLED, NON_FINITE, PAST_DOUBLE_PRECISION, INTERRUPTED, PAUSED = range(7)
"""In the order of types.Status; and PAUSED, which no user sees: integrate is called again with the same arguments."""

SAFETY, SMALLEST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0
"""SciPy's step rule for this method; a PI rule needed 14 % more evaluations."""

LOG_2 = math.log(2.0)
SMALLEST_GROUP = 1e-280
"""Coordinates this far below the largest ones are about to lose their digits: z could no longer be had from them."""

EXPONENT_RANGE = 32
"""The state is divided by a power of two, exactly, when it leaves 2^-32 .. 2^32."""


class Control(NamedTuple):
    """How to integrate."""

    t_end: float
    rtol: float
    atol: float
    dt: float                   # of fixed steps
    first_step: float           # of an adaptive run; 0: found from the velocity
    rounding: float             # no coordinate is asked to be more accurate than this times the largest one
    wall_time: float            # the precision wall is not looked for before this time
    extended_from: float        # the growth log(|x| / |x(0)|) from which tokens are kept as hi + lo (engine/extended.py)
    wall_address: int           # of wall.is_past_wall; not read before wall_time
    max_steps: int
    pause_after: int            # steps after which to return PAUSED; 0: never. y then has a third part, for the velocity
    is_sphere: int
    may_rescale: int            # whether the velocity is linear in the values, so that a scale may be taken out
    group: np.ndarray           # (d,): coordinates that share a tolerance
    same_as: np.ndarray         # (n,): the first token equal to this one at the start
    flag: np.ndarray            # (1,): set by another thread to stop the run
    progress: np.ndarray        # (1,): the time reached
    memory: np.ndarray          # (10,): what a paused run needs to go on, to the last bit; zeros at the start


def make_control(*, group, same_as, flag, progress, pause_after=0, **numbers) -> Control:
    """A Control with the types that compiled code expects: eight of the numbers are real, the others whole."""
    reals = ("t_end", "rtol", "atol", "dt", "first_step", "rounding", "wall_time", "extended_from")
    kept: dict[str, Any] = {name: float(value) if name in reals else int(value) for name, value in numbers.items()}
    return Control(
        **kept, pause_after=int(pause_after), group=group, same_as=same_as, flag=flag, progress=progress, memory=np.zeros(10)
    )


table_type = numba.typeof(table("euler"))
_whole = np.zeros(1, np.int64)
control_type = numba.typeof(
    make_control(
        t_end=1, rtol=1, atol=1, dt=1, first_step=0, rounding=1, wall_time=1, extended_from=1, wall_address=0,
        max_steps=1, is_sphere=0, may_rescale=0, group=_whole, same_as=_whole, flag=_whole, progress=np.zeros(1),
    )
)
_vector, _matrix, _stack = float64[::1], float64[:, ::1], float64[:, :, ::1]
wall_signature = boolean(system_type, float64, float64, float64, _matrix, int64[::1], work_type)
call_wall = caller(wall_signature)


@compiled(types.Tuple((int64, int64, float64, int64, int64, int64, float64, float64))(
    system_type, work_type, control_type, table_type, _stack, _vector, _stack, _vector
))
def integrate(system, work, control, table, y, times, saved, saved_log_scale):
    """(status, number of saved times, time reached, steps, rejected steps, evaluations, next step, log_scale).

    y (2, d, n_pad) is the start, hi and lo, and is overwritten by the end, tokens = e^{log_scale} y. times (T,) ascending in
    [0, t_end] are saved to saved (T, d, n_pad) and saved_log_scale (T,), tokens = e^{log_scale} saved.
    """
    n, d, n_pad, t_end, rtol = system.n, y.shape[1], y.shape[2], control.t_end, control.rtol
    A, c, stages, count, exponent = table.A, table.c, table.stages, len(times), 0
    K, F = np.zeros((16, d, n_pad)), np.zeros((7, d, n_pad))
    trial, after, still = np.zeros((2, d, n_pad)), np.zeros((2, d, n_pad)), np.zeros((16, 16))
    high, is_extended, memory = y[0], control.extended_from <= 0.0, control.memory
    is_resumed = memory[0] > 0.0
    start_size = largest(high)
    if control.may_rescale and start_size > 0.0 and not is_resumed:
        exponent = max(-1000, min(1000, math.frexp(start_size)[1]))       # 2^1024 is no number
        multiply_all(high, 2.0 ** (-exponent))
        multiply_all(y[1], 2.0 ** (-exponent))
    log_scale = exponent * LOG_2
    start_log_size = math.log(start_size) if start_size > 0.0 else 0.0
    atol, scale, sums = control.atol * 2.0 ** (-exponent), np.zeros(d), np.zeros(8)
    t, t_new, step, status, done, steps, rejected = 0.0, 0.0, 0.0, OK, 0, 0, 0
    if t_end <= 0.0:
        for i in range(count):
            copy(high, saved[i])
            saved_log_scale[i] = log_scale
        return status, count, t, steps, rejected, 0, step, log_scale
    evaluations, h = 0, control.first_step if table.is_adaptive else control.dt
    if is_resumed:
        t, t_new, h, exponent, start_log_size = memory[1], memory[1], memory[2], int(memory[3]), memory[4]
        done, steps, rejected, evaluations = int(memory[5]), int(memory[6]), int(memory[7]), int(memory[8])
        is_extended, log_scale, atol = memory[9] > 0.0, exponent * LOG_2, control.atol * 2.0 ** (-exponent)
        copy(y[2], K[0])
    else:
        fill_stages(system, work, t, 0.0, log_scale, y, is_extended, still, c, 0, 1, K, trial)
        evaluations = 1
    if table.is_adaptive and h == 0.0:
        # the starting step of Hairer, Norsett and Wanner, section II.4
        tolerances(high, high, control.group, rtol, atol, control.rounding, scale)
        d0, d1 = scaled_norm(high, n, scale), scaled_norm(K[0], n, scale)
        h = min(t_end, 1e-6 if d0 < 1e-5 or not d1 > 1e-5 else 0.01 * d0 / d1)
        still[1, 0] = 1.0
        fill_stages(system, work, t, h, log_scale, y, is_extended, still, c, 1, 2, K, trial)
        evaluations += 1
        copy(K[1], trial[0])
        still[1, 0] = -1.0
        add_stages(trial, 1.0, still[1], 1, K, after)
        d2 = scaled_norm(after[0], n, scale) / h if h > 0.0 else math.inf       # interpreted, 1 / 0 would be an error
        still[1, 0] = 0.0
        if d1 <= 1e-15 and d2 <= 1e-15:
            h = max(1e-6, h * 1e-3)
        elif max(d1, d2) < math.inf:
            h = min(100.0 * h, (0.01 / max(d1, d2)) ** 0.125)
    after_rejection, was_finite, asked = False, True, 0.0
    while True:
        # ---- what was asked for up to t_new: the start, or inside the step from t to t_new
        is_prepared = False
        while done < count and (times[done] <= t_new or t_new >= t_end):
            part = (times[done] - t) / step if step > 0.0 else 1.0
            if step == 0.0:
                copy(high, saved[done])
            elif part >= 1.0 - 1e-9:
                copy(after[0], saved[done])
            else:
                if not table.is_adaptive:
                    fixed_value(part, step, high, after[0], K[0], K[STEP], table.is_cubic != 0, trial[0])
                else:
                    if not is_prepared:
                        fill_stages(system, work, t, step, log_scale, y, is_extended, A, c, STEP + 1, 16, K, trial)
                        evaluations += 3
                        prepare_dense(step, high, after[0], K, table.dense, F)
                        is_prepared = True
                    dense_value(part, high, F, trial[0])
                if control.is_sphere:
                    renormalise(trial[0], n)
                copy(trial[0], saved[done])
            saved_log_scale[done] = log_scale
            done += 1
        # ---- move on to t_new
        if step > 0.0:
            t = t_new
            control.progress[0] = t
            copy(after[0], high)
            copy(after[1], y[1])
            copy(K[STEP], K[0])
            top = largest(high)
            shift = math.frexp(top)[1] if control.may_rescale and top > 0.0 else 0
            if abs(shift) > EXPONENT_RANGE:
                multiply_all(high, 2.0 ** (-shift))
                multiply_all(y[1], 2.0 ** (-shift))
                multiply_all(K[0], 2.0 ** (-shift))
                atol *= 2.0 ** (-shift)
                exponent += shift
                log_scale = exponent * LOG_2
                top *= 2.0 ** (-shift)
            if control.rounding == 0.0 and smallest_group(high, control.group) < SMALLEST_GROUP:
                status = NON_FINITE
                break
            is_extended = top > 0.0 and log_scale + math.log(top) - start_log_size >= control.extended_from
        if t >= t_end:
            break
        if control.pause_after > 0 and steps + rejected >= control.pause_after:
            memory[0], memory[1], memory[2], memory[3], memory[4] = 1.0, t, h, exponent, start_log_size
            memory[5], memory[6], memory[7], memory[8] = done, steps, rejected, evaluations
            memory[9] = 1.0 if is_extended else 0.0
            copy(K[0], y[2])
            status = PAUSED
            break
        # ---- a step from t to t_new that is accurate enough
        while status == OK:
            if is_set(control.flag):
                status = INTERRUPTED
            elif steps + rejected >= control.max_steps:
                status = MAX_STEPS
            elif h < 1e-15 * t or h < 1e-300:
                status = STALLED if was_finite else NON_FINITE
            if status != OK:
                break
            if table.is_adaptive:
                asked = h
                t_new = t_end if t + 1.001 * h >= t_end else t + h              # no sliver of a last step
            else:
                t_new = (steps + 1) * control.dt
                if t_new > t_end - 1e-9 * control.dt:
                    t_new = t_end
            step = t_new - t
            fill_stages(system, work, t, step, log_scale, y, is_extended, A, c, 1, stages, K, trial)
            evaluations += stages - 1
            add_stages(y, step, A[STEP], stages, K, after)
            if not table.is_adaptive:
                break
            tolerances(high, after[0], control.group, rtol, atol, control.rounding, scale)
            error = error_norm(K, table.errors, step, scale, sums)
            was_finite = error < math.inf
            factor = SMALLEST_FACTOR
            if was_finite:
                factor = LARGEST_FACTOR if error == 0.0 else min(LARGEST_FACTOR, max(SMALLEST_FACTOR, SAFETY * error**-0.125))
            h = step * (min(1.0, factor) if after_rejection else factor)
            after_rejection = not error < 1.0
            if not after_rejection:
                if t_new >= t_end:
                    h = max(h, asked)               # cut short by t_end: who goes on from there wants the step that was in use
                break
            rejected += 1
        if status != OK:
            break
        if control.is_sphere:
            renormalise(after[0], n)
            clear(after[1])
        if not largest(after[0]) < math.inf:
            status = NON_FINITE
            break
        steps += 1
        fill_stages(system, work, t_new, 0.0, log_scale, after, is_extended, still, c, STEP, STEP + 1, K, trial)
        evaluations += 1
        if t_new >= control.wall_time and call_wall(
            control.wall_address, system, t_new, log_scale, start_log_size, after[0], control.same_as, work
        ):
            status = PAST_DOUBLE_PRECISION
            break
    return status, done, t, steps, rejected, evaluations, h, log_scale
