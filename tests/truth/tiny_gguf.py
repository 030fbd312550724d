"""Tiny checkpoints as GGUF files, written by the library `gguf` with its own table of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tiny_models
from tiny_maker import State

TOKENS = [
    "<s>",
    "</s>",
    "Ġ",
    "t",
    "h",
    "e",
    "c",
    "a",
    "th",
    "the",
    "Ġthe",
    "Ġc",
    "Ġca",
    "at",
    "Ġcat",
    "b",
    "d",
    "f",
    "g",
]
MERGES = ["t h", "th e", "Ġ the", "Ġ c", "Ġc a", "a t", "Ġca t"]
BYTE_LEVEL = {
    "model": "gpt2",
    "pre": "gpt-2",
    "tokens": TOKENS,
    "merges": MERGES,
    "token_type": [3, 3] + [1] * (len(TOKENS) - 2),
    "bos_token_id": 0,
    "add_bos_token": True,
}
"""The fields of a tokenizer, without tokenizer.ggml."""


def checkpoints() -> dict[str, tuple[str, State, dict[str, Any]]]:
    """{name of llama.cpp: (its family here, state, config)}."""
    made = {"qwen2": tiny_models.llama(), "llama": tiny_models.llama(), "gpt2": tiny_models.gpt2()}
    made |= {name: tiny_models.MAKERS[name]() for name in ("qwen3", "gemma", "phi3", "gemma2")}
    made["bert"] = tiny_models.bert("")
    width = made["gemma2"][1]["head_dim"]  # no key of the format has another number
    made["gemma2"] = made["gemma2"][0], {**made["gemma2"][1], "query_pre_attn_scalar": width}
    state, raw = tiny_models.MAKERS["phi"]()
    plain = {
        name: array
        for name, array in state.items()
        if "_layernorm" not in name or ".self_" not in name
    }
    made["phi2"] = plain, {**raw, "qk_layernorm": False, "partial_rotary_factor": 0.5}
    made["qwen2"] = made["qwen2"][0], {**made["qwen2"][1], "model_type": "qwen2"}
    for state in (made["gemma"][0], made["gemma2"][0]):
        for name, array in state.items():
            if "norm" in name:  # 1 + w must not be rounded
                state[name] = np.round(array * 1024) / np.float32(1024)
    return {name: (raw["model_type"], state, raw) for name, (state, raw) in made.items()}


def write(path: Path, arch: str, state: State, config: Any, **keys: Any) -> Path:
    """Write the file as the converter of llama.cpp does. `config` is the record of the model.

    tokenizer: its fields; more: tensors beside those of the model; other keys: of the architecture.
    """
    import gguf

    writer = gguf.GGUFWriter(path, arch)
    numbers = {
        "block_count": config.layers,
        "context_length": config.length,
        "embedding_length": config.d,
        "feed_forward_length": config.hidden,
        "attention.head_count": config.heads,
        "attention.head_count_kv": config.kv_heads,
        "attention.key_length": config.head_size,
        "attention.value_length": config.head_size,
        "rope.dimension_count": config.rope_size,
    }
    if arch in ("gpt2", "bert", "qwen2", "phi2", "phi3"):
        del numbers["attention.key_length"], numbers["attention.value_length"]
    if arch in ("gpt2", "bert"):
        del numbers["attention.head_count_kv"], numbers["rope.dimension_count"]
    for key, value in numbers.items():
        writer.add_uint32(f"{arch}.{key}", value)
    kind = "layer_norm_epsilon" if arch in ("gpt2", "phi2", "bert") else "layer_norm_rms_epsilon"
    writer.add_float32(f"{arch}.attention.{kind}", keys.pop("eps"))
    if config.rope_theta:
        writer.add_float32(f"{arch}.rope.freq_base", config.rope_theta)
    if config.window:
        writer.add_uint32(f"{arch}.attention.sliding_window", config.window)
    if arch == "bert":
        writer.add_causal_attention(False)
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    if arch == "gemma2":
        writer.add_attn_logit_softcapping(3.0)
        writer.add_final_logit_softcapping(30.0)
    tokenizer = keys.pop("tokenizer", BYTE_LEVEL)
    more = keys.pop("more", {})
    for key, value in keys.items():
        add = {
            int: writer.add_uint32,
            float: writer.add_float32,
            str: writer.add_string,
            bool: writer.add_bool,
        }
        add[type(value)](f"{arch}.{key}", value)
    put_fields(writer, tokenizer)
    kinds = {name: one for one, name in gguf.MODEL_ARCH_NAMES.items()}
    table = gguf.get_tensor_name_map(kinds[arch], config.layers)
    for name, array in state.items():
        new = table.get_name(name, try_suffixes=(".weight", ".bias"))
        assert new is not None, name
        writer.add_tensor(new, np.ascontiguousarray(_converted(arch, name, array, config)))
    for name, array in more.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def put_fields(writer: Any, tokenizer: dict[str, Any]) -> None:
    """Write the fields of a tokenizer, without tokenizer.ggml., with the writer of `gguf`."""
    add = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        str: writer.add_string,
        list: writer.add_array,
    }
    for key, value in tokenizer.items():
        add[type(value)](f"tokenizer.ggml.{key}", value)


def _converted(arch: str, name: str, array: np.ndarray, config: Any) -> np.ndarray:
    """What the converter does to a tensor: pairs of coordinates that turn together become
    neighbours, gains have their 1, matrices are (out, in).
    """
    if arch == "llama" and ("q_proj" in name or "k_proj" in name):
        heads = config.heads if "q_proj" in name else config.kv_heads
        halves = array.reshape(heads, 2, config.head_size // 2, *array.shape[1:])
        return halves.swapaxes(1, 2).reshape(array.shape)
    if arch in ("gemma", "gemma2") and "norm" in name:
        return array + 1
    if arch == "gpt2" and array.ndim == 2 and ".c_" in name:
        return array.T
    return array
