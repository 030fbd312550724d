"""Print words to the terminal. Texts, tokens and names of strangers are in them, and a terminal obeys some characters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import typer

from attnlab.controls import escape_controls


def say(words: str, err: bool = False) -> None:
    r"""Print `words` and an end of line; characters that a terminal would obey are written as escapes, such as \x1b."""
    typer.echo(escape_controls(words), err=err)


ADVICE = re.compile(r'\b(\w\w+) ?= ?"?([\w.+-]*\w)"?')
"""An argument and its value, such as work=20 or t_end = 8.4. Names of one letter are mathematics."""


def as_options(words: str, command: Callable[..., None]) -> str:
    """Spell the arguments that a sentence advises as options of the command, where it has them: work=20 as --work 20."""
    arguments = inspect.signature(command).parameters
    return ADVICE.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}" if found[1] in arguments else found[0], words)
