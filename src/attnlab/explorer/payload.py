"""The record in a page of the explorer: the run, certified limits, presets, a recording. types.js
has its types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.axes.members import AXES
from attnlab.axes.normalisations import NORMALISED_AXES
from attnlab.explorer.members import strange_members
from attnlab.explorer.presets import Preset, preset_record
from attnlab.theory import theorems
from attnlab.theory.verbs import predictions
from attnlab.types import Dynamics, Limit, Spec, Trajectory

VERSION = 1
"""The version of the record and of the state in the address: VERSION of types.js."""

VIEW = {
    "t": 0,
    "frame": "limit",
    "camera": [-0.62, 0.34, 1],
    "show": ["trails", "threads", "hull", "limits"],
    "selected": [],
    "theme": "auto",
}

MOST_LIVE_TOKENS = 2000
MOST_LIVE_DIMENSIONS = 3
LIVE_LAWS = ("uniform_cube", "normal", "sphere", "circle", "planted", "given")
"""Start laws that a page draws itself. Tokens of other laws are written into the page."""

LIVE_FAMILIES = ("identity", "spectrum", "published", "given")
"""Families whose weights a page makes itself. Weights of other families are written into it as
matrices.
"""


def make_payload(
    spec: Spec,
    *,
    limits: Sequence[Limit] = (),
    presets: Sequence[Preset] = (),
    preset: Preset | None = None,
    recording: dict[str, Any] | None = None,
    says: Sequence[dict[str, Any]] = (),
    hide: Sequence[str] = (),
    lock: Sequence[str] = (),
    guess: bool = False,
    theme: str = "auto",
    title: str | None = None,
) -> dict[str, Any]:
    """Return the record of a page that opens with `spec`, as a table for JSON."""
    view = {**VIEW, "theme": theme}
    if preset is not None and preset.camera is not None:
        view["camera"] = list(preset.camera)
    state: dict[str, Any] = {"version": VERSION, "spec": spec.to_dict(), "view": view}
    if preset is not None:
        state["preset"] = preset.id
    payload: dict[str, Any] = {
        "version": VERSION,
        "state": state,
        "hide": list(hide),
        "lock": list(lock),
        "guess": guess,
        "limits": [limit_record(one, spec) for one in limits if one.certified],
        "says": list(says),
        "presets": [preset_record(one) for one in presets],
    }
    if recording is not None:
        payload["recording"] = recording
    if title is not None:
        payload["title"] = title
    return payload


def limit_record(limit: Limit, spec: Spec) -> dict[str, Any]:
    """Return a certified limit of `spec` as a page holds it."""
    if not limit.certified:
        raise ValueError("A limit in a page must be certified; this one is undecided.")
    firsts = np.unique(limit.labels, return_index=True)[1]  # one token per label 0, 1, ...
    places = limit.limits if limit.places is None else limit.places  # (n, d)
    found = {
        "spec": spec.to_dict(),
        "grade": str(limit.grade),
        "count": limit.count,
        "labels": limit.labels.tolist(),
        "leaders": limit.leaders.tolist(),
        "points": places[firsts].tolist(),
        "t": float(limit.t),
        "lastEvent": float(limit.events[-1].t) if limit.events else None,
        "events": len(limit.events),
        "error": float(limit.error),
        "certificate": limit.certificate,
        "reason": limit.reason,
    }
    return found if limit.place_count is None else {**found, "placeCount": limit.place_count}


def live_spec(spec: Spec, dynamics: Dynamics, x0: np.ndarray, member: int = 0) -> tuple[Spec, str]:
    """Return (a Spec of the same run that a page can integrate, ""), or (spec, why it cannot).

    Weights that the page cannot make are written out, and so is the member of a batch.
    """
    n, d = x0.shape[-2:]
    if d > MOST_LIVE_DIMENSIONS:
        return spec, f"d = {d}, and a page integrates at most {MOST_LIVE_DIMENSIONS} dimensions"
    if n > MOST_LIVE_TOKENS:
        return spec, f"n = {n}, and a page integrates at most {MOST_LIVE_TOKENS} tokens"
    if dynamics.feedforward.acts_on_z:
        return spec, "a page does not integrate the feed-forward variant"
    for axis in strange_members(dynamics):
        return spec, f'a page does not compute the {axis} "{getattr(dynamics, axis).name}"'
    if dynamics.is_layers:
        return spec, "a page integrates continuous time, not layers"
    weights, start = dict(spec.weights), dict(spec.start)
    if weights.get("family") not in LIVE_FAMILIES:
        weights = write_weights(dynamics)
    if x0.ndim == 3 or start.get("law") not in LIVE_LAWS:
        start = {"law": "given", "x": (x0[member] if x0.ndim == 3 else x0).tolist()}
    return Spec(weights=weights, start=start, solve=spec.solve, dynamics=spec.dynamics), ""


def write_weights(dynamics: Dynamics) -> dict[str, Any]:
    """Return the table [weights] with the matrices of an equation. Q and K are left out if they are
    the identity.
    """
    weights = dynamics.weights
    identity = np.broadcast_to(np.eye(weights.d), (weights.heads, weights.d, weights.d))
    is_plain = all(
        array.shape == identity.shape and np.array_equal(array, identity)
        for array in (weights.Q, weights.K)
    )
    matrices = (
        {"V": weights.full_V} if is_plain else {"V": weights.full_V, "Q": weights.Q, "K": weights.K}
    )
    return {
        "family": "given",
        **{
            name: (array[0] if weights.heads == 1 else array).tolist()
            for name, array in matrices.items()
        },
    }


def write_spec(dynamics: Dynamics, x0: np.ndarray, t_end: float) -> Spec:
    """Return a Spec for an equation and first tokens x0 (n, d): their numbers, or for large d only
    their shape.
    """
    usual = {
        "beta": 1.0,
        "normalisation": None,
        **{name: registry.default for name, registry in AXES.items()},
    }
    chosen = NORMALISED_AXES if dynamics.normalisation is not None else ()
    words = dynamics.words()
    equation = {
        name: words[name]
        for name, value in usual.items()
        if words[name] != value and name not in chosen
    }
    n, d = x0.shape
    solve = (
        {"t_end": t_end}
        if dynamics.dt is None
        else {"layers": round(t_end / dynamics.dt), "dt": dynamics.dt}
    )
    if d > MOST_LIVE_DIMENSIONS:
        return Spec(
            weights={"family": "given", "d": d},
            start={"law": "given", "n": n, "d": d},
            solve=solve,
            dynamics=equation,
        )
    return Spec(
        weights=write_weights(dynamics),
        start={"law": "given", "x": x0.tolist()},
        solve=solve,
        dynamics=equation,
    )


def spec_of_run(run: Trajectory) -> Spec:
    """Return the Spec of a run without batch: its own, or one made from its numbers."""
    if run.spec is not None and "batch" not in run.spec.start:
        return run.spec
    return write_spec(run.dynamics, run.x[0], float(run.times[-1]))


SAYS = {
    "low_rank_boolean": "Attention becomes Boolean, with rank at most 3.",
    "polytope": (
        "The rescaled tokens go to finitely many points: the vertices of a convex polytope, and"
        " perhaps a few other points of its boundary or the origin."
    ),
    "collapse_to_origin": (
        "V is a negative multiple of the identity: every token tends to 0, and attention becomes"
        " uniform."
    ),
    "three_hyperplanes": (
        "One positive eigenvalue leads: the rescaled tokens gather on at most three parallel"
        " hyperplanes."
    ),
    "polytope_times_subspace": (
        "Equal eigenvalues lead: in their directions the tokens go to the boundary of a polytope or"
        " to the origin. Nothing is said about the other directions."
    ),
    "hull_shrinks": (
        "No theorem says where the tokens end. Still, the hull of the rescaled tokens never grows."
    ),
    "coordinate_extremes": (
        "No theorem says where the tokens end. Still, along each real eigenvalue of V that is not"
        " negative the outermost rescaled tokens only move inwards."
    ),
}
"""What statements say in a page, in the order in which they are cited; theory.js has the same for
up to three dimensions.
"""


def theory_record(run: Trajectory, spec: Spec) -> list[dict[str, Any]]:
    """Return the statement that applies to a run, as [{spec, cite, says}], for a page that cannot
    find it itself.
    """
    applies = [one.theorem for one in predictions(run.dynamics, run.x[0], SAYS) if one.applies]
    if not applies:
        return [
            {
                "spec": spec.to_dict(),
                "cite": "open",
                "says": "No theorem says where the tokens end.",
            }
        ]
    cite = theorems[applies[0]].cite
    place = re.search(r"theorem \d+\.\d+", cite) or re.search(r"section \d+", cite)
    return [
        {
            "spec": spec.to_dict(),
            "cite": place[0].capitalize() if place else cite,
            "says": SAYS[applies[0]],
        }
    ]
