"""Independent truth: the equation as a double loop, and solutions by another method in another
precision.

Nothing here uses attnlab's dynamics or engine; formulas are written from the paper. `extrapolate`
is the Gragg-Bulirsch-Stoer method (modified midpoint rule, extrapolated in h^2) in 80-bit
arithmetic: another method, another precision.
"""

from __future__ import annotations

import math

import numpy as np

LONG = np.longdouble


def loop_attention(Q, K, x, *, beta=1.0, kernel="softmax", mask="full"):
    """P (n, n) of one head by two loops."""
    n = len(x)
    P = np.zeros((n, n))
    for i in range(n):
        seen = range(i + 1) if mask == "causal" else range(n)
        scores = [
            beta * sum(float(a) * float(b) for a, b in zip(Q @ x[i], K @ x[j], strict=True))
            for j in seen
        ]
        top = max(scores)
        if kernel == "hardmax":
            weights = [1.0 if s == top else 0.0 for s in scores]
            total = sum(weights)
        elif kernel == "exp_mean":
            weights, total = [math.exp(s) for s in scores], len(scores)
        else:
            weights = [math.exp(s - top) for s in scores]
            total = math.fsum(weights)
        for j, w in zip(seen, weights, strict=True):
            P[i, j] = w / total
    return P


def loop_velocity(Q, K, V, x, *, beta=1.0, kernel="softmax", mask="full", geometry="euclidean"):
    """x' (n, d) by loops; Q, K (h, k, d), V (h, d, d)."""
    velocity = np.zeros_like(x)
    for h in range(len(Q)):
        P = loop_attention(Q[h], K[h], x, beta=beta, kernel=kernel, mask=mask)
        for i in range(len(x)):
            for j in range(len(x)):
                velocity[i] += P[i, j] * (V[h] @ x[j])
    if geometry == "sphere":
        for i in range(len(x)):
            velocity[i] -= (velocity[i] @ x[i]) * x[i]
    return velocity


def long_velocity(Q, K, V, *, beta=1.0, geometry="euclidean"):
    """x -> x' in 80-bit arithmetic, softmax; Q, K (h, k, d), V (h, d, d)."""
    Q, K, V = (np.asarray(a, LONG) for a in (Q, K, V))

    def velocity(x):
        total = np.zeros_like(x)
        for h in range(len(Q)):
            s = LONG(beta) * ((x @ Q[h].T) @ (x @ K[h].T).T)
            w = np.exp(s - s.max(axis=1, keepdims=True))
            total += (w / w.sum(axis=1, keepdims=True)) @ (x @ V[h].T)
        if geometry == "sphere":
            total -= (total * x).sum(axis=1, keepdims=True) * x
        return total

    return velocity


SEQUENCE = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)


def extrapolate(velocity, x0, times, tolerance=1e-15, first_step=0.05):
    """The solution (T, n, d) at `times` of x' = velocity(x), x(0) = x0, in 80-bit arithmetic."""
    y, t, h = np.asarray(x0, LONG), LONG(0), LONG(first_step)
    saved = []
    for target in np.asarray(times, LONG):
        while t < target:
            step = min(h, target - t)
            after, error = _extrapolated_step(velocity, y, step)
            error /= tolerance * np.abs(after).max()
            if error <= 1.0:
                y, t = after, t + step
                if step == h or error > 1e-3:
                    h = step * min(LONG(2), LONG(0.8) * max(error, LONG(1e-9)) ** LONG(-1 / 19))
            else:
                h = step * max(LONG(0.2), LONG(0.8) * error ** LONG(-1 / 19))
        saved.append(y.copy())
    return np.array(saved)


def _extrapolated_step(velocity, y, h):
    """One step over h: the midpoint rule with 2, 4, ..., 20 substeps, Neville's scheme in the
    squared substep.
    """
    start = velocity(y)
    row = []
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
    return row[-1], np.abs(row[-1] - row[-2]).max()


def rescaled(V_total, x, times):
    """z = e^{-tV} x in 60 digits, rounded to double; x (T, n, d)."""
    import mpmath as mp

    with mp.workdps(60):
        V = mp.matrix(np.asarray(V_total, float).tolist())
        z = np.empty(x.shape)
        for i, t in enumerate(times):
            E = mp.expm(-mp.mpf(float(t)) * V, method="taylor") if t > 0 else mp.eye(V.rows)
            for j, token in enumerate(x[i]):
                column = mp.matrix(
                    [
                        mp.mpf(str(np.format_float_scientific(c, unique=False, precision=24)))
                        for c in token
                    ]
                )
                z[i, j] = [float(c) for c in E * column]
    return z


def observed_order(errors, steps):
    """The slope of log error against log step, by least squares."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]
