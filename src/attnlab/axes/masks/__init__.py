"""Masks: which tokens see each other.

    seen(n)             a boolean array (n, n), True where token i sees token j; every token must see one at least
    sees_all = False    whether every token sees every token
    is_causal = False   whether token i sees exactly the tokens 0 to i
"""

from attnlab.axes.registry import AxisRegistry

masks = AxisRegistry(
    "mask", "attnlab.axes.masks", about="Which tokens see each other.",
    default="full", functions=("seen",), later={"sees_all": False, "is_causal": False},
)
