"""The command line, a file a verb.

To add one: a new file here, called like the verb, with a function under `@verbs.register("name")`; its parameters, typed for
typer, are the command's, and its docstring is its help. Only the file of the verb that is asked for is imported; the help page
reads the names and docstrings of the others as text. Import what is heavy inside the function.

What a user can get wrong (ValueError, UnknownName, OSError, MissingLibrary) and numbers or arrays that become too large
(OverflowError, DrownedInRounding, MemoryError) are printed as one sentence, exit code 2; a run that failed is exit code 1,
Ctrl-C is 130.
Anything else is a bug and shows its traceback.
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
"""Characters of a sentence on standard error."""


def main() -> None:
    """Run the command line."""
    app(sys.argv[1:])()


def app(words: Collection[str] | None = None) -> typer.Typer:
    """The command line as a typer application. Where the words of the command are known, only verbs among them are imported."""
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    made.callback(invoke_without_command=True)(_options)
    known = outline("attnlab.cli") if words is not None else dict.fromkeys(verbs, "")
    for name, about in known.items():
        if words is None or name in words:
            made.command(name, help=_in_paragraphs(verbs[name].__doc__ or ""))(_guarded(verbs[name]))
        else:
            made.command(name, help=_in_paragraphs(about))(_only_listed)
    return made


def _in_paragraphs(text: str) -> str:
    """A docstring for the help page, which would otherwise keep the ends of its lines."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _only_listed() -> None:
    """Stand in for a verb that the command does not name, on the help page."""
    raise AssertionError("A verb was called that the command does not name.")


ABOUT_FILES = "Run this Python file first: it may register kernels, start laws and more. May be given several times."
Files = Annotated[list[Path] | None, typer.Option("--import", metavar="FILE.py", help=ABOUT_FILES)]
"""Written here, where `list` is still Python's: later it is the module of the verb."""


def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    files: Files = None,
) -> None:
    """A laboratory for the dynamics of self-attention: simulate the flow, look at it, keep it."""
    for file in files or []:
        _import_file(file)
    if version:
        say(f"attnlab {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())


def _import_file(file: Path) -> None:
    """Run a Python file of the user's own, as a module of its own name. What is wrong in it is shown as Python shows it."""
    from attnlab.imports import UserFile, run_once

    try:
        given = UserFile.read(file)
    except (ValueError, OSError) as problem:
        _stop(f"--import {problem}", 2)
    try:
        run_once([given])
    except (ValueError, TypeError, UnknownName) as problem:         # a member that is not whole, or a name that is taken
        _stop(f"--import {file}: {problem}", 2)


def _guarded(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, with what a user can get wrong turned into a sentence and an exit code."""

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
    """What the program answers where a user could get this wrong; None where nobody should."""
    # here, because they need NumPy, and the help page does not
    from attnlab.checks import MissingLibrary
    from attnlab.frames import DrownedInRounding
    from attnlab.types import RunFailed

    if isinstance(problem, KeyboardInterrupt):
        return 130
    if isinstance(problem, RunFailed):
        return 1
    if isinstance(problem, BrokenPipeError):
        return None                                 # the reader of a pipe has left: typer ends quietly
    known = (OSError, MemoryError, ValueError, UnknownName, OverflowError, DrownedInRounding, MissingLibrary)
    return 2 if isinstance(problem, known) else None


def _sentence(problem: BaseException) -> str:
    if not isinstance(problem, Exception):          # Ctrl-C, where no run says how far it came
        return "Interrupted."
    if isinstance(problem, OSError) and problem.filename and problem.strerror:
        return f"{problem.filename}: {problem.strerror}."
    if isinstance(problem, MemoryError):
        return f"There is not enough memory. {problem} Choose fewer tokens, saves or members, or a smaller d."
    return str(problem)


def _stop(message: str, code: int) -> None:
    text = " ".join(message.split())
    if len(text) > LONGEST_MESSAGE:                 # it quotes what was given, which may be a whole matrix
        text = f"{text[: LONGEST_MESSAGE // 2]} ... {text[-LONGEST_MESSAGE // 2 :]}"
    say(text if text.endswith((".", "!", "?")) else f"{text}.", err=True)
    raise typer.Exit(code)
