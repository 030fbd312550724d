"""The way of thin heads: a certificate in the few dimensions that the head reaches, in which it
came about as any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from attnlab.limits.reach import is_plain, reduced
from attnlab.limits.state import State, start_digest
from attnlab.limits.verification import ways
from attnlab.limits.verification.record import require
from attnlab.limits.verification.start import check_digest
from attnlab.limits.verification.steps import Step
from attnlab.types import Limit

CLOSE = 1e-12
"""Products with the frame may differ by this, relative to the largest number."""


@ways.register("reduced")
def verify(limit: Limit) -> Iterator[Step]:
    """The steps of the check of the frame, then those of the certificate inside."""
    yield Step("first tokens", lambda: check_digest(limit))
    yield Step("frame", lambda: _frame(limit))
    inside = _inside(limit)
    yield from ways[str(inside.state.way)](inside)


def _frame(limit: Limit) -> str:
    values, weights = limit.state.values, limit.dynamics.weights
    frame = values["frame"]
    require(
        is_plain(limit.dynamics) and weights.heads == 1 and weights.is_factored,
        "Only one head with V in factors, in continuous time, is reduced to what it reaches.",
    )
    d, m = weights.d, frame.shape[-1]
    require(
        frame.shape == (d, m) and np.abs(frame.T @ frame - np.eye(m)).max() <= CLOSE * d,
        "The frame is not orthonormal.",
    )
    for what, columns in (("The first tokens", limit.x0.T), ("The range of V", weights.V[0][0])):
        off = float(np.abs(columns - frame @ (frame.T @ columns)).max())
        require(
            off <= CLOSE * d * float(np.abs(columns).max()),
            f"{what} leaves the frame by {off:.2g}.",
        )
    off = float(np.abs(limit.x0 @ frame - values["inside_x0"]).max())
    require(
        off <= CLOSE * d * float(np.abs(limit.x0).max()),
        "The tokens inside are not those of the limit.",
    )
    require(
        np.allclose(frame @ values["inside_basis_of_F"], limit.basis, rtol=0.0, atol=CLOSE * d)
        or not limit.basis.size,
        "The basis is not the one inside.",
    )
    return f"{d} dimensions are reduced to the {m} that the tokens and the range of V span."


def _inside(limit: Limit) -> Limit:
    values, prefix = limit.state.values, "inside_"
    frame = values["frame"]
    dynamics = reduced(limit.dynamics, limit.x0, frame)[0]
    own = {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }
    way, x0, basis = str(own.pop("way")), own.pop("x0"), own.pop("basis_of_F")
    if "start_digest" in own:  # products are rounded otherwise elsewhere, and were compared
        own["start_digest"] = np.array(start_digest(dynamics, x0))
    places = None if limit.places is None else limit.places @ frame
    z = limit.z @ frame if limit.z.size else np.zeros((len(limit.times), *x0.shape))
    return dataclasses.replace(
        limit,
        dynamics=dynamics,
        x0=x0,
        basis=basis,
        z=z,
        places=places,
        state=State(way, own),
        spec=None,
    )
