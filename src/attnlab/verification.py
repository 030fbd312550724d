"""verify: check a stored certificate again, from its stored state, or by computing the limit
again.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, overload

import numpy as np

from attnlab.checks import MissingLibrary
from attnlab.limits.verification.record import Check, Failed, Verification, require
from attnlab.limits.verification.steps import verify_limit
from attnlab.progress import Progress, ProgressOption, track
from attnlab.run import resolve
from attnlab.store import load
from attnlab.types import Limit, Spec

AGAIN = "--again"
"""What stands in the sentences about that which computing once more would show."""

MOST_DRAWN = 10**8
"""Up to this many coordinates of first tokens, a Spec is drawn again for the comparison."""

CLOSE = 1e-9
"""The allowed difference between a Spec and the stored numbers, relative to the largest: machines
round differently.
"""

MUCH_LARGER = 1000.0
"""An error may be this many times the error of a second computation. It depends on the replicas,
and machines differ.
"""

ROUNDING = 1e-13
"""The allowed difference of limits, relative to the largest."""


@overload
def verify(
    limit: Limit,
    *,
    again: bool = False,
    work: float | None = None,
    budget: float = 60.0,
    progress: ProgressOption = False,
) -> Verification: ...
@overload
def verify(
    limit: list[Limit],
    *,
    again: bool = False,
    work: float | None = None,
    budget: float = 60.0,
    progress: ProgressOption = False,
) -> list[Verification]: ...
@overload
def verify(
    limit: Limit | list[Limit] | str | os.PathLike[str],
    *,
    again: bool = False,
    work: float | None = None,
    budget: float = 60.0,
    progress: ProgressOption = False,
) -> Verification | list[Verification]: ...
def verify(
    limit: Limit | list[Limit] | str | os.PathLike[str],
    *,
    again: bool = False,
    work: float | None = None,
    budget: float = 60.0,
    progress: ProgressOption = False,
) -> Verification | list[Verification]:
    """Check whether the certificate of a Limit follows from the state that is stored with it.

    Parameters
    ----------
    limit : Limit, list of Limit, or str or path
        The limit, the limits of a batch, or the name of a .nc file that holds them.
    again : bool, optional
        Whether to compute the limit again from the first tokens too, and to compare.
    work, budget : float, optional
        The work and the seconds for the second computation, as in `limit`.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    Verification, or list of Verification
        The result of the check. A list for a list.

    Examples
    --------
    >>> import attnlab as al
    >>> limit = al.limit(al.Weights(V=1.0), [[-1.0], [0.5], [1.0]])
    >>> al.verify(limit).holds
    True
    """
    if isinstance(limit, str | os.PathLike):
        found = load(limit)
        members = [
            one
            for one in (found if isinstance(found, list | tuple) else [found])
            if isinstance(one, Limit)
        ]
        if len(members) < (len(found) if isinstance(found, list | tuple) else 1):
            raise ValueError(
                f"{os.fspath(limit)} must hold Limits, which have certificates; it holds"
                f" {type(found).__name__}."
            )
        limit = found if isinstance(found, Limit) else members
    if not isinstance(limit, Limit | list | tuple):
        raise TypeError(
            f"verify takes a Limit, a list of them, or a file, got {type(limit).__name__}."
        )
    with track(progress, "verifying") as progress:
        if isinstance(limit, Limit):
            return _verify_one(limit, again, work, budget, progress)
        return [
            _verify_one(one, again, work, budget, progress.piece(number, len(limit)))
            for number, one in enumerate(limit)
        ]


def _verify_one(
    limit: Limit, again: bool, work: float | None, budget: float, progress: Progress
) -> Verification:
    progress(0.0, "verifying")
    found = verify_limit(limit, progress)
    if found.holds and limit.spec is not None and _begin(limit) == 0.0:
        found = _with_check(found, "Spec", lambda: _check_spec(limit, limit.spec))
    if again and limit.grade != "undecided" and found.holds is not False:
        more = {} if work is None else {"work": work}
        found = _with_check(
            found,
            "computed again",
            lambda: _check_again(limit, budget=budget, progress=progress, **more),
        )
        if found.checks and found.checks[-1].name == "computed again":
            found = dataclasses.replace(
                found, not_checked=tuple(one for one in found.not_checked if AGAIN not in one)
            )
    return found


def _with_check(found: Verification, name: str, check: Any) -> Verification:
    """Return the Verification with one more check, which may fail or (LookupError) be
    impossible.
    """
    try:
        says = check()
    except Failed as problem:
        checks = (*found.checks, Check(name, False, str(problem)))
        return dataclasses.replace(
            found,
            holds=False,
            reason=f"The stored data contradict each other. {problem}",
            checks=checks,
        )
    except LookupError as problem:
        return dataclasses.replace(found, not_checked=(*found.not_checked, str(problem)))
    reason = (
        found.reason
        if found.holds
        else "The limit was computed again from its first tokens, with the same result."
    )
    return dataclasses.replace(
        found, holds=True, reason=reason, checks=(*found.checks, Check(name, True, says))
    )


def _begin(limit: Limit) -> float:
    """Return the time at which the integration began: not 0 for the limit of a run with a later
    first saved time.
    """
    value = None if limit.state is None else limit.state.values.get("begin")
    return (
        float(value) if value is not None and value.shape == () and value.dtype.kind == "f" else 0.0
    )


def _check_spec(limit: Limit, spec: Spec) -> str:
    """Check that the Spec in the file describes these weights, this equation and these first
    tokens.
    """
    n, d = limit.x0.shape
    for table, key, wanted in ((spec.start, "n", n), (spec.start, "d", d), (spec.weights, "d", d)):
        found = table.get(key, wanted)
        require(
            found == wanted,
            f"The Spec in the file has {key} = {str(found)[:20]}, but the limit has {wanted}.",
        )
    batch = spec.start.get("batch", 1)
    if isinstance(batch, int) and batch * n * d > MOST_DRAWN:
        raise LookupError(
            f"The Spec in the file, because its batch of {batch} is too large to be drawn again."
        )
    try:
        resolved = resolve(spec)
    except (ValueError, LookupError, MissingLibrary) as problem:
        raise LookupError(f"The Spec in the file, which cannot be read here: {problem}") from None
    ours, theirs = limit.dynamics, resolved.dynamics
    require(ours.words() == theirs.words(), "The Spec in the file describes another equation.")
    pairs = [
        (ours.weights.Q, theirs.weights.Q),
        (ours.weights.K, theirs.weights.K),
        (ours.weights.full_V, theirs.weights.full_V),
    ]
    require(
        all(_is_close(one, other) for one, other in pairs),
        "The Spec in the file describes other weights.",
    )
    starts = resolved.x0.reshape(-1, *resolved.x0.shape[-2:])
    require(
        any(_is_close(limit.x0, start) for start in starts),
        "The Spec in the file describes other first tokens.",
    )
    return f"it describes these weights and first tokens, digest {spec.digest()}."


def _is_close(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(
        np.abs(one - other).max(initial=0.0) <= CLOSE * np.abs(one).max(initial=1e-300)
    )


def _check_again(limit: Limit, **options: Any) -> str:
    """Compute the limit of the first tokens again and check that it is the same."""
    from attnlab.limits import limit as limit_of
    from attnlab.limits.verification.again import from_start, start_of

    dynamics = limit.dynamics
    begin = _begin(limit)
    found = limit_of(
        dynamics,
        start_of(limit, begin),
        digits=limit.digits if limit.digits > 16 else None,
        **options,
    )
    if not found.certified:
        raise LookupError(
            f"The limit once more from its first tokens, because that came out as: {found.reason}"
        )
    require(
        np.array_equal(found.labels, limit.labels),
        "Computed again from its first tokens, other tokens end together.",
    )
    if found.grade == "exact" and limit.grade in ("exact", "proved"):
        require(
            np.array_equal(found.leaders, limit.leaders),
            "Computed again from its first tokens, other tokens lead.",
        )
    if limit.places is not None:
        require(
            found.places is not None and _is_close(limit.places, found.places),
            "Computed again, other places come out.",
        )
        return f"the same {limit.place_count} places come out."
    ends = from_start(limit, found.limits, begin)
    off = float(np.abs(limit.limits - ends).max(initial=0.0))
    size = float(np.abs(ends).max(initial=0.0))
    allowed = sum(
        one.error * float(np.abs(one.basis).sum(axis=1).max(initial=0.0)) for one in (limit, found)
    )
    is_usual = limit.error <= MUCH_LARGER * found.error + ROUNDING * size
    require(
        is_usual or limit.grade == "proved",  # a proved error may be wide
        f"The limit has an error of {limit.error:.2g}, and computed again from its first tokens one"
        f" of {found.error:.2g}.",
    )
    require(
        off <= 1.001 * allowed + ROUNDING * size,
        f"Computed again from its first tokens, a limit is {off:.2g} away, and the errors allow"
        f" {allowed:.2g}.",
    )
    return (
        f"the same {found.count} limits come out, {off:.2g} away at most; the errors allow"
        f" {allowed:.2g}."
    )
