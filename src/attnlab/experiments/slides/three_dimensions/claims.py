"""The claims, and the spoils that break them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common import merging as flows
from attnlab.experiments.common.claims import relative_difference
from attnlab.experiments.common.heads import HEADS, as_shown, counted_backwards
from attnlab.experiments.common.portraits.run import outward
from attnlab.experiments.datasets import select
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, constant, replaced, scaled, shifted, together

from .experiment import COMPARED, MANY, SYNTHETIC, WATCHED, D


def chosen(data: Data, **where: Any) -> dict[str, np.ndarray]:
    """The columns of the cases with these entries."""
    return {
        str(name): column.values
        for name, column in select(data["cases"], **where).data_vars.items()
    }


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
    shown, test, found = data["shown"], data["checks"], data["polytopes"]
    solid = found["rank"].values == D
    V, E, F = (found[name].values[solid] for name in "VEF")
    near = {count: chosen(data, family="near", values="identity", heads=count) for count in HEADS}
    fewer = near[MANY]["corners"].astype(float) - near[1]["corners"]
    smaller = near[MANY]["volume"] - near[1]["volume"]
    still = chosen(data, values="identity", family=SYNTHETIC)
    at_rest = still["movement"] < flows.AT_REST
    formula = float(np.abs(V - E + F - 2).max()) if solid.any() else np.nan
    known = dict(zip(found["seed"].values.tolist(), found["V"].values.tolist(), strict=True))
    both = zip(near[1]["seed"].tolist(), near[1]["corners"], strict=True)
    counted = [corners != known[seed] for seed, corners in both if seed in known]
    several = chosen(data, family="near", values="identity", heads=HEADS[1:])
    inside = (several["clusters"] > several["corners"]) & (several["movement"] < flows.AT_REST)
    grown = chosen(data, values="own", family="near")["outward"]
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
                f"One head: the corners that are seen at τ = {flows.END:g} are as many as those of"
                f" the certified polytope: draws where not, of {len(counted)}."
            ),
            measured=float(np.sum(counted)),
            low=0,
            high=0,
            because="the certificate of t = ∞",
        ),
        Claim(
            text=(
                f"{MANY} heads near the identity leave fewer corners than one: mean difference,"
                " upper end of the 95 % interval."
            ),
            **less(fewer, "mean change of the number of corners"),
            because=(
                "a corner stands only if its token leads itself in every head, and each further"
                " head is one more condition"
            ),
            differs=(
                f"{near[1]['corners'].mean():.2g} corners with one head,"
                f" {near[MANY]['corners'].mean():.2g} with {MANY}."
            ),
        ),
        Claim(
            text=(
                f"Their polytope is smaller: its volume over that of the first hull, with {MANY}"
                " heads less with one, mean, upper end of the 95 % interval."
            ),
            **less(smaller, "mean change of the volume"),
            because="the hull shrinks for as long as a corner is pulled away by any head",
            differs=(
                f"{near[1]['volume'].mean():.2g} of the first volume with one head,"
                f" {near[MANY]['volume'].mean():.2g} with {MANY}."
            ),
        ),
        Claim(
            text=(
                "A corner keeps its attention in every head: least share over corners and heads of"
                f" {int(at_rest.sum())} runs at rest."
            ),
            measured=float(still["kept"][at_rest].min()),
            low=0.99,
            high=1 + 1e-12,
            because="a corner that gives a share of a head away moves inwards",
        ),
        Claim(
            text=(
                "Several heads near the identity: there are clusters at rest that are no corners:"
                " share of the runs."
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
                f"With one head: {int(np.sum(near[1]['clusters'] > near[1]['corners']))} of"
                f" {len(near[1]['seed'])} runs."
            ),
        ),
        Claim(
            text=(
                "With the heads' own V the hull need not shrink: share of the runs near the"
                " identity in which a token z = exp(−tW) x leaves the hull of the time before by"
                f" more than 1 % of the first diameter, up to τ = {WATCHED:g}."
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
    trained = chosen(data, family="trained", values="identity")["outward"]
    if len(trained):
        facts = data["trained"].attrs
        result.append(
            Claim(
                text=(
                    f"{as_shown('Trained', facts['model'])} heads, V_h = I, seen in three principal"
                    f" components of {facts['d']} dimensions: the hull of what is seen never grows"
                    " either, over the first diameter."
                ),
                measured=float(trained.max()),
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
    "heads counted backwards": replaced("cases", "heads", counted_backwards),
    "corners look elsewhere": together(
        scaled("cases", "kept", 0.5),
        changed("cases", lambda cases: cases.assign(clusters=cases["corners"])),
        constant("cases", "outward", 0.1),
        constant("cases", "outward", 0.0, where={"values": "own"}),
    ),
    "tokens off by a thousandth": scaled("checks", "run", 1.001),
}
