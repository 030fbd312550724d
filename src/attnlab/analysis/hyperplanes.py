"""How near a cloud of points is to at most three parallel hyperplanes."""

from __future__ import annotations

import numpy as np


def three_planes(x: np.ndarray) -> float:
    """Return the smallest r such that three parallel hyperplanes have all points x (n, d) within r;
    d = 2 or 3.

    Normals are tried a third of a degree apart (d = 2) or about two degrees apart (d = 3).
    """
    values = np.sort(normals(x.shape[1]) @ x.T, axis=1)  # (normals, n)
    i, j = np.triu_indices(len(x) - 1, 1)  # groups end at i, j and n - 1
    first, middle, last = (
        values[:, i] - values[:, :1],
        values[:, j] - values[:, i + 1],
        values[:, -1:] - values[:, j + 1],
    )
    return float(np.maximum(np.maximum(first, middle), last).min() / 2)


def normals(d: int) -> np.ndarray:
    """Return unit vectors (m, d), spread evenly over half of the circle (d = 2) or half of the
    sphere (d = 3).
    """
    if d == 2:
        angle = np.pi * np.arange(540) / 540
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if d != 3:
        raise ValueError(
            f"Normals are spread for d = 2 or 3, got d = {d}. Project the points to the directions"
            " that count."
        )
    height, turn = (np.arange(3000) + 0.5) / 3000, np.pi * (1 + 5**0.5) * np.arange(3000)
    return np.stack(
        [np.sqrt(1 - height**2) * np.cos(turn), np.sqrt(1 - height**2) * np.sin(turn), height],
        axis=1,
    )
