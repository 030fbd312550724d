"""The page's random numbers are NumPy's, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from modules import module_page
from tab import JavaScriptError

SEEDS = (0, 1, 7, 12345, 2**31, 2**32, 2**40 + 3, 2**53 - 1)
LARGE = (2**64 + 5, 3**100, 10**60)

page = module_page("rng")

DRAW = """(seed, kind, count, last) => {
  const generator = new rng.Generator(typeof seed === 'string' ? BigInt(seed) : seed), out = [];
  for (let i = 0; i < count; i++) { const x = generator[kind](); if (i >= count - last) out.push(x); }
  return out; }"""


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_and_normal_numbers(page, seed):
    assert (
        page.call(DRAW, seed, "random", 50, 50) == np.random.default_rng(seed).random(50).tolist()
    )
    assert (
        page.call(DRAW, seed, "standardNormal", 3000, 3000)
        == np.random.default_rng(seed).standard_normal(3000).tolist()
    )


@pytest.mark.parametrize("seed", LARGE)
def test_seeds_beyond_double_precision(page, seed):
    assert (
        page.call(DRAW, str(seed), "standardNormal", 20, 20)
        == np.random.default_rng(seed).standard_normal(20).tolist()
    )


def test_many_normal_numbers(page):
    """Among 200,000 there are about 50 of the tail and 2,500 of the edges; one wrong decision
    shifts all that follow.
    """
    expected = np.random.default_rng(3).standard_normal(200_000)
    assert (np.abs(expected) > 3.6541528853610088).sum() > 20
    assert page.call(DRAW, 3, "standardNormal", 200_000, 200_000) == expected.tolist()


@pytest.mark.parametrize(
    "seed, key", [(0, (0x57454947,)), (5, (0, 3)), (2**40, (1,)), (3**100, (7, 2**33))]
)
def test_spawned_streams(page, seed, key):
    expected = np.random.SeedSequence(seed, spawn_key=key).generate_state(3, np.uint64)
    found = page.call(
        "(seed, key) => rng.generateState64(BigInt(seed), 3, key).map(String)", str(seed), key
    )
    assert found == [str(word) for word in expected]


@pytest.mark.parametrize("seed", ["-1", "0.5", "2 ** 53", "NaN", "'seven'", "true", "null", "-1n"])
def test_what_is_no_seed_is_refused_with_a_sentence(page, seed):
    with pytest.raises(JavaScriptError, match="Refusal: rng must be "):
        page.evaluate(f"new rng.Generator({seed})")
