"""x_i' = sum_h v_h x_{L_h(i)} solved exactly: each token is a sum of s^p e^{mu s} times a combination
of the tokens at s = 0, with rational numbers.

    x_i(s) = sum over (mu, p) of s^p e^{mu s} sum_j A_ij x_j(0)

Two kinds of tokens can be solved one after the other. A token that no leader of its own leads back
to has a scalar equation, with the rate sigma_i = sum of the v_h with L_h(i) = i. Tokens that all
have the same tuple of leaders, which are among themselves, are a class: U = sum_h v_h x_{L_h} grows
like e^{vs}, v = sum_h v_h, and moves all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import factorial

import numpy as np

Key = tuple[Fraction, int]
"""(mu, p) of s^p e^{mu s}."""

Row = dict[int, Fraction]
"""The combination of tokens: number of a token, its factor."""

Solution = list[dict[Key, Row]]
"""For each token its terms."""

MOST_TERMS = 24
"""Different s^p e^{mu s} in one flow: more of them, and Abel's test would hardly pass."""


def solve(leader: np.ndarray, v: Sequence[Fraction]) -> Solution | None:
    """The Solution for leaders (H, m) and factors v of the heads; None where leaders turn in a cycle
    that is no class.
    """
    m = leader.shape[1]
    tuples = [tuple(int(one) for one in column) for column in leader.T]
    found: list[dict[Key, Row] | None] = [None] * m
    open_tokens = list(range(m))
    while open_tokens:
        ready = [
            i
            for i in open_tokens
            if all(b == i or found[b] is not None for b in tuples[i]) or _is_class(tuples, i)
        ]
        if not ready:
            return None
        for i in ready:
            found[i] = _in_class(i, tuples[i], v) if _is_class(tuples, i) else None
            if found[i] is None:
                found[i] = _alone(i, tuples[i], v, found)
        open_tokens = [i for i in open_tokens if found[i] is None]
        keys = {key for one in found if one is not None for key in one}
        if len(keys) > MOST_TERMS:
            return None
    return [one for one in found if one is not None]


def _is_class(tuples: Sequence[tuple[int, ...]], i: int) -> bool:
    """Whether the leaders of i all have the leaders that i has."""
    return all(tuples[b] == tuples[i] for b in tuples[i])


def _in_class(i: int, leaders: tuple[int, ...], v: Sequence[Fraction]) -> dict[Key, Row]:
    """x_i(s) = x_i + U (e^{vs} - 1) / v, or x_i + s U where v = 0."""
    total = sum(v, Fraction(0))
    moving = _sum((part, {b: Fraction(1)}) for part, b in zip(v, leaders, strict=True))
    still: Row = {i: Fraction(1)}
    if total == 0:
        return _cleaned({(Fraction(0), 0): still, (Fraction(0), 1): moving})
    grown = _sum([(1 / total, moving)])
    return _cleaned(
        {(total, 0): grown, (Fraction(0), 0): _sum([(Fraction(1), still), (Fraction(-1), grown)])}
    )


def _alone(
    i: int,
    leaders: tuple[int, ...],
    v: Sequence[Fraction],
    found: Sequence[dict[Key, Row] | None],
) -> dict[Key, Row]:
    """x_i' = sigma x_i + what the other leaders do, which is known."""
    sigma = sum((part for part, b in zip(v, leaders, strict=True) if b == i), Fraction(0))
    force: dict[Key, list[tuple[Fraction, Row]]] = {}
    for part, b in zip(v, leaders, strict=True):
        known = found[b]
        if b == i or known is None:
            continue
        for key, row in known.items():
            force.setdefault(key, []).append((part, row))
    terms: dict[Key, list[tuple[Fraction, Row]]] = {}
    for (mu, p), parts in force.items():
        row = _sum(parts)
        if mu == sigma:  # (s^{p+1} / (p+1))' = s^p
            terms.setdefault((mu, p + 1), []).append((Fraction(1, p + 1), row))
            continue
        # y' = sigma y + s^p e^{mu s}: y = e^{mu s} sum_q (-1)^{p-q} p!/q! s^q / (mu - sigma)^{p-q+1}
        for q in range(p + 1):
            factor = Fraction((-1) ** (p - q) * factorial(p), factorial(q))
            terms.setdefault((mu, q), []).append((factor / (mu - sigma) ** (p - q + 1), row))
    summed = {key: _sum(parts) for key, parts in terms.items()}
    at_0 = [(Fraction(-1), row) for (_, p), row in summed.items() if p == 0]
    own = _sum([(Fraction(1), {i: Fraction(1)}), *at_0])
    before = summed.get((sigma, 0), {})
    summed[sigma, 0] = _sum([(Fraction(1), before), (Fraction(1), own)])
    return _cleaned(summed)


def _sum(parts: Iterable[tuple[Fraction, Row]]) -> Row:
    """The sum of rows times factors."""
    out: Row = {}
    for factor, row in parts:
        for j, value in row.items():
            out[j] = out.get(j, Fraction(0)) + factor * value
    return {j: value for j, value in out.items() if value != 0}


def _cleaned(terms: dict[Key, Row]) -> dict[Key, Row]:
    return {key: row for key, row in terms.items() if row}
