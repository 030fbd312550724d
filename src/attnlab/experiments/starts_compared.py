"""Starts on the circle or sphere against cube, normal and real embeddings: what remains of the shape of the start at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.experiments import experiments, heads
from attnlab.experiments.datasets import changed, rows_where, table
from attnlab.experiments.intervals import mean_interval
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.experiments.starts_compared_exact import LAWS, exact_runs, pictures, plain, polygons, start_of
from attnlab.experiments.studies import part
from attnlab.models.shares import interval
from attnlab.types import Weights

TOKENS = {"full": 24, "small": 10}
FOR_LIMITS = 24
"""Tokens of the starts whose limits are certified, at both sizes: that is cheap."""

SIZES = {"full": (0.5, 1.0, 2.0, 5.0, 20.0, 80.0), "small": (1.0, 80.0)}
"""Root mean square norm of the start."""

CROSSED = {"full": ((2, 1.0), (2, 5.0), (3, 5.0)), "small": ((2, 5.0),)}
"""(d, size) of the starts of synthetic heads. The slides' cube [-5, 5]^d has the size 5 sqrt(d / 3)."""

STARTS = {"full": {"sizes": 8, "synthetic": 6, "identity": 3, "own": 1},
          "small": {"sizes": 4, "synthetic": 4, "identity": 2, "own": 1}}
GEOMETRIES = ("euclidean", "sphere")
CLOCK = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0])
"""Saved times, in units of 1 / H where V_h = I, else of 1 / the largest real part of an eigenvalue of sum V_h, 0.3 at least."""

OWN_CLOCK = CLOCK[CLOCK <= 12.0]
SCALE = 0.01
"""Clusters are those at this fraction of the largest token of the moment."""

STEPS = {"identity": 2000, "own": 400}
"""Adaptive steps that a run may take. Where leaders change without end, no number of them is enough: such runs are left out."""

STEP = 0.1
"""Runge-Kutta steps of trained heads with their own V_h, in units of the clock; half of it must give as many clusters."""

POOL = 60


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """Certified limits over the size of the start, all cases of heads, and what is known exactly."""
    data = {"sizes": _sizes(size, part(progress, 0.0, 0.35))}
    loaded, why = heads.trained_model(size, model)
    rows = list(_synthetic(size, part(progress, 0.35, 0.65)))
    if loaded is not None:
        rows += list(_trained(loaded, size, part(progress, 0.65, 0.95)))
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    data["cases"] = table(columns, model=loaded.name if loaded is not None else "", why=why)
    progress(0.95, "what is known exactly")
    data |= {"polygons": polygons(), "exact": exact_runs(), "pictures": pictures(FOR_LIMITS)}
    progress(1.0)
    return data


def _sizes(size: str, progress: Progress) -> Any:
    """One head, Q = K = V = I: certified limits, with projection too; vertices, and tokens that lead themselves at t = 0."""
    from attnlab.analysis.hull import convex_hull
    from attnlab.limits import limit

    rows = []
    places = [(d, reach, law) for d in (2, 3) for reach in SIZES[size] for law in LAWS[:3]]
    for done, (d, reach, law) in enumerate(places):
        progress(done / len(places), f"certified limits, {law} of size {reach:g} in {d} dimensions")
        for rng in range(STARTS[size]["sizes"]):
            x0 = start_of(law, d, reach, rng, FOR_LIMITS)
            lead = self_lead(x0)
            clear = 4 * np.log(len(x0))
            end = limit(plain(d), x0, budget=5.0)
            points = end.limits if end.certified else x0[:0]
            on_sphere = limit(plain(d), _unit(x0), geometry="sphere", budget=5.0) if reach == 1.0 else None
            rows.append((d, reach, law, rng, len(convex_hull(x0).vertices), (lead >= 0).sum(), (lead > clear).sum(),
                         (lead > -clear).sum(),
                         end.labels.max() + 1 if end.certified else -1,
                         len(convex_hull(points).vertices) if end.certified else -1,
                         -2 if on_sphere is None else on_sphere.labels.max() + 1 if on_sphere.certified else -1))
    names = ("d", "size", "law", "rng", "vertices", "self_led", "surely", "perhaps", "limits", "limit_vertices", "projected")
    return table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)), n=FOR_LIMITS)


