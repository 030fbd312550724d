"""Movies of results of trained models: a flow, a sentence, a repeated layer. Tokens move with their
words in the plane of the figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import to_rgb

from attnlab.render.flow_figure import flow_headline, frame_flow_plane, look_of
from attnlab.render.kinds import Stage
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.moving_words import Crowd, CrowdPanel
from attnlab.render.panels.flat import frame_flat, token_size
from attnlab.render.paper import SCREEN
from attnlab.render.ranges import pad_ranges
from attnlab.render.sentence_planes import (
    find_plane,
    frame_plane,
    headline,
    look_of_labels,
    plain_words,
    title_of,
)
from attnlab.render.style import dress_flat, new_figure, title

if TYPE_CHECKING:
    import xarray

    from attnlab.models.studies.flows import Flow

MOST_WORDS = 48
"""Tokens that all have their word; of more only leaders have."""

WIDE, HIGH = 6.6, 6.4
"""Inches of the figure of a movie with one panel."""

WORD = 9.0
"""Points of the words."""

ONE_LAYER = 1.0
"""The length of trails in a sentence, in layers."""

TRAIL = 0.1
"""The length of trails of a repeated layer, as a part of all layers."""


def _named(n: int, leaders: np.ndarray) -> np.ndarray:
    """The tokens that have a word."""
    return np.arange(n) if n <= MOST_WORDS else leaders


def _words_note(n: int) -> str:
    return "" if n <= MOST_WORDS else " Only leaders have their word."


def stage_flow(found: Flow) -> Stage:
    """Return the plane of the flow's figure with moving tokens, and what moves it."""
    look, path = look_of(found), found.data["plane"].values[..., :2]
    times, n = found.data["time"].values, len(found.words)
    figure = new_figure(WIDE, HIGH, dpi=120)
    axes: Any = figure.subplots()
    frame_flow_plane(axes, found, SCREEN)
    crowd = Crowd(
        path,
        [word.strip() or repr(word) for word in found.words],
        look.colours,
        look.markers,
        np.ones(n, dtype=bool),
        look.leaders,
        _named(n, look.leaders),
    )
    panel = CrowdPanel(axes, crowd, WORD, 1.3 * token_size(n))
    scale = found.data.attrs["cosine_scale"]
    title(
        figure,
        flow_headline(found),
        "Directions x / |x| on principal axes of all times together. Colours: the clusters at the"
        f" end (cosine {scale:g}); grey: alone. Rings: their leaders.{_words_note(n)}",
    )

    def show(position: float) -> None:
        panel.show(position)
        time = float(np.interp(position, np.arange(len(times)), times))
        count = int(found.data["clusters"].values[min(round(position), len(times) - 1)])
        axes.set_title(f"t = {time:.2f}: {_clusters(count)}")

    return figure, show


