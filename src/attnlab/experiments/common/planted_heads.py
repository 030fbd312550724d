"""A model in memory whose heads are planted: so many positive, negative and complex leading
eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.types import Weights

D, R = 24, 6
PATTERN = (
    (("positive", 1),) * 3 + (("positive", -1),) * 7 + (("negative", 1),) * 9 + (("complex", 1),)
)
"""Kind of leading eigenvalue and sign of <Q phi_1, K phi_1>, of twenty heads: 3 good triples, 10
positive, 13 positive scores.
"""

LEADER, GROWTH, REST = 2.0, 0.35, 0.3
"""The leading modulus in layer 0, how much more it is in each further layer, and the deviation of
the other entries.
"""


@dataclass(frozen=True)
class PlantedHeads:
    """What `measured_heads` asks of a model: layers with PATTERN, `repeats` times; Q and K are
    `softness` times those planted.
    """

    name: str
    layers: int
    repeats: int
    is_tied: bool
    softness: float = 1.0

    @property
    def config(self) -> Any:
        """Its shape."""
        from attnlab.models.checkpoints.record import Config

        heads = len(PATTERN) * self.repeats
        return Config(
            family="bert",
            d=D,
            heads=heads,
            kv_heads=heads,
            head_size=R,
            layers=self.layers,
            hidden=1,
            vocabulary=1,
            length=1,
            is_tied=self.is_tied,
        )

    def weights(
        self, layer: int, head: int | None = None, fold_norm: bool = True, offset: int = 0
    ) -> Weights:
        """The matrices of a layer, or of one of its heads, V as factors."""
        made = [
            planted_head(layer, number)
            for number in (range(self.config.heads) if head is None else [head])
        ]
        Q, K, B, C = (np.stack(column) for column in zip(*made, strict=True))
        return Weights(
            Q=self.softness * Q, K=self.softness * K, V=(B, C), source=f"planted, layer {layer}"
        )


def planted_head(layer: int, number: int) -> tuple[np.ndarray, ...]:
    """(Q, K, B, C) of one head: V = U T (U^T + what sees only the rest), K phi_1 = +- Q phi_1."""
    leader, sign = PATTERN[number % len(PATTERN)]
    rng = np.random.default_rng([layer, number])
    size = LEADER + GROWTH * layer + 0.3 * rng.random()
    T = np.diag(rng.normal(scale=REST, size=R))
    T[0, 1:] = rng.normal(scale=REST, size=R - 1)
    T[0, 0] = -size if leader == "negative" else size
    if leader == "complex":
        T[:2, :2] = size * np.array([[0.6, 0.8], [-0.8, 0.6]])
        T[0, 2:] = 0.0
    U = np.linalg.qr(rng.normal(size=(D, R)))[0]
    C = T @ (U.T + 0.1 * rng.normal(size=(R, D)) @ (np.eye(D) - U @ U.T))
    Q, K = rng.normal(size=(2, R, D))
    plane = U[:, :2] if leader == "complex" else U[:, :1]  # where the leading eigenvector is
    return Q, K + (sign * Q - K) @ plane @ plane.T, U, C
