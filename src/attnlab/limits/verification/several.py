"""What the checks of several heads share: the state of three attempts, their errors, what the limit
must say. `heads.py` and `closed.py` have the closed forms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from attnlab.limits.certificate import ROUNDING
from attnlab.limits.problem import is_covered
from attnlab.limits.products import score_matrices, sum_of
from attnlab.limits.replicas import REPLICA_ERROR, SAME_POINTS
from attnlab.limits.verification.equation import read_number
from attnlab.limits.verification.follows import Expected, check_limit, check_no_events
from attnlab.limits.verification.record import require
from attnlab.limits.verification.start import check_digest, check_equal, read_same_as
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

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


class Head(NamedTuple):
    """Given heads with equal scores."""

    given: list[int]
    V: np.ndarray  # (d, d), the sum of theirs
    M: np.ndarray  # (d, d), beta Q^T K
    M_error: np.ndarray  # (d, d): 0 where scores are taken as given


class Attempt(Protocol):
    """The state that one of the three attempts has come to."""

    @property
    def t(self) -> float:
        """Its time."""

    @property
    def leader(self) -> np.ndarray:
        """The leaders of each head, (H, m)."""

    @property
    def kinds(self) -> list[Any]:
        """Equal where two tokens have the same limit."""


One = TypeVar("One", bound=Attempt)


class SeveralHeads(ABC, Generic[One]):
    """The state of a Limit, read and checked piece by piece. M_error: of beta Q^T K of the given
    heads, (h, d, d), where these are not taken as given.
    """

    def __init__(self, limit: Limit, M_error: np.ndarray | None = None):
        self.limit, self.values, self.M_error = limit, limit.state.values, M_error
        self.numbers: dict[str, float] = {}

    @cached_property
    def heads(self) -> list[Head]:
        """The different heads that do something."""
        dynamics = self.limit.dynamics
        require(
            dynamics.geometry.is_linear
            and dynamics.kernel.is_softmax
            and dynamics.feedforward.is_none
            and is_covered(dynamics),
            "The proof is about softmax attention in R^d, and this is another equation.",
        )
        weights, groups = dynamics.weights, dict[bytes, list[int]]()
        V, M = weights.full_V, score_matrices(weights) + 0.0  # -0.0 is 0.0
        for h in range(weights.heads):
            if V[h].any():
                groups.setdefault(M[h].tobytes(), []).append(h)
        error = np.zeros(M.shape) if self.M_error is None else self.M_error
        found = [
            Head(of, sum_of(V[of]), dynamics.beta * M[of[0]], error[of[0]])
            for of in groups.values()
        ]
        found = [one for one in found if one.V.any()]
        self.require_covered(found)
        return found

    @abstractmethod
    def require_covered(self, heads: list[Head]) -> None:
        """Raise Failed if the proof is not about these heads."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """The largest growth rate."""

    @property
    @abstractmethod
    def basis(self) -> np.ndarray:
        """The growing directions, (d, k)."""

    @property
    @abstractmethod
    def shrunk(self) -> float:
        """What errors are multiplied by when limits are unwound to the time 0."""

    @abstractmethod
    def unwound(self, points: np.ndarray) -> np.ndarray:
        """Limits (m, k) of tokens that start at the time `begin`, unwound to the time 0."""

    @abstractmethod
    def least_size(self) -> np.ndarray:
        """The size that the first tokens of the state have at least, (d,)."""

    @abstractmethod
    def points(self, one: One) -> tuple[np.ndarray, np.ndarray]:
        """The limits of an attempt and their errors, (m, k), as if it started at the time 0."""

    @abstractmethod
    def later(self, one: One, s: float) -> np.ndarray:
        """z (m, d) a time s after the attempt's."""

    @abstractmethod
    def later_error(self, one: One, s: float) -> np.ndarray:
        """What the errors of the tokens do to z along coordinates that do not grow, (m, d)."""

    @abstractmethod
    def read_attempt(self, number: int) -> One:
        """One of the three attempts, from arrays of the right shapes."""

    @abstractmethod
    def check_equation(self) -> str:
        """The heads are such as the proof is about."""

    @abstractmethod
    def check_form(self) -> str:
        """The closed form, in all three attempts."""

    @abstractmethod
    def check_gaps(self) -> str:
        """Abel's test of all pairs of all heads."""

    @abstractmethod
    def check_range(self) -> str:
        """z stays inside of what the first tokens span; so must its limit."""

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
    def attempts(self) -> list[One]:
        """The three attempts, with shapes and ranges checked."""
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
        return [self.read_attempt(number) for number in range(3)]

    def check_start(self) -> str:
        """x0, weights and options are the ones that the state was computed from; equal tokens are
        equal.
        """
        x0 = self.limit.x0
        if self.begin == 0.0:
            check_equal(x0, self.limit.dynamics.mask.is_causal, self.same_as)
        require(
            np.abs(x0 - x0[self.same_as]) <= 1e-9 * float(np.abs(x0).max()),
            "The state takes tokens as equal that differ.",
        )
        return check_digest(self.limit)

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
        kept = by_head[[one.given[0] for one in self.heads]]
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
        for row, head in enumerate(self.heads):
            found[head.given] = np.where(is_open[row], -1, tokens[one.leader[row]])[number]
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

    def steps(self, form: str) -> Iterator[Step]:
        """The steps of the check; form: the name of the one that is about the closed form."""
        yield Step("equation", self.check_equation, self.numbers, NOT_CHECKED)
        yield Step("start", self.check_start)
        yield Step(form, self.check_form)
        yield Step("errors", self.check_errors)
        yield Step("gaps", self.check_gaps)
        yield Step("replicas", self.check_replicas)
        yield Step("distinct limits", self.check_distinct)
        yield Step("range", self.check_range)
        yield Step("what the limit says", self.check_limit)
        yield Step("later times", self.check_later)
        yield Step("changes of leader", lambda: check_no_events(self.limit))


Part = tuple[np.ndarray, np.ndarray]
"""Numbers and their errors."""


def lowest_products(left: Part, head: Head, right: Part) -> np.ndarray:
    """The least u^T M w for u (rows, d), w (rows or 1, m, d) and the scores of a head, all within their
    errors, (rows, m).
    """
    (u, du), (w, dw) = left, right
    shape = (len(u), *w.shape[1:])

    def product(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("ib,ikb->ik", rows, np.broadcast_to(columns, shape)))

    size, far, wide = np.abs(head.M), np.abs(u), np.abs(w)
    modulus = product(far @ size, wide)
    most = product((far + du) @ (size + head.M_error), wide + dw)
    return np.asarray(product(u @ head.M, w) - (most - modulus) - ROUNDING * modulus)


def _firsts(one: Attempt) -> list[int]:
    """For each different token the first one of its kind."""
    return [one.kinds.index(kind) for kind in one.kinds]
