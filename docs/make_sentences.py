"""Writes docs/sentences.md, twenty sentences through each of three trained models and through what the theory makes of them.

    attnlab fetch minilm stories15m albert-chem
    python docs/make_sentences.py

Every number on the page is computed here, and the sentences about them are chosen by them. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from make_glossary import add_links
from sentences_figures import draw_depth, draw_tied, draw_turn
from sentences_grades import NULLS
from sentences_words import page

import attnlab as al
from attnlab.models.catalog.catalog import is_cached
from attnlab.models.studies.sentences import tokens_measured
from attnlab.models.studies.tied import iterate
from attnlab.models.studies.variants import initial_size, matrices_of, random_parts, variants

PAGE = Path(__file__).parent / "sentences.md"
SEEDS = 5
GROUPS = 4
SHUFFLES = 200
TIMES = 1000
"""How many stacks of each null; groups that tokens are cut into; shuffled comparisons; layers of the tied iteration at most."""

NULL_TIMES = {"random": 20, "untrained": 100}
"""The same for tied layers that learned nothing, which gather tokens soon."""

ENGLISH = (
    "The cat sat on the mat because it was tired.",
    "Once upon a time there was a little girl who lived near the forest.",
    "Tom gave his sister the red ball, and she threw it over the fence.",
    "It rained all day, so the children stayed inside and played with blocks.",
    "The old man opened the door slowly and looked into the dark room.",
    "My mother said that I could have a cookie after dinner.",
    "Birds fly south in winter when the days become short and cold.",
    "The big dog was afraid of the small mouse.",
    "If you mix blue paint with yellow paint, you will get green paint.",
    "She wanted to read the book again, but her brother had lost it at school.",
)
REACTIONS = (
    "CC(=O)O.OCC>>CC(=O)OCC", "CC(=O)Cl.NCc1ccccc1>>CC(=O)NCc1ccccc1", "O=C(O)c1ccccc1.CO>>COC(=O)c1ccccc1", "CCBr.[OH-]>>CCO",
    "C=C.BrBr>>BrCCBr", "O=[N+]([O-])c1ccccc1>>Nc1ccccc1", "C=CC=C.C=CC(=O)OC>>COC(=O)C1CCC=CC1",
    "Cc1ccccc1>>O=C(O)c1ccccc1", "CI.CC(=O)[O-]>>COC(C)=O", "CC(C)=O.C[Mg]Br>>CC(C)(C)O",
)
FRESH_ENGLISH = (
    "The farmer milked his cows before the sun came up over the hills.",
    "Our train was late again, so we drank tea at the station and waited.",
    "A tall woman in a green coat asked me the way to the museum.",
    "Nobody knew why the lights in the kitchen went out at midnight.",
    "He cut the bread into thick slices and put butter and honey on them.",
    "When the bell rang, all the students closed their books and ran outside.",
    "The river is too wide to swim across, but there is a bridge nearby.",
    "I have never seen so many stars as on that night in the desert.",
    "Her grandfather repairs clocks and old radios in a small shop by the harbour.",
    "They painted the walls white because the room had only one small window.",
)
FRESH_REACTIONS = (
    "CCO>>CC=O", "CCN.CI>>CCNC", "CC=O.C#N>>CC(O)C#N", "c1ccccc1.CC(=O)Cl>>CC(=O)c1ccccc1", "OCCCCBr>>C1CCOC1",
    "Brc1ccccc1.OB(O)c1ccccc1>>c1ccc(-c2ccccc2)cc1", "CC(C)(C)OC(=O)NCC>>CCN", "O=Cc1ccccc1.CC(C)=O>>CC(=O)C=Cc1ccccc1",
    "Fc1ccccc1[N+](=O)[O-].CN>>CNc1ccccc1[N+](=O)[O-]", "CS(=O)(=O)Cl.OCC>>CCOS(C)(=O)=O",
)
"""Written when questions and rules stood already, and read once."""

TEXTS = {"minilm": (ENGLISH, FRESH_ENGLISH), "stories15m": (ENGLISH, FRESH_ENGLISH), "albert-chem": (REACTIONS, FRESH_REACTIONS)}


@dataclass(eq=False)
class Found:
    """Everything about ten sentences in one model: numbers, curves over the layers, iterations of its tied layer."""

    name: str
    config: Any
    sizes: tuple[float, float] = (0.0, 0.0)                                     # of trained matrices, and before training
    rows: pandas.DataFrame = field(default_factory=pandas.DataFrame)            # a row for each sentence, variant and seed
    curves: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)      # variable -> variant -> (sentences, seeds, steps)
    chance: dict[str, Any] = field(default_factory=dict)
    tied: list[Any] = field(default_factory=list)
    tied_null: dict[str, list[Any]] = field(default_factory=dict)
    fresh: Found | None = None


def measured(name: str) -> Found:
    """All sentences through one model."""
    model = al.models.load(name)
    first, fresh = TEXTS[name]
    found = read(model, name, first, None)
    found.sizes = matrix_size(model), initial_size(model)
    found.fresh = read(model, name, fresh, ["twin"])
    if model.config.is_tied:
        print(name, "tied", file=sys.stderr)
        found.tied = [iterate(model, text, times=TIMES) for text in first]
        found.tied_null = {null: [iterate(learned_nothing, text, times=NULL_TIMES[null])
                                  for _, learned_nothing in stacks(model, null) for text in first] for null in NULLS}
    return found


def matrix_size(model: Any) -> float:
    """The median of the root mean squares of the trained matrices."""
    matrices = [matrix for layer in model.parts.layers for matrix in matrices_of(layer).values()]
    return float(np.median([np.sqrt(np.mean(np.square(each, dtype=float))) for each in matrices]))


def stacks(model: Any, null: str) -> Iterator[tuple[int, Any]]:
    """The model with matrices that learned nothing, as the variant of that name has them, for each seed."""
    for seed in range(SEEDS):
        yield seed, replace(model, parts=random_parts(model.parts, seed, initial_size(model) if null == "untrained" else None))


def read(model: Any, name: str, texts: Sequence[str], only: Sequence[str] | None) -> Found:
    """Some sentences through the model and its variants, all or only these, and through each null with every seed."""
    found, layers = Found(name, model.config), model.config.layers
    rows: list[dict[str, Any]] = []
    lines: dict[tuple[str, str], dict[int, list[np.ndarray]]] = {}              # (variable, variant) -> sentence -> seeds

    def add(number: int, variant: str, seed: int, one: Any, true: Any) -> None:
        rows.append({"sentence": number, "variant": variant, "seed": seed, **row_of(one, true, layers)})
        for variable in ("cosine", "rank"):
            share = one.sizes["token"] if variable == "rank" else 1
            by_sentence = lines.setdefault((variable, variant), {})
            by_sentence.setdefault(number, []).append(one[variable].values[: layers + 1] / share)

    true = []
    for number, text in enumerate(texts):
        print(name, number, file=sys.stderr)
        wanted = only or [variant for variant in variants.in_order() if variant not in NULLS]
        data = al.models.sentence(model, text, only=wanted)
        true.append(data.sel(variant="real").isel(step=slice(0, layers + 1)).copy(deep=True))
        rows.append({"sentence": number, "variant": "embedding", "seed": 0, **row_of_embedding(true[-1], layers)})
        for variant in data["variant"].values:
            add(number, str(variant), 0, data.sel(variant=variant), true[-1])
    for null in NULLS:
        for seed, learned_nothing in stacks(model, null):
            for number, text in enumerate(texts):
                one = al.models.sentence(learned_nothing, text, only=["real"]).isel(variant=0)
                add(number, null, seed, one, true[number])
    found.rows = pandas.DataFrame(rows)
    for (variable, variant), by_sentence in lines.items():
        curves = np.stack([np.stack(by_sentence[number]) for number in sorted(by_sentence)])
        found.curves.setdefault(variable, {})[variant] = curves
    found.chance = chances(layers, true)
    return found


def row_of(one: Any, true: Any, layers: int) -> dict[str, float]:
    """The numbers of a sentence in one stack, beside the real one."""
    last = int(np.flatnonzero(np.isfinite(one["x"].values).all(axis=(1, 2)))[-1])
    x, end = one["x"].values[min(layers, last)], true["x"].values[layers]
    leader, lead = one["leader"].values[:layers], true["leader"].values[:layers]
    is_special = one["is_special"].values.astype(bool)
    row: dict[str, float] = {"n": one.sizes["token"], "turn": turn(x, end), "turn_others": turn_others(x, end),
                             "moved": turn(x, one["x"].values[0]), "norm_first": float(one["norm"].values[0])}
    for key in ("cosine", "clusters", "rank"):
        row |= {f"{key}_first": float(one[key].values[1]), key: float(one[key].values[last])}
    is_same_word = word_leaders(one, layers) == word_leaders(true, layers)
    return row | {"leader": float((leader == lead)[1:].mean()), "word_leader": float(is_same_word[1:].mean()),
                  **agreement(x, end), "special": float(np.mean(is_special[leader[np.isfinite(leader)].astype(int)]))}


def row_of_embedding(true: Any, layers: int) -> dict[str, float]:
    """The embedding, taken as a guess of the last layer."""
    x0, end = true["x"].values[0], true["x"].values[layers]
    numbers = {key: float(values[0]) for key, values in tokens_measured(x0[None]).items() if values.ndim == 1}
    return {"n": len(x0), **{key: numbers[key] for key in ("cosine", "clusters", "rank")}, "turn": turn(x0, end),
            **agreement(x0, end)}


def turn(x: np.ndarray, true: np.ndarray) -> float:
    """1 - cosine of a token in x and in true (n, d), mean over tokens."""
    return float(1 - ((x * true).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(true, axis=1)).mean())


def turn_others(x: np.ndarray, true: np.ndarray) -> float:
    """1 - cosine of a token in x and another one in true, mean over all such pairs: what is left when tokens are exchanged."""
    unit, unit_true = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (x, true))
    return float(1 - (unit @ unit_true.T)[~np.eye(len(x), dtype=bool)].mean())


def word_leaders(one: Any, layers: int) -> np.ndarray:
    """Who receives most attention in each layer (layers,) among the tokens that the model did not add itself."""
    return np.argmax(np.where(one["is_special"].values == 1, -1.0, one["received"].values[:layers]), axis=1)


def agreement(x: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Whether the same tokens are together in x and true (n, d): by groups, and by the order of the cosines of all pairs."""
    from scipy.stats import spearmanr

    upper = np.triu_indices(len(x), 1)
    order = spearmanr(cosines_of(x)[upper], cosines_of(true)[upper]).statistic
    labels, labels_true = (tokens_measured(each[None])["label"][0] for each in (x, true))
    is_telling = all(1 < len(np.unique(each)) < len(each) for each in (labels, labels_true))
    return {"groups": rand_index(groups(x), groups(true)), "order": float(order),
            "groups_at_scale": rand_index(labels, labels_true) if is_telling else float("nan")}


