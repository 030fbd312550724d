"""The command line, one file per verb.

To add a verb, add a file here with the name of the verb and a function under
`@verbs.register("name")`. Its parameters, typed for typer, become those of the command, and its
docstring becomes the help. The command imports only the file of its own verb; the help page reads
the names and docstrings of the others as text. Put heavy imports inside the function.

A mistake of the user (ValueError, UnknownName, OSError, MissingLibrary), or numbers or arrays that
become too large (OverflowError, DrownedInRounding, MemoryError), print one sentence and end with
exit code 2. A failed run ends with exit code 1, Ctrl-C with 130. Any other exception is a bug and
shows its traceback.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from attnlab import __version__
from attnlab.cli.say import say
from attnlab.registry import Registry, UnknownName, outline

verbs: Registry[Callable[..., Any]] = Registry("verb", package="attnlab.cli")

LONGEST_MESSAGE = 1500
"""The most characters of a sentence on standard error."""


def main() -> None:
    """Run the command line."""
    app(sys.argv[1:])()


def app(words: Collection[str] | None = None) -> typer.Typer:
    """Return the command line as a typer application. With `words`, the words of the command, it
    imports only verbs in them.
    """
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    made.callback(invoke_without_command=True)(_options)
    known = outline("attnlab.cli") if words is not None else dict.fromkeys(verbs, "")
    for name, about in known.items():
        if words is None or name in words:
            made.command(name, help=_in_paragraphs(verbs[name].__doc__ or ""))(_guard(verbs[name]))
        else:
            made.command(name, help=_in_paragraphs(about))(_only_listed)
    return made


def _in_paragraphs(text: str) -> str:
    """A docstring for the help page, which would otherwise keep the ends of its lines."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _only_listed() -> None:
    """Take the place of a verb that the command does not name, on the help page."""
    raise AssertionError("A verb was called that the command does not name.")


ABOUT_FILES = (
    "Run this Python file first: it may register kernels, start laws and more. May be given several"
    " times."
)
Files = Annotated[list[Path] | None, typer.Option("--import", metavar="FILE.py", help=ABOUT_FILES)]
"""Defined here, where `list` is still Python's `list`: below it is the module of the verb."""


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    files: Files = None,
) -> None:
    """A laboratory for the dynamics of self-attention: simulate the flow, look at it, save it."""
    for file in files or []:
        _import_file(file)
    if version:
        say(f"attnlab {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def _import_file(file: Path) -> None:
    """Run a Python file of the user as a module of its own name. Python itself shows an error in
    it.
    """
    from attnlab.imports import UserFile, run_once

    try:
        given = UserFile.read(file)
    except (ValueError, OSError) as problem:
        _stop(f"--import {problem}", 2)
    try:
        run_once([given])
    except (
        ValueError,
        TypeError,
        UnknownName,
    ) as problem:  # an incomplete member, or a name in use
        _stop(f"--import {file}: {problem}", 2)


def _guard(verb: Callable[..., None]) -> Callable[..., None]:
    """Return the verb such that a mistake of the user becomes a sentence and an exit code."""

    @functools.wraps(verb)
    def guarded(*args: Any, **kwargs: Any) -> None:
        try:
            verb(*args, **kwargs)
        except (Exception, KeyboardInterrupt) as problem:
            code = _exit_code(problem)
            if code is None:
                raise
            _stop(_sentence(problem), code)

    return guarded


def _exit_code(problem: BaseException) -> int | None:
    """Return the exit code for a mistake of the user, or None for a bug."""
    # imported here because they need NumPy, and the help page does not
    from attnlab.checks import MissingLibrary
    from attnlab.frames import DrownedInRounding
    from attnlab.types import RunFailed

    if isinstance(problem, KeyboardInterrupt):
        return 130
    if isinstance(problem, RunFailed):
        return 1
    if isinstance(problem, BrokenPipeError):
        return None  # the other end of the pipe is closed: typer ends quietly
    known = (
        OSError,
        MemoryError,
        ValueError,
        UnknownName,
        OverflowError,
        DrownedInRounding,
        MissingLibrary,
    )
    return 2 if isinstance(problem, known) else None


def _sentence(problem: BaseException) -> str:
    if not isinstance(problem, Exception):  # Ctrl-C outside a run that could say how far it came
        return "Interrupted."
    if isinstance(problem, OSError) and problem.filename and problem.strerror:
        return f"{problem.filename}: {problem.strerror}."
    if isinstance(problem, MemoryError):
        return (
            f"There is not enough memory. {problem} Choose fewer tokens, saves or members, or a"
            " smaller d."
        )
    return str(problem)


def _stop(message: str, code: int) -> None:
    text = " ".join(message.split())
    if len(text) > LONGEST_MESSAGE:  # it quotes the input, which may be a whole matrix
        text = f"{text[: LONGEST_MESSAGE // 2]} ... {text[-LONGEST_MESSAGE // 2 :]}"
    say(text if text.endswith((".", "!", "?")) else f"{text}.", err=True)
    raise typer.Exit(code)
