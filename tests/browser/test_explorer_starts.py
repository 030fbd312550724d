"""First tokens of the page against starts.py: equal bits, or 4 units in the last place after a root
or a cosine.
"""

from __future__ import annotations

import numpy as np
import pytest
from modules import module_page
from tab import JavaScriptError

from attnlab.starts import start_laws

EXACT = [
    {"law": "uniform_cube"}, {"law": "uniform_cube", "low": -5, "high": 5}, {"law": "uniform_cube", "low": 0.1, "high": 0.7},
    {"law": "normal"}, {"law": "normal", "scale": 0.3, "mean": 1.7}, {"law": "normal", "scale": 3, "mean": [0.1, -2, 7]},
]  # fmt: skip
CLOSE = [
    {"law": "sphere"}, {"law": "sphere", "radius": 2.5}, {"law": "planted"},
    {"law": "planted", "clusters": 7, "spread": 0.03, "separation": 1.1}, {"law": "planted", "clusters": 1},
]  # fmt: skip

page = module_page("starts")


def draw_both(page, start, n, d, seed):
    table = {**start, "n": n, "d": d, "rng": seed}
    found = np.array(page.call("starts.drawStart", table))
    expected = start_laws[start["law"]](
        n, d, **{key: value for key, value in start.items() if key != "law"}, rng=seed
    )
    assert found.shape == expected.shape
    return found, expected


def is_close(found, expected):
    """Whether all numbers agree within 4 units in the last place; sums that cancel, within those of
    the token's largest entry.
    """
    units = np.spacing(
        np.maximum(np.abs(expected), 0.05 * np.abs(expected).max(axis=1, keepdims=True))
    )
    return bool((np.abs(found - expected) <= 4 * units).all())


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("start", EXACT, ids=lambda start: start["law"])
def test_laws_of_uniform_and_normal_numbers(page, start, seed):
    for d in (3,) if isinstance(start.get("mean"), list) else (1, 2, 3):
        found, expected = draw_both(page, start, 40, d, seed)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("start", CLOSE, ids=lambda start: start["law"])
def test_laws_with_a_root_or_a_power(page, start, seed):
    for d in (1, 2, 3):
        found, expected = draw_both(page, start, 40, d, seed)
        assert is_close(found, expected)
        assert not is_close(found + 1e-14, expected)  # the measure itself can fail


@pytest.mark.parametrize("seed", range(10))
def test_the_circle(page, seed):
    for start in (
        {"law": "circle"},
        {"law": "circle", "radius": 3.5},
        {"law": "circle", "equally_spaced": True},
    ):
        found, expected = draw_both(page, start, 30, 2, seed)
        assert (np.abs(found - expected) <= 4 * np.spacing(start.get("radius", 1.0))).all()
        assert np.allclose(np.hypot(*found.T), start.get("radius", 1.0), rtol=1e-15)


def test_given_tokens_moved_tokens_and_a_dimension_from_the_weights(page):
    x = [[1.0, 2.0], [0.1, -3.0]]
    assert page.call("starts.drawStart", {"law": "given", "x": x}) == x
    table = {"law": "uniform_cube", "n": 6, "rng": 4, "moved": {"5": [1.245, 1.917], "0": [0, -1]}}
    found = np.array(page.call("starts.drawStart", table, 2))
    expected = start_laws["uniform_cube"](6, 2, rng=4)
    expected[5], expected[0] = [1.245, 1.917], [0, -1]
    assert np.array_equal(found, expected)
    assert page.call(
        "start => [starts.drawStart(start, 2), start.x]",
        {"law": "given", "x": x, "moved": {"1": [7, 8]}},
    ) == [
        [[1.0, 2.0], [7, 8]],
        x,
    ]  # the Spec itself is not changed


@pytest.mark.parametrize("start, words", [
    ({"law": "uniform", "n": 3, "d": 2}, "start.law must be one of uniform_cube"),
    ({"law": "normal", "n": 3, "d": 2, "sigma": 2}, 'got "sigma"'),
    ({"law": "normal", "n": 0, "d": 2}, "start.n must be a whole number of at least 1"),
    ({"law": "normal", "n": 10**9, "d": 2}, "start.n must be at most 2000"),
    ({"law": "normal", "n": 2.5, "d": 2}, "start.n must be a whole number"),
    ({"law": "normal", "n": 3}, "start needs the key d"),
    ({"law": "normal", "n": 3, "d": 2, "scale": -1}, "start.scale must be a positive"),
    ({"law": "normal", "n": 3, "d": 2, "batch": 2}, "one start at a time"),
    ({"law": "circle", "n": 3, "d": 3}, "d must be 2, got 3"),
    ({"law": "uniform_cube", "n": 3, "d": 2, "low": 1, "high": 1}, "start.low must be smaller"),
    ({"law": "planted", "n": 3, "d": 2, "clusters": 4}, "at most the number of tokens"),
    ({"law": "planted", "n": 3, "d": 2, "spread": 1}, "must exceed 4 start.spread"),
    ({"law": "given", "x": [[1, 2], [3]]}, "rows of equal length"),
    ({"law": "given", "x": [[1, "2"]]}, "must be a finite number"),
    ({"law": "given", "x": [[1, 2]], "n": 2}, "has 1 tokens, but n = 2"),
    ({"law": "normal", "n": 3, "d": 2, "moved": {"3": [0, 0]}}, "tokens from 0 to 2"),
    ({"law": "normal", "n": 3, "d": 2, "moved": {"__proto__x": [0, 0]}}, "tokens from 0 to 2"),
    ({"law": "normal", "n": 3, "d": 2, "moved": {"01": [0, 0]}}, "tokens from 0 to 2"),
    ({"law": "normal", "n": 3, "d": 2, "moved": [[0, 0]]}, "start.moved must be a table"),
    ({"law": "normal", "n": 3, "d": 2, "moved": {"1": [0]}}, "2 coordinates"),
    ({"law": "normal", "n": 3, "d": 2, "rng": -1}, "rng must be"),
])  # fmt: skip
def test_refusals_are_sentences(page, start, words):
    with pytest.raises(JavaScriptError) as problem:
        page.call("starts.drawStart", start)
    assert "Refusal: " in str(problem.value) and words in str(problem.value), str(problem.value)
