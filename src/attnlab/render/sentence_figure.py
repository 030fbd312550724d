"""Figures of a sentence in a trained model: its tokens through the stack and its variants, and
iterated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from attnlab.models.studies.sentences import TITLES, token_names
from attnlab.models.studies.tied import STILL
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import (
    ATTENTION,
    HULL,
    INK,
    NOTE,
    PALETTE,
    RULE,
    SMALLEST,
    dress_flat,
    house_style,
    paper_figure,
    title,
)
from attnlab.render.word_labels import LONGEST_WORD, spread_out
from attnlab.render.wrap import text_width, wrap

if TYPE_CHECKING:
    import xarray

LOOKS: dict[str, tuple[str, float, Any]] = {
    "real": (INK, 2.4, "solid"),
    "twin": (PALETTE[1], 2.4, "solid"),
    "random": (HULL, 2.4, (0, (4, 1.5))),
    "untrained": (HULL, 2.4, (0, (1, 1.2))),
    "no_mlp": (PALETTE[0], 1.2, "solid"),
    "no_norm": (PALETTE[2], 1.2, (0, (5, 2))),
    "no_mask": (PALETTE[5], 1.2, (0, (3, 1))),
    "attention_only": (PALETTE[3], 1.2, (0, (1, 1.2))),
    "tied": (PALETTE[4], 1.2, (0, (5, 1.5, 1, 1.5))),
}
"""Colour, width and dashes of a variant: the stack, the theory and the null are heavy."""

CURVES = {
    "cosine": "mean cosine of pairs",
    "clusters": "clusters",
    "rank": "effective rank",
    "turn": "turn from the real stack",
}
BESIDE = 8.0
"""Inches below which the names of lines stand together above the panels, and not each at the end of
its line.
"""

LEGEND_PAD = 29.0
"""Points between a panel of a repeated layer and its title: a legend of two lines stands between."""

KEY, KEY_COLUMNS = 0.15, 3
"""Inches of a line of these names, and how many stand side by side."""

STACKED = 5.0
"""Inches below which the two panels of curves stand one below the other."""

MOST_WORDS, MOST_NARROW_WORDS = 90, 32
"""Beyond this many tokens only every second, third, ... word stands at a map; the second in a
paper.
"""


def draw_sentence(data: xarray.Dataset, paper: Paper = SCREEN) -> Figure:
    """Every variant over the layers, and which words receive attention in the real stack; data:
    from `al.models.sentence`.
    """
    facts = data.attrs
    layers, n = facts["layers"], data.sizes["token"]
    shown = [str(name) for name in data["variant"].values if not _is_real_again(data, str(name))]
    has_key = (
        paper.width is not None and paper.width < BESIDE
    )  # a line has its name at its end where there is room
    with house_style(paper):
        map_rows = min(max((0.14 if paper.is_narrow else 0.24) * layers, 1.2), 5.0) + 1.6
        curves, key = (
            (2 * 1.5, KEY * -(-len(shown) // KEY_COLUMNS) + 0.1) if has_key else (5.6, 0.0)
        )
        figure = paper_figure(paper, 10.2, curves + key + map_rows)
        parts: Any = figure.subfigures(
            2 + has_key, 1, height_ratios=[*[key] * has_key, curves, map_rows]
        )
        if has_key:
            _draw_key(parts[0], shown)
        for axes, (name, words) in zip(
            parts[-2].subplots(2, 2).ravel(), CURVES.items(), strict=True
        ):
            _draw_curves(
                axes,
                data,
                name,
                words,
                [one for one in shown if name != "turn" or one != "real"],
                not has_key,
            )
        _draw_received(parts[-1], parts[-1].subplots(), data, paper)
        text = f": “{escape_words(facts['text'], 70)}”" if facts["text"] else f": {n} tokens"
        title(
            figure,
            f"{escape_words(facts['model'], LONGEST_NAME)}{text} · n = {n}",
            "0 layers done: what enters layer 0. Clusters: tokens whose directions have cosine"
            f" {facts['cosine_scale']:g} or more, and chains of them. Turn: the mean of 1 − cosine"
            f" between a token and itself in the real stack. {_null_words(shown)}"
            f"{_tied_words(data, shown)}Map: the share of all attention that a token receives, mean"
            " over heads; the circle is the leader, named at the right."
            f" {_special_words(data)}",
        )
    return figure


def _draw_key(figure: Any, shown: Sequence[str]) -> None:
    """Which line is which stack, above the panels."""
    marks = []
    for name in shown:
        colour, width, dashes = LOOKS.get(name, (NOTE, 1.0, "solid"))
        marks.append(
            Line2D(
                [], [], color=colour, linewidth=0.8 * width, linestyle=dashes, label=_title_of(name)
            )
        )
    figure.legend(
        handles=marks,
        loc="center",
        ncols=KEY_COLUMNS,
        frameon=False,
        fontsize=SMALLEST,
        handlelength=1.5,
        columnspacing=0.8,
        handletextpad=0.4,
        labelspacing=0.3,
        borderpad=0.0,
    )


def _title_of(variant: str) -> str:
    return TITLES.get(variant, variant.replace("_", " "))


def _is_real_again(data: xarray.Dataset, name: str) -> bool:
    """Whether a variant is the real stack by definition: without a mask that is not there, with a
    layer that is tied already.
    """
    return (
        name == "no_mask"
        and not data.attrs["is_causal"]
        or name == "tied"
        and bool(data.attrs["is_tied"])
    )


def _null_words(shown: Sequence[str]) -> str:
    """Say what the grey lines are, of those that are drawn."""
    found = ["random weights of the trained sizes (dashed)"] if "random" in shown else []
    if "untrained" in shown:
        found.append(f"untrained {'ones' if found else 'weights'} (dotted)")
    return f"Grey: the null{'s' * (len(found) > 1)}, {' and '.join(found)}. " if found else ""


def _tied_words(data: xarray.Dataset, shown: Sequence[str]) -> str:
    if "tied" not in shown:
        return ""
    layer, depth = data.attrs["tied_layer"], data.sizes["step"] - 1
    return f"One layer tied: layer {layer} repeated; in brackets its number after {depth}. "


def _special_words(data: xarray.Dataset) -> str:
    marks = zip(data["word"].values, data["is_special"].values, strict=True)
    added = [escape_words(str(word), LONGEST_WORD) for word, is_special in marks if is_special]
    return (
        f"The model itself added {' and '.join(added)}."
        if added
        else "No special tokens were added."
    )


def _draw_curves(
    axes: Any,
    data: xarray.Dataset,
    name: str,
    words: str,
    shown: Sequence[str],
    are_named: bool = True,
) -> None:
    """One number over the layers for each variant, named at the end of its line, or all together
    above.
    """
    layers = data.attrs["layers"]
    steps = np.arange(layers + 1)
    ends, labels = [], []
    for variant in sorted(shown, key=lambda one: LOOKS.get(one, (NOTE, 1.0, "solid"))[1]):
        values = data[name].sel(variant=variant).values
        colour, width, dashes = LOOKS.get(variant, (NOTE, 1.0, "solid"))
        axes.plot(
            steps,
            values[: layers + 1],
            color=colour,
            linewidth=width,
            linestyle=dashes,
            zorder=2 + width,
            label=variant,
        )
        there = np.flatnonzero(np.isfinite(values[: layers + 1]))
        if len(there):
            beyond = values[np.isfinite(values)][-1]
            ends.append((float(there[-1]), float(values[there[-1]])))
            last = (
                f" ({beyond:.2g})" if variant == "tied" and name != "turn" else ""
            )  # where there is no real one, no turn
            is_early = there[-1] < layers
            if is_early:  # a line to its name would look like a curve that goes on
                axes.plot(there[-1], values[there[-1]], "x", color=colour, clip_on=False, zorder=9)
                last = f" (ends at {there[-1]})"
            labels.append((_title_of(variant) + last, colour, is_early))
    axes.set_xlim(0, layers)
    if name == "clusters":
        axes.set_ylim(0, float(data[name].sel(variant=list(shown)).max()) * 1.06)
        words += f" (cosine {data.attrs['cosine_scale']:g})"
    dress_flat(axes)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("layers done")
    axes.set_title(
        words if are_named else wrap(words, 1.3, 8.0), loc="left", fontsize=None if are_named else 8
    )
    if not are_named:
        return
    low, high = axes.get_ylim()
    places = spread_out([y for _, y in ends], low, high, 0.078 * (high - low))
    for (x, y), place, (text, colour, is_early) in zip(ends, places, labels, strict=True):
        line = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.9,
            "shrinkA": 1,
            "shrinkB": 1,
            "relpos": (0, 0.5),
        }
        axes.annotate(
            text,
            (x, y),
            xytext=(1.07, (place - low) / (high - low)),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            color=colour if is_early else INK,
            annotation_clip=False,
            arrowprops=None if is_early else line,
        )


def _draw_received(figure: Any, axes: Any, data: xarray.Dataset, paper: Paper) -> None:
    """Layers x words: the attention that each word of the real stack receives, with the leader of
    each layer.
    """
    received = data["received"].sel(variant="real").values[: data.attrs["layers"]]
    layers, n = received.shape
    image = axes.imshow(
        received,
        cmap=ATTENTION,
        vmin=0.0,
        vmax=float(np.nanmax(received)),
        aspect="auto",
        interpolation="nearest",
    )
    names = _words(data)
    for layer, row in enumerate(received):
        if np.isfinite(row).all():
            axes.plot(
                row.argmax(),
                layer,
                marker="o",
                markersize=6,
                markerfacecolor="none",
                markeredgecolor=PALETTE[5],
                markeredgewidth=1.6,
            )
    width = 10.2 if paper.width is None else paper.width
    room, size = (
        width - (1.9 if paper.is_narrow else 2.2),
        7.0 if n > 40 or paper.is_narrow else 8.5,
    )  # inches, points
    every = -(-n // min(MOST_WORDS, int(room / 0.13)))
    widest = max(text_width(name, size) for name in names)
    turned = (
        0 if n * (widest + 0.05) < room else 40 if n <= 24 and not paper.is_narrow else 90
    )  # what fits
    axes.set_xticks(
        range(0, n, every),
        names[::every],
        rotation=turned,
        fontsize=size,
        ha="right" if turned == 40 else "center",
        rotation_mode="anchor" if turned == 40 else "default",
    )
    few = -(-layers // 24)
    axes.set_yticks(range(0, layers, few), [str(layer) for layer in range(0, layers, few)])
    axes.set_ylabel("read by layer")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    right = axes.secondary_yaxis("right")
    said = [
        f"{names[row.argmax()]}  {row.max():.0%}" if np.isfinite(row).all() else "-"
        for row in received
    ]
    right.set_yticks(range(0, layers, few), said[::few], fontsize=7 if paper.is_narrow else 8.5)
    right.tick_params(length=0)
    right.spines[:].set_visible(False)
    axes.set_title("attention received in the real stack", loc="left")
    if paper.is_narrow:  # beside the map there is no room left
        bar = figure.colorbar(
            image, ax=axes, location="top", shrink=0.5, aspect=16, pad=0.02, anchor=(1.0, 0.0)
        )
        bar.ax.set_ylabel("share", rotation=0, ha="right", va="center", fontsize=7)
        axes.set_title(axes.get_title(loc="left"), loc="left", fontsize=8)
    else:
        bar = figure.colorbar(image, ax=axes, shrink=0.85, aspect=14, pad=0.02)
        bar.set_label("share")
    bar.outline.set_visible(False)


def _words(data: xarray.Dataset) -> list[str]:
    """The words of the tokens as they stand at an axis."""
    return [escape_words(str(word).strip() or "_", LONGEST_WORD) for word in data["word"].values]


def draw_iteration(data: xarray.Dataset, paper: Paper = SCREEN) -> Figure:
    """Draw one repeated layer: cosines and clusters, how fast differences vanish, which words lead;
    from `al.models.iterate`.
    """
    facts = data.attrs
    if facts["steps"] < 2:
        raise ValueError(
            f"There is nothing to draw after {facts['steps']} layers: {facts['answer']}"
        )
    is_stacked = paper.width is not None and paper.width < STACKED
    with house_style(paper):
        n = data.sizes["token"]
        rows = (
            min(
                max((0.125 if paper.is_narrow else 0.17) * n, 1.6),
                9.0 if not paper.is_narrow else 4.0,
            )
            + 0.9
        )
        curves = 4.1 if is_stacked else 2.1 if paper.is_narrow else 3.4
        figure = paper_figure(paper, 9.4, curves + rows)
        halves: Any = figure.subfigures(2, 1, height_ratios=[curves, rows])
        top, bottom = halves
        left, right = top.subplots(2, 1) if is_stacked else top.subplots(1, 2)
        _draw_cosines(left, data, paper)
        _draw_shrinking(right, data, paper)
        _draw_leading(bottom, bottom.subplots(), data, paper)
        text = f": “{escape_words(facts['text'], 56)}”" if facts["text"] else f": {n} tokens"
        which = "its layer" if facts["is_tied"] else f"layer {facts['layer']}"
        title(
            figure,
            f"{escape_words(facts['model'], LONGEST_NAME)}, {which} repeated{text} · n = {n}",
            escape_words(facts["answer"]),
        )
    return figure


def _draw_cosines(axes: Any, data: xarray.Dataset, paper: Paper) -> None:
    steps = data["step"].values
    looks: dict[str, Any] = {"cosine": "solid", "cosine_least": (0, (4, 1.5))}
    for name, dashes in looks.items():
        axes.plot(steps, data[name].values, color=PALETTE[0], linewidth=1.6, linestyle=dashes)
    for level in data["level"].values:
        axes.axhline(level, color=RULE, linewidth=0.8, zorder=1)
    axes.set(xlim=(0, steps[-1]), xlabel="layers done")
    _set_title(
        axes, "cosines of directions (grey lines: 0.9, 0.99), and clusters", paper, pad=LEGEND_PAD
    )  # the legend is between
    axes.set_ylim(min(-0.05, float(np.nanmin(data["cosine_least"])) - 0.05), 1.05)
    dress_flat(axes)
    right = axes.twinx()
    right.step(steps, data["clusters"].values, where="post", color=PALETTE[1], linewidth=1.6)
    right.set_ylim(0, data.sizes["token"] * 1.08)
    right.set_ylabel(f"clusters (cosine {data.attrs['cosine_scale']:g})")
    right.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    right.spines["top"].set_visible(False)
    marks = [*axes.get_lines()[:2], Line2D([], [], color=PALETTE[1], linewidth=1.6)]
    names = [
        "mean",
        "least" if paper.is_narrow else "the pair that differs most",
        "clusters (right)",
    ]
    axes.legend(
        marks,
        names,
        frameon=False,
        fontsize=7 if paper.is_narrow else 8,
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.99),
        borderpad=0.1,
        columnspacing=1.0,
        handlelength=1.4,
    )


def _set_title(
    axes: Any, words: str, paper: Paper, pad: float | None = None, loc: str = "center"
) -> None:
    """The title of a panel, on as many lines as it needs."""
    size = 8.0 if paper.is_narrow else 9.5
    width = 9.4 if paper.width is None else paper.width
    room = width - 1.2 if loc == "left" or width < STACKED else width / 2 - 0.6
    axes.set_title(wrap(words, room, size), fontsize=size, pad=pad, loc=loc)


def _draw_shrinking(axes: Any, data: xarray.Dataset, paper: Paper) -> None:
    steps = data["step"].values
    for name, rate, words, colour, dashes in (
        ("spread", "rate", "differences within a group", PALETTE[2], "solid"),
        ("change", "approach", "moved by the layer", PALETTE[3], (0, (4, 1.5))),
    ):
        values = data[name].values
        if not (values > 0).any():
            continue
        factor, low, high = (data.attrs[f"{rate}{end}"] for end in ("", "_low", "_high"))
        interval = (
            "" if paper.is_narrow else f" ({low:.3f} to {high:.3f})"
        )  # the note has it as well
        fit = (
            f": × {factor:.2f} per layer{interval}" if high < 1 else ""
        )  # else it may not shrink at all
        axes.plot(
            steps,
            np.where(values > 0, values, np.nan),
            color=colour,
            linewidth=1.6,
            linestyle=dashes,
            label=words + fit,
        )
        if fit:
            window = np.arange(data.attrs[f"{rate}_from"], data.attrs[f"{rate}_to"] + 1)
            middle = np.log(values[window]).mean() + np.log(factor) * (window - window.mean())
            axes.plot(window, np.exp(middle), color=INK, linewidth=0.9, zorder=4)
    axes.axhline(STILL, color=RULE, linewidth=0.8, zorder=1)
    axes.set(yscale="log", xlim=(0, steps[-1]), xlabel="layers done")
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 1e-16))
    _set_title(axes, "how fast (black: the fit; grey line: at rest)", paper, pad=LEGEND_PAD)
    dress_flat(axes)
    axes.legend(
        fontsize=7 if paper.is_narrow else 8,
        frameon=False,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.99),
        borderpad=0.1,
        labelspacing=0.2,
        handlelength=1.4,
    )


def _draw_leading(figure: Any, axes: Any, data: xarray.Dataset, paper: Paper) -> None:
    """Words x layers: attention received; a line of dots is the leader."""
    received = data["received"].values[:-1]
    steps, n = received.shape
    image = axes.imshow(
        received.T,
        cmap=ATTENTION,
        vmin=0.0,
        vmax=float(np.nanmax(received)),
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, steps - 0.5, n - 0.5, -0.5),
    )
    best = data["leader"].values[:-1].astype(int)
    is_led = (
        received.max(axis=1) > 1.01 / n
    )  # tokens in one point receive the same but for rounding
    size = max(2.0, min(6.0, 500 / steps))
    axes.plot(
        np.flatnonzero(is_led),
        best[is_led],
        linestyle="",
        marker=".",
        markersize=size,
        color=PALETTE[5],
    )
    every = -(-n // (MOST_NARROW_WORDS if paper.is_narrow else MOST_WORDS))
    axes.set_yticks(
        range(0, n, every),
        _words(data)[::every],
        fontsize=8.5 if n <= 40 and not paper.is_narrow else 7,
    )
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("read by layer")
    leader = escape_words(token_names(data)[best[-1]], 2 * LONGEST_WORD)
    last = f"in the end {leader}" if is_led[-1] else "in the end all tokens receive the same"
    _set_title(axes, f"attention received (dots: the leader; {last})", paper, loc="left")
    bar = figure.colorbar(image, ax=axes, shrink=0.85, aspect=max(16, n / 2), pad=0.02)
    bar.set_label("share")
    bar.outline.set_visible(False)
