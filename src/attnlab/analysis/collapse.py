"""Neural collapse (Papyan, Han, Donoho 2020) of tokens with labels: NC1, variability within clusters, NC2, simplex of the means.

Labels are those of the FINAL clusters, used at all times. Clusters of one token are left out (they have no variability, so
NC1 would be 0 by definition), and so is the label -1 of an undecided token. Means are centred at the mean of the cluster
means, so that a simplex has cosines -1/(C-1) whatever the cluster sizes.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis.clusters import cluster_centres


def _kept(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of clusters of two or more, and their labels renumbered from 0."""
    x, labels = np.asarray(x, dtype=float), np.asarray(labels)
    if labels.shape != (x.shape[-2],):
        raise ValueError(f"labels must hold one integer for each of the {x.shape[-2]} tokens, got shape {labels.shape}.")
    names, counts = np.unique(labels[labels >= 0], return_counts=True)
    names = names[counts >= 2]
    if len(names) < 2:
        raise ValueError(f"Neural collapse compares clusters: at least two with two tokens or more are needed, got {len(names)}.")
    kept = np.isin(labels, names)
    return x[..., kept, :], np.searchsorted(names, labels[kept])


def _centred_means(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cluster means (..., C, d), and these minus their own mean."""
    means = cluster_centres(x, labels)
    return means, means - means.mean(axis=-2, keepdims=True)


def nc1(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """NC1 = tr(Sigma_W Sigma_B^+) / C of tokens x (..., n, d), labels (n,) -> (...); 0 at collapse.

    Sigma_W = mean over tokens of (x - mu_c)(x - mu_c)^T, Sigma_B = mean over clusters of (mu_c - mu)(mu_c - mu)^T, and ^+ is
    the pseudo-inverse.
    """
    x, labels = _kept(x, labels)
    means, centred = _centred_means(x, labels)
    count = means.shape[-2]
    # Sigma_B = A^T A / C with A = centred (C, d): its pseudo-inverse through the thin SVD of A, never a d x d matrix
    _, s, directions = np.linalg.svd(centred, full_matrices=False)                                # (..., r), (..., r, d)
    within = (x - means[..., labels, :]) @ np.swapaxes(directions, -1, -2)                         # (..., n, r)
    present = s > s[..., :1] * max(centred.shape[-2:]) * np.finfo(float).eps
    inverse = np.where(present, count / np.where(present, s, 1.0) ** 2, 0.0)
    return np.sum(np.mean(within**2, axis=-2) * inverse, axis=-1) / count


def nc2(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(angles, norms) of the centred means of x (..., n, d), labels (n,) -> two arrays (...); both 0 for a regular simplex.

    angles : mean over pairs c != c' of |cos(mu_c - mu, mu_c' - mu) + 1/(C-1)|
    norms : standard deviation of |mu_c - mu| over its mean
    """
    x, labels = _kept(x, labels)
    _, centred = _centred_means(x, labels)
    count = centred.shape[-2]
    lengths = np.linalg.norm(centred, axis=-1)                                                    # (..., C)
    with np.errstate(invalid="ignore", divide="ignore"):                                          # equal means have no angle: NaN
        units = centred / lengths[..., None]
        cosines = units @ np.swapaxes(units, -1, -2)
        pairs = cosines[..., ~np.eye(count, dtype=bool)]
        return np.mean(np.abs(pairs + 1 / (count - 1)), axis=-1), lengths.std(axis=-1) / lengths.mean(axis=-1)
