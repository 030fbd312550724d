"""Mean cosines and ranks over the layers, turns from the real stack, the tied layer again and
again; tables of all grades.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from attnlab.analysis.significance import Sign
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.models.studies.agreement import SCALES
from attnlab.models.studies.grades import NULLS, QUESTIONS, Answer, Stacks, groups_at
from attnlab.models.studies.sentences import COSINE, TITLES
from attnlab.render.sentence_figure import LOOKS
from attnlab.render.style import (
    HULL,
    INK,
    NOTE,
    PALETTE,
    RULE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import all_answers, stacks_of
from .experiment import IDEALISED

SHOWN = ("real", "twin", "no_mlp", "random", "untrained")
DEPTH_ROWS = {"cosine": "mean cosine of pairs", "rank": "effective rank / tokens"}
TURNS = (
    "embedding",
    "no_mlp",
    "no_norm",
    "attention_only",
    "no_mask",
    "tied",
    "twin",
    "random",
    "untrained",
)
ORDER = (
    "real",
    "embedding",
    "no_mlp",
    "no_norm",
    "attention_only",
    "no_mask",
    "tied",
    "twin",
    *NULLS,
)


def figures(data: Data) -> dict[str, Any]:
    """Three figures; the last one where a model with tied layers is there."""
    found = {model: stacks_of(data, model) for model in map(str, data["models"]["model"].values)}
    with house_style():
        drawn = {"sentences_survey": draw_depth(found), "turn": draw_turn(found)}
        return drawn | ({"tied": draw_tied(data)} if "tied" in data else {})


def draw_depth(found: dict[str, Stacks]) -> Any:
    """Cosines and ranks over the layers, a column for each model: medians over the sentences and
    their ranges.
    """
    figure = new_figure(9.6, 5.9)
    panels = figure.subplots(len(DEPTH_ROWS), len(found), sharey="row", sharex="col", squeeze=False)
    for column, (model, one) in enumerate(found.items()):
        for row, (name, words) in enumerate(DEPTH_ROWS.items()):
            axes = panels[row, column]
            for variant in SHOWN:
                values = one.steps(variant, name).mean(axis=1)  # (sentences, steps)
                steps = np.arange(values.shape[1])
                colour, width, dashes = LOOKS[variant]
                axes.fill_between(
                    steps,
                    values.min(axis=0),
                    values.max(axis=0),
                    color=colour,
                    alpha=0.13,
                    linewidth=0,
                )
                axes.plot(
                    steps,
                    np.median(values, axis=0),
                    color=colour,
                    linewidth=max(width, 1.8),
                    linestyle=dashes,
                    label=TITLES[variant],
                )
            axes.set(
                xlim=(0, steps[-1]),
                ylim=(-0.02, 1.04),
                **({"xlabel": "layer"} if row else {"title": model}),
            )
            dress_flat(axes)
            if column == 0:
                axes.set_ylabel(words)
    panels[1, 0].legend(loc="lower left", frameon=False, fontsize=8.5)
    title(
        figure,
        "Do the tokens gather? The real stack, the theory, and weights that learned nothing",
        "Lines: medians over ten sentences; bands: their ranges. 0 is the embedding. Idealised"
        " model: the theory's flow with the model's own attention matrices. Random weights have the"
        " sizes of the model's matrices, untrained ones those before training: means over stacks.",
    )
    return figure


def draw_turn(found: dict[str, Stacks]) -> Any:
    """How far each stack ends from the real one: one dot per sentence, the median as a bar."""
    figure = new_figure(9.6, 4.1)
    panels = figure.subplots(1, len(found), sharey=True, sharex=True, squeeze=False)[0]
    names = {**TITLES, "embedding": "embedding, untouched", "tied": "layer 0 tied"}
    for axes, (model, one) in zip(panels, found.items(), strict=True):
        for place, variant in enumerate(TURNS):
            axes.axhline(place + 0.5, color=RULE, linewidth=0.5, zorder=1)
            values = one.values(variant, "turn")
            if variant != "embedding" and np.nanmax(np.abs(values)) < 1e-9:
                axes.text(0.06, place, "the real stack itself", va="center", fontsize=8, color=NOTE)
                continue
            colour = {"embedding": INK, "twin": PALETTE[1], "random": HULL, "untrained": HULL}.get(
                variant, PALETTE[0]
            )
            axes.scatter(
                values,
                place + np.linspace(-0.2, 0.2, len(values)),
                s=12,
                color=colour,
                alpha=0.65,
                linewidths=0,
                zorder=3,
            )
            axes.vlines(
                np.nanmedian(values),
                place - 0.36,
                place + 0.36,
                color=colour,
                linewidth=2.2,
                zorder=4,
            )
        axes.axvline(1.0, color=NOTE, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
        axes.set(
            title=model,
            xlabel="turn from the real stack",
            xlim=(0.0, 1.45),
            ylim=(len(TURNS) - 0.5, -0.5),
        )
        dress_flat(axes)
        axes.set_yticks(range(len(TURNS)), [names[variant] for variant in TURNS])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    title(
        figure,
        "Where each token ends, beside where the real stack has it",
        "Dots: sentences (of random and untrained weights means over stacks); upright bars: their"
        " medians. Turn: 1 - cosine, mean over tokens; 0 is the same direction, 1 (dashed) an"
        " unrelated one. Embedding: the guess that the stack does nothing."
        + "".join(
            f" {' and '.join(TITLES[piece] for piece in one.inert).capitalize()} of {model} "
            "hardly move from it."
            for model, one in found.items()
            if one.inert
        ),
    )
    return figure


def draw_tied(data: Data) -> Any:
    """The tied layer again and again: mean cosines and groups, of the model and of its nulls, one
    line per sentence.
    """
    curves = data["tied_curves"].to_dataframe()
    model = str(curves["model"].iloc[0])
    depth = int(select(data["models"], model=model)["layers"].values[0])
    looks = [
        *((null, HULL, 0.8, LOOKS[null][2], TITLES[null]) for null in NULLS),
        (IDEALISED, PALETTE[1], 0.8, "solid", TITLES[IDEALISED]),
        ("", PALETTE[0], 1.2, "solid", "its own layer"),
    ]
    figure = new_figure(9.6, 3.9)
    panels = figure.subplots(1, 2)
    for null, colour, width, dashes, words in looks:
        lines = curves[curves["null"] == null].groupby(["sentence_number", "seed"])
        for number, (_, line) in enumerate(lines):
            options = {
                "color": colour,
                "linewidth": width,
                "alpha": 0.4 if null else 0.9,
                "linestyle": dashes,
                "label": words if number == 0 else None,
            }
            steps = np.maximum(line["step"], 0.7)
            panels[0].plot(steps, line["cosine"], **options)
            panels[1].step(steps, line["share"], where="post", **options)
    for axes, words in zip(
        panels, ("mean cosine of pairs", f"groups / tokens (cosine {COSINE:g})"), strict=True
    ):
        axes.axvline(depth, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.set(xscale="log", xlabel="times the layer was applied", ylim=(-0.02, 1.04))
        axes.set_xlim(0.7, curves["step"].max())
        axes.set_title(words, loc="left")
        dress_flat(axes)
        axes.set_xticks([0.7, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
        axes.minorticks_off()
    panels[0].legend(frameon=False, fontsize=8.5, loc="lower right")
    title(
        figure,
        f"{model}: its one layer, again and again",
        "A line for each of ten sentences, and for the same with layers of random and of untrained"
        f" weights, and with the idealised model. Upright: the depth of the model, {depth}. Groups: tokens that a chain of"
        f" cosines of {COSINE:g} or more joins.",
    )
    return figure


def tables(data: Data) -> dict[str, Any]:
    """{heading: (legend, columns, rows)} for the page."""
    answers = all_answers(data)
    rows = [
        [f"{at + 1}. {question}", *(str(each[at]) for each in answers.values())]
        for at, (question, _) in enumerate(QUESTIONS)
    ]
    found = {
        "Grades": (
            "One row per question; the rule is on the page of [sentences](../sentences.md).",
            ["question", *(f"{model}, {which}" for model, which in answers)],
            rows,
        )
    }
    found["Groups at other cosines"] = _at_scales(data, answers)
    for (model, which), each in answers.items():
        found[f"{model}, {which} sentences: what the grades are made of"] = made_of(each)
    for model in dict.fromkeys(model for model, _ in answers):
        found[f"{model}: the numbers"] = _numbers(data, model)
    return found | ({"One layer, again and again": _tied(data)} if "tied" in data else {})


def _at_scales(data: Data, keys: Any) -> Any:
    """The answer to question 4 for groups at other cosines."""
    rows = []
    for model, which in keys:
        one = stacks_of(data, model, which)
        names = [f"clusters_{100 * scale:.0f}" for scale in SCALES]
        cells = [
            f"{groups_at(one, name)} ({one.middle('real', name) / one.middle('real', 'n'):.2f},"
            f" {one.middle('twin', name) / one.middle('real', 'n'):.2f})"
            for name in names
        ]
        rows.append([f"{model}, {which}", *cells])
    return (
        (
            "Does question 4 depend on the cosine at which groups are counted? One row per model and"
            " set of sentences, one column per cosine: the grade, and in brackets the groups over"
            " the tokens in the real stack and in the idealised model (medians)."
        ),
        ["model, sentences", *(f"cosine {scale:g}" for scale in SCALES)],
        rows,
    )


def made_of(answers: list[Answer]) -> Any:
    """What the grades of one set are made of."""

    def cell(answer: Answer, name: str) -> str:
        number, test, stacks = answer.beside[name]
        if test is None:
            return number
        ties = f", {test.ties} tie{'s' if test.ties > 1 else ''}" if test.ties else ""
        of_stacks = f"; stacks {_wins(stacks)}" if stacks is not None else ""
        return f"{number}: {_wins(test)}{ties}, p = {answer.p[name]:.2g}{of_stacks}"

    rows = [
        [
            f"{number}. {question}",
            str(answer),
            answer.theory,
            *(cell(answer, name) for name in (*NULLS, "trivial")),
        ]
        for number, ((question, _), answer) in enumerate(zip(QUESTIONS, answers, strict=True), 1)
    ]
    return (
        (
            "Medians over sentences, for leaders means; of nulls the mean over stacks first. After"
            " the colon: in how many sentences the idealised model (in the first row the real"
            " stack) is better, and p of the sign test after Holm. Stacks: of how many stacks of a"
            " null it is better, in the mean over sentences."
        ),
        ["question", "grade", "theory", *(TITLES[null] for null in NULLS), "trivial guess"],
        rows,
    )


def _wins(test: Sign) -> str:
    return f"{test.wins} of {test.wins + test.losses + test.ties}"


def spread(array: np.ndarray, digits: int = 2) -> str:
    """A median with its range, where there is one to these digits."""
    middle, low, high = (
        f"{value:.{digits}f}" for value in (np.median(array), array.min(), array.max())
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def _numbers(data: Data, model: str) -> Any:
    one = stacks_of(data, model)
    is_causal = bool(select(data["models"], model=model)["is_causal"].values[0])
    sizes, rows = one.values("real", "n"), []
    for variant in ORDER:
        if variant == "no_mask" and not is_causal:
            continue
        row = [
            {**TITLES, "embedding": "embedding"}[variant]
            + (" (inert)" if variant in one.inert else "")
        ]
        for name, share in (("cosine", 1.0), ("clusters", sizes), ("rank", sizes)):
            begin = np.median(one.values(variant, f"{name}_first") / share)
            row.append(
                ("" if np.isnan(begin) else f"{begin:.2f} → ")
                + spread(one.values(variant, name) / share)
            )
        if variant != "real":
            row.append(spread(one.values(variant, "turn")))
            row += [
                "–" if variant == "embedding" else f"{one.values(variant, name).mean():.0%}"
                for name in ("leader", "word_leader")
            ]
            row += [f"{one.middle(variant, name):.2f}" for name in ("groups", "order")]
        rows.append(row + [""] * (9 - len(row)))
    chance = {
        name: float(one.chance[name].mean())
        for name in ("leader", "word_leader", "blind", "groups")
    }
    added = {variant: one.values(variant, "special").mean() for variant in ("real", "twin", *NULLS)}
    return (
        f"The first ten sentences, {sizes.min():.0f} to {sizes.max():.0f} tokens: medians, in"
        " brackets the range; an arrow goes from after the first layer to the end. Groups and"
        " rank: of all tokens. From its place in the other sentences one guesses the leader in"
        f" {chance['leader']:.0%}, the leading word in {chance['word_leader']:.0%}, blindly in"
        f" {chance['blind']:.0%}. Shuffled groups agree by less than {chance['groups']:.2f} in 95"
        " %. The leader is a token that the model added, as a share of layers: "
        + ", ".join(f"{TITLES[variant]} {share:.0%}" for variant, share in added.items())
        + ".",
        [
            "stack",
            "mean cosine",
            "groups",
            "effective rank",
            "turn",
            "leader",
            "leading word",
            "same groups",
            "same order",
        ],
        rows,
    )


def _tied(data: Data) -> Any:
    tied, rows = data["tied"].to_dataframe(), []
    for null in ("", IDEALISED, *NULLS):
        part = tied[tied["null"] == null]
        settled, half = part[part["rate_high"] < 1], part["half"].dropna()
        leaders = [
            _counted(part[f"{when}_leader"]) if not null else "–" for when in ("first", "last")
        ]
        rows.append(
            [
                TITLES[null] if null else "its own",
                f"{part['steps'].max():.0f}",
                f"{spread(part['clusters'], 0)} of {np.median(part['n']):.0f}",
                spread(part["cosine"]),
                _counted(part["outcome"]),
                f"{np.median(half):.0f} ({len(half)} of {len(part)})" if len(half) else "–",
                (
                    f"{spread(settled['rate'], 3)} ({len(settled)} of {len(part)})"
                    if len(settled)
                    else "–"
                ),
                f"{part['same_of_joined'].mean():.0%} and {part['same_of_all'].mean():.0%}",
                f"{spread(part['first_lead'], 1)} and {spread(part['last_lead'], 1)}",
                *leaders,
            ]
        )
    return (
        (
            "One row per kind of layer. Layers: how long the longest was followed. Groups: of so many"
            " tokens. Half: layers until half as many"
            " groups as tokens are left. Factor: by which differences inside groups shrink in a"
            " layer, where its 95 % interval is below 1. Same symbol: share of pairs in one group,"
            " and of all pairs. Lead: attention that the leader receives, times the mean, at first"
            " and in the end; then the leaders."
        ),
        [
            "layer",
            "layers",
            "groups at the end",
            "mean cosine",
            "how it ends",
            "half",
            "factor",
            "same symbol",
            "lead",
            "first leaders",
            "last leaders",
        ],
        rows,
    )


def _counted(words: Any) -> str:
    return ", ".join(f"`{word}` {count}" for word, count in Counter(words).most_common())
