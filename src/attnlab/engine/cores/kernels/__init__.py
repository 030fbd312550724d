"""Compiled kernels, by the names of axes/kernels/.

    cores.register("softmax")(Core(SOFTMAX))                 a code that unrolled.py and tiled.py know
    cores.register("sigmoid")(Core(SIGMOID, number=...))     and a number of the kernel's own
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from attnlab.registry import Registry
from attnlab.types import Dynamics


class Core(NamedTuple):
    """A compiled kernel: what makes it in unrolled.py and tiled.py, a block of rows at a time."""

    code: int
    is_hardmax: bool = False                            # whether only the best scores count
    number: Callable[[Any], float] | None = None        # of a member of axes/kernels: the number that compiled code is given


cores = Registry("compiled kernel", "attnlab.engine.cores.kernels")


def core_of(dynamics: Dynamics) -> Core:
    """The compiled counterpart of the kernel of an equation."""
    found: Core = cores[dynamics.kernel.name]
    return found
