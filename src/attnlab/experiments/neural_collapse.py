"""Neural collapse of tokens: clusters become points at a known rate (NC1), but nothing makes a simplex of them (NC2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments import heads as slides
from attnlab.experiments.datasets import changed, table
from attnlab.experiments.neural_collapse_figures import runs_by_heads, share_words
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.experiments.studies import part
from attnlab.types import Trajectory, Weights

STARTS = {"full": {"identity": 6, "own": 6}, "small": {"identity": 5, "own": 1}}
TOKENS = {"full": {"synthetic": 40, "trained": 30}, "small": {"synthetic": 16, "trained": 14}}
D = 8
"""Of the synthetic heads."""

TAUS = np.arange(0.0, 22.01, 0.5)
"""Natural time: τ = Ht for V = I, τ = λt for own values, λ the largest real part of the eigenvalues of the sum of the V_h."""

STEP = {"full": 0.04, "small": 0.06}
"""Of the Runge-Kutta scheme in natural time; steps twice as long tell the error."""

WINDOW = (10.0, 18.0)
"""Where rates are measured: leaders are decided before it, and soon after it the spread drowns in double precision."""

SCALE = {"identity": 1e-3, "own": 0.05}
"""Tokens of one cluster: z nearer than this to each other, over the first diameter; directions nearer than this."""

SHUFFLES, NULL_DRAWS = 99, 199
MANY = {"full": 60, "small": 20}
PLANE = {"full": (20, 40), "small": (6, 24)}
"""Starts and tokens in the plane with M = I, where there are more clusters than a simplex of the plane has corners."""

CURVES = ("nc1", "shuffled", "scatter", "angles", "norms")
NUMBERS = ("rank", "rate", "frozen_rate", "scatter_rate", "shuffled_p", "loop")


def cube(n: int, d: int, rng: int) -> np.ndarray:
    """The start of the slides."""
    from attnlab.starts import uniform_cube

    return uniform_cube(n, d, low=-5.0, high=5.0, rng=rng)


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """A row for every family, kind of values, number of heads and start; limits of many starts, also in the plane."""
    from attnlab.engine.threads import one_blas_thread

    trained, why = slides.trained_model(size, model)
    cases = [(family, values, count, rng) for family in slides.FAMILIES if family == "synthetic" or trained is not None
             for values in slides.VALUES for count in slides.HEADS for rng in range(starts_of(size, family, values))]
    rows = []
    with one_blas_thread():
        for done, (family, values, count, rng) in enumerate(cases):
            progress(0.8 * done / len(cases), f"{family}, V {values}, {count} heads")
            n = TOKENS[size][family]
            weights = (slides.synthetic_heads(count, D, values, rng=rng) if family == "synthetic"
                       else slides.trained_heads(trained, count, values))
            rows.append({"family": family, "values": values, "heads": count, "rng": rng, "n": n, "d": weights.d,
                         **collapse(weights, cube(n, weights.d, rng), values, rng, STEP[size])})
        data = {"cases": gathered(rows, why)}
        data["many"] = limits_of(lambda rng: slides.synthetic_heads(1, D, rng=rng), MANY[size], TOKENS[size]["synthetic"],
                                 part(progress, 0.8, 0.92))
        data["plane"] = limits_of(lambda rng: Weights(V=np.eye(2)), *PLANE[size], part(progress, 0.92, 1.0))
    return data


def starts_of(size: str, family: str, values: str) -> int:
    """Trained heads with own values live in all d dimensions: one start."""
    return 1 if (family, values) == ("trained", "own") else STARTS[size][values]


def gathered(rows: list[dict[str, Any]], why: str) -> Any:
    """The rows as one Dataset; entries that are arrays are curves over τ."""
    import xarray

    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return xarray.Dataset({name: (("row", "tau") if column.ndim == 2 else "row", column) for name, column in columns.items()},
                          coords={"tau": TAUS}, attrs={"why": why})


def followed_tokens(run: Trajectory, values: str) -> np.ndarray:
    """What converges: z for V = I, the directions x / |x| for own values."""
    if values == "identity":
        assert run.z is not None
        return run.z
    x, _ = run.scaled_x()
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def collapse(weights: Weights, x0: np.ndarray, values: str, rng: int, step: float) -> dict[str, Any]:
    """The numbers of one run, with its final labels used at all times."""
    from attnlab.analysis.clusters import cluster_labels
    from attnlab.analysis.distances import diameter
    from attnlab.dynamics import attention
    from attnlab.engine import simulate

    if values == "identity":
        weights, x0, _ = slides.in_span(weights, x0)
    eigenvalues = weights.total.eigenvalues
    lead = eigenvalues[np.argmax(np.real(eigenvalues))]
    growth, scale = float(np.real(lead)), SCALE[values] * (float(diameter(x0)) if values == "identity" else 1.0)
    labelled = []
    for dt in (2 * step / growth, step / growth):
        run = simulate(weights, x0, times=TAUS / growth, t_end=TAUS[-1] / growth, stepper="rk4", dt=dt, frame="x", throw=False)
        path = followed_tokens(run, values)
        labelled.append(cluster_labels(path[-1], scale))
    certified = certified_labels(weights, x0) if values == "identity" and weights.heads == 1 else None
    labels = labelled[1] if certified is None else certified
    P = [attention(run, at=at_tau(tau, len(path))).mean(axis=0) for tau in WINDOW]
    found = {"is_real": int(abs(np.imag(lead)) < 1e-9), "is_certified": int(certified is not None),
             "other_pairs": other_pairs(labels, labelled[1]), "step_pairs": other_pairs(*labelled),
             "moved": float(np.abs(P[1] - P[0]).max()), "reached": TAUS[len(path) - 1]}
    return found | measured(path, labels, P[0], values, rng)


def at_tau(tau: float, length: int) -> int:
    """The number of the saved time nearest to τ, of a run that has so many."""
    return int(np.argmin(np.abs(TAUS[:length] - tau)))


def certified_labels(weights: Weights, x0: np.ndarray) -> np.ndarray | None:
    """The labels of the certified limit; None where it is undecided."""
    from attnlab.limits import limit

    end = limit(weights, x0, budget=10.0)
    return np.array(end.labels) if end.certified else None


def other_pairs(one: np.ndarray, two: np.ndarray) -> int:
    """The number of pairs of tokens that are together in one labelling and apart in the other."""
    return int(np.sum((one[:, None] == one) != (two[:, None] == two))) // 2


def measured(path: np.ndarray, labels: np.ndarray, P: np.ndarray, values: str, rng: int) -> dict[str, Any]:
    """NC1 and NC2 over time with the labels and with shuffled ones, and rates; NaN where fewer than two clusters are left."""
    from attnlab.analysis.collapse import nc1, nc2

    sizes = np.bincount(labels)
    clusters = int(np.sum(sizes > 1))
    found: dict[str, Any] = {"clusters": clusters, "singles": int(np.sum(sizes == 1)), "largest": int(sizes.max())}
    if clusters < 2:
        return found | dict.fromkeys(CURVES, np.full(len(TAUS), np.nan)) | dict.fromkeys(NUMBERS, np.nan)
    generator = np.random.default_rng([rng, 3])
    shuffled = np.array([nc1(path, generator.permutation(labels)) for _ in range(SHUFFLES)])
    curves = dict(zip(CURVES, (nc1(path, labels), np.median(shuffled, axis=0), scatter(path, labels), *nc2(path, labels)),
                      strict=True))
    first, last = (at_tau(tau, len(path)) for tau in WINDOW)
    duration = TAUS[last] - TAUS[first] if last > first else np.nan                     # own values may reach the wall before
    slope = {name: float(np.log(curves[name][last] / curves[name][first]) / duration) for name in ("nc1", "scatter")}
    found |= {name: np.concatenate([curve, np.full(len(TAUS) - len(curve), np.nan)]) for name, curve in curves.items()}
    found |= {"rate": slope["nc1"], "scatter_rate": slope["scatter"], "rank": np.nan, "frozen_rate": np.nan,
              "shuffled_p": float(np.mean([*(shuffled[:, last] <= curves["nc1"][last]), True])),
              "loop": plain_nc1(path[at_tau(4.0, len(path))], labels) / curves["nc1"][at_tau(4.0, len(path))]}
    if values == "identity":
        later = frozen(P, path[first], duration)
        found |= {"frozen_rate": float(np.log(nc1(later, labels) / curves["nc1"][first]) / duration),
                  "rank": float(final_rank(P, labels))}
    return found


def scatter(path: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean square distance of a token to the middle of its cluster, over that of the tokens to the middle of all: (T,)."""
    from attnlab.analysis.clusters import cluster_centres

    middles = cluster_centres(path, labels)
    within = np.square(path - middles[:, labels]).sum(axis=(1, 2))
    return within / np.square(path - path.mean(axis=1, keepdims=True)).sum(axis=(1, 2))


