"""Hypotheses that several statements share, each with the number behind it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.analysis.spectra import (
    good_triple_margins,
    identity_margins,
    paranormal_margins,
    spd_margins,
)
from attnlab.axes.together import plain_axes
from attnlab.types import Dynamics
from attnlab.verdicts import Hypothesis

NAN = float("nan")
EXACT = 1e-12
"""Up to this relative distance, the rounding of its entries, a matrix counts as having a
property.
"""

CLEAR = 1e-8
"""Gaps and margins below this, relative to the largest eigenvalue, are not distinguishable from
0.
"""


def fact(says: str, holds: bool) -> Hypothesis:
    """Return a hypothesis that holds or not, without a number."""
    return Hypothesis(says, NAN, "", holds)


def setting(
    dynamics: Dynamics, *, any_mask: bool = False, any_heads: bool = False, any_clock: bool = False
) -> Iterator[Hypothesis]:
    """Yield the hypotheses of the paper: softmax in R^d, one head, no mask, continuous time, no
    feed-forward part.
    """
    yield fact("softmax attention", dynamics.kernel.is_softmax and dynamics.scores.is_dot)
    yield moved_by_values(dynamics)
    yield fact("no feed-forward part", dynamics.feedforward.is_none)
    if not any_clock:
        yield fact("continuous time", not dynamics.is_layers)
    if not any_mask:
        yield fact("every token sees all", dynamics.mask.sees_all)
    if not any_heads:
        yield fact("one head", dynamics.weights.heads == 1)


def moved_by_values(dynamics: Dynamics) -> Hypothesis:
    """Return the hypothesis that sum_j P_ij V x_j itself moves the tokens, in R^d. It names the
    axis that fails.
    """
    plain = plain_axes(dynamics)
    unusual = [
        f'{name} "{getattr(dynamics, name).name}"'
        for name in plain
        if name != "scores" and not plain[name]
    ]
    if dynamics.geometry.is_linear and unusual:
        return fact(f"the plain equation in R^d, without {', '.join(unusual)}", False)
    return fact("tokens in R^d", dynamics.is_value_linear)


def has_averages(dynamics: Dynamics) -> bool:
    """Whether attention takes averages: weights that are not negative and sum to 1."""
    return bool(dynamics.kernel.rows_sum_to_one and not dynamics.kernel.may_be_negative)


def small(says: str, value: float, allowed: float = EXACT) -> Hypothesis:
    """Return the hypothesis value <= allowed. It is open between allowed and CLEAR."""
    holds = True if value <= allowed else None if value <= CLEAR else False
    note = (
        f"{value:.1e} may be 0 or a true difference; at most {allowed:g} or more than {CLEAR:g}"
        " would decide"
    )
    return Hypothesis(says, value, f"<= {allowed:g}", holds, note if holds is None else "")


def positive(says: str, value: float, resolution: float = CLEAR, zero: float = 0.0) -> Hypothesis:
    """Return the hypothesis value > 0. Up to `zero` it counts as 0; between that and the resolution
    it is open.
    """
    holds = (
        True if value > resolution else None if value > zero and np.isfinite(resolution) else False
    )
    note = (
        f"{value:.1e} may be 0; a value above the resolution, {resolution:.1e}, would decide"
        if holds is None
        else ""
    )
    return Hypothesis(says, value, "> 0", holds, note)


def positive_multiple_of_identity(dynamics: Dynamics) -> Iterator[Hypothesis]:
    """Yield the hypothesis V = c I, c > 0, which is V = I with the clock ct."""
    if dynamics.weights.heads == 1:
        margins = identity_margins(dynamics.weights)
        yield small("V is a multiple of the identity", margins["distance"])
        yield positive("V = cI with c > 0", margins["factor"], 0.0)


def spd_scores(dynamics: Dynamics) -> Iterator[Hypothesis]:
    """Yield the hypothesis that beta Q^T K is symmetric and positive definite."""
    if dynamics.weights.heads == 1:
        margins, beta = spd_margins(dynamics.weights), dynamics.beta
        yield small("Q^T K is symmetric", margins["asymmetry"], 1e-10)
        least = margins["least"] if beta > 0 else min(beta, 0.0)
        yield positive("beta Q^T K is positive definite", least, 1e-10)


def good_triple(dynamics: Dynamics) -> Iterator[Hypothesis]:
    """Yield Definition 4.1: lambda_1 is real, positive, simple and dominant, and <Q phi_1, K phi_1>
    > 0.
    """
    if dynamics.weights.heads == 1:
        margins = good_triple_margins(dynamics.weights)
        yield small("the leading eigenvalue of V is real", margins["imaginary"], CLEAR)
        yield positive("the leading eigenvalue of V is positive", margins["real"])
        resolution = max(CLEAR, margins["resolution"])
        yield positive(
            "the leading eigenvalue of V is simple and dominant in modulus",
            margins["gap"],
            resolution,
            EXACT,
        )
        yield positive("<Q phi_1, K phi_1> > 0", float(np.sign(dynamics.beta)) * margins["score"])


def paranormal(dynamics: Dynamics) -> Iterator[Hypothesis]:
    """Yield Definition 5.1: V = lambda Id on F, lambda > 0, and a smaller spectral radius on G."""
    if dynamics.weights.heads == 1:
        margins = paranormal_margins(dynamics.weights)
        yield small("the leading eigenvalue of V is real", margins["imaginary"], CLEAR)
        yield positive("the leading eigenvalue of V is positive", margins["real"])
        yield small("V is a multiple of the identity on F", margins["defect"], CLEAR)
        yield positive(
            "the spectral radius on G is smaller",
            margins["gap"],
            max(CLEAR, margins["resolution"]),
            EXACT,
        )


def distinct(x0: np.ndarray | None) -> Hypothesis:
    """Return the hypothesis that the first tokens are pairwise distinct."""
    says = "first tokens are pairwise distinct"
    if x0 is None:
        return Hypothesis(says, NAN, "", None, "first tokens were not given")
    return fact(says, len(np.unique(x0, axis=0)) == len(x0))
