"""The tokens of a sentence in the plane, with their words, layer by layer: the plane of the movie and
of a figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from attnlab.analysis.principal_axes import principal
from attnlab.models.studies.sentences import TITLES
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import (
    INK,
    MARKERS,
    PALETTE,
    dress_flat,
    house_style,
    paper_figure,
    title,
)
from attnlab.render.word_labels import ALL_LABELLED, label_points

if TYPE_CHECKING:
    import xarray

SHAPES = tuple(marker for marker in MARKERS if marker != "s")
"""Of clusters, once the colours are used up; squares are tokens that the model added."""

PANEL, NARROW_PANEL = 3.5, 2.4
"""Inches of a panel; and the narrowest three of them side by side, below which the two stacks stand
side by side, and the layers one below the other.
"""

ROOM = 1.15
"""The half width of the plane, in units of the farthest token: words need room, too."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Variants of a sentence in one plane.

    variants: their names. paths: their tokens (variants, steps, n, 2). shares (variants, steps): how
    much of the variance of the directions at a step the plane shows.
    """

    variants: tuple[str, ...]
    paths: np.ndarray
    shares: np.ndarray

    @property
    def reach(self) -> float:
        """The half width of the plane."""
        return ROOM * float(np.nanmax(np.abs(self.paths))) or 1.0


def find_plane(data: xarray.Dataset, variants: Sequence[str]) -> Plane:
    """Return the directions of the tokens, at each layer about their middle, on the two principal
    axes of all layers and variants together.
    """
    layers = data.attrs["layers"]
    sets = [
        _directions(data["x"].sel(variant=variant).values[step])
        for variant in variants
        for step in range(layers + 1)
    ]
    flat, shares = _common_plane(sets)
    n = data.sizes["token"]
    shape = (len(variants), layers + 1)
    return Plane(tuple(variants), flat.reshape(*shape, n, 2), shares.reshape(shape))


def draw_words(data: xarray.Dataset, paper: Paper = SCREEN, other: str = "twin") -> Figure:
    """The tokens in one plane at the first, the middle and the last layer: the real stack above,
    `other` below.
    """
    if other not in data["variant"].values:
        raise ValueError(
            f"The data has no variant {other!r}, only"
            f" {', '.join(map(str, data['variant'].values))}."
        )
    layers = data.attrs["layers"]
    moments = sorted({0, -(-layers // 2), layers})
    plane = find_plane(data, ("real", other))
    width = PANEL * len(moments) + 0.3 if paper.width is None else paper.width
    is_upright = width < NARROW_PANEL * len(moments)
    rows, columns = (len(moments), 2) if is_upright else (2, len(moments))
    with house_style(paper):
        head = 0.52 if paper.is_narrow else 0.75
        figure = paper_figure(paper, width, rows * (width / columns - 0.2 + head))
        panels = figure.subplots(rows, columns, squeeze=False)
        panels = panels.T if is_upright else panels
        placed = []
        for column, step in enumerate(moments):
            for row, variant in enumerate(plane.variants):
                axes, points = panels[row, column], plane.paths[row][step]
                labels = data["label"].sel(variant=variant).values[step]
                colours = _draw_tokens(
                    axes, points, labels, data["is_special"].values, 3 if paper.is_narrow else 5
                )
                frame_plane(axes, plane, 7.0 if paper.is_narrow else 7.5)
                cosine = float(data["cosine"].sel(variant=variant).values[step])
                share = f"{plane.shares[row, step]:.0%}".replace("%", " %")
                where = "start" if step == 0 else f"layers done: {step}"
                short = "start" if step == 0 else f"{step} layers"
                numbers = (
                    "it ends before that"
                    if not np.isfinite(cosine)
                    else f"cosine {cosine:.2f}"
                    if paper.is_narrow
                    else f"mean cosine {cosine:.2f}, {share} of the variance shown"
                )
                axes.set_title(
                    f"{title_of(variant)}\n{short}, {numbers}"
                    if paper.is_narrow
                    else f"{title_of(variant)}, {where}\n{numbers}",
                    fontsize=7 if paper.is_narrow else 9,
                )
                placed.append((axes, points, colours))
        title(
            figure,
            headline(data),
            "Directions of the tokens, each picture about its middle. All pictures have the same"
            " axes, the first two principal ones of all layers together, and the same scale. Filled,"
            " of one colour and shape: a cluster"
            f" (cosine {data.attrs['cosine_scale']:g}); hollow: alone. Squares: tokens that the"
            " model added."
            f"{' Words stand where there is room.' if data.sizes['token'] > ALL_LABELLED else ''}",
        )
        _label_all(figure, placed, plain_words(data), 7.0 if paper.is_narrow else 8.0)
    return figure


def frame_plane(axes: Any, plane: Plane, size: float) -> None:
    """Give axes the limits of the plane, and few ticks."""
    axes.set(xlim=(-plane.reach, plane.reach), ylim=(-plane.reach, plane.reach), aspect="equal")
    dress_flat(axes, 3)
    axes.tick_params(labelsize=size)


def headline(data: xarray.Dataset) -> str:
    """The model and the text."""
    facts = data.attrs
    text = f": “{escape_words(facts['text'], 70)}”" if facts["text"] else ""
    return f"{escape_words(facts['model'], LONGEST_NAME)}{text}"


def title_of(variant: str) -> str:
    """The title of a variant."""
    return TITLES.get(variant, variant.replace("_", " "))


def plain_words(data: xarray.Dataset) -> list[str]:
    """The words of the tokens, without spaces; _ for a space."""
    return [str(word).strip() or "_" for word in data["word"].values]


def _directions(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _common_plane(sets: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return each set (n, d) about its mean on the two principal axes of all together, (sets, n, 2),
    and how much of its variance they hold, (sets,). A set with NaN has none.
    """
    centred = np.array([points - points.mean(axis=0) for points in sets])
    is_finite = np.isfinite(centred).all(axis=(1, 2))
    flat = np.full((*centred.shape[:2], 2), np.nan)
    flat[is_finite], _ = principal(centred[is_finite], 2)
    sizes = np.maximum(np.square(centred).sum(axis=(1, 2)), 1e-300)
    return flat, np.square(flat).sum(axis=(1, 2)) / sizes


