"""The way of most limits: from a stored state on, no row changes its leader, and two perturbed
replicas end in the same limit.

The state of each of the three attempts is checked in plain NumPy (gaps.py) and by the compiled code
that found the limit. Labels, leaders, points, their error and the grade must be the ones that
follow from the states.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from attnlab.limits.attempt import MERGED
from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING
from attnlab.limits.replicas import REPLICA_ERROR, SAME_POINTS
from attnlab.limits.state import FROZEN_ARRAYS
from attnlab.limits.verification import ways
from attnlab.limits.verification.compiled import find_doubt
from attnlab.limits.verification.equation import (
    EPSILON,
    Equation,
    read_equation,
    read_number,
)
from attnlab.limits.verification.follows import (
    Expected,
    check_events,
    check_later,
    check_limit,
    check_range,
    labels_of,
)
from attnlab.limits.verification.gaps import Gaps, Tokens, measure_gaps
from attnlab.limits.verification.record import Failed, require
from attnlab.limits.verification.start import check_digest, check_equal, read_same_as
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

NUMBERS = {"least_margin": LEAST_MARGIN, "rounding": ROUNDING, "leak": 2.0 * np.exp(-LEAST_MARGIN)}
"""The thresholds of the certificate, limits/certificate.py."""

LARGEST_SHIFT = 1000
"""Of the scale 2^shift: the frozen flow ends at lambda_1 t = 600."""

FLOOR = 0.5
"""Error bounds are at least tolerance times size when a state is made; half of that is asked
for.
"""

MOST_TERMS = 1e9
"""Products up to which the plain check looks at all rows. Beyond, it takes rows evenly apart; the
compiled check takes all.
"""

NAMES = ("the original", "the first replica", "the second replica")

NOT_CHECKED = (
    (
        "That the first tokens lead to this state: it was integrated, with the error bounds that it"
        " has. `--again` does it again."
    ),
    "That the state was computed with the digits and the tolerance that it says.",
    "The changes of leader before the state, and z at earlier times.",
)


class Frozen:
    """The states of a Limit, read and checked piece by piece."""

    def __init__(self, limit: Limit):
        self.limit, self.values = limit, limit.state.values
        self.numbers: dict[str, float] = {}

    @cached_property
    def equation(self) -> Equation:
        """The equation in the stored eigen-coordinates."""
        return read_equation(self.limit.dynamics, self.values)

    @cached_property
    def begin(self) -> float:
        """The time at which the integration began."""
        return read_number(self.values, "begin")

    @cached_property
    def same_as(self) -> np.ndarray:
        """For each token the first one that is equal to it, (n,)."""
        return read_same_as(self.values, len(self.limit.x0))

    @property
    def tokens(self) -> np.ndarray:
        """The numbers of the different tokens."""
        return np.unique(self.same_as)

    @cached_property
    def attempts(self) -> list[Tokens]:
        """The three attempts, with shapes and ranges checked."""
        n, d = len(self.tokens), len(self.equation.rates)
        copies = np.bincount(self.same_as, minlength=len(self.same_as))[self.tokens]
        for name in FROZEN_ARRAYS:
            array, is_number = self.values[name], name[0].isupper()
            number = "f" if "error" in name else self.equation.rates.dtype.kind
            wanted = number if is_number else "b" if name == "is_alive" else "i"
            shape = (3, n, d) if is_number else (3, n)
            is_double = array.dtype in (np.float64, np.complex128) or not is_number
            require(
                array.shape == shape and array.dtype.kind == wanted and is_double,
                f"{name} of the state must have the shape {shape} in double precision.",
            )
            require(
                np.isfinite(array).all()
                and (not is_number or "error" not in name or (array >= 0.0).all()),
                f"{name} of the state must be finite, and errors must not be negative.",
            )
            if name in ("leader", "root", "base"):
                require(
                    (array >= 0).all() and (array < n).all(),
                    f"{name} of the state must name tokens of it.",
                )
        t, shift = self.values["t"], self.values["shift"]
        require(
            t.shape == (3,)
            and t.dtype == float
            and np.isfinite(t).all()
            and (t >= 0.0).all()
            and float(t.max()) * float(self.equation.rates.real.max()) < 1000.0,
            "t of the state must be three times.",
        )
        require(
            shift.shape == (3,)
            and shift.dtype.kind == "i"
            and (shift >= 0).all()
            and (shift <= LARGEST_SHIFT).all(),
            "shift of the state must be three exponents.",
        )
        arrays = [{name: self.values[name][i] for name in FROZEN_ARRAYS} for i in range(3)]
        return [
            Tokens(**arrays[i], t=float(t[i]), shift=int(shift[i]), copies=copies) for i in range(3)
        ]

    @cached_property
    def moved(self) -> np.ndarray:
        """What the rates of each attempt were moved by, (3, d): replicas vary V, too."""
        rates = self.equation.rates
        if "rates_moved" not in self.values:  # files of earlier versions: V was not varied
            return np.zeros((3, len(rates)))
        array = self.values["rates_moved"]
        require(
            array.shape == (3, len(rates)) and np.isfinite(array).all() and not array[0].any(),
            "rates_moved of the state must be numbers for two replicas.",
        )
        dt = self.limit.dynamics.dt
        off = 8.0 * EPSILON * self.equation.condition * float(np.linalg.norm(self.equation.V, 2))
        most = off if dt is None else off * np.exp(-rates.real * dt)
        require(
            np.abs(array) <= 0.0 if self.equation.is_exact else np.abs(array) <= 3.0 * most,
            "The rates of a replica are moved by more than rounding.",
        )
        return array

    # ----------------------------------------------------------------------------------------------
    # the steps

    def check_equation(self) -> str:
        """V and the eigen-data of the state belong together."""
        k = int(self.equation.is_growing.sum())
        require(k > 0, "V has no growing direction, and this way is about those.")
        grow = f"{k} of {len(self.equation.rates)} grow"
        return (
            f"the stored eigenvectors are those of V (condition {self.equation.condition:.3g});"
            f" {grow}."
        )

    def check_start(self) -> str:
        """x0, weights and options are the ones that the state was computed from; equal tokens are
        equal.
        """
        x0, dynamics = self.limit.x0, self.limit.dynamics
        if self.begin == 0.0:
            check_equal(x0, dynamics.mask.is_causal, self.same_as)
        rounding = 1e-9 * float(np.abs(x0).max())
        require(
            np.abs(x0 - x0[self.same_as]) <= rounding,
            "The state takes tokens as equal that differ in x0.",
        )
        if dynamics.mask.is_causal:
            block = int(np.argmin(self.same_as == 0)) if (self.same_as != 0).any() else len(x0)
            require(
                np.array_equal(self.same_as[block:], np.arange(block, len(x0))),
                "Under the causal mask only the first tokens can stay equal, and the state takes"
                " others as equal.",
            )
        return check_digest(self.limit)

    def check_maps(self) -> str:
        """Every leader leads itself, every follower lies beside its root."""
        for name, one in zip(NAMES, self.attempts, strict=True):
            alive = one.is_alive
            require(
                np.array_equal(one.leader[one.leader][alive], one.leader[alive]),
                f"In the state of {name} a leader follows another token.",
            )
            require(
                np.array_equal(one.root[alive], one.leader[alive])
                and np.array_equal(one.root[one.root], one.root)
                and alive[one.root].all()
                and alive[one.leader].all(),
                f"In the state of {name} roots and leaders differ.",
            )
            roots = np.unique(one.root)
            require(
                not one.D[roots].any() and not one.D_error[roots].any(),
                f"In the state of {name} a leader has an offset to itself.",
            )
            if self.limit.dynamics.mask.is_causal:
                require(
                    one.leader <= np.arange(len(one.leader)),
                    f"In the state of {name} a token follows one that it does not see.",
                )
        groups = len(np.unique(self.attempts[0].root))
        return (
            f"{len(self.tokens)} different tokens follow {groups} leaders, which follow themselves."
        )

    def check_merged(self) -> str:
        """Tokens whose gaps are not looked at cannot be told from their root."""
        grows, count = self.equation.is_growing, int((~self.attempts[0].is_alive).sum())
        for name, one in zip(NAMES, self.attempts, strict=True):
            unwound = np.exp(-self.equation.rates.real[grows] * one.t)
            size = 2.0**one.shift * np.abs((one.grown + one.D)[:, grows]).max(axis=0) * unwound
            require(
                (self._moves(one) <= 1.001 * MERGED * size)[~one.is_alive],
                f"In the state of {name} a token is called one with its leader, and is not close"
                " to it.",
            )
        return (
            f"{count or 'none'} of {len(self.tokens)} different tokens have merged with their"
            " leader below rounding."
        )

    def check_errors(self) -> str:
        """No error bound is smaller than the arithmetic can keep."""
        tolerance, digits = self.values["tolerance"], self.limit.digits
        least = np.array([1.0, 10.0, 10.0]) * (1e-11 if digits <= 16 else 10.0 ** (9.0 - digits))
        require(
            tolerance.shape == (3,)
            and tolerance.dtype == float
            and (tolerance >= 0.999 * np.maximum(least, 1e-15)),
            f"The state claims a tolerance that {digits} digits do not have.",
        )
        began = np.exp(self.equation.rates * self.begin)
        start = np.abs(self.equation.coordinates(self.limit.x0) * began).max(axis=0)
        for name, one, part in zip(NAMES, self.attempts, tolerance, strict=True):
            decay = np.exp(np.minimum(self.equation.rates.real, 0.0) * one.t)
            floor = FLOOR * part * start * decay * 2.0 ** -float(one.shift)
            roots = np.unique(one.root)
            used = np.unique(one.base[roots])
            is_root = np.arange(len(one.root)) == one.root
            for what, value, error, is_needed in (
                ("references", one.Y[used], one.Y_error[used], np.ones(len(used), bool)),
                ("leaders", one.E[roots], one.E_error[roots], one.E[roots].any(axis=1)),
                ("followers", one.D, one.D_error, ~is_root & one.is_alive),
            ):
                enough = np.maximum(FLOOR * part * np.abs(value), floor)[is_needed]
                require(
                    error[is_needed] >= enough,
                    f"The error bounds of the {what} of {name} are smaller than the arithmetic"
                    " keeps.",
                )
        return (
            f"all are at least {FLOOR:g} times what the tolerance {tolerance[0]:.0e} gives for"
            " tokens of this size."
        )

    def check_gaps(self) -> str:
        """Abel's test of all pairs, in plain NumPy."""
        is_causal = self.limit.dynamics.mask.is_causal
        found: list[Gaps] = []
        for name, one in zip(NAMES, self.attempts, strict=True):
            gaps = measure_gaps(self.equation, one, is_causal, NUMBERS, self._rows(one))
            require(
                gaps.slack >= 0.0,
                f"In the state of {name} the gap of token {self._named(gaps.row)} between its"
                f" leader and token {self._named(gaps.column)} is not shown to stay open.",
            )
            found.append(gaps)
        first = found[0]
        self.numbers |= {
            "margin": first.margin,
            "mu": first.mu,
            "pairs": first.pairs,
            "smallest_gap": first.smallest,
            "slack": first.slack,
        }
        if not first.pairs:
            return "there is one token, and no gap."
        many = (
            "all"
            if len(self._rows(self.attempts[0])) == int(self.attempts[0].is_alive.sum())
            else "of a part of the rows all"
        )
        return (
            f"{many} {first.pairs} gaps stay above G e^(mu s) for ever, G = {first.margin:.4g}, mu"
            f" = {first.mu:.4g}. The smallest one is {first.smallest:.3g} G now; the smallest"
            f" partial sum is {first.slack:.3g} G."
        )

    def check_compiled(self) -> str:
        """The same by the code that found the limit."""
        for number, name in enumerate(NAMES):
            row, column = find_doubt(self.limit, self.attempts[number])
            require(
                row < 0,
                f"In the state of {name} the compiled check does not show that token"
                f" {self._named(row)} keeps its leader against token {self._named(column)}.",
            )
        return "the compiled check, which found the limit, agrees."

    def check_replicas(self) -> str:
        """Three states that are not copies of each other, with the same map or the same groups and
        points.
        """
        # tokens that are all 0 stay there, and a push relative to their size moves none of them
        for one, other in ((0, 1), (0, 2), (1, 2)):
            require(
                not self.limit.x0.any()
                or not all(
                    np.array_equal(self.values[name][one], self.values[name][other])
                    for name in ("Y", "E", "D")
                ),
                "Two of the three states are copies: a replica is perturbed, and computed"
                " otherwise.",
            )
        apart, size = self.expected.apart, self.expected.size
        if self.limit.grade == "exact":
            require(
                all(
                    np.array_equal(one.leader, self.attempts[0].leader) and one.is_alive.all()
                    for one in self.attempts
                ),
                "The grade is exact, and the replicas have other leaders.",
            )
        else:
            require(
                all(
                    np.array_equal(labels_of(one.root), labels_of(self.attempts[0].root))
                    for one in self.attempts
                ),
                "The replicas have other groups.",
            )
            is_same = all(
                np.array_equal(one.leader, self.attempts[0].leader) and one.is_alive.all()
                for one in self.attempts
            )
            require(
                is_same or apart <= SAME_POINTS * size,
                f"The points of the replicas are {apart:.2g} apart.",
            )
        require(
            self.limit.error >= 0.999 * REPLICA_ERROR * apart,
            f"The replicas are {apart:.2g} apart, and the error of the limit is "
            f"{self.limit.error:.2g}: it must be ten times that.",
        )
        self.numbers["replicas_apart"] = apart
        return f"both end in the same limit; their points are {apart:.2g} apart at most."

    def check_distinct(self) -> str:
        """Different labels have limits that differ by more than their error, in the original and in
        the replicas.
        """
        one, grows = self.attempts[0], self.equation.is_growing
        roots = np.unique(one.root)
        for r in roots:
            others = roots[roots > r]
            is_far = (one.base[others] != one.base[r])[:, None]
            apart = (
                one.E[r]
                - one.E[others]
                + np.where(is_far, one.Y[one.base[r]] - one.Y[one.base[others]], 0.0)
            )
            error = (
                one.E_error[r]
                + one.E_error[others]
                + np.where(is_far, one.Y_error[one.base[r]] + one.Y_error[one.base[others]], 0.0)
            )
            is_distinct = (np.abs(apart) > error)[:, grows].any(axis=1)
            if not is_distinct.all():
                pair = (
                    f"{self._named(int(r))} and {self._named(int(others[np.argmin(is_distinct)]))}"
                )
                raise Failed(
                    f"The limits of tokens {pair} cannot be told apart within their errors."
                )
        return f"the {len(roots)} limits differ by more than their errors."

    @cached_property
    def expected(self) -> Expected:
        """What the Limit must say, by the states."""
        tokens, number = np.unique(self.same_as, return_inverse=True)
        points, errors = zip(
            *(
                self._points(one, moved)
                for one, moved in zip(self.attempts, self.moved, strict=True)
            ),
            strict=True,
        )
        apart = max(float(np.abs(points[0] - other).max(initial=0.0)) for other in points[1:])
        one = self.attempts[0]
        first = tokens[labels_of(one.root)][number]
        chosen = one.leader
        if self.limit.grade != "exact":
            # a group has no leader by name if a token of it was glued, or replicas name another
            open_groups = {
                int(one.root[i])
                for other in self.attempts
                for i in np.flatnonzero(~other.is_alive | (other.root != one.root))
            }
            chosen = np.array([-1 if root in open_groups else root for root in one.root])
        error, full = (
            float(errors[0].max(initial=0.0)),
            np.zeros((len(tokens), len(self.equation.rates))),
        )
        full[:, self.equation.is_growing] = points[0]
        unwound = self.equation.unwound(full, self.begin)
        return Expected(
            labels=np.unique(first, return_inverse=True)[1],
            leaders=np.where(chosen < 0, -1, tokens[chosen])[number],
            points=unwound[:, self.equation.is_growing][number],
            error=error,
            most=max(error, REPLICA_ERROR * apart),
            apart=apart,
            basis=self.values["basis"][:, self.equation.is_growing],
            t=one.t + self.begin,
            size=max(float(np.abs(points[0]).max(initial=0.0)), 1e-300),
        )

    def _points(self, one: Tokens, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(points, errors) (n, k) of an attempt, whose rates are moved: where its leaders are in z,
        along the growing directions.
        """
        rates, scale, grows = self.equation.rates + moved, 2.0**one.shift, self.equation.is_growing
        c = scale * one.grown * np.exp(-rates * one.t)
        error = scale * one.grown_error * np.exp(-rates.real * one.t)
        points, error = (
            (c @ self.equation.back.T).real[:, grows],
            (error @ np.abs(self.equation.back).T)[:, grows],
        )
        # if another token takes the lead in a merged group, the limit moves by its offset at most
        return points, error + 2.0 * self._moves(one)[~one.is_alive].max(initial=0.0)

    def _moves(self, one: Tokens) -> np.ndarray:
        """How far a limit moves along each growing direction if this token takes the lead of its
        root, (n, k).
        """
        grows = self.equation.is_growing
        return (
            2.0**one.shift
            * np.abs(one.D[:, grows])
            * np.exp(-self.equation.rates.real[grows] * one.t)
        )

    def _rows(self, one: Tokens) -> np.ndarray:
        """The rows that the plain check looks at: all of them, or evenly apart where that would
        take minutes.
        """
        rows = np.flatnonzero(one.is_alive)
        every = int(np.ceil(len(rows) ** 2 * (len(self.equation.rates) + 2.0) ** 2 / MOST_TERMS))
        return rows[:: max(every, 1)]

    def _named(self, token: int) -> int:
        return int(self.tokens[token]) if 0 <= token < len(self.tokens) else token


@ways.register("frozen")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of a limit with three stored states."""
    found = Frozen(limit)
    yield Step("equation", found.check_equation, found.numbers, NOT_CHECKED)
    yield Step("start", found.check_start)
    yield Step("map of leaders", found.check_maps)
    yield Step("merged tokens", found.check_merged)
    yield Step("error bounds", found.check_errors)
    yield Step("gaps", found.check_gaps)
    yield Step("gaps again", found.check_compiled)
    yield Step("replicas", found.check_replicas)
    yield Step("different limits", found.check_distinct)
    yield Step("what the limit says", lambda: check_limit(limit, found.expected))
    yield Step("range", lambda: check_range(limit, found.equation))
    yield Step("changes of leader", lambda: check_events(limit))
    yield Step(
        "later tokens",
        lambda: check_later(limit, found.equation, found.attempts[0], found.begin, found.same_as),
    )
