"""Tiny random checkpoints of every family, made by the original implementation itself."""

from __future__ import annotations

from typing import Any

import torch
import transformers

WIDE = dict(
    vocab_size=61, hidden_size=24, num_attention_heads=4, num_hidden_layers=3, intermediate_size=40, max_position_embeddings=32
)  # fmt: skip
LLAMA = {
    **WIDE,
    "num_key_value_heads": 2,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
STRETCHED = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
HALF = {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5}
GPT2 = dict(
    vocab_size=61, n_embd=24, n_head=4, n_layer=3, n_positions=32, bos_token_id=1, eos_token_id=2
)
WIDE_HEADS = {**LLAMA, "head_dim": 10}
GEMMA = {**LLAMA, "head_dim": 10, "pad_token_id": 0}
TURNED = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 700.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}
OPT = {**{key: value for key, value in WIDE.items() if key != "intermediate_size"}, "ffn_dim": 40}
NEO = dict(
    vocab_size=61,
    hidden_size=24,
    num_heads=4,
    num_layers=3,
    max_position_embeddings=32,
    intermediate_size=40,
)
ESM = {"pad_token_id": 1, "mask_token_id": 7, "layer_norm_eps": 1e-5}
MODERN = {
    **WIDE,
    "num_hidden_layers": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}
NEOX = {**WIDE, "hidden_size": 32}
DISTIL = dict(
    vocab_size=61, dim=24, n_heads=4, n_layers=3, hidden_dim=40, max_position_embeddings=32
)

ENCODER = dict(encoder_layers=3, encoder_attention_heads=4, encoder_ffn_dim=40, decoder_layers=1, decoder_attention_heads=4,
               decoder_ffn_dim=40, d_model=24, vocab_size=61)  # fmt: skip
BART = {**ENCODER, "max_position_embeddings": 32}
MARIAN = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
WHISPER = {**ENCODER, "num_mel_bins": 8, "max_source_positions": 11, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
           "decoder_start_token_id": 1}  # fmt: skip
T5 = dict(vocab_size=61, d_model=24, d_kv=5, d_ff=40, num_layers=3, num_decoder_layers=1, num_heads=4,
          relative_attention_num_buckets=8, relative_attention_max_distance=10)  # fmt: skip
