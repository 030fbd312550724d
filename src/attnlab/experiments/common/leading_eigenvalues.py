"""Panels about the leading eigenvalues of the value matrices of heads: a spectrum, their sizes, and
how many are of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.analysis.intervals import wilson_interval
from attnlab.render.spectra_figure import LOOKS
from attnlab.render.style import HULL, INK, NOTE, RULE, dress_flat


def mark_eigenvalue(axes: Any, x: Any, y: Any, verdict: str) -> None:
    """The mark of a verdict, drawn over the edge of the axes where it stands there."""
    colour, marker, is_filled, _ = LOOKS[verdict]
    axes.scatter(
        x,
        y,
        marker=marker,
        s=48,
        linewidths=1.6,
        edgecolors=colour,
        facecolors=colour if is_filled else "white",
        zorder=3,
        clip_on=False,
    )


def draw_plane(
    axes: Any, values: np.ndarray, verdict: str, usual: float, reference: np.ndarray
) -> None:
    """Eigenvalues, the leading one first; circles through it and at `usual`; reference values
    (complex) as crosses.
    """
    colour = LOOKS[verdict][0]
    first = complex(values[0])
    reach = 1.18 * max(abs(first), usual) or 1.0
    turn = np.exp(1j * np.linspace(0.0, 2 * np.pi, 241))
    axes.axhline(0.0, color=HULL, linewidth=0.7, zorder=1)
    axes.axvline(0.0, color=RULE, linewidth=0.7, zorder=1)
    axes.plot(
        abs(first) * turn.real, abs(first) * turn.imag, color=colour, linewidth=1.1, zorder=1.5
    )
    axes.plot(
        usual * turn.real,
        usual * turn.imag,
        color=NOTE,
        linewidth=0.8,
        linestyle=(0, (4, 3)),
        zorder=1.5,
    )
    axes.scatter(values.real, values.imag, s=8, color=INK, alpha=0.55, linewidths=0, zorder=2)
    pair = np.unique([first, first.conjugate()])
    mark_eigenvalue(axes, pair.real, pair.imag, verdict)
    crosses = np.concatenate([reference, reference.conj()])
    axes.scatter(crosses.real, crosses.imag, marker="x", s=26, color=INK, linewidths=1.1, zorder=4)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    dress_flat(axes)
    axes.tick_params(labelsize=7, pad=1.5, length=2)


def draw_leading_sizes(
    axes: Any, sizes: np.ndarray, verdicts: Sequence[str], band: Sequence[float]
) -> None:
    """One stem per head, from 1, the radius of chance, to the size of its leading eigenvalue; a
    band for those of chance.
    """
    axes.axhspan(*band, color=HULL, alpha=0.3, linewidth=0)
    axes.axhline(1.0, color=HULL, linewidth=1.0, linestyle=(0, (4, 3)))
    for head, (word, size) in enumerate(zip(verdicts, sizes, strict=True)):
        axes.vlines(head, 1.0, size, color=LOOKS[word][0], linewidth=1.4)
        mark_eigenvalue(axes, [head], [size], word)
    axes.set(
        xlabel="head",
        xlim=(-0.6, len(sizes) - 0.4),
        ylim=(0, 1.1 * max(float(sizes.max()), band[1])),
    )
    dress_flat(axes)
    axes.set_xticks(range(len(sizes)))


def draw_leading_shares(axes: Any, verdicts: Sequence[str], expected: Mapping[str, float]) -> None:
    """The share of heads with each verdict, its 95 % interval (Wilson), and the expected share as
    an upright line.
    """
    total = len(verdicts)
    for row, word in enumerate(expected):
        count = list(verdicts).count(word)
        axes.hlines(
            row, *wilson_interval(count, total), color=LOOKS[word][0], linewidth=3.0, alpha=0.4
        )
        mark_eigenvalue(axes, [count / total], [row], word)
        axes.vlines(expected[word], row - 0.3, row + 0.3, color=INK, linewidth=1.6, zorder=2)
    dress_flat(axes)
    axes.set(xlim=(0, 1), ylim=(len(expected) - 0.5, -0.5))
    axes.set_xticks([0, 0.5, 1.0], ["0", "50 %", "100 %"])
    axes.set_yticks(
        range(len(expected)), [LOOKS[word][3].replace(", no", ",\nno") for word in expected]
    )
