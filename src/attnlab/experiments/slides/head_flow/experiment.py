"""The flow with one trained head, V = I and V of the head: is it one cluster, and not at the
origin?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray

from attnlab.analysis.attention import eigenvalue_moduli
from attnlab.analysis.clusters import cluster_centres, cluster_labels
from attnlab.analysis.directions import unit
from attnlab.analysis.distances import diameter
from attnlab.analysis.plain_flow import exponential_by_scipy, factors_of
from attnlab.analysis.principal_axes import principal
from attnlab.analysis.span import in_span
from attnlab.analysis.spectra import leading
from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.heads import real_start, stand_in, trained_model
from attnlab.experiments.common.planted_heads import PlantedHeads
from attnlab.experiments.datasets import table, table_of_rows
from attnlab.experiments.paper.albert_spectra.experiment import Planted
from attnlab.experiments.parts import Context, Part, Parts, Results, grids_of
from attnlab.limits import limit
from attnlab.models import load
from attnlab.models.studies.flows import starts
from attnlab.models.studies.spectra_table import leading_good_triple
from attnlab.sweep.grid import Cell, Grid
from attnlab.types import Weights

N, T, EULER_STEP, FINE_STEP = 30, 5.0, 0.1, 0.02
STEPS = round(T / EULER_STEP)

SCALE = 0.05
"""Tokens are in one cluster when steps between them are no longer than this part of the first
diameter; z for V = I, directions for V of the head.
"""

SHOWN = (0, STEPS // 2, STEPS)
"""The steps that the slides colour."""
RANDOM_CASES = (
    ("identity", "cube"),
    ("identity", "sphere"),
    ("own", "cube"),
    ("own", "sphere"),
    ("own", "one side"),
)
TEXT_CASES = (
    ("identity", "paragraph"),
    ("own", "paragraph"),
    ("identity", "cube"),
    ("own", "cube"),
)

DRAWN = {"first": RANDOM_CASES, "text": TEXT_CASES[:2]}
"""The cases with the first head and with that of the model that reads, (values, start); of the
latter two are drawn.
"""
SEEDS = {"full": {"cube": 12, "sphere": 12, "own": 3}, "small": {"cube": 1, "sphere": 5, "own": 1}}
PIECES = {"full": {"identity": 34, "own": 12}, "small": {"identity": 6, "own": 14}}

CUBES_OF_TEXT = {"full": 4, "small": 1}
"""Starts of a case: seeds, for V = I by the kind of start; disjoint pieces of the paragraphs; and,
for the head that reads, seeds of the cube.
"""

SOFTNESS = 0.2
"""Of the planted head that reads: scores of a row then differ by a few units, as those of trained
heads on text do.
"""

WORK = 750_000.0
"""Units for one certified limit. Limits of trained heads took up to 13,000 of them."""
SURVIVES = 0.5


@dataclass(frozen=True)
class Head:
    """One good triple; reader: the model that embeds paragraphs for it, None where only random
    tokens are asked for.
    """

    role: str
    model: str
    layer: int
    number: int
    leading: float
    weights: Weights
    reader: Any = None

    def facts(self) -> dict[str, Any]:
        """Who it is, for attributes, under its role."""
        named = {
            "model": self.model,
            "layer": self.layer,
            "head": self.number,
            "leading": self.leading,
            "d": self.weights.d,
        }
        return {f"{self.role}_{name}": value for name, value in named.items()}


class Heads:
    """The head of the first model, and that of the one that reads; why: the reason where the second
    is not here.

    model: a name of `attnlab models`, or a folder: random tokens. text: another, with a tokenizer:
    paragraphs. Of each, the head is the good triple with the largest eigenvalue. At size "small"
    tiny models with planted eigenvalues replace both.
    """

    def __init__(self, size: str, model: str = "plbert", text: str = "minilm"):
        first: Any = Planted() if size == "small" and model == "plbert" else load(model)
        self.of_role = {"first": _head("first", first)}
        if (
            size == "small" and text == "minilm"
        ):  # as wide as the stand-in, whose embeddings are its tokens
            second: Any = PlantedHeads(
                "planted heads", layers=1, repeats=1, is_tied=True, softness=SOFTNESS
            )
            reader, self.why = stand_in(), ""
        else:
            second, self.why = trained_model(size, text)
            reader = second
        if second is not None:
            self.of_role["text"] = _head("text", second, reader)

    def without(self, case: Cell) -> str:
        """Why a case of the head that reads is left out."""
        return self.why if case.get("role", "first") not in self.of_role else ""


def run_grids(size: str) -> list[Grid]:
    """All cases with their starts; for V = I with the first head there are as many as of its kind
    of start.
    """
    places = [
        ("first", *case, SEEDS[size][case[1] if case[0] == "identity" else "own"])
        for case in RANDOM_CASES
    ]
    places += [
        (
            "text",
            values,
            start,
            PIECES[size][values] if start == "paragraph" else CUBES_OF_TEXT[size],
        )
        for values, start in TEXT_CASES
    ]
    return grids_of("role, values, start, seed", places)


def measure_run(context: Context, role: str, values: str, start: str, seed: int) -> dict[str, Any]:
    """The numbers of a run, and what may be drawn of it."""
    row, picture = one_case(context.shared.of_role[role], values, start, seed)
    return {"row": row, "picture": {**picture, "seed": seed, "clusters": row["clusters"]}}


def assemble(results: Results) -> dict[str, Any]:
    """Runs of all cases, the typical ones that are drawn, and plain Euler steps."""
    heads = results.shared.of_role
    facts = {name: value for head in heads.values() for name, value in head.facts().items()}
    drawn = [
        [
            one["picture"]
            for case, one in results.found["runs"]
            if tuple(case.values())[:3] == (role, *here)
        ]
        for role in heads
        for here in DRAWN[role]
    ]
    return {
        "runs": table_of_rows(results.rows("runs", "row"), "run", why=results.shared.why, **facts),
        "pictures": _stacked([_typical(some) for some in drawn]),
        "plain": results.values("plain")[0],
    }


def _head(role: str, model: Any, reader: Any = None) -> Head:
    layer, number, leading = leading_good_triple(model)
    return Head(role, model.name, layer, number, leading, model.weights(layer, number), reader)


def first_tokens(head: Head, start: str, seed: int) -> np.ndarray:
    """Tokens of the cube [-5, 5]^d, of the sphere of radius sqrt(d), of the cube mirrored to where
    phi_1 is positive, or the embedded tokens of the seed-th piece of the paragraphs.
    """
    rng, d = np.random.default_rng(seed), head.weights.d
    if start == "paragraph":
        return real_start(head.reader, N, seed)
    if start != "one side":
        return np.asarray(starts[start](rng, N, d))
    x0 = starts["cube"](rng, N, d)
    return np.asarray(x0 * np.sign(x0 @ leading(head.weights).psi)[:, None])


def one_case(
    head: Head, values: str, start: str, seed: int
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The numbers of one run and of Euler's, and what may be drawn of it."""
    weights, x0 = head.weights, first_tokens(head, start, seed)
    positive = float(np.mean(x0 @ leading(weights).psi > 0))
    times = np.arange(STEPS + 1) * EULER_STEP
    if values == "identity":
        weights, x0, _ = in_span(Weights(Q=weights.Q, K=weights.K, V=np.eye(weights.d)), x0)
    options: dict[str, Any] = {"t_end": T, "times": times, "throw": False}
    fine: dict[str, Any] = (
        {"rtol": 1e-7}
        if values == "identity"
        else {"stepper": "rk4", "dt": FINE_STEP, "frame": "x"}
    )
    run = simulate(weights, x0, **options, **fine)
    euler = simulate(weights, x0, **options, stepper="euler", dt=EULER_STEP, frame="x")
    row = {
        **_numbers(run, values),
        **_of_leader(weights, run, euler),
        **_certified(weights, x0, run, values),
    }
    followed = [attention(one, at=STEPS)[0].argmax(axis=1) for one in (run, euler)]
    row["fewer_side"] = min(positive, 1 - positive)
    row["same_leaders"] = float(np.mean(followed[0] == followed[1]))
    row["survivors_of_euler"] = int(
        np.sum(eigenvalue_moduli(attention(euler, at=STEPS)[0]) > SURVIVES)
    )
    return row, _picture(run, euler)


