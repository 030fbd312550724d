"""Tiny random checkpoints of the families that came after the first six."""

from __future__ import annotations

from typing import Any

from tiny_maker import HEADS, HIDDEN, LAYERS, LENGTH, SIZES, WORDS, D, Maker, State

GATED = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4, "rms_norm_eps": 1e-5}
Made = tuple[State, dict[str, Any]]


def gated(kind: str, norms: tuple[str, ...], has_head_norms: bool = False, **raw: Any) -> Made:
    """A checkpoint of the kind of Llama, with heads that are wider together than the stream."""
    make = Maker()
    heads, kv_heads, size = (
        GATED["num_attention_heads"],
        GATED["num_key_value_heads"],
        GATED["head_dim"],
    )
    make.put("model.embed_tokens.weight", WORDS, D)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name, rows in (("q", heads * size), ("k", kv_heads * size), ("v", kv_heads * size)):
            make.put(f"{at}self_attn.{name}_proj.weight", rows, D)
        make.put(f"{at}self_attn.o_proj.weight", D, heads * size)
        for name in ("gate", "up"):
            make.put(f"{at}mlp.{name}_proj.weight", HIDDEN, D)
        make.put(f"{at}mlp.down_proj.weight", D, HIDDEN)
        for name in norms:
            make.put(f"{at}{name}_layernorm.weight", D, mean=0.5)
        for name in ("q", "k") if has_head_norms else ():
            make.put(f"{at}self_attn.{name}_norm.weight", size, mean=0.5)
    make.put("model.norm.weight", D, mean=0.5)
    return make.state, {"model_type": kind, **SIZES, **GATED, **raw}


TWO = ("input", "post_attention")
FOUR = (*TWO, "pre_feedforward", "post_feedforward")


def qwen3() -> Made:
    return gated("qwen3", TWO, has_head_norms=True)


def gemma() -> Made:
    return gated("gemma", TWO, hidden_act="gelu_pytorch_tanh")


def gemma2() -> Made:
    return gated(
        "gemma2", FOUR, query_pre_attn_scalar=6, attn_logit_softcapping=3.0, sliding_window=3
    )


def gemma3() -> Made:
    return gated(
        "gemma3_text",
        FOUR,
        has_head_norms=True,
        query_pre_attn_scalar=6,
        sliding_window=3,
        sliding_window_pattern=2,
    )


