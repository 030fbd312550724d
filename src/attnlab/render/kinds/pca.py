"""Tokens of many dimensions in the plane of their two principal axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from attnlab.exponential import spectral_projector
from attnlab.render.groups import MOST_COORDINATES
from attnlab.render.kinds import Kind, Stage, kinds
from attnlab.render.kinds import tokens as tokens_kind
from attnlab.render.scene import Scene

DIVERGES = 20.0
"""Tokens whose spread has grown by more than this are taken to diverge."""


def objection(scene: Scene) -> str | None:
    """Why two principal axes cannot be drawn."""
    if scene.d >= 2 and scene.run.n >= 2:
        return None
    if scene.d < 2:
        return f"The kind of figure 'pca' needs tokens with 2 coordinates or more, got d = {scene.d}. Use kind='paths'."
    return "The kind of figure 'pca' needs 2 tokens or more, got one. Use kind='paths'."


def settled_part(scene: Scene) -> tuple[np.ndarray, str]:
    """The points (T, n, d) without the part that diverges, and the words for it.

    With a mixed spectrum z grows like e^{|lambda| t} in the stable subspace; limits exist in the unstable one only, and
    principal axes of all of z would show nothing but the growth.
    """
    grown = np.ptp(scene.points[-1], axis=0).max() > DIVERGES * np.ptp(scene.points[0], axis=0).max()
    if scene.name == "z" and grown and scene.d <= MOST_COORDINATES:
        projector = spectral_projector(scene.run.dynamics.weights.total.dense())
        if projector is not None and 2 <= round(np.trace(projector)) < scene.d:
            return scene.points @ projector.T, "Shown: the part in the unstable subspace; the rest diverges."
    return scene.points, ""


def principal_plane(scene: Scene) -> Scene:
    """The scene projected on the two principal axes of its last tokens (of all, where the last ones have become one point).

    The last tokens: the axes then show best what the run ends in. The labels say how much of their variance is seen.
    """
    points, words = settled_part(scene)
    scene = replace(scene, points=points, remark=words)
    last = scene.points[-1] - scene.points[-1].mean(axis=0)
    first = scene.points[0] - scene.points[0].mean(axis=0)
    has_collapsed = np.abs(last).max() <= 1e-6 * np.abs(first).max()
    fitted = (scene.points - scene.points.mean(axis=1, keepdims=True)).reshape(-1, scene.d) if has_collapsed else last
    _, values, axes = np.linalg.svd(fitted, full_matrices=False)
    axes = axes[:2] * np.where(axes[np.arange(2), np.argmax(np.abs(axes[:2]), axis=1)] < 0, -1.0, 1.0)[:, None]   # fix the signs
    share = values[:2] ** 2 / max(float(np.sum(values**2)), 1e-300)
    points = (scene.points - scene.points[-1].mean(axis=0)) @ axes.T
    labels = [f"principal axis {k + 1} ({100 * share[k]:.0f} %)" for k in range(2)]
    return replace(scene, points=points, axes=labels, is_projected=True)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """A row of panels, one a time, all in one plane."""
    return tokens_kind.draw(principal_plane(scene), moments, head)


def stage(scene: Scene, head: int | None = None) -> Stage:
    """The plane, with tokens that move."""
    return tokens_kind.stage(principal_plane(scene), head)


kinds.register("pca")(Kind(draw, stage, objection))
