"""Writes docs/glossary.md, and below the title of every other page a line of links to the terms
that the page uses.

    python docs/make_glossary.py

The programs that write whole pages call `add_links` themselves. A test fails if a page is out of
date.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from attnlab.files import write_text
from attnlab.glossary import TERMS, Term, find_terms

DOCS = Path(__file__).parent
PAGE = DOCS / "glossary.md"
LINE = re.compile(r"^\*Terms: .*?\.\*\n\n", re.MULTILINE | re.DOTALL)
WIDTH = 100
WITHOUT = ("glossary.md", "api.md", "spec.md", "index.md", "performance.md")
"""Pages without such a line: their tables explain each entry, or they do not use the terms."""

HEAD = """# Glossary

The terms that attnlab uses in a sense of its own. [How to choose](choosing.md) puts most of them to
work, and [how to read a certificate](limits.md#how-to-read-a-certificate) shows the rest.
"""


def write_page() -> str:
    """Return the page of all terms."""
    terms = [f"## {term.name}\n\n{wrap(escape(term.meaning))}\n" for term in TERMS]
    return "\n".join([HEAD, *terms])


def wrap(text: str) -> str:
    """Return a paragraph with lines of at most WIDTH columns."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def escape(text: str) -> str:
    """Return a meaning as Markdown: what stands between backquotes is code, and the letters of
    formulas are not markup.
    """
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if place % 2 else re.sub(r"([_^<])", r"\\\1", part) for place, part in enumerate(parts)
    )


def add_links(text: str) -> str:
    """Return a page with the line of links below its title; an older line is replaced."""
    text = LINE.sub("", text, count=1)
    title, rest = text.split("\n\n", 1)
    used = find_terms(plain(rest))
    words = wrap(f"*Terms: {', '.join(map(link, used))}.*")
    return f"{title}\n\n{words}\n\n{rest}" if used else text


def link(term: Term) -> str:
    """Return a link to a term from another page of this folder."""
    return f"[{term.name if len(term.name) == 1 else term.name.lower()}](glossary.md#{term.place})"


def plain(text: str) -> str:
    """Return the prose of a page: without code, comments and addresses."""
    text = re.sub(r"^```.*?^```|^    .*?$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)


def main() -> None:
    """Write the page, and the line of every other page."""
    write_text(PAGE, write_page())
    for page in sorted(DOCS.glob("*.md")):
        if page.name not in WITHOUT:
            text = page.read_text(encoding="utf-8")
            if text != add_links(text):
                write_text(page, add_links(text))


if __name__ == "__main__":
    main()
