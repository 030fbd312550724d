"""The tokenizer inside a GGUF file, as the text of a tokenizer.json: byte-level pairs, of the kinds
whose rules for cutting words are known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab.models.checkpoints.gguf_file import GgufFile
from attnlab.models.checkpoints.record import BadModel

CONTROL, BY_USER = 3, 4

_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

KINDS: dict[str, tuple[Any, ...]] = {
    "gpt-2": (_BYTES,),
    "smollm": ({"type": "Digits", "individual_digits": True}, _BYTES),
    "qwen2": (
        {
            "type": "Split",
            "pattern": {"Regex": _QWEN},
            "behavior": "Isolated",
            "invert": False,
        },
        {**_BYTES, "use_regex": False},
    ),
}
"""{tokenizer.ggml.pre: how a text is cut into words}."""

NORMALIZERS = {"qwen2": {"type": "NFC"}}


def has_tokenizer(fields: Mapping[str, Any]) -> bool:
    """Whether the tokenizer of a GGUF file is of a kind that is known here."""
    return (
        fields.get("tokenizer.ggml.model") == "gpt2"
        and fields.get("tokenizer.ggml.pre") in KINDS
        and isinstance(fields.get("tokenizer.ggml.tokens"), list)
        and isinstance(fields.get("tokenizer.ggml.merges"), list)
    )


def tokenizer_of(path: Path) -> str:
    """Return the tokenizer of a GGUF file as the text of a tokenizer.json."""
    return tokenizer_text(GgufFile(path).fields)


def tokenizer_text(fields: Mapping[str, Any]) -> str:
    """Return the same from the fields of the file."""
    if not has_tokenizer(fields):
        raise BadModel("The tokenizer in this GGUF file is not read here. Give tokenizer=.")
    kind, tokens = fields["tokenizer.ggml.pre"], fields["tokenizer.ggml.tokens"]
    merges = [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]]
    types = list(fields.get("tokenizer.ggml.token_type", ()))
    added = [
        {
            "id": number,
            "content": tokens[number],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": bool(one == CONTROL),
        }
        for number, one in enumerate(types[: len(tokens)])
        if one in (CONTROL, BY_USER)
    ]
    steps = KINDS[kind]
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": NORMALIZERS.get(kind),
        "pre_tokenizer": steps[0]
        if len(steps) == 1
        else {"type": "Sequence", "pretokenizers": list(steps)},
        "post_processor": _ends(fields, tokens),
        "decoder": _BYTES,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    return json.dumps(made)


def _ends(fields: Mapping[str, Any], tokens: list[str]) -> Any:
    """Return the step that adds tokens at the ends, or None."""
    names = []
    for end in ("bos", "eos"):
        number = fields.get(f"tokenizer.ggml.{end}_token_id")
        is_added = fields.get(f"tokenizer.ggml.add_{end}_token") is True
        if is_added and isinstance(number, int) and number < len(tokens):
            names.append((end, number))
    if not names:
        return None
    ends = {end: {"SpecialToken": {"id": tokens[number], "type_id": 0}} for end, number in names}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    single = [ends["bos"]] if "bos" in ends else []
    single += [text] + ([ends["eos"]] if "eos" in ends else [])
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {
            tokens[number]: {"id": tokens[number], "ids": [number], "tokens": [tokens[number]]}
            for _, number in names
        },
    }
