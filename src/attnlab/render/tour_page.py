"""The tour as one self-contained page of HTML with large type, and its figures."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab import __version__
from attnlab.models.checkpoints.head_names import name_head
from attnlab.render.dossier import table
from attnlab.render.flow_figure import look_of
from attnlab.render.literal import LONGEST_NAME, escape_words
from attnlab.render.page import BAD, GOOD, Pieces, escape, page, put_behind
from attnlab.render.panels.flow_end import draw_distance, draw_way
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
from attnlab.render.word_labels import LONGEST_WORD

CSS = f"""
html {{ scroll-behavior: smooth; }}
body {{ font-size: 1.25rem; line-height: 1.6; max-width: 76rem; padding: 2.5rem 2rem 6rem; }}
header {{ display: grid; grid-template-columns: 1fr minmax(0, 30rem); gap: 1rem 3rem; align-items: center; }}
header figure {{ margin: 0; }} sub, sup {{ line-height: 0; font-size: .72em; }}
h1 {{ font-size: 3.4rem; line-height: 1.15; letter-spacing: -.015em; margin: 0 0 .8rem; max-width: 60rem; }}
h2 {{ font-size: 2rem; line-height: 1.2; letter-spacing: -.01em; margin: 5rem 0 1rem; padding-top: 1.6rem;
  border-top: 3px solid {INK}; max-width: none; }}
