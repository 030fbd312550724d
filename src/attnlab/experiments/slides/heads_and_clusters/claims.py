"""What heads_and_clusters claims: what is exact, what the number of heads does, and the words of the slides."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE
from attnlab.analysis.intervals import bootstrap_interval, exact_interval
from attnlab.experiments.common import merging as flows
from attnlab.experiments.common.heads import HEADS, as_shown, counted_backwards
from attnlab.experiments.datasets import rows_where
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, replaced, scaled, shifted, together

MANY = max(HEADS)

SYNTHETIC = ("synthetic", "alike")
"""Q_h and K_h independent, so that scores have no sign; or Q_h = K_h, so that every Q_h^T K_h is positive definite."""

EULER_STEP = 0.1
"""The slides' time step."""

GOING = 4.0
"""A tau at which merging is under way."""

COMPARED = 6.0
"""The tau at which SciPy is asked."""


def chosen(data: Data, **where: Any) -> dict[str, np.ndarray]:
    """The columns of the cases with these entries."""
    cases, keep = data["cases"], rows_where(data["cases"], **where)
    return {str(name): cases[name].values[keep] for name in cases.data_vars}


def paired(data: Data, column: str, fewer: int, more: int, **where: Any) -> np.ndarray:
    """What `column` is with more heads less what it is with fewer, for each start."""
    first, second = chosen(data, heads=fewer, **where)[column], chosen(data, heads=more, **where)[column]
    return np.asarray(second, float) - np.asarray(first, float)


def in_words(interval: tuple[float, float]) -> str:
    """Both ends."""
    return f"{interval[0]:.3g} to {interval[1]:.3g}"


def claims(data: Data) -> list[Claim]:
    """What is exact, what the number of heads does, the words of the slides, and what hangs on the steps."""
    found = [*_exact(data), *_of_heads(data), *_of_the_scheme(data), *_of_steps(data)]
    return found + _of_slides(data) + _of_paragraphs(data) if "places" in data else found


def _exact(data: Data) -> list[Claim]:
    test = data["checks"]
    one, equal = test["one"].values, test["equal"].values
    known = chosen(data, values="identity", family=SYNTHETIC, heads=1)
    decided = known["certified"] > 0
    is_other = (known["count"] != known["certified"]) | (known["inner"] > 0)
    wrong = float(np.sum(is_other[decided])) if decided.any() else np.nan
    return [
        Claim(text=f"{MANY} equal heads are one head with a faster clock, t → {MANY} t: largest difference of z, over the "
              "largest z.", measured=float(np.abs(one - equal).max() / np.abs(one).max()), low=0, high=1e-7,
              because="x' = H P x is x' = P x in the time Ht, exactly; both runs have the tolerance 1e-9"),
        Claim(text=f"One head: the clusters that are seen at τ = {flows.END:g} are as many as the certified limits, and all "
              f"are corners of their hull: starts where not, of {int(decided.sum())} decided.", measured=wrong, low=0, high=0,
              because="the certificate of t = ∞, an event-driven computation that shares no step with these runs"),
    ]


