"""predict says what is open: for every way out of the theorems a sentence, and none where a theorem
covers it.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.theory.openings import openings
from attnlab.types import Dynamics

PAIR = np.array([[0.5, -1.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 0.2]])
TWO = {
    "Q": np.stack([np.eye(2), -np.eye(2)]),
    "K": np.stack([np.eye(2)] * 2),
    "V": np.stack([np.eye(2)] * 2),
}


@pytest.mark.parametrize(
    ("weights", "options", "word"),
    [
        (al.Weights(V=PAIR), {}, "complex leading pair"),
        (al.Weights(**TWO), {}, "2 heads"),
        (al.Weights(V=np.diag([-1.0, 0.5])), {}, "is negative"),
        (al.Weights(V=np.diag([1.0, 0.5]), Q=-np.eye(2), K=np.eye(2)), {}, "is not positive"),
        (al.Weights(V=np.diag([1.0, 0.5])), {"beta": -1.0}, "is not positive"),
        (al.Weights(V=np.eye(2)), {"mask": "causal"}, "causal mask"),
        (al.Weights(V=np.eye(2)), {"geometry": "sphere"}, "sphere"),
        (al.Weights(V=np.eye(2)), {"kernel": "hardmax"}, "hardmax"),
        (al.Weights(V=np.eye(2)), {"dt": 0.1}, "Layers"),
    ],
)
def test_every_way_out_of_the_theorems_is_named_once(weights, options, word):
    found = openings(Dynamics.of(weights, **options))
    assert len(found) == 1 and word in found[0]


@pytest.mark.parametrize(
    "V",
    [
        np.eye(2),
        -np.eye(2),
        np.diag([1.0, 0.4]),
        np.diag([1.0, 1.0, -0.5]),
        1e-6 * np.diag([1.0, 0.4]),
    ],
)
def test_nothing_is_open_where_a_theorem_applies(V):
    before = al.predict(al.Weights(V=V))
    assert before.openings == () and any(
        one.kind == "theorem" and one.applies is not False for one in before
    )


def test_several_heads_and_a_complex_pair_say_what_still_holds():
    for weights in (al.Weights(V=PAIR), al.Weights(**TWO)):
        before = al.predict(weights, np.random.default_rng(0).normal(size=(5, weights.d)))
        holding = {one.theorem for one in before if one.applies}
        assert {"field_bounds", "reversible", "stability"} <= holding
        lines = str(before).splitlines()
        assert (
            lines[0].startswith(("Theorems: ", "No theorem")) and lines[1].split(" ")[0] in holding
        )
        assert lines[-1].startswith("Open here: ")


def test_no_longer_run_is_advised_past_double_precision():
    """V = diag(1, 0.9): codimension asks for t of hundreds; a run ends at 30, and the advice must
    know that.
    """
    from attnlab.theory.evidence import WALL, Evidence

    run = al.simulate(
        al.Weights(V=np.diag([2.0, 1.8])), np.random.default_rng(0).normal(size=(5, 2)), t_end=1.0
    )
    evidence = Evidence(run)
    assert evidence.longer_words(10.0) == "t_end = 10 would decide"
    said = evidence.longer_words(100.0)
    assert (
        "would decide" not in said
        and f"near t = {WALL / 2:.2g}" in said
        and "certified limit" in said
    )
    sphere = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, geometry="sphere")
    assert Evidence(sphere).longer_words(1e4) == "t_end = 1e+04 would decide"
