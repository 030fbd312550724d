"""A map of heads writes each number into its own cell."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.render.head_map import draw_head_map
from attnlab.render.style import new_figure


def drawn(values, **options):
    axes = new_figure(6.0, 4.0).subplots()
    image = draw_head_map(axes, np.array(values, dtype=float), **options)
    texts = {
        (
            round(text.get_position()[1]),
            round(text.get_position()[0]),
            text.get_fontsize() > 8,
        ): text
        for text in axes.texts
    }
    return axes, image, texts


def test_every_cell_has_its_number_and_its_interval():
    values, reach = [[0.0, 12.34], [np.nan, 80.0]], np.array([[np.nan, 2.06], [np.nan, 0.01]])
    axes, image, texts = drawn(values, most=100.0, reach=reach, digits=1)
    np.testing.assert_array_equal(image.get_array().filled(np.nan), values)
    assert {place: text.get_text() for place, text in texts.items()} == {
        (0, 0, True): "0",
        (0, 1, True): "12.3",
        (0, 1, False): "±2.1",
        (1, 0, True): "–",
        (1, 1, True): "80.0",
        (1, 1, False): "±<0.1",
    }
    assert texts[1, 1, True].get_color() == "white" != texts[0, 1, True].get_color()


@pytest.mark.parametrize("cell, shown", [(0.5, 12), (0.15, 6), (0.07, 4)])
def test_numbers_of_heads_do_not_touch(cell, shown):
    axes, _, texts = drawn(np.zeros((3, 12)), most=1.0, is_written=False, cell=cell)
    assert len(axes.get_xticks()) == shown and not texts


def test_layers_keep_their_numbers():
    axes, _, _ = drawn(np.zeros((2, 3)), most=1.0, layers=[4, 7])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["4", "7"]
