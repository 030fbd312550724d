"""The claims of neural_collapse: what collapses, how fast, and what does not become a simplex."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import binom

from attnlab.analysis.intervals import bootstrap_interval, exact_interval
from attnlab.experiments.common.heads import HEADS, as_shown
from attnlab.experiments.datasets import rows_where
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, scaled, shifted, together

from .runs import KINDS, SHUFFLES, TAUS

AT_REST = 1e-9
"""The largest change of an entry of the attention matrix over the window in which rates are measured."""

CLOSED_HEADS = (2, 4)
"""Where a cluster between two others has come to rest at τ = 22: it comes like e^(−2τ/H), 2e-5 for H = 4."""


def runs_by_heads(rows: Any) -> str:
    """How many runs there are for each number of heads."""
    return "runs " + ", ".join(f"H = {count}: {int(np.sum(rows['heads'].values == count))}" for count in HEADS)


def kind_words(family: str, start: str, model: str) -> str:
    """A family and its start, in words."""
    name = "synthetic heads" if family == "synthetic" else f"heads of {model}"
    return f"{name}, {'random start' if start == 'cube' else 'pieces of text'}"


def at_rest(cases: Any) -> Any:
    """The runs with V = I and two clusters or more whose attention no longer changes in the window."""
    return cases.isel(row=rows_where(cases, values="identity", is_decided=1) & (cases["clusters"].values > 1)
                      & (cases["moved"].values < AT_REST))


def compared(cases: Any, values: str = "identity") -> Any:
    """The decided runs with three clusters or more: those in which NC2 can fail."""
    return cases.isel(row=rows_where(cases, values=values, is_decided=1) & (cases["clusters"].values > 2))


def last_of(curve: np.ndarray) -> np.ndarray:
    """The last number that is there of every curve (row, tau)."""
    return np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in curve])


def farthest(numbers: np.ndarray, aim: float) -> float:
    """Of numbers that ought to be `aim` the one that is farthest from it."""
    return float(numbers[np.argmax(np.abs(numbers - aim))])


def least(numbers: Any) -> float:
    """The least of numbers; NaN where there are none."""
    return float(np.min(numbers)) if len(numbers) else float("nan")


def places(cases: Any, name: str) -> dict[tuple[str, str], np.ndarray]:
    """The places among chance of one head with V = I, of every family and start that has three runs or more."""
    found = {}
    for family, start in KINDS:
        rows = compared(cases)
        here = rows[name].values[rows_where(rows, family=family, start=start, heads=1)]
        if len(here) > 2:
            found[family, start] = here
    return found


def interval_words(values: np.ndarray) -> str:
    """The mean, its 95 % interval, and how many."""
    low, high = bootstrap_interval(values)
    return f"{np.mean(values):.2f} ({low:.2f} to {high:.2f}, {len(values)} runs)"


def several_heads_words(cases: Any, name: str) -> str:
    """The mean place for two heads and more, for every family and start."""
    rows = compared(cases)
    found = []
    for family, start in KINDS:
        here = rows[name].values[rows_where(rows, family=family, start=start) & (rows["heads"].values > 1)]
        if len(here):
            found.append(f"{kind_words(family, start, cases.attrs['model'])} {np.mean(here):.2f} ({len(here)} runs)")
    return "; ".join(found) or "no such run"


def start_names(rows: Any) -> np.ndarray:
    """The start of each row, whatever its number of heads: rows of one start are not independent."""
    return np.array([f"{family} {start} {rng}" for family, start, rng in
                     zip(*(rows[name].values for name in ("family", "start", "rng")), strict=True)])


def place_by_start(cases: Any) -> np.ndarray:
    """The mean place of the angles of a start over its numbers of heads from two on."""
    rows = compared(cases)
    rows = rows.isel(row=rows["heads"].values > 1)
    names = start_names(rows)
    return np.array([np.mean(rows["place_angles"].values[names == name]) for name in np.unique(names)])


def starts_with_three(rows: Any) -> tuple[int, int]:
    """How many starts have three clusters or more with some number of heads, and how many starts there are."""
    names = start_names(rows)
    return len(np.unique(names[rows["clusters"].values > 2])), len(np.unique(names))


def three_words(cases: Any, values: str) -> str:
    """How many runs have three clusters or more, for every family, start and number of heads."""
    found = []
    for family, start in KINDS:
        rows = cases.isel(row=rows_where(cases, family=family, start=start, values=values, is_decided=1))
        counts = [rows["clusters"].values[rows["heads"].values == count] for count in HEADS]
        if rows.sizes["row"]:
            found.append(kind_words(family, start, cases.attrs["model"]) + " "
                         + ", ".join(f"{int(np.sum(here > 2))}/{len(here)}" for here in counts))
    return f"Runs with three clusters or more for H = {', '.join(map(str, HEADS))}: {'; '.join(found)}."


def fewer_with_more_heads(identity: Any) -> tuple[int, int]:
    """Of the starts whose number of clusters differs between 1 and 16 heads: in how many there are fewer with 16, and all."""
    counts: dict[int, dict[str, int]] = {}
    for heads in (1, max(HEADS)):
        rows = identity.isel(row=identity["heads"].values == heads)
        counts[heads] = dict(zip(start_names(rows).tolist(), rows["clusters"].values, strict=True))
    change = [many - counts[1][key] for key, many in counts[max(HEADS)].items() if key in counts[1]]
    return int(np.sum(np.array(change) < 0)), int(np.sum(np.array(change) != 0))


def share_of_one(identity: Any) -> str:
    """How many of the runs with 16 heads end in one cluster, in words."""
    many = identity.isel(row=identity["heads"].values == max(HEADS))
    return f"{int(np.sum(many['clusters'].values + many['singles'].values == 1))} of {many.sizes['row']}"


def tail(count: int, total: int) -> float:
    """The chance of `count` heads or more among `total` throws of a coin."""
    return float(binom.sf(count - 1, total, 0.5))


def unequal_lengths(position: float) -> float:
    """NC2 of lengths of three points 0, 1 and `position` of a line, by hand."""
    lengths = np.abs(np.array([0.0, 1.0, position]) - (1 + position) / 3)
    return float(lengths.std() / lengths.mean())


def nearest_fraction(heads: int, norms: float) -> tuple[float, Fraction]:
    """How far an NC2 of lengths is from that of a third cluster at a fraction p/q, q at most H, of a line; and the nearest.

    p/q and 1 − p/q are alike, so p/q is at most 1/2.
    """
    known = sorted({Fraction(p, q) for q in range(2, heads + 1) for p in range(1, q // 2 + 1)})
    return min((abs(norms - unequal_lengths(float(one))), one) for one in known)


def from_fractions(rows: Any) -> np.ndarray:
    """How far the NC2 of lengths of each row is from that of the nearest fraction."""
    return np.array([nearest_fraction(int(heads), norms)[0] for heads, norms in
                     zip(rows["heads"].values, last_of(rows["norms"].values), strict=True)])


def fraction_words(rows: Any) -> str:
    """Of runs with a third cluster on a line, for each number of heads: how many, where, and how far attention has moved."""
    found = []
    for heads in np.unique(rows["heads"].values):
        some = rows.isel(row=rows["heads"].values == heads)
        near = [nearest_fraction(int(heads), norms) for norms in last_of(some["norms"].values)]
        moved = float(some["moved"].values.max())
        found.append(f"H = {heads}: {len(near)} at {', '.join(sorted({str(one) for _, one in near}))}, off by at most "
                     f"{max(off for off, _ in near):.0e}"
                     + (f", though an entry of P changes by {moved:.2g} from τ = 10 to 18" if moved > AT_REST else ""))
    return "; ".join(found)


def slope_words(rows: Any) -> str:
    """Slopes of NC1 beside −2(1 − (a + b)/H) where three clusters of H > 2 heads say what a + b is: p/q with 2q > H."""
    found = []
    for heads, norms, rate in zip(rows["heads"].values, last_of(rows["norms"].values), rows["rate"].values, strict=True):
        _, one = nearest_fraction(int(heads), norms)
        if 2 * one.denominator > heads:
            found.append(f"H = {heads} at {one}, so a + b = {one.denominator}: {rate:.2f}, by the formula "
                         f"{2 * (one.denominator / heads - 1):.2f}")
    return "; ".join(found) or "none here"


def claims(data: Data) -> list[Claim]:
    """All claims."""
    return [*_of_nc1(data["cases"]), *_of_nc2(data["cases"]), *_of_the_plane(data["plane"]), *_of_numbers(data["cases"])]


def _of_nc1(cases: Any) -> list[Claim]:
    still = at_rest(cases)
    is_full = still["rank"].values == still["clusters"].values - 1
    mixed = still.isel(row=~is_full & (still["heads"].values == 2))
    others = still.isel(row=~is_full & rows_where(still, clusters=3, rank=1, singles=0) & (still["heads"].values > 2))
    identity = cases.isel(row=cases["values"].values == "identity")
    fewer, differ = fewer_with_more_heads(identity)
    good = cases.isel(row=rows_where(cases, is_good=1, is_decided=1, clusters=2) & (cases["moved"].values < AT_REST))
    made = [
        Claim(text=f"In one sense yes: tokens of a cluster become one point. V = I, {runs_by_heads(still)}: slope in τ = Ht of "
              "the logarithm of the scatter inside clusters over all scatter, the one farthest from −2 of all runs with two "
              "clusters or more and attention at rest.", measured=farthest(still["scatter_rate"].values, -2.0),
              published="clusters form; the analogy to neural collapse is left as a question", low=-2.02, high=-1.98,
              because="tokens of one cluster have the same direction, so each head gives them one and the same leader: x_i − "
              "x_j is constant, and z_i − z_j falls like e^(−τ)",
              differs=f"{still.sizes['row']} runs; all others have one cluster, or attention that changes."),
        Claim(text="NC1 = tr(Σ_W Σ_B⁺)/C falls like e^(−2τ) where the middles of the C clusters span C − 1 dimensions: the "
              "slope farthest from −2.", measured=farthest(still["rate"].values[is_full], -2.0), low=-2.02, high=-1.98,
              because="Σ_W falls like e^(−2τ) and Σ_B converges to a matrix of rank C − 1",
              differs=f"{int(is_full.sum())} runs."),
        Claim(text="NC1 falls as the linear flow dz/dτ = (P − I)z with the attention P of τ = 10 held fixed says: largest "
              "difference of the slopes.", measured=float(np.abs(still["rate"].values - still["frozen_rate"].values).max()),
              low=0, high=0.02, because="Boolean attention that does not change makes the flow linear; e^(τ(P − I)) by SciPy"),
        Claim(text="It is the labels: NC1 is below that of clusters of the same sizes drawn at random. The largest permutation "
              "p.", measured=float(still["shuffled_p"].values.max()), low=0, high=0.05,
              because=f"the share of {SHUFFLES} shuffled labellings that are as low, with the true one; {1 / (SHUFFLES + 1):g} "
              "is the least there is"),
        Claim(text="REFINED: it is the number of heads that merges clusters, V = I: fewer with 16 heads than with one. Chance "
              "of so many starts by throws of a coin.", measured=tail(fewer, differ),
              published="16 heads: one cluster for few tokens, several that merge slowly for more", low=0, high=0.05,
              because="exact sign test, starts with as many left out; theory: a cluster stays only if no head of it looks "
              "outside", differs=f"{fewer} of {differ} starts whose numbers differ. With 16 heads {share_of_one(identity)} "
              "starts end in one cluster: NC1 and NC2 are then about nothing."),
        Claim(text="One head with its own values, a good triple: directions have at most two clusters. The largest number.",
              measured=float(cases["clusters"].values[cases["is_good"].values == 1].max()), low=1, high=2,
              because="three hyperplanes (Geshkovski et al., section 4): leading coordinates that do not vanish give ±φ₁, and "
              "0 is exceptional", differs=f"{int(np.sum(cases['is_good'].values))} heads are good triples."),
    ]
    if good.sizes["row"]:
        ratio = good["scatter_rate"].values / good["size_rate"].values
        made.append(Claim(text="These two clusters of directions become points as fast as for V = I: slope of the logarithm of "
                          "their scatter over the growth rate of the tokens, the one farthest from −2.",
                          measured=farthest(ratio, -2.0), low=-2.02, high=-1.98,
                          because="tokens of a cluster have one leader, so x_i − x_j is constant while |x| grows",
                          differs=f"{good.sizes['row']} runs with two clusters."))
    if mixed.sizes["row"]:
        made.append(Claim(text="REFINED: where two heads share the leadership a cluster ends between others, and NC1 does not "
                          "fall although the clusters do shrink: its steepest slope, H = 2.",
                          measured=float(mixed["rate"].values.min()), low=-1.0, high=1.0,
                          because="a third cluster with a heads at the first, b at the second and the others at itself comes "
                          "to their line like e^(−(a+b)τ/H), so NC1 has the slope −2(1 − (a+b)/H), up to powers of τ. With H = "
                          "2, a + b = 2: a cluster with one head at itself goes where the other one looks, and is not between. "
                          "So the slope goes to 0 (of several such clusters that look at each other, to −2 times the least "
                          "eigenvalue of a matrix without diagonal, which is not positive); −1 is half-way to −2",
                          differs=f"{mixed.sizes['row']} runs. With more heads NC1 may fall, like e^(−τ) for H = 4 and a + b = "
                          f"2. Such runs with three clusters: {slope_words(others)}."))
    return made


def _of_nc2(cases: Any) -> list[Claim]:
    pairs = cases.isel(row=cases["clusters"].values == 2)
    three = compared(cases)
    still = three.isel(row=three["moved"].values < AT_REST)
    both = {name: places(cases, name) for name in ("place_angles", "place_norms")}
    farther = [bootstrap_interval(here)[0] for here in both["place_angles"].values()]
    nearer = [bootstrap_interval(here)[1] for here in both["place_norms"].values()]
    words = {name: "; ".join(f"{kind_words(*kind, cases.attrs['model'])} {interval_words(here)}" for kind, here in found.items())
             for name, found in both.items()}
    many = cases.isel(row=rows_where(cases, values="identity", heads=(8, 16), is_decided=1))
    own = cases.isel(row=rows_where(cases, values="own"))
    decided = own.isel(row=own["is_decided"].values == 1)
    made = [
        Claim(text="REFINED: two clusters are a simplex wherever they are: largest deviation of angles from −1/(C−1), and of "
              "lengths, over the runs with C = 2.",
              measured=float(np.max([last_of(pairs["angles"].values), last_of(pairs["norms"].values)])), low=0, high=1e-6,
              because="two points about their middle are opposite and equally far", differs=f"{pairs.sizes['row']} runs."),
        Claim(text="No simplex is being approached: NC2 of the angles, three clusters or more with V = I, no longer falls. Its "
              "steepest slope in τ.", measured=least(still["angle_rate"].values), low=-0.5, high=1.0,
              because="a simplex that is reached as fast as clusters become points would make the slope −1; −0.5 is half-way",
              differs=f"{still.sizes['row']} runs, {runs_by_heads(still)}."),
        Claim(text="One head, V = I: by its angles the limit is farther from a simplex than as many tokens drawn from the same "
              "start. Mean share of draws that are as near or nearer, by family and start: the least lower end of its 95 % "
              "interval.", measured=least(farther), low=0.5, high=1,
              because="clusters at tokens drawn at random have the mean 1/2; a pull to a simplex makes it less",
              differs=f"{words['place_angles']}. Certified limits with three clusters or more, {another_head(cases)}. Asked "
              "after the intervals at full size had been seen."),
        Claim(text="One head, V = I: by the lengths it is not nearer than chance. The same mean share: the least upper end of "
              "its 95 % interval.", measured=least(nearer), low=0.5, high=1.1, because="the same",
              differs=f"{words['place_norms']}."),
        Claim(text="With 8 or 16 heads and V = I most starts have fewer than three clusters, so that nothing is left to be a "
              "simplex: share of starts with three or more for 8 or for 16, upper end of its 95 % interval.",
              measured=exact_interval(*starts_with_three(many))[1], low=0, high=0.5,
              because="a half is a reading of the word most", differs=f"{starts_words(many)} {three_words(cases, 'identity')}"),
        Claim(text="With their own values most starts have fewer than three clusters of directions: share of starts with three "
              "or more in a decided run, for any number of heads, upper end of its 95 % interval.",
              measured=exact_interval(*starts_with_three(decided))[1], low=0, high=0.5,
              because="a half is a reading of the word most",
              differs=f"{starts_words(decided)} {three_words(cases, 'own')} {undecided_words(own)}"),
    ]
    pooled = place_by_start(cases)
    if len(pooled) > 2:
        made.append(Claim(text="Two heads or more, V = I: clusters are farther from a simplex than chance. Mean share of draws "
                          "whose angles are as near or nearer, lower end of its 95 % interval.",
                          measured=bootstrap_interval(pooled)[0], low=0.5, high=1,
                          because="chance has the mean 1/2; a cluster between others is on their line, where no simplex is",
                          differs=f"{len(pooled)} starts, each counted once. Angles: "
                          f"{several_heads_words(cases, 'place_angles')}. Lengths: "
                          f"{several_heads_words(cases, 'place_norms')}. Labels are those of the run at τ = 22."))
    line = three.isel(row=rows_where(three, clusters=3, rank=1, singles=0))
    between = line.isel(row=rows_where(line, heads=CLOSED_HEADS))
    if between.sizes["row"]:
        made.append(Claim(text="REFINED: with several heads NC2 is arithmetic: a third cluster ends at a fraction p/q, q ≤ H, "
                          "of the line between the other two. Largest difference of the spread of lengths to that of the "
                          "nearest fraction.", measured=float(from_fractions(between).max()), low=0, high=1e-3,
                          because="each head of the third looks at the first, at the second or at itself: z₃ = (a z₁ + b "
                          "z₂)/(a + b), a + b ≤ H; it comes like e^(−2τ/H) at least, 2e-5 at τ = 22 for H = 4",
                          differs=f"{between.sizes['row']} runs with H = 2 or 4; with H = 2 there is no fraction but 1/2. All "
                          f"such runs: {fraction_words(line)}. Such angles are those of a line, and no simplex."))
    return made


def another_head(cases: Any) -> str:
    """Where the single trained heads are from, in words."""
    return (f"of {cases.attrs['model']} another head with every start, from layer 0 on" if cases.attrs["model"]
            else "synthetic heads only")


def starts_words(rows: Any) -> str:
    """How many starts a share is of, in words."""
    some, total = starts_with_three(rows)
    return (f"{some} of {total} starts, {rows.sizes['row']} runs: a start counts once, since the heads of its runs are nested "
            f"(and {as_shown('trained', rows.attrs['model'])} heads are the same for all starts).")


def undecided_words(own: Any) -> str:
    """How many runs with own values are not decided, what they look like, and where one cluster sits."""
    open_ones = own.isel(row=own["is_decided"].values == 0)
    three = open_ones.isel(row=open_ones["clusters"].values > 2)
    moving = int(np.sum(open_ones["moved"].values > AT_REST))
    text = (f"{open_ones.sizes['row']} of {own.sizes['row']} runs are not decided: clusters depend on the step, or double "
            f"precision ends before τ = {TAUS[-1]:g}; in at least {moving} of them attention has not come to rest")
    if three.sizes["row"]:
        text += (f"; {three.sizes['row']} of the {open_ones.sizes['row']} show three or more at the last time, where "
                 f"{np.mean(three['place_angles'].values):.2f} of as many random directions of the same span are as near to "
                 "a simplex or nearer")
    one = own.isel(row=rows_where(own, is_decided=1, clusters=1))
    near = [one["off_lead"].values[one["heads"].values == count] < 0.05 for count in HEADS]
    return (f"{text}. Where one cluster is left it is at the leading eigenspace of the sum of the V_h in "
            f"{', '.join(f'{int(np.sum(here))}/{len(here)}' for here in near)} runs for H = {', '.join(map(str, HEADS))}.")


def _of_the_plane(plane: Any) -> list[Claim]:
    slack = plane["angles"].values - np.maximum(1 / plane["d"].values - 1 / (plane["clusters"].values - 1), 0.0)
    too_many = plane["clusters"].values - 1 > plane["d"].values
    return [
        Claim(text="More than three clusters in the plane cannot be a simplex, one head with M = I: least excess of the mean "
              "deviation of cosines over 1/d − 1/(C−1).", measured=float(slack.min()), low=0, high=2,
              because="trace: C unit vectors of R^d have Σ cos² ≥ C²/d, so Σ(cos + 1/(C−1))² ≥ C²(1/d − 1/(C−1)) over pairs, "
              "and none of them exceeds C/(C−1)", differs=f"{int(too_many.sum())} of {len(slack)} limits have more than three "
              f"clusters. With these symmetric scores {int(np.sum(plane['place_angles'].values < 0.5))} of {len(slack)} are "
              "nearer to a simplex than as many tokens of the start mostly are (mean share "
              f"{interval_words(plane['place_angles'].values)}), but none is one."),
    ]


def _of_numbers(cases: Any) -> list[Claim]:
    identity = cases.isel(row=cases["values"].values == "identity")
    pairs = sum(float(identity[name].values.sum()) for name in ("step_pairs", "other_pairs", "late_pairs"))
    return [
        Claim(text="One head, V = I: NC2 of the certified limits is that of the run at τ = 22. Largest difference.",
              measured=float(np.nanmax(cases["limit_gap"].values)), low=0, high=1e-6,
              because=f"z comes to its limit like e^(−τ), which is {np.exp(-TAUS[-1]):.0e}, and steps have the tolerance 1e-8; "
              "1e-6 leaves them a factor 100; limits are certified, with bounds of their own",
              differs=f"{int(np.sum(cases['is_certified'].values))} certified limits."),
        Claim(text="NC1 by loops over tokens and a d × d pseudo-inverse is the same at τ = 4: largest relative difference.",
              measured=float(np.nanmax(np.abs(cases["loop"].values - 1))), low=0, high=1e-6,
              because="the definition, without the singular values"),
        Claim(text="V = I: a coarser run, the attention of the last time held fixed for ever and, for one head, the certified "
              "limit have the same clusters: pairs of tokens that they part or join, over all runs.", measured=pairs, low=0,
              high=0, because="three other computations", differs=f"{identity.sizes['row']} runs. With own values runs that "
              "differ are left out."),
    ]


spoils = {
    "labels shuffled": together(constant("cases", ("rate", "scatter_rate"), 0.0), constant("cases", "shuffled_p", 0.5)),
    "NC1 falls too fast": together(constant("cases", "rate", -2.5), scaled("cases", "loop", 1.1)),
    "more clusters with more heads": together(             # with own values always three; and coarse runs have others
        changed("cases", lambda cases: cases.assign(clusters=cases["clusters"] * 0 + cases["heads"] // 4 + 2)),
        constant("cases", "clusters", 3, where={"values": "own"}), shifted("cases", "step_pairs", 1)),
    "clusters askew": together(shifted("cases", "angles", 1.0), shifted("cases", ("norms", "limit_gap"), 0.1)),
    "clusters pulled to a simplex": together(
        constant("cases", ("place_angles", "place_norms"), 0.0), constant("cases", "angle_rate", -1.0)),
    "a simplex in the plane": constant("plane", "angles", 0.0),
}
