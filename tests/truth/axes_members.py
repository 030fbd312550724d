"""What the tests of the axes share: members of their own, small equations and starts, and the words
of every member.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

import attnlab as al
from attnlab.axes.members import AXES


@al.kernels.register("test_linear")
class Linear:
    """P_ij = (1 + tanh(s_ij / width)) / (tokens seen): a member of the tests, which every test must
    pick up.
    """

    rows_sum_to_one, is_row_local, hardens = False, True, False

    def __init__(self, width: float = 2.0):
        self.width = width

    def weights(self, scores, seen):
        return np.where(seen, 1 + np.tanh(scores / self.width), 0.0) / seen.sum(
            axis=-1, keepdims=True
        )


@al.kernels.register("test_signed")
class Signed:
    """P_ij = tanh(s_ij) / (tokens seen): the only kernel whose weights may be negative."""

    rows_sum_to_one, is_row_local, hardens, may_be_negative = False, True, False, True

    def weights(self, scores, seen):
        return np.where(seen, np.tanh(scores), 0.0) / seen.sum(axis=-1, keepdims=True)


@al.drifts.register("test_part")
class Part:
    """A part after attention in the equation for z: z' = tanh(velocity of attention alone)."""

    acts_on_z = True

    def __call__(self, velocity, t):
        return np.tanh(velocity)


@al.noises.register("test_path")
class GivenPath:
    """The increments of a Brownian path that is given on the finest grid, so that coarser steps see
    the same path.
    """

    def __init__(self, path: object = None, dt: float = 1.0):
        self.path, self.dt, self.at = path, dt, 0

    def increment(self, rng, x, dt):
        if self.path is None:
            return np.zeros_like(x)
        many = round(dt / self.dt)
        self.at += many
        return self.path[self.at - many : self.at].sum(axis=0)


N, D = 7, 3
rng = np.random.default_rng(5)
WEIGHTS = al.Weights(
    Q=rng.normal(size=(2, D, D)) / 2,
    K=rng.normal(size=(2, D, D)) / 2,
    V=rng.normal(size=(2, D, D)) / 2,
)
SCORES = rng.normal(size=(2, N, N)) * 2


def word(name, n=N):
    """The word of a member for n tokens: its name, or a table where it cannot be made of the name
    alone.
    """
    parameters = {
        "window": {"width": 2},
        "given": {"table": np.tri(n, k=2, dtype=int).tolist()},
        "brownian": {"kappa": 4.0},
    }
    return {"name": name, **parameters[name]} if name in parameters else name


def make(axis, name):
    """The member of this name. The path of test_path is one unit per step: left out, it is no noise
    at all.
    """
    return (
        GivenPath(np.ones((9, N, D)), 0.1) if name == "test_path" else AXES[axis].make(word(name))
    )


def start(geometry="euclidean", seed=0, n=N):
    x = np.random.default_rng(seed).normal(size=(n, D))
    return x / np.linalg.norm(x, axis=-1, keepdims=True) if geometry != "euclidean" else 0.7 * x


def refusal(**axes):
    """What is said where the members of these words do not go together, which must name two of
    them; "" where they do.
    """
    try:
        al.Dynamics.of(WEIGHTS, **axes)
    except ValueError as problem:
        message, names = (
            str(problem),
            {value["name"] if isinstance(value, dict) else value for value in axes.values()},
        )
        named = [name for name in names if f'"{name}"' in message]
        assert message.endswith(".") and len(named) >= 2, (
            f"names only {named} of {sorted(names)}: {message}"
        )
        return message
    return ""


def together(**axes):
    """The equation of these words, or a skip where they do not go together, which one sentence
    says.
    """
    if message := refusal(**axes):
        pytest.skip(message)
    return al.Dynamics.of(WEIGHTS, **axes)


def loop_velocity(dynamics, x, t=0.0):
    """x' (n, d) in the frame x by a double loop over tokens, with nothing but the functions of the
    members.
    """
    read, out = dynamics.read(x), np.zeros_like(x)
    queries, keys = (
        np.stack([read @ matrix.T for matrix in matrices])
        for matrices in (dynamics.weights.Q, dynamics.weights.K)
    )
    scores = dynamics.beta * dynamics.scores.compare(queries, keys)
    P = dynamics.kernel.weights(scores, np.broadcast_to(dynamics.mask.seen(len(x)), scores.shape))
    for i in range(len(x)):
        for h in range(dynamics.weights.heads):
            for j in range(len(x)):
                out[i] += P[h, i, j] * dynamics.weights.full_V[h] @ read[j]
    out = dynamics.speed(t) * dynamics.write(out)
    if not dynamics.feedforward.acts_on_z:
        out = out + dynamics.feedforward(x, t)
    return dynamics.geometry.project(x, out)


@cache
def grow(t):
    """e^{tW}, W the sum of the value matrices of WEIGHTS."""
    return expm(t * WEIGHTS.V.sum(axis=0))


def loop_velocity_z(dynamics, z, t):
    """z' (n, d) for WEIGHTS: d/dt of e^{-tW} x by loop_velocity, and then the part that acts on
    z.
    """
    x = z @ grow(t).T
    velocity = (loop_velocity(dynamics, x, t) - x @ WEIGHTS.V.sum(axis=0).T) @ grow(-t).T
    return dynamics.feedforward(velocity, t) if dynamics.feedforward.acts_on_z else velocity


NAMES = {axis: list(registry) for axis, registry in AXES.items()}
"""{axis: names}, with those of the tests. Other tests must not see these: they are there only while
these files are tested.
"""

PRODUCTS = list(itertools.product(NAMES["kernel"], NAMES["mask"], NAMES["geometry"]))
OWN = (("kernel", Linear), ("kernel", Signed), ("feedforward", Part), ("noise", GivenPath))
for axis, member in OWN:
    AXES[axis]._things.pop(member.name)


@pytest.fixture(scope="module", autouse=True)
def own_members():
    """Register the members of the tests while a file that imports this fixture is tested."""
    for axis, member in OWN:
        AXES[axis]._things[member.name] = member
    yield
    for axis, member in OWN:
        AXES[axis]._things.pop(member.name)
