"""Limiting structure against the number of tokens: hull vertices, tokens that lead themselves, certified limits, four laws."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import changed, rows_where, table
from attnlab.experiments.final_leaders import counted, final_leaders
from attnlab.experiments.head_clusters import several_heads
from attnlab.experiments.intervals import share_interval
from attnlab.experiments.plain_flow import z_by_scipy
from attnlab.experiments.random_polytopes import (
    LAWS,
    draw_points,
    expected_self_leaders,
    expected_vertices,
    renyi_sulanke_square,
    self_leaders,
)  # fmt: skip
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.experiments.studies import part
from attnlab.experiments.vertices_and_tokens_figures import figures

COUNTS = {"full": (10, 30, 100, 300, 1000, 3000), "small": (10, 30, 100)}
SCALES = (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
SLIDES = 5.0
"""The slides start in [-5, 5]^d."""

STARTS = {"full": {10: 24, 30: 24, 100: 8, 300: 3}, "small": {10: 8, 30: 8}}
SHOWN = {"full": SCALES, "small": (0.1, 1.0, 2.0, SLIDES, 20.0)}
LARGE = [(law, 2, n, scale, 1) for n, scale in ((1000, 0.5), (1000, SLIDES), (1000, 20.0), (3000, SLIDES))
         for law in LAWS if law != "sphere"]
SPACE = [(law, 3, n, SLIDES, starts) for n, starts in ((10, 12), (30, 12), (100, 4)) for law in LAWS]
FURTHER = {"full": [*LARGE, ("sphere", 2, 1000, 20.0, 1), *SPACE],
           "small": [("cube", 2, 100, SLIDES, 2), ("ball", 2, 100, 20.0, 4),
                     *(("sphere", 2, 100, scale, 4) for scale in (2.0, SLIDES, 20.0)),
                     *((law, 3, 10, SLIDES, 2) for law in LAWS)]}
"""(law, d, n, scale, number of starts) beyond the table of all n of STARTS and all scales SHOWN in the plane."""

DRAWS = {"full": 300, "small": 60}
COMPARED = {"full": (10, 30, 100), "small": (10,)}
CHECKED = {"full": (1.0, SLIDES), "small": (SLIDES,)}
LATER = 2.0
REPORTED = "16 heads: one cluster for few tokens, several that slowly merge for more, apparently stable ones for still more"
RESAMPLES = 500


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """Hulls of many draws, limits of fewer, some of them by al.limit, one by SciPy; and several heads at n = 30."""
    data = {"hulls": hulls(size, part(progress, 0.0, 0.15)), "limits": limits(size, part(progress, 0.15, 0.75))}
    data["certified"] = certified(size, part(progress, 0.75, 0.85))
    data["reference"] = reference()
    data["heads"] = several_heads(size, model, part(progress, 0.87, 1.0))
    return data


def hulls(size: str, progress: Progress) -> Any:
    """Mean numbers of vertices and of tokens that lead themselves at t = 0, with standard errors and exact expectations."""
    from attnlab.analysis.hull import convex_hull

    rows = []
    for done, n in enumerate(COUNTS[size]):
        progress(done / len(COUNTS[size]), f"hulls, n = {n}")
        for law in LAWS:
            for d in (2, 3) if n <= 1000 and law != "sphere" else (2,):
                found = []
                for draw in range(DRAWS[size] if law != "sphere" else 1):
                    x = draw_points(law, n, d, np.random.default_rng([n, d, draw]))
                    vertices = convex_hull(x).vertices
                    found.append((len(vertices), len(self_leaders(x, vertices))))
                mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
                rows.append((law, d, n, *mean, *error, expected_vertices(law, d, n), expected_self_leaders(law, d, n)))
    names = ("law", "d", "n", "vertices", "leaders", "vertices_error", "leaders_error", "expected_vertices", "expected_leaders")
    return table(dict(zip(names, zip(*rows, strict=True), strict=True)), draws=DRAWS[size])


def limits(size: str, progress: Progress) -> Any:
    """One row a start: how many tokens lead themselves at first, how many limits there are, and when that is final."""
    cases = [(law, 2, n, scale, starts) for n, starts in STARTS[size].items() for law in LAWS for scale in SHOWN[size]]
    cases += FURTHER[size]
    rows = []
    for done, (law, d, n, scale, starts) in enumerate(cases):
        progress(done / len(cases), f"limits of {n} tokens")
        for start in range(starts):
            x = scale * draw_points(law, n, d, np.random.default_rng([n, d, start]))
            leaders, t = final_leaders(x)
            farthest = int((x @ x.mean(axis=0)).argmax())
            is_farthest = leaders is not None and bool((leaders == farthest).all())
            rows.append((law, d, n, scale, start, len(self_leaders(x)), counted(leaders), t, int(is_farthest)))
    names = ("law", "d", "n", "scale", "start", "leaders", "limits", "decided", "is_farthest")
    return table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def certified(size: str, progress: Progress) -> Any:
    """The number of limits by al.limit beside that of the runs, for a start of each kind."""
    from attnlab.limits import limit
    from attnlab.types import Weights

    rows = []
    cases = [(law, n, scale) for n in COMPARED[size] for law in LAWS for scale in CHECKED[size]]
    for done, (law, n, scale) in enumerate(cases):
        progress(done / len(cases), "certified limits")
        x = scale * draw_points(law, n, 2, np.random.default_rng([n, 2, 0]))
        end = limit(Weights(V=np.eye(2)), x, budget=20.0)
        rows.append((law, n, scale, float("nan") if end.count is None else end.count, end.grade))
    return table(dict(zip(("law", "n", "scale", "limits", "grade"), zip(*rows, strict=True), strict=True)))


def reference() -> Any:
    """Tokens z at t = 2 by the engine and by SciPy's DOP853, from the first start of ten tokens in the square."""
    import xarray

    from attnlab.engine import simulate
    from attnlab.types import Weights

    x = SLIDES * draw_points("cube", 10, 2, np.random.default_rng([10, 2, 0]))
    weights = Weights(V=np.eye(2))
    run = simulate(weights, x, t_end=LATER, saves=2, rtol=1e-9)
    assert run.z is not None
    axes = ("token", "coordinate")
    return xarray.Dataset({"ours": (axes, run.z[-1]), "plain": (axes, z_by_scipy(weights, x, LATER)), "x0": (axes, x)})


