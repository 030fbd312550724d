"""No two tokens ever come closer in x if Q = K = V = I."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.distances import pairwise_distances
from attnlab.theory import theorems
from attnlab.theory.claims import all_times, each_time
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import positive, positive_multiple_of_identity, setting, small
from attnlab.theory.specimens import backward, random_tokens, specimen
from attnlab.types import Dynamics
from attnlab.verdicts import Hypothesis, Measured, Theorem


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """V = c I and beta Q^T K = b I with b, c > 0: a change of units away from Q = K = V = I."""
    yield from setting(dynamics)
    yield from positive_multiple_of_identity(dynamics)
    M = dynamics.beta * dynamics.weights.M[0]
    factor, size = np.trace(M) / len(M), np.linalg.norm(M)
    distance = float(np.linalg.norm(M - factor * np.eye(len(M))) / size) if size > 0 else 0.0
    yield small("Q^T K is a multiple of the identity", distance)
    yield positive("beta Q^T K = bI with b > 0", float(factor), 0.0)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The statement for these tokens."""
    return (
        (
            "The distance of every two tokens x_i, x_j never decreases; in particular tokens never"
            " collide."
        ),
        {},
    )


def measure(evidence: Evidence) -> Measured:
    """The largest decrease of a distance between saved times, relative to the largest distance
    then.
    """
    states, log_scale = evidence.run.scaled_x()
    scale = np.exp(log_scale - log_scale.max())[:, None, None]
    distances = pairwise_distances(states) * scale  # (T, n, n), in units of the last size
    size = np.abs(states).max(axis=(1, 2)) * scale[:, 0, 0]  # (T,)
    if len(size) < 2:
        return all_times(evidence, 0.0, resolution=1e-3, error=0.0, what="Distances of all pairs")
    decrease = -np.diff(distances, axis=0).min(axis=(1, 2))  # (T - 1,)
    widest = distances.max(axis=(1, 2))
    return each_time(
        evidence,
        decrease,
        (4.0 * evidence.error + 1e-13) * np.maximum(size[1:], size[:-1]),
        np.maximum(widest[1:], widest[:-1]),
        what="The largest decrease of a distance, relative to the largest distance then",
    )


theorems.register("distances_grow")(
    Theorem(
        name="distances_grow",
        kind="theorem",
        statement=(
            "For Q = K = V = I, t -> |x_i(t) - x_j(t)| is non-decreasing for every pair of tokens,"
            " in every dimension."
        ),
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 7",
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(np.eye(2), t_end=4.0),
        breaks=lambda: specimen(np.diag([1.0, 0.5]), t_end=4.0),
        short=lambda: specimen(np.eye(2), t_end=4.0, stepper="euler", dt=0.5, frame="x"),
        spoil=backward,
        nonsense=random_tokens,
    )
)
