"""Attention as a Markov chain: the closed classes of a stochastic matrix, their periods, and its
eigenvalues of modulus 1.

A mean of the attention matrices of several heads is a chain that chooses a head at random and then
a token by its weights. A closed class is a set of tokens that all reach each other and no token
outside. A class of period p has the p eigenvalues e^{2 pi i k / p}, and no other eigenvalue has
modulus 1.
"""

from __future__ import annotations

import math

import numpy as np

EDGE = 1e-8
"""Weights below it are no edge: near a Boolean matrix all weights but those of the leaders are far
smaller.
"""


def closed_classes(P: np.ndarray, edge: float = EDGE) -> list[np.ndarray]:
    """The closed classes of a stochastic matrix P (n, n), each as the numbers of its tokens."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    follows = P > edge
    count, labels = connected_components(
        csr_matrix(follows.astype(int)), directed=True, connection="strong"
    )
    classes = [np.flatnonzero(labels == label) for label in range(count)]
    return [
        members
        for members in classes
        if not follows[members][:, labels != labels[members[0]]].any()
    ]


def period_of_class(P: np.ndarray, members: np.ndarray, edge: float = EDGE) -> int:
    """The period of a class of P: the greatest common divisor of the lengths of its cycles."""
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


def unit_eigenvalue_count(P: np.ndarray, edge: float = EDGE) -> int:
    """The number of eigenvalues of modulus 1 of a stochastic matrix, from its graph: the periods of
    the closed classes, added.
    """
    return sum(period_of_class(P, members, edge) for members in closed_classes(P, edge))


def power_limit(P: np.ndarray) -> np.ndarray:
    """Return lim P^k (n, n) of a stochastic matrix without periods: who follows whom in the end.

    P^(2^20): classes that are left at a rate below 1e-6 have not come to rest by then.
    """
    return np.linalg.matrix_power(P, 2**20)
