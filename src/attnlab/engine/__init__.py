"""From a Dynamics to a Trajectory: compiled, accurate, on all cores. Only this package uses Numba.

    lanes, exp2            eight numbers at once, and 2^x for them
    unrolled, tiled        the attention of a block of rows, for few and for many coordinates
    system, field          a Dynamics as arrays, and the velocities of all its tokens
    callers, products      calls through addresses and by symbols; small matrices times tokens
    records                named tuples that compiled code reads at an address
    matrix_exponential, finish, extended     parts that not every run needs: e^{tA}, sphere and feed-forward, hi + lo
    stages, tables, dormand_prince, stepper, wall     the integrator, and where double precision ends
    large                  the same integrator for large systems, its velocity on all cores
    cells, cells_extended, near, doubts      limits of many tokens, without all pairs
    plan, coordinates      which path, which frame, which coordinates
    members, threads       the members of a batch, one thread each; Ctrl-C and progress
    options, simulation, evaluation   the public functions

Nothing here is imported before the first run, because importing a module loads its compiled code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.engine.evaluation import velocity as velocity
    from attnlab.engine.simulation import simulate as simulate

_HOME = {"simulate": "attnlab.engine.simulation", "velocity": "attnlab.engine.evaluation"}
__all__ = ["simulate", "velocity"]


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
