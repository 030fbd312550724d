"""The claims of starts_compared: one head, with theorems behind; regular polygons; many heads;
trained heads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval
from attnlab.experiments.common import heads
from attnlab.experiments.common.claims import in_words, of_mean, of_rule, relative_difference
from attnlab.experiments.datasets import rows_where, select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, scaled, together

from .experiment import LAWS, SCALE


def paired(rows: Any, name: str, first: Any, second: Any) -> np.ndarray:
    """The difference of column means between two row masks, one value per rng."""
    rng, values = rows["rng"].values, rows[name].values.astype(float)
    numbers = [
        k for k in np.unique(rng) if (first & (rng == k)).any() and (second & (rng == k)).any()
    ]
    return np.array(
        [values[first & (rng == k)].mean() - values[second & (rng == k)].mean() for k in numbers]
    )


def ended(cases: Any) -> np.ndarray:
    """Which runs are counted (row,): those with an end, of V_h with a growing direction in their
    sum.
    """
    return np.asarray((cases["is_ok"].values == 1) & (cases["growth"].values > 0))


def starts_that(holds: np.ndarray, cases: Any, rows: np.ndarray) -> dict[tuple[str, int], bool]:
    """{(law, rng): whether it holds in all of these rows}: sphere and normal law share their
    directions, so they are one.
    """
    names = [
        ("sphere" if law == "normal" else str(law), int(rng))
        for law, rng in zip(cases["law"].values, cases["rng"].values, strict=True)
    ]
    return {
        name: all(holds[row] for row in np.flatnonzero(rows) if names[row] == name)
        for name in sorted({names[row] for row in np.flatnonzero(rows)})
    }


def claims(data: Data) -> list[Claim]:
    """One head, with theorems behind; then many heads."""
    return [*_of_one_head(data), *_of_polygons(data), *_of_heads(data), *_of_trained(data)]


def _of_one_head(data: Data) -> list[Claim]:
    sizes = data["sizes"]
    n, largest = sizes.attrs["n"], float(sizes["size"].values.max())
    on_sphere, unit, large = (
        rows_where(sizes, law="sphere"),
        rows_where(sizes, size=1.0),
        rows_where(sizes, size=largest),
    )
    limits, vertices = sizes["limits"].values, sizes["vertices"].values
    few = of_mean(limits[on_sphere & unit & rows_where(sizes, d=2)] / n, "high")
    another = int((limits != sizes["self_led"].values)[large].sum())
    cube = rows_where(sizes, law="cube")
    remembered = paired(sizes, "limits", on_sphere & large, cube & large) - paired(
        sizes, "limits", on_sphere & unit, cube & unit
    )
    projected = sizes["projected"].values[unit]
    return [
        Claim(
            text=(
                "On the circle and on the sphere every token is a vertex of the hull at t = 0:"
                " smallest share over all starts."
            ),
            measured=float(vertices[on_sphere].min() / n),
            low=1,
            high=1,
            because="the ball is strictly convex",
        ),
        Claim(
            text=(
                "Few of them stay: from a random start on the unit circle, Q = K = V = I, limits"
                " over tokens, upper end of the 95 % interval of the mean."
            ),
            **few,
            quantity="limits over tokens",
            expected="less than 1/2",
            published="the unit circle is left as a question, no result",
            low=0,
            high=0.5,
            because=(
                "few means less than half; if the convex position at the start were kept, it would"
                " be 1"
            ),
            differs=(
                "REFINED: on the unit circle being a vertex at t = 0 says little about the end."
            ),
        ),
        Claim(
            text=(
                "A large start keeps the tokens that lead themselves at t = 0, |x_i|² ≥ <x_i,"
                f" x_j>, and no others, but for near ties: tokens in starts of size {largest:g}, of"
                " any law, that lead by more than 4 log n and do not lead themselves in the"
                " certified limit, or trail by more and do."
            ),
            measured=float(sizes["otherwise"].values[large].sum()),
            low=0,
            high=0,
            because=(
                "a lead of 4 log n leaves weights of n⁻⁴ to others, and scores grow like e^(2t): in"
                " z such a token moves by less than n⁻³; one that trails by as much follows at"
                " once, and a follower of a fixed leader never leads itself"
            ),
            differs=(
                f"Near ties can go either way: {another} of {large.sum()} starts have another"
                " number of limits than of tokens that lead themselves."
            ),
        ),
        Claim(
            text=(
                "Whether the shape of the start is remembered is a matter of its size: by how many"
                " limits the circle or sphere exceeds the cube of the same second moment, at size"
                f" {largest:g} less at size 1, lower end of the 95 % interval."
            ),
            **of_mean(remembered),
            quantity="further limits at the large size",
            expected="more than 0",
            published=(
                "the slides start from [-5, 5]^d, and leave the unit circle as a question: another"
                " shape and another size"
            ),
            low=0.01,
            high=np.inf,
            because="if shape alone mattered, the size would make no difference: 0",
            differs="REFINED: compare starts of equal second moment, else size is taken for shape.",
        ),
        Claim(
            text=(
                "With projection to the sphere (one head, Q = K = V = I, all laws, d = 2 and 3) all"
                " tokens meet in one point: starts without a certified single limit."
            ),
            measured=float((projected != 1).sum()),
            low=0,
            high=0,
            because=(
                "Geshkovski et al., arXiv:2312.10794, theorem 6.1 for d ≥ 3; for d = 2 it holds for"
                " β ≤ 1; almost every start"
            ),
        ),
    ]


def _of_polygons(data: Data) -> list[Claim]:
    of_polygons, exact = data["polygons"], data["exact"]
    off = max(
        np.abs(of_polygons[name].values - of_polygons["exact"].values).max()
        for name in ("low", "high")
    )
    return [
        Claim(
            text=(
                "Equally spaced tokens stay a regular polygon, of the radius that the scalar"
                " equation r' = r (c − 1) gives by SciPy: largest difference of a token's |z| for n"
                " = 3, 5, 12, 24, t ≤ 8."
            ),
            measured=float(off),
            low=0,
            high=1e-7,
            because="symmetry; both promise 1e-10 a step or better",
        ),
        Claim(
            text="So all n of them are limits: certified limits less tokens, largest difference.",
            measured=float(np.abs(of_polygons["limits"].values - of_polygons["n"].values).max()),
            low=0,
            high=0,
            because=(
                "tokens on one circle of z lead themselves; the start is symmetric, and so is what"
                " follows"
            ),
        ),
        Claim(
            text=(
                "Sixteen equal heads with V = I are one head in a sixteenth of the time: largest"
                " difference of z."
            ),
            measured=relative_difference(exact["sixteen"], exact["one"]),
            published="16 heads, t up to 20",
            low=0,
            high=1e-6,
            because="x' = 16 P x; both runs promise 1e-11 a step",
            differs="t = 20 with 16 heads is t = 320 of one: what decides has long happened.",
        ),
        Claim(
            text=(
                "Sixteen different heads with their own V_h: the engine against SciPy's DOP853 on a"
                " plain sum over heads, largest difference over the largest token."
            ),
            measured=relative_difference(exact["ours"], exact["scipy"]),
            low=0,
            high=1e-6,
            because="tolerances 1e-10 and 1e-11",
        ),
    ]


def _of_heads(data: Data) -> list[Claim]:
    cases = data["cases"]
    done = ended(cases)
    clusters, growth = cases["clusters"].values, cases["growth"].values
    synthetic, identity = (
        rows_where(cases, family="synthetic") & done,
        rows_where(cases, values="identity"),
    )
    free = rows_where(cases, geometry="euclidean")
    one, many = cases["heads"].values == 1, cases["heads"].values == max(heads.HEADS)
    plain = synthetic & identity & free
    of_law = {law: plain & rows_where(cases, law=law) for law in LAWS[:3]}
    fewer = {
        law: paired(cases, "clusters", rows & one, rows & many) for law, rows in of_law.items()
    }
    gaussian = rows_where(cases, family="synthetic", geometry="euclidean", values="own")
    others = "; ".join(_special_words(cases, count) for count in heads.HEADS)
    still = gaussian & one & (growth <= 0)
    at_rest = still & (cases["is_ok"].values == 1)
    projected = select(cases, geometry="sphere", family="synthetic")
    normal, sphere = (select(projected, law=law)["clusters"].values for law in ("normal", "sphere"))
    return [
        Claim(
            text=(
                "More heads, fewer clusters, from every law, on average: clusters with 1 head less"
                " clusters with 16 different ones, V_h = I, synthetic, without projection, smallest"
                " lower end of the 95 % intervals of the mean of a law."
            ),
            measured=float(np.min([bootstrap_interval(values)[0] for values in fewer.values()])),
            published="16 heads: one cluster for few tokens, several for more",
            low=0.01,
            high=np.inf,
            because=(
                "if the number of heads were a change of time alone, as for equal heads, it would"
                " be 0"
            ),
            differs=(
                "In the mean, not from every start: "
                f"{'; '.join(f'{law} {in_words(bootstrap_interval(values))}' for law, values in fewer.items())}."
            ),
        ),
        Claim(
            text=(
                "With V_h = I the hull of z shrinks for any heads and any start: largest final"
                " diameter over the first."
            ),
            measured=float(np.nanmax(cases["hull"].values)),
            low=0,
            high=1 + 1e-6,
            because=(
                "velocities in z point into the hull (section 8 of arXiv:2305.05465), whatever the"
                " weights; 1e-6 is ten times the tolerance"
            ),
        ),
        Claim(
            text=(
                "V = I is special in that it grows: one head with a Gaussian V without a growing"
                " direction (no Re λ > 0) leaves most tokens apart. Without projection, fewest"
                f" clusters over tokens, {at_rest.sum()} of {still.sum()} runs, those with the same"
                " clusters at twice the time."
            ),
            measured=float(clusters[at_rest].min() / cases.attrs["n"]),
            published="W_V = I, W_O stacked identities",
            low=0.5,
            high=1,
            because=(
                "scores do not grow, so no leader is final; at rest all weighted means are 0 (V is"
                " invertible), and then nothing draws tokens together. A reason, no theorem; most"
                " means more than half"
            ),
            differs=(
                "Whether other Gaussian V leave more clusters than V = I is open: by their number,"
                " runs of V_h whose sum grows and that have an end (the same clusters at twice the"
                " time), not all and no random choice, and the 95 % interval of the mean of"
                f" clusters with own V_h less those with V_h = I: {others}."
            ),
        ),
        Claim(
            text=(
                "Under projection the normal law and the uniform law on the sphere are one start:"
                " runs whose number of clusters differs."
            ),
            measured=float((normal != sphere).sum()),
            low=0,
            high=0,
            because=(
                "a normal vector over its norm is uniform on the sphere; both laws draw the same"
                " normal numbers"
            ),
        ),
    ]


def _special_words(cases: Any, count: int) -> str:
    """Of so many synthetic heads: how many runs ended, and clusters with own V_h less those with
    V_h = I, start by start.
    """
    every = rows_where(cases, family="synthetic", geometry="euclidean", heads=count) & (
        cases["growth"].values > 0
    )
    rows, own = every & ended(cases), rows_where(cases, values="own")
    difference = paired(cases, "clusters", rows & own, rows & rows_where(cases, values="identity"))
    return (
        f"{count}: {(rows & own).sum()} of {(every & own).sum()},"
        f" {in_words(bootstrap_interval(difference))}"
    )


def _of_trained(data: Data) -> list[Claim]:
    cases = data["cases"]
    if not cases.attrs["model"]:
        return []
    model, n = cases.attrs["model"], cases.attrs["n"]
    identity, own = (rows_where(cases, family="trained", values=values) for values in heads.VALUES)
    projected, clusters = rows_where(cases, geometry="sphere"), cases["clusters"].values
    counts, done = cases["heads"].values, ended(cases)
    text, most = rows_where(cases, law="real"), max(heads.HEADS)
    is_one = (clusters == 1) & done
    free = starts_that(is_one, cases, identity & ~projected & (counts >= 4))
    on_sphere = starts_that(is_one, cases, own & projected & (counts < most))
    with_most = starts_that(is_one, cases, own & projected & (counts == most))
    exceptions = ", ".join(
        f"{'text' if law == 'real' else law} {rng}"
        for (law, rng), holds in with_most.items()
        if not holds
    )
    apart = {
        where: paired(cases, "clusters", own & done & text & rows, own & done & ~text & rows)
        for where, rows in (("without projection", ~projected), ("on the sphere", projected))
    }
    words = "; ".join(
        f"{where} {in_words(bootstrap_interval(values))}" for where, values in apart.items()
    )
    starts = len(np.unique(cases["rng"].values[own]))
    return [
        Claim(
            text=(
                f"Real embeddings under projection, heads of {model}, V_h = I, 1 to 16 heads,"
                f" {starts} pieces of text: largest diameter at H t = 20, over 2."
            ),
            measured=float(cases["diameter"].values[identity & projected & text].max()),
            low=0,
            high=SCALE / 2,
            because=(
                "n ≤ d tokens lie in an open hemisphere, and there all positive weights lead to"
                f" one point (cone collapse, arXiv:2312.10794, lemma 6.4); {SCALE / 2:g} is the"
                " resolution of a cluster"
            ),
        ),
        Claim(
            text=(
                f"Four heads of {model} or more, V_h = I, without projection: share of {len(free)}"
                " starts, real embeddings and the other laws, from which one cluster is left with"
                " 4, 8 and 16 heads, lower end of the 95 % interval."
            ),
            **of_rule(sum(free.values()), len(free), "share of starts with one cluster"),
            published="one cluster for few tokens (n = 30)",
            because="one cluster as a rule means from more than half of the starts",
            differs=(
                f"So for {model} too, with n = {n}; {sum(free.values())} of {len(free)} starts,"
                " sphere and normal of the same directions counted as one start. All runs share"
                " the heads of one model."
            ),
        ),
        Claim(
            text=(
                f"With the own V_h of {model} too, under projection, for fewer than {most} heads:"
                f" share of {len(on_sphere)} starts, text and the other laws, from which one"
                " cluster is left with each number of heads (with both steps, and at twice the"
                " time), lower end of the 95 % interval."
            ),
            **of_rule(sum(on_sphere.values()), len(on_sphere), "share of starts with one cluster"),
            because=(
                "one cluster as a rule means from more than half of the starts; no theorem "
                "is known for these V_h"
            ),
            differs=(
                f"With {most} heads one cluster is left from {sum(with_most.values())} of"
                f" {len(with_most)} starts, exceptions: {exceptions or 'none'} (the bound on the"
                " number of heads was set after exceptions were seen). Without projection:"
                f" {_one_cluster_words(cases, own & ~projected, done)}. All runs share the heads of"
                " one model."
            ),
        ),
        Claim(
            text=(
                f"With the own V_h of {model} text and sphere, cube or normal law of the same size"
                " differ by less than one cluster: those from text less those from the other laws,"
                f" mean over {starts} starts of the runs with an end, 1 to 16 heads: largest"
                " modulus of an end of the 95 % intervals, without projection and on the sphere."
            ),
            measured=float(
                max(np.abs(bootstrap_interval(values)).max() for values in apart.values())
            ),
            low=0,
            high=1,
            because=(
                "if every run from text had one cluster more, or less, it would be 1; that this"
                " bounds the mean is a finding, and smaller differences are not excluded"
            ),
            differs=(
                f"The intervals: {words}; that is over all numbers "
                "of heads together, and only of runs with an end, see above."
            ),
        ),
    ]


def _one_cluster_words(cases: Any, rows: np.ndarray, done: np.ndarray) -> str:
    """How many runs have one cluster, several, and no end, by the number of heads."""
    clusters, counts = cases["clusters"].values, cases["heads"].values
    found = {
        count: (clusters[rows & done & (counts == count)], rows & ~done & (counts == count))
        for count in heads.HEADS
    }
    return "; ".join(
        f"{count} heads: {(ended == 1).sum()} one, {(ended > 1).sum()} several, {endless.sum()}"
        " without an end"
        for count, (ended, endless) in found.items()
    )


spoils = {
    "every token is kept": changed(
        "sizes",
        lambda sizes: sizes.assign(
            limits=sizes["limits"] * 0 + sizes.attrs["n"],
            otherwise=sizes.attrs["n"] - sizes["perhaps"],
            projected=sizes["projected"] + 1,
            vertices=sizes["vertices"] - 1,
        ),
    ),
    "a polygon that collapses": changed(
        "polygons",
        lambda found: found.assign(
            low=found["low"] * np.exp(-1e-3 * found["time"]), limits=found["limits"] * 0 + 1
        ),
    ),
    "tokens are elsewhere": scaled("exact", ("sixteen", "ours"), 1.0001),
    # but two clusters from the normal law, and hulls that grow
    "heads make no difference": together(
        constant("cases", "clusters", 3),
        constant("cases", "clusters", 2, where={"law": "normal"}),
        constant("cases", "hull", 1.01),
        changed("cases", lambda cases: cases.assign(diameter=cases["first_diameter"])),
    ),
    "text is another start": changed(
        "cases",
        lambda cases: cases.assign(
            clusters=cases["clusters"].where(cases["law"] != "real", cases.attrs["n"])
        ),
    ),
}
