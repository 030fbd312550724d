"""Neural collapse (Papyan, Han, Donoho 2020) of tokens with labels: NC1, variability within
clusters, NC2, simplex of the means.

Labels are those of the FINAL clusters, used at all times. Clusters of one token are left out (they
have no variability, so NC1 would be 0 by definition), and so is the label -1 of an undecided token.
Means are centred at the mean of the cluster means, so that a simplex has cosines -1/(C-1) whatever
the cluster sizes.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from attnlab.analysis.clusters import cluster_centres


def _kept(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of clusters of two or more, and their labels renumbered from 0."""
    x, labels = np.asarray(x, dtype=float), np.asarray(labels)
    if labels.shape != (x.shape[-2],):
        raise ValueError(
            f"labels must hold one integer for each of the {x.shape[-2]} tokens, got shape"
            f" {labels.shape}."
        )
    names, counts = np.unique(labels[labels >= 0], return_counts=True)
    names = names[counts >= 2]
    if len(names) < 2:
        raise ValueError(
            "Neural collapse compares clusters: at least two with two tokens or more are needed,"
            f" got {len(names)}."
        )
    kept = np.isin(labels, names)
    return x[..., kept, :], np.searchsorted(names, labels[kept])


def _centred_means(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cluster means (..., C, d), and these minus their own mean."""
    means = cluster_centres(x, labels)
    return means, means - means.mean(axis=-2, keepdims=True)


def nc1(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """NC1 = tr(Sigma_W Sigma_B^+) / C of tokens x (..., n, d), labels (n,) -> (...); 0 at collapse.

    Sigma_W = mean over tokens of (x - mu_c)(x - mu_c)^T, Sigma_B = mean over clusters of (mu_c -
    mu)(mu_c - mu)^T, and ^+ is the pseudo-inverse.
    """
    x, labels = _kept(x, labels)
    means, centred = _centred_means(x, labels)
    count = means.shape[-2]
    # Sigma_B = A^T A / C with A = centred (C, d): its pseudo-inverse through the thin SVD of A,
    # never a d x d matrix
    _, s, directions = np.linalg.svd(centred, full_matrices=False)  # (..., r), (..., r, d)
    within = (x - means[..., labels, :]) @ np.swapaxes(directions, -1, -2)  # (..., n, r)
    present = s > s[..., :1] * max(centred.shape[-2:]) * np.finfo(float).eps
    inverse = np.where(present, count / np.where(present, s, 1.0) ** 2, 0.0)
    return np.sum(np.mean(within**2, axis=-2) * inverse, axis=-1) / count


def nc2(x: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(angles, norms) of the centred means of x (..., n, d), labels (n,) -> two arrays (...); both
    0 for a regular simplex.

    angles : mean over pairs c != c' of |cos(mu_c - mu, mu_c' - mu) + 1/(C-1)|
    norms : standard deviation of |mu_c - mu| over its mean
    """
    x, labels = _kept(x, labels)
    _, centred = _centred_means(x, labels)
    count = centred.shape[-2]
    lengths = np.linalg.norm(centred, axis=-1)  # (..., C)
    with np.errstate(invalid="ignore", divide="ignore"):  # equal means have no angle: NaN
        units = centred / lengths[..., None]
        cosines = units @ np.swapaxes(units, -1, -2)
        pairs = cosines[..., ~np.eye(count, dtype=bool)]
        return np.mean(np.abs(pairs + 1 / (count - 1)), axis=-1), lengths.std(
            axis=-1
        ) / lengths.mean(axis=-1)


def plain_nc1(x: np.ndarray, labels: np.ndarray) -> float:
    """Return NC1 of tokens x (n, d) as it is defined: loops over tokens, a d x d pseudo-inverse."""
    names = [c for c in set(labels.tolist()) if np.sum(labels == c) > 1]
    kept = [(y, label) for y, label in zip(x, labels, strict=True) if label in names]
    means = {c: np.mean([y for y, label in kept if label == c], axis=0) for c in names}
    middle = np.mean(list(means.values()), axis=0)
    within = sum(np.outer(y - means[c], y - means[c]) for y, c in kept) / len(kept)
    between = sum(np.outer(mean - middle, mean - middle) for mean in means.values()) / len(names)
    return float(np.trace(within @ np.linalg.pinv(between, rcond=1e-13)) / len(names))


def scatter_share(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the scatter inside clusters over all scatter of x (..., n, d) -> (...).

    Scatter is the sum of the squares of distances: to the mean of the cluster, to the mean of all.
    Unlike NC1 it does not depend on where the clusters are.
    """
    means = cluster_centres(x, labels)
    within = np.square(x - means[..., labels, :]).sum(axis=(-2, -1))
    every = np.square(x - x.mean(axis=-2, keepdims=True)).sum(axis=(-2, -1))
    return np.asarray(within / every)


def centre_rank(x: np.ndarray, labels: np.ndarray, tolerance: float) -> int:
    """Return the dimension that the centres of clusters of two or more span; C - 1 is the most.

    tolerance: singular values below it count as 0.
    """
    centres = cluster_centres(x, labels)[np.bincount(labels) > 1]
    return int(np.linalg.matrix_rank(centres - centres.mean(axis=0), tol=tolerance))


def nc2_of_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return NC2 (angles, norms) of points (..., C, d), each taken as a collapsed cluster."""
    labels = np.repeat(np.arange(points.shape[-2]), 2)  # twice: one token alone is no cluster
    return nc2(np.repeat(points, 2, axis=-2), labels)


def least_angles(count: np.ndarray, d: int) -> np.ndarray:
    """Return a lower bound of NC2's angles for `count` points of R^d: above 0 beyond d + 1 points.

    C unit vectors of R^d have sum cos^2 >= C^2 / d, by the trace of their Gram matrix. So over
    pairs sum (cos + 1/(C-1))^2 >= C^2 (1/d - 1/(C-1)), and no |cos + 1/(C-1)| exceeds C/(C-1).
    """
    return np.asarray(np.maximum(1 / d - 1 / (count - 1), 0.0))


def norms_on_line(position: float) -> float:
    """Return NC2's norms of the points 0, 1 and `position` of a line."""
    lengths = np.abs(np.array([0.0, 1.0, position]) - (1 + position) / 3)
    return float(lengths.std() / lengths.mean())


def nearest_fraction(heads: int, norms: float) -> tuple[float, Fraction]:
    """Return how far NC2's norms are from those of a third cluster at p/q, q <= heads; and p/q.

    With Boolean heads a cluster between two others ends at such a fraction of the line between
    them. p/q and 1 - p/q give the same number, so p/q is at most 1/2.
    """
    known = sorted({Fraction(p, q) for q in range(2, heads + 1) for p in range(1, q // 2 + 1)})
    return min((abs(norms - norms_on_line(float(one))), one) for one in known)
