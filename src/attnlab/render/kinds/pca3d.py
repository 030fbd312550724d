"""Tokens of any dimension in the space of their three principal axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.kinds import tokens as tokens_kind
from attnlab.render.kinds.pca import principal_axes
from attnlab.render.moments import take_tokens
from attnlab.render.scene import Scene


def shown(scene: Scene, numbers: np.ndarray) -> np.ndarray:
    """Return the tokens in that space."""
    return take_tokens(principal_axes(scene, 3), numbers)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Draw a row of boxes, one per time, with the same axes. With fewer than three coordinates the
    last axes are empty.
    """
    return tokens_kind.draw(principal_axes(scene, 3), moments, head)


def stage(scene: Scene, head: int | None = None) -> Stage:
    """Draw a turning box with moving tokens."""
    return tokens_kind.stage(principal_axes(scene, 3), head)


kinds.register("pca3d")(Kind(draw, stage, shown=shown))
