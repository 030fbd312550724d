"""128 tokens in 128 dimensions: coordinates with a positive eigenvalue cluster, the others grow, each at its own rate."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import dataset_of, limit_dataset, table, verdict_dataset, verdicts_said
from attnlab.experiments.record import Claim, Data, Experiment
from attnlab.experiments.spoils import changed, contradicted
from attnlab.progress import Progress
from attnlab.types import Limit, Trajectory

DIMENSIONS = {"full": 128, "small": 24}
END = 15.0
STEP = 0.1
"""The authors' dt."""
EARLY = 25.0
"""Up to this lambda_1 t two programs in double precision can be compared (the wall is near 36)."""
MEAN = 6.4
"""128 x 0.1 x 1/2, the eigenvalue that the mean entry adds in the paper; kept in smaller dimensions by a larger density."""
TIMES = np.round(np.concatenate([np.arange(0, 20) / 10, np.arange(10, 25) / 5, np.arange(10, 31) / 2]), 9)
FLOOR = 1e-6
"""Spreads below are not used in fits: the path is known to about 1e-10, so that above it they are good to four digits."""
STEPS = (0.1, 0.05, 0.025, 0.0125)
EULER_END = 3.0
CHECKED = ("three_hyperplanes", "codimension")
SETTLED = 2.0
"""By then all leaders are fixed, and Euler's tokens of one cluster can still be told apart."""