def frozen(P: np.ndarray, z: np.ndarray, duration: float) -> np.ndarray:
    """Where tokens z are later if nobody changes whom it attends to: dz/dτ = (P - I) z."""
    from scipy.linalg import expm

    return expm(duration * (P - np.eye(len(P)))) @ z


def final_rank(P: np.ndarray, labels: np.ndarray) -> int:
    """The dimension that the middles of the clusters span in the end, by the attention alone: z(infinity) = lim P^k z."""
    from attnlab.analysis.clusters import cluster_centres

    middles = cluster_centres(np.linalg.matrix_power(P, 2**20), labels)[np.bincount(labels) > 1]
    return int(np.linalg.matrix_rank(middles - middles.mean(axis=0), tol=1e-6))


def plain_nc1(x: np.ndarray, labels: np.ndarray) -> float:
    """NC1 as it is defined, in loops over tokens and with a d x d pseudo-inverse."""
    names = [c for c in set(labels.tolist()) if np.sum(labels == c) > 1]
    kept = [(y, label) for y, label in zip(x, labels, strict=True) if label in names]
    means = {c: np.mean([y for y, label in kept if label == c], axis=0) for c in names}
    middle = np.mean(list(means.values()), axis=0)
    within = sum(np.outer(y - means[label], y - means[label]) for y, label in kept) / len(kept)
    between = sum(np.outer(mean - middle, mean - middle) for mean in means.values()) / len(names)
    return float(np.trace(within @ np.linalg.pinv(between, rcond=1e-13)) / len(names))