def _of_heads(data: Data) -> list[Claim]:
    identity: dict[str, Any] = {"values": "identity", "start": "cube"}
    fewer = {family: bootstrap_interval(paired(data, "count", 1, MANY, family=family, **identity)) for family in SYNTHETIC}
    single = chosen(data, heads=MANY, family="synthetic", **identity)
    sizes = np.unique(single["n"])
    ones, total = int(np.sum(single["count"] == 1)), len(single["count"])
    by_size = ", ".join(f"{int(np.sum(single['count'][single['n'] == n] == 1))} of {int(np.sum(single['n'] == n))} for n = {n}"
                        for n in sizes)
    later = bootstrap_interval(paired(data, "merging", 1, MANY, family="alike", **identity))
    free = bootstrap_interval(paired(data, "merging", 1, MANY, family="synthetic", **identity))
    last = chosen(data, heads=MANY, values="identity")["merging"]
    slow = chosen(data, heads=MANY, family="alike", **identity)
    ends = [bootstrap_interval(slow["count"][slow["n"] == n]) for n in (sizes[0], sizes[-1])]
    good = chosen(data, values="own", family="alike", heads=1)
    lead = good["gap"] > 0.4
    return [
        Claim(text=f"More heads, fewer clusters, V_h = I: mean number with {MANY} heads less that with one, upper end of the "
              "95 % interval, of independent Q, K and of K = Q the larger.", measured=max(high for _, high in fewer.values()),
              published="no comparison", low=-np.inf, high=0, because="only a token that leads itself in every head can stand "
              "at a vertex; each further head is one more condition",
              differs=f"The intervals: {in_words(fewer['synthetic'])}, and {in_words(fewer['alike'])}."),
        Claim(text=f"{MANY} Gaussian heads whose scores have no sign leave ONE cluster: lower end of the 95 % interval for the "
              f"share of {total} draws, n up to {sizes[-1]}.", measured=exact_interval(ones, total)[0],
              published="small n: one cluster; larger n: several that merge slowly; still larger n: apparently stable ones",
              low=0.5, high=1, because="by the same condition nobody stands; more than half is only a reading of the words: "
              "one cluster is the rule", differs=f"One cluster in {by_size}: for few tokens as in the slides, for many not."),
        Claim(text=f"K = Q: with {MANY} heads the last merging is later in the clock τ than with one: difference, lower end of "
              "the 95 % interval.", measured=later[0], published="several clusters that slowly merge", low=0, high=np.inf,
              because="a token that k of H heads do not hold leaves at the rate k/H of the clock τ; with one head the rate is 1",
              differs=f"At the end there are {in_words(ends[0])} clusters for n = {sizes[0]}, {in_words(ends[1])} for n = "
              f"{sizes[-1]} (means, 95 %): here several do stay. Independent Q, K: {in_words(free)} later."),
        Claim(text=f"With {MANY} heads all merging is over by t = 1, where the first picture of the slides is: the latest, in "
              f"t, of {len(last)} runs.", measured=float(np.nanmax(last)) / MANY,
              published="several clusters that slowly merge, t = 1 to 20", low=0, high=1,
              because="the slides' own times; tokens with one leader are within 1 % of each other after τ = ln 100 = 4.6",
              differs="Not so in the flow: what merges later in pictures may be Euler's steps of 1.6 in the clock, or weights "
              "that we do not have."),
        Claim(text="One head with its own V and a leading eigenvalue that is real, positive and ahead by 40 %, K = Q: the "
              "largest number of clusters of x over its size.",
              measured=float(good["count"][lead].max()) if lead.any() else np.nan, low=1, high=3,
              because="the theorem of the three hyperplanes: φ₁(z) has at most three limits, and x over its size tends to its "
              "part along φ₁"),
    ]


