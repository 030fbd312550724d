"""al.Explorer without anywidget: the name exists, and a call says what to install."""

from __future__ import annotations

from typing import Any

NEEDS_ANYWIDGET = (
    "al.Explorer needs the package anywidget, which is not installed. Install it (pip install"
    " 'attnlab[widget]', or pip install anywidget), restart the kernel, and load the page of the"
    " notebook again. Without it, al.explore(...) shows the same run as a page."
)


class Explorer:
    """A run to play with in a notebook: drag tokens, eigenvalues and time, and read in Python what
    you chose.
    """

    def __init__(self, *sources: Any, **options: Any):
        raise ImportError(NEEDS_ANYWIDGET, name="anywidget")
