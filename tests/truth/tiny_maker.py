"""Random tensors by name, and the sizes of the tiny checkpoints."""

from __future__ import annotations

import numpy as np

State = dict[str, np.ndarray]
SIZES = {"vocab_size": 19, "hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 16,
         "max_position_embeddings": 10}  # fmt: skip
D, HEADS, LAYERS, HIDDEN, WORDS, LENGTH = 12, 3, 2, 16, 19, 10


class Maker:
    """Random tensors by name, in float32."""

    def __init__(self, rng: int = 0):
        self.rng = np.random.default_rng(rng)
        self.state: State = {}

    def put(self, name: str, *shape: int, scale: float = 0.4, mean: float = 0.0) -> None:
        self.state[name] = (mean + scale * self.rng.standard_normal(shape)).astype(np.float32)

    def linear(self, name: str, outputs: int, inputs: int) -> None:
        self.put(f"{name}.weight", outputs, inputs)
        self.put(f"{name}.bias", outputs)

    def norm(self, name: str, d: int = D) -> None:
        self.put(f"{name}.weight", d, mean=1.0, scale=0.2)
        self.put(f"{name}.bias", d)
