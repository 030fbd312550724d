"""The figure of a Limit: where every token starts, whom it follows, and where it ends."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.figure import Figure

from attnlab.render.about import describe_run, join_parts
from attnlab.render.limit_view import LimitView, make_view
from attnlab.render.literal import escape_words
from attnlab.render.panels.box import keep_labels
from attnlab.render.panels.ends import MOST_NAMES, draw_ends_flat, draw_ends_line, draw_ends_space
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import paper_figure, title
from attnlab.render.wrap import text_height, wrap
from attnlab.types import Limit

LONGEST_REASON = 420
"""Characters of a reason that fit above a panel."""


def draw_limit(limit: Limit, paper: Paper = SCREEN) -> Figure:
    """The picture of a Limit, certified or not."""
    view = make_view(limit, paper)
    is_space, is_line = view.m == 3, view.m == 1
    rows = min(len(view.lines), 9)
    usual = 7.0 if is_line else 5.6
    width = usual if paper.width is None else paper.width
    row = 0.4 if paper.is_narrow else 0.55
    body = 0.6 + row * (rows + 1) if is_line else (0.9 if is_space else 1.0) * width
    reason = (
        ""
        if limit.certified
        else escape_words(textwrap.shorten(limit.reason, LONGEST_REASON, placeholder=" ..."))
    )
    size = 8.0 if paper.is_narrow else 9.0
    lines = wrap(reason, width - 1.0, size) if paper.has_title else ""
    figure = paper_figure(paper, usual, body + text_height(lines, size))
    axes: Any = figure.add_subplot(projection="3d" if is_space else None)
    (draw_ends_line if is_line else draw_ends_space if is_space else draw_ends_flat)(axes, view)
    axes.set_title(lines, fontsize=size, pad=8)
    title(figure, headline(view), note(view))
    figure.caption = f"{figure.caption} {reason}".rstrip()
    if is_space:
        keep_labels(figure)
    return figure


def headline(view: LimitView) -> str:
    """How many limits of how many tokens, of which equation, and how well that is known."""
    limit, (n, d) = view.limit, view.limit.x0.shape
    k = limit.basis.shape[1]
    run = describe_run(limit.dynamics, n, limit.spec)
    if not limit.certified:
        return join_parts(["UNDECIDED", run])
    if limit.place_count is not None:
        return join_parts(
            [
                f"{limit.place_count} place{'s' if limit.place_count > 1 else ''}",
                run,
                "nothing grows",
            ]
        )
    if k == 0:
        return join_parts(["Nothing grows: F = {0}", run])
    count = int(limit.count or 0)
    noun = (
        "limit point"
        if k == d
        else {1: "limiting line", 2: "limiting plane"}.get(d - k, "")
        if d <= 3
        else "limit"
    )
    where = "" if d <= 3 or k == d else f" in F, dimension {k} of {d}"
    grade = "proved" if limit.grade == "proved" else f"certified, {limit.grade}"
    return join_parts([f"{count} {noun}{'s' if count > 1 else ''}{where}", run, grade])


def note(view: LimitView) -> str:
    """How far to believe it, and how to read the picture."""
    limit, k = view.limit, view.limit.basis.shape[1]
    if not limit.certified:
        words = [
            "Grey: the tokens at the start.",
            "Their limits are unknown, so they are not drawn.",
        ]
        if len(view.lines) > 1:
            words.append("Lines: z at the requested times.")
    elif limit.places is not None:
        words = [
            "Where x(t), not z, comes to rest: no direction of V grows, F = {0}.",
            "Small: start; large: place.",
        ]
        if len(view.marks) > 1:
            words.append("Grey: convex hull of the places.")
    elif k == 0:
        words = ["The tokens at the start; z has no limit along any direction."]
    else:
        V = "V" if limit.dynamics.weights.heads == 1 else "ΣV"
        z = f"(I + dt {V})⁻ᵏ x" if limit.dynamics.is_layers else f"exp(−t{V}) x"
        words = [
            f"Limits of z = {z} within {limit.error:.1g}, decided at t = {limit.t:.3g}.",
            "Small: start; large: limit.",
        ]
        if len(view.leaders):
            words.append(
                f"Ring: leader{', with its number' if len(view.leaders) <= MOST_NAMES else ''}."
            )
        if view.m == 1:
            words.append("Below the limits: how many tokens.")
        elif view.free.shape[1]:
            sets = "Panes" if view.free.shape[1] == 2 else "Dashes"
            words.append(
                f"{sets}: the limiting sets; along them z is free, and drawn as at the start."
            )
            if view.m == 2:
                words.append("Grey: F.")
            elif k == 2 and len(view.marks) > 1:
                words.append("Grey: convex hull of the limits in F.")
        elif len(view.marks) > 1:
            words.append("Grey: convex hull of the limits.")
    if view.is_projected:
        words.append(
            f"Two of {limit.x0.shape[1] if k == 0 or not limit.certified else k} coordinates."
        )
    return "  ".join(words)
