"""Caches of the engine: what is damaged is made again, and a full disk only makes the next start
slower.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import numpy as np
import pytest

from attnlab.engine import compile as compiling


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, for the functions that are compiled here."""
    monkeypatch.setattr(compiling, "cache_folder", lambda: os.fspath(tmp_path))
    return tmp_path


def harms(whole: bytes) -> list[bytes]:
    """Damaged copies: cut off, zeroed, one bit changed."""
    places = np.linspace(0, len(whole) - 1, 6).astype(int)
    zeroed = [
        whole[:place] + bytes(min(64, len(whole) - place)) + whole[place + 64 :] for place in places
    ]
    flipped = [whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :] for place in places]
    return [
        content
        for content in (b"", whole[: len(whole) // 2], whole[:-1], *zeroed, *flipped)
        if content != whole
    ]


def shifted():
    """A function in machine code, compiled or taken from the cache."""

    def shift(x):
        return x + 0.3125

    return compiling.compiled(numba.float64(numba.float64))(shift)


def hits(function) -> int:
    return sum(function.stats.cache_hits.values())


def test_damaged_machine_code_is_compiled_again(cache):
    assert hits(shifted()) == 0 and hits(shifted()) == 1
    found = sorted(path for path in cache.rglob("*") if path.is_file())
    assert [path.suffix for path in found] == [".nbc", ".nbi"]
    for path in found:
        whole = path.read_bytes()
        for harmed in harms(whole)[::3]:
            path.write_bytes(harmed)
            again = shifted()
            assert hits(again) == 0 and again(1.0) == 1.3125
        assert hits(shifted()) == 1  # what is made again is kept


def test_machine_code_that_is_gone_is_compiled_again(cache):
    shifted()
    for path in [path for path in cache.rglob("*") if path.is_file()]:
        path.unlink()
        assert shifted()(1.0) == 1.3125
    assert hits(shifted()) == 1


def test_a_compiled_function_may_not_close_over_another_one(cache):
    shift, amount = shifted(), 2.0

    def shift_twice(x):
        return shift(x) + amount

    with pytest.raises(
        TypeError, match="shift_twice closes over shift, a CPUDispatcher"
    ):  # it would never be found again
        compiling.compiled(numba.float64(numba.float64))(shift_twice)

    def add_twice(x):
        return x + 2.0 * amount

    assert compiling.compiled(numba.float64(numba.float64))(add_twice)(1.0) == 5.0


FULL = """
import os, resource, sys, tempfile
import numba
from attnlab.engine import compile
sys.dont_write_bytecode = True              # Python keeps half of the bytecode of a module where the disk is full
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))       # what a full disk does, without root
print(compile.cache_folder())
sys.path.insert(0, sys.argv[1])
from test_compile import shifted
print(shifted()(1.0))
"""


def test_a_full_cache_disk_is_replaced_by_a_temporary_folder(tmp_path):
    pytest.importorskip("resource")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", FULL, str(Path(__file__).parent)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder, value = done.stdout.split()
    assert folder.startswith(tempfile.gettempdir()) and not folder.startswith(str(tmp_path))
    assert not Path(folder).exists()  # it goes with the process
    assert float(value) == 1.3125
