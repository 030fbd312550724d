"""The explorer: a run as one page without a server, where the reader moves tokens, eigenvalues and
time.

    attnlab explore polytope -o page.html          al.explore(spec, "page.html")          al.Explorer(spec) in a notebook

`web/` has the modules of the page (JavaScript, no library). `join.py` joins them into one script,
and `page.py` writes the script into one file. `payload.py` makes the record of a page: a Spec that
it integrates itself, or a recording of a run (`recording.py`). `widget.py` shows the same inside a
notebook; `incoming.py` checks the messages from the notebook's page.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.explorer.entry import explore as explore
    from attnlab.explorer.widget import Explorer as Explorer

_HOME = {"explore": "attnlab.explorer.entry", "Explorer": "attnlab.explorer.widget"}
_WITHOUT_ANYWIDGET = {**_HOME, "Explorer": "attnlab.explorer.without_widget"}
__all__ = ["Explorer", "explore"]


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        is_missing = name == "Explorer" and find_spec("anywidget") is None
        return import_name(__name__, _WITHOUT_ANYWIDGET if is_missing else _HOME, name)
