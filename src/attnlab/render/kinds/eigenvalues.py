"""Eigenvalues of the attention matrices P at a few times, in the complex plane, with the unit
circle.

The rows of P sum to 1, so 1 is an eigenvalue and no other is outside the unit circle. Where
attention becomes Boolean, the eigenvalues of modulus 1 count the tokens that lead themselves,
directly or in a circle, and the others tend to 0. Of several heads the mean of their P is shown as
well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.kinds.attention import chosen_heads
from attnlab.render.kinds.tokens import PANEL, ROW, flat_height, share_labels
from attnlab.render.moments import take_attention
from attnlab.render.panels.flat import frame_flat
from attnlab.render.scene import Scene
from attnlab.render.style import (
    INK,
    MARKERS,
    PALETTE,
    RULE,
    dress_flat,
    new_figure,
    paper_figure,
    title,
)

MOST_TOKENS = 1500
"""The eigenvalues of larger matrices take minutes."""

OUTER = 0.99
"""Moduli above this are counted as on the circle."""

KEY = 0.2
"""Inches of a row that says which mark is which head."""


def objection(scene: Scene) -> str | None:
    """Return why the eigenvalues are not computed."""
    if scene.run.n <= MOST_TOKENS:
        return None
    return (
        f"The kind of figure 'eigenvalues' needs at most {MOST_TOKENS} tokens, because all"
        f" eigenvalues of a larger P take minutes; got n = {scene.run.n}. Use kind='attention'."
    )


class EigenvaluePanel:
    """The eigenvalues of P of some heads, and of the mean over all heads where there are several,
    on the axes of a plane.
    """

    def __init__(self, axes: Any, scene: Scene, heads: Sequence[int], reach: float):
        self.axes, self.scene, self.heads = axes, scene, heads
        dress_flat(axes)
        frame_flat(axes, ("Re λ", "Im λ"), np.array([[-reach, reach], [-reach, reach]]))
        axes.axhline(0.0, color=RULE, linewidth=0.8, zorder=0)
        axes.axvline(0.0, color=RULE, linewidth=0.8, zorder=0)
        axes.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=INK, linewidth=0.8, zorder=1))
        self.marks = [
            axes.scatter([], [], zorder=3, **look(number)) for number in range(len(heads))
        ]
        self.mean = (
            axes.scatter([], [], zorder=4, **MEAN) if scene.run.dynamics.weights.heads > 1 else None
        )

    def show(self, position: float) -> None:
        """Move to a position in time."""
        P = self.scene.attention(position)
        for head, mark in zip(self.heads, self.marks, strict=True):
            values = np.linalg.eigvals(P[head])
            mark.set_offsets(np.column_stack([values.real, values.imag]))
        if self.mean is not None:
            values = np.linalg.eigvals(P.mean(axis=0))
            self.mean.set_offsets(np.column_stack([values.real, values.imag]))
        self.outer = int((np.abs(values) > OUTER).sum())

    def set_title(self, text: str) -> None:
        """Write `text` above the panel, and how many eigenvalues are on the circle."""
        self.axes.set_title(
            f"{text}\n{self.outer} on the circle" if has_circle(self.scene) else text
        )


MEAN: Any = {"s": 26, "marker": "x", "color": INK, "linewidths": 1.0}


def look(number: int) -> dict[str, Any]:
    """How the eigenvalues of a head are drawn."""
    return {
        "s": 22,
        "marker": MARKERS[number % len(MARKERS)],
        "facecolors": "none",
        "edgecolors": PALETTE[number % len(PALETTE)],
        "linewidths": 1.1,
    }


def has_circle(scene: Scene) -> bool:
    """Whether the rows of P sum to 1, so that the unit circle bounds its eigenvalues."""
    return scene.run.dynamics.kernel.rows_sum_to_one


def reach_of(scene: Scene, numbers: Sequence[int]) -> float:
    """How far the axes reach: a little beyond the circle, or as the eigenvalues need, which |row
    sums| of P bound.
    """
    if has_circle(scene):
        return 1.1
    return max(
        1.1, 1.05 * max(float(scene.attention(float(k)).sum(axis=-1).max()) for k in numbers)
    )


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Draw a row of panels, one per time."""
    heads, paper = chosen_heads(scene, head), scene.paper
    columns = paper.columns(len(moments), ROW)
    rows = -(-len(moments) // columns)
    width = max(PANEL * columns, 4.5) if paper.width is None else paper.width
    has_key = scene.run.dynamics.weights.heads > 1
    key = KEY * (2 if paper.is_narrow and width < 5 else 1)
    body = flat_height(paper, width, rows, columns, True, lines=2)
    figure = paper_figure(paper, width, body + has_key * key)
    grid = figure.add_gridspec(
        rows + has_key, columns, height_ratios=[*[body / rows] * rows, *[key] * has_key]
    )
    reach = reach_of(scene, moments)
    for number, k in enumerate(moments):
        axes = figure.add_subplot(grid[number // columns, number % columns])
        drawn = EigenvaluePanel(axes, scene, heads, reach)
        drawn.show(k)
        drawn.set_title(scene.clock(k))
        share_labels(axes, number, columns, len(moments))
    if has_key:
        draw_key(figure.add_subplot(grid[rows, :]), scene, heads)
    title(figure, headline(scene, heads), note(scene))
    return figure


def draw_key(axes: Any, scene: Scene, heads: Sequence[int]) -> None:
    """Draw the legend: the mark of each head."""
    axes.axis("off")
    marks = [
        axes.scatter([], [], label=f"head {head}", **look(number))
        for number, head in enumerate(heads)
    ]
    marks.append(
        Line2D(
            [],
            [],
            linestyle="",
            marker="x",
            color=INK,
            markersize=5,
            label=f"mean of {scene.run.dynamics.weights.heads} heads",
        )
    )
    columns = 3 if scene.paper.width is not None and scene.paper.width < 5 else len(marks)
    axes.legend(
        handles=marks,
        loc="center",
        ncols=columns,
        frameon=False,
        fontsize=7 if scene.paper.is_narrow else 8.5,
        handletextpad=0.2,
        columnspacing=1.2,
        borderaxespad=0.0,
        borderpad=0.0,
    )


def headline(scene: Scene, heads: Sequence[int]) -> str:
    """Describe the matrices."""
    several = scene.run.dynamics.weights.heads > 1
    which = (
        f" of head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))}" if several else ""
    )
    return scene.headline(f"Eigenvalues of attention P{which}")


def note(scene: Scene) -> str:
    """Explain the picture."""
    several = scene.run.dynamics.weights.heads > 1
    if not has_circle(scene):
        return "Circle: modulus 1. The rows of P do not sum to 1, so eigenvalues may lie outside."
    whose = " of the mean" if several else ""
    return (
        f"Circle: modulus 1, which none exceeds. On the circle: eigenvalues{whose} with modulus"
        f" above {OUTER:g}, which may coincide."
    )


def stage(scene: Scene, head: int | None = None) -> Stage:
    """Draw one panel with moving eigenvalues."""
    heads = chosen_heads(scene, head)
    figure = new_figure(5.0, 5.6, dpi=120)
    has_key = scene.run.dynamics.weights.heads > 1
    grid = figure.add_gridspec(1 + has_key, 1, height_ratios=[5.0, *[KEY] * has_key])
    panel = EigenvaluePanel(
        figure.add_subplot(grid[0]), scene, heads, reach_of(scene, range(len(scene.times)))
    )
    if has_key:
        draw_key(figure.add_subplot(grid[1]), scene, heads)
    title(figure, headline(scene, heads), note(scene))

    def show(position: float) -> None:
        panel.show(position)
        panel.set_title(scene.clock(position, decimals=2))

    return figure, show


kinds.register("eigenvalues")(Kind(draw, stage, objection, take_attention))
