"""The explorer: a run as one page without a server, in which the reader moves tokens, eigenvalues and time.

    attnlab explore polytope -o page.html          al.explore(spec, "page.html")

`web/` has the modules of the page (JavaScript, no library), which `join.py` joins into one script and `page.py` writes into one
file. `payload.py` says what a page shows: a Spec that it integrates itself, or a recording of a run (`recording.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.explorer.entry import explore as explore

_HOME = {"explore": "attnlab.explorer.entry"}
__all__ = ["explore"]


def __getattr__(name: str) -> Any:
    return import_name(__name__, _HOME, name)
