"""Kernels: how scores become attention weights.

To add one, write a class with the names of `Kernel`, register it, and use it by its name.
docs/extending.md has a recipe.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Kernel(Protocol):
    """How scores become attention weights: the interface of a member of `al.kernels`.

    A member is any class with these names, registered with `al.kernels.register("name")`. The last
    four flags may be left out: they are then False.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    rows_sum_to_one : bool
        Whether the weights of every row sum to 1. The frame z, feed-forward parts and theorems need
        it.
    is_row_local : bool
        Whether a row of weights depends only on its own scores. False for Sinkhorn.
    hardens : bool
        Whether large scores give the weights of hardmax. Limits need it.
    may_be_negative : bool
        Whether weights may be below 0.
    is_softmax : bool
        Whether it is the softmax of the paper, whose limits can be certified.
    is_exponential : bool
        Whether the weights of a row are proportional to e^s, as for softmax and exp_mean.
    has_scale : bool
        Whether it is also a `ScaledKernel`.
    """

    name: str
    rows_sum_to_one: bool
    is_row_local: bool
    hardens: bool
    may_be_negative: bool
    is_softmax: bool
    is_exponential: bool
    has_scale: bool

    def weights(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Return the attention weights of scores.

        Parameters
        ----------
        scores : array (..., n, n)
            The scores, which contain beta and are finite.
        seen : array (n, n) of bool
            True where token i sees token j.

        Returns
        -------
        array (..., n, n)
            The weights P, 0 where `seen` is False.
        """
        ...


class ScaledKernel(Kernel, Protocol):
    """A kernel that gets scores and a factor separately, because their product may overflow."""

    def scaled_weights(
        self, scores: np.ndarray, factor: np.ndarray, seen: np.ndarray
    ) -> np.ndarray:
        """Return the attention weights of factor * scores.

        Parameters
        ----------
        scores : array (..., n, n)
            The scores.
        factor : array (..., 1, 1)
            The factor of the scores.
        seen : array (..., n, n) of bool
            True where token i sees token j.

        Returns
        -------
        array (..., n, n)
            The weights P, 0 where `seen` is False.
        """
        ...


kernels = AxisRegistry[Kernel](
    "kernel",
    "attnlab.axes.kernels",
    about="How scores become attention weights.",
    default="softmax",
    functions=("weights",),
    flags=("rows_sum_to_one", "is_row_local", "hardens"),
    later={
        "may_be_negative": False,
        "is_softmax": False,
        "is_exponential": False,
        "has_scale": False,
    },
)
