"""Equations and members that are refused: one sentence names what does not fit."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import attnlab as al
from axes_members import WEIGHTS, Linear, own_members, start

assert own_members  # a fixture: the members of the tests are registered in this file


@pytest.mark.parametrize(
    "options, words",
    [
        ({"noise": {"name": "brownian", "kappa": 1.0}}, 'The noise "brownian" needs fixed steps'),
        (
            {"noise": {"name": "brownian", "kappa": 1.0}, "stepper": "rk4", "dt": 0.1},
            'needs fixed steps: stepper="euler"',
        ),
        (
            {
                "noise": {"name": "brownian", "kappa": 1.0},
                "stepper": "euler",
                "dt": 0.1,
                "times": [0.05],
            },
            "whole multiples of dt",
        ),
        (
            {"noise": {"name": "brownian", "kappa": -1.0}},
            "kappa of the noise brownian must be a positive number",
        ),
        ({"noise": {"name": "brownian", "kappa": 1.0}, "layers": 3}, "in continuous time only"),
        ({"noise": {"name": "brownian"}}, "noise 'brownian' needs the parameter kappa"),
        ({"rng": 3}, "rng= is the seed of noise"),
        (
            {"kernel": "sinkhorn", "mask": "causal"},
            'The kernel "sinkhorn" needs whole columns of scores, which the mask "causal"',
        ),
        ({"kernel": "sigmoid", "feedforward": {}}, 'those of the kernel "sigmoid" do not'),
        ({"read": "rms_norm", "feedforward": {}}, 'which the read "rms_norm" does not have'),
        ({"read": "rms_norm", "frame": "z"}, 'no rescaled frame with the read "rms_norm"'),
        (
            {"mask": {"name": "window", "width": -1}},
            "width of the mask window must be a whole number of at least 0",
        ),
        (
            {"mask": {"name": "given", "table": [[1, 0], [0, 1]]}},
            "must be 7 x 7 for 7 tokens, got 2 x 2",
        ),
        ({"mask": {"name": "given", "table": [[0, 0], [0, 1]]}}, "row 0 is empty"),
        (
            {"kernel": {"name": "sigmoid", "bias": "x"}},
            "bias of the kernel sigmoid must be a finite number",
        ),
        ({"kernel": {"bias": 1.0}}, "must have the key name"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(options, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        al.simulate(
            WEIGHTS, start(), **({"t_end": 1.0} if "layers" not in options else {}), **options
        )


def test_unknown_names_and_parameters_have_the_nearest():
    with pytest.raises(LookupError, match="Did you mean 'sigmoid'"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel="sigmoyd")
    with pytest.raises(LookupError, match="Did you mean 'bias'"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel={"name": "sigmoid", "biass": 1.0})
    with pytest.raises(TypeError, match="kernel must be the name of one"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel=3)
    with pytest.raises(TypeError, match="got the class Linear: call it first"):
        al.simulate(WEIGHTS, start(), t_end=1.0, kernel=Linear)


def faulty(**members):
    """Register a kernel with these members in place of good ones, for the refusal that it must
    get.
    """
    good = {
        "rows_sum_to_one": False,
        "is_row_local": True,
        "hardens": False,
        "weights": lambda self, scores, seen: np.ones_like(scores),
    }
    kept = {name: value for name, value in {**good, **members}.items() if value is not ...}
    return lambda name="test_faulty": al.kernels.register(name)(type("Faulty", (), kept))


def test_a_member_must_be_whole():
    with pytest.raises(TypeError, match=r"The kernel 'test_faulty' must have the function weights"):
        faulty(weights=...)()
    with pytest.raises(
        TypeError, match=r"The kernel 'test_faulty' must have the flag hardens = True or False"
    ):
        faulty(hardens=...)()
    with pytest.raises(
        TypeError,
        match=r"The flag hardens of the kernel 'test_faulty' must be True or False, got 'yes'",
    ):
        faulty(hardens="yes")()
    for taken in ("softmax", "sinkhorn", "test_linear"):
        with pytest.raises(ValueError, match=f"The kernel '{taken}' is registered already"):
            faulty()(taken)
    assert "test_faulty" not in al.kernels


@pytest.mark.parametrize(
    "weights, words",
    [
        (
            lambda self, scores, seen: -np.ones_like(scores),
            "must return weights of 0 or more, got -1",
        ),
        (
            lambda self, scores, seen: np.ones(3),
            "must return real weights of the shape of its scores",
        ),
        (lambda self, scores, seen: np.ones_like(scores) * 1j, "must return real weights"),
        (lambda self, scores, seen: np.full_like(scores, np.nan), None),
    ],
)
def test_bad_weights_never_look_like_a_run(weights, words, monkeypatch):
    monkeypatch.setattr(al.kernels, "_things", dict(al.kernels._things))
    faulty(weights=weights)()
    if words:
        with pytest.raises(ValueError, match=f'The kernel "test_faulty" {words}'):
            al.simulate(WEIGHTS, start(), t_end=1.0, kernel="test_faulty")
    else:
        with pytest.raises(
            al.RunFailed,
            match='The kernel "test_faulty" returned non-finite numbers for finite tokens',
        ):
            al.simulate(WEIGHTS, start(), t_end=1.0, kernel="test_faulty")


def test_a_dynamics_is_taken_whole():
    dynamics = al.Dynamics.of(WEIGHTS, kernel={"name": "sigmoid", "bias": -1.0}, beta=2.0)
    with pytest.raises(
        TypeError, match=r"simulate takes its equation from the Dynamics. Leave beta= out"
    ):
        al.simulate(dynamics, start(), t_end=1.0, beta=3.0)
    run = al.simulate(dynamics, start(), t_end=0.3)
    np.testing.assert_array_equal(
        run.states,
        al.simulate(WEIGHTS, start(), t_end=0.3, kernel=dynamics.kernel, beta=2.0).states,
    )
    assert (
        al.limit(dynamics, start()).grade == "undecided"
        and "sigmoid" in al.limit(dynamics, start()).reason
    )
    assert all(verdict.outcome is al.Outcome.OUT_OF_SCOPE for verdict in al.check(run))
    assert replace(dynamics, beta=1.0).kernel.bias == -1.0


def test_too_many_pairs_for_the_reference_path_are_refused(monkeypatch):
    from attnlab import capacity

    monkeypatch.setattr(capacity, "available_bytes", lambda: 10_000_000)
    with pytest.raises(ValueError, match="The pairs of 9000 tokens, on the reference path"):
        al.simulate(
            al.Weights(V=np.eye(2)), np.zeros((9000, 2)), t_end=1.0, saves=2, kernel="sinkhorn"
        )


def test_a_spec_names_members(polytope):
    spec = replace(
        polytope,
        dynamics={
            "kernel": {"name": "sigmoid", "bias": -2.0},
            "mask": {"name": "window", "width": 1},
        },
    )
    run = al.run_spec(al.Spec.from_toml(spec.to_toml()))
    assert (
        run.dynamics.kernel.bias == -2.0
        and run.dynamics.mask.width == 1
        and run.spec.digest() == spec.digest()
    )
