"""Words beside tokens: none covers another, also while the tokens move and gather."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.render.moving_words import Crowd, CrowdPanel, keep_apart
from attnlab.render.style import new_figure
from attnlab.render.word_labels import ALL_LABELLED, label_points, place_words, word_size

BOX = np.array([0.0, 0.0, 400.0, 400.0])


def covers(middles: np.ndarray, sizes: np.ndarray) -> list[tuple[int, int]]:
    """The pairs of boxes that cover each other."""
    found = []
    for i in range(len(middles)):
        for j in range(i):
            if (np.abs(middles[i] - middles[j]) < (sizes[i] + sizes[j]) / 2 - 0.05).all():
                found.append((i, j))
    return found


@pytest.mark.parametrize("count", [2, 12, 34])
def test_words_of_tokens_in_one_point_keep_apart(count):
    sizes = np.array([word_size("a" * (1 + k % 9), 9.0) for k in range(count)])
    points = np.full((count, 2), 200.0)
    start = np.tile([0.0, 9.0], (count, 1))
    middles = points + keep_apart(points, start, start, sizes, points, BOX)
    assert covers(middles, sizes) == []
    assert (middles - sizes / 2 >= -1e-9).all() and (middles + sizes / 2 <= 400 + 1e-9).all()
    assert np.abs(middles - 200).max() < 150  # they stay near their tokens
    assert covers(points + start, sizes)  # the test sees a cover


def test_a_word_with_room_goes_back_beside_its_token():
    sizes, rest = np.array([word_size("cat", 9.0)]), np.array([[20.0, 0.0]])
    point = np.array([[200.0, 200.0]])
    found = keep_apart(point, np.array([[90.0, 70.0]]), rest, sizes, point, BOX)
    np.testing.assert_allclose(found, rest, atol=0.5)


def crowd(steps: int = 21, n: int = 20) -> Crowd:
    """Tokens that gather in one point."""
    first = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    path = first * np.linspace(1.0, 0.0, steps)[:, None, None]
    return Crowd(
        path,
        [f"word{k}" for k in range(n)],
        np.tile([0.0, 0.4, 0.7], (n, 1)),
        np.full(n, "o"),
        np.ones(n, dtype=bool),
        np.array([3]),
        np.arange(n),
    )


def test_words_move_with_their_tokens_and_never_cover_each_other():
    figure = new_figure(6.0, 6.0)
    axes = figure.subplots()
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    panel = CrowdPanel(axes, crowd())
    panel.show(0.0)
    figure.canvas.draw()
    before, jumps = None, []
    for position in np.linspace(0.0, 20.0, 41):
        panel.show(float(position))
        points_per_pixel = 72 / figure.dpi
        middles = np.array([text.get_position() for text in panel.texts]) * points_per_pixel
        assert covers(middles, panel.boxes) == []
        if before is not None:
            jumps.append(np.abs(middles - before).max())
        before = middles
    assert np.median(jumps) < 15  # points; the tokens themselves move by up to 5 in a frame
    tokens = [one for one in axes.collections if one.get_zorder() == 4]
    np.testing.assert_allclose(np.concatenate([one.get_offsets() for one in tokens]), 0, atol=1e-12)


def test_trails_are_as_long_as_the_memory():
    short = Crowd(**{**vars(crowd()), "memory": 2.0})
    assert short.trails(10.0).shape == (20, 3, 2) and crowd().trails(10.0).shape == (20, 11, 2)
    np.testing.assert_allclose(short.trails(10.0)[:, -1], short.at(10.0))
    np.testing.assert_allclose(short.trails(1.5)[:, 0], short.path[0])
    np.testing.assert_allclose(short.at(0.5), 0.5 * (short.path[0] + short.path[1]))


def test_in_a_crowd_words_have_room_or_are_left_out_but_not_the_first():
    rng = np.random.default_rng(3)
    points = rng.uniform(100, 200, (3 * ALL_LABELLED, 2))
    sizes = np.array([word_size("because", 8.0)] * len(points))
    places = place_words(points, sizes, BOX, True, [5, 9])
    there = np.flatnonzero(np.isfinite(places).all(axis=1))
    assert {5, 9} <= set(there) and 10 < len(there) < len(points)
    others = [k for k in there if k not in (5, 9)]
    assert covers(places[others], sizes[others]) == []


def test_a_point_without_a_word_keeps_words_away():
    figure = new_figure(4, 4)
    axes = figure.subplots()
    axes.set(xlim=(-1, 1), ylim=(-1, 1))
    figure.draw_without_rendering()
    pixels = figure.dpi / 72
    right = axes.transData.inverted().transform(
        axes.transData.transform([[0.0, 0.0]]) + [[18 * pixels, 0]]
    )
    label_points(axes, np.concatenate([[[0.0, 0.0]], right]), ["cat", ""], ["black", "black"])
    (text,) = axes.texts
    assert text.get_text() == "cat" and text.xyann[0] <= 0  # otherwise it stands at the right
