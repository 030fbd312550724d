"""Directions of tokens, intervals, and the curves of the theory: each against another way to the
same number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnlab as al
from attnlab.analysis.directions import CLUSTERED_COSINE, clustered_pairs, order_parameter
from attnlab.analysis.intervals import student_interval, wilson_interval
from attnlab.sweep import Sweep
from attnlab.sweep.curves import (
    curves,
    curves_over,
    ordered_state,
    orthogonal_deadline,
    orthogonal_time,
    register,
)

SPHERE = {
    "base": {
        "weights": {"family": "identity"},
        "dynamics": {"geometry": "sphere"},
        "start": {"law": "sphere", "n": 8, "d": 3},
        "solve": {"t_end": 1.0},
    },
    "axes": {"dynamics.beta": [0.5, 1.0, 4.0]},
    "seeds": 2,
    "numbers": {"share": {"observable": "clustered_pairs", "at": [0.5, 1.0]}},
}


def test_clustered_pairs_and_order_parameter_equal_double_loops():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 7, 2)) * np.exp(rng.normal(size=(3, 7, 1)))
    x[1] = np.array([1.0, 0.0]) + 0.03 * rng.normal(size=(7, 2))
    for tokens, share, order in zip(x, clustered_pairs(x), order_parameter(x), strict=True):
        near = total = 0
        for i in range(7):
            for j in range(i):
                cosine = (
                    tokens[i]
                    @ tokens[j]
                    / math.sqrt((tokens[i] @ tokens[i]) * (tokens[j] @ tokens[j]))
                )
                near, total = near + (cosine > CLUSTERED_COSINE), total + 1
        assert share == near / total
        assert order == pytest.approx(
            np.linalg.norm(sum(token / np.linalg.norm(token) for token in tokens)) / 7, rel=1e-14
        )
    assert 0 < clustered_pairs(x[1]) < 1  # the case between none and all is there


def test_directions_do_not_depend_on_lengths_and_a_token_at_zero_has_none():
    x = np.random.default_rng(1).normal(size=(5, 3))
    assert order_parameter(x * 1e-300) == pytest.approx(order_parameter(x), rel=1e-14)
    assert order_parameter(x * 1e300) == pytest.approx(order_parameter(x), rel=1e-14)
    x[2] = 0
    assert np.isnan(clustered_pairs(x)) and np.isnan(order_parameter(x))


def test_the_observables_are_those_of_the_tokens_in_every_frame():
    x0 = np.random.default_rng(2).normal(size=(6, 2))
    run = al.simulate(
        al.Weights(V=np.eye(2)),
        x0,
        t_end=3.0,
        saves=4,
        observe=["clustered_pairs", "order_parameter"],
    )
    assert np.array_equal(run.observed["clustered_pairs"], clustered_pairs(run.x))
    assert run.observed["order_parameter"] == pytest.approx(order_parameter(run.x), rel=1e-10)
    with pytest.raises(ValueError, match="two tokens"):
        al.simulate(al.Weights(V=np.eye(2)), x0[:1], t_end=1.0, observe=["clustered_pairs"])


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        (0, 10, 0.0, 0.2775328),
        (10, 10, 0.7224672, 1.0),
        (5, 10, 0.2365931, 0.7634069),
        (81, 263, 0.2553, 0.3662),
    ],
)
def test_wilson_intervals_are_the_published_ones(count, total, low, high):
    """81 of 263: Newcombe 1998, table I. The others by hand: of 0 of 10 the end is z^2 / (10 +
    z^2).
    """
    assert wilson_interval(count, total) == pytest.approx((low, high), abs=6e-5)


@given(st.integers(1, 500), st.data())
def test_wilson_ends_solve_their_equation(total, data):
    count = data.draw(st.integers(0, total))
    z = 1.959963984540054
    for end in wilson_interval(count, total):
        assert (count / total - end) ** 2 == pytest.approx(
            z**2 * end * (1 - end) / total, abs=1e-12
        )
    mirrored = wilson_interval(total - count, total)
    assert wilson_interval(count, total) == pytest.approx(
        (1 - mirrored[1], 1 - mirrored[0]), abs=1e-12
    )


def test_student_intervals():
    reach = 4.302653 / math.sqrt(3)  # the quantile of two degrees of freedom, from a table
    assert student_interval(np.array([1.0, 2.0, 3.0])) == pytest.approx(
        (2 - reach, 2 + reach), 1e-6
    )
    assert np.isnan(student_interval(np.array([1.0, np.nan]))).all()
    assert student_interval(np.array([1.0, np.nan, 3.0])) == student_interval(np.array([1.0, 3.0]))


def test_student_intervals_hold_the_mean_as_often_as_they_say():
    draws = np.random.default_rng(5).normal(size=(4000, 5))
    held = sum(low <= 0 <= high for low, high in map(student_interval, draws))
    assert 0.93 < held / 4000 < 0.97  # 0.95 with a standard error of 0.0034


@pytest.mark.parametrize("kernel", ["softmax", "exp_mean"])
@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_an_orthogonal_start_meets_at_the_time_of_the_curve(kernel, beta):
    """The curve is a quadrature of an equation for one number; the run moves five tokens in five
    dimensions.
    """
    n = 5
    t = orthogonal_time(beta, n, 0.7, is_mean=kernel == "exp_mean")
    run = al.simulate(
        al.Weights(V=np.eye(n)),
        np.eye(n),
        geometry="sphere",
        kernel=kernel,
        beta=beta,
        times=[0.0, t],
        rtol=1e-12,
    )
    cosines = run.x[-1] @ run.x[-1].T
    assert cosines[~np.eye(n, dtype=bool)] == pytest.approx(0.7, abs=1e-9)


def test_two_tokens_without_scores_have_a_closed_form():
    assert orthogonal_time(0.0, 2, math.tanh(1.7)) == pytest.approx(1.7, rel=1e-10)


@pytest.mark.parametrize("kappa", [2.5, 4.0])
def test_noisy_kuramoto_tokens_have_the_order_of_their_bessel_functions(kappa):
    """beta to 0: r = I_1(kappa r) / I_0(kappa r), by bisection, and none below kappa = 2."""
    from scipy.optimize import brentq
    from scipy.special import iv

    order = brentq(lambda r: iv(1, kappa * r) / iv(0, kappa * r) - r, 1e-2, 1.0)
    assert ordered_state(1e-7, kappa, True) == pytest.approx(order, abs=1e-5)
    assert ordered_state(1e-7, kappa, False) == pytest.approx(order, abs=1e-5)
    assert ordered_state(1e-7, 1.9, True) == 0.0


@pytest.mark.parametrize(("beta", "is_mean"), [(1.0, True), (1.0, False), (3.0, False)])
def test_order_begins_where_the_uniform_law_loses_its_stability(beta, is_mean):
    """kappa = beta / I_1(beta), times I_0(beta) with softmax: the transition is continuous
    there.
    """
    from scipy.special import iv

    threshold = beta / iv(1, beta) * (1.0 if is_mean else iv(0, beta))
    assert ordered_state(beta, 0.98 * threshold, is_mean) == 0.0
    assert 0.05 < ordered_state(beta, 1.02 * threshold, is_mean) < 0.5


def test_a_curve_is_found_for_its_axes_and_its_equation_only():
    sweep = Sweep.from_dict(SPHERE)
    ((curve, x, y),) = curves_over(sweep, ("dynamics.beta", "t"), "share", np.array([0.5, 4.0]))
    assert curve.name == "orthogonal_start" and x[0] == 0.5 and x[-1] == 4.0
    assert y[-1] == pytest.approx(orthogonal_time(4.0, 8, CLUSTERED_COSINE), rel=1e-12)
    assert curves_over(sweep, ("t", "dynamics.beta"), "share", x) == []
    for change in (
        {"dynamics": {"geometry": "sphere", "mask": "causal"}},
        {"weights": {"family": "identity", "scale": 2.0}},
        {"dynamics": {"geometry": "euclidean"}},
        {"solve": {"layers": 3}},
    ):
        other = Sweep.from_dict({**SPHERE, "base": {**SPHERE["base"], **change}})
        assert curves_over(other, ("dynamics.beta", "t"), "share", x) == []


def test_a_curve_that_needs_n_is_not_drawn_where_n_changes():
    several = Sweep.from_dict({**SPHERE, "axes": {**SPHERE["axes"], "start.n": [4, 8]}})
    assert curves_over(several, ("dynamics.beta", "t"), "share", np.array([0.5, 4.0])) == []
    one = Sweep.from_dict({**SPHERE, "axes": {**SPHERE["axes"], "start.n": [4]}})
    ((_, x, y),) = curves_over(one, ("dynamics.beta", "t"), "share", np.array([0.5, 4.0]))
    assert y[-1] == pytest.approx(orthogonal_time(4.0, 4, CLUSTERED_COSINE), rel=1e-12)


def test_the_deadline_of_an_orthogonal_start():
    base = {
        "weights": {"family": "identity"},
        "dynamics": {"geometry": "sphere"},
        "start": {"n": 16},
        "solve": {"t_end": 9.0},
    }
    beta = orthogonal_deadline(base, np.array([4.0, 8.0]))
    assert beta is not None and beta[0] == beta[1]
    assert orthogonal_time(beta[0], 16, 1 - 1e-4) == pytest.approx(9.0, rel=1e-9)
    assert orthogonal_deadline({**base, "solve": {"t_end": 0.1}}, np.array([4.0])) is None


def test_a_curve_must_say_what_it_is():
    with pytest.raises(ValueError, match="citation"):
        register("nameless", axes=("t",), number="diameter", words="what")
    assert all(curves[name].citation for name in curves)
