"""The softmax flow of tokens that merge, for any V = B C, in the coordinates that the head can
reach.

    x_i = x_i(0) + B y_i,      y_i' = sum_j P_ij C x_j,      S = C B

These are r numbers per token (r = rank of V), whatever d is; scores need Q x and K x only; no
eigenbasis of V is formed, only that of S. Tokens are counted from the reference of their group,
which moves like x' = V x, in closed form. So offsets in a merged group rest between changes of
leader, and no large numbers are subtracted inside it. Slides and changes of leader are stiff: an
explicit method goes first, and an implicit one with the exact Jacobian takes over where that needs
too many steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.limits.allowance import TERMS, Allowance
from attnlab.limits.problem import Refused
from attnlab.limits.products import score_matrices
from attnlab.limits.stiff import StiffSteps
from attnlab.types import Dynamics

LARGEST_CONDITION = 1e5
"""Of the eigenvectors of S: what is said about a coordinate loses this factor of digits."""

MOST_CANCELLED = 1e5
"""Products of factors that are smaller than their terms by more than this lose too many digits."""

MOST_STEPS = 400
"""Explicit steps in one piece of `advance`: more, and the flow is taken as stiff. One costs a tenth
of an implicit one.
"""

MANY_STEPS = 40
"""Implicit steps in one piece: more of them, and accuracy sets their length, so the next piece
starts with explicit ones.
"""

PATIENCE = 4
"""By which MANY_STEPS grows each time explicit steps came less than half of the way that they were
tried for.
"""

ALONE = 45.0
"""Weights below e^-45 of a row's largest do not make tokens one group."""


HIDDEN = -1e300
"""The score of a token that the mask hides: finite, so that differences are."""


class Stuck(Exception):
    """The flow cannot be followed any further; the message is the kind of the obstacle."""


@dataclass(frozen=True, eq=False)
class Reach:
    """A head in the coordinates c = C x, for the different tokens of one start."""

    q0: np.ndarray  # (n, k) beta Q x(0)
    k0: np.ndarray  # (n, k) K x(0)
    c0: np.ndarray  # (n, r) C x(0)
    QB: np.ndarray  # (k, r)
    KB: np.ndarray  # (k, r)
    S: np.ndarray  # (r, r)
    rates: (
        np.ndarray
    )  # (r,) complex: eigenvalues of S, pairs next to each other, the positive imaginary part first
    right: np.ndarray  # (r, r) complex: S = right diag(rates) left
    left: np.ndarray
    condition: float
    bonus: np.ndarray  # (n,) ln of how many equal tokens each stands for
    is_causal: bool
    B: np.ndarray  # (d, r)
    C: np.ndarray  # (r, d)

    @property
    def n(self) -> int:
        """How many different tokens there are."""
        return len(self.q0)

    @property
    def clock(self) -> float:
        """The largest |rate|."""
        return float(np.abs(self.rates).max())

    def after(self, centres: np.ndarray, s: float) -> tuple[np.ndarray, np.ndarray]:
        """(e^{sS} of each row of centres (.., r), its integral from 0 to s)."""
        power = self.rates * s
        is_tiny = np.abs(power) < 1e-12
        integral = np.where(is_tiny, s, np.expm1(power) / np.where(is_tiny, 1.0, self.rates))
        hats = centres @ self.left.T
        return ((hats * np.exp(power)) @ self.right.T).real, ((hats * integral) @ self.right.T).real


