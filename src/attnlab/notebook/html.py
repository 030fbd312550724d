"""Parts of HTML for notebooks: a card with a title, tables, notes. Every word is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html
from typing import Any

from attnlab.controls import escape_controls
from attnlab.displayed import shorten

LONGEST_CELL, LONGEST_TEXT = 400, 6000
"""The most characters of a cell, and of a text in full."""

MOST_ROWS = 40
"""The most rows of a table."""

SHORT = 24
"""Cells of at most so many characters are not broken into lines."""

# Colours follow the notebook, light or dark. Only lines and marks have their own colour, which
# works on both.
CSS = """
.attnlab{font-size:.9em;line-height:1.4;max-width:76em}
.attnlab>b{display:block;margin:.2em 0 .35em;font-size:1.05em}
.attnlab p{margin:.35em 0;opacity:.8}
.attnlab div{overflow-x:auto}
.attnlab table{border-collapse:collapse;margin:.3em 0 .5em;border:0}
.attnlab tr,.attnlab tr:hover{background:none!important}
.attnlab th,.attnlab td{text-align:left!important;vertical-align:top;padding:.2em 1.1em .2em 0;border:0;
border-bottom:1px solid rgba(128,128,128,.3);background:none;white-space:normal;max-width:44em;color:inherit}
.attnlab th{font-weight:600;opacity:.75}
.attnlab td.short{white-space:nowrap}
.attnlab pre{white-space:pre-wrap;font-size:.92em;margin:.3em 0;background:none;color:inherit}
.attnlab summary{cursor:pointer;opacity:.8}
.attnlab img,.attnlab video{max-width:100%;height:auto;background:#fff;border-radius:4px;margin-top:.3em}
.attnlab .good{color:#1f9d63;font-weight:600}
.attnlab .bad{color:#d9622b;font-weight:600}
.attnlab .open{opacity:.65;font-weight:600}
"""


def escape(words: object) -> str:
    """Return the words so that HTML shows them literally, also in an attribute. Control characters
    become escapes.
    """
    return escape_html(escape_controls(str(words)))


def card(title: str, *parts: str) -> str:
    """Return a title above parts of HTML, with their style."""
    html = (
        "<div"
        f' class="attnlab"><style>{CSS}</style><b>{escape(shorten(title, LONGEST_CELL))}</b>{"".join(parts)}</div>'
    )
    return html.encode("ascii", "xmlcharrefreplace").decode(
        "ascii"
    )  # ASCII is right in any encoding of the page


def facts(numbers: Mapping[str, Any]) -> str:
    """Return a table of two columns: the name of a fact and its value. None is left out."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>"
        for name, value in numbers.items()
        if value is not None
    )
    return f"<div><table><tbody>{rows}</tbody></table></div>"


def table(legend: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table below its legend. Columns without a value are left out; rows beyond MOST_ROWS
    are counted.
    """
    listed = list(rows)
    kept = [place for place in range(len(columns)) if any(row[place] is not None for row in listed)]
    head = "".join(f"<th>{escape(columns[place])}</th>" for place in kept)
    body = "".join(
        f"<tr>{''.join(_cell(row[place]) for place in kept)}</tr>" for row in listed[:MOST_ROWS]
    )
    more = note(f"and {len(listed) - MOST_ROWS} more") if len(listed) > MOST_ROWS else ""
    return f"{note(legend)}<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"


def note(words: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(shorten(words, LONGEST_TEXT))}</p>"


def text(words: str) -> str:
    """Return lines of text unchanged."""
    cut = words if len(words) <= LONGEST_TEXT else f"{words[:LONGEST_TEXT]}\n..."
    return f"<pre>{escape(cut)}</pre>"


def fold(title: str, *parts: str) -> str:
    """Return parts that are hidden until the reader clicks the title."""
    return f"<details><summary>{escape(title)}</summary>{''.join(parts)}</details>"


class Mark(str):
    """A word with a look: good, bad or open."""

    look: str

    def __new__(cls, word: str, look: str) -> Mark:
        """Make a word in the colour of `look`."""
        made = super().__new__(cls, word)
        made.look = look
        return made


def _cell(value: Any) -> str:
    if isinstance(value, bool | None):
        words = {True: "yes", False: "no", None: "–"}[value]
    else:
        words = f"{value:.4g}" if isinstance(value, float) else shorten(str(value), LONGEST_CELL)
    looks = [value.look] if isinstance(value, Mark) else []
    looks += ["short"] if len(words) <= SHORT else []
    return f'<td class="{" ".join(looks)}">{escape(words)}</td>'
