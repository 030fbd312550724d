"""Figures of many eigen-coordinates of z: their rates, those that cluster and those that grow."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    subscript,
    title,
)

from .claims import euler_rate, integrated_rates, rates
from .experiment import STEP, spread

CLUSTERED, GROWING, EULER = PALETTE[0], PALETTE[1], PALETTE[2]

SEEN = 1e-9
"""Spreads below this are rounding."""

UNTIL = 8.0
"""The end of the time axis for clustered coordinates."""


def figures(data: Data) -> dict[str, Any]:
    """All coordinates at once; then some that cluster, and some that grow."""
    with house_style():
        return {
            "high_dimension": _rates(data),
            "clustered_coordinates": _clustered(data),
            "growing_coordinates": _growing(data),
        }


def _parts(data: Data) -> tuple[Any, ...]:
    """(t, values of z (T, n, d), eigenvalues, leaders, labels, when leaders are decided, the end of
    double precision).
    """
    coordinates = data["coordinates"]
    return (
        *(coordinates[name].values for name in ("time", "value", "eigenvalue", "leader", "label")),
        coordinates.attrs["decided"],
        float(data["run"]["time"].values[-1]),
    )


def _mark_wall(axes: Any, wall: float) -> None:
    """A vertical line where double precision ends."""
    axes.axvline(wall, color=HULL, linewidth=0.8, linestyle=LINES[1], zorder=0.5)


def _draw_groups(
    axes: Any, t: np.ndarray, value: np.ndarray, label: np.ndarray, alpha: float, words: str
) -> None:
    """The mean and the deviation of each group of one coordinate, value (T, n); words: a label with
    {name} and {n}.
    """
    for group in range(int(label.max()) + 1):
        colour, of_group = PALETTE[group % 6], value[:, label == group]
        mean, deviation = of_group.mean(axis=1), of_group.std(axis=1)
        axes.fill_between(
            t, mean - deviation, mean + deviation, color=colour, alpha=alpha, linewidth=0
        )
        axes.plot(
            t,
            mean,
            color=colour,
            linewidth=1.8,
            linestyle=LINES[0 if group == 0 else 3],
            label=words.format(
                name="AB"[group] if group < 2 else group, n=int((label == group).sum())
            ),
        )


def _rates(data: Data) -> Any:
    """Left the spread of each coordinate over time, right its rate against its eigenvalue, with
    theory and Euler steps.
    """
    t, value, values, leader, _, decided, wall = _parts(data)
    euler, measured, spreads, is_clustered = (
        data["euler_spread"],
        integrated_rates(data),
        spread(value, leader),
        values > 0,
    )
    euler_rates = rates(euler["time"].values, euler["spread"].values, 0.0)
    figure = new_figure(9.6, 4.3)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    for k in range(len(values)):
        left.semilogy(
            t,
            np.where(spreads[:, k] > SEEN, spreads[:, k], np.nan),
            color=CLUSTERED if is_clustered[k] else GROWING,
            linewidth=0.6,
            alpha=0.55,
        )
    at = int(np.searchsorted(t, decided))
    for k in (0, int(is_clustered.sum()) - 1, len(values) - 1):
        law = spreads[at, k] * np.exp(-values[k] * (t - t[at]))
        used = (t >= t[at]) & (law > SEEN)
        left.semilogy(t[used], law[used], color=INK, linewidth=1.3, linestyle=LINES[2])
        beside = int(np.flatnonzero(used)[-1])
        left.annotate(
            f"λ = {values[k]:.2f}".replace("-", "−"),
            (t[beside], law[beside]),
            xytext=(4, 4),
            fontsize=8.5,
            ha="left",
            textcoords="offset points",
            va="center",
            annotation_clip=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85},
        )
    left.set(
        xlabel="t",
        xlim=(0, t[-1]),
        ylim=(SEEN, float(np.nanmax(spreads)) * 30),
        title="Distance of the followers to their leader",
    )
    _mark_wall(left, wall)
    left.text(
        wall,
        0.98,
        " end of double precision",
        fontsize=8,
        color=NOTE,
        va="top",
        transform=left.get_xaxis_transform(),
    )
    fine = np.linspace(values.min() - 0.3, values.max() + 0.3, 400)
    right.axhline(1.0, color=INK, linewidth=1.0, linestyle=LINES[2], label="theory: −λ")
    right.plot(
        fine,
        euler_rate(fine) / -fine,
        color=EULER,
        linewidth=1.0,
        linestyle=LINES[1],
        label=f"Euler, dt = {STEP:g}: log|1 − λdt| / dt",
    )
    for mask, colour, sign, height in (
        (is_clustered, CLUSTERED, ">", 0.27),
        (~is_clustered, GROWING, "<", 0.35),
    ):
        left.text(
            0.98,
            height,
            f"{mask.sum()} coordinates with λ {sign} 0",
            color=colour,
            ha="right",
            fontsize=9.5,
            transform=left.transAxes,
        )
        right.plot(
            values[mask],
            measured[mask] / -values[mask],
            marker=MARKERS[0],
            linestyle="none",
            markersize=4.5,
            markerfacecolor="none",
            color=colour,
            label=f"measured, λ {sign} 0",
        )
    right.plot(
        values,
        euler_rates / -values,
        marker=MARKERS[1],
        linestyle="none",
        markersize=3.0,
        color=EULER,
        label="measured, Euler",
        alpha=0.8,
    )
    right.set(xlabel="eigenvalue λ", ylabel="rate / (−λ)", title="Rate of each coordinate")
    right.legend(frameon=False, fontsize=8.5, loc="upper left")
    dress_flat(left)
    dress_flat(right, ticks=6)
    title(
        figure,
        f"{len(values)} tokens in {len(values)} dimensions: every eigen-coordinate follows e^(−λt)",
        f"Left: root mean square distance in z, one line per coordinate, certified to t = {t[-1]:g}"
        f" (λ₁t = {values[0] * t[-1]:.0f}). Dotted: e^(−λt) for three of them. Right: rates of the"
        " integrated run once its leaders are fixed, before the end of double precision, and those"
        " of the authors' Euler steps.",
    )
    return figure


def _clustered(data: Data) -> Any:
    """Some coordinates that converge: mean, deviation and range of each group over time, with the
    certified limit.
    """
    t, value, values, _, label, _, wall = _parts(data)
    points, positive = data["coordinates"]["limit"].values, int((values > 0).sum())
    chosen = np.unique(np.concatenate([[0], np.linspace(1, positive - 1, 5).astype(int)]))
    shown = t <= UNTIL
    figure = new_figure(9.6, 5.4)
    panels = figure.subplots(2, 3, sharex=True).ravel()
    for axes, k in zip(panels, chosen, strict=False):
        _draw_groups(axes, t[shown], value[shown][..., k], label, 0.28, "group {name}, n = {n}")
        for group in range(int(label.max()) + 1):
            of_group = value[shown][:, label == group, k]
            axes.fill_between(
                t[shown],
                of_group.min(axis=1),
                of_group.max(axis=1),
                color=PALETTE[group % 6],
                alpha=0.10,
                linewidth=0,
            )
            axes.axhline(
                float(points[label == group, k][0]),
                color=INK,
                linewidth=1.0,
                linestyle=LINES[2],
                label="limit" if group == 0 else None,
            )
        _mark_wall(axes, wall)
        axes.set_title(f"λ{subscript(int(k) + 1)} = {values[k]:.2f}")
        axes.set(xlim=(0, UNTIL))
        dress_flat(axes)
    for axes in panels[len(chosen) :]:
        axes.set_visible(False)
    for axes in panels[3:]:
        axes.set_xlabel("t")
    bottom, top = panels[0].get_ylim()
    panels[0].set_ylim(bottom, top + 0.5 * (top - bottom))  # room for the legend
    panels[0].legend(frameon=False, fontsize=8.5, loc="upper right")
    title(
        figure,
        f"Clustered coordinates: λ > 0 · {positive} of {len(values)}",
        "The coordinate of z along an eigenvector: mean of each group, mean ± standard deviation,"
        " range. Groups are those of the certified limit (dotted), the same in every coordinate;"
        " the larger λ, the faster. Dashed: the end of double precision.",
    )
    return figure


def _growing(data: Data) -> Any:
    """Some coordinates that diverge on a symmetric logarithmic axis: groups, leaders, the law, and
    Euler's version of it.
    """
    t, value, values, leader, label, decided, wall = _parts(data)
    chosen = np.unique(np.linspace((values > 0).sum(), len(values) - 1, 5).astype(int))[::-1]
    at = int(np.searchsorted(t, decided))
    later = t[at:] - t[at]
    power = 3 * int(np.ceil(np.log10(float(np.abs(value[-1][:, chosen]).max())) / 3))
    ticks = 10.0 ** np.arange(6, power + 1, 6)
    figure = new_figure(9.6, 5.6)
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    for axes, k in zip(panels, chosen, strict=False):
        _draw_groups(axes, t, value[..., k], label, 0.25, "group {name}, mean ± deviation")
        for number, one in enumerate(np.unique(leader)):
            axes.plot(
                t,
                value[:, one, k],
                color=INK,
                linewidth=1.0,
                label="leaders" if number == 0 else None,
            )
        size = float(np.sqrt(((value - value[:, leader])[at, :, k] ** 2).mean()))
        laws = (
            (
                np.exp(-values[k] * later),
                {"color": INK, "linewidth": 1.2, "linestyle": LINES[2]},
                "c e^(−λt), theory",
            ),
            (
                (1 - values[k] * STEP) ** (later / STEP),
                {"color": EULER, "linewidth": 1.0, "linestyle": LINES[1]},
                f"c (1 − λdt)^(t/dt), Euler, dt = {STEP:g}",
            ),
        )
        for sign in (1, -1):
            for law, look, words in laws:
                axes.plot(
                    t[at:], sign * size * law, **look, label=f"± {words}" if sign == 1 else None
                )
        axes.set_yscale("symlog", linthresh=1.0, linscale=0.7)
        axes.set(xlim=(0, t[-1]), xticks=[0, 5, 10, 15], ylim=(-(10.0**power), 10.0**power))
        axes.set_yticks([*-ticks[::-1], 0.0, *ticks])
        _mark_wall(axes, wall)
        axes.set_title(f"λ{subscript(int(k) + 1)} = {values[k]:.2f}".replace("-", "−"))
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(chosen) :]:
        axes.set_axis_off()
    for axes in panels[: len(chosen)]:
        axes.set_xlabel("t")
        axes.tick_params(labelbottom=True)
    panels[-1].legend(
        *panels[0].get_legend_handles_labels(),
        loc="center",
        frameon=False,
        fontsize=9,
        labelspacing=0.9,
    )
    title(
        figure,
        f"Growing coordinates: λ < 0 · {(values < 0).sum()} of {len(values)}",
        "The coordinate of z along an eigenvector, symmetric logarithmic axis (linear between −1"
        " and 1). All but the leaders leave like e^(−λt); c is the root mean square when leaders"
        " are fixed. Euler steps stay below. Vertical, dashed: the end of double precision.",
    )
    return figure