def exponents(rows: Any, expected: Any = None) -> np.ndarray:
    """95 % bootstrap intervals (2, 2): of a and of b in limits ~ n^a scale^b, or in limits over expected(n), by least squares."""
    from attnlab.starts import as_generator

    columns = np.stack([np.ones(rows.sizes["row"]), np.log(rows["n"].values), np.log(rows["scale"].values)], axis=1)
    columns[:, 1:] -= columns[:, 1:].mean(axis=0)
    heights = np.log(rows["limits"].values / (1.0 if expected is None else [expected(int(n)) for n in rows["n"].values]))
    # one start gives a row at every scale, so starts are drawn again, not rows
    starts = np.unique(np.stack([rows["n"].values, rows["start"].values], axis=1), axis=0, return_inverse=True)[1].ravel()
    count = int(starts.max()) + 1
    often = as_generator(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)[:, starts]                # (resample, row)
    squares = np.einsum("br,ri,rj->bij", often, columns, columns)
    # the pseudo-inverse answers 0 for the exponent of a scale that does not vary
    found = np.einsum("bij,br,rj,r->bi", np.linalg.pinv(squares, rcond=1e-9, hermitian=True), often, columns, heights)[:, 1:]
    return np.quantile(found, [0.025, 0.975], axis=0).T


def decided_rows(data: Data, **wanted: Any) -> Any:
    """The rows of `limits` with the wanted values whose limits are known."""
    rows = data["limits"]
    return rows.isel(row=rows_where(rows, **wanted) & np.isfinite(rows["limits"].values))


def deviation(rows: Any, name: str) -> float:
    """The largest distance of a mean from its exact expectation, in standard errors, over all cells that have both."""
    error, exact = rows[f"{name}_error"].values, rows[f"expected_{name}"].values
    fit = np.isfinite(exact) & (error > 0)
    return float((np.abs(rows[name].values - exact)[fit] / error[fit]).max())


