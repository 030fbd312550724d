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
from attnlab.render.moments import take_tokens
from attnlab.render.scene import Scene
from attnlab.render.style import subscript

ROOMY = 9.0
"""Inches from which a label under each of four panels may be long."""

DIVERGES = 20.0
"""Tokens diverge if their spread has grown by more than this."""


def objection(scene: Scene) -> str | None:
    """Return why two principal axes cannot be drawn."""
    if scene.d >= 2 and scene.run.n >= 2:
        return None
    if scene.d < 2:
        return (
            f"The kind of figure 'pca' needs tokens with 2 coordinates or more, got d = {scene.d}."
            " Use kind='paths'."
        )
    return "The kind of figure 'pca' needs 2 tokens or more, got one. Use kind='paths'."


def settled_part(scene: Scene) -> tuple[np.ndarray, str]:
    """The points (T, n, d) without the part that diverges, and the words for it.

    With a mixed spectrum z grows like e^{|lambda| t} in the stable subspace; limits exist in the
    unstable one only, and principal axes of all of z would show nothing but the growth.
    """
    grown = (
        np.ptp(scene.points[-1], axis=0).max() > DIVERGES * np.ptp(scene.points[0], axis=0).max()
    )
    if scene.name == "z" and grown and scene.d <= MOST_COORDINATES:
        projector = spectral_projector(scene.run.dynamics.weights.total.dense())
        if projector is not None and 2 <= round(np.trace(projector)) < scene.d:
            return (
                scene.points @ projector.T,
                "Shown: the part in the unstable subspace; the rest diverges.",
            )
    return scene.points, ""


def principal_axes(scene: Scene, count: int) -> Scene:
    """The scene on `count` principal axes of its last tokens (of all times, where the last ones
    have become one point).

    The last tokens: the axes then show best what the run ends in. The labels say how much of their
    variance is seen. Axes that the tokens do not have are 0. Of a single token they are those of
    its way.
    """
    points, words = settled_part(scene)
    last = points[-1] - points[-1].mean(axis=0)
    first = points[0] - points[0].mean(axis=0)
    if scene.run.n == 1:
        fitted = (points - points[-1]).reshape(-1, scene.d)
    elif np.abs(last).max() <= 1e-6 * np.abs(first).max():
        fitted = (points - points.mean(axis=1, keepdims=True)).reshape(-1, scene.d)
    else:
        fitted = last
    size = float(np.abs(fitted).max())
    if size <= 1e-6 * float(np.abs(points).max()):  # rounding is no direction
        fitted, points = np.zeros_like(fitted), np.broadcast_to(points[-1:], points.shape)
    _, values, found = np.linalg.svd(fitted / (size or 1.0), full_matrices=False)
    kept = min(
        count, int((values > 1e-6 * values[0]).sum())
    )  # what is left of rounding is no axis either
    found = (
        found[:kept]
        * np.where(found[np.arange(kept), np.abs(found[:kept]).argmax(axis=1)] < 0, -1.0, 1.0)[
            :, None
        ]
    )
    axes, share = np.zeros((count, scene.d)), np.zeros(count)
    axes[:kept], share[:kept] = found, values[:kept] ** 2 / max(float(np.sum(values**2)), 1e-300)
    if count == 3:  # in space there is no room for long labels
        labels = [f"PC{subscript(k + 1)}" for k in range(count)]
        seen = ", ".join(f"{100 * part:.0f} %" for part in share)
        whose = "way" if scene.run.n == 1 else "tokens at the end"
        words = f"PC: principal axes of the {whose}, with {seen} of the variance. {words}"
    else:
        word = (
            "principal axis" if scene.paper.width is None or scene.paper.width >= ROOMY else "axis"
        )
        labels = [f"{word} {k + 1} ({100 * share[k]:.0f} %)" for k in range(count)]
    centred = points - points[-1].mean(axis=0)
    return replace(
        scene, points=centred @ axes.T, axes=labels, is_projected=True, remark=words.strip()
    )


def shown(scene: Scene, numbers: np.ndarray) -> np.ndarray:
    """Return the tokens in the plane."""
    return take_tokens(principal_axes(scene, 2), numbers)


def draw(scene: Scene, moments: Sequence[int], head: int | None = None) -> Figure:
    """Draw a row of panels, one per time, all in one plane."""
    return tokens_kind.draw(principal_axes(scene, 2), moments, head)


def stage(scene: Scene, head: int | None = None) -> Stage:
    """Draw the plane with moving tokens."""
    return tokens_kind.stage(principal_axes(scene, 2), head)


kinds.register("pca")(Kind(draw, stage, objection, shown))
