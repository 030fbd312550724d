"""Makes docs/limits.md: what the paper (arXiv:2305.05465) left open, answered by al.limit, with tables and figures.

    python docs/make_limits.py              every question: about half an hour on two cores
    python docs/make_limits.py --quick      few starts, small systems: two minutes; the page goes into the cache folder
    python docs/make_limits.py --retry      compute again what was undecided
    python docs/make_limits.py --fresh      forget what was computed before, as after a change of al.limit

Finished answers are kept as JSON in the user's cache folder, so an interrupted program goes on where it stopped. Each answer
depends on its seed only. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import platformdirs
import scipy
from scipy.integrate import quad
from scipy.stats import beta as beta_law
from scipy.stats import chi, norm

import attnlab as al
from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.render.style import HULL, INK, NOTE, PALETTE, RULE, dress_flat, house_style, new_figure, title
from attnlab.weights import weights_families

DOCS = Path(__file__).parent
CACHE = Path(platformdirs.user_cache_dir("attnlab")) / "limits_page"
WIDTH = 130
PAPER_T = 5.0
"""The time at which the paper's figures stop."""

WATCHED = np.arange(0.0, 61.0)
"""Times at which clusters are counted, for the figure."""

Record = dict[str, Any]


# ------------------------------------------------------------------------------------------------------- finished answers


class Answers:
    """Finished answers by key, in one JSON file that is replaced as a whole."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path, self.saved = path, time.monotonic()
        self.known: dict[str, Record] = {}
        if path.exists() and not fresh:
            self.known = json.loads(path.read_text())

    def get(self, key: str, compute: Callable[[], Record]) -> Record:
        """The answer of that key, computed where it is not known."""
        if key not in self.known:
            began = time.monotonic()
            self.known[key] = compute()
            print(f"{key}  {self.known[key].get('said', '')}  {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
            if time.monotonic() > self.saved + 2.0:
                self.save()
        return self.known[key]

    def save(self) -> None:
        """Write the file anew; a reader sees the old one or the new one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(self.known, indent=0, sort_keys=True))
        os.replace(draft, self.path)
        self.saved = time.monotonic()


def record(limit: al.Limit) -> Record:
    """What the page needs of a Limit, as plain numbers and words."""
    sizes = np.sort(np.bincount(limit.labels))[::-1] if limit.certified else np.zeros(0, int)
    leaders = np.unique(limit.leaders) if limit.certified else np.zeros(0, int)
    return {
        "count": limit.count, "grade": limit.grade, "kind": limit.stats.get("kind", ""), "t": float(limit.t),
        "events": len(limit.events), "digits": int(limit.digits), "error": number_or_none(limit.error),
        "seconds": float(limit.stats.get("seconds", 0.0)), "condition": number_or_none(limit.stats.get("condition", np.inf)),
        "k": int(limit.basis.shape[1]), "sizes": sizes.tolist(), "leaders": leaders.tolist(),
        "reason": limit.reason, "certificate": limit.certificate,
        "said": f"{limit.grade} {limit.count} t={limit.t:.3g} events={len(limit.events)}",
    }


def number_or_none(value: Any) -> float | None:
    """JSON has no infinity."""
    return float(value) if np.isfinite(value) else None


# ------------------------------------------------------------------------------------------------ 1: codimension conjecture

CODIMENSION = (
    ("C9", 30, 200), ("diag(1, 0.9, -0.5)", 30, 200), ("diag(1.2, 0.8, -0.5)", 30, 100), ("C9", 10, 100), ("C9", 100, 50),
)
"""Matrix, tokens, starts."""

NUDGES = (0.0, 1e-9, 1e-6, 1e-3)
"""By which the symmetric example is perturbed."""


def value_matrix(name: str) -> np.ndarray:
    """V of a row of the first table: the paper's matrix, or a diagonal one."""
    if name == "C9":
        return weights_families["published"](matrix="codimension").V[0]
    return np.diag([float(entry) for entry in name.removeprefix("diag(").removesuffix(")").split(", ")])


