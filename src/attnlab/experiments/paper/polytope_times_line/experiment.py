"""V = diag(1, 1, -1/2): tokens approach the edges of a prism, the vertices of a polygon times a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.experiments.common.portraits import run as portraits
from attnlab.progress import Progress
from attnlab.theory.statements.polytope import special_points
from attnlab.types import Spec

STARTS = {"full": 100, "small": 10}

F, G = np.eye(3)[:2], np.eye(3)[2:]
"""Coordinates in F, where V = 1, and in G, where V = -1/2."""


def specs(size: str) -> dict[str, Spec]:
    """Forty tokens in the cube, and the authors' V."""
    del size
    return {"run": portraits.portrait_spec({"family": "published", "matrix": "polytope_times_line"}, 40, 3, 12.0)}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and verdicts, other integrators, the set S in F, and more starts."""
    data = portraits.portrait(specs(size)["run"], progress.part(0.0, 0.5), ("polytope_times_subspace",))
    run, limit = portraits.drawn_from(data)
    corners = portraits.values_of(limit.limits @ F.T)
    data["special"] = xarray.Dataset({"S": (("point", "in_F"), special_points(corners, np.eye(2)))})
    data["starts"] = portraits.limits_of_starts(run.dynamics.weights, run.n, STARTS[size], progress.part(0.5, 1.0))
    return data
