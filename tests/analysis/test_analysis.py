"""Numbers from tokens: planted answers, closed forms, independent computations, and invariance
under rotation and permutation.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attnlab as al
from attnlab.analysis import observables, spectra
from attnlab.analysis.attention import (
    attention_rank,
    effective_rank,
    is_boolean_row,
    leaders,
    log_weights,
    received,
    row_entropy,
)
from attnlab.analysis.clusters import cluster_centres, cluster_count, cluster_labels
from attnlab.analysis.collapse import nc1, nc2
from attnlab.analysis.distances import diameter, min_distance, pairwise_distances
from attnlab.analysis.energy import interaction_energy, log_pair_sum
from attnlab.analysis.hull import (
    convex_hull,
    directions,
    distance_to_hull,
    hull_violation,
    support,
)
from attnlab.analysis.rates import (
    escape_constant,
    fit_double_exponential,
    fit_exponential,
    fit_line,
    fit_power_law,
)
from attnlab.analysis.spectra import (
    eigenvalues,
    good_triple_margins,
    identity_margins,
    is_good_triple,
    is_multiple_of_identity,
    is_paranormal,
    is_spd_scores,
    is_symmetric_value,
    leading,
    leading_splitting,
    paranormal_margins,
    spd_margins,
    unstable_dimension,
    unstable_splitting,
)
from attnlab.dynamics import attention
from attnlab.starts import planted, planted_labels
from attnlab.types import Dynamics, Solve, Status, Trajectory, Weights
from attnlab.weights import weights_families
from attnlab.weights.spectrum import orthogonal_basis


def rotation(d: int, seed: int) -> np.ndarray:
    return orthogonal_basis(d, np.random.default_rng(seed))


def similar(A, seed: int) -> Weights:
    """Q = K = I, and V = S A S^{-1} with a random basis S of moderate condition."""
    A = np.array(A, dtype=float)
    S = np.eye(len(A)) + 0.3 * np.random.default_rng(seed).standard_normal(A.shape)
    return Weights(V=S @ A @ np.linalg.inv(S))


# --- clusters
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "clusters"), [(12, 1, 4), (20, 2, 3), (30, 6, 7), (5, 3, 1), (6, 2, 6)]
)
def test_planted_clusters_are_found(n, d, clusters):
    x = planted(n, d, clusters=clusters, spread=0.1, separation=1.0, rng=0)
    labels = planted_labels(n, clusters)
    assert np.array_equal(cluster_labels(x, 0.21), labels)
    assert cluster_count(x, 0.21) == clusters
    assert cluster_count(x, 0.79) == clusters
    centres = cluster_centres(x, labels)
    for k in range(clusters):
        assert np.allclose(centres[k], x[labels == k].mean(axis=0), atol=1e-14)


def test_clusters_are_chains_at_the_stated_scale():
    x = np.array([[0.0], [3.0], [1.0], [2.0], [10.0]])
    assert cluster_labels(x, 1.0).tolist() == [0, 0, 0, 0, 1]
    assert cluster_labels(x, 0.999).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="scale must be a positive number, got 0"):
        cluster_labels(x, 0.0)


def test_clusters_over_time_and_of_unknown_tokens():
    x = np.array([[[0.0], [1.0], [2.0]], [[0.0], [0.1], [2.0]], [[0.0], [0.1], [np.nan]]])
    assert cluster_labels(x, 0.5).tolist() == [[0, 1, 2], [0, 0, 1], [0, 0, -1]]
    assert cluster_count(x, 0.5).tolist() == [3, 2, 1]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(1, 4), st.integers(0, 10**6), st.floats(0.05, 2.0))
def test_clusters_are_components_whatever_the_order_and_rotation(n, d, seed, scale):
    from scipy.cluster.hierarchy import fcluster, linkage

    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    gaps = np.abs(pairwise_distances(x) - scale)
    if gaps.min() < 1e-9:
        return
    labels = cluster_labels(x, scale)
    together = labels[:, None] == labels
    if n > 1:
        expected = fcluster(linkage(x, "single"), scale, criterion="distance")
        assert np.array_equal(together, expected[:, None] == expected)
    order = rng.permutation(n)
    moved = cluster_labels((x @ rotation(d, seed).T + 1.0)[order], scale)
    assert np.array_equal(moved[:, None] == moved, together[np.ix_(order, order)])
    first = [int(np.flatnonzero(labels == k)[0]) for k in range(labels.max() + 1)]
    assert first == sorted(first)


# --- hulls
# --------------------------------------------------------------------------------------------------


def cube(d: int) -> np.ndarray:
    return np.array(list(itertools.product([0.0, 1.0], repeat=d)))


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_cube_with_points_inside_on_edges_and_on_facets(d):
    corners = cube(d)
    rng = np.random.default_rng(0)
    inside = rng.uniform(0.1, 0.9, (5, d))
    on_facet = inside.copy()
    on_facet[:, 0] = 1.0
    on_edge = np.zeros((1, d))
    on_edge[0, -1] = 0.5
    points = np.concatenate([inside, corners, on_facet if d > 1 else inside, on_edge, corners[:1]])
    hull = convex_hull(points)
    assert hull.rank == d and abs(hull.volume - 1.0) < 1e-12
    assert np.array_equal(np.sort(hull.vertices), hull.vertices)
    # a corner that occurs twice may be named by either index
    assert {tuple(points[k]) for k in hull.vertices} == {tuple(corner) for corner in corners}
    assert len(hull.vertices) == 2**d
    assert len(hull.edges) == d * 2 ** (d - 1)
    assert all(np.abs(points[i] - points[j]).sum() == 1.0 for i, j in hull.edges)
    assert hull.facets.shape[1] == d and set(hull.facets.ravel()) == set(hull.vertices)


@pytest.mark.parametrize("d", [2, 3, 5, 8])
def test_simplex(d):
    points = np.vstack([np.zeros(d), np.eye(d)])
    hull = convex_hull(points)
    assert hull.vertices.tolist() == list(range(d + 1)) and len(hull.edges) == d * (d + 1) // 2
    assert len(hull.facets) == d + 1
    assert abs(hull.volume * np.prod(np.arange(1.0, d + 1)) - 1) < 1e-9


def test_polygon_area_and_edges():
    n = 9
    angles = 2 * np.pi * np.arange(n) / n
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    order = np.random.default_rng(0).permutation(n)
    hull = convex_hull(points[order])
    assert abs(hull.volume - n / 2 * np.sin(2 * np.pi / n)) < 1e-12
    assert {frozenset(order[list(edge)].tolist()) for edge in hull.edges} == {
        frozenset((k, (k + 1) % n)) for k in range(n)
    }


@pytest.mark.parametrize("d", [2, 3, 7, 20])
def test_degenerate_sets(d):
    rng = np.random.default_rng(d)
    direction, other = rotation(d, 0)[:, :2].T
    base = rng.standard_normal(d)

    point = convex_hull(np.tile(base, (4, 1)))
    assert (
        point.rank == 0
        and len(point.vertices) == 1
        and point.edges.shape == (0, 2)
        and point.volume == 0.0
    )
    assert point.facets.shape == (0, d)

    values = np.array([0.3, -1.0, 2.0, 0.5, 2.0])
    segment = convex_hull(base + values[:, None] * direction)
    assert segment.rank == 1 and segment.edges.shape == (1, 2)
    assert sorted(values[segment.vertices]) == [-1.0, 2.0] and segment.volume == 0.0

    if d > 2:
        square = base + np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]]) @ np.stack(
            [direction, other]
        )
        polygon = convex_hull(square)
        assert (
            polygon.rank == 2
            and polygon.vertices.tolist() == [0, 1, 2, 3]
            and polygon.volume == 0.0
        )
        assert sorted(map(tuple, polygon.edges.tolist())) == [(0, 1), (0, 3), (1, 2), (2, 3)]
        assert len(polygon.facets) == 0
        away = np.linalg.svd(np.stack([direction, other]))[2][2]
        assert np.isclose(hull_violation(square, square[4] + 0.25 * away), 0.25)
    assert np.isclose(hull_violation(base[None], base + 2 * direction), 2.0)
    assert np.isclose(hull_violation(segment, base + 2.75 * direction), 0.75)


def test_clusters_at_rounding_level_do_not_disturb_the_hull():
    rng = np.random.default_rng(0)
    corners = np.repeat(cube(3) * 4 - 2, 5, axis=0)
    hull = convex_hull(corners + 1e-15 * rng.standard_normal(corners.shape))
    assert abs(hull.volume - 64.0) < 1e-9
    far = 1e6 + np.tile([[1.0, 2.0]], (6, 1)) + 1e-10 * rng.standard_normal((6, 2))
    assert convex_hull(far).rank == 0


def test_high_rank_is_refused_with_the_way_out():
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueError,
        match="span 9 dimensions, and hulls can be listed up to 8. Compare support functions",
    ):
        convex_hull(rng.standard_normal((12, 9)))
    assert convex_hull(rng.standard_normal((4, 9))).rank == 3
    with pytest.raises(ValueError, match="finite points"):
        convex_hull([[np.nan, 0.0]])


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e150])
def test_a_hull_does_not_depend_on_the_unit(size):
    points = np.random.default_rng(5).normal(size=(30, 3))
    one, other = convex_hull(points), convex_hull(size * points)
    np.testing.assert_array_equal(one.vertices, other.vertices)
    np.testing.assert_array_equal(one.edges, other.edges)
    assert other.offsets.max() == pytest.approx(size * one.offsets.max(), rel=1e-12)
    if 1e-100 < size < 1e100:
        assert other.volume == pytest.approx(size**3 * one.volume, rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(0, 10**6))
def test_hull_agrees_with_linear_programs_and_support(d, n, seed):
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, d))
    hull = convex_hull(points)
    order, R = rng.permutation(n), rotation(d, seed)
    turned = convex_hull((points @ R.T)[order])
    assert sorted(order[turned.vertices].tolist()) == hull.vertices.tolist()
    assert np.isclose(turned.volume, hull.volume, rtol=1e-9) and turned.rank == hull.rank == min(
        n - 1, d
    )
    u = directions(20, d, rng=rng)
    assert np.allclose(support(points, u), support(points[hull.vertices], u), atol=1e-12)
    assert hull_violation(points, points).max() <= 1e-12
    for query in rng.standard_normal((3, d)):
        program = linprog(
            np.zeros(n), A_eq=np.vstack([points.T, np.ones(n)]), b_eq=np.append(query, 1.0)
        )
        violation = hull_violation(hull, query)
        assert (violation <= 1e-9) == program.success
        if program.success:
            assert (u @ query <= support(points, u) + 1e-9).all()


@pytest.mark.parametrize("seed", range(40))
def test_the_distance_from_a_hull_is_the_least_one_to_its_points(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 5))
    points, point = rng.normal(size=(n, d)), rng.normal(size=d)
    found = distance_to_hull(points, point)
    # no facet is violated by more, no mixture is nearer, and mixtures lie inside
    assert found >= max(float(hull_violation(points, point)), 0.0) - 1e-12
    mixed = rng.dirichlet(np.full(n, 0.5), size=2000) @ points
    apart = np.linalg.norm(mixed - point, axis=1)
    assert apart.min() >= found - 1e-12
    assert distance_to_hull(points, mixed[0]) < 1e-12
    # a plane through the nearest point keeps all points on its other side
    if found > 1e-9:
        from scipy.optimize import minimize

        start = np.full(n, 1.0 / n)
        best = minimize(
            lambda l: ((l @ points - point) ** 2).sum(),
            start,
            bounds=[(0.0, 1.0)] * n,
            constraints={"type": "eq", "fun": lambda l: l.sum() - 1.0},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert np.isclose(found, np.sqrt(best.fun), rtol=1e-4, atol=1e-6)


def test_a_point_just_outside_of_a_face_has_its_distance_in_thirteen_dimensions():
    points = np.eye(13)
    normal = np.ones(13) / np.sqrt(13.0)
    for away in (1.0, 1e-3, 1e-7):
        point = points.mean(axis=0) + away * normal
        assert np.isclose(distance_to_hull(points, point), away, rtol=1e-6)
    assert distance_to_hull(points, points[3]) == 0.0
    assert distance_to_hull(points[:1], points[0]) == 0.0


def test_violation_is_the_facet_distance():
    assert np.allclose(
        hull_violation(cube(2), [[1.5, 0.5], [0.5, 0.5], [2.0, 3.0], [0.5, -0.25]]),
        [0.5, -0.5, 2.0, 0.25],
    )


def test_directions_are_repeatable_unit_vectors():
    u = directions(50, 3)
    assert np.allclose(np.linalg.norm(u, axis=1), 1) and np.array_equal(u, directions(50, 3))
    assert not np.array_equal(u, directions(50, 3, rng=1))


# --- spectra
# --------------------------------------------------------------------------------------------------


def test_eigenvalues_are_ordered_by_modulus():
    w = weights_families["spectrum"](eigenvalues=[0.5, -2.0, [1.0, 1.0], 2.0], rng=0)
    assert np.allclose(eigenvalues(w), [2.0, -2.0, 1 + 1j, 1 - 1j, 0.5])


def test_factored_spectrum_equals_the_full_one():
    w = weights_families["gaussian"](12, rank=4, rng=0)
    full = Weights(Q=w.Q, K=w.K, V=w.full_V)
    assert w.is_factored
    assert np.allclose(
        np.sort_complex(np.round(eigenvalues(w), 10)),
        np.sort_complex(np.round(eigenvalues(full), 10)),
    )
    a, b = leading(w), leading(full)
    assert np.isclose(a.value, b.value)
    assert np.allclose(np.abs(a.phi), np.abs(b.phi)) and np.allclose(np.abs(a.psi), np.abs(b.psi))
    assert unstable_dimension(w) == unstable_dimension(full)


@pytest.mark.parametrize("seed", range(5))
def test_leading_eigenvectors(seed):
    w = weights_families["good_triple"](5, rng=seed)
    first, V = leading(w), w.V[0]
    assert first.phi.dtype == first.psi.dtype == float
    assert np.allclose(V @ first.phi, first.value.real * first.phi) and np.allclose(
        first.psi @ V, first.value.real * first.psi
    )
    assert np.isclose(first.psi @ first.phi, 1) and np.isclose(np.linalg.norm(first.phi), 1)
    assert first.phi[np.argmax(np.abs(first.phi))] > 0
    pair = leading(
        weights_families["spectrum"](eigenvalues=[0.5, [0.0, 2.0]], basis="random", rng=seed)
    )
    assert np.isclose(pair.value, 2j) and np.isclose(pair.psi @ pair.phi, 1)


def test_several_heads_are_refused():
    with pytest.raises(ValueError, match="about one head, these weights have 2"):
        is_good_triple(weights_families["gaussian"](3, heads=2, rng=0))


ROTATED_JORDAN = [[1, 1, 0], [0, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("V", "triple", "paranormal"),
    [
        ([[1.0, 0, 0], [0, 0.9, 0], [0, 0, -0.9]], True, True),
        ([[1.0, 0, 0], [0, 0.2, 0.5], [0, -0.5, 0.2]], True, True),  # complex below the leading one
        ([[1.0, 0, 0], [0, 0.5, 1], [0, 0, 0.5]], True, True),  # a Jordan block below
        ([[1.0, 0, 0], [0, 1, 0], [0, 0, -0.5]], False, True),  # double, but semisimple
        ([[1.0, 1, 0], [0, 1, 0], [0, 0, 0.3]], False, False),  # Jordan block at the top
        (ROTATED_JORDAN, False, False),  # of size 3: eigenvalues split by eps^{1/3}
        ([[0.2, 1, 0], [-1, 0.2, 0], [0, 0, 1]], False, False),  # complex leading pair
        ([[-1.0, 0, 0], [0, 0.5, 0], [0, 0, 0.1]], False, False),  # negative leading eigenvalue
        ([[1.0, 0, 0], [0, -1, 0], [0, 0, 0.1]], False, False),  # lambda and -lambda: no dominance
        ([[0.0, 0, 0], [0, 0, 0], [0, 0, 0]], False, False),
    ],
)
def test_near_misses_of_good_triples_and_paranormal(V, triple, paranormal, seed):
    w = similar(V, seed)
    assert is_good_triple(w) is triple, good_triple_margins(w)
    assert is_paranormal(w) is paranormal, paranormal_margins(w)


def test_an_exact_jordan_block_is_known_by_its_defect():
    w = Weights(V=[[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.3]])
    margins = paranormal_margins(w)
    assert np.isclose(margins["gap"], 0.7) and np.isclose(margins["defect"], 1.0)
    assert not is_paranormal(w) and not is_good_triple(w)


def test_the_gap_is_measured_and_the_tolerance_decides():
    w = weights_families["spectrum"](eigenvalues=[1.0, 0.999, -0.2], rng=0)
    assert np.isclose(good_triple_margins(w)["gap"], 0.001) and np.isclose(
        paranormal_margins(w)["gap"], 0.001
    )
    assert is_good_triple(w) and not is_good_triple(w, tolerance=0.01)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_score_of_the_leading_direction_decides(sign):
    # M is indefinite and not symmetric; only phi_1^T M phi_1 counts, here with phi_1 = e_1
    w = Weights(Q=np.eye(2), K=[[sign, 5.0], [-7.0, -3.0]], V=np.diag([1.0, 0.5]))
    assert is_good_triple(w) is (sign > 0) and good_triple_margins(w)["score"] * sign > 0
    assert not is_good_triple(
        Weights(Q=np.eye(2), K=[[0.0, 5.0], [-7.0, -3.0]], V=np.diag([1.0, 0.5]))
    )


def test_the_oblique_projector():
    S = np.array(
        [[1.0, 0.0, 2.0], [0.0, 1.0, 3.0], [0.0, 0.0, 1.0]]
    )  # F = span(e_1, e_2), G = span((2, 3, 1))
    V = S @ np.diag([1.5, 1.5, -0.5]) @ np.linalg.inv(S)
    value, parts = leading_splitting(Weights(V=V))
    assert np.isclose(value, 1.5) and parts.F.shape == (3, 2)
    assert np.allclose(
        parts.projector, [[1, 0, -2], [0, 1, -3], [0, 0, 0]]
    )  # (x, y, z) -> (x - 2z, y - 3z, 0)
    assert np.allclose(parts.F[2], 0) and np.allclose(np.cross(parts.G[:, 0], [2, 3, 1]), 0)


def test_unstable_dimension_and_splitting():
    w = weights_families["spectrum"](
        eigenvalues=[1.2, [0.3, 2.0], -0.5, 0.0], basis="random", rng=3
    )
    assert unstable_dimension(w) == 3
    parts, V = unstable_splitting(w), w.V[0]
    P = parts.projector
    assert np.allclose(P @ P, P) and np.allclose(P @ V, V @ P) and np.isclose(np.trace(P), 3)
    assert (np.linalg.eigvals(parts.F.T @ V @ parts.F).real > 0.2).all()
    assert unstable_dimension(Weights(V=-np.eye(3))) == 0 and unstable_splitting(
        Weights(V=-np.eye(3))
    ).F.shape == (3, 0)
    assert np.array_equal(unstable_splitting(Weights(V=np.eye(3))).projector, np.eye(3))


def test_spd_near_misses():
    def scores(M):
        return Weights(Q=np.eye(len(M)), K=M, V=np.eye(len(M)))

    assert is_spd_scores(scores([[2.0, 1.0], [1.0, 1.0]]))
    assert not is_spd_scores(scores([[2.0, 1.0], [1.001, 1.0]]))  # not symmetric
    assert not is_spd_scores(scores([[1.0, 2.0], [2.0, 1.0]]))  # indefinite
    assert not is_spd_scores(scores([[1.0, 1.0], [1.0, 1.0]]))  # singular
    assert not is_spd_scores(scores([[0.0, 0.0], [0.0, 0.0]]))
    assert not is_spd_scores(
        Weights(Q=[[1.0, 0.0]], K=[[1.0, 0.0]], V=np.eye(2))
    )  # k < d: singular
    margins = spd_margins(scores(np.diag([4.0, 1.0])))
    assert margins == {"asymmetry": 0.0, "least": 0.25}


def test_multiples_of_the_identity_and_symmetry():
    assert identity_margins(Weights(V=-3 * np.eye(2))) == {"factor": -3.0, "distance": 0.0}
    near = np.eye(3)
    near[0, 2] = 1e-6
    assert not is_multiple_of_identity(Weights(V=near)) and is_multiple_of_identity(
        Weights(V=near), tolerance=1e-5
    )
    assert not is_multiple_of_identity(Weights(V=np.diag([1.0, 1.0, 1.001])))
    assert is_symmetric_value(Weights(V=[[1.0, 2.0], [2.0, 0.0]])) and not is_symmetric_value(
        Weights(V=near)
    )


# --- attention
# --------------------------------------------------------------------------------------------------


def test_attention_numbers_of_known_matrices():
    n = 4
    uniform, identity = np.full((n, n), 1 / n), np.eye(n)
    both = np.stack([uniform, identity])
    assert attention_rank(both).tolist() == [1, n]
    assert np.allclose(effective_rank(both), [1, n])
    assert np.allclose(row_entropy(both), [[np.log(n)] * n, [0.0] * n])
    assert np.allclose(received(both), 1 / n)
    P = np.array([[0.7, 0.2, 0.1], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4]])
    assert leaders(P).tolist() == [0, 2, 2]
    assert np.allclose(received(P), [1 / 3, 0.5 / 3, 1.5 / 3])
    assert (
        np.allclose(log_weights(P)[0], np.log([1.0, 2 / 7, 1 / 7]))
        and log_weights(P)[1, 0] == -np.inf
    )
    assert is_boolean_row(P).tolist() == [False, True, False]
    row = np.array([[1.0, np.exp(-39.0)], [1.0, np.exp(-41.0)]])
    assert is_boolean_row(row).tolist() == [False, True] and is_boolean_row(
        np.ones((1, 1))
    ).tolist() == [True]


def test_effective_rank_of_given_singular_values():
    # entropy of (1/2, 1/4, 1/4) is (3/2) log 2
    s = rotation(3, 0) @ np.diag([2.0, 1.0, 1.0]) @ rotation(3, 1)
    assert np.isclose(effective_rank(s), 2**1.5)


def test_attention_numbers_do_not_depend_on_the_order_of_tokens():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(6), size=(2, 6))
    order = rng.permutation(6)
    Q = P[:, order][:, :, order]
    for number in (attention_rank, effective_rank):
        assert np.allclose(number(P), number(Q))
    assert np.allclose(row_entropy(P)[:, order], row_entropy(Q)) and np.allclose(
        received(P)[:, order], received(Q)
    )


# --- rates
# --------------------------------------------------------------------------------------------------


def test_exact_laws_are_recovered():
    t = np.linspace(0.5, 6.0, 40)
    for fit, y, slope, intercept in (
        (fit_exponential, 3.0 * np.exp(-1.7 * t), -1.7, np.log(3.0)),
        (fit_power_law, 2.0 * t**-0.5, -0.5, np.log(2.0)),
        (fit_double_exponential, -0.3 * np.exp(1.2 * t), 1.2, np.log(0.3)),
    ):
        found = fit(t, y)
        assert np.isclose(found.slope, slope) and np.isclose(found.intercept, intercept)
        assert found.slope_error < 1e-12 and found.residual < 1e-12


def test_standard_errors_are_those_of_the_normal_model():
    rng = np.random.default_rng(0)
    u, sigma = np.linspace(0, 1, 20), 0.1
    slopes = [fit_line(u, 1 + 2 * u + sigma * rng.standard_normal(20)) for _ in range(400)]
    true_error = sigma / np.sqrt(np.sum((u - u.mean()) ** 2))
    deviations = np.array([fit.slope - 2.0 for fit in slopes]) / true_error
    assert abs(deviations.mean()) < 5 / np.sqrt(400) and abs(
        np.mean(deviations**2) - 1
    ) < 5 * np.sqrt(2 / 400)
    # the estimated variance is chi2 with 18 degrees of freedom
    ratios = np.array([fit.slope_error**2 for fit in slopes]) / true_error**2
    assert abs(ratios.mean() - 1) < 5 * np.sqrt(2 / 18 / 400)


def test_fits_refuse_what_they_cannot_use():
    t = np.arange(4.0)
    with pytest.raises(ValueError, match="whose logarithms exist"):
        fit_exponential(t, [1.0, 0.5, 0.0, 0.1])
    with pytest.raises(ValueError, match="3 or more; got shapes"):
        fit_line(t[:2], t[:2])
    with pytest.raises(ValueError, match="two different abscissas"):
        fit_line(np.ones(4), t)


@pytest.mark.parametrize("n", [1, 2, 40, 10_000])
def test_escape_constant_solves_its_equation(n):
    A = escape_constant(n)
    assert A > 0 and np.isclose(A**2, n**2 * np.exp(-(A**2)), rtol=1e-9)


# --- collapse
# --------------------------------------------------------------------------------------------------


def simplex_means(count: int, d: int) -> np.ndarray:
    means = np.eye(count) - 1 / count
    return np.pad(means, ((0, 0), (0, d - count))) @ rotation(d, 0).T + 3.0


def test_nc2_of_a_simplex_and_of_a_stretched_one():
    labels = np.repeat(np.arange(4), 3)
    means = simplex_means(4, 6)
    angles, norms = nc2(means[labels], labels)
    assert angles < 1e-12 and norms < 1e-12 and nc1(means[labels], labels) < 1e-25
    line = np.array([[-2.0], [-1.0], [3.0]])[np.repeat(np.arange(3), 2)]
    angles, norms = nc2(line, np.repeat(np.arange(3), 2))
    # cosines +1, -1, -1 against -1/2; lengths 2, 1, 3
    assert np.isclose(angles, (1.5 + 0.5 + 0.5) / 3) and np.isclose(norms, np.std([2, 1, 3]) / 2)


def test_nc1_against_the_definition_with_dense_matrices():
    rng = np.random.default_rng(0)
    labels = np.array(
        [0, 0, 0, 1, 1, 2, 2, 2, 3, -1, -1]
    )  # 3 is a singleton, -1 undecided: left out
    x = rng.standard_normal((2, 11, 5)) + 3 * rng.standard_normal((5, 5))[labels]
    means = np.stack([x[:, labels == k].mean(axis=1) for k in range(3)], axis=1)
    for b in range(2):
        within = sum(np.outer(v, v) for k in range(3) for v in x[b, labels == k] - means[b, k]) / 8
        centred = means[b] - means[b].mean(axis=0)
        between = centred.T @ centred / 3
        expected = np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / 3
        assert np.isclose(nc1(x, labels)[b], expected)
    changed = x.copy()
    changed[:, 8:] = 100.0
    assert np.array_equal(nc1(changed, labels), nc1(x, labels))
    R, order = rotation(5, 2), rng.permutation(11)
    assert np.allclose(nc1(2 * x[:, order] @ R.T + 1, labels[order]), nc1(x, labels))
    assert np.allclose(nc2(2 * x[:, order] @ R.T + 1, labels[order]), nc2(x, labels))


def test_collapse_refuses_single_clusters():
    with pytest.raises(ValueError, match="at least two with two tokens or more are needed, got 1"):
        nc1(np.zeros((4, 2)), np.array([0, 0, 1, 2]))
    with pytest.raises(ValueError, match="one integer for each of the 4 tokens"):
        nc2(np.zeros((4, 2)), np.array([0, 0]))


# --- distances and energy
# --------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 10**6))
def test_distances_and_energy_by_double_loops(n, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, n, d))
    beta = 1.7
    for b in range(2):
        table = np.array([[np.sqrt(sum((p - q) ** 2)) for q in x[b]] for p in x[b]])
        assert np.allclose(pairwise_distances(x)[b], table, atol=1e-14)
        assert np.isclose(diameter(x)[b], table.max())
        off = table[~np.eye(n, dtype=bool)]
        assert np.isclose(min_distance(x)[b], off.min()) if n > 1 else min_distance(x)[b] == np.inf
        total = sum(np.exp(beta * p @ q) for p in x[b] for q in x[b])
        assert np.isclose(interaction_energy(x, beta)[b], total / (2 * beta * n**2))
        repulsive = sum(np.exp(-beta * p @ q) for p in x[b] for q in x[b])
        assert np.isclose(interaction_energy(x, -beta)[b], -repulsive / (2 * beta * n**2))
        assert np.isclose(
            log_pair_sum(x)[b], np.log(sum(np.exp(p @ q) for p in x[b] for q in x[b]))
        )
    turned = (x @ rotation(d, seed).T)[:, rng.permutation(n)]
    for number in (diameter, min_distance, log_pair_sum):
        assert np.allclose(number(turned), number(x))
    assert np.allclose(
        log_pair_sum(x, log_scale=np.array([0.5, -1.0])),
        log_pair_sum(x * np.exp([0.5, -1.0])[:, None, None]),
    )


def test_energy_beyond_double_precision():
    x = np.array([[30.0, 0.0], [0.0, 1.0]])
    # the largest score is 900, and the others are e^{-899} of it
    assert np.isclose(log_pair_sum(x), 900.0) and interaction_energy(x) == np.inf
    assert log_pair_sum(x, log_scale=400.0) == np.inf
    with pytest.raises(ValueError, match="beta, which must not be 0"):
        interaction_energy(x, beta=0.0)


def test_small_distances_keep_their_digits():
    assert np.isclose(min_distance([[1e8, 0.0], [1e8, 1e-7], [0.0, 0.0]]), 1e-7, rtol=1e-12)


# --- observables
# --------------------------------------------------------------------------------------------------


def hand_made(x: np.ndarray, geometry: str = "euclidean", V=None, heads: int = 1) -> Trajectory:
    d = x.shape[-1]
    times = np.linspace(0.0, 1.0, x.shape[-3])
    V = np.stack([np.eye(d)] * heads) if V is None else V
    weights = Weights(
        Q=np.stack([(h + 1) * np.eye(d) for h in range(heads)]),
        K=np.stack([np.eye(d)] * heads),
        V=V,
    )
    batch = x.shape[:-3]
    return Trajectory(
        dynamics=Dynamics(weights, geometry=geometry),
        solve=Solve(1.0, times),
        times=times,
        states=x,
        frame="x",
        log_scale=np.zeros((*batch, len(times))),
        status=np.full(batch, Status.OK) if batch else Status.OK,
    )


def test_the_observables_of_the_design_are_registered():
    named = {
        "diameter",
        "cluster_count",
        "hull_volume",
        "energy",
        "attention_rank",
        "attention_entropy",
        "min_distance",
    }
    assert named <= set(observables)


@pytest.mark.parametrize("name", list(observables))
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_every_observable(name, batch, geometry):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((*batch, 4, 6, 3))
    if geometry == "sphere":
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
    run = hand_made(x, geometry, heads=2)
    values = observables[name](run)
    assert values.shape[: len(batch) + 1] == (*batch, 4) and np.isfinite(values).all()
    order = rng.permutation(6)
    assert np.allclose(observables[name](hand_made(x[..., order, :], geometry, heads=2)), values)
    R = rotation(3, 0)
    assert np.allclose(observables[name](hand_made(x @ R.T, geometry, heads=2)), values)
    if batch:
        single = np.stack([observables[name](hand_made(member, geometry, heads=2)) for member in x])
        assert np.array_equal(single, values)
        stopped = x.copy()
        stopped[1, 2:] = np.nan
        cut = observables[name](hand_made(stopped, geometry, heads=2))
        assert np.isnan(cut[1, 2:]).all()
        kept = ~np.isnan(cut)
        assert (
            np.array_equal(cut[kept], values[kept])
            and np.isnan(cut).sum() == np.isnan(cut[1, 2:]).sum()
        )


def test_observables_follow_z_in_euclidean_space():
    z = cube(3)
    times = np.linspace(0.0, 1.0, 3)
    run = hand_made(z * np.exp(times)[:, None, None])  # V = I: z does not move
    for name, value in (
        ("diameter", np.sqrt(3)),
        ("min_distance", 1.0),
        ("hull_volume", 1.0),
        ("cluster_count", 8.0),
    ):
        assert np.allclose(observables[name](run), value), name
    x = run.x
    expected = [np.sum(np.exp(tokens @ tokens.T)) / (2 * 64) for tokens in x]
    assert np.allclose(observables["energy"](run), expected)


def test_cluster_count_scale_and_equal_tokens():
    x = np.zeros((2, 3, 2))
    assert observables["cluster_count"](hand_made(x, "sphere")).tolist() == [1, 1]
    x[0] = [[0, 0], [1, 0], [0, 1]]
    x[1] = [[0, 0], [0.01, 0], [0, 1]]  # 1 % of the first diameter is 0.0141
    assert observables["cluster_count"](hand_made(x, "sphere")).tolist() == [3, 2]


def test_attention_observables_use_the_attention_of_the_run():
    run = hand_made(np.random.default_rng(0).standard_normal((3, 5, 2)), heads=2)
    for at in range(3):
        P = attention(run, at=at)
        assert np.array_equal(
            observables["attention_rank"](run)[at], [np.linalg.matrix_rank(matrix) for matrix in P]
        )
        entropies = [np.mean(-np.sum(matrix * np.log(matrix), axis=1)) for matrix in P]
        assert np.allclose(observables["attention_entropy"](run)[at], entropies)


def test_hull_volume_refuses_high_dimension():
    with pytest.raises(ValueError, match="hull_volume is for d <= 3, this run has d = 4"):
        observables["hull_volume"](hand_made(np.zeros((2, 6, 4))))


def test_paranormal_margins_of_factors_are_those_of_the_matrix():
    rng = np.random.default_rng(0)
    X, values = np.eye(12) + 0.2 * rng.normal(size=(12, 12)), np.array([1.3, 1.3, 0.4, -0.6, 0.2])
    B, C = X[:, :5], np.diag(values) @ np.linalg.inv(X)[:5]
    full, thin = (
        spectra.paranormal_margins(Weights(V=B @ C)),
        spectra.paranormal_margins(Weights(V=(B, C))),
    )
    assert abs(full["gap"] - thin["gap"]) < 1e-12 and abs(full["gap"] - (1 - 0.6 / 1.3)) < 1e-12
    assert thin["defect"] < 1e-13 and thin["resolution"] < 1e-11
    C[1] += 0.5 * C[0]  # C B becomes a Jordan block for the first two: V is defective on F
    assert not spectra.is_paranormal(Weights(V=(B, C))) and not spectra.is_paranormal(
        Weights(V=B @ C)
    )


def test_norms_and_margins_of_thin_factors_are_those_of_the_matrices():
    rng = np.random.default_rng(1)
    B, C, Q, K = (
        rng.normal(size=(12, 3)),
        rng.normal(size=(3, 12)),
        rng.normal(size=(4, 12)),
        rng.normal(size=(4, 12)),
    )
    thin, full = Weights(Q=Q, K=K, V=(B, C)), Weights(Q=np.eye(12), K=Q.T @ K, V=B @ C)
    assert abs(spectra.value_norm(thin) / np.linalg.norm(B @ C, 2) - 1) < 1e-12
    assert abs(spectra.score_norm(thin) / np.linalg.norm(Q.T @ K, 2) - 1) < 1e-12
    for name, value in spectra.spd_margins(full).items():
        assert abs(spectra.spd_margins(thin)[name] - value) < 1e-12


@pytest.mark.parametrize(
    "split", [unstable_splitting, lambda weights: leading_splitting(weights)[1]]
)
def test_the_splitting_of_factors_is_that_of_their_product(split):
    rng = np.random.default_rng(3)
    B, C = rng.normal(size=(9, 3)), rng.normal(size=(3, 9))
    ours, truth = split(Weights(V=(B, C))), split(Weights(V=B @ C))
    np.testing.assert_allclose(ours.projector, truth.projector, atol=1e-12)
    for basis, true in ((ours.F, truth.F), (ours.G, truth.G)):
        np.testing.assert_allclose(basis @ basis.T, true @ true.T, atol=1e-12)
    assert unstable_dimension(Weights(V=(B, C))) == unstable_dimension(Weights(V=B @ C))


# -------------------------------------------------------------------------------------------
# clusters where the limit is counted


def linked(x, share=0.01):
    """The number of groups of x (T, n, d) at each time by SciPy's single linkage, at a share of the
    first diameter.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    return [
        int(fcluster(linkage(tokens), share * pdist(x[0]).max(), "distance").max()) for tokens in x
    ]


