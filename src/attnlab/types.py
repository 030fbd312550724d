"""The records of inputs and results: frozen dataclasses that hold data. The functions are in the
folders.

    Weights, FeedForward ─▶ Dynamics ─┐
                            Solve ────┴▶ Trajectory        Spec = all of it as words and numbers

The last two axes of every array of tokens are (token, coordinate). Time is before them, and the
batch is first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from attnlab import frames
from attnlab.axes.together import NoRescaledFrame as NoRescaledFrame
from attnlab.axes.together import check_rescaled
from attnlab.displayed import LONGEST, Displayed, count_words, shorten
from attnlab.equations import ACTIVATIONS as ACTIVATIONS
from attnlab.equations import Dynamics as Dynamics
from attnlab.equations import FeedForward as FeedForward
from attnlab.equations import Weights as Weights
from attnlab.exponential import Exponential
from attnlab.solving import FRAMES as FRAMES
from attnlab.solving import STEPPERS as STEPPERS
from attnlab.solving import Frame as Frame
from attnlab.solving import Solve as Solve
from attnlab.solving import Status as Status
from attnlab.solving import Stepper as Stepper
from attnlab.spec import Spec as Spec
from attnlab.worded import Worded


class Grade(Worded):
    """How much of a limit is certified. A grade equals its word: Grade.EXACT == "exact".

    Examples
    --------
    >>> import attnlab as al
    >>> al.Grade.EXACT == "exact"
    True
    """

    PROVED = (
        "proved",
        "Labels, points and leaders are certified for the flow itself: every token is enclosed.",
    )
    EXACT = (
        "exact",
        "Labels (which tokens share a limit), points (the limits) and leaders are certified.",
    )
    GROUP = (
        "group",
        (
            "Labels and points are certified. The leader inside a group that has merged below"
            " rounding is open."
        ),
    )
    UNDECIDED = "undecided", "Nothing is claimed; the reason says why."


class RunFailed(RuntimeError):
    """Raised when a run does not reach its end. The message says why.

    Attributes
    ----------
    run : Trajectory
        The part of the run that was computed. `simulate(..., throw=False)` returns it instead of
        raising.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> try:
    ...     run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=50.0, max_steps=3)
    ... except al.RunFailed as problem:
    ...     run = problem.run
    >>> run.status
    Status.MAX_STEPS
    """

    def __init__(self, message: str, run: Trajectory):
        super().__init__(message)
        self.run = run

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            str(self),
            self.run,
        )  # by default an exception is copied from its message alone


class RunInterrupted(RunFailed, KeyboardInterrupt):
    """Raised by Ctrl-C during a run. `run` is the part that was computed, with
    Status.INTERRUPTED.
    """


@dataclass(frozen=True, eq=False)
class Trajectory(Displayed):
    """A run: the tokens at the saved times, and how accurate they are.

    The states are stored in the one frame in which they were integrated, so x and z cannot
    disagree::

        frame "x"   x = e^{log_scale} basis states,      z = e^{log_scale} basis e^{-t blocks} states
        frame "z"   z = e^{log_scale} states,            x = e^{tW} z,          W = sum_h V_h
        layers      as frame "x", with (I + blocks dt)^{-k} for e^{-t blocks}

    The eigenvalues of W are a +- ib, with a in `growth` and b in `turn` (at the first of the two
    rows of a pair). The slow coordinates of z cannot be computed from x itself, because they are
    lost in its rounding. In a batch, a member that stopped early holds NaN after its last good
    time. A single run is cut there.

    Attributes
    ----------
    dynamics : Dynamics
        The equation.
    solve : Solve
        How it was integrated.
    times : array (T,)
        The saved times.
    states : array (*batch, T, n, d)
        The tokens as they were integrated.
    frame : str
        The frame of the states, "x" or "z".
    log_scale : array (*batch, T)
        The logarithm of a factor that is removed from the states.
    status : Status, or array (*batch,) of them
        How the run ended.
    basis : array (d, d) or None
        A real eigenbasis of W. None: the states are in the user's coordinates.
    growth, turn : array (d,) or None
        The real and imaginary parts of the eigenvalues of W.
    error : float, array (*batch,) or None
        The largest error relative to the largest token, if `measure_error=True`.
    spec : Spec or None
        The Spec of the run, if it has one.
    observed : mapping
        {observable: array (*batch, T, ...)} of the observables in `observe=`.
    stats : mapping
        Facts about the computation, such as `steps` and `seconds`.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, saves=5)
    >>> run.x.shape, run.is_ok
    ((5, 2, 2), True)
    >>> bool(np.allclose(run.z, np.exp(-run.times)[:, None, None] * run.x))
    True
    """

    dynamics: Dynamics
    solve: Solve
    times: np.ndarray
    states: np.ndarray
    frame: str
    log_scale: np.ndarray
    status: Status | Any  # in a batch an array of them
    basis: np.ndarray | None = None
    growth: np.ndarray | None = None
    turn: np.ndarray | None = None
    error: float | Any | None = None  # in a batch an array
    spec: Spec | None = None
    observed: Mapping[str, np.ndarray] = field(default_factory=dict)
    stats: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", Frame.of(self.frame))
        for name in ("times", "states", "log_scale"):  # read-only: x and z must stay consistent
            object.__setattr__(self, name, frames.read_only(getattr(self, name)))

    @property
    def n(self) -> int:
        """The number of tokens."""
        return self.states.shape[-2]

    @property
    def d(self) -> int:
        """The dimension of a token."""
        return self.states.shape[-1]

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch shape, () for a single run."""
        return self.states.shape[:-3]

    @property
    def is_ok(self) -> bool:
        """Whether the run, or every member of the batch, reached its end."""
        return all(
            status is Status.OK for status in np.ravel(np.asarray(self.status, dtype=object))
        )

    @cached_property
    def x(self) -> np.ndarray:
        """The tokens x (*batch, T, n, d)."""
        total = self.dynamics.weights.total if self.frame == "z" else None
        states = self.scaled_x()[0] if total is None else self.states
        return frames.apply_exponential(states, self.times, self.log_scale, total, "x")

    @property
    def z(self) -> np.ndarray | None:
        """The rescaled tokens z = e^{-tW} x (*batch, T, n, d); None if there is no such frame, as
        on the sphere.
        """
        return self.rescaled if self.dynamics.is_value_linear else None

    @cached_property
    def rescaled(self) -> np.ndarray:
        """The rescaled tokens z = e^{-tW} x (*batch, T, n, d), typed as an array.

        Raises
        ------
        NoRescaledFrame
            There is no such frame, as on the sphere. `z` is None there.
        """
        check_rescaled(self.dynamics, "Use run.x.")
        if self.frame == "z":
            return frames.apply_exponential(self.states, self.times, self.log_scale, None, "z")
        total, dt = self.dynamics.weights.total, self.dynamics.dt
        if self.basis is not None and self.growth is not None and self.turn is not None:
            return frames.unwind(
                self.states, self.times, self.log_scale, self.basis, self.growth, self.turn, dt
            )
        if dt is not None:
            z = frames.unwind_layers(self.states, self.times, self.log_scale, total, dt)
        else:
            z = frames.apply_exponential(
                self.states, self.times, self.log_scale, total.scaled(-1.0), "z"
            )
        frames.check_not_drowned(z, self.states, self.times, self.log_scale, total, dt)
        return z

    def scaled_x(self, at: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """Return x in two parts, for runs whose x exceeds double precision: x = e^s y.

        Parameters
        ----------
        at : slice, optional
            The saved times to return. The default is all of them.

        Returns
        -------
        y : array (*batch, T, n, d)
            The tokens without their scale.
        s : array (*batch, T)
            The logarithm of the scale.
        """
        if self.frame == "z":
            return self._grown(at) if at != slice(None) else self._all_grown
        states, log_scale = self.states[..., at, :, :], self.log_scale[..., at]
        return (states if self.basis is None else states @ self.basis.T), log_scale

    def _grown(self, at: slice) -> tuple[np.ndarray, np.ndarray]:
        """x = e^{tW} z in two parts, at some saved times: one exponential of a matrix each."""
        states, times = self.states[..., at, :, :], self.times[at]
        grow = Exponential(self.dynamics.weights.total)
        moved = [grow.apply(float(t), states[..., i, :, :]) for i, t in enumerate(times)]
        scale = self.log_scale[..., at] + grow.rate * times
        return frames.read_only(np.stack(moved, axis=-3) if moved else states), scale

    @cached_property
    def _all_grown(self) -> tuple[np.ndarray, np.ndarray]:
        """The same at all saved times. It is kept, because theorems and figures ask for it often."""
        return self._grown(slice(None))

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.states.shape))
        end = f"{self.times[-1]:g}" if len(self.times) else "none"
        statuses = np.ravel(np.asarray(self.status, dtype=object))
        status = (
            f"{sum(s is Status.OK for s in statuses)} of {statuses.size} OK"
            if self.batch
            else repr(self.status)
        )
        return f"Trajectory(states {shape}, to t = {end}, {status})"


