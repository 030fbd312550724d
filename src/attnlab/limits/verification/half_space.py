"""On the sphere with a simple dominant eigenvalue of V: the stored tokens lie on one side, checked
in exact rationals.

V is written in stored coordinates, whose matrix and inverse are only nearly eigenvectors; how far
they are off is bounded. Two discs of Gershgorin for the blocks 1 and d - 1 hold the dominant
eigenvalue and all others (docs/limits.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import gmpy2
import numpy as np

from attnlab.limits.problem import is_covered
from attnlab.limits.verification import ways
from attnlab.limits.verification.enclosed_numbers import as_fraction, as_number, norms, upwards
from attnlab.limits.verification.follows import check_no_events
from attnlab.limits.verification.record import require
from attnlab.limits.verification.start import check_digest
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

CLEAR = 1e-6
"""How far from the hyperplane tokens must be if they were integrated: more than an integrator is
off by."""

UNIT = 1e-8
NOT_CHECKED = (
    (
        "That the first tokens lead to the stored tokens, if these are later. `--again` integrates"
        " them again."
    ),
    "z at the times asked for.",
)


class HalfSpace:
    """A Limit whose tokens lie on one side."""

    def __init__(self, limit: Limit):
        self.limit = limit

    def value(self, name: str) -> np.ndarray:
        """An array of the state."""
        return self.limit.state.values[name]

    def check_equation(self) -> str:
        """The equation is one that the lemma is about."""
        dynamics, d = self.limit.dynamics, self.limit.x0.shape[1]
        require(
            dynamics.geometry.is_unit_sphere
            and dynamics.kernel.is_exponential
            and dynamics.dt is None
            and dynamics.feedforward.is_none
            and is_covered(dynamics)
            and dynamics.weights.heads == 1,
            "The lemma is about smooth attention of one head on the sphere in continuous time.",
        )
        for name in ("basis", "inverse"):
            array = self.value(name)
            require(
                array.shape == (d, d) and array.dtype == float and np.isfinite(array).all(),
                f"{name} of the state must be {(d, d)} numbers.",
            )
        return f"one head in {d} coordinates, and coordinates in which V is nearly in blocks."

    @cached_property
    def enclosed(self) -> dict:
        """Bounds of the dominant eigenvalue, of the others, and of how far the stored coordinates
        are off.
        """
        X, Y = as_fraction(self.value("basis")), as_fraction(self.value("inverse"))
        V = as_fraction(np.asarray(self.limit.dynamics.weights.full_V[0], dtype=float))
        d = len(V)
        wrong = abs(Y @ X - as_fraction(np.eye(d))).sum(axis=1).max()
        require(
            wrong < gmpy2.mpq(1, 50),
            "The stored coordinates and their inverse do not belong together.",
        )
        T, more = Y @ V @ X, wrong / (1 - wrong)  # (Y X)^-1 T is V in these coordinates
        off = np.array([more * abs(T[:, k]).max() for k in range(d)], dtype=object)
        with upwards():
            to = as_number
            row, column = norms(to(abs(T[0, 1:]) + off[1:])), norms(to(abs(T[1:, 0]) + off[0]))
            block = T[1:, 1:]
            norm = gmpy2.sqrt(gmpy2.mpfr(abs(block.T @ block).sum(axis=1).max()))
            norm += gmpy2.sqrt(gmpy2.mpfr((off[1:] ** 2).sum() * (d - 1)))
        low = T[0, 0] - off[0] - gmpy2.mpq(row)
        return {
            "low": low,
            "norm": gmpy2.mpq(norm),
            "others": gmpy2.mpq(norm) + gmpy2.mpq(column),
            "more": more,
            "row": gmpy2.mpq(row),
            "column": gmpy2.mpq(column),
        }

    def check_eigenvalue(self) -> str:
        """One eigenvalue is simple, real, positive, and larger than the modulus of all others."""
        low, others = self.enclosed["low"], self.enclosed["others"]
        require(
            low > 0 and low > others,
            f"The eigenvalue near {float(low):.6g} is not shown to dominate: another may have a "
            f"modulus of {float(others):.6g}.",
        )
        return (
            f"one simple eigenvalue above {float(low):.6g}, all others below {float(others):.6g} in"
            " modulus."
        )

    def side(self, x: np.ndarray, clear: float) -> int:
        """1 or -1 where all tokens (n, d) are on this side; else 0."""
        found, Y = self.enclosed, as_fraction(self.value("inverse"))
        y = as_fraction(x) @ Y.T
        largest = np.array([abs(one).max() for one in y], dtype=object) * found["more"]
        left_off = found["row"] / (found["low"] - found["norm"])
        with upwards():
            rest = as_fraction(norms(as_number(abs(y[:, 1:]) + largest[:, None])))
            room = gmpy2.mpq(clear) * gmpy2.mpq(norms(as_number(abs(Y[0]))))
        needed = largest + left_off * rest + room
        return int((y[:, 0] > needed).all()) - int((y[:, 0] < -needed).all())

    def check_side(self) -> str:
        """All stored tokens are on one side; the first ones, or later ones and those of two
        replicas.
        """
        x0, tokens, ends = self.limit.x0, self.value("tokens"), self.value("ends")
        require(
            tokens.shape == x0.shape
            and ends.shape == (2, *x0.shape)
            and np.isfinite(tokens).all()
            and np.isfinite(ends).all(),
            "The tokens of the state have another shape.",
        )
        t, begin = float(self.value("t")), float(self.value("begin"))
        if t == begin:
            require(self.side(x0, 0.0) != 0, "The first tokens do not lie on one side.")
            return "the first tokens lie on one side."
        require(t > begin, "The tokens of the state are earlier than the first ones.")
        sides = set()
        for one in (tokens, *ends):
            require(
                np.abs(np.sqrt((one**2).sum(axis=1)) - 1.0) <= UNIT,
                "Stored tokens do not lie on the sphere.",
            )
            sides.add(self.side(one, CLEAR))
        require(
            sides in ({1}, {-1}),
            "The stored tokens and those of the replicas do not lie on one side.",
        )
        require(
            not (np.array_equal(ends[0], tokens) or np.array_equal(ends[0], ends[1])),
            "Two of the three ends are copies: a replica is perturbed, and computed otherwise.",
        )
        return f"the tokens at t = {t:.4g} lie on one side, and so do those of two replicas."

    def check_limit(self) -> str:
        """Labels, point and error are what the lemma says."""
        limit, found = self.limit, self.enclosed
        n, d = limit.x0.shape
        t, begin = float(self.value("t")), float(self.value("begin"))
        require(
            limit.grade == "group" or (limit.grade == "proved" and t == begin == 0.0),
            "On the sphere nobody leads: the grade must be group, or proved where the first tokens"
            " lie on one side.",
        )
        require(
            limit.grade != "proved" or not limit.dynamics.weights.is_factored,
            "A proof needs V as one matrix.",
        )
        require(
            limit.horizon is None and limit.places is None and limit.t == t,
            "The limit claims something else.",
        )
        require(
            np.array_equal(limit.basis, np.eye(d))
            and limit.points.shape == (n, d)
            and np.isfinite(limit.points).all(),
            "There must be one point per token, in all coordinates.",
        )
        require(
            np.array_equal(limit.labels, np.zeros(n))
            and np.array_equal(limit.leaders, np.full(n, -1)),
            "All tokens converge to one point, and none leads.",
        )
        side = self.side(limit.x0, 0.0) if t == begin else self.side(self.value("tokens"), CLEAR)
        X = as_fraction(self.value("basis"))
        phi = X[:, 0] * side
        with upwards():
            squares, size = (X[:, 1:] ** 2).sum(), (phi**2).sum()
            reach = gmpy2.sqrt(gmpy2.mpfr(squares)) * gmpy2.mpfr(
                found["column"] / (found["low"] - found["norm"])
            )
        with upwards():
            above = gmpy2.mpq(gmpy2.sqrt(gmpy2.mpfr(size)))
        moved = 2 * gmpy2.mpq(reach) / (above * (1 - gmpy2.mpq(1, 2**60)))  # of phi / |phi|
        off = max(
            abs(one - phi[k] / above)
            for point in as_fraction(limit.points)
            for k, one in enumerate(point)
        )
        error = gmpy2.mpq(float(limit.error)) if np.isfinite(limit.error) else gmpy2.mpq(-1)
        require(
            off + moved + gmpy2.mpq(1, 2**60) <= error,
            f"The error is given as {limit.error:.3g}, and a point may be off by"
            f" {float(off + moved):.3g}.",
        )
        return f"one limit, the eigenvector, within {limit.error:.2g}."


@ways.register("half space")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of a limit on the sphere with a dominant eigenvalue."""
    found = HalfSpace(limit)
    yield Step("equation", found.check_equation, None, NOT_CHECKED)
    yield Step("start", lambda: check_digest(limit))
    yield Step("eigenvalue", found.check_eigenvalue)
    yield Step("one side", found.check_side)
    yield Step("what the limit says", found.check_limit)
    yield Step("changes of leader", lambda: check_no_events(limit))