def self_lead(x: np.ndarray) -> np.ndarray:
    """|x_i|^2 less the largest <x_i, x_j>, j not i, of tokens x (n, d) -> (n,): token i leads itself where it is not negative."""
    products = x @ x.T
    others = np.where(np.eye(len(x), dtype=bool), -np.inf, products)
    return np.asarray(np.diag(products) - others.max(axis=1))


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _synthetic(size: str, progress: Progress) -> Iterator[dict[str, Any]]:
    """Every case with Gaussian heads; heads and start are drawn anew for each rng."""
    for done, (d, reach) in enumerate(CROSSED[size]):
        for count in heads.HEADS:
            progress((done + count / 17) / len(CROSSED[size]), f"synthetic heads: {count}, d = {d}, size {reach:g}")
            for values in heads.VALUES:
                for rng in range(STARTS[size]["synthetic"]):
                    weights = heads.synthetic_heads(count, d, values, rng=rng)
                    rate = rate_of(weights, values)
                    for law in LAWS[:3]:
                        x0 = start_of(law, d, reach, rng, TOKENS[size])
                        for geometry in GEOMETRIES:
                            yield {**_names("synthetic", d, reach, count, values, law, rng, geometry),
                                   **_case(weights, x0, reach, values, geometry, rate)}


def _trained(model: Any, size: str, progress: Progress) -> Iterator[dict[str, Any]]:
    """Every case with the heads of a model, from its embeddings, and from the other laws of the same size."""
    pool = heads.real_start(model, POOL)
    d, reach = pool.shape[1], float(np.sqrt((pool**2).sum(axis=1).mean()))
    for done, count in enumerate(heads.HEADS):
        for values in heads.VALUES:
            weights = heads.trained_heads(model, count, values)
            rate = rate_of(weights, values)
            progress((done + (values == "own") / 4) / len(heads.HEADS), f"trained heads: {count}, values: {values}")
            for rng in range(STARTS[size][values]):
                for law in LAWS if values == "identity" else ("sphere", "real"):
                    # in so many dimensions cube and normal are nearly the sphere, and own V_h take long
                    x0 = start_of(law, d, reach, rng, TOKENS[size], pool)
                    for geometry in GEOMETRIES:
                        yield {**_names("trained", d, reach, count, values, law, rng, geometry),
                               **_case(weights, x0, reach, values, geometry, rate)}


def _names(*values: Any) -> dict[str, Any]:
    return dict(zip(("family", "d", "size", "heads", "values", "law", "rng", "geometry"), values, strict=True))


def _case(weights: Weights, x0: np.ndarray, reach: float, values: str, geometry: str, rate: float) -> dict[str, Any]:
    """The numbers of one run: clusters, when they were the last ones, vertices, diameters, and the end of the run."""
    from attnlab.analysis.clusters import cluster_count
    from attnlab.analysis.distances import diameter

    run, clock = _simulated(weights, x0, reach, values, geometry, rate)
    states = run.scaled_x()[0]
    sizes = np.linalg.norm(states, axis=-1).max(axis=-1)
    last = int(cluster_count(states[-1], SCALE * sizes[-1]))
    since = len(states) - 1                                         # clusters merge: one looks back from the end
    while since and cluster_count(states[since - 1], SCALE * sizes[since - 1]) == last:
        since -= 1
    is_ok = run.is_ok
    if run.solve.stepper == "rk4":
        finer = _simulated(weights, x0, reach, values, geometry, rate, STEP / 2)[0].scaled_x()[0][-1]
        is_ok &= cluster_count(finer, SCALE * np.linalg.norm(finer, axis=-1).max()) == last
    shrinks = geometry == "euclidean" and values == "identity"
    return {
        "clusters": last, "merged": float(clock[since]),
        "diameter": float(diameter(states[-1]) / (2 * sizes[-1])), "first_diameter": float(diameter(states[0]) / (2 * sizes[0])),
        "vertices": _vertices(states[0]), "last_vertices": _vertices(states[-1]),
        "hull": float(diameter(run.z[-1]) / diameter(run.z[0])) if shrinks else np.nan,
        "reached": float(clock[len(states) - 1]), "is_ok": int(is_ok),
    }


def _vertices(x: np.ndarray) -> int:
    """The vertices of the hull of the tokens; -1 where d is too large to list hulls."""
    from attnlab.analysis.hull import convex_hull

    return len(convex_hull(x).vertices) if x.shape[1] <= 3 else -1


def rate_of(weights: Weights, values: str) -> float:
    """The unit of the clock: H where V_h = I, else the largest real part of an eigenvalue of sum V_h, 0.3 at least."""
    return float(weights.heads if values == "identity" else max(0.3, np.linalg.eigvals(weights.full_V.sum(axis=0)).real.max()))