def _of_slides(data: Data) -> list[Claim]:
    """The three sentences, with MANY trained heads and V_h = I, from the cube and from paragraphs."""
    facts = data["cases"].attrs
    few, more, many = (int(facts[name]) for name in ("few", "more", "many"))
    every = chosen(data, family="trained", heads=MANY, values="identity")
    who = f"{MANY} heads of {facts['model']}, V_h = I"

    def ones(*sizes: int, start: Any = ("cube", "paragraph")) -> tuple[int, int]:
        counts = every["count"][np.isin(every["n"], sizes) & np.isin(every["start"], start)]
        return int(np.sum(counts == 1)), len(counts)

    def said(found: tuple[int, int]) -> str:
        low, high = exact_interval(*found)
        return f"{found[0]} of {found[1]} ({low:.0%} to {high:.0%})"

    def merged(n: int) -> tuple[float, float]:
        return bootstrap_interval(every["merging"][every["n"] == n])

    small = [int(n) for n in np.unique(every["n"]) if n <= few]
    below = [int(n) for n in np.unique(every["n"]) if n < many]
    held = chosen(data, heads=MANY, values="identity")
    latest = merged(more)
    way = every["counts"][every["n"] == more, int(np.searchsorted(flows.CLOCK, GOING))]
    one = chosen(data, family="trained", heads=1, values="identity", start="cube")
    first, largest = (int(n) for n in np.unique(one["n"][one["n"] <= 30])[[0, -1]])
    seeds = np.intersect1d(one["seed"][one["n"] == first], one["seed"][one["n"] == largest])
    at = {n: np.array([one["count"][(one["n"] == n) & (one["seed"] == seed)][0] for seed in seeds]) for n in (first, largest)}
    reading = "more than half is only a reading of the words: it is the rule"
    return [
        Claim(text=f"Few tokens, one cluster ({who}, n up to {few}, cube and paragraphs): share of starts, lower end of the 95 "
              "% interval.", measured=exact_interval(*ones(*small))[0], published="small n: one cluster", low=0.5, high=1,
              because=reading, differs=f"CONFIRMED: {ones(*small)[0]} of {ones(*small)[1]}."),
        Claim(text=f"More tokens ({who}, n = {more}): the mean t of the last merging, upper end of the 95 % interval, is "
              "before the first picture of the slides.", measured=latest[1] / MANY,
              published="larger n: several clusters that slowly merge, t = 1 to 20", low=0, high=1,
              because="t = 1 is the slides' first picture", differs=f"REFUTED for these heads as to slowly: at τ = {GOING:g}, "
              f"that is t = {GOING / MANY:.2g}, there are {way.min():g} to {way.max():g} clusters, and the last merging, read "
              f"at whole τ, is at τ = {in_words(latest)} in the mean (n ≤ {few}: "
              f"{in_words(bootstrap_interval(every['merging'][every['n'] <= few]))}, n = {many}: {in_words(merged(many))}). One "
              f"cluster in {ones(more)[0]} of {ones(more)[1]}."),
        Claim(text=f"Many tokens: the clusters that remain with {MANY} heads, V_h = I, are stable, not only apparently: the "
              "share of its attention that a corner of their hull keeps in its cluster, in any head: smallest of all runs "
              "with several.", measured=float(held["kept"][held["count"] > 1].min(initial=1)),
              published="still larger n: apparently stable clusters", low=0.99, high=1,
              because="a corner that gives attention to others moves inwards, so at rest the share is 1; clusters are as wide "
              "as 1 %", differs=f"CONFIRMED where several remain. With {who}: from the cube one is left in "
              f"{said(ones(more, start='cube'))} for n = {more} and in {said(ones(many, start='cube'))} for n = {many}; from "
              f"paragraphs in {said(ones(more, start='paragraph'))} and {said(ones(many, start='paragraph'))}."),
        Claim(text=f"Paragraphs end in one cluster ({who}, pieces that do not overlap, n below {many}): share, lower end of "
              "the 95 % interval.", measured=exact_interval(*ones(*below, start="paragraph"))[0],
              published="larger n: several clusters; still larger n: stable ones", low=0.5, high=1, because=reading,
              differs=f"Several are not seen with text: one cluster in {said(ones(*below, start='paragraph'))}."),
        Claim(text=f"One head of {facts['model']}, V = I, cube: {largest} tokens have more clusters than the first {first} of "
              "them alone: mean difference, lower end of the 95 % interval.",
              measured=bootstrap_interval(at[largest] - at[first])[0],
              published="more clusters for more tokens", low=1e-6, high=np.inf,
              because="with one head a token stands when it scores itself highest; each further token is a further chance",
              differs=f"CONFIRMED for one head, where clusters stay; {len(seeds)} starts."),
    ]


