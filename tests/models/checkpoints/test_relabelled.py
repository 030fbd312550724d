"""A checkpoint that is not what its config says is refused with the culprit's name; what does not
matter is passed over.
"""

from __future__ import annotations

import importlib
import re

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel
from attnlab.models.catalog import catalog
from attnlab.models.checkpoints.config_keys import CHANGES, SAME

IDS = np.array([3, 1, 4, 1, 5])

INSIDE = {
    "bert": "bert.encoder.layer.1.attention.self.distance_embedding.weight",
    "albert": "encoder.albert_layer_groups.0.albert_layers.0.attention.q_norm.weight",
    "distilbert": "transformer.layer.0.adapter.weight",
    "gpt2": "h.1.crossattention.c_attn.weight",
    "llama": "model.layers.0.self_attn.q_norm.weight",
    "gpt_neox": "gpt_neox.layers.1.attention.query_layernorm.weight",
    "qwen3": "model.layers.1.self_attn.q_proj.more.weight",
    "gemma": "model.layers.1.pre_feedforward_layernorm.weight",
    "gemma2": "model.layers.0.self_attn.k_norm.weight",
    "gemma3": "model.layers.0.per_layer_projection.weight",
    "phi": "model.layers.0.post_attention_layernorm.weight",
    "phi3": "model.layers.1.self_attn.qkv_proj.bias",
    "opt": "model.decoder.layers.1.encoder_attn.q_proj.weight",
    "gptj": "transformer.h.0.attn.q_proj.bias_lora",
    "gpt_neo": "transformer.h.1.attn.attention.q_norm.weight",
    "mpnet": "mpnet.encoder.layer.0.attention.attn.rotary.weight",
    "esm": "esm.encoder.layer.1.crossattention.self.query.weight",
    "modernbert": "model.layers.0.attn_norm.weight",
    "bart": "model.encoder.layers.1.encoder_attn.q_proj.weight",
    "whisper": "model.encoder.layers.0.self_attn.k_proj.bias",
    "vit": "vit.encoder.layer.1.layer_scale1.lambda1",
    "t5": "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight",
    "bloom": "transformer.h.0.self_attention.q_layernorm.weight",
    "deberta": "deberta.encoder.layer.1.attention.self.pos_key_proj.weight",
    "hooked_transformer": "blocks.1.attn.q_norm.w",
    "torch_encoder": "layers.1.multihead_attn.in_proj_weight",
}

BESIDE = {
    "bert": ("bert.pooler.dense.weight", "bert.embeddings.position_ids", "cls.predictions.bias"),
    "albert": ("pooler.weight", "predictions.decoder.weight", "embeddings.position_ids"),
    "distilbert": ("vocab_layer_norm.weight", "classifier.weight"),
    "gpt2": ("h.0.attn.bias", "h.0.attn.masked_bias", "h.1.attn.bias", "lm_head.weight"),
    "llama": ("model.layers.1.self_attn.rotary_emb.inv_freq", "lm_head.weight"),
    "gpt_neox": (
        "gpt_neox.layers.0.attention.bias",
        "gpt_neox.layers.0.attention.masked_bias",
        "gpt_neox.layers.1.attention.rotary_emb.inv_freq",
        "embed_out.weight",
    ),
    **{
        family: ("lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq")
        for family in ("qwen3", "gemma", "gemma2", "gemma3", "phi", "phi3")
    },
    "opt": ("lm_head.weight", "model.decoder.version"),
    "mpnet": ("mpnet.pooler.dense.weight", "lm_head.dense.weight", "mpnet.embeddings.position_ids"),
    "esm": ("esm.contact_head.regression.weight", "lm_head.bias"),
    "modernbert": ("head.dense.weight", "decoder.bias"),
    "bart": (
        "final_logits_bias",
        "model.decoder.layers.0.self_attn.q_proj.weight",
        "model.decoder.embed_tokens.weight",
    ),
    "whisper": (
        "model.encoder.conv1.weight",
        "model.encoder.embed_positions.weight",
        "model.decoder.layers.0.self_attn.q_proj.weight",
        "proj_out.weight",
    ),
    "vit": (
        "vit.embeddings.cls_token",
        "vit.embeddings.patch_embeddings.projection.weight",
        "vit.pooler.dense.weight",
        "classifier.weight",
    ),
    "t5": ("decoder.block.0.layer.0.SelfAttention.q.weight", "lm_head.weight"),
    "bloom": ("lm_head.weight",),
    "deberta": (
        "pooler.dense.weight",
        "lm_predictions.lm_head.bias",
        "deberta.embeddings.position_ids",
    ),
    "hooked_transformer": (
        "unembed.W_U",
        "unembed.b_U",
        "blocks.0.attn.mask",
        "blocks.1.attn.IGNORE",
        "blocks.1.attn.rotary_cos",
    ),
    "torch_encoder": ("positions.weight",),
    "gptj": (
        "lm_head.weight",
        "lm_head.bias",
        "transformer.h.0.attn.bias",
        "transformer.h.1.attn.masked_bias",
    ),
    "gpt_neo": (
        "transformer.h.0.attn.attention.bias",
        "transformer.h.1.attn.attention.masked_bias",
        "lm_head.weight",
    ),
}

