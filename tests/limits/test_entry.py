"""al.limit on what is known by other means: closed forms, published values, special starts, bad
input.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from clock import is_soon, seconds_of
from limit_systems import C7, C8, C9, draw_system


def weights(V, M=None) -> al.Weights:
    V = np.array(V, dtype=float)
    return al.Weights(Q=np.eye(len(V)), K=np.eye(len(V)) if M is None else M, V=V)


def start(n: int, d: int, rng: int = 0, size: float = 5.0) -> np.ndarray:
    return np.random.default_rng(rng).uniform(-size, size, (n, d))


def test_one_dimension_ends_at_the_extremes():
    # paper, theorem 2.1: in one dimension everybody follows the smallest or the largest token
    x0 = start(12, 1, size=1.0)
    limit = al.limit(weights([[1.0]]), x0)
    assert limit.grade == "exact" and limit.count == 2
    assert set(limit.leaders) == {int(np.argmin(x0)), int(np.argmax(x0))}
    # sorted tokens: those of the smallest come first
    order = np.argsort(x0[:, 0])
    assert (np.diff(limit.leaders[order] == np.argmax(x0)) >= 0).all()
    assert np.abs(limit.points[limit.leaders] - limit.points).max() == 0.0


def test_two_tokens_on_a_line_against_the_closed_form():
    # x1 = -x2 = b: b' = b tanh(b^2), z = b e^-t -> b exp(int (tanh(b^2) - 1) dt), by an independent
    # quadrature
    from scipy.integrate import solve_ivp

    limit = al.limit(weights([[1.0]]), [[0.7], [-0.7]])
    found = solve_ivp(
        lambda t, log_z: np.tanh(np.exp(2 * (log_z + t))) - 1,
        (0.0, 12.0),
        [np.log(0.7)],
        rtol=1e-12,
        atol=1e-14,
    )
    assert limit.count == 2 and abs(limit.points[0, 0] - np.exp(found.y[0, -1])) < 1e-9
    assert np.array_equal(limit.leaders, [0, 1])


@pytest.mark.parametrize(("eps", "published"), [(0.5, 0.187), (0.3, 5.2e-3), (0.2, 4.98e-6)])
def test_the_pair_of_the_remark_has_two_limits(eps, published):
    # tokens (1, +-eps) end at (1, +-c), ln c = -1 / (2 eps^2) + 0.29 .. 0.33: two clusters, however
    # close
    limit = al.limit(weights(np.eye(2)), [[1.0, eps], [1.0, -eps]])
    assert limit.count == 2 and limit.grade == "exact"
    assert np.abs(limit.points[:, 0] - 1.0).max() < 1e-8
    assert abs(limit.points[0, 1] / published - 1) < 0.01
    assert 0.28 < np.log(limit.points[0, 1]) + 1 / (2 * eps**2) < 0.34


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_identity_ends_in_a_polytope_with_leaders_at_its_vertices(d):
    x0 = start(30, d, rng=d)
    limit = al.limit(weights(np.eye(d)), x0)
    assert limit.grade == "exact" and np.array_equal(limit.basis, np.eye(d))
    vertices = limit.points[np.unique(limit.leaders)]
    # theorem 3.1: every limit u has u.u = max_j u.v_j over the vertices
    residual = (limit.points**2).sum(axis=1) - (limit.points @ vertices.T).max(axis=1)
    assert np.abs(residual).max() < 1e-8
    # hulls shrink: limits are inside the hull of the start, in every direction
    directions = np.random.default_rng(1).normal(size=(200, d))
    assert (
        (limit.points @ directions.T).max(axis=0) <= (x0 @ directions.T).max(axis=0) + 1e-9
    ).all()


def test_identity_scaled_is_identity_with_another_clock():
    x0 = start(15, 2)
    one, two = al.limit(weights(np.eye(2)), x0), al.limit(weights(2.5 * np.eye(2)), x0)
    assert (
        np.array_equal(one.labels, two.labels)
        and np.abs(one.points - two.points).max() <= one.error + two.error
    )


@pytest.mark.parametrize(
    "V",
    [C9, np.diag([1.0, 0.9, -0.5]), np.diag([1.2, 0.8, -0.5])],
    ids=["C9", "1, 0.9", "1.2, 0.8"],
)
def test_two_growing_directions_end_in_two_points(V):
    # generic starts have two limits in F; with close eigenvalues only after long plateaus
    for rng in range(5):
        limit = al.limit(weights(V), start(30, 3, rng))
        assert limit.certified and limit.count == 2 and limit.basis.shape == (3, 2)


def test_plateaus_take_many_changes_of_leader():
    limits = [al.limit(weights(np.diag([1.0, 0.9, -0.5])), start(40, 3, rng)) for rng in range(6)]
    assert (
        max(len(limit.events) for limit in limits) >= 24 and max(limit.t for limit in limits) > 25
    )
    for limit in limits:
        assert list(limit.events) == sorted(limit.events, key=lambda event: event.t)
        assert all(event.before != event.after for event in limit.events)


@pytest.mark.parametrize("V", [C7, C8], ids=["C7", "C8"])
def test_complex_pairs_by_the_conservative_form(V):
    for rng in range(4):
        limit = al.limit(weights(V), start(25, 3, rng))
        assert limit.certified and limit.count == 2
        values = np.linalg.eigvals(V)
        assert limit.basis.shape[1] == (values.real > 0).sum()


@pytest.mark.parametrize(
    "family",
    [
        "identity, spd scores",
        "paranormal",
        "generic scores",
        "causal",
        pytest.param("non-normal, spd scores", marks=pytest.mark.slow),
    ],
)
def test_agrees_with_the_finite_time_flow_where_that_has_converged(family):
    compared = 0
    for seed in range(12):
        system = draw_system(family, 100 + seed)
        t_end = 24.0 / np.linalg.eigvals(system.V).real.max()
        limit = system.limit(times=[t_end, 20 * t_end])
        run = al.simulate(
            system.weights, system.x0, t_end=t_end, rtol=1e-11, throw=False, **system.options
        )
        if not limit.certified or not run.is_ok:
            continue
        values, vectors = np.linalg.eig(system.V)
        left = np.linalg.inv(vectors)
        for value, row in zip(values, left, strict=True):
            size = np.abs(run.z[-1] @ row).max()
            rounding = (
                2.0**-52 * (np.abs(run.z[-1]) @ np.abs(row)).max()
            )  # both are doubles in the user's coordinates
            off = np.abs((run.z[-1] - limit.z[0]) @ row).max()
            assert off < 1e-8 * size + 10 * limit.error + rounding, (family, seed, value)
        # what the flow says at t_end is what stays, where e^{-lambda t} times the extent of a
        # cluster is small by then
        slowest = values.real[values.real > 1e-9].min()
        if slowest * 20 * t_end > 60.0:
            assert np.abs(limit.path[1] - limit.points).max() < 1e-12 * np.abs(limit.x0).max()
            compared += 1
        if limit.grade == "exact" and t_end >= limit.t:
            assert np.array_equal(al.attention(run, at=-1)[0].argmax(axis=1), limit.leaders), (
                family,
                seed,
            )
    assert compared >= 5


def test_times_are_those_of_the_flow_before_the_wall_and_of_the_limit_after_it():
    w, x0 = weights(np.diag([1.0, 0.9, -0.5])), start(20, 3, rng=3)
    times = [0.0, 1.0, 3.3, 8.0, 12.0, 20.0, 80.0, 200.0]
    limit = al.limit(w, x0, times=times)
    assert limit.certified and limit.z.shape == (8, 20, 3)
    run = al.simulate(w, x0, times=times[:6], rtol=1e-12)
    scale = np.abs(run.z).max(axis=1, keepdims=True)
    assert (np.abs(limit.z[:6] - run.z) / scale).max() < 1e-8
    assert np.abs(limit.z[0] - x0).max() < 1e-13
    # late: z has arrived in F, and the decaying coordinate grows like e^{0.5 t}
    assert np.abs(limit.z[-1][:, :2] - limit.limits[:, :2]).max() < 1e-12
    follows = limit.leaders != np.arange(20)
    ratio = limit.z[-1][:, 2] / limit.z[-2][:, 2]
    assert (
        np.abs(ratio[follows] / np.exp(0.5 * 120.0) - 1).max() < 1e-6
        and np.abs(ratio[~follows] - 1).max() < 1e-12
    )


def test_every_time_asked_for_is_answered():
    # also those that fall on the ends of pieces, on the hand-over and on events
    w, x0 = weights(np.diag([1.0, 0.9, -0.5])), start(12, 3, rng=1)
    limit = al.limit(w, x0)
    times = np.unique(
        np.concatenate(
            [np.arange(0, 40) * 0.25, [event.t for event in limit.events], [limit.t, 100.0]]
        )
    )
    again = al.limit(w, x0, times=times)
    assert np.isfinite(again.z).all() and np.isfinite(again.path).all()
    # z moves continuously, with the speed of V (z_leader - z)
    speed = np.abs(np.diff(again.path, axis=0)).max(axis=(1, 2)) / np.diff(times)
    assert speed.max() < 2.1 * np.abs(x0).max()


def test_a_run_is_a_question_too_also_one_that_begins_late():
    w, x0 = weights(np.diag([1.0, 0.6])), start(12, 2)
    limit = al.limit(w, x0)
    of_run = al.limit(al.simulate(w, x0, t_end=1.0))
    assert np.array_equal(limit.points, of_run.points) and np.array_equal(
        limit.leaders, of_run.leaders
    )
    late = al.limit(al.simulate(w, x0, times=[0.8, 1.0], rtol=1e-13))
    assert (
        np.array_equal(late.leaders, limit.leaders)
        and np.abs(late.points - limit.points).max() < 1e-9
    )
    run = al.simulate(w, x0, times=[0.8, 1.0], rtol=1e-13)
    assert np.abs(late.x0 - run.z[0]).max() < 1e-12


def test_a_batch_gives_a_list():
    x0 = np.stack([start(6, 2, rng) for rng in range(3)])
    limits = al.limit(weights(np.eye(2)), x0)
    assert len(limits) == 3
    for member, limit in zip(x0, limits, strict=True):
        assert np.array_equal(limit.points, al.limit(weights(np.eye(2)), member).points)


def test_equal_tokens_count_as_often_as_they_are():
    # the interior token twice is the same as its score raised by ln 2: followers feel it, leaders
    # are the same
    x0 = start(10, 2)
    doubled = np.concatenate([x0, x0[[3, 3]]])
    limit = al.limit(weights(np.eye(2)), doubled)
    assert limit.grade == "exact"
    assert (limit.labels[[3, 10, 11]] == limit.labels[3]).all() and np.array_equal(
        limit.points[3], limit.points[10]
    )
    assert not np.isin(limit.leaders, [10, 11]).any()
    run = al.simulate(weights(np.eye(2)), doubled, t_end=22.0, rtol=1e-11)
    assert np.abs(run.z[-1] - limit.limits).max() < 1e-7


# ---- exact symmetry
# --------------------------------------------------------------------------------------------------


def test_the_bounded_token_of_three_on_a_line():
    limit = al.limit(weights([[1.0]]), [[-1.0], [0.0], [1.0]])
    assert limit.grade == "exact" and limit.count == 3 and np.array_equal(limit.leaders, [0, -1, 2])
    assert limit.points[1, 0] == 0.0 and abs(limit.points[0, 0] + limit.points[2, 0]) < 1e-12
    assert "symmetry" in limit.reason and "unstable" in limit.reason


def test_the_symmetric_counterexamples_to_the_codimension_conjecture():
    # four limits, (+-0.7507, 0) and (0, +-0.7507)
    limit = al.limit(weights(np.diag([1.2, 0.8])), [[1, 0], [-1, 0], [0, 1], [0, -1]])
    assert limit.count == 4 and "unstable" in limit.reason
    assert np.abs(limit.limits - 0.7507 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])).max() < 5e-5
    # (c): six tokens in the plane x = 0 of a configuration symmetric in it: four limiting lines
    inside = np.concatenate([np.zeros((6, 1)), start(6, 2, rng=2, size=2.0)], axis=1)
    half = start(4, 3, rng=3, size=2.0)
    x0 = np.concatenate([inside, half, half * [-1, 1, 1]])
    limit = al.limit(weights(np.diag([1.2, 0.8, -0.5])), x0)
    assert limit.count == 4 and "unstable" in limit.reason
    assert np.abs(limit.limits[:6, 0]).max() == 0.0


def test_a_limit_that_is_no_vertex():
    # a token on the mirror between two leaders ends on the edge between them: a point of S that is
    # not a vertex
    x0 = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [0.3, 0.3]])
    limit = al.limit(weights(np.eye(2)), x0)
    assert limit.count == 5 and limit.leaders[4] == -1
    assert np.abs(limit.points[4] - (limit.points[0] + limit.points[1]) / 2).max() < 1e-10
    u = limit.points[4]
    assert abs(u @ u - max(u @ v for v in limit.points[:4])) < 1e-10


def test_symmetric_data_whose_limit_is_stable_are_answered_as_any_other():
    half = np.array([[2.0, 1.0], [1.5, -0.5], [0.7, 0.2]])
    limit = al.limit(weights(np.eye(2)), np.concatenate([half, half * [-1, 1]]))
    assert limit.grade == "exact" and "unstable" not in limit.reason
    mirror = np.array([3, 4, 5, 0, 1, 2])
    assert np.array_equal(limit.leaders[mirror], mirror[limit.leaders])


# ---- what is refused, what is trivial, what makes no sense
# ---------------------------------------------------------------------


def test_undecided_claims_nothing():
    limit = al.limit(weights([[1.0, 0.5], [-0.5, 2.0]]), start(5, 2))
    assert limit.grade == "undecided" and not limit.certified and limit.count is None
    assert (
        (limit.labels == -1).all() and (limit.leaders == -1).all() and np.isnan(limit.points).all()
    )
    assert "Jordan" in limit.reason and "undecided" in repr(limit).lower()


@pytest.mark.parametrize(  # in bases in which V is not D + N
    "V",
    [
        [[1.0, 0.5], [-0.5, 2.0]],
        [[0.0, 1.0], [0.0, 0.0]],  # but there nothing grows
        [[1, 0, 0], [0, 0.5, 0.5], [0, -0.5, -0.5]],
    ],
)
def test_a_jordan_block_is_said_to_be_one(V):
    limit = al.limit(weights(V), start(4, len(V)))
    assert not limit.certified and "has a Jordan block" in limit.reason, limit.reason


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"kernel": "exp_mean"}, "softmax"),
        ({"kernel": "hardmax"}, "softmax"),
        ({"feedforward": {"sigma": "relu"}}, "feed-forward"),
    ],
)
def test_other_equations_are_refused_with_the_reason(options, word):
    limit = al.limit(weights(np.eye(2)), start(4, 2), **options)
    assert limit.grade == "undecided" and word in limit.reason


def on_sphere(n: int, d: int, rng: int = 0) -> np.ndarray:
    x0 = np.random.default_rng(rng).normal(size=(n, d))
    return x0 / np.linalg.norm(x0, axis=1, keepdims=True)


def test_on_the_sphere_tokens_of_a_hemisphere_end_in_one_point():
    x0 = on_sphere(10, 3)
    limit = al.limit(weights(np.eye(3)), x0, geometry="sphere", beta=2.0, times=[1.0, 1e5])
    assert (
        limit.certified
        and limit.count == 1
        and np.array_equal(limit.basis, np.eye(3))
        and limit.error < 1e-6
    )
    run = al.simulate(
        weights(np.eye(3)), x0, geometry="sphere", beta=2.0, t_end=limit.t, rtol=1e-11
    )
    assert np.abs(run.x[-1] - limit.points).max() < 1e-6
    assert (
        np.abs(
            limit.z[0]
            - al.simulate(weights(np.eye(3)), x0, geometry="sphere", beta=2.0, t_end=1.0).x[-1]
        ).max()
        < 1e-6
    )
    assert np.abs(limit.z[1] - limit.points).max() == 0.0


def test_a_run_on_the_sphere_that_is_saved_later_keeps_its_clock():
    x0 = on_sphere(5, 3)
    late = al.simulate(weights(np.eye(3)), x0, geometry="sphere", times=[2.0, 3.0], rtol=1e-11)
    ours, theirs = (
        al.limit(late, times=[5.0, 6.0]),
        al.limit(weights(np.eye(3)), x0, geometry="sphere", times=[5.0, 6.0]),
    )
    assert ours.times.tolist() == [5.0, 6.0] and np.abs(ours.z - theirs.z).max() < 1e-8
    at_the_end = al.simulate(weights(np.eye(3)), x0, geometry="sphere", t_end=ours.t, rtol=1e-11)
    assert (
        np.abs(at_the_end.x[-1] - ours.limits).max() < 10 * ours.error + 1e-8
        and al.verify(ours).holds
    )


def test_under_the_causal_mask_the_sphere_ends_in_the_first_token():
    x0 = on_sphere(6, 3, rng=1)
    limit = al.limit(weights(np.eye(3)), x0, geometry="sphere", mask="causal")
    assert (
        limit.certified
        and np.abs(limit.points - x0[0]).max() < 1e-15
        and (limit.leaders == 0).all()
    )


def test_what_is_not_known_on_the_sphere_is_refused_with_the_reason():
    antipodal = np.array([[1.0, 0.0], [-1.0, 0.0]])
    limit = al.limit(weights(np.eye(2)), antipodal, geometry="sphere", budget=2.0)
    assert limit.grade == "undecided" and "antipodal" in limit.reason
    # a square is a saddle: rounding would choose the point they end at
    square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert al.limit(weights(np.eye(2)), square, geometry="sphere", budget=5.0).grade == "undecided"
    triangle = np.array([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(3) / 3])
    assert (
        al.limit(weights(np.eye(2)), triangle, geometry="sphere", budget=5.0).grade == "undecided"
    )
    limit = al.limit(weights(np.diag([1.0, -1.5])), on_sphere(4, 2), geometry="sphere")
    assert limit.grade == "undecided" and "V = c I" in limit.reason


def test_heads_with_equal_scores_are_one_and_others_are_refused():
    x0 = start(8, 2)
    V = np.diag([1.0, 0.4])
    two = al.Weights(
        Q=np.stack([np.eye(2)] * 2), K=np.stack([np.eye(2)] * 2), V=np.stack([0.25 * V, 0.75 * V])
    )
    one = al.limit(weights(V), x0)
    assert np.abs(al.limit(two, x0).points - one.points).max() <= 2 * one.error
    other = al.Weights(
        Q=np.stack([np.eye(2)] * 2),
        K=np.stack([np.eye(2), 2 * np.eye(2)]),
        V=np.stack([V, [[1.0, 0.2], [0.0, 0.4]]]),
    )
    assert "heads" in al.limit(other, x0).reason and not al.limit(other, x0).certified


def test_nothing_grows():
    limit = al.limit(weights(-np.eye(3)), start(5, 3))
    assert (
        limit.certified
        and limit.count is None
        and limit.points.shape == (5, 0)
        and limit.basis.shape == (3, 0)
    )
    assert "positive real part" in limit.reason
    assert "V = 0" in al.limit(weights(np.zeros((2, 2))), start(5, 2)).reason


def test_one_token_and_equal_tokens_do_not_move():
    one = al.limit(weights(np.diag([1.0, -1.0])), [[2.0, 3.0]])
    assert one.grade == "exact" and np.abs(one.points - [[2.0]]).max() < 1e-14 and one.count == 1
    equal = al.limit(weights(np.eye(2)), np.ones((4, 2)))
    assert equal.count == 1 and (equal.leaders == 0).all() and "equal" in equal.reason


def test_scores_of_zero_lead_to_the_mean():
    x0 = start(6, 2)
    limit = al.limit(weights(np.eye(2)), x0, beta=0.0)
    assert limit.count == 1 and np.abs(limit.points - x0.mean(axis=0)).max() < 1e-13
    run = al.simulate(weights(np.eye(2)), x0, beta=0.0, t_end=30.0)
    assert np.abs(run.z[-1] - limit.limits).max() < 1e-6


@pytest.mark.parametrize("V", [np.eye(2), np.diag([1.0, 0.3])])
def test_the_leader_of_a_merged_group_is_open(V):
    """A token 1e-13 outside of another one leads both in the end, and nobody can see that."""
    x0 = np.array([[3.4, 1.3], [-1.0, 2.0], [3.4, 1.3]])
    x0[2] *= 1.0 + 1e-13
    found = al.limit(al.Weights(V=V), x0)
    assert found.grade == "group" and found.leaders.tolist() == [-1, 1, -1]
    assert "or one beside it" in found.certificate and al.verify(found).holds
    named = dataclasses.replace(found, leaders=np.array([0, 1, 0]))
    assert al.verify(named).holds is False


@pytest.mark.parametrize("n", [1, 3])
def test_tokens_that_are_all_zero_stay_and_that_is_verified(n):
    Q, V = np.stack([np.eye(2)] * 2), np.stack([np.eye(2)] * 2)
    K = np.random.default_rng(3).normal(size=(2, 2, 2))
    block = al.Weights(V=np.array([[1.0, 1.0], [0.0, 1.0]]))
    for weights in (block, al.Weights(Q=Q, K=K, V=V), al.Weights(Q=Q, K=0.0 * K, V=V)):
        for mask in ("full", "causal"):
            found = al.limit(weights, np.zeros((n, 2)), mask=mask)
            assert found.certified and not found.points.any() and al.verify(found).holds


def test_no_part_along_what_grows():
    limit = al.limit(weights(np.diag([1.0, -0.5])), [[0.0, 1.0], [0.0, 2.0]])
    assert limit.certified and limit.count == 1 and not limit.points.any()


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: al.limit(weights(np.eye(2))), "x0"),
        (lambda: al.limit(weights(np.eye(2)), np.zeros((3, 4))), "d = 2"),
        (lambda: al.limit(weights(np.eye(2)), [[np.nan, 0.0]]), "finite"),
        (lambda: al.limit(weights(np.eye(2)), start(3, 2), times=[2.0, 1.0]), "ascend"),
        (lambda: al.limit(weights(np.eye(2)), start(3, 2), digits=3), "digits"),
        (lambda: al.limit(weights(np.eye(2)), start(3, 2), budget=-1), "budget"),
        (lambda: al.limit(weights(np.eye(2)), start(3, 2), mask="half"), "mask"),
        (lambda: al.Weights(V=np.ones((2, 3))), "square"),
    ],
)
def test_bad_input_is_a_sentence(call, word):
    with pytest.raises((TypeError, ValueError, LookupError), match=word):
        call()


def test_the_budget_is_kept():
    found = []
    assert is_soon(
        lambda: seconds_of(
            lambda: found.append(
                al.limit(weights(np.eye(3)), start(3000, 3), work=1e12, budget=1.0)
            )
        )
    )
    assert all(limit.grade == "undecided" and "budget" in limit.reason for limit in found)


def test_the_certificate_can_be_printed():
    limit = al.limit(weights(C9), start(20, 3))
    for word in ("eigenvalues of V", "leaders", "replicas", "error of the points", "grade"):
        assert word in limit.certificate
    assert limit.certificate.startswith(limit.reason)


@pytest.mark.slow
def test_eigenvalues_that_are_taken_as_equal_are_said():
    x0 = start(6, 2)
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    assert (
        "taken as equal"
        in al.limit(weights(turned @ np.diag([1.0, 1.0 - 1e-13]) @ turned.T), x0).reason
    )
    assert "taken as equal" not in al.limit(weights(np.eye(2)), x0).reason
    # exact eigenvalues are what they are: the true limit is that of unequal ones, at t = 1e13
    assert not al.limit(weights(np.diag([1.0, 1.0 - 5e-12])), [[1.0, 2.0], [2.0, -1.5]]).certified


def test_a_grade_is_a_word_and_a_sentence():
    found = al.limit(al.Weights(V=np.eye(2)), start(8, 2, 0))
    assert (
        found.grade is al.Grade.EXACT
        and found.grade == "exact"
        and f"{found.grade}" == str(found.grade) == "exact"
    )
    assert al.Grade.EXACT.value.endswith("certified.") and repr(found.grade) == "Grade.EXACT"
    assert dataclasses.replace(found, grade="group").grade is al.Grade.GROUP
    with pytest.raises(LookupError, match="Unknown grade 'exakt'. Did you mean 'exact'"):
        dataclasses.replace(found, grade="exakt")
