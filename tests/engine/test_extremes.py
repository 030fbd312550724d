"""Huge and tiny numbers, degenerate matrices, long times: right in extended precision, or a Status
that says what was lost.
"""

from __future__ import annotations

import itertools

import mpmath as mp
import numpy as np
import pytest
from scipy.linalg import expm

import attnlab as al
from attnlab import Status
from attnlab.engine import plan
from extended import EigenFlow, truth
from helpers import rescaled

C6 = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])
C9 = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)


def _relative(found, expected):
    """The largest difference at each time, relative to the largest entry of that time: (T,)."""
    expected = np.asarray(expected)
    return (
        np.abs(found - expected).max(axis=(-2, -1)) / np.abs(expected).max(axis=(-2, -1))
    ).astype(float)


def _leaders(x):
    return np.argmax(x @ x.T, axis=1)


def _boolean_flow(V, x0, times):
    """x (T, n, d) of x_i' = V x_leader(i), the limit of infinite scores, and the assurance that no
    leader changes meanwhile.
    """
    n = len(x0)
    P = np.eye(n)[_leaders(x0)]
    fine = np.linspace(0, times[-1], 200)
    paths = [(expm(t * np.kron(P, V)) @ x0.ravel()).reshape(x0.shape) for t in fine]
    assert all((_leaders(x) == _leaders(x0)).all() for x in paths)
    return np.array([(expm(t * np.kron(P, V)) @ x0.ravel()).reshape(x0.shape) for t in times])


# ------------------------------------------------------------------------------------------- sizes


TIMES = np.array([0.0, 0.05, 0.1, 0.2])
TOKENS = np.random.default_rng(5).uniform(-1, 1, (6, 2))


@pytest.mark.parametrize("frame", ["x", "z"])
@pytest.mark.parametrize("is_large", [False, True])
def test_tokens_of_size_1e150(frame, is_large, monkeypatch):
    monkeypatch.setattr(plan, "MOST_PAIRS", 0 if is_large else plan.MOST_PAIRS)
    expected = _boolean_flow(C6, TOKENS, TIMES)
    run = al.simulate(al.Weights(V=C6), 1e150 * TOKENS, times=TIMES, rtol=1e-10, frame=frame)
    assert run.status is Status.OK
    assert _relative(run.x / 1e150, expected).max() <= 2e-9
    assert _relative(run.z / 1e150, rescaled(C6, expected, TIMES)).max() <= 2e-9
    P = al.attention(run)
    assert np.array_equal(P[0], np.eye(6)[_leaders(TOKENS)])


@pytest.mark.parametrize("frame", ["x", "z"])
def test_scores_of_1e300(frame):
    expected = _boolean_flow(C6, TOKENS, TIMES)
    huge = 1e150 * np.eye(2)
    run = al.simulate(
        al.Weights(Q=huge, K=huge, V=C6), TOKENS, times=TIMES, rtol=1e-10, frame=frame
    )
    assert run.status is Status.OK
    assert _relative(run.x, expected).max() <= 2e-9
    assert np.array_equal(al.attention(run)[0], np.eye(6)[_leaders(TOKENS)])
    layers = al.simulate(al.Weights(Q=huge, K=huge, V=C6), TOKENS, layers=2, dt=0.01)
    x = TOKENS
    for _ in range(2):
        x = x + 0.01 * x[_leaders(TOKENS)] @ C6.T
    assert np.abs(layers.x[-1] - x).max() <= 1e-14


def test_tokens_of_size_1e_minus_150():
    """Scores of 1e-300: every row is uniform, x_i = x_i(0) + (e^{tV} - I) mean."""
    run = al.simulate(al.Weights(V=C6), 1e-150 * TOKENS, times=[1.0], rtol=1e-10)
    expected = TOKENS + TOKENS.mean(axis=0) @ (expm(C6) - np.eye(2)).T
    assert np.abs(run.x[0] * 1e150 - expected).max() <= 2e-9 * np.abs(expected).max()


@pytest.mark.parametrize("frame", ["x", "z"])
def test_beta_zero(frame):
    times = np.array([0.5, 1.0, 3.0])
    run = al.simulate(al.Weights(V=C6), TOKENS, times=times, beta=0.0, rtol=1e-10, frame=frame)
    expected = np.array(
        [TOKENS + TOKENS.mean(axis=0) @ (expm(t * C6) - np.eye(2)).T for t in times]
    )
    assert _relative(run.x, expected).max() <= 2e-9
    np.testing.assert_allclose(al.attention(run), 1 / 6, rtol=1e-15)


