"""The keys of a config.json that a checkpoint may have, so that no model is silently computed
wrong.

The rule, in this order:

1. A key that the family of the checkpoint reads is computed. Its file in `families/` says how.
2. A key of `CHANGES` changes the hidden states of some model of transformers, and no family here
   computes it. Null and the neutral values of the table are allowed. Any other value is refused for
   every model_type, because a relabelled checkpoint may have it. The same holds for the name of a
   class (`architectures`) that has the tensors of a family here but computes something else.
3. A sliding window is respected for every model_type. A family that does not compute it refuses
   longer texts.
4. Every other key is ignored: those of training, of generation and of task heads, and those that
   transformers does not read for this model type (old ALBERT files have `net_structure_type` and
   `gap_size`).

Tensors have the same rule, in `Reader.refuse_unread`: every tensor inside a layer must be read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from attnlab.models.checkpoints.reading import whole
from attnlab.models.checkpoints.record import BadModel, Config

CHANGES: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    # scores
    "attn_logit_softcapping": ("caps the scores", ()),
    "attn_logit_softcap": ("caps the scores", ()),
    "use_qk_norm": ("norms queries and keys", (False,)),
    "qk_norm": ("norms queries and keys", (False,)),
    "qk_layernorm": ("norms queries and keys", (False,)),
    "qk_layer_norms": ("norms queries and keys", (False,)),
    "clip_qkv": ("clips queries, keys and values", ()),
    "scale_attn_weights": ("leaves the division of scores by sqrt(head size) out", (True,)),
    "scale_attn_by_inverse_layer_idx": ("divides scores by the number of the layer", (False,)),
    "attn_temperature_tuning": ("scales queries by their place", (False,)),
    "attn_scale": ("scales the scores", ()),
    "key_multiplier": ("scales keys", (1,)),
    "attention_value_scale": ("scales values", (1,)),
    "alibi": ("adds distances to scores", (False,)),
    "use_alibi": ("adds distances to scores", (False,)),
    "relative_attention": ("adds distances to scores", (False,)),
    "has_relative_attention_bias": ("adds distances to scores", (False,)),
    # which token sees which
    "attention_window": ("lets tokens see their neighbours only", ()),
    "local_attention": ("lets tokens see their neighbours only", ()),
    "window_size": ("lets tokens see their neighbours only", (0, -1)),
    "sliding_window_size": ("lets tokens see their neighbours only", (0, -1)),
    "attention_chunk_size": ("lets tokens see their own piece of the text only", ()),
    "attention_type": ("lets tokens see a part of the text only", ("original_full",)),
    "attention_types": ("lets tokens see a part of the text only", ()),
    "use_bidirectional_attention": ("lets tokens see later ones", (False,)),
    "prefix_lm": ("lets tokens see later ones", (False,)),
    "is_encoder_decoder": ("adds an encoder", (False,)),
    "add_cross_attention": ("adds attention to another text", (False,)),
    "cross_attention_layers": ("adds attention to an image", ()),
    "multi_query": ("shares one key head among all heads", (False,)),
    "attention_k_eq_v": ("uses the keys as values", (False,)),
    "num_kv_shared_layers": ("shares keys and values among layers", (0,)),
    # rotary positions
    "partial_rotary_factor": ("rotates a part of each head only", (1,)),
    "rotary_pct": ("rotates a part of each head only", (1,)),
    "rotary_percentage": ("rotates a part of each head only", (1,)),
    "rope_pct": ("rotates a part of each head only", (1,)),
    "mrope_section": ("rotates by three kinds of places", ()),
    "rope_interleave": ("rotates other pairs of coordinates", (False,)),
    "rope_interleaved": ("rotates other pairs of coordinates", (False,)),
    "rope_local_base_freq": ("rotates by other angles in some layers", ()),
    "layer_rope_theta": ("rotates by other angles in some layers", ()),
    "rotary_value": ("rotates values too", (False,)),
    "use_mrope": ("rotates by three kinds of places", (False,)),
    "llama_4_scaling_beta": ("scales queries by their place", (0,)),
    # embedding and stream
    "embedding_multiplier": ("scales the embedding", (1,)),
    "embedding_scale": ("scales the embedding", (1,)),
    "scale_embedding": ("scales the embedding", (False,)),
    "scale_emb": ("scales the embedding", (1,)),
    "scale_depth": ("scales what a layer adds to the stream", ()),
    "residual_multiplier": ("scales what a layer adds to the stream", (1,)),
    "residual_scale": ("scales what a layer adds to the stream", (1,)),
    "attention_in_multiplier": ("scales what attention reads", (1,)),
    "attention_out_multiplier": ("scales what attention adds", (1,)),
    "mlp_multipliers": ("scales the feed-forward part", ([1, 1],)),
    "mup_enabled": ("scales several parts", (False,)),
    "use_parallel_residual": ("adds attention and feed-forward side by side", (False,)),
    "parallel_attn": ("adds attention and feed-forward side by side", (False,)),
    "use_task_id": ("adds a task to the embedding", (False,)),
    "max_2d_position_embeddings": ("adds places on a page to the embedding", ()),
    "token_dropout": ("scales the embedding", (False,)),
    "hidden_size_per_layer_input": ("adds an embedding in every layer", (0,)),
    # norms and feed-forward part
    "normalize_before": ("puts the norms elsewhere", (False,)),
    "do_layer_norm_before": ("puts the norms elsewhere", ()),
    "apply_residual_connection_post_layernorm": ("puts the norms elsewhere", (False,)),
    "norm_after": ("puts the norms elsewhere", (False,)),
    "use_post_norm": ("puts the norms elsewhere", (False,)),
    "use_sandwich_norm": ("adds norms", (False,)),
    "emb_layer_norm_before": ("adds a norm", (False,)),
    "swiglu_limit": ("clips the feed-forward part", ()),
    "activation_sparsity_pattern": ("leaves small activations out", ()),
    "num_experts": ("replaces the feed-forward part by several", (0, 1)),
    "num_local_experts": ("replaces the feed-forward part by several", (0, 1)),
    "n_routed_experts": ("replaces the feed-forward part by several", (0, 1)),
    "moe_num_experts": ("replaces the feed-forward part by several", (0, 1)),
    # weights
    "quantization_config": ("stores the weights in another form", ()),
    "quant_mode": ("rounds the weights", (False,)),
    "pruned_heads": ("leaves heads out", ()),
}
"""key: (the effect on hidden states of any value other than null, an empty one or the neutral ones;
the neutral ones).
"""

SAME = (
    (
        "rms_norm_eps",
        "layer_norm_eps",
        "layer_norm_epsilon",
        "norm_eps",
        "norm_epsilon",
        "layernorm_epsilon",
    ),
    ("hidden_act", "activation_function", "activation", "hidden_activation"),
    ("rope_theta", "rotary_emb_base", "rope_base"),
)
"""Names of different families for the same thing. Under a foreign name alone the value would be
lost, and a default used.
"""

OTHERS = re.compile(
    "(?:TF|Flax)?(?i:Gemma|Helium|Ernie|Granite|Cohere|Qwen3|Olmo|StableLm|MiniCPM|Phi|Nemotron|Exaone|SmolLM3|Llama4|Glm|Arcee|Apertus|BitNet|"
    "Mixtral|Starcoder2|HunYuan|Deberta|MPNet|Longformer|BigBird|Nezha|RoFormer|MegatronBert|RobertaPreLayerNorm|Xmod|LayoutLM|"
    "ConvBert|MobileBert|EuroBert|UltraBert|IBert|Esm|OpenAIGPT|GPTBigCode|GPTNeo(?!X)|GPTJ|NanoChat)[vV]?[0-9]*n?"
    "(?=[A-Z_]|$|(?i:for|model|text|lm|moe|config|pretrained))"
)
"""Classes of transformers that compute something else, some with exactly the tensors of a family
here (Gemma: gains 1 + w).
"""

MISTRAL_WINDOW = 4096  # default of a config of Mistral
QWEN2_WINDOW_LAYERS = (
    28  # the layers before the first one with a window: default of a config of Qwen
)
USE_WINDOW_IF_TOLD = ("qwen2", "qwen3")  # these have a window only if use_sliding_window is true
DEFAULT_WINDOW = {"gemma2": 4096, "gemma3_text": 4096}
PATTERNS = {"gemma2": 2, "gemma3_text": 6}
"""Without layer_types in the config, one of so many layers has no window."""


def honour_keys(
    raw: Mapping[str, Any],
    config: Config,
    reads: Collection[str] = (),
    own_class: str | None = None,
) -> Config:
    """Return `config` with the sliding window of `raw`. Refuse a checkpoint with features that are
    not computed.

    reads     : the keys of this file that the family reads itself; with "sliding_window" it
              computes the window
    own_class : the prefix of the family's own classes in transformers, if OTHERS contains them
    """
    own_name = (
        re.compile(rf"(?:TF|Flax)?{own_class}(?=Text|For|Model|PreTrained|$)")
        if own_class
        else None
    )
    for key, full_name in _class_names(raw):
        name = full_name.rsplit(".", 1)[-1]  # auto_map says modeling_gemma.GemmaModel
        if OTHERS.match(name.rsplit("--", 1)[-1]) and not (own_name and own_name.match(name)):
            raise _not_computed(key, full_name, "names a class that computes something else")
    tables = [
        raw[key] for key in ("rope_parameters", "rope_scaling") if isinstance(raw.get(key), Mapping)
    ]
    tables += [inner for table in tables for inner in table.values() if isinstance(inner, Mapping)]
    for table in (raw, *tables):
        for key, (does, neutral) in CHANGES.items():
            value = table.get(key)
            if key not in reads and not (
                value is None or value == {} or value == [] or value in neutral
            ):
                raise _not_computed(key, value, does)
    for names in SAME:
        own = [name for name in names if name in reads]
        if own and all(table.get(name) is None for name in own for table in (raw, *tables)):
            foreign = next((name for name in names if raw.get(name) is not None), None)
            if foreign is not None:
                raise BadModel(
                    f"{foreign} in the config is {str(raw[foreign])[:60]!r}, but the family"
                    f" {config.family} calls this {own[0]}. The config is that of another"
                    " architecture: take the config.json that came with the checkpoint."
                )
    _check_values(raw, config, reads)
    widths = [width for width in windows_of(raw, config.layers) if width is not None]
    window = min(widths, default=None)
    if "sliding_window" in reads:
        return replace(config, window=window, is_window_computed=True)
    return (
        config
        if window is None
        else replace(config, window=window, length=min(config.length, window))
    )


def _class_names(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, name) of every class that the config names: in architectures, a list or one word, and
    in the values of auto_map.
    """
    table = raw.get("auto_map")
    for key, found in (
        ("architectures", raw.get("architectures")),
        *(("auto_map", value) for value in (table.values() if isinstance(table, Mapping) else ())),
    ):
        for name in found if isinstance(found, list | tuple) else [found]:
            if isinstance(name, str):
                yield key, name


