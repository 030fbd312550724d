"""The stops of the tour: one file per stop, with the name that it registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import Registry

if TYPE_CHECKING:
    from attnlab.tour.record import Stop

stops: Registry[Stop] = Registry("stop of the tour", package="attnlab.tour.stops")
