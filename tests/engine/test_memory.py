"""What is derived from weights is kept with them, once, for every thread, and let go with them."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import attnlab as al
from attnlab.engine import memory
from attnlab.engine.memory import MOST, remembered
from attnlab.types import Dynamics


def test_it_is_made_once_for_each_key_and_equation():
    weights, made = al.Weights(V=np.eye(2)), []
    for beta in (1.0, 2.0, 1.0):
        for key in ("a", "b"):
            remembered(
                Dynamics.of(weights, beta=beta), key, lambda: made.append(1)
            )  # None is kept too
    assert len(made) == 4


def test_the_oldest_goes():
    dynamics, made = Dynamics.of(al.Weights(V=np.eye(2))), []
    for key in [*range(MOST + 1), 0]:
        remembered(dynamics, key, lambda key=key: made.append(key))
    assert made == [*range(MOST + 1), 0] and len(memory._kept[dynamics.weights]) == MOST


@pytest.mark.parametrize("n", [5, 700], ids=["compiled", "threaded"])
def test_weights_are_let_go_after_a_run(n):
    weights = al.Weights(V=np.diag([1.0, 0.5]))
    al.simulate(weights, np.random.default_rng(0).normal(size=(n, 2)), t_end=0.1, saves=2)
    al.velocity(weights, np.random.default_rng(0).normal(size=(n, 2)))
    gone = weakref.ref(weights)
    del weights
    gc.collect()
    assert gone() is None


def test_threads_share_large_systems():
    weights = al.Weights(V=np.eye(3))
    starts = [np.random.default_rng(rng).normal(size=(700, 3)) for rng in range(8)]
    alone = [al.velocity(weights, x) for x in starts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda x: al.velocity(weights, x), starts * 4))
    for ours, truth in zip(together, alone * 4, strict=True):
        np.testing.assert_array_equal(ours, truth)
