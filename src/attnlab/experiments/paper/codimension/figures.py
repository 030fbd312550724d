"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.common.portraits.numbers import draw_counts, draw_euler, draw_group_count, draw_law
from attnlab.experiments.common.portraits.panels import draw_portrait, make_portrait
from attnlab.experiments.common.portraits.plane import draw_cross, draw_plane
from attnlab.experiments.common.portraits.run import PANELS, at_time, counts_of, drawn_from, film, film_options
from attnlab.experiments.record import Data
from attnlab.render.style import house_style, new_figure, set_layout, title

from .claims import groups_in_time
from .experiment import CROSS

__all__ = ["figures", "film", "film_options"]


def figures(data: Data) -> dict[str, Any]:
    """The portrait, how the groups merge, and the symmetric exceptions."""
    run, limit = drawn_from(data)
    groups = groups_in_time(limit)
    values, right = np.linalg.eigh(run.dynamics.weights.full_V[0])
    order = np.argsort(-values)
    inside = limit.path @ limit.basis.T @ right[:, order[:2]]                                      # (T, n, 2)
    ends = limit.limits @ right[:, order[:2]]
    with house_style():
        picture = make_portrait(run, limit)
        main = draw_portrait(
            picture, PANELS, headline=f"Two growing eigenvalues: {run.n} tokens z = exp(−tV) x approach two lines, but not by "
                "T = 5",
            note="Colour: where a token ends.  Dashes: the two limiting lines, certified; along them z is free, and drawn as "
            "at the start in the panel t\u00a0=\u00a0∞.  Ring: leader.  Last panel: the groups of the parts in F, at 1 % of "
            "their first diameter.",
            beside=lambda axes: draw_group_count(axes, limit.times, groups, 28.0 / float(values.max())))
        plane = new_figure(9.4, 3.6)
        history = np.concatenate([at_time(run, 0.0)[None] @ right[:, order[:2]], inside])
        clock = np.concatenate([[0.0], limit.times])
        for number, (axes, t) in enumerate(zip(plane.subplots(1, 4), (0.0, 5.0, 10.0, 20.0), strict=True)):
            k = int(np.argmin(np.abs(clock - t)))
            labels = (f"along φ₁ (λ₁ = {values[order[0]]:.3f})", f"along φ₂ (λ₂ = {values[order[1]]:.3f})" if number == 0 else "")
            draw_plane(axes, history[: k + 1], ends, picture.groups, f"t = {clock[k]:g}", labels, history)
        title(plane, "The same tokens in F, the plane of the growing directions: past T = 5, and past double precision",
              "Hollow: the certified limits. The fast coordinate is settled by T = 5; the slow one falls like e^(−0.253 t). "
              "Double precision, used naively, ends near t = 14; the flow past it is event-driven.")
        set_layout(plane, w_pad=0.04)
        numbers = new_figure(7.8, 6.4)
        (above, beside), (left, below) = numbers.subplots(2, 2)
        slow = np.abs((limit.z - limit.z[:, limit.leaders]) @ right[:, order[1]]).max(axis=1)
        draw_law(above, limit.times, slow, -float(values[order[1]]), 2.0, "e^(−0.253 t)",
                 "Slow coordinate: distance to the leader")
        draw_counts(beside, counts_of(data["starts"]), "limits in F")
        draw_euler(left, data)
        draw_cross(below, data["symmetric"]["limits"].values[1, 0, :4], CROSS, float(data["symmetric"]["on_axis"]))
        title(numbers, "Codimension conjecture: two lines for random starts, four for symmetric ones",
              f"Above: the slow law, and {data['starts'].sizes['start']} random starts, all certified. Below: the published "
              "scheme at T = 5; and the cross that stays on its axes, with four limits at the distance that a scalar equation "
              "gives (circle).")
    return {"codimension": main, "codimension_in_F": plane, "codimension_numbers": numbers}
