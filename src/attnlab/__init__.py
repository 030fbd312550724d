"""attnlab: a laboratory for the dynamics of self-attention.

    import attnlab as al
    run = al.simulate(al.Weights(V=np.eye(3)), x0, t_end=5.0)
    al.plot(run).savefig("run.png")

Names are looked up when they are first used: importing attnlab loads neither numba, matplotlib nor xarray, and not even NumPy,
so that `attnlab --help` answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from attnlab.registry import UnknownName, import_name

if TYPE_CHECKING:
    from attnlab.progress import Cancelled, Progress
    from attnlab.types import (
        Dynamics,
        Event,
        FeedForward,
        Grade,
        Limit,
        NoRescaledFrame,
        RunFailed,
        RunInterrupted,
        Solve,
        Spec,
        Status,
        Trajectory,
        Weights,
    )

__version__ = "0.1.0"

_RECORDS = {
    **dict.fromkeys(["Cancelled", "Progress"], "attnlab.progress"),
    **dict.fromkeys(["Dynamics", "Event", "FeedForward", "Grade", "Limit", "NoRescaledFrame", "RunFailed", "RunInterrupted",
                     "Solve", "Spec", "Status", "Trajectory", "Weights"], "attnlab.types"),
}

_LAZY = {
    "simulate": "attnlab.engine",
    "velocity": "attnlab.engine",
    "limit": "attnlab.limits",
    "predict": "attnlab.theory",
    "check": "attnlab.theory",
    "attention": "attnlab.dynamics",
    "kernels": "attnlab.axes.kernels",
    "masks": "attnlab.axes.masks",
    "spaces": "attnlab.axes.spaces",
    "scores": "attnlab.axes.scores",
    "reads": "attnlab.axes.reads",
    "writes": "attnlab.axes.writes",
    "speeds": "attnlab.axes.speeds",
    "drifts": "attnlab.axes.drifts",
    "noises": "attnlab.axes.noises",
    "run_spec": "attnlab.run",
    "resolve": "attnlab.run",
    "save": "attnlab.store",
    "load": "attnlab.store",
    "to_xarray": "attnlab.store",
    "Verdict": "attnlab.verdicts",
    "Outcome": "attnlab.verdicts",
    "Prediction": "attnlab.verdicts",
    "verify": "attnlab.verification",
    "Verification": "attnlab.limits.verification.record",
    "plot": "attnlab.render",
    "movie": "attnlab.render",
    "explore": "attnlab.explorer",
    "Explorer": "attnlab.explorer",
    "reproduce": "attnlab.experiments",
    "Sweep": "attnlab.sweep.definition",
}

__all__ = [
    "Cancelled", "Dynamics", "Event", "FeedForward", "Grade", "Limit", "NoRescaledFrame", "Progress", "RunFailed",
    "RunInterrupted", "Solve", "Spec", "Status", "Trajectory", "UnknownName", "Weights",
    *_LAZY, "models", "sweep",
]


_FOLDERS = ("models", "sweep")
"""Packages that are names of attnlab themselves: al.models.load, al.sweep.load."""


def __getattr__(name: str) -> Any:
    if name in __all__:
        importlib.import_module("attnlab.dynamics")     # before all others, because it imports its own modules; see import_name
    if name in _FOLDERS:
        return importlib.import_module(f"attnlab.{name}")
    return import_name(__name__, _RECORDS | _LAZY, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_RECORDS, *_LAZY, *_FOLDERS})