def _simulated(weights: Weights, x0: np.ndarray, reach: float, values: str, geometry: str, rate: float,
               step: float = STEP) -> tuple[Any, np.ndarray]:
    """(run, clock): on the sphere the size of the start is in beta."""
    from attnlab.engine import simulate

    options: dict[str, Any] = {"rtol": 1e-7, "max_steps": STEPS[values], "throw": False}
    if geometry == "sphere":
        x0, options = _unit(x0), options | {"geometry": "sphere", "beta": reach**2}
    clock = CLOCK if values == "identity" else OWN_CLOCK
    if values == "identity":
        weights, x0, _ = heads.in_span(weights, x0)
    elif weights.d > 3:                                             # changes of leaders stop adaptive steps there
        options |= {"stepper": "rk4", "dt": step / rate, "frame": "x" if geometry == "euclidean" else "auto"}
    return simulate(weights, x0, times=clock / rate, t_end=float(clock[-1] / rate), **options), clock


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
    trained = rows_where(cases, family="trained", values="identity")
    projected = trained & rows_where(cases, geometry="sphere", law="real")
    free = trained & rows_where(cases, geometry="euclidean") & (cases["heads"].values >= 4)
    low, _ = interval(int((cases["clusters"].values[free] == 1).sum()), int(free.sum()))
    return [
        Claim(f"Real embeddings under projection, heads of {cases.attrs['model']}, V_h = I, 1 to 16 heads: largest diameter at "
              "H t = 20, over 2.", float(cases["diameter"].values[projected].max()), "", 0, SCALE / 2,
              "n ≤ d tokens lie in an open hemisphere, and there all positive weights lead to one point (cone collapse, "
              f"arXiv:2312.10794, lemma 6.4); {SCALE / 2:g} is the resolution of a cluster"),
        Claim("Four trained heads or more, V_h = I, without projection: share of runs, from real embeddings and the three other "
              "laws, that end in one cluster, lower end of the 95 % interval.", low,
              "one cluster for few tokens (n = 30)", 0.5, 1, "one cluster as a rule means in more than half of the runs",
              f"So for {cases.attrs['model']} too, with n = {TOKENS['full']} or fewer; sphere, cube and normal of the same size "
              "do the same. All runs share the heads of one model, and each start is used for every number of heads."),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Starts and limits in the plane, limits over the size; then clusters over the number of heads."""
    from attnlab.experiments.starts_compared_figures import over_heads, over_size
    from attnlab.render.style import house_style

    with house_style():
        return {"starts_compared": over_size(data), "starts_compared_heads": over_heads(data)}


def _all_kept(sizes: Any) -> None:
    """As many limits as tokens, at every size; and with projection two."""
    sizes["limits"] = ("row", np.full(sizes.sizes["row"], sizes.attrs["n"]))
    sizes["projected"] = sizes["projected"] + 1
    sizes["vertices"] = sizes["vertices"] - 1


def _broken_polygon(found: Any) -> None:
    """A polygon that turns to one point in the end."""
    found["low"] = found["low"] * np.exp(-1e-3 * found["time"])
    found["limits"] = ("polygon", np.ones(found.sizes["polygon"], int))


def _other_tokens(exact: Any) -> None:
    """Runs that are off by a ten-thousandth."""
    for name in ("sixteen", "ours"):
        exact[name] = exact[name] * 1.0001


def _no_difference(cases: Any) -> None:
    """Three clusters, whatever the heads, as far apart as at the start; but two from the normal law."""
    cases["clusters"] = ("row", np.where(cases["law"].values == "normal", 2, 3))
    cases["diameter"] = cases["first_diameter"]
    cases["hull"] = cases["hull"] * 0 + 1.01


experiments.register("starts_compared")(
    Experiment(
        name="starts_compared",
        title="Circle, cube, normal or real embeddings: what remains of the start",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), starts on the unit circle; "
        "projection to the sphere after Geshkovski et al., arXiv:2312.10794",
        about="The slides start tokens uniformly in the cube [-5, 5]^d or from embedded text; the unit circle is left as a "
        "question. It changes two things at once, shape and size; here circle (sphere), cube, normal law and real embeddings "
        "have the same second moment, and the size is varied by itself.\n\nOne head with Q = K = V = I: on the circle all "
        "tokens are vertices of the hull at first. From a large start almost all stay as separate limits, from the unit circle "
        "a few do, from a small one a single limit is left; a large start keeps exactly the tokens that already lead "
        "themselves, which are all on the circle and few in the cube. Equally spaced tokens keep their symmetry and never "
        "merge. With projection to the sphere all meet in one point.\n\nWith several different heads and V_h = I one cluster is "
        "left from most starts, real embeddings included. One head with a Gaussian V of its own leaves more clusters than with "
        "V = I. With several such V_h most runs reach no end, since leaders change again and again; among the few that do, with "
        "8 or 16 heads, no difference from V_h = I is seen. With trained V_h there are one or two clusters, from one start a "
        "case. Runs without an end, or whose clusters are not the same with half the step, are counted and left out of the "
        "means.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "every token is kept": changed("sizes", _all_kept),
            "a polygon that collapses": changed("polygons", _broken_polygon),
            "tokens are elsewhere": changed("exact", _other_tokens),
            "heads make no difference": changed("cases", _no_difference),
        },
    )
)
