"""The figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments.record import Data
from attnlab.render.coordinates_figure import clustered_figure, growing_figure, rates_figure

from .claims import euler_rate, integrated_rates, rates
from .experiment import STEP, spread


def figures(data: Data) -> dict[str, Any]:
    """All coordinates at once; then some that cluster, and some that grow."""
    coordinates, euler = data["coordinates"], data["euler_spread"]
    t, value, values, leader, label, points = (
        coordinates[name].values for name in ("time", "value", "eigenvalue", "leader", "label", "limit"))
    decided, wall = coordinates.attrs["decided"], float(data["run"]["time"].values[-1])
    k = int((values > 0).sum())
    chosen = np.unique(np.concatenate([[0], np.linspace(1, k - 1, 5).astype(int)]))
    growing = np.unique(np.linspace(k, len(values) - 1, 5).astype(int))[::-1]
    return {
        "high_dimension": rates_figure(
            t, spread(value, leader), values, integrated_rates(data), decided=decided, wall=wall, dt=STEP, euler_rate=euler_rate,
            euler_rates=rates(euler["time"].values, euler["spread"].values, 0.0)),
        "clustered_coordinates": clustered_figure(t, value, values, label, points, chosen, wall=wall, until=8.0),
        "growing_coordinates": growing_figure(t, value, values, leader, label, growing, wall=wall, decided=decided, dt=STEP),
    }
