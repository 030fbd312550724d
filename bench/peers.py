"""What others would write: the same field and the same runs in NumPy, SciPy, torch and JAX with
diffrax.

Each peer is the best short program we know for it: fused attention where the library has it,
everything compiled beforehand. A library that is not installed is named and left out.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

# read when the libraries are loaded: their threads sleep when they wait, and two are used, as by us
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np  # noqa: E402

MISSING: dict[str, str] = {}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        MISSING[name] = str(problem)
        return None


torch, jax, diffrax = _library("torch"), _library("jax"), _library("diffrax")
if jax is not None:
    jax.config.update("jax_enable_x64", True)

Field = Callable[[], np.ndarray]


def numpy_scores_to_mean(
    scores: np.ndarray, values: np.ndarray, kernel: str, causal: bool
) -> np.ndarray:
    """Rows of weights times values; scores are overwritten."""
    if causal:
        scores[np.triu_indices(len(scores), 1)] = -np.inf
    if kernel == "exp_mean":
        return np.exp(scores, out=scores) @ values / len(scores)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    return (scores @ values) / scores.sum(axis=1, keepdims=True)


def numpy_field(
    x: np.ndarray, M: np.ndarray, V: np.ndarray, kernel: str = "softmax", causal: bool = False
) -> Field:
    """x (n, d), M and V (h, d, d)."""

    def call() -> np.ndarray:
        return sum(
            numpy_scores_to_mean((x @ M[h]) @ x.T, x, kernel, causal) @ V[h].T
            for h in range(len(M))
        )

    return call


def torch_field(
    x: np.ndarray, M: np.ndarray, V: np.ndarray, kernel: str = "softmax", causal: bool = False
) -> Field | None:
    """scaled_dot_product_attention on all heads at once; exp_mean as two products, which is all
    torch has for it.
    """
    if torch is None:
        return None
    tokens, scores, values = torch.from_numpy(x), torch.from_numpy(M), torch.from_numpy(V)
    attention = torch.nn.functional.scaled_dot_product_attention
    count, (n, d) = len(M), x.shape

    def call() -> np.ndarray:
        with torch.inference_mode():
            queries = tokens @ scores  # (h, n, d)
            if kernel == "exp_mean":
                mean = torch.exp(queries @ tokens.T) @ tokens / n
            else:
                same = tokens.expand(1, count, n, d)
                mean = attention(queries[None], same, same, is_causal=causal, scale=1.0)[0]
            return (mean @ values.transpose(1, 2)).sum(0).numpy()

    return call


def jax_field(
    x: np.ndarray, M: np.ndarray, V: np.ndarray, kernel: str = "softmax", causal: bool = False
) -> Field | None:
    """The formula, jitted."""
    if jax is None:
        return None
    jnp = jax.numpy

    @jax.jit
    def field(tokens: Any) -> Any:
        scores = jnp.einsum("ia,hab,jb->hij", tokens, M, tokens)
        if causal:
            scores = jnp.where(jnp.tri(len(tokens), dtype=bool), scores, -jnp.inf)
        weights = (
            jnp.exp(scores) / len(tokens)
            if kernel == "exp_mean"
            else jax.nn.softmax(scores, axis=-1)
        )
        return jnp.einsum("hij,jb,hab->ia", weights, tokens, V)

    tokens = jnp.asarray(x)
    return lambda: np.asarray(field(tokens))


def scipy_run(
    x0: np.ndarray, V: np.ndarray, beta: float, times: np.ndarray, rtol: float, frame: str
) -> Field:
    """SciPy's DOP853 over the NumPy field in the frame x, z or sphere."""
    from scipy.integrate import solve_ivp
    from scipy.linalg import expm

    def velocity(t: float, flat: np.ndarray) -> np.ndarray:
        y = flat.reshape(x0.shape)
        x = y @ growth(t).T if frame == "z" else y
        mean = numpy_scores_to_mean(beta * x @ x.T, y, "softmax", False)
        if frame == "z":
            mean = mean - y
        out = mean @ V.T
        if frame == "sphere":
            out = out - (out * y).sum(axis=1, keepdims=True) * y
        return out.ravel()

    is_scalar = np.array_equal(V, V[0, 0] * np.eye(len(V)))

    def growth(t: float) -> np.ndarray:
        return np.exp(V[0, 0] * t) * np.eye(len(V)) if is_scalar else expm(t * V)

    def call() -> np.ndarray:
        solution = solve_ivp(
            velocity, (0.0, times[-1]), x0.ravel(), "DOP853", t_eval=times, rtol=rtol, atol=rtol
        )
        return solution.y.T.reshape(-1, *x0.shape)

    return call


def diffrax_run(
    x0: np.ndarray, V: np.ndarray, beta: float, times: np.ndarray, rtol: float, frame: str
) -> Field | None:
    """diffrax's Dopri8, jitted; x0 (b, n, d) is a vmap over b."""
    if jax is None or diffrax is None:
        return None
    jnp = jax.numpy
    is_scalar = np.array_equal(V, V[0, 0] * np.eye(len(V)))

    def velocity(t: Any, y: Any, _: Any) -> Any:
        x = y
        if frame == "z":
            x = (
                jnp.exp(V[0, 0] * t) * y
                if is_scalar
                else y @ jax.scipy.linalg.expm(t * jnp.asarray(V)).T
            )
        mean = jax.nn.softmax(beta * x @ x.T, axis=-1) @ y
        if frame == "z":
            mean = mean - y
        out = mean @ jnp.asarray(V).T
        if frame == "sphere":
            out = out - (out * y).sum(axis=1, keepdims=True) * y
        return out

    def solve(start: Any) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            diffrax.Dopri8(),
            0.0,
            times[-1],
            None,
            start,
            saveat=diffrax.SaveAt(ts=jnp.asarray(times)),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
            max_steps=100_000,
        ).ys

    compiled = jax.jit(jax.vmap(solve) if x0.ndim == 3 else solve)
    start = jnp.asarray(x0)
    return lambda: np.asarray(compiled(start))
