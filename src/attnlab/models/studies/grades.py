"""Eight questions about a stack, and one rule that grades how the idealised model answers them.

one = Stacks(rows, curves, chance)          one set of sentences in one model, as DataFrames
for question, answer in zip(QUESTIONS, answers_of(one)): print(question, answer)

No threshold says when something is better, near or few. "Better" is an exact sign test, over the
sentences and over the stacks of a null. A token is near if it is nearer to its own place in the
real stack than another token of the sentence is. The number of groups is compared with that of the
idealised model. Two conventions remain: LEVEL, the usual 5 % of such tests, and the cosine at which
groups are counted (`groups_at` takes those at other cosines).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attnlab.analysis.significance import TIED, Sign, holm, sign_test
from attnlab.displayed import Displayed, short_repr
from attnlab.models.studies.sentences import TITLES

NULLS = ("random", "untrained")
"""The variants with Gaussian matrices that learned nothing."""

PIECES = ("no_mlp", "no_norm", "attention_only", "no_mask")

WORDS = ("right", "in part", "no evidence", "not right")

LEVEL = 0.05
"""A convention: how often coin flips may call something better, two-sided, in one test."""

INERT = 0.05
"""A convention, for a word in tables: a stack that turns its tokens by less than this is inert."""


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
        """Return the error of the mean cosine at the end, (sentences, seeds)."""
        return np.asarray(np.abs(self.seeded(variant, "cosine") - self.seeded("real", "cosine")))

    def off_on_the_way(self, variant: str) -> np.ndarray:
        """Return the same as a mean over the layers. The embedding keeps its first value."""
        real = self.steps("real")
        curve = real[..., :1] if variant == "embedding" else self.steps(variant)
        return np.asarray(np.abs(curve - real)[..., 1:].mean(axis=2))

    def off_groups(self, variant: str, name: str = "clusters") -> np.ndarray:
        """Return the error of the number of groups at the end over that of tokens, (sentences,
        seeds).
        """
        apart = np.abs(self.seeded(variant, name) - self.seeded("real", name))
        return np.asarray(apart / self.seeded("real", "n"))

    @property
    def inert(self) -> list[str]:
        """The pieces without which tokens stay where they start."""
        there = set(self.rows["variant"])
        return [piece for piece in PIECES if piece in there and self.middle(piece, "moved") < INERT]


@lru_cache(maxsize=64)
def enough(count: int) -> int:
    """Return the least number of wins of `count` that is better than coin flips at LEVEL; `count`
    itself if even that is not, as with fewer than six.

    A tie is no win, so 9 of ten are needed, and all of six.
    """
    from scipy.stats import binomtest

    return next(
        (
            wins
            for wins in range(count // 2 + 1, count + 1)
            if binomtest(wins, count).pvalue <= LEVEL
        ),
        count,
    )


def is_better(*tests: Sign) -> bool:
    """Return whether something is better in enough pairs of each test."""
    return all(test.wins >= max(enough(test.wins + test.losses + test.ties), 1) for test in tests)


def grade(
    beside_nulls: Mapping[str, Sequence[Sign]],
    beside_trivial: Sign,
    is_full: bool = False,
    is_far: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """Return (grade, the nulls that do as well): one rule for all comparisons.

    beside_nulls: the tests of each null, all of which must be passed. is_full: the idealised model
    agrees so well that nothing could be better. is_far: it is far off, even if it is better than
    the others.
    """
    same = tuple(null for null, tests in beside_nulls.items() if not is_better(*tests))
    if same:
        return ("no evidence" if is_better(beside_trivial) or is_full else "not right"), same
    return ("right" if is_better(beside_trivial) and not is_far else "in part"), same


def grade_statement(is_true: bool, nulls_do_it: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """Return (grade, the nulls that do the same) of a statement about the real stack."""
    if not is_true:
        return "not right", ()
    same = tuple(null for null, does in nulls_do_it.items() if does)
    return ("no evidence" if same else "right"), same


class Beside(NamedTuple):
    """A number of a null or of the trivial guess, in words; the test over sentences, and the test
    over the stacks of a null (means over sentences).
    """

    number: str
    test: Sign | None
    stacks: Sign | None = None


@dataclass(eq=False)
class Answer(Displayed):
    """A grade, the nulls that do as well, and the numbers behind it.

    theory: what the theory says, in words. beside: the same for the nulls and the trivial guess,
    with the tests against each. p: of the tests over sentences, corrected for their number.
    """

    word: str
    same: tuple[str, ...]
    theory: str
    beside: dict[str, Beside]
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
    near: Any = None,
    put: Callable[[np.ndarray], str] = lambda array: f"{np.median(array):.2f}",
) -> Answer:
    """Compare the idealised model with the nulls and with a trivial guess (default: the embedding).

    measure: of a variant, (sentences, seeds). is_more: True where more is better and 1 is the most;
    False where less is better and 0 is the least. near: the idealised model is far off unless it is
    better than these numbers (sentences,). put: how a number is written.
    """
    idealised = measure("twin").mean(axis=1)
    nulls = {null: measure(null) for null in NULLS}
    guess = measure("embedding").mean(axis=1) if trivial is None else np.asarray(trivial, float)

    def test(other: np.ndarray, own: np.ndarray = idealised) -> Sign:
        return sign_test(own, other) if is_more else sign_test(other, own)

    tests = {
        null: (test(array.mean(axis=1)), test(array.mean(axis=0), idealised.mean(keepdims=True)))
        for null, array in nulls.items()
    }
    agrees = np.abs(idealised - (1.0 if is_more else 0.0)) <= TIED
    is_full = int(agrees.sum()) >= enough(len(agrees))
    is_far = near is not None and not is_better(test(np.asarray(near, dtype=float)))
    word, same = grade(tests, test(guess), is_full, is_far)
    beside = {null: Beside(put(nulls[null].mean(axis=1)), *tests[null]) for null in NULLS}
    return Answer(word, same, put(idealised), beside | {"trivial": Beside(put(guess), test(guess))})


def gather(one: Stacks) -> Answer:
    """Answer: do tokens turn towards each other, as the idealised model says?"""
    start, end = one.values("embedding", "cosine"), one.values("real", "cosine")
    says, does = (_direction(one.values(name, "cosine"), start) for name in ("twin", "real"))
    beside, same = {}, {}
    for null in NULLS:
        cosines = one.seeded(null, "cosine")
        over = (
            sign_test(does * end, does * cosines.mean(axis=1)),
            sign_test([does * end.mean()], does * cosines.mean(axis=0)),
        )
        same[null] = _direction(cosines.mean(axis=1), start) == does and not is_better(*over)
        beside[null] = Beside(f"{np.median(cosines.mean(axis=1)):.2f}", *over)
    word, who = grade_statement(does == says != 0, same)
    up = {1: "up, to", -1: "down, to", 0: "no direction,"}[says]
    return Answer(
        word,
        who,
        f"{up} {one.middle('twin', 'cosine'):.2f}; real stack {np.median(end):.2f}",
        {**beside, "trivial": Beside(f"{np.median(start):.2f}", sign_test(end, start))},
    )


def _direction(end: np.ndarray, start: np.ndarray) -> int:
    """Return 1 if the end is above the start in enough sentences, -1 if below, else 0."""
    return int(is_better(sign_test(end, start))) - int(is_better(sign_test(start, end)))


def groups_at(one: Stacks, name: str = "clusters") -> Answer:
    """Answer: do the tokens end in as few groups as in the idealised model? name: the column of the
    number of groups, such as clusters_80.
    """
    return compare(one, lambda variant: one.off_groups(variant, name))


def place(one: Stacks) -> Answer:
    """Answer: is each token where the idealised model has it?

    It is far off unless it is nearer to its own place than another token of the real stack is.
    """
    return compare(
        one, lambda variant: one.seeded(variant, "turn"), near=1 - one.values("real", "cosine")
    )


def _lead(one: Stacks, name: str) -> Answer:
    return compare(
        one,
        lambda variant: one.seeded(variant, name),
        True,
        one.chance.sort_values("sentence_number")[name],
        put=lambda array: f"{array.mean():.0%}",
    )


def lead_words(one: Stacks) -> Answer:
    """Answer: does the same word lead, special tokens left out?"""
    return _lead(one, "word_leader")


QUESTIONS: tuple[tuple[str, Callable[[Stacks], Answer]], ...] = (
    ("Do tokens turn towards each other (mean cosine)?", gather),
    (
        "As much as the theory has it, in the end (error of the mean cosine)?",
        lambda one: compare(one, one.off),
    ),
    ("The same, mean over layers?", lambda one: compare(one, one.off_on_the_way)),
    ("In as few groups, in the end (error of groups / tokens)?", groups_at),
    ("Is each token where the theory has it (turn)?", place),
    (
        "Does the same token lead (share of layers; special tokens count)?",
        lambda one: _lead(one, "leader"),
    ),
    ("And among words (special tokens left out)?", lead_words),
    (
        "Are the same tokens together (order of cosines)?",
        lambda one: compare(one, lambda variant: one.seeded(variant, "order"), True),
    ),
)


def answers_of(one: Stacks) -> list[Answer]:
    """Return the answers to all QUESTIONS; the p of all tests are corrected together."""
    answers = [answer(one) for _, answer in QUESTIONS]
    tests = [
        (answer, name, one_of.test.p)
        for answer in answers
        for name, one_of in answer.beside.items()
        if one_of.test is not None
    ]
    for (answer, name, _), p in zip(tests, holm([p for *_, p in tests]), strict=True):
        answer.p[name] = float(p)
    return answers
