"""The figures of real_sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.heads import HEADS, VALUES
from attnlab.experiments.common.panels import mark_heads
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.literal import escape_words
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
from attnlab.render.word_labels import label_points

from .claims import at_a_word, kinds_at, rows_of


def figures(data: Data) -> dict[str, Any]:
    """One text in its plane, where clusters are, and who leads."""
    with house_style():
        return {
            "real_sentence": draw_text(data),
            "real_sentence_leaders": draw_leaders(data),
            "real_sentence_places": draw_places(data),
        }


WORDS = {"identity": "V = I", "own": "own V"}
KINDS = {
    "special": "added by the model",
    "mark": "punctuation",
    "function": "function word",
    "content": "content word",
    "id": "id",
}


SHADES = {
    "special": PALETTE[1],
    "mark": PALETTE[3],
    "function": PALETTE[0],
    "content": PALETTE[2],
    "id": INK,
}
"""The kinds of tokens in words, and their colours."""


def words_of(data: Data, text: int) -> list[str]:
    """The words of a text."""
    return list(map(str, select(data["tokens"], text=text)["word"].values))


def row_of(data: Data, text: int, values: str, heads: int) -> Any:
    """The row of one case."""
    return select(data["rows"], text=text, values=values, heads=heads)


def draw_text(data: Data) -> Any:
    """The first text in its principal plane: where its words start, and where they have gathered,
    for each number of heads.
    """
    plane, words = data["plane"], words_of(data, 0)
    rows = data["rows"]
    start, ends = plane["start"].values, plane["end"].values
    figure = new_figure(11.0, 7.6)
    panels = figure.subplots(2, 3).ravel()
    reach = 1.22 * float(np.abs(np.concatenate([start, *ends])).max())
    for place, axes in enumerate(panels):
        axes.scatter(*start.T, s=18, color="white", edgecolors=PALETTE[0], linewidths=1.1, zorder=3)
        axes.plot(0, 0, marker="+", color=NOTE, markersize=9, zorder=2)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        dress_flat(axes, 3)
        if place == 0:
            axes.set_title("start")
            continue
        row = row_of(data, 0, "identity", HEADS[place - 1])
        for begin, end in zip(start, ends[place - 1], strict=True):
            axes.plot(*np.stack([begin, end]).T, color=HULL, linewidth=0.6, alpha=0.7, zorder=1)
        axes.scatter(*ends[place - 1].T, s=70, marker="*", color=PALETTE[1], linewidths=0, zorder=4)
        leader = int(row["leader"].values[0])
        axes.scatter(
            *start[leader], s=110, facecolors="none", edgecolors=INK, linewidths=1.3, zorder=4
        )
        count = HEADS[place - 1]
        axes.set_title(
            f"{count} head{'s' if count > 1 else ''}: led by “{escape_words(words[leader])}”\n"
            f"cosine with the nearest word {float(row['cosine'].values[0]):.2f}",
            fontsize=9.5,
        )
    panels[3].set(xlabel="first principal axis", ylabel="second principal axis")
    said = escape_words(" ".join(words))
    near = [count for count in HEADS if bool(at_a_word(row_of(data, 0, "identity", count))[0])]
    title(
        figure,
        f"{rows.attrs['model']}, V = I: tokens meet near a word with {_listed(near)} heads, nearer"
        f" to the mean of the text with {_listed([count for count in HEADS if count not in near])}",
        f"“{said}”. Directions of tokens on the two principal axes of the start. Rings: start;"
        " stars: end, τ = Ht = 20; hair lines join the two. Black ring: the token to which most"
        " attention of the largest cluster goes. Cross: the mean.",
    )
    figure.draw_without_rendering()
    label_points(panels[0], start, words, [INK] * len(words))
    for place, axes in enumerate(panels[1:]):
        row = row_of(data, 0, "identity", HEADS[place])
        shown = sorted({int(row["leader"].values[0]), int(row["nearest"].values[0])})
        label_points(axes, start[shown], [words[k] for k in shown], [INK] * len(shown), 9.0)
    return figure


def draw_leaders(data: Data) -> Any:
    """A table of words: who leads the largest cluster of each text, for each number of heads, and
    in the model itself.
    """
    rows = data["rows"]
    texts = np.unique(rows["text"].values)
    columns = [(values, count) for values in VALUES for count in HEADS]
    figure = new_figure(11.6, 1.9 + 0.34 * len(texts))
    axes = figure.subplots()
    for text in texts:
        words = [escape_words(word) for word in words_of(data, int(text))]
        for place, (values, count) in enumerate(columns):
            row = row_of(data, text, values, count)
            axes.text(
                place + 0.4 * (values == "own"),
                text,
                _quoted(words[int(row["leader"].values[0])]),
                ha="center",
                va="center",
                fontsize=9,
                color=SHADES[kinds_at(data, row)[0]],
            )
        for place, column in enumerate(("stack_first", "stack_last")):
            axes.text(
                len(columns) + 0.9 + place,
                text,
                words[int(row[column].values[0])],
                ha="center",
                va="center",
                fontsize=9,
                color=SHADES[kinds_at(data, row, column)[0]],
            )
    heads = [str(count) for _, count in columns]
    places = [k + 0.4 * (columns[k][0] == "own") for k in range(len(columns))]
    axes.set_xticks([*places, len(columns) + 0.9, len(columns) + 1.9], [*heads, "first", "last"])
    axes.xaxis.tick_top()
    for middle, words_above in (
        (2, "V = I, heads"),
        (7.4, "own V, heads"),
        (len(columns) + 1.4, "the model's layer"),
    ):
        axes.text(middle, -1.35, words_above, ha="center", va="bottom", fontsize=9.5, color=INK)
    for line in (4.7, len(columns) + 0.15):
        axes.axvline(line, color=RULE, linewidth=0.9)
    axes.set_yticks(
        texts, [escape_words(_shortened(words_of(data, int(text)))) for text in texts], fontsize=8.5
    )
    axes.set(xlim=(-0.6, len(columns) + 2.5), ylim=(len(texts) - 0.4, -0.6))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    present = [kind for kind in KINDS if kind in data["tokens"]["kind"].values]
    for place, kind in enumerate(present):
        axes.text(
            0.02 + place / max(len(present), 4),
            -0.02,
            KINDS[kind],
            transform=axes.transAxes,
            color=SHADES[kind],
            fontsize=9,
            va="top",
        )
    title(
        figure,
        "Which token leads the largest cluster, and to which one the model itself attends most",
        "One row per text. Left and middle: the token to which most attention of the largest"
        " cluster goes at τ = 20. Heads are of the first layer and, from the 13th on, of the second"
        " where a layer has 12. Right: the token that receives most attention in the first and in"
        " the last layer of the whole model.",
    )
    return figure


def _shortened(words: list[str]) -> str:
    """The first words of a text."""
    return (
        " ".join([word for word in words if not word.startswith("[")][:4]).replace(" ##", "") + " …"
    )


def _listed(numbers: list[int]) -> str:
    """1, 2 and 3."""
    words = [str(number) for number in numbers] or ["none"]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _quoted(word: str) -> str:
    """A mark in quotes, so that it is seen; a word as it is."""
    return word if any(letter.isalnum() for letter in word) else f"“ {word} ”"


def draw_places(data: Data) -> Any:
    """How near the largest cluster is to a word, to the mean of the text, and to the fastest modes
    of the values.
    """
    rows = data["rows"]
    near = [int(at_a_word(rows_of(data, "identity", count)).sum()) for count in HEADS]
    texts = len(np.unique(rows["text"].values))
    words_win = [count for count, many in zip(HEADS, near, strict=True) if 2 * many > texts]
    looks = {
        "cosine": (PALETTE[0], "o", "nearest word", -0.16),
        "to_mean": (PALETTE[1], "s", "mean of the text", 0.0),
        "to_mode": (PALETTE[2], "^", "fastest modes of the values", 0.16),
    }
    figure = new_figure(9.4, 4.0)
    for axes, values in zip(figure.subplots(1, 2, sharey=True), VALUES, strict=True):
        for name, (colour, marker, words, offset) in looks.items():
            if name == "to_mode" and values == "identity":
                continue
            for place, count in enumerate(HEADS):
                case = select(rows, values=values, heads=count)
                numbers = case[name].values
                axes.scatter(
                    np.full(len(numbers), place + offset),
                    numbers,
                    s=20,
                    color=colour,
                    marker=marker,
                    alpha=0.55,
                    linewidths=0,
                )
                axes.plot(
                    place + offset + np.array([-0.08, 0.08]),
                    [np.median(numbers)] * 2,
                    color=colour,
                    linewidth=2.2,
                )
            axes.scatter([], [], s=26, color=colour, marker=marker, label=words)
        dress_flat(axes)
        mark_heads(axes)
        axes.set(ylim=(-0.35, 1.22), yticks=[0, 0.5, 1])
        axes.set_title(WORDS[values])
        axes.legend(
            frameon=False,
            fontsize=8,
            loc="upper center",
            ncols=3,
            columnspacing=1.0,
            handletextpad=0.2,
        )
    figure.axes[0].set_ylabel("cosine of the largest cluster with")
    title(
        figure,
        f"V = I, most texts: nearer to a word with {_listed(words_win)} heads, to the mean of the"
        f" text with {_listed([count for count in HEADS if count not in words_win])}",
        f"Nearer to a word in {_listed(near)} of {texts} texts with V = I. One mark per text, for"
        " its largest cluster; bars are medians. With own values (right) it is in the fastest"
        " modes of the linear equation that the heads' values make for clusters, and no word is"
        " near.",
    )
    return figure
