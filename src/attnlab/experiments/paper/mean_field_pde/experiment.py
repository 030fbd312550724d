"""The mean-field equation solved by finite volumes, beside the tokens: two methods that share
nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.special import ndtr

from attnlab.analysis.finite_volumes import SCHEMES, solve_mean_field
from attnlab.analysis.transport import Law, uniform_law
from attnlab.engine import simulate
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
GRIDS = {"full": (50, 100, 200, 400, 800), "small": (50, 100, 200, 400)}
TOKENS = {"full": 4096, "small": 2048}
FEW = 64

MEAN, DEVIATION, REACH = 0.3, 0.4, 3.0
"""The Gaussian of the closed form, and where it is cut off: seven deviations away."""


def lopsided() -> Law:
    """A smooth law on [-1.4, 1.4], flat at its ends, with density proportional to (1 - y²)² (1 +
    y/2), y = x / 1.4.
    """
    high = 1.4
    density = (
        np.polynomial.Polynomial([1, 0, -1 / high**2]) ** 2
        * np.polynomial.Polynomial([1, 0.5 / high])
        * 15
        / (16 * high)
    )
    total = density.integ()
    return Law("smooth", -high, high, lambda x: total(x) - total(-high), density)


def gaussian() -> Law:
    """The Gaussian of the closed form, on [-REACH, REACH]."""
    ends = ndtr((np.array([-REACH, REACH]) - MEAN) / DEVIATION)

    def cumulative(x: np.ndarray) -> np.ndarray:
        return np.asarray((ndtr((x - MEAN) / DEVIATION) - ends[0]) / (ends[1] - ends[0]))

    return Law(
        "Gaussian",
        -REACH,
        REACH,
        cumulative,
        lambda x: np.exp(-(((x - MEAN) / DEVIATION) ** 2) / 2),
    )


def on_grids(law: Law, size: str, times: np.ndarray, V: float) -> Any:
    """A Dataset of both schemes on all grids, one grid behind another along `slot`; `cells` says
    which grid a slot is of.
    """
    grids = GRIDS[size]
    masses = [
        np.concatenate([solve_mean_field(law, N, times, V, scheme) for N in grids], axis=1)
        for scheme in SCHEMES
    ]
    return xarray.Dataset(
        {
            "masses": (("scheme", "time", "slot"), np.array(masses)),
            "cells": ("slot", np.repeat(grids, grids)),
            "time": ("time", times),
        },
        attrs={"low": law.low, "high": law.high, "V": V},
    )


def measure_law(context: Context, name: str) -> Any:
    """Both schemes on all grids for a law, beside tokens that start at its quantiles."""
    law = {"smooth": lopsided, "uniform": uniform_law}[name]()
    found = on_grids(law, context.size, TIMES, 1.0)
    for word, n in (("tokens", TOKENS[context.size]), ("few", FEW)):
        run = simulate(
            Weights(V=np.eye(1)), law.start(n), times=TIMES, t_end=float(TIMES[-1]), rtol=1e-10
        )
        assert run.z is not None
        found[word] = (("time", f"of_{word}"), run.z[..., 0])
    return found


def measure_gaussian(context: Context, V: float) -> Any:
    """Both schemes on all grids for the Gaussian."""
    return on_grids(gaussian(), context.size, TIMES[:3], V)


def assemble(results: Results) -> dict[str, Any]:
    """One Dataset per law."""
    return dict(
        zip(
            ("smooth", "uniform", "gaussian_plus", "gaussian_minus"),
            [*results.values("laws"), *results.values("gaussian")],
            strict=True,
        )
    )


compute = Parts(
    {
        "laws": Part(
            measure_law,
            Grid({"name": ["smooth", "uniform"]}),
            "tokens and finite volumes, {name} law",
            share=0.8,
        ),
        "gaussian": Part(
            measure_gaussian, Grid({"V": [1.0, -1.0]}), "the Gaussian, V = {V:g}", share=0.2
        ),
    },
    assemble,
)
