"""A movie that was written to a file, shown inside the notebook."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from attnlab.notebook import displays
from attnlab.notebook.html import escape, note

MOST_BYTES = 12_000_000
"""Bytes of a movie inside a notebook, which is saved with it."""

TYPES = {".gif": "image/gif", ".mp4": "video/mp4"}


@displays.register("Film")
def show_film(film: Path) -> tuple[str, ...]:
    """The movie itself where it is not too large."""
    kind, title = TYPES.get(film.suffix.lower()), f"Movie: {film}"
    if kind is None or not film.is_file():
        return title, note("There is no movie of that name." if kind else "This is a path.")
    size = film.stat().st_size
    if size > MOST_BYTES:
        return title, note(f"It has {size / 1e6:.1f} MB, too much for a notebook: open the file.")
    source = f"data:{kind};base64,{base64.b64encode(film.read_bytes()).decode('ascii')}"
    if kind.startswith("image"):
        return title, f'<img alt="{escape(film.name)}" src="{source}">'
    return title, f'<video controls loop muted src="{source}"></video>'


@displays.register("Films")
def show_films(films: Any) -> tuple[str, ...]:
    """The first of several files with the same frames, and the names of all."""
    first = show_film(films[0]) if films else ("Movies",)
    return *first, note(f"The same frames are in {', '.join(str(one) for one in films)}.")
