"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.claims import furthest_from, of_verdicts
from attnlab.experiments.datasets import limit_in, run_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import computed, constant, contradicted, replaced, shifted, together

from .experiment import U_START, N, ranks_of

PUBLISHED = (11, 23, 14, 2)

TOLERANCES = (1 / N, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""Other thresholds of the rank than n eps times the largest singular value, in units of it."""

SEEN_BEFORE = {
    "flow": (12, (11, 19.5, 8.5, 2)),
    "Euler in z, 0.1": (40, (11, 21, 10, 2)),
    "no coupling": (12, (11, 17, 4, 2)),
}
"""{dynamics: (starts, median ranks)} of an independent program, uniform tokens on [-1, 1]: no start
had 14 at t = 5.
"""


def boolean_gaps(x: np.ndarray, leaders: np.ndarray) -> np.ndarray:
    """-log(1 - P_iL) of each row, L its leader in the end: x (T, n) -> (T, n)."""
    against = x[:, :, None] * (x[:, leaders][:, :, None] - x[:, None, :])
    against[:, np.arange(len(leaders)), leaders] = np.inf
    odds = -np.logaddexp.reduce(-against, axis=2)
    return np.logaddexp(0.0, odds)


def near(ranks: np.ndarray) -> np.ndarray:
    """Share of the starts (.., seed, time) -> (..) whose four ranks are all within one of the
    published ones.
    """
    return (np.abs(ranks - np.array(PUBLISHED)) <= 1).all(axis=-1).mean(axis=-1)


def exception(symmetric: Any) -> tuple[float, float]:
    """(relative difference to the equation of u, rank of P*) of the tokens (-u, 0, u)."""
    t, u, x = (symmetric[name].values for name in ("t", "u", "x"))
    early = t <= 3.0  # later the middle token is lost to rounding
    along = np.abs(x[early][:, [0, 2]] / (u[early, None] * [-1.0, 1.0]) - 1).max()
    at_last = (
        np.abs(
            symmetric["limits"].values - u[-1] * np.exp(-t[-1]) * np.array([-1.0, 0.0, 1.0])
        ).max()
        / U_START
    )
    leaders = symmetric["leaders"].values
    P = np.where(
        leaders[:, None] >= 0, np.eye(3)[leaders], 1 / 3
    )  # -1: tied between both sides, by symmetry
    return float(max(along, at_last)), float(np.linalg.matrix_rank(P))


def claims(data: Data) -> list[Claim]:
    """Theorem 2.1, its rate, the symmetric exception, and what the published ranks allow."""
    run, limit, many = run_in(data), limit_in(data), data["ranks"]
    names = [str(name) for name in many["name_of_dynamics"].values]
    standard = [str(name) for name in many["name_of_start"].values].index("U 1")
    ranks = {name: many["rank"].values[:, m] for m, name in enumerate(names)}  # (start, seed, time)
    late = run.times >= 8.0
    gaps = np.log(boolean_gaps(run.x[late, :, 0], limit.leaders))
    slopes = np.polyfit(run.times[late], gaps, 1)[0]
    x0, leaders = data["ends"]["start"].values, data["ends"]["leaders"].values
    extremes = np.stack([x0.argmin(axis=1), x0.argmax(axis=1)], axis=1)
    as_stated = (leaders[:, :, None] == extremes[:, None, :]).any(axis=2).all(axis=1) & (
        data["ends"]["is_certified"].values == 1
    )
    medians = [
        np.median(ranks[name][standard], axis=0) - wanted
        for name, (_, wanted) in SEEN_BEFORE.items()
    ]
    values, shares = many["singular_values"].values, {}
    for name, (count, _) in SEEN_BEFORE.items():
        shares[name] = (
            (ranks_of(values[names.index(name)])[:, 2] >= PUBLISHED[2]).mean(),
            1 - 0.05 ** (1 / count),
        )
    departure, rank_three = exception(data["symmetric"])
    chosen = [name for name in names if name in ("Euler in x, 0.25", "Euler in x, 0.5")]
    said = f"Ranks {', '.join(map(str, PUBLISHED))} at t = 0, 3, 5, 10"
    return [
        Claim(
            text="Theorem 2.1 is supported by the run that is shown, on its certified limit.",
            published="a theorem (section 2)",
            because="1 is SUPPORTED",
            **of_verdicts(data["verdicts"], "low_rank_boolean"),
        ),
        Claim(
            text=(
                "Every row of P* is that of the smallest or of the largest token, so the rank is 1"
                " or 2: share of the starts."
            ),
            measured=float(as_stated.mean()),
            published="almost every start",
            low=1,
            high=1,
            because="Theorem 2.1 and the remark after it; certified limits",
            differs=(
                "Not a difference, but worth knowing: rank 1 is common too, since the mean can"
                " carry all tokens to one side."
            ),
        ),
        Claim(
            text=(
                "Rows become Boolean double-exponentially: slope of log(-log(1 - max P)) against t;"
                " the one that is farthest from 1."
            ),
            measured=furthest_from(1, slopes),
            published="exp(-c e^t)",
            low=0.95,
            high=1.05,
            because="1 - P = exp(-γ gap e^{Vt}) with V = 1",
        ),
        Claim(
            text=(
                "Median ranks agree with those of an independent program: largest difference, three"
                " dynamics, four times."
            ),
            measured=float(np.abs(medians).max()),
            published=said,
            low=0,
            high=3,
            because=(
                "12 to 40 starts there, 20 or more here: a median of ranks with a spread of 15 is"
                " known to about 1.3 in each"
            ),
        ),
        Claim(
            text=(
                "Uniform on [-1, 1]: a rank of 14 or more at t = 5 is rare or absent; largest share"
                " of starts over the exact flow, Euler in z with dt = 0.1 and no coupling, each"
                " over its bound."
            ),
            measured=float(max(a / b for a, b in shares.values())),
            published="14",
            low=0,
            high=1,
            because=(
                "the independent program saw none in 12, 40 and 12 starts: at most 22 %, 7.2 % and"
                " 22 % with 95 % confidence"
            ),
            differs=(
                "So the published 14 is not from uniform tokens on [-1, 1] with any of these three."
            ),
        ),
        Claim(
            text=(
                "No coupling, as the published script has it, is refuted: largest share of starts,"
                " over all start laws tried, whose ranks are within 1 of the published ones."
            ),
            measured=float(near(ranks["no coupling"]).max()),
            published=said,
            low=0,
            high=0.05,
            because="rejected at the 5 % level",
            differs=(
                "The script lowrank-attention.py, as it stands, did not make the published figure."
            ),
        ),
        Claim(
            text=(
                "The exact flow and Euler with dt = 0.1 from uniform tokens on [-1, 1] are refuted"
                " too, also if the tolerance of the rank was another (1/40 to 1000 times numpy's):"
                " largest share within 1."
            ),
            measured=float(
                max(near(ranks_of(values[m], factor)) for m in range(3) for factor in TOLERANCES)
            ),
            published=said,
            low=0,
            high=0.05,
            because="rejected at the 5 % level",
            differs="Narrower starts (L = 0.8 to 0.9) are not excluded for these.",
        ),
        Claim(
            text=(
                "Coupled tokens with a coarser Euler step can have made them: largest share within"
                " 1, dt = 0.25 or 0.5 in x."
            ),
            measured=float(max(near(ranks[name]).max() for name in chosen)),
            published=said,
            low=0.05,
            high=1,
            because="not rejected at the 5 % level",
            differs=(
                "No script has these steps: they were tried after 0.1 had failed; this is the best"
                " of the start laws. Settled is that the tokens were coupled; a coarse step or a"
                " narrower start than [-1, 1] explains the rest."
            ),
        ),
        Claim(
            text=(
                "Tokens (-u, 0, u): the run to t = 3 and the certified limits against the scalar"
                " equation of u, largest relative difference."
            ),
            measured=departure,
            low=0,
            high=1e-8,
            because=(
                "du/dt = u (e^{u²} - e^{-u²}) / (e^{u²} + 1 + e^{-u²}), by DOP853 with tolerance"
                " 1e-12"
            ),
        ),
        Claim(
            text=(
                "Its middle token attends to both sides for ever, so P* has rank 3, the largest"
                " that the theorem allows."
            ),
            measured=rank_three,
            published="rank at most 3",
            low=3,
            high=3,
            because=(
                "the middle row is (1/3, 1/3, 1/3) at all times: the score of a token at 0 is 0"
                " for all"
            ),
            differs=(
                "Only an exact symmetry shows it: plain double precision loses the middle token"
                " near t = 3.5."
            ),
        ),
    ]


def _exchanged(ranks: Any) -> Any:
    """The coarse Euler runs under the names of the others."""
    return ranks.isel(dynamics=[4, 4, 4, 5, 5, 4])


spoils = {
    "theorem contradicted": contradicted,
    "tokens grow too slowly": computed(
        "run", states=lambda run: run["states"] * np.exp(-0.1 * run["time"])
    ),
    "every token follows token 7": constant("ends", "leaders", 7),
    "ranks one snapshot late": computed(
        "ranks",
        rank=lambda ranks: ranks["rank"].roll(at=1),
        singular_values=lambda ranks: ranks["singular_values"].roll(at=1),
    ),
    "dynamics exchanged": computed(
        "ranks",
        rank=lambda ranks: _exchanged(ranks)["rank"],
        singular_values=lambda ranks: _exchanged(ranks)["singular_values"],
    ),
    "symmetry lost": together(
        shifted("symmetric", "x", 1e-3),
        replaced("symmetric", "leaders", lambda i: np.where(i < 0, 0, i)),
    ),
}
