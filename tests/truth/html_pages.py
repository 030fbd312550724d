"""What the tests read in a page of HTML."""

from __future__ import annotations

from html.parser import HTMLParser


class Seen(HTMLParser):
    """Every tag that opens, what it links to, and whether tags close in the order in which they
    were opened.
    """

    VOID = ("meta", "img", "br")

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.targets, self.open, self.ids = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.targets += [
            value
            for name, value in attributes
            if name in ("src", "href", "data", "srcset", "poster", "action")
        ]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class Links(HTMLParser):
    """The addresses in a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for key, value in attrs if key in ("href", "src")]
