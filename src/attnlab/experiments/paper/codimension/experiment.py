"""Two growing eigenvalues in space: two parallel lines in the end, which T = 5 does not show, and four for symmetric data."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp

from attnlab.experiments.common.portraits import run as portraits
from attnlab.experiments.parts import Context, Part, Parts
from attnlab.limits import limit
from attnlab.types import Limit, Spec, Weights

STARTS = {"full": 100, "small": 8}

T_END = 13.5
"""Just before the wall of double precision: a film that ended at 10 would show four groups, and two are certified."""
LATE = np.arange(6.5, 60.1, 0.5)
CROSS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
MIRRORED = np.array([[1.0, 0.1, 0.3], [-1.0, 0.1, 0.3], [0.0, 1.0, -0.2], [0.0, -1.0, 0.1], [0.0, 0.5, 0.4], [0.0, -0.7, 0.2]])

COUNTEREXAMPLES: dict[str, tuple[list[float], np.ndarray]] = {
    "V = I": ([1.0, 1.0], 3.0 * CROSS),
    "V = diag(1.2, 0.8)": ([1.2, 0.8], CROSS),
    "V = diag(1.2, 0.8, −0.5)": ([1.2, 0.8, -0.5], MIRRORED),
}
"""Symmetric data with more than three limits: diagonal of V, tokens."""


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, and the authors' V."""
    del size
    return {"run": portraits.portrait_spec({"family": "published", "matrix": "codimension"}, 40, 3, T_END)}


def measure_symmetric(_: Context) -> dict[str, Any]:
    """The certified limits of symmetric data, exactly as given and nudged at random by a thousandth."""
    n = max(len(tokens) for _, tokens in COUNTEREXAMPLES.values())
    found = np.full((len(COUNTEREXAMPLES), 2, n, 2), np.nan)
    for number, (diagonal, tokens) in enumerate(COUNTEREXAMPLES.values()):
        nudge = 1e-3 * np.random.default_rng(0).normal(size=tokens.shape)
        for column, start in enumerate((tokens, tokens + nudge)):
            one: Limit = limit(Weights(V=np.diag(diagonal)), start)
            if one.certified:
                found[number, column, : len(tokens)] = one.limits[:, :2]
    return {"symmetric": xarray.Dataset({"limits": (("example", "nudged", "token", "coordinate"), found),
                                         "name": ("example", list(COUNTEREXAMPLES)), "on_axis": ((), on_axis())})}


def on_axis() -> float:
    """The limit of the token (1, 0) of the cross by one scalar equation, which s = λ t makes the same for both axes.

    Its scores are a² e^{2s} with itself, minus that with the opposite token, and 0 with the two others.
    """
    def slope(s: float, a: np.ndarray) -> np.ndarray:
        q = np.exp(-a * a * np.exp(2.0 * s))
        return -a * (2.0 * q * q + 2.0 * q) / (1.0 + q * q + 2.0 * q)

    return float(solve_ivp(slope, (0.0, 8.0), [1.0], method="DOP853", rtol=1e-12, atol=1e-12).y[0, -1])


compute = Parts({"run": portraits.run_part(specs("full")["run"], ("three_hyperplanes", "codimension"), LATE.tolist()),
                 "symmetric": Part(measure_symmetric, doing="symmetric data", share=0.2),
                 "starts": portraits.starts_part(specs("full")["run"], STARTS)}, portraits.assemble)
