"""HookedTransformer of TransformerLens: GPT, Llama or Gemma in one layout, heads apart, norms perhaps
folded into the matrices.

Its config (`model.cfg`) is the config here. Matrices act on rows there, (d, head size), and on
columns here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.models.checkpoints.config_keys import honour_keys
from attnlab.models.checkpoints.families import family
from attnlab.models.checkpoints.reading import (
    MOST_LAYERS,
    Reader,
    activation,
    must_be,
    number,
    whole,
)
from attnlab.models.checkpoints.record import (
    Attention,
    BadModel,
    Block,
    Config,
    Embedding,
    FeedForward,
    Layer,
    Norm,
    Parts,
    Tensors,
)
from attnlab.models.checkpoints.rotary import read_rotary

ANCHOR = "blocks.{}.attn.W_Q"

READS = (
    "act_fn",
    "attn_scale",
    "rotary_dim",
    "scale_attn_by_inverse_layer_idx",
    "use_qk_norm",
    "window_size",
    "attn_types",
)
"""Keys that change hidden states of other families too, and that this one computes."""

NORMS = {"LN": "layer", "LNPre": "layer", "RMS": "rms", "RMSPre": "rms"}


@family("hooked_transformer", model_types=("hooked_transformer",), mark=ANCHOR.format(0))
def read(tensors: Tensors, raw: Mapping[str, Any]) -> Parts:
    """The parts of a HookedTransformer. Where layer norms are folded (LNPre, RMSPre), gains are 1."""
    must_be(raw, "load_in_4bit", False, None)
    must_be(raw, "positional_embedding_type", "standard", "rotary")
    must_be(raw, "normalization_type", "LN", "LNPre", "RMS", "RMSPre", None)
    must_be(raw, "attention_dir", "causal", "bidirectional")
    config = honour_keys(raw, _config_of(raw), READS)
    reader = Reader(tensors, ANCHOR.format(0))
    reader.no_more_layers(ANCHOR, config.layers)
    embedding = _embedding_of(reader, raw, config)
    found = tuple(_layer_of(reader, raw, config, number) for number in range(config.layers))
    reader.refuse_unread("blocks.", "hooked_transformer")
    kind = "RMS" if raw.get("final_rms") else None
    return Parts(config, embedding, found, _norm_of(reader, raw, config, "ln_final", kind))


def _config_of(raw: Mapping[str, Any]) -> Config:
    size, d = whole(raw, "d_head"), whole(raw, "d_model")
    given = {**raw, "n_heads": None} if raw.get("n_heads") == -1 else raw
    heads = whole(given, "n_heads", max(1, d // size))
    kv_heads = whole(raw, "n_key_value_heads", heads)
    if heads % kv_heads:
        raise BadModel(f"n_heads = {heads} must be a multiple of n_key_value_heads = {kv_heads}.")
    is_rotary = raw.get("positional_embedding_type") == "rotary"
    has_layers = not raw.get("attn_only")
    theta, frequencies = _rotary_of(raw, size) if is_rotary else (None, ())
    return Config(
        family="hooked_transformer",
        d=d,
        heads=heads,
        kv_heads=kv_heads,
        head_size=size,
        layers=whole(raw, "n_layers", most=MOST_LAYERS),
        hidden=whole(raw, "d_mlp", 4 * d) if has_layers else 0,
        vocabulary=whole(raw, "d_vocab"),
        length=whole(raw, "n_ctx"),
        is_pre_norm=True,
        is_causal=raw.get("attention_dir") != "bidirectional",
        is_parallel=bool(raw.get("parallel_attn_mlp")) and has_layers,
        activation=activation(raw, "act_fn", "not given") if has_layers else "gelu",
        rope_theta=theta,
        rope_size=whole(raw, "rotary_dim", size) if is_rotary else 0,
        rope_pairs="neighbours" if raw.get("rotary_adjacent_pairs") else "halves",
        rope_frequencies=frequencies,
        window=whole(raw, "window_size") if raw.get("use_local_attn") else None,
        is_window_computed=True,
    )


def _rotary_of(
    raw: Mapping[str, Any], size: int, base: str = "rotary_base"
) -> tuple[float, tuple[float, ...]]:
    table: dict[str, Any] = {"rope_theta": number(raw, base, 10000.0)}
    if raw.get("use_NTK_by_parts_rope"):
        table["rope_scaling"] = {
            "rope_type": "llama3",
            "factor": number(raw, "NTK_by_parts_factor", 8.0),
            "low_freq_factor": number(raw, "NTK_by_parts_low_freq_factor", 1.0),
            "high_freq_factor": number(raw, "NTK_by_parts_high_freq_factor", 4.0),
            "original_max_position_embeddings": whole(raw, "NTK_original_ctx_len", 8192),
        }
    return read_rotary(table, whole(raw, "rotary_dim", size))


def _embedding_of(reader: Reader, raw: Mapping[str, Any], config: Config) -> Embedding:
    is_rotary = config.rope_theta is not None
    if raw.get("post_embedding_ln") and not is_rotary:
        raise BadModel(
            "post_embedding_ln in the config stands before positional_embedding_type = 'standard'"
            " is added, which is not computed here. Such a checkpoint needs its own family."
        )
    return Embedding(
        reader.take("embed.W_E", config.vocabulary, config.d),
        positions=None if is_rotary else reader.take("pos_embed.W_pos", config.length, config.d),
        norm=_norm_of(reader, raw, config, "embed.ln", "LN")
        if raw.get("post_embedding_ln")
        else None,
    )


def _norm_of(
    reader: Reader, raw: Mapping[str, Any], config: Config, at: str, kind: str | None = None
) -> Norm | None:
    """Return the norm with the tensors `at`.w and `at`.b; folded ones have none.

    kind: that of this norm, where it is not the one in the config.
    """
    said = raw.get("normalization_type", "LN")
    if said is None and kind != "LN":
        return None
    is_folded = (said or "").endswith("Pre") and kind != "LN"
    which = NORMS[kind or said]
    eps = number(raw, "eps", 1e-5)
    if is_folded:
        return Norm(which, np.ones(config.d), None, eps)
    bias = reader.take(at + ".b", config.d) if which == "layer" else None
    return Norm(which, reader.take(at + ".w", config.d), bias, eps)


def _layer_of(reader: Reader, raw: Mapping[str, Any], config: Config, number: int) -> Layer:
    at = f"blocks.{number}."
    is_sandwich = bool(raw.get("use_normalization_before_and_after"))
    if is_sandwich and raw.get("normalization_type") not in ("RMS", "RMSPre"):
        raise BadModel(
            "use_normalization_before_and_after in the config is computed with the"
            f" normalization_type RMS or RMSPre only, found {raw.get('normalization_type', 'LN')!r}."
        )

    def block(mixer: Attention | FeedForward, norm: str, is_beside: bool = False) -> Block:
        return Block(
            mixer,
            norm_before=_norm_of(reader, raw, config, at + norm),
            norm_output=_gain(reader, raw, at + norm + "_post", config.d) if is_sandwich else None,
            is_beside=is_beside,
        )

    first = block(_attention_of(reader, raw, config, at, number), "ln1")
    if raw.get("attn_only"):
        return Layer((first,))
    part = _feedforward_of(reader, raw, config, at + "mlp.")
    return Layer((first, block(part, "ln2", config.is_parallel)))


def _gain(reader: Reader, raw: Mapping[str, Any], at: str, size: int) -> Norm:
    """Return an RMSNorm that is never folded."""
    return Norm("rms", reader.take(at + ".w", size), None, number(raw, "eps", 1e-5))


def _attention_of(
    reader: Reader, raw: Mapping[str, Any], config: Config, at: str, layer: int
) -> Attention:
    at += "attn."
    d, heads, kv_heads, size = config.d, config.heads, config.kv_heads, config.head_size
    # grouped key heads have an underscore, and the names without it are copies of them
    shared = "_" if raw.get("n_key_value_heads") is not None else ""

    def matrices(name: str, count: int) -> np.ndarray:
        return np.swapaxes(reader.take(at + name, count, d, size), 1, 2)

    is_local = config.window is not None and _kinds_of(raw, config.layers)[layer] == "local"
    rotary = config.rotary
    if rotary is not None and is_local and raw.get("rotary_base_local") is not None:
        theta, frequencies = _rotary_of(raw, size, "rotary_base_local")
        rotary = replace(rotary, theta=theta, frequencies=frequencies)
    divisor = _divisor(raw, size) * (layer + 1 if raw.get("scale_attn_by_inverse_layer_idx") else 1)
    cap = raw.get("attn_scores_soft_cap")
    is_normed = bool(raw.get("use_qk_norm"))
    return Attention(
        query=matrices("W_Q", heads),
        key=matrices(shared + "W_K", kv_heads),
        value=matrices(shared + "W_V", kv_heads),
        output=np.swapaxes(reader.take(at + "W_O", heads, size, d), 1, 2),
        query_bias=reader.take(at + "b_Q", heads, size),
        key_bias=reader.take(at + shared + "b_K", kv_heads, size),
        value_bias=reader.take(at + shared + "b_V", kv_heads, size),
        output_bias=reader.take(at + "b_O", d),
        rotary=rotary,
        scale=1 / divisor,
        query_norm=_gain(reader, raw, at + "q_norm", size) if is_normed else None,
        key_norm=_gain(reader, raw, at + "k_norm", size) if is_normed else None,
        cap=None if cap is None or cap == -1 else number(raw, "attn_scores_soft_cap", 1.0),
        window=config.window if is_local else None,
    )


def _divisor(raw: Mapping[str, Any], size: int) -> float:
    """Return the number by which scores are divided; -1 stands for sqrt(head size)."""
    if raw.get("use_attn_scale") is False:
        return 1.0
    said = raw.get("attn_scale")
    return size**0.5 if said is None or said == -1 else number(raw, "attn_scale", 1.0)


def _kinds_of(raw: Mapping[str, Any], layers: int) -> list[str]:
    """Return "local" or "global" for every layer."""
    kinds = raw.get("attn_types")
    if raw.get("attention_dir") == "bidirectional":
        raise BadModel(
            "use_local_attn in the config is computed with attention_dir = 'causal' only."
        )
    if (
        not isinstance(kinds, list | tuple)
        or len(kinds) < layers
        or any(one not in ("local", "global") for one in kinds)
    ):
        raise BadModel(
            f"attn_types in the config must say 'local' or 'global' for each of {layers} layers,"
            f" found {str(kinds)[:60]!r}."
        )
    return list(kinds)


def _feedforward_of(reader: Reader, raw: Mapping[str, Any], config: Config, at: str) -> FeedForward:
    d, hidden = config.d, config.hidden
    inner_bias, outer_bias = reader.take(at + "b_in", hidden), reader.take(at + "b_out", d)
    outer = reader.take(at + "W_out", hidden, d).T
    gate = None
    if raw.get("gated_mlp"):
        # there the inner bias is added after the product with the gate
        gate = reader.take(at + "W_gate", d, hidden).T
        outer_bias = outer_bias + outer.astype(outer_bias.dtype) @ inner_bias
    return FeedForward(
        config.activation,
        inner=reader.take(at + "W_in", d, hidden).T,
        outer=outer,
        inner_bias=inner_bias if gate is None else None,
        outer_bias=outer_bias,
        gate=gate,
    )
