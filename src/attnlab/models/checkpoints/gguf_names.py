"""From GGUF to a checkpoint: the keys and names of llama.cpp as the config and the names of Hugging
Face.

Every key of the architecture and every tensor of a layer must be known here, so that no model is
silently computed wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnlab.models.checkpoints.gguf_file import GgufFile
from attnlab.models.checkpoints.record import BadModel

Change = Callable[[np.ndarray], np.ndarray]


def _transpose(matrix: np.ndarray) -> np.ndarray:
    """The Conv1D of GPT-2 is (in, out)."""
    return matrix.T


def _without_one(gain: np.ndarray) -> np.ndarray:
    """Gemma's gain is 1 + w, and the file has the sum."""
    return np.asarray(gain, dtype=float) - 1


@dataclass(frozen=True)
class Architecture:
    """How one architecture of llama.cpp is written in Hugging Face's words.

    keys      : {key of the file, without the architecture: key of config.json}
    tensors   : {name: name}, both without .weight and .bias; {} is the number of the layer
    changes   : {name in the file: what is done to the weight}
    config    : what the file need not say
    ignored   : keys and tensors of task heads
    is_causal : what attention.causal must be
    """

    model_type: str
    keys: Mapping[str, str]
    tensors: Mapping[str, str]
    changes: Mapping[str, Change] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    is_causal: bool = True

    @property
    def is_rotary(self) -> bool:
        """Whether queries and keys turn with their place."""
        return "rope.freq_base" in self.keys


_SIZES = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
}
_RMS = {
    **_SIZES,
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
}
_WIDE = {**_RMS, "attention.key_length": "head_dim"}
_LLAMA = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "blk.{}.attn_norm": "model.layers.{}.input_layernorm",
    "blk.{}.attn_q": "model.layers.{}.self_attn.q_proj",
    "blk.{}.attn_k": "model.layers.{}.self_attn.k_proj",
    "blk.{}.attn_v": "model.layers.{}.self_attn.v_proj",
    "blk.{}.attn_output": "model.layers.{}.self_attn.o_proj",
    "blk.{}.ffn_norm": "model.layers.{}.post_attention_layernorm",
    "blk.{}.ffn_gate": "model.layers.{}.mlp.gate_proj",
    "blk.{}.ffn_up": "model.layers.{}.mlp.up_proj",
    "blk.{}.ffn_down": "model.layers.{}.mlp.down_proj",
}

