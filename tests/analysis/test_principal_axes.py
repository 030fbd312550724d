"""Principal axes against a planted plane and an SVD."""

import numpy as np

from attnlab.analysis.principal_axes import principal


def test_principal_finds_a_planted_plane():
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    sizes = np.array([5.0, 2.0, 0.5] + [1e-3] * 6)
    for steps in (2, 40):  # fewer and more points than coordinates
        planted = rng.normal(size=(steps, 3, 9)) * sizes
        x = planted @ frame.T + 7.0
        coordinates, shares = principal(x)
        flat = x.reshape(-1, 9) - x.reshape(-1, 9).mean(axis=0)
        left, values, _ = np.linalg.svd(flat, full_matrices=False)
        np.testing.assert_allclose(shares, values[:3] ** 2 / np.sum(values**2), atol=1e-10)
        np.testing.assert_allclose(
            np.abs(coordinates.reshape(-1, 3)), np.abs(left[:, :3] * values[:3]), atol=1e-6
        )
        largest = np.abs(coordinates.reshape(-1, 3)).argmax(axis=0)
        assert (coordinates.reshape(-1, 3)[largest, range(3)] > 0).all()


def test_principal_axes_that_carry_nothing_are_zero():
    line = np.linspace(-1, 1, 12).reshape(4, 3, 1) * np.array([3.0, 4.0, 0.0, 0.0])
    coordinates, shares = principal(line)
    np.testing.assert_allclose(shares, [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(
        np.abs(coordinates[..., 0]), 5 * np.abs(np.linspace(-1, 1, 12).reshape(4, 3)), atol=1e-12
    )
    assert not coordinates[..., 1:].any()
    still, none = principal(np.ones((3, 2, 5)))
    assert not still.any() and not none.any()
