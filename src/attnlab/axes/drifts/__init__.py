"""Drifts: what moves tokens beside attention. The keyword of `simulate` and the key of a Spec is `feedforward`.

    __call__(x, t)          what is added to the velocity that attention gives the tokens x (..., n, d) at time t, before that is
                            projected on the tangent space; token by token, of the shape of x

    is_none = False         whether nothing is added
    acts_on_z = False       whether it is a part after attention in the equation for z, as the feed-forward variant: then
                            __call__(velocity, t) is the velocity of z, given that of attention alone
    check_dimension(d)      may be left out: a ValueError where the drift does not fit tokens of d coordinates
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.axes.registry import AxisRegistry


class DriftRegistry(AxisRegistry):
    """The drifts by name. A table without a name is the feed-forward variant."""

    def make(self, given: Any) -> Any:
        """The drift of a name, of a table {name = "...", and its parameters} or {W, sigma, bias}, or the drift itself."""
        if isinstance(given, Mapping) and "name" not in given:
            given = {"name": "feedforward", **given}
        is_drift = isinstance(getattr(given, "name", None), str)
        if not (given is None or is_drift or isinstance(given, str | Mapping | type)):
            raise TypeError("feedforward must be an attnlab.FeedForward or a table of W, sigma, bias; or another drift, its "
                            f"name, or a table with its name. Got {type(given).__name__}.")
        return super().make(given)


drifts = DriftRegistry(
    "drift", "attnlab.axes.drifts", about="What moves tokens beside attention.",
    default="none", functions=("__call__",), later={"is_none": False, "acts_on_z": False},
)
