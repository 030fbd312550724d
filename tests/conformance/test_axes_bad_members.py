"""Members whose results cannot be used: one sentence names the member, and no run claims to be
OK.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES

X0 = np.random.default_rng(2).normal(size=(5, 3))
WEIGHTS = al.Weights(V=0.5 * np.eye(3))
NOISY = {"stepper": "euler", "dt": 0.1}


def member(**parts):
    return type("Bad", (), parts)


def space(check=lambda self, x: x, project=lambda self, x, v: v, retract=lambda self, x: x):
    return member(is_linear=False, check=check, project=project, retract=retract)


NAN = np.nan
BAD = {
    "kernel of another shape": (
        "kernel",
        member(
            rows_sum_to_one=True,
            is_row_local=True,
            hardens=False,
            weights=lambda self, s, seen: s[..., :1],
        ),
        "must return real weights",
    ),
    "negative kernel": (
        "kernel",
        member(
            rows_sum_to_one=True,
            is_row_local=True,
            hardens=False,
            weights=lambda self, s, seen: -np.ones_like(s),
        ),
        "must return weights of 0 or more",
    ),
    "kernel of text": (
        "kernel",
        member(
            rows_sum_to_one=True,
            is_row_local=True,
            hardens=False,
            weights=lambda self, s, seen: s.astype(str),
        ),
        "must return real weights",
    ),
    "blind mask": (
        "mask",
        member(seen=lambda self, n: np.tri(n, k=-1, dtype=bool)),
        "at least, but token 0 of 5 sees none",
    ),
    "mask of numbers": (
        "mask",
        member(seen=lambda self, n: np.ones((n, n))),
        "must return booleans of shape (5, 5)",
    ),
    "mask of another shape": (
        "mask",
        member(seen=lambda self, n: np.ones(n, bool)),
        "must return booleans of shape (5, 5)",
    ),
    "scores of another shape": (
        "scores",
        member(compare=lambda self, q, k: q),
        "must return real numbers of shape (1, 5, 5)",
    ),
    "read of another shape": (
        "read",
        member(__call__=lambda self, x: x[..., :1]),
        "must return real numbers of the shape",
    ),
    "write of another shape": (
        "write",
        member(__call__=lambda self, x: x[..., :1]),
        "must return real numbers of the shape",
    ),
    "speed of several numbers": (
        "speed",
        member(__call__=lambda self, t: np.ones(2)),
        "must return one real number",
    ),
    "drift of complex numbers": (
        "feedforward",
        member(__call__=lambda self, x, t: 1j * x),
        "must return real numbers",
    ),
    "noise of another shape": (
        "noise",
        member(increment=lambda self, rng, x, dt: x[0]),
        "must return real numbers",
    ),
    "space that checks to another shape": (
        "geometry",
        space(check=lambda self, x: x[0]),
        "must return real numbers",
    ),
    "space that checks to NaN": (
        "geometry",
        space(check=lambda self, x: NAN * x),
        "must return finite first tokens",
    ),
    "space that projects to another shape": (
        "geometry",
        space(project=lambda self, x, v: v[:1]),
        "must return real numbers",
    ),
    "space that retracts to another shape": (
        "geometry",
        space(retract=lambda self, x: x[:1]),
        "must return real numbers",
    ),
}

NOT_FINITE = {
    "kernel": member(
        rows_sum_to_one=True,
        is_row_local=True,
        hardens=False,
        weights=lambda self, s, seen: NAN * s,
    ),
    "read": member(__call__=lambda self, x: NAN * x),
    "write": member(__call__=lambda self, x: NAN * x),
    "speed": member(__call__=lambda self, t: NAN),
    "feedforward": member(__call__=lambda self, x, t: NAN * x),
    "noise": member(increment=lambda self, rng, x, dt: NAN * x),
    "geometry": space(project=lambda self, x, v: NAN * v),
    "geometry, retract": space(retract=lambda self, x: NAN * x),
}


def register(axis, kind, monkeypatch):
    registry = AXES[axis]
    assert "test_bad" not in registry  # which imports them all, before the list is put aside
    monkeypatch.setattr(registry, "_things", dict(registry._things))
    registry.register("test_bad")(type("Bad", (kind,), {}))
    return {axis: "test_bad", **(NOISY if axis == "noise" else {})}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_used_is_a_sentence_with_the_name(name, monkeypatch):
    axis, kind, words = BAD[name]
    options = register(axis, kind, monkeypatch)
    steps = {**options, **NOISY} if "retracts" in name else options
    with pytest.raises(ValueError) as caught:
        al.simulate(WEIGHTS, X0, t_end=0.5, saves=2, **steps)
    assert f'The {AXES[axis].kind} "test_bad"' in str(caught.value) and words in str(caught.value)


@pytest.mark.parametrize("name", NOT_FINITE)
def test_what_is_not_finite_is_no_run_and_has_a_name(name, monkeypatch):
    axis = name.partition(",")[0]
    options = {**register(axis, NOT_FINITE[name], monkeypatch), **NOISY}
    run = al.simulate(WEIGHTS, X0, t_end=0.5, saves=6, throw=False, **options)
    assert not run.is_ok and run.stats["member_not_finite"] == f'{AXES[axis].kind} "test_bad"'
    assert np.isfinite(run.states).all()
    with pytest.raises(
        al.RunFailed,
        match=f'The {AXES[axis].kind} "test_bad" returned non-finite numbers for finite tokens',
    ):
        al.simulate(WEIGHTS, X0, t_end=0.5, saves=6, **options)


FLAGGED = [
    (axis, flag) for axis, registry in AXES.items() for flag in (*registry.flags, *registry.later)
]


@pytest.mark.parametrize("axis, flag", FLAGGED)
def test_a_flag_of_another_type_is_refused(axis, flag, monkeypatch):
    registry = AXES[axis]
    parts = {name: lambda self, *given: None for name in registry.functions} | dict.fromkeys(
        registry.flags, True
    )
    with pytest.raises(
        TypeError,
        match=f"The flag {flag} of the {registry.kind} 'test_bad' must be True or False, got 'no'",
    ):
        registry.register("test_bad")(member(**{**parts, flag: "no"}))


@pytest.mark.parametrize("axis", AXES)
def test_a_function_that_is_missing_and_a_name_that_is_taken_are_refused(axis):
    registry = AXES[axis]
    parts = {name: lambda self, *given: None for name in registry.functions} | dict.fromkeys(
        registry.flags, True
    )
    for function in registry.functions:
        with pytest.raises(
            TypeError, match=f"The {registry.kind} 'test_bad' must have the function {function}"
        ):
            registry.register("test_bad")(
                member(**{name: part for name, part in parts.items() if name != function})
            )
    with pytest.raises(
        ValueError, match=f"The {registry.kind} '{registry.default}' is registered already"
    ):
        registry.register(registry.default)(member(**parts))
    assert "test_bad" not in registry
