"""What a run is, in the few words of a title: V, beta, n, d and the seed."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np

from attnlab.render.literal import escape_words
from attnlab.types import Dynamics, Spec, Weights
from attnlab.weights import weights_families

MOST_EIGENVALUES = 4
"""Dimensions up to which eigenvalues are written out."""

MOST_DIAGONAL = 5
"""Entries of a diagonal that are written out."""

LARGEST_LOOK = 2048
"""Beyond this dimension V is not looked at: its entries would take seconds."""

LONGEST_SOURCE = 24
"""Characters of where weights are from; what is longer is left out."""


def describe_run(dynamics: Dynamics, n: int, spec: Spec | None = None) -> str:
    """The words V = I, β = 1, n = 40, d = 3, seed 0. Without a Spec the seed is not known, and left
    out.
    """
    words = [
        describe_values(dynamics.weights),
        f"β = {format_number(dynamics.beta)}",
        f"n = {n}",
        f"d = {dynamics.weights.d}",
        describe_seed(spec),
    ]
    return ", ".join(word for word in words if word)


def describe_values(weights: Weights) -> str:
    """V in a few words: V = I, V = diag(1, 0.5), its rows, its eigenvalues, or where it is from. ΣV
    of several heads.
    """
    heads, d = weights.heads, weights.d
    if heads > 1:
        V = _common_matrix(weights)
        many = f"{heads} heads"
        words = "" if V is None else _matrix_words(V, "Vₕ")
        return f"{many}, {words}" if words else f"{many} with Vₕ {d} × {d}{_source_words(weights)}"
    words = (
        ""
        if d > LARGEST_LOOK or weights.is_factored and d > MOST_EIGENVALUES
        else _matrix_words(weights.full_V[0], "V")
    )
    return words or f"V {d} × {d}{_source_words(weights)}"


def _common_matrix(weights: Weights) -> np.ndarray | None:
    """The value matrix of all heads, None where they differ."""
    if weights.is_factored or weights.d > LARGEST_LOOK:
        return None
    V = weights.full_V
    return V[0] if (V == V[0]).all() else None


def _matrix_words(V: np.ndarray, name: str) -> str:
    """The words for a matrix (d, d) that are short enough for a title, or ""."""
    d = len(V)
    V = np.where(
        np.abs(V) > 1e-12 * np.abs(V).max(), V, 0.0
    )  # what is left of rounding is not written
    diagonal = np.diag(V)
    if not (V - np.diag(diagonal)).any():
        if (diagonal == diagonal[0]).all():
            factor = format_number(diagonal[0])
            unit = "" if d == 1 or factor == "0" else "I"
            return (
                f"{name} ="
                f" {factor[:-1] + unit if unit and factor in ('1', '−1') else f'{factor} {unit}'.strip()}"
            )
        if d <= MOST_DIAGONAL:
            return f"{name} = diag({', '.join(map(format_number, diagonal))})"
    if d == 2:
        return f"{name} = [{'; '.join(' '.join(map(format_number, row)) for row in V)}]"
    if d <= MOST_EIGENVALUES:
        return f"{name} with eigenvalues {', '.join(_eigenvalue_words(V))}"
    return ""


def _eigenvalue_words(V: np.ndarray) -> list[str]:
    """The eigenvalues of a matrix, the largest real part first, one of each pair."""
    values = sorted(np.linalg.eigvals(V), key=lambda value: (-value.real, -value.imag))
    return [
        (
            format_number(value.real)
            if value.imag == 0
            else f"{format_number(value.real)} ± {format_number(value.imag)}i"
        )
        for value in values
        if value.imag >= 0
    ]


def _source_words(weights: Weights) -> str:
    """Where weights are from, in brackets: the name of a family, or what their maker says."""
    source = weights.source.partition("(")[0].strip()
    return (
        ""
        if source in ("given", "") or len(source) > LONGEST_SOURCE
        else f" ({escape_words(source)})"
    )


def describe_seed(spec: Spec | None) -> str:
    """The words seed 0, or seeds 0 (tokens), 3 (weights); "" without a Spec, and where nothing is
    drawn.
    """
    if spec is None:
        return ""
    seeds = {"tokens": _start_seed(spec), "weights": _weights_seed(spec)}
    known = {what: seed for what, seed in seeds.items() if seed is not None}
    if not known:
        return ""
    if len(set(known.values())) == 1:
        return f"seed\u00a0{next(iter(known.values()))}"
    return "seeds " + ", ".join(f"{seed}\u00a0({what})" for what, seed in known.items())


def _start_seed(spec: Spec) -> int | None:
    """The seed of the first tokens; None where a law has no chance in it."""
    law = spec.start.get("law")
    is_drawn = law != "given" and not spec.start.get("equally_spaced", False)
    if law == "text":  # only a piece of it may be drawn
        is_drawn = "n" in spec.start and "piece" not in spec.start
    return _whole(spec.start.get("rng", 0)) if is_drawn else None


def _weights_seed(spec: Spec) -> int | None:
    """The seed of the weights; None for a family that draws nothing."""
    name = spec.weights.get("family")
    if not isinstance(name, str) or name not in weights_families:
        return None
    if "rng" not in inspect.signature(weights_families[name]).parameters:
        return None
    return _whole(spec.weights.get("rng", 0)) if spec.weights.get("basis") != "identity" else None


def _whole(seed: object) -> int | None:
    """The seed, None where a file holds something else."""
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def format_number(value: float, digits: int = 3) -> str:
    """A number with few digits and a true minus sign."""
    return f"{float(value):.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")


def join_parts(parts: Sequence[str]) -> str:
    """The parts of a headline, those that are there, with a dot between them."""
    return " · ".join(part for part in parts if part)
