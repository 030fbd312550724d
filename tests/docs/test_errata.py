"""What is wrong in the paper and in its scripts, each shown by a small computation; docs/errata.md
tells them in words.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import attnlab as al
from places import DOCS

PAGE = DOCS / "errata.md"


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


# --------------------------------------------------------------------------------------------------
# the paper


@pytest.mark.parametrize(("eps", "c"), [(0.5, 0.187), (0.3, 5.2e-3), (0.2, 5.0e-6)])
def test_the_pair_that_does_not_become_one_cluster(eps, c):
    limit = al.limit(al.Weights(V=np.eye(2)), [[1.0, eps], [1.0, -eps]])
    assert limit.certified and limit.count == 2
    np.testing.assert_allclose(limit.limits, [[1.0, c], [1.0, -c]], rtol=2e-2)
    assert 0.28 < np.log(limit.limits[0, 1]) + 1.0 / (2.0 * eps**2) < 0.34
    run = al.simulate(al.Weights(V=np.eye(2)), [[1.0, eps], [1.0, -eps]], t_end=0.55 / eps**2 + 3.0)
    np.testing.assert_allclose(al.attention(run)[0], np.eye(2), atol=1e-6)
    # while tokens that do become one have attention 1/n
    np.testing.assert_array_equal(softmax(np.ones((2, 2))), np.full((2, 2), 0.5))


CROSS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


def test_more_than_three_limits_where_v_is_the_identity():
    limit = al.limit(al.Weights(V=np.eye(2)), 3.0 * CROSS)
    assert limit.certified and limit.count == 4
    random = al.limit(al.Weights(V=np.eye(3)), np.random.default_rng(0).uniform(-5, 5, (40, 3)))
    assert random.certified and random.count is not None and random.count > 3


def test_four_limits_of_a_good_triple():
    weights = al.Weights(V=np.diag([1.2, 0.8]))
    limit = al.limit(weights, CROSS)
    assert limit.certified and limit.count == 4
    np.testing.assert_allclose(limit.limits, 0.7507 * CROSS, atol=1e-4)
    nudged = al.limit(weights, CROSS + 1e-3 * np.random.default_rng(0).normal(size=CROSS.shape))
    assert nudged.certified and nudged.count == 2  # so it is the symmetry, not the matrix


def test_four_limiting_lines_in_space():
    x0 = np.array(
        [[1, 0.1, 0.3], [-1, 0.1, 0.3], [0, 1, -0.2], [0, -1, 0.1], [0, 0.5, 0.4], [0, -0.7, 0.2]]
    )
    limit = al.limit(al.Weights(V=np.diag([1.2, 0.8, -0.5])), x0)
    assert limit.certified and limit.basis.shape[1] == 2 and limit.count == 4


def test_the_remainder_that_is_not_small():
    """r = <A e^{tV} z_1, A e^{tV} z_2> - e^{2t} <pi_F A z_1, pi_F A z_2>, at most C e^{(lambda_1 +
    |lambda_2|) t} it is said.
    """
    A, first, second = (
        np.array([[1.0, 0.5], [0.5, 1.0]]),
        np.array([0.0, 1.0]),
        np.array([0.0, 2.0]),
    )

    def remainder(t):
        move = np.diag(
            [np.exp(t), 1.0]
        )  # e^{tV}, V = diag(1, 0): F is the first axis, lambda_2 = 0
        return (A @ move @ first) @ (A @ move @ second) - np.exp(2.0 * t) * (A @ first)[0] * (
            A @ second
        )[0]

    claimed = [abs(remainder(t)) / np.exp(t) for t in (2.0, 6.0, 10.0)]
    assert (
        claimed[0] < 0.03 * claimed[1] < 0.03**2 * claimed[2] * 1.2
    )  # grows like e^t instead of staying bounded
    assert remainder(10.0) / np.exp(20.0) == pytest.approx(-0.5, rel=1e-6)


def test_the_field_does_not_grow_linearly_in_the_euclidean_norm():
    """Ten tokens, V = I: all listen to one that is large."""
    x = np.vstack([[10.0, 0.0], np.tile([0.9, 0.0], (9, 1))])
    velocity = al.velocity(al.Weights(V=np.eye(2)), x)
    assert np.linalg.norm(velocity) > 2.9 * np.linalg.norm(x)
    assert np.linalg.norm(velocity, axis=1).max() <= np.linalg.norm(x, axis=1).max()


def test_solutions_are_not_lipschitz_on_the_whole_line():
    run = al.simulate(al.Weights(V=np.eye(2)), CROSS, t_end=20.0, saves=21)
    speeds = np.abs(np.diff(run.x, axis=0)).max(axis=(1, 2))
    assert speeds[-1] > 1e7 * speeds[0] * 0.5


# --------------------------------------------------------------------------------------------------
# its scripts


def published_rk4(V, z, steps, dt):
    """The scheme of the clustering script: attention frozen for the step, the increment of token i
    added to every token.
    """
    t = 0.0
    for _ in range(steps):
        grow = np.diag(np.exp(t * np.diag(V)))
        x = z @ grow.T
        P, new = softmax(x @ x.T), z.copy()
        for i in range(len(z)):

            def increment(tokens, i=i, P=P):
                return dt * (P[i] @ (tokens - tokens[i])) @ V.T

            k1 = increment(z)
            k2 = increment(z + k1 / 2)
            k3 = increment(z + k2 / 2)
            k4 = increment(z + k3)
            new[i] = z[i] + (k1 + 2 * k2 + 2 * k3 + k4) / 6
        z, t = new, t + dt
    return z


def test_the_published_rk4_is_euler():
    V, x0 = np.diag([1.0, 0.4]), np.random.default_rng(0).uniform(-1, 1, (12, 2))
    theirs = published_rk4(V, x0, 50, 0.1)
    euler, rk4 = (
        al.simulate(al.Weights(V=V), x0, t_end=5.0, stepper=name, dt=0.1, frame="z").z[-1]
        for name in ("euler", "rk4")
    )
    one = published_rk4(V, x0, 1, 0.1)
    first = al.simulate(
        al.Weights(V=V), x0, t_end=0.1, stepper="euler", dt=0.1, frame="z", saves=2
    ).z[-1]
    assert np.abs(one - first).max() < 1e-15
    assert np.abs(theirs - euler).max() < 1e-12  # rounding, carried along 50 steps
    assert np.abs(theirs - rk4).max() > 1e-3  # and no RK4 at all


def ranks(states):
    return [int(np.linalg.matrix_rank(softmax(x @ x.T))) for x in states]


def test_the_low_rank_script_has_no_attention_in_its_dynamics():
    """dx/dt = V x: e^{-tV} x stands still, so nothing clusters; ranks fall only because scores
    grow.
    """
    times, coupled, uncoupled = [0.0, 3.0, 5.0, 10.0], [], []
    for seed in range(12):
        x0 = np.random.default_rng(seed).uniform(-1, 1, (40, 1))
        uncoupled.append(ranks([np.exp(t) * x0 for t in times]))
        coupled.append(ranks(al.simulate(al.Weights(V=np.eye(1)), x0, t_end=10.0, times=times).x))
    coupled, uncoupled = np.array(coupled), np.array(uncoupled)
    assert (coupled[:, 0] == uncoupled[:, 0]).all() and np.median(coupled[:, 3]) == np.median(
        uncoupled[:, 3]
    ) == 2
    assert np.median(coupled[:, 2]) > np.median(uncoupled[:, 2]) + 2
    assert (
        max(coupled[:, 2].max(), uncoupled[:, 2].max()) < 14
    )  # the published rank at t = 5, outside both


def test_the_notebook_has_no_exponential():
    """Phi e^{tD} Phi for Phi e^{tD} Phi^T; and e^{D} to the power t entry by entry, which is all
    ones at t = 0.
    """
    rng = np.random.default_rng(0)
    S = rng.normal(size=(5, 5))
    values, Phi = np.linalg.eigh(S + S.T)
    right = Phi @ np.diag(np.exp(0.0 * values)) @ Phi.T
    np.testing.assert_allclose(right, np.eye(5), atol=1e-14)
    assert np.abs(Phi @ np.diag(np.exp(0.0 * values)) @ Phi - np.eye(5)).max() > 0.1
    assert (np.diag(np.exp(values)) ** 0.0 == 1.0).all()


# --------------------------------------------------------------------------------------------------
# the page


def test_the_page_names_every_test_here():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    here = {
        name
        for name in globals()
        if name.startswith("test_") and name != "test_the_page_names_every_test_here"
    }
    assert named == here
