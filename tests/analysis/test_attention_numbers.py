"""Leaks below double precision, unrelated heads, plain references: against independent sums."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.attention import log_leaks, log_unevenness, score_gaps, second_if_unrelated
from attnlab.analysis.directions import direction_count, unit
from attnlab.analysis.growth import fastest_modes, fastest_space
from attnlab.analysis.hull import convex_hull, plain_facet_count
from attnlab.analysis.plain_flow import (
    euler_steps,
    exponential_by_scipy,
    flow_by_scipy,
    polygon_radius,
)
from attnlab.analysis.rates import start_of_error, weighted_slope
from attnlab.analysis.self_leaders import self_lead, self_leaders
from attnlab.analysis.spectra import eigenvalues, largest_modulus
from attnlab.dynamics import attention
from attnlab.types import Weights


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(4)
    Q, K = rng.normal(size=(2, 3, 4, 4)) / 2
    return al.simulate(
        Weights(Q=Q, K=K, V=np.repeat(np.eye(4)[None], 3, axis=0)),
        rng.normal(size=(6, 4)),
        t_end=0.4,
        saves=3,
        rtol=1e-9,
    )


def test_leaks_and_unevenness_are_those_of_the_attention(run):
    gaps = score_gaps(run)
    P = np.stack([attention(run, at=at) for at in range(len(run.times))])
    assert gaps.shape == P.shape and gaps.max() == 0.0
    others = P.sum(axis=-1) - P.max(axis=-1)
    known = others > 1e-6
    assert known.any()
    np.testing.assert_allclose(np.exp(log_leaks(gaps))[known], others[known], rtol=1e-6)
    np.testing.assert_allclose(
        np.exp(log_unevenness(gaps)), np.abs(6 * P - 1).max(axis=(1, 2, 3)), rtol=1e-9
    )


def test_a_leak_below_double_precision_is_known():
    assert log_leaks(np.array([[0.0, -900.0, -905.0]])) == pytest.approx(
        [-900 + np.log1p(np.exp(-5.0))]
    )


def test_heads_with_one_leader_each_have_no_second_eigenvalue():
    P = np.zeros((3, 6, 6))
    P[range(3), :, range(3)] = 1.0
    assert second_if_unrelated(P) == pytest.approx(0.0, abs=1e-7)


def test_a_head_without_followers_stays_a_permutation():
    assert second_if_unrelated(np.eye(7)[None]) == pytest.approx(1.0)


@pytest.mark.slow
def test_unrelated_random_maps_have_a_second_eigenvalue_of_one_over_root_h():
    """The circular law: |lambda_2| / H is 1 / sqrt(H), with corrections of order n^(-1/2)."""
    maps = np.eye(300)[np.random.default_rng(1).integers(0, 300, (16, 300))]
    assert second_if_unrelated(maps) == pytest.approx(1 / 4, rel=0.1)


def test_rows_are_drawn_again_for_each_head_on_its_own():
    """Sixteen equal heads keep |lambda_2| = H; sixteen different permutations do not.

    The mean of 16 unrelated permutations of 60 tokens has the radius 1/4 of the circular law.
    """
    assert second_if_unrelated(np.repeat(np.eye(60)[None], 16, axis=0)) == pytest.approx(
        1 / 4, rel=0.2
    )


def test_the_lead_says_who_leads_itself():
    x = np.random.default_rng(7).normal(size=(30, 2))
    assert np.flatnonzero(self_lead(x) >= 0).tolist() == self_leaders(x).tolist()
    assert self_lead(np.array([[2.0, 0.0], [1.0, 0.0]])) == pytest.approx([2.0, -1.0])


@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_polygon_is_a_flow(n):
    angles = 2 * np.pi * np.arange(n) / n
    x0, times = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.array([0.0, 0.3, 0.9])
    x = flow_by_scipy(Weights(V=np.eye(2)), x0, times)
    radii = np.linalg.norm(x, axis=-1) * np.exp(-times)[:, None]
    np.testing.assert_allclose(
        radii, np.repeat(polygon_radius(n, times)[:, None], n, axis=1), rtol=1e-8
    )


def test_euler_steps_are_of_first_order(run):
    weights = run.dynamics.weights
    x0 = run.x[0]
    exact = flow_by_scipy(weights, x0, 0.2)
    coarse, fine = (
        np.abs(euler_steps(weights, x0, 0.2 / count, count)[-1] - exact).max()
        for count in (200, 400)
    )
    assert coarse / fine == pytest.approx(2.0, rel=0.1)


def test_facets_by_trying_all_triples_are_those_of_the_hull():
    points = np.random.default_rng(3).normal(size=(15, 3))
    assert plain_facet_count(points) == len(convex_hull(points).facets)
    assert plain_facet_count(np.vstack([np.zeros(3), np.eye(3), np.full(3, 0.1)])) == 4


def test_arnoldi_finds_the_leading_modulus():
    B, C = np.random.default_rng(5).normal(size=(2, 30, 6))
    weights = Weights(Q=np.eye(30)[None], K=np.eye(30)[None], V=(B[None], C.T[None]))
    assert largest_modulus(weights) == pytest.approx(abs(eigenvalues(weights)[0]), rel=1e-9)


def test_the_fastest_space_of_a_pair_is_its_plane():
    V = np.zeros((4, 4))
    V[:2, :2], V[2, 2], V[3, 3] = [[0.5, -2.0], [2.0, 0.5]], 0.4, -3.0
    space = fastest_space(Weights(Q=np.eye(4)[None], K=np.eye(4)[None], V=V[None]))
    assert space @ space.T == pytest.approx(np.diag([1.0, 1.0, 0.0, 0.0]))


def test_a_cluster_that_looks_at_itself_goes_along_the_fastest_eigenvector():
    V = np.diag([2.0, 1.0, -1.0])
    weights = Weights(Q=np.eye(3)[None], K=np.eye(3)[None], V=V[None])
    labels, P = np.array([0, 0, 1]), np.array([[[1.0, 0, 0], [1, 0, 0], [1, 0, 0]]])
    space = fastest_modes(weights, P, labels, 0.1)
    assert space.shape == (3, 1) and abs(space[0, 0]) == pytest.approx(1.0)
    assert fastest_modes(weights, P, labels, 0.6).shape == (3, 2)


def test_directions_are_counted_whatever_the_lengths():
    x = np.array([[1.0, 0.0], [9.0, 0.1], [0.0, 2.0], [-3.0, 0.0]])
    assert direction_count(x, 0.1) == 3 and unit(x)[3] == pytest.approx([-1.0, 0.0])


def test_the_start_of_an_error_is_extrapolated():
    t = np.geomspace(1e-3, 1e-2, 12)
    coefficient, slope = start_of_error(t, 3 * t**2 + 50 * t**3)
    assert coefficient == pytest.approx(3.0, rel=1e-3) and slope == pytest.approx(2.0, abs=0.1)


def test_the_exponential_by_factors_is_that_of_the_matrix():
    from scipy.linalg import expm

    B, C = np.random.default_rng(8).normal(size=(2, 12, 3)) / 3
    one, x = np.eye(12)[None], np.arange(12.0)
    expected = expm(0.7 * B @ C.T) @ x
    factored, dense = (
        Weights(Q=one, K=one, V=(B[None], C.T[None])),
        Weights(Q=one, K=one, V=(B @ C.T)[None]),
    )
    for weights in (factored, dense):
        np.testing.assert_allclose(exponential_by_scipy(weights, x, 0.7), expected, rtol=1e-10)


def test_a_weighted_slope_is_that_of_repeated_points():
    """A point with half the standard error counts like four points."""
    u, v = np.array([0.0, 1.0, 3.0, 4.0]), np.array([1.0, 2.5, 2.0, 6.0])
    slope, error = weighted_slope(u, v, np.array([1.0, 0.5, 1.0, 0.5]))
    times = [1, 4, 1, 4]
    many, spread = np.repeat(u, times), np.repeat(u, times) - np.repeat(u, times).mean()
    assert slope == pytest.approx(np.polyfit(many, np.repeat(v, times), 1)[0])
    assert error == pytest.approx(1 / np.sqrt((spread**2).sum()))