def _of_steps(data: Data) -> list[Claim]:
    """How many runs have another number of clusters by half the steps."""

    def other(**where: Any) -> tuple[int, int, float]:
        rows = chosen(data, **where)
        known = np.isfinite(rows["halved"])
        apart = float(np.median(rows["apart"][known])) if known.any() else 0.0
        return int(np.sum(rows["halved"][known] != 0)), int(known.sum()), apart

    identity, own = other(values="identity"), other(values="own", family=SYNTHETIC)
    by_heads = {count: other(values="own", family="trained", heads=count) for count in HEADS}
    trained = as_shown("trained", data["cases"].attrs["model"])
    said = ", ".join(f"{count[0]} of {count[1]} with {heads}" for heads, count in by_heads.items() if count[1])
    return [
        Claim(text=f"V_h = I: runs of {identity[1]} whose number of clusters at the end is another by half the steps: share, "
              "upper end of its 95 % interval.", measured=exact_interval(*identity[:2])[1], low=0, high=0.05,
              because="intervals here are of 95 %: fewer than one wrong run in twenty is less than they leave open",
              differs=f"{identity[0]} of {identity[1]}; tokens are {identity[2]:.1g} of the first diameter apart in the "
              f"median run. With "
                  f"own values, which need not come to rest, Gaussian heads: {own[0]} of {own[1]}" + (f"; {trained} heads: "
                  f"{said} "
                  "heads." if said else ".")),
    ]


def _of_the_scheme(data: Data) -> list[Claim]:
    steps, test = data["euler"], data["checks"]
    late, early = steps["t"].values > 1, steps["t"].values == 1
    wanted = 1 + EULER_STEP * MANY
    same = (steps["euler"].values == steps["flow"].values)[early]
    many = early & (steps["n"].values == steps["n"].values.max())
    said = {name: ", ".join(str(count) for count in steps[name].values[many]) for name in ("euler", "flow")}
    return [
        Claim(text=f"The slides' step is not small: one Euler step with {MANY} heads multiplies resting tokens by 1 + dt H = "
              f"{wanted:.2g}, largest difference at the times shown.",
              measured=float(np.abs(steps["growth"].values[late] - wanted).max()), published="dt = 0.1", low=0, high=1e-6,
              because=f"closed form for tokens at rest; the flow has e^(dt H) = {np.exp(EULER_STEP * MANY):.3g}",
              differs=f"At t = 1 Euler's rescaled tokens are up to {steps['off'].values[early].max():.2g} of the first "
              f"diameter off, and the number of clusters is the flow's in {int(same.sum())} of {len(same)} cases; with the "
              f"larger n Euler has {said['euler']} where the flow has {said['flow']}."),
        Claim(text=f"Double precision ends long before the later pictures of the slides (Ht = {MANY * 7} to {MANY * 20}): the "
              "largest Ht that a run reaches before it cannot order scores.", measured=float(test["wall"].values.max()),
              published="t = 7, 10, 15, 20 with 16 heads", low=25, high=53 * np.log(2),
              because="in a cluster x differs by a constant while x grows like e^(Ht): relative differences reach 2⁻⁵³ at 36.7",
              differs="Later pictures show which tokens had merged before, and rounding inside the clusters."),
        Claim(text=f"The runs, by the engine and with heads summed first, agree with SciPy's DOP853 at τ = {COMPARED:g}: "
              "largest distance over the first diameter.", measured=float(test["off"].values.max()), low=0,
              high=OBSERVED_SCALE / 2, because="clusters are taken at 1 % of the first diameter, and two tokens may be off by "
              "half of that each"),
    ]


