"""A Limit in words, tables and JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnlab.batches import Limits
from attnlab.cli.say import as_options, say
from attnlab.cli.summary import print_table
from attnlab.store.kinds.limit import record
from attnlab.types import Limit

MOST_ROWS = 12
"""The most rows that a table of limits has."""

MOST_EVENTS = 6
"""The most changes of leader that are printed."""

MOST_NUMBERS = 6
"""The most coordinates of a point, or leaders of one limit, that are printed."""

LIMIT_LEGEND = (
    "One row per fact about the limit: what it is, and its value. The error bounds the distance to"
    " the true limit, in the unit of the tokens; times are in the unit of t."
)
LIMITS_LEGEND = (
    "One row per limit: leader, the number of the token that its tokens attend to in the end, or"
    " open; tokens, how many end there; limit of z, its part in F, in the coordinates of the Spec,"
    " up to the error above. If heads have different scores, leader names one token per head: 3/5."
)
PLACES_LEGEND = (
    "One row per place where x(t) comes to rest: tokens, how many end there; limit of x in R^d, up"
    " to the error."
)
CHANGES_LEGEND = (
    "One row per change of leader: from the time t on, token attends to the token in column to, not"
    " to the one in column from. Tokens are counted from 0."
)
MEMBERS_LEGEND = (
    "One row per member of the batch, counted from 0: {counted}, how many there are; grade, what is"
    " certified; error, a bound on the distance to the true limits, in the unit of the tokens;"
    " time, when it was decided or given up; changes of leader, how many; digits, the precision"
    " that was needed."
)


def limit_record(limit: Limit) -> dict[str, Any]:
    """Return every field of a Limit as plain JSON values; null where unknown."""
    return record(limit)


def print_limit(title: str, limit: Limit, command: Callable[..., None]) -> None:
    """Print the certificate, the numbers, the limits with their leaders, and the first changes of
    leader.
    """
    say(as_options(limit.certificate or limit.reason, command))
    say("")
    time = "decided at t" if limit.grade != "undecided" else "given up at t"
    facts = [(time if name == "time" else name, value) for name, value in _numbers(limit).items()]
    print_table(title, LIMIT_LEGEND, ("what", "value"), facts)
    firsts, sizes = np.unique(limit.labels, return_index=True, return_counts=True)[1:]
    order = sorted(range(len(firsts)), key=lambda label: (-sizes[label], label))
    if limit.count is not None:
        rows = [
            (_leaders(limit, label), int(sizes[label]), _vector(limit.limits[firsts[label]]))
            for label in order
        ]
        print_table(
            "limits",
            LIMITS_LEGEND,
            ("leader", "tokens", "limit of z, its part in F"),
            rows[:MOST_ROWS],
        )
        _and_more(len(rows) - MOST_ROWS)
    if limit.places is not None:
        rests = [(int(sizes[label]), _vector(limit.places[firsts[label]])) for label in order]
        print_table("places", PLACES_LEGEND, ("tokens", "limit of x in R^d"), rests[:MOST_ROWS])
        _and_more(len(rests) - MOST_ROWS)
    if limit.events:
        changes = [
            (event.t, event.token, event.before, event.after)
            for event in limit.events[:MOST_EVENTS]
        ]
        print_table("changes of leader", CHANGES_LEGEND, ("t", "token", "from", "to"), changes)
        _and_more(len(limit.events) - MOST_EVENTS)


def print_limits(title: str, limits: Sequence[Limit], command: Callable[..., None]) -> None:
    """Print the limits of a batch, one row per member, and the reasons of those that are
    undecided.
    """
    counted = ("places",) if any(limit.place_count is not None for limit in limits) else ("limits",)
    columns = (*counted, "grade", "error", "time", "changes of leader", "digits")
    rows = [
        (number, *(_numbers(limit).get(name) for name in columns))
        for number, limit in enumerate(limits)
    ]
    print_table(title, MEMBERS_LEGEND.format(counted=counted[0]), ("member", *columns), rows)
    reasons: dict[str, list[int]] = {}
    for number, limit in enumerate(limits):
        if not limit.certified:
            reasons.setdefault(limit.reason, []).append(number)
    for reason, members in reasons.items():
        named = ", ".join(map(str, members[:MOST_ROWS])) + (
            ", ..." if len(members) > MOST_ROWS else ""
        )
        say(f"Member{'s' if len(members) > 1 else ''} {named}: {as_options(reason, command)}")
    say(Limits(limits).summary)


def _numbers(limit: Limit) -> dict[str, Any]:
    """Summarise a Limit in a few numbers. time: when it was decided or given up. If nothing grows,
    it counts places.
    """
    n, d = limit.x0.shape
    counted = {"limits": limit.count} if limit.places is None else {"places": limit.place_count}
    return {
        **counted,
        "grade": str(limit.grade),
        **({} if limit.horizon is None else {"holds up to t": limit.horizon}),
        "error": float(limit.error) if limit.grade != "undecided" else None,
        "time": float(limit.t),
        "tokens": n,
        "dimension of F": f"{limit.basis.shape[1]} of {d}",
        "changes of leader": len(limit.events),
        "digits": limit.digits,
    }


def _leaders(limit: Limit, label: int) -> str:
    """Name the tokens that the tokens of one limit attend to in the end."""
    by_head = limit.leaders[None] if limit.head_leaders is None else limit.head_leaders
    found = np.unique(by_head[:, limit.labels == label], axis=1).T
    words = ["/".join("open" if leader < 0 else str(leader) for leader in one) for one in found]
    return ", ".join(words[:MOST_NUMBERS]) + (", ..." if len(words) > MOST_NUMBERS else "")


def _vector(point: np.ndarray) -> str:
    return f"({', '.join(f'{number:.6g}' for number in point[:MOST_NUMBERS])}{', ...' if len(point) > MOST_NUMBERS else ''})"


def _and_more(count: int) -> None:
    if count > 0:
        say(f"and {count} more")