def look_of_labels(
    labels: np.ndarray, is_special: np.ndarray
) -> tuple[list[str], list[str], np.ndarray]:
    """Return (colours, markers, whether in a cluster) of tokens: a colour and shape for each group
    of two or more, the largest first; squares for added tokens.
    """
    counts = {label: int((labels == label).sum()) for label in labels}
    groups = sorted(
        (label for label, count in counts.items() if count > 1), key=lambda label: -counts[label]
    )
    places = [groups.index(label) if label in groups else -1 for label in labels]
    colours = [PALETTE[place % len(PALETTE)] if place >= 0 else INK for place in places]
    markers = [
        "s" if special else SHAPES[(place // len(PALETTE)) % len(SHAPES)] if place >= 0 else "o"
        for place, special in zip(places, is_special, strict=True)
    ]
    return colours, markers, np.array(places) >= 0


def _draw_tokens(
    axes: Any, points: np.ndarray, labels: np.ndarray, is_special: np.ndarray, size: float
) -> list[str]:
    """Draw tokens (n, 2) and return the colours of their words."""
    colours, markers, is_grouped = look_of_labels(labels, is_special)
    for point, colour, marker, filled in zip(points, colours, markers, is_grouped, strict=True):
        axes.plot(
            *point,
            marker=marker,
            markersize=size,
            color=colour,
            markerfacecolor=to_rgb(colour) if filled else "white",
            zorder=3,
        )
    return colours


def _label_all(
    figure: Figure,
    placed: Sequence[tuple[Any, np.ndarray, list[str]]],
    words: Sequence[str],
    size: float,
) -> None:
    """Words beside their points, once it is known how large the panels are."""
    figure.draw_without_rendering()
    for axes, points, colours in placed:
        if np.isfinite(points).all():
            label_points(axes, points, words, colours, size)
