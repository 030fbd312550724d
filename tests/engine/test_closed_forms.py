"""Whole runs against what is known without a computer: closed forms, scalar equations, identities,
symmetries of the flow.

A tolerance is 20 rtol, what the integrator promises, times what the flow itself makes of an error
(its sensitivity, from the scalar equation or from the 80-bit integrator of helpers.py).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
from scipy.integrate import quad
from scipy.optimize import brentq

import attnlab as al
from helpers import extrapolate, long_velocity

RTOL = 1e-10
PROMISE = 20 * RTOL
EPSILON = 2.0**-52


def simulate(weights, x0, times, **options):
    """The run at `times`, at the tolerance of these tests."""
    return al.simulate(weights, x0, times=times, **{"rtol": RTOL, **options})


def identity(d, c=1.0):
    return al.Weights(V=c * np.eye(d))


def sphere(rng, n, d):
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def sensitivity(weights, x0, t, **options):
    """By how much the flow enlarges a relative error of the start until t: the largest of a few
    directions, at least 1.
    """
    flow = long_velocity(weights.Q, weights.K, weights.full_V, **options)
    end = extrapolate(flow, x0, [t], 1e-13)[0]
    worst = 1.0
    for seed in range(3):
        push = np.random.default_rng(seed).standard_normal(x0.shape)
        push *= 1e-6 * np.abs(x0).max() / np.abs(push).max()
        moved = extrapolate(flow, x0 + push, [t], 1e-13)[0]
        worst = max(worst, float(np.abs(moved - end).max() / np.abs(end).max() / 1e-6))
    return worst


def assert_close(ours, truth, relative):
    """Equal up to `relative` of the largest entry, at each time."""
    ours, truth = np.asarray(ours, float), np.asarray(truth, float)
    assert ours.shape == truth.shape
    size = np.abs(truth).max(axis=(-2, -1), keepdims=True)
    assert (np.abs(ours - truth) <= relative * size).all(), (np.abs(ours - truth) / size).max()


def scalar_solution(velocity, start, times):
    """u(t) of u' = velocity(u), in 80-bit arithmetic."""
    return np.asarray(
        extrapolate(lambda u: velocity(u), np.array([[start]]), times)[:, 0, 0], float
    )


# ---------------------------------------------------------------------------------------------- the
# sphere


@pytest.mark.parametrize(
    "beta, start", [(-1.0, 2.4), (0.0, 2.4), (0.5, 3.0), (4.0, 2.0), (20.0, 0.8)]
)
def test_two_tokens_on_the_circle(beta, start):
    """theta' = -2 sin(theta) e^{beta cos theta} / (e^beta + e^{beta cos theta}), by quadrature of
    dt/dtheta and a root search.
    """
    times = np.array([0.0, 0.2, 0.7, 1.5, 3.0])
    x0 = np.array([[math.cos(a), math.sin(a)] for a in (0.3, 0.3 + start)])
    run = simulate(identity(2), x0, times, beta=beta, geometry="sphere")
    turn = run.x[:, 0, 0] * run.x[:, 1, 1] - run.x[:, 0, 1] * run.x[:, 1, 0]
    theta = np.arctan2(turn, (run.x[:, 0] * run.x[:, 1]).sum(axis=1))

    def slowness(u):
        return (math.exp(beta * (1 - math.cos(u))) + 1) / (2 * math.sin(u))

    def needed(angle):
        return quad(slowness, angle, start, epsabs=1e-12, epsrel=1e-12)[0]

    for t, ours in zip(times, theta, strict=True):
        truth = (
            start
            if t == 0
            else brentq(lambda angle, t=t: needed(angle) - t, 1e-3, start, xtol=1e-14, rtol=1e-14)
        )
        # an error of the angle is enlarged by theta'(t) / theta'(s): the speed starts small near
        # the antipode
        enlarged = max(
            1.0, max(slowness(start) / slowness(a) for a in np.linspace(truth, start, 50))
        )
        assert abs(ours - truth) <= PROMISE * enlarged
    middle = run.x.sum(axis=1)
    bisector = np.array([math.cos(0.3 + start / 2), math.sin(0.3 + start / 2)])
    np.testing.assert_allclose(middle @ [-bisector[1], bisector[0]], 0.0, atol=PROMISE)
    np.testing.assert_allclose(np.linalg.norm(run.x, axis=-1), 1.0, rtol=4 * EPSILON)


