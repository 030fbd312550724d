"""Several heads with V_h = v_h I: from a stored state on, no row of any head changes its leader;
replicas end in the same limit.

Everything is computed again from the stored tokens and maps, in NumPy's longest floating point
numbers and apart from limits/heads/. x_i(s) = Y_i e^{vs} + s K_i + D_i, and the gap of a row to a
token k is a sum of six terms. It is compared with G e^{vs/2} through

    e^{2vs} >= (1 + vs) e^{vs} >= e^{vs} >= e^{vs/2} >= 1 + y + y^2/2 >= 1 + y >= 1,      y = vs/2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from attnlab.limits.certificate import LEAST_MARGIN
from attnlab.limits.verification import ways
from attnlab.limits.verification.record import require
from attnlab.limits.verification.several import NAMES, ROUNDED, Head, SeveralHeads, lowest_products
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

LEAK = float(np.exp(-LEAST_MARGIN))


@dataclass(frozen=True, eq=False)
class Parts:
    """One attempt: tokens, kinds (the part of v that goes to each class), Y, K, D, and the bounds
    of their errors.
    """

    t: float
    leader: np.ndarray  # (H, m)
    x: tuple[np.ndarray, np.ndarray]  # hi, lo
    kinds: list[frozenset[tuple[tuple[int, ...], Fraction]]]
    steady: np.ndarray  # (m,): whether K is 0 exactly
    Y: np.ndarray
    K: np.ndarray
    D: np.ndarray
    of_token: np.ndarray  # (d,): the error of a token
    inside: np.ndarray  # (m, d): of a difference inside a class, the part of one token
    of_K: np.ndarray  # (m, d)


class Heads(SeveralHeads[Parts]):
    """The state of a Limit, read and checked piece by piece."""

    def require_covered(self, heads: list[Head]) -> None:
        """Raise Failed unless there are several heads, multiples of I, and every token sees all."""
        require(
            self.limit.dynamics.mask.sees_all,
            "The proof is about softmax attention of all tokens in R^d, and this is another"
            " equation.",
        )
        require(
            len(heads) > 1, "This way is about heads with different scores, and there are none."
        )
        for given, V, *_ in heads:
            require(
                V[0, 0] > 0.0 and np.array_equal(V, V[0, 0] * np.eye(len(V))),
                f"V of head {given[0]} is not a positive multiple of I, and the proof is about"
                " those.",
            )

    @cached_property
    def factors(self) -> list[float]:
        """v_h of the different heads."""
        return [float(one.V[0, 0]) for one in self.heads]

    @property
    def total(self) -> float:
        """v = sum of v_h."""
        return float(np.array(self.factors).sum())

    @property
    def rate(self) -> float:
        """What tokens grow with: e^{rate t} is e^{vt}, and (1 + dt v)^(t/dt) in residual layers."""
        dt = self.limit.dynamics.dt
        return self.total if dt is None else float(np.log(1.0 + dt * self.total)) / dt

    @property
    def basis(self) -> np.ndarray:
        """The growing directions, (d, k)."""
        return np.eye(self.limit.x0.shape[1])

    @property
    def shrunk(self) -> float:
        """What errors are multiplied by when limits are unwound to the time 0."""
        return float(np.exp(-self.rate * self.begin))

    def unwound(self, points: np.ndarray) -> np.ndarray:
        """Limits (m, k) of tokens that start at the time `begin`, unwound to the time 0."""
        return points * self.shrunk

    def points(self, one: Parts) -> tuple[np.ndarray, np.ndarray]:
        """The limits of an attempt and their errors, (m, k), as if it started at the time 0."""
        factor = np.exp(-self.rate * one.t)
        points = np.asarray(one.Y * factor, dtype=float)
        return points, np.broadcast_to(np.asarray(one.of_token * factor, dtype=float), points.shape)

    def least_size(self) -> np.ndarray:
        """The size that the first tokens of the state have at least, (d,)."""
        return _largest(self.limit.x0) * np.exp(self.rate * self.begin)

    def later(self, one: Parts, s: float) -> np.ndarray:
        """z (m, d) a time s after the attempt's."""
        z = one.Y * np.exp(-self.rate * self.limit.t) + (s * one.K + one.D) * np.exp(
            -self.rate * (self.limit.t + s)
        )
        return np.asarray(z)

    def later_error(self, one: Parts, s: float) -> np.ndarray:
        """What the errors of the tokens do to z along coordinates that do not grow, (m, d): all of
        them grow here.
        """
        return np.zeros(one.Y.shape)

    def read_attempt(self, number: int) -> Parts:
        """One of the three attempts; the class condition is tested."""
        leader = self.values["leader"][number]
        tuples = [tuple(int(one) for one in column) for column in leader.T]
        classes: dict[tuple[int, ...], np.ndarray] = {}
        high, low = (part.astype(np.longdouble) for part in self.values["tokens"][number])
        x, v, rate = high + low, self.factors, np.longdouble(self.total)
        for a in sorted(set(leader.ravel().tolist())):
            require(
                all(tuples[b] == tuples[a] for b in tuples[a]),
                f"In the state of {NAMES[number]} token {a} leads, and does not listen to whom its"
                " leaders listen.",
            )
            classes[tuples[a]] = sum(one * x[b] for one, b in zip(v, tuples[a], strict=True)) / rate
        kinds, Y, K = [], np.zeros_like(x), np.zeros_like(x)
        for i, own in enumerate(tuples):
            shares: dict[tuple[int, ...], Fraction] = {}
            for one, b in zip(v, own, strict=True):
                shares[tuples[b]] = shares.get(tuples[b], Fraction(0)) + Fraction(one)
                K[i] += one * (x[b] - classes[tuples[b]])
            kinds.append(frozenset(shares.items()))
            Y[i] = (
                sum(float(share) * classes[which] for which, share in sorted(shares.items())) / rate
            )
        steady = np.array(
            [len(kind) == 1 and own in dict(kind) for kind, own in zip(kinds, tuples, strict=True)]
        )
        K[steady] = 0.0
        D = x - Y
        return self._with_errors(
            number,
            Parts(
                float(self.values["t"][number]),
                leader,
                (high, low),
                kinds,
                steady,
                Y,
                K,
                D,
                np.zeros(0),
                np.zeros(0),
                np.zeros(0),
            ),
        )

    def _with_errors(self, number: int, one: Parts) -> Parts:
        tolerance = float(self.values["tolerance"][number])
        size = _largest(one.x[0] + one.x[1])
        floor = (
            tolerance
            * np.maximum(self.values["start_size"][number], self.values["mixed_size"][number])
            + 2.0**-96 * size
        )
        extent = np.array(
            [_largest(one.D[[kind == other for other in one.kinds]]) for kind in one.kinds]
        )
        loose = ~one.steady[:, None]
        inside = floor + tolerance * extent + loose * 2.0**-50 * size + LEAK
        widest = _largest(one.D[np.unique(one.leader)])
        of_K = (
            loose
            * self.total
            * (2.0 * floor + 2.0 * tolerance * widest + 2.0**-51 * np.abs(one.K) + LEAK)
        )
        return Parts(
            one.t,
            one.leader,
            one.x,
            one.kinds,
            one.steady,
            one.Y,
            one.K,
            one.D,
            tolerance * size + LEAK,
            inside,
            of_K,
        )

    # ----------------------------------------------------------------------------------------------
    # the steps

    def check_equation(self) -> str:
        """The heads are multiples of I, with positive factors."""
        return (
            f"{len(self.heads)} different scores, V_h = v_h I with v_h > 0 and the sum v ="
            f" {self.total:.6g}."
        )

    def check_form(self) -> str:
        """The class condition, in all three attempts."""
        one = self.attempts[0]
        found = {one.kinds[a] for a in set(one.leader.ravel().tolist())}
        return (
            f"{len(one.kinds)} different tokens, {len(found)} class{'es' if len(found) > 1 else ''}"
            " of leaders."
        )

    def check_gaps(self) -> str:
        """Abel's test of all pairs of all heads."""
        smallest = np.inf
        for name, one in zip(NAMES, self.attempts, strict=True):
            size = float(np.log(np.abs(one.x[0] + one.x[1]).max()))
            margin = LEAST_MARGIN + float(np.log(max(len(self.same_as), 2))) + max(size, 0.0)
            dt = self.limit.dynamics.dt
            if dt is not None:  # a layer leaks at once
                margin += 3.0 + 2.0 * float(np.log(1.0 + dt * self.total))
            for h in range(len(self.heads)):
                slack = np.asarray(self._slack(one, h, margin), dtype=float)
                row, column = np.unravel_index(np.argmin(slack), slack.shape)
                require(
                    slack[row, column] >= -ROUNDED * margin,
                    f"In the state of {name} the gap of row {int(row)} of the scores {h} to token"
                    f" {int(column)} is not shown to stay open.",
                )
                smallest = min(smallest, float(slack[row, column]) / margin)
            if one is self.attempts[0]:
                self.numbers |= {"margin": margin, "mu": self.rate / 2.0}
        pairs = len(self.heads) * len(self.copies) * (len(self.copies) - 1)
        self.numbers |= {"pairs": pairs, "slack": smallest}
        return (
            f"all {pairs} gaps stay above G e^(v s / 2) for ever, G = {self.numbers['margin']:.4g}."
        )

    def _slack(self, one: Parts, h: int, margin: float) -> np.ndarray:
        """The smallest partial sum of each gap of a head, (m, m), infinite at the leader."""
        v, m = self.rate, len(one.kinds)
        lead = one.leader[h]
        numbered = {kind: number for number, kind in enumerate(dict.fromkeys(one.kinds))}
        kind = np.array([numbered[one_kind] for one_kind in one.kinds])
        same = (kind[lead][:, None] == kind)[:, :, None]
        token, high, low = one.of_token, *one.x
        left = [
            (one.Y, np.broadcast_to(token, one.Y.shape)),
            (one.K, one.of_K),
            (one.D, one.inside + 2.0 * token),
        ]
        near = (high[lead][:, None] - high) + (low[lead][:, None] - low)
        right = [
            (
                np.where(same, 0.0, one.Y[lead][:, None] - one.Y),
                np.where(same, 0.0, 2.0 * token + 0.0 * near),
            ),
            (0.0 * near - one.K, 0.0 * near + one.of_K),
            (
                np.where(same, near, one.D[lead][:, None] - one.D),
                np.where(same, one.inside[lead][:, None] + one.inside, 4.0 * token + 0.0 * near),
            ),
        ]
        low_of = np.zeros((3, 3, m, m), dtype=np.longdouble)
        for p, u in enumerate(left):
            for q, w in enumerate(right):
                low_of[p, q] = lowest_products(u, self.heads[h], w)
        bonus = np.log(self.copies)
        fast = low_of[0, 0]  # of e^{2vs}
        slope = low_of[0, 1] + low_of[1, 0]  # of s e^{vs}
        middle = fast + low_of[0, 2] + low_of[2, 0]
        rest = middle - margin
        sums = [
            fast,
            fast + slope / v,
            middle,
            rest,
            rest + low_of[1, 1] * 8.0 / v**2,
            rest + (low_of[1, 2] + low_of[2, 1]) * 2.0 / v,
            rest + low_of[2, 2] + bonus[lead][:, None] - bonus,
        ]
        found = np.min(sums, axis=0)
        found[np.arange(m), lead] = np.inf
        return found

    def check_range(self) -> str:
        """z stays inside of what the first tokens span along each coordinate; so must its limit."""
        x0, points = self.limit.x0, self.limit.points
        slack = self.limit.error + 1e-9 * np.abs(x0).max(initial=1e-300)
        require(
            (points >= x0.min(axis=0) - slack) & (points <= x0.max(axis=0) + slack),
            "A limit lies outside of what the first tokens span: the state belongs to another"
            " start.",
        )
        return "the limits lie inside of what the first tokens span."


def _largest(x: np.ndarray) -> np.ndarray:
    """The largest coordinate of tokens x (m, d) along all axes; 0 along those that are 0 for all.
    Their rates are equal.
    """
    return np.where((x == 0).all(axis=0), 0.0, np.abs(x).max())


@ways.register("heads")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of several heads."""
    return Heads(limit).steps("classes")
