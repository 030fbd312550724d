"""The members of a batch as single runs, and their limits as a list that prints as a summary."""

from __future__ import annotations

import dataclasses

import numpy as np

from attnlab.displayed import Displayed
from attnlab.types import Limit, Trajectory


class Limits(list[Limit], Displayed):
    """The limits of the members of a batch, in their order."""

    @property
    def summary(self) -> str:
        """One sentence: how many members are certified, with which grades, and how many limits or
        places they have.
        """
        certified = [limit for limit in self if limit.certified]
        grades = [
            f"{grade} {count}"
            for grade in ("proved", "exact", "group")
            if (count := sum(one.grade == grade for one in certified))
        ]
        words = f"{len(certified)} of {len(self)} members certified" + (
            f" ({', '.join(grades)})" if grades else ""
        )
        if len(certified) < len(self):
            words += f", {len(self) - len(certified)} undecided"
        for name, counts in (
            ("limits", [one.count for one in certified]),
            ("places", [one.place_count for one in certified]),
        ):
            known = [count for count in counts if count is not None]
            if known:
                words += f"; {name}: {min(known)}" + (
                    f" to {max(known)}" if max(known) > min(known) else ""
                )
        return f"{words}."

    def __str__(self) -> str:
        return "\n".join(
            [self.summary, *(f"Member {number}: {member!r}" for number, member in enumerate(self))]
        )

    def __repr__(self) -> str:
        return f"Limits({self.summary} [k] has that of member k.)"


def members(run: Trajectory) -> list[Trajectory]:
    """Return the members of a batch as single runs, each cut at its last good time."""
    return [_member(run, index) for index in np.ndindex(run.batch)]


def _member(run: Trajectory, index: tuple[int, ...]) -> Trajectory:
    good = np.isfinite(run.states[index]).all(axis=(-2, -1))
    kept = len(good) if good.all() else int(np.argmin(good))
    error = run.error if run.error is None else float(np.asarray(run.error)[index])
    observed = {name: np.asarray(values)[index][:kept] for name, values in run.observed.items()}
    # of a member: steps, reached and others that are arrays over the batch
    stats = {
        name: (
            value[index].item()
            if isinstance(value, np.ndarray) and value.shape == run.batch
            else value
        )
        for name, value in run.stats.items()
    }
    return dataclasses.replace(
        run,
        times=run.times[:kept],
        states=run.states[index][:kept],
        log_scale=run.log_scale[index][:kept],
        status=np.asarray(run.status, dtype=object)[index],
        error=error,
        observed=observed,
        stats=stats,
    )
