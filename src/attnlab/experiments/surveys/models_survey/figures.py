"""Shares of heads beside chance, a map of one model, and tables."""

from __future__ import annotations

from typing import Any

from scipy.stats import binomtest

from attnlab.analysis.intervals import wilson_interval as interval
from attnlab.experiments.record import Data
from attnlab.models.checkpoints.head_names import name_head
from attnlab.models.studies.shares import CLASSES, shares_of
from attnlab.render.spectra_figure import draw_shares, draw_verdict_map

from .claims import beyond, frames_of, pooled
from .experiment import FACTS, NUMBERS


def figures(data: Data) -> dict[str, Any]:
    """All models side by side; the one with most heads, layer by layer."""
    frames = frames_of(data)
    return {"models_survey": draw_shares(frames), "map": draw_verdict_map(max(frames, key=len))}


def cell(count: int, total: int, chance: float) -> str:
    """A count with its share, interval, chance and p."""
    low, high = interval(count, total)
    p = binomtest(count, total, chance).pvalue
    return (
        f"{count}: {count / total:.0%} ({100 * low:.0f} to {high:.0%}); {chance:.0%}, p = {p:.2g}"
    )


def tables(data: Data) -> dict[str, Any]:
    """{heading: (legend, columns, rows)} for the page."""
    frames = frames_of(data)
    names = [frame.attrs["model"] for frame in frames]
    shares = [
        [
            frame.attrs["model"],
            len(frame),
            *(
                cell(count, len(frame), frame.attrs["null_shares"][kind])
                for kind, count in shares_of(frame).items()
            ),
        ]
        for frame in frames
    ]
    every = [pooled(frames, kind) for kind in CLASSES]
    ranks = [
        [words, *("{:.0%} below, {:.0%} above".format(*beyond(frame, number)) for frame in frames)]
        for number, words in NUMBERS.items()
    ]
    tied = {
        name: frame for name, frame in zip(names, frames, strict=True) if frame.attrs["is_tied"]
    }
    return {
        "The models": (
            "One row per model; 1 is yes. The last column: random heads for chance.",
            ["model", *FACTS],
            [
                [name, *(frame.attrs[fact] for fact in FACTS)]
                for name, frame in zip(names, frames, strict=True)
            ],
        ),
        "The leading eigenvalue of V": (
            (
                "In each cell: number of heads, share, its 95 % interval (Wilson), then chance, and"
                " the two-sided binomial p. Heads of tied layers are counted once."
            ),
            ["model", "heads", *CLASSES.values()],
            [*shares, ["all", every[0][1], *(cell(*one) for one in every)]],
        ),
        "How far from chance": (
            (
                "The share of a model's heads whose number is below the 2.5 % quantile of chance,"
                " and above the 97.5 % quantile."
            ),
            ["number", *names],
            ranks,
        ),
        **{f"{name}, head by head": _heads(frame) for name, frame in tied.items()},
    }


def _heads(frame: Any) -> Any:
    rows = []
    for head in frame.itertuples():
        value = f"{head.real:+.3f}" + ("" if head.is_real else f" ± {head.imaginary:.3f}i")
        rows.append(
            [
                name_head(head.layer, head.head),
                value,
                f"{head.gap:.0%}" if head.is_real else "–",
                head.verdict,
                f"{head.condition:.1f}",
                f"{head.condition_quantile:.0%}",
            ]
        )
    return (
        (
            "One row per head. Condition: of the leading eigenvalue; the last column is the share"
            " of random heads with less."
        ),
        ["head", "λ₁", "gap", "kind", "condition", "below"],
        rows,
    )
