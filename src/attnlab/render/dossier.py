"""The dossier of a trained model: one self-contained page of HTML."""

from __future__ import annotations

import base64
import io
import json
import shlex
from collections.abc import Collection, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab import __version__
from attnlab.analysis.intervals import wilson_interval
from attnlab.models.checkpoints.head_names import name_heads
from attnlab.models.studies.dossier import Dossier, ShownFlow
from attnlab.models.studies.dossier_findings import (
    Finding,
    cosine_word,
    findings,
    last_numbers,
    same_leader,
    turn_word,
)
from attnlab.models.studies.grades import enough
from attnlab.models.studies.sentences import TITLES, name_leaders, special_words
from attnlab.models.studies.shares import CLASSES, shares_of
from attnlab.models.studies.stacks import STACKS
from attnlab.progress import ProgressOption, track
from attnlab.render.flow_figure import draw_flow
from attnlab.render.page import Pieces, escape, page, put_behind, verdict_table
from attnlab.render.sentence_figure import draw_iteration, draw_sentence
from attnlab.render.spectra_figure import ON_A_PAGE, draw_spectra, draw_verdict_map

if TYPE_CHECKING:
    import xarray

CSS = """
figure .wide { border-radius: 4px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f6; padding: .6rem .8rem; border-radius: 4px; }
blockquote { margin: .6rem 0; padding-left: .8rem; border-left: 3px solid #d9d9d9; overflow-wrap: anywhere; max-width: 46rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; font-weight: 600; overflow-wrap: anywhere; }
td { overflow-wrap: anywhere; }
nav a { margin-right: 1rem; white-space: nowrap; display: inline-block; }
"""
"""Beside that of every page."""

MARKS = {
    "right": ("holds", "✓ right"),
    "in part": ("open", "~ in part"),
    "wrong": ("fails", "✗ not so"),
    "no evidence": ("open", "~ no evidence"),
    "scope": ("open", "· scope"),
}
SECTIONS = {
    "short": "In short",
    "spectra": "Heads",
    "flows": "Flows",
    "sentences": "Sentences",
    "tied": "The tied layer, iterated",
    "made": "How it was made",
}
DPI = 130


