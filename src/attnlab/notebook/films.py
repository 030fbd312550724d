"""Displays of movies that were written to files."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from attnlab.notebook import displays
from attnlab.notebook.html import escape, note

MOST_BYTES = 12_000_000
"""The most bytes of a movie inside a notebook. The notebook file contains the movie."""

TYPES = {".gif": "image/gif", ".mp4": "video/mp4"}


@displays.register("Film")
def show_film(film: Path) -> tuple[str, ...]:
    """Show the movie itself unless it is too large."""
    kind, title = TYPES.get(film.suffix.lower()), f"Movie: {film}"
    if kind is None or not film.is_file():
        return title, note("There is no movie of that name." if kind else "This is a path.")
    size = film.stat().st_size
    if size > MOST_BYTES:
        return title, note(
            f"The movie has {size / 1e6:.1f} MB, too much for a notebook. Open the file."
        )
    source = f"data:{kind};base64,{base64.b64encode(film.read_bytes()).decode('ascii')}"
    if kind.startswith("image"):
        return title, f'<img alt="{escape(film.name)}" src="{source}">'
    return title, f'<video controls loop muted src="{source}"></video>'


@displays.register("Films")
def show_films(films: Any) -> tuple[str, ...]:
    """Show the first of several files with the same frames, and the names of all."""
    first = show_film(films[0]) if films else ("Movies",)
    return *first, note(f"The same frames are in {', '.join(str(one) for one in films)}.")
