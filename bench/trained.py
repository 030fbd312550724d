"""512 tokens through a BERT of the shape of minilm in double precision, beside torch with fused
attention.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import peers
from table import Row, compare

import attnlab as al

D, HEADS, LAYERS, HIDDEN, WORDS, LENGTH, EPS = 384, 12, 6, 1536, 2000, 512, 1e-12
GOAL = 1 / 1.5
"""We may take 1.5 times as long as torch."""

CONFIG = {
    "model_type": "bert",
    "hidden_size": D,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": HIDDEN,
    "vocab_size": WORDS,
    "max_position_embeddings": LENGTH,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": EPS,
}


def state(rng: int = 0) -> dict[str, np.ndarray]:
    """Random tensors under the names that BERT gives them."""
    generator = np.random.default_rng(rng)
    shapes = {
        "embeddings.word_embeddings.weight": (WORDS, D),
        "embeddings.position_embeddings.weight": (LENGTH, D),
        "embeddings.token_type_embeddings.weight": (2, D),
    }
    maps = {
        "attention.self.query": (D, D),
        "attention.self.key": (D, D),
        "attention.self.value": (D, D),
        "attention.output.dense": (D, D),
        "intermediate.dense": (HIDDEN, D),
        "output.dense": (D, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        before = f"encoder.layer.{layer}."
        norms += [before + "attention.output.LayerNorm", before + "output.LayerNorm"]
        for name, shape in maps.items():
            shapes[f"{before}{name}.weight"], shapes[f"{before}{name}.bias"] = shape, shape[:1]
    tensors = {name: generator.normal(scale=0.05, size=shape) for name, shape in shapes.items()}
    for name in norms:
        tensors[name + ".weight"] = 1 + generator.normal(scale=0.1, size=D)
        tensors[name + ".bias"] = generator.normal(scale=0.1, size=D)
    return tensors


def torch_states(tensors: dict[str, np.ndarray], ids: np.ndarray) -> peers.Field | None:
    """The same hidden states: one product for queries, keys and values, and fused attention."""
    if peers.torch is None:
        return None
    torch = peers.torch
    functional = torch.nn.functional
    given = {name: torch.from_numpy(array) for name, array in tensors.items()}
    text = torch.from_numpy(ids)

    def names(before: str) -> tuple:
        return given[before + ".weight"], given[before + ".bias"]

    def norm(x, before: str):
        return functional.layer_norm(x, (D,), *names(before), EPS)

    joined = []
    for layer in range(LAYERS):
        each = [
            names(f"encoder.layer.{layer}.attention.self.{one}")
            for one in ("query", "key", "value")
        ]
        joined.append(tuple(torch.cat([pair[part] for pair in each]) for part in range(2)))

    def call() -> np.ndarray:
        with torch.inference_mode():
            x = (
                given["embeddings.word_embeddings.weight"][text]
                + given["embeddings.position_embeddings.weight"][: len(ids)]
                + given["embeddings.token_type_embeddings.weight"][0]
            )
            found = [norm(x, "embeddings.LayerNorm")]
            for layer in range(LAYERS):
                before, x = f"encoder.layer.{layer}.", found[-1]
                three = functional.linear(x, *joined[layer]).view(len(ids), 3, HEADS, D // HEADS)
                mixed = functional.scaled_dot_product_attention(*three.permute(1, 2, 0, 3)[:, None])
                mixed = mixed[0].transpose(0, 1).reshape(len(ids), D)
                added = functional.linear(mixed, *names(before + "attention.output.dense"))
                x = norm(x + added, before + "attention.output.LayerNorm")
                inner = functional.gelu(functional.linear(x, *names(before + "intermediate.dense")))
                added = functional.linear(inner, *names(before + "output.dense"))
                found.append(norm(x + added, before + "output.LayerNorm"))
            return torch.stack(found).numpy()

    return call


def rows() -> Iterator[Row]:
    tensors = state()
    model = al.models.load(tensors, config=CONFIG)
    ids = np.random.default_rng(1).integers(0, WORDS, size=LENGTH)
    peer = torch_states(tensors, ids)
    ours = model.hidden_states(ids)
    truth = ours if peer is None else peer()
    contenders = {"attnlab": lambda: model.hidden_states(ids), "torch": peer}
    yield compare(
        "hidden states of 512 tokens, BERT of 6 layers, d = 384",
        contenders,
        truth,
        1e-12,
        {"torch": GOAL},
    )
