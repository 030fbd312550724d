"""Three laws of decay, which of them predicts best what it has not seen, and how all that does on data with a known answer."""

from __future__ import annotations

import numpy as np

from attnlab.analysis.rates import Fit, fit_double_exponential, fit_exponential, fit_line, fit_power_law
from attnlab.experiments.parts import Context

LAWS = ("exponential", "double exponential", "power law")
SEEN = 0.6
"""The part of the window that a law is fitted to; it is judged by the rest."""

ENOUGH = 0.1
"""A law must predict the rest to this part of the range of log y there; else none of the three holds."""


def fitted(law: str, t: np.ndarray, log_y: np.ndarray) -> Fit:
    """The fit of a law to log y at the times t, both (m,)."""
    if law == "double exponential":
        return fit_double_exponential(t, log_y)
    shifted = np.exp(log_y - log_y.max()) if np.ptp(log_y) < 600 else None
    if shifted is None:                                             # y itself underflows: the same lines, from its logarithm
        return fit_line(t if law == "exponential" else np.log(t), log_y)
    fit = fit_exponential(t, shifted) if law == "exponential" else fit_power_law(t, shifted)
    return Fit(fit.slope, fit.slope_error, fit.intercept + float(log_y.max()), fit.residual)


def predicted(law: str, fit: Fit, t: np.ndarray) -> np.ndarray:
    """log y of a fitted law at other times."""
    if law == "double exponential":
        return np.asarray(-np.exp(np.minimum(fit.intercept + fit.slope * t, 700.0)))
    return np.asarray(fit.intercept + fit.slope * (t if law == "exponential" else np.log(t)))


def prediction_errors(t: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """The error of each law on the last part of the window, fitted to the first: root mean square of log y over its range."""
    seen = int(SEEN * len(t))
    errors = np.full(len(LAWS), np.inf)
    for number, law in enumerate(LAWS):
        if law == "double exponential" and (log_y >= 0).any():
            continue
        rest = log_y[seen:] - predicted(law, fitted(law, t[:seen], log_y[:seen]), t[seen:])
        errors[number] = np.sqrt(np.mean(rest**2)) / max(np.ptp(log_y[seen:]), 1e-9)
    return errors


def chosen_law(errors: np.ndarray) -> str:
    """The law with the smallest error, or "none" where that is not small."""
    return LAWS[int(np.argmin(errors))] if errors.min() <= ENOUGH else "none"


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
    from scipy.stats import t as student

    from attnlab.experiments.intervals import mean_interval

    covered, naive, right = (np.zeros(SAMPLES[context.size], np.int8) for _ in range(3))
    rng = np.random.default_rng([7, LAWS.index(law)])
    for sample in range(len(right)):
        truths = PLANTED[law] + SPREAD * rng.normal(size=PLANTED_STARTS)
        runs = [planted(law, float(truth), rng) for truth in truths]
        fits = [fitted(law, *run) for run in runs]
        low, high = mean_interval(np.array([fit.slope for fit in fits]))
        covered[sample] = low <= PLANTED[law] <= high
        reach = student.ppf(0.975, POINTS - 2) * fits[0].slope_error
        naive[sample] = abs(fits[0].slope - truths[0]) <= reach
        right[sample] = chosen_law(prediction_errors(*runs[0])) == law
    return {"covered": covered, "naive": naive, "right": right}
