"""Figures of the feed-forward variants: the three rows over time, many draws, and coordinates that cannot decrease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Data
from attnlab.render.style import HULL, INK, LINES, MARKERS, NOTE, PALETTE, dress_flat, house_style, new_figure, title

from .claims import NEAR_ZERO, chosen, on_planes, share
from .experiment import CASES, LAWS, ROWS, drawn, growth, layer, velocity

COLOURS = {"relu": PALETTE[0], "tanh": PALETTE[1], "random": PALETTE[2]}


def rows_figure(t: np.ndarray, z: Mapping[str, np.ndarray], names: Mapping[str, str], rest: Mapping[str, np.ndarray],
                normal: np.ndarray) -> Any:
    """Tokens in the plane, a row of panels for each variant: trails, the line phi*_1 = 0, the origin, tokens at rest marked."""
    moments = [0, len(t) // 6, len(t) // 2, len(t) - 1]
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    with house_style():
        figure = new_figure(9.6, 7.4)
        grid = figure.subplots(len(z), len(moments), squeeze=False)
        for axes_row, (row, path) in zip(grid, z.items(), strict=True):
            reach = 1.08 * float(np.abs(path).max())
            for axes, at in zip(axes_row, moments, strict=True):
                axes.axline((0, 0), tuple(along), color=HULL, linewidth=0.8, linestyle=LINES[1], zorder=0.5)
                axes.plot(0, 0, marker="+", color=INK, markersize=9, markeredgewidth=1.2, zorder=2)
                axes.plot(path[: at + 1, :, 0], path[: at + 1, :, 1], color=COLOURS[row], linewidth=0.7, alpha=0.5)
                last = at == moments[-1]
                still = rest[row] & last
                moving = ~still
                axes.plot(*path[at, moving].T, marker=MARKERS[0], linestyle="none", color=COLOURS[row], markersize=4.5,
                          markeredgecolor="white", markeredgewidth=0.5)
                axes.plot(*path[at, still].T, marker=MARKERS[1], linestyle="none", color=INK, markersize=4.2,
                          markeredgecolor="white", markeredgewidth=0.5)
                axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
                if row == "relu" and last:
                    top = path[at, np.argmax(path[at] @ normal * np.sign(normal.sum()))]
                    axes.axline(tuple(top), slope=along[1] / along[0], color=INK, linewidth=0.9, linestyle=LINES[2], zorder=0.6)
                if row == next(iter(z)):
                    axes.set_title(f"t = {t[at]:.2f}" if at else "t = 0")
                if still.any():
                    axes.text(0.03, 0.03, f"{still.sum()} at rest", fontsize=8.5, va="bottom", transform=axes.transAxes)
                dress_flat(axes)
            axes_row[0].set_ylabel(names[row], fontsize=10.5)
        title(figure, "With a feed-forward part: no collapse to 0 is seen, and ReLU stops tokens where they are",
              "Rescaled tokens z and their trails, published V in the plane, the same start. Cross: 0. Dashed: φ₁* = 0. Dotted: "
              "the one hyperplane that is approached. Black squares: velocity exactly 0 at the end; with ReLU, W = I, each below "
              "the line at a level of its own.")
        return figure


def draws_figure(strips: Sequence[tuple[str, str, str, np.ndarray, tuple[float, float, float]]], names: Mapping[str, str],
                 laws: Mapping[str, tuple[float, float]], *, near_zero: float) -> Any:
    """Left the size at the end over that of the start, a point a draw; right the share of draws on three hyperplanes."""
    cases = list(dict.fromkeys((setting, law) for _, setting, law, _, _ in strips))
    labels = [f"{setting}\n[{laws[law][0]:g}, {laws[law][1]:g}]ᵈ" for setting, law in cases]
    offset = {row: 0.25 * (1 - k) for k, row in enumerate(names)}
    jitter = np.random.default_rng(0)
    with house_style():
        figure = new_figure(9.6, 5.0)
        left, right = figure.subplots(1, 2, width_ratios=[1.35, 1], sharey=True)
        for row, setting, law, ratios, (middle, low, high) in strips:
            y = -cases.index((setting, law)) + offset[row]
            kind = list(names).index(row)
            is_first = (setting, law) == cases[0]
            left.plot(ratios, y + jitter.uniform(-0.08, 0.08, len(ratios)), marker=MARKERS[kind], linestyle="none",
                      color=COLOURS[row], markersize=2.6, alpha=0.5, label=names[row] if is_first else None)
            left.plot([np.median(ratios)] * 2, [y - 0.11, y + 0.11], color=INK, linewidth=1.6)
            right.errorbar(middle, y, xerr=[[middle - low], [high - middle]], marker=MARKERS[kind], color=COLOURS[row],
                           markersize=5, capsize=2.5, linewidth=1.2)
        left.axvline(1.0, color=HULL, linewidth=0.8)
        left.axvline(near_zero, color=HULL, linewidth=0.9, linestyle=LINES[1])
        left.text(near_zero, 1.0, " collapsed to 0:\n left of this line", fontsize=8, color=NOTE, va="top",
                  transform=left.get_xaxis_transform())
        left.set(xscale="log", xlabel="largest |z| at the end / at the start",
        yticks=[-k for k in range(len(cases))], yticklabels=labels,
                 title="Size", ylim=(-len(cases) + 0.5, 0.75))
        left.set_xlim(left=near_zero / 2)
        left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        right.set(xlabel="share of draws, with 95 % interval", xlim=(-0.04, 1.04), title="At most three parallel hyperplanes")
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(axis="y", length=0)
            for k in range(len(cases) - 1):
                axes.axhline(-k - 0.5, color="#EBEBEB", linewidth=0.8, zorder=0)
        left.legend(frameon=False, fontsize=8.5, loc="upper right", markerscale=2)
        title(figure, "Many draws to λ₁T = 5: none collapses to 0; three hyperplanes are enough only for some starts",
              "Left: a point a draw, black the median. Right: all tokens within 1 % of the first diameter of three parallel "
              "hyperplanes, the best of many normals. Below each case the box in which the tokens start.")
        return figure


def coordinates_figure(t: np.ndarray, rising: Mapping[str, np.ndarray], names: Mapping[str, str]) -> Any:
    """All coordinates of all tokens over time: those that cannot decrease, and those that cannot be fast."""
    words = {"relu": "z: never decreases", "tanh": "z: never faster than 1", "random": "W⁻¹z: never decreases"}
    with house_style():
        figure = new_figure(9.6, 3.8)
        for axes, (row, values) in zip(figure.subplots(1, 3), rising.items(), strict=True):
            flat = values.reshape(len(t), -1)
            axes.plot(t, flat, color=COLOURS[row], linewidth=0.8, alpha=0.7)
            axes.axhline(0.0, color=HULL, linewidth=0.8, linestyle=LINES[1])
            if row == "tanh":
                top, bottom = flat[0].max(), flat[0].min()
                axes.fill_between(t, bottom - t, top + t, color=HULL, alpha=0.12, linewidth=0)
                axes.plot(t, top + t, t, bottom - t, color=INK, linewidth=1.0, linestyle=LINES[2])
            axes.set(xlabel="t", title=f"{names[row]}\n{words[row]}", xlim=(0, t[-1]))
            dress_flat(axes)
        title(figure, "What can be proved of the three rows",
              "Every coordinate of every token of the picture. With ReLU those above 0 stay above 0, so the tokens cannot "
              "collapse to 0; dotted: as far as tanh lets the outermost coordinates go.")
        return figure


SETTINGS = {"plane": "published V, d = 2", "space": "published V, d = 3", "family": "random good triples, d = 3"}


def figures(data: Data) -> dict[str, Any]:
    """The three rows over time; what they did in many draws; what can be proved."""
    V, _, W = drawn("plane", "cube", 0)
    runs = {row: run_in(data, row) for row in ROWS}
    z = {row: np.asarray(run.z) for row, run in runs.items()}
    grown = growth(V)(float(runs["relu"].times[-1]))
    rest = {row: np.all(velocity(V, grown, layer(row, W), z[row][-1]) == 0, axis=1) for row in ROWS}
    values, left = np.linalg.eig(V.T)
    normal = np.real(left[:, np.argmax(values.real)])
    cells = [(row, setting, law, chosen(data["draws"], row, law, setting)) for row in ROWS for setting, law in CASES]
    strips = [(row, SETTINGS[setting], law, lines["size"].values / lines["first_size"].values, share(on_planes(lines)))
              for row, setting, law, lines in cells]
    rising = {row: z[row] @ (np.linalg.inv(W).T if row == "random" else np.eye(2)) for row in ROWS}
    t = runs["relu"].times
    return {"feedforward": rows_figure(t, z, ROWS, rest, normal),
            "feedforward_draws": draws_figure(strips, ROWS, LAWS, near_zero=NEAR_ZERO),
            "feedforward_coordinates": coordinates_figure(t, rising, ROWS)}
