"""The figure of head_flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.heads import as_shown
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Data
from attnlab.render.style import (
    HULL,
    INK,
    PALETTE,
    RULE,
    dress_flat,
    house_style,
    new_figure,
    title,
)

from .claims import name_of
from .experiment import DRAWN, EULER_STEP, SHOWN, STEPS, N


def figures(data: Data) -> dict[str, Any]:
    """Directions on two principal axes at three steps, and the eigenvalues of P over time, for the
    cases drawn.
    """
    with house_style():
        return {"head_flow": directions_and_eigenvalues(data)}


def directions_and_eigenvalues(data: Data) -> Any:
    """Above, directions on two principal axes at three steps; below, the eigenvalues of P over
    time.
    """
    pictures, facts = data["pictures"], data["runs"].attrs
    cases = [
        (role, *case) for role, some in DRAWN.items() if f"{role}_model" in facts for case in some
    ]
    figure: Any = new_figure(2.3 * len(cases) + 0.6, 6.6)
    above, below = figure.subfigures(2, 1, height_ratios=[1.5, 1])
    grid = np.stack(
        [above.subplots(1, len(cases), sharey=True), below.subplots(1, len(cases), sharey=True)]
    )
    turn = np.linspace(0.0, 2 * np.pi, 181)
    looks = ((HULL, 16, "x"), (PALETTE[5], 22, "o"), (PALETTE[0], 34, "o"))
    for column, (role, values, start) in enumerate(cases):
        picture = pictures.isel(case=column)
        first = select(
            data["runs"], role=role, values=values, start=start, seed=int(picture["seed"].values)
        )
        upper, lower = grid[:, column]
        origin = picture["origin"].values
        upper.plot(np.cos(turn), np.sin(turn), color=RULE, linewidth=0.9, zorder=1)
        for (colour, size, marker), step, at in zip(
            looks, SHOWN, picture["plane"].values, strict=True
        ):
            upper.scatter(
                *(at - origin).T,
                s=size,
                color=colour,
                marker=marker,
                linewidths=0.9 if marker == "x" else 0,
                label=f"step {step}",
                zorder=2,
            )
        upper.scatter(
            *(picture["euler"].values[-1] - origin).T,
            s=62,
            facecolors="none",
            edgecolors=PALETTE[1],
            linewidths=1.0,
            label=f"Euler, step {STEPS}",
            zorder=3,
        )
        upper.scatter(
            [0], [0], marker="+", s=90, color=INK, linewidths=1.4, label="origin", zorder=4
        )
        count = int(first["clusters"].values[0])
        model = facts[f"{role}_model"]
        upper.set_title(
            f"{model},"
            f" {as_shown(start, model)}\n{'V = I' if values == 'identity' else 'V of the head'}:"
            f" {count} cluster{'s' if count != 1 else ''}"
        )
        upper.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", xlabel="first axis")
        lower.plot(
            np.arange(STEPS + 1) * EULER_STEP,
            picture["modulus"].values,
            color=PALETTE[0],
            linewidth=0.9,
            alpha=0.55,
        )
        lower.set(
            xlabel="t",
            ylim=(-0.03, 1.08),
            title=f"{int(first['survivors'].values[0])} of {N} survive",
        )
        for axes in (upper, lower):
            dress_flat(axes)
    grid[0, 0].set_ylabel("second axis")
    grid[1, 0].set_ylabel("|eigenvalues of P|")
    above.legend(
        *grid[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=5,
        frameon=False,
        fontsize=8.5,
    )
    who = "; ".join(
        f"{name_of(data, role)}, λ₁ = {facts[f'{role}_leading']:.2f}, d = {facts[f'{role}_d']}"
        for role in DRAWN
        if f"{role}_model" in facts
    )
    title(
        figure,
        as_shown(
            "One trained head: several clusters with V = I; with its own V two of random tokens,"
            " one of those on one side" + (" and of text" if "text_model" in facts else ""),
            facts["first_model"],
        ),
        f"Above: directions of {N} tokens on two principal axes, at steps 0, 25, 50 of"
        f" {EULER_STEP:g}; rings: the slides' Euler steps; cross: the origin; circle: length 1."
        " Different clusters may overlap on two axes. Below: moduli of the eigenvalues of the"
        " attention matrix along the flow. Of each case, the first start with the median number of"
        f" clusters; {as_shown('paragraph', facts.get('text_model', ''))}: embedded tokens. {who}.",
    )
    return figure
