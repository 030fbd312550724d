"""The tour: what attnlab is about, told in five stops on one page that needs nothing else.

    attnlab tour -o tour                    make_tour("tour")

To add a stop
-------------
Write `tour/<name>.py` with one `stops.register("<name>")(Stop(number, title, tell))` (the records are in record.py). `tell(desk)`
computes what it needs and returns a Chapter: paragraphs, pictures, tables and rows of the summary. What it needs of a trained
model it asks `desk.model(name)` for, and says on the page where that is not to be had. No second place to edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import Registry

if TYPE_CHECKING:
    from attnlab.tour.record import Stop

stops: Registry[Stop] = Registry("stop of the tour", package="attnlab.tour")

from attnlab.tour.journey import make_tour  # noqa: E402  (it needs the registry)

__all__ = ["make_tour", "stops"]