def make_reach(dynamics: Dynamics, x0: np.ndarray, same_as: np.ndarray) -> Reach:
    """The Reach of an equation with one head and a start (n, d), or Refused."""
    weights = dynamics.weights
    tokens, counts = np.unique(same_as, return_counts=True)
    Q, K = dynamics.beta * weights.Q[0], weights.K[0]
    if weights.is_factored:
        B, C = weights.V[0][0], weights.V[1][0]
    else:
        B, C = np.eye(weights.d), weights.V[0]
    if len(Q) > weights.d:
        Q, K = dynamics.beta * score_matrices(weights)[0], np.eye(weights.d)
    S = C @ B
    for what, one, other in (("V", C, B), ("Q^T K", Q.T, K)):
        size = float((np.abs(one) @ np.abs(other)).max())
        if not MOST_CANCELLED * float(np.abs(one @ other).max()) >= size:
            raise Refused(
                f"The product of the factors of {what} cancels to less than "
                f"1 / {MOST_CANCELLED:g} of its terms: too many of its digits are lost."
            )
    rates, right = np.linalg.eig(S)
    rates, right = rates.astype(complex), right.astype(complex)
    for a in np.flatnonzero(rates.imag > 0.0):  # conjugates exactly, in neighbouring columns
        rates[a + 1], right[:, a + 1] = rates[a].conjugate(), right[:, a].conjugate()
    condition = float(np.linalg.cond(right))
    if not condition < LARGEST_CONDITION:
        raise Refused(
            "V has no well-conditioned basis of eigenvectors: in the directions that it writes,"
            f" their condition is {condition:.2g}, and groups are certified up to"
            f" {LARGEST_CONDITION:g}."
        )
    x = x0[tokens]
    return Reach(
        x @ Q.T,
        x @ K.T,
        x @ C.T,
        Q @ B,
        K @ B,
        S,
        rates,
        right,
        np.linalg.inv(right),
        condition,
        np.log(counts),
        dynamics.mask.is_causal,
        B,
        C,
    )


