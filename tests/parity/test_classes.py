"""Every class of transformers that a user may hold loads as the original, to 1e-10, or is refused in
a sentence that says what to give instead.
"""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

import attnlab as al
from attnlab.models.checkpoints.families import families

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from checkpoints import BART, CHECKPOINTS, GEMMA, WHISPER, WIDE, fill, make, make_of  # noqa: E402
from double import in_double  # noqa: E402
from test_parity import inputs  # noqa: E402

pytestmark = pytest.mark.parity

KINDS = {kind: sizes for kind, sizes in reversed(CHECKPOINTS.values())}
PARTS = ("Encoder", "Transformer", "Layer", "Block")


def config_of(kind):
    more = {"use_cache": False} if "encoder_layers" in KINDS[kind] or "d_kv" in KINDS[kind] else {}
    return getattr(transformers, kind + "Config")(
        **KINDS[kind], **more, attn_implementation="eager"
    )


def classes_of(kind):
    """The models in the module of transformers, and the parts of them that hold layers."""
    module = importlib.import_module(
        type(config_of(kind)).__module__.replace("configuration", "modeling")
    )
    for name, found in inspect.getmembers(module, inspect.isclass):
        is_own = found.__module__ == module.__name__ and issubclass(found, torch.nn.Module)
        is_model = issubclass(found, transformers.PreTrainedModel)
        if is_own and "Pretrained" not in name and "PreTrained" not in name:
            if is_model or any(word in name for word in PARTS):
                yield name, found, is_model


def made(found, config):
    try:
        model = found(config)
    except TypeError:
        model = found(config, layer_idx=0)
    fill(model.eval())
    return model.double()


def test_every_family_of_transformers_is_among_the_kinds():
    types = {config_of(kind).model_type for kind in KINDS}
    own = {"hooked_transformer", "torch_encoder"}
    assert all(types & set(families[name].model_types) for name in families if name not in own)


@pytest.mark.parametrize("kind", KINDS)
def test_every_class_is_the_original_or_is_refused(kind, capsys):
    away, loaded, refused = 0.0, 0, 0
    for name, found, is_model in classes_of(kind):
        config = config_of(kind)
        is_decoder = config.is_encoder_decoder and ("Decoder" in name or "CausalLM" in name)
        try:
            with in_double():
                model = made(found, config)
        except (TypeError, AttributeError):
            assert not is_model or kind == "Gemma3Text"  # the models with images have other configs
            continue
        if not is_model or is_decoder:
            reason = "the decoder of a" if is_model else "is a part of a model of transformers"
            with pytest.raises((TypeError, al.models.BadModel), match=reason):
                al.models.load(model)
            refused += 1
            continue
        ours = al.models.load(model)
        base = model.base_model
        original = getattr(base, "encoder", base) if config.is_encoder_decoder else base
        with in_double(), torch.no_grad():
            given = torch.tensor(inputs(model)[0])
            given = given.double() if given.is_floating_point() else given
            out = original(given, output_hidden_states=True)
        hidden = torch.stack((*out.hidden_states[:-1], out.last_hidden_state), 1).numpy()
        own = ours.hidden_states(given.numpy() if ours.parts.embedding else hidden[:, 0])
        away = max(away, np.abs(own - hidden).max() / np.abs(hidden).max())
        assert away < 1e-10, name
        loaded += 1
    with capsys.disabled():
        print(f"\n  {kind}: {loaded} classes {away:.1e}, {refused} refused", end="")
    assert loaded >= 3


@pytest.mark.parametrize("name", ["bart", "whisper", "t5", "opt"])
def test_the_state_dict_of_a_bare_part_is_the_original(name):
    """People hold model.get_encoder(), whose tensors have no prefix."""
    model = make(name)
    part = model.decoder if name == "opt" else model.get_encoder()
    x = np.random.default_rng(0).integers(3, 61, size=9)
    whole = al.models.load(model)
    x = x if whole.parts.embedding else np.random.default_rng(0).standard_normal((9, 24))
    bare = al.models.load(part.state_dict(), config=part.config)
    assert np.array_equal(bare.hidden_states(x), whole.hidden_states(x))
    assert bare.config == whole.config


def test_models_of_several_parts_say_which_part_to_give():
    images = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 8,
        "patch_size": 4,
    }
    config = transformers.Gemma3Config(text_config=GEMMA, vision_config=images)
    both = transformers.Gemma3ForConditionalGeneration(config)
    with pytest.raises(al.models.BadModel, match=r"model_type 'gemma3_text', which is read here"):
        al.models.load(both)
    assert al.models.load(both.get_decoder()).config.family == "gemma3"
    for kind, sizes in (("Bart", BART), ("Whisper", WHISPER)):
        config = getattr(transformers, kind + "Config")(**sizes)
        decoder = getattr(transformers, kind + "ForCausalLM")(config)
        state = {name.removeprefix("model."): x for name, x in decoder.state_dict().items()}
        with pytest.raises(al.models.BadModel, match=r"model.get_encoder\(\)"):
            al.models.load(state, config=decoder.config)
    two = transformers.EncoderDecoderModel(
        encoder=make_of("Bert", WIDE),
        decoder=transformers.BertLMHeadModel(
            transformers.BertConfig(**WIDE, is_decoder=True, add_cross_attention=True)
        ),
    )
    with pytest.raises(al.models.BadModel, match="model_type 'encoder-decoder'"):
        al.models.load(two)
    assert al.models.load(two.encoder).config.family == "bert"
    with pytest.raises(al.models.BadModel, match="add_cross_attention"):
        al.models.load(two.decoder)


@pytest.mark.filterwarnings("ignore")  # of torch, about itself
def test_a_compiled_model_is_the_model():
    model = make("bert")
    ids = [3, 17, 5, 8]
    states = al.models.load(model).hidden_states(ids)
    assert np.array_equal(al.models.load(torch.compile(model)).hidden_states(ids), states)
