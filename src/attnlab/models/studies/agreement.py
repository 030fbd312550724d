"""How far one stack is from another on the same sentence, and how far a mere guess is.

    compare_stacks(one, real, layers)     one row of numbers for the last layer and for the leaders
    compare_embedding(real, layers)       the same for the guess that the stack does nothing
    guess_leaders(places)                 the leader, guessed from its place in the other sentences

`one` and `real` are what `sentence` returns, reduced to one variant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.analysis.clusters import adjusted_rand_index, cluster_labels
from attnlab.models.studies.sentences import measure_tokens

GROUPS = 4
"""Groups that tokens are cut into."""

FEW = 0.5
"""A convention: few groups are at most this many, per token. No grade depends on it."""

SCALES = (0.5, 0.7, 0.8, 0.9, 0.95)
"""Cosines at which groups of tokens are counted."""

SHUFFLES = 200
"""Shuffled labels of each sentence, for the agreement by chance."""


def compare_stacks(one: Any, true: Any, layers: int) -> dict[str, Any]:
    """Return the numbers of a sentence in one stack, at the depth of the real one, beside it.

    clusters_50 to clusters_95: how many groups there are at the cosines SCALES. turn, turn_others,
    groups, order: how far the last tokens are from the real ones. leader, word_leader: the share of
    the layers, after the first, in which the same token leads; NaN if there is one layer. special:
    the share of the layers that a token leads which the model added.
    """
    last = int(np.flatnonzero(np.isfinite(one["x"].values).all(axis=(1, 2)))[-1])
    x, end = one["x"].values[min(layers, last)], true["x"].values[layers]
    leader, lead = one["leader"].values[:layers], true["leader"].values[:layers]
    is_special = one["is_special"].values.astype(bool)
    row: dict[str, Any] = {
        "n": one.sizes["token"],
        "turn": turn(x, end),
        "turn_others": turn_others(x, end),
        "moved": turn(x, one["x"].values[0]),
        "norm_first": float(one["norm"].values[0]),
    }
    for key in ("cosine", "clusters", "rank"):
        row |= {f"{key}_first": float(one[key].values[1]), key: float(one[key].values[last])}
    is_same_word = word_leaders(one, layers) == word_leaders(true, layers)
    return row | {
        "leader": float((leader == lead)[1:].mean()) if layers > 1 else np.nan,
        "word_leader": float(is_same_word[1:].mean()) if layers > 1 else np.nan,
        **count_groups(x),
        **agreement(x, end),
        "special": float(np.mean(is_special[leader[np.isfinite(leader)].astype(int)])),
    }


def many_from(x: np.ndarray) -> float:
    """Return the cosine above which tokens x (n, d) are in many clusters: more than FEW per token.

    With every smaller cosine as the scale of clusters (single linkage) there are few. So an answer
    "many" at 0.9 can be trusted if this number is far below 0.9.
    """
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    cosines = unit @ unit.T
    n = len(x)
    group, count = np.arange(n), n
    pairs = [(cosines[i, j], i, j) for i in range(n) for j in range(i)]
    for cosine, i, j in sorted(pairs, reverse=True):  # from the closest pair on, groups join
        if group[i] != group[j]:
            group[group == group[i]] = group[j]
            count -= 1
            if count <= FEW * n:
                return float(cosine)
    return -1.0


def compare_embedding(true: Any, layers: int) -> dict[str, Any]:
    """Return the numbers of the embedding, a guess of the last layer; NaN where it says nothing."""
    x0, end = true["x"].values[0], true["x"].values[layers]
    nothing = dict.fromkeys(
        (
            "turn_others",
            "moved",
            "norm_first",
            "cosine_first",
            "clusters_first",
            "rank_first",
            "leader",
            "word_leader",
            "special",
        ),
        float("nan"),
    )
    numbers = {
        key: float(values[0])
        for key, values in measure_tokens(x0[None]).items()
        if values.ndim == 1
    }
    return {
        "n": len(x0),
        **nothing,
        **{key: numbers[key] for key in ("cosine", "clusters", "rank")},
        "turn": turn(x0, end),
        **count_groups(x0),
        **agreement(x0, end),
    }


def count_groups(x: np.ndarray) -> dict[str, float]:
    """Return the number of groups of tokens x (n, d) at each of the SCALES, as `clusters_90`."""
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return {
        f"clusters_{100 * scale:.0f}": float(cluster_labels(unit, np.sqrt(2 - 2 * scale)).max() + 1)
        for scale in SCALES
    }


def turn(x: np.ndarray, true: np.ndarray) -> float:
    """Return 1 - cosine of a token in x and in true (n, d), mean over tokens."""
    return float(
        1
        - ((x * true).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(true, axis=1)).mean()
    )


def turn_others(x: np.ndarray, true: np.ndarray) -> float:
    """Return 1 - cosine of a token in x and another one in true (n, d), mean over all pairs."""
    unit, unit_true = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (x, true))
    return float(1 - (unit @ unit_true.T)[~np.eye(len(x), dtype=bool)].mean())


def word_leaders(one: Any, layers: int) -> np.ndarray:
    """Return the token of the text that receives most attention in each layer, (layers,)."""
    return np.argmax(
        np.where(one["is_special"].values == 1, -1.0, one["received"].values[:layers]), axis=1
    )


def agreement(x: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """Return whether the same tokens are together in x and true (n, d).

    groups: the adjusted Rand index of both partitions. order: Spearman's correlation of the cosines
    of all pairs.
    """
    from scipy.stats import spearmanr

    upper = np.triu_indices(len(x), 1)
    order = spearmanr(cosines_of(x)[upper], cosines_of(true)[upper]).statistic
    return {"groups": adjusted_rand_index(groups(x), groups(true)), "order": float(order)}


def cosines_of(x: np.ndarray) -> np.ndarray:
    """Return the cosines of all pairs, (n, n)."""
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def groups(x: np.ndarray, count: int = GROUPS) -> np.ndarray:
    """Return labels (n,) of that many groups, by average linkage of 1 - cosine."""
    from scipy.cluster.hierarchy import fcluster, linkage

    apart = 1 - cosines_of(x)
    return np.asarray(
        fcluster(
            linkage(np.maximum(apart[np.triu_indices(len(x), 1)], 0.0), "average"),
            count,
            "maxclust",
        )
    )


def guess_leaders(leaders: Sequence[Any], sizes: Sequence[int]) -> np.ndarray:
    """Return how often the usual place of the leader in the other sentences is right, (sentences,).

    leaders: of each sentence the leader of each layer; the first layer is left out. Places in the
    first half of a sentence are counted from its start, the others from its end.
    """
    places = [
        [(int(j), "start") if j < n / 2 else (int(n - j), "end") for j in row]
        for row, n in zip(leaders, sizes, strict=True)
    ]
    right = np.zeros((len(places), len(places[0]) - 1))
    for number, mine in enumerate(places):
        for layer in range(1, len(mine)):
            others = [row[layer] for other, row in enumerate(places) if other != number]
            right[number, layer - 1] = max(sorted(set(others)), key=others.count) == mine[layer]
    return right.mean(axis=1)


def agree_by_chance(where: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return the agreement with the real stack that needs no knowledge of it, for each sentence.

    where: for each sentence n, leader, word_leader and the labels of its groups. groups: the 95 %
    quantile of the Rand index of shuffled labels, mean over the sentences; groups_mean: its mean.
    """
    rng = np.random.default_rng(0)
    labels = [np.array(row["labels"]) for row in where]
    shuffled = [
        np.mean([adjusted_rand_index(rng.permutation(each), each) for each in labels])
        for _ in range(SHUFFLES)
    ]
    by_groups = {
        "groups": float(np.quantile(shuffled, 0.95)),
        "groups_mean": float(np.mean(shuffled)),
    }
    sizes = [row["n"] for row in where]
    guessed = {
        name: guess_leaders([row[name] for row in where], sizes)
        for name in ("leader", "word_leader")
    }
    return [
        {**{name: values[number] for name, values in guessed.items()}, **by_groups}
        for number in range(len(where))
    ]