IGNORED = {
    "net_structure_type": 3, "gap_size": 7, "num_memory_blocks": 2, "layers_to_keep": [1], "output_past": True,
    "attention_dropout": 0.3, "initializer_range": 0.5, "tie_word_embeddings": True, "num_labels": 9, "temperature": 0.7,
    "bos_token_id": 1, "summary_type": "first", "problem_type": "regression", "use_cache": False, "pretraining_tp": 2,
    "reorder_and_upcast_attn": True, "final_logit_softcapping": 30.0, "sinusoidal_pos_embds": True, "transformers_version": "4.0",
    "chunk_size_feed_forward": 2, "gradient_checkpointing": True, "architectures": ["LlamaForCausalLM", "GPTNeoXModel", "MyBert"],
}  # fmt: skip


def load(family, extra=None, **changes):
    state, raw = tiny_models.MAKERS[family]()
    return al.models.load({**state, **(extra or {})}, config={**raw, **changes})


def read(model):
    return tiny_models.given(model, IDS)


def test_every_family_has_a_tensor_to_refuse_and_some_to_pass_over():
    assert set(INSIDE) == set(BESIDE) == set(tiny_models.MAKERS)


@pytest.mark.parametrize("family", INSIDE)
def test_a_tensor_inside_a_layer_that_nobody_reads_is_refused(family):
    with pytest.raises(
        BadModel,
        match=f"tensor '{INSIDE[family]}' inside a layer.*family {family} does not compute",
    ):
        load(family, {INSIDE[family]: np.ones(4)})


@pytest.mark.parametrize("family", tiny_models.MAKERS)
def test_an_unknown_tensor_in_any_part_of_a_layer_is_refused(family):
    """Beside every tensor of a layer stands another one."""
    state, _ = tiny_models.MAKERS[family]()
    parts = {
        re.sub(r"\d+", "0", parent): parent
        for name in state
        if re.search(r"\.\d+\.", f".{name}") and (parent := name.rpartition(".")[0])
    }
    assert len(parts) > 1
    for parent in parts.values():
        with pytest.raises(BadModel, match=re.escape(f"{parent}.unknown' inside a layer")):
            load(family, {f"{parent}.unknown": np.ones(4)})


@pytest.mark.parametrize("family", BESIDE)
def test_tensors_beside_the_layers_and_stored_tables_are_passed_over(family):
    found = load(family, {name: np.ones((4, 4)) for name in BESIDE[family]})
    assert np.array_equal(found.hidden_states(read(found)), load(family).hidden_states(read(found)))


