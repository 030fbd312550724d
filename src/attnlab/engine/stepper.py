"""The integrator: one loop for every equation, frame, kernel and stepper.

`integrate` is compiled as a whole for small systems. For large ones the same source runs as Python,
with a velocity that uses all cores (engine/large.py). So it uses only calls of compiled functions
and plain numbers.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float64, int64, types

from attnlab.engine import stages
from attnlab.engine.callers import call_fixed, call_renormalise, caller, is_set, linked
from attnlab.engine.compile import address_of, compiled, entry_of
from attnlab.engine.field import fill_signature, fill_stages
from attnlab.engine.records import Record, reader
from attnlab.engine.tables import STEP, table

OK, MAX_STEPS, STALLED, NON_FINITE, PAST_DOUBLE_PRECISION, INTERRUPTED, PAUSED = range(7)
"""In the order of types.Status. PAUSED is internal: integrate is then called again with the same
arguments.
"""

SAFETY, SMALLEST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0
"""SciPy's step rule for this method; a PI rule needed 14 % more evaluations."""

LOG_2 = math.log(2.0)
SMALLEST_GROUP = 1e-280
"""Coordinates this much smaller than the largest ones soon lose their digits, and z cannot be
computed from them.
"""

EXPONENT_RANGE = 32
"""The state is divided by a power of two, exactly, when it leaves 2^-32 .. 2^32."""


class Control(NamedTuple):
    """How to integrate."""

    t_end: float
    rtol: float
    atol: float
    dt: float  # of fixed steps
    first_step: float  # of an adaptive run; 0: found from the velocity
    rounding: float  # no coordinate needs to be more accurate than this times the largest one
    wall_time: float  # the precision wall is not tested before this time
    # the growth log(|x| / |x(0)|) from which tokens are kept as hi + lo (engine/extended.py)
    extended_from: float
    n: int  # the number of tokens
    fill_address: int  # of field.fill_stages
    fixed_address: int  # of fixed_steps.fixed_value; 0 for adaptive steps
    renormalise_address: int  # of unit_norm.renormalise; 0 but on the sphere
    wall_address: int  # of wall.is_past_wall; not read before wall_time
    max_steps: int
    # steps after which to return PAUSED; 0: never. y then has a third part, for the velocity
    pause_after: int
    is_sphere: int
    may_rescale: (
        int  # whether the velocity is linear in the values, so that a scale may be taken out
    )
    group: np.ndarray  # (d,): coordinates that share a tolerance
    same_as: np.ndarray  # (n,): the first token equal to this one at the start
    flag: np.ndarray  # (1,): set by another thread to stop the run
    progress: np.ndarray  # (1,): the time reached
    memory: (
        np.ndarray
    )  # (10,): what a paused run needs to go on, to the last bit; zeros at the start


def make_control(
    *, group, same_as, flag, progress, stepper="adaptive", pause_after=0, is_sphere=False, **numbers
) -> Control:
    """A Control with the types that compiled code expects: eight of the numbers are real, the
    others whole.
    """
    reals = ("t_end", "rtol", "atol", "dt", "first_step", "rounding", "wall_time", "extended_from")
    kept: dict[str, Any] = {
        name: float(value) if name in reals else int(value) for name, value in numbers.items()
    }
    return Control(
        **kept,
        fill_address=address_of(fill_stages),
        fixed_address=_fixed_address() if stepper != "adaptive" else 0,
        renormalise_address=_renormalise_address() if is_sphere else 0,
        pause_after=int(pause_after),
        is_sphere=int(is_sphere),
        group=group,
        same_as=same_as,
        flag=flag,
        progress=progress,
        memory=np.zeros(10),
    )


def _fixed_address() -> int:
    from attnlab.engine.fixed_steps import fixed_value

    return address_of(fixed_value)


def _renormalise_address() -> int:
    from attnlab.engine.unit_norm import renormalise

    return address_of(renormalise)


