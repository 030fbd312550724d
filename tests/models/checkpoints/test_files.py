"""Files of checkpoints that are damaged, hostile, or not what they seem: each is refused with a
sentence.
"""

from __future__ import annotations

import json
import pickle
import struct

import numpy as np
import pytest

import attnlab as al
import tiny_models
from attnlab.models import BadModel
from attnlab.models.checkpoints.files import TensorFile, open_safetensors
from attnlab.models.checkpoints.onnx import open_onnx
from tiny_models import safetensors, with_header, write_folder

IDS = np.array([3, 17, 5])


@pytest.fixture
def bert(tmp_path):
    """A sound folder, to be spoiled."""
    return write_folder(tmp_path / "bert", *tiny_models.bert())


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_sound_folder_loads_mapped_and_without_a_copy(bert):
    m = al.models.load(bert)
    assert m.name == "bert" and m.source == "the folder bert" and m.licence == "not stated"
    query = m.parts.layers[0].attention.query
    assert not query.flags.owndata and not query.flags.writeable
    state, raw = tiny_models.bert()
    assert np.array_equal(
        m.hidden_states(IDS), al.models.load(state, config=raw).hidden_states(IDS)
    )
    assert np.array_equal(al.models.load(str(bert)).hidden_states(IDS), m.hidden_states(IDS))


def test_our_reading_is_the_library_s(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(0)
    state = {
        "single": rng.standard_normal((3, 5)).astype(np.float32), "double": rng.standard_normal(7),
        "half": rng.standard_normal((2, 2, 2)).astype(np.float16), "empty": np.zeros((0, 4), dtype=np.float32),
        "scalar": np.array(2.5, dtype=np.float32), "ids": np.arange(4),
    }  # fmt: skip
    library.save_file(state, tmp_path / "model.safetensors", metadata={"format": "pt"})
    ours = TensorFile(tmp_path / "model.safetensors")
    assert set(ours) == set(state) - {"ids"} and len(ours) == 5
    for name in ours:
        assert ours[name].dtype == state[name].dtype and np.array_equal(ours[name], state[name])


def test_bfloat16_is_widened_exactly(tmp_path):
    numbers = np.array([1.0, -2.5, 3.140625, 1e30], dtype=np.float32)
    bits = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    header = json.dumps({"x": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(with_header(header, bits.tobytes()))
    expected = (bits.astype(np.uint32) << 16).view(np.float32)
    assert (
        np.array_equal(TensorFile(tmp_path / "model.safetensors")["x"], expected)
        and expected[1] == -2.5
    )


def test_shards_are_found_through_their_index(tmp_path, bert):
    state, raw = tiny_models.bert()
    names = sorted(state)
    folder = shards(
        tmp_path / "shards", raw, {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    )
    assert np.array_equal(
        al.models.load(folder).hidden_states(IDS), al.models.load(bert).hidden_states(IDS)
    )
    (folder / "two.safetensors").unlink()
    with pytest.raises(BadModel, match="names 'two.safetensors', but the folder does not have it"):
        al.models.load(folder)


def shards(folder, raw, files, index=None):
    folder.mkdir()
    state, _ = tiny_models.bert()
    for file, names in files.items():
        (folder / file).write_bytes(safetensors({name: state[name] for name in names}))
    where = index or {name: file for file, names in files.items() for name in names}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    (folder / "config.json").write_text(json.dumps(raw))
    return folder


@pytest.mark.parametrize("name", [
    "../secret.safetensors", "/etc/secret.safetensors", "a/b.safetensors", "..\\x.safetensors", "C:x.safetensors", "", "..",
    "weights.bin",
])  # fmt: skip
def test_an_index_cannot_lead_out_of_its_folder(tmp_path, name):
    (tmp_path / "secret.safetensors").write_bytes(safetensors({"x": np.zeros(3, dtype=np.float32)}))
    folder = shards(tmp_path / "shards", tiny_models.bert()[1], {}, index={"x": name})
    with pytest.raises(BadModel, match="must name .safetensors files of its own folder"):
        al.models.load(folder)


@pytest.mark.parametrize("index", [{}, {"weight_map": 3}, {"weight_map": {"x": 3}}])
def test_an_index_that_says_nothing_is_refused(tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadModel, match="must have a weight_map"):
        open_safetensors(tmp_path)


def test_an_index_that_lies_about_a_file_is_refused(tmp_path):
    state, raw = tiny_models.bert()
    folder = shards(
        tmp_path / "shards",
        raw,
        {"one.safetensors": list(state)},
        index={"phantom": "one.safetensors"},
    )
    with pytest.raises(BadModel, match="'phantom' is in one.safetensors, but it is not"):
        al.models.load(folder)


@pytest.mark.parametrize("left", [0, 5, 8, 100, -1, -4000])
def test_a_truncated_file_is_refused(bert, left):
    path = bert / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:left])
    with pytest.raises(BadModel, match="cut"):
        al.models.load(bert)


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**9, 200])
def test_an_absurd_header_length_is_refused_before_anything_is_read(tmp_path, length):
    (tmp_path / "model.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}" * 20)
    with pytest.raises(BadModel, match=f"says {length:,} bytes in a file of 48"):
        open_safetensors(tmp_path)


