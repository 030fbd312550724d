"""What a search for wrong verdicts found: honest runs that were accused, spoiled ones that passed,
hypotheses misjudged.
"""

from __future__ import annotations

import dataclasses
import re
import warnings

import numpy as np
import pytest

import attnlab as al
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.statements.coordinate_extremes import left_eigenvectors
from attnlab.verdicts import Outcome

X0 = np.random.default_rng(0).uniform(-2, 2, (10, 2))
# the eigenvalue 0.5 twice with one eigenvector, in a basis in which no limit is certified
JORDAN = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, -0.5, 0.0]])
"""A good triple, with a Jordan block beside the leading eigenvalue."""


def judged(run, name):
    (verdict,) = al.check(run, names=[name])
    return verdict


def applies(weights, name):
    (prediction,) = al.predict(weights, names=[name])
    return prediction.applies


# honest runs
# --------------------------------------------------------------------------------------------------


def test_a_finer_run_that_took_the_same_steps_proves_no_error_of_0():
    # uniform attention: both tolerances are met by the same few steps
    start = np.random.default_rng(1).uniform(-2, 2, (8, 1))
    run = al.simulate(
        al.Weights(Q=[[0.0]], K=[[0.0]], V=[[1000.0]]),
        start,
        t_end=0.001,
        rtol=7.8e-7,
        measure_error=True,
    )
    assert run.error == 0.0 and Evidence(run).error > 0.0
    assert judged(run, "stability").outcome is not Outcome.CONTRADICTED


def test_the_error_of_a_run_is_more_than_its_distance_to_a_run_that_is_off_too():
    accused = 0
    for seed in range(30):
        start = np.random.default_rng(seed).normal(size=(4, 2))
        run = al.simulate(al.Weights(V=np.eye(2)), start, t_end=1.0, rtol=1e-5, measure_error=True)
        truth = al.simulate(al.Weights(V=np.eye(2)), start, t_end=1.0, rtol=1e-13)
        off = (np.abs(run.x - truth.x).max(axis=(1, 2)) / np.abs(truth.x).max(axis=(1, 2))).max()
        accused += off > run.error
        assert off <= Evidence(run).error
    assert accused  # so run.error itself is no bound


def test_an_inflection_of_the_rate_of_L_is_no_departure_from_its_identity():
    # where the rate of log L has an inflection Simpson's rule and the trapezoidal agree, and both
    # are off
    accused = [
        seed
        for seed in range(40)
        if judged(_outlier(seed), "collapse_to_origin").outcome is Outcome.CONTRADICTED
    ]
    assert not accused


def _outlier(seed):
    rng = np.random.default_rng([23, seed])
    start = rng.normal(size=(8, 2))
    start[0] *= 20.0
    B = rng.normal(size=(2, 2))
    weights = al.Weights(Q=np.eye(2), K=B @ B.T + 0.1 * np.eye(2), V=-np.eye(2))
    return al.simulate(weights, start, t_end=5.0, rtol=1e-9, beta=0.3, measure_error=True)


def test_four_certified_limits_refute_the_conjecture_wherever_rounding_drives_the_run():
    rng = np.random.default_rng(21)
    pair, middle = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    middle[:, 0], middle[:, 1] = 0.0, (1.3, -1.1)
    start = np.concatenate([pair, pair * [-1, 1, 1], middle])
    verdict = judged(
        al.simulate(al.Weights(V=np.diag([1.2, 0.8, -0.5])), start, t_end=12.0, throw=False),
        "codimension",
    )
    assert verdict.outcome is Outcome.CONTRADICTED and verdict.measured == 4, verdict.paragraph()


