"""Trained transformers: loading them, running them exactly, and their heads as the matrices of the theory.

    m = al.models.load("minilm")                a catalog name, a folder, hf:owner/name, or a state dict with config=
    ids, words = m.tokens("a text")
    m.hidden_states(ids)                        (layers + 1, n, d), as the original implementation computes them
    m.attention(ids)                            (layers, h, n, n)
    m.weights(layer, head)                      Weights: M = W_Q^T W_K / sqrt(head size), V = W_O W_V
    al.models.spectra(m)                        a table with one row for each head
    al.models.findings(al.models.spectra(m))    what a result shows, in sentences; also of sentence, iterate and flow

A family of checkpoints is one file in `families/`, whose front door says how to add one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnlab.models.families import families
from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.models.model import Model as Model
    from attnlab.models.record import BadModel as BadModel
    from attnlab.models.record import Config as Config
    from attnlab.models.record import Parts as Parts
    from attnlab.models.sources import load as load

_HOME = {"BadModel": "attnlab.models.record", "Config": "attnlab.models.record", "Parts": "attnlab.models.record",
         "Model": "attnlab.models.model", "load": "attnlab.models.sources"}
_LAZY = {"spectra": "attnlab.models.spectra_table", "sentence": "attnlab.models.sentences", "flow": "attnlab.models.flows",
         "iterate": "attnlab.models.tied", "findings": "attnlab.models.in_words"}

__all__ = ["BadModel", "Config", "Model", "Parts", "families", "load", *_LAZY]


def __getattr__(name: str) -> Any:
    return import_name(__name__, _HOME | _LAZY, name)


def __dir__() -> list[str]:
    return sorted(__all__)