def codimension(name: str, n: int, seed: int) -> Record:
    """The limit of n tokens from [-5, 5]^3, and the clusters that one counts on the way."""
    V = value_matrix(name)
    x0 = np.random.default_rng([1, n, seed]).uniform(-5.0, 5.0, (n, 3))
    limit = al.limit(al.Weights(V=V), x0, times=WATCHED)
    leading = np.linalg.eigh(V)[1][:, -1]                       # V is symmetric: projections on F are orthogonal
    run = al.simulate(al.Weights(V=V), x0, t_end=PAPER_T)
    early = run.z[-1] @ limit.basis
    out = record(limit)
    out["seen"] = [clusters(tokens, 0.01) for tokens in limit.path]
    out["early"] = [clusters(early, share) for share in (0.01, 0.05)]
    out["check"] = float(np.abs(early - limit.path[WATCHED.tolist().index(PAPER_T)]).max())
    if limit.certified:
        values = limit.limits @ leading
        out["sides"] = len(np.unique(np.sign(values)))
        out["is_extreme"] = set(out["leaders"]) == {int(np.argmax(x0 @ leading)), int(np.argmin(x0 @ leading))}
    return out


def clusters(tokens: np.ndarray, share: float) -> int | None:
    """How many groups one sees in tokens (n, k) at that share of their diameter; None where they are not known."""
    return int(cluster_count(tokens, share * float(diameter(tokens)))) if np.isfinite(tokens).all() else None


def cross(nudge: float) -> Record:
    """Four tokens on the axes, V = diag(1.2, 0.8), perturbed by a nudge."""
    x0 = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return record(al.limit(al.Weights(V=np.diag([1.2, 0.8])), x0 + nudge * np.random.default_rng(0).standard_normal((4, 2))))


# --------------------------------------------------------------------------------------------------- 2: many dimensions

DIMENSIONS = ((32, 20, 60.0), (64, 10, 120.0), (128, 4, 400.0))
"""d = n, draws, seconds for each."""