DEBERTA = {
    **WIDE,
    "relative_attention": True,
    "position_buckets": 6,
    "pos_att_type": ["p2c", "c2p"],
}
BLOOM = dict(vocab_size=61, hidden_size=24, n_head=4, n_layer=3)
VIT = {**{key: WIDE[key] for key in ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")},
       "image_size": [8, 20], "patch_size": 4, "num_channels": 2}  # fmt: skip

CHECKPOINTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", WIDE),
    "bert gelu_new": ("Bert", {**WIDE, "hidden_act": "gelu_new"}),
    "bert relu": ("Bert", {**WIDE, "hidden_act": "relu"}),
    "albert": ("Albert", {**WIDE, "embedding_size": 12}),
    "albert gelu": ("Albert", {**WIDE, "embedding_size": 12, "hidden_act": "gelu"}),
    "albert two groups": ("Albert", {**WIDE, "embedding_size": 12, "num_hidden_layers": 4, "num_hidden_groups": 2}),
    "distilbert": ("DistilBert", DISTIL),
    "distilbert relu": ("DistilBert", {**DISTIL, "activation": "relu"}),
    "roberta": ("Roberta", {**WIDE, "pad_token_id": 1}),
    "xlm-roberta": ("XLMRoberta", {**WIDE, "pad_token_id": 1}),
    "camembert": ("Camembert", {**WIDE, "pad_token_id": 1}),
    "electra": ("Electra", {**WIDE, "embedding_size": 24}),
    "electra narrow": ("Electra", {**WIDE, "embedding_size": 12}),
    "gpt2": ("GPT2", GPT2),
    "gpt2 gelu": ("GPT2", {**GPT2, "activation_function": "gelu", "n_inner": 40}),
    "llama": ("Llama", LLAMA),
    "llama wide heads": ("Llama", {**LLAMA, "head_dim": 10, "num_key_value_heads": 1}),
    "llama biases": ("Llama", {**LLAMA, "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
    "llama stretched": ("Llama", {**LLAMA, "rope_parameters": STRETCHED}),
    "gpt2 by layer": ("GPT2", {**GPT2, "scale_attn_by_inverse_layer_idx": True}),
    "gpt2 unscaled": ("GPT2", {**GPT2, "scale_attn_weights": False}),
    "mistral": ("Mistral", {**LLAMA, "sliding_window": 32}),
    "mistral narrow": ("Mistral", {**LLAMA, "sliding_window": 4}),
    "qwen2 narrow": ("Qwen2", {**LLAMA, "sliding_window": 4, "use_sliding_window": True, "max_window_layers": 1}),
    "qwen2": ("Qwen2", LLAMA),
    "qwen3": ("Qwen3", WIDE_HEADS),
    "qwen3 narrow": ("Qwen3", {**WIDE_HEADS, "sliding_window": 4, "use_sliding_window": True, "max_window_layers": 1}),
    "qwen3 biases": ("Qwen3", {**WIDE_HEADS, "attention_bias": True}),
    "gemma": ("Gemma", GEMMA),
    "gemma gelu": ("Gemma", {**GEMMA, "hidden_act": "gelu"}),
    "gemma2": ("Gemma2", {**GEMMA, "query_pre_attn_scalar": 7, "attn_logit_softcapping": 2.0, "sliding_window": 4}),
    "gemma2 without cap": ("Gemma2", {**GEMMA, "attn_logit_softcapping": None, "layer_types": 3 * ["full_attention"]}),
    "gemma3": ("Gemma3Text", {**GEMMA, "query_pre_attn_scalar": 7, "sliding_window": 4, "sliding_window_pattern": 2}),
    "gemma3 turned": ("Gemma3Text", {**GEMMA, "sliding_window": 4, "rope_parameters": TURNED}),
    "phi": ("Phi", {**WIDE, "hidden_size": 32}),
    "phi normed": ("Phi", {**WIDE, "hidden_size": 32, "qk_layernorm": True, "num_key_value_heads": 2}),
    "phi3": ("Phi3", LLAMA),
    "phi3 narrow": ("Phi3", {**LLAMA, "sliding_window": 4, "hidden_size": 32, "rope_parameters": HALF}),
    "opt": ("OPT", OPT),
    "opt post-norm": ("OPT", {**OPT, "do_layer_norm_before": False, "activation_function": "gelu"}),
    "opt without biases": ("OPT", {**OPT, "enable_bias": False, "layer_norm_elementwise_affine": False}),
    "gptj": ("GPTJ", {**GPT2, "rotary_dim": 4}),
    "gpt_neo": ("GPTNeo", {**NEO, "window_size": 4, "attention_types": [[["global", "local", "local"], 1]]}),
    "gpt_neo global": ("GPTNeo", {**NEO, "attention_types": [[["global"], 3]], "activation_function": "relu"}),
    "mpnet": ("MPNet", {**WIDE, "pad_token_id": 1}),
    "esm": ("Esm", {**WIDE, **ESM, "position_embedding_type": "rotary", "token_dropout": True}),
    "esm1": ("Esm", {**WIDE, **ESM, "emb_layer_norm_before": True}),
    "modernbert": ("ModernBert", {**MODERN, "local_attention": 6}),
    "modernbert biases": ("ModernBert", {**MODERN, "attention_bias": True, "mlp_bias": True, "norm_bias": True,
                                         "hidden_activation": "silu"}),
    "gpt_neox": ("GPTNeoX", NEOX),
    "gpt_neox in turn": ("GPTNeoX", {**NEOX, "use_parallel_residual": False, "hidden_act": "gelu_new"}),
    "vit": ("ViT", VIT),
    "vit without biases": ("ViT", {**VIT, "qkv_bias": False, "hidden_act": "gelu_new", "layer_norm_eps": 1e-3}),
    "whisper": ("Whisper", WHISPER),
    "whisper relu": ("Whisper", {**WHISPER, "activation_function": "relu", "scale_embedding": True}),
    "t5": ("T5", T5),
    "t5 gated": ("T5", {**T5, "feed_forward_proj": "gated-gelu", "relative_attention_num_buckets": 12}),
    "mt5": ("MT5", T5),
    "umt5": ("UMT5", {**T5, "feed_forward_proj": "gated-silu"}),
    "bart": ("Bart", BART),
    "bart scaled": ("Bart", {**BART, "scale_embedding": True, "activation_function": "relu"}),
    "mbart": ("MBart", BART),
    "mbart scaled": ("MBart", {**BART, "scale_embedding": True, "activation_function": "relu"}),
    "pegasus": ("Pegasus", {**BART, "scale_embedding": True}),
    "marian": ("Marian", {**BART, **MARIAN, "scale_embedding": True, "activation_function": "swish"}),
    "marian unshared": ("Marian", {**BART, **MARIAN, "share_encoder_decoder_embeddings": False}),
    "bloom": ("Bloom", BLOOM),
    "bloom normed": ("Bloom", {**BLOOM, "n_head": 6, "apply_residual_connection_post_layernorm": True}),
    "deberta": ("DebertaV2", {**DEBERTA, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}),
    "deberta unshared": ("DebertaV2", {**DEBERTA, "pos_att_type": "c2p", "type_vocab_size": 2, "position_buckets": -1}),
    "deberta p2c": ("DebertaV2", {**DEBERTA, "pos_att_type": ["p2c"], "max_relative_positions": 7}),
    "deberta plain": ("DebertaV2", {**DEBERTA, "relative_attention": False}),
    "gpt_neox half rotated": ("GPTNeoX", {**NEOX, "rope_parameters": HALF}),
}  # fmt: skip


def make(name: str, seed: int = 0) -> Any:
    """A model in evaluation mode, float32, whose parameters are all random."""
    return make_of(*CHECKPOINTS[name], seed=seed)


def make_of(kind: str, sizes: dict[str, Any], seed: int = 0) -> Any:
    """A model of that class, in evaluation mode, whose parameters are all random."""
    config = getattr(transformers, kind + "Config")(**sizes, attn_implementation="eager")
    model = getattr(transformers, kind + "Model")(config).eval()
    fill(model, seed)
    return model


def fill(model: Any, seed: int = 0) -> None:
    """Make all parameters random: biases and gains too, which start at 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for label, parameter in model.named_parameters():
            if not parameter.requires_grad:  # a table of sines
                continue
            spread = torch.randn(parameter.shape, generator=generator)
            is_gain = parameter.ndim == 1 and label.endswith("weight")
            parameter.copy_(1 + 0.3 * spread if is_gain else 0.35 * spread)