def claims(data: Data) -> list[Claim]:
    """Random polytopes, then limits, then the slides' three sentences, then several heads."""
    return [*_hull_claims(data), *_limit_claims(data), *_slide_claims(data), *_check_claims(data)]


def _hull_claims(data: Data) -> list[Claim]:
    rows = data["hulls"]
    square = rows.isel(row=rows_where(rows, law="cube", d=2))
    last = int(square["n"].values.argmax())
    off = abs(float(square["expected_vertices"].values[last]) - renyi_sulanke_square(int(square["n"].values[last])))
    cells = int((np.isfinite(rows["expected_vertices"].values) & (rows["vertices_error"].values > 0)).sum())
    return [
        Claim("Vertices of the first hull, and tokens that lead themselves at t = 0, are as many as random-polytope theory "
              "says, for all laws and n: largest distance of a mean from its exact integral, in standard errors.",
              max(deviation(rows, "vertices"), deviation(rows, "leaders")), "", 0, 4.5,
              f"{2 * cells} cells: 4.5 standard errors are exceeded somewhere with a chance below {2 * cells * 1e-5:.0e}. Of "
              f"Renyi and Sulanke's (8/3)(ln n + γ − ln 2) for the square the integral is {off:.1e} away at n = "
              f"{square['n'].values[last]}"),
    ]


def _limit_claims(data: Data) -> list[Claim]:
    solid = ["cube", "ball", "normal"]
    missing = {scale: 1 - float(np.sum(rows["limits"].values) / np.sum(rows["leaders"].values))
               for scale in (2.0, 20.0) for rows in [decided_rows(data, law=solid, d=2, scale=scale, n=[10, 30])]}
    kept = missing[20.0] / missing[2.0] if missing[2.0] else np.nan
    square = decided_rows(data, law="cube", d=2, scale=SLIDES)
    most = int(square["n"].values.max())
    at_most = square["limits"].values[square["n"].values == most]
    largest = max((int(n) for n in np.unique(square["n"].values) if (square["n"].values == n).sum() > 2), default=most)
    peak = max(expected_self_leaders("cube", 2, n) for n in range(10, 101, 5))
    disc = exponents(decided_rows(data, law="ball", d=2, scale=20.0), partial(expected_self_leaders, "ball", 2))[0]
    circle = decided_rows(data, law="sphere", d=2, scale=[2.0, 5.0, 20.0])
    circle = circle.isel(row=circle["n"].values >= 3 * circle["scale"].values)
    in_n, in_scale = exponents(circle)
    return [
        Claim("Tokens that lead themselves at t = 0 are the limits of large starts: the share of them that is lost at scale 20 "
              "over the share lost at scale 2 (square, disc, normal).", kept, "", -0.2, 0.4,
              "under hardmax such a token stands still for ever, since hulls shrink; softmax differs where a gap of scores is "
              "below about 1, at distances below 1/scale of a boundary, so a tenth is expected"),
        Claim(f"In the square limits are not seen to grow with n, while vertices grow like ln n: limits at n = {most} "
              f"({'one start' if len(at_most) == 1 else f'mean of {len(at_most)} starts'}).",
              float(at_most.mean()), REPORTED, 3.0, peak + 1.0, "four corners, and few self-leaders besides: their exact "
              f"expectation has its peak {peak:.2f} near n = 50 and falls to 4",
              "That more tokens make more clusters does not carry over to one head in the square: there it is about one a "
              f"corner. Three starts or more there are up to n = {largest}."),
        Claim("In the disc limits grow like n^(1/3): exponent of (limits at scale 20 over the exact number of self-leaders), the "
              "end of its 95 % bootstrap interval farthest from 0.", float(np.abs(disc).max()),
              REPORTED, 0, 1 / 6, "the exact integral grows like n^(1/3), and softmax is near hardmax at "
              "this scale; 1/6 tells n^(1/3) from a constant and from √n", f"One head in the disc: more tokens, more "
              f"limits. The interval is {disc[0]:.2f} to {disc[1]:.2f}."),
        Claim("On the circle every token is a vertex and leads itself, but limits grow far more slowly than n, roughly like "
              "√(n · scale): the farthest end from 1/2 of the 95 % intervals of both exponents.",
              float(np.abs(np.array([in_n, in_scale]) - 0.5).max()), REPORTED, 0, 1 / 4,
              "a scaling argument, not a proof: noise of n tokens at angle 1/scale tilts the rim by (n · scale)^(−1/2), and "
              "tokens closer than the tilt are taken over by the neighbour uphill; 1/4 tells 1/2 from 0 and from 1",
              f"One head on the circle: more, but few of n. The intervals are {in_n[0]:.2f} to {in_n[1]:.2f} for n and "
              f"{in_scale[0]:.2f} to {in_scale[1]:.2f} for the scale: near 1/2; an exponent of exactly 1/2 is not shown."),
    ]