@pytest.mark.parametrize("family", [name for name in tiny_models.MAKERS if name != "torch_encoder"])
def test_keys_that_change_nothing_are_passed_over(family):
    """The config of torch_encoder is written by hand, not by a library: it refuses unknown keys."""
    neutral = {key: values[0] if values else None for key, (_, values) in CHANGES.items()}
    reads = getattr(
        importlib.import_module(f"attnlab.models.checkpoints.families.{family}"), "READS", ()
    )
    found = load(
        family, **IGNORED, **{key: value for key, value in neutral.items() if key not in reads}
    )
    assert np.array_equal(found.hidden_states(read(found)), load(family).hidden_states(read(found)))


REFUSED = [
    ("llama", "residual_multiplier", 0.22), ("llama", "embedding_multiplier", 12.0), ("llama", "attention_multiplier", 0.015625),
    ("llama", "attn_logit_softcapping", 50.0), ("llama", "query_pre_attn_scalar", 256), ("llama", "partial_rotary_factor", 0.5),
    ("llama", "use_qk_norm", True), ("llama", "clip_qkv", 8.0), ("llama", "no_rope_layers", [1, 0]),
    ("llama", "is_causal", False),
    ("llama", "layer_types", ["full_attention", "chunked_attention"]), ("llama", "hidden_activation", "gelu"),
    ("llama", "rope_interleave", True), ("llama", "quantization_config", {"bits": 4}), ("llama", "use_parallel_residual", True),
    ("llama", "position_embedding_type", "alibi"), ("llama", "architectures", ["GemmaForCausalLM"]),
    ("llama", "hidden_activation", "silu"), ("llama", "use_rope", False), ("bert", "use_rope", True),
    ("llama", "softmax_scale", 0.1), ("llama", "attn_scale", 0.1), ("llama", "rotary_percentage", 0.25),
    ("llama", "rope_pct", 0.5),
    ("llama", "window_size", 256), ("llama", "sliding_window_size", 128), ("llama", "mrope_section", [16, 24, 24]),
    ("llama", "architectures", ["TFGemmaModel"]), ("llama", "architectures", ["FlaxGemmaForCausalLM"]),
    ("llama", "architectures", ["gemmaForCausalLM"]), ("llama", "architectures", ["gemmaforcausallm"]),
    ("bert", "architectures", ["LlamaModel", "TFMPNetModel"]),
    ("gpt_neox", "head_dim", 8), ("gpt_neox", "attention_window", [4]), ("gpt_neox", "use_parallel_residual", "no"),
    ("bert", "scale_attn_by_inverse_layer_idx", True), ("bert", "scale_attn_weights", False),
    ("gpt2", "add_cross_attention", True),
    ("gpt2", "multi_query", True), ("bert", "use_task_id", True), ("bert", "max_2d_position_embeddings", 1024),
    ("bert", "position_embedding_type", "relative_key"), ("bert", "pruned_heads", {"0": [1]}), ("bert", "is_causal", True),
    ("gemma2", "architectures", ["Gemma3ForCausalLM"]), ("qwen3", "architectures", ["Qwen3MoeForCausalLM"]),
    ("gemma", "architectures", ["PaliGemmaForConditionalGeneration", "Gemma2Model"]), ("gemma3", "attn_logit_softcapping", 50.0),
    ("gemma2", "use_bidirectional_attention", True), ("gemma3", "layer_types", ["full_attention", "linear_attention"]),
    ("gemma", "hidden_activation", "gelu"), ("gemma", "query_pre_attn_scalar", 16), ("qwen3", "num_experts", 8),
    ("phi", "architectures", ["Phi3ForCausalLM"]), ("phi3", "num_local_experts", 16), ("opt", "position_embedding_type", "rope"),
    ("albert", "position_embedding_type", "relative_key_query"), ("distilbert", "position_embedding_type", "relative_key"),
]  # fmt: skip


@pytest.mark.parametrize("family, key, value", REFUSED)
def test_a_key_that_changes_hidden_states_and_is_not_computed_is_refused(family, key, value):
    shown = str(value[-1] if key in ("layer_types", "architectures") else value)
    with pytest.raises(BadModel) as caught:
        load(family, **{key: value})
    assert f"{key} in the config is {shown!r}" in str(caught.value), caught.value
    assert "family" in str(caught.value)


