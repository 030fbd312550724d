"""Every wrong call gets a sentence: what must hold, what was given, what to do. Every impossible
run gets a Status.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import attnlab as al
from attnlab import Status
from clock import PATIENCE, wait_until_at_work

EYE, X0 = al.Weights(V=np.eye(2)), np.array([[1.0, 0.5], [-0.5, 0.2], [0.3, -1.0]])


# -------------------------------------------------------------------------------------------
# weights


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, ["needs V", "(d, d)"]),
        ({"V": np.ones((2, 3))}, ["V must be square", "(1, 2, 3)"]),
        ({"V": np.ones(3)}, ["V must have 2 or 3 axes", "(3,)"]),
        ({"V": np.ones((0, 0))}, ["V must not be empty"]),
        ({"V": "word"}, ["V must be an array of real numbers"]),
        ({"V": [[1j, 0], [0, 1]]}, ["V must be an array of real numbers"]),
        ({"V": np.array([[1j, 0], [0, 1]])}, ["V must be an array of real numbers"]),
        ({"V": [[1.0, np.nan], [0, 1]]}, ["V must be finite", "(0, 1)", "nan"]),
        ({"V": np.eye(2), "Q": [[np.inf, 0], [0, 1]]}, ["Q must be finite", "(0, 0)", "inf"]),
        ({"V": np.eye(2), "K": [[0, 0], [-np.inf, 1]]}, ["K must be finite", "(1, 0)", "-inf"]),
        (
            {"V": np.eye(2), "Q": np.ones((1, 2))},
            ["Q and K must have the same shape", "(1, 1, 2)", "(1, 2, 2)"],
        ),
        (
            {"V": np.eye(2), "Q": np.ones((4, 3)), "K": np.ones((4, 3))},
            ["same dimension as V", "d = 3", "d = 2"],
        ),
        (
            {"V": np.ones((3, 3, 3)), "Q": np.ones((2, 3, 3))},
            ["same number of heads", "Q has 2, K has 1, V has 3", "Give each"],
        ),
        ({"V": (np.ones((3, 1)),)}, ["pair (B, C)", "1 items"]),
        (
            {"V": (np.ones((3, 1)), np.ones((2, 3)))},
            ["(h, d, r) and (h, r, d)", "(1, 3, 1)", "(1, 2, 3)"],
        ),
        ({"V": (np.ones((3, 1)), np.ones((1, 4)))}, ["(h, d, r) and (h, r, d)"]),
        (
            {"V": (np.ones((2, 3, 1)), np.ones((3, 1, 3)))},
            ["same number of heads", "B has 2, C has 3"],
        ),
        ({"V": (np.ones((3, 1)), np.full((1, 3), np.nan))}, ["V[1] must be finite"]),
    ],
)
def test_wrong_weights(parts, words):
    with pytest.raises(ValueError) as caught:
        al.Weights(**parts)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("given", [np.eye(2), (np.eye(2), np.eye(2), np.eye(2)), None, "identity"])
def test_weights_must_be_weights(given):
    with pytest.raises(TypeError, match="must be an attnlab.Weights"):
        al.simulate(given, X0, t_end=1.0)


# ------------------------------------------------------------------------------------------- the
# rest of a call


def _nearest(kind, wrong, right):
    return [f"Unknown {kind} '{wrong}'", f"Did you mean '{right}'?", "Known:"]


UNKNOWN = [
    ({"t_end": 1.0, "stepper": "eular"}, _nearest("stepper", "eular", "euler")),
    ({"t_end": 1.0, "frame": "autos"}, _nearest("frame", "autos", "auto")),
    ({"t_end": 1.0, "kernel": "sofmax"}, _nearest("kernel", "sofmax", "softmax")),
    ({"t_end": 1.0, "geometry": "spere"}, _nearest("geometry", "spere", "sphere")),
    ({"t_end": 1.0, "mask": "casual"}, _nearest("mask", "casual", "causal")),
    ({"t_end": 1.0, "feedforward": {"sigma": "rely"}}, _nearest("activation", "rely", "relu")),
    (
        {"t_end": 1.0, "feedforward": {"sigmas": "relu"}},
        _nearest("parameter of the drift 'feedforward'", "sigmas", "sigma"),
    ),
]


@pytest.mark.parametrize(("options", "words"), UNKNOWN)
def test_unknown_names_get_the_nearest_and_the_list(options, words):
    with pytest.raises(al.UnknownName) as caught:
        al.simulate(EYE, X0, **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_unknown_observable_before_the_run_is_made():
    from attnlab.analysis import observables

    right = next(iter(observables))
    with pytest.raises(al.UnknownName, match=f"Did you mean '{right}'"):
        al.simulate(
            EYE, X0, t_end=1e9, observe=[right + "x"]
        )  # 1e9: a run that was begun would fail otherwise
    with pytest.raises(TypeError, match="observe must be a list of names"):
        al.simulate(EYE, X0, t_end=1.0, observe=right)


WRONG = {
    # times
    "no_end": ({}, ["end of the run", "t_end=", "times=", "layers="]),
    "two_clocks": ({"t_end": 1.0, "layers": 3}, ["two different clocks", "Give one of them"]),
    "t_end_zero": ({"t_end": 0.0}, ["t_end must be a positive number", "0.0"]),
    "t_end_negative": ({"t_end": -1.0}, ["t_end must be a positive number", "-1.0"]),
    "t_end_nan": ({"t_end": float("nan")}, ["t_end must be a positive number", "nan"]),
    "t_end_infinite": ({"t_end": float("inf")}, ["t_end must be a positive finite number", "inf"]),
    "t_end_word": ({"t_end": "5"}, ["t_end must be a positive number", "'5'"]),
    "t_end_true": ({"t_end": True}, ["t_end must be a positive number"]),
    "times_negative": ({"times": [-1.0, 1.0]}, ["times must not be negative", "-1", "-V"]),
    "times_unsorted": ({"times": [0.0, 2.0, 1.0]}, ["ascend strictly", "times[2] = 1", "2"]),
    "times_twice": ({"times": [0.0, 1.0, 1.0]}, ["ascend strictly", "times[2]"]),
    "times_nan": ({"times": [0.0, float("nan")]}, ["times must be finite"]),
    "times_infinite": ({"times": [0.0, float("inf")]}, ["times must be finite"]),
    "times_empty": ({"times": []}, ["at least one number"]),
    "times_matrix": ({"times": [[0.0, 1.0]]}, ["at least one number", "(1, 2)"]),
    "times_word": ({"times": "soon"}, ["times must be a list of numbers"]),
    "times_after_the_end": ({"times": [0.0, 3.0], "t_end": 2.0}, ["beyond t_end = 2", "3"]),
    "times_and_saves": ({"times": [0.0, 1.0], "saves": 5}, ["either times= or saves=", "not both"]),
    "saves_one": ({"t_end": 1.0, "saves": 1}, ["saves must be a whole number of at least 2", "1"]),
    "saves_real": ({"t_end": 1.0, "saves": 10.0}, ["saves must be a whole number"]),
    # steps
    "dt_missing": (
        {"t_end": 1.0, "stepper": "euler"},
        ['stepper="euler" needs a step size', "dt="],
    ),
    "dt_missing_rk4": ({"t_end": 1.0, "stepper": "rk4"}, ['stepper="rk4" needs a step size']),
    "dt_superfluous": ({"t_end": 1.0, "dt": 0.1}, ["dt= is for", "chooses its own steps"]),
    "dt_negative": (
        {"t_end": 1.0, "stepper": "euler", "dt": -0.1},
        ["dt must be a positive number", "-0.1"],
    ),
    "dt_nan": (
        {"t_end": 1.0, "stepper": "euler", "dt": float("nan")},
        ["dt must be a positive number"],
    ),
    "rtol_small": ({"t_end": 1.0, "rtol": 1e-16}, ["rtol must be at least 1e-14", "1e-16"]),
    "rtol_zero": ({"t_end": 1.0, "rtol": 0.0}, ["rtol must be a positive number"]),
    "atol_negative": ({"t_end": 1.0, "atol": -1e-9}, ["atol must be a positive number"]),
    "max_steps_zero": (
        {"t_end": 1.0, "max_steps": 0},
        ["max_steps must be a whole number of at least 1", "0"],
    ),
    "max_steps_real": ({"t_end": 1.0, "max_steps": 1e5}, ["max_steps must be a whole number"]),
    # layers
    "layers_zero": ({"layers": 0}, ["layers must be a whole number of at least 1"]),
    "layers_real": ({"layers": 2.5}, ["layers must be a whole number", "2.5"]),
    "layers_dt": ({"layers": 2, "dt": 0.0}, ["dt must be a positive number"]),
    "layers_stepper": ({"layers": 2, "stepper": "rk4"}, ["takes no stepper", "rk4"]),
    "layers_frame": ({"layers": 2, "frame": "z"}, ["Layers are computed in x", "run.z"]),
    "layers_times": (
        {"layers": 4, "dt": 0.5, "times": [0.3]},
        ["whole multiples of dt = 0.5", "layer 4"],
    ),
    "layers_times_late": (
        {"layers": 4, "dt": 0.5, "times": [2.5]},
        ["whole multiples of dt", "up to layer 4"],
    ),
    # the equation
    "beta_nan": ({"t_end": 1.0, "beta": float("nan")}, ["beta must be a finite number", "nan"]),
    "beta_word": ({"t_end": 1.0, "beta": "cold"}, ["beta must be a finite number", "'cold'"]),
    "sphere_z": (
        {"t_end": 1.0, "geometry": "sphere", "frame": "z"},
        ["no rescaled frame on the sphere"],
    ),
    "sphere_feedforward": (
        {"t_end": 1.0, "geometry": "sphere", "feedforward": {}},
        ['the geometry "sphere"', "euclidean"],
    ),
    "layers_feedforward": (
        {"layers": 2, "feedforward": {}},
        ["continuous time only", 'stepper="euler"'],
    ),
    "x_feedforward": (
        {"t_end": 1.0, "frame": "x", "feedforward": {}},
        ["equation for z", 'frame="z"'],
    ),
    "W_shape": (
        {"t_end": 1.0, "feedforward": {"W": np.eye(3)}},
        ["FeedForward.W must have shape (2, 2)", "(3, 3)"],
    ),
    "W_axes": (
        {"t_end": 1.0, "feedforward": {"W": np.ones(2)}},
        ["FeedForward.W must have 2 axes", "(2,)"],
    ),
    "W_nan": (
        {"t_end": 1.0, "feedforward": {"W": [[np.nan, 0], [0, 1]]}},
        ["FeedForward.W must be finite"],
    ),
    "bias_shape": (
        {"t_end": 1.0, "feedforward": {"bias": np.ones(3)}},
        ["FeedForward.bias must have shape (2,)", "(3,)"],
    ),
    "bias_outside_axes": (
        {"t_end": 1.0, "feedforward": {"bias_outside": np.eye(2)}},
        ["bias_outside must have 1 axes"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options(name):
    options, words = WRONG[name]
    with pytest.raises(ValueError) as caught:
        al.simulate(EYE, X0, **options)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_feedforward_must_be_a_table_or_a_drift():
    with pytest.raises(TypeError, match="feedforward must be an attnlab.FeedForward"):
        al.simulate(EYE, X0, t_end=1.0, feedforward=[1])
    with pytest.raises(LookupError, match="Unknown drift 'relu'"):
        al.simulate(EYE, X0, t_end=1.0, feedforward="relu")


@pytest.mark.parametrize(
    ("x0", "words"),
    [
        (np.ones(2), ["x0 must have shape (n, d)", "(2,)"]),
        (np.ones((3, 5)), ["d = 2 coordinates", "(3, 5)"]),
        (np.ones((0, 2)), ["at least one token", "(0, 2)"]),
        (np.ones((0, 3, 2)), ["at least one token"]),
        ([[1.0, np.nan]], ["x0 must be finite", "(0, 1)", "nan"]),
        (np.array([[[1.0, 1.0]], [[np.inf, 1.0]]]), ["x0 must be finite", "(1, 0, 0)", "inf"]),
        ("tokens", ["x0 must be an array of real numbers"]),
        ([[1.0, 2.0], [3.0]], ["x0 must be an array of real numbers"]),
        (np.array([[1j, 1.0]]), ["x0 must be an array of real numbers"]),
    ],
)
def test_wrong_start(x0, words):
    with pytest.raises(ValueError) as caught:
        al.simulate(EYE, x0, t_end=1.0)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_start_off_the_sphere():
    with pytest.raises(ValueError, match="norm 1, but one is off by 0.118.*np.linalg.norm"):
        al.simulate(EYE, np.array([[1.0, 0.5], [0.6, 0.8]]), t_end=1.0, geometry="sphere")
    with pytest.raises(ValueError, match="norm 1"):
        al.simulate(EYE, np.zeros((1, 2)), t_end=1.0, geometry="sphere")
    off_by_rounding = np.array([[0.6, 0.8 + 1e-12]])
    assert (
        abs(
            np.linalg.norm(al.simulate(EYE, off_by_rounding, t_end=1.0, geometry="sphere").x[0]) - 1
        )
        < 1e-15
    )


@pytest.mark.parametrize(
    "options",
    [
        {"t_end": np.int64(1)},
        {"t_end": np.float32(1)},
        {"t_end": 1.0, "beta": np.int64(2)},
        {"t_end": 1.0, "beta": np.float32(0.5)},
        {"t_end": 1.0, "saves": np.int64(3)},
        {"t_end": 1.0, "max_steps": np.int64(500)},
        {"layers": np.int64(2)},
        {"t_end": 1.0, "stepper": "rk4", "dt": np.float32(0.5)},
        {"t_end": 1.0, "rtol": np.float32(1e-6)},
        {"times": np.arange(3)},
    ],
    ids=lambda options: next(reversed(options)),
)
def test_numbers_of_numpy_are_numbers(options):
    run = al.simulate(EYE, X0, **options)
    plain = {
        name: value.tolist()
        for name, value in options.items()
        if isinstance(value, np.generic | np.ndarray)
    }
    assert np.array_equal(run.states, al.simulate(EYE, X0, **{**options, **plain}).states)


def test_a_run_that_reached_none_of_its_times():
    for options in ({}, {"frame": "z"}, {"measure_error": True}):
        run = al.simulate(EYE, X0, times=[5.0], max_steps=3, throw=False, **options)
        assert run.status is Status.MAX_STEPS and run.times.shape == (0,)
        assert run.x.shape == run.z.shape == (0, 3, 2)
        with pytest.raises(IndexError, match="0 saved times"):
            al.attention(run)
    assert np.array_equal(
        al.simulate(EYE, X0, times=[0.0]).x[0], X0
    )  # and one that asks only for its start


def test_the_start_is_not_changed_and_not_kept():
    x0 = X0.copy()
    run = al.simulate(EYE, x0, t_end=0.5, saves=2)
    assert np.array_equal(x0, X0)
    x0[:] = 0
    assert np.array_equal(run.x[0], X0)


def test_an_error_comes_before_anything_is_compiled():
    program = (
        "import sys, numpy as np, attnlab as al\n"
        "try:\n    al.simulate(al.Weights(V=np.eye(2)), np.ones((2, 2)), t_end=-1.0)\n"
        "except ValueError:\n    sys.exit(5 if 'numba' in sys.modules else 0)\nsys.exit(6)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=PATIENCE).returncode == 0


# ------------------------------------------------------------------------------------------- runs
# that cannot end


def test_a_run_that_diverges():
    """exp_mean with one token in d = 1: x' = e^{x^2} x reaches infinity at t = E1(1) / 2 = 0.1097
    from x = 1.

    Like sqrt(log 1 / (t* - t)): the clock ends before the numbers do, so the step size gives out
    (STALLED) or the velocity.
    """
    blow_up = 0.21938393439552 / 2
    with pytest.raises(al.RunFailed) as caught:
        al.simulate(al.Weights(V=[[1.0]]), [[1.0]], t_end=1.0, saves=1001, kernel="exp_mean")
    run = caught.value.run
    assert run.status in (Status.NON_FINITE, Status.STALLED)
    assert (
        run.status.value in str(caught.value)
        and ".run" in str(caught.value)
        and "throw=False" in str(caught.value)
    )
    assert run.times[-1] <= run.stats["reached"] <= blow_up * (1 + 1e-9)
    assert run.stats["reached"] > 0.99 * blow_up
    assert (
        np.isfinite(run.x).all()
        and len(run.times) == len(run.x) == int(run.stats["reached"] * 1000) + 1
    )


def test_fixed_steps_that_diverge_are_non_finite():
    steps = {"stepper": "euler", "dt": 0.05, "saves": 41, "t_end": 2.0}
    run = al.simulate(al.Weights(V=[[1.0]]), [[1.0]], kernel="exp_mean", throw=False, **steps)
    assert run.status is Status.NON_FINITE
    assert np.isfinite(run.states).all() and 2 <= len(run.times) < 41
    x = 1.0
    for k in range(1, len(run.times)):  # what is kept is the recursion, to the last finite step
        x += 0.05 * np.exp(x * x) * x
        assert abs(run.x[k, 0, 0] - x) <= 1e-12 * x


def test_max_steps():
    with pytest.raises(al.RunFailed, match="max_steps.*raise max_steps") as caught:
        al.simulate(EYE, X0, t_end=5.0, max_steps=4)
    run = caught.value.run
    assert run.status is Status.MAX_STEPS and run.stats["steps"] + run.stats["rejected"] == 4
    assert 0 < run.times[-1] <= run.stats["reached"] < 5.0
    whole = al.simulate(EYE, X0, t_end=5.0)
    assert np.array_equal(run.states, whole.states[: len(run.times)])
    fixed = al.simulate(
        EYE, X0, t_end=5.0, stepper="euler", dt=0.1, max_steps=49, throw=False, saves=51
    )
    assert fixed.status is Status.MAX_STEPS and len(fixed.times) == 50
    assert (
        al.simulate(EYE, X0, t_end=5.0, stepper="euler", dt=0.1, max_steps=50).status is Status.OK
    )


def test_layers_are_not_held_back_by_max_steps():
    assert al.simulate(EYE, X0, layers=20, dt=0.1, max_steps=5).status is Status.OK


def test_a_flow_that_slides_uses_up_its_steps():
    """Hardmax with V = -1 sends the middle token to 0, where its leader changes sides: each step
    after 0.001 crosses the tie.
    """
    with pytest.raises(al.RunFailed, match="max_steps") as caught:
        al.simulate(
            al.Weights(V=[[-1.0]]),
            [[-1.0], [1e-3], [1.0]],
            times=[0.0, 1e-3, 3.0],
            kernel="hardmax",
            max_steps=3000,
        )
    run = caught.value.run
    assert run.status is Status.MAX_STEPS and 1e-3 <= run.stats["reached"] < 0.1
    assert (
        run.times.tolist() == [0.0, 1e-3] and abs(run.x[1, 1, 0]) < 2e-6
    )  # 1e-3 - (1 - e^-0.001) = 5e-7


def test_a_step_that_no_clock_can_add():
    with pytest.raises(al.RunFailed, match="step size fell to rounding level") as caught:
        al.simulate(EYE, X0, t_end=1.0, stepper="euler", dt=1e-302)
    assert caught.value.run.status is Status.STALLED and caught.value.run.times.tolist() == [0.0]


def test_every_status_is_a_sentence():
    for status in Status:
        assert status.value[0].isupper() and status.value.endswith(".") and len(status.value) > 20


# ------------------------------------------------------------------------------------------- Ctrl-C

LONG_RUN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)     # a shell that runs us in the background had it ignored
import sys
import numpy as np
import attnlab as al
from attnlab.engine import plan
is_large, is_batch, throw = sys.argv[1] == "large", sys.argv[2] == "batch", sys.argv[3] == "throw"
rng = np.random.default_rng(0)
if is_large:
    plan.MOST_PAIRS = 0
n = 400
x0 = rng.standard_normal((3, n, 3) if is_batch else (n, 3))
x0 /= np.linalg.norm(x0, axis=-1, keepdims=True)
w = al.Weights(V=np.array([[0.0, 1.0, 0.2], [-1.0, 0.0, 0.3], [0.1, 0.4, 0.0]]))
al.simulate(w, x0, t_end=0.01, geometry="sphere")      # everything is compiled
print("ready", flush=True)
options = dict(times=np.concatenate([np.linspace(0, 3, 2001), [1e6]]), geometry="sphere", max_steps=10**9)
try:
    run = al.simulate(w, x0, throw=throw, **options)
    kind = "returned"
except al.RunInterrupted as stop:
    assert isinstance(stop, KeyboardInterrupt) and isinstance(stop, al.RunFailed) and "interrupted" in str(stop)
    run, kind = stop.run, "raised"
statuses = np.ravel(np.asarray(run.status, dtype=object))
assert all(s is al.Status.INTERRUPTED for s in statuses), statuses
assert run.stats["path"] == ("threaded" if is_large else "compiled")
reached = np.ravel(run.stats["reached"])
assert (reached < 1e6).all() and reached.max() > 0, reached
assert 0 < len(run.times) < 2002
states = run.x.reshape(-1, len(run.times), n, 3)
for member, t in zip(states, reached):
    good = run.times <= t
    assert np.isfinite(member[good]).all() and np.isnan(member[~good]).all()
again = al.simulate(w, x0, t_end=0.01, geometry="sphere")      # and the session goes on
assert again.is_ok
print(kind, flush=True)
"""


