"""The terms of a page of HTML: the first use of each is a link to its meaning, which stands at the
end of the page.
"""

from __future__ import annotations

import re
from html import escape

from attnlab.glossary import TERMS, Term, compile_term

TAG = re.compile(r"(<[^>]*>)")
NOT_PROSE = ("a", "blockquote", "code", "footer", "h1", "h2", "h3", "nav", "pre", "style", "title")
"""Elements whose words are not linked: headings, links, code, and the texts of strangers
(blockquote).
"""

CSS = """
a.term { color: inherit; text-decoration: underline dotted; text-underline-offset: .15em; }
dl.terms dt { font-weight: 600; } dl.terms dd { margin: 0 0 .6rem; max-width: 46rem; }
"""


def add_glossary(body: str) -> str:
    """Return a page's body with its terms linked and explained; unchanged where it uses none."""
    linked, used = link_terms(body)
    if not used:
        return body
    entries = "".join(
        f'<dt id="term-{term.place}">{escape(term.name)}</dt><dd>{write_meaning(term)}</dd>'
        for term in used
    )
    return f'{linked}\n<h2 id="terms">Terms</h2><dl class="terms">{entries}</dl>'


def link_terms(body: str) -> tuple[str, list[Term]]:
    """Return the body with the first use of each term as a link, and the terms in the order of the
    glossary.
    """
    missing, pieces, closed = list(TERMS), TAG.split(body), 0
    for place, piece in enumerate(pieces):
        if place % 2:
            closed += _depth(piece)
        elif closed == 0:
            pieces[place] = _link(piece, missing)
    return "".join(pieces), [term for term in TERMS if term not in missing]


def write_meaning(term: Term) -> str:
    """Return the meaning of a term as HTML."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(term.meaning))
    return re.sub(r"\*(\w+)\*", r"<em>\1</em>", text)


def _depth(tag: str) -> int:
    """1 where a tag opens an element that is not prose, -1 where it closes one, else 0."""
    name = tag.strip("</>").split()[0].lower() if tag.strip("</> ") else ""
    return 0 if name not in NOT_PROSE else -1 if tag.startswith("</") else 1


def _link(text: str, missing: list[Term]) -> str:
    """Link the first use of each missing term in a piece of text without tags; terms that were
    found leave the list.
    """
    found = {term: match for term in missing if (match := compile_term(term).search(text))}
    taken: list[tuple[int, int, Term]] = []
    for term, match in found.items():
        begin, end = match.span()
        if all(
            end <= other[0] or begin >= other[1] for other in taken
        ):  # "precision wall" is one term, not two
            taken.append((begin, end, term))
            missing.remove(term)
    for begin, end, term in sorted(taken, key=lambda one: one[0], reverse=True):
        text = (
            f'{text[:begin]}<a class="term"'
            f' href="#term-{term.place}">{text[begin:end]}</a>{text[end:]}'
        )
    return text
