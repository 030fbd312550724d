"""The house style: colours, fonts, figures and how axes are dressed. Every look is decided here.

The palette is Okabe and Ito's, safe for colour-blind readers, without its yellow (invisible on
white) and its black (kept for leaders). Groups beyond the sixth repeat the colours with another
marker or dashes, so that no two groups differ by colour alone in a way that print would lose. No
LaTeX is needed; fonts are embedded as text.
"""

from __future__ import annotations

import io
import os
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attnlab.files import write_bytes
from attnlab.render.names import check_figure_name
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.tex import write_pgf
from attnlab.render.wrap import text_height, wrap

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D")
LINES: tuple[Any, ...] = (
    "solid",
    (0, (5, 2)),
    (0, (1, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
)  # one a marker
INK = "#222222"
NOTE = "#666666"
HULL = "#8A8A8A"
RULE = "#D9D9D9"

STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": [
        "DejaVu Sans"
    ],  # ships with matplotlib: the same figure on every machine, and it has subscripts
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "figure.titlesize": 12,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#9A9A9A",
    "axes.linewidth": 0.7,
    "xtick.color": "#9A9A9A",
    "ytick.color": "#9A9A9A",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "text.usetex": False,
    "text.parse_math": True,  # our own $V_h$; words of strangers go through literal.escape_words
    "pdf.fonttype": 42,  # TrueType: text stays text in the PDF
    "savefig.bbox": None,
}

NARROW_STYLE: Any = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "figure.titlesize": 9.0,
    "legend.fontsize": 7.0,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.pad": 2.5,
    "ytick.major.pad": 2.5,
    "axes.titlepad": 4.0,
}
"""What is smaller in a column of a paper. Nothing there is below SMALLEST."""

SMALLEST = 7.0
"""Points of the smallest letters."""

NOTE_SIZE, NARROW_NOTE_SIZE = 8.5, 7.0
"""Points of the note below the panels."""

SIDE = 0.08
"""Inches that a headline keeps from either side."""

TOKENS: Colormap = LinearSegmentedColormap.from_list(
    "attnlab_tokens", matplotlib.colormaps["viridis"](np.linspace(0.0, 0.88, 256))
)
"""Colours of tokens that form no groups: viridis without its yellow end, which is lost on white
paper.
"""

ATTENTION: Colormap = LinearSegmentedColormap.from_list(
    "attnlab_attention",
    [(1.0, 1.0, 1.0), *matplotlib.colormaps["magma_r"](np.linspace(0.04, 1.0, 24))[:, :3]],
    N=512,
)
"""Attention weights: magma backwards, perceptually uniform, but from white: no attention is the
paper itself.
"""


class HouseFigure(Figure):
    """A matplotlib Figure that needs no pyplot: it shows itself in a notebook and saves in the
    house style.

    caption: what the headline and the note say, also where they are not drawn. paper: what it is
    drawn for. body: inches of height without headline and note, where `title` may add to them;
    None: the height stays.
    """

    caption: str = ""
    paper: Paper = SCREEN
    body: float | None = None

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()

    def draw(self, renderer: Any) -> None:
        """As Figure.draw, in the house style: matplotlib makes ticks when it draws them, with the
        rcParams of that moment.
        """
        with house_style(self.paper):
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """As Figure.savefig, in the house style whatever the caller's rcParams. A file is replaced
        whole or not at all.
        """
        target = args[0] if args else options.pop("fname", None)
        if not isinstance(target, (str, os.PathLike)):
            if options.get("format") == "pgf":
                raise ValueError(
                    "A .pgf figure must be saved under the name of a file, because pictures in it"
                    f" become files beside it; got {type(target).__name__}."
                )
            with house_style(self.paper):
                super().savefig(target, *args[1:], **options)
            return
        if options.get("format") is None:
            options["format"] = check_figure_name(target).suffix.lower().lstrip(".")
        if options["format"] == "pgf":
            with house_style(self.paper):
                write_pgf(
                    self,
                    target,
                    *args[1:],
                    **{name: value for name, value in options.items() if name != "format"},
                )
            return
        drawn = io.BytesIO()
        self.savefig(drawn, *args[1:], **options)
        write_bytes(target, drawn.getbuffer())