def _slide_claims(data: Data) -> list[Claim]:
    few, tiny = (decided_rows(data, d=2, scale=scale, n=n) for scale, n in ((SLIDES, 10), (0.1, [10, 30, 100, 300])))
    single, single_tiny = int((few["limits"].values == 1).sum()), int(tiny["is_farthest"].values.sum())
    middle = {n: decided_rows(data, d=2, scale=1.0, n=n)["limits"].values for n in (10, 30)}
    pull = [np.random.default_rng(1).choice(middle[n], (RESAMPLES, len(middle[n]))).mean(axis=1) for n in (30, 10)]
    every = data["limits"]["limits"].values
    return [
        Claim("Few tokens do not make one cluster with one head in the plane: share of starts of ten tokens at the slides' "
              "scale with one limit (upper end of its 95 % interval).", share_interval(single, few.sizes["row"])[1],
              "small n: one cluster", 0, 0.5, "under hardmax every self-leader stays; ten tokens have 4 of them in the square, "
              "so one limit is not to be expected in half of the starts",
              f"Does not carry over to one head in the plane: {single} of {few.sizes['row']} starts have one limit. The slides "
              "have 16 trained heads in many dimensions, of which this says nothing."),
        Claim("Small starts make one cluster, led by the token farthest along the mean: share at scale 0.1, all laws and n "
              "(lower end of its 95 % interval).",
              share_interval(single_tiny, tiny.sizes["row"])[0],
              "small n: one cluster", 0.8, 1.0, "while scores are small P is 1/n and x_i = x_i(0) + (e^t − 1) mean, so that "
              "all rows rank tokens by ⟨mean, x_j(0)⟩; corrections are some scale² t, a few per "
              "cent", f"One head in the plane, whatever n: {single_tiny} of {tiny.sizes['row']} starts."),
        Claim("Between them more tokens make more clusters: mean number of limits at n = 30 less that at n = 10, scale 1 "
              "(lower end of its 95 % bootstrap interval).", float(np.quantile(pull[0] - pull[1], 0.025)),
              "larger n: several clusters", 0.01, np.inf, "the mean that draws all tokens one way is of size scale/√n: the more "
              "tokens, the weaker", "One head in the plane, at that scale."),
        Claim(f"Several clusters are for ever where leaders are final: share of all {len(every)} starts that are decided by t "
              f"= 24.",
              float(np.isfinite(every).mean()), "several clusters that slowly merge; for many apparently stable", 0.95, 1.0,
              "gaps of scores grow like e^(2t), and only exceptional starts stay on a boundary",
              "With one head they do not merge later, by the criterion of final leaders; which clusters are stable is decided "
              "once scores are large, at t below 24 here."),
    ]


