"""The claims of starts_compared: one head, with theorems behind; regular polygons; many heads; trained heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import heads
from attnlab.experiments.datasets import rows_where
from attnlab.experiments.intervals import mean_interval, share_interval
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.starts_compared_exact import SCALE


def paired(rows: Any, name: str, first: Any, second: Any) -> np.ndarray:
    """The difference of a column's means between two sets of rows (masks), start by start: one number an rng."""
    rng, values = rows["rng"].values, rows[name].values.astype(float)
    numbers = [k for k in np.unique(rng) if (first & (rng == k)).any() and (second & (rng == k)).any()]
    return np.array([values[first & (rng == k)].mean() - values[second & (rng == k)].mean() for k in numbers])


def claims(data: Data) -> list[Claim]:
    """One head, with theorems behind; then many heads."""
    return [*_of_one_head(data), *_of_polygons(data), *_of_heads(data), *_of_trained(data)]


def _of_one_head(data: Data) -> list[Claim]:
    sizes = data["sizes"]
    n, largest = sizes.attrs["n"], float(sizes["size"].values.max())
    on_sphere, unit, large = rows_where(sizes, law="sphere"), rows_where(sizes, size=1.0), rows_where(sizes, size=largest)
    limits, vertices = sizes["limits"].values, sizes["vertices"].values
    few = mean_interval(limits[on_sphere & unit & rows_where(sizes, d=2)] / n)[1]
    outside = ((limits < sizes["surely"].values) | (limits > sizes["perhaps"].values))[large].sum()
    cube = rows_where(sizes, law="cube")
    remembered = paired(sizes, "limits", on_sphere & large, cube & large) - paired(sizes, "limits", on_sphere & unit, cube & unit)
    projected = sizes["projected"].values[unit]
    return [
        Claim("On the circle and on the sphere every token is a vertex of the hull at t = 0: smallest share over all starts.",
              float(vertices[on_sphere].min() / n), "", 1, 1, "the ball is strictly convex"),
        Claim("Few of them stay: from a random start on the unit circle, Q = K = V = I, limits over tokens, upper end of the 95 "
              "% interval of the mean.", few, "the unit circle is left as a question, no result", 0, 0.5,
              "few means less than half; if the convex position at the start were kept, it would be 1", "REFINED: on the unit "
              "circle being a vertex at t = 0 says little about the end."),
        Claim("A large start keeps the tokens that lead themselves at t = 0, |x_i|² ≥ <x_i, x_j>, and no others: starts of size "
              f"{largest:g}, of any law, with fewer certified limits than tokens that lead by 4 log n, or more than tokens that "
              f"trail "
              "by less.", float(outside), "", 0, 0, "a lead of 4 log n leaves weights of n⁻⁴ to others, and scores grow like "
              "e^(2t): in z such a token moves by less than n⁻³; who trails by as much follows at once, and a follower of a "
              "fixed leader never leads itself"),
        Claim("Whether the shape of the start is remembered is a matter of its size: by how many limits the circle or sphere "
              "exceeds "
              f"the cube of the same second moment, at size {largest:g} less at size 1, lower end of the 95 % interval.",
              mean_interval(remembered)[0], "the slides start from [-5, 5]^d, and leave the unit circle as a question: another "
              "shape and another size", 0.01, np.inf, "if shape alone mattered, the size would make no difference: 0",
              "REFINED: compare starts of equal second moment, else size is taken for shape."),
        Claim("With projection to the sphere (one head, Q = K = V = I, all laws, d = 2 and 3) all tokens meet in one point: "
              "starts without a certified single limit.", float((projected != 1).sum()), "", 0, 0,
              "Geshkovski et al., arXiv:2312.10794, theorem 6.1 for d ≥ 3; for d = 2 it holds for β ≤ 1; almost every start"),
    ]


