"""The feed-forward variant: a layer W sigma(. + bias) + bias_outside after attention, in the
equation for z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.axes.drifts import drifts
from attnlab.checks import real_array
from attnlab.displayed import Displayed, short_repr
from attnlab.worded import Worded


class Activation(Worded):
    """The activation of the feed-forward variant. A member equals its word: Activation.RELU ==
    "relu".
    """

    RELU = "relu", "sigma(u) = max(u, 0)."
    TANH = "tanh", "sigma(u) = tanh(u)."
    IDENTITY = "identity", "sigma(u) = u."


ACTIVATIONS = tuple(Activation)
ACTIVATION: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    Activation.RELU: lambda u: np.maximum(u, 0.0),
    Activation.TANH: np.tanh,
    Activation.IDENTITY: lambda u: u,
}


@drifts.register("feedforward")
@dataclass(frozen=True, eq=False)
class FeedForward(Displayed):
    """z_i' = W sigma( V sum_j P_ij (z_j - z_i) + bias ) + bias_outside. W is the identity by
    default.

    This is the feed-forward variant of the equation for the rescaled tokens z.

    Parameters
    ----------
    W : array (d, d), optional
        The outer matrix. The default is the identity.
    sigma : str, optional
        The activation: "relu", "tanh" or "identity".
    bias, bias_outside : array (d,), optional
        Numbers added inside and outside the activation.

    Examples
    --------
    >>> import attnlab as al
    >>> al.FeedForward(sigma="tanh").sigma == "tanh"
    True
    """

    W: Any = None
    sigma: str = Activation.RELU
    bias: Any = None
    bias_outside: Any = None
    __repr__ = short_repr

    acts_on_z = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", Activation.of(self.sigma))
        for name, ndim in (("W", 2), ("bias", 1), ("bias_outside", 1)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, real_array(f"FeedForward.{name}", value, (ndim,)))

    def check_dimension(self, d: int) -> None:
        """Refuse matrices that do not match tokens of d coordinates."""
        for name, shape in (("W", (d, d)), ("bias", (d,)), ("bias_outside", (d,))):
            value = getattr(self, name)
            if value is not None and value.shape != shape:
                raise ValueError(
                    f"FeedForward.{name} must have shape {shape} to match V, got {value.shape}."
                )

    def __call__(self, velocity: np.ndarray, t: float) -> np.ndarray:
        """z' (..., n, d), given the velocity (..., n, d) that attention alone gives z."""
        inside = velocity if self.bias is None else velocity + self.bias
        active = ACTIVATION[self.sigma](inside)
        outside = active if self.W is None else active @ self.W.T
        return outside if self.bias_outside is None else outside + self.bias_outside
