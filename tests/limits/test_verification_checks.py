"""Each check of al.verify by itself: a tampering for it, and the words with which that very check
refuses it.

Most tamperings break several checks. Without the words, a check could be removed and another one
would hide it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.verification.steps import verify_limit
from tampering import FROZEN_TAMPERINGS, OTHER_TAMPERINGS, I, honest, in_state, put, with_weights


def chained(limit: al.Limit) -> al.Limit:
    """A leader follows another leader, in the states only."""
    one, other = np.unique(limit.leaders)[:2]
    return in_state(limit, leader=put((slice(None), one), other))


def turn(x: np.ndarray) -> np.ndarray:
    """Tokens (..., 3) turned by 0.001 around the third axis."""
    c, s = np.cos(1e-3), np.sin(1e-3)
    return x @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])


def with_event(limit: al.Limit, *changes) -> al.Limit:
    return dataclasses.replace(limit, events=tuple(al.Event(*change) for change in changes))


MEANT = {
    "gaps": (
        "diagonal",
        FROZEN_TAMPERINGS["another leader, in the states too"],
        "is not shown to stay open",
    ),
    "replicas": (
        "diagonal",
        FROZEN_TAMPERINGS["replicas that are copies"],
        "Two of the three states are copies",
    ),
    "error of replicas": (
        "diagonal",
        FROZEN_TAMPERINGS["a replica that ends elsewhere"],
        "it must be ten times that",
    ),
    "maps": ("diagonal", FROZEN_TAMPERINGS["a leader that follows"], "roots and leaders differ"),
    "leaders that follow": ("diagonal", chained, "a leader follows another token"),
    "offsets of leaders": (
        "diagonal",
        lambda one: in_state(one, D=lambda D: D + 1e-9),
        "has an offset to itself",
    ),
    "masked leaders": (
        "causal",
        lambda one: in_state(
            one, **dict.fromkeys(("leader", "root"), lambda array: np.full_like(array, array.max()))
        ),
        "follows one that it does not see",
    ),
    "finite": (
        "diagonal",
        FROZEN_TAMPERINGS["numbers that are none"],
        "must be finite, and errors must not be negative",
    ),
    "negative errors": (
        "diagonal",
        lambda one: in_state(one, Y_error=lambda error: -error),
        "errors must not be negative",
    ),
    "tokens named": ("diagonal", FROZEN_TAMPERINGS["negative leaders"], "must name tokens of it"),
    "scale": (
        "diagonal",
        lambda one: in_state(one, shift=lambda shift: shift - 5),
        "must be three exponents",
    ),
    "pairs": (
        "complex",
        lambda one: in_state(one, turn=lambda turn: -turn),
        "do not come in pairs",
    ),
    "inverse": (
        "complex",
        lambda one: in_state(one, inverse=lambda inverse: 1.0000001 * inverse),
        "do not belong together",
    ),
    "heads": (
        "diagonal",
        lambda one: with_weights(
            one,
            V=np.stack([one.dynamics.weights.V[0]] * 2),
            Q=np.stack([I, 2 * I]),
            K=np.stack([I, I]),
        ),
        "The heads have different scores",
    ),
    "points of another shape": (
        "diagonal",
        lambda one: dataclasses.replace(one, points=one.points[:, :1]),
        "another shape",
    ),
    "places": (
        "diagonal",
        lambda one: dataclasses.replace(one, places=one.x0),
        "Places in R^d are for equations",
    ),
    "a token that is none": (
        "diagonal",
        lambda one: with_event(one, (0.1, 99, 0, 1)),
        "names no token",
    ),
    "a change too late": (
        "diagonal",
        lambda one: with_event(one, (1e3, 0, 1, int(one.leaders[0]))),
        "after the time of the decision",
    ),
    "changes that do not fit": (
        "diagonal",
        lambda one: with_event(one, (0.1, 0, 1, 2), (0.2, 0, 5, int(one.leaders[0]))),
        "do not fit together",
    ),
    "groups of replicas": (
        "glued to a leader that follows later",
        lambda one: in_state(
            one,
            **dict.fromkeys(("leader", "root"), put((1, 0), int(one.state.values["root"][0, -1]))),
        ),
        "The replicas have other groups",
    ),
    "hemisphere": (
        "sphere",
        OTHER_TAMPERINGS["sphere"]["tokens apart"],
        "not in an open hemisphere",
    ),
    "length": (
        "sphere",
        OTHER_TAMPERINGS["sphere"]["tokens off the sphere"],
        "do not lie on the sphere",
    ),
    "replicas on the sphere": (
        "sphere",
        OTHER_TAMPERINGS["sphere"]["replicas that are copies"],
        "Two of the three ends are copies",
    ),
    "a multiple of I": (
        "sphere",
        OTHER_TAMPERINGS["sphere"]["other values, signed"],
        "V = c I for every head",
    ),
    "a positive multiple": (
        "sphere",
        OTHER_TAMPERINGS["sphere"]["values that push apart, signed"],
        "with c >= 0",
    ),
    "time on the sphere": (
        "sphere",
        lambda one: dataclasses.replace(one, t=2.0 * one.t),
        "The time is not that of the state",
    ),
    "basis on the sphere": (
        "sphere",
        lambda one: dataclasses.replace(one, basis=2.0 * I),
        "the basis must be the identity",
    ),
    "first token on the sphere": (
        "sphere, causal",
        lambda one: in_state(one, tokens=turn, ends=turn),
        "the first token does not move",
    ),
    "symmetric gaps": (
        "symmetric",
        OTHER_TAMPERINGS["symmetric"]["an earlier state"],
        "is not shown that token",
    ),
    "symmetric replicas": (
        "symmetric",
        OTHER_TAMPERINGS["symmetric"]["replicas that are copies"],
        "A replica is a copy",
    ),
    "symmetric start": (
        "symmetric",
        OTHER_TAMPERINGS["symmetric"]["other first tokens"],
        "starts from other tokens",
    ),
    "symmetric grade": (
        "symmetric",
        lambda one: dataclasses.replace(one, grade="group"),
        "has the grade exact",
    ),
    "grade of places": (
        "at rest",
        lambda one: dataclasses.replace(one, grade="exact"),
        "have the grade group",
    ),
    "no places": (
        "at rest",
        lambda one: dataclasses.replace(one, places=None),
        "one place per token",
    ),
    "points where nothing grows": (
        "at rest",
        lambda one: dataclasses.replace(one, points=one.x0, basis=I),
        "no points in it",
    ),
}
"""{what is checked: (way, tampering, the words with which that very check refuses it)}: another
check would use other words.
"""


@pytest.mark.parametrize("name", MEANT)
def test_the_check_that_is_meant_refuses(name):
    way, tamper, words = MEANT[name]
    found = verify_limit(tamper(honest(way)))
    assert found.holds is False and words in found.checks[-1].says, found