def entry(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    "header, said",
    [
        (b"not json", "must be a JSON object"),
        (b"\xff\xfe", "must be a JSON object"),
        (b"[1, 2]", "must be a JSON object, found list"),
        (b"[" * 50_000, "must be a JSON object"),
        (b'{"x": 1, "x": 2}', "it has a name twice"),
        ({"x": 3}, "must give dtype, shape and data_offsets of 'x'"),
        ({"x": {"dtype": "F32"}}, "must give dtype"),
        ({"x": entry([2], -8, 0)}, "must give dtype"),
        ({"x": entry([-2], 0, 8)}, "must give dtype"),
        ({"x": entry([True, 2], 0, 8)}, "must give dtype"),
        ({"x": entry([2.0], 0, 8)}, "must give dtype"),
        ({"x": entry([2], 0, 8, dtype=["F32"])}, "must give dtype"),
        ({"x": entry([2], 0, 8, dtype="F8_E4M3")}, "number type 'F8_E4M3'"),
        ({"x": entry([2**40, 2**40], 0, 8)}, "bytes by its shape"),
        ({"x": entry([3], 0, 8)}, "must have 12 bytes by its shape"),
        ({"x": entry([2], 8, 0)}, "bytes by its shape"),
        ({"x": entry([4], 8, 24)}, "is cut: 'x' should end at byte 24"),
        ({"x": entry([2], 0, 8), "y": entry([2], 4, 12)}, "'x' and 'y' overlap"),
    ],
)
def test_a_hostile_header_is_refused(tmp_path, header, said):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(with_header(text, b"\0" * 16))
    with pytest.raises(BadModel, match=said):
        open_safetensors(tmp_path)


