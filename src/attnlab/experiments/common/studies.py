"""What most experiments compute: a run of a Spec, where it ends, and what the theory says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnlab.experiments.datasets import dataset_of, limit_dataset, verdict_dataset
from attnlab.limits.allowance import WORK
from attnlab.progress import Progress, as_progress
from attnlab.types import Limit, Spec
from attnlab.verdicts import Verdicts


def study(
    spec: Spec,
    progress: Progress | None = None,
    *,
    name: str = "run",
    limit_times: Sequence[float] | None = None,
    work: float = WORK,
    names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """{"run": .., "limit": .., "verdicts": ..} of a Spec; under another `name` also name_limit and
    name_verdicts.

    limit_times: times beyond the wall at which the Limit keeps the tokens. names: the results to
    check, None for all. work: units for the limit, and again for the verdicts; see attnlab.limit.
    """
    from attnlab.limits import limit
    from attnlab.run import run_spec
    from attnlab.theory import check

    before = "" if name == "run" else f"{name}_"
    progress = as_progress(progress)
    run = run_spec(spec, progress=progress.part(0.0, 0.3))
    end = limit(run, times=limit_times, work=work, progress=progress.part(0.3, 0.6))
    verdicts = check(run, names=names, work=work, progress=progress.part(0.6, 1.0))
    assert isinstance(end, Limit) and isinstance(verdicts, Verdicts)  # of one run
    return {
        name: dataset_of(run),
        f"{before}limit": limit_dataset(end),
        f"{before}verdicts": verdict_dataset({name: verdicts}),
    }
