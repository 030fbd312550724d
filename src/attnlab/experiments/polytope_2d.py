"""V = I in the plane: tokens tend to the vertices of a polygon."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.common.portraits import (
    CITE,
    PANELS,
    agrees,
    distances,
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

STARTS = {"full": 100, "small": 12}
RESULTS = ("polytope", "hull_shrinks")


def specs(size: str) -> dict[str, Spec]:
    """Twenty tokens in the square, long enough for every token to be near its vertex."""
    del size
    return {"run": portrait_spec({"family": "identity"}, 20, 2, 12.0)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and verdicts, other integrators, the set S, and more starts."""
    return compute_polytope(specs(size)["run"], STARTS[size], progress)


def compute_polytope(spec: Spec, count: int, progress: Progress) -> dict[str, Any]:
    """The same for the plane and for space."""
    import xarray

    from attnlab.theory.statements.polytope import special_points

    data = portrait(spec, progress.part(0.0, 0.5), RESULTS)
    run, limit = drawn_from(data)
    special = special_points(values_of(limit.limits), run.dynamics.weights.M[0])
    data["special"] = xarray.Dataset({"S": (("point", "coordinate"), special)})
    data["starts"] = limits_of_starts(run.dynamics.weights, run.n, count, progress.part(0.5, 1.0))
    return data


def claims(data: Data) -> list[Claim]:
    """Theorem 3.1 and the proposition on the hull, and what the published numerics are worth."""
    run, limit = drawn_from(data)
    assert run.z is not None
    M, away = run.dynamics.weights.M[0], distances(run, limit)
    at_five = away[int(np.argmin(np.abs(run.times - 5.0)))].max()
    leads = limit.leaders == np.arange(run.n)
    without = [u for u in values_of(limit.limits) if not (leads & (np.linalg.norm(limit.limits - u, axis=1) < 1e-6)).any()]
    return [
        supported(data, "polytope", "The polytope theorem holds", "theorem 3.1"),
        in_special_set(limit.limits, M, "Every token ends in the finite set S of the theorem"),
        hull_never_grows(run.z, "the rescaled tokens"),
        Claim(text="Each of the limits is the place of a token that attends to itself in the end (a leader): limits without "
              "one.", measured=float(len(without)), published="leaders sit at the vertices", low=0, high=0,
              because="nothing else is farther out in the direction of a vertex, so its token keeps itself"),
        followers_approach(run, limit, np.eye(run.d), -1.0, "Tokens approach their leader like e^(−t)", "no rate given",
                           f"At the published T = 5 a token is still {at_five:.2g} from its limit."),
        share_at_vertices(data, "All limits are vertices of the limit polytope"),
        reaches_limit(data),
        agrees(data),
        first_order(data),
    ]


def figures(data: Data) -> dict[str, Any]:
    """The portrait, and the numbers behind it."""
    return polytope_figures(data, "polytope_2d", "polygon")


def polytope_figures(data: Data, name: str, noun: str) -> dict[str, Any]:
    """The same for the plane and for space."""
    from attnlab.render.portrait import draw_portrait, make_portrait
    from attnlab.render.portrait_numbers import draw_approach, draw_counts, draw_euler
    from attnlab.render.style import house_style, new_figure, title

    run, limit = drawn_from(data)
    S, vertices = data["special"]["S"].values, values_of(limit.limits)
    is_vertex = np.linalg.norm(S[:, None] - vertices, axis=-1).min(axis=1) < 1e-6
    away = distances(run, limit)
    with house_style():
        picture = make_portrait(run, limit, special=S[~is_vertex])
        further = f"  ×: the {(~is_vertex).sum()} points of S that are no vertices: nobody ends there."
        main = draw_portrait(
            picture, PANELS, headline=f"V = I: {run.n} tokens z = exp(−t) x end at the {len(vertices)} vertices of a {noun}",
            note="Colour and marker: where a token ends.  Hollow: certified limits; black dashes: their hull.  Ring: leader.  "
            f"Grey: hull of the tokens now{' (grey dashes: at the start)' if run.d == 2 else ''}.  Numbers: tokens at each "
            f"limit.{further}",
            beside=lambda axes: draw_approach(axes, run.times, away, picture.groups, -1.0, limit.t, "e^(−t)"))
        numbers = new_figure(7.6, 3.6)
        left, right = numbers.subplots(1, 2)
        draw_euler(left, data["numerics"])
        counts = np.array([len(values_of(points)) for points in data["starts"]["points"].values])
        draw_counts(right, counts, "limits, all of them vertices")
        title(numbers, f"V = I, d = {run.d}: the published scheme at T = 5, and {len(counts)} other starts",
              "Left: distance of Euler steps to an accurate solution, and the law dt of a first-order scheme. Right: how many "
              f"limits {run.n} tokens uniform in the cube have, certified for every start.")
    return {name: main, f"{name}_numbers": numbers}


experiments.register("polytope_2d")(
    Experiment(
        name="polytope_2d",
        title="V = I in the plane: tokens end at the vertices of a polygon",
        cite=f"{CITE}, sections 3 and 8",
        about="Twenty tokens, uniform in a square, with V = I. Rescaled by exp(−t) they stay in their convex hull, which "
        "shrinks, and tend to the vertices of a limiting polygon. A few tokens lead: they sit at the vertices and attend to "
        "themselves; the others each choose one and follow it.\n\n"
        "The theorem allows finitely many further limits, the points u of the polygon in which the largest of ⟨u, v⟩ over its "
        "vertices v is ⟨u, u⟩. They are marked in the picture; no token of a random start ends there.\n\n"
        "The published picture stops at T = 5 and steps with forward Euler, dt = 0.1. Here the end is certified, and the "
        "panels in time show it beforehand: the polygon of T = 5 is nearly right, but the slowest token may still be on its way.",
        compute=compute,
        claims=claims,
        figures=figures,
        movie=film,
        movie_options={"kind": "tokens", "frames": 100},
        specs=specs,
        spoils=spoils(),
    )
)
