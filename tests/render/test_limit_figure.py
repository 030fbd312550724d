"""The figure of a Limit: the data on the artists, the words, and that what is undecided shows no
limits.
"""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import Polygon
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Path3DCollection, Poly3DCollection
from PIL import Image

from attnlab import Dynamics, Limit, Weights
from attnlab.render import movie, plot
from attnlab.render.limit_view import dual_basis, fastest, make_view
from attnlab.render.panels.box import AZIMUTH
from attnlab.render.panels.ends import MOST_NAMES, line_in_box, side_on
from attnlab.render.style import PALETTE

OBLIQUE = np.array([[1.0, 0.5, 0.2], [0.0, 1.0, -0.4], [0.3, 0.0, 1.0]])


def made_limit(d, k, n=12, groups=4, seed=0, grade="exact", T=0, frame=None):
    """A Limit by hand, no engine: V grows along the first k columns of an eigenbasis and shrinks
    along the others.
    """
    rng = np.random.default_rng(seed)
    frame = np.eye(d) if frame is None else frame
    V = (
        frame
        @ np.diag(np.where(np.arange(d) < k, 1.0 - 0.1 * np.arange(d), -0.5))
        @ np.linalg.inv(frame)
    )
    x0 = rng.uniform(-5, 5, (n, d))
    labels = np.arange(n) % groups
    points = rng.uniform(-4, 4, (groups, k))[labels]
    if k == 0:
        labels = np.zeros(n, dtype=int)
    times = np.linspace(0.5, 3.0, T)
    fixed = {
        "dynamics": Dynamics(Weights(V=V)),
        "x0": x0,
        "basis": frame[:, :k],
        "t": 3.5,
        "times": times,
        "z": np.linspace(x0, 0.5 * x0, T + 1)[1:],
    }
    if grade == "undecided":
        nobody = np.full(n, -1)
        return Limit(
            labels=nobody,
            leaders=nobody,
            points=np.full((n, k), np.nan),
            error=np.inf,
            grade=grade,
            reason="Undecided (tie) at t = 3.5: the row is tied. "
            + "Much more is to be said about it. " * 20,
            **fixed,
        )
    leaders = labels if k else np.full(n, -1)
    return Limit(
        labels=labels,
        leaders=leaders,
        points=points,
        error=2e-10,
        grade=grade,
        reason="Certified.",
        **fixed,
    )


def artists(figure, label):
    """The collections of a figure under a label: start, limit, leader, way."""
    return [artist for artist in figure.axes[0].collections if artist.get_label() == label]


def places(figure, label):
    """Where the points under a label are, sorted."""
    found = artists(figure, label)
    if not found:
        return np.empty((0, 2))
    is_space = isinstance(found[0], Path3DCollection)
    points = np.concatenate(
        [np.column_stack(a._offsets3d) if is_space else np.asarray(a.get_offsets()) for a in found]
    )
    return points[np.lexsort(points.T)]


def in_order(points):
    return points[np.lexsort(points.T)]


def words(figure):
    """What stands above and below the panel, on one line."""
    return " ".join(f"{figure.get_suptitle()} | {figure.get_supxlabel()}".split())


def hull(figure):
    """The polygons of the hull that are seen."""
    axes = figure.axes[0]
    return [
        artist
        for artist in (*axes.patches, *axes.collections)
        if isinstance(artist, Polygon | Poly3DCollection)
        and artist.get_visible()
        and artist.get_zorder() in (0.8, 1)
    ]


