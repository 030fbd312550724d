"""The two kinds of claims: about all times of a run, and about its limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.theory.evidence import FOREIGN, RESOLUTION, Evidence, error_of_parts, resolution_of
from attnlab.theory.sensitivity import decisive
from attnlab.types import Limit
from attnlab.verdicts import Measured


def all_times(
    evidence: Evidence,
    worst: float,
    *,
    resolution: float,
    error: float,
    what: str,
    details: Mapping[str, Any] | None = None,
) -> Measured:
    """A claim that `worst`, the largest violation over the saved times, is not positive."""
    run = evidence.run
    text = f"{what}, over {len(run.times)} saved times up to t = {evidence.t_end:.4g}."
    if len(run.times) < 2:
        return Measured(
            np.nan,
            0.0,
            np.nan,
            resolution,
            text,
            needs="a run with at least two saved times would decide",
        )
    return Measured(worst, 0.0, error, resolution, text, details=details or {})


def each_time(
    evidence: Evidence,
    lengths: np.ndarray,
    errors: np.ndarray,
    ranges: np.ndarray,
    *,
    what: str,
    details: Mapping[str, Any] | None = None,
) -> Measured:
    """A claim that none of `lengths` (T - 1,) or (T - 1, m), each a violation, is positive; each
    has its error and range.

    A length is judged in units of its own range. It is seen where its error is at most RESOLUTION
    of that. The claim rests on what is seen: of each of the m quantities half of its times. A range
    of 0 has nothing to see.
    """
    text = f"{what}, over {len(evidence.run.times)} saved times up to t = {evidence.t_end:.4g}"
    lengths, errors, ranges = (
        np.reshape(array, (len(lengths), -1)) for array in (lengths, errors, ranges)
    )
    wide = ranges > 0  # (T - 1, m)
    if not wide.any():
        return Measured(
            float(lengths.max(initial=0.0)),
            0.0,
            0.0,
            RESOLUTION,
            f"{text}: nothing moves.",
            details=details or {},
        )
    values, off = lengths[wide] / ranges[wide], errors[wide] / ranges[wide]
    is_seen = off <= RESOLUTION
    at = decisive(values, off, 0.0, is_seen)
    is_hidden = np.zeros(wide.shape, dtype=bool)
    is_hidden[wide] = ~is_seen
    # a narrow quantity beside a wide one must be seen too
    covered = float((1.0 - is_hidden.sum(axis=0) / np.maximum(wide.sum(axis=0), 1)).min())
    return Measured(
        float(values[at]),
        0.0,
        float(off[at]),
        RESOLUTION,
        f"{text}, of each at least {covered:.0%} seen.",
        is_reached=covered >= 0.5,
        needs=(
            f"one of the lengths is hidden by the error of the run at {1.0 - covered:.0%} of the"
            f" times: {evidence.finer_words}"
        ),
        details={**(details or {}), "seen": covered},
    )


def uncertified(limit: Limit) -> str:
    """Why there is no certified limit, and what would decide."""
    ended_by = next((name for name in ("work", "budget") if f"({name})" in limit.reason), None)
    more = f"{ended_by}=N with a larger N may decide" if ended_by else "no longer run would decide"
    return f"no certified limit: {limit.reason.rstrip('.')}; {more}"


def at_infinity(
    evidence: Evidence,
    worst: float,
    *,
    error: float,
    what: str,
    rate: float,
    details: Mapping[str, Any] | None = None,
    is_coordinate: np.ndarray | None = None,
) -> Measured:
    """A claim about the limit: `worst`, measured on the certified limit, is not positive; and the
    run goes there.

    Asked of the limit: that it is certified, and `worst`. Asked of the run: that at its end it is
    where the flow from its own start must be at that time (else its data are not those of the
    equation: CONTRADICTED), and that this is within 1 % of the limit (else UNDECIDED, with the time
    that is needed). rate: the eigenvalue that governs the approach. is_coordinate (k,): the
    coordinates of F that the claim is about, all where left out.
    """
    limit = evidence.limit
    if not limit.certified:
        return Measured(
            np.nan, 0.0, np.nan, np.nan, "No certified limit.", needs=uncertified(limit)
        )
    which = np.ones(limit.points.shape[1], bool) if is_coordinate is None else is_coordinate
    parts = evidence.parts_in_F[..., which]  # (T, n, k)
    at = int(np.searchsorted(limit.times, evidence.run.times[-1]))
    here, there = limit.path[at][:, which], limit.points[:, which]
    resolution = resolution_of(evidence, there)
    doubt = error_of_parts(evidence, parts, rate) + limit.error + 1e-9 * evidence.scale
    departure = float(np.abs(parts[-1] - here).max(initial=0.0))  # NaN: the limit holds no path
    distances = np.abs(parts - there).max(axis=(1, 2), initial=0.0)  # (T,)
    distance = float(distances[-1])
    text = (
        f"{what}; limit certified ({limit.grade}, error {limit.error:.2g}) at t = {limit.t:.4g};"
        f" the run ends at t = {evidence.t_end:.4g}, {distance:.2g} from it"
    )
    known = (
        f" and {departure:.2g} from where the flow must be then." if departure == departure else "."
    )
    more = {
        "limits": limit.count,
        "distance_to_limit": distance,
        "departure_from_flow": departure,
        **(details or {}),
    }
    if worst > max(error, limit.error):
        # what the limit itself breaks is broken, wherever rounding drives the run
        return Measured(worst, 0.0, max(error, limit.error), resolution, text + known, details=more)
    if limit.stats.get("condition") == np.inf and distance > max(
        2.0 * float(distances.min()), resolution
    ):
        # held by an exact symmetry only: perturbations grow like exp(c e^{2t}), a run and its finer
        # copy may fall to the same side, and a departure is what double precision must show, not
        # data of another equation
        best = float(evidence.run.times[int(np.argmin(distances))])
        return Measured(
            worst,
            0.0,
            np.nan,
            resolution,
            text + known,
            details=more,
            needs=(
                "the limit of these data is unstable, held by their exact symmetry only, and"
                f" rounding has driven the run away from it; a shorter run, t_end = {best:.3g},"
                " would decide"
            ),
        )
    if departure > FOREIGN * doubt + resolution * 1e-3:
        # data that are not where the equation takes its own start: whatever they do is no instance
        # of the claim
        return Measured(
            max(worst, departure),
            0.0,
            min(error, FOREIGN * doubt),
            resolution,
            text + known,
            details=more,
        )
    if limit.error > resolution:
        return Measured(
            np.nan,
            0.0,
            np.nan,
            resolution,
            text + known,
            details=more,
            needs=(
                f"the certified limit is known to within {limit.error:.2g} only, and"
                f" {resolution:.2g} is needed; no run would decide, check with more work might"
            ),
        )
    needed = (
        evidence.t_end + math.log(max(distance / resolution, 1.0)) / rate if rate > 0 else math.inf
    )
    advice = evidence.finer_words if doubt > resolution else evidence.longer_words(1.05 * needed)
    return Measured(
        worst,
        0.0,
        max(error, limit.error),
        resolution,
        text + known,
        details=more,
        is_reached=distance <= resolution >= doubt,
        needs=(
            f"at the end of the run the tokens are {distance:.2g} (within {doubt:.1g}) from their"
            f" limits, and {resolution:.2g} is asked for; {advice}"
        ),
    )
