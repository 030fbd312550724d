"""The figure of a comparison shows the numbers of its table: every cell, every box, every interval."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matplotlib.patches import Polygon, Rectangle

import attnlab as al
from attnlab.models.studies.comparisons import each_model
from attnlab.render.comparison_figure import MOST_LINES, MOST_MAPS, MOST_ROWS, draw_comparison
from figure_texts import all_axes, faults
from tiny_models import MAKERS, bert

GENERATOR = np.random.default_rng(0)
TEXTS = [GENERATOR.integers(2, 19, size=n) for n in (5, 6, 7, 8, 9, 10, 5, 7)]


def load(seed: int | None = None, size: float = 0.1, **shape):
    """A small model; with a seed all its tensors are moved."""
    state, raw = bert(**shape)
    if seed is not None:
        generator = np.random.default_rng(seed)
        state = {
            name: tensor + size * generator.normal(size=np.shape(tensor)).astype(tensor.dtype)
            for name, tensor in state.items()
        }
    return dataclasses.replace(al.models.load(state, config=raw), name=f"step {seed}")


def planted():
    """A model and the same without the scores of L1H2: it attends uniformly."""
    a = load()
    part = a.parts.layers[1].attention
    query = np.array(part.query)
    query[2] = 0
    layers = (a.parts.layers[0], a.parts.layers[1].change(query=query, query_bias=None))
    return a, dataclasses.replace(a, name="b", parts=dataclasses.replace(a.parts, layers=layers))


def maps(figure):
    return [axes for axes in all_axes(figure) if axes.images and axes.get_xlabel() != ""]


def test_cells_boxes_and_corners_are_those_of_the_table():
    table = al.models.compare(*planted(), texts=TEXTS)
    assert table["changed"].any() and not table["changed"].all()
    figure = draw_comparison(table)
    (axes,) = maps(figure)
    shown = np.asarray(axes.images[0].get_array())
    for row in table.itertuples():
        assert shown[row.layer, row.head] == pytest.approx(100 * row.attention_change, abs=1e-9)
    boxes = [one for one in axes.patches if isinstance(one, Rectangle)]
    assert {(round(box.get_y() + 0.44), round(box.get_x() + 0.44)) for box in boxes} == {
        (row.layer, row.head) for row in table.itertuples() if row.changed
    }
    corners = [one for one in axes.patches if isinstance(one, Polygon)]
    assert [tuple(np.rint(one.get_xy()[0] + 0.5)) for one in corners] == [(2.0, 1.0)]
    assert "Corners: V or M itself changed." in figure.caption
    assert faults(figure) == []


def test_rows_have_the_intervals_of_the_heads_that_changed_most():
    table = al.models.compare(load(), load(1), texts=TEXTS)
    figure = draw_comparison(table)
    rows = [axes for axes in all_axes(figure) if not axes.images and axes.get_xlabel()]
    assert len(rows) == 3
    order = table.sort_values("attention_change", ascending=False)
    names = [label.get_text() for label in rows[0].get_yticklabels()]
    assert names == [f"L{row.layer}H{row.head}" for row in order.itertuples()][:MOST_ROWS]
    for axes, name, factor in zip(
        rows, ("attention_change", "sink_change", "entropy_change"), (100, 100, 1), strict=True
    ):
        bars = [line.get_xdata() for line in axes.lines if list(line.get_ydata()) != [0, 1]]
        bars = [bar for bar in bars if len(bar) == 2]
        expected = factor * order[[f"{name}_low", f"{name}_high"]].to_numpy()
        np.testing.assert_allclose(bars, expected)


@pytest.mark.parametrize("width", [None, 3.4])
@pytest.mark.parametrize("has_texts", [True, False])
def test_several_models_have_a_map_each_and_a_line_per_head(has_texts, width):
    steps = [load(seed, 0.05 * seed) for seed in range(1, 4)]
    table = al.models.compare(load(), *steps, texts=TEXTS if has_texts else ())
    figure = al.plot(table, width=width)
    assert faults(figure) == []
    titles = {axes.get_title(loc="left") for axes in all_axes(figure) if axes.images}
    assert {"1. step 1", "2. step 2", "3. step 3"} <= titles
    names = ("attention_change",) if has_texts else ("value_change", "score_change")
    lines = [axes for axes in all_axes(figure) if axes.get_xlabel() == "model"]
    for axes, name in zip(lines, names, strict=False):
        drawn = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) == 3]
        assert len(drawn) == 6 == MOST_LINES
        wanted = [
            [100 * part[name].iloc[number] for _, part in each_model(table)] for number in range(6)
        ]
        np.testing.assert_allclose(sorted(drawn, key=tuple), sorted(wanted))


def test_of_many_models_some_maps_are_shown_and_the_note_says_so():
    steps = [load(seed, 0.01 * seed) for seed in range(1, 12)]
    figure = draw_comparison(al.models.compare(load(), *steps, texts=TEXTS[:2]))
    titles = [axes.get_title(loc="left") for axes in all_axes(figure) if axes.images]
    titles = [one for one in titles if one]
    assert len(titles) == MOST_MAPS and titles[0] == "1. step 1" and titles[-1] == "11. step 11"
    assert "Maps show 8 of the 11 models." in figure.caption and faults(figure) == []


def test_one_text_has_no_intervals_and_tests_nothing():
    figure = draw_comparison(al.models.compare(load(), load(1), texts=TEXTS[:1]))
    assert "95 %" not in figure.caption and "Boxes" not in figure.caption
    assert faults(figure) == []


def test_a_model_beside_itself_and_a_head_that_was_zero():
    a = load()
    quiet = a.without(heads=[(0, 1)])
    figure = draw_comparison(al.models.compare(a, a, texts=TEXTS))
    assert "In no head a test finds a change" in figure.caption and faults(figure) == []
    table = al.models.compare(quiet, a)  # V was 0: no ratio
    assert np.isnan(table["value_change"]).sum() == 1
    figure = draw_comparison(table)
    cells = [text.get_text() for axes in maps(figure) for text in axes.texts]
    assert cells.count("–") == 1 and faults(figure) == []


@pytest.mark.parametrize("family", ["albert", "llama"])
def test_tied_and_causal_models(family):
    state, raw = MAKERS[family]()
    a = al.models.load(state, config=raw)
    b = a.without(heads=[(0, 0)])
    for texts in (TEXTS[:3], ()):
        figure = draw_comparison(al.models.compare(a, b, texts=texts))
        assert faults(figure) == []


def test_models_of_one_name_stay_apart():
    a, b = load(1), load(2)
    b = dataclasses.replace(b, name=a.name)
    table = al.models.compare(load(), a, b)
    assert [name for name, _ in each_model(table)] == ["step 1", "step 1 (2)"]
    assert [len(part) for _, part in each_model(table)] == [6, 6]
    said = al.models.findings(table)
    assert any("to step 1 (2)" in line for line in said)
    shuffled = table.sample(frac=1.0, random_state=1)
    assert {name for name, _ in each_model(shuffled)} == {"step 1", "step 1 (2)"}
