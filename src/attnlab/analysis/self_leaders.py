"""Leaders for V = I and one head with M = I: which tokens lead themselves now, and which token each
one follows forever.

A token i leads itself when <x_i, x_j> <= |x_i|^2 for all j. Once every token i attends to one
leader L(i) that attends to itself, x_i - x_L is constant and x_L grows like e^s. The gap <x_i, x_L
- x_j> is then a e^{2s} + b e^s + c with a = <x_L, x_L - x_K>, K = L(j), and it never falls again
where 2a + b >= 0. When that holds for all i and j and every gap exceeds GAP, softmax leaks less
than n e^{-GAP}, and ever less: the leaders are final. (al.limit proves the same, with bounds for
the integrator's error and with perturbed replicas; it takes some ten times as long.)
"""

from __future__ import annotations

import numpy as np

GAP = 30.0
"""The smallest gap of scores that counts as decided: e^-30 is 1e-13, below the error of a run."""

ROWS = 500
"""Rows of the n x n table of gaps that are held at a time."""


def self_leaders(x: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
    """The numbers of the tokens of x (n, d) that score themselves highest: of those `among`, or of
    all.
    """
    chosen = np.arange(len(x)) if among is None else np.asarray(among)
    products = x[chosen] @ x.T
    return chosen[products.max(axis=1) <= products[np.arange(len(chosen)), chosen]]


def settled_leaders(x: np.ndarray) -> np.ndarray | None:
    """The leader of each token of x (n, d), as numbers of tokens (n,), if it is final; else
    None.
    """
    n = len(x)
    top = np.array([int((x @ one).argmax()) for one in x])
    if (top[top] != top).any():
        return None
    leaders, group = np.unique(top, return_inverse=True)
    lead, offset = x[leaders], x - x[top]
    apart = (lead**2).sum(axis=1)[:, None] - lead @ lead.T  # (m, m) <x_L, x_L - x_K>
    np.fill_diagonal(apart, 0.0)
    turned, inward = offset @ lead.T, lead @ offset.T  # (n, m) <w_i, x_K>, (m, n) <x_L, w_j>
    for rows in np.array_split(np.arange(n), -(-n // ROWS)):
        own, its = group[rows], np.arange(len(rows))
        products = x[rows] @ x.T
        gap = products[its, top[rows]][:, None] - products
        growth = (
            2 * apart[own][:, group]
            + turned[rows, own][:, None]
            - turned[rows][:, group]
            - inward[own]
        )
        gap[its, top[rows]], growth[its, top[rows]] = np.inf, 0.0
        if gap.min() < GAP or growth.min() < 0:
            return None
    return top


def self_lead(x: np.ndarray) -> np.ndarray:
    """Return |x_i|^2 less the largest <x_i, x_j>, j not i, (n,): the lead of token i over others.

    A token leads itself where its lead is not negative.
    """
    products = x @ x.T
    others = np.where(np.eye(len(x), dtype=bool), -np.inf, products)
    return np.asarray(np.diag(products) - others.max(axis=1))
