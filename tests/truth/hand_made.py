"""Runs that no engine made, with something unusual of each kind in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab import Dynamics, FeedForward, Solve, Spec, Status, Trajectory, Weights

POLYTOPE = Spec(
    weights={"family": "identity"},
    start={"law": "uniform_cube", "n": 5, "d": 3, "low": -5, "high": 5, "rng": 0},
    solve={"t_end": 0.5, "saves": 3},
)


def hand_made(kind: str = "plain") -> Trajectory:
    """A Trajectory that no engine made, with something unusual of each kind in it."""
    rng = np.random.default_rng(3)
    times, n, d = np.array([0.0, 0.1, 0.3]), 4, 3
    V, Q, K = (rng.standard_normal(shape) for shape in ((d, d), (2, d), (2, d)))
    weights: dict[str, Any] = {"V": V, "Q": Q, "K": K}
    dynamics: dict[str, Any] = {}
    more: dict[str, Any] = {"status": Status.OK, "frame": "x"}
    shape: tuple[int, ...] = (3, n, d)
    if kind == "factored":
        weights = {"V": (rng.standard_normal((2, d, 1)), rng.standard_normal((2, 1, d)))}
        more["frame"] = "z"
    elif kind == "batch":
        shape = (2, 3, n, d)
        more |= {
            "status": np.array([Status.OK, Status.STALLED], dtype=object),
            "error": np.array([1e-9, np.nan]),
        }
    elif kind == "sphere":
        dynamics["geometry"] = "sphere"
    elif kind == "layers":
        dynamics["dt"] = 0.1
    elif kind == "feedforward":
        dynamics["feedforward"] = FeedForward(
            W=rng.standard_normal((d, d)), sigma="tanh", bias=np.ones(d)
        )
    elif kind == "huge":
        more["log_scale"] = np.array([0.0, 300.0, 900.0])
        weights = {"V": np.eye(d)}
    elif kind == "observed":
        numbers = rng.standard_normal((3, 2))
        counted = {"steps": np.int64(12), "evaluations": 84, "seconds": 0.1}
        more |= {
            "observed": {
                "real": numbers[:, 0],
                "complex": numbers + 1j * np.inf,
                "yes": numbers > 0,
                "counts": np.arange(7),
            },
            "spec": POLYTOPE,
            "error": 1.25e-9,
            "stats": {**counted, "path": "tiled", "each": np.arange(3), "more": {"a": [1, 2.5]}},
        }
    states = rng.standard_normal(shape)
    if kind == "batch":
        states[1, 2:] = np.nan
    log_scale = more.pop("log_scale", np.zeros(shape[:-2]))
    solve = Solve(
        t_end=1.0,
        times=np.linspace(0, 1, 5),
        rtol=1e-7,
        layers=10 if kind == "layers" else None,
        max_steps=99,
    )
    return Trajectory(
        Dynamics(Weights(**weights), **dynamics), solve, times, states, log_scale=log_scale, **more
    )


KINDS = ("plain", "factored", "batch", "sphere", "layers", "feedforward", "huge", "observed")
