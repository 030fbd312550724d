"""The tour: an introduction to attnlab in five stops, on one self-contained page.

    attnlab tour -o tour                    make_tour("tour")

To add a stop
-------------
Write `tour/stops/<name>.py` with one `stops.register("<name>")(Stop(number, title, tell))`. The
records are in record.py. `tell(context)` computes what it needs and returns a Chapter: paragraphs,
pictures, tables and rows of the summary. A stop gets a trained model from `context.model(name)`. If
the model is unavailable, the page says why. No other file changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name
from attnlab.tour.stops import stops

if TYPE_CHECKING:
    from attnlab.tour.build import make_tour as make_tour

_HOME = {"make_tour": "attnlab.tour.build"}
__all__ = ["make_tour", "stops"]


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