def stage_sentence(data: xarray.Dataset) -> Stage:
    """Return the plane of the words' figure with moving tokens, of the real stack and, beside it,
    of the idealised model where the data have it.
    """
    there = [name for name in ("real", "twin") if name in data["variant"].values]
    is_finite = [
        bool(np.isfinite(data["x"].sel(variant=name)[: data.attrs["layers"] + 1]).all())
        for name in there
    ]
    shown = [name for name, finite in zip(there, is_finite, strict=True) if finite]
    if not shown:
        raise ValueError(
            "The numbers of this sentence overflow, so it cannot be filmed. Plot it instead."
        )
    plane, layers, n = find_plane(data, shown), data.attrs["layers"], data.sizes["token"]
    figure = new_figure(4.6 * len(shown) + 0.4, 5.9 if len(shown) > 1 else HIGH, dpi=120)
    is_special, words, panels = data["is_special"].values, plain_words(data), []
    for axes, variant, path in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown, plane.paths, strict=True
    ):
        of = data.sel(variant=variant)
        frame_plane(axes, plane, 8.5)
        colours, markers, is_grouped = look_of_labels(of["label"].values[layers], is_special)
        leader = np.array([int(of["leader"].values[layers - 1])])
        crowd = Crowd(
            path,
            words,
            np.array([to_rgb(colour) for colour in colours]),
            np.array(markers),
            is_grouped,
            leader,
            _named(n, leader),
            memory=ONE_LAYER,
        )
        panels.append((variant, CrowdPanel(axes, crowd, WORD, token_size(n))))
    title(
        figure,
        headline(data),
        "Directions of the tokens about their middle, on the first two principal axes of all layers"
        " together; straight lines between layers. Colours: the clusters after the last layer"
        f" (cosine {data.attrs['cosine_scale']:g}); hollow: alone. Ring: the token that receives most"
        f" attention in the last layer. Squares: tokens that the model added.{_words_note(n)}",
    )

    def show(position: float) -> None:
        for variant, panel in panels:
            panel.show(position)
            step = min(round(position), layers)
            cosine = np.interp(
                position, np.arange(layers + 1), data["cosine"].sel(variant=variant)[: layers + 1]
            )
            count = int(data["clusters"].sel(variant=variant).values[step])
            panel.axes.set_title(
                f"{title_of(variant)}\nlayers done: {position:.1f}; mean cosine {cosine:.2f},"
                f" {_clusters(count)}",
                fontsize=9.5,
            )

    return figure, show


def stage_iteration(data: xarray.Dataset) -> Stage:
    """Return the tokens under a repeated layer in the plane of their principal axes, and what moves
    them.
    """
    facts, n, last = data.attrs, data.sizes["token"], data.sizes["step"] - 1
    if "plane" not in data or last < 1:
        raise ValueError(
            "The data have no directions to film. Compute them again with al.models.iterate."
        )
    path, explained = data["plane"].values[..., :2], data["explained"].values
    figure = new_figure(WIDE, HIGH, dpi=120)
    axes: Any = figure.subplots()
    dress_flat(axes)
    shares = [f"{share:.0%}".replace("%", " %") for share in explained[:2]]
    frame_flat(
        axes,
        [f"principal axis {k + 1} ({share})" for k, share in enumerate(shares)],
        pad_ranges(path.min(axis=(0, 1)), path.max(axis=(0, 1)), 0.12),
    )
    colours, markers, is_grouped = look_of_labels(
        data["label"].values[-1], data["is_special"].values
    )
    leader = np.array([int(data["leader"].values[-2])])
    crowd = Crowd(
        path,
        plain_words(data),
        np.array([to_rgb(colour) for colour in colours]),
        np.array(markers),
        is_grouped,
        leader,
        _named(n, leader),
        memory=max(TRAIL * last, 1.0),
    )
    panel = CrowdPanel(axes, crowd, WORD, token_size(n))
    text = f": “{escape_words(facts['text'], 56)}”" if facts["text"] else f": {n} tokens"
    which = "its layer" if facts["is_tied"] else f"layer {facts['layer']}"
    title(
        figure,
        f"{escape_words(facts['model'], LONGEST_NAME)}, {which} repeated{text}",
        "Directions of the tokens on principal axes of all steps together. The first layers take"
        f" more time. Colours: the clusters at the end (cosine {facts['cosine_scale']:g}); hollow:"
        " alone. Ring: the token that receives most attention at the end. Squares: tokens that the"
        f" model added.{_words_note(n)}",
    )

    def show(position: float) -> None:
        panel.show(position)
        step = min(round(position), last)
        cosine, count = (float(data[name].values[step]) for name in ("cosine", "clusters"))
        axes.set_title(f"layers done: {step}; mean cosine {cosine:.2f}, {_clusters(int(count))}")

    return figure, show


def _clusters(count: int) -> str:
    return f"{count} cluster{'' if count == 1 else 's'}"


def early_positions(steps: int, frames: int) -> np.ndarray:
    """The positions of frames that slow down the first steps: evenly in log(1 + step)."""
    result: np.ndarray = np.expm1(np.linspace(0.0, np.log1p(steps - 1), frames))
    result[-1] = steps - 1
    return result
