"""Results about coordinates and subspaces: planted answers, closed forms, counterexamples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from attnlab.theory.specimens import specimen
from attnlab.theory.statements.codimension import slowest
from attnlab.theory.statements.coordinate_extremes import left_eigenvectors, steps_outward
from attnlab.theory.statements.feedforward_hyperplanes import covering, radius_of_three
from attnlab.theory.statements.generic_scores import sign_class
from attnlab.theory.statements.polytope_times_subspace import MIXING, from_boundary, residual
from attnlab.theory.statements.several_heads import required
from attnlab.theory.statements.three_hyperplanes import from_levels
from attnlab.verdicts import Outcome

SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])


def judged(name, run):
    (verdict,) = al.check(run, names=[name])
    return verdict


# coordinate_extremes


def test_left_eigenvectors_are_those_of_V():
    V = np.random.default_rng(0).normal(size=(4, 4))
    values, rows = left_eigenvectors(al.Weights(V=V))
    assert np.allclose(rows @ V, values[:, None] * rows) and np.allclose(
        np.abs(rows).sum(axis=1), 1.0
    )


def test_extremes_in_closed_form_where_all_attend_equally():
    # scores 0: phi*(z_i) = m + e^{-lambda t} (phi*(z_i(0)) - m)
    run = specimen(np.diag([1.0, 0.3]), n=6, t_end=3.0, M=np.zeros((2, 2)))
    details = judged("coordinate_extremes", run).details
    for k, rate in enumerate(details["eigenvalues"]):
        mean = run.x[0].mean(axis=0)[int(rate != 1.0)]
        first, last = details["first_extremes"][k], details["last_extremes"][k]
        assert np.allclose(last, mean + np.exp(-3.0 * rate) * (first - mean), atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"mask": "causal"},
        {"beta": -1.0},
        {"layers": 15, "dt": 0.4, "t_end": None},
        {"kernel": "hardmax", "t_end": 1.0},
    ],
)
def test_extremes_need_neither_full_attention_nor_signs_nor_continuous_time(options):
    # hardmax with scores of any sign may switch without end
    M = np.eye(2) if "kernel" in options else np.random.default_rng(5).normal(size=(2, 2))
    verdict = judged(
        "coordinate_extremes",
        specimen([[1.0, 0.3], [0.1, -0.7]], n=6, M=M, **{"t_end": 3.0, **options}),
    )
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()


def test_weights_that_do_not_sum_to_one_are_out_of_scope():
    verdict = judged(
        "coordinate_extremes", specimen(np.eye(2), n=4, t_end=0.5, kernel="exp_mean", size=0.5)
    )
    assert verdict.outcome is Outcome.OUT_OF_SCOPE


def test_a_coordinate_that_does_not_blow_up_is_seen_beside_one_that_does():
    # z_2 grows like e^{3 t}: 1e13 times z_1 at the end
    verdict = judged("coordinate_extremes", specimen(np.diag([0.5, -3.0]), n=6, t_end=10.0))
    assert verdict.outcome is Outcome.SUPPORTED and verdict.error < 1e-4, verdict.paragraph()


@pytest.mark.parametrize("token, outward", [("argmax", 1.0), ("argmin", -1.0)])
def test_one_extreme_that_steps_outward_once_is_found(token, outward):
    run = specimen(np.eye(2), n=6, t_end=2.0)
    states = run.states.copy()
    at = len(run.times) // 2
    states[at, getattr(np, token)(states[at, :, 0]), 0] += outward * 0.02 * np.exp(run.times[at])
    verdict = judged("coordinate_extremes", dataclasses.replace(run, states=states))
    assert verdict.outcome is Outcome.CONTRADICTED and verdict.measured > 0.005


def test_a_slow_drift_is_a_step_outward_too():
    assert steps_outward(np.array([[1.0], [0.5], [0.6], [0.7]])).max() == pytest.approx(0.2)


def test_the_envelope_of_decaying_and_turning_coordinates():
    V = np.zeros((3, 3))
    V[:2, :2], V[2, 2] = [[-0.2, -1.0], [1.0, -0.2]], 0.4
    verdict = judged("coordinate_extremes", specimen(V, n=6, t_end=4.0))
    assert (
        verdict.outcome is Outcome.SUPPORTED
        and verdict.details["growth_beyond_envelope"] < 0.0 + verdict.error
    )


# polytope_times_subspace


def test_depth_in_a_square():
    worst, numbers = from_boundary(np.vstack([SQUARE, [[0.5, 0.0], [0.0, 0.0], [0.0, 1.0]]]))
    assert worst == pytest.approx(0.5)  # (0.5, 0): as far from 0 as from the right side
    assert (
        numbers["vertices"] == 4
        and numbers["tokens_not_at_vertices"] == 3
        and numbers["tokens_at_0"] == 1
    )
    assert from_boundary(np.vstack([SQUARE, [[0.0, 1.0], [0.0, 0.0]]]))[0] == pytest.approx(0.0)
    flat = from_boundary(np.array([[0.0, 1.0], [1.0, 1.0], [0.5, 1.0]]))
    assert flat[0] == 0.0 and flat[1]["dimension_of_polytope"] == 1


def test_residual_of_a_vertex_that_another_outshines():
    points = np.array([[1.0, 0.1], [0.5, 0.6], [-1.0, -0.5]])
    assert residual(points, np.eye(2)) == 0.0
    assert residual(points, np.diag([1.0, 100.0])) > 0.1


def test_generic_data_tell_S_from_S_F():
    # every limit is a vertex; it attends to itself by M_FF, and would not by pi_F A
    found = [
        judged(
            "polytope_times_subspace",
            specimen(np.diag([1.0, 1.0, -0.5]), n=15, t_end=9.0, M=MIXING @ MIXING, rng=rng),
        )
        for rng in (0, 1, 2)
    ]
    assert all(verdict.outcome is Outcome.SUPPORTED for verdict in found)
    assert max(verdict.details["residual_of_S_F"] for verdict in found) < 1e-8
    assert max(verdict.details["residual_of_S"] for verdict in found) > 0.02


def test_limits_inside_edges_do_not_tell_them_apart():
    # mirror images in the first coordinate: tokens on the mirror end inside an edge, to which both
    # forms are orthogonal
    x0 = np.array(
        [
            [1.5, 1.2, 0.3],
            [-1.5, 1.2, 0.3],
            [0.0, 0.9, 0.2],
            [0.0, 0.3, -0.4],
            [1.0, -1.3, 0.1],
            [-1.0, -1.3, 0.1],
        ]
    )
    verdict = judged(
        "polytope_times_subspace",
        specimen(np.diag([1.0, 1.0, -0.5]), t_end=5.0, M=MIXING @ MIXING, x0=x0),
    )
    assert verdict.outcome is Outcome.UNDECIDED, (
        verdict.paragraph()
    )  # rounding drives the run away from that limit
    assert verdict.details["tokens_not_at_vertices"] == 2
    assert max(verdict.details["residual_of_S"], verdict.details["residual_of_S_F"]) < 1e-8


def test_the_part_in_G_is_ignored_also_where_it_grows():
    verdict = judged("polytope_times_subspace", specimen(np.diag([1.0, 1.0, 0.4]), n=10, t_end=8.0))
    assert verdict.outcome is Outcome.SUPPORTED and verdict.details["dimension_of_F"] == 2, (
        verdict.paragraph()
    )


# codimension


@pytest.mark.parametrize(
    "V, x0, symmetric, simple",
    [
        (np.eye(2), np.random.default_rng(2).uniform(-2, 2, (20, 2)), False, False),
        (
            np.diag([1.2, 0.8]),
            np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]),
            True,
            True,
        ),
        (
            np.diag([1.2, 0.8, -0.5]),
            np.array(
                [
                    [1.0, 0.3, 0.2],
                    [-1.0, 0.3, 0.2],
                    [0.0, 1.0, 0.1],
                    [0.0, -1.0, 0.4],
                    [0.7, -0.5, -0.3],
                    [-0.7, -0.5, -0.3],
                ]
            ),
            True,
            True,
        ),
    ],
)
def test_the_codimension_conjecture_read_literally_is_false(V, x0, symmetric, simple):
    verdict = judged("codimension", specimen(V, t_end=4.0, x0=x0))
    assert (
        verdict.outcome is Outcome.CONTRADICTED and verdict.measured >= 4 and verdict.bound == 3
    ), verdict.paragraph()
    assert (
        verdict.details["are_data_symmetric"] is symmetric
        and verdict.details["is_leading_simple"] is simple
    )


@pytest.mark.parametrize(
    ("V", "rate"),
    [
        (np.diag([0.3, -2.0, 1.2, 0.8]), 0.3),
        ([[0.5, 3.0, 0.0], [-3.0, 0.5, 0.0], [0.0, 0.0, 2.0]], 0.5),
        (np.eye(2), 1.0),
    ],
)
def test_the_slowest_growing_direction_of_F(V, rate):
    """The last coordinate of F to settle: a run must be judged by its rate, and not by the leading
    one.
    """
    assert slowest(al.Weights(V=V)) == pytest.approx(rate, rel=1e-12)


def test_the_four_axis_tokens_keep_the_published_limit():
    limit = al.limit(al.Weights(V=np.diag([1.2, 0.8])), np.vstack([np.eye(2), -np.eye(2)]))
    assert limit.count == 4 and np.allclose(np.abs(limit.points).max(axis=1), 0.7507, atol=5e-5)


@pytest.mark.parametrize("rng", [0, 1])
def test_generic_data_with_a_simple_leading_eigenvalue_support_the_codimension_conjecture(rng):
    verdict = judged("codimension", specimen(np.diag([1.2, 0.8, -0.5]), t_end=11.0, rng=rng))
    assert verdict.outcome is Outcome.SUPPORTED and verdict.details["is_leading_simple"], (
        verdict.paragraph()
    )


def test_a_jordan_block_is_judged_on_its_limit():
    verdict = judged("codimension", specimen([[1.0, 1.0], [0.0, 1.0]], n=6, t_end=14.0))
    assert verdict.outcome is Outcome.SUPPORTED and "limit certified" in verdict.evidence


def test_a_jordan_block_in_another_basis_is_judged_on_a_settled_run():
    # the eigenvalue 1.5, twice, with one eigenvector
    verdict = judged("codimension", specimen([[1.0, 0.5], [-0.5, 2.0]], n=6, t_end=10.0))
    assert verdict.outcome is not Outcome.CONTRADICTED and "No certificate" in verdict.evidence, (
        verdict.paragraph()
    )


# generic_scores


@pytest.mark.parametrize(
    "M, word",
    [
        (np.eye(2), "positive definite"),
        (-np.eye(2), "negative definite"),
        (np.diag([1.0, -1.0]), "indefinite"),
        (np.diag([1.0, 0.0]), "positive semidefinite"),
        (np.array([[0.0, 1.0], [-1.0, 0.0]]), "zero"),
    ],
)
def test_sign_classes(M, word):
    signs = sign_class(al.Dynamics(al.Weights(Q=np.eye(2), K=M, V=np.eye(2))))
    assert signs["symmetric_part"] == word and signs["is_a_theorem"] is (
        word == "positive definite"
    )


@pytest.mark.parametrize(
    "M, V", [([[-0.6, 0.3], [-0.5, 0.4]], np.eye(2)), ([[-0.8, 0.5], [0.1, -0.4]], 2.0 * np.eye(2))]
)
def test_indefinite_and_negative_scores(M, V):
    verdict = judged("generic_scores", specimen(V, t_end=9.0, M=M))
    assert verdict.outcome is Outcome.SUPPORTED and verdict.kind == "conjecture", (
        verdict.paragraph()
    )


# several_heads


def test_rows_that_must_become_boolean():
    assert required(np.array([[0.0, 0.9, 0.2, 0.0]])) == 0.2  # one exception inside
    assert required(np.array([[0.3, 0.9, 0.0, 0.0]])) == 0.3  # none at the ends
    assert (
        required(np.array([[0.0, 0.9, 0.0], [0.0, 0.0, 0.0]])) == 0.0 == required(np.zeros((2, 1)))
    )


def test_tokens_on_one_side_follow_one_token():
    weights = al.Weights(Q=np.ones((2, 1, 1)), K=[[[1.0]], [[0.5]]], V=[[[1.0]], [[0.3]]])
    run = al.simulate(weights, [[1.0], [0.2], [0.5]], t_end=7.0, rtol=1e-10, measure_error=True)
    verdict = judged("several_heads", run)
    assert verdict.outcome is Outcome.SUPPORTED and verdict.details["ranks"] == [
        1,
        1,
    ], verdict.paragraph()


def test_a_coarse_run_cannot_say_which_token_leads():
    weights = al.Weights(Q=np.ones((2, 1, 1)), K=[[[1.0]], [[0.5]]], V=[[[1.0]], [[0.3]]])
    run = al.simulate(weights, [[1.0], [0.99], [-0.5]], t_end=9.0, measure_error=True)
    verdict = judged("several_heads", dataclasses.replace(run, error=1e-2))
    assert verdict.outcome is Outcome.UNDECIDED and "rtol" in verdict.unmet


# feedforward_hyperplanes


def test_three_intervals():
    assert radius_of_three(np.array([0.0, 5.0, 9.0])) == 0.0
    assert radius_of_three(np.array([0.0, 1.0, 5.0, 9.0, 9.4])) == pytest.approx(0.5)
    assert np.allclose(covering(np.array([0.0, 1.0, 5.0, 9.0, 9.4]), 0.5), [0.5, 5.0, 9.2])


def on_the_line(x0, t_end=4.0):
    return al.simulate(
        al.Weights(V=[[1.0]]),
        np.array(x0)[:, None],
        t_end=t_end,
        feedforward={"sigma": "relu"},
        measure_error=True,
        throw=False,
    )


def test_four_negative_tokens_on_the_line_refute_three_hyperplanes():
    # all but the smallest are pulled down only, which the ReLU forbids: they never move at all
    run = on_the_line([-3.0, -2.0, -1.0, -0.5])
    assert np.abs(run.z[-1, 1:] - run.z[0, 1:]).max() < 1e-12 and run.z[-1, 0, 0] < -2.5
    verdict = judged("feedforward_hyperplanes", run)
    assert verdict.outcome is Outcome.CONTRADICTED and verdict.measured == 4, verdict.paragraph()


def test_two_negative_and_two_positive_tokens_do_not():
    verdict = judged("feedforward_hyperplanes", on_the_line([-3.0, -2.0, 1.0, 0.5], t_end=6.0))
    assert verdict.outcome is Outcome.SUPPORTED and "a settled run" in verdict.evidence, (
        verdict.paragraph()
    )


def test_a_settled_run_with_too_many_levels_stays_open():
    # in the plane nothing is proved, and a plateau looks like this too
    run = specimen(np.diag([1.0, -0.5]), n=10, t_end=12.0, rng=1, feedforward={"sigma": "relu"})
    verdict = judged("feedforward_hyperplanes", run)
    assert verdict.outcome is Outcome.UNDECIDED and "plateau" in verdict.unmet, verdict.paragraph()


def test_the_hyperplane_through_0_counts():
    assert (
        from_levels(np.array([-1.0, 0.0, 2.0])) == 0.0
        and from_levels(np.array([-1.0, 0.5, 2.0])) == 0.5
    )
