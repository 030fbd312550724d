"""Models of transformers, written as GGUF files by the library `gguf`, are the originals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import attnlab as al
import tiny_gguf

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gguf")

from checkpoints import GEMMA, LLAMA, STRETCHED, WIDE, make_of  # noqa: E402
from double import in_double  # noqa: E402

pytestmark = pytest.mark.parity

ARCHITECTURES = {
    "bert": ("Bert", WIDE, 1e-12, {}),
    "gemma2": ("Gemma2", {**GEMMA, "query_pre_attn_scalar": 10, "attn_logit_softcapping": 3.0, "sliding_window": 4}, 1e-6, {}),
    "llama": ("Llama", {**LLAMA, "rope_parameters": STRETCHED}, 1e-6, STRETCHED),
}  # fmt: skip


def factors_of(scaling, size):
    """What the converter of llama.cpp writes for Llama 3."""
    theta, original = scaling["rope_theta"], scaling["original_max_position_embeddings"]
    low, high, stretch = (scaling[f"{name}factor"] for name in ("low_freq_", "high_freq_", ""))
    found = []
    for angle in theta ** (-np.arange(0, size, 2) / size):
        wave = 2 * math.pi / angle
        smooth = (original / wave - low) / (high - low)
        middle = 1 / ((1 - smooth) / stretch + smooth)
        found.append(
            1.0 if wave < original / high else stretch if wave > original / low else middle
        )
    return np.array(found)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_gguf_file_is_the_original(arch, tmp_path, capsys):
    kind, sizes, eps, scaling = ARCHITECTURES[arch]
    ids = np.random.default_rng(0).integers(3, 61, size=(2, 11))
    with in_double():
        model = make_of(kind, sizes)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                is_gain = "norm" in name and arch == "gemma2"  # 1 + w must not be rounded
                rounded = (parameter * 1024).round() / 1024 if is_gain else parameter
                parameter.copy_(rounded.to(torch.float16 if is_gain else torch.bfloat16))
        model = model.double()
        with torch.no_grad():
            out = model(torch.tensor(ids), output_hidden_states=True, output_attentions=True)
    hidden, looks = (torch.stack(x, 1).numpy() for x in (out.hidden_states, out.attentions))
    state = {
        name: tensor.numpy().astype(np.float32)
        for name, tensor in model.state_dict().items()
        if "pooler" not in name and "position_ids" not in name
    }
    config = al.models.load(model).config
    more = {}
    if scaling:
        more["rope_freqs.weight"] = factors_of(scaling, config.head_size).astype(np.float32)
    path = tiny_gguf.write(tmp_path / "t.gguf", arch, state, config, eps=eps, more=more)
    ours = al.models.load(path)
    states, attention = ours.hidden_states(ids), ours.attention(ids)
    away = max(
        np.abs(states - hidden).max() / np.abs(hidden).max(), np.abs(attention - looks).max()
    )
    with capsys.disabled():
        print(f"\n  {arch} through GGUF: {away:.1e}", end="")
    assert away < (1e-6 if scaling else 1e-10)  # the factors are numbers of single precision
    if scaling:
        plain = al.models.load(tiny_gguf.write(path, arch, state, config, eps=eps))
        assert np.abs(plain.hidden_states(ids) - hidden).max() > 1e-3 * np.abs(hidden).max()
