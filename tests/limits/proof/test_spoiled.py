"""A spoiled proof is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.proof.record import Proof
from attnlab.limits.state import State, start_digest
from attnlab.limits.verification.steps import verify_limit
from proofs import LATE, late_start, proved, start


def spoiled(limit: al.Limit, **changes) -> al.Limit:
    """The Limit with arrays of its proof changed, and the digest of its start computed again."""
    values = {name: np.array(value) for name, value in limit.state.values.items()}
    for name, change in changes.items():
        values[name] = np.asarray(change(values[name]))
    values["start_digest"] = np.array(start_digest(limit.dynamics, limit.x0))
    return dataclasses.replace(limit, state=State("proof", values))


def put(place, change):
    def changed(array):
        array[place] = change(array[place])
        return array

    return changed


def without(k):
    return lambda array: np.delete(array, k, axis=0)


def exchange(array):
    array[[2, 3]] = array[[3, 2]]
    return array


BY_STEP = ("h", "coefficients", "leader", "pieces", "defect", "tube", "radius")


def without_step(k):
    """Changes that leave a step out of every array."""
    return {name: without(k) for name in BY_STEP} | {
        "coefficients_rest": lambda array: np.delete(array, k, axis=1)
    }


SPOILS = {
    "a coefficient, constant": {"coefficients": put((3, 0, 1, 0), lambda c: c + 1e-9)},
    "a coefficient, linear": {"coefficients": put((3, 1, 1, 0), lambda c: c * (1 + 1e-9))},
    "a coefficient, high": {"coefficients": put((3, 20, 1, 0), lambda c: c + 1e-9)},
    "a coefficient, not finite": {"coefficients": put((3, 20, 1, 0), lambda c: np.nan)},
    "the start": {"coefficients": put((0, 0, 1, 0), lambda c: c * (1 + 1e-12))},
    "a time step": {"h": put(4, lambda h: h * (1 + 1e-9))},
    "a time step, negative": {"h": put(4, lambda h: -h)},
    "a defect, smaller": {"defect": put((4, 2), lambda r: r * 0.01)},
    "a defect, larger": {"defect": put((4, 2), lambda r: r * 100.0)},
    "a tube, smaller": {"tube": put((4, 2), lambda r: r * 0.01)},
    "a radius, smaller": {"radius": put((4, 2), lambda r: r * 0.5)},
    "a radius, negative": {"radius": put((4, 2), lambda r: -r)},
    "no pieces": {"pieces": put(4, lambda count: 0)},
    "a leader of a step, no token": {"leader": put((4, 2), lambda one: 77)},
    "the end": {"end": put((1, 0), lambda x: x * (1 + 1e-9))},
    "the radius at the end": {"end_radius": put(1, lambda r: r * 0.3)},
    "a leader": {"leaders": lambda leaders: np.roll(leaders, 1)},
    "everybody leads": {"leaders": lambda leaders: np.arange(len(leaders))},
    "the margin, larger": {"margin": lambda margin: margin * 100.0},
    "the margin, smaller": {"margin": lambda margin: margin * 0.5},
    "mu": {"mu": lambda mu: mu * 3.0},
    "the leak": {"leak": lambda leak: leak * 0.01},
    "the number of a token": {"number": lambda number: np.roll(number, 1)},
    "a missing step": without_step(3),
    "the last step missing": without_step(-1),
    "two steps exchanged": {name: exchange for name in BY_STEP},
    "too few lengths": {"h": without(3)},
    "whole numbers for real ones": {"h": lambda h: np.ones(len(h), dtype=int)},
}


@pytest.mark.parametrize("name", SPOILS)
def test_a_spoiled_proof_is_refused(name):
    found = verify_limit(spoiled(proved("small"), **SPOILS[name]))
    assert found.holds is False and not found.checks[-1].holds, found


OF_BALLS = {
    "a coefficient": {"coefficients": put((20, 1, 1, 0), lambda c: c * (1 + 1e-15))},
    "the rest of a coefficient": {
        "coefficients_rest": put((0, 20, 1, 1, 0), lambda c: c * (1 + 1e-9))
    },
    "the rest left out": {"coefficients_rest": lambda rest: 0.0 * rest},
    "the rest of the start": {"coefficients_rest": put((0, 0, 0, 1, 0), lambda c: 1e-25)},
    "the rest of the end": {"end_rest": put((0, 1, 0), lambda x: x * (1 + 1e-6))},
    "no rest": {
        "coefficients_rest": lambda rest: rest[:0],
        "end_rest": lambda rest: rest[:0],
    },
    "a rest of another shape": {"coefficients_rest": lambda rest: rest[:, :-1]},
    "a time step": {"h": put(20, lambda h: h * (1 + 1e-15))},
    "a defect, smaller": {"defect": put((20, 2), lambda r: r * 0.01)},
    "a tube, smaller": {"tube": put((20, 2), lambda r: r * 0.01)},
    "a radius, smaller": {"radius": put((20, 2), lambda r: r * 0.5)},
    "the radius at the end": {"end_radius": put(1, lambda r: r * 0.3)},
    "a leader": {"leaders": lambda leaders: np.roll(leaders, 1)},
    "a missing step": without_step(20),
}


@pytest.mark.slow
def test_a_late_change_of_leader_is_proved_with_balls_and_spoiled_proofs_are_refused():
    """Where doubles do not suffice: the change of leader at t = 10.7, of tokens 2e5 large."""
    pytest.importorskip("flint")
    limit = al.limit(al.Weights(V=LATE), late_start(), proof=True, budget=1000.0)
    assert limit.grade == "proved" and limit.digits == 32, limit.reason
    assert limit.stats["proof_digits"] == 32 and len(Proof.of(limit.state).end_rest) == 1
    assert limit.t > 10.6 and al.verify(limit).holds
    plain = al.limit(al.Weights(V=LATE), late_start())
    assert len(plain.events) > 0 and np.array_equal(plain.labels, limit.labels)
    for name, changes in OF_BALLS.items():
        found = verify_limit(spoiled(limit, **changes))
        assert found.holds is False and not found.checks[-1].holds, name


@pytest.mark.slow
def test_a_proof_with_48_digits_is_verified():
    """Tokens are 2e14 large, so scores change by 10 on a piece, and a weight by e^100 on the largest
    disc around it. The rounding of J must be charged by a smaller disc.
    """
    pytest.importorskip("flint")
    limit = al.limit(al.Weights(V=LATE), start(8, 3, 0), proof=True, budget=1000.0)
    assert limit.grade == "proved" and limit.digits == 48, limit.reason
    found = al.verify(limit)
    assert found.holds, found


OF_VECTORS = {
    "an eigenvalue": {"rates": put(0, lambda rate: rate * (1 + 1e-12))},
    "the bound of an eigenvalue": {"rates_off": put(0, lambda off: off * 0.01)},
    "an eigenvector": {"vectors": put((0, 0), lambda value: value * (1 + 1e-9))},
    "eigenvectors exchanged": {"vectors": lambda vectors: vectors[:, ::-1]},
    "a defect": {"defect": put((4, 2), lambda r: r * 0.01)},
    "a coefficient": {"coefficients": put((3, 1, 1, 0), lambda c: c * (1 + 1e-9))},
    "a leader": {"leaders": lambda leaders: np.roll(leaders, 1)},
    "the radius at the end": {"end_radius": put(1, lambda r: r * 0.3)},
    "a missing step": without_step(3),
}


@pytest.mark.parametrize("name", OF_VECTORS)
def test_a_spoiled_proof_with_eigenvectors_is_refused(name):
    found = verify_limit(spoiled(proved("symmetric"), **OF_VECTORS[name]))
    assert found.holds is False and not found.checks[-1].holds, found


CLAIMS = {
    "points": lambda limit: {"points": limit.points + 10.0 * limit.error},
    "error": lambda limit: {"error": limit.error * 0.1},
    "error, infinite": lambda limit: {"error": np.inf},
    "labels": lambda limit: {"labels": np.zeros(len(limit.labels), dtype=int)},
    "leaders": lambda limit: {"leaders": np.arange(len(limit.leaders))},
    "t": lambda limit: {"t": limit.t * 1.01},
    "grade": lambda limit: {"grade": "exact"},
    "horizon": lambda limit: {"horizon": 100.0},
    "x0": lambda limit: {"x0": limit.x0 + 1e-12},
    "weights": lambda limit: {
        "dynamics": limit.dynamics.replace(weights=al.Weights(V=(1 + 1e-12) * np.eye(2)))
    },
    "scores": lambda limit: {"dynamics": limit.dynamics.replace(beta=1 + 1e-12)},
    "mask": lambda limit: {"dynamics": limit.dynamics.replace(mask="causal")},
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_limit_that_claims_something_else_is_refused(name):
    """With the digest that belongs to what is claimed: the proof itself must fail."""
    limit = proved("small")
    found = verify_limit(spoiled(dataclasses.replace(limit, **CLAIMS[name](limit))))
    assert found.holds is False or (name == "horizon" and found.holds is None), found


def test_without_an_array_the_proof_is_refused():
    limit = proved("small")
    for name in limit.state.values:
        values = {other: value for other, value in limit.state.values.items() if other != name}
        assert verify_limit(dataclasses.replace(limit, state=State("proof", values))).holds is False
