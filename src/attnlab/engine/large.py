"""Large systems: the same integrator, run interpreted, with a velocity that uses BLAS and all cores.

Several heads: one head a task. One head: blocks of rows. Both give the same bits whatever the number of threads, because every
row is summed in one fixed order and heads are added in theirs; BLAS is held to one thread for the same reason (and because its
threads, waiting for work, would take the cores from ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import wait
from types import FunctionType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from attnlab.dynamics.reference import ACTIVATION
from attnlab.engine import stepper, tiled, tiling
from attnlab.engine.extended import extended_rows
from attnlab.engine.field import score_factor
from attnlab.engine.stages import add_stages, largest
from attnlab.engine.system import core_for, generator, is_hardmax, padded, score_maps
from attnlab.engine.threads import pool, thread_count
from attnlab.engine.wall import GROWTH, is_order_lost
from attnlab.exponential import Exponential
from attnlab.types import Dynamics

ROWS_A_TASK = 256


class LargeSystem:
    """What `velocity` needs for n tokens in a frame; the counterpart of system.System."""

    def __init__(self, dynamics: Dynamics, n: int, frame: str, flag: np.ndarray):
        weights = dynamics.weights
        self.dynamics, self.n, self.flag = dynamics, n, flag
        self.A = generator(dynamics, frame)
        self.grow, self.shrink = Exponential(self.A), Exponential(self.A.scaled(-1.0))
        self.rate = self.grow.rate
        self.query_map, self.key_map, self.keys_are_tokens, self.log2_factor = score_maps(dynamics)
        self.is_conjugated = frame == "z" and weights.heads > 1 and self.grow.method not in ("zero", "scalar")
        self.normalised = dynamics.kernel != "exp_mean"
        self.subtract_self = frame == "z" and self.normalised
        self.has_stay = frame == "z" and not self.normalised
        self.factors = weights.V if weights.is_factored and not self.is_conjugated else None
        self.full = None if self.factors is not None else weights.full_V
        self.r = self.factors[0].shape[2] if self.factors is not None else weights.d
        self.core, self.is_tiled = core_for(dynamics, n, self.query_map.shape[1], self.r)
        self.n_pad = padded(n, self.is_tiled)
        block = tiling.ROWS if self.is_tiled else 8
        rows = -(-max(ROWS_A_TASK, self.n_pad // (4 * thread_count())) // block) * block
        self.ranges = [(begin, min(begin + rows, self.n_pad)) for begin in range(0, self.n_pad, rows)]

    def tokens(self, t: float, y: np.ndarray) -> np.ndarray:
        """x without its scale, (d, n_pad)."""
        if self.grow.method in ("zero", "scalar"):
            return y
        return np.ascontiguousarray(self.grow.apply(t, y.T).T)

    def keys(self, h: int, x: np.ndarray) -> np.ndarray:
        """The keys of head h, (k, n_pad)."""
        return x if self.keys_are_tokens else self.key_map[h] @ x

    def head(
        self, h: int, t: float, factor: float, x: np.ndarray, state: np.ndarray, is_extended: bool, in_blocks: bool
    ) -> np.ndarray:
        """What head h adds to the velocity, (d, n_pad)."""
        if is_extended:
            return self.extended_head(h, factor, x, state, in_blocks)
        y, queries, keys = state[0], self.query_map[h] @ x, self.keys(h, x)
        values = y if self.factors is None else self.factors[1][h] @ y
        mean = np.empty((self.r, self.n_pad))
        if self.is_tiled:
            tokens = tiling.PANEL * tiling.panels(self.n)
            flat_keys, flat_values = np.empty(tokens * len(keys)), np.empty(tokens * tiling.PANEL * tiling.panels(self.r))
            tiled.pack_keys(keys, self.n, flat_keys)
            tiled.pack_values(np.ascontiguousarray(values), self.n, flat_values)
        else:
            flat_keys, flat_values = keys.ravel(), np.ascontiguousarray(values).ravel()

        def rows(begin: int, end: int) -> None:
            work = np.empty(tiling.work_size(self.r) if self.is_tiled else 8)
            self.core(queries, flat_keys, flat_values, self.n, begin, end, factor, work, mean)

        self.all_rows(rows, in_blocks)
        if self.subtract_self:
            mean -= values
        if self.factors is not None:
            return self.factors[0][h] @ mean
        assert self.full is not None
        if not self.is_conjugated:
            return self.full[h] @ mean
        lifted = self.full[h] @ self.grow.apply(t, mean.T).T
        return self.shrink.apply(t, lifted.T).T * math.exp((self.grow.rate + self.shrink.rate) * t)

    def extended_head(self, h: int, factor: float, x: np.ndarray, state: np.ndarray, in_blocks: bool) -> np.ndarray:
        """As `head`, for tokens hi + lo (engine/extended.py)."""
        queries = self.query_map[h] @ x
        if not self.keys_are_tokens:
            queries = self.key_map[h].T @ queries
        mean = np.zeros_like(x)
        is_causal, is_hard = self.dynamics.mask == "causal", is_hardmax(self.dynamics)

        def rows(begin: int, end: int) -> None:
            extended_rows(queries, state, self.n, begin, end, factor, is_causal, is_hard, mean)

        self.all_rows(rows, in_blocks)
        if self.factors is not None:
            return self.factors[0][h] @ (self.factors[1][h] @ mean)
        assert self.full is not None
        return self.full[h] @ mean

    def all_rows(self, rows: Callable[[int, int], None], in_blocks: bool) -> None:
        """Call rows(begin, end) for all rows: in blocks on all cores, or one after the other. Ctrl-C ends it between blocks."""

        def unless_stopped(begin: int, end: int) -> None:
            if not self.flag[0]:
                rows(begin, end)

        if in_blocks and len(self.ranges) > 1:
            _all([pool().submit(unless_stopped, begin, end) for begin, end in self.ranges])
        else:
            for begin, end in self.ranges:
                unless_stopped(begin, end)
        if self.flag[0]:
            raise _Stopped

    def velocity(self, t: float, log_scale: float, state: np.ndarray, is_extended: bool, out: np.ndarray) -> None:
        """out = y' at time t; state (2, d, n_pad) is y as hi and lo."""
        y = state[0]
        x = self.tokens(t, y)
        factor = score_factor(self.log2_factor, log_scale, self.rate, t)
        heads = self.dynamics.weights.heads
        if heads == 1:
            out[:, :] = self.head(0, t, factor, x, state, is_extended, in_blocks=True)
        else:
            parts = _all([pool().submit(self.head, h, t, factor, x, state, is_extended, False) for h in range(heads)])
            out[:, :] = parts[0]
            for part in parts[1:]:
                out += part
        if self.has_stay:
            out -= self.A.apply(y.T).T
        if self.dynamics.geometry == "sphere" and not self.dynamics.is_layers:
            out -= (out * y).sum(axis=0) * y
        layer = self.dynamics.feedforward
        if layer is not None:
            inside = out if layer.bias is None else out + layer.bias[:, None]
            active = ACTIVATION[layer.sigma](inside)
            out[:, :] = active if layer.W is None else layer.W @ active
            if layer.bias_outside is not None:
                out += layer.bias_outside[:, None]
        out[:, self.n :] = 0.0

    def is_past_wall(self, t: float, log_scale: float, start_log_size: float, y: np.ndarray, same_as: np.ndarray) -> bool:
        """As wall.is_past_wall."""
        x = self.tokens(t, y)
        size = largest(x)
        if not size > 0.0 or log_scale + self.rate * t + math.log(size) - start_log_size < GROWTH:
            return False
        factor = score_factor(self.log2_factor, log_scale, self.rate, t)
        causal, hard = self.dynamics.mask == "causal", is_hardmax(self.dynamics)
        return any(
            is_order_lost(self.query_map[h] @ x, self.keys(h, x), self.n, factor, causal, hard, same_as)
            for h in range(self.dynamics.weights.heads)
        )


