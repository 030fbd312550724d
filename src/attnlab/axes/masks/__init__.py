"""Masks: which tokens see each other."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Mask(Protocol):
    """Which tokens see each other: what a member of `al.masks` has. Flags that are left out are
    False.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    sees_all : bool
        Whether every token sees every token.
    is_causal : bool
        Whether token i sees exactly the tokens 0 to i.
    """

    name: str
    sees_all: bool
    is_causal: bool

    def seen(self, n: int) -> np.ndarray:
        """Return which token sees which. Every token must see at least one.

        Parameters
        ----------
        n : int
            The number of tokens.

        Returns
        -------
        array (n, n) of bool
            True where token i sees token j.
        """
        ...


masks = AxisRegistry[Mask](
    "mask",
    "attnlab.axes.masks",
    about="Which tokens see each other.",
    default="full",
    functions=("seen",),
    later={"sees_all": False, "is_causal": False},
)
