"""Files of runs: when two runs are the same, how a file is refused, and a file that somebody
changed on purpose.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from attnlab import FeedForward, netcdf, store
from attnlab.store import NotARun, document, load


def is_same(one, other) -> bool:
    """Equal types, shapes and bits; NaN equals NaN."""
    if isinstance(one, np.ndarray):
        is_alike = isinstance(other, np.ndarray) and (one.dtype, one.shape) == (
            other.dtype,
            other.shape,
        )
        return is_alike and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(is_same(one[key], other[key]) for key in one)
    return one == other


def assert_same_run(one, other):
    for name in ("times", "states", "log_scale"):
        assert is_same(getattr(one, name), getattr(other, name)), name
    assert (one.frame, one.spec) == (other.frame, other.spec)
    assert np.array_equal(np.asarray(one.status), np.asarray(other.status)) and type(
        one.status
    ) is type(other.status)
    assert is_same(one.error, other.error) and type(one.error) is type(other.error)
    a, b = one.dynamics, other.dynamics
    for name in ("geometry", "kernel", "mask", "beta", "dt"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.weights.source == b.weights.source and a.weights.is_factored == b.weights.is_factored
    pairs = [(a.weights.Q, b.weights.Q), (a.weights.K, b.weights.K)]
    pairs += (
        list(zip(a.weights.V, b.weights.V, strict=True))
        if a.weights.is_factored
        else [(a.weights.V, b.weights.V)]
    )
    assert all(is_same(*pair) for pair in pairs)
    assert a.feedforward == b.feedforward
    if isinstance(a.feedforward, FeedForward):
        for name in ("W", "sigma", "bias", "bias_outside"):
            assert is_same(getattr(a.feedforward, name), getattr(b.feedforward, name)), name
    for name in ("t_end", "times", "rtol", "atol", "stepper", "dt", "frame", "max_steps", "layers"):
        assert is_same(getattr(one.solve, name), getattr(other.solve, name)), name


def open_files() -> set[str]:
    """The files this process holds open, where the system tells."""
    if not Path("/proc/self/fd").is_dir():
        return set()
    return {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}


def refused(path) -> str:
    """The one sentence with which `load` refuses a file, and the file is closed."""
    with pytest.raises(NotARun) as caught:
        load(path)
    assert os.path.realpath(path) not in open_files()
    message = str(caught.value)
    assert message.startswith(("There is no run", str(path))) and "\n" not in message
    return message


def signed(path, change) -> Path:
    """Change a file through h5py, and give it the checksum of what it holds then: what somebody
    does on purpose.
    """
    with h5py.File(path, "r+") as file:
        change(file)
    signed_words = (document.KIND, document.VARIABLES, *store.WORDS)
    arrays, words = netcdf.read_file(
        path,
        lambda words: json.loads(words[document.VARIABLES]).__contains__,
        dict.fromkeys(signed_words, "text"),
    )
    with h5py.File(path, "r+") as file:
        file.attrs[store.CHECKSUM] = netcdf.checksum(arrays, words)
    return path
