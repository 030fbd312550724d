"""Grids: which cells there are, in which order, and what is refused."""

import itertools

import numpy as np
import pytest

from attnlab.registry import UnknownName
from attnlab.sweep import Grid


def test_cells_are_those_of_nested_loops_in_their_order():
    grid = Grid({"a": [1, 2], "b": ["x", "y", "z"], "c": [0.5, 1.5]})
    assert list(grid) == [
        {"a": a, "b": b, "c": c} for a in (1, 2) for b in "xyz" for c in (0.5, 1.5)
    ]
    assert (
        len(grid) == 12 and grid.shape == (2, 3, 2) and grid.names == ("a", "b", "c") == grid.keys
    )


def test_another_order_of_axes_visits_the_same_cells():
    grid = Grid({"a": [1, 2], "b": [3, 4, 5], "c": [6, 7]}, exclude=[{"a": 1, "c": 7}])
    expected = [
        {"a": a, "b": b, "c": c}
        for c, a, b in itertools.product((6, 7), (1, 2), (3, 4, 5))
        if (a, c) != (1, 7)
    ]
    assert [grid.cell(place) for place in grid.places([2, 0, 1])] == expected


def test_excluded_cells_are_those_where_all_keys_match():
    grid = Grid({"a": [1, 2, 3], "b": [1, 2, 3]}, exclude=[{"a": 1, "b": [2, 3]}, {"a": 3}])
    assert [(cell["a"], cell["b"]) for cell in grid] == [(1, 1), (2, 1), (2, 2), (2, 3)]
    assert len(grid) == 4


def test_an_axis_of_several_keys_changes_them_together():
    grid = Grid({"n, d": [[10, 2], [20, 3]], "rng": range(2)}, exclude=[{"d": 3, "rng": 1}])
    assert list(grid) == [
        {"n": 10, "d": 2, "rng": 0},
        {"n": 10, "d": 2, "rng": 1},
        {"n": 20, "d": 3, "rng": 0},
    ]
    assert grid.names == ("n, d", "rng") and grid.keys == ("n", "d", "rng")


def test_the_small_version_has_other_values_on_some_axes():
    grid = Grid({"a": range(100), "b": [1, 2]}, small={"a": [0, 99]}, exclude=[{"a": 99, "b": 2}])
    assert [tuple(cell.values()) for cell in grid.reduced()] == [(0, 1), (0, 2), (99, 1)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"linspace": [0, 1, 11]}, [k / 10 for k in range(11)]),
        ({"linspace": [2, -2, 5]}, [2, 1, 0, -1, -2]),
        ({"linspace": [7, 9, 1]}, [7]),
        ({"logspace": [0.01, 100, 5]}, [0.01, 0.1, 1, 10, 100]),
        ({"range": [3]}, [0, 1, 2]),
        ({"range": 3}, [0, 1, 2]),
        ({"range": [5, 0, -2]}, [5, 3, 1]),
        (np.array([1.5, 2.0]), [1.5, 2.0]),
    ],
)
def test_spacings(given, expected):
    assert list(Grid({"a": given}).axes["a"]) == expected


def test_logspace_keeps_both_ends_and_equal_ratios():
    values = np.array(Grid({"a": {"logspace": [0.1, 9, 40]}}).axes["a"])
    assert values[0] == 0.1 and values[-1] == 9.0 and len(values) == 40
    assert np.ptp(np.diff(np.log(values))) < 1e-13


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, "at least one axis"),
        ({"a": []}, "empty"),
        ({"a": {"range": [0]}}, "empty"),
        ({"a": [1, 1.0]}, "twice"),
        ({"a": [float("nan")]}, "finite"),
        ({"a": {"linspace": [0, float("inf"), 3]}}, "linspace takes"),
        ({"a": 3}, "list of values"),
        ({"a": "word"}, "list of values"),
        ({"a": {"linspace": [0, 1, 0]}}, "count of 1 or more"),
        ({"a": {"logspace": [0, 1, 3]}}, "positive"),
        ({"a": {"range": [0, 5, 0]}}, "step"),
        ({"a": {"range": [0.5, 2]}}, "whole numbers"),
        ({"a, b": [1, 2]}, "2 keys"),
        ({"a, a": [[1, 2]]}, "several"),
        ({"a": [1], "a, b": [[1, 2]]}, "several"),
        ({"": [1]}, "named"),
        ({"a": {"linspace": [0, 1, 2], "range": [3]}}, "one of"),
        ({"a": {"range": [10**10]}}, "at most"),
        ({"a": [object()]}, "object"),
        ({name: range(1000) for name in "abcdef"}, "places"),
        ({"a": {"linspace": [0, 1, 10**12]}}, "at most"),
        ({"a": [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]}, "inside each other"),
        ("axes", "table of names"),
        ({"a": [None]}, "NoneType"),
    ],
)
def test_what_is_no_grid_is_refused(axes, words):
    with pytest.raises(ValueError, match=words):
        Grid(axes)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="'alpha'"):
        Grid({"alpha": [1]}, small={"alhpa": [1]})
    with pytest.raises(UnknownName, match="'alpha'"):
        Grid({"alpha": [1]}, exclude=[{"alpa": 1}])
    with pytest.raises(UnknownName, match="'linspace'"):
        Grid({"alpha": {"linspce": [0, 1, 2]}})
    with pytest.raises(ValueError, match="exclude"):
        Grid({"alpha": [1]}, exclude=[3])