class Scratch(NamedTuple):
    """The scratch arrays of a trajectory: zeros, or their shapes. Code that allocates takes longer
    to compile and load.
    """

    K: Any  # (16, d, n_pad): the velocities at the stages
    F: Any  # (7, d, n_pad): the polynomial of the dense output
    trial: Any  # (2, d, n_pad)
    after: Any  # (2, d, n_pad): the state after the step
    still: Any  # (16, 16): as Table.A, zeros but for the starting step
    scale: Any  # (d,): tolerances
    sizes: Any  # (d,)
    sums: Any  # (8,)


def scratch_shapes(d: int, n_pad: int) -> Scratch:
    """The shapes of the Scratch for tokens (d, n_pad)."""
    return Scratch(
        (16, d, n_pad), (7, d, n_pad), (2, d, n_pad), (2, d, n_pad), (16, 16), (d,), (d,), (8,)
    )


read_table, read_scratch = (
    reader(table("euler")),
    reader(Scratch(*map(np.zeros, scratch_shapes(1, 1)))),
)
_whole = np.zeros(1, np.int64)
read_control = reader(
    make_control(
        t_end=1,
        rtol=1,
        atol=1,
        dt=1,
        first_step=0,
        rounding=1,
        wall_time=1,
        extended_from=1,
        n=1,
        wall_address=0,
        max_steps=1,
        may_rescale=0,
        group=_whole,
        same_as=_whole,
        flag=_whole,
        progress=np.zeros(1),
    )
)
_vector, _matrix, _stack = float64[::1], float64[:, ::1], float64[:, :, ::1]
wall_signature = boolean(int64, int64, float64, float64, float64, _matrix, int64[::1])
add_stages, clear, copy, dense_value = map(
    linked, (stages.add_stages, stages.clear, stages.copy, stages.dense_value)
)
error_norm, largest, multiply_all = map(
    linked, (stages.error_norm, stages.largest, stages.multiply_all)
)
prepare_dense, scaled_norm = linked(stages.prepare_dense), linked(stages.scaled_norm)
smallest_group, tolerances = linked(stages.smallest_group), linked(stages.tolerances)
call_fill, call_wall = caller(fill_signature), caller(wall_signature)