@pytest.mark.parametrize("kernel", ["softmax", "exp_mean"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0])
def test_orthogonal_starts_share_one_angle(kernel, beta):
    n, d, times = 4, 6, np.array([0.0, 0.1, 0.5, 1.5, 4.0])
    x0 = scipy.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0][:n]

    def velocity(g):
        total = (
            np.exp(beta * g) * (n - 1) + np.exp(beta * (1 + 0 * g)) if kernel == "softmax" else n
        )
        return 2 * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1) / total

    gamma = scalar_solution(velocity, 0.0, times)
    if kernel == "exp_mean":
        times, gamma = times[:4], gamma[:4]  # e^beta faster
    run = simulate(identity(d), x0, times, beta=beta, kernel=kernel, geometry="sphere")
    inner = np.einsum("tia,tja->tij", run.x, run.x)[:, ~np.eye(n, dtype=bool)]
    slowest, fastest = (
        float(velocity(np.float64(0.0))),
        max(float(velocity(g)) for g in np.linspace(0, 1, 100)),
    )
    np.testing.assert_allclose(
        inner,
        np.repeat(gamma[:, None], n * (n - 1), axis=1),
        rtol=0,
        atol=PROMISE * fastest / slowest,
    )


def test_two_orthogonal_tokens_without_temperature():
    times = np.linspace(0.0, 3.0, 7)
    run = simulate(identity(3), np.eye(3)[:2], times, beta=0.0, geometry="sphere")
    np.testing.assert_allclose(
        (run.x[:, 0] * run.x[:, 1]).sum(axis=-1), np.tanh(times), rtol=0, atol=PROMISE
    )


def test_antipodal_tokens_stand_still():
    x0 = np.array([[1.0, 0.0], [-1.0, 0.0]])
    run = simulate(identity(2), x0, [0.0, 1.0, 5.0], beta=2.0, geometry="sphere")
    np.testing.assert_array_equal(run.x, np.repeat(x0[None], 3, axis=0))


def derivative_of(values, spacing):
    """(f', its error) at the middle of nine equally spaced values: two five-point rules, h and
    2h.
    """
    fine = (8 * (values[5] - values[3]) - (values[6] - values[2])) / (12 * spacing)
    coarse = (8 * (values[6] - values[2]) - (values[8] - values[0])) / (24 * spacing)
    return fine, abs(fine - coarse) / 4


@pytest.mark.parametrize("kernel", ["softmax", "exp_mean"])
@pytest.mark.parametrize("beta", [0.5, 3.0])
def test_energy_grows_by_what_the_velocities_say(kernel, beta):
    """E = sum e^{beta <x_i, x_j>} / (2 beta n^2):  E' = (1/n) sum z_i |x_i'|^2 (softmax), (1/n) sum |x_i'|^2
    (exp_mean).
    """
    n, d, middle, h = 7, 3, 0.4, 0.01
    times = middle + h * np.arange(-4, 5)
    x0 = sphere(np.random.default_rng(1), n, d)
    run = simulate(identity(d), x0, times, beta=beta, kernel=kernel, geometry="sphere", rtol=1e-12)
    weights = np.exp(beta * np.einsum("tia,tja->tij", run.x, run.x))
    energy = weights.sum(axis=(1, 2)) / (2 * beta * n**2)
    slope, error = derivative_of(energy, h)
    P = weights[4] / (weights[4].sum(axis=1, keepdims=True) if kernel == "softmax" else n)
    x, mean = run.x[4], P @ run.x[4]
    velocity = mean - (mean * x).sum(axis=1, keepdims=True) * x
    share = weights[4].sum(axis=1) / n if kernel == "softmax" else np.ones(n)
    truth = (share * (velocity**2).sum(axis=1)).sum() / n
    assert abs(slope - truth) <= error + 20 * 1e-12 * energy.max() / h
    assert truth > 1e-3
    long = simulate(
        identity(d), run.x[0], np.linspace(0, 10, 41), beta=beta, kernel=kernel, geometry="sphere"
    )
    energy = np.exp(beta * np.einsum("tia,tja->tij", long.x, long.x)).sum(axis=(1, 2))
    assert (np.diff(energy) >= -PROMISE * energy.max()).all() and energy[-1] > energy[0]


