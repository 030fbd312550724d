"""One evaluation of the right-hand side against NumPy, torch and JAX."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import peers
from table import Row, compare

import attnlab as al

ACCURACY = 1e-11
"""Relative to the largest velocity, every contender must agree with the plain formula to this."""


def rows() -> Iterator[Row]:
    yield field(8192, 3, goals={"torch": 3.0, "NumPy": 12.0})
    for d in (1, 2, 4, 8):
        yield field(4096, d, goals={"torch": 2.0})
    yield field(4096, 3, mask="causal", goals={"torch": 2.0})
    yield field(4096, 3, kernel="exp_mean", goals={"torch": 2.0})
    yield field(4096, 3, heads=4, goals={"torch": 2.0})
    yield field(2048, 64, goals={"best": 1.2})
    yield field(512, 64, goals={})
    yield factored()


def field(
    n: int,
    d: int,
    heads: int = 1,
    goals: dict[str, float] | None = None,
    kernel: str = "softmax",
    mask: str = "full",
) -> Row:
    """n tokens of d coordinates; scores and values by full matrices where there are several
    heads.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) / np.sqrt(d) * (0.3 if kernel == "exp_mean" else 1.0)
    eye = np.eye(d)[None]
    Q = eye if heads == 1 else rng.normal(size=(heads, d, d)) / np.sqrt(d)
    V = eye if heads == 1 else rng.normal(size=(heads, d, d)) / np.sqrt(d)
    weights = al.Weights(Q=Q, K=np.repeat(eye, heads, axis=0), V=V)
    M = np.swapaxes(Q, 1, 2)
    truth = al.velocity(weights, x, method="reference", kernel=kernel, mask=mask)
    causal = mask == "causal"
    contenders = {
        "attnlab": lambda: al.velocity(weights, x, kernel=kernel, mask=mask),
        "torch": peers.torch_field(x, M, V, kernel, causal),
        "NumPy": peers.numpy_field(x, M, V, kernel, causal),
        "JAX": peers.jax_field(x, M, V, kernel, causal),
    }
    extra = (
        [", causal"] * causal
        + [", exp_mean"] * (kernel == "exp_mean")
        + [f", {heads} heads"] * (heads > 1)
    )
    row = compare(
        f"one evaluation, n = {n}, d = {d}{''.join(extra)}",
        contenders,
        truth,
        ACCURACY,
        goals or {},
    )
    row.more["ns_per_pair"] = row.seconds["attnlab"] * 1e9 / (heads * n * n)
    return row


def factored(heads: int = 16, k: int = 48, d: int = 768, n: int = 256) -> Row:
    """The heads of a transformer layer, against the bare matrix products that it cannot do without
    (and no exponential).
    """
    rng = np.random.default_rng(0)
    Q, K, C = (rng.normal(size=(heads, k, d)) / np.sqrt(d) for _ in range(3))
    B = rng.normal(size=(heads, d, k)) / np.sqrt(k)
    x = rng.normal(size=(n, d))
    weights = al.Weights(Q=Q, K=K, V=(B, C))
    truth = al.velocity(weights, x, method="reference")
    stacked = np.concatenate([Q, K, C]).reshape(-1, d)
    outer = np.ascontiguousarray(B.transpose(1, 0, 2).reshape(d, heads * k))

    def products() -> None:
        maps = (stacked @ x.T).reshape(3, heads, k, n)
        scores = np.matmul(maps[0].transpose(0, 2, 1), maps[1])  # (h, n, n)
        means = np.matmul(maps[2], scores)  # (h, k, n)
        outer @ means.reshape(heads * k, n)

    contenders = {
        "attnlab": lambda: al.velocity(weights, x),
        "bare BLAS products": products,
        "torch": _torch_heads(x, Q, K, B, C),
    }
    return compare(
        f"{heads} heads of {k} in d = {d}, n = {n}, factored V",
        contenders,
        truth,
        ACCURACY,
        {"bare BLAS products": 1 / 1.2},
        unchecked=("bare BLAS products",),
    )


def _torch_heads(
    x: np.ndarray, Q: np.ndarray, K: np.ndarray, B: np.ndarray, C: np.ndarray
) -> peers.Field | None:
    torch = peers.torch
    if torch is None:
        return None
    heads, k, d = Q.shape
    tokens, stacked = (
        torch.from_numpy(x),
        torch.from_numpy(np.concatenate([Q, K, C]).reshape(-1, d)),
    )
    outer = torch.from_numpy(np.ascontiguousarray(B.transpose(0, 2, 1).reshape(heads * k, d)))

    def call() -> np.ndarray:
        with torch.inference_mode():
            q, key, value = (tokens @ stacked.T).reshape(len(x), 3, heads, k).permute(1, 2, 0, 3)
            mean = torch.nn.functional.scaled_dot_product_attention(
                q[None], key[None], value[None], scale=1.0
            )[0]
            return (mean.permute(1, 0, 2).reshape(len(x), heads * k) @ outer).numpy()

    return call
