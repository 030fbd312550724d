"""One trajectory that can be continued in pieces: hi + lo tokens in the coordinates of
coordinates.py.

`advance` does in pieces what `simulate` does at once. Between pieces it keeps the step size and the
digits of lo. It does not stop at the precision wall: differences of tokens are exact as long as hi
+ lo can represent them. Many different tokens are kept in an order in which near ones are beside
each other (cells.py). Only this class sees that order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnlab.engine.cells import cell_order
from attnlab.engine.coordinates import Coordinates, is_coupled
from attnlab.engine.members import ROUNDING, first_equal
from attnlab.engine.plan import is_small
from attnlab.engine.records import Record
from attnlab.engine.stepper import integrate_small, make_control
from attnlab.engine.system import make_system, pad_count, work_shapes
from attnlab.types import Status

EXTENDED_GROWTH = 7.0
"""The growth log(|x| / |x(0)|) from which lo is read: until then rounding, 1e-16 e^7, is far below
the tolerance of 1e-12.
"""


class Flow:
    """The tokens at time t: x = high + low, each (n, d), in eigen-coordinates. For |x| up to
    e^600.
    """

    def __init__(self, coordinates: Coordinates, start: np.ndarray, rtol: float, flag: np.ndarray):
        self.dynamics, self.group = coordinates.dynamics, coordinates.group
        self.n, self.d = start.shape
        self.rtol, self.flag = rtol, flag
        self.t, self.step, self.steps, self.evaluations = 0.0, 0.0, 0, 0
        self.rounding = ROUNDING if is_coupled(coordinates) else 0.0
        self.same_as = first_equal(start)
        self.start_log_size = math.log(np.abs(start).max()) if start.any() else 0.0
        self.order: np.ndarray | None = None  # (n,): the token at each place; None: as given
        self.run: Any
        self.system: Any
        self.work: Any
        if is_small(self.dynamics, self.n):
            system = make_system(self.dynamics, self.n, "x", may_extend=True)
            self.run, self.system, self.work = (
                integrate_small,
                Record(system),
                Record.zeros(work_shapes(system)),
            )
            n_pad = pad_count(self.n, bool(system.is_tiled))
        else:
            from attnlab.engine.large import integrate_large, large_system
            from attnlab.engine.near import NearSystem, may_be_near

            self.run, self.work = integrate_large, None
            if may_be_near(self.dynamics, self.n) and (self.same_as == np.arange(self.n)).all():
                self.system = NearSystem(self.dynamics, self.n, flag, self.start_log_size)
                self.order = self.place = np.arange(self.n)
            else:
                self.system = large_system(self.dynamics, self.n, "x", flag)
            n_pad = self.system.n_pad
        self.y = np.zeros((2, self.d, n_pad))
        self.y[0, :, : self.n] = start.T

    @property
    def tokens(self) -> np.ndarray:
        """The tokens, (2, d, n): their leading parts, and what these round off."""
        return self._as_given(self.y)

    @property
    def high(self) -> np.ndarray:
        """The leading part of the tokens, (n, d)."""
        return self._as_given(self.y[0]).T

    @property
    def low(self) -> np.ndarray:
        """The rounding error of the leading part, (n, d)."""
        return self._as_given(self.y[1]).T

    def _as_given(self, stored: np.ndarray) -> np.ndarray:
        """Tokens (..., n) in the order in which they were given, from (..., n_pad) as stored."""
        return stored[..., : self.n] if self.order is None else stored[..., self.place]

    def _arrange(self) -> None:
        """Put near tokens beside each other."""
        if self.order is not None:
            moved = cell_order(self.y[0, :, : self.n].T)
            self.y[:, :, : self.n] = self.y[:, :, moved]
            self.order = self.order[moved]
            self.place = np.argsort(self.order)

    @property
    def pairs(self) -> float:
        """How many pairs of tokens all velocities so far have looked at."""
        if self.order is not None:
            return float(self.system.pairs)
        return float(self.evaluations) * self.n**2

    @property
    def log_size(self) -> float:
        """log max |x|."""
        top = np.abs(self.y[0]).max()
        return math.log(top) if top > 0 else -math.inf

    @property
    def growth(self) -> float:
        """log(|x| / |x(0)|)."""
        return self.log_size - self.start_log_size if self.t > 0.0 else 0.0

    @property
    def is_extended(self) -> bool:
        """Whether velocities are now computed from hi + lo, which takes many times as long."""
        return self.growth >= EXTENDED_GROWTH

    def advance(
        self, duration: float, times: np.ndarray, max_steps: int
    ) -> tuple[Status, np.ndarray]:
        """(status, tokens (T, n, d)) at `times`, counted from now, on the way to t + duration, in
        at most max_steps steps.
        """
        self._arrange()
        dt = self.dynamics.dt
        stepper = "adaptive" if dt is None else "euler"
        control = make_control(
            t_end=duration,
            rtol=self.rtol,
            atol=0.0,
            dt=dt or 0.0,
            first_step=self.step,
            rounding=self.rounding,
            wall_time=math.inf,
            extended_from=EXTENDED_GROWTH - self.growth,
            n=self.n,
            wall_address=0,
            max_steps=max_steps,
            stepper=stepper,
            may_rescale=1,
            group=self.group,
            same_as=self.same_as,
            flag=self.flag,
            progress=np.zeros(1),
        )
        saved, scale = np.zeros((len(times), *self.y.shape[1:])), np.zeros(len(times))
        asked = np.array(times, dtype=float)
        out = self.run(self.system, self.work, control, stepper, self.y, asked, saved, scale)
        code, done, reached, steps, rejected, evaluations, self.step, log_scale = out
        self.y *= 2.0 ** round(
            log_scale / math.log(2.0)
        )  # exact, and the next piece begins from x itself
        saved *= np.exp2(np.rint(scale / math.log(2.0)))[:, None, None]
        self.t += reached
        self.steps += steps + rejected
        self.evaluations += evaluations
        return list(Status)[code], self._as_given(saved[:done]).transpose(0, 2, 1)
