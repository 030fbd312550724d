"""Sentences through trained models, through what the theory makes of them, and through stacks that
learned nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from attnlab.experiments.common.heads import stand_in
from attnlab.experiments.common.models_here import ModelsHere
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.models import load
from attnlab.models.studies.agreement import FEW, compare_embedding
from attnlab.models.studies.grades import NULLS
from attnlab.models.studies.sentences import sentence
from attnlab.models.studies.stacks import STACKS, guesses, places_of, stack_rows
from attnlab.models.studies.tied import iterate
from attnlab.models.studies.variants import (
    initial_size,
    learned_nothing,
    matrices_of,
    variants,
)
from attnlab.sweep.grid import Grid

from .texts import TEXTS

SETS = ("first", "fresh")
SEEDS = {"full": STACKS, "small": 2}
"""Stacks of each null."""

TIMES = {"full": 3000, "small": 60}
"""Layers of the tied iteration at most. It stops where tokens are at rest."""

NULL_TIMES = {"full": 300, "small": 60}
"""The same for tied layers that learned nothing, which gather all tokens within 100 layers."""

IDEALISED_TIMES = {"full": 200, "small": 20}
"""The same for the idealised model, which gathers all tokens within its 12 layers."""

IDEALISED = "twin"
"""The variant that is the idealised model."""

STAND_INS = ("a tiny random BERT", "a tiny random ALBERT")
"""In place of models at size small; they read random ids."""

MODELS = {"full": tuple(TEXTS), "small": STAND_INS}
TIED = {"full": "albert-chem", "small": STAND_INS[1]}


class Trained(ModelsHere):
    """The models, and what they read."""

    def __init__(self, size: str):
        super().__init__(MODELS[size], {STAND_INS[0]: stand_in, STAND_INS[1]: tiny_albert})
        self._kept: dict[tuple[Any, ...], Any] = {}

    def reads(self, model: str, which: str, number: int) -> dict[str, Any]:
        """The arguments of `sentence` and `iterate` for a sentence; random ids for a stand-in,
        which has no words.
        """
        if model in STAND_INS:
            rng = np.random.default_rng([SETS.index(which), number])
            return {
                "ids": (
                    rng.integers(1, self.models[model].config.vocabulary, 8 + number % 5).tolist()
                )
            }
        return {"text": TEXTS[model][SETS.index(which)][number]}

    def real(self, model: str, which: str, number: int) -> Any:
        """A sentence in the real stack, read once."""
        key = (model, which, number)
        if key not in self._kept:
            data = sentence(self.models[model], **self.reads(*key), only=["real"])
            self._kept[key] = data.isel(variant=0).copy(deep=True)
        return self._kept[key]


def tiny_albert() -> Any:
    """A tiny ALBERT in memory, d = 24, four layers that are one, Gaussian matrices."""
    rng, d, inner, words = np.random.default_rng(5), 24, 12, 97
    layer = "encoder.albert_layer_groups.0.albert_layers.0."
    shapes = {
        **{f"{layer}attention.{name}": (d, d) for name in ("query", "key", "value", "dense")},
        f"{layer}ffn": (inner, d),
        f"{layer}ffn_output": (d, inner),
        "encoder.embedding_hidden_mapping_in": (d, 6),
    }
    norms = {
        f"{layer}attention.LayerNorm": d,
        f"{layer}full_layer_layer_norm": d,
        "embeddings.LayerNorm": 6,
    }
    state = {
        f"{name}.weight": rng.normal(scale=shape[1] ** -0.5, size=shape)
        for name, shape in shapes.items()
    }
    state |= {f"{name}.bias": np.zeros(shape[0]) for name, shape in shapes.items()}
    state |= {
        f"{name}.{part}": fill(width)
        for name, width in norms.items()
        for part, fill in (("weight", np.ones), ("bias", np.zeros))
    }
    state |= {
        f"embeddings.{name}_embeddings.weight": rng.normal(size=(many, 6))
        for name, many in (("word", words), ("position", 32), ("token_type", 2))
    }
    config = {
        "model_type": "albert",
        "vocab_size": words,
        "embedding_size": 6,
        "hidden_size": d,
        "num_attention_heads": 4,
        "num_hidden_layers": 4,
        "intermediate_size": inner,
        "max_position_embeddings": 32,
    }
    return load(state, config=config, name=STAND_INS[1])


def read_variants(context: Context, model: str, which: str, sentence_number: int) -> dict[str, Any]:
    """One sentence through the stack and its variants; of a fresh one only the idealised model."""
    shared, key = context.shared, (model, which, sentence_number)
    true, one = shared.real(*key), shared.models[model]
    layers = one.config.layers
    wanted = (
        ["twin"]
        if which == "fresh"
        else [name for name in variants.in_order() if name not in NULLS]
    )
    data = sentence(one, **shared.reads(*key), only=wanted)
    rows, curves = [{"variant": "embedding", "seed": 0, **compare_embedding(true, layers)}], []
    for variant in map(str, data["variant"].values):
        place = {"variant": variant, "seed": 0}
        row, curve = stack_rows(data.sel(variant=variant), true, layers, place)
        rows.append(row)
        curves += curve
    return {"rows": rows, "curves": curves, "places": places_of(true, layers)}


def read_nulls(context: Context, model: str, null: str, seed: int) -> dict[str, Any]:
    """All sentences through one stack that learned nothing."""
    shared, layers = context.shared, context.shared.models[model].config.layers
    stack, rows, curves = learned_nothing(shared.models[model], null, seed), [], []
    for which in SETS:
        for number in range(len(TEXTS["minilm"][0])):
            part = sentence(stack, **shared.reads(model, which, number), only=["real"]).isel(
                variant=0
            )
            place = {"which": which, "sentence_number": number, "variant": null}
            row, curve = stack_rows(part, shared.real(model, which, number), layers, place)
            rows.append(row)
            curves += curve
    sizes = [
        rms(drawn) / rms(own)
        for one, other in zip(stack.parts.layers, shared.models[model].parts.layers, strict=True)
        for drawn, own in zip(matrices_of(one).values(), matrices_of(other).values(), strict=True)
    ]
    return {"rows": rows, "curves": curves, "sizes": {"ratio": float(np.median(sizes))}}


def facts(context: Context, model: str) -> dict[str, Any]:
    """The shape of a model, and the sizes of its matrices: trained (their median), and before
    training.
    """
    one = context.shared.models[model]
    sizes = [rms(matrix) for layer in one.parts.layers for matrix in matrices_of(layer).values()]
    return {
        "layers": one.config.layers,
        "is_causal": int(one.config.is_causal),
        "is_pre_norm": int(one.config.is_pre_norm),
        "is_tied": int(one.config.is_tied),
        "size": float(np.median(sizes)),
        "initial": float(initial_size(one)),
    }


def repeat_layer(
    context: Context, model: str, null: str, seed: int, sentence_number: int
) -> dict[str, Any]:
    """The tied layer again and again: of the model (null ""), of one that learned nothing, or of the
    idealised model (null "twin").
    """
    shared, is_idealised = context.shared, null == IDEALISED
    allowed = IDEALISED_TIMES if is_idealised else NULL_TIMES if null else TIMES
    one, times = shared.models[model], allowed[context.size]
    if null in NULLS:
        one = learned_nothing(one, null, seed)
    data = iterate(
        one,
        **shared.reads(model, "first", sentence_number),
        times=times,
        idealised=is_idealised,
    )
    n, steps, word = data.sizes["token"], np.arange(data.sizes["step"]), data["word"].values
    received, leaders = data["received"].values, data["leader"].values
    upper = np.triu_indices(n, 1)
    label = data["label"].values[-1]
    is_same = (word[:, None] == word[None])[upper]
    is_joined = (label[:, None] == label[None])[upper]
    row = {
        "n": n,
        "clusters": float(data["clusters"][-1]),
        "cosine": float(data["cosine"][-1]),
        "outcome": data.attrs["outcome"],
        "half": first_below(data["clusters"].values / n, FEW),
        "rate": float(data.attrs["rate"]),
        "rate_high": float(data.attrs["rate_high"]),
        "first_leader": str(word[int(leaders[0])]),
        "last_leader": str(word[int(leaders[-2])]),
        "first_lead": float(np.nanmax(received[0]) * n),
        "last_lead": float(np.nanmax(received[-2]) * n),
        "same_of_all": float(is_same.mean()),
        "same_of_joined": float(is_same[is_joined].mean()) if is_joined.any() else float("nan"),
        "passed": float(data["passed"].values[-1]),
        "times": times,
        "steps": data.attrs["steps"],
        "change": float(data["change"][-1]),
        "alone": float(data["clusters"][0]),
    }
    depth = one.config.layers
    row["at_depth"] = float(data["cosine"].values[depth]) if len(steps) > depth else float("nan")
    curve = [
        {
            "step": int(step),
            "cosine": float(data["cosine"][step]),
            "share": float(data["clusters"][step] / n),
        }
        for step in shown_steps(len(steps))
    ]
    return {"rows": row, "curves": curve}


def shown_steps(count: int) -> np.ndarray:
    """At most some eighty steps, about evenly spaced on a logarithmic axis."""
    return np.unique(np.append(np.round(np.geomspace(1, count, 80)).astype(int) - 1, count - 1))


def first_below(shares: np.ndarray, level: float) -> float:
    """The first step from which on shares stay at or below the level; NaN if they do not."""
    above = np.flatnonzero(~(shares <= level))
    first = int(above[-1]) + 1 if len(above) else 0
    return float(first) if first < len(shares) else float("nan")


def rms(matrix: np.ndarray) -> float:
    """The root mean square of the entries."""
    return float(np.sqrt(np.mean(np.square(matrix, dtype=float))))


def assemble(results: Results) -> dict[str, Any]:
    """Tables of stacks, of curves, of guesses, of models, and of the tied layer."""
    rows, curves, chances = [], [], []
    for part in ("variants", "nulls"):
        rows += results.rows(part, "rows")
        curves += results.rows(part, "curves")
    where = results.rows("variants", "places")
    for model, which in dict.fromkeys((row["model"], row["which"]) for row in where):
        here = [row for row in where if (row["model"], row["which"]) == (model, which)]
        chances += [{"model": model, "which": which, **chance} for chance in guesses(here)]
    found = {
        "stacks": rows,
        "curves": curves,
        "chances": chances,
        "models": results.rows("models"),
        "sizes": results.rows("nulls", "sizes"),
    }
    for name, which in (("tied", "rows"), ("tied_curves", "curves")):
        parts = ("tied", "tied_idealised", "tied_nulls")
        found[name] = [row for part in parts for row in results.rows(part, which)]
    data = {name: table_of_rows(table) for name, table in found.items() if table}
    data["models"].attrs |= {"why": results.why} if results.why else {}
    return data


def tied_grid(size: str, nulls: Sequence[str]) -> Grid:
    """Ten sentences in tied layers of these kinds."""
    seeds = range(SEEDS[size]) if nulls == NULLS else [0]
    return Grid({"model": [TIED[size]], "null": nulls, "seed": seeds, "sentence_number": range(10)})


compute = Parts(
    {
        "models": Part(facts, lambda size: Grid({"model": MODELS[size]}), "{model}", share=0.01),
        "variants": Part(
            read_variants,
            lambda size: grids_of(
                "model, which, sentence_number", [(model, SETS, 10) for model in MODELS[size]]
            ),
            "{model}, {which} sentences",
            share=0.4,
        ),
        "nulls": Part(
            read_nulls,
            lambda size: grids_of(
                "model, null, seed", [(model, NULLS, SEEDS[size]) for model in MODELS[size]]
            ),
            "{model}, {null} weights",
            share=0.3,
        ),
        "tied": Part(
            repeat_layer,
            partial(tied_grid, nulls=[""]),
            "the layer of {model}, again and again",
            share=0.3,
        ),
        "tied_idealised": Part(
            repeat_layer,
            partial(tied_grid, nulls=[IDEALISED]),
            "the idealised layer of {model}",
            share=0.1,
        ),
        "tied_nulls": Part(
            repeat_layer, partial(tied_grid, nulls=NULLS), "{null} layers of {model}", share=0.1
        ),
    },
    assemble,
    Trained,
    Trained.without,
)
