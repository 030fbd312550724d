"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.distances import diameter
from attnlab.experiments.common.certified import certified_in_words, decided
from attnlab.experiments.common.claims import relative_difference
from attnlab.experiments.common.heads import HEADS, as_shown, counted_backwards
from attnlab.experiments.common.portraits.run import outward
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, replaced, scaled, shifted, together

from .experiment import COMPARED, MANY, SHOWN, SYNTHETIC, WATCHED, D


def change(rows: Any, column: str) -> np.ndarray:
    """Return what a column is with MANY heads less what it is with one, for each start where both
    are certified.
    """
    one, many = (
        dict(zip(some["seed"].values.tolist(), some[column].values.astype(float), strict=True))
        for some in (select(rows, heads=count) for count in (1, MANY))
    )
    return np.array([many[seed] - one[seed] for seed in sorted(one.keys() & many.keys())])


def less(change: np.ndarray, quantity: str) -> dict[str, Any]:
    """The keywords of a claim that a mean change is negative: measured is the upper end of its 95 %
    bootstrap interval.
    """
    picked = np.random.default_rng(0).integers(0, len(change), (4000, len(change)))
    return {
        "measured": float(np.quantile(change[picked].mean(axis=1), 0.975)),
        "value": float(change.mean()),
        "low": -np.inf,
        "high": 0,
        "quantity": quantity,
        "expected": "less than 0",
        "published": "no comparison",
    }


def claims(data: Data) -> list[Claim]:
    """The hull and the polytope of one head, and what several heads leave of it."""
    shown, test, found, ends = data["shown"], data["checks"], data["polytopes"], data["ends"]
    solid = found["rank"].values == D
    V, E, F = (found[name].values[solid] for name in "VEF")
    formula = float(np.abs(V - E + F - 2).max()) if solid.any() else np.nan
    synthetic = select(ends, family=SYNTHETIC)
    every = decided(synthetic)
    near = select(ends, family="near")
    known = decided(near)
    one, many = (select(known, heads=count) for count in (1, MANY))
    several = select(known, heads=HEADS[1:])
    inside = several["count"].values > several["corners"].values
    grown = data["own"]["outward"].values
    to_go, fastest, slowest = _left(shown)
    result = [
        Claim(
            text=(
                "V_h = I, 1 to 16 heads: the hull of z never grows: the farthest that a token"
                " leaves the hull of the time before, over the first diameter."
            ),
            measured=max(outward(z) for z in shown["z"].values),
            published="not mentioned",
            low=-np.inf,
            high=1e-7,
            because=(
                "the proposition on the hull holds for several heads with V_h = I; a hundred "
                "times the tolerance of the runs"
            ),
        ),
        Claim(
            text=(
                f"One head: Euler's formula for {int(solid.sum())} certified limit polytopes,"
                " largest |V − E + F − 2|; corners by Qhull, edges by common facets, facets by"
                " trying all triples."
            ),
            measured=formula,
            low=0,
            high=0,
            because="Euler's polyhedron formula",
        ),
        Claim(
            text=(
                "One head: every certified limit lies in the set S of the polytope theorem: largest"
                " distance from the plane that must bound the polytope there, over its size."
            ),
            measured=float(found["residual"].values.max()),
            low=-np.inf,
            high=1e-7,
            because=(
                "theorem: uᵀMu = max uᵀMv over the corners v; limits are certified within 1e-8 of"
                " their size"
            ),
        ),
        Claim(
            text=(
                "1 to 16 heads: a class wins in every head. Farthest that a limit is beyond the"
                " plane pᵀM_h z = pᵀM_h p of a class point p, over all heads h, over the size of"
                f" the limits: {certified_in_words(synthetic)}."
            ),
            measured=float(every["beyond"].values.max()),
            published="no comparison",
            low=-np.inf,
            high=1e-7,
            because="the result win_in_every_head; limits are certified within 1e-8 of their size",
        ),
        Claim(
            text=(
                f"{MANY} heads near the identity leave fewer corners than one: mean difference of"
                " the certified limits, upper end of the 95 % interval."
            ),
            **less(change(known, "corners"), "mean change of the number of corners"),
            because=(
                "a corner stands only if its token leads itself in every head, and each further"
                " head is one more condition"
            ),
            differs=(
                f"{one['corners'].values.mean():.2g} corners with one head,"
                f" {many['corners'].values.mean():.2g} with {MANY}."
                f" {certified_in_words(select(near, heads=(1, MANY)), 'draws')}."
            ),
        ),
        Claim(
            text=(
                "Their limit polytope is smaller: its volume over that of the first hull, with"
                f" {MANY} heads less with one, mean, upper end of the 95 % interval."
            ),
            **less(change(known, "volume"), "mean change of the volume"),
            because="the hull shrinks for as long as a corner is pulled away by any head",
            differs=(
                f"{one['volume'].values.mean():.2g} of the first volume with one head,"
                f" {many['volume'].values.mean():.2g} with {MANY}."
            ),
        ),
        Claim(
            text=(
                "A corner keeps its attention for ever: least share over corners, tokens and heads"
                f" at t = ∞. {certified_in_words(synthetic)}."
            ),
            measured=float(every["kept"].values.min()),
            low=1,
            high=1,
            because="a corner that gives a share of a head away moves inwards",
        ),
        Claim(
            text=(
                "Several heads near the identity: there are limits that are no corners: share of"
                f" the draws. {certified_in_words(select(near, heads=HEADS[1:]), 'draws')}."
            ),
            measured=float(inside.mean()),
            published="not mentioned",
            low=0.5 / len(inside),
            high=1,
            because=(
                "a token whose heads choose different corners comes to rest at their mean; with one"
                " head no token does"
            ),
            differs=(
                f"With one head: {int(np.sum(one['count'].values > one['corners'].values))} of"
                f" {one.sizes['row']} draws."
            ),
        ),
        Claim(
            text=(
                f"The runs that are shown come to the certified limits: largest distance at τ ="
                f" {SHOWN[-1]:g} over how far the token has still gone since τ = {SHOWN[-2]:g}, of"
                f" {np.isfinite(shown['off'].values).sum()} numbers of heads from 1 to 16."
            ),
            measured=float(np.nanmax(to_go)),
            low=0,
            high=slowest / (1 - slowest),
            because=(
                "with leaders that stay for a time s, what is left falls like e^(−s), with a drift"
                f" like (1 + s) e^(−s): to {slowest:.2g} at most, if they stay since τ ="
                f" {SHOWN[-2]:g}; another integrator, which knows of no limit"
            ),
            differs=(
                f"With e^(−τ) it is {fastest / (1 - fastest):.3g}. The distances are"
                f" {np.nanmin(shown['off'].values):.1g} to {np.nanmax(shown['off'].values):.1g} of"
                " the first diameter."
            ),
        ),
        Claim(
            text=(
                "With the heads' own V the hull need not shrink: share of the runs near the"
                " identity in which a token z = exp(−tW) x leaves the hull of the time before by"
                f" more than 1 % of the first diameter, up to τ = {WATCHED[-1]:g}."
            ),
            measured=float(np.mean(grown > 0.01)),
            low=0.5 / len(grown),
            high=1,
            because=(
                "the proposition needs V_h = c_h I; with other maps a follower is not drawn along a"
                " straight line"
            ),
        ),
        Claim(
            text=(
                f"The run with four heads agrees with SciPy's DOP853 at τ = {COMPARED:g}: largest"
                " difference over the largest token."
            ),
            measured=relative_difference(test["run"], test["exact"]),
            low=0,
            high=1e-6,
            because=(
                "both have the tolerance 1e-10; the rest is room for what a change of leader makes"
                " of it"
            ),
        ),
    ]
    if "trained" in data:
        facts = data["trained"].attrs
        result.append(
            Claim(
                text=(
                    f"{as_shown('Trained', facts['model'])} heads, V_h = I, seen in three principal"
                    f" components of {facts['d']} dimensions: the hull of what is seen never grows"
                    " either, over the first diameter."
                ),
                measured=float(data["trained"]["outward"].values.max()),
                low=-np.inf,
                high=1e-6,
                because=(
                    "a linear image of hulls that lie in each other; Runge and Kutta's steps of"
                    " 0.05 in τ keep weights that sum to 1, and those of saturated attention"
                    " positive"
                ),
            )
        )
    return result