# ----------------------------------------------------------------------------------------------
# scalar equations in R^d


@pytest.mark.parametrize("frame", ["auto", "z"])
def test_the_symmetric_triple(frame):
    """(-u, 0, u): u' = u (e^{u^2} - e^{-u^2}) / (e^{u^2} + 1 + e^{-u^2}); the middle row of P stays
    uniform.
    """
    start, times = 0.6, np.linspace(0.0, 3.0, 13)

    def velocity(u):
        return u * (1 - np.exp(-2 * u * u)) / (1 + np.exp(-u * u) + np.exp(-2 * u * u))

    u = scalar_solution(velocity, start, times)
    run = simulate(identity(1), np.array([[-start], [0.0], [start]]), times, frame=frame)
    enlarged = (velocity(u) / u).max() / (velocity(u) / u).min()
    np.testing.assert_allclose(run.x[:, 2, 0], u, rtol=PROMISE * enlarged)
    np.testing.assert_allclose(run.x[:, 0, 0], -u, rtol=PROMISE * enlarged)
    for i in range(len(times)):
        # the middle token is pushed away like e^{u^2 / 3}; what pushes it is rounding, a hundred
        # times
        noise = 100 * EPSILON * u[i] ** 2 * math.exp(min(u[i] ** 2 / 3, 600.0))
        if noise < 1e-3:
            P = al.attention(run, at=i)[0]
            np.testing.assert_allclose(P[1], 1 / 3, rtol=0, atol=noise + 4 * EPSILON)
            top = np.exp(-(u[i] ** 2) * np.arange(3.0))
            bound = noise + 4 * PROMISE * enlarged * (1 + u[i] ** 2)
            np.testing.assert_allclose(P[2], (top / top.sum())[::-1], rtol=0, atol=bound)
    assert u[-1] > 3.0


@pytest.mark.parametrize("frame", ["auto", "z"])
@pytest.mark.parametrize("size, t_end", [(0.5, 9.0), (0.3, 14.0)])
def test_two_tokens_one_above_the_other(size, t_end, frame):
    """x = (e^t, +-b), b' = b tanh(b^2): two clusters z -> (1, +-c) with ln c = -1 / (2 size^2) +
    0.29..0.33.
    """
    times = np.linspace(0.0, t_end, 41)

    def velocity(b):
        return b * np.tanh(b * b)

    b = scalar_solution(velocity, size, times)
    run = simulate(identity(2), np.array([[1.0, size], [1.0, -size]]), times, frame=frame)
    c = b * np.exp(-times)
    drift = velocity(b) * np.exp(
        -times
    )  # an error of z made at s becomes drift(t) / drift(s) times as large
    enlarged = max((drift[i:] / drift[i]).max() for i in range(len(times)))
    np.testing.assert_allclose(run.z[:, :, 0], 1.0, rtol=0, atol=PROMISE)
    np.testing.assert_allclose(run.z[:, 0, 1], c, rtol=0, atol=PROMISE * enlarged)
    np.testing.assert_allclose(run.z[:, 1, 1], -c, rtol=0, atol=PROMISE * enlarged)
    assert 0.29 <= math.log(run.z[-1, 0, 1]) + 1 / (2 * size**2) <= 0.33
    np.testing.assert_allclose(al.attention(run)[0], np.eye(2), atol=1e-6)


