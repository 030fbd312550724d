"""The SentencePiece tokenizer inside a GGUF file: pieces with scores, and bytes for letters that
are in no piece (Llama 2, Mistral, Gemma).

It cuts texts as llama.cpp does, and not with the library `tokenizers`: there neighbours have ranks
in the place of scores, which decides otherwise where scores are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.joining import join_neighbours, must_be_whole_characters

UNKNOWN, CONTROL, BY_USER, BYTE = 2, 3, 4, 6
SPACE = "\u2581"
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
DEFAULTS = {"bos": (1, True), "eos": (2, False)}
"""{end: (the id that it has if the file gives none, whether it is added if the file is silent)}."""


def why_no_pieces(fields: Mapping[str, Any]) -> str | None:
    """Return what the fields of a GGUF file lack for this tokenizer. None: nothing."""
    tokens = fields["tokenizer.ggml.tokens"]
    for key in ("scores", "token_type"):
        values = np.asarray(fields.get(f"tokenizer.ggml.{key}", ()))
        if values.shape != (len(tokens),) or values.dtype.kind not in "iuf":
            return f"tokenizer.ggml.{key} must have one number per token"
    if not set(BYTES) <= set(tokens):
        return "it has no pieces for single bytes, such as <0x0A>"
    for key in ("precompiled_charsmap", "remove_extra_whitespaces"):
        value = fields.get(f"tokenizer.ggml.{key}")
        if value is not None and value is not False and np.size(value):
            return f"tokenizer.ggml.{key} changes a text before it is cut"
    return None


class GgufPieces:
    """A function from a text to ids and pieces, by the fields of a GGUF file."""

    def __init__(self, fields: Mapping[str, Any]):
        self.pieces: list[str] = fields["tokenizer.ggml.tokens"]
        types = [int(kind) for kind in fields["tokenizer.ggml.token_type"]]
        scores = fields["tokenizer.ggml.scores"]
        self._ids = {piece: number for number, piece in enumerate(self.pieces) if piece}
        self._scores = {
            piece: float(scores[number])
            for piece, number in self._ids.items()
            if types[number] not in (UNKNOWN, CONTROL, BYTE)
        }
        whole = {
            piece: number
            for piece, number in self._ids.items()
            if types[number] in (UNKNOWN, CONTROL, BY_USER)
        }
        self._whole = dict(sorted(whole.items(), key=lambda item: -len(item[0])))
        self._starts_with_space = fields.get("tokenizer.ggml.add_space_prefix") is not False
        self._begin = _end_of(fields, "bos", len(self.pieces))
        self._finish = _end_of(fields, "eos", len(self.pieces))

    def __call__(self, text: str, special: bool = True) -> tuple[list[int], list[str]]:
        """Return ids and pieces; with special, also the tokens that the model adds at the ends."""
        must_be_whole_characters(text)
        ids = list(self._begin) if special else []
        is_after_whole = True
        for part in self._parts(text):
            is_whole = part in self._whole
            if is_whole:
                ids.append(self._whole[part])
            else:  # also after a token that is kept whole, as llama.cpp does
                has_space = is_after_whole and self._starts_with_space
                ids += self._cut(" " + part if has_space else part)
            is_after_whole = is_whole
        ids += self._finish if special else []
        return ids, [self.pieces[number] for number in ids]

    def _parts(self, text: str) -> Iterator[str]:
        """Yield the text in parts: the tokens that are kept whole, longest first, and the rest."""
        parts = [text]
        for piece in self._whole:
            if piece not in text:
                continue
            split: list[str] = []
            for part in parts:
                if part in self._whole:
                    split.append(part)
                    continue
                for number, rest in enumerate(part.split(piece)):
                    split += ([piece] if number else []) + ([rest] if rest else [])
            parts = split
        yield from (part for part in parts if part)

    def _cut(self, text: str) -> list[int]:
        ids: list[int] = []
        for part in join_neighbours(list(text.replace(" ", SPACE)), self._scores):
            number = self._ids.get(part)
            if number is not None:
                ids.append(number)
            else:
                ids += [self._ids[BYTES[byte]] for byte in part.encode()]
        return ids


def _end_of(fields: Mapping[str, Any], end: str, count: int) -> list[int]:
    """Return the token that is added at an end, in a list that is empty if there is none."""
    default, is_usual = DEFAULTS[end]
    is_added = fields.get(f"tokenizer.ggml.add_{end}_token", is_usual)
    number = fields.get(f"tokenizer.ggml.{end}_token_id", default)
    return [number] if is_added and isinstance(number, int) and 0 <= number < count else []
