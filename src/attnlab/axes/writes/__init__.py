"""Writes: what happens to the output of attention before it moves a token.

    __call__(output)        what is added to the stream, (..., n, d), token by token
    is_identity = False     whether the output is added as it is
"""

from attnlab.axes.registry import AxisRegistry

writes = AxisRegistry(
    "write", "attnlab.axes.writes", about="What happens to the output of attention before it moves a token.",
    default="plain", functions=("__call__",), later={"is_identity": False},
)