def limits_of(weights: Callable[[int], Weights], count: int, n: int, progress: Progress) -> Any:
    """NC2 of the certified limits of many starts, one head with V = I, beside as many points of the law of the start."""
    from attnlab.analysis.collapse import nc2
    from attnlab.limits import limit

    rows = []
    for rng in range(count):
        progress(rng / count, f"limits, start {rng}")
        one = weights(rng)
        end = limit(one, cube(n, one.d, 100 + rng), budget=10.0)
        clusters = int(np.sum(np.bincount(end.labels) > 1)) if end.certified else 0
        if clusters < 3:                                                                # two are a simplex wherever they are
            continue
        draws = np.random.default_rng([rng, 5]).uniform(-5.0, 5.0, (NULL_DRAWS, clusters, one.d))
        null = nc2(np.repeat(draws, 2, axis=1), np.repeat(np.arange(clusters), 2))[0]  # twice: a single token is no cluster
        angles, norms = nc2(end.limits, end.labels)
        rows.append((rng, clusters, one.d, float(angles), float(norms), float(np.median(null)), float(np.mean(null <= angles))))
    return table(dict(zip(("rng", "clusters", "d", "angles", "norms", "null_angles", "place"), zip(*rows, strict=True),
                          strict=True)), starts=count)


def one_kind(cases: Any, values: str) -> Any:
    """The rows of one kind of values that have two clusters or more, and whose attention no longer changes in the window."""
    return cases.isel(row=(cases["values"].values == values) & (cases["clusters"].values > 1) & (cases["moved"].values < 1e-9))


def tail(count: int, total: int) -> float:
    """The chance of `count` heads or more among `total` throws of a coin."""
    from scipy.stats import binom

    return float(binom.sf(count - 1, total, 0.5))


def farthest(numbers: np.ndarray, aim: float) -> float:
    """Of numbers that ought to be `aim` the one that is farthest from it."""
    return float(numbers[np.argmax(np.abs(numbers - aim))])


def last_of(curve: np.ndarray) -> np.ndarray:
    """The last number that is there of every curve (row, tau)."""
    return np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in curve])