@pytest.mark.parametrize("changes, culprit", [
    ({"architectures": "GemmaForCausalLM"}, "architectures in the config is 'GemmaForCausalLM'"),
    ({"auto_map": {"AutoModel": "modeling_gemma.GemmaModel"}}, "auto_map in the config is 'modeling_gemma.GemmaModel'"),
    ({"auto_map": {"AutoModel": ["owner/name--modeling.GemmaModel", None]}}, "auto_map in the config is 'owner/name--"),
    ({"rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]}}, "mrope_section in the config is"),
])  # fmt: skip
def test_a_class_is_recognised_wherever_it_is_named(changes, culprit):
    with pytest.raises(BadModel) as caught:
        load("llama", **changes)
    assert culprit in str(caught.value)


def test_neutral_values_and_classes_that_are_computed_pass():
    same = load("llama")
    found = load(
        "llama",
        use_rope=True,
        softmax_scale=same.config.head_size**-0.5,
        rope_pct=1.0,
        window_size=None,
        architectures="LlamaForCausalLM",
        auto_map={"AutoModel": "modeling_llama.LlamaModel", "x": [None, 3], "y": {}},
    )
    assert np.array_equal(found.hidden_states(IDS), same.hidden_states(IDS))


@pytest.mark.parametrize("family, own, foreign", [
    ("llama", "rms_norm_eps", "norm_eps"), ("bert", "layer_norm_eps", "layer_norm_epsilon"),
    ("gpt2", "activation_function", "hidden_act"), ("llama", "rope_theta", "rotary_emb_base"),
])  # fmt: skip
def test_a_number_under_the_name_of_another_family_is_not_lost(family, own, foreign):
    with pytest.raises(
        BadModel,
        match=f"{foreign} in the config is '0.5', but the family {family} calls this {own}",
    ):
        load(family, **{own: None, foreign: 0.5})


def test_rotary_tables_that_differ_among_layers_or_contradict_each_other_are_refused():
    both = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    with pytest.raises(BadModel, match="must be a table, one for all layers"):
        load("llama", rope_parameters=both)
    with pytest.raises(BadModel, match="rope_parameters and rope_scaling in the config must agree"):
        load("llama", rope_parameters={"rope_theta": 5.0}, rope_scaling={"rope_theta": 6.0})
    with pytest.raises(BadModel, match="partial_rotary_factor in the config is '0.5'"):
        load("llama", rope_parameters={"rope_theta": 5.0, "partial_rotary_factor": 0.5})


def test_a_config_that_is_wrong_about_biases_is_refused():
    bias = {"model.layers.0.self_attn.q_proj.bias": np.ones(12)}
    with pytest.raises(
        BadModel,
        match=(
            "attention_bias in the config is False, but the checkpoint has the tensor .*q_proj.bias"
        ),
    ):
        load("llama", bias, attention_bias=False)
    with pytest.raises(
        BadModel,
        match="mlp_bias in the config is True, but the checkpoint does not have .*up_proj.bias",
    ):
        load("llama", mlp_bias=True)
    assert (
        load("llama", bias).parts.layers[0].attention.query_bias is not None
    )  # says nothing: the tensors decide
    assert load("llama", bias, model_type="qwen2", attention_bias=False)  # does not read the key


@pytest.mark.parametrize("changes, window", [
    ({"sliding_window": 4}, 4), ({"sliding_window": 4, "model_type": "mistral"}, 4),
    # which transformers does not read for it
    ({"sliding_window": 4, "model_type": "mistral", "use_sliding_window": False}, 4),
    ({"model_type": "mistral"}, 4096), ({"model_type": "mistral", "sliding_window": None}, None),
    ({"sliding_window": 4, "use_sliding_window": False}, None), ({"sliding_window": 4, "model_type": "qwen2"}, None),
    ({"sliding_window": 4, "model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 1}, 4),
    # from layer 28 on
    ({"sliding_window": 4, "model_type": "qwen2", "use_sliding_window": True}, None),
    ({"sliding_window": 4, "layer_types": ["full_attention", "sliding_attention"]}, 4),
    ({"sliding_window": 4, "layer_types": ["full_attention", "full_attention"]}, None),
])  # fmt: skip
def test_a_sliding_window_is_honoured_whatever_the_model_type(changes, window):
    m = load("llama", **changes)
    assert m.config.window == window and m.config.length == 10
    assert np.array_equal(m.hidden_states(IDS[:4]), load("llama").hidden_states(IDS[:4]))
    if window == 4:
        windows = [layer.attention.window for layer in m.parts.layers]
        assert windows in ([4, 4], [None, 4])
        for width, attention in zip(windows, m.attention(IDS), strict=True):
            far = np.arange(5)[:, None] - np.arange(5) >= (width or 5)
            assert (attention[:, far] == 0).all() and (
                attention[:, ~far & np.tri(5, dtype=bool)] > 0
            ).all()
        with pytest.raises(ValueError, match="has places for 10 tokens"):
            m.hidden_states(np.ones(11, dtype=int))
    else:
        assert np.array_equal(m.hidden_states(IDS), load("llama").hidden_states(IDS))


@pytest.mark.parametrize("family", ["bert", "gpt2", "gpt_neox"])
def test_other_families_honour_a_sliding_window_too(family):
    with pytest.raises(ValueError, match="sliding window of 3 tokens is not computed here"):
        load(family, sliding_window=3).hidden_states(IDS)


@pytest.mark.parametrize("family, name", [
    ("qwen3", "Qwen3ForCausalLM"), ("gemma", "GemmaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"), ("gemma3", "Gemma3TextModel"),
    ("gemma3", "Gemma3ForCausalLM"), ("phi", "PhiForCausalLM"), ("phi3", "Phi3ForCausalLM"), ("opt", "OPTForCausalLM"),
    ("mpnet", "MPNetModel"), ("esm", "EsmForMaskedLM"), ("modernbert", "ModernBertModel"),
    ("gptj", "GPTJForCausalLM"), ("gpt_neo", "GPTNeoForCausalLM"), ("bart", "BartForConditionalGeneration"),
    ("whisper", "WhisperForConditionalGeneration"), ("vit", "ViTForImageClassification"), ("t5", "T5EncoderModel"),
    ("bloom", "BloomForCausalLM"), ("deberta", "DebertaV2ForMaskedLM"),
])  # fmt: skip
def test_the_classes_of_a_family_pass(family, name):
    found = load(
        family, architectures=[name], auto_map={"AutoModel": f"owner/repository--modeling.{name}"}
    )
    assert np.array_equal(found.hidden_states(read(found)), load(family).hidden_states(read(found)))


@pytest.mark.parametrize("family, changes, culprit", [
    ("opt", {"word_embed_proj_dim": 6}, "word_embed_proj_dim in the config must be hidden_size = 12, found 6"),
    ("phi3", {"rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [2.0]}}, "rope_type .* is 'longrope'"),
    ("gptj", {"rotary_dim": 64}, "rotary_dim in the config must be even and at most the head size 4, found 64"),
    ("mpnet", {"relative_attention_num_buckets": 16}, "relative_attention_num_buckets in the config is '16'; only 32"),
    ("esm", {"is_folding_model": True}, "is_folding_model in the config is 'True'"),
    ("esm", {"emb_layer_norm_before": True}, "must have the tensor 'esm.embeddings.layer_norm.weight'"),
    ("modernbert", {"norm_bias": True}, "norm_bias in the config is True, but the checkpoint does not have"),
    ("gpt_neo", {"attention_types": [[["global"], 3]]}, "attention_types .* in the config must name .* each of the 2 layers"),
    ("gpt_neo", {"attention_types": [[["global", "sparse"], 1]]}, "attention_types .* in the config must name global or local"),
    ("gpt_neo", {"attention_layers": ["global", "sparse"]}, "attention_layers.* in the config must name global or local"),
    ("bart", {"num_hidden_layers": 3}, "num_hidden_layers in the config is '3', but encoder_layers is '2'"),
    ("whisper", {"encoder_layers": 3}, "must have the tensor 'model.encoder.layers.2"),
    ("vit", {"qkv_bias": False}, "tensor 'vit.encoder.layer.0.attention.attention.key.bias' and 5 more inside a layer"),
    ("vit", {"head_dim": 2}, "head_dim in the config is '2'"),
    ("t5", {"feed_forward_proj": "gated-tanh"}, "feed_forward_proj in the config is .gated-tanh.; known"),
    ("t5", {"is_decoder": True}, "is_decoder in the config is 'True'"),
    ("t5", {"relative_attention_max_distance": 2}, "relative_attention_max_distance in the config must be a whole number from 3"),
    ("bloom", {"slow_but_exact": True, "pretraining_tp": 2}, "slow_but_exact in the config is 'True'"),
    ("bloom", {"n_embed": 24}, "n_embed in the config is '24', but hidden_size is '12'"),
    ("deberta", {"conv_kernel_size": 3}, "conv_kernel_size in the config is '3'; only 0"),
    ("deberta", {"embedding_size": 6}, "embedding_size in the config is '6'; only 12"),
    ("deberta", {"position_buckets": 2}, "must have shape"),
    ("deberta", {"max_relative_positions": 3}, "position_buckets in the config must be at least 4 and at most"),
    ("deberta", {"pos_att_type": [1]}, "pos_att_type in the config must be words"),
    ("deberta", {"norm_rel_ebd": 3}, "norm_rel_ebd in the config must be a word"),
    ("deberta", {"model_type": "deberta"}, "model_type 'deberta', which no family here can read"),
    ("bloom", {"alibi": False}, "alibi in the config is 'False'"),
    ("gemma3", {"rope_parameters": {"rope_theta": 5.0}}, "rope_parameters in the config must hold a table for full_attention"),
    ("gemma3", {"layer_types": ["sliding_attention"]}, "layer_types in the config must name the attention of 2 layers, found 1"),
    ("phi", {"qk_layernorm": False}, "tensor 'model.layers.0.self_attn.k_layernorm.bias' and 7 more inside a layer"),
    ("qwen3", {"attention_bias": True}, "attention_bias in the config is True, but the checkpoint does not have"),
])  # fmt: skip
def test_what_a_new_family_does_not_compute_is_refused(family, changes, culprit):
    with pytest.raises(BadModel, match=culprit):
        load(family, **changes)


def test_stored_angles_of_esm_must_be_those_of_the_config():
    name = "esm.encoder.layer.1.attention.self.rotary_embeddings.inv_freq"
    right = 1e4 ** (-np.arange(0, 4, 2) / 4)
    found = load("esm", {name: right.astype(np.float16)})
    assert np.array_equal(found.hidden_states(IDS), load("esm").hidden_states(IDS))
    with pytest.raises(BadModel, match="inv_freq' must hold the angles of rope_theta = 10000 in"):
        load("esm", {name: 1.5e4 ** (-np.arange(0, 4, 2) / 4)})


@pytest.mark.parametrize("family, alias, own", [
    ("gpt2", "num_attention_heads", "n_head"), ("gptj", "hidden_size", "n_embd"), ("gpt_neo", "num_hidden_layers", "num_layers"),
    ("distilbert", "num_attention_heads", "n_heads"), ("t5", "head_dim", "d_kv"), ("bart", "hidden_size", "d_model"),
])  # fmt: skip
def test_a_number_under_its_other_name_is_read_and_must_agree(family, alias, own):
    state, raw = tiny_models.MAKERS[family]()
    value = raw.pop(own)
    found = al.models.load(state, config={**raw, alias: value})
    assert np.array_equal(found.hidden_states(IDS), load(family).hidden_states(IDS))
    with pytest.raises(BadModel, match=f"{alias} in the config is '{value + 1}', but {own} is"):
        load(family, **{alias: value + 1})


def test_modernbert_reads_half_a_window_first():
    found = load("modernbert", local_attention=128, sliding_window=1)
    assert [layer.attention.window for layer in found.parts.layers] == [None, 2]


def test_gpt_neo_reads_the_words_of_its_layers_first():
    layers = [
        layer.attention.window
        for layer in load("gpt_neo", attention_layers=["local", "global"]).parts.layers
    ]
    assert layers == [3, None]


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_two_copies_of_an_embedding_must_be_the_same(family):
    state, _ = tiny_models.MAKERS[family]()
    shared = next(name for name in state if name.endswith("shared.weight"))
    copy = shared.replace("shared", "encoder.embed_tokens")
    found = load(family, {copy: state[shared]})
    assert np.array_equal(found.hidden_states(IDS), load(family).hidden_states(IDS))
    with pytest.raises(BadModel, match="encoder.embed_tokens.weight' must be the same as"):
        load(family, {copy: state[shared] + 1})
    raw = tiny_models.MAKERS[family]()[1]
    alone = {name.replace("shared", "encoder.embed_tokens"): state[name] for name in state}
    found = al.models.load(alone, config=raw)  # an encoder may be stored without the shared name
    assert np.array_equal(found.hidden_states(IDS), load(family).hidden_states(IDS))


def test_no_message_advises_to_relabel():
    with pytest.raises(BadModel) as caught:
        load("llama", model_type="olmo2")
    assert "needs its own family" in str(
        caught.value
    ) and "can be loaded with that model_type" not in str(caught.value)


def test_embedding_size_is_read_for_electra_only():
    assert load("bert", embedding_size=6).config.d == 12


@pytest.mark.parametrize("name", catalog.known_models)
def test_every_model_of_the_catalog_loads(name):
    if not catalog.is_cached(name):
        pytest.skip(f"{name} has not been fetched")
    assert al.models.load(name).config.layers == catalog.known_models[name].layers


ODD = [
    [], {}, "x", "", -1, 0, 1, 2, 0.5, float("inf"), float("nan"), 10**400, -(10**400), None, True, False, [1], ["x"], [[1]],
    ["full_attention", 3], {"a": {}}, {"rope_type": []}, {"rope_theta": "x"}, {"factor": 10**400, "rope_type": "linear"},
]  # fmt: skip

KEYS = (
    *CHANGES, *(key for names in SAME for key in names), "sliding_window", "use_sliding_window", "layer_types",
    "max_window_layers", "use_rope", "softmax_scale", "auto_map",
    "head_dim", "rotary_dim", "query_pre_attn_scalar", "attention_multiplier", "is_causal", "no_rope_layers",
    "no_rope_layer_interval", "architectures", "rope_parameters", "rope_scaling", "model_type", "is_decoder", "rope_pairs",
    "sliding_window_pattern", "word_embed_proj_dim", "enable_bias", "layer_norm_elementwise_affine", "rotary_dim",
    "position_embedding_type", "attention_bias", "mlp_bias", "embedding_size", "type_vocab_size", "pad_token_id",
    "num_key_value_heads", "num_hidden_groups", "inner_group_num", "vocab_size", "num_hidden_layers", "num_attention_heads",
)  # fmt: skip


def outcome(family, key, value):
    """ "" where a checkpoint with this key is computed, else the sentence that refuses it; anything
    else is raised.
    """
    try:
        found = load(family, **{key: value})
        found.hidden_states(tiny_models.given(found, [1]))
    except BadModel as error:
        return str(error)
    return ""


def test_odd_values_of_keys_are_computed_or_refused_in_a_sentence():
    rng = np.random.default_rng(0)
    cases = [
        (
            str(rng.choice(list(tiny_models.MAKERS))),
            str(rng.choice(KEYS)),
            ODD[rng.integers(len(ODD))],
        )
        for _ in range(400)
    ]
    found = [outcome(*case) for case in cases]
    assert 100 < sum(map(bool, found)) < 390  # some of each


@pytest.mark.slow
def test_every_odd_value_of_every_key_is_computed_or_refused_in_a_sentence():
    found = [
        outcome(family, key, value)
        for family in tiny_models.MAKERS
        for key in KEYS
        for value in ODD
    ]
    assert len(found) > 10_000 and 0.3 < np.mean([bool(one) for one in found]) < 0.9
