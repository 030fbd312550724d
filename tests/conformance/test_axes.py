"""Kernels, and their products with masks and spaces: every registered member does what it should,
members of a test too.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES
from attnlab.dynamics import attention_matrices, velocity_x, velocity_z
from attnlab.engine.plan import is_compiled
from axes_members import (
    NAMES,
    PRODUCTS,
    SCORES,
    WEIGHTS,
    D,
    N,
    loop_velocity,
    loop_velocity_z,
    own_members,
    start,
    together,
    word,
)

assert own_members  # a fixture: the members of the tests are registered in this file


def test_sinkhorn_is_doubly_stochastic():
    for size in (0.1, 1.0, 2.0):
        P = AXES["kernel"].make("sinkhorn").weights(size * SCORES, np.ones(SCORES.shape, bool))
        np.testing.assert_allclose(P.sum(axis=-1), 1, atol=1e-12)
        np.testing.assert_allclose(P.sum(axis=-2), 1, atol=1e-12)
        ratio = (
            np.log(P) - size * SCORES
        )  # diag(u) e^s diag(v): log P - s is a sum of rows and columns
        ratio = ratio - ratio.mean(axis=-1, keepdims=True)
        assert np.abs(ratio - ratio.mean(axis=-2, keepdims=True)).max() < 1e-9


def test_a_sinkhorn_that_does_not_settle_is_a_status():
    run = al.simulate(
        al.Weights(V=np.eye(3)), start(), t_end=1.0, kernel="sinkhorn", beta=60.0, throw=False
    )
    assert (
        run.status in (al.Status.NON_FINITE, al.Status.STALLED)
        and run.stats["member_not_finite"] == 'kernel "sinkhorn"'
    )


def test_sigmoid_by_hand():
    x = start()
    for bias in (None, -2.0):
        dynamics = al.Dynamics.of(
            WEIGHTS, kernel={"name": "sigmoid", "bias": bias}, mask="causal", beta=1.5
        )
        P = attention_matrices(dynamics, x)
        for h, i, j in np.ndindex(P.shape):
            s = 1.5 * (WEIGHTS.Q[h] @ x[i]) @ (WEIGHTS.K[h] @ x[j])
            expected = (
                1 / (1 + np.exp(-(s + (-np.log(i + 1) if bias is None else bias))))
                if j <= i
                else 0.0
            )
            assert P[h, i, j] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("kernel, mask, geometry", PRODUCTS)
def test_compiled_equals_reference_and_a_batch_a_loop(kernel, mask, geometry):
    dynamics = together(kernel=word(kernel), mask=word(mask), geometry=geometry)
    x = start(geometry)
    fast, slow = al.velocity(dynamics, x), al.velocity(dynamics, x, method="reference")
    np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(slow, loop_velocity(dynamics, x), rtol=1e-10, atol=1e-12)
    both = np.stack([x, start(geometry, seed=9)])
    options = {
        "t_end": 0.4,
        "saves": 3,
        "throw": False,
        "max_steps": 60,
    }  # hardmax slides, for ever
    batch = al.simulate(dynamics, both, **options)
    assert batch.stats["path"] == ("compiled" if is_compiled(dynamics) else "reference")
    for member in range(2):
        alone = al.simulate(dynamics, both[member], **options)
        np.testing.assert_array_equal(batch.states[member][: len(alone.times)], alone.states)
    if geometry == "sphere":
        norms = np.linalg.norm(batch.x, axis=-1)
        np.testing.assert_allclose(norms[np.isfinite(norms)], 1, atol=1e-12)


@pytest.mark.parametrize(
    "mask, same",
    [
        ({"name": "window", "width": N}, "full"),
        ({"name": "window", "width": N, "causal": True}, "causal"),
    ],
)
@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_a_run_on_the_reference_path_is_the_compiled_run(mask, same, geometry):
    """A window as wide as the text is the mask of attnlab's own, without compiled code."""
    options = {"geometry": geometry, "t_end": 3.0, "saves": 7, "rtol": 1e-10}
    slow, fast = (
        al.simulate(WEIGHTS, start(geometry), mask=one, **options) for one in (mask, same)
    )
    assert (slow.stats["path"], fast.stats["path"]) == ("reference", "compiled")
    size = np.abs(fast.x).max(axis=(-2, -1), keepdims=True)
    assert np.abs((slow.x - fast.x) / size).max() < 1e-8
    assert geometry == "sphere" or np.abs(slow.z - fast.z).max() < 1e-7 * np.abs(fast.z).max()


