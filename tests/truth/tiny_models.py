"""Tiny random checkpoints in the layout of every family, made without any library, and the raw
formats written by hand.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from tiny_families import MORE
from tiny_maker import HEADS, HIDDEN, LAYERS, LENGTH, SIZES, WORDS, D, Maker, State
from tiny_objects import hooked_transformer, torch_encoder


def bert(
    prefix: str = "bert.", width: int = D, layers: int = LAYERS, heads: int = HEADS
) -> tuple[State, dict[str, Any]]:
    make = Maker()
    _embedding(make, prefix, width, kinds=2)
    for l in range(layers):
        at = f"{prefix}encoder.layer.{l}."
        for name in ("query", "key", "value"):
            make.linear(f"{at}attention.self.{name}", D, D)
        make.linear(f"{at}attention.output.dense", D, D)
        make.norm(f"{at}attention.output.LayerNorm")
        make.linear(f"{at}intermediate.dense", HIDDEN, D)
        make.linear(f"{at}output.dense", D, HIDDEN)
        make.norm(f"{at}output.LayerNorm")
    return make.state, {
        "model_type": "bert",
        **SIZES,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }


def albert(prefix: str = "") -> tuple[State, dict[str, Any]]:
    make = Maker()
    _embedding(make, prefix, 6, kinds=2)
    make.linear(f"{prefix}encoder.embedding_hidden_mapping_in", D, 6)
    at = f"{prefix}encoder.albert_layer_groups.0.albert_layers.0."
    for name in ("query", "key", "value", "dense"):
        make.linear(f"{at}attention.{name}", D, D)
    make.norm(f"{at}attention.LayerNorm")
    make.linear(f"{at}ffn", HIDDEN, D)
    make.linear(f"{at}ffn_output", D, HIDDEN)
    make.norm(f"{at}full_layer_layer_norm")
    return make.state, {
        "model_type": "albert",
        "embedding_size": 6,
        **SIZES,
        "num_hidden_layers": 3,
    }


def distilbert() -> tuple[State, dict[str, Any]]:
    make = Maker()
    _embedding(make, "", D, kinds=0)
    for l in range(LAYERS):
        at = f"transformer.layer.{l}."
        for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
            make.linear(f"{at}attention.{name}", D, D)
        make.norm(f"{at}sa_layer_norm")
        make.linear(f"{at}ffn.lin1", HIDDEN, D)
        make.linear(f"{at}ffn.lin2", D, HIDDEN)
        make.norm(f"{at}output_layer_norm")
    raw = {"model_type": "distilbert", "dim": D, "n_heads": HEADS, "n_layers": LAYERS, "hidden_dim": HIDDEN, "vocab_size": WORDS,
           "max_position_embeddings": LENGTH, "activation": "gelu"}  # fmt: skip
    return make.state, raw


def gpt2() -> tuple[State, dict[str, Any]]:
    make = Maker()
    make.put("wte.weight", WORDS, D)
    make.put("wpe.weight", LENGTH, D)
    for l in range(LAYERS):
        at = f"h.{l}."
        make.norm(f"{at}ln_1")
        make.norm(f"{at}ln_2")
        maps = {
            "attn.c_attn": (D, 3 * D),
            "attn.c_proj": (D, D),
            "mlp.c_fc": (D, HIDDEN),
            "mlp.c_proj": (HIDDEN, D),
        }
        for name, (inputs, outputs) in maps.items():
            make.put(f"{at}{name}.weight", inputs, outputs)
            make.put(f"{at}{name}.bias", outputs)
    make.norm("ln_f")
    raw = {"model_type": "gpt2", "n_embd": D, "n_head": HEADS, "n_layer": LAYERS, "n_inner": HIDDEN, "n_positions": LENGTH,
           "vocab_size": WORDS}  # fmt: skip
    return make.state, raw


def llama(heads: int = 6, kv_heads: int = 2) -> tuple[State, dict[str, Any]]:
    make = Maker()
    narrow = D // heads * kv_heads
    make.put("model.embed_tokens.weight", WORDS, D, scale=1.0)
    for l in range(LAYERS):
        at = f"model.layers.{l}."
        for name, rows in (("q", D), ("k", narrow), ("v", narrow), ("o", D)):
            make.put(f"{at}self_attn.{name}_proj.weight", rows, D)
        make.put(f"{at}mlp.gate_proj.weight", HIDDEN, D)
        make.put(f"{at}mlp.up_proj.weight", HIDDEN, D)
        make.put(f"{at}mlp.down_proj.weight", D, HIDDEN)
        make.put(f"{at}input_layernorm.weight", D, mean=1.0)
        make.put(f"{at}post_attention_layernorm.weight", D, mean=1.0)
    make.put("model.norm.weight", D, mean=1.0)
    raw = {
        "model_type": "llama",
        **SIZES,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-5,
    }
    return make.state, raw


def gpt_neox() -> tuple[State, dict[str, Any]]:
    make = Maker()
    make.put("gpt_neox.embed_in.weight", WORDS, D)
    for l in range(LAYERS):
        at = f"gpt_neox.layers.{l}."
        make.linear(f"{at}attention.query_key_value", 3 * D, D)
        make.linear(f"{at}attention.dense", D, D)
        make.linear(f"{at}mlp.dense_h_to_4h", HIDDEN, D)
        make.linear(f"{at}mlp.dense_4h_to_h", D, HIDDEN)
        make.norm(f"{at}input_layernorm")
        make.norm(f"{at}post_attention_layernorm")
    make.norm("gpt_neox.final_layer_norm")
    return make.state, {"model_type": "gpt_neox", **SIZES, "rotary_pct": 0.5}


MAKERS = {
    "bert": bert,
    "albert": albert,
    "distilbert": distilbert,
    "gpt2": gpt2,
    "llama": llama,
    "gpt_neox": gpt_neox,
    "hooked_transformer": hooked_transformer,
    "torch_encoder": torch_encoder,
    **MORE,
}

VECTORS = np.random.default_rng(5).standard_normal((WORDS, D))


def given(model: Any, ids: Any) -> Any:
    """What a tiny model reads: the ids, or one vector for each in a model without an embedding."""
    return np.asarray(ids) if model.parts.embedding is not None else VECTORS[np.asarray(ids)]


def write_folder(folder: Path, state: State, raw: dict[str, Any]) -> Path:
    """config.json and model.safetensors, the latter written by hand."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(raw))
    (folder / "model.safetensors").write_bytes(safetensors(state))
    return folder


