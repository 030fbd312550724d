"""Where nothing grows there is no limit of z to count: what is certified then are places in R^d, or
nothing.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import attnlab as al
from command_line import attnlab


def start(n: int, d: int, rng: int = 0) -> np.ndarray:
    return np.random.default_rng(rng).uniform(-2.0, 2.0, (n, d))


def definite(d: int, rng: int = 3) -> np.ndarray:
    A = np.random.default_rng(rng).normal(size=(d, d))
    return A @ A.T / d + 0.3 * np.eye(d)


@pytest.mark.parametrize(
    "options", [{}, {"mask": "causal"}, {"kernel": "hardmax"}, {"kernel": "exp_mean"}, {"dt": 0.5}]
)
def test_tokens_that_do_not_move_rest_at_their_own_places(options):
    x0 = start(40, 3)
    x0[7] = x0[3]
    limit = al.limit(al.Weights(V=np.zeros((3, 3))), x0, times=[0.5, 50.0], **options)
    assert (
        limit.certified
        and limit.count is None
        and limit.points.shape == (40, 0)
        and limit.basis.shape == (3, 0)
    )
    assert limit.place_count == 39 and np.array_equal(limit.places, x0) and limit.error == 0.0
    same = limit.labels[:, None] == limit.labels
    assert np.array_equal(
        same, (x0[:, None] == x0).all(axis=2)
    )  # equal labels: equal places, and no others
    assert np.array_equal(limit.z, [x0, x0])
    assert "39 places" in repr(limit) and "39 places" in limit.reason


def test_tokens_at_rest_on_the_sphere_and_in_several_heads():
    x0 = start(6, 3)
    x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
    assert al.limit(al.Weights(V=np.zeros((3, 3))), x0, geometry="sphere").place_count == 6
    two = al.Weights(
        Q=np.stack([np.eye(3)] * 2), K=np.stack([np.eye(3), -np.eye(3)]), V=np.zeros((2, 3, 3))
    )
    assert al.limit(two, x0).place_count == 6
    opposite = al.Weights(
        Q=np.stack([np.eye(3)] * 2),
        K=np.stack([np.eye(3)] * 2),
        V=np.stack([np.eye(3), -np.eye(3)]),
    )
    assert np.array_equal(al.limit(opposite, x0).places, x0)  # equal scores: the two heads cancel
    moving = al.limit(
        al.Weights(V=np.zeros((3, 3))), x0, feedforward={"sigma": "identity", "bias": np.ones(3)}
    )
    assert not moving.certified and moving.places is None  # V = 0, but the tokens move on for ever


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("d", [1, 3])
def test_all_tokens_fall_to_the_origin(mask, d):
    V = -np.diag(0.7 + 0.1 * np.arange(d)) + 0.2 * np.triu(
        np.ones((d, d)), 1
    )  # M V + V^T M is negative definite
    weights = al.Weights(Q=np.eye(d), K=definite(d), V=V)
    limit = al.limit(weights, start(8, d), mask=mask)
    assert limit.certified and limit.count is None and limit.place_count == 1
    assert limit.places.shape == (8, d) and not limit.places.any() and not limit.labels.any()
    sizes = np.abs(al.simulate(weights, start(8, d), mask=mask, times=[0.0, 10.0, 1000.0]).x).max(
        axis=(1, 2)
    )
    assert sizes[1] < 0.5 * sizes[0] and sizes[2] < 0.15 * sizes[1]  # a tenth where it is t^(-1/2)


@pytest.mark.parametrize(
    ("V", "M", "options"),
    [
        (-np.eye(2), -np.eye(2), {}),  # scores that repel: tokens may stay apart
        (-np.eye(2), np.diag([1.0, 0.0]), {}),  # blind to a direction, in which tokens stay apart
        (-np.eye(2), [[1.0, 0.3], [-0.3, 1.0]], {}),  # not symmetric
        (-np.eye(2), np.eye(2), {"beta": -1.0}),
        (-np.eye(2), np.eye(2), {"dt": 1.5}),  # layers
        (
            [[-1.0, 5.0], [0.0, -1.1]],
            np.eye(2),
            {},
        ),  # M V + V^T M is indefinite: tokens may grow at first
        (np.diag([-1.0, 0.0]), np.eye(2), {}),
        ([[0.0, 1.0], [-1.0, 0.0]], np.eye(2), {}),  # turns for ever
        (-np.eye(2), np.eye(2), {"kernel": "hardmax"}),
    ],
)
def test_what_is_not_proved_is_not_certified(V, M, options):
    limit = al.limit(al.Weights(Q=np.eye(2), K=M, V=V), start(6, 2), **options)
    assert (
        not limit.certified
        and limit.count is None
        and limit.place_count is None
        and limit.places is None
    )
    assert (limit.labels == -1).all() and limit.points.shape == (6, 0)
    assert limit.reason.startswith("Undecided (")


def test_without_scores_tokens_rest_around_their_mean():
    x0, V = start(5, 2), np.array([[-1.0, 2.0], [0.0, -0.5]])
    limit = al.limit(al.Weights(V=V), x0, beta=0.0)
    assert limit.place_count == 5
    run = al.simulate(al.Weights(V=V), x0, beta=0.0, times=[0.0, 60.0])
    assert np.abs(run.x[-1] - limit.places).max() < 1e-7


def test_equal_tokens_decay_together():
    V = np.array([[-1.0, 2.0], [0.0, -0.5]])
    limit = al.limit(al.Weights(Q=np.eye(2), K=-np.eye(2), V=V), np.ones((4, 2)))
    assert limit.place_count == 1 and not limit.places.any()
    assert not al.limit(al.Weights(V=np.diag([-1.0, 0.0])), np.ones((4, 2))).certified


@pytest.mark.parametrize("family", ["plane", "one"])
def test_a_sweep_through_zero_collects_no_count_that_means_nothing(family):
    x0 = start(6, 2)
    for s in np.linspace(-1.0, 1.0, 9):
        V = s * np.eye(2) if family == "plane" else np.diag([1.0, s])
        limit = al.limit(al.Weights(V=V), x0)
        k = int((np.diagonal(V) > 0).sum())
        assert limit.certified and limit.points.shape == (6, k)
        if k == 0:
            assert limit.count is None and limit.place_count == (6 if s == 0 else 1)
        else:
            # a count of 1 would say that all limits in F are equal: they are not
            assert limit.place_count is None and limit.places is None
            assert limit.count == len(np.unique(np.round(limit.points, 6), axis=0)) > 1


def test_a_run_starts_from_its_own_tokens():
    run = al.simulate(al.Weights(V=np.zeros((2, 2))), start(4, 2), times=[3.0, 4.0])
    assert np.array_equal(al.limit(run).places, run.x[0])


SPEC = """
[weights]
family = "given"
V = {V}