def _check_values(raw: Mapping[str, Any], config: Config, reads: Collection[str]) -> None:
    """Refuse keys whose neutral value depends on the rest of the config."""
    size = config.head_size
    wanted: dict[str, tuple[str, float]] = {
        "head_dim": ("cuts heads of another width", size),
        "rotary_dim": ("rotates another part of each head", config.rope_size),
        "query_pre_attn_scalar": ("divides scores by its root", size),
        "attention_multiplier": ("scales the scores", size**-0.5),
        "softmax_scale": ("scales the scores", size**-0.5),
    }
    for key, (does, neutral) in wanted.items():
        value = raw.get(key)
        is_number = (
            isinstance(value, int | float) and abs(value) < 1e9
        )  # a longer one does not fit a float
        if (
            key not in reads
            and value is not None
            and not (is_number and abs(value - neutral) <= 1e-6 * neutral)
        ):
            raise _not_computed(key, value, f"{does}; {neutral:.6g} would be neutral")
    if (is_causal := raw.get("is_causal")) is not None and is_causal is not config.is_causal:
        raise _not_computed("is_causal", is_causal, "changes which tokens see later ones")
    if (uses_rope := raw.get("use_rope")) is not None and uses_rope is not (config.rope_size > 0):
        raise _not_computed("use_rope", uses_rope, "adds rotary positions or leaves them out")
    if config.family == "llama" and raw.get("hidden_activation") is not None:
        raise _not_computed(
            "hidden_activation",
            raw["hidden_activation"],
            "is a key of Gemma, whose norms have other gains",
        )
    own = raw.get("hidden_act")
    if (
        "hidden_activation" not in reads
        and raw.get("hidden_activation") not in (None, own)
        and own is not None
    ):
        raise _not_computed(
            "hidden_activation",
            raw["hidden_activation"],
            f"contradicts hidden_act = {str(own)[:40]!r}",
        )
    without, interval = raw.get("no_rope_layers"), raw.get("no_rope_layer_interval")
    if without and not (
        isinstance(without, list | tuple) and all(one in (True, 1) for one in without)
    ):
        raise _not_computed(
            "no_rope_layers", without, "leaves the rotary positions of some layers out"
        )
    if not without and interval:
        raise _not_computed(
            "no_rope_layer_interval", interval, "leaves the rotary positions of some layers out"
        )