def test_one_dimension_keeps_order_and_gaps():
    x0 = np.sort(np.random.default_rng(2).uniform(-1, 1, 9))[:, None]
    run = simulate(identity(1), x0, np.linspace(0, 6, 31))
    gaps = np.diff(run.x[:, :, 0], axis=1)
    assert (
        np.diff(gaps, axis=0) >= -PROMISE * np.abs(run.x[1:, :, 0]).max(axis=1, keepdims=True)
    ).all()
    assert (gaps >= gaps[0] * (1 - 1e-6)).all()


# ---------------------------------------------------------------------------------------------- V =
# -I


def test_everything_falls_to_the_origin():
    """V = -I: L = sum e^{<x_i, x_j>} falls, L' = -2 sum_i Z_i |x_i'|^2, and the mean square is d /
    (2t) in the end.
    """
    n, d = 12, 3
    x0 = np.random.default_rng(3).standard_normal((n, d))
    h, middle = 0.01, 0.5
    run = simulate(identity(d, -1.0), x0, middle + h * np.arange(-4, 5), rtol=1e-12)
    weights = np.exp(np.einsum("tia,tja->tij", run.x, run.x))
    slope, error = derivative_of(weights.sum(axis=(1, 2)), h)
    Z = weights[4].sum(axis=1)
    velocity = -(weights[4] / Z[:, None]) @ run.x[4]
    truth = -2 * (Z * (velocity**2).sum(axis=1)).sum()
    # an error e of the tokens is an error 2 e sum_ij |x| e^{<x_i, x_j>} of L
    assert (
        abs(slope - truth)
        <= error
        + 20 * 1e-12 * 2 * np.abs(run.x).max() ** 2 * d * weights.sum(axis=(1, 2)).max() / h
    )
    assert truth < -0.1
    run = simulate(
        identity(d, -1.0), x0, [*np.linspace(0, 20, 41), 100.0, 1000.0, 4000.0], rtol=1e-9
    )
    L = np.exp(np.einsum("tia,tja->tij", run.x, run.x)).sum(axis=(1, 2))
    assert (np.diff(L) <= 20 * 1e-9 * L[0]).all()
    mean_square = (run.x**2).sum(axis=(1, 2)) / n
    # c' = -2 c^2 for each eigenvalue of the covariance: 2 t c = 1 - 1 / (1 + 2 c(0) t), to leading
    # order
    np.testing.assert_allclose(2 * run.times[-3:] * mean_square[-3:] / d, 1.0, atol=0.05)
    np.testing.assert_allclose(2 * run.times[-1] * mean_square[-1] / d, 1.0, atol=0.005)
    np.testing.assert_allclose(al.attention(run)[0], 1 / n, rtol=20 * mean_square[-1])


# ----------------------------------------------------------------------------------------------
# monotone things


