"""Rotary positions: queries and keys are turned by their place, so a score depends only on the
difference of two places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab.models.checkpoints.reading import number, whole
from attnlab.models.checkpoints.record import BadModel, Rotary


def frequencies(rotary: Rotary) -> np.ndarray:
    """Return the angle per place of each plane, (size / 2,): theta^(-2 i / size)."""
    if rotary.frequencies:
        return np.array(rotary.frequencies)
    return rotary.theta ** (-np.arange(0, rotary.size, 2) / rotary.size)


def rotate(rotary: Rotary | None, x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return x (..., n, head_size) with token i turned by places[i]; unchanged without rotary
    positions.
    """
    if rotary is None or rotary.size == 0:
        return x
    size = rotary.size
    angles = np.asarray(places, dtype=float)[:, None] * frequencies(rotary)  # (n, size / 2)
    cosine, sine = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    if rotary.pairs == "halves":
        first, second = slice(0, size // 2), slice(size // 2, size)
    else:
        first, second = slice(0, size, 2), slice(1, size, 2)
    turned = x.copy()
    turned[..., first] = x[..., first] * cosine - x[..., second] * sine
    turned[..., second] = x[..., first] * sine + x[..., second] * cosine
    return turned


def read_rotary_size(raw: Mapping[str, Any], size: int, default: float) -> int:
    """Return how many of the `size` coordinates of a head are turned, by partial_rotary_factor of a
    config.
    """
    rope = raw.get("rope_parameters")
    said = {**raw, **(rope if isinstance(rope, Mapping) else {})}
    found = int(size * number(said, "partial_rotary_factor", default))
    if found % 2 or found > size:
        raise BadModel(
            f"The rotated part of a head must be an even number of its {size} coordinates, but"
            " hidden_size, num_attention_heads and partial_rotary_factor (or rotary_pct) in the"
            f" config make it {found}."
        )
    return found


def read_rotary(
    raw: Mapping[str, Any], size: int, base: str = "rope_theta"
) -> tuple[float, tuple[float, ...]]:
    """Return the base theta of a config, and the angles per place if they are stretched for longer
    texts (else empty).

    Newer configs have all of it in `rope_parameters`; older ones have the base and a
    `rope_scaling`.
    """
    if size % 2 or size > 1 << 16:
        raise BadModel(
            f"Rotary positions turn coordinates in pairs, but head_dim, or hidden_size and"
            f" num_attention_heads, in the config give each head {size} of them, which is odd or"
            " absurd."
        )
    newer, older = raw.get("rope_parameters") or {}, raw.get("rope_scaling") or {}
    if newer and older and newer != older:
        raise BadModel(
            "rope_parameters and rope_scaling in the config must agree, but they differ. Keep the"
            " right one."
        )
    said = newer or older
    if not isinstance(said, Mapping) or any(isinstance(value, Mapping) for value in said.values()):
        raise BadModel(
            "The rotary positions in the config must be a table, one for all layers, found"
            f" {str(said)[:60]!r}. A checkpoint with several of them needs a family of its own."
        )
    theta = number(said, "rope_theta", number(raw, base, number(raw, "rope_theta", 10000.0)))
    kind = said.get("rope_type") or said.get("type") or "default"
    if kind == "default":
        return theta, ()
    if kind == "divided":
        return theta, _divided(theta, size, said.get("divisors"))
    if kind not in ("linear", "llama3"):
        raise BadModel(
            f"rope_type in the config is {str(kind)[:40]!r}, in rope_parameters or rope_scaling;"
            " known: default, linear, llama3. The angles of other types are not computed here."
        )
    angles = theta ** (-np.arange(0, size, 2) / size)
    factor = number(said, "factor", 1.0)
    if kind == "linear":
        return theta, tuple(map(float, angles / factor))
    # Llama 3: long waves are stretched by the factor, short ones stay, those between are blended
    original = whole(said, "original_max_position_embeddings", 8192)
    low, high = number(said, "low_freq_factor", 1.0), number(said, "high_freq_factor", 4.0)
    if high <= low:
        raise BadModel(
            f"high_freq_factor in the config must be above low_freq_factor = {low}, found {high}."
        )
    blend = np.clip((original * angles / (2 * np.pi) - low) / (high - low), 0, 1)
    return theta, tuple(map(float, (1 - blend) * angles / factor + blend * angles))


def _divided(theta: float, size: int, divisors: Any) -> tuple[float, ...]:
    """Return the angles per place, each divided by its own number, as a GGUF file gives them.

    `divided` is our word. transformers has other names for the ways to find these numbers.
    """
    found = np.array(divisors if isinstance(divisors, list) else [], dtype=float)
    if found.shape != (size // 2,) or not (np.isfinite(found) & (found > 0)).all():
        raise BadModel(
            f"The angles of the rotary positions must be divided by {size // 2} positive numbers,"
            f" one for each pair of the {size} coordinates of a head, found {str(divisors)[:60]}."
        )
    return tuple((theta ** (-np.arange(0, size, 2) / size) / found).tolist())
