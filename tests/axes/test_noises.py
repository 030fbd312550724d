"""Noise: its size, its streams, and the strong and the weak order of the steps."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from axes_members import WEIGHTS, GivenPath, own_members, start

assert own_members  # a fixture: the members of the tests are registered in this file


def test_noise_has_the_right_size_and_streams():
    still = al.Weights(V=np.zeros((2, 2)))
    x0 = np.zeros((3, 600, 2))
    noise = {
        "noise": {"name": "brownian", "kappa": 8.0},
        "stepper": "euler",
        "dt": 0.25,
        "t_end": 1.0,
    }
    run = al.simulate(still, x0, rng=3, times=[0.25, 1.0], **noise)
    assert run.times.tolist() == [0.25, 1.0]
    for at, t in enumerate(
        run.times
    ):  # variance 2 t / kappa, 3,600 numbers: within five deviations
        assert run.states[:, at].var() == pytest.approx(2 * t / 8, rel=5 * np.sqrt(2 / 3600))
    assert abs(np.corrcoef(run.states[0, -1].ravel(), run.states[1, -1].ravel())[0, 1]) < 0.15
    for member in range(3):
        alone = al.simulate(still, x0[member], rng=(3, member), **noise)
        np.testing.assert_array_equal(alone.states[[1, -1]], run.states[member])
    sphere = al.simulate(WEIGHTS, start("sphere"), geometry="sphere", **noise)
    np.testing.assert_allclose(np.linalg.norm(sphere.x, axis=-1), 1, atol=1e-13)


def test_the_strong_order_is_one_half_where_noise_depends_on_the_place():
    """On the sphere the noise is projected. One token, no drift: mean distance to a run with 16
    times as many steps.
    """
    finest, fine, runs = 2.0**-9, 2.0**-5, 300
    generator = np.random.default_rng(11)
    weights, errors = al.Weights(V=np.zeros((3, 3))), {}
    x0 = np.tile([1.0, 0.0, 0.0], (runs, 1))  # tokens that do not interact: many samples at once
    path = np.sqrt(finest) * generator.standard_normal((int(1 / finest), runs, 3))
    common = {"geometry": "sphere", "stepper": "euler", "times": [1.0]}
    ends = {
        dt: al.simulate(weights, x0, dt=dt, noise=GivenPath(path, finest), **common).x[-1]
        for dt in (finest, fine, fine / 4)
    }
    errors = [np.linalg.norm(ends[dt] - ends[finest], axis=1).mean() for dt in (fine, fine / 4)]
    assert 0.3 < np.log2(errors[0] / errors[1]) / 2 < 0.75


def test_the_weak_order_is_one():
    """x' = x + noise for tokens that see only themselves: every coordinate has the variance (e^{2t}
    - 1) / kappa at time t.

    400,000 coordinates are measured.
    """
    kappa, d, gaps = 4.0, 40, []
    for dt in (0.1, 0.05):
        ends = al.simulate(
            al.Weights(V=np.eye(d)),
            np.zeros((100, 100, d)),
            times=[1.0],
            stepper="euler",
            dt=dt,
            rng=1,
            mask={"name": "window", "width": 0},
            noise={"name": "brownian", "kappa": kappa},
        ).x
        gaps.append((np.e**2 - 1) / kappa - ends.var())
    assert 0.8 < np.log2(gaps[0] / gaps[1]) < 1.2
