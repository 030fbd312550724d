"""Hyperplanes {z : phi*_1(z) = c}: the coordinate of the tokens along the leading left eigenvector of V, grouped.

Theorem 4.2: for a good triple phi*_1(z_i(t)) converges for every token, to at most three values 0, a, b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.spectra import leading
from attnlab.displayed import Displayed, short_repr
from attnlab.types import Weights


@dataclass(frozen=True, eq=False)
class Hyperplanes(Displayed):
    """Parallel hyperplanes {z : psi(z) = c}, c in `levels` (m,) ascending; token i belongs to labels[i], all within `width`."""

    psi: np.ndarray
    levels: np.ndarray
    labels: np.ndarray
    width: float
    __repr__ = short_repr


def leading_coordinates(weights: Weights, z: np.ndarray) -> np.ndarray:
    """phi*_1(z_i) for tokens z (..., n, d) -> (..., n), with phi*_1(phi_1) = 1 and |phi_1| = 1. lambda_1 must be real."""
    first = leading(weights)
    if first.value.imag != 0:
        raise ValueError(f"The leading eigenvalue of V must be real to define hyperplanes, but it is {first.value:.4g}.")
    return np.asarray(z, dtype=float) @ first.psi


def find_hyperplanes(weights: Weights, z: np.ndarray, scale: float) -> Hyperplanes:
    """The levels of phi*_1 at which the tokens z (n, d) lie; values in steps of at most `scale` make one level, their mean."""
    values = leading_coordinates(weights, z)                                   # (n,)
    labels = cluster_labels(values[:, None], scale)
    levels = cluster_centres(values[:, None], labels)[:, 0]
    order = np.argsort(levels)
    ranks = np.argsort(order)
    return Hyperplanes(leading(weights).psi, levels[order], ranks[labels], float(np.abs(values - levels[labels]).max()))
