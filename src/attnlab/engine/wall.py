"""The precision wall: whether double precision still knows which token a row attends to.

Tokens of one cluster keep a constant distance while their size grows like e^{lambda_1 t}, so their
scores come to differ by less than the rounding of a score. From then on the attention inside the
cluster is noise, and with it everything that follows (coordinates of slower eigenvalues go to
plausible, wrong limits). A row is lost when

    rounding of its scores, as a change of the exponent, is visible      noise * factor >= 1/4
    and its two best tokens are closer than that                         gap <= 2 noise

Tokens that were equal from the start stay equal and are not counted.
"""

from __future__ import annotations

import math

from numba import boolean, float64, int64

from attnlab.engine.callers import call_exponential
from attnlab.engine.compile import compiled
from attnlab.engine.field import apply, read_system, read_work, score_factor
from attnlab.engine.stepper import largest, wall_signature
from attnlab.engine.system import GROW, NO_EXPONENTIAL, SCRATCH

EPSILON = 2.0**-52

GROWTH = 28.0
"""There is no test before lambda_1 t and the growth of the tokens have reached e^28: until then
double precision is enough.
"""

_matrix = float64[:, ::1]


@compiled(boolean(_matrix, _matrix, int64, int64, int64, float64, boolean, boolean, int64[::1]))
def is_order_lost(q, keys, n, begin, end, factor, is_causal, is_hardmax, same_as):
    """Whether rounding hides, for some row from begin to end, which of its two best tokens is the
    best.

    q, keys (k, n_pad), same_as (n,) the first equal token.
    """
    k = q.shape[0]
    for i in range(begin, end):
        seen = i + 1 if is_causal else n
        best, first, second = 0, -math.inf, -math.inf
        for j in range(seen):
            s = 0.0
            for c in range(k):
                s += q[c, i] * keys[c, j]
            if s > first:
                if same_as[best] != same_as[j]:
                    second = first
                best, first = j, s
            elif s > second and same_as[best] != same_as[j]:
                second = s
        noise = 0.0
        for c in range(k):
            noise += abs(q[c, i] * keys[c, best])
        noise *= EPSILON
        if (is_hardmax or noise * factor >= 0.25) and first - second <= 2.0 * noise:
            return True
    return False


@compiled(wall_signature)
def is_past_wall(system_address, work_address, t, log_scale, start_log_size, y, same_as):
    """Whether the tokens have grown by e^28 and rounding hides the best token of some row of some
    head (see wall.py).
    """
    system, work, x = read_system(system_address), read_work(work_address), y
    if system.exponential != NO_EXPONENTIAL:
        x = work.token[0]
        grow, scratch = work.square[GROW], work.square[SCRATCH]
        call_exponential(
            system.exponential_address,
            system.exponential,
            t,
            system.square,
            system.row,
            grow,
            scratch,
        )
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
        is_causal, is_hardmax = system.is_causal != 0, system.is_hardmax != 0
        if is_order_lost(
            work.score[0], keys, system.n, 0, system.n, factor, is_causal, is_hardmax, same_as
        ):
            return True
    return False
