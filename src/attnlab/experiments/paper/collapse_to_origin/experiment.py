"""V = -I: every token tends to 0, attention to the uniform one, and not exponentially but like t^(-1/2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray

from attnlab.analysis.energy import log_pair_sum
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.dynamics import attention
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import run_in
from attnlab.progress import Progress
from attnlab.types import Spec

TIMES = {"full": 4000.0, "small": 400.0}


def specs(size: str) -> dict[str, Spec]:
    """Twelve tokens in R^3, as long as it takes for the law to be seen."""
    times = [0.0, *np.geomspace(0.01, TIMES[size], 161).tolist()]
    return {"run": Spec(weights={"family": "identity", "scale": -1.0}, start={"law": "normal", "n": 12, "d": 3, "rng": 4},
                        solve={"t_end": TIMES[size], "times": times, "rtol": 1e-10, "measure_error": True})}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run, its limit and the verdicts, and the numbers of the figure over time."""
    data = study(specs(size)["run"], progress, names=["collapse_to_origin"])
    run = run_in(data)
    P = np.stack([attention(run, at=k)[0] for k in range(len(run.times))])                      # (T, n, n)
    data["over_time"] = xarray.Dataset(
        {
            "mean_square": ("time", (run.x**2).sum(axis=2).mean(axis=1)),
            "centre": ("time", np.linalg.norm(run.x.mean(axis=1), axis=-1)),
            "log_energy": ("time", log_pair_sum(run.x)),
            "attention_low": ("time", P.min(axis=(1, 2))),
            "attention_high": ("time", P.max(axis=(1, 2))),
        },
        coords={"time": run.times},
        attrs={"n": run.n, "rank": int(np.linalg.matrix_rank(run.x[0] - run.x[0].mean(axis=0)))},
    )
    times = run.times[[40, 80, 120, 161]]
    tokens = flow_by_scipy(run.dynamics.weights, run.x[0], times, rtol=1e-11, atol=1e-13)
    data["independent"] = xarray.Dataset({"x": (("time", "token", "coordinate"), tokens)}, {"time": times})
    return data
