"""Sentences through trained models, through what the theory makes of them, and through stacks that learned nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.analysis.clusters import adjusted_rand_index
from attnlab.experiments.common.heads import stand_in
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.models import load
from attnlab.models.checkpoints.record import NotFetched
from attnlab.models.studies.sentences import measure_tokens, sentence
from attnlab.models.studies.tied import iterate
from attnlab.models.studies.variants import initial_size, matrices_of, random_parts, variants
from attnlab.sweep.grid import Grid

from .texts import TEXTS

NULLS = ("random", "untrained")
SETS = ("first", "fresh")
SEEDS = {"full": 5, "small": 2}
"""Stacks of each null."""

GROUPS = 4
"""Groups that tokens are cut into."""

SHUFFLES = 200
TIMES = {"full": 1000, "small": 60}
"""Layers of the tied iteration at most."""

NULL_TIMES = {"random": 20, "untrained": 100}
"""The same for tied layers that learned nothing, which gather tokens soon."""

STAND_INS = ("a tiny random BERT", "a tiny random ALBERT")
"""In place of models at size small; they read random ids."""

MODELS = {"full": tuple(TEXTS), "small": STAND_INS}
TIED = {"full": "albert-chem", "small": STAND_INS[1]}


class Trained:
    """The models that are here, what they read, and why others are missing."""

    def __init__(self, size: str):
        self.models: dict[str, Any] = {}
        self.why: dict[str, str] = {}
        for name in MODELS[size]:
            try:
                self.models[name] = ({STAND_INS[0]: stand_in, STAND_INS[1]: tiny_albert}[name]() if name in STAND_INS
                                     else load(name, offline=True))
            except NotFetched as problem:
                self.why[name] = str(problem)
        if not self.models:
            raise NotFetched(next(iter(self.why.values())))             # a sentence that nobody reads is none
        self._kept: dict[tuple[Any, ...], Any] = {}

    def without(self, case: Mapping[str, Any]) -> str:
        """Why a case is left out, "" where its model is here."""
        return self.why.get(case["model"], "")

    def reads(self, model: str, which: str, number: int) -> dict[str, Any]:
        """A sentence as `sentence` and `iterate` take it; of a stand-in, which has no words, random ids."""
        if model in STAND_INS:
            rng = np.random.default_rng([SETS.index(which), number])
            return {"ids": rng.integers(1, self.models[model].config.vocabulary, 8 + number % 5).tolist()}
        return {"text": TEXTS[model][SETS.index(which)][number]}

    def real(self, model: str, which: str, number: int) -> Any:
        """A sentence in the real stack, read once."""
        key = (model, which, number)
        if key not in self._kept:
            data = sentence(self.models[model], **self.reads(*key), only=["real"])
            self._kept[key] = data.isel(variant=0).copy(deep=True)
        return self._kept[key]

    def nothing_learned(self, model: str, null: str, seed: int) -> Any:
        """The model with matrices that learned nothing, as the variant of that name has them."""
        one = self.models[model]
        return replace(one, parts=random_parts(one.parts, seed, initial_size(one) if null == "untrained" else None))


def tiny_albert() -> Any:
    """A tiny ALBERT in memory, d = 24, four layers that are one, Gaussian matrices."""
    rng, d, inner, words = np.random.default_rng(5), 24, 12, 97
    layer = "encoder.albert_layer_groups.0.albert_layers.0."
    shapes = {**{f"{layer}attention.{name}": (d, d) for name in ("query", "key", "value", "dense")}, f"{layer}ffn": (inner, d),
              f"{layer}ffn_output": (d, inner), "encoder.embedding_hidden_mapping_in": (d, 6)}
    norms = {f"{layer}attention.LayerNorm": d, f"{layer}full_layer_layer_norm": d, "embeddings.LayerNorm": 6}
    state = {f"{name}.weight": rng.normal(scale=shape[1] ** -0.5, size=shape) for name, shape in shapes.items()}
    state |= {f"{name}.bias": np.zeros(shape[0]) for name, shape in shapes.items()}
    state |= {f"{name}.{part}": fill(width) for name, width in norms.items() for part, fill in (("weight", np.ones),
                                                                                            ("bias", np.zeros))}
    state |= {f"embeddings.{name}_embeddings.weight": rng.normal(size=(many, 6))
              for name, many in (("word", words), ("position", 32), ("token_type", 2))}
    config = {"model_type": "albert", "vocab_size": words, "embedding_size": 6, "hidden_size": d, "num_attention_heads": 4,
              "num_hidden_layers": 4, "intermediate_size": inner, "max_position_embeddings": 32}
    return load(state, config=config, name=STAND_INS[1])


def read_variants(context: Context, model: str, which: str, sentence_number: int) -> dict[str, Any]:
    """One sentence through the stack and its variants; of a fresh one only the idealised model."""
    shared, key = context.shared, (model, which, sentence_number)
    true, one = shared.real(*key), shared.models[model]
    layers = one.config.layers
    wanted = ["twin"] if which == "fresh" else [name for name in variants.in_order() if name not in NULLS]
    data = sentence(one, **shared.reads(*key), only=wanted)
    rows, curves = [{"variant": "embedding", "seed": 0, **row_of_embedding(true, layers)}], []
    for variant in map(str, data["variant"].values):
        part = data.sel(variant=variant)
        rows.append({"variant": variant, "seed": 0, **row_of(part, true, layers)})
        curves += curve_of(part, variant, 0, layers)
    places = {"n": true.sizes["token"], "leader": true["leader"].values[:layers].astype(int).tolist(),
              "word_leader": word_leaders(true, layers).tolist(), "blind": float(1 / (1 - true["is_special"].values).sum()),
              "labels": groups(true["x"].values[layers]).tolist()}
    return {"rows": rows, "curves": curves, "places": places}


def read_nulls(context: Context, model: str, null: str, seed: int) -> dict[str, Any]:
    """All sentences through one stack that learned nothing."""
    shared, layers = context.shared, context.shared.models[model].config.layers
    stack, rows, curves = shared.nothing_learned(model, null, seed), [], []
    for which in SETS:
        for number in range(len(TEXTS["minilm"][0])):
            part = sentence(stack, **shared.reads(model, which, number), only=["real"]).isel(variant=0)
            place = {"which": which, "sentence_number": number}
            rows.append({**place, "variant": null, **row_of(part, shared.real(model, which, number), layers)})
            curves += [{**place, **point} for point in curve_of(part, null, seed, layers)]
    sizes = [rms(drawn) / rms(own) for one, other in zip(stack.parts.layers, shared.models[model].parts.layers, strict=True)
             for drawn, own in zip(matrices_of(one).values(), matrices_of(other).values(), strict=True)]
    return {"rows": rows, "curves": curves, "sizes": {"ratio": float(np.median(sizes))}}


def facts(context: Context, model: str) -> dict[str, Any]:
    """The shape of a model, and the sizes of its matrices: trained (their median), and before training."""
    one = context.shared.models[model]
    sizes = [rms(matrix) for layer in one.parts.layers for matrix in matrices_of(layer).values()]
    return {"layers": one.config.layers, "is_causal": int(one.config.is_causal), "is_pre_norm": int(one.config.is_pre_norm),
            "is_tied": int(one.config.is_tied), "size": float(np.median(sizes)), "initial": float(initial_size(one))}


def repeat_layer(context: Context, model: str, null: str, seed: int, sentence_number: int) -> dict[str, Any]:
    """The tied layer again and again, of the model (null "") or of one that learned nothing."""
    shared = context.shared
    one, times = shared.models[model], TIMES[context.size]
    if null:
        one, times = shared.nothing_learned(model, null, seed), NULL_TIMES[null]
    data = iterate(one, **shared.reads(model, "first", sentence_number), times=times)
    n, steps, word = data.sizes["token"], np.arange(data.sizes["step"]), data["word"].values
    received, leaders = data["received"].values, data["leader"].values
    upper = np.triu_indices(n, 1)
    label = data["label"].values[-1]
    is_same = (word[:, None] == word[None])[upper]
    is_joined = (label[:, None] == label[None])[upper]
    row = {"n": n, "clusters": float(data["clusters"][-1]), "cosine": float(data["cosine"][-1]), "outcome": data.attrs["outcome"],
           "half": first_below(data["clusters"].values / n, 0.5), "rate": float(data.attrs["rate"]),
           "rate_high": float(data.attrs["rate_high"]), "first_leader": str(word[int(leaders[0])]),
           "last_leader": str(word[int(leaders[-2])]), "first_lead": float(np.nanmax(received[0]) * n),
           "last_lead": float(np.nanmax(received[-2]) * n), "same_of_all": float(is_same.mean()),
           "same_of_joined": float(is_same[is_joined].mean()) if is_joined.any() else float("nan"),
           "passed": float(data["passed"].values[-1]), "times": times}
    depth = one.config.layers
    row["at_depth"] = float(data["cosine"].values[depth]) if len(steps) > depth else float("nan")
    curve = [{"step": int(step), "cosine": float(data["cosine"][step]), "share": float(data["clusters"][step] / n)}
             for step in shown_steps(len(steps))]
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


def curve_of(part: Any, variant: str, seed: int, layers: int) -> list[dict[str, Any]]:
    """Mean cosine and effective rank over tokens, step by step, to the depth of the model."""
    cosine, rank = part["cosine"].values, part["rank"].values / part.sizes["token"]
    return [{"variant": variant, "seed": seed, "step": step, "cosine": float(cosine[step]), "rank": float(rank[step])}
            for step in range(layers + 1)]


def row_of(one: Any, true: Any, layers: int) -> dict[str, Any]:
    """The numbers of a sentence in one stack, beside the real one."""
    last = int(np.flatnonzero(np.isfinite(one["x"].values).all(axis=(1, 2)))[-1])
    x, end = one["x"].values[min(layers, last)], true["x"].values[layers]
    leader, lead = one["leader"].values[:layers], true["leader"].values[:layers]
    is_special = one["is_special"].values.astype(bool)
    row: dict[str, Any] = {"n": one.sizes["token"], "turn": turn(x, end), "turn_others": turn_others(x, end),
                           "moved": turn(x, one["x"].values[0]), "norm_first": float(one["norm"].values[0])}
    for key in ("cosine", "clusters", "rank"):
        row |= {f"{key}_first": float(one[key].values[1]), key: float(one[key].values[last])}
    is_same_word = word_leaders(one, layers) == word_leaders(true, layers)
    return row | {"leader": float((leader == lead)[1:].mean()), "word_leader": float(is_same_word[1:].mean()),
                  **agreement(x, end), "special": float(np.mean(is_special[leader[np.isfinite(leader)].astype(int)]))}


def row_of_embedding(true: Any, layers: int) -> dict[str, Any]:
    """The embedding, taken as a guess of the last layer; what it cannot say is NaN."""
    x0, end = true["x"].values[0], true["x"].values[layers]
    nothing = dict.fromkeys(("turn_others", "moved", "norm_first", "cosine_first", "clusters_first", "rank_first", "leader",
                             "word_leader", "special"), float("nan"))
    numbers = {key: float(values[0]) for key, values in measure_tokens(x0[None]).items() if values.ndim == 1}
    return {"n": len(x0), **nothing, **{key: numbers[key] for key in ("cosine", "clusters", "rank")}, "turn": turn(x0, end),
            **agreement(x0, end)}


def turn(x: np.ndarray, true: np.ndarray) -> float:
    """1 - cosine of a token in x and in true (n, d), mean over tokens."""
    return float(1 - ((x * true).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(true, axis=1)).mean())


def turn_others(x: np.ndarray, true: np.ndarray) -> float:
    """1 - cosine of a token in x and another one in true, mean over all such pairs: what is left when tokens are exchanged."""
    unit, unit_true = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (x, true))
    return float(1 - (unit @ unit_true.T)[~np.eye(len(x), dtype=bool)].mean())


def word_leaders(one: Any, layers: int) -> np.ndarray:
    """Which token receives most attention in each layer (layers,), among those that the model did not add itself."""
    return np.argmax(np.where(one["is_special"].values == 1, -1.0, one["received"].values[:layers]), axis=1)


def agreement(x: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Whether the same tokens are together in x and true (n, d): by groups, and by the order of the cosines of all pairs."""
    from scipy.stats import spearmanr

    upper = np.triu_indices(len(x), 1)
    order = spearmanr(cosines_of(x)[upper], cosines_of(true)[upper]).statistic
    return {"groups": adjusted_rand_index(groups(x), groups(true)), "order": float(order)}


