"""The flow with one trained head, V = I and V of the head: is it one cluster, and not at the origin?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.experiments import experiments
from attnlab.experiments.datasets import table
from attnlab.experiments.head_flow_claims import EULER_STEP, FINE_STEP, SCALE, STEPS, N, T, claims
from attnlab.experiments.record import Data, Experiment
from attnlab.experiments.spoils import changed
from attnlab.experiments.surviving_eigenvalues import attention_at, moduli
from attnlab.progress import Progress
from attnlab.types import Weights

SHOWN = (0, STEPS // 2, STEPS)
"""The steps that the slides colour."""

RANDOM_CASES = (("identity", "cube"), ("identity", "sphere"), ("own", "cube"), ("own", "sphere"), ("own", "one side"))
TEXT_CASES = (("identity", "paragraph"), ("own", "paragraph"), ("identity", "cube"), ("own", "cube"))
DRAWN = {"first": RANDOM_CASES, "text": TEXT_CASES[:2]}
"""The cases with the first head and with that of the model that reads, (values, start); of the latter two are drawn."""

SEEDS = {"full": {"cube": 12, "sphere": 12, "own": 3}, "small": {"cube": 1, "sphere": 5, "own": 1}}
PIECES = {"full": {"identity": 34, "own": 12}, "small": {"identity": 6, "own": 14}}
CUBES_OF_TEXT = {"full": 4, "small": 1}
"""Starts of a case: seeds, for V = I by the kind of start; disjoint pieces of the paragraphs; and, for the head that reads, seeds
of the cube."""

SOFTNESS = 0.2
"""Of the planted head that reads: scores of a row then differ by a few units, as those of trained heads on text do."""

WORK = 750_000.0
"""Units for one certified limit. Limits of trained heads took up to 13,000 of them."""

SURVIVES = 0.5


@dataclass(frozen=True)
class Head:
    """One good triple; reader: the model that embeds paragraphs for it, None where only random tokens are asked for."""

    role: str
    model: str
    layer: int
    number: int
    leading: float
    weights: Weights
    reader: Any = None

    def facts(self) -> dict[str, Any]:
        """Who it is, for attributes, under its role."""
        named = {"model": self.model, "layer": self.layer, "head": self.number, "leading": self.leading, "d": self.weights.d}
        return {f"{self.role}_{name}": value for name, value in named.items()}


def compute(size: str, progress: Progress, model: str = "plbert", text: str = "minilm") -> dict[str, Any]:
    """Runs of all cases; at size "small" both models are replaced by tiny ones with planted eigenvalues.

    model: a name of `attnlab models`, or a folder: random tokens. text: another, with a tokenizer: paragraphs.
    Of each, the head is the good triple with the largest eigenvalue.
    """
    from attnlab.engine.threads import one_blas_thread

    progress(0.0, "loading weights")
    used, why = chosen_heads(size, model, text)
    wanted = [(head, values, start, seed) for head in used for values, start in (TEXT_CASES if head.reader else RANDOM_CASES)
              for seed in range(_starts(size, head, values, start))]
    rows: list[dict[str, Any]] = []
    pictures: dict[tuple[str, str, str], list[dict[str, Any]]] = {(role, *case): [] for role in DRAWN for case in DRAWN[role]}
    with one_blas_thread():
        for done, (head, values, start, seed) in enumerate(wanted):
            progress(0.05 + 0.9 * done / len(wanted), f"{head.model}, V {values}, {start}, {seed}")
            row, picture = one_case(head, values, start, seed)
            rows.append({"role": head.role, "values": values, "start": start, "seed": seed, **row})
            if (values, start) in DRAWN[head.role]:
                pictures[head.role, values, start].append({**picture, "seed": seed, "clusters": row["clusters"]})
        progress(0.95, "plain Euler steps")
        plain = plain_euler(used[0].weights, first_tokens(used[0], "cube", 0))
    facts = {name: value for head in used for name, value in head.facts().items()}
    progress(1.0)
    runs = table({name: [row[name] for row in rows] for name in rows[0]}, "run", why=why, **facts)
    return {"runs": runs, "pictures": _stacked([_typical(some) for some in pictures.values() if some]), "plain": plain}


def _starts(size: str, head: Head, values: str, start: str) -> int:
    """How many starts a case has."""
    if start == "paragraph":
        return PIECES[size][values]
    return CUBES_OF_TEXT[size] if head.reader else SEEDS[size][start if values == "identity" else "own"]


def chosen_heads(size: str, model: str, text: str) -> tuple[list[Head], str]:
    """The head of the first model and that of the one that reads; (.., why) where the second is not here."""
    from attnlab.experiments.albert_spectra import planted
    from attnlab.experiments.common.heads import stand_in, trained_model
    from attnlab.experiments.common.planted_heads import PlantedHeads
    from attnlab.models import load

    first = planted() if size == "small" and model == "plbert" else load(model)
    if size == "small" and text == "minilm":             # as wide as the stand-in, whose embeddings are its tokens
        second: Any = PlantedHeads("planted heads", layers=1, repeats=1, is_tied=True, softness=SOFTNESS)
        reader, why = stand_in(), ""
    else:
        second, why = trained_model(size, text)
        reader = second
    found = [_head("first", first)]
    return (found if second is None else [*found, _head("text", second, reader)]), why


def _head(role: str, model: Any, reader: Any = None) -> Head:
    layer, number, leading = good_head(model)
    return Head(role, model.name, layer, number, leading, model.weights(layer, number), reader)


def good_head(model: Any) -> tuple[int, int, float]:
    """(layer, number, eigenvalue) of the good triple whose eigenvalue is largest; layers that share weights are one."""
    from attnlab.models.studies.judgement import verdict
    from attnlab.models.studies.spectra_table import measured_heads

    layers = range(1 if model.config.is_tied else model.config.layers)
    good = [(one.numbers.lambda1.real, layer, one.head) for layer in layers for one in measured_heads(model, layer)
            if verdict(one.numbers) == "good triple"]
    if not good:
        raise ValueError(f"{model.name} has no good triple; choose another model.")
    value, layer, number = max(good)
    return layer, number, float(value)


def first_tokens(head: Head, start: str, seed: int) -> np.ndarray:
    """Tokens of the cube [-5, 5]^d, of the sphere of radius sqrt(d), of the cube mirrored to where phi_1 is positive, or the
    embedded tokens of the seed-th piece of the paragraphs.
    """
    from attnlab.analysis.spectra import leading
    from attnlab.experiments.common.heads import real_start
    from attnlab.models.studies.flows import starts

    rng, d = np.random.default_rng(seed), head.weights.d
    if start == "paragraph":
        return real_start(head.reader, N, seed)
    if start != "one side":
        return np.asarray(starts[start](rng, N, d))
    x0 = starts["cube"](rng, N, d)
    return np.asarray(x0 * np.sign(x0 @ leading(head.weights).psi)[:, None])


def one_case(head: Head, values: str, start: str, seed: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The numbers of one run and of Euler's, and what may be drawn of it."""
    from attnlab.analysis.spectra import leading
    from attnlab.engine import simulate
    from attnlab.experiments.common.heads import in_span

    weights, x0 = head.weights, first_tokens(head, start, seed)
    positive = float(np.mean(x0 @ leading(weights).psi > 0))
    times = np.arange(STEPS + 1) * EULER_STEP
    if values == "identity":
        weights, x0, _ = in_span(Weights(Q=weights.Q, K=weights.K, V=np.eye(weights.d)), x0)
    options: dict[str, Any] = {"t_end": T, "times": times, "throw": False}
    fine: dict[str, Any] = {"rtol": 1e-7} if values == "identity" else {"stepper": "rk4", "dt": FINE_STEP, "frame": "x"}
    run = simulate(weights, x0, **options, **fine)
    euler = simulate(weights, x0, **options, stepper="euler", dt=EULER_STEP, frame="x")
    row = {**_numbers(run, values), **_of_leader(weights, run, euler), **_certified(weights, x0, run, values)}
    followed = [_attention(one, STEPS).argmax(axis=1) for one in (run, euler)]
    row["fewer_side"] = min(positive, 1 - positive)
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
    from attnlab.models.studies.flows import principal

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
    from attnlab.models.studies.flows import principal

    nothing = {"limits": 0, "is_decided": 0, "share_of_limits": np.nan, "nearest_of_limits": np.nan}
    if values != "identity":                       # d = 768 with scores of thousands: not certified in minutes
        return nothing
    end = limit(weights, x0, work=WORK)
    if end.grade != "exact":
        return nothing
    points = end.limits
    sizes = np.linalg.norm(points, axis=1)
    return {"limits": int(end.count or 0), "is_decided": int(end.t <= T), "nearest_of_limits": float(sizes.min() / sizes.max()),
            "share_of_limits": float(principal(points[None])[1].sum())}


