"""Print words to the terminal. They may hold untrusted texts, tokens and names, and a terminal
obeys some characters.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Callable

import typer

from attnlab.controls import escape_controls


def say(words: str, err: bool = False) -> None:
    r"""Print `words` and an end of line. Characters that a terminal would obey become escapes, such
    as \x1b.
    """
    typer.echo(escape_controls(words), err=err)


def say_paragraph(words: str) -> None:
    """Print a paragraph; in a terminal, break its lines between words."""
    say(textwrap.fill(words, shutil.get_terminal_size().columns) if has_terminal() else words)


def has_terminal() -> bool:
    """Whether standard error is a terminal: progress bars are for terminals, not for files."""
    return sys.stdout.isatty()


ADVICE = re.compile(r'\b(\w\w+) ?= ?"?([\w.+-]*\w)"?')
"""An argument and its value, such as work=20 or t_end = 8.4. Names of one letter are
mathematics.
"""


def as_options(words: str, command: Callable[..., None]) -> str:
    """Write the arguments that a sentence advises as options, if the command has them: work=20
    becomes --work 20.
    """
    arguments = inspect.signature(command).parameters
    return ADVICE.sub(
        lambda found: (
            f"--{found[1].replace('_', '-')} {found[2]}" if found[1] in arguments else found[0]
        ),
        words,
    )
