"""Displays of any record by its fields, and of the records of a run: weights, equation, Spec, run
and limit.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np

from attnlab.axes.members import USUAL
from attnlab.batches import Limits
from attnlab.displayed import short_value, shown_fields
from attnlab.notebook import displays
from attnlab.notebook.html import LONGEST_TEXT, Mark, facts, fold, note, table, text
from attnlab.notebook.pictures import is_quick, picture
from attnlab.types import Dynamics, FeedForward, Limit, Spec, Status, Trajectory, Weights

MOST_LIMITS, MOST_COORDINATES = 12, 6
"""The most rows of a table of limits, and the most coordinates of a point."""

LARGEST_V = 128
"""The leading eigenvalue of V is computed up to this d."""


def show_fields(record: Any) -> tuple[str, ...]:
    """Show the fields of a dataclass that differ from their defaults."""
    names = shown_fields(record) if dataclasses.is_dataclass(record) else []
    return type(record).__name__, facts({name: _plain(value) for name, value in names})


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | bool | int | float) else short_value(value)


@displays.register("Weights")
def show_weights(weights: Weights) -> tuple[str, ...]:
    """Show the shapes, the source, and for one small head the leading eigenvalue."""
    return "Weights", facts(weights_facts(weights))


def weights_facts(weights: Weights) -> dict[str, Any]:
    """Return the shapes of weights, and for one small head the leading eigenvalue of V."""
    leading = None
    if weights.heads == 1 and weights.d <= LARGEST_V:
        value = max(
            np.linalg.eigvals(weights.full_V[0]), key=lambda one: (abs(one), one.real, one.imag)
        )
        leading = f"{value.real:.4g}" + (
            f" ± {abs(value.imag):.4g} i" if abs(value.imag) > 1e-12 * abs(value) else ""
        )
    return {
        "heads": weights.heads,
        "d, dimension of a token": weights.d,
        "k, rows of Q and K": weights.Q.shape[1],
        "rank of V = B C": weights.V[0].shape[2] if weights.is_factored else None,
        "leading eigenvalue of V": leading,
        "source": weights.source,
    }


@displays.register("Dynamics")
def show_dynamics(dynamics: Dynamics) -> tuple[str, ...]:
    """Show the equation and its weights."""
    return "Dynamics: the equation", facts(
        {**equation_facts(dynamics), **weights_facts(dynamics.weights)}
    )


def equation_facts(dynamics: Dynamics) -> dict[str, Any]:
    """Describe the equation in a few words."""
    drift = dynamics.feedforward
    return {
        "geometry": str(dynamics.geometry),
        "kernel": str(dynamics.kernel),
        "mask": str(dynamics.mask),
        **{
            name: str(getattr(dynamics, name))
            for name, usual in USUAL.items()
            if name != "feedforward" and getattr(dynamics, name) != usual
        },
        "beta": float(dynamics.beta),
        "feed-forward": drift.sigma if isinstance(drift, FeedForward) else None,
        "drift": None if drift.is_none or isinstance(drift, FeedForward) else str(drift),
        "clock": f"layers of dt = {dynamics.dt:g}" if dynamics.is_layers else "continuous time",
    }


@displays.register("Spec")
def show_spec(spec: Spec) -> tuple[str, ...]:
    """Show the Spec as TOML."""
    return "Spec", text(spec.to_toml()[: 2 * LONGEST_TEXT])


@displays.register("Trajectory")
def show_run(run: Trajectory) -> tuple[str, ...]:
    """Show what was run and how it ended, with a figure if it is quick to draw."""
    statuses = Counter(np.ravel(np.asarray(run.status, dtype=object)).tolist())
    ended = Mark(
        ", ".join(
            f"{count} {status.name}" if run.batch else status.name
            for status, count in statuses.items()
        ),
        "good" if run.is_ok else "bad",
    )
    error = (
        float(np.nanmax(run.error))
        if run.error is not None and np.isfinite(run.error).any()
        else None
    )
    numbers = {
        "status": ended,
        "members": int(np.prod(run.batch)) if run.batch else None,
        "tokens": run.n,
        "dimension": run.d,
        "time": (
            f"t = {run.times[0]:g} to {run.times[-1]:g}, {len(run.times)} saved"
            if len(run.times)
            else "none saved"
        ),
        "equation": ", ".join(
            f"{value}" if name != "beta" else f"beta = {value:g}"
            for name, value in equation_facts(run.dynamics).items()
            if value is not None
        ),
        "weights": run.dynamics.weights.source,
        "heads": run.dynamics.weights.heads,
        "error": None if error is None else f"{error:.2g} of the largest token",
        "observed": ", ".join(run.observed) or None,
    }
    failed = [note(status.value) for status in statuses if status is not Status.OK]
    return (
        f"Trajectory: {run.n} tokens in dimension {run.d}",
        facts(numbers),
        *failed,
        _picture_of_run(run),
    )


def _picture_of_run(run: Trajectory) -> str:
    if not len(run.times) or not np.isfinite(run.states).any():
        return ""
    if not is_quick(run.n, run.states.size):
        return note("This run is large, so it is not drawn here. al.plot(run) draws it.")

    def draw() -> Any:
        from attnlab.render.plots import plot

        return plot(run)

    return picture(draw, f"{run.n} tokens over time")


@displays.register("Limit")
def show_limit(limit: Limit) -> tuple[str, ...]:
    """Show the limits with their leaders, what is certified, and the certificate."""
    n, d = limit.x0.shape
    numbers = {
        "grade": Mark(limit.grade, "good" if limit.certified else "open"),
        "limits": limit.count,
        "places": limit.place_count,
        "tokens": n,
        "dimension of F": f"{limit.basis.shape[1]} of {d}",
        "error": f"{limit.error:.2g}, in the unit of the tokens" if limit.certified else None,
        "decided at" if limit.certified else "given up at": f"t = {limit.t:.4g}",
        "changes of leader": len(limit.events),
        "digits": limit.digits,
    }
    parts = [facts(numbers), note(limit.reason), *_limit_table(limit)]
    if limit.certificate:
        parts.append(fold("certificate", text(limit.certificate)))
    if is_quick(n, limit.x0.size) and limit.certified and limit.count is not None:

        def draw() -> Any:
            from attnlab.render.plots import plot

            return plot(limit)

        parts.append(picture(draw, "where the tokens start and end"))
    return f"Limit of {n} tokens", *parts


def _limit_table(limit: Limit) -> list[str]:
    points = limit.limits if limit.count is not None else limit.places
    if points is None or not limit.certified:
        return []
    firsts, sizes = np.unique(limit.labels, return_index=True, return_counts=True)[1:]
    order = sorted(range(len(firsts)), key=lambda label: (-sizes[label], label))
    rows = [
        (_leaders(limit, label), int(sizes[label]), _point(points[firsts[label]]))
        for label in order
    ]
    what = "limit of z in F" if limit.count is not None else "limit of x"
    legend = (
        "One row per limit: leader, the token that its tokens attend to in the end; tokens, how"
        f" many; {what}."
    )
    more = [note(f"and {len(rows) - MOST_LIMITS} more")] if len(rows) > MOST_LIMITS else []
    return [table(legend, ("leader", "tokens", what), rows[:MOST_LIMITS]), *more]


def _leaders(limit: Limit, label: int) -> str:
    found = np.unique(limit.leaders[limit.labels == label])
    words = ["open" if leader < 0 else str(leader) for leader in found]
    return ", ".join(words[:MOST_COORDINATES]) + (", ..." if len(words) > MOST_COORDINATES else "")


def _point(point: np.ndarray) -> str:
    numbers = ", ".join(f"{number:.4g}" for number in point[:MOST_COORDINATES])
    return f"({numbers}{', ...' if len(point) > MOST_COORDINATES else ''})"


@displays.register("Limits")
def show_limits(limits: Limits) -> tuple[str, ...]:
    """Show one row per member of the batch."""
    rows = [
        (
            number,
            one.count if one.count is not None else one.place_count,
            Mark(one.grade, "good" if one.certified else "open"),
            float(one.error) if one.certified else None,
            float(one.t),
            len(one.events),
        )
        for number, one in enumerate(limits)
    ]
    legend = (
        "One row per member of the batch: limits, how many; grade, what is certified; error, in the"
        " unit of the tokens; t, when it was decided or given up; changes of leader, how many."
    )
    return f"Limits: {limits.summary}", table(
        legend, ("member", "limits", "grade", "error", "t", "changes of leader"), rows
    )
