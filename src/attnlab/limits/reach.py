"""A head in few of many coordinates: tokens and weights reduced to the span of the first tokens and
of the range of V.

x' = B (...) stays in x(0) + range(B), so the flow of n tokens under V = B C of rank r lives in n +
r dimensions, and its limit too. The frame is orthonormal, so scores and limits are the same
numbers; V stays factored.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from attnlab.limits.problem import EPSILON, is_covered
from attnlab.limits.state import State, start_digest
from attnlab.types import Dynamics, Limit, Weights


def is_plain(dynamics: Dynamics) -> bool:
    """Whether this is softmax attention in R^d, in continuous time, without a feed-forward part."""
    return (
        dynamics.dt is None
        and dynamics.geometry.is_linear
        and dynamics.kernel.is_softmax
        and dynamics.feedforward.is_none
        and is_covered(dynamics)
    )


def reach_frame(dynamics: Dynamics, x0: np.ndarray) -> np.ndarray | None:
    """An orthonormal frame (d, m) of what the flow reaches from x0 (n, d), if V has one head, thin
    factors, and m < d.
    """
    weights = dynamics.weights
    if weights.heads != 1 or not weights.is_factored or not is_plain(dynamics):
        return None
    B, tokens = weights.V[0][0], np.unique(x0, axis=0)
    if B.shape[1] + len(tokens) >= weights.d or not B.any() or not tokens.any():
        return None
    span = np.hstack([B / np.linalg.norm(B, 2), tokens.T / np.linalg.norm(tokens, 2)])
    frame, sizes, _ = np.linalg.svd(span, full_matrices=False)
    return np.ascontiguousarray(frame[:, sizes > 16.0 * EPSILON * weights.d])


def reduced(dynamics: Dynamics, x0: np.ndarray, frame: np.ndarray) -> tuple[Dynamics, np.ndarray]:
    """The equation and the tokens in the coordinates of the frame."""
    weights = dynamics.weights
    B, C = weights.V[0][0], weights.V[1][0]
    inside = Weights(
        Q=weights.Q[0] @ frame,
        K=weights.K[0] @ frame,
        V=(frame.T @ B, C @ frame),
        source=weights.source,
    )
    tokens, number = np.unique(
        x0, axis=0, return_inverse=True
    )  # equal tokens stay equal, to the last bit
    return dataclasses.replace(dynamics, weights=inside), (tokens @ frame)[number.ravel()]


def lifted(limit: Limit, common: dict[str, Any], frame: np.ndarray, begin: float) -> Limit:
    """The Limit of a reduced equation in the coordinates of the equation itself, whose first tokens
    etc. are `common`.
    """
    state, dynamics = limit.state, common["dynamics"]
    x0 = common["x0"] if begin == 0.0 else limit.x0 @ frame.T  # at the time 0, not `begin`
    if state is not None:
        held = {f"inside_{name}": value for name, value in state.values.items()}
        held |= {
            "inside_way": np.array(state.way),
            "frame": frame,
            "inside_x0": limit.x0,
            "inside_basis_of_F": limit.basis,
            "start_digest": start_digest(dynamics, x0),
            "begin": state.values["begin"],
        }
        state = State("reduced", held)
    places = None if limit.places is None else limit.places @ frame.T
    z = limit.z @ frame.T if limit.z.size else np.zeros((len(limit.times), *x0.shape))
    basis = (
        frame @ limit.basis if limit.basis.size else np.zeros((x0.shape[1], limit.basis.shape[1]))
    )
    return dataclasses.replace(
        limit, **common | {"x0": x0}, basis=basis, z=z, places=places, state=state
    )
