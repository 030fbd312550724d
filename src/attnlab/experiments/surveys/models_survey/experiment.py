"""The value matrices of all known models: kinds of leading eigenvalues, and each number beside
chance.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from attnlab.experiments.common.models_here import ModelsHere
from attnlab.experiments.common.planted_heads import PlantedHeads
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.models.studies.shares import CLASSES
from attnlab.models.studies.spectra_table import spectra
from attnlab.sweep.grid import Grid

DRAWS = {"full": 2000, "small": 300}
"""Heads of each shape that learned nothing."""

PLANTED = {"planted, tied": (12, 2, True), "planted, six layers": (6, 1, False)}
"""Models in memory at size small: layers, repeats of the pattern, whether layers are tied."""

MODELS = {
    "full": ("albert-chem", "minilm", "plbert", "smollm2-135m", "stories15m"),
    "small": tuple(PLANTED),
}

NUMBERS = {
    "lambda1": "size of λ₁",
    "gap": "gap",
    "score": "score of φ₁",
    "positive_share": "positive part of sym(M)",
    "effective_beta": "effective β",
    "attractive_weight": "attractive weight",
    "repulsive_weight": "repulsive weight",
    "rotational_weight": "rotational weight",
    "non_normality": "non-normality",
    "condition": "condition of λ₁",
}
"""Numbers whose quantiles among random heads are counted, in words."""

FACTS = (
    "family",
    "d",
    "heads",
    "head_size",
    "layers",
    "is_tied",
    "is_pre_norm",
    "is_causal",
    "null_draws",
)


def prepare(size: str) -> ModelsHere:
    """The models that are here; at size small those in memory."""
    return ModelsHere(
        MODELS[size], {name: partial(PlantedHeads, name, *shape) for name, shape in PLANTED.items()}
    )


def measure(context: Context, model: str) -> dict[str, Any]:
    """A row for each head of a model, of tied layers once, and one for the model: its shape, and
    what chance gives.
    """
    frame = spectra(
        context.shared.models[model], null=DRAWS[context.size], progress=context.progress
    )
    heads = [
        {
            "layer": int(head.layer),
            "head": int(head.head),
            "verdict": head.verdict,
            "is_real": int(head.is_real),
            "is_positive": int(head.is_positive),
            "real": head.lambda1.real,
            "imaginary": abs(head.lambda1.imag),
            "score": head.score,
            "gap": head.gap,
            "condition": head.condition,
            **{f"{name}_quantile": getattr(head, f"{name}_quantile") for name in NUMBERS},
        }
        for head in frame.itertuples()
    ]
    facts = {name: frame.attrs[name] for name in FACTS} | {
        name: frame.attrs["null_shares"][name] for name in CLASSES
    }
    return {
        "heads": heads,
        "facts": [
            {name: int(fact) if isinstance(fact, bool) else fact for name, fact in facts.items()}
        ],
    }


def assemble(results: Results) -> dict[str, Any]:
    """A table of heads, and one of models."""
    models = table_of_rows(results.rows("spectra", "facts"))
    models.attrs |= {"why": results.why} if results.why else {}
    return {"heads": table_of_rows(results.rows("spectra", "heads"), "head_row"), "models": models}


compute = Parts(
    {"spectra": Part(measure, lambda size: Grid({"model": MODELS[size]}), "the heads of {model}")},
    assemble,
    prepare,
    ModelsHere.without,
)
