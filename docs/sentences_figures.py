"""The pictures of docs/sentences.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sentences_grades import inert

from attnlab.models.studies.sentences import TITLES
from attnlab.render.sentence_figure import LOOKS
from attnlab.render.style import HULL, INK, NOTE, PALETTE, RULE, dress_flat, house_style, new_figure, title

SHOWN = ("real", "twin", "no_mlp", "random", "untrained")
DEPTH_ROWS = {"cosine": "mean cosine of pairs", "rank": "effective rank / tokens"}
TURNS = ("embedding", "no_mlp", "no_norm", "attention_only", "no_mask", "tied", "twin", "random", "untrained")


def draw_depth(found: Sequence[Any]) -> Figure:
    """Cosines and ranks over the layers, a column for each model: medians over the sentences and their ranges.

    Of the nulls, a sentence's curve is the mean over their seeds.
    """
    with house_style():
        figure = new_figure(9.6, 5.9)
        panels = figure.subplots(len(DEPTH_ROWS), len(found), sharey="row", sharex="col", squeeze=False)
        for column, one in enumerate(found):
            for row, (name, words) in enumerate(DEPTH_ROWS.items()):
                axes = panels[row, column]
                for variant in SHOWN:
                    values = one.curves[name][variant].mean(axis=1)                             # (sentences, steps)
                    steps = np.arange(values.shape[1])
                    colour, width, dashes = LOOKS[variant]
                    middle = np.median(values, axis=0)
                    axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.13,
                                      linewidth=0)
                    axes.plot(steps, middle, color=colour, linewidth=max(width, 1.8), linestyle=dashes, label=TITLES[variant])
                axes.set(xlim=(0, steps[-1]), ylim=(-0.02, 1.04))
                dress_flat(axes)
                if column == 0:
                    axes.set_ylabel(words)
                if row == 0:
                    axes.set_title(one.name)
                else:
                    axes.set_xlabel("layer")
        panels[1, 0].legend(loc="lower left", frameon=False, fontsize=8.5)
        title(figure, "Do the tokens gather? The real stack, the theory, and weights that learned nothing",
              "Lines: medians over ten sentences; bands: their ranges. 0 is the embedding. Idealised model: the theory's flow "
              "with the model's own attention matrices. Random weights have the sizes that training gave, untrained ones those "
              "before it: means over five stacks.")
    return figure


def draw_turn(found: Sequence[Any]) -> Figure:
    """How far every stack ends from the real one: a dot a sentence, the median as a bar."""
    with house_style():
        figure = new_figure(9.6, 4.1)
        panels = figure.subplots(1, len(found), sharey=True, sharex=True, squeeze=False)[0]
        names = {**TITLES, "embedding": "embedding, untouched", "tied": "layer 0 tied"}
        for axes, one in zip(panels, found, strict=True):
            for place, variant in enumerate(TURNS):
                axes.axhline(place + 0.5, color=RULE, linewidth=0.5, zorder=1)
                values = one.rows[one.rows["variant"] == variant].groupby("sentence")["turn"].mean().to_numpy()
                if variant != "embedding" and np.nanmax(np.abs(values)) < 1e-9:
                    axes.text(0.06, place, "the real stack itself", va="center", fontsize=8, color=NOTE)
                    continue
                colour = {"embedding": INK, "twin": PALETTE[1], "random": HULL, "untrained": HULL}.get(variant, PALETTE[0])
                jitter = np.linspace(-0.2, 0.2, len(values))
                axes.scatter(values, place + jitter, s=12, color=colour, alpha=0.65, linewidths=0, zorder=3)
                axes.vlines(np.nanmedian(values), place - 0.36, place + 0.36, color=colour, linewidth=2.2, zorder=4)
            axes.axvline(1.0, color=NOTE, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
            axes.set(title=one.name, xlabel="turn from the real stack", xlim=(0.0, 1.45), ylim=(len(TURNS) - 0.5, -0.5))
            dress_flat(axes)
            axes.set_yticks(range(len(TURNS)), [names[variant] for variant in TURNS])
            axes.tick_params(axis="y", length=0)
            axes.spines["left"].set_visible(False)
        title(figure, "Where each token ends, beside where the real stack has it",
              "Dots: sentences (of random and untrained weights means over five stacks); upright bars: their medians. Turn: 1 - "
              "cosine, mean over tokens; 0 is the same direction, 1 (dashed) an unrelated one. Embedding: the guess that the "
              "stack does nothing." + "".join(f" {' and '.join(TITLES[piece] for piece in pieces).capitalize()} of {one.name} "
                                              "hardly move from it." for one in found if (pieces := inert(one))))
    return figure


def draw_tied(one: Any) -> Figure:
    """The tied layer again and again: mean cosines and groups, of the model and of its nulls, a line a sentence."""
    with house_style():
        figure = new_figure(9.6, 3.9)
        left, right = figure.subplots(1, 2)
        looks = [(one.tied_null[null], HULL, 0.8, LOOKS[null][2], TITLES[null]) for null in one.tied_null]
        for sets, colour, width, dashes, words in (*looks, (one.tied, PALETTE[0], 1.2, "solid", "the model's layer")):
            for number, data in enumerate(sets):
                steps = np.maximum(data["step"].values, 0.7)
                options = {"color": colour, "linewidth": width, "alpha": 0.4 if colour == HULL else 0.9, "linestyle": dashes,
                           "label": words if number == 0 else None}
                left.plot(steps, data["cosine"].values, **options)
                right.step(steps, data["clusters"].values / data.sizes["token"], where="post", **options)
        depth = one.tied[0].attrs["layers"]
        for axes, words in ((left, "mean cosine of pairs"), (right, "groups / tokens (cosine 0.9)")):
            axes.axvline(depth, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
            axes.set(xscale="log", xlabel="times the layer was applied", ylim=(-0.02, 1.04))
            axes.set_xlim(0.7, max(data.attrs["steps"] for data in one.tied))
            axes.set_title(words, loc="left")
            dress_flat(axes)
            axes.set_xticks([0.7, 1, 10, 100, 1000], ["0", "1", "10", "100", "1000"])
            axes.minorticks_off()
        left.legend(frameon=False, fontsize=8.5, loc="lower right")
        title(figure, f"{one.name}: its one layer, again and again",
              "A line for each of ten reactions, and for the same with five layers of random weights of trained size and five of "
              f"untrained ones. Upright: the depth of the model, {depth}. Groups: tokens that a chain of "
              "cosines of 0.9 or more joins.")
    return figure