@pytest.mark.parametrize(
    ("path", "shape", "throw"),
    [
        ("small", "single", "throw"),
        ("small", "single", "keep"),
        ("small", "batch", "throw"),
        ("large", "single", "throw"),
        ("large", "batch", "keep"),
    ],
)
def test_interrupt(path, shape, throw):
    command = [sys.executable, "-W", "error", "-c", LONG_RUN, path, shape, throw]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline().strip() == "ready"
        wait_until_at_work(program.pid, 0.5)
        assert program.poll() is None  # it is in the middle of it
        program.send_signal(signal.SIGINT)
        rest, _ = program.communicate(timeout=PATIENCE)  # left alone it takes hours
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
    assert program.returncode == 0
    assert rest.split() == ["raised" if throw == "throw" else "returned"]


# ------------------------------------------------------------------------------------------- the
# cache of compiled code

FIRST_RUN = """
import numpy as np
import attnlab as al
run = al.simulate(al.Weights(V=np.eye(2)), np.array([[1.0, 0.0], [0.0, 1.0]]), t_end=1.0, saves=2)
assert run.is_ok
print(run.x.tobytes().hex())
"""


def _run_with_cache(folder: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", FIRST_RUN]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_first_run_with_an_empty_cache_and_the_second(tmp_path):
    first = _run_with_cache(tmp_path / "new" / "cache")
    (folder,) = (tmp_path / "new" / "cache").iterdir()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert folder.name.startswith("attnlab-kernels-") and files
    before = [(path, path.stat().st_mtime_ns) for path in files]
    assert _run_with_cache(tmp_path / "new" / "cache") == first
    # nothing was compiled again: no file of the cache is newer
    assert [
        (path, path.stat().st_mtime_ns)
        for path in sorted(p for p in folder.rglob("*") if p.is_file())
    ] == before


@pytest.mark.slow
def test_an_unwritable_cache_still_works(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert len(_run_with_cache(blocked / "cache")) > 100
    assert blocked.read_text() == "not a folder" and [p.name for p in tmp_path.iterdir()] == [
        "file"
    ]


def test_a_second_process_starts_from_the_cache(tmp_path):
    from attnlab.engine.compile import cache_folder

    al.simulate(EYE, X0[:2], t_end=1.0)  # this process has filled it
    known = Path(cache_folder())
    # a copy: other tests fill the folder itself meanwhile
    shutil.copytree(known, tmp_path / known.name, ignore=shutil.ignore_patterns(".attnlab-*"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    _run_with_cache(tmp_path)
    assert {
        path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()
    } == before
