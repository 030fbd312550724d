"""Scores relative to the best of their row, so that no exponential overflows."""

from __future__ import annotations

import numpy as np


def find_gaps(scores: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(scores - top, top): differences to the largest score of each row, exactly 0 there and
    -infinity where i does not see j.
    """
    masked = scores if seen.all() else np.where(seen, scores, -np.inf)
    top = masked.max(axis=-1, keepdims=True)
    return masked - top, top


def relative_weights(gaps: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return exp(factor * gaps). With 0 * infinity = infinity, masked tokens stay masked at factor
    0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        relative: np.ndarray = np.exp(np.where(np.isneginf(gaps), -np.inf, gaps * factor))
    return relative
