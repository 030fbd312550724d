"""An attention matrix as a heat map, with its numerical rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LogNorm

from attnlab.render.scene import Scene
from attnlab.render.style import ATTENTION

FLOOR = 1e-3
"""Weights below this look like 0: a thousandth of the attention of a token has no visible
effect.
"""


class HeatPanel:
    """P of one head, rows and columns in the order `order`; colours on a logarithmic scale shared
    by all panels.
    """

    def __init__(self, axes: Any, scene: Scene, head: int, order: np.ndarray):
        self.axes, self.scene, self.head, self.order = axes, scene, head, order
        n = scene.run.n
        self.image = axes.imshow(
            np.full((n, n), FLOOR),
            cmap=ATTENTION,
            norm=LogNorm(FLOOR, 1.0, clip=True),
            interpolation="nearest",
            origin="upper",
            extent=(-0.5, n - 0.5, n - 0.5, -0.5),
        )
        axes.set_xticks([])
        axes.set_yticks([])

    def show(self, position: float) -> None:
        """Move to a position in time."""
        P = self.scene.attention(position)[self.head]
        self.image.set_data(P[np.ix_(self.order, self.order)])
        self.rank = int(np.linalg.matrix_rank(P))

    def set_title(self, text: str) -> None:
        """Write `text` and the rank above the panel."""
        self.axes.set_title(f"{text}, rank {self.rank}")


def token_order(scene: Scene) -> tuple[np.ndarray, str]:
    """The order of tokens in which attention shows its structure, and the words for it."""
    n = scene.run.n
    if scene.run.dynamics.mask.is_causal:
        return np.arange(n), "tokens in their order"
    if scene.run.d == 1:
        return np.argsort(scene.points[0, :, 0], kind="stable"), "tokens sorted by x(0)"
    labels = scene.groups.labels
    if labels is None:
        return np.arange(n), "tokens in their order"
    return np.argsort(labels, kind="stable"), "tokens sorted by group"
