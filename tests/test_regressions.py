"""Defects that a review found, each with the input that showed it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import attnlab as al
from clock import PATIENCE, is_soon, wait_until_at_work

IDENTITY = np.eye(2)


def test_certify_refuses_a_tolerance_it_cannot_improve_on():
    with pytest.raises(ValueError, match="at least 1e-13"):
        al.simulate(al.Weights(V=IDENTITY), [[1.0, 0.0]], t_end=1.0, rtol=1e-14, measure_error=True)


def test_certify_when_z_cannot_be_represented():
    run = al.simulate(
        al.Weights(V=-IDENTITY),
        np.ones((1, 2)),
        t_end=1000.0,
        saves=3,
        measure_error=True,
        throw=False,
    )
    assert run.error is None or not run.error > 1e-6


def test_the_wall_is_found_where_the_heads_almost_cancel():
    """The sum of the V_h says nothing of the growth: Q differs in sign, so the heads attend to
    opposite tokens.
    """
    rng = np.random.default_rng(0)
    w = al.Weights(
        Q=[IDENTITY, -IDENTITY], K=[IDENTITY, IDENTITY], V=[IDENTITY, -(1 - 1e-3) * IDENTITY]
    )
    run = al.simulate(w, rng.uniform(-5, 5, (12, 2)), t_end=60.0, throw=False)
    assert run.status is al.Status.PAST_DOUBLE_PRECISION
    assert run.stats["reached"] < 20.0  # growth is at most e^{2 t}


def test_a_post_norm_layer_that_divides_by_zero_is_not_ok():
    run = al.simulate(
        al.Weights(V=-IDENTITY), [[1.0, 0.0]], geometry="sphere", layers=1, throw=False
    )
    assert run.status is al.Status.NON_FINITE
    assert np.isfinite(run.x).all()


@pytest.mark.parametrize("size", [1.5e308, 1e-310])
def test_tokens_at_the_ends_of_the_range(size):
    run = al.simulate(al.Weights(V=-IDENTITY), size * np.array([[1.0, 0.5]]), t_end=1.0, saves=2)
    np.testing.assert_allclose(run.x[0] / size, [[1.0, 0.5]], rtol=1e-12)
    np.testing.assert_allclose(run.x[-1] / size, np.exp(-1.0) * np.array([[1.0, 0.5]]), rtol=1e-6)


def test_attention_of_huge_tokens_is_a_number():
    x0 = 1e150 * np.random.default_rng(0).normal(size=(6, 2))
    P = al.attention(al.simulate(al.Weights(V=IDENTITY), x0, t_end=12.0), at=-1)
    np.testing.assert_allclose(P.sum(axis=-1), 1.0)
    P = al.attention(
        al.simulate(al.Weights(Q=1e150 * IDENTITY, K=1e150 * IDENTITY, V=IDENTITY), x0, t_end=1.0),
        at=0,
    )
    expected = np.argmax(x0 @ x0.T / 1e300, axis=1)
    np.testing.assert_array_equal(P[0].argmax(axis=1), expected)


def test_a_batch_of_very_different_sizes_equals_the_single_runs():
    x = np.random.default_rng(0).normal(size=(2, 5, 2)) * np.array([1.0, 1e290])[:, None, None]
    batch = al.simulate(al.Weights(V=IDENTITY), x, t_end=2.0)
    single = al.simulate(al.Weights(V=IDENTITY), x[0], t_end=2.0)
    np.testing.assert_array_equal(batch.x[0], single.x)


def test_no_time_at_all_on_the_large_path():
    x0 = np.random.default_rng(0).normal(size=(3, 130))
    run = al.simulate(al.Weights(V=np.eye(130)), x0, times=[0.0])
    np.testing.assert_allclose(run.x[0], x0, rtol=1e-14)


def test_records_cannot_be_changed():
    run = al.simulate(
        al.Weights(V=IDENTITY),
        [[1.0, 0.0], [0.0, 1.0]],
        t_end=1.0,
        stepper="euler",
        dt=0.1,
        frame="x",
    )
    for array in (run.x, run.z, run.states, run.times):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 7.0


FORK = """
import os, numpy as np, attnlab as al
w, x0 = al.Weights(V=np.eye(2)), np.random.default_rng(0).normal(size=(5, 2))
al.simulate(w, x0, t_end=1.0)
child = os.fork()
if child == 0:
    al.simulate(w, x0, t_end=1.0)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is a Unix affair")
def test_a_forked_child_can_simulate():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout.strip() == "0", done.stderr


INTERRUPTED = """
import signal, numpy as np, attnlab as al
signal.signal(signal.SIGINT, signal.default_int_handler)     # a shell that runs us in the background had it ignored
x0 = np.random.default_rng(0).normal(size=SHAPE)
w = al.Weights(V=np.eye(SHAPE[-1]))
al.velocity(w, x0 if x0.ndim == 2 else x0[0])                 # everything is compiled before the clock starts
al.simulate(w, x0[..., :2, :], t_end=5.0, saves=2)
print("ready", flush=True)
run = al.simulate(w, x0, t_end=5.0, saves=5, throw=False)
print(str(run.status if not run.batch else run.status[-1]), len(run.times), flush=True)
"""


@pytest.mark.parametrize("shape", [(6000, 64), pytest.param((600, 400, 8), marks=pytest.mark.slow)])
def test_ctrl_c_inside_large_work(shape):
    assert is_soon(
        lambda: seconds_to_answer([sys.executable, "-c", INTERRUPTED.replace("SHAPE", repr(shape))])
    )


def seconds_to_answer(command: list[str]) -> float:
    """From the signal to the end of the process, which must say that it was interrupted."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        wait_until_at_work(process.pid, 1.5)  # it is integrating by now
        began = time.perf_counter()
        process.send_signal(signal.SIGINT)
        try:
            answer, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        took = time.perf_counter() - began
    assert "INTERRUPTED" in answer
    return took
