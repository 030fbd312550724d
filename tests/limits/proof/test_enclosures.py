"""al.limit(proof=True): the enclosures hold the truth."""

from __future__ import annotations

import dataclasses
import json

import gmpy2
import mpmath as mp
import numpy as np
import pytest

import attnlab as al
from attnlab.limits.proof.record import Proof
from attnlab.limits.verification.enclosed_numbers import as_fraction
from attnlab.store import load, save
from command_line import attnlab
from places import FROZEN
from proofs import NAMES, proved, start
from stored import difference

FROZEN = json.loads((FROZEN / "limits.json").read_text())["systems"]


@pytest.mark.parametrize("name", NAMES)
def test_a_proof_holds_also_after_a_file(name, tmp_path):
    limit = proved(name)
    assert (
        limit.certified
        and limit.horizon is None
        and limit.state.way == "proof"
        and limit.error < 1e-9
    )
    save(limit, tmp_path / "limit.nc")
    assert difference(limit, load(tmp_path / "limit.nc")) == ""
    found = al.verify(tmp_path / "limit.nc")
    assert found.holds is True and found.way == "proof", found
    assert Proof.of(load(tmp_path / "limit.nc").state).margin == Proof.of(limit.state).margin


@pytest.mark.parametrize("name", NAMES)
def test_a_proved_limit_is_the_certified_one(name):
    limit = proved(name)
    weights, dynamics = limit.dynamics.weights, limit.dynamics
    plain = al.limit(weights, limit.x0, beta=dynamics.beta, mask=dynamics.mask)
    assert plain.grade == "exact"
    assert np.array_equal(plain.labels, limit.labels) and np.array_equal(
        plain.leaders, limit.leaders
    )
    assert plain.basis.shape == limit.basis.shape
    assert np.abs(plain.limits - limit.limits).max() <= 2.0 * (plain.error + limit.error)


def test_two_tokens_end_where_the_closed_form_says():
    """V = I, x = (a, b) in one dimension: the gap w of two tokens of one sign obeys w' = w (1 - P),
    and the first leads.
    """
    limit = al.limit(al.Weights(V=np.eye(1)), [[3.0], [1.0]], proof=True)
    assert limit.grade == "proved" and limit.leaders.tolist() == [0, 0]
    # the mean of nothing is conserved, so integrate x_0 in 50 digits: two equations, by mpmath's
    # own Taylor series
    with mp.workdps(30):

        def velocity(_, x):
            first, second = (
                1 / (1 + mp.exp(-x[0] * (x[0] - x[1]))),
                1 / (1 + mp.exp(-x[1] * (x[0] - x[1]))),
            )
            return [first * x[0] + (1 - first) * x[1], second * x[0] + (1 - second) * x[1]]

        truth = mp.odefun(velocity, 0, [3, 1], tol=mp.mpf(10) ** -20)(4)[0] * mp.exp(-4)
        assert abs(truth - mp.mpf(float(limit.points[0, 0]))) <= limit.error + 1e-18


def test_one_token_grows_by_the_exponential():
    limit = al.limit(al.Weights(V=np.diag([1.0, -1.0])), [[2.0, 3.0]], proof=True)
    if limit.grade == "proved":
        assert abs(limit.points[0, 0] - 2.0) <= limit.error


@pytest.mark.parametrize(
    "name, steps", [("small", 4), pytest.param("diagonal", 12, marks=pytest.mark.slow)]
)
def test_the_flow_lies_inside_every_tube(name, steps):
    """An integration in 40 digits, by another method, against polynomial and radius at the end of
    each step.
    """
    limit = proved(name)
    proof, V = Proof.of(limit.state), limit.dynamics.weights.full_V[0]
    with mp.workdps(40):
        x = [[mp.mpf(float(value)) for value in row] for row in limit.x0]
        rates = [mp.mpf(float(value)) for value in np.diagonal(V)]

        def velocity(x):
            n, d = len(x), len(x[0])
            found = []
            for i in range(n):
                weights = [
                    mp.exp(sum(a * (b - c) for a, b, c in zip(x[i], x[j], x[i], strict=True)))
                    for j in range(n)
                ]
                total = sum(weights)
                found.append(
                    [
                        rates[a] * sum(w * x[j][a] for j, w in enumerate(weights)) / total
                        for a in range(d)
                    ]
                )
            return found

        for k in range(steps):
            x = _extrapolated(velocity, x, mp.mpf(float(proof.h[k])))
            polynomial = [
                [
                    sum(mp.mpf(float(c)) for c in proof.coefficients[k][:, i, a])
                    for a in range(len(rates))
                ]
                for i in range(len(x))
            ]
            for i in range(len(x)):
                off = mp.sqrt(sum((p - y) ** 2 for p, y in zip(polynomial[i], x[i], strict=True)))
                assert off <= mp.mpf(float(proof.radius[k, i])), (k, i, off, proof.radius[k, i])


def _extrapolated(velocity, x, h):
    """One step of length h by Gragg's method, extrapolated over 12 numbers of substeps: its error
    is below 1e-16 here.
    """
    rows = []
    for number in range(1, 15):
        steps = 2 * number * 2
        s = h / steps
        before, now = x, _moved(x, velocity(x), s)
        for _ in range(steps - 1):
            before, now = now, _moved(before, velocity(now), 2 * s)
        end = _moved(before, velocity(now), s)  # Gragg: (before + now + s f(now)) / 2
        rows.append(
            [
                [(a + b) / 2 for a, b in zip(one, other, strict=True)]
                for one, other in zip(now, end, strict=True)
            ]
        )
    table, numbers = rows, [mp.mpf(4 * number) for number in range(1, 15)]
    for level in range(1, len(rows)):
        table = [
            [
                [
                    b + (b - a) / ((numbers[k + level] / numbers[k]) ** 2 - 1)
                    for a, b in zip(one, other, strict=True)
                ]
                for one, other in zip(table[k], table[k + 1], strict=True)
            ]
            for k in range(len(table) - 1)
        ]
    return table[0]


