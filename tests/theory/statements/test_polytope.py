"""Low-rank Boolean attention, shrinking hulls, polytopes and the collapse for V = -I: closed forms
and planted violations.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

import attnlab as al
from attnlab.analysis.attention import attention_rank
from attnlab.analysis.energy import log_pair_sum
from attnlab.theory.specimens import specimen, with_states
from attnlab.theory.statements.collapse_to_origin import _rates, norm_bound
from attnlab.theory.statements.hull_shrinks import outward
from attnlab.theory.statements.low_rank_boolean import _return, _slowness, row_gaps, starred_row
from attnlab.theory.statements.polytope import residuals, special_points
from attnlab.verdicts import Outcome


def judged(run, name):
    (verdict,) = al.check(run, names=[name])
    return verdict


def numbers(*tokens):
    return np.array(tokens, dtype=float)[:, None]


# ------------------------------------------------------------------------------------------------ d
# = 1: Boolean attention


def test_the_middle_of_a_symmetric_triple_attends_equally_for_ever():
    verdict = judged(specimen([[1.0]], x0=numbers(-1, 0, 1), t_end=1.5), "low_rank_boolean")
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()
    assert verdict.details["rank_of_limit"] == 3 and list(verdict.details["starred_rows"]) == [1]
    np.testing.assert_allclose(verdict.details["starred_row"], 1 / 3, rtol=1e-12)


def test_rounding_that_breaks_a_symmetry_contradicts_nothing():
    verdict = judged(specimen([[1.0]], x0=numbers(-3, 0, 3), t_end=2.5), "low_rank_boolean")
    assert verdict.outcome is Outcome.UNDECIDED and "unstable" in verdict.unmet, verdict.paragraph()


@pytest.mark.parametrize("c", [1.0, 4.0])
def test_the_starred_row_balances_both_sides(c):
    gamma = np.array([-0.7, -0.7, 0.0, 1.3])
    row = starred_row(gamma / np.sqrt(c), c)
    assert row @ gamma == pytest.approx(0.0, abs=1e-15) and row.sum() == pytest.approx(1.0)
    # weights are exp(theta gamma), so their logarithms are proportional to gamma; the bounded token
    # has gamma = 0
    np.testing.assert_allclose(
        np.log(row / row[2]), gamma * np.log(2 * 0.7 / 1.3) / 2.0, atol=1e-14
    )
    np.testing.assert_allclose(starred_row(np.array([-1.0, 0.0, 1.0]), c), 1 / 3)


def test_any_positive_V_and_QK_is_a_change_of_units():
    x0 = np.random.default_rng(4).uniform(-2, 2, (8, 1))
    one = judged(specimen([[1.0]], x0=x0, t_end=8.0, rtol=1e-10), "low_rank_boolean")
    other = judged(
        specimen([[0.5]], x0=x0 / 3, t_end=16.0, M=[[9.0]], rtol=1e-10), "low_rank_boolean"
    )
    assert one.outcome is other.outcome is Outcome.SUPPORTED, other.paragraph()
    assert other.details["boolean_from"] == pytest.approx(2 * one.details["boolean_from"])
    np.testing.assert_allclose(
        other.details["slopes_over_V"], one.details["slopes_over_V"], rtol=1e-6
    )
    np.testing.assert_allclose(one.details["slopes_over_V"], 1.0, atol=0.02)
    assert np.array_equal(one.details["leaders"], other.details["leaders"])


def test_all_tokens_on_one_side_make_rank_one():
    run = specimen([[1.0]], x0=numbers(0.2, 0.5, 1.0, 1.4), t_end=9.0)
    verdict = judged(run, "low_rank_boolean")
    assert verdict.outcome is Outcome.SUPPORTED and verdict.details["rank_of_limit"] == 1, (
        verdict.paragraph()
    )
    assert attention_rank(al.attention(run)[0]) == verdict.details["rank_at_end"] == 1
    (before,) = al.predict(run.dynamics.weights, run.x[0], names=["low_rank_boolean"])
    assert before.data["rank"] == 1 and before.data["largest"] == 3


def test_two_tokens_of_one_side_that_change_places_contradict_it():
    # too small a change for the limit: both have the same
    run = specimen([[1.0]], x0=numbers(-1.5, 0.4, 0.9, 1.4), t_end=8.0)
    states = run.states.copy()
    states[-5:, [2, 3]] = states[-5:, [3, 2]]
    verdict = judged(with_states(run, states), "low_rank_boolean")
    assert verdict.outcome is Outcome.CONTRADICTED, verdict.paragraph()


def test_equal_tokens_negative_V_and_two_dimensions_are_outside():
    assert (
        judged(specimen([[1.0]], x0=numbers(1, 1, 2), t_end=1.0), "low_rank_boolean").outcome
        is Outcome.OUT_OF_SCOPE
    )
    assert (
        judged(specimen([[1.0]], M=[[-1.0]], t_end=1.0), "low_rank_boolean").outcome
        is Outcome.OUT_OF_SCOPE
    )
    assert (
        judged(specimen(np.eye(2), t_end=1.0), "low_rank_boolean").outcome is Outcome.OUT_OF_SCOPE
    )


def test_slow_growth_of_gaps_is_seen():
    times, leaders, rows = np.linspace(0, 4, 41), np.array([0, 2, 2]), np.array([1, 2])
    doubt = np.zeros(41)
    for growth, is_slow in ((np.exp(times), False), (1 + times, True), (np.exp(0.8 * times), True)):
        x = np.stack(
            [-3 * growth, 3 * growth - 2, 3 * growth], axis=1
        )  # the middle one follows the last
        _, least, most = row_gaps(x, doubt, leaders, 1.0)
        assert (_slowness(x, times, doubt, least, most, rows, 1.0) > 0.01) is is_slow


def test_a_token_alone_on_its_side_gets_there_twice_as_fast():
    # its gap is the distance to the other side, which grows like e^t itself
    verdict = judged(specimen([[1.0]], x0=numbers(-1.5, 0.4, 0.9), t_end=7.0), "low_rank_boolean")
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()
    np.testing.assert_allclose(verdict.details["slopes_over_V"], [2.0, 1.0, 1.0], atol=0.02)


def test_a_token_that_comes_back_from_beyond_the_escape_constant_is_seen():
    run = specimen([[1.0]], x0=numbers(-1, 3), t_end=2.0)
    limit, x = al.limit(run), run.x[:, :, 0].copy()
    doubt = np.full(len(x), 1e-6)
    assert _return(x, doubt, 1.0, limit) == 0.0
    x[-1, 1] = 0.9 * x[-2, 1]
    assert _return(x, doubt, 1.0, limit) == pytest.approx(0.1, abs=1e-5)


# --------------------------------------------------------------------------------------------------
# the hull shrinks


def several_heads(factors, d=2):
    rng = np.random.default_rng(1)
    V = np.array(factors)[:, None, None] * np.eye(d)
    return al.Weights(
        Q=rng.normal(size=(len(factors), d, d)), K=rng.normal(size=(len(factors), d, d)), V=V
    )


@pytest.mark.parametrize(
    "options", [{"layers": 12, "dt": 0.3}, {"layers": 8, "dt": 7.0}, {"t_end": 4.0}]
)
@pytest.mark.parametrize("mask", ["full", "causal"])
def test_heads_masks_and_layers_of_any_size_shrink_the_hull(mask, options):
    x0 = np.random.default_rng(2).normal(size=(9, 2)) + 3
    run = al.simulate(several_heads([1.0, 0.0, 0.4]), x0, mask=mask, measure_error=True, **options)
    verdict = judged(run, "hull_shrinks")
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()


def test_a_negative_head_is_outside_whatever_the_sum():
    run = al.simulate(
        several_heads([1.0, -0.2]), np.random.default_rng(2).normal(size=(9, 2)), t_end=1.0
    )
    assert "negative" in judged(run, "hull_shrinks").unmet


@pytest.mark.parametrize("d", [1, 2, 3, 12])
def test_one_token_that_leaves_by_a_percent_is_seen(d):
    run = specimen(np.eye(d), n=20, t_end=2.0)
    assert judged(run, "hull_shrinks").outcome is Outcome.SUPPORTED
    z = run.z[-1]
    centre = z.mean(axis=0)
    far = int(np.linalg.norm(z - centre, axis=1).argmax())
    states = run.states.copy()
    to_states = np.linalg.lstsq(z, states[-1], rcond=None)[0]
    states[-1, far] += 0.05 * (z[far] - centre) @ to_states
    verdict = judged(with_states(run, states), "hull_shrinks")
    assert verdict.outcome is Outcome.CONTRADICTED, verdict.paragraph()


def test_flat_hulls_stay_in_their_plane():
    x0 = np.random.default_rng(0).normal(size=(8, 3))
    x0[:, 2] = x0[:, 0] + 1
    run = specimen(np.eye(3), x0=x0, t_end=3.0)
    assert judged(run, "hull_shrinks").outcome is Outcome.SUPPORTED
    z = run.z.copy()
    z[-1, 0] = z[-1].mean(axis=0) + [1e-4, 0, -1e-4]
    assert outward(z)[0] == pytest.approx(np.sqrt(2) * 1e-4, rel=1e-6)


def test_in_many_dimensions_a_token_must_not_leave_any_earlier_hull():
    """The corners +-e_i in six dimensions, shrunk to a half and then grown again in small steps."""
    corners = np.concatenate([np.eye(6), -np.eye(6)])
    sizes = np.array([1.0, 0.5, 0.6, 0.7, 0.65])
    excess, at, how = outward(sizes[:, None, None] * corners)
    assert (
        excess == pytest.approx(0.2, rel=1e-12) and at == 3 and how.startswith("support functions")
    )


# --------------------------------------------------------------------------------------------------
# the polytope


def polygon_points(corners, M):
    """S of a polygon that contains 0, its corners in order: those corners, and feet of
    perpendiculars on sides, that pass; 0.
    """
    feet = []
    for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        share = -(a @ M @ (b - a)) / ((b - a) @ M @ (b - a))
        if 0 < share < 1:
            feet.append(a + share * (b - a))
    points = np.array([*corners, *feet])
    kept = [u for u in points if (corners @ M @ u).max() <= u @ M @ u + 1e-9]
    return np.array([*kept, np.zeros(2)])


@pytest.mark.parametrize("seed", range(5))
def test_S_of_a_polygon_is_corners_feet_and_0(seed):
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 7))
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1) * 2 + [0.1, -0.1]
    B = rng.normal(size=(2, 2))
    M = B @ B.T + 0.2 * np.eye(2)
    expected, found = polygon_points(corners, M), special_points(corners, M)
    expected = np.unique(np.round(expected, 8), axis=0)
    if np.diff(np.append(angles, angles[0] + 2 * np.pi)).max() < np.pi - 0.2:
        assert {tuple(row) for row in np.round(found, 8) + 0.0} == {
            tuple(row) for row in expected + 0.0
        }
    # every one of them is where the plane with normal M u touches
    assert residuals(np.vstack([found, corners]), M, 1e-9)[: len(found)].max() < 1e-8


def test_S_of_a_cube_is_corners_and_the_middles_of_edges_faces_and_all():
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T.astype(float)
    assert len(special_points(corners, np.eye(3))) == 8 + 12 + 6 + 1


def test_a_point_inside_is_off_by_its_distance_to_the_plane():
    points = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(residuals(points, np.eye(2), 1e-12), [0, 0, 0, 1.5, 0], atol=1e-15)


def test_a_limit_in_the_middle_of_a_side_belongs_to_S():
    # by reflection the third token stays on the axis; it ends where the side is nearest to 0
    run = specimen(np.eye(2), x0=np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.96]]), t_end=2.2)
    verdict = judged(run, "polytope")
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()
    assert (
        verdict.details["limits"] == 3
        and verdict.details["vertices"] == 2
        and verdict.details["distance_to_S"] < 1e-9
    )


def test_the_token_in_the_middle_of_a_square_stays_at_0():
    x0 = 2 * np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1], [0, 0]])
    verdict = judged(specimen(np.eye(2), x0=x0, t_end=1.0), "polytope")
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()
    assert verdict.details["inside_and_not_0"] == 0 and len(verdict.details["S"]) == 9
    lost = judged(specimen(np.eye(2), x0=x0, t_end=6.0), "polytope")
    assert lost.outcome is Outcome.UNDECIDED and "unstable" in lost.unmet


def test_a_limit_that_is_planted_inside_contradicts_it(monkeypatch):
    run = specimen(np.eye(2), n=10, t_end=8.0)
    limit = al.limit(run, times=[8.0])
    follower = int(np.flatnonzero(limit.leaders != np.arange(10))[0])
    points, labels = limit.points.copy(), limit.labels.copy()
    points[follower] *= 0.5  # 0 is inside this polytope, so this is too
    labels[follower] = labels.max() + 1
    from attnlab.theory.evidence import Evidence

    monkeypatch.setattr(Evidence, "limit", dataclasses.replace(limit, points=points, labels=labels))
    verdict = judged(run, "polytope")
    assert verdict.outcome is Outcome.CONTRADICTED and verdict.details["inside_and_not_0"] > 0, (
        verdict.paragraph()
    )


# --------------------------------------------------------------------------------------------------
# V = -I


def test_the_rate_of_log_L_is_its_derivative():
    y = np.random.default_rng(0).normal(size=(6, 3))
    velocity, rate = _rates(y)
    np.testing.assert_allclose(velocity, al.velocity(al.Weights(V=-np.eye(3)), y), rtol=1e-12)
    step = 1e-5
    difference = (log_pair_sum(y + step * velocity) - log_pair_sum(y - step * velocity)) / (
        2 * step
    )
    assert rate == pytest.approx(difference, rel=1e-8)


@pytest.mark.parametrize("n", [2, 5, 30])
def test_no_token_beyond_R_moves_away_from_0(n):
    rng, worst = np.random.default_rng(n), 0.0
    for _ in range(300):
        y = rng.normal(size=(n, 2)) * rng.uniform(0.1, 3)
        y[0] *= norm_bound(n) * 1.0001 / np.linalg.norm(y[0])
        # the worst others: all at -e / |y_0|, where s e^s = -1/e
        y[1:] = -y[0] / (y[0] @ y[0]) if rng.random() < 0.1 else y[1:]
        worst = max(worst, float(_rates(y)[0][0] @ y[0]))
    assert worst <= 0.0
    # and it is sharp: a little closer, it can
    y[0] *= 0.999
    y[1:] = -y[0] / (y[0] @ y[0])
    assert _rates(y)[0][0] @ y[0] > 0.0


def test_any_positive_definite_scores_and_any_clock_are_a_change_of_units():
    rng = np.random.default_rng(5)
    B = rng.normal(size=(2, 2))
    M = B @ B.T + 0.3 * np.eye(2)
    values, vectors = np.linalg.eigh(M)
    root = vectors * np.sqrt(values) @ vectors.T
    y0 = rng.normal(size=(7, 2)) * 1.5
    one = judged(specimen(-np.eye(2), x0=y0, t_end=200.0), "collapse_to_origin")
    other = judged(
        specimen(-4 * np.eye(2), x0=y0 @ np.linalg.inv(root), M=M, t_end=50.0), "collapse_to_origin"
    )
    assert one.outcome is other.outcome is Outcome.SUPPORTED, other.paragraph()
    for key in ("two_s_over_r_times_mean_square", "slope_of_mean_square", "n_P_minus_1"):
        assert one.details[key] == pytest.approx(other.details[key], rel=1e-4)
    assert one.details["rank"] == 2 and one.details[
        "two_s_over_r_times_mean_square"
    ] == pytest.approx(1.0, abs=0.05)


def test_two_opposite_tokens_follow_their_closed_form():
    # tokens +-w: w' = -w tanh(w^2), so u = w^2 takes the time of the integral of du / (2 u tanh u)
    run = specimen(-np.eye(1), x0=numbers(1.2, -1.2), t_end=60.0)
    u = run.x[:, 0, 0] ** 2
    for at in (1, 10, 100):
        assert quad(lambda v: 1 / (2 * v * np.tanh(v)), u[at], 1.44)[0] == pytest.approx(
            run.times[at], rel=1e-6
        )
    verdict = judged(run, "collapse_to_origin")
    assert verdict.outcome is Outcome.SUPPORTED and verdict.details["rank"] == 1, (
        verdict.paragraph()
    )


@pytest.mark.parametrize(
    "x0", [[[2.0, 1.0]], [[2.0, 1.0], [2.0, 1.0]]], ids=["one token", "equal tokens"]
)
def test_tokens_without_spread_fall_exponentially(x0):
    short, enough = (
        judged(specimen(-np.eye(2), x0=np.array(x0), t_end=t), "collapse_to_origin")
        for t in (2.0, 5.0)
    )
    assert short.outcome is Outcome.UNDECIDED and "t_end = 4.7 " in short.unmet, short.paragraph()
    assert enough.outcome is Outcome.SUPPORTED and enough.details["rank"] == 0


def test_data_on_another_clock_break_the_identity_of_L():
    run = specimen(-np.eye(2), t_end=60.0)
    faster = specimen(-1.2 * np.eye(2), t_end=60.0)
    verdict = judged(with_states(run, faster.states), "collapse_to_origin")
    assert verdict.outcome is Outcome.CONTRADICTED and verdict.measured == pytest.approx(
        0.2, abs=0.05
    ), verdict.paragraph()


def test_the_time_that_is_asked_for_is_enough():
    short = judged(specimen(-np.eye(3), t_end=3.0), "collapse_to_origin")
    wanted = float(short.unmet.split("t_end = ")[1].split()[0])
    assert (
        judged(specimen(-np.eye(3), t_end=wanted), "collapse_to_origin").outcome
        is Outcome.SUPPORTED
    )


def test_a_limit_known_too_coarsely_is_not_blamed_on_the_run(monkeypatch):
    # a group whose points are certified to within their own size only
    from attnlab.theory import evidence

    known = evidence.limit_of
    monkeypatch.setattr(
        evidence,
        "limit_of",
        lambda *given, **options: dataclasses.replace(
            known(*given, **options), grade="group", error=2.5
        ),
    )
    x0 = np.random.default_rng(0).uniform(-5.0, 5.0, (20, 3))
    run = al.simulate(al.Weights(V=np.diag([1.0, 1.0, -0.5])), x0, t_end=8.0)
    (found,) = al.check(run, names=["polytope_times_subspace"])
    assert found.outcome is Outcome.UNDECIDED and "rtol" not in found.unmet
    assert "known to within 2.5 only" in found.unmet and "no run would decide" in found.unmet
    monkeypatch.undo()
    (found,) = al.check(run, names=["polytope_times_subspace"])
    assert found.outcome is Outcome.SUPPORTED
