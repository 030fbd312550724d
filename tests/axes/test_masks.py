"""Which tokens a token sees: every mask drawn by hand, and the attention that follows from it."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.axes.members import AXES

TABLE = [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 1], [0, 1, 0, 1, 0]]

SEEN = {
    "full": ("full", "##### ##### ##### ##### #####"),
    "causal": ("causal", "#.... ##... ###.. ####. #####"),
    "itself": ({"name": "window", "width": 0}, "#.... .#... ..#.. ...#. ....#"),
    "neighbours": ({"name": "window", "width": 1}, "##... ###.. .###. ..### ...##"),
    "two": ({"name": "window", "width": 2}, "###.. ####. ##### .#### ..###"),
    "two before": ({"name": "window", "width": 2, "causal": True}, "#.... ##... ###.. .###. ..###"),
    "wider than the text": ({"name": "window", "width": 9}, "##### ##### ##### ##### #####"),
    "given": ({"name": "given", "table": TABLE}, "#...# .#... ###.. ...## .#.#."),
}
"""Row i: # where token i of five sees token j."""


@pytest.mark.parametrize("name", SEEN)
def test_what_a_token_sees_is_what_is_drawn(name):
    words, drawn = SEEN[name]
    expected = np.array([[sign == "#" for sign in row] for row in drawn.split()])
    found = AXES["mask"].make(words).seen(5)
    assert found.dtype == bool and np.array_equal(np.broadcast_to(found, (5, 5)), expected)
    # equal tokens: each attends in equal parts to those that it sees, compiled or not
    run = al.simulate(al.Weights(V=np.eye(2)), np.ones((5, 2)), times=[0.0], mask=words)
    np.testing.assert_allclose(
        al.attention(run, at=0)[0], expected / expected.sum(axis=1, keepdims=True), rtol=1e-14
    )


def test_every_mask_is_drawn():
    assert {
        words if isinstance(words, str) else words["name"] for words, _ in SEEN.values()
    } == set(AXES["mask"])
