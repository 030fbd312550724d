"""First tokens by name: every law is a function law(n, d, *, ..., rng=None) -> (n, d) array,
registered below.

    x0 = start_laws["uniform_cube"](40, 3, low=-5, high=5, rng=0)

`rng` is an integer, a numpy Generator, or None for a new random seed. No law uses numpy's global
state, and the same integer always gives the same tokens. Laws without randomness accept `rng` and
ignore it, so that a Spec may change its law.
"""

from __future__ import annotations

import importlib
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attnlab.capacity import check_memory
from attnlab.registry import Registry

start_laws: Registry[Callable[..., np.ndarray]] = Registry("start law")

NUMBERS_A_COORDINATE = 3
"""The most arrays of the size of the tokens that a law holds at once."""

MOST_CLUSTERS = 5000
"""The most planted clusters. Each centre is placed far from all earlier ones, so the work grows
with the square of the number.
"""

CANDIDATES = 32
"""Each planted centre is the most remote of this many draws. This spreads the centres well and is
cheap.
"""


def as_generator(rng: Any) -> np.random.Generator:
    """Return the numpy Generator for `rng`: a Generator unchanged, one seeded by an integer >= 0, a
    new one for None (SPEC 7).
    """
    if isinstance(rng, np.random.Generator):
        return rng
    is_seed = isinstance(rng, numbers.Integral) and not isinstance(rng, bool) and int(rng) >= 0
    if rng is not None and not is_seed:
        raise ValueError(
            f"rng must be an integer >= 0, a numpy Generator or None, got {rng!r}. rng=0 makes a"
            " repeatable draw."
        )
    return np.random.default_rng(None if rng is None else int(rng))


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """Return `value` as an int >= least, or raise a ValueError that names it `name`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or int(value) < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}.")
    return int(value)


def positive_number(name: str, value: Any) -> float:
    """Return `value` as a finite float > 0, or raise a ValueError that names it `name`."""
    try:
        is_positive = (
            isinstance(value, numbers.Real)
            and not isinstance(value, bool)
            and 0 < float(value) < math.inf
        )
    except OverflowError:  # a whole number beyond all floats
        is_positive = False
    if not is_positive:
        raise ValueError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def token_shape(n: Any, d: Any) -> tuple[int, int]:
    """Return (n, d) as whole numbers of at least 1. Raise ValueError otherwise, or if the tokens do
    not fit in memory.
    """
    n, d = whole_number("n", n), whole_number("d", d)
    check_memory(
        f"n = {n} tokens in dimension d = {d}",
        NUMBERS_A_COORDINATE * n * d,
        "Choose a smaller n or d.",
    )
    return n, d


def _finite_array(name: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be made of real numbers, got {str(value)[:80]}.") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {str(value)[:80]}.")
    return array


def move_tokens(tokens: np.ndarray, moved: Any, name: str = "moved") -> np.ndarray:
    """Return the tokens (n, d) with some moved: moved = {"5": [1.245, 1.917]} moves token 5 there;
    tokens count from 0.
    """
    n, d = tokens.shape
    if not isinstance(moved, Mapping):
        raise ValueError(
            f'{name} must be a table of tokens and their places, {{ "5" = [1.245, 1.917] }}, got'
            f" {str(moved)[:80]}."
        )
    found = tokens.copy()
    for token, place in moved.items():
        is_token = (
            isinstance(token, str)
            and token.isascii()
            and token.isdecimal()
            and str(int(token[:12])) == token
        )
        if not is_token or int(token) >= n:
            raise ValueError(
                f"{name} must have the numbers of tokens as keys, 0 to {n - 1}, got"
                f" {str(token)[:80]!r}."
            )
        if not isinstance(place, list | tuple) or any(isinstance(number, bool) for number in place):
            raise ValueError(
                f"{name}.{token} must be a list of d = {d} numbers, got {str(place)[:80]}."
            )
        coordinates = _finite_array(f"{name}.{token}", place)
        if coordinates.shape != (d,):
            raise ValueError(
                f"{name}.{token} must be a list of d = {d} numbers, got {str(place)[:80]}."
            )
        found[int(token)] = coordinates
    return found


@start_laws.register("uniform_cube")
def uniform_cube(
    n: int, d: int, *, low: float = -1.0, high: float = 1.0, rng: Any = None
) -> np.ndarray:
    """Tokens with independent coordinates, uniform on [low, high]. The law of the paper's
    experiments (low, high = -5, 5).
    """
    n, d = token_shape(n, d)
    ends = _finite_array("(low, high)", (low, high))
    if ends[0] >= ends[1]:
        raise ValueError(f"low must be smaller than high, got low = {low}, high = {high}.")
    return as_generator(rng).uniform(ends[0], ends[1], (n, d))


@start_laws.register("normal")
def normal(n: int, d: int, *, scale: float = 1.0, mean: Any = 0.0, rng: Any = None) -> np.ndarray:
    """Tokens with independent normal coordinates of standard deviation `scale` around `mean`, a
    number or d numbers.
    """
    n, d = token_shape(n, d)
    centre = _finite_array("mean", mean)
    if centre.shape not in ((), (d,)):
        raise ValueError(
            f"mean must be a number or a list of d = {d} numbers, got shape {centre.shape}."
        )
    return centre + positive_number("scale", scale) * as_generator(rng).standard_normal((n, d))


@start_laws.register("sphere")
def sphere(n: int, d: int, *, radius: float = 1.0, rng: Any = None) -> np.ndarray:
    """Tokens uniform on the sphere |x| = radius of R^d (d = 1: the two points -radius and
    radius).
    """
    n, d = token_shape(n, d)
    g = as_generator(rng).standard_normal((n, d))
    return positive_number("radius", radius) * g / np.linalg.norm(g, axis=1, keepdims=True)


@start_laws.register("circle")
def circle(
    n: int, d: int = 2, *, radius: float = 1.0, equally_spaced: bool = False, rng: Any = None
) -> np.ndarray:
    """Tokens on the circle |x| = radius of R^2: at uniform random angles, or at the angles 2 pi i /
    n if equally_spaced.
    """
    n, d = token_shape(n, d)
    if d != 2:
        raise ValueError(
            f"The start law circle is in the plane: d must be 2, got {d}. Use the law sphere for"
            " other d."
        )
    angles = 2 * np.pi * (np.arange(n) / n if equally_spaced else as_generator(rng).random(n))
    return positive_number("radius", radius) * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def planted_labels(n: int, clusters: int) -> np.ndarray:
    """Return the cluster i * clusters // n of each token of `planted`, (n,): blocks whose sizes
    differ by at most one.
    """
    return np.arange(n) * clusters // n


@start_laws.register("planted")
def planted(
    n: int,
    d: int,
    *,
    clusters: int = 3,
    spread: float = 0.1,
    separation: float = 2.0,
    rng: Any = None,
) -> np.ndarray:
    """Tokens uniform in balls of radius `spread` around centres whose smallest distance is
    `separation`.

    Token i belongs to cluster i * clusters // n (`planted_labels`). Two tokens of one cluster are
    at most 2 spread apart, of different clusters at least separation - 2 spread. separation must
    exceed 4 spread, so that a scale between separates them.
    """
    (n, d), clusters = token_shape(n, d), whole_number("clusters", clusters)
    spread, separation = (
        positive_number("spread", spread),
        positive_number("separation", separation),
    )
    if clusters > n:
        raise ValueError(
            f"clusters must be at most the number of tokens, got {clusters} clusters for n = {n}."
        )
    if clusters > MOST_CLUSTERS:
        raise ValueError(
            f"clusters must be at most {MOST_CLUSTERS}, since centres are compared pair by pair;"
            f" got {clusters}."
        )
    check_memory(
        f"{clusters} planted centres in dimension d = {d}",
        2 * CANDIDATES * clusters * d,
        "Choose fewer clusters.",
    )
    if separation <= 4 * spread:
        raise ValueError(
            f"separation must exceed 4 * spread to keep the clusters apart, got {separation} and"
            f" spread = {spread}."
        )
    rng = as_generator(rng)
    centres = _remote_centres(clusters, d, rng) * separation
    offsets = sphere(n, d, rng=rng) * rng.random((n, 1)) ** (
        1 / d
    )  # uniform in the unit ball: radius^d is uniform
    return centres[planted_labels(n, clusters)] + spread * offsets


def _remote_centres(count: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Random centres (count, d) with mean 0 and smallest distance 1."""
    centres = rng.standard_normal((1, d))
    smallest = 1.0
    for i in range(1, count):
        candidates = rng.standard_normal((CANDIDATES, d))
        distances = np.linalg.norm(candidates[:, None] - centres, axis=2).min(
            axis=1
        )  # (CANDIDATES,)
        best = int(distances.argmax())
        smallest = float(distances[best]) if i == 1 else min(smallest, float(distances[best]))
        centres = np.concatenate([centres, candidates[best : best + 1]])
    return (centres - centres.mean(axis=0)) / smallest