ARCHITECTURES = {
    # the rows of queries and keys are put so that neighbours turn together
    "llama": Architecture("llama", _WIDE, _LLAMA, config={"rope_pairs": "neighbours"}),
    "qwen2": Architecture("qwen2", _RMS, _LLAMA),
    "qwen3": Architecture(
        "qwen3",
        _WIDE,
        {
            **_LLAMA,
            "blk.{}.attn_q_norm": "model.layers.{}.self_attn.q_norm",
            "blk.{}.attn_k_norm": "model.layers.{}.self_attn.k_norm",
        },
    ),
    "gemma": Architecture(
        "gemma",
        _WIDE,
        _LLAMA,
        dict.fromkeys(("output_norm", "blk.{}.attn_norm", "blk.{}.ffn_norm"), _without_one),
    ),
    "gemma2": Architecture(
        "gemma2",
        {
            **_WIDE,
            "attn_logit_softcapping": "attn_logit_softcapping",
            "attention.sliding_window": "sliding_window",
        },
        {
            **_LLAMA,
            "blk.{}.post_attention_norm": "model.layers.{}.post_attention_layernorm",
            "blk.{}.ffn_norm": "model.layers.{}.pre_feedforward_layernorm",
            "blk.{}.post_ffw_norm": "model.layers.{}.post_feedforward_layernorm",
        },
        dict.fromkeys(
            (
                "output_norm",
                *(
                    f"blk.{{}}.{name}_norm"
                    for name in ("attn", "post_attention", "ffn", "post_ffw")
                ),
            ),
            _without_one,
        ),
        ignored=("final_logit_softcapping",),
    ),
    "bert": Architecture(
        "bert",
        {
            **{key: _SIZES[key] for key in _SIZES if key != "attention.head_count_kv"},
            "attention.layer_norm_epsilon": "layer_norm_eps",
        },
        {
            "token_embd": "embeddings.word_embeddings",
            "position_embd": "embeddings.position_embeddings",
            "token_types": "embeddings.token_type_embeddings",
            "token_embd_norm": "embeddings.LayerNorm",
            "blk.{}.attn_q": "encoder.layer.{}.attention.self.query",
            "blk.{}.attn_k": "encoder.layer.{}.attention.self.key",
            "blk.{}.attn_v": "encoder.layer.{}.attention.self.value",
            "blk.{}.attn_output": "encoder.layer.{}.attention.output.dense",
            "blk.{}.attn_output_norm": "encoder.layer.{}.attention.output.LayerNorm",
            "blk.{}.ffn_up": "encoder.layer.{}.intermediate.dense",
            "blk.{}.ffn_down": "encoder.layer.{}.output.dense",
            "blk.{}.layer_output_norm": "encoder.layer.{}.output.LayerNorm",
        },
        ignored=("pooling_type", "classifier.output_labels", "cls", "cls.output"),
        is_causal=False,
    ),
    "phi2": Architecture(
        "phi",
        {
            **_SIZES,
            "attention.layer_norm_epsilon": "layer_norm_eps",
            "rope.freq_base": "rope_theta",
        },
        {
            **{name: _LLAMA[name] for name in _LLAMA if "ffn" not in name},
            "output_norm": "model.final_layernorm",
            "blk.{}.attn_output": "model.layers.{}.self_attn.dense",
            "blk.{}.ffn_up": "model.layers.{}.mlp.fc1",
            "blk.{}.ffn_down": "model.layers.{}.mlp.fc2",
        },
    ),
    "phi3": Architecture(
        "phi3",
        {**_RMS, "attention.sliding_window": "sliding_window"},
        {
            **{name: _LLAMA[name] for name in _LLAMA if name[-2:] not in ("_q", "_k", "_v")},
            "blk.{}.attn_qkv": "model.layers.{}.self_attn.qkv_proj",
            "blk.{}.ffn_up": "model.layers.{}.mlp.gate_up_proj",
        },
    ),
    "gpt2": Architecture(
        "gpt2",
        {
            "block_count": "n_layer",
            "context_length": "n_positions",
            "embedding_length": "n_embd",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
        },
        {
            "token_embd": "wte",
            "position_embd": "wpe",
            "output_norm": "ln_f",
            "blk.{}.attn_norm": "h.{}.ln_1",
            "blk.{}.attn_qkv": "h.{}.attn.c_attn",
            "blk.{}.attn_output": "h.{}.attn.c_proj",
            "blk.{}.ffn_norm": "h.{}.ln_2",
            "blk.{}.ffn_up": "h.{}.mlp.c_fc",
            "blk.{}.ffn_down": "h.{}.mlp.c_proj",
        },
        dict.fromkeys(
            ("blk.{}.attn_qkv", "blk.{}.attn_output", "blk.{}.ffn_up", "blk.{}.ffn_down"),
            _transpose,
        ),
    ),
}

CHECKED = ("rope.dimension_count", "attention.value_length", "vocab_size", "attention.causal")
"""Keys that `_config_of` compares with the rest."""

ANGLES = "rope_freqs.weight"
"""The numbers by which the angles of the rotary positions are divided (Llama 3)."""

SCALES_BY_WIDTH = 46
"""The layers of Gemma 2 27B, whose scores are divided by sqrt(d / heads). No key says it."""


class GgufTensors(Mapping[str, np.ndarray]):
    """The tensors of a GGUF file under the names of Hugging Face."""

    def __init__(self, file: GgufFile, architecture: Architecture):
        self._file, self._where = file, dict[str, tuple[str, Change | None]]()
        for name in file:
            stem, _, end = name.rpartition(".")
            layer = re.match(r"blk\.(\d+)\.", stem)
            pattern = stem if layer is None else "blk.{}." + stem[layer.end() :]
            new = architecture.tensors.get(pattern)
            if new is None or end not in ("weight", "bias"):
                if stem in ("output", *architecture.ignored):
                    continue  # the head for the next word, or for a task
                if name == ANGLES and architecture.is_rotary:
                    continue  # the config has them
                raise BadModel(
                    f"The tensor {name[:80]!r} in {file.path.name} is not computed here for the"
                    f" architecture {architecture.model_type}, so hidden states would be wrong."
                )
            change = architecture.changes.get(pattern) if end == "weight" else None
            full = new if layer is None else new.format(layer[1])
            self._where[f"{full}.{end}"] = (name, change)

    def __getitem__(self, name: str) -> np.ndarray:
        source, change = self._where[name]
        array = self._file[source]
        return array if change is None else change(array)

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)


def checkpoint_of(file: GgufFile) -> tuple[GgufTensors, dict[str, Any]]:
    """Return the tensors and the config of a GGUF file in Hugging Face's words."""
    said = file.fields.get("general.architecture")
    if not isinstance(said, str) or said not in ARCHITECTURES:
        raise BadModel(
            f"{file.path.name} has the architecture {str(said)[:40]!r}, which is not read from GGUF"
            f" here. Known: {', '.join(ARCHITECTURES)}. Load the model from safetensors instead."
        )
    if file.fields.get("split.count", 1) not in (0, 1):
        raise BadModel(
            f"{file.path.name} is one of {file.fields['split.count']} parts. Join them first, with"
            " the program llama-gguf-split --merge."
        )
    architecture = ARCHITECTURES[said]
    return GgufTensors(file, architecture), _config_of(file, said, architecture)


