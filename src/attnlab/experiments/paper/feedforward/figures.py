"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.datasets import run_in
from attnlab.experiments.record import Data
from attnlab.render.feedforward_figure import coordinates_figure, draws_figure, rows_figure

from .claims import NEAR_ZERO, chosen, on_planes, share
from .experiment import CASES, LAWS, ROWS, drawn, growth, layer, velocity

SETTINGS = {"plane": "published V, d = 2", "space": "published V, d = 3", "family": "random good triples, d = 3"}


def figures(data: Data) -> dict[str, Any]:
    """The three rows over time; what they did in many draws; what can be proved."""
    V, _, W = drawn("plane", "cube", 0)
    runs = {row: run_in(data, row) for row in ROWS}
    z = {row: np.asarray(run.z) for row, run in runs.items()}
    grown = growth(V)(float(runs["relu"].times[-1]))
    rest = {row: np.all(velocity(V, grown, layer(row, W), z[row][-1]) == 0, axis=1) for row in ROWS}
    values, left = np.linalg.eig(V.T)
    normal = np.real(left[:, np.argmax(values.real)])
    cells = [(row, setting, law, chosen(data["draws"], row, law, setting)) for row in ROWS for setting, law in CASES]
    strips = [(row, SETTINGS[setting], law, lines["size"].values / lines["first_size"].values, share(on_planes(lines)))
              for row, setting, law, lines in cells]
    rising = {row: z[row] @ (np.linalg.inv(W).T if row == "random" else np.eye(2)) for row in ROWS}
    t = runs["relu"].times
    return {"feedforward": rows_figure(t, z, ROWS, rest, normal),
            "feedforward_draws": draws_figure(strips, ROWS, LAWS, near_zero=NEAR_ZERO),
            "feedforward_coordinates": coordinates_figure(t, rising, ROWS)}
