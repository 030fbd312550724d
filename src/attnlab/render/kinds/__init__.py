"""Kinds of figures of a run, by name.

To add one: a new file here that registers a `Kind` under the file's name. Nothing else has to be
edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from attnlab.registry import Registry

if TYPE_CHECKING:
    from attnlab.render.scene import Scene

kinds: Registry[Kind] = Registry("kind of figure", package=__name__)

PANELS = 4
"""The default number of times in a figure."""

Stage = tuple[Figure, Callable[[float], None]]
"""A figure for a movie, and what moves it to a position in time (the number of a saved time, or
between two).
"""


@dataclass(frozen=True)
class Kind:
    """One kind of figure.

    draw(scene, moments, head): the figure, at the saved times numbered by `moments`, for
    scene.paper (see style.paper_figure). head: which one, None for a choice. stage(scene, head):
    the same picture as one that moves. objection(scene): a sentence why this kind does not suit the
    scene, or None. shown(scene, times): what its panels show, by which times are chosen (see
    moments.py); None: the tokens. panels(scene, head): how many times are shown where none are
    asked for.
    """

    draw: Callable[[Scene, Sequence[int], int | None], Figure]
    stage: Callable[[Scene, int | None], Stage]
    objection: Callable[[Scene], str | None] = lambda scene: None
    shown: Callable[[Scene, np.ndarray], np.ndarray] | None = None
    panels: Callable[[Scene, int | None], int] = lambda scene, head: PANELS


def suitable(scene: Scene) -> str:
    """Return the name of the kind that shows a scene best, by its dimension."""
    return "paths" if scene.run.d == 1 else "tokens" if scene.run.d <= 3 else "pca"