def test_cluster_count_is_that_of_the_growing_directions():
    """diag(1, 0.9, -0.5): in all of R^3 the thirty tokens never meet; in the plane that grows they
    do.
    """
    x0 = np.random.default_rng(102).uniform(-5, 5, (30, 3))
    run = al.simulate(
        Weights(V=np.diag([1.0, 0.9, -0.5])),
        x0,
        t_end=28.0,
        observe=["cluster_count", "cluster_count_all"],
    )
    assert run.observed["cluster_count"].tolist() == linked(run.z[..., :2])
    assert run.observed["cluster_count_all"].tolist() == linked(run.z)
    assert (
        run.observed["cluster_count"][-1] <= 4 and (run.observed["cluster_count_all"] == 30).all()
    )


S_OBLIQUE = np.array([[1.0, 0.4, -0.3], [0.2, 1.0, 0.5], [0.0, -0.6, 1.0]])


def planted_clusters(eigenvalues):
    """(c, V, times): tokens in eigen-coordinates of V, in two clusters along the first and all
    different along the others.
    """
    rng = np.random.default_rng(3)
    c = np.column_stack(
        [np.repeat([1.0, 2.0], 6) + 1e-4 * rng.random(12), rng.uniform(-2, 2, (12, 2))]
    )  # eigen-coordinates
    V = S_OBLIQUE @ np.diag(eigenvalues) @ np.linalg.inv(S_OBLIQUE)
    return c, V, np.linspace(0.0, 1.0, 3)


