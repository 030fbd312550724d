"""The claims, and the spoils that break them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import binomtest, combine_pvalues, fisher_exact, kstest, mannwhitneyu

from attnlab.analysis.intervals import wilson_interval
from attnlab.analysis.significance import holm
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, shifted

from .experiment import TAIL

LEVEL = 0.05
"""Of a family of tests, after Holm's correction."""
NOT_COMPARED = "slides and paper show one model and compare with no chance"
AFTERWARDS = (
    "Asked after the table of heads had been seen, and tested on the same heads: to be confirmed on"
    " other models."
)
QUESTIONS = {
    "good": "good triples",
    "positive": "positive leading eigenvalues",
    "complex": "complex leading pairs",
    "score": "⟨Qφ₁, Kφ₁⟩ > 0",
    "size": "|λ₁| above 97.5 % of chance",
}


def corrected(values: dict[Any, float]) -> dict[Any, float]:
    """p-values by name, corrected for their number."""
    return dict(zip(values, holm(list(values.values())).tolist(), strict=True))


def hits(heads: Any, question: str) -> np.ndarray:
    """For which heads the answer is yes."""
    verdicts = heads["verdict"].values
    answers = {
        "good": verdicts == "good triple",
        "positive": np.isin(verdicts, ["good triple", "positive"]),
        "complex": verdicts == "complex",
        "score": heads["score"].values > 0,
        "size": heads["rank"].values > 1 - TAIL,
    }
    return np.asarray(answers[question])


def answer(data: Data, question: str, name: str = "") -> tuple[int, int, float, float]:
    """(yes, heads, chance, binomial p) of a question to one model, or to all: then chance is the
    mean over the heads.

    Chance has its share of real leading eigenvalues; the signs of B and of Q are free.
    """
    heads, models = select(data["heads"], name=name) if name else data["heads"], data["models"]
    share = dict(zip(models["name"].values.tolist(), models["real"].values.tolist(), strict=True))
    real = np.array([share[one] for one in heads["name"].values.tolist()])
    by_chance: dict[str, Any] = {
        "good": real / 4,
        "positive": real / 2,
        "complex": 1 - real,
        "score": 0.5,
        "size": TAIL,
    }
    chance = float(np.mean(by_chance[question]))
    yes, total = int(hits(heads, question).sum()), heads.sizes["head"]
    return yes, total, chance, float(binomtest(yes, total, chance).pvalue)


def directed(data: Data, question: str, p: float, side: int) -> float:
    """p where all heads together are on that side of chance (1 above, -1 below), else 1."""
    yes, total, chance, _ = answer(data, question)
    return p if side * (yes / total - chance) > 0 else 1.0


