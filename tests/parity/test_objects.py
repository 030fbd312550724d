"""Models of TransformerLens and of torch.nn in memory: every layer is the original's, to 1e-10 in
float64.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al

torch = pytest.importorskip("torch")

from double import in_double  # noqa: E402

pytestmark = pytest.mark.parity
IDS = np.random.default_rng(0).integers(0, 61, (2, 9))


def randomise(model, seed: int = 0):
    """All parameters random, also the biases and gains, which begin at 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for label, parameter in model.named_parameters():
            spread = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            is_gain = label.endswith((".w", "norm1.weight", "norm2.weight", "norm.weight"))
            parameter.copy_(1 + 0.3 * spread if is_gain else 0.35 * spread)
    return model


BASE = {
    "n_layers": 3,
    "d_model": 24,
    "n_ctx": 16,
    "d_head": 6,
    "n_heads": 4,
    "d_mlp": 40,
    "d_vocab": 61,
    "act_fn": "gelu_new",
}
TURNED = {"positional_embedding_type": "rotary"}
SANDWICH = {"normalization_type": "RMS", "use_normalization_before_and_after": True}
WINDOW = {
    "use_local_attn": True,
    "window_size": 3,
    "attn_types": ["local", "global", "local"],
}
LENS = {
    "plain": {},
    "folded": {"normalization_type": "LNPre", "act_fn": "gelu"},
    "attention only": {"attn_only": True, "normalization_type": None},
    "bidirectional": {"attention_dir": "bidirectional", "act_fn": "relu"},
    "rms rotary grouped gated": {
        "normalization_type": "RMS",
        **TURNED,
        "n_key_value_heads": 2,
        "gated_mlp": True,
        "act_fn": "silu",
        "final_rms": True,
    },
    "rms folded, neighbours, part": {
        "normalization_type": "RMSPre",
        **TURNED,
        "rotary_dim": 4,
        "rotary_adjacent_pairs": True,
        "rotary_base": 500,
    },
    "parallel": {"parallel_attn_mlp": True, **TURNED},
    "windows": {**WINDOW, **TURNED, "rotary_base_local": 50},
    "stretched": {
        **TURNED,
        "use_NTK_by_parts_rope": True,
        "NTK_by_parts_factor": 4.0,
        "NTK_original_ctx_len": 8,
    },
    "sandwich, cap, norms of queries": {
        **SANDWICH,
        "attn_scores_soft_cap": 1.5,
        "use_qk_norm": True,
        "n_key_value_heads": 4,
    },
    "scores by layer": {"scale_attn_by_inverse_layer_idx": True, "attn_scale": 3.0},
    "scores not divided": {"use_attn_scale": False, "final_rms": True},
    "norm of the embedding": {"post_embedding_ln": True, **TURNED},
}


@pytest.mark.parametrize("name", LENS)
def test_transformer_lens(name, capsys):
    lens = pytest.importorskip("transformer_lens")
    try:
        kind = lens.HookedTransformer  # TransformerLens 4 has it no more
    except (AttributeError, ImportError):
        pytest.skip("this TransformerLens has no HookedTransformer")
    with in_double():  # the angles too, which are in single precision otherwise
        config = lens.HookedTransformerConfig(
            **{**BASE, **LENS[name]}, dtype=torch.float64, device="cpu"
        )
        model = randomise(kind(config).double().eval())
        with torch.no_grad():
            _, cache = model.run_with_cache(torch.tensor(IDS))
            last = cache["resid_post", -1]
            if config.normalization_type is not None:
                last = model.ln_final(last)
    theirs = [cache["resid_pre", 0]] + [cache["resid_post", l] for l in range(2)] + [last]
    theirs = np.stack([one.numpy() for one in theirs], axis=1)
    looks = np.stack([cache["pattern", l].numpy() for l in range(3)], axis=1)
    for ours in (
        al.models.load(model),
        al.models.load(model.state_dict(), config=vars(model.cfg)),
    ):
        states, attention = ours.hidden_states(IDS), ours.attention(IDS)
        away = max(
            np.abs(states - theirs).max() / np.abs(theirs).max(), np.abs(attention - looks).max()
        )
        assert away < 1e-10
    with capsys.disabled():
        print(f"\n  TransformerLens, {name}: {away:.1e}", end="")