def _states(run: Any) -> np.ndarray:
    """x (time, token, coordinate), each time over its largest token."""
    states = run.scaled_x()[0]
    return np.asarray(states / np.linalg.norm(states, axis=-1).max(axis=-1)[:, None, None])


def _numbers(run: Any, values: str) -> dict[str, Any]:
    """Clusters at T, how far they are from the origin, over their width, variance on one and three
    axes, what survives of P.
    """
    states = _states(run)
    followed = run.rescaled if values == "identity" else unit(states)
    labels = cluster_labels(followed[-1], SCALE * float(diameter(followed[0])))
    last = states[-1]
    centres = cluster_centres(last, labels)
    widths = [
        np.linalg.norm(last[labels == label] - centre, axis=1).max()
        for label, centre in enumerate(centres)
    ]
    shares = principal(last[None])[1]
    return {
        "clusters": len(centres),
        "away": float(min(np.linalg.norm(centres, axis=1) / np.maximum(widths, 1e-300))),
        "nearest": float(np.linalg.norm(centres, axis=1).min()),
        "share_of_one": float(shares[0]),
        "share_of_three": float(shares.sum()),
        "survivors": int(np.sum(eigenvalue_moduli(attention(run, at=STEPS)[0]) > SURVIVES)),
    }


def _of_leader(weights: Weights, run: Any, euler: Any) -> dict[str, float]:
    """How far a steady leader is from e^{tV}, and Euler's from (I + dt V)^k, from the middle to the
    end: relative.
    """
    B, C = factors_of(weights)
    half, found = STEPS // 2, {}
    for name, one in (("leader_off", run), ("euler_off", euler)):
        leader = steady_leader(one, half)
        if leader < 0:
            found[name] = float("nan")
            continue
        states, scale = one.scaled_x()
        expected = states[half, leader]
        if name == "leader_off":
            expected = exponential_by_scipy(weights, expected, T / 2)
        else:
            for _ in range(half):
                expected = expected + EULER_STEP * (B @ (C @ expected))
        expected = expected * np.exp(scale[half] - scale[-1])
        found[name] = float(
            np.linalg.norm(states[-1, leader] - expected) / np.linalg.norm(expected)
        )
    return found


