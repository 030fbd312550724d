"""Clusters counted at time t beside the certified number, and the vertices of the polytope for V =
I; tables of all of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from attnlab.analysis.intervals import exact_interval
from attnlab.analysis.random_polytopes import expected_self_leaders
from attnlab.analysis.rates import weighted_slope
from attnlab.experiments.common.panels import set_ticks
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    HULL,
    INK,
    NOTE,
    PALETTE,
    RULE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import certified_rows
from .experiment import LAWS, NUDGES, PAPER_T, SYSTEMS, WATCHED

GRADES = ("exact", "group", "undecided")


def figures(data: Data) -> dict[str, Any]:
    """Both figures of docs/limits.md."""
    with house_style():
        return {
            "limits_survey": draw_systems(data["systems"]),
            "vertices": draw_vertices(data["polytopes"]),
        }


def draw_systems(table: Any) -> Any:
    """Clusters counted at time t, and when the limit was decided."""
    figure = new_figure(8.2, 3.5, dpi=160)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (name, n, _) in zip(panels, SYSTEMS[:2], strict=True):
        found = certified_rows(table, matrix=name, n=n)
        seen = found["seen"].values[np.isfinite(found["seen"].values).all(axis=1)]
        low, middle, high = np.percentile(seen, [5, 50, 95], axis=0)
        axes.fill_between(WATCHED, low, high, color=PALETTE[0], alpha=0.18, linewidth=0)
        axes.plot(WATCHED, middle, color=PALETTE[0], linewidth=1.8)
        axes.axhline(2, color=HULL, linewidth=0.8, zorder=0)
        axes.axvline(PAPER_T, color=PALETTE[1], linewidth=1.0, linestyle=(0, (4, 2)))
        axes.text(PAPER_T + 0.8, 33, "the paper's T = 5", color=PALETTE[1], fontsize=8.5, va="top")
        heights = 1.14 * 1.22 ** np.random.default_rng(0).uniform(
            0, 1, found.sizes["row"]
        )  # a strip of dots
        axes.scatter(found["t"].values, heights, s=5, color=INK, alpha=0.35, linewidths=0, zorder=3)
        axes.set_yscale("log")
        set_ticks(axes, y=(2, 3, 5, 10, 20, 30))
        axes.set(
            xlim=(0, 60),
            ylim=(1.08, 38),
            xlabel="t",
            title="the paper's matrix" if name == "C9" else f"V = {name}",
        )
        dress_flat(axes, 6)
    panels[0].set_ylabel("clusters in F at time t")
    panels[0].text(
        9,
        1.26,
        "each dot: a start, at the t where its limit was certified",
        fontsize=7.5,
        color=NOTE,
        va="center",
    )
    title(
        figure,
        "What one counts at time t, and what is true: 2",
        "Groups of the projected tokens at 1 % of their diameter: median and 5 to 95 % of the"
        " starts, 30 tokens each.",
    )
    return figure


def draw_vertices(table: Any) -> Any:
    """Limits against n: certified, and what the start alone would suggest."""
    looks = {
        "hull": ("hull vertices of the start", HULL, (0, (1, 1.2)), "^"),
        "own": ("self-leading tokens of the start", PALETTE[1], (0, (5, 2)), "s"),
        "count": ("limits, certified", PALETTE[0], "solid", "o"),
    }
    sizes = np.unique(table["n"].values)
    figure = new_figure(8.6, 5.6, dpi=160)
    panels = figure.subplots(2, 3, sharex=True, sharey="row")
    for line, d in zip(panels, (2, 3), strict=True):
        for axes, (law, words) in zip(line, LAWS.items(), strict=True):
            parts = [certified_rows(table, d=d, law=law, n=n) for n in sizes]
            for name, (label, colour, style, marker) in looks.items():
                means, errors = np.array([mean_error(part[name].values) for part in parts]).T
                if name == "count":
                    axes.fill_between(
                        sizes,
                        [part[name].min() for part in parts],
                        [part[name].max() for part in parts],
                        color=colour,
                        alpha=0.12,
                        linewidth=0,
                    )
                axes.errorbar(
                    sizes,
                    means,
                    2.0 * np.nan_to_num(errors),
                    color=colour,
                    linestyle=style,
                    marker=marker,
                    markersize=4,
                    linewidth=1.4,
                    elinewidth=0.9,
                    capsize=2,
                    label=label,
                )
            if law == "g5":
                fine = np.geomspace(10, sizes[-1], 30).round().astype(int)
                expected = [expected_self_leaders("normal", d, int(n)) for n in fine]
                axes.plot(fine, expected, color=INK, linewidth=0.7, zorder=0)
            else:
                axes.axhline(2**d, color=INK, linewidth=0.7, zorder=0)
                axes.text(1350, 2**d, f" {2**d}", fontsize=8.5, va="center", ha="left", color=INK)
            axes.set(xscale="log", yscale="log", xlim=(8, 1300))
            set_ticks(
                axes,
                (10, 30, 100, 300, 1000),
                (2, 3, 5, 10, 20) if d == 2 else (2, 5, 10, 20, 50, 100),
            )
            axes.grid(axis="y", color=RULE, linewidth=0.5)
            dress_flat(axes)
            axes.set(**({"title": words.replace("^d", "ᵈ")} if d == 2 else {"xlabel": "tokens n"}))
        line[0].set_ylabel(f"number, d = {d}")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
    )
    title(
        figure,
        "",
        "V = I: how many vertices the limit polytope has. Bars: two standard errors of the mean;"
        " shaded: smallest to largest. Thin lines: the corners of the cube; the expected number of"
        " self-leading tokens.",
    )
    return figure


def tables(data: Data) -> dict[str, Any]:
    """{heading: (legend, columns, rows)} for the page."""
    return {
        "Starts and their limits in F": _systems(data["systems"]),
        "What one counts at T = 5": _early(data["systems"]),
        "Symmetric tokens": _symmetric(data["symmetric"]),
        "Dimensions": _dimensions(data["dimensions"]),
        "The largest draws, one by one": _draws(data["dimensions"]),
        "V = I: limits": _vertices(data["polytopes"]),
        "V = I: growth": _growth(data["polytopes"]),
        "Self-leading tokens of a cube": _cubes(data["self_leading"]),
    }


def mean_error(values: np.ndarray) -> tuple[float, float]:
    """(mean, its standard error)."""
    return float(values.mean()), (
        float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    )


def spread(values: Any, form: str = ".3g") -> str:
    """Median and range."""
    values = np.asarray(values, dtype=float)
    return (
        f"{np.median(values):{form}} ({values.min():{form}} – {values.max():{form}})"
        if values.size
        else "–"
    )


def _grades(table: Any) -> str:
    found = Counter(map(str, table["grade"].values))
    return " / ".join(str(found[grade]) for grade in GRADES)


def _counted(table: Any) -> str:
    found = Counter(table["count"].values.tolist())
    return ", ".join(f"**{count}** in {times}" for count, times in sorted(found.items())) or "–"


def _of_each(table: Any) -> list[tuple[str, int, Any, Any]]:
    return [
        (name, n, select(table, matrix=name, n=n), certified_rows(table, matrix=name, n=n))
        for name, n, _ in SYSTEMS
    ]


def _systems(table: Any) -> Any:
    rows = []
    for name, n, every, found in _of_each(table):
        low, high = exact_interval(int(np.sum(found["count"].values != 2)), found.sizes["row"])
        first = float(np.median(found["t"].values * found["first"].values))
        rows.append(
            [
                name,
                n,
                every.sizes["row"],
                _counted(found),
                _grades(every),
                f"{100 * low:.2g} – {100 * high:.2g} %",
                spread(found["t"]),
                f"{first:.3g}",
                spread(found["events"], ".0f"),
                int(found["is_extreme"].sum()),
            ]
        )
    return (
        (
            "Ranges: median (smallest – largest). P: Clopper–Pearson 95 % interval, over the"
            " certified starts. t of decision: the time of the state from which the end is proved."
            " λ₁t: its median in units in which double precision, used naively, ends near 30."
            " Events: changes of leader that the closed-form flow passed. Extremes: starts whose"
            " two leaders are the tokens with the largest and the smallest φ₁ at time 0."
        ),
        [
            "V",
            "n",
            "starts",
            "limits in F",
            "exact / group / undecided",
            "P(another count)",
            "t of decision",
            "λ₁t",
            "events",
            "led by the extremes",
        ],
        rows,
    )


def _early(table: Any) -> Any:
    rows = []
    for name, n, every, found in _of_each(table):
        fine, coarse = every["early"].values.T
        shown = (found["seen"].values == found["count"].values[:, None]).mean(axis=0) >= 0.95
        wrong = np.flatnonzero(~shown)
        since = f"{WATCHED[wrong[-1] + 1] if len(wrong) else 0:.0f}" if shown[-1] else "–"
        rows.append(
            [
                name,
                n,
                spread(fine, ".0f"),
                f"{np.sum(fine == 2)} of {len(fine)}",
                spread(coarse, ".0f"),
                f"{np.sum(coarse == 2)} of {len(coarse)}",
                since,
            ]
        )
    return (
        (
            "Clusters of z projected on F, from `al.simulate` to T = 5, single linkage at 1 % or 5"
            " % of the diameter of the projected tokens at that time. Right: starts in which that"
            " number is 2."
        ),
        [
            "V",
            "n",
            "clusters at T = 5, resolution 1 %",
            "right",
            "resolution 5 %",
            "right",
            "95 % show 2 from t =",
        ],
        rows,
    )


def _symmetric(table: Any) -> Any:
    values = zip(
        NUDGES, table["count"].values, table["grade"].values, table["t"].values, strict=True
    )
    return (
        "One row per perturbation of four tokens (±1, 0), (0, ±1), V = diag(1.2, 0.8).",
        ["perturbation", "limits", "grade", "t of decision"],
        [[f"{a:g}", b, c, f"{t:.3g}"] for a, b, c, t in values],
    )


def _dimensions(table: Any) -> Any:
    rows = []
    for d in np.unique(table["d"].values):
        every, found = select(table, d=d), certified_rows(table, d=d)
        rows.append(
            [
                d,
                every.sizes["row"],
                spread(every["k"], ".0f"),
                spread(every["first"]),
                spread(every["gap"], ".2g"),
                _counted(found),
                _grades(every),
                spread(found["t"]),
                spread(found["events"], ".0f"),
            ]
        )
    return (
        "One row per dimension, d tokens. k: the dimension of F.",
        [
            "d = n",
            "draws",
            "k",
            "λ₁",
            "λ₁ - λ₂",
            "limits in F",
            "exact / group / undecided",
            "t of decision",
            "events",
        ],
        rows,
    )


def _draws(table: Any) -> Any:
    rows = [
        [
            one["draw"],
            one["k"],
            *(f"{one[name]:.4g}" for name in ("first", "second", "least")),
            one["count"],
            one["sizes"],
            one["leaders"],
            f"{one['t']:.3g}",
            one["events"],
            f"{one['error']:.1g}",
            one["grade"],
        ]
        for one in select(table, d=int(table["d"].max())).to_dataframe().to_dict("records")
    ]
    return (
        "One row per draw. Smallest: the smallest eigenvalue.",
        [
            "draw",
            "k",
            "λ₁",
            "λ₂",
            "smallest",
            "limits",
            "tokens at each",
            "leaders",
            "t",
            "events",
            "error",
            "grade",
        ],
        rows,
    )


def _vertices(table: Any) -> Any:
    def cell(values: np.ndarray) -> str:
        return "**{:.1f}** ± {:.1f} ({} – {})".format(
            *mean_error(values), values.min(), values.max()
        )

    sizes = np.unique(table["n"].values)
    rows = [
        [d, words, *(cell(certified_rows(table, d=d, law=law, n=n)["count"].values) for n in sizes)]
        for d in (2, 3)
        for law, words in LAWS.items()
    ]
    return (
        "Number of limits: mean ± its standard error (smallest – largest).",
        ["d", "start", *(f"n = {n}" for n in sizes)],
        rows,
    )


def _growth(table: Any) -> Any:
    sizes, rows = np.unique(table["n"].values), []
    for d in (2, 3):
        for law, words in LAWS.items():
            last = certified_rows(table, d=d, law=law, n=sizes[-1])
            large = [int(n) for n in sizes if n >= 50]
            expected = [expected_self_leaders("normal", d, n) for n in large]
            slopes = [
                slope(table, d, law, name) if name == "hull" or law == "g5" else "–"
                for name in ("count", "own", "hull")
            ]
            rows.append(
                [
                    d,
                    words,
                    *(f"{last[name].values.mean():.1f}" for name in ("count", "own")),
                    f"{expected[-1]:.1f}" if law == "g5" else "–",
                    f"{last['hull'].values.mean():.1f}",
                    *slopes,
                    (
                        f"{np.polyfit(np.log(large), expected, 1)[0]:+.2f}"
                        if law == "g5" and len(large) > 1
                        else "–"
                    ),
                ]
            )
    return (
        (
            "Slopes: b of a + b ln n, weighted least squares through the means from n = 50 on, ±"
            " standard error: a description of this range, not a law. Left out for cubes, where the"
            " number rises and falls."
        ),
        [
            "d",
            "start",
            f"limits, n = {sizes[-1]}",
            "self-leading",
            "its expectation",
            "hull",
            "slope of limits",
            "of self-leading",
            "of hull",
            "of the expectation",
        ],
        rows,
    )


def slope(table: Any, d: int, law: str, name: str) -> str:
    """b of a + b ln n with its standard error, fitted to the means from n = 50 on, weighted by
    their standard errors.
    """
    sizes = [n for n in np.unique(table["n"].values) if n >= 50]
    if len(sizes) < 3:
        return "–"
    means, errors = np.array(
        [mean_error(certified_rows(table, d=d, law=law, n=n)[name].values) for n in sizes]
    ).T
    return "{:+.2f} ± {:.2f}".format(*weighted_slope(np.log(sizes), means, np.maximum(errors, 0.1)))


def _cubes(table: Any) -> Any:
    sizes = np.unique(table["n"].values)
    rows = [
        [
            d,
            *(
                f"{mean:.2f} ± {error:.2f}"
                for mean, error in zip(part["mean"].values, part["error"].values, strict=True)
            ),
        ]
        for d in (2, 3)
        for part in [select(table, d=d)]
    ]
    return (
        "Self-leading tokens of uniform starts in a cube, mean ± standard error (no dynamics).",
        ["d", *(f"n = {n:,}" for n in sizes)],
        rows,
    )
