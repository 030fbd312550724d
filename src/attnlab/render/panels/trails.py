"""The past of tokens: their paths as line segments with colours."""

from __future__ import annotations

import numpy as np

from attnlab.render.groups import Groups
from attnlab.render.scene import Scene

CHUNKS = 8
"""Steps of a fading trail: enough to look smooth, few enough to draw fast."""

MOST_TRAILS = 400
"""More trails than this cover the tokens."""


def trail_segments(scene: Scene, position: float, memory: float | None) -> list[np.ndarray]:
    """Polylines (m, d) of all tokens up to `position`: whole (memory None), or the last `memory`
    positions in CHUNKS pieces.

    The pieces come oldest first, all tokens of a piece together: the order in which `trail_colours`
    colours them.
    """
    n = scene.run.n
    if n > MOST_TRAILS or position <= 0:
        return []
    if memory is None:
        return list(np.swapaxes(scene.history(position), 0, 1))
    ends = np.linspace(max(0.0, position - memory), position, CHUNKS + 1)
    pieces = [scene.history(ends[k + 1], ends[k]) for k in range(CHUNKS)]  # each (m, n, d)
    return [piece[:, i] for piece in pieces for i in range(n)]


def trail_colours(groups: Groups, memory: float | None) -> np.ndarray:
    """Colours (segments, 4) for `trail_segments`: older pieces are fainter."""
    n = len(groups.colours)
    if memory is None:
        return np.column_stack([groups.colours, np.full(n, 0.4)])
    fade = np.repeat(0.75 * (np.arange(1, CHUNKS + 1) / CHUNKS) ** 1.5, n)
    return np.column_stack([np.tile(groups.colours, (CHUNKS, 1)), fade])