def sparse_symmetric(d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(eigenvalues (d,) descending, eigenvectors) of the paper's V: entries U(0, 1) at density 0.1, symmetrised, kept off 0.

    Eigenvalues of modulus at most 1 become their sign times U(1, 2).
    """
    entries = rng.random((d, d)) * (rng.random((d, d)) < 2 * MEAN / d)
    values, vectors = np.linalg.eigh((entries + entries.T) / 2)
    is_small = np.abs(values) <= 1
    values[is_small] = np.sign(values[is_small]) * rng.uniform(1, 2, int(is_small.sum()))
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run to the wall, the certified limit with its path to T = 15, and two other programs: DOP853 and the authors' Euler."""
    from attnlab.engine import simulate
    from attnlab.limits import limit
    from attnlab.types import Weights

    d = DIMENSIONS[size]
    rng = np.random.default_rng([11, d, 0])
    values, vectors = sparse_symmetric(d, rng)
    weights = Weights(V=(vectors * values) @ vectors.T)
    x0 = rng.uniform(-0.5, 0.5, (d, d))
    progress(0.0, "simulating to the wall")
    run = simulate(weights, x0, t_end=END, times=TIMES, measure_error=True, throw=False)
    progress(0.15, "reaching t = infinity")
    end = limit(weights, x0, times=TIMES, work=1.5e7, budget=900.0)
    progress(0.85, "checking the theory")
    verdicts = judged(run, end)
    progress(0.88, "an independent integrator")
    coordinates = in_eigenvectors(end, values, vectors)
    data = {"run": dataset_of(run), "limit": limit_dataset(without_path(end)), "verdicts": verdict_dataset({"run": verdicts}),
            "coordinates": coordinates, "integrated": integrated(run, vectors), "independent": independent(x0 @ vectors, values)}
    progress(0.95, "the authors' Euler steps")
    return {**data, **euler_runs(weights, x0, vectors, coordinates)}


def judged(run: Trajectory, end: Limit) -> Any:
    """The verdicts on the run. A limit takes a minute here, so that the one we have is shown to all of them."""
    from attnlab.theory import theorems
    from attnlab.theory.evidence import Evidence
    from attnlab.theory.verbs import verdict

    evidence = Evidence(run)
    last = np.flatnonzero(end.times == run.times[-1])
    evidence.__dict__["limit"] = dataclasses.replace(end, times=end.times[last], z=end.z[last], path=end.path[last])
    return [verdict(theorems[name], evidence) for name in CHECKED]


def without_path(end: Limit) -> Limit:
    """The Limit alone: its path is kept in eigen-coordinates."""
    return dataclasses.replace(end, times=np.zeros(0), z=np.zeros((0, 0, 0)), path=np.zeros((0, 0, 0)))


def in_eigenvectors(end: Limit, values: np.ndarray, vectors: np.ndarray) -> Any:
    """Eigen-coordinates of z over time, token and coordinate; where they grow from z, the others from its projection on F."""
    import xarray

    is_growing = values < 0
    turned = end.basis.T @ vectors[:, ~is_growing]
    everything = np.where(is_growing, end.z @ vectors, 0.0)
    everything[..., ~is_growing] = end.path @ turned
    points = np.full(everything.shape[1:], np.nan)
    points[:, ~is_growing] = end.points @ turned
    return xarray.Dataset(
        {"value": (("time", "token", "coordinate"), everything), "eigenvalue": ("coordinate", values),
         "limit": (("token", "coordinate"), points), "leader": ("token", end.leaders), "label": ("token", end.labels)},
        coords={"time": end.times}, attrs={"decided": end.t, "error": end.error, "grade": str(end.grade)})


def integrated(run: Trajectory, vectors: np.ndarray) -> Any:
    """Eigen-coordinates of z along the run: from its states, which are eigen-coordinates of x, so that none drowns in another."""
    import xarray

    assert run.basis is not None and run.growth is not None
    overlap = run.basis.T @ vectors                       # a signed permutation: V has simple eigenvalues
    place = np.abs(overlap).argmax(axis=0)
    sign = np.sign(overlap[place, np.arange(len(place))])
    z = run.states * np.exp(run.log_scale[:, None] - np.multiply.outer(run.times, run.growth))[:, None]
    return xarray.Dataset({"value": (("time", "token", "coordinate"), z[..., place] * sign)}, coords={"time": run.times})


def independent(start: np.ndarray, values: np.ndarray) -> Any:
    """The same flow by SciPy's DOP853 on three lines of NumPy, x in eigen-coordinates, up to lambda_1 t = 25."""
    import xarray
    from scipy.integrate import solve_ivp

    from attnlab.engine.threads import one_blas_thread

    def velocity(t: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(start.shape)
        scores = x @ x.T
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray((P / P.sum(axis=1, keepdims=True)) @ x * values).ravel()

    asked = TIMES[TIMES * values[0] <= EARLY]
    with one_blas_thread():             # at this size two threads wait for each other longer than they compute
        solution = solve_ivp(velocity, (0, asked[-1]), start.ravel(), method="DOP853", rtol=1e-9, atol=1e-11, t_eval=asked)
    x = solution.y.T.reshape(-1, *start.shape)
    z = x * np.exp(-np.multiply.outer(asked, values))[:, None]
    return xarray.Dataset({"value": (("time", "token", "coordinate"), z)}, coords={"time": asked})


def euler_runs(weights: Any, x0: np.ndarray, vectors: np.ndarray, coordinates: Any) -> dict[str, Any]:
    """The authors' steps of z: how far off for smaller and smaller dt, and for dt = 0.1 the spread of every coordinate."""
    import xarray

    from attnlab.dynamics import attention
    from attnlab.engine import simulate

    true = coordinates["value"].sel(time=EULER_END).values
    clustered = coordinates["eigenvalue"].values > 0
    asked = np.round(np.arange(0, EULER_END + STEP / 2, STEP), 9)
    runs = [simulate(weights, x0, t_end=EULER_END, times=asked, stepper="euler", dt=dt, frame="z") for dt in STEPS]
    off = [float(np.abs(run.z[-1] @ vectors - true)[:, clustered].max()) for run in runs if run.z is not None]
    first = runs[0]
    assert first.z is not None
    P = np.stack([attention(first, at=k)[0] for k in range(len(asked))])
    middle = int(np.searchsorted(asked, SETTLED))
    leader = P[middle].argmax(axis=1)                # rounding changes it again: Euler merges the leading coordinate too fast
    is_settled = np.array([(row.argmax(axis=1) == leader).all() and row.max(axis=1).min() > 1 - 1e-9 for row in P])
    since = middle - int(np.argmin(np.append(is_settled[: middle + 1][::-1], False)))
    until = middle + int(np.argmin(np.append(is_settled[middle:], False)))
    spreads = spread(first.z @ vectors, leader)[since + 1 : until]
    return {"euler": table({"dt": STEPS, "off": off}, "step"),
            "euler_spread": xarray.Dataset({"spread": (("time", "coordinate"), spreads)},
                                           coords={"time": asked[since + 1 : until]})}


def spread(values: np.ndarray, leader: np.ndarray) -> np.ndarray:
    """Root mean square distance (T, d) of the followers to their leader in each coordinate of values (T, n, d)."""
    followers = leader != np.arange(len(leader))
    return np.asarray(np.sqrt(((values - values[:, leader])[:, followers] ** 2).mean(axis=1)))


def rates(t: np.ndarray, spreads: np.ndarray, since: float) -> np.ndarray:
    """The exponential rate (d,) of each spread (T, d) from `since` on, by least squares; NaN where less than three are seen."""
    found = np.full(spreads.shape[1], np.nan)
    for k, column in enumerate(spreads.T):
        used = (t >= since) & (column > FLOOR)
        if used.sum() >= 3:
            found[k] = np.polyfit(t[used], np.log(column[used]), 1)[0]
    return found


def integrated_rates(data: Data) -> np.ndarray:
    """The rate of every coordinate in the integrated run, from when leaders are fixed to lambda_1 t = 25."""
    run, coordinates = data["integrated"], data["coordinates"]
    used = run["time"].values * coordinates["eigenvalue"].values[0] <= EARLY
    spreads = spread(run["value"].values[used], coordinates["leader"].values)
    return rates(run["time"].values[used], spreads, coordinates.attrs["decided"])


def euler_rate(values: np.ndarray) -> np.ndarray:
    """The rate that Euler steps give to a coordinate instead of -lambda: log|1 - lambda dt| / dt."""
    return np.asarray(np.log(np.abs(1 - values * STEP)) / STEP)


def claims(data: Data) -> list[Claim]:
    """Who converges, where to, how fast, and what double precision and Euler steps do to it."""
    coordinates = data["coordinates"]
    t, value, values = (coordinates[name].values for name in ("time", "value", "eigenvalue"))
    leader, decided = coordinates["leader"].values, coordinates.attrs["decided"]
    clustered = values > 0
    last = value[t >= END - 1]
    converging = (np.ptp(last, axis=0).max(axis=0) < 1e-3 * np.ptp(value[0], axis=0)).sum()
    high, low = value[..., clustered].max(axis=1), value[..., clustered].min(axis=1)
    rise = max(np.diff(high, axis=0).max(), -np.diff(low, axis=0).min())
    limits = np.unique(np.round(data["limit"]["points"].values, 7), axis=0)
    rate = integrated_rates(data)
    early, along = data["integrated"]["time"].values, data["integrated"]["value"].values
    kept = along[(early >= decided) & (early * values[0] <= EARLY)][:, np.unique(leader)][..., ~clustered]
    swollen = np.exp(-values[-1] * EARLY / values[0])
    other = data["independent"]
    apart = np.abs(other["value"].values - coordinates["value"].sel(time=other["time"]).values)[..., clustered].max()
    wall = values[0] * float(data["run"]["time"].values[-1])
    off, euler = data["euler"]["off"].values, data["euler_spread"]
    euler_rates = rates(euler["time"].values, euler["spread"].values, 0.0)
    said = [verdicts_said(data["verdicts"], name) == ["SUPPORTED"] for name in CHECKED]
    correction = values[0] * STEPS[-2]
    late = np.exp((-values[-1] - euler_rate(values)[-1]) * END)
    return [
        Claim(text="As many coordinates converge as V has positive eigenvalues: the difference of the two numbers (a "
              "coordinate converges if no token moves by a thousandth of its first range from t = 14 to 15).",
              measured=float(converging - clustered.sum()),
              published="65 of 128 converge, 65 eigenvalues are positive (their draw)", low=0, high=0,
              because="spreads go like e^{-lambda t}, and no eigenvalue is within 1 of 0"),
        Claim(text="The tokens approach at most three parallel affine subspaces of codimension k: number of different "
              "certified limits in F.", measured=float(len(limits)) if coordinates.attrs["grade"] != "undecided" else np.nan,
              published="at most three", low=1, high=3, because="conjecture 4.3 (a theorem for the leading coordinate); "
              "generically two, one on either side of phi*_1 = 0",
              differs="at lambda_1 T = 100 double precision cannot tell who leads; these are certified for t to infinity"),
        Claim(text="The hyperplanes theorem and the codimension conjecture are supported by the run: how many of the two "
              "verdicts.", measured=float(sum(said)), published="a theorem and a conjecture", low=2, high=2,
              because="both SUPPORTED"),
        Claim(text="The largest and the smallest token of a clustered coordinate draw together monotonely: the largest step in "
              "the wrong direction up to t = 15.", measured=float(rise), published="a lemma of section 9", low=-np.inf,
              high=1e-8, because="the lemma; 1e-8 is for rounding and integration, on tokens of size 1"),
        Claim(text="Every coordinate obeys z - z_leader ~ e^{-lambda t}, those that converge and those that grow: the largest "
              "|rate + lambda|.", measured=float(np.abs(rate + values).max()), published="no rate given", low=0, high=1e-3,
              because="once leaders are fixed, offsets x - x_leader are constant; 1e-3 is for spreads known to four digits",
              differs=f"the authors' Euler steps grow like (1 + |lambda| dt)^(t/dt): {late:.0f} times less at t = 15 for the "
              "smallest lambda"),
        Claim(text="The leaders do not grow in any coordinate: the largest change of a leader's z along negative eigenvalues "
              "since the leaders are fixed, up to lambda_1 t = 25.", measured=float(np.ptp(kept, axis=0).max()),
              published="not said: figures show means and deviations", low=0, high=1e-8 * swollen,
              because="a leader attends to itself alone, and then its z stands still; the tolerance 1e-8 is magnified by "
              "e^{|lambda| t}"),
        Claim(text="An independent integrator (SciPy's DOP853, plain NumPy) agrees in all clustered coordinates up to lambda_1 "
              "t = 25: largest difference.", measured=float(apart), low=0, high=1e-5,
              because="its tolerance of 1e-9, magnified by the growth of x to 1e10 and by changes of leader: four digits are "
              "left"),
        Claim(text="Double precision loses the order inside clusters at lambda_1 t of about 36, at a third of T: lambda_1 "
              "times the last time that the run reaches.", measured=float(wall), published="T = 15 is lambda_1 T = 100", low=28,
              high=39, because="e^{-lambda_1 t} reaches 2^-53 at 36.7; more or less by the logarithm of size over spread of "
              "the data", differs="from there on the published run has rounding noise for the differences inside a cluster"),
        Claim(text="Euler's error in the clustered coordinates at t = 3 is of first order: its ratio for dt = 0.025 and 0.0125.",
              measured=float(off[-2] / off[-1]), published="dt = 0.1 only", low=2 * (1 - correction), high=2 * (1 + correction),
              because="2, up to a relative correction of lambda_1 dt",
              differs=f"dt = 0.1 is off by {off[0]:.2g}; lambda_1 dt = {values[0] * STEP:.2f} is not small"),
        Claim(text="With dt = 0.1 the rates are those of Euler, log|1 - lambda dt| / dt, and not -lambda: largest distance "
              "from that formula.", measured=float(np.nanmax(np.abs(euler_rates - euler_rate(values)))), published="dt = 0.1",
              low=0, high=1e-2, because="the closed form of Euler's steps with fixed leaders; a hundredth for what leaks to "
              "other tokens"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """All coordinates at once; then some that cluster, and some that grow."""
    from attnlab.render.coordinates_figure import clustered_figure, growing_figure, rates_figure

    coordinates, euler = data["coordinates"], data["euler_spread"]
    t, value, values, leader, label, points = (
        coordinates[name].values for name in ("time", "value", "eigenvalue", "leader", "label", "limit"))
    decided, wall = coordinates.attrs["decided"], float(data["run"]["time"].values[-1])
    k = int((values > 0).sum())
    chosen = np.unique(np.concatenate([[0], np.linspace(1, k - 1, 5).astype(int)]))
    growing = np.unique(np.linspace(k, len(values) - 1, 5).astype(int))[::-1]
    return {
        "high_dimension": rates_figure(
            t, spread(value, leader), values, integrated_rates(data), decided=decided, wall=wall, dt=STEP, euler_rate=euler_rate,
            euler_rates=rates(euler["time"].values, euler["spread"].values, 0.0)),
        "clustered_coordinates": clustered_figure(t, value, values, label, points, chosen, wall=wall, until=8.0),
        "growing_coordinates": growing_figure(t, value, values, leader, label, growing, wall=wall, decided=decided, dt=STEP),
    }


def _drifting(coordinates: Any) -> None:
    coordinates["value"][..., 1] += 0.05 * coordinates["time"]


def _slow(run: Any) -> None:
    """Growth as Euler steps give it, of a matrix with eigenvalues around -2 where spreads grow."""
    value, t = run["value"].values, run["time"].values
    grows = np.ptp(value[-1], axis=0) > np.ptp(value[0], axis=0)
    late = np.exp(np.multiply.outer(t, np.where(grows, euler_rate(np.array(-2.0)) - 2.0, 0.0)))
    run["value"] = (("time", "token", "coordinate"), value * late[:, None])


def _growing_leaders(run: Any) -> None:
    """The tokens that stay smallest are made to grow."""
    value = run["value"].values.copy()
    calm = np.argsort(np.abs(value[-1]).max(axis=1))[:2]
    value[:, calm] *= np.exp(0.2 * run["time"].values)[:, None, None]
    run["value"] = (("time", "token", "coordinate"), value)


def _four_limits(limit: Any) -> None:
    limit["points"][:4] *= 1 + 0.1 * np.arange(4)[:, None]


def _other_start(independent: Any) -> None:
    independent["value"][:, 0] += 0.01


def _past_the_wall(run: Any) -> Any:
    return run.assign_coords(time=run["time"] * END / float(run["time"][-1]))


def _second_order(euler: Any) -> None:
    euler["off"] = euler["off"] * euler["dt"]


def _exact_rates(euler: Any) -> None:
    """Spreads that change by a tenth less than they do."""
    euler["spread"] = (("time", "coordinate"), euler["spread"].values ** 0.9)


experiments.register("high_dimension")(
    Experiment(
        name="high_dimension",
        title="128 tokens in 128 dimensions: which coordinates cluster, which grow, and how fast",
        cite="Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2305.05465, section 4 and its figures of clustered and of "
        "growing coordinates; the published notebook",
        about="V is a sparse symmetric 128 x 128 matrix, Q = K = I, and 128 tokens start in [-1/2, 1/2]^128. In the "
        "coordinates along the eigenvectors of V the rescaled tokens z = e^{-tV} x do one of two things: where the "
        "eigenvalue is positive they gather at a few values, two here; where it is negative they spread without bound.\n\n"
        "There is one law behind both. From about t = 1 on every token attends to one of two leaders, which attend to "
        "themselves; then the leaders' z stand still, and the others differ from them by a constant in x, so by "
        "e^{-lambda t} times a constant in z. Every one of the 128 measured rates is -lambda. So the leaders do not grow "
        "at all, in no coordinate.\n\n"
        "The published run goes to T = 15, which is lambda_1 T = 100; double precision ends at about 36, and dt = 0.1 is "
        "not small beside 1 / lambda_1 = 0.15. Its notebook has two more slips (the exponential of tV in "
        "eigen-coordinates is conjugated wrongly, and an elementwise power starts it from a matrix of ones). Here the "
        "flow is integrated to the wall and continued to T = 15 and to infinity by the certified limit. The published "
        "draw is not available (no seed); ours (NumPy's generator seeded by 11, d, 0) has another spectrum of the same "
        "kind: theirs had 65 positive and 63 negative eigenvalues from -2.846 to 6.678. The small version has d = n = 24 "
        "and a density of 0.53, which keeps the leading eigenvalue near 6.4.",
        compute=compute,
        claims=claims,
        figures=figures,
        spoils={
            "a clustered coordinate drifts": changed("coordinates", _drifting),
            "growth by Euler's rate": changed("integrated", _slow),
            "leaders grow": changed("integrated", _growing_leaders),
            "five limits": changed("limit", _four_limits),
            "another start for the other program": changed("independent", _other_start),
            "a run that ignores the wall": changed("run", _past_the_wall),
            "Euler of second order": changed("euler", _second_order),
            "Euler with other rates": changed("euler_spread", _exact_rates),
            "theorems contradicted": contradicted,
        },
    )
)
