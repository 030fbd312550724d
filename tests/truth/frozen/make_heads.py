"""Make heads.json: small systems with several heads, V_h = v_h I, and their true limits, in
extended precision.

As make_limits.py, from which it takes FLINT's vectors and the search for zeros by subdivision;
nothing of attnlab.

    dx_i/dt = sum_h v_h sum_j P^h_ij x_j,    P^h_ij = softmax_j(x_i^T M_h x_j),    v_h > 0

1. Taylor series of the softmax flow, one row for each head and token. Every weight that is left out
    is watched by the Taylor polynomial of its gap.
2. When all rows are Boolean, and all tokens that lead somebody have the leaders of their own
    leaders, the frozen flow is x_i(s) = Y_i e^{vs} + s K_i + D_i. Each gap is a sum of six terms c
    s^p e^{sigma s}, with balls as coefficients. It is proved to stay above a growing margin: beyond
    some s* because its leading term dominates, on [0, s*] by subdivision.
3. Every answer is then followed: the softmax flow goes on until tokens are e^12 times larger, and
    leaders and limits must stay.

    python make_heads.py --out heads.json          all families, resumes where it stopped
    python make_heads.py --selftest
"""

import argparse
import json
import math
import os
import sys
import time

import flint
import numpy as np
from flint import arb, ctx, fmpq
from make_limits import (
    CHECK_ORDER,
    SIZE,
    ExponentialSum,
    Vector,
    _bits,
    _dot,
    _mul,
    _set,
    _short,
    _sub,
    _times_power,
    exact,
    grid,
    root,
    start,
    text,
)

CPU_LIMIT = 150.0
DIGITS = 44
MORE = 16
KNOWN = 36  # digits after the point that are carried for every token
TRUSTED = 22  # of these the proof relies on so many
LARGEST = 60  # log10 of the largest token
NEAREST = 4
FURTHER = 12.0  # log of the growth for which the softmax flow is followed beyond the decision


class System:
    """Exact rational data; equal tokens are merged with a multiplicity."""

    def __init__(self, record):
        self.v = [exact(v) for v in record.get("v", [])]
        self.total = sum(self.v, fmpq(0))
        self.is_causal = bool(record.get("mask"))
        self.M = [[[exact(m) for m in row] for row in M] for M in record["M"]]
        self.start = [tuple(exact(c) for c in row) for row in record["x0"]]
        self.H, self.d = len(self.M), len(self.start[0])
        one = [[fmpq(int(a == b)) for b in range(self.d)] for a in range(self.d)]
        self.V = (
            [[[exact(c) for c in row] for row in V] for V in record["V"]]
            if "V" in record
            else [[[v * c for c in row] for row in one] for v in self.v]
        )
        self.first, seen, self.member = [], {}, []
        for i, token in enumerate(self.start):
            if token not in seen or (self.is_causal and len(self.first) > 1):
                seen[token] = len(self.first)
                self.first.append(i)
            self.member.append(seen[token])
        self.n = len(self.first)
        self.count = [self.member.count(g) for g in range(self.n)]


