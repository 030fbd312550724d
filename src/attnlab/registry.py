"""A registry: things by name, each registered in the one file that defines it.

    start_laws = Registry("start law")

    @start_laws.register("uniform_cube")
    def uniform_cube(n, d, *, low=-1.0, high=1.0, rng=None): ...

A registry with a package imports the modules of the package to list its names, so a new file needs
no second change. For one name it imports only the file that registers it. `outline` reads names and
docstrings from the texts of the files, and imports nothing.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

Thing = TypeVar("Thing")
"""The type of the things in a registry."""

Registered = TypeVar("Registered")
"""The type of one registered thing. Decorating does not change it."""

DECLARED = re.compile(r'^@?(?:\w+\.register|family)\("(\w+)"', re.MULTILINE)
DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)


def outline(package: str) -> dict[str, str]:
    """Return {name: docstring} of everything that the files of a package register, from their
    texts, without imports.

    So the help page and `attnlab list` need not load the compiler or matplotlib. The docstring is
    that of the decorated function, or of the file. Each name must be in quotes in
    `@things.register("name")`, or in `things.register("name")(...)`, at the start of a line. A test
    compares the result with the registries.
    """
    root, *rest = package.split(".")
    found = {}
    for file in sorted(Path(sys.modules[root].__path__[0]).joinpath(*rest).glob("*.py")):
        text = file.read_text("utf-8")
        for match in DECLARED.finditer(text):
            docstring = DOCSTRING.search(text, match.end() if match[0].startswith("@") else 0)
            found[match[1]] = inspect.cleandoc(docstring[1]) if docstring else ""
    return dict(sorted(found.items()))


def import_name(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Import and return the thing `name` of a package from its module, {name: module}. For the
    __getattr__ of a package.

    A package must not import its own modules when it is imported. Python locks a module before its
    package. So a thread that imports package.module and another that imports package, which imports
    package.module, would wait for each other.
    """
    if name in homes:
        return getattr(importlib.import_module(homes[name]), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


class UnknownName(LookupError):
    """Raised for a name that is not registered. The message suggests the nearest name and lists all
    names.

    Examples
    --------
    >>> import attnlab as al
    >>> al.kernels["softmx"]
    Traceback (most recent call last):
        ...
    attnlab.registry.UnknownName: Unknown kernel 'softmx'. Did you mean 'softmax'? ...
    """


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownName:
    """Return the error for `name`: its kind, the nearest known name, and all known names."""
    names = sorted(map(str, known))  # of an enumeration its words
    # the shortest known name that contains the word comes before one that is spelled alike: entropy
    # -> attention_entropy
    containing = sorted(
        (known_name for known_name in names if len(str(name)) > 3 and str(name) in known_name),
        key=len,
    )
    near = containing or difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UnknownName(f"Unknown {kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}.")


class Registry(Generic[Thing]):
    """Named things of one kind. `kind` is their name in error messages."""

    def __init__(self, kind: str, package: str | None = None):
        self.kind = kind
        self._package = package
        self._is_loaded = package is None
        self._things: dict[str, Thing] = {}
        self._imported: set[str] = (
            set()
        )  # names that are complete: their file is imported, or they have none

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Return a decorator that registers a thing under `name`. A name can be used once."""

        def file_it(thing: Any) -> Any:
            if name in self._things:
                raise ValueError(
                    f"The {self.kind} {name!r} is registered already, by {self._things[name]!r}."
                )
            self._things[name] = thing
            return thing

        return file_it

    def _load(self) -> None:
        """Import every module of the package; the registry counts as loaded only when the last of
        them is complete.

        There is no lock here on purpose. Python locks each module while it is imported, so a second
        thread waits for the first. A lock around that could deadlock with a thread that is
        importing one of the modules and asks for a name meanwhile.
        """
        if self._is_loaded or self._package is None:
            return
        package = importlib.import_module(self._package)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
        self._is_loaded = True

    def _load_file_of(self, name: str) -> bool:
        """Import the file with the name, or whose text registers it, and return whether the name is
        registered.

        The file is imported even if the name is registered already, because another thread may
        still be importing it.
        """
        if self._is_loaded or self._package is None or name in self._imported:
            return name in self._things
        file = name if self._has_file(name) else self._find_file(name)
        if file:
            importlib.import_module(f"{self._package}.{file}")
        if name in self._things:
            self._imported.add(name)
        return name in self._things

    def _find_file(self, name: str) -> str:
        """Return the file of the package whose text registers the name, for files with several
        names; "" if none does.
        """
        package = importlib.import_module(str(self._package))
        for file in sorted(Path(package.__path__[0]).glob("*.py")):
            if file.stem != "__init__" and any(
                match[1] == name for match in DECLARED.finditer(file.read_text("utf-8"))
            ):
                return file.stem
        return ""

    def _has_file(self, name: str) -> bool:
        """Whether the package has a file with this name."""
        package = importlib.import_module(str(self._package))
        return any(module.name == name for module in pkgutil.iter_modules(package.__path__))

    def __getitem__(self, name: str) -> Thing:
        if not self._load_file_of(name):
            self._load()
        if name not in self._things:
            raise unknown_name(self.kind, name, self._things)
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._things))

    def in_order(self) -> list[str]:
        """Return the names in the order of registration."""
        self._load()
        return list(self._things)

    def __len__(self) -> int:
        self._load()
        return len(self._things)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and self._load_file_of(name):
            return True
        self._load()
        return name in self._things


class FolderRegistry(Registry[Any]):
    """Named things that are a folder each. A thing has the name of its folder, and is loaded when
    it is needed.

    folders: their paths by name. load: makes the thing from its folder. Other things may be
    registered too.
    """

    def __init__(
        self,
        kind: str,
        folders: Mapping[str, Path],
        load: Callable[[Path], Any],
        package: str | None = None,
    ):
        super().__init__(kind, package)
        self.folders, self._load_folder = dict(folders), load
        self._things.update(self.folders)

    def _load_file_of(self, name: str) -> bool:
        return name in self._things or super()._load_file_of(name)

    def __getitem__(self, name: str) -> Any:
        thing = super().__getitem__(name)
        if isinstance(thing, Path):
            thing = self._things[name] = self._load_folder(thing)
        return thing
