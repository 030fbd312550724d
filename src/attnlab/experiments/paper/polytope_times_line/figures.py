"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.portraits.numbers import draw_approach, draw_counts, draw_euler, draw_law
from attnlab.experiments.common.portraits.panels import draw_portrait, make_portrait
from attnlab.experiments.common.portraits.plane import draw_plane
from attnlab.experiments.common.portraits.run import (
    PANELS,
    counts_of,
    distance_to_leader,
    drawn_from,
    film,
    film_options,
    rescaled,
    values_of,
)  # fmt: skip
from attnlab.experiments.record import Data
from attnlab.render.style import house_style, new_figure, title

from .experiment import F, G

__all__ = ["figures", "film", "film_options"]


def figures(data: Data) -> dict[str, Any]:
    """The portrait in space, the same in F, and the numbers behind it."""
    run, limit = drawn_from(data)
    inside, ends, S = rescaled(run) @ F.T, limit.limits @ F.T, data["special"]["S"].values
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
        draw_euler(left, data)
        draw_counts(right, counts_of(data["starts"]), "limits in F, all of them vertices")
        title(numbers, "A polygon times a line: how fast, how well, how many",
              "In F tokens arrive like e^(−t); along G they leave their leader like e^(t/2) (dotted: theory). Below: the "
              f"published scheme at T = 5, and {data['starts'].sizes['start']} other starts, all certified.")
    return {"polytope_times_line": main, "polytope_times_line_in_F": plane, "polytope_times_line_numbers": numbers}
