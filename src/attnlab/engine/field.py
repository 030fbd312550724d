"""The velocities of all tokens at the stages of a step, compiled: any frame, any number of heads, sphere, feed-forward.

Tokens are stored as (d, n_pad), zeros in the padding, so that the loops over tokens run over contiguous memory.
"""

from __future__ import annotations

import math

import numba
from numba import boolean, float64, int64, void

from attnlab.dynamics import equation
from attnlab.engine.address import call_core
from attnlab.engine.compile import compiled
from attnlab.engine.extended import extended_rows
from attnlab.engine.stages import add_stages, clear, largest
from attnlab.engine.system import (
    BASIS,
    BIAS,
    BIAS_OUTSIDE,
    EIGENBASIS,
    GROW,
    GROWTH_RATE,
    INVERSE,
    NO_EXPONENTIAL,
    NO_FEEDFORWARD,
    OUTER,
    RELU,
    SCRATCH,
    SCRATCH_TWO,
    SHIFTED,
    SHRINK,
    STAY,
    TANGENT,
    TANH,
    TURN,
    make_system,
    make_work,
)
from attnlab.engine.tiled import pack_keys, pack_values
from attnlab.engine.wall import GROWTH, is_order_lost
from attnlab.types import Weights

LOG2_E = math.log2(math.e)
LARGEST_LOG2_FACTOR = 1000.0
TAYLOR_DEGREE = 14
"""With the norm scaled below 1/2 the remainder is 0.5^15 / 15! = 2e-17."""

_example = make_system(equation(Weights(V=[[1.0]])), 1, "x")
system_type = numba.typeof(_example)
work_type = numba.typeof(make_work(_example))
_stack, _matrix, _vector = float64[:, :, ::1], float64[:, ::1], float64[::1]


@compiled(void(_matrix, _matrix, _matrix))
def apply(A, y, out):
    """out = A y, A (p, q), y (q, n_pad)."""
    for a in range(A.shape[0]):
        for i in range(y.shape[1]):
            out[a, i] = 0.0
        for b in range(A.shape[1]):
            c = A[a, b]
            if c != 0.0:
                for i in range(y.shape[1]):
                    out[a, i] += c * y[b, i]


@compiled(void(_matrix, _matrix, _matrix))
def apply_and_add(A, y, out):
    """out += A y."""
    for a in range(A.shape[0]):
        for b in range(A.shape[1]):
            c = A[a, b]
            if c != 0.0:
                for i in range(y.shape[1]):
                    out[a, i] += c * y[b, i]


@compiled(void(_matrix, _matrix, _matrix))
def apply_transposed(A, y, out):
    """out = A^T y, A (q, p), y (q, n_pad)."""
    for b in range(A.shape[1]):
        for i in range(y.shape[1]):
            out[b, i] = 0.0
        for a in range(A.shape[0]):
            c = A[a, b]
            if c != 0.0:
                for i in range(y.shape[1]):
                    out[b, i] += c * y[a, i]


@compiled(void(float64, _matrix, _matrix, _vector, _vector, _matrix, _matrix))
def eigenbasis_exponential(t, basis, inverse, growth, turn, out, scratch):
    """out = basis e^{t blocks} inverse, blocks diagonal but for [[a, b], [-b, a]] where turn = b > 0."""
    d = out.shape[0]
    row = 0
    while row < d:
        size = math.exp(growth[row] * t)
        if turn[row] == 0.0:
            for b in range(d):
                scratch[row, b] = size * inverse[row, b]
            row += 1
        else:
            cosine, sine = size * math.cos(turn[row] * t), size * math.sin(turn[row] * t)
            for b in range(d):
                first, second = inverse[row, b], inverse[row + 1, b]
                scratch[row, b] = cosine * first + sine * second
                scratch[row + 1, b] = cosine * second - sine * first
            row += 2
    apply(basis, scratch, out)


@compiled(void(float64, _matrix, _matrix, _matrix))
def taylor_exponential(t, shifted, out, scratch):
    """out = e^{t shifted} by Taylor series and squaring, whatever the eigenvectors are like."""
    d = out.shape[0]
    norm = 0.0
    for a in range(d):
        row_sum = 0.0
        for b in range(d):
            row_sum += abs(shifted[a, b] * t)
        norm = max(norm, row_sum)
    halvings = 0
    while norm > 0.5:
        norm, halvings = 0.5 * norm, halvings + 1
    step = t * 0.5**halvings
    for a in range(d):
        for b in range(d):
            out[a, b] = 1.0 if a == b else 0.0
    for degree in range(TAYLOR_DEGREE, 0, -1):      # Horner: out = I + (step A / degree) out
        apply(shifted, out, scratch)
        for a in range(d):
            for b in range(d):
                out[a, b] = scratch[a, b] * (step / degree) + (1.0 if a == b else 0.0)
    for _ in range(halvings):
        apply(out, out, scratch)
        for a in range(d):
            for b in range(d):
                out[a, b] = scratch[a, b]


@compiled(void(int64, float64, _stack, _matrix, _matrix, _matrix))
def exponential(method, t, square, row, out, scratch):
    """out = e^{t (A - rate)} by the method that System.exponential names; square and row are the System's."""
    if method == EIGENBASIS:
        eigenbasis_exponential(t, square[BASIS], square[INVERSE], row[GROWTH_RATE], row[TURN], out, scratch)
    else:
        taylor_exponential(t, square[SHIFTED], out, scratch)


