"""The mean-field equation solved as a partial differential equation, beside the tokens: two methods that share nothing.

    d_t mu + d_z (v mu) = 0,     v(t, z) = int e^{s z y} y mu(dy) / int e^{s z y} mu(dy) - z,     s = e^{2t}           (V = 1)

is the continuity equation of d = 1 in the rescaled frame z = e^{-t} x, where the support only shrinks: a fixed grid holds it. For
V = -1 the frame is x itself, with s = 1 and v = - int e^{xy} y mu / int e^{xy} mu. Finite volumes: the mass of a cell changes by
the fluxes through its faces, upwind, of the density as it is (order 1) or as straight pieces limited by minmod (order 2);
Heun's step in time, which is an average of two Euler steps and so keeps what those keep: positivity, if Courant's number is at
most 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.mean_field import Law, middle_levels, order, uniform, wasserstein
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.progress import Progress

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
JUDGED = 2.0
"""Orders are fitted until this time: later the middle is emptier than any grid here can resolve."""

GRIDS = {"full": (50, 100, 200, 400, 800), "small": (50, 100, 200, 400)}
TOKENS = {"full": 4096, "small": 2048}
FEW = 64
SCHEMES = ("upwind", "limited")
WORDS = {"smooth": "smooth law", "uniform": "uniform law", "gaussian_plus": "Gaussian, V = 1",
         "gaussian_minus": "Gaussian, V = −1"}
SHADES = ("#B9D9EC", "#86C5EA", "#3D9BD1", "#0072B2", "#004A75", "#001F33")
COURANT = 0.45
MEAN, DEVIATION, REACH = 0.3, 0.4, 3.0
"""The Gaussian of the closed form, and where it is cut off: seven deviations away."""


def lopsided() -> Law:
    """A smooth law on [-1.4, 1.4], flat at its ends, with density proportional to (1 - y²)² (1 + y/2), y = x / 1.4."""
    high = 1.4
    density = np.polynomial.Polynomial([1, 0, -1 / high**2]) ** 2 * np.polynomial.Polynomial([1, 0.5 / high]) * 15 / (16 * high)
    total = density.integ()
    return Law("smooth", -high, high, lambda x: total(x) - total(-high), density)


def gaussian() -> Law:
    """The Gaussian of the closed form, on [-REACH, REACH]."""
    from scipy.special import ndtr

    ends = ndtr((np.array([-REACH, REACH]) - MEAN) / DEVIATION)

    def cumulative(x: np.ndarray) -> np.ndarray:
        return np.asarray((ndtr((x - MEAN) / DEVIATION) - ends[0]) / (ends[1] - ends[0]))

    return Law("Gaussian", -REACH, REACH, cumulative, lambda x: np.exp(-(((x - MEAN) / DEVIATION) ** 2) / 2))


def speeds(t: float, masses: np.ndarray, faces: np.ndarray, V: float) -> np.ndarray:
    """The velocity at the faces of the cells.

    e^{s z y} is e^{s z²/2} e^{s y²/2} e^{-s (z - y)²/2}; the first cancels, the last depends on z - y alone: a convolution.
    """
    N, width = len(masses), faces[1] - faces[0]
    centres = (faces[1:] + faces[:-1]) / 2
    s = np.exp(2 * t) if V > 0 else 1.0
    heavy = masses * np.exp(s * (centres**2 - np.max(centres**2)) / 2)
    kernel = np.exp(-s * ((np.arange(1 - N, N + 1) - 0.5) * width) ** 2 / 2)
    mean = np.convolve(kernel, heavy * centres, "valid") / np.convolve(kernel, heavy, "valid")
    return mean - faces if V > 0 else -mean


def changes(t: float, masses: np.ndarray, faces: np.ndarray, V: float, scheme: str) -> tuple[np.ndarray, float]:
    """(the rate at which each cell's mass changes, the largest speed); nothing flows in from outside, and nothing out."""
    v = speeds(t, masses, faces, V)
    rho = np.zeros(len(masses) + 2)                                                    # an empty cell beyond either end
    rho[1:-1] = masses / (faces[1] - faces[0])
    left, right = rho[:-1], rho[1:]
    if scheme == "limited":
        steps = right - left
        half = np.zeros(len(rho))
        least = np.minimum(np.abs(steps[1:]), np.abs(steps[:-1]))
        half[1:-1] = np.where(steps[1:] * steps[:-1] > 0, np.sign(steps[1:]) * least / 2, 0.0)
        left, right = left + half[:-1], right - half[1:]
    flux = np.where(v > 0, v * left, v * right)
    return flux[:-1] - flux[1:], float(np.abs(v).max())


def solved(law: Law, cells: int, times: np.ndarray, V: float, scheme: str) -> np.ndarray:
    """The masses of the cells at these times, (T, cells)."""
    faces = np.linspace(law.low, law.high, cells + 1)
    masses, found = np.diff(law.cumulative(faces)), []
    for t, t_next in zip(np.append(0.0, times[:-1]), times, strict=True):
        while t < t_next:
            rate, speed = changes(t, masses, faces, V, scheme)
            left = np.ceil((t_next - t) * speed / (COURANT * (faces[1] - faces[0])))
            dt = (t_next - t) / left
            once = masses + dt * rate
            masses = (masses + once + dt * changes(t + dt, once, faces, V, scheme)[0]) / 2
            t = t + dt if left > 1 else t_next
        found.append(masses)
    return np.array(found)


def kept(law: Law, size: str, times: np.ndarray, V: float) -> dict[str, Any]:
    """The variables of a Dataset: all grids behind one another along `slot`, and how many cells the grid of a slot has."""
    grids = GRIDS[size]
    masses = [np.concatenate([solved(law, N, times, V, scheme) for N in grids], axis=1) for scheme in SCHEMES]
    return {"masses": (("scheme", "time", "slot"), np.array(masses)), "cells": ("slot", np.repeat(grids, grids)),
            "time": ("time", times)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """Both schemes on all grids for two laws beside their tokens, and for the Gaussian with V = 1 and V = -1."""
    import xarray

    from attnlab.engine import simulate
    from attnlab.types import Weights

    data = {}
    for number, (name, law) in enumerate({"smooth": lopsided(), "uniform": uniform()}.items()):
        progress(number * 0.4, f"tokens and finite volumes, {name} law")
        variables = kept(law, size, TIMES, 1.0)
        for word, n in (("tokens", TOKENS[size]), ("few", FEW)):
            run = simulate(Weights(V=np.eye(1)), law.start(n), times=TIMES, t_end=float(TIMES[-1]), rtol=1e-10)
            assert run.z is not None
            variables[word] = (("time", f"of_{word}"), run.z[..., 0])
        data[name] = xarray.Dataset(variables, attrs={"low": law.low, "high": law.high, "V": 1.0})
    for number, V in enumerate((1.0, -1.0)):
        progress(0.8 + number * 0.1, f"the Gaussian, V = {V:g}")
        variables = kept(gaussian(), size, TIMES[:3], V)
        data["gaussian_plus" if V > 0 else "gaussian_minus"] = xarray.Dataset(
            variables, attrs={"low": -REACH, "high": REACH, "V": V})
    progress(1.0)
    return data


def grids_of(solution: Any) -> list[int]:
    """The grids that a solution was computed on."""
    return [int(N) for N in np.unique(solution["cells"].values)]


def cells_of(solution: Any, scheme: str, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """(faces (cells + 1,), masses (T, cells)) of one grid."""
    faces = np.linspace(solution.attrs["low"], solution.attrs["high"], cells + 1)
    return faces, solution["masses"].values[SCHEMES.index(scheme)][:, solution["cells"].values == cells]


def quantile_function(faces: np.ndarray, masses: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The inverse of the cumulative function of one time, which is straight inside the cells."""
    total = np.append(0.0, np.cumsum(masses))
    return np.interp(levels, total, faces)


def exact_gaussian(t: np.ndarray, V: float) -> tuple[np.ndarray, np.ndarray]:
    """(mean, deviation) at t, in z for V = 1 and in x for V = -1.

    The average of y against e^{xy} times the Gaussian of mean m and deviation a is m + a² x: the field is linear, a Gaussian
    stays one, x' = V (m + a² x), a' = V a³, m' = V m (1 + a²).
    """
    wide = 1 / np.sqrt(1 - 2 * V * DEVIATION**2 * t)
    return (MEAN * wide, np.exp(-t) * DEVIATION * wide) if V > 0 else (MEAN * np.exp(-t) * wide, DEVIATION * wide)


def errors(solution: Any, scheme: str) -> np.ndarray:
    """Mean distance of the quantile functions, which is W_1, to the tokens or to the closed form: (grids, T)."""
    from scipy.special import ndtri

    if "tokens" in solution:
        truth = solution["tokens"].values
        levels = middle_levels(truth.shape[1])          # token i stands for the quantile (i - 1/2)/n, but for 1/n²
    else:
        levels = middle_levels(4096)
        mean, deviation = exact_gaussian(solution["time"].values, solution.attrs["V"])
        truth = mean[:, None] + deviation[:, None] * ndtri(levels)
    rows = [[np.mean(np.abs(quantile_function(faces, m, levels) - z)) for m, z in zip(masses, truth, strict=True)]
            for faces, masses in (cells_of(solution, scheme, N) for N in grids_of(solution))]
    return np.array(rows)


def furthest(solutions: list[Any], scheme: str, expected: float) -> float:
    """The fitted order of W_1 against the number of cells that is furthest from the expected one, over laws and times."""
    found = []
    for one in solutions:
        cells, apart, t = np.array(grids_of(one))[1:], errors(one, scheme)[1:], one["time"].values
        found += [order(cells, apart[:, k])[0] for k in np.flatnonzero((t > 0) & (t <= JUDGED))]
    return max(found, key=lambda p: abs(p - expected))


def token_ratio(solution: Any) -> np.ndarray:
    """W_1 between the few tokens and the solution on the finest grid over what it must be, (range of the law) / 4n: (T,)."""
    few = solution["few"].values
    faces, masses = cells_of(solution, "limited", grids_of(solution)[-1])
    ends = solution["tokens"].values[:, [0, -1]] @ [-1.0, 1.0]
    fine = middle_levels(64 * few.shape[1])
    far = [wasserstein(quantile_function(faces, m, fine), z, 1) for m, z in zip(masses, few, strict=True)]
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
                mass, least = max(mass, float(np.abs(masses.sum(axis=1) - 1).max())), min(least, float(masses.min()))
    apart = max(float(errors(one, "limited")[-1, one["time"].values <= JUDGED].max()) * grids_of(one)[-1]
                / (one.attrs["high"] - one.attrs["low"]) for one in beside)
    spread = []
    for one in exact:
        faces, masses = cells_of(one, "limited", N := grids_of(one)[-1])
        centres, deviation = (faces[1:] + faces[:-1]) / 2, exact_gaussian(one["time"].values, one.attrs["V"])[1]
        measured = np.sqrt(masses @ centres**2 - (masses @ centres) ** 2)
        spread.append(np.abs(measured / deviation - 1).max() / ((2 * REACH / N) / deviation.min()) ** 2)
    ratios = token_ratio(data["uniform"])[:3]
    return [
        Claim(text="Mass is conserved: the largest |total mass - 1|, over all laws, grids, schemes and times.", measured=mass,
              published="the solution is a probability measure", low=0, high=1e-12,
              because="fluxes cancel in pairs; what is left is rounding"),
        Claim(text="No cell ever has negative mass: the smallest mass of a cell.", measured=least,
              published="the solution is a measure", low=0, high=np.inf, because="upwind fluxes of limited pieces with Courant "
              "number 0.45 < 1/2, and Heun's step is an average of two Euler steps"),
        Claim(text="Without slopes the order in W_1 is 1: the fitted order furthest from 1, over all laws and times.",
              measured=furthest(everything, "upwind", 1.0), published="no numbers", low=0.9, high=1.1,
              because="upwind is of first order; a kink of the cumulative function, which it smears over √h with an error of "
              "√h, costs h as well"),
        Claim(text="With limited slopes it is 2 where the density is smooth: the fitted order furthest from 2.",
              measured=furthest([data["smooth"]], "limited", 2.0), published="no numbers", low=1.8, high=2.1,
              because="second order; minmod loses an order in the few cells at a maximum, which W_1 does not see"),
        Claim(text="With limited slopes it is 4/3 where the density jumps at its ends: the fitted order furthest from 4/3.",
              measured=furthest([data["uniform"]], "limited", 4 / 3), published="no numbers", low=1.2, high=1.45,
              because="a second-order scheme smears a kink of the cumulative function over h^(2/3), with an error of h^(2/3)"),
        Claim(text="Gaussians, which have a closed form: the fitted order of W_1 furthest from 2, V = 1 and V = -1.",
              measured=furthest(exact, "limited", 2.0), published="no numbers", low=1.8, high=2.2,
              because="a' = V a³, m' = V m (1 + a²) solve the equation exactly"),
        Claim(text="Their deviation, on the finest grid: the relative error in units of (cell / deviation)².",
              measured=float(max(spread)), published="no numbers", low=0, high=1, because="a second-order scheme"),
        Claim(text="Tokens and finite volumes agree: the largest W_1 between their quantile functions on the finest grid, in "
              "cells.", measured=float(apart), published="a theorem: the empirical measure of the tokens solves the equation "
              "(section 6)", low=0, high=1, because="both tend to the one solution, the grid at least like h; the tokens at "
              "quantiles like 1/n²"),
        Claim(text=f"As step functions {FEW} tokens are as far from the law as they must be: 4n W_1 / range, furthest from 1, "
              "t <= 1.", measured=float(ratios[np.argmax(np.abs(ratios - 1))]), published="no rate given", low=0.9, high=1.1,
              because="each token stands for mass 1/n spread over its gap: W_1 is the sum of gaps over 4n, but for 1/n² and "
              "for the grid's own error, which is below a tenth of it until t = 1 (uniform law)"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Densities over the tokens' own, cumulative functions, and errors against the grid."""
    from attnlab.render.style import INK, PALETTE, dress_flat, house_style, new_figure, title

    law = data["smooth"]
    faces, masses = cells_of(law, "limited", N := grids_of(law)[-1])
    tokens, few, t = law["tokens"].values, law["few"].values, law["time"].values
    ends = (law.attrs["low"], law.attrs["high"])
    centres, width = (faces[1:] + faces[:-1]) / 2, faces[1] - faces[0]
    with house_style():
        figure = new_figure(10.4, 6.2)
        grid = figure.add_gridspec(2, 12)
        for panel, k in enumerate((0, 3, 4, 5)):
            axes = figure.add_subplot(grid[0, 3 * panel:3 * panel + 3])
            axes.hist(tokens[k], bins=np.linspace(*ends, 71).tolist(), density=True, color=PALETTE[4], alpha=0.45, linewidth=0,
                      label=f"{tokens.shape[1]} tokens")
            axes.plot(centres, masses[k] / width, color=PALETTE[0], linewidth=1.6, label="finite volumes")
            axes.plot(few[k], np.full(FEW, -0.045), "|", color=INK, markersize=5, markeredgewidth=0.6, label=f"{FEW} tokens",
                      transform=axes.get_xaxis_transform(), clip_on=False)
            top = (masses[k] / width).max()
            axes.set(xlabel="z", title=f"t = {t[k]:g}", xlim=ends, ylim=(0, (1.9 if panel == 0 else 1.12) * top))
            axes.tick_params(axis="x", pad=9)
            if panel == 0:
                axes.set_ylabel("density")
                axes.legend(frameon=False, fontsize=8, loc="upper left", borderaxespad=0.1)
            dress_flat(axes, 3)
        axes = figure.add_subplot(grid[1, 0:4])
        for k, colour in enumerate(SHADES):
            axes.plot(faces, np.append(0, np.cumsum(masses[k])), color=colour, linewidth=1.6, label=f"t = {t[k]:g}")
            axes.plot(few[k][::4], middle_levels(FEW)[::4], "o", color=colour, markersize=3.4, markerfacecolor="white")
        axes.set(xlabel="z", ylabel="mass to the left of z", title="Cumulative: equation (lines), tokens (dots)", xlim=ends)
        axes.legend(frameon=False, fontsize=8, loc="upper left", borderaxespad=0.1)
        dress_flat(axes)
        _draw_orders(figure.add_subplot(grid[1, 4:8]), data, ("smooth", "uniform"), f"W₁ to the tokens, t = {JUDGED:g}")
        exact = ("gaussian_plus", "gaussian_minus")
        _draw_orders(figure.add_subplot(grid[1, 8:12]), data, exact, "W₁ to the closed forms, t = 1")
        title(figure, "d = 1, V = 1: the mean-field equation by finite volumes and by tokens",
              f"Rescaled frame z = e⁻ᵗx, where the support only shrinks. Above: the density on {N} cells over the histogram of "
              "tokens that started at the quantiles of the law. Below: open markers, no slopes; filled, limited slopes; "
              "dashed, the orders of theory: 1, 2 for smooth densities, 4/3 where they jump.")
        return {"mean_field_pde": figure}


def _draw_orders(axes: Any, data: Data, names: tuple[str, ...], heading: str) -> None:
    """Errors at the last time against the number of cells, with lines of the orders that theory has."""
    from attnlab.render.style import MARKERS, PALETTE, dress_flat

    for number, name in enumerate(names):
        one, colour = data[name], PALETTE[(0, 1)[number]]
        N = np.array(grids_of(one))
        for scheme, filled in (("upwind", "white"), ("limited", colour)):
            error = errors(one, scheme)[:, one["time"].values <= JUDGED][:, -1]
            p = 1 if scheme == "upwind" else (4 / 3 if name == "uniform" else 2)
            axes.loglog(N, error[-1] * (N[-1] / N) ** p, color=colour, linewidth=0.9, linestyle=(0, (4, 2)))
            axes.loglog(N, error, linestyle="none", marker=MARKERS[number], color=colour, markerfacecolor=filled, markersize=5.5,
                        label=WORDS[name] if scheme == "limited" else None)
            axes.text(N[-1] * 1.14, error[-1], "4/3" if p == 4 / 3 else str(p), fontsize=8.5, color=colour, va="center")
    axes.set(xlabel="number of cells", title=heading, xlim=(N[0] / 1.2, N[-1] * 1.5))
    axes.minorticks_off()
    axes.set_xticks(N, [str(cells) for cells in N])
    axes.legend(frameon=False, fontsize=8, loc="lower left", borderaxespad=0.1)
    dress_flat(axes)


def _leak(one: Any) -> None:
    """A boundary that lets a little mass through."""
    one["masses"] = one["masses"] * (1 - 1e-9 * one["time"])


def _undershoot(one: Any) -> None:
    """What an unlimited second-order scheme does beside a steep front."""
    masses = one["masses"].values.copy()
    masses[:, -1, 0] -= 1e-9
    masses[:, -1, 1] += 1e-9
    one["masses"] = (("scheme", "time", "slot"), masses)


def _late(one: Any) -> None:
    """States saved one step too early on every grid: an error of a fixed time, whatever the grid."""
    masses = one["masses"].values
    one["masses"] = (("scheme", "time", "slot"), 0.95 * masses + 0.05 * np.concatenate([masses[:, :1], masses[:, :-1]], axis=1))


def _other_speed(one: Any) -> None:
    """Tokens that feel a slightly different field."""
    one["few"], one["tokens"] = one["few"] * 0.9, one["tokens"] * 0.9


experiments.register("mean_field_pde")(
    Experiment(
        name="mean_field_pde",
        title="The mean-field equation by finite volumes agrees with the tokens",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 6 (continuity equation); numerics: ours",
        about="With very many tokens one follows their density instead: it is carried by the velocity that it causes itself, a "
        "partial differential equation. Here that equation is solved on a grid by finite volumes, which know nothing of "
        "tokens, and compared with tokens that start at the quantiles of the same law. Both show the same: the middle empties "
        "and all mass moves to two points.\n\n"
        "The paper solves no such equation. Two checks are exact. A Gaussian stays Gaussian, with deviation a' = V a³, so a "
        "formula is there to compare with; for V = 1 it even says that a Gaussian, whose support is not compact, blows up at "
        "t = 1/(2a²): compact support in the theorem is needed. And the orders of convergence are those of theory, 1 without "
        "and 2 with limited slopes, 4/3 where the density jumps.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "mass leaks": changed("smooth", _leak),
            "cell below zero": changed("uniform", _undershoot),
            "smooth law saved too early": changed("smooth", _late),
            "uniform law saved too early": changed("uniform", _late),
            "Gaussian saved too early": changed("gaussian_plus", _late),
            "tokens in another field": changed("smooth", _other_speed),
        },
    )
)
