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

from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING
from attnlab.limits.problem import is_covered
from attnlab.limits.products import score_matrices, sum_of
from attnlab.limits.replicas import REPLICA_ERROR, SAME_POINTS
from attnlab.limits.verification import ways
from attnlab.limits.verification.equation import read_number
from attnlab.limits.verification.follows import Expected, check_limit, check_no_events
from attnlab.limits.verification.record import require
from attnlab.limits.verification.start import check_digest, check_equal, read_same_as
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

LEAK = float(np.exp(-LEAST_MARGIN))
FLOOR = 0.5
"""Start and tolerance are at least what the run must have had; half of that is asked for."""

ROUNDED = 1e-9
"""A partial sum may be below 0 by this part of G: that search and check round otherwise."""

LEAST_TOLERANCE = np.array([1e-13, 1e-12, 1e-12])
NAMES = ("the original", "the first replica", "the second replica")

NOT_CHECKED = (
    (
        "That the first tokens lead to this state: it was integrated, with the error bounds that it"
        " has. `--again` does it again."
    ),
    (
        "How large the tokens were when rows were last mixed, or leaders not in classes: errors"
        " inside a class rest on it."
    ),
    "z at earlier times.",
)


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


class Heads:
    """The state of a Limit, read and checked piece by piece."""

    def __init__(self, limit: Limit):
        self.limit, self.values = limit, limit.state.values
        self.numbers: dict[str, float] = {}

    @cached_property
    def heads(self) -> list[tuple[list[int], float, np.ndarray]]:
        """(the heads with equal scores, the sum of their v_h, beta Q^T K) for each of the different
        scores.
        """
        dynamics = self.limit.dynamics
        require(
            dynamics.geometry.is_linear
            and dynamics.kernel.is_softmax
            and dynamics.feedforward.is_none
            and is_covered(dynamics)
            and dynamics.mask.sees_all,
            "The proof is about softmax attention of all tokens in R^d, and this is another"
            " equation.",
        )
        weights = dynamics.weights
        found: list[tuple[list[int], np.ndarray]] = []
        full_V = weights.full_V
        for h, (V, M) in enumerate(zip(full_V, score_matrices(weights), strict=True)):
            if not V.any():
                continue
            same = next((one for one in found if np.array_equal(one[1], M)), None)
            if same is None:
                found.append(([h], M))
            else:
                same[0].append(h)
        totals = [(of, sum_of(full_V[of]), M) for of, M in found]
        kept = [one for one in totals if one[1].any()]
        require(len(kept) > 1, "This way is about heads with different scores, and there are none.")
        for of, V, _ in kept:
            require(
                V[0, 0] > 0.0 and np.array_equal(V, V[0, 0] * np.eye(len(V))),
                f"V of head {of[0]} is not a positive multiple of I, and the proof is about those.",
            )
        return [(of, float(V[0, 0]), dynamics.beta * M) for of, V, M in kept]

    @property
    def total(self) -> float:
        """v = sum of v_h."""
        return float(np.array([v for _, v, _ in self.heads]).sum())

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

    @cached_property
    def begin(self) -> float:
        """The time at which the integration began."""
        return read_number(self.values, "begin")

    @cached_property
    def same_as(self) -> np.ndarray:
        """For each token the first one that is equal to it, (n,)."""
        return read_same_as(self.values, len(self.limit.x0))

    @cached_property
    def copies(self) -> np.ndarray:
        """How many equal tokens each different one stands for, (m,)."""
        return np.unique(self.same_as, return_counts=True)[1]

    @cached_property
    def attempts(self) -> list[Parts]:
        """The three attempts, with shapes and ranges checked and the class condition tested."""
        m, d, H = len(self.copies), self.limit.x0.shape[1], len(self.heads)
        shapes = {
            "t": (3,),
            "tolerance": (3,),
            "leader": (3, H, m),
            "tokens": (3, 2, m, d),
            "start_size": (3, d),
            "mixed_size": (3, d),
        }
        for name, shape in shapes.items():
            array = self.values[name]
            require(
                array.shape == shape
                and array.dtype.kind == ("i" if name == "leader" else "f")
                and np.isfinite(array).all(),
                f"{name} of the state must be numbers of the shape {shape}.",
            )
        leader = self.values["leader"]
        require(
            (leader >= 0).all() and (leader < m).all(),
            "leader of the state must name tokens of it.",
        )
        require(
            (self.values["t"] >= 0.0).all() and float(self.values["t"].max()) * self.rate < 1000.0,
            "t of the state must be three times.",
        )
        return [self._parts(number) for number in range(3)]

    def _parts(self, number: int) -> Parts:
        leader = self.values["leader"][number]
        tuples = [tuple(int(one) for one in column) for column in leader.T]
        classes: dict[tuple[int, ...], np.ndarray] = {}
        high, low = (part.astype(np.longdouble) for part in self.values["tokens"][number])
        x, v, rate = high + low, [v for _, v, _ in self.heads], np.longdouble(self.total)
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

    def check_start(self) -> str:
        """x0, weights and options are the ones that the state was computed from; equal tokens are
        equal.
        """
        x0 = self.limit.x0
        if self.begin == 0.0:
            check_equal(x0, False, self.same_as)
        require(
            np.abs(x0 - x0[self.same_as]) <= 1e-9 * float(np.abs(x0).max()),
            "The state takes tokens as equal that differ.",
        )
        return check_digest(self.limit)

    def check_classes(self) -> str:
        """The class condition, in all three attempts."""
        one = self.attempts[0]
        found = {one.kinds[a] for a in set(one.leader.ravel().tolist())}
        return (
            f"{len(one.kinds)} different tokens, {len(found)} class{'es' if len(found) > 1 else ''}"
            " of leaders."
        )

    def check_errors(self) -> str:
        """No error bound is smaller than double precision can keep."""
        require(
            self.values["tolerance"] >= 0.999 * LEAST_TOLERANCE,
            "The state claims a tolerance that double precision does not keep.",
        )
        start = FLOOR * self.least_size()
        require(
            self.values["start_size"] >= start, "The first tokens are larger than the state says."
        )
        require(
            self.values["mixed_size"] >= self.values["start_size"],
            "Tokens were mixed at the start, and the state says smaller.",
        )
        tolerance = float(self.values["tolerance"][0])
        return (
            f"the tolerance is {tolerance:.0e}; errors inside a class count from when rows were"
            " mixed."
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
        M, v, m = self.heads[h][2], self.rate, len(one.kinds)
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
        for p, (u, du) in enumerate(left):
            for q, (w, dw) in enumerate(right):
                for a in range(len(M)):
                    for b in range(len(M)):
                        term = u[:, a, None] * M[a, b] * w[:, :, b]
                        most = (
                            (np.abs(u[:, a, None]) + du[:, a, None])
                            * abs(M[a, b])
                            * (np.abs(w[:, :, b]) + dw[:, :, b])
                        )
                        low_of[p, q] += term - (most - np.abs(term)) - ROUNDING * np.abs(term)
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

    def check_replicas(self) -> str:
        """Three states that are not copies of each other, with the same maps or the same kinds and
        points.
        """
        tokens = self.values["tokens"]
        # tokens that are all 0 stay there, and a push relative to their size moves none of them
        require(
            not self.limit.x0.any()
            or not any(np.array_equal(tokens[i], tokens[j]) for i, j in ((0, 1), (0, 2), (1, 2))),
            "Two of the three states are copies: a replica is perturbed, and computed otherwise.",
        )
        first = self.attempts[0]
        for other in self.attempts[1:]:
            require(_firsts(other) == _firsts(first), "In a replica other tokens end together.")
        is_same = all(np.array_equal(other.leader, first.leader) for other in self.attempts[1:])
        apart = self.expected.apart
        require(
            is_same or self.limit.grade == "group",
            "The grade is exact, and the replicas have other leaders.",
        )
        require(
            is_same or apart <= SAME_POINTS * self.expected.size,
            f"The points of the replicas are {apart:.2g} apart.",
        )
        require(
            self.limit.error >= 0.999 * REPLICA_ERROR * apart,
            f"The replicas are {apart:.2g} apart, and the error of the limit must be ten times"
            " that.",
        )
        self.numbers["replicas_apart"] = apart
        return f"both end in the same limit; their points are {apart:.2g} apart at most."

    def check_distinct(self) -> str:
        """Different labels have limits that differ by more than their error."""
        one = self.attempts[0]
        firsts = sorted(set(_firsts(one)))
        points, error = self.points(one)
        for number, i in enumerate(firsts):
            for j in firsts[number + 1 :]:
                require(
                    (np.abs(points[i] - points[j]) > 0.995 * (error[i] + error[j])).any(),
                    f"The limits of the different tokens {i} and {j} cannot be told apart within"
                    " their errors.",
                )
        return "limits that are called different differ by more than their errors."

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

    @cached_property
    def expected(self) -> Expected:
        """What the Limit must say, by the states."""
        tokens, number = np.unique(self.same_as, return_inverse=True)
        found = [self.points(one) for one in self.attempts]
        points, one, shrunk = [points for points, _ in found], self.attempts[0], self.shrunk
        apart = max(float(np.abs(points[0] - other).max(initial=0.0)) for other in points[1:])
        apart *= shrunk
        own = float(found[0][1].max()) * shrunk
        points = [self.unwound(one) for one in points]
        labels = np.unique(tokens[_firsts(one)][number], return_inverse=True)[1]
        by_head = self._by_head()
        kept = by_head[[of[0] for of, _, _ in self.heads]]
        leaders = np.where((kept == kept[0]).all(axis=0), kept[0], -1)
        size = float(np.abs(points[0]).max(initial=1e-300))
        return Expected(
            labels,
            leaders,
            points[0][number],
            0.999 * own,
            max(own, REPLICA_ERROR * apart),
            self.basis,
            one.t + self.begin,
            apart,
            size,
        )

    def _by_head(self) -> np.ndarray:
        """The leaders in each given head, (h, n), -1 where V_h = 0 or replicas differ."""
        tokens, number = np.unique(self.same_as, return_inverse=True)
        found = np.full((self.limit.dynamics.weights.heads, len(self.same_as)), -1)
        one = self.attempts[0]
        is_open = np.any([other.leader != one.leader for other in self.attempts[1:]], axis=0)
        for row, (of, _, _) in enumerate(self.heads):
            found[of] = np.where(is_open[row], -1, tokens[one.leader[row]])[number]
        return found

    def check_limit(self) -> str:
        """Labels, leaders of all heads, points, error and grade."""
        by_head = self.limit.head_leaders
        is_one = len(self.heads) == 1
        require(
            by_head is None
            if is_one
            else by_head is not None and np.array_equal(by_head, self._by_head()),
            "The leaders of the heads are not those of the state.",
        )
        is_same = all(
            np.array_equal(other.leader, self.attempts[0].leader) for other in self.attempts[1:]
        )
        require(
            self.limit.grade == ("exact" if is_same else "group"),
            f"The grade {self.limit.grade} does not follow.",
        )
        return check_limit(self.limit, self.expected)

    def check_later(self) -> str:
        """z at the times asked for, from the state on, is the closed form."""
        limit, one = self.limit, self.attempts[0]
        times = np.flatnonzero(limit.times >= limit.t)
        number = np.unique(self.same_as, return_inverse=True)[1]
        require(
            limit.z.shape == (len(limit.times), *limit.x0.shape)
            and limit.path.shape == (*limit.z.shape[:2], self.basis.shape[1]),
            "z and its path must have one place per time and token.",
        )
        for index in times:
            s = float(limit.times[index]) - limit.t
            z = self.later(one, s)
            path = z @ self.basis
            allowed = limit.error + 1e-9 * self.expected.size
            # coordinates that do not grow may be large in z, and what exceeds double precision is
            # not stored
            known = np.isfinite(limit.z[index])
            rounding = allowed + 1e-9 * np.abs(z).max(axis=0) + self.later_error(one, s)[number]
            require(
                (np.abs(limit.path[index] - path[number]) <= allowed).all()
                and (
                    (np.abs(limit.z[index] - z[number]) <= rounding)
                    | ~known & ~np.isfinite(z[number])
                ).all(),
                f"z at t = {limit.times[index]:g} is not where the state leads.",
            )
        return (
            f"z at {len(times)} later time{'s' if len(times) != 1 else ''} follows from the state."
        )


def _largest(x: np.ndarray) -> np.ndarray:
    """The largest coordinate of tokens x (m, d) along all axes; 0 along those that are 0 for all.
    Their rates are equal.
    """
    return np.where((x == 0).all(axis=0), 0.0, np.abs(x).max())


def _firsts(one: Parts) -> list[int]:
    """For each different token the first one of its kind."""
    return [one.kinds.index(kind) for kind in one.kinds]


@ways.register("heads")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of several heads."""
    one = Heads(limit)
    yield Step("equation", one.check_equation, one.numbers, NOT_CHECKED)
    yield Step("start", one.check_start)
    yield Step("classes", one.check_classes)
    yield Step("errors", one.check_errors)
    yield Step("gaps", one.check_gaps)
    yield Step("replicas", one.check_replicas)
    yield Step("distinct limits", one.check_distinct)
    yield Step("range", one.check_range)
    yield Step("what the limit says", one.check_limit)
    yield Step("later times", one.check_later)
    yield Step("changes of leader", lambda: check_no_events(limit))