@dataclass(frozen=True)
class Event(Displayed):
    """A change of leader: from the time t on, `token` attends to `after` instead of `before`.

    Attributes
    ----------
    t : float
        The time.
    token, before, after : int
        The numbers of the tokens.
    """

    t: float
    token: int
    before: int
    after: int


@dataclass(frozen=True, eq=False)
class Limit(Displayed):
    """Where the tokens end: the limits of the rescaled tokens in F, the span of the growing
    directions of V.

    The grade says what is certified.

    - "proved": the same as "exact", and the tokens from which it is certified are enclosed
      (`limit(..., proof=True)`).
    - "exact": labels, points and leaders are certified.
    - "group": labels and points are certified. The leader inside a group that has merged below
      rounding stays open.
    - "undecided": nothing is claimed. Labels and leaders are -1 and points are NaN where a token is
      not decided.

    If no direction grows, F = {0}, points is (n, 0) and `count` is None. Then the labels number the
    places at which x(t), not z, comes to rest in R^d. The grade refers to these places, and it is
    "group" if they are certified.

    Attributes
    ----------
    dynamics : Dynamics
        The equation.
    x0 : array (n, d)
        The first tokens.
    labels : array (n,)
        Tokens with equal labels have equal limits (with the grade "group": within `error`).
    leaders : array (n,)
        The token that each token attends to in the end. -1 if several tokens share this role, or if
        it is open.
    basis : array (d, k)
        A basis of F.
    points : array (n, k)
        basis @ points[i] is the projection of z_i(infinity) on F along the other directions.
    error : float
        A bound on the error of the points.
    grade : Grade
        How much is certified.
    reason : str
        A sentence: what was proved, or why the limit is undecided.
    certificate : str
        The reason with its numbers, as a text to print.
    events : tuple of Event
        The changes of leader that were followed.
    t : float
        The time at which the limit was decided or given up.
    digits : int
        The number of decimal digits that were needed.
    times : array (T,)
        The requested times.
    z : array (T, n, d)
        The rescaled tokens at these times. NaN at times beyond the answer.
    path : array (T, n, k)
        Their projection on F, which stays accurate at late times, unlike z itself.
    spec : Spec or None
        The Spec of the limit, if it has one.
    stats : mapping
        Facts about the computation.
    places : array (n, d) or None
        The limits of x(t), if nothing grows and they are certified.
    state : object or None
        The state from which the certificate was computed, for `verify`.
    horizon : float or None
        The time up to which labels and points hold. None: forever.
    head_leaders : array (h, n) or None
        The leaders in each head, if heads have different scores. `leaders` is then -1 where heads
        follow different tokens.

    Examples
    --------
    >>> import attnlab as al
    >>> limit = al.limit(al.Weights(V=1.0), [[-1.0], [0.5], [1.0]])
    >>> limit.count, limit.leaders.tolist()
    (2, [0, 2, 2])
    """

    dynamics: Dynamics
    x0: np.ndarray
    labels: np.ndarray
    leaders: np.ndarray
    basis: np.ndarray
    points: np.ndarray
    error: float
    grade: Grade | Any  # its word is accepted too
    reason: str
    certificate: str = ""
    events: tuple[Event, ...] = ()
    t: float = 0.0  # when it was decided, or given up
    digits: int = 16  # the precision that was needed
    times: np.ndarray = field(default_factory=lambda: np.zeros(0))
    z: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    path: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    spec: Spec | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    places: np.ndarray | None = (
        None  # (n, d): the limits of x(t), if nothing grows and they are certified
    )
    state: Any = None  # the state behind the certificate, limits.state.State, for al.verify
    horizon: float | None = None  # the time up to which labels and points hold; None: forever
    head_leaders: np.ndarray | None = (
        None  # (h, n): the leaders in each head, if heads have different scores
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "grade", Grade.of(self.grade))
        known = [name for name in ("places", "head_leaders") if getattr(self, name) is not None]
        for name in ("x0", "labels", "leaders", "basis", "points", "times", "z", "path", *known):
            object.__setattr__(self, name, frames.read_only(getattr(self, name)))

    @property
    def certified(self) -> bool:
        """Whether labels and points are certified forever; if nothing grows, labels and places."""
        return self.grade is not Grade.UNDECIDED and self.horizon is None

    @property
    def count(self) -> int | None:
        """The number of limits of z in F, up to `horizon` if there is one; None if undecided or if
        nothing grows.
        """
        return (
            int(self.labels.max()) + 1
            if self.grade is not Grade.UNDECIDED and self.basis.shape[1]
            else None
        )

    @property
    def place_count(self) -> int | None:
        """The number of different places at which x(t) comes to rest if nothing grows; None if
        `places` is None.
        """
        return int(self.labels.max()) + 1 if self.certified and self.places is not None else None

    @property
    def limits(self) -> np.ndarray:
        """The limits in the user's coordinates, basis @ points[i]: (n, d)."""
        return self.points @ self.basis.T

    def __repr__(self) -> str:
        if self.grade is Grade.UNDECIDED:
            return f"Limit(undecided: {shorten(self.reason, LONGEST - 20)})"
        tokens = count_words(len(self.labels), "token")
        if self.count is None:
            return (
                f"Limit(nothing grows: {count_words(self.place_count or 0, 'place')} of {tokens},"
                f" {self.grade})"
            )
        until = "" if self.horizon is None else f" up to t = {self.horizon:.4g}"
        return (
            f"Limit({count_words(self.count, 'limit')} of {tokens} in dimension"
            f" {self.basis.shape[1]}, {self.grade}{until})"
        )
