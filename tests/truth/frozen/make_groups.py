"""Make groups.json: small attention systems whose tokens end in groups that rotate or slide,
followed in extended precision.

A group has no final leader, so there is nothing to prove by frozen gaps. The truth here is the flow
itself: the Taylor integrator of make_limits.py takes the tokens with fifty digits and more until
they are e^34 times larger, and the parts of z = e^{-tV} x in F are written down at some late times.
Whatever is certified must agree with them up to its horizon.

Nothing is imported from attnlab. Needs numpy and python-flint.

    python make_groups.py --out groups.json         resumes where it stopped
    python make_groups.py --family pair --count 4
"""

import argparse
import json
import math
import os
import time

import numpy as np
from flint import acb, arb
from make_limits import Flow, System, apply, enough_digits, grid, pack, root, start, text

CPU_LIMIT = 12.0
DIGITS, KNOWN = 50, 32
LOGS = (14.0, 20.0, 28.5, 34.0)
"""log max|x| from which on tokens are written down."""

LATE_LOGS = {"mask, close rates": (*LOGS, 44.0, 60.0, 80.0)}
"""The same where groups under the causal mask may come together late."""

FAMILIES = (
    "pair",
    "pair and others",
    "strong",
    "non-normal",
    "mask",
    "two sides",
    "many",
    "thin",
    "thin on two sides",
    "mask, close rates",
)
COUNTS = {"many": 2}


def oblique(rng, block):
    while True:
        S = rng.uniform(-1, 1, block.shape)
        if np.linalg.cond(S) < 15:
            return S @ block @ np.linalg.inv(S)


def scores(rng, k, d):
    """Q and K: the identity, or positive definite, or anything."""
    if k % 3 == 0:
        return np.eye(d), np.eye(d)
    if k % 3 == 1:
        B = root(rng, d)
        return B, B
    return np.eye(d), grid(rng.uniform(-1, 1, (d, d)), 2.0**-8)


def draw(family, k):
    """The system number k of a family."""
    rng = np.random.default_rng([24, FAMILIES.index(family), k])
    if family == "mask, close rates":
        return draw_close(rng, k)
    if family.startswith("thin"):
        return draw_thin(rng, k, family == "thin on two sides")
    d = {"pair": 2, "strong": 3, "mask": 2}.get(family, 3)
    n = (
        30
        if family == "many"
        else int(rng.integers(2, 13))
        if k % 6 == 5
        else int(rng.integers(2, 5))
    )
    a = rng.uniform(0.4, 1.2)
    b = a * rng.choice([0.1, 0.3, 0.6, 1.5])
    pair = np.array([[a, b], [-b, a]])
    block = (
        np.diag(np.append(np.zeros(2), rng.uniform(-1.0, 0.8, d - 2) * a))
        if d > 2
        else np.zeros((2, 2))
    )
    if family in ("pair", "pair and others", "mask", "many", "two sides"):
        block[:2, :2] = pair
    elif family == "strong":
        block = np.diag([a, -1.3 * a, 0.4 * a])
    else:
        block = np.diag(a * np.append(1.0, rng.uniform(-0.9, 0.9, d - 1)))
    Q, K = scores(rng, k, d)
    x0 = start(rng, n, d)
    if k % 2:  # together from the start: one group
        x0 = x0 / 8.0 + x0[0]
    V = block if family in ("pair", "two sides") and k % 2 else oblique(rng, block)
    if family == "two sides":  # far apart: two groups, if any
        x0 = x0 / 4.0 + np.where(np.arange(n) % 2, 4.0, -4.0)[:, None]
    return pack(V, grid(x0, 2.0**-20), Q=Q, K=K, mask=family == "mask")


