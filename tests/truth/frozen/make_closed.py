"""Make closed.json: small systems whose flow has powers of the time in its closed form, followed in
extended precision.

Several heads under the causal mask, heads with their own V_h, diagonal or with a diagonal sum, one
head whose V has Jordan blocks; and residual layers with several heads, V_h = v_h I, which need no
integrator. As in make_groups.py nothing is proved: the Taylor integrator of make_heads.py takes the
tokens with fifty digits until they are e^34 times larger. At some late times the leaders of all heads
and z = e^{-tW} x, W = sum V_h, along the growing coordinates are written down. What is certified must
say the same at these times.

Nothing is imported from attnlab. Needs numpy and python-flint.

    python make_closed.py --out closed.json         resumes where it stopped
    python make_closed.py --family causal --count 4
"""

import argparse
import json
import math
import os
import time

import numpy as np
from flint import arb, ctx
from make_heads import Flow, System
from make_limits import grid, root, start, text

CPU_LIMIT = 25.0
DIGITS, MORE, KNOWN = 50, 16, 32
LOGS = (9.0, 14.0, 20.0, 28.0, 34.0)
"""log max|x| from which on leaders and tokens are written down."""


def scores(rng, k, H, d):
    if k % 3 == 0:
        return [grid(B.T @ B, 2.0**-16) for B in (root(rng, d) for _ in range(H))]
    return [grid(rng.uniform(-1, 1, (d, d)) + (k % 3 - 1) * np.eye(d), 2.0**-12) for _ in range(H)]


def f_causal(rng, k):
    """V_h = v_h I: equal, unequal, nearly equal, one of them small or negative."""
    H, d, n = 2 + k % 2, 1 + k % 3, int(rng.integers(3, 9))
    v = [
        np.ones(H),
        rng.uniform(0.2, 1.5, H),
        1.0 + 2.0**-20 * np.arange(H),
        np.append(np.ones(H - 1), 0.1),
        np.append(np.ones(H - 1), -0.2),
    ][k % 5]
    x0 = start(rng, n, d)
    if k % 4 == 3:
        x0[1] = x0[0]  # two equal tokens at the start, and later ones
        x0[-1] = x0[-2]
    return {"V": [one * np.eye(d) for one in v], "M": scores(rng, k, H, d), "x0": x0, "mask": True}


def f_own(rng, k):
    """Diagonal V_h: positive, with negative entries, nearly a multiple of I, with zeros."""
    H, d, n = 2 + k % 2, 2 + k % 2, int(rng.integers(3, 9))
    V = [
        rng.uniform(0.2, 1.5, (H, d)),
        rng.uniform(-0.4, 1.2, (H, d)),
        1.0 + 1e-3 * rng.uniform(-1, 1, (H, d)),
        grid(rng.uniform(0.3, 1.2, (H, d)), 0.25) - [[0.25]],
    ][k % 4]
    V[:, 0] += 0.3
    return {"V": [np.diag(one) for one in V], "M": scores(rng, k, H, d), "x0": start(rng, n, d)}


def f_both(rng, k):
    """Diagonal V_h under the causal mask."""
    return {**f_own(rng, k), "mask": True}


def f_blocks(rng, k):
    """V = D + N: one block, strong or weak coupling, two blocks, a block of three, a shrinking
    one.
    """
    V = [
        [[1, 1], [0, 1]],
        [[1, 0.25], [0, 1]],
        [[1, 0.5, 0], [0, 1, 0], [0, 0, 0.5]],
        [[0.5, 1, 0], [0, 0.5, 1], [0, 0, 0.5]],
        [[1, 0, 0], [0, -0.5, 1], [0, 0, -0.5]],
        [[1, -1], [0, 1]],
        [[1, 0, 0], [0, 0, 1], [0, 0, 0]],
    ][k % 7]
    V = np.array(V, float)
    return {
        "V": [V],
        "M": scores(rng, k, 1, len(V)),
        "x0": start(rng, int(rng.integers(3, 9)), len(V)),
        **({"mask": True} if k % 5 == 4 else {}),
    }


def f_mirror(rng, k):
    """Pairs mirrored in the first coordinate, with noise; scores that keep the mirror."""
    half = start(rng, int(rng.integers(2, 4)), 2)
    x0 = np.concatenate([half, half * [-1.0, 1.0]])
    x0 = x0 + 10.0 ** -[2, 4, 6, 8, 10, 12][k % 6] * rng.normal(size=x0.shape)
    M = [np.diag(grid(rng.uniform(0.3, 2, 2), 1 / 64)) for _ in range(2)]
    V = [np.diag([1.0, 0.5]), np.diag([0.5, 0.75])]
    return {"V": V, "M": M, "x0": x0, **({"mask": True} if k % 2 else {})}


