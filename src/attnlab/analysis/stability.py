"""How fast two solutions of the mean-field equation can separate: W_2(mu_t, nu_t) <= e^{Ct}
W_2(mu_0, nu_0), with C.

All tokens of both measures are in the ball of radius R. X[mu](x) = V m(x), where m(x) is the
average of y against the weights w(y) = e^{<a, y>} / int e^{<a, y>} dmu, a = M^T x, M = Q^T K. So
|a| <= |M| R for tokens.

 1. In x: the Jacobian of X[mu] is V Cov M^T, Cov the covariance under w, at most R^2: |V| |M| R^2.
 2. In mu: join pairs (y, y') of an optimal coupling pi by straight lines y_s and let delta = y' -
    y. Then
        dm/ds = E_w[ delta + (y_s - m) <a, delta> ],  |dm/ds| <= int w |delta| (1 + |a| |y_s - m|) dpi
    and by Cauchy and Schwarz, with w <= e^{2|a|R} and E_w |y_s - m|^2 <= R^2,
        |X[mu](x) - X[nu](x)| <= |V| (1 + |M| R^2) e^{|M| R^2} W_2(mu, nu).
 3. Tokens that are coupled optimally at time 0 and stay coupled have distances whose root mean
    square grows at most at the rate
        L(R) = |V| ( |M| R^2 + (1 + |M| R^2) e^{|M| R^2} ),
    and W_2 is at most that. As |x'| <= |V| R, R(s) <= R e^{|V| s}: log(W_2(t) / W_2(0)) <= int_0^t
    L(R e^{|V| s}) ds. The same from t back to 0: the logarithm is bounded from below as well.
In the largest distance of coupled tokens no factor e^{|M| R^2} is needed: the rate is |V| (1 + 2
|M| R^2), because each row of attention sums to 1.
"""

from __future__ import annotations

import numpy as np


def stability_rate(R: np.ndarray, V: float = 1.0, M: float = 1.0) -> np.ndarray:
    """Return L(R): the fastest that log W_2 can grow when all tokens have norms up to R; V and M
    are spectral norms.
    """
    R = np.asarray(R, dtype=float)
    return np.asarray(V * (M * R**2 + (1 + M * R**2) * np.exp(M * R**2)))


def largest_distance_rate(R: np.ndarray, V: float = 1.0, M: float = 1.0) -> np.ndarray:
    """Return the fastest that the logarithm of the largest distance of coupled tokens can grow,
    with norms up to R.
    """
    return np.asarray(V * (1 + 2 * M * np.asarray(R, dtype=float) ** 2))
