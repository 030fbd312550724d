"""Print words to the terminal. Texts, tokens and names of strangers are in them, and a terminal obeys some characters."""

from __future__ import annotations

import typer

from attnlab.controls import escape_controls


def say(words: str, err: bool = False) -> None:
    r"""Print `words` and an end of line; characters that a terminal would obey are written as escapes, such as \x1b."""
    typer.echo(escape_controls(words), err=err)
