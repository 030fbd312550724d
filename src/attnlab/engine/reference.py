"""The reference path: the equation in plain NumPy, integrated by the source code of the stepper,
run as Python.

It is slow and readable. It works for every member of every axis, also those without compiled code.
One run is one thread, so that a batch equals a loop.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnlab.axes.outputs import check_tokens
from attnlab.dynamics.attention import score_factor
from attnlab.dynamics.culprit import find_culprit
from attnlab.dynamics.reference import output_x, velocity_x, velocity_z
from attnlab.engine.large import Stopped, integrate_large, interpreted_loop
from attnlab.engine.wall import EPSILON, GROWTH
from attnlab.exponential import Exponential
from attnlab.types import Dynamics


class ReferenceSystem:
    """The functions of an equation that the stepper needs: velocity, test of the precision wall,
    and space.
    """

    def __init__(self, dynamics: Dynamics, n: int, frame: str, flag: np.ndarray):
        self.dynamics, self.n, self.frame, self.flag = dynamics, n, frame, flag
        self.n_pad = -(-n // 8) * 8  # the steps are taken eight tokens at a time
        self.culprit = ""  # the first member whose result for finite tokens was not finite
        self.grow = Exponential(dynamics.weights.total.scaled(1.0 if frame == "z" else 0.0))

    def velocity(
        self, t: float, log_scale: float, state: np.ndarray, is_extended: bool, out: np.ndarray
    ) -> None:
        """out = y' at time t; state (2, d, n_pad) is y as hi and lo."""
        if self.flag[0]:
            raise Stopped
        y = state[0, :, : self.n].T
        if self.frame == "z":
            rate = velocity_z(self.dynamics, y, t, log_scale)
        elif self.dynamics.is_layers:
            rate = output_x(self.dynamics, y, log_scale, t)
        else:
            rate = velocity_x(self.dynamics, y, log_scale, t)
        out[:, : self.n], out[:, self.n :] = rate.T, 0.0
        if not np.isfinite(rate).all() and np.isfinite(y).all():
            self.culprit = self.culprit or find_culprit(self.dynamics, self._x(t, log_scale, y), t)

    def _x(self, t: float, log_scale: float, y: np.ndarray) -> np.ndarray:
        """Return the tokens themselves; infinite where they leave the range of double precision."""
        x = self.grow.apply(t, y) if self.frame == "z" else y
        return x * np.exp(log_scale + (self.grow.rate * t if self.frame == "z" else 0.0))

    def renormalise(self, _: int, out: np.ndarray, n: int) -> None:
        """Put the tokens out (d, n_pad) back into their space."""
        x = out[:, :n].T
        found = check_tokens(
            "geometry", self.dynamics.geometry, self.dynamics.geometry.retract(x), x
        )
        if np.isfinite(x).all() and not np.isfinite(found).all():
            self.culprit = f'geometry "{self.dynamics.geometry.name}"'
        out[:, :n] = found.T

    def is_past_wall(
        self, t: float, log_scale: float, start_log_size: float, y: np.ndarray, same_as: np.ndarray
    ) -> bool:
        """As wall.is_past_wall, for kernels whose large scores choose one token; other kernels lose
        nothing.
        """
        if not self.dynamics.kernel.hardens:
            return False
        x = self.grow.apply(t, y[:, : self.n].T)
        size, scale = float(np.abs(x).max()), log_scale + self.grow.rate * t
        if not size > 0.0 or scale + math.log(size) - start_log_size < GROWTH:
            return False
        factor = float(np.abs(score_factor(self.dynamics.beta, 2.0 * scale)))
        seen = self.dynamics.mask.seen(self.n)
        for Q, K in zip(self.dynamics.weights.Q, self.dynamics.weights.K, strict=True):
            queries, keys = x @ Q.T, x @ K.T
            signed = np.sign(self.dynamics.beta or 1.0) * self.dynamics.scores.compare(
                queries, keys
            )
            masked = np.where(seen, signed, -np.inf)
            best = masked.argmax(axis=1)
            first = masked[np.arange(self.n), best]
            second = np.where(same_as[best][:, None] == same_as, -np.inf, masked).max(axis=1)
            noise = EPSILON * (np.abs(queries) * np.abs(keys[best])).sum(axis=1)
            if ((noise * factor >= 0.25) & (first - second <= 2.0 * noise)).any():
                return True
        return False


def integrate_reference(system: ReferenceSystem, *arguments: Any) -> Any:
    """As large.integrate_large, with the velocity of the reference."""
    work, control, stepper, y, times, saved, scale = arguments
    return integrate_large(
        system, work, control, stepper, y, times, saved, scale, interpreted_loop(system.renormalise)
    )
