"""Exactly symmetric data: the stored tokens have the symmetry to the last digit, and the careful
check passes on them again.

The gaps are checked by the code that found the limit (limits/quotient.py), which computes with the
stored digits. That the tokens are exactly symmetric, and that the symmetry is one of the equation,
is checked apart from it, with whole fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

import numpy as np

from attnlab.limits.arithmetic import Arithmetic
from attnlab.limits.careful import CarefulFlow
from attnlab.limits.certificate import make_certificate
from attnlab.limits.problem import Problem
from attnlab.limits.products import score_matrices
from attnlab.limits.quotient import MOST_TOKENS, Quotient, certify_again
from attnlab.limits.settings import Settings
from attnlab.limits.symmetry import Symmetry, find_symmetry
from attnlab.limits.verification import ways
from attnlab.limits.verification.compiled import stored_problem, unlimited
from attnlab.limits.verification.equation import Equation, read_equation, read_number
from attnlab.limits.verification.follows import Expected, check_limit, check_no_events, check_range
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.start import check_digest, check_equal
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

LARGEST = 1e200
"""Of a stored coordinate."""

MOST_DIGITS = 1000

NOT_CHECKED = (
    "That the first tokens lead to the stored tokens. `--again` integrates them again.",
    "The gaps by a second implementation: for symmetric data there is one, with many digits.",
    "That the tokens were computed with the tolerance that the state says.",
)


class Symmetric:
    """The stored tokens of a symmetric Limit and of its replicas."""

    def __init__(self, limit: Limit):
        self.limit, self.values = limit, limit.state.values

    @cached_property
    def equation(self) -> Equation:
        """The equation in the stored eigen-coordinates."""
        return read_equation(self.limit.dynamics, self.values)

    @cached_property
    def problem(self) -> Problem:
        """The same as the careful code wants it."""
        return stored_problem(self.limit)

    @cached_property
    def symmetry(self) -> Symmetry:
        """The symmetry of the start, found again."""
        found = find_symmetry(self.problem, np.array(self.values["start"]))
        if found is None:
            raise Failed("The first tokens have no symmetry that is one of the equation too.")
        return found

    @cached_property
    def answers(self) -> list[Quotient]:
        """What follows from each of the three sets of tokens."""
        found = []
        for number in range(3):
            rtol, t = float(self.values["rtol"][number]), float(self.values["t"][number])
            settings = Settings(rtol=rtol, digits=self.limit.digits)
            flow = CarefulFlow(
                self.problem, np.array(self.values["start"]), settings, unlimited(), self.symmetry
            )
            flow.x, flow.t = flow.numbers.from_parts(self.values["tokens"][number]), t
            found.append(
                certify_again(self.problem, flow, self.symmetry, make_certificate(self.problem))
            )
        return found

    def check_start(self) -> str:
        """x0, weights and options are those of the state, and its arrays have the right shapes."""
        x0, start, begin = self.limit.x0, self.values["start"], read_number(self.values, "begin")
        n, d = x0.shape
        same = self.values["same_as"]
        require(
            self.equation.is_growing.any(),
            "V has no growing direction, and this way is about those.",
        )
        require(
            start.shape == (n, d) and start.dtype == float and np.isfinite(start).all(),
            "start of the state must be the tokens.",
        )
        grown = self.equation.unwound(x0 @ self.equation.inverse.T, -begin) @ self.values["basis"].T
        require(
            (
                np.array_equal(start, x0)
                if begin == 0.0
                else np.abs(start - grown) <= 1e-9 * np.abs(start).max()
            ),
            "The state starts from other tokens than the file has.",
        )
        said = check_digest(self.limit)
        check_equal(start, self.limit.dynamics.mask.is_causal, same)
        tokens, count = self.values["tokens"], len(np.unique(same))
        require(
            count <= MOST_TOKENS, f"Symmetric limits have at most {MOST_TOKENS} different tokens."
        )
        require(
            tokens.ndim == 4
            and tokens.shape[0] == 3
            and tokens.shape[2:] == (count, d)
            and tokens.dtype == float
            and (np.abs(tokens) < LARGEST).all(),
            "tokens of the state have another shape.",
        )
        require(
            16 <= self.limit.digits <= MOST_DIGITS,
            f"{self.limit.digits} digits are not computed with.",
        )
        require(
            tokens.shape[1] == Arithmetic(self.limit.digits).part_count,
            f"The tokens are not stored with {self.limit.digits} digits.",
        )
        least = 1e-12 if self.limit.digits <= 16 else 10.0 ** (8.0 - self.limit.digits)
        for name, low in (("t", 0.0), ("rtol", 0.999 * least)):
            array = self.values[name]
            require(
                array.shape == (3,)
                and array.dtype == float
                and np.isfinite(array).all()
                and (array >= low).all(),
                f"{name} of the state must be three numbers, which {self.limit.digits} digits"
                " allow.",
            )
        return said

    def check_symmetry(self) -> str:
        """Each element maps V, Q^T K and the stored tokens to themselves, exactly."""
        V, M = self.equation.V, score_matrices(self.limit.dynamics.weights)[0]
        sets = [_fractions(parts) for parts in self.values["tokens"]]
        for element in self.symmetry.elements:
            order, sign = element.order, element.sign
            for matrix in (V, M):
                require(
                    np.array_equal(matrix[np.ix_(order, order)] * np.outer(sign, sign), matrix),
                    "A symmetry is none of the equation.",
                )
            for tokens in sets:
                moved = [
                    [int(sign[a]) * row[order[a]] for a in range(len(order))] for row in tokens
                ]
                require(
                    all(moved[i] == tokens[int(element.image[i])] for i in range(len(tokens))),
                    "The stored tokens do not have the symmetry of the start.",
                )
        return (
            f"{len(self.symmetry.elements)} signed permutations leave the equation and all stored"
            " tokens as they are, exactly."
        )

    def check_gaps(self) -> str:
        """The careful check passes on all three sets of tokens."""
        for name, one in zip(
            ("the tokens", "the first replica", "the second replica"), self.answers, strict=True
        ):
            require(
                one.kind == "certified",
                f"In the state of {name} it is not shown that token {one.row} keeps its leader.",
            )
        return (
            "no gap that the symmetry does not close ever closes, by the careful arithmetic, on the"
            " stored digits."
        )

    def check_replicas(self) -> str:
        """The replicas are no copies, and say the same."""
        tokens = self.values["tokens"]
        require(
            not any(np.array_equal(tokens[i], tokens[k]) for i, k in ((0, 1), (0, 2), (1, 2))),
            "A replica is a copy.",
        )
        first = self.answers[0]
        for replica in self.answers[1:]:
            require(
                _is_equal(first.leaders, replica.leaders)
                and _is_equal(first.labels, replica.labels),
                "The replicas disagree.",
            )
        require(
            self.limit.error >= 9.99 * self._apart(),
            f"The replicas are {self._apart():.2g} apart: the error must be ten times that.",
        )
        return f"both end in the same limit; their points are {self._apart():.2g} apart at most."

    def check_limit(self) -> str:
        """What the Limit says follows."""
        one, tokens = self.answers[0], self.problem.tokens
        number = np.unique(self.values["same_as"], return_inverse=True)[1]
        assert one.leaders is not None and one.labels is not None and one.points is not None
        first = np.array([int(tokens[np.argmax(one.labels == label)]) for label in one.labels])[
            number
        ]
        full = np.zeros((len(tokens), len(self.equation.rates)))
        full[:, self.equation.is_growing] = one.points
        begin = read_number(self.values, "begin")
        unwound = self.equation.unwound(full, begin)
        require(self.limit.grade == "exact", "A symmetric limit has the grade exact.")
        return check_limit(
            self.limit,
            Expected(
                labels=np.unique(first, return_inverse=True)[1],
                leaders=np.where(one.leaders >= 0, tokens[np.maximum(one.leaders, 0)], -1)[number],
                points=unwound[:, self.equation.is_growing][number],
                error=one.error,
                most=max(one.error, 10.0 * self._apart()),
                basis=self.values["basis"][:, self.equation.is_growing],
                t=one.t + begin,
            ),
        )

    def _apart(self) -> float:
        first, *replicas = (np.asarray(one.points) for one in self.answers)
        return max(float(np.abs(first - replica).max(initial=0.0)) for replica in replicas)


def _is_equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)


def _fractions(parts: np.ndarray) -> list[list[Fraction]]:
    """Tokens (parts, n, d) as whole fractions: sums of doubles, exactly."""
    _, n, d = parts.shape
    return [
        [sum(map(Fraction, parts[:, i, a].tolist()), Fraction(0)) for a in range(d)]
        for i in range(n)
    ]


@ways.register("symmetric")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of a symmetric limit."""
    found = Symmetric(limit)
    yield Step(
        "equation",
        lambda: (
            f"the stored eigenvectors are those of V (condition {found.equation.condition:.3g})."
        ),
        None,
        NOT_CHECKED,
    )
    yield Step("start", found.check_start)
    yield Step("symmetry", found.check_symmetry)
    yield Step("gaps", found.check_gaps)
    yield Step("replicas", found.check_replicas)
    yield Step("what the limit says", found.check_limit)
    yield Step("range", lambda: check_range(limit, found.equation))
    yield Step("changes of leader", lambda: check_no_events(limit))
