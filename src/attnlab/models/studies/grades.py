"""Eight questions about a stack, and one rule that grades how the idealised model answers them.

one = Stacks(rows, curves, chance)          one set of sentences in one model, as DataFrames
for (question, _), answer in zip(QUESTIONS, answers_of(one)): print(question, answer)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.analysis.significance import Sign, holm, sign_test
from attnlab.displayed import Displayed, short_repr
from attnlab.models.studies.sentences import TITLES

NULLS = ("random", "untrained")
"""The variants with Gaussian matrices that learned nothing."""

PIECES = ("no_mlp", "no_norm", "attention_only", "no_mask")

WORDS = ("right", "in part", "no evidence", "not right")

MANY = 9
"""What holds in so many of ten sentences is said to hold. Coin flips reach that with p = 0.02."""

TIED = 1e-9
"""Numbers nearer than this are the same."""

FAR = 0.3
"""From this turn on, the page of a model (`attnlab dossier`) calls tokens far from the theory."""

INERT = 0.05
"""A stack that turns its tokens by less than this does next to nothing."""


@dataclass(frozen=True, eq=False)
class Stacks(Displayed):
    """One set of sentences in one model, as three DataFrames.

    rows: one row per sentence, variant and seed. curves: the same for each step. chance: one row
    per sentence, with what a guess reaches. All have the column sentence_number.
    """

    rows: Any
    curves: Any
    chance: Any
    __repr__ = short_repr

    def seeded(self, variant: str, name: str) -> np.ndarray:
        """Return a number of a variant, (sentences, seeds)."""
        rows = self.rows[self.rows["variant"] == variant]
        return np.asarray(
            rows.pivot(index="sentence_number", columns="seed", values=name).sort_index(),
            dtype=float,
        )

    def values(self, variant: str, name: str) -> np.ndarray:
        """Return a number of a variant for each sentence, the mean over seeds."""
        return self.seeded(variant, name).mean(axis=1)

    def middle(self, variant: str, name: str) -> float:
        """Return the median over the sentences."""
        return float(np.median(self.values(variant, name)))

    def steps(self, variant: str, name: str = "cosine") -> np.ndarray:
        """Return a curve of a variant, (sentences, seeds, steps)."""
        rows = self.curves[self.curves["variant"] == variant].sort_values(
            ["sentence_number", "seed", "step"]
        )
        shape = (rows["sentence_number"].nunique(), rows["seed"].nunique(), rows["step"].nunique())
        return np.asarray(rows[name], dtype=float).reshape(shape)

    def off(self, variant: str) -> np.ndarray:
        """Return the error of the mean cosine at the end, for each sentence; a mean over seeds."""
        return np.asarray(
            np.abs(self.seeded(variant, "cosine") - self.seeded("real", "cosine")).mean(axis=1)
        )

    def off_on_the_way(self, variant: str) -> np.ndarray:
        """Return the same as a mean over the layers. The embedding keeps its first value."""
        real = self.steps("real")
        curve = real[..., :1] if variant == "embedding" else self.steps(variant)
        return np.asarray(np.abs(curve - real)[..., 1:].mean(axis=(1, 2)))

    @property
    def inert(self) -> list[str]:
        """The pieces without which tokens stay where they start."""
        there = set(self.rows["variant"])
        return [piece for piece in PIECES if piece in there and self.middle(piece, "moved") < INERT]


def is_better(test: Sign) -> bool:
    """Return whether something is better in MANY sentences or more."""
    return test.wins >= MANY


def grade(
    beside_nulls: Mapping[str, Sign],
    beside_trivial: Sign,
    is_full: bool = False,
    is_far: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """Return (grade, the nulls that do as well): one rule for all comparisons.

    is_full: the idealised model agrees so well that nothing could be better. is_far: it is far off,
    even if it is better than the others.
    """
    same = tuple(null for null, test in beside_nulls.items() if not is_better(test))
    if same:
        return ("no evidence" if is_better(beside_trivial) or is_full else "not right"), same
    return ("right" if is_better(beside_trivial) and not is_far else "in part"), same


def grade_statement(is_true: bool, nulls_do_it: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """Return (grade, the nulls that do the same) of a statement about the real stack."""
    if not is_true:
        return "not right", ()
    same = tuple(null for null, does in nulls_do_it.items() if does)
    return ("no evidence" if same else "right"), same


@dataclass(eq=False)
class Answer(Displayed):
    """A grade, the nulls that do as well, and the numbers behind it.

    theory: what the theory says, in words. beside: the same for the nulls and the trivial guess,
    with the sign test against each. p: of these tests, corrected for their number.
    """

    word: str
    same: tuple[str, ...]
    theory: str
    beside: dict[str, tuple[str, Sign | None]]
    p: dict[str, float] = field(default_factory=dict)
    __repr__ = short_repr

    def __str__(self) -> str:
        if self.word != "no evidence":
            return self.word
        who = "both nulls" if len(self.same) == len(NULLS) else TITLES[self.same[0]]
        return f"no evidence: {who} do as well"


def compare(
    one: Stacks,
    measure: Callable[[str], np.ndarray],
    is_more: bool = False,
    trivial: Any = None,
    far: float = np.inf,
    put: Callable[[np.ndarray], str] = lambda array: f"{np.median(array):.2f}",
) -> Answer:
    """Compare the idealised model with the nulls and with a trivial guess (default: the embedding).

    is_more: True where more is better and 1 is the most; False where less is better and 0 is the
    least. far: the median from which on the model is far off. put: how a number is written.
    """
    idealised, nulls = measure("twin"), {null: measure(null) for null in NULLS}
    trivial = measure("embedding") if trivial is None else np.asarray(trivial, dtype=float)

    def test(other: np.ndarray) -> Sign:
        return sign_test(idealised, other) if is_more else sign_test(other, idealised)

    tests = {null: test(array) for null, array in nulls.items()}
    is_full = int(np.sum(np.abs(idealised - (1.0 if is_more else 0.0)) <= TIED)) >= MANY
    word, same = grade(tests, test(trivial), is_full, is_far=float(np.median(idealised)) >= far)
    beside: dict[str, tuple[str, Sign | None]] = {
        null: (put(nulls[null]), tests[null]) for null in NULLS
    }
    return Answer(word, same, put(idealised), beside | {"trivial": (put(trivial), test(trivial))})


def gather(one: Stacks) -> Answer:
    """Answer: do tokens turn towards each other?"""
    start, end = one.values("embedding", "cosine"), one.values("real", "cosine")
    nulls = {null: one.values(null, "cosine") for null in NULLS}
    up, beside = sign_test(end, start), {null: sign_test(end, nulls[null]) for null in NULLS}
    does = {
        null: is_better(sign_test(nulls[null], start)) and not is_better(beside[null])
        for null in NULLS
    }
    word, same = grade_statement(is_better(up), does)
    put = {null: (f"{np.median(nulls[null]):.2f}", beside[null]) for null in NULLS}
    return Answer(
        word,
        same,
        f"up, to {one.middle('twin', 'cosine'):.2f}; real stack {np.median(end):.2f}",
        {**put, "trivial": (f"{np.median(start):.2f}", up)},
    )


def few(one: Stacks) -> Answer:
    """Answer: are there few groups in the end?"""
    sizes = one.values("real", "n")
    shares = {
        name: one.values(name, "clusters") / sizes for name in ("real", "twin", *NULLS, "embedding")
    }
    agree = {
        name: int(np.sum((share <= 0.5) == (shares["real"] <= 0.5)))
        for name, share in shares.items()
    }

    def put(name: str) -> str:
        return f"{np.median(shares[name]):.0%} of the tokens: agrees in {agree[name]}"

    word, same = grade_statement(
        agree["twin"] >= MANY, {null: agree[null] >= MANY for null in NULLS}
    )
    return Answer(
        word,
        same,
        f"{put('twin')}; real stack {np.median(shares['real']):.0%}",
        {**{null: (put(null), None) for null in NULLS}, "trivial": (put("embedding"), None)},
    )


def _lead(one: Stacks, name: str) -> Answer:
    return compare(
        one,
        lambda variant: one.values(variant, name),
        True,
        one.chance.sort_values("sentence_number")[name],
        put=lambda array: f"{array.mean():.0%}",
    )


QUESTIONS: tuple[tuple[str, Callable[[Stacks], Answer]], ...] = (
    ("Do tokens turn towards each other (mean cosine)?", gather),
    (
        "As much as the theory has it, in the end (error of the mean cosine)?",
        lambda one: compare(one, one.off),
    ),
    ("The same, mean over layers?", lambda one: compare(one, one.off_on_the_way)),
    ("In the end, few groups or many?", few),
    (
        "Is each token where the theory has it (turn)?",
        lambda one: compare(one, lambda variant: one.values(variant, "turn"), far=FAR),
    ),
    (
        "Does the same token lead (share of layers; special tokens count)?",
        lambda one: _lead(one, "leader"),
    ),
    ("And among words (special tokens left out)?", lambda one: _lead(one, "word_leader")),
    (
        "Are the same tokens together (order of cosines)?",
        lambda one: compare(one, lambda variant: one.values(variant, "order"), True),
    ),
)


def answers_of(one: Stacks) -> list[Answer]:
    """Return the answers to all QUESTIONS; the p of all tests are corrected together."""
    answers = [answer(one) for _, answer in QUESTIONS]
    tests = [
        (answer, name, test.p)
        for answer in answers
        for name, (_, test) in answer.beside.items()
        if test is not None
    ]
    for (answer, name, _), p in zip(tests, holm([p for *_, p in tests]), strict=True):
        answer.p[name] = float(p)
    return answers