def sparse_symmetric(d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(V, its eigenvalues ascending) as the paper draws it.

    A d x d matrix with entries U(0, 1) at density 0.1, symmetrized; eigenvalues of modulus at most 1 become their sign times
    U(1, 2).
    """
    A = rng.random((d, d)) * (rng.random((d, d)) < 0.1)
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    is_small = np.abs(values) <= 1.0
    values[is_small] = np.sign(values[is_small]) * rng.uniform(1.0, 2.0, int(is_small.sum()))
    return (vectors * values) @ vectors.T, np.sort(values)


def high_dimension(d: int, seed: int, budget: float) -> Record:
    """The limit of d tokens from [-1/2, 1/2]^d."""
    rng = np.random.default_rng([11, d, seed])
    V, values = sparse_symmetric(d, rng)
    x0 = rng.uniform(-0.5, 0.5, (d, d))
    return {**record(al.limit(al.Weights(V=V), x0, budget=budget)), "values": [*values[-2:].tolist(), float(values[0])]}


# ------------------------------------------------------------------------------------------------------- 3: polytopes

LAWS = {"uniform [-5, 5]^d": "u5", "uniform [-1, 1]^d": "u1", "Gaussian, deviation 5": "g5"}
POLYTOPES = {10: 40, 20: 40, 50: 40, 100: 40, 200: 20, 500: 8, 1000: 4}
"""n: starts."""


def draw(law: str, n: int, d: int, seed: int) -> np.ndarray:
    """n tokens in R^d."""
    rng = np.random.default_rng([3, n, d, seed])
    return 5.0 * rng.standard_normal((n, d)) if law == "g5" else {"u5": 5.0, "u1": 1.0}[law] * rng.uniform(-1.0, 1.0, (n, d))


def polytope(law: str, n: int, d: int, seed: int) -> Record:
    """The limit for V = I; the start's hull and the tokens of the start that attend to themselves most."""
    x0 = draw(law, n, d, seed)
    limit = al.limit(al.Weights(V=np.eye(d)), x0, budget=300.0)
    own = np.flatnonzero(np.argmax(x0 @ x0.T, axis=1) == np.arange(n))
    out = {**record(limit), "hull": len(convex_hull(x0).vertices), "own": len(own)}
    if limit.certified:
        out["vertices"] = len(convex_hull(limit.limits[np.unique(limit.labels, return_index=True)[1]]).vertices)
        out["led_by_own"] = len(np.intersect1d(own, out["leaders"]))
    return out


def expected_own(n: int, d: int) -> float:
    """How many of n Gaussian tokens in R^d attend to themselves most, in the mean: n E (1 - Phi(-|x|))^(n-1)."""
    return n * quad(lambda r: chi(d).pdf(r) * np.exp((n - 1) * norm.logcdf(r)), 0.0, 12.0, limit=200, points=[2.0, 4.0, 6.0])[0]


OWN_SIZES = (100, 1000, 10_000, 100_000)


def own_of_cubes(n: int, d: int, starts: int = 100) -> Record:
    """The mean number of self-leading tokens of uniform starts in a cube; they are vertices of the hull."""
    found = []
    for seed in range(starts):
        x0 = np.random.default_rng([4, n, d, seed]).uniform(-1.0, 1.0, (n, d))
        hull = x0[convex_hull(x0).vertices]
        found.append(int((np.argmax(hull @ hull.T, axis=1) == np.arange(len(hull))).sum()))
    return {"mean": float(np.mean(found)), "error": float(np.std(found, ddof=1) / np.sqrt(starts))}


# ------------------------------------------------------------------------------------------------------------- numbers


def clopper_pearson(hits: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval for a probability."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if hits == 0 else float(beta_law.ppf(tail, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta_law.ppf(1.0 - tail, hits + 1, trials - hits))
    return low, high


def grades(rows: Iterable[Record]) -> str:
    """How many answers were exact / group / undecided."""
    found = Counter(row["grade"] for row in rows)
    return " / ".join(str(found[grade]) for grade in ("exact", "group", "undecided"))


def column(rows: Iterable[Record], name: str) -> np.ndarray:
    """One number of every certified answer."""
    return np.array([row[name] for row in rows if row["grade"] != "undecided"], dtype=float)


def spread(values: Any, form: str = ".3g") -> str:
    """Median and range."""
    values = np.asarray(values, dtype=float)
    return f"{np.median(values):{form}} ({values.min():{form}} – {values.max():{form}})" if values.size else "–"


def counted(rows: Iterable[Record]) -> str:
    """The counts and how often each was found."""
    found = Counter(row["count"] for row in rows if row["count"] is not None)
    return ", ".join(f"**{count}** in {times}" for count, times in sorted(found.items())) or "–"


def mean_error(values: np.ndarray) -> tuple[float, float]:
    """(mean, its standard error)."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def expected_slope(sizes: list[int], d: int) -> float:
    """b of a + b ln n through the expected numbers of self-leading Gaussian tokens from n = 50 on."""
    sizes = [n for n in sizes if n >= 50]
    return float(np.polyfit(np.log(sizes), [expected_own(n, d) for n in sizes], 1)[0])


def slope(rows: dict[str, list[Record]], d: int, law: str, name: str, least: int) -> tuple[float, float]:
    """(b, its standard error) of a + b ln n, fitted to the means from n = least on, weighted by their standard errors."""
    sizes = [n for n in POLYTOPES if n >= least and f"polytope/{d}/{law}/{n}" in rows]
    if len(sizes) < 3:
        return float("nan"), float("nan")
    means, errors = np.array([mean_error(column(rows[f"polytope/{d}/{law}/{n}"], name)) for n in sizes]).T
    weights = 1.0 / np.maximum(errors, 0.1) ** 2
    A = np.column_stack([np.ones(len(sizes)), np.log(sizes)])
    covariance = np.linalg.inv((A.T * weights) @ A)
    return float((covariance @ (A.T * weights) @ means)[1]), float(np.sqrt(covariance[1, 1]))


def table(head: list[str], body: list[list[Any]]) -> str:
    """A table of the page."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def paragraph(text: str) -> str:
    """Text in lines of the page's width."""
    return "\n\n".join(textwrap.fill(" ".join(part.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
                       for part in text.strip().split("\n\n"))


# ------------------------------------------------------------------------------------------------------------- figures


def plot_codimension(rows: dict[str, list[Record]], path: Path) -> None:
    """Clusters counted at time t, and when the limit was decided."""
    with house_style():
        figure = new_figure(8.2, 3.5, dpi=160)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, (name, n, _) in zip(panels, CODIMENSION[:2], strict=True):
            found = [row for row in rows[f"codimension/{name}/{n}"] if None not in row["seen"]]
            seen = np.array([row["seen"] for row in found], dtype=float)
            low, middle, high = np.percentile(seen, [5, 50, 95], axis=0)
            axes.fill_between(WATCHED, low, high, color=PALETTE[0], alpha=0.18, linewidth=0)
            axes.plot(WATCHED, middle, color=PALETTE[0], linewidth=1.8)
            axes.axhline(2, color=HULL, linewidth=0.8, zorder=0)
            axes.axvline(PAPER_T, color=PALETTE[1], linewidth=1.0, linestyle=(0, (4, 2)))
            axes.text(PAPER_T + 0.8, 33, "the paper's T = 5", color=PALETTE[1], fontsize=8.5, va="top")
            t = column(found, "t")
            heights = 1.14 * 1.22 ** np.random.default_rng(0).uniform(0, 1, len(t))      # a strip of dots, spread to be seen
            axes.scatter(t, heights, s=5, color=INK, alpha=0.35, linewidths=0, zorder=3)
            axes.set_yscale("log")
            axes.set_yticks([2, 3, 5, 10, 20, 30], ["2", "3", "5", "10", "20", "30"], minor=False)
            axes.minorticks_off()
            axes.set(xlim=(0, 60), ylim=(1.08, 38), xlabel="t", title="the paper's matrix" if name == "C9" else f"V = {name}")
            dress_flat(axes, 6)
        panels[0].set_ylabel("clusters in F at time t")
        panels[0].text(9, 1.26, "each dot: a start, at the t where its limit was certified", fontsize=7.5, color=NOTE,
                       va="center")
        title(figure, "What one counts at time t, and what is true: 2",
              "Groups of the projected tokens at 1 % of their diameter: median and 5 to 95 % of the starts, 30 tokens each.")
        figure.savefig(path)


def plot_polytopes(rows: dict[str, list[Record]], path: Path) -> None:
    """Limits against n: certified, and what the start alone would suggest."""
    with house_style():
        figure = new_figure(8.6, 5.6, dpi=160)
        panels = figure.subplots(2, 3, sharex=True, sharey="row")
        for line, d in zip(panels, (2, 3), strict=True):
            for axes, (words, law) in zip(line, LAWS.items(), strict=True):
                sizes = [n for n in POLYTOPES if f"polytope/{d}/{law}/{n}" in rows]
                for name, colour, style, marker in (("hull", HULL, (0, (1, 1.2)), "^"), ("own", PALETTE[1], (0, (5, 2)), "s"),
                                                    ("count", PALETTE[0], "solid", "o")):
                    found = [column(rows[f"polytope/{d}/{law}/{n}"], name) for n in sizes]
                    means, errors = np.array([mean_error(values) for values in found]).T
                    if name == "count":
                        axes.fill_between(sizes, [v.min() for v in found], [v.max() for v in found], color=colour, alpha=0.12,
                                          linewidth=0)
                    axes.errorbar(sizes, means, 2.0 * np.nan_to_num(errors), color=colour, linestyle=style, marker=marker,
                                  markersize=4, linewidth=1.4, elinewidth=0.9, capsize=2,
                                  label={"hull": "hull vertices of the start", "own": "self-leading tokens of the start",
                                         "count": "limits, certified"}[name])
                if law == "g5":
                    fine = np.geomspace(10, sizes[-1], 30).round().astype(int)
                    axes.plot(fine, [expected_own(int(n), d) for n in fine], color=INK, linewidth=0.7, zorder=0)
                else:
                    axes.axhline(2**d, color=INK, linewidth=0.7, zorder=0)
                    axes.text(1350, 2**d, f" {2**d}", fontsize=8.5, va="center", ha="left", color=INK)
                axes.set(xscale="log", yscale="log", xlim=(8, 1300))
                ticks = (2, 3, 5, 10, 20) if d == 2 else (2, 5, 10, 20, 50, 100)
                axes.set_yticks(ticks, [str(tick) for tick in ticks])
                axes.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1000"])
                axes.minorticks_off()
                axes.grid(axis="y", color=RULE, linewidth=0.5)
                dress_flat(axes)
                if d == 2:
                    axes.set_title(words.replace("^d", "ᵈ"))
                else:
                    axes.set_xlabel("tokens n")
            line[0].set_ylabel(f"number, d = {d}")
        figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        title(figure, "", "V = I: how many vertices the limit polytope has. Bars: two standard errors of the mean; "
              "shaded: smallest to largest. Thin lines: the corners of the cube; the expected number of self-leading tokens.")
        figure.savefig(path)


# ------------------------------------------------------------------------------------------------------------- the page

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
    "twins": (
        "A proof about a computed state is worth nothing if rounding chose the state. So everything is repeated from two "
        "starts pushed apart in opposite directions, with another tolerance and another time of hand-over. All three must "
        "agree."
    ),
    "error of the points": (
        "The error of the state, scaled back by e^{-lambda t}, or ten times the difference between the twins, whichever is "
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
    for d, _, budget in DIMENSIONS:
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
                                 f"{row['values'][1] - row['values'][0]:.2g}, {budget:g} s: {row['reason']}")
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
        that are estimates (tolerances, twins), not interval arithmetic. `tests/frozen/README.md` compares
        with an independent program in extended precision.
        """),
    ])


def write_page(rows: dict[str, list[Record]], folder: Path) -> None:
    """limits.md and its figures."""
    plot_codimension(rows, folder / "images" / "limits_codimension.png")
    plot_polytopes(rows, folder / "images" / "limits_vertices.png")
    everything = [row for key, found in rows.items() if not key.startswith("own/") for row in found]
    page = "\n\n".join([
        "# Limits: what the paper left open",
        paragraph(f"""
        *The emergence of clusters in self-attention dynamics* (arXiv:2305.05465) proves what the rescaled tokens z = e^{{-tV}}
        x look like as t goes to infinity, and asks more than it proves; most of its pictures stop at T = 5. `al.limit` computes
        the limit itself and certifies it, or says that it cannot. This page uses it on {len(everything)} starts
        ({grades(everything)} exact / group / undecided) to answer three questions:
        """),
        "\n".join([
            "1. [How many limits does the codimension conjecture allow?](#1-the-codimension-conjecture-how-many-limits)",
            "   Two, for generic starts.",
            "2. [And in 128 dimensions?](#2-128-tokens-in-128-dimensions) Two.",
            "3. [How many vertices has the polytope for V = I?](#3-v--i-how-many-vertices-has-the-polytope)",
            "   Few: they settle near the number of corners for cubes, and grow slowly for Gaussian starts.",
        ]),
        first_question(rows), second_question(rows), third_question(rows), reading(rows),
        "## To reproduce",
        paragraph(f"""
        `python docs/make_limits.py` writes this page and its figures (`--quick`: two minutes, a small version elsewhere). Seeds
        are fixed and every start depends on its seed alone; times in seconds depend on the machine, here two cores shared with
        other work. Made with attnlab {al.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy
        {scipy.__version__}, Numba {numba.__version__}.
        """),
    ])
    draft = folder / "limits.part"
    draft.write_text(page + "\n")
    os.replace(draft, folder / "limits.md")


# --------------------------------------------------------------------------------------------------------------- running


def compute(answers: Answers, quick: bool) -> dict[str, list[Record]]:
    """Every answer: rows of the tables by key."""
    rows: dict[str, list[Record]] = {}
    for name, n, starts in CODIMENSION:
        key = f"codimension/{name}/{n}"
        rows[key] = [answers.get(f"{key}/{seed}", lambda s=seed, a=name, m=n: codimension(a, m, s))
                     for seed in range(10 if quick else starts)]
    rows["cross"] = [answers.get(f"cross/{nudge:g}", lambda e=nudge: cross(e)) for nudge in NUDGES]
    for d, draws, budget in DIMENSIONS[:1] if quick else DIMENSIONS:
        rows[f"dimension/{d}"] = [
            answers.get(f"dimension/{d}/{seed}", lambda s=seed, m=d, b=budget: high_dimension(m, s, b))
            for seed in range(4 if quick else draws)
        ]
    for n, starts in POLYTOPES.items():
        for d in (2, 3):
            for law in LAWS.values():
                if n <= (100 if quick else 1000):
                    rows[f"polytope/{d}/{law}/{n}"] = [
                        answers.get(f"polytope/{d}/{law}/{n}/{seed}", lambda s=seed, a=law, m=n, e=d: polytope(a, m, e, s))
                        for seed in range(5 if quick else starts)
                    ]
    for d in (2, 3):
        rows[f"own/{d}"] = [answers.get(f"own/{d}/{n}", lambda m=n, e=d: own_of_cubes(m, e)) for n in OWN_SIZES]
    answers.save()
    return rows


def main() -> None:
    """Compute, then write the page and its figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few starts, small systems; the page goes into the cache folder")
    parser.add_argument("--fresh", action="store_true", help="forget what was computed before")
    parser.add_argument("--retry", action="store_true", help="compute again what was undecided")
    given = parser.parse_args()
    answers = Answers(CACHE / "answers.json", given.fresh)
    if given.retry:
        answers.known = {key: row for key, row in answers.known.items() if row.get("grade") != "undecided"}
    try:
        rows = compute(answers, given.quick)
    finally:
        answers.save()
    folder = CACHE / "quick" if given.quick else DOCS
    (folder / "images").mkdir(parents=True, exist_ok=True)
    write_page(rows, folder)
    print(folder / "limits.md")


if __name__ == "__main__":
    main()
