"""What to do with checkpoints that no family reads: adapters, weights of few bits, experts, models
without attention.

It is asked after a family has refused a checkpoint, so that the error says more than the name of a
missing tensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attnlab.models.checkpoints.files import read_json
from attnlab.models.checkpoints.record import BadModel

MERGE = (
    "Merge it into its model first, with the library peft: model ="
    " PeftModel.from_pretrained(base, folder).merge_and_unload(). Then load that model."
)
FULL = (
    "Take the checkpoint that it was made from, with weights of 16 or 32 bits. GGUF files with"
    " weights of 4 to 8 bits are read, too."
)
HEADS_ALONE = "The matrices of its heads can be studied alone: al.models.heads(Q, K, V, O)."

ADAPTER = "adapter_config.json"


class Foreign(NamedTuple):
    """A kind of checkpoint: what in the name of a tensor shows it, what it is, and what to do."""

    pattern: re.Pattern[str]
    what: str
    do: str


KINDS = (
    Foreign(
        re.compile(r"\.(lora_[A-Za-z_]*|base_layer|modules_to_save|ia3_l|adapter_[a-z_]+)(\.|$)"),
        "is part of an adapter",
        MERGE,
    ),
    Foreign(
        re.compile(
            r"\.(qweight|qzeros|g_idx|SCB|weight_scale(_inv)?|weight_packed|quant_map|absmax"
            r"|codebooks)(\.|$)|\.quant_state\.|\.weight\.(absmax|nested_absmax|quant_map)"
        ),
        "belongs to weights that are stored in few bits",
        FULL,
    ),
    Foreign(
        re.compile(r"\.(experts|block_sparse_moe|shared_experts?|router)\."),
        "belongs to a mixture of experts, which is not computed here",
        HEADS_ALONE,
    ),
    Foreign(
        re.compile(r"\.(A_log|dt_proj|x_proj|conv1d|time_mix\w*|time_decay|time_maa\w*)(\.|$)"),
        "belongs to a layer without attention (Mamba, RWKV), which is not computed here",
        "attnlab reads transformers. Layers with attention in a mixed model can be studied alone:"
        " al.models.heads(Q, K, V, O).",
    ),
)


def explain_foreign(names: Iterable[str], raw: Mapping[str, Any]) -> str | None:
    """Return what a refused checkpoint is and what to do, in sentences, or None if it is of no kind
    that is known here.
    """
    stored = raw.get("quantization_config")
    if isinstance(stored, Mapping):
        return (
            f"quantization_config in the config is {str(stored)[:60]!r}. It stores the weights in"
            f" another form, which no family here reads. {FULL}"
        )
    found = sorted(map(str, names))
    for kind in KINDS:
        culprit = next((name for name in found if kind.pattern.search(f".{name}")), None)
        if culprit is not None:
            return f"The tensor {culprit[:120]!r} {kind.what}. {kind.do}"
    return None


def refuse_adapter(folder: Path) -> None:
    """Refuse a folder that holds an adapter and no model."""
    if not (folder / ADAPTER).is_file() or (folder / "config.json").is_file():
        return
    base = read_json(folder / ADAPTER).get("base_model_name_or_path")
    of = f" for {str(base)[:80]}" if isinstance(base, str) else ""
    raise BadModel(f"The folder {folder.name} holds an adapter{of}, and no model. {MERGE}")
