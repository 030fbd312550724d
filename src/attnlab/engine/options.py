"""Check the options of a run: start tokens, times, tolerances. There is no compiled code here, so
errors come at once.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from attnlab.axes.outputs import check_seen, check_tokens
from attnlab.axes.together import check_rescaled
from attnlab.capacity import check_memory
from attnlab.checks import positive, whole_number
from attnlab.registry import unknown_name
from attnlab.types import FRAMES, STEPPERS, Dynamics, Solve

DEFAULT_SAVES = 101
LARGEST_TOLERANCE = 0.1
"""Steps with a larger relative error than this do not follow the flow: on the sphere, rtol = 0.5
gave NaN.
"""

STAGES = 40
"""Arrays of the size of the tokens that the stepper holds: stages, dense output, trial steps."""

MOST_LAYERS = 10**8
"""More layers take hours; and a time must count them exactly."""


def start_tokens(x0: Any, dynamics: Dynamics) -> np.ndarray:
    """Return x0 as a new array (*batch, n, d), or raise an error that says what is wrong with
    it.
    """
    try:
        if np.iscomplexobj(x0):  # NumPy would drop the imaginary part with no more than a warning
            raise TypeError
        x0 = np.array(x0, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"x0 must be an array of real numbers, got {type(x0).__name__}.") from None
    d = dynamics.weights.d
    if x0.ndim < 2:
        raise ValueError(
            f"x0 must have shape (n, d), or (batch, n, d) for several runs at once; got {x0.shape}."
        )
    if x0.shape[-1] != d:
        raise ValueError(
            f"x0 must have d = {d} coordinates like the weights, got shape {x0.shape}."
        )
    if 0 in x0.shape:
        raise ValueError(f"x0 must hold at least one token, got shape {x0.shape}.")
    if not np.isfinite(x0).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(x0))[0])
        raise ValueError(f"x0 must be finite, but entry {bad} is {x0[bad]}.")
    if not (dynamics.mask.sees_all or dynamics.mask.is_causal):
        check_seen(dynamics.mask, x0.shape[-2])
    found = check_tokens("geometry", dynamics.geometry, dynamics.geometry.check(x0), x0)
    if not np.isfinite(found).all():
        raise ValueError(
            f'The geometry "{dynamics.geometry.name}" must return finite first tokens, but did not.'
        )
    return found


def solve_options(
    dynamics: Dynamics,
    *,
    t_end: Any = None,
    layers: Any = None,
    times: Any = None,
    saves: Any = None,
    rtol: Any = 1e-8,
    atol: Any = 0.0,
    stepper: str = "adaptive",
    dt: Any = None,
    frame: str = "auto",
    max_steps: Any = 100_000,
    rng: Any = None,
) -> Solve:
    """Return the checked Solve of these options."""
    if dynamics.noise.is_none and rng is not None:
        raise ValueError(
            "rng= is the seed of noise, but this equation has none. Leave it out, or give noise=."
        )
    if not dynamics.noise.is_none and stepper != "euler":
        raise ValueError(
            f'The noise "{dynamics.noise.name}" needs fixed steps: stepper="euler" and dt=; got '
            f'stepper="{stepper}".'
        )
    if stepper not in STEPPERS:
        raise unknown_name("stepper", stepper, STEPPERS)
    if frame not in FRAMES:
        raise unknown_name("frame", frame, FRAMES)
    rtol = positive("rtol", rtol)
    if rtol < 1e-14:
        raise ValueError(
            f"rtol must be at least 1e-14, which is what double precision can keep; got {rtol:g}."
        )
    if rtol > LARGEST_TOLERANCE:
        raise ValueError(
            f"rtol must be at most {LARGEST_TOLERANCE:g}: coarser steps do not follow the flow; got"
            f" {rtol:g}."
        )
    atol = 0.0 if _is_zero(atol) else positive("atol", atol)
    max_steps = whole_number("max_steps", max_steps, most=2**62)
    if times is not None and saves is not None:
        raise ValueError("Give either times= or saves=, not both.")
    if frame == "z":
        check_rescaled(dynamics)
    if frame == "x" and dynamics.feedforward.acts_on_z:
        raise ValueError('The feed-forward variant is an equation for z. Use frame="z" or "auto".')
    if dynamics.is_layers:
        return _layer_options(
            dynamics, t_end, layers, times, saves, stepper, frame, rtol, atol, max_steps
        )
    if stepper == "adaptive" and dt is not None:
        raise ValueError(
            'dt= is for stepper="euler" or "rk4", or for layers=; the adaptive stepper chooses its'
            " own steps."
        )
    if stepper != "adaptive" and dt is None:
        raise ValueError(f'stepper="{stepper}" needs a step size, such as dt=0.1.')
    dt = None if dt is None else positive("dt", dt)
    if t_end is None and times is None:
        raise ValueError("Give the end of the run: t_end=, times=, or layers=.")
    if times is not None:
        times = _ascending(times)
        t_end = times[-1] if t_end is None else positive("t_end", t_end)
        if times[-1] > t_end:
            raise ValueError(f"times must not go beyond t_end = {t_end:g}, got {times[-1]:g}.")
    else:
        t_end = positive("t_end", t_end)
        if dt is not None and saves is None:
            # for fixed steps the steps themselves, not states interpolated between them
            steps = float(np.ceil(t_end / dt - 1e-9))
            if not steps < math.inf:
                raise ValueError(
                    f"t_end / dt must be a number in double precision, got {t_end:g} / {dt:g}."
                    " Choose a larger dt."
                )
            times = np.minimum(
                np.unique(np.rint(np.linspace(0.0, steps, int(min(steps + 1, DEFAULT_SAVES)))))
                * dt,
                t_end,
            )
        else:
            times = np.linspace(0.0, t_end, DEFAULT_SAVES if saves is None else _saves(saves))
    if not dynamics.noise.is_none:
        _check_steps(times, dt)
        rng = _seed(0 if rng is None else rng)
    return Solve(float(t_end), times, rtol, atol, stepper, dt, frame, max_steps, rng=rng)


def _seed(rng: Any) -> int | list[int]:
    """Return the seed of noise: a whole number, or a pair (number, member) for a single member of a
    batch.
    """
    parts = list(rng) if isinstance(rng, list | tuple) else [rng]
    if len(parts) not in (1, 2):
        raise ValueError(f"rng must be a whole number, or a pair (number, member), got {rng!r}.")
    checked = [whole_number("rng", part, least=0) for part in parts]
    return checked if len(checked) > 1 else checked[0]


def _check_steps(times: np.ndarray, dt: float) -> None:
    """Refuse times between two steps: with noise the state there is unknown."""
    off = np.abs(times - np.rint(times / dt) * dt)
    if (off > 1e-9 * dt).any():
        between = times[int(np.argmax(off))]
        raise ValueError(
            f"With noise, saved times must be whole multiples of dt = {dt:g}, got {between:g}."
            " Choose times=, or saves= and t_end that fit."
        )


def _layer_options(
    dynamics, t_end, layers, times, saves, stepper, frame, rtol, atol, max_steps
) -> Solve:
    if t_end is not None:
        raise ValueError(
            "t_end and layers are two different clocks; layers=12 with dt= is a residual stack."
            " Give one of them."
        )
    if stepper != "adaptive":
        raise ValueError(
            f'layers= is an equation of its own and takes no stepper, got stepper="{stepper}".'
        )
    if frame == "z":
        raise ValueError(
            'Layers are computed in x; run.z is derived from it. Use frame="x" or "auto".'
        )
    layers = whole_number("layers", layers, most=MOST_LAYERS)
    if not layers * dynamics.dt < math.inf:
        raise ValueError(f"layers * dt must be a finite time, got {layers} * {dynamics.dt:g}.")
    if times is not None:
        times = _ascending(times)
        numbers = np.rint(times / dynamics.dt)
        if np.abs(times - numbers * dynamics.dt).max() > 1e-9 * dynamics.dt or numbers[-1] > layers:
            raise ValueError(
                f"With layers=, times must be whole multiples of dt = {dynamics.dt:g} up to layer"
                f" {layers}."
            )
    elif saves is None:
        check_memory(
            f"{layers} layers, saved one by one,",
            4 * layers,
            "Give saves= or times=, or choose fewer layers.",
        )
        numbers = np.arange(layers + 1)
    else:
        numbers = np.unique(np.rint(np.linspace(0, layers, _saves(saves))))
    end, times = layers * dynamics.dt, numbers * dynamics.dt
    return Solve(
        end, times, rtol, atol, "euler", dynamics.dt, frame, max(max_steps, layers), layers
    )


def _saves(value: Any) -> int:
    saves = whole_number("saves", value, least=2)
    check_memory(f"saves = {saves} times", 4 * saves, "Choose fewer saves.")
    return saves


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def check_scales(solve: Solve, start: np.ndarray) -> None:
    """Refuse an atol that is large relative to the first tokens (*batch, n, d) of some member,
    except tokens at the origin.
    """
    if solve.atol == 0.0:
        return
    sizes = np.abs(start).max(axis=(-2, -1))
    least = float(np.min(sizes, where=sizes > 0, initial=math.inf))
    if solve.atol > LARGEST_TOLERANCE * least:
        raise ValueError(
            f"atol must be at most {LARGEST_TOLERANCE:g} of the largest first token,"
            f" {LARGEST_TOLERANCE * least:.3g} here: coarser steps do not follow the flow; got"
            f" {solve.atol:g}."
        )


FEWER = "Choose fewer saves, tokens or members."

COPIES, COPIES_WITH_ERROR = 3, 9
"""The most arrays of all saved states in a run; with measure_error also the finer run and the
differences in x and z.
"""


def check_run_memory(
    batch: int, saves: int, n: int, d: int, measure_error: bool = False, pairs: int = 0
) -> None:
    """Refuse a run whose saved states, their copies and the scratch of each thread do not fit in
    memory (pairs: in tables).
    """
    workers = min(batch, os.cpu_count() or 1)
    copies = COPIES_WITH_ERROR if measure_error else COPIES
    numbers = copies * batch * saves * n * d + workers * ((saves + STAGES) * n * d + pairs)
    many = f"{batch} members with " if batch > 1 else ""
    check_memory(f"{many}{saves} saved times of {n} tokens in dimension {d}", numbers, FEWER)


def _ascending(times: Any) -> np.ndarray:
    try:
        times = np.array(times, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"times must be a list of numbers, got {type(times).__name__}.") from None
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"times must be a list of at least one number, got shape {times.shape}.")
    if not np.isfinite(times).all():
        raise ValueError("times must be finite.")
    if times[0] < 0:
        raise ValueError(
            f"times must not be negative, got {times[0]:g}. To run backward, use the weights with"
            " -V from the end."
        )
    if (np.diff(times) <= 0).any():
        at = int(np.argmax(np.diff(times) <= 0))
        raise ValueError(
            f"times must ascend strictly, but times[{at + 1}] = {times[at + 1]:g} follows"
            f" {times[at]:g}."
        )
    return times


def fastest_growth(dynamics: Dynamics, solve: Solve) -> float:
    """Return a bound of log(|x(t)| / |x(0)|), from |x'| <= sum_h |V_h| |x| in the norm of the
    largest coordinate.
    """
    if dynamics.weights.d > 256:
        return math.inf
    return float(np.abs(dynamics.weights.full_V).sum(axis=2).max(axis=1).sum()) * solve.t_end


def wall_time(dynamics: Dynamics, solve: Solve) -> float:
    """Return the time before which the precision wall needs no test; infinity if it cannot be
    reached.

    For one head it is lambda_1 t = 28. For several heads the sum does not determine the growth: 0.
    A kernel has a wall if it hardens or is exponential, because then the rounding of a large score
    changes the weights.
    """
    has_wall = dynamics.kernel.hardens or dynamics.kernel.is_exponential
    if not has_wall or not dynamics.is_value_linear or fastest_growth(dynamics, solve) < 28.0:
        return math.inf
    if dynamics.weights.heads > 1:
        return 0.0
    eigenvalues = dynamics.weights.total.eigenvalues
    if dynamics.dt is not None:
        rate = math.log(max(np.abs(1.0 + dynamics.dt * eigenvalues).max(), 1e-300)) / dynamics.dt
    else:
        rate = eigenvalues.real.max()
    return 28.0 / rate if rate > 0 else 0.0


def extended_growth(dynamics: Dynamics, solve: Solve, frame: str) -> float:
    """Return the growth log(|x| / |x(0)|) at which rounding, 1e-16 e^growth, becomes visible at
    rtol; infinity if never used.
    """
    is_used = (
        frame == "x"
        and solve.stepper == "adaptive"
        and dynamics.is_value_linear
        and dynamics.kernel.hardens
    )
    growth = math.log(0.05 * solve.rtol / 2.0**-52)
    return growth if is_used and fastest_growth(dynamics, solve) > growth else math.inf