@dataclass(eq=False)
class MergedFlow:
    """The tokens at time t: y_i = Y_group + offset_i, counted from x(0) of the token `first` of the
    group.
    """

    reach: Reach
    rtol: float
    allowance: Allowance
    t: float = 0.0
    is_stiff: bool = False
    steps: int = 0
    many: int = MANY_STEPS  # implicit steps in a piece, after which explicit ones are tried again
    group: np.ndarray = field(init=False)  # (n,) numbered from 0
    first: np.ndarray = field(init=False)  # (groups,) the token from which a group is counted
    Y: np.ndarray = field(init=False)  # (groups, r)
    offset: np.ndarray = field(init=False)  # (n, r)
    step: float = 0.0

    def __post_init__(self) -> None:
        n, r = self.reach.c0.shape
        self.group, self.first = np.zeros(n, np.int64), np.zeros(1, np.int64)
        self.Y, self.offset = np.zeros((1, r)), np.zeros((n, r))

    # ---- where the tokens are

    def references(self) -> tuple[np.ndarray, np.ndarray]:
        """(C x, Q x) of the references of the groups."""
        reach = self.reach
        return reach.c0[self.first] + self.Y @ reach.S.T, reach.q0[self.first] + self.Y @ reach.QB.T

    def apart(self) -> np.ndarray:
        """C (x_i - the reference of its group), (n, r)."""
        base = self.first[self.group]
        return self.reach.c0 - self.reach.c0[base] + self.offset @ self.reach.S.T

    @property
    def log_size(self) -> float:
        """log of the largest coordinate along an eigenvector of S."""
        centres = self.references()[0][self.group] + self.apart()
        return math.log(max(float(np.abs(centres @ self.reach.left.T).max()), 1e-300))

    def logits(self) -> np.ndarray:
        """(n, n) scores, each row counted from its largest."""
        return _System(self)(self.offset)[0]

    def components(self) -> np.ndarray:
        """(n,) the number of the connected component of each token, where a row listens to more
        than one.
        """
        logits = self.logits()
        listens = logits > -ALONE
        listens |= listens.T
        number = np.arange(len(listens))
        while True:
            after = np.where(listens, number[None, :], len(number)).min(axis=1)
            after = np.minimum(after, number)
            if np.array_equal(after, number):
                return np.unique(number, return_inverse=True)[1].astype(np.int64)
            number = after

    # ---- on

    def regroup(self) -> None:
        """Count tokens from a token of their own group: the one that its group listens to most."""
        logits = self.logits()
        P = np.exp(logits)
        P /= P.sum(axis=1, keepdims=True)
        group = self.components()
        y = self.Y[self.group]
        first = np.array(
            [
                members[np.argmax(P[np.ix_(members, members)].sum(axis=0))]
                for members in (np.flatnonzero(group == g) for g in range(group.max() + 1))
            ]
        )
        base = first[group]
        # y_i - y_base: inside an old group from the offsets alone
        same = (self.group == self.group[base])[:, None]
        self.Y = y[first] + self.offset[first]
        self.offset = self.offset - self.offset[base] + np.where(same, 0.0, y - y[base])
        self.group, self.first = group, first

    def advance(self, duration: float) -> None:
        """Go on by `duration`, or Stuck."""
        left = duration
        while left > 1e-9 * duration:
            left -= self._part(left)

    def _part(self, duration: float) -> float:
        """Go on by at most `duration`, by how much is returned; or Stuck."""
        self._recentre()
        reach, n = self.reach, self.reach.n
        r = reach.c0.shape[1]
        whole = float(np.abs(self.Y).max())
        extent = max(
            float(np.abs(self.offset).max()),
            float(np.abs(self.apart()).max()) / max(float(np.linalg.norm(reach.S, 2)), 1e-300),
            1e-300,
        )
        solver: Any
        if self.is_stiff:
            rtol = max(
                self.rtol, min(STIFF_ERROR * self.rtol * max(whole, extent) / extent, STIFF_RTOL)
            )
            solver = StiffSteps(_System(self), self.offset, duration, rtol * extent, self.step)
        else:
            solver = self._explicit(duration, self.rtol * extent)
        taken, price, evaluated = 0, n * (n + 2.0) * (r + 8.0) / TERMS + 2.0, 0
        while solver.status not in ("finished", "failed"):
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # a step that is too long is tried again, shorter
                solver.step()
            taken += 1
            self.steps += 1
            count = solver.evaluations if self.is_stiff else solver.nfev
            self.allowance.spend((count - evaluated) * price)
            evaluated = count
            if self.allowance.is_over:
                raise Stuck(self.allowance.ended_by)
            if not self.is_stiff and taken > MOST_STEPS:
                break  # what was reached stays
        if solver.status == "failed":
            raise Stuck("stalled")
        s = float(solver.t)
        if self.is_stiff:
            self.is_stiff = taken <= self.many
        elif taken > MOST_STEPS:
            self.is_stiff = True
            self.many *= PATIENCE if s < 0.5 * duration else 1
        self.step = float(solver.h if isinstance(solver, StiffSteps) else solver.step_size or 0.0)
        self.offset = np.asarray(solver.y).reshape(n, r).copy()
        self.Y = self.Y + reach.after(self.references()[0], s)[1]
        self.t += s
        return s

    def _recentre(self) -> None:
        """Let each reference be a token again."""
        own = self.offset[self.first]
        self.Y = self.Y + own
        self.offset = self.offset - own[self.group]

    def _explicit(self, duration: float, atol: float) -> Any:
        from scipy.integrate import DOP853  # here: importing it takes 0.4 s

        system, shape = _System(self), self.offset.shape

        def velocity(s: float, y: np.ndarray) -> np.ndarray:
            return system.velocity(s, y.reshape(shape)).ravel()

        return DOP853(
            velocity,
            0.0,
            self.offset.ravel(),
            duration,
            rtol=self.rtol,
            atol=atol,
            first_step=min(self.step, duration) if self.step > 0.0 else None,
        )


STIFF_ERROR, STIFF_RTOL = 1e2, 1e-6
"""Once the flow is stiff, offsets may be off by this many tolerances of the tokens, and by this
part of themselves.
"""


MOST_KEPT = 8
"""Times for which references are kept: those of the stages of a step."""


