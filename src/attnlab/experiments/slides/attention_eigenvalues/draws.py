"""Single heads one by one: how many eigenvalues of the last attention matrix survive, and how many leaders the limit has."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.analysis.attention import attention_rank, effective_rank, eigenvalue_moduli
from attnlab.analysis.span import in_span
from attnlab.analysis.spectra import leading
from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.heads import real_start, synthetic_heads
from attnlab.experiments.parts import Context
from attnlab.limits import limit
from attnlab.sweep.grid import Grid
from attnlab.types import Weights
from attnlab.weights.good_triple import good_triple

NEAR = 1e-5
"""An eigenvalue is counted as one of modulus H when it is within this part of it."""
KINDS = {
    "polytope": "Q = K = V = I, two dimensions", "random head": "Gaussian Q and K, V = I, four dimensions",
    "one side": "good triple, all tokens on one side of φ₁ = 0", "two sides": "good triple, tokens on both sides",
    "trained head": "trained Q and K, V = I, embedded text",
}
FAMILY_OF = {"trained head": "trained"}
"""The kinds that need a model, and the family that says so."""

DRAWS = {"full": 24, "small": 5}
TRAINED_DRAWS = {"full": 36, "small": 5}

WORK = 375_000.0
"""Units for one limit; the dearest that was certified took 63,000. What they do not certify is left out, and counted."""
DRAW_TOKENS, DRAW_END = 20, 12.0


def attention_at(run: Any, at: int) -> np.ndarray:
    """The attention matrices (h, n, n) at a saved time."""
    return np.asarray(attention(run, at=at))


def outermost(sizes: np.ndarray, radius: float = 1.0) -> int:
    """How many moduli are the radius, within NEAR of it."""
    return int(np.sum(sizes > radius * (1 - NEAR)))


def drawn(kind: str, number: int, trained: Any) -> tuple[Weights, np.ndarray]:
    """One head and its first tokens."""
    rng = np.random.default_rng(number)
    if kind == "polytope":
        return Weights(V=np.eye(2)), rng.uniform(-5, 5, (DRAW_TOKENS, 2))
    if kind == "random head":
        return synthetic_heads(1, 4, rng=number), rng.uniform(-5, 5, (DRAW_TOKENS, 4))
    if kind == "trained head":
        config = trained.config
        one = trained.weights(number // config.heads % config.layers, number % config.heads)
        return in_span(Weights(Q=one.Q, K=one.K, V=np.eye(config.d)), real_start(trained, DRAW_TOKENS, number))[:2]
    weights, x0 = good_triple(3, gap=0.6, rng=number), rng.uniform(-5, 5, (DRAW_TOKENS, 3))
    side = np.sign(x0 @ leading(weights).psi)[:, None]
    return weights, x0 * side if kind == "one side" else x0


def draw_grids(size: str) -> list[Grid]:
    """The single heads of each kind."""
    return [Grid({"kind": [kind], "number": range((TRAINED_DRAWS if kind in FAMILY_OF else DRAWS)[size])}) for kind in KINDS]


def measure_draw(context: Context, kind: str, number: int) -> dict[str, Any]:
    """A single head: its certified limit, and the attention matrix of the run at DRAW_END."""
    return _certified(*drawn(kind, number, context.shared.model))


def _certified(weights: Weights, x0: np.ndarray) -> dict[str, Any]:
    """Numbers of P* from the leaders of the certified limit, and of P(DRAW_END) from its eigenvalues and singular values."""
    end = limit(weights, x0, work=WORK)
    run = simulate(weights, x0, t_end=DRAW_END, times=[0.0, DRAW_END], throw=False)
    is_known = end.grade == "exact" and end.t <= DRAW_END and run.times[-1] == DRAW_END
    P = attention_at(run, -1)[0]
    sizes = eigenvalue_moduli(P)
    groups = np.unique(end.leaders, return_counts=True)[1]
    shares = np.sqrt(groups) / np.sqrt(groups).sum()
    return {
        "is_known": int(is_known), "limits": end.count or 0, "leaders": len(groups),
        "selfish": int(np.sum(end.leaders == np.arange(len(x0)))), "chains": int(np.sum(end.leaders[end.leaders] != end.leaders)),
        "effective_expected": float(np.exp(-np.sum(shares * np.log(shares)))), "survivors": outermost(sizes),
        "largest_other": float(sizes[outermost(sizes):].max(initial=0.0)), "rank": int(attention_rank(P)),
        "effective": float(effective_rank(P)),
    }
