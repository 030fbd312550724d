"""Scripts and styles without comments and needless space: a page stays small, and its source stays one that people can read.

Names and lines stay as they are. Strings, templates and regular expressions are not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

BEFORE_REGEX = r"(?:(?<=[(,=:\[!&|?{};\n+*%~^<>-])|(?<=\breturn))"
"""What stands before a regular expression; after anything else a slash divides."""

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<template>`)"
    rf"|{BEFORE_REGEX}[ \t]*(?P<regex>/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*)",
    re.DOTALL,
)
TEMPLATE_PART = re.compile(r"\\.|`|\$\{", re.DOTALL)
STYLE_TOKEN = re.compile(r"(?P<comment>/\*.*?\*/)|'[^'\n]*'|\"[^\"\n]*\"", re.DOTALL)


def tighten_script(source: str) -> str:
    """Return JavaScript that does the same, without comments (except those that open with /*!), indents and needless spaces."""
    comments = [(start, end) for kind, start, end in _tokens(source) if _is_dropped(kind, source[start:end])]
    without = "".join(_cut(source, comments))
    parts, last = [], 0
    for kind, start, end in _tokens(without):
        kept = without[start:end].lstrip() if kind == "regex" else without[start:end]
        parts += [_squeeze(without[last:start], r"[=,;{}()?:<>&|*\[\]]"), kept]
        last = end
    return "".join([*parts, _squeeze(without[last:], r"[=,;{}()?:<>&|*\[\]]")]).strip("\n")


def tighten_style(source: str) -> str:
    """Return CSS that means the same, without comments, indents and spaces around braces, commas and semicolons."""
    without = STYLE_TOKEN.sub(lambda token: token[0] if token["comment"] is None else "", source)
    parts, last = [], 0
    for token in STYLE_TOKEN.finditer(without):
        parts += [_squeeze(without[last:token.start()], r"[{};,]"), token[0]]
        last = token.end()
    return "".join([*parts, _squeeze(without[last:], r"[{};,]")]).strip("\n")


def blank_texts(source: str) -> str:
    """Return JavaScript with spaces in place of comments, strings and regular expressions, so that their words are not code."""
    found = source
    for _, start, end in _tokens(source):
        found = found[:start] + re.sub(r"[^\n]", " ", source[start:end]) + found[end:]
    return found


def _tokens(source: str, start: int = 0, end: int | None = None) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, first, last + 1) of the comments, strings, templates and regular expressions of JavaScript."""
    place, end = start, len(source) if end is None else end
    while token := TOKEN.search(source, place, end):
        kind = str(token.lastgroup)
        place = _template_end(source, token.end()) if kind == "template" else token.end()
        yield kind, token.start(), place


def _template_end(source: str, place: int) -> int:
    """Return where the template ends whose text begins at `place`. What is in its braces is code, with templates of its own."""
    while part := TEMPLATE_PART.search(source, place):
        place = part.end()
        if part[0] == "`":
            return place
        if part[0] == "${":
            place = _braces_end(source, place)
    return len(source)


def _braces_end(source: str, place: int) -> int:
    """Return where the code ends that begins after `${`."""
    depth = 1
    while sign := re.compile(r"[{}]|" + TOKEN.pattern, re.DOTALL).search(source, place):
        place = _template_end(source, sign.end()) if sign.lastgroup == "template" else sign.end()
        depth += {"{": 1, "}": -1}.get(sign[0], 0)
        if depth == 0:
            return place
    return len(source)


def _is_dropped(kind: str, text: str) -> bool:
    return kind == "comment" and not text.startswith("/*!")


def _cut(source: str, pieces: list[tuple[int, int]]) -> Iterator[str]:
    """Yield what is left of the source without these pieces."""
    last = 0
    for start, end in pieces:
        yield source[last:start]
        last = end
    yield source[last:]


def _squeeze(code: str, signs: str) -> str:
    """Return code without spaces around some signs, at the ends of lines, and without empty lines."""
    return re.sub(r"[ \t]*\n\s*", "\n", re.sub(rf"[ \t]*({signs})[ \t]*", r"\1", code))
