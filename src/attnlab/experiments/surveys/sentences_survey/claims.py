"""Whether the stacks are what they are called, and how far the theory's flow is from the real
one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from attnlab.analysis.intervals import exact_interval
from attnlab.analysis.significance import sign_test
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, scaled, shifted
from attnlab.models.studies.grades import NULLS, WORDS, Answer, Stacks, answers_of, enough

from .experiment import SETS

TEN = 10
"""Sentences of each set."""

RULE = f"read as {enough(TEN)} of ten sentences, which coin flips reach with p = 0.02"


def stacks_of(data: Data, model: str, which: str = "first") -> Stacks:
    """One set of sentences in one model."""
    frames = (data[name].to_dataframe() for name in ("stacks", "curves", "chances"))
    return Stacks(
        *(frame[(frame["model"] == model) & (frame["which"] == which)] for frame in frames)
    )


def all_answers(data: Data) -> dict[tuple[str, str], list[Answer]]:
    """The answers to all questions, by model and set of sentences."""
    return {
        (model, which): answers_of(stacks_of(data, model, which))
        for model in map(str, data["models"]["model"].values)
        for which in SETS
    }


def claims(data: Data) -> list[Claim]:
    """The method; the theory beside the real stack, both nulls and a trivial guess; the layer that
    is repeated.
    """
    return [*_of_method(data), *_of_theory(data), *(_of_tied(data) if "tied" in data else [])]


def _of_method(data: Data) -> list[Claim]:
    stacks, models = data["stacks"].to_dataframe(), data["models"].to_dataframe().set_index("model")
    curves, chances = data["curves"].to_dataframe(), data["chances"].to_dataframe()
    first = curves[curves["step"] == 0]
    start = first[first["variant"] == "real"].set_index(["model", "which", "sentence_number"])[
        "cosine"
    ]
    apart = first.join(start.rename("own"), on=["model", "which", "sentence_number"])
    same = [name for name in models.index if not models["is_causal"][name]]
    masked = stacks[(stacks["variant"] == "no_mask") & stacks["model"].isin(same)]["turn"]
    tied = stacks[
        (stacks["variant"] == "tied")
        & stacks["model"].isin([n for n in models.index if models["is_tied"][n]])
    ]["turn"]
    sizes = data["sizes"].to_dataframe()
    ratio = sizes[sizes["null"] == "random"]["ratio"]
    found = [
        Claim(
            text=(
                "All stacks read the same embedded tokens: largest difference of the mean cosine at"
                " the start."
            ),
            measured=float(np.abs(apart["cosine"] - apart["own"]).max()),
            low=0.0,
            high=1e-6,
            because="each stack begins with the embedding; the idealised model with its directions",
        ),
        Claim(
            text="Without its mask a stack that has none is the same: largest turn.",
            measured=float(np.abs(masked).max()),
            low=0.0,
            high=1e-9,
            because="the variants are the model's own code, with pieces taken out by name",
        ),
        Claim(
            text=(
                "Random weights have the sizes of the model's own: median ratio of sizes, the stack"
                " farthest from 1."
            ),
            measured=float(ratio.iloc[int(np.abs(ratio - 1).argmax())]),
            low=0.95,
            high=1.05,
            quantity="size / own size",
            expected="1",
            because="they are drawn with that size; five per cent for small matrices",
        ),
        Claim(
            text=(
                "Shuffled groups agree by chance only: mean adjusted Rand index, the set farthest"
                " from 0."
            ),
            measured=float(max(chances["groups_mean"], key=abs)),
            low=-0.05,
            high=0.05,
            quantity="Rand index",
            expected="0",
            because="the adjusted index of unrelated partitions is 0 in the mean",
        ),
    ]
    if len(tied):
        found.append(
            Claim(
                text="A model whose layers are one is its tied variant: largest turn.",
                measured=float(np.abs(tied).max()),
                low=0.0,
                high=1e-9,
                because="it is the same map, layer by layer",
            )
        )
    return found


def _of_theory(data: Data) -> list[Claim]:
    answers = all_answers(data)
    sets = {key: stacks_of(data, *key) for key in answers}
    pairs = [
        (a.word, b.word)
        for model in dict.fromkeys(model for model, _ in answers)
        for a, b in zip(*(answers[model, which] for which in SETS), strict=True)
    ]
    words = Counter(word for pair in pairs for word in pair)
    good, total = words["right"] + words["in part"], 2 * len(pairs)
    same = sum(a == b for a, b in pairs)
    up = {
        key: sign_test(one.values("real", "cosine"), one.values("embedding", "cosine")).wins
        for key, one in sets.items()
    }
    more = [one.values("twin", "cosine") > one.values("real", "cosine") for one in sets.values()]
    above, sentences = int(np.sum(more)), int(np.size(more))
    turns = {key: one.middle("twin", "turn") for key, one in sets.items()}
    yardstick = {
        key: one.values("twin", "turn") / (1 - one.values("real", "cosine"))
        for key, one in sets.items()
    }
    others = {key: one.middle("twin", "turn_others") for key, one in sets.items()}
    return [
        Claim(
            text=(
                "Tokens gather in the real stack: sentences of ten whose mean cosine rises, the"
                " least of all models and sets."
            ),
            measured=float(min(up.values())),
            low=enough(TEN),
            high=TEN,
            quantity="sentences",
            because=RULE,
        ),
        Claim(
            text=(
                "The theory gathers them further: share of sentences in which the idealised model"
                " ends with the larger mean cosine."
            ),
            measured=above / sentences,
            low=0.5,
            high=1.0,
            quantity="share",
            interval=exact_interval(above, sentences),
            sample=f"95 %, {sentences} sentences, taken as independent",
            because=(
                "more than half; the theory has no feed-forward part that could drive tokens apart"
            ),
            differs="; ".join(
                f"{model}: {sets[model, 'first'].middle('twin', 'cosine'):.2f} against "
                f"{sets[model, 'first'].middle('real', 'cosine'):.2f}"
                for model, which in sets
                if which == "first"
            )
            + ".",
        ),
        Claim(
            text=(
                "The theory is rarely right about a real stack: share of grades that are right, or"
                " right in part."
            ),
            measured=good / total,
            low=0.0,
            high=0.5,
            quantity="right or in part",
            sample=f"{total} grades: {', '.join(f'{word} {words[word]}' for word in WORDS)}",
            because=(
                "a description of these stacks would be better than both nulls in more than half of"
                " the questions"
            ),
        ),
        Claim(
            text="The grades hold on fresh sentences: share of questions with the same grade.",
            measured=same / len(pairs),
            low=0.75,
            high=1.0,
            quantity="same grade",
            interval=exact_interval(same, len(pairs)),
            sample=f"95 %, {len(pairs)} questions",
            because=(
                "three quarters; the fresh sentences were fixed before results on them were seen"
                " (docs/sentences.md says what was changed later)"
            ),
        ),
        Claim(
            text=(
                "The idealised model's tokens are far from those of the real stack: turn from the"
                " own token, relative to the turn between two tokens of the real stack; median over"
                " sentences, the smallest of all models and sets."
            ),
            measured=float(min(np.median(ratio) for ratio in yardstick.values())),
            low=1.0,
            high=10.0,
            quantity="turn / turn between tokens",
            expected="1 or more",
            because="below 1 it is nearer to its own place than another token of the sentence is",
            differs="From the other tokens of the sentence: "
            + ", ".join(
                f"{model} {which} {others[model, which]:.3f} (own {turn:.3f})"
                for (model, which), turn in turns.items()
            )
            + ".",
        ),
    ]


def _of_tied(data: Data) -> list[Claim]:
    tied, stacks = data["tied"].to_dataframe(), data["stacks"].to_dataframe()
    own, random = tied[tied["null"] == ""], tied[tied["null"] == NULLS[0]]
    real = stacks[(stacks["variant"] == "real") & (stacks["which"] == "first")].set_index(
        ["model", "sentence_number"]
    )["cosine"]
    apart = own.join(real.rename("own"), on=["model", "sentence_number"])
    nulls = tied[tied["null"].isin(NULLS)].groupby("sentence_number")["clusters"].max()
    most = own["sentence_number"].map(nulls)
    fewer = sign_test(own["alone"].to_numpy(), own["clusters"].to_numpy())
    more = sign_test(own["clusters"].to_numpy(), most.to_numpy())
    outcomes = Counter(own["outcome"]).most_common()
    return [
        Claim(
            text=(
                "One layer again and again is the real stack at its depth: largest difference of"
                " the mean cosine."
            ),
            measured=float(np.abs(apart["at_depth"] - apart["own"]).max()),
            low=0.0,
            high=1e-6,
            because="two programs, one map",
        ),
        Claim(
            text=(
                "A layer that learned nothing gathers all tokens: random layers that end with more"
                " than one group."
            ),
            measured=float(np.sum(random["clusters"] > 1)),
            low=0,
            high=0,
            because=(
                "every softmax weight is positive, so that a repeated layer of such size mixes"
                " until directions agree"
            ),
            differs=f"{len(random)} iterations.",
        ),
        Claim(
            text=(
                "The model's own layer gathers tokens: sentences of ten that end in fewer groups"
                " than they had at the start."
            ),
            measured=fewer.wins,
            low=enough(TEN),
            high=TEN,
            quantity="sentences",
            because=RULE,
            differs=f"After {int(own['times'].max())} layers at most. How it ends: "
            + ", ".join(f"{word} {count}" for word, count in outcomes)
            + f". Several groups are left in {int(np.sum(own['clusters'] > 1))} of {len(own)}, and"
            f" more than in every layer that learned nothing in {more.wins} (sign test over"
            f" sentences, p = {more.p:.2g}; those layers were followed for"
            f" {int(tied[tied['null'].isin(NULLS)]['times'].max())}).",
        ),
    ]


def perfect(which: tuple[str, ...]) -> Any:
    """A spoil: the idealised model is the real stack, on these sets of sentences, and nothing else
    comes near it.
    """

    def change(stacks: Any) -> None:
        chosen = np.isin(stacks["which"].values, which)
        others = chosen & ~np.isin(stacks["variant"].values, ("twin", "real"))
        for name, best in (("turn", 0.0), ("leader", 1.0), ("word_leader", 1.0), ("order", 1.0)):
            stacks[name].values[chosen & (stacks["variant"].values == "twin")] = best
            stacks[name].values[others] = 0.5
        stacks["cosine"].values[others] += 0.3

    return changed("stacks", change)


spoils = {
    "the real stack keeps tokens apart": constant(
        "stacks", "cosine", 0.0, where={"variant": "real"}
    ),
    "the theory does": constant("stacks", "cosine", 0.0, where={"variant": "twin"}),
    "the theory is the real stack": perfect(SETS),
    "only on fresh sentences": perfect(SETS[1:]),
    "masks where there are none": shifted(
        "stacks", "turn", 1e-3, where={"variant": ("no_mask", "tied")}
    ),
    "other embeddings": shifted("curves", "cosine", 0.01, where={"variant": "twin"}),
    "random weights twice as large": scaled("sizes", "ratio", 2.0),
    "groups that chance knows": shifted("chances", "groups_mean", 0.5),
    "nothing gathers": shifted("tied", "clusters", 30.0),
}
