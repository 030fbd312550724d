"""Panels: one picture inside a figure. A panel makes its artists once; `show(position)` moves them
to a saved time.

A figure shows several panels at one time each, a movie shows one panel at many times: the same code
draws both.
"""

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.render.panels.flat import FlatPanel as FlatPanel
    from attnlab.render.panels.heat import HeatPanel as HeatPanel
    from attnlab.render.panels.lines import LinesPanel as LinesPanel
    from attnlab.render.panels.space import SpacePanel as SpacePanel

_HOME = {
    name: f"attnlab.render.panels.{name.removesuffix('Panel').lower()}"
    for name in ("FlatPanel", "HeatPanel", "LinesPanel", "SpacePanel")
}
__all__ = ["FlatPanel", "HeatPanel", "LinesPanel", "SpacePanel"]


if not TYPE_CHECKING:  # which sees the imports above, and then knows the types

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
