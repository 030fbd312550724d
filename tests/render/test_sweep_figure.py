"""Figures of sweeps: what is drawn is what was planted, and the words say over what it averages and
what is missing.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlab import UnknownName
from attnlab.analysis.intervals import student_interval, wilson_interval
from attnlab.render.paper import Paper
from attnlab.render.sweep_figure import averaged_axes, draw_sweep
from attnlab.render.sweep_numbers import Coordinate, Curve, SweepTable, is_logspaced, read_answers

BETAS, SIZES, SEEDS = [0.5, 1.0, 2.0], [4, 7], range(5)
CELLS = [(beta, n, seed) for beta in BETAS for n in SIZES for seed in SEEDS]


def number(beta: float, n: int, seed: int) -> float:
    return beta * n + 0.1 * seed**2


def met(beta: float, n: int, seed: int) -> int:
    return int(seed < 2 * beta)  # 1, 2 and 4 of 5


def table(**more) -> SweepTable:
    columns = {
        "dynamics.beta": [cell[0] for cell in CELLS],
        "start.n": [cell[1] for cell in CELLS],
        "start.rng": [cell[2] for cell in CELLS],
        "width": [number(*cell) for cell in CELLS],
        "met": [met(*cell) for cell in CELLS],
        "grade": ["exact" if met(*cell) else "undecided" for cell in CELLS],
        **more,
    }
    return SweepTable(columns, [name for name in columns if "." in name], "phase")


def lines_of(figure) -> list:
    """The lines of the first panel with marks: (x, y)."""
    return [
        line.get_xydata().T
        for line in figure.axes[0].lines
        if line.get_marker() not in ("", "None")
    ]


def band_of(figure, number: int = 0) -> np.ndarray:
    """The corners of a band."""
    return figure.axes[0].collections[number].get_paths()[0].vertices


def test_a_curve_shows_means_and_students_interval_over_the_other_axes():
    figure = draw_sweep(table(), ["dynamics.beta", "width"])
    ((x, y),) = lines_of(figure)
    groups = [[number(beta, n, seed) for n in SIZES for seed in SEEDS] for beta in BETAS]
    assert x.tolist() == BETAS and y == pytest.approx(
        [sum(group) / 10 for group in groups], rel=1e-14
    )
    corners = band_of(figure)
    for beta, group in zip(BETAS, groups, strict=True):
        ends = {round(v, 9) for v in corners[corners[:, 0] == beta][:, 1]}
        assert ends == {round(v, 9) for v in student_interval(np.array(group))}
    assert (
        "Mean of 10 runs per point over start.n, start.rng" in figure.caption
        and "Student" in figure.caption
    )


def test_a_share_has_wilsons_interval():
    figure = draw_sweep(table(), ["dynamics.beta", "met"])
    ((x, y),) = lines_of(figure)
    assert y.tolist() == [0.2, 0.4, 0.8]
    corners = band_of(figure)
    for beta, count in zip(BETAS, (2, 4, 8), strict=True):
        assert {round(v, 9) for v in corners[corners[:, 0] == beta][:, 1]} == {
            round(v, 9) for v in wilson_interval(count, 10)
        }
    assert "Share of 10 runs" in figure.caption and "Wilson" in figure.caption


def test_one_line_per_value_of_the_third_axis():
    figure = draw_sweep(table(), ["dynamics.beta", "width", "start.n"])
    lines = lines_of(figure)
    assert len(lines) == 2
    for n, (_, y) in zip(SIZES, lines, strict=True):
        assert y == pytest.approx(
            [beta * n + 0.6 for beta in BETAS], rel=1e-14
        )  # 0.1 (0 + 1 + 4 + 9 + 16) / 5
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["4", "7"]
    assert "5 runs per point over start.rng" in figure.caption


def test_categories_are_shares_that_add_up():
    figure = draw_sweep(table(), ["dynamics.beta", "grade"])
    lines = lines_of(figure)
    assert lines[0][1].tolist() == [0.2, 0.4, 0.8] and (lines[0][1] + lines[1][1]).tolist() == [
        1.0,
        1.0,
        1.0,
    ]
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "exact",
        "undecided",
    ]


@pytest.mark.parametrize("turned", [False, True])
def test_a_heat_map_has_each_mean_at_its_place_and_the_width_beside_it(turned):
    wanted = (
        ["start.n", "dynamics.beta", "width"] if turned else ["dynamics.beta", "start.n", "width"]
    )
    figure = draw_sweep(table(), wanted)
    means, widths = (axes.collections[0].get_array() for axes in figure.axes[:2])
    low, high = student_interval(np.array([0.1 * seed**2 for seed in SEEDS]))
    expected = np.array([[beta * n + 0.6 for beta in BETAS] for n in SIZES])
    assert np.asarray(means) == pytest.approx(expected.T if turned else expected, rel=1e-14)
    assert np.asarray(widths) == pytest.approx(np.full(means.shape, (high - low) / 2), rel=1e-9)
    edges = np.asarray(figure.axes[0].collections[0].get_coordinates())
    if not turned:
        assert edges[0, :, 0] == pytest.approx(
            np.array([2**-1.5, 2**-0.5, 2**0.5, 2**1.5])
        )  # 0.5, 1, 2 are logspaced
        assert edges[:, 0, 1] == pytest.approx(np.array([2.5, 5.5, 8.5]))
        assert figure.axes[0].get_xscale() == "log" and figure.axes[0].get_yscale() == "linear"


def test_an_absent_cell_is_empty_and_not_zero():
    keep = [cell for cell in CELLS if cell[:2] != (2.0, 7)]
    columns = {
        "dynamics.beta": [cell[0] for cell in keep],
        "start.n": [cell[1] for cell in keep],
        "width": [number(*cell) for cell in keep],
    }
    figure = draw_sweep(
        SweepTable(columns, ["dynamics.beta", "start.n"]), ["dynamics.beta", "start.n", "width"]
    )
    assert np.ma.getmaskarray(figure.axes[0].collections[0].get_array()).tolist() == [
        [False] * 3,
        [False, False, True],
    ]


def test_missing_values_are_left_out_and_counted():
    width = [
        None if seed == 4 else math.inf if seed == 3 and n == 4 else number(beta, n, seed)
        for beta, n, seed in CELLS
    ]
    figure = draw_sweep(table(width=width), ["dynamics.beta", "width"])
    ((_, y),) = lines_of(figure)
    known = [
        number(0.5, n, seed) for n in SIZES for seed in SEEDS if seed < 3 or (seed == 3 and n == 7)
    ]
    assert y[0] == pytest.approx(sum(known) / 7, rel=1e-14)
    assert "9 of 30 runs have no value" in figure.caption and "7 runs" in figure.caption


def test_an_axis_that_changes_together_with_a_shown_one_is_not_averaged():
    together = table(**{"solve.dt": [1 / cell[0] for cell in CELLS]})
    assert averaged_axes(together, ["dynamics.beta"]) == ["start.n", "start.rng"]
    assert "solve.dt" not in draw_sweep(together, ["dynamics.beta", "width"]).caption


def test_one_run_per_point_has_no_interval():
    columns = {"dynamics.beta": BETAS, "width": [1.0, 2.0, 3.0]}
    figure = draw_sweep(SweepTable(columns, ["dynamics.beta"]), ["dynamics.beta", "width"])
    assert "no interval" in figure.caption and "Student" not in figure.caption


def test_the_curve_of_the_theory_is_drawn_and_cited():
    curve = Curve(np.array([0.5, 2.0]), np.array([4.0, 7.0]), "a straight line", "Euclid")
    figure = draw_sweep(table(), ["dynamics.beta", "start.n", "width"], [curve])
    assert any(
        np.array_equal(line.get_xydata(), [[0.5, 4.0], [2.0, 7.0]]) for line in figure.axes[0].lines
    )
    assert "Curve: a straight line (Euclid)." in figure.caption


def test_a_scatter_plot_has_one_mark_per_run():
    figure = draw_sweep(table(), ["width", "met"])
    offsets = figure.axes[0].collections[0].get_offsets()
    assert sorted(map(tuple, offsets.tolist())) == sorted(
        (number(*cell), met(*cell)) for cell in CELLS
    )
    assert "30 in all" in figure.caption
    assert len(draw_sweep(table(), ["width", "met", "grade"]).axes[0].collections) == 2


def test_lists_of_which_one_entry_changes_have_that_entry_as_their_place():
    coordinate = Coordinate("weights.eigenvalues", [[1.0, 0.5, -1.0], [1.0, 0.25, -1.0]])
    assert coordinate.places.tolist() == [0.5, 0.25] and "[1]" in coordinate.label
    words = Coordinate("dynamics.kernel", ["softmax", "hardmax", "softmax"], ["softmax", "hardmax"])
    assert words.places.tolist() == [0.0, 1.0, 0.0] and words.labels == ["softmax", "hardmax"]
    tables = Coordinate("start", [{"law": "circle", "n": 5}, {"law": "normal", "n": 5}])
    assert tables.labels == ["circle", "normal"]


@pytest.mark.parametrize(
    ("points", "is_log"),
    [
        ([0.1, 1.0, 10.0], True),
        ([1, 2, 3], False),
        ([2, 3, 4, 6, 8, 12, 16, 24, 32], True),
        ([0, 1, 2], False),
        ([1, 2], False),
        ([5, 10, 20, 40], True),
        ([1, 4, 9], False),
        ([0.1, 0.2, 0.3, 0.9, 1.0], False),
    ],
)
def test_axes_that_are_logspaced(points, is_log):
    assert is_logspaced(np.array(points, dtype=float)) == is_log


def test_words_of_strangers_are_drawn_as_they_are():
    figure = draw_sweep(
        table(**{"$\\frac{}$_x": [1.0 + cell[2] for cell in CELLS]}),
        ["dynamics.beta", "$\\frac{}$_x"],
    )
    figure.canvas.draw()  # mathematics that cannot be parsed would raise here
    assert "\\$" in figure.axes[0].get_ylabel()


def test_what_cannot_be_drawn_is_refused_in_a_sentence():
    with pytest.raises(UnknownName, match="width"):
        draw_sweep(table(), ["dynamics.beta", "widht"])
    with pytest.raises(ValueError, match="an axis and a number"):
        draw_sweep(table(), ["dynamics.beta", "start.n"])
    with pytest.raises(ValueError, match="two or three"):
        draw_sweep(table(), ["width"])
    with pytest.raises(ValueError, match="no rows"):
        draw_sweep(SweepTable({"a": [], "b": []}, ["a"]), ["a", "b"])


@pytest.mark.parametrize(
    "wanted",
    [
        ["dynamics.beta", "width"],
        ["dynamics.beta", "start.n", "grade"],
        ["dynamics.beta", "start.n", "met"],
    ],
)
def test_a_column_of_a_paper(wanted):
    figure = draw_sweep(table(), wanted, paper=Paper(3.4, False))
    figure.canvas.draw()
    assert figure.get_figwidth() == 3.4 and figure.get_suptitle() == "" and figure.caption


def test_numbers_are_told_from_shares():
    assert read_answers("a", [1, 1, 1]).kind == "mean"  # a count that is always 1
    assert read_answers("a", [0, 1, None]).kind == "share"
    assert read_answers("a", [True, True]).kind == "share"
    assert read_answers("a", [0.0, 0.5]).kind == "mean"