def phi() -> Made:
    make = Maker()
    make.put("model.embed_tokens.weight", WORDS, D)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "dense"):
            make.linear(f"{at}self_attn.{name}", D, D)
        for name in ("q", "k"):
            make.norm(f"{at}self_attn.{name}_layernorm", D // HEADS)
        make.linear(f"{at}mlp.fc1", HIDDEN, D)
        make.linear(f"{at}mlp.fc2", D, HIDDEN)
        make.norm(f"{at}input_layernorm")
    make.norm("model.final_layernorm")
    return make.state, {"model_type": "phi", **SIZES, "qk_layernorm": True}


def phi3() -> Made:
    make, heads, kv_heads = Maker(), 6, 2
    make.put("model.embed_tokens.weight", WORDS, D)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        make.put(f"{at}self_attn.qkv_proj.weight", D + 2 * kv_heads * (D // heads), D)
        make.put(f"{at}self_attn.o_proj.weight", D, D)
        make.put(f"{at}mlp.gate_up_proj.weight", 2 * HIDDEN, D)
        make.put(f"{at}mlp.down_proj.weight", D, HIDDEN)
        for name in TWO:
            make.put(f"{at}{name}_layernorm.weight", D, mean=1.0)
    make.put("model.norm.weight", D, mean=1.0)
    raw = {
        **SIZES,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "sliding_window": 3,
    }
    return make.state, {"model_type": "phi3", **raw}


def opt() -> Made:
    make = Maker()
    make.put("model.decoder.embed_tokens.weight", WORDS, D)
    make.put("model.decoder.embed_positions.weight", LENGTH + 2, D)
    for layer in range(LAYERS):
        at = f"model.decoder.layers.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            make.linear(f"{at}self_attn.{name}", D, D)
        make.norm(f"{at}self_attn_layer_norm")
        make.norm(f"{at}final_layer_norm")
        make.linear(f"{at}fc1", HIDDEN, D)
        make.linear(f"{at}fc2", D, HIDDEN)
    make.norm("model.decoder.final_layer_norm")
    raw = {key: value for key, value in SIZES.items() if key != "intermediate_size"}
    return make.state, {"model_type": "opt", **raw, "ffn_dim": HIDDEN}


def gptj() -> Made:
    make = Maker()
    make.put("transformer.wte.weight", WORDS, D)
    for layer in range(LAYERS):
        at = f"transformer.h.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            make.put(f"{at}attn.{name}.weight", D, D)
        make.linear(f"{at}mlp.fc_in", HIDDEN, D)
        make.linear(f"{at}mlp.fc_out", D, HIDDEN)
        make.norm(f"{at}ln_1")
    make.norm("transformer.ln_f")
    return make.state, {
        "model_type": "gptj",
        "n_embd": D,
        "n_head": HEADS,
        "n_layer": LAYERS,
        "n_inner": HIDDEN,
        "n_positions": LENGTH,
        "vocab_size": WORDS,
        "rotary_dim": 2,
    }


def gpt_neo() -> Made:
    make = Maker()
    make.put("transformer.wte.weight", WORDS, D)
    make.put("transformer.wpe.weight", LENGTH, D)
    for layer in range(LAYERS):
        at = f"transformer.h.{layer}."
        for name in ("q_proj", "k_proj", "v_proj"):
            make.put(f"{at}attn.attention.{name}.weight", D, D)
        make.linear(f"{at}attn.attention.out_proj", D, D)
        make.linear(f"{at}mlp.c_fc", HIDDEN, D)
        make.linear(f"{at}mlp.c_proj", D, HIDDEN)
        make.norm(f"{at}ln_1")
        make.norm(f"{at}ln_2")
    make.norm("transformer.ln_f")
    return make.state, {
        "model_type": "gpt_neo",
        "hidden_size": D,
        "num_heads": HEADS,
        "num_layers": LAYERS,
        "vocab_size": WORDS,
        "intermediate_size": HIDDEN,
        "max_position_embeddings": LENGTH,
        "window_size": 3,
        "attention_types": [[["global", "local"], 1]],
    }


def mpnet() -> Made:
    make = Maker()
    make.put("mpnet.embeddings.word_embeddings.weight", WORDS, D)
    make.put("mpnet.embeddings.position_embeddings.weight", LENGTH + 2, D)
    make.norm("mpnet.embeddings.LayerNorm")
    make.put("mpnet.encoder.relative_attention_bias.weight", 32, HEADS)
    for layer in range(LAYERS):
        at = f"mpnet.encoder.layer.{layer}."
        for name in "qkvo":
            make.linear(f"{at}attention.attn.{name}", D, D)
        make.norm(f"{at}attention.LayerNorm")
        make.linear(f"{at}intermediate.dense", HIDDEN, D)
        make.linear(f"{at}output.dense", D, HIDDEN)
        make.norm(f"{at}output.LayerNorm")
    return make.state, {"model_type": "mpnet", **SIZES, "max_position_embeddings": LENGTH + 2}


def esm() -> Made:
    make = Maker()
    make.put("esm.embeddings.word_embeddings.weight", WORDS, D)
    for layer in range(LAYERS):
        at = f"esm.encoder.layer.{layer}."
        for name in (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ):
            make.linear(f"{at}{name}", D, D)
        make.norm(f"{at}attention.LayerNorm")
        make.norm(f"{at}LayerNorm")
        make.linear(f"{at}intermediate.dense", HIDDEN, D)
        make.linear(f"{at}output.dense", D, HIDDEN)
    make.norm("esm.encoder.emb_layer_norm_after")
    return make.state, {
        "model_type": "esm",
        **SIZES,
        "position_embedding_type": "rotary",
        "token_dropout": True,
        "mask_token_id": 18,
        "pad_token_id": 1,
    }


def modernbert() -> Made:
    make = Maker()
    make.put("model.embeddings.tok_embeddings.weight", WORDS, D)
    make.put("model.embeddings.norm.weight", D, mean=1.0)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        make.put(f"{at}attn.Wqkv.weight", 3 * D, D)
        make.put(f"{at}attn.Wo.weight", D, D)
        make.put(f"{at}mlp.Wi.weight", 2 * HIDDEN, D)
        make.put(f"{at}mlp.Wo.weight", D, HIDDEN)
        for name in ("mlp_norm", *(["attn_norm"] if layer else [])):
            make.put(f"{at}{name}.weight", D, mean=1.0)
    make.put("model.final_norm.weight", D, mean=1.0)
    return make.state, {"model_type": "modernbert", **SIZES, "local_attention": 4}


def transformer_layer(make: Maker, at: str, names: tuple[str, ...], without_bias: int = -1) -> None:
    """The layer of BERT under these names: query, key, value, output, inner, outer and two norms."""
    sizes = [(D, D)] * 4 + [(HIDDEN, D), (D, HIDDEN)]
    for number, (name, size) in enumerate(zip(names[:6], sizes, strict=True)):
        make.put(f"{at}{name}.weight", *size)
        if number != without_bias:
            make.put(f"{at}{name}.bias", size[0])
    for name in names[6:]:
        make.norm(at + name)


FAIRSEQ = (
    *(f"self_attn.{name}_proj" for name in ("q", "k", "v", "out")),
    *("fc1", "fc2", "self_attn_layer_norm", "final_layer_norm"),
)
ENCODER = {
    "d_model": D,
    "encoder_attention_heads": HEADS,
    "encoder_layers": LAYERS,
    "encoder_ffn_dim": HIDDEN,
    "is_encoder_decoder": True,
}


def bart() -> Made:
    make = Maker()
    make.put("model.shared.weight", WORDS, D)
    make.put("model.encoder.embed_positions.weight", LENGTH + 2, D)
    make.norm("model.encoder.layernorm_embedding")
    for layer in range(LAYERS):
        transformer_layer(make, f"model.encoder.layers.{layer}.", FAIRSEQ)
    raw = {**ENCODER, "vocab_size": WORDS, "max_position_embeddings": LENGTH}
    return make.state, {"model_type": "bart", **raw, "scale_embedding": True}


def whisper() -> Made:
    make = Maker()
    for layer in range(LAYERS):
        transformer_layer(make, f"model.encoder.layers.{layer}.", FAIRSEQ, without_bias=1)
    make.norm("model.encoder.layer_norm")
    return make.state, {"model_type": "whisper", **ENCODER, "max_source_positions": LENGTH}


def vit() -> Made:
    make = Maker()
    names = (
        *(f"attention.attention.{name}" for name in ("query", "key", "value")),
        *("attention.output.dense", "intermediate.dense", "output.dense"),
        *("layernorm_before", "layernorm_after"),
    )
    for layer in range(LAYERS):
        transformer_layer(make, f"vit.encoder.layer.{layer}.", names)
    make.norm("vit.layernorm")
    raw = {key: value for key, value in SIZES.items() if key.startswith(("hidden", "num", "inter"))}
    return make.state, {"model_type": "vit", **raw}


def t5() -> Made:
    make, size, buckets = Maker(), 5, 8
    make.put("shared.weight", WORDS, D)
    for layer in range(LAYERS):
        at = f"encoder.block.{layer}.layer."
        for name in "qkv":
            make.put(f"{at}0.SelfAttention.{name}.weight", HEADS * size, D)
        make.put(f"{at}0.SelfAttention.o.weight", D, HEADS * size)
        if layer == 0:
            make.put(f"{at}0.SelfAttention.relative_attention_bias.weight", buckets, HEADS)
        for name in ("wi_0", "wi_1"):
            make.put(f"{at}1.DenseReluDense.{name}.weight", HIDDEN, D)
        make.put(f"{at}1.DenseReluDense.wo.weight", D, HIDDEN)
        for part in "01":
            make.put(f"{at}{part}.layer_norm.weight", D, mean=0.5)
    make.put("encoder.final_layer_norm.weight", D, mean=0.5)
    return make.state, {
        "model_type": "t5",
        "d_model": D,
        "d_kv": size,
        "d_ff": HIDDEN,
        "num_heads": HEADS,
        "num_layers": LAYERS,
        "vocab_size": WORDS,
        "feed_forward_proj": "gated-gelu",
        "relative_attention_num_buckets": buckets,
        "relative_attention_max_distance": 5,
        "is_encoder_decoder": True,
    }


def bloom() -> Made:
    make = Maker()
    make.put("transformer.word_embeddings.weight", WORDS, D)
    make.norm("transformer.word_embeddings_layernorm")
    for layer in range(LAYERS):
        at = f"transformer.h.{layer}."
        make.linear(f"{at}self_attention.query_key_value", 3 * D, D)
        make.linear(f"{at}self_attention.dense", D, D)
        make.linear(f"{at}mlp.dense_h_to_4h", 4 * D, D)
        make.linear(f"{at}mlp.dense_4h_to_h", D, 4 * D)
        make.norm(f"{at}input_layernorm")
        make.norm(f"{at}post_attention_layernorm")
    make.norm("transformer.ln_f")
    return make.state, {
        "model_type": "bloom",
        "hidden_size": D,
        "n_head": HEADS,
        "n_layer": LAYERS,
        "vocab_size": WORDS,
    }


def deberta() -> Made:
    make = Maker()
    make.put("deberta.embeddings.word_embeddings.weight", WORDS, D)
    make.norm("deberta.embeddings.LayerNorm")
    make.put("deberta.encoder.rel_embeddings.weight", 8, D)
    make.norm("deberta.encoder.LayerNorm")
    names = (
        *(f"attention.self.{name}_proj" for name in ("query", "key", "value")),
        *("attention.output.dense", "intermediate.dense", "output.dense"),
        *("attention.output.LayerNorm", "output.LayerNorm"),
    )
    for layer in range(LAYERS):
        transformer_layer(make, f"deberta.encoder.layer.{layer}.", names)
    return make.state, {
        "model_type": "deberta-v2",
        **SIZES,
        "relative_attention": True,
        "position_buckets": 4,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": "p2c|c2p",
        "position_biased_input": False,
    }


MORE = {
    "qwen3": qwen3,
    "gemma": gemma,
    "gemma2": gemma2,
    "gemma3": gemma3,
    "phi": phi,
    "phi3": phi3,
    "opt": opt,
    "gptj": gptj,
    "gpt_neo": gpt_neo,
    "mpnet": mpnet,
    "esm": esm,
    "modernbert": modernbert,
    "bart": bart,
    "whisper": whisper,
    "vit": vit,
    "t5": t5,
    "bloom": bloom,
    "deberta": deberta,
}
