"""The tokenizer inside a GGUF file, of the kinds whose rules for cutting texts are known here.

Byte-level pairs and WordPiece become the text of a tokenizer.json. SentencePiece has a file of its
own, gguf_pieces.py.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.gguf_pieces import (
    BY_USER,
    CONTROL,
    SPACE,
    GgufPieces,
    why_no_pieces,
)
from attnlab.models.checkpoints.record import BadModel

_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _words_of_llama(digits: str) -> tuple[dict[str, Any], ...]:
    """The steps of Llama 3 and of what cuts as it does; `digits` are those in one word."""
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+"
        r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return cut, {**_BYTES, "use_regex": False}


_LLAMA_3 = _words_of_llama(r"\p{N}{1,3}")

KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "gpt-2": (_BYTES,),
    "smollm": ({"type": "Digits", "individual_digits": True}, _BYTES),
    "qwen2": _words_of_llama(r"\p{N}"),
    "llama-bpe": _LLAMA_3,
    "llama-v3": _LLAMA_3,
    "llama3": _LLAMA_3,
}
"""{tokenizer.ggml.pre: how a text is cut into words}."""

NORMALIZERS = {"qwen2": {"type": "NFC"}}

WHOLE_WORDS = ("llama-bpe", "llama-v3", "llama3")
"""Kinds where a word that is a token is not cut, and a text begins with a token of its own."""

ENDS_OF_BERT = {"bos": "[CLS]", "seperator": "[SEP]", "unknown": "[UNK]"}
"""{the key of the file (it is spelled so there): the token's name, where the key is missing}."""


FORMS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("model", "pre"), (str, "a word")),
    **dict.fromkeys(("tokens", "merges"), (list, "a list of texts")),
    **dict.fromkeys(
        [f"add_{name}" for name in ("bos_token", "eos_token", "sep_token", "space_prefix")],
        (bool, "true or false"),
    ),
    **dict.fromkeys(
        [f"{name}_token_id" for name in ("bos", "eos", "seperator", "unknown")],
        (int, "a whole number"),
    ),
}
"""{key, without tokenizer.ggml.: what its value must be}."""


def why_no_tokenizer(fields: Mapping[str, Any]) -> str | None:
    """Return why the tokenizer of a GGUF file cannot be used here. None: it can."""
    if isinstance(fields.get("tokenizer.huggingface.json"), str):
        return None
    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind is None:
        return "The file has no tokenizer."
    reason: str | None = f"the kind {str(kind)[:40]!r} is not read here"
    wrong = _wrong_form(fields)
    if wrong is not None:
        reason = wrong
    elif kind == "llama":
        reason = why_no_pieces(fields)
    elif kind == "bert":
        reason = _why_no_wordpieces(fields)
    elif kind == "gpt2" and pre not in KINDS:
        reason = (
            f"its words are cut as {str(pre)[:40]!r} says (tokenizer.ggml.pre), which is not known"
            f" here. Known: {', '.join(KINDS)}"
        )
    elif kind == "gpt2":
        has_merges = isinstance(fields.get("tokenizer.ggml.merges"), list)
        reason = None if has_merges else "tokenizer.ggml.merges is missing"
    return reason and f"The tokenizer in the file cannot be used: {reason}."


def _wrong_form(fields: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the form of a value, or None."""
    for key, (form, words) in FORMS.items():
        value = fields.get(f"tokenizer.ggml.{key}")
        is_right = isinstance(value, form) and not (form is int and isinstance(value, bool))
        if not is_right and (value is not None or key == "tokens"):
            return f"tokenizer.ggml.{key} must be {words}"
    types = fields.get("tokenizer.ggml.token_type")
    count = len(fields["tokenizer.ggml.tokens"])
    if types is not None and (
        np.shape(types) != (count,) or np.asarray(types).dtype.kind not in "iu"
    ):
        return "tokenizer.ggml.token_type must have one whole number per token"
    return None


def tokenizer_of(fields: Mapping[str, Any]) -> GgufPieces | str:
    """Return the tokenizer, from the fields of the file: a function, or the text of a
    tokenizer.json.
    """
    reason = why_no_tokenizer(fields)
    if reason is not None:
        raise BadModel(f"{reason} Give tokenizer=.")
    given, kind = fields.get("tokenizer.huggingface.json"), fields.get("tokenizer.ggml.model")
    if isinstance(given, str):
        return given
    if kind == "llama":
        return GgufPieces(fields)
    made = {"version": "1.0", "truncation": None, "padding": None}
    return json.dumps(made | (_pairs if kind == "gpt2" else _wordpieces)(fields))


def _pairs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The tokenizer that joins pairs of bytes."""
    kind, tokens = fields["tokenizer.ggml.pre"], fields["tokenizer.ggml.tokens"]
    steps = KINDS[kind]
    ends = [
        (fields.get(f"tokenizer.ggml.{end}_token_id"), end)
        for end in ("bos", "eos")
        if fields.get(f"tokenizer.ggml.add_{end}_token", end == "bos" and kind in WHOLE_WORDS)
    ]
    return {
        "added_tokens": _added(fields),
        "normalizer": NORMALIZERS.get(kind),
        "pre_tokenizer": steps[0]
        if len(steps) == 1
        else {"type": "Sequence", "pretokenizers": list(steps)},
        "post_processor": _ends(ends, tokens),
        "decoder": _BYTES,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": kind in WHOLE_WORDS,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]],
        },
    }


