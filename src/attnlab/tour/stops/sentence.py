"""Stop 5: a sentence in a trained model, in its idealised model, and in models with random weights;
then ten sentences, which are judged.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from attnlab.experiments.surveys.sentences_survey.texts import ENGLISH
from attnlab.explorer.embed import WITH_SWITCH
from attnlab.explorer.trained import model_payload
from attnlab.models.studies.dossier_findings import cosine_word, last_numbers, turn_word
from attnlab.models.studies.grades import (
    NULLS,
    Stacks,
    enough,
    gather,
    groups_at,
    lead_words,
    place,
)
from attnlab.models.studies.sentences import name_leaders, sentence, special_words
from attnlab.models.studies.stacks import STACKS, read_stacks
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
TEXTS = (SENTENCE, *(text for text in ENGLISH if text != SENTENCE))
"""The sentences that are judged: ten, of which nine must agree (see `grades`)."""

VERDICTS = {
    "right": "right",
    "in part": "in part",
    "no evidence": "no evidence",
    "not right": "not so",
}
"""{grade: verdict of the tour}."""

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
        model, SENTENCE, only=chosen, progress=context.progress.next_part(0.2, f"“{SENTENCE}”")
    )
    one = read_stacks(
        model,
        [{"text": text} for text in TEXTS],
        progress=context.progress.next_part(0.6, "ten sentences"),
    )
    asked = answers(one, special_words(data, is_counted=False))
    seconds = time.perf_counter() - begun
    rows = [
        Row(
            "sentence",
            f"sentence_{name}",
            f"{MODEL}, ten sentences: {one.question}",
            one.verdict,
            one.theory,
            one.model,
            d=model.config.d,
            seconds=seconds,
        )
        for name, one in asked.items()
    ]
    figure = draw_sentence(data)
    counts = {
        word: sum(one.verdict == word for one in asked.values()) for word in VERDICTS.values()
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
                "One sentence is an example. So we ask four questions about ten sentences, with"
                f" {STACKS} stacks of each kind of random weights. The answer is “right” only if the"
                " idealised model is nearer to the model than three others: than the random weights,"
                " than the untrained ones, and than a simple guess (that nothing changes; for leaders"
                f" their usual place). Nearer means: in at least {enough(len(TEXTS))} of"
                f" {len(TEXTS)} sentences, and than {enough(STACKS)} of {STACKS} stacks. Coin flips"
                " reach that in less than 5 % of all cases. If random weights are as near, there is"
                " no evidence; if the simple guess is as near, too, the answer is “not so”. The"
                " first question is about the model itself: do the cosines change as the theory"
                " says, and further than with random weights? Turned away: 1 − cosine between a token and the same token in the"
                " model; 0 is the same direction, 1 is unrelated. The place of a token is right only"
                " if no other token of the sentence is nearer to it.",
                "Ten sentences.",
            ),
            Table(
                ("question", "the theory", "the model", "learned nothing", "answer"),
                [
                    (one.question, one.theory, one.model, one.null, one.verdict)
                    for one in asked.values()
                ],
            ),
            Text(
                f"Of these {len(asked)} questions the theory answers {counts['right']} correctly,"
                f" {counts['in part']} in part and {counts['not so']} wrongly. In"
                f" {counts['no evidence']} random weights give the same answer. The equation"
                " describes attention alone. The"
                " other parts of the model can be removed one by one, as in the last lines of the"
                " first table: without its norms the tokens gather, without its feed-forward"
                " layers they do not. This negative answer is useful: it shows what the next"
                " theorem should include. (docs/sentences.md has twenty sentences, in three"
                " models.)",
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
    verdict: str  # one of VERDICTS


def answers(one: Stacks, left_out_words: str = "") -> dict[str, Answer]:
    """Return {short name: Answer} of the questions about the whole stack. Numbers are medians over
    the sentences, shares are means.
    """
    first = one.middle("embedding", "cosine")
    cosine, turn = ({name: one.middle(name, what) for name in TOLD} for what in ("cosine", "turn"))
    groups = {name: one.middle(name, "clusters") for name in TOLD}
    lead = {name: float(one.values(name, "word_leader").mean()) for name in TOLD}
    n = one.middle("real", "n")
    words = f" ({left_out_words})" if left_out_words else ""
    guess = float(one.chance["word_leader"].mean())
    return {
        "gathering": Answer(
            "Do the tokens turn towards each other?",
            f"{'yes' if cosine['twin'] > first else 'no'}, mean cosine {first:.2f} to"
            f" {cosine['twin']:.2f}",
            f"{first:.2f} to {cosine['real']:.2f}",
            both(cosine, "{:.2f}"),
            VERDICTS[gather(one).word],
        ),
        "groups": Answer(
            "Do they end in as few groups?",
            f"{groups['twin']:.3g} group{'s' if groups['twin'] != 1 else ''} of {n:.3g} tokens"
            " (medians)",
            f"{groups['real']:.3g} groups",
            both(groups, "{:.3g}"),
            VERDICTS[groups_at(one).word],
        ),
        "place": Answer(
            "Does each token end where the theory says?",
            "yes, turned away by 0",
            f"turned away by {turn['twin']:.2f}",
            both(turn, "{:.2f}"),
            VERDICTS[place(one).word],
        ),
        "leaders": Answer(
            "Do the same words lead?",
            "yes, in all layers",
            f"in {lead['twin']:.0%} of the layers after the first{words}",
            f"{both(lead, '{:.0%}')}, a guess {guess:.0%}",
            VERDICTS[lead_words(one).word],
        ),
    }


def both(values: dict[str, float], shape: str) -> str:
    """Format the values of the two nulls: of trained size, and untrained."""
    return " and ".join(shape.format(values[name]) for name in NULLS)


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