def _config_of(file: GgufFile, said: str, architecture: Architecture) -> dict[str, Any]:
    raw: dict[str, Any] = {"model_type": architecture.model_type, **architecture.config}
    own = {
        key.removeprefix(said + "."): value
        for key, value in file.fields.items()
        if key.startswith(said + ".")
    }
    for key, value in own.items():
        if key in architecture.keys:
            raw[architecture.keys[key]] = value
        elif key not in (*CHECKED, *architecture.ignored) and not (
            _is_neutral(own, key) or architecture.is_rotary and _is_linear(own, key)
        ):
            raise BadModel(
                f"{said}.{key} in {file.path.name} is {str(value)[:60]!r}. It is not computed here,"
                " so hidden states would be wrong. Load the model from safetensors instead."
            )
    for name, key in (("token_embd", "vocab_size"), ("token_types", "type_vocab_size")):
        if f"{name}.weight" in file:
            raw[key] = file[f"{name}.weight"].shape[0]
    _complete(file, said, own, raw, architecture.is_causal)
    if architecture.is_rotary and (ANGLES in file or _is_linear(own)):
        raw["rope_scaling"] = _angles_of(file, own)
    return raw


def _angles_of(file: GgufFile, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the angles of the rotary positions are stretched for longer texts."""
    factor = own.get("rope.scaling.factor", 1.0) if _is_linear(own) else 1.0
    if ANGLES not in file:
        return {"rope_type": "linear", "factor": factor}
    if factor != 1:
        raise BadModel(
            f"{file.path.name} stretches the angles of its rotary positions twice, by"
            " rope.scaling.factor and by the tensor rope_freqs.weight. That is not computed here."
            " Load the model from safetensors instead."
        )
    return {"rope_type": "divided", "divisors": file[ANGLES].astype(float).ravel().tolist()}


def _is_neutral(own: Mapping[str, Any], key: str) -> bool:
    """Whether a key that is not read changes nothing."""
    is_stretched = own.get("rope.scaling.type", "none") != "none"
    if key in ("rope.scaling.type", "rope.scaling.original_context_length"):
        return not is_stretched  # the length alone is a note; factors would be tensors
    zero = ("expert_count", "expert_used_count", "attention.sliding_window")
    return key in zero and own[key] == 0


def _is_linear(own: Mapping[str, Any], key: str = "rope.scaling.type") -> bool:
    """Whether all angles of the rotary positions are divided by one factor, and the key is part of
    that.
    """
    parts = ("rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length")
    return own.get("rope.scaling.type") == "linear" and key in parts


def _complete(
    file: GgufFile, said: str, own: Mapping[str, Any], raw: dict[str, Any], is_causal: bool
) -> None:
    """Check the keys that must agree with others; write what the file does not say itself: the
    rotated part of a head, and what scores are divided by.
    """
    heads, d = raw.get("num_attention_heads"), raw.get("hidden_size")
    shared = d // heads if isinstance(heads, int) and isinstance(d, int) and heads > 0 else None
    size = raw.get("head_dim") or shared
    rotated, width = own.get("rope.dimension_count", size), own.get("attention.value_length", size)
    if said == "phi2" and isinstance(size, int) and isinstance(rotated, int) and size > 0:
        raw["partial_rotary_factor"] = rotated / size
        rotated = size
    if said.startswith("gemma"):
        raw["head_dim"] = size
    if said == "gemma2":
        by_width = raw.get("num_hidden_layers") == SCALES_BY_WIDTH
        raw["query_pre_attn_scalar"] = shared if by_width else size
    if own.get("attention.causal", True) is not is_causal:
        raise BadModel(
            f"{said}.attention.causal in {file.path.name} must be {str(is_causal).lower()}, found"
            f" {str(own.get('attention.causal', 'no such key'))[:40]}. Another mask is not computed"
            f" here for the architecture {said}."
        )
    wrong = {
        "rope.dimension_count": rotated != size,
        "attention.value_length": width != size,
        "vocab_size": own.get("vocab_size", raw.get("vocab_size")) != raw.get("vocab_size"),
    }
    for key, is_wrong in wrong.items():
        if is_wrong:
            raise BadModel(
                f"{said}.{key} in {file.path.name} is {str(own.get(key))[:40]!r}, which does not go"
                f" with its other sizes (heads of {size}). That is not computed here."
            )