def test_a_model_with_folded_norms_is_the_same_model():
    """TransformerLens folds norms and centres matrices itself: what attention gives must stay."""
    lens = pytest.importorskip("transformer_lens")
    try:
        kind = lens.HookedTransformer
    except (AttributeError, ImportError):
        pytest.skip("this TransformerLens has no HookedTransformer")
    config = lens.HookedTransformerConfig(**BASE, dtype=torch.float64, device="cpu")
    model = randomise(kind(config).double().eval())
    before = al.models.load(model).attention(IDS)
    model.process_weights_()
    after = al.models.load(model)
    assert after.raw_config["normalization_type"] == "LNPre"
    assert np.abs(after.attention(IDS) - before).max() < 1e-10


KINDS = {
    "GPT2": {"n_embd": 24, "n_head": 4, "n_layer": 2, "n_positions": 32},
    "Llama": {
        "hidden_size": 24,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 40,
        "pad_token_id": None,
    },
    "GPTNeoX": {
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 40,
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_bridge_of_transformer_lens(kind, tmp_path):
    transformers = pytest.importorskip("transformers")
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError:
        pytest.skip("this TransformerLens has no TransformerBridge, or misses its dependencies")
    from tokenizers import Tokenizer, models

    sizes = {"vocab_size": 61, "bos_token_id": 1, "eos_token_id": 2, **KINDS[kind]}
    config = getattr(transformers, kind + "Config")(**sizes)
    name = {"GPT2": "GPT2LMHeadModel"}.get(kind, kind + "ForCausalLM")
    model = getattr(transformers, name)(config).eval()
    model.save_pretrained(tmp_path)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(61)}, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="w1", eos_token="w2", pad_token="w2", unk_token="w0"
    ).save_pretrained(tmp_path)
    bridge = TransformerBridge.boot_transformers(str(tmp_path), dtype=torch.float32)
    ours, expected = al.models.load(bridge), al.models.load(model)
    assert np.array_equal(ours.hidden_states(IDS), expected.hidden_states(IDS))
    _, cache = bridge.run_with_cache(torch.tensor(IDS))
    for layer in range(2):
        theirs = cache[f"blocks.{layer}.hook_in"].detach().numpy()
        away = np.abs(ours.hidden_states(IDS)[:, layer] - theirs).max()
        assert away < 1e-4 * np.abs(theirs).max()
    bridge.enable_compatibility_mode()
    with pytest.raises(TypeError, match="were changed"):
        al.models.load(bridge)


ENCODERS = {
    "after": {},
    "before": {"norm_first": True, "activation": "gelu"},
    "no biases": {"bias": False, "norm_first": True},
    "module": {"activation": torch.nn.GELU("tanh"), "layer_norm_eps": 1e-3},
}


@pytest.mark.parametrize("has_norm", [True, False])
@pytest.mark.parametrize("name", ENCODERS)
def test_torch_encoder(name, has_norm):
    layer = torch.nn.TransformerEncoderLayer(
        24, 4, 40, batch_first=True, dtype=torch.float64, **ENCODERS[name]
    )
    eps = ENCODERS[name].get("layer_norm_eps", 1e-5)
    norm = torch.nn.LayerNorm(24, eps=eps, dtype=torch.float64) if has_norm else None
    encoder = torch.nn.TransformerEncoder(layer, 3, norm=norm, enable_nested_tensor=False).eval()
    randomise(encoder)
    x = torch.tensor(np.random.default_rng(1).normal(size=(2, 7, 24)))
    hidden = torch.tensor([[0] * 7, [0] * 4 + [1] * 3]).bool()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        theirs, stream = [x], x
        with torch.no_grad():
            for one in encoder.layers:
                stream = one(stream, src_key_padding_mask=hidden)
                theirs.append(stream)
            theirs[-1] = encoder(x, src_key_padding_mask=hidden)
            alone = encoder.layers[0](x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    ours = al.models.load(encoder).hidden_states(x.numpy(), ~hidden.numpy())
    theirs = torch.stack(theirs, 1).numpy()
    assert np.abs(ours[0] - theirs[0]).max() < 1e-10
    assert np.abs(ours[1, :, :4] - theirs[1, :, :4]).max() < 1e-10
    one = al.models.load(encoder.layers[0])
    assert np.abs(one.hidden_states(x.numpy())[:, 1] - alone.numpy()).max() < 1e-10