def _of_paragraphs(data: Data) -> list[Claim]:
    """Where clusters of paragraphs are: of pieces that do not overlap, and of the longest, which share theirs with others."""
    places, many = data["places"], int(data["cases"].attrs["many"])
    words = "when a cluster forms, it sits near one of the initial vectors"

    def shares(heads: int, level: str, *, longest: bool = False) -> np.ndarray:
        """For each piece, the share of its clusters that are nearer than mixtures are."""
        rows = rows_where(places, heads=heads, values="identity") & ((places["n"].values == many) == longest)
        nearer = (places["cosine"].values > places[level].values)[rows]
        piece = places["n"].values[rows] * 1000 + places["seed"].values[rows]
        return np.array([nearer[piece == one].mean() for one in np.unique(piece)])

    def median(heads: int, name: str) -> float:
        return float(np.median(places[name].values[rows_where(places, heads=heads, values="identity")]))

    def most(of: np.ndarray) -> tuple[int, int]:
        """(pieces of which more than half of the clusters are nearer, all pieces)."""
        return int(np.sum(of > 0.5)), len(of)

    one, near = shares(1, "high"), shares(MANY, "high")
    all_heads, longest = shares(MANY, "half"), shares(MANY, "half", longest=True)
    condition = f"pieces of prose that do not overlap, n below {many}, no special tokens"
    return [
        Claim(text=f"Paragraphs, one head of {places.attrs['model']}, V = I: share of {len(one)} pieces most of whose clusters "
              "are nearer to a first token than 19 of 20 random mixtures of the tokens: lower end of the 95 % interval.",
              measured=exact_interval(*most(one))[0], published=words, low=0.1, high=1,
              because="by chance, with weights uniform on the simplex, 5 % of clusters are so near, and more than half of "
              f"those of a piece in at most 10 % of the pieces ({condition})",
              differs=f"CONFIRMED for one head: {most(one)[0]} of {len(one)} pieces; {one.mean():.0%} of a piece's clusters in "
              f"the mean ({in_words(bootstrap_interval(one))}), median cosine {median(1, 'cosine'):.2f}."),
        Claim(text=f"Paragraphs, V = I: with {MANY} heads a piece's clusters are less often so near than with one: difference "
              f"of the share, mean over {len(one)} pieces, upper end of the 95 % interval.",
              measured=bootstrap_interval(near - one)[1], published=words, low=-np.inf, high=-1e-6,
              because=f"0 would be no difference ({condition})", differs=f"REFUTED as a rule for {MANY} of these heads: so "
              f"near in {most(near)[0]} of {len(near)} pieces, where chance gives 5 %; nearer than the median mixture in "
              f"{most(all_heads)[0]} of {len(all_heads)} ({in_words(exact_interval(*most(all_heads)))}, by chance one half), "
              f"and {most(longest)[0]} of {len(longest)} with n = {many}; median cosine {median(MANY, 'cosine'):.2f}, that of "
              f"mixtures {median(MANY, 'half'):.2f}. With its special tokens a text may gather at one of these: see "
              "real_sentence."),
    ]


def _other_places(data: Data) -> Data:
    """Clusters of one head anywhere, those of several at first tokens."""
    if "places" not in data:
        return data
    return together(constant("places", "cosine", 1.0), constant("places", "cosine", 0.0, where={"heads": 1}))(data)


spoils = {
    "one cluster too many": together(shifted("cases", "count", 1, where={"heads": 1}),
                                     shifted("cases", "count", 2, where={"heads": 1, "values": "own"})),
    "heads counted backwards": replaced("cases", "heads", counted_backwards),
    "one head with clusters inside": together(constant("cases", "inner", 0), constant("cases", "inner", 1, where={"heads": 1})),
    "mergings at the times of the slides": changed("cases", lambda cases: cases.assign(merging=cases["merging"] * cases["heads"])),
    "trained clusters do not grow in number": changed("cases", lambda cases: cases.assign(count=cases["count"].where(
        cases["family"] != "trained", 1 + (cases["n"] == cases["n"].min())))),
    "corners that are not held": scaled("cases", "kept", 0.5),
    "numbers that hang on the step": shifted("cases", "halved", 1),
    "Euler steps grow like the flow": constant("euler", "growth", np.exp(EULER_STEP * MANY)),
    "equal heads that drift, other runs, no end of double precision": together(
        scaled("checks", "equal", 1.001), shifted("checks", "off", 0.02), scaled("checks", "wall", 10)),
    "clusters of paragraphs elsewhere": _other_places,
}