@pytest.mark.parametrize("beta", [1e4, -1e4, -2.0, 1e-12])
@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_beta_of_any_size_and_sign(beta, geometry):
    x0 = TOKENS / np.linalg.norm(TOKENS, axis=1, keepdims=True) if geometry == "sphere" else TOKENS
    times = np.array([0.1, 0.2])
    expected = truth(np.eye(2), np.eye(2), C6, x0, times, beta=beta, geometry=geometry)
    run = al.simulate(al.Weights(V=C6), x0, times=times, beta=beta, geometry=geometry, rtol=1e-10)
    assert run.status is Status.OK
    assert _relative(run.x, expected).max() <= 2e-9


# -------------------------------------------------------------------------------------------
# degenerate


@pytest.mark.parametrize("kernel", ["softmax", "hardmax"])
def test_identical_tokens_move_as_one_and_have_no_wall(kernel):
    x0 = np.repeat([[0.3, -1.2]], 5, axis=0)
    run = al.simulate(al.Weights(V=C6), x0, t_end=60.0, kernel=kernel, rtol=1e-10, saves=13)
    assert run.status is Status.OK and 60 * 1.348 > 80
    assert (run.states == run.states[:, :1]).all()
    for t, x in zip(run.times, run.x, strict=True):
        expected = expm(t * C6) @ x0[0]
        assert np.abs(x[0] - expected).max() <= 2e-9 * np.abs(expected).max()
    assert np.abs(run.z - x0).max() <= 2e-9 * 1.2


def test_two_groups_of_identical_tokens_equal_two_tokens_with_multiplicity():
    x0 = np.array([[1.0, 0.2], [-0.4, 0.7]])
    run = al.simulate(al.Weights(V=C6), np.repeat(x0, [3, 2], axis=0), times=[2.0], rtol=1e-10)
    assert run.x[0, 0].tolist() == run.x[0, 1].tolist() == run.x[0, 2].tolist()
    expected = truth(np.eye(2), np.eye(2), C6, np.repeat(x0, [3, 2], axis=0), [2.0])
    assert _relative(run.x, expected).max() <= 2e-9


def test_all_tokens_at_the_origin_stay():
    for options in (
        {"t_end": 50.0},
        {"t_end": 5.0, "frame": "z"},
        {"layers": 5},
        {"t_end": 1.0, "kernel": "hardmax"},
    ):
        run = al.simulate(al.Weights(V=C6), np.zeros((4, 2)), **options)
        assert run.status is Status.OK and not run.x.any() and not run.z.any()


@pytest.mark.parametrize("frame", ["x", "z"])
def test_one_token_for_a_thousand_units(frame):
    """n = 1, V = I: z = x0 forever, x = e^t x0 leaves double precision at t = 709."""
    x0 = np.array([[1.0, -2.0]])
    run = al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1000.0, saves=11, rtol=1e-10, frame=frame)
    assert run.status is Status.OK and run.times[-1] == 1000.0
    # each of the steps may be off by rtol: the exponent of a linear equation adds them up
    assert np.abs(run.z - x0).max() <= 2e-9 * 2 * (1 if frame == "z" else run.stats["steps"] / 20)
    with pytest.raises(
        OverflowError,
        match=r"x exceeds the range .* from t = 800 on\. Use run\.z, or run\.scaled_x\(\)",
    ):
        _ = run.x
    y, s = run.scaled_x()
    assert np.isfinite(y).all() and np.isfinite(s).all()
    log_size = np.log(np.abs(y[:, 0])) + s[:, None]
    np.testing.assert_allclose(log_size, run.times[:, None] + np.log([1.0, 2.0]), atol=1e-6, rtol=0)
    assert np.array_equal(np.sign(y[:, 0]), np.sign(np.repeat(x0, 11, axis=0)))


def test_decay_far_below_the_smallest_number():
    """V = -I: x underflows at t = 745 and z stays; the tokens differ, and their difference does not
    decay.
    """
    run = al.simulate(al.Weights(V=-np.eye(2)), [[1.0, -2.0]], t_end=1000.0, saves=11, rtol=1e-10)
    assert run.status is Status.OK
    y, s = run.scaled_x()
    np.testing.assert_allclose(
        np.log(np.abs(y[:, 0])) + s[:, None],
        -run.times[:, None] + np.log([1.0, 2.0]),
        atol=1e-6,
        rtol=0,
    )
    assert np.abs(run.z - [[1.0, -2.0]]).max() <= 1e-6


