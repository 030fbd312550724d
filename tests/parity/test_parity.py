"""Hidden states and attention of every layer are the original implementation's: to 1e-4 in float32,
to 1e-10 in float64.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.models.catalog import catalog
from attnlab.models.checkpoints.llama2c import open_llama2c
from attnlab.models.checkpoints.onnx import open_onnx

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from checkpoints import CHECKPOINTS, make  # noqa: E402
from double import in_double  # noqa: E402

pytestmark = pytest.mark.parity
TOLERANCE = 1e-4


def original(model, given: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(batch, layers + 1, n, d) and (batch, layers, h, n, n)"""
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        out = encoder(
            torch.tensor(given),
            attention_mask=torch.tensor(mask),
            output_hidden_states=True,
            output_attentions=True,
        )
    states = (*out.hidden_states[:-1], out.last_hidden_state)  # ViT leaves its final norm out there
    return torch.stack(states, 1).numpy(), torch.stack(out.attentions, 1).numpy()


def inputs(model) -> tuple[np.ndarray, np.ndarray]:
    """What the original reads, three texts or images or sounds, and which of its tokens are no
    padding.
    """
    config, rng = model.config, np.random.default_rng(0)
    dtype = next(model.parameters()).detach().numpy().dtype
    if model.main_input_name == "pixel_values":
        (height, width), size = config.image_size, config.patch_size
        pixels = rng.standard_normal((3, config.num_channels, height, width)).astype(dtype)
        return pixels, np.ones((3, 1 + (height // size) * (width // size)), dtype=int)
    if model.main_input_name == "input_features":
        length = config.max_source_positions
        sound = rng.standard_normal((3, config.num_mel_bins, 2 * length)).astype(dtype)
        return sound, np.ones((3, length), dtype=int)
    return texts(61)


def texts(vocabulary: int, rng: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three texts of 11, 8 and 3 tokens, and which are no padding; the id of padding, 1, stands
    only there.
    """
    ids = np.random.default_rng(rng).integers(3, vocabulary, size=(3, 11))
    mask = np.ones_like(ids)
    mask[1, 8:], mask[2, 3:] = 0, 0
    return np.where(mask, ids, 1), mask


def worst(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference relative to the largest number of the same layer of the same text."""
    differences = np.abs(ours - theirs).reshape(*ours.shape[:2], -1).max(axis=-1)
    return float((differences / np.abs(theirs).reshape(*theirs.shape[:2], -1).max(axis=-1)).max())


def compare(ours, model, ids, mask, capsys, name):
    """Every text on its own tokens: what the originals put on padding means nothing."""
    hidden, attention = original(model, ids, mask)
    ids = ids if ours.parts.embedding is not None else hidden[:, 0]
    own_hidden, own_attention = (
        ours.hidden_states(ids, mask, dtype=np.float32),
        ours.attention(ids, mask, dtype=np.float32),
    )
    assert own_hidden.shape == hidden.shape and own_attention.shape == attention.shape
    figures = []
    for text, length in enumerate(mask.sum(axis=1)):
        streams = (own_hidden[text : text + 1, :, :length], hidden[text : text + 1, :, :length])
        looks = (
            own_attention[text : text + 1, ..., :length, :],
            attention[text : text + 1, ..., :length, :],
        )
        figures.append((worst(*streams), worst(*looks)))
    largest = np.max(figures, axis=0)
    with capsys.disabled():
        print("\n  {}: hidden states {:.1e}, attention {:.1e}".format(name, *largest), end="")
    assert (largest < TOLERANCE).all()
    # what padding holds must not matter, and one text alone must be as it is in company
    length = mask[1].sum()
    alone = ours.hidden_states(ids[1, :length], dtype=np.float32)
    assert worst(alone[None], own_hidden[1:2, :, :length]) < TOLERANCE


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_layer_is_the_original(name, tmp_path, capsys):
    model = make(name)
    model.save_pretrained(tmp_path)
    given, mask = inputs(model)
    compare(al.models.load(tmp_path), model, given, mask, capsys, name)


def test_a_narrow_sliding_window_is_seen():
    """Without its window the model is another one, so that parity of "mistral narrow" says
    something.
    """
    model = make("mistral narrow")
    ids, mask = texts(61)
    hidden, _ = original(model, ids, mask)
    plain = al.models.load(
        model.state_dict(), config={**model.config.to_dict(), "sliding_window": None}
    )
    assert worst(plain.hidden_states(ids, mask, dtype=np.float32)[:1], hidden[:1]) > 1e-2


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_layer_is_the_original_in_double_precision(name, capsys):
    with in_double():
        model = make(name).double()
        ids, mask = inputs(model)
        hidden, attention = original(model, ids, mask)
    assert hidden.dtype == np.float64
    ours = al.models.load(model.state_dict(), config=model.config)
    ids = ids if ours.parts.embedding is not None else hidden[:, 0]
    own_hidden, own_attention = ours.hidden_states(ids, mask), ours.attention(ids, mask)
    largest = 0.0
    for text, length in enumerate(mask.sum(axis=1)):
        streams = (own_hidden[text : text + 1, :, :length], hidden[text : text + 1, :, :length])
        looks = (
            own_attention[text : text + 1, ..., :length, :],
            attention[text : text + 1, ..., :length, :],
        )
        largest = max(largest, worst(*streams), worst(*looks))
    with capsys.disabled():
        print(f"\n  {name}: {largest:.1e} in double precision", end="")
    assert largest < 1e-10


def test_distances_fall_into_the_buckets_of_the_original():
    from attnlab.models.checkpoints.distances import buckets_of

    offsets = np.arange(-600, 601)
    mpnet = transformers.models.mpnet.modeling_mpnet.MPNetEncoder.relative_position_bucket
    assert np.array_equal(buckets_of(offsets, 32, 128), mpnet(torch.tensor(offsets)).numpy())
    t5 = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    for buckets, farthest in ((32, 128), (32, 64), (12, 40), (7, 100)):
        theirs = t5(torch.tensor(offsets), True, buckets, farthest).numpy()
        assert np.array_equal(buckets_of(offsets, buckets, farthest), theirs)


def test_the_page_of_models_says_how_to_embed_images_and_sound():
    """The recipes of docs/models.md give the stream that enters layer 0."""
    vit, whisper = make("vit"), make("whisper")
    with torch.no_grad():
        given, mask = inputs(vit)
        hidden, _ = original(vit, given, mask)
        assert np.array_equal(vit.embeddings(torch.tensor(given))[0].numpy(), hidden[0, 0])
        given, mask = inputs(whisper)
        hidden, _ = original(whisper, given, mask)
        encoder, gelu = whisper.encoder, torch.nn.functional.gelu
        frames = gelu(encoder.conv2(gelu(encoder.conv1(torch.tensor(given))))).permute(0, 2, 1)
        assert np.array_equal((frames + encoder.embed_positions.weight)[0].numpy(), hidden[0, 0])


@pytest.mark.parametrize("buckets, farthest", [(256, 512), (6, 32), (4, 8), (50, 100)])
def test_distances_of_deberta_fall_into_the_intervals_of_the_original(buckets, farthest):
    from attnlab.models.checkpoints.families.deberta import log_buckets

    offsets = np.arange(-farthest, farthest + 1)
    theirs = transformers.models.deberta_v2.modeling_deberta_v2.make_log_bucket_position
    expected = theirs(torch.tensor(offsets), buckets, farthest).to(torch.long).numpy()
    assert np.array_equal(log_buckets(offsets, buckets, farthest), expected)


@pytest.mark.parametrize("name", ["esm", "esm1"])
def test_tokens_that_esm_drops_are_the_original(name):
    """The id of the mask stands three times in a text of eight tokens and padding."""
    with in_double():
        model = make(name).double()
        ids, mask = texts(61)
        ids[1, [2, 3, 6]] = 7
        hidden, _ = original(model, ids, mask)
    ours = al.models.load(model.state_dict(), config=model.config).hidden_states(ids, mask)
    assert worst(ours[1:2, :, :8], hidden[1:2, :, :8]) < 1e-10


SPOILED = {
    "bert": {"hidden_act": "gelu_new"}, "albert": {"hidden_act": "gelu"}, "roberta": {"pad_token_id": 0},
    "gpt2": {"layer_norm_epsilon": 1e-2},
    "llama": {"rope_pairs": "neighbours"}, "llama stretched": {"rope_parameters": {"rope_theta": 500.0}},
    "gpt_neox": {"use_parallel_residual": False}, "gpt_neox half rotated": {"rope_parameters": {"partial_rotary_factor": 0.25}},
    "distilbert": {"activation": "gelu_new"}, "mistral": {"rms_norm_eps": 1e-3},
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_a_slightly_wrong_model_is_seen(name):
    """Else the comparison could not fail."""
    model = make(name)
    ids, mask = texts(61)
    hidden, _ = original(model, ids, mask)
    spoiled = al.models.load(model.state_dict(), config={**model.config.to_dict(), **SPOILED[name]})
    assert worst(spoiled.hidden_states(ids, mask, dtype=np.float32)[:1], hidden[:1]) > TOLERANCE


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "gpt_neox"])
def test_a_state_dict_in_memory_is_the_original_too(name, capsys):
    model = make(name, seed=1)
    ids, mask = texts(61, rng=1)
    compare(
        al.models.load(model.state_dict(), config=model.config),
        model,
        ids,
        mask,
        capsys,
        f"{name} in memory",
    )


def test_double_precision_differs_from_single_by_rounding_only(tmp_path):
    make("llama").save_pretrained(tmp_path)
    ours, (ids, mask) = al.models.load(tmp_path), texts(61)
    single, double = ours.hidden_states(ids, mask, dtype=np.float32), ours.hidden_states(ids, mask)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    assert 0 < worst(single[:1], double[:1]) < TOLERANCE


def test_shards_are_the_same_model(tmp_path):
    model = make("llama")
    model.save_pretrained(tmp_path / "whole")
    model.save_pretrained(tmp_path / "shards", max_shard_size="10KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    ids, _ = texts(61)
    whole, shards = (
        al.models.load(tmp_path / kind).hidden_states(ids[0]) for kind in ("whole", "shards")
    )
    assert np.array_equal(whole, shards)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_files_are_read_as_they_are(dtype, tmp_path):
    model = make("bert").to(getattr(torch, dtype))
    model.save_pretrained(tmp_path)
    ids, mask = texts(61)
    hidden, _ = original(model.float(), ids, mask)
    assert (
        worst(al.models.load(tmp_path).hidden_states(ids, mask, dtype=np.float32)[:1], hidden[:1])
        < TOLERANCE
    )


def fetched(name: str):
    if not catalog.is_cached(name):
        pytest.skip(f"{name} has not been fetched: attnlab fetch {name}")
    return al.models.load(name), catalog.folder_of(name)


@pytest.mark.parametrize("name, kind", [
    ("minilm", "BertModel"), ("albert-chem", "AlbertModel"), ("rxnmapper", "AlbertModel"), ("rxnfp", "BertModel"),
])  # fmt: skip
def test_trained_weights_give_the_original(name, kind, capsys):
    ours, folder = fetched(name)
    model = (
        getattr(transformers, kind)
        .from_pretrained(folder, attn_implementation="eager", local_files_only=True)
        .float()
        .eval()
    )
    ids, mask = texts(ours.config.vocabulary)
    compare(ours, model, ids, mask, capsys, name)


TEXTS = [
    "Attention is all you need.", "", "Tokens are particles: a layer is a time step!", "naïve café, ΑΒΓ and 漢字 — 🙂",
    "unbelievably   long    spaces\tand\nlines", "don't re-tokenize [MASK] or [SEP]", "word " * 300,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_token_ids_of_minilm_are_the_original_tokenizer_s(text):
    ours, folder = fetched("minilm")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ids, words = ours.tokens(text)
    assert ids.tolist() == tokenizer(text)["input_ids"]
    assert words == tokenizer.convert_ids_to_tokens(ids.tolist())


def test_plbert_out_of_its_onnx_file_gives_the_original(capsys):
    ours, folder = fetched("plbert")
    found = open_onnx(folder / "model.onnx")
    names = [name for name in found if name.startswith("encoder.bert.")]
    state = {
        name.removeprefix("encoder.bert."): torch.tensor(np.array(found[name])) for name in names
    }
    config = transformers.AlbertConfig(**ours.raw_config, attn_implementation="eager")
    model = transformers.AlbertModel(config, add_pooling_layer=False).eval()
    missing, _ = model.load_state_dict(state, strict=False)
    assert not missing
    ids, mask = texts(ours.config.vocabulary)
    compare(ours, model, ids, mask, capsys, "plbert")


def test_stories15m_out_of_its_raw_file_gives_the_original(capsys):
    """The original pairs halves where llama2.c pairs neighbours, so rows of queries and keys are
    put in that order for it.
    """
    ours, folder = fetched("stories15m")
    tensors, raw = open_llama2c(folder / "model.bin")
    heads, d = raw["num_attention_heads"], raw["hidden_size"]

    def halves(name, array):
        is_turned = "q_proj" in name or "k_proj" in name
        return array.reshape(heads, -1, 2, d).swapaxes(1, 2).reshape(d, d) if is_turned else array

    model = transformers.LlamaModel(
        transformers.LlamaConfig(**raw, attn_implementation="eager")
    ).eval()
    model.load_state_dict(
        {name: torch.tensor(np.array(halves(name, array))) for name, array in tensors.items()}
    )
    ids, mask = texts(ours.config.vocabulary)
    compare(ours, model, ids, mask, capsys, "stories15m")


def test_a_model_in_memory_and_a_file_of_torch_are_the_original(tmp_path):
    model = make("bert")
    ids, mask = texts(61)
    model.save_pretrained(tmp_path)
    states = al.models.load(tmp_path).hidden_states(ids, mask)
    assert np.array_equal(al.models.load(model).hidden_states(ids, mask), states)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    assert np.array_equal(
        al.models.load(tmp_path, torch_files=True).hidden_states(ids, mask), states
    )
    with pytest.raises(al.models.BadModel, match="is a pickle"):
        al.models.load(tmp_path)


def test_a_file_of_torch_that_holds_a_program_is_refused(tmp_path):
    make("bert").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"a": Bomb()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(al.models.BadModel, match=r"weights_only=True\) refuses pytorch_model\.bin"):
        al.models.load(tmp_path, torch_files=True)


class Bomb:
    """Runs a program when it is unpickled."""

    def __reduce__(self):
        return exec, ("raise SystemExit('the pickle ran')",)


@pytest.mark.parametrize(
    ("name", "attention", "feedforward"),
    [
        ("bert", "encoder.layer.1.attention.output.dense", "encoder.layer.0.output.dense"),
        ("llama", "layers.1.self_attn.o_proj", "layers.0.mlp.down_proj"),
        ("opt", "decoder.layers.1.self_attn.out_proj", "decoder.layers.0.fc2"),
    ],
)
def test_a_model_without_parts_is_the_original_with_zero_columns(name, attention, feedforward):
    """Head 2 of layer 1 writes nothing, nor does the feed-forward part of layer 0."""
    with in_double():
        model = make(name).double()
        kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        ours = al.models.load(kept, config=model.config)  # not a view of what is zeroed below
        size = ours.config.head_size
        with torch.no_grad():
            model.get_submodule(attention).weight[:, 2 * size : 3 * size] = 0
            for parameter in model.get_submodule(feedforward).parameters():
                parameter.zero_()
        ids, mask = texts(61)
        hidden, looks = original(model, ids, mask)
    ablated = ours.without(heads=[(1, 2)], feedforward=[0])
    own_hidden, own_looks = ablated.hidden_states(ids, mask), ablated.attention(ids, mask)
    assert worst(own_hidden[:1], hidden[:1]) < 1e-10 and worst(own_looks[:1], looks[:1]) < 1e-10
    assert worst(ours.hidden_states(ids, mask)[:1], hidden[:1]) > 1e-3
