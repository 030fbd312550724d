"""Kinds of leading eigenvalues and sizes of numbers, against Gaussian factors of the same shapes
and norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binomtest, fisher_exact

from attnlab.analysis.intervals import wilson_interval as interval
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import Spoil, changed, constant, dropped, replaced
from attnlab.models.studies.shares import CLASSES, shares_of

TAIL = 0.025
KINDS = ("good triple", "negative", "complex")
CHANCE = "Gaussian factors of the same shapes and Frobenius norms"


def frames_of(data: Data) -> list[Any]:
    """The heads of each model as a DataFrame, with the facts of the model as attributes, as
    `spectra` has them.
    """
    heads, found = data["heads"].to_dataframe(), []
    for facts in data["models"].to_dataframe().to_dict("records"):
        frame = heads[heads["model"] == facts["model"]].copy()
        chance = {name: facts[name] for name in CLASSES}
        frame.attrs = {
            **facts,
            "null_shares": {
                **chance,
                "positive": chance["positive leader"] - chance["good triple"],
                "zero": 0.0,
            },
        }
        found.append(frame)
    return found


def pooled(frames: Sequence[Any], name: str) -> tuple[int, int, float]:
    """(heads of a class, heads, chance weighted by the models' numbers of heads)."""
    total = sum(len(frame) for frame in frames)
    return (
        sum(shares_of(frame)[name] for frame in frames),
        total,
        sum(len(frame) * frame.attrs["null_shares"][name] for frame in frames) / total,
    )


def beyond(frame: Any, name: str) -> tuple[float, float]:
    """The shares of a model's heads whose number is below and above 95 % of chance."""
    quantile = frame[f"{name}_quantile"]
    return float(np.mean(quantile < TAIL)), float(np.mean(quantile > 1 - TAIL))


def claims(data: Data) -> list[Claim]:
    """Sizes, kinds and signs."""
    frames = frames_of(data)
    good, total, chance = pooled(frames, "good triple")
    pairs, _, pairs_chance = pooled(frames, "complex")
    large = {frame.attrs["model"]: beyond(frame, "lambda1")[1] for frame in frames}
    normal = {frame.attrs["model"]: beyond(frame, "non_normality")[0] for frame in frames}
    counts = [
        len(frame) - frame.attrs["heads"] * (1 if frame.attrs["is_tied"] else frame.attrs["layers"])
        for frame in frames
    ]
    p, note = _score_signs(frames)
    return [
        Claim(
            text="Every head is measured, of tied layers once: heads too many or too few.",
            measured=float(np.abs(counts).sum()),
            low=0,
            high=0,
            because="heads per layer, times the layers that differ",
        ),
        Claim(
            text=(
                "Leading eigenvalues are larger than those of random heads: share above 97.5 % of"
                " chance, the smallest of all models."
            ),
            measured=min(large.values()),
            low=0.5,
            high=1.0,
            quantity="share",
            expected="far above 2.5 %",
            because=f"{CHANCE} would have 2.5 %; more than half",
            differs=_words(large),
        ),
        Claim(
            text=(
                "V is nearer to normal than random heads: share below 2.5 % of chance, the smallest"
                " of all models."
            ),
            measured=min(normal.values()),
            low=0.5,
            high=1.0,
            quantity="share",
            expected="far above 2.5 %",
            because=f"{CHANCE} would have 2.5 %; more than half",
            differs=_words(normal),
        ),
        Claim(
            text="Good triples are not rarer than by chance, over all models: the 95 % interval.",
            measured=interval(good, total)[1],
            low=chance,
            high=1.0,
            quantity="good triples",
            value=good / total,
            interval=interval(good, total),
            sample=f"95 %, {total} heads",
            expected=f"at least {chance:.2g}",
            because=f"{CHANCE}; upper end of Wilson's interval, as if heads were independent",
            differs=_good_words(frames, binomtest(good, total, chance).pvalue),
        ),
        Claim(
            text="Complex leading pairs are rarer than by chance: two-sided binomial p.",
            measured=(
                float(binomtest(pairs, total, pairs_chance).pvalue)
                if pairs / total < pairs_chance
                else 1.0
            ),
            low=0.0,
            high=0.05,
            quantity="complex pairs",
            value=pairs / total,
            interval=interval(pairs, total),
            sample=f"95 %, {total} heads",
            expected=f"less than {pairs_chance:.2g}",
            because=f"{CHANCE}; five per cent",
        ),
        Claim(
            text=(
                "Good triples, negative leading eigenvalues and complex pairs occur inside each"
                " model: kinds, the fewest."
            ),
            measured=float(min(len(set(KINDS) & set(frame["verdict"])) for frame in frames)),
            low=3,
            high=3,
            because="all three",
        ),
        Claim(
            text=(
                "Where layers differ, scores of φ₁ are positive for negative leading eigenvalues"
                " rather than for positive ones: Fisher's p."
            ),
            measured=p,
            low=0.0,
            high=0.01,
            because=(
                "by chance the sign of the score knows nothing of that of the leading eigenvalue"
            ),
            differs=(
                f"{note} Asked after the tables of minilm and stories15m had been seen; other models"
                " came later."
            ),
        ),
    ]


def _score_signs(frames: Sequence[Any]) -> tuple[float, str]:
    """(p of untied models, 1 where positive leading eigenvalues have more positive scores; the
    counts of both sorts, and of each untied model, in words).
    """
    sorts = [
        (words, [frame for frame in frames if frame.attrs["is_tied"] == is_tied])
        for is_tied, words in ((0, "Layers that differ"), (1, "Tied layers"))
    ]
    untied = sorts[0][1]
    if len(untied) > 1:
        sorts += [(str(frame.attrs["model"]), [frame]) for frame in untied]
    p, said = 1.0, []
    for words, chosen in sorts:
        (plus, of_plus), (minus, of_minus) = _positive_scores(chosen)
        if of_plus and of_minus:
            found = float(
                fisher_exact(np.array([[plus, of_plus - plus], [minus, of_minus - minus]])).pvalue
            )
            said.append(
                f"{words}: positive scores of {plus} of {of_plus} positive and {minus} of"
                f" {of_minus} negative leading eigenvalues, p = {found:.2g}."
            )
            if chosen is untied:
                p = found if minus / of_minus > plus / of_plus else 1.0
    return p, " ".join(said)


def _positive_scores(frames: Sequence[Any]) -> list[tuple[int, int]]:
    """(heads with a positive score, heads) with a positive and with a negative leading
    eigenvalue.
    """
    cells = []
    for sign in (1, 0):
        rows = [frame[(frame["is_real"] == 1) & (frame["is_positive"] == sign)] for frame in frames]
        cells.append(
            (sum(int((part["score"] > 0).sum()) for part in rows), sum(len(part) for part in rows))
        )
    return cells


def _words(shares: dict[str, float]) -> str:
    return ", ".join(f"{model} {share:.0%}" for model, share in shares.items()) + "."


def _good_words(frames: Sequence[Any], p: float) -> str:
    said = [
        f"{frame.attrs['model']} {shares_of(frame)['good triple']} of {len(frame)}, by chance"
        f" {frame.attrs['null_shares']['good triple']:.0%}"
        for frame in frames
    ]
    return f"{'; '.join(said)}. All together: two-sided binomial p = {p:.2g}."


def by_chance(name: str) -> Spoil:
    """A spoil: ranks of a number as if nothing had been learned."""
    return replaced(
        "heads", f"{name}_quantile", lambda values: np.random.default_rng(0).random(len(values))
    )


def _drawn(heads: Any) -> None:
    """Kinds and scores as chance would have them."""
    rng, count = np.random.default_rng(0), heads.sizes["head_row"]
    heads["verdict"] = (
        "head_row",
        rng.choice(
            ["good triple", "positive", "negative", "complex"], count, p=[0.1, 0.1, 0.2, 0.6]
        ),
    )
    heads["score"] = ("head_row", rng.normal(size=count))


spoils = {
    "sizes by chance": by_chance("lambda1"),
    "shapes by chance": by_chance("non_normality"),
    "kinds by chance": changed("heads", _drawn),
    "all called good triples": constant("heads", "verdict", "good triple"),
    "all called negative": constant("heads", "verdict", "negative"),
    "a head is lost": dropped("heads"),
}