def f_layers(rng, k):
    """Residual layers, V_h = v_h I: equal, unequal and nearly equal v_h, short and long layers."""
    H, d, n = 2 + k % 2, 1 + k % 3, int(rng.integers(3, 9))
    v = [np.ones(H), rng.uniform(0.2, 1.5, H), 1.0 + 2.0**-20 * np.arange(H)][k % 3]
    x0 = start(rng, n, d)
    if k % 5 == 4:
        x0[-1] = x0[0]
    return {
        "V": [one * np.eye(d) for one in v],
        "M": scores(rng, k, H, d),
        "x0": x0,
        "dt": [0.0625, 0.25, 1.0, 4.0][k % 4],
    }


def f_sum(rng, k):
    """V_h that mix coordinates and do not commute; their sum is diagonal, exactly."""
    H, d, n = 2 + k % 3, 2 + k % 2, int(rng.integers(3, 8))
    W = np.diag(grid(np.sort(rng.uniform(0.4, 1.3, d))[::-1], 1 / 64))
    if k % 4 == 1:
        W[-1, -1] = -0.5
    if k % 8 == 2:
        W[-1, -1] = 0.0
    V = grid(rng.uniform(-0.5, 0.5, (H, d, d)), 1 / 64)
    V[0] = W - V[1:].sum(axis=0)
    return {"V": V, "M": scores(rng, k, H, d), "x0": start(rng, n, d)}


FAMILIES = {
    "causal": (f_causal, 20, "several heads under the causal mask"),
    "own": (f_own, 16, "diagonal V_h"),
    "both": (f_both, 8, "diagonal V_h under the causal mask"),
    "blocks": (f_blocks, 14, "one head with Jordan blocks"),
    "layers": (f_layers, 14, "residual layers with several heads"),
    "sum": (f_sum, 10, "V_h that do not commute, with a diagonal sum"),
    "mirror": (f_mirror, 6, "mirrored pairs with noise 1e-2 .. 1e-12"),
}


ORDER = ("causal", "own", "both", "blocks", "mirror", "layers", "sum")  # of the seeds


def draw(family, k):
    rng = np.random.default_rng([2411, ORDER.index(family), k])
    record = FAMILIES[family][0](rng, k)
    plain = {name: np.asarray(record[name], float).tolist() for name in ("V", "M", "x0")}
    return {
        **plain,
        "mask": bool(record.get("mask")),
        **({"dt": record["dt"]} if "dt" in record else {}),
    }


def unwinding(system, t):
    """e^{-tW} as a matrix of balls. W = D + N, N nilpotent, D N = N D."""
    d, W = system.d, [[arb(0)] * system.d for _ in range(system.d)]
    for V in system.V:
        W = [[p + arb(q) for p, q in zip(*rows, strict=True)] for rows in zip(W, V, strict=True)]
    N = [[arb(0) if a == b else W[a][b] for b in range(d)] for a in range(d)]
    power = [[arb(int(a == b)) for b in range(d)] for a in range(d)]
    total = [row[:] for row in power]
    for k in range(1, d + 1):
        power = [
            [sum((power[a][c] * N[c][b] for c in range(d)), arb(0)) * -t / k for b in range(d)]
            for a in range(d)
        ]
        total = [
            [p + q for p, q in zip(*rows, strict=True)] for rows in zip(total, power, strict=True)
        ]
    grows = [bool(W[a][a] > 0) for a in range(d)]
    return [[(-W[a][a] * t).exp() * p for p in total[a]] for a in range(d)], grows


def here(system, flow):
    """The time, the leaders, and z of every token, 0 along coordinates that do not grow."""
    t, x = arb(flow.t), flow.tokens()
    back, grows = unwinding(system, t)
    points = [
        [
            sum((q * c for q, c in zip(back[a], token, strict=True)), arb(0)).mid()
            if grows[a]
            else arb(0)
            for a in range(system.d)
        ]
        for token in x
    ]
    scale = max(abs(v) for p in points for v in p)
    return {
        "t": float(t),
        "leaders": [
            [system.first[flow.leader[h, g]] for g in system.member] for h in range(flow.H)
        ],
        "gap": flow.smallest_gap(),
        "z": [[text(v, scale) for v in points[g]] for g in system.member],
    }


