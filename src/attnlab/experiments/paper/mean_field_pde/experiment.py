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
import xarray
from scipy.special import ndtr

from attnlab.engine import simulate
from attnlab.experiments.common.mean_field import Law, uniform
from attnlab.progress import Progress
from attnlab.types import Weights

TIMES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
GRIDS = {"full": (50, 100, 200, 400, 800), "small": (50, 100, 200, 400)}
TOKENS = {"full": 4096, "small": 2048}
FEW = 64
SCHEMES = ("upwind", "limited")
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