class Bomb:
    """Runs a program when it is unpickled."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('the pickle ran')",))


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "model.ckpt", "weights.pth", "model.bin"]
)
def test_a_pickle_is_refused_with_how_to_convert_it(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "config.json").write_text(json.dumps(tiny_models.bert()[1]))
    for source in (tmp_path, tmp_path / name):
        with pytest.raises(BadModel, match="is a pickle.*refused.*safetensors.torch.save_file"):
            al.models.load(source)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "name", ["bert.encoder.layer.1.attention.self.value.weight", "bert.embeddings.LayerNorm.bias"]
)
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path, name, value):
    state, raw = tiny_models.bert()
    state[name].flat[3] = value
    with pytest.raises(BadModel, match=f"{name}' holds NaN or infinite"):
        al.models.load(write_folder(tmp_path / "nan", state, raw))


NOT_NEEDED = {
    "gpt_neox": ("query_key_value.bias", "attention.dense.bias"),  # Pythia's successors
}


@pytest.mark.parametrize(
    "family",
    [name for name in tiny_models.MAKERS if name != "torch_encoder"],  # whose tensors say all sizes
)
def test_every_tensor_is_needed_and_its_shape_is_checked(family):
    state, raw = tiny_models.MAKERS[family]()
    for name, array in state.items():
        if name.endswith(NOT_NEEDED.get(family, ("-",))):
            continue
        with pytest.raises(BadModel, match="must have (the|one) tensor"):
            al.models.load({key: value for key, value in state.items() if key != name}, config=raw)
        with pytest.raises(BadModel, match=r"must have shape \(.*\) by the config, but has"):
            al.models.load({**state, name: np.concatenate([array, array])}, config=raw)


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"hidden_size": 24}, "must have shape .* by the config"),
        ({"vocab_size": 20}, "word_embeddings.*must have shape \\(20, 12\\)"),
        ({"intermediate_size": 15}, "intermediate.dense.*must have shape"),
        ({"num_hidden_layers": 1}, "says 1 layers, but the checkpoint also has"),
        ({"num_hidden_layers": 3}, "must have the tensor 'bert.encoder.layer.2"),
        ({"num_attention_heads": 5}, "multiple of the number of heads"),
        ({"num_attention_heads": 0}, "whole number from 1 to .*, found '0'"),
        ({"num_attention_heads": True}, "whole number"),
        ({"hidden_size": 10**30}, "whole number"),
        ({"hidden_size": None}, "must say hidden_size"),
        ({"layer_norm_eps": -1}, "layer_norm_eps in the config must be a positive number"),
        ({"layer_norm_eps": 10**400}, "must be a positive number"),
        ({"num_hidden_layers": 10**9}, "whole number from 1 to 10000"),
        ({"hidden_act": {"name": "gelu"}}, "is not computed here"),
        ({"model_type": ["bert"]}, "which no family here can read"),
        ({"hidden_act": "mish"}, "'mish', which is not computed here. Known: gelu"),
        ({"position_embedding_type": "relative_key"}, "only 'absolute' or None is computed here"),
    ],
)
def test_a_config_that_does_not_fit_its_tensors_is_refused(bert, changes, said):
    change_config(bert, **changes)
    with pytest.raises(BadModel, match=said):
        al.models.load(bert)


@pytest.mark.parametrize(
    "family, changes, said",
    [
        ("llama", {"num_key_value_heads": 4}, "multiple of the key heads"),
        (
            "llama",
            {"rope_scaling": {"rope_type": "yarn"}},
            "rope_type in the config is 'yarn', .*; known: default, linear, llama3",
        ),
        ("llama", {"rope_parameters": 3}, "must be a table"),
        ("llama", {"rope_pairs": "thirds"}, "rope_pairs in the config is 'thirds'"),
        ("gpt_neox", {"rotary_pct": 0.3}, "even number of its 4 coordinates"),
        ("gpt2", {"multi_query": True}, "needs its own family"),
        ("albert", {"inner_group_num": 2}, "needs its own family"),
        ("albert", {"num_hidden_groups": 9}, "must not exceed the 3 layers"),
    ],
)
def test_a_variant_that_is_not_computed_here_is_refused(family, changes, said):
    state, raw = tiny_models.MAKERS[family]()
    with pytest.raises(BadModel, match=said):
        al.models.load(state, config={**raw, **changes})


def test_an_unknown_family_says_what_was_found_and_what_is_known(bert):
    change_config(bert, model_type="rwkv")
    with pytest.raises(
        BadModel, match="model_type 'rwkv'.*Known: albert, .*bert, .*gpt2, .*llama,"
    ):
        al.models.load(bert)
    with pytest.raises(BadModel, match="names no model_type.*'foo.weight'.*Known: albert"):
        al.models.load({"foo.weight": np.zeros(3)}, config={})


@pytest.mark.parametrize("arguments, said", [
    ({"layer": 0, "head": 3}, "There is no head 3: this model's heads are 0 to 2, counted from 0"),
    ({"layer": 0, "head": -1}, "There is no head -1"),
    ({"layer": 2}, "There is no layer 2: this model's layers are 0 to 1"),
    ({"layer": "first"}, "The layer must be a whole number, got 'first'"),
    ({"layer": 0, "offset": 2}, "has none: its M is the same everywhere"),
])  # fmt: skip
def test_a_head_that_does_not_exist_is_said(bert, arguments, said):
    with pytest.raises(ValueError, match=said):
        al.models.load(bert).weights(**arguments)


@pytest.mark.parametrize("ids, said", [
    ("a text", "has no token"), ([], "whole numbers"), ([1.5], "whole numbers"), ([19], "0 to 18, got 19"), ([-1], "0 to 18"),
    (np.zeros(11, dtype=int), "places for 10 tokens, got 11"), ((np.array([1]), ["a"]), "take the first"),
])  # fmt: skip
def test_ids_that_the_model_does_not_know_are_said(bert, ids, said):
    with pytest.raises(ValueError, match=said):
        al.models.load(bert).hidden_states(ids)


def test_a_pair_of_texts_is_no_pair_of_ids_and_words(bert):
    model = al.models.load(bert)
    with pytest.raises(ValueError, match="Several texts are a list of arrays"):
        model.hidden_states([np.array([2, 1]), [3, 1, 4]])


def test_a_tensor_without_numbers_is_named():
    class Meta:
        is_meta = True

    state, raw = tiny_models.bert()
    name = next(iter(state))
    with pytest.raises(BadModel, match=f"{name} has no numbers"):
        al.models.load({**state, name: Meta()}, config=raw)


def test_masks_and_precisions_are_checked(bert):
    m = al.models.load(bert)
    with pytest.raises(ValueError, match="mask must have one entry per token"):
        m.hidden_states(IDS, mask=[1, 1])
    with pytest.raises(ValueError, match="float32 or float64, got float16"):
        m.hidden_states(IDS, dtype=np.float16)


def test_a_model_without_a_tokenizer_says_so(bert):
    with pytest.raises(ValueError, match="has no tokenizer.json.*0 to 18"):
        al.models.load(bert).tokens("a text")
    (bert / "tokenizer.json").write_text("{}")
    with pytest.raises(BadModel, match="must be a tokenizer of the library tokenizers"):
        al.models.load(bert).tokens("a text")


def test_a_tokenizer_is_read_with_neither_padding_nor_truncation(bert):
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(
        library.models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = library.pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=9)
    tokenizer.enable_truncation(2)
    tokenizer.save(str(bert / "tokenizer.json"))
    model = al.models.load(bert)
    ids, words = model.tokens("a b c")
    for verb in (model.hidden_states, model.attention):  # a text is its ids
        np.testing.assert_array_equal(verb("a b c"), verb(ids))
    assert ids.tolist() == [1, 2, 0] and words == ["a", "b", "[UNK]"] and ids.dtype == np.int64


def test_llama2c_s_tokenizer_joins_the_best_pair_and_falls_back_to_bytes(tmp_path):
    state, raw = tiny_models.llama(heads=3, kv_heads=3)
    state["model.embed_tokens.weight"] = np.zeros((265, 12), dtype=np.float32)
    data = bytearray(tiny_models.llama2c(state, raw))
    data[20:24] = struct.pack("<i", 265)
    (tmp_path / "model.bin").write_bytes(bytes(data))
    pieces = [
        b"<unk>",
        b"<s>",
        b"</s>",
        *(bytes([b]) for b in range(256)),
        b" ",
        b"a",
        b"b",
        b"ab",
        b" a",
        b"bb",
    ]
    scores = [0.0] * 259 + [-9.0, -9.0, -9.0, -1.0, -2.0, -3.0]
    packed = b"".join(
        struct.pack("<fi", score, len(piece)) + piece
        for score, piece in zip(scores, pieces, strict=True)
    )
    (tmp_path / "tokenizer.bin").write_bytes(struct.pack("<i", 5) + packed)
    (tmp_path / "attnlab.json").write_text('{"format": "llama2c"}')
    m = al.models.load(tmp_path)
    ids, words = m.tokens("abé")
    assert ids.tolist() == [1, 259, 262, 0xC3 + 3, 0xA9 + 3] and words == [
        "<s>",
        " ",
        "ab",
        "<0xC3>",
        "<0xA9>",
    ]
    assert m.tokens("")[0].tolist() == [1]
    rng = np.random.default_rng(0)
    for _ in range(200):  # one pair after the other, the best first, of equals the first
        text = "".join(rng.choice(list("ab "), size=rng.integers(1, 12)))
        parts = [letter.encode() for letter in " " + text]
        while True:
            pairs = [
                (-scores[pieces.index(a + b)], i)
                for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False))
                if a + b in pieces[259:]
            ]
            if not pairs:
                break
            at = min(pairs)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        assert m.tokens(text, special=False)[0].tolist() == [
            pieces.index(part, 259) for part in parts
        ]
    (tmp_path / "tokenizer.bin").write_bytes(struct.pack("<i", 5) + packed[:-3])
    with pytest.raises(BadModel, match="must have 265 pieces, but number 264 is cut"):
        al.models.load(tmp_path).tokens("a")


@pytest.mark.parametrize("data, said", [
    (b"", "missing or has only 0 bytes"), (b"\0" * 40, "seven sizes"), (b"\xff" * 60, "seven sizes"),
    (struct.pack("<7i", 12, 16, 2, 3, 3, 19, 10), "is cut: its sizes need"),
    (struct.pack("<7i", *[2**23] * 7), "is cut"),
])  # fmt: skip
def test_a_raw_file_that_is_none_is_refused(tmp_path, data, said):
    (tmp_path / "model.bin").write_bytes(data)
    (tmp_path / "attnlab.json").write_text('{"format": "llama2c"}')
    with pytest.raises(BadModel, match=said):
        al.models.load(tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x08", b"\xff" * 30, b"no onnx file", tiny_models.field(7, b""), bytes(range(256))],
)
def test_an_onnx_file_that_is_none_is_refused(tmp_path, data):
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(BadModel):
        open_onnx(tmp_path / "model.onnx")


def test_no_cut_of_an_onnx_file_gives_a_wrong_weight(tmp_path):
    state, raw = tiny_models.albert("encoder.bert.")
    whole = tiny_models.onnx(state, layers=2)
    full = None
    for length in [len(whole), *range(0, len(whole), 97)]:
        (tmp_path / "model.onnx").write_bytes(whole[:length])
        try:
            found = open_onnx(tmp_path / "model.onnx")
        except BadModel:
            continue
        full = full or found
        assert all(np.array_equal(found[name], full[name]) for name in found)
        if length < len(whole) - 40:
            with pytest.raises(BadModel, match="must have (the|one) tensor"):
                al.models.families["albert"](found, raw)
    assert full is not None and len(full) > 20


def test_an_onnx_tensor_of_an_absurd_shape_is_passed_over(tmp_path):
    huge = b"".join(tiny_models.varint(1 << 3) + tiny_models.varint(2**62) for _ in range(4))
    body = huge + b"\x10\x01" + tiny_models.field(8, "huge") + tiny_models.field(9, b"1234")
    good = (
        b"\x08\x01\x10\x01" + tiny_models.field(8, "good") + tiny_models.field(9, b"\0\0\x80\x3f")
    )
    (tmp_path / "model.onnx").write_bytes(
        tiny_models.field(7, tiny_models.field(5, body) + tiny_models.field(5, good))
    )
    found = open_onnx(tmp_path / "model.onnx")
    assert list(found) == ["good"] and found["good"].tolist() == [1.0]
