"""The velocities of all tokens at the stages of a step, compiled: any frame, any number of heads,
sphere, feed-forward.

Tokens are stored as (d, n_pad), zeros in the padding, so that the loops over tokens run over
contiguous memory.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int64, void

from attnlab.engine import products, stages, unrolled
from attnlab.engine.callers import (
    call_core,
    call_exponential,
    call_extended,
    call_finish,
    call_pack,
    call_read,
    call_transposed,
    linked,
)
from attnlab.engine.compile import compiled
from attnlab.engine.lanes import flatten
from attnlab.engine.records import reader
from attnlab.engine.system import (
    GROW,
    NO_EXPONENTIAL,
    OUTER,
    SCRATCH,
    SCRATCH_TWO,
    SHRINK,
    STAY,
    TANGENT,
    Work,
    make_system,
    work_shapes,
)
from attnlab.types import Dynamics, Weights

LOG2_E = math.log2(math.e)
LARGEST_LOG2_FACTOR = 1000.0

_example = make_system(Dynamics(Weights(V=[[1.0]])), 1, "x", has_kernel=False)
apply, apply_and_add = linked(products.apply), linked(products.apply_and_add)
add_stages, clear, are_small = (
    linked(stages.add_stages),
    linked(stages.clear),
    linked(unrolled.are_small),
)
read_system, read_work = reader(_example), reader(Work(*map(np.zeros, work_shapes(_example))))
_stack, _matrix, _vector = float64[:, :, ::1], float64[:, ::1], float64[::1]


@compiled(float64(float64, float64, float64, float64))
def score_factor(log2_factor, log_scale, rate, t):
    """What differences of scores are multiplied by, in powers of two; held back from infinity so
    that 0 times it is 0.
    """
    return 2.0 ** min(log2_factor + 2.0 * LOG2_E * (log_scale + rate * t), LARGEST_LOG2_FACTOR)


fill_signature = void(
    int64,
    int64,
    float64,
    float64,
    float64,
    _stack,
    boolean,
    _matrix,
    _vector,
    int64,
    int64,
    _stack,
    _stack,
)


@compiled(fill_signature)
def fill_stages(
    system_address,
    work_address,
    t_start,
    step,
    log_scale,
    start,
    is_extended,
    A,
    c,
    first,
    end,
    K,
    state,
):
    """K[s] = velocity at time t_start + c[s] step of start + step sum_{l < s} A[s, l] K[l], for s =
    first to end - 1.

    The addresses are those of a System and a Work, as Records. start and state (2, d, n_pad) are hi
    and lo; lo is read only where is_extended (frame x).
    """
    system, work = read_system(system_address), read_work(work_address)
    # views are made once: each costs as much as a row of attention of ten tokens
    y, n, n_pad = state[0], system.n, state.shape[2]
    x, square, queries, mean = y, work.square, work.score[0], work.value[1]
    if system.exponential != NO_EXPONENTIAL or system.read_address != 0:
        x = work.token[0]
    moving = y  # what V is applied to
    if system.read_address != 0:
        moving = x
    keys, values = x, moving
    if not system.keys_are_tokens:
        keys = work.score[1]
    if not system.values_are_tokens:
        values = work.value[0]
    flat_keys, flat_values = flatten(keys), flatten(values)
    if system.is_tiled:
        flat_keys, flat_values = work.packed_keys, work.packed_values
    for stage in range(first, end):
        add_stages(start, step, A[stage], stage, K, state)
        t, out = t_start + c[stage] * step, K[stage]
        if system.exponential != NO_EXPONENTIAL:
            call_exponential(
                system.exponential_address,
                system.exponential,
                t,
                system.square,
                system.row,
                square[GROW],
                square[SCRATCH],
            )
            apply(square[GROW], y, x)
            if system.is_conjugated:
                call_exponential(
                    system.exponential_address,
                    system.exponential,
                    -t,
                    system.square,
                    system.row,
                    square[SHRINK],
                    square[SCRATCH],
                )
        if system.read_address != 0:
            call_read(system.read_address, y, n, system.read_number, x)
        factor = score_factor(system.log2_factor, log_scale, system.rate, t)
        if system.has_stay:
            apply(system.square[STAY], y, out)
        else:
            clear(out)
        for h in range(system.query_map.shape[0]):
            apply(system.query_map[h], x, queries)
            if is_extended:
                full_queries, full_mean = queries, work.token[1]
                if not system.keys_are_tokens:
                    full_queries = work.token[2]
                    call_transposed(
                        system.transposed_address, system.key_map[h], queries, full_queries
                    )
                call_extended(
                    system.extended_address,
                    full_queries,
                    state,
                    n,
                    0,
                    n,
                    factor,
                    system.is_causal != 0,
                    system.is_hardmax != 0,
                    full_mean,
                )
                if system.values_are_tokens:
                    apply_and_add(system.out_map[h], full_mean, out)
                else:
                    apply(system.value_map[h], full_mean, mean)
                    apply_and_add(system.out_map[h], mean, out)
                continue
            if not system.keys_are_tokens:
                apply(system.key_map[h], x, keys)
            if not system.values_are_tokens:
                apply(system.value_map[h], moving, values)
            if system.is_tiled:
                call_pack(system.pack_keys_address, keys, n, flat_keys)
                call_pack(system.pack_values_address, values, n, flat_values)
            is_small = are_small(queries, keys, factor)
            call_core(
                system.core,
                queries,
                flat_keys,
                flat_values,
                n,
                0,
                n_pad,
                factor,
                system.number,
                is_small,
                work.tile,
                mean,
            )
            if system.subtract_self:
                for a in range(values.shape[0]):
                    for i in range(n_pad):
                        mean[a, i] -= values[a, i]
            if system.is_conjugated:
                # e^{-tA} V_h e^{tA}: here the values are tokens whatever V is, see make_system
                apply(system.out_map[h], square[GROW], square[SCRATCH])
                apply(square[SHRINK], square[SCRATCH], square[SCRATCH_TWO])
                apply_and_add(square[SCRATCH_TWO], mean, out)
            else:
                apply_and_add(system.out_map[h], mean, out)
        if system.finish_address != 0:
            is_tangent = int(system.geometry == TANGENT)
            call_finish(
                system.finish_address,
                system.feedforward,
                is_tangent,
                system.square[OUTER],
                system.row,
                y,
                out,
                work.token[0],
            )
        for a in range(y.shape[0]):
            for i in range(n, n_pad):
                out[a, i] = 0.0
