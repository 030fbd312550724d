"""On the sphere with a simple dominant eigenvalue: tokens on one side end in its eigenvector, and
nothing else is claimed."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.half_space import find_dominant, side_of
from attnlab.limits.problem import Refused
from attnlab.limits.state import State, start_digest
from attnlab.limits.verification.steps import verify_limit
from attnlab.store import load, save

UNIMODULAR = np.array([[1, 0, 0], [2, 1, 0], [-1, 3, 1]]) @ np.array(
    [[1, 1, -2], [0, 1, 1], [0, 0, 1]]
)
"""Its inverse has integers too, so V below is exact, and its eigenvectors are the columns."""


def planted(rates: list[float]) -> np.ndarray:
    """V with these eigenvalues and the columns of UNIMODULAR as eigenvectors."""
    inverse = np.rint(np.linalg.inv(UNIMODULAR))
    assert np.array_equal(inverse @ UNIMODULAR, np.eye(3))
    return UNIMODULAR @ np.diag(rates) @ inverse


def tokens(n: int, seed: int, side: int = 1) -> np.ndarray:
    """Tokens on the sphere of R^3 whose coordinate along the first column has this sign; 0: both
    signs."""
    x = np.random.default_rng(seed).normal(size=(n, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    height = x @ np.rint(np.linalg.inv(UNIMODULAR))[0]
    return x * (side * np.sign(height)[:, None] if side else 1.0)


END = UNIMODULAR[:, 0] / np.linalg.norm(UNIMODULAR[:, 0])


@cache
def answer(side: int = 1, proof: bool = True) -> al.Limit:
    weights = al.Weights(
        V=planted([2.0, -1.5, 0.5]),
        Q=np.eye(3),
        K=[[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -2.0]],
    )
    return al.limit(weights, tokens(8, 0, side), geometry="sphere", beta=2.0, proof=proof)


@pytest.mark.parametrize("side", [1, -1])
def test_tokens_on_one_side_end_in_the_planted_eigenvector(side):
    limit = answer(side)
    assert limit.grade == "proved" and limit.certified and limit.t == 0.0 and limit.count == 1
    assert np.abs(limit.points - side * END).max() <= limit.error < 1e-8
    run = al.simulate(
        limit.dynamics.weights, limit.x0, geometry="sphere", beta=2.0, t_end=60.0, rtol=1e-9
    )
    assert np.abs(run.x[-1] - limit.points).max() < 1e-6


def test_without_a_proof_it_is_certified_and_follows_also_from_a_file(tmp_path):
    for proof in (False, True):
        limit = answer(proof=proof)
        assert limit.grade == ("proved" if proof else "group")
        save(limit, tmp_path / "limit.nc")
        found = al.verify(tmp_path / "limit.nc")
        assert found.holds is True and found.way == "half space", found
        assert load(tmp_path / "limit.nc").grade == limit.grade


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_the_lemma_holds_for_any_weights(mask):
    """Scores that prefer the farthest token, under either mask."""
    weights = al.Weights(V=planted([1.0, 0.6, -0.8]), Q=-4.0 * np.eye(3), K=np.eye(3))
    limit = al.limit(weights, tokens(6, 1), geometry="sphere", mask=mask, times=[80.0])
    assert (
        limit.certified
        and np.abs(limit.z[0] - limit.points).max() < 1e-6
        and al.verify(limit).holds
    )


def test_tokens_that_come_to_one_side_later_are_certified_there_and_not_proved():
    x0 = tokens(8, 2)
    x0[0] = -0.02 * END + 0.9998 * np.cross(END, [0.0, 0.0, 1.0]) / np.linalg.norm(
        np.cross(END, [0.0, 0.0, 1.0])
    )
    x0[0] /= np.linalg.norm(x0[0])
    V = planted([1.0, 0.3, 0.2])
    if side_of(find_dominant(V), x0):
        x0[0] = -x0[0]
    limit = al.limit(al.Weights(V=V), x0, geometry="sphere", beta=0.1, proof=True)
    assert side_of(find_dominant(V), x0) == 0 and limit.grade == "group" and limit.t > 0.0
    assert "not proved: the first tokens do not lie on one side" in limit.reason
    assert np.abs(limit.points - END).max() <= limit.error and al.verify(limit).holds


def test_a_larger_negative_eigenvalue_is_a_counterexample_and_is_refused():
    """Two tokens that attend to each other are on one side, and end opposite to each other, far
    from the eigenvector."""
    weights = al.Weights(V=np.diag([1.0, -1.5]), Q=-6.0 * np.eye(2), K=np.eye(2))
    x0 = np.array([[0.1, 1.0], [0.1, -1.0]]) / np.hypot(0.1, 1.0)
    end = al.simulate(weights, x0, geometry="sphere", t_end=30.0).x[-1]
    assert (x0[:, 0] > 0.0).all() and np.abs(end[:, 0]).max() < 1e-3
    limit = al.limit(weights, x0, geometry="sphere", proof=True)
    assert limit.grade == "undecided" and "largest modulus belongs to -1.5" in limit.reason


@pytest.mark.parametrize(
    "V, words",
    [
        (np.diag([-1.0, 0.5, 0.2]), "belongs to -1"),
        (np.diag([1.0, 1.0, 0.5]), "another has a modulus"),
        ([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]], "complex pair"),
        ([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5]], "On the sphere"),
        (np.diag([1.0, -1.0, 0.5]), "another has a modulus"),
        (np.diag([1.0, 1.0 - 1e-15, 0.5]), "another has a modulus"),
    ],
)
def test_without_a_simple_dominant_eigenvalue_nothing_is_claimed(V, words):
    with pytest.raises(Refused, match=words):
        find_dominant(np.array(V))
    limit = al.limit(al.Weights(V=V), np.abs(tokens(4, 0)), geometry="sphere", proof=True)
    assert limit.grade == "undecided" and words in limit.reason


def test_tokens_on_two_sides_are_undecided():
    x0 = np.array([[1.0, 0.1], [1.0, -0.2], [-1.0, 0.1]])
    limit = al.limit(
        al.Weights(V=np.diag([1.0, 0.2])),
        x0 / np.linalg.norm(x0, axis=1, keepdims=True),
        geometry="sphere",
        beta=8.0,
    )
    assert limit.grade == "undecided" and "both sides" in limit.reason


def test_the_bounds_hold_the_planted_numbers():
    found = find_dominant(planted([2.0, -1.5, 0.5]))
    assert 2.0 - 1e-7 < found.low < 2.0 and 1.5 < found.others < 1.5 + 1e-7
    assert np.abs(found.point - np.sign(found.point @ END) * END).max() <= found.point_off < 1e-8
    on_plane = tokens(3, 0)
    on_plane[1] = UNIMODULAR[:, 1] / np.linalg.norm(UNIMODULAR[:, 1])  # psi^T x = 0: no side
    assert side_of(found, on_plane) == 0


def spoiled(limit: al.Limit, **changes) -> al.Limit:
    """The Limit with arrays of its state changed, and the digest that belongs to it."""
    values = {name: np.array(value) for name, value in limit.state.values.items()} | changes
    values["start_digest"] = np.array(start_digest(limit.dynamics, limit.x0))
    return dataclasses.replace(limit, state=State("half space", values))


def changed(**fields):
    return lambda limit: spoiled(
        dataclasses.replace(limit, **{name: change(limit) for name, change in fields.items()})
    )


SPOILS = {
    "the other side": changed(points=lambda limit: -limit.points),
    "a point": changed(points=lambda limit: limit.points + 2.0 * limit.error),
    "the error": changed(error=lambda limit: 1e-18),
    "the labels": changed(labels=lambda limit: np.arange(len(limit.labels))),
    "a leader": changed(leaders=lambda limit: np.zeros(len(limit.labels), dtype=int)),
    "the grade": changed(grade=lambda limit: "exact"),
    "the first tokens": changed(x0=lambda limit: tokens(8, 0, 0)),
    "V": changed(
        dynamics=lambda limit: limit.dynamics.replace(
            weights=al.Weights(V=planted([2.0, -2.5, 0.5]))
        )
    ),
    "another V": changed(
        dynamics=lambda limit: limit.dynamics.replace(
            weights=al.Weights(V=planted([2.0, -1.5, 0.5]).T)
        )
    ),
    "layers": changed(dynamics=lambda limit: limit.dynamics.replace(geometry="euclidean")),
    "the basis": lambda limit: spoiled(
        limit, basis=np.array(limit.state.values["basis"])[:, ::-1].copy()
    ),
    "the inverse": lambda limit: spoiled(
        limit, inverse=1.1 * np.array(limit.state.values["inverse"])
    ),
    "another eigenvector": lambda limit: spoiled(
        limit,
        basis=np.array(limit.state.values["basis"])[:, [1, 0, 2]].copy(),
        inverse=np.array(limit.state.values["inverse"])[[1, 0, 2]].copy(),
    ),
    "the time": lambda limit: spoiled(dataclasses.replace(limit, t=1.0), t=np.array(1.0)),
}


@pytest.mark.parametrize("name", SPOILS)
def test_a_spoiled_limit_is_refused(name):
    found = verify_limit(SPOILS[name](answer()))
    assert found.holds is False and not found.checks[-1].holds, found


def test_on_the_sphere_V_that_is_nearly_a_multiple_of_the_identity_is_not_one():
    # Found by review: V = diag(1, 1 + 5e-13) was taken as I. Tokens that have come together obey
    # p' = V p - (p V p) p and go on to the second axis, which takes t = 1e14. The certified limit,
    # and its verification, said that they stay where they met.
    x0 = np.array([[1.0, 0.1], [0.9, 0.3], [0.8, 0.5]])
    x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
    together = al.limit(al.Weights(V=np.eye(2)), x0, geometry="sphere")
    V = np.diag([1.0, 1.0 + 5e-13])
    ours = al.limit(al.Weights(V=V), x0, geometry="sphere")
    axis = np.array([0.0, 1.0])
    assert ours.grade == "undecided" or np.abs(ours.points - axis).max() <= ours.error
    assert al.verify(together).holds and np.abs(together.points - axis).max() > 0.5
    dynamics = dataclasses.replace(together.dynamics, weights=al.Weights(V=V))
    values = {**together.state.values, "start_digest": np.array(start_digest(dynamics, x0))}
    changed = dataclasses.replace(together, dynamics=dynamics, state=State("sphere", values))
    found = al.verify(changed)
    assert found.holds is False and "V = c I" in found.reason