@compiled(void(int64, int64, _matrix, _matrix, _matrix, _matrix, _matrix))
def tangent_or_feedforward(feedforward, is_tangent, W, row, y, out, scratch):
    """out projected on the tangent space at y; or out = W sigma(out + bias) + bias_outside."""
    d, n_pad = y.shape
    if is_tangent:
        for i in range(n_pad):
            inner = 0.0
            for a in range(d):
                inner += out[a, i] * y[a, i]
            for a in range(d):
                out[a, i] -= inner * y[a, i]
        return
    for a in range(d):
        for i in range(n_pad):
            u = out[a, i] + row[BIAS, a]
            if feedforward == RELU:
                u = 0.0 if u < 0.0 else u               # this way round NaN stays
            elif feedforward == TANH:
                u = math.tanh(u)
            scratch[a, i] = u
    apply(W, scratch, out)
    for a in range(d):
        for i in range(n_pad):
            out[a, i] += row[BIAS_OUTSIDE, a]


@compiled(float64(float64, float64, float64, float64))
def score_factor(log2_factor, log_scale, rate, t):
    """What differences of scores are multiplied by, in powers of two; held back from infinity so that 0 times it is 0."""
    return 2.0 ** min(log2_factor + 2.0 * LOG2_E * (log_scale + rate * t), LARGEST_LOG2_FACTOR)


@compiled(void(
    system_type, work_type, float64, float64, float64, _stack, boolean, _matrix, _vector, int64, int64, _stack, _stack
))
def fill_stages(system, work, t_start, step, log_scale, start, is_extended, A, c, first, end, K, state):
    """K[s] = velocity at time t_start + c[s] step of start + step sum_{l < s} A[s, l] K[l], for s = first to end - 1.

    start and state (2, d, n_pad) are hi and lo; lo is read only where is_extended (frame x). One function with its loop over
    stages, because each compiled call that passes a System on costs a second of compilation.
    """
    for stage in range(first, end):
        add_stages(start, step, A[stage], stage, K, state)
        t, out = t_start + c[stage] * step, K[stage]
        y, n, n_pad = state[0], system.n, state.shape[2]
        x, square, queries, mean = y, work.square, work.score[0], work.value[1]
        if system.exponential != NO_EXPONENTIAL:
            x = work.token[0]
            exponential(system.exponential, t, system.square, system.row, square[GROW], square[SCRATCH])
            apply(square[GROW], y, x)
            if system.is_conjugated:
                exponential(system.exponential, -t, system.square, system.row, square[SHRINK], square[SCRATCH])
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
                    apply_transposed(system.key_map[h], queries, full_queries)
                extended_rows(full_queries, state, n, 0, n, factor, system.is_causal != 0, system.is_hardmax != 0, full_mean)
                if system.values_are_tokens:
                    apply_and_add(system.out_map[h], full_mean, out)
                else:
                    apply(system.value_map[h], full_mean, mean)
                    apply_and_add(system.out_map[h], mean, out)
                continue
            keys, values = x, y
            if not system.keys_are_tokens:
                keys = work.score[1]
                apply(system.key_map[h], x, keys)
            if not system.values_are_tokens:
                values = work.value[0]
                apply(system.value_map[h], y, values)
            flat_keys, flat_values = keys.reshape(keys.size), values.reshape(values.size)
            if system.is_tiled:
                pack_keys(keys, n, work.packed_keys)
                pack_values(values, n, work.packed_values)
                flat_keys, flat_values = work.packed_keys, work.packed_values
            call_core(system.core, queries, flat_keys, flat_values, n, 0, n_pad, factor, work.tile, mean)
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
        is_tangent = system.geometry == TANGENT
        if is_tangent or system.feedforward != NO_FEEDFORWARD:
            tangent_or_feedforward(system.feedforward, is_tangent, system.square[OUTER], system.row, y, out, work.token[0])
        for a in range(y.shape[0]):
            for i in range(n, n_pad):
                out[a, i] = 0.0


@compiled(boolean(system_type, float64, float64, float64, _matrix, int64[::1], work_type))
def is_past_wall(system, t, log_scale, start_log_size, y, same_as, work):
    """Whether the tokens have grown by e^28 and some row of some head can no longer tell who it attends to (see wall.py)."""
    x = y
    if system.exponential != NO_EXPONENTIAL:
        x = work.token[0]
        exponential(system.exponential, t, system.square, system.row, work.square[GROW], work.square[SCRATCH])
        apply(work.square[GROW], y, x)
    size = largest(x)
    if not size > 0.0 or log_scale + system.rate * t + math.log(size) - start_log_size < GROWTH:
        return False
    factor = score_factor(system.log2_factor, log_scale, system.rate, t)
    for h in range(system.query_map.shape[0]):
        apply(system.query_map[h], x, work.score[0])
        keys = x
        if not system.keys_are_tokens:
            keys = work.score[1]
            apply(system.key_map[h], x, keys)
        if is_order_lost(work.score[0], keys, system.n, factor, system.is_causal != 0, system.is_hardmax != 0, same_as):
            return True
    return False
