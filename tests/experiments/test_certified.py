"""Certified limits in experiments: planted answers for corners, who keeps them, and words about
what is left out.
"""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.experiments.common.certified import (
    certified_in_words,
    certified_limit,
    class_points,
    corners,
    decided,
    distance_to_limits,
    facts_of,
    final_attention,
)
from attnlab.experiments.datasets import table
from attnlab.experiments.slides.heads_and_clusters.flows import CLOCK, last_merging
from attnlab.types import Weights

TRIANGLE = np.array([[4.0, 0.0], [-2.0, 3.0], [-2.0, -3.0]])


def heads(*M: np.ndarray) -> Weights:
    """Heads with V = I and the scores x^T M_h y."""
    d = len(M[0])
    return Weights(
        Q=np.array([np.eye(d)] * len(M)), K=np.array(M), V=np.array([np.eye(d)] * len(M))
    )


class TestCorners:
    def test_of_a_triangle_with_a_mean_and_a_point_inside(self):
        points = np.vstack([TRIANGLE, (TRIANGLE[0] + TRIANGLE[1]) / 2, [[0.0, 0.0]]])
        assert corners(points).tolist() == [True, True, True, False, False]

    def test_may_be_farther_outside_by_choice(self):
        points = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.01]])
        assert corners(points).tolist() == [True] * 3
        assert corners(points, 0.1).tolist() == [True, True, False]

    def test_more_dimensions_than_hulls_can_be_listed_in(self):
        rng = np.random.default_rng(0)
        points = rng.normal(size=(14, 13))  # a simplex: each is a corner
        mean, size = points.mean(axis=0), np.abs(points).max()
        assert corners(points).all()
        assert corners(np.vstack([points, mean])).tolist() == [True] * 14 + [False]
        away = mean + (mean - points[0]) / 13  # the middle of a face
        for beyond, outside in ((1e-7, False), (1e-5, True)):
            out = (mean - points[0]) / np.linalg.norm(mean - points[0])
            found = corners(np.vstack([points, away + beyond * size * out]))
            assert found.tolist() == [True] * 14 + [outside]

    def test_one_point_is_a_corner(self):
        assert corners(np.zeros((1, 3))).tolist() == [True]


class TestOneHead:
    """V = M = I: the corners of a triangle lead themselves, and a token inside follows one."""

    x0 = np.vstack([TRIANGLE, [[1.0, 0.1]]])

    def test_the_corners_are_the_limits(self):
        end, points = certified_limit(heads(np.eye(2)), self.x0)
        assert points == pytest.approx(TRIANGLE, abs=1e-5)
        facts = facts_of(end, points, self.x0)
        assert facts == {"grade": "exact", "count": 3, "seen": 3, "corners": 3, "kept": 1.0}
        assert class_points(end, points) == pytest.approx(TRIANGLE, abs=1e-5)
        assert distance_to_limits(points[[0, 1, 2, 0]], end, points, 2.0) < 1e-6
        assert distance_to_limits(points[[0, 1, 2, 1]], end, points, 2.0) > 1.0

    def test_attention_at_infinity_is_boolean(self):
        end, _ = certified_limit(heads(np.eye(2)), self.x0)
        expected = np.eye(4)
        expected[3] = expected[0]
        assert np.array_equal(final_attention(end, np.full((4, 4), 0.25)), expected)

    def test_points_are_those_of_the_whole_space(self):
        turned, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 2)))
        _, points = certified_limit(heads(np.eye(9)), self.x0 @ turned.T)
        assert points == pytest.approx(TRIANGLE @ turned.T, abs=1e-5)

    def test_too_little_work_leaves_it_open(self):
        end, points = certified_limit(heads(np.eye(2)), self.x0, work=1.0)
        facts = facts_of(end, points, self.x0)
        assert points is None and facts["grade"] == "undecided" and facts["count"] == 0


def test_a_token_with_two_classes_ends_between_them():
    """Two heads that look at different coordinates: the last token follows one corner in each."""
    x0 = np.array([[6.0, 4.0], [-4.0, -6.0], [1.2, -1.0]])
    weights = heads(np.diag([1.0, 0.1]), np.diag([0.1, 1.0]))
    end, points = certified_limit(weights, x0)
    assert end.grade == "exact" and end.head_leaders.tolist() == [[0, 1, 0], [0, 1, 1]]
    assert points[end.labels[2]] == pytest.approx((points[0] + points[1]) / 2, abs=1e-6)
    facts = facts_of(end, points, x0)
    assert (facts["count"], facts["corners"], facts["kept"]) == (3, 2, 1.0)
    assert class_points(end, points) == pytest.approx(points[:2])
    late = final_attention(end, np.zeros((3, 3)))
    assert late[2].tolist() == [0.5, 0.5, 0.0]


def test_words_say_what_is_left_out():
    cases = table({"grade": ["exact", "group", "undecided", "run", "exact"], "n": range(5)})
    assert decided(cases)["n"].values.tolist() == [0, 1, 4]
    assert certified_in_words(cases) == (
        "3 of 4 starts certified (1 of them with the grade group), 1 undecided left out, 1 more"
        " are runs"
    )
    assert certified_in_words(decided(cases).isel(row=[0, 2]), "draws") == "2 of 2 draws certified"


def test_the_last_merging_is_that_to_the_certified_number():
    counts = np.array([5.0, 4.0, 3.0, *[2.0] * (len(CLOCK) - 3)])
    assert last_merging(counts) == last_merging(counts, 2) == CLOCK[3]
    assert last_merging(counts, 1) == np.inf  # a run that has not come to it
    assert last_merging(np.full(len(CLOCK), 2.0)) == 0.0
