"""Figures of many eigen-coordinates of z: their rates, those that cluster and those that grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlab.experiments.record import Data
from attnlab.render.style import HULL, INK, LINES, MARKERS, NOTE, PALETTE, dress_flat, house_style, new_figure, subscript, title

from .claims import euler_rate, integrated_rates, rates
from .experiment import STEP, spread

WALL: Any = LINES[1]
CLUSTERED, GROWING, EULER = PALETTE[0], PALETTE[1], PALETTE[2]


def mark_wall(axes: Any, wall: float) -> None:
    """A vertical line where double precision ends."""
    axes.axvline(wall, color=HULL, linewidth=0.8, linestyle=WALL, zorder=0.5)


def rates_figure(
    t: np.ndarray, spreads: np.ndarray, values: np.ndarray, measured: np.ndarray, *, decided: float, wall: float, dt: float,
    euler_rate: Callable[[np.ndarray], np.ndarray], euler_rates: np.ndarray, seen: float = 1e-9,
) -> Any:
    """Left the spread (T, d) of each coordinate over time, right its rate against its eigenvalue, with theory and Euler steps."""
    is_clustered = values > 0
    with house_style():
        figure = new_figure(9.6, 4.3)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
        for k in range(len(values)):
            shown = np.where(spreads[:, k] > seen, spreads[:, k], np.nan)
            left.semilogy(t, shown, color=CLUSTERED if is_clustered[k] else GROWING, linewidth=0.6, alpha=0.55)
        for k in (0, int(is_clustered.sum()) - 1, len(values) - 1):
            at = int(np.searchsorted(t, decided))
            law = spreads[at, k] * np.exp(-values[k] * (t - t[at]))
            used = (t >= t[at]) & (law > seen)
            left.semilogy(t[used], law[used], color=INK, linewidth=1.3, linestyle=LINES[2])
            beside = int(np.flatnonzero(used)[-1])
            left.annotate(f"λ = {values[k]:.2f}".replace("-", "−"), (t[beside], law[beside]), xytext=(4, 4), fontsize=8.5,
                          ha="left", textcoords="offset points", va="center", annotation_clip=False,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85})
        top = float(np.nanmax(spreads))
        left.set(xlabel="t", xlim=(0, t[-1]), ylim=(seen, top * 30), title="Distance of the followers to their leader")
        mark_wall(left, wall)
        left.text(wall, 0.98, " end of double precision", fontsize=8, color=NOTE, va="top", transform=left.get_xaxis_transform())
        left.text(0.98, 0.35, f"{(~is_clustered).sum()} coordinates with λ < 0", color=GROWING, ha="right", fontsize=9.5,
                  transform=left.transAxes)
        left.text(0.98, 0.27, f"{is_clustered.sum()} coordinates with λ > 0", color=CLUSTERED, ha="right", fontsize=9.5,
                  transform=left.transAxes)
        fine = np.linspace(values.min() - 0.3, values.max() + 0.3, 400)
        right.axhline(1.0, color=INK, linewidth=1.0, linestyle=LINES[2], label="theory: −λ")
        right.plot(fine, euler_rate(fine) / -fine, color=EULER, linewidth=1.0, linestyle=LINES[1],
                   label=f"Euler, dt = {dt:g}: log|1 − λdt| / dt")
        for mask, colour, sign in ((is_clustered, CLUSTERED, ">"), (~is_clustered, GROWING, "<")):
            right.plot(values[mask], measured[mask] / -values[mask], marker=MARKERS[0], linestyle="none", markersize=4.5,
                       markerfacecolor="none", color=colour, label=f"measured, λ {sign} 0")
        right.plot(values, euler_rates / -values, marker=MARKERS[1], linestyle="none", markersize=3.0, color=EULER,
                   label="measured, Euler", alpha=0.8)
        right.set(xlabel="eigenvalue λ", ylabel="rate / (−λ)", title="Rate of each coordinate")
        right.legend(frameon=False, fontsize=8.5, loc="upper left")
        dress_flat(left)
        dress_flat(right, ticks=6)
        title(figure, f"{len(values)} tokens in {len(values)} dimensions: every eigen-coordinate follows e^(−λt)",
              f"Left: root mean square distance in z, one line a coordinate, certified to t = {t[-1]:g} (λ₁t = "
              f"{values[0] * t[-1]:.0f}). Dotted: e^(−λt) for three of them. Right: rates of the integrated run once its leaders "
              "are fixed, before the end of double precision, and those of the authors' Euler steps.")
        return figure


def clustered_figure(
    t: np.ndarray, value: np.ndarray, values: np.ndarray, label: np.ndarray, points: np.ndarray, chosen: np.ndarray, *,
    wall: float, until: float,
) -> Any:
    """Some coordinates that converge: mean, deviation and range of each group over time, with the certified limit."""
    shown = t <= until
    with house_style():
        figure = new_figure(9.6, 5.4)
        panels = figure.subplots(2, 3, sharex=True).ravel()
        for axes, k in zip(panels, chosen, strict=False):
            for group in range(int(label.max()) + 1):
                colour, of_group = PALETTE[group % 6], value[shown][:, label == group, k]
                mean, deviation = of_group.mean(axis=1), of_group.std(axis=1)
                axes.fill_between(t[shown], of_group.min(axis=1), of_group.max(axis=1), color=colour, alpha=0.10, linewidth=0)
                axes.fill_between(t[shown], mean - deviation, mean + deviation, color=colour, alpha=0.28, linewidth=0)
                axes.plot(t[shown], mean, color=colour, linewidth=1.8, linestyle=LINES[0 if group == 0 else 3],
                          label=f"group {'AB'[group] if group < 2 else group}, n = {int((label == group).sum())}")
                axes.axhline(float(points[label == group, k][0]), color=INK, linewidth=1.0, linestyle=LINES[2],
                             label="limit" if group == 0 else None)
            mark_wall(axes, wall)
            axes.set_title(f"λ{subscript(int(k) + 1)} = {values[k]:.2f}")
            axes.set(xlim=(0, until))
            dress_flat(axes)
        for axes in panels[len(chosen):]:
            axes.set_visible(False)
        for axes in panels[3:]:
            axes.set_xlabel("t")
        bottom, top = panels[0].get_ylim()
        panels[0].set_ylim(bottom, top + 0.5 * (top - bottom))          # room for the legend
        panels[0].legend(frameon=False, fontsize=8.5, loc="upper right")
        title(figure, f"Clustered coordinates: λ > 0 · {(values > 0).sum()} of {len(values)}",
              "The coordinate of z along an eigenvector: mean of each group, mean ± standard deviation, range. Groups are those "
              "of the certified limit (dotted), the same in every coordinate; the larger λ, the faster. Dashed: the end of "
              "double precision.")
        return figure


def growing_figure(
    t: np.ndarray, value: np.ndarray, values: np.ndarray, leader: np.ndarray, label: np.ndarray, chosen: np.ndarray, *,
    wall: float, decided: float, dt: float,
) -> Any:
    """Some coordinates that diverge on a symmetric logarithmic axis: groups, leaders, the law, and Euler's version of it."""
    at = int(np.searchsorted(t, decided))
    with house_style():
        figure = new_figure(9.6, 5.6)
        panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
        largest = float(np.abs(value[-1][:, chosen]).max())
        for axes, k in zip(panels, chosen, strict=False):
            for group in range(int(label.max()) + 1):
                colour, of_group = PALETTE[group % 6], value[:, label == group, k]
                mean, deviation = of_group.mean(axis=1), of_group.std(axis=1)
                axes.fill_between(t, mean - deviation, mean + deviation, color=colour, alpha=0.25, linewidth=0)
                axes.plot(t, mean, color=colour, linewidth=1.8, linestyle=LINES[0 if group == 0 else 3],
                          label=f"group {'AB'[group] if group < 2 else group}, mean ± deviation")
            for number, one in enumerate(np.unique(leader)):
                axes.plot(t, value[:, one, k], color=INK, linewidth=1.0, label="leaders" if number == 0 else None)
            size = float(np.sqrt(((value - value[:, leader])[at, :, k] ** 2).mean()))
            later = t[at:] - t[at]
            for sign in (1, -1):
                axes.plot(t[at:], sign * size * np.exp(-values[k] * later), color=INK, linewidth=1.2, linestyle=LINES[2],
                          label="± c e^(−λt), theory" if sign == 1 else None)
                axes.plot(t[at:], sign * size * (1 - values[k] * dt) ** (later / dt), color=EULER, linewidth=1.0,
                          linestyle=LINES[1], label=f"± c (1 − λdt)^(t/dt), Euler, dt = {dt:g}" if sign == 1 else None)
            axes.set_yscale("symlog", linthresh=1.0, linscale=0.7)
            power = 3 * int(np.ceil(np.log10(largest) / 3))
            ticks = 10.0 ** np.arange(6, power + 1, 6)
            axes.set(xlim=(0, t[-1]), xticks=[0, 5, 10, 15], ylim=(-(10.0**power), 10.0**power))
            axes.set_yticks([*-ticks[::-1], 0.0, *ticks])
            mark_wall(axes, wall)
            axes.set_title(f"λ{subscript(int(k) + 1)} = {values[k]:.2f}".replace("-", "−"))
            axes.spines[["top", "right"]].set_visible(False)
        for axes in panels[len(chosen):]:
            axes.set_axis_off()
        for axes in panels[: len(chosen)]:
            axes.set_xlabel("t")
            axes.tick_params(labelbottom=True)
        panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=9, labelspacing=0.9)
        title(figure, f"Growing coordinates: λ < 0 · {(values < 0).sum()} of {len(values)}",
              "The coordinate of z along an eigenvector, symmetric logarithmic axis (linear between −1 and 1). All but the "
              "leaders leave like e^(−λt); c is the root mean square when leaders are fixed. Euler steps stay below. Vertical, "
              "dashed: the end of double precision.")
        return figure


def figures(data: Data) -> dict[str, Any]:
    """All coordinates at once; then some that cluster, and some that grow."""
    coordinates, euler = data["coordinates"], data["euler_spread"]
    t, value, values, leader, label, points = (
        coordinates[name].values for name in ("time", "value", "eigenvalue", "leader", "label", "limit"))
    decided, wall = coordinates.attrs["decided"], float(data["run"]["time"].values[-1])
    k = int((values > 0).sum())
    chosen = np.unique(np.concatenate([[0], np.linspace(1, k - 1, 5).astype(int)]))
    growing = np.unique(np.linspace(k, len(values) - 1, 5).astype(int))[::-1]
    return {
        "high_dimension": rates_figure(
            t, spread(value, leader), values, integrated_rates(data), decided=decided, wall=wall, dt=STEP, euler_rate=euler_rate,
            euler_rates=rates(euler["time"].values, euler["spread"].values, 0.0)),
        "clustered_coordinates": clustered_figure(t, value, values, label, points, chosen, wall=wall, until=8.0),
        "growing_coordinates": growing_figure(t, value, values, leader, label, growing, wall=wall, decided=decided, dt=STEP),
    }
