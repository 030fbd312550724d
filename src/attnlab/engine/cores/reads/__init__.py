"""Compiled reads, by the names of axes/reads/.

reads.register("rms_norm")(Read(make=..., number=...))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from attnlab.registry import Registry
from attnlab.types import Dynamics


class Read(NamedTuple):
    """A compiled read."""

    make: Callable[
        [], Any
    ]  # the function read(y, n, number, out) of callers.read_signature, compiled when asked for
    number: Callable[
        [Any], float
    ]  # of a member of axes/reads: the number that compiled code is given


reads = Registry("compiled read", "attnlab.engine.cores.reads")


def read_of(dynamics: Dynamics) -> tuple[Any, float]:
    """(the compiled read of an equation, its number); (None, 0) where attention reads the token
    itself.
    """
    if dynamics.read.is_identity:
        return None, 0.0
    found: Read = reads[dynamics.read.name]
    return found.make(), found.number(dynamics.read)
