"""The heads of the slides' experiments: 1 to 16 of them, synthetic or trained, with V_h = I as in
the slides or with their own.

    family "synthetic": Gaussian Q_h, K_h, V_h       family "trained": heads of a model, from layer 0 on, layer by layer
    values "identity":  V_h = I, so x' = sum_h P_h x and z = e^{-Ht} x    values "own": V_h of the head, for a model W_O W_V

Heads are nested: the first two of four are the two. A model that is not here leaves the trained
half out, with the reason.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.analysis.span import identities
from attnlab.experiments.common.paragraphs import PARAGRAPHS
from attnlab.starts import uniform_cube
from attnlab.types import Weights

HEADS = (1, 2, 4, 8, 16)
FAMILIES = ("synthetic", "trained")
VALUES = ("identity", "own")

STAND_INS = {
    "a tiny random BERT": "random",
    "planted ALBERT": "planted",
    "planted heads": "planted",
}
"""The models that stand in for trained ones at size small, and where their weights are from."""

NOT_READ = {
    "embedded text": "embedded random ids",
    "embedded prose": "embedded random ids",
    "an embedded paragraph": "embedded random ids",
    "real embeddings": "embedded random ids",
    "a paragraph of": "random ids for",
    "one paragraph": "random ids",
    "Paragraphs": "Random ids",
    "paragraph": "random ids",
    " of text": " of random ids",
}
"""What a stand-in, which has no words, starts from instead."""


def synthetic_heads(
    count: int, d: int, values: str = "identity", *, scale: float = 1.0, rng: int = 0
) -> Weights:
    """Heads with independent normal entries of standard deviation scale / sqrt(d), square; values
    "own": V_h drawn alike.
    """
    _check(count, values)
    generator = np.random.default_rng([rng, d])
    Q, K, V = np.moveaxis(
        generator.normal(scale=scale / np.sqrt(d), size=(max(HEADS), 3, d, d)), 1, 0
    )[:, :count]
    return Weights(
        Q=Q,
        K=K,
        V=identities(count, d) if values == "identity" else V,
        source=f"{count} Gaussian heads, d = {d}, scale = {scale:g}, rng = {rng}, values: {values}",
    )


def trained_heads(model: Any, count: int, values: str = "identity") -> Weights:
    """The first heads of a model: those of layer 0, then of layer 1 and so on, where more are asked
    for than a layer has.
    """
    _check(count, values)
    config = model.config
    if count > config.heads * config.layers or (config.is_tied and count > config.heads):
        raise ValueError(f"{model.name} has not {count} different heads.")
    layers = [model.weights(layer) for layer in range(-(-count // config.heads))]
    Q, K = (np.concatenate([getattr(one, name) for one in layers])[:count] for name in "QK")
    B, C = (np.concatenate([one.V[part] for one in layers])[:count] for part in (0, 1))
    return Weights(
        Q=Q,
        K=K,
        V=identities(count, config.d) if values == "identity" else (B, C),
        source=f"the first {count} heads of {model.name}, values: {values}",
    )


def trained_model(size: str, model: str = "minilm") -> tuple[Any, str]:
    """(the model, "") or (None, why it is not here); at size "small" minilm is replaced by a tiny
    random BERT in memory.
    """
    if importlib.util.find_spec("safetensors") is None:
        return None, "trained weights need more libraries: pip install 'attnlab[models]'"
    if size == "small" and model == "minilm":
        return stand_in(), ""
    from attnlab.models import load
    from attnlab.models.checkpoints.record import NotFetched

    try:
        return load(model), ""
    except NotFetched as problem:
        return None, str(problem)


class Trained:
    """What the cases of an experiment share: the model whose heads are taken, or None and why it is
    not here.
    """

    def __init__(self, size: str, model: str = "minilm"):
        self.model, self.why = trained_model(size, model)
        self.name = "" if self.model is None else str(self.model.name)
        self._made: dict[tuple[int, str], Weights] = {}

    def heads(self, count: int, values: str) -> Weights:
        """The first heads of the model, made once."""
        if (count, values) not in self._made:
            self._made[count, values] = trained_heads(self.model, count, values)
        return self._made[count, values]

    def without(self, case: Mapping[str, Any]) -> str:
        """Why a case of the family "trained" is left out, "" where there is a model."""
        return self.why if self.model is None and case.get("family") == "trained" else ""


def as_shown(words: str, model: str) -> str:
    """Words about trained heads, made true of the model that is there: a stand-in is not trained,
    and reads no text.
    """
    if model not in STAND_INS:
        return words
    for text, instead in {
        **NOT_READ,
        "trained": STAND_INS[model],
        "Trained": STAND_INS[model].capitalize(),
    }.items():
        words = words.replace(text, instead)
    return words


def real_start(model: Any, n: int, piece: int = 0) -> np.ndarray:
    """The embedded tokens (n, d) of one piece of the PARAGRAPHS: n in a row, at the first n places;
    pieces do not overlap (words may come again). The stand-in has no words: any ids, others for
    each piece.
    """
    config = model.config
    if model.tokenizer_file is None:
        ids = np.random.default_rng(piece).integers(0, config.vocabulary, n)
    else:
        every, _ = model.tokens(" ".join(PARAGRAPHS), special=False)
        ids = np.asarray(every[n * piece : n * (piece + 1)])
        if len(ids) < n:
            raise ValueError(
                f"The paragraphs have {len(every)} tokens: {len(every) // n} pieces of {n}; piece"
                f" {piece} is asked for."
            )
    return np.asarray(model.hidden_states(ids)[0])


def cube_start(n: int, d: int, rng: int) -> np.ndarray:
    """The random start of the slides: tokens (n, d) uniform in [-5, 5]^d."""
    return uniform_cube(n, d, low=-5.0, high=5.0, rng=rng)


def stand_in() -> Any:
    """A tiny BERT in memory, d = 24, four heads in each of four layers, Gaussian matrices of the
    sizes that training leaves.
    """
    from attnlab.models import load

    rng, d, inner, words, places = np.random.default_rng(9), 24, 8, 97, 512
    state: dict[str, np.ndarray] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        state[f"{name}.weight"] = rng.normal(scale=1.0 / np.sqrt(inputs), size=(outputs, inputs))
        state[f"{name}.bias"] = np.zeros(outputs)

    def norm(name: str) -> None:
        state[f"{name}.weight"], state[f"{name}.bias"] = np.ones(d), np.zeros(d)

    for name, many in (("word", words), ("position", places), ("token_type", 2)):
        state[f"embeddings.{name}_embeddings.weight"] = rng.normal(
            scale=1.0 if name == "word" else 0.2, size=(many, d)
        )
    norm("embeddings.LayerNorm")
    for layer in range(4):
        at = f"encoder.layer.{layer}."
        for name in ("query", "key", "value"):
            linear(f"{at}attention.self.{name}", d, d)
        linear(f"{at}attention.output.dense", d, d)
        linear(f"{at}intermediate.dense", inner, d)
        linear(f"{at}output.dense", d, inner)
        norm(f"{at}attention.output.LayerNorm")
        norm(f"{at}output.LayerNorm")
    config = {
        "model_type": "bert",
        "vocab_size": words,
        "hidden_size": d,
        "num_attention_heads": 4,
        "num_hidden_layers": 4,
        "intermediate_size": inner,
        "max_position_embeddings": places,
    }
    return load(state, config=config, name="a tiny random BERT")


def _check(count: int, values: str) -> None:
    if count not in range(1, max(HEADS) + 1) or values not in VALUES:
        raise ValueError(
            f"There are 1 to {max(HEADS)} heads with values 'identity' or 'own', got {count} and"
            f" {values!r}."
        )


def counted_backwards(heads: np.ndarray) -> np.ndarray:
    """Numbers of heads as if they were counted backwards, for a spoil: 16 for 1, 8 for 2."""
    order = {count: HEADS[-1 - k] for k, count in enumerate(HEADS)}
    return np.array([order[int(count)] for count in heads])
