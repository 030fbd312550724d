"""Spaces: where tokens live.

    is_linear               whether it is all of R^d, where tokens may be rescaled
    check(x)                the first tokens as they must be, or a ValueError that says what must hold
    project(x, velocity)    the velocity on the tangent space at x
    retract(x)              tokens put back into the space after a step
    is_unit_sphere = False  whether it is |x| = 1
"""

from attnlab.axes.registry import AxisRegistry

spaces = AxisRegistry(
    "geometry", "attnlab.axes.spaces", about="Where tokens live.",
    default="euclidean", functions=("check", "project", "retract"), flags=("is_linear",), later={"is_unit_sphere": False},
)
