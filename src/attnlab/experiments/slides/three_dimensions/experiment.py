"""Three dimensions: the hull of the tokens shrinks to a polytope, and every further head takes corners away."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.clusters import OBSERVED_SCALE
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.analysis.plain_flow import rescaled_by_scipy
from attnlab.engine import simulate
from attnlab.experiments.common import merging as flows
from attnlab.experiments.common.heads import HEADS, VALUES, real_start, synthetic_heads, trained_heads, trained_model
from attnlab.experiments.common.portraits.run import outward, values_of
from attnlab.experiments.datasets import dataset_of, run_in, table
from attnlab.experiments.record import Data
from attnlab.limits import limit
from attnlab.progress import Progress
from attnlab.starts import uniform_cube
from attnlab.theory.statements.polytope import residuals, special_points
from attnlab.types import Trajectory, Weights

from .figures import PICTURED

D, MANY = 3, max(HEADS)

SPREAD = 0.3
"""The heads "near": Q_h = K_h = I + SPREAD G_h, G_h Gaussian, so that scores are positive and heads differ a little."""
SYNTHETIC = ("near", "synthetic")
N = {"full": 40, "small": 20}
DRAWS, OWN_DRAWS = {"full": 30, "small": 6}, {"full": 8, "small": 2}

STEP, FINE = {"identity": 0.1, "own": 0.15}, {"identity": 0.05, "own": 0.15}
"""Steps in tau: for many draws, and for what is shown."""

WATCHED = 4.0
"""With the heads' own V the hull is watched up to this tau: later z = exp(-tW) x is known in the slow directions only."""

SHOWN = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0])
"""The tau of the accurate runs."""
COMPARED = 4.0


def near_heads(count: int, values: str, seed: int) -> Weights:
    """Heads with Q_h = K_h = I + SPREAD G_h; V_h = I, or I + SPREAD G'_h for values "own"."""
    G, _, other = np.moveaxis(np.random.default_rng([seed, D]).normal(size=(MANY, 3, D, D)), 1, 0)[:, :count]
    Q, V = np.eye(D) + SPREAD * G, np.eye(D) + (SPREAD * other if values == "own" else 0.0 * other)
    return Weights(Q=Q, K=Q, V=V, source=f"{count} heads near the identity, rng = {seed}, values: {values}")


