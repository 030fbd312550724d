"""Masks, spaces, and what happens token by token: reads, writes and the normalisations that are
made of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES
from attnlab.dynamics import attention_matrices, velocity_x
from axes_members import NAMES, WEIGHTS, D, N, own_members, start, word

assert own_members  # a fixture: the members of the tests are registered in this file


@pytest.mark.parametrize("name", NAMES["mask"])
def test_masks_see_what_they_say(name):
    mask = AXES["mask"].make(word(name))
    seen = mask.seen(N)
    assert seen.shape == (N, N) and seen.dtype == bool and seen.any(axis=1).all()
    assert (
        seen.all() == mask.sees_all
        and np.array_equal(seen, np.tri(N, dtype=bool)) == mask.is_causal
    )


def test_the_window():
    band = AXES["mask"].make({"name": "window", "width": 2, "causal": True}).seen(6)
    assert [[i - j for j in range(6) if band[i, j]] for i in (0, 4)] == [[0], [2, 1, 0]]


@pytest.mark.parametrize("name", NAMES["geometry"])
def test_spaces_project_on_their_tangent(name):
    space, x = AXES["geometry"].make(name), start(name)
    v = np.random.default_rng(1).normal(size=x.shape)
    tangent = space.project(x, v)
    np.testing.assert_allclose(space.project(x, tangent), tangent, atol=1e-14)
    np.testing.assert_allclose(
        space.check(space.retract(x + 1e-3 * v)), space.retract(x + 1e-3 * v), atol=1e-14
    )
    for h in (1e-3, 1e-4):  # the retraction follows a tangent to second order
        assert np.abs(space.retract(x + h * tangent) - (x + h * tangent)).max() <= 20 * h * h
    assert space.is_linear == np.array_equal(tangent, v)


@pytest.mark.parametrize(
    "axis, name", [(axis, name) for axis in ("read", "write") for name in NAMES[axis]]
)
def test_what_is_token_by_token_is(axis, name):
    member, x = AXES[axis].make(word(name)), start(seed=3)
    out = member(x)
    assert out.shape == x.shape and np.array_equal(out, x) == member.is_identity
    np.testing.assert_array_equal(member(x[2:4]), out[2:4])


def test_reads_by_hand():
    x = start(seed=4)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(AXES["read"].make("rms_norm")(x), np.sqrt(D) * unit, rtol=1e-14)
    np.testing.assert_allclose(AXES["read"].make("unit_norm")(1e200 * x), unit, rtol=1e-14)
    normed = AXES["read"].make("layer_norm")(x)
    np.testing.assert_allclose(normed.mean(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(normed.std(axis=1), 1, rtol=1e-14)


def test_normalisations_by_hand():
    x, t = 3 * start(seed=8), 0.7
    theta = x / np.linalg.norm(x, axis=1, keepdims=True)

    def output(at):
        P = attention_matrices(al.Dynamics.of(WEIGHTS), at)
        return sum(P[h] @ at @ WEIGHTS.full_V[h].T for h in range(2))

    A = output(theta)
    unit, tangent = (
        A / np.linalg.norm(A, axis=1, keepdims=True),
        lambda v: v - (v * theta).sum(axis=1, keepdims=True) * theta,
    )
    expected = {
        "post": tangent(A),
        "pre": A,
        "peri": unit,
        "ngpt": tangent(unit),
        "ln_scaling": tangent(A) / np.sqrt(t + 1),
    }
    for name, velocity in expected.items():
        dynamics = al.Dynamics.of(WEIGHTS, normalisation=name)
        at = x if dynamics.geometry.is_linear else theta
        np.testing.assert_allclose(
            velocity_x(dynamics, at, 0.0, t), velocity, rtol=1e-12, atol=1e-13
        )
        run = al.simulate(dynamics, at, t_end=0.5, saves=3)
        assert run.z is None
        again = al.Dynamics.from_words(dynamics.words(), WEIGHTS)
        assert again.normalisation == name and again.words() == dynamics.words()
        assert dynamics.replace(beta=2.0).normalisation == name
    with pytest.raises(ValueError, match=r"normalisation=\"pre\" chooses geometry by itself"):
        al.Dynamics.of(WEIGHTS, normalisation="pre", geometry="sphere")
    for usual in (
        {"geometry": "euclidean"},
        {"read": "plain"},
        {"write": "plain"},
        {"speed": "constant"},
    ):
        for function in (al.simulate, al.predict, al.limit):
            with pytest.raises(ValueError, match=f"chooses {next(iter(usual))} by itself"):
                function(
                    WEIGHTS,
                    theta,
                    normalisation="post",
                    **usual,
                    **({"t_end": 1.0} if function is al.simulate else {}),
                )
    with pytest.raises(ValueError, match=r"normalisation=\"pre\" chooses geometry by itself"):
        al.Dynamics.of(WEIGHTS, normalisation="pre").replace(geometry="sphere")
    with pytest.raises(LookupError, match="Did you mean 'peri'"):
        al.Dynamics.of(WEIGHTS, normalisation="perri")


@pytest.mark.parametrize("beta, n, radius", [(0.5, 4, 1.0), (2.0, 5, 3.0)])
def test_orthogonal_starts_begin_as_the_closed_forms_say(beta, n, radius):
    """The rate of <theta_i, theta_j> at t = 0 for orthogonal tokens and Q = K = V = I
    (arXiv:2510.22026).
    """
    e = np.exp(beta)
    first = {
        "post": 2 / (e + n - 1),
        "pre": 2 / (radius * (e + n - 1)),
        "peri": 2 / (radius * np.sqrt(e**2 + n - 1)),
        "ngpt": 2 / np.sqrt(e**2 + n - 1),
        "ln_scaling": 2 / (e + n - 1),
    }
    weights, h = al.Weights(V=np.eye(n)), 1e-5
    for name, rate in first.items():
        dynamics = al.Dynamics.of(weights, normalisation=name, beta=beta)
        x0 = np.eye(n) * (radius if dynamics.geometry.is_linear else 1.0)
        run = al.simulate(dynamics, x0, times=[0.0, h], observe=["radius"])
        theta = run.x / np.linalg.norm(run.x, axis=-1, keepdims=True)
        np.testing.assert_allclose(
            run.observed["radius"], np.linalg.norm(run.x, axis=-1).mean(axis=-1), rtol=1e-14
        )
        assert (theta[1, 0] @ theta[1, 1]) / h == pytest.approx(rate, rel=1e-3), name
