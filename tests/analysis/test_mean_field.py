"""The mean-field equation, its stability, distances of clouds, three hyperplanes, derivatives of
the flow: planted answers.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.finite_volumes import (
    SCHEMES,
    gaussian_at,
    quantiles_of_cells,
    solve_mean_field,
)
from attnlab.analysis.hyperplanes import normals, three_planes
from attnlab.analysis.plain_flow import flow_by_scipy, frame_by_scipy, tangent_by_scipy
from attnlab.analysis.rates import observed_order
from attnlab.analysis.stability import largest_distance_rate, stability_rate
from attnlab.analysis.transport import (
    Law,
    cloud_distance,
    coupling,
    truncated_bells,
    uniform_law,
    wasserstein,
)

TIMES = np.array([0.0, 0.4, 0.8])


def tokens(n: int, d: int, rng: int = 0) -> np.ndarray:
    return np.random.default_rng([rng, n, d]).normal(size=(n, d))


def wide_gaussian(mean: float, deviation: float) -> Law:
    """A Gaussian on an interval so wide that what is cut off is far below the error of a grid."""
    ends = 7 * deviation
    bell = truncated_bells("", (1.0, mean / ends, deviation / ends))
    return Law(
        "Gaussian",
        -ends,
        ends,
        lambda x: bell.cumulative(x / ends),
        lambda x: bell.density(x / ends) / ends,
    )


class TestFiniteVolumes:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize("V", [1.0, -1.0])
    def test_mass_stays_and_no_cell_is_negative(self, scheme, V):
        masses = solve_mean_field(uniform_law(), 40, TIMES, V, scheme)
        assert masses.shape == (3, 40) and masses.min() >= 0
        assert masses.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)

    @pytest.mark.parametrize("V", [1.0, -1.0])
    def test_a_gaussian_stays_the_gaussian_of_the_closed_form(self, V):
        """With both schemes and their orders; the closed form itself is checked by its differential
        equation below.
        """
        mean, deviation = gaussian_at(TIMES, V, 0.1, 0.5)
        law, cells, errors = (
            wide_gaussian(0.1, 0.5),
            np.array([60, 120, 240]),
            {scheme: [] for scheme in SCHEMES},
        )
        for scheme, N in itertools.product(SCHEMES, cells):
            faces = np.linspace(law.low, law.high, N + 1)
            centres, masses = (
                (faces[1:] + faces[:-1]) / 2,
                solve_mean_field(law, int(N), TIMES, V, scheme)[-1],
            )
            spread = np.sqrt(masses @ centres**2 - (masses @ centres) ** 2)
            errors[scheme].append(abs(spread - deviation[-1]))
            assert masses @ centres == pytest.approx(mean[-1], abs=0.02)
        assert observed_order(cells, np.array(errors["limited"]))[0] > 1.7
        assert 0.8 < observed_order(cells, np.array(errors["upwind"]))[0] < 1.3

    @pytest.mark.parametrize("V", [1.0, -1.0])
    def test_the_closed_form_solves_its_equations(self, V):
        """a' = V a^3 and m' = V m (1 + a^2) in x, by central differences."""
        step, scale = 1e-5, np.exp(TIMES) if V > 0 else 1.0

        def in_x(shift: float) -> np.ndarray:
            factor = np.exp(TIMES + shift) if V > 0 else 1.0
            return np.array(gaussian_at(TIMES + shift, V, 0.3, 0.5)) * factor

        m, a = np.array(gaussian_at(TIMES, V, 0.3, 0.5)) * scale
        slopes = (in_x(step) - in_x(-step)) / (2 * step)
        assert slopes == pytest.approx(np.array([V * m * (1 + a**2), V * a**3]), rel=1e-7)

    def test_the_grid_agrees_with_many_tokens(self):
        law = truncated_bells("two bells", (0.35, -0.6, 0.3), (0.65, 0.5, 0.3))
        masses, faces = solve_mean_field(law, 200, TIMES, 1.0), np.linspace(-1, 1, 201)
        run = al.simulate(al.Weights(V=np.eye(1)), law.start(400), times=TIMES, t_end=TIMES[-1])
        levels = (np.arange(400) + 0.5) / 400
        for row, z in zip(masses, run.z[..., 0], strict=True):
            assert np.abs(quantiles_of_cells(faces, row, levels) - z).mean() < 2 / 200  # one cell

    def test_what_it_cannot_solve_is_refused(self):
        with pytest.raises(ValueError, match="V must be 1 or -1"):
            solve_mean_field(uniform_law(), 10, TIMES, 2.0)
        with pytest.raises(ValueError, match="scheme must be one of"):
            solve_mean_field(uniform_law(), 10, TIMES, 1.0, "central")


class TestClouds:
    def test_the_distance_is_the_least_over_all_permutations(self):
        x, y = tokens(6, 2), tokens(6, 2, rng=1)
        least = min(
            np.mean(np.sum((x - y[list(order)]) ** 2, axis=1))
            for order in itertools.permutations(range(6))
        )
        assert cloud_distance(x, y) ** 2 == pytest.approx(least, rel=1e-12)
        assert sorted(coupling(x, y)) == list(range(6))

    def test_on_the_line_it_is_that_of_the_sorted_tokens(self):
        x, y = tokens(9, 1), 2 * tokens(9, 1, rng=1)
        assert cloud_distance(x, y) == pytest.approx(wasserstein(x, y), rel=1e-12)


class TestStability:
    @pytest.mark.parametrize("seed", range(4))
    def test_no_pair_of_runs_separates_faster(self, seed):
        rng = np.random.default_rng(seed)
        V, M = rng.normal(size=(2, 2, 2))
        norms = np.linalg.norm(V, 2), np.linalg.norm(M, 2)
        x = rng.uniform(-0.6, 0.6, (8, 2))
        y = x + 1e-4 * rng.normal(size=x.shape)
        t = np.linspace(0.0, 0.4, 9)
        runs = np.array(
            [flow_by_scipy(al.Weights(V=V, Q=np.eye(2), K=M), start, t) for start in (x, y)]
        )
        R = np.linalg.norm(runs, axis=-1).max(axis=(0, 2))
        reached = R[:-1] * np.exp(
            norms[0] * np.diff(t)
        )  # no token is farther out between two saved times
        far = np.array([cloud_distance(*pair) for pair in np.swapaxes(runs, 0, 1)])
        assert (np.abs(np.diff(np.log(far))) <= stability_rate(reached, *norms) * np.diff(t)).all()
        largest = np.linalg.norm(runs[0] - runs[1], axis=-1).max(axis=-1)
        assert (
            np.diff(np.log(largest)) <= largest_distance_rate(reached, *norms) * np.diff(t)
        ).all()

    def test_one_token_grows_at_the_rate_of_V(self):
        """A ball of radius 0 leaves x' = V x."""
        assert stability_rate(0.0, V=3.0) == 3.0 and largest_distance_rate(0.0, V=3.0) == 3.0


