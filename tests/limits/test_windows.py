"""Gaps between groups that are followed for a while: never longer than they stay open."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from attnlab.limits.verification.gap_terms import Gap
from attnlab.limits.windows import Pair, open_until

RATES = np.array([1.0, 0.97 + 0.4j, 0.97 - 0.4j, -1.2])
GROWTH = np.array([1.0, 0.97, 0.97, 0.5])


def draw_pair(seed: int, width: float) -> Pair:
    """A gap that is open now, and whose turning terms are about as large as the others."""
    rng = np.random.default_rng([seed, 8])

    def real_vector(size: float) -> np.ndarray:
        pair = rng.normal() + 1j * rng.normal()
        return size * np.array([rng.normal(), pair, np.conj(pair), rng.normal()])

    while True:
        from_real = rng.normal(size=(4, 4))
        change = np.array([[1, 0, 0, 0], [0, 0.5, -0.5j, 0], [0, 0.5, 0.5j, 0], [0, 0, 0, 1]])
        back = np.linalg.inv(change)
        pair = Pair(
            rates=RATES,
            growth=GROWTH,
            own=real_vector(1e6),
            apart=real_vector(1e6),
            radius=np.full(4, width),
            both=np.full(4, 2.0 * width),
            product=back.T @ from_real @ back,
            off=np.zeros((4, 4)),
            to_fixed=real_vector(1.0),
            to_off=np.zeros(4),
            from_fixed=real_vector(1.0),
            from_off=np.zeros(4),
            constant=float(rng.normal()),
            constant_off=0.0,
            margin=60.0,
            mu=0.5,
        )
        if value(pair, 0.0) > 1e10:
            return pair


def value(pair: Pair, s: float, offset=0.0, offset_apart=0.0) -> float:
    """The gap at the time s, term by term, with offsets in the discs."""
    p = pair.own * np.exp(pair.rates * s) + offset
    d = pair.apart * np.exp(pair.rates * s) + offset_apart
    total = pair.constant + 0j
    for a in range(len(p)):
        total += p[a] * pair.to_fixed[a] + d[a] * pair.from_fixed[a]
        for b in range(len(d)):
            total += p[a] * pair.product[a, b] * d[b]
    return float(total.real)


def closes(pair: Pair, end: float) -> float:
    """The first time at which the gap is below its margin, on a fine grid; infinity if none."""
    for s in np.arange(0.0, end, 0.004):
        if value(pair, s) < pair.margin * np.exp(pair.mu * s):
            return float(s)
    return np.inf


def as_gap(pair: Pair) -> Gap:
    """The same gap as the checker writes it down."""
    names = {"own": "centre", "apart": "gap", "to_fixed": "left", "from_fixed": "right"}
    kept = {field.name for field in dataclasses.fields(Gap)}
    given = {names.get(name, name): one for name, one in vars(pair).items()}
    return Gap(**{name: one for name, one in given.items() if name in kept})


@pytest.mark.parametrize("seed", range(12))
def test_a_gap_is_followed_until_it_closes_and_no_longer(seed):
    pair, end = draw_pair(seed, 0.0), 20.0
    reached, closed = open_until(pair, end), closes(pair, end)
    assert reached <= closed
    assert reached > min(closed, end) - 0.3
    gap = as_gap(pair)
    assert gap.is_open(0.9 * reached) or reached < 0.1
    assert closed == np.inf or not gap.is_open(closed + 0.01)


def test_the_drawn_gaps_close_early_late_and_never():
    found = [closes(draw_pair(seed, 0.0), 20.0) for seed in range(12)]
    assert min(found) < 3.0 and max(found) == np.inf


@pytest.mark.parametrize("seed", range(4))
def test_no_offset_in_the_discs_closes_it_earlier(seed):
    wide = draw_pair(seed, 3e4)
    reached = open_until(wide, 20.0)
    assert reached <= open_until(draw_pair(seed, 0.0), 20.0)
    rng = np.random.default_rng(seed)
    for s in np.linspace(0.0, reached, 40):
        for _ in range(20):
            turn = np.exp(2j * np.pi * rng.random((2, 4)))
            grown = np.exp(wide.growth * s)
            offset, apart = wide.radius * grown * turn[0], wide.both * grown * turn[1]
            assert value(wide, s, offset, apart) > 0.0
    gap = as_gap(wide)
    assert gap.is_open(0.9 * reached) or reached < 0.1


def test_wide_discs_shorten_the_time():
    times = [open_until(draw_pair(3, width), 20.0) for width in (0.0, 3e4, 3e5, 1e7)]
    assert times == sorted(times, reverse=True) and times[-1] == 0.0 < times[0]


def test_a_gap_is_tested_for_ever_from_a_later_time_on():
    """The leading term wins after a while: Abel's test passes then, and not at once."""
    pairs = []
    for pair in (draw_pair(seed, 1.0) for seed in range(30)):
        product, apart = pair.product.copy(), pair.apart * [4.0, 1.0, 1.0, 1.0]
        product[0, 0] *= np.sign((pair.own[0] * product[0, 0] * apart[0]).real)
        rates = np.where(RATES.imag != 0.0, RATES - 0.2, RATES)
        pairs.append(dataclasses.replace(pair, rates=rates, apart=apart, product=product))
    found = {(as_gap(pair).stays_positive(), as_gap(pair).is_open(np.inf)) for pair in pairs}
    assert (False, True) in found and (True, False) not in found
    for pair in pairs:
        assert not as_gap(pair).is_open(np.inf) or closes(pair, 20.0) == np.inf
