"""Measures the texts of a figure as they are drawn: whether they lie inside it, how large they are,
and which cover another.
"""

from __future__ import annotations

import itertools

import numpy as np
from matplotlib.text import Annotation, Text
from mpl_toolkits.mplot3d import proj3d
from mpl_toolkits.mplot3d.art3d import Text3D

SLACK = 1.0
"""Pixels by which boxes may overlap: letters do not fill theirs."""


def drawn_texts(figure):
    """Every text of the figure that is drawn, after a draw that lays it out."""
    figure.canvas.draw()
    found, seen = [], set()
    for axes in all_axes(figure):
        for axis in (axes.xaxis, axes.yaxis, *([axes.zaxis] if axes.name == "3d" else [])):
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            seen |= {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
            own = [axis.label, axis.get_offset_text()]
            seen |= {id(text) for text in own}  # findobj does not reach those in space
            is_on = axes._axis3don if axes.name == "3d" else axes.axison
            if is_on and axes.get_visible() and axis.get_visible():
                found += shown_ticks(axis) + [
                    text for text in own if text.get_visible() and text.get_text().strip()
                ]
        if not axes.get_visible():
            seen |= {id(text) for text in axes.findobj(Text)}
    return found + [
        text
        for text in figure.findobj(Text)
        if id(text) not in seen and text.get_visible() and text.get_text().strip()
    ]


def all_axes(figure):
    """The axes of a figure and of the figures in it, with secondary ones."""
    return [*figure.axes, *(child for axes in figure.axes for child in axes.child_axes)]


def shown_ticks(axis):
    """The labels of ticks inside the view of an axis."""
    low, high = np.sort(
        axis.get_transform().transform(np.array(axis.get_view_interval(), dtype=float))
    )
    room = 1e-9 * (high - low)
    labels = []
    for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
        place = float(axis.get_transform().transform(np.array([tick.get_loc()], dtype=float))[0])
        for label in (tick.label1, tick.label2):
            if (
                low - room <= place <= high + room
                and label.get_visible()
                and label.get_text().strip()
            ):
                labels.append(label)
    return labels


def corners(text, renderer):
    """The corners (4, 2) of the box of a text, turned as it is, in pixels."""
    if isinstance(text, Text3D):  # it knows where it is on paper only while it is drawn
        x, y, _ = proj3d.proj_transform(*text.get_position_3d(), text.axes.get_proj())
        flat = Text(
            x,
            y,
            text.get_text(),
            transform=text.axes.transData,
            fontsize=text.get_fontsize(),
            ha=text.get_ha(),
            va=text.get_va(),
        )
        flat.set_figure(text.figure)
        return corners(flat, renderer)
    box = text.get_window_extent(renderer)
    angle = np.deg2rad(text.get_rotation())
    middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
    turned = text.get_rotation()
    text.set_rotation(0)
    flat = text.get_window_extent(renderer)
    text.set_rotation(turned)
    half = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * (flat.width / 2, flat.height / 2)
    return middle + half @ np.array(
        [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    )


def overlap(one, other):
    """By how many pixels two convex polygons (4, 2) overlap, 0 where a line separates them."""
    least = np.inf
    for shape in (one, other):
        for side in np.roll(shape, -1, axis=0) - shape:
            length = np.linalg.norm(side)
            if length == 0:
                return 0.0
            normal = np.array([-side[1], side[0]]) / length
            a, b = one @ normal, other @ normal
            least = min(least, min(a.max(), b.max()) - max(a.min(), b.min()))
    return max(least, 0.0)


def faults(figure, smallest=6.5):
    """What is wrong with the texts of a figure, in words; an empty list where nothing is."""
    texts = drawn_texts(figure)
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    found = [
        f"{text.get_text()!r} has {text.get_fontsize():g} points"
        for text in texts
        if text.get_fontsize() < smallest
    ]
    places = [corners(text, renderer) for text in texts]
    for text, place in zip(texts, places, strict=True):
        low, high = place.min(axis=0), place.max(axis=0)
        if (low < -0.5).any() or high[0] > width + 0.5 or high[1] > height + 0.5:
            found.append(
                f"{text.get_text()!r} is cut: {low.round()} to {high.round()} in {width} x {height}"
            )
    fixed = [number for number, text in enumerate(texts) if not is_beside_data(text)]
    for i, j in itertools.combinations(fixed, 2):
        if (covered := overlap(places[i], places[j])) > SLACK:
            found.append(
                f"{texts[i].get_text()!r} and {texts[j].get_text()!r} overlap by {covered:.1f}"
                " pixels"
            )
    return found


def is_beside_data(text):
    """Whether a text is the name of a point, whose place the data choose."""
    return isinstance(text, Annotation | Text3D)
