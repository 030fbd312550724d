"""Limits that only an exact symmetry of the data holds: rounding drives any run away from them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from attnlab.theory.claims import at_infinity, projected
from attnlab.theory.evidence import Evidence
from attnlab.verdicts import Measured


def at_infinity_unless_lost(evidence: Evidence, worst: float, **options: Any) -> Measured:
    """at_infinity; but where the limit is unstable and the run moves away from it, nothing is decided instead of contradicted.

    Perturbations grow like exp(c e^{2t}) there, and a run and its finer twin may fall to the same side, so run.error is no
    bound: a departure is what double precision must show, not data of another equation.
    """
    limit, measured = evidence.limit, at_infinity(evidence, worst, **options)
    if not limit.certified or limit.stats.get("condition") != np.inf:
        return measured
    distances = [float(np.abs(projected(evidence, z) - limit.points).max()) for z in evidence.z]
    if distances[-1] <= max(2.0 * min(distances), measured.resolution):
        return measured
    best = float(evidence.run.times[int(np.argmin(distances))])
    return dataclasses.replace(
        measured, value=worst, error=np.nan,
        needs="the limit of these data is unstable, held by their exact symmetry only, and rounding has driven the run away from "
        f"it; a shorter run, t_end = {best:.3g}, would decide",
    )
