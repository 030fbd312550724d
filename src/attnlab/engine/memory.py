"""What was derived from weights, kept as long as they live: a second run with the same weights starts at once.

A thing that is kept must not hold the weights it is kept for, or neither would ever be let go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from attnlab.types import Dynamics, Weights

MOST = 8
"""Things kept for one Weights; then the oldest goes."""

Thing = TypeVar("Thing")
_kept: WeakKeyDictionary[Weights, dict[Hashable, Any]] = WeakKeyDictionary()


def remembered(dynamics: Dynamics, key: Hashable, make: Callable[[], Thing]) -> Thing:
    """make(), or what it gave before for the same weights, equation and key."""
    things = _kept.setdefault(dynamics.weights, {})
    whole = (
        key, dynamics.geometry, dynamics.kernel, dynamics.mask, dynamics.beta, dynamics.feedforward, dynamics.dt,
    )
    if whole not in things:
        if len(things) >= MOST:
            things.pop(next(iter(things)), None)
        things[whole] = make()
    return things[whole]
