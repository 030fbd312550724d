"""What neural_collapse compares with: chance, closed forms, labels of the end."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import xarray

from attnlab.analysis.collapse import nc1, nc2
from attnlab.experiments.common.heads import cube_start, stand_in, trained_heads
from attnlab.experiments.slides.neural_collapse.claims import (
    fraction_words,
    from_fractions,
    nearest_fraction,
    slope_words,
    starts_with_three,
    unequal_lengths,
)
from attnlab.experiments.slides.neural_collapse.runs import (
    beside_chance,
    final_rank,
    frozen,
    heads_of_start,
    in_the_end,
    off_space,
    other_pairs,
)

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
            found.append(beside_chance(at_points(points), LABELS, cube_start(30, 8, 0), "own", rng))
        assert all(one["span"] == 2 for one in found[:10])
        assert abs(np.mean([one["place_angles"] for one in found]) - 0.5) < 4 * np.sqrt(1 / 12 / 100)

    def test_a_simplex_is_nearer_than_all(self):
        found = beside_chance(at_points(np.eye(8)[:4]), LABELS, cube_start(30, 8, 0), "identity", np.random.default_rng(2))
        assert found["place_angles"] == found["place_norms"] == 0 and 0 < found["null_low"] < found["null_angles"]

    def test_lengths_and_angles_have_places_of_their_own(self):
        points = np.pad(5 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), ((0, 0), (0, 6)))      # equal lengths, no simplex
        found = beside_chance(at_points(points), LABELS, cube_start(30, 8, 0), "identity", np.random.default_rng(4))
        assert found["place_norms"] == 0 and found["place_angles"] > 0.9

    def test_of_all_tokens_is_always_the_same_and_as_near(self):
        points = np.array([[3, 0], [-1, 0], [-2, 0], [0, 2], [0, -2]])              # about 0, and exact numbers in any order
        found = beside_chance(at_points(points), np.repeat(np.arange(5), 2), points, "identity", np.random.default_rng(5))
        assert found["place_angles"] == found["place_norms"] == 1                   # as near counts, not only nearer
        assert found["null_low"] == found["null_high"] == found["null_angles"]      # no token is drawn twice

    def test_two_clusters_need_none(self):
        found = beside_chance(at_points(np.eye(8)[:2]), LABELS[:4], cube_start(30, 8, 0), "identity", np.random.default_rng(3))
        assert np.isnan(list(found.values())).all()


class TestFractions:
    def test_by_hand(self):
        assert unequal_lengths(0.5) == pytest.approx(1 / np.sqrt(2))                      # lengths 1/2, 1/2, 0
        assert unequal_lengths(0.25) == pytest.approx(np.std([5, 7, 2]) / np.mean([5, 7, 2]))

    def test_two_heads_know_the_middle_only(self):
        norms = np.array([[unequal_lengths(0.5)], [unequal_lengths(0.25)], [unequal_lengths(0.25)]])
        rows = xarray.Dataset({"heads": ("row", [2, 2, 4]), "norms": (("row", "tau"), norms)})
        off = from_fractions(rows)
        assert off[0] < 1e-12 and off[1] > 0.2 and off[2] < 1e-12


class TestBetween:
    """A third cluster with a heads at the first, b at the second, the others at itself; Boolean attention, by tokens."""

    @pytest.mark.parametrize(("heads", "a", "b"), [(2, 1, 1), (4, 1, 1), (4, 1, 3), (8, 1, 1), (8, 3, 5), (8, 1, 2)])
    def test_nc1_falls_by_the_formula(self, heads, a, b):
        P = np.zeros((6, 6))
        P[:2, 0], P[2:4, 2] = 1, 1                                                             # two clusters with a leader each
        P[4:, 0], P[4:, 2], P[4:, 4] = a / heads, b / heads, 1 - (a + b) / heads
        z, labels = np.random.default_rng(6).normal(size=(6, 4)), np.repeat(np.arange(3), 2)
        early, late = (frozen(P, z, tau) for tau in (8.0, 12.0))
        assert np.log(nc1(late, labels) / nc1(early, labels)) / 4 == pytest.approx(-2 * (1 - (a + b) / heads), abs=0.01)
        assert final_rank(P, labels) == 1
        off, one = nearest_fraction(heads, float(nc2(in_the_end(P) @ z, labels)[1]))
        assert off < 1e-9 and one in (Fraction(a, a + b), Fraction(b, a + b))

    def test_words_say_the_formula_only_where_the_fraction_does(self):
        norms = np.array([[unequal_lengths(3 / 8)], [unequal_lengths(1 / 2)]])                    # 1/2 of 8 heads: 2, 4, 6 or 8
        rows = xarray.Dataset({"heads": ("row", [8, 8]), "norms": (("row", "tau"), norms), "rate": ("row", [-0.1, -0.2])})
        assert slope_words(rows) == "H = 8 at 3/8, so a + b = 8: -0.10, by the formula 0.00"
        assert slope_words(rows.isel(row=[1])) == "none here"

    def test_words_split_by_heads(self):
        rows = xarray.Dataset({"heads": ("row", [2, 2, 4]), "moved": ("row", [0.0, 0.0, 0.25]),
                               "norms": (("row", "tau"), [[unequal_lengths(one)] for one in (0.5, 0.5, 0.25)])})
        first, second = fraction_words(rows).split("; ")
        assert first.startswith("H = 2: 2 at 1/2, ") and "changes" not in first
        assert second.startswith("H = 4: 1 at 1/4, ") and "changes by 0.25" in second


def test_a_start_counts_once():
    rows = xarray.Dataset({"family": ("row", ["a"] * 4), "start": ("row", ["cube", "cube", "text", "text"]),
                           "rng": ("row", [0, 0, 0, 1]), "heads": ("row", [8, 16, 8, 8]), "clusters": ("row", [3, 4, 1, 2])})
    assert starts_with_three(rows) == (1, 3)


def test_every_start_has_another_trained_head():
    model = stand_in()
    first, sixth = (heads_of_start("trained", "identity", 1, rng, model) for rng in (0, 5))       # four heads a layer
    assert np.array_equal(first.Q, trained_heads(model, 1).Q)
    assert np.array_equal(sixth.Q, trained_heads(model, 6).Q[5:]) and np.array_equal(sixth.full_V[0], np.eye(model.config.d))
    assert np.array_equal(heads_of_start("trained", "own", 1, 5, model).Q, first.Q)


def test_attention_held_for_ever_says_who_ends_together():
    P = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0.25, 0.25, 0.5, 0], [0.5, 0.5, 0, 0]])
    end = in_the_end(P)
    assert end[2:] == pytest.approx(np.array([[0.5, 0.5, 0, 0]] * 2)) and end[:2] == pytest.approx(np.eye(4)[:2])


def test_pairs_are_counted_once_and_names_do_not_matter():
    assert other_pairs(np.array([0, 0, 1]), np.array([5, 5, 2])) == 0
    assert other_pairs(np.array([0, 0, 1]), np.array([0, 1, 1])) == 2


def test_distance_to_a_space():
    assert off_space(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0], [0.0]])) == pytest.approx(0.8)
