"""Runs that several results are shown on, and ways to spoil them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from attnlab.engine import simulate
from attnlab.types import Trajectory, Weights


def specimen(
    V: Any, n: int = 12, t_end: float = 10.0, *, M: Any = None, rng: int = 0, size: float = 2.0, **options: Any
) -> Trajectory:
    """A run of n tokens, uniform in [-size, size]^d, with its error measured."""
    V = np.atleast_2d(np.asarray(V, dtype=float))
    d = len(V)
    weights = Weights(Q=np.eye(d), K=np.eye(d) if M is None else np.asarray(M, dtype=float), V=V)
    x0 = options.pop("x0", None)
    start = np.random.default_rng(rng).uniform(-size, size, (n, d)) if x0 is None else x0
    return simulate(weights, start, t_end=t_end, certify=True, throw=False, **options)


def with_states(run: Trajectory, states: np.ndarray) -> Trajectory:
    """The run with other data, which still claims to be as accurate as before."""
    return dataclasses.replace(run, states=states)


def backward(run: Trajectory) -> Trajectory:
    """The data in reverse order of time."""
    return dataclasses.replace(run, states=run.states[::-1].copy(), log_scale=run.log_scale[::-1].copy())


def leap(run: Trajectory) -> Trajectory:
    """The data with a leap of 1 % in the middle: the second half is on another solution."""
    states = run.states.copy()
    states[len(states) // 2 :] *= 1.01
    return with_states(run, states)


def shuffled_end(run: Trajectory) -> Trajectory:
    """The data with the tokens of the last tenth of the times moved to the middle between themselves and the next token."""
    states = run.states.copy()
    late = max(1, len(run.times) // 10)
    states[-late:] = 0.5 * (states[-late:] + np.roll(states[-late:], 1, axis=1))
    return with_states(run, states)
