"""Writes docs/sentences.md, ten sentences through each of three trained models and through what the theory makes of them.

    attnlab fetch minilm stories15m albert-chem
    python docs/make_sentences.py

Every number on the page is computed here, and the sentences about them are chosen by them. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sentences_figures import draw_depth, draw_tied, draw_turn
from sentences_words import page

import attnlab as al
from attnlab.models.catalog import is_cached
from attnlab.models.sentences import tokens_measured
from attnlab.models.tied import iterate
from attnlab.models.variants import random_parts

PAGE = Path(__file__).parent / "sentences.md"
SEEDS = 5
GROUPS = 4
SHUFFLES = 200
TIMES = 1000
"""How many random stacks; into how many groups tokens are cut; shuffled comparisons; layers of the tied iteration at most."""

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
TEXTS = {"minilm": ENGLISH, "stories15m": ENGLISH, "albert-chem": REACTIONS}


@dataclass(eq=False)
class Found:
    """Everything about one model: a row for each sentence and variant, curves over the layers, iterations of its tied layer."""

    name: str
    model: Any
    rows: pandas.DataFrame = field(default_factory=pandas.DataFrame)
    curves: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)      # variable -> variant -> (sentences, steps)
    chance: dict[str, float] = field(default_factory=dict)
    tied: list[Any] = field(default_factory=list)
    tied_null: list[Any] = field(default_factory=list)


def measured(name: str) -> Found:
    """Ten sentences through one model."""
    found = Found(name, al.models.load(name))
    rows: list[dict[str, Any]] = []
    kept: list[Any] = []
    for number, text in enumerate(TEXTS[name]):
        print(name, number, file=sys.stderr)
        seeds = [al.models.sentence(found.model, text, only=["random"], rng=seed) for seed in range(1, SEEDS)]
        data = al.models.sentence(found.model, text, rng=0)
        kept.append(data)
        rows += [{"sentence": number, **row} for row in rows_of(found.model, data)]
        rows += [{"sentence": number, **row} for each in seeds for row in rows_of(found.model, each)
                 if row["variant"] == "random"]
    table = pandas.DataFrame(rows)
    found.rows = table.groupby(["sentence", "variant"], sort=False).mean().reset_index()     # random: the mean of its seeds
    for variable in ("cosine", "rank", "turn"):
        size = [each.sizes["token"] if variable == "rank" else 1 for each in kept]
        found.curves[variable] = {str(variant): np.stack([each[variable].sel(variant=variant).values / n
                                                          for each, n in zip(kept, size, strict=True)])
                                  for variant in kept[0]["variant"].values}
    found.chance = chances(found.model, kept)
    if found.model.config.is_tied:
        found.tied = [iterate(found.model, text, times=TIMES) for text in TEXTS[name]]
        null = replace(found.model, parts=random_parts(found.model.parts, 0))
        found.tied_null = [iterate(null, text, times=TIMES // 10) for text in TEXTS[name]]
    return found


def rows_of(model: Any, data: Any) -> list[dict[str, Any]]:
    """The numbers of a sentence, a row for each variant, and one for the embedding taken as a guess of the last layer."""
    layers, n = model.config.layers, data.sizes["token"]
    is_special = data["is_special"].values.astype(bool)
    true = data.sel(variant="real")
    end, leads = true["x"].values[layers], true["leader"].values[:layers].astype(int)
    rows = []
    for variant in ["embedding", *data["variant"].values]:
        if variant == "embedding":
            x0 = true["x"].values[0]
            numbers = {key: float(values[0]) for key, values in tokens_measured(x0[None]).items() if values.ndim == 1}
            cosines = (x0 * end).sum(axis=1) / np.linalg.norm(x0, axis=1) / np.linalg.norm(end, axis=1)
            rows.append({"variant": variant, "n": n, **{key: numbers[key] for key in ("cosine", "clusters", "rank")},
                         "turn": 1 - cosines.mean(), **agreement(x0, end)})
            continue
        one = data.sel(variant=variant)
        last = int(np.flatnonzero(np.isfinite(one["x"].values).all(axis=(1, 2)))[-1])
        x = one["x"].values[min(layers, last)]
        leader = one["leader"].values[:layers]
        row = {"variant": str(variant), "n": n, "turn": float(one["turn"].values[layers])}
        for key in ("cosine", "clusters", "rank"):
            row |= {f"{key}_first": float(one[key].values[1]), key: float(one[key].values[last])}
        is_same, is_same_word = leader == leads, word_leaders(one, layers) == word_leaders(true, layers)
        row |= {"leader": float(is_same[1:].mean()), "word_first": float(is_same_word[0]),
                "word_leader": float(is_same_word[1:].mean()), **agreement(x, end),
                "special": float(np.mean(is_special[leader[np.isfinite(leader)].astype(int)]))}
        rows.append(row)
    return rows


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


def chances(model: Any, kept: Sequence[Any]) -> dict[str, float]:
    """What agreement with the real stack comes without knowing anything about it."""
    layers, rng = model.config.layers, np.random.default_rng(0)
    real = [data.sel(variant="real") for data in kept]
    sizes = [data.sizes["token"] for data in kept]
    labels = [groups(data["x"].values[layers]) for data in real]
    shuffled = [np.mean([rand_index(rng.permutation(each), each) for each in labels]) for _ in range(SHUFFLES)]
    return {"leader": usual_place([data["leader"].values[:layers].astype(int) for data in real], sizes),
            "word_leader": usual_place([word_leaders(data, layers) for data in real], sizes),
            "blind": float(np.mean([1 / (1 - data["is_special"].values).sum() for data in real])),
            "groups": float(np.quantile(shuffled, 0.95))}


def usual_place(leaders: Sequence[np.ndarray], sizes: Sequence[int]) -> float:
    """How often, after the first layer, the leader stands where it most often stands in the other sentences.

    Places of the first half of a sentence are counted from its start, others from its end.
    """
    places = [[(int(j), "start") if j < n / 2 else (int(n - j), "end") for j in row]
              for row, n in zip(leaders, sizes, strict=True)]
    right = []
    for number, mine in enumerate(places):
        for layer in range(1, len(mine)):
            others = [row[layer] for other, row in enumerate(places) if other != number]
            right.append(max(sorted(set(others)), key=others.count) == mine[layer])
    return float(np.mean(right))


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
    PAGE.write_text(page(found, SEEDS, GROUPS, TIMES), encoding="utf-8")


if __name__ == "__main__":
    main()
