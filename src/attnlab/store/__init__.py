"""Results on disk and as labelled arrays: save, load, to_xarray.

A result is one NetCDF-4 file without pickle, from which `load(path)` restores every bit. The file
has a checksum of its whole content, and `load` verifies it. `kinds/` has one file per kind of
result, `formats/` one per file format for other programs, which `load` does not read (.csv, .npz,
.mat, .json).

To add a kind of result: a new file `kinds/<name>.py` that registers a `Kind` (packing.py) with
samples of it. The shared test in `tests/conformance/test_storable.py` saves and loads the samples,
damages the files, and asks for labelled arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.registry import import_name

if TYPE_CHECKING:
    from attnlab.files import CannotWrite as CannotWrite
    from attnlab.store.document import CHECKSUM as CHECKSUM
    from attnlab.store.document import FORMAT as FORMAT
    from attnlab.store.document import MARKER as MARKER
    from attnlab.store.kinds.trajectory import WORDS as WORDS
    from attnlab.store.kinds.trajectory import dataset_of as dataset_of
    from attnlab.store.kinds.trajectory import run_from as run_from
    from attnlab.store.verbs import MissingRun as MissingRun
    from attnlab.store.verbs import NotARun as NotARun
    from attnlab.store.verbs import load as load
    from attnlab.store.verbs import save as save
    from attnlab.store.verbs import to_xarray as to_xarray

_HOME = {
    **dict.fromkeys(("save", "load", "to_xarray", "NotARun", "MissingRun"), "attnlab.store.verbs"),
    **dict.fromkeys(("FORMAT", "MARKER", "CHECKSUM"), "attnlab.store.document"),
    **dict.fromkeys(("dataset_of", "run_from", "WORDS"), "attnlab.store.kinds.trajectory"),
    "CannotWrite": "attnlab.files",
}
__all__ = [
    "CHECKSUM",
    "FORMAT",
    "MARKER",
    "WORDS",
    "CannotWrite",
    "MissingRun",
    "NotARun",
    "dataset_of",
    "load",
    "run_from",
    "save",
    "to_xarray",
]


if not TYPE_CHECKING:  # type checkers use the imports above instead

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
