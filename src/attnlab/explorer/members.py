"""Which members of the axes a page computes itself. Runs with others are shown as recordings, under their own names."""

from __future__ import annotations

from attnlab.axes.members import USUAL
from attnlab.types import Dynamics

LIVE_MEMBERS = {"kernel": ("softmax", "exp_mean", "hardmax"), "mask": ("full", "causal"), "geometry": ("euclidean", "sphere"),
                **{name: (word,) for name, word in USUAL.items()}, "feedforward": ("none", "feedforward")}
"""{axis: names of the members that a page computes, and the feed-forward variant, for which it has words of its own}."""


def strange_members(dynamics: Dynamics) -> list[str]:
    """Return the axes of an equation whose members a page does not compute."""
    return [axis for axis, known in LIVE_MEMBERS.items() if getattr(dynamics, axis).name not in known]


def describe_strange(dynamics: Dynamics) -> str:
    """Return an equation that a page cannot write: the members that differ from the flow of the paper, by name."""
    if dynamics.normalisation is not None:
        return f"normalisation {dynamics.normalisation}"
    named = ["kernel", *(axis for axis in strange_members(dynamics) if axis != "kernel")]
    return ", ".join(f"{axis} {getattr(dynamics, axis)}" for axis in named)
