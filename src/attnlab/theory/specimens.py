"""Example runs for several statements, and ways to spoil them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from attnlab.engine import simulate
from attnlab.types import Trajectory, Weights


def specimen(
    V: Any,
    n: int = 12,
    t_end: float = 10.0,
    *,
    M: Any = None,
    rng: int = 0,
    size: float = 2.0,
    **options: Any,
) -> Trajectory:
    """Simulate n tokens, uniform in [-size, size]^d, and measure the error."""
    V = np.atleast_2d(np.asarray(V, dtype=float))
    d = len(V)
    weights = Weights(Q=np.eye(d), K=np.eye(d) if M is None else np.asarray(M, dtype=float), V=V)
    x0 = options.pop("x0", None)
    start = np.random.default_rng(rng).uniform(-size, size, (n, d)) if x0 is None else x0
    return simulate(weights, start, t_end=t_end, measure_error=True, throw=False, **options)


def with_states(run: Trajectory, states: np.ndarray) -> Trajectory:
    """Return the run with other data and the old error."""
    return dataclasses.replace(run, states=states)


def backward(run: Trajectory) -> Trajectory:
    """Return the data in reverse order of time."""
    return dataclasses.replace(
        run, states=run.states[::-1].copy(), log_scale=run.log_scale[::-1].copy()
    )


def leap(run: Trajectory) -> Trajectory:
    """Return the data with a leap of 1 % in the middle: the second half is on another solution."""
    states = run.states.copy()
    states[len(states) // 2 :] *= 1.01
    return with_states(run, states)


def shuffle_end(run: Trajectory) -> Trajectory:
    """Return the data where, in the last tenth of the times, each token is halfway to the next
    token.
    """
    states = run.states.copy()
    late = max(1, len(run.times) // 10)
    states[-late:] = 0.5 * (states[-late:] + np.roll(states[-late:], 1, axis=1))
    return with_states(run, states)


def in_z(run: Trajectory, z: np.ndarray) -> Trajectory:
    """Return the run with other data, given as rescaled tokens z (T, n, d)."""
    return dataclasses.replace(
        run,
        frame="z",
        states=z,
        log_scale=np.zeros(len(run.times)),
        basis=None,
        growth=None,
        turn=None,
    )


def random_tokens(run: Trajectory, rng: np.random.Generator) -> Trajectory:
    """Return the start of the run, then new random rescaled tokens at each time."""
    z = rng.uniform(-1.0, 1.0, run.rescaled.shape) * np.abs(run.rescaled[0]).max()
    z[0] = run.rescaled[0]
    return in_z(run, z)


def random_rest(run: Trajectory, rng: np.random.Generator) -> Trajectory:
    """Return the start of the run, then random rescaled tokens at rest, a hundredth of the start's
    size.

    They are close together relative to the start, so a judgement relative to the start finds them
    all at one place.
    """
    z = run.rescaled
    tokens = 0.01 * rng.uniform(-1.0, 1.0, z.shape[1:]) * np.abs(z[0]).max()
    return in_z(run, np.concatenate([z[:1], np.broadcast_to(tokens, z[1:].shape)]))