def _added(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tokens that no text is cut inside of."""
    tokens, types = fields["tokenizer.ggml.tokens"], fields.get("tokenizer.ggml.token_type", ())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [
        {"id": number, "content": tokens[number], **flags, "special": bool(one == CONTROL)}
        for number, one in enumerate(list(types)[: len(tokens)])
        if one in (CONTROL, BY_USER)
    ]


def _ends(ends: list[tuple[Any, str]], tokens: list[str]) -> Any:
    """Return the step that adds tokens at the ends, given as (id, "bos" or "eos"), or None."""
    known = [(one, end) for one, end in ends if isinstance(one, int) and 0 <= one < len(tokens)]
    if not known:
        return None
    pieces = {end: {"SpecialToken": {"id": tokens[number], "type_id": 0}} for number, end in known}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    single = [pieces["bos"]] if "bos" in pieces else []
    single += [text] + ([pieces["eos"]] if "eos" in pieces else [])
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {
            tokens[number]: {"id": tokens[number], "ids": [number], "tokens": [tokens[number]]}
            for number, _ in known
        },
    }


def _wordpieces(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The tokenizer of BERT for texts in small letters without accents."""
    tokens = _names_of_bert(fields)
    ends = {end: _number_of(fields, end, tokens) for end in ENDS_OF_BERT}
    added = [
        (ends[end], place)
        for end, key, place in (("bos", "add_bos", "bos"), ("seperator", "add_sep", "eos"))
        if fields.get(f"tokenizer.ggml.{key}_token", True)
    ]
    return {
        "added_tokens": _added({**fields, "tokenizer.ggml.tokens": tokens}),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": _ends(added, tokens),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": tokens[ends["unknown"]],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: number for number, token in enumerate(tokens)},
        },
    }


def _names_of_bert(fields: Mapping[str, Any]) -> list[str]:
    """The tokens as BERT writes them: the file marks the beginnings of words, BERT the rest."""
    tokens, types = fields["tokenizer.ggml.tokens"], fields.get("tokenizer.ggml.token_type", ())
    kinds = [*types, *[None] * (len(tokens) - len(types))]
    names = []
    for token, kind in zip(tokens, kinds, strict=False):
        is_control = kind == CONTROL or token.startswith("[") and token.endswith("]")
        is_begin = token.startswith(SPACE)
        names.append(token[1:] if is_begin else token if is_control else "##" + token)
    return names


def _number_of(fields: Mapping[str, Any], end: str, tokens: list[str]) -> int:
    """Return the id of a token of BERT's own, or -1."""
    said = fields.get(f"tokenizer.ggml.{end}_token_id")
    if isinstance(said, int) and 0 <= said < len(tokens):
        return said
    name = ENDS_OF_BERT[end]
    return tokens.index(name) if name in tokens else -1


def _why_no_wordpieces(fields: Mapping[str, Any]) -> str | None:
    tokens = _names_of_bert(fields)
    for end, name in ENDS_OF_BERT.items():
        if _number_of(fields, end, tokens) < 0:
            return f"it has no token {name}"
    own = next((token for token in tokens if token[:1] != "[" and token != _plain(token)), None)
    if own is not None:
        return (
            f"its tokens have capitals or accents, such as {own[:40]!r}, and the file does not say"
            " whether those of a text are kept"
        )
    return None


def _plain(token: str) -> str:
    """The token in small letters without accents."""
    letters = unicodedata.normalize("NFD", token.lower())
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
