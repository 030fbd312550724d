"""Pack arrays of a recording into a short text: int16, second differences in time, separate byte
planes, deflate, base64.

Tokens move smoothly, so second differences in time are small numbers, and nearly all of their high
bytes are equal. `web/embedded.js` reads it back.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

LEVELS = 65535
"""Steps of the box in each direction. Rounding to them is an error of at most 8e-6 of the box."""

SHARES = 255
"""Steps of a share of attention. The error is at most 0.2 %; a page shows whole per cents."""


def pack_tokens(tokens: np.ndarray) -> Mapping[str, Any]:
    """Return {low, size, bytes} of tokens (T, n, 3): the box, and the steps inside it, by
    coordinate, token and time.
    """
    low, high = tokens.min(axis=(0, 1)), tokens.max(axis=(0, 1))  # (3,)
    size = np.where(high > low, high - low, 1.0)
    steps = np.rint((tokens - low) / size * LEVELS).astype(np.uint16)
    return {
        "low": low.tolist(),
        "size": size.tolist(),
        "bytes": _pack(_differ(_differ(steps.transpose(2, 1, 0)))),
    }


def pack_leaders(leaders: np.ndarray) -> str:
    """Return the text of leaders (T, n), whole numbers from -1 to 32767."""
    return _pack(_differ(leaders.astype(np.int16).view(np.uint16).T))


def pack_shares(shares: np.ndarray) -> str:
    """Return the text of shares (T, n) from 0 to 1, in steps of 1/255."""
    return _pack(_differ(np.rint(np.clip(shares, 0.0, 1.0) * SHARES).astype(np.uint16).T))


def _differ(steps: np.ndarray) -> np.ndarray:
    """Return the first entry and the differences along the last axis, modulo 2^16, without loss."""
    return np.diff(steps, axis=-1, prepend=np.zeros((*steps.shape[:-1], 1), np.uint16))


def _pack(numbers: np.ndarray) -> str:
    """Return the base64 of deflated bytes: all low bytes, then all high bytes. Differences are
    folded: -1 is a small number.
    """
    signed = numbers.view(np.int16)
    folded = ((signed.astype(np.int32) << 1) ^ (signed.astype(np.int32) >> 31)).astype(
        np.uint16
    )  # 0, -1, 1, -2 -> 0, 1, 2, 3
    planes = np.concatenate(
        [(folded & 0xFF).astype(np.uint8).ravel(), (folded >> 8).astype(np.uint8).ravel()]
    )
    return base64.b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