@pytest.mark.parametrize("options", [{"stepper": "rk4", "dt": 8.0}, {"saves": 2}])
def test_steps_too_coarse_for_distances_below_the_error_break_no_bound(options):
    # log |x_i - x_j| may be off by anything there; nor may e^(|V| h) be cut off
    start = X0[:3] if "dt" in options else np.ones((2, 2))
    run = al.simulate(
        al.Weights(V=-2.5 * np.eye(2)), start, t_end=160.0, beta=30.0, throw=False, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert judged(run, "field_bounds").outcome is Outcome.UNDECIDED


@pytest.mark.slow
def test_equal_tokens_use_all_of_their_bound_and_no_more():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        times = np.concatenate([[0.0], np.sort(80.0 * rng.random(400))])
        run = al.simulate(
            al.Weights(V=0.7 * np.eye(2)),
            np.ones((2, 1)) * rng.normal(size=2),
            times=times,
            frame="z",
        )
        assert judged(run, "field_bounds").outcome is not Outcome.CONTRADICTED


def test_a_coarse_run_whose_z_has_died_out_is_far_from_its_limit_by_its_error():
    # Euler's x falls behind e^(ct), so its z tends to 0: an error of 1, relative to tokens that are
    # not 0
    run = al.simulate(
        al.Weights(V=np.eye(2)), X0 + 3.0, t_end=20.0, stepper="euler", dt=1.25, frame="x"
    )
    for name in ("polytope", "polytope_times_subspace"):
        verdict = judged(run, name)
        assert verdict.outcome is Outcome.UNDECIDED and "adaptive" in verdict.unmet, (
            verdict.paragraph()
        )


# spoiled runs
# --------------------------------------------------------------------------------------------------


def _noise(run):
    states = run.states.copy()
    states[1:] *= 1.0 + 1e-3 * np.random.default_rng(1).normal(size=states[1:].shape)
    return dataclasses.replace(run, states=states)


def _leave(run):
    states = run.states.copy()
    states[50, 1] += 0.01 * np.abs(states[50]).max()
    return dataclasses.replace(run, states=states)


def _other_values(run):
    weights = run.dynamics.weights
    other = al.Weights(Q=weights.Q, K=weights.K, V=1.001 * weights.full_V)
    return dataclasses.replace(run, dynamics=dataclasses.replace(run.dynamics, weights=other))


@pytest.mark.parametrize("spoil", [_noise, _leave, _other_values])
def test_spoiled_data_that_claim_no_error_are_not_given_theirs_as_one(spoil):
    run = al.simulate(al.Weights(V=np.eye(2)), X0, t_end=8.0)
    assert run.error is None
    for name in (
        "codimension",
        "generic_scores",
        "hull_shrinks",
        "polytope",
        "polytope_times_subspace",
    ):
        assert judged(spoil(run), name).outcome is not Outcome.SUPPORTED, name
    assert judged(run, "polytope").outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_tokens_that_are_no_numbers_are_not_judged(value):
    run = al.simulate(al.Weights(V=np.eye(2)), X0, t_end=3.0, measure_error=True)
    states = run.states.copy()
    states[-1, 2, 0] = value
    with pytest.raises(ValueError, match="tokens of a run must be finite"):
        al.check(dataclasses.replace(run, states=states))


@pytest.mark.parametrize("swap", [(40, 60), (40, 40)])
def test_times_that_do_not_ascend_are_not_judged(swap):
    run = al.simulate(al.Weights(V=np.eye(2)), X0, t_end=3.0, measure_error=True)
    times = run.times.copy()
    times[swap[0]], times[swap[1]] = times[swap[1]], times[swap[0] + 1]
    with pytest.raises(ValueError, match="ascend"):
        al.check(dataclasses.replace(run, times=times))


# hypotheses
# --------------------------------------------------------------------------------------------------


def test_a_pair_that_rounding_has_made_of_a_double_eigenvalue_counts_as_real():
    pairs = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        S = np.eye(2) + 0.5 * rng.normal(size=(2, 2))
        R = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        for V in (S @ np.linalg.inv(S), R @ [[1.0, 1.0], [0.0, 1.0]] @ R.T):
            pairs += np.linalg.eigvals(V).imag.any()
            values, rows = left_eigenvectors(al.Weights(V=V))
            assert np.abs(rows @ V - values[:, None] * rows).max() < 1e-13
            assert applies(al.Weights(V=V), "coordinate_extremes") is True
    assert pairs > 10
    assert applies(al.Weights(V=[[1.0, -1e-3], [1e-3, 1.0]]), "coordinate_extremes") is False


@pytest.mark.parametrize("seed", range(5))
def test_a_double_eigenvalue_is_double_in_every_orthonormal_basis(seed):
    R = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    for V in (np.eye(3), np.diag([1.0, 1.0, -0.4])):
        assert (
            applies(al.Weights(V=V), "three_hyperplanes")
            is applies(al.Weights(V=R @ V @ R.T), "three_hyperplanes")
            is False
        )


def test_what_is_too_close_to_call_says_what_would_decide():
    near = al.Weights(V=np.diag([1.0, 1.0 - 3e-11]))
    for prediction in al.predict(near, names=["polytope", "hull_shrinks", "three_hyperplanes"]):
        (note,) = [one.note for one in prediction.hypotheses if one.holds is None]
        assert "would decide" in note, note


# no certificate
# --------------------------------------------------------------------------------------------------


EXACT = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])


