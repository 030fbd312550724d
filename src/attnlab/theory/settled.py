"""Claims about t = infinity where no certificate can be had: a run that has come to rest may support one, never refute it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attnlab.theory.evidence import FOREIGN, Evidence
from attnlab.verdicts import Measured

EARLIER = 0.8
"""A run has settled when its tokens at this part of its length and at its end agree within the resolution."""


def settled(
    evidence: Evidence, followed: Callable[[int], np.ndarray], worst: float, *, resolution: float, error: float, what: str,
    rate: float, why: str, details: Mapping[str, Any] | None = None,
) -> Measured:
    """A claim that `worst`, measured at the end of the run, is not positive; and the run is one of the equation, and at rest.

    followed(i): what must have come to rest, at saved time number i, in the units of the resolution.
    why: what stands in the way of a certificate.
    A claim that fails on a run at rest is left undecided: a plateau that is left later looks the same.
    """
    run = evidence.run
    claimed, actual = evidence.error, evidence.departure
    before = int(np.argmin(np.abs(run.times - (run.times[0] + EARLIER * (run.times[-1] - run.times[0])))))
    text = f"No certificate ({why}). At t = {evidence.t_end:.4g}: {what}"
    more = {"error_claimed": claimed, "departure_from_flow": actual, **(details or {})}
    if actual > FOREIGN * claimed + 1e-5:
        words = f"{text}; the data depart by {actual:.2g} from the flow of their own start."
        return Measured(max(worst, actual), 0.0, FOREIGN * claimed + 1e-5, resolution, words, details=more)
    if not error < math.inf:
        needs = f"the error of the run is as large as its tokens: {evidence.finer_words}"
        return Measured(np.nan, 0.0, np.nan, resolution, text + ".", needs=needs, details=more)
    if before in (0, len(run.times) - 1):
        needs = f"a saved time at {EARLIER} of the length would decide whether the run has settled"
        return Measured(np.nan, 0.0, np.nan, resolution, text + ".", needs=needs, details=more)
    moved = float(np.abs(followed(-1) - followed(before)).max(initial=0.0))
    more["moved"] = moved
    text += f"; since t = {run.times[before]:.4g} the tokens moved by {moved:.2g}"
    # a motion that dies like e^{-rate t} has this much ahead of it: a run too short for that to show has not settled
    ahead = moved / min(math.expm1(min(rate * float(run.times[-1] - run.times[before]), 1.0)), 1.0) if moved > 0 else 0.0
    if ahead > resolution:
        longer = evidence.t_end + math.log(ahead / resolution) / rate if rate > 0 else math.inf
        needs = f"the run has not settled: it still moves by {moved:.2g}; {evidence.longer_words(1.05 * longer)}"
        return Measured(np.nan, 0.0, np.nan, resolution, text + ".", needs=needs, details=more)
    if worst > error:
        needs = f"the run has settled where the claim fails, by {worst:.2g}; a plateau that is left later looks the same"
        return Measured(np.nan, 0.0, np.nan, resolution, text + ".", needs=needs, details={**more, "worst": worst})
    return Measured(worst, 0.0, error, resolution, text + ": a settled run.", details=more)
