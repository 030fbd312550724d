"""The mean-field equation on the line as a partial differential equation: a density on a grid,
without tokens.

    d_t mu + d_z (v mu) = 0,   v(t, z) = int e^{s z y} y mu(dy) / int e^{s z y} mu(dy) - z,   s = e^{2t}   (V = 1)

is the continuity equation of d = 1 with Q = K = 1 in the rescaled frame z = e^{-t} x. There the
support only shrinks, so a fixed grid holds it. For V = -1 the frame is x itself, with s = 1 and v =
- int e^{xy} y mu / int e^{xy} mu.

The mass of a cell changes by the fluxes through its faces. These are upwind fluxes of a density
that is constant in each cell ("upwind", order 1), or straight with slopes limited by minmod
("limited", order 2). Heun's step in time is an average of two Euler steps. So it keeps what those
keep: masses stay positive if Courant's number is at most 1/2.
"""

from __future__ import annotations

import numpy as np

from attnlab.analysis.transport import Law

SCHEMES = ("upwind", "limited")
COURANT = 0.45


def solve_mean_field(
    law: Law, cells: int, times: np.ndarray, V: float, scheme: str = "limited"
) -> np.ndarray:
    """Return the masses (T, cells) of the equal cells of [law.low, law.high] at these times, V = 1
    or -1.
    """
    if scheme not in SCHEMES or V not in (1.0, -1.0):
        raise ValueError(
            f"scheme must be one of {SCHEMES} and V must be 1 or -1, got {scheme!r} and {V}."
        )
    faces = np.linspace(law.low, law.high, cells + 1)
    masses, found = np.diff(law.cumulative(faces)), []
    for t, t_next in zip(np.append(0.0, times[:-1]), times, strict=True):
        while t < t_next:
            rate, speed = _changes(t, masses, faces, V, scheme)
            left = np.ceil((t_next - t) * speed / (COURANT * (faces[1] - faces[0])))
            dt = (t_next - t) / left
            once = masses + dt * rate
            masses = (masses + once + dt * _changes(t + dt, once, faces, V, scheme)[0]) / 2
            t = t + dt if left > 1 else t_next
        found.append(masses)
    return np.array(found)


def gaussian_at(
    t: np.ndarray, V: float, mean: float, deviation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (mean, deviation) at the times t of the Gaussian solution: in z for V = 1, in x for V
    = -1.

    The average of y against e^{xy} times the Gaussian of mean m and deviation a is m + a^2 x. So
    the field is linear and a Gaussian stays one: x' = V (m + a^2 x), a' = V a^3, m' = V m (1 +
    a^2). For V = 1 it blows up at t = 1 / (2 a^2).
    """
    wide = 1 / np.sqrt(1 - 2 * V * deviation**2 * t)
    return (
        (mean * wide, np.exp(-t) * deviation * wide)
        if V > 0
        else (mean * np.exp(-t) * wide, deviation * wide)
    )


def quantiles_of_cells(faces: np.ndarray, masses: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the places below which these parts of the mass are; the density is constant in each
    cell.
    """
    return np.interp(levels, np.append(0.0, np.cumsum(masses)), faces)


def _speeds(t: float, masses: np.ndarray, faces: np.ndarray, V: float) -> np.ndarray:
    """The velocity at the faces of the cells.

    e^{s z y} is e^{s z^2/2} e^{s y^2/2} e^{-s (z - y)^2/2}; the first cancels, the last depends on
    z - y alone: a convolution.
    """
    N, width = len(masses), faces[1] - faces[0]
    centres = (faces[1:] + faces[:-1]) / 2
    s = np.exp(2 * t) if V > 0 else 1.0
    heavy = masses * np.exp(s * (centres**2 - np.max(centres**2)) / 2)
    kernel = np.exp(-s * ((np.arange(1 - N, N + 1) - 0.5) * width) ** 2 / 2)
    mean = np.convolve(kernel, heavy * centres, "valid") / np.convolve(kernel, heavy, "valid")
    return np.asarray(mean - faces if V > 0 else -mean)


def _changes(
    t: float, masses: np.ndarray, faces: np.ndarray, V: float, scheme: str
) -> tuple[np.ndarray, float]:
    """(the rate at which the mass of each cell changes, the largest speed); nothing flows through
    the two ends.
    """
    v = _speeds(t, masses, faces, V)
    rho = np.zeros(len(masses) + 2)  # an empty cell beyond either end
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
