"""Large systems: the same integrator, run as Python, with a velocity that uses BLAS and all cores.

A velocity has three parts, each of independent tasks: all queries, keys and values by stacked
products; the attention of blocks of rows of every head; the means of all heads to the velocity,
again one product. Rows are independent and products are cut in fixed places, so the bits do not
depend on the number of threads; BLAS is held to one thread for the same reason (and because its
threads, waiting for work, would take the cores from ours).
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from attnlab.axes.drifts.feedforward import ACTIVATION
from attnlab.engine import stages, stepper, tables, tiled, tiling
from attnlab.engine.cores.reads import read_of
from attnlab.engine.extended import extended_rows
from attnlab.engine.field import score_factor
from attnlab.engine.memory import remembered
from attnlab.engine.stages import add_stages, largest
from attnlab.engine.system import core_for, generator, is_hardmax, number_of, pad_count, score_maps
from attnlab.engine.threads import one_blas_thread, pool
from attnlab.engine.unrolled import are_small
from attnlab.engine.wall import GROWTH, is_order_lost
from attnlab.exponential import Exponential
from attnlab.types import Dynamics

PAIRS_A_TASK, MAPS_A_TASK = 2_000_000, 384
"""The pairs of tokens, roughly, and rows of a product per task: about a millisecond, so no core
waits long for the last.
"""


def large_system(dynamics: Dynamics, n: int, frame: str, flag: np.ndarray) -> LargeSystem:
    """The LargeSystem of n tokens in a frame, made once for these weights; `flag` stops the run
    that it is for.
    """
    system = copy.copy(
        remembered(dynamics, ("large", n, frame), lambda: LargeSystem(dynamics, n, frame))
    )
    system.flag = flag
    return system


class Room(NamedTuple):
    """The intermediate arrays of one velocity. They are reused, because allocating large arrays is
    slow.
    """

    mapped: (
        np.ndarray
    )  # (rows of both stacks, n_pad): queries, keys and values as far as they are not the tokens
    packed_keys: list[np.ndarray]
    packed_values: list[np.ndarray]
    means: np.ndarray  # (h, r, n_pad)


def make_room(system: LargeSystem) -> Room:
    """Room for one velocity."""
    h, n, k, r, n_pad = system.heads, system.n, system.k, system.r, system.n_pad
    sizes = (tiling.key_size(n, k), tiling.value_size(n, r)) if system.is_tiled else (0, 0)
    packed_keys, packed_values = ([np.empty(size) for _ in range(h)] for size in sizes)
    mapped = np.empty((len(system.score_stack) + len(system.value_stack), n_pad))
    return Room(mapped, packed_keys, packed_values, np.empty((h, r, n_pad)))


_own = threading.local()


def scratch(size: int) -> np.ndarray:
    """Scratch memory of this thread, at least `size` numbers."""
    if len(getattr(_own, "work", ())) < size:
        _own.work = tiling.make_aligned(size)
    return _own.work


class LargeSystem:
    """The data of `velocity` for n tokens in a frame, as system.System. It does not hold the
    Weights, see memory.py.
    """

    flag: np.ndarray

    def __init__(self, dynamics: Dynamics, n: int, frame: str):
        weights = dynamics.weights
        self.n, self.heads = n, weights.heads
        self.is_causal, self.is_hard = dynamics.mask.is_causal, is_hardmax(dynamics)
        self.is_tangent = not dynamics.geometry.is_linear and not dynamics.is_layers
        self.layer = dynamics.feedforward if dynamics.feedforward.acts_on_z else None
        self.A = generator(dynamics, frame)
        self.grow, self.shrink = Exponential(self.A), Exponential(self.A.scaled(-1.0))
        self.rate = self.grow.rate
        self.query_map, self.key_map, self.keys_are_tokens, self.log2_factor = score_maps(dynamics)
        self.is_conjugated = (
            frame == "z" and weights.heads > 1 and self.grow.method not in ("zero", "scalar")
        )
        self.normalised = dynamics.kernel.rows_sum_to_one
        self.subtract_self = frame == "z" and self.normalised
        self.has_stay = frame == "z" and not self.normalised
        self.factors = weights.V if weights.is_factored and not self.is_conjugated else None
        self.full = None if self.factors is not None else weights.full_V
        self.k, self.r = (
            self.query_map.shape[1],
            self.factors[0].shape[2] if self.factors is not None else weights.d,
        )
        self.core, self.is_tiled = core_for(dynamics, n, self.k, self.r)
        self.number = number_of(dynamics)
        self.read, self.read_number = read_of(dynamics)
        self.n_pad = pad_count(n, self.is_tiled)
        block = tiling.ROWS * tiling.group_size(self.k, self.r) if self.is_tiled else 8
        rows = max(1, PAIRS_A_TASK // (n * max(1, (self.k + self.r) // 16)) // block) * block
        self.ranges = [
            (begin, min(begin + rows, self.n_pad)) for begin in range(0, self.n_pad, rows)
        ]
        # queries, keys and values of all heads below each other, and the heads' outputs beside each
        # other
        score_maps_used = (
            [self.query_map] if self.keys_are_tokens else [self.query_map, self.key_map]
        )
        self.stack = _stack(
            [*score_maps_used, *([] if self.factors is None else [self.factors[1]])]
        )
        cut = len(score_maps_used) * self.heads * self.k
        self.score_stack, self.value_stack = self.stack[:cut], self.stack[cut:]
        left = self.factors[0] if self.factors is not None else self.full
        assert left is not None
        self.spare: list[Room] = []  # rooms that no velocity is using now
        self.outer = np.ascontiguousarray(
            left.transpose(1, 0, 2).reshape(weights.d, -1)
        )  # (d, h r)

    def tokens(self, t: float, y: np.ndarray) -> np.ndarray:
        """x without its scale, (d, n_pad)."""
        if self.grow.method in ("zero", "scalar"):
            return y
        return np.ascontiguousarray(self.grow.apply(t, y.T).T)

    def keys(self, h: int, x: np.ndarray) -> np.ndarray:
        """The keys of head h, (k, n_pad)."""
        return x if self.keys_are_tokens else self.key_map[h] @ x

    def product(self, A: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
        """out = A x, A (p, d), x (d, n_pad), rows in tasks."""

        def some(begin: int, end: int) -> None:
            np.matmul(A[begin:end], x, out=out[begin:end])

        self.all_tasks(
            (some, begin, min(begin + MAPS_A_TASK, len(A)))
            for begin in range(0, len(A), MAPS_A_TASK)
        )

    def means(self, factor: float, x: np.ndarray, y: np.ndarray, room: Room) -> np.ndarray:
        """sum_j P^h_ij u_j of all heads, (h, r, n_pad); u_j the values."""
        h, k, r, n_pad, cut = self.heads, self.k, self.r, self.n_pad, len(self.score_stack)
        if x is y:
            self.product(self.stack, x, room.mapped)
        else:
            self.product(self.score_stack, x, room.mapped[:cut])
            self.product(self.value_stack, y, room.mapped[cut:])
        mapped = room.mapped[:cut].reshape(-1, h, k, n_pad)
        queries, keys = mapped[0], [x] * h if self.keys_are_tokens else list(mapped[1])
        values = [y] * h if self.factors is None else list(room.mapped[cut:].reshape(h, r, n_pad))
        is_small, means = [False] * h, room.means

        def pack(head: int) -> None:
            is_small[head] = are_small(queries[head], keys[head], factor)
            if self.is_tiled:
                tiled.pack_keys(keys[head], self.n, room.packed_keys[head])
                tiled.pack_values(values[head], self.n, room.packed_values[head])

        def rows(head: int, begin: int, end: int) -> None:
            work = scratch(tiling.work_size(k, r) if self.is_tiled else 8)
            packed = (room.packed_keys[head], room.packed_values[head])
            flat = packed if self.is_tiled else (keys[head].reshape(-1), values[head].reshape(-1))
            self.core(
                queries[head],
                *flat,
                self.n,
                begin,
                end,
                factor,
                self.number,
                is_small[head],
                work,
                means[head],
            )

        def whole_head(head: int) -> None:
            pack(head)
            rows(head, 0, n_pad)

        if len(self.ranges) == 1:
            self.all_tasks((whole_head, head) for head in range(h))
        else:
            self.all_tasks((pack, head) for head in range(h))
            self.all_tasks(
                (rows, head, begin, end) for head in range(h) for begin, end in self.ranges
            )
        if self.subtract_self:
            means -= y if self.factors is None else room.mapped[cut:].reshape(h, r, n_pad)
        return means

    def extended_means(self, factor: float, x: np.ndarray, state: np.ndarray) -> np.ndarray:
        """As `means`, for tokens hi + lo (engine/extended.py)."""
        full = np.zeros((self.heads, *x.shape))
        for h in range(self.heads):
            queries = self.query_map[h] @ x
            if not self.keys_are_tokens:
                queries = self.key_map[h].T @ queries

            def rows(
                begin: int, end: int, queries: np.ndarray = queries, mean: np.ndarray = full[h]
            ) -> None:
                extended_rows(
                    queries, state, self.n, begin, end, factor, self.is_causal, self.is_hard, mean
                )

            self.all_tasks((rows, begin, end) for begin, end in self.ranges)
        return full if self.factors is None else np.matmul(self.factors[1], full)

    def all_tasks(self, tasks: Iterable[tuple[Any, ...]]) -> None:
        """Do all tasks, each a function and its arguments, on all cores; Ctrl-C ends it between two
        of them.
        """

        def unless_stopped(work: Callable[..., None], *arguments: int) -> None:
            if not self.flag[0]:
                work(*arguments)

        waiting = list(tasks)
        if len(waiting) > 1:
            futures = [pool().submit(unless_stopped, *task) for task in waiting]
            wait(futures)
            for future in futures:
                future.result()
        else:
            for task in waiting:
                unless_stopped(*task)
        if self.flag[0]:
            raise Stopped

    def velocity(
        self, t: float, log_scale: float, state: np.ndarray, is_extended: bool, out: np.ndarray
    ) -> None:
        """out = y' at time t; state (2, d, n_pad) is y as hi and lo."""
        y = np.ascontiguousarray(state[0])
        x = self.tokens(t, y)
        moving = y  # what V is applied to
        if self.read is not None:
            x = moving = np.empty_like(y)
            self.read(y, self.n, self.read_number, x)
        factor = score_factor(self.log2_factor, log_scale, self.rate, t)
        try:
            room = self.spare.pop()
        except IndexError:  # not tested before: another thread may take the last one in between
            room = make_room(self)
        means = (
            self.extended_means(factor, x, state)
            if is_extended
            else self.means(factor, x, moving, room)
        )
        if self.is_conjugated:
            out[:, :] = self.conjugated(t, means)
        else:
            self.product(self.outer, means.reshape(-1, self.n_pad), out)
        self.spare.append(room)
        if self.has_stay:
            out -= self.A.apply(y.T).T
        if self.is_tangent:
            out -= (out * y).sum(axis=0) * y
        if self.layer is not None:
            inside = out if self.layer.bias is None else out + self.layer.bias[:, None]
            active = ACTIVATION[self.layer.sigma](inside)
            out[:, :] = active if self.layer.W is None else self.layer.W @ active
            if self.layer.bias_outside is not None:
                out += self.layer.bias_outside[:, None]
        out[:, self.n :] = 0.0

    def conjugated(self, t: float, means: np.ndarray) -> np.ndarray:
        """sum_h e^{-tA} V_h e^{tA} means_h: several heads in the frame z."""
        assert self.full is not None
        total = np.zeros_like(means[0])
        for h in range(self.heads):
            lifted = self.full[h] @ self.grow.apply(t, means[h].T).T
            total += self.shrink.apply(t, lifted.T).T * np.exp(
                (self.grow.rate + self.shrink.rate) * t
            )
        return total

    def is_past_wall(
        self, t: float, log_scale: float, start_log_size: float, y: np.ndarray, same_as: np.ndarray
    ) -> bool:
        """As wall.is_past_wall."""
        x = self.tokens(t, y)
        size = largest(x)
        if not size > 0.0 or log_scale + self.rate * t + math.log(size) - start_log_size < GROWTH:
            return False
        factor = score_factor(self.log2_factor, log_scale, self.rate, t)
        found: list[bool] = []
        for h in range(self.heads):
            queries, keys = self.query_map[h] @ x, self.keys(h, x)

            def rows(
                begin: int, end: int, queries: np.ndarray = queries, keys: np.ndarray = keys
            ) -> None:
                last = min(end, self.n)
                found.append(
                    is_order_lost(
                        queries,
                        keys,
                        self.n,
                        begin,
                        last,
                        factor,
                        self.is_causal,
                        self.is_hard,
                        same_as,
                    )
                )

            self.all_tasks((rows, begin, end) for begin, end in self.ranges)
        return any(found)