def _check_claims(data: Data) -> list[Claim]:
    rows, exact, pair, several = data["limits"], data["certified"], data["reference"], data["heads"]
    other = 0
    for law, n, scale, count in zip(*(exact[name].values for name in ("law", "n", "scale", "limits")), strict=True):
        found = rows["limits"].values[rows_where(rows, law=law, d=2, n=n, scale=scale, start=0)]
        other += int(not (len(found) == 1 and found[0] == count))
    alike = several["values"].values == "identity"
    return [
        Claim(f"The runs count as al.limit certifies where it was asked (plane, n ≤ {exact['n'].values.max()}, scales "
              f"{', '.join(f'{scale:g}' for scale in np.unique(exact['scale'].values))}): starts of {exact.sizes['row']} with "
              "another number of limits.",
              float(other), "", 0, 0, "al.limit bounds the integrator's error and asks twins; the runs only follow gaps of "
              "scores", f"The other {rows.sizes['row'] - exact.sizes['row']} starts, all larger n and other scales, rest on the "
              "criterion of final leaders alone."),
        Claim("The run of ten tokens is where SciPy's DOP853 puts it at t = 2: largest difference over the largest token.",
              float(np.abs(pair["ours"].values - pair["plain"].values).max() / np.abs(pair["plain"].values).max()), "", 0, 1e-6,
              "both promise 1e-9 a step or better"),
        Claim("With V_h = I and any number of heads no token leaves the first hull: largest excess of a support function, "
              "relative to the largest token.", float(several["outward"].values[alike].max()), "", -np.inf, 1e-5,
              "z' = Σ (P_h − I) z is a pull towards convex combinations, so hulls shrink; the runs have rtol 1e-6"),
    ]


def _more_vertices(rows: Any) -> None:
    """One vertex more, and one self-leader more, in every mean."""
    for name in ("vertices", "leaders"):
        rows[name] = rows[name] + 1.0


def _shifted(rows: Any) -> None:
    rows["expected_vertices"] = rows["expected_vertices"] * 1.2


def _all_lead(rows: Any) -> None:
    """Every self-leader is a limit at once, whatever the scale: no softmax."""
    rows["limits"] = ("row", rows["leaders"].values.astype(float))


def _one_for_all(rows: Any) -> None:
    """One cluster always."""
    rows["limits"] = ("row", np.ones(rows.sizes["row"]))
    rows["is_farthest"] = ("row", np.zeros(rows.sizes["row"], int))


def _undecided(rows: Any) -> None:
    counts = rows["limits"].values.copy()
    counts[::9] = np.nan
    rows["limits"] = ("row", counts)


def _kicked(pair: Any) -> None:
    pair["ours"] = pair["ours"] * (1 + 1e-4)


def _escaped(rows: Any) -> None:
    rows["outward"] = rows["outward"] + 1e-3


experiments.register("vertices_and_tokens")(
    Experiment(
        name="vertices_and_tokens",
        title="How many clusters for how many tokens? Hull vertices, self-leaders and limits",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), future work: limiting structure "
        "against the number of tokens and the first law; Renyi and Sulanke 1963 and Efron 1965 for random hulls",
        about="One head with V = I and M = I: tokens end at a few limits. How many are there for n tokens? The slides saw one "
        "cluster for few tokens, several that slowly merge for more, and apparently stable ones for many, with 16 heads in "
        "many dimensions. Here n goes from 10 to 3000, for four laws of the start and six scales.\n\nThree numbers are "
        "compared: the vertices of the first hull, for which random-polytope theory has exact integrals; the tokens that lead "
        "themselves at t = 0, ⟨x_i, x_j⟩ ≤ |x_i|² for all j, for which there is such an integral too; and the limits, from "
        "runs whose leaders are final by a criterion on the gaps of scores. For 24 starts in the plane, n ≤ 100 and scales 1 and "
        "5, certified limits were asked for as well, and agree; all else rests on the criterion, and from n = 1000 on there is "
        "one start a cell.\n\nWhat counts is the scale of the "
        "start as much as n. A large start is hardmax from the beginning: self-leaders stand still, so limits are as many as "
        "they: about four in the square up to n = 3000; about n^(1/3) in the disc, √(ln n) for the normal law. On the circle all "
        "tokens lead themselves, but neighbours take each other over, and about √(n · scale) are left. A small start is "
        "averaged first, and one token, the farthest along the mean, takes all.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "one vertex more": changed("hulls", _more_vertices),
            "another exact expectation": changed("hulls", _shifted),
            "every self-leader a limit": changed("limits", _all_lead),
            "one cluster always": changed("limits", _one_for_all),
            "starts left open": changed("limits", _undecided),
            "run kicked": changed("reference", _kicked),
            "tokens outside the hull": changed("heads", _escaped),
        },
    )
)
