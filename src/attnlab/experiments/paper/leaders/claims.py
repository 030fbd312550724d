"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.claims import of_verdicts
from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import computed, contradicted, shifted

from .experiment import REFERENCE_TIME, STEP, N, T

EDGE = 1e-4
"""The published picture draws an edge where a weight exceeds this; a matrix is called final when no
entry is farther from P*.
"""


def number_of(follows: np.ndarray) -> np.ndarray:
    """The number of leaders of each draw, from the leader of every token (seed, token)."""
    return np.array([len(set(row.tolist())) for row in follows])


def claims(data: Data) -> list[Claim]:
    """What the theorem says, what follows for leaders, and how far T = 10 is from the end."""
    run, limit, every = run_in(data), limit_in(data), data["many"]
    exact = every["is_exact"].values == 1
    ends, levels = every["follows_infinity"].values[exact], every["level"].values[exact]
    scale = np.abs(levels).max(axis=1, keepdims=True)
    lowest, highest = levels.min(axis=1, keepdims=True), levels.max(axis=1, keepdims=True)
    away = np.min([np.abs(levels), levels - lowest, highest - levels], axis=0)
    pairs = sum(
        len(set(row[level > 0].tolist())) > 1 or len(set(row[level < 0].tolist())) > 1
        for row, level in zip(ends, levels, strict=True)
    )
    early, off, leading = every["decided"].values <= T, every["off"].values, every["leading"].values
    ranks, counts = every["rank"].values, number_of(every["follows_infinity"].values)
    other = (every["follows_flow"].values != every["follows_infinity"].values).any(axis=1) | (
        ranks != counts
    )
    late = ~(off <= EDGE)
    euler = run_in(data, "euler")
    growth, modes = np.linalg.eigh(run.dynamics.weights.full_V[0])
    leader = int(limit.leaders[0])
    grown = euler.x[[-1, -11], leader] @ modes[:, -1]
    at = int(np.abs(run.times - REFERENCE_TIME).argmin())
    x_end = data["reference"]["x"].values
    slow = (
        np.median(leading[late]) / np.median(leading[~late])
        if late.any() and not late.all()
        else np.nan
    )
    return [
        Claim(
            text="The theorem of the three hyperplanes is supported by the run that is shown.",
            published="a theorem (section 4)",
            **of_verdicts(data["verdicts"], "three_hyperplanes"),
            because=(
                "1 is SUPPORTED; V is symmetric positive definite with a simple leading eigenvalue,"
                " and ⟨Mφ₁, φ₁⟩ > 0: a good triple"
            ),
        ),
        Claim(
            text=(
                "Over all draws the limits of φ₁(z) are 0, the smallest or the largest of them:"
                " largest distance, relative to the largest."
            ),
            measured=float((away / scale).max()),
            published="at most three hyperplanes",
            low=0,
            high=1e-6,
            because="Theorem 4.2; errors of certified limits are smaller",
        ),
        Claim(
            text=(
                "In the end there are one or two leaders: the largest number over all draws with a"
                " certified limit."
            ),
            measured=float(number_of(ends).max()),
            published="a few leaders; at most three limits (conjecture 4.3)",
            low=1,
            high=2,
            because=(
                "leaders that follow themselves move like e^{tV}; of two on one side of φ₁ = 0 the"
                " farther one gets the higher score from both, at the rate e^{2 λ₁ t}, so only one"
                " stays"
            ),
            differs=(
                "The theorem counts hyperplanes, not leaders, and allows three; for tokens drawn at"
                " random the third level, 0, is not hit."
            ),
        ),
        Claim(
            text=(
                "No two of them are on one side of the line φ₁ = 0: number of draws in which two"
                " are."
            ),
            measured=float(pairs),
            low=0,
            high=0,
            because="the same argument",
        ),
        Claim(
            text=(
                "A draw that is decided before T = 10 has its last leaders at T, and P has as many"
                " independent rows as leaders: exceptions."
            ),
            measured=float(np.sum(other & early & exact)),
            low=0,
            high=0,
            because="the certificate: no gap closes again, and all exceed 50",
        ),
        Claim(
            text=(
                "The published T = 10 is not always the end: share of draws with a weight farther"
                f" than {EDGE:g} from its limit."
            ),
            measured=float(late.mean()),
            published="no number; one draw shown",
            low=0.5 / len(off),
            high=float(1 - (early & exact).mean()),
            because=(
                "not more than the share of draws that are decided after T = 10, "
                "and not none: λ₁ has a density near 0"
            ),
            differs=(
                "Where λ₁ is small, the picture at T = 10 shows the leaders "
                "at that time, not those in the end."
            ),
        ),
        Claim(
            text=(
                "Those draws are the slow ones: median λ₁ of the draws that are not final over that"
                " of those that are."
            ),
            measured=float(slow),
            low=0,
            high=1,
            because="scores grow like e^{2 λ₁ t}",
        ),
        Claim(
            text=(
                "Euler's tokens are too slow: growth of a leader along φ₁ in the last unit of time,"
                " relative to (1 + λ₁ dt)^10, less 1."
            ),
            measured=float(abs(grown[0] / grown[1] / (1 + growth[-1] * STEP) ** 10 - 1)),
            published="Euler, dt = 0.1",
            low=0,
            high=1e-9,
            because=(
                "a leader attends to itself, so that x(t + dt) = (1 + dt V) x(t); the flow has"
                " e^{λ₁}"
            ),
            differs=(
                "The published scores are too small by a factor of e^{λ₁² dt T} at T; leaders come"
                " later, and are mostly the same."
            ),
        ),
        Claim(
            text=(
                "The flow agrees with SciPy's DOP853 at t = 2: largest difference of a coordinate,"
                " relative to the largest."
            ),
            measured=float(np.abs(run.x[at] - x_end).max() / np.abs(x_end).max()),
            low=0,
            high=1e-7,
            because="tolerances 1e-10 and 1e-12",
        ),
    ]


def _kicked(run: Any) -> Any:
    """Tokens grow a little faster than they do."""
    return run["states"] * (1 + 1e-3 * run["time"])


spoils = {
    "theorem contradicted": contradicted,
    "every token leads itself": computed("many", follows_infinity=lambda many: np.arange(N)),
    "tokens spread over many lines": computed(
        "many", level=lambda many: many["level"] * np.linspace(0.9, 1.1, N)
    ),
    "attention blurred": shifted("many", "off", 0.01),
    "fast and slow draws exchanged": computed("many", leading=lambda many: 1 / many["leading"]),
    "run kicked": computed("run", states=_kicked),
    "Euler kicked": computed("euler", states=_kicked),
}
