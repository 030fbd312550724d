"""How the choice between laws of decay, and intervals over starts, do on planted data with a known answer."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from attnlab.analysis.decay import LAWS, best_law, fit_law, prediction_errors
from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.parts import Context

PLANTED = {"exponential": -1.0, "double exponential": 1.0, "power law": -0.5}
"""Exponents of the planted data."""
SAMPLES = {"full": 400, "small": 100}

PLANTED_STARTS = 8
"""How often intervals are made of planted data, and of how many starts each."""

SPREAD, NOISE, MEMORY, POINTS = 0.05, 0.01, 0.9, 30
"""Standard deviation of the exponents of single starts, of the noise of log y, and the correlation of neighbouring points."""


def planted(law: str, exponent: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(t, log y) of one start: a known exponent, and noise that neighbours share, as the points of one run do."""
    t = np.geomspace(30.0, 300.0, POINTS) if law == "power law" else np.linspace(4.0, 12.0, POINTS)
    steps = rng.normal(size=POINTS) * np.sqrt(1 - MEMORY**2)
    noise = np.empty(POINTS)
    noise[0] = rng.normal()
    for k in range(1, POINTS):
        noise[k] = MEMORY * noise[k - 1] + steps[k]
    if law == "double exponential":
        return t, -np.exp(exponent * t - 3.0 + NOISE * noise)
    return t, exponent * (t if law == "exponential" else np.log(t)) + NOISE * noise


def check_planted(context: Context, law: str) -> dict[str, np.ndarray]:
    """How often intervals over starts, and intervals from the points of one run, hold the truth; and right choices."""
    covered, naive, right = (np.zeros(SAMPLES[context.size], np.int8) for _ in range(3))
    rng = np.random.default_rng([7, LAWS.index(law)])
    for sample in range(len(right)):
        truths = PLANTED[law] + SPREAD * rng.normal(size=PLANTED_STARTS)
        runs = [planted(law, float(truth), rng) for truth in truths]
        fits = [fit_law(law, *run) for run in runs]
        low, high = bootstrap_interval(np.array([fit.slope for fit in fits]))
        covered[sample] = low <= PLANTED[law] <= high
        reach = student.ppf(0.975, POINTS - 2) * fits[0].slope_error
        naive[sample] = abs(fits[0].slope - truths[0]) <= reach
        right[sample] = best_law(prediction_errors(*runs[0])) == law
    return {"covered": covered, "naive": naive, "right": right}