@pytest.mark.parametrize("kernel", ["softmax", "hardmax"])
def test_hulls_are_nested_for_any_scores(kernel):
    rng = np.random.default_rng(4)
    for d, n in ((2, 12), (3, 15), (6, 8)):
        weights = al.Weights(
            Q=rng.standard_normal((2, d)), K=rng.standard_normal((2, d)), V=np.eye(d)
        )
        run = simulate(
            weights,
            rng.uniform(-2, 2, (n, d)),
            np.linspace(0, 4, 41),
            rtol=1e-8,
            kernel=kernel,
            frame="auto",
        )
        directions = rng.standard_normal((200, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        support = (run.z @ directions.T).max(axis=1)  # (T, directions)
        assert (np.diff(support, axis=0) <= 20 * 1e-8 * np.abs(run.z[0]).max()).all()
        assert support[-1].sum() < 0.98 * support[0].sum()


def test_distances_never_shrink():
    rng = np.random.default_rng(5)
    for d, n in ((1, 8), (3, 12), (5, 6)):
        run = simulate(identity(d), rng.uniform(-1, 1, (n, d)), np.linspace(0, 4, 41))
        distance = np.linalg.norm(run.x[:, :, None] - run.x[:, None], axis=-1)
        slack = PROMISE * np.abs(run.x).max(axis=(1, 2))[1:, None, None]
        assert (np.diff(distance, axis=0) >= -slack).all()
        assert distance[-1].max() > distance[0].max() * 1.5


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_extreme_coordinates_close_in(mask):
    """lambda_k >= 0: max_j phi*_k(z_j) does not grow and min_j does not fall, whatever Q and K
    are.
    """
    rng = np.random.default_rng(6)
    S = np.eye(3) + 0.3 * rng.standard_normal((3, 3))
    inverse = np.linalg.inv(S)
    weights = al.Weights(
        Q=rng.standard_normal((3, 3)),
        K=rng.standard_normal((3, 3)),
        V=S @ np.diag([1.2, 0.7, 0.0]) @ inverse,
    )
    run = simulate(
        weights, rng.uniform(-1, 1, (10, 3)), np.linspace(0, 4, 41), rtol=1e-8, mask=mask
    )
    for k in range(3):
        coordinate = run.z @ inverse[k]
        slack = 20 * 1e-8 * np.abs(inverse[k]).sum() * np.abs(run.z[0]).max() * np.linalg.cond(S)
        assert (np.diff(coordinate.max(axis=1)) <= slack).all()
        assert (np.diff(coordinate.min(axis=1)) >= -slack).all()
    assert np.ptp(run.z[-1] @ inverse[0]) < 0.95 * np.ptp(run.z[0] @ inverse[0])
    np.testing.assert_allclose(
        run.z[-1] @ inverse[2], run.z[0] @ inverse[2], rtol=0, atol=slack
    )  # lambda_3 = 0: it rests


# ----------------------------------------------------------------------------------------------
# symmetries of the flow


def generic(seed, n=6, d=3, heads=1, k=None):
    rng = np.random.default_rng(seed)
    weights = al.Weights(
        Q=0.7 * rng.standard_normal((heads, k or d, d)), K=0.7 * rng.standard_normal((heads, k or d, d)),
        V=0.7 * rng.standard_normal((heads, d, d)),
    )  # fmt: skip
    return weights, rng.standard_normal((n, d))


TIMES = np.array([0.0, 0.3, 0.8, 1.2])


@pytest.mark.parametrize("heads", [1, 2])
def test_runs_equal_the_independent_integrator(heads):
    for seed in range(3):
        weights, x0 = generic(seed, heads=heads)
        truth = extrapolate(long_velocity(weights.Q, weights.K, weights.V), x0, TIMES, 1e-15)
        for frame in ("x", "z"):
            assert_close(
                simulate(weights, x0, TIMES, frame=frame).x,
                truth,
                PROMISE * sensitivity(weights, x0, TIMES[-1]),
            )


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_forward_then_backward_comes_home(mask):
    for seed in range(3):
        weights, x0 = generic(seed + 10)
        end = simulate(weights, x0, [TIMES[-1]], mask=mask, frame="x").x[-1]
        back = al.Weights(Q=weights.Q, K=weights.K, V=-weights.V)
        home = simulate(back, end, [TIMES[-1]], mask=mask, frame="x").x[-1]
        there, returned = sensitivity(weights, x0, TIMES[-1]), sensitivity(back, end, TIMES[-1])
        assert np.abs(end - x0).max() > 0.1
        assert_close(home, x0, PROMISE * (there + 1) * (returned + 1))


@pytest.mark.parametrize("c", [0.01, 3.0, 50.0])
def test_a_faster_v_is_a_faster_clock(c):
    weights, x0 = generic(20)
    slow = simulate(weights, x0, TIMES)
    fast = simulate(al.Weights(Q=weights.Q, K=weights.K, V=c * weights.V), x0, TIMES / c)
    bound = 2 * PROMISE * sensitivity(weights, x0, TIMES[-1])
    assert_close(fast.x, slow.x, bound)
    assert_close(
        fast.z, slow.z, bound * np.linalg.cond(scipy.linalg.expm(TIMES[-1] * weights.V[0]))
    )


@pytest.mark.parametrize("heads", [1, 2])
def test_another_basis_is_the_same_flow(heads):
    weights, x0 = generic(21, heads=heads, k=2)
    S = np.eye(3) + 0.4 * np.random.default_rng(22).standard_normal((3, 3))
    inverse = np.linalg.inv(S)
    moved = al.Weights(Q=weights.Q @ inverse, K=weights.K @ inverse, V=S @ weights.V @ inverse)
    here, there = simulate(weights, x0, TIMES), simulate(moved, x0 @ S.T, TIMES)
    bound = 2 * PROMISE * sensitivity(weights, x0, TIMES[-1]) * np.linalg.cond(S)
    assert_close(there.x, here.x @ S.T, bound)
    assert_close(
        there.z,
        here.z @ S.T,
        bound * np.linalg.cond(scipy.linalg.expm(TIMES[-1] * weights.V.sum(axis=0))),
    )


@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_a_run_in_two_parts_is_one_run(geometry):
    weights, x0 = generic(23)
    x0 = x0 / np.linalg.norm(x0, axis=1, keepdims=True) if geometry == "sphere" else x0
    whole = simulate(weights, x0, TIMES, geometry=geometry)
    first = simulate(weights, x0, TIMES[:3], geometry=geometry)
    second = simulate(weights, first.x[-1], [TIMES[3] - TIMES[2]], geometry=geometry)
    bound = 2 * PROMISE * sensitivity(weights, x0, TIMES[-1], geometry=geometry)
    assert_close(first.x, whole.x[:3], bound)
    assert_close(second.x[-1], whole.x[-1], bound)


def test_permuted_tokens_run_permuted():
    weights, x0 = generic(24, n=11)
    order = np.random.default_rng(25).permutation(11)
    bound = 2 * PROMISE * sensitivity(weights, x0, TIMES[-1])
    assert_close(
        simulate(weights, x0[order], TIMES).x, simulate(weights, x0, TIMES).x[:, order], bound
    )


def test_the_two_frames_are_one_run():
    for seed in (26, 27):
        weights, x0 = generic(seed)
        runs = [simulate(weights, x0, TIMES, frame=frame) for frame in ("x", "z")]
        cost = np.linalg.cond(scipy.linalg.expm(TIMES[-1] * weights.V[0])) * sensitivity(
            weights, x0, TIMES[-1]
        )
        assert_close(runs[0].x, runs[1].x, 2 * PROMISE * cost)
        assert_close(runs[0].z, runs[1].z, 2 * PROMISE * cost)
        for run in runs:
            by_hand = np.array(
                [
                    x @ scipy.linalg.expm(-t * weights.V[0]).T
                    for t, x in zip(run.times, run.x, strict=True)
                ]
            )
            assert_close(run.z, by_hand, 1e-13 * cost)
            np.testing.assert_allclose(run.z[0], x0, rtol=0, atol=100 * EPSILON)


# ---------------------------------------------------------------------------------------------- one
# token, equal tokens, causal

LINEAR = {
    "random": 0.8 * np.random.default_rng(30).standard_normal((3, 3)),
    "turning": np.array([[0.1, -3.0, 0.0], [3.0, 0.1, 0.0], [0.0, 0.0, -1.0]]),
    "nilpotent": np.array([[0.0, 1.0, -2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]]),
    "jordan": np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]]),
    "zero": np.zeros((3, 3)),
    "shrinking": -np.diag([1.0, 2.0, 3.0]),
}


