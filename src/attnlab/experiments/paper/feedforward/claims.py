"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import exact_interval
from attnlab.experiments.datasets import rows_where, run_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import Spoil, replaced, scaled, shifted

from .experiment import LAWS, MAX_STEPS, ROWS

PLANE, NEAR_ZERO = 0.01, 0.1
"""On three hyperplanes: within 1 % of the first diameter. Collapsed to 0: all tokens within a tenth
of the first size of 0.
"""


def chosen(draws: Any, **wanted: Any) -> Any:
    """The lines of the draws in which every named column has the wanted value."""
    return draws.isel(line=np.flatnonzero(rows_where(draws, **wanted)))


def share(happens: np.ndarray) -> tuple[float, float, float]:
    """(share, lower, upper end of its 95 % interval by Clopper and Pearson)."""
    return float(happens.mean()), *exact_interval(int(happens.sum()), len(happens))


def on_planes(lines: Any) -> np.ndarray:
    """Whether the tokens end on at most three parallel hyperplanes."""
    return np.asarray(lines["planes"].values <= PLANE)


def at_zero(lines: Any) -> np.ndarray:
    """Whether all tokens end at 0."""
    return np.asarray(lines["size"].values <= NEAR_ZERO * lines["first_size"].values)


def claims(data: Data) -> list[Claim]:
    """What is exact, and the paper's three observations over many draws."""
    draws = data["draws"]
    relu, tanh, random = (chosen(draws, row=row) for row in ROWS)
    apart = max(
        float(np.abs(data["independent"]["z"].sel(row=row).values - run_in(data, row).z).max())
        for row in ROWS
    )
    both = [
        lines["size"].values / np.maximum(lines["least"].values, 1e-300) for lines in (relu, random)
    ]
    # in the plane tanh has no time for it: λ₁T = 5 is T = 3.7, and no coordinate moves faster than
    # 1
    complete = chosen(draws, is_complete=1.0, law="cube")
    zero = {
        "tanh": share(at_zero(chosen(complete, row="tanh", setting=["space", "family"]))),
        "random": share(at_zero(chosen(complete, row="random"))),
    }
    planes = {
        law: share(on_planes(chosen(draws, row="relu", law=law, setting="plane"))) for law in LAWS
    }
    half = "a typical observation would occur in at least half of the draws"
    return [
        Claim(
            text=(
                "The three runs of the picture agree with an independent integrator (SciPy's"
                " DOP853, plain NumPy): largest difference of a coordinate."
            ),
            measured=apart,
            low=0,
            high=1e-4,
            because=(
                "the tolerance 1e-8 of the run, on tokens of size 10, in about a thousand steps"
            ),
        ),
        *(
            Claim(
                text=(
                    f"{ROWS[row]}: no coordinate of {what} ever decreases. The largest decrease in"
                    " all draws, relative to the start."
                ),
                measured=float(lines["fall"].max()),
                published="not said",
                low=-np.inf,
                high=1e-6 * MAX_STEPS,
                because=(
                    f"{reason} = ReLU(..) >= 0; the tolerance 1e-6 in up to {MAX_STEPS} steps is"
                    " off by no more"
                ),
            )
            for row, lines, what, reason in (
                ("relu", relu, "any token", "z'"),
                ("random", random, "W⁻¹z", "W⁻¹z'"),
            )
        ),
        Claim(
            text=(
                "So with ReLU, W = I or random, the tokens cannot collapse to 0: the largest token"
                " at the end over the bound that the start sets, smallest of all draws."
            ),
            measured=float(min(map(np.min, both))),
            published="W random: all particles appear to collapse to 0",
            low=1 - 1e-6 * MAX_STEPS,
            high=np.inf,
            because=(
                "a coordinate of W⁻¹z that is positive stays at least as large, so |z| >="
                " (W⁻¹z(0))_k / |row k of W⁻¹|"
            ),
            differs=(
                "a collapse to 0 needs W⁻¹z <= 0 for all tokens of the start, which has a"
                " probability of at most 2^-n"
            ),
        ),
        Claim(
            text=(
                "tanh, W = I: no coordinate moves faster than 1. The largest mean speed between two"
                " saved times in all draws."
            ),
            measured=float(tanh["speed"].max()),
            published="not said",
            low=0,
            high=1.01,
            because=(
                "|tanh| < 1; a hundredth for the tolerance 1e-6, on tokens of size 10, over times a"
                " tenth apart or more"
            ),
        ),
        Claim(
            text=(
                "tanh, W = I, starts in [-5, 5]^3: the tokens do not collapse to 0 by λ₁T = 5."
                " Upper end of the 95 % interval for the share of draws that do, of all whose run"
                " is complete."
            ),
            measured=zero["tanh"][2],
            published="all particles appear to collapse to 0 (one draw)",
            low=0,
            high=0.5,
            because=half,
            differs=(
                f"here a share of {zero['tanh'][0]:.2f}: a leader attends to itself alone and"
                " stands still"
            ),
        ),
        Claim(
            text="ReLU, W random, starts in [-5, 5]^d: the same share, upper end of its interval.",
            measured=zero["random"][2],
            published="all particles appear to collapse to 0 (one draw)",
            low=0,
            high=0.5,
            because=half,
            differs=f"here a share of {zero['random'][0]:.2f}, as the bound above demands",
        ),
        Claim(
            text=(
                "ReLU, W = I, starts in [-5, 5]^2: more than three parallel hyperplanes are needed."
                " Upper end of the 95 % interval for the share of draws where three are enough."
            ),
            measured=planes["cube"][2],
            published="at most three (one draw)",
            low=0,
            high=0.5,
            because=half,
            differs=(
                f"here a share of {planes['cube'][0]:.2f}: where phi*_1 < 0 tokens attend to a"
                " token below them, V(z_leader - z) has no positive coordinate, and the ReLU stops"
                " them where they are, each at its own level"
            ),
        ),
        Claim(
            text=(
                "ReLU, W = I, starts in the positive quadrant [0, 5]^2: at most three are enough."
                " Lower end of the interval for the share of draws where they are."
            ),
            measured=planes["positive"][1],
            published="at most three (one draw)",
            low=0.5,
            high=1,
            because=half,
        ),
    ]


def _slips(row: str) -> Spoil:
    """One run of a row has a coordinate that decreases."""
    return replaced(
        "draws", "fall", lambda fall: np.where(np.arange(len(fall)) == 3, 1e-2, fall), {"row": row}
    )


spoils = {
    "another start for the other program": shifted("independent", "z", 0.01),
    "a coordinate decreases (W = I)": _slips("relu"),
    "a coordinate decreases (W random)": _slips("random"),
    "tanh collapses to 0": scaled("draws", "size", 0.01, {"row": "tanh"}),
    "ReLU collapses to 0": scaled("draws", "size", 0.01, {"row": "random"}),
    "tokens faster than tanh allows": scaled("draws", "speed", 1.5, {"row": "tanh"}),
    "all on three hyperplanes": scaled("draws", "planes", 0.01, {"row": "relu"}),
    "hyperplanes smeared out": scaled("draws", "planes", 30.0, {"row": "relu"}),
}