def cosines_of(x: np.ndarray) -> np.ndarray:
    """The cosines of all pairs (n, n)."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return unit @ unit.T


def groups(x: np.ndarray, count: int = GROUPS) -> np.ndarray:
    """Labels (n,) of that many groups, by average linkage of 1 - cosine."""
    from scipy.cluster.hierarchy import fcluster, linkage

    apart = 1 - cosines_of(x)
    return fcluster(linkage(np.maximum(apart[np.triu_indices(len(x), 1)], 0.0), "average"), count, "maxclust")


def rand_index(one: np.ndarray, other: np.ndarray) -> float:
    """The adjusted Rand index of two partitions: 1 for the same, 0 on average for unrelated ones."""
    table = np.array([[np.sum((one == a) & (other == b)) for b in np.unique(other)] for a in np.unique(one)], dtype=float)

    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = rows * columns / (len(one) * (len(one) - 1) / 2)
    largest = (rows + columns) / 2
    return (both - expected) / (largest - expected) if largest != expected else 1.0


def chances(layers: int, real: Sequence[Any]) -> dict[str, Any]:
    """What agreement with the real stack comes without knowing anything about it; the leaders' for each sentence."""
    rng = np.random.default_rng(0)
    sizes = [data.sizes["token"] for data in real]
    labels = [groups(data["x"].values[layers]) for data in real]
    shuffled = [np.mean([rand_index(rng.permutation(each), each) for each in labels]) for _ in range(SHUFFLES)]
    return {"leader": usual_place([data["leader"].values[:layers].astype(int) for data in real], sizes),
            "word_leader": usual_place([word_leaders(data, layers) for data in real], sizes),
            "blind": float(np.mean([1 / (1 - data["is_special"].values).sum() for data in real])),
            "groups": float(np.quantile(shuffled, 0.95))}


def usual_place(leaders: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
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


def main() -> None:
    """Compute everything, and write the page and the pictures."""
    missing = [name for name in TEXTS if not is_cached(name)]
    if missing:
        sys.exit(f"Not fetched: attnlab fetch {' '.join(missing)} gets them.")
    from attnlab.engine.threads import one_blas_thread

    with one_blas_thread():
        found = [measured(name) for name in TEXTS]
    folder = PAGE.parent / "images"
    folder.mkdir(exist_ok=True)
    draw_depth(found).savefig(folder / "sentences_depth.png")
    draw_turn(found).savefig(folder / "sentences_turn.png")
    draw_tied(next(one for one in found if one.tied)).savefig(folder / "sentences_tied.png")
    PAGE.write_text(add_links(page(found, SEEDS, GROUPS, TIMES)), encoding="utf-8")


if __name__ == "__main__":
    main()
