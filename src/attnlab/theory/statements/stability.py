"""Two nearby solutions separate at most exponentially, at a rate that is known from the tokens."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.spectra import score_norm, value_norm
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.hypotheses import setting
from attnlab.theory.sensitivity import Span, decisive, follow_paths, one_time, spans
from attnlab.theory.specimens import leap, random_tokens, specimen
from attnlab.types import Dynamics
from attnlab.verdicts import Hypothesis, Measured, Theorem

NUDGE = 1e-6
"""The distance of the second start, relative to the largest token."""

RESOLUTION = 0.1
"""The resolution in log(distance): 10 % of the envelope."""

MOST = 9.0
"""An envelope of NUDGE e^MOST, 1 % of the largest token, is the last that data can leave
visibly.
"""


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """Softmax attention in R^d in continuous time, with any heads and mask."""
    yield from setting(dynamics, any_mask=True, any_heads=True)


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The constant that holds at the start, where it is known."""
    words = (
        "Two solutions with first tokens at most delta apart are at most delta e^(C t) apart, in"
        " the largest token and in W_2"
    )
    if x0 is None:
        return words + ", with C from the largest token on [0, t].", {}
    R, weights = float(np.linalg.norm(x0, axis=1).max()), dynamics.weights
    norms = [
        (value_norm(weights, head), score_norm(weights, head)) for head in range(weights.heads)
    ]
    C = float(sum(v * (1.0 + 2.0 * abs(dynamics.beta) * m * R**2) for v, m in norms))
    return words + f"; C = |V| (1 + 2 beta |M| R^2) = {C:.4g} at the start, R = {R:.4g}.", {
        "rate": C,
        "radius": R,
    }


def measure(evidence: Evidence) -> Measured:
    """How far a nearby solution leaves the envelope of its piece of the run, in log(distance), at
    the worst piece.
    """
    run, rng = evidence.run, np.random.default_rng(0)
    if len(run.times) < 2:
        return one_time(0.0, RESOLUTION)
    judged = [(span, *_departure(evidence, span, rng)) for span in spans(evidence, paths=3)]
    values, errors, rates = (
        np.array([one[number] for one in judged], dtype=float) for number in (1, 2, 3)
    )
    seen = (errors <= RESOLUTION) & (rates <= MOST)
    lengths = np.array([one[0].length for one in judged])
    covered = float(lengths[seen].sum() / max(lengths.sum(), 1e-300))
    needs = (
        f"in {1.0 - covered:.0%} of the time the envelope is too wide for a decision; more saved"
        " times would decide"
    )
    if not np.isfinite(values - errors).any():
        return Measured(
            np.nan, 0.0, np.nan, RESOLUTION, "No piece of the run could be followed.", needs=needs
        )
    worst = decisive(values, errors, 0.0, seen)
    at = judged[worst][0]
    text = (
        f"The run beside solutions that start {NUDGE:g} of the largest token from it, on"
        f" {len(judged)} pieces up to t = {evidence.t_end:.4g}, {covered:.0%} of their time seen;"
        f" log(distance / envelope) at most {values[worst]:.3g}, from t = {run.times[at.first]:.4g}"
        f" to {run.times[at.last]:.4g}"
    )
    per_time = rates / lengths
    return Measured(
        float(values[worst]),
        0.0,
        float(errors[worst]),
        RESOLUTION,
        text + ".",
        needs=needs,
        is_reached=covered >= 0.5,
        details={
            "pieces": len(judged),
            "pieces_seen": int(seen.sum()),
            "time_seen": covered,
            "largest_rate": float(np.nanmax(per_time)),
            "smallest_rate": float(np.nanmin(per_time)),
            "log_envelope_of_the_run": float(np.nansum(rates)),
        },
    )


def _departure(
    evidence: Evidence, span: Span, rng: np.random.Generator
) -> tuple[float, float, float]:
    """(log(distance / envelope) at the end of the piece, its error, log(envelope / first
    distance)); NaN: not to be followed.
    """
    dynamics, (R, R_end), d = evidence.run.dynamics, span.sizes, evidence.run.d
    towards = rng.normal(size=span.start.shape)
    delta = NUDGE * R
    beside_start = span.start + delta * towards / np.linalg.norm(towards, axis=1, keepdims=True)
    followed = follow_paths(dynamics, (span.start, beside_start), span.length, span.saves)
    if followed is None:
        return math.nan, math.nan, math.nan
    allowed, (_, beside) = followed
    distance = float(np.linalg.norm(span.end - beside[-1], axis=1).max())
    # the run's own tokens are off at both ends, the first of them as much as the flow makes of it;
    # and both solutions by 1e-10
    off = (
        math.sqrt(d) * (evidence.error * (R_end * math.exp(-allowed) + R) + 1e-10 * R)
        if allowed < 600.0
        else math.inf
    )
    return math.log(max(distance, 1e-300) / delta) - allowed, math.log1p(off / delta), allowed


theorems.register("stability")(
    Theorem(
        name="stability",
        kind="estimate",
        statement=(
            "Two solutions stay together: W_2(mu_t, nu_t) <= e^{Ct} W_2(mu_0, nu_0) on [0, T], C ="
            " C(R, T). Checked for tokens, in the largest distance under the identity coupling"
            " (which W_2 is at most): between saved times it grows by at most the exponential of"
            " the integral of |V| (1 + beta |M^T x_i| E|a| + beta E|a||M a|), a the deviation of"
            " the token that i attends to from its mean; this is at most |V| (1 + 2 beta |M| R^2)."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 6, stability"
            " of the continuity equation"
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: specimen([[1.0, 0.3], [0.1, 0.4]], t_end=4.0),
        breaks=lambda: specimen(np.eye(2), t_end=2.0, kernel="hardmax"),
        short=lambda: specimen(
            [[1.0, 0.3], [0.1, 0.4]], t_end=4.0, stepper="euler", dt=0.1, frame="x"
        ),
        spoil=leap,
        nonsense=random_tokens,
        errata=(
            "The weak form of the continuity equation prints the measure at time t inside the time"
            " integral; it is the one at the running time s."
        ),
    )
)
