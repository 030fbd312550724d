"""Noises: what moves tokens at random.

    increment(rng, x, dt)   the random part of a step of length dt, (n, d)
    is_none = False         whether there is no noise
"""

from attnlab.axes.registry import AxisRegistry

noises = AxisRegistry(
    "noise", "attnlab.axes.noises", about="What moves tokens at random.",
    default="none", functions=("increment",), later={"is_none": False},
)
