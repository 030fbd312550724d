"""The Spec: a whole run as words and numbers."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.array_files import find_array, is_array_name
from attnlab.displayed import LONGEST, Displayed, short_value, shorten
from attnlab.files import write_text

SECTIONS = ("weights", "dynamics", "start", "solve")

MOST_LEVELS = 12
"""The most tables and lists inside each other. Matrices of several heads need five levels; deeper
values have no meaning.
"""

LONGEST_FILE = 200_000_000
"""The most bytes of the file of a Spec: enough for matrices of a few thousand dimensions."""


def _plain(where: str, value: Any, level: int = 0) -> Any:
    """Return `value` as data that both TOML and JSON can hold, or raise a TypeError that names the
    place.
    """
    if level > MOST_LEVELS:
        raise ValueError(
            f"Spec.{where[:80]} must have at most {MOST_LEVELS} lists or tables inside each other."
        )
    if isinstance(value, np.ndarray):
        return _plain(where, value.tolist(), level)
    if isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        if abs(int(value)) > 10**300:
            raise ValueError(
                f"Spec.{where} must be a number in the range of double precision, at most 1e300."
            )
        return int(value)
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise ValueError(f"Spec.{where} must be finite, got {value}.")
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"Spec.{where} must have words as keys, got {key!r}.")
        return {key: _plain(f"{where}.{key}", entry, level + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{where}[{i}]", entry, level + 1) for i, entry in enumerate(value)]
    raise TypeError(
        f"Spec.{where} must be a number, a word, a list or a table, got {type(value).__name__}."
    )


MATRICES = ("V", "Q", "K", "B", "C", "W", "x")
"""Keys whose numbers stay a matrix, even if a file holds one row or one column. For other keys this
becomes a list.
"""


SENTENCES = ("text",)
"""Keys whose words are free text, which may end like the name of a file."""


def _with_numbers(where: str, value: Any, folder: Path, files: dict[str, str]) -> Any:
    """Return a table or list with the numbers in place of names of files. Records {place: name} in
    `files`.
    """
    if isinstance(value, Mapping):
        return {
            key: _with_numbers(f"{where}.{key}", entry, folder, files)
            for key, entry in value.items()
        }
    if isinstance(value, list) and not _is_numbers(value):
        return [
            _with_numbers(f"{where}[{i}]", entry, folder, files) for i, entry in enumerate(value)
        ]
    if not _is_file_name(where, value):
        return value
    key = where.rpartition(".")[2]
    try:
        array = find_array(folder, value, key)
    except ValueError as problem:
        raise ValueError(f"Spec.{where}: {problem}") from None
    files[where] = value
    return (
        array.ravel() if key not in MATRICES and array.size == max(array.shape) else array
    ).tolist()


def _names_in(where: str, value: Any) -> dict[str, str]:
    """Return {place: name} of all names of files in a table or list."""
    found = {where: value} if _is_file_name(where, value) else {}
    if isinstance(value, Mapping):
        for key, entry in value.items():
            found |= _names_in(f"{where}.{key}", entry)
    elif isinstance(value, list) and not _is_numbers(value):
        for i, entry in enumerate(value):
            found |= _names_in(f"{where}[{i}]", entry)
    return found


def _is_file_name(where: str, value: Any) -> bool:
    """Whether the value at a place of a Spec names a file of numbers."""
    return is_array_name(value) and where.rpartition(".")[2] not in SENTENCES


def _is_numbers(value: list[Any]) -> bool:
    """Whether a list begins with a number: then it is a row of numbers, and has no names."""
    return bool(value) and isinstance(value[0], int | float)


def _parse(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except RecursionError:
        raise ValueError(
            f"A Spec must have at most {MOST_LEVELS} lists or tables inside each other, got far"
            " more."
        ) from None


def canonical_text(value: Any) -> str:
    """Return a text for a JSON value such that equal values have equal texts, and so equal
    digests.
    """
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _canonical(value: Any) -> Any:
    """Return the value with 5.0 as 5: both mean the same run, so they must have the same digest."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _canonical(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_canonical(entry) for entry in value]
    return value


