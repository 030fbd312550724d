"""Refinement: the boundary of planted regions is found completely, with a fraction of the
points.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from attnlab import UnknownName
from attnlab.sweep import Grid, Row, Rows, Sweep
from attnlab.sweep.refine import answers_at, check_refinement, places_of, refine, sample_changes


def sampled(answers: np.ndarray) -> tuple[dict, int]:
    asked: list = []

    def ask(points):
        assert not set(points) & set(asked)  # no point twice
        asked.extend(points)
        return {point: answers[point].item() for point in points}

    return sample_changes(answers.shape, ask)


def boundary(answers: np.ndarray) -> set:
    """The points that have a neighbour, along an axis, with another answer."""
    found = set()
    for axis in range(answers.ndim):
        first = np.argwhere(np.diff(answers.astype(int), axis=axis) != 0)
        for point in map(tuple, first.tolist()):
            found |= {point, tuple(index + (place == axis) for place, index in enumerate(point))}
    return found


X, Y = np.meshgrid(np.arange(97), np.arange(81), indexing="ij")
SHAPES = {
    "line": 0.7 * X + 10 > Y,
    "disc": (X - 50) ** 2 + (Y - 38) ** 2 < 26**2,
    "wave": Y > 40 + 20 * np.sin(X / 12),
    "three": (X > 30).astype(int) + (Y > 50),
    "none": X < 0,
}


@pytest.mark.parametrize("name", SHAPES)
def test_every_boundary_point_of_a_planted_region_is_known(name):
    answers = SHAPES[name]
    known, rounds = sampled(answers)
    assert boundary(answers) <= known.keys()
    assert len(known) < 0.25 * answers.size and rounds <= 8
    assert all(answers[point] == answer for point, answer in known.items())


def test_a_straight_boundary_takes_a_tenth_of_a_large_grid():
    answers = np.add.outer(np.arange(161), np.arange(161)) > 150
    assert len(sampled(answers)[0]) < 0.1 * answers.size


@pytest.mark.parametrize("count", [1, 2, 3, 9, 100])
def test_one_axis_is_bisected(count):
    for change in range(count):
        answers = np.arange(count) > change
        known, _ = sampled(answers)
        assert boundary(answers) <= known.keys()
    assert len(known) <= 14 + 2 * 4  # the first points, and the halvings of one block


def test_only_the_cells_near_the_boundary_are_computed(tmp_path):
    """One token more or fewer than ten: the diameter of [0, n] on the line at t = 0 changes side
    between 10 and 11.
    """
    sweep = Sweep.from_dict(
        {
            "base": {
                "weights": {"family": "identity", "d": 1},
                "start": {"law": "given"},
                "solve": {"t_end": 0.1, "saves": 2},
            },
            "axes": {
                "start.x": [[[0.0], [float(n)]] for n in range(1, 65)],
                "dynamics.beta": [1.0, 2.0],
            },
            "numbers": {
                "spread": {"observable": "diameter", "at": "max"},
                "first": {"observable": "diameter", "at": 0.0},
            },
        },
        tmp_path / "a.toml",
    )
    found = refine(sweep, "start.x", "first", level=10.5, workers=0)
    rows = {row.axes["start.x"][1][0] for row in Rows(sweep.rows_path).read()}
    assert (
        {10.0, 11.0} <= rows
        and found.cells == 2 * len(rows) < 0.35 * len(sweep.grid)
        and found.failed == 0
    )
    assert len(list(Rows(sweep.rows_path).read())) == found.cells
    again = refine(sweep, "start.x", "first", level=10.5, workers=0)
    assert again.cells == found.cells and len(list(Rows(sweep.rows_path).read())) == found.cells
    assert (
        sweep.run(workers=0).computed == len(sweep.grid) - found.cells
    )  # the rest of the grid, later


VALUES = {1: [2.0, 4.0], 2: [5.0, 3.0, 4.0], 3: [4.5, None], 4: [None, None], 5: []}
"""Means 3, 4 and 4.5; a point whose runs gave no number, and one whose runs are not made yet."""


@pytest.mark.parametrize(
    ("level", "answers"),
    [
        (None, [3.0, 4.0, 4.5, None, None]),
        (2.9, [True, True, True, None, None]),
        (3.0, [False, True, True, None, None]),
        (4.0, [False, False, True, None, None]),
        (4.5, [False, False, False, None, None]),
    ],
)
def test_the_answer_is_whether_the_mean_is_above_the_level(monkeypatch, level, answers):
    """A mean at the level is not above it, as a number at the bound of { above = y } is not above
    that.
    """
    assert answers_of(monkeypatch, VALUES, level) == answers


def test_the_answer_of_words_is_the_most_frequent_one(monkeypatch):
    words = {1: ["b", "a", "b"], 2: ["b", "a"], 3: ["c", None], 4: [None], 5: ["a"]}
    assert answers_of(monkeypatch, words, None) == [
        "b",
        "a",
        "c",
        None,
        "a",
    ]  # of equally frequent ones the first


def answers_of(monkeypatch, values: dict[int, list], level: float | None) -> list:
    """The answers along n, when the runs of each n gave these values."""
    rows = [
        Row(f"{n}-{rng}", "ok", {"rng": rng, "n": n}, {"a": value, "other": 9.0})
        for n, found in values.items()
        for rng, value in enumerate(found)
    ]
    monkeypatch.setattr(
        "attnlab.sweep.refine.read_results", lambda sweep: SimpleNamespace(rows=rows)
    )
    sweep = SimpleNamespace(grid=Grid({"rng": range(3), "n": sorted(values)}))
    points = [(place,) for place in range(len(values))]
    found = answers_at(sweep, ["n"], "a", points, level)
    assert sorted(found) == points
    return [found[point] for point in points]


def test_places_are_those_of_the_cells(tmp_path):
    sweep = Sweep.from_dict(
        {
            "base": {
                "weights": {"family": "identity"},
                "start": {"law": "sphere", "n": 2, "d": 2},
                "solve": {"t_end": 1},
            },
            "axes": {"dynamics.beta": [1, 2, 3], "start.n": [2, 3]},
            "seeds": 2,
            "exclude": [{"dynamics.beta": 2, "start.n": 3}],
            "numbers": {"spread": {"observable": "diameter"}},
        },
        tmp_path / "a.toml",
    )
    cells = [
        sweep.grid.cell(place)
        for place in sorted(
            places_of(sweep, ["start.n", "dynamics.beta"], [(1, 1), (1, 2), (0, 0)])
        )
    ]
    assert sorted(
        (cell["start.n"], cell["dynamics.beta"], cell["start.rng"]) for cell in cells
    ) == [(2, 1, 0), (2, 1, 1), (3, 3, 0), (3, 3, 1)]
    with pytest.raises(UnknownName, match="dynamics.beta"):
        check_refinement(sweep, ["dynamics.bet", "spread"])
    with pytest.raises(UnknownName, match="spread"):
        check_refinement(sweep, ["dynamics.beta", "spred"])
    with pytest.raises(ValueError, match="one or two axes"):
        check_refinement(sweep, ["spread"])
