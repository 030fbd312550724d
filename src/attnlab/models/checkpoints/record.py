"""A trained transformer as arrays: every family of checkpoints is read into these records. All
other code uses only them.

Matrices act on column vectors, (out, in), and are cut into heads. Arrays keep the checkpoint's
precision and may be memory-mapped, so callers convert the arrays that they need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr

ANY_LENGTH = 1 << 31
"""The length of a model that can read texts of any length."""


PART = {
    "plot": "al.plot(model) shows the heads of all layers.",
    "movie": "A part of a model has no time axis. Film a flow: al.movie(al.models.flow(model), path).",
    "save": "Keep the folder of the checkpoint, or the name that al.models.load takes.",
    "to_xarray": "al.to_xarray(al.models.spectra(model)) has the numbers of all heads.",
}
"""What to do instead with a part of a model."""


@dataclass(frozen=True)
class Config(Displayed):
    """The shape of a model, in the words of attnlab. `Model.raw_config` is the checkpoint's own
    config.json.
    """

    family: str  # "albert", "bert", "gpt2", "distilbert", "llama", "gpt_neox"
    d: int  # width of the residual stream
    heads: int
    kv_heads: int  # = heads unless keys and values are shared by groups of heads
    head_size: int
    layers: int
    hidden: int  # width inside the feed-forward part; 0: there is none
    vocabulary: int  # 0: the model has no embedding
    length: int  # the longest text; ANY_LENGTH: there is none
    is_tied: bool = False  # one layer's weights used in all layers (ALBERT)
    is_pre_norm: bool = (
        False  # the norm stands before attention (GPT, Llama), not after the residual sum (BERT)
    )
    is_causal: bool = False
    is_parallel: bool = (
        False  # attention and feed-forward read the same stream and are added together (GPT-NeoX)
    )
    activation: str = "gelu"  # "gelu", "gelu_tanh", "gelu_bloom", "relu", "silu"
    rope_theta: float | None = (
        None  # rotary positions: their base; None: positions are added to the embedding
    )
    rope_size: int = 0  # how many coordinates of a head are rotated
    # coordinate i turns with i + rope_size / 2 (Hugging Face); "neighbours": with i + 1
    rope_pairs: str = "halves"
    rope_frequencies: tuple[
        float, ...
    ] = ()  # angles per place, where they are not theta^(-2 i / rope_size)
    window: int | None = None  # a sliding window in some layers
    is_window_computed: bool = False  # if not, the longest text is not longer than the window
    __repr__ = short_repr
    instead = PART

    @property
    def has_longest_text(self) -> bool:
        """Whether the model cannot read texts that are longer than `length`."""
        return self.length < ANY_LENGTH

    @property
    def rotary(self) -> Rotary | None:
        """The rotary positions, or None where the model has none."""
        if self.rope_theta is None:
            return None
        return Rotary(self.rope_theta, self.rope_size, self.rope_pairs, self.rope_frequencies)


@dataclass(frozen=True, eq=False)
class Norm(Displayed):
    """gain * (x - mean) / sqrt(variance + eps) + bias, kind "layer"; gain * x / sqrt(mean square +
    eps), kind "rms".
    """

    kind: str
    gain: np.ndarray  # (d,)
    bias: np.ndarray | None
    eps: float
    __repr__ = short_repr
    instead = PART


@dataclass(frozen=True, eq=False)
class Rotary(Displayed):
    """Rotary positions: queries and keys are turned by their place in the text."""

    theta: float
    size: int  # how many coordinates of a head are turned
    pairs: str = (
        "halves"  # coordinate i turns with i + size / 2 (Hugging Face); "neighbours": with i + 1
    )
    frequencies: tuple[float, ...] = ()  # angles per place, where they are not theta^(-2 i / size)
    __repr__ = short_repr
    instead = PART


@dataclass(frozen=True, eq=False)
class Attention(Displayed):
    """The heads of a layer. Head h attends with query[h], key[h // group], value[h // group], group
    = heads / kv_heads, and writes output[h].
    """

    query: np.ndarray  # (heads, head_size, d)
    key: np.ndarray  # (kv_heads, head_size, d)
    value: np.ndarray  # (kv_heads, head_size, d)
    output: np.ndarray  # (heads, d, head_size)
    query_bias: np.ndarray | None = None  # (heads, head_size)
    key_bias: np.ndarray | None = None  # (kv_heads, head_size)
    value_bias: np.ndarray | None = None  # (kv_heads, head_size)
    output_bias: np.ndarray | None = None  # (d,)
    rotary: Rotary | None = None  # None: scores do not turn with the places
    scale: float | None = None  # scores are <q, k> times this; None: head_size^(-1/2)
    query_norm: Norm | None = None  # of each head's query, gain (head_size,), before it is turned
    key_norm: Norm | None = None
    cap: float | None = None  # scores s become cap tanh(s / cap)
    window: int | None = None  # a token sees only tokens that are fewer than so many places away
    # added to scores by distance (see distances.py): the middle entry of a table is for offset 0
    by_offset: np.ndarray | None = None  # (heads, 2 farthest + 1): entry farthest + j - i
    slopes: np.ndarray | None = None  # (heads,): scores lose slope |i - j|
    offset_rows: np.ndarray | None = None  # (2 farthest + 1,) of int: the row of each offset in
    offset_keys: np.ndarray | None = None  # (heads, rows, head_size): <q_i, row of j - i>
    offset_queries: np.ndarray | None = None  # (heads, rows, head_size): <row of j - i, k_j>
    __repr__ = short_repr
    instead = PART


@dataclass(frozen=True, eq=False)
class FeedForward(Displayed):
    """outer activation(inner x), and with a gate outer (activation(gate x) * inner x)."""

    activation: str  # "gelu", "gelu_tanh", "gelu_bloom", "relu", "silu"
    inner: np.ndarray  # (hidden, d)
    outer: np.ndarray  # (d, hidden)
    inner_bias: np.ndarray | None = None
    outer_bias: np.ndarray | None = None
    gate: np.ndarray | None = None  # (hidden, d)
    gate_bias: np.ndarray | None = None
    __repr__ = short_repr
    instead = PART


@dataclass(frozen=True, eq=False)
class Block(Displayed):
    """One sum of the stream: x becomes norm_sum(x + norm_output(mixer(norm_before(read)))); a norm
    that is None is left out. If `is_sum_normed`, norm_before(read) stands in the place of x too.

    read is x itself, or, beside the block before, what that block read: the two are then added to
    the same stream.
    """

    mixer: Attention | FeedForward
    norm_before: Norm | None = None  # pre-norm: of what the mixer reads
    norm_output: Norm | None = None  # sandwich: of what the mixer adds
    norm_sum: Norm | None = None  # post-norm: of the sum
    is_beside: bool = False
    is_sum_normed: bool = False  # the sum is norm_before(read) + ..., without x itself (BLOOM)
    __repr__ = short_repr
    instead = PART


@dataclass(frozen=True, eq=False)
class Layer(Displayed):
    """One layer: blocks in turn, one with attention and one with the feed-forward part, if any."""

    blocks: tuple[Block, ...]
    __repr__ = short_repr
    instead = PART

    @property
    def attention_block(self) -> Block:
        """The block whose mixer is the attention."""
        return next(block for block in self.blocks if isinstance(block.mixer, Attention))

    @property
    def feedforward_block(self) -> Block:
        """The block whose mixer is the feed-forward part."""
        return next(block for block in self.blocks if isinstance(block.mixer, FeedForward))

    @property
    def attention(self) -> Attention:
        """The heads of the layer."""
        mixer = self.attention_block.mixer
        assert isinstance(mixer, Attention)
        return mixer

    @property
    def feedforward(self) -> FeedForward:
        """The feed-forward part of the layer."""
        mixer = self.feedforward_block.mixer
        assert isinstance(mixer, FeedForward)
        return mixer

    def change(self, **fields: Any) -> Layer:
        """Return the layer with other fields of its attention and feed-forward part, by name."""
        return Layer(
            tuple(
                replace(
                    block,
                    mixer=replace(
                        block.mixer,
                        **{
                            name: value
                            for name, value in fields.items()
                            if name in vars(block.mixer)
                        },
                    ),
                )
                for block in self.blocks
            )
        )

    def change_norms(self, function: Callable[[Norm], Norm | None]) -> Layer:
        """Return the layer with each norm replaced by function(norm)."""

        def new(norm: Norm | None) -> Norm | None:
            return None if norm is None else function(norm)

        return Layer(
            tuple(
                replace(
                    block,
                    norm_before=new(block.norm_before),
                    norm_output=new(block.norm_output),
                    norm_sum=new(block.norm_sum),
                )
                for block in self.blocks
            )
        )


def post_norm(
    attention: Attention, attention_norm: Norm, feedforward: FeedForward, feedforward_norm: Norm
) -> Layer:
    """The layer of BERT: a norm after each sum."""
    return Layer(
        (Block(attention, norm_sum=attention_norm), Block(feedforward, norm_sum=feedforward_norm))
    )


def sandwich(
    attention: Attention,
    before_attention: Norm,
    after_attention: Norm,
    feedforward: FeedForward,
    before_feedforward: Norm,
    after_feedforward: Norm,
) -> Layer:
    """The layer of Gemma 2: a norm before each part, and one of what it adds."""
    return Layer(
        (
            Block(attention, norm_before=before_attention, norm_output=after_attention),
            Block(feedforward, norm_before=before_feedforward, norm_output=after_feedforward),
        )
    )


def pre_norm(
    attention: Attention,
    attention_norm: Norm | None,
    feedforward: FeedForward,
    feedforward_norm: Norm | None,
    is_parallel: bool = False,
) -> Layer:
    """The layer of GPT: a norm before each part; parallel: both parts read the same stream."""
    second = Block(feedforward, norm_before=feedforward_norm, is_beside=is_parallel)
    return Layer((Block(attention, norm_before=attention_norm), second))


@dataclass(frozen=True, eq=False)
class Embedding(Displayed):
    """x = projection norm(scale tokens[id] + positions[place + position_offset] + kinds[0]); what
    is None is left out.
    """

    tokens: np.ndarray  # (vocabulary, e)
    positions: np.ndarray | None = None
    position_offset: int = 0  # RoBERTa counts places from 2
    padding: int | None = (
        None  # the id RoBERTa leaves out when it counts places; None: every token is counted
    )
    is_counting_seen: bool = False  # places count the tokens that the mask shows (OPT)
    kinds: np.ndarray | None = None
    norm: Norm | None = None
    projection: np.ndarray | None = None  # (d, e), where e is not d
    projection_bias: np.ndarray | None = None
    scale: float | None = None  # tokens are multiplied by it
    dropped: int | None = (
        None  # the id whose tokens are 0; the others are divided by their share of the text (ESM)
    )
    __repr__ = short_repr
    instead = PART


@dataclass(frozen=True, eq=False)
class Parts(Displayed):
    """The matrices of a model, as its family reads them from the tensors of a checkpoint.

    Attributes
    ----------
    config : Config
        The shape of the model.
    embedding : Embedding or None
        How ids become the first tokens of the stream. None: the model reads no ids. Its input is
        the stream x (n, d) that enters layer 0, such as embedded patches of an image.
    layers : tuple of Layer
        The layers. A tied model has the same Layer several times.
    final_norm : Norm or None
        The norm after the last layer.
    """

    config: Config
    embedding: Embedding | None
    layers: tuple[Layer, ...]  # tied: the same Layer, config.layers times
    final_norm: Norm | None = None
    __repr__ = short_repr
    instead = PART


class BadModel(ValueError):
    """Raised for a checkpoint that cannot be used. The message says what must hold, what was found,
    and what to do.
    """


class NotFetched(BadModel):
    """A known model that is not here yet; its message says how to get it."""


Tensors = Any
"""A mapping from tensor names to arrays, as files.open_tensors and a state dict give it."""
