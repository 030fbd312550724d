"""Make limits.json: small attention systems and their true limits, in extended precision.

This program is the independent truth for the limit code of the package. It imports nothing
from attnlab and shares no algorithm with it. It does three things.

1.  It integrates the softmax flow  dx_i/dt = sum_j P_ij V x_j  itself, by Taylor series of high
    order in multi-precision arithmetic (the library FLINT, called through ctypes).
    A weight is left out of a row only while it is below the working precision, and the Taylor
    polynomial of its gap proves that it stays there during the step. Fast layers, where a row
    changes its leader, are passed by the step control.
2.  When every row is Boolean by a wide gap and leaders follow themselves, it writes each gap of
    the frozen flow as an explicit sum of exponentials and proves with ball arithmetic that the
    gap stays above a growing margin for ever: beyond some s* because the leading term dominates,
    on [0, s*] by subdivision. Otherwise it integrates on.
3.  It records the system, the leaders, the labels and the limits pi_F z_i.

A system that is not decided within the CPU limit or the largest precision is listed as open.

Needs numpy and python-flint (its wheel carries the shared library). Use:

    python make_limits.py --out limits.json                 all families, resumes where it stopped
    python make_limits.py --family close --count 4          a part
    python make_limits.py --verify 60                       decides stored systems a second time
    python make_limits.py --selftest                        closed forms and mpmath.odefun
"""

import argparse
import ctypes
import glob
import json
import math
import os
import sys
import time
from fractions import Fraction

import flint
import numpy as np
from flint import acb, arb, ctx, fmpq, fmpq_mat

CPU_LIMIT = 90.0
DIGITS = 100  # at the start
MORE = 50  # raised by this much when tokens have grown
KNOWN = 80  # digits after the point that are carried for every token, so for offsets from a leader
TRUSTED = 50  # of these the proof relies on so many
LARGEST = 140  # log10 of the largest token; scores then still fit a double
CHECK_ORDER = 32  # coefficients of a gap that is only watched

# ----------------------------------------------------------------------------------------------
# FLINT through ctypes: vectors of multi-precision numbers
# ----------------------------------------------------------------------------------------------


def _load():
    place = os.path.join(os.path.dirname(os.path.dirname(flint.__file__)), "python_flint.libs")
    names = glob.glob(os.path.join(place, "libflint*"))
    return ctypes.CDLL(names[0] if names else "libflint.so")


_lib = _load()
_P, _L = ctypes.c_void_p, ctypes.c_long


def _bind(name, args, result=None):
    function = getattr(_lib, name)
    function.argtypes, function.restype = args, result
    return function


_vec_init = _bind("_arb_vec_init", [_L], _P)
_vec_clear = _bind("_arb_vec_clear", [_P, _L])
_dot = _bind("arb_approx_dot", [_P, _P, ctypes.c_int, _P, _L, _P, _L, _L, _L])
_mul = _bind("arf_mul_rnd_down", [_P, _P, _P, _L])
_sub = _bind("arf_sub", [_P, _P, _P, _L, ctypes.c_int])
_set = _bind("arf_set", [_P, _P])
_get_d = _bind("arf_get_d", [_P, ctypes.c_int], ctypes.c_double)
_bits = _bind("arf_abs_bound_lt_2exp_si", [_P], _L)
_dump = _bind("arf_dump_str", [_P], _P)
_load_str = _bind("arf_load_str", [_P, ctypes.c_char_p], ctypes.c_int)
_free = _bind("flint_free", [_P])

SIZE = 48  # bytes of one arb_struct; the midpoint is its first member
NEAREST = 4


class Vector:
    """An array of multi-precision numbers; at(k) is the address of entry k."""

    def __init__(self, length):
        self.length, self.base = length, _vec_init(length)

    def __del__(self):
        _vec_clear(self.base, self.length)

    def at(self, k):
        return self.base + SIZE * k

    def put(self, k, number):
        man, exp = number.mid().man_exp()
        sign, man = ("-", -man) if man < 0 else ("", man)
        _load_str(
            self.at(k), f"{sign}{int(man):x} {'-' if exp < 0 else ''}{abs(int(exp)):x}".encode()
        )

    def get(self, k):
        text = _dump(self.at(k))
        man, exp = ctypes.string_at(text).decode().split()
        _free(text)
        return arb((int(man, 16), int(exp, 16)))

    def double(self, k):
        return _get_d(self.base + SIZE * k, NEAREST)


# ----------------------------------------------------------------------------------------------
# The softmax flow by Taylor series
# ----------------------------------------------------------------------------------------------


