"""What heads_and_clusters claims: what is exact, what the number of heads does, and the words of
the slides.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE
from attnlab.analysis.intervals import bootstrap_interval, exact_interval
from attnlab.experiments.common.certified import certified_in_words, decided
from attnlab.experiments.common.claims import (
    in_words,
    of_mean,
    of_rule,
    of_share,
    relative_difference,
    share_in_words,
)
from attnlab.experiments.common.heads import HEADS, as_shown, counted_backwards
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, replaced, scaled, shifted, together

from .experiment import COMPARED, EULER_STEP, MANY, SYNTHETIC
from .flows import CLOCK, END

GOING = 4.0
"""A tau at which merging is under way."""

ONE_HEAD_LESS = (
    "only a token that leads itself in every head can stand at a vertex; each further head is one"
    " more condition"
)
READING = "more than half is only a reading of the words: one cluster is the rule"


def paired(rows: Any, column: str) -> np.ndarray:
    """What a column is with MANY heads less what it is with one, for each start that has both."""
    one, many = (
        {
            (n, seed): value
            for n, seed, value in zip(
                *(some[name].values.tolist() for name in ("n", "seed", column)), strict=True
            )
        }
        for some in (select(rows, heads=count) for count in (1, MANY))
    )
    return np.array([many[start] - one[start] for start in sorted(one.keys() & many.keys())], float)


def of_runs(rows: Any) -> Any:
    """The rows whose end is that of a run: the others are certified."""
    return rows.isel(row=np.isin(rows["grade"].values, ("run", "undecided")))


def _more_words(families: list[Any], largest: int) -> str:
    """What runs say of more tokens than are certified."""
    if not any(rows.sizes["row"] for rows in families):
        return ""
    found = [in_words(bootstrap_interval(paired(rows, "count")), ".3g") for rows in families]
    return f" More than {largest} tokens, by runs to τ = {END:g}: {', and '.join(found)}."


def count_ones(rows: Any, **where: Any) -> tuple[int, int]:
    """(runs that end in one cluster, all runs)."""
    counts = (select(rows, **where) if where else rows)["count"].values
    return int(np.sum(counts == 1)), len(counts)


def claims(data: Data) -> list[Claim]:
    """What is exact, what the number of heads does, the words of the slides, and what depends on
    the steps.
    """
    cases = data["cases"]
    found = [*_exact(data), *_of_heads(cases), *_of_the_scheme(data), *_of_steps(cases)]
    return (
        found + _of_slides(cases) + _of_paragraphs(data["places"], int(cases.attrs["many"]))
        if "places" in data
        else found
    )


def _exact(data: Data) -> list[Claim]:
    one, equal = (data["checks"][name].values for name in ("one", "equal"))
    known = select(data["cases"], values="identity", family=SYNTHETIC, heads=1)
    inside = decided(known)["inner"].values > 0
    return [
        Claim(
            text=(
                f"{MANY} equal heads are one head with a faster clock, t → {MANY} t: largest"
                " difference of z, over the largest z."
            ),
            measured=relative_difference(equal, one),
            low=0,
            high=1e-7,
            because=(
                "x' = H P x is x' = P x in the time Ht, exactly; both runs have the tolerance 1e-9"
            ),
        ),
        Claim(
            text=(
                "One head: every certified limit is a corner of the hull of all. Starts where not:"
                f" {certified_in_words(known)}."
            ),
            measured=float(np.sum(inside)),
            low=0,
            high=0,
            because="a limit wins in its own head, so it is the farthest point in some direction",
        ),
    ]


def _of_heads(cases: Any) -> list[Claim]:
    cube = select(cases, values="identity", start="cube")
    free, alike = (select(cube, family=family) for family in SYNTHETIC)
    fewer = [bootstrap_interval(paired(decided(rows), "count")) for rows in (free, alike)]
    later, free_later = (bootstrap_interval(paired(rows, "merging")) for rows in (alike, free))
    single, slow = (select(rows, heads=MANY) for rows in (free, alike))
    ones, total = count_ones(decided(single))
    largest = int(decided(single)["n"].values.max())
    more = [rows.isel(row=rows["n"].values > largest) for rows in (free, alike)]
    by_size = ", ".join(
        "{} of {} for n = {}".format(*count_ones(decided(single), n=n), n)
        for n in np.unique(decided(single)["n"].values)
    )
    ends = "; ".join(
        f"n = {n}: {in_words(bootstrap_interval(select(slow, n=n)['count'].values), '.3g')}"
        for n in np.unique(slow["n"].values)
    )
    last = select(cases, heads=MANY, values="identity")["merging"].values
    good = select(cases, values="own", family="alike", heads=1)
    lead = good["count"].values[good["gap"].values > 0.4]
    return [
        Claim(
            text=(
                f"More heads, fewer clusters, V_h = I: mean number of certified limits with {MANY}"
                f" heads less that with one, n up to {largest}, upper end of the 95 % interval, of"
                " independent Q, K and of K = Q the larger."
            ),
            measured=max(high for _, high in fewer),
            published="no comparison",
            low=-np.inf,
            high=0,
            because=ONE_HEAD_LESS,
            differs=(
                f"The intervals: {', and '.join(in_words(one, '.3g') for one in fewer)}."
                f" {certified_in_words(select(cube, heads=(1, MANY), family=SYNTHETIC))}."
                + _more_words(more, largest)
            ),
        ),
        Claim(
            text=(
                f"{MANY} Gaussian heads whose scores have no sign leave ONE cluster: lower end of"
                f" the 95 % interval for the share of {total} certified draws, n up to {largest}."
            ),
            **of_rule(ones, total, "share of draws with one cluster", "draws"),
            published=(
                "small n: one cluster; larger n: several that merge slowly; still larger n:"
                " apparently stable ones"
            ),
            because=f"by the same condition no token stands; {READING}",
            differs=(
                f"One limit in {by_size}; {certified_in_words(single, 'draws')}. Runs to τ ="
                f" {END:g} leave one cluster in"
                f" {'{} of {}'.format(*count_ones(of_runs(single)))}: for few tokens as in the"
                " slides, for many not."
            ),
        ),
        Claim(
            text=(
                f"K = Q: with {MANY} heads the last merging is later in the clock τ than with one:"
                " difference, lower end of the 95 % interval."
            ),
            measured=later[0],
            quantity="later by",
            value=float(np.mean(later)),
            interval=later,
            sample="95 %",
            unit="of τ",
            published="several clusters that slowly merge",
            low=0,
            high=np.inf,
            because=(
                "a token that k of H heads do not hold leaves at the rate k/H of the clock τ; with"
                " one head the rate is 1"
            ),
            differs=(
                f"Clusters at the end (means, 95 %; {certified_in_words(slow, 'draws')}): {ends}."
                f" Here several do stay. Independent Q, K: {in_words(free_later, '.3g')} later."
            ),
        ),
        Claim(
            text=(
                f"With {MANY} heads all merging is over by t = 1, the time of the slides' first"
                f" picture: the latest, in t, of {len(last)} runs."
            ),
            measured=float(np.nanmax(last)) / MANY,
            published="several clusters that slowly merge, t = 1 to 20",
            low=0,
            high=1,
            because=(
                "the slides' own times; tokens with one leader are within 1 % of each other after τ"
                " = ln 100 = 4.6"
            ),
            differs=(
                "Not so in the flow: what merges later in pictures may be Euler's steps of 1.6 in"
                " the clock, or weights that we do not have."
            ),
        ),
        Claim(
            text=(
                "One head with its own V and a leading eigenvalue that is real, positive and ahead"
                " by 40 %, K = Q: the largest number of clusters of x over its size."
            ),
            measured=float(lead.max()) if len(lead) else np.nan,
            low=1,
            high=3,
            because=(
                "the theorem of the three hyperplanes: φ₁(z) has at most three limits, and x over"
                " its size tends to its part along φ₁"
            ),
        ),
    ]


def _of_slides(cases: Any) -> list[Claim]:
    """The three sentences, with MANY trained heads and V_h = I, from the cube and from
    paragraphs.
    """
    few, more, many = (int(cases.attrs[name]) for name in ("few", "more", "many"))
    every = select(cases, family="trained", heads=MANY, values="identity")
    who, n = f"{MANY} heads of {cases.attrs['model']}, V_h = I", every["n"].values
    small = every.isel(row=n <= few)
    pieces = select(every.isel(row=n < many), start="paragraph")
    last = select(cases, heads=MANY, values="identity")
    merged = {
        words: bootstrap_interval(rows["merging"].values)
        for words, rows in (
            ("more", select(every, n=more)),
            ("few", small),
            ("many", select(every, n=many)),
        )
    }
    latest = merged["more"]
    way = select(every, n=more)["counts"].values[:, int(np.searchsorted(CLOCK, GOING))]
    left = {
        start: [
            share_in_words(*count_ones(every, start=start, n=size), ".0%") for size in (more, many)
        ]
        for start in ("cube", "paragraph")
    }
    one = select(cases, family="trained", heads=1, values="identity", start="cube")
    first, largest = (
        int(size) for size in np.unique(one["n"].values[one["n"].values <= 30])[[0, -1]]
    )
    at = {
        size: dict(zip(rows["seed"].values.tolist(), rows["count"].values, strict=True))
        for size in (first, largest)
        for rows in [select(one, n=size)]
    }
    further = np.array(
        [
            at[largest][seed] - at[first][seed]
            for seed in sorted(at[first].keys() & at[largest].keys())
        ]
    )
    return [
        Claim(
            text=(
                f"Few tokens, one cluster ({who}, n up to {few}, cube and paragraphs): share of"
                " starts, lower end of the 95 % interval."
            ),
            **of_rule(*count_ones(decided(small)), "share of starts with one cluster"),
            because=READING,
            published="small n: one cluster",
            differs="CONFIRMED: {} of {}; {}.".format(
                *count_ones(small), certified_in_words(small)
            ),
        ),
        Claim(
            text=(
                f"More tokens ({who}, n = {more}): the mean t of the last merging, upper end of the"
                " 95 % interval, is before the first picture of the slides."
            ),
            measured=latest[1] / MANY,
            quantity="mean t of the last merging",
            value=float(np.mean(latest)) / MANY,
            interval=(latest[0] / MANY, latest[1] / MANY),
            sample="95 %",
            expected="before 1",
            published="larger n: several clusters that slowly merge, t = 1 to 20",
            low=0,
            high=1,
            because="t = 1 is the slides' first picture",
            differs=(
                f"REFUTED for these heads as to slowly: at τ = {GOING:g}, that is t ="
                f" {GOING / MANY:.2g}, there are {way.min():g} to {way.max():g} clusters, and the"
                f" last merging, read at whole τ, is at τ = {in_words(latest, '.3g')} in the mean"
                f" (n ≤ {few}: {in_words(merged['few'], '.3g')}, n = {many}:"
                f" {in_words(merged['many'], '.3g')}). One cluster in"
                f" {'{} of {}'.format(*count_ones(every, n=more))}."
            ),
        ),
        Claim(
            text=(
                f"Many tokens: the clusters that remain with {MANY} heads, V_h = I, are stable, not"
                " only apparently: the share of its attention that a corner of their hull keeps in"
                " its cluster, in any head: smallest of all runs with several."
            ),
            measured=float(last["kept"].values[last["count"].values > 1].min(initial=1)),
            published="still larger n: apparently stable clusters",
            low=0.99,
            high=1,
            because=(
                "a corner that gives attention to others moves inwards, so at rest the share is 1;"
                " clusters are as wide as 1 %"
            ),
            differs=(
                f"CONFIRMED where several remain, at t = ∞ where the limit is certified, else at τ"
                f" = {END:g}: {certified_in_words(last)}. With {who}: from the cube one is left in"
                f" {left['cube'][0]} for n = {more} and in {left['cube'][1]} for n = {many}; from"
                f" paragraphs in {' and '.join(left['paragraph'])}."
            ),
        ),
        Claim(
            text=(
                f"Paragraphs end in one cluster ({who}, pieces that do not overlap, n below"
                f" {many}): share, lower end of the 95 % interval."
            ),
            **of_rule(*count_ones(pieces), "share of pieces with one cluster", "pieces"),
            because=READING,
            published="larger n: several clusters; still larger n: stable ones",
            differs=(
                "Several are not seen with text: one cluster in"
                f" {share_in_words(*count_ones(pieces), '.0%')}; {certified_in_words(pieces, 'pieces')}."
            ),
        ),
        Claim(
            text=(
                f"One head of {cases.attrs['model']}, V = I, cube: {largest} tokens have more"
                f" clusters than the first {first} of them alone: mean difference, lower end of the"
                " 95 % interval."
            ),
            **of_mean(further),
            quantity="further clusters",
            expected="more than 0",
            published="more clusters for more tokens",
            low=1e-6,
            high=np.inf,
            because=(
                "with one head a token stands when it scores itself highest; each further token is"
                " a further chance"
            ),
            differs=f"CONFIRMED for one head, where clusters stay; {len(further)} starts.",
        ),
    ]


def _of_steps(cases: Any) -> list[Claim]:
    """Whether runs end at the certified limits; how many runs with own values depend on the step."""

    def other(**where: Any) -> tuple[int, int]:
        halved = select(cases, values="own", **where)["halved"].values
        return int(np.sum(halved[np.isfinite(halved)] != 0)), int(np.isfinite(halved).sum())

    identity = select(cases, values="identity")
    off = decided(identity)["off"].values
    far = int(np.sum(~(off <= OBSERVED_SCALE)))
    trained = [
        f"{some} of {many} with {heads}"
        for heads in HEADS
        for some, many in [other(family="trained", heads=heads)]
        if many
    ]
    own = "{} of {}".format(*other(family=SYNTHETIC))
    if trained:
        own += f"; {as_shown('trained', cases.attrs['model'])} heads: {', '.join(trained)} heads"
    return [
        Claim(
            text=(
                "V_h = I, 1 to 16 heads: the runs come to the certified limits. Share of"
                f" {len(off)} runs in which a token is farther than 1 % of the first diameter from"
                " its limit at the end, upper end of its 95 % interval."
            ),
            **of_share(far, len(off), "high", "runs"),
            quantity="share of runs that end elsewhere",
            expected="less than 1/20",
            low=0,
            high=0.05,
            because=(
                "clusters are taken at 1 %; intervals here are of 95 %: fewer than one wrong run in"
                " twenty is less than they leave open; the runs have fixed steps, and know of no"
                " limit"
            ),
            differs=(
                f"{far} of {len(off)}; {np.median(off):.1g} in the median run."
                f" {certified_in_words(identity)}. With own values clusters need not come to rest,"
                " and no limit is certified. There half the steps change the number of clusters,"
                f" Gaussian heads: {own}."
            ),
        ),
    ]


def _of_the_scheme(data: Data) -> list[Claim]:
    steps, test = data["euler"], data["checks"]
    growth, wanted = steps["growth"].values[steps["t"].values > 1], 1 + EULER_STEP * MANY
    early = select(steps, t=1)
    same = early["euler"].values == early["flow"].values
    said = {
        name: ", ".join(map(str, select(early, n=steps["n"].values.max())[name].values))
        for name in ("euler", "flow")
    }
    return [
        Claim(
            text=(
                f"The slides' step is not small: one Euler step with {MANY} heads multiplies"
                f" resting tokens by 1 + dt H = {wanted:.2g}, largest difference at the times"
                " shown."
            ),
            measured=float(np.abs(growth - wanted).max()),
            published="dt = 0.1",
            low=0,
            high=1e-6,
            because=(
                "closed form for tokens at rest; the flow has e^(dt H) ="
                f" {np.exp(EULER_STEP * MANY):.3g}"
            ),
            differs=(
                f"At t = 1 Euler's rescaled tokens are up to {early['off'].values.max():.2g} of the"
                f" first diameter off. The number of clusters is the flow's in {same.sum()} of"
                f" {len(same)} cases. With the larger n Euler has {said['euler']} where the flow"
                f" has {said['flow']}."
            ),
        ),
        Claim(
            text=(
                "Double precision ends long before the later pictures of the slides (Ht ="
                f" {MANY * 7} to {MANY * 20}): the largest Ht that a run reaches before it cannot"
                " order scores."
            ),
            measured=float(test["wall"].values.max()),
            published="t = 7, 10, 15, 20 with 16 heads",
            low=25,
            high=53 * np.log(2),
            because=(
                "in a cluster x differs by a constant while x grows like e^(Ht): relative"
                " differences reach 2⁻⁵³ at 36.7"
            ),
            differs=(
                "Later pictures show which tokens had merged before, and rounding inside the"
                " clusters."
            ),
        ),
        Claim(
            text=(
                "The runs, by the engine and with heads summed first, agree with SciPy's DOP853 at"
                f" τ = {COMPARED:g}: largest distance over the first diameter."
            ),
            measured=float(test["off"].values.max()),
            low=0,
            high=OBSERVED_SCALE / 2,
            because=(
                "clusters are taken at 1 % of the first diameter, and two tokens may be off by "
                "half of that each"
            ),
        ),
    ]


def _of_paragraphs(places: Any, many: int) -> list[Claim]:
    """Where clusters of paragraphs are: of pieces that do not overlap, and of the longest, which
    share theirs with others.
    """
    identity = select(places, values="identity")

    def shares(heads: int, level: str, *, longest: bool = False) -> np.ndarray:
        """For each piece, the share of its clusters that are nearer than mixtures are."""
        rows = select(identity, heads=heads)
        rows = rows.isel(cluster=(rows["n"].values == many) == longest)
        nearer, piece = (
            rows["cosine"].values > rows[level].values,
            rows["n"].values * 1000 + rows["seed"].values,
        )
        return np.array([nearer[piece == one].mean() for one in np.unique(piece)])

    def median(heads: int, name: str) -> float:
        return float(np.median(select(identity, heads=heads)[name].values))

    def most(of: np.ndarray) -> tuple[int, int]:
        """(pieces of which more than half of the clusters are nearer, all pieces)."""
        return int(np.sum(of > 0.5)), len(of)

    one, near = shares(1, "high"), shares(MANY, "high")
    all_heads, longest = (
        most(shares(MANY, "half", longest=is_longest)) for is_longest in (False, True)
    )
    condition = f"pieces of prose that do not overlap, n below {many}, no special tokens"
    claim = partial(
        Claim, published="when a cluster forms, it sits near one of the initial vectors"
    )
    return [
        claim(
            text=(
                f"Paragraphs, one head of {places.attrs['model']}, V = I: share of {len(one)}"
                " pieces most of whose clusters are nearer to a first token than 19 of 20 random"
                " mixtures of the tokens: lower end of the 95 % interval."
            ),
            **of_share(*most(one), what="pieces"),
            quantity="share of pieces",
            expected="more than 1/10, which chance would not exceed",
            low=0.1,
            high=1,
            because=(
                "by chance, with weights uniform on the simplex, 5 % of clusters are so near, and"
                f" more than half of those of a piece in at most 10 % of the pieces ({condition})"
            ),
            differs=(
                f"CONFIRMED for one head: {most(one)[0]} of {len(one)} pieces; {one.mean():.0%} of"
                f" a piece's clusters in the mean ({in_words(bootstrap_interval(one), '.3g')}),"
                f" median cosine {median(1, 'cosine'):.2f}."
            ),
        ),
        claim(
            text=(
                f"Paragraphs, V = I: with {MANY} heads a piece's clusters are less often so near"
                f" than with one: difference of the share, mean over {len(one)} pieces, upper end"
                " of the 95 % interval."
            ),
            **of_mean(near - one, "high", "pieces"),
            quantity="change of the share",
            expected="less than 0",
            low=-np.inf,
            high=-1e-6,
            because=f"0 would be no difference ({condition})",
            differs=(
                f"REFUTED as a rule for {MANY} of these heads: so near in {most(near)[0]} of"
                f" {len(near)} pieces, where chance gives 5 %; nearer than the median mixture in"
                f" {all_heads[0]} of {all_heads[1]} ({in_words(exact_interval(*all_heads), '.3g')},"
                f" by chance one half), and {longest[0]} of {longest[1]} with n = {many}; median"
                f" cosine {median(MANY, 'cosine'):.2f}, that of mixtures"
                f" {median(MANY, 'half'):.2f}. With its special tokens a text may gather at one of"
                " these: see real_sentence."
            ),
        ),
    ]


def _other_places(data: Data) -> Data:
    """Clusters of one head anywhere, those of several at first tokens."""
    if "places" not in data:
        return data
    return together(
        constant("places", "cosine", 1.0), constant("places", "cosine", 0.0, where={"heads": 1})
    )(data)


def _few_trained(cases: Any) -> Any:
    """Trained clusters that do not grow in number with the tokens."""
    few = 1 + (cases["n"] == cases["n"].min())
    return cases.assign(count=cases["count"].where(cases["family"] != "trained", few))


spoils = {
    "one cluster too many": together(
        shifted("cases", "count", 1, where={"heads": 1}),
        shifted("cases", "count", 2, where={"heads": 1, "values": "own"}),
    ),
    "heads counted backwards": replaced("cases", "heads", counted_backwards),
    "one head with clusters inside": together(
        constant("cases", "inner", 0), constant("cases", "inner", 1, where={"heads": 1})
    ),
    "mergings at the times of the slides": changed(
        "cases", lambda cases: cases.assign(merging=cases["merging"] * cases["heads"])
    ),
    "trained clusters do not grow in number": changed("cases", _few_trained),
    "corners that are not held": scaled("cases", "kept", 0.5),
    "runs that end elsewhere": shifted("cases", "off", 1),
    "Euler steps grow like the flow": constant("euler", "growth", np.exp(EULER_STEP * MANY)),
    "equal heads that drift, other runs, no end of double precision": together(
        scaled("checks", "equal", 1.001),
        shifted("checks", "off", 0.02),
        scaled("checks", "wall", 10),
    ),
    "clusters of paragraphs elsewhere": _other_places,
}
