"""Compiled kernels, by the names of axes/kernels/.

    cores.register("softmax")(Core(SOFTMAX))                        a code that unrolled.py and tiled.py know
    cores.register("sigmoid")(Core(SIGMOID, number=...))            and a number of the kernel's own
    cores.register("sinkhorn")(Core(table=..., table_size=...))     a function of its own, for all rows at once

A kernel that is not row-local needs a table of all pairs. It is compiled for systems that run on
one core (engine/plan.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from attnlab.registry import Registry
from attnlab.types import Dynamics


class Core(NamedTuple):
    """A compiled kernel."""

    code: int = 0  # in unrolled.py and tiled.py, which take a block of rows
    is_hardmax: bool = False  # whether only the best scores count
    number: Callable[[Any], float] | None = (
        None  # of a member of axes/kernels: the number that compiled code is given
    )
    table: Callable[[], Any] | None = (
        None  # gives the function of callers.core_signature that takes all rows at once
    )
    table_size: Callable[[int], int] | None = (
        None  # the length of its `work` for n tokens; work[0] = 1: it did not settle
    )


cores = Registry("compiled kernel", "attnlab.engine.cores.kernels")


def core_of(dynamics: Dynamics) -> Core:
    """The compiled counterpart of the kernel of an equation."""
    found: Core = cores[dynamics.kernel.name]
    return found
