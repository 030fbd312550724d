"""Noises: what moves tokens at random."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Noise(Protocol):
    """What moves tokens at random: what a member of `al.noises` has.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_none : bool
        Whether there is no noise. It may be left out: it is then False.
    """

    name: str
    is_none: bool

    def increment(self, rng: np.random.Generator, x: np.ndarray, dt: float) -> np.ndarray:
        """Return the random part of a step.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of randomness.
        x : array (n, d)
            The tokens.
        dt : float
            The length of the step.

        Returns
        -------
        array (n, d)
            The random part, which is added to the tokens.
        """
        ...


noises = AxisRegistry[Noise](
    "noise",
    "attnlab.axes.noises",
    about="What moves tokens at random.",
    default="none",
    functions=("increment",),
    later={"is_none": False},
)
