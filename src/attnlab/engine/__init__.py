"""From a Dynamics to a Trajectory: compiled, accurate, on all cores. The only place that knows Numba.

    lanes, exp2            eight numbers at once, and 2^x for them
    unrolled, tiled        the attention of a block of rows, for few and for many coordinates
    system, field          a Dynamics as arrays, and the velocities of all its tokens
    callers, products      calls through addresses; small matrices times tokens
    matrix_exponential, finish, extended     parts that not every run needs: e^{tA}, sphere and feed-forward, hi + lo
    stages, tables, stepper, wall     the integrator, and where double precision ends
    large                  the same integrator for large systems, its velocity on all cores
    plan, coordinates      which path, which frame, which coordinates
    members, threads       the members of a batch, one thread each; Ctrl-C and progress
    options, simulation, evaluation   what people call

Nothing here is imported before the first run: compiled code is loaded when its module is.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {"simulate": "attnlab.engine.simulation", "velocity": "attnlab.engine.evaluation"}
__all__ = ["simulate", "velocity"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'attnlab.engine' has no attribute {name!r}")
