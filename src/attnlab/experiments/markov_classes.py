"""A sum of H row-stochastic matrices as a Markov chain: closed classes, their periods, and heads dealt anew.

S / H is the chain that chooses a head at random and then a token by its weights. A closed class is a set of tokens that all
reach each other and nobody outside; one of period p brings the p eigenvalues H e^{2 pi i k / p}, and no other has modulus H.
"""

from __future__ import annotations

import math

import numpy as np

EDGE = 1e-8
"""Weights below it are no edge: next to a Boolean matrix all but the leaders' are far below."""

SHUFFLES = 4


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


def unrelated(P: np.ndarray) -> float:
    """|lambda_2| / H of a sum of heads P (h, n, n) if they had nothing to do with each other: every head keeps its rows, but who
    has which is dealt anew, independently; the mean over SHUFFLES.
    """
    rng, (heads, n, _) = np.random.default_rng(0), P.shape
    sums = [np.sum([one[rng.permutation(n)] for one in P], axis=0) for _ in range(SHUFFLES)]
    return float(np.mean([np.sort(np.abs(np.linalg.eigvals(one)))[-2] for one in sums]) / heads)
