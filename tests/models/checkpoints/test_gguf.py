"""GGUF files: the same model as from safetensors, blocks of few bits against loops over their bits,
and refusals by name.
"""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest

import attnlab as al
import tiny_gguf
from attnlab.checks import MissingLibrary
from attnlab.models import BadModel
from attnlab.models.checkpoints.gguf_file import BLOCKS, OTHERS, GgufFile, is_gguf
from attnlab.models.checkpoints.gguf_names import ARCHITECTURES

gguf = pytest.importorskip("gguf")
IDS = [3, 17, 5, 5, 0, 11, 8]
EPS = {"llama": 1e-5, "gpt2": 1e-5, "phi2": 1e-5, "phi3": 1e-5, "bert": 1e-12}
MADE = tiny_gguf.checkpoints()


def written(folder, arch="llama", **keys):
    _, state, raw = MADE[arch]
    expected = al.models.load(state, config=raw)
    path = folder / f"{arch}.gguf"
    keys = {"eps": raw.get("rms_norm_eps", EPS.get(arch, 1e-6)), **keys}
    return tiny_gguf.write(path, arch, state, expected.config, **keys), expected


def test_every_architecture_has_a_tiny_checkpoint_here():
    assert set(MADE) == set(ARCHITECTURES)


@pytest.mark.parametrize("arch", MADE)
def test_a_file_is_the_model_of_safetensors(arch, tmp_path):
    path, expected = written(tmp_path, arch)
    ours = al.models.load(path)
    assert is_gguf(path) and ours.config.family == expected.config.family
    states = expected.hidden_states(IDS)
    assert np.abs(ours.hidden_states(IDS) - states).max() < 1e-10 * np.abs(states).max()
    assert np.abs(ours.attention(IDS) - expected.attention(IDS)).max() < 1e-10
    for offset in (0, 2) if expected.config.rope_theta else (0,):
        one, other = (m.weights(1, offset=offset) for m in (ours, expected))
        assert np.allclose(one.M, other.M, rtol=1e-9, atol=1e-12)
        assert np.allclose(one.full_V, other.full_V, rtol=1e-9, atol=1e-12)


def test_a_folder_with_one_file_is_that_file(tmp_path):
    path, expected = written(tmp_path)
    ours = al.models.load(tmp_path)
    assert np.array_equal(ours.hidden_states(IDS), al.models.load(path).hidden_states(IDS))
    assert ours.address == str(tmp_path) and ours.name == tmp_path.name
    path.rename(tmp_path / "b.gguf")
    written(tmp_path)
    with pytest.raises(BadModel, match="several GGUF files"):
        al.models.load(tmp_path)


def half(low, high):
    return float(np.frombuffer(bytes([low, high]), "<f2")[0])


def nibbles(block, start):
    """Sixteen low halves of bytes, and then their high halves."""
    qs = block[start : start + 16]
    return [q & 15 for q in qs] + [q >> 4 for q in qs]


def fifth_bits(block, start):
    bits = int.from_bytes(bytes(block[start : start + 4]), "little")
    return [(bits >> i & 1) << 4 for i in range(32)]


