"""Random systems for the tests of limits: families of (Q, K, V, x0), and relations that limits must
obey.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

import attnlab as al
from attnlab.types import Limit

C7 = np.array(
    [
        [0.2362413, 0.0599536, 0.40506019],
        [0.81321448, 0.49948705, 0.33754772],
        [0.2160645, 0.38505272, 0.14588075],
    ]
)
C8 = np.array(
    [
        [0.18608476, 0.34391026, 0.13905949],
        [0.35244288, 0.6694859, 0.39992145],
        [0.46685606, 0.17094454, 0.42092308],
    ]
)
C9 = np.array(
    [
        [0.92761287, 0.94333073, 0.3827744],
        [0.94333073, 0.59991396, 0.47825472],
        [0.3827744, 0.47825472, 0.46668605],
    ]
)


class System(NamedTuple):
    """One question to al.limit."""

    M: np.ndarray
    V: np.ndarray
    x0: np.ndarray
    options: dict[str, Any]

    @property
    def weights(self) -> al.Weights:
        return al.Weights(Q=np.eye(len(self.M)), K=self.M, V=self.V)

    def limit(self, **more: Any) -> Limit:
        return al.limit(self.weights, self.x0, **self.options, **more)


def _spd(rng: np.random.Generator, d: int) -> np.ndarray:
    A = rng.normal(size=(d, d))
    return A @ A.T / d + 0.3 * np.eye(d)


def _oblique(rng: np.random.Generator, d: int) -> np.ndarray:
    while True:
        B = np.eye(d) + 0.5 * rng.normal(size=(d, d))
        if np.linalg.cond(B) < 20:
            return B


def _conjugated(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    B = _oblique(rng, len(values))
    return B @ np.diag(values) @ np.linalg.inv(B)


def draw_system(family: str, seed: int) -> System:
    """A System of the family; n 3 to 15, d 1 to 4."""
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    n, d = int(rng.integers(3, 16)), int(rng.integers(1, 5))
    size = float(rng.choice([1.0, 2.0, 5.0]))
    options: dict[str, Any] = {}
    M, V = np.eye(d), np.eye(d)
    if family == "identity, spd scores":
        V, M = rng.uniform(0.5, 2.0) * np.eye(d), _spd(rng, d)
    elif family == "diagonal":
        V = np.diag(np.append(rng.uniform(0.3, 2.0), rng.uniform(-1.0, 2.0, d - 1)))
    elif family == "non-normal, spd scores":
        V, M = (
            _conjugated(rng, np.append(rng.uniform(0.5, 2.0), rng.uniform(-1.0, 2.0, d - 1))),
            _spd(rng, d),
        )
    elif family == "close eigenvalues":
        gap = float(rng.choice([0.3, 0.1, 0.03]))
        V = np.diag(np.array([1.0, 1.0 - gap, -0.5, 1.0 - 2 * gap])[:d])
    elif family == "generic scores":
        M, V = (
            rng.uniform(-1.0, 1.0, (d, d)),
            np.diag(rng.uniform(0.5, 1.5, d)) if seed % 2 else np.eye(d),
        )
    elif family == "paranormal":
        d = max(d, 2)
        values = np.append([1.0] * (d - 1), rng.uniform(-0.9, 0.9))
        V, M = _conjugated(rng, values), _spd(rng, d)
    elif family == "complex":
        d = max(d, 2)
        V = rng.normal(size=(d, d)) + np.eye(d)
        M = _spd(rng, d) if seed % 2 else np.eye(d)
    elif family == "published":
        d, V, M = 3, (C7, C8, C9)[seed % 3], np.eye(3)
    elif family == "causal":
        options["mask"] = "causal"
        V = np.diag(np.append(1.0, rng.uniform(-0.5, 1.5, d - 1)))
    elif family == "almost symmetric":
        half = rng.uniform(-size, size, (max(n // 2, 2), d))
        flipped = half * np.append(-1.0, np.ones(d - 1))
        x0 = np.concatenate([half, flipped]) + 10.0 ** rng.uniform(-14, -2) * rng.normal(
            size=(2 * len(half), d)
        )
        return System(M, np.diag(np.append(1.0, rng.uniform(0.2, 1.0, d - 1))), x0, options)
    elif family == "layers":
        options["dt"] = float(rng.uniform(0.05, 0.5))
        V = np.diag(rng.uniform(0.3, 1.5, d))
    return System(M, V, rng.uniform(-size, size, (n, d)), options)


FAMILIES = [
    "identity", "identity, spd scores", "diagonal", "non-normal, spd scores", "close eigenvalues", "generic scores", "paranormal",
    "complex", "published", "causal", "almost symmetric", "layers",
]  # fmt: skip


def partition(limit: Limit) -> np.ndarray:
    """For each token the first one with the same limit."""
    return np.array([int(np.flatnonzero(limit.labels == label)[0]) for label in limit.labels])


def contradiction(ours: Limit, theirs: Limit, points: np.ndarray | None = None) -> str:
    """What two limits of the same tokens contradict each other in; "" if nothing. points: of
    theirs, (n, d), if transformed.
    """
    if not (ours.certified and theirs.certified):
        return ""
    if not np.array_equal(partition(ours), partition(theirs)):
        return f"partitions {ours.labels} and {theirs.labels}"
    if ours.grade == theirs.grade == "exact" and not np.array_equal(ours.leaders, theirs.leaders):
        return f"leaders {ours.leaders} and {theirs.leaders}"
    other = theirs.limits if points is None else points
    apart = np.abs(ours.limits - other).max()
    allowed = (ours.error + theirs.error) * np.abs(ours.basis).sum(axis=1).max(initial=0.0)
    return (
        f"points {apart:.2g} apart, allowed {allowed:.2g}"
        if apart > 1.0001 * allowed + 1e-14 * np.abs(other).max()
        else ""
    )


RELATIONS = ("permuted", "conjugated", "advanced", "faster", "duplicate")


def related(system: System, relation: str, seed: int) -> tuple[System, Any]:
    """(another System, a function from its Limit to one comparable with the first one's: (limit,
    points or None)).

    For "duplicate" two systems of the same tokens with the last one twice, the second in reverse.
    """
    rng = np.random.default_rng([RELATIONS.index(relation), seed])
    M, V, x0, options = system
    n, d = x0.shape
    if relation == "permuted":
        order = rng.permutation(n)
        back = np.argsort(order)

        def unpermuted(limit: Limit) -> tuple[Limit, None]:
            leaders = np.where(limit.leaders[back] >= 0, order[limit.leaders[back]], -1)
            return (
                dataclasses.replace(
                    limit, labels=limit.labels[back], leaders=leaders, points=limit.points[back]
                ),
                None,
            )

        return System(M, V, x0[order], options), unpermuted
    if relation == "conjugated":
        B = np.linalg.qr(rng.normal(size=(d, d)))[0] @ np.diag(rng.uniform(0.5, 2.0, d))
        inverse = np.linalg.inv(B)
        moved = System(inverse.T @ M @ inverse, B @ V @ inverse, x0 @ B.T, options)
        return moved, lambda limit: (limit, limit.limits @ inverse.T)
    if relation == "advanced":
        t = float(rng.uniform(0.1, 1.0)) if "dt" not in options else 3 * options["dt"]
        more = {"layers": 3} if "dt" in options else {"t_end": t}
        run = al.simulate(system.weights, x0, rtol=1e-13, saves=2, **options, **more)
        from scipy.linalg import expm

        step = (
            expm(-t * V)
            if "dt" not in options
            else np.linalg.matrix_power(np.linalg.inv(np.eye(d) + options["dt"] * V), 3)
        )
        return System(M, V, run.x[-1], options), lambda limit: (limit, limit.limits @ step.T)
    if relation == "faster":
        c = float(rng.uniform(0.5, 3.0))
        slower = {**options, "dt": options["dt"] / c} if "dt" in options else options
        return System(M, c * V, x0, slower), lambda limit: (limit, None)
    # the last token twice is the last token once, with ln 2 more in its scores: in another order,
    # so that the arithmetic differs
    assert relation == "duplicate"
    twice, backward = np.concatenate([x0, x0[-1:]]), np.concatenate([x0[-1:], x0[-1:], x0[-2::-1]])
    return System(M, V, twice, options), System(M, V, backward, options)
