"""Runs with noise: the Euler-Maruyama scheme, x <- retract(x + dt velocity + tangent part of the
noise), in fixed steps.

Every member of a batch has its own random stream, so that a batch equals a loop over its members.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from attnlab.axes.outputs import check_tokens
from attnlab.dynamics.culprit import find_culprit
from attnlab.dynamics.reference import velocity_x
from attnlab.engine.members import DOING, Outcome
from attnlab.engine.stepper import INTERRUPTED, MAX_STEPS, NON_FINITE, OK
from attnlab.engine.threads import one_blas_thread, supervisors, wait_for
from attnlab.progress import Progress
from attnlab.types import Dynamics, Solve


def random_streams(seed: int | list[int], count: int) -> list[np.random.Generator]:
    """One Generator per member of a run with this seed: a number, or a number and the first member.

    Member i of the seed 7 has the stream SeedSequence(7, spawn_key=(i,)), whatever the size of the
    batch. So rng=(7, i) gives member i alone.
    """
    number, first = seed if isinstance(seed, list) else (seed, 0)
    return [
        np.random.default_rng(np.random.SeedSequence(number, spawn_key=(first + member,)))
        for member in range(count)
    ]


def integrate_noisy(
    dynamics: Dynamics, solve: Solve, x0: np.ndarray, progress: Progress
) -> Outcome:
    """Integrate x0 (b, n, d) with steps of solve.dt; Ctrl-C or a cancel ends every member at its
    last step.
    """
    assert solve.dt is not None
    b, n, d = x0.shape
    wanted = np.rint(solve.times / solve.dt).astype(int)  # steps after which the tokens are saved
    total = int(wanted[-1])
    states = np.full((b, len(wanted), n, d), np.nan)
    status, saved, steps = np.full(b, INTERRUPTED), np.zeros(b, int), np.zeros(b, int)
    flag, culprits = np.zeros(1, np.int64), list[str]()
    streams = random_streams(solve.rng, b)

    def one(member: int) -> None:
        x, stream, dt = x0[member], streams[member], solve.dt
        assert dt is not None
        with one_blas_thread(), np.errstate(all="ignore"):
            for step in range(total + 1):
                while saved[member] < len(wanted) and wanted[saved[member]] == step:
                    states[member, saved[member]] = x
                    saved[member] += 1
                if step == total:
                    status[member] = OK
                    return
                if flag[0]:
                    return
                if step >= solve.max_steps:
                    status[member] = MAX_STEPS
                    return
                push = check_tokens(
                    "noise", dynamics.noise, dynamics.noise.increment(stream, x, dt), x
                )
                moved = (
                    x
                    + dt * velocity_x(dynamics, x, 0.0, step * dt)
                    + dynamics.geometry.project(x, push)
                )
                after = check_tokens(
                    "geometry", dynamics.geometry, dynamics.geometry.retract(moved), x
                )
                if not np.isfinite(after).all():
                    status[member] = NON_FINITE
                    culprits.append(_find_culprit(dynamics, x, push, moved, step * dt))
                    return
                x = after
                steps[member] = step + 1

    progress(0.0, DOING)
    futures = [supervisors().submit(partial(one, member)) for member in range(b)]
    wait_for(futures, flag, lambda: float(steps.mean()) / max(total, 1), progress, DOING)
    reached, none = steps * solve.dt, np.zeros(b, int)
    return Outcome(
        states,
        np.zeros((b, len(wanted))),
        status,
        saved,
        reached,
        steps,
        none,
        steps.copy(),
        "reference",
        next(iter(culprits), ""),
    )


def _find_culprit(
    dynamics: Dynamics, x: np.ndarray, push: np.ndarray, moved: np.ndarray, t: float
) -> str:
    """Return the member that turned finite tokens x into non-finite ones, or ""."""
    if not np.isfinite(push).all():
        return f'noise "{dynamics.noise.name}"'
    if np.isfinite(moved).all():
        return f'geometry "{dynamics.geometry.name}"'
    return find_culprit(dynamics, x, t)
