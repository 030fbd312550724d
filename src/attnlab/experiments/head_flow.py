"""The flow with one trained head, V = I and V of the head: is it one cluster, and not at the origin?"""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import changed, table
from attnlab.experiments.record import Claim, Data, Experiment, Progress
from attnlab.experiments.surviving_eigenvalues import attention_at, moduli
from attnlab.types import Weights

N, T, EULER_STEP, FINE_STEP = 30, 5.0, 0.1, 0.02
STEPS = round(T / EULER_STEP)
SHOWN = (0, STEPS // 2, STEPS)
"""The steps that the slides colour."""

CASES = (("identity", "cube"), ("identity", "sphere"), ("own", "cube"), ("own", "sphere"), ("own", "one side"))
SEEDS = {"full": {"identity": 15, "own": 3}, "small": {"identity": 3, "own": 2}}
SCALE = 0.05
"""Tokens are in one cluster when steps between them are no longer than this part of the first diameter; z for V = I, directions
for V of the head."""

BUDGET = 10.0
SURVIVES = 0.5


def compute(size: str, progress: Progress, model: str = "plbert") -> dict[str, Any]:
    """Runs of all cases; at size "small" plbert is replaced by a tiny ALBERT with planted eigenvalues.

    model: a name of `attnlab models`, or a folder; its head is the good triple of layer 0 with the largest eigenvalue.
    """
    from attnlab.engine.threads import one_blas_thread
    from attnlab.experiments.albert_spectra import planted
    from attnlab.models import load

    progress(0.0, "loading weights")
    loaded = planted() if size == "small" and model == "plbert" else load(model)
    number, leading = good_head(loaded)
    weights = loaded.weights(0, number)
    wanted = [(values, start, seed) for values, start in CASES for seed in range(SEEDS[size][values])]
    rows, pictures = [], []
    with one_blas_thread():
        for done, (values, start, seed) in enumerate(wanted):
            progress(0.05 + 0.9 * done / len(wanted), f"V {values}, {start}, seed {seed}")
            row, picture = one_case(weights, values, start, seed)
            rows.append({"values": values, "start": start, "seed": seed, **row})
            if seed == 0:
                pictures.append(picture)
        progress(0.95, "plain Euler steps")
        plain = plain_euler(weights, first_tokens(weights, "cube", 0))
    facts = {"model": loaded.name, "head": number, "leading": leading, "d": weights.d}
    progress(1.0)
    runs = table({name: [row[name] for row in rows] for name in rows[0]}, "run", **facts)
    return {"runs": runs, "pictures": _stacked(pictures), "plain": plain}


def good_head(model: Any) -> tuple[int, float]:
    """(number, eigenvalue) of the good triple of layer 0 whose eigenvalue is largest."""
    from attnlab.models.judgement import verdict
    from attnlab.models.spectra_table import measured_heads

    good = [(one.numbers.lambda1.real, one.head) for one in measured_heads(model, 0) if verdict(one.numbers) == "good triple"]
    if not good:
        raise ValueError(f"{model.name} has no good triple in layer 0; choose another model.")
    value, number = max(good)
    return number, float(value)


def first_tokens(weights: Weights, start: str, seed: int) -> np.ndarray:
    """Tokens of the cube [-5, 5]^d, of the sphere of radius sqrt(d), or of the cube, mirrored to where phi_1 is positive."""
    from attnlab.analysis.spectra import leading
    from attnlab.models.flows import starts

    rng = np.random.default_rng(seed)
    if start != "one side":
        return np.asarray(starts[start](rng, N, weights.d))
    x0 = starts["cube"](rng, N, weights.d)
    return np.asarray(x0 * np.sign(x0 @ leading(weights).psi)[:, None])


def one_case(weights: Weights, values: str, start: str, seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The numbers of one run and of Euler's, and what is drawn of the first seed."""
    from attnlab.engine import simulate
    from attnlab.experiments.heads import in_span

    x0 = first_tokens(weights, start, seed)
    times = np.arange(STEPS + 1) * EULER_STEP
    if values == "identity":
        weights, x0, _ = in_span(Weights(Q=weights.Q, K=weights.K, V=np.eye(weights.d)), x0)
    options: dict[str, Any] = {"t_end": T, "times": times, "throw": False}
    fine: dict[str, Any] = {"rtol": 1e-7} if values == "identity" else {"stepper": "rk4", "dt": FINE_STEP, "frame": "x"}
    run = simulate(weights, x0, **options, **fine)
    euler = simulate(weights, x0, **options, stepper="euler", dt=EULER_STEP, frame="x")
    row = {**_numbers(run, values), **_of_leader(weights, run, euler), **_certified(weights, x0, run, values)}
    followed = [_attention(one, STEPS).argmax(axis=1) for one in (run, euler)]
    row["same_leaders"] = float(np.mean(followed[0] == followed[1]))
    row["survivors_of_euler"] = int(np.sum(moduli(_attention(euler, STEPS)) > SURVIVES))
    return row, _picture(run, euler)


def _attention(run: Any, at: int) -> np.ndarray:
    return np.asarray(attention_at(run, at)[0])


def _states(run: Any) -> np.ndarray:
    """x (time, token, coordinate), each time over its largest token."""
    states = run.scaled_x()[0]
    return np.asarray(states / np.linalg.norm(states, axis=-1).max(axis=-1)[:, None, None])


def _numbers(run: Any, values: str) -> dict[str, Any]:
    """Clusters at T, how far they are from the origin, over their width, variance on one and three axes, what survives of P."""
    from attnlab.analysis.clusters import cluster_centres, cluster_labels
    from attnlab.analysis.distances import diameter
    from attnlab.models.flows import principal

    states = _states(run)
    followed = run.z if values == "identity" else states / np.linalg.norm(states, axis=-1, keepdims=True)
    labels = cluster_labels(followed[-1], SCALE * float(diameter(followed[0])))
    last = states[-1]
    centres = cluster_centres(last, labels)
    widths = [np.linalg.norm(last[labels == label] - centre, axis=1).max() for label, centre in enumerate(centres)]
    shares = principal(last[None])[1]
    return {
        "clusters": len(centres), "away": float(min(np.linalg.norm(centres, axis=1) / np.maximum(widths, 1e-300))),
        "nearest": float(np.linalg.norm(centres, axis=1).min()), "share_of_one": float(shares[0]),
        "share_of_three": float(shares.sum()), "survivors": int(np.sum(moduli(_attention(run, STEPS)) > SURVIVES)),
    }


def _of_leader(weights: Weights, run: Any, euler: Any) -> dict[str, float]:
    """How far a steady leader is from e^{tV}, and Euler's from (I + dt V)^k, from the middle to the end: relative."""
    from scipy.sparse.linalg import LinearOperator, expm_multiply

    B, C = (weights.V[0][0], weights.V[1][0]) if weights.is_factored else (np.eye(weights.d), weights.V[0])
    half = STEPS // 2
    V = LinearOperator((weights.d, weights.d), matvec=lambda x: B @ (C @ x), rmatvec=lambda x: C.T @ (B.T @ x),
                       matmat=lambda x: B @ (C @ x), dtype=float)
    found: dict[str, float] = {}
    for name, one in (("leader_off", run), ("euler_off", euler)):
        leader = steady_leader(one, half)
        if leader < 0:
            found[name] = float("nan")
            continue
        states, scale = one.scaled_x()
        expected = states[half, leader]
        if name == "leader_off":
            trace = float(np.sum(B * C.T))
            expected = np.asarray(expm_multiply(V * (T / 2), expected, traceA=trace * T / 2))
        else:
            for _ in range(half):
                expected = expected + EULER_STEP * (B @ (C @ expected))
        expected = expected * np.exp(scale[half] - scale[-1])
        found[name] = float(np.linalg.norm(states[-1, leader] - expected) / np.linalg.norm(expected))
    return found


def steady_leader(run: Any, half: int) -> int:
    """A token that attends to itself alone from the middle on, that with most followers; -1 where there is none."""
    itself = np.min([np.diag(_attention(run, at)) for at in range(half, STEPS + 1)], axis=0)
    received = _attention(run, STEPS).sum(axis=0)
    steady = np.flatnonzero(itself > 1 - 1e-12)
    return int(steady[received[steady].argmax()]) if len(steady) else -1


def _certified(weights: Weights, x0: np.ndarray, run: Any, values: str) -> dict[str, Any]:
    """The certified limit for V = I: how many, whether decided before T, and the variance of the limits on three axes."""
    from attnlab.limits import limit
    from attnlab.models.flows import principal

    nothing = {"limits": 0, "is_decided": 0, "share_of_limits": np.nan, "nearest_of_limits": np.nan}
    if values != "identity":                       # d = 768 with scores of thousands: not certified in minutes
        return nothing
    end = limit(weights, x0, budget=BUDGET)
    if end.grade != "exact":
        return nothing
    points = end.limits
    sizes = np.linalg.norm(points, axis=1)
    return {"limits": int(end.count or 0), "is_decided": int(end.t <= T), "nearest_of_limits": float(sizes.min() / sizes.max()),
            "share_of_limits": float(principal(points[None])[1].sum())}


def _picture(run: Any, euler: Any) -> dict[str, np.ndarray]:
    """Directions at the steps shown on the principal axes of all of them, by the flow and by Euler, and moduli of P over time."""
    from attnlab.models.flows import principal

    both = np.concatenate([_states(one)[list(SHOWN)] for one in (run, euler)])
    plane, _ = principal(both / np.linalg.norm(both, axis=-1, keepdims=True), 2)
    origin = _origin(both / np.linalg.norm(both, axis=-1, keepdims=True))
    return {"plane": plane[: len(SHOWN)], "euler": plane[len(SHOWN) :], "origin": origin,
            "modulus": np.stack([moduli(_attention(run, at)) for at in range(STEPS + 1)])}


def _origin(unit: np.ndarray) -> np.ndarray:
    """Where 0 is on the axes of `principal`: it is projected with the others and taken out of their mean."""
    from attnlab.models.flows import principal

    flat = unit.reshape(-1, unit.shape[-1])
    plane, _ = principal(flat[None], 2)
    along, *_ = np.linalg.lstsq(flat - flat.mean(axis=0), plane[0], rcond=None)
    return np.asarray(-flat.mean(axis=0) @ along)


def _stacked(pictures: list[dict[str, np.ndarray]]) -> Any:
    import xarray

    axes = {"plane": ("case", "step", "token", "axis"), "euler": ("case", "step", "token", "axis"), "origin": ("case", "axis"),
            "modulus": ("case", "time", "order")}
    return xarray.Dataset({name: (axes[name], np.stack([one[name] for one in pictures])) for name in axes})


def plain_euler(weights: Weights, x0: np.ndarray) -> Any:
    """The tokens after all steps by ours and by the formula of the slides, token by token: both over the largest."""
    from attnlab.engine import simulate

    M, V = weights.M[0], weights.full_V[0]
    x = x0.copy()
    for _ in range(STEPS):
        forward = np.empty_like(x)
        for i in range(len(x)):
            scores = x @ (M.T @ x[i])
            heard = np.exp(scores - scores.max())
            forward[i] = x[i] + EULER_STEP * V @ (heard @ x / heard.sum())
        x = forward
    ours = simulate(weights, x0, t_end=T, times=[0.0, T], stepper="euler", dt=EULER_STEP, frame="x").x[-1]
    return table({"plain": (x / np.abs(x).max()).ravel(), "ours": (ours / np.abs(x).max()).ravel()}, "entry")


def rows_of(data: Data, **wanted: Any) -> Any:
    """The runs with these entries."""
    runs = data["runs"]
    keep = np.ones(runs.sizes["run"], dtype=bool)
    for name, value in wanted.items():
        keep &= runs[name].values == value
    return runs.isel(run=keep)


def claims(data: Data) -> list[Claim]:
    """What the slides say of one head, for V = I and for V of the head."""
    return [*_of_identity(data), *_of_own(data), *_of_numerics(data)]


def _of_identity(data: Data) -> list[Claim]:
    from attnlab.models.shares import interval

    every, facts = rows_of(data, values="identity"), data["runs"].attrs
    certified = every.isel(run=every["limits"].values > 0)
    runs = certified.isel(run=certified["is_decided"].values == 1)
    stands_in = "" if "xlarge" in facts["model"] else "A stand-in; the slides' head is of another model. "
    counts, total = certified["limits"].values, certified.sizes["run"]
    several = int((counts > 1).sum())
    said = "one cluster, not at the origin; a single eigenvalue of P survives (one head of albert-xlarge-v2)"
    off = np.abs(runs["share_of_three"].values - runs["share_of_limits"].values)
    return [
        Claim(f"Not so for this head ({facts['model']}, head {facts['head']}) with V = I: share of starts that end in more than "
              "one cluster, by certified limits; lower end of its 95 % interval.",
              float(interval(several, total)[0]) if total else np.nan, said, 0.5, 1,
              "one cluster as a rule would leave less than half; the limits are certified",
              f"{stands_in}{several} of {total} starts from cube and sphere; {np.median(counts):g} clusters in the median, "
              f"{counts.max()} at most. Clusters counted at T = {T:g} at {SCALE:.0%} of the first diameter: "
              f"{np.median(certified['clusters'].values):g} in the median."),
        Claim("As many eigenvalues of P(T) survive as the certified limit has clusters, where it is decided before T: "
              "exceptions.",
              float(np.sum(runs["survivors"].values != runs["limits"].values)), said, 0, 0,
              "each leader leads itself in the end and keeps one 1"),
        Claim("Not at the origin, with this head too. The certified limit nearest to it, over the farthest: smallest.",
              float(certified["nearest_of_limits"].values.min()), said, 0.1, 1,
              "z of a token that attends to itself does not move: it stays where the start put it, and those of a cube or "
              "sphere in so many dimensions have nearly one length"),
        Claim("Three principal axes show at T what they show of the certified limits: largest difference of the share of "
              "variance.",
              float(off.max()), "three axes", 0, 0.05, "distances to the limits fall like e^-t, squares like e^-2t",
              f"They carry {runs['share_of_three'].values.min():.0%} to {runs['share_of_three'].values.max():.0%}: m clusters "
              "need m − 1 axes, and what looks like one cluster in three may be several."),
    ]


def _of_own(data: Data) -> list[Claim]:
    own, one = rows_of(data, values="own"), rows_of(data, values="own", start="one side")
    both = own.isel(run=own["start"].values != "one side")
    said = "one cluster, not at the origin"
    return [
        Claim("At most two clusters with V of the head: largest number of directions at the end, starts on both sides of φ₁ = 0.",
              float(both["clusters"].values.max()), said, 1, 2,
              "the theorem of the three hyperplanes: a good triple leaves φ₁ and −φ₁, and 0 only by exception",
              f"Two in {int((both['clusters'].values == 2).sum())} of {both.sizes['run']} starts."),
        Claim("One cluster where all tokens start on one side: largest number of clusters, and of eigenvalues of P that survive.",
              float(max(one["clusters"].values.max(), one["survivors"].values.max())), said, 1, 1,
              "then one token leads all: scores are ranked alike, at the rate e^{2 λ₁ t}"),
        Claim("None of them is at the origin. Distance of a cluster's centre over its width, in the state x(T): "
              "smallest.",
              float(own["away"].values.min()), said, 1, np.inf, "farther from the origin than it is wide"),
        Claim("One axis is enough for V of the head: smallest share of the variance of x(T) on the first, starts on both sides.",
              float(both["share_of_one"].values.min()), "three axes", 0.9, 1,
              "two points lie on a line; what is left falls like e^{-2 (λ₁ − |λ₂|) t}"),
    ]


def _of_numerics(data: Data) -> list[Claim]:
    runs, plain = data["runs"], data["plain"]
    leading = float(runs.attrs["leading"])
    slow = (1 + leading * EULER_STEP) ** STEPS / np.exp(leading * T)
    other = int(np.sum(runs["survivors_of_euler"].values != runs["survivors"].values))
    return [
        Claim("A token that attends to itself from T / 2 on goes by e^(tV): largest relative distance from SciPy's "
              "expm_multiply.",
              float(np.nanmax(runs["leader_off"].values)), "", 0, 1e-3,
              f"closed form; steps of {FINE_STEP:g} and order 4 leave (λ₁ dt)⁵ / 120 a step, with eigenvectors that are not "
              "orthogonal"),
        Claim("Euler's goes by (I + dt V)^k: largest relative distance.", float(np.nanmax(runs["euler_off"].values)),
              f"steps of {EULER_STEP:g}, {STEPS} of them", 0, 1e-9, "closed form",
              f"So with this λ₁ Euler's states are too short by a factor of {slow:.2g} at T. Tokens with the same leader as "
              f"in the flow: {runs['same_leaders'].values.mean():.0%}; runs with another number of surviving eigenvalues: "
              f"{other} of {runs.sizes['run']}."),
        Claim("Our Euler steps are those of the slides' formula, token by token: largest difference, over the largest entry.",
              float(np.abs(plain["ours"].values - plain["plain"].values).max()), "", 0, 1e-9, "the same sums in another order"),
    ]


def figures(data: Data) -> dict[str, Any]:
    """Directions on two principal axes at three steps, and the eigenvalues of P over time, for five cases."""
    from attnlab.experiments.head_flow_figure import directions_and_eigenvalues
    from attnlab.render.style import house_style

    with house_style():
        return {"head_flow": directions_and_eigenvalues(data)}


def _single(runs: Any) -> None:
    """All runs end in one cluster, at the origin, on one axis."""
    runs["limits"] = 0 * runs["limits"] + 1
    for name in ("nearest_of_limits", "away"):
        runs[name] = 0 * runs[name]


def _scattered(runs: Any) -> None:
    """Tokens end in three more clusters than they do, and not on an axis."""
    runs["clusters"] = runs["clusters"] + 3
    for name in ("share_of_one", "share_of_three"):
        runs[name] = runs[name] * 0.5


def _drifting(runs: Any) -> None:
    for name in ("leader_off", "euler_off"):
        runs[name] = runs[name] + 0.01


def _other_formula(plain: Any) -> None:
    plain["plain"] = plain["plain"] * (1 + 1e-6)


experiments.register("head_flow")(
    Experiment(
        name="head_flow",
        title="The flow with one trained head: one cluster, and not at the origin?",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), principal components of the flow "
        "with one head of albert-xlarge-v2",
        about="The slides take one head of a large ALBERT whose value matrix has a positive leading eigenvalue, start 30 random "
        "tokens in the cube, make 50 Euler steps of 0.1, and look at three principal axes: one cluster, not at the origin, and "
        "one eigenvalue of the attention matrix that survives.\n\n"
        "Here a head of plbert, an English phoneme ALBERT, stands in: its good triple with the largest eigenvalue, from the "
        "cube and from the sphere, with V = I and with the head's own V, by the flow and by those Euler steps. Not at the origin "
        "is so in every run. One cluster is not so for this head: with V = I several tokens keep leading themselves, and "
        "certified limits have several clusters. With the head's own V tokens end along the leading eigenvector, on the side "
        "where their leader is: two clusters, one if all start on one side. Each cluster keeps one eigenvalue of the attention "
        "matrix at 1. Of the slides' own head this says nothing.\n\n"
        "With model= a folder of albert-xlarge-v2 the head is chosen there in the same way. At size small a tiny ALBERT with "
        "planted eigenvalues stands in.",
        compute=compute,
        claims=claims,
        figures=figures,
        needs="models",
        spoils={
            "one cluster at the origin": changed("runs", _single),
            "scattered tokens": changed("runs", _scattered),
            "leaders that drift": changed("runs", _drifting),
            "another formula": changed("plain", _other_formula),
        },
    )
)