class Flow:
    """One trajectory. The variable of a series is (t - t_now) / guess."""

    def __init__(self, system, digits, order_factor=1.15, slack=0):
        self.system, self.digits, self.order_factor, self.slack = (
            system,
            digits,
            order_factor,
            slack,
        )
        self.prec = int(digits * math.log2(10)) + 64
        ctx.prec = self.prec
        self.order = int(order_factor * digits)
        self.log_tol = -(digits + slack) * math.log(10)
        n, d, H = self.n, self.d, self.H = system.n, system.d, system.H
        N = self.order + 1
        self.rows = [(h, i) for h in range(H) for i in range(n)]
        self.x = [Vector(N * d) for _ in range(n)]  # entry l d + a
        self.r = [Vector(N * n) for _ in range(d)]  # again, by component, token reversed
        self.w = {row: Vector(N * d) for row in self.rows}  # M_h x_j, component reversed
        self.s, self.z = ({row: Vector(N) for row in self.rows} for _ in range(2))
        self.e = {row: Vector(N * n) for row in self.rows}  # weights, entry l n + j
        self.u = {row: Vector(N * d) for row in self.rows}  # the mean token seen by the row
        pairs = [(h, i, j) for h, i in self.rows for j in self.visible(i)]
        self.g, self.dg = ({pair: Vector(N) for pair in pairs} for _ in range(2))
        self.h, self.tmp, self.one = Vector(N), Vector(2), Vector(1)
        self.one.put(0, arb(1))
        self.number, self.inverse = Vector(N + 2), Vector(N + 2)
        for k in range(1, N + 1):
            self.number.put(k, arb(k))
            self.inverse.put(k, arb(1) / k)
        self.M = []
        for h in range(H):
            M = Vector(d * d)
            for a in range(d):
                for b in range(d):
                    M.put(a * d + b, arb(system.M[h][a][b]))
            self.M.append(M)
        for i in range(n):
            for a in range(d):
                self.x[i].put(a, arb(system.start[system.first[i]][a]))
        self.t, self.guess = fmpq(0), fmpq(1, 64)
        self.threshold = digits * math.log(10) + 20
        self.leader = None
        self.steps = self.late_changes = 0
        self.begin_step()

    def visible(self, i):
        """The tokens that row i sees."""
        return range(i + 1) if self.system.is_causal else range(self.n)

    def with_digits(self, digits):
        state = self.tokens()
        new = Flow(self.system, digits, self.order_factor, self.slack)
        for i in range(self.n):
            for a in range(self.d):
                new.x[i].put(a, state[i][a])
        new.t, new.guess, new.steps = self.t, self.guess, self.steps
        new.begin_step()
        new.late_changes = self.late_changes
        return new

    def begin_step(self):
        """Order 0 of all that follows from the tokens, and the leaders."""
        n, d, prec = self.n, self.d, self.prec
        for j in range(n):
            for b in range(d):
                _set(self.r[b].at(n - 1 - j), self.x[j].at(b))
                for h in range(self.H):
                    _dot(
                        self.w[h, j].at(d - 1 - b),
                        None,
                        0,
                        self.M[h].at(b * d),
                        1,
                        self.x[j].at(0),
                        1,
                        d,
                        prec,
                    )
        old, self.leader, self.gap = self.leader, {}, {}
        self.size = max(abs(self.x[i].double(a)) for i in range(n) for a in range(d))
        for h, i in self.rows:
            best = 0
            for j in self.visible(i):
                _dot(
                    self.g[h, i, j].at(0),
                    None,
                    0,
                    self.x[i].at(0),
                    1,
                    self.w[h, j].at(d - 1),
                    -1,
                    d,
                    prec,
                )
                _sub(self.tmp.at(0), self.g[h, i, j].at(0), self.g[h, i, best].at(0), prec, NEAREST)
                if self.tmp.double(0) > 0:
                    best = j
            self.leader[h, i] = best
            _set(self.s[h, i].at(0), self.g[h, i, best].at(0))
            for j in self.visible(i):
                _sub(
                    self.g[h, i, j].at(0), self.g[h, i, j].at(0), self.s[h, i].at(0), prec, NEAREST
                )
                if j != best:
                    self.gap[h, i, j] = -self.g[h, i, j].double(0)
        if old and math.log(self.size) > 8:
            self.late_changes += sum(old[row] != self.leader[row] for row in self.rows)

    def series(self):
        """All Taylor coefficients at the present point."""
        n, d, prec, N, S = self.n, self.d, self.prec, self.order, SIZE
        x, r, w, g, dg, s, e, z, u = (
            self.x,
            self.r,
            self.w,
            self.g,
            self.dg,
            self.s,
            self.e,
            self.z,
            self.u,
        )
        number, inverse, leader, tmp = self.number, self.inverse, self.leader, self.tmp.base
        guess = arb(self.guess)
        speed = [Vector(self.H * d) for _ in range(d)]
        for a in range(d):
            for h in range(self.H):
                for b in range(d):
                    speed[a].put(h * d + b, arb(self.system.V[h][a][b]) * guess)
        self.active = {
            (h, i): [
                j
                for j in self.visible(i)
                if j != leader[h, i] and self.gap[h, i, j] < 1.3 * self.threshold
            ]
            for h, i in self.rows
        }
        nil, ratio = Vector(1), {row: Vector(1) for row in self.rows}
        for row in self.rows:
            if not self.active[row]:
                continue
            lead = leader[row]
            total = arb(self.system.count[lead])
            for q in range((N + 1) * n):
                _set(e[row].at(q), nil.base)
            e[row].put(lead, total)
            for j in self.active[row]:
                weight = self.system.count[j] * g[(*row, j)].get(0).exp().mid()
                total = (total + weight).mid()
                e[row].put(j, weight)
            z[row].put(0, total)
            ratio[row].put(0, (1 / total).mid())
        soft = [row for row in self.rows if self.active[row]]
        view = {row: u[row] if self.active[row] else x[leader[row]] for row in self.rows}
        pairs = [(h, i, j) for h, i in self.rows for j in self.visible(i) if j != leader[h, i]]
        hot = [(h, i, j) for h, i, j in pairs if j in self.active[h, i]]
        seen = Vector(self.H * d)
        for k in range(N):
            if k > 0:
                for h, i in soft if k >= CHECK_ORDER else self.rows:
                    b = w[h, leader[h, i]].base + S * (k * d + d - 1)
                    _dot(s[h, i].base + S * k, None, 0, x[i].base, 1, b, -1, (k + 1) * d, prec)
                for h, i, j in hot if k >= CHECK_ORDER else pairs:
                    b = w[h, j].base + S * (k * d + d - 1)
                    _dot(
                        g[h, i, j].base + S * k,
                        s[h, i].base + S * k,
                        1,
                        x[i].base,
                        1,
                        b,
                        -1,
                        (k + 1) * d,
                        prec,
                    )
            for row in soft:
                base = e[row].base
                if k > 0:
                    for j in self.active[row]:
                        of = dg[(*row, j)].base
                        _mul(of + S * k, g[(*row, j)].base + S * k, number.base + S * k, prec)
                        _dot(tmp, None, 1, of + S, 1, base + S * ((k - 1) * n + j), -n, k, prec)
                        _mul(base + S * (k * n + j), tmp, inverse.base + S * k, prec)
                    _dot(
                        z[row].base + S * k,
                        None,
                        0,
                        base + S * (k * n),
                        1,
                        self.one.base,
                        0,
                        n,
                        prec,
                    )
                for a in range(d):
                    at = u[row].base + S * (k * d + a)
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
                            z[row].base + S,
                            1,
                            u[row].base + S * ((k - 1) * d + a),
                            -d,
                            k,
                            prec,
                        )
                    _mul(at, tmp, ratio[row].base, prec)
            for i in range(n):
                for h in range(self.H):
                    for b in range(d):
                        _set(seen.at(h * d + b), view[h, i].base + S * (k * d + b))
                for a in range(d):
                    at = x[i].base + S * ((k + 1) * d + a)
                    _dot(tmp, None, 0, speed[a].base, 1, seen.base, 1, self.H * d, prec)
                    _mul(at, tmp, inverse.base + S * (k + 1), prec)
                    _set(r[a].base + S * ((k + 1) * n + n - 1 - i), at)
                new = x[i].base + S * (k + 1) * d
                for h in range(self.H):
                    for b in range(d):
                        _dot(
                            w[h, i].base + S * ((k + 1) * d + d - 1 - b),
                            None,
                            0,
                            self.M[h].base + S * b * d,
                            1,
                            new,
                            1,
                            d,
                            prec,
                        )
        self.inactive = [pair for pair in pairs if pair[2] not in self.active[pair[:2]]]
        self.fastest = max((abs(g[pair].double(1)) for pair in hot), default=0.0)

    def step_ratio(self):
        """log of the step, in units of the guess: by the last coefficients, and |slope of an
        exponent| h <= 0.4 order.
        """
        best = math.log(0.4 * self.order / self.fastest) if self.fastest > 0 else math.inf
        for k in (self.order - 1, self.order):
            top = max(_bits(v.at(k * self.d + a)) for v in self.x for a in range(self.d))
            if top > -(10**15):
                best = min(best, (self.log_tol + math.log(self.size) - top * math.log(2)) / k)
        return min(best, math.log(50.0))

    def largest_safe(self, log_ratio):
        """Shrink the step until every weight that was left out stays negligible during it."""
        if not self.inactive:
            return log_ratio
        K = np.arange(CHECK_ORDER)
        first = np.array([self.gap[pair] for pair in self.inactive])
        c = np.array(
            [
                [1.0, *(self.g[pair].double(k) / self.gap[pair] for k in range(1, CHECK_ORDER))]
                for pair in self.inactive
            ]
        )
        if not np.all(np.isfinite(c)):
            return None
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
        while True:
            self.series()
            ratio = self.largest_safe(self.step_ratio())
            if ratio is not None:
                break
            self.guess /= 1000
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
        self.begin_step()

    def tokens(self):
        return [[self.x[i].get(a) for a in range(self.d)] for i in range(self.n)]

    def smallest_gap(self):
        return min(self.gap.values(), default=math.inf)


