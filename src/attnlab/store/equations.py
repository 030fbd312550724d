"""The equation of a run or a limit as arrays and words: weights, feed-forward part, and the words
of Dynamics.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from attnlab.axes.members import USUAL
from attnlab.netcdf import Variable
from attnlab.store.packing import Arrays, Words
from attnlab.types import Dynamics, FeedForward, Weights

FEEDFORWARD = ("W", "bias", "bias_outside")
OPTIONS = ("geometry", "kernel", "mask", "beta", "dt", "sigma")
EQUATION_ARRAYS = (
    "Q",
    "K",
    "V",
    "V_left",
    "V_right",
    *(f"feedforward_{name}" for name in FEEDFORWARD),
)
OMITTED = {**USUAL, "normalisation": None}
"""Words that are not written if they have their default."""

ABOUT = {
    "Q": "query matrices Q, one per head",
    "K": "key matrices K, one per head",
    "V": "value matrices V, one per head",
    "V_left": "left factors B of V = B C, one per head",
    "V_right": "right factors C of V = B C, one per head",
    "feedforward_W": "outer matrix W of the feed-forward part",
    "feedforward_bias": "bias inside the activation",
    "feedforward_bias_outside": "bias outside the activation",
}


def equation_variables(dynamics: Dynamics) -> dict[str, Variable]:
    """{name: array with its axes} of an equation."""
    weights, forward = dynamics.weights, dynamics.feedforward
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        "Q": (("head", "key", "coordinate"), weights.Q),
        "K": (("head", "key", "coordinate"), weights.K),
    }
    if isinstance(weights.V, tuple):
        found["V_left"] = (("head", "coordinate", "rank"), weights.V[0])
        found["V_right"] = (("head", "rank", "coordinate"), weights.V[1])
    else:
        found["V"] = (("head", "row", "coordinate"), weights.V)
    if isinstance(forward, FeedForward):
        for name in FEEDFORWARD:
            array = getattr(forward, name)
            if array is not None:
                found[f"feedforward_{name}"] = (("row", "coordinate")[: array.ndim], array)
    return {
        name: Variable(axes, np.asarray(array), {"long_name": ABOUT[name]})
        for name, (axes, array) in found.items()
    }


def equation_words(dynamics: Dynamics) -> dict[str, str]:
    """The words of an equation."""
    words = {**dynamics.words(), "sigma": None}
    if isinstance(dynamics.feedforward, FeedForward):  # its numbers are arrays of the file
        words |= {"sigma": dynamics.feedforward.sigma, "feedforward": OMITTED["feedforward"]}
    # defaults are left out, so that versions without these axes can read the file
    kept = {
        name: value for name, value in words.items() if name in OPTIONS or value != OMITTED[name]
    }
    return {"dynamics": json.dumps(kept), "source": dynamics.weights.source}


def equation_from(arrays: Arrays, words: Words) -> Dynamics:
    """The equation of arrays and words; every word is checked."""
    V = (arrays["V_left"], arrays["V_right"]) if "V_left" in arrays else arrays["V"]
    weights = Weights(Q=arrays["Q"], K=arrays["K"], V=V, source=words["source"])
    options = read_table(words["dynamics"], "dynamics", OPTIONS, tuple(OMITTED))
    sigma = options.pop("sigma")
    if sigma is not None:
        options["feedforward"] = FeedForward(
            sigma=sigma, **{name: arrays.get(f"feedforward_{name}") for name in FEEDFORWARD}
        )
    return Dynamics.from_words(options, weights)


def read_table(
    content: str, name: str, keys: tuple[str, ...], more: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The JSON table `content`, which must have these keys and may have some `more`."""
    found = json.loads(content)
    if not isinstance(found, dict) or not set(keys) <= set(found):
        raise ValueError(f"{name} must be a table of {', '.join(keys)}.")
    for key in found:
        if key not in (*keys, *more):
            raise ValueError(
                f"{name} has {key!r}, which this version of attnlab does not know. Read the file"
                " with a newer one."
            )
    return found