def dossier_page(
    found: Dossier,
    progress: ProgressOption = None,
    live: Collection[str] = (),
    pieces: Pieces | None = None,
) -> str:
    """Return the whole page, and draw its figures.

    live: the figures with a viewer; flow_0 is the first flow, sentence_0 the first sentence.
    pieces: of these viewers, from explorer/embed.py.
    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    model = found.model
    with track(progress, "drawing spectra") as progress:
        parts = [
            (
                f"<h1>{escape(model.name)}: a trained transformer, and what the theory says about"
                " it</h1>"
            ),
            _facts(found),
            _contents(found),
            _short(found),
            _spectra(found),
        ]
        progress(0.3, "drawing flows")
        parts.append(_flows(found, live))
        progress(0.6, "drawing sentences")
        parts.append(_sentences(found, live))
        progress(0.9, "writing")
        parts += [_iterations(found), _made(found)]
        return page(
            f"{model.name}: dossier", "\n".join(part for part in parts if part), CSS, pieces
        )


def _facts(found: Dossier) -> str:
    config = found.model.config
    words = [
        config.family,
        f"width {config.d}",
        f"{config.layers} layer{'s' if config.layers != 1 else ''}"
        + (" that share one set of weights" if config.is_tied else ""),
        f"{config.heads} head{'s' if config.heads != 1 else ''} per layer",
        (
            "each token sees only those before it"
            if config.is_causal
            else "every token sees every token"
        ),
        (
            f"norms {'before' if config.is_pre_norm else 'after'} attention"
            if _has_norm(found)
            else "no norm at attention"
        ),
    ]
    source, licence = escape(found.model.source), escape(found.model.licence)
    return f'<p class="cite">{escape(", ".join(words))}. From {source}; licence: {licence}.</p>'


def _has_norm(found: Dossier) -> bool:
    """Whether a norm stands before or after attention; the heads of `al.models.heads` may have none."""
    block = found.model.parts.layers[0].attention_block
    return any(norm is not None for norm in (block.norm_before, block.norm_output, block.norm_sum))


def _contents(found: Dossier) -> str:
    shown = [(name, title) for name, title in SECTIONS.items() if name != "tied" or found.tied]
    return (
        "<nav class=small>"
        + "".join(f'<a href="#{name}">{title}</a>' for name, title in shown)
        + "</nav>"
    )


def _heading(name: str) -> str:
    return f'<h2 id="{name}">{SECTIONS[name]}</h2>'


# --------------------------------------------------------------------------------------------------
# in short


def _short(found: Dossier) -> str:
    told = findings(found)
    counted = {word: sum(one.outcome == word for one in told) for word in MARKS}
    sphere = (
        "on a sphere whose radius is the norm of the model’s own tokens in that layer"
        if not found.model.config.is_pre_norm
        else "in the whole space, where attention reads normed tokens, as in this model"
        if _has_norm(found)
        else "in the whole space, without a norm, as in this model"
    )
    count = len(found.sentences)
    return (
        _heading("short")
        + "<p>A transformer turns a sentence into points, one per token, and moves them from layer"
        " to layer. The theory idealises this: points attract each other by attention alone, in"
        " continuous time. Under conditions on the weights they gather in few clusters around"
        " leaders. This page takes the weights of one trained model and measures how far the"
        " theory is from the model.</p><p>The page compares three things. <strong>Real</strong>:"
        " the model itself. <strong>Idealised model</strong>: the flow of the theory with the"
        f" same attention matrices, one unit of time per layer, {sphere}; no biases, no"
        " feed-forward part. <strong>Learned nothing</strong>: the same architecture with"
        f" Gaussian weights: {STACKS} stacks with the sizes of the trained matrices, and {STACKS}"
        " with the sizes before training. If one kind of these does the same, it is no"
        f" evidence of learning.</p><p>Of the questions below the theory is right in {counted['right']}, right"
        f" in part in {counted['in part']} and wrong in {counted['wrong']}. In"
        f" {counted['no evidence']} random weights do as well. Medians over {count}"
        f" sentence{'s' if count != 1 else ''}: an impression of one model, not statistics.</p>"
        + table(
            ("", "question", "the theory", "this model", "learned nothing", "in words"),
            [_finding(one) for one in told],
        )
        + "<p class=small>Turn: 1 − cosine between a token’s direction here and in the real model,"
        " on average over tokens; 0 is the same direction, 1 is unrelated. Groups: tokens"
        " connected by a chain of cosines at or above the stated one. An answer is right if the"
        " idealised model is nearer to the real stack than each of three others: random weights of"
        " trained size, untrained weights, and a trivial guess (the embedding left as it is; for"
        " leaders their usual place, or a blind guess). Nearer means: in"
        f" {enough(count)} of {count} sentence{'s' if count != 1 else ''}, and than {enough(STACKS)} of"
        f" {STACKS} stacks of each kind, in the mean over the sentences. (Exact sign tests at 5 %."
        " Fewer than six sentences are no test: then all must agree.) The place of a token is right"
        " only if it is also nearer than another token of the sentence."
        " docs/sentences.md tests more sentences and may grade a question differently.</p>"
    )


def _finding(one: Finding) -> list[str]:
    mark, word = MARKS[one.outcome]
    return [
        f'<span class="{mark}">{word}</span>',
        *map(escape, (one.question, one.theory, one.model, one.null, one.because)),
    ]


# --------------------------------------------------------------------------------------------------
# spectra


def _spectra(found: Dossier) -> str:
    frame, config = found.spectra, found.model.config
    shares, total, null = shares_of(frame), len(frame), frame.attrs["null_shares"]
    rows = []
    for name, says in CLASSES.items():
        low, high = wilson_interval(shares[name], total)
        word = (
            "as" if low <= null[name] <= high else "more than" if null[name] < low else "fewer than"
        )
        share = f"{shares[name] / total:.0%} ({low:.0%} to {high:.0%})"
        rows.append(
            [
                escape(says),
                f"{shares[name]} of {total}",
                share,
                f"{null[name]:.0%}",
                f"{word} chance gives",
            ]
        )
    layer = next((one.layer for one in found.flows if one.head is not None), 0)
    plane = draw_spectra(found.model, None if total <= ON_A_PAGE else layer, rng=found.rng)
    return (
        _heading("spectra")
        + "<p>A head writes V = W<sub>O</sub>W<sub>V</sub> times what it reads into a token. Take"
        " the eigenvalue of V of largest modulus. If it is positive and simple, and its direction"
        " attends to itself (a <em>good triple</em>), a theorem applies: tokens that this head"
        " alone moves end on at most three parallel hyperplanes. If it is negative or one of a"
        " complex pair, no theorem applies. In brackets: a 95 % interval, with heads taken as"
        " independent.</p>"
        + table(
            (
                "leading eigenvalue of V",
                "heads",
                "share",
                f"chance ({frame.attrs['null_draws']} random heads)",
                "in words",
            ),
            rows,
        )
        + picture(
            draw_verdict_map(frame),
            f"The leading eigenvalue of V in every head of {found.model.name}, by layer and head",
        )
        + picture(
            plane,
            "Eigenvalues of V in the complex plane"
            + ("" if total <= ON_A_PAGE or config.is_tied else f", the heads of layer {layer}"),
        )
    )


# --------------------------------------------------------------------------------------------------
# flows


def _flows(found: Dossier, live: Collection[str]) -> str:
    words = (
        "<p>The equation of the theory with the weights of one head. It starts from the first"
        " sentence below, as it enters that layer. Tokens grow along the leading direction of V, so"
        " the figures show their directions.</p>"
    )
    return (
        _heading("flows")
        + words
        + "".join(_flow(one, number, live) for number, one in enumerate(found.flows))
    )


def _flow(one: ShownFlow, number: int, live: Collection[str]) -> str:
    data, flow = one.flow.data, one.flow
    n, words = data.sizes["token"], data["word"].values
    counts, cosines = data["clusters"].values, data["cosine"].values
    leaders = [str(words[int(data["leader"].values[at])]).strip() for at in (0, -1)]
    text = (
        f"{one.why[0].upper()}{one.why[1:]}. At time {float(data['time'].values[-1]):g} the {n}"
        f" tokens are in {counts[-1]:.0f} group{'s' if counts[-1] != 1 else ''} (at the start"
        f" {counts[0]:.0f}), with a mean cosine of {cosines[-1]:.2f},"
        f" {cosine_word(float(cosines[-1]))} (at the start {cosines[0]:.2f}). Most attention,"
        f" special tokens counted, goes to “{leaders[0]}” at the start, to “{leaders[1]}” in the"
        f" end. The first three principal axes show {data['explained'].values.sum():.0%} of the"
        " variance."
    )
    if flow.limit is not None and flow.limit.certified:
        count = flow.limit.count
        where = (
            f"{count} point{'s' if count != 1 else ''} in the growing directions"
            f" ({flow.limit.grade})"
        )
        text += (
            f" For t → ∞ the limit is certified: {where}."
            if count is not None
            else f" For t → ∞: {flow.limit.reason}"
        )
    elif one.head is not None:
        text += f" The limit for t → ∞ was not decided: {flow.no_limit}"
    name = name_heads(one.layer, one.head)
    rows = [
        {
            "outcome": verdict.outcome.name,
            "theorem": verdict.theorem,
            "kind": verdict.kind,
            "run": name,
            "unmet": verdict.unmet,
            "evidence": verdict.evidence,
        }
        for verdict in flow.verdicts
    ]
    return (
        f"<h3>{name[0].upper()}{name[1:]}</h3><p>{escape(text)}</p>"
        + _picture_of(f"flow_{number}", draw_flow(flow), f"The flow of {name}", live)
        + (verdict_table(rows) if rows else "")
    )


# --------------------------------------------------------------------------------------------------
# sentences


def _sentences(found: Dossier, live: Collection[str]) -> str:
    intro = (
        f"<p>Texts: {escape(found.about_texts)}. Each goes through the model, and through the model"
        " with pieces taken out, from the same first tokens. Leaders are the tokens that receive"
        " most attention, on average over heads and tokens.</p>"
    )
    return (
        _heading("sentences")
        + intro
        + "".join(_sentence(data, number, live) for number, data in enumerate(found.sentences))
    )


def _sentence(data: xarray.Dataset, number: int, live: Collection[str]) -> str:
    n, layers = data.sizes["token"], int(data.attrs["layers"])
    text = data.attrs["text"] or " ".join(data["word"].values)
    about = json.loads(data.attrs["about_variants"])
    unknown = (
        f" The tokenizer does not know {data.attrs['unknown']} of them."
        if data.attrs["unknown"]
        else ""
    )
    rows = []
    for variant in map(str, data["variant"].values):
        values = {
            name: last_numbers(data, variant, name)
            for name in ("cosine", "clusters", "rank", "turn")
        }
        cells = [escape(TITLES.get(variant, variant.replace("_", " "))), escape(about[variant])]
        if not np.isfinite(values["cosine"]):
            rows.append([*cells, "numbers overflow", *"––––"])
            continue
        rows.append(
            [
                *cells,
                f"{values['cosine']:.2f}, {cosine_word(values['cosine'])}",
                f"{values['clusters']:.0f} of {n}",
                f"{values['rank']:.1f}",
                "–" if variant == "real" else f"{values['turn']:.2f}, {turn_word(values['turn'])}",
                (
                    "–"
                    if variant == "real" or layers < 2
                    else f"in {same_leader(data, variant):.0%} of layers"
                ),
            ]
        )
    real, idealised = name_leaders(data, "real"), name_leaders(data, "twin")
    leaders = [
        [str(layer), escape(", ".join(one)), escape(", ".join(other))]
        for layer, (one, other) in enumerate(zip_longest(real, idealised, fillvalue=["–"]))
    ]
    return (
        f"<h3>Sentence {number + 1}</h3><blockquote>{escape(text)}</blockquote><p>{n} tokens, "
        f"{int(data['is_special'].values.sum())} of them added by the model.{unknown}</p>"
        + _picture_of(
            f"sentence_{number}",
            draw_sentence(data),
            f"The sentence through the layers: {text}",
            live,
        )
        + f"<p>After the last of {layers} layers (the leading words: after the first, among words"
        " that the model did not add itself):</p>"
        + table(
            (
                "stack",
                "what it is",
                "mean cosine",
                "groups",
                "effective rank",
                "turn",
                "same leading word",
            ),
            rows,
        )
        + "<p>Which tokens lead, with the share of all attention of the"
        f" layer{_describe_counting(data)}:</p>"
        + table(("layer", "in the real model", "in the idealised model"), leaders)
    )


def _describe_counting(data: xarray.Dataset) -> str:
    words = special_words(data, is_counted=True)
    return f" ({escape(words)} here)" if words else ""


# --------------------------------------------------------------------------------------------------
# one layer, repeated


def _iterations(found: Dossier) -> str:
    if not found.tied:
        return ""
    parts = [
        _heading("tied"),
        (
            "<p>All layers of this model are the same layer, so it can be repeated further. The"
            " theory predicts that the tokens gather.</p>"
        ),
    ]
    for data in found.tied:
        parts += [f"<p>{escape(str(data.attrs['answer']))}</p>", _iteration_picture(data)]
    return "".join(parts)


def _iteration_picture(data: xarray.Dataset) -> str:
    return picture(draw_iteration(data), "The tied layer, repeated")


def _made(found: Dossier) -> str:
    return (
        _heading("made")
        + f"<p>attnlab {escape(__version__)}, seed {found.rng} for everything random. Heads, layers"
        " and tokens count from 0. The forward pass is that of the original implementation, in"
        " double precision. Everything on this page is in this file; nothing comes from a"
        f" network.</p><pre>{escape(chr(10).join(_commands(found)))}</pre>"
    )


def _commands(found: Dossier) -> list[str]:
    """Return what makes the parts of the page: commands, or lines of Python for a model in
    memory.
    """
    if found.model.address is None:
        return _python_lines(found)
    name = shlex.quote(found.model.address)
    read = [
        (
            shlex.quote(data.attrs["text"])
            if data.attrs["text"]
            else f"--ids {','.join(str(i) for i in data['id'].values)}"
        )
        for data in found.sentences
    ]
    first = f"--text {read[0]}" if found.sentences[0].attrs["text"] else read[0]
    seed = f" --rng {found.rng}" if found.rng else ""
    flows = []
    for one in found.flows:
        which = f"--layer {one.layer}" + ("" if one.head is None else f" --head {one.head}")
        run = one.flow.run
        flows.append(
            f"attnlab flow {name} {which} --t-end {run.solve.t_end:g} --dt {run.solve.dt or 0:g}"
            f" {first}{seed}"
        )
    texts = "".join(f" --text {words}" for words in read) if found.about_texts == "given" else ""
    return [
        f"attnlab dossier {name}{texts}{seed}",
        f"attnlab spectra {name}{seed}",
        *flows,
        *(f"attnlab sentence {name} {words}{seed}" for words in read),
    ]


def _python_lines(found: Dossier) -> list[str]:
    """Return the same as lines of Python; m is the model, which no command can read."""
    seed = f", rng={found.rng}" if found.rng else ""
    given = ", texts" if found.about_texts == "given" else ""
    lines = [
        f"found = al.models.dossier(m{given}{seed})",
        'al.explore(found, "dossier.html")',
        "found.spectra",
    ]
    for number, one in enumerate(found.flows):
        head = "" if one.head is None else f" head {one.head},"
        run = one.flow.run
        lines.append(
            f"found.flows[{number}].flow  # layer {one.layer},{head} t_end = {run.solve.t_end:g},"
            f" dt = {run.solve.dt or 0:g}"
        )
    return [*lines, *(f"found.sentences[{number}]" for number in range(len(found.sentences)))]


# --------------------------------------------------------------------------------------------------
# helpers


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of HTML cells. On a phone each row becomes a small list, with the names of its
    columns.
    """
    body = "".join(
        "<tr>"
        + "".join(
            f'<td data-name="{escape(name)}">{cell}</td>' if name else f"<td>{cell}</td>"
            for name, cell in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return (
        '<div class="wide"><table'
        f' class="claims"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _picture_of(name: str, figure: Any, words: str, live: Collection[str]) -> str:
    """Return a figure, with a viewer if there is one of that name."""
    return put_behind(name if name in live else None, picture(figure, words))


def picture(figure: Any, words: str) -> str:
    """Return a figure inside the page itself, with a text alternative."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    width, height = (round(float(inches) * DPI) for inches in figure.get_size_inches())
    return (
        '<figure class="scrolls"><div class="wide" tabindex="0">'
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" '
        f'alt="{escape(words)}"></div></figure>'
    )