[start]
law = "uniform_cube"
n = 5
d = 2
rng = 1
{batch}

[solve]
t_end = 1.0
"""


def test_the_command_prints_places(tmp_path):
    path = tmp_path / "rest.toml"
    path.write_text(SPEC.format(V="[[0.0, 0.0], [0.0, 0.0]]", batch=""))
    said = attnlab("limit", path).stdout
    assert "limit of x in R^d" in said and "limit of z" not in said and "places" in said
    record = json.loads(attnlab("limit", path, "--json").stdout)
    assert (
        record["limits"] is None and record["places"] is not None
    )  # no limits of z beside the places of x
    assert (
        record["count"] is None
        and record["place_count"] == 5
        and np.shape(record["places"]) == (5, 2)
    )
    path.write_text(SPEC.format(V="[[-1.0, 0.0], [0.0, -1.0]]", batch="batch = 2"))
    assert "places" in attnlab("limit", path).stdout


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_places_can_be_drawn(d):
    from attnlab.render import plot

    still = plot(al.limit(al.Weights(V=np.zeros((d, d))), start(9, d)))
    still.canvas.draw()
    words = still.get_suptitle() + " ".join(text.get_text() for text in still.texts)
    assert "9 places" in words and "F = {0}" in words
    falling = plot(al.limit(al.Weights(V=-np.eye(d)), start(9, d)))
    falling.canvas.draw()
    assert falling.get_suptitle().startswith("1 place ")


def test_experiments_keep_places():
    from attnlab.experiments.datasets import limit_dataset, limit_from

    limit = al.limit(al.Weights(V=np.zeros((2, 2))), start(4, 2))
    again = limit_from(limit_dataset(limit), limit.dynamics)
    assert (
        again.place_count == 4
        and np.array_equal(again.places, limit.places)
        and again.count is None
    )
    growing = al.limit(al.Weights(V=np.eye(2)), start(4, 2))
    assert limit_from(limit_dataset(growing), growing.dynamics).places is None