def linear_cost(V):
    """What x' = V x makes of a relative error made on the way."""
    return max(np.linalg.cond(scipy.linalg.expm(t * V)) for t in TIMES)


@pytest.mark.parametrize("frame", ["x", "z"])
@pytest.mark.parametrize("name", LINEAR)
def test_one_token_moves_by_the_exponential(name, frame):
    V, x0 = LINEAR[name], np.array([[1.0, -0.5, 2.0]])
    run = simulate(al.Weights(V=V), x0, TIMES, frame=frame)
    truth = np.array([x0 @ scipy.linalg.expm(t * V).T for t in TIMES])
    assert_close(run.x, truth, PROMISE * linear_cost(V))
    assert_close(run.z, np.repeat(x0[None], len(TIMES), axis=0), PROMISE * linear_cost(V))
    np.testing.assert_array_equal(al.attention(run), [[[1.0]]])


def test_one_token_in_one_dimension():
    for V in (1.0, -2.0, 0.0):
        run = simulate(al.Weights(V=[[V]]), [[-1.5]], TIMES)
        np.testing.assert_allclose(run.x[:, 0, 0], -1.5 * np.exp(V * TIMES), rtol=PROMISE)
        np.testing.assert_allclose(run.z[:, 0, 0], -1.5, rtol=PROMISE)
    run = simulate(al.Weights(V=[[1.0]]), [[1.0]], [0.0, 2000.0])  # e^2000 is no double, z is 1
    np.testing.assert_allclose(run.z[:, 0, 0], 1.0, rtol=2000 * PROMISE)
    states, log_scale = run.scaled_x()
    np.testing.assert_allclose(np.log(states[-1, 0, 0]) + log_scale[-1], 2000.0, rtol=PROMISE)


