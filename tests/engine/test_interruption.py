"""Ctrl-C while a run is measured: an answer within a second, the run itself whole, and the
observables as far as they came.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import attnlab as al
from attnlab import RunInterrupted, Status
from attnlab.analysis import observables
from attnlab.analysis.under_way import time_by_time
from clock import PATIENCE, is_soon, wait_until_at_work
from command_line import refused

if sys.platform == "win32":
    pytest.skip("signals are sent as on Unix", allow_module_level=True)

BEGIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)     # a shell that runs us in the background had it ignored
import numpy as np
import attnlab as al
from attnlab.analysis import observables
rng = np.random.default_rng(0)
weights = al.Weights(V=np.eye(3))
"""

MEASURED = (
    BEGIN
    + """
x0 = rng.uniform(-1, 1, (800, 3))
al.simulate(weights, x0, times=[0.0], observe=["diameter"])            # everything is compiled and imported
rank = observables["attention_rank"]
prepare = rank.prepare
def tell(run):
    value_at = prepare(run)
    def measured(at):
        if at == 2:
            print("ready", flush=True)                                 # two times are done, and the third is under way
        return value_at(at)
    return measured
rank.prepare = tell
try:
    al.simulate(weights, x0, t_end=0.5, saves=400, observe=["diameter", "attention_rank"])
except al.RunInterrupted as stop:
    print("answered", flush=True)
    run, ranks = stop.run, stop.run.observed["attention_rank"]
    known = int(np.isfinite(ranks).all(axis=1).sum())
    assert run.status is al.Status.INTERRUPTED and run.states.shape == (400, 800, 3) and np.isfinite(run.states).all()
    assert np.isfinite(run.observed["diameter"]).all() and run.observed["diameter"].shape == (400,)
    assert ranks.shape == (400, 1) and 2 <= known < 400 and np.isfinite(ranks[:known]).all() and np.isnan(ranks[known:]).all()
    assert ranks[0, 0] == np.linalg.matrix_rank(al.attention(run, at=0)[0])
    assert "interrupted while the observable attention_rank was computed" in str(stop)
    print("kept", flush=True)
"""
)

MANY_TOKENS = (
    BEGIN
    + """
x0 = rng.uniform(-1, 1, (60_000, 3))
al.simulate(weights, x0[:1000], times=[0.0], observe=["NAME"])         # everything is compiled and imported
observable = observables["NAME"]
prepare = observable.prepare
def tell(run):
    print("ready", flush=True)
    return prepare(run)
observable.prepare = tell
try:
    al.simulate(weights, x0, times=[0.0], observe=["NAME"])
except al.RunInterrupted as stop:
    print("answered", flush=True)
    assert stop.run.status is al.Status.INTERRUPTED and np.array_equal(stop.run.x[0], x0) and not stop.run.observed
    print("kept", flush=True)
"""
)

THREADED = (
    BEGIN
    + """
x0 = rng.uniform(-1, 1, (20_000, 3))
al.velocity(weights, x0)
al.simulate(weights, x0[:900], t_end=0.01)                             # everything is compiled
print("ready", flush=True)
try:
    al.simulate(weights, x0, t_end=5.0, saves=11, observe=["cluster_count"])
except al.RunInterrupted as stop:
    print("answered", flush=True)
    assert stop.run.stats["path"] == "threaded" and stop.run.status is al.Status.INTERRUPTED
    assert np.array_equal(stop.run.x[0], x0) and len(stop.run.times) < 11 and not stop.run.observed
    print("kept", flush=True)
"""
)

REFERENCE = (
    BEGIN
    + """
x0 = rng.uniform(-1, 1, (3000, 3))
al.simulate(weights, x0, layers=1, dt=0.1)                             # everything is compiled
from attnlab.engine import simulation
next_layer = simulation.next_layer
def tell(*arguments):
    print("ready", flush=True)
    simulation.next_layer = next_layer
    return next_layer(*arguments)
simulation.next_layer = tell
try:
    al.simulate(weights, x0, layers=60, dt=0.1, measure_error=True)
except al.RunInterrupted as stop:
    print("answered", flush=True)
    assert len(stop.run.times) == 61 and np.isfinite(stop.run.states).all() and stop.run.error is None
    assert "while its error was measured" in str(stop)
    print("kept", flush=True)
"""
)


@pytest.mark.parametrize(
    ("program", "delay"),
    [
        pytest.param(MEASURED, 0.0, id="attention_rank of 800 tokens", marks=pytest.mark.slow),
        pytest.param(MANY_TOKENS.replace("NAME", "energy"), 0.5, id="energy of 60000 tokens"),
        pytest.param(
            MANY_TOKENS.replace("NAME", "cluster_count"), 0.5, id="cluster_count of 60000 tokens"
        ),
        pytest.param(THREADED, 2.0, id="a run of 20000 tokens on all cores"),
        pytest.param(REFERENCE, 0.0, id="layers compared with the reference"),
    ],
)
def test_ctrl_c_is_answered_and_keeps_what_is_done(program, delay):
    # the goal is one second; what was seen before was half a minute, and the run was lost
    assert is_soon(lambda: seconds_to_answer(program, delay))


def seconds_to_answer(program: str, delay: float) -> float:
    """From the signal to the answer; checking the answer, and the end of the process, come after
    it.
    """
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline().strip() == "ready"
            wait_until_at_work(process.pid, delay)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            began = time.perf_counter()
            answer = process.stdout.readline().strip()
            took = time.perf_counter() - began
            rest = process.stdout.read()
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()
    assert (answer, rest.strip(), process.returncode) == ("answered", "kept", 0)
    return took


