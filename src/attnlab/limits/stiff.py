"""Radau IIA of order 5 for the offsets of merged tokens: the implicit steps that pass slides and
changes of leader.

Two things are particular. First, Newton's iteration keeps scores of its own beside the tokens,
softmax being linear around them: in a slide the score of a row is a small difference, large times
the tokens' error, and softmax of it would be useless until the tokens are right. Secondly, the
Jacobian P (x) S + (one column per weight that is neither 0 nor 1) is solved in eigencoordinates
of S, where it is r systems of n unknowns, and the few columns by the Woodbury formula.
A step costs n^3 r, not (n r)^3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ROOT = 6.0**0.5
_C = np.array([(4.0 - _ROOT) / 10.0, (4.0 + _ROOT) / 10.0, 1.0])
_E = np.array([-13.0 - 7.0 * _ROOT, -13.0 + 7.0 * _ROOT, -1.0]) / 3.0
_A = np.array(
    [
        [
            (88.0 - 7.0 * _ROOT) / 360.0,
            (296.0 - 169.0 * _ROOT) / 1800.0,
            (-2.0 + 3.0 * _ROOT) / 225.0,
        ],
        [
            (296.0 + 169.0 * _ROOT) / 1800.0,
            (88.0 + 7.0 * _ROOT) / 360.0,
            (-2.0 - 3.0 * _ROOT) / 225.0,
        ],
        [(16.0 - _ROOT) / 36.0, (16.0 + _ROOT) / 36.0, 1.0 / 9.0],
    ]
)
_SHIFTS, _T = np.linalg.eig(np.linalg.inv(_A))  # of the stages: A^-1 = T diag(shifts) T^-1
_T_BACK = np.linalg.inv(_T)
_REAL = int(np.argmin(np.abs(_SHIFTS.imag)))
_PAIR = int(np.argmax(_SHIFTS.imag))
_POWERS = np.linalg.inv(
    np.stack([_C, _C**2, _C**3], axis=1)
)  # values at the stages -> coefficients of s, s^2, s^3

MOST_ITERATIONS = 12
CONVERGED = 1e-2
"""A Newton correction below this part of the tolerance is the last."""

LARGEST_MOVE = 2.0
"""By which the scores of a stage follow the tokens in one iteration where weights are neither 0 nor
1.
"""

PLAIN = 1e-14
"""A weight that is this close to 0 or 1 needs no column."""

SHORTEST = 1e-12
CAUTIOUS = 6


class StiffSteps:
    """The offsets y (n, r) from s = 0 on; `status` is "running", "finished" or "failed". system:
    see merged.py.
    """

    def __init__(self, system: Any, y: np.ndarray, end: float, atol: float, step: float):
        self.system, self.y, self.end, self.atol = system, y.copy(), end, atol
        self.t, self.h, self.status = 0.0, min(step, end) if step > 0.0 else 1e-3 * end, "running"
        self.scores = system(y, 0.0)[0]
        self.before: tuple[float, np.ndarray] | None = None  # the last step and its polynomial
        self.evaluations = 0
        self.cautious = 0  # steps for which the length grows little: Newton's iteration failed

    def step(self) -> None:
        """One accepted step, or failure."""
        rejected = False
        while True:
            h = min(self.h, self.end - self.t)
            if h < SHORTEST * self.end:
                self.status = "failed"
                return
            found = self._try(h)
            if found is None:
                self.h, rejected, self.cautious = 0.5 * h, True, CAUTIOUS
                continue
            Z, scores, error, iterations = found
            factor = (
                0.9
                * (2 * MOST_ITERATIONS + 1)
                / (2 * MOST_ITERATIONS + iterations)
                * max(error, 1e-8) ** -0.25
            )
            if not error <= 1.0:
                self.h, rejected = h * (max(0.1, factor) if np.isfinite(factor) else 0.1), True
                continue
            self.before = (h, np.einsum("ps,snr->pnr", _POWERS, Z))
            self.y = self.y + Z[-1]
            self.cautious = max(self.cautious - 1, 0)
            self.scores = scores[-1]
            is_last = h >= (self.end - self.t) * (1.0 - 1e-9)
            self.t = self.end if is_last else self.t + h
            if not (is_last and factor > 1.0):
                self.h = h * min(1.0 if rejected else 1.1 if self.cautious else 2.0, factor)
            if is_last:
                self.status = "finished"
            return

    def _try(self, h: float) -> tuple[np.ndarray, list[np.ndarray], float, int] | None:
        """(stages (3, n, r), their scores, error in units of the tolerance, iterations), or None:
        Newton does not converge.
        """
        system, y = self.system, self.y
        begin = system(y, self.t)
        P, T = _softmax(self.scores), system.offsets(begin)
        inverse = _Inverse(system, P, T, y, self.t, h)
        if inverse.failed:
            return None
        if self.before is None:
            Z = np.zeros((3, *y.shape))
        else:
            last, powers = self.before
            s = 1.0 + _C * h / last
            Z = np.einsum("sp,pnr->snr", np.stack([s, s**2, s**3], axis=1) - 1.0, powers)
        W = np.einsum("st,tnr->snr", _T_BACK, Z)
        own: list[np.ndarray] = []
        now = [system(y + Z[i], self.t + _C[i] * h) for i in range(3)]
        for i in range(3):
            is_near = 0.5 * np.abs(_softmax(now[i][0]) - P).sum(axis=1) < 0.2
            own.append(np.where(is_near[:, None], now[i][0], self.scores))
        before = np.inf
        for iteration in range(1, MOST_ITERATIONS + 1):
            F = np.stack([system.linear_velocity(now[i], own[i]) for i in range(3)])
            self.evaluations += 3
            if not np.isfinite(F).all():
                return None
            right = np.einsum("st,tnr->snr", _T_BACK, F) - (_SHIFTS / h)[:, None, None] * W
            change = np.empty_like(W)
            change[_REAL] = inverse.real(right[_REAL].real)
            change[_PAIR] = inverse.pair(right[_PAIR])
            change[3 - _REAL - _PAIR] = change[_PAIR].conj()
            W = W + change
            Z = np.einsum("st,tnr->snr", _T, W).real
            moved, largest = 0.0, float(np.abs(change).max()) / self.atol
            for i in range(3):
                now[i] = system(y + Z[i], self.t + _C[i] * h)
                target = now[i][0]
                weights = _softmax(own[i])
                difference = target - own[i]
                difference = difference - (weights * np.where(weights > 0.0, difference, 0.0)).sum(
                    axis=1, keepdims=True
                )
                soft = weights.max(axis=1) < 1.0 - 1e-9
                limit = np.where(soft, LARGEST_MOVE, np.inf)[:, None]
                step = np.clip(difference, -limit, limit)
                moved = max(moved, float(np.abs(_softmax(target) - weights).max()))
                fresh = np.where(np.isfinite(target), own[i] + step, -np.inf)
                own[i] = fresh - fresh.max(axis=1, keepdims=True)
            if (
                not np.isfinite(largest)
                or (iteration > 3 and largest > 2.0 * before)
                or largest > 1e30
            ):
                return None
            if largest < CONVERGED and moved < 1e-3:
                break
            before = largest
        else:
            return None
        # the filtered error estimate of order 3
        F = system.linear_velocity(begin, self.scores)
        estimate = inverse.real(F + np.einsum("s,snr->nr", _E / h, Z))
        return Z, own, float(np.abs(estimate).max()) / self.atol, iteration


def _softmax(scores: np.ndarray) -> np.ndarray:
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


class _Inverse:
    """(shift / h - J)^-1 for the real shift and for that of the pair."""

    def __init__(
        self, system: Any, P: np.ndarray, T: np.ndarray, y: np.ndarray, s: float, h: float
    ):
        reach = system.reach
        self.reach, self.failed = reach, False
        n, r = y.shape
        is_soft = (P > PLAIN) & (P.max(axis=1, keepdims=True) < 1.0 - PLAIN)
        rows, seen = np.nonzero(is_soft)
        self.rows, self.seen = rows, seen
        mean = np.einsum("ij,ijr->ir", P, T)
        self.columns = P[rows, seen][:, None] * (T[rows, seen] - mean[rows])  # (m, r): of row i
        queries, keys = system.slopes(y, s, rows, seen)  # d score_ij / d y_j and / d y_i, (m, r)
        self.by_seen, self.by_row = queries, keys
        self.parts = []
        for number in (_REAL, _PAIR):
            shift = _SHIFTS[number] / h
            try:
                small = np.linalg.inv(
                    shift * np.eye(n)[None] - reach.rates[:, None, None] * P[None]
                )  # (r, n, n)
                self.parts.append(self._prepared(small, n, r))
            except np.linalg.LinAlgError:
                self.failed = True

    def _prepared(
        self, small: np.ndarray, n: int, r: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        m = len(self.rows)
        if not m:
            return small, np.zeros((0, n, r), complex), np.zeros((0, 0), complex)
        hats = self.columns @ self.reach.left.T  # (m, r)
        W = np.einsum("anm,ma->mna", small[:, :, self.rows], hats) @ self.reach.right.T  # (m, n, r)
        inner = np.eye(m) - self._scores(W).T
        return small, W, np.linalg.inv(inner)

    def _scores(self, W: np.ndarray) -> np.ndarray:
        """What W (.., n, r) changes scores by, (.., m)."""
        return (W[..., self.seen, :] * self.by_seen).sum(axis=-1) + (
            W[..., self.rows, :] * self.by_row
        ).sum(axis=-1)

    def _solve(self, part: tuple[np.ndarray, np.ndarray, np.ndarray], b: np.ndarray) -> np.ndarray:
        small, W, inner = part
        hats = b @ self.reach.left.T  # (n, r)
        x = (small @ hats.T[:, :, None])[:, :, 0].T @ self.reach.right.T
        if len(W):
            x = x + np.tensordot(inner @ self._scores(x), W, axes=1)
        return x

    def real(self, b: np.ndarray) -> np.ndarray:
        """Of the real shift."""
        return self._solve(self.parts[0], b).real

    def pair(self, b: np.ndarray) -> np.ndarray:
        """Of the shift of the pair."""
        return self._solve(self.parts[1], b)