def problem(family: str, count: int, values: str, seed: int, n: int) -> tuple[Weights, np.ndarray]:
    """Synthetic weights, and tokens uniform in [-5, 5]^3."""
    weights = near_heads(count, values, seed) if family == "near" else synthetic_heads(count, D, values, rng=seed)
    return weights, uniform_cube(n, D, low=-5.0, high=5.0, rng=seed)


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """Accurate runs that are shown, many draws, certified polytopes of one head, trained heads, and SciPy."""
    loaded, why = trained_model(size, model)
    progress(0.0, "runs that are shown")
    data = {**_shown(N[size]), "checks": _check(N[size] // 2)}
    progress(0.2, "certified polytopes")
    data["polytopes"] = _polytopes(DRAWS[size], N[size])
    progress(0.35, "many draws")
    rows = []
    for family, values in itertools.product(SYNTHETIC, VALUES):
        for count in HEADS:
            for seed in range(1, (DRAWS if values == "identity" else OWN_DRAWS)[size] + 1):
                flow = flows.follow(*problem(family, count, values, seed, N[size]), values, STEP[values])
                about = {"family": family, "values": values, "heads": count, "seed": seed}
                rows.append({**about, **_ends(flow, values, flow.shapes)})
        progress(0.35 + 0.1 * (1 + SYNTHETIC.index(family) * 2 + VALUES.index(values)), f"{family}, {values}")
    if loaded is not None:
        trained, data["trained"] = _trained(loaded, N[size])
        rows += trained
    data["cases"] = table({name: [row[name] for row in rows] for name in rows[0]}, n=N[size], why=why,
                          model=model if loaded is not None else "")
    progress(1.0)
    return data


def _shown(n: int) -> dict[str, Any]:
    """Accurate runs of heads near the identity, V_h = I: z at the tau that are shown, for each H; and the run to be filmed."""
    runs, ends = {}, []
    for count in HEADS:
        weights, x0 = problem("near", count, "identity", 1, n)
        runs[count] = simulate(weights, x0, times=SHOWN / count, t_end=SHOWN[-1] / count, rtol=1e-9, frame="z").rescaled
        flow = flows.follow(weights, x0, "identity", FINE["identity"])
        ends.append(flow.labels)
    weights, x0 = problem("near", 4, "identity", 1, n)
    film = simulate(weights, x0, t_end=2.0, saves=101, rtol=1e-8, frame="z")
    shown = xarray.Dataset({"z": (("head_count", "tau", "token", "coordinate"), np.stack([runs[count] for count in HEADS])),
                            "labels": (("head_count", "token"), np.stack(ends)), "tau": ("tau", SHOWN)})
    return {"shown": shown, "film": dataset_of(film)}


def _ends(flow: flows.Shapes, values: str, space: np.ndarray) -> dict[str, Any]:
    """The numbers of a run seen in space (T, n, 3): corners, volume, who keeps them, how far a hull leaves the one before."""
    labels, is_whole = flow.labels, space is flow.shapes
    centres = np.array([space[-1][labels == k].mean(axis=0) for k in range(labels.max() + 1)])
    scale = OBSERVED_SCALE * float(diameter(space[0]))
    corners = int(flows.outer(centres, scale).sum()) if len(centres) > 1 else 1
    leaves = np.nan
    if values == "own" and is_whole:
        assert flow.run is not None and flow.run.z is not None
        leaves = outward(flow.run.z[flow.tau <= WATCHED])
    elif not is_whole and values == "identity":
        leaves = outward(space)
    return {"clusters": len(centres), "corners": corners, "movement": flows.movement(flow),
            "kept": flows.held(flow)[0] if values == "identity" and is_whole else np.nan,
            "volume": convex_hull(space[-1]).volume / convex_hull(space[0]).volume, "outward": leaves}


def _polytopes(draws: int, n: int) -> Any:
    """One head near the identity, certified: corners, edges, facets of the limit polytope; how far limits are from S."""
    found = []
    for seed in range(1, draws + 1):
        weights, x0 = problem("near", 1, "identity", seed, n)
        end = limit(weights, x0, work=250_000.0)
        if not end.certified:
            continue
        points, M = values_of(end.limits), weights.M[0]
        hull = convex_hull(points)
        size = float(np.abs(points).max())
        found.append({"seed": seed, "limits": len(points), "rank": hull.rank, "V": len(hull.vertices), "E": len(hull.edges),
                      "F": facets(points) if hull.rank == D else 0, "S": len(special_points(points[hull.vertices], M)),
                      "residual": float(residuals(points, M, 1e-9 * size).max() / size)})
    return table({name: [row[name] for row in found] for name in found[0]}, "draw", draws=draws)


def facets(points: np.ndarray) -> int:
    """The triangles that bound the hull of points (m, 3), by trying all triples: those with all points on one side."""
    count = 0
    for triple in itertools.combinations(range(len(points)), 3):
        a, b, c = points[list(triple)]
        normal = np.cross(b - a, c - a)
        heights = np.delete((points - a) @ normal, triple)
        count += bool((heights > 0).all() or (heights < 0).all())
    return count


def _trained(model: Any, n: int) -> tuple[list[dict[str, Any]], Any]:
    """Trained heads on a paragraph, all in their own d, seen in the three principal components of the first tokens."""
    rows, kept = [], []
    share = 0.0
    for values, count in itertools.product(VALUES, HEADS):
        flow = flows.follow(trained_heads(model, count, values), real_start(model, n), values, FINE[values])
        first = flow.shapes[0]
        _, sizes, axes = np.linalg.svd(first - first.mean(axis=0), full_matrices=False)
        share = float((sizes[:D] ** 2).sum() / (sizes**2).sum())
        space = flow.shapes @ axes[:D].T
        rows.append({"family": "trained", "values": values, "heads": count, "seed": 1, **_ends(flow, values, space)})
        if values == "identity":
            kept.append((space[[int(np.argmin(np.abs(flow.tau - tau))) for tau in PICTURED]], flow.labels))
    shown = xarray.Dataset({"z": (("head_count", "panel", "token", "coordinate"), np.stack([z for z, _ in kept])),
                            "labels": (("head_count", "token"), np.stack([labels for _, labels in kept]))},
                           attrs={"share": share, "d": int(model.config.d), "model": str(model.name)})
    return rows, shown


def _check(n: int) -> Any:
    """Four heads near the identity at tau = COMPARED, by the runs and by SciPy's DOP853."""
    weights, x0 = problem("near", 4, "identity", 1, n)
    run = simulate(weights, x0, t_end=COMPARED / 4, saves=2, rtol=1e-10, frame="z").z

    assert run is not None
    axes = ("token", "coordinate")
    return xarray.Dataset({"run": (axes, run[-1]), "exact": (axes, rescaled_by_scipy(weights, x0, COMPARED))})


def film(data: Data) -> Trajectory:
    """Four heads near the identity, to be filmed."""
    return run_in(data, "film")
