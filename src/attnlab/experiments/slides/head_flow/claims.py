"""What head_flow claims: what the slides say of one head, for V = I and for V of the head, random
tokens and embedded text.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common.claims import of_mean, of_rule
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import constant, scaled, shifted, together
from attnlab.models.checkpoints.head_names import name_head

from .experiment import EULER_STEP, FINE_STEP, SCALE, STEPS, N, T

SAID = (
    "one cluster, not at the origin; a single eigenvalue of P survives (one head of"
    " albert-xlarge-v2)"
)
READING = "more than half is only a reading of the words: it is the rule; the limits are certified"


def claims(data: Data) -> list[Claim]:
    """What the slides say of one head, for V = I and for V of the head."""
    found = [*_of_identity(data), *_of_own(data), *_of_numerics(data)]
    return [*found, *_of_text(data)] if "text_model" in data["runs"].attrs else found


def name_of(data: Data, role: str) -> str:
    """The model and the head, in words."""
    facts = data["runs"].attrs
    return f"{facts[f'{role}_model']} {name_head(facts[f'{role}_layer'], facts[f'{role}_head'])}"


def _several(runs: Any) -> tuple[int, int]:
    """(certified starts with more than one limit, all certified starts)."""
    limits = runs["limits"].values
    return int((limits > 1).sum()), int((limits > 0).sum())


def _of_identity(data: Data) -> list[Claim]:
    every, first = (
        select(data["runs"], values="identity"),
        select(data["runs"], values="identity", role="first"),
    )
    certified = every.isel(run=every["limits"].values > 0)
    decided = certified.isel(run=certified["is_decided"].values == 1)
    spread = decided.isel(run=decided["limits"].values > 1)
    own_head = "xlarge" in data["runs"].attrs["first_model"]
    stands_in = "" if own_head else "A stand-in; the slides' head is of another model. "
    several, total = _several(first)
    counts = first["limits"].values[first["limits"].values > 0]
    off = np.abs(spread["share_of_three"].values - spread["share_of_limits"].values)
    return [
        Claim(
            text=(
                f"Not so for this head ({name_of(data, 'first')}) with V = I: share of random"
                " starts that end in more than one cluster, by certified limits; lower end of its"
                " 95 % interval."
            ),
            **of_rule(several, total, "share of starts with more than one limit"),
            published=SAID,
            because=READING,
            differs=(
                f"{stands_in}{several} of {total} starts from cube and sphere;"
                f" {np.median(counts):g} clusters in the median, {counts.max()} at most. Clusters"
                f" counted at T = {T:g} at {SCALE:.0%} of the first diameter are as many as the"
                " certified ones in"
                f" {int(np.sum(certified['clusters'].values == certified['limits'].values))} of"
                f" {certified.sizes['run']} starts, text included."
            ),
        ),
        Claim(
            text=(
                "As many eigenvalues of P(T) survive as the certified limit has clusters, where it"
                f" is decided before T: exceptions in {decided.sizes['run']} runs."
            ),
            measured=(
                float(np.sum(decided["survivors"].values != decided["limits"].values))
                if decided.sizes["run"]
                else np.nan
            ),
            published=SAID,
            low=0,
            high=0,
            because="each leader leads itself in the end and keeps one 1",
        ),
        Claim(
            text=(
                "Not at the origin, V = I, random tokens and text. The certified limit nearest to"
                " it, over the farthest: smallest."
            ),
            measured=float(certified["nearest_of_limits"].values.min()),
            published=SAID,
            low=0.1,
            high=1,
            because=(
                "z of a token that attends to itself does not move: it stays where the start put"
                " it, and those of a cube, a sphere or embeddings after their norm have nearly one"
                " length"
            ),
        ),
        Claim(
            text=(
                "Three principal axes show at T what they show of the certified limits: largest"
                " difference of the share of variance, where it is decided before T and has several"
                " clusters."
            ),
            measured=float(off.max()) if len(off) else np.nan,
            published="three axes",
            low=0,
            high=0.05,
            because="distances to the limits fall like e^-t, squares like e^-2t",
            differs=(
                f"They carry {spread['share_of_three'].values.min(initial=1):.0%} to"
                f" {spread['share_of_three'].values.max(initial=0):.0%}: m clusters need m − 1"
                " axes, and what looks like one cluster in three may be several."
            ),
        ),
    ]


def _of_own(data: Data) -> list[Claim]:
    own, one = (
        select(data["runs"], values="own"),
        select(data["runs"], values="own", start="one side"),
    )
    both = select(data["runs"], values="own", start=("cube", "sphere"))
    two = both.isel(run=both["clusters"].values == 2)
    said = "one cluster, not at the origin"
    return [
        Claim(
            text=(
                "At most two clusters with V of the head: largest number of directions at the end,"
                " random tokens on both sides of φ₁ = 0 and text."
            ),
            measured=float(own["clusters"].values.max()),
            published=said,
            low=1,
            high=2,
            because=(
                "the theorem of the three hyperplanes: a good triple leaves φ₁ and −φ₁, and 0 only"
                " by exception"
            ),
            differs=f"Two in {two.sizes['run']} of {both.sizes['run']} random starts.",
        ),
        Claim(
            text=(
                "One cluster where all tokens start on one side: largest number of clusters, and of"
                " eigenvalues of P that survive."
            ),
            measured=float(max(one["clusters"].values.max(), one["survivors"].values.max())),
            published=said,
            low=1,
            high=1,
            because="then one token leads all: scores are ranked alike, at the rate e^{2 λ₁ t}",
        ),
        Claim(
            text=(
                "None of them is at the origin. Distance of a cluster's centre over its width, in"
                " the state x(T): smallest."
            ),
            measured=float(own["away"].values.min()),
            published=said,
            low=1,
            high=np.inf,
            because="farther from the origin than it is wide",
        ),
        Claim(
            text=(
                "One axis is enough for V of the head: smallest share of the variance of x(T) on"
                " the first, where random tokens have two clusters."
            ),
            measured=float(two["share_of_one"].values.min()) if two.sizes["run"] else np.nan,
            published="three axes",
            low=0.9,
            high=1,
            because="two points lie on a line; what is left falls like e^{-2 (λ₁ − |λ₂|) t}",
        ),
    ]


def _of_text(data: Data) -> list[Claim]:
    """Embedded text, V = I and V of the head."""
    text = {
        values: select(data["runs"], values=values, role="text", start="paragraph")
        for values in ("identity", "own")
    }
    cubes = {
        values: select(data["runs"], values=values, role="text", start="cube")
        for values in ("identity", "own")
    }
    several, total = _several(text["identity"])
    limits = text["identity"]["limits"].values
    limits = limits[limits > 0]
    ones, pieces = int(np.sum(text["own"]["clusters"].values == 1)), text["own"].sizes["run"]
    both = np.intersect1d(*(one["seed"].values for one in text.values()))
    same, own = (
        one[name].values[np.isin(one["seed"].values, both)]
        for one, name in ((text["identity"], "limits"), (text["own"], "clusters"))
    )
    less = (own - same)[same > 0]
    fewer = text["own"]["fewer_side"].values
    who = name_of(data, "text")
    return [
        Claim(
            text=(
                f"Embedded text ({who}), V = I: share of pieces that end in more than one cluster,"
                " by certified limits; lower end of its 95 % interval."
            ),
            **of_rule(several, total, "share of pieces with more than one limit", "pieces"),
            published=SAID,
            because=READING,
            differs=(
                f"REFUTED for this head as a rule: {several} of {total} pieces of {N} tokens that"
                f" do not overlap, {bootstrap_interval(limits)[0]:.2g} to"
                f" {bootstrap_interval(limits)[1]:.2g} clusters in the mean (95 %), {limits.max()}"
                " at most. Fewer than from the cube, with"
                f" {np.median(cubes['identity']['limits'].values):g} in the median of"
                f" {cubes['identity'].sizes['run']}."
            ),
        ),
        Claim(
            text=(
                f"Embedded text ({who}), V of the head: share of pieces that end in ONE cluster;"
                " lower end of its 95 % interval."
            ),
            **of_rule(ones, pieces, "share of pieces that end in one cluster", "pieces"),
            published=SAID,
            because="more than half is only a reading of the words: it is the rule",
            differs=(
                f"CONFIRMED: {ones} of {pieces}, though tokens start on both sides of φ₁ = 0,"
                f" {fewer.min():.0%} to {fewer.max():.0%} of them on the smaller side, where the"
                f" cube of the same head leaves {np.median(cubes['own']['clusters'].values):g}."
                " Counted at T, not certified."
            ),
        ),
        Claim(
            text=(
                "The same pieces have fewer clusters with V of the head than with V = I: mean"
                " difference, upper end of the 95 % interval."
            ),
            **of_mean(less, "high", "pieces"),
            quantity="clusters with V of the head less clusters with V = I",
            expected="less than 0",
            low=-np.inf,
            high=-1e-6,
            because=(
                "V = I keeps every token that leads itself; V of the head only what is along φ₁"
            ),
        ),
    ]


def _of_numerics(data: Data) -> list[Claim]:
    runs, plain = data["runs"], data["plain"]
    leading = float(runs.attrs["first_leading"])
    slow = (1 + leading * EULER_STEP) ** STEPS / np.exp(leading * T)
    other = int(np.sum(runs["survivors_of_euler"].values != runs["survivors"].values))
    return [
        Claim(
            text=(
                "A token that attends to itself from T / 2 on goes by e^(tV): largest relative"
                " distance from SciPy's expm_multiply."
            ),
            measured=float(np.nanmax(runs["leader_off"].values)),
            low=0,
            high=1e-3,
            because=(
                f"closed form; steps of {FINE_STEP:g} and order 4 leave (λ₁ dt)⁵ / 120 a step, with"
                " eigenvectors that are not orthogonal"
            ),
        ),
        Claim(
            text="Euler's goes by (I + dt V)^k: largest relative distance.",
            measured=float(np.nanmax(runs["euler_off"].values)),
            published=f"steps of {EULER_STEP:g}, {STEPS} of them",
            low=0,
            high=1e-9,
            because="closed form",
            differs=(
                f"So with λ₁ = {leading:.3g} Euler's states are too short by a factor of {slow:.2g}"
                " at T. Tokens with the same leader as in the flow:"
                f" {runs['same_leaders'].values.mean():.0%}; runs with another number of surviving"
                f" eigenvalues: {other} of {runs.sizes['run']}."
            ),
        ),
        Claim(
            text=(
                "Our Euler steps are those of the slides' formula, token by token: largest"
                " difference, over the largest entry."
            ),
            measured=float(np.abs(plain["ours"].values - plain["plain"].values).max()),
            low=0,
            high=1e-9,
            because="the same sums in another order",
        ),
    ]


spoils = {
    "one cluster at the origin": together(
        constant("runs", "limits", 1), constant("runs", ("nearest_of_limits", "away"), 0.0)
    ),
    "scattered tokens": together(
        shifted("runs", "clusters", 3), scaled("runs", ("share_of_one", "share_of_three"), 0.5)
    ),
    "several clusters of text": constant(
        "runs", "clusters", 5, where={"start": "paragraph", "values": "own"}
    ),
    "leaders that drift": shifted("runs", ("leader_off", "euler_off"), 0.01),
    "another formula": scaled("plain", "plain", 1 + 1e-6),
}