def _of_polygons(data: Data) -> list[Claim]:
    of_polygons, exact = data["polygons"], data["exact"]
    off = max(np.abs(of_polygons[name].values - of_polygons["exact"].values).max() for name in ("low", "high"))
    one, sixteen, ours, other = (exact[name].values for name in ("one", "sixteen", "ours", "scipy"))
    return [
        Claim("Equally spaced tokens stay a regular polygon, of the radius that the scalar equation r' = r (c − 1) gives by "
              "SciPy: largest difference of a token's |z| for n = 3, 5, 12, 24, t ≤ 8.", float(off), "", 0, 1e-7,
              "symmetry; both promise 1e-10 a step or better"),
        Claim("So all n of them are limits: certified limits less tokens, largest difference.",
              float(np.abs(of_polygons["limits"].values - of_polygons["n"].values).max()), "", 0, 0,
              "tokens on one circle of z lead themselves; the start is symmetric, and so is what follows"),
        Claim("Sixteen equal heads with V = I are one head in a sixteenth of the time: largest difference of z.",
              float(np.abs(one - sixteen).max() / np.abs(one).max()), "16 heads, t up to 20", 0, 1e-6,
              "x' = 16 P x; both runs promise 1e-11 a step", "t = 20 with 16 heads is t = 320 of one: what decides has long "
              "happened."),
        Claim("Sixteen different heads with their own V_h: the engine against SciPy's DOP853 on a plain sum over heads, largest "
              "difference over the largest token.", float(np.abs(ours - other).max() / np.abs(other).max()), "", 0, 1e-6,
              "tolerances 1e-10 and 1e-11"),
    ]


def _of_heads(data: Data) -> list[Claim]:
    cases = data["cases"]
    done = cases["is_ok"].values == 1
    clusters = cases["clusters"].values
    synthetic, identity = rows_where(cases, family="synthetic") & done, rows_where(cases, values="identity")
    free, own = rows_where(cases, geometry="euclidean"), rows_where(cases, values="own")
    one, many = cases["heads"].values == 1, cases["heads"].values == max(heads.HEADS)
    fewer = paired(cases, "clusters", synthetic & identity & free & one, synthetic & identity & free & many)
    special = {count: _special(cases, count) for count in heads.HEADS}
    ended = {count: synthetic & free & own & (cases["heads"].values == count) for count in heads.HEADS}
    asked = int((rows_where(cases, family="synthetic", geometry="euclidean", heads=1) & own).sum())
    others = "; ".join(f"{count} heads, {ended[count].sum()} of {asked} ended: {_interval_words(special[count])}"
                       for count in heads.HEADS[1:])
    normal, sphere = (clusters[rows_where(cases, law=law, geometry="sphere", family="synthetic")] for law in ("normal", "sphere"))
    return [
        Claim("More heads, fewer clusters, from every start: clusters with 1 head less clusters with 16 different ones, V_h = I, "
              "synthetic, without projection, lower end of the 95 % interval of the mean.", mean_interval(fewer)[0],
              "16 heads: one cluster for few tokens, several for more", 0.01, np.inf,
              "if the number of heads were a change of time alone, as for equal heads, it would be 0"),
        Claim("With V_h = I the hull of z shrinks for any heads and any start: largest final diameter over the first.",
              float(np.nanmax(cases["hull"].values)), "", 0, 1 + 1e-6, "velocities in z point into the hull (section 8 of "
              "arXiv:2305.05465), whatever the weights; 1e-6 is ten times the tolerance"),
        Claim("V = I is special for one head: clusters with its own Gaussian V less clusters with V = I, without projection, "
              f"runs that ended ({ended[1].sum()} of {asked}), lower end of the 95 % interval of the mean.",
              mean_interval(special[1])[0], "W_V = I, W_O stacked identities", 0.01, np.inf,
              "if V = I were harmless, it would be 0; Gaussian V have decaying and turning directions, in which tokens do not "
              "follow their leaders", "Only for one head. For more, among the runs that ended, not all and no random "
              f"choice, no difference is seen where the interval holds 0, and none is excluded where it is wide: {others}."),
        Claim("Under projection the normal law and the uniform law on the sphere are one start: runs whose number of clusters "
              "differs.", float((normal != sphere).sum()), "", 0, 0, "a normal vector over its norm is uniform on the sphere; "
              "both laws draw the same normal numbers"),
    ]


