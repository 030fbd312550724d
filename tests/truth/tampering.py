"""Honest certificates of every way, and tamperings of them that no check of al.verify may pass."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np

import attnlab as al
from attnlab.limits.state import State, start_digest
from attnlab.limits.verification.frozen import Frozen
from limit_systems import draw_system

I = np.eye(3)

V = np.array([[1.0, 0.3, 0.0], [0.1, 0.7, 0.2], [0.0, -0.1, -0.4]])

TURNS = np.array([[0.4, 0.5, 0.0], [-0.5, 0.4, 0.0], [0.1, 0.0, 1.0]])

X = np.random.default_rng(5).uniform(-2.0, 2.0, (9, 3))

POSITIVE = np.abs(X) / np.linalg.norm(X, axis=1, keepdims=True)

MIRROR = np.array([[1.0, 0.2], [-1.0, 0.2], [0.0, 0.5]])


def late_run():
    """A run whose first saved time is not 0: its limit begins there."""
    return al.simulate(al.Weights(V=V), X, times=[0.5, 1.0])


WAYS = {
    "diagonal": lambda: al.limit(
        al.Weights(V=np.diag([1.0, 0.5, -0.5])), X, times=[0.0, 5.0, 80.0]
    ),
    "oblique": lambda: al.limit(al.Weights(V=V, K=I + 0.1 * X[:3]), X, beta=0.8),
    "complex": lambda: al.limit(al.Weights(V=TURNS), X),
    "layers": lambda: al.limit(al.Weights(V=np.diag([1.0, 0.5, -0.5])), X, dt=0.25),
    "causal": lambda: al.limit(al.Weights(V=V), X, mask="causal"),
    "equal tokens": lambda: al.limit(al.Weights(V=V), X[[0, 1, 2, 3, 3, 4, 1]]),
    "heads": lambda: al.limit(
        al.Weights(V=np.stack([V, 0.5 * V, 0 * V]), Q=np.stack([I, I, 2 * I])), X
    ),
    "factored": lambda: al.limit(al.Weights(V=(X[:3, :2], X[3:6, :2].T)), X),
    "events": lambda: draw_system("diagonal", 13).limit(),
    "glued": lambda: draw_system("close eigenvalues", 5).limit(),
    "glued to a leader that follows later": lambda: draw_system("close eigenvalues", 21).limit(),
    "first tokens equal, causal": lambda: al.limit(
        al.Weights(V=V), X[[0, 0, 1, 2, 0]], mask="causal"
    ),
    "begins later": lambda: al.limit(late_run(), times=[0.75, 60.0]),
    "digits": lambda: al.limit(
        al.Weights(V=np.diag([1.0, 0.5])), [[2.0, 0.1], [-2.0, 0.1]], digits=24
    ),
    "symmetric": lambda: al.limit(al.Weights(V=np.diag([1.0, 0.5])), MIRROR),
    "symmetric, many digits": lambda: al.limit(
        al.Weights(V=[[1.0]]), [[3.0], [-3.0], [0.0]], digits=24
    ),
    "sphere": lambda: al.limit(al.Weights(V=2 * I), POSITIVE, geometry="sphere"),
    "sphere, causal": lambda: al.limit(al.Weights(V=I), POSITIVE, geometry="sphere", mask="causal"),
    "at rest": lambda: al.limit(al.Weights(V=0 * I), X),
    "to the origin": lambda: al.limit(al.Weights(V=-I), X),
    "around the mean": lambda: al.limit(al.Weights(V=-I, Q=0 * I, K=I), X),
    "all equal": lambda: al.limit(al.Weights(V=V), np.ones((4, 3))),
    "equal scores": lambda: al.limit(al.Weights(V=V, Q=0 * I, K=I), X),
    "no growing part": lambda: al.limit(al.Weights(V=np.diag([1.0, 0.5, -0.5])), X * [0, 0, 1]),
    "no growing part, oblique": lambda: al.limit(
        al.Weights(V=V), np.outer(X[:, 0], np.linalg.eig(V)[1][:, 2])
    ),
    "no growing part, begins later": lambda: al.limit(
        al.simulate(al.Weights(V=np.diag([1.0, -0.5])), X[:, :2] * [0, 1], times=[0.5, 1.0])
    ),
    "equal, layers": lambda: al.limit(al.Weights(V=-0.5 * I), np.ones((4, 3)), dt=0.9),
}


@cache
def honest(name: str) -> al.Limit:
    return WAYS[name]()


def in_state(limit: al.Limit, **changes) -> al.Limit:
    """The Limit with arrays of its state changed: a function of the array, or None to leave it
    out.
    """
    values = {name: np.array(value) for name, value in limit.state.values.items()}
    for name, change in changes.items():
        if change is None:
            del values[name]
        else:
            values[name] = np.asarray(change(values[name]))
    return dataclasses.replace(limit, state=State(limit.state.way, values))


def signed(limit: al.Limit) -> al.Limit:
    """The Limit with the digest of its start and equation computed again, as somebody does it on
    purpose.
    """
    return in_state(limit, start_digest=lambda _: np.array(start_digest(limit.dynamics, limit.x0)))


def moved(array, place, by):
    changed = np.array(array)
    changed[place] += by
    return changed


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def other_leader(limit: al.Limit, attempt: int | None = None) -> al.Limit:
    """One token follows another leader, in what the limit says and in all its states; or only in
    the state of one attempt.
    """
    token = int(np.flatnonzero(limit.leaders != np.arange(len(limit.leaders)))[-1])
    after = next(
        int(leader) for leader in np.unique(limit.leaders) if leader != limit.leaders[token]
    )
    group, place = limit.labels[after], (slice(None) if attempt is None else attempt, token)
    changed = in_state(limit, leader=put(place, after), root=put(place, after))
    return (
        changed
        if attempt is not None
        else dataclasses.replace(
            changed,
            leaders=np.where(np.arange(len(limit.leaders)) == token, after, limit.leaders),
            labels=np.where(np.arange(len(limit.labels)) == token, group, limit.labels),
            points=np.where(
                (np.arange(len(limit.labels)) == token)[:, None], limit.points[after], limit.points
            ),
        )
    )


def swapped(limit: al.Limit) -> np.ndarray:
    """The leaders with two different ones exchanged."""
    one, other = np.unique(limit.leaders)[:2]
    return np.where(
        limit.leaders == one, other, np.where(limit.leaders == other, one, limit.leaders)
    )


def with_weights(limit: al.Limit, **changes) -> al.Limit:
    weights = limit.dynamics.weights
    kept = {"Q": weights.Q, "K": weights.K, "V": weights.V, "source": weights.source} | changes
    return dataclasses.replace(
        limit, dynamics=dataclasses.replace(limit.dynamics, weights=al.Weights(**kept))
    )


def far_offset(limit: al.Limit) -> al.Limit:
    """A follower that lies far beyond its leader, in the direction of its scores: a gap is
    negative.
    """
    token = int(np.flatnonzero(limit.leaders != np.arange(len(limit.leaders)))[0])
    return in_state(
        limit, D=lambda D: D + 1e6 * (np.arange(D.shape[1]) == token)[:, None] * np.sign(D)
    )


def grown(limit: al.Limit, by: float) -> al.Limit:
    """All points moved by more than they are off, and an error that allows it."""
    return dataclasses.replace(limit, points=limit.points + 0.5 * by, error=limit.error + by)


def merged(limit: al.Limit) -> al.Limit:
    """A follower is called one with the leader of others: then nobody looks at its gaps. The rest
    is made to fit.
    """
    leaders = np.array(limit.leaders)
    token = int(np.flatnonzero(leaders != np.arange(len(leaders)))[-1])
    after = next(int(leader) for leader in np.unique(leaders) if leader != leaders[token])
    values = {name: np.array(value) for name, value in limit.state.values.items()}
    for i in range(3):
        base, before = values["base"][i], values["root"][i, token]
        place = values["Y"][i][base] + values["E"][i]
        values["D"][i, token] += place[before] - place[after]
        values["root"][i, token] = values["leader"][i, token] = after
        values["is_alive"][i, token] = False
    changed = dataclasses.replace(limit, state=State("frozen", values), grade="group", events=())
    found = Frozen(changed).expected
    return dataclasses.replace(
        changed,
        labels=found.labels,
        leaders=found.leaders,
        points=found.points,
        error=max(found.error, 10.0 * found.apart),
    )


FROZEN_TAMPERINGS = {
    "a larger error, and points that use it": lambda one: grown(one, 1.0),
    "an infinite error, and points anywhere": lambda one: grown(one, np.inf),
    "a token that is called one with another leader": merged,
    "two leaders exchanged": lambda one: dataclasses.replace(one, leaders=swapped(one)),
    "another leader, in the states too": other_leader,
    "another label": lambda one: dataclasses.replace(
        one, labels=(one.labels + 1) % (one.labels.max() + 1)
    ),
    "a point moved": lambda one: dataclasses.replace(
        one, points=moved(one.points, (0, 0), 3 * one.error)
    ),
    "a point that is no number": lambda one: dataclasses.replace(
        one, points=moved(one.points, (0, 0), np.nan)
    ),
    "a smaller error": lambda one: dataclasses.replace(one, error=0.5 * one.error),
    "smaller errors, in the states too": lambda one: dataclasses.replace(
        in_state(one, **{f"{name}_error": lambda array: 0.01 * array for name in "YED"}),
        error=0.01 * one.error,
    ),
    "no errors of followers": lambda one: in_state(one, D_error=lambda array: 0 * array),
    "a smaller tolerance": lambda one: in_state(one, tolerance=lambda array: 0.1 * array),
    "a gap that is negative": far_offset,
    "errors so large that nothing is shown": lambda one: dataclasses.replace(
        in_state(one, Y_error=lambda array: 1e9 * array + 1e3), error=1e30
    ),
    "other values": lambda one: with_weights(one, V=one.dynamics.weights.full_V * 1.001),
    "other values, signed": lambda one: signed(
        with_weights(one, V=one.dynamics.weights.full_V * (1 + 1e-9))
    ),
    "other scores": lambda one: with_weights(one, K=1.001 * one.dynamics.weights.K),
    "scores of the other sign, signed": lambda one: signed(
        with_weights(one, K=-one.dynamics.weights.K)
    ),
    "another beta": lambda one: dataclasses.replace(
        one, dynamics=dataclasses.replace(one.dynamics, beta=1.5)
    ),
    "other first tokens": lambda one: dataclasses.replace(one, x0=moved(one.x0, (0, 0), 1e-9)),
    "first tokens of another size, signed": lambda one: signed(
        dataclasses.replace(one, x0=0.3 * one.x0)
    ),
    "tokens that are equal, signed": lambda one: signed(
        dataclasses.replace(one, x0=np.tile(one.x0[:1], (len(one.x0), 1)))
    ),
    "another time": lambda one: dataclasses.replace(one, t=one.t + 1.0),
    "another time, in the states too": lambda one: dataclasses.replace(
        in_state(one, t=lambda t: t + 1.0), t=one.t + 1.0
    ),
    "another basis": lambda one: dataclasses.replace(one, basis=-one.basis),
    "other eigenvectors": lambda one: in_state(one, basis=lambda basis: basis[:, ::-1]),
    "another eigenvalue": lambda one: in_state(one, growth=lambda growth: growth + 1e-6),
    "a state of another scale": lambda one: in_state(one, shift=lambda shift: shift + 1),
    "replicas that are copies": lambda one: in_state(
        one,
        **{
            name: lambda array: np.stack([array[0]] * 3)
            for name in ("Y", "E", "D", "leader", "root", "base", "is_alive", "t", "shift")
        },
    ),
    "a replica that ends elsewhere": lambda one: in_state(
        one, Y=lambda array: array * np.array([1.0, 1.0, 1.1])[:, None, None]
    ),
    "a replica with another leader": lambda one: other_leader(one, 1),
    "a leader that follows": lambda one: in_state(
        one, root=lambda root: (root + 1) % root.shape[1]
    ),
    "a change of leader too many": lambda one: dataclasses.replace(
        one, events=(*one.events, al.Event(0.1, 0, 1, int(one.leaders[0] + 1) % len(one.x0)))
    ),
    "numbers that are none": lambda one: in_state(one, Y=lambda array: np.nan * array),
    "infinite errors": lambda one: in_state(one, D_error=lambda array: np.inf * (array + 1)),
    "another shape": lambda one: in_state(one, D=lambda array: array[:, :-1]),
    "texts for numbers": lambda one: in_state(one, t=lambda array: np.array(["a", "b", "c"])),
    "one attempt": lambda one: in_state(one, Y=lambda array: array[:1]),
    "negative leaders": lambda one: in_state(one, leader=lambda array: array - len(one.x0)),
    "no errors": lambda one: in_state(one, Y_error=None),
    "no replicas": lambda one: in_state(one, tolerance=None),
    "no eigenvectors": lambda one: in_state(one, basis=None),
    "a trivial limit": lambda one: dataclasses.replace(
        one, state=State("trivial", one.state.values)
    ),
    "a symmetric limit": lambda one: dataclasses.replace(
        one, state=State("symmetric", one.state.values)
    ),
    "a limit on the sphere": lambda one: dataclasses.replace(
        one, state=State("sphere", one.state.values)
    ),
    "a limit of places": lambda one: dataclasses.replace(one, state=State("places", {})),
    "called undecided": lambda one: dataclasses.replace(one, grade="undecided"),
}

CHANGE = (al.Event(0.1, 0, 1, 2),)


def almost_singular() -> np.ndarray:
    """A matrix with the eigenvalues -0.5, -0.7 and 0, the last of which comes out as a little less
    than 0.
    """
    for seed in range(100):
        A = np.random.default_rng(seed).normal(size=(3, 3))
        found = A @ np.diag([-0.5, -0.7, 0.0]) @ np.linalg.inv(A)
        if (np.abs(1.0 + 0.9 * np.linalg.eigvals(found)) < 1.0).all():
            return found
    raise AssertionError("none was found")


OTHER_TAMPERINGS = {
    "first tokens equal, causal": {
        "tokens that are almost equal, signed": lambda one: signed(
            dataclasses.replace(one, x0=moved(one.x0, (1, 0), 1e-10))
        ),
    },
    "no growing part, oblique": {
        "a growing part in a small error": lambda one: dataclasses.replace(
            one, x0=one.x0 + 1e-11 * X @ np.linalg.eig(V)[1].T, error=1e-10
        ),
        "a larger error": lambda one: dataclasses.replace(one, error=10.0 * one.error),
        "a change of leader": lambda one: dataclasses.replace(one, events=CHANGE),
    },
    "equal, layers": {
        "a value that only rounding makes decay": lambda one: with_weights(
            one, V=almost_singular()
        ),
        "values": lambda one: with_weights(one, V=-2.5 * I),
    },
    "sphere": {
        "a larger error": lambda one: grown(one, 1.0),
        "a change of leader": lambda one: dataclasses.replace(one, events=CHANGE),
        "a point moved": lambda one: dataclasses.replace(
            one, points=moved(one.points, (0, 0), 3 * one.error)
        ),
        "a smaller error": lambda one: dataclasses.replace(one, error=0.5 * one.error),
        "other tokens": lambda one: in_state(one, tokens=lambda x: np.roll(x, 1, axis=1)),
        "tokens apart": lambda one: in_state(one, tokens=put(0, [-1.0, 0.0, 0.0])),
        "tokens off the sphere": lambda one: in_state(one, tokens=lambda x: 1.01 * x),
        "replicas that are copies": lambda one: in_state(
            one, ends=lambda x: np.stack([x[0], x[0]])
        ),
        "a replica elsewhere": lambda one: in_state(one, ends=lambda x: np.roll(x, 1, axis=2)),
        "other values, signed": lambda one: signed(with_weights(one, V=np.diag([1.0, 1.0, 1.1]))),
        "values that push apart, signed": lambda one: signed(with_weights(one, V=-I)),
        "other first tokens": lambda one: dataclasses.replace(one, x0=moved(one.x0, (0, 0), 1e-9)),
        "labels": lambda one: dataclasses.replace(one, labels=np.arange(len(one.labels))),
        "leaders": lambda one: dataclasses.replace(one, leaders=np.full(len(one.labels), 1)),
        "grade": lambda one: dataclasses.replace(one, grade="exact"),
        "nothing stored": lambda one: in_state(one, tokens=None),
    },
    "symmetric": {
        "a larger error": lambda one: grown(one, 1.0),
        "a change of leader": lambda one: dataclasses.replace(one, events=CHANGE),
        "equal tokens that are no whole numbers": lambda one: in_state(
            one, same_as=lambda same: same.astype(complex)
        ),
        "a point moved": lambda one: dataclasses.replace(
            one, points=moved(one.points, (0, 0), 3 * one.error)
        ),
        "a smaller error": lambda one: dataclasses.replace(one, error=0.1 * one.error),
        "leaders": lambda one: dataclasses.replace(one, leaders=np.full(len(one.labels), 0)),
        "labels": lambda one: dataclasses.replace(one, labels=np.zeros(len(one.labels), int)),
        "other values, signed": lambda one: signed(with_weights(one, V=np.diag([1.0, 0.6]))),
        "a rotated value, signed": lambda one: signed(
            with_weights(one, V=np.array([[1.0, 1e-3], [0.0, 0.5]]))
        ),
        "other first tokens": lambda one: dataclasses.replace(one, x0=moved(one.x0, (0, 0), 1e-9)),
        "other first tokens, signed": lambda one: signed(
            dataclasses.replace(
                in_state(one, start=lambda x: moved(x, (0, 0), 1e-9)),
                x0=moved(one.x0, (0, 0), 1e-9),
            )
        ),
        "an earlier state": lambda one: in_state(one, tokens=lambda x: 1e-3 * x),
        "replicas that are copies": lambda one: in_state(
            one, tokens=lambda x: np.stack([x[0]] * 3)
        ),
        "a tolerance too small": lambda one: in_state(one, rtol=lambda rtol: 1e-9 * rtol),
    },
    "symmetric, many digits": {
        "a digit that breaks the symmetry": lambda one: in_state(
            one, tokens=lambda x: moved(x, (0, 1, 0, 0), 1e-19)
        ),
        "fewer digits": lambda one: dataclasses.replace(one, digits=16),
        "more digits": lambda one: dataclasses.replace(one, digits=80),
        "digits left out": lambda one: in_state(one, tokens=lambda x: x[:, :1]),
    },
    "at rest": {
        "a larger error": lambda one: dataclasses.replace(one, places=one.places + 0.5, error=1.0),
        "a change of leader": lambda one: dataclasses.replace(one, events=CHANGE),
        "a place moved": lambda one: dataclasses.replace(
            one, places=moved(one.places, (0, 0), 1e-9)
        ),
        "values": lambda one: with_weights(one, V=1e-9 * I),
        "labels": lambda one: dataclasses.replace(one, labels=np.zeros(len(one.labels), int)),
        "leaders": lambda one: dataclasses.replace(one, leaders=np.zeros(len(one.labels), int)),
    },
    "to the origin": {
        "scores that turn, behind a head that does nothing": lambda one: dataclasses.replace(
            one,
            dynamics=dataclasses.replace(
                one.dynamics,
                weights=al.Weights(
                    V=np.stack([0 * I, -I]),
                    Q=np.stack([I, I]),
                    K=np.stack([I, I + np.diag([3.0, 0.0], 1) - np.diag([3.0, 0.0], -1)]),
                ),
            ),
        ),
        "a place moved": lambda one: dataclasses.replace(
            one, places=moved(one.places, (0, 0), 1e-9)
        ),
        "values": lambda one: with_weights(one, V=np.diag([-1.0, -1.0, 0.1])),
        "scores": lambda one: with_weights(one, K=np.diag([1.0, 1.0, -1.0])),
        "layers": lambda one: dataclasses.replace(
            one, dynamics=dataclasses.replace(one.dynamics, dt=0.1)
        ),
        "kernel": lambda one: dataclasses.replace(
            one, dynamics=dataclasses.replace(one.dynamics, kernel="hardmax")
        ),
    },
    "around the mean": {
        "a place moved": lambda one: dataclasses.replace(
            one, places=moved(one.places, (0, 0), 1e-9)
        ),
        "no error": lambda one: dataclasses.replace(one, error=0.0),
        "scores": lambda one: with_weights(one, Q=1e-9 * np.diag([1.0, 2.0, -1.0])),
    },
    "all equal": {
        "a larger error": lambda one: grown(one, 1.0),
        "a point moved": lambda one: dataclasses.replace(
            one, points=moved(one.points, (0, 0), 1e-9)
        ),
        "a token moved": lambda one: dataclasses.replace(one, x0=moved(one.x0, (1, 1), 1e-9)),
        "values": lambda one: with_weights(one, V=V + 1e-6),
        "leaders": lambda one: dataclasses.replace(one, leaders=np.full(4, 1)),
    },
    "equal scores": {
        "a point moved": lambda one: dataclasses.replace(
            one, points=moved(one.points, (0, 0), 1e-9)
        ),
        "scores": lambda one: with_weights(one, Q=1e-9 * I),
        "grade": lambda one: dataclasses.replace(one, grade="exact"),
    },
    "no growing part": {
        "a point moved": lambda one: dataclasses.replace(
            one, points=moved(one.points, (0, 0), 1e-9)
        ),
        "a growing part": lambda one: dataclasses.replace(one, x0=moved(one.x0, (0, 0), 1e-9)),
        "a growing part in a large error": lambda one: dataclasses.replace(
            one, x0=moved(one.x0, (0, 0), 1e-3), error=1e-2
        ),
        "leaders": lambda one: dataclasses.replace(one, leaders=np.zeros(len(one.labels), int)),
    },
}
