"""The tree of attnlab as docs/architecture.md shows it: the table is what the tests of the layers
go by.
"""

from __future__ import annotations

import re

from places import DOCS

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
BEFORE, _, TREE = PAGE.partition("## The tree")

PATHS = re.findall(r"^\| `([\w/]+(?:/|\.py))` \| \S.* \|$", TREE, re.MULTILINE)
"""Files at the top and folders, as they stand in the table."""

FUNCTIONS = re.findall(r"^\| `([a-zA-Z_.]+)` \| \S.* \|$", BEFORE, re.MULTILINE)
"""The functions of the path of a run."""

LAYERS = tuple(
    path.removesuffix("/").removesuffix(".py")
    for path in PATHS
    if "/" not in path.removesuffix("/")
)
"""What stands at the top, in the order in which it may be imported: a line imports only from lines
above it.
"""