def claims(data: Data) -> list[Claim]:
    """What collapses, how fast, and what does not become a simplex."""
    cases, many, plane = data["cases"], data["many"], data["plane"]
    still = one_kind(cases, "identity")
    is_full = still["rank"].values == still["clusters"].values - 1
    mixed = still.isel(row=~is_full)
    own = cases.isel(row=(cases["values"].values == "own") & (cases["heads"].values == 1) & (cases["is_real"].values == 1))
    pairs = cases.isel(row=cases["clusters"].values == 2)
    farther, limits = int(np.sum(many["place"].values >= 0.5)), many.sizes["row"]
    slack = plane["angles"].values - np.maximum(1 / plane["d"].values - 1 / (plane["clusters"].values - 1), 0.0)
    too_many = plane["clusters"].values - 1 > plane["d"].values
    identity = cases.isel(row=cases["values"].values == "identity")
    fewer, compared = fewer_with_more_heads(identity)
    made = [
        Claim(f"In one sense yes: tokens of a cluster become one point. V = I, {runs_by_heads(still)}: slope in τ = Ht of the "
              "logarithm of the scatter inside clusters over all scatter, the one farthest from −2 of all "
              "runs with two clusters or more and attention at rest.", farthest(still["scatter_rate"].values, -2.0),
              "clusters form; the analogy to neural collapse is left as a question", -2.02, -1.98,
              "tokens of one cluster have the same direction, so each head gives them one and the same leader: x_i − x_j is "
              "constant, and z_i − z_j falls like e^(−τ)", f"{still.sizes['row']} runs; all others have one cluster, or "
              "attention that changes."),
        Claim("NC1 = tr(Σ_W Σ_B⁺)/C falls like e^(−2τ) where the middles of the C clusters span C − 1 dimensions: the slope "
              "farthest from −2.", farthest(still["rate"].values[is_full], -2.0), "", -2.02, -1.98,
              "Σ_W falls like e^(−2τ) and Σ_B converges to a matrix of rank C − 1", f"{int(is_full.sum())} runs."),
        Claim("NC1 falls as the linear flow dz/dτ = (P − I)z with the attention P of τ = 10 held fixed says: largest difference "
              "of the slopes.",
              float(np.abs(still["rate"].values - still["frozen_rate"].values).max()), "", 0, 0.02,
              "Boolean attention that does not change makes the flow linear; e^(τ(P − I)) by SciPy"),
        Claim("It is the labels: NC1 is below that of clusters of the same sizes drawn at random. The largest permutation p.",
              float(still["shuffled_p"].values.max()), "", 0, 0.05,
              f"the share of {SHUFFLES} shuffled labellings that are as low, with the true one; 0.01 is the least there is"),
        Claim("REFINED: it is the number of heads that merges clusters, V = I: fewer with 16 heads than with one. Chance of so "
              "many starts by throws of a coin.", tail(fewer, compared),
              "16 heads: one cluster for few tokens, several that merge slowly for more", 0, 0.05,
              "exact sign test, starts with as many left out; theory: a cluster stays only if no head of it looks outside",
              f"{fewer} of {compared} starts whose numbers differ. With 16 heads {share_of_one(identity)} starts end in one "
              "cluster: NC1 and NC2 are then about nothing."),
        Claim("REFINED: two clusters are a simplex wherever they are: largest deviation of angles from −1/(C−1), and of lengths, "
              "over the runs with C = 2.",
              float(np.max([last_of(pairs["angles"].values), last_of(pairs["norms"].values)])), "", 0, 1e-6,
              "two points about their middle are opposite and equally far", f"{pairs.sizes['row']} runs."),
        Claim("With generic scores most certified limits of three clusters or more are farther from a simplex, by their angles, "
              "than as many random points are in the median: share.", farther / limits, "", 0.5, 1,
              "random points of the law of the start are farther in half of the cases; a pull to a simplex would make it less",
              f"{farther} of {limits} limits, 95 % interval {share_words(farther, limits)}."),
        Claim("More than three clusters in the plane cannot be a simplex, one head with M = I: least excess of the mean "
              "deviation of cosines over 1/d − 1/(C−1).", float(slack.min()), "", 0, 2,
              "trace: C unit vectors of R^d have Σ cos² ≥ C²/d, so Σ(cos + 1/(C−1))² ≥ C²(1/d − 1/(C−1)) over pairs, and none "
              "of them exceeds C/(C−1)", f"{int(too_many.sum())} of {len(slack)} limits have more than three clusters. "
              f"With these symmetric scores {int(np.sum(plane['place'].values < 0.5))} of {len(slack)} are nearer to a simplex "
              "than random points mostly are, but none is one."),
        Claim("With their own values and a real leading eigenvalue the directions of one head have at most two clusters: the "
              "largest number.", float(own["clusters"].values.max() + (own["clusters"].values == 0).max()), "", 1, 2,
              "three hyperplanes (Geshkovski et al., section 4): leading coordinates that do not vanish give ±φ₁, and 0 is "
              "exceptional"),
        Claim("NC1 by loops over tokens and a d × d pseudo-inverse is the same at τ = 4: largest relative difference.",
              float(np.nanmax(np.abs(cases["loop"].values - 1))), "", 0, 1e-6, "the definition, without the singular values"),
        Claim("Steps twice as long make the same clusters, V = I: pairs of tokens that they part or join, over all "
              "runs.", float(identity["step_pairs"].values.sum() + identity["other_pairs"].values.sum()),
              "", 0, 0, "a second computation; for one head also the certified limit"),
    ]
    if mixed.sizes["row"]:
        made.append(Claim("REFINED: where several heads share the leadership a cluster ends between others, and NC1 does not "
                          "fall although the clusters do shrink: its steepest slope.",
                          float(mixed["rate"].values.min()), "", -1.0, 1.0,
                          "the middles lose a dimension as fast as clusters shrink: Σ_B in it and Σ_W both fall like e^(−2τ), up "
                          "to powers of τ, so the slope goes to 0; −1 is half-way to −2",
                          f"{mixed.sizes['row']} runs."))
    return made


