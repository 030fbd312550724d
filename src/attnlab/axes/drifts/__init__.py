"""Drifts: what moves tokens besides attention. The keyword of `simulate` and the key of a Spec is
`feedforward`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from attnlab.axes.registry import AxisRegistry


class Drift(Protocol):
    """What moves tokens besides attention: the interface of a member of `al.drifts`. Flags that are
    left out are False.

    A drift may also have `check_dimension(d)`, which raises a ValueError if it does not fit tokens
    of d coordinates.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_none : bool
        Whether nothing is added.
    acts_on_z : bool
        Whether it is a part after attention in the equation for z, as the feed-forward variant.
        Then it is called with the velocity that attention alone gives z, and returns the velocity
        of z.
    """

    name: str
    is_none: bool
    acts_on_z: bool

    def __call__(self, x: np.ndarray, t: float) -> np.ndarray:
        """Return the addition to the velocity, token by token, before the projection on the tangent
        space.

        Parameters
        ----------
        x : array (..., n, d)
            The tokens.
        t : float
            The time.

        Returns
        -------
        array (..., n, d)
            The addition.
        """
        ...


class DriftRegistry(AxisRegistry[Drift]):
    """The drifts by name. A table without a name is the feed-forward variant."""

    def make(self, given: Any) -> Drift:
        """Return the drift of a name, of a table {name = "...", and its parameters} or {W, sigma,
        bias}, or a drift itself.
        """
        if isinstance(given, Mapping) and "name" not in given:
            given = {"name": "feedforward", **given}
        is_drift = isinstance(getattr(given, "name", None), str)
        if not (given is None or is_drift or isinstance(given, str | Mapping | type)):
            raise TypeError(
                "feedforward must be an attnlab.FeedForward or a table of W, sigma, bias; or"
                f" another drift, its name, or a table with its name. Got {type(given).__name__}."
            )
        return super().make(given)


drifts = DriftRegistry(
    "drift",
    "attnlab.axes.drifts",
    about="What moves tokens besides attention.",
    default="none",
    functions=("__call__",),
    later={"is_none": False, "acts_on_z": False},
)