# ----------------------------------------------------------------------------------------------
# The frozen flow
# ----------------------------------------------------------------------------------------------


class PolynomialSum(ExponentialSum):
    """f(s) = sum c s^p e^{m v s / 2}, terms (c, p, m), c real balls; m in 0, 1, 2, 4. Subdivision
    is inherited.
    """

    def __init__(self, terms, v):
        self.terms = [(c, p, m) for c, p, m in terms if not c.is_zero()]
        self.half = arb(v) / 2
        self.top = max(m for _, _, m in self.terms)

    def stays_positive(self):
        m0, p0 = max((m, p) for _, p, m in self.terms)
        lead = sum((c for c, p, m in self.terms if (m, p) == (m0, p0)), arb(0))
        rest = [(abs(c), p, m) for c, p, m in self.terms if (m, p) != (m0, p0) and not c > 0]
        if not lead > 0:
            for s in (2.0**k for k in range(-10, 12)):
                if self.value(arb(s)) < 0:
                    return "crosses", s
            return "unknown", None
        star = arb(1) / 64
        for _ in range(60):
            # each ratio s^{p - p0} e^{-(m0 - m) v s / 2} falls beyond (p - p0) / rate
            falls = all(p <= p0 or star * (m0 - m) * self.half > p - p0 for _, p, m in rest)
            if (
                falls
                and sum(
                    (
                        c * star ** (p - p0) * (-(m0 - m) * self.half * star).exp()
                        for c, p, m in rest
                    ),
                    arb(0),
                )
                < lead / 2
            ):
                return self.subdivide(star)
            star *= 2
        return "unknown", None

    def value(self, s):
        return sum(
            (c * s**p * ((m - self.top) * self.half * s).exp() for c, p, m in self.terms), arb(0)
        )

    def slope(self, s):
        total = arb(0)
        for c, p, m in self.terms:
            rate = (m - self.top) * self.half
            total += c * (rate * s).exp() * (rate * s**p + (p * s ** (p - 1) if p else 0))
        return total


