"""Sweep: a base Spec, axes over its keys, and the numbers to keep of each run. Nothing is computed
here.

[base.start]                                     any part of a Spec
[axes]       "dynamics.beta" = [0.1, 1, 9]       any key of it; "weights.eigenvalues.1" is the second entry of a list
[numbers]    spread = { observable = "diameter", at = "last" }
seeds = 200                                      short for the axis "start.rng" = { range = [0, 200] }
small = { "dynamics.beta" = [1, 9], seeds = 3 }  the small version
exclude = [{ "dynamics.beta" = 9, "start.n" = [2, 3] }]
"""

from __future__ import annotations

import copy
import hashlib
import os
import tomllib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.array_files import is_array_name
from attnlab.displayed import Displayed, count_words, short_value
from attnlab.progress import ProgressOption
from attnlab.registry import unknown_name
from attnlab.spec import LONGEST_FILE, MOST_LEVELS, SECTIONS, Spec, canonical_text
from attnlab.sweep.grid import Cell, Grid

if TYPE_CHECKING:
    from attnlab.sweep.run import Plan
    from attnlab.sweep.runner import Estimate, Tally

KEYS = ("base", "axes", "numbers", "seeds", "small", "exclude")
SEEDS = "start.rng"
MARK = "\N{REPLACEMENT CHARACTER}axis {}\N{REPLACEMENT CHARACTER}"
"""The mark for the value of an axis in the text from which digests are computed."""


