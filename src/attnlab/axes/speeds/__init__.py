"""Speeds: a factor in time.

    __call__(t)             the factor at time t
    is_constant = False     whether it is 1 at all times
"""

from attnlab.axes.registry import AxisRegistry

speeds = AxisRegistry(
    "speed", "attnlab.axes.speeds", about="A factor in time.",
    default="constant", functions=("__call__",), later={"is_constant": False},
)