def product(u, M, w):
    return sum(
        (p * q * r for p, row in zip(u, M, strict=True) for q, r in zip(row, w, strict=True)),
        arb(0),
    )


def classes(flow):
    """For each token the tuple of its leaders; None where some leader's leaders are not its own."""
    tuples = [tuple(flow.leader[h, i] for h in range(flow.H)) for i in range(flow.n)]
    for a in {b for one in tuples for b in one}:
        if any(tuples[b] != tuples[a] for b in tuples[a]):
            return None
    return tuples


def parts(system, flow, tuples, radius=True):
    """(Y, K, D, kind): kind[i] says how much of v goes to which class, so that equal kinds have
    equal Y.
    """
    x, n, d = flow.tokens(), flow.n, flow.d
    trust = arb(10) ** -TRUSTED
    v, total = [arb(one) for one in system.v], arb(system.total)

    def blurred(p, size):
        return arb(p.mid(), trust * size) if radius else p

    X = {}
    for a in {b for one in tuples for b in one}:
        X[tuples[a]] = [
            sum((v[h] * x[b][c] for h, b in enumerate(tuples[a])), arb(0)) / total for c in range(d)
        ]
    of = [tuple(tuples[b] for b in tuples[i]) for i in range(n)]
    shares = [
        {c: sum((system.v[h] for h in range(flow.H) if one[h] == c), fmpq(0)) for c in one}
        for one in of
    ]
    kind = [tuple(sorted((c, (int(w.p), int(w.q))) for c, w in share.items())) for share in shares]
    Y, K, D = [], [], []
    for i in range(n):
        y = [
            sum(
                (arb(w) * X[c][a] for c, w in sorted(shares[i].items(), key=lambda item: item[0])),
                arb(0),
            )
            / total
            for a in range(d)
        ]
        k = [
            sum(
                (
                    v[h] * (x[b][a] - X[c][a])
                    for h, (b, c) in enumerate(zip(tuples[i], of[i], strict=True))
                ),
                arb(0),
            )
            for a in range(d)
        ]
        if tuples[i] in X and of[i] == (tuples[i],) * flow.H:
            k = [arb(0)] * d
        else:
            k = [blurred(p, 1 + abs(p)) for p in k]
        Y.append([blurred(p, flow.size) for p in y])
        D.append([blurred(p - q, 1 + abs(p - q)) for p, q in zip(x[i], y, strict=True)])
        K.append(k)
    return Y, K, D, kind


