"""The claims that the portraits of the paper share, and the spoils that break them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlab.experiments.common.claims import of_verdicts
from attnlab.experiments.common.portraits import run as portraits
from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, computed, contradicted, first_for_all
from attnlab.render.limit_view import dual_basis
from attnlab.types import Limit, Trajectory


def supported(data: Data, theorem: str, words: str, published: str) -> Claim:
    """The verdict of a theorem on the run."""
    return Claim(
        text=f"{words}: the verdict on this run.",
        published=published,
        **of_verdicts(data["verdicts"], theorem),
        because="1 is SUPPORTED: the certified limit obeys the theorem, and the run comes near it",
    )


def agrees(data: Data) -> Claim:
    """The run against an integrator and a right-hand side that share nothing with ours."""
    run, numerics = run_in(data), data["numerics"]
    off = max(
        np.abs(portraits.at_time(run, t) - exact).max() / np.abs(exact).max()
        for t, exact in zip(numerics["compared"].values, numerics["exact_at"].values, strict=True)
    )
    return Claim(
        text=(
            "At five times up to T = 5 the run is where scipy's DOP853 puts it with a plain NumPy"
            " right-hand side: largest difference over the largest token."
        ),
        measured=float(off),
        low=0,
        high=1e-6,
        because=(
            "both have a tolerance of 1e-10 per step or better; the rest allows for the effect of a"
            " change of leader"
        ),
    )


def first_order(data: Data, remark: str = "") -> Claim:
    """The authors' scheme is forward Euler: its error falls like dt."""
    errors = portraits.euler_errors(data)
    median = np.median(errors, axis=1)
    return Claim(
        text="Half the authors' time step makes half the error at T = 5 (median over the tokens).",
        measured=float(median[0] / median[1]),
        published="a scheme called RK4",
        low=1.7,
        high=2.3,
        because="first order: the ratio is 2 (1 + O(λ₁ dt)), and λ₁ dt is below 0.2",
        differs=(
            "The published scheme is forward Euler (its stages coincide); with dt = 0.1 a token is"
            f" off by {median[0]:.2g} in the median and {errors[0].max():.2g} at most.{remark}"
        ),
    )


def hull_never_grows(z: np.ndarray, what: str) -> Claim:
    """Proposition on the convex hull, by its facets."""
    return Claim(
        text=(
            f"The convex hull of {what} never grows: the largest distance of a token to the hull of"
            " the saved time before, over the first diameter."
        ),
        measured=portraits.outward(z),
        published="non-increasing",
        low=-np.inf,
        high=1e-8,
        because="section 8; 1e-8 is a hundred times the tolerance of the integrator",
    )


def in_special_set(points: np.ndarray, M: np.ndarray, words: str) -> Claim:
    """Every limit u has u^T M u = max_j u^T M v_j."""
    products = points @ M @ points.T
    off = np.abs(np.diag(products) - products.max(axis=1)).max() / np.abs(products).max()
    return Claim(
        text=(
            f"{words}: largest |uᵀMu − max uᵀMv| over the limits u, v, relative to the largest"
            " product."
        ),
        measured=float(off),
        published="a theorem",
        low=0,
        high=1e-7,
        because=(
            "the limits are certified within 1e-8 of their size; the quotient moves four times as"
            " far at most"
        ),
    )


def share_at_vertices(data: Data, words: str) -> Claim:
    """Generic starts use the vertices alone."""
    shares = [
        portraits.all_vertices(portraits.values_of(points))
        for points in data["starts"]["points"].values
    ]
    return Claim(
        text=f"{words} (random starts, rng 1, 2, ...): share of the {len(shares)} starts.",
        measured=float(np.mean(shares)),
        published="finitely many further points are allowed",
        low=0.95,
        high=1,
        because=(
            "further points of S seem to repel, so that only exceptional starts end there:"
            " expected, not proved"
        ),
    )


def followers_approach(
    run: Trajectory,
    limit: Limit,
    dual: np.ndarray,
    speed: float,
    what: str,
    published: str,
    differs: str = "",
) -> Claim:
    """After the decision z_i - z_L is e^{-tV} times a constant: its part along an eigenvector is an
    exact exponential.
    """
    growth = portraits.rate(
        run.times, portraits.distance_to_leader(run, limit, dual), max(limit.t, 2.0)
    )
    return Claim(
        text=f"{what}: slope of the logarithm of the largest distance, from the decision on.",
        measured=growth,
        published=published,
        low=speed - 0.02 * max(abs(speed), 0.1),
        high=speed + 0.02 * max(abs(speed), 0.1),
        because=(
            "once its leader is decided, x_i − x_leader is constant, so this part of z follows"
            f" e^({speed:.4g} t)"
        ),
        differs=differs,
    )


def reaches_limit(data: Data) -> Claim:
    """The certified limit is where the run goes, at least as fast as the slowest growing direction
    allows.
    """
    run, limit = portraits.drawn_from(data)
    worst = slowest = float("nan")
    if limit.certified:
        dual, _ = dual_basis(limit)
        values, right = np.linalg.eig(dual @ run.dynamics.weights.full_V[0] @ limit.basis)
        slowest, since = float(values.real.min()), int(np.searchsorted(run.times, limit.t))
        away, times = portraits.distances(run, limit, dual)[since:].max(axis=1), run.times[since:]
        envelope = (
            np.linalg.cond(limit.basis @ right) * away[0] * np.exp(-slowest * (times - times[0]))
        )
        seen = (
            envelope > 1e-7 * np.abs(limit.points).max()
        )  # below it the errors of run and limit are seen
        worst = float((away / envelope)[seen].max()) if seen.sum() > 2 else float("nan")
    return Claim(
        text=(
            "The run goes to the certified limit: the largest distance in F from it, over e^(−λ t)"
            " times that at the decision (λ the slowest growing rate, and the condition number of"
            " its eigenvectors)."
        ),
        measured=worst,
        low=0,
        high=1.01,
        because=(
            "x_i − x_leader is constant from the decision on, so in F z follows e^(−tV); a"
            " hundredth allows for the weights that softmax leaves to other tokens"
        ),
    )


def _moved(limit: Any) -> None:
    """Put the limit of the first leader on the way to that of another group."""
    points, labels = limit["points"].values, limit["labels"].values
    first = int(limit["leaders"].values[0])
    other = int(np.argmax(labels != labels[first]))
    points[first] = 0.4 * points[first] + 0.6 * points[other]


def _anywhere(starts: Any) -> None:
    """In every start, stop one token in three somewhere on the way to 0."""
    for name in {"points", "one_sided"} & set(starts.data_vars):
        points = starts[name].values[:, ::3]
        points *= np.linspace(0.3, 0.6, points.shape[1])[:, None]


def _drifting(run: Any) -> Any:
    """All tokens drift outwards from t = 4 on."""
    return run["states"] * (1.0 + 0.1 * np.maximum(run["time"] - 4.0, 0.0))


def _slow(run: Any) -> Any:
    """Tokens lag behind between the panels. At T = 5 they are where they should be."""
    return run["states"] * (1.0 + 1e-3 * ((run["time"] > 0.2) & (run["time"] < 4.9)))


spoils: dict[str, Callable[[Data], Data]] = {
    "tokens drift outwards": computed("run", states=_drifting),
    "a leader ends elsewhere": changed("limit", _moved),
    "tokens too slow between the panels": computed("run", states=_slow),
    "Euler as good with any step": first_for_all("numerics", "euler"),
    "theorems contradicted": contradicted,
    "starts end anywhere": changed("starts", _anywhere),
}
"""Damages that every portrait must notice."""