class TestHyperplanes:
    @pytest.mark.parametrize("d", [2, 3])
    def test_planted_planes_are_found(self, d):
        """Points on three hyperplanes whose normal is one of those that are tried, and thickened by
        a known amount.
        """
        rng, normal = np.random.default_rng(0), normals(d)[137]
        points = rng.uniform(-1, 1, (30, d))
        points += np.outer(np.repeat([-3.0, 0.5, 2.0], 10) - points @ normal, normal)
        assert three_planes(points) < 1e-12
        points += np.outer(np.tile([0.05, -0.05], 15), normal)
        assert 0.03 < three_planes(points) <= 0.05 + 1e-12

    def test_four_planes_are_too_many(self):
        points = np.array([[x, y] for x in range(4) for y in range(4)], dtype=float)
        assert three_planes(points) == pytest.approx(0.5)  # two neighbouring lines share a strip

    def test_normals_are_unit_vectors_in_every_direction(self):
        for d, gap in ((2, 0.01), (3, 0.06)):
            found, asked = normals(d), tokens(500, d)
            assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(found)))
            cosine = np.abs(found @ (asked / np.linalg.norm(asked, axis=1, keepdims=True)).T).max(
                axis=0
            )
            assert np.arccos(cosine.min()) < gap
        with pytest.raises(ValueError, match="d = 2 or 3, got d = 4"):
            normals(4)


class TestFlowsByScipy:
    def test_the_rescaled_frame_is_that_of_the_flow(self):
        rng = np.random.default_rng(3)
        V, M = rng.normal(size=(2, 2, 2))
        x0, times = tokens(5, 2), [0.3, 0.7]
        x = flow_by_scipy(al.Weights(V=V, Q=np.eye(2), K=M), x0, times)
        values, right = np.linalg.eig(V)
        back = [np.real((right * np.exp(-t * values)) @ np.linalg.inv(right)) for t in times]
        z = np.array([tokens_at @ matrix.T for tokens_at, matrix in zip(x, back, strict=True)])
        assert frame_by_scipy(V, M, x0, times) == pytest.approx(z, abs=1e-9)

    @pytest.mark.parametrize(
        ("sigma", "W"),
        [("relu", None), ("tanh", [[0.4, -1.0], [0.7, 0.2]])],
        ids=["relu", "tanh with W"],
    )
    def test_the_feed_forward_part_is_that_of_the_engine(self, sigma, W):
        """The engine has a feed-forward part of its own: two programs for one equation."""
        after = al.FeedForward(W=None if W is None else np.array(W), sigma=sigma)
        V, x0, times = np.diag([1.0, 0.6]), tokens(5, 2), np.array([0.2, 0.5])
        run = al.simulate(al.Weights(V=V), x0, times=times, t_end=0.5, feedforward=after, rtol=1e-9)
        assert frame_by_scipy(V, np.eye(2), x0, times, after) == pytest.approx(run.z[-2:], abs=1e-6)

    def test_the_tangent_map_is_the_derivative_of_the_flow(self):
        rng = np.random.default_rng(4)
        V, M = rng.normal(size=(2, 2, 2))
        x0, weights, step = tokens(4, 2), al.Weights(V=V, Q=np.eye(2), K=M), 1e-5
        found = tangent_by_scipy(V, M, x0, 0.6)
        for column in range(x0.size):
            nudge = (step * np.eye(x0.size)[column]).reshape(x0.shape)
            ends = [flow_by_scipy(weights, x0 + sign * nudge, 0.6, rtol=1e-12) for sign in (1, -1)]
            assert found[:, column] == pytest.approx(
                (ends[0] - ends[1]).ravel() / (2 * step), abs=1e-6
            )
