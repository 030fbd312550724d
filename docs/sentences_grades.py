"""The eight questions of docs/sentences.md: what is measured, the sign tests beside both nulls, and the rule of the grades."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats
from sentences_text import percent

from attnlab.models.studies.sentences import TITLES

NULLS = ("random", "untrained")
PIECES = {"no_mlp": "the feed-forward parts", "no_norm": "the norms", "attention_only": "both", "no_mask": "the mask"}
WORDS = ("right", "in part", "no evidence", "not right")
MANY = 9
"""Of ten sentences: what holds in so many or more is said to hold; by coin flips that has p = 0.02."""

TIED = 1e-9
"""Numbers nearer than this are the same."""

FAR = 0.3
"""A turn from which on the page of a model (`attnlab dossier`) calls tokens far from where the theory has them."""

INERT = 0.05
"""A stack that turns its tokens by less than this from where they start does next to nothing."""


@dataclass(frozen=True)
class Sign:
    """In how many sentences something is better, worse, the same, and the two-sided p of that by coin flips without ties."""

    wins: int
    losses: int
    ties: int
    p: float

    @property
    def is_better(self) -> bool:
        """Whether in so many sentences that it is said to be so."""
        return self.wins >= MANY


def sign(more: np.ndarray, less: np.ndarray) -> Sign:
    """The sign test of more > less over sentences."""
    difference = np.asarray(more, dtype=float) - np.asarray(less, dtype=float)
    wins, losses = int(np.sum(difference > TIED)), int(np.sum(difference < -TIED))
    p = float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    return Sign(wins, losses, len(difference) - wins - losses, p)


def holm(ps: Sequence[float]) -> np.ndarray:
    """The p of several tests, corrected for their number by Holm's steps."""
    given = np.asarray(ps, dtype=float)
    order = np.argsort(given, kind="stable")
    result = np.empty(len(given))
    result[order] = np.minimum(np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)), 1.0)
    return result


def graded(beside_nulls: Mapping[str, Sign], beside_trivial: Sign, is_full: bool = False,
           is_far: bool = False) -> tuple[str, tuple[str, ...]]:
    """(the word, the nulls that do as well): one rule for all comparisons of the idealised model.

    is_full: it agrees so well that nothing could be better;  is_far: it is far off, however much better than others
    """
    same = tuple(null for null, test in beside_nulls.items() if not test.is_better)
    if same:
        return ("no evidence" if beside_trivial.is_better or is_full else "not right"), same
    return ("right" if beside_trivial.is_better and not is_far else "in part"), same