class Stopped(Exception):
    """Raised after Ctrl-C inside a velocity. The partial velocity must not be used."""


def _stack(maps: list[np.ndarray]) -> np.ndarray:
    """Stack maps (h, k, d), of any k, vertically: (all their rows, d)."""
    return np.concatenate([each.reshape(-1, each.shape[2]) for each in maps])


def _fill_stages(
    address, system, work, t, h, log_scale, y, is_extended, A, c, first, end, K, trial
):
    for s in range(first, end):
        add_stages(y, h, A[s], s, K, trial)
        system.velocity(t + c[s] * h, log_scale, trial, is_extended, K[s])


def _call_wall(address, system, work, t, log_scale, start_log_size, y, same_as):
    return system.is_past_wall(t, log_scale, start_log_size, y, same_as)


def _return_unchanged(record):
    return record


def _fixed_value(address, *arguments):
    from attnlab.engine.fixed_steps import fixed_value

    fixed_value(*arguments)


def _renormalise(address, *arguments):
    from attnlab.engine.unit_norm import renormalise

    renormalise(*arguments)


# The text of stepper.integrate, with the two functions that know the system replaced, and records
# as they are. One text, so that a large run follows the very rules of a small one.
def interpreted_loop(renormalise: Callable[..., None]) -> Callable[..., Any]:
    """The loop for objects with `velocity` and `is_past_wall`; renormalise(_, out, n) puts tokens
    (d, n_pad) into their space.
    """
    return FunctionType(
        stepper.integrate.py_func.__code__,
        {
            **vars(stepper),
            **vars(stages),
            "call_fill": _fill_stages,
            "call_wall": _call_wall,
            "call_fixed": _fixed_value,
            "call_renormalise": renormalise,
            "read_control": _return_unchanged,
            "read_table": _return_unchanged,
            "read_scratch": _return_unchanged,
        },
    )


_loop = interpreted_loop(_renormalise)


def integrate_large(
    system, work, control, stepper_name, y, times, saved, saved_log_scale, loop=_loop
):
    """As stepper.integrate_small, for a LargeSystem; Ctrl-C is also answered inside a step."""
    table, scratch = (
        tables.table(stepper_name),
        stepper.Scratch(*map(np.zeros, stepper.scratch_shapes(*y.shape[1:]))),
    )
    with one_blas_thread(), np.errstate(all="ignore"):
        try:
            return loop(system, work, control, table, scratch, y, times, saved, saved_log_scale)
        except Stopped:
            reached = float(control.progress[0])
            saved_until = reached if reached > 0.0 else -1.0
            return (
                stepper.INTERRUPTED,
                int(np.searchsorted(times, saved_until, side="right")),
                reached,
                0,
                0,
                0,
                0.0,
                0.0,
            )
