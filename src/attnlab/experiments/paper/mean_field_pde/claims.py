"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from attnlab.analysis.finite_volumes import SCHEMES, gaussian_at, quantiles_of_cells
from attnlab.analysis.rates import observed_order
from attnlab.analysis.transport import middle_levels, wasserstein
from attnlab.experiments.common.claims import furthest_from
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import computed, replaced, scaled

from .experiment import DEVIATION, FEW, MEAN, REACH

JUDGED = 2.0
"""Orders are fitted until this time: later the middle is emptier than any grid here can resolve."""


def grids_of(solution: Any) -> list[int]:
    """The grids that a solution was computed on."""
    return [int(N) for N in np.unique(solution["cells"].values)]


def cells_of(solution: Any, scheme: str, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """(faces (cells + 1,), masses (T, cells)) of one grid."""
    faces = np.linspace(solution.attrs["low"], solution.attrs["high"], cells + 1)
    return (
        faces,
        solution["masses"].values[SCHEMES.index(scheme)][:, solution["cells"].values == cells],
    )


def errors(solution: Any, scheme: str) -> np.ndarray:
    """Mean distance of the quantile functions, which is W_1, to the tokens or to the closed form:
    (grids, T).
    """
    if "tokens" in solution:
        truth = solution["tokens"].values
        levels = middle_levels(
            truth.shape[1]
        )  # token i stands for the quantile (i - 1/2)/n, but for 1/n²
    else:
        levels = middle_levels(4096)
        mean, deviation = gaussian_at(solution["time"].values, solution.attrs["V"], MEAN, DEVIATION)
        truth = mean[:, None] + deviation[:, None] * ndtri(levels)
    rows = [
        [
            np.mean(np.abs(quantiles_of_cells(faces, m, levels) - z))
            for m, z in zip(masses, truth, strict=True)
        ]
        for faces, masses in (cells_of(solution, scheme, N) for N in grids_of(solution))
    ]
    return np.array(rows)


def furthest_order(solutions: list[Any], scheme: str, expected: float) -> float:
    """The fitted order of W_1 against the number of cells that is furthest from the expected one,
    over laws and times.
    """
    found = []
    for one in solutions:
        cells, apart, t = np.array(grids_of(one))[1:], errors(one, scheme)[1:], one["time"].values
        found += [
            observed_order(cells, apart[:, k])[0] for k in np.flatnonzero((t > 0) & (t <= JUDGED))
        ]
    return furthest_from(expected, found)


def token_ratio(solution: Any) -> np.ndarray:
    """W_1 between the few tokens and the solution on the finest grid over what it must be, (range
    of the law) / 4n: (T,).
    """
    few = solution["few"].values
    faces, masses = cells_of(solution, "limited", grids_of(solution)[-1])
    ends = solution["tokens"].values[:, [0, -1]] @ [-1.0, 1.0]
    fine = middle_levels(64 * few.shape[1])
    far = [
        wasserstein(quantiles_of_cells(faces, m, fine), z, 1)
        for m, z in zip(masses, few, strict=True)
    ]
    return np.array(far) * 4 * few.shape[1] / ends


def claims(data: Data) -> list[Claim]:
    """Conservation, positivity, orders, and agreement with tokens and with closed forms."""
    everything, beside = list(data.values()), [data["smooth"], data["uniform"]]
    exact = [data["gaussian_plus"], data["gaussian_minus"]]
    mass, least = 0.0, np.inf
    for one in everything:
        for scheme in SCHEMES:
            for N in grids_of(one):
                masses = cells_of(one, scheme, N)[1]
                mass, least = (
                    max(mass, float(np.abs(masses.sum(axis=1) - 1).max())),
                    min(least, float(masses.min())),
                )
    apart = max(
        float(errors(one, "limited")[-1, one["time"].values <= JUDGED].max())
        * grids_of(one)[-1]
        / (one.attrs["high"] - one.attrs["low"])
        for one in beside
    )
    spread = []
    for one in exact:
        faces, masses = cells_of(one, "limited", N := grids_of(one)[-1])
        centres, deviation = (
            (faces[1:] + faces[:-1]) / 2,
            gaussian_at(one["time"].values, one.attrs["V"], MEAN, DEVIATION)[1],
        )
        measured = np.sqrt(masses @ centres**2 - (masses @ centres) ** 2)
        spread.append(
            np.abs(measured / deviation - 1).max() / ((2 * REACH / N) / deviation.min()) ** 2
        )
    ratios = token_ratio(data["uniform"])[:3]
    return [
        Claim(
            text=(
                "Mass is conserved: the largest |total mass - 1|, over all laws, grids, schemes and"
                " times."
            ),
            measured=mass,
            published="the solution is a probability measure",
            low=0,
            high=1e-12,
            because="fluxes cancel in pairs; what is left is rounding",
        ),
        Claim(
            text="No cell ever has negative mass: the smallest mass of a cell.",
            measured=least,
            published="the solution is a measure",
            low=0,
            high=np.inf,
            because=(
                "upwind fluxes of limited pieces with Courant "
                "number 0.45 < 1/2, and Heun's step is an average of two Euler steps"
            ),
        ),
        Claim(
            text=(
                "Without slopes the order in W_1 is 1: the fitted order furthest from 1, over all"
                " laws and times."
            ),
            measured=furthest_order(everything, "upwind", 1.0),
            published="no numbers",
            low=0.9,
            high=1.1,
            because=(
                "upwind is of first order; a kink of the cumulative function, which it smears over"
                " √h with an error of √h, costs h as well"
            ),
        ),
        Claim(
            text=(
                "With limited slopes it is 2 where the density is smooth: the fitted order furthest"
                " from 2."
            ),
            measured=furthest_order([data["smooth"]], "limited", 2.0),
            published="no numbers",
            low=1.8,
            high=2.1,
            because=(
                "second order; minmod loses an order in the few cells at a maximum, which W_1 does"
                " not see"
            ),
        ),
        Claim(
            text=(
                "With limited slopes it is 4/3 where the density jumps at its ends: the fitted"
                " order furthest from 4/3."
            ),
            measured=furthest_order([data["uniform"]], "limited", 4 / 3),
            published="no numbers",
            low=1.2,
            high=1.45,
            because=(
                "a second-order scheme smears a kink of the cumulative function over h^(2/3), with"
                " an error of h^(2/3)"
            ),
        ),
        Claim(
            text=(
                "Gaussians, which have a closed form: the fitted order of W_1 furthest from 2, V ="
                " 1 and V = -1."
            ),
            measured=furthest_order(exact, "limited", 2.0),
            published="no numbers",
            low=1.8,
            high=2.2,
            because="a' = V a³, m' = V m (1 + a²) solve the equation exactly",
        ),
        Claim(
            text=(
                "Their deviation, on the finest grid: the relative error in units of (cell /"
                " deviation)²."
            ),
            measured=float(max(spread)),
            published="no numbers",
            low=0,
            high=1,
            because="a second-order scheme",
        ),
        Claim(
            text=(
                "Tokens and finite volumes agree: the largest W_1 between their quantile functions"
                " on the finest grid, in cells."
            ),
            measured=float(apart),
            published=(
                "a theorem: the empirical measure of the tokens solves the equation (section 6)"
            ),
            low=0,
            high=1,
            because=(
                "both tend to the one solution, the grid at least like h; the tokens at "
                "quantiles like 1/n²"
            ),
        ),
        Claim(
            text=(
                f"As step functions {FEW} tokens are as far from the law as they must be: 4n W_1 /"
                " range, furthest from 1, t <= 1."
            ),
            measured=furthest_from(1, ratios),
            published="no rate given",
            low=0.9,
            high=1.1,
            because=(
                "each token stands for mass 1/n spread over its gap: W_1 is the sum of gaps over"
                " 4n, but for 1/n² and for the grid's own error, which is below a tenth of it until"
                " t = 1 (uniform law)"
            ),
        ),
    ]


def _undershoot(masses: np.ndarray) -> np.ndarray:
    """What an unlimited second-order scheme does beside a steep front."""
    masses[:, -1, :2] += np.array([-1e-9, 1e-9])
    return masses


def _late(masses: np.ndarray) -> np.ndarray:
    """States saved one step too early on every grid: an error of a fixed time, whatever the
    grid.
    """
    return 0.95 * masses + 0.05 * np.concatenate([masses[:, :1], masses[:, :-1]], axis=1)


spoils = {
    "mass leaks": computed("smooth", masses=lambda law: law["masses"] * (1 - 1e-9 * law["time"])),
    "cell below zero": replaced("uniform", "masses", _undershoot),
    "smooth law saved too early": replaced("smooth", "masses", _late),
    "uniform law saved too early": replaced("uniform", "masses", _late),
    "Gaussian saved too early": replaced("gaussian_plus", "masses", _late),
    "tokens in another field": scaled("smooth", ("few", "tokens"), 0.9),
}