def _left(shown: Any) -> tuple[np.ndarray, float, float]:
    """Return the distance of runs from their limits, over how far a token still went between the last
    two times, (number of heads,); and to which part of itself it falls in between, without and
    with a drift.
    """
    z, span = shown["z"].transpose("head_count", "tau", ...).values, SHOWN[-1] - SHOWN[-2]
    first = np.array([float(diameter(one[0])) for one in z])
    gone = np.linalg.norm(z[:, -1] - z[:, -2], axis=-1).max(axis=-1) / first
    return shown["off"].values / gone, float(np.exp(-span)), float((1 + span) * np.exp(-span))


def _trained_grow(data: Data) -> Data:
    return constant("trained", "outward", 0.1)(data) if "trained" in data else data


spoils = {
    "tokens drift outwards from the fourth tau on": replaced(
        "shown",
        "z",
        lambda z: np.concatenate(
            [z[:, :4], z[:, 4:] * np.linspace(1.05, 2.0, z.shape[1] - 4)[:, None, None]], axis=1
        ),
    ),
    "an edge too few": together(
        shifted("polytopes", "E", -1), shifted("polytopes", "residual", 1e-3)
    ),
    "heads counted backwards": replaced("ends", "heads", counted_backwards),
    "corners look elsewhere": together(
        scaled("ends", "kept", 0.5),
        constant("ends", "beyond", 0.01),
        changed("ends", lambda ends: ends.assign(count=ends["corners"])),
        constant("own", "outward", 0.0),
        _trained_grow,
    ),
    "runs that end elsewhere": shifted("shown", "off", 0.1),
    "tokens off by a thousandth": scaled("checks", "run", 1.001),
}
