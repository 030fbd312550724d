"""Tiny random state dicts in the layouts of TransformerLens and of torch.nn, made without any
library.
"""

from __future__ import annotations

from typing import Any

from tiny_maker import HEADS, HIDDEN, LAYERS, LENGTH, WORDS, D, Maker, State

SIZE = D // HEADS


def hooked_transformer(**changes: Any) -> tuple[State, dict[str, Any]]:
    """A HookedTransformer with the settings of its library, and changes of them."""
    raw = {
        "model_type": "hooked_transformer",
        "n_layers": LAYERS,
        "d_model": D,
        "n_ctx": LENGTH,
        "d_head": SIZE,
        "n_heads": HEADS,
        "d_mlp": HIDDEN,
        "d_vocab": WORDS,
        "act_fn": "gelu_new",
        "normalization_type": "LN",
        "positional_embedding_type": "standard",
        "attn_scale": SIZE**0.5,
        **changes,
    }
    make = Maker()
    kind = raw["normalization_type"]

    def norm(name: str, size: int = D, always: bool = False) -> None:
        if always or kind in ("LN", "RMS"):
            make.put(f"{name}.w", size, mean=1.0, scale=0.2)
        if kind == "LN" and not always:
            make.put(f"{name}.b", size)

    make.put("embed.W_E", WORDS, D, scale=1.0)
    if raw["positional_embedding_type"] == "standard":
        make.put("pos_embed.W_pos", LENGTH, D)
    kv_heads = raw.get("n_key_value_heads")
    shared = "" if kv_heads is None else "_"
    for l in range(LAYERS):
        at = f"blocks.{l}."
        norm(at + "ln1")
        for name, count in (("W_Q", HEADS), (shared + "W_K", kv_heads), (shared + "W_V", kv_heads)):
            make.put(f"{at}attn.{name}", count or HEADS, D, SIZE)
            make.put(f"{at}attn.{name.replace('W', 'b')}", count or HEADS, SIZE)
        make.put(f"{at}attn.W_O", HEADS, SIZE, D)
        make.put(f"{at}attn.b_O", D)
        if raw.get("use_qk_norm"):
            norm(at + "attn.q_norm", SIZE, always=True)
            norm(at + "attn.k_norm", SIZE, always=True)
        if raw.get("use_normalization_before_and_after"):
            norm(at + "ln1_post", always=True)
        if raw.get("attn_only"):
            continue
        norm(at + "ln2")
        if raw.get("use_normalization_before_and_after"):
            norm(at + "ln2_post", always=True)
        make.put(f"{at}mlp.W_in", D, HIDDEN)
        make.put(f"{at}mlp.b_in", HIDDEN)
        if raw.get("gated_mlp"):
            make.put(f"{at}mlp.W_gate", D, HIDDEN)
        make.put(f"{at}mlp.W_out", HIDDEN, D)
        make.put(f"{at}mlp.b_out", D)
    norm("ln_final")
    return make.state, raw


def torch_encoder(**changes: Any) -> tuple[State, dict[str, Any]]:
    """A torch.nn.TransformerEncoder with a final norm."""
    make = Maker()
    for l in range(LAYERS):
        at = f"layers.{l}."
        make.put(f"{at}self_attn.in_proj_weight", 3 * D, D)
        make.put(f"{at}self_attn.in_proj_bias", 3 * D)
        make.linear(f"{at}self_attn.out_proj", D, D)
        make.linear(f"{at}linear1", HIDDEN, D)
        make.linear(f"{at}linear2", D, HIDDEN)
        make.norm(f"{at}norm1")
        make.norm(f"{at}norm2")
    make.norm("norm")
    return make.state, {"model_type": "torch_encoder", "nhead": HEADS, **changes}