def by_depth(data: Data) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(model, ratios in the first half of its layers, in the second) of models whose layers
    differ.
    """
    heads = data["heads"]
    for name in dict.fromkeys(heads["name"].values.tolist()):
        here = select(heads, name=name, is_tied=0)
        depth, ratio = here["depth"].values, here["ratio"].values
        early, late = ratio[depth < 0.5], ratio[depth > 0.5]
        if len(early) and len(late):
            yield name, early, late


def pooled(data: Data) -> dict[str, float]:
    """p of each question to all heads, and of larger leading eigenvalues in deeper layers,
    corrected for their number.
    """
    values = {question: answer(data, question)[3] for question in QUESTIONS}
    halves = [float(mannwhitneyu(late, early).pvalue) for _, early, late in by_depth(data)]
    if halves:
        values["depth"] = float(combine_pvalues(halves).pvalue)
    return corrected(values)


def claims(data: Data) -> list[Claim]:
    """The chance is right, the eigenvalues are; sizes, signs and depth against chance."""
    return [*_of_method(data), *_of_pool(data), *_of_models(data)]


def _of_method(data: Data) -> list[Claim]:
    controls, models = data["controls"], data["models"]
    values: dict[Any, float] = {}
    for name, real in zip(
        models["name"].values.tolist(), models["real"].values.tolist(), strict=True
    ):
        here = select(controls, name=name)
        total = here.sizes["control"]
        values[name, "size"] = float(kstest(here["rank"].values, "uniform").pvalue)
        values[name, "real"] = float(
            binomtest(int(here["is_real"].values.sum()), total, real).pvalue
        )
        values[name, "score"] = float(
            binomtest(int((here["score"].values > 0).sum()), total, 0.5).pvalue
        )
    return [
        Claim(
            text=(
                "|λ₁| of every head by Arnoldi's iteration, which only multiplies by W_O and W_V,"
                " and from the small matrix: largest relative difference."
            ),
            measured=float(data["heads"]["off"].values.max()),
            low=0,
            high=1e-6,
            because="two algorithms for one number",
        ),
        Claim(
            text=(
                f"Chance is right: of {controls.sizes['control']} heads whose whole Gaussian"
                " matrices are drawn, the sizes, the share of real leading eigenvalues and the"
                f" sign of the score agree with chance: smallest p, corrected for {len(values)}"
                " tests."
            ),
            measured=min(corrected(values).values()),
            low=0.01,
            high=1,
            because=(
                "chance is drawn from small matrices with the laws that Bartlett gives; heads of"
                " whole matrices must not differ"
            ),
        ),
    ]


def _of_pool(data: Data) -> list[Claim]:
    p, words = pooled(data), NOT_COMPARED
    because = (
        f"Holm's method, {len(p)} questions to the pool, five per cent in all; heads are taken as"
        " independent, which those of one model are not"
    )
    said = {question: _share(data, question) for question in QUESTIONS}
    low = wilson_interval(*answer(data, "score")[:2])[0]
    good, total, chance, _ = answer(data, "good")
    least, most = wilson_interval(good, total)
    made = [
        Claim(
            text=(
                "Good triples are as frequent as by chance, all heads together: the share that"
                " chance gives lies in the 95 % interval of the share that is seen."
            ),
            measured=chance,
            quantity="share of good triples by chance",
            expected=f"{good / total:.3g}, {least:.3g} to {most:.3g}, as seen",
            published=words,
            low=least,
            high=most,
            because=(
                f"Wilson's interval for {good} of {total}, as if heads were independent; those of"
                " one model are not, which makes it wider still"
            ),
            differs=(
                f"{said['good']} A share half again as large would fit as well."
                if most > 1.5 * chance
                else said["good"]
            ),
        ),
        Claim(
            text="Positive leading eigenvalues are more frequent than by chance: p, corrected.",
            measured=directed(data, "positive", p["positive"], 1),
            published=words,
            low=0,
            high=LEVEL,
            because=because,
            differs=said["positive"],
        ),
        Claim(
            text="Complex leading pairs are rarer than by chance: p, corrected.",
            measured=directed(data, "complex", p["complex"], -1),
            published=words,
            low=0,
            high=LEVEL,
            because=because,
            differs=said["complex"],
        ),
        Claim(
            text="Leaders are larger than those of random factors of the same norms: p, corrected.",
            measured=directed(data, "size", p["size"], 1),
            published=words,
            low=0,
            high=LEVEL,
            because=because,
            differs=f"Above 97.5 % of chance: {said['size']}",
        ),
        Claim(
            text=(
                "⟨Qφ₁, Kφ₁⟩ > 0 more often than in one half of the heads: lower end of the 95 %"
                " interval of the share."
            ),
            measured=low,
            published=words,
            low=0.5,
            high=1,
            because="for Gaussian factors −Q is as likely as Q, whatever the leading eigenvalue",
            differs=f"{said['score']} Corrected p = {p['score']:.2g}.",
        ),
    ]
    if "depth" in p:
        medians = {
            name: (np.median(early), np.median(late)) for name, early, late in by_depth(data)
        }
        is_deeper = all(early < late for early, late in medians.values())
        deeper = ", ".join(
            f"{name} {early:.2f} and {late:.2f}" for name, (early, late) in medians.items()
        )
        made.append(
            Claim(
                text=(
                    "Deeper layers have larger leading eigenvalues, where layers are not tied: p,"
                    " two-sided, corrected."
                ),
                measured=p["depth"] if is_deeper else 1.0,
                published=words,
                low=0,
                high=LEVEL,
                because=(
                    f"{because}; rank sums of the two halves of the layers of each model, combined"
                    " by Fisher's method"
                ),
                differs=f"Medians of both halves, random factors = 1: {deeper}. {AFTERWARDS}",
            )
        )
    return made


def _share(data: Data, question: str) -> str:
    yes, total, chance, _ = answer(data, question)
    is_drawn = question in (
        "good",
        "positive",
        "complex",
    )  # signs of scores are a coin, and sizes have their TAIL
    draws = f" ({data['models'].attrs['draws']} random heads for each model)" if is_drawn else ""
    return f"{yes} of {total} heads, {yes / total:.0%}; by chance {chance:.1%}{draws}."


def _of_models(data: Data) -> list[Claim]:
    heads, names = data["heads"], data["models"]["name"].values.tolist()
    p = corrected(
        {
            (name, question): answer(data, question, name)[3]
            for name in names
            for question in QUESTIONS
        }
    )
    told = {
        question: sum(value <= LEVEL for (_, asked), value in p.items() if asked == question)
        for question in QUESTIONS
    }
    others = ", ".join(
        f"{QUESTIONS[question]}: {count}" for question, count in told.items() if question != "size"
    )
    score, positive, negative = (
        hits(heads, "score"),
        hits(heads, "positive"),
        heads["verdict"].values == "negative",
    )
    cells = [
        [int((score & which).sum()), int((~score & which).sum())] for which in (negative, positive)
    ]
    shares = [cell[0] / max(sum(cell), 1) for cell in cells]
    return [
        Claim(
            text=(
                "The size differs from chance in each model on its own: largest p of |λ₁| against"
                " chance, corrected."
            ),
            measured=max(value for (_, question), value in p.items() if question == "size"),
            published=NOT_COMPARED,
            low=0,
            high=LEVEL,
            because=f"Holm's method over {len(p)} tests, {len(QUESTIONS)} questions to each model",
            differs=(
                "Models that differ from chance by themselves in the other questions, of "
                f"{data['models'].sizes['model']}: {others}."
            ),
        ),
        Claim(
            text=(
                "Why good triples are not more frequent: scores are positive for negative leading"
                " eigenvalues rather than for positive ones. Fisher's p."
            ),
            measured=float(fisher_exact(np.array(cells))[1]) if shares[0] > shares[1] else 1.0,
            published=NOT_COMPARED,
            low=0,
            high=0.01,
            because=(
                "for Gaussian factors the sign of the score is independent "
                "of that of the leading eigenvalue"
            ),
            differs=(
                f"Positive scores: {cells[0][0]} of {sum(cells[0])} negative leading "
                f"eigenvalues, {cells[1][0]} of {sum(cells[1])} positive ones. {AFTERWARDS}"
            ),
        ),
    ]


def _gaussian(heads: Any) -> None:
    """As if nothing had been trained: sizes anywhere in chance, signs by the coin, no depth."""
    rng, count = np.random.default_rng(0), heads.sizes["head"]
    heads["rank"] = ("head", rng.random(count))
    heads["ratio"] = ("head", rng.uniform(0.9, 1.2, count))
    heads["score"] = ("head", rng.normal(size=count))
    heads["verdict"] = (
        "head",
        rng.choice(
            ["good triple", "positive", "negative", "complex"], count, p=[0.1, 0.1, 0.2, 0.6]
        ),
    )


spoils = {
    "nothing was trained": changed("heads", _gaussian),
    "all called good triples": constant("heads", "verdict", "good triple"),
    "eigenvalues in half precision": shifted("heads", "off", 1e-3),
    "chance from symmetric matrices": constant("models", "real", 1.0),
}
