"""t = infinity: the certified limit. Integrate, hand over to the frozen flow, follow its events, certify, and ask the twins."""

from __future__ import annotations

from attnlab.limits.entry import limit

__all__ = ["limit"]
