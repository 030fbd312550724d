"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.datasets import run_in
from attnlab.experiments.intervals import share_interval
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed

from .experiment import LAWS, MAX_STEPS, ROWS

PLANE, NEAR_ZERO = 0.01, 0.1
"""On three hyperplanes: within 1 % of the first diameter. Collapsed to 0: all tokens within a tenth of the first size of 0."""


def chosen(draws: Any, row: str, law: str | None = None, setting: str | None = None) -> Any:
    """The lines of a row of the picture, of one case or of several."""
    used = draws["row"].values == row
    for name, word in (("law", law), ("setting", setting)):
        used = used & ((draws[name].values == word) if word is not None else True)
    return draws.isel(line=np.flatnonzero(used))


def share(happens: np.ndarray) -> tuple[float, float, float]:
    """(share, lower, upper end of its 95 % interval by Clopper and Pearson)."""
    return float(happens.mean()), *share_interval(int(happens.sum()), len(happens))


def on_planes(lines: Any) -> np.ndarray:
    """Whether the tokens end on at most three parallel hyperplanes."""
    return np.asarray(lines["planes"].values <= PLANE)


def at_zero(lines: Any) -> np.ndarray:
    """Whether all tokens end at 0."""
    return np.asarray(lines["size"].values <= NEAR_ZERO * lines["first_size"].values)


def claims(data: Data) -> list[Claim]:
    """What is exact, and the paper's three observations over many draws."""
    draws = data["draws"]
    relu, tanh, random = (chosen(draws, row) for row in ROWS)
    apart = max(float(np.abs(data["independent"]["z"].sel(row=row).values - run_in(data, row).z).max()) for row in ROWS)
    both = [lines["size"].values / np.maximum(lines["least"].values, 1e-300) for lines in (relu, random)]
    complete = draws.isel(line=np.flatnonzero(draws["is_complete"].values == 1))
    # in the plane tanh has no time for it: λ₁T = 5 is T = 3.7, and no coordinate moves faster than 1
    in_time = complete.isel(line=np.flatnonzero(complete["setting"].values != "plane"))
    zero = {"tanh": share(at_zero(chosen(in_time, "tanh", "cube"))), "random": share(at_zero(chosen(complete, "random", "cube")))}
    planes = {law: share(on_planes(chosen(draws, "relu", law, "plane"))) for law in LAWS}
    half = "an observation that is typical would be made in at least half of the draws"
    return [
        Claim(text="The three runs of the picture agree with an independent integrator (SciPy's DOP853, plain NumPy): largest "
              "difference of a coordinate.", measured=apart, low=0, high=1e-4,
              because="the tolerance 1e-8 of the run, on tokens of size 10, in about a thousand steps"),
        Claim(text="ReLU, W = I: no coordinate of any token ever decreases. The largest decrease in all draws, relative to the "
              "start.", measured=float(relu["fall"].max()), published="not said", low=-np.inf, high=1e-6 * MAX_STEPS,
              because=f"z' = ReLU(..) >= 0; the tolerance 1e-6 in up to {MAX_STEPS} steps is off by no more"),
        Claim(text="ReLU, W random: no coordinate of W⁻¹z ever decreases. The largest decrease in all draws, relative to the "
              "start.", measured=float(random["fall"].max()), published="not said", low=-np.inf, high=1e-6 * MAX_STEPS,
              because=f"W⁻¹z' = ReLU(..) >= 0; the tolerance 1e-6 in up to {MAX_STEPS} steps is off by no more"),
        Claim(text="So with ReLU, W = I or random, the tokens cannot collapse to 0: the largest token at the end over the "
              "bound that the start sets, smallest of all draws.", measured=float(min(map(np.min, both))),
              published="W random: all particles appear to collapse to 0", low=1 - 1e-6 * MAX_STEPS, high=np.inf,
              because="a coordinate of W⁻¹z that is positive stays at least as large, so |z| >= (W⁻¹z(0))_k / |row k of W⁻¹|",
              differs="a collapse to 0 needs W⁻¹z <= 0 for all tokens of the start, which has a probability of at most 2^-n"),
        Claim(text="tanh, W = I: no coordinate moves faster than 1. The largest mean speed between two saved times in all "
              "draws.", measured=float(tanh["speed"].max()), published="not said", low=0, high=1.01,
              because="|tanh| < 1; a hundredth for the tolerance 1e-6, on tokens of size 10, over times a tenth apart or more"),
        Claim(text="tanh, W = I, starts in [-5, 5]^3: the tokens do not collapse to 0 by λ₁T = 5. Upper end of the 95 % "
              "interval for the share of draws that do, of all whose run is complete.", measured=zero["tanh"][2],
              published="all particles appear to collapse to 0 (one draw)", low=0, high=0.5, because=half,
              differs=f"here a share of {zero['tanh'][0]:.2f}: a leader attends to itself alone and stands still"),
        Claim(text="ReLU, W random, starts in [-5, 5]^d: the same share, upper end of its interval.", measured=zero["random"][2],
              published="all particles appear to collapse to 0 (one draw)", low=0, high=0.5, because=half,
              differs=f"here a share of {zero['random'][0]:.2f}, as the bound above demands"),
        Claim(text="ReLU, W = I, starts in [-5, 5]^2: more than three parallel hyperplanes are needed. Upper end of the 95 % "
              "interval for the share of draws where three are enough.", measured=planes["cube"][2],
              published="at most three (one draw)", low=0, high=0.5, because=half,
              differs=f"here a share of {planes['cube'][0]:.2f}: where phi*_1 < 0 tokens listen to a token below them, "
              "V(z_leader - z) has no positive coordinate, and the ReLU stops them where they are, each at its own level"),
        Claim(text="ReLU, W = I, starts in the positive quadrant [0, 5]^2: at most three are enough. Lower end of the interval "
              "for the share of draws where they are.", measured=planes["positive"][1], published="at most three (one draw)",
              low=0.5, high=1, because=half),
    ]


def _at(draws: Any, row: str, **changes: Any) -> None:
    """Multiply columns of the lines of a row."""
    used = draws["row"].values == row
    for name, factor in changes.items():
        draws[name] = ("line", np.where(used, draws[name].values * factor, draws[name].values))


def _slips(row: str) -> Any:
    def change(draws: Any) -> None:
        fall = draws["fall"].values.copy()
        fall[np.flatnonzero(draws["row"].values == row)[3]] = 1e-2
        draws["fall"] = ("line", fall)

    return changed("draws", change)


def _collapsed(row: str) -> Any:
    return changed("draws", lambda draws: _at(draws, row, size=0.01, diameter=0.01))


spoils = {
    "another start for the other program": changed("independent", lambda other: other.__setitem__("z",
    other["z"] + 0.01)),
    "a coordinate decreases (W = I)": _slips("relu"),
    "a coordinate decreases (W random)": _slips("random"),
    "tanh collapses to 0": _collapsed("tanh"),
    "ReLU collapses to 0": _collapsed("random"),
    "tokens faster than tanh allows": changed("draws", lambda draws: _at(draws, "tanh", speed=1.5)),
    "all on three hyperplanes": changed("draws", lambda draws: _at(draws, "relu", planes=0.01)),
    "hyperplanes smeared out": changed("draws", lambda draws: _at(draws, "relu", planes=30.0)),
}
