"""attnlab: a laboratory for the dynamics of self-attention.

    import attnlab as al
    run = al.simulate(al.Weights(V=np.eye(3)), x0, t_end=5.0)
    al.plot(run).savefig("run.png")

Names are imported when they are first used. `import attnlab` loads neither NumPy, numba, matplotlib
nor xarray, so `attnlab --help` answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from attnlab.registry import UnknownName, import_name

if TYPE_CHECKING:
    from attnlab import models as models
    from attnlab import sweep as sweep
    from attnlab.axes.drifts import drifts as drifts
    from attnlab.axes.kernels import kernels as kernels
    from attnlab.axes.masks import masks as masks
    from attnlab.axes.noises import noises as noises
    from attnlab.axes.reads import reads as reads
    from attnlab.axes.scores import scores as scores
    from attnlab.axes.spaces import spaces as spaces
    from attnlab.axes.speeds import speeds as speeds
    from attnlab.axes.writes import writes as writes
    from attnlab.dynamics.attention import attention as attention
    from attnlab.engine import simulate as simulate
    from attnlab.engine import velocity as velocity
    from attnlab.experiments.reproduce import reproduce as reproduce
    from attnlab.explorer import Explorer as Explorer
    from attnlab.explorer import explore as explore
    from attnlab.limits import limit as limit
    from attnlab.limits.verification.record import Verification as Verification
    from attnlab.progress import Cancelled as Cancelled
    from attnlab.progress import Progress as Progress
    from attnlab.render import movie as movie
    from attnlab.render import plot as plot
    from attnlab.run import resolve as resolve
    from attnlab.run import run_spec as run_spec
    from attnlab.store import load as load
    from attnlab.store import save as save
    from attnlab.store import to_xarray as to_xarray
    from attnlab.sweep.definition import Sweep as Sweep
    from attnlab.theory import check as check
    from attnlab.theory import predict as predict
    from attnlab.types import Dynamics as Dynamics
    from attnlab.types import Event as Event
    from attnlab.types import FeedForward as FeedForward
    from attnlab.types import Grade as Grade
    from attnlab.types import Limit as Limit
    from attnlab.types import NoRescaledFrame as NoRescaledFrame
    from attnlab.types import RunFailed as RunFailed
    from attnlab.types import RunInterrupted as RunInterrupted
    from attnlab.types import Solve as Solve
    from attnlab.types import Spec as Spec
    from attnlab.types import Status as Status
    from attnlab.types import Trajectory as Trajectory
    from attnlab.types import Weights as Weights
    from attnlab.verdicts import Outcome as Outcome
    from attnlab.verdicts import Prediction as Prediction
    from attnlab.verdicts import Verdict as Verdict
    from attnlab.verification import verify as verify

__version__ = "0.1.0"

_RECORDS = {
    **dict.fromkeys(["Cancelled", "Progress"], "attnlab.progress"),
    **dict.fromkeys(
        [
            "Dynamics",
            "Event",
            "FeedForward",
            "Grade",
            "Limit",
            "NoRescaledFrame",
            "RunFailed",
            "RunInterrupted",
            "Solve",
            "Spec",
            "Status",
            "Trajectory",
            "Weights",
        ],
        "attnlab.types",
    ),
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
    "Cancelled",
    "Dynamics",
    "Event",
    "FeedForward",
    "Grade",
    "Limit",
    "NoRescaledFrame",
    "Progress",
    "RunFailed",
    "RunInterrupted",
    "Solve",
    "Spec",
    "Status",
    "Trajectory",
    "UnknownName",
    "Weights",
    *_LAZY,
    "models",
    "sweep",
]


_FOLDERS = ("models", "sweep")
"""Packages that are names of attnlab themselves: al.models.load, al.sweep.load."""


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        if name in __all__:
            importlib.import_module(
                "attnlab.dynamics"
            )  # first, because it imports its own modules; see import_name
        if name in _FOLDERS:
            return importlib.import_module(f"attnlab.{name}")
        return import_name(__name__, _RECORDS | _LAZY, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_RECORDS, *_LAZY, *_FOLDERS})
