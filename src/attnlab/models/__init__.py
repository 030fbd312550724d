"""Trained transformers: load them, run them exactly, and get their heads as the matrices of the
theory.

    m = al.models.load("minilm")                a catalog name, a folder, hf:owner/name, or a state dict with config=
    ids, words = m.tokens("a text")
    m.hidden_states(ids)                        (layers + 1, n, d), as the original implementation computes them
    m.attention(ids)                            (layers, h, n, n)
    m.weights(layer, head)                      Weights: M = W_Q^T W_K / sqrt(head size), V = W_O W_V
    al.models.heads(Q=, K=, V=, O=)             a model from the matrices of heads alone
    al.models.spectra(m)                        a table with one row per head
    al.models.survey(m, texts)                  every head on many texts; al.models.intervals makes it a table
    al.models.compare(a, b, texts=texts)        which heads changed between two checkpoints
    al.models.table(result)                     any of these results as a tidy table
    al.explore(al.models.dossier(m), "m.html")  all studies of a model on one page
    al.models.findings(al.models.spectra(m))    the findings in sentences; also for the other results

`checkpoints/` reads a model and computes with it, `catalog/` finds and downloads it, `studies/`
measures it, and `named.py` finds the models that Specs name. A family of checkpoints is one file in
`checkpoints/families/`, whose front door says how to add one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.models.catalog.sources import load as load
    from attnlab.models.checkpoints.families import families as families
    from attnlab.models.checkpoints.given_heads import heads as heads
    from attnlab.models.checkpoints.model import Model as Model
    from attnlab.models.checkpoints.record import BadModel as BadModel
    from attnlab.models.checkpoints.record import Config as Config
    from attnlab.models.checkpoints.record import Parts as Parts
    from attnlab.models.studies.comparisons import compare as compare
    from attnlab.models.studies.dossier import Dossier as Dossier
    from attnlab.models.studies.dossier import dossier as dossier
    from attnlab.models.studies.findings import findings as findings
    from attnlab.models.studies.flows import Flow as Flow
    from attnlab.models.studies.flows import flow as flow
    from attnlab.models.studies.sentences import sentence as sentence
    from attnlab.models.studies.spectra_table import spectra as spectra
    from attnlab.models.studies.surveys import intervals as intervals
    from attnlab.models.studies.surveys import survey as survey
    from attnlab.models.studies.tidy import table as table
    from attnlab.models.studies.tied import iterate as iterate

_HOME = {
    "BadModel": "attnlab.models.checkpoints.record",
    "Config": "attnlab.models.checkpoints.record",
    "Parts": "attnlab.models.checkpoints.record",
    "Model": "attnlab.models.checkpoints.model",
    "families": "attnlab.models.checkpoints.families",
    "heads": "attnlab.models.checkpoints.given_heads",
    "load": "attnlab.models.catalog.sources",
}
_LAZY = {
    "spectra": "attnlab.models.studies.spectra_table",
    "sentence": "attnlab.models.studies.sentences",
    "flow": "attnlab.models.studies.flows",
    "Flow": "attnlab.models.studies.flows",
    "iterate": "attnlab.models.studies.tied",
    "findings": "attnlab.models.studies.findings",
    "survey": "attnlab.models.studies.surveys",
    "intervals": "attnlab.models.studies.surveys",
    "compare": "attnlab.models.studies.comparisons",
    "table": "attnlab.models.studies.tidy",
    "dossier": "attnlab.models.studies.dossier",
    "Dossier": "attnlab.models.studies.dossier",
}

__all__ = ["BadModel", "Config", "Model", "Parts", "families", "heads", "load", *_LAZY]


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME | _LAZY, name)


def __dir__() -> list[str]:
    return sorted(__all__)
