"""Spaces of the tokens."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Space(Protocol):
    """The space of the tokens: the interface of a member of `al.spaces`. `is_unit_sphere` may be
    left out: then it is False.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_linear : bool
        Whether it is all of R^d, where tokens may be rescaled.
    is_unit_sphere : bool
        Whether it is |x| = 1.
    """

    name: str
    is_linear: bool
    is_unit_sphere: bool

    def check(self, x: np.ndarray) -> np.ndarray:
        """Return the first tokens in the space, or raise a ValueError that says what must hold.

        Parameters
        ----------
        x : array (..., n, d)
            The tokens that a user gives.

        Returns
        -------
        array (..., n, d)
            The tokens.
        """
        ...

    def project(self, x: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """Return the velocity projected on the tangent space.

        Parameters
        ----------
        x, velocity : array (..., n, d)
            The tokens, and their velocity in R^d.

        Returns
        -------
        array (..., n, d)
            The velocity on the tangent space at x.
        """
        ...

    def retract(self, x: np.ndarray) -> np.ndarray:
        """Return tokens put back into the space after a step.

        Parameters
        ----------
        x : array (..., n, d)
            The tokens after a step.

        Returns
        -------
        array (..., n, d)
            Tokens in the space.
        """
        ...


spaces = AxisRegistry[Space](
    "geometry",
    "attnlab.axes.spaces",
    about="The space of the tokens.",
    default="euclidean",
    functions=("check", "project", "retract"),
    flags=("is_linear",),
    later={"is_unit_sphere": False},
)
