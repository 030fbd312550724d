"""al.limit(proof=True): the enclosures hold the truth, a spoiled proof is refused, and what is not
proved says why.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from functools import cache
from pathlib import Path

import gmpy2
import mpmath as mp
import numpy as np
import pytest

import attnlab as al
from attnlab.limits.proof import exponentials
from attnlab.limits.proof.balls import Balls
from attnlab.limits.proof.comparison import propagate
from attnlab.limits.proof.doubles import Doubles
from attnlab.limits.proof.equation import NotProved, bound_norm, take_equation
from attnlab.limits.proof.expansion import Digits
from attnlab.limits.proof.pairs import all_pairs
from attnlab.limits.proof.record import Proof
from attnlab.limits.proof.spectrum import find_spectrum
from attnlab.limits.state import State, start_digest
from attnlab.limits.verification.enclosed_flow import Checked, Flow, norm_above
from attnlab.limits.verification.enclosed_flow import Step as FlowStep
from attnlab.limits.verification.enclosed_numbers import as_fraction, downwards, upwards, values
from attnlab.limits.verification.steps import verify_limit
from attnlab.store import load, save
from command_line import attnlab
from places import FROZEN
from stored import difference

SYMMETRIC = np.array([[1.0, 0.3], [0.3, 0.2]])
SPECTRUM = np.diag([1.2, 0.8, -0.5])
FROZEN = json.loads((FROZEN / "limits.json").read_text())["systems"]


LATE = np.diag([1.0, 0.9, -0.5])


def late_start() -> np.ndarray:
    """With LATE, leaders change at t = 10.7."""
    return start(8, 3, 1)


def start(n: int, d: int, seed: int, scale: float = 5.0) -> np.ndarray:
    return np.random.default_rng([11, n, d, seed]).uniform(-scale, scale, (n, d))


@cache
def proved(name: str) -> al.Limit:
    """A few proved limits, by name."""
    d = 3 if name in ("diagonal", "scores") else 2
    weights, options = al.Weights(V=np.eye(d)), {}
    x0 = start(5, d, 1)
    if name == "diagonal":
        weights, x0 = al.Weights(V=SPECTRUM), start(4, 3, 7)
    if name == "scores":
        Q = np.random.default_rng(2).normal(size=(2, 3))
        weights, options, x0 = (
            al.Weights(V=0.7 * np.eye(3), Q=Q, K=Q),
            {"beta": 0.3},
            start(4, 3, 3),
        )
    if name == "small":
        x0 = start(3, 2, 1)
    if name == "symmetric":
        weights, x0 = al.Weights(V=SYMMETRIC), start(4, 2, 2)
    if name == "equal":
        x0 = x0[[0, 1, 2, 1, 3, 0]]
    if name == "causal":
        options = {"mask": "causal"}
    limit = al.limit(weights, x0, proof=True, **options)
    assert limit.grade == "proved", limit.reason
    return limit


NAMES = (
    "small",
    "causal",
    "symmetric",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("scores", "equal", "identity", "diagonal")
    ),
)


# --------------------------------------------------------------------------------------------------
# what is proved


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


# --------------------------------------------------------------------------------------------------
# relations


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


# --------------------------------------------------------------------------------------------------
# what is not


@pytest.mark.parametrize(
    "options, words",
    [
        ({"V": [[1.0, 1.0], [1.0, 1.0]]}, "told from 0"),
        ({"V": -np.eye(2)}, "no direction grows"),
        ({"V": np.eye(2), "dt": 0.5}, "continuous time"),
        ({"V": np.eye(2), "kernel": "hardmax"}, "softmax attention in R^d"),
        ({"V": np.stack([np.eye(2), np.eye(2)])}, "one head"),
    ],
)
def test_what_is_not_covered_says_so_and_stays_the_limit_that_it_was(options, words):
    x0, more = start(4, 2, 3), {name: value for name, value in options.items() if name != "V"}
    plain = al.limit(al.Weights(V=options["V"]), x0, **more)
    limit = al.limit(al.Weights(V=options["V"]), x0, proof=True, **more)
    assert (
        words in limit.reason
        and limit.reason.startswith(plain.reason)
        and limit.grade == plain.grade != "proved"
    )
    assert np.array_equal(limit.points, plain.points, equal_nan=True) and limit.error == plain.error
    assert limit.certificate.split("\n")[1:] == plain.certificate.split("\n")[1:]


def test_symmetric_data_are_not_proved():
    """A tie for ever, which only the exact symmetry holds: no enclosure of the tokens can show
    it.
    """
    limit = al.limit(al.Weights(V=np.eye(2)), [[1.0, 0.2], [-1.0, 0.2], [0.0, 0.5]], proof=True)
    assert limit.grade != "proved" or al.verify(limit).holds


def test_a_run_that_starts_late_is_not_proved():
    run = al.simulate(al.Weights(V=np.eye(2)), start(4, 2, 3), times=[0.1, 0.2])
    assert "proofs start at t = 0" in al.limit(run, proof=True).reason


@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1.0, 1e150])
def test_bounds_of_norms_do_not_underflow(scale):
    matrix = scale * np.array([[3.0, 1.0], [0.5, 2.0]])
    norm = np.linalg.norm(matrix / scale, 2) * scale
    assert norm <= bound_norm(matrix) <= 1.2 * norm
    assert norm <= norm_above(matrix) <= 1.2 * norm


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_tokens_whose_squares_underflow_are_not_proved(scale):
    dynamics = al.Dynamics.of(al.Weights(V=np.diag([1.0, 0.5]), K=np.eye(2) / scale / scale))
    with pytest.raises(NotProved, match="proofs are for tokens of sizes"):
        take_equation(dynamics, scale * start(3, 2, 1))


def test_proof_is_true_or_false():
    with pytest.raises(TypeError, match="proof must be True or False"):
        al.limit(al.Weights(V=np.eye(2)), start(4, 2, 3), proof="yes")


# --------------------------------------------------------------------------------------------------
# spoils


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


def test_without_flint_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    limit = al.limit(al.Weights(V=LATE), late_start(), proof=True)
    assert limit.grade == "exact" and 'pip install "attnlab[proof]"' in limit.reason


def test_balls_and_doubles_prove_the_same():
    """The polynomial of the same step: in balls the defect is far smaller, and the scores agree."""
    pytest.importorskip("flint")
    x0 = start(3, 2, 1)
    weights = al.Weights(V=np.diag([1.0, 0.5]), Q=[[1.0, 0.3], [0.0, 1.0]], K=np.eye(2))
    equation = take_equation(al.limit(weights, x0).dynamics, x0)
    doubles, balls = Doubles(equation), Balls(equation, 2)
    x = np.stack([x0, np.zeros_like(x0)])
    score = doubles.scores(x[:1])
    assert np.allclose(score, balls.scores(x), atol=1e-12)
    leader = score.argmax(axis=1)
    pairs = all_pairs(equation, leader)
    c, h = balls.expand(x, leader, pairs, 0.01)
    shorter = 2.0 ** -np.ceil(np.log2(h / 0.001))
    c, h = c * (shorter ** np.arange(c.shape[1]))[:, None, None], h * shorter
    near, known = doubles.polynomials(c[:1], pairs), balls.polynomials(c, pairs)
    for name in ("q", "w", "g"):
        one, other = getattr(near, name), getattr(known, name)
        apart = np.abs(one.value - other.value)
        apart = apart if name == "g" else np.sqrt((apart**2).sum(axis=-1))
        assert (apart <= one.error + other.error + 1e-300).all() and (apart > 0.0).any()
        assert (other.norm <= one.norm * (1 + 1e-8) + 2.0 * one.error).all()
    coarse, fine = (
        one.at_nodes(part, h, leader, pairs) for one, part in ((doubles, c[:1]), (balls, c))
    )
    assert (fine < 1e-9 * coarse).all()
    end, off = balls.end_of(c)
    assert (off < 1e-30).all() and np.abs(end[0] - doubles.end_of(c[:1])[0]).max() < 1e-14


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


@pytest.mark.parametrize(
    "V, words",
    [
        ([[1.0, 0.2], [-0.1, 1.0]], "complex eigenvalues"),
        ([[1.0, 1.0], [0.0, 1.0]], "V has no basis|told apart|too close"),
        ([[1.0, 2.0], [0.5, 1.0]], "told from 0"),
    ],
)
def test_a_spectrum_that_cannot_be_enclosed_is_refused(V, words):
    with pytest.raises(NotProved, match=words):
        find_spectrum(np.array(V))


def test_the_spectrum_encloses_fifty_digits():
    for seed in range(5):
        V = np.random.default_rng(seed).normal(size=(4, 4))
        V = V + V.T
        found = find_spectrum(V)
        with mp.workdps(50):
            values, vectors = mp.eigsy(mp.matrix(V.tolist()))
            for a in range(4):
                k = min(range(4), key=lambda k: abs(values[k] - mp.mpf(float(found.rates[a]))))
                off = abs(values[k] - mp.mpf(float(found.rates[a])))
                assert off <= found.rates_off[a] < 1e-12
                left = [mp.mpf(float(value)) for value in found.left[a]]
                scale = left[0] / vectors[0, k]  # left and right vectors are parallel
                length = sum(vectors[b, k] ** 2 for b in range(4))
                assert abs(length - 1) < 1e-40
                column = [mp.mpf(float(value)) for value in found.right[:, a]]
                size = sum(x * vectors[b, k] for b, x in enumerate(column))
                for b in range(4):
                    assert abs(column[b] - size * vectors[b, k]) <= 4 * found.right_off[:, a].max()
                    assert abs(left[b] - scale * vectors[b, k]) <= 1e-12


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


# --------------------------------------------------------------------------------------------------
# the parts


def test_the_exponential_is_within_its_bound():
    x = np.concatenate(
        [
            np.random.default_rng(0).uniform(-680, 680, 20_000),
            np.linspace(-2, 2, 20_001),
            np.arange(-900, 900) * np.log(2.0) / 2,
        ]
    )
    found = exponentials.exponential(x)
    worst = 0.0
    with values():
        for one, value in zip(x, found, strict=True):
            truth = gmpy2.exp(gmpy2.mpfr(float(one)))
            worst = max(worst, abs(float(gmpy2.mpfr(float(value)) / truth - 1)))
        assert 0.0 < worst <= 0.75 * exponentials.ERROR
        high, low = gmpy2.mpfr(exponentials.HIGH), gmpy2.mpfr(exponentials.LOW)
        assert abs(gmpy2.log(gmpy2.mpfr(2)) - high - low) < 2.0**-86
    assert (
        exponentials.upper(np.array([800.0]))[0],
        exponentials.lower(np.array([-800.0]))[0],
    ) == (np.inf, 0.0)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_nodes_are_chebyshev_and_their_lebesgue_constant_is_a_bound(parts):
    digits = Digits(parts)
    nodes, at = digits.nodes, digits.at
    exact = 0.5 + 0.5 * np.cos(np.pi * (2 * np.arange(nodes) + 1) / (2 * nodes))
    assert np.abs(at - exact).max() < 1e-12
    s = np.linspace(0.0, 1.0, 5001)[1:-1]
    s = s[np.abs(s[:, None] - at).min(axis=1) > 1e-9]
    weights = (-1.0) ** np.arange(nodes) * np.sin(np.pi * (2 * np.arange(nodes) + 1) / (2 * nodes))
    terms = weights / (s[:, None] - at)
    constant = (np.abs(terms).sum(axis=1) / np.abs(terms.sum(axis=1))).max()
    assert 0.8 * digits.lebesgue < constant < digits.lebesgue


def test_the_comparison_bounds_a_linear_system():
    """e' = A e + defect with a constant A: the exact solution by the matrix exponential, below the
    bound and close to it.
    """
    from scipy.linalg import expm

    rng = np.random.default_rng(4)
    A, defect, e = (
        rng.uniform(0.0, 0.5, (4, 4)),
        rng.uniform(0.0, 1e-3, 4),
        rng.uniform(0.0, 1e-3, 4),
    )
    exact = expm(A) @ e + np.linalg.solve(A, (expm(A) - np.eye(4)) @ defect)
    matrices, defects = np.repeat(A[None], 16, axis=0), np.repeat(defect[None], 16, axis=0)
    found, largest = propagate(matrices, defects, e, np.zeros((16, 4)))
    assert (found >= exact).all() and (found <= 1.02 * exact).all() and (largest >= exact).all()
    jumped, _ = propagate(matrices, defects, e, np.full((16, 4), 1e-3))
    assert (jumped >= found + 16e-3).all()
    assert propagate(40.0 * matrices, defects, e, np.zeros((16, 4))) is None  # no radius


def test_the_defect_of_a_known_polynomial_is_found():
    """One token and V = 1: p = 1 + s + s^2/2 with h = 1 has p' - p = -s^2/2, whose largest value is
    1/2.
    """
    coefficients = np.array([1.0, 1.0, 0.5]).reshape(3, 1, 1)
    flow = Flow(
        np.eye(1),
        as_fraction(np.eye(1)),
        np.ones((1, 1), dtype=bool),
        np.ones(1, dtype=int),
        np.ones((1, 1)),
    )

    def check(bound):
        step = FlowStep(
            1.0,
            coefficients,
            np.zeros(1, dtype=int),
            1,
            np.full(1, bound),
            np.ones(1),
            np.ones(1),
            np.zeros((0, 3, 1, 1)),
        )
        return Checked(flow, step, np.zeros((1, 1)), np.zeros((5, 1, 1))).check_defect()

    assert 0.5 <= check(10.0) * 10.0 < 4.0 * 0.5  # times the Lebesgue constant
    with pytest.raises(Exception, match="fails the equation"):
        check(0.49)


def test_arithmetic_leaves_nothing_behind():
    """Precision and rounding are those of before, inside and after the blocks, also when they are
    nested or fail.
    """

    def state():
        context = gmpy2.get_context()
        return context.precision, context.round

    before = state()
    with upwards():
        assert gmpy2.mpfr(1) / 3 * 3 >= 1 and gmpy2.get_context().round == gmpy2.RoundUp
        third = gmpy2.mpfr(1) / 3
        with downwards():
            assert gmpy2.mpfr(1) / 3 < third
        assert gmpy2.mpfr(1) / 3 == third and gmpy2.get_context().round == gmpy2.RoundUp
    assert state() == before
    with pytest.raises(ZeroDivisionError), values():
        raise ZeroDivisionError
    assert state() == before


def test_prover_and_checker_share_no_code():
    root = Path(al.__file__).parent / "limits"
    prover = [path.read_text() for path in (root / "proof").glob("*.py")]
    checker = [
        (root / "verification" / f"{name}.py").read_text()
        for name in (
            "proof",
            "enclosed_flow",
            "enclosed_error",
            "enclosed_end",
            "enclosed_numbers",
            "enclosed_spectrum",
        )
    ]
    assert not any("limits.proof" in text for text in checker)
    assert not any(
        "verification" in line for text in prover for line in text.splitlines() if "import" in line
    )


# --------------------------------------------------------------------------------------------------
# the command


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
