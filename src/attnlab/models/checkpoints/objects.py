"""Models that other libraries have in memory, as a state dict and a config: those of transformers,
of TransformerLens and of torch.nn. No library is imported: an object is known by its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.models.checkpoints.record import BadModel


def describe_object(model: Any) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return (state dict, config) of a model in memory. Raises TypeError for one that is not
    known.
    """
    if hasattr(model, "original_model"):
        return _from_bridge(model)
    kind = type(model).__name__
    if hasattr(model, "cfg") and hasattr(model, "blocks"):
        if all(one.__name__ != "HookedTransformer" for one in type(model).__mro__):
            raise TypeError(
                f"Of TransformerLens only HookedTransformer is read here, got {kind}. Load the model"
                " of transformers that it was made from."
            )
        return model.state_dict(), {"model_type": "hooked_transformer", **plain(model.cfg)}
    if hasattr(model, "self_attn") and hasattr(model, "norm_first"):
        return name_one_layer(model.state_dict()), _encoder_config([model])
    layers = getattr(model, "layers", None)
    if layers is not None and len(layers) and all(hasattr(one, "norm_first") for one in layers):
        _refuse_own_forward(model)
        return model.state_dict(), _encoder_config(list(layers), getattr(model, "norm", None))
    config: Any = getattr(model, "config", None)
    is_whole = hasattr(model, "base_model_prefix") or not _is_of_transformers(model)
    if hasattr(config, "to_dict") and is_whole:
        return model.state_dict(), config.to_dict()
    if not is_whole:
        raise TypeError(
            f"{kind} is a part of a model of transformers, without an embedding. Give the model that"
            " holds it, as AutoModel loads it."
        )
    if hasattr(model, "_first_module"):
        raise TypeError(
            f"A {kind} of sentence_transformers is several modules, and the first one holds the"
            " transformer. Give that: al.models.load(model[0].auto_model,"
            " tokenizer=model.tokenizer)."
        )
    raise TypeError(
        "A model in memory must be one of transformers (with a config that has to_dict()), a"
        " HookedTransformer, or a torch.nn.TransformerEncoder;"
        f" {kind} is none of them. Give its state dict and say what it is:"
        " al.models.load(model.state_dict(), config={'model_type': ..., 'hidden_size': ...})."
    )


LAYER_OF_TORCH = "self_attn.in_proj_weight"


def name_one_layer(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state dict of one layer of torch.nn as that of an encoder of one layer."""
    if LAYER_OF_TORCH not in state:
        return state
    return {f"layers.0.{name}": array for name, array in state.items()}


def _refuse_own_forward(model: Any) -> None:
    """Refuse a model that is no TransformerEncoder, or computes in another way than it does."""
    kind = type(model)
    forward = getattr(getattr(kind, "forward", None), "__module__", "")
    if forward.split(".")[0] != "torch":
        raise TypeError(
            f"{kind.__name__} has layers of torch.nn and its own forward, which may do more than a"
            " torch.nn.TransformerEncoder does. If it only applies its layers in turn, load its"
            " state dict: al.models.load(model.state_dict(), config={'nhead': ..., 'norm_first':"
            " ..., 'activation': ...})."
        )


def _is_of_transformers(model: Any) -> bool:
    return type(model).__module__.split(".")[0] == "transformers"


WRAPPED = "_original_component"


def _from_bridge(model: Any) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return the model of transformers inside a TransformerBridge of TransformerLens."""
    config: Any = getattr(model.original_model, "config", None)
    if getattr(model, "_weights_processed", True) or not hasattr(config, "to_dict"):
        raise TypeError(
            "The weights of this TransformerBridge were changed (by enable_compatibility_mode), or it"
            " wraps no model of transformers. Load the bridge before that, or the model of"
            " transformers itself: al.models.load(hf_model)."
        )
    return unwrap_names(model.original_model.state_dict()), config.to_dict()


def unwrap_names(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of the modules that a bridge wraps, under their own names.

    A wrapped module M has its own tensors under M._original_component. What else is below M is the
    bridge's own copy.
    """
    wrapped = set()
    for name in state:
        words = name.split(".")
        wrapped |= {tuple(words[:at]) for at, word in enumerate(words) if word == WRAPPED}
    found = {}
    for name, array in state.items():
        words = name.split(".")
        inside = (at for at in range(1, len(words)) if tuple(words[:at]) in wrapped)
        if all(words[at] == WRAPPED for at in inside):
            found[".".join(word for word in words if word != WRAPPED)] = array
    return found


def plain(config: Any) -> dict[str, Any]:
    """Return the fields of a config record that are numbers, words or lists."""
    allowed = (bool, int, float, str, list, tuple, type(None))
    return {name: value for name, value in vars(config).items() if isinstance(value, allowed)}


def _encoder_config(layers: list[Any], norm: Any = None) -> dict[str, Any]:
    """Return the config of layers of torch.nn, which must be alike."""
    found = [_layer_config(layer) for layer in layers]
    if any(one != found[0] for one in found):
        raise BadModel(
            "All layers of a torch.nn.TransformerEncoder must have the same heads, norms and"
            f" activation, but they differ: {found[:3]}."
        )
    if norm is not None:
        eps = getattr(norm, "eps", None)
        if type(norm).__name__ != "LayerNorm" or eps != found[0]["layer_norm_eps"]:
            raise BadModel(
                "The final norm of a torch.nn.TransformerEncoder must be a LayerNorm with the eps of"
                f" its layers, {found[0]['layer_norm_eps']}, found {norm}."
            )
    return {"model_type": "torch_encoder", **found[0]}


def _layer_config(layer: Any) -> dict[str, Any]:
    if type(layer).__name__ != "TransformerEncoderLayer":
        raise BadModel(
            "A layer must be a torch.nn.TransformerEncoderLayer, found"
            f" {type(layer).__name__}. A decoder layer also reads another text, which is not"
            " computed here."
        )
    attention = layer.self_attn
    changed = {
        "kdim or vdim": not getattr(attention, "_qkv_same_embed_dim", True),
        "add_bias_kv": getattr(attention, "bias_k", None) is not None,
        "add_zero_attn": bool(getattr(attention, "add_zero_attn", False)),
        "norms other than LayerNorm, or with different eps": [
            type(norm).__name__ for norm in (layer.norm1, layer.norm2)
        ]
        != ["LayerNorm"] * 2
        or layer.norm1.eps != layer.norm2.eps,
    }
    for name, is_used in changed.items():
        if is_used:
            raise BadModel(f"The layer uses {name}, which is not computed here.")
    return {
        "nhead": attention.num_heads,
        "norm_first": bool(layer.norm_first),
        "activation": _activation_of(layer.activation),
        "layer_norm_eps": float(layer.norm1.eps),
    }


def _activation_of(function: Any) -> str:
    """Return the name of an activation of torch, a function or a module."""
    name = getattr(function, "__name__", type(function).__name__).lower()
    if name == "gelu" and getattr(function, "approximate", "none") != "none":
        return "gelu_tanh"
    return name