def drawn(figure):
    """The figure as pixels, to see that it can be drawn."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=40)
    return np.asarray(Image.open(buffer).convert("L"))


# what is drawn
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [None, OBLIQUE], ids=["straight", "oblique"])
@pytest.mark.parametrize("d, k", [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_every_limit_and_every_start_has_its_mark(d, k, frame):
    limit = made_limit(d, k, frame=None if frame is None else frame[:d, :d])
    figure = plot(limit)
    limits = limit.limits[[0, 1, 2, 3]]
    if d == 1:  # a number line: the second coordinate is the row
        np.testing.assert_array_equal(
            places(figure, "limit"), in_order(np.column_stack([limits, np.zeros(4)]))
        )
        np.testing.assert_array_equal(
            places(figure, "start"), in_order(np.column_stack([limit.x0, np.ones(12)]))
        )
    else:
        np.testing.assert_array_equal(places(figure, "limit"), in_order(limits))
        np.testing.assert_array_equal(places(figure, "start"), in_order(limit.x0))
    assert len(places(figure, "leader")) == 4
    assert drawn(figure).min() < 200


@pytest.mark.parametrize(
    "d, k, axes", [(5, 5, ["z₁", "z₂"]), (5, 3, ["z₁", "z₂"]), (5, 2, ["z₁", "z₂"])]
)
def test_in_many_dimensions_the_fastest_two_coordinates_are_shown(d, k, axes):
    limit = made_limit(d, k)
    figure = plot(limit)
    np.testing.assert_array_equal(places(figure, "limit"), in_order(limit.points[:4, :2]))
    np.testing.assert_allclose(places(figure, "start"), in_order(limit.x0[:, :2]), atol=1e-12)
    assert [figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()] == axes
    assert ("Two of" in words(figure)) == (k > 2)


def test_one_growing_direction_of_many_is_a_number_line():
    frame = np.linalg.qr(np.random.default_rng(5).normal(size=(6, 6)))[0]
    limit = made_limit(6, 1, frame=frame)
    figure = plot(limit)
    np.testing.assert_array_equal(places(figure, "limit")[:, 0], np.sort(limit.points[:4, 0]))
    np.testing.assert_allclose(
        places(figure, "start")[:, 0], np.sort(limit.x0 @ frame[:, 0]), atol=1e-12
    )
    assert figure.axes[0].get_xlabel() == "coordinate in F, growth 1"
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["start", "limit"]


def test_coordinates_that_grow_equally_are_chosen_by_their_spread():
    assert fastest(
        np.array([0.5, 1.0, 1.0 + 1e-12, 1.0]), np.array([9.0, 1.0, 3.0, 2.0])
    ).tolist() == [2, 3]
    assert fastest(np.array([0.5, 2.0, 1.0]), np.array([9.0, 1.0, 3.0])).tolist() == [1, 2]
    assert fastest(np.array([0.5]), np.array([9.0])).tolist() == [0]


@pytest.mark.parametrize("d, k, count", [(2, 2, 1), (3, 3, 1), (3, 2, 1), (2, 1, 0), (3, 1, 0)])
def test_the_convex_hull_of_the_limits(d, k, count):
    limit = made_limit(d, k)
    figure = plot(limit)
    assert len(hull(figure)) == count
    if (d, k) == (2, 2):
        corners = {tuple(corner) for corner in hull(figure)[0].get_xy()}
        assert corners <= {tuple(point) for point in limit.limits} and len(corners) >= 3
        assert "convex hull" in words(figure)


def test_lines_lead_from_start_to_limit_along_F_alone():
    for d, k in ((2, 1), (3, 1), (3, 2), (3, 3)):
        limit = made_limit(d, k, frame=OBLIQUE[:d, :d])
        view = make_view(limit)
        way = view.lines[-1] - view.lines[0]
        left_over = way.T - limit.basis @ np.linalg.lstsq(limit.basis, way.T, rcond=None)[0]
        assert np.abs(left_over).max() < 1e-12
        dual, free = dual_basis(limit)
        np.testing.assert_allclose(
            view.lines[-1] @ dual.T, limit.points, atol=1e-12
        )  # it does end in its set
        np.testing.assert_allclose(dual @ limit.basis, np.eye(k), atol=1e-12)
        np.testing.assert_allclose(dual @ free, np.zeros((k, d - k)), atol=1e-12)
        V = limit.dynamics.weights.total.dense()
        np.testing.assert_allclose(
            dual @ V @ free, np.zeros((k, d - k)), atol=1e-12
        )  # both parts are invariant


def test_limiting_lines_in_the_plane_run_along_the_free_direction():
    limit = made_limit(2, 1, frame=OBLIQUE[:2, :2])
    figure = plot(limit)
    dashed = [line for line in figure.axes[0].lines if line.is_dashed()]
    assert len(dashed) == 4 and "4 limiting lines" in words(figure)
    free = OBLIQUE[:2, 1]
    for line, point in zip(dashed, make_view(limit).marks, strict=True):
        one, other = np.array(line.get_xy1()), np.array(line.get_xy2())
        assert abs(np.linalg.det(np.column_stack([other - one, free]))) < 1e-12
        assert abs(np.linalg.det(np.column_stack([point - one, free]))) < 1e-12


def test_limiting_planes_and_lines_in_space():
    planes = plot(made_limit(3, 1))
    panes = [
        a
        for a in planes.axes[0].collections
        if isinstance(a, Poly3DCollection) and a.get_zorder() == 0.5
    ]
    assert len(panes) == 4 and "4 limiting planes" in words(planes)
    lines = plot(made_limit(3, 2))
    dashes = [
        a
        for a in lines.axes[0].collections
        if isinstance(a, Line3DCollection) and a.get_zorder() == 2.5
    ]
    assert len(dashes) == 4 and "4 limiting lines" in words(lines)


def test_tokens_of_one_limit_have_one_colour_and_the_largest_group_the_first():
    limit = made_limit(2, 2, n=14)  # labels 0 and 1 have four tokens, 2 and 3 three
    view = make_view(limit)
    assert [len(group) for group in view.groups] == [4, 4, 3, 3]
    for label in range(4):
        assert len(np.unique(view.colours[limit.labels == label], axis=0)) == 1
    np.testing.assert_allclose(
        view.colours[0], np.array([int(PALETTE[0][i : i + 2], 16) for i in (1, 3, 5)]) / 255
    )


def test_more_limits_than_colours_take_other_markers():
    limit = made_limit(2, 2, n=60, groups=30)
    view = make_view(limit)
    looks = {
        (tuple(colour), marker)
        for colour, marker in zip(view.group_colours, view.group_markers, strict=True)
    }
    assert len(looks) == 24
    figure = plot(limit)
    assert len(places(figure, "limit")) == 30 and len(artists(figure, "limit")) == 4


@pytest.mark.parametrize("d", [1, 2, 3])
def test_leaders_are_named_while_they_are_few(d):
    few = plot(made_limit(d, d))
    assert {"0", "1", "2", "3"} <= {
        text.get_text() for text in few.axes[0].texts
    } and "with its number" in words(few)
    many = plot(made_limit(d, d, n=40, groups=MOST_NAMES + 1))
    assert len(places(many, "leader")) == MOST_NAMES + 1 and "with its number" not in words(many)
    assert not any(text.get_text() == str(MOST_NAMES) for text in many.axes[0].texts)


def test_paths_go_through_the_times_asked_for():
    limit = made_limit(2, 2, T=5)
    (ways,) = artists(plot(limit), "way")
    assert isinstance(ways, LineCollection)
    paths = np.array([path.vertices for path in ways.get_paths()])
    wanted = np.concatenate([limit.x0[None], limit.z, limit.limits[None]])
    np.testing.assert_allclose(paths, np.swapaxes(wanted, 0, 1), atol=1e-12)


def test_times_that_were_not_reached_are_left_out():
    limit = made_limit(1, 1, T=3)
    z = np.array(limit.z)
    z[1:] = np.nan
    view = make_view(Limit(**{**vars(limit), "z": z}))
    assert view.lines.shape == (3, 12, 1) and view.times.tolist() == [0.5]
    rows = [
        label.get_text()
        for label in plot(Limit(**{**vars(limit), "z": z})).axes[0].get_yticklabels()
    ]
    assert rows == ["start", "t = 0.5", "limit"]


def test_many_times_on_a_number_line_are_not_all_named():
    figure = plot(made_limit(1, 1, T=60))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) <= 9 and names[0] == "start" and names[-1] == "limit"
    drawn(figure)


def test_many_tokens():
    figure = plot(made_limit(2, 2, n=4000, groups=7))
    assert (
        artists(figure, "way") == []
        and len(places(figure, "limit")) == 7
        and len(places(figure, "start")) == 4000
    )


# what is not known
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [0, 3])
@pytest.mark.parametrize("d, k", [(1, 1), (1, 0), (2, 2), (2, 0), (3, 2), (5, 0), (5, 4)])
def test_what_is_undecided_shows_no_limit(d, k, T):
    limit = made_limit(d, k, grade="undecided", T=T)
    figure = plot(limit)
    assert (
        artists(figure, "limit") == [] and len(places(figure, "leader")) == 0 and hull(figure) == []
    )
    assert len(places(figure, "start")) == 12
    assert figure.get_suptitle().startswith("UNDECIDED") and "certified" not in words(figure)
    title = figure.axes[0].get_title()
    assert title.startswith("Undecided (tie)") and title.endswith("...") and "\n" in title
    assert bool(artists(figure, "way")) == (T > 0)
    assert (
        len({tuple(colour) for colour in make_view(limit).colours}) == 1
    )  # no groups are hinted at
    drawn(figure)


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_without_growing_directions_only_the_start_is_drawn(d):
    figure = plot(made_limit(d, 0, grade="group"))
    assert (
        artists(figure, "limit") == []
        and artists(figure, "way") == []
        and len(places(figure, "start")) == 12
    )
    assert "F = {0}" in words(figure)
    drawn(figure)


def test_the_words_say_how_well_it_is_known():
    text = words(plot(made_limit(2, 2)))
    assert text.startswith(
        "4 limit points · V = diag(1, 0.9), β = 1, n = 12, d = 2 · certified, exact"
    )
    assert "within 2e-10" in text and "t = 3.5" in text
    assert "certified, group" in words(plot(made_limit(2, 2, grade="group")))
    assert words(plot(made_limit(2, 2, n=1, groups=1))).startswith(
        "1 limit point · V = diag(1, 0.9), β = 1, n = 1, d = 2"
    )
    assert "4 limits in F, dimension 3 of 5" in words(plot(made_limit(5, 3)))


# errors and views
# --------------------------------------------------------------------------------------------------


def test_only_the_kind_limit_and_no_option_of_a_run():
    limit = made_limit(2, 2)
    assert words(plot(limit, "limit")) == words(plot(limit))
    with pytest.raises(
        ValueError, match="A Limit has one kind of figure, 'limit', got kind = 'tokens'"
    ):
        plot(limit, "tokens")
    with pytest.raises(ValueError, match="times applies only to figures of a run"):
        plot(limit, times=[1.0])
    with pytest.raises(ValueError, match="head applies only to figures of a run"):
        plot(limit, head=0)
    with pytest.raises(TypeError, match="A Limit has no time axis"):
        movie(limit, "a.gif")
    with pytest.raises(TypeError, match="plot draws a Trajectory.*, a Limit.*got int"):
        plot(3)


def test_lines_are_seen_from_the_side():
    for direction in np.random.default_rng(0).normal(size=(50, 3)):
        elevation, azimuth = np.deg2rad(side_on(direction))
        towards = [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
        assert abs(direction @ towards) <= 0.5 * np.linalg.norm(direction) + 1e-12
    assert side_on(np.array([0.0, 0.0, 1.0]))[1] == AZIMUTH


def test_a_line_is_cut_to_the_box():
    box = np.array([[-1.0, 1.0], [-1.0, 1.0], [0.0, 4.0]])
    np.testing.assert_allclose(
        line_in_box(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0]), box),
        [[-1, 0, 0], [1, 0, 2]],
    )
    upright = line_in_box(np.array([0.5, 0.0, 1.0]), np.array([0.0, 0.0, -2.0]), box)
    np.testing.assert_allclose(upright, [[0.5, 0, 4], [0.5, 0, 0]])
