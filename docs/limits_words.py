"""The text of docs/limits.md: three questions, answered from the records."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Any

import numpy as np
from limits_cases import (
    CODIMENSION,
    DIMENSIONS,
    LAWS,
    NUDGES,
    OWN_SIZES,
    POLYTOPES,
    WATCHED,
    Record,
    expected_own,
    value_matrix,
)
from limits_numbers import (
    WIDTH,
    clopper_pearson,
    column,
    counted,
    expected_slope,
    grades,
    mean_error,
    paragraph,
    slope,
    spread,
    table,
)

import attnlab as al

LINES = {
    "eigenvalues of V": "They decide everything: e^{tV} multiplies the eigen-coordinate of rate lambda by e^{lambda t}.",
    "growing directions": "F is spanned by the eigenvectors with positive eigenvalue; the limits are points of F.",
    "state certified": (
        "The proof starts from the tokens at this time. The softmax flow is integrated until attention is as good as Boolean, "
        "then handed over to a flow in closed form, whose changes of leader are the events."
    ),
    "leaders": "The tokens that attend to themselves in the end. Everybody else follows one of them, and ends where it ends.",
    "gaps": (
        "The heart. The gap of row i to token k is the score of i's leader minus that of k. From here on it is an explicit "
        "sum of exponentials; ordered by exponent, all partial sums clear a margin (Abel summation), so that the gap stays "
        "above G e^(mu s) for ever: nobody changes the leader again, and what softmax leaks to others is at most n e^-gap."
    ),
    "error of the state": (
        "How far the computed x may be off. It looks large beside the points because x itself is large: its logarithm stands "
        "above. Every partial sum had to be positive after subtracting what this error can do."
    ),
    "replicas": (
        "A proof about a computed state is worth nothing if rounding chose the state. So everything is repeated from two "
        "starts pushed apart in opposite directions, with another tolerance and another time of hand-over. All three must "
        "agree."
    ),
    "error of the points": (
        "The error of the state, scaled back by e^{-lambda t}, or ten times the difference between the replicas, whichever is "
        "larger."
    ),
    "grade": (
        "exact: labels, points and leaders. group: labels and points, but tokens have merged below rounding and it is open "
        "which of them leads. undecided: nothing is claimed."
    ),
}
"""What each line of a certificate says."""


def first_question(rows: dict[str, list[Record]]) -> str:
    """The codimension conjecture."""
    keys = [f"codimension/{name}/{n}" for name, n, _ in CODIMENSION]
    everything = [row for key in keys for row in rows[key]]
    certified = [row for row in everything if row["grade"] != "undecided"]
    others, all_others = sum(row["count"] != 2 for row in certified), sum(row["count"] != 2 for row in everything)
    body = []
    for (name, n, _), key in zip(CODIMENSION, keys, strict=True):
        found = [row for row in rows[key] if row["grade"] != "undecided"]
        low, high = clopper_pearson(sum(row["count"] != 2 for row in found), len(found))
        fastest = float(np.linalg.eigvalsh(value_matrix(name))[-1])
        body.append([name, n, len(rows[key]), counted(found), grades(rows[key]), f"{100 * low:.2g} – {100 * high:.2g} %",
                     spread(column(found, "t")), f"{fastest * np.median(column(found, 't')):.3g}",
                     spread(column(found, "events"), ".0f"), f"{sum(bool(row['is_extreme']) for row in found)}"])
    early = []
    for (name, n, _), key in zip(CODIMENSION, keys, strict=True):
        fine, coarse = np.array([row["early"] for row in rows[key]]).T
        right = [int((counts == 2).sum()) for counts in (fine, coarse)]
        early.append([name, n, spread(fine, ".0f"), f"{right[0]} of {len(fine)}", spread(coarse, ".0f"),
                      f"{right[1]} of {len(coarse)}", f"{latest_settled(rows[key]):.0f}"])
    paper, close = rows[keys[0]], rows[keys[1]]
    groups = [row for row in everything if row["grade"] == "group"]
    undecided = Counter(row["kind"] for row in everything if row["grade"] == "undecided")
    left_open = "None was undecided." if not undecided else (
        "Undecided: " + ", ".join(f"{times} ({kind})" for kind, times in undecided.items())
        + f"; taken as exceptions, they would be {all_others} of {len(everything)}. "
        + " ".join(f"{key.removeprefix('codimension/')}, start {seed}: {row['reason']}"
                   for key in keys for seed, row in enumerate(rows[key]) if row["grade"] == "undecided")
    )
    sides = sum(row["sides"] == 2 and row["count"] == 2 for row in certified)
    crosses = [[f"{nudge:g}", row["count"], row["grade"], f"{row['t']:.3g}"]
               for nudge, row in zip(NUDGES, rows["cross"], strict=True)]
    return "\n\n".join([
        "## 1. The codimension conjecture: how many limits?",
        paragraph(f"""
        **Question.** Let k be the number of eigenvalues of V with positive real part, F the span of their eigenvectors.
        Conjecture 4.3 of the paper: there are at most three parallel affine subspaces of codimension k such that every rescaled
        token approaches one of them; in other words, the projections of the z_i on F have at most three different limits. The
        paper shows one run of one 3 x 3 matrix (called C9 here; eigenvalues 1.963, 0.253, -0.222, so k = 2) up to T = 5, where
        e^{{-0.253 T}} is still 0.28.

        **Answer.** Two. Of {len(everything)} random starts (tokens independent and uniform in [-5, 5]^3, Q = K = I)
        {len(certified)} were certified, and {"every one" if not others else f"all but {others}"} has exactly two limits in F,
        one on either side of the hyperplane phi_1 = 0 ({sides} of {len(certified)}), phi_1 being the coordinate along the
        leading eigenvector. {rate_sentence(paper, "the paper's matrix with 30 tokens")}
        """),
        table(["V", "n", "starts", "limits in F", "exact / group / undecided", "P(another count)", "t of decision", "lambda_1 t",
               "events", "led by the extremes"], body),
        paragraph(f"""
        *Ranges: median (smallest – largest). P: Clopper–Pearson 95 % interval, over the certified starts. t of decision: the
        time of the state from which the end is proved, on a grid of 1 / (4 lambda_1) where no events are needed. lambda_1 t:
        its median in units in which double precision, used naively, ends near 30. Events: changes of leader that the
        closed-form flow passed. Led by the extremes: starts in which the two leaders are the tokens with the largest and the
        smallest phi_1 at time 0.*

        Grade "group" ({len(groups)} of them, {counted(groups)}): the number and the points are certified, the name of the
        leader inside a merged group is not. {left_open} The largest error of a point is
        {max(row["error"] for row in certified):.1g}; tokens start within 5.

        **What is decided early is seen late.** For C9 the verdict is in at t = {np.median(column(paper, "t")):.2g} in the
        median: from then on nobody changes the leader. But the slow coordinate approaches its limit like e^{{-0.253 t}}, so at
        T = 5 one still counts {np.median([row["early"][0] for row in paper]):.0f} clusters at a resolution of 1 %. With V =
        diag(1, 0.9, -0.5) it is the other way round: few clusters are seen early, but leaders with almost equal growth rates
        overtake each other until t = {column(close, "t").max():.0f}, and the plateau that one sees (in the median
        {seen_at(close, 5)} clusters at t = 5, {seen_at(close, 10)} at t = 10, {seen_at(close, 15)} at t = 15) is not the limit.
        """),
        "![Clusters counted at time t](images/limits_codimension.png)",
        table(["V", "n", "clusters at T = 5, resolution 1 %", "right", "resolution 5 %", "right", "95 % show 2 from t ="],
              early),
        paragraph(f"""
        *The clusters of z projected on F, from `al.simulate` to T = 5, single linkage at 1 % or 5 % of the diameter of the
        projected tokens at that time; "right": starts in which that number is 2. `al.simulate` (default tolerance) and the path
        of `al.limit` differ by at most {max(row["check"] for row in everything):.1g} at T = 5.*

        **"Generic" is needed.** Read literally ("any initial sequence") the conjecture is false: four tokens (±1, 0), (0, ±1)
        with V = diag(1.2, 0.8) stay on their axes by symmetry and have four limits, (±0.7507, 0) and (0, ±0.7507). attnlab
        finds the symmetry, keeps it in the arithmetic, and certifies four; as soon as the data are perturbed at random, it is
        two:
        """),
        table(["perturbation", "limits", "grade", "t of decision"], crosses),
        paragraph("""
        **Conjecture to take home.** *Q^T K = I, V symmetric, lambda_1 > 0 simple, tokens drawn from a density: almost surely
        the projections on F have at most two limits, at most one with phi_1 > 0 and at most one with phi_1 < 0.* A reason, not
        a proof: two leaders on the same side with phi_1 coordinates a > b > 0 both grow like e^{lambda_1 t}; the score of the
        first at the second exceeds the second's own by b (a - b) e^{2 lambda_1 t} up to slower exponentials. So the second must
        in the end follow the first, however long slower coordinates shelter it.

        **Caveats.** Independent uniform starts only; other laws may hide other counts. Three limits would need a token that
        stays bounded in phi_1 for ever, which presumably has probability zero: no sample of this kind would show it. The
        interval says what can be excluded about *this* law.
        """),
    ])


def rate_sentence(rows: list[Record], what: str) -> str:
    """What a sample says about the probability of another count."""
    found = [row for row in rows if row["grade"] != "undecided"]
    others = sum(row["count"] != 2 for row in found)
    high = clopper_pearson(others, len(found))[1]
    three = f" (rule of three: below {300 / len(found):.2g} %)" if others == 0 else ""
    return (
        f"For {what}: {others} exceptions in {len(found)}, so another count has probability below {100 * high:.2g} % at "
        f"95 % confidence{three}."
    )


def seen_at(rows: list[Record], t: float) -> str:
    """The median number of clusters at 1 % at a watched time."""
    seen = [row["seen"][WATCHED.tolist().index(t)] for row in rows]
    return f"{np.median([count for count in seen if count is not None]):g}"


def latest_settled(rows: list[Record]) -> float:
    """The first watched time from which on 95 % of the starts show as many clusters as they have limits; NaN if none."""
    seen = np.array([row["seen"] for row in rows if row["grade"] != "undecided"], dtype=float)
    share = (seen == column(rows, "count")[:, None]).mean(axis=0) >= 0.95
    if not share[-1]:
        return float("nan")
    wrong = np.flatnonzero(~share)
    return float(WATCHED[wrong[-1] + 1]) if wrong.size else 0.0


def second_question(rows: dict[str, list[Record]]) -> str:
    """The high-dimensional run."""
    body, details, undecided = [], [], []
    for d, _, work in DIMENSIONS:
        found = rows.get(f"dimension/{d}", [])
        if not found:
            continue
        first, second = (np.array([row["values"][place] for row in found]) for place in (1, 0))
        body.append([d, len(found), spread([row["k"] for row in found], ".0f"), spread(first), spread(first - second, ".2g"),
                     counted(found), grades(found), spread(column(found, "t")), spread(column(found, "events"), ".0f"),
                     spread([row["seconds"] for row in found], ".0f")])
        for seed, row in enumerate(found):
            if row["grade"] == "undecided":
                undecided.append(f"- d = {d}, draw {seed}, lambda_1 = {row['values'][1]:.5g}, lambda_1 - lambda_2 = "
                                 f"{row['values'][1] - row['values'][0]:.2g}, {work:g} units of work: {row['reason']}")
            elif d == DIMENSIONS[-1][0]:
                details.append([seed, row["k"], f"{row['values'][1]:.4g}", f"{row['values'][0]:.4g}", f"{row['values'][2]:.4g}",
                                row["count"], " + ".join(str(size) for size in row["sizes"]),
                                ", ".join(str(leader) for leader in row["leaders"]), f"{row['t']:.3g}", row["events"],
                                f"{row['error']:.1g}", row["grade"]])
    d = max(int(key.split("/")[1]) for key in rows if key.startswith("dimension/"))
    largest = rows[f"dimension/{d}"]
    everything = [row for key, found in rows.items() if key.startswith("dimension/") for row in found]
    certified = [row for row in everything if row["grade"] != "undecided"]
    return "\n\n".join([
        "## 2. 128 tokens in 128 dimensions",
        paragraph(f"""
        **Question.** The paper's high-dimensional experiment: V sparse symmetric (entries U(0, 1) at density 0.1, symmetrized,
        eigenvalues of modulus at most 1 replaced by their sign times U(1, 2)), n = d = 128 tokens uniform in [-1/2, 1/2]^128, Q
        = K = I, T = 15. It shows that coordinates cluster. How many limits are there in F, whose dimension is about 65?

        **Answer.** Two, although F has {spread([row["k"] for row in largest], ".0f")} dimensions:
        {sum(row["count"] == 2 for row in largest)} of {len(largest)} draws with d = {d}, decided at t =
        {spread(column(largest, "t"))}, long before T = 15. Over all sizes {len(certified)} of {len(everything)} draws were
        certified, {counted(certified)}. The published draw itself is not available (the notebook sets no seed); ours are built
        as described and look like it: it had lambda_1 = 6.678, smallest eigenvalue -2.846, k = 65.
        """),
        table(["d = n", "draws", "k", "lambda_1", "lambda_1 - lambda_2", "limits in F", "exact / group / undecided",
               "t of decision", "events", "seconds"], body),
        *([f"The draws with d = {DIMENSIONS[-1][0]} one by one:",
           table(["draw", "k", "lambda_1", "lambda_2", "smallest", "limits", "tokens at each", "leaders", "t", "events", "error",
                  "grade"], details)] if details else []),
        paragraph("""
        **Small is harder than large.** The mean of the entries adds an eigenvalue of about 0.05 d. At d = 128 it stands far
        above the rest (6.6 against 2.8), the leading coordinate wins at once, and no leader ever changes after the hand-over.
        At d = 32 it drowns among the eigenvalues redrawn from (1, 2); lambda_1 - lambda_2 is then of the order 0.1 or less,
        leaders overtake each other, and the time of decision is of the order of 1 / (lambda_1 - lambda_2).
        """),
        *(["Undecided:", "\n".join(undecided)] if undecided else ["None was undecided."]),
        paragraph("""
        **Caveats.** A handful of draws, one law. "Two limits" is about the projection on F; the other directions of z do not
        converge and are not meant to.
        """),
    ])


def third_question(rows: dict[str, list[Record]]) -> str:
    """Vertices of the limit polytope."""
    everything = [row for key, found in rows.items() if key.startswith("polytope/") for row in found]
    certified = [row for row in everything if row["grade"] != "undecided"]
    sizes = [n for n in POLYTOPES if f"polytope/2/u5/{n}" in rows]
    body = []
    for d in (2, 3):
        for words, law in LAWS.items():
            cells: list[Any] = [d, words]
            for n in sizes:
                values = column(rows[f"polytope/{d}/{law}/{n}"], "count")
                mean, error = mean_error(values)
                cells.append(f"**{mean:.1f}** ± {error:.1f} ({values.min():.0f} – {values.max():.0f})")
            body.append(cells)
    compared = []
    for d in (2, 3):
        for words, law in LAWS.items():
            last = rows[f"polytope/{d}/{law}/{sizes[-1]}"]
            theory = f"{expected_own(sizes[-1], d):.1f}" if law == "g5" else "–"
            compared.append([d, words, f"{column(last, 'count').mean():.1f}", f"{column(last, 'own').mean():.1f}", theory,
                             f"{column(last, 'hull').mean():.1f}",
                             *(f"{b:+.2f} ± {error:.2f}" if name == "hull" or law == "g5" else "–"
                               for name in ("count", "own", "hull") for b, error in [slope(rows, d, law, name, 50)]),
                             f"{expected_slope(sizes, d):+.2f}" if law == "g5" else "–"])
    corners = [[d, *(f"{row['mean']:.2f} ± {row['error']:.2f}" for row in rows[f"own/{d}"])] for d in (2, 3)]
    vertices = sum(row["vertices"] == row["count"] for row in certified)
    by_own = sum(row["led_by_own"] == row["count"] for row in certified)
    fewer = sum(row["count"] < row["own"] for row in certified)
    more = sum(row["count"] > row["own"] for row in certified)
    tokens = [f"{n}: {len(rows[f'polytope/2/u5/{n}'])}" for n in sizes]

    def at(d: int, law: str, n: int = sizes[-1], name: str = "count") -> str:
        return f"{column(rows[f'polytope/{d}/{law}/{n}'], name).mean():.1f}"

    return "\n\n".join([
        "## 3. V = I: how many vertices has the polytope?",
        paragraph(f"""
        **Question.** Theorem 3.1: with V = I the rescaled tokens converge to the boundary of a convex polytope (or to 0). It
        does not say how many vertices there are, nor how the number depends on n and on the start.

        **Answer.** Few. From {sizes[0]} to {sizes[-1]} tokens the number of limits goes from {at(2, "u5", sizes[0])} to
        {at(2, "u5")} in the plane and from {at(3, "u5", sizes[0])} to {at(3, "u5")} in space for starts in [-5, 5]^d, while the
        hull of the start goes from {at(2, "u5", sizes[0], "hull")} to {at(2, "u5", name="hull")} and from
        {at(3, "u5", sizes[0], "hull")} to {at(3, "u5", name="hull")} vertices. For the cube it is not monotone and appears to
        settle at its 2^d corners; for Gaussian starts it grows slowly, from {at(2, "g5", sizes[0])} to {at(2, "g5")} in the
        plane and from {at(3, "g5", sizes[0])} to {at(3, "g5")} in space, close to an expected number that grows like sqrt(log
        n) and log n (see below). Of {len(everything)} answers {grades(everything)} are exact / group / undecided; every limit
        is a vertex of the limit polytope in {vertices} of {len(certified)}.
        """),
        "![Limits against the number of tokens](images/limits_vertices.png)",
        table(["d", "start", *(f"n = {n}" for n in sizes)], body),
        paragraph(f"""
        *Number of limits: mean ± its standard error (smallest – largest). Starts for each law and dimension, by n:
        {", ".join(tokens)}. Time of decision {spread(column(everything, "t"))}; changes of leader after the hand-over:
        {int(column(everything, "events").sum())} in all.*

        **Who survives.** Call a token of the start *self-leading* if it attends to itself more than to any other: |x_i|^2 >
        <x_i, x_j> for all j, i.e. the plane through x_i perpendicular to x_i has all others on the side of 0. Such tokens are
        vertices of the hull, but not every vertex is one. For infinitely sharp attention (hardmax) they stand still for ever
        and every one of them is a limit. With softmax some fade: in {fewer} of {len(certified)} runs there are fewer limits
        than self-leading tokens, in {len(certified) - fewer - more} equally many, in {more} more; and in {by_own} all final
        leaders were self-leading from the start. (A token can become one later, when the one it listened to has moved away.)
        The smaller beta |x|^2, the more fade: [-5, 5]^d with beta = 1 is [-1, 1]^d with beta = 25, and the same draws were used
        for both.
        """),
        table(["d", "start", f"limits, n = {sizes[-1]}", "self-leading", "its expectation", "hull", "slope of limits",
               "of self-leading", "of hull", "of the expectation"], compared),
        paragraph("""
        *Slopes: b of a + b ln n, weighted least squares through the means from n = 50 on, ± standard error; a description of
        this range, not a law. Left out for cubes, where the number rises and falls. ± 0.0 in the first table: all starts gave
        the same number.*

        **What the start alone predicts.** For self-leading tokens the count is elementary. *Gaussian*: a token at distance r
        (in deviations) is self-leading if none of the n - 1 others is beyond its plane, so the mean number is n E (1 -
        Phi(-r))^(n-1), which grows like 2 sqrt(pi ln n) in the plane and 4 ln n in space. (Hull vertices: 2 sqrt(2 pi ln n) and
        about 7.26 ln n, by Rényi–Sulanke and Raynaud.) *Cube*: the plane cuts off little only near a corner, and there all
        planes are nearly parallel, so that each corner keeps one: the number tends to 2^d. The convergence is slow in space,
        because the corner must hold many tokens within a distance in which planes turn little:
        """),
        table(["d", *(f"n = {n:,}" for n in OWN_SIZES)], corners),
        paragraph("""
        *Self-leading tokens of uniform starts in a cube, mean ± standard error (no dynamics).*

        **Caveats.** For n >= 500 the means rest on few starts. That softmax counts follow the self-leading ones to n = infinity
        is not shown: at fixed beta the tokens of a corner come closer than the width of softmax, and from there on the
        mean-field flow decides. Nothing here tells log n from a slowly saturating curve for Gaussians.
        """),
    ])


def reading(rows: dict[str, list[Record]]) -> str:
    """One certificate, line by line."""
    found = rows["codimension/diag(1, 0.9, -0.5)/30"]
    example = max((row for row in found[:10] if row["grade"] == "exact"), key=lambda row: row["events"])
    seed = found.index(example)
    x0 = np.random.default_rng([1, 30, seed]).uniform(-5.0, 5.0, (30, 3))
    certificate = al.limit(al.Weights(V=np.diag([1.0, 0.9, -0.5])), x0).certificate         # as it is worded today
    explained = [[f"*{label}*", words] for label, words in LINES.items() if f"\n{label} " in certificate]
    return "\n\n".join([
        "## How to read a certificate",
        paragraph(f"`print(limit.certificate)`, here for V = diag(1, 0.9, -0.5), 30 tokens, start {seed}:"),
        "```text\n" + "\n".join(textwrap.fill(line, WIDTH, subsequent_indent=" " * 21 if "  " in line else "")
                                for line in certificate.splitlines()) + "\n```",
        table(["line", "what it says"], explained),
        paragraph("""
        To get it:
        """),
        "\n".join([
            "```python", "import numpy as np", "import attnlab as al", "",
            f"x0 = np.random.default_rng([1, 30, {seed}]).uniform(-5, 5, (30, 3))",
            "limit = al.limit(al.Weights(V=np.diag([1, 0.9, -0.5])), x0)",
            "limit.count, limit.points, limit.leaders, limit.events",
            "print(limit.certificate)", "```",
        ]),
        paragraph("""
        "Certified" means: proved for the flow that starts at the computed state, with error bars for rounding and integration
        that are estimates (tolerances, replicas), not interval arithmetic. `tests/truth/frozen/README.md` compares
        with an independent program in extended precision.
        """),
    ])
