"""All axes of the equation, by the keyword of `simulate` and the key of a Spec."""

from __future__ import annotations

from typing import Any

from attnlab.axes.drifts import drifts
from attnlab.axes.kernels import kernels
from attnlab.axes.masks import masks
from attnlab.axes.noises import noises
from attnlab.axes.reads import reads
from attnlab.axes.registry import AxisRegistry
from attnlab.axes.scores import scores
from attnlab.axes.spaces import spaces
from attnlab.axes.speeds import speeds
from attnlab.axes.writes import writes

AXES: dict[str, AxisRegistry[Any]] = {
    "scores": scores,
    "kernel": kernels,
    "mask": masks,
    "geometry": spaces,
    "read": reads,
    "write": writes,
    "speed": speeds,
    "feedforward": drifts,
    "noise": noises,
}
"""{keyword of simulate, and key of a Spec: its registry}."""

USUAL = {
    name: registry.default
    for name, registry in AXES.items()
    if name not in ("kernel", "mask", "geometry")
}
"""{axis: default} of the axes that are named only if they differ from it."""
