"""The claims of vertices_and_tokens: random polytopes, limits, the slides' sentences, certificates,
several heads.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from attnlab.analysis.random_polytopes import (
    expected_self_leaders,
    expected_vertices,
    renyi_sulanke_square,
)
from attnlab.experiments.common.claims import (
    in_words,
    mean_in_words,
    of_mean,
    of_share,
    relative_difference,
)
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, replaced, scaled, shifted, together
from attnlab.starts import as_generator

from .experiment import SLIDES, SOLID

SHAPES = {"cube": "square", "ball": "disc", "normal": "normal", "sphere": "circle"}
REPORTED = (
    "16 heads: one cluster for few tokens, several that slowly merge for more, apparently stable"
    " ones for still more"
)
RESAMPLES = 500


def claims(data: Data) -> list[Claim]:
    """Random polytopes, then limits, then the slides' three sentences, then certificates and other
    checks.
    """
    return [
        *_hull_claims(data),
        *_limit_claims(data),
        *_slide_claims(data),
        *_certificate_claims(data),
        *_check_claims(data),
    ]


def exponents(rows: Any, expected: Any = None) -> np.ndarray:
    """95 % bootstrap intervals (2, 2): of a and of b in limits ~ n^a scale^b, or in limits over
    expected(n), by least squares.
    """
    columns = np.stack(
        [np.ones(rows.sizes["row"]), np.log(rows["n"].values), np.log(rows["scale"].values)], axis=1
    )
    columns[:, 1:] -= columns[:, 1:].mean(axis=0)
    heights = np.log(
        rows["limits"].values
        / (1.0 if expected is None else [expected(int(n)) for n in rows["n"].values])
    )
    often = _often(rows)
    squares = np.einsum("br,ri,rj->bij", often, columns, columns)
    # the pseudo-inverse answers 0 for the exponent of a scale that does not vary
    found = np.einsum(
        "bij,br,rj,r->bi",
        np.linalg.pinv(squares, rcond=1e-9, hermitian=True),
        often,
        columns,
        heights,
    )[:, 1:]
    return np.quantile(found, [0.025, 0.975], axis=0).T


def _often(rows: Any) -> np.ndarray:
    """How often each row is in each resample (resample, row). Starts are drawn, not rows: a start
    has one row per scale.
    """
    names = np.stack(
        [
            rows["n"].values,
            rows["start"].values,
            np.unique(rows["law"].values, return_inverse=True)[1],
        ],
        axis=1,
    )
    starts = np.unique(names, axis=0, return_inverse=True)[1].ravel()
    count = int(starts.max()) + 1
    return as_generator(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)[:, starts]


def decided_rows(data: Data, **wanted: Any) -> Any:
    """The rows of `limits` with the wanted values whose limits are known."""
    rows = select(data["limits"], **wanted)
    return rows.isel(row=np.isfinite(rows["limits"].values))


def deviation(rows: Any, name: str) -> float:
    """The largest distance of a mean from its exact expectation, in standard errors, over all cells
    that have both.
    """
    error, exact = rows[f"{name}_error"].values, rows[f"expected_{name}"].values
    fit = np.isfinite(exact) & (error > 0)
    return float((np.abs(rows[name].values - exact)[fit] / error[fit]).max())


def lost_share(data: Data) -> tuple[float, float]:
    """95 % interval of (share of self-leaders lost at scale 20) / (share lost at scale 2), n = 10
    and 30, over starts.
    """
    rows = decided_rows(data, law=SOLID, d=2, scale=[2.0, 20.0], n=[10, 30])
    often = _often(rows)
    sums = {
        (name, scale): often @ (rows[name].values * (rows["scale"].values == scale))
        for name in ("limits", "leaders")
        for scale in (2.0, 20.0)
    }
    lost = {scale: 1 - sums["limits", scale] / sums["leaders", scale] for scale in (2.0, 20.0)}
    if not lost[2.0].all():
        return float("nan"), float("nan")
    low, high = np.quantile(lost[20.0] / lost[2.0], [0.025, 0.975])
    return float(low), float(high)


def named(rows: Any, chosen: np.ndarray) -> str:
    """The chosen rows in words, equal cells together; "none" where there are none."""
    cells = zip(*(rows[name].values[chosen] for name in ("law", "d", "n", "scale")), strict=True)
    found = Counter(
        f"{SHAPES[law] if d == 2 else f'{law} in space'}, n = {n}, scale {scale:g}"
        for law, d, n, scale in cells
    )
    return (
        "; ".join(
            words + (f" ({many} starts)" if many > 1 else "") for words, many in found.items()
        )
        or "none"
    )


def _hull_claims(data: Data) -> list[Claim]:
    rows = data["hulls"]
    square = select(rows, law="cube", d=2)
    last = int(square["n"].values.argmax())
    off = abs(
        float(square["expected_vertices"].values[last])
        - renyi_sulanke_square(int(square["n"].values[last]))
    )
    cells = int(
        (np.isfinite(rows["expected_vertices"].values) & (rows["vertices_error"].values > 0)).sum()
    )
    return [
        Claim(
            text=(
                "Vertices of the first hull, and tokens that lead themselves at t = 0, are as many"
                " as random-polytope theory says, for all laws and n: largest distance of a mean"
                " from its exact integral, in standard errors."
            ),
            measured=max(deviation(rows, "vertices"), deviation(rows, "leaders")),
            low=0,
            high=4.5,
            because=(
                f"{2 * cells} cells: 4.5 standard errors are exceeded somewhere with a chance below"
                f" {2 * cells * 1e-5:.0e}. Of Renyi and Sulanke's (8/3)(ln n + γ − ln 2) for the"
                f" square the integral is {off:.1e} away at n = {square['n'].values[last]}"
            ),
        ),
    ]


def _limit_claims(data: Data) -> list[Claim]:
    kept = lost_share(data)
    square = decided_rows(data, law="cube", d=2, scale=SLIDES)
    most = max(
        (int(n) for n in np.unique(square["n"].values) if (square["n"].values == n).sum() > 2),
        default=0,
    )
    at_most = square["limits"].values[square["n"].values == most]
    peak = max(expected_self_leaders("cube", 2, n) for n in range(10, 101, 5))
    discs = decided_rows(data, law="ball", d=2, scale=20.0)
    disc = exponents(discs, partial(expected_self_leaders, "ball", 2))[0]
    circle = decided_rows(data, law="sphere", d=2, scale=[2.0, 5.0, 20.0])
    circle = circle.isel(row=circle["n"].values >= 3 * circle["scale"].values)
    in_n, in_scale = exponents(circle)
    return [
        Claim(
            text=(
                "Tokens that lead themselves at t = 0 are the limits of large starts: the share of"
                " them that is lost at scale 20 over the share lost at scale 2 (square, disc,"
                " normal; upper end of its 95 % bootstrap interval)."
            ),
            measured=kept[1],
            low=-0.2,
            high=0.4,
            because=(
                "under hardmax such a token stands still for ever, since hulls shrink; softmax"
                " differs where a gap of scores is below about 1, at distances below 1/scale of a"
                " boundary, so 2/20, a tenth, is expected; that up to four times as much passes is"
                " a reading of 'about'"
            ),
            differs=f"The interval is {kept[0]:.2f} to {kept[1]:.2f}.",
        ),
        Claim(
            text=(
                "In the square limits are not seen to grow with n beyond 50, while vertices grow"
                f" like ln n: mean number of limits at n = {most} at the slides' scale,"
                f" {len(at_most)} starts (upper end of its 95 % interval)."
            ),
            **of_mean(at_most, "high"),
            quantity="mean number of limits",
            expected=f"at most {peak + 1:.3g}",
            published=REPORTED,
            low=3.0,
            high=peak + 1.0,
            because=(
                "four corners, and few self-leaders besides: their exact expectation has its peak"
                f" {peak:.2f} near n = 50 and falls to 4, while there are"
                f" {expected_vertices('cube', 2, most) if most else np.nan:.1f} vertices; one more"
                " than the peak is a reading of 'not growing'"
            ),
            differs=(
                "That more tokens make more clusters does not carry over to one head in the"
                f" square: there it is about one a corner. Mean {mean_in_words(at_most, 'starts')}."
            ),
        ),
        Claim(
            text=(
                "In the disc limits grow like n^(1/3): exponent of (limits at scale 20 over the"
                " exact number of self-leaders), the end of its 95 % bootstrap interval farthest"
                " from 0."
            ),
            measured=float(np.abs(disc).max()),
            quantity="exponent of n beyond that of self-leaders",
            value=float(disc.mean()),
            interval=tuple(disc.tolist()),
            sample="95 %, bootstrap over starts",
            expected="0",
            published=REPORTED,
            low=0,
            high=1 / 6,
            because=(
                "the exact integral grows like n^(1/3), and softmax is near hardmax at this scale;"
                " 1/6 tells n^(1/3) from a constant and from √n"
            ),
            differs=(
                "One head in the disc: more tokens, more limits, up to n ="
                f" {discs['n'].values.max(initial=0)}. The interval is {disc[0]:.2f} to"
                f" {disc[1]:.2f}."
            ),
        ),
        Claim(
            text=(
                "On the circle every token is a vertex and leads itself, but limits grow far more"
                " slowly than n, roughly like √(n · scale): the farthest end from 1/2 of the 95 %"
                " intervals of both exponents."
            ),
            measured=float(np.abs(np.array([in_n, in_scale]) - 0.5).max()),
            quantity="exponent of n",
            value=float(in_n.mean()),
            interval=tuple(in_n.tolist()),
            sample="95 %, bootstrap over starts",
            expected="1/2",
            published=REPORTED,
            low=0,
            high=1 / 4,
            because=(
                "a scaling argument, not a proof: noise of n tokens at angle 1/scale tilts the rim"
                " by (n · scale)^(−1/2), and tokens closer than the tilt are taken over by the"
                " neighbour uphill; 1/4 tells 1/2 from 0 and from 1"
            ),
            differs=(
                f"One head on the circle, n up to {circle['n'].values.max(initial=0)}: more, but"
                f" few of n. The intervals are {in_words(in_n)} for n and {in_words(in_scale)} for"
                " the scale: near 1/2; "
            )
            + (
                "an exponent of exactly 1/2 is not shown."
                if in_n[0] <= 0.5 <= in_n[1] and in_scale[0] <= 0.5 <= in_scale[1]
                else "but exactly 1/2 for both is excluded over this range."
            ),
        ),
    ]


def _slide_claims(data: Data) -> list[Claim]:
    few, tiny = (
        decided_rows(data, d=2, scale=scale, n=n)
        for scale, n in ((SLIDES, 10), (0.1, [10, 30, 100, 300]))
    )
    single, single_tiny = (
        int((few["limits"].values == 1).sum()),
        int(tiny["is_farthest"].values.sum()),
    )
    middle = {n: decided_rows(data, d=2, scale=1.0, n=n)["limits"].values for n in (10, 30)}
    pull = [
        np.random.default_rng(1).choice(middle[n], (RESAMPLES, len(middle[n]))).mean(axis=1)
        for n in (30, 10)
    ]
    rows = data["limits"]
    is_open = ~np.isfinite(rows["limits"].values)
    return [
        Claim(
            text=(
                "Few tokens do not make one cluster with one head in the plane: share of starts of"
                " ten tokens at the slides' scale with one limit (upper end of its 95 % interval)."
            ),
            **of_share(single, few.sizes["row"], "high"),
            quantity="share of starts with one limit",
            expected="less than 1/2",
            published="small n: one cluster",
            low=0,
            high=0.5,
            because=(
                "under hardmax every self-leader stays; ten tokens have 4 of them in the square, so"
                " one limit is not to be expected; 'do not make' is read as: in fewer than half of"
                " the starts"
            ),
            differs=(
                f"Does not carry over to one head in the plane: {single} of {few.sizes['row']}"
                " starts have one limit. The slides have 16 heads of a model in many dimensions,"
                " of which this says nothing."
            ),
        ),
        Claim(
            text=(
                "Small starts make one cluster, led by the token farthest along the mean: share at"
                " scale 0.1, all laws and n (lower end of its 95 % interval)."
            ),
            **of_share(single_tiny, tiny.sizes["row"]),
            quantity="share of starts with one limit, at that token",
            expected="more than 0.8",
            published="small n: one cluster",
            low=0.8,
            high=1.0,
            because=(
                "while scores are small P is 1/n and x_i = x_i(0) + (e^t − 1) mean, so that all"
                " rows rank tokens by ⟨mean, x_j(0)⟩; corrections are some scale² t, a few per cent"
            ),
            differs=(
                f"One head in the plane, whatever n: {single_tiny} of {tiny.sizes['row']} starts."
            ),
        ),
        Claim(
            text=(
                "Between them more tokens make more clusters: mean number of limits at n = 30 less"
                " that at n = 10, scale 1 (lower end of its 95 % bootstrap interval)."
            ),
            measured=float(np.quantile(pull[0] - pull[1], 0.025)),
            published="larger n: several clusters",
            low=0.01,
            high=np.inf,
            because=(
                "the mean that draws all tokens one way is of size scale/√n: the more tokens, the"
                " weaker"
            ),
            differs="One head in the plane, at that scale.",
        ),
        Claim(
            text=(
                "Where leaders are final several clusters stay for ever: share of all"
                f" {len(is_open)} starts that are decided by t = 24."
            ),
            measured=1 - float(is_open.mean()),
            published="several clusters that slowly merge; for many apparently stable",
            low=0.95,
            high=1.0,
            because=(
                "gaps of scores grow like e^(2t), and only exceptional starts stay on a boundary"
            ),
            differs=(
                "With one head they do not merge later, by the criterion of final leaders; which"
                " clusters are stable is decided once scores are large, at t below 24 here. Open:"
                f" {named(rows, is_open)}."
            ),
        ),
    ]


def _certificate_claims(data: Data) -> list[Claim]:
    asked = data["certified"]
    grades, others = asked["grade"].values, asked["others"].values
    is_exact = grades == "exact"
    is_both = is_exact & np.isfinite(others)
    by_law = "; ".join(
        f"{words} n = "
        + ", ".join(
            f"{n} ({many})"
            for n, many in Counter(
                asked["n"].values[is_exact & (asked["law"].values == law)].tolist()
            ).items()
        )
        for law, words in SHAPES.items()
    )
    without = [
        f"{one}, {words}"
        for one, chosen in (
            ("al.limit undecided", ~is_exact),
            ("criterion open", is_exact & ~is_both),
        )
        for words in [named(asked, chosen)]
        if words != "none"
    ]
    unasked = data["limits"].sizes["row"] - len(grades)
    excess = np.maximum(asked["outward"].values, asked["error"].values)[is_exact]
    return [
        Claim(
            text=(
                "The criterion of final leaders gives every token the leader that al.limit"
                f" certifies: tokens of {int(asked['n'].values[is_both].sum())} with another one,"
                f" over the {int(is_both.sum())} of {len(grades)} starts asked for on which both"
                " speak (more than half, or nothing is claimed)."
            ),
            measured=float(others[is_both].sum()) if is_both.mean() > 0.5 else np.nan,
            low=0,
            high=0,
            because=(
                "al.limit bounds the integrator's error and asks replicas; the criterion only"
                " follows gaps of scores in a run of rtol 1e-6 or 1e-5"
            ),
            differs=(
                "Certified in the plane, scales"
                f" {', '.join(f'{s:g}' for s in np.unique(asked['scale'].values))} (starts):"
                f" {by_law}. {'. '.join(without) or 'None is undecided'}. Not asked, so resting on"
                f" the criterion alone: the other {unasked} starts."
            ),
        ),
        Claim(
            text=(
                "Certified limits lie in the first hull, n up to"
                f" {asked['n'].values[is_exact].max(initial=0)}: largest excess of a support"
                " function, or error bound, relative to the largest token."
            ),
            measured=float(excess.max()) if len(excess) else np.nan,
            low=-np.inf,
            high=1e-6,
            because=(
                "with V = I hulls of z only shrink; the error bounds are al.limit's own, at most "
                f"{asked['error'].values[is_exact].max(initial=0.0):.0e} here"
            ),
        ),
    ]


def _check_claims(data: Data) -> list[Claim]:
    pair, several = data["reference"], data["heads"]
    alike = several["values"].values == "identity"
    return [
        Claim(
            text=(
                "The run of ten tokens is where SciPy's DOP853 puts it at t = 2: largest difference"
                " over the largest token."
            ),
            measured=relative_difference(pair["ours"], pair["plain"]),
            low=0,
            high=1e-6,
            because="both promise 1e-9 a step or better",
        ),
        Claim(
            text=(
                "With V_h = I and any number of heads no token leaves the first hull: largest"
                f" excess of a support function in {int(alike.sum())} runs, relative to the largest"
                " token."
            ),
            measured=float(several["outward"].values[alike].max()),
            low=-np.inf,
            high=1e-5,
            because=(
                "z' = Σ (P_h − I) z is a pull towards convex combinations, so hulls shrink; the"
                " runs have rtol 1e-7 a step, and some hundred steps"
            ),
        ),
    ]


spoils = {
    "one vertex and one self-leader more": shifted("hulls", ("vertices", "leaders"), 1.0),
    "another exact expectation": scaled("hulls", "expected_vertices", 1.2),
    "every self-leader a limit": changed(
        "limits", lambda rows: rows.assign(limits=rows["leaders"].astype(float))
    ),
    "one cluster always": together(
        constant("limits", "limits", 1.0), constant("limits", "is_farthest", 0)
    ),
    "starts left open": replaced(
        "limits", "limits", lambda counts: np.where(np.arange(len(counts)) % 9, counts, np.nan)
    ),
    "one token certified to follow another": shifted("certified", "others", 1.0),
    "certified limits outside the hull": shifted("certified", "outward", 1e-3),
    "run kicked": scaled("reference", "ours", 1 + 1e-4),
    "tokens outside the hull": shifted("heads", "outward", 1e-3),
}
