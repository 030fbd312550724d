"""Who attends to whom: leaders emerge, and in the end there is one or two; at T = 10 that is not always so yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp
from scipy.special import softmax

from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.studies import study
from attnlab.experiments.datasets import dataset_of
from attnlab.limits import limit
from attnlab.progress import Progress
from attnlab.types import Spec, Weights

N, D, T, STEP = 20, 2, 10.0, 0.1
SEEDS = {"full": 200, "small": 30}
REFERENCE_TIME = 2.0


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """V = B Bᵀ, M = C Cᵀ and the tokens; the entries of B, C and the tokens are uniform on [-1, 1]."""
    generator = np.random.default_rng(seed)
    B, C = generator.uniform(-1, 1, (2, D, D))
    return B @ B.T, C @ C.T, generator.uniform(-1, 1, (N, D))


def specs(size: str) -> dict[str, Spec]:
    """The run that is shown, rng = 0."""
    V, M, x0 = draw(0)
    return {"run": Spec(weights={"family": "given", "Q": M.tolist(), "K": np.eye(D).tolist(), "V": V.tolist()},
                        start={"law": "given", "x": x0.tolist()}, solve={"t_end": T, "saves": 201, "rtol": 1e-10})}


def compute(size: str, progress: Progress) -> dict[str, Any]:
    """The run that is shown with its limit, the same by Euler, and many draws."""
    data = study(specs(size)["run"], progress.part(0.0, 0.2), names=["three_hyperplanes"])
    V, M, x0 = draw(0)
    times = np.arange(0, round(T / STEP) + 1) * STEP
    data["euler"] = dataset_of(simulate(Weights(Q=M, V=V), x0, times=times, t_end=T, stepper="euler", dt=STEP, frame="x"))
    data["reference"] = reference(V, M, x0)
    data["many"] = many(SEEDS[size], progress.part(0.25, 1.0))
    return data


def reference(V: np.ndarray, M: np.ndarray, x0: np.ndarray) -> Any:
    """Tokens at REFERENCE_TIME by SciPy's DOP853 on a plain right-hand side."""
    def velocity(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(x0.shape)
        return (softmax(x @ M @ x.T, axis=1) @ x @ V.T).ravel()

    end = solve_ivp(velocity, (0.0, REFERENCE_TIME), x0.ravel(), method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    return xarray.Dataset({"x": (("token", "coordinate"), end.reshape(x0.shape))})


def many(count: int, progress: Progress) -> Any:
    """For each draw: whom every token follows at T by the flow and by Euler, whom at infinity, and how far T is from that."""
    follows = {name: np.zeros((count, N), int) for name in ("flow", "euler", "infinity")}
    numbers = {name: np.zeros(count) for name in ("leading", "second", "decided", "off", "rank", "rank_euler")}
    levels, is_exact = np.zeros((count, N)), np.zeros(count, np.int8)
    for k in range(count):
        V, M, x0 = draw(k)
        weights = Weights(Q=M, V=V)
        growth, modes = np.linalg.eigh(V)
        end = limit(weights, x0, work=500_000.0)
        final = np.where(end.leaders[:, None] >= 0, np.eye(N)[end.leaders], np.nan)
        # a run with a large λ₁ may end before T, where double precision does: its attention has long been Boolean then
        options: dict[str, Any] = {"t_end": T, "times": np.linspace(0.0, T, 21), "throw": False}
        P = attention(simulate(weights, x0, rtol=1e-9, **options))[0]
        P_euler = attention(simulate(weights, x0, stepper="euler", dt=STEP, frame="x", **options))[0]
        for name, chosen in (("flow", P.argmax(axis=1)), ("euler", P_euler.argmax(axis=1)), ("infinity", end.leaders)):
            follows[name][k] = chosen
        row = (growth[1], growth[0], end.t, np.abs(P - final).max(), np.linalg.matrix_rank(P), np.linalg.matrix_rank(P_euler))
        for name, value in zip(numbers, row, strict=True):
            numbers[name][k] = value
        levels[k], is_exact[k] = end.limits @ modes[:, -1], end.grade == "exact"
        progress(k / count, "many draws")
    variables: dict[str, Any] = {f"follows_{name}": (("seed", "token"), array) for name, array in follows.items()}
    variables |= {name: ("seed", array) for name, array in numbers.items()}
    return xarray.Dataset({**variables, "level": (("seed", "token"), levels), "is_exact": ("seed", is_exact)})
