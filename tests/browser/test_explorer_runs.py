"""run(spec) of the page against al.simulate at rtol 1e-12: the same times, the same status, errors
far below 1e-4.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from modules import open_engine
from tab import JavaScriptError

import attnlab as al
from attnlab.run import resolve

GROWTH = 14.0
"""Double precision is trusted up to lambda_1 t = 14."""


@pytest.fixture(scope="module")
def page(browser_tab, tmp_path_factory):
    return open_engine(browser_tab, tmp_path_factory.mktemp("runs"))


def cube(n, d=None, rng=0, half=5.0):
    return {"law": "uniform_cube", "n": n, "low": -half, "high": half, "rng": rng} | (
        {} if d is None else {"d": d}
    )


def spectrum(*eigenvalues, basis="identity", rng=0):
    return {"family": "spectrum", "eigenvalues": list(eigenvalues), "basis": basis, "rng": rng}


def given(V, **more):
    return {"family": "given", "V": V, **more}


IDENTITY = {"family": "identity"}
SPHERE, CIRCLE = {"law": "sphere", "n": 30, "d": 3, "rng": 1}, {"law": "circle", "n": 30, "rng": 1}
HEADS = [[[0.6, 0.0], [0.0, 0.2]], [[0.3, 0.1], [0.0, 0.5]]]
OPPOSITE = given(
    [np.eye(2).tolist(), (0.5 * np.eye(2)).tolist()], Q=[np.eye(2).tolist(), (-np.eye(2)).tolist()]
)
FLOWS = {
    "R1": (IDENTITY, cube(30, 1), {}, 14.0), "R2": (IDENTITY, cube(40, 2), {}, 14.0),
    "R3": ({"family": "identity", "scale": 0.7}, cube(40, 3), {}, 20.0),
    "late leaders": (spectrum(1, 0.9, -0.5), cube(30, rng=3), {}, 14.0),
    "an orthogonal basis": ({"family": "spectrum", "eigenvalues": [1, 0.9, -0.5], "rng": 3}, cube(30), {}, 12.0),
    "an oblique basis": (spectrum(1, 1, -0.5, basis="random", rng=4), cube(30), {}, 12.0),
    "a leading pair": (spectrum([0.5, 1.0], -0.2), cube(20), {}, 10.0),
    "a pair": (spectrum(0.8, [0.5, -1.0], basis="random", rng=2), cube(20), {}, 10.0),
    "hyperplanes": ({"family": "published", "matrix": "hyperplanes_2d"}, cube(40), {}, 10.0),
    "decaying": ({"family": "published", "matrix": "hyperplanes_3d_decaying"}, cube(30), {}, 14.0),
    "codimension": ({"family": "published", "matrix": "codimension"}, cube(30), {}, 7.0),
    "polytope x line": ({"family": "published", "matrix": "polytope_times_line"}, cube(30), {}, 12.0),
    "circle": (IDENTITY, CIRCLE, {"geometry": "sphere", "beta": 4.0}, 14.0),
    "sphere": (IDENTITY, SPHERE, {"geometry": "sphere", "beta": 9.0}, 14.0),
    "sphere, V": (given([[1, 0.5, 0], [0, -1, 0.2], [0.3, 0, 0.4]]), SPHERE, {"geometry": "sphere", "mask": "causal"}, 10.0),
    "exp_mean": ({"family": "identity", "scale": -1.0}, {"law": "normal", "n": 20, "d": 2}, {"kernel": "exp_mean"}, 10.0),
    "exp_mean blows up": (IDENTITY, {"law": "normal", "n": 20, "d": 2, "scale": 0.5}, {"kernel": "exp_mean"}, 2.0),
    "hardmax": (IDENTITY, cube(30, 2), {"kernel": "hardmax"}, 10.0),
    "hardmax in space": (spectrum(1, 0.6, -0.4), cube(30, rng=2), {"kernel": "hardmax"}, 8.0),
    "hardmax of equal tokens": (IDENTITY, {"law": "given", "x": [[1, 2], [1, 2], [-1, 0.5], [0.3, 0.3], [-2, 1]]},
                         {"kernel": "hardmax", "beta": -1.0}, 8.0),
    "hardmax, beta = 0": (IDENTITY, cube(10, 2), {"kernel": "hardmax", "beta": 0}, 6.0),
    "causal": (IDENTITY, cube(40, 3), {"mask": "causal"}, 12.0),
    "causal hardmax": (IDENTITY, cube(30, 2), {"mask": "causal", "kernel": "hardmax"}, 8.0),
    "beta < 0": (IDENTITY, cube(20, 2, half=1.0), {"beta": -2.0}, 8.0),
    "two heads": (given(HEADS), cube(30, 2), {}, 10.0), "opposite heads": (OPPOSITE, cube(30, 2), {}, 4.0),
    "low rank": (given([[1, 0.5], [0, -0.5]], Q=[[1, 2]], K=[[0.5, 1]]), cube(30, 2, half=1.0), {}, 10.0),
    "factors": ({"family": "given", "B": [[1], [0.5], [0.2]], "C": [[0.8, 0.1, 0.3]]}, cube(20, 3), {}, 8.0),
    "numbers": (given(1.3, Q=2.0, K=-0.5), cube(20, 1, half=1.0), {}, 6.0),
    "a Jordan block": (given([[1, 1], [0, 1]]), cube(20, 2, rng=2, half=3.0), {}, 14.0),
    "three in a block": (given([[0.5, 1, 0], [0, 0.5, 1], [0, 0, 0.5]]), cube(20, 3, rng=1), {}, 10.0),
    "ill-conditioned": (given([[1, 1000, 0], [0, 0.5, 0], [0, 0, -0.2]]), cube(20, 3), {}, 12.0),
    "nilpotent": (given([[0, 1], [0, 0]]), cube(20, 2), {}, 10.0), "rotation": (given([[0, 1], [-1, 0]]), cube(20, 2), {}, 10.0),
    "V = -I": ({"family": "identity", "scale": -1.0}, cube(40, 3), {}, 14.0),
    "V = 0": (given([[0, 0], [0, 0]]), cube(9, 2), {}, 3.0),
    "planted": (IDENTITY, {"law": "planted", "n": 30, "d": 2, "clusters": 4, "rng": 3}, {}, 10.0),
    "one token": (IDENTITY, cube(1, 2), {}, 5.0), "huge tokens": (IDENTITY, cube(20, 2, half=1e100), {}, 5.0),
    "feed-forward": (IDENTITY, cube(20, 2), {"feedforward": {"sigma": "relu"}}, 5.0),
    "feed-forward, tanh": ({"family": "published", "matrix": "hyperplanes_2d"}, cube(20, 2), {"feedforward": {
        "sigma": "tanh", "W": [[1, 0.2], [0, 0.5]], "bias": [0.1, -0.2], "bias_outside": [0, 0.3]}}, 5.0),
}  # fmt: skip


def simulate(spec: dict) -> al.Trajectory:
    resolved = resolve(al.Spec.from_dict(spec))
    options = {key: value for key, value in resolved.solve.items() if key != "observe"}
    if "layers" not in options and "stepper" not in options:
        options["rtol"] = 1e-12
    return al.simulate(resolved.dynamics, resolved.x0, **options, throw=False)


def compare(page, spec: dict, tolerance: float) -> None:
    run, found = (
        simulate(spec),
        page.call("async spec => await (window.one ??= make()).run(spec)", spec),
    )
    assert found["status"] == run.status.name and found["times"] == run.times.tolist()
    x = np.array(found["x"])
    assert x.shape == run.x.shape
    rate = (
        1.0
        if run.dynamics.geometry == "sphere"
        else float(run.dynamics.weights.total.eigenvalues.real.max())
    )
    errors = np.abs(x - run.x).max(axis=(1, 2)) / np.abs(run.x).max(axis=(1, 2))
    trusted = rate * run.times <= GROWTH
    assert trusted.sum() > 1 and errors[trusted].max() < tolerance, f"{errors[trusted].max():.1e}"


@pytest.mark.parametrize("name", FLOWS)
def test_flows(page, name):
    weights, start, dynamics, t_end = FLOWS[name]
    compare(
        page,
        {
            "weights": weights,
            "start": start,
            "dynamics": dynamics,
            "solve": {"t_end": t_end, "saves": 41},
        },
        1e-5,
    )


HYPERPLANES = {"family": "published", "matrix": "hyperplanes_3d_decaying"}


@pytest.mark.parametrize("weights, start, dynamics, solve", [
    (IDENTITY, cube(20, 2, half=1.0), {}, {"layers": 12}),
    (HYPERPLANES, cube(20), {}, {"layers": 80, "dt": 0.1, "saves": 7}),
    (HYPERPLANES, cube(20), {"mask": "causal"}, {"layers": 20, "dt": 0.25, "times": [0.0, 0.5, 4.75]}),
    (IDENTITY, SPHERE, {"geometry": "sphere", "beta": 2.0}, {"layers": 20, "dt": 0.3}),
    (HYPERPLANES, cube(20), {}, {"t_end": 8.0, "stepper": "euler", "dt": 0.1}),
    (HYPERPLANES, cube(20), {}, {"t_end": 8.0, "stepper": "euler", "dt": 0.1, "frame": "x"}),
    (HYPERPLANES, cube(20), {}, {"t_end": 8.0, "stepper": "rk4", "dt": 0.1}),
    (HYPERPLANES, cube(20), {}, {"t_end": 5.02, "stepper": "rk4", "dt": 0.07, "times": [0.01, 0.5, 3.3, 5.02]}),
    (IDENTITY, cube(20, 3), {}, {"t_end": 5.0, "stepper": "euler", "dt": 0.03, "saves": 11}),
    (given([[1, 1], [0, 1]]), cube(20, 2), {}, {"t_end": 5.0, "stepper": "rk4", "dt": 0.05}),
    (given(HEADS), cube(20, 2), {}, {"t_end": 5.0, "stepper": "rk4", "dt": 0.05}),
    (IDENTITY, SPHERE, {"geometry": "sphere"}, {"t_end": 5.0, "stepper": "rk4", "dt": 0.05}),
    (given([[-1, 0], [0, -1]]), cube(10, 2, half=1.0), {"kernel": "exp_mean"}, {"t_end": 3.0, "stepper": "rk4", "dt": 0.05}),
    (HYPERPLANES, cube(20), {"feedforward": {"sigma": "identity", "bias": [0.1, 0, -0.2]}},
     {"t_end": 3.0, "stepper": "euler", "dt": 0.05}),
])  # fmt: skip
def test_layers_and_fixed_steps_are_the_same_to_rounding(page, weights, start, dynamics, solve):
    compare(page, {"weights": weights, "start": start, "dynamics": dynamics, "solve": solve}, 1e-12)


@pytest.mark.parametrize("solve", [
    {"t_end": 3.0}, {"t_end": 0.7, "saves": 2}, {"t_end": 3.3, "saves": 7}, {"times": [0.1, 0.2, 1.0]},
    {"t_end": 2.0, "times": [0.0, 1.5]}, {"t_end": 0.1, "rtol": 1e-3}, {"t_end": 3.0, "frame": "z", "measure_error": True},
    {"t_end": 1e-9}, {"t_end": 1.0, "stepper": "euler", "dt": 0.3},
])  # fmt: skip
def test_times_are_those_of_simulate(page, solve):
    compare(
        page,
        {"weights": IDENTITY, "start": cube(8, 2), "solve": solve, "observe": ["diameter"]},
        1e-5,
    )


def test_the_precision_wall(page):
    """It is looked for after every step, and the steps differ: one saved time more or less."""
    spec = {"weights": IDENTITY, "start": cube(30, 1), "solve": {"t_end": 45.0}}
    run, found = (
        simulate(spec),
        page.call("async spec => await (window.one ??= make()).run(spec)", spec),
    )
    assert (
        found["status"] == run.status.name == "PAST_DOUBLE_PRECISION"
        and abs(len(found["times"]) - len(run.times)) <= 1
    )


@pytest.mark.parametrize("spec", [
    {"weights": spectrum(-1.0, 2.0), "start": cube(4, half=1e-3), "solve": {"t_end": 1000.0, "saves": 21}},
    {"weights": IDENTITY, "start": cube(30, 2), "solve": {"t_end": 10.0, "max_steps": 2, "stepper": "rk4", "dt": 0.5}},
    {"weights": IDENTITY, "start": {"law": "normal", "n": 9, "d": 2}, "dynamics": {"kernel": "exp_mean"},
     "solve": {"t_end": 9.0, "stepper": "euler", "dt": 0.5}},
])  # fmt: skip
def test_runs_that_end_early_say_how(page, spec):
    """Out of range, out of steps, overflow: the status and the times are Python's."""
    run, found = (
        simulate(spec),
        page.call("async spec => await (window.one ??= make()).run(spec)", spec),
    )
    assert run.status is not al.Status.OK
    assert (
        found["status"] == run.status.name
        and found["times"] == run.times.tolist()
        and len(found["x"]) == len(run.times)
    )


