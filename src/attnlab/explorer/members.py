"""The members of the axes that a page computes itself. Runs with other members are shown as
recordings.
"""

from __future__ import annotations

from attnlab.axes.members import USUAL
from attnlab.types import Dynamics

LIVE_MEMBERS = {
    "kernel": ("softmax", "exp_mean", "hardmax"),
    "mask": ("full", "causal"),
    "geometry": ("euclidean", "sphere"),
    **{name: (word,) for name, word in USUAL.items()},
    "feedforward": ("none", "feedforward"),
}
"""{axis: names of the members that a page computes}, with the feed-forward variant, which has its
own words.
"""


def strange_members(dynamics: Dynamics) -> list[str]:
    """Return the axes of an equation whose members a page does not compute."""
    return [
        axis for axis, known in LIVE_MEMBERS.items() if getattr(dynamics, axis).name not in known
    ]


def describe_strange(dynamics: Dynamics) -> str:
    """Describe an equation that a page cannot compute: name the members that differ from the flow
    of the paper.
    """
    if dynamics.normalisation is not None:
        return f"normalisation {dynamics.normalisation}"
    named = ["kernel", *(axis for axis in strange_members(dynamics) if axis != "kernel")]
    return ", ".join(f"{axis} {getattr(dynamics, axis)}" for axis in named)
