"""Residual layers after the hand-over: the frozen map is iterated layer by layer; there are no
events to be located.

A row that changes its leader does so between two layers. In the rare case that a layer falls on the
change itself, where the row divides its attention, the answer is undecided.
"""

from __future__ import annotations

import numpy as np

from attnlab.limits.allowance import EVENT, Allowance, price_of_evaluation
from attnlab.limits.certificate import Certificate
from attnlab.limits.events import Switch, Undecidable, move
from attnlab.limits.frozen import Frozen
from attnlab.limits.settings import BOOLEAN_GAP, LARGEST_GROWTH


def follow_layers(
    frozen: Frozen, certificate: Certificate, allowance: Allowance, times: np.ndarray
) -> tuple[list[Switch], dict[int, np.ndarray]]:
    """Iterate until the certificate passes; the changes of leader, and z at the times that are
    layers. Or Undecidable.
    """
    problem, dt = frozen.problem, frozen.problem.dynamics.dt
    assert dt is not None
    events: list[Switch] = []
    path: dict[int, np.ndarray] = {}
    first = 0
    while True:
        _let_rows_choose(frozen, events)
        allowance.spend(
            EVENT + frozen.n + price_of_evaluation(frozen.n, len(problem.rates), is_extended=True)
        )
        for number in np.flatnonzero(np.abs(times - frozen.t) < 1e-9 * dt):
            path[int(number)] = frozen.rescaled()[0]
        if frozen.is_idempotent:
            row, _ = certificate.doubt(frozen, allowance, first)
            if row < 0:
                return events, path
            first = row
        if allowance.is_over:
            raise Undecidable(allowance.ended_by, first, -1)
        if problem.fastest * frozen.t > LARGEST_GROWTH:
            raise Undecidable("horizon", first, -1)
        frozen.advance_layer(dt)


def _let_rows_choose(frozen: Frozen, events: list[Switch]) -> None:
    """Every row listens to its best token from now on; Undecidable where two are closer than 40."""
    query = frozen.positions() @ frozen.problem.M
    is_causal = frozen.problem.dynamics.mask.is_causal
    chosen = frozen.leader.copy()
    for i in np.flatnonzero(frozen.is_alive):
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.ldexp(
                (frozen.apart_from(int(frozen.leader[i])) @ query[i]).real, 2 * frozen.shift
            )
        gap = gap + frozen.bonus[frozen.leader[i]] - frozen.bonus
        gap[frozen.leader[i]] = 0.0
        if is_causal:
            gap[i + 1 :] = np.inf
        best = int(np.argmin(gap))
        others = np.delete(gap - gap[best], best)
        if others.size and others.min() < BOOLEAN_GAP:
            raise Undecidable("not boolean", int(i), int(np.argsort(gap)[1]))
        chosen[i] = best
    for i in np.flatnonzero(chosen != frozen.leader):
        before, after = int(frozen.leader[i]), int(chosen[i])
        subtree = frozen.subtree(int(i))
        if after != i and subtree[after]:
            raise Undecidable("cycle", int(i), after)
        frozen.leader[i] = after
        move(frozen, int(i), after, subtree)
        events.append(Switch(frozen.t, int(i), before, after, 0.0, np.zeros(len(query[0]))))
