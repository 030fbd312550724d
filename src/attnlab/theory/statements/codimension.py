"""The codimension conjecture, read literally: at most three limits in F, the span of the growing
directions of V.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.clusters import covering_count
from attnlab.analysis.spectra import (
    eigenvalues,
    good_triple_margins,
    unstable_dimension,
    unstable_splitting,
)
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import RESOLUTION, Evidence, error_of_parts, parts_in, resolution_of
from attnlab.theory.hypotheses import CLEAR, setting
from attnlab.theory.settled import settled
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.types import Dynamics, Weights
from attnlab.verdicts import Hypothesis, Measured, Theorem

MOST = 3
"""Parallel affine subspaces that the conjecture allows."""

LARGE = 512
"""Up to this dimension bases of F and G are given beforehand; beyond, their Schur forms take
minutes.
"""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """An eigenvalue with positive real part; nothing is asked of Q, K and the tokens."""
    yield from setting(dynamics)
    if dynamics.weights.heads == 1:
        k = unstable_dimension(dynamics.weights)
        yield Hypothesis("V has an eigenvalue with positive real part", float(k), ">= 1", k >= 1)


def is_simple(weights: Weights) -> bool:
    """Whether the leading eigenvalue is real, positive, simple and dominant: what the conjecture
    seems to mean.
    """
    margins = good_triple_margins(weights)
    return margins["imaginary"] <= CLEAR < margins["real"] and margins["gap"] > max(
        CLEAR, margins["resolution"]
    )


def slowest(weights: Weights) -> float:
    """The smallest positive real part of an eigenvalue: the rate of the last coordinate of F."""
    k = unstable_dimension(weights)
    return float(np.sort(eigenvalues(weights).real)[-k])


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The codimension and the direction of the subspaces."""
    weights = dynamics.weights
    k = unstable_dimension(weights)
    words = (
        f"The tokens approach at most three translates of G, dimension {weights.d - k}, codimension"
        f" k = {k}"
    )
    if not is_simple(weights):
        words += (
            ". The leading eigenvalue is not real, positive, simple and dominant, as the conjecture"
            " seems to mean; read literally it is false of some such V (V = I has polytopes)"
        )
    data: dict[str, Any] = {"k": k, "most": MOST, "rate": slowest(weights)}
    if weights.d <= LARGE:
        parts = unstable_splitting(weights)
        data["F"], data["G"] = parts.F, parts.G
    return words + ".", data


def measure(evidence: Evidence) -> Measured:
    """The number of different limits in F, against three."""
    limit, weights = evidence.limit, evidence.run.dynamics.weights
    details: dict[str, Any] = {
        "k": unstable_dimension(weights),
        "is_leading_simple": is_simple(weights),
    }
    if not limit.certified:
        projector = unstable_splitting(weights).projector
        z = parts_in(evidence.run, projector)
        resolution = resolution_of(evidence, z[-1])
        count = covering_count(z[-1], resolution)
        error = error_of_parts(evidence, z, slowest(weights))
        out = settled(
            evidence,
            lambda run: parts_in(run, projector),
            count - MOST,
            resolution=resolution,
            error=error,
            rate=slowest(weights),
            what=f"{count} points cover the parts in F to {RESOLUTION:.0%} of their range",
            why=limit.reason,
            largest=float(evidence.run.n - MOST),
            details={**details, "groups": count},
        )
    else:
        assert limit.count is not None
        details["are_data_symmetric"] = "exact symmetry" in limit.reason
        symmetric = ", of exactly symmetric data" if details["are_data_symmetric"] else ""
        out = at_infinity(
            evidence,
            float(limit.count - MOST),
            error=0.0,
            rate=slowest(weights),
            details=details,
            what=f"{limit.count} different limits in F, dimension {details['k']}{symmetric}",
        )
    return dataclasses.replace(
        out, value=out.value + MOST, bound=float(MOST), largest=out.largest + MOST
    )


theorems.register("codimension")(
    Theorem(
        name="codimension",
        kind="conjecture",
        statement=(
            "Let k >= 1 be the number of eigenvalues of V with positive real part. There are at"
            " most three parallel affine subspaces of codimension k, translates of the span G of"
            " the other directions, such that every z_i(t) approaches one of them."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 4,"
            " conjecture 4.3"
        ),
        errata=(
            "As carried it asks nothing of Q, K and the tokens, and read like that it is false: V ="
            " I has polytopes with any number of vertices; V = diag(1.2, 0.8) keeps the four tokens"
            " (+-1, 0), (0, +-1) on their axes, four limits; V = diag(1.2, 0.8, -0.5) with tokens"
            " symmetric in the first coordinate has four limiting lines. It is meant for a simple"
            " leading eigenvalue and generic tokens; the details say whether that is so."
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(np.diag([1.2, 0.8, -0.5]), t_end=9.0, rtol=1e-10),
        breaks=lambda: specimen(-np.eye(2), t_end=2.0),
        short=lambda: specimen(np.diag([1.2, 0.8, -0.5]), t_end=1.0),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
