"""Every head of several trained models against chance: leading eigenvalues of V, and how their
eigenvectors score themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from attnlab.analysis.spectra import largest_modulus
from attnlab.experiments.common.models_here import ModelsHere
from attnlab.experiments.common.planted_heads import PlantedHeads
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.models.studies.head_numbers import head_numbers, reduce_head
from attnlab.models.studies.judgement import is_real, verdict
from attnlab.models.studies.null import null_of
from attnlab.models.studies.spectra_table import measure_heads
from attnlab.sweep.grid import Grid

MODELS = ("albert-chem", "minilm", "plbert", "stories15m")
PLANTED = {"planted, tied": (12, 2, True), "planted, six layers": (6, 1, False)}
"""Models in memory: layers, repeats of the pattern, whether layers are tied."""

NULL_DRAWS = {"full": 2000, "small": 300}

CONTROLS = 60
"""Heads a model whose whole matrices are drawn, to check the chance that small matrices give."""

TAIL = 0.025
"""A leading eigenvalue is called large when it exceeds all but this part of chance."""


class Models(ModelsHere):
    """The models that are here, and the names of those that are not.

    model: "all" for every one of MODELS that is here, or one name of `attnlab models`, or a folder.
    At size "small" two models in memory with planted leading eigenvalues take the place of all.
    """

    def __init__(self, size: str, model: str = "all"):
        planted = {name: partial(PlantedHeads, name, *shape) for name, shape in PLANTED.items()}
        is_small = size == "small" and model == "all"
        super().__init__(PLANTED if is_small else MODELS if model == "all" else (model,), planted)
        self.found, self.missing = list(self.models.values()), ", ".join(self.why)

    def without(self, case: Mapping[str, Any]) -> str:
        """Why there is no model of this number."""
        return "" if case["number"] < len(self.found) else "there are fewer models here"


def measure_model(context: Context, number: int) -> dict[str, Any]:
    """{"fact": what chance gives, "heads": its heads, "controls": heads whose whole matrices are
    drawn}.
    """
    one = context.shared.found[number]
    fact, null = _chance(one, NULL_DRAWS[context.size])
    return {"fact": fact, "heads": _heads(one, null), "controls": _controls(one, null, CONTROLS)}


def assemble(results: Results) -> dict[str, Any]:
    """All heads of the models, heads whose whole matrices are drawn, and the models."""
    found = results.values("models")
    heads, controls = (
        [row for one in found for row in one[name]] for name in ("heads", "controls")
    )
    return {
        "heads": table_of_rows(heads, "head", without=results.shared.missing),
        "controls": table_of_rows(controls, "control"),
        "models": table_of_rows(
            [one["fact"] for one in found], "model", draws=NULL_DRAWS[results.size]
        ),
    }


def _chance(model: Any, draws: int) -> tuple[dict[str, Any], Any]:
    """What Gaussian factors of the model's shape give, as a row, and the draws."""
    config = model.config
    null = null_of(config.d, config.head_size, config.head_size, draws=draws)
    low, high = np.quantile(null.values["lambda1"], [TAIL, 1 - TAIL]) * np.sqrt(
        config.d * config.head_size
    )
    row = {
        "name": model.name,
        "real": null.shares["real"],
        "low": low,
        "high": high,
        "d": config.d,
        "r": config.head_size,
        "layers": config.layers,
        "is_tied": int(config.is_tied),
    }
    return row, null


def _heads(model: Any, null: Any) -> list[dict[str, Any]]:
    """A row for each head; of tied layers once."""
    config = model.config
    rows = []
    for one in measure_heads(model):
        numbers = one.numbers
        rows.append(
            {
                "name": model.name,
                "layer": one.layer,
                "verdict": verdict(numbers),
                "score": numbers.score,
                "ratio": _ratio(numbers, config.d, config.head_size),
                "rank": null.quantile("lambda1", numbers),
                "off": abs(largest_modulus(one.weights) / abs(numbers.lambda1) - 1),
                "depth": one.layer / max(config.layers - 1, 1),
                "is_tied": int(config.is_tied),
            }
        )
    return rows


def _ratio(numbers: Any, d: int, r: int) -> float:
    """|lambda_1| over |B| |C| / sqrt(d r), where the circular law of random factors ends."""
    return float(abs(numbers.lambda1) * np.sqrt(d * r) / numbers.value_size)


def _controls(model: Any, null: Any, count: int) -> list[dict[str, Any]]:
    """Heads of the model's shape, every entry of Q, K, B and C drawn."""
    config = model.config
    d, r = config.d, config.head_size
    rng = np.random.default_rng([7, d, r])
    rows = []
    for _ in range(count):
        Q, K, C = rng.normal(size=(3, r, d))
        numbers = head_numbers(reduce_head(Q, K, rng.normal(size=(d, r)), C))
        rows.append(
            {
                "name": model.name,
                "rank": null.quantile("lambda1", numbers),
                "is_real": int(is_real(numbers)),
                "score": numbers.score,
                "ratio": _ratio(numbers, d, r),
            }
        )
    return rows


compute = Parts(
    {"models": Part(measure_model, Grid({"number": range(len(MODELS))}), "model {number}")},
    prepare=Models,
    leave_out=Models.without,
    assemble=assemble,
)
