"""t = infinity: the certified limit. Integrate, hand over to the frozen flow, follow its events, certify, compare replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.limits.entry import limit as limit

_HOME = {"limit": "attnlab.limits.entry"}
__all__ = ["limit"]


if not TYPE_CHECKING:           # which sees the imports above, and then knows the types

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
