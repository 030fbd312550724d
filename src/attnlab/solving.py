"""How a run is solved, and how it ends: records."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.worded import Worded


class Status(enum.Enum):
    """How a run ended. Every value is a sentence.

    Examples
    --------
    >>> import attnlab as al
    >>> al.Status.OK.value
    'The run reached its end.'
    """

    OK = "The run reached its end."
    MAX_STEPS = (
        "The run used up max_steps before its end: raise max_steps, loosen rtol, or shorten t_end."
    )
    STALLED = (
        "The step size fell to rounding level: the flow blows up, or switches faster than double"
        " resolves. Shorten t_end."
    )
    NON_FINITE = (
        "A token left the range of double precision (overflow, underflow, NaN). Shorten t_end or"
        " scale the weights down."
    )
    PAST_DOUBLE_PRECISION = (
        "Double precision can no longer distinguish the tokens of one cluster, so its leader and"
        " the attention inside it are unknown from here on (usually at lambda_1 t of 28 to 36). The"
        " run ends before that."
    )
    INTERRUPTED = "The run was interrupted; it ends at the last computed time."

    def __repr__(self) -> str:
        return f"Status.{self.name}"


class Stepper(Worded):
    """How continuous time is integrated. A stepper equals its word: Stepper.EULER == "euler"."""

    ADAPTIVE = "adaptive", "Order 8 with error control and dense output; chooses its own steps."
    EULER = "euler", "Explicit Euler with steps of dt."
    RK4 = "rk4", "The classical Runge-Kutta method of order 4 with steps of dt."


class Frame(Worded):
    """Which tokens are integrated. A frame equals its word: Frame.Z == "z"."""

    AUTO = (
        "auto",
        (
            "z for the feed-forward variant, and for euler and rk4 with one head unless the kernel"
            " is exp_mean; x otherwise."
        ),
    )
    X = "x", "Integrate the tokens x; not with feedforward."
    Z = (
        "z",
        (
            "Integrate the rescaled tokens z = e^{-tV} x, as the published scripts do; not on the"
            " sphere, not with layers."
        ),
    )


STEPPERS, FRAMES = tuple(Stepper), tuple(Frame)


@dataclass(frozen=True, eq=False)
class Solve(Displayed):
    """How a run was integrated.

    Attributes
    ----------
    t_end : float
        The end of the run.
    times : array (T,)
        The requested times.
    rtol, atol : float
        The tolerances of a step: relative to the largest token, and absolute.
    stepper : str
        "adaptive", or "euler" or "rk4" with fixed steps `dt`.
    dt : float or None
        The length of fixed steps.
    frame : str
        The tokens that were integrated: "auto", "x" or "z".
    max_steps : int
        The number of steps after which the run gives up.
    layers : int or None
        The number of residual layers, if there are layers instead of a flow.
    rng : int or None
        The seed of the noise, if there is noise.
    """

    t_end: float
    times: np.ndarray
    rtol: float = 1e-8
    atol: float = 0.0
    stepper: str = Stepper.ADAPTIVE
    dt: float | None = None
    frame: str = Frame.AUTO
    max_steps: int = 100_000
    layers: int | None = None
    rng: Any = None
    __repr__ = short_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "stepper", Stepper.of(self.stepper))
        object.__setattr__(self, "frame", Frame.of(self.frame))
