"""What most experiments compute: a run of a Spec, where it ends, and what the theory says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnlab.experiments.datasets import dataset_of, limit_dataset, verdict_dataset
from attnlab.experiments.record import Progress, no_progress
from attnlab.limits.allowance import WORK
from attnlab.types import Spec


def study(spec: Spec, progress: Progress = no_progress, *, name: str = "run", limit_times: Sequence[float] | None = None,
          work: float = WORK, names: Sequence[str] | None = None) -> dict[str, Any]:
    """{"run": .., "limit": .., "verdicts": ..} of a Spec; under another `name` also name_limit and name_verdicts.

    limit_times: times beyond the wall at which the Limit keeps the tokens. names: the results to check, None for all.
    work: units for the limit, and again for the verdicts; see attnlab.limit.
    """
    from attnlab.limits import limit
    from attnlab.run import run_spec
    from attnlab.theory import check

    before = "" if name == "run" else f"{name}_"
    progress(0.0, "simulating")
    run = run_spec(spec)
    progress(0.3, "reaching t = infinity")
    end = limit(run, times=limit_times, work=work)
    progress(0.6, "checking the theory")
    verdicts = check(run, names=names, work=work)
    progress(1.0)
    return {name: dataset_of(run), f"{before}limit": limit_dataset(end), f"{before}verdicts": verdict_dataset({name: verdicts})}


def part(progress: Progress, first: float, last: float) -> Progress:
    """A Progress for a part of the work, from the fraction `first` to the fraction `last`."""

    def told(fraction: float, at: str = "") -> None:
        progress(first + (last - first) * fraction, at)

    return told


def named(progress: Progress, name: str) -> Progress:
    """A Progress that says whose it is."""

    def told(fraction: float, at: str = "") -> None:
        progress(fraction, f"{name}: {at}" if at else name)

    return told
