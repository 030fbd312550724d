"""Every start law: shape, use of rng, its moments within computed standard errors, its refusals."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

from attnlab.registry import UnknownName
from attnlab.starts import (
    as_generator,
    circle,
    given,
    normal,
    planted,
    planted_labels,
    sphere,
    start_laws,
    uniform_cube,
)

X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]]
LAWS = [
    name
    for name in start_laws
    if start_laws[name].__module__ == "attnlab.starts" and name != "text"
]
"""The law `text` reads a checkpoint: tests/models/test_named.py."""

SIGMAS = 5.0  # a right law fails once in about 2 million comparisons


def draw(name: str, rng, n: int = 3, d: int = 2) -> np.ndarray:
    required = [
        key
        for key, p in inspect.signature(start_laws[name]).parameters.items()
        if p.default is p.empty
    ]
    return start_laws[name](n=n, d=d, rng=rng, **({"x": X} if "x" in required else {}))


def is_within(sample: np.ndarray, mean: float, variance: float) -> bool:
    """Whether the mean of independent numbers with that mean and variance is believable."""
    return abs(sample.mean() - mean) <= SIGMAS * np.sqrt(variance / sample.size)


def test_the_laws_of_the_design_are_registered():
    assert set(LAWS) == {"uniform_cube", "normal", "sphere", "circle", "planted", "given"}


@pytest.mark.parametrize("name", LAWS)
def test_every_law(name):
    x = draw(name, 7)
    assert x.shape == (3, 2) and x.dtype == float and np.isfinite(x).all()
    assert np.array_equal(x, draw(name, 7))
    assert np.array_equal(x, draw(name, np.random.default_rng(7)))
    assert np.array_equal(x, draw(name, np.int64(7)))
    generator = np.random.default_rng(7)
    first, second = draw(name, generator), draw(name, generator)
    is_random = name != "given"
    assert np.array_equal(first, second) != is_random
    assert np.array_equal(x, draw(name, 8)) != is_random
    assert np.array_equal(draw(name, None), draw(name, None)) != is_random
    assert len(start_laws[name].__doc__) > 20


@pytest.mark.parametrize("name", LAWS)
def test_global_state_is_left_alone(name):
    # the legacy calls look at the state that must not move
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    draw(name, None)
    draw(name, 0)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    "bad", [{"n": 0}, {"n": -1}, {"n": 2.0}, {"n": True}, {"n": "3"}, {"d": 0}, {"d": 2.5}]
)
def test_bad_sizes_are_refused(name, bad):
    (key,) = bad
    with pytest.raises(ValueError, match=f"^{key} must be a whole number, at least 1, got"):
        draw(name, 0, **bad)


@pytest.mark.parametrize("rng", [-1, 1.0, True, "0", [1, 2]])
def test_a_bad_rng_is_refused(rng):
    with pytest.raises(
        ValueError, match="rng must be an integer >= 0, a numpy Generator or None, got"
    ):
        as_generator(rng)


def test_as_generator_passes_a_generator_on():
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator


def test_uniform_cube_moments():
    low, high = -5.0, 2.0
    x = uniform_cube(20_000, 3, low=low, high=high, rng=0)
    assert low <= x.min() and x.max() < high
    width = high - low
    centred = x - (low + high) / 2
    assert is_within(x, (low + high) / 2, width**2 / 12)
    # fourth central moment of a uniform law: width^4 / 80
    assert is_within(centred**2, width**2 / 12, width**4 / 80 - width**4 / 144)
    for j, k in itertools.combinations(range(3), 2):
        assert is_within(centred[:, j] * centred[:, k], 0.0, (width**2 / 12) ** 2)


def test_normal_moments():
    mean, scale = [1.0, -2.0], 0.5
    x = normal(20_000, 2, scale=scale, mean=mean, rng=1)
    for k in range(2):
        assert is_within(x[:, k], mean[k], scale**2)
        assert is_within((x[:, k] - mean[k]) ** 2, scale**2, 2 * scale**4)
    centred = x - mean
    assert is_within(centred[:, 0] * centred[:, 1], 0.0, scale**4)


@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_sphere_is_isotropic(d):
    x = sphere(20_000, d, radius=3.0, rng=2)
    assert np.allclose(np.linalg.norm(x, axis=1), 3.0, rtol=1e-14)
    unit = x / 3.0
    # E u_k^2 = 1/d, E u_k^4 = 3 / (d (d + 2)), E u_j^2 u_k^2 = 1 / (d (d + 2))
    for k in range(d):
        assert is_within(unit[:, k], 0.0, 1 / d)
        assert is_within(unit[:, k] ** 2, 1 / d, max(3 / (d * (d + 2)) - 1 / d**2, 1e-30))
    if d > 1:
        assert is_within(unit[:, 0] * unit[:, 1], 0.0, 1 / (d * (d + 2)))


def test_circle():
    x = circle(20_000, 2, radius=2.0, rng=3)
    assert np.allclose(np.hypot(*x.T), 2.0, rtol=1e-14)
    for order in (1, 2, 3):  # Fourier modes of uniform angles
        angles = np.arctan2(x[:, 1], x[:, 0])
        assert is_within(np.cos(order * angles), 0.0, 0.5)
        assert is_within(np.sin(order * angles), 0.0, 0.5)
    square = circle(4, radius=2.0, equally_spaced=True)
    assert np.allclose(square, [[2, 0], [0, 2], [-2, 0], [0, -2]], atol=1e-15)
    with pytest.raises(ValueError, match="d must be 2, got 3"):
        circle(5, 3)


@pytest.mark.parametrize(("n", "d", "clusters"), [(7, 1, 3), (20, 2, 6), (9, 5, 9), (4, 3, 1)])
def test_planted_bounds(n, d, clusters):
    spread, separation = 0.3, 1.5
    x = planted(n, d, clusters=clusters, spread=spread, separation=separation, rng=4)
    labels = planted_labels(n, clusters)
    assert [int(i * clusters // n) for i in range(n)] == labels.tolist()
    sizes = np.bincount(labels, minlength=clusters)
    assert len(sizes) == clusters and sizes.max() - sizes.min() <= 1
    for i, j in itertools.combinations(range(n), 2):
        distance = np.linalg.norm(x[i] - x[j])
        assert (
            distance <= 2 * spread
            if labels[i] == labels[j]
            else distance >= separation - 2 * spread
        )


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_nearest_planted_clusters_are_exactly_the_separation_apart(d):
    for rng in range(10):
        x = planted(8, d, clusters=8, spread=1e-9, separation=0.5, rng=rng)
        nearest = min(np.linalg.norm(p - q) for p, q in itertools.combinations(x, 2))
        assert abs(nearest - 0.5) <= 2.1e-9 and np.abs(x.mean(axis=0)).max() <= 1.1e-9


def test_planted_fills_balls_and_keeps_the_separation():
    n, d, spread, separation = 40_000, 3, 0.2, 2.0
    x = planted(n, d, clusters=2, spread=spread, separation=separation, rng=5)
    labels = planted_labels(n, 2)
    centres = np.array([x[labels == k].mean(axis=0) for k in range(2)])
    # uniform in a ball: each coordinate has variance spread^2 / (d + 2)
    error = SIGMAS * spread * np.sqrt(2 * d / (d + 2) / (n / 2))
    assert abs(np.linalg.norm(centres[0] - centres[1]) - separation) < error
    # centres have mean 0, so the two are opposite: the true ones are known up to that error
    radii = np.linalg.norm(x - centres[labels], axis=1)
    assert radii.max() <= spread + error
    ratio = (radii / spread) ** d  # uniform on [0, 1] up to the error of the centres
    assert abs(ratio.mean() - 0.5) < SIGMAS * np.sqrt(1 / 12 / n) + d * error / spread


def test_given_copies_and_checks():
    source = np.array(X)
    x = given(x=source)
    x[0, 0] = 99.0
    assert source[0, 0] == 1.0
    with pytest.raises(ValueError, match="so n must be 3, got 4"):
        given(4, x=X)
    with pytest.raises(ValueError, match="so d must be 2, got 3"):
        given(d=3, x=X)
    for bad in ([1.0, 2.0], [], [[]], [[np.nan, 1.0]], [["a", 1.0]], [[1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match="^x must be"):
            given(x=bad)


@pytest.mark.parametrize(
    ("law", "parameters", "sentence"),
    [
        (
            uniform_cube,
            {"low": 1.0, "high": 1.0},
            "low must be smaller than high, got low = 1.0, high = 1.0",
        ),
        (uniform_cube, {"high": np.inf}, "must be finite"),
        (uniform_cube, {"low": "a"}, "must be made of real numbers"),
        (normal, {"scale": 0.0}, "scale must be a positive number, got 0.0"),
        (normal, {"scale": "wide"}, "scale must be a positive number, got 'wide'"),
        (normal, {"mean": [1.0, 2.0, 3.0]}, "mean must be a number or a list of d = 2 numbers"),
        (sphere, {"radius": -1.0}, "radius must be a positive number, got -1.0"),
        (circle, {"radius": np.nan}, "radius must be a positive number, got nan"),
        (
            planted,
            {"clusters": 4},
            "clusters must be at most the number of tokens, got 4 clusters for n = 3",
        ),
        (planted, {"spread": 0.5, "separation": 2.0}, "separation must exceed 4"),
    ],
)
def test_refusals_are_sentences(law, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        law(3, 2, rng=0, **parameters)


def test_a_misspelt_law_is_named():
    with pytest.raises(
        UnknownName, match="Unknown start law 'unifrom_cube'. Did you mean 'uniform_cube'"
    ):
        start_laws["unifrom_cube"]
