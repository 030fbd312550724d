"""Python files of the user that register kernels, start laws, observables and more. Their texts are
sent to workers.
"""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class UserFile:
    """A file by its name and text."""

    name: str
    text: str

    @classmethod
    def read(cls, path: str | Path) -> UserFile:
        """Return the file at a path, or raise an error that says what must be there."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: there is no such file.")
        if path.suffix != ".py":
            raise ValueError(f"The name of a Python file must end in .py; got {path}.")
        try:
            return cls(str(path), path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not a text file.") from None

    @property
    def digest(self) -> str:
        """A name for the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def run(self) -> None:
        """Run the file as the module attnlab_user_NAME. Its exceptions are raised unchanged."""
        module = types.ModuleType(f"attnlab_user_{Path(self.name).stem}")
        module.__file__ = self.name
        sys.modules[module.__name__] = module
        exec(compile(self.text, self.name, "exec"), module.__dict__)


imported: list[UserFile] = []
"""The files that `attnlab --import` has run in this process, in their order."""


def run_once(files: Iterable[UserFile]) -> None:
    """Run the files that this process has not run yet, and note them."""
    for file in files:
        if all(file.digest != other.digest for other in imported):
            file.run()
            imported.append(file)
