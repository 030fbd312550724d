"""What the portraits of the paper compute and claim alike: tokens at t = 0, 1, 2, 5 and infinity, and the numerics behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import limit_in, run_in, verdicts_said
from attnlab.experiments.record import Claim, Data
from attnlab.experiments.spoils import changed, contradicted
from attnlab.progress import Progress
from attnlab.types import Limit, Spec, Trajectory, Weights

PANELS = (0.0, 1.0, 2.0, 5.0)
"""The times of the published panels."""

PUBLISHED_END = 5.0
COMPARED = (0.5, 1.0, 2.0, 3.5, PUBLISHED_END)
"""The times at which another integrator is asked."""

STEPS = (0.1, 0.05, 0.025, 0.0125)
"""Euler steps; the authors' is the first."""

CUBE = {"law": "uniform_cube", "low": -5.0, "high": 5.0}
CITE = "Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465"


def portrait_spec(weights: Mapping[str, Any], n: int, d: int, t_end: float) -> Spec:
    """A run from the cube [-5, 5]^d, rng 0, saved densely as long as the picture moves."""
    times = [*np.round(np.arange(0.0, 6.0, 0.05), 10).tolist(), *np.round(np.arange(6.0, t_end + 0.01, 0.25), 10).tolist()]
    return Spec(weights=dict(weights), start={**CUBE, "n": n, "d": d, "rng": 0},
                solve={"t_end": t_end, "times": times, "rtol": 1e-10, "measure_error": True})


def portrait(spec: Spec, progress: Progress, results: Sequence[str], later: Sequence[float] = ()) -> dict[str, Any]:
    """The run, its certified limit with the way there, the verdicts, and what other integrators say at T = 5."""
    ways = sorted({*np.round(np.arange(0.1, 6.01, 0.1), 10).tolist(), 8.0, 10.0, *later})
    data = study(spec, progress.part(0.0, 0.8), limit_times=ways, names=list(results))
    progress(0.85, "integrating again, by other means")
    data["numerics"] = numerics(run_in(data))
    progress(1.0)
    return data


def numerics(run: Trajectory) -> Any:
    """The tokens z at T = 5 by scipy's DOP853 and by Euler steps of z, the authors' scheme: a Dataset."""
    import xarray

    from attnlab.engine import simulate

    assert run.z is not None
    weights, start = run.dynamics.weights, run.z[0]
    euler = [simulate(weights, start, t_end=PUBLISHED_END, times=[0.0, PUBLISHED_END], stepper="euler", dt=dt, frame="z").z
             for dt in STEPS]
    exact = reference(weights.full_V[0], weights.M[0], start, COMPARED)
    return xarray.Dataset({
        "exact": (("token", "coordinate"), exact[-1]),
        "exact_at": (("moment", "token", "coordinate"), exact),
        "compared": ("moment", np.array(COMPARED)),
        "euler": (("step", "token", "coordinate"), np.stack([z[-1] for z in euler if z is not None])),
        "dt": ("step", np.array(STEPS)),
    })