def windows_of(raw: Mapping[str, Any], layers: int) -> tuple[int | None, ...]:
    """Return the sliding window of each layer in tokens, or None."""
    kind, types = raw.get("model_type"), raw.get("layer_types")
    if types is not None:
        if not isinstance(types, list | tuple):
            raise BadModel(f"layer_types in the config must be a list, found {str(types)[:60]!r}.")
        for one in types:
            if one not in ("full_attention", "sliding_attention"):
                raise _not_computed("layer_types", one, "gives a layer another kind of attention")
    if kind == "mistral":  # transformers reads no other key for it
        width = (
            whole(raw, "sliding_window", MISTRAL_WINDOW)
            if raw.get("sliding_window", 0) is not None
            else None
        )
        return (width,) * layers
    is_used = raw.get("use_sliding_window")
    is_used = kind not in USE_WINDOW_IF_TOLD if is_used is None else bool(is_used)
    width = raw.get("sliding_window", DEFAULT_WINDOW.get(str(kind)))
    if width is None or not is_used:
        return (None,) * layers
    width = whole({"sliding_window": width}, "sliding_window")
    if types is not None:
        if len(types) != layers and "sliding_attention" in types:
            raise BadModel(
                f"layer_types in the config must name the attention of {layers} layers, found"
                f" {len(types)}."
            )
        has_window = [
            number < len(types) and types[number] == "sliding_attention" for number in range(layers)
        ]
    elif kind in USE_WINDOW_IF_TOLD:
        first = whole(raw, "max_window_layers", QWEN2_WINDOW_LAYERS, least=0)
        has_window = [number >= first for number in range(layers)]
    elif kind in PATTERNS:
        every = (
            whole(raw, "sliding_window_pattern", PATTERNS[kind])
            if kind != "gemma2"
            else PATTERNS[kind]
        )
        has_window = [(number + 1) % every > 0 for number in range(layers)]
    else:
        has_window = [True] * layers
    return tuple(width if has else None for has in has_window)


def _not_computed(key: str, value: Any, does: str) -> BadModel:
    return BadModel(
        f"{key} in the config is {str(value)[:60]!r}. It {does}, which is not computed here, so"
        " hidden states would be wrong. Such a checkpoint needs its own family; another model_type"
        " does not make it right."
    )
