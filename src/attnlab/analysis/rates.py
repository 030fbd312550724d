"""Rates: straight lines through logarithms, with standard errors; and the escape constant of
section 7 of the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.starts import whole_number


@dataclass(frozen=True)
class Fit(Displayed):
    """The line v = intercept + slope u through m points, by least squares.

    slope_error is the standard error sqrt(RSS / (m - 2) / sum (u - mean u)^2), residual the root
    mean square of v - line.
    """

    slope: float
    slope_error: float
    intercept: float
    residual: float
    __repr__ = short_repr


def fit_line(u: np.ndarray, v: np.ndarray) -> Fit:
    """The least-squares line through the points (u, v), both (m,), m >= 3."""
    u, v = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
    if u.ndim != 1 or u.shape != v.shape or len(u) < 3:
        raise ValueError(
            f"A fit needs two lists of the same length, 3 or more; got shapes {u.shape} and"
            f" {v.shape}."
        )
    if not (np.isfinite(u).all() and np.isfinite(v).all()):
        raise ValueError(
            "A fit needs finite numbers whose logarithms exist. Leave out the times where there are"
            " none."
        )
    centred = u - u.mean()
    spread = float(centred @ centred)
    if spread == 0.0:
        raise ValueError(f"A fit needs at least two different abscissas, got only {u[0]}.")
    slope = float(centred @ v) / spread
    intercept = float(v.mean()) - slope * float(u.mean())
    squares = float(np.sum((v - intercept - slope * u) ** 2))
    return Fit(
        slope, math.sqrt(squares / (len(u) - 2) / spread), intercept, math.sqrt(squares / len(u))
    )


def fit_exponential(t: np.ndarray, y: np.ndarray) -> Fit:
    """The fit y = e^{intercept} e^{slope t}: the line of log y against t, y > 0, both (m,). Cluster
    radii: slope -lambda.
    """
    return fit_line(t, _log(y))


def fit_double_exponential(t: np.ndarray, log_y: np.ndarray) -> Fit:
    """The fit y = exp(-e^{intercept} e^{slope t}): the line of log(-log y) against t, from log y <
    0, both (m,).

    Theorem 2.1: y = 1 - max_j P_ij has slope V. The logarithm is the argument, because y itself
    underflows very soon.
    """
    return fit_line(t, _log(-np.asarray(log_y, dtype=float)))


def fit_power_law(t: np.ndarray, y: np.ndarray) -> Fit:
    """The fit y = e^{intercept} t^slope: the line of log y against log t, t, y > 0, both (m,). V =
    -I: norms have slope -1/2.
    """
    return fit_line(_log(t), _log(y))


def _log(y: np.ndarray) -> np.ndarray:
    """The logarithm, and NaN, which `fit_line` refuses with a sentence, where there is none."""
    y = np.asarray(y, dtype=float)
    return np.log(np.where(y > 0, y, np.nan))


def observed_order(sizes: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """(p, half the width of its 95 % interval) of errors ~ sizes^(-p), both (m,), by least squares
    of the logarithms.

    The half width is NaN for two sizes.
    """
    from scipy.stats import linregress, t

    fit = linregress(np.log(sizes), np.log(errors))
    spread = t.ppf(0.975, len(sizes) - 2) * fit.stderr if len(sizes) > 2 else np.nan
    return float(-fit.slope), float(spread)


def escape_constant(n: int) -> float:
    """A_n, the positive root of A^2 = n^2 e^{-A^2}: A_n^2 = W(n^2), W Lambert's function.

    d = 1, Q = K = V = 1, n tokens: a token beyond A_n runs away like c e^t (section 7).
    """
    from scipy.special import lambertw

    return math.sqrt(lambertw(float(whole_number("n", n)) ** 2).real)


def start_of_error(t: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Return (c, p) of an error c t^2 at small times, from the first of t (m,), m >= 9.

    c is error / t^2 extrapolated to t = 0 from three times, p the slope of log error in log t.
    """
    coefficient = np.polyfit(t[:3], error[:3] / t[:3] ** 2, 1)[1]
    return float(coefficient), float(np.polyfit(np.log(t[:9]), np.log(error[:9]), 1)[0])


def weighted_slope(u: np.ndarray, v: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return (slope, its standard error) of the line through (u, v), all (m,), m >= 2.

    errors: the standard errors of v, by which the points are weighted.
    """
    A = np.column_stack([np.ones(len(u)), u])
    weights = 1.0 / np.asarray(errors) ** 2
    covariance = np.linalg.inv((A.T * weights) @ A)
    return float((covariance @ (A.T * weights) @ v)[1]), float(np.sqrt(covariance[1, 1]))
