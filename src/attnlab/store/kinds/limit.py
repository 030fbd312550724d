"""A Limit: its fields, its equation and first tokens, and the state behind its certificate."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.limits.state import State
from attnlab.netcdf import Variable
from attnlab.store.document import versions
from attnlab.store.equations import (
    EQUATION_ARRAYS,
    equation_from,
    equation_variables,
    equation_words,
)
from attnlab.store.packing import Arrays, Kind, Labelled, Packed, Words, kinds, number, text
from attnlab.store.plain import plain_value
from attnlab.store.trees import decode, encode
from attnlab.types import Dynamics, Event, Limit, Spec, Weights

GRADES = ("proved", "exact", "group", "undecided")
NUMBERS = {
    "error": "bound of how far points are off",
    "t": "time at which it was decided, or given up",
    "digits": "decimal digits that were needed",
}
TEXTS = {
    "grade": "proved, exact, group or undecided",
    "reason": "what was proved, or what stands in the way",
    "certificate": "the same with its numbers",
}
STATE = "state_"
STATE_AXES = {
    "basis": ("row", "coordinate"),
    "inverse": ("coordinate", "column"),
    "growth": ("coordinate",),
    "turn": ("coordinate",),
    "same_as": ("token",),
    "start": ("token", "coordinate"),
    "tolerance": ("attempt",),
    "t": ("attempt",),
    "rtol": ("attempt",),
    "shift": ("attempt",),
    **dict.fromkeys(("leader", "root", "base", "is_alive"), ("attempt", "different_token")),
    **dict.fromkeys(
        ("Y", "E", "D", "Y_error", "E_error", "D_error"),
        ("attempt", "different_token", "coordinate"),
    ),
    "ends": ("replica", "token", "coordinate"),
    "tokens": ("attempt", "part", "different_token", "coordinate"),
    **dict.fromkeys(("start_size", "mixed_size"), ("attempt", "coordinate")),
    # of a proof
    "number": ("token",),
    "coefficients": ("step", "order", "different_token", "coordinate"),
    "h": ("step",),
    "pieces": ("step",),
    **dict.fromkeys(("defect", "tube", "radius"), ("step", "different_token")),
    "end": ("different_token", "coordinate"),
    **dict.fromkeys(("end_radius", "leaders"), ("different_token",)),
}
"""The axes of the arrays of a state, as far as they have a name."""

ABOUT = {
    "x0": (("token", "coordinate"), {"long_name": "first tokens", "units": "1"}),
    "labels": (("token",), {"long_name": "number of the limit of each token, -1 where it is open"}),
    "leaders": (
        ("token",),
        {"long_name": "token that each attends to in the end, -1 where it is several or open"},
    ),
    "head_leaders": (
        ("head", "token"),
        {"long_name": "the same for each head, where heads have different scores"},
    ),
    "basis": (
        ("coordinate", "direction"),
        {"long_name": "columns: growing directions of V, which span F"},
    ),
    "points": (
        ("token", "direction"),
        {"long_name": "limits of z in F, in the basis of F", "units": "1"},
    ),
    "limits": (
        ("token", "coordinate"),
        {"long_name": "limits of z in F, in the coordinates of the tokens", "units": "1"},
    ),
    "places": (
        ("token", "coordinate"),
        {"long_name": "places at which x(t) comes to rest", "units": "1"},
    ),
    "horizon": (
        (),
        {
            "long_name": (
                "time up to which labels and points hold; not there where they hold for ever"
            ),
            "units": "1",
        },
    ),
    "time": (("time",), {"long_name": "time t", "units": "1"}),
    "z": (
        ("time", "token", "coordinate"),
        {"long_name": "rescaled tokens z(t) = exp(-t V) x(t)", "units": "1"},
    ),
    "path": (
        ("time", "token", "direction"),
        {"long_name": "projection of z(t) on F, in the basis of F", "units": "1"},
    ),
    "event_time": (("event",), {"long_name": "time of a change of leader", "units": "1"}),
    "event_token": (("event",), {"long_name": "token whose leader changes"}),
    "event_before": (("event",), {"long_name": "leader before"}),
    "event_after": (("event",), {"long_name": "leader after"}),
}


def limit_variables(limit: Limit) -> dict[str, Variable]:
    """Return {name: array with axes} of the fields of a Limit, without the equation and the
    state.
    """
    arrays: dict[str, np.ndarray] = {
        name: getattr(limit, name)
        for name in ("x0", "labels", "leaders", "basis", "points", "z", "path")
    }
    arrays["time"] = limit.times
    arrays |= {
        name: getattr(limit, name)
        for name in ("places", "head_leaders")
        if getattr(limit, name) is not None
    }
    if limit.horizon is not None:
        arrays["horizon"] = np.array(float(limit.horizon))
    arrays["event_time"] = np.array([event.t for event in limit.events], dtype=float)
    for name in ("token", "before", "after"):
        arrays[f"event_{name}"] = np.array(
            [getattr(event, name) for event in limit.events], dtype=np.int64
        )
    found = {
        name: Variable(ABOUT[name][0], np.asarray(array), ABOUT[name][1])
        for name, array in arrays.items()
    }
    found |= {
        name: number(getattr(limit, name), long_name=about) for name, about in NUMBERS.items()
    }
    return found | {
        name: text(getattr(limit, name), long_name=about) for name, about in TEXTS.items()
    }


def limit_of(arrays: Arrays, dynamics: Dynamics, **more: Any) -> Limit:
    """Return the Limit of such arrays and an equation. Refuse values that no Limit has."""
    d, x0 = dynamics.weights.d, arrays["x0"]
    if x0.ndim != 2 or x0.shape[1] != d or not len(x0):
        raise ValueError(
            f"x0 must have one row per token and {d} coordinates, like the weights, got the shape"
            f" {x0.shape}."
        )
    n, k = len(x0), arrays["basis"].shape[-1]
    shapes = {
        "labels": (n,),
        "leaders": (n,),
        "basis": (d, k),
        "points": (n, k),
        "places": (n, d),
        "horizon": (),
        "head_leaders": (dynamics.weights.heads, n),
        "time": arrays["time"].shape[:1],
    }
    for name, shape in shapes.items():
        if name in arrays and arrays[name].shape != shape:
            raise ValueError(
                f"{name} of a Limit must have the shape {shape}, got {arrays[name].shape}."
            )
    for name in (
        "x0",
        "basis",
        "points",
        "places",
        "horizon",
        "time",
        "z",
        "path",
        "event_time",
        "error",
        "t",
    ):
        if name in arrays and arrays[name].dtype != float:
            raise ValueError(
                f"{name} of a Limit must hold numbers in double precision, got"
                f" {arrays[name].dtype}."
            )
    for name in (
        "labels",
        "leaders",
        "head_leaders",
        "event_token",
        "event_before",
        "event_after",
        "digits",
    ):
        if name in arrays and arrays[name].dtype.kind not in "iu":
            raise ValueError(
                f"{name} of a Limit must hold whole numbers, got {arrays[name].dtype}."
            )
    if not np.isfinite(x0).all() or not np.isfinite(arrays["basis"]).all():
        raise ValueError("x0 and basis of a Limit must be finite.")
    counted = [arrays[name] for name in ("labels", "leaders", "head_leaders") if name in arrays]
    if any((array < -1).any() or (array >= n).any() for array in counted):
        raise ValueError(f"labels and leaders of a Limit must lie between -1 and {n - 1}.")
    numbers: dict[str, Any] = {name: arrays[name].item() for name in NUMBERS}
    if not numbers["error"] >= 0.0 or np.isnan(numbers["t"]) or not 1 <= numbers["digits"] <= 10**6:
        raise ValueError("error, t and digits of a Limit must be numbers that a limit can have.")
    texts: dict[str, Any] = {name: str(arrays[name].item()) for name in TEXTS}
    if texts["grade"] not in GRADES:
        raise ValueError(
            f"The grade of a Limit must be one of {', '.join(GRADES)}, got {texts['grade'][:40]!r}."
        )
    columns = [arrays[f"event_{name}"] for name in ("time", "token", "before", "after")]
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise ValueError(
            "The changes of leader of a Limit must have equal numbers of times and tokens."
        )
    events = tuple(
        Event(float(t), int(i), int(a), int(b)) for t, i, a, b in zip(*columns, strict=True)
    )
    horizon = float(arrays["horizon"]) if "horizon" in arrays else None
    if horizon is not None and not horizon >= 0.0:
        raise ValueError("The horizon of a Limit must be a time.")
    kept: dict[str, Any] = {
        name: arrays[name] for name in ("labels", "leaders", "basis", "points", "z", "path")
    }
    return Limit(
        dynamics,
        x0,
        **kept,
        **numbers,
        **texts,
        events=events,
        times=arrays["time"],
        places=arrays.get("places"),
        horizon=horizon,
        head_leaders=arrays.get("head_leaders"),
        **more,
    )


def pack(limit: Limit) -> Packed:
    """Everything in a Limit, as arrays and words."""
    variables = {**limit_variables(limit), **equation_variables(limit.dynamics)}
    variables["spec"] = text(
        limit.spec.to_json() if limit.spec is not None else "",
        long_name="the Spec, as JSON; empty where none was given",
    )
    way = None
    if limit.state is not None:
        way = limit.state.way
        variables |= {
            f"{STATE}{name}": _state_variable(name, values)
            for name, values in limit.state.values.items()
        }
    stats, arrays = encode(dict(limit.stats), "stats")
    content = {"equation": equation_words(limit.dynamics), "way": way, "stats": stats}
    common = frozenset(
        (
            *EQUATION_ARRAYS,
            "spec",
            *(f"{STATE}{name}" for name in ("basis", "inverse", "growth", "turn")),
        )
    )
    return Packed(variables | arrays, {"content": json.dumps(content)}, common)


def unpack(arrays: Arrays, words: Words) -> Limit:
    """The Limit of arrays and words."""
    content = json.loads(words["content"])
    if not isinstance(content, dict) or set(content) != {"equation", "way", "stats"}:
        raise ValueError("content of a Limit must be a table of equation, way and stats.")
    state = None
    if content["way"] is not None:
        values = {
            name.removeprefix(STATE): array
            for name, array in arrays.items()
            if name.startswith(STATE)
        }
        state = State(
            str(content["way"]),
            {
                name: array.astype(str) if array.dtype == object else array
                for name, array in values.items()
            },
        )
    spec, stats = str(arrays["spec"].item()), decode(content["stats"], arrays)
    if not isinstance(stats, dict):
        raise ValueError("stats of a Limit must be a table.")
    return limit_of(
        arrays,
        equation_from(arrays, content["equation"]),
        spec=Spec.from_json(spec) if spec else None,
        stats=stats,
        state=state,
    )


def label(limit: Limit) -> Labelled:
    """Labels, leaders, points and limits by token, and what else a Limit says."""
    variables = limit_variables(limit)
    words = {name: getattr(limit, name) for name in ("grade", "reason", "certificate")}
    words |= {
        "count": -1 if limit.count is None else limit.count,
        "digest": limit.spec.digest() if limit.spec is not None else "",
    }
    if not len(limit.times):
        variables = {
            name: variable
            for name, variable in variables.items()
            if name not in ("time", "z", "path")
        }
    kept = {
        name: variable
        for name, variable in variables.items()
        if name not in ("reason", "certificate")
    }
    return Labelled(
        {**kept, **view(limit).variables},
        {**words, **versions()},
        ("time",) if "time" in kept else (),
    )


def view(limit: Limit) -> Labelled:
    """The limits in the coordinates of the tokens."""
    axes, about = ABOUT["limits"]
    return Labelled({"limits": Variable(axes, limit.limits, about)} if limit.basis.shape[1] else {})


def tabulate(limit: Limit) -> dict[str, np.ndarray]:
    """One row per token: its label, its leader, and its limit in the coordinates of the tokens."""
    n, d = limit.x0.shape
    columns = {"token": np.arange(n), "label": limit.labels, "leader": limit.leaders}
    if limit.head_leaders is not None:
        columns |= {f"leader_head{h}": row for h, row in enumerate(limit.head_leaders)}
    ends = limit.places if limit.places is not None else limit.limits
    name = "place" if limit.places is not None else "limit"
    return columns | {f"{name}{axis + 1}": ends[:, axis] for axis in range(d)}


def record(limit: Limit) -> dict[str, Any]:
    """Return every field of a Limit as plain JSON values; null where unknown."""
    n, d = limit.x0.shape
    return plain_value(
        {
            "certified": limit.certified,
            "grade": str(limit.grade),
            "count": limit.count,
            "error": limit.error,
            "t": limit.t,
            "horizon": limit.horizon,
            "digits": limit.digits,
            "n": n,
            "d": d,
            "k": limit.basis.shape[1],
            "work": limit.stats.get("work"),
            "reason": limit.reason,
            "certificate": limit.certificate,
            "labels": limit.labels,
            "leaders": limit.leaders,
            "head_leaders": limit.head_leaders,
            "basis": limit.basis,
            "points": limit.points,
            "limits": (
                limit.limits if limit.basis.shape[1] else None
            ),  # nothing grows: no limits of z
            "events": [
                {"t": event.t, "token": event.token, "before": event.before, "after": event.after}
                for event in limit.events
            ],
            "places": limit.places,
            "place_count": limit.place_count,
            "times": limit.times,
            "z": limit.z,
            "digest": limit.spec.digest() if limit.spec is not None else None,
        }
    )


def _state_variable(name: str, values: np.ndarray) -> Variable:
    axes = STATE_AXES.get(name, ())
    if len(axes) != values.ndim:
        axes = tuple(f"{STATE}{name}_axis_{i}" for i in range(values.ndim))
    return Variable(
        axes, values, {"long_name": f"{name} of the state that the certificate was computed from"}
    )


def _samples() -> Mapping[str, Limit]:
    """A Limit with a state of every kind of array, one that is undecided, one of places, and one of
    two heads.
    """
    rng = np.random.default_rng(0)
    dynamics, x0 = (
        Dynamics(Weights(V=np.diag([1.0, 0.5, -0.5])), mask="causal"),
        rng.normal(size=(4, 3)),
    )
    labels, basis = np.array([0, 0, 1, 1]), np.eye(3)[:, :2]
    values = {
        "same_as": np.arange(4),
        "Y": rng.normal(size=(3, 4, 3)) * 1j,
        "is_alive": np.ones((3, 4), bool),
        "begin": 0.0,
        "start_digest": np.array("ab" * 32),
        "tokens": rng.normal(size=(3, 6, 4, 3)),
    }
    spec = Spec(
        weights={"family": "identity"},
        start={"law": "sphere", "n": 4, "d": 3},
        solve={"t_end": 1.0},
    )
    one = Limit(
        dynamics,
        x0,
        labels,
        labels,
        basis,
        x0[:, :2],
        1e-11,
        "exact",
        "Certified by hand.",
        "Certified by hand.\n\nG  50",
        events=(Event(1.5, 2, 1, 0),),
        t=4.25,
        digits=40,
        times=np.array([0.0, 9.0]),
        z=rng.normal(size=(2, 4, 3)),
        path=rng.normal(size=(2, 4, 2)),
        spec=spec,
        stats={"kind": "certified", "work": 1.5, "steps": 7},
        state=State("frozen", values),
    )
    nobody = np.full(4, -1)
    undecided = Limit(
        dynamics,
        x0,
        nobody,
        nobody,
        basis,
        np.full((4, 2), np.nan),
        np.inf,
        "undecided",
        "Undecided (tie): a tie.",
    )
    rest = Limit(
        Dynamics(Weights(V=np.zeros((3, 3)))),
        x0,
        np.arange(4),
        nobody,
        np.zeros((3, 0)),
        np.zeros((4, 0)),
        0.0,
        "group",
        "V = 0.",
        places=x0,
        state=State("places", {}),
    )
    heads = dataclasses.replace(
        one,
        dynamics=Dynamics(
            Weights(Q=np.ones((2, 1, 3)), K=np.ones((2, 1, 3)), V=np.stack([np.eye(3)] * 2))
        ),
        events=(),
        head_leaders=np.array([[0, 0, 2, 2], [0, 1, 2, -1]]),
        state=None,
    )
    return {"exact": one, "undecided": undecided, "places": rest, "heads": heads}


kinds.register("limit")(
    Kind(
        title="a Limit",
        is_one=lambda thing: isinstance(thing, Limit),
        pack=pack,
        unpack=unpack,
        label=label,
        samples=_samples,
        tabulate=tabulate,
        record=record,
        views=view,
    )
)
