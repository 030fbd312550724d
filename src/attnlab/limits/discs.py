"""Discs that hold the coordinates of a group, for any attention inside it.

Let a group attend only to itself, and let u_i be the coordinate of token i along an eigenvector of
V, of rate lambda, so that u_i' = lambda sum_j P_ij u_j with any row-stochastic P(t).

    without a mask      |u_i - c e^{lambda s}| <= radius e^{|lambda| s},     c the middle of the group
    causal mask         |u_i - u_r e^{lambda s}| <= R_i e^{g s}

r is the first token of the group: under the causal mask it attends to itself only. The second line
holds for any g > 0 with Re lambda <= g, and R_i = max(|u_i - u_r|, (|lambda| / g) max_{j < i} R_j).
With v_i = u_i - u_r e^{lambda s} one has |v_i|' <= g P_ii |v_i| + |lambda| sum_{j < i} P_ij |v_j|. By
induction over i the sum is at most (1 - P_ii) g R_i e^{g s}, so |v_i| never exceeds R_i e^{g s}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SAFETY = 1.001
"""Radii are made this many times larger, for what integrated offsets may be off."""


@dataclass(frozen=True, eq=False)
class Discs:
    """One disc per token and coordinate: |u - centre e^{lambda s}| <= radius e^{growth s}."""

    centres: np.ndarray  # (n, r) complex, the same for all tokens of a group
    radii: np.ndarray  # (n, r)
    growth: np.ndarray  # (r,)


def make_discs(
    u: np.ndarray,
    group: np.ndarray,
    rates: np.ndarray,
    is_causal: bool,
    *,
    blur: np.ndarray | float = 0.0,
    least: float = 0.0,
) -> Discs:
    """Return the discs of tokens u (n, r) in groups (n,), each wider by `blur`.

    least: under the causal mask, a rate of growth that directions may have which grow more slowly.
    The larger it is, the smaller the radii.
    """
    centres, radii = np.empty(u.shape, complex), np.empty(u.shape)
    growth = np.abs(rates)
    if is_causal:
        slower = np.maximum(rates.real, least)
        growth = np.where(slower > 0.0, np.minimum(growth, slower), growth)
    # the kernel of V, of rate 0, rests
    factor = np.abs(rates) / np.where(growth > 0.0, growth, 1.0)
    for g in range(int(group.max()) + 1):
        members = np.flatnonzero(group == g)
        own = u[members]
        if not is_causal:
            centre = 0.5 * (own.real.max(axis=0) + own.real.min(axis=0)) + 0.5j * (
                own.imag.max(axis=0) + own.imag.min(axis=0)
            )
            centres[members] = centre
            radii[members] = SAFETY * np.abs(own - centre).max(axis=0) + blur
            continue
        centres[members] = own[0]
        largest = np.zeros(u.shape[1])
        with np.errstate(over="ignore"):  # an infinite radius says nothing, and is sound
            for token, offset in zip(members, SAFETY * np.abs(own - own[0]), strict=True):
                radii[token] = np.maximum(offset, factor * largest) + blur
                largest = np.maximum(largest, radii[token])
    return Discs(centres, radii, growth)
