"""Whether a figure or a movie can be written under a name: asked before a long run, and again when
it is written.
"""

from __future__ import annotations

import os
from pathlib import Path

from matplotlib.backend_bases import FigureCanvasBase

from attnlab.render.tex import NO_TEX, tex_program

MOVIE_SUFFIXES = (".gif", ".mp4")


def check_figure_name(path: str | os.PathLike[str]) -> Path:
    """The path, if a figure can be written there; the error that saving it would give if not."""
    target = Path(path)
    if target.suffix.lower().lstrip(".") not in FigureCanvasBase.get_supported_filetypes():
        raise ValueError(
            "A figure's file name must end in .png, .pdf or .svg (or .pgf, .eps, .jpg, .tif,"
            f" .webp), got {target.name!r}."
        )
    if target.suffix.lower() == ".pgf":
        if tex_program() is None:
            raise ValueError(NO_TEX)
    return _check_place(target, "figure", ".png, .pdf or .svg")


def check_movie_name(path: str | os.PathLike[str]) -> Path:
    """The path, if a movie can be written there; the error that `movie` would give if not."""
    target = Path(path)
    if target.suffix.lower() not in MOVIE_SUFFIXES:
        raise ValueError(f"A movie's file name must end in .gif or .mp4, got {target.name!r}.")
    return _check_place(target, "movie", ".gif or .mp4")


def _check_place(target: Path, what: str, suffixes: str) -> Path:
    if target.is_dir():
        raise IsADirectoryError(
            f"A {what} is written to a file, but {target} is a folder. Add a name ending in"
            f" {suffixes}."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"The folder {target.parent} does not exist. Create it, or write the {what} elsewhere."
        )
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(closed_folder(target, what, "Permission denied"))
    return target


def closed_folder(target: Path, what: str, reason: str | None) -> str:
    """The sentence for a folder that takes no files."""
    return (
        f"The folder {target.parent} cannot be written to ({reason}). "
        f"Write the {what} elsewhere, or change the folder's permissions."
    )
