"""Compile and cache functions: one decorator, and one cache folder that never holds outdated code.

Numba's cache does not notice a change of a function in another file. Ours is in a folder named by a
digest of all engine sources, so any edit starts an empty folder. If the folder is full or cannot be
written, a temporary folder is used, and the compilation is repeated next time. Every file in it
ends with a digest. A damaged file is compiled again, because unpickling or running it could do
anything.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

from attnlab.files import Damaged, with_digest, without_digest, write_bytes

_setting = threading.RLock()

njit: Any = numba.njit
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Options of every compiled function. The wrapper for C is never called, and takes 5 % of the
compile time.
"""

ROOM = 1 << 16
"""Free bytes that a cache folder must have."""


@cache
def cache_folder() -> str:
    """Return the cache folder for exactly these sources."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    chosen = numba.config.CACHE_DIR or platformdirs.user_cache_dir("attnlab")
    folder = Path(chosen) / f"attnlab-kernels-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(ROOM))
    except OSError:
        with contextlib.suppress(
            OSError
        ):  # without any room at all there is no cache, see `compiled`
            folder = Path(tempfile.mkdtemp(prefix="attnlab-kernels-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return os.fspath(folder)


class _CheckedFile(IndexDataCacheFile):
    """Numba's files of one function, each with a digest at its end, which unpickling ignores."""

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        yield content
        write_bytes(filepath, with_digest(content.getvalue()))

    def _load_index(self) -> Any:
        try:
            without_digest(Path(self._index_path).read_bytes())
        except (OSError, Damaged):
            return {}  # Numba then compiles, and writes an index
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        try:
            without_digest(Path(self._data_path(name)).read_bytes())
        except Damaged as problem:
            raise OSError(str(problem)) from None  # Numba treats it as a missing file, and compiles
        return super()._load_data(name)


class _CheckedCache(FunctionCache):
    """Numba's cache of one function, with checked files, also for a full disk."""

    def __init__(self, function: Callable[..., Any], allocates: bool):
        super().__init__(function)
        self._allocates = allocates
        self._cache_file = _CheckedFile(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, without its imports for compiling (0.3 s). Machine code needs at most the
        memory manager.
        """
        if self._allocates:
            rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


@contextlib.contextmanager
def _our_cache() -> Iterator[None]:
    """Numba reads its cache folder when a function is decorated: ours is set for that moment only,
    by one thread at a time.
    """
    with _setting:
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, cache_folder()
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before


def compiled(
    signature: Any, variant: str = "", allocates: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function for this one signature, cached, without the
    interpreter's lock.

    There is no fast-math: sums keep their order, and NaN stays NaN. Division by zero gives inf, as
    in NumPy. allocates: for a function that makes arrays. It then counts references, which makes
    the code a third longer. Functions from a factory need a `variant`. Then each has its own name
    and cache entry, so two processes that fill one cache do not overwrite each other's index, and a
    profile shows which kernel ran. They may close over numbers only. Numba identifies a function by
    its closure, and another compiled function is new in every process, so the cache would grow and
    never be used. A callee must be a global of a module, or be called by its address (callers.py).
    """

    def decorate(function: Callable[..., Any]) -> Any:
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if not isinstance(cell.cell_contents, int | float):
                raise TypeError(
                    f"A compiled function may close over numbers only; {function.__qualname__}"
                    f" closes over {name}, a {type(cell.cell_contents).__name__}. Make it a global"
                    " of the module, or call its address."
                )
        if variant:
            function.__qualname__ = function.__name__ = f"{function.__name__}_{variant}"
        made: Any = njit(**OPTIONS, _nrt=allocates)(function)
        with (
            _our_cache(),
            contextlib.suppress(OSError, RuntimeError),
        ):  # RuntimeError: no folder that it could be
            made._cache = _CheckedCache(function, allocates)
        made.compile(signature)
        made.disable_compile()
        return made

    return decorate


@cache
def address_of(function: Any) -> int:
    """Return the address of a compiled function with a single signature, for `call_core`."""
    (result,) = function.overloads.values()
    return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)


@cache
def entry_of(function: Any) -> Any:
    """Return a compiled function with a single signature that does not check the types of its
    arguments. They must be right.

    The check takes 0.1 ms for named tuples of arrays, and so does the search for the entry.
    """
    (result,) = function.overloads.values()
    return result.entry_point