def fewer_with_more_heads(identity: Any) -> tuple[int, int]:
    """Of the starts whose number of clusters differs between 1 and 16 heads: in how many there are fewer with 16, and all."""
    counts = {int(h): identity["clusters"].values[identity["heads"].values == h] for h in (1, max(slides.HEADS))}
    change = counts[max(slides.HEADS)] - counts[1]
    return int(np.sum(change < 0)), int(np.sum(change != 0))


def share_of_one(identity: Any) -> str:
    """How many of the runs with 16 heads end in one cluster, in words."""
    many = identity.isel(row=identity["heads"].values == max(slides.HEADS))
    return f"{int(np.sum(many['clusters'].values + many['singles'].values == 1))} of {many.sizes['row']}"


def figures(data: Data) -> dict[str, Any]:
    """Curves of NC1 and NC2, the number of clusters over the number of heads, and NC2 beside chance."""
    from attnlab.experiments.neural_collapse_figures import draw_curves, draw_simplex

    return {"neural_collapse": draw_curves(data), "neural_collapse_simplex": draw_simplex(data)}


def _relabelled(cases: Any) -> None:
    """Every NC1 by shuffled labels."""
    for name in ("rate", "scatter_rate"):
        cases[name] = cases[name] * 0.0
    cases["shuffled_p"] = cases["shuffled_p"] * 0.0 + 0.5


def _all_fall(cases: Any) -> None:
    """NC1 falls like e^(-2.5 τ) everywhere, and by the loops it is something else."""
    cases["rate"] = cases["rate"] * 0.0 - 2.5
    cases["loop"] = cases["loop"] * 1.1


def _more_clusters(cases: Any) -> None:
    """The more heads, the more clusters; two clusters lie askew, and steps matter."""
    cases["clusters"] = cases["clusters"] * 0 + cases["heads"] // 4 + 2
    cases["clusters"] = cases["clusters"].where(cases["values"] == "identity", 3)
    cases["step_pairs"] = cases["step_pairs"] + 1


def _askew(cases: Any) -> None:
    """Two clusters at a right angle."""
    cases["angles"] = cases["angles"] + 1.0


def _simplex(limits: Any) -> None:
    """The means of all clusters at the corners of a simplex, even where there is none."""
    limits["angles"], limits["place"] = limits["angles"] * 0.0, limits["place"] * 0.0


experiments.register("neural_collapse")(
    Experiment(
        name="neural_collapse",
        title="Neural collapse of tokens: clusters become points, but no simplex",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), the question of neural collapse; "
        "NC1 and NC2 of Papyan, Han, Donoho, PNAS 117 (2020)",
        about="When a classifier is trained long enough, the features of a class become one point (NC1), and the points of all "
        "classes the corners of a regular simplex (NC2). The slides see tokens cluster under attention and ask whether that is "
        "the same. Here NC1 and NC2 are followed with the final clusters as classes, clusters of one token left out, for 1 to "
        "16 heads, synthetic and of a trained model, with V = I as in the slides and with the heads' own values, all from "
        "tokens uniform in [-5, 5]^d.\n\n"
        "Half of it is the same. Clusters become points at a rate that is known exactly. But no simplex comes of them: with "
        "generic scores most limits have angles worse than random points have in the median; with M = I in the plane they are "
        "better, but there a simplex of more than three is impossible; and two clusters are one for free.\n\n"
        "With several heads a cluster may end between others, where NC1 itself is of no use, and "
        "with 8 or 16 heads nearly always a single cluster is left: a collapse, but of all classes into one.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "labels shuffled": changed("cases", _relabelled),
            "NC1 falls too fast": changed("cases", _all_fall),
            "more clusters with more heads": changed("cases", _more_clusters),
            "two clusters askew": changed("cases", _askew),
            "limits pulled to a simplex": changed("many", _simplex),
            "a simplex in the plane": changed("plane", _simplex),
        },
    )
)