def cosines_of(x: np.ndarray) -> np.ndarray:
    """The cosines of all pairs (n, n)."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def groups(x: np.ndarray, count: int = GROUPS) -> np.ndarray:
    """Labels (n,) of that many groups, by average linkage of 1 - cosine."""
    from scipy.cluster.hierarchy import fcluster, linkage

    apart = 1 - cosines_of(x)
    return np.asarray(fcluster(linkage(np.maximum(apart[np.triu_indices(len(x), 1)], 0.0), "average"), count, "maxclust"))


def usual_place(leaders: Sequence[Any], sizes: Sequence[int]) -> np.ndarray:
    """How often in each sentence, after the first layer, the leader stands where it most often stands in the others.

    Places of the first half of a sentence are counted from its start, others from its end.
    """
    places = [[(int(j), "start") if j < n / 2 else (int(n - j), "end") for j in row]
              for row, n in zip(leaders, sizes, strict=True)]
    right = np.zeros((len(places), len(places[0]) - 1))
    for number, mine in enumerate(places):
        for layer in range(1, len(mine)):
            others = [row[layer] for other, row in enumerate(places) if other != number]
            right[number, layer - 1] = max(sorted(set(others)), key=others.count) == mine[layer]
    return right.mean(axis=1)


def assemble(results: Results) -> dict[str, Any]:
    """A table of stacks, of curves, of what one can guess, of models, and of the tied layer."""
    rows, curves, chances = [], [], []
    for part in ("variants", "nulls"):
        rows += results.rows(part, "rows")
        curves += results.rows(part, "curves")
    where = results.rows("variants", "places")
    for model, which in dict.fromkeys((row["model"], row["which"]) for row in where):
        chances += chances_of([row for row in where if (row["model"], row["which"]) == (model, which)])
    found = {"stacks": rows, "curves": curves, "chances": chances, "models": results.rows("models"),
             "sizes": results.rows("nulls", "sizes")}
    for name, which in (("tied", "rows"), ("tied_curves", "curves")):
        found[name] = [row for part in ("tied", "tied_nulls") for row in results.rows(part, which)]
    data = {name: table_of_rows(table) for name, table in found.items() if table}
    data["models"].attrs |= {"why": results.why} if results.why else {}
    return data


def chances_of(where: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What agreement with the real stack comes without knowing anything about it, sentence by sentence; shuffled groups."""
    rng = np.random.default_rng(0)
    labels, sizes = [np.array(row["labels"]) for row in where], [row["n"] for row in where]
    shuffled = [np.mean([adjusted_rand_index(rng.permutation(each), each) for each in labels]) for _ in range(SHUFFLES)]
    guessed = {name: usual_place([row[name] for row in where], sizes) for name in ("leader", "word_leader")}
    return [{"model": row["model"], "which": row["which"], "sentence_number": row["sentence_number"], "blind": row["blind"],
             **{name: values[number] for name, values in guessed.items()}, "groups": float(np.quantile(shuffled, 0.95)),
             "groups_mean": float(np.mean(shuffled))} for number, row in enumerate(where)]


def _tied(size: str) -> list[Grid]:
    return [Grid({"model": [TIED[size]], "null": [""], "seed": [0], "sentence_number": range(10)})]


def _tied_nulls(size: str) -> list[Grid]:
    return [Grid({"model": [TIED[size]], "null": NULLS, "seed": range(SEEDS[size]), "sentence_number": range(10)})]


compute = Parts(
    {
        "models": Part(facts, lambda size: Grid({"model": MODELS[size]}), "{model}", share=0.01),
        "variants": Part(read_variants, lambda size: grids_of("model, which, sentence_number", [
            (model, SETS, 10) for model in MODELS[size]]), "{model}, {which} sentences", share=0.4),
        "nulls": Part(read_nulls, lambda size: grids_of("model, null, seed", [
            (model, NULLS, SEEDS[size]) for model in MODELS[size]]), "{model}, {null} weights", share=0.3),
        "tied": Part(repeat_layer, _tied, "the layer of {model}, again and again", share=0.2),
        "tied_nulls": Part(repeat_layer, _tied_nulls, "{null} layers of {model}", share=0.1),
    },
    assemble, Trained, Trained.without,
)
