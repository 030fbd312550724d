"""Speeds: a factor in time."""

from __future__ import annotations

from typing import Protocol

from attnlab.axes.registry import AxisRegistry


class Speed(Protocol):
    """A factor in time: what a member of `al.speeds` has.

    Attributes
    ----------
    name : str
        The name under which it is registered.
    is_constant : bool
        Whether it is 1 at all times. It may be left out: it is then False.
    """

    name: str
    is_constant: bool

    def __call__(self, t: float) -> float:
        """Return the factor at a time.

        Parameters
        ----------
        t : float
            The time.

        Returns
        -------
        float
            The factor.
        """
        ...


speeds = AxisRegistry[Speed](
    "speed",
    "attnlab.axes.speeds",
    about="A factor in time.",
    default="constant",
    functions=("__call__",),
    later={"is_constant": False},
)
