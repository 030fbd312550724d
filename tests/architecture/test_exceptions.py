"""Every exception of the package survives a trip to another process, with its type, its words and
what it carries.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import attnlab as al

RUN = al.Trajectory(
    dynamics=al.Dynamics(al.Weights(V=np.diag([1.0, -0.5]))),
    solve=al.Solve(2.0, np.arange(3.0)),
    times=np.arange(2.0),
    states=np.arange(12.0).reshape(2, 3, 2),
    frame="x",
    log_scale=np.array([0.0, 1.5]),
    status=al.Status.STALLED,
    observed={"diameter": np.array([3.0, 2.0])},
    stats={"reached": 1.25},
)
SAMPLES = {
    "message": "A sentence with its number, 7.",
    "run": RUN,
    "kind": "budget",
    "why": "A reason.",
    "row": 3,
    "column": 5,
}
"""What the arguments of an exception are filled with, by their name; an exception with another
argument adds it here.
"""


def exception_classes():
    """All exception classes that attnlab defines, by walking its modules."""
    names = [
        found.name
        for found in pkgutil.walk_packages(al.__path__, "attnlab.")
        if not found.name.endswith("__main__")
    ]
    found = {
        thing
        for module in map(importlib.import_module, names)
        for thing in vars(module).values()
        if inspect.isclass(thing)
        and issubclass(thing, BaseException)
        and thing.__module__.startswith("attnlab")
    }
    return sorted(found, key=lambda kind: (kind.__qualname__, kind.__module__))


CLASSES = exception_classes()


def test_the_walk_finds_them():
    assert {"RunFailed", "RunInterrupted", "UnknownName", "DrownedInRounding", "BadModel"} <= {
        kind.__name__ for kind in CLASSES
    }


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_an_exception_can_be_pickled_with_what_it_carries(kind):
    is_plain = not inspect.isfunction(
        kind.__init__
    )  # the constructor of BaseException takes the message
    wanted = ["message"] if is_plain else list(inspect.signature(kind.__init__).parameters)[1:]
    problem = kind(*(SAMPLES[name] for name in wanted))
    again = pickle.loads(pickle.dumps(problem))
    assert type(again) is kind and str(again) == str(problem) and again.args == problem.args
    assert vars(again).keys() == vars(problem).keys()
    for name, value in vars(problem).items():
        if isinstance(value, al.Trajectory):
            assert_same_run(vars(again)[name], value)
        else:
            assert vars(again)[name] == value


def assert_same_run(found, wanted):
    for name in ("times", "states", "log_scale"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name))
    assert (
        found.status is wanted.status
        and found.stats == wanted.stats
        and found.frame == wanted.frame
    )
    assert np.array_equal(found.observed["diameter"], wanted.observed["diameter"])
    assert np.array_equal(found.dynamics.weights.V, wanted.dynamics.weights.V)
    assert np.array_equal(found.z, wanted.z)


POOL = """
import multiprocessing
import numpy as np
import attnlab as al

def fail(t_end):
    return al.simulate(al.Weights(V=np.eye(2)), np.random.default_rng(0).normal(size=(5, 2)), t_end=t_end, max_steps=5)

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            pool.map(fail, [20.0])
        except al.RunFailed as problem:
            run = problem.run
            tried = run.stats["steps"] + run.stats["rejected"]
            print(run.status.name, tried, len(run.times) > 0, "max_steps" in str(problem))
"""


def test_a_pool_over_a_failing_run_returns_its_error(tmp_path):
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["MAX_STEPS", "5", "True", "True"], done.stderr