@compiled(
    types.Tuple((int64, int64, float64, int64, int64, int64, float64, float64))(
        int64, int64, int64, int64, int64, _stack, _vector, _stack, _vector
    )
)
def integrate(
    system, work, control_address, table_address, scratch_address, y, times, saved, saved_log_scale
):
    """(status, number of saved times, time reached, steps, rejected steps, evaluations, next step,
    log_scale).

    y (2, d, n_pad) is the start, hi and lo, and is overwritten by the end, tokens = e^{log_scale}
    y. times (T,) ascending in [0, t_end] are saved to saved (T, d, n_pad) and saved_log_scale (T,),
    tokens = e^{log_scale} saved. The first five are addresses of Records, in large systems objects.
    Only call_fill and call_wall look at the first two.
    """
    control, table, scratch = (
        read_control(control_address),
        read_table(table_address),
        read_scratch(scratch_address),
    )
    n, t_end, rtol, fill = control.n, control.t_end, control.rtol, control.fill_address
    A, c, stage_count, count, exponent = table.A, table.c, table.stages, len(times), 0
    K, F, trial, after = scratch.K, scratch.F, scratch.trial, scratch.after
    still, scale, sums = scratch.still, scratch.scale, scratch.sums
    # views are made once: compiling one takes ten milliseconds
    high, low, before, beyond = y[0], y[1], K[0], K[STEP]
    new_high, new_low, between = after[0], after[1], trial[0]
    is_extended, memory = control.extended_from <= 0.0, control.memory
    is_resumed = memory[0] > 0.0
    start_size = largest(high)
    if control.may_rescale and start_size > 0.0 and not is_resumed:
        exponent = max(-1000, min(1000, math.frexp(start_size)[1]))  # 2^1024 is no number
        multiply_all(high, 2.0 ** (-exponent))
        multiply_all(low, 2.0 ** (-exponent))
    log_scale = exponent * LOG_2
    start_log_size = math.log(start_size) if start_size > 0.0 else 0.0
    atol = control.atol * 2.0 ** (-exponent)
    t, t_new, step, status, done, steps, rejected = 0.0, 0.0, 0.0, OK, 0, 0, 0
    if t_end <= 0.0:
        for i in range(count):
            copy(high, saved[i])
            saved_log_scale[i] = log_scale
        return status, count, t, steps, rejected, 0, step, log_scale
    evaluations, h = 0, control.first_step if table.is_adaptive else control.dt
    if is_resumed:
        t, t_new, h, exponent, start_log_size = (
            memory[1],
            memory[1],
            memory[2],
            int(memory[3]),
            memory[4],
        )
        done, steps, rejected, evaluations = (
            int(memory[5]),
            int(memory[6]),
            int(memory[7]),
            int(memory[8]),
        )
        is_extended, log_scale, atol = (
            memory[9] > 0.0,
            exponent * LOG_2,
            control.atol * 2.0 ** (-exponent),
        )
        copy(y[2], before)
    else:
        call_fill(fill, system, work, t, 0.0, log_scale, y, is_extended, still, c, 0, 1, K, trial)
        evaluations = 1
    if table.is_adaptive and h == 0.0:
        # the starting step of Hairer, Norsett and Wanner, section II.4
        tolerances(high, high, control.group, rtol, atol, control.rounding, scale)
        d0, d1 = scaled_norm(high, n, scale), scaled_norm(before, n, scale)
        h = min(t_end, 1e-6 if d0 < 1e-5 or not d1 > 1e-5 else 0.01 * d0 / d1)
        still[1, 0] = 1.0
        call_fill(fill, system, work, t, h, log_scale, y, is_extended, still, c, 1, 2, K, trial)
        evaluations += 1
        copy(K[1], between)
        still[1, 0] = -1.0
        add_stages(trial, 1.0, still[1], 1, K, after)
        d2 = (
            scaled_norm(new_high, n, scale) / h if h > 0.0 else math.inf
        )  # interpreted, 1 / 0 would be an error
        still[1, 0] = 0.0
        if d1 <= 1e-15 and d2 <= 1e-15:
            h = max(1e-6, h * 1e-3)
        elif max(d1, d2) < math.inf:
            h = min(100.0 * h, (0.01 / max(d1, d2)) ** 0.125)
    after_rejection, was_finite, asked = False, True, 0.0
    while True:
        # ---- the saved times up to t_new: the start, or inside the step from t to t_new
        is_prepared = False
        while done < count and (times[done] <= t_new or t_new >= t_end):
            part = (times[done] - t) / step if step > 0.0 else 1.0
            out = saved[done]
            if step == 0.0:
                copy(high, out)
            elif part >= 1.0 - 1e-9:
                copy(new_high, out)
            else:
                if not table.is_adaptive:
                    call_fixed(
                        control.fixed_address,
                        part,
                        step,
                        high,
                        new_high,
                        before,
                        beyond,
                        table.is_cubic != 0,
                        out,
                    )
                else:
                    if not is_prepared:
                        call_fill(
                            fill,
                            system,
                            work,
                            t,
                            step,
                            log_scale,
                            y,
                            is_extended,
                            A,
                            c,
                            STEP + 1,
                            16,
                            K,
                            trial,
                        )
                        evaluations += 3
                        prepare_dense(step, high, new_high, K, table.dense, F)
                        is_prepared = True
                    dense_value(part, high, F, out)
                if control.is_sphere:
                    call_renormalise(control.renormalise_address, out, n)
            saved_log_scale[done] = log_scale
            done += 1
        # ---- move on to t_new
        if step > 0.0:
            t = t_new
            control.progress[0] = t
            copy(new_high, high)
            copy(new_low, low)
            copy(beyond, before)
            top = largest(high)
            shift = math.frexp(top)[1] if control.may_rescale and top > 0.0 else 0
            if abs(shift) > EXPONENT_RANGE:
                multiply_all(high, 2.0 ** (-shift))
                multiply_all(low, 2.0 ** (-shift))
                multiply_all(before, 2.0 ** (-shift))
                atol *= 2.0 ** (-shift)
                exponent += shift
                log_scale = exponent * LOG_2
                top *= 2.0 ** (-shift)
            if (
                control.rounding == 0.0
                and smallest_group(high, control.group, scratch.sizes) < SMALLEST_GROUP
            ):
                status = NON_FINITE
                break
            is_extended = (
                top > 0.0 and log_scale + math.log(top) - start_log_size >= control.extended_from
            )
        if t >= t_end:
            break
        if control.pause_after > 0 and steps + rejected >= control.pause_after:
            memory[0], memory[1], memory[2], memory[3], memory[4] = (
                1.0,
                t,
                h,
                exponent,
                start_log_size,
            )
            memory[5], memory[6], memory[7], memory[8] = done, steps, rejected, evaluations
            memory[9] = 1.0 if is_extended else 0.0
            copy(before, y[2])
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
                t_new = t_end if t + 1.001 * h >= t_end else t + h  # no sliver of a last step
            else:
                t_new = (steps + 1) * control.dt
                if t_new > t_end - 1e-9 * control.dt:
                    t_new = t_end
            step = t_new - t
            call_fill(
                fill,
                system,
                work,
                t,
                step,
                log_scale,
                y,
                is_extended,
                A,
                c,
                1,
                stage_count,
                K,
                trial,
            )
            evaluations += stage_count - 1
            add_stages(y, step, A[STEP], stage_count, K, after)
            if not table.is_adaptive:
                break
            tolerances(high, new_high, control.group, rtol, atol, control.rounding, scale)
            error = error_norm(K, table.errors, step, scale, sums)
            was_finite = error < math.inf
            factor = SMALLEST_FACTOR
            if was_finite:
                factor = (
                    LARGEST_FACTOR
                    if error == 0.0
                    else min(LARGEST_FACTOR, max(SMALLEST_FACTOR, SAFETY * error**-0.125))
                )
            h = step * (min(1.0, factor) if after_rejection else factor)
            after_rejection = not error < 1.0
            if not after_rejection:
                if t_new >= t_end:
                    h = max(
                        h, asked
                    )  # t_end cut the step short: a continued run needs the uncut step
                break
            rejected += 1
        if status != OK:
            break
        if control.is_sphere:
            call_renormalise(control.renormalise_address, new_high, n)
            clear(new_low)
        if not largest(new_high) < math.inf:
            status = NON_FINITE
            break
        steps += 1
        call_fill(
            fill,
            system,
            work,
            t_new,
            0.0,
            log_scale,
            after,
            is_extended,
            still,
            c,
            STEP,
            STEP + 1,
            K,
            trial,
        )
        evaluations += 1
        if t_new >= control.wall_time and call_wall(
            control.wall_address,
            system,
            work,
            t_new,
            log_scale,
            start_log_size,
            new_high,
            control.same_as,
        ):
            status = PAST_DOUBLE_PRECISION
            break
    return status, done, t, steps, rejected, evaluations, h, log_scale


@cache
def table_record(stepper: str) -> Record:
    """The Table of a stepper as compiled code reads it."""
    return Record(table(stepper))


def integrate_small(
    system: Record,
    work: Record,
    control: Control,
    stepper: str,
    y: np.ndarray,
    times: np.ndarray,
    saved: np.ndarray,
    saved_log_scale: np.ndarray,
) -> Any:
    """As integrate, in machine code, for a System and a Work that are Records, and a stepper by its
    name.
    """
    records = (
        system,
        work,
        Record(control),
        table_record(stepper),
        Record.zeros(scratch_shapes(*y.shape[1:])),
    )
    return entry_of(integrate)(
        *(record.address for record in records), y, times, saved, saved_log_scale
    )
