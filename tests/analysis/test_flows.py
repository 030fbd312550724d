"""Intervals, decay, Markov classes, random hulls, leaders, transport, spans, growth, linear flows:
against planted answers.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import binom

import attnlab as al
from attnlab.analysis.decay import LAWS, best_law, fit_law, predict_law, prediction_errors
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.hull import convex_hull
from attnlab.analysis.intervals import (
    bootstrap_interval,
    exact_interval,
    student_interval,
    wilson_interval,
)
from attnlab.analysis.markov import closed_classes, period_of_class, unit_eigenvalue_count
from attnlab.analysis.plain_flow import flow_by_scipy, rescaled_by_scipy
from attnlab.analysis.propagators import (
    attention_of_heads,
    carry_names,
    frozen_by_products,
    frozen_by_scipy,
    frozen_flow,
    frozen_value_flow,
    generator,
    plain_propagator,
    plain_value_propagator,
    rightmost_eigenvector,
    second_order,
)
from attnlab.analysis.random_polytopes import (
    draw_points,
    expected_self_leaders,
    expected_vertices,
    renyi_sulanke_square,
)
from attnlab.analysis.rates import observed_order
from attnlab.analysis.self_leaders import self_leaders, settled_leaders
from attnlab.analysis.span import identities, in_reach, in_span
from attnlab.analysis.transport import middle_levels, truncated_bells, uniform_law, wasserstein

TIMES = np.linspace(2.0, 9.0, 30)
CURVES = {
    "exponential": -0.7 * TIMES + 0.3,
    "double exponential": -np.exp(0.9 * TIMES - 3.0),
    "power law": -0.5 * np.log(TIMES),
}
SLOPES = {"exponential": -0.7, "double exponential": 0.9, "power law": -0.5}


def heads_of(count: int, d: int, rng: int = 0, rank: int | None = None) -> al.Weights:
    """Gaussian heads; V as factors of that rank, where one is given."""
    generator_of = np.random.default_rng(rng)
    Q, K, V = generator_of.normal(scale=0.5, size=(3, count, d, d))
    if rank is None:
        return al.Weights(Q=Q, K=K, V=V)
    return al.Weights(Q=Q, K=K, V=(V[:, :, :rank], np.swapaxes(V, 1, 2)[:, :rank]))


def identity_heads(count: int, d: int, rng: int = 0) -> al.Weights:
    one = heads_of(count, d, rng)
    return al.Weights(Q=one.Q, K=one.K, V=identities(count, d))


def tokens(n: int, d: int, rng: int = 0) -> np.ndarray:
    return np.random.default_rng([rng, n, d]).normal(size=(n, d))


# --- intervals
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "total"), [(0, 7), (3, 7), (7, 7), (12, 200)])
def test_the_ends_of_clopper_and_pearson_have_the_tails_that_define_them(count, total):
    low, high = exact_interval(count, total)
    assert (
        low == 0
        if count == 0
        else binom.sf(count - 1, total, low) == pytest.approx(0.025, rel=1e-6)
    )
    assert (
        high == 1
        if count == total
        else binom.cdf(count, total, high) == pytest.approx(0.025, rel=1e-6)
    )


def test_no_answers_have_no_interval():
    assert np.isnan(
        [*exact_interval(0, 0), *wilson_interval(0, 0), *bootstrap_interval(np.array([1.0, 2.0]))]
    ).all()
    for interval in (exact_interval, wilson_interval):
        with pytest.raises(ValueError, match="from 0 to total = 3"):
            interval(4, 3)


def test_bootstrap_intervals_hold_the_mean_as_often_as_they_say():
    draws = np.random.default_rng(4).exponential(size=(400, 20)) - 1
    held = sum(low <= 0 <= high for low, high in map(bootstrap_interval, draws))
    assert (
        0.88 < held / 400 < 0.98
    )  # 0.95 for normal values, with a standard error of 0.011; these are skew
    assert (
        bootstrap_interval(draws[0])
        == bootstrap_interval(np.append(draws[0], np.nan))
        != bootstrap_interval(draws[1])
    )


@pytest.mark.parametrize("m", [3, 4, 5])
def test_a_bootstrap_of_few_values_is_as_wide_as_students_interval(m):
    """Resamples of m values spread like s sqrt((m - 1) / m) / sqrt(m), which the root of m / (m -
    1) takes back: for three values it is 22 %. What is left is the noise of a thousand resamples, 2
    %.
    """
    values = np.random.default_rng(m).normal(size=m)
    (low, high), (below, above) = bootstrap_interval(values), student_interval(values)
    assert (low + high) / 2 == pytest.approx(values.mean()) and (high - low) / (
        above - below
    ) == pytest.approx(1.0, abs=0.08)


# --- laws of decay
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_the_law_that_made_the_points_is_found(law):
    errors = prediction_errors(TIMES, CURVES[law])
    assert best_law(errors) == law and errors[LAWS.index(law)] < 1e-10
    fit = fit_law(law, TIMES[:12], CURVES[law][:12])
    assert fit.slope == pytest.approx(SLOPES[law], rel=1e-10)
    assert predict_law(law, fit, TIMES[12:]) == pytest.approx(CURVES[law][12:], rel=1e-9)


def test_a_curve_that_obeys_none_of_the_laws_is_called_none():
    assert best_law(prediction_errors(TIMES, np.cos(3 * TIMES) - 5)) == "none"


def test_what_is_not_below_one_is_no_double_exponential():
    assert prediction_errors(TIMES, 5.0 - TIMES)[LAWS.index("double exponential")] == math.inf


def test_an_exponent_is_the_same_where_y_underflows():
    """log y from -1,400 to -6,300: no double holds y, so the line goes through the logarithms; a
    shift changes nothing.
    """
    steep = fit_law("exponential", TIMES, 1000 * CURVES["exponential"])
    assert steep.slope == pytest.approx(-700.0, rel=1e-12) and steep.intercept == pytest.approx(
        300.0, abs=1e-8
    )


def test_the_observed_order_has_students_interval():
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    assert observed_order(sizes, 3 * sizes**-2.0) == pytest.approx((2.0, 0.0), abs=1e-9)
    noise = np.exp(np.array([0.1, -0.1, -0.1, 0.1]))
    order, half = observed_order(sizes, noise / sizes)
    assert order == pytest.approx(1.0, abs=1e-12)  # this noise is orthogonal to the line
    spread = math.sqrt(0.04 / 2 / (5 * math.log(2) ** 2))  # sqrt(RSS / (m - 2) / sum (u - mean)^2)
    assert half == pytest.approx(4.302653 * spread, rel=1e-6)
    assert math.isnan(observed_order(sizes[:2], sizes[:2])[1])


# --- Markov classes
# --------------------------------------------------------------------------------------------------


def chain(n: int, *edges: tuple[int, int]) -> np.ndarray:
    """The chain that goes from i to each j of the edges with equal chances."""
    P = np.zeros((n, n))
    for i, j in edges:
        P[i, j] = 1.0
    return P / P.sum(axis=1, keepdims=True)


def test_closed_classes_and_their_periods():
    P = chain(7, (0, 1), (1, 2), (2, 0), (3, 3), (4, 0), (4, 3), (5, 6), (6, 5), (6, 4))
    assert sorted(tuple(one) for one in closed_classes(P)) == [(0, 1, 2), (3,)]
    assert period_of_class(P, np.array([0, 1, 2])) == 3 and period_of_class(P, np.array([3])) == 1
    assert unit_eigenvalue_count(P) == 4 == int(np.sum(np.abs(np.linalg.eigvals(P)) > 1 - 1e-9))


def test_two_cycles_through_one_state_have_the_common_divisor():
    """Cycles of lengths 2 and 4 through 0 have period 2; one of length 3 more makes it 1."""
    even = chain(5, (0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (4, 4))
    assert period_of_class(even, np.arange(4)) == 2
    odd = chain(5, (0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (2, 0), (4, 4))
    assert period_of_class(odd, np.arange(4)) == 1


@pytest.mark.parametrize("rng", range(8))
def test_the_graph_counts_what_the_eigenvalues_count(rng):
    """Sums of three random Boolean maps: the eigenvalues of modulus 1, counted without
    eigenvalues.
    """
    maps = np.eye(9)[np.random.default_rng(rng).integers(0, 9, (3, 9))]
    P = maps.mean(axis=0)
    assert unit_eigenvalue_count(P) == int(np.sum(np.abs(np.linalg.eigvals(P)) > 1 - 1e-7))


# --- random hulls, and leaders
# ---------------------------------------------------------------------------------------------


def test_few_points_and_points_of_the_sphere_are_all_vertices():
    assert expected_vertices("ball", 2, 3) == 3
    assert expected_vertices("sphere", 3, 50) == 50 == expected_self_leaders("sphere", 3, 50)
    assert math.isnan(expected_vertices("cube", 3, 10)) and math.isnan(
        expected_self_leaders("cube", 3, 10)
    )


def test_expected_vertices_of_four_points():
    """Sylvester's problem: four points are a triangle with a chance of 11/36 in a square and 35 /
    (12 pi^2) in a disc.
    """
    assert expected_vertices("cube", 2, 4) == pytest.approx(
        4 - 11 / 36, abs=1e-4
    )  # the integrand has kinks: six digits less
    assert expected_vertices("ball", 2, 4) == pytest.approx(4 - 35 / (12 * math.pi**2), rel=1e-6)


def test_many_points_of_a_square_have_the_vertices_of_renyi_and_sulanke():
    assert expected_vertices("cube", 2, 20_000) == pytest.approx(
        renyi_sulanke_square(20_000), abs=0.01
    )


@pytest.mark.parametrize(
    ("law", "d"), [("cube", 2), ("ball", 2), ("ball", 3), ("normal", 2), ("normal", 3)]
)
def test_expectations_are_the_means_of_many_draws(law, d):
    n, draws = 12, 400
    found = []
    for draw in range(draws):
        x = draw_points(law, n, d, np.random.default_rng([draw, d]))
        found.append((len(convex_hull(x).vertices), len(self_leaders(x))))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(draws)
    expected = np.array([expected_vertices(law, d, n), expected_self_leaders(law, d, n)])
    assert (np.abs(mean - expected) < 4.5 * error).all()


def test_a_token_leads_itself_where_no_other_scores_more():
    x = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    expected = [i for i in range(4) if all(x[i] @ x[j] <= x[i] @ x[i] for j in range(4))]
    assert self_leaders(x).tolist() == expected == [1, 2]
    assert self_leaders(x, among=np.array([0, 2])).tolist() == [2]


def test_leaders_are_settled_only_where_gaps_are_large_and_grow():
    x = 10 * np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]])
    assert settled_leaders(x) is None  # 2 follows 0 by a gap of 10, of which 30 are asked
    leaders = settled_leaders(4 * x)
    assert leaders is not None and leaders.tolist() == [0, 1, 0]


# --- transport
# --------------------------------------------------------------------------------------------------


def test_wasserstein_is_the_best_of_all_matchings():
    one, other = (np.random.default_rng(k).normal(size=5) for k in (1, 2))
    for power in (1.0, 2.0, 3.0):
        best = min(
            np.mean(np.abs(one - other[list(way)]) ** power)
            for way in itertools.permutations(range(5))
        )
        assert wasserstein(one, other, power) == pytest.approx(best ** (1 / power), rel=1e-12)


def test_clouds_of_different_sizes_are_repeated():
    assert wasserstein(np.array([0.0, 1.0]), np.array([0.0, 0.5, 1.0]), 1.0) == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    "law",
    [uniform_law(), truncated_bells("two", (0.3, -0.5, 0.1), (0.7, 0.4, 0.2))],
    ids=lambda law: law.label,
)
def test_quantiles_undo_the_cumulative_function_whose_slope_is_the_density(law):
    levels = middle_levels(7)
    places = law.quantiles(levels)
    assert law.cumulative(places) == pytest.approx(levels, abs=1e-12) and law.start(7).shape == (
        7,
        1,
    )
    slope = (law.cumulative(places + 1e-6) - law.cumulative(places - 1e-6)) / 2e-6
    assert law.density(places) == pytest.approx(slope, rel=1e-6)
    assert law.cumulative(np.array([law.low, law.high])) == pytest.approx([0.0, 1.0], abs=1e-12)


# --- spans and clocks
# --------------------------------------------------------------------------------------------------


def test_the_flow_is_the_same_in_the_span_of_its_tokens():
    weights, x0 = identity_heads(3, 9), tokens(4, 9)
    reduced, y0, basis = in_span(weights, x0)
    assert reduced.d == 4 and basis.T @ basis == pytest.approx(np.eye(4), abs=1e-12)
    assert flow_by_scipy(reduced, y0, 0.5) @ basis.T == pytest.approx(
        flow_by_scipy(weights, x0, 0.5), rel=1e-7, abs=1e-7
    )
    with pytest.raises(ValueError, match="Only with V_h = I"):
        in_span(heads_of(1, 9), x0)


def test_the_flow_is_the_same_in_the_reach_of_tokens_and_heads():
    weights, x0 = heads_of(2, 12, rank=3), tokens(4, 12)
    reduced, y0 = in_reach(weights, x0)
    assert reduced.d == 4 + 2 * 3
    x, y = flow_by_scipy(weights, x0, 0.5), flow_by_scipy(reduced, y0, 0.5)
    assert x @ x.T == pytest.approx(y @ y.T, rel=1e-7, abs=1e-7)


def test_a_tolerance_leaves_out_small_directions():
    weights, x0 = heads_of(1, 6, rank=1), np.zeros((2, 6))
    x0[0, 0], x0[1, 1] = 1.0, 1e-9
    assert in_reach(weights, x0)[0].d == 3 and in_reach(weights, x0, tolerance=1e-6)[0].d == 2


def test_the_growth_rate_is_that_of_the_sum_of_the_heads():
    weights = al.Weights(
        V=np.array([np.diag([1.0, -4.0]), np.diag([0.5, 0.5])]),
        Q=identities(2, 2),
        K=identities(2, 2),
    )
    assert growth_rate(weights) == 3.5 and growth_rate(weights, "real") == 1.5
    assert growth_rate(identity_heads(5, 3)) == pytest.approx(5.0)
    factored = heads_of(2, 9, rank=2)
    for part in ("modulus", "real"):
        assert growth_rate(factored, part) == pytest.approx(
            growth_rate(factored, part, from_factors=False), rel=1e-10
        )
    with pytest.raises(ValueError, match="'modulus' or 'real'"):
        growth_rate(weights, "imaginary")


# --- linear flows
# --------------------------------------------------------------------------------------------------


def test_attention_of_heads_by_two_loops():
    weights, x = heads_of(2, 3), tokens(4, 3)
    for h, i in itertools.product(range(2), range(4)):
        scores = [math.exp((weights.Q[h] @ x[i]) @ (weights.K[h] @ x[j])) for j in range(4)]
        assert attention_of_heads(weights, x)[h, i] == pytest.approx(
            np.array(scores) / sum(scores), rel=1e-12
        )


def test_scipys_flow_at_several_times_is_that_at_each():
    weights, x0 = heads_of(2, 3), tokens(4, 3)
    both = flow_by_scipy(weights, x0, [0.2, 0.4])
    for at, t in enumerate((0.2, 0.4)):
        assert both[at] == pytest.approx(flow_by_scipy(weights, x0, t), rel=1e-8, abs=1e-8)
    slope = sum(
        P @ x0 @ V.T for P, V in zip(attention_of_heads(weights, x0), weights.full_V, strict=True)
    )
    assert (flow_by_scipy(weights, x0, 1e-6) - x0) / 1e-6 == pytest.approx(
        slope, rel=1e-4, abs=1e-4
    )


def test_rescaled_tokens_are_those_of_the_flow():
    weights, x0 = identity_heads(3, 3), tokens(5, 3)
    assert rescaled_by_scipy(weights, x0, 1.2) == pytest.approx(
        math.exp(-1.2) * flow_by_scipy(weights, x0, 0.4), abs=1e-8
    )


def test_propagators_move_the_tokens():
    weights, x0 = identity_heads(2, 3), tokens(5, 3)
    z, U, p = plain_propagator(weights, x0, 1.0, np.full(5, 0.2))
    assert U @ x0 == pytest.approx(z, abs=1e-8) and U.sum(axis=1) == pytest.approx(
        np.ones(5), abs=1e-9
    )
    assert p.sum() == pytest.approx(1.0, abs=1e-9) and z == pytest.approx(
        rescaled_by_scipy(weights, x0, 1.0), abs=1e-8
    )
    own = heads_of(2, 2)
    start = tokens(4, 2)
    G = plain_value_propagator(own, start, 0.5)
    assert G @ start.ravel() == pytest.approx(
        flow_by_scipy(own, start, 0.5).ravel(), rel=1e-6, abs=1e-6
    )


def test_tokens_that_carry_names_move_alike_and_their_names_are_U():
    weights, x0 = identity_heads(2, 3), tokens(5, 3)
    wide, start = carry_names(weights, x0)
    end = rescaled_by_scipy(wide, start, 0.8)
    z, U, _ = plain_propagator(weights, x0, 0.8, np.full(5, 0.2))
    assert end[:, :3] == pytest.approx(z, abs=1e-8) and end[:, 3:] == pytest.approx(U, abs=1e-8)


def test_frozen_flows_are_matrix_exponentials():
    weights, x0 = identity_heads(2, 3), tokens(5, 3)
    A = generator(weights, x0)
    assert frozen_flow(A, x0, [0.0, 2.0])[1] == pytest.approx(expm(2.0 * A) @ x0, abs=1e-10)
    ends = frozen_flow(A, x0, [1e15])[0]
    assert np.ptp(ends, axis=0) == pytest.approx(
        np.zeros(3), abs=1e-9
    )  # P(0) is positive: one limit for all


@pytest.mark.parametrize("rank", [None, 2])
def test_frozen_flows_with_values_are_exponentials_of_kronecker_products(rank):
    weights, x0 = heads_of(2, 4, rank=rank), tokens(5, 4)
    A = sum(
        np.kron(P, V) for P, V in zip(attention_of_heads(weights, x0), weights.full_V, strict=True)
    )
    expected = (expm(0.7 * A) @ x0.ravel()).reshape(x0.shape)
    size = np.abs(expected).max()
    assert frozen_value_flow(weights, x0, np.array([0.0, 0.7]))[1] == pytest.approx(
        expected, abs=1e-9 * size
    )
    assert frozen_by_scipy(weights, x0, 0.7) == pytest.approx(expected, abs=1e-9 * size)
    value, vector = rightmost_eigenvector(weights, x0)
    assert value.real == pytest.approx(np.linalg.eigvals(A).real.max(), rel=1e-8)
    assert A @ vector.ravel() == pytest.approx(value * vector.ravel(), abs=1e-7)


def test_one_head_is_frozen_by_products_of_eigenvalues():
    weights, x0 = heads_of(1, 4), tokens(5, 4)
    expected = frozen_by_scipy(weights, x0, 0.7)
    assert frozen_by_products(weights, x0, 0.7) == pytest.approx(
        expected, abs=1e-8 * np.abs(expected).max()
    )


def test_the_second_order_is_the_slope_of_attention():
    """x(t) - exp(tA) x0 = t^2 second_order + O(t^3), with the flow by SciPy."""
    weights, x0 = heads_of(2, 3), tokens(5, 3)
    double, single = (
        (
            flow_by_scipy(weights, x0, t, rtol=1e-13)
            - frozen_value_flow(weights, x0, np.array([t]))[0]
        )
        / t**2
        for t in (2e-3, 1e-3)
    )
    assert 2 * single - double == pytest.approx(second_order(weights, x0), rel=1e-3, abs=1e-3)