def reference(V: np.ndarray, M: np.ndarray, start: np.ndarray, times: Sequence[float]) -> np.ndarray:
    """z (T, n, d) at some times by scipy alone, written down once more in plain NumPy.

    dz_i/dt = sum_j P_ij V (z_j - z_i), P from e^{tV} z.
    """
    from scipy.integrate import solve_ivp

    values, right = np.linalg.eig(V)
    left = np.linalg.inv(right)

    def slope(s: float, flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(start.shape)
        x = z @ ((right * np.exp(s * values)) @ left).real.T
        scores = x @ M @ x.T
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return ((weights @ z - z) @ V.T).ravel()

    solution = solve_ivp(slope, (0.0, times[-1]), start.ravel(), method="DOP853", rtol=1e-11, atol=1e-11, t_eval=list(times))
    return solution.y.T.reshape(len(times), *start.shape)


def limits_of_starts(weights: Weights, n: int, count: int, progress: Progress) -> Any:
    """The certified limits of `count` starts, rng 1, 2, ...: points (start, token, in_F), NaN where undecided."""
    import xarray

    from attnlab.limits import limit
    from attnlab.starts import uniform_cube

    found = []
    for seed in range(1, count + 1):
        found.append(limit(weights, uniform_cube(n, weights.d, low=-5.0, high=5.0, rng=seed), work=750_000.0))
        progress(seed / count, f"start {seed} of {count}")
    points = np.stack([one.points if one.certified else np.full_like(one.points, np.nan) for one in found])
    return xarray.Dataset({"points": (("start", "token", "in_F"), points), "rng": ("start", np.arange(1, count + 1))})


def values_of(points: np.ndarray) -> np.ndarray:
    """The different points (m, k) among points (n, k): equal are those that agree to a millionth of the largest."""
    from attnlab.analysis.clusters import cluster_centres, cluster_labels

    if not np.isfinite(points).all():
        return points[:0]
    return cluster_centres(points, cluster_labels(points, 1e-6 * max(float(np.abs(points).max()), 1e-300)))


def counts_of(starts: Any) -> np.ndarray:
    """The number of different limits of every start."""
    return np.array([len(values_of(points)) for points in starts["points"].values])


def supported(data: Data, theorem: str, words: str, published: str) -> Claim:
    """The verdict of a theorem on the run."""
    is_supported = verdicts_said(data["verdicts"], theorem) == ["SUPPORTED"]
    return Claim(text=f"{words}: the verdict on this run.", measured=float(is_supported), published=published, low=1, high=1,
                 because="1 is SUPPORTED: the certified limit obeys the theorem, and the run comes near it")


def agrees(data: Data) -> Claim:
    """The run against an integrator and a right-hand side that share nothing with ours."""
    run, numerics = run_in(data), data["numerics"]
    off = max(np.abs(at_time(run, t) - exact).max() / np.abs(exact).max()
              for t, exact in zip(numerics["compared"].values, numerics["exact_at"].values, strict=True))
    return Claim(text="At five times up to T = 5 the run is where scipy's DOP853 puts it with a plain NumPy right-hand side: "
                 "largest difference over the largest token.", measured=float(off), low=0, high=1e-6,
                 because="both promise 1e-10 a step or better; the rest is room for what a change of leader makes of it")


def first_order(data: Data, remark: str = "") -> Claim:
    """The authors' scheme is forward Euler: its error falls like dt."""
    errors = euler_errors(data)
    median = np.median(errors, axis=1)
    return Claim(text="Half the authors' time step makes half the error at T = 5 (median over the tokens).",
                 measured=float(median[0] / median[1]), published="a scheme called RK4", low=1.7, high=2.3,
                 because="one order: the ratio is 2 (1 + O(λ₁ dt)), and λ₁ dt is below 0.2",
                 differs="The published scheme is forward Euler (its stages coincide); with dt = 0.1 a token is off by "
                 f"{median[0]:.2g} in the median and {errors[0].max():.2g} at most.{remark}")


def euler_errors(data: Data) -> np.ndarray:
    """How far each token is off at T = 5: (step, token)."""
    return np.linalg.norm(data["numerics"]["euler"].values - data["numerics"]["exact"].values, axis=-1)


def at_time(run: Trajectory, t: float) -> np.ndarray:
    """z at the saved time nearest to t."""
    assert run.z is not None
    return run.z[int(np.argmin(np.abs(run.times - t)))]


def rate(times: np.ndarray, values: np.ndarray, since: float) -> float:
    """The slope of log(values) over time from `since` on; NaN where it cannot be had."""
    late = (times >= since) & (values > 0)
    return float(np.polyfit(times[late], np.log(values[late]), 1)[0]) if late.sum() > 2 else float("nan")


def outward(z: np.ndarray) -> float:
    """How far a token of z (T, n, k) leaves the hull of the saved time before, over the first diameter."""
    from attnlab.analysis.distances import diameter
    from attnlab.theory.statements.hull_shrinks import outward as leaves

    return leaves(z)[0] / float(diameter(z[0]))


def hull_never_grows(z: np.ndarray, what: str) -> Claim:
    """Proposition on the convex hull, by its facets."""
    return Claim(text=f"The convex hull of {what} never grows: the farthest that a token leaves the hull of the saved time "
                 "before, over the first diameter.", measured=outward(z), published="non-increasing", low=-np.inf, high=1e-8,
                 because="section 8; 1e-8 is a hundred times the tolerance of the integrator")


def in_special_set(points: np.ndarray, M: np.ndarray, words: str) -> Claim:
    """Every limit u has u^T M u = max_j u^T M v_j."""
    products = points @ M @ points.T
    off = np.abs(np.diag(products) - products.max(axis=1)).max() / np.abs(products).max()
    return Claim(text=f"{words}: largest |uᵀMu − max uᵀMv| over the limits u, v, relative to the largest product.",
                 measured=float(off), published="a theorem", low=0, high=1e-7,
                 because="the limits are certified within 1e-8 of their size; the quotient moves four times as far at most")


def all_vertices(points: np.ndarray) -> bool:
    """Whether every one of the different points (m, k) is a vertex of their hull."""
    from attnlab.analysis.hull import convex_hull

    return len(points) > 0 and len(convex_hull(points).vertices) == len(points)


def share_at_vertices(data: Data, words: str) -> Claim:
    """Generic starts use the vertices alone."""
    shares = [all_vertices(values_of(points)) for points in data["starts"]["points"].values]
    return Claim(text=f"{words} (random starts, rng 1, 2, ...): share of the {len(shares)} starts.",
                 measured=float(np.mean(shares)), published="finitely many further points are allowed", low=0.95, high=1,
                 because="further points of S seem to repel, so that only exceptional starts end there: expected, not proved")


def followers_approach(run: Trajectory, limit: Limit, dual: np.ndarray, speed: float, what: str, published: str,
                       differs: str = "") -> Claim:
    """After the decision z_i - z_L is e^{-tV} times a constant: its part along an eigenvector is an exact exponential."""
    growth = rate(run.times, distance_to_leader(run, limit, dual), max(limit.t, 2.0))
    return Claim(text=f"{what}: slope of the logarithm of the largest distance, from the decision on.", measured=growth,
                 published=published, low=speed - 0.02 * max(abs(speed), 0.1), high=speed + 0.02 * max(abs(speed), 0.1),
                 because=f"once its leader is decided, x_i − x_leader is constant, so this part of z follows e^({speed:.4g} t)",
                 differs=differs)


def reaches_limit(data: Data) -> Claim:
    """The certified limit is where the run goes, at least as fast as the slowest growing direction allows."""
    from attnlab.render.limit_view import dual_basis

    run, limit = drawn_from(data)
    worst = slowest = float("nan")
    if limit.certified:
        dual, _ = dual_basis(limit)
        values, right = np.linalg.eig(dual @ run.dynamics.weights.full_V[0] @ limit.basis)
        slowest, since = float(values.real.min()), int(np.searchsorted(run.times, limit.t))
        away, times = distances(run, limit, dual)[since:].max(axis=1), run.times[since:]
        envelope = np.linalg.cond(limit.basis @ right) * away[0] * np.exp(-slowest * (times - times[0]))
        seen = envelope > 1e-7 * np.abs(limit.points).max()                    # below it the errors of run and limit are seen
        worst = float((away / envelope)[seen].max()) if seen.sum() > 2 else float("nan")
    return Claim(text="The run goes to the certified limit: the largest distance in F from it, over e^(−λ t) times that at the "
                 "decision (λ the slowest growing rate, and the condition number of its eigenvectors).", measured=worst, low=0,
                 high=1.01, because="x_i − x_leader is constant from the decision on, so in F z follows e^(−tV); a hundredth "
                 "is for what softmax leaks")


def distance_to_leader(run: Trajectory, limit: Limit, dual: np.ndarray) -> np.ndarray:
    """The largest |dual (z_i - z_L(i))| at every saved time, (T,); dual (k, d), complex allowed."""
    assert run.z is not None
    apart = run.z - run.z[:, np.where(limit.leaders >= 0, limit.leaders, np.arange(run.n))]
    return np.linalg.norm(apart @ dual.T, axis=-1).max(axis=1)


def distances(run: Trajectory, limit: Limit, dual: np.ndarray | None = None) -> np.ndarray:
    """The distance of every token to its limit, (T, n): in F, where dual (k, d) gives coordinates along limit.basis."""
    assert run.z is not None
    if dual is None:
        return np.linalg.norm(run.z - limit.limits, axis=-1)
    return np.linalg.norm((run.z @ dual.T - limit.points) @ limit.basis.T, axis=-1)


def spoils(*, starts: bool = True) -> dict[str, Callable[[Data], Data]]:
    """Damages that every portrait must notice."""
    found: dict[str, Callable[[Data], Data]] = {
        "tokens drift outwards": changed("run", _drifting),
        "a leader ends elsewhere": changed("limit", _moved),
        "tokens too slow between the panels": changed("run", _slow),
        "Euler as good with any step": changed("numerics", _one_error),
        "theorems contradicted": contradicted,
    }
    return found | ({"starts end anywhere": changed("starts", _anywhere)} if starts else {})


def _drifting(run: Any) -> None:
    """From t = 4 on all tokens drift outwards, by a tenth in a unit of time."""
    states = run["states"].values.copy()
    states *= 1.0 + 0.1 * np.maximum(run["time"].values - 4.0, 0.0)[:, None, None]
    run["states"] = (run["states"].dims, states)


def _slow(run: Any) -> None:
    """Between the published panels tokens lag behind, by a thousandth; at T = 5 they are where they should be."""
    states, times = run["states"].values.copy(), run["time"].values
    states[(times > 0.2) & (times < 4.9)] *= 1.001
    run["states"] = (run["states"].dims, states)


def _moved(limit: Any) -> None:
    """The first leader does not end at its limit, but on the way to that of another group."""
    points, labels = limit["points"].values.copy(), limit["labels"].values
    first = int(limit["leaders"].values[0])
    other = int(np.argmax(labels != labels[first]))
    points[first] = 0.4 * points[first] + 0.6 * points[other]
    limit["points"] = (limit["points"].dims, points)


def _one_error(numerics: Any) -> None:
    """The error of the first step for all steps."""
    euler = numerics["euler"].values.copy()
    euler[1:] = euler[0]
    numerics["euler"] = (numerics["euler"].dims, euler)


def _anywhere(starts: Any) -> None:
    """In every start one token in three stops somewhere on the way to 0."""
    for name in {"points", "one_sided"} & set(starts.data_vars):
        points = starts[name].values.copy()
        points[:, ::3] *= np.linspace(0.3, 0.6, points[:, ::3].shape[1])[:, None]
        starts[name] = (starts[name].dims, points)


def film(data: Data) -> Trajectory:
    """The run, to be filmed."""
    return run_in(data)


def drawn_from(data: Data) -> tuple[Trajectory, Limit]:
    """The run and its limit."""
    return run_in(data), limit_in(data)
