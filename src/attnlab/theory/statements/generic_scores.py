"""Do polytopes persist where Q^T K is any matrix? V = c I, or V = lambda Id on F, with no sign or
symmetry of the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.spectra import leading_splitting, spd_margins
from attnlab.theory import theorems
from attnlab.theory.claims import at_infinity
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import paranormal, setting
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.theory.statements.polytope_times_subspace import (
    from_boundary,
    limits_in_F,
    settled_in_F,
    too_large,
)
from attnlab.types import Dynamics
from attnlab.verdicts import Hypothesis, Measured, Theorem

GENERIC = np.array([[0.7, -0.4], [0.2, 0.6]])
"""Scores that are not symmetric, with a positive definite symmetric part."""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """V = lambda Id on F (V = c I: F is everything); Q^T K is not 0, which is all that can be asked
    of one generic matrix.
    """
    yield from setting(dynamics)
    yield from paranormal(dynamics)
    if dynamics.weights.heads == 1:
        size = abs(dynamics.beta) * float(np.linalg.norm(dynamics.weights.M[0]))
        yield Hypothesis("beta Q^T K is not 0", size, "> 0", size > 0.0)


def sign_class(dynamics: Dynamics, tolerance: float = 1e-10) -> dict[str, Any]:
    """The signs of the symmetric part of beta Q^T K, whether it is symmetric at all, and whether a
    theorem covers it.
    """
    M = dynamics.beta * dynamics.weights.M[0]
    values = np.linalg.eigvalsh(0.5 * (M + M.T))
    least = tolerance * np.abs(values).max(initial=0.0)
    above, below = int((values > least).sum()), int((values < -least).sum())
    word = (
        "indefinite"
        if above and below
        else "positive"
        if above
        else "negative"
        if below
        else "zero"
    )
    if word in ("positive", "negative"):
        word += " definite" if above + below == len(values) else " semidefinite"
    is_symmetric = spd_margins(dynamics.weights)["asymmetry"] <= tolerance
    return {
        "symmetric_part": word,
        "eigenvalues_of_symmetric_part": values,
        "is_symmetric": is_symmetric,
        "is_a_theorem": is_symmetric and word == "positive definite",
    }


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The conjecture, with the class of the scores."""
    rate, parts = leading_splitting(dynamics.weights)
    signs = sign_class(dynamics)
    words = (
        f"The part of z_i in F, dimension {parts.F.shape[1]}, tends to the boundary of a polytope"
        f" or to 0; symmetric part of Q^T K: {signs['symmetric_part']}"
        + (", a theorem here" if signs["is_a_theorem"] else ", a conjecture here")
    )
    return words + ".", {"rate": rate, "F": parts.F, "G": parts.G, **signs}


def measure(evidence: Evidence) -> Measured:
    """How far the limits in F are from the boundary of their hull, or 0: of the certified limit,
    else of a settled run.
    """
    limit, details = evidence.limit, sign_class(evidence.run.dynamics)
    if not limit.certified:
        return settled_in_F(
            evidence, lambda worst, numbers: _words(worst, numbers, details), details
        )
    found = limits_in_F(limit)
    refused = too_large(found.points.shape[1])
    if refused is not None:
        return refused
    worst, numbers = from_boundary(found.points)
    return at_infinity(
        evidence,
        worst,
        error=2.0 * found.error + 1e-9 * evidence.scale,
        rate=found.rate,
        is_coordinate=found.is_coordinate,
        what=_words(worst, numbers, details),
        details={**details, **numbers},
    )


def _words(worst: float, numbers: Mapping[str, Any], signs: Mapping[str, Any]) -> str:
    trivial = numbers["dimension_of_polytope"] < numbers["dimension_of_F"]
    return (
        f"every limit in F is within {worst:.2g} of the boundary of the polytope of"
        f" {numbers['vertices']} vertices, or of 0"
        + (", trivially: it has no inside in F" if trivial else "")
        + f"; symmetric part of Q^T K {signs['symmetric_part']}"
    )


theorems.register("generic_scores")(
    Theorem(
        name="generic_scores",
        kind="conjecture",
        statement=(
            "For V = c I, c > 0, or V = lambda Id on F with a smaller spectral radius on G, and"
            " generic Q^T K, not symmetric or definite, there is a polytope in F such that the part"
            " in F of every z_i(t) tends to its boundary in F or to 0."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 12, open"
            " problem on generic Q^T K"
        ),
        errata=(
            "Generic means all matrices but a null set, which no single matrix can be tested for;"
            " only Q^T K = 0 is excluded. Where the limits span less than F the conclusion is"
            " trivial, and the evidence says so."
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen(np.eye(2), n=20, t_end=9.0, M=GENERIC),
        breaks=lambda: specimen([[1.0, -1.0], [1.0, 1.0]], n=6, t_end=2.0, M=GENERIC),
        short=lambda: specimen(np.eye(2), n=20, t_end=1.0, M=GENERIC),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
