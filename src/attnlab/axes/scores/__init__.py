"""Scores: how the query of one token is compared with the key of another."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Scores(Protocol):
    """How queries are compared with keys: what a member of `al.scores` has. `is_dot` may be left
    out: it is then False.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_dot : bool
        Whether it is the inner product.
    """

    name: str
    is_dot: bool

    def compare(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the scores of queries and keys, of degree 2: tokens that are twice as large have
        four times the score.

        Parameters
        ----------
        queries, keys : array (..., n, k)
            The queries and the keys.

        Returns
        -------
        array (..., n, n)
            The scores, without beta.
        """
        ...


scores = AxisRegistry[Scores](
    "scores",
    "attnlab.axes.scores",
    about="How the query of a token is compared with the key of another.",
    default="dot",
    functions=("compare",),
    later={"is_dot": False},
)
