"""Find the theorem that applies to the matrices of a head, or the hypothesis that fails, from the
numbers of the head.

Only hypotheses about Q, K and V are judged. A trained layer also has other heads, a feed-forward
part, norms, biases and perhaps a causal mask. This is the same for all its heads, and a reader who
quotes the theorem must say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlab.models.studies.head_numbers import HeadNumbers
from attnlab.theory.hypotheses import CLEAR, EXACT, positive, small
from attnlab.theory.verbs import predict
from attnlab.types import Weights
from attnlab.verdicts import Hypothesis

OTHERS = ("polytope", "polytope_times_subspace", "collapse_to_origin")
"""The theorems that need Q^T K positive definite. A head that is narrower than the stream cannot
satisfy them.
"""

VERDICTS = ("good triple", "positive", "negative", "complex", "zero")
"""The kinds of leading eigenvalue: of a good triple; positive but not simple, or with a score that
is not positive; and so on.
"""


def is_real(head: HeadNumbers) -> bool:
    """Whether the leading eigenvalue is real, up to 1e-8 of its modulus."""
    return abs(head.lambda1.imag) <= CLEAR * abs(head.lambda1)


def is_positive(head: HeadNumbers) -> bool:
    """Whether the leading eigenvalue is real and positive."""
    return is_real(head) and head.lambda1.real > 0


def is_simple(head: HeadNumbers) -> bool:
    """Whether the leading eigenvalue is simple and alone in modulus, clearly beyond rounding; one
    of a pair is not.
    """
    return head.gap > max(CLEAR, head.resolution)


def good_triple(head: HeadNumbers) -> Iterator[Hypothesis]:
    """Yield the hypotheses of Definition 4.1, as `theory.hypotheses.good_triple` does for
    weights.
    """
    size = abs(head.lambda1) or np.inf
    yield small("the leading eigenvalue of V is real", abs(head.lambda1.imag) / size, CLEAR)
    yield positive("the leading eigenvalue of V is positive", head.lambda1.real / size)
    yield positive(
        "the leading eigenvalue of V is simple and dominant in modulus",
        head.gap,
        max(CLEAR, head.resolution),
        EXACT,
    )
    yield positive("<Q phi_1, K phi_1> > 0", head.score)


def verdict(head: HeadNumbers) -> str:
    """Return one of VERDICTS."""
    if head.lambda1 == 0:
        return "zero"
    if not is_real(head):
        return "complex"
    if not is_positive(head):
        return "negative"
    return "good triple" if all(one.holds for one in good_triple(head)) else "positive"


def theorem_of(head: HeadNumbers, weights: Weights) -> tuple[str, str]:
    """Return (the theorem that applies or "none", the first failing hypothesis of
    three_hyperplanes, the nearest theorem).
    """
    hypotheses = list(good_triple(head))
    if all(one.holds for one in hypotheses):
        return "three_hyperplanes", ""
    if head.positive == weights.d:
        for one in predict(weights, names=OTHERS):
            if one.applies:
                return one.theorem, ""
    unmet = next(one for one in hypotheses if not one.holds)
    return "none", unmet.asked if unmet.holds is False else f"{unmet.says}: {unmet.note}"


def short_reason(row: Any) -> str:
    """Return in a word or two why no theorem applies to a head, "-" if one does; `why_not` has the
    sentence.

    row : of a table of `spectra`
    """
    if row.applies != "none":
        return "-"
    if row.verdict in ("zero", "complex", "negative"):
        return {"zero": "V = 0", "complex": "not real", "negative": "not positive"}[row.verdict]
    return "score not positive" if row.is_simple else "not simple"
