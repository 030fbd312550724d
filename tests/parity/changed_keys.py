"""Other plausible values of a key of a config.json, and the original implementation with such a value."""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import transformers
from checkpoints import CHECKPOINTS, fill

ABOUT_THE_FILE = {
    "model_type", "transformers_version", "architectures", "_name_or_path", "dtype", "torch_dtype", "attn_implementation",
    "_attn_implementation", "experts_implementation", "_experts_implementation", "return_dict", "output_hidden_states",
    "output_attentions", "id2label", "label2id", "auto_map",
}  # fmt: skip
"""Keys that name the checkpoint, its task, or the form of what a call returns."""

ACTIVATIONS = ["gelu", "gelu_new", "relu", "silu", "quick_gelu", "tanh", "gelu_fast", "mish"]
WORDS: dict[str, list[Any]] = {
    "position_embedding_type": ["absolute", "rotary", "rope", "relative_key", "relative_key_query"],
    "feed_forward_proj": ["relu", "gated-gelu", "gated-silu", "gelu", "gated-relu"],
    "norm_rel_ebd": ["none", "layer_norm"],
    "pos_att_type": [["c2p"], ["p2c"], ["c2p", "p2c"], ["p2p"], []],
    "layer_types": [["full_attention"], ["sliding_attention"], ["chunked_attention"], ["linear_attention"]],
    "attention_types": [[[["global"], 3]], [[["local"], 3]], [[["local", "global", "global"], 1]]],
    "classifier_pooling": ["mean", "cls"],
}  # fmt: skip
UNSET: list[Any] = [
    True,
    1,
    2,
    4,
    0.5,
    2.0,
    "gelu",
    [1, 1, 1],
    {"rope_type": "linear", "factor": 2.0},
]
"""Tried where a key is null."""

ANGLES: list[dict[str, Any]] = [
    {"rope_type": "linear", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}, {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "llama3", "factor": 4, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 9},
    {"rope_theta": 77.0}, {"partial_rotary_factor": 0.5}, {"partial_rotary_factor": 1.0},
]  # fmt: skip


def other_values(key: str, value: Any, layers: int) -> Iterator[Any]:
    """Yield values of the same type, or of several types for null."""
    if key in WORDS:
        found = WORDS[key]
        if key == "layer_types":
            found = [layers * kind for kind in found] + [[*found[1], *(layers - 1) * found[0]]]
        yield from found
    elif key in ("rope_parameters", "rope_scaling") or (
        isinstance(value, Mapping) and "rope_type" in value
    ):
        yield from _other_angles(value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, 2 * value, max(value // 2, 1))
    elif isinstance(value, float):
        yield from (1.5 * value if value else 0.25, 0.3 * value if value else 0.5)
    elif isinstance(value, str):
        yield from ACTIVATIONS if value in ACTIVATIONS or "act" in key else [value + "x"]
    elif isinstance(value, list):
        yield from (value[::-1], value[:1], [*value, *value[-1:]], [])
    elif isinstance(value, Mapping):
        yield from (
            {**value, inner: other}
            for inner in value
            for other in other_values(inner, value[inner], layers)
        )
    else:
        yield from ACTIVATIONS if "act" in key else UNSET


def _other_angles(value: Any) -> Iterator[Any]:
    table = value if isinstance(value, Mapping) else {}
    inner = [kind for kind, one in table.items() if isinstance(one, Mapping)]
    for angles in ANGLES:
        if inner:
            yield from ({**table, kind: {**table[kind], **angles}} for kind in inner)
        else:
            yield {**table, **angles}


def config_of(name: str) -> tuple[str, dict[str, Any]]:
    """Return the name of the classes of a tiny checkpoint, and its config.json."""
    kind, sizes = CHECKPOINTS[name]
    config = getattr(transformers, kind + "Config")(**sizes, attn_implementation="eager")
    return kind, config.to_dict()


def keys_of(kind: str, raw: Mapping[str, Any]) -> list[str]:
    """Return the keys of the config, those under which it knows the same numbers, and those that the model's code reads."""
    code = inspect.getsource(sys.modules[getattr(transformers, kind + "Model").__module__])
    read = re.findall(r"config\.([a-z]\w*)\b(?!\()", code) + re.findall(r'config, "(\w+)"', code)
    aliases = getattr(transformers, kind + "Config").attribute_map
    return [
        key for key in dict.fromkeys([*raw, *aliases, *sorted(read)]) if key not in ABOUT_THE_FILE
    ]


def changed(
    kind: str, raw: Mapping[str, Any], weights: Mapping[str, torch.Tensor] | None = None
) -> Any:
    """Return the model with this config, with `weights` where names and shapes agree and random ones elsewhere."""
    config = getattr(transformers, kind + "Config").from_dict(
        copy.deepcopy(dict(raw)), attn_implementation="eager"
    )
    model = getattr(transformers, kind + "Model")(config).eval().double()
    fill(model)
    own = model.state_dict()
    if weights is not None:
        same = {
            name: tensor
            for name, tensor in weights.items()
            if name in own and own[name].shape == tensor.shape
        }
        model.load_state_dict({**own, **same})
    return model
