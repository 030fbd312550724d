"""What the theory says about a trained model, and what the model does: one question per row.

    for one in findings(dossier): print(one.question, one.outcome, one.because)

The questions about stacks are judged by the rule of `grades`: exact sign tests over the sentences
and over several stacks with random weights. Fewer than six sentences are no test, so then a finding
is about these sentences: all of them must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.analysis.intervals import wilson_interval
from attnlab.analysis.significance import sign_test
from attnlab.displayed import VERBS, Displayed, short_repr
from attnlab.models.studies.dossier import Dossier
from attnlab.models.studies.grades import (
    NULLS,
    Answer,
    Stacks,
    gather,
    groups_at,
    is_better,
    lead_words,
    place,
)
from attnlab.models.studies.sentences import TITLES

if TYPE_CHECKING:
    import xarray

OUTCOMES = {
    "right": "right",
    "in part": "in part",
    "no evidence": "no evidence",
    "not right": "wrong",
}
"""{grade: outcome}."""

TURN_WORDS = (
    (0.02, "the same direction"),
    (0.15, "nearly the same direction"),
    (0.3, "near"),
    (0.7, "far"),
    (1.3, "unrelated"),
)
COSINE_WORDS = (
    (0.05, "without a common direction"),
    (0.3, "mostly spread"),
    (0.6, "somewhat alike"),
    (0.9, "much alike"),
)
"""Conventions: a word for numbers up to a bound, in tables. No verdict depends on them."""


@dataclass(frozen=True)
class Finding(Displayed):
    """One question: the answers of the theory, of this model and of models with random weights, and
    the outcome.

    outcome: "right", "in part", "wrong", "no evidence" (random weights do as well), or "scope" (what
    the theory is about).
    """

    question: str
    theory: str
    model: str
    null: str
    outcome: str
    because: str
    __repr__ = short_repr
    instead = dict.fromkeys(VERBS, "It is text. Print it, or write it to a file.")


def findings(found: Dossier) -> list[Finding]:
    """Return every question with its answers. Medians are over the sentences."""
    return [
        _inside(found),
        *_beside_the_theory(found),
        *_tied(found),
    ]


def say_dossier(found: Dossier) -> list[str]:
    """Describe a dossier: each question with the answers of the theory, of the model and of the
    nulls.
    """
    return [
        f"{one.question} {one.outcome.capitalize()}. Theory: {one.theory.rstrip('.')}. Model:"
        f" {one.model.rstrip('.')}."
        + (f" Weights that learned nothing: {one.null.rstrip('.')}." if one.null else "")
        for one in findings(found)
    ]


def _beside_the_theory(found: Dossier) -> list[Finding]:
    """Compare the idealised model with the real stack, or say why it cannot be compared."""
    one = found.stacks
    if one is not None:
        return [_gathering(one), _groups(one, found), _place(one), _leaders(one)]
    stopped = [data.attrs["stopped"] for data in found.sentences if "stopped" in data.attrs]
    real, *nulls = (
        float(np.median([last_numbers(data, name, "cosine") for data in found.sentences]))
        for name in ("real", *NULLS)
    )
    return [
        Finding(
            "Do the tokens end where the theory says?",
            f"It is not known in {len(stopped)} of {len(found.sentences)} sentences.",
            f"mean cosine {real:.2f} at the end",
            _of_nulls(nulls, "{:.2f}"),
            "scope",
            f"{stopped[0]} Large matrices without a norm do this.",
        )
    ]


def _inside(found: Dossier) -> Finding:
    frame = found.spectra
    total, good = len(frame), int((frame["verdict"] == "good triple").sum())
    low, high = wilson_interval(good, total)
    chance = frame.attrs["null_shares"]["good triple"]
    word = "as many as" if low <= chance <= high else "more than" if chance < low else "fewer than"
    return Finding(
        "How many heads are inside the theorem?",
        "It is about good triples only.",
        f"{good} of {total} heads ({good / total:.0%})",
        f"{chance:.0%} of {frame.attrs['null_draws']} random heads",
        "scope",
        f"{word} chance gives (95 % interval of the share: {low:.0%} to {high:.0%}). For the other "
        f"{total - good} heads the theorem says nothing.",
    )


def _gathering(one: Stacks) -> Finding:
    first, real, idealised, *nulls = (
        one.middle(name, "cosine") for name in ("embedding", "real", "twin", *NULLS)
    )
    answer = gather(one)
    because = {
        "right": "they do as the theory says, and more than in the stacks with random weights.",
        "no evidence": (
            f"they do as the theory says, but {_who(answer)} do so as much: no sign of learning."
        ),
        "not right": "the model and the idealised model do not go the same way in the sentences.",
    }[answer.word]
    return Finding(
        "Do the tokens turn towards each other?",
        f"{'Yes' if idealised > first else 'No'}: the mean cosine of pairs goes from {first:.2f} to"
        f" {idealised:.2f}.",
        f"from {first:.2f} to {real:.2f}",
        _of_nulls(nulls, "to {:.2f}"),
        OUTCOMES[answer.word],
        because,
    )


def _groups(one: Stacks, found: Dossier) -> Finding:
    sizes, answer = one.values("real", "n"), groups_at(one)

    def words(name: str) -> str:
        pairs = zip(one.values(name, "clusters"), sizes, strict=True)
        return ", ".join(f"{count:.0f} of {n:.0f}" for count, n in pairs)

    scale = found.sentences[0].attrs["cosine_scale"]
    return Finding(
        f"Do the tokens end in as few groups (cosine {scale:g})?",
        f"{words('twin')} tokens.",
        words("real"),
        _of_nulls([words(name) for name in NULLS], "{}"),
        OUTCOMES[answer.word],
        because(answer, "the embedding, left as it is,"),
    )


def _place(one: Stacks) -> Finding:
    turn, answer = one.middle("twin", "turn"), place(one)
    between = float(np.median(1 - one.values("real", "cosine")))
    others = {
        name: one.middle(name, "turn")
        for name in ("no_mlp", "no_norm", "attention_only", "no_mask")
        if name in set(one.rows["variant"])
    }
    others = {name: value for name, value in others.items() if value > 1e-9 and np.isfinite(value)}
    nearest = min(others, key=lambda name: others[name]) if others else ""
    tail = (
        f" Of the parts that can be left out, {TITLES[nearest]} changes least"
        f" ({others[nearest]:.2f})."
        if nearest
        else ""
    )
    return Finding(
        "Is each token where the theory says?",
        "The idealised model starts from the same tokens, turn 0.",
        f"turn {turn:.2f} at the end: {turn_word(turn)}. Two tokens of the model are {between:.2f}"
        " apart.",
        _of_nulls([one.middle(name, "turn") for name in NULLS], "{:.2f}"),
        OUTCOMES[answer.word],
        because(answer, "the embedding, left as it is,", "another token of the sentence is nearer")
        + tail,
    )


def _leaders(one: Stacks) -> Finding:
    idealised, *nulls = (one.values(name, "word_leader").mean() for name in ("twin", *NULLS))
    question = "Do the same words lead (receive most attention)?"
    theory = "The leaders of the idealised model, layer by layer."
    if not np.isfinite(idealised):
        why = "the model has one layer, and the first layer reads the same tokens in every stack"
        return Finding(question, theory, why, "", "scope", "One layer cannot tell.")
    answer, guess = lead_words(one), float(one.chance["word_leader"].mean())
    return Finding(
        question,
        theory,
        f"the same in {idealised:.0%} of the layers after the first (special tokens left out)",
        f"{_of_nulls(nulls, '{:.0%}')}; a guess {guess:.0%}",
        OUTCOMES[answer.word],
        because(answer, "a guess"),
    )


def because(answer: Answer, guess: str, far: str = "") -> str:
    """Return the reason of a grade in words. guess: the name of the trivial guess. far: what else
    keeps an answer from being right.
    """
    if answer.word == "right":
        return f"better than the stacks with random weights, and than {guess.rstrip(',')}."
    if answer.word == "in part":
        test = answer.beside["trivial"].test
        rest = far if test is not None and is_better(test) else f"{guess} is as good or better"
        return f"better than the stacks with random weights, but {rest}."
    if answer.word == "no evidence":
        return f"{_who(answer)} do as well or better."
    return f"{_who(answer)} do as well or better, and so does {guess.rstrip(',')}."


def _who(answer: Answer) -> str:
    """Name the stacks with random weights that do as well; "" for none."""
    if len(answer.same) == len(NULLS):
        return "both kinds of random weights"
    return "".join(TITLES[null] for null in answer.same)


def _of_nulls(values: Sequence[Any], shape: str) -> str:
    """Format the values of the two nulls: random weights of trained size, then untrained ones."""
    return "; untrained ".join(shape.format(value) for value in values)


def _tied(found: Dossier) -> list[Finding]:
    """Judge a tied layer beside random ones, each after as many layers as the random one was
    followed.
    """
    rows = []
    for data in found.tied:
        clusters, nulls = data["clusters"].values, found.tied_null
        n, start, count = data.sizes["token"], int(clusters[0]), int(clusters[-1])
        of_nulls = np.array([float(null["clusters"].values[-1]) for null in nulls])
        at_rest = [null.attrs["outcome"] in ("settled", "cycle") for null in nulls]
        own = [
            clusters[-1 if rests else min(int(null.attrs["steps"]), len(clusters) - 1)]
            for null, rests in zip(nulls, at_rest, strict=True)
        ]
        outcome = (
            "wrong"
            if count >= start
            else "right"
            if is_better(sign_test(of_nulls, own))
            else "no evidence"
        )
        reason = {
            "wrong": "it does not.",
            "right": "it does, and further than layers with random weights.",
            "no evidence": "it does, but so do layers with random weights.",
        }[outcome]
        steps = max(int(null.attrs["steps"]) for null in nulls)
        low, high = int(of_nulls.min()), int(of_nulls.max())
        rows.append(
            Finding(
                "Does the tied layer gather the tokens when it is repeated?",
                "Yes: there are fewer groups than at the start.",
                f"{start} groups of {n} tokens at the start, {count} after"
                f" {int(data.attrs['steps'])} layers, mean cosine"
                f" {float(data['cosine'].values[-1]):.2f}",
                f"{low if low == high else f'{low} to {high}'} after {steps} layers, in"
                f" {len(nulls)} random layer{'s' if len(nulls) > 1 else ''}",
                outcome,
                reason,
            )
        )
    return rows


def last_numbers(data: xarray.Dataset, variant: str, name: str) -> float:
    """Return a number of a variant at the depth of the real stack."""
    return float(data[name].sel(variant=variant).values[int(data.attrs["layers"])])


def same_leader(data: xarray.Dataset, variant: str) -> float:
    """Return the share of layers after the first in which the leading word is that of the real
    stack.

    The first layer reads the same tokens in every stack. Tokens that the model adds itself lead
    almost everywhere, for every sentence. They would agree easily, so they are left out.
    """
    layers = int(data.attrs["layers"])
    received = data["received"].values[:, 1:layers]  # (variants, layers - 1, n)
    leader = np.argmax(np.where(data["is_special"].values == 1, -1.0, received), axis=-1)
    row = list(data["variant"].values).index(variant)
    return (
        float(np.mean((leader[row] == leader[0])[np.isfinite(received[row]).all(axis=-1)]))
        if layers > 1
        else float("nan")
    )


def turn_word(turn: float) -> str:
    """Describe 1 - cosine between two directions."""
    return _word(turn, TURN_WORDS, "opposite")


def cosine_word(cosine: float) -> str:
    """Describe the mean cosine of pairs."""
    return _word(cosine, COSINE_WORDS, "almost one direction")


def _word(value: float, words: Sequence[tuple[float, str]], last: str) -> str:
    if np.isnan(value):
        return "not a number"
    return next((word for bound, word in words if value < bound), last)
