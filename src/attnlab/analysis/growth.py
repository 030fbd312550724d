"""How fast tokens grow: the natural clock of a flow with several heads."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from attnlab.types import Weights


@lru_cache(maxsize=16)
def growth_rate(weights: Weights, part: str = "modulus", *, from_factors: bool = True) -> float:
    """The largest eigenvalue of W = sum_h V_h. Tokens grow like e^{rate t}.

    The natural time of the flow is tau = rate t; for V_h = I it is Ht.

    part: "modulus", the spectral radius of W, or "real", the largest real part.
    from_factors: whether factors V_h = B_h C_h give the eigenvalues, where these are fewer than d; else W is multiplied out,
    with different rounding. The last 16 answers are cached, because one may cost more than a run.
    """
    if part not in ("modulus", "real"):
        raise ValueError(f"part must be 'modulus' or 'real', got {part!r}.")
    values = weights.total.eigenvalues if from_factors else np.linalg.eigvals(weights.full_V.sum(axis=0))
    return float((np.abs(values) if part == "modulus" else values.real).max())