def frozen_verdict(system, flow, first=None):
    """As in make_limits.py: a verdict, the place of a crossing, the pair to begin with next
    time.
    """
    tuples = classes(flow)
    margin = 116 + 4 * math.log(1 + flow.size)
    if tuples is None or flow.smallest_gap() < margin:
        return "unknown", None, None
    Y, K, D, kind = parts(system, flow, tuples)
    pairs = sorted(flow.gap, key=lambda pair: pair != first)
    for h, i, k in pairs:
        M, l = [[arb(m) for m in row] for row in system.M[h]], flow.leader[h, i]
        zero = [arb(0)] * flow.d
        dY = zero if kind[l] == kind[k] else [p - q for p, q in zip(Y[l], Y[k], strict=True)]
        dK, dD = ([p - q for p, q in zip(one[l], one[k], strict=True)] for one in (K, D))
        terms = [
            (product(Y[i], M, dY), 0, 4),
            (product(Y[i], M, dK) + product(K[i], M, dY), 1, 2),
            (product(Y[i], M, dD) + product(D[i], M, dY), 0, 2),
            (product(K[i], M, dK), 2, 0),
            (product(K[i], M, dD) + product(D[i], M, dK), 1, 0),
            (product(D[i], M, dD), 0, 0),
            (arb(-margin), 0, 1),
        ]
        verdict, when = PolynomialSum(terms, system.total).stays_positive()
        if verdict != "yes":
            return verdict, when, (h, i, k)
    return "yes", None, None


# ----------------------------------------------------------------------------------------------
# Decide one system
# ----------------------------------------------------------------------------------------------


def enough_digits(flow):
    while KNOWN + math.log10(flow.size + 1) > flow.digits:
        flow = flow.with_digits(flow.digits + MORE)
    return flow


