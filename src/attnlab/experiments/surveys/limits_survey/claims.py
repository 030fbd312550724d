"""What the certified limits say of the conjecture, of 128 dimensions and of V = I; and damages that
a claim must notice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from attnlab.analysis.intervals import exact_interval
from attnlab.analysis.random_polytopes import expected_self_leaders
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import constant, scaled, shifted

from .experiment import LAWS, PAPER_T, SYSTEMS

TOWARDS = (
    "two leaders on one side of φ₁ = 0 cannot both last: the score of the first at the second grows"
    " past the second's own"
)


def certified_rows(table: Any, **wanted: Any) -> Any:
    """The certified rows with these values."""
    rows = select(table, **wanted) if wanted else table
    return rows.isel(row=rows["count"].values >= 0)


def claims(data: Data) -> list[Claim]:
    """Two limits; decided early, seen late; few vertices."""
    return [*_of_systems(data), *_of_symmetry(data), *_of_dimensions(data), *_of_polytopes(data)]


def _of_systems(data: Data) -> list[Claim]:
    every, systems = data["systems"], certified_rows(data["systems"])
    total, others = systems.sizes["row"], int(np.sum(systems["count"].values != 2))
    clock = [
        float(np.median(part["t"].values * part["gap"].values))
        for name, n, _ in SYSTEMS
        if (part := certified_rows(every, matrix=name, n=n)).sizes["row"]
    ]
    right = int(np.sum(every["early"].values[:, 0] == 2))
    groups = int(np.sum(systems["grade"].values == "group"))
    median = {
        name: float(np.median(select(every, matrix=name, n=30)["early"].values[:, 0]))
        for name in ("C9", SYSTEMS[1][0])
    }
    first = certified_rows(every, matrix="C9", n=30)["count"].values
    return [
        Claim(
            text=(
                "At most three limits in F (Conjecture 4.3): the largest number that was certified."
            ),
            measured=float(systems["count"].max()),
            published="at most three parallel subspaces",
            low=1,
            high=3,
            because="the paper's conjecture, for generic starts",
            quantity="limits in F, at most",
        ),
        Claim(
            text=(
                "Generic starts have exactly two limits in F: the share of certified starts with"
                " another number."
            ),
            measured=others / total,
            published="one run of one matrix, up to T = 5",
            low=0.0,
            high=0.0,
            because=TOWARDS,
            quantity="P(another count)",
            interval=exact_interval(others, total),
            sample=f"95 %, {total} starts",
            expected="0",
            differs=(
                f"For C9 with 30 tokens: {np.sum(first != 2)} exceptions in {len(first)}, below"
                f" {exact_interval(int(np.sum(first != 2)), len(first))[1]:.2g} at 95 %. Uniform"
                " starts in [-5, 5]^3 only."
            ),
        ),
        Claim(
            text=(
                "One limit on either side of the hyperplane φ₁ = 0: starts with two limits on one"
                " side."
            ),
            measured=float(np.sum(systems["sides"].values != 2)),
            low=0,
            high=0,
            because=TOWARDS,
        ),
        Claim(
            text="Nearly every start is certified: the share.",
            measured=total / every.sizes["row"],
            low=0.95,
            high=1.0,
            because=(
                "read as 19 of 20: the conjecture is about all generic starts, so that few may stay"
                " undecided"
            ),
            quantity="certified starts",
            interval=exact_interval(total, every.sizes["row"]),
            sample=f"95 %, {every.sizes['row']} starts",
            differs=f"In {groups} the leader inside a merged group is open.",
        ),
        Claim(
            text=(
                "T = 5 does not show it: the share of starts that show two clusters then, at 1 % of"
                " the diameter."
            ),
            measured=right / every.sizes["row"],
            published="figures stop at T = 5",
            low=0.0,
            high=0.5,
            because=(
                "the slow coordinate of C9 is still at e^(-0.253 T) = 0.28 of its size at T ="
                f" {PAPER_T:g}; less than half"
            ),
            differs=", ".join(
                f"{name}: {count:g} clusters in the median" for name, count in median.items()
            )
            + ".",
        ),
        Claim(
            text=(
                "The time of decision is of the order of 1 / (λ₁ - λ₂): medians of t (λ₁ - λ₂),"
                " system by system; the one that is farthest from 1."
            ),
            measured=max(clock, key=lambda one: abs(np.log(one))),
            low=0.1,
            high=10.0,
            because=(
                "the leading coordinate overtakes the next like e^((λ₁ - λ₂) t); an order of"
                " magnitude"
            ),
            quantity="t (λ₁ - λ₂)",
        ),
        Claim(
            text="`al.simulate` and the path of `al.limit` agree at T = 5: largest difference.",
            measured=float(every["check"].max()),
            low=0.0,
            high=1e-4,
            because=(
                "two computations, and tolerances of 1e-8 that chaos may enlarge; tokens start"
                " within 5"
            ),
        ),
        Claim(
            text="The points are known: largest certified error of a limit in F.",
            measured=float(systems["error"].max()),
            low=0.0,
            high=1e-4,
            because="1e-4 of the 5 within which tokens start is finer than any figure",
        ),
    ]


def _of_symmetry(data: Data) -> list[Claim]:
    table = data["symmetric"]
    exact, nudged = (
        table["count"].values[table["nudge"].values == 0],
        table["count"].values[table["nudge"].values > 0],
    )
    return [
        Claim(
            text='"Generic" is needed: the limits of four tokens on the axes, V = diag(1.2, 0.8).',
            measured=float(exact[0]),
            low=4,
            high=4,
            because="by symmetry tokens stay on their axes, so that none can follow another",
            published='"any initial sequence"',
            differs=f"They are at ±{float(table['largest'][0]):.4g} on the axes.",
        ),
        Claim(
            text="Nudged at random by a billionth or more they have two: the largest number.",
            measured=float(nudged.max()),
            low=1,
            high=2,
            because=TOWARDS,
        ),
    ]


def _of_dimensions(data: Data) -> list[Claim]:
    every, table = data["dimensions"], certified_rows(data["dimensions"])
    size = int(every["d"].max())
    largest = certified_rows(every, d=size)
    shares = every["k"].values / every["d"].values
    return [
        Claim(
            text=(
                f"In {size} dimensions, too, there are at most two limits in F: the largest number,"
                " all draws."
            ),
            measured=float(table["count"].max()),
            published="coordinates cluster",
            low=1,
            high=2,
            because=TOWARDS,
            differs=(
                f"{table.sizes['row']} of {every.sizes['row']} draws are certified; those with d ="
                f" {size} at t = {float(np.median(largest['t'])):.3g} in the median."
            ),
        ),
        Claim(
            text="F has about half of the dimensions: k / d, mean over draws.",
            measured=float(shares.mean()),
            published="k = 65 of 128",
            low=0.4,
            high=0.6,
            quantity="k / d",
            because=(
                "eigenvalues of a symmetric random matrix are symmetric about 0, but for the one of"
                " the mean"
            ),
        ),
        Claim(
            text=(
                "λ₁ stands alone only in large dimensions: the gap λ₁ - λ₂ over d, mean over the"
                " largest draws."
            ),
            measured=float((select(every, d=size)["gap"].values / size).mean()),
            published="λ₁ = 6.678 at d = 128",
            low=0.0,
            high=0.05,
            because="the mean of the entries adds 0.05 d to λ₁ at most",
            quantity="(λ₁ - λ₂) / d",
            expected="at most 0.05",
        ),
    ]


def _of_polytopes(data: Data) -> list[Claim]:
    every, table = data["polytopes"], certified_rows(data["polytopes"])
    count, own = table["count"].values, table["own"].values
    total, few = table.sizes["row"], int(np.sum(count <= own))
    keys = [(d, law, int(n)) for d in (2, 3) for law in LAWS for n in np.unique(every["n"].values)]
    ratios = [
        float((part["count"].values / part["hull"].values).mean())
        for d, law, n in keys
        if (part := certified_rows(every, d=d, law=law, n=n)).sizes["row"]
    ]
    square = certified_rows(every, d=2, n=int(every["n"].max()))
    corner = square["count"].values[square["law"].values != "g5"]
    by_own = int(np.sum(table["led_by_own"].values == count))
    cube = select(data["self_leading"], d=2)
    off = [
        (mean - expected_self_leaders("cube", 2, int(n))) / error
        for n, mean, error in zip(
            cube["n"].values, cube["mean"].values, cube["error"].values, strict=True
        )
    ]
    return [
        Claim(
            text=(
                "V = I: every limit is a vertex of the limit polytope: starts in which one is not."
            ),
            measured=float(np.sum(table["vertices"].values != count)),
            low=0,
            high=0,
            published="limits on the boundary of a polytope, or 0 (Theorem 3.1)",
            because=(
                "a limit inside the hull of others would attend to one of them more than to itself"
            ),
        ),
        Claim(
            text=(
                "Few vertices: their number over that of the start's hull, means by law and n; the"
                " largest."
            ),
            measured=max(ratios),
            low=0.0,
            high=1.0,
            quantity="vertices / hull of the start, at most",
            because="few is read as fewer than the hull has",
        ),
        Claim(
            text=(
                "In the square the number settles near its four corners: mean at n ="
                f" {int(every['n'].max())}, both cubes."
            ),
            measured=float(corner.mean()),
            low=3.0,
            high=5.0,
            quantity="vertices",
            expected="4",
            because=(
                "near a corner all planes perpendicular to tokens are nearly parallel, so that each"
                " corner keeps one"
            ),
        ),
        Claim(
            text=(
                "The limits are no more than the tokens that lead themselves at the start: the"
                " share of starts."
            ),
            measured=few / total,
            low=0.5,
            high=1.0,
            quantity="starts",
            interval=exact_interval(few, total),
            sample=f"95 %, {total} starts",
            because="with hardmax they are equal; softmax lets some fade; more than half",
        ),
        Claim(
            text="All final leaders led themselves from the start: the share of starts.",
            measured=by_own / total,
            low=0.5,
            high=1.0,
            quantity="starts",
            interval=exact_interval(by_own, total),
            sample=f"95 %, {total} starts",
            because=(
                "more than half; a token can begin to lead itself later, when the one it attended"
                " to has moved away"
            ),
        ),
        Claim(
            text=(
                "Gaussian starts have as many self-leading tokens as the closed form says, over all"
                " n and d: p."
            ),
            measured=_own_p(every),
            low=0.01,
            high=1.0,
            quantity="p",
            because="n E (1 - Phi(-r))^(n-1), r the distance of a token; Student's test",
        ),
        Claim(
            text=(
                "The tokens of a square that lead themselves are as many as the closed form says"
                " (no dynamics): difference of the means, in standard errors, the largest."
            ),
            measured=float(max(off, key=abs)),
            low=-4.0,
            high=4.0,
            quantity="difference",
            unit="standard errors",
            expected="0",
            because=(
                "the probability that no token is beyond the plane of another, an integral; four"
                " standard errors"
            ),
            differs=(
                f"{float(cube['mean'][-1]):.3g} at n = {int(cube['n'][-1]):,}: they tend to the"
                " four corners."
            ),
        ),
    ]


def _own_p(table: Any) -> float:
    """p of the numbers of self-leading Gaussian tokens against the closed form, each over its root:
    is the mean off?
    """
    rows = select(table, law="g5")
    known = {
        (d, n): expected_self_leaders("normal", d, n)
        for d in (2, 3)
        for n in np.unique(rows["n"].values).tolist()
    }
    expected = np.array(
        [
            known[d, n]
            for d, n in zip(rows["d"].values.tolist(), rows["n"].values.tolist(), strict=True)
        ]
    )
    return float(ttest_1samp((rows["own"].values - expected) / np.sqrt(expected), 0.0).pvalue)


spoils = {
    "a third limit, in F and beside it": shifted("systems", ("count", "sides"), 1),
    "four limits": shifted("systems", "count", 2),
    "one limit": constant("systems", "count", 1),
    "half of the starts undecided": constant("systems", "count", -1, where={"start": 0}),
    "two clusters from the first": constant("systems", "early", 2.0),
    "decided a hundred times later": scaled("systems", ("t", "error", "check"), 1e6),
    "symmetric tokens follow each other": constant("symmetric", "count", 2),
    "nudged tokens do not": constant("symmetric", "count", 4),
    "three limits in high dimension": constant("dimensions", "count", 3),
    "V is positive": scaled("dimensions", "k", 1.9),
    "the mean adds more": scaled("dimensions", "gap", 50.0),
    "every token of the hull survives": shifted("polytopes", "count", 60),
    "no token led itself at first": scaled("polytopes", ("own", "led_by_own"), 0),
    "twice as many lead themselves": scaled("polytopes", "own", 2),
    "eight corners": scaled("self_leading", "mean", 2.0),
}
