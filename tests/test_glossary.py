"""The glossary: its terms, the links to it from every page, and the meanings at the end of a page
of HTML.
"""

from __future__ import annotations

import re

import pytest

from attnlab.glossary import TERMS, find_terms
from attnlab.render.glossary import add_glossary, link_terms
from attnlab.render.page import page
from places import ROOT

ASKED = {"Leader", "Event", "Hand-over", "Wall", "F", "Grade", "Good triple", "Natural time"}


def names(text: str) -> list[str]:
    return [term.name for term in find_terms(text)]


def test_the_terms_are_explained_in_short_sentences():
    assert {term.name for term in TERMS} >= ASKED and len({term.place for term in TERMS}) == len(
        TERMS
    )
    for term in TERMS:
        assert term.name in names(f"x {term.name} of a batch y"), term.name
        assert all(len(sentence.split()) <= 30 for sentence in re.split(r"[.:] ", term.meaning)), (
            term.name
        )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the leaders of a cluster", ["Leader"]),
        ("a leadership", []),
        ("the norm in F, of k dimensions", ["F"]),
        ("|A|_F and `F` and FF", []),
        ("past the wall", ["Wall"]),
        ("the walls of a prism", []),
        ("wall clock", []),
        ("after the hand-over, good triples", ["Hand-over", "Good triple"]),
        ("members of a cluster", []),
        ("each member of a batch", ["Member"]),
    ],
)
def test_terms_are_found_as_whole_words(text, found):
    assert names(text) == found


# --------------------------------------------------------------------------------------------------
# pages of docs/


def test_the_page_is_current(from_docs):
    maker = from_docs("make_glossary")
    assert maker.PAGE.read_text(encoding="utf-8") == maker.write_page(), (
        "Bring it up to date: python docs/make_glossary.py"
    )
    headings = re.findall(r"^## (.*)$", maker.write_page(), re.MULTILINE)
    assert headings == [term.name for term in TERMS]


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_every_page_that_uses_a_term_links_to_it(path, from_docs):
    maker = from_docs("make_glossary")
    text = path.read_text(encoding="utf-8")
    if path.name in maker.WITHOUT:
        return
    assert text == maker.add_links(text), "Bring it up to date: python docs/make_glossary.py"
    for term in find_terms(maker.plain(text.split("\n\n", 1)[1])):
        assert f"glossary.md#{term.place}" in text, term.name


def test_a_line_of_links_is_replaced_and_goes_with_its_terms(from_docs):
    add = from_docs("make_glossary").add_links
    once = add("# A\n\nThe leader. Code: `F`.\n")
    assert (
        once
        == "# A\n\n*Terms: [leader](glossary.md#leader).*\n\nThe leader. Code: `F`.\n"
        == add(once)
    )
    assert add(once.replace("The leader", "A token")) == "# A\n\nA token. Code: `F`.\n"


def test_the_readme_leads_to_it():
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------------
# pages of HTML


def test_the_first_use_is_a_link_and_the_meaning_stands_below():
    made = page(
        "t", "<h2>The leader</h2><p>A leader, <code>the wall</code>, leaders, a precision wall.</p>"
    )
    assert (
        made.count('class="term"') == 2
        and '<a class="term" href="#term-leader">leader</a>, <code>the wall</code>' in made
    )
    assert (
        '<a class="term" href="#term-wall">precision wall</a>' in made
        and "<h2>The leader</h2>" in made
    )
    assert set(re.findall(r'href="#(term-[\w-]+)"', made)) == set(
        re.findall(r'id="(term-[\w-]+)"', made)
    )
    assert 'id="term-event"' not in made


def test_a_page_without_terms_stays_as_it_is():
    body = "<p>Nothing here: <a href='x'>a leader</a>, <blockquote>the wall</blockquote>.</p>"
    assert add_glossary(body) == body


def test_text_between_tags_alone_changes():
    body = '<p title="leader">&lt;b&gt; a leader &amp; F</p><img alt="the wall">'
    linked, used = link_terms(body)
    assert re.sub(r"<a class=.term.[^>]*>([^<]*)</a>", r"\1", linked) == body
    assert [term.name for term in used] == ["F", "Leader"]