@pytest.mark.parametrize("frame", ["x", "z"])
@pytest.mark.parametrize("kind", ["full", "factored", "heads"])
def test_cluster_count_of_planted_clusters(frame, kind):
    eigenvalues = [1.0, 0.0, 0.0] if kind == "factored" else [1.0, -0.5, 0.0]
    c, V, times = planted_clusters(eigenvalues)
    z = c @ S_OBLIQUE.T
    factors = V @ S_OBLIQUE[:, :1], np.linalg.inv(S_OBLIQUE)[:1]
    values = {"full": V, "factored": factors, "heads": np.stack([V - 3 * np.eye(3), 3 * np.eye(3)])}
    weights = Weights(V=values[kind])
    x = np.stack([c * np.exp(t * np.array(eigenvalues)) @ S_OBLIQUE.T for t in times])
    run = Trajectory(
        dynamics=Dynamics(weights),
        solve=Solve(1.0, times),
        times=times,
        states=x if frame == "x" else np.stack([z] * 3),
        frame=frame,
        log_scale=np.zeros(3),
        status=Status.OK,
    )
    assert observables["cluster_count"](run).tolist() == [2, 2, 2]
    assert observables["cluster_count_all"](run).tolist() == [12, 12, 12]


@pytest.mark.parametrize("stable", [-0.5, -1.5])
def test_layers_grow_where_the_modulus_exceeds_one(stable):
    """dt = 1: the factors are 2, 1 + stable (modulus 1/2) and 1 - 3 = -2, so the first and the last
    direction grow.
    """
    rng = np.random.default_rng(0)
    x0 = rng.uniform(-2, 2, (12, 3)) + [0.0, 0.0, 5.0]
    run = al.simulate(
        Weights(V=np.diag([1.0, stable, -3.0])),
        x0,
        layers=12,
        observe=["cluster_count", "cluster_count_all"],
    )
    assert run.observed["cluster_count"].tolist() == linked(run.z[..., [0, 2]])
    assert run.observed["cluster_count_all"].tolist() == linked(run.z)
    assert run.observed["cluster_count"].tolist() != linked(run.z[..., [0]])


