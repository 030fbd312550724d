"""Every stepper has its order on every variant; fixed steps are the published recursions; run.error
means what it says.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.linalg import expm

import attnlab as al
from attnlab.engine import stepper as compiled_stepper
from attnlab.engine.records import Record
from attnlab.engine.tables import table
from extended import feedforward_path, truth
from helpers import extrapolate, loop_attention, loop_velocity, observed_order, rescaled

T_END, N, D = 1.0, 5, 3
C6 = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])


def _matrices(h=None, k=D, size=0.6):
    rng = np.random.default_rng(7)
    shape = () if h is None else (h,)
    return [size * rng.standard_normal((*shape, *s)) for s in ((k, D), (k, D), (D, D))]


def _tokens(size=0.8, seed=3, n=N, d=D):
    return size * np.random.default_rng(seed).standard_normal((n, d))


def _on_sphere(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


Q1, K1, V1 = _matrices()
Q3, K3, V3 = _matrices(3, size=0.35)
QR, KR, VR = _matrices(k=2)
B1, C1 = (np.random.default_rng(11).standard_normal(s) for s in ((D, 2), (2, D)))
X0 = _tokens()
LAYER = {
    "W": 0.7 * _matrices()[0],
    "bias": np.array([0.3, -0.2, 0.1]),
    "bias_outside": np.array([0.05, 0.0, -0.1]),
}

# name: (Q, K, V as given, V in full, x0, options of the equation)
VARIANTS = {
    "one_head": (Q1, K1, V1, V1, X0, {}),
    "three_heads": (Q3, K3, V3, V3, 1.5 * X0, {}),
    "rectangular": (QR, KR, VR, VR, X0, {}),
    "factored": (Q1, K1, (B1, C1), B1 @ C1, X0, {}),
    "causal": (Q1, K1, V1, V1, X0, {"mask": "causal"}),
    "exp_mean": (Q1, K1, V1, V1, 0.5 * X0, {"kernel": "exp_mean", "beta": 0.5}),
    "cold": (Q1, K1, V1, V1, X0, {"beta": -0.7}),
    "sphere_SA": (Q1, K1, V1, V1, _on_sphere(X0), {"geometry": "sphere", "beta": 1.5}),
    "sphere_USA": (Q1, K1, V1, V1, _on_sphere(X0), {"geometry": "sphere", "kernel": "exp_mean"}),
    "tanh": (Q1, K1, V1, V1, X0, {"feedforward": {"sigma": "tanh", **LAYER}}),
    "identity": (Q1, K1, V1, V1, X0, {"feedforward": {"sigma": "identity", **LAYER}}),
}
CASES = [
    (name, frame)
    for name, (*_, options) in VARIANTS.items()
    for frame in ("x", "z")
    if not (frame == "z" and "geometry" in options)
    and not (frame == "x" and "feedforward" in options)
]
_kept: dict = {}


def _truth(name, times):
    """x in 80 bit at the times, (T, n, d); z for the feed-forward variant."""
    key = name, tuple(times)
    if key not in _kept:
        Q, K, _, V, x0, options = VARIANTS[name]
        options = dict(options)
        layer = options.pop("feedforward", None)
        _kept[key] = (
            truth(Q, K, V, x0, times, **options)
            if layer is None
            else feedforward_path(Q, K, V, x0, times, **layer)
        )
    return _kept[key]


def _truth_in(name, frame, times):
    path, V = _truth(name, times), VARIANTS[name][3]
    if frame == "x" or "feedforward" in VARIANTS[name][5]:
        return path.astype(float)
    return rescaled(V if V.ndim == 2 else V.sum(axis=0), path, times)


def _run(name, frame, **options):
    Q, K, V, _, x0, equation = VARIANTS[name]
    return al.simulate(al.Weights(Q=Q, K=K, V=V), x0, frame=frame, **equation, **options)


@pytest.mark.parametrize(("name", "frame"), CASES)
@pytest.mark.parametrize(
    ("stepper", "order", "counts"), [("euler", 1, (48, 192, 768)), ("rk4", 4, (12, 48, 192))]
)
def test_fixed_steps_have_their_order_at_the_end_and_between_steps(
    name, frame, stepper, order, counts
):
    # the first time lies a third into a step, whatever the count: 1/3 = 4/3 = 16/3 modulo 1
    times = np.array([(7 + 1 / 3) / 12 * T_END, T_END])
    expected = _truth_in(name, frame, times)
    errors = []
    for count in counts:
        run = _run(name, frame, times=times, stepper=stepper, dt=T_END / count)
        assert run.stats["steps"] == count
        errors.append(np.abs(getattr(run, frame) - expected).max(axis=(1, 2)))
    inside, end = np.array(errors).T
    steps = 1.0 / np.array(counts)
    assert abs(observed_order(end, steps) - order) < 0.35
    assert abs(observed_order(inside, steps) - order) < 0.35
    assert end[-1] > 1e-13  # otherwise rounding was measured


@pytest.mark.parametrize(("name", "frame"), CASES)
def test_the_method_under_the_adaptive_stepper_has_order_eight(name, frame, monkeypatch):
    """Its coefficients, driven with fixed steps: the step control is left out."""
    expected = _truth_in(name, frame, np.array([T_END]))
    counts, errors = np.array([3, 4, 5, 6, 8, 10, 12]), []
    fixed = Record(table("adaptive")._replace(is_adaptive=0))
    monkeypatch.setattr(compiled_stepper, "table_record", lambda name: fixed)
    for count in counts:
        run = _run(name, frame, times=[T_END], stepper="euler", dt=T_END / count)
        assert run.stats["steps"] == count and run.stats["evaluations"] > 11 * count
        errors.append(np.abs(getattr(run, frame) - expected).max())
    errors = np.array(errors)
    usable = errors > 3e-14  # 200 roundings: below that nothing can be measured
    assert usable.sum() >= 3
    assert observed_order(errors[usable], 1.0 / counts[usable]) >= 7.5


@pytest.mark.parametrize(("name", "frame"), CASES)
def test_dense_output_has_order_seven(name, frame, monkeypatch):
    """A run of one step, which a tolerance of 1 allows: the polynomial of order 7 is off by O(h^8)
    inside it.
    """
    monkeypatch.setattr(
        "attnlab.engine.options.LARGEST_TOLERANCE", 1.0
    )  # a user could not ask for it
    steps, parts, errors = (
        np.array([0.15, 0.12, 0.1, 0.08]),
        np.array([0.13, 0.31, 0.5, 0.72, 0.9]),
        [],
    )
    for h in steps:
        run = _run(name, frame, times=h * parts, t_end=h, rtol=1.0)
        assert (run.stats["steps"], run.stats["rejected"]) == (1, 0)
        errors.append(np.abs(getattr(run, frame) - _truth_in(name, frame, h * parts)).max())
    errors = np.array(errors)
    usable = errors > 2e-14
    assert usable.sum() >= 3
    order = observed_order(errors[usable], steps[usable]) - 1
    assert 6.5 < order < 7.6


# ------------------------------------------------------------------------------------------- flows
# that are not smooth


def test_relu_converges_and_keeps_its_order_between_switches():
    x0, layer = _tokens(seed=2), {"sigma": "relu", "W": np.eye(D)}
    w = al.Weights(Q=Q1, K=K1, V=V1)

    def end(stepper, t_end, dt):
        return al.simulate(w, x0, times=[t_end], stepper=stepper, dt=dt, feedforward=layer).z[0]

    # across switches of the sign: convergence, at least first order
    fine = end("rk4", 1.0, 1 / 8192)
    errors = [np.abs(end("rk4", 1.0, 1 / count) - fine).max() for count in (32, 128, 512)]
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    adaptive = al.simulate(w, x0, times=[1.0], rtol=1e-10, feedforward=layer).z[0]
    assert np.abs(adaptive - fine).max() < 1e-7
    # before the first switch: full order. No sign of the argument changes on [0, t_quiet]:
    t_quiet = 0.1
    path = feedforward_path(Q1, K1, V1, x0, np.linspace(0.01, t_quiet, 10), **layer).astype(float)
    signs = [
        np.sign(_drift(Q1, K1, V1, z, t))
        for z, t in zip([x0, *path], np.linspace(0, t_quiet, 11), strict=True)
    ]
    assert all((sign == signs[0]).all() for sign in signs)
    errors = [np.abs(end("rk4", t_quiet, t_quiet / count) - path[-1]).max() for count in (1, 2, 4)]
    assert abs(observed_order(errors, [1, 1 / 2, 1 / 4]) - 4) < 0.35


def _drift(Q, K, V, z, t):
    P = loop_attention(Q, K, z @ expm(t * V).T)
    return (P @ z - z) @ V.T


def test_hardmax_converges_and_is_exact_in_order_between_switches():
    V, x0 = C6, np.random.default_rng(5).uniform(-1, 1, (6, 2))
    w = al.Weights(V=V)

    def end(stepper, t_end, dt, **options):
        return al.simulate(
            w, x0, times=[t_end], kernel="hardmax", stepper=stepper, dt=dt, frame="x", **options
        ).x[0]

    # between switches x_i' = V x_leader(i), leaders follow themselves or others: linear, with a
    # closed form
    t_quiet = 0.05
    leaders = [
        loop_attention(np.eye(2), np.eye(2), x, kernel="hardmax")
        for x in _hard_path(V, x0, t_quiet, 500)
    ]
    assert all((P == leaders[0]).all() for P in leaders)
    exact = expm(t_quiet * np.kron(leaders[0], V)) @ x0.ravel()
    for stepper, order, counts in (("euler", 1, (10, 20, 40)), ("rk4", 4, (1, 2, 4))):
        errors = [
            np.abs(end(stepper, t_quiet, t_quiet / count).ravel() - exact).max() for count in counts
        ]
        assert abs(observed_order(errors, 1 / np.array(counts)) - order) < 0.35
    # across switches: converges to the run whose switches are resolved by a hundred thousand steps
    t_end = 2.0
    path = _hard_path(V, x0, t_end, 2000)
    assert any(
        (loop_attention(np.eye(2), np.eye(2), x, kernel="hardmax") != leaders[0]).any()
        for x in path[::100]
    )
    fine = end("rk4", t_end, t_end / 65536)
    errors = [np.abs(end("rk4", t_end, t_end / count) - fine).max() for count in (64, 512, 4096)]
    assert errors[1] < errors[0] / 2 and errors[2] < errors[1] / 2
    adaptive = al.simulate(w, x0, times=[t_end], kernel="hardmax", rtol=1e-8).x[0]
    assert np.abs(adaptive - fine).max() < 5 * errors[2]


def _hard_path(V, x, t_end, count):
    path = [x]
    for _ in range(count):
        x = x + t_end / count * loop_velocity(
            np.eye(2)[None], np.eye(2)[None], V[None], x, kernel="hardmax"
        )
        path.append(x)
    return path


# ------------------------------------------------------------------------------------------- the
# published recursions


def _published_steps(V, z, dt, count):
    """The published scripts: z_i += dt sum_j P_ij V (z_j - z_i), P from exp(tV) z."""
    for k in range(count):
        P = loop_attention(np.eye(len(V)), np.eye(len(V)), z @ expm(k * dt * V).T)
        new = z.copy()
        for i in range(len(z)):
            for j in range(len(z)):
                new[i] = new[i] + dt * P[i, j] * (V @ (z[j] - z[i]))
        z = new
    return z


@pytest.mark.parametrize("V", [np.eye(2), C6], ids=["C4", "C6"])
@pytest.mark.parametrize("frame", ["auto", "z"])
def test_euler_in_z_is_the_published_recursion(V, frame):
    x0 = np.random.default_rng(0).uniform(-5, 5, (20, 2))
    run = al.simulate(al.Weights(V=V), x0, t_end=5.0, stepper="euler", dt=0.1, frame=frame, saves=3)
    expected = _published_steps(V, x0, 0.1, 50)
    assert np.abs(run.z[-1] - expected).max() <= 1e-12 * np.abs(expected).max()
    assert (
        np.abs(run.z[1] - _published_steps(V, x0, 0.1, 25)).max() <= 1e-12 * np.abs(expected).max()
    )


def _layer_steps(Q, K, V, x, dt, count, **options):
    path = [x]
    for _ in range(count):
        x = x + dt * loop_velocity(Q, K, V, x, **options)
        path.append(x)
    return np.array(path)


@pytest.mark.parametrize("V", [np.eye(2), C6], ids=["C4", "C6"])
def test_layers_are_the_recursion_in_x(V):
    x0, eye = np.random.default_rng(1).uniform(-5, 5, (8, 2)), np.eye(2)[None]
    run = al.simulate(al.Weights(V=V), x0, layers=50, dt=0.1)
    expected = _layer_steps(eye, eye, V[None], x0, 0.1, 50)
    np.testing.assert_allclose(run.times, 0.1 * np.arange(51), rtol=1e-15)
    worst = np.abs(run.x - expected).max(axis=(1, 2)) / np.abs(expected).max(axis=(1, 2))
    assert worst.max() <= 1e-12


def test_layers_default_to_the_residual_step_of_one_and_take_several_heads():
    x0 = 0.5 * X0
    run = al.simulate(al.Weights(Q=Q3, K=K3, V=V3), x0, layers=4, mask="causal", beta=0.5)
    expected = _layer_steps(Q3, K3, V3, x0, 1.0, 4, beta=0.5, mask="causal")
    assert np.abs(run.x - expected).max() <= 1e-12 * np.abs(expected).max()
    assert run.times.tolist() == [0, 1, 2, 3, 4]


def test_layers_on_the_sphere_are_post_normed():
    x = x0 = _on_sphere(X0)
    run = al.simulate(al.Weights(Q=Q1, K=K1, V=V1), x0, layers=5, dt=0.3, geometry="sphere")
    for _ in range(5):
        x = _on_sphere(x + 0.3 * loop_velocity(Q1[None], K1[None], V1[None], x))
    assert np.abs(run.x[-1] - x).max() <= 1e-13
    assert run.z is None


def test_z_of_layers_is_x_unwound_by_powers_of_R():
    x0 = np.random.default_rng(2).uniform(-5, 5, (6, 2))
    run = al.simulate(al.Weights(V=C6), x0, layers=60, dt=0.25, saves=4)
    with mp.workdps(50):
        R = mp.eye(2) + mp.mpf(0.25) * mp.matrix(C6.tolist())
        for time, x, z in zip(run.times, run.x, run.z, strict=True):
            inverse = R ** -round(time / 0.25) if time > 0 else mp.eye(2)
            expected = np.array(
                [[float(c) for c in inverse * mp.matrix(token.tolist())] for token in x]
            )
            # R^-k x loses the ratio of R's largest and smallest growth: (1 + 0.25*1.348)^60 / (1 -
            # 0.25*0.068)^60 roundings of x
            lost = ((1 + 0.25 * 1.3481) / (1 - 0.25 * 0.0684)) ** (time / 0.25)
            assert np.abs(z - expected).max() <= 1e-14 * lost * np.abs(expected).max()


def test_discrete_rescaling():
    """z^{k+1} = z^k + dt sum_j P_ij(R^k z^k) R^{-1} V (z_j - z_i), R = I + dt V."""
    dt, x0 = 0.2, np.random.default_rng(4).uniform(-2, 2, (6, 2))
    run = al.simulate(al.Weights(V=C6), x0, layers=12, dt=dt)
    R = np.eye(2) + dt * C6
    RV, z = np.linalg.solve(R, C6), x0
    for k in range(12):
        P = loop_attention(np.eye(2), np.eye(2), z @ np.linalg.matrix_power(R, k).T)
        z = z + dt * (P @ z - z) @ RV.T
        assert np.abs(run.z[k + 1] - z).max() <= 1e-11 * np.abs(z).max()


def test_discrete_rescaling_of_several_heads():
    """z^{k+1} = z^k + dt sum_h sum_j P^h_ij R^{-(k+1)} V_h R^k (z_j - z_i), R = I + dt sum_h
    V_h.
    """
    dt, x0 = 0.1, 0.7 * X0
    run = al.simulate(al.Weights(Q=Q3, K=K3, V=V3), x0, layers=8, dt=dt)
    R, z = np.eye(D) + dt * V3.sum(axis=0), x0
    for k in range(8):
        power, x = np.linalg.matrix_power(R, k), z @ np.linalg.matrix_power(R, k).T
        change = np.zeros_like(z)
        for h in range(3):
            P = loop_attention(Q3[h], K3[h], x)
            change += (P @ z - z) @ (np.linalg.inv(power @ R) @ V3[h] @ power).T
        z = z + dt * change
        assert np.abs(run.z[k + 1] - z).max() <= 1e-12 * np.abs(z).max()


@pytest.mark.parametrize("V", [np.eye(2), C6], ids=["C4", "C6"])
def test_euler_in_z_and_layers_are_different_discretisations(V):
    """tokens in [-5, 5]^2 end about 2e-2 apart at T = 5, dt = 0.1 (median over seeds)."""
    gaps = []
    for seed in range(12):
        x0 = np.random.default_rng(seed).uniform(-5, 5, (20, 2))
        stepped = al.simulate(
            al.Weights(V=V), x0, times=[5.0], stepper="euler", dt=0.1, frame="z"
        ).z[0]
        layered = al.simulate(al.Weights(V=V), x0, layers=50, dt=0.1, times=[5.0]).z[0]
        gaps.append(np.abs(stepped - layered).max())
    assert 2e-2 / 3 < np.median(gaps) < 2e-2 * 3


# ------------------------------------------------------------------------------------------- times


@pytest.mark.parametrize("stepper", ["adaptive", "euler", "rk4"])
def test_saved_times_do_not_depend_on_each_other(stepper):
    w, x0 = al.Weights(V=C6), np.random.default_rng(3).uniform(-2, 2, (7, 2))
    dt = {} if stepper == "adaptive" else {"dt": 0.07}
    times = [0.0, 0.1234, 0.5, 0.777, 1.5, 1.9, 2.0]
    together = al.simulate(w, x0, times=times, t_end=2.0, stepper=stepper, **dt)
    assert together.times.tolist() == times
    for i, time in enumerate(times[1:], start=1):
        alone = al.simulate(w, x0, times=[time], t_end=2.0, stepper=stepper, **dt)
        assert np.array_equal(
            alone.states[0], together.states[i]
        )  # the same steps, the same polynomial
        if stepper == "adaptive":  # ending there: other steps, the same solution
            ended = al.simulate(w, x0, times=[time])
            assert np.abs(ended.x[0] - together.x[i]).max() <= 20e-8 * np.abs(together.x[i]).max()


def test_dense_output_is_as_accurate_as_the_steps():
    x0 = np.random.default_rng(8).uniform(-2, 2, (6, 2))
    times = np.linspace(0.05, 2.0, 40)
    run = al.simulate(al.Weights(V=C6), x0, times=times, rtol=1e-8)
    expected = truth(np.eye(2), np.eye(2), C6, x0, times)
    assert run.stats["steps"] < 40  # so that most of the times are inside steps
    worst = np.abs(run.x - expected).max(axis=(1, 2)) / np.abs(expected).max(axis=(1, 2))
    assert worst.max() < 20e-8


@pytest.mark.parametrize("stepper", ["euler", "rk4"])
def test_the_last_step_is_cut_to_t_end(stepper):
    w, x0 = al.Weights(V=C6), np.random.default_rng(3).uniform(-2, 2, (7, 2))
    run = al.simulate(w, x0, times=[0.9, 1.0], stepper=stepper, dt=0.3, frame="x")
    assert run.stats["steps"] == 4 and run.stats["reached"] == 1.0
    eye = np.eye(2)[None]
    whole = al.simulate(w, x0, times=[0.9], stepper=stepper, dt=0.3, frame="x").x[0]
    assert (
        np.abs(run.x[0] - whole).max() <= 1e-14 * np.abs(whole).max()
    )  # not to the bit: 3 * 0.3 is not 0.9
    last = al.simulate(w, whole, times=[0.1], stepper=stepper, dt=0.3, frame="x").x[0]
    assert np.abs(run.x[1] - last).max() <= 1e-14 * np.abs(last).max()
    if stepper == "euler":
        expected = whole + (1.0 - 0.9) * loop_velocity(eye, eye, C6[None], whole)
        assert np.abs(run.x[1] - expected).max() <= 1e-14 * np.abs(expected).max()


def test_euler_between_steps_is_the_straight_line():
    w, x0 = al.Weights(V=C6), np.random.default_rng(3).uniform(-2, 2, (7, 2))
    run = al.simulate(w, x0, times=[0.5, 0.55, 0.6], stepper="euler", dt=0.1, frame="z")
    line = 0.5 * (run.z[0] + run.z[2])
    assert np.abs(run.z[1] - line).max() <= 1e-14 * np.abs(line).max()


def test_rk4_with_the_exact_step_is_the_classical_formula():
    x0, h, eye = np.random.default_rng(3).uniform(-1, 1, (5, 2)), 0.2, np.eye(2)[None]

    def velocity(x):
        return loop_velocity(eye, eye, C6[None], x)

    a = velocity(x0)
    b = velocity(x0 + h / 2 * a)
    c = velocity(x0 + h / 2 * b)
    e = velocity(x0 + h * c)
    expected = x0 + h / 6 * (a + 2 * b + 2 * c + e)
    run = al.simulate(al.Weights(V=C6), x0, times=[h], stepper="rk4", dt=h, frame="x")
    assert np.abs(run.x[0] - expected).max() <= 1e-14 * np.abs(expected).max()


def test_saves_and_times():
    w, x0 = al.Weights(V=C6), np.ones((1, 2))
    assert len(al.simulate(w, x0, t_end=1.0).times) == 101
    assert al.simulate(w, x0, t_end=1.0, saves=5).times.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert al.simulate(w, x0, t_end=1.0, saves=2).times.tolist() == [0, 1]
    run = al.simulate(w, x0, times=(0.3, 0.4), t_end=1.0)
    assert (
        run.times.tolist() == [0.3, 0.4]
        and run.stats["reached"] == 1.0
        and run.x.shape == (2, 1, 2)
    )
    assert np.array_equal(al.simulate(w, x0, times=[0.0, 1.0]).x[0], x0)
    layered = al.simulate(w, x0, layers=10, dt=0.1, saves=3)
    np.testing.assert_allclose(layered.times, [0, 0.5, 1.0], rtol=1e-15)


def test_one_token_is_the_exponential_at_every_saved_time():
    """n = 1: x = e^{tV} x0, z = x0, whatever the frame."""
    x0 = np.array([[1.0, -2.0]])
    for frame in ("x", "z"):
        run = al.simulate(al.Weights(V=C6), x0, t_end=4.0, saves=9, rtol=1e-10, frame=frame)
        for time, x, z in zip(run.times, run.x, run.z, strict=True):
            expected = expm(time * C6) @ x0[0]
            assert np.abs(x[0] - expected).max() <= 2e-9 * np.abs(expected).max()
            assert np.abs(z - x0).max() <= 2e-9 * 2.0


# -------------------------------------------------------------------------------------------
# run.error


def _true_error(run, path, V):
    """The largest error of x and of z, each relative to the largest token of its time: what
    run.error is documented to be.
    """
    z = rescaled(V, path, run.times)
    views = ((run.x, path.astype(float)), (run.z, z))
    return max(
        (np.abs(a - b).max(axis=(1, 2)) / np.abs(b).max(axis=(1, 2))).max() for a, b in views
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("V", [np.eye(2), C6], ids=["C4", "C6"])
def test_certified_error_is_the_true_error(V, seed):
    x0, times = np.random.default_rng(seed).uniform(-5, 5, (8, 2)), np.linspace(0.25, 3.0, 12)
    path = truth(np.eye(2), np.eye(2), V, x0, times)
    run = al.simulate(al.Weights(V=V), x0, times=times, rtol=1e-6, measure_error=True)
    true = _true_error(run, path, V)
    assert 0.2 * true <= run.error <= 20 * true
    stepped = al.simulate(
        al.Weights(V=V), x0, times=times, stepper="euler", dt=0.1, measure_error=True
    )
    true = _true_error(stepped, path, V)
    assert true > 1e-4  # Euler's own error, not the reference's
    assert abs(stepped.error - true) <= 0.01 * true


def test_error_is_none_unless_asked_and_one_number_a_member():
    w, x0 = al.Weights(V=C6), np.random.default_rng(0).uniform(-1, 1, (3, 5, 2))
    assert al.simulate(w, x0[0], t_end=1.0).error is None
    batch = al.simulate(w, x0, t_end=1.0, measure_error=True, rtol=1e-5)
    assert batch.error.shape == (3,)
    for member, error in enumerate(batch.error):
        assert al.simulate(w, x0[member], t_end=1.0, measure_error=True, rtol=1e-5).error == error
    layered = al.simulate(w, x0, layers=5, dt=0.1, measure_error=True)
    assert layered.error.shape == (3,) and layered.error.max() < 1e-13


def test_certified_error_on_the_sphere():
    x0, times = _on_sphere(_tokens(n=6)), np.linspace(0.5, 3.0, 6)
    run = al.simulate(
        al.Weights(V=np.eye(D)),
        x0,
        times=times,
        rtol=1e-6,
        beta=4.0,
        geometry="sphere",
        measure_error=True,
    )
    path = extrapolate(_sphere_field(4.0), x0, times, tolerance=1e-16).astype(float)
    true = (np.abs(run.x - path).max(axis=(1, 2)) / np.abs(path).max(axis=(1, 2))).max()
    assert 0.2 * true <= run.error <= 20 * true


def _sphere_field(beta):
    from extended import long_field

    eye = np.eye(D)
    return long_field(eye, eye, eye, beta=beta, geometry="sphere")


def test_an_absolute_tolerance_stays_absolute_while_tokens_grow():
    """One token, x' = (1 - 6 i) x. From t = 30 on it is larger than 10^13, beside which atol = 1e-3
    is nothing: rtol decides.

    The engine divides by powers of two on the way, and what is absolute must follow.
    """
    V = np.array([[1.0, 6.0], [-6.0, 1.0]])
    run = al.simulate(
        al.Weights(V=V), [[1.0, 0.0]], times=[0.0, 30.0, 60.0], frame="x", rtol=1e-10, atol=1e-3
    )
    early, late = (complex(*tokens[0]) for tokens in run.x[1:])
    assert abs(late / early / np.exp((1.0 - 6.0j) * 30.0) - 1.0) < 1e-8
