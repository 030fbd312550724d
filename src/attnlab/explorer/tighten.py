"""Remove comments, indents and empty lines from scripts and styles. Strings, templates and regular
expressions stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

BEFORE_REGEX = r"(?:(?<=[(,=:\[!&|?{};\n+*%~^<>-])|(?<=\breturn))"
"""What can be before a regular expression. After anything else a slash means division."""

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<template>`)"
    rf"|{BEFORE_REGEX}[ \t]*(?P<regex>/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*)",
    re.DOTALL,
)
BRACE_OR_TOKEN = re.compile(r"(?P<brace>[{}])|" + TOKEN.pattern, re.DOTALL)
TEMPLATE_PART = re.compile(r"\\.|`|\$\{", re.DOTALL)
STYLE_TOKEN = re.compile(r"(?P<comment>/\*.*?\*/)|'[^'\n]*'|\"[^\"\n]*\"", re.DOTALL)


def tighten_script(source: str) -> str:
    """Return JavaScript that does the same, without comments (except those that open with /*!),
    indents and empty lines.
    """
    parts, last = [], 0
    for kind, start, end in _tokens(source):
        is_dropped = kind == "comment" and not source.startswith("/*!", start)
        parts += [source[last:start], "" if is_dropped else source[start:end]]
        last = end
    without = "".join([*parts, source[last:]])
    return _drop_space(without, [(start, end) for _, start, end in _tokens(without)])


def tighten_style(source: str) -> str:
    """Return CSS that means the same, without comments, indents and empty lines."""
    without = STYLE_TOKEN.sub(lambda token: token[0] if token["comment"] is None else "", source)
    return _drop_space(without, [token.span() for token in STYLE_TOKEN.finditer(without)])


def blank_texts(source: str) -> str:
    """Return JavaScript with spaces in place of comments, strings and regular expressions, so that
    their words are not code.
    """
    found = source
    for _, start, end in _tokens(source):
        found = found[:start] + re.sub(r"[^\n]", " ", source[start:end]) + found[end:]
    return found


def _tokens(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, first, last + 1) of the comments, strings, templates and regular expressions of
    JavaScript.
    """
    place = 0
    while token := TOKEN.search(source, place):
        kind = str(token.lastgroup)
        place = _template_end(source, token.end()) if kind == "template" else token.end()
        yield kind, token.start(), place


def _template_end(source: str, place: int) -> int:
    """Return the end of the template whose text begins at `place`. Its braces hold code, which may
    have templates too.
    """
    while part := TEMPLATE_PART.search(source, place):
        place = part.end()
        if part[0] == "`":
            return place
        if part[0] == "${":
            place = _braces_end(source, place)
    return len(source)


def _braces_end(source: str, place: int) -> int:
    """Return the end of the code that begins after `${`."""
    depth = 1
    while sign := BRACE_OR_TOKEN.search(source, place):
        place = _template_end(source, sign.end()) if sign.lastgroup == "template" else sign.end()
        depth += {"{": 1, "}": -1}.get(sign["brace"], 0)
        if depth == 0:
            return place
    return len(source)


def _drop_space(source: str, kept: list[tuple[int, int]]) -> str:
    """Return the source without spaces at the ends of lines and without empty lines, except inside
    the pieces that are kept.
    """
    parts, last = [], 0
    for start, end in [*kept, (len(source), len(source))]:
        parts += [re.sub(r"[ \t]*\n\s*", "\n", source[last:start]), source[start:end]]
        last = end
    return "".join(parts).strip("\n")
