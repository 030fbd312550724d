"""V = diag(1, 1, -1/2): tokens approach the edges of a prism, the vertices of a polygon times a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.portraits import (
    CITE,
    PANELS,
    agrees,
    all_vertices,
    counts_of,
    drawn_from,
    film,
    first_order,
    followers_approach,
    hull_never_grows,
    in_special_set,
    limits_of_starts,
    portrait,
    portrait_spec,
    reaches_limit,
    share_at_vertices,
    spoils,
    supported,
    values_of,
)
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.progress import Progress
from attnlab.types import Spec

STARTS = {"full": 100, "small": 10}
F, G = np.eye(3)[:2], np.eye(3)[2:]
"""Coordinates in F, where V = 1, and in G, where V = -1/2."""


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, and the authors' V."""
    del size
    return {"run": portrait_spec({"family": "published", "matrix": "polytope_times_line"}, 40, 3, 12.0)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and verdicts, other integrators, the set S in F, and more starts."""
    import xarray

    from attnlab.theory.statements.polytope import special_points

    data = portrait(specs(size)["run"], progress.part(0.0, 0.5), ("polytope_times_subspace",))
    run, limit = drawn_from(data)
    data["special"] = xarray.Dataset({"S": (("point", "in_F"), special_points(values_of(limit.limits @ F.T), np.eye(2)))})
    data["starts"] = limits_of_starts(run.dynamics.weights, run.n, STARTS[size], progress.part(0.5, 1.0))
    return data


def claims(data: Data) -> list[Claim]:
    """Theorem 5.2, the free coordinate, and what the published numerics are worth."""
    run, limit = drawn_from(data)
    assert run.z is not None
    points = limit.limits @ F.T
    corners = values_of(points)
    return [
        supported(data, "polytope_times_subspace", "The theorem on (boundary of a polytope) × G holds", "theorem 5.2"),
        Claim(text="The parts of the tokens in F end at the vertices of a polygon: limits that are no vertices of their hull.",
              measured=float(0 if all_vertices(corners) else len(corners)), published="the boundary of a polygon, or 0", low=0,
              high=0, because="the theorem allows the boundary and 0; limits inside an edge or at 0 are presumably exceptional"),
        in_special_set(points, np.eye(2), "Every part in F ends in the finite set S, made with the block M_FF"),
        hull_never_grows(run.z @ F.T, "the parts in F"),
        followers_approach(run, limit, F, -1.0, "In F tokens approach their leader like e^(−t)", "no rate given"),
        followers_approach(run, limit, G, 0.5, "Along G tokens leave their leader like e^(t/2)", "nothing is claimed along G"),
        share_at_vertices(data, "All limits in F are vertices of the limit polygon"),
        reaches_limit(data),
        agrees(data),
        first_order(data, " The largest errors are along G, where z itself grows."),
    ]


def figures(data: Data) -> dict[str, Any]:
    """The portrait in space, the same in F, and the numbers behind it."""
    from attnlab.experiments.common.portraits import distance_to_leader
    from attnlab.render.portrait import draw_portrait, make_portrait
    from attnlab.render.portrait_numbers import draw_approach, draw_counts, draw_euler, draw_law
    from attnlab.render.portrait_plane import draw_plane
    from attnlab.render.style import house_style, new_figure, title

    run, limit = drawn_from(data)
    assert run.z is not None
    inside, ends, S = run.z @ F.T, limit.limits @ F.T, data["special"]["S"].values
    further = S[np.linalg.norm(S[:, None] - values_of(ends), axis=-1).min(axis=1) > 1e-6]
    with house_style():
        picture = make_portrait(run, limit)
        drawing: dict[str, Any] = {"special": further, "has_hull": True}
        main = draw_portrait(
            picture, PANELS, headline=f"V = diag(1, 1, −1/2): {run.n} tokens z = exp(−tV) x approach the edges of a prism",
            note="Colour and marker: where a token ends.  Grey prism: (limit polygon in F) × G, certified; dashes: its edges.  "
            "Ring: leader.  Along G z is free, and drawn as at the start in the panel t\u00a0=\u00a0∞; before, the axis of z₃ "
            "grows with the tokens.  Last panel: from above.",
            beside=lambda axes: draw_plane(axes, inside, ends, picture.groups, "The plane F, t = ∞", ("z₁", "z₂"), inside,
                                           is_end=True, label_above=True, **drawing))
        plane = new_figure(9.4, 3.5)
        for number, (axes, t) in enumerate(zip(plane.subplots(1, 4), PANELS, strict=True)):
            k = int(np.argmin(np.abs(run.times - t)))
            draw_plane(axes, inside[: k + 1], ends, picture.groups, f"t = {t:g}", ("z₁", "z₂" if number == 0 else ""), inside,
                       **drawing)
        title(plane, "The same tokens seen along G: in F they do what they do for V = I",
              "Grey: hull of the parts in F now, which never grows.  Hollow, dashes: the certified limits, their hull.  ×: "
              "other points of S.")
        numbers = new_figure(7.8, 6.4)
        (above, beside), (left, right) = numbers.subplots(2, 2)
        draw_approach(above, run.times, np.linalg.norm(inside - ends, axis=-1), picture.groups, -1.0, limit.t, "e^(−t)",
                      "Distance to the limit in F")
        above.set_box_aspect(None)
        draw_law(beside, run.times, distance_to_leader(run, limit, G), 0.5, max(limit.t, 2.0), "e^(t/2)",
                 "Distance to the leader along G")
        draw_euler(left, data["numerics"])
        draw_counts(right, counts_of(data["starts"]), "limits in F, all of them vertices")
        title(numbers, "A polygon times a line: how fast, how well, how many",
              "In F tokens arrive like e^(−t); along G they leave their leader like e^(t/2) (dotted: theory). Below: the "
              f"published scheme at T = 5, and {data['starts'].sizes['start']} other starts, all certified.")
    return {"polytope_times_line": main, "polytope_times_line_in_F": plane, "polytope_times_line_numbers": numbers}


experiments.register("polytope_times_line")(
    Experiment(
        name="polytope_times_line",
        title="V = diag(1, 1, −1/2): tokens approach the edges of a prism",
        cite=f"{CITE}, sections 5 and 10",
        about="Forty tokens, uniform in a cube. V is the identity on a plane F and shrinks the line G. The theorem says that "
        "rescaled tokens approach (the boundary of a polygon in F, or 0) × G: seen along G they behave as with V = I, and tend "
        "to the vertices of a polygon; along G nothing is claimed, and z grows there like e^(t/2).\n\n"
        "The paper's proof describes the possible limits by a set made with the projection of Q^T K's square root; its "
        "argument has a gap, and the set that the flow itself has is made with the block M_FF. For Q = K = I, as here, both "
        "are the same.\n\n"
        "The published picture ends at T = 5 with Euler steps dt = 0.1, which are off by several units along G by then, and by "
        "little in F.",
        compute=compute,
        claims=claims,
        figures=figures,
        movie=film,
        movie_options={"kind": "tokens", "frames": 100},
        specs=specs,
        spoils=spoils(),
    )
)
