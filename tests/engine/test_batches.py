"""A batch is a loop: the same bits whatever the batch, the path, the number of threads; a member
that fails fails alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnlab as al
from attnlab import Status
from attnlab.engine import members, plan

C6 = np.array([[0.64709742, 0.81911926], [0.61210449, 0.63263484]])


def _same_bits(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _assert_batch_is_loop(weights, x0, path, **options):
    batch = al.simulate(weights, x0, throw=False, **options)
    assert batch.stats["path"] == path
    lead = x0.shape[:-2]
    assert batch.batch == lead and batch.status.shape == lead
    for index in np.ndindex(lead):
        single = al.simulate(weights, x0[index], throw=False, **options)
        saved = len(single.times)
        assert batch.status[index] is single.status
        assert _same_bits(np.ascontiguousarray(batch.states[index][:saved]), single.states)
        assert np.isnan(batch.states[index][saved:]).all()
        for name in ("steps", "rejected", "evaluations", "reached"):
            assert batch.stats[name][index] == single.stats[name]
    return batch


@pytest.mark.parametrize(
    "options",
    [
        {"t_end": 3.0, "saves": 7},
        {"t_end": 3.0, "saves": 7, "frame": "z"},
        {"t_end": 2.0, "stepper": "euler", "dt": 0.1, "saves": 4},
        {"t_end": 2.0, "stepper": "rk4", "dt": 0.07, "saves": 4, "frame": "x"},
        {"layers": 6, "dt": 0.5},
        {"t_end": 1.0, "kernel": "hardmax", "saves": 3, "mask": "causal"},
        {"t_end": 1.0, "feedforward": {"sigma": "tanh"}, "saves": 3},
    ],
    ids=["x", "z", "euler", "rk4", "layers", "hardmax", "feedforward"],
)
def test_batch_is_a_loop_on_the_compiled_path(options):
    # members of very different stiffness: each must take its own steps
    x0 = (
        np.random.default_rng(0).uniform(-1, 1, (6, 9, 2))
        * np.array([0.1, 5, 1, 3, 0.5, 2])[:, None, None]
    )
    batch = _assert_batch_is_loop(al.Weights(V=C6), x0, "compiled", **options)
    if "stepper" not in options and "layers" not in options:
        assert len(set(batch.stats["evaluations"])) > 1


def test_batch_is_a_loop_on_the_threaded_path(monkeypatch):
    monkeypatch.setattr(plan, "MOST_PAIRS", 0)
    rng = np.random.default_rng(1)
    _assert_batch_is_loop(
        al.Weights(V=C6), rng.uniform(-2, 2, (3, 11, 2)), "threaded", t_end=2.0, saves=4
    )
    V = 0.3 * rng.standard_normal((2, 5, 5))
    _assert_batch_is_loop(
        al.Weights(V=V), rng.uniform(-1, 1, (2, 7, 5)), "threaded", t_end=1.0, saves=3
    )


def test_batch_is_a_loop_for_a_truly_large_system():
    d, rng = plan.MOST_COORDINATES + 6, np.random.default_rng(2)
    V = rng.standard_normal((d, d)) / np.sqrt(d)
    _assert_batch_is_loop(
        al.Weights(V=V), 0.2 * rng.standard_normal((2, 12, d)), "threaded", t_end=1.0, saves=3
    )


def test_two_batch_axes():
    x0 = np.random.default_rng(3).uniform(-2, 2, (2, 3, 5, 2))
    batch = _assert_batch_is_loop(al.Weights(V=C6), x0, "compiled", t_end=1.0, saves=4)
    assert batch.x.shape == batch.z.shape == (2, 3, 4, 5, 2)
    flat = al.simulate(al.Weights(V=C6), x0.reshape(6, 5, 2), t_end=1.0, saves=4)
    assert _same_bits(flat.x.reshape(batch.x.shape), batch.x)
    assert al.attention(batch).shape == (2, 3, 1, 5, 5)
    derived = al.simulate(al.Weights(V=C6), x0[1, 2], t_end=1.0, saves=4)
    np.testing.assert_allclose(batch.z[1, 2], derived.z, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(
        al.attention(batch)[1, 2], al.attention(derived), rtol=1e-13, atol=1e-15
    )


def test_a_batch_of_one_keeps_its_axis():
    x0 = np.random.default_rng(4).uniform(-2, 2, (1, 5, 2))
    run = al.simulate(al.Weights(V=C6), x0, t_end=1.0, saves=4)
    assert run.x.shape == (1, 4, 5, 2) and run.status.shape == (1,)


PROGRAM = """
import sys
import numpy as np
import attnlab as al
from attnlab.engine import plan, threads
rng = np.random.default_rng(0)
small = al.simulate(al.Weights(V=np.eye(2)), rng.uniform(-3, 3, (7, 10, 2)), t_end=3.0, saves=5)
V = 0.3 * rng.standard_normal((3, 6, 6))
heads = al.simulate(al.Weights(V=V), rng.uniform(-1, 1, (2, 300, 6)), t_end=0.3, saves=2)
plan.MOST_PAIRS = 0
blocks = al.simulate(al.Weights(V=np.eye(3)), rng.uniform(-1, 1, (1, 1100, 3)), t_end=0.3, saves=2)
large = al.simulate(al.Weights(V=V), rng.uniform(-1, 1, (2, 300, 6)), t_end=0.3, saves=2)
assert small.stats["path"] == heads.stats["path"] == "compiled" and blocks.stats["path"] == large.stats["path"] == "threaded"
states = {"small": small.states, "heads": heads.states, "blocks": blocks.states, "large": large.states}
np.savez(sys.argv[1], threads=threads.thread_count(), **states)
"""


def test_any_number_of_threads_gives_the_same_bits(tmp_path: Path):
    found = []
    for count in (1, 2):
        target = tmp_path / f"threads_{count}.npz"
        environment = {**os.environ, "NUMBA_NUM_THREADS": str(count)}
        subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM, str(target)],
            check=True,
            env=environment,
            timeout=120,
        )
        found.append(np.load(target))
    one, two = found
    available = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    assert (int(one["threads"]), int(two["threads"])) == (1, min(2, available))
    for name in ("small", "heads", "blocks", "large"):
        assert _same_bits(one[name], two[name]), name


# -------------------------------------------------------------------------------------------
# members that fail


def _with_one_bad_member():
    """Three starts; exp_mean in R^d blows up in finite time from the second one only."""
    x0 = np.random.default_rng(5).uniform(-0.3, 0.3, (3, 4, 2))
    x0[1] += 3.0
    return al.Weights(V=np.eye(2)), x0, {"kernel": "exp_mean", "t_end": 0.5, "saves": 11}


def test_a_member_that_fails_fails_alone():
    weights, x0, options = _with_one_bad_member()
    run = al.simulate(weights, x0, throw=False, **options)
    assert [status is Status.OK for status in run.status] == [True, False, True]
    assert run.status[1] in (Status.NON_FINITE, Status.STALLED) and not run.is_ok
    assert run.times.tolist() == np.linspace(0, 0.5, 11).tolist()  # the others are whole
    reached = run.stats["reached"][1]
    assert 0 < reached < 0.5
    good = run.times <= reached
    assert np.isfinite(run.x[1][good]).all() and np.isnan(run.x[1][~good]).all()
    for member in (0, 2):
        alone = al.simulate(weights, x0[member], **options)
        assert _same_bits(np.ascontiguousarray(run.states[member]), alone.states)
    alone = al.simulate(weights, x0[1], throw=False, **options)
    assert alone.times.tolist() == run.times[good].tolist()  # a single run is cut
    assert alone.status is run.status[1]
    assert np.isfinite(run.z[0]).all() and np.isnan(run.z[1][~good]).all()


def test_a_failed_member_raises_with_its_number():
    weights, x0, options = _with_one_bad_member()
    with pytest.raises(
        al.RunFailed, match=r"Member 1 of the batch \(1 of 3 did not finish\)"
    ) as caught:
        al.simulate(weights, x0, **options)
    run = caught.value.run
    largest = (x0[1] ** 2).sum(axis=1).max()  # the reason belongs to that member
    assert f"beta |x|^2 = {largest:.3g}," in str(caught.value) and run.status[0] is Status.OK
    with pytest.raises(al.RunFailed, match="Member 0 of the batch .2 of 2"):
        al.simulate(weights, x0[[1, 1]], **options)


def test_every_member_may_fail():
    weights, x0, options = _with_one_bad_member()
    run = al.simulate(weights, x0[[1, 1]], throw=False, **options)
    assert not any(status is Status.OK for status in run.status)
    assert (
        len(run.times) < 11 and np.isfinite(run.states).all()
    )  # nobody got further: cut, not padded


def test_max_steps_is_a_member_s_own():
    x0 = np.random.default_rng(6).uniform(-1, 1, (2, 6, 2)) * np.array([0.01, 5])[:, None, None]
    steps = [al.simulate(al.Weights(V=C6), x, t_end=4.0).stats for x in x0]
    most = [s["steps"] + s["rejected"] for s in steps]
    assert most[0] < most[1]
    run = al.simulate(al.Weights(V=C6), x0, t_end=4.0, max_steps=most[0], throw=False)
    assert run.status.tolist() == [Status.OK, Status.MAX_STEPS]


def test_certified_batch_with_a_failed_member():
    weights, x0, options = _with_one_bad_member()
    run = al.simulate(weights, x0, throw=False, measure_error=True, **options)
    assert (
        run.error.shape == (3,)
        and (run.error[[0, 2]] < 1e-6).all()
        and np.isfinite(run.error).all()
    )


# ------------------------------------------------------------------------------------------- the
# two paths agree


def _both(monkeypatch, weights, x0, **options):
    small = al.simulate(weights, x0, **options)
    with monkeypatch.context() as patch:
        patch.setattr(plan, "MOST_PAIRS", 0)
        large = al.simulate(weights, x0, **options)
    assert (small.stats["path"], large.stats["path"]) == ("compiled", "threaded")
    return small, large


def _assert_equal_paths(monkeypatch, weights, x0, **options):
    small, large = _both(monkeypatch, weights, x0, **options)
    assert np.abs(small.x - large.x).max() <= 1e-10 * np.abs(small.x).max()
    if small.z is not None:
        assert np.abs(small.z - large.z).max() <= 1e-10 * np.abs(small.z).max()
    assert small.status is large.status


def _weights(d, h=None, k=None, factored=False, seed=0):
    rng = np.random.default_rng(seed)
    lead = () if h is None else (h,)
    k = k or d
    Q, K = (rng.standard_normal((*lead, k, d)) / np.sqrt(d) for _ in range(2))
    if factored:
        V = tuple(rng.standard_normal((*lead, *s)) / np.sqrt(d) for s in ((d, 2), (2, d)))
    else:
        V = rng.standard_normal((*lead, d, d)) / d
    return al.Weights(Q=Q, K=K, V=V)


FIXED = {
    "stepper": "rk4",
    "dt": 0.05,
    "saves": 3,
    "t_end": 1.0,
}  # the same steps on both paths: only rounding differs
SIZE = {
    "softmax": 0.7,
    "hardmax": 0.7,
    "exp_mean": 0.15,
}  # larger tokens blow up in finite time under exp_mean
SHAPES = {
    "unrolled": {"d": 3},
    "tiled": {"d": 7},
    "heads": {"d": 3, "h": 3},
    "heads_tiled": {"d": 6, "h": 2},
    "rectangular": {"d": 5, "k": 2},
    "factored": {"d": 6, "factored": True},
    "factored_heads": {"d": 6, "h": 2, "factored": True},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("frame", ["x", "z"])
def test_large_equals_small_for_every_shape(monkeypatch, shape, frame):
    weights = _weights(**SHAPES[shape])
    x0 = np.random.default_rng(1).standard_normal((13, weights.d))
    _assert_equal_paths(monkeypatch, weights, x0, frame=frame, **FIXED)


@pytest.mark.parametrize("kernel", ["softmax", "exp_mean", "hardmax"])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
@pytest.mark.parametrize("d", [3, 7])
def test_large_equals_small_for_every_equation(monkeypatch, kernel, mask, geometry, d):
    weights, x0 = _weights(d), np.random.default_rng(2).standard_normal((13, d))
    if geometry == "sphere":
        x0 /= np.linalg.norm(x0, axis=-1, keepdims=True)
    x0 = x0 * (1.0 if geometry == "sphere" else SIZE[kernel])
    _assert_equal_paths(
        monkeypatch, weights, x0, kernel=kernel, mask=mask, geometry=geometry, beta=1.3, **FIXED
    )


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", ["softmax", "exp_mean", "hardmax"])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("frame", ["x", "z"])
@pytest.mark.parametrize("beta", [-0.8, 0.0, 1.3])
def test_large_equals_small_for_everything_at_once(monkeypatch, shape, kernel, mask, frame, beta):
    weights = _weights(**SHAPES[shape])
    x0 = SIZE[kernel] * np.random.default_rng(3).standard_normal((9, weights.d))
    _assert_equal_paths(
        monkeypatch, weights, x0, kernel=kernel, mask=mask, frame=frame, beta=beta, **FIXED
    )


@pytest.mark.parametrize("sigma", ["relu", "tanh", "identity"])
@pytest.mark.parametrize("d", [3, 7])
def test_large_equals_small_with_feedforward(monkeypatch, sigma, d):
    rng = np.random.default_rng(4)
    W, bias, bias_outside = (
        rng.standard_normal((d, d)) / d,
        rng.standard_normal(d),
        rng.standard_normal(d),
    )
    layer = {"sigma": sigma, "W": W, "bias": bias, "bias_outside": bias_outside}
    _assert_equal_paths(
        monkeypatch, _weights(d), rng.standard_normal((13, d)), feedforward=layer, **FIXED
    )


@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
@pytest.mark.parametrize("shape", ["unrolled", "tiled", "heads", "factored"])
def test_large_equals_small_for_layers(monkeypatch, geometry, shape):
    weights = _weights(**SHAPES[shape])
    x0 = np.random.default_rng(5).standard_normal((13, weights.d))
    if geometry == "sphere":
        x0 /= np.linalg.norm(x0, axis=-1, keepdims=True)
    _assert_equal_paths(monkeypatch, weights, x0, geometry=geometry, layers=12, dt=0.5)


@pytest.mark.parametrize("d", [2, 6])
def test_large_equals_small_with_adaptive_steps(monkeypatch, d):
    V = C6 if d == 2 else np.diag([1.0, 0.9, 0.5, 0.1, 0.0, -0.5])
    x0 = np.random.default_rng(6).uniform(-2, 2, (10, d))
    _assert_equal_paths(monkeypatch, al.Weights(V=V), x0, t_end=4.0, saves=9, rtol=1e-12)


def test_large_path_knows_the_wall_and_the_scale(monkeypatch):
    x0 = np.random.default_rng(7).uniform(-1, 1, (6, 2))
    small, large = _both(monkeypatch, al.Weights(V=np.eye(2)), x0, t_end=60.0, throw=False)
    assert small.status is large.status is Status.PAST_DOUBLE_PRECISION
    assert abs(len(small.times) - len(large.times)) <= 1
    small, large = _both(monkeypatch, al.Weights(V=C6), 1e150 * x0, t_end=1.0, rtol=1e-12)
    assert np.abs(small.x - large.x).max() <= 1e-10 * np.abs(small.x).max()


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"geometry": "sphere"},
        {"rtol": 1e-11, "t_end": 22.0},
        {"stepper": "rk4", "dt": 0.1},
        {"mask": "causal", "beta": 3.0},
    ],
    ids=str,
)
def test_a_run_that_was_paused_and_went_on_in_a_thread_is_the_same_to_the_last_bit(
    monkeypatch, options, steps
):
    """Short runs are over before a thread has woken up; longer ones are paused and go on there."""
    rng = np.random.default_rng(7)
    x0, V = (
        rng.uniform(-1, 1, (9, 3)),
        np.diag([1.0, 0.9, -0.4]) if "geometry" not in options else np.eye(3),
    )
    if "geometry" in options:
        x0 = x0 / np.linalg.norm(x0, axis=1, keepdims=True)
    weights, options = al.Weights(V=V), {"t_end": 5.0, **options}
    monkeypatch.setattr(members, "_inline_steps", lambda dynamics, n: 0)
    whole = al.simulate(weights, x0, **options)
    monkeypatch.setattr(members, "_inline_steps", lambda dynamics, n: steps)
    paused = al.simulate(weights, x0, **options)
    np.testing.assert_array_equal(paused.states, whole.states)
    np.testing.assert_array_equal(paused.log_scale, whole.log_scale)
    counted = ("steps", "rejected", "evaluations", "reached")
    assert {name: paused.stats[name] for name in counted} == {
        name: whole.stats[name] for name in counted
    }
    assert whole.stats["steps"] > 7