@pytest.mark.parametrize("V", [1.0, -0.7])
def test_one_dimension(V):
    x0, times = np.random.default_rng(3).uniform(-1, 1, (7, 1)), np.array([1.0, 3.0])
    run = al.simulate(al.Weights(V=[[V]]), x0, times=times, rtol=1e-10)
    expected = truth([[1.0]], [[1.0]], [[V]], x0, times)
    assert _relative(run.x, expected).max() <= 2e-9
    assert _relative(run.z, rescaled([[V]], expected, times)).max() <= 2e-9


S = np.array([[1.0, 2.0, -1.0], [0.5, 1.0, 1.0], [-1.0, 0.3, 2.0]])
DEGENERATE = {
    "nilpotent": S @ np.diag([1.0, 1.0], 1) @ np.linalg.inv(S),
    "nilpotent_two": S @ np.diag([1.0, 0.0], 1) @ np.linalg.inv(S),
    "jordan": S @ (0.5 * np.eye(3) + np.diag([1.0, 1.0], 1)) @ np.linalg.inv(S),
    "jordan_decaying": S @ (-0.5 * np.eye(3) + np.diag([1.0, 0.0], 1)) @ np.linalg.inv(S),
    "nearly_jordan": (
        S @ (np.diag([0.5, 0.5 + 1e-9, -0.2]) + np.diag([1.0, 0.0], 1)) @ np.linalg.inv(S)
    ),
    "rotation": np.array([[0.0, -2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.3]]),
    "singular": S @ np.diag([1.0, 0.0, 0.0]) @ np.linalg.inv(S),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("frame", ["x", "z"])
def test_degenerate_value_matrices(name, frame):
    V = DEGENERATE[name]
    x0, times = 0.5 * np.random.default_rng(2).standard_normal((5, 3)), np.array([0.5, 1.0, 2.0])
    expected = truth(np.eye(3), np.eye(3), V, x0, times)
    run = al.simulate(al.Weights(V=V), x0, times=times, rtol=1e-10, frame=frame)
    assert run.status is Status.OK
    assert _relative(run.x, expected).max() <= 2e-9
    # one frame from the other passes through e^{+-tV}: its condition number stands between them
    lost = np.array([np.linalg.cond(expm(t * V)) for t in times])
    assert (_relative(run.z, rescaled(V, expected, times)) <= 2e-9 * np.maximum(1, lost / 10)).all()


@pytest.mark.parametrize("factored", [False, True])
def test_zero_V(factored):
    V = (np.zeros((3, 1)), np.zeros((1, 3))) if factored else np.zeros((3, 3))
    x0 = np.random.default_rng(2).standard_normal((5, 3))
    for options in (
        {"t_end": 100.0},
        {"t_end": 100.0, "frame": "z"},
        {"layers": 3},
        {"t_end": 1.0, "stepper": "rk4", "dt": 0.1},
    ):
        run = al.simulate(al.Weights(V=V), x0, **options)
        assert run.status is Status.OK
        assert (run.x == x0).all() and np.abs(run.z - x0).max() <= 1e-15 * np.abs(x0).max()


def test_nilpotent_factors():
    """V = B C with C B = 0: e^{tV} = I + tV, all of it from matrices that are zero."""
    B, C = np.array([[1.0], [2.0], [0.0], [1.0]]), np.array([[2.0, -1.0, 3.0, 0.0]])
    assert not (C @ B).any()
    x0, times = 0.4 * np.random.default_rng(2).standard_normal((5, 4)), np.array([1.0, 2.0])
    run = al.simulate(al.Weights(V=(B, C)), x0, times=times, rtol=1e-10)
    expected = truth(np.eye(4), np.eye(4), B @ C, x0, times)
    assert _relative(run.x, expected).max() <= 2e-9
    z = np.array(
        [x @ (np.eye(4) - t * B @ C).T for t, x in zip(times, expected.astype(float), strict=True)]
    )
    assert _relative(run.z, z).max() <= 2e-8


# ------------------------------------------------------------------------------------------- up to
# the wall

B10 = np.random.default_rng(5).uniform(-1, 1, (10, 10))
TO_THE_WALL = {
    "polytope": (np.eye(2), 10, 5.0),
    "near_eigenvalues": (np.diag([1.0, 0.9, -0.5]), 8, 5.0),
    "codimension": (C9, 8, 5.0),
    "low_rank": (B10 @ B10.T, 8, 1.0),
}
WALL_CASES = [
    pytest.param(name, seed, marks=pytest.mark.slow if seed else ())
    for name, seed in itertools.product(TO_THE_WALL, (0, 1))
]  # the second start of near_eigenvalues has a late change of leader
SPREAD = 10
"""Two draws of rounding errors differ by up to 20 in what they do to a change of leader: the larger
of two may be that short.
"""


@pytest.mark.parametrize(("name", "seed"), WALL_CASES)
def test_right_up_to_lambda_t_of_28(name, seed):
    V, n, size = TO_THE_WALL[name]
    growth = np.linalg.eigvalsh(V).max()
    x0 = np.random.default_rng(seed).uniform(-size, size, (n, len(V)))
    times = 28.0 / growth * np.array([0.25, 0.5, 0.75, 1.0])
    run = al.simulate(al.Weights(V=V), x0, times=times, rtol=1e-10, throw=False)
    assert run.status is Status.OK
    flow = EigenFlow(V).run(x0, times)
    doubles = [EigenFlow(V).run(x0, times, in_double=draw) for draw in (0, 1)]
    for frame in ("x", "z"):
        expected = getattr(flow, frame)
        allowed = np.maximum(
            2e-9,
            SPREAD
            * np.max([_relative(getattr(double, frame), expected) for double in doubles], axis=0),
        )
        assert (_relative(getattr(run, frame), expected) <= allowed).all()
        assert allowed.max() <= 1e-6  # otherwise nothing was tested
    # and z in each eigen-coordinate by itself, down to the slowest
    size_z = np.abs(flow.eigen_z).max(axis=1)  # (T, d)
    gap = np.abs(run.z.astype(np.longdouble) @ flow.basis - flow.eigen_z).max(axis=1) / size_z
    moved = np.max(
        [np.abs(double.eigen_z - flow.eigen_z).max(axis=1) / size_z for double in doubles], axis=0
    )
    # z is handed out in the user's coordinates: a small coordinate carries the rounding of the
    # largest
    mixed = 1e-15 * size_z.max(axis=1, keepdims=True) / size_z
    assert (gap <= np.maximum(2e-9 + mixed, SPREAD * moved)).all()


def test_the_80_bit_flow_agrees_with_forty_digits():
    """The yardstick itself: n = 3, V = diag(1, 0.5) to t = 2 by RK4 in 40 digits, extrapolated,
    against EigenFlow.
    """
    x0, t_end = np.array([[0.4, 0.3], [-0.2, 0.5], [0.1, -0.6]]), 2.0
    V = np.diag([1.0, 0.5])
    with mp.workdps(40):
        coarse, fine = (_mp_rk4(V, x0, t_end, count) for count in (200, 400))
        best = [
            [float(f + (f - c) / 15) for c, f in zip(a, b, strict=True)]
            for a, b in zip(coarse, fine, strict=True)
        ]
    found = EigenFlow(V).run(x0, [t_end]).x[0]
    assert np.abs(found - np.array(best)).max() <= 1e-11


def _mp_rk4(V, x0, t_end, count):
    growth = [mp.mpf(float(v)) for v in np.diagonal(V)]
    x, h = [[mp.mpf(float(c)) for c in token] for token in x0], mp.mpf(t_end) / count

    def velocity(x):
        out = []
        for a in x:
            w = [mp.exp(mp.fdot(a, b)) for b in x]
            total = mp.fsum(w)
            out.append([growth[c] * mp.fdot(w, [b[c] for b in x]) / total for c in range(2)])
        return out

    def moved(x, k, s):
        return [[a + s * b for a, b in zip(p, q, strict=True)] for p, q in zip(x, k, strict=True)]

    for _ in range(count):
        a = velocity(x)
        b = velocity(moved(x, a, h / 2))
        c = velocity(moved(x, b, h / 2))
        e = velocity(moved(x, c, h))
        for k, weight in ((a, 1), (b, 2), (c, 2), (e, 1)):
            x = moved(x, k, weight * h / 6)
    return x


# ------------------------------------------------------------------------------------------- past
# it


@pytest.mark.parametrize("name", TO_THE_WALL)
def test_past_the_wall_is_said(name):
    V, n, size = TO_THE_WALL[name]
    growth = np.linalg.eigvalsh(V).max()
    x0 = np.random.default_rng(0).uniform(-size, size, (n, len(V)))
    with pytest.raises(
        al.RunFailed, match="can no longer distinguish the tokens of one cluster"
    ) as caught:
        al.simulate(al.Weights(V=V), x0, t_end=80.0 / growth, saves=161)
    run = caught.value.run
    assert run.status is Status.PAST_DOUBLE_PRECISION
    assert "stopped at t =" in str(caught.value) and ".run" in str(caught.value)
    assert (
        28 <= growth * run.stats["reached"] <= 40
    )  # ln(1 / 2^-52) = 36, and the spread of the start
    assert (
        run.times[-1] <= run.stats["reached"]
        and np.isfinite(run.x).all()
        and np.isfinite(run.z).all()
    )
    shorter = al.simulate(al.Weights(V=V), x0, t_end=28.0 / growth, saves=57)
    assert shorter.status is Status.OK
    np.testing.assert_allclose(run.x[:57], shorter.x, rtol=0, atol=2e-6 * np.abs(shorter.x).max())


C2 = [pytest.param(80, 40, marks=pytest.mark.slow), (24, 12)]
"""d, n: V = B B^T of the figure, lambda_1 of about 100; and a smaller one on the compiled path."""


def _figure_C2(d, n):
    rng = np.random.default_rng(0)
    B = rng.uniform(-1, 1, (d, d))
    V, x0 = B @ B.T, rng.uniform(-1, 1, (n, d))
    return V, x0, np.linalg.eigvalsh(V).max(), rng


@pytest.mark.parametrize(("d", "n"), C2)
def test_lambda_t_of_a_thousand(d, n):
    V, x0, growth, _ = _figure_C2(d, n)
    t_end = 1100.0 / growth if d < 80 else 11.0
    assert growth * t_end > 1000
    run = al.simulate(al.Weights(V=V), x0, t_end=t_end, saves=1101, throw=False)
    assert run.status is Status.PAST_DOUBLE_PRECISION
    assert 28 <= growth * run.stats["reached"] <= 60 and len(run.times) > 20
    assert np.isfinite(run.x).all() and np.isfinite(run.z).all()
    # one token alone has no wall, but its coordinates grow apart by e^700: all of it, or it says
    # where they left the range
    one = al.simulate(al.Weights(V=V), x0[:1], t_end=t_end, saves=45, rtol=1e-10, throw=False)
    values, vectors = np.linalg.eigh(V)
    if one.status is not Status.OK:
        assert (
            one.status is Status.NON_FINITE
            and 600 <= (values[-1] - values[0]) * one.stats["reached"] <= 750
        )
    y, s = one.scaled_x()
    assert np.abs(one.z - x0[:1]).max() <= 1e-7
    for t, token, scale in zip(one.times, y[:, 0], s, strict=True):
        expected = (vectors * np.exp(values * t - scale)) @ (vectors.T @ x0[0])
        assert np.abs(token - expected).max() <= 1e-7 * np.abs(expected).max()


@pytest.mark.parametrize(("d", "n"), C2)
def test_C2_before_the_wall_equals_a_run_in_other_coordinates(d, n):
    """The same tokens with Q, K, V and x0 turned by an orthogonal matrix: other roundings, other
    eigenvectors, the same flow.
    """
    V, x0, growth, rng = _figure_C2(d, n)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    turned, t_end = turn.T @ V @ turn, 25.0 / growth
    one = al.simulate(al.Weights(V=V), x0, t_end=t_end, saves=6, rtol=1e-9)
    two = al.simulate(
        al.Weights(V=(turned + turned.T) / 2), x0 @ turn, t_end=t_end, saves=6, rtol=1e-9
    )
    assert _relative(two.x @ turn.T, one.x).max() <= 2e-7
    assert _relative(two.z @ turn.T, one.z).max() <= 2e-7


# ------------------------------------------------------------------------------------------- the
# sphere


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"t_end": 30.0},
        {"t_end": 30.0, "beta": 50.0, "rtol": 1e-4},
        {"t_end": 30.0, "kernel": "exp_mean"},
        {"t_end": 5.0, "kernel": "hardmax", "rtol": 1e-5},
        {"t_end": 5.0, "stepper": "euler", "dt": 0.5},
        {"t_end": 5.0, "stepper": "rk4", "dt": 0.3},
        {"layers": 40, "dt": 1.0},
    ],
)
@pytest.mark.parametrize("d", [2, 9])
def test_tokens_stay_on_the_sphere(options, d, is_large, monkeypatch):
    monkeypatch.setattr(plan, "MOST_PAIRS", 0 if is_large else plan.MOST_PAIRS)
    rng = np.random.default_rng(4)
    x0 = rng.standard_normal((8, d))
    x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
    V = 0.5 * rng.standard_normal((d, d)) + np.eye(d)
    run = al.simulate(al.Weights(V=V), x0, geometry="sphere", throw=False, **options)
    assert run.status in (Status.OK, Status.STALLED, Status.MAX_STEPS) and len(run.times) > 1
    if options.get("kernel") != "hardmax":
        assert run.status is Status.OK
    assert np.abs(np.linalg.norm(run.x, axis=-1) - 1.0).max() <= 1e-14
    assert run.z is None
