"""Compiled counterparts of members of the axes, by the same name: a kernel with one runs as machine code.

    engine/cores/softmax.py    cores.register("softmax")(Core(code, ...))

A member without a counterpart runs on the reference path (engine/reference.py), in every space, mask, clock and batch.
"""

from __future__ import annotations

from typing import NamedTuple

from attnlab.registry import Registry
from attnlab.types import Dynamics


class Core(NamedTuple):
    """A compiled kernel: its code in unrolled.py and tiled.py, and whether only the best scores count."""

    code: int
    is_hardmax: bool = False


cores = Registry("compiled kernel", "attnlab.engine.cores")


def core_of(dynamics: Dynamics) -> Core:
    """The compiled counterpart of the kernel of an equation."""
    found: Core = cores[dynamics.kernel.name]
    return found
