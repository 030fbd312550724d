"""How far stacks are from each other, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.models.studies.agreement import (
    agree_by_chance,
    agreement,
    guess_leaders,
    turn,
    turn_others,
)


def test_turn_by_hand():
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert turn(x, 5 * x) == pytest.approx(0.0)
    assert turn(x, np.array([[0.0, 1.0], [0.0, -1.0]])) == pytest.approx(1.5)


def test_the_turn_from_other_tokens_by_hand():
    x, true = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [-1.0, 0.0]])
    assert turn_others(x, true) == pytest.approx(
        (2 + 1) / 2
    )  # of x_0 and true_1, of x_1 and true_0
    assert turn_others(np.ones((5, 3)), np.ones((5, 3))) == pytest.approx(0.0)


def test_groups_and_order_do_not_depend_on_lengths_and_rotation():
    rng = np.random.default_rng(3)
    x = np.repeat(np.eye(4), 3, axis=0) + 0.1 * rng.normal(size=(12, 4))
    turned = (x @ np.linalg.qr(rng.normal(size=(4, 4)))[0]) * rng.uniform(1, 9, (12, 1))
    assert agreement(x, turned) == pytest.approx({"groups": 1.0, "order": 1.0})
    other = agreement(x, x[rng.permutation(12)])
    assert other["groups"] < 0.5 and other["order"] < 0.5


def test_the_usual_place_is_that_of_the_other_sentences():
    # first, then last of four tokens; in the last sentence the second, then the last of six
    leaders = [np.array([5, 0, 3])] * 3 + [np.array([5, 1, 5])]
    assert guess_leaders(leaders, [4, 4, 4, 6]) == pytest.approx([1.0, 1.0, 1.0, 0.5])


def test_shuffled_groups_agree_by_chance_only():
    where = [
        {
            "n": 12,
            "leader": [0, 3],
            "word_leader": [1, place],
            "labels": np.repeat(range(4), 3).tolist(),
        }
        for place in (2, 2, 2, 3)
    ]
    found = agree_by_chance(where)
    assert [row["leader"] for row in found] == [1.0] * 4
    assert [row["word_leader"] for row in found] == [1.0, 1.0, 1.0, 0.0]
    assert abs(found[0]["groups_mean"]) < 0.05 < found[0]["groups"] < 0.5


def test_many_begins_where_more_than_half_as_many_clusters_as_tokens_are_left():
    """Three tight pairs, at angles 0, 60 and 120 degrees, whose pairs are 2, 4 and 6 degrees apart."""
    from attnlab.analysis.clusters import cluster_labels
    from attnlab.models.studies.agreement import many_from

    angles = np.deg2rad([0.0, 2.0, 60.0, 64.0, 120.0, 126.0])
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.array([1, 5, 2, 1, 3, 1])[:, None]
    assert many_from(x) == pytest.approx(np.cos(np.deg2rad(6.0)))
    x = np.random.default_rng(2).normal(size=(9, 3))
    edge, unit = many_from(x), x / np.linalg.norm(x, axis=1, keepdims=True)
    for cosine, is_many in ((edge - 1e-6, False), (edge + 1e-6, True)):
        count = cluster_labels(unit[None], np.sqrt(2 - 2 * cosine))[0].max() + 1
        assert (count > 4.5) == is_many
