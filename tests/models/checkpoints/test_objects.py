"""State dicts and models of TransformerLens and torch.nn: the same model in the layout of another
family, and refusals by name.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel
from attnlab.models.checkpoints.objects import describe_object, unwrap_names
from tiny_maker import HEADS, LAYERS, D
from tiny_objects import SIZE, hooked_transformer, torch_encoder

IDS = [3, 17, 5, 5, 0, 11, 8]


def as_gpt2(state):
    """The same numbers in the layout of GPT-2: (in, out), queries, keys and values side by side."""
    found = {"wte.weight": state["embed.W_E"], "wpe.weight": state["pos_embed.W_pos"]}
    found |= {f"ln_f.{a}": state[f"ln_final.{b}"] for a, b in (("weight", "w"), ("bias", "b"))}
    for l in range(LAYERS):
        of, at = f"h.{l}.", f"blocks.{l}."
        found |= {
            f"{of}ln_{i}.{a}": state[f"{at}ln{i}.{b}"]
            for i in (1, 2)
            for a, b in (("weight", "w"), ("bias", "b"))
        }
        joined = [np.concatenate(list(state[f"{at}attn.W_{name}"]), axis=1) for name in "QKV"]
        found[of + "attn.c_attn.weight"] = np.concatenate(joined, axis=1)
        found[of + "attn.c_attn.bias"] = np.concatenate(
            [state[f"{at}attn.b_{name}"].reshape(-1) for name in "QKV"]
        )
        found[of + "attn.c_proj.weight"] = state[at + "attn.W_O"].reshape(D, D)
        found[of + "attn.c_proj.bias"] = state[at + "attn.b_O"]
        for a, b in (("c_fc", "in"), ("c_proj", "out")):
            found[f"{of}mlp.{a}.weight"] = state[f"{at}mlp.W_{b}"]
            found[f"{of}mlp.{a}.bias"] = state[f"{at}mlp.b_{b}"]
    return found


def test_hooked_transformer_is_gpt2_in_another_layout():
    state, raw = hooked_transformer()
    theirs = al.models.load(as_gpt2(state), config=tiny_models.gpt2()[1])
    ours = al.models.load(state, config=raw)
    assert np.allclose(ours.hidden_states(IDS), theirs.hidden_states(IDS), rtol=1e-12, atol=1e-12)
    for name in ("Q", "K", "full_V"):
        assert np.allclose(getattr(ours.weights(1), name), getattr(theirs.weights(1), name))


def test_a_folded_norm_has_gain_one():
    state, raw = hooked_transformer()
    ones = {
        name: np.ones(D) if name.endswith(".w") else np.zeros(D)
        for name in state
        if ".ln" in name or name.startswith("ln_final")
    }
    plain = al.models.load(state | ones, config=raw)
    folded = al.models.load(*hooked_transformer(normalization_type="LNPre"))
    folded_state = {name: array for name, array in state.items() if name not in ones}
    folded = al.models.load(folded_state, config={**raw, "normalization_type": "LNPre"})
    assert np.allclose(folded.hidden_states(IDS), plain.hidden_states(IDS), rtol=1e-13)


def test_the_inner_bias_of_a_gate_is_added_after_the_product():
    state, raw = hooked_transformer(gated_mlp=True, act_fn="relu")
    m = al.models.load(state, config=raw)
    part, x = m.parts.layers[0].feedforward, np.random.default_rng(0).normal(size=D)
    W = {name: state[f"blocks.0.mlp.{name}"].astype(float) for name in ("W_in", "W_gate", "W_out")}
    inner = np.maximum(x @ W["W_gate"], 0) * (x @ W["W_in"]) + state["blocks.0.mlp.b_in"]
    expected = inner @ W["W_out"] + state["blocks.0.mlp.b_out"]
    from attnlab.models.checkpoints.forward import feedforward

    assert np.allclose(feedforward(part, x), expected, rtol=1e-5)


VARIANTS = {
    "grouped": {"n_key_value_heads": 1},
    "attn_only": {"attn_only": True},
    "sandwich": {"normalization_type": "RMS", "use_normalization_before_and_after": True},
    "no norms": {"normalization_type": None},
    "rotary": {"positional_embedding_type": "rotary", "rotary_dim": 2, "parallel_attn_mlp": True},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_settings_are_computed_and_change_the_model(name):
    state, raw = hooked_transformer(**VARIANTS[name])
    m = al.models.load(state, config=raw)
    assert m.hidden_states(IDS).shape == (3, 7, D)
    usual = al.models.load(*hooked_transformer())
    assert not np.allclose(m.hidden_states(IDS)[1:], usual.hidden_states(IDS)[1:], rtol=1e-2)
    table = al.models.spectra(m, null=5)
    assert len(table) == LAYERS * HEADS
    data = al.models.sentence(m, ids=IDS, only=["real", "no_mlp", "random"])
    x = data["x"].sel(variant="real")
    assert np.array_equal(x, m.hidden_states(IDS))
    if name == "attn_only":
        assert np.array_equal(x, data["x"].sel(variant="no_mlp"))


REFUSED = {
    "positional_embedding_type": "alibi",
    "normalization_type": "BN",
    "act_fn": "solu_ln",
    "load_in_4bit": True,
    "num_experts": 4,
    "attention_dir": "both",
    "post_embedding_ln": True,
    "use_normalization_before_and_after": True,
    "n_key_value_heads": 2,
    "d_head": None,
}


@pytest.mark.parametrize("key", REFUSED)
def test_a_setting_that_is_not_computed_is_refused_by_name(key):
    state, raw = hooked_transformer()
    with pytest.raises(BadModel, match=key):
        al.models.load(state, config={**raw, key: REFUSED[key]})


def test_local_attention_needs_the_kind_of_each_layer():
    state, raw = hooked_transformer()
    local = {**raw, "use_local_attn": True, "window_size": 2}
    for changes in (
        {"attn_types": ["local"]},
        {"attn_types": ["local", "wide"]},
        {"attn_types": ["local", "global"], "attention_dir": "bidirectional"},
    ):
        with pytest.raises(BadModel, match=r"attn_types|use_local_attn"):
            al.models.load(state, config={**local, **changes})
    m = al.models.load(state, config={**local, "attn_types": ["global", "local"]})
    assert [layer.attention.window for layer in m.parts.layers] == [None, 2]


def test_a_tensor_that_nobody_reads_is_refused():
    state, raw = hooked_transformer()
    with pytest.raises(BadModel, match=r"'blocks.1.attn.q_norm.w' inside a layer"):
        al.models.load(state | {"blocks.1.attn.q_norm.w": np.ones(SIZE)}, config=raw)
    state, raw = torch_encoder()
    with pytest.raises(BadModel, match=r"'layers.0.self_attn.bias_k' inside a layer"):
        al.models.load(state | {"layers.0.self_attn.bias_k": np.ones((1, 1, D))}, config=raw)


class HookedTransformer:
    """What a model of TransformerLens offers."""

    def __init__(self):
        self.state, raw = hooked_transformer()
        del raw["model_type"]
        self.cfg, self.blocks = SimpleNamespace(**raw, dtype=object()), [1, 2]

    def state_dict(self):
        return self.state


class HookedEncoder(HookedTransformer):
    """A subclass keeps the layout."""


def test_a_hooked_transformer_is_known_by_its_class():
    expected = al.models.load(*hooked_transformer()).hidden_states(IDS)
    for kind in (HookedTransformer, HookedEncoder):
        assert np.array_equal(al.models.load(kind()).hidden_states(IDS), expected)
    assert "dtype" not in describe_object(HookedTransformer())[1]
    encoder = type("HookedEncoder", (), {"cfg": 1, "blocks": 1, "state_dict": dict})()
    with pytest.raises(TypeError, match="only HookedTransformer is read here, got HookedEncoder"):
        al.models.load(encoder)


def test_a_bridge_gives_the_model_that_it_wraps():
    """In a bridge a module M has its tensors below M._original_component, and copies beside it."""
    state, raw = tiny_models.gpt2()
    inside = {"h.0", "h.0.attn", "h.0.ln_1", "wte"}
    wrapped = {}
    for name, array in state.items():
        words = name.split(".")
        parts = []
        for at, word in enumerate(words):
            parts.append(word)
            if ".".join(words[: at + 1]) in inside:
                parts.append("_original_component")
        wrapped[".".join(parts)] = array
    at = "h.0._original_component.attn"
    assert f"{at}._original_component.c_attn.weight" in wrapped
    wrapped |= {f"{at}.q._original_component.weight": np.ones(3), "h.0.ln1.weight": np.ones(2)}
    assert set(unwrap_names(wrapped)) == set(state)
    config = SimpleNamespace(to_dict=lambda: raw)
    original = SimpleNamespace(config=config, state_dict=lambda: wrapped)
    bridge = SimpleNamespace(original_model=original, _weights_processed=False, state_dict=dict)
    expected = al.models.load(state, config=raw).hidden_states(IDS)
    assert np.array_equal(al.models.load(bridge).hidden_states(IDS), expected)
    bridge._weights_processed = True
    with pytest.raises(TypeError, match="weights of this TransformerBridge were changed"):
        al.models.load(bridge)


def test_a_part_of_a_model_says_that_the_model_must_be_given():
    """Also one with a config, as the encoder of BERT has it."""
    for members in ({}, {"config": SimpleNamespace(to_dict=dict)}):
        kind = type("BertEncoder", (), {"__module__": "transformers.models.bert", **members})
        with pytest.raises(TypeError, match="BertEncoder is a part of a model of transformers"):
            describe_object(kind())
    sentences = type("SentenceTransformer", (), {"_first_module": None, "state_dict": dict})()
    with pytest.raises(TypeError, match=r"al.models.load\(model\[0\].auto_model"):
        al.models.load(sentences)


def as_bert(state):
    """The same numbers in the layout of BERT, whose embedding gives the stream x."""
    found = {}
    for l in range(LAYERS):
        at, of = f"layers.{l}.", f"encoder.layer.{l}."
        for kind in ("weight", "bias"):
            thirds = np.split(state[f"{at}self_attn.in_proj_{kind}"], 3)
            for name, third in zip(("query", "key", "value"), thirds, strict=True):
                found[f"{of}attention.self.{name}.{kind}"] = third
            for ours, theirs in {
                "self_attn.out_proj": "attention.output.dense",
                "norm1": "attention.output.LayerNorm",
                "linear1": "intermediate.dense",
                "linear2": "output.dense",
                "norm2": "output.LayerNorm",
            }.items():
                found[f"{of}{theirs}.{kind}"] = state[f"{at}{ours}.{kind}"]
    return found


def test_an_encoder_of_torch_is_bert_without_its_embedding():
    state, raw = torch_encoder(activation="gelu", layer_norm_eps=1e-12)
    inner = {name: array for name, array in state.items() if not name.startswith("norm.")}
    bert, config = tiny_models.bert(prefix="")
    theirs = al.models.load(bert | as_bert(state), config=config)
    stream = theirs.hidden_states(IDS)
    ours = al.models.load(inner, config=raw)
    assert np.allclose(ours.hidden_states(stream[0]), stream, rtol=1e-12, atol=1e-12)
    assert ours.config.vocabulary == 0 and not ours.config.is_pre_norm
    del raw["model_type"]  # the names of the tensors say it
    normed = al.models.load(state, config=raw).hidden_states(stream[0])
    assert not np.allclose(normed[-1], stream[-1], rtol=1e-2)
    assert np.allclose(normed[:-1], stream[:-1], rtol=1e-12, atol=1e-12)


def test_norm_first_and_a_causal_mask_are_said_by_the_config():
    before = al.models.load(*torch_encoder(norm_first=True, is_causal=True))
    assert before.config.is_pre_norm and before.config.is_causal
    x = np.random.default_rng(0).normal(size=(5, D))
    assert np.allclose(before.hidden_states(x)[:, :3], before.hidden_states(x[:3]), rtol=1e-12)


@pytest.mark.parametrize(
    "changes, culprit",
    [
        ({"nhead": None}, "do not say its number of heads"),
        ({"nhead": 5}, "multiple of the number of heads"),
        ({"activation": "mish"}, "activation in the config"),
        ({"norm_first": "yes"}, "norm_first"),
        ({"normfirst": True}, "'normfirst' is none of them"),
    ],
)
def test_an_encoder_needs_its_config(changes, culprit):
    state, raw = torch_encoder()
    with pytest.raises(BadModel, match=culprit):
        al.models.load(state, config={**raw, **changes})


def test_the_state_dict_of_one_layer_is_an_encoder_of_one_layer():
    state, raw = torch_encoder()
    at = "layers.0."
    first = {name: array for name, array in state.items() if name.startswith(at)}
    x = np.random.default_rng(0).normal(size=(5, D))
    expected = al.models.load(first, config=raw).hidden_states(x)
    alone = {name.removeprefix(at): array for name, array in first.items()}
    assert np.array_equal(al.models.load(alone, config=raw).hidden_states(x), expected)


def test_a_forward_that_is_not_that_of_torch_is_refused():
    """Another model may hold layers of torch, and do more than to apply them in turn."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(5, D)
            layer = torch.nn.TransformerEncoderLayer(D, HEADS, 16)
            self.layers = torch.nn.ModuleList([layer])

        def forward(self, ids):
            return self.layers[0](self.embed(ids)) ** 2

    class Encoder(torch.nn.TransformerEncoder):
        """A subclass with the forward of torch."""

    with pytest.raises(TypeError, match=r"Net has layers of torch.nn and its own forward.*config="):
        al.models.load(Net())
    layer = torch.nn.TransformerEncoderLayer(D, HEADS, 16)
    known = Encoder(layer, 2, enable_nested_tensor=False)
    assert al.models.load(known).config.layers == 2


def test_layers_of_torch_that_compute_something_else_are_refused():
    torch = pytest.importorskip("torch")

    def encoder(**changes):
        layer = torch.nn.TransformerEncoderLayer(D, HEADS, 16, **changes)
        return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    assert al.models.load(encoder()).config.layers == 2
    mixed = encoder()
    mixed.layers[1] = torch.nn.TransformerEncoderLayer(D, 2, 16)
    with pytest.raises(BadModel, match="the same heads, norms and activation"):
        al.models.load(mixed)
    other = encoder()
    other.layers[0].self_attn = torch.nn.MultiheadAttention(D, HEADS, add_zero_attn=True)
    with pytest.raises(BadModel, match="add_zero_attn"):
        al.models.load(other)
    normed = encoder()
    normed.norm = torch.nn.RMSNorm(D)
    with pytest.raises(BadModel, match="final norm"):
        al.models.load(normed)
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(D, HEADS, 16), 2)
    with pytest.raises(BadModel, match="A decoder layer also reads another text"):
        al.models.load(decoder)
    with pytest.raises(TypeError, match="Linear is none of them"):
        al.models.load(torch.nn.Linear(2, 2))
