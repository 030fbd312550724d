"""Random points and their hull: exact expectations for n points of the square, the ball, the normal
law and the sphere.

A vertex i leads itself when <x_i, x_j> <= |x_i|^2 for all j: the plane through x_i across the ray
from 0 has no point beyond it. A point leads itself with probability E (1 - share of the law beyond
that plane)^(n - 1); a pair of points is an edge of a plane hull when all others lie on one side of
its line, and so on: one integral each (Renyi and Sulanke 1963, Efron 1965).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from attnlab.starts import as_generator, normal, sphere, uniform_cube

LAWS = ("cube", "ball", "normal", "sphere")
NORMAL_PART = 1 / math.sqrt(3)
"""The normal law has the standard deviation of the cube [-1, 1]^d."""


def draw_points(law: str, n: int, d: int, rng: Any) -> np.ndarray:
    """n points of the cube [-1, 1]^d, the unit ball, the unit sphere, or normal with the deviation
    of the cube.
    """
    generator = as_generator(rng)
    if law == "cube":
        return uniform_cube(n, d, rng=generator)
    if law == "normal":
        return normal(n, d, scale=NORMAL_PART, rng=generator)
    points = sphere(n, d, rng=generator)
    return points * generator.random((n, 1)) ** (1 / d) if law == "ball" else points


def expected_vertices(law: str, d: int, n: int) -> float:
    """The expected number of vertices of the hull of n points; NaN where no formula is written down
    (cube in space).
    """
    if law == "sphere" or n <= d + 1:
        return float(n)
    if law == "cube":
        return _vertices_of_square(n) if d == 2 else math.nan
    facets = 2 * math.comb(n, d) * _one_sided(law, d, n)
    return facets if d == 2 else facets / 2 + 2 if d == 3 else math.nan


@cache
def expected_self_leaders(law: str, d: int, n: int) -> float:
    """The expected number of tokens that lead themselves; NaN where no formula is written down
    (cube in space).
    """
    if law == "sphere":
        return float(n)
    if law == "cube":
        return _leaders_of_square(n) if d == 2 else math.nan
    from scipy.special import gamma

    r, weight = _nodes(law)
    below = _below(law, d, r)
    density = (
        d * r ** (d - 1)
        if law == "ball"
        else r ** (d - 1) * np.exp(-r * r / 2) / (2 ** (d / 2 - 1) * gamma(d / 2))
    )
    return float(n * np.sum((weight * density * below ** (n - 1))[r > 0]))


def renyi_sulanke_square(n: int) -> float:
    """(8/3) (ln n + gamma - ln 2): the expected number of vertices of n points of a square, up to
    o(1).
    """
    return 8 / 3 * (math.log(n) + np.euler_gamma - math.log(2))


def _nodes(law: str) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes over the distance from 0, with sign; panels get finer towards the rim of
    the ball.
    """
    if law == "normal":
        return _panels(np.linspace(-12.0, 12.0, 97))
    rim = 1 - np.geomspace(1e-9, 1.0, 60)[::-1]
    return _panels(np.concatenate([-rim[::-1], rim[1:], [1.0]]))


def _panels(edges: np.ndarray, order: int = 12) -> tuple[np.ndarray, np.ndarray]:
    at, weight = np.polynomial.legendre.leggauss(order)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + at)).ravel(), (half * weight).ravel()


def _below(law: str, d: int, r: np.ndarray) -> np.ndarray:
    """The share of the law on the side of 0 of a plane at the distance r, r with sign."""
    from scipy.special import betainc, ndtr

    if law == "normal":
        return ndtr(r)
    return 0.5 + 0.5 * np.sign(r) * betainc(0.5, (d + 1) / 2, np.minimum(r * r, 1.0))


def _one_sided(law: str, d: int, n: int) -> float:
    """The chance that n - d points lie below the plane of d others; its distance has the density ~
    (section)^(d + 1) moments.

    By Blaschke and Petkantschin: normal with variance 1/d for the normal law, ~ (1 - p^2)^((d^2 -
    1) / 2) for the ball.
    """
    from scipy.special import beta

    p, weight = _nodes(law)
    if law == "normal":
        density = np.sqrt(d / (2 * np.pi)) * np.exp(-d * p * p / 2)
    else:
        density = (1 - p * p) ** ((d * d - 1) / 2) / beta(0.5, (d * d + 1) / 2)
    return float(np.sum(weight * density * _below(law, d, p) ** (n - d)))


def _cut_square(a: np.ndarray, b: np.ndarray, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(area, minus its slope in the level) of what a line cuts off [-1, 1]^2: a u + b v > a + b -
    depth, a, b > 0.
    """
    corners = [
        (np.maximum(depth - less, 0.0), sign)
        for less, sign in ((0.0, 1), (2 * a, -1), (2 * b, -1), (2 * a + 2 * b, 1))
    ]
    area = sum(sign * part**2 for part, sign in corners) / (2 * a * b)
    return area, sum(sign * part for part, sign in corners) / (a * b)


def _vertices_of_square(n: int) -> float:
    """n (n - 1) / 16 times the integral of chord^3 / 3 (1 - area / 4)^(n - 2) over all lines, an
    eighth of the directions.
    """
    angle, angle_weight = _panels(np.concatenate([[0.0], np.geomspace(1e-7, np.pi / 4, 40)]))
    part, part_weight = _panels(np.concatenate([[0.0], np.geomspace(1e-7, 1.0, 60)]))
    a, b = np.cos(angle)[:, None], np.sin(angle)[:, None]
    area, chord = _cut_square(a, b, part * 2 * (a + b))
    inner = chord**3 / 3 * np.maximum(1 - area / 4, 0.0) ** (n - 2) * 2 * (a + b)
    return float(n * (n - 1) / 16 * 4 * np.einsum("i,j,ij->", angle_weight, part_weight, inner))


def _leaders_of_square(n: int) -> float:
    """n times the integral of (1 - area beyond the line across x / 4)^(n - 1) over a quarter of the
    square, of area 1.
    """
    side, weight = _panels(
        np.concatenate([[0.0], 1 - np.geomspace(1e-6, 1.0, 60)[::-1][1:], [1.0]])
    )
    a, b = side[:, None], side[None, :]
    area, _ = _cut_square(a, b, a + b - a * a - b * b)
    return float(
        n * np.einsum("i,j,ij->", weight, weight, np.clip(1 - area / 4, 0.0, 1.0) ** (n - 1))
    )