h2 span {{ color: {PALETTE[0]}; margin-right: .6rem; }}
h3 {{ font-size: 1.4rem; line-height: 1.3; margin: 0; font-weight: 600; }}
p {{ max-width: 50rem; margin: .9rem 0; }}
p.lede {{ font-size: 1.45rem; line-height: 1.5; }}
p.formula {{ font: italic 1.6rem/1.7 "STIX Two Text", "DejaVu Serif", Georgia, serif; max-width: none; margin: 1.4rem 0;
  padding: .8rem 1.2rem; background: #f5f8fb; border-left: 5px solid {PALETTE[0]}; white-space: pre-wrap; }}
nav ol {{ padding-left: 1.6rem; margin: 1rem 0; }} nav li {{ margin: .3rem 0; }}
figure {{ margin: 1.6rem 0; }}
figure img {{ border: 0; margin: 0; }}
figure.narrow img {{ max-width: min(100%, 56rem); }}
figcaption {{ font-size: 1rem; }}
.card {{ border: 0; border-left: 5px solid {RULE}; border-radius: 0; overflow: visible;
  padding: .2rem 0 .2rem 1.2rem; margin: 3.5rem 0 1rem; }}
.card.holds-card {{ border-color: {GOOD}; }} .card.fails-card {{ border-color: {BAD}; }}
.card div.top {{ display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: baseline; padding: 0; border: 0; }}
.mark {{ font-size: 1rem; font-weight: 700; letter-spacing: .05em; padding: .1rem .7rem; border-radius: 1rem; white-space: nowrap;
  color: #fff; background: #767676; }}
.mark.good {{ background: #00785a; }} .mark.bad {{ background: #b34700; }}
dl {{ margin: .8rem 0 0; display: grid; grid-template-columns: minmax(9rem, 17rem) 1fr; gap: .35rem 1.5rem; max-width: 62rem; }}
dt {{ color: {NOTE}; }} dd {{ margin: 0; overflow-wrap: anywhere; }}
table {{ font-size: 1.1rem; }} td {{ overflow-wrap: anywhere; }}
td .mark {{ font-size: .8rem; }}
.left-out {{ background: #fff6e5; border-left: 5px solid {PALETTE[4]}; padding: .6rem 1rem; }}
pre {{ font-size: 1.05rem; line-height: 1.7; background: #f5f5f5; padding: 1rem 1.2rem; border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
footer {{ margin-top: 4rem; color: {NOTE}; font-size: 1rem; }}
@media (max-width: 48rem) {{
  body {{ font-size: 1.08rem; padding: 1.2rem 1rem 4rem; }}
  h1 {{ font-size: 2.3rem; }} h2 {{ font-size: 1.5rem; margin-top: 3.5rem; }} h3 {{ font-size: 1.2rem; }}
  p.lede {{ font-size: 1.2rem; }} p.formula {{ font-size: 1.15rem; padding: .6rem .8rem; }}
  dl {{ grid-template-columns: 1fr; gap: 0; }} dd {{ margin-bottom: .5rem; }}
  .card {{ padding-left: .9rem; }}
  header {{ grid-template-columns: minmax(0, 1fr); }}
  table {{ font-size: 1rem; }}
}}
@media print {{ h2 {{ break-before: page; margin-top: 0; }} figure, .card {{ break-inside: avoid; }} }}
"""
"""Beside that of every page: larger type."""

TAGS = {"_": "sub", "^": "sup"}
GOOD_WORDS, BAD_WORDS = ("SUPPORTED", "CERTIFIED", "right"), ("CONTRADICTED", "not so")
OPEN_WORDS = ("no evidence", "in part")
NEXT = (
    (
        "attnlab reproduce --all",
        "every experiment of the paper and of the slides after it, with checked claims",
    ),
    (
        "attnlab dossier minilm -o dossier.html",
        "a whole page like this one about one trained model",
    ),
    ('attnlab sentence minilm "Your own sentence."', "the last stop, with your words"),
    (
        "attnlab run polytope_3d -o run.nc",
        "a run of your own: `attnlab list examples` has more, and a file of yours works too",
    ),
    ("attnlab predict polytope_3d", "what the theorems say about it, without a simulation"),
)


def tour_page(
    chapters: Sequence[tuple[str, Any, Any]], rows: Sequence[Any], pieces: Pieces | None = None
) -> str:
    """Return the document of (name, Stop, Chapter) in their order. The first movie is at the top.
    pieces: of its viewers.
    """
    contents = "".join(
        f'<li><a href="#{escape(name)}">{escape(stop.title)}</a></li>' for name, stop, _ in chapters
    )
    parts = [part for _, _, chapter in chapters for part in chapter.parts]
    film = next((part for part in parts if getattr(part, "file", "").endswith(".gif")), None)
    body = [
        '<header><div><h1>When tokens move</h1><p class="lede">A transformer reads a sentence by'
        " moving points. What if one "
        "takes "
        "that literally, and asks where the points go? There is an equation, there are theorems"
        " about where it ends, and there "
        "are trained models to hold beside it. All pictures and numbers below were computed on your"
        " own machine when this page "
        f'was made.</p><nav><ol>{contents}</ol><p><a href="#terms">Terms that this page'
        " uses</a></p></nav></div>"
        f"{'' if film is None else part_of_page(film)}</header>",
        "<h2>Everything in one table</h2>",
        summary_table(rows),
    ]
    for name, stop, chapter in chapters:
        body.append(f'<h2 id="{escape(name)}"><span>{stop.number}</span>{escape(stop.title)}</h2>')
        body += [part_of_page(part) for part in chapter.parts if part is not film]
    commands = "\n".join(f"{command}\n    # {what}" for command, what in NEXT)
    body.append(
        "<h2>Where to go next</h2><p>Everything here was made by one program, and you have it. In"
        " the folder where you made the tour, after <code>source"
        f" .venv/bin/activate</code>:</p><pre>{escape(commands)}</pre><p>The mathematics is that of"
        " <em>The emergence of clusters in self-attention dynamics</em> (Geshkovski, Letrouit,"
        " Polyanskiy, Rigollet, NeurIPS 2023, arXiv:2305.05465) and <em>A mathematical perspective"
        " on Transformers</em> (arXiv:2312.10794). docs/theorems.md lists every statement that is"
        f" checked, docs/errata.md what was wrong.</p><footer>attnlab {escape(__version__)}."
        " Figures lie beside this page as files; everything is also inside it, and nothing comes"
        " from a network. summary.csv has the table.</footer>"
    )
    return page("attnlab: the tour", "\n".join(body), CSS, pieces)


def summary_table(rows: Sequence[Any]) -> str:
    """Return the table of all rows: the question, the verdict, and the answer."""
    return table(
        ("what is asked", "verdict", "what was found"),
        [[escape(row.shows), mark(row.verdict), escape(found_words(row))] for row in rows],
    )


def found_words(row: Any) -> str:
    """Return the answer of a row in a few words."""
    if row.limits not in ("", "undecided"):
        return (
            f"{row.limits} limit{'s' if row.limits != 1 else ''},"
            f" {'proved' if row.grade == 'proved' else 'certified'} from t = {row.decided_at:.3g} on"
        )
    return (
        f"theory: {row.predicts}; model: {row.found}"
        if row.stop == "sentence" and row.predicts
        else row.found
    )


def mark_up(text: str) -> str:
    """Return plain text as HTML, with x_(i) and e^(t) as subscripts and superscripts."""
    return re.sub(
        r"([_^])\(([^()]*)\)",
        lambda found: f"<{(tag := TAGS[found[1]])}>{found[2]}</{tag}>",
        escape(text),
    )


def mark(verdict: str) -> str:
    """Return a verdict as a badge."""
    look = " good" if verdict in GOOD_WORDS else " bad" if verdict in BAD_WORDS else ""
    return f'<span class="mark{look}">{escape(verdict.replace("_", " "))}</span>'


def part_of_page(part: Any) -> str:
    """Return one part of a chapter as HTML. Its fields identify the record."""
    kind = type(part).__name__
    return {
        "Text": _text,
        "Formula": _formula,
        "Picture": _picture,
        "Table": _table,
        "Card": _card,
    }[kind](part)


def _text(part: Any) -> str:
    label = f"<strong>{escape(part.label)}</strong> " if part.label else ""
    return f"<p{' class=left-out' if part.label == 'Left out.' else ''}>{label}{mark_up(part.text)}</p>"


def _formula(part: Any) -> str:
    return f'<p class="formula">{mark_up(part.text)}</p>'


def _table(part: Any) -> str:
    return table(part.head, [[_cell(cell) for cell in row] for row in part.rows])


def _cell(cell: str) -> str:
    return mark(cell) if cell in (*GOOD_WORDS, *BAD_WORDS, *OPEN_WORDS) else escape(cell)


def _card(part: Any) -> str:
    verdict = part.row.verdict
    look = " holds-card" if verdict in GOOD_WORDS else " fails-card" if verdict in BAD_WORDS else ""
    facts: Mapping[str, str] = part.facts
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{mark_up(words)}</dd>" for name, words in facts.items()
    )
    return (
        f'<div class="card{look}"><div'
        f' class="top"><h3>{escape(part.title)}</h3>{mark(verdict)}</div><dl>{rows}</dl></div>'
    )


def _picture(part: Any) -> str:
    ending = part.file.rsplit(".", 1)[-1]
    data = base64.b64encode(part.content).decode("ascii")
    look = "narrow" if part.is_narrow else "scrolls"
    caption = f"<figcaption>{escape(part.caption)}</figcaption>" if part.caption else ""
    still = (
        f'<figure class="{look}"><div class="wide" tabindex="0">'
        f'<img src="data:image/{ending};base64,{data}" '
        f'alt="{escape(part.words)}"></div>{caption}</figure>'
    )
    return put_behind(part.live and part.file.rsplit(".", 1)[0], still)


# --------------------------------------------------------------------------------------------------
# figures


def draw_force(x: np.ndarray, P: np.ndarray, shown: int) -> Figure:
    """Tokens x (n, 2) with attention P (n, n), V = I: what one of them attends to, and the velocity
    of each.
    """
    with house_style():
        figure = new_figure(10.0, 3.9)
        left, right = figure.subplots(1, 2)
        for j in np.argsort(P[shown]):
            if j != shown:
                left.plot(
                    *np.stack([x[shown], x[j]]).T,
                    color=PALETTE[1],
                    linewidth=0.5 + 30 * P[shown, j],
                    alpha=0.5,
                    solid_capstyle="round",
                    zorder=1,
                )
            if j != shown and P[shown, j] >= 0.01:
                left.annotate(
                    f"{P[shown, j]:.0%}",
                    x[j],
                    xytext=(0, 10),
                    textcoords="offset points",
                    ha="center",
                    fontsize=11,
                )
        right.quiver(
            *x.T,
            *(P @ x).T,
            angles="xy",
            scale_units="xy",
            scale=2.6,
            width=0.009,
            color=PALETTE[1],
            zorder=2,
        )
        right.plot([0.0], [0.0], "+", color=NOTE, markersize=12, markeredgewidth=1.6)
        for axes, words in (
            (left, f"what one token attends to\n({P[shown, shown]:.0%} goes to itself)"),
            (right, "velocities, V = I\n"),
        ):
            axes.scatter(*x.T, s=110, color=PALETTE[0], zorder=3, edgecolor="white", linewidth=1.2)
            axes.set(aspect="equal", xlim=(-2.7, 2.7), ylim=(-1.7, 1.7), xticks=[], yticks=[])
            axes.set_title(words, fontsize=13)
            axes.spines[:].set_visible(False)
        left.scatter(*x[shown], s=240, color=PALETTE[1], zorder=4, edgecolor="white", linewidth=1.2)
    return figure


def draw_wall(
    times: np.ndarray, counts: np.ndarray, events: Sequence[float], wall: float, limit: Any
) -> Figure:
    """Groups over time, changes of leader as strokes, and the time at which double precision
    ends.
    """
    with house_style():
        figure = new_figure(10.4, 4.8)
        axes, rug = figure.subplots(2, 1, sharex=True, height_ratios=[5, 1])
        top = float(min(counts.max(), 12)) + 0.6
        for one in (axes, rug):
            one.axvspan(wall, times[-1], color="#EFEFEF", zorder=0, linewidth=0)
        axes.step(times, counts, where="post", color=PALETTE[0], linewidth=2.6, zorder=3)
        axes.axhline(limit.count, color=PALETTE[2], linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)
        axes.axvline(limit.t, color=PALETTE[2], linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)
        words = (
            f"certified from here on:\nno leader changes any more,\n{limit.count} groups in the end"
        )
        axes.annotate(
            words,
            (limit.t, 0.62 * top),
            xytext=(-8, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            color="#00785a",
            fontsize=12,
        )
        axes.annotate(
            "double precision has ended",
            (wall, top),
            xytext=(8, -6),
            textcoords="offset points",
            va="top",
            color=NOTE,
            fontsize=12,
        )
        at = float(counts[np.searchsorted(times, 5.0)])
        axes.plot([5.0], [at], "o", color=PALETTE[1], markersize=9, zorder=4)
        axes.annotate(
            "published pictures end here",
            (5.0, at),
            xytext=(12, 8),
            textcoords="offset points",
            color=PALETTE[1],
            fontsize=12,
        )
        axes.set(ylim=(0, top), xlim=(0, float(times[-1])))
        axes.set_ylabel("groups", fontsize=12)
        rug.vlines(events, 0, 1, color=INK, linewidth=0.9)
        rug.set(ylim=(-0.15, 1.15), yticks=[], xlabel="t")
        rug.set_ylabel(
            "leaders change\nbeyond the wall", rotation=0, ha="right", va="center", fontsize=10
        )
        for one in (axes, rug):
            dress_flat(one, 6)
        rug.spines["left"].set_visible(False)
        rug.set_yticks([])
        title(figure, "Thirty tokens, V = diag(1, 0.9, −0.5): the plateau is not the end")
    return figure


def draw_head(found: Any) -> Figure:
    """Of the flow of one trained head: the spectrum of V, directions on two principal axes, and
    groups over time.
    """
    data, numbers, look = found.data, found.heads[0].numbers, look_of(found)
    with house_style():
        figure = new_figure(11.6, 4.7)
        spectrum, plane, groups = figure.subplots(1, 3, width_ratios=[1, 1.15, 0.95])
        draw_spectrum(spectrum, numbers.eigenvalues, [numbers.lambda1])
        paths = data["plane"].values[..., :2]  # (T, n, 2)
        for i in range(paths.shape[1]):
            plane.plot(*paths[:, i].T, color=look.colours[i], linewidth=0.9, alpha=0.6)
        plane.scatter(
            *paths[0].T, s=26, facecolor="white", edgecolor=look.colours, linewidth=1.3, zorder=3
        )
        plane.scatter(
            *paths[-1].T, s=62, color=look.colours, edgecolor="white", linewidth=0.9, zorder=4
        )
        for one in found.clusters[:3]:
            label = (
                f"{len(one.members)} attend to"
                f" {escape_words(found.words[one.leader], LONGEST_WORD)}"
            )
            plane.scatter([], [], s=62, color=look.colours[one.members[0]], label=label)
        plane.legend(
            frameon=False,
            fontsize=11,
            loc="upper center",
            bbox_to_anchor=(0.5, 1.02),
            handletextpad=0.2,
        )
        plane.margins(0.1)
        plane.set_ylim(top=1.55 * plane.get_ylim()[1])  # room for the legend
        plane.set(xlabel="principal axis 1", ylabel="principal axis 2")
        plane.set_title("the tokens of one reaction", fontsize=12)
        groups.step(
            data["time"].values,
            data["clusters"].values,
            where="post",
            color=PALETTE[0],
            linewidth=2.4,
        )
        groups.set(ylim=(0, data.sizes["token"]), xlabel="t")
        groups.set_title(f"groups of {data.sizes['token']} tokens", fontsize=12)
        for axes in (spectrum, plane, groups):
            dress_flat(axes)
        name = name_head(data.attrs["layer"], data.attrs["head"])
        title(figure, f"{escape_words(data.attrs['model'], LONGEST_NAME)}, {name} alone")
    return figure


def draw_end(found: Any) -> Figure:
    """Of the flow of one trained head with a certified end: the spectrum of V, rescaled tokens on
    their way, and their distance from the end.
    """
    end, limit, look = found.end, found.limit, look_of(found)
    with house_style():
        figure = new_figure(11.6, 4.7)
        spectrum, way, distance = figure.subplots(1, 3, width_ratios=[1, 1.1, 1.1])
        leading = [end.rate, end.rate.conjugate()] if end.rate.imag else [end.rate]
        draw_spectrum(spectrum, found.heads[0].numbers.eigenvalues, leading)
        draw_way(way, limit, end, look.colours, 46)
        draw_distance(
            distance, limit, end, look.colours, float(found.data["time"].values[-1]), has_run=False
        )
        way.set_title("rescaled tokens, and their end", fontsize=12)
        distance.set_title("distance from the end", fontsize=12)
        dress_flat(spectrum)
        name = name_head(found.data.attrs["layer"], found.data.attrs["head"])
        groups = (
            f"one group of {len(found.words)} tokens"
            if len(end.groups) == 1
            else f"{len(end.groups)} groups"
        )
        title(
            figure,
            f"{escape_words(found.data.attrs['model'], LONGEST_NAME)}, {name} alone: {groups}",
        )
    return figure


def draw_spectrum(axes: Any, eigenvalues: np.ndarray, leading: Sequence[complex]) -> None:
    """Draw eigenvalues of V in the complex plane, the leading ones large, on their circle."""
    turn = np.exp(1j * np.linspace(0, 2 * np.pi, 241)) * abs(leading[0])
    axes.plot(turn.real, turn.imag, color=PALETTE[2], linewidth=0.9)
    axes.axhline(0, color=HULL, linewidth=0.8)
    axes.axvline(0, color=RULE, linewidth=0.8)
    axes.scatter(eigenvalues.real, eigenvalues.imag, s=16, color=INK, alpha=0.6, linewidths=0)
    axes.scatter(np.real(leading), np.imag(leading), s=130, color=PALETTE[2], zorder=3)
    axes.set(aspect="equal", xlabel="real part", ylabel="imaginary part")
    axes.set_title("eigenvalues of V", fontsize=12)
