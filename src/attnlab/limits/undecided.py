"""A Limit that claims nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.types import Limit


def undecided(shared: dict[str, Any], n: int, basis: np.ndarray, reason: str) -> Limit:
    """Return the undecided Limit of n tokens with that basis (d, k) of F; shared holds the other
    fields.
    """
    nobody = np.full(n, -1)
    return Limit(
        labels=nobody,
        leaders=nobody,
        basis=basis,
        points=np.full((n, basis.shape[1]), np.nan),
        error=np.inf,
        grade="undecided",
        reason=reason,
        certificate=reason,
        **shared,
    )
