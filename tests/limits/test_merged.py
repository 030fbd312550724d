"""The flow of merged tokens: from which token another one is counted changes nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.allowance import Allowance
from attnlab.limits.merged import MergedFlow, make_reach

X0 = np.array([[0.6, 0.9], [0.9, 0.0], [-1.4, 1.9], [-1.8, 1.3], [-1.3, -0.4], [-0.3, -0.5]])
TIMES = np.array([0.0, 2.0, 4.0, 6.0, 8.0])


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_counting_tokens_from_others_moves_none(mask):
    """After each regrouping all tokens are where the plain integrator has them, and from there they
    go on.
    """
    dynamics = al.Dynamics.of(al.Weights(V=np.diag([1.0, 0.9])), mask=mask)
    allowance = Allowance(1e9, 600.0, time.monotonic() + 600.0)
    flow = MergedFlow(make_reach(dynamics, X0, np.arange(6)), 1e-10, allowance)
    truth = al.simulate(dynamics, X0, times=TIMES, frame="x", rtol=1e-12).x @ np.diag([1.0, 0.9])
    groups = set()
    for t, expected in zip(TIMES[1:], truth[1:], strict=True):
        flow.advance(t - flow.t)
        for _ in range(2):
            found = flow.references()[0][flow.group] + flow.apart()  # C x, and here C = V
            assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max()
            flow.regroup()
        groups.add(len(flow.first))
    assert max(groups) > 1