def steady_leader(run: Any, half: int) -> int:
    """A token that attends to itself alone from the middle on, that with most followers; -1 where
    there is none.
    """
    itself = np.min([np.diag(attention(run, at=at)[0]) for at in range(half, STEPS + 1)], axis=0)
    received = attention(run, at=STEPS)[0].sum(axis=0)
    steady = np.flatnonzero(itself > 1 - 1e-12)
    return int(steady[received[steady].argmax()]) if len(steady) else -1


def _certified(weights: Weights, x0: np.ndarray, run: Any, values: str) -> dict[str, Any]:
    """The certified limit for V = I: how many, whether decided before T, and the variance of the
    limits on three axes.
    """
    nothing = {"limits": 0, "is_decided": 0, "share_of_limits": np.nan, "nearest_of_limits": np.nan}
    if values != "identity":  # d = 768 with scores of thousands: not certified in minutes
        return nothing
    end = limit(weights, x0, work=WORK)
    if end.grade != "exact":
        return nothing
    points = end.limits
    sizes = np.linalg.norm(points, axis=1)
    return {
        "limits": int(end.count or 0),
        "is_decided": int(end.t <= T),
        "nearest_of_limits": float(sizes.min() / sizes.max()),
        "share_of_limits": float(principal(points[None])[1].sum()),
    }


def _picture(run: Any, euler: Any) -> dict[str, np.ndarray]:
    """Directions at the steps shown on the principal axes of all of them, by the flow and by Euler,
    and moduli of P over time.
    """
    both = np.concatenate([_states(one)[list(SHOWN)] for one in (run, euler)])
    plane, _ = principal(unit(both), 2)
    return {
        "plane": plane[: len(SHOWN)],
        "euler": plane[len(SHOWN) :],
        "origin": _origin(unit(both)),
        "modulus": np.stack(
            [eigenvalue_moduli(attention(run, at=at)[0]) for at in range(STEPS + 1)]
        ),
    }


def _origin(units: np.ndarray) -> np.ndarray:
    """Where 0 is on the axes of `principal`: it is projected with the others and taken out of their
    mean.
    """
    flat = units.reshape(-1, units.shape[-1])
    plane, _ = principal(flat[None], 2)
    along, *_ = np.linalg.lstsq(flat - flat.mean(axis=0), plane[0], rcond=None)
    return np.asarray(-flat.mean(axis=0) @ along)


def _typical(pictures: list[dict[str, Any]]) -> dict[str, Any]:
    """The first with the median number of clusters, the lower one of two."""
    median = sorted(one["clusters"] for one in pictures)[(len(pictures) - 1) // 2]
    return next(one for one in pictures if one["clusters"] == median)


def _stacked(pictures: list[dict[str, np.ndarray]]) -> Any:
    axes = {
        "plane": ("case", "step", "token", "axis"),
        "euler": ("case", "step", "token", "axis"),
        "origin": ("case", "axis"),
        "modulus": ("case", "time", "order"),
        "seed": ("case",),
    }
    return xarray.Dataset(
        {name: (axes[name], np.stack([one[name] for one in pictures])) for name in axes}
    )


def plain_euler(context: Context) -> Any:
    """The tokens after all steps by ours and by the formula of the slides, token by token: both
    over the largest.
    """
    head = context.shared.of_role["first"]
    weights, x0 = head.weights, first_tokens(head, "cube", 0)
    M, V = weights.M[0], weights.full_V[0]
    x = x0.copy()
    for _ in range(STEPS):
        forward = np.empty_like(x)
        for i in range(len(x)):
            scores = x @ (M.T @ x[i])
            heard = np.exp(scores - scores.max())
            forward[i] = x[i] + EULER_STEP * V @ (heard @ x / heard.sum())
        x = forward
    ours = simulate(
        weights, x0, t_end=T, times=[0.0, T], stepper="euler", dt=EULER_STEP, frame="x"
    ).x[-1]
    return table(
        {"plain": (x / np.abs(x).max()).ravel(), "ours": (ours / np.abs(x).max()).ravel()}, "entry"
    )


compute = Parts(
    {
        "runs": Part(measure_run, run_grids, "{role} head, V {values}, {start}, {seed}", 0.95),
        "plain": Part(plain_euler, doing="plain Euler steps", share=0.05),
    },
    prepare=Heads,
    leave_out=Heads.without,
    assemble=assemble,
)