@dataclass(frozen=True)
class Spec(Displayed):
    """A whole run as words and numbers, from and to TOML and JSON. `resolve` checks names and keys.

    A word that ends in .npy, .npz or .csv is the name of a file of numbers. `Spec.load` replaces it
    by the numbers, so that the digest covers them and the Spec is complete. `Spec(...)`,
    `from_dict`, `from_toml` and `from_json` read no files; `read_files` does.

    Parameters
    ----------
    weights : mapping
        The family of the matrices and its parameters.
    start : mapping
        The law of the first tokens and its parameters.
    solve : mapping
        How long and how accurately the run is integrated.
    dynamics : mapping, optional
        The equation.
    observe : sequence of str, optional
        The observables to keep.
    files : mapping, optional
        {place: name} of the files from which numbers were read.

    Examples
    --------
    >>> import attnlab as al
    >>> spec = al.Spec(weights={"family": "identity"}, start={"law": "uniform_cube", "n": 4, "d": 2}, solve={"t_end": 1.0})
    >>> al.Spec.from_toml(spec.to_toml()) == spec
    True
    >>> al.run_spec(spec).x.shape
    (101, 4, 2)
    """

    weights: Mapping[str, Any]
    start: Mapping[str, Any]
    solve: Mapping[str, Any]
    dynamics: Mapping[str, Any] = field(default_factory=dict)
    observe: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for section in SECTIONS:
            value = getattr(self, section)
            if not isinstance(value, Mapping):
                raise TypeError(f"Spec.{section} must be a table, got {type(value).__name__}.")
            object.__setattr__(self, section, _plain(section, value))
        is_list = isinstance(self.observe, list | tuple)
        if not is_list or not all(isinstance(name, str) for name in self.observe):
            raise TypeError(
                f"Spec.observe must be a list of names, got {str(self.observe)[:80]!r}."
            )
        object.__setattr__(self, "observe", tuple(self.observe))

    def __repr__(self) -> str:
        parts = [
            f"{section}:"
            f" {', '.join(f'{key} = {short_value(value)}' for key, value in getattr(self, section).items())}"
            for section in SECTIONS
            if getattr(self, section)
        ]
        return shorten(
            f"Spec({'; '.join(parts)}{'; observe: ' + ', '.join(self.observe) if self.observe else ''})",
            LONGEST,
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spec:
        """Return the Spec in a nested dictionary.

        Parameters
        ----------
        data : mapping
            The sections `weights`, `start` and `solve`, and maybe `dynamics` and `observe`.

        Returns
        -------
        Spec
            The Spec. Files that it names are not read.

        Raises
        ------
        ValueError
            A section is unknown or missing.
        """
        if not isinstance(data, Mapping):
            raise TypeError(
                "A Spec is a table with the sections weights, start and solve, got"
                f" {type(data).__name__}."
            )
        known = (*SECTIONS, "observe")  # not `files`, which are for messages only
        unknown = [key for key in data if key not in known]
        if unknown:
            raise ValueError(
                f"A Spec has the sections {', '.join(known)}; got the unknown key {unknown[0]!r}."
            )
        missing = [key for key in ("weights", "start", "solve") if key not in data]
        if missing:
            raise ValueError(
                f"A Spec needs the sections weights, start and solve; {', '.join(missing)} is"
                " missing."
            )
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the nested dictionary that `from_dict` reads. Empty parts are left out."""
        data: dict[str, Any] = {"observe": list(self.observe)} if self.observe else {}
        data |= {
            section: dict(getattr(self, section))
            for section in SECTIONS
            if section != "dynamics" or self.dynamics
        }
        return data

    @classmethod
    def from_toml(cls, text: str) -> Spec:
        """Return the Spec in a text in TOML.

        Parameters
        ----------
        text : str
            The text. Use `load` for a file.

        Returns
        -------
        Spec
            The Spec.
        """
        return cls.from_dict(_parse(tomllib.loads, text))

    def to_toml(self) -> str:
        """Return this Spec in TOML."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """Return the Spec in a text in JSON.

        Parameters
        ----------
        text : str
            The text. Use `load` for a file.

        Returns
        -------
        Spec
            The Spec.
        """
        return cls.from_dict(_parse(json.loads, text))

    def to_json(self) -> str:
        """Return this Spec in JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Spec:
        """Return the Spec in a file, with the numbers of the files that it names.

        Parameters
        ----------
        path : str or path
            A .toml or .json file. Names of files of numbers are relative to its folder.

        Returns
        -------
        Spec
            The Spec.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            The file is not a Spec. The message says where.
        """
        path = Path(path)
        if path.exists() and not path.is_file() and not path.is_dir():
            raise ValueError(
                f"{path} is not a file but a device or a pipe: write the Spec to a file first."
            )
        if path.is_file() and path.stat().st_size > LONGEST_FILE:
            size = path.stat().st_size / 1e6
            raise ValueError(
                f"{path} has {size:.0f} MB, but a Spec may have {LONGEST_FILE / 1e6:.0f} MB. Is it"
                " a Spec?"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no Spec at {path}.") from None
        except IsADirectoryError:
            raise IsADirectoryError(
                f"{path} is a folder: give the name of a Spec's file."
            ) from None
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not a text file: a Spec is TOML or JSON.") from None
        try:
            spec = cls.from_json(text) if path.suffix == ".json" else cls.from_toml(text)
            return spec.read_files(path.parent)
        except (tomllib.TOMLDecodeError, json.JSONDecodeError) as problem:
            raise ValueError(
                f"{path} is not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {problem}"
            ) from None
        except TypeError as problem:
            raise TypeError(f"{path}: {problem}") from None
        except ValueError as problem:
            raise ValueError(f"{path}: {problem}") from None

    def read_files(self, folder: str | os.PathLike[str] = ".") -> Spec:
        """Return the Spec with numbers in place of the names of files.

        Parameters
        ----------
        folder : str or path, optional
            The folder to which the names are relative.

        Returns
        -------
        Spec
            The Spec with its numbers.
        """
        files: dict[str, str] = {}
        read = {
            section: _with_numbers(section, getattr(self, section), Path(folder), files)
            for section in SECTIONS
        }
        return replace(self, **read, files={**self.files, **files}) if files else self

    @property
    def unread_files(self) -> dict[str, str]:
        """Return {place: name} of the files of numbers that have not been read."""
        return {
            where: name
            for section in SECTIONS
            for where, name in _names_in(section, getattr(self, section)).items()
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the Spec to a file. An existing file is replaced completely or not at all.

        Parameters
        ----------
        path : str or path
            The name of a .toml or .json file.
        """
        path = Path(path)
        text = self.to_json() if path.suffix == ".json" else self.to_toml()
        if not path.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {path.parent}. Create it first.")
        write_text(path, text)

    def digest(self) -> str:
        """Return a name for the run: 16 hexadecimal digits of the SHA-256 of its canonical JSON."""
        return hashlib.sha256(canonical_text(self.to_dict()).encode()).hexdigest()[:16]