@pytest.mark.parametrize("frame", ["auto", "z"])
@pytest.mark.parametrize(
    "rates, t", [((1, -1), 25.0), ((1, -1), 300.0), ((1, -1), 380.0), ((-1, -30), 26.0)], ids=str
)
def test_a_coordinate_that_falls_far_behind_is_right_or_refused(rates, t, frame):
    """One token: z rests. At (1, -1) and t = 380 the coordinates of x are e^{760} apart, more than
    a double can hold.
    """
    run = simulate(al.Weights(V=np.diag(rates)), [[1.0, 2.0]], [0.0, t], frame=frame, throw=False)
    if run.is_ok:
        try:
            z = run.z[-1, 0]
        except OverflowError:
            return
        np.testing.assert_allclose(z, [1.0, 2.0], rtol=PROMISE * (1 + t * max(map(abs, rates))))


@pytest.mark.parametrize("frame", ["x", "z"])
@pytest.mark.parametrize("name", LINEAR)
def test_equal_tokens_move_as_one(name, frame):
    V, token = LINEAR[name], np.array([1.0, -0.5, 2.0])
    x0 = np.repeat(token[None], 11, axis=0)
    rng = np.random.default_rng(31)
    weights = al.Weights(Q=rng.standard_normal((3, 3)), K=rng.standard_normal((3, 3)), V=V)
    run = simulate(weights, x0, TIMES, frame=frame)
    np.testing.assert_array_equal(run.x, np.repeat(run.x[:, :1], 11, axis=1))
    assert_close(
        run.x, np.array([x0 @ scipy.linalg.expm(t * V).T for t in TIMES]), PROMISE * linear_cost(V)
    )
    np.testing.assert_allclose(al.attention(run)[0], 1 / 11, rtol=8 * EPSILON)


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize(
    "options", [{}, {"frame": "z"}, {"geometry": "sphere"}, {"kernel": "hardmax"}], ids=str
)
def test_copies_of_a_token_stay_together(d, options):
    """Equal tokens among others stay equal to the last bit, wherever they stand in the array."""
    rng = np.random.default_rng(32)
    x0 = sphere(rng, 4, d)[[0, 1, 0, 2, 1, 3, 3, 0, 2, 2, 1, 0, 3, 3, 0, 1, 2, 1]]
    weights = al.Weights(
        Q=rng.standard_normal((d, d)),
        K=rng.standard_normal((d, d)),
        V=0.3 * rng.standard_normal((d, d)),
    )
    run = simulate(weights, x0, TIMES, rtol=1e-8, **options)
    for copies in ([0, 2, 7, 11, 14], [1, 4, 10, 15, 17], [3, 8, 9, 16], [5, 6, 12, 13]):
        np.testing.assert_array_equal(
            run.x[:, copies], np.repeat(run.x[:, copies[:1]], len(copies), axis=1)
        )
    assert np.abs(run.x[-1] - x0).max() > 0.1