def decide(record, cpu_limit=CPU_LIMIT, digits=DIGITS, further=FURTHER, order_factor=1.15, slack=0):
    begin = time.process_time()
    system = System(record)
    flow = Flow(system, digits, order_factor, slack)
    tried, next_try, culprit = None, 0.0, None
    while True:
        now = float(arb(flow.t))
        if tried != flow.leader:
            next_try = min(next_try, now)
        if flow.smallest_gap() > 100 and now >= next_try:
            verdict, when, culprit = frozen_verdict(system, flow, culprit)
            tried, next_try = dict(flow.leader), now + 0.5 / float(arb(system.total))
            if verdict == "yes":
                return follow(system, flow, answer(system, flow, begin), further)
            if verdict == "crosses":
                next_try = now + when + 0.25 / float(arb(system.total))
        reason = None
        if math.log10(flow.size + 1) > LARGEST:
            reason = "precision"
        if time.process_time() - begin > cpu_limit:
            reason = "cpu"
        if reason:
            return {
                "reason": reason,
                "t": now,
                "digits": flow.digits,
                "smallest_gap": flow.smallest_gap(),
                "log_size": math.log(flow.size),
                "late_changes": flow.late_changes,
                "steps": flow.steps,
                "cpu": round(time.process_time() - begin, 2),
            }
        flow = enough_digits(flow)
        flow.step()


def answer(system, flow, begin):
    tuples = classes(flow)
    Y, _, _, kind = parts(system, flow, tuples, radius=False)
    unwound = (-arb(system.total) * arb(flow.t)).exp()
    points = [[(unwound * c).mid() for c in Y[g]] for g in range(flow.n)]
    scale = max(abs(v) for p in points for v in p)
    shown, labels = [], []
    for g in system.member:
        for label, other in enumerate(shown):
            if kind[other] == kind[g]:
                labels.append(label)
                break
        else:
            labels.append(len(shown))
            assert all(
                any(
                    abs(p - q) > scale * arb(10) ** -15
                    for p, q in zip(points[g], points[o], strict=True)
                )
                for o in shown
            )
            shown.append(g)
    return {
        "leaders": [
            [system.first[flow.leader[h, g]] for g in system.member] for h in range(flow.H)
        ],
        "labels": labels,
        "classes": len({tuples[a] for one in tuples for a in one}),
        "points": [[text(v, scale) for v in points[g]] for g in system.member],
        "t0": float(arb(flow.t)),
        "log_size": math.log(flow.size),
        "late_changes": flow.late_changes,
        "steps": flow.steps,
        "smallest_gap": flow.smallest_gap(),
        "digits": flow.digits,
        "cpu": round(time.process_time() - begin, 2),
    }


def follow(system, flow, found, further):
    """Integrate on, and compare."""
    end, leaders, changed, before = (
        math.log(flow.size) + further,
        dict(flow.leader),
        False,
        flow.steps,
    )
    while math.log(flow.size) < end and flow.steps < before + 150:
        flow = enough_digits(flow)
        flow.step()
        changed = changed or flow.leader != leaders
    unwound = (-arb(system.total) * arb(flow.t)).exp()
    there = [[float(arb(v)) for v in row] for row in found["points"]]
    apart = max(
        abs(float(unwound * c) - there[i][a])
        for i, g in enumerate(system.member)
        for a, c in enumerate(flow.tokens()[g])
    )
    found["beyond"] = {"t": float(arb(flow.t)), "changed": changed, "apart": apart}
    return found


# ----------------------------------------------------------------------------------------------
# Families
# ----------------------------------------------------------------------------------------------


def pack(M, v, x0):
    return {
        "M": np.asarray(M, float).tolist(),
        "v": np.asarray(v, float).tolist(),
        "x0": np.asarray(x0, float).tolist(),
    }


def _spd(rng, H, d):
    return [grid(B.T @ B, 2.0**-16) for B in (root(rng, d) for _ in range(H))]


def _generic(rng, H, d):
    return [grid(rng.uniform(-1, 1, (d, d)), 2.0**-12) for _ in range(H)]


def f_spd(rng, k):
    H, d, n = 2 + k % 3, 1 + k % 3, int(rng.integers(4, 13))
    return pack(_spd(rng, H, d), np.ones(H), start(rng, n, d))


def f_generic(rng, k):
    H, d, n = 2 + k % 5, 2 + k % 2, int(rng.integers(4, 11))
    return pack(_generic(rng, H, d), np.ones(H), start(rng, n, d))


