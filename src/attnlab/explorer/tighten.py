"""Scripts and styles without comments and needless space: a page stays small, and its source stays one that people can read.

Names and lines stay as they are. Strings, templates and regular expressions are not touched.
"""

from __future__ import annotations

import re

BEFORE_REGEX = r"(?:(?<=[(,=:\[!&|?{};\n+*%~^<>-])|(?<=\breturn))"
"""What stands before a regular expression; after anything else a slash divides."""

TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`)"
    rf"|{BEFORE_REGEX}[ \t]*(?P<regex>/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*)",
    re.DOTALL,
)
"""Comments, strings and regular expressions of JavaScript. A template inside another one cuts it in two, which does no harm."""

STYLE_TOKEN = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<string>'[^'\n]*'|\"[^\"\n]*\")", re.DOTALL)


def tighten_script(source: str) -> str:
    """Return JavaScript that does the same, without comments (except those that open with /*!), indents and needless spaces."""
    without = TOKEN.sub(_drop_comment, source)
    parts, end = [], 0
    for token in TOKEN.finditer(without):
        kind = "regex" if token["regex"] is not None else None
        parts += [_squeeze(without[end:token.start()], r"[=,;{}()?:<>&|*\[\]]"), token[kind] if kind else token[0]]
        end = token.end()
    return "".join([*parts, _squeeze(without[end:], r"[=,;{}()?:<>&|*\[\]]")]).strip("\n")


def tighten_style(source: str) -> str:
    """Return CSS that means the same, without comments, indents and spaces around braces, commas and semicolons."""
    without = STYLE_TOKEN.sub(_drop_comment, source)
    parts, end = [], 0
    for token in STYLE_TOKEN.finditer(without):
        parts += [_squeeze(without[end:token.start()], r"[{};,]"), token[0]]
        end = token.end()
    return "".join([*parts, _squeeze(without[end:], r"[{};,]")]).strip("\n")


def blank_texts(source: str) -> str:
    """Return JavaScript with spaces in place of comments, strings and regular expressions, so that their words are not code."""
    return TOKEN.sub(lambda token: re.sub(r"[^\n]", " ", token[0]), source)


def _drop_comment(token: re.Match[str]) -> str:
    is_dropped = token["comment"] is not None and not token["comment"].startswith("/*!")
    return "" if is_dropped else token[0]


def _squeeze(code: str, signs: str) -> str:
    """Return code without spaces around some signs, at the ends of lines, and without empty lines."""
    return re.sub(r"[ \t]*\n\s*", "\n", re.sub(rf"[ \t]*({signs})[ \t]*", r"\1", code))
