"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.claims import of_verdicts
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, computed, contradicted, replaced, shifted

from .experiment import CHECKED, EARLY, END, STEP, STEPS, spread

FLOOR = 1e-6
"""Spreads below are not used in fits: the path is known to about 1e-10, so that above it they are
good to four digits.
"""


def rates(t: np.ndarray, spreads: np.ndarray, since: float) -> np.ndarray:
    """The exponential rate (d,) of each spread (T, d) from `since` on, by least squares; NaN where
    less than three are seen.
    """
    found = np.full(spreads.shape[1], np.nan)
    for k, column in enumerate(spreads.T):
        used = (t >= since) & (column > FLOOR)
        if used.sum() >= 3:
            found[k] = np.polyfit(t[used], np.log(column[used]), 1)[0]
    return found


def integrated_rates(data: Data) -> np.ndarray:
    """The rate of every coordinate in the integrated run, from when leaders are fixed to lambda_1 t
    = 25.
    """
    run, coordinates = data["integrated"], data["coordinates"]
    used = run["time"].values * coordinates["eigenvalue"].values[0] <= EARLY
    spreads = spread(run["value"].values[used], coordinates["leader"].values)
    return rates(run["time"].values[used], spreads, coordinates.attrs["decided"])


def euler_rate(values: np.ndarray) -> np.ndarray:
    """The rate that Euler steps give to a coordinate instead of -lambda: log|1 - lambda dt| /
    dt.
    """
    return np.asarray(np.log(np.abs(1 - values * STEP)) / STEP)


def claims(data: Data) -> list[Claim]:
    """Who converges, where to, how fast, and what double precision and Euler steps do to it."""
    coordinates = data["coordinates"]
    t, value, values = (coordinates[name].values for name in ("time", "value", "eigenvalue"))
    leader, decided = coordinates["leader"].values, coordinates.attrs["decided"]
    clustered = values > 0
    last = value[t >= END - 1]
    converging = (np.ptp(last, axis=0).max(axis=0) < 1e-3 * np.ptp(value[0], axis=0)).sum()
    high, low = value[..., clustered].max(axis=1), value[..., clustered].min(axis=1)
    rise = max(np.diff(high, axis=0).max(), -np.diff(low, axis=0).min())
    limits = np.unique(np.round(data["limit"]["points"].values, 7), axis=0)
    rate = integrated_rates(data)
    early, along = data["integrated"]["time"].values, data["integrated"]["value"].values
    kept = along[(early >= decided) & (early * values[0] <= EARLY)][:, np.unique(leader)][
        ..., ~clustered
    ]
    swollen = np.exp(-values[-1] * EARLY / values[0])
    other = data["independent"]
    apart = np.abs(other["value"].values - coordinates["value"].sel(time=other["time"]).values)[
        ..., clustered
    ].max()
    wall = values[0] * float(data["run"]["time"].values[-1])
    off, euler = data["euler"]["off"].values, data["euler_spread"]
    euler_rates = rates(euler["time"].values, euler["spread"].values, 0.0)
    correction = values[0] * STEPS[-2]
    late = np.exp((-values[-1] - euler_rate(values)[-1]) * END)
    return [
        Claim(
            text=(
                "As many coordinates converge as V has positive eigenvalues: the difference of the"
                " two numbers (a coordinate converges if no token moves by a thousandth of its"
                " first range from t = 14 to 15)."
            ),
            measured=float(converging - clustered.sum()),
            published="65 of 128 converge, 65 eigenvalues are positive (their draw)",
            low=0,
            high=0,
            because="spreads go like e^{-lambda t}, and no eigenvalue is within 1 of 0",
        ),
        Claim(
            text=(
                "The tokens approach at most three parallel affine subspaces of codimension k:"
                " number of different certified limits in F."
            ),
            measured=float(len(limits)) if coordinates.attrs["grade"] != "undecided" else np.nan,
            published="at most three",
            low=1,
            high=3,
            because=(
                "conjecture 4.3 (a theorem for the leading coordinate); "
                "generically two, one on either side of phi*_1 = 0"
            ),
            differs=(
                "at lambda_1 T = 100 double precision cannot tell which tokens lead; these limits"
                " are certified"
            ),
        ),
        Claim(
            text=(
                "The hyperplanes theorem and the codimension conjecture are supported by the run:"
                " how many of the two verdicts."
            ),
            published="a theorem and a conjecture",
            because="both SUPPORTED",
            **of_verdicts(data["verdicts"], *CHECKED),
        ),
        Claim(
            text=(
                "The largest and the smallest token of a clustered coordinate approach each other"
                " at all times: the largest step in the wrong direction up to t = 15."
            ),
            measured=float(rise),
            published="a lemma of section 9",
            low=-np.inf,
            high=1e-8,
            because="the lemma; 1e-8 is for rounding and integration, on tokens of size 1",
        ),
        Claim(
            text=(
                "Every coordinate obeys z - z_leader ~ e^{-lambda t}, those that converge and those"
                " that grow: the largest |rate + lambda|."
            ),
            measured=float(np.abs(rate + values).max()),
            published="no rate given",
            low=0,
            high=1e-3,
            because=(
                "once leaders are fixed, offsets x - x_leader are constant; 1e-3 is for spreads"
                " known to four digits"
            ),
            differs=(
                f"the authors' Euler steps grow like (1 + |lambda| dt)^(t/dt): {late:.0f} times"
                " less at t = 15 for the smallest lambda"
            ),
        ),
        Claim(
            text=(
                "The leaders do not grow in any coordinate: the largest change of a leader's z"
                " along negative eigenvalues since the leaders are fixed, up to lambda_1 t = 25."
            ),
            measured=float(np.ptp(kept, axis=0).max()),
            published="not said: figures show means and deviations",
            low=0,
            high=1e-8 * swollen,
            because=(
                "a leader attends to itself alone, and then its z stands still; the tolerance 1e-8"
                " is magnified by e^{|lambda| t}"
            ),
        ),
        Claim(
            text=(
                "An independent integrator (SciPy's DOP853, plain NumPy) agrees in all clustered"
                " coordinates up to lambda_1 t = 25: largest difference."
            ),
            measured=float(apart),
            low=0,
            high=1e-5,
            because=(
                "its tolerance of 1e-9, magnified by the growth of x to 1e10 and by changes of"
                " leader: four digits are left"
            ),
        ),
        Claim(
            text=(
                "Double precision loses the order inside clusters at lambda_1 t of about 36, at a"
                " third of T: lambda_1 times the last time that the run reaches."
            ),
            measured=float(wall),
            published="T = 15 is lambda_1 T = 100",
            low=28,
            high=39,
            because=(
                "e^{-lambda_1 t} reaches 2^-53 at 36.7; more or less by the logarithm of size over"
                " spread of the data"
            ),
            differs=(
                "from there on the published run has rounding noise for the differences inside a"
                " cluster"
            ),
        ),
        Claim(
            text=(
                "Euler's error in the clustered coordinates at t = 3 is of first order: its ratio"
                " for dt = 0.025 and 0.0125."
            ),
            measured=float(off[-2] / off[-1]),
            published="dt = 0.1 only",
            low=2 * (1 - correction),
            high=2 * (1 + correction),
            because="2, up to a relative correction of lambda_1 dt",
            differs=(
                f"dt = 0.1 is off by {off[0]:.2g}; lambda_1 dt = {values[0] * STEP:.2f} is not"
                " small"
            ),
        ),
        Claim(
            text=(
                "With dt = 0.1 the rates are those of Euler, log|1 - lambda dt| / dt, and not"
                " -lambda: largest distance from that formula."
            ),
            measured=float(np.nanmax(np.abs(euler_rates - euler_rate(values)))),
            published="dt = 0.1",
            low=0,
            high=1e-2,
            because=(
                "the closed form of Euler's steps with fixed leaders; a hundredth allows for the"
                " weights of other tokens"
            ),
        ),
    ]


