"""flow: the theory's equation with the matrices of a trained head (or of all heads of a layer), from a text or random tokens.

    x' = sum_h sum_j P^h_ij V_h x_j,        P^h = softmax(<Q_h x_i, K_h x_j>)

Nothing else of the model takes part. What is followed are directions x / |x|: tokens grow along the leading eigenvectors of V,
and their directions converge where the rescaled tokens do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.models.model import Model
from attnlab.models.sentences import COSINE, tokens_measured
from attnlab.models.tokens import read_tokens
from attnlab.registry import Registry
from attnlab.types import Limit, Trajectory
from attnlab.verdicts import Verdict

if TYPE_CHECKING:
    import xarray

RESULTS = ("three_hyperplanes", "coordinate_extremes", "codimension")
"""What is checked: the results that speak of a single head with a general V."""

starts = Registry("start")


@dataclass(frozen=True, eq=False)
class Flow:
    """The run, where it ends (None with the reason in `no_limit` where that cannot be said), verdicts, and numbers over time.

    data, by time: plane (.., token, axis) the directions on three principal axes, explained (axis); label, clusters, cosine
    and rank as in `sentence`; log_norm; eigenvalue (.., head, order) the moduli of the eigenvalues of P, largest first;
    radius, the spectral radius of the sum of all P^h; received (.., token), leader.
    """

    run: Trajectory
    data: xarray.Dataset
    words: tuple[str, ...]
    limit: Limit | None = None
    no_limit: str = ""
    verdicts: tuple[Verdict, ...] = ()


def flow(model: Model, layer: int = 0, head: int | None = None, *, text: str | None = None, ids: Any = None,
         special: bool = True, start: str = "sphere", n: int = 30, rng: int = 0, t_end: float = 5.0, saves: int = 51,
         rtol: float = 1e-6, cosine: float = COSINE, limit: bool = True, check: bool = True, budget: float = 20.0,
         progress: Any = None) -> Flow:
    """The Flow of one head, or of all heads of a layer (head=None).

    text, ids : start from the stream that enters the layer when the model reads them; else from n random tokens,
                start="sphere" (of radius sqrt(d), as norms leave them), "normal" or "cube" ([-5, 5]^d, as the slides have it)
    limit     : whether t = infinity is asked for (one head only), within `budget` seconds;  check: whether verdicts are
    """
    from attnlab.engine import simulate

    weights = model.weights(layer, head)
    x0, words, about = _start(model, layer, text, ids, special, start, n, rng)
    tell = progress or (lambda fraction, at="": None)
    tell(0.0, "simulating")
    run = simulate(weights, x0, t_end=t_end, saves=saves, rtol=rtol, mask="causal" if model.config.is_causal else "full")
    tell(0.5, "measuring")
    data = measured(run, words, cosine)
    data.attrs |= {"model": model.name, "layer": layer, "head": -1 if head is None else head, "start": about,
                   "cosine_scale": cosine, "weights": weights.source}
    end, why = (None, "not asked for")
    if limit:
        tell(0.6, "reaching t = infinity")
        end, why = _limit(run, budget)
    verdicts: Sequence[Verdict] = ()
    if check and weights.heads == 1:
        from attnlab.theory import check as judge

        tell(0.8, "checking the theory")
        verdicts = judge(run, names=list(RESULTS), budget=budget)
    tell(1.0)
    return Flow(run, data, words, end, why, tuple(verdicts))


def measured(run: Trajectory, words: Sequence[str], cosine: float = COSINE) -> xarray.Dataset:
    """The numbers of a run over time; see Flow."""
    import xarray

    from attnlab.analysis.attention import received
    from attnlab.dynamics import attention

    states, _ = run.scaled_x()                                                                    # directions need no scale
    unit = states / np.linalg.norm(states, axis=-1, keepdims=True)                                # (T, n, d)
    numbers = tokens_measured(unit, cosine)
    numbers["norm"] = np.log(np.linalg.norm(states, axis=-1)).mean(axis=1) + run.log_scale
    plane, explained = principal(unit)
    P = np.stack([attention(run, at=at) for at in range(len(run.times))])                         # (T, h, n, n)
    moduli = -np.sort(-np.abs(np.linalg.eigvals(P)), axis=-1)
    shares = received(P).mean(axis=1)
    variables: dict[str, Any] = {
        "plane": (("time", "token", "axis"), plane), "explained": ("axis", explained), "log_norm": ("time", numbers.pop("norm")),
        "eigenvalue": (("time", "head", "order"), moduli),
        "radius": ("time", np.abs(np.linalg.eigvals(P.sum(axis=1))).max(axis=-1)),
        "received": (("time", "token"), shares), "leader": ("time", shares.argmax(axis=-1)),
    }
    variables |= {name: (("time", "token")[: values.ndim], values) for name, values in numbers.items()}
    return xarray.Dataset(variables, coords={"time": run.times, "word": ("token", list(words))})


def principal(x: np.ndarray, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """(coordinates (T, n, count), shares of variance (count,)) of x (T, n, d) on the principal axes of all times together."""
    flat = x.reshape(-1, x.shape[-1])
    centred = flat - flat.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    total = float((sizes**2).sum())
    found = min(count, len(axes))
    coordinates = np.zeros((*x.shape[:-1], count))
    coordinates[..., :found] = (centred @ axes[:found].T).reshape(*x.shape[:-1], found)
    shares = np.zeros(count)
    shares[:found] = sizes[:found] ** 2 / total if total > 0 else 0.0
    return coordinates, shares


def _start(model: Model, layer: int, text: str | None, ids: Any, special: bool, start: str, n: int,
           rng: int) -> tuple[np.ndarray, tuple[str, ...], str]:
    """The first tokens (n, d), what they are called, and in words where they are from."""
    d = model.config.d
    if text is not None or ids is not None:
        tokens = read_tokens(model, text, ids, special)
        x0 = model.hidden_states(tokens.ids)[layer]
        if model.config.is_pre_norm:                       # what attention reads: the gain of the norm is in Q, K and V
            x0 = x0 * math.sqrt(d) / np.linalg.norm(x0, axis=-1, keepdims=True)
        about = f"{tokens.text!r}" if tokens.text else f"{len(tokens.ids)} ids"
        return x0, tokens.words, f"{about} as it enters layer {layer}{'' if special else ', without special tokens'}"
    if not isinstance(n, int) or n < 2:
        raise ValueError(f"n must be a whole number of tokens, 2 or more, got {n!r}.")
    x0 = starts[start](np.random.default_rng(rng), n, d)
    return x0, tuple(str(i) for i in range(n)), f"{start}, seed {rng}"


@starts.register("sphere")
def _sphere(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = rng.normal(size=(n, d))
    return x * math.sqrt(d) / np.linalg.norm(x, axis=-1, keepdims=True)


@starts.register("normal")
def _normal(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.normal(size=(n, d))


@starts.register("cube")
def _cube(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return rng.uniform(-5.0, 5.0, size=(n, d))


def _limit(run: Trajectory, budget: float) -> tuple[Limit | None, str]:
    """The certified limit, or why there is none."""
    from attnlab.limits import limit

    try:
        found = limit(run, budget=budget)
    except (ValueError, NotImplementedError) as problem:
        return None, str(problem)
    return (found, "") if found.certified else (None, found.reason)
