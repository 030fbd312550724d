"""Who leads in the end, for V = I and one head with M = I, from a run alone: cheap enough for thousands of tokens.

Once every token i attends to one leader L(i) that attends to itself, x_i - x_L is constant and x_L grows like e^s. The gap
<x_i, x_L - x_j> is then a e^{2s} + b e^s + c with a = <x_L, x_L - x_K>, K = L(j), and it never falls again where 2a + b >= 0.
When that holds for all i, j and every gap exceeds GAP, softmax leaks less than n e^{-GAP}, and ever less: leaders are final.
(al.limit proves the same with bounds for the integrator's error and with perturbed replicas; it takes some ten times as long.)
"""

from __future__ import annotations

import numpy as np

from attnlab.experiments.random_polytopes import self_leaders

GAP = 30.0
"""The smallest gap of scores that is called decided: e^-30 is 1e-13, below the error of the run."""

SAVED = (0.0, *np.arange(2.0, 25.0))
"""Not farther apart: for a thousand tokens on a circle leaders are clear only for a while before rounding hides them again."""

MANY, EARLY = 1000, 10.0
"""So many tokens are first run to this time only, which is enough for large starts; still more with a tenfold tolerance.

Not on a circle, where most tokens lead themselves at first, and who is left is decided late.
"""

ROWS = 500
"""Rows of the n x n table of gaps that are held at a time."""


def final_leaders(x0: np.ndarray) -> tuple[np.ndarray | None, float]:
    """(the leader of every token (n,), the first saved time at which it is final); (None, last time) where it stays open."""
    from attnlab.engine import simulate
    from attnlab.types import Weights

    weights, done = Weights(V=np.eye(x0.shape[1]), source="V = I, M = I"), 0.0
    is_early = len(x0) >= MANY and 2 * len(self_leaders(x0)) < len(x0)
    for end in (EARLY, SAVED[-1]) if is_early else (SAVED[-1],):
        times = [t for t in SAVED if t <= end]
        run = simulate(weights, x0, t_end=end, times=times, rtol=1e-6 if len(x0) <= MANY else 1e-5, throw=False)
        states, log_scale = run.scaled_x()
        for k in np.flatnonzero(run.times > done):
            leaders = settled_leaders(states[k] * np.exp(log_scale[k]))
            if leaders is not None:
                return leaders, float(run.times[k])
        done = float(run.times[-1])
    return None, done


def settled_leaders(x: np.ndarray) -> np.ndarray | None:
    """Whom each token of x (n, d) attends to, if that is final; else None."""
    n = len(x)
    top = np.array([int((x @ one).argmax()) for one in x])
    if (top[top] != top).any():
        return None
    leaders, group = np.unique(top, return_inverse=True)
    lead, offset = x[leaders], x - x[top]
    apart = (lead**2).sum(axis=1)[:, None] - lead @ lead.T                       # (m, m) <x_L, x_L - x_K>
    np.fill_diagonal(apart, 0.0)
    turned, inward = offset @ lead.T, lead @ offset.T                            # (n, m) <w_i, x_K>, (m, n) <x_L, w_j>
    for rows in np.array_split(np.arange(n), -(-n // ROWS)):
        own, its = group[rows], np.arange(len(rows))
        products = x[rows] @ x.T
        gap = products[its, top[rows]][:, None] - products
        growth = 2 * apart[own][:, group] + turned[rows, own][:, None] - turned[rows][:, group] - inward[own]
        gap[its, top[rows]], growth[its, top[rows]] = np.inf, 0.0
        if gap.min() < GAP or growth.min() < 0:
            return None
    return top


def counted(leaders: np.ndarray | None) -> float:
    """The number of different leaders, NaN where they are open."""
    return float("nan") if leaders is None else float(len(np.unique(leaders)))
