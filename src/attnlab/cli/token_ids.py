"""The input of a model on the command line: token ids in --ids, or texts if the model has a
tokenizer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_ids(text: str) -> list[int]:
    """Return the numbers of --ids 1,2,3."""
    try:
        found = [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise ValueError(
            f"--ids must be whole numbers with commas between them, such as 1,2,3; got {text!r}."
        ) from None
    if not found:
        raise ValueError("--ids must name two token ids or more, such as 1,2,3; got none.")
    return found


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file that hold a text."""
    try:
        found = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ValueError(f"{path} must be a text in UTF-8. Convert it first.") from None
    return [line for line in found if line]


def check_tokenizer(model: Any) -> None:
    """Refuse a text for a model that came without a tokenizer."""
    if model.parts.embedding is None:
        raise ValueError(
            f"{model.name} has no embedding of tokens: it reads vectors, and the command line cannot"
            " give them. Use Python: al.models.sentence(model, ids=x) with x"
            f" (n, {model.config.d}), or al.models.flow(model, x0=x)."
        )
    if not model.has_tokenizer:
        reason = f" {model.without_tokenizer}" if model.without_tokenizer else ""
        raise ValueError(
            f"{model.name} has no tokenizer, so it cannot read a text.{reason} Give token ids "
            f"(0 to {model.config.vocabulary - 1}) with --ids, such as --ids 1,2,3."
        )
