"""Replicas vary V and the scores by what computing their eigen-coordinates may have been off by."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.problem import EPSILON, make_problem, vary
from attnlab.limits.reasons import proved
from attnlab.limits.state import State


def oblique(growth, turn=(), seed=0):
    """V with these eigenvalues in a random basis; turn: the pairs that begin at these rows."""
    rng = np.random.default_rng(seed)
    block = np.diag(np.array(growth, dtype=float))
    for row, b in turn:
        block[row, row + 1], block[row + 1, row] = b, -b
    S = np.eye(len(block)) + 0.4 * rng.normal(size=block.shape)
    return S @ block @ np.linalg.inv(S)


def problem_of(V, dt=None):
    x0 = np.random.default_rng(5).uniform(-2, 2, (6, len(V)))
    return make_problem(al.Dynamics(al.Weights(V=V), dt=dt), x0)


@pytest.mark.parametrize("dt", [None, 0.1])
def test_rates_and_scores_move_by_their_errors(dt):
    V = oblique([1.0, 0.6, 0.3, 0.3], [(2, 0.5)])
    problem = problem_of(V, dt)
    off = 8.0 * EPSILON * np.linalg.norm(V, 2) * problem.condition
    for sign in (1.0, -1.0):
        other = vary(problem, sign)
        moved = np.abs(other.coordinates.growth - problem.coordinates.growth)
        assert np.allclose(moved, off, rtol=0.1) and off < 1e-12
        turned = np.abs(other.coordinates.turn - problem.coordinates.turn).max()
        assert np.allclose(turned, off, rtol=0.1)
        own = np.array(other.coordinates.dynamics.weights.K[0])
        assert 0.0 < np.abs(own - problem.coordinates.dynamics.weights.K[0]).max() < 1e-12
        pair = other.rates[other.rates.imag != 0.0]
        assert len(pair) == 2 and pair[0] == np.conj(pair[1])
    up, down = (vary(problem, sign).rates for sign in (1.0, -1.0))
    # to opposite sides, up to a rounding of the logarithm of a layer
    assert np.abs(up + down - 2.0 * problem.rates).max() < 4e-15 < np.abs(up - down).max()


def test_equal_rates_move_alike_and_zero_stays():
    V = oblique([1.0, 1.0, 0.0])
    problem = problem_of(V)
    moved = vary(problem, 1.0).coordinates.growth - problem.coordinates.growth
    order = np.argsort(problem.coordinates.growth)
    assert moved[order[0]] == 0.0 and problem.coordinates.growth[order[0]] == 0.0
    assert moved[order[1]] != 0.0 and abs(moved[order[1]] - moved[order[2]]) < 1e-15


@pytest.mark.parametrize(
    ("V", "is_open"),
    [
        (oblique([1.0, 0.6, 0.3, 0.3], [(2, 0.5)]), True),
        (np.diag([1.0, 0.5, -1.5]), True),
        (np.diag([1.0, 0.5, -0.5]), False),
    ],
    ids=["a complex pair", "a large negative rate", "real rates"],
)
def test_gluing_says_what_it_assumes(V, is_open):
    problem = problem_of(V)
    one = SimpleNamespace(t=3.0, events=(), is_glued=True)
    words = proved(SimpleNamespace(original=one, grade="group"), problem, 2, 6)
    assert ("Merged tokens are assumed to stay merged" in words) == is_open
    one.is_glued = False
    assert "assumed" not in proved(SimpleNamespace(original=one, grade="group"), problem, 2, 6)


def test_a_diagonal_V_does_not_move():
    problem = problem_of(np.diag([1.0, 0.5, -0.2]))
    assert vary(problem, 1.0) is problem


def test_the_state_says_how_the_replicas_were_varied_and_the_check_reads_it():
    V, rng = oblique([1.0, 0.6, -0.4]), np.random.default_rng(3)
    limit = al.limit(al.Weights(V=V), rng.uniform(-2, 2, (6, 3)))
    moved = limit.state.values["rates_moved"]
    assert limit.grade == "exact" and not moved[0].any()
    assert np.abs(moved[1]).min() > 0.0 and np.abs(moved[1] + moved[2]).max() < 1e-15
    assert al.verify(limit).holds

    def with_moved(array):
        values = {**limit.state.values, "rates_moved": array}
        return al.verify(dataclasses.replace(limit, state=State("frozen", values)))

    found = with_moved(1e3 * moved)
    assert found.holds is False and "moved by more than rounding" in found.reason
    found = with_moved(moved + 1e-16)
    assert found.holds is False and "two replicas" in found.reason
    # files of earlier versions do not say it
    values = {name: value for name, value in limit.state.values.items() if name != "rates_moved"}
    assert al.verify(dataclasses.replace(limit, state=State("frozen", values))).holds