def _drifting(coordinates: Any) -> None:
    coordinates["value"][..., 1] += 0.05 * coordinates["time"]


def _four_limits(limit: Any) -> None:
    limit["points"][:4] *= 1 + 0.1 * np.arange(4)[:, None]


def _slow(run: Any) -> Any:
    """Growth as Euler steps give it to a matrix with eigenvalues around -2, where spreads grow."""
    value, t = run["value"].values, run["time"].values
    grows = np.ptp(value[-1], axis=0) > np.ptp(value[0], axis=0)
    return (
        value
        * np.exp(np.multiply.outer(t, np.where(grows, euler_rate(np.array(-2.0)) - 2.0, 0.0)))[
            :, None
        ]
    )


def _growing_leaders(run: Any) -> None:
    """The two tokens that stay smallest are made to grow."""
    value = run["value"].values
    calm = np.argsort(np.abs(value[-1]).max(axis=1))[:2]
    value[:, calm] *= np.exp(0.2 * run["time"].values)[:, None, None]


spoils = {
    "a clustered coordinate drifts": changed("coordinates", _drifting),
    "growth by Euler's rate": computed("integrated", value=_slow),
    "leaders grow": changed("integrated", _growing_leaders),
    "five limits": changed("limit", _four_limits),
    "another start for the other program": shifted("independent", "value", 0.01),
    "a run that ignores the wall": changed(
        "run", lambda run: run.assign_coords(time=run["time"] * END / float(run["time"][-1]))
    ),
    "Euler of second order": computed("euler", off=lambda euler: euler["off"] * euler["dt"]),
    "Euler with other rates": replaced("euler_spread", "spread", lambda spreads: spreads**0.9),
    "theorems contradicted": contradicted,
}
