"""Check the results of members. An error names the member in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_tokens(kind: str, member: Any, found: Any, x: np.ndarray) -> np.ndarray:
    """Return the result of a member for tokens x (..., n, d), which must be real numbers of their
    shape.
    """
    array = np.asarray(found)
    if array.shape != x.shape or array.dtype.kind not in "fiu":
        raise ValueError(
            f'The {kind} "{member.name}" must return real numbers of the shape of its tokens,'
            f" {x.shape}; got {array.shape} of type {array.dtype}."
        )
    return array


def check_weights(kernel: Any, found: Any, scores: np.ndarray) -> np.ndarray:
    """Return the weights of a kernel for scores (..., n, n): real, of their shape, not negative
    unless it allows that.
    """
    weights = np.asarray(found)
    if weights.shape != scores.shape or weights.dtype.kind not in "fiub":
        raise ValueError(
            f'The kernel "{kernel.name}" must return real weights of the shape of its scores,'
            f" {scores.shape}; got {weights.shape} of type {weights.dtype}."
        )
    if not kernel.may_be_negative and (weights < 0).any():
        raise ValueError(
            f'The kernel "{kernel.name}" must return weights of 0 or more, got'
            f" {float(weights.min()):.3g}. If weights may be negative, set may_be_negative = True."
        )
    return weights.astype(float, copy=False)


def check_scores(scores: Any, found: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the result of the scores for queries and keys: real numbers (..., n, n)."""
    array = np.asarray(found)
    if array.shape != shape or array.dtype.kind not in "fiu":
        raise ValueError(
            f'The scores "{scores.name}" must return real numbers of shape {shape}, one per pair of'
            f" tokens; got {array.shape} of type {array.dtype}."
        )
    return array


def check_seen(mask: Any, n: int) -> np.ndarray:
    """Return the table of a mask for n tokens: booleans (n, n), and every token sees at least
    one.
    """
    seen = np.asarray(mask.seen(n))
    if seen.shape != (n, n) or seen.dtype != bool:
        raise ValueError(
            f'The mask "{mask.name}" must return booleans of shape ({n}, {n}) for {n} tokens, got'
            f" {seen.shape} of type {seen.dtype}."
        )
    blind = np.flatnonzero(~seen.any(axis=1))
    if len(blind):
        raise ValueError(
            f'The mask "{mask.name}" must let every token see one token at least, but token'
            f" {blind[0]} of {n} sees none."
        )
    return seen


def check_speed(speed: Any, t: float) -> float:
    """Return the factor of a speed at the time t: one real number."""
    factor = np.asarray(speed(t))
    if factor.shape != () or factor.dtype.kind not in "fiu":
        raise ValueError(
            f'The speed "{speed.name}" must return one real number, got {factor.shape} of type'
            f" {factor.dtype}."
        )
    return float(factor)
