"""The figure of a flow with trained weights: directions on principal axes, clusters, eigenvalues of
P, received attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from attnlab.displayed import shorten
from attnlab.models.checkpoints.head_names import name_heads
from attnlab.render.about import format_number, join_parts
from attnlab.render.heat_maps import draw_strip
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.panels.box import SpaceBox, keep_labels
from attnlab.render.panels.flat import frame_flat, token_size
from attnlab.render.panels.flow_end import draw_distance, draw_way
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.ranges import pad_ranges
from attnlab.render.style import (
    HULL,
    INK,
    MARKERS,
    NOTE,
    PALETTE,
    RULE,
    HouseFigure,
    dress_flat,
    house_style,
    paper_figure,
    set_layout,
    title,
)
from attnlab.render.word_labels import LONGEST_WORD, label_points
from attnlab.render.wrap import text_width, wrap

if TYPE_CHECKING:
    from attnlab.models.studies.flows import Flow

WIDTH, COLUMN = 10.4, 5.0
"""Inches that the figure is usually wide, and below which the two views stand one below the
other.
"""

KEY = 0.17
"""Inches of a line of the legend."""

MOST_NAMED = 6
"""Clusters that the legend names: one a colour."""

MOST_WORDS, MOST_TRIED = 22, 120
"""Tokens that all have their word beside them. Of more, the leaders have, and the others where
there is room; of more than the second number only leaders.
"""

MOST_ROWS, MOST_NARROW_ROWS = 44, 28
"""Rows of the map that all have their word; the second in a paper."""

LONGEST_TEXT = 70
"""Characters of a text that the headline has."""

NEAR = 16.0
"""Points between start and end below which a word stands beside the end."""

RING = 8.0
"""Points from the middle of a leader to its ring."""

MOST_MODULI = 200
"""Eigenvalues that are drawn, the largest ones."""

INSIDE: Any = {
    "fontsize": 8,
    "loc": "best",
    "frameon": True,
    "facecolor": "white",
    "edgecolor": "none",
    "framealpha": 0.85,
}
"""Legends inside a panel: lines may pass below them."""


@dataclass(frozen=True, eq=False)
class Look:
    """The look of tokens: the colour and marker of their cluster; single tokens are grey. leaders:
    tokens with a ring.
    """

    colours: np.ndarray  # (n, 3)
    markers: np.ndarray  # (n,)
    leaders: np.ndarray  # numbers
    groups: int  # clusters of two tokens or more


def draw_flow(found: Flow, paper: Paper = SCREEN) -> Figure:
    """Principal axes in the plane and in space, numbers over time, and the attention that each word
    receives.
    """
    look, words = look_of(found), [word.strip() or repr(word) for word in found.words]
    with house_style(paper):
        marks = _legend_marks(look, found)
        columns = _key_columns(paper, marks)
        figure, places, rooms = _places(
            paper, len(words), KEY * -(-len(marks) // columns), found.end is not None
        )
        _legend(places["legend"], marks, columns, paper)
        _draw_plane(places["plane"], found, look, paper)
        _draw_space(places["space"], found, look, paper)
        _draw_counts(places["counts"], found, paper)
        _draw_cosines(places["cosines"], found, paper)
        _draw_moduli(places["moduli"], found, paper)
        _draw_received(places["received"], found, look, words, paper)
        if found.end is not None:
            _draw_end(places["way"], places["distance"], found, look, paper)
        for name, room in rooms.items():
            _set_title(places[name], room, paper)
        title(figure, flow_headline(found), _note(found, look))
        keep_labels(figure)  # the layout must be known before words find their places
        _name_tokens(places["plane"], found, look, words, paper)
    return figure


def _set_title(axes: Any, room: float, paper: Paper) -> None:
    """Write the title of a panel smaller, and on as many lines as it needs."""
    size = 8.0 if paper.is_narrow else 9.5
    axes.set_title(
        wrap(axes.get_title(), room, size), fontsize=size, pad=2 if axes.name == "3d" else None
    )


def _places(
    paper: Paper, n: int, key: float, has_end: bool
) -> tuple[HouseFigure, dict[str, Any], dict[str, float]]:
    """The figure, its axes by what they show, and the inches that each is wide; key: inches of the
    legend.

    The two views stand side by side, in a column of a paper one below the other.
    """
    width = WIDTH if paper.width is None else paper.width
    strip = (
        float(
            np.clip((0.125 if paper.is_narrow else 0.145) * n, 1.1, 3.4 if paper.is_narrow else 4.6)
        )
        + 0.75
    )
    small = 1.3 if paper.is_narrow else 2.35
    rows = [
        (key, ["legend"]),
        (0.42 * width, ["plane", "space"]),
        (small, ["counts", "cosines", "moduli"]),
        (strip, ["received"]),
    ]
    if width < COLUMN:
        rows[1:3] = [
            (0.7 * width, ["plane"]),
            (small + 0.2, ["space", "moduli"]),
            (small, ["counts", "cosines"]),
        ]
    if has_end:
        rows.insert(-1, (small + 0.25, ["way", "distance"]))
    heights = [height for height, _ in rows]
    figure = paper_figure(paper, WIDTH, sum(heights))
    set_layout(
        figure,
        **({"h_pad": 0.05, "w_pad": 0.04} if paper.is_narrow else {"h_pad": 0.1, "w_pad": 0.08}),
        hspace=0.02,
    )
    # rows are figures of their own: labels and colour bars of one take no room in another
    parts: Any = figure.subfigures(len(rows), 1, height_ratios=heights)
    places, rooms = {}, {}
    for part, (_, names) in zip(parts, rows, strict=True):
        if names == ["legend"]:
            places["legend"] = part
            continue
        for place, name in enumerate(names):
            places[name] = part.add_subplot(
                1, len(names), place + 1, projection="3d" if name == "space" else None
            )
            rooms[name] = width / len(names) - (0.5 if paper.is_narrow else 0.7) * (
                3 if name == "received" else 1
            )
    return figure, places, rooms


def look_of(found: Flow) -> Look:
    """Clusters at the end by size: colours, then markers; leaders are those whom a cluster attends
    to, and the most attended.
    """
    n = len(found.words)
    colours, markers = np.tile(to_rgb(HULL), (n, 1)), np.full(n, MARKERS[0])
    leaders, groups = {int(found.data["leader"].values[-1])}, 0
    for cluster in found.clusters:
        if len(cluster.members) < 2:
            continue
        if groups < len(PALETTE) * len(MARKERS):
            members = list(cluster.members)
            colours[members] = to_rgb(PALETTE[groups % len(PALETTE)])
            markers[members] = MARKERS[groups // len(PALETTE)]
        leaders.add(cluster.leader)
        groups += 1
    return Look(colours, markers, np.array(sorted(leaders)), groups)


def flow_headline(found: Flow) -> str:
    """Return the title: the head of the flow and its start."""
    facts = found.data.attrs
    which = name_heads(facts["layer"], facts["head"] if facts["head"] >= 0 else None)
    quoted = f" ({facts['paper']})" if facts.get("paper") else ""
    run = found.run
    return join_parts(
        [
            (
                f"{escape_words(facts['model'], LONGEST_NAME)}, {which}{quoted}: the idealised flow"
                f" from {escape_words(_start_words(facts), 160)}"
            ),
            f"β = {format_number(run.dynamics.beta)}, n = {run.n}, d = {run.d}",
        ]
    )


def _start_words(facts: Mapping[str, Any]) -> str:
    """The start of a flow in words; of a long text only the beginning, so that what follows it
    stays.
    """
    start, words = str(facts["start"]), str(facts.get("text", ""))
    return start.replace(words, shorten(words, LONGEST_TEXT)) if words else start


def _note(found: Flow, look: Look) -> str:
    facts, scale = found.data.attrs, found.data.attrs["cosine_scale"]
    parts = [
        "" if found.run.is_ok else f"{found.status} ",
        (
            "Directions x / |x| on principal axes of all times together. Clusters: directions"
            f" joined by cosines of {scale:g} or more, at the end; grey: alone. Rings: the tokens"
            " that a cluster, or all tokens, attend to most. "
        ),
    ]
    if len(found.words) > MOST_WORDS:
        parts.append(
            "Words stand where there is room. "
            if len(found.words) <= MOST_TRIED
            else "Only leaders have their word. "
        )
    heads = found.data.sizes["head"]
    parts.append(
        "Moduli: of all eigenvalues of P(t); the first is 1. "
        if heads == 1
        else (
            f"Moduli: of all eigenvalues of the sum of the {heads} matrices P(t); the first is the"
            " number of heads. "
        )
    )
    if found.end is not None:
        parts.append(
            "Rescaled tokens: exp(-tV) x along directions in which the end is certified; a star:"
            " where a group ends. Upright line: the end of the run; lying line: the error of the"
            " end. "
            + (
                "The leading eigenvalues of V are a pair, so leaders rotate, and none is final. "
                if found.end.rotates
                else ""
            )
        )
    parts.append(f"Solved with {facts['solved']}.")
    if len(found.in_doubt):
        parts.append(
            f" {len(found.in_doubt)} of {len(found.words)} directions change by more than 0.1 with"
            " steps twice as long."
        )
    return "".join(parts)


def _legend_marks(look: Look, found: Flow) -> list[Line2D]:
    """What start, end, leaders and the largest clusters look like."""
    count = int(found.data["clusters"].values[-1])
    last = float(found.data["time"].values[-1])
    dot: Any = {"linestyle": "", "marker": "o", "color": INK}
    marks = [
        Line2D([], [], markersize=5, markerfacecolor="white", label="start", **dot),
        Line2D([], [], markersize=6, label=f"t = {last:g}", **dot),
        Line2D([], [], markersize=9, markerfacecolor="none", label="leader", **dot),
    ]
    for group in range(min(look.groups, MOST_NAMED)):
        marks.append(
            Line2D(
                [],
                [],
                linestyle="",
                marker=MARKERS[group // len(PALETTE)],
                markersize=7,
                color=PALETTE[group % len(PALETTE)],
                label=_size_of(found, group),
            )
        )
    if look.groups > MOST_NAMED:
        marks.append(Line2D([], [], linestyle="", label=f"… of {count} clusters"))
    return marks


def _key_columns(paper: Paper, marks: Sequence[Line2D]) -> int:
    """Entries of the legend that fit side by side."""
    width = WIDTH if paper.width is None else paper.width
    widest = max(text_width(str(mark.get_label()), _key_size(paper)) for mark in marks) + 0.42
    return max(1, min(len(marks), int((width - 0.2) / widest)))


def _key_size(paper: Paper) -> float:
    return 7.0 if paper.is_narrow else 8.5


def _legend(figure: Any, marks: Sequence[Line2D], columns: int, paper: Paper) -> None:
    in_rows = [
        marks[k] for column in range(columns) for k in range(column, len(marks), columns)
    ]  # matplotlib fills columns
    figure.legend(
        handles=in_rows,
        loc="center",
        ncols=columns,
        frameon=False,
        fontsize=_key_size(paper),
        handletextpad=0.3,
        columnspacing=1.4,
        borderpad=0.0,
        labelspacing=0.3,
    )


def _size_of(found: Flow, group: int) -> str:
    cluster = found.clusters[group]
    return f"{len(cluster.members)} tokens, led by {_short(found.words[cluster.leader])}"


def _axis_labels(found: Flow) -> list[str]:
    return [
        f"principal axis {k + 1} ({share:.0%})".replace("%", " %")
        for k, share in enumerate(found.data["explained"].values)
    ]


def _by_marker(look: Look) -> list[tuple[str, np.ndarray]]:
    return [
        (marker, np.flatnonzero(look.markers == marker)) for marker in dict.fromkeys(look.markers)
    ]


def _draw_plane(axes: Any, found: Flow, look: Look, paper: Paper) -> None:
    path = found.data["plane"].values[..., :2]  # (T, n, 2)
    frame_flow_plane(axes, found, paper)
    axes.set_box_aspect(None)
    axes.set_aspect("auto")
    size, shown = token_size(path.shape[1], paper), found.data["explained"].values[:2].sum()
    axes.add_collection(
        LineCollection(
            list(np.swapaxes(path, 0, 1)), colors=look.colours, linewidths=0.8, alpha=0.45, zorder=2
        ),
        autolim=False,
    )
    for marker, tokens in _by_marker(look):
        axes.scatter(
            *path[0, tokens].T,
            s=0.55 * size,
            marker=marker,
            facecolors="white",
            edgecolors=look.colours[tokens],
            linewidths=0.9,
            zorder=3,
            label="start",
        )
        axes.scatter(
            *path[-1, tokens].T,
            s=1.3 * size,
            marker=marker,
            c=look.colours[tokens],
            edgecolors="white",
            linewidths=0.6,
            zorder=4,
            label="end",
        )
    axes.scatter(
        *path[-1, look.leaders].T,
        s=4.2 * size,
        facecolors="none",
        edgecolors=INK,
        linewidths=0.9,
        zorder=5,
        label="leader",
    )
    if paper.has_title:
        axes.set_title(f"in the plane: {shown:.0%} of the variance".replace("%", " %"))


def frame_flow_plane(axes: Any, found: Flow, paper: Paper) -> None:
    """Give axes the limits and labels of the plane of a flow: the first two principal axes."""
    path = found.data["plane"].values[..., :2]
    dress_flat(axes)
    labels = _axis_labels(found)[:2]
    labels = [label.removeprefix("principal ") for label in labels] if paper.is_narrow else labels
    frame_flat(axes, labels, pad_ranges(path.min(axis=(0, 1)), path.max(axis=(0, 1))))


def _name_tokens(axes: Any, found: Flow, look: Look, words: Sequence[str], paper: Paper) -> None:
    """Words beside the starts, where tokens are still apart; of those that stay there, and of
    leaders, beside the ends.
    """
    path = found.data["plane"].values[..., :2]
    are_few = len(words) <= MOST_WORDS
    named = np.arange(len(words)) if len(words) <= MOST_TRIED else look.leaders[:MOST_WORDS]
    at = (
        axes.transData.transform(path[:, named].reshape(-1, 2)).reshape(-1, len(named), 2)
        * 72
        / axes.figure.dpi
    )
    is_near = (
        np.linalg.norm(at[-1] - at[0], axis=-1) < NEAR
    )  # the end would lie under the word of the start
    leads = np.isin(named, look.leaders)
    at_end = is_near | (leads & (not are_few))
    points = np.where(at_end[:, None], path[-1, named], path[0, named])
    others = np.where(at_end[:, None], path[0, named], path[-1, named])
    # rings and the other tokens take room: nameless points on them keep names away
    reach = RING * np.array([(1, 0), (-1, 0), (0, 1), (0, -1)]) * axes.figure.dpi / 72
    ringed = axes.transData.transform(path[-1, look.leaders])[:, None] + reach
    rings = axes.transData.inverted().transform(ringed.reshape(-1, 2))
    label_points(
        axes,
        np.concatenate([points, others, rings]),
        [*(words[int(i)] for i in named), *[""] * (len(others) + len(rings))],
        [*np.where(leads, INK, NOTE), *[INK] * (len(others) + len(rings))],
        7 if paper.is_narrow else 8,
        first=np.flatnonzero(leads),
    )


def _draw_space(axes: Any, found: Flow, look: Look, paper: Paper) -> None:
    path = found.data["plane"].values  # (T, n, 3)
    limits = pad_ranges(path.min(axis=(0, 1)), path.max(axis=(0, 1)))
    labels = [label.removeprefix("principal ") for label in _axis_labels(found)]
    box = SpaceBox(
        axes,
        [label.partition(" (")[0] for label in labels] if paper.is_narrow else labels,
        limits,
        paper=paper,
    )
    if paper.is_narrow:  # the plane has the numbers, and here they would cover each other
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_ticklabels([])
            axis.labelpad = -14.0
    axes.add_collection3d(
        Line3DCollection(
            list(np.swapaxes(path, 0, 1)), colors=look.colours, linewidths=0.7, alpha=0.45, zorder=3
        )
    )
    size = token_size(path.shape[1], paper)
    for marker, tokens in _by_marker(look):
        for at, face, factor in ((0, "white", 0.55), (-1, None, 1.3)):
            near = np.clip(1.0 + 0.35 * box.depth(path[at, tokens]), 0.5, 1.5)
            axes.scatter(
                *path[at, tokens].T,
                s=factor * size * near,
                marker=marker,
                depthshade=False,
                zorder=4 - at,
                facecolors=look.colours[tokens] if face is None else face,
                edgecolors=look.colours[tokens] if face else "white",
                linewidths=0.8,
            )
    axes.scatter(
        *path[-1, look.leaders].T,
        s=4.2 * size,
        facecolors="none",
        edgecolors=INK,
        linewidths=0.9,
        depthshade=False,
        zorder=6,
    )
    shown = found.data["explained"].values.sum()
    if paper.has_title:
        axes.set_title(f"in space: {shown:.0%} of the variance".replace("%", " %"))


def _time_axis(axes: Any, found: Flow, paper: Paper) -> np.ndarray:
    times = found.data["time"].values
    dress_flat(axes, ticks=3 if paper.is_narrow else 5)
    axes.set_xlim(times[0], times[-1] if len(times) > 1 else times[0] + 1)
    axes.set_xlabel("t", labelpad=1)
    return times


def _draw_counts(axes: Any, found: Flow, paper: Paper) -> None:
    data, n = found.data, len(found.words)
    times = _time_axis(axes, found, paper)
    axes.step(
        times,
        data["clusters"].values,
        where="post",
        color=PALETTE[0],
        linewidth=1.6,
        label="clusters",
    )
    axes.plot(
        times,
        data["rank"].values,
        color=PALETTE[1],
        linewidth=1.4,
        linestyle=(0, (5, 2)),
        label="effective rank",
    )
    axes.set_ylim(0, (1.75 if paper.is_narrow else 1.06) * n)
    if paper.is_narrow:
        axes.set_yticks([0, n])
    axes.axhline(1.0, color=RULE, linewidth=0.8, zorder=0)
    axes.set_title(f"of {n} tokens")
    axes.legend(**_inside(paper) | _above(paper))


def _draw_cosines(axes: Any, found: Flow, paper: Paper) -> None:
    data = found.data
    times = _time_axis(axes, found, paper)
    axes.plot(
        times,
        data["cosine"].values,
        color=PALETTE[2],
        linewidth=1.6,
        label="mean" if paper.is_narrow else "mean over pairs",
    )
    axes.plot(
        times,
        data["cosine_low"].values,
        color=PALETTE[3],
        linewidth=1.4,
        linestyle=(0, (5, 2)),
        label="5 % below" if paper.is_narrow else "5 % of pairs are below",
    )
    low = float(np.nanmin(data["cosine_low"].values))
    bottom = min(-0.05, low - 0.06)
    axes.set_ylim(bottom, 1.05 + (0.6 * (1.05 - bottom) if paper.is_narrow else 0.0))
    if paper.is_narrow:
        axes.set_yticks([0.0, 0.5, 1.0])
    axes.axhline(0.0, color=RULE, linewidth=0.8, zorder=0)
    axes.set_title("cosine of directions")
    axes.legend(**_inside(paper) | _above(paper))


def _draw_moduli(axes: Any, found: Flow, paper: Paper) -> None:
    data, heads = found.data, found.data.sizes["head"]
    times = _time_axis(axes, found, paper)
    moduli = data["mean_eigenvalue"].values * heads  # (T, n)
    axes.plot(times, moduli[:, 2:MOST_MODULI], color=HULL, linewidth=0.5, alpha=0.6, zorder=2)
    axes.plot(
        times,
        moduli[:, 1],
        color=PALETTE[1],
        linewidth=1.5,
        linestyle=(0, (5, 2)),
        zorder=5,
        label="second",
    )
    axes.plot(
        times,
        moduli[:, 0],
        color=INK,
        linewidth=1.6,
        zorder=4,
        label="first" if heads == 1 or paper.is_narrow else f"first: H = {heads}",
    )
    axes.set_ylim(
        -0.02 * heads, (1.6 if paper.is_narrow else 1.32) * heads
    )  # the legend stands above
    axes.set_title(
        "|eigenvalues| of P(t)" if heads == 1 else "|eigenvalues| of the sum of all P(t)"
    )
    axes.legend(**_inside(paper) | {"loc": "upper right", "ncols": 2})


def _above(paper: Paper) -> dict[str, Any]:
    """In a paper legends stand above the lines, where the limits leave room."""
    return {"loc": "upper right", "labelspacing": 0.25} if paper.is_narrow else {}


def _inside(paper: Paper) -> dict[str, Any]:
    """How legends inside a panel look."""
    return (
        {**INSIDE, "fontsize": 7, "handlelength": 1.2, "columnspacing": 0.8, "borderpad": 0.2}
        if paper.is_narrow
        else INSIDE
    )


def _draw_end(way: Any, distance: Any, found: Flow, look: Look, paper: Paper) -> None:
    """Where the tokens end, by the certified limit; how far they are from there."""
    limit, end = found.limit, found.end
    assert limit is not None and end is not None
    draw_way(way, limit, end, look.colours, token_size(len(found.words), paper))
    draw_distance(distance, limit, end, look.colours, float(found.data["time"].values[-1]))
    count = len(end.groups)
    groups = f"{count} group{'' if count == 1 else 's'}{' that rotate' if end.rotates else ''}"
    groups += "s" if end.rotates and count == 1 else ""
    way.set_title(f"rescaled tokens, and where they end: {groups}")
    until = "for ever" if end.horizon is None else f"up to λ₁ t = {end.horizon * end.rate.real:.3g}"
    distance.set_title(f"distance from there; certified {until} (grey)")


def _draw_received(axes: Any, found: Flow, look: Look, words: Sequence[str], paper: Paper) -> None:
    data, n = found.data, len(words)
    times = data["time"].values
    if len(times) < 2:
        axes.axis("off")
        return
    image = draw_strip(axes, times, data["received"].values.T)
    axes.invert_yaxis()
    are_all = n <= (MOST_NARROW_ROWS if paper.is_narrow else MOST_ROWS)
    named = np.arange(n) if are_all else look.leaders
    axes.set_yticks(named, [_short(words[int(i)]) for i in named], fontsize=7)
    for label, token in zip(axes.get_yticklabels(), named, strict=True):
        if token in look.leaders and are_all:
            label.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("t", labelpad=1)
    mean = "" if data.sizes["head"] == 1 else " (mean over heads)"
    axes.set_title(
        f"share of all attention that each token receives{mean}"
        + ("; leaders in bold" if are_all else "; leaders are named")
    )
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01, aspect=14, extend="min")
    bar.outline.set_visible(False)


def _short(word: str) -> str:
    return escape_words(word.strip() or repr(word), LONGEST_WORD)
