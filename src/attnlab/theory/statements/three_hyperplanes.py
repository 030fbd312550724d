"""Rescaled tokens approach at most three parallel hyperplanes when the leading eigenvalue of V is
real, positive and simple.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.spectra import Leading, leading
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import (
    Evidence,
    error_of_leading_parts,
    leading_parts,
    range_of,
    resolution_of,
)
from attnlab.theory.hypotheses import good_triple, setting
from attnlab.theory.settled import settled
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.types import Dynamics, Trajectory
from attnlab.verdicts import Hypothesis, Measured, Theorem


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """A good triple (Q, K, V); nothing is asked of the tokens."""
    yield from setting(dynamics)
    yield from good_triple(dynamics)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The direction of the hyperplanes, and bounds of their levels where x0 is known."""
    first = leading(dynamics.weights)
    words = (
        "phi*_1(z_i) tends to one of three values 0, a <= b: hyperplanes parallel to the kernel of"
        f" phi*_1, approached like e^(-{first.value.real:.4g} t)"
    )
    data: dict[str, Any] = {"rate": first.value.real, "normal": first.psi}
    if x0 is not None:
        values = x0 @ first.psi
        data["levels_between"] = (float(values.min()), float(values.max()))
        words += f"; {values.min():.4g} <= a <= b <= {values.max():.4g}"
        if values.min() > 0 or values.max() < 0:
            words += ", and since all start on one side there is only one"
            data["most"] = 1
    return words + ".", data


def measure(evidence: Evidence) -> Measured:
    """How far the limits of phi*_1(z_i) are from {0, min, max}, on the certified limit; else of a
    settled run.
    """
    limit, first = evidence.limit, leading(evidence.run.dynamics.weights)
    rate = float(first.value.real)
    if not limit.certified:
        return _settled(evidence, first)
    values = limit.limits @ first.psi  # (n,)
    off = from_levels(values)
    error = limit.error * float(np.abs(first.psi @ limit.basis).sum())
    levels = len(np.unique(np.round(values / max(np.abs(values).max(), 1e-300), 7)))
    size = max(float(np.abs(values).max()), 1e-300)
    along = np.abs(first.psi @ limit.basis) > 1e-9 * np.abs(first.psi @ limit.basis).max()
    return at_infinity(
        evidence,
        off - 1e-9 * size,
        error=error + 1e-9 * size,
        rate=rate,
        is_coordinate=along,
        what=(
            f"Every limit of phi*_1(z_i) is within {off:.2g} of 0, the smallest or the largest;"
            f" {levels} levels"
        ),
        details={"levels": levels, "smallest": float(values.min()), "largest": float(values.max())},
    )


def from_levels(values: np.ndarray) -> float:
    """The largest distance of values (n,) to the nearest of 0, the smallest and the largest."""
    return float(
        np.abs(values[:, None] - np.array([values.min(), values.max(), 0.0])).min(axis=1).max()
    )


def most_from_levels(values: np.ndarray) -> float:
    """The largest distance that n tokens of this range could have: half of it; one or two tokens
    are levels themselves.
    """
    return 0.5 * range_of(values) if len(values) > 2 else 0.0


def _settled(evidence: Evidence, first: Leading) -> Measured:
    """The same at the end of a run, where no limit is certified (V with a Jordan block, a tie in
    another coordinate).
    """
    rate = float(first.value.real)
    rows = first.psi[None]

    def follow(run: Trajectory) -> np.ndarray:
        return leading_parts(run, rows, rate)[..., 0]  # (T, n)

    values = follow(evidence.run)[-1]
    resolution, off = resolution_of(evidence, values), from_levels(values)
    return settled(
        evidence,
        follow,
        off - resolution,
        resolution=resolution,
        error=2.0 * error_of_leading_parts(evidence, rows, rate),
        rate=rate,
        what=f"every phi*_1(z_i) is within {off:.2g} of 0, the smallest or the largest",
        why=evidence.limit.reason,
        largest=most_from_levels(values) - resolution,
        details={
            "smallest": float(values.min()),
            "largest": float(values.max()),
            "levels": levels_of(values, resolution),
        },
    )


def levels_of(values: np.ndarray, resolution: float) -> int:
    """How many of the levels {0, the smallest, the largest} tokens are nearest to; levels closer
    than the resolution are one.
    """
    levels = np.unique(np.array([values.min(), values.max(), 0.0]))
    levels = levels[np.concatenate([[True], np.diff(levels) > resolution])]
    return len(np.unique(np.abs(values[:, None] - levels).argmin(axis=1)))


theorems.register("three_hyperplanes")(
    Theorem(
        name="three_hyperplanes",
        kind="theorem",
        statement=(
            "For a good triple (Q, K, V) and any first tokens there are at most three parallel"
            " hyperplanes such that the distance of every z_i(t) to one of them tends to 0. They"
            " are level sets of phi*_1, at levels in {0, a, b}."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 4, theorem 4.2"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen([[1.0, 0.3], [0.1, 0.4]], t_end=12.0),
        breaks=lambda: specimen(np.eye(2), t_end=4.0),
        short=lambda: specimen([[1.0, 0.3], [0.1, 0.4]], t_end=0.5),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
