"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.leading_eigenvalues import (
    draw_leading_shares,
    draw_leading_sizes,
    draw_plane,
)
from attnlab.experiments.record import Data
from attnlab.models.checkpoints.head_names import name_head
from attnlab.render.spectra_figure import LOOKS, VALUE_MAP
from attnlab.render.style import house_style, new_figure, set_layout, title

from .claims import spectra_of


def figures(data: Data) -> dict[str, Any]:
    """All spectra in the plane; the leading eigenvalues against chance."""
    return {"albert_spectra": _planes(data), "albert_spectra_against_chance": _against_chance(data)}


def words_of(heads: Any, head: int) -> str:
    """The verdict on a head: a good triple, or why not."""
    verdict = str(heads["verdict"].values[head])
    if verdict == "good triple":
        return f"good triple, gap {heads['gap'].values[head]:.0%}".replace("%", " %")
    if verdict == "positive":
        return (
            "positive, but tied"
            if not heads["part_one"].values[head]
            else "positive, but ⟨Qφ₁, Kφ₁⟩ ≤ 0"
        )
    return {"negative": "no: negative", "complex": "no: complex pair"}.get(verdict, "no: V is 0")


def number_of(value: complex) -> str:
    """An eigenvalue to two decimals, with a true minus sign; of a pair both."""
    said = f"{value.real:+.2f}" if value.imag == 0 else f"{value.real:.2f} ± {abs(value.imag):.2f}i"
    return said.replace("-", "−")


def circular_radius(heads: Any) -> np.ndarray:
    """Where the circular law ends for Gaussian factors of the same shapes and norms: |B| |C| /
    sqrt(d r).
    """
    return np.asarray(heads["size"].values / np.sqrt(heads.attrs["d"] * heads.attrs["r"]))


def _planes(data: Data) -> Any:
    """One panel per head: its eigenvalues, the leading one or pair, the circle through it, chance, and
    the verdict.
    """
    heads, reference, usual = data["heads"], data["reference"], circular_radius(data["heads"])
    spectra = spectra_of(heads)
    many = heads.sizes["head"]
    columns = min(4, many)
    rows = -(-many // columns)
    facts = heads.attrs
    good = int((heads["verdict"].values == "good triple").sum())
    with house_style():
        figure = new_figure(2.45 * columns + 0.2, 2.75 * rows + 1.05)
        set_layout(figure, h_pad=0.07, wspace=0.02)
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes in panels.ravel()[many:]:
            axes.axis("off")
        for head, axes in zip(range(many), panels.ravel(), strict=False):
            said = reference.isel(row=reference["head"].values == head)
            word = str(heads["verdict"].values[head])
            draw_plane(axes, spectra[head], word, float(usual[head]), spectra_of(said))
            paper = f" (paper: head {head + 1})" if facts["is_xlarge"] else ""
            leading = number_of(complex(spectra[head, 0]))
            axes.set_title(
                f"{name_head(0, head)}{paper}:  {leading}", fontsize=7.3 if paper else 9, pad=14
            )
            axes.text(
                0.5,
                1.02,
                words_of(heads, head),
                transform=axes.transAxes,
                ha="center",
                va="bottom",
                fontsize=8,
                color=LOOKS[word][0],
                fontweight="bold" if word == "good triple" else "normal",
            )
        for axes in panels[:, 0]:
            axes.set_ylabel("Im", rotation=0, labelpad=4, fontsize=8.5)
        for column in range(columns):
            panels[(many - 1 - column) // columns, column].set_xlabel(
                "Re", fontsize=8.5, labelpad=1
            )
        where = f", the same in all {facts['layers']} layers" if facts["is_tied"] else " of layer 0"
        crosses = " Crosses: reference values." if reference.sizes["row"] else ""
        title(
            figure,
            f"{facts['model']}: {many} heads{where}; {good} good triple{'s' if good != 1 else ''}",
            f"Dots: the {facts['r']} non-zero eigenvalues of {VALUE_MAP}, each head on its own"
            " scale. Large mark: the leading one, or pair; solid circle: its modulus. Dashed: the"
            f" disc that random factors of the same shape and norm fill.{crosses}",
        )
    return figure


def _against_chance(data: Data) -> Any:
    """How large the leading eigenvalues are, and how many of each kind there are, beside Gaussian
    factors of the same shape.
    """
    heads, chance = data["heads"], data["chance"]
    verdicts, real = [str(word) for word in heads["verdict"].values], chance.attrs["real"]
    expected = {
        "good triple": real / 4,
        "positive": real / 4,
        "negative": real / 2,
        "complex": 1 - real,
    }
    with house_style():
        figure = new_figure(9.0, 3.6)
        left, right = figure.subplots(1, 2, width_ratios=[1.35, 1])
        draw_leading_sizes(
            left,
            np.abs(spectra_of(heads)[:, 0]) / circular_radius(heads),
            verdicts,
            np.quantile(chance["radius"].values, [0.025, 0.975]).tolist(),
        )
        left.set_title("Size of the leading eigenvalue, random factors = 1")
        draw_leading_shares(right, verdicts, expected)
        right.set_title("Kind of leading eigenvalue, share of heads")
        title(
            figure,
            f"{heads.attrs['model']}: leading eigenvalues beside those of random factors of the"
            " same shape",
            "Left: |λ₁| over |B| |C| / √(dr), where the circular law ends (dashed); grey: 95 % of"
            f" random heads. Right: mark and bar, the share of {len(verdicts)} heads and its 95 %"
            f" interval; upright line, the share among {chance.sizes['draw']} Gaussian heads.",
        )
    return figure
