"""Any scores at all: V = I or diag(1, 1, -0.5), Q^T K with independent uniform entries, by the signs of its symmetric part."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp

from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.limits import limit
from attnlab.progress import Progress
from attnlab.types import Spec, Weights

N, REACH = 25, 5.0
"""Tokens of a draw, and half the side of the square (or cube) that they start in."""

DRAWS = {"full": (200, 120, 50), "small": (24, 20, 10)}
"""With V = I, paranormal, and with V = I and the start in these SIZES."""
SIZES = {"full": (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0), "small": (0.2, 1.0, 5.0)}

WORK = {"full": 25_000.0, "small": 6_250.0}
"""Units for one limit in F, about a second: more do not help where leaders inside a group still change."""
TIMES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 18.0)
TIMES_IN_F = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)

SCALE = 0.05
"""Groups of a run at its last time are counted at this distance, 1 % of REACH."""
CLASSES = ("positive definite", "indefinite", "negative definite")
VALUES = {2: np.eye(2), 3: np.diag([1.0, 1.0, -0.5])}


def scores_of(draw: int, d: int) -> np.ndarray:
    """M = Q^T K of a draw."""
    return np.random.default_rng([draw, 1]).uniform(-1.0, 1.0, (d, d))


def start_of(draw: int, d: int, size: float = REACH) -> np.ndarray:
    """The first tokens, as the law uniform_cube draws them."""
    return np.random.default_rng(draw).uniform(-1.0, 1.0, (N, d)) * size


def class_of(scores: np.ndarray) -> str:
    """The signs of the symmetric part of the block in F, the first two coordinates."""
    values = np.linalg.eigvalsh(scores[:2, :2] + scores[:2, :2].T)
    return CLASSES[0] if values[0] > 0 else CLASSES[2] if values[1] < 0 else CLASSES[1]


def first_of(kind: str, d: int) -> int:
    """The first draw of a class: the one that is drawn."""
    return next(draw for draw in range(1000) if class_of(scores_of(draw, d)) == kind)


def specs(size: str) -> dict[str, Spec]:
    """The six runs of the pictures: of each class the first draw."""
    del size
    made, solve = {}, {"t_end": 10.0, "times": np.linspace(0.0, 10.0, 201).tolist(), "measure_error": True}
    for d, before in ((2, ""), (3, "paranormal_")):
        for kind in CLASSES:
            draw = first_of(kind, d)
            start = {"law": "uniform_cube", "n": N, "d": d, "low": -REACH, "high": REACH, "rng": draw}
            weights = {"family": "given", "Q": np.eye(d), "K": scores_of(draw, d), "V": VALUES[d]}
            made[before + kind.replace(" ", "_")] = Spec(weights=weights, start=start, solve=solve)
    return made


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The draws with V = I and their limits, the same at other sizes of the start, the paranormal ones, and the pictures."""
    identity, paranormal, sized = DRAWS[size]
    data: dict[str, Any] = {"draws": _ensemble(2, identity, progress.part(0.0, 0.3), TIMES, 500_000.0)}
    data["scipy"] = _by_scipy(identity // 8)
    data["sizes"] = _sizes(SIZES[size], sized, progress.part(0.3, 0.55))
    data["paranormal"] = _ensemble(3, paranormal, progress.part(0.55, 0.9), TIMES_IN_F, WORK[size])
    for number, (name, spec) in enumerate(specs(size).items()):
        progress(0.9 + number / 60, "pictures")
        data |= study(spec, name=name, names=["generic_scores", "hull_shrinks"], work=WORK[size])
    progress(1.0)
    return data


def _ensemble(d: int, draws: int, progress: Progress, times: tuple[float, ...], work: float) -> Any:
    """Runs and limits of the draws: z in F at the saved times, certified limits, or the end of the run where there is none."""
    rows = []
    for draw in range(draws):
        progress(draw / draws, "draws with V = I" if d == 2 else "paranormal draws")
        weights, x0 = Weights(Q=np.eye(d), K=scores_of(draw, d), V=VALUES[d]), start_of(draw, d)
        run = simulate(weights, x0, t_end=times[-1], times=times, rtol=1e-11, throw=False, max_steps=20_000)
        assert run.z is not None
        z = np.full((len(times), N, 2), np.nan)
        z[: len(run.times)] = run.z[..., :2]
        end = limit(weights, x0, work=work)
        points, labels = (end.limits[:, :2], end.labels) if end.certified else ended(run.z[-1][:, :2])
        rows.append((z, weights.M[0], points, labels, np.int8(end.certified), end.error if end.certified else np.nan))
    axes = {"z": ("time", "token", "coordinate"), "scores": ("row", "column"), "limit": ("token", "coordinate"),
            "label": ("token",), "is_decided": (), "error": ()}
    columns = {name: (("draw", *axes[name]), np.array([row[k] for row in rows])) for k, name in enumerate(axes)}
    return xarray.Dataset(columns, coords={"time": np.array(times)}, attrs={"n": N, "size": REACH, "d": d})


def ended(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centres (n, 2), labels (n,)) of the groups at SCALE: what a run that was not decided ended with."""
    labels = cluster_labels(tokens, SCALE)
    return cluster_centres(tokens, labels)[labels], labels


def _sizes(sizes: tuple[float, ...], draws: int, progress: Progress) -> Any:
    """The limits of the first draws, V = I, with the same start larger and smaller."""
    points, labels = np.full((len(sizes), draws, N, 2), np.nan), np.full((len(sizes), draws, N), -1)
    for row, reach in enumerate(sizes):
        for draw in range(draws):
            progress((row + draw / draws) / len(sizes), f"start of size {reach:g}")
            end = limit(Weights(Q=np.eye(2), K=scores_of(draw, 2), V=np.eye(2)), start_of(draw, 2, reach), work=500_000.0)
            points[row, draw], labels[row, draw] = end.limits, end.labels
    mean = np.array([start_of(draw, 2, 1.0).mean(axis=0) for draw in range(draws)])
    return xarray.Dataset(
        {"limit": (("size", "draw", "token", "coordinate"), points), "label": (("size", "draw", "token"), labels),
         "mean": (("draw", "coordinate"), mean)}, coords={"size": np.array(sizes)},
    )


def _by_scipy(draws: int, t_end: float = 8.0) -> Any:
    """z at t_end of the first draws by SciPy's DOP853, on the equation written out in NumPy."""
    ends = []
    for draw in range(draws):
        M = scores_of(draw, 2)

        def velocity(t: float, flat: np.ndarray, M: np.ndarray = M) -> np.ndarray:
            x = flat.reshape(N, 2)
            P = np.exp((s := x @ M @ x.T) - s.max(axis=1, keepdims=True))
            return np.ravel(P / P.sum(axis=1, keepdims=True) @ x)

        solved = solve_ivp(velocity, (0.0, t_end), start_of(draw, 2).ravel(), method="DOP853", rtol=1e-11, atol=1e-12)
        ends.append(np.exp(-t_end) * solved.y[:, -1].reshape(N, 2))
    return xarray.Dataset({"z": (("draw", "token", "coordinate"), np.array(ends))}, attrs={"t": t_end})