def _moved(x, v, s):
    return [
        [a + s * b for a, b in zip(one, other, strict=True)]
        for one, other in zip(x, v, strict=True)
    ]


def is_diagonal(V) -> bool:
    return bool((np.array(V) == np.diag(np.diagonal(V))).all())


def has_simple_spectrum(V) -> bool:
    values = np.sort_complex(np.linalg.eigvals(V))
    return bool(np.isreal(values).all() and (np.abs(np.diff(values)) > 1e-3).all())


PROVABLE = [system for system in FROZEN if is_diagonal(system["V"])]


DENSE = [
    system for system in FROZEN if not is_diagonal(system["V"]) and has_simple_spectrum(system["V"])
]


def check_frozen(system) -> bool:
    """Whether a frozen truth is proved; if so, it must lie in the enclosure."""
    limit = al.limit(
        al.Weights(Q=system["Q"], K=system["K"], V=system["V"]),
        system["x0"],
        beta=system["beta"],
        mask="causal" if system["mask"] else "full",
        proof=True,
    )
    if limit.grade != "proved":
        assert "not proved: " in limit.reason
        return False
    assert np.array_equal(limit.labels, system["labels"])
    truth = np.array(
        [[gmpy2.mpfr(value, 100) for value in row] for row in system["points"]], dtype=object
    )
    off = np.abs(as_fraction(truth) - as_fraction(limit.limits)).max()
    assert off <= limit.error + 1e-19 * max(
        abs(float(value)) for value in truth.ravel()
    )  # 20 digits are stored
    if not system["mask"] and len(np.unique(system["x0"], axis=0)) == len(system["x0"]):
        assert np.array_equal(limit.leaders, system["leaders"])
    return True


def test_frozen_truths_lie_in_the_enclosures():
    some = PROVABLE[3::60]
    assert sum(check_frozen(system) for system in some) >= len(some) // 2


def test_frozen_truths_of_a_dense_V_lie_in_the_enclosures():
    assert all(check_frozen(system) for system in DENSE[4::8])


@pytest.mark.slow
def test_all_other_frozen_truths_of_a_dense_V_lie_in_the_enclosures():
    found = [check_frozen(system) for number, system in enumerate(DENSE) if number % 8 != 4]
    assert sum(found) >= 0.9 * len(found)


@pytest.mark.slow
def test_more_frozen_truths_of_diagonal_matrices_lie_in_the_enclosures():
    found = [check_frozen(system) for system in PROVABLE[1::8]]
    assert sum(found) >= 0.6 * len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "n, d, seed, scale", [(8, 2, 100, 5.0), (8, 3, 101, 5.0), (5, 3, 1, 1.0), (20, 2, 1, 1.0)]
)
def test_random_starts_are_proved_and_verified(n, d, seed, scale):
    """The last two lose all their digits if errors are bounded by norms alone; they keep nine, so
    machines cannot differ.
    """
    limit = al.limit(al.Weights(V=np.eye(d)), start(n, d, seed, scale), proof=True)
    assert limit.grade == "proved" and limit.error < 1e-7
    assert al.verify(limit).holds


def test_permuted_tokens_have_permuted_limits():
    one, order = proved("identity"), np.array([3, 0, 4, 2, 1])
    other = al.limit(one.dynamics.weights, one.x0[order], proof=True)
    assert other.grade == "proved"
    assert np.array_equal(order[other.leaders], one.leaders[order])
    assert np.abs(other.points - one.points[order]).max() <= one.error + other.error


def test_a_faster_clock_has_the_same_limits():
    """V = 2 I is V = I with the time halved: the limits of z are the same."""
    one = proved("identity")
    other = al.limit(al.Weights(V=2.0 * np.eye(2)), one.x0, proof=True)
    assert other.grade == "proved" and np.array_equal(other.leaders, one.leaders)
    assert np.abs(other.points - one.points).max() <= one.error + other.error


def test_a_turned_start_has_turned_limits():
    """A quarter turn is exact in doubles."""
    one = proved("identity")
    other = al.limit(one.dynamics.weights, one.x0 @ np.array([[0.0, 1.0], [-1.0, 0.0]]), proof=True)
    assert (
        np.abs(other.points - one.points @ np.array([[0.0, 1.0], [-1.0, 0.0]])).max()
        <= one.error + other.error
    )


def test_the_command_proves_and_verifies(workplace):
    spec = al.Spec(
        weights={"family": "identity", "d": 2},
        start={"law": "given", "x": start(4, 2, 1).tolist()},
        solve={"t_end": 1.0},
    )
    spec.save("a.toml")
    words = attnlab("limit", "a.toml", "--proof", "-o", "a.nc", "--json").stdout
    record = json.loads(words)
    assert record["grade"] == "proved" and record["certified"] and record["horizon"] is None
    assert attnlab("verify", "a.nc").stdout.startswith("HOLDS. ")
    save(dataclasses.replace(load("a.nc"), error=1e-30), "b.nc")
    assert attnlab("verify", "b.nc", code=1).stdout.startswith("DOES NOT HOLD. ")
