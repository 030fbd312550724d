"""The eight questions to a model: what is compared, the sign tests beside both nulls, and the rule of the grades."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.analysis.significance import Sign, holm, sign_test
from attnlab.experiments.record import Data
from attnlab.models.studies.sentences import TITLES

from .experiment import NULLS, SETS

PIECES = ("no_mlp", "no_norm", "attention_only", "no_mask")
WORDS = ("right", "in part", "no evidence", "not right")
MANY = 9
"""Of ten sentences: what holds in so many or more is said to hold; by coin flips that has p = 0.02."""

TIED = 1e-9
"""Numbers nearer than this are the same."""

FAR = 0.3
"""A turn from which on the page of a model (`attnlab dossier`) calls tokens far from where the theory has them."""

INERT = 0.05
"""A stack that turns its tokens by less than this from where they start does next to nothing."""


@dataclass(frozen=True, eq=False)
class Stacks:
    """One set of sentences in one model: DataFrames, a row per sentence, variant and seed; the same per step; per sentence."""

    rows: Any
    curves: Any
    chance: Any

    def seeded(self, variant: str, name: str) -> np.ndarray:
        """A number of a variant, (sentences, seeds)."""
        rows = self.rows[self.rows["variant"] == variant]
        return np.asarray(rows.pivot(index="sentence_number", columns="seed", values=name).sort_index(), dtype=float)

    def values(self, variant: str, name: str) -> np.ndarray:
        """A number of a variant for every sentence, the mean over seeds."""
        return self.seeded(variant, name).mean(axis=1)

    def middle(self, variant: str, name: str) -> float:
        """Its median."""
        return float(np.median(self.values(variant, name)))

    def steps(self, variant: str, name: str = "cosine") -> np.ndarray:
        """A curve of a variant, (sentences, seeds, steps)."""
        rows = self.curves[self.curves["variant"] == variant].sort_values(["sentence_number", "seed", "step"])
        shape = (rows["sentence_number"].nunique(), rows["seed"].nunique(), rows["step"].nunique())
        return np.asarray(rows[name], dtype=float).reshape(shape)

    def off(self, variant: str) -> np.ndarray:
        """How far the mean cosine at the end is from the real one, for every sentence; of a null the mean of its stacks."""
        return np.asarray(np.abs(self.seeded(variant, "cosine") - self.seeded("real", "cosine")).mean(axis=1))

    def off_on_the_way(self, variant: str) -> np.ndarray:
        """The same, mean over the layers; "embedding": as it starts."""
        real = self.steps("real")
        curve = real[..., :1] if variant == "embedding" else self.steps(variant)
        return np.asarray(np.abs(curve - real)[..., 1:].mean(axis=(1, 2)))

    @property
    def inert(self) -> list[str]:
        """The pieces without which the stack does next to nothing, because tokens stay where they start."""
        there = set(self.rows["variant"])
        return [piece for piece in PIECES if piece in there and self.middle(piece, "moved") < INERT]


def stacks_of(data: Data, model: str, which: str = "first") -> Stacks:
    """One set of sentences in one model."""
    frames = []
    for name in ("stacks", "curves", "chances"):
        frame = data[name].to_dataframe()
        frames.append(frame[(frame["model"] == model) & (frame["which"] == which)])
    return Stacks(*frames)


def is_better(test: Sign) -> bool:
    """Whether something is better in so many sentences that it is said to be so."""
    return test.wins >= MANY


def grade(beside_nulls: Mapping[str, Sign], beside_trivial: Sign, is_full: bool = False,
          is_far: bool = False) -> tuple[str, tuple[str, ...]]:
    """(the word, the nulls that do as well): one rule for all comparisons of the idealised model.

    is_full: it agrees so well that nothing could be better. is_far: it is far off, however much better than others
    """
    same = tuple(null for null, test in beside_nulls.items() if not is_better(test))
    if same:
        return ("no evidence" if is_better(beside_trivial) or is_full else "not right"), same
    return ("right" if is_better(beside_trivial) and not is_far else "in part"), same


def grade_statement(is_true: bool, nulls_do_it: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """(the word, the nulls that do the same), for what is true or not of the real stack."""
    if not is_true:
        return "not right", ()
    same = tuple(null for null, does in nulls_do_it.items() if does)
    return ("no evidence" if same else "right"), same


@dataclass(eq=False)
class Answer:
    """The word, the nulls that do as well, what the theory has in words, and beside it the nulls and the trivial guess."""

    word: str
    same: tuple[str, ...]
    theory: str
    beside: dict[str, tuple[str, Sign | None]]
    p: dict[str, float] = field(default_factory=dict)                           # corrected

    def __str__(self) -> str:
        if self.word != "no evidence":
            return self.word
        return f"no evidence: {'both nulls do' if len(self.same) == len(NULLS) else TITLES[self.same[0]] + ' do'} as well"


def compare(one: Stacks, measure: Callable[[str], np.ndarray], is_more: bool = False, trivial: Any = None, far: float = np.inf,
            put: Callable[[np.ndarray], str] = lambda array: f"{np.median(array):.2f}") -> Answer:
    """The idealised model beside the nulls and the trivial guess, which is the embedding where none is given.

    is_more: whether more is better, and 1 the most, or less, and 0 the least. far: from which median on it is far off
    """
    idealised, nulls = measure("twin"), {null: measure(null) for null in NULLS}
    trivial = measure("embedding") if trivial is None else np.asarray(trivial, dtype=float)

    def test(other: np.ndarray) -> Sign:
        return sign_test(idealised, other) if is_more else sign_test(other, idealised)

    tests = {null: test(array) for null, array in nulls.items()}
    is_full = int(np.sum(np.abs(idealised - (1.0 if is_more else 0.0)) <= TIED)) >= MANY
    word, same = grade(tests, test(trivial), is_full, is_far=float(np.median(idealised)) >= far)
    beside: dict[str, tuple[str, Sign | None]] = {null: (put(nulls[null]), tests[null]) for null in NULLS}
    return Answer(word, same, put(idealised), beside | {"trivial": (put(trivial), test(trivial))})


def gather(one: Stacks) -> Answer:
    """Do tokens turn towards each other?"""
    start, end = one.values("embedding", "cosine"), one.values("real", "cosine")
    nulls = {null: one.values(null, "cosine") for null in NULLS}
    up, beside = sign_test(end, start), {null: sign_test(end, nulls[null]) for null in NULLS}
    does = {null: is_better(sign_test(nulls[null], start)) and not is_better(beside[null]) for null in NULLS}
    word, same = grade_statement(is_better(up), does)
    put = {null: (f"{np.median(nulls[null]):.2f}", beside[null]) for null in NULLS}
    return Answer(word, same, f"up, to {one.middle('twin', 'cosine'):.2f}; real stack {np.median(end):.2f}",
                  {**put, "trivial": (f"{np.median(start):.2f}", up)})


def few(one: Stacks) -> Answer:
    """Few groups in the end?"""
    sizes = one.values("real", "n")
    shares = {name: one.values(name, "clusters") / sizes for name in ("real", "twin", *NULLS, "embedding")}
    agree = {name: int(np.sum((share <= 0.5) == (shares["real"] <= 0.5))) for name, share in shares.items()}

    def put(name: str) -> str:
        return f"{np.median(shares[name]):.0%} of the tokens: agrees in {agree[name]}"

    word, same = grade_statement(agree["twin"] >= MANY, {null: agree[null] >= MANY for null in NULLS})
    return Answer(word, same, f"{put('twin')}; real stack {np.median(shares['real']):.0%}",
                  {**{null: (put(null), None) for null in NULLS}, "trivial": (put("embedding"), None)})


def _lead(one: Stacks, name: str) -> Answer:
    return compare(one, lambda variant: one.values(variant, name), True, one.chance.sort_values("sentence_number")[name],
                   put=lambda array: f"{array.mean():.0%}")


QUESTIONS: tuple[tuple[str, Callable[[Stacks], Answer]], ...] = (
    ("Do tokens turn towards each other (mean cosine)?", gather),
    ("As much as the theory has it, in the end (error of the mean cosine)?", lambda one: compare(one, one.off)),
    ("The same, mean over layers?", lambda one: compare(one, one.off_on_the_way)),
    ("In the end, few groups or many?", few),
    ("Is each token where the theory has it (turn)?",
     lambda one: compare(one, lambda variant: one.values(variant, "turn"), far=FAR)),
    ("Does the same token lead (share of layers; special tokens count)?", lambda one: _lead(one, "leader")),
    ("And among words (special tokens left out)?", lambda one: _lead(one, "word_leader")),
    ("Are the same tokens together (order of cosines)?",
     lambda one: compare(one, lambda variant: one.values(variant, "order"), True)),
)


def answers_of(one: Stacks) -> list[Answer]:
    """All questions to one set of sentences in one model, with the p of all their tests corrected together."""
    answers = [answer(one) for _, answer in QUESTIONS]
    tests = [(answer, name, test.p) for answer in answers for name, (_, test) in answer.beside.items() if test is not None]
    for (answer, name, _), p in zip(tests, holm([p for *_, p in tests]), strict=True):
        answer.p[name] = float(p)
    return answers


def all_answers(data: Data) -> dict[tuple[str, str], list[Answer]]:
    """{(model, set): answers}."""
    return {(model, which): answers_of(stacks_of(data, model, which)) for model in map(str, data["models"]["model"].values)
            for which in SETS}
