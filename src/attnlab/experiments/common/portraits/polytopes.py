"""V = I: tokens tend to the vertices of a polytope, in the plane and in space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray

from attnlab.experiments.common.portraits import claims as shared
from attnlab.experiments.common.portraits import run as portraits
from attnlab.experiments.common.portraits.numbers import draw_approach, draw_counts, draw_euler
from attnlab.experiments.common.portraits.panels import draw_portrait, make_portrait
from attnlab.experiments.parts import Parts, Results
from attnlab.experiments.record import Claim, Data
from attnlab.render.style import house_style, new_figure, title
from attnlab.theory.statements.polytope import special_points
from attnlab.types import Spec


def with_special(results: Results) -> dict[str, Any]:
    """The Datasets of the parts, and the set S of the limit polytope."""
    data = portraits.assemble(results)
    run, limit = portraits.drawn_from(data)
    special = special_points(portraits.values_of(limit.limits), run.dynamics.weights.M[0])
    return {**data, "special": xarray.Dataset({"S": (("point", "coordinate"), special)})}


@dataclass(frozen=True)
class Polytopes:
    """The portrait of n tokens in R^d with V = I, long enough for every token to be near its
    vertex.

    noun: what the limits are the vertices of. starts: how many more starts there are, by size.
    """

    name: str
    n: int
    d: int
    noun: str
    starts: Mapping[str, int]

    def specs(self, size: str) -> dict[str, Spec]:
        """The run."""
        del size
        return {"run": portraits.portrait_spec({"family": "identity"}, self.n, self.d, 12.0)}

    @property
    def compute(self) -> Parts:
        """The run with its limit, verdicts and other integrators; more starts; and the set S."""
        spec = self.specs("full")["run"]
        return Parts(
            {
                "run": portraits.run_part(spec, ("polytope", "hull_shrinks")),
                "starts": portraits.starts_part(spec, self.starts),
            },
            with_special,
        )

    def claims(self, data: Data) -> list[Claim]:
        """Theorem 3.1 and the proposition on the hull, and what the published numerics are
        worth.
        """
        run, limit = portraits.drawn_from(data)
        M, at_five = (
            run.dynamics.weights.M[0],
            np.linalg.norm(portraits.at_time(run, 5.0) - limit.limits, axis=-1).max(),
        )
        leads = limit.leaders == np.arange(run.n)
        vertices = portraits.values_of(limit.limits)
        without = [
            u
            for u in vertices
            if not (leads & (np.linalg.norm(limit.limits - u, axis=1) < 1e-6)).any()
        ]
        return [
            shared.supported(data, "polytope", "The polytope theorem holds", "theorem 3.1"),
            shared.in_special_set(
                limit.limits, M, "Every token ends in the finite set S of the theorem"
            ),
            shared.hull_never_grows(portraits.rescaled(run), "the rescaled tokens"),
            Claim(
                text=(
                    "At each limit sits a token that attends to itself in the end (a leader):"
                    " limits without one."
                ),
                measured=float(len(without)),
                published="leaders sit at the vertices",
                low=0,
                high=0,
                because=(
                    "no token is farther out in the direction of a vertex, so the token at a vertex"
                    " keeps itself"
                ),
            ),
            shared.followers_approach(
                run,
                limit,
                np.eye(run.d),
                -1.0,
                "Tokens approach their leader like e^(−t)",
                "no rate given",
                f"At the published T = 5 a token is still {at_five:.2g} from its limit.",
            ),
            shared.share_at_vertices(data, "All limits are vertices of the limit polytope"),
            shared.reaches_limit(data),
            shared.agrees(data),
            shared.first_order(data),
        ]

    def figures(self, data: Data) -> dict[str, Any]:
        """The portrait, and the numbers behind it."""
        run, limit = portraits.drawn_from(data)
        S, vertices = data["special"]["S"].values, portraits.values_of(limit.limits)
        is_vertex = np.linalg.norm(S[:, None] - vertices, axis=-1).min(axis=1) < 1e-6
        with house_style():
            picture = make_portrait(run, limit, special=S[~is_vertex])
            hulls = "now (grey dashes: at the start)" if run.d == 2 else "now"
            main = draw_portrait(
                picture,
                portraits.PANELS,
                headline=(
                    f"V = I: {run.n} tokens z = exp(−t) x end at the {len(vertices)} vertices of a"
                    f" {self.noun}"
                ),
                note=(
                    "Colour and marker: where a token ends.  Hollow: certified limits; black"
                    f" dashes: their hull.  Ring: leader.  Grey: hull of the tokens {hulls}. "
                    f" Numbers: tokens at each limit.  ×: the {(~is_vertex).sum()} points of S that"
                    " are no vertices: no token ends there."
                ),
                beside=lambda axes: draw_approach(
                    axes,
                    run.times,
                    portraits.distances(run, limit),
                    picture.groups,
                    -1.0,
                    limit.t,
                    "e^(−t)",
                ),
            )
            numbers = new_figure(7.6, 3.6)
            left, right = numbers.subplots(1, 2)
            draw_euler(left, data)
            counts = portraits.counts_of(data["starts"])
            draw_counts(right, counts, "limits, all of them vertices")
            title(
                numbers,
                f"V = I, d = {run.d}: the published scheme at T = 5, and {len(counts)} other"
                " starts",
                "Left: distance of Euler steps to an accurate solution, and the law dt of a"
                f" first-order scheme. Right: how many limits {run.n} tokens uniform in the cube"
                " have, certified for every start.",
            )
        return {self.name: main, f"{self.name}_numbers": numbers}
