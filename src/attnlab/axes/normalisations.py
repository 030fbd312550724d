"""The normalisation schemes of the field, as named combinations of a space, a read, a write and a
speed.

With theta = x / |x| and A(theta) the output of attention computed from the theta:

    post        theta' = Proj A(theta)                        tokens on the unit sphere
    pre         x' = A(theta)
    peri        x' = A(theta) / |A(theta)|
    ngpt        theta' = Proj( A(theta) / |A(theta)| )
    ln_scaling  theta' = Proj A(theta) / sqrt(t + 1)
"""

from __future__ import annotations

from typing import Any

from attnlab.registry import unknown_name

NORMALISED_AXES = ("geometry", "read", "write", "speed")
"""The axes that a normalisation chooses."""

PLAIN = {"geometry": "euclidean", "read": "plain", "write": "plain", "speed": "constant"}

NORMALISATIONS = {
    "post": PLAIN | {"geometry": "sphere"},
    "pre": PLAIN | {"read": "unit_norm"},
    "peri": PLAIN | {"read": "unit_norm", "write": "normalised"},
    "ngpt": PLAIN | {"geometry": "sphere", "write": "normalised"},
    "ln_scaling": PLAIN | {"geometry": "sphere", "speed": "inverse_sqrt"},
}


def normalisation_axes(name: Any, *given: Any) -> dict[str, str]:
    """{axis: word} of a normalisation; `given`: the words that the user gave for these axes, which
    must be None.
    """
    if name not in NORMALISATIONS:
        raise unknown_name("normalisation", name, NORMALISATIONS)
    for axis, word in zip(NORMALISED_AXES, given, strict=True):
        if word is not None:
            raise ValueError(
                f'normalisation="{name}" chooses {axis} by itself, got {axis}={word!r}. Leave'
                f" {axis} out, or the normalisation."
            )
    return dict(NORMALISATIONS[name])
