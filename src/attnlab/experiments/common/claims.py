"""Keywords that many claims have: an interval over repeated runs, the verdict on a run, the worst
of many values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.intervals import bootstrap_interval, exact_interval

HALF = "more than 1/2"
"""What is expected of a share that is claimed to be the rule."""


def of_share(count: int, total: int, end: str = "low", what: str = "starts") -> dict[str, Any]:
    """The keywords of a Claim about the share count / total: measured is the `end` ("low" or
    "high") of its 95 % interval.
    """
    return _keywords(
        count / total if total else float("nan"),
        exact_interval(count, total),
        end,
        f"{total} {what}",
    )


def of_rule(count: int, total: int, quantity: str, what: str = "starts") -> dict[str, Any]:
    """Return the keywords of a Claim that something is the rule: count / total is above 1/2."""
    share = of_share(count, total, what=what)
    return {**share, "quantity": quantity, "expected": HALF, "low": 0.5, "high": 1}


def of_mean(values: np.ndarray, end: str = "low", what: str = "starts") -> dict[str, Any]:
    """The keywords of a Claim about a mean of values (m,): measured is the `end` ("low" or "high")
    of its 95 % interval.
    """
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    mean = float(values.mean()) if len(values) else float("nan")
    return _keywords(mean, bootstrap_interval(values), end, f"{len(values)} {what}")


def of_verdicts(verdicts: Any, *theorems: str) -> dict[str, Any]:
    """Return the keywords of a Claim that every theorem is SUPPORTED by the run: measured is how
    many are.

    verdicts: a Dataset of the verdicts on one run.
    """
    said = [
        verdicts["outcome"].values[verdicts["theorem"].values == theorem].tolist()
        for theorem in theorems
    ]
    return {
        "measured": float(said.count(["SUPPORTED"])),
        "low": len(theorems),
        "high": len(theorems),
    }


def furthest_from(expected: float, values: Any) -> float:
    """Return the one of the values that is furthest from what is expected; NaN where there are
    none.
    """
    values = np.ravel(values)
    return float(values[np.abs(values - expected).argmax()]) if len(values) else float("nan")


def _keywords(value: float, interval: tuple[float, float], end: str, sample: str) -> dict[str, Any]:
    return {
        "measured": interval[end == "high"],
        "value": value,
        "interval": interval,
        "sample": f"95 %, {sample}",
    }


def in_words(interval: tuple[float, float], form: str = ".2f") -> str:
    """Return both ends of an interval in words; of too few values it is unknown."""
    low, high = interval
    return f"{low:{form}} to {high:{form}}" if np.isfinite(low) else "unknown"


def mean_in_words(values: np.ndarray, what: str = "runs") -> str:
    """Return a mean in words, with its 95 % interval and the number of values."""
    return f"{np.mean(values):.2f} ({in_words(bootstrap_interval(values))}, {len(values)} {what})"


def share_in_words(count: int, total: int, form: str = ".2f") -> str:
    """Return a count in words, with the exact 95 % interval of the share."""
    return f"{count} of {total} ({in_words(exact_interval(count, total), form)})"


def relative_difference(one: Any, other: Any) -> float:
    """Return the largest difference of two arrays, over the largest entry of the second."""
    one, other = np.asarray(one), np.asarray(other)
    return float(np.abs(one - other).max() / np.abs(other).max())