def _picture(run: Any, euler: Any) -> dict[str, np.ndarray]:
    """Directions at the steps shown on the principal axes of all of them, by the flow and by Euler, and moduli of P over time."""
    from attnlab.models.studies.flows import principal

    both = np.concatenate([_states(one)[list(SHOWN)] for one in (run, euler)])
    plane, _ = principal(both / np.linalg.norm(both, axis=-1, keepdims=True), 2)
    origin = _origin(both / np.linalg.norm(both, axis=-1, keepdims=True))
    return {"plane": plane[: len(SHOWN)], "euler": plane[len(SHOWN) :], "origin": origin,
            "modulus": np.stack([moduli(_attention(run, at)) for at in range(STEPS + 1)])}


def _origin(unit: np.ndarray) -> np.ndarray:
    """Where 0 is on the axes of `principal`: it is projected with the others and taken out of their mean."""
    from attnlab.models.studies.flows import principal

    flat = unit.reshape(-1, unit.shape[-1])
    plane, _ = principal(flat[None], 2)
    along, *_ = np.linalg.lstsq(flat - flat.mean(axis=0), plane[0], rcond=None)
    return np.asarray(-flat.mean(axis=0) @ along)


def _typical(pictures: list[dict[str, Any]]) -> dict[str, Any]:
    """The first with the median number of clusters, the lower one of two."""
    median = sorted(one["clusters"] for one in pictures)[(len(pictures) - 1) // 2]
    return next(one for one in pictures if one["clusters"] == median)


def _stacked(pictures: list[dict[str, np.ndarray]]) -> Any:
    import xarray

    axes = {"plane": ("case", "step", "token", "axis"), "euler": ("case", "step", "token", "axis"), "origin": ("case", "axis"),
            "modulus": ("case", "time", "order"), "seed": ("case",)}
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


def figures(data: Data) -> dict[str, Any]:
    """Directions on two principal axes at three steps, and the eigenvalues of P over time, for the cases drawn."""
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


def _many_from_text(runs: Any) -> None:
    """Pieces of text end in five clusters with V of the head."""
    runs["clusters"] = runs["clusters"].where(~((runs["start"] == "paragraph") & (runs["values"] == "own")), 5)


def _drifting(runs: Any) -> None:
    for name in ("leader_off", "euler_off"):
        runs[name] = runs[name] + 0.01


def _other_formula(plain: Any) -> None:
    plain["plain"] = plain["plain"] * (1 + 1e-6)


experiments.register("head_flow")(
    Experiment(
        name="head_flow",
        title="The flow with one head of a model: one cluster, and not at the origin?",
        cite="Sugolov, Aubry, MAT1510 project, University of Toronto, November 2023 (slides), principal components of the flow "
        "with one head of albert-xlarge-v2",
        about="The slides take one head of a large ALBERT whose value matrix has a positive leading eigenvalue, start 30 random "
        "tokens in the cube, make 50 Euler steps of 0.1, and look at three principal axes: one cluster, not at the origin, and "
        "one eigenvalue of the attention matrix that survives.\n\n"
        "Here two heads stand in, each the good triple of its model with the largest eigenvalue: one of plbert, an English "
        "phoneme ALBERT, from the cube and from the sphere, and one of minilm, an English BERT, from embedded paragraphs, "
        "pieces of 30 tokens of plain prose; with V = I and with the head's own V, by the flow and by those Euler steps. Not at "
        "the origin is so in every run. One cluster is not so with V = I, from random tokens or from text: several tokens keep "
        "leading themselves, and certified limits have several clusters, fewer of them for text. With the head's own V random "
        "tokens end along the leading eigenvector, on the side where their leader is: two clusters, one if all start on one "
        "side. Text ends in one cluster, as the slides say, though its tokens start on both sides. Each cluster keeps one "
        "eigenvalue of the attention matrix at 1. Of the slides' own head this says nothing.\n\n"
        "With model= a folder of albert-xlarge-v2 the head is chosen there in the same way. At size small tiny models with "
        "planted eigenvalues stand in, and random words for the text.",
        compute=compute,
        claims=claims,
        figures=figures,
        needs="models",
        spoils={
            "one cluster at the origin": changed("runs", _single),
            "scattered tokens": changed("runs", _scattered),
            "several clusters of text": changed("runs", _many_from_text),
            "leaders that drift": changed("runs", _drifting),
            "another formula": changed("plain", _other_formula),
        },
    )
)
