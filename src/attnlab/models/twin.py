"""The idealised twin of a stack: the theory's flow with the matrices of layer l between the times l and l + 1.

Post-norm models keep their tokens near a sphere of radius sqrt(d), so their twin lives on it: x = sqrt(d) y, scores are d times
those of y. Others live in R^d, and start from what their attention reads, tokens of norm sqrt(d). Biases, feed-forward parts,
norms between layers and rotary positions are left out; a causal mask stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.models.forward import Step
from attnlab.models.model import Model
from attnlab.types import RunFailed, Trajectory

TOLERANCE = 1e-6
"""Relative: the twin is compared with models that differ from it by tens of per cent."""


def twin(model: Model, x0: np.ndarray, progress: Any = None) -> Iterator[Step]:
    """The tokens (n, d) at the times 1, 2, ..., layers, and the attention (h, n, n) at the time before each."""
    y, radius = start(model, x0)
    for number in range(model.config.layers):
        run = between(model, number, y)
        yield Step(run.x[-1] * radius, _attention(run))
        y = run.x[-1]
        if progress is not None:
            progress((number + 1) / model.config.layers)


def start(model: Model, x0: np.ndarray) -> tuple[np.ndarray, float]:
    """(y, radius): the twin's first tokens radius * y; on the unit sphere where the twin lives on one."""
    radius = math.sqrt(model.config.d)
    unit = x0 / np.linalg.norm(x0, axis=-1, keepdims=True)
    return (unit * radius, 1.0) if model.config.is_pre_norm else (unit, radius)


def between(model: Model, number: int, y: np.ndarray, t_end: float = 1.0, **options: Any) -> Trajectory:
    """The flow with the matrices of one layer from y on, for the time of one layer; options are those of simulate."""
    from attnlab.engine import simulate

    config = model.config
    geometry = {} if config.is_pre_norm else {"geometry": "sphere", "beta": float(config.d)}
    try:
        return simulate(
            model.weights(number), y, t_end=t_end, rtol=TOLERANCE, mask="causal" if config.is_causal else "full",
            **{"saves": 2, **geometry, **options},
        )
    except RunFailed as problem:
        raise ValueError(f"The idealised twin stops in layer {number}: {problem}") from None


def _attention(run: Trajectory) -> np.ndarray:
    from attnlab.dynamics import attention

    return attention(run, at=0)
