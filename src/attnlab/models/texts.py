"""Tokenizers by their file: tokenizer.json through the library `tokenizers`, llama2.c's tokenizer.bin through our own reading."""

from __future__ import annotations

from pathlib import Path

from attnlab.models.files import LONGEST_JSON
from attnlab.models.model import INSTALL, Tokenizer
from attnlab.models.record import BadModel


def open_tokenizer(path: Path, vocabulary: int) -> Tokenizer:
    """What turns a text into (ids, words)."""
    if path.suffix == ".bin":
        from attnlab.models.llama2c import Pieces

        return Pieces(path, vocabulary)
    try:
        from tokenizers import Tokenizer as Library
    except ImportError:
        raise ImportError(f"Cutting a text into tokens needs the library tokenizers: {INSTALL}") from None
    if path.stat().st_size > LONGEST_JSON:
        raise BadModel(f"{path.name} must not be longer than {LONGEST_JSON:,} bytes, but has {path.stat().st_size:,}.")
    try:
        library = Library.from_file(str(path))
    except Exception as error:                  # the library raises nothing narrower
        raise BadModel(
            f"{path.name} must be a tokenizer of the library tokenizers, but cannot be read: {str(error)[:120]}"
        ) from None
    library.no_padding()                        # files of sentence encoders ask for both; a text is taken as it is
    library.no_truncation()

    def cut(text: str, special: bool = True) -> tuple[list[int], list[str]]:
        encoding = library.encode(text, add_special_tokens=special)
        return encoding.ids, encoding.tokens

    return cut
