"""The tour: what attnlab is about, told in five stops on one page that needs nothing else.

    attnlab tour -o tour                    make_tour("tour")

To add a stop
-------------
Write `tour/stops/<name>.py` with one `stops.register("<name>")(Stop(number, title, tell))` (the records are in record.py).
`tell(context)` computes what it needs and returns a Chapter: paragraphs, pictures, tables and rows of the summary. A stop asks
`context.model(name)` for a trained model, and says on the page why a model is unavailable. No second place to edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name
from attnlab.tour.stops import stops

if TYPE_CHECKING:
    from attnlab.tour.build import make_tour as make_tour

_HOME = {"make_tour": "attnlab.tour.build"}
__all__ = ["make_tour", "stops"]


if not TYPE_CHECKING:           # which sees the imports above, and then knows the types

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
