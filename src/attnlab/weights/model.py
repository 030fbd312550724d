"""Matrices of trained heads."""

from __future__ import annotations

import importlib
from typing import Any

from attnlab.types import Weights
from attnlab.weights import family


@family("model", example={"name": "minilm", "layer": 5, "head": 10})
def model(
    name: str, layer: int = 0, head: Any = None, *, fold_norm: bool = True, d: int | None = None
) -> Weights:
    """Heads of a trained model: Q and K with Q^T K = W_Q^T W_K / sqrt(head size), and V = W_O W_V,
    as in `attnlab flow`.

    name : a name that `attnlab models` lists, the folder of a checkpoint, or
    hf:owner/name[@revision]. Nothing is downloaded:
           `attnlab fetch NAME` does that first. A folder is relative to the one in which attnlab
           runs.
    layer, head : numbers, counted from 0. head may be a list of numbers. Default: all heads of the
    layer. fold_norm : put the gain (and for LayerNorm the centring) of a norm before attention into
    Q, K and V. d : is checked, if given. Biases are left out.
    """
    # imported by name: a Spec without trained weights must not load the models
    weights: Weights = importlib.import_module("attnlab.models.named").head_weights(
        name, layer, head, fold_norm, d
    )
    return weights
