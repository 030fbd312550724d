"""V = diag(1, 1, -1/2): tokens approach the edges of a prism, the vertices of a polygon times a
line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.experiments.common.portraits import claims as shared
from attnlab.experiments.common.portraits import run as portraits
from attnlab.experiments.common.portraits.claims import spoils
from attnlab.experiments.common.portraits.numbers import (
    draw_approach,
    draw_counts,
    draw_euler,
    draw_law,
)
from attnlab.experiments.common.portraits.panels import draw_portrait, make_portrait
from attnlab.experiments.common.portraits.plane import draw_plane
from attnlab.experiments.common.portraits.run import film, film_options
from attnlab.experiments.datasets import limit_in
from attnlab.experiments.parts import Parts, Results
from attnlab.experiments.record import Claim, Data
from attnlab.render.style import house_style, new_figure, title
from attnlab.theory.statements.polytope import special_points
from attnlab.types import Spec

__all__ = ["film", "film_options", "spoils"]

STARTS = {"full": 100, "small": 10}

F, G = np.eye(3)[:2], np.eye(3)[2:]
"""Coordinates in F, where V = 1, and in G, where V = -1/2."""


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, and the authors' V."""
    del size
    return {
        "run": portraits.portrait_spec(
            {"family": "published", "matrix": "polytope_times_line"}, 40, 3, 12.0
        )
    }


def assemble(results: Results) -> dict[str, Any]:
    """The Datasets of the parts, and the set S in F."""
    data = portraits.assemble(results)
    corners = portraits.values_of(limit_in(data).limits @ F.T)
    return {
        **data,
        "special": xarray.Dataset({"S": (("point", "in_F"), special_points(corners, np.eye(2)))}),
    }


compute = Parts(
    {
        "run": portraits.run_part(specs("full")["run"], ("polytope_times_subspace",)),
        "starts": portraits.starts_part(specs("full")["run"], STARTS),
    },
    assemble,
)


def claims(data: Data) -> list[Claim]:
    """Theorem 5.2, the free coordinate, and what the published numerics are worth."""
    run, limit = portraits.drawn_from(data)
    points = limit.limits @ F.T
    corners = portraits.values_of(points)
    return [
        shared.supported(
            data,
            "polytope_times_subspace",
            "The theorem on (boundary of a polytope) × G holds",
            "theorem 5.2",
        ),
        Claim(
            text=(
                "The parts of the tokens in F end at the vertices of a polygon: limits that are no"
                " vertices of their hull."
            ),
            measured=float(0 if portraits.all_vertices(corners) else len(corners)),
            published="the boundary of a polygon, or 0",
            low=0,
            high=0,
            because=(
                "the theorem allows the boundary and 0; limits inside an edge or at 0 are"
                " presumably exceptional"
            ),
        ),
        shared.in_special_set(
            points, np.eye(2), "Every part in F ends in the finite set S, made with the block M_FF"
        ),
        shared.hull_never_grows(portraits.rescaled(run) @ F.T, "the parts in F"),
        shared.followers_approach(
            run, limit, F, -1.0, "In F tokens approach their leader like e^(−t)", "no rate given"
        ),
        shared.followers_approach(
            run,
            limit,
            G,
            0.5,
            "Along G tokens leave their leader like e^(t/2)",
            "nothing is claimed along G",
        ),
        shared.share_at_vertices(data, "All limits in F are vertices of the limit polygon"),
        shared.reaches_limit(data),
        shared.agrees(data),
        shared.first_order(data, " The largest errors are along G, where z itself grows."),
    ]


def figures(data: Data) -> dict[str, Any]:
    """The portrait in space, the same in F, and the numbers behind it."""
    run, limit = portraits.drawn_from(data)
    inside, ends, S = portraits.rescaled(run) @ F.T, limit.limits @ F.T, data["special"]["S"].values
    further = S[np.linalg.norm(S[:, None] - portraits.values_of(ends), axis=-1).min(axis=1) > 1e-6]
    with house_style():
        picture = make_portrait(run, limit)
        drawing: dict[str, Any] = {"special": further, "has_hull": True}
        main = draw_portrait(
            picture,
            portraits.PANELS,
            headline=(
                f"V = diag(1, 1, −1/2): {run.n} tokens z = exp(−tV) x approach the edges of a prism"
            ),
            note=(
                "Colour and marker: where a token ends.  Grey prism: (limit polygon in F) × G,"
                " certified; dashes: its edges.  Ring: leader.  Along G z is free, and drawn as at"
                " the start in the panel t\u00a0=\u00a0∞; before, the axis of z₃ grows with the"
                " tokens.  Last panel: from above."
            ),
            beside=lambda axes: draw_plane(
                axes,
                inside,
                ends,
                picture.groups,
                "The plane F, t = ∞",
                ("z₁", "z₂"),
                inside,
                is_end=True,
                label_above=True,
                **drawing,
            ),
        )
        plane = new_figure(9.4, 3.5)
        for number, (axes, t) in enumerate(
            zip(plane.subplots(1, 4), portraits.PANELS, strict=True)
        ):
            k = int(np.argmin(np.abs(run.times - t)))
            draw_plane(
                axes,
                inside[: k + 1],
                ends,
                picture.groups,
                f"t = {t:g}",
                ("z₁", "z₂" if number == 0 else ""),
                inside,
                **drawing,
            )
        title(
            plane,
            "The same tokens seen along G: in F they do what they do for V = I",
            "Grey: hull of the parts in F now, which never grows.  Hollow, dashes: the certified"
            " limits, their hull.  ×: other points of S.",
        )
        numbers = new_figure(7.8, 6.4)
        (above, beside), (left, right) = numbers.subplots(2, 2)
        draw_approach(
            above,
            run.times,
            np.linalg.norm(inside - ends, axis=-1),
            picture.groups,
            -1.0,
            limit.t,
            "e^(−t)",
            "Distance to the limit in F",
        )
        above.set_box_aspect(None)
        draw_law(
            beside,
            run.times,
            portraits.distance_to_leader(run, limit, G),
            0.5,
            max(limit.t, 2.0),
            "e^(t/2)",
            "Distance to the leader along G",
        )
        draw_euler(left, data)
        draw_counts(right, portraits.counts_of(data["starts"]), "limits in F, all of them vertices")
        title(
            numbers,
            "A polygon times a line: how fast, how well, how many",
            "In F tokens arrive like e^(−t); along G they leave their leader like e^(t/2) (dotted:"
            f" theory). Below: the published scheme at T = 5, and {data['starts'].sizes['start']}"
            " other starts, all certified.",
        )
    return {
        "polytope_times_line": main,
        "polytope_times_line_in_F": plane,
        "polytope_times_line_numbers": numbers,
    }