class _System:
    """The velocity of offsets between two times at which references are chosen."""

    def __init__(self, flow: MergedFlow):
        reach = self.reach = flow.reach
        self.group = flow.group
        base = flow.first[flow.group]
        self.c_fixed = reach.c0 - reach.c0[base]
        self.k_fixed = reach.k0 - reach.k0[base]
        self.q_fixed = reach.q0 - reach.q0[base]
        self.centres, self.queries = flow.references()
        self.keys = reach.k0[flow.first] + flow.Y @ reach.KB.T
        self.same = self.group[:, None] == self.group[None, :]
        self.hidden = ~np.tri(reach.n, dtype=bool) if reach.is_causal else None
        self.is_one = len(flow.first) == 1
        self.moved: dict[float, tuple[np.ndarray, ...]] = {}

    def _references(self, s: float) -> tuple[np.ndarray, ...]:
        """(C x, Q x, K x) of the references at the time s."""
        if s not in self.moved:
            if len(self.moved) >= MOST_KEPT:
                self.moved.clear()
            power, step = self.reach.after(self.centres, s)
            self.moved[s] = (
                power,
                self.queries + step @ self.reach.QB.T,
                self.keys + step @ self.reach.KB.T,
            )
        return self.moved[s]

    def __call__(self, y: np.ndarray, s: float = 0.0) -> tuple[np.ndarray, ...]:
        """(scores, each row from its largest, C and K from the own reference, Q, and C and K of
        references).
        """
        reach = self.reach
        centres, queries, keys = self._references(s)
        c, k = self.c_fixed + y @ reach.S.T, self.k_fixed + y @ reach.KB.T
        q = queries[self.group] + self.q_fixed + y @ reach.QB.T
        scores = q @ k.T + reach.bonus
        if not self.is_one:
            far = q @ keys.T
            scores = scores + np.where(
                self.same, 0.0, far[:, self.group] - far[np.arange(len(q)), self.group][:, None]
            )
        if self.hidden is not None:
            scores = np.where(self.hidden, HIDDEN, scores)
        return scores - scores.max(axis=1, keepdims=True), c, k, q, centres, keys

    def velocity(self, s: float, y: np.ndarray) -> np.ndarray:
        """The velocity of the offsets y (n, r)."""
        scores, c, _, _, centres, _ = self(y, s)
        P = np.exp(scores)
        P /= P.sum(axis=1, keepdims=True)
        out = P @ c
        if not self.is_one:
            share = np.where(self.same, 0.0, P)
            if share.any():
                out = (
                    out
                    + share @ centres[self.group]
                    - share.sum(axis=1)[:, None] * centres[self.group]
                )
        return out

    def offsets(self, now: tuple[np.ndarray, ...]) -> np.ndarray:
        """C (x_j - the reference of i), (n, n, r), of what calling the system has returned."""
        _, c, _, _, centres, _ = now
        out = np.broadcast_to(c[None], (len(c), *c.shape))
        if self.is_one:
            return out
        far = (centres[self.group][None] - centres[self.group][:, None]) * ~self.same[:, :, None]
        return np.asarray(out + far)

    def linear_velocity(self, now: tuple[np.ndarray, ...], own: np.ndarray) -> np.ndarray:
        """The velocity with softmax linear around the scores `own` (n, n), each row from its
        largest.
        """
        P = np.exp(own)
        P /= P.sum(axis=1, keepdims=True)
        difference = np.where(P > 0.0, now[0] - own, 0.0)
        difference -= (P * difference).sum(axis=1, keepdims=True)
        shares = P * (1.0 + difference)
        return (
            shares @ now[1] if self.is_one else np.einsum("ij,ijr->ir", shares, self.offsets(now))
        )

    def slopes(
        self, y: np.ndarray, s: float, rows: np.ndarray, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The derivatives of the scores of rows at `seen` by y of the one seen, and by y of the
        row, (m, r).
        """
        _, _, k, q, _, keys = self(y, s)
        far = np.where(self.same[rows, seen], 0.0, 1.0)[:, None] * (
            keys[self.group[seen]] - keys[self.group[rows]]
        )
        return q[rows] @ self.reach.KB, (k[seen] + far) @ self.reach.QB
