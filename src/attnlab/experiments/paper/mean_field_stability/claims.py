"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.stability import largest_distance_rate, stability_rate
from attnlab.analysis.transport import cloud_distance
from attnlab.experiments.common.claims import furthest_from
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import computed, replaced, scaled


def distances(tokens: np.ndarray) -> np.ndarray:
    """W_2 of each pair at each time, (pair, T), from tokens (pair, 2, T, n, d)."""
    return np.array([[cloud_distance(x, y) for x, y in zip(*pair, strict=True)] for pair in tokens])


def envelopes(data: Data) -> dict[str, np.ndarray]:
    """Bounds of log(W_2(t) / W_2(0)), and of the largest distance, (pair, T).

    "before": from the first radius alone. "along": from the radii on the way, each good for the
    time up to the next saved one.
    """
    times, tokens = data["pairs"]["time"].values, data["pairs"]["tokens"].values
    R = np.linalg.norm(tokens, axis=-1).max(axis=(1, 3))  # (pair, T)
    fine = np.linspace(0, times[-1], 2001)
    grown = stability_rate(R[:, :1] * np.exp(fine))
    summed = np.concatenate(
        [np.zeros((len(R), 1)), np.cumsum((grown[:, 1:] + grown[:, :-1]) / 2 * fine[1], axis=1)],
        axis=1,
    )
    reached = R[:, :-1] * np.exp(np.diff(times))
    steps = {
        "along": stability_rate(reached) * np.diff(times),
        "largest": largest_distance_rate(reached) * np.diff(times),
    }
    return {
        "before": summed[:, np.rint(times / fine[1]).astype(int)],
        **{
            name: np.concatenate([np.zeros((len(R), 1)), np.cumsum(step, axis=1)], axis=1)
            for name, step in steps.items()
        },
    }


def claims(data: Data) -> list[Claim]:
    """The envelopes, the linearised flow, and how sharp the constant is."""
    pairs, crowds, check = data["pairs"], data["crowds"], data["tangent"]
    far, bounds = distances(pairs["tokens"].values), envelopes(data)
    grown = np.log(far / far[:, :1])
    x, y = np.moveaxis(pairs["tokens"].values, 1, 0)
    largest = np.linalg.norm(x - y, axis=-1).max(axis=-1)
    top, kind = grown[:, -1] - np.log(pairs["singular_value"].values), pairs["kind"].values
    worst = np.exp(top[kind == "worst"])
    R, measured = crowds["radius"].values, crowds["measured"].values
    agreement = measured / crowds["closed_form"].values
    two_ways = check["differences"].values / check["formula"].values
    theorem = "C = C(R, T), no number given (section 6)"
    return [
        Claim(
            text=(
                f"W_2 of {len(far)} pairs stays in the envelope that R, |V|, |M| give beforehand:"
                " the largest |log ratio| / bound."
            ),
            measured=float((np.abs(grown) / np.maximum(bounds["before"], 1e-300))[:, 1:].max()),
            published=theorem,
            low=0,
            high=1,
            because=(
                "proved: the rate is |V| (|M| R² + (1 + |M| R²) e^{|M| R²}), R at most R(0)"
                " e^{|V| t}"
            ),
        ),
        Claim(
            text="And in the narrower one from the radii on the way.",
            measured=float((np.abs(grown) / np.maximum(bounds["along"], 1e-300))[:, 1:].max()),
            published=theorem,
            low=0,
            high=1,
            because="the same proof",
        ),
        Claim(
            text=(
                "The largest distance of coupled tokens stays in its envelope, of rate |V| (1 +"
                " 2|M| R²): log ratio / bound."
            ),
            measured=float(
                (np.log(largest / largest[:, :1]) / np.maximum(bounds["largest"], 1e-300))[
                    :, 1:
                ].max()
            ),
            published=theorem,
            low=-np.inf,
            high=1,
            because=(
                "each row of attention sums to 1, so changes of all tokens by at "
                "most delta change a velocity by at most that"
            ),
        ),
        Claim(
            text=(
                "A pair along the fastest direction grows by the largest singular value of the"
                " tangent map: ratio furthest from 1."
            ),
            measured=furthest_from(1, worst),
            published="no number given",
            low=0.98,
            high=1.02,
            because="the linearised flow, for first distances of 1e-4",
        ),
        Claim(
            text=(
                "No other nearby pair grows more: the largest ratio of growth to that singular"
                " value."
            ),
            measured=float(np.exp(top[(kind == "near") | (kind == "middle")].max())),
            published="no number given",
            low=0,
            high=1.02,
            because="the linearised flow",
        ),
        Claim(
            text=(
                "The singular value itself, by differences of runs and by the closed Jacobian with"
                " SciPy's DOP853: |ratio - 1|."
            ),
            measured=float(np.abs(two_ways - 1).max()),
            published="no number given",
            low=0,
            high=1e-5,
            because="central differences with step 1e-5 err by its square and by 1e-11 / 1e-5",
        ),
        Claim(
            text=(
                "A crowd and its leader: W_2 of the runs begins to grow at the rate of the closed"
                " form; the ratio furthest from 1."
            ),
            measured=furthest_from(1, agreement),
            published="no number given",
            low=0.99,
            high=1.01,
            because="an eigenvalue of a 2 x 2 matrix",
        ),
        Claim(
            text=(
                "So the factor e^{|M| R²} is needed: the smallest ratio of (measured rate + R²) to"
                " (1 + R²) e^{R²}."
            ),
            measured=float(((measured + R**2) / ((1 + R**2) * np.exp(R**2))).min()),
            published="no number given",
            low=0.24,
            high=1,
            because=(
                "the eigenvalue is at least half the trace, above -R², and (1 + R²) e^{R²} / 4,"
                " half of what the leader does to √N of the crowd; 4 % for the rounding of N"
            ),
        ),
        Claim(
            text=(
                "The rate 1 + 2R² of the largest distance does not hold for W_2: the largest ratio"
                " of the measured rate to it."
            ),
            measured=float((measured / largest_distance_rate(R)).max()),
            published="no number given",
            low=1,
            high=np.inf,
            because=(
                "one of N tokens moves by delta, so W_2 is delta/√N, and all others follow it: √N /"
                " 2 times as much at once"
            ),
        ),
    ]


def _kicked(tokens: np.ndarray) -> np.ndarray:
    """The second run of each pair continues from another state after the last but one saved
    time.
    """
    return np.concatenate(
        [tokens[:, :, :-1], tokens[:, :, -1:] * np.array([1.0, 40.0])[:, None, None, None]], axis=2
    )


def _damped(pairs: Any) -> Any:
    """A solver that pulls the second run towards the first."""
    first = pairs["tokens"].isel(member=0)
    return first + (pairs["tokens"] - first) * np.exp(-pairs["time"])


spoils = {
    "second run replaced at the end": replaced("pairs", "tokens", _kicked),
    "second run pulled to the first": computed("pairs", tokens=_damped),
    "differences too coarse": scaled("tangent", "differences", 1 + 1e-3),
    "a leader with an eighth of its weight": scaled("crowds", "measured", 1 / 8),
}
