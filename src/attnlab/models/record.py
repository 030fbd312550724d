"""A trained transformer as arrays: every family of checkpoints is read into these records, and everything else reads only them.

Matrices act on column vectors, (out, in), and are cut into heads. Arrays keep the checkpoint's precision and may be
memory-mapped: whoever computes with them converts what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr


@dataclass(frozen=True)
class Config(Displayed):
    """The shape of a model, in our words; what the checkpoint's own config.json said stays in Model.raw_config."""

    family: str                     # "albert", "bert", "gpt2", "distilbert", "llama", "gpt_neox"
    d: int                          # width of the residual stream
    heads: int
    kv_heads: int                   # = heads unless keys and values are shared by groups of heads
    head_size: int
    layers: int
    hidden: int                     # width inside the feed-forward part
    vocabulary: int
    length: int                     # the longest text
    is_tied: bool = False           # one layer's weights used in all layers (ALBERT)
    is_pre_norm: bool = False       # the norm stands before attention (GPT, Llama), not after the residual sum (BERT)
    is_causal: bool = False
    is_parallel: bool = False       # attention and feed-forward read the same stream and are added together (GPT-NeoX)
    activation: str = "gelu"        # "gelu", "gelu_tanh", "relu", "silu"
    rope_theta: float | None = None  # rotary positions: their base; None: positions are added to the embedding
    rope_size: int = 0              # how many coordinates of a head are rotated
    rope_pairs: str = "halves"      # coordinate i turns with i + rope_size / 2 (Hugging Face); "neighbours": with i + 1
    rope_frequencies: tuple[float, ...] = ()    # angles per place, where they are not theta^(-2 i / rope_size)
    window: int | None = None       # a sliding window, which is not computed: the longest text is not longer than it
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Norm(Displayed):
    """gain * (x - mean) / sqrt(variance + eps) + bias, kind "layer"; gain * x / sqrt(mean square + eps), kind "rms"."""

    kind: str
    gain: np.ndarray                # (d,)
    bias: np.ndarray | None
    eps: float
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Layer(Displayed):
    """One layer. Head h attends with query[h], key[h // group], value[h // group], group = heads / kv_heads, and
    writes output[h].
    """

    query: np.ndarray               # (heads, head_size, d)
    key: np.ndarray                 # (kv_heads, head_size, d)
    value: np.ndarray               # (kv_heads, head_size, d)
    output: np.ndarray              # (heads, d, head_size)
    query_bias: np.ndarray | None   # (heads, head_size)
    key_bias: np.ndarray | None     # (kv_heads, head_size)
    value_bias: np.ndarray | None   # (kv_heads, head_size)
    output_bias: np.ndarray | None  # (d,)
    attention_norm: Norm            # before attention (pre-norm) or after its residual sum (post-norm)
    feedforward_norm: Norm
    inner: np.ndarray               # (hidden, d)
    inner_bias: np.ndarray | None
    gate: np.ndarray | None         # (hidden, d): the feed-forward part is outer (activation(gate x) * inner x) where it is there
    outer: np.ndarray               # (d, hidden)
    outer_bias: np.ndarray | None
    gate_bias: np.ndarray | None = None
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Embedding(Displayed):
    """x = projection norm(tokens[id] + positions[place + position_offset] + kinds[0]); what a family does not have is None."""

    tokens: np.ndarray              # (vocabulary, e)
    positions: np.ndarray | None = None
    position_offset: int = 0        # RoBERTa counts places from 2
    padding: int | None = None      # the id RoBERTa leaves out when it counts places; None: every token is counted
    kinds: np.ndarray | None = None
    norm: Norm | None = None
    projection: np.ndarray | None = None        # (d, e), where e is not d
    projection_bias: np.ndarray | None = None
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Parts(Displayed):
    """What a family makes out of a checkpoint's tensors."""

    config: Config
    embedding: Embedding
    layers: tuple[Layer, ...]       # tied: the same Layer, config.layers times
    final_norm: Norm | None = None
    __repr__ = short_repr


class BadModel(ValueError):
    """A checkpoint that cannot be used; its message says what must hold, what was found, and what to do."""


class NotFetched(BadModel):
    """A known model that is not here yet; its message says how to get it."""


Tensors = Any
"""A mapping from tensor names to arrays, as files.open_tensors and a state dict give it."""
