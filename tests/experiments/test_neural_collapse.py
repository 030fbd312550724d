"""What neural_collapse compares with: chance, and words about fractions."""

from __future__ import annotations

import numpy as np
import pytest
import xarray

from attnlab.analysis.collapse import norms_on_line
from attnlab.experiments.common.heads import cube_start, stand_in, trained_heads
from attnlab.experiments.slides.neural_collapse.claims import (
    fraction_words,
    slope_words,
    starts_with_three,
)
from attnlab.experiments.slides.neural_collapse.experiment import (
    beside_chance,
    heads_of_start,
    off_space,
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
            found.append(
                beside_chance(
                    at_points(x0[rng.choice(30, 4, replace=False)]), LABELS, x0, "identity", rng
                )
            )
        for name in ("place_angles", "place_norms"):
            places = np.array([one[name] for one in found])
            assert abs(places.mean() - 0.5) < 4 * np.sqrt(
                1 / 12 / 100
            )  # four standard errors of a uniform law
            assert np.histogram(places, 4, (0, 1))[0].min() > 25 - 4 * np.sqrt(100 * 0.25 * 0.75)

    def test_of_random_directions_in_a_plane_is_uniform(self):
        rng, found = np.random.default_rng(1), []
        for _ in range(100):
            points = np.pad(rng.normal(size=(4, 2)), ((0, 0), (0, 6)))
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            found.append(beside_chance(at_points(points), LABELS, cube_start(30, 8, 0), "own", rng))
        assert all(one["span"] == 2 for one in found[:10])
        assert abs(np.mean([one["place_angles"] for one in found]) - 0.5) < 4 * np.sqrt(
            1 / 12 / 100
        )

    def test_a_simplex_is_nearer_than_all(self):
        found = beside_chance(
            at_points(np.eye(8)[:4]),
            LABELS,
            cube_start(30, 8, 0),
            "identity",
            np.random.default_rng(2),
        )
        assert (
            found["place_angles"] == found["place_norms"] == 0
            and 0 < found["null_low"] < found["null_angles"]
        )

    def test_lengths_and_angles_have_places_of_their_own(self):
        points = np.pad(
            5 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), ((0, 0), (0, 6))
        )  # equal lengths, no simplex
        found = beside_chance(
            at_points(points), LABELS, cube_start(30, 8, 0), "identity", np.random.default_rng(4)
        )
        assert found["place_norms"] == 0 and found["place_angles"] > 0.9

    def test_of_all_tokens_is_always_the_same_and_as_near(self):
        points = np.array(
            [[3, 0], [-1, 0], [-2, 0], [0, 2], [0, -2]]
        )  # about 0, and exact numbers in any order
        found = beside_chance(
            at_points(points),
            np.repeat(np.arange(5), 2),
            points,
            "identity",
            np.random.default_rng(5),
        )
        assert found["place_angles"] == found["place_norms"] == 1  # as near counts, not only nearer
        assert (
            found["null_low"] == found["null_high"] == found["null_angles"]
        )  # no token is drawn twice

    def test_two_clusters_need_none(self):
        found = beside_chance(
            at_points(np.eye(8)[:2]),
            LABELS[:4],
            cube_start(30, 8, 0),
            "identity",
            np.random.default_rng(3),
        )
        assert np.isnan(list(found.values())).all()


class TestBetween:
    """Words about a third cluster on the line of two others."""

    def test_words_say_the_formula_only_where_the_fraction_does(self):
        norms = np.array([norms_on_line(3 / 8), norms_on_line(1 / 2)])  # 1/2 of 8: 2, 4, 6 or 8
        rows = xarray.Dataset(
            {
                "heads": ("row", [8, 8]),
                "end_norms": ("row", norms),
                "rate": ("row", [-0.1, -0.2]),
            }
        )
        assert slope_words(rows) == "H = 8 at 3/8, so a + b = 8: -0.10, by the formula 0.00"
        assert slope_words(rows.isel(row=[1])) == "none here"

    def test_words_split_by_heads(self):
        rows = xarray.Dataset(
            {
                "heads": ("row", [2, 2, 4]),
                "end_norms": ("row", [norms_on_line(one) for one in (0.5, 0.5, 0.25)]),
            }
        )
        first, second = fraction_words(rows).split("; ")
        assert first.startswith("H = 2: 2 at 1/2, ")
        assert second.startswith("H = 4: 1 at 1/4, ")


def test_a_start_counts_once():
    rows = xarray.Dataset(
        {
            "family": ("row", ["a"] * 4),
            "start": ("row", ["cube", "cube", "text", "text"]),
            "rng": ("row", [0, 0, 0, 1]),
            "heads": ("row", [8, 16, 8, 8]),
            "clusters": ("row", [3, 4, 1, 2]),
        }
    )
    assert starts_with_three(rows) == (1, 3)


def test_every_start_has_another_trained_head():
    model = stand_in()
    first, sixth = (
        heads_of_start("trained", "identity", 1, rng, model) for rng in (0, 5)
    )  # four heads a layer
    assert np.array_equal(first.Q, trained_heads(model, 1).Q)
    assert np.array_equal(sixth.Q, trained_heads(model, 6).Q[5:]) and np.array_equal(
        sixth.full_V[0], np.eye(model.config.d)
    )
    assert np.array_equal(heads_of_start("trained", "own", 1, 5, model).Q, first.Q)


def test_distance_to_a_space():
    assert off_space(np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([[1.0], [0.0]])) == pytest.approx(
        0.8
    )