def graded_statement(is_true: bool, nulls_do_it: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """(the word, the nulls that do the same), for what is true or not of the real stack."""
    if not is_true:
        return "not right", ()
    same = tuple(null for null, does in nulls_do_it.items() if does)
    return ("no evidence" if same else "right"), same


def seeded(one: Any, variant: str, name: str) -> np.ndarray:
    """A number of a variant, (sentences, seeds)."""
    rows = one.rows[one.rows["variant"] == variant]
    return rows.pivot(index="sentence", columns="seed", values=name).sort_index().to_numpy(dtype=float)


def values(one: Any, variant: str, name: str) -> np.ndarray:
    """A number of a variant for every sentence, the mean over seeds."""
    return seeded(one, variant, name).mean(axis=1)


def middle(one: Any, variant: str, name: str) -> float:
    """Its median."""
    return float(np.median(values(one, variant, name)))


def off(one: Any, variant: str) -> np.ndarray:
    """How far the mean cosine at the end is from that of the real stack, for every sentence; of a null the mean of its stacks."""
    return np.abs(seeded(one, variant, "cosine") - seeded(one, "real", "cosine")).mean(axis=1)


def off_on_the_way(one: Any, variant: str) -> np.ndarray:
    """The same, mean over the layers; "embedding": as it starts."""
    curves = one.curves["cosine"]
    real = curves["real"]                                                       # (sentences, 1, steps)
    curve = real[..., :1] if variant == "embedding" else curves[variant]
    return np.abs(curve - real)[..., 1:].mean(axis=(1, 2))


def inert(one: Any) -> list[str]:
    """The pieces without which the stack does next to nothing, because tokens stay where they start."""
    return [piece for piece in PIECES if piece in set(one.rows["variant"]) and middle(one, piece, "moved") < INERT]


@dataclass(eq=False)
class Answer:
    """The word, the nulls that do as well, what the theory has in words, and beside it the nulls and the trivial guess."""

    word: str
    same: tuple[str, ...]
    theory: str
    beside: dict[str, tuple[str, Sign | None]]
    p: dict[str, float] = field(default_factory=dict)                           # corrected


Put = Callable[[np.ndarray], str]


def median_put(array: np.ndarray) -> str:
    """A median in words."""
    return f"{np.median(array):.2f}"


def mean_put(array: np.ndarray) -> str:
    """A mean share in words."""
    return percent(float(array.mean()))


def compared(idealised: np.ndarray, nulls: Mapping[str, np.ndarray], trivial: np.ndarray, is_more: bool, put: Put,
             far: float = np.inf) -> Answer:
    """The idealised model beside the nulls and the trivial guess.

    is_more: whether more is better, and 1 the most, or less, and 0 the least;  far: from which median on it is far off
    """
    def test(other: np.ndarray) -> Sign:
        return sign(idealised, other) if is_more else sign(other, idealised)

    tests = {null: test(array) for null, array in nulls.items()}
    best = np.ones(len(idealised)) if is_more else np.zeros(len(idealised))
    is_full = int(np.sum(np.abs(idealised - best) <= TIED)) >= MANY
    word, same = graded(tests, test(trivial), is_full, is_far=float(np.median(idealised)) >= far)
    return Answer(word, same, put(idealised), {null: (put(nulls[null]), tests[null]) for null in nulls}
                  | {"trivial": (put(trivial), test(trivial))})


def of_all(one: Any, measure: Callable[[Any, str], np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """A number of the idealised model, of the nulls, of the embedding."""
    return measure(one, "twin"), {null: measure(one, null) for null in NULLS}, measure(one, "embedding")


def gather(one: Any) -> Answer:
    """Do tokens turn towards each other?"""
    start, end = values(one, "embedding", "cosine"), values(one, "real", "cosine")
    nulls = {null: values(one, null, "cosine") for null in NULLS}
    up, beside = sign(end, start), {null: sign(end, nulls[null]) for null in NULLS}
    does = {null: sign(nulls[null], start).is_better and not beside[null].is_better for null in NULLS}
    word, same = graded_statement(up.is_better, does)
    return Answer(word, same, f"up, to {middle(one, 'twin', 'cosine'):.2f}; real stack {np.median(end):.2f}",
                  {null: (median_put(nulls[null]), beside[null]) for null in NULLS} | {"trivial": (median_put(start), up)})


def few(one: Any) -> Answer:
    """Few groups in the end?"""
    sizes = values(one, "real", "n")
    shares = {name: values(one, name, "clusters") / sizes for name in ("real", "twin", *NULLS, "embedding")}
    agree = {name: int(np.sum((share <= 0.5) == (shares["real"] <= 0.5))) for name, share in shares.items()}

    def put(name: str) -> str:
        return f"{percent(np.median(shares[name]))} of the tokens: agrees in {agree[name]}"

    word, same = graded_statement(agree["twin"] >= MANY, {null: agree[null] >= MANY for null in NULLS})
    return Answer(word, same, f"{put('twin')}; real stack {percent(np.median(shares['real']))}",
                  {null: (put(null), None) for null in NULLS} | {"trivial": (put("embedding"), None)})


def as_much_in_the_end(one: Any) -> Answer:
    """How far off is the mean cosine at the end?"""
    return compared(*of_all(one, off), is_more=False, put=median_put)


def as_much_on_the_way(one: Any) -> Answer:
    """How far off is it, mean over the layers?"""
    return compared(*of_all(one, off_on_the_way), is_more=False, put=median_put)


def near(one: Any) -> Answer:
    """Is each token where the idealised model has it?"""
    return compared(*of_all(one, lambda one, name: values(one, name, "turn")), is_more=False, put=median_put, far=FAR)


def together(one: Any) -> Answer:
    """Are the same tokens together?"""
    return compared(*of_all(one, lambda one, name: values(one, name, "order")), is_more=True, put=median_put)


def leads_any(one: Any) -> Answer:
    """Does the same token lead?"""
    return _leading(one, "leader")


def leads(one: Any) -> Answer:
    """Do the same words lead?"""
    return _leading(one, "word_leader")


def _leading(one: Any, name: str) -> Answer:
    nulls = {null: values(one, null, name) for null in NULLS}
    return compared(values(one, "twin", name), nulls, one.chance[name], is_more=True, put=mean_put)


QUESTIONS: tuple[tuple[str, Callable[[Any], Answer]], ...] = (
    ("Do tokens turn towards each other (mean cosine)?", gather),
    ("As much as the theory has it, in the end (error of the mean cosine)?", as_much_in_the_end),
    ("The same, mean over layers?", as_much_on_the_way),
    ("In the end, few groups or many?", few),
    ("Is each token where the theory has it (turn)?", near),
    ("Does the same token lead (share of layers; special tokens count)?", leads_any),
    ("And among words (special tokens left out)?", leads),
    ("Are the same tokens together (order of cosines)?", together),
)


def answered(one: Any) -> list[Answer]:
    """All questions to one model, with the p of all their tests corrected together."""
    answers = [answer(one) for _, answer in QUESTIONS]
    for (answer, name), p in corrected(answers).items():
        answer.p[name] = p
    return answers


def corrected(answers: Sequence[Answer]) -> dict[tuple[Answer, str], float]:
    """The p of every test behind these answers, after Holm."""
    tests = {(answer, name): test.p for answer in answers for name, (_, test) in answer.beside.items() if test is not None}
    return dict(zip(tests, (float(p) for p in holm(list(tests.values()))), strict=True))


def least_p(sets: Sequence[Sequence[Answer]]) -> float:
    """The least corrected p of what is better, or worse, in just so many sentences that the rule holds."""
    return min((answer.p[name] for answers in sets for answer in answers for name, (_, test) in answer.beside.items()
                if test is not None and test.ties == 0 and MANY in (test.wins, test.losses)), default=float("nan"))


def said(answer: Answer) -> str:
    """The grade, with the nulls that do as well where that decides."""
    if answer.word != "no evidence":
        return answer.word
    return f"no evidence: {'both nulls do' if len(answer.same) == len(NULLS) else TITLES[answer.same[0]] + ' do'} as well"
