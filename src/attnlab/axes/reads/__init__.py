"""Reads: what attention, and the values, see of a token."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Read(Protocol):
    """What attention, and the values, see of a token: what a member of `al.reads` has.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_identity : bool
        Whether tokens are read unchanged. It may be left out: it is then False.
    """

    name: str
    is_identity: bool

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return what attention reads of tokens, token by token.

        Parameters
        ----------
        x : array (..., n, d)
            The tokens.

        Returns
        -------
        array (..., n, d)
            What attention and the values see.
        """
        ...


reads = AxisRegistry[Read](
    "read",
    "attnlab.axes.reads",
    about="What attention, and the values, see of a token.",
    default="plain",
    functions=("__call__",),
    later={"is_identity": False},
)
