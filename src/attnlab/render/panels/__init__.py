"""Panels: one picture inside a figure. A panel makes its artists once; `show(position)` moves them to a saved time.

A figure shows several panels at one time each, a movie shows one panel at many times: the same code draws both.
"""

from attnlab.render.panels.flat import FlatPanel
from attnlab.render.panels.heat import HeatPanel
from attnlab.render.panels.lines import LinesPanel
from attnlab.render.panels.space import SpacePanel

__all__ = ["FlatPanel", "HeatPanel", "LinesPanel", "SpacePanel"]
