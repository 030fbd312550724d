"""From where a box in space is looked at: elevation and azimuth in degrees, as matplotlib takes
them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.render.panels.box import AZIMUTH, ELEVATION, PANE, STEEPEST

USUAL = (ELEVATION, AZIMUTH)

FLATTEST, STEEPEST_PLANE = 10.0, 24.0
"""Degrees between the line of sight and parallel planes: fewer show lines only, more let planes
hide each other.
"""

ELEVATIONS, AZIMUTHS = np.arange(8.0, 42.0, 2.0), np.arange(0.0, 360.0, 5.0)


def towards(elevation: np.ndarray | float, azimuth: np.ndarray | float) -> np.ndarray:
    """The direction (..., 3) from the box to a viewer at these angles in degrees."""
    high, around = np.deg2rad(elevation), np.deg2rad(azimuth)
    return np.stack(
        [np.cos(high) * np.cos(around), np.cos(high) * np.sin(around), np.sin(high) + 0.0 * around],
        axis=-1,
    )


def see_planes(
    normal: np.ndarray, levels: Sequence[float] | np.ndarray, limits: np.ndarray
) -> tuple[float, float]:
    """The view, near the usual one, from which the planes <normal, z> = level stand side by side in
    the box `limits` (3, 2).

    The box is drawn with equal sides. A plane seen at an angle a is as wide on paper as sin(a) of
    the box, and neighbours are cos(a) of their distance apart: a is what keeps the nearest two from
    covering each other, within bounds.
    """
    stretched = normal * (limits[:, 1] - limits[:, 0])
    gaps = np.diff(np.sort(np.asarray(levels, dtype=float))) / np.linalg.norm(stretched)
    gap = float(gaps.min()) if len(gaps) else PANE
    angle = float(np.clip(np.rad2deg(np.arctan2(gap, PANE)), FLATTEST, STEEPEST_PLANE))
    elevation, azimuth = (grid.ravel() for grid in np.meshgrid(ELEVATIONS, AZIMUTHS))
    seen = towards(elevation, azimuth)  # (views, 3)
    tilt = np.rad2deg(
        np.arcsin(np.clip(np.abs(seen @ stretched) / np.linalg.norm(stretched), 0.0, 1.0))
    )
    away = np.rad2deg(np.arccos(np.clip(seen @ towards(*USUAL), -1.0, 1.0)))
    # ticks of an axis that points at the viewer are printed over each other
    cost = (
        ((tilt - angle) / 3.0) ** 2
        + (away / 45.0) ** 2
        + 4.0 * (np.abs(seen) > STEEPEST).any(axis=1)
    )
    best = int(np.argmin(cost))
    return float(elevation[best]), float(azimuth[best])
