"""Records in a notebook: small tables of HTML, with a picture if it is quick to draw.

    run                     a cell that ends with a record shows what `show(run)` returns

To add a display, write a function in one of the files here, under `@displays.register("Name")`. It
takes a record of the class Name and returns parts of HTML from html.py. A record without such a
function is shown by its fields. Nothing here imports matplotlib before something is drawn. No text
becomes markup: every word goes through `escape`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attnlab.registry import Registry

displays: Registry[Callable[..., Any]] = Registry("display", package="attnlab.notebook")


def show(record: Any) -> str:
    """Return the HTML of a record. It never fails: its last resort is the plain text of the
    record.
    """
    from attnlab.notebook.html import card, escape
    from attnlab.notebook.records import show_fields

    try:
        name = next(
            (kind.__name__ for kind in type(record).__mro__ if kind.__name__ in displays), None
        )
        return card(*(displays[name](record) if name is not None else show_fields(record)))
    except Exception:  # otherwise a notebook prints a traceback instead of the record
        return f"<pre>{escape(repr(record))}</pre>"
