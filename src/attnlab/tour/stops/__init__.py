"""The stops of the tour: one file per stop, called like the name that it registers."""

from __future__ import annotations

from attnlab.registry import Registry

stops = Registry("stop of the tour", package="attnlab.tour.stops")
