"""al.limit: options in, Limit out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from attnlab.batches import Limits
from attnlab.checks import positive
from attnlab.engine.given import take_equation
from attnlab.engine.options import start_tokens
from attnlab.limits.allowance import DOING, WORK, Allowance
from attnlab.progress import Progress, ProgressOption, track
from attnlab.types import Dynamics, Limit, Trajectory, Weights

BUDGET = 60.0
"""Seconds, which the default work does not take on a machine that is not busy with something
else.
"""


@overload
def limit(
    weights: Weights | Dynamics,
    x0: Sequence[Sequence[float]],
    *,
    times: Any = None,
    digits: int | None = None,
    work: float = WORK,
    budget: float = BUDGET,
    progress: ProgressOption = False,
    layers: Any = None,
    proof: bool = False,
    **options: Any,
) -> Limit: ...
@overload
def limit(
    weights: Weights | Dynamics,
    x0: Sequence[Sequence[Sequence[float]]] | Sequence[np.ndarray],
    *,
    times: Any = None,
    digits: int | None = None,
    work: float = WORK,
    budget: float = BUDGET,
    progress: ProgressOption = False,
    layers: Any = None,
    proof: bool = False,
    **options: Any,
) -> Limits: ...
@overload
def limit(
    weights: Weights | Dynamics | Trajectory,
    x0: Any = None,
    *,
    times: Any = None,
    digits: int | None = None,
    work: float = WORK,
    budget: float = BUDGET,
    progress: ProgressOption = False,
    layers: Any = None,
    proof: bool = False,
    **options: Any,
) -> Limit | Any: ...  # an array does not tell a type checker whether it is a batch
def limit(
    weights: Weights | Dynamics | Trajectory,
    x0: Any = None,
    *,
    times: Any = None,
    digits: int | None = None,
    work: float = WORK,
    budget: float = BUDGET,
    progress: ProgressOption = False,
    layers: Any = None,
    proof: bool = False,
    **options: Any,
) -> Limit | Limits:
    """Compute where the tokens end as t goes to infinity, and certify it: a Limit, or a list of
    them for a batch.

    A limit that cannot be certified is returned as undecided, with the reason. Only input that
    makes no sense raises.

    Parameters
    ----------
    weights : Weights, Dynamics or Trajectory
        The matrices, or the whole equation. A run gives the equation, and run.x[0] as the start.
    x0 : array (n, d) or (batch, n, d)
        The first tokens. Leave them out for a run.
    times : array (T,), optional
        Times, however late, at which `Limit.z` (T, n, d) has the rescaled tokens.
    digits : int, optional
        Compute with this many decimal digits from the start. The default is double precision, and
        more digits where that cannot decide and the system is small.
    work : float, optional
        The number of units of work after which the answer is "undecided". It does not depend on the
        machine. A velocity of n tokens counts n (n + d) (d + 8) (1 + min(d, 64) / 16) / 600,000
        units, at least 0.5, and at least 8 for d > 128. A unit takes 5 to 50 microseconds of one
        core. With many tokens only the pairs that are looked at count. Ten thousand tokens in three
        dimensions take 2.5 million units.
    budget : float, optional
        Seconds after which the answer is "undecided" too. The default work takes less on an idle
        machine. Compiling, which is done once per machine, does not count. `limit.reason` says
        which of the two limits ended it.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.
    layers : optional
        Any value asks for residual layers with dt = 1. Their number is infinite.
    proof : bool, optional
        Whether to prove the limit: the flow is enclosed from the first tokens to the end, with
        bounds for every rounding. The grade is then "proved", and `limit.state` holds the steps. If
        no proof is found, the limit is the one without it, and the reason says why. A proof takes
        seconds, at most `budget` again. Where leaders change late it needs more digits, and for
        those `pip install "attnlab[proof]"`. V must be diagonal or have real simple eigenvalues; on
        the sphere, it must have a simple dominant eigenvalue.
    **options
        The words of the equation, as in `simulate`: beta, mask, geometry, kernel and the other
        axes, and dt for layers.

    Returns
    -------
    Limit or Limits
        The limit of one start (n, d), or the list of the limits of a batch (batch, n, d).

    Examples
    --------
    Three tokens on a line. The middle one follows the one on its side.

    >>> import attnlab as al
    >>> limit = al.limit(al.Weights(V=1.0), [[-1.0], [0.5], [1.0]])
    >>> limit.certified, limit.count, limit.labels.tolist()
    (True, 2, [0, 1, 1])
    """
    if isinstance(weights, Trajectory):
        if x0 is not None or options or layers is not None:
            raise TypeError(
                "limit(run) takes its start and its equation from the run: leave x0 and the options"
                " out."
            )
        run = weights
        if not len(run.times):
            raise ValueError("This run holds no saved time to start from.")
        dynamics, start, begin = run.dynamics, run.x[..., 0, :, :], float(run.times[0])
    else:
        run, begin = None, 0.0
        if layers is not None and options.get("dt") is None and not isinstance(weights, Dynamics):
            options["dt"] = 1.0
        dynamics = take_equation(weights, options, "limit")
        if x0 is None:
            raise TypeError("limit needs the first tokens x0 (n, d), or a run.")
        start = x0
    start = start_tokens(start, dynamics)
    work, budget = positive("work", work), positive("budget", budget)
    wanted = _times(times)
    if not isinstance(proof, bool):
        raise TypeError(f"proof must be True or False, got {type(proof).__name__}.")
    if digits is not None and (
        isinstance(digits, bool)
        or not isinstance(digits, int | np.integer)
        or not 16 <= digits <= 1000
    ):
        raise ValueError(f"digits must be a whole number from 16 to 1000, got {digits!r}.")
    spec = run.spec if run is not None else None
    from attnlab.limits.answer import (
        make_limit,
    )  # here, so that a program that only predicts does not load the compiler

    def one(member: np.ndarray, progress: Progress) -> Limit:
        progress(0.0, DOING)
        allowance = Allowance(work, budget, time.monotonic() + budget, progress=progress)
        found = make_limit(dynamics, member, begin, wanted, digits, allowance, spec)
        if not found.certified:
            progress.raise_if_cancelled()  # else the answer would say that the time limit ended it
        if proof:
            from attnlab.limits.proof.claim import prove

            return prove(found, begin, time.monotonic() + budget, progress)
        return found

    with track(progress, DOING) as progress:
        if start.ndim == 2:
            return one(start, progress)
        flat = start.reshape(-1, *start.shape[-2:])
        return Limits(
            one(member, progress.piece(number, len(flat), f"member {number + 1} of {len(flat)}"))
            for number, member in enumerate(flat)
        )


def _times(times: Any) -> np.ndarray:
    if times is None:
        return np.zeros(0)
    try:
        array = np.atleast_1d(np.array(times, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"times must be a list of numbers, got {type(times).__name__}.") from None
    if (
        array.ndim != 1
        or not np.isfinite(array).all()
        or (array < 0).any()
        or (np.diff(array) <= 0).any()
    ):
        raise ValueError("times must be finite, not negative, and ascend strictly.")
    return array
