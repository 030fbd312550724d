"""What explorer/packing.py packs, unpacked in plain NumPy: the reference for web/embedded.js."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np


def unpack_numbers(text: str, shape: tuple[int, ...]) -> np.ndarray:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).astype(np.int64)
    folded = planes[: len(planes) // 2] + 256 * planes[len(planes) // 2 :]
    return np.where(folded % 2 == 0, folded // 2, -(folded + 1) // 2).reshape(shape)


def unpack_tokens(recording: dict[str, Any]) -> np.ndarray:
    """The tokens (T, n, 3) of a recording."""
    T, n, packed = recording["T"], recording["n"], recording["tokens"]
    steps = (
        np.cumsum(np.cumsum(unpack_numbers(packed["bytes"], (3, n, T)), axis=-1), axis=-1) % 65536
    )
    return np.asarray(packed["low"]) + np.asarray(packed["size"]) * steps.transpose(2, 1, 0) / 65535


def unpack_leaders(recording: dict[str, Any]) -> np.ndarray:
    """The leaders (T, n) of a recording."""
    steps = np.cumsum(
        unpack_numbers(recording["leaders"], (recording["n"], recording["T"])), axis=-1
    ).T
    return (steps + 32768) % 65536 - 32768


def unpack_shares(recording: dict[str, Any]) -> np.ndarray:
    """The shares (T, n) of attention that leaders get."""
    return (
        np.cumsum(unpack_numbers(recording["shares"], (recording["n"], recording["T"])), axis=-1).T
        % 65536
        / 255
    )