def f_unequal(rng, k):
    H, d, n = 2 + k % 2, 2 + k % 2, int(rng.integers(4, 11))
    M = _spd(rng, H, d) if k % 2 else _generic(rng, H, d)
    return pack(M, rng.uniform(0.1, 1.5, H), start(rng, n, d))


def f_late(rng, k):
    """One head with nearly all of the value: the map has eigenvalues just below v, and leaders
    change late.
    """
    d, n = 2 + k % 2, int(rng.integers(6, 11))
    M = _spd(rng, 2, d) if k % 2 else [np.eye(d), *_spd(rng, 1, d)]
    return pack(M, [1.0, [0.05, 0.1, 0.2][k % 3]], start(rng, n, d))


def f_mirror(rng, k):
    """Pairs mirrored in the first coordinate, with noise; scores that keep the mirror."""
    d, n, H = 2, int(rng.integers(4, 9)), 2
    half = start(rng, (n + 1) // 2, d)
    x0 = np.concatenate([half, half * [-1.0, 1.0]])
    M = [np.diag(grid(rng.uniform(0.3, 2, d), 1 / 64)) for _ in range(H)]
    noise = 10.0 ** -[2, 4, 6, 8, 2, 4, 9, 10, 11, 12][k]
    return pack(M, [1.0, 1.0 if k % 2 else 0.5], x0 + noise * rng.normal(size=x0.shape))


def f_duplicates(rng, k):
    d, n, H = 2, int(rng.integers(5, 10)), 2 + k % 2
    x0 = start(rng, n, d)
    for _ in range(1 + k % 2):
        a, b = rng.choice(n, 2, replace=False)
        x0[a] = x0[b]
    return pack(_spd(rng, H, d) if k % 2 else _generic(rng, H, d), np.ones(H), x0)


def f_nearly_one(rng, k):
    """Scores of the second head differ little from those of the first: near ties between the heads'
    leaders.
    """
    d, n = 2, int(rng.integers(5, 10))
    one = _spd(rng, 1, d)[0]
    return pack(
        [one, one + grid(rng.uniform(-1, 1, (d, d)), 2.0**-12) * [0.1, 0.01, 0.001][k % 3]],
        [1.0, 1.0],
        start(rng, n, d),
    )


def f_thirty(rng, k):
    d = 2 + k % 2 if k < 4 else 2
    return pack(_spd(rng, 2, d), [1.0, 1.0 if k % 2 else 0.5], start(rng, 30, d))


FAMILIES = {
    "spd": (f_spd, 12, "M_h = B^T B, equal v_h, 2 to 4 heads, d = 1, 2, 3"),
    "generic": (f_generic, 10, "M_h uniform in [-1, 1], 2 to 6 heads"),
    "unequal": (f_unequal, 8, "unequal v_h"),
    "late": (f_late, 9, "one head with nearly all of the value"),
    "mirror": (f_mirror, 10, "mirrored pairs with noise 1e-2 .. 1e-12"),
    "duplicates": (f_duplicates, 4, "exact duplicates of tokens"),
    "nearly_one": (f_nearly_one, 5, "two heads with nearly equal scores"),
    "thirty": (f_thirty, 7, "30 tokens, two heads"),
}


def make(family, k):
    rng = np.random.default_rng([20261119, list(FAMILIES).index(family), k])
    return {"name": f"{family}-{k:03d}", "family": family, **FAMILIES[family][0](rng, k)}


def load(path):
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return {"systems": [], "open": []}


def save(path, data):
    order = {family: q for q, family in enumerate(FAMILIES)}
    for part in ("systems", "open"):
        data[part].sort(key=lambda r: (order[r["family"]], r["name"]))
    data["description"] = (
        "Systems dx_i/dt = sum_h v_h sum_j P^h_ij x_j, P^h = softmax(x_i^T M_h x_j), and their"
        " limits z_i(inf), z = exp(-vt) x, v = sum v_h. Made by make_heads.py; see README.md."
    )
    data["families"] = {
        family: {
            "what": what,
            **{
                part: sum(r["family"] == family for r in data[part]) for part in ("systems", "open")
            },
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
        "followed": FURTHER,
    }
    lines = ["{"]
    for key in ("description", "versions", "settings", "families", "systems", "open"):
        value = data[key]
        body = (
            "[\n" + ",\n".join("  " + json.dumps(r) for r in value) + "\n]"
            if isinstance(value, list)
            else json.dumps(value)
        )
        lines.append(f"{json.dumps(key)}: {body},")
    lines[-1] = lines[-1].rstrip(",")
    lines.append("}\n")
    with open(path + ".part", "w") as file:
        file.write("\n".join(lines))
    os.replace(path + ".part", path)


def build(args):
    data = load(args.out)
    for family in args.family or list(FAMILIES):
        quota = FAMILIES[family][1] if args.count is None else args.count
        known = {r["name"] for part in ("systems", "open") for r in data[part]}
        for k in range(quota):
            record = make(family, k)
            if record["name"] in known:
                continue
            found = decide(record, args.cpu)
            data["systems" if "points" in found else "open"].append({**record, **found})
            save(args.out, data)
            shown = {q: v for q, v in found.items() if q not in ("points", "leaders")}
            print(
                record["name"],
                "H",
                len(record["v"]),
                "n",
                len(record["x0"]),
                "d",
                len(record["x0"][0]),
                shown,
                flush=True,
            )


def selftest():
    """Against one head twice (the sum of the v_h), and against mpmath.odefun."""
    import make_limits

    rng = np.random.default_rng(0)
    x0 = rng.uniform(-2, 2, (4, 2))
    B = root(rng, 2)
    M = grid(B.T @ B, 2.0**-16)
    two = decide(pack([M, M], [0.75, 0.5], x0))
    one = make_limits.decide(make_limits.pack(1.25 * np.eye(2), x0, K=M))
    apart = max(
        abs(float(p) - float(q))
        for a, b in zip(two["points"], one["points"], strict=True)
        for p, q in zip(a, b, strict=True)
    )
    print(
        "two equal heads and one",
        two["labels"] == one["labels"],
        two["leaders"][0] == one["leaders"],
        apart,
    )
    import mpmath

    record = make("unequal", 0)
    system = System(record)
    flow = Flow(system, DIGITS)
    while float(arb(flow.t)) < 0.02:
        flow.step()
    with mpmath.workdps(36):
        n, d = len(record["x0"]), len(record["x0"][0])
        scores = [mpmath.matrix(M) for M in record["M"]]

        def field(_, y):
            x, out = [mpmath.matrix(y[i * d : i * d + d]) for i in range(n)], []
            for i in range(n):
                total = mpmath.zeros(d, 1)
                for v, M in zip(record["v"], scores, strict=True):
                    weights = [mpmath.exp((x[i].T * M * x[j])[0]) for j in range(n)]
                    total += (
                        v
                        * sum((w * y for w, y in zip(weights, x, strict=True)), mpmath.zeros(d, 1))
                        / sum(weights)
                    )
                out += list(total)
            return out

        solve = mpmath.odefun(field, 0, [mpmath.mpf(v) for row in record["x0"] for v in row])
        T = mpmath.mpf(int(flow.t.p)) / int(flow.t.q)
        mine = [mpmath.mpf(v.str(35, radius=False)) for row in flow.tokens() for v in row]
        print(
            "odefun",
            mpmath.nstr(max(abs(a - b) for a, b in zip(mine, solve(T), strict=True)), 5),
            "t",
            mpmath.nstr(T, 5),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "heads.json")
    )
    parser.add_argument("--family", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--count", type=int, help="systems for each family")
    parser.add_argument("--cpu", type=float, default=CPU_LIMIT, help="seconds per system")
    parser.add_argument("--selftest", action="store_true")
    args = parser.parse_args()
    if args.selftest:
        selftest()
    else:
        build(args)


if __name__ == "__main__":
    main()
