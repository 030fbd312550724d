"""Principal axes of tokens over all times together."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh


def principal(x: np.ndarray, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return (coordinates (T, n, count), shares of variance (count,)) of x (T, n, d) on the
    principal axes of all times.

    It uses the smaller of the two products of the centred points with themselves, because an SVD
    would compute all axes. The coordinate of largest modulus is positive. Axes without variance are
    0.
    """
    flat = x.reshape(-1, x.shape[-1])
    centred = flat - flat.mean(axis=0)
    is_tall = centred.shape[0] >= centred.shape[1]
    gram = centred.T @ centred if is_tall else centred @ centred.T
    total, size = float(np.trace(gram)), len(gram)
    coordinates, shares = np.zeros((len(flat), count)), np.zeros(count)
    found = min(count, size)
    if total > 0:
        values, vectors = eigh(gram, subset_by_index=[size - found, size - 1])
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = np.flatnonzero(values > 1e-13 * total)
        along = centred @ vectors[:, kept] if is_tall else vectors[:, kept] * np.sqrt(values[kept])
        along = along * np.where(
            along[np.abs(along).argmax(axis=0), np.arange(len(kept))] < 0, -1.0, 1.0
        )
        coordinates[:, kept], shares[kept] = along, values[kept] / total
    return coordinates.reshape(*x.shape[:-1], count), shares
