"""What was derived from weights, kept as long as they live: a second run with the same weights
starts at once.

A kept thing must not hold its weights, or neither would ever be deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from attnlab.types import Dynamics, Weights

WORDS = tuple(field.name for field in fields(Dynamics) if field.name != "weights")

MOST = 8
"""The most things kept for one Weights; then the oldest is dropped."""

MISSING: Any = object()
"""Stands for what was not made yet; None may be what was made."""

Thing = TypeVar("Thing")
_lock = threading.Lock()
_kept: WeakKeyDictionary[Weights, dict[Hashable, Any]] = WeakKeyDictionary()


def remembered(dynamics: Dynamics, key: Hashable, make: Callable[[], Thing]) -> Thing:
    """make(), or what it gave before for the same weights, equation and key."""
    whole = (key, *(getattr(dynamics, name) for name in WORDS))
    with _lock:
        things = _kept.setdefault(dynamics.weights, {})
        found = things.get(
            whole, MISSING
        )  # one look: a key of twelve members takes ten microseconds to hash
    if found is not MISSING:
        return found
    thing = make()  # outside the lock: two threads may both make it, and either will do
    with _lock:
        if len(things) >= MOST:
            things.pop(next(iter(things)))
        things[whole] = thing
    return thing
