"""What neural_collapse compares with: chance, closed forms, labels of the end."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.experiments.neural_collapse_claims import from_fractions, unequal_lengths
from attnlab.experiments.neural_collapse_runs import beside_chance, cube, in_the_end, off_space, other_pairs

LABELS = np.repeat(np.arange(4), 2)


def at_points(points):
    """Two tokens at each of the points."""
    return np.repeat(points, 2, axis=0)


class TestChance:
    def test_of_clusters_at_random_tokens_is_uniform(self):
        rng, found = np.random.default_rng(0), []
        for _ in range(100):
            x0 = rng.uniform(-5, 5, (30, 8))
            found.append(beside_chance(at_points(x0[rng.choice(30, 4, replace=False)]), LABELS, x0, "identity", rng))
        for name in ("place_angles", "place_norms"):
            places = np.array([one[name] for one in found])
            assert abs(places.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 100)                  # four standard errors of a uniform law
            assert np.histogram(places, 4, (0, 1))[0].min() > 25 - 4 * np.sqrt(100 * 0.25 * 0.75)

    def test_of_random_directions_in_a_plane_is_uniform(self):
        rng, found = np.random.default_rng(1), []
        for _ in range(100):
            points = np.pad(rng.normal(size=(4, 2)), ((0, 0), (0, 6)))
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            found.append(beside_chance(at_points(points), LABELS, cube(30, 8, 0), "own", rng))
        assert all(one["span"] == 2 for one in found[:10])
        assert abs(np.mean([one["place_angles"] for one in found]) - 0.5) < 4 * np.sqrt(1 / 12 / 100)

    def test_a_simplex_is_nearer_than_all(self):
        found = beside_chance(at_points(np.eye(8)[:4]), LABELS, cube(30, 8, 0), "identity", np.random.default_rng(2))
        assert found["place_angles"] == found["place_norms"] == 0 and 0 < found["null_low"] < found["null_angles"]

    def test_two_clusters_need_none(self):
        found = beside_chance(at_points(np.eye(8)[:2]), LABELS[:4], cube(30, 8, 0), "identity", np.random.default_rng(3))
        assert np.isnan(list(found.values())).all()


class TestFractions:
    def test_by_hand(self):
        assert unequal_lengths(0.5) == pytest.approx(1 / np.sqrt(2))                      # lengths 1/2, 1/2, 0
        assert unequal_lengths(0.25) == pytest.approx(np.std([5, 7, 2]) / np.mean([5, 7, 2]))

    def test_two_heads_know_the_middle_only(self):
        import xarray

        norms = np.array([[unequal_lengths(0.5)], [unequal_lengths(0.25)], [unequal_lengths(0.25)]])
        rows = xarray.Dataset({"heads": ("row", [2, 2, 4]), "norms": (("row", "tau"), norms)})
        off = from_fractions(rows)
        assert off[0] < 1e-12 and off[1] > 0.2 and off[2] < 1e-12


def test_attention_held_for_ever_says_who_ends_together():
    P = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 0.5, 0], [0.5, 0.5, 0, 0]])
    end = in_the_end(P)
    assert end[2:] == pytest.approx(np.array([[0.5, 0.5, 0, 0]] * 2)) and end[:2] == pytest.approx(np.eye(4)[:2])


def test_pairs_are_counted_once_and_names_do_not_matter():
    assert other_pairs(np.array([0, 0, 1]), np.array([5, 5, 2])) == 0
    assert other_pairs(np.array([0, 0, 1]), np.array([0, 1, 1])) == 2


def test_distance_to_a_space():
    assert off_space(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0], [0.0]])) == pytest.approx(0.8)