def test_the_first_token_of_a_causal_run_is_alone():
    for seed in (33, 34):
        weights, x0 = generic(seed, n=7)
        V = weights.V[0]
        run = simulate(weights, x0, TIMES, mask="causal")
        cost = linear_cost(V) * sensitivity(weights, x0, TIMES[-1])
        # the tolerance is relative to the largest of all tokens
        size = np.abs(run.x).max(axis=(1, 2))
        for t, s, x in zip(TIMES, size, run.x[:, 0], strict=True):
            assert np.abs(x - scipy.linalg.expm(t * V) @ x0[0]).max() <= PROMISE * s * cost
        for k in (1, 2, 4, 6):
            part = simulate(weights, x0[:k], TIMES, mask="causal")
            assert (
                np.abs(part.x - run.x[:, :k]).max(axis=(1, 2)) <= 2 * PROMISE * size * cost
            ).all()
        full = simulate(weights, x0, TIMES)
        assert np.abs(full.x - run.x).max() > 1e-2


# ----------------------------------------------------------------------------------------------
# special weights


@pytest.mark.parametrize("frame", ["x", "z"])
def test_nothing_moves_without_values(frame):
    x0 = np.random.default_rng(35).standard_normal((5, 3))
    run = simulate(al.Weights(V=np.zeros((3, 3))), x0, TIMES, frame=frame)
    np.testing.assert_array_equal(run.x, np.repeat(x0[None], len(TIMES), axis=0))
    np.testing.assert_array_equal(run.z, run.x)


@pytest.mark.parametrize("frame", ["x", "z"])
def test_nilpotent_values(frame):
    weights = al.Weights(V=LINEAR["nilpotent"])
    x0 = 0.5 * np.random.default_rng(36).standard_normal((5, 3))
    truth = extrapolate(long_velocity(weights.Q, weights.K, weights.V), x0, TIMES, 1e-15)
    run = simulate(weights, x0, TIMES, frame=frame)
    cost = sensitivity(weights, x0, TIMES[-1]) * linear_cost(weights.V[0])
    assert_close(run.x, truth, PROMISE * cost)
    rests = np.repeat(x0[None, :, 2], len(TIMES), axis=0)  # the last row of V is 0
    np.testing.assert_allclose(run.x[:, :, 2], rests, rtol=0, atol=PROMISE * cost)


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("name", LINEAR)
def test_without_temperature_everybody_follows_the_mean(name, mask):
    """beta = 0: x_i' = V m with m the mean of those seen: x_i = x_i(0) + (e^{tV} - 1) m(0), all see
    all; V nilpotent included.
    """
    V, x0 = LINEAR[name], np.random.default_rng(37).standard_normal((6, 3))
    run = simulate(al.Weights(V=V), x0, TIMES, beta=0.0, mask=mask)
    if mask == "full":
        truth = np.array(
            [x0 + x0.mean(axis=0) @ (scipy.linalg.expm(t * V) - np.eye(3)).T for t in TIMES]
        )
    else:
        # a linear system with the matrix (lower-triangular means) kron V
        means = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
        truth = np.array(
            [(scipy.linalg.expm(t * np.kron(means, V)) @ x0.ravel()).reshape(6, 3) for t in TIMES]
        )
    assert_close(run.x, truth, PROMISE * linear_cost(V) ** 2)


@pytest.mark.parametrize(
    "options", [{"beta": 1e4}, {"beta": 1e4, "frame": "z"}, {"kernel": "hardmax"}], ids=str
)
def test_leaders_and_followers(options):
    """Two leaders on the axes grow alone; a token that listens to the first moves by (e^t - 1)
    times it. Leakage is e^{-2400}.
    """
    x0 = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.1], [0.1, 0.6]])
    run = simulate(identity(2), x0, TIMES, **options)
    grown = np.exp(TIMES)[:, None]
    for i, leader in enumerate((0, 1, 0, 1)):
        truth = grown * x0[i] if i == leader else x0[i] + (grown - 1) * x0[leader]
        np.testing.assert_allclose(run.x[:, i], truth, rtol=0, atol=PROMISE * grown.max())
    np.testing.assert_allclose(
        al.attention(run)[0], np.eye(2)[[0, 1, 0, 1]] @ np.eye(2, 4), rtol=0, atol=4 * EPSILON
    )