@dataclass(frozen=True, eq=False)
class Sweep(Displayed):
    """Many runs: the Spec of each cell is `base` with the values of the cell at the keys of the
    axes.

    Make one with `load` or `from_dict`.

    Attributes
    ----------
    base : mapping
        A Spec as a table. Keys that an axis gives may be missing.
    grid : Grid
        The axes.
    numbers : mapping
        {name: what is kept of each run}.
    path : Path or None
        The file of the sweep. The results are written next to it, with the suffix .sqlite.
    arrays : mapping
        {"key = name": numbers} of the files of numbers that the values of axes name.

    Examples
    --------
    >>> import attnlab as al
    >>> base = {"weights": {"family": "identity"}, "start": {"law": "uniform_cube", "n": 4, "d": 2}, "solve": {"t_end": 1.0}}
    >>> numbers = {"spread": {"observable": "diameter", "at": "last"}}
    >>> sweep = al.Sweep.from_dict({"base": base, "axes": {"dynamics.beta": [1.0, 4.0]}, "numbers": numbers}, "phase.toml")
    >>> sweep.run(workers=0).computed
    2
    >>> al.sweep.load(sweep)["dynamics.beta"].tolist()
    [1.0, 4.0]
    """

    base: Mapping[str, Any]
    grid: Grid
    numbers: Mapping[str, Mapping[str, Any]]
    path: Path | None = None
    arrays: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sweep:
        """Return the sweep in a .toml file, with the numbers of the files that it names.

        Parameters
        ----------
        path : str or path
            The name of the file. Names of files of numbers are relative to its folder.

        Returns
        -------
        Sweep
            The sweep. Nothing is computed.
        """
        path = Path(path)
        if path.is_dir():
            raise ValueError(f"{path} is a folder: give the name of a sweep's file.")
        if not path.exists():
            raise FileNotFoundError(f"There is no sweep at {path}.")
        if not path.is_file():
            raise ValueError(
                f"{path} is not a file but a device or a pipe: write the sweep to a file first."
            )
        if path.suffix != ".toml":
            raise ValueError(f"The name of a sweep's file must end in .toml, got {path}.")
        if path.stat().st_size > LONGEST_FILE:
            raise ValueError(
                f"{path} has {path.stat().st_size / 1e6:.0f} MB, but a sweep may have"
                f" {LONGEST_FILE / 1e6:.0f} MB."
            )
        try:
            return cls.from_dict(tomllib.loads(path.read_text(encoding="utf-8")), path)
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not a text file: a sweep is TOML.") from None
        except tomllib.TOMLDecodeError as problem:
            raise ValueError(f"{path} is not valid TOML: {problem}") from None
        except RecursionError:
            raise ValueError(
                f"{path} has far too many lists or tables inside each other."
            ) from None
        except (TypeError, ValueError) as problem:
            raise ValueError(f"{path}: {problem}") from None

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], path: str | os.PathLike[str] | None = None
    ) -> Sweep:
        """Return the sweep in a nested dictionary.

        Parameters
        ----------
        data : mapping
            The tables `base`, `axes` and `numbers`, and maybe `seeds`, `small` and `exclude`, as in
            a file.
        path : str or path, optional
            The name of its file, which need not exist. The results are written next to it.

        Returns
        -------
        Sweep
            The sweep. Nothing is computed.
        """
        if not isinstance(data, Mapping):
            raise TypeError(
                f"A sweep is a table with base, axes and numbers, got {type(data).__name__}."
            )
        check_depth(data)
        for key in data:
            if key not in KEYS:
                raise unknown_name("key of a sweep", key, KEYS)
        for key in ("base", "numbers"):
            if not isinstance(data.get(key), Mapping) or not data[key]:
                raise ValueError(
                    f"A sweep needs the table [{key}], got"
                    f" {short_value(data[key]) if key in data else 'none'}."
                )
        axes, small = dict(_table(data, "axes")), dict(_table(data, "small"))
        if "seeds" in data:
            if SEEDS in axes:
                raise ValueError(
                    f'seeds is short for the axis "{SEEDS}", but this axis is given too. Give one'
                    " of them."
                )
            axes[SEEDS] = _seeds("seeds", data["seeds"])
        if "seeds" in small:
            small[SEEDS] = _seeds("small.seeds", small.pop("seeds"))
        if not axes:
            raise ValueError(
                'A sweep needs the table [axes], such as "dynamics.beta" = [1, 9], or seeds.'
            )
        grid = Grid(axes, small, data.get("exclude", ()))
        _check_keys(grid.keys)
        folder = Path("." if path is None else path).parent
        base = _read_base(data["base"], folder)
        from attnlab.sweep.numbers import read_numbers

        made = cls(base, grid, read_numbers(data["numbers"]), None if path is None else Path(path))
        return cls(made.base, grid, made.numbers, made.path, _read_arrays(made, folder))

    @property
    def rows_path(self) -> Path:
        """The file of the results: phase.sqlite for phase.toml."""
        if self.path is None:
            raise ValueError(
                'This sweep has no file. Use Sweep.from_dict(data, "phase.toml") to name the file'
                " of its results."
            )
        return self.path.with_suffix(".sqlite")

    def reduced(self) -> Sweep:
        """Return the small version. Its cells are other cells in the same file of results."""
        grid = self.grid.reduced()
        return Sweep(
            self.base, grid, self.numbers, self.path, _read_arrays(self, self.folder, grid)
        )

    @property
    def folder(self) -> Path:
        """The folder for names of files."""
        return Path("." if self.path is None else self.path).parent

    def spec_of(self, cell: Cell) -> Spec:
        """Return the Spec of a cell: `al.run_spec` of it is the run of that cell.

        Parameters
        ----------
        cell : dict
            {key: value}, as the grid gives it.

        Returns
        -------
        Spec
            The Spec.
        """
        return Spec.from_dict(put_values(self.base, cell, self.arrays))

    def digest_of(self, cell: Cell) -> str:
        """Return the digest of the Spec of a cell.

        Parameters
        ----------
        cell : dict
            {key: value}, as the grid gives it.

        Returns
        -------
        str
            16 hexadecimal digits.
        """
        return self._digest(cell)

    @property
    def measured(self) -> str:
        """A digest of the table of numbers. Rows that were computed for another table are computed
        again.
        """
        return hashlib.sha256(canonical_text(dict(self.numbers)).encode()).hexdigest()[:16]

    def head(self) -> dict[str, Any]:
        """Return the data with which a worker can compute any cell, as plain JSON values."""
        return {
            "base": dict(self.base),
            "numbers": dict(self.numbers),
            "arrays": dict(self.arrays),
            "measured": self.measured,
        }

    @cached_property
    def _digest(self) -> Callable[[Cell], str]:
        """Return the function from a cell to the digest of its Spec. Making the Spec itself takes
        100 times as long.
        """
        keys = self.grid.keys
        if any(
            "." not in key for key in keys
        ):  # a whole section may be left out of a Spec's text where it is empty
            return lambda cell: self.spec_of(cell).digest()
        marks = {key: MARK.format(number) for number, key in enumerate(keys)}
        text = canonical_text(Spec.from_dict(put_values(self.base, marks, {})).to_dict())
        before: list[tuple[str, str]] = []  # (text before the value, key), in the order of the text
        used = 0
        for place, key in sorted(
            (text.index(canonical_text(mark)), name) for name, mark in marks.items()
        ):
            before.append((text[used:place], key))
            used = place + len(canonical_text(marks[key]))

        def digest(cell: Cell) -> str:
            parts = [
                piece + canonical_text(_with_array(key, cell[key], self.arrays))
                for piece, key in before
            ]
            return hashlib.sha256(("".join(parts) + text[used:]).encode()).hexdigest()[:16]

        return digest

    def __repr__(self) -> str:
        cells = count_words(len(self.grid), "cell")
        return (
            f"Sweep({cells} over {', '.join(self.grid.names)}; numbers: {', '.join(self.numbers)})"
        )

    def run(
        self,
        *,
        client: Any = None,
        workers: int | None = None,
        retry: str | Sequence[str] = (),
        small: bool = False,
        prune: bool = False,
        yes: bool = False,
        imports: Sequence[str | Path] = (),
        progress: ProgressOption = False,
        announce: Callable[[Estimate], None] | None = None,
        look: Callable[[Plan], None] | None = None,
        only: Container[int] | None = None,
    ) -> Tally:
        """Compute the missing cells, and return a Tally: how many were computed, and how many
        failed.

        Parameters
        ----------
        client : dask.distributed.Client, optional
            A cluster. The default is processes on this machine.
        workers : int, optional
            The number of processes. The default is one per core. 0 is this process alone.
        retry : str or sequence of str, optional
            "failed" computes failed cells again. So does a status, such as "max_steps".
        small : bool, optional
            Whether to compute the small version: other cells in the same file of results.
        prune : bool, optional
            Whether to remove the rows of cells that the sweep no longer has.
        yes : bool, optional
            Confirm more than a million cells.
        imports : sequence of str or path, optional
            Python files of your own whose kernels, observables and start laws the workers need.
        progress : bool, function or Progress, optional
            False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
            cancel.
        announce : function, optional
            It is called with an Estimate before most cells are computed.
        look : function, optional
            It is called with the Plan before any cell is computed.
        only : container of int, optional
            The places of the cells to consider. All others are neither computed nor counted.

        Returns
        -------
        Tally
            The numbers of cells that were computed, kept and failed.
        """
        from attnlab.sweep.run import run_sweep

        return run_sweep(
            self,
            client=client,
            workers=workers,
            retry=retry,
            small=small,
            prune=prune,
            yes=yes,
            imports=imports,
            progress=progress,
            announce=announce,
            look=look,
            only=only,
        )