def draw_thin(rng, k, on_two_sides):
    """V = B C of rank 2 or 3 in one or two dimensions more, as a head has it: pairs, real and
    strongly negative rates.

    B and C have few bits, so their product is exact in double precision.
    """
    r = 2 + k % 2
    d = r + 1 + k // 2 % 2
    while True:
        B, C = (
            grid(rng.uniform(-1.2, 1.2, (d, r)), 2.0**-6),
            grid(rng.uniform(-1.2, 1.2, (r, d)), 2.0**-6),
        )
        rates, vectors = np.linalg.eig(C @ B)
        lead = rates[rates.real.argmax()]
        is_wanted = (
            (lead.imag != 0.0)
            if k % 3 == 0
            else (lead.imag == 0.0 and (k % 3 == 1) == (-rates.real.min() > lead.real))
        )
        if (
            0.4 < lead.real < 1.3
            and np.abs(rates).min() > 0.05
            and np.linalg.cond(vectors) < 20
            and (is_wanted or r == 2)
        ):
            break
    n = int(rng.integers(6, 13)) if k % 4 == 3 else int(rng.integers(3, 6))
    x0 = start(rng, n, d) / 2.0
    if on_two_sides:  # along the leading direction
        side = (B @ vectors[:, rates.real.argmax()]).real
        x0 = x0 / 4.0 + np.where(np.arange(n) % 2, 2.0, -2.0)[:, None] * side / np.linalg.norm(side)
    Q, K = scores(rng, k, d)
    return {**pack(B @ C, grid(x0, 2.0**-20), Q=Q, K=K), "B": B.tolist(), "C": C.tolist()}


def draw_close(rng, k):
    """V = B C under the causal mask, whose second rate is close to the leading one, or to its pair."""
    r = 3 + k % 2
    d = r + 1 + k // 2 % 2
    while True:
        B, C = (grid(rng.uniform(-1.2, 1.2, shape), 2.0**-6) for shape in ((d, r), (r, d)))
        rates, vectors = np.linalg.eig(C @ B)
        real = np.sort(np.unique(np.round(rates.real, 9)))[::-1]
        is_pair = rates[rates.real.argmax()].imag != 0.0
        if (
            len(real) > 1
            and 0.4 < real[0] < 1.3
            and real[1] > 0.85 * real[0]
            and np.abs(rates).min() > 0.05
            and np.linalg.cond(vectors) < 20
            and (is_pair == (k % 3 == 0) or r == 3)
        ):
            break
    x0 = start(rng, int(rng.integers(3, 6)), d) / 2.0
    Q, K = scores(rng, k, d)
    return {
        **pack(B @ C, grid(x0, 2.0**-20), Q=Q, K=K, mask=True),
        "B": B.tolist(),
        "C": C.tolist(),
    }


def follow(record, logs):
    """What to store: tokens at late times."""
    begin = time.process_time()
    system, said = System(record), {"at": []}
    flow = Flow(system, DIGITS)
    marks = list(logs)
    while marks and time.process_time() - begin < CPU_LIMIT:
        if math.log(flow.size) >= marks[0]:
            marks.pop(0)
            said["at"].append(here(system, flow))
        flow = enough_digits(flow, KNOWN)
        flow.step()
    said["cpu"] = round(time.process_time() - begin, 1)
    said["log_size"] = math.log(flow.size)
    return said


def here(system, flow):
    """The time and pi_F z of every token."""
    t, x, points = arb(flow.t), flow.tokens(), []
    factors = {a: (-system.mu[a] * t).exp() for a in system.unstable}
    for token in x:
        total = [acb(0)] * system.d
        for a in system.unstable:
            part = apply(system.proj[a], token)
            total = [p + factors[a] * q for p, q in zip(total, part, strict=True)]
        points.append([v.real.mid() for v in total])
    scale = max(abs(v) for p in points for v in p)
    return {"t": float(t), "points": [[text(v, scale) for v in points[g]] for g in system.member]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="groups.json")
    parser.add_argument("--family", choices=FAMILIES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1e9)
    options = parser.parse_args()
    begin, file = time.time(), {"systems": [], "open": []}
    if os.path.exists(options.out):
        with open(options.out) as handle:
            file = json.load(handle)
    known = {one["name"] for one in file["systems"] + file["open"]}
    for k in range(options.first, options.count):
        for family in [options.family] if options.family else FAMILIES:
            name = f"{family}-{k:03d}"
            if (
                name in known
                or k >= COUNTS.get(family, options.count)
                or time.time() - begin > options.seconds
            ):
                continue
            record = draw(family, k)
            found = follow(record, LATE_LOGS.get(family, LOGS))
            one = {"name": name, **record, **found}
            file["systems" if found["at"] else "open"].append(
                one if found["at"] else {"name": name, **found}
            )
            times = [round(at["t"], 2) for at in found["at"]]
            print(
                name,
                len(record["x0"]),
                times,
                round(found["log_size"], 1),
                found["cpu"],
                flush=True,
            )
            with open(options.out + ".part", "w") as handle:
                json.dump(file, handle)
            os.replace(options.out + ".part", options.out)


if __name__ == "__main__":
    main()
