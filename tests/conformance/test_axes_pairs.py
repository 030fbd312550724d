"""Every member of an axis with every member of every other axis, and random choices on all axes at
once.

Two members are refused by a sentence that names both, or they make an equation that runs: compiled
equals reference, a batch equals single runs, and the words of the run make the equation again.
"""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES
from axes_members import (
    NAMES,
    WEIGHTS,
    loop_velocity,
    loop_velocity_z,
    own_members,
    refusal,
    start,
    word,
)

assert own_members  # a fixture: the members of the tests are registered in this file

TOKENS = 5


def is_sensible(words):
    """Whether the members of these words make an equation, by their flags: which pairs make no
    sense is said here once more.
    """
    members = {axis: AXES[axis].make(words.get(axis)) for axis in AXES}
    if not members["kernel"].is_row_local and not members["mask"].sees_all:
        return False  # whole columns of scores are needed
    if not members["feedforward"].acts_on_z:
        return True
    plain = (
        members["geometry"].is_linear,
        members["kernel"].rows_sum_to_one,
        members["scores"].is_dot,
        members["read"].is_identity,
        members["write"].is_identity,
        members["speed"].is_constant,
        members["noise"].is_none,
    )
    return all(plain)  # there must be tokens z of the plain flow


def check_equation(names):
    """Whether the members {axis: name} make an equation; fail where they are not refused, or do not
    run, as they should.
    """
    words = {axis: word(name, TOKENS) for axis, name in names.items()}
    message = refusal(**words)
    assert (not message) == is_sensible(words), message or "accepted, and makes no sense"
    if message:
        return False
    dynamics = al.Dynamics.of(WEIGHTS, **words)
    geometry = names.get("geometry", "euclidean")
    both = np.stack([start(geometry, seed, TOKENS) for seed in (0, 9)])
    check_velocity(dynamics, both)
    run = check_batch(dynamics, both)
    said = run.dynamics.words()
    assert al.Dynamics.from_words(json.loads(json.dumps(said)), WEIGHTS).words() == said
    assert all(said[axis] == given for axis, given in words.items())
    return True


def check_velocity(dynamics, both):
    """In every frame that the equation has, the fastest velocity is that of the reference, and this
    is that of two loops.
    """
    frames = (
        ("z",)
        if dynamics.feedforward.acts_on_z
        else ("x", "z")
        if dynamics.is_value_linear
        else ("x",)
    )
    for frame in frames:
        fast, slow = (
            al.velocity(dynamics, both, 0.3, frame=frame, method=method)
            for method in ("auto", "reference")
        )
        assert np.isfinite(slow).all() and slow.any()
        np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-13)
        loop = loop_velocity if frame == "x" else loop_velocity_z
        np.testing.assert_allclose(
            slow, [loop(dynamics, one, 0.3) for one in both], rtol=1e-10, atol=1e-12
        )


def check_batch(dynamics, both):
    """The run of two starts, which must be two single runs, bit for bit."""
    options = {"t_end": 0.1, "saves": 3, "max_steps": 40, "throw": False}
    has_noise = not dynamics.noise.is_none
    if (
        has_noise or dynamics.kernel == "hardmax"
    ):  # adaptive steps do not get past the places where hardmax slides
        options |= {"stepper": "euler", "dt": 0.05}
    seeds = [{"rng": 3}, {"rng": (3, 0)}, {"rng": (3, 1)}] if has_noise else [{}] * 3
    batch, *alone = (
        al.simulate(dynamics, x0, **seed, **options)
        for x0, seed in zip((both, *both), seeds, strict=True)
    )
    for member, run in enumerate(alone):
        assert run.is_ok and batch.status[member] is run.status, run.status
        np.testing.assert_array_equal(batch.states[member], run.states)
        assert not np.array_equal(run.states[0], run.states[-1]), "the tokens do not move"
    return batch


@pytest.mark.parametrize("one, other", list(itertools.combinations(AXES, 2)))
def test_every_pair_is_refused_or_runs(one, other):
    failures = []
    for names in itertools.product(NAMES[one], NAMES[other]):
        try:
            check_equation(dict(zip((one, other), names, strict=True)))
        except Exception as problem:  # one failure must not hide the next pair
            failures.append(
                f"{one} {names[0]} with {other} {names[1]}: {type(problem).__name__}: {problem}"
            )
    assert not failures, "\n".join(failures)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(200))
def test_members_of_all_axes_are_refused_or_run(index):
    """Random choices on all axes, most of which are refused, until one of them runs."""
    generator = np.random.default_rng(index)
    choices = (
        {axis: str(generator.choice(names)) for axis, names in NAMES.items()} for _ in range(200)
    )
    assert any(map(check_equation, choices))
