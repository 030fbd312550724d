"""With a ReLU after the attention, do the tokens still approach at most three parallel
hyperplanes?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.analysis.spectra import leading
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence, range_of, resolution_of
from attnlab.theory.hypotheses import fact, good_triple, setting
from attnlab.theory.settled import settled
from attnlab.theory.specimens import random_rest, shuffle_end, specimen
from attnlab.types import Dynamics, FeedForward, Trajectory
from attnlab.verdicts import Hypothesis, Measured, Theorem

MOST = 3
WHY = "with a feed-forward part the flow is not linear once leaders are fixed"


def hypotheses(dynamics: Dynamics, x0: np.ndarray | None) -> Iterator[Hypothesis]:
    """A good triple, sigma = ReLU, W = I, no bias."""
    yield from (one for one in setting(dynamics) if one.says != "no feed-forward part")
    part = dynamics.feedforward
    yield fact("a feed-forward part", part.acts_on_z)
    if isinstance(part, FeedForward):
        yield fact("sigma is ReLU", part.sigma == "relu")
        yield fact(
            "W is the identity",
            part.W is None or np.array_equal(part.W, np.eye(dynamics.weights.d)),
        )
        yield fact(
            "no bias",
            not any(bias is not None and np.any(bias) for bias in (part.bias, part.bias_outside)),
        )
    yield from good_triple(dynamics)


def normals(dynamics: Dynamics) -> dict[str, np.ndarray]:
    """The directions that the spectrum of V and the positive orthant single out: phi*_1 and the
    axes, unit vectors (d,).
    """
    psi = leading(dynamics.weights).psi
    found = {"phi*_1": psi / np.linalg.norm(psi)}
    if dynamics.weights.d > 1:
        found.update({f"axis {a}": row for a, row in enumerate(np.eye(dynamics.weights.d))})
    return found


def covering(values: np.ndarray, radius: float) -> np.ndarray:
    """The middles of the fewest intervals of that radius that cover the values (n,), ascending."""
    ordered, middles, first = np.unique(values), [], 0
    while first < len(ordered):
        last = max(
            int(np.searchsorted(ordered, ordered[first] + 2.0 * radius, side="right")) - 1, first
        )
        middles.append(0.5 * float(ordered[first] + ordered[last]))
        first = last + 1
    return np.array(middles)


def radius_of_three(values: np.ndarray) -> float:
    """The smallest radius at which three intervals cover the values (n,), by bisection."""
    if len(covering(values, 0.0)) <= MOST:
        return 0.0
    low, high = 0.0, 0.5 * float(np.ptp(values))
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if len(covering(values, middle)) <= MOST else (middle, high)
    return high


def predict(dynamics: Dynamics, x0: np.ndarray | None) -> tuple[str, Mapping[str, Any]]:
    """The directions that are tried."""
    words = (
        "The tokens z_i approach at most three parallel hyperplanes, with normal phi*_1 or an axis;"
        " no coordinate of any z_i ever decreases. On the line (d = 1) it is false of four negative"
        " tokens, which the ReLU stops where they are"
    )
    return words + ".", {"normals": normals(dynamics), "most": MOST}


def measure(evidence: Evidence) -> Measured:
    """How far the tokens are from three hyperplanes at the end of the run, for the best of the
    normals; d = 1: also a proof.
    """
    dynamics, z = evidence.run.dynamics, evidence.z
    error = evidence.error * float(np.abs(z[-1]).max(initial=0.0))
    stopped = stopped_tokens(evidence) if dynamics.weights.d == 1 else 0
    if stopped > MOST:
        text = (
            f"{stopped} different tokens on the line are stopped for ever from t ="
            f" {evidence.t_end:.4g} on."
        )
        return Measured(
            float(stopped),
            float(MOST),
            0.0,
            resolution_of(evidence, z[-1]),
            text,
            details={"stopped": stopped},
        )
    directions = normals(dynamics)
    along = {name: z[-1] @ normal for name, normal in directions.items()}
    distance = {name: radius_of_three(values) for name, values in along.items()}
    resolutions = {name: resolution_of(evidence, values) for name, values in along.items()}

    def judge(name: str) -> Measured:
        normal, radius, resolution = directions[name], distance[name], resolutions[name]
        levels = covering(along[name], max(radius * (1.0 + 1e-9), resolution))

        def follow(run: Trajectory) -> np.ndarray:
            return run.rescaled @ normal

        return settled(
            evidence,
            follow,
            radius - resolution,
            resolution=resolution,
            why=WHY,
            # four tokens, evenly spread over the range, are a sixth of it from the nearest three
            # hyperplanes
            largest=(range_of(along[name]) / 6.0 if evidence.run.n > MOST else 0.0) - resolution,
            rate=float(leading(dynamics.weights).value.real),
            error=error * float(np.abs(normal).sum()),
            what=(
                f"the tokens are within {radius:.2g} of three hyperplanes, {len(levels)} at the"
                f" resolution, with normal {name}"
            ),
            details={"normal": name, "levels": levels, "distance": distance},
        )

    # the best of the normals along which the tokens are at rest: along others they may run away for
    # ever
    for name in sorted(distance, key=lambda name: distance[name] / resolutions[name]):
        found = judge(name)
        if np.isfinite(found.value):
            return found
    return judge(min(distance, key=lambda name: distance[name]))


def stopped_tokens(evidence: Evidence) -> int:
    """How many different limits are certain, d = 1: tokens below 0 that attend to the smallest, and
    the largest token.

    No z decreases, the largest never moves. A token z_i < 0 listens to the smallest, z_m: others
    that would pull it up are above it and weigh less than exp(-E e^{2 V (t - T)}), E = c e^{2 V T}
    |z_i| (z_i - z_m). With a fourth of E, for what z_i and z_m move, all its way from T on is at
    most n width e^{-E / 4} / (E / 2): nothing from E = 160 on.
    """
    run = evidence.run
    z, t = evidence.z[-1, :, 0], evidence.t_end
    c, V = (
        run.dynamics.beta * float(run.dynamics.weights.M[0, 0, 0]),
        float(run.dynamics.weights.full_V[0, 0, 0]),
    )
    doubt = 4.0 * evidence.error * float(np.abs(z).max())
    levels = np.unique(z)
    levels = levels[np.concatenate([[True], np.diff(levels) > doubt])]
    if len(levels) < 2 or not doubt < np.inf:
        return 0
    gaps = levels - levels[0]
    gaps[0] = gaps[1]
    least = max(
        doubt, 1e-9 * float(np.ptp(levels))
    )  # far above what they move, so that half of it is left
    with np.errstate(over="ignore"):
        E = (
            c
            * np.exp(2.0 * V * t)
            * np.maximum(-levels - least, 0.0)
            * np.maximum(gaps - least, 0.0)
        )
    stopped = E >= 160.0
    if not stopped[0]:
        return 0
    return int(stopped.sum()) + int(not stopped[-1])


def _specimen(t_end: float, sigma: str = "relu") -> Trajectory:
    # V is diagonal: else the ReLU switches ever faster, and no run gets to twice the time at which
    # tokens are at rest
    start = np.random.default_rng(3).uniform(0.0, 2.0, (8, 2))
    return specimen(
        np.diag([1.0, 0.5]), t_end=t_end, x0=start, feedforward={"sigma": sigma}, rtol=1e-7
    )


theorems.register("feedforward_hyperplanes")(
    Theorem(
        name="feedforward_hyperplanes",
        kind="conjecture",
        statement=(
            "For a good triple and z_i' = ReLU(V sum_j P_ij (z_j - z_i)) there are at most three"
            " parallel hyperplanes such that the distance of every z_i(t) to one of them tends"
            " to 0."
        ),
        cite=(
            "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465v6, section 12, open"
            " problem on feed-forward layers"
        ),
        errata=(
            "Asked for any tokens it is false: for d = 1, tokens below 0 listen to the smallest,"
            " the ReLU lets nothing move towards it, and all stay at different places. What the"
            " paper observed has hyperplanes given by the spectrum of V and the positive orthant;"
            " normals tried here are phi*_1 and the axes."
        ),
        hypotheses=hypotheses,
        predict=predict,
        measure=measure,
        holds=lambda: _specimen(6.0),
        breaks=lambda: _specimen(2.0, "tanh"),
        short=lambda: _specimen(0.7),
        spoil=shuffle_end,
        nonsense=random_rest,
    )
)
