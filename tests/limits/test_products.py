"""Products and sums that cancel. Found by comparing certified limits with exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.merged import make_reach
from attnlab.limits.problem import Refused
from attnlab.limits.products import WRONG, score_matrices, sum_of
from attnlab.types import Dynamics

X = np.array([[-1.0], [0.5], [0.8], [1.0]])
# Q^T K is 1, -1, and 1 again; in double precision it was 0, and all limits were "the mean"
CANCELLING = [
    ([1e8 + 1, 1e8], [1e8 + 1, -(1e8 + 2)], 1.0),
    ([1e8 + 1, 1e8], [1e8 - 1, -1e8], -1.0),
    ([1e16, 1.0, 1e16], [1.0, 1.0, -1.0], 1.0),
]


@pytest.mark.parametrize(("q", "k", "value"), CANCELLING)
def test_scores_that_cancel_are_those_of_the_exact_product(q, k, value):
    assert sum(Fraction(a) * Fraction(b) for a, b in zip(q, k, strict=True)) == Fraction(value)
    column = np.array(q)[:, None], np.array(k)[:, None]
    ours = al.limit(al.Weights(Q=column[0], K=column[1], V=np.eye(1)), X)
    truth = al.limit(al.Weights(Q=np.ones((1, 1)), K=np.full((1, 1), value), V=np.eye(1)), X)
    assert truth.grade == "exact" and ours.grade == "exact"
    assert np.array_equal(ours.labels, truth.labels)
    assert np.abs(ours.points - truth.points).max() <= ours.error + truth.error
    assert al.verify(ours).holds


def test_heads_whose_scores_differ_only_after_cancelling_are_different_heads():
    big = np.array([[1e8 + 1], [1e8]])
    Q = np.stack([big, big])
    K = np.array([[[1e8 + 1], [-(1e8 + 2)]], [[1e8 - 1], [-1e8]]])  # scores 1 and -1
    V = np.ones((2, 1, 1))
    ours = al.limit(al.Weights(Q=Q, K=K, V=V), X)
    plain = al.Weights(Q=np.ones((2, 1, 1)), K=np.array([[[1.0]], [[-1.0]]]), V=V)
    truth = al.limit(plain, X)
    assert ours.grade == truth.grade and np.array_equal(ours.labels, truth.labels)
    assert ours.head_leaders is not None
    assert np.array_equal(ours.head_leaders, truth.head_leaders)


def test_every_entry_is_right_or_as_it_was():
    rng = np.random.default_rng(0)
    Q, K = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    Q[5], K[5] = 1e9 * Q[5], 1e9 * K[5]
    Q, K = np.vstack([Q, Q[5:]]), np.vstack([K, -K[5:]])  # the large terms cancel exactly
    found = score_matrices(al.Weights(Q=Q, K=K, V=np.eye(4)))[0]
    for a in range(4):
        for b in range(4):
            terms = (Fraction(x) * Fraction(y) for x, y in zip(Q[:, a], K[:, b], strict=True))
            exact = float(sum(terms))
            assert abs(found[a, b] - exact) <= WRONG * abs(exact)
    assert np.abs(Q.T @ K - found).max() > 1.0  # the plain product is not of use here
    plain = al.Weights(Q=Q[:5], K=K[:5], V=np.eye(4))
    assert np.array_equal(score_matrices(plain), plain.M)


def test_values_that_cancel_over_heads_are_added_exactly():
    V = np.array([1e16, 1.0, -1e16])[:, None, None] * np.eye(2)
    assert np.array_equal(sum_of(V), np.eye(2))
    same = np.ones((3, 1, 1))
    ours = al.limit(al.Weights(Q=same, K=same, V=V[:, :1, :1]), X)
    truth = al.limit(al.Weights(Q=same[:1], K=same[:1], V=np.eye(1)), X)
    assert ours.grade == "exact" and np.array_equal(ours.labels, truth.labels)
    np.testing.assert_allclose(ours.points, truth.points, rtol=0, atol=ours.error + truth.error)


def test_groups_are_refused_where_the_factors_of_V_cancel():
    # C B = 0.6647... and 0.625 in double precision
    B, C = np.array([[3e7 + 1], [3e7]]), np.array([[3e7 + 1, -(3e7 + 2) - 1e-8]])
    weights = al.Weights(Q=np.eye(2), K=np.eye(2), V=(B[None], C[None]))
    with pytest.raises(Refused, match="cancels"):
        make_reach(Dynamics.of(weights), np.eye(2), np.arange(2))
