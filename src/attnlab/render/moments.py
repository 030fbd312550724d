"""At which of its saved times a run is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnlab.render.scene import Scene

PANELS = 4


def moments(scene: Scene, wanted_times: Sequence[float] | float | None, count: int = PANELS) -> list[int]:
    """Numbers of the saved times to draw: those nearest to the `wanted_times`, or the first, the last and where most happens.

    "Most happens" is measured by the path length relative to the tokens' size, so that coordinates that grow
    exponentially do not hide the early motion.
    """
    times = scene.times
    if wanted_times is not None:
        try:
            wanted = np.atleast_1d(np.asarray(wanted_times, dtype=float))
        except (TypeError, ValueError):
            wanted = np.empty(0)
        if wanted.ndim != 1 or wanted.size == 0 or not np.isfinite(wanted).all():
            raise ValueError(f"times must be one time or a list of times, got {wanted_times!r}.")
        slack = 1e-9 * max(abs(times[-1]), abs(times[0]))
        outside = wanted[(wanted < times.min() - slack) | (wanted > times.max() + slack)]
        if outside.size:
            raise ValueError(f"times must lie within the run, from {times[0]:g} to {times[-1]:g}, got {outside[0]:g}.")
        return list(dict.fromkeys(int(np.argmin(np.abs(times - t))) for t in wanted))
    last = len(times) - 1
    if last < count:
        return list(range(last + 1))
    steps = np.linalg.norm(np.diff(scene.points, axis=0), axis=-1).mean(axis=-1)                  # (T-1,)
    size = np.linalg.norm(np.ptp(scene.points, axis=1), axis=-1)                                  # (T,)
    length = np.concatenate([[0.0], np.cumsum(steps / np.maximum(size[:-1], 1e-12 * size.max() + 1e-300))])
    if not length[-1] > 0:
        return [round(k) for k in np.linspace(0, last, count)]
    # half by what happens, half by the clock's square root: early is shown early, but never everything in the first instant
    progress = 0.5 * length / length[-1] + 0.5 * np.sqrt(np.arange(last + 1) / last)
    chosen = [int(np.argmin(np.abs(progress - k / (count - 1)))) for k in range(count)]
    chosen[0], chosen[-1] = 0, last
    for k in range(1, count):                                                                     # keep them apart
        chosen[k] = min(max(chosen[k], chosen[k - 1] + 1), last - (count - 1 - k))
    return chosen