@pytest.mark.parametrize("change, words", [
    ({"weights": {"family": "gaussian"}}, "The page draws the weights families identity, spectrum, published, given"),
    ({"weights": {"family": "goe"}}, "The page draws the weights families"),
    ({"start": cube(5, 5)}, "dimension 1, 2 or 3, and this Spec has d = 5"),
    ({"start": {**cube(5, 2), "batch": 3}}, "one start at a time"),
    ({"start": {"law": "normal", "n": 5, "d": 2}, "dynamics": {"geometry": "sphere"}}, "every token must have norm 1"),
    ({"dynamics": {"temperature": 2}}, 'got "temperature"'), ({"dynamics": {"beta": "much"}}, "dynamics.beta must be a finite"),
    ({"dynamics": {"feedforward": {"sigma": "gelu"}}}, "sigma must be one of"),
    ({"solve": {"t_end": -1}}, "solve.t_end must be a positive number"), ({"solve": {}}, "Give the end of the run"),
    ({"solve": {"t_end": 1, "saves": 3, "times": [1]}}, "either solve.times or solve.saves"),
    ({"solve": {"t_end": 1, "times": [1, 1]}}, "must ascend strictly"), ({"solve": {"t_end": 1, "dt": 0.1}}, "solve.dt belongs"),
    ({"solve": {"t_end": 1, "stepper": "rk5"}}, "solve.stepper must be one of"),
    ({"solve": {"layers": 3, "t_end": 2}}, "two different clocks"), ({"solve": {"t_end": 1, "rtol": 1e-20}}, "solve.rtol must"),
    ({"solve": {"t_end": 1, "saves": 10**9}}, "at most 100000"),
    ({"solve": {"t_end": 1, "saves": 90_000}, "start": cube(1000, 2)}, "cannot save so much"),
    ({"extra": 1}, 'got "extra"'), ({"weights": None}, "Spec.weights must be a table"),
])  # fmt: skip
def test_what_the_page_does_not_run_it_refuses_with_a_sentence(page, change, words):
    spec = {"weights": IDENTITY, "start": cube(8, 2), "solve": {"t_end": 1.0}, **change}
    with pytest.raises(JavaScriptError) as problem:
        page.evaluate(f"(window.one ??= make()).run({json.dumps(spec)})")
    assert "Refusal: " in str(problem.value) and words in str(problem.value), str(problem.value)
