"""The limits of a batch: a list with one Limit per member, which prints as a summary."""

from __future__ import annotations

from attnlab.displayed import Displayed
from attnlab.types import Limit


class Limits(list[Limit], Displayed):
    """The limits of the members of a batch, in their order."""

    @property
    def summary(self) -> str:
        """How many members are certified, with which grades, and how many limits or places they have, in one sentence."""
        certified = [limit for limit in self if limit.certified]
        grades = [f"{grade} {count}" for grade in ("proved", "exact", "group")
                  if (count := sum(one.grade == grade for one in certified))]
        words = f"{len(certified)} of {len(self)} members certified" + (f" ({', '.join(grades)})" if grades else "")
        if len(certified) < len(self):
            words += f", {len(self) - len(certified)} undecided"
        for name, counts in (("limits", [one.count for one in certified]), ("places", [one.place_count for one in certified])):
            known = [count for count in counts if count is not None]
            if known:
                words += f"; {name}: {min(known)}" + (f" to {max(known)}" if max(known) > min(known) else "")
        return f"{words}."

    def __str__(self) -> str:
        return "\n".join([self.summary, *(f"Member {number}: {member!r}" for number, member in enumerate(self))])

    def __repr__(self) -> str:
        return f"Limits({self.summary} [k] has that of member k.)"