class Layers:
    """Tokens after some layers x + dt sum_h V_h (mean of head h), with 120 digits."""

    def __init__(self, record, system):
        ctx.dps = 120
        self.system, self.dt, self.count = system, arb(record["dt"]), 0
        self.n, self.d, self.H = system.n, system.d, system.H
        self.x = [[arb(c) for c in system.start[first]] for first in system.first]
        self.look()

    def look(self):
        """The leaders, gaps and scores."""
        self.leader, self.gap, self.scores = {}, {}, {}
        self.size = max(abs(float(c)) for row in self.x for c in row)
        for h in range(self.H):
            keys = [
                [
                    sum((p * q for p, q in zip(row, x, strict=True)), arb(0))
                    for row in self.system.M[h]
                ]
                for x in self.x
            ]
            for i, x in enumerate(self.x):
                own = [sum((p * q for p, q in zip(x, key, strict=True)), arb(0)) for key in keys]
                best = max(range(self.n), key=lambda j: float((own[j] - own[0]).mid()))
                best = max(range(self.n), key=lambda j: float((own[j] - own[best]).mid()))
                self.leader[h, i], self.scores[h, i] = best, own
                for j in range(self.n):
                    if j != best:
                        self.gap[h, i, j] = float((own[best] - own[j]).mid())

    def tokens(self):
        return self.x

    def smallest_gap(self):
        return min(self.gap.values(), default=math.inf)

    def step(self):
        system, moved = self.system, []
        for i, x in enumerate(self.x):
            new = list(x)
            for h in range(self.H):
                top = self.scores[h, i][self.leader[h, i]]
                weights = [
                    system.count[j] * (one - top).exp() for j, one in enumerate(self.scores[h, i])
                ]
                total = sum(weights, arb(0))
                mean = [
                    sum((w * y[a] for w, y in zip(weights, self.x, strict=True)), arb(0)) / total
                    for a in range(self.d)
                ]
                for a in range(self.d):
                    new[a] += self.dt * sum(
                        (arb(system.V[h][a][b]) * mean[b] for b in range(self.d)), arb(0)
                    )
            moved.append([c.mid() for c in new])
        self.x, self.count = moved, self.count + 1
        self.look()


def follow_layers(record):
    """As `follow`, where tokens take layers."""
    begin, system, said = time.process_time(), System(record), {"at": []}
    flow, marks, late = Layers(record, system), list(LOGS), 0
    growth = 1 + arb(record["dt"]) * sum((arb(V[0][0]) for V in system.V), arb(0))
    while marks and time.process_time() - begin < CPU_LIMIT:
        if math.log(flow.size) >= marks[0]:
            marks.pop(0)
            back = growth ** (-flow.count)
            points = [[(back * c).mid() for c in token] for token in flow.x]
            scale = max(abs(v) for p in points for v in p)
            said["at"].append(
                {
                    "t": flow.count * record["dt"],
                    "leaders": [
                        [system.first[flow.leader[h, g]] for g in system.member]
                        for h in range(flow.H)
                    ],
                    "gap": flow.smallest_gap(),
                    "z": [[text(v, scale) for v in points[g]] for g in system.member],
                }
            )
        before = dict(flow.leader)
        flow.step()
        late += before != flow.leader and math.log(flow.size) > 8
    cpu = round(time.process_time() - begin, 1)
    return {**said, "cpu": cpu, "log_size": math.log(flow.size), "late_changes": int(late)}


def follow(record):
    if "dt" in record:
        return follow_layers(record)
    begin, system, said = time.process_time(), System(record), {"at": []}
    flow, marks = Flow(system, DIGITS), list(LOGS)
    while marks and time.process_time() - begin < CPU_LIMIT:
        if math.log(flow.size) >= marks[0]:
            marks.pop(0)
            said["at"].append(here(system, flow))
        while KNOWN + math.log10(flow.size + 1) > flow.digits:
            flow = flow.with_digits(flow.digits + MORE)
        flow.step()
    return {
        **said,
        "cpu": round(time.process_time() - begin, 1),
        "log_size": math.log(flow.size),
        "late_changes": flow.late_changes,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="closed.json")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--count", type=int)
    options = parser.parse_args()
    file = {"systems": [], "open": []}
    if os.path.exists(options.out):
        with open(options.out) as handle:
            file = json.load(handle)
    known = {one["name"] for part in file.values() for one in part}
    for family in [options.family] if options.family else FAMILIES:
        for k in range(options.count or FAMILIES[family][1]):
            name = f"{family}-{k:03d}"
            if name in known:
                continue
            record = draw(family, k)
            one = {"name": name, **record, **follow(record)}
            file["systems" if len(one["at"]) > 1 else "open"].append(one)
            print(
                name, len(record["x0"]), len(one["at"]), one["late_changes"], one["cpu"], flush=True
            )
            lines = [
                f'"{part}": [\n' + ",\n".join("  " + json.dumps(one) for one in file[part]) + "\n]"
                for part in ("systems", "open")
            ]
            with open(options.out + ".part", "w") as handle:
                handle.write("{\n" + ",\n".join(lines) + "\n}\n")
            os.replace(options.out + ".part", options.out)


if __name__ == "__main__":
    main()
