"""What master_equation compares: slow modes of P(0) with limits; and which draws its shares
count.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray

from attnlab.analysis.propagators import generator
from attnlab.experiments.slides.master_equation.claims import _foretold_one, _own_claims
from attnlab.limits import limit
from attnlab.types import Weights

SLOW = 1e-3


def head(M):
    """One head with V = I and the scores x^T M y."""
    M = np.array(M, dtype=float)
    return Weights(Q=np.eye(len(M))[None], K=M.T[None].copy(), V=np.eye(len(M)))


def slow_modes(weights, x0):
    return int((-np.linalg.eigvals(generator(weights, x0)).real < SLOW).sum())


class TestSlowModes:
    def test_may_be_more_than_limits(self):
        weights, x0 = (
            head([[-50, 10, 0], [10, -50, 0], [0, 0, 10]]),
            np.eye(3),
        )  # e1 and e2 attend to each other alone
        assert weights.M[0] == pytest.approx(np.array([[-50, 10, 0], [10, -50, 0], [0, 0, 10]]))
        assert slow_modes(weights, x0) == 2
        end = limit(weights, x0)
        assert end.certified and len(np.unique(end.labels)) == 1 and (end.leaders == 2).all()
        middle = (x0[0] + x0[1]) / 2
        assert middle @ weights.M[0] @ middle == pytest.approx(-20) and middle @ weights.M[0] @ x0[
            2
        ] == pytest.approx(0)

    def test_of_sets_with_a_margin_are_limits(self):
        rng = np.random.default_rng(0)
        M = np.kron(np.eye(2), np.full((3, 3), 12.0)) + rng.uniform(
            -2, 2, (6, 6)
        )  # inner scores 10 to 14, outer -2 to 2
        weights, x0 = head(M), np.eye(6)
        end = limit(weights, x0)
        assert slow_modes(weights, x0) == 2 and end.certified
        assert not set(end.labels[:3]) & set(end.labels[3:])  # each set has limits of its own


def table(**columns):
    return xarray.Dataset({name: ("row", np.array(column)) for name, column in columns.items()})


def test_the_share_of_refuted_is_of_the_draws_that_the_claim_is_about():
    late = table(
        heads=[1] * 5,
        is_good=[1] * 5,
        ended=[1, 1, 1, 1, 0],
        excess=[0.0] * 5,
        foretold=[1] * 5,
        directions=[2, 1, 2, 2, 2],
        frozen_directions=[1, 1, 1, 2, 1],
    )  # the fourth: not yet; the last: not ended
    own = table(family=["synthetic"], excess=[0.0], foretold=[1], trusted=[4.0])
    checks, length = table(off=[0.0], products_off=[0.0]), np.array([0.1, 0.2, 0.4])
    small = table(
        family=["synthetic"] * 3, heads=[1] * 3, draw=[0] * 3, length=length, error=length**2
    )
    claim = _own_claims(
        {"own": own, "own_checks": checks, "own_small_starts": small, "ends": late}
    )[-1]
    assert _foretold_one(late, heads=1, is_good=1).sum() == 4
    assert claim.measured == 2 and "in 2 of 3 such draws" in claim.differs
