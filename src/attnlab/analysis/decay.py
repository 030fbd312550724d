"""Choose a law of decay: exponential, double exponential or power law, by its predictions for
unseen points.

The arguments are times t (m,) and log y (m,), because y itself underflows very soon. Exponents are
slopes: y = e^{slope t}, y = exp(-c e^{slope t}) or y = t^slope.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis.rates import (
    Fit,
    fit_double_exponential,
    fit_exponential,
    fit_line,
    fit_power_law,
)

LAWS = ("exponential", "double exponential", "power law")

SEEN = 0.6
"""The part of the points that a law is fitted to; it is judged by the rest."""

ENOUGH = 0.1
"""A law must predict the rest to this part of the range of log y there; else none of the three
holds.
"""

LONGEST = 600.0
"""Over a larger range of log y, y cannot be scaled into double precision."""


def fit_law(law: str, t: np.ndarray, log_y: np.ndarray) -> Fit:
    """The fit of one of LAWS to log y at the times t, both (m,), m >= 3."""
    if law == "double exponential":
        return fit_double_exponential(t, log_y)
    shifted = np.exp(log_y - log_y.max()) if np.ptp(log_y) < LONGEST else None
    if shifted is None:  # y itself underflows: the same lines, from its logarithm
        return fit_line(t if law == "exponential" else np.log(t), log_y)
    fit = fit_exponential(t, shifted) if law == "exponential" else fit_power_law(t, shifted)
    return Fit(fit.slope, fit.slope_error, fit.intercept + float(log_y.max()), fit.residual)


def predict_law(law: str, fit: Fit, t: np.ndarray) -> np.ndarray:
    """log y (m,) of a fitted law at the times t (m,)."""
    if law == "double exponential":
        return np.asarray(-np.exp(np.minimum(fit.intercept + fit.slope * t, 700.0)))
    return np.asarray(fit.intercept + fit.slope * (t if law == "exponential" else np.log(t)))


def prediction_errors(t: np.ndarray, log_y: np.ndarray) -> np.ndarray:
    """The error of each of LAWS (3,) on the last points, fitted to the first: root mean square of
    log y over its range there.

    It is infinite where a law cannot be: for a double exponential, where y is not below 1.
    """
    seen = int(SEEN * len(t))
    errors = np.full(len(LAWS), np.inf)
    for number, law in enumerate(LAWS):
        if law == "double exponential" and (log_y >= 0).any():
            continue
        rest = log_y[seen:] - predict_law(law, fit_law(law, t[:seen], log_y[:seen]), t[seen:])
        errors[number] = np.sqrt(np.mean(rest**2)) / max(np.ptp(log_y[seen:]), 1e-9)
    return errors


def best_law(errors: np.ndarray) -> str:
    """The one of LAWS with the smallest error (3,), or "none" where that is not small."""
    return LAWS[int(np.argmin(errors))] if errors.min() <= ENOUGH else "none"