@pytest.mark.parametrize("name", ["three_hyperplanes", "polytope_times_subspace"])
@pytest.mark.parametrize(
    ("V", "words"),
    [(EXACT, "limit certified"), (JORDAN, "a settled run")],
    ids=["given exactly", "in another basis"],
)
def test_a_jordan_block_beside_the_leading_eigenvalue_is_judged(name, V, words):
    start = np.random.default_rng(0).uniform(-2, 2, (10, 3))
    enough, short = (
        judged(al.simulate(al.Weights(V=V), start, t_end=t), name) for t in (10.0, 1.0)
    )
    assert enough.outcome is Outcome.SUPPORTED and words in enough.evidence, enough.paragraph()
    assert short.outcome is Outcome.UNDECIDED and "t_end" in short.unmet, short.paragraph()
    spoiled = al.simulate(al.Weights(V=1.1 * V), start, t_end=10.0, measure_error=True)
    spoiled = dataclasses.replace(spoiled, dynamics=al.Dynamics(al.Weights(V=V)))
    assert judged(spoiled, name).outcome is Outcome.CONTRADICTED


@pytest.mark.parametrize("name", ["codimension", "three_hyperplanes"])
def test_a_run_too_short_to_move_has_not_settled(name):
    start = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 3))
    verdict = judged(al.simulate(al.Weights(V=JORDAN), start, t_end=1e-6), name)
    assert verdict.outcome is Outcome.UNDECIDED and "t_end" in verdict.unmet, verdict.paragraph()


def moves(weights, start, t_end):
    """How far phi*_1(z), here the first coordinate, moves from t_end to twice that, as a part of
    its range with 0.
    """
    values = al.simulate(weights, start, times=[0.0, t_end, 2.0 * t_end]).z[1:, :, 0]
    return np.abs(values[1] - values[0]).max() / np.ptp(np.append(values[0], 0.0))


