"""Writes: what happens to the output of attention before it moves a token."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Write(Protocol):
    """What happens to the output of attention before it moves a token: what a member of `al.writes`
    has.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_identity : bool
        Whether the output is added unchanged. It may be left out: it is then False.
    """

    name: str
    is_identity: bool

    def __call__(self, output: np.ndarray) -> np.ndarray:
        """Return the vectors that move the tokens, token by token.

        Parameters
        ----------
        output : array (..., n, d)
            The output of attention.

        Returns
        -------
        array (..., n, d)
            The vectors that move the tokens.
        """
        ...


writes = AxisRegistry[Write](
    "write",
    "attnlab.axes.writes",
    about="What happens to the output of attention before it moves a token.",
    default="plain",
    functions=("__call__",),
    later={"is_identity": False},
)
