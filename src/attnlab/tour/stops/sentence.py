"""Stop 5: one sentence in a trained model, in its idealised model, and in models with random
weights.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.explorer.embed import WITH_SWITCH
from attnlab.explorer.trained import model_payload
from attnlab.models.studies.dossier_findings import (
    cosine_word,
    last_numbers,
    same_leader,
    turn_word,
)
from attnlab.models.studies.sentences import name_leaders, sentence, special_words
from attnlab.render.sentence_figure import draw_sentence
from attnlab.tour.context import Context
from attnlab.tour.record import Chapter, Row, Stop, Table, Text, left_out
from attnlab.tour.stops import stops

MODEL, SENTENCE = "minilm", "The cat sat on the mat because it was tired."
TOLD = {
    "real": "the model itself",
    "twin": "the idealised model",
    "random": "random weights",
    "untrained": "untrained weights",
}
PIECES = {"no_norm": "the model without norms", "no_mlp": "without feed-forward parts"}
NULLS = ("random", "untrained")
CLEARLY, NEAR = 0.05, 0.3
"""A mean cosine rises if it grows by more than the first; a token is near if 1 - cosine is below
the second.
"""

OPENING = (
    f"Now we take a whole model and an English sentence: “{SENTENCE}” Four machines get the same"
    " tokens. The first is the model itself: six complete layers. The second is the idealised"
    " model: the same Q, K and V in the equation of the first stop, with one unit of time per"
    " layer. It lives on a sphere, because the norms keep the tokens of the model on one too. The"
    " other two are models of the same shape with random weights: one with the sizes of the"
    " trained weights, one with the sizes before training. They have learned nothing. So if one of"
    " them does the same as the model, that is no sign of learning."
)


def tell(context: Context) -> Chapter:
    """Show the numbers of the machines, the leading words, and the questions that the theory
    answers correctly.
    """
    model, why = context.model(MODEL)
    if model is None:
        row = Row("sentence", "sentence", f"“{SENTENCE}” through {MODEL}.", "not here", found=why)
        return left_out(row, OPENING, f"{MODEL}, a small model of English sentences")
    begun = time.perf_counter()
    chosen = [name for name in (*TOLD, *PIECES) if name != "real"]
    data = sentence(
        model, SENTENCE, only=chosen, progress=context.progress.next_part(0.8, f"“{SENTENCE}”")
    )
    asked = answers(data)
    seconds = time.perf_counter() - begun
    rows = [
        Row(
            "sentence",
            f"sentence_{name}",
            f"{MODEL}, one sentence: {one.question}",
            one.verdict,
            one.theory,
            one.model,
            n=data.sizes["token"],
            d=model.config.d,
            seconds=seconds,
        )
        for name, one in asked.items()
    ]
    figure = draw_sentence(data)
    counts = {
        word: sum(one.verdict == word for one in asked.values())
        for word in ("right", "not so", "no evidence")
    }
    return Chapter(
        [
            Text(OPENING),
            context.draw(
                "sentence",
                figure,
                f"{SENTENCE} Cosines, groups, ranks and turns layer by layer in the four machines,"
                " and the tokens that receive the attention.",
                live=model_payload(data, hide=WITH_SWITCH, theme="light"),
            ),
            Text(
                "Above and in the middle: curves over the layers. Black is the model, orange the"
                " idealised model, grey the random weights (dashed: of trained size; dotted:"
                " untrained). In the idealised model the tokens turn until all of them point in one"
                " direction, as the theory says. In the real model they stay apart. Below: the"
                " tokens that receive attention in the real model, including [CLS] and [SEP]."
                " Mostly this is not a word but [CLS], a mark that the model puts in front of every"
                " sentence.",
                "What you see.",
            ),
            numbers(data),
            Text(
                "The leaders: the word that receives most attention in each layer, without [CLS]"
                " and [SEP]. Layers count from 0."
            ),
            leaders(data),
            Text(
                "Questions with the answers yes or no (turned away: 1 − cosine between a token and"
                " the same token in the model; 0 is the same direction, 1 is unrelated):"
            ),
            Table(
                ("question", "the theory", "the model", "learned nothing", "answer"),
                [
                    (one.question, one.theory, one.model, one.null, one.verdict)
                    for one in asked.values()
                ],
            ),
            Text(
                f"Of these {len(asked)} questions the theory answers {counts['right']} correctly"
                f" and {counts['not so']} wrongly. In {counts['no evidence']} it is right, but"
                " random weights give the same answer. The equation describes attention alone. The"
                " other parts of the model can be removed one by one, as in the last lines of the"
                " first table: without its norms the tokens gather, without its feed-forward"
                " layers they do not. This negative answer is useful: it shows what the next"
                " theorem should include. (One sentence is only an example; docs/sentences.md has"
                " twenty, in three models.)",
                "The honest answer.",
            ),
        ],
        rows,
    )


@dataclass(frozen=True)
class Answer:
    """One question: the answer of the theory, of the model and of the nulls, and the verdict."""

    question: str
    theory: str
    model: str
    null: str
    verdict: str  # "right", "not so", or "no evidence": right, but at least one null does the same


def answers(data: Any) -> dict[str, Answer]:
    """Return {short name: Answer} of the questions about the whole stack."""
    n = data.sizes["token"]
    first = float(data["cosine"].values[0, 0])
    cosine, groups, turn = (
        {name: last_numbers(data, name, what) for name in TOLD}
        for what in ("cosine", "clusters", "turn")
    )
    lead = {name: same_leader(data, name) for name in TOLD}
    few = {name: count <= n / 2 for name, count in groups.items()}
    rises = {name: value > first + CLEARLY for name, value in cosine.items()}
    near = {name: value < NEAR for name, value in turn.items()}
    left_out_words = special_words(data, is_counted=False)
    often = {name: value > 0.5 for name, value in lead.items()}
    return {
        "gathering": Answer(
            "Do the tokens turn towards each other?",
            f"yes, mean cosine {first:.2f} to {cosine['twin']:.2f}",
            f"{first:.2f} to {cosine['real']:.2f}",
            both(cosine, "{:.2f}"),
            judge(rises["real"] == rises["twin"], [rises[name] == rises["twin"] for name in NULLS]),
        ),
        "groups": Answer(
            "Do they end in few groups?",
            f"{'yes' if few['twin'] else 'no'}, {groups['twin']:.0f} of {n}",
            f"{groups['real']:.0f} of {n}",
            both(groups, "{:.0f}"),
            judge(few["real"] == few["twin"], [few[name] == few["twin"] for name in NULLS]),
        ),
        "place": Answer(
            "Does each token end where the theory says?",
            "yes, turned away by 0",
            f"turned away by {turn['twin']:.2f}",
            both(turn, "{:.2f}"),
            judge(near["twin"], [near[name] for name in NULLS]),
        ),
        "leaders": Answer(
            "Do the same words lead?",
            "yes, in all layers",
            f"in {lead['twin']:.0%} of the layers after the first"
            + (f" ({left_out_words})" if left_out_words else ""),
            both(lead, "{:.0%}"),
            judge(often["twin"], [often[name] for name in NULLS]),
        ),
    }


def both(values: Mapping[str, float], shape: str) -> str:
    """Format the values of the two nulls: of trained size, and untrained."""
    return " and ".join(shape.format(values[name]) for name in NULLS)


def judge(is_so: bool, is_so_of_nulls: Sequence[bool]) -> str:
    """Return the verdict. If random weights do the same, there is no evidence."""
    return "not so" if not is_so else "no evidence" if any(is_so_of_nulls) else "right"


def numbers(data: Any) -> Table:
    """Return the table of what each machine does to the sentence after the last layer."""
    n, rows = data.sizes["token"], []
    for name, words in {**TOLD, **PIECES}.items():
        cosine, turn = last_numbers(data, name, "cosine"), last_numbers(data, name, "turn")
        rows.append(
            (
                words,
                f"{cosine:.2f}, {cosine_word(cosine)}",
                f"{last_numbers(data, name, 'clusters'):.0f} of {n}",
                "–" if name == "real" else f"{turn:.2f}, {turn_word(turn)}",
            )
        )
    return Table(
        ("after the last layer", "mean cosine", "groups", "turned away from the model"), rows
    )


def leaders(data: Any) -> Table:
    """Return the table of the leading word of each layer."""
    named = [name_leaders(data, name, 1, special=False) for name in TOLD]
    rows = [
        (str(layer), *(words[0] for words in layer_of))
        for layer, layer_of in enumerate(zip(*named, strict=True))
    ]
    return Table(("layer", *TOLD.values()), rows)


stops.register("sentence")(Stop(5, "One sentence: the theory beside a trained model", tell))
