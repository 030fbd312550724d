"""The figures of docs/limits.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from limits_cases import CODIMENSION, LAWS, PAPER_T, POLYTOPES, WATCHED, Record, expected_own
from limits_numbers import column, mean_error

from attnlab.render.style import HULL, INK, NOTE, PALETTE, RULE, dress_flat, house_style, new_figure, title


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