@start_laws.register("given")
def given(n: int | None = None, d: int | None = None, *, x: Any, rng: Any = None) -> np.ndarray:
    """Return a copy of the given tokens x (n, d). If n and d are given, they are checked."""
    del rng
    tokens = _finite_array("x", x)
    if tokens.ndim != 2 or tokens.size == 0:
        raise ValueError(
            f"x must be a list of tokens, shape (n, d) with n, d >= 1, got shape {tokens.shape}."
        )
    for name, wanted, found in (("n", n, tokens.shape[0]), ("d", d, tokens.shape[1])):
        if wanted is not None and whole_number(name, wanted) != found:
            raise ValueError(
                f"x has shape {tokens.shape}, so {name} must be {found}, got {wanted}. Leave {name}"
                " out."
            )
    return tokens


@start_laws.register("text")
def text(
    n: int | None = None,
    d: int | None = None,
    *,
    model: str,
    text: str | None = None,
    ids: Any = None,
    layer: int = 0,
    special: bool = True,
    fold_norm: bool = True,
    piece: int | None = None,
    rng: Any = None,
) -> np.ndarray:
    """Tokens of a sentence as they enter a layer of a trained model, as in `attnlab flow MODEL
    --text`. Layer 0: embedded.

    model : a name that `attnlab models` lists, the folder of a checkpoint, or
    hf:owner/name[@revision]. Nothing is downloaded. text, ids : the sentence, or the numbers of its
    tokens. special: with the tokens that the model adds at the ends. fold_norm : without the gain
    and bias of a norm before attention, which the family model puts into the matrices. n, piece :
    only n tokens in a row. The sentence is cut into pieces of n that do not overlap, without
    special tokens.
               piece (from 0) chooses one. Without it, rng chooses one for each member of a batch.
    d : is checked, if given.
    """
    # imported by name: a Spec without a text must not load the models
    found: np.ndarray = importlib.import_module("attnlab.models.named").text_tokens(
        model,
        text=text,
        ids=ids,
        layer=layer,
        special=special,
        fold_norm=fold_norm,
        n=n,
        d=d,
        piece=piece,
        rng=rng,
    )
    return found