class _Stopped(Exception):
    """Ctrl-C in the middle of a velocity: what it holds is not to be used."""


def _all(futures: list[Any]) -> list[Any]:
    wait(futures)
    return [future.result() for future in futures]


def _fill_stages(system, work, t, h, log_scale, y, is_extended, A, c, first, end, K, trial):
    for s in range(first, end):
        add_stages(y, h, A[s], s, K, trial)
        system.velocity(t + c[s] * h, log_scale, trial, is_extended, K[s])


def _call_wall(address, system, t, log_scale, start_log_size, y, same_as, work):
    return system.is_past_wall(t, log_scale, start_log_size, y, same_as)


# The text of stepper.integrate, with the two functions that know the system replaced. One text, so that a large run follows
# the very rules of a small one.
_loop = FunctionType(
    stepper.integrate.py_func.__code__,
    {**stepper.integrate.py_func.__globals__, "fill_stages": _fill_stages, "call_wall": _call_wall},
)


def integrate_large(system, work, control, table, y, times, saved, saved_log_scale):
    """As stepper.integrate, for a LargeSystem; Ctrl-C is also answered inside a step."""
    with threadpool_limits(1, user_api="blas"), np.errstate(all="ignore"):
        try:
            return _loop(system, work, control, table, y, times, saved, saved_log_scale)
        except _Stopped:
            reached = float(control.progress[0])
            saved_until = reached if reached > 0.0 else -1.0
            return stepper.INTERRUPTED, int(np.searchsorted(times, saved_until, side="right")), reached, 0, 0, 0, 0.0, 0.0
