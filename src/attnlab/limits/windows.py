"""For how long the gap between two groups stays open, by its values instead of Abel's test.

Abel's test counts a term that turns at minus its modulus, so it needs that all turning terms
together are smaller than those that do not turn. That comes late where eigenvalues are close to the
leading one. But centres move in closed form, so the gap itself is known at each time:

    f(s) = main(s) - error(s),
    main(s) = Re sum_ab p_a P_ab d_b e^{(lambda_a + lambda_b) s} + linear terms + a constant

p is the centre of the row, d the difference of the two centres. error has discs and rounding, and
never falls. On a piece from s to s + h, main is at least min(main(s), main(s) + h main'(s)) -
h^2 / 2 max |main''|, and the moduli of its terms bound main''.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnlab.limits.certificate import ROUNDING

PIECE = 0.25
"""The length of the first pieces, beside 1 / lambda_1."""

HALVINGS = 7
"""How often a piece may be halved, where it is too long to decide."""

AT_ONCE = 4.0
"""The length that is looked at together, beside 1 / lambda_1."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The gap of a row to a token of another group: what the score of its own group is larger by."""

    rates: np.ndarray  # (r,) complex
    growth: np.ndarray  # (r,) of the discs
    own: np.ndarray  # (r,) complex: the centre of the row
    apart: np.ndarray  # (r,) complex: that minus the centre of the other token
    radius: np.ndarray  # (r,) of the disc of the row
    both: np.ndarray  # (r,) of both discs together
    product: np.ndarray  # (r, r): scores of eigenvectors
    off: np.ndarray  # (r, r): its error
    to_fixed: np.ndarray  # (r,): scores of eigenvectors with what V does not move of both tokens
    to_off: np.ndarray
    from_fixed: np.ndarray
    from_off: np.ndarray
    constant: float
    constant_off: float
    margin: float  # the gap must stay above margin e^{mu s}
    mu: float


def open_until(pair: Pair, end: float) -> float:
    """Return a time up to which the gap is shown to stay above its margin, at most `end`."""
    fastest = float(pair.rates.real.max())
    begin, length = 0.0, AT_ONCE / fastest
    while begin < end:
        until = min(begin + length, end)
        count = max(int(np.ceil((until - begin) * fastest / PIECE)), 1)
        times = np.linspace(begin, until, count + 1)
        reached = _decide(pair, times[:-1], np.diff(times))
        if reached < until:
            return reached
        begin = until
    return end


def _decide(pair: Pair, s: np.ndarray, h: np.ndarray) -> float:
    """Return the beginning of the first piece on which the gap is not shown to stay open, or the
    end of the last.
    """
    end, first = float(s[-1] + h[-1]), np.inf
    for _ in range(HALVINGS):
        low, at_once = _lower(pair, s, h)
        closed = s[~(at_once > 0.0)]  # no shorter piece would help
        first = min(first, float(closed.min(initial=np.inf)))
        again = ~(low > 0.0) & (s < first)
        if not again.any():
            return min(first, end)
        half = 0.5 * h[again]
        s, h = np.concatenate([s[again], s[again] + half]), np.concatenate([half, half])
    return min(first, float(s.min()))


def _lower(pair: Pair, s: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower bounds of the gap minus its margin on pieces, and its value at their beginnings,
    (m,).
    """
    rates, real, size = pair.rates, pair.rates.real, np.abs(pair.rates)
    power = np.exp(np.outer(s, rates))
    p, d = pair.own * power, pair.apart * power
    scores, later = p @ pair.product, (p * rates) @ pair.product
    main = (scores * d).sum(axis=1) + p @ pair.to_fixed + d @ pair.from_fixed
    main = main.real + pair.constant
    slope = (later * d + scores * (d * rates)).sum(axis=1)
    slope = (slope + (p * rates) @ pair.to_fixed + (d * rates) @ pair.from_fixed).real
    # moduli at their largest on the piece
    rise = np.exp(np.outer(h, np.maximum(real, 0.0)))
    p, d = np.abs(p) * rise, np.abs(d) * rise
    grown = np.exp(np.outer(s + h, pair.growth))
    radius, both = pair.radius * grown, pair.both * grown
    curved = np.abs(pair.product) * (size[:, None] + size[None, :]) ** 2
    bend = ((p @ curved) * d).sum(axis=1)
    bend += (p * size**2) @ np.abs(pair.to_fixed) + (d * size**2) @ np.abs(pair.from_fixed)
    part = 100.0 * ROUNDING
    error = ((p @ (part * np.abs(pair.product) + pair.off)) * d).sum(axis=1)
    most = np.abs(pair.product) + pair.off
    error += (((p + radius) @ most) * both).sum(axis=1) + ((radius @ most) * d).sum(axis=1)
    error += p @ (part * np.abs(pair.to_fixed) + pair.to_off)
    error += d @ (part * np.abs(pair.from_fixed) + pair.from_off)
    error += radius @ (np.abs(pair.to_fixed) + pair.to_off)
    error += both @ (np.abs(pair.from_fixed) + pair.from_off)
    error += pair.constant_off + pair.margin * np.exp(pair.mu * (s + h))
    low = np.minimum(main, main + h * slope) - 0.5 * h**2 * bend - error
    return np.where(np.isfinite(low), low, -np.inf), np.where(np.isfinite(main), main, -np.inf)