def test_the_reference_path_ends_at_the_precision_wall():
    x0 = np.random.default_rng(0).uniform(-2, 2, (20, 2))
    runs = [
        al.simulate(al.Weights(V=np.eye(2)), x0, t_end=60.0, saves=61, mask=mask, throw=False)
        for mask in ("full", {"name": "window", "width": 20})
    ]
    assert [run.status for run in runs] == [al.Status.PAST_DOUBLE_PRECISION] * 2
    assert abs(runs[0].stats["reached"] - runs[1].stats["reached"]) < 5.0


@pytest.mark.parametrize("kernel", NAMES["kernel"])
def test_permutations_and_rotations(kernel):
    dynamics, x = al.Dynamics.of(WEIGHTS, kernel=word(kernel)), start(seed=6)
    order = np.random.default_rng(2).permutation(N)
    np.testing.assert_allclose(
        velocity_x(dynamics, x[order]), velocity_x(dynamics, x)[order], rtol=1e-9, atol=1e-11
    )
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(D, D)))[0]
    turned = al.Weights(Q=WEIGHTS.Q @ turn.T, K=WEIGHTS.K @ turn.T, V=turn @ WEIGHTS.V @ turn.T)
    there = velocity_x(dynamics.replace(weights=turned), x @ turn.T)
    np.testing.assert_allclose(there, velocity_x(dynamics, x) @ turn.T, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", NAMES["kernel"])
def test_z_is_x_rescaled(kernel):
    """d/dt of e^{-tW} x, for rows that sum to 1 and for others."""
    dynamics, z = al.Dynamics.of(WEIGHTS, kernel=word(kernel)), start(seed=7)
    np.testing.assert_allclose(
        velocity_z(dynamics, z, 0.3), loop_velocity_z(dynamics, z, 0.3), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("axis, name", [(axis, name) for axis in NAMES for name in NAMES[axis]])
def test_every_member_is_saved_and_loaded(axis, name, tmp_path):
    geometry = name if axis == "geometry" else "euclidean"
    options = {"stepper": "euler", "dt": 0.1} if axis == "noise" else {}
    run = al.simulate(
        WEIGHTS,
        start(geometry),
        t_end=0.2,
        saves=3,
        throw=False,
        max_steps=60,
        **{axis: word(name)},
        **options,
    )
    al.save(run, tmp_path / "run.nc")
    again = al.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.states, run.states)
    assert again.dynamics.words() == run.dynamics.words() and getattr(
        again.dynamics, axis
    ) == getattr(run.dynamics, axis)
    assert al.Dynamics.from_words(run.dynamics.words(), WEIGHTS).words() == run.dynamics.words()
    np.testing.assert_array_equal(al.attention(again), al.attention(run))


@pytest.mark.parametrize("kernel", [name for name in NAMES["kernel"] if name != "hardmax"])
def test_observed_order_of_fixed_steps(kernel):
    def end(**options):
        return al.simulate(WEIGHTS, start(), t_end=0.5, saves=2, kernel=word(kernel), **options).x[
            -1
        ]

    truth = end(rtol=1e-12)
    for stepper, order in (("euler", 1), ("rk4", 4)):
        errors = [np.abs(end(stepper=stepper, dt=dt) - truth).max() for dt in (0.1, 0.05)]
        assert order - 0.35 < np.log2(errors[0] / errors[1]) < order + 0.6


@pytest.mark.parametrize("kernel", NAMES["kernel"])
def test_layers_are_the_recursion(kernel):
    dynamics = al.Dynamics.of(WEIGHTS, kernel=word(kernel), geometry="sphere", dt=0.2)
    x = start("sphere")
    run = al.simulate(dynamics, x, layers=3)
    for _ in range(3):
        x = x + 0.2 * sum(
            P @ x @ V.T
            for P, V in zip(attention_matrices(dynamics, x), WEIGHTS.full_V, strict=True)
        )
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(run.x[-1], x, rtol=1e-11)