def _special(cases: Any, count: int) -> np.ndarray:
    """Clusters with own V_h less those with V_h = I, start by start, of so many synthetic heads; only runs that ended."""
    rows = rows_where(cases, family="synthetic", geometry="euclidean", heads=count, is_ok=1)
    return paired(cases, "clusters", rows & rows_where(cases, values="own"), rows & rows_where(cases, values="identity"))


def _interval_words(values: np.ndarray) -> str:
    """The 95 % interval of a mean, in words."""
    low, high = mean_interval(values)
    return f"{low:.2f} to {high:.2f}" if np.isfinite(low) else "too few starts for an interval"


def _of_trained(data: Data) -> list[Claim]:
    cases = data["cases"]
    if not cases.attrs["model"]:
        return []
    model, n = cases.attrs["model"], cases.attrs["n"]
    identity, own = (rows_where(cases, family="trained", values=values) for values in heads.VALUES)
    projected, clusters = rows_where(cases, geometry="sphere"), cases["clusters"].values
    several, done = cases["heads"].values >= 4, cases["is_ok"].values == 1
    text = rows_where(cases, law="real")
    free, on_sphere = identity & ~projected & several, own & projected
    apart = {where: paired(cases, "clusters", own & done & text & rows, own & done & ~text & rows)
             for where, rows in (("without projection", ~projected), ("on the sphere", projected))}
    words = "; ".join(f"{where} {_interval_words(values)}" for where, values in apart.items())
    starts = len(np.unique(cases["rng"].values[own]))
    return [
        Claim(f"Real embeddings under projection, heads of {model}, V_h = I, 1 to 16 heads, {starts} pieces of text: largest "
              "diameter at H t = 20, over 2.", float(cases["diameter"].values[identity & projected & text].max()), "", 0,
              SCALE / 2,
              "n ≤ d tokens lie in an open hemisphere, and there all positive weights lead to one point (cone collapse, "
              f"arXiv:2312.10794, lemma 6.4); {SCALE / 2:g} is the resolution of a cluster"),
        Claim(f"Four heads of {model} or more, V_h = I, without projection: share of {free.sum()} runs, from real embeddings and "
              "the three other laws, that end in one cluster, lower end of the 95 % interval.",
              share_interval(int((clusters[free] == 1).sum()), int(free.sum()))[0],
              "one cluster for few tokens (n = 30)", 0.5, 1, "one cluster as a rule means in more than half of the runs",
              f"So for {model} too, with n = {n}; sphere, cube and normal of the same size "
              "do the same. All runs share the heads of one model, and each start is used for every number of heads."),
        Claim(f"With the own V_h of {model} too, under projection: share of {on_sphere.sum()} runs, from text and the three "
              "other laws, that end in one cluster (and do so with both steps), lower end of the 95 % interval.",
              share_interval(int((clusters == 1)[on_sphere & done].sum()), int(on_sphere.sum()))[0], "", 0.5, 1,
              "one cluster as a rule means in more than half of the runs; no theorem is known for these V_h",
              f"Without projection: {_one_cluster_words(cases, own & ~projected, done)}. All runs share the heads of one model, "
              "and each start is used for every number of heads."),
        Claim(f"With the own V_h of {model} text and sphere, cube or normal law of the same size differ by less than one "
              f"cluster: those from text less those from the other laws, mean over {starts} starts of the runs with an end, 1 to "
              "16 heads: largest modulus of an end of the 95 % intervals, without projection and on the sphere.",
              float(max(np.abs(mean_interval(values)).max() for values in apart.values())), "", 0, 1,
              "one cluster is the least difference that a count can have",
              f"The intervals: {words}; that is over all numbers of heads together, and only of runs with an end, see above."),
    ]


def _one_cluster_words(cases: Any, rows: np.ndarray, done: np.ndarray) -> str:
    """How many runs have one cluster, several, and no end, by the number of heads."""
    clusters, counts = cases["clusters"].values, cases["heads"].values
    found = {count: (clusters[rows & done & (counts == count)], rows & ~done & (counts == count)) for count in heads.HEADS}
    return "; ".join(f"{count} heads: {(ended == 1).sum()} one, {(ended > 1).sum()} several, {endless.sum()} without an end"
                     for count, (ended, endless) in found.items())
