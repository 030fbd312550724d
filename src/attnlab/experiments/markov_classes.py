"""A sum of H row-stochastic matrices as a Markov chain: closed classes, their periods, and its growth without an eigenvalue.

S / H is the chain that chooses a head at random and then a token by its weights. A closed class is a set of tokens that all
reach each other and nobody outside; one of period p brings the p eigenvalues H e^{2 pi i k / p}, and no other has modulus H.
"""

from __future__ import annotations

import math

import numpy as np

EDGE = 1e-8
"""Weights below it are no edge: next to a Boolean matrix all but the leaders' are far below."""

PRODUCTS = 100
"""Multiplications by S that its growth is taken over, after as many that are not looked at."""

LOWEST = 0.5
"""The smallest entry of the first vector, the largest being 1: y_k = (S / H)^k y_0 stays between them, so that the growth of the
largest entry in one product is between LOWEST^(1 / PRODUCTS) and 1, whatever the eigenvectors are."""


def closed_classes(P: np.ndarray, edge: float = EDGE) -> list[np.ndarray]:
    """The closed classes of a stochastic matrix P (n, n), each as the numbers of its tokens."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    follows = P > edge
    count, labels = connected_components(csr_matrix(follows.astype(int)), directed=True, connection="strong")
    classes = [np.flatnonzero(labels == label) for label in range(count)]
    return [members for members in classes if not follows[members][:, labels != labels[members[0]]].any()]


def period(P: np.ndarray, members: np.ndarray, edge: float = EDGE) -> int:
    """The greatest common divisor of the lengths of the cycles inside a class."""
    follows = P[np.ix_(members, members)] > edge
    level, found, waiting = {0: 0}, 0, [0]
    while waiting:
        i = waiting.pop()
        for j in np.flatnonzero(follows[i]).tolist():
            if j not in level:
                level[j] = level[i] + 1
                waiting.append(j)
            found = math.gcd(found, level[i] + 1 - level[j])
    return found


def outermost_count(P: np.ndarray, edge: float = EDGE) -> int:
    """The number of eigenvalues of modulus 1 of a stochastic matrix, from its graph: the periods of the closed classes, added."""
    return sum(period(P, members, edge) for members in closed_classes(P, edge))


def growth(S: np.ndarray, heads: int) -> float:
    """The spectral radius of S over the number of heads by multiplying a vector again and again: no LAPACK takes part."""
    y = np.random.default_rng(0).uniform(LOWEST, 1.0, len(S))
    y[0], y[-1] = 1.0, LOWEST
    sizes = []
    for _ in range(2 * PRODUCTS + 1):
        sizes.append(float(y.max()))
        y = S @ y / heads
    return (sizes[-1] / sizes[PRODUCTS]) ** (1 / PRODUCTS)