@pytest.mark.parametrize(
    "V", [-np.eye(2), np.zeros((2, 2)), np.array([[0.0, 1.0], [-1.0, 0.0]]), np.diag([1.0, 0.5])]
)
def test_where_nothing_or_everything_grows_both_count_in_all_of_space(V):
    x0 = np.random.default_rng(1).uniform(-1, 1, (9, 2))
    run = al.simulate(Weights(V=V), x0, t_end=3.0, observe=["cluster_count", "cluster_count_all"])
    assert (
        run.observed["cluster_count"].tolist()
        == run.observed["cluster_count_all"].tolist()
        == linked(run.z)
    )


def test_on_the_sphere_both_count_in_all_of_space():
    x0 = np.random.default_rng(1).standard_normal((9, 3))
    x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
    weights = Weights(V=np.diag([1.0, 0.9, -0.5]))
    run = al.simulate(
        weights, x0, t_end=8.0, geometry="sphere", observe=["cluster_count", "cluster_count_all"]
    )
    assert (
        run.observed["cluster_count"].tolist()
        == run.observed["cluster_count_all"].tolist()
        == linked(run.x)
    )


# ------------------------------------------------------------------------------------------- many
# tokens


def test_distances_and_energy_in_pieces(monkeypatch):
    """Pieces of a few rows give what all pairs at once give."""
    x = np.random.default_rng(0).standard_normal((37, 3))
    whole = [diameter(x), min_distance(x), log_pair_sum(x, 0.7), log_pair_sum(1e10 * x, -2.0)]
    for module in ("distances", "energy"):
        monkeypatch.setattr(f"attnlab.analysis.{module}.PAIRS_AT_ONCE", 150)
    pieces = [diameter(x), min_distance(x), log_pair_sum(x, 0.7), log_pair_sum(1e10 * x, -2.0)]
    np.testing.assert_allclose(pieces, whole, rtol=1e-14)


def test_min_distance_of_one_token_is_refused():
    with pytest.raises(
        ValueError, match="min_distance needs at least two tokens, but this run has one"
    ):
        observables["min_distance"](hand_made(np.zeros((2, 1, 3))))


def test_clusters_are_counted_where_layers_forget_another_direction():
    # 1 + dt lambda = 0 for lambda = -1: z does not exist there, and F, the first axis, does not
    # need it
    x0 = np.random.default_rng(0).uniform(-2, 2, (8, 2))
    run = al.simulate(
        al.Weights(V=np.diag([1.0, -1.0])), x0, layers=10, dt=1.0, observe=["cluster_count"]
    )
    first = run.x[..., 0] / 2.0 ** np.arange(11)[:, None]  # z along the axis that doubles
    gaps = np.diff(np.sort(first, axis=1), axis=1) > 0.01 * np.ptp(first[0])
    assert np.array_equal(run.observed["cluster_count"], 1 + gaps.sum(axis=1))
