"""Neural collapse of tokens: clusters become points at a known rate (NC1), but nothing makes a simplex of them (NC2)."""

from __future__ import annotations

from typing import Any

from attnlab.experiments.common.heads import HEADS, Trained
from attnlab.experiments.datasets import table_of_rows
from attnlab.experiments.parts import Part, Parts, Results
from attnlab.sweep.grid import Grid

from .runs import CURVES, PLANE, STARTS, TAUS, measure_group, measure_plane

GROUPS = [Grid({"family": [family], "start": [start], "values": [values], "heads": HEADS})
          for family, start, values in STARTS["full"]]


def assemble(results: Results) -> dict[str, Any]:
    """A row for every family, start, kind of values and number of heads, many starts each; and limits in the plane."""
    cases = table_of_rows(results.rows("cases"), axes=dict.fromkeys(CURVES, ("tau",)), why=results.why, model=results.shared.name)
    return {"cases": cases.assign_coords(tau=TAUS),
            "plane": table_of_rows(results.rows("plane"), starts=PLANE[results.size][0])}


compute = Parts(
    {
        "cases": Part(measure_group, GROUPS, "{family}, {start}, V {values}, {heads} heads", 0.95),
        "plane": Part(measure_plane, lambda size: Grid({"rng": range(PLANE[size][0])}), "the plane, start {rng}", 0.05),
    },
    prepare=Trained, leave_out=Trained.without, assemble=assemble,
)