def safetensors(state: State) -> bytes:
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in state.items():
        kind = {"f4": "F32", "f8": "F64", "f2": "F16", "i8": "I64"}[array.dtype.str[1:]]
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }  # type: ignore
        data += array.tobytes()
    return with_header(json.dumps(header).encode(), data)


def with_header(text: bytes, data: bytes = b"") -> bytes:
    return len(text).to_bytes(8, "little") + text + data


def llama2c(state: State, raw: dict[str, Any]) -> bytes:
    """The same Llama as a raw file: rows of queries and keys are put so that neighbours are what
    the halves were.
    """
    heads, kv_heads, layers = (
        raw["num_attention_heads"],
        raw["num_key_value_heads"],
        raw["num_hidden_layers"],
    )
    sizes = [D, HIDDEN, layers, heads, kv_heads, WORDS, LENGTH]
    found = {name.removeprefix("model."): array for name, array in state.items()}

    def all_layers(name: str) -> bytes:
        return b"".join(found[f"layers.{l}.{name}.weight"].tobytes() for l in range(layers))

    def neighbours(name: str, count: int) -> bytes:
        blocks = [
            found[f"layers.{l}.{name}.weight"].reshape(count, 2, -1, D).swapaxes(1, 2)
            for l in range(layers)
        ]
        return b"".join(np.ascontiguousarray(block).tobytes() for block in blocks)

    return b"".join([
        struct.pack("<7i", *sizes), found["embed_tokens.weight"].tobytes(), all_layers("input_layernorm"),
        neighbours("self_attn.q_proj", heads), neighbours("self_attn.k_proj", kv_heads),
        all_layers("self_attn.v_proj"), all_layers("self_attn.o_proj"), all_layers("post_attention_layernorm"),
        all_layers("mlp.gate_proj"), all_layers("mlp.down_proj"), all_layers("mlp.up_proj"), found["norm.weight"].tobytes(),
    ])  # fmt: skip


def onnx(state: State, layers: int) -> bytes:
    """An ALBERT as an ONNX file: linear maps are transposed, nameless, and named through the nodes
    that use them.
    """
    nodes, weights = b"", b""
    for number, (name, array) in enumerate(state.items()):
        if name.endswith(".weight") and array.ndim == 2 and "embeddings." not in name:
            path = "/" + name.removesuffix(".weight").replace(
                ".albert_layer_groups.0.albert_layers.0", "@"
            ).replace(".", "/")
            path = path.replace("@", "/albert_layer_groups.0/albert_layers.0")
            for use in range(layers if "layers" in name else 1):
                label = f"{path}/MatMul" + (f"_{use}" if use else "")
                nodes += field(
                    1,
                    field(1, f"x{use}")
                    + field(1, f"onnx::MatMul_{number}")
                    + field(3, label)
                    + field(4, "MatMul"),
                )
            name, array = f"onnx::MatMul_{number}", np.ascontiguousarray(array.T)
        shape = b"".join(varint(1 << 3) + varint(size) for size in array.shape)
        weights += field(
            5, shape + varint(2 << 3) + varint(1) + field(8, name) + field(9, array.tobytes())
        )
    decoder = field(
        5, b"\x08\x05\x10\x01" + field(8, "decoder") + field(9, b"0" * 20)
    )  # five floats of something else
    return varint(1 << 3) + varint(8) + field(7, nodes + weights + decoder)


def field(number: int, body: bytes | str) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    return varint(number << 3 | 2) + varint(len(body)) + body


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _embedding(make: Maker, prefix: str, width: int, kinds: int) -> None:
    make.put(f"{prefix}embeddings.word_embeddings.weight", WORDS, width)
    make.put(f"{prefix}embeddings.position_embeddings.weight", LENGTH, width)
    if kinds:
        make.put(f"{prefix}embeddings.token_type_embeddings.weight", kinds, width)
    make.norm(f"{prefix}embeddings.LayerNorm", width)


TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                  {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                       "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                       "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]},
                                          "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}},
    "model": {"type": "WordLevel", "unk_token": "[UNK]",
              "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "the": 3, "cat": 4, "sat": 5}},
}  # fmt: skip
