"""What `movie` returns: the path of the file, which a notebook shows as the movie itself."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.displayed import Displayed

if TYPE_CHECKING or sys.platform != "win32":
    from pathlib import PosixPath as PlatformPath
else:
    from pathlib import WindowsPath as PlatformPath


class Film(PlatformPath, Displayed):
    """The path of a movie."""

    def with_segments(self, *parts: str | os.PathLike[str]) -> Path:
        """A plain path: the folder of a movie is not a movie."""
        return Path(*parts)


class Films(list[Film], Displayed):
    """The paths of one movie in several formats."""
