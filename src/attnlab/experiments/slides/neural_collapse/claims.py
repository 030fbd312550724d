"""The claims of neural_collapse: what collapses, how fast, and what does not become a simplex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binom

from attnlab.analysis.collapse import least_angles, nearest_fraction
from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common.certified import certified_in_words, decided
from attnlab.experiments.common.claims import HALF, mean_in_words, of_mean, of_share
from attnlab.experiments.common.heads import HEADS, as_shown
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, scaled, shifted, together

from .experiment import KINDS, SHUFFLES, STEPS, TAUS, TOLERANCES, WIDE, WIDE_STEPS

ROOM = 100.0
"""Errors of a whole run may be this many times the tolerance of a step."""

AT_REST = 1e-9
"""Attention is at rest where no entry differs by more from that of t = ∞, in the window in which
rates are measured. With own values: where no entry changes by more in this window.
"""

MANY = max(HEADS)


def runs_by_heads(rows: Any) -> str:
    """How many runs there are for each number of heads."""
    return "runs " + ", ".join(
        f"H = {count}: {np.sum(rows['heads'].values == count)}" for count in HEADS
    )


def by_kind(rows: Any) -> Iterator[tuple[str, Any]]:
    """(words, rows) of each family and start that has rows."""
    for family, start in KINDS:
        here = select(rows, family=family, start=start)
        if here.sizes["row"]:
            name = "synthetic heads" if family == "synthetic" else f"heads of {rows.attrs['model']}"
            yield f"{name}, {'random start' if start == 'cube' else 'pieces of text'}", here


def at_rest(cases: Any) -> Any:
    """The runs with V = I and a certified limit, two clusters or more, and attention at rest."""
    rows = select(cases, values="identity", is_decided=1)
    return rows.isel(row=(rows["clusters"].values > 1) & (rows["moved"].values < AT_REST))


def compared(cases: Any, values: str = "identity") -> Any:
    """The decided rows with three clusters or more: those in which NC2 can fail."""
    rows = select(cases, values=values, is_decided=1)
    return rows.isel(row=rows["clusters"].values > 2)


def last_of(curve: np.ndarray) -> np.ndarray:
    """The last known number of each curve (row, tau)."""
    return np.array(
        [row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in curve]
    )


def farthest(numbers: np.ndarray, aim: float) -> float:
    """The number that is farthest from the aim."""
    return float(numbers[np.argmax(np.abs(numbers - aim))])


def least(numbers: Any) -> float:
    """The smallest number; NaN where there are none."""
    return float(np.min(numbers)) if len(numbers) else float("nan")


def start_names(rows: Any) -> np.ndarray:
    """The start of each row, whatever its number of heads: rows of one start are not
    independent.
    """
    columns = (rows[name].values for name in ("family", "start", "rng"))
    return np.array(
        [f"{family} {start} {rng}" for family, start, rng in zip(*columns, strict=True)]
    )


def starts_with_three(rows: Any) -> tuple[int, int]:
    """(starts with three clusters or more for some number of heads, all starts)."""
    names = start_names(rows)
    return len(np.unique(names[rows["clusters"].values > 2])), len(np.unique(names))


def three_words(rows: Any, every: Any) -> str:
    """How many starts and runs have three clusters or more, in words; and how many of `every` row,
    for each number of heads.
    """
    some, total = starts_with_three(rows)
    found = []
    for words, here in by_kind(every):
        counts = [here["clusters"].values[here["heads"].values == count] for count in HEADS]
        found.append(f"{words} " + ", ".join(f"{np.sum(one > 2)}/{len(one)}" for one in counts))
    return (
        f"{some} of {total} starts, {rows.sizes['row']} runs. A start counts once, since the heads"
        f" of its runs are nested (and {as_shown('trained', rows.attrs['model'])} heads are the"
        " same for all starts). Runs with three clusters or more for H ="
        f" {', '.join(map(str, HEADS))}: {'; '.join(found)}."
    )


def fewer_with_more_heads(identity: Any) -> tuple[int, int]:
    """(starts with fewer clusters for 16 heads than for one, starts whose numbers differ)."""
    one, many = (
        dict(zip(start_names(rows).tolist(), rows["clusters"].values, strict=True))
        for rows in (select(identity, heads=count) for count in (1, MANY))
    )
    change = np.array([count - one[start] for start, count in many.items() if start in one])
    return int(np.sum(change < 0)), int(np.sum(change != 0))


def fractions_of(rows: Any) -> list[tuple[float, Any]]:
    """For each row the distance of NC2's lengths from those of the nearest fraction, and the
    fraction.
    """
    return [
        nearest_fraction(int(heads), norms)
        for heads, norms in zip(rows["heads"].values, rows["end_norms"].values, strict=True)
    ]


def fraction_words(rows: Any) -> str:
    """Where third clusters are on their line, for each number of heads."""
    found = []
    for heads in np.unique(rows["heads"].values):
        off, near = zip(*fractions_of(select(rows, heads=heads)), strict=True)
        found.append(
            f"H = {heads}: {len(near)} at {', '.join(sorted(set(map(str, near))))}, off by at most"
            f" {max(off):.0e}"
        )
    return "; ".join(found)


def slope_words(rows: Any) -> str:
    """Slopes of NC1 beside −2(1 − (a + b)/H), where the fraction p/q says what a + b is: 2q > H."""
    found = []
    for heads, (_, one), rate in zip(
        rows["heads"].values, fractions_of(rows), rows["rate"].values, strict=True
    ):
        if 2 * one.denominator > heads:
            found.append(
                f"H = {heads} at {one}, so a + b = {one.denominator}: {rate:.2f}, by the formula "
                f"{2 * (one.denominator / heads - 1):.2f}"
            )
    return "; ".join(found) or "none here"


def claims(data: Data) -> list[Claim]:
    """All claims."""
    cases = data["cases"]
    return [
        *_of_nc1(cases),
        *_of_between(cases),
        *_of_nc2(cases),
        *_of_one_head(cases),
        *_of_counts(cases),
        *_of_several_heads(cases),
        *_of_lines(cases),
        *_of_the_plane(data["plane"]),
        *_of_numbers(cases),
    ]


def _spans_all(rows: Any) -> np.ndarray:
    return np.asarray(rows["rank"].values == rows["clusters"].values - 1)


def _of_nc1(cases: Any) -> list[Claim]:
    still = at_rest(cases)
    is_full = _spans_all(still)
    identity = select(cases, values="identity")
    fewer, differ = fewer_with_more_heads(decided(identity))
    many = decided(select(identity, heads=MANY))
    alone = int(np.sum(many["clusters"].values + many["singles"].values == 1))
    triples = select(cases, is_good=1)
    made = [
        Claim(
            text=(
                "In one sense yes: tokens of a cluster become one point. V = I,"
                f" {runs_by_heads(still)}: slope of the logarithm of the scatter inside clusters"
                " over all scatter, in τ = Ht, the farthest from −2. All runs with two clusters or"
                " more and attention at rest."
            ),
            measured=farthest(still["scatter_rate"].values, -2.0),
            published="clusters form; the analogy to neural collapse is left as a question",
            low=-2.02,
            high=-1.98,
            because=(
                "tokens of one cluster have the same leader in each head: x_i − x_j is constant,"
                " and z_i − z_j falls like e^(−τ)"
            ),
            differs=(
                f"{still.sizes['row']} runs; all others have one cluster, or attention that"
                f" changes. Clusters are the certified limits: {certified_in_words(identity)}."
            ),
        ),
        Claim(
            text=(
                "NC1 = tr(Σ_W Σ_B⁺)/C falls like e^(−2τ) where the middles of the C clusters span C"
                " − 1 dimensions: the slope farthest from −2."
            ),
            measured=farthest(still["rate"].values[is_full], -2.0),
            low=-2.02,
            high=-1.98,
            because="Σ_W falls like e^(−2τ) and Σ_B converges to a matrix of rank C − 1",
            differs=f"{is_full.sum()} runs.",
        ),
        Claim(
            text=(
                "NC1 falls as fast as under the linear flow dz/dτ = (P − I)z, with the attention P"
                " of τ = 10 held fixed: largest difference of the slopes."
            ),
            measured=float(np.abs(still["rate"].values - still["frozen_rate"].values).max()),
            low=0,
            high=0.02,
            because=(
                "Boolean attention that does not change makes the flow linear; e^(τ(P − I)) is by"
                " SciPy"
            ),
        ),
        Claim(
            text=(
                "The labels matter: NC1 is below that of clusters of the same sizes drawn at"
                " random. The largest permutation p."
            ),
            measured=float(still["shuffled_p"].values.max()),
            low=0,
            high=0.05,
            because=(
                f"the share of {SHUFFLES} shuffled labellings that are as low, the true one"
                f" included; the least possible is {1 / (SHUFFLES + 1):g}"
            ),
        ),
        Claim(
            text=(
                "REFINED: the number of heads merges clusters, V = I: there are fewer certified"
                " limits with 16 heads than with one. The chance of so many such starts by throws of a coin."
            ),
            measured=float(binom.sf(fewer - 1, differ, 0.5)),
            published="16 heads: one cluster for few tokens, several that merge slowly for more",
            low=0,
            high=0.05,
            because=(
                "exact sign test without the starts whose numbers are equal; theory: a cluster"
                " stays only if no head of it looks outside"
            ),
            differs=(
                f"{fewer} of {differ} starts whose numbers differ. With 16 heads {alone} of"
                f" {many.sizes['row']} starts end in one cluster, for which NC1 and NC2 mean"
                " nothing."
            ),
        ),
        Claim(
            text=(
                "One head with its own values, a good triple: directions have at most two clusters."
                " The largest number."
            ),
            measured=float(triples["clusters"].values.max()),
            low=1,
            high=2,
            because=(
                "three hyperplanes (Geshkovski et al., section 4): leading coordinates that do not"
                " vanish give ±φ₁, and 0 is exceptional"
            ),
            differs=f"{triples.sizes['row']} heads are good triples.",
        ),
    ]
    good = select(triples, is_decided=1, clusters=2)
    good = good.isel(row=good["moved"].values < AT_REST)
    if good.sizes["row"]:
        ratio = good["scatter_rate"].values / good["size_rate"].values
        made.append(
            Claim(
                text=(
                    "These two clusters of directions become points as fast as for V = I: slope of"
                    " the logarithm of their scatter over the growth rate of the tokens, the"
                    " farthest from −2."
                ),
                measured=farthest(ratio, -2.0),
                low=-2.02,
                high=-1.98,
                because=(
                    "tokens of a cluster have one leader, so x_i − x_j is constant while |x| grows"
                ),
                differs=f"{good.sizes['row']} runs with two clusters.",
            )
        )
    return made


def _of_between(cases: Any) -> list[Claim]:
    """Where a cluster ends between others."""
    still = at_rest(cases)
    still = still.isel(row=~_spans_all(still))
    mixed = select(still, heads=2)
    if not mixed.sizes["row"]:
        return []
    others = select(still, clusters=3, rank=1, singles=0)
    others = others.isel(row=others["heads"].values > 2)
    return [
        Claim(
            text=(
                "REFINED: where two heads share the leadership a cluster ends between others, and"
                " NC1 does not fall although the clusters shrink: its steepest slope, H = 2."
            ),
            measured=float(mixed["rate"].values.min()),
            low=-1.0,
            high=1.0,
            because=(
                "let a heads of a third cluster look at the first, b at the second and the others"
                " at itself. It comes to the line of these two like e^(−(a+b)τ/H), so NC1 has the"
                " slope −2(1 − (a+b)/H), up to powers of τ. With H = 2, a + b = 2: if one head"
                " looked at the cluster itself, it would go where the other one looks. So the slope"
                " goes to 0 (for several such clusters that look at each other, to −2 times the"
                " least eigenvalue of a matrix without diagonal, which is not positive); −1 is"
                " half-way to −2"
            ),
            differs=(
                f"{mixed.sizes['row']} runs. With more heads NC1 may fall, like e^(−τ) for H = 4"
                f" and a + b = 2. Such runs with three clusters: {slope_words(others)}."
            ),
        )
    ]


def _of_nc2(cases: Any) -> list[Claim]:
    pairs, three = select(cases, clusters=2), compared(cases)
    still = three.isel(row=three["moved"].values < AT_REST)
    return [
        Claim(
            text=(
                "REFINED: two clusters are a simplex wherever they are: largest deviation of angles"
                " from −1/(C−1), and of lengths, over the runs with C = 2."
            ),
            measured=float(np.max([last_of(pairs[name].values) for name in ("angles", "norms")])),
            low=0,
            high=1e-6,
            because="two points about their middle are opposite and equally far",
            differs=f"{pairs.sizes['row']} runs.",
        ),
        Claim(
            text=(
                "No simplex is being approached: NC2 of the angles no longer falls, three clusters"
                " or more with V = I. Its steepest slope in τ."
            ),
            measured=least(still["angle_rate"].values),
            low=-0.5,
            high=1.0,
            because=(
                "a simplex that is reached as fast as clusters become points would make the slope"
                " −1; −0.5 is half-way"
            ),
            differs=f"{still.sizes['row']} runs, {runs_by_heads(still)}.",
        ),
    ]


def _of_counts(cases: Any) -> list[Claim]:
    identity = select(cases, values="identity")
    many, own = (
        decided(select(identity, heads=(8, 16))),
        select(cases, values="own"),
    )
    known = select(own, is_decided=1)
    most: dict[str, Any] = {
        "quantity": "share of starts with three clusters or more",
        "expected": "less than 1/2",
        "low": 0,
        "high": 0.5,
        "because": "a half is a reading of the word most",
    }
    return [
        Claim(
            text=(
                "With 8 or 16 heads and V = I most starts have fewer than three clusters, so that"
                " nothing is left to be a simplex: share of starts with three or more for 8 or for"
                " 16, upper end of its 95 % interval."
            ),
            **of_share(*starts_with_three(many), "high"),
            **most,
            differs=f"{three_words(many, decided(identity))} {certified_in_words(identity, 'runs')}.",
        ),
        Claim(
            text=(
                "With their own values most starts have fewer than three clusters of directions:"
                " share of starts with three or more in a decided run, for any number of heads,"
                " upper end of its 95 % interval."
            ),
            **of_share(*starts_with_three(known), "high"),
            **most,
            differs=f"{three_words(known, known)} {undecided_words(own)}",
        ),
    ]


def undecided_words(own: Any) -> str:
    """How many runs with own values are not decided, what they look like, and where one cluster
    sits.
    """
    open_ones = select(own, is_decided=0)
    three = open_ones.isel(row=open_ones["clusters"].values > 2)
    text = (
        f"These are runs, no certificates: {open_ones.sizes['row']} of {own.sizes['row']} are not"
        f" decided: clusters depend on the step, or double precision ends before τ = {TAUS[-1]:g}. In at least"
        f" {np.sum(open_ones['moved'].values > AT_REST)} of them attention has not come to rest"
    )
    if three.sizes["row"]:
        text += (
            f"; {three.sizes['row']} of the {open_ones.sizes['row']} show three or more at the last"
            f" time, where {np.mean(three['place_angles'].values):.2f} of as many random directions"
            " of the same span are as near to a simplex or nearer"
        )
    one = select(own, is_decided=1, clusters=1)
    near = [one["off_lead"].values[one["heads"].values == count] < 0.05 for count in HEADS]
    return (
        f"{text}. A single cluster is at the leading eigenspace of the sum of the V_h in"
        f" {', '.join(f'{np.sum(here)}/{len(here)}' for here in near)} runs for H ="
        f" {', '.join(map(str, HEADS))}."
    )


def _of_one_head(cases: Any) -> list[Claim]:
    """NC2 of certified limits beside that of tokens drawn from the start."""
    model, names = cases.attrs["model"], ("place_angles", "place_norms")
    alone = [
        (words, rows)
        for words, rows in by_kind(select(compared(cases), heads=1))
        if rows.sizes["row"] > 2
    ]
    ends = {
        name: np.array([bootstrap_interval(rows[name].values) for _, rows in alone]).reshape(-1, 2)
        for name in names
    }
    words = {
        name: "; ".join(f"{kind} {mean_in_words(rows[name].values)}" for kind, rows in alone)
        for name in names
    }
    another = (
        f"of {model} another head with every start, from layer 0 on"
        if model
        else "synthetic heads only"
    )
    return [
        Claim(
            text=(
                "One head, V = I: by its angles the limit is farther from a simplex than as many"
                " tokens drawn from the same start. Mean share of draws that are as near or nearer,"
                " by family and start: the least lower end of its 95 % interval."
            ),
            measured=least(ends["place_angles"][:, 0]),
            low=0.5,
            high=1,
            because=(
                "clusters at tokens drawn at random have the mean 1/2; a pull to a simplex makes it"
                " less"
            ),
            differs=(
                f"{words['place_angles']}. Certified limits with three clusters or more, {another}."
                " Asked after the intervals at full size had been seen."
            ),
        ),
        Claim(
            text=(
                "One head, V = I: by the lengths it is not nearer than chance. The same mean share:"
                " the least upper end of its 95 % interval."
            ),
            measured=least(ends["place_norms"][:, 1]),
            low=0.5,
            high=1.1,
            because="the same",
            differs=f"{words['place_norms']}.",
        ),
    ]


def _of_several_heads(cases: Any) -> list[Claim]:
    rows = compared(cases)
    rows = rows.isel(row=rows["heads"].values > 1)
    starts, places = start_names(rows), rows["place_angles"].values
    pooled = np.array([np.mean(places[starts == one]) for one in np.unique(starts)])
    if len(pooled) < 3:
        return []
    words = {
        name: "; ".join(
            f"{kind} {np.mean(here[name].values):.2f} ({here.sizes['row']} runs)"
            for kind, here in by_kind(rows)
        )
        for name in ("place_angles", "place_norms")
    }
    return [
        Claim(
            text=(
                "Two heads or more, V = I: clusters are farther from a simplex than chance. Mean"
                " share of draws whose angles are as near or nearer, lower end of its 95 %"
                " interval."
            ),
            **of_mean(pooled),
            quantity="mean share of draws",
            expected=HALF,
            low=0.5,
            high=1,
            because=(
                "chance has the mean 1/2; a cluster between others is on their line, where no"
                " simplex is"
            ),
            differs=(
                f"{len(pooled)} starts, each counted once. Angles: {words['place_angles']}."
                f" Lengths: {words['place_norms']}. Certified limits."
            ),
        )
    ]


def _of_lines(cases: Any) -> list[Claim]:
    """Three clusters on a line."""
    line = select(compared(cases), clusters=3, rank=1, singles=0)
    between = line.isel(row=line["heads"].values > 1)
    if not between.sizes["row"]:
        return []
    return [
        Claim(
            text=(
                "REFINED: with several heads NC2 is arithmetic: a third cluster ends at a fraction"
                " p/q, q ≤ H, of the line between the other two. Largest difference of the spread"
                " of lengths from that of the nearest fraction."
            ),
            measured=max(off for off, _ in fractions_of(between)),
            low=0,
            high=1e-6,
            because=(
                "each head of the third looks at the first, at the second or at itself: z₃ = (a z₁"
                " + b z₂)/(a + b), a + b ≤ H; limits are certified within 1e-8 of the largest"
            ),
            differs=(
                f"{between.sizes['row']} certified limits; with H = 2 there is no fraction but 1/2."
                f" {fraction_words(line)}. Such angles are those of a line, and no simplex."
            ),
        )
    ]


def _of_the_plane(plane: Any) -> list[Claim]:
    clusters, d = plane["clusters"].values, int(plane["d"].values[0])
    places = plane["place_angles"].values
    return [
        Claim(
            text=(
                "More than three clusters in the plane cannot be a simplex, one head with M = I:"
                " least excess of the mean deviation of cosines over 1/d − 1/(C−1)."
            ),
            measured=float((plane["angles"].values - least_angles(clusters, d)).min()),
            low=0,
            high=2,
            because=(
                "trace: C unit vectors of R^d have Σ cos² ≥ C²/d, so Σ(cos + 1/(C−1))² ≥ C²(1/d −"
                " 1/(C−1)) over pairs, and none of them exceeds C/(C−1)"
            ),
            differs=(
                f"{np.sum(clusters - 1 > d)} of {len(clusters)} limits have more than three"
                f" clusters. With these symmetric scores {np.sum(places < 0.5)} of {len(places)}"
                " are nearer to a simplex than as many tokens of the start mostly are (mean share"
                f" {mean_in_words(places)}), but none is one."
            ),
        ),
    ]


def _of_numbers(cases: Any) -> list[Claim]:
    identity = select(cases, values="identity")
    known = decided(identity)
    one = select(known, heads=1)["limit_gap"].values
    off = known["off"].values
    shapes = zip(*(known[name].values for name in ("heads", "n", "d")), strict=True)
    allowed = np.array([_allowed(int(heads), min(int(n), int(d))) for heads, n, d in shapes])
    return [
        Claim(
            text=(
                "One head, V = I: NC2 of the certified limits is that of the run at τ = 22. Largest"
                " difference."
            ),
            measured=float(np.nanmax(one)),
            low=0,
            high=1e-6,
            because=(
                f"z comes to its limit like e^(−τ), which is {np.exp(-TAUS[-1]):.0e}, and steps"
                " have the tolerance 1e-8; 1e-6 leaves them a factor 100; limits are certified,"
                " with bounds of their own"
            ),
            differs=f"{np.isfinite(one).sum()} certified limits with three clusters or more.",
        ),
        Claim(
            text=(
                "NC1 by loops over tokens and a d × d pseudo-inverse is the same at τ = 4: largest"
                " relative difference."
            ),
            measured=float(np.nanmax(np.abs(cases["loop"].values - 1))),
            low=0,
            high=1e-6,
            because="the definition, without the singular values",
        ),
        Claim(
            text=(
                "V = I, 1 to 16 heads: the runs come to the certified limits: the farthest token"
                " at τ = 22, over the first diameter and over what the steps allow, of all runs."
            ),
            measured=float((off / allowed).max()),
            low=0,
            high=1,
            because=(
                f"steps with a tolerance (1, 2 and 4 heads): {ROOM:g} times that; fixed steps of h:"
                " h², the error of a step in which a leader changes. z itself comes like τ e^(−τ),"
                f" which is {TAUS[-1] * np.exp(-TAUS[-1]):.0e}; the runs know of no limit"
            ),
            differs=(
                f"{known.sizes['row']} runs; the farthest token is {off.max():.1g} of the first"
                f" diameter away, and in the median run {np.median(off):.0e}."
            ),
        ),
    ]


def _allowed(heads: int, d: int) -> float:
    """Return how far a run in d coordinates may end from its limit, over the first diameter."""
    if heads in TOLERANCES:
        return ROOM * TOLERANCES[heads]
    return (STEPS if d < WIDE else WIDE_STEPS)[1] ** 2


def _more_clusters(cases: Any) -> Any:
    return cases.assign(clusters=cases["clusters"] * 0 + cases["heads"] // 4 + 2)


spoils = {
    "labels shuffled": together(
        constant("cases", ("rate", "scatter_rate"), 0.0), constant("cases", "shuffled_p", 0.5)
    ),
    "NC1 falls too fast": together(constant("cases", "rate", -2.5), scaled("cases", "loop", 1.1)),
    # with own values always three; and runs end elsewhere
    "more clusters with more heads": together(
        changed("cases", _more_clusters),
        constant("cases", "clusters", 3, where={"values": "own"}),
        constant("cases", "off", 0.1),
    ),
    "clusters askew": together(
        shifted("cases", ("angles", "end_angles"), 1.0),
        shifted("cases", ("norms", "end_norms", "limit_gap"), 0.1),
    ),
    "clusters pulled to a simplex": together(
        constant("cases", ("place_angles", "place_norms"), 0.0),
        constant("cases", "angle_rate", -1.0),
    ),
    "a simplex in the plane": constant("plane", "angles", 0.0),
}