def check_depth(data: Any) -> None:
    """Refuse lists and tables that are nested too deeply."""
    level = [data]
    for _ in range(MOST_LEVELS + 3):
        level = [
            entry
            for one in level
            if isinstance(one, Mapping | list | tuple)
            for entry in (one.values() if isinstance(one, Mapping) else one)
            if isinstance(entry, Mapping | list | tuple)
        ]
        if not level:
            return
    raise ValueError(
        f"A sweep must have at most {MOST_LEVELS + 3} lists or tables inside each other, got more."
    )


def put_values(
    base: Mapping[str, Any], cell: Mapping[str, Any], arrays: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a copy of the base with the values of the cell at their keys, as a table for
    Spec.from_dict.
    """
    made = {section: base[section] for section in base}
    copied: set[int] = set()
    for key, value in cell.items():
        _put(made, key, key.split("."), copy.deepcopy(_with_array(key, value, arrays)), copied)
    for section in ("weights", "start", "solve"):
        made.setdefault(section, {})
    return made


def _put(table: Any, key: str, path: list[str], value: Any, copied: set[int]) -> None:
    """Put a value at a path. Tables and lists on the way are copied, each once."""
    name: Any = path[0]
    if isinstance(table, list):
        if not name.isdecimal() or int(name) >= len(table):
            raise ValueError(
                f"The axis {key!r}: {name!r} must be the number of an entry of a list of"
                f" {len(table)}, from 0."
            )
        name = int(name)
    elif not isinstance(table, dict):
        raise ValueError(
            f"The axis {key!r} leads into {short_value(table)}, which is neither a table nor a"
            " list."
        )
    if len(path) == 1:
        table[name] = value
        return
    inner = table[name] if isinstance(table, list) else table.get(name, {})
    if id(inner) not in copied:
        inner = (
            dict(inner)
            if isinstance(inner, Mapping)
            else list(inner)
            if isinstance(inner, list)
            else inner
        )
        copied.add(id(inner))
        table[name] = inner
    _put(inner, key, path[1:], value, copied)


def _with_array(key: str, value: Any, arrays: Mapping[str, Any]) -> Any:
    """Return the numbers of the file that a value names, or the value."""
    return arrays.get(f"{key} = {value}", value) if arrays and isinstance(value, str) else value


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if not isinstance(table := data.get(key, {}), Mapping):
        raise ValueError(f"{key} must be a table, got {short_value(table)}.")
    return table


def _seeds(name: str, count: Any) -> range:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"{name} must be a whole number of seeds, 1 or more, got {count!r}.")
    return range(count)


def _check_keys(keys: tuple[str, ...]) -> None:
    """Refuse axes that name no section of a Spec, or one of which is a part of another."""
    for key in keys:
        section, *rest = key.split(".")
        if section not in SECTIONS:
            raise unknown_name(f"section of the axis {key!r}", section, SECTIONS)
        if key == "solve.batch" or key == "start.batch":
            raise ValueError("A cell is one run. Use seeds instead of start.batch.")
        if not all(rest):
            raise ValueError(
                f"The axis {key!r} must be a section and a key, such as dynamics.beta."
            )
        for other in keys:
            if other != key and other.startswith(f"{key}."):
                raise ValueError(
                    f"The axis {other!r} is a part of the axis {key!r}. Leave one of them out."
                )


def _read_base(base: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the base with the numbers of the files that it names."""
    known = (*SECTIONS, "observe")
    for key in base:
        if key not in known:
            raise unknown_name("section of base", key, known)
    sections = {section: base.get(section, {}) for section in SECTIONS}
    read = Spec(**sections, observe=base.get("observe", ())).read_files(folder)
    if "batch" in read.start:
        raise ValueError("A cell is one run. Use seeds instead of start.batch.")
    return {key: value for key, value in read.to_dict().items() if key in base}


def _read_arrays(sweep: Sweep, folder: Path, grid: Grid | None = None) -> dict[str, Any]:
    """Return the numbers of the files that values of axes name, as a Spec reads them: {"key =
    name": numbers}.
    """
    found: dict[str, Any] = {}
    for name, values in (sweep.grid if grid is None else grid).axes.items():
        for value in values:
            if not is_array_name(value):
                continue
            read: Any = (
                Spec.from_dict(put_values(sweep.base, {name: value}, {}))
                .read_files(folder)
                .to_dict()
            )
            for part in name.split("."):
                read = read[int(part) if isinstance(read, list) else part]
            found[f"{name} = {value}"] = read
    return found
