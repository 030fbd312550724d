"""Calling attnlab as a user would, from a test."""

from __future__ import annotations

from typer.testing import CliRunner

from attnlab.cli import app


def attnlab(*arguments, code=0):
    """What the command line answers; the exit code must be `code`, and nothing may have gone wrong
    in it.
    """
    result = CliRunner().invoke(app(), [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, (result.stdout, result.stderr)
    return result


def refused(*arguments, code=2) -> str:
    """The one sentence on standard error with which the command line refuses; standard output stays
    empty.
    """
    result = attnlab(*arguments, code=code)
    assert result.stdout == ""
    message = result.stderr.strip()
    assert message.endswith(".") and "\n" not in message and "Traceback" not in message
    return message