def house_style(paper: Paper = SCREEN) -> Any:
    """A context in which artists are made in the house style; the caller's rcParams come back after
    it.
    """
    return matplotlib.rc_context(_style(paper))


def _style(paper: Paper) -> Any:
    return STYLE | NARROW_STYLE if paper.is_narrow else STYLE


def new_figure(width: float, height: float, dpi: float = 150) -> HouseFigure:
    """An empty figure of width x height inches with constrained layout and its own Agg canvas."""
    figure = HouseFigure(figsize=(width, height), dpi=dpi, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    set_layout(figure, h_pad=0.15, w_pad=0.06)  # inches: the note must not touch the axis labels
    return figure


def paper_figure(paper: Paper, width: float, body: float) -> HouseFigure:
    """An empty figure for `paper`, usually `width` inches wide; its panels take `body` inches, and
    `title` adds its lines.
    """
    figure = new_figure(width if paper.width is None else paper.width, body)
    figure.paper, figure.body = paper, body
    if paper.is_narrow:
        set_layout(figure, h_pad=0.05, w_pad=0.04)
    return figure


def set_layout(figure: Figure, **options: Any) -> None:
    """Pass options to the constrained layout of a figure, as ConstrainedLayoutEngine.set takes
    them.
    """
    engine: Any = figure.get_layout_engine()
    engine.set(**options)


def dress_flat(axes: Any, ticks: int = 4) -> None:
    """Plain axes: no top and right frame, few ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))


def dress_space(axes: Any, size: float = 7.5) -> None:
    """3-d axes: white walls, hair-thin grid, few ticks, labels close to the box."""
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
        axis.pane.set_edgecolor(RULE)
        axis.line.set_color("#B0B0B0")
        axis.line.set_linewidth(0.7)
        axis._axinfo["grid"].update(
            color="#EBEBEB", linewidth=0.5
        )  # matplotlib has no public way to set the 3-d grid
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    axes.tick_params(pad=-2, labelsize=size)
    axes.patch.set_visible(
        False
    )  # labels reach into the neighbouring panel's corner: it must not paint over them


def label_upright(axes: Any, label: str) -> None:
    """The label of the vertical axis: a letter stands upright, words run along the axis."""
    is_short = len(label) <= 3
    axes.set_ylabel(
        label,
        rotation=0 if is_short else 90,
        va="center" if is_short else "bottom",
        labelpad=6 if is_short else 3,
    )


def title(figure: Figure, headline: str, note: str = "") -> None:
    """The headline on top; below the panels, in small grey, how to read the picture. Both are on as
    many lines as they need.
    """
    paper, body = getattr(figure, "paper", SCREEN), getattr(figure, "body", None)
    if isinstance(figure, HouseFigure):
        figure.caption = caption(headline, note)
    if not paper.has_title:
        return
    room = figure.get_figwidth() - 2 * SIDE
    size = float(_style(paper)["figure.titlesize"])
    small = NARROW_NOTE_SIZE if paper.is_narrow else NOTE_SIZE
    headline, note = wrap(headline, room, size), wrap(note, room, small)
    figure.suptitle(headline, fontweight="normal", fontsize=size)
    if note:
        figure.supxlabel(note, fontsize=small, color=NOTE)
    if body is not None:
        pad = 2 * _height_pad(figure)
        figure.set_figheight(
            body
            + text_height(headline, size)
            + pad
            + (text_height(note, small) + pad if note else 0.0)
        )


def caption(headline: str, note: str) -> str:
    """Headline and note as the text of a caption, in one paragraph."""
    words = " ".join(headline.split())
    return (
        f"{words}{'' if words.endswith(('.', '!', '?')) else '.'} {' '.join(note.split())}".rstrip()
    )


def _height_pad(figure: Figure) -> float:
    engine: Any = figure.get_layout_engine()
    return float(engine.get()["h_pad"])


def subscript(number: int) -> str:
    """12 -> '₁₂'."""
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
