"""Neural collapse of tokens: clusters become points at a known rate (NC1), but nothing makes a simplex of them (NC2).

The runs are in neural_collapse_runs.py, what is claimed of them in neural_collapse_claims.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.engine.threads import one_blas_thread
from attnlab.experiments.common import heads as slides
from attnlab.progress import Progress

from .runs import TAUS, cases_of, group_rows, plane_limits


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """A row for every family, start, kind of values and number of heads, many starts each; and limits in the plane."""
    trained, why = slides.trained_model(size, model)
    cases, rows = cases_of(size, trained), []
    with one_blas_thread():
        for done, case in enumerate(cases):
            family, start, values, count, _ = case
            progress(0.95 * done / len(cases), f"{family}, {start}, V {values}, {count} heads")
            rows += group_rows(case, size, trained)
        data = {"cases": gathered(rows), "plane": plane_limits(size, progress.part(0.95, 1.0))}
    data["cases"].attrs.update(why=why, model="" if trained is None else trained.name)
    return data


def gathered(rows: list[dict[str, Any]]) -> Any:
    """The rows as one Dataset; entries that are arrays are curves over τ."""
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return xarray.Dataset({name: (("row", "tau") if column.ndim == 2 else "row", column) for name, column in columns.items()},
                          coords={"tau": TAUS})
