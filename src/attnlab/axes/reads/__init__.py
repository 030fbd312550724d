"""Reads: what attention, and the values, see of a token.

    __call__(x)             u (..., n, d) of tokens x (..., n, d), token by token
    is_identity = False     whether u = x
"""

from attnlab.axes.registry import AxisRegistry

reads = AxisRegistry(
    "read", "attnlab.axes.reads", about="What attention, and the values, see of a token.",
    default="plain", functions=("__call__",), later={"is_identity": False},
)
