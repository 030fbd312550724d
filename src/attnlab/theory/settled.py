"""Claims about t = infinity without a certificate: a run that has come to rest may support one,
never refute it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attnlab.theory.evidence import FOREIGN, WALL, Evidence
from attnlab.types import Status, Trajectory
from attnlab.verdicts import Measured


def settled(
    evidence: Evidence,
    follow: Callable[[Trajectory], np.ndarray],
    worst: float,
    *,
    resolution: float,
    error: float,
    what: str,
    rate: float,
    why: str,
    largest: float,
    details: Mapping[str, Any] | None = None,
) -> Measured:
    """A claim that `worst`, measured at the end of the run, is not positive; and the run is one of
    the equation, and at rest.

    At rest: it moves by less than the resolution when it is continued to twice its time.
    follow(run): what must have come to rest, (T, ...), in the units of the resolution. largest: as
    of Measured. why: what stands in the way of a certificate. A claim that fails on a run at rest
    is left undecided: a plateau that is left later looks the same.
    """
    claimed, actual = evidence.error, evidence.departure
    text = f"No certificate ({why.rstrip('.')}). At t = {evidence.t_end:.4g}: {what}"
    more = {"error_claimed": claimed, "departure_from_flow": actual, **(details or {})}

    def undecided(needs: str, **numbers: float) -> Measured:
        return Measured(
            np.nan, 0.0, np.nan, resolution, text + ".", needs=needs, details=more | numbers
        )

    if actual > FOREIGN * claimed + 1e-5:
        words = f"{text}; the data depart by {actual:.2g} from the flow of their own start."
        return Measured(
            max(worst, actual), 0.0, FOREIGN * claimed + 1e-5, resolution, words, details=more
        )
    if not error < math.inf:
        return undecided(f"the error of the run is as large as its tokens: {evidence.finer_words}")
    moved, unknown = _move_later(evidence, follow)
    if unknown:
        return undecided(unknown)
    more["moved"] = moved
    text += f"; until twice that time the tokens move by {moved:.2g}"
    # a motion that dies like e^{-rate t} has this much ahead of it: a run too short for that to
    # show has not settled
    ahead = moved / min(math.expm1(min(rate * evidence.t_end, 1.0)), 1.0) if moved > 0 else 0.0
    if ahead > resolution:
        needed = evidence.t_end + math.log(ahead / resolution) / rate if rate > 0 else math.inf
        needs = (
            f"the run has not settled: continued to t = {2 * evidence.t_end:.4g} it moves by"
            f" {moved:.2g}"
        )
        return undecided(
            f"{needs}; {evidence.not_before_words(max(1.05 * needed, 1.5 * evidence.t_end))}"
        )
    if worst > error:
        needs = (
            f"the run has settled where the claim fails, by {worst:.2g}; a plateau that is left"
            " later looks the same"
        )
        return undecided(needs, worst=worst)
    return Measured(
        worst, 0.0, error, resolution, text + ": a settled run.", details=more, largest=largest
    )


def _move_later(
    evidence: Evidence, follow: Callable[[Trajectory], np.ndarray]
) -> tuple[float, str]:
    """(how far the run moves until twice its time, why that cannot be known)."""
    twice = 2 * evidence.t_end
    past = (
        f"whether the run has settled shows at twice its time, t = {twice:.4g}, which lies past the"
        " precision wall; no run decides, a certified limit could"
    )
    if evidence.growth * twice > WALL:
        return math.nan, past
    continued = evidence.continued
    if continued.status is Status.PAST_DOUBLE_PRECISION:
        return math.nan, past
    if continued.status is not Status.OK:
        return (
            math.nan,
            (
                f"the run could not be continued to twice its time, t = {twice:.4g}."
                f" {continued.status.value}"
            ),
        )
    values = follow(continued)[1:]  # the first saved time is 0
    return float(np.abs(values[1:] - values[0]).max(initial=0.0)), ""
