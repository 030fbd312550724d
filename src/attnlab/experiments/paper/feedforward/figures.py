"""Figures of the feed-forward variants: the three rows over time, many draws, and coordinates that
cannot decrease.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.plain_flow import frame_velocity
from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Data
from attnlab.render.style import (
    HULL,
    INK,
    LINES,
    MARKERS,
    NOTE,
    PALETTE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import NEAR_ZERO, chosen, on_planes, share
from .experiment import CASES, LAWS, ROWS, drawn, layer

SETTINGS = {
    "plane": "published V, d = 2",
    "space": "published V, d = 3",
    "family": "random good triples, d = 3",
}
LOOKS = {row: {"color": PALETTE[k], "marker": MARKERS[k]} for k, row in enumerate(ROWS)}


def figures(data: Data) -> dict[str, Any]:
    """The three rows over time; what they did in many draws; what can be proved."""
    with house_style():
        return {
            "feedforward": _rows(data),
            "feedforward_draws": _draws(data["draws"]),
            "feedforward_coordinates": _coordinates(data),
        }


def _rows(data: Data) -> Any:
    """Tokens in the plane, one row of panels per variant: trails, the line phi*_1 = 0, the origin,
    tokens at rest.
    """
    V, _, W = drawn("plane", "cube", 0)
    values, left = np.linalg.eig(V.T)
    normal = np.real(left[:, np.argmax(values.real)])
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    figure = new_figure(9.6, 7.4)
    for row, axes_row in zip(ROWS, figure.subplots(len(ROWS), 4), strict=True):
        run = run_in(data, row)
        t, z = run.times, np.asarray(run.z)
        is_at_rest = np.all(frame_velocity(V, np.eye(2), layer(row, W))(t[-1], z[-1]) == 0, axis=1)
        reach = 1.08 * float(np.abs(z).max())
        for axes, at in zip(axes_row, (0, len(t) // 6, len(t) // 2, len(t) - 1), strict=True):
            still = is_at_rest & (at == len(t) - 1)
            axes.axline(
                (0, 0), tuple(along), color=HULL, linewidth=0.8, linestyle=LINES[1], zorder=0.5
            )
            axes.plot(0, 0, marker="+", color=INK, markersize=9, markeredgewidth=1.2, zorder=2)
            axes.plot(
                z[: at + 1, :, 0],
                z[: at + 1, :, 1],
                color=LOOKS[row]["color"],
                linewidth=0.7,
                alpha=0.5,
            )
            for tokens, marker, colour, size in (
                (~still, MARKERS[0], LOOKS[row]["color"], 4.5),
                (still, MARKERS[1], INK, 4.2),
            ):
                axes.plot(
                    *z[at, tokens].T,
                    marker=marker,
                    linestyle="none",
                    color=colour,
                    markersize=size,
                    markeredgecolor="white",
                    markeredgewidth=0.5,
                )
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
            if row == "relu" and at == len(t) - 1:
                top = z[at, np.argmax(z[at] @ normal * np.sign(normal.sum()))]
                axes.axline(
                    tuple(top),
                    slope=along[1] / along[0],
                    color=INK,
                    linewidth=0.9,
                    linestyle=LINES[2],
                    zorder=0.6,
                )
            if row == "relu":
                axes.set_title(f"t = {t[at]:.2f}" if at else "t = 0")
            if still.any():
                axes.text(
                    0.03,
                    0.03,
                    f"{still.sum()} at rest",
                    fontsize=8.5,
                    va="bottom",
                    transform=axes.transAxes,
                )
            dress_flat(axes)
        axes_row[0].set_ylabel(ROWS[row], fontsize=10.5)
    title(
        figure,
        "With a feed-forward part: no collapse to 0, and ReLU stops tokens where they are",
        "Rescaled tokens z and their trails, published V in the plane, the same start. Cross: 0."
        " Dashed: φ₁* = 0. Dotted: the one hyperplane that is approached. Black squares: velocity"
        " exactly 0 at the end; with ReLU, W = I, each below the line at a level of its own.",
    )
    return figure


def _draws(draws: Any) -> Any:
    """Left the size at the end over that of the start, one point per draw; right the share of draws
    on three hyperplanes.
    """
    jitter = np.random.default_rng(0)
    figure = new_figure(9.6, 5.0)
    left, right = figure.subplots(1, 2, width_ratios=[1.35, 1], sharey=True)
    for kind, (row, look) in enumerate(LOOKS.items()):
        for place, (setting, law) in enumerate(CASES):
            lines, y = chosen(draws, row=row, law=law, setting=setting), -place + 0.25 * (1 - kind)
            ratios, (middle, low, high) = (
                lines["size"].values / lines["first_size"].values,
                share(on_planes(lines)),
            )
            left.plot(
                ratios,
                y + jitter.uniform(-0.08, 0.08, len(ratios)),
                linestyle="none",
                markersize=2.6,
                alpha=0.5,
                **look,
                label=ROWS[row] if place == 0 else None,
            )
            left.plot([np.median(ratios)] * 2, [y - 0.11, y + 0.11], color=INK, linewidth=1.6)
            right.errorbar(
                middle,
                y,
                xerr=[[middle - low], [high - middle]],
                markersize=5,
                capsize=2.5,
                linewidth=1.2,
                **look,
            )
    left.axvline(1.0, color=HULL, linewidth=0.8)
    left.axvline(NEAR_ZERO, color=HULL, linewidth=0.9, linestyle=LINES[1])
    left.text(
        NEAR_ZERO,
        1.0,
        " collapsed to 0:\n left of this line",
        fontsize=8,
        color=NOTE,
        va="top",
        transform=left.get_xaxis_transform(),
    )
    left.set(
        xscale="log",
        xlabel="largest |z| at the end / at the start",
        title="Size",
        ylim=(-len(CASES) + 0.5, 0.75),
        yticks=[-k for k in range(len(CASES))],
        yticklabels=[
            f"{SETTINGS[setting]}\n[{LAWS[law][0]:g}, {LAWS[law][1]:g}]ᵈ" for setting, law in CASES
        ],
    )
    left.set_xlim(left=NEAR_ZERO / 2)
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    right.set(
        xlabel="share of draws, with 95 % interval",
        xlim=(-0.04, 1.04),
        title="At most three parallel hyperplanes",
    )
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        for k in range(len(CASES) - 1):
            axes.axhline(-k - 0.5, color="#EBEBEB", linewidth=0.8, zorder=0)
    left.legend(frameon=False, fontsize=8.5, loc="upper right", markerscale=2)
    title(
        figure,
        "Many draws to λ₁T = 5: none collapses to 0; three hyperplanes are enough only for some"
        " starts",
        "Left: one point per draw, black the median. Right: all tokens within 1 % of the first"
        " diameter of three parallel hyperplanes, the best of many normals. Below each case the box"
        " in which the tokens start.",
    )
    return figure


def _coordinates(data: Data) -> Any:
    """All coordinates of all tokens over time: those that cannot decrease, and those that cannot be
    fast.
    """
    _, _, W = drawn("plane", "cube", 0)
    words = {
        "relu": "z: never decreases",
        "tanh": "z: never faster than 1",
        "random": "W⁻¹z: never decreases",
    }
    figure = new_figure(9.6, 3.8)
    for row, axes in zip(ROWS, figure.subplots(1, 3), strict=True):
        run = run_in(data, row)
        t, z = run.times, np.asarray(run.z)
        coordinates = (z @ np.linalg.inv(W).T if row == "random" else z).reshape(len(t), -1)
        axes.plot(t, coordinates, color=LOOKS[row]["color"], linewidth=0.8, alpha=0.7)
        axes.axhline(0.0, color=HULL, linewidth=0.8, linestyle=LINES[1])
        if row == "tanh":
            top, bottom = coordinates[0].max(), coordinates[0].min()
            axes.fill_between(t, bottom - t, top + t, color=HULL, alpha=0.12, linewidth=0)
            axes.plot(t, top + t, t, bottom - t, color=INK, linewidth=1.0, linestyle=LINES[2])
        axes.set(xlabel="t", title=f"{ROWS[row]}\n{words[row]}", xlim=(0, t[-1]))
        dress_flat(axes)
    title(
        figure,
        "What can be proved of the three rows",
        "Every coordinate of every token of the picture. With ReLU those above 0 stay above 0, so"
        " the tokens cannot collapse to 0; dotted: as far as tanh lets the outermost"
        " coordinates go.",
    )
    return figure
