"""How a flow with trained weights is solved.

Trained scores are large and grow with the tokens. So a token changes its leader within a time that
shrinks like e^{-2 lambda_1 t}. Adaptive steps of order 8 resolve each of these moments: 10 to 20
thousand evaluations for 128 tokens. A figure needs no such digits, and over jumps a high order
gains nothing: systems that are not small take Runge-Kutta steps of order 4, STEP long, and once
more steps twice as long. How far the two directions of each token are apart is kept as `apart`: it
is an estimate of the error of the longer steps, and a token that took another way shows there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnlab.engine import simulate
from attnlab.engine.plan import is_small
from attnlab.progress import Progress
from attnlab.registry import unknown_name
from attnlab.types import STEPPERS, Dynamics, Trajectory, Weights

STEP = 0.01
"""Step of larger systems. For 128 tokens, 12 heads, d = 768, half of it changes directions by at
most 0.04, mostly 0.001.
"""

TOLERANCE = 1e-6
"""Tolerance of small systems, which use adaptive steps, relative to the largest token."""

MOST_STEPS = 20_000
"""A small system that needs more adaptive steps than this is shown up to there."""

MOST_FIXED = 10_000_000
"""The most fixed steps, for any dt."""


def choose_steps(
    weights: Weights, n: int, stepper: str | None, dt: float | None
) -> tuple[str, float]:
    """Return (the stepper, the length of its steps), 0 for adaptive ones; see flow."""
    if dt is not None and not (isinstance(dt, int | float) and 0 <= dt < math.inf):
        raise ValueError(f"dt must be the length of a step, or 0 for adaptive steps; got {dt!r}.")
    if stepper is None:
        is_adaptive = dt == 0 if dt is not None else is_small(Dynamics(weights), n)
        stepper = "adaptive" if is_adaptive else "rk4"
    if stepper not in STEPPERS:
        raise unknown_name("stepper", stepper, STEPPERS)
    if stepper == "adaptive" and dt:
        raise ValueError(
            f'stepper="adaptive" chooses its own steps, but dt = {dt:g} was given. Leave dt out, or'
            " use rk4."
        )
    if stepper != "adaptive" and dt == 0:
        raise ValueError(
            f'stepper="{stepper}" needs steps of some length, but dt = 0 was given. Leave dt out,'
            " or give a length."
        )
    return stepper, 0.0 if stepper == "adaptive" else STEP if dt is None else float(dt)


def solve_flow(
    weights: Weights,
    x0: np.ndarray,
    stepper: str | None,
    dt: float | None,
    progress: Progress,
    *,
    rtol: float,
    max_steps: int,
    **options: Any,
) -> list[Trajectory]:
    """Return the run; for steps of one length also a second run with steps twice as long."""
    stepper, dt = choose_steps(weights, len(x0), stepper, dt)
    if stepper == "adaptive":
        return [
            simulate(
                weights,
                x0,
                rtol=rtol,
                max_steps=max_steps,
                throw=False,
                progress=progress,
                **options,
            )
        ]
    t_end = float(options["t_end"])
    if not t_end < math.inf:
        raise ValueError(f"t_end must be a finite time, got {t_end!r}.")
    if t_end > 0:
        dt = max(min(dt, t_end / 2), t_end / MOST_FIXED)  # the two runs must differ, and must end
    found = []
    for length, part in ((dt, progress.part(0.0, 2 / 3)), (2 * dt, progress.part(2 / 3, 1.0))):
        # the number of steps is known; a check runs again with at most ten times as many
        steps = math.ceil(t_end / length) + 1 if t_end > 0 else 1
        found.append(
            simulate(
                weights,
                x0,
                stepper=stepper,
                dt=length,
                frame="x",
                max_steps=steps,
                throw=False,
                progress=part,
                **options,
            )
        )
    return found


def describe_solver(run: Trajectory) -> str:
    """Describe how a run was solved."""
    solve = run.solve
    if solve.stepper == "adaptive":
        return f"adaptive steps, rtol = {solve.rtol:g}"
    return f"steps of {solve.dt:g}, order {4 if solve.stepper == 'rk4' else 1}"