class Flow:
    """One trajectory of the softmax flow of tokens with multiplicities.

    The independent variable of a series is (t - t_now) / guess, so that coefficients neither
    overflow nor underflow when converted to double.
    """

    def __init__(self, system, digits, order_factor=1.15, slack=0):
        system.prepare(digits)
        self.system, self.order_factor, self.slack = system, order_factor, slack
        self.digits = digits
        self.prec = int(digits * math.log2(10)) + 64
        ctx.prec = self.prec
        self.order = int(order_factor * digits)
        self.log_tol = -(digits + slack) * math.log(10)
        self.n, self.d = n, d = len(system.tokens), system.d
        self.mask, self.count = system.mask, system.count
        N = self.order + 1
        self.x = [Vector(N * d) for _ in range(n)]  # entry l d + a
        self.w = [Vector(N * d) for _ in range(n)]  # beta M x_j, component reversed
        self.r = [Vector(N * n) for _ in range(d)]  # x again, by component, token reversed
        self.g = [[Vector(N) for _ in range(n)] for _ in range(n)]  # score minus leader's score
        self.dg = [[Vector(N) for _ in range(n)] for _ in range(n)]  # l g[l]
        self.s = [Vector(N) for _ in range(n)]
        self.e = [Vector(N * n) for _ in range(n)]  # weights, entry l n + j
        self.z = [Vector(N) for _ in range(n)]  # their sum
        self.u = [Vector(N * d) for _ in range(n)]  # mean token seen by the row
        self.h = Vector(N)
        self.tmp, self.one = Vector(2), Vector(1)
        self.one.put(0, arb(1))
        self.number, self.inverse = Vector(N + 2), Vector(N + 2)
        for k in range(1, N + 1):
            self.number.put(k, arb(k))
            self.inverse.put(k, arb(1) / k)
        self.V, self.M = Vector(d * d), Vector(d * d)
        self.Vexact = system.V
        for a in range(d):
            for b in range(d):
                self.M.put(a * d + b, system.betaM[a][b])
        for i in range(n):
            for a in range(d):
                self.x[i].put(a, system.tokens[i][a])
        self.t = fmpq(0)
        self.guess = fmpq(1, 64)
        self.threshold = digits * math.log(10) + 20
        self.leader = None
        self.steps = self.late_changes = 0
        self.start_row()

    def with_digits(self, digits):
        """The same state with more digits.

        A token carries an absolute error, and so does its offset from its leader, which stays
        constant in the frozen flow: padding the numbers later is as good as more digits from the
        start.
        """
        state = self.tokens()
        new = Flow(self.system, digits, self.order_factor, self.slack)
        for i in range(self.n):
            for a in range(self.d):
                new.x[i].put(a, state[i][a])
        new.t, new.guess, new.steps = self.t, self.guess, self.steps
        new.start_row()
        new.late_changes = self.late_changes
        return new

    def visible(self, i):
        return range(i + 1) if self.mask else range(self.n)

    def start_row(self):
        """Order 0 of everything that follows from the tokens, and the leaders."""
        n, d, prec = self.n, self.d, self.prec
        for j in range(n):
            for b in range(d):
                _set(self.r[b].at(n - 1 - j), self.x[j].at(b))
                _dot(
                    self.w[j].at(d - 1 - b),
                    None,
                    0,
                    self.M.at(b * d),
                    1,
                    self.x[j].at(0),
                    1,
                    d,
                    prec,
                )
        old, self.leader, self.gap = self.leader, [], np.full((n, n), np.inf)
        self.size = max(abs(self.x[i].double(a)) for i in range(n) for a in range(d))
        for i in range(n):
            best = None
            for j in self.visible(i):
                _dot(
                    self.g[i][j].at(0),
                    None,
                    0,
                    self.x[i].at(0),
                    1,
                    self.w[j].at(d - 1),
                    -1,
                    d,
                    prec,
                )
                if best is None:
                    best = j
                else:
                    _sub(self.tmp.at(0), self.g[i][j].at(0), self.g[i][best].at(0), prec, NEAREST)
                    if self.tmp.double(0) > 0:
                        best = j
            self.leader.append(best)
            _set(self.s[i].at(0), self.g[i][best].at(0))
            for j in self.visible(i):
                _sub(self.g[i][j].at(0), self.g[i][j].at(0), self.s[i].at(0), prec, NEAREST)
                if j != best:
                    self.gap[i, j] = -self.g[i][j].double(0)
        if old and math.log(self.size) > 10:
            self.late_changes += sum(a != b for a, b in zip(old, self.leader, strict=True))

    def series(self):
        """All Taylor coefficients at the present point."""
        n, d, prec, N = self.n, self.d, self.prec, self.order
        x, w, r, g, dg, s, e, z, u = (
            self.x,
            self.w,
            self.r,
            self.g,
            self.dg,
            self.s,
            self.e,
            self.z,
            self.u,
        )
        number, inverse, leader, S = self.number, self.inverse, self.leader, SIZE
        V, M, tmp = self.V.base, self.M.base, self.tmp.base
        guess = arb(self.guess)
        for a in range(d):
            for b in range(d):
                self.V.put(a * d + b, self.Vexact[a][b] * guess)
        self.active = [
            [j for j in self.visible(i) if j != leader[i] and self.gap[i, j] < 1.3 * self.threshold]
            for i in range(n)
        ]
        nil, ratio = Vector(1), Vector(n)
        for i in range(n):
            if not self.active[i]:
                continue
            total = arb(self.count[leader[i]])
            for q in range((N + 1) * n):
                _set(e[i].at(q), nil.base)
            e[i].put(leader[i], arb(self.count[leader[i]]))
            for j in self.active[i]:
                weight = self.count[j] * g[i][j].get(0).exp().mid()
                total = (total + weight).mid()
                e[i].put(j, weight)
            z[i].put(0, total)
            ratio.put(i, (1 / total).mid())
        soft = [i for i in range(n) if self.active[i]]
        view = {i: u[i] if self.active[i] else x[leader[i]] for i in range(n)}
        rows = [(i, j) for i in range(n) for j in self.visible(i) if j != leader[i]]
        hot = [(i, j) for i, j in rows if j in self.active[i]]
        for k in range(N):
            if k > 0:
                for i in soft if k >= CHECK_ORDER else range(n):
                    if len(self.visible(i)) > 1:
                        b = w[leader[i]].base + S * (k * d + d - 1)
                        _dot(s[i].base + S * k, None, 0, x[i].base, 1, b, -1, (k + 1) * d, prec)
                for i, j in hot if k >= CHECK_ORDER else rows:
                    # the gap, score of the leader minus score of j; the exponent of the weight is
                    # its negative
                    b = w[j].base + S * (k * d + d - 1)
                    _dot(
                        g[i][j].base + S * k,
                        s[i].base + S * k,
                        1,
                        x[i].base,
                        1,
                        b,
                        -1,
                        (k + 1) * d,
                        prec,
                    )
            for i in soft:
                base = e[i].base
                if k > 0:
                    for j in self.active[i]:
                        _mul(dg[i][j].base + S * k, g[i][j].base + S * k, number.base + S * k, prec)
                        _dot(
                            tmp,
                            None,
                            1,
                            dg[i][j].base + S,
                            1,
                            base + S * ((k - 1) * n + j),
                            -n,
                            k,
                            prec,
                        )
                        _mul(base + S * (k * n + j), tmp, inverse.base + S * k, prec)
                    _dot(
                        z[i].base + S * k, None, 0, base + S * (k * n), 1, self.one.base, 0, n, prec
                    )
                for a in range(d):
                    at = u[i].base + S * (k * d + a)
                    _dot(
                        tmp,
                        None,
                        0,
                        base,
                        1,
                        r[a].base + S * (k * n + n - 1),
                        -1,
                        (k + 1) * n,
                        prec,
                    )
                    if k > 0:
                        _dot(
                            tmp,
                            tmp,
                            1,
                            z[i].base + S,
                            1,
                            u[i].base + S * ((k - 1) * d + a),
                            -d,
                            k,
                            prec,
                        )
                    _mul(at, tmp, ratio.base + S * i, prec)
            for i in range(n):
                seen = view[i].base + S * k * d
                for a in range(d):
                    at = x[i].base + S * ((k + 1) * d + a)
                    _dot(tmp, None, 0, V + S * a * d, 1, seen, 1, d, prec)
                    _mul(at, tmp, inverse.base + S * (k + 1), prec)
                    _set(r[a].base + S * ((k + 1) * n + n - 1 - i), at)
                new = x[i].base + S * (k + 1) * d
                for b in range(d):
                    _dot(
                        w[i].base + S * ((k + 1) * d + d - 1 - b),
                        None,
                        0,
                        M + S * b * d,
                        1,
                        new,
                        1,
                        d,
                        prec,
                    )
        self.inactive = [(i, j) for i, j in rows if j not in self.active[i]]

    def step_ratio(self):
        """log of the step, in units of the guess, that the truncation error allows."""
        best = math.inf
        for k in (self.order - 1, self.order):
            top = max(_bits(v.at(k * self.d + a)) for v in self.x for a in range(self.d))
            if top > -(10**15):
                best = min(best, (self.log_tol + math.log(self.size) - top * math.log(2)) / k)
        return min(best, math.log(50.0))

    def largest_safe(self, log_ratio):
        """Shrink the step until every weight that was left out stays negligible during it.

        At the step of the error control the coefficients fall like e^{-2k}, so those from
        CHECK_ORDER on are below the rounding of a double; the last one kept is tested.
        """
        if not self.inactive:
            return log_ratio
        K = np.arange(CHECK_ORDER)
        c = np.empty((len(self.inactive), CHECK_ORDER))
        for q, (i, j) in enumerate(self.inactive):
            g, start = self.g[i][j], self.gap[i, j]
            c[q, 0] = 1.0
            c[q, 1:] = [g.double(k) / start for k in range(1, CHECK_ORDER)]
        if not np.all(np.isfinite(c)):
            return None
        first = np.array([self.gap[i, j] for i, j in self.inactive])
        floor = np.maximum(self.threshold / first, 1e-6)
        tau = np.linspace(0, 1, 33)
        while True:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                b = c * np.exp(K * log_ratio)
                low = np.polynomial.polynomial.polyval(tau, b.T).min(axis=1)
                total = np.abs(b).sum(axis=1)
                curve = (np.abs(b) * K * (K - 1)).sum(axis=1) / (8 * 32**2)
                fine = np.all(low - curve - 1e-13 * total >= floor)
                fine = fine and np.all(np.abs(b[:, -1]) <= 1e-14 * total)
            if fine:
                return log_ratio
            log_ratio -= 0.35

    def step(self):
        """One step of the flow."""
        while True:
            self.series()
            ratio = self.largest_safe(self.step_ratio())
            if ratio is not None:
                break
            self.guess /= 1000
        # a short dyadic step, rounded down
        bits = math.floor(ratio / math.log(2)) - 12
        f = _times_power(fmpq(max(1, math.floor(math.exp(ratio - bits * math.log(2))))), bits)
        power, factor = arb(1), arb(f)
        for k in range(self.order + 1):
            self.h.put(k, power)
            power = (power * factor).mid()
        new = []
        for i in range(self.n):
            for a in range(self.d):
                _dot(
                    self.tmp.at(1),
                    None,
                    0,
                    self.x[i].at(a),
                    self.d,
                    self.h.at(0),
                    1,
                    self.order + 1,
                    self.prec,
                )
                new.append(self.tmp.get(1))
        for q, value in enumerate(new):
            self.x[q // self.d].put(q % self.d, value)
        step = self.guess * f
        self.t += step
        self.guess = _short(step)
        self.steps += 1
        self.start_row()

    def tokens(self):
        return [[self.x[i].get(a) for a in range(self.d)] for i in range(self.n)]

    def smallest_gap(self):
        return float(self.gap.min())


def _size(q):
    return int(q.p).bit_length() - int(q.q).bit_length()


def _times_power(q, k):
    return q * fmpq(2) ** k if k >= 0 else q / fmpq(2) ** (-k)


def _short(q):
    """The rational rounded down to about 12 bits."""
    shift = _size(q) - 12
    scaled = _times_power(q, -shift)
    return _times_power(fmpq(max(1, int(scaled.p) // int(scaled.q))), shift)


# ----------------------------------------------------------------------------------------------
# A system: exact data, duplicates merged, spectral projections
# ----------------------------------------------------------------------------------------------


def exact(number):
    p, q = float(number).as_integer_ratio()
    return fmpq(p, q)


class System:
    """Exact rational data; equal tokens are merged with a multiplicity (never under a mask)."""

    def __init__(self, record):
        self.mask = bool(record["mask"])
        self.d = d = len(record["V"])
        Q, K = ([[exact(v) for v in row] for row in record[name]] for name in "QK")
        beta = exact(record["beta"])
        self.betaMq = [
            [
                beta * sum((q[a] * k[b] for q, k in zip(Q, K, strict=True)), fmpq(0))
                for b in range(d)
            ]
            for a in range(d)
        ]
        self.Vq = [[exact(v) for v in row] for row in record["V"]]
        self.start = [tuple(exact(v) for v in row) for row in record["x0"]]
        self.first, seen = [], {}
        self.member = []
        for i, token in enumerate(self.start):
            if token in seen and not self.mask:
                self.member.append(seen[token])
            else:
                seen[token] = len(self.first)
                self.member.append(len(self.first))
                self.first.append(i)
        self.count = [self.member.count(g) for g in range(len(self.first))]

    def prepare(self, digits):
        """Numbers, eigenvalues and spectral projections at the wanted precision."""
        ctx.prec = int(digits * math.log2(10)) + 64
        d = self.d
        self.V = [[arb(v) for v in row] for row in self.Vq]
        self.betaM = [[arb(v) for v in row] for row in self.betaMq]
        self.tokens = [[arb(v) for v in self.start[i]] for i in self.first]
        minimal = fmpq_mat(d, d, [v for row in self.Vq for v in row]).minpoly()
        if minimal.gcd(minimal.derivative()).degree() > 0:
            raise ValueError("V is defective")
        self.mu = [root for root, _ in minimal.complex_roots()]
        self.proj = []
        for a, mu in enumerate(self.mu):
            P = [[acb(int(p == q)) for q in range(d)] for p in range(d)]
            for b, other in enumerate(self.mu):
                if b != a:
                    factor = [
                        [(self.V[p][q] - (other if p == q else 0)) / (mu - other) for q in range(d)]
                        for p in range(d)
                    ]
                    P = matmul(P, factor)
            self.proj.append(P)
        self.unstable = [a for a, mu in enumerate(self.mu) if mu.real > 0]
        # products of projections that vanish identically are made exactly zero
        tiny = arb(10) ** (-digits // 2)
        scale = sum((abs(v) for row in self.betaM for v in row), arb(0))
        self.W = {}
        for a in range(len(self.mu)):
            for b in range(len(self.mu)):
                W = matmul(
                    [list(c) for c in zip(*self.proj[a], strict=True)],
                    matmul(self.betaM, self.proj[b]),
                )
                if all(abs(v) < tiny * scale for row in W for v in row):
                    W = None
                self.W[a, b] = W


def matmul(A, B):
    return [
        [sum((A[p][k] * B[k][q] for k in range(len(B))), acb(0)) for q in range(len(B[0]))]
        for p in range(len(A))
    ]


def apply(A, v):
    return [sum((A[p][q] * v[q] for q in range(len(v))), acb(0)) for p in range(len(A))]


def pair(u, v):
    return sum((p * q for p, q in zip(u, v, strict=True)), acb(0))


# ----------------------------------------------------------------------------------------------
# The frozen flow: does every gap stay above a growing margin for ever?
# ----------------------------------------------------------------------------------------------


class ExponentialSum:
    """f(s) = Re sum C e^{sigma s} with balls as coefficients."""

    def __init__(self, terms):
        self.terms = [(c, s) for c, s in terms if not (c.real.is_zero() and c.imag.is_zero())]

    def stays_positive(self):
        """ "yes" (proved for all s >= 0), ("crosses", s) or "unknown"."""
        top = max((s.real.mid() for _, s in self.terms), key=lambda v: float(v))
        near = arb(10) ** -20
        lead = arb(0)
        rest = []
        for c, s in self.terms:
            if abs(s.real.mid() - top) < near:
                lead += c.real if s.imag.contains(0) else -abs(c)
            elif not s.imag.contains(0):
                rest.append((abs(c), (top - s.real).mid()))
            elif not c.real > 0:
                rest.append((abs(c.real), (top - s.real).mid()))
        # scaled by e^{-top s}
        self.scaled = [(c, s - top) for c, s in self.terms]
        if not lead > 0:
            for s in (2.0**k for k in range(-10, 12)):
                if self.value(arb(s)) < 0:
                    return "crosses", s
            return "unknown", None
        star = arb(1) / 64
        for _ in range(60):
            if sum((c * (-rate * star).exp() for c, rate in rest), arb(0)) < lead / 2:
                break
            star *= 2
        else:
            return "unknown", None
        return self.subdivide(star)

    def value(self, s):
        return sum(((c * (sigma * s).exp()).real for c, sigma in self.scaled), arb(0))

    def slope(self, s):
        return sum(((c * sigma * (sigma * s).exp()).real for c, sigma in self.scaled), arb(0))

    def crossing(self, high):
        """About where the sum becomes negative, given a place where it is."""
        low = arb(0)
        for _ in range(14):
            middle = ((low + high) / 2).mid()
            low, high = (low, middle) if self.value(middle) < 0 else (middle, high)
        return float(high)

    def subdivide(self, star):
        work, cells = [(arb(0), star)], 0
        while work:
            u, w = work.pop()
            cells += 1
            if cells > 3000:
                return "unknown", None
            middle, half = ((u + w) / 2).mid(), ((w - u) / 2).mid()
            cell = arb(middle, half)
            if self.value(cell) > 0:
                continue
            at = self.value(middle)
            if at < 0:
                return "crosses", self.crossing(middle)
            slope = self.slope(cell)
            if at + slope * arb(0, half) > 0:
                continue
            if slope > 0 and self.value(u) > 0:
                continue
            if slope < 0 and self.value(w) > 0:
                continue
            if half < star * arb(2) ** -200:
                return "unknown", None
            work.append((middle, w))
            work.append((u, middle))
        return "yes", None


def frozen_verdict(system, flow, first_pair=None):
    """Verdict, place of a crossing and pair to test first next time, for the state of the flow."""
    n, L = flow.n, flow.leader
    if any(L[L[i]] != L[i] for i in range(n)):
        return "unknown", None, None
    trust = arb(10) ** -TRUSTED
    tokens = flow.tokens()
    x = [[arb(v.mid(), trust * flow.size) for v in row] for row in tokens]
    growth = max(float(mu.real) for mu in system.mu)
    rates = [float(system.mu[a].real) for a in system.unstable]
    if not rates:
        return "unknown", None, None
    nu = min(rates) / 2
    margin = arb(100 + 4 * math.log(1 + flow.size) + 8 * growth / nu)
    if flow.smallest_gap() < margin:
        return "unknown", None, None
    offset = [
        (
            None
            if L[i] == i
            else [
                arb((p - q).mid(), trust * (1 + abs(p - q)))
                for p, q in zip(tokens[i], tokens[L[i]], strict=True)
            ]
        )
        for i in range(n)
    ]
    mu = system.mu
    pairs = [(i, k) for i in range(n) for k in flow.visible(i) if k != L[i]]
    if first_pair in pairs:
        pairs.remove(first_pair)
        pairs.insert(0, first_pair)
    for i, k in pairs:
        A, terms = x[L[i]], []
        D = None if L[k] == L[i] else [p - q for p, q in zip(A, x[L[k]], strict=True)]
        for b in range(len(mu)):
            if D is not None:
                for a in range(len(mu)):
                    if system.W[a, b] is not None:
                        terms.append((pair(A, apply(system.W[a, b], D)), mu[a] + mu[b]))
                if offset[i] is not None:
                    terms.append(
                        (pair(offset[i], apply(system.betaM, apply(system.proj[b], D))), mu[b])
                    )
            if offset[k] is not None:
                terms.append(
                    (-pair(apply(system.proj[b], A), apply(system.betaM, offset[k])), mu[b])
                )
        if offset[i] is not None and offset[k] is not None:
            terms.append((-pair(offset[i], apply(system.betaM, offset[k])), acb(0)))
        terms.append((acb(-margin), acb(nu)))
        verdict, when = ExponentialSum(terms).stays_positive()
        if verdict != "yes":
            return verdict, when, (i, k)
    return "yes", None, None


# ----------------------------------------------------------------------------------------------
# Decide one system
# ----------------------------------------------------------------------------------------------


def decide(
    record,
    cpu_limit=CPU_LIMIT,
    digits=DIGITS,
    known=KNOWN,
    order_factor=1.15,
    slack=0,
    beyond=False,
):
    """The answer as a dict; "reason" is present when the system stays open.

    beyond: after the decision go on with the softmax flow until tokens are e^25 times larger and
    report whether leaders and limits are still the same there.
    """
    begin = time.process_time()
    system, info = System(record), {}
    flow = Flow(system, digits, order_factor, slack)
    tried, next_try, culprit = None, 0.0, None
    while True:
        now = float(arb(flow.t))
        if tried != flow.leader:
            next_try = min(next_try, now)
        if flow.smallest_gap() > 100 and now >= next_try:
            verdict, when, culprit = frozen_verdict(system, flow, culprit)
            tried, next_try = list(flow.leader), now + 0.5
            if verdict == "yes":
                found = answer(system, flow, begin)
                return go_on(system, flow, found, begin) if beyond else found
            if verdict == "crosses":
                next_try = info["predicted"] = now + when + 0.25
        if math.log10(flow.size + 1) > LARGEST:
            info["reason"] = "precision"
            break
        if time.process_time() - begin > cpu_limit:
            info["reason"] = "cpu"
            break
        flow = enough_digits(flow, known)
        flow.step()
    info.update(
        t=float(arb(flow.t)),
        digits=flow.digits,
        smallest_gap=flow.smallest_gap(),
        log_size=math.log(flow.size),
        leaders_at_t=[system.first[flow.leader[g]] for g in system.member],
        steps=flow.steps,
        cpu=round(time.process_time() - begin, 2),
    )
    return info


def enough_digits(flow, known):
    while known + math.log10(flow.size + 1) > flow.digits:
        flow = flow.with_digits(flow.digits + MORE)
    return flow


def go_on(system, flow, found, begin):
    leaders, changed = list(flow.leader), False
    end = min(math.log(flow.size) + 25, LARGEST * math.log(10))
    while math.log(flow.size) < end and flow.steps < found["steps"] + 200:
        flow = enough_digits(flow, KNOWN)
        flow.step()
        changed = changed or flow.leader != leaders
    later = answer(system, flow, begin)
    found["beyond"] = {"t": later["t0"], "changed": changed, "difference": difference(found, later)}
    return found


def answer(system, flow, begin):
    t, x = arb(flow.t), flow.tokens()
    limit = {}
    for l in set(flow.leader):
        total = [acb(0)] * system.d
        for a in system.unstable:
            part = apply(system.proj[a], x[l])
            total = [p + (-system.mu[a] * t).exp() * q for p, q in zip(total, part, strict=True)]
        limit[l] = [v.real.mid() for v in total]
    leaders = [system.first[flow.leader[g]] for g in system.member]
    scale = max(abs(v) for p in limit.values() for v in p)
    shown, labels = [], []
    for g in system.member:
        p = limit[flow.leader[g]]
        for label, q in enumerate(shown):
            if all(abs(u - v) <= scale * arb(10) ** -25 for u, v in zip(p, q, strict=True)):
                labels.append(label)
                break
        else:
            labels.append(len(shown))
            shown.append(p)
    assert len(shown) == len(limit), "two leaders with one limit"
    return {
        "leaders": leaders,
        "labels": labels,
        "points": [[text(v, scale) for v in limit[flow.leader[g]]] for g in system.member],
        "t0": float(t),
        "late_changes": flow.late_changes,
        "steps": flow.steps,
        "smallest_gap": flow.smallest_gap(),
        "digits": flow.digits,
        "cpu": round(time.process_time() - begin, 2),
    }


def text(value, scale):
    """20 significant digits; what is zero up to the working precision is written as 0."""
    if abs(value) <= scale * arb(10) ** (-35):
        return "0"
    return value.str(20, radius=False)


# ----------------------------------------------------------------------------------------------
# Families
# ----------------------------------------------------------------------------------------------

C7 = [
    [0.2362413, 0.0599536, 0.40506019],
    [0.81321448, 0.49948705, 0.33754772],
    [0.2160645, 0.38505272, 0.14588075],
]
C8 = [
    [0.18608476, 0.34391026, 0.13905949],
    [0.35244288, 0.6694859, 0.39992145],
    [0.46685606, 0.17094454, 0.42092308],
]
C9 = [
    [0.92761287, 0.94333073, 0.3827744],
    [0.94333073, 0.59991396, 0.47825472],
    [0.3827744, 0.47825472, 0.46668605],
]

CLOSE = [
    (1.0, 0.9, -0.5), (1.2, 0.8, -0.5), (1.0, 0.7, -0.5), (1.0, 0.97, -0.5),
    (1.0, 0.9), (1.0, 0.7), (1.0, 0.97), (1.0, 0.9, 0.8),
]  # fmt: skip


def grid(array, step):
    """Rounded to multiples of a power of two, so that products are exact in double."""
    return np.round(np.asarray(array) / step) * step


def start(rng, n, d):
    kind = rng.integers(3)
    if kind == 0:
        return rng.uniform(-5, 5, (n, d))
    if kind == 1:
        return rng.uniform(-1, 1, (n, d))
    return rng.normal(size=(n, d))


def root(rng, d):
    """B with B^T B well inside the positive definite matrices, entries on a grid."""
    while True:
        B = grid(rng.uniform(-1, 1, (d, d)), 2.0**-8)
        if np.linalg.svd(B)[1].min() > 0.2:
            return B


def spectrum(rng, d):
    return np.concatenate([[rng.uniform(0.4, 1.5)], rng.uniform(-1, 1.5, d - 1)])


def oblique(rng, values):
    while True:
        S = rng.uniform(-1, 1, (len(values),) * 2)
        if np.linalg.cond(S) < 10:
            return S @ np.diag(values) @ np.linalg.inv(S)


def paranormal(rng, k):
    """lambda on a plane F, mu on a line G, exactly: V = lambda I + (mu - lambda) u w^T, w.u = 1."""
    lam, mu = grid(rng.uniform(0.5, 1.5), 1 / 8), 0.0
    mu = grid(rng.uniform(-0.9, 0.9) * lam, 1 / 8)
    if mu >= lam:
        mu = lam - 0.25
    if k % 2 == 0:
        return np.diag([lam, lam, mu])
    u, w = grid(rng.uniform(-1, 1, 2), 1 / 8), grid(rng.uniform(-1, 1, 2), 1 / 8)
    u, w = np.append(u, 1.0), np.append(w, 1.0 - u @ w)
    return lam * np.eye(3) + (mu - lam) * np.outer(u, w)


def pack(V, x0, Q=None, K=None, beta=1.0, mask=False):
    d = len(V)
    Q = np.eye(d) if Q is None else Q
    K = np.eye(d) if K is None else K
    return {
        "Q": np.asarray(Q, float).tolist(),
        "K": np.asarray(K, float).tolist(),
        "V": np.asarray(V, float).tolist(),
        "beta": float(beta),
        "mask": bool(mask),
        "x0": np.asarray(x0, float).tolist(),
    }


def f_identity(rng, k):
    d, n = 1 + k % 3, int(rng.integers(2, 9))
    return pack(np.eye(d), start(rng, n, d), beta=[1.0, 1.0, 1.0, 0.5, 2.0][k % 5])


def f_scaled_spd(rng, k):
    d, n = 1 + k % 3, int(rng.integers(2, 9))
    B = root(rng, d)
    return pack(grid(rng.uniform(0.4, 2), 1 / 64) * np.eye(d), start(rng, n, d), B, B)


def f_diagonal(rng, k):
    d, n = 2 + k % 2, int(rng.integers(3, 9))
    return pack(np.diag(spectrum(rng, d)), start(rng, n, d))


def f_nonnormal(rng, k):
    d, n = 2 + k % 2, int(rng.integers(3, 9))
    B = root(rng, d)
    return pack(oblique(rng, spectrum(rng, d)), start(rng, n, d), B, B)


def f_close(rng, k):
    values = CLOSE[k % len(CLOSE)]
    return pack(np.diag(values), start(rng, int(rng.integers(3, 9)), len(values)))


def f_c9(rng, k):
    return pack(C9, start(rng, int(rng.integers(3, 9)), 3))


def f_generic_m(rng, k):
    d, n = 2 + k % 2, int(rng.integers(3, 9))
    V = np.eye(d) if k % 4 < 2 else np.diag(spectrum(rng, d))
    return pack(V, start(rng, n, d), K=rng.uniform(-1, 1, (d, d)))


def f_paranormal(rng, k):
    B = root(rng, 3) if k % 3 else np.eye(3)
    return pack(paranormal(rng, k), start(rng, int(rng.integers(3, 9)), 3), B, B)


def f_complex(rng, k):
    """C7, C8, then a random real root above a pair with Re < 0 or Re > 0, then a pair on top."""
    n, kind = int(rng.integers(3, 9)), k % 6
    if kind < 2:
        return pack((C7, C8)[kind], start(rng, n, 3))
    w = rng.uniform(0.2, 1.5)
    if kind == 5:  # the pair has the largest real part: no theorem, often no Boolean limit
        a = rng.uniform(0.4, 1.0)
        return pack([[a, -w], [w, a]], start(rng, int(rng.integers(2, 5)), 2))
    a = rng.uniform(-0.8, -0.1) if kind == 2 else rng.uniform(0.1, 0.6)
    block = np.array([[rng.uniform(0.8, 1.4), 0, 0], [0, a, -w], [0, w, a]])
    if kind == 4:
        while True:
            S = rng.uniform(-1, 1, (3, 3))
            if np.linalg.cond(S) < 10:
                break
        block = S @ block @ np.linalg.inv(S)
    return pack(block, start(rng, n, 3))


def f_causal(rng, k):
    d, n = 1 + k % 3, int(rng.integers(2, 9))
    B, V = np.eye(d), np.eye(d)
    kind = k % 4
    if kind == 1:
        B = root(rng, d)
    if kind == 2:
        V = np.diag(spectrum(rng, d))
    if kind == 3:
        V, B = oblique(rng, spectrum(rng, d)), root(rng, d)
    return pack(V, start(rng, n, d), B, B, mask=True)


def f_mirror(rng, k):
    """Pairs mirrored in the first coordinate (and a token on the mirror) plus noise."""
    d, n = 2 + k % 2, int(rng.integers(3, 9))
    half = start(rng, (n + 1) // 2, d)
    other = half[: n // 2] * np.append(-1.0, np.ones(d - 1))
    if n % 2:
        half[-1, 0] = 0.0
    x0 = np.concatenate([half, other])
    noise = 10.0 ** -[2, 4, 6, 8, 10, 12, 13][k % 7]
    V = np.eye(d) if k % 3 else np.diag(spectrum(rng, d))
    return pack(V, x0 + noise * rng.normal(size=x0.shape))


def f_duplicates(rng, k):
    d, n = 1 + k % 3, int(rng.integers(3, 9))
    x0 = start(rng, n, d)
    for _ in range(1 + k % 2):
        a, b = rng.choice(n, 2, replace=False)
        x0[a] = x0[b]
    V = (np.eye(d), np.diag(spectrum(rng, d)))[k % 4 == 3]
    B = root(rng, d) if k % 2 else np.eye(d)
    return pack(V, x0, B, B)


def f_pair(rng, k):
    """B.3: (1, eps), (1, -eps) with V = Q = K = I; then other lengths, unequal eps, a third
    token.
    """
    eps, turn = (0.5, 0.3, 0.2)[k % 3], k // 3
    x0 = [[1.0, eps], [1.0, -eps]]
    if turn == 1:
        x0 = [[1.5, eps], [1.5, -eps]]
    if turn == 2:
        x0 = [[1.0, eps], [1.0, -eps - 0.0625]]
    if turn == 3:
        x0 = [[1.0, eps], [1.0, -eps], [-1.0, 0.125]]
    if turn >= 4:
        x0 = [
            [1.0, eps, 0.25 * float(rng.uniform(-1, 1))],
            [1.0, -eps, 0.25 * float(rng.uniform(-1, 1))],
        ]
    return pack(np.eye(len(x0[0])), x0)


FAMILIES = {
    "identity": (f_identity, 15, "V = I, M = I, d = 1, 2, 3; beta 1, 0.5 or 2"),
    "scaled_spd": (f_scaled_spd, 15, "V = c I, M = B^T B"),
    "diagonal": (f_diagonal, 15, "V diagonal, random spectrum with a positive eigenvalue, M = I"),
    "nonnormal": (f_nonnormal, 16, "V non-normal with real eigenvalues, M = B^T B"),
    "close": (f_close, 17, "close unstable eigenvalues, M = I"),
    "c9": (f_c9, 15, "the matrix C9, M = I"),
    "generic_m": (f_generic_m, 16, "M uniform in [-1, 1], not symmetric, V = I or diagonal"),
    "paranormal": (
        f_paranormal,
        15,
        "V = lambda on a plane F, smaller on a line G (odd numbers: oblique)",
    ),
    "complex": (
        f_complex,
        16,
        "V with complex pairs: C7, C8, random, also with positive real part",
    ),
    "causal": (f_causal, 15, "causal mask, several V and M"),
    "mirror": (f_mirror, 15, "mirror-symmetric data with noise 1e-2 .. 1e-13"),
    "duplicates": (f_duplicates, 15, "exact duplicates of tokens"),
    "pair": (f_pair, 15, "the pair of B.3 with eps 0.5, 0.3, 0.2 and relatives"),
}


def make(family, k):
    generator = FAMILIES[family][0]
    rng = np.random.default_rng([20230524, list(FAMILIES).index(family), k])
    return {"name": f"{family}-{k:03d}", "family": family, **generator(rng, k)}


# ----------------------------------------------------------------------------------------------
# Command line
# ----------------------------------------------------------------------------------------------


def load(path):
    if os.path.exists(path):
        with open(path) as file:
            return {"verification": {"systems": {}}, **json.load(file)}
    return {"systems": [], "open": [], "verification": {"systems": {}}}


def save(path, data):
    order = {family: q for q, family in enumerate(FAMILIES)}
    for part in ("systems", "open"):
        data[part].sort(key=lambda r: (order[r["family"]], r["name"]))
    data["description"] = (
        "Attention systems dx_i/dt = sum_j P_ij V x_j, P = softmax(beta x_i^T Q^T K x_j) (mask: j"
        " <= i) and their limits pi_F z_i(inf), z = exp(-tV) x, F = spectral subspace of V with"
        " positive real parts. Made by make_limits.py; see README.md."
    )
    data["families"] = {
        family: {
            "what": what,
            "decided": sum(r["family"] == family for r in data["systems"]),
            "open": sum(r["family"] == family for r in data["open"]),
        }
        for family, (_, _, what) in FAMILIES.items()
    }
    data["versions"] = {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "python-flint": flint.__version__,
    }
    data["settings"] = {
        "cpu_limit": CPU_LIMIT,
        "digits": DIGITS,
        "known": KNOWN,
        "trusted": TRUSTED,
    }
    data["verification"] = summary(data["verification"]["systems"])
    keys = ("description", "versions", "settings", "families", "verification", "systems", "open")
    lines = ["{"]
    for key in keys:
        value = data[key]
        if isinstance(value, list):
            body = ",\n".join("  " + json.dumps(r) for r in value)
            lines.append(f"{json.dumps(key)}: [\n{body}\n],")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)},")
    lines[-1] = lines[-1].rstrip(",")
    lines.append("}\n")
    with open(path + ".part", "w") as file:
        file.write("\n".join(lines))
    os.replace(path + ".part", path)


def build(args):
    data = load(args.out)
    families = args.family or list(FAMILIES)
    for family in families:
        quota = FAMILIES[family][1] if args.count is None else args.count
        known = {r["name"]: part for part in ("systems", "open") for r in data[part]}
        decided = k = 0
        if args.numbers:
            k, last, quota = args.numbers[0], args.numbers[1], math.inf
        else:
            last = 3 * quota
        while decided < quota and k < last:
            record = make(family, k)
            k += 1
            if record["name"] in known:
                decided += known[record["name"]] == "systems"
                continue
            found = decide(record, args.cpu)
            part = "systems" if "points" in found else "open"
            decided += part == "systems"
            data[part].append({**record, **found})
            save(args.out, data)
            shown = {q: v for q, v in found.items() if q not in ("points",)}
            print(
                record["name"],
                "n",
                len(record["x0"]),
                "d",
                len(record["V"]),
                part,
                shown,
                flush=True,
            )


def merge(args):
    data = load(args.out)
    for path in args.merge:
        known = {r["name"] for part in ("systems", "open") for r in data[part]}
        more = load(path)
        for part in ("systems", "open"):
            data[part] += [r for r in more[part] if r["name"] not in known]
        data["verification"]["systems"].update(more["verification"]["systems"])
    save(args.out, data)


def difference(one, two):
    p, q = (
        np.array([[Fraction(v) for v in row] for row in r["points"]], dtype=object)
        for r in (one, two)
    )
    scale = max(abs(v) for v in p.ravel())
    return float(max(abs(u - v) for u, v in zip(p.ravel(), q.ravel(), strict=True)) / scale)


def verify(args):
    """Decide stored systems again with other digits, another order and another tolerance, then go
    on.

    First those whose leaders changed late or that needed more digits, then others at random;
    with --quick the cheapest of every family first.
    """
    data = load(args.out)
    done = data["verification"]["systems"]
    rng = np.random.default_rng(args.seed)
    pool = [data["systems"][q] for q in rng.permutation(len(data["systems"]))]
    pool.sort(key=lambda r: r["late_changes"] == 0 and r["digits"] == DIGITS)
    if args.quick:
        pool.sort(key=lambda r: r["cpu"])
        rank = {}
        for r in pool:
            rank[r["name"]] = sum(r["family"] == name.split("-")[0] for name in rank)
        pool.sort(key=lambda r: rank[r["name"]])
    pool = [r for r in pool if r["name"] not in done and r["family"] in (args.family or FAMILIES)]
    for record in pool[: args.verify]:
        more = args.more_digits
        again = decide(record, 3 * args.cpu, DIGITS + more, KNOWN + more, 1.0, 6, beyond=True)
        check = {"decided": "points" in again, "digits": DIGITS + more}
        if check["decided"]:
            check["same_map"] = all(again[key] == record[key] for key in ("leaders", "labels"))
            check["difference"] = difference(record, again)
            check["t0"] = again["t0"]
            check["beyond"] = again["beyond"]
        done[record["name"]] = check
        save(args.out, data)
        print(record["name"], check, flush=True)
    print({key: value for key, value in data["verification"].items() if key != "systems"})


def summary(done):
    decided = [c for c in done.values() if c["decided"]]
    return {
        "what": (
            "decided again with other digits, order and tolerance, then integrated on until |x| is"
            " e^25 larger"
        ),
        "number": len(done),
        "not decided again": len(done) - len(decided),
        "other map": sum(not c["same_map"] for c in decided),
        "largest relative difference": max((c["difference"] for c in decided), default=0.0),
        "leaders changed beyond t0": sum(c["beyond"]["changed"] for c in decided),
        "largest change of a limit beyond t0": max(
            (c["beyond"]["difference"] for c in decided), default=0.0
        ),
        "systems": done,
    }


def selftest():
    import mpmath

    # one token: x = e^{tV} x0; here V = diag(1, -0.5)
    record = pack(np.diag([1.0, -0.5]), [[0.75, 0.5]])
    system = System(record)
    flow = Flow(system, 100)
    for _ in range(5):
        flow.step()
    x, t = flow.tokens()[0], arb(flow.t)
    print(
        "one token",
        float(abs(x[0] / (arb("0.75") * t.exp()) - 1)),
        float(abs(x[1] / (arb("0.5") * (-t / 2).exp()) - 1)),
    )
    # d = 1, tokens (-u, u): u' = u tanh(u^2), so the time is an integral over u
    system = System(pack(np.eye(1), [[-0.5], [0.5]]))
    flow = Flow(system, 100)
    while float(arb(flow.t)) < 3:
        flow.step()
    with mpmath.workdps(60):
        u = mpmath.mpf(flow.tokens()[1][0].str(70, radius=False))
        time_used = mpmath.quad(
            lambda v: 1 / (v * mpmath.tanh(v * v)), mpmath.linspace(mpmath.mpf("0.5"), u, 12)
        )
        print(
            "pair in d = 1",
            mpmath.nstr(time_used - mpmath.mpf(arb(flow.t).str(70, radius=False)), 5),
        )
    # limits in closed form: u' = u tanh(u^2) from u0 gives u e^{-t} -> c with
    # ln(c / u0) = - int_{u0^2}^inf dw / (w (e^{2w} - 1));  (-u, u) in d = 1 and the pair of B.3
    for u0, V, x0 in [
        (0.5, np.eye(1), [[-0.5], [0.5]]),
        (0.25, np.eye(1), [[-0.25], [0.25]]),
        (0.5, np.eye(2), [[1, -0.5], [1, 0.5]]),
        (0.2, np.eye(2), [[1, -0.2], [1, 0.2]]),
    ]:
        with mpmath.workdps(40):
            w0 = mpmath.mpf(u0) ** 2
            places = [w0, 2 * w0, 4 * w0, 16 * w0, 4, 16, 60, 120]
            c = u0 * mpmath.exp(-mpmath.quad(lambda w: 1 / (w * mpmath.expm1(2 * w)), places))
            mine = mpmath.mpf(decide(pack(V, x0))["points"][1][-1])
            print(
                "limit in closed form",
                mpmath.nstr(c, 20),
                "relative error",
                mpmath.nstr(mine / c - 1, 3),
            )
    for masked, wanted in ((True, 0.08), (False, 0.03)):
        compare_odefun(masked, wanted)


def compare_odefun(masked, wanted):
    """A small random system against mpmath.odefun."""
    import mpmath

    record = make("nonnormal", 2)
    record["mask"] = masked
    system = System(record)
    flow = Flow(system, 60)
    while float(arb(flow.t)) < wanted:
        flow.step()
    with mpmath.workdps(40):
        n, d = len(record["x0"]), len(record["V"])
        V, M = mpmath.matrix(record["V"]), mpmath.matrix(record["Q"]).T * mpmath.matrix(record["K"])

        def field(_, y):
            x, out = [mpmath.matrix(y[i * d : i * d + d]) for i in range(n)], []
            for i in range(n):
                w = [mpmath.exp((x[i].T * M * x[j])[0]) for j in range(i + 1 if masked else n)]
                mean = sum((v * y for v, y in zip(w, x, strict=False)), mpmath.zeros(d, 1)) / sum(w)
                out += list(V * mean)
            return out

        solve = mpmath.odefun(field, 0, [mpmath.mpf(v) for row in record["x0"] for v in row])
        T = mpmath.mpf(int(flow.t.p)) / int(flow.t.q)
        mine = [mpmath.mpf(v.str(50, radius=False)) for row in flow.tokens() for v in row]
        print(
            "odefun",
            mpmath.nstr(max(abs(a - b) for a, b in zip(mine, solve(T), strict=True)), 5),
            "t",
            mpmath.nstr(T, 5),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "limits.json")
    )
    parser.add_argument("--family", nargs="+", choices=list(FAMILIES))
    parser.add_argument(
        "--merge", nargs="+", help="add the systems of these files (made in parallel) to the output"
    )
    parser.add_argument("--count", type=int, help="decided systems wanted per family")
    parser.add_argument(
        "--numbers",
        type=int,
        nargs=2,
        metavar=("FIRST", "END"),
        help="these numbers of each family instead",
    )
    parser.add_argument("--cpu", type=float, default=CPU_LIMIT, help="seconds per system")
    parser.add_argument("--verify", type=int, help="decide this many stored systems again")
    parser.add_argument("--more-digits", type=int, default=37, help="for --verify; may be negative")
    parser.add_argument("--quick", action="store_true", help="for --verify: cheap systems first")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice for --verify")
    parser.add_argument("--selftest", action="store_true")
    args = parser.parse_args()
    if args.selftest:
        selftest()
    elif args.merge:
        merge(args)
    elif args.verify:
        verify(args)
    else:
        build(args)


if __name__ == "__main__":
    main()