@pytest.mark.parametrize(
    "t_end",
    [4.0, pytest.param(5.0, marks=pytest.mark.slow), pytest.param(6.0, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("strength", [1e-2, 1e-3, 1e-4])
def test_a_slow_run_has_not_settled(strength, t_end):
    # weak scores and balanced tokens: all z shrink together, to a size that is small beside the
    # first one, and go on
    start = np.random.default_rng(0).uniform(-2, 2, (10, 3))
    start[:, 0] -= start[:, 0].mean()
    weights = al.Weights(Q=np.eye(3), K=strength * np.eye(3), V=JORDAN)
    assert moves(weights, start, t_end) > 0.4
    verdict = judged(
        al.simulate(weights, start, t_end=t_end, measure_error=True), "three_hyperplanes"
    )
    assert verdict.outcome is Outcome.UNDECIDED and "has not settled" in verdict.unmet, (
        verdict.paragraph()
    )


def test_a_plateau_is_not_the_end():
    # a token 1e-11 beside the balance of the others rests at 0 until t = 3, and ends where the
    # largest tokens do
    start = np.zeros((7, 3))
    start[:, 0] = [-2.0, -2.1, -1.9, 2.0, 2.1, 1.9, 1e-11]
    start[:3, 1:] = 0.1 * np.random.default_rng(0).normal(size=(3, 2))
    start[3:6, 1:] = -start[:3, 1:]
    weights = al.Weights(Q=np.eye(3), K=0.1 * np.eye(3), V=JORDAN)
    run = al.simulate(weights, start, t_end=3.0, measure_error=True)
    assert (
        abs(run.z[-1, -1, 0]) < 0.01
        and np.abs(run.z[-1, :-1, 0]).min() > 1.0
        and moves(weights, start, 3.0) > 0.2
    )
    verdict = judged(run, "three_hyperplanes")
    assert verdict.outcome is Outcome.UNDECIDED and "has not settled" in verdict.unmet, (
        verdict.paragraph()
    )


def test_rest_that_could_only_show_past_the_wall_is_not_known():
    start = np.random.default_rng(0).uniform(-2, 2, (10, 3))
    verdict = judged(al.simulate(al.Weights(V=JORDAN), start, t_end=16.0), "three_hyperplanes")
    assert verdict.outcome is Outcome.UNDECIDED and "past the precision wall" in verdict.unmet, (
        verdict.paragraph()
    )


@pytest.mark.parametrize("shrink", [1.0, 1e-3])
def test_lengths_are_judged_beside_the_range_where_they_are_measured(shrink):
    # in 40 dimensions first tokens are wide in directions that V forgets: their diameter says
    # nothing about phi*_1
    d, rng = 40, np.random.default_rng(0)
    V = np.zeros((d, d))
    V[:3, :3] = JORDAN
    start = rng.uniform(-2, 2, (8, d))
    start[:, 0] *= shrink
    weights = al.Weights(Q=np.eye(d)[:1], K=np.eye(d)[:1], V=V)
    run = al.simulate(weights, start, t_end=1.0, measure_error=True)
    verdict = judged(run, "three_hyperplanes")
    values = run.z[-1, :, 0]
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.resolution == pytest.approx(0.01 * np.ptp(np.append(values, 0.0)), rel=1e-6)


def test_a_chain_of_tokens_is_not_one_limit():
    # each of 700 limits on a circle is close to the next, and they are 700 all the same
    angle = 2 * np.pi * np.arange(700) / 700
    run = al.simulate(
        al.Weights(V=np.eye(2)),
        30 * np.stack([np.cos(angle), np.sin(angle)], axis=1),
        t_end=6.0,
        saves=11,
    )
    (verdict,) = al.check(run, names=["codimension"], work=200.0)
    assert "No certificate" in verdict.evidence and verdict.outcome is Outcome.UNDECIDED, (
        verdict.paragraph()
    )
    assert verdict.details["groups"] > 100


def test_a_narrow_coordinate_is_not_hidden_by_a_wide_one():
    # the second coordinate has 1e-5 of the range of the first: an error of 1e-5 of the first hides
    # all that it does
    start = np.random.default_rng(0).uniform(-2, 2, (12, 2)) * [1.0, 1e-5]
    weights = al.Weights(V=np.diag([1.0, 0.5]))
    coarse = al.simulate(
        weights, start, t_end=4.0, stepper="rk4", dt=0.1, frame="x", measure_error=True
    )
    assert 1e-6 < coarse.error < 1e-4
    verdict = judged(coarse, "coordinate_extremes")
    assert verdict.outcome is Outcome.UNDECIDED and "is hidden" in verdict.unmet, (
        verdict.paragraph()
    )
    fine = judged(
        al.simulate(weights, start, t_end=4.0, rtol=1e-10, measure_error=True),
        "coordinate_extremes",
    )
    assert fine.outcome is Outcome.SUPPORTED and fine.details["seen"] == 1.0, fine.paragraph()


def test_two_tokens_cannot_fail_and_decide_nothing():
    start = np.random.default_rng(0).uniform(-2, 2, (2, 3))
    verdict = judged(al.simulate(al.Weights(V=JORDAN), start, t_end=10.0), "three_hyperplanes")
    assert verdict.outcome is Outcome.UNDECIDED and "could fail" in verdict.unmet, (
        verdict.paragraph()
    )


def test_one_run_has_one_error():
    run = al.simulate(
        al.Weights(V=JORDAN),
        np.random.default_rng(0).uniform(-2, 2, (6, 3)),
        t_end=6.0,
        saves=13,
        stepper="rk4",
        dt=0.05,
    )
    verdicts = [
        one for one in al.check(run, names=QUICK) if one.outcome is not Outcome.OUT_OF_SCOPE
    ]
    assert len(verdicts) > 2 and len({one.run_error for one in verdicts}) == 1
    printed = {word for one in verdicts for word in re.findall(r"run error ([^,)]*)", str(one))}
    assert len(printed) == 1 and not re.search(r", error [0-9]", " ".join(map(str, verdicts)))


# units and names
# --------------------------------------------------------------------------------------------------

QUICK = [name for name in theorems if name not in ("stability", "reversible")]


@pytest.mark.parametrize(
    "V", [np.eye(2), -np.eye(2), np.array([[1.0, 0.3], [0.1, 0.4]])], ids=["I", "-I", "good triple"]
)
def test_verdicts_do_not_depend_on_units_or_on_the_order_of_tokens(V):
    M, R = (
        np.array([[1.0, 0.3], [0.3, 0.7]]),
        np.linalg.qr(np.random.default_rng(2).normal(size=(2, 2)))[0],
    )

    def outcomes(M, V, x0, t_end):
        run = al.simulate(al.Weights(Q=np.eye(2), K=M, V=V), x0, t_end=t_end, measure_error=True)
        return {one.theorem: one.outcome for one in al.check(run, names=QUICK)}

    first = outcomes(M, V, X0, 12.0)
    assert outcomes(M, V, X0[::-1], 12.0) == first
    assert outcomes(M, 1e-6 * V, X0, 12e6) == first
    assert outcomes(1e-12 * M, V, 1e6 * X0, 12.0) == first
    assert outcomes(R @ M @ R.T, R @ V @ R.T, X0 @ R.T, 12.0) == first