def six_bits(s, j):
    """Scale and minimum of the j-th 32 numbers, six bits each, in twelve bytes."""
    if j < 4:
        return s[j] & 63, s[j + 4] & 63
    return (s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4


def k_block(block, five):
    d, low = half(*block[:2]), half(*block[2:4])
    high, qs = (block[16:48], block[48:]) if five else ([0] * 32, block[16:])
    out = []
    for j in range(8):
        scale, minimum = six_bits(block[4:16], j)
        for l in range(32):
            byte = qs[32 * (j // 2) + l]
            value = (byte >> 4 if j % 2 else byte & 15) + ((high[l] >> j & 1) << 4)
            out.append(d * scale * value - low * minimum)
    return out


def six_k(block):
    low, high, scales, d = block[:128], block[128:192], block[192:208], half(*block[208:210])
    out = [0.0] * 256
    for n in range(2):
        for l in range(32):
            bits = high[32 * n + l]
            for part in range(4):
                byte = low[64 * n + l + 32 * (part % 2)]
                value = (byte >> 4 if part > 1 else byte & 15) | (bits >> 2 * part & 3) << 4
                scale = scales[8 * n + 2 * part + l // 16]
                scale = scale - 256 if scale > 127 else scale
                out[128 * n + 32 * part + l] = d * scale * (value - 32)
    return out


LOOPS = {
    "Q4_0": lambda b: [half(*b[:2]) * (q - 8) for q in nibbles(b, 2)],
    "Q4_1": lambda b: [half(*b[:2]) * q + half(*b[2:4]) for q in nibbles(b, 4)],
    "Q5_0": lambda b: [
        half(*b[:2]) * ((q | h) - 16) for q, h in zip(nibbles(b, 6), fifth_bits(b, 2), strict=True)
    ],
    "Q5_1": lambda b: [
        half(*b[:2]) * (q | h) + half(*b[2:4])
        for q, h in zip(nibbles(b, 8), fifth_bits(b, 4), strict=True)
    ],
    "Q8_0": lambda b: [half(*b[:2]) * (q - 256 if q > 127 else q) for q in b[2:]],
    "Q4_K": lambda b: k_block(b, five=False),
    "Q5_K": lambda b: k_block(b, five=True),
    "Q6_K": six_k,
}
SCALES = {"Q4_0": (0,), "Q5_0": (0,), "Q8_0": (0,), "Q6_K": (208,)}


def raw_file(path, kind, shape, data, keys=()):
    """A file with one tensor, written by hand."""

    def text(words):
        return struct.pack("<Q", len(words)) + words.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys))
    head += b"".join(text(name) + body for name, body in keys)
    head += text("t") + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
    head += struct.pack("<IQ", kind, 0)
    path.write_bytes(head + bytes(-len(head) % 32) + bytes(data))
    return path


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_of_few_bits_against_a_loop(kind, tmp_path):
    name, size, width = BLOCKS[kind]
    rng = np.random.default_rng(kind)
    blocks = rng.integers(0, 256, (6, width), dtype=np.uint8)
    for at in SCALES.get(name, (0, 2)):  # no infinite scales
        blocks[:, at : at + 2] = rng.normal(size=6).astype("<f2").view(np.uint8).reshape(6, 2)
    path = raw_file(tmp_path / "one.gguf", kind, (3, 2 * size), blocks.tobytes())
    found = GgufFile(path)["t"]
    expected = np.array([LOOPS[name](block.tolist()) for block in blocks]).reshape(3, 2 * size)
    assert found.dtype == np.float32 and found.shape == (3, 2 * size)
    assert np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max()


def test_plain_numbers_need_no_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    values = np.random.default_rng(0).normal(size=(2, 3))
    for kind, dtype in ((0, "<f4"), (1, "<f2"), (28, "<f8")):
        data = values.astype(dtype)
        found = GgufFile(raw_file(tmp_path / "plain.gguf", kind, (2, 3), data.tobytes()))["t"]
        assert np.array_equal(found, data) and found.dtype == dtype
    upper = (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    found = GgufFile(raw_file(tmp_path / "plain.gguf", 30, (2, 3), upper.tobytes()))["t"]
    assert np.allclose(found, values, rtol=1e-2) and found.dtype == np.float32
    few = GgufFile(raw_file(tmp_path / "few.gguf", 8, (1, 32), bytes(34)))
    with pytest.raises(MissingLibrary, match=r"pip install 'attnlab\[gguf\]'"):
        few["t"]


def test_other_types_are_refused_by_name(tmp_path):
    for kind, name in OTHERS.items():
        with pytest.raises(BadModel, match=f"tensor 't' in t.gguf is of type {name}, which"):
            GgufFile(raw_file(tmp_path / "t.gguf", kind, (1, 256), bytes(2000)))
    assert {
        *OTHERS.values(),
        *(one[0] for one in BLOCKS.values()),
        "F32",
        "F16",
        "F64",
        "BF16",
    } <= {one.name for one in gguf.GGMLQuantizationType}


def word(text):
    return struct.pack("<IQ", 8, len(text)) + text.encode()


def test_what_is_damaged_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "t.gguf"

    def says(data, what):
        path.write_bytes(data)
        with pytest.raises(BadModel, match=what):
            GgufFile(path)

    sound = raw_file(path, 0, (2, 3), bytes(24)).read_bytes()
    says(b"GGUF", "It is cut")
    says(b"GGML" + sound[4:], "must begin with the letters GGUF")
    says(b"GGUF" + struct.pack(">I", 3) + sound[8:], "version")
    says(sound[:-1], "'t' should end at byte")
    says(sound[:40], "cut or damaged")
    says(sound[:8] + struct.pack("<Q", 1 << 60) + sound[16:], "declares")
    says(sound[:16] + struct.pack("<Q", 1 << 40) + sound[24:], "declares")
    says(sound[:24] + struct.pack("<Q", 1 << 62) + sound[32:], "a name at byte")
    says(raw_file(path, 8, (1, 33), bytes(99)).read_bytes(), "whole blocks of 32")
    twice = raw_file(path, 0, (2,), bytes(8), [("a", word("x")), ("a", word("y"))])
    says(twice.read_bytes(), "the key 'a' twice")
    long = raw_file(path, 0, (2,), bytes(8), [("a", struct.pack("<IIQ", 9, 0, 1 << 61))])
    says(long.read_bytes(), "cut or damaged")
    nested = raw_file(path, 0, (2,), bytes(8), [("a", struct.pack("<IIQ", 9, 9, 1))])
    says(nested.read_bytes(), "array of unknown kind 9")
    strange = raw_file(path, 0, (2,), bytes(8), [("general.alignment", word("x"))])
    says(strange.read_bytes(), "general.alignment")


@pytest.mark.parametrize(
    "keys, culprit",
    [
        ({"rope.scaling.type": "yarn"}, "llama.rope.scaling.type"),
        ({"expert_count": 8}, "llama.expert_count"),
        ({"rope.scaling.type": "longrope", "rope.scaling.factor": 2.0}, r"llama.rope.scaling"),
        ({"rope.scaling.original_context_length": 9, "rope.scaling.type": "yarn"}, "llama.rope"),
        ({"rope.scaling.factor": 2.0}, "llama.rope.scaling.factor"),
        ({"attention.clamp_kqv": 8.0}, "llama.attention.clamp_kqv"),
        ({"logit_scale": 2.0}, "llama.logit_scale"),
        ({"vocab_size": 7}, "llama.vocab_size"),
    ],
)
def test_a_key_that_is_not_computed_is_refused_by_name(keys, culprit, tmp_path):
    path, _ = written(tmp_path, **keys)
    with pytest.raises(BadModel, match=culprit):
        al.models.load(path)


def test_neutral_keys_pass(tmp_path):
    neutral = {"rope.scaling.type": "none", "rope.scaling.original_context_length": 9}
    path, expected = written(tmp_path, expert_count=0, **neutral)
    assert np.allclose(al.models.load(path).hidden_states(IDS), expected.hidden_states(IDS))


STRETCHED = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64}
FACTORS = np.array([1.0, 3.7], dtype=np.float32)


def test_angles_are_divided_by_one_number_or_by_one_for_each_pair(tmp_path):
    """linear divides all of them; rope_freqs.weight has a divisor for each."""
    _, state, raw = MADE["qwen3"]
    plain = 1e4 ** (-np.arange(0, 4, 2) / 4)
    for more, keys, expected in (
        ({}, {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, plain / 4),
        ({}, {"rope.scaling.type": "linear", "rope.scaling.original_context_length": 9}, plain),
        ({"rope_freqs.weight": FACTORS}, {}, plain / FACTORS.astype(float)),
    ):
        path, plain_model = written(tmp_path, "qwen3", more=more, **keys)
        ours = al.models.load(path)
        assert np.allclose(ours.config.rope_frequencies, expected, rtol=1e-15)
        divisors = (plain / expected).tolist()
        scaling = {"rope_scaling": {"rope_type": "divided", "divisors": divisors}}
        same = al.models.load(state, config={**raw, **scaling})
        away = np.abs(ours.hidden_states(IDS) - same.hidden_states(IDS)).max()
        assert away < 1e-10 * np.abs(same.hidden_states(IDS)).max()
        if divisors != [1, 1]:
            assert not np.allclose(ours.hidden_states(IDS), plain_model.hidden_states(IDS))


def test_factors_of_llama3_are_those_that_the_converter_writes(tmp_path):
    """One for short waves, the factor for long ones, and a blend between, as in the config."""
    from attnlab.models.checkpoints.rotary import read_rotary

    size, low, high, stretch, original = 16, 1.0, 4.0, 8.0, 64
    angles = 1e4 ** (-np.arange(0, size, 2) / size)
    factors = []
    for wave in 2 * np.pi / angles:
        smooth = (original / wave - low) / (high - low)
        middle = 1 / ((1 - smooth) / stretch + smooth)
        factors.append(1.0 if wave < original / high else stretch if wave > original else middle)
    assert 1 < sorted(set(factors))[1] < stretch
    divided = read_rotary({"rope_scaling": {"rope_type": "divided", "divisors": factors}}, size)
    stretched = read_rotary({"rope_scaling": STRETCHED}, size)
    assert np.allclose(divided[1], stretched[1], rtol=1e-14)


@pytest.mark.parametrize(
    "factors", [np.ones(3), np.array([1.0, 0.0]), np.array([1.0, np.inf]), np.array([1.0, -2.0])]
)
def test_divisors_of_angles_that_make_no_sense_are_refused(factors, tmp_path):
    path, _ = written(tmp_path, "qwen3", more={"rope_freqs.weight": factors.astype(np.float32)})
    with pytest.raises(BadModel, match="must be divided by 2 positive numbers"):
        al.models.load(path)


def test_angles_that_are_stretched_twice_or_nowhere_are_refused(tmp_path):
    twice = {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0}
    path, _ = written(tmp_path, "qwen3", more={"rope_freqs.weight": FACTORS}, **twice)
    with pytest.raises(BadModel, match="twice"):
        al.models.load(path)
    path, _ = written(tmp_path, "bert", more={"rope_freqs.weight": FACTORS})
    with pytest.raises(BadModel, match=r"'rope_freqs.weight' in bert.gguf is not computed here"):
        al.models.load(path)
    path, _ = written(tmp_path, "gpt2", **{"rope.scaling.type": "linear"})
    with pytest.raises(BadModel, match=r"gpt2.rope.scaling.type"):
        al.models.load(path)


def test_the_largest_gemma2_divides_scores_by_its_width(monkeypatch, tmp_path):
    """Its 46 layers are the sign; here the tiny model has as many layers as that one."""
    from attnlab.models.checkpoints import gguf_names

    path, expected = written(tmp_path, "gemma2")
    size, shared = expected.config.head_size, expected.config.d / expected.config.heads
    scale = al.models.load(path).parts.layers[0].attention.scale
    assert scale == size**-0.5
    monkeypatch.setattr(gguf_names, "SCALES_BY_WIDTH", expected.config.layers)
    assert al.models.load(path).parts.layers[0].attention.scale == shared**-0.5


def test_a_bert_with_a_causal_mask_and_a_llama_without_are_refused(tmp_path):
    path, _ = written(tmp_path, "bert")
    data = path.read_bytes()
    name = b"bert.attention.causal" + struct.pack("<I", 7)
    assert data.count(name) == 1
    at = data.index(name) + len(name)
    path.write_bytes(data[:at] + b"\x01" + data[at + 1 :])
    with pytest.raises(BadModel, match=r"bert.attention.causal in bert.gguf must be false"):
        al.models.load(path)
    path, _ = written(tmp_path, "llama", **{"attention.causal": False})
    with pytest.raises(BadModel, match=r"llama.attention.causal in llama.gguf must be true"):
        al.models.load(path)


def test_a_part_of_a_head_that_turns_must_be_the_whole_head_in_llama(tmp_path):
    _, state, raw = MADE["llama"]
    import dataclasses

    config = dataclasses.replace(al.models.load(state, config=raw).config, rope_size=1)
    path = tiny_gguf.write(tmp_path / "t.gguf", "llama", state, config, eps=1e-5)
    with pytest.raises(BadModel, match="llama.rope.dimension_count"):
        al.models.load(path)


def test_an_unknown_architecture_or_tensor_is_refused_by_name(tmp_path):
    path = raw_file(
        tmp_path / "t.gguf", 0, (2,), bytes(8), [("general.architecture", word("rwkv"))]
    )
    with pytest.raises(BadModel, match="architecture 'rwkv'"):
        al.models.load(path)
    path = raw_file(
        tmp_path / "t.gguf", 0, (2,), bytes(8), [("general.architecture", word("llama"))]
    )
    with pytest.raises(BadModel, match="The tensor 't' in t.gguf is not computed here"):
        al.models.load(path)


def test_a_spec_names_a_file(tmp_path):
    path, _ = written(tmp_path)
    flow = al.models.flow(
        al.models.load(path), 1, 0, ids=IDS, t_end=0.1, saves=2, limit=False, check=False
    )
    assert np.array_equal(al.run_spec(flow.run.spec).x, flow.run.x)
