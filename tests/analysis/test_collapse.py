"""Neural collapse: scatter, simplices by chance, and clusters that end between others, by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from attnlab.analysis.clusters import differing_pairs
from attnlab.analysis.collapse import (
    centre_rank,
    least_angles,
    nc1,
    nc2,
    nc2_of_points,
    nearest_fraction,
    norms_on_line,
    plain_nc1,
    scatter_share,
)
from attnlab.analysis.markov import power_limit
from attnlab.analysis.propagators import hold_attention


def test_nc1_by_loops_is_nc1():
    rng = np.random.default_rng(1)
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3])  # the last cluster has one token: left out
    x = rng.normal(size=(9, 5)) + 3 * rng.normal(size=(5, 5))[labels]
    assert plain_nc1(x, labels) == pytest.approx(float(nc1(x, labels)), rel=1e-9)


def test_scatter_share_by_hand():
    x, labels = np.array([[0.0], [2.0], [10.0], [12.0]]), np.array([0, 0, 1, 1])
    # inside: 4 tokens at distance 1; all: distances 6, 4, 4, 6 from the mean 6
    assert scatter_share(x, labels) == pytest.approx(4 / 104)
    assert scatter_share(np.stack([x, 3 * x + 1]), labels) == pytest.approx([4 / 104] * 2)
    assert scatter_share(np.repeat(x[::2], 2, axis=0), labels) == 0.0


def test_points_are_collapsed_clusters():
    simplex = np.eye(4) + 2.0
    assert nc2_of_points(simplex) == pytest.approx((0.0, 0.0), abs=1e-12)
    points = np.random.default_rng(2).normal(size=(3, 5, 4))
    each = [nc2(np.repeat(one, 2, axis=0), np.repeat(range(5), 2)) for one in points]
    np.testing.assert_allclose(np.array(nc2_of_points(points)).T, each)


@pytest.mark.parametrize("d", [2, 3])
def test_no_points_are_below_the_bound(d):
    rng = np.random.default_rng(d)
    for count in range(2, 9):
        points = rng.normal(size=(300, count, d))
        assert nc2_of_points(points)[0].min() >= least_angles(count, d) - 1e-12
    assert least_angles(np.array([2, d + 1]), d) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert least_angles(d + 2, d) > 0


class TestFractions:
    def test_by_hand(self):
        assert norms_on_line(0.5) == pytest.approx(1 / np.sqrt(2))  # lengths 1/2, 1/2, 0
        assert norms_on_line(0.25) == pytest.approx(np.std([5, 7, 2]) / np.mean([5, 7, 2]))

    def test_two_heads_know_the_middle_only(self):
        assert nearest_fraction(2, norms_on_line(0.5)) == (pytest.approx(0.0), Fraction(1, 2))
        assert nearest_fraction(2, norms_on_line(0.25))[0] > 0.2
        assert nearest_fraction(4, norms_on_line(0.75))[1] == Fraction(1, 4)


@pytest.mark.parametrize(
    ("heads", "a", "b"), [(2, 1, 1), (4, 1, 1), (4, 1, 3), (8, 1, 1), (8, 3, 5), (8, 1, 2)]
)
def test_a_cluster_between_others(heads, a, b):
    """a heads of a third cluster look at the first, b at the second, the others at itself."""
    P = np.zeros((6, 6))
    P[:2, 0], P[2:4, 2] = 1, 1  # two clusters with a leader each
    P[4:, 0], P[4:, 2], P[4:, 4] = a / heads, b / heads, 1 - (a + b) / heads
    z, labels = np.random.default_rng(6).normal(size=(6, 4)), np.repeat(np.arange(3), 2)
    early, late = (hold_attention(P, z, tau) for tau in (8.0, 12.0))
    slope = np.log(nc1(late, labels) / nc1(early, labels)) / 4
    assert slope == pytest.approx(-2 * (1 - (a + b) / heads), abs=0.01)
    assert centre_rank(power_limit(P), labels, 1e-6) == 1
    off, one = nearest_fraction(heads, float(nc2(power_limit(P) @ z, labels)[1]))
    assert off < 1e-9 and one in (Fraction(a, a + b), Fraction(b, a + b))


def test_attention_held_for_ever_says_who_ends_together():
    P = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 0.5, 0], [0.5, 0.5, 0, 0]])
    end = power_limit(P)
    assert end[2:] == pytest.approx(np.array([[0.5, 0.5, 0, 0]] * 2)) and end[:2] == pytest.approx(
        np.eye(4)[:2]
    )


def test_pairs_are_counted_once_and_names_do_not_matter():
    assert differing_pairs(np.array([0, 0, 1]), np.array([5, 5, 2])) == 0
    assert differing_pairs(np.array([0, 0, 1]), np.array([0, 1, 1])) == 2