# -------------------------------------------------------------------------------------------
# without signals


@pytest.fixture(autouse=True)
def answers_to_ctrl_c():
    """A shell that runs the tests in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def own(monkeypatch):
    """Registers an observable of this test's own, for its time."""

    def register(name, function):
        monkeypatch.setitem(observables._things, name, function)
        return name

    return register


def press_ctrl_c(run):
    """What a signal does in the main thread, at a time that a test chooses."""
    signal.raise_signal(signal.SIGINT)
    time.sleep(0.2)


def test_observables_before_the_interruption_are_whole_and_those_after_it_absent(own):
    def prepare(run):
        def value_at(at):
            if at == 3:
                press_ctrl_c(run)
            return np.full(run.batch, float(at))

        return value_at

    x0 = np.random.default_rng(0).normal(size=(2, 5, 2))
    names = ["diameter", own("stopping", time_by_time()(prepare)), "energy"]
    run = al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1.0, saves=9, observe=names, throw=False)
    assert run.status.tolist() == [Status.INTERRUPTED] * 2 and run.states.shape == (2, 9, 5, 2)
    assert (
        list(run.observed) == ["diameter", "stopping"]
        and np.isfinite(run.observed["diameter"]).all()
    )
    assert np.array_equal(
        run.observed["stopping"], np.array([[0, 1, 2, *[np.nan] * 6]] * 2), equal_nan=True
    )
    with pytest.raises(
        RunInterrupted,
        match="Member 0 .* was interrupted while the observable stopping was computed",
    ):
        al.simulate(al.Weights(V=np.eye(2)), x0, t_end=1.0, saves=9, observe=names)


def test_an_observable_that_is_made_at_once_is_left_out(own):
    def whole(run):
        press_ctrl_c(run)
        return np.zeros(len(run.times))

    names = ["diameter", own("whole", whole)]
    run = al.simulate(
        al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, saves=9, observe=names, throw=False
    )
    assert run.status is Status.INTERRUPTED and len(run.times) == 9
    assert "diameter" in run.observed


def test_an_error_in_an_observable_is_that_error(own):
    def broken(run):
        raise ZeroDivisionError("a fault of the user's own")

    with pytest.raises(ZeroDivisionError, match="a fault of the user's own"):
        al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, observe=[own("broken", broken)])


def test_an_observable_sees_the_settings_of_its_caller(own):
    """np.errstate of the caller holds in the thread that measures."""

    def dividing(run):
        return np.ones(len(run.times)) + 0.0 * np.nan_to_num(
            np.ones(len(run.times)) / np.zeros(len(run.times))
        )

    name = own("dividing", dividing)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, observe=[name])
    with np.errstate(divide="ignore"):
        assert al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, observe=[name]).is_ok


# ------------------------------------------------------------------------------------------- in a
# check


@pytest.fixture
def interrupt(monkeypatch):
    """interrupt(k): Ctrl-C comes into the k-th integration from now on, and ends it after its first
    saved time.
    """
    from attnlab.engine import members
    from attnlab.engine.stepper import INTERRUPTED

    whole, counted = members.integrate_members, []

    def press_in(number):
        counted.clear()

        def integrate_members(*arguments):
            counted.append(None)
            out = whole(*arguments)
            if len(counted) != number:
                return out
            return out._replace(
                status=np.full_like(out.status, INTERRUPTED), saved=np.ones_like(out.saved)
            )

        monkeypatch.setattr(members, "integrate_members", integrate_members)
        return counted

    return press_in


@pytest.mark.parametrize(
    ("is_known", "least"), [(True, 1), (False, 2)], ids=["certified", "without an error"]
)
def test_ctrl_c_in_a_check_gives_no_verdict(interrupt, is_known, least):
    """Each integration that a check makes is interrupted once: that of the same run, and the finer
    one.
    """
    x0 = np.random.default_rng(3).normal(size=(6, 2))
    run = al.simulate(al.Weights(V=np.diag([1.0, 0.3])), x0, t_end=8.0, measure_error=is_known)
    counted = interrupt(0)
    al.check(run, names=["three_hyperplanes"])
    count = len(counted)
    assert count >= least
    for number in range(1, count + 1):
        interrupt(number)
        with pytest.raises(KeyboardInterrupt):
            al.check(run, names=["three_hyperplanes"])


def test_ctrl_c_in_a_continued_run_gives_no_evidence(interrupt):
    from attnlab.theory.evidence import Evidence

    evidence = Evidence(al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0))
    interrupt(1)
    with pytest.raises(RunInterrupted, match="The check was interrupted"):
        _ = evidence.continued


def test_a_run_that_was_interrupted_can_still_be_checked(interrupt):
    interrupt(1)
    run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, saves=3, throw=False)
    assert run.status is Status.INTERRUPTED
    assert al.check(run, names=["hull_shrinks"])


def test_ctrl_c_in_attnlab_check_is_exit_code_130(interrupt, tmp_path):
    x0 = np.random.default_rng(3).normal(size=(6, 2))
    al.save(al.simulate(al.Weights(V=np.diag([1.0, 0.3])), x0, t_end=3.0), tmp_path / "run.nc")
    interrupt(1)
    assert "interrupted" in refused(
        "check", tmp_path / "run.nc", "--name", "three_hyperplanes", code=130
    )
