"""More independent truth: every variant of the equation in 80-bit arithmetic, and eigen-coordinates
from 40 digits.

Formulas are written from the paper; nothing here uses attnlab. `follow` is the extrapolation method
of `helpers` with a tolerance for each coordinate, `EigenFlow` the flow in eigen-coordinates of V,
in which a coordinate that grows slowly does not drown in the rounding of those that grow fast.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

from helpers import LONG, SEQUENCE, extrapolate


def long_attention(Q, K, x, *, beta=1.0, kernel="softmax", mask="full", score_error=0):
    """P (n, n) of one head in 80 bit; Q, K (k, d). score_error (n, n) is a relative change of every
    score.
    """
    n = len(x)
    s = LONG(beta) * ((x @ Q.T) @ (x @ K.T).T) * (1 + score_error)
    seen = np.tri(n, dtype=bool) if mask == "causal" else np.ones((n, n), dtype=bool)
    s = np.where(seen, s, -np.inf)
    if kernel == "exp_mean":
        return np.exp(s) / seen.sum(axis=1, keepdims=True)
    top = s.max(axis=1, keepdims=True)
    w = (s == top).astype(LONG) if kernel == "hardmax" else np.exp(s - top)
    return w / w.sum(axis=1, keepdims=True)


def heads(*arrays):
    """Each array with a head axis, in 80 bit."""
    return [np.asarray(a, LONG)[None] if np.ndim(a) == 2 else np.asarray(a, LONG) for a in arrays]


def long_field(Q, K, V, *, geometry="euclidean", **options):
    """x -> x' in 80 bit, for every kernel, mask and geometry; options are those of
    long_attention.
    """
    Q, K, V = heads(Q, K, V)

    def velocity(x):
        total = np.zeros_like(x)
        for h in range(len(Q)):
            total += long_attention(Q[h], K[h], x, **options) @ (x @ V[h].T)
        if geometry == "sphere":
            total -= (total * x).sum(axis=1, keepdims=True) * x
        return total

    return velocity


def long_expm(A):
    """e^A in 80 bit: Taylor series and squaring."""
    A = np.asarray(A, LONG)
    halvings = max(0, int(np.ceil(np.log2(float(np.abs(A).sum(axis=1).max()) + 1e-300))) + 2)
    A = A / LONG(2) ** halvings
    term, total = np.eye(len(A), dtype=LONG), np.eye(len(A), dtype=LONG)
    for k in range(1, 26):
        term = term @ A / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


ACTIVATIONS = {"identity": lambda u: u, "tanh": np.tanh, "relu": lambda u: np.maximum(u, 0)}


def feedforward_path(Q, K, V, x0, times, *, sigma, W=None, bias=None, bias_outside=None, **options):
    """z (T, n, d) of z_i' = W sigma(V sum_j P_ij (z_j - z_i) + bias) + bias_outside: time is one
    token more, 1 its velocity.
    """
    Q, K, V = (np.asarray(a, LONG) for a in (Q, K, V))
    d = len(V)
    W = np.eye(d, dtype=LONG) if W is None else np.asarray(W, LONG)
    inside, outside = (
        np.zeros(d, LONG) if b is None else np.asarray(b, LONG) for b in (bias, bias_outside)
    )

    def velocity(both):
        z, t = both[:-1], both[-1, 0]
        P = long_attention(Q, K, z @ long_expm(t * V).T, **options)
        drift = (P @ z - z) @ V.T
        clock = np.zeros((1, d), LONG)
        clock[0, 0] = 1
        return np.concatenate([ACTIVATIONS[sigma](drift + inside) @ W.T + outside, clock])

    start = np.concatenate([np.asarray(x0, LONG), np.zeros((1, d), LONG)])
    return extrapolate(velocity, start, times, tolerance=1e-16)[:, :-1]


def truth(Q, K, V, x0, times, **options):
    """x (T, n, d) in 80 bit at the times."""
    return extrapolate(long_field(Q, K, V, **options), x0, times, tolerance=1e-16)


def follow(velocity, y0, times, tolerance=1e-13, first_step=0.01, is_rounded=False):
    """As helpers.extrapolate, but every coordinate is accurate relative to its own largest token:
    (T, n, d) in 80 bit.

    is_rounded: the state is rounded to double after every step.
    """
    y, t, h = np.asarray(y0, LONG), LONG(0), LONG(first_step)
    saved = []
    for target in np.asarray(times, LONG):
        while t < target:
            step = min(h, target - t)
            after, gap = _step(velocity, y, step)
            error = (
                gap / (LONG(tolerance) * np.abs(after).max(axis=0) + np.finfo(LONG).tiny)
            ).max()
            if error <= 1.0:
                y, t = after.astype(float).astype(LONG) if is_rounded else after, t + step
                if step == h or error > 1e-3:
                    h = step * min(LONG(2), LONG(0.8) * max(error, LONG(1e-9)) ** LONG(-1 / 19))
            else:
                h = step * max(LONG(0.2), LONG(0.8) * error ** LONG(-1 / 19))
                assert h > 1e-17 * (t + 1), f"the 80-bit run stalls at t = {float(t)}"
        saved.append(y.copy())
    return np.array(saved)


def _step(velocity, y, h):
    """Gragg's midpoint rule extrapolated in the squared substep: (the end, the error of each
    coordinate (d,)).
    """
    start, row = velocity(y), []
    for m, count in enumerate(SEQUENCE):
        substep = h / count
        before, now = y, y + substep * start
        for _ in range(count - 1):
            before, now = now, before + 2 * substep * velocity(now)
        new = [(now + before + substep * velocity(now)) / 2]
        for k in range(1, m + 1):
            ratio = LONG(SEQUENCE[m]) / LONG(SEQUENCE[m - k])
            new.append(new[-1] + (new[-1] - row[k - 1]) / (ratio * ratio - 1))
        row = new
    return row[-1], np.abs(row[-1] - row[-2]).max(axis=0)


def to_long(matrix):
    """An mpmath matrix in 80 bit."""
    return np.array(
        [[LONG(mp.nstr(matrix[i, j], 25)) for j in range(matrix.cols)] for i in range(matrix.rows)]
    )


class EigenFlow:
    """One head, V symmetric, Q = K = I: the flow in eigen-coordinates of V, which are found in 40
    digits.

    x = basis y,     y_i' = sum_j P_ij diag(values) y_j,     z = basis (e^{-t values} y)
    """

    def __init__(self, V):
        with mp.workdps(40):
            values, vectors = mp.eigsy(mp.matrix(np.asarray(V, float).tolist()))
            self.values, self.basis = to_long(values.T)[0], to_long(vectors)

    def run(self, x0, times, *, in_double=None):
        """The flow at the times: afterwards y, x, z and eigen_z are (T, n, d).

        in_double=seed: what double precision may make of it. Tokens are rounded to double after
        every step, and every score is wrong by (d + 1) 2^-53 of itself, the bound for an inner
        product of d numbers, with random signs.
        """
        y0, eye, options = (
            np.asarray(x0, LONG) @ self.basis,
            np.eye(len(self.values), dtype=LONG),
            {},
        )
        if in_double is not None:
            signs = np.random.default_rng(in_double).choice([-1, 1], (len(x0), len(x0)))
            options["score_error"] = LONG(2) ** -53 * (y0.shape[1] + 1) * signs
        self.y = follow(
            long_field(eye, eye, np.diag(self.values), **options),
            y0,
            times,
            is_rounded=in_double is not None,
        )
        self.times = np.asarray(times, LONG)[:, None, None]
        return self

    @property
    def x(self):
        return self.y @ self.basis.T

    @property
    def eigen_z(self):
        """z in eigen-coordinates (T, n, d)."""
        return self.y * np.exp(-self.times * self.values)

    @property
    def z(self):
        return self.eigen_z @ self.basis.T
