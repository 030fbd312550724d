"""One token: x' = W x whatever the attention is, so z stays where it starts. Every way to get z
must say so, or refuse.

The hardest test of the frames: nothing can hide that a slow coordinate of z has drowned in the
rounding of x.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al

ROTATION = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
START = np.array([[0.7, -1.1, 0.4]])


def rotated(*block):
    return ROTATION @ np.array(block, dtype=float) @ ROTATION.T


DIAGONAL = np.diag([1.0, 0.2, -0.5])
MATRICES = {
    "diagonal": DIAGONAL,
    "rotated": ROTATION @ DIAGONAL @ ROTATION.T,
    "complex pair": rotated([1, 0, 0], [0, -0.2, 0.9], [0, -0.9, -0.2]),
    "jordan": rotated([1, 1, 0], [0, 1, 0], [0, 0, -0.5]),
    "oblique": np.array([[1.0, 30.0, 0.0], [0.0, -0.5, 2.0], [0.0, 0.0, 0.3]]),
}


def weights(name):
    V = MATRICES[name]
    left = np.random.default_rng(3).normal(size=(5, 3))
    return {
        "one head": (al.Weights(V=V), START),
        "two equal heads": (al.Weights(V=np.stack([V / 2, V / 2])), START),
        "factors": (al.Weights(V=(left @ V, np.linalg.pinv(left))), START @ left.T),
        "singular factors": (
            al.Weights(V=(left @ V @ np.diag([1, 1, 0]), np.linalg.pinv(left))),
            START @ left.T,
        ),
    }


@pytest.mark.parametrize("t_end", [5.0, 20.0, 28.0])
@pytest.mark.parametrize("kind", ["one head", "two equal heads", "factors", "singular factors"])
@pytest.mark.parametrize("matrix", MATRICES)
def test_z_stays_or_is_refused(matrix, kind, t_end):
    w, x0 = weights(matrix)[kind]
    run = al.simulate(w, x0, t_end=t_end, saves=5)
    try:
        z = run.z
    except ArithmeticError as refusal:
        assert "rounding" in str(refusal)
        assert matrix in ("jordan", "oblique") or "factors" in kind, "a good eigenbasis exists"
        return
    # rtol 1e-8 relative to each group; e^{-tW} of a Jordan block adds a factor t, an oblique basis
    # its condition number
    condition = (
        np.linalg.cond(np.linalg.eig(MATRICES[matrix])[1]) if matrix == "oblique" else 1.0 + t_end
    )
    assert np.abs(z - x0).max() <= 20e-8 * condition * np.abs(x0).max()


@pytest.mark.parametrize("matrix", ["diagonal", "rotated", "complex pair", "jordan"])
@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"stepper": "rk4", "dt": 0.01, "frame": "x"}, 1e-6),  # 28 * 0.01^4 / 120
        ({"stepper": "rk4", "dt": 0.01, "frame": "z"}, 1e-12),  # z' = 0 exactly
        ({"layers": 60, "dt": 0.5}, 1e-10),  # exact up to rounding
    ],
)
def test_fixed_steps_and_layers(matrix, options, tolerance):
    w = al.Weights(V=MATRICES[matrix])
    end = {} if "layers" in options else {"t_end": 28.0}
    run = al.simulate(w, START, **end, saves=5, **options)
    try:
        z = run.z
    except ArithmeticError:
        assert matrix == "jordan"
        return
    assert np.abs(z - START).max() <= tolerance


def test_layers_with_negative_and_complex_factors():
    """1 + dt lambda = -1.5 alternates its sign, and a pair turns: z must stand still through
    both.
    """
    V = rotated([-2.5, 0, 0], [0, 0.1, 0.8], [0, -0.8, 0.1])
    run = al.simulate(al.Weights(V=V), START, layers=21)
    np.testing.assert_allclose(run.z, np.broadcast_to(START, run.z.shape), atol=1e-11)
    np.testing.assert_allclose(
        run.x[-1], START @ np.linalg.matrix_power(np.eye(3) + V, 21).T, rtol=1e-11
    )


def test_a_zero_coordinate_that_would_overflow_stays_zero():
    run = al.simulate(al.Weights(V=np.diag([1.0, -1.0])), [[1.0, 0.0]], times=[0.0, 800.0])
    np.testing.assert_allclose(run.z[-1], [[1.0, 0.0]], rtol=1e-6)
