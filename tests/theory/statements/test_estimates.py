"""field_bounds, reversible, stability: their constants against finite differences, planted faults,
and what they cannot see.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.sensitivity import exponent, sensitivity
from attnlab.theory.statements.field_bounds import norms
from attnlab.verdicts import Outcome

NAMES = ("field_bounds", "reversible", "stability")
V = np.array([[1.0, 0.3], [0.1, 0.4]])


def verdict(run, name):
    (found,) = al.check(run, names=[name])
    return found


def made(t_end=2.0, n=8, V=V, rng=0, **options):
    x0 = np.random.default_rng(rng).uniform(-2, 2, (n, np.shape(V)[-1]))
    return al.simulate(al.Weights(V=V), x0, t_end=t_end, measure_error=True, **options)


def changed(run, change):
    """The run with its tokens x changed by hand; it still claims to be as accurate."""
    x = np.array(run.x)
    change(x)
    return dataclasses.replace(
        run, states=x, frame="x", basis=None, growth=None, turn=None, log_scale=np.zeros(len(x))
    )


# the constants
# --------------------------------------------------------------------------------------------------


def jacobian(weights, x, **options):
    """The Jacobian (n, d, n, d) of the velocity, by central differences of the plain formula."""
    n, d = x.shape
    J = np.empty((n, d, n, d))
    for m in range(n):
        for c in range(d):
            h = np.zeros_like(x)
            h[m, c] = 1e-6
            plus, minus = (
                al.velocity(weights, y, method="reference", **options) for y in (x + h, x - h)
            )
            J[:, :, m, c] = (plus - minus) / 2e-6
    return J


@pytest.mark.parametrize("seed", range(6))
def test_the_sensitivity_bounds_the_jacobian_and_is_bounded_by_the_radius(seed):
    rng = np.random.default_rng(seed)
    heads, mask, beta = 1 + seed % 2, ("full", "causal")[seed % 3 == 0], (1.0, -0.7)[seed % 4 == 1]
    weights = al.Weights(
        Q=rng.normal(size=(heads, 2, 3)),
        K=rng.normal(size=(heads, 2, 3)),
        V=rng.normal(size=(heads, 3, 3)),
    )
    x = rng.normal(size=(5, 3))
    J = jacobian(weights, x, mask=mask, beta=beta)
    rows = max(
        sum(np.linalg.norm(J[i, :, m], 2) for m in range(5)) for i in range(5)
    )  # of the norm max_i |x_i|
    bound = sensitivity(al.Dynamics(weights, mask=mask, beta=beta), x)
    R = np.linalg.norm(x, axis=1).max()
    speed, slope = norms(al.Dynamics(weights, beta=beta))
    assert rows <= bound * (1 + 1e-6)
    assert bound <= speed + slope * R**2 + 1e-9


def test_the_sensitivity_is_sharp_where_attention_is_uniform():
    """beta = 0: every token moves with V times the mean, whose Jacobian in the largest token is
    |V|.
    """
    weights = al.Weights(V=V)
    assert sensitivity(al.Dynamics(weights, beta=0.0), np.ones((4, 2))) == pytest.approx(
        np.linalg.norm(V, 2)
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_field_and_its_x_jacobian_obey_their_bounds_everywhere(seed):
    """X[mu](x) at any x: a token of no weight would move like that. Here as one more row of
    attention, by hand.
    """
    rng = np.random.default_rng(seed)
    M, W, tokens = rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), rng.normal(size=(6, 3))
    weights = al.Weights(Q=np.eye(3), K=M, V=W)
    R = np.linalg.norm(tokens, axis=1).max()
    speed, slope = norms(al.Dynamics(weights))

    def field(x):
        scores = x @ M @ tokens.T
        P = np.exp(scores - scores.max())
        return W @ (P @ tokens) / P.sum()

    for x in (0.1 * rng.normal(size=3), rng.normal(size=3), 10.0 * rng.normal(size=3)):
        J = np.array([(field(x + h) - field(x - h)) / 2e-5 for h in 1e-5 * np.eye(3)]).T
        assert np.linalg.norm(field(x)) <= speed * R
        assert np.linalg.norm(J, 2) <= 0.5 * slope * R**2 + 1e-7  # the factor 2 is not needed


def test_an_exponent_is_the_integral_and_a_jump_is_not_resolved():
    run = made(t_end=1.0, saves=201)
    rates = [sensitivity(run.dynamics, x) for x in run.x]
    assert exponent(run.dynamics, run.times, run.x) == pytest.approx(
        np.trapezoid(rates, run.times), rel=0.02
    )
    assert exponent(run.dynamics, run.times, run.x) >= np.trapezoid(rates, run.times)
    assert np.isnan(exponent(run.dynamics, run.times[:2], np.array([run.x[0], 3.0 * run.x[-1]])))


# planted faults
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "options",
    [{}, {"V": np.eye(2)}, {"V": -np.eye(2)}, {"beta": -1.0}, {"V": [[0.0, 1.0], [-1.0, 0.2]]}],
    ids=["good triple", "V = I", "V = -I", "beta < 0", "rotation"],
)
def test_true_runs_support_it(name, options):
    assert verdict(made(**options), name).outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("name", ["reversible", "stability"])
def test_several_heads_and_a_mask(name):
    weights = al.Weights(V=np.array([V, -0.5 * V.T]))
    run = al.simulate(weights, made().x[0], t_end=2.0, mask="causal", measure_error=True)
    assert verdict(run, name).outcome is Outcome.SUPPORTED


def test_the_data_of_another_equation_are_seen():
    """Tokens moved by 1.1 V, said to be moved by V."""
    run = made(V=1.1 * np.eye(2))
    lying = dataclasses.replace(run, dynamics=al.Dynamics(al.Weights(V=np.eye(2))))
    for name in NAMES:
        assert verdict(lying, name).outcome is Outcome.CONTRADICTED, name


def test_tokens_that_merge_break_the_bound_of_the_jacobian_alone():
    run = made(t_end=1.0)

    def merge(x):
        x[50:, 1] = x[50:, 0] + 1e-5 * (x[50:, 1] - x[50:, 0]) / np.linalg.norm(x[50, 1] - x[50, 0])

    start = np.array(run.x[0])
    start[1] = start[0] + [1e-2, 0.0]
    run = al.simulate(run.dynamics.weights, start, t_end=1.0, measure_error=True)
    assert verdict(run, "field_bounds").outcome is Outcome.SUPPORTED
    found = verdict(changed(run, merge), "field_bounds")
    assert found.outcome is Outcome.CONTRADICTED
    assert (
        found.details["largest_slope_over_bound"] > 1.0 > found.details["largest_speed_over_bound"]
    )


@pytest.mark.parametrize("name", ["reversible", "stability"])
def test_one_token_that_leaves_its_path_is_seen(name):
    def leave(x):
        x[60:, 3] += [0.0, 0.03]

    assert verdict(changed(made(), leave), name).outcome is Outcome.CONTRADICTED


def test_a_departure_below_the_error_is_not_called_one():
    run = dataclasses.replace(made(), error=1e-2)

    def leave(x):
        x[60:, 3] += [0.0, 0.003]

    for name in NAMES:
        assert verdict(changed(run, leave), name).outcome is Outcome.UNDECIDED, name


@pytest.mark.parametrize("name", NAMES)
def test_a_single_time_decides_nothing(name):
    run = made()
    one = dataclasses.replace(
        run, times=run.times[:1], states=run.states[:1], log_scale=run.log_scale[:1]
    )
    assert verdict(one, name).unmet == "a run with at least two saved times would decide"


def test_saved_times_too_far_apart_for_the_bounds_say_so():
    found = verdict(made(t_end=8.0, saves=3), "field_bounds")
    assert found.outcome is Outcome.UNDECIDED and "would decide" in found.unmet
    saves = int(found.unmet.split("saves=")[1].split(")")[0])
    assert verdict(made(t_end=8.0, saves=saves), "field_bounds").outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("name", NAMES)
def test_extreme_runs_are_judged_without_warnings(name):
    still = al.simulate(al.Weights(V=np.zeros((2, 2))), made().x[0], t_end=1.0, measure_error=True)
    assert verdict(still, name).outcome is Outcome.SUPPORTED
    alone = al.simulate(al.Weights(V=V), [[1.0, 2.0]], t_end=1.0, measure_error=True)
    assert verdict(alone, name).outcome is Outcome.SUPPORTED
    huge = al.simulate(
        al.Weights(V=30.0 * np.eye(2)),
        [[1.0, 0.2], [-1.0, 0.1]],
        t_end=40.0,
        measure_error=True,
        throw=False,
    )
    measured = theorems[name].measure(Evidence(huge))
    assert not measured.value - measured.bound > measured.error
    zero = al.simulate(al.Weights(V=V), np.zeros((3, 2)), t_end=1.0, measure_error=True)
    assert verdict(zero, name).outcome in (Outcome.SUPPORTED, Outcome.UNDECIDED)


def test_details_hold_the_rates():
    found = verdict(made(V=np.eye(2), t_end=4.0), "stability")
    assert found.details["smallest_rate"] >= 1.0 - 1e-9  # |V| at least
    evidence = Evidence(made())
    assert evidence.error < 1e-7


# the work
# --------------------------------------------------------------------------------------------------


def test_a_jordan_block_costs_a_few_exponentials_per_saved_time(monkeypatch):
    """Not one per pair of saved times: `check` of this run needed 11,000 of them."""
    from scipy import linalg

    calls, expm = [], linalg.expm
    run = made(V=np.array([[1.0, 1.0], [0.0, 1.0]]), frame="z", saves=41)
    monkeypatch.setattr(linalg, "expm", lambda A: calls.append(1) or expm(A))
    assert verdict(run, "field_bounds").outcome is Outcome.SUPPORTED
    assert 0 < len(calls) <= 5 * 41
    del calls[:]
    states, log_scale = run.scaled_x()
    assert not calls and not states.flags.writeable  # kept from before
    some, some_scale = run.scaled_x(slice(3, 9, 2))
    assert len(calls) == 3
    np.testing.assert_array_equal(some, states[3:9:2])
    np.testing.assert_array_equal(some_scale, log_scale[3:9:2])
