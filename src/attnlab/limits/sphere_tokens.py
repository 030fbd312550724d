"""Tokens on the sphere, integrated in pieces, for limits there."""

from __future__ import annotations

import numpy as np

from attnlab.engine import simulate
from attnlab.limits.allowance import Allowance, price_of_evaluation
from attnlab.limits.double import STAGES
from attnlab.limits.reasons import sentence
from attnlab.types import Dynamics, Status

RTOL, PUSH = 1e-10, 1e-10
"""The tolerance of the integration, and by how much replicas are pushed."""

CLEAR = 1e-6
"""How far above an equator all tokens must be: a thousand times what the integrator is off by."""

FIRST_PIECE, LAST_END = 0.05, 1e6
"""In units of 1 / rate: how far is integrated before the first look at the tokens, and where the
search ends."""

WORK_OF_PIECE = 20_000.0
"""Units of work between two looks at the clock, about: some tenths of a second."""

SHARE_OF_PIECE = 0.05
"""Of the progress that is left, for each piece: their number is not known."""


class Open(Exception):
    """Raised when the limit stays open. `kind` in one word, `why` in a sentence."""

    def __init__(self, kind: str, why: str):
        super().__init__(kind, why)  # both, so that it can be pickled
        self.kind, self.why = kind, why


class SphereTokens:
    """Tokens on the sphere at time t, integrated in pieces, between which the allowance is looked
    at.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        start: np.ndarray,
        rtol: float,
        allowance: Allowance,
        begin: float = 0.0,
    ):
        self.x, self.t, self.begin = (
            start / np.linalg.norm(start, axis=1, keepdims=True),
            begin,
            begin,
        )
        self.dynamics, self.rtol, self.allowance = dynamics, rtol, allowance
        self.price = dynamics.weights.heads * price_of_evaluation(*start.shape)

    def advance(self, duration: float, times: np.ndarray) -> np.ndarray:
        """The tokens (T, n, d) at `times`, counted from now and before `duration`, going on by
        that; or Open.
        """
        allowed = 1 + int(self.allowance.left / (STAGES * self.price))
        saved = np.unique(np.concatenate([[0.0], times, [duration]]))
        run = simulate(
            self.dynamics,
            self.x,
            times=saved,
            rtol=self.rtol,
            max_steps=allowed,
            throw=False,
            progress=self.allowance.progress.next_part(SHARE_OF_PIECE),
        )
        self.allowance.spend(
            self.allowance.left
            if run.status is Status.MAX_STEPS
            else run.stats["evaluations"] * self.price
        )
        if run.status is Status.INTERRUPTED:
            self.allowance.progress.raise_if_cancelled()
            raise KeyboardInterrupt
        if not run.is_ok and not self.allowance.is_over:
            raise Open("stalled", f"the integrator ended early. {run.status.value.rstrip('.')}")
        if self.allowance.is_over:
            raise Open(self.allowance.ended_by, sentence(self.allowance.ended_by, self.allowance))
        self.x, self.t = run.x[-1], self.t + duration
        return np.asarray(run.x[np.searchsorted(saved, times)])
