"""The parts of prover and checker: each bound holds, and the two share no code."""

from __future__ import annotations

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
from attnlab.limits.proof.equation import bound_norm, take_equation
from attnlab.limits.proof.expansion import Digits
from attnlab.limits.proof.pairs import all_pairs
from attnlab.limits.proof.spectrum import find_spectrum
from attnlab.limits.verification.enclosed_flow import Checked, Flow, norm_above
from attnlab.limits.verification.enclosed_flow import Step as FlowStep
from attnlab.limits.verification.enclosed_numbers import as_fraction, downwards, upwards, values
from proofs import start


@pytest.mark.parametrize("scale", [1e-170, 1e-100, 1.0, 1e150])
def test_bounds_of_norms_do_not_underflow(scale):
    matrix = scale * np.array([[3.0, 1.0], [0.5, 2.0]])
    norm = np.linalg.norm(matrix / scale, 2) * scale
    assert norm <= bound_norm(matrix) <= 1.2 * norm
    assert norm <= norm_above(matrix) <= 1.2 * norm


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
