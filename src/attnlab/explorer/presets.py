"""The presets of the explorer: a Spec, a name, and two sentences that say what to watch.

Their certified limits are in presets.json, which `python docs/make_presets.py` writes; a test fails
if it is out of date. The preset `trained` is a recording of a trained head, in trained.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.registry import Registry
from attnlab.run import resolve
from attnlab.types import Event, Limit, Spec

LIMITS = Path(__file__).with_name("presets.json")
RECORDING = Path(__file__).with_name("trained.json")

presets: Registry[Preset] = Registry("preset of the explorer")


@dataclass(frozen=True)
class Preset:
    """A run to begin with. watch: two sentences. camera: yaw, pitch and zoom, if the usual view is
    not suitable.
    """

    id: str
    name: str
    watch: str
    spec: Spec
    camera: tuple[float, float, float] | None = None


def preset_record(preset: Preset) -> dict[str, Any]:
    """Return the preset as a page holds it, with its certified limit if there is one."""
    found: dict[str, Any] = {
        "id": preset.id,
        "name": preset.name,
        "watch": preset.watch,
        "spec": preset.spec.to_dict(),
    }
    stored = stored_limits().get(preset.id, {})
    if stored.get("limit") is not None:
        found["limit"] = {"spec": preset.spec.to_dict(), **stored["limit"]}
    if preset.camera is not None:
        found["camera"] = list(preset.camera)
    return found


def preset_limit(preset: Preset) -> Limit | None:
    """Return the stored certified limit of a preset, or None if it is undecided."""
    stored = stored_limits().get(preset.id, {})
    record = stored.get("limit")
    if record is None:
        return None
    resolved = resolve(preset.spec)
    d, labels = resolved.x0.shape[1], np.array(record["labels"])
    basis, ends = (
        np.array(stored["basis"], float).reshape(d, -1),
        np.array(record["points"], float)[labels],
    )  # (d, k), (n, d)
    return Limit(
        resolved.dynamics,
        resolved.x0,
        labels,
        np.array(record["leaders"]),
        basis,
        ends @ np.linalg.pinv(basis).T,
        **{name: record[name] for name in ("error", "grade", "reason", "certificate", "t")},
        events=tuple(Event(*event) for event in stored["events"]),
        digits=stored["digits"],
        spec=preset.spec,
        places=None if basis.shape[1] else ends,
    )


@cache
def stored_limits() -> Mapping[str, Any]:
    """Return {id: {digest, limit, basis, events, digits}} of presets.json. digest is that of the
    Spec.

    If the limit is undecided, `limit` is None and the other keys are left out.
    """
    found: Mapping[str, Any] = (
        json.loads(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {}
    )
    return found


def recorded_head() -> dict[str, Any]:
    """Return the contents of trained.json: name, watch, title, spec and recording of a trained
    head.
    """
    found: dict[str, Any] = json.loads(RECORDING.read_text(encoding="utf-8"))
    return found


def _spectrum(*eigenvalues: Any) -> dict[str, Any]:
    return {"family": "spectrum", "eigenvalues": list(eigenvalues), "basis": "identity"}


def _cube(n: int, d: int, rng: int, half: float = 5.0) -> dict[str, Any]:
    return {"law": "uniform_cube", "n": n, "d": d, "low": -half, "high": half, "rng": rng}


def _add(
    id: str,
    name: str,
    watch: str,
    weights: Mapping[str, Any],
    start: Mapping[str, Any],
    t_end: float = 12.0,
    dynamics: Mapping[str, Any] | None = None,
    camera: tuple[float, float, float] | None = None,
) -> None:
    spec = Spec(weights=weights, start=start, solve={"t_end": t_end}, dynamics=dynamics or {})
    presets.register(id)(Preset(id, name, watch, spec, camera))


_add(
    "boolean",
    "Boolean limit",
    "Forty tokens on a line: the smallest and the largest move away, and every other token follows"
    " one of them. The attention matrix becomes two columns of ones.",
    _spectrum(1.0),
    _cube(40, 1, 0, 1.0),
)
_add(
    "polygon",
    "Polygon",
    "The hull of the tokens can only shrink, and its limit is a polygon. Drag a start across a"
    " border: the token then ends elsewhere, and its path changes colour.",
    _spectrum(1.0, 1.0),
    _cube(60, 2, 3),
)
_add(
    "polytope",
    "Polytope",
    "The rescaled tokens go to the vertices of a polytope. A ring marks a leader, a token that"
    " others attend to: by t = 2 every token has chosen one.",
    _spectrum(1.0, 1.0, 1.0),
    _cube(80, 3, 0),
)
_add(
    "planes",
    "Hyperplanes",
    "Only the first coordinate grows. The tokens gather on at most three parallel planes and stay"
    " spread out inside them.",
    _spectrum(1.0, -0.3, -0.5),
    _cube(80, 3, 1),
)
_add(
    "mix",
    "Polygon × line",
    "Two eigenvalues lead together, and the third decays. Seen from above the tokens form a"
    " polygon, seen from the side columns.",
    _spectrum(1.0, 1.0, -0.5),
    _cube(80, 3, 0),
)
_add(
    "late",
    "Late leaders",
    "The groups look settled, but the leaders change 45 times, the last time at t = 52, long after"
    " double precision ends (hatched). Only the certified limit at the right end of the clock shows"
    " the final groups.",
    _spectrum(1.0, 0.9, -0.5),
    _cube(30, 3, 4),
    26.0,
)
_add(
    "collapse",
    "Collapse",
    "V = −I: every token goes to the origin, but only like one over the square root of t. Nothing"
    " here is exponential.",
    _spectrum(-1.0, -1.0),
    _cube(60, 2, 0, 3.0),
    40.0,
)
_add(
    "circle",
    "Circle",
    "Tokens on a circle form clusters quickly. Then the clusters hardly move until two of them"
    " meet, after a time that grows exponentially with β.",
    _spectrum(1.0, 1.0),
    {"law": "circle", "n": 64, "d": 2, "rng": 0},
    40.0,
    {"geometry": "sphere", "beta": 9.0},
)
_add(
    "sphere",
    "Sphere",
    "On the sphere almost every start ends in one point. It takes long: four clusters are left at t"
    " = 60, and the last two meet only near t = 570,000.",
    _spectrum(1.0, 1.0, 1.0),
    {"law": "sphere", "n": 120, "d": 3, "rng": 1},
    60.0,
    {"geometry": "sphere", "beta": 9.0},
)
_add(
    "causal",
    "Causal mask",
    "Each token sees only the tokens before it, as in a language model. The first token moves"
    " alone, and later tokens keep more limits than without the mask.",
    _spectrum(1.0, 1.0),
    _cube(40, 2, 1),
    12.0,
    {"mask": "causal"},
)
_add(
    "heads",
    "Two heads",
    "Each head moves one coordinate and looks mostly at that coordinate, so a token can follow a"
    " different leader in each head. Four groups form here, but whether tokens of several heads"
    " gather is open.",
    {
        "family": "given",
        "V": [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]],
        "K": [[[1.0, 0.0], [0.0, 0.3]], [[0.3, 0.0], [0.0, 1.0]]],
    },
    _cube(40, 2, 0),
)
_add(
    "pair",
    "Complex pair",
    "A complex pair of eigenvalues leads, and the tokens turn while they grow. No theorem applies"
    " here, and no clusters are expected.",
    _spectrum([0.5, 1.0]),
    _cube(40, 2, 0, 3.0),
)
