"""What is drawn: the data on the artists, the words, the errors. Never pixels; one smoke image a
kind.
"""

import io
import os
import subprocess
import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Path3DCollection, Poly3DCollection
from PIL import Image

from attnlab.registry import UnknownName
from attnlab.render import check_figure_name, check_movie_name, kinds, movie, plot
from attnlab.render.groups import group_tokens
from attnlab.render.hulls import outline, plane_in_box
from attnlab.render.moments import choose_moments
from attnlab.render.panels.views import FLATTEST, STEEPEST_PLANE, see_planes
from attnlab.render.ranges import shared_ranges, square_ranges
from attnlab.render.results import even_positions
from attnlab.render.scene import make_scene
from attnlab.render.style import PALETTE
from attnlab.render.ticks import Unit, unit_of
from attnlab.types import Dynamics, FeedForward, Solve, Status, Trajectory, Weights


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def made_run(V, z0, t_end, saves=21, steps=8):
    """A run by Euler steps in z, so that these tests need no engine: dz_i = V sum_j P_ij (z_j -
    z_i); V diagonal or symmetric.
    """
    V = np.atleast_2d(np.asarray(V, dtype=float))
    values, vectors = np.linalg.eigh(V)
    times = np.linspace(0.0, t_end, saves)
    dt = t_end / (saves - 1) / steps
    z, states = np.array(z0, dtype=float), [np.array(z0, dtype=float)]
    for k in range((saves - 1) * steps):
        x = z @ (vectors * np.exp(k * dt * values)) @ vectors.T
        z = z + dt * (softmax(x @ x.T) @ z - z) @ V.T
        if (k + 1) % steps == 0:
            states.append(z)
    return made_trajectory(Dynamics(weights=Weights(V=V)), times, np.array(states), "z")


def made_trajectory(dynamics, times, states, frame, status=Status.OK):
    solve = Solve(t_end=float(times[-1]), times=times)
    return Trajectory(
        dynamics=dynamics,
        solve=solve,
        times=times,
        states=states,
        frame=frame,
        log_scale=np.zeros((*states.shape[:-3], len(times))),
        status=status,
    )


def uniform(n, d, size=5.0):
    return np.random.default_rng(1).uniform(-size, size, (n, d))


def made_sphere_run(n, d):
    x = np.random.default_rng(2).normal(size=(4, n, d))
    dynamics = Dynamics(weights=Weights(V=np.eye(d)), geometry="sphere")
    return made_trajectory(
        dynamics, np.linspace(0, 1, 4), x / np.linalg.norm(x, axis=-1, keepdims=True), "x"
    )


def observing(run, **arrays):
    """The run with observables: by themselves one number a time, and one a time and head."""
    T = run.states.shape[-3]
    return replace(
        run,
        observed=arrays
        or {"diameter": np.linspace(2, 1, T), "attention_rank": np.full((T, 1), 3.0)},
    )


@pytest.fixture(scope="module")
def plane():
    return made_run(np.eye(2), uniform(20, 2), 8.0)


@pytest.fixture(scope="module")
def space():
    return made_run(np.eye(3), uniform(20, 3), 8.0)


@pytest.fixture(scope="module")
def line():
    return made_run([[1.0]], uniform(12, 1, 1.0), 10.0)


@pytest.fixture(scope="module")
def high():
    return made_run(np.eye(7), uniform(12, 7, 1.0), 3.0)


@pytest.fixture(scope="module")
def batch(plane):
    states = np.stack([plane.states, 2 * plane.states, plane.states])
    states[1, 15:] = np.nan
    status = np.array([Status.OK, Status.STALLED, Status.OK], dtype=object)
    return replace(plane, states=states, log_scale=np.zeros((3, len(plane.times))), status=status)


def words(figure):
    """What stands above and below the panels, on one line."""
    return " ".join(f"{figure.get_suptitle()} | {figure.get_supxlabel()}".split())


def drawn_tokens(axes, n):
    """The points of the token scatters of one panel, sorted; the rings of leaders have no face and
    are left out.
    """
    parts = []
    for artist in axes.collections:
        if isinstance(artist, PathCollection) and len(artist.get_facecolor()):
            space = isinstance(artist, Path3DCollection)
            parts.append(
                np.column_stack(artist._offsets3d) if space else np.asarray(artist.get_offsets())
            )
    points = np.concatenate(parts)
    assert len(points) == n
    return sorted_rows(points)


def sorted_rows(points):
    return points[np.lexsort(points.T)]


# what is drawn
# --------------------------------------------------------------------------------------------------


def test_the_kind_is_chosen_by_dimension(line, plane, space, high):
    assert len([a for a in plot(line).axes if a.images]) == 4  # paths with attention
    assert [a.name for a in plot(plane).axes] == ["rectilinear"] * 4
    assert [a.name for a in plot(space).axes] == ["3d"] * 4
    assert "principal axis 1" in plot(high).axes[0].get_xlabel()


@pytest.mark.parametrize("name", ["plane", "space"])
def test_tokens_are_drawn_where_z_is(name, request):
    run = request.getfixturevalue(name)
    figure = plot(run, times=[0.0, 0.8, 8.0])
    for axes, t in zip(figure.axes, (0.0, 0.8, 8.0), strict=True):
        k = int(np.argmin(np.abs(run.times - t)))
        np.testing.assert_array_equal(drawn_tokens(axes, run.n), sorted_rows(run.z[k]))
        assert axes.get_title() == f"t = {run.times[k]:.3g}"


def test_the_hull_in_the_plane_is_the_hull_of_the_tokens(plane):
    axes = plot(plane, times=[0.0, 8.0]).axes[1]
    first, now = [patch for patch in axes.patches if isinstance(patch, Polygon)]
    assert first.get_visible() and now.get_visible()
    from scipy.spatial import ConvexHull

    for patch, points in ((first, plane.z[0]), (now, plane.z[-1])):
        corners = points[ConvexHull(points).vertices]
        drawn = patch.get_xy()[:-1]  # the polygon closes itself
        assert {tuple(p) for p in drawn} >= {tuple(p) for p in corners}
        x, y = drawn.T
        area = 0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
        assert area == pytest.approx(ConvexHull(points).volume)  # so the corners are in order


def test_the_hull_in_space_has_edges_and_faces(space):
    axes = plot(space, times=[0.0]).axes[0]
    edges = outline(space.z[0]).edges
    assert any(isinstance(a, Poly3DCollection) and a.get_visible() for a in axes.collections)
    assert any(
        isinstance(a, Line3DCollection) and len(a._segments3d) == len(edges)
        for a in axes.collections
    )


def test_trails_lead_from_the_start_to_the_tokens(plane):
    axes = plot(plane, times=[0.0, 8.0]).axes[1]
    (trails,) = [a for a in axes.collections if isinstance(a, LineCollection)]
    segments = trails.get_segments()
    assert len(segments) == plane.n
    np.testing.assert_array_equal(np.array(segments), np.swapaxes(plane.z, 0, 1))


def test_paths_draw_every_coordinate_of_every_token(high):
    figure = plot(high, "paths")
    assert len(figure.axes) == 6 and "6 of 7 coordinates" in words(figure)
    spread = np.ptp(high.z[-1], axis=0)
    chosen = np.sort(np.argsort(-spread)[:6])
    for axes, k in zip(figure.axes, chosen, strict=True):
        (lines,) = [a for a in axes.collections if isinstance(a, LineCollection)]
        for i, segment in enumerate(lines.get_segments()):
            np.testing.assert_array_equal(segment, np.column_stack([high.times, high.z[:, i, k]]))


def test_paths_in_one_dimension_show_z_x_and_attention(line):
    figure = plot(line, times=[0.0, 10.0])
    lines = [a for a in figure.axes if a.get_ylabel() in ("z", "x")]
    assert [a.get_ylabel() for a in lines] == ["z", "x"]
    for axes, values in zip(lines, (line.z, line.x), strict=True):
        segments = axes.collections[0].get_segments()
        np.testing.assert_array_equal(np.array(segments)[..., 1].T, values[..., 0])
    assert lines[0].get_yscale() == "linear" and lines[1].get_yscale() == "asinh"
    maps = [a for a in figure.axes if a.images]
    order = np.argsort(line.z[0, :, 0])
    for axes, k in zip(maps, (0, -1), strict=True):
        x = line.x[k]
        P = softmax(x @ x.T)
        np.testing.assert_allclose(axes.images[0].get_array(), P[np.ix_(order, order)], atol=1e-12)
        assert axes.get_title().endswith(f"rank {np.linalg.matrix_rank(P)}")
    assert "rank 2" in maps[-1].get_title()


def test_x_past_double_precision_is_left_out(line):
    run = replace(line, dynamics=Dynamics(weights=Weights(V=[[100.0]])))
    labels = [a.get_ylabel() for a in plot(run).axes]
    assert "z" in labels and "x" not in labels


def test_attention_shows_a_row_a_head(plane):
    weights = Weights(
        Q=np.stack([np.eye(2)] * 3), K=np.stack([np.eye(2)] * 3), V=np.stack([np.eye(2) / 3] * 3)
    )
    run = replace(plane, dynamics=Dynamics(weights=weights))
    figure = plot(run, "attention", times=[0.0, 1.0])
    assert len([a for a in figure.axes if a.images]) == 6 and "heads 0, 1, 2 · 3 heads" in words(
        figure
    )
    assert "head 1 · 3 heads" in words(plot(run, "attention", head=1))
    with pytest.raises(ValueError, match="from 0 to 2, got 3"):
        plot(run, "attention", head=3)


def test_pca_keeps_distances_when_two_axes_hold_everything(plane):
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:, :2]
    run = made_trajectory(
        Dynamics(weights=Weights(V=np.eye(5))), plane.times, plane.z @ rotation.T, "z"
    )
    figure = plot(run, times=[0.0])
    drawn = drawn_tokens(figure.axes[0], run.n)
    distances = np.sort(np.linalg.norm(drawn[:, None] - drawn, axis=-1).ravel())
    expected = np.sort(np.linalg.norm(plane.z[0][:, None] - plane.z[0], axis=-1).ravel())
    np.testing.assert_allclose(distances, expected, atol=1e-9)
    shares = [
        float(label.split("(")[1].split("%")[0])
        for label in (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel())
    ]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_pca_leaves_out_what_diverges():
    run = made_run(np.diag([1.0, 1.0, 1.0, -1.0, -1.0]), uniform(20, 5, 2.0), 6.0)
    figure = plot(run)
    assert "the rest diverges" in words(figure)
    assert np.ptp(drawn_tokens(figure.axes[-1], 20)) < 10 < np.ptp(run.z[-1])


@pytest.mark.parametrize("d", [2, 3])
def test_on_the_sphere_x_is_drawn_with_the_sphere_and_without_a_hull(d):
    run = made_sphere_run(8, d)
    figure = plot(run)
    assert "sphere" in words(figure) or "circle" in words(figure)
    assert "hull" not in words(figure)
    axes = figure.axes[-1]
    np.testing.assert_array_equal(drawn_tokens(axes, 8), sorted_rows(run.x[-1]))
    assert not axes.axison
    with pytest.raises(ValueError, match="There is no rescaled frame on the sphere"):
        plot(run, frame="z")


def test_paths_on_the_circle_are_angles():
    run = made_sphere_run(5, 2)
    (axes,) = plot(run, "paths").axes
    assert axes.get_ylabel() == "angle / π"
    angle = axes.collections[0].get_segments()[0][-1, 1] * np.pi
    np.testing.assert_allclose([np.cos(angle), np.sin(angle)], run.x[-1, 0])


def test_frame_x_draws_x(plane):
    axes = plot(plane, frame="x", times=[1.2]).axes[0]
    np.testing.assert_array_equal(drawn_tokens(axes, plane.n), sorted_rows(plane.x[3]))
    assert axes.get_xlabel() == "x₁"


def test_observed_draws_a_panel_an_observable_and_a_line_an_entry(plane):
    rank = np.arange(21.0)[:, None] + [0, 1]
    growing = np.concatenate([np.exp(np.arange(20.0)), [np.inf]])
    weights = Weights(
        Q=np.stack([np.eye(2)] * 2), K=np.stack([np.eye(2)] * 2), V=np.stack([np.eye(2) / 2] * 2)
    )
    run = replace(plane, dynamics=Dynamics(weights=weights))
    figure = plot(
        observing(run, attention_rank=rank, energy=growing, many=np.ones((21, 3, 3))), "observed"
    )
    heads, energy, many = figure.axes
    assert [a.get_ylabel() for a in figure.axes] == [
        "attention rank",
        "energy",
        "many",
    ] and heads.get_xlabel() == "time t"
    np.testing.assert_array_equal([s[:, 1] for s in heads.collections[0].get_segments()], rank.T)
    assert len({tuple(colour) for colour in heads.collections[0].get_colors()}) == 2
    assert [text.get_text() for text in heads.get_legend().get_texts()] == ["head 0", "head 1"]
    assert (
        energy.get_legend() is None
        and energy.get_yscale() == "log"
        and np.isfinite(energy.get_ylim()).all()
    )
    assert len(many.collections[0].get_segments()) == len(
        PALETTE
    ) and "first 6 lines of many" in words(figure)


def test_observed_shows_the_member_asked_for(batch):
    values = np.arange(63.0).reshape(3, 21)
    (axes,) = plot(observing(batch, diameter=values), "observed", member=1).axes
    np.testing.assert_array_equal(
        axes.collections[0].get_segments()[0][:, 1], values[1, :15]
    )  # it stopped there


def test_layers_count_layers(plane):
    run = replace(
        plane,
        dynamics=Dynamics(weights=Weights(V=np.eye(2)), dt=0.4),
        frame="x",
        times=0.4 * np.arange(21),
    )
    assert plot(run, times=[0.8]).axes[0].get_title() == "layer 2"


def test_the_headline_names_the_matrix_of_the_rescaling(plane):
    heads = Weights(
        Q=np.stack([np.eye(2)] * 2), K=np.stack([np.eye(2)] * 2), V=np.stack([np.eye(2) / 2] * 2)
    )
    for weights, V in ((Weights(V=np.eye(2)), "V"), (heads, "ΣV")):
        assert f"z = exp(−t{V}) x" in words(
            plot(replace(plane, dynamics=Dynamics(weights=weights)))
        )
        run = replace(
            plane, dynamics=Dynamics(weights=weights, dt=0.4), frame="x", times=0.4 * np.arange(21)
        )
        assert f"z = (I + dt {V})⁻ᵏ x" in words(plot(run))


@pytest.mark.parametrize(
    "V, name",
    [(-np.eye(2), "x"), ([[0.0, 1], [-1, 0]], "x"), ([[0.0, 3], [1, -1]], "z"), (np.eye(2), "z")],
)
def test_x_is_drawn_where_nothing_grows(V, name, plane):
    run = replace(plane, dynamics=Dynamics(weights=Weights(V=V)))
    assert make_scene(run).name == name and make_scene(run, frame="z").name == "z"
    assert words(plot(run)).startswith("Tokens x" if name == "x" else "Rescaled tokens z")


# colours, times, limits
# ------------------------------------------------------------------------------------------------


def test_colours_are_the_clusters_at_the_end(plane):
    groups = group_tokens(plane)
    assert groups.labels is not None and 2 <= groups.labels.max() + 1 <= plane.n // 2
    for i in range(plane.n):
        for j in range(plane.n):
            is_near = np.linalg.norm(plane.z[-1, i] - plane.z[-1, j]) < 0.01
            assert (groups.labels[i] == groups.labels[j]) == is_near
    # a leader is a token that is looked at, if only by itself: one a cluster here, and it stays
    # where it was
    leaders = np.flatnonzero(groups.leaders)
    assert sorted(groups.labels[leaders]) == list(range(groups.labels.max() + 1))
    np.testing.assert_allclose(plane.z[-1, leaders], plane.z[0, leaders], atol=0.2)


def test_colours_of_a_mixed_spectrum_look_at_the_unstable_part():
    run = made_run(np.diag([1.5, -0.5]), uniform(20, 2), 6.0)
    groups = group_tokens(run)
    assert "hyperplane" in groups.words and 2 <= groups.labels.max() + 1 <= 3
    forward = replace(run, dynamics=replace(run.dynamics, feedforward=FeedForward()))
    assert "hyperplane" not in group_tokens(forward).words


@pytest.mark.parametrize("V", [np.diag([1.5, -0.5]), np.diag([1.5, 0.5])])
@pytest.mark.parametrize("count", [3, 4])
def test_hyperplanes_are_at_most_three(count, V):
    places = np.column_stack([np.repeat(np.arange(count), 5), np.linspace(-3, 3, 5 * count)])
    groups = group_tokens(
        made_trajectory(
            Dynamics(weights=Weights(V=V)), np.arange(2.0), np.stack([places, places]), "z"
        )
    )
    assert ("hyperplane" in groups.words, groups.labels is None) == (
        (True, False) if count == 3 else (False, True)
    )


def test_the_leaders_of_exp_mean_have_half_of_a_row(plane):
    run = replace(plane, dynamics=replace(plane.dynamics, kernel="exp_mean"))
    np.testing.assert_array_equal(group_tokens(run).leaders, group_tokens(plane).leaders)


def test_scattered_tokens_are_not_called_clusters():
    still = np.broadcast_to(uniform(200, 2), (3, 200, 2))
    run = made_trajectory(
        Dynamics(weights=Weights(V=np.diag([1.0, 0.5]))), np.arange(3.0), still, "z"
    )
    assert group_tokens(run).labels is None


def test_groups_beyond_the_palette_change_the_marker():
    places = np.repeat(np.random.default_rng(0).uniform(-5, 5, (9, 2)), 3, axis=0)
    run = made_trajectory(
        Dynamics(weights=Weights(V=np.eye(2))), np.arange(2.0), np.stack([places, places]), "z"
    )
    groups = group_tokens(run)
    looks = {
        (*colour, marker) for colour, marker in zip(groups.colours, groups.markers, strict=True)
    }
    assert len(looks) == 9
    (lines,) = [a for a in plot(run, "paths").axes[0].collections if isinstance(a, LineCollection)]
    assert (
        len(
            {
                (*colour, str(style))
                for colour, style in zip(lines.get_colors(), lines.get_linestyles(), strict=True)
            }
        )
        == 9
    )


def test_moments_begin_and_end_with_the_run_and_show_the_early_motion(plane):
    chosen = choose_moments(make_scene(plane), None)
    assert (
        chosen[0] == 0 and chosen[-1] == 20 and len(set(chosen)) == 4 and chosen == sorted(chosen)
    )
    assert chosen[1] <= 4  # V = I: nearly all happens in the first fifth
    assert choose_moments(make_scene(plane), [8.0, 0.0, 0.05]) == [20, 0]


def test_limits_are_shared_unless_the_tokens_outgrow_them():
    small, large = np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[-1.0, -100.0], [1.0, 100.0]])
    limits = shared_ranges([small, large])
    np.testing.assert_array_equal(limits[0, 0], limits[1, 0])
    assert limits[0, 1, 1] < 2 and limits[1, 1, 1] > 100
    np.testing.assert_array_equal(
        *shared_ranges([large, small])
    )  # a collapse is seen at the size it had
    assert np.diff(square_ranges(np.array([[0.0, 1.0], [0.0, 2.0]]))).ravel() == pytest.approx(
        [2.0, 2.0]
    )
    np.testing.assert_array_equal(square_ranges(limits[1]), limits[1])


def test_diverging_tokens_get_axes_of_their_own():
    figure = plot(made_run(np.diag([1.0, -1.0]), uniform(10, 2), 5.0))
    heights = [np.diff(axes.get_ylim())[0] for axes in figure.axes]
    assert heights[-1] > 20 * heights[0] and "Axes differ" in words(figure)


@pytest.mark.parametrize("name", ["plane", "space"])
def test_trails_stay_inside_the_panel(name, request):
    run = request.getfixturevalue(name)
    drift = np.concatenate([np.linspace(0, 1e3, 11), np.linspace(1e3, 0, 10)])[
        :, None, None
    ]  # there and back
    run = replace(run, states=run.states * np.linspace(1, 40, 21)[:, None, None] + drift)
    for axes, k in zip(plot(run, times=[0.0, 4.0, 8.0]).axes, (0, 10, 20), strict=True):
        limits = np.array([getattr(axes, f"get_{letter}lim")() for letter in "xyz"[: run.d]])
        trail = run.z[: k + 1].reshape(-1, run.d)
        assert (trail >= limits[:, 0]).all() and (trail <= limits[:, 1]).all()


def test_units_of_ticks_stand_in_the_axis_label():
    assert unit_of(-5, 5) == unit_of(0, 40000) == unit_of(0.001, 0.002) == Unit(0.0, 0)
    assert (
        unit_of(0, 99_999) == unit_of(-0.001, 0) == Unit(0.0, 0)
    )  # five digits before the point, three behind it
    assert unit_of(0, 100_000) == Unit(0.0, 5) and unit_of(0, 0.0009) == Unit(0.0, -4)
    assert unit_of(0, 999, digits=3) == Unit(0.0, 0) and unit_of(0, 1000, digits=3) == Unit(0.0, 3)
    assert unit_of(-2e6, 3e6) == Unit(0.0, 6) and Unit(0.0, 6).add_to("z₁") == "z₁ (×10⁶)"
    assert Unit(0.0, -4).add_to("principal axis 1 (45 %)") == "principal axis 1 (45 %, ×10⁻⁴)"
    assert (
        unit_of(18000.5, 18001.5) == Unit(18001.0, 0)
        and Unit(18001.0, 0).add_to("z₁") == "z₁ − 18001"
    )


@pytest.mark.parametrize(
    "points, ticks, label",
    [
        (uniform(8, 3, 4e6), {"−2", "0", "2"}, " (×10⁶)"),
        (18000 + uniform(8, 3, 0.2), {"0.0"}, " − 18000"),
        (uniform(8, 3, 4e-9), {"−2", "0", "2"}, " (×10⁻⁹)"),
    ],
)
@pytest.mark.parametrize("d, kind", [(2, "tokens"), (3, "tokens"), (2, "paths")])
def test_ticks_are_plain_numbers(points, ticks, label, d, kind):
    states = np.stack([points[:, :d], points[:, :d]])
    run = made_trajectory(Dynamics(weights=Weights(V=np.eye(d))), np.arange(2.0), states, "z")
    figure = plot(run, kind, times=[1.0])
    figure.canvas.draw()
    axis = figure.axes[0].yaxis
    assert not axis.get_offset_text().get_text() and figure.axes[0].get_ylabel().replace(
        "\n", " "
    ).endswith(label)
    assert {tick.get_text() for tick in axis.get_ticklabels()} & ticks


# hyperplanes
# --------------------------------------------------------------------------------------------------


def towards(axes):
    elevation, azimuth = np.deg2rad([axes.elev, axes.azim])
    return np.array(
        [
            np.cos(elevation) * np.cos(azimuth),
            np.cos(elevation) * np.sin(azimuth),
            np.sin(elevation),
        ]
    )


@pytest.mark.parametrize("span", [[1, 1, 1], [1, 2, 50]])
@pytest.mark.parametrize("normal", [[1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 2, 3], [-1, 0.1, 9]])
@pytest.mark.parametrize(
    "gap, low, high",
    [(0.5, STEEPEST_PLANE - 4, STEEPEST_PLANE + 4), (0.01, FLATTEST - 4, FLATTEST + 4)],
)
def test_planes_are_seen_from_the_side_and_not_edge_on(gap, low, high, normal, span):
    limits = np.column_stack([np.zeros(3), span])
    box = np.array(normal, dtype=float) * span  # the box is drawn with equal sides
    levels = box.sum() / 2 + gap * np.linalg.norm(box) * np.array([-0.5, 0.5])
    elevation, azimuth = np.deg2rad(see_planes(np.array(normal, dtype=float), levels, limits))
    direction = [
        np.cos(elevation) * np.cos(azimuth),
        np.cos(elevation) * np.sin(azimuth),
        np.sin(elevation),
    ]
    angle = np.rad2deg(np.arcsin(abs(direction @ box) / np.linalg.norm(box)))
    assert low <= angle <= high and 0 <= np.rad2deg(elevation) <= 45


@pytest.fixture(scope="module")
def planes():
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    return made_run(turn @ np.diag([1.5, 0.03, -0.05]) @ turn.T, uniform(20, 3, 2.0), 6.0)


def drawn_panes(axes):
    """The corners (m, 3) of the panes of hyperplanes."""
    return [
        pane._vec[:3].T if hasattr(pane, "_vec") else pane._faces[0]
        for pane in [a for a in axes.collections if isinstance(a, Poly3DCollection)][1:]
    ]  # the first is the hull


def on_paper(axes, points):
    """Where points (m, 3) are seen, in parts of the box, without the perspective."""
    limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
    parts, ahead = (points - limits.mean(axis=1)) / (limits[:, 1] - limits[:, 0]), towards(axes)
    across = np.cross([0.0, 0.0, 1.0], ahead) / np.linalg.norm(np.cross([0.0, 0.0, 1.0], ahead))
    return parts @ np.column_stack([across, np.cross(ahead, across)])


def test_hyperplanes_in_space_are_panes_that_stand_apart(planes):
    groups = group_tokens(planes)
    figure = plot(planes)
    assert "Panes: the hyperplanes." in words(figure)
    axes = figure.axes[-1]
    limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
    panes = drawn_panes(axes)
    assert len(panes) == groups.labels.max() + 1
    normal = groups.normal * (limits[:, 1] - limits[:, 0])
    seen = on_paper(
        axes,
        limits.mean(axis=1)
        + np.stack([np.zeros(3), groups.normal * (limits[:, 1] - limits[:, 0]) ** 2]),
    )
    across = (seen[1] - seen[0]) / np.linalg.norm(seen[1] - seen[0])
    ranges = []
    for corners, k in zip(panes, range(len(panes)), strict=True):
        level = (planes.z[-1] @ groups.normal)[groups.labels == k].mean()
        np.testing.assert_allclose(corners @ groups.normal, level, rtol=1e-9)
        assert (corners >= limits[:, 0]).all() and (corners <= limits[:, 1]).all()
        places = on_paper(axes, corners)
        thick, long = np.ptp(places @ across), np.linalg.norm(np.ptp(places, axis=0))
        assert thick > 0.1 * long  # a pane, not a line
        ranges.append((places @ across).mean())
    thickest = max(np.ptp(on_paper(axes, corners) @ across) for corners in panes)
    assert np.diff(np.sort(ranges)).min() > 0.5 * thickest  # and none covers another
    assert abs(towards(axes) @ normal) < np.sin(np.deg2rad(30)) * np.linalg.norm(normal)
    assert all(
        len([a for a in early.collections if isinstance(a, Poly3DCollection)]) == 1
        for early in figure.axes[:-1]
    )


def test_a_movie_of_hyperplanes_ends_where_the_figure_is_seen_from(planes):
    figure, show = kinds["tokens"].stage(make_scene(planes), None)
    show(20.0)
    (axes,) = figure.axes
    span = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim()), np.ptp(axes.get_zlim())])
    normal = group_tokens(planes).normal * span
    angle = np.rad2deg(np.arcsin(abs(towards(axes) @ normal) / np.linalg.norm(normal)))
    assert FLATTEST - 4 <= angle <= STEEPEST_PLANE + 4


def test_hyperplanes_in_the_plane_are_dashed_lines_in_the_last_panel():
    run = made_run(np.diag([1.5, -0.5]), uniform(20, 2), 6.0)
    groups, figure = group_tokens(run), plot(run)
    lines = figure.axes[-1].lines
    assert (
        len(lines) == groups.labels.max() + 1
        and not figure.axes[0].lines
        and "Coloured dashes" in words(figure)
    )
    for line, k in zip(lines, range(len(lines)), strict=True):
        (x1, _), (x2, _) = line.get_xy1(), line.get_xy2()
        assert x1 == pytest.approx(x2) == pytest.approx(run.z[-1, groups.labels == k, 0].mean())
    assert not plot(run, times=[0.0]).axes[0].lines and not plot(run, "pca").axes[-1].lines
    assert not plot(run, frame="x").axes[-1].lines


def test_planes_cut_boxes_in_polygons():
    box = np.array([[0.0, 1], [0, 2], [0, 3]])
    assert len(plane_in_box(np.array([1.0, 0, 0]), 0.5, box)) == 4
    assert len(plane_in_box(np.array([1.0, 1 / 2, 1 / 3]), 0.5, box)) == 3
    assert len(plane_in_box(np.array([1.0, 1 / 2, 1 / 3]), 1.5, box)) == 6
    assert len(plane_in_box(np.array([1.0, 0, 0]), 2.0, box)) == 0


# degenerate data
# --------------------------------------------------------------------------------------------------

FLAT_SETS = {
    "one": np.ones((1, 3)),
    "two": np.array([[0.0, 0, 0], [1, 2, 3]]),
    "three": np.eye(3),
    "equal": np.ones((6, 3)),
    "zero": np.zeros((6, 3)),
    "collinear": np.linspace(-1, 1, 7)[:, None] * np.array([1.0, 2.0, 3.0]),
    "on an axis": np.linspace(-1, 1, 7)[:, None] * np.array([1.0, 0.0, 0.0]),
    "coplanar": np.column_stack([uniform(8, 2), np.zeros(8)]),
    "cube": np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T.astype(float),
    "tiny": uniform(8, 3, 1e-200),
    "far": 1e8 + uniform(8, 3, 1e-3),
    "huge": uniform(8, 3, 1e150),
}


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("name", FLAT_SETS)
def test_degenerate_tokens_are_drawn(name, d):
    points = FLAT_SETS[name][:, :d]
    run = made_trajectory(
        Dynamics(weights=Weights(V=np.zeros((d, d)))),
        np.arange(2.0),
        np.stack([points, points]),
        "z",
    )
    figure = plot(run, times=[1.0])
    figure.savefig(io.BytesIO(), dpi=20)
    np.testing.assert_array_equal(drawn_tokens(figure.axes[0], len(points)), sorted_rows(points))
    limits = [figure.axes[0].get_xlim(), figure.axes[0].get_ylim()]
    assert all(np.isfinite(limit).all() and limit[0] < limit[1] for limit in limits)


def test_outlines_of_flat_sets():
    assert len(outline(FLAT_SETS["cube"]).edges) == 12
    assert len(outline(FLAT_SETS["cube"][:, :2]).ring) == 4
    coplanar = outline(FLAT_SETS["coplanar"])
    assert len(coplanar.faces) == 1 and len(coplanar.edges) == len(coplanar.faces[0])
    assert (
        len(outline(FLAT_SETS["collinear"]).edges) == 1
        and not outline(FLAT_SETS["collinear"]).faces
    )
    assert len(outline(FLAT_SETS["one"]).edges) == 0


def test_a_run_of_one_saved_time_is_one_panel(space):
    run = replace(
        space, times=space.times[:1], states=space.states[:1], log_scale=space.log_scale[:1]
    )
    assert len(plot(run).axes) == 1
    for kind in kinds:
        plot(observing(run), kind).savefig(io.BytesIO(), dpi=20)


# saving
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(kinds))
def test_every_kind_saves(kind, space, tmp_path):
    figure = plot(observing(space), kind)
    assert isinstance(figure, Figure)
    for suffix, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        file = tmp_path / f"a.{suffix}"
        figure.savefig(file, dpi=30)
        assert file.read_bytes().startswith(magic)


@pytest.mark.parametrize("times", [[8.0], [0.0, 8.0], [0.0, 0.8, 8.0], None])
@pytest.mark.parametrize("name", ["plane", "space"])
def test_no_label_is_cut(name, times, request):
    figure = plot(request.getfixturevalue(name), times=times)
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for axes in figure.axes:
        labels = [
            axes.xaxis.label,
            axes.yaxis.label,
            axes.title,
            *([axes.zaxis.label] if axes.name == "3d" else []),
        ]
        for box in (label.get_window_extent() for label in labels if label.get_text()):
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height


def test_names_are_checked_before_anything_is_drawn(plane, tmp_path):
    for check, name in (
        (check_figure_name, "a.png"),
        (check_figure_name, "a.PDF"),
        (check_movie_name, "a.mp4"),
    ):
        assert check(str(tmp_path / name)) == tmp_path / name
    figure = plot(plane)
    (tmp_path / "folder.png").mkdir()
    refused = {
        "a.xyz": ValueError,
        "a": ValueError,
        "no/a.png": FileNotFoundError,
        "folder.png": IsADirectoryError,
    }
    for name, error in refused.items():
        with pytest.raises(error) as checked:
            check_figure_name(tmp_path / name)
        with pytest.raises(error) as saved:
            figure.savefig(tmp_path / name)
        assert str(checked.value) == str(saved.value)
    with pytest.raises(ValueError, match=r"must end in .png, .pdf or .svg .* got 'a.xyz'"):
        check_figure_name("a.xyz")
    for name, error in (("a.png", ValueError), ("no/a.gif", FileNotFoundError)):
        with pytest.raises(error) as checked:
            check_movie_name(tmp_path / name)
        with pytest.raises(error) as saved:
            movie(plane, tmp_path / name)
        assert str(checked.value) == str(saved.value)
    figure.savefig(
        tmp_path / "plain", format="png", dpi=20
    )  # a format that is named needs no suffix
    assert (tmp_path / "plain").read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_takes_no_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for check, name in ((check_figure_name, "a.png"), (check_movie_name, "a.gif")):
        with pytest.raises(PermissionError, match="cannot be written to"):
            check(tmp_path / name)


def test_a_figure_shows_itself_and_leaves_no_trace(plane):
    before = dict(matplotlib.rcParams)
    assert plot(plane)._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


def test_no_pyplot_and_no_display_are_needed():
    code = (
        "import sys, attnlab.render; assert 'matplotlib.pyplot' not in sys.modules; import"
        " attnlab.render.kinds.tokens"
    )
    environment = {
        key: value for key, value in os.environ.items() if key not in ("DISPLAY", "MPLBACKEND")
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# errors
# --------------------------------------------------------------------------------------------------


def test_what_cannot_be_drawn_is_refused_with_a_sentence(plane, high, line, batch):
    with pytest.raises(TypeError, match="plot draws a Trajectory.*got int"):
        plot(3)
    with pytest.raises(UnknownName, match="Unknown kind of figure 'tokns'. Did you mean 'tokens'"):
        plot(plane, "tokns")
    with pytest.raises(
        ValueError, match="2 or 3 coordinates, got d = 7. Use kind='pca' or 'paths'"
    ):
        plot(high, "tokens")
    with pytest.raises(ValueError, match="got d = 1. Use kind='paths'"):
        plot(line, "pca")
    with pytest.raises(ValueError, match="0 to 2, got member = 3"):
        plot(batch, member=3)
    with pytest.raises(ValueError, match="single run, number 0, got member = 1"):
        plot(plane, member=1)
    with pytest.raises(ValueError, match="from 0 to 8, got 9"):
        plot(plane, times=[0.0, 9.0])
    with pytest.raises(ValueError, match="one time or a list of times, got 'late'"):
        plot(plane, times="late")
    with pytest.raises(ValueError, match=r"needs a run with observables.*observe=\["):
        plot(plane, "observed")
    with pytest.raises(UnknownName, match="Unknown kind of figure 'diameter'"):
        plot(plane, "diameter")
    with pytest.raises(ValueError, match="frame must be"):
        plot(plane, frame="w")


def test_a_member_of_a_batch_is_named_and_cut_where_it_stopped(batch):
    figure = plot(batch, member=1)
    assert "member 1 of 0 to 2" in words(figure) and "stopped early (stalled)" in words(figure)
    np.testing.assert_array_equal(
        drawn_tokens(figure.axes[-1], 20), sorted_rows(batch.states[1, 14])
    )
    with pytest.raises(ValueError, match="at least one saved time"):
        plot(replace(batch, states=np.full_like(batch.states, np.nan)))


# movies
# --------------------------------------------------------------------------------------------------


MOVIES = [
    ("tokens", "space"),
    ("tokens", "plane"),
    ("pca", "high"),
    ("attention", "plane"),
    ("paths", "line"),
    ("paths", "plane"),
    ("observed", "plane"),
]


@pytest.mark.parametrize("kind, name", MOVIES)
def test_gif_of_every_kind(kind, name, request, tmp_path):
    file = movie(
        observing(request.getfixturevalue(name)), tmp_path / "a.gif", frames=5, kind=kind, dpi=40
    )
    with Image.open(file) as image:
        assert image.format == "GIF" and image.n_frames == 5 and image.info["duration"] == 50
    assert os.listdir(tmp_path) == ["a.gif"]


def test_mp4_plays_everywhere(plane, tmp_path):
    import imageio_ffmpeg

    file = movie(plane, tmp_path / "a.mp4", frames=3, dpi=41)  # 205 x 221 pixels: both are odd
    report = subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(file)], capture_output=True, text=True
    ).stderr
    assert "h264" in report and "yuv420p" in report and "206x222" in report


def test_mp4_has_the_frames_asked_for(space, tmp_path):
    import imageio_ffmpeg

    file = movie(space, str(tmp_path / "a.mp4"), frames=5, fps=10, dpi=40)
    assert file.read_bytes()[4:8] == b"ftyp"
    assert imageio_ffmpeg.count_frames_and_secs(str(file)) == (5, pytest.approx(0.5, abs=0.01))
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_one_drawing_makes_both_kinds_of_movie(space, tmp_path):
    import imageio_ffmpeg

    heard = []
    names = [tmp_path / "a.gif", tmp_path / "a.mp4"]
    files = movie(
        space, names, frames=4, dpi=40, progress=lambda fraction, doing: heard.append(fraction)
    )
    assert files == names and sorted(os.listdir(tmp_path)) == ["a.gif", "a.mp4"]
    assert imageio_ffmpeg.count_frames_and_secs(str(files[1]))[0] == 4 and heard == [
        0.0,
        0.25,
        0.5,
        0.75,
        1.0,
        1.0,
    ]
    with Image.open(files[0]) as image:
        assert image.n_frames == 4
    with pytest.raises(ValueError, match="at least one file"):
        movie(space, [])


def test_frames_are_saved_times_or_lie_between_them(plane):
    scene = make_scene(plane)
    assert set(even_positions(21, 5)) <= set(range(21)) and even_positions(21, 5)[-1] == 20
    assert len(even_positions(21, 41)) == 41 and len(scene.times) == 21
    np.testing.assert_allclose(scene.at(0.5), 0.5 * (plane.z[0] + plane.z[1]))
    sphere = make_scene(made_sphere_run(4, 3))
    np.testing.assert_allclose(np.linalg.norm(sphere.at(1.5), axis=-1), 1.0)


def test_a_stage_moves_its_artists(space):
    scene = make_scene(space)
    figure, show = kinds["tokens"].stage(scene, None)
    (axes,) = figure.axes
    show(0.0)
    limits, azimuth = axes.get_xlim(), axes.azim
    artists = len(axes.collections)
    show(12.5)
    np.testing.assert_array_equal(drawn_tokens(axes, space.n), sorted_rows(scene.at(12.5)))
    assert axes.get_title() == "t = 5.00" and axes.get_xlim() == limits
    assert axes.azim != azimuth and len(axes.collections) == artists


@pytest.mark.parametrize("suffix, writer", [("gif", "GifSink"), ("mp4", "Mp4Sink")])
@pytest.mark.parametrize(
    "problem, message",
    [(KeyboardInterrupt, "Ctrl-C"), (RuntimeError, "no room"), (BrokenPipeError, "disk full")],
)
def test_a_failed_movie_leaves_the_old_file_and_nothing_else(
    suffix, writer, problem, message, plane, tmp_path, monkeypatch
):
    file = tmp_path / f"a.{suffix}"
    file.write_bytes(b"old")

    def fail(self, picture):
        raise problem(message)

    monkeypatch.setattr(f"attnlab.render.movies.{writer}.add", fail)
    with pytest.raises(OSError if problem is BrokenPipeError else problem, match=message):
        movie(plane, file, frames=3, dpi=40)
    assert file.read_bytes() == b"old" and os.listdir(tmp_path) == [file.name]


def test_movies_that_cannot_be_written_are_refused_with_a_sentence(plane, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"must end in .gif or .mp4, got 'a.avi'"):
        movie(plane, tmp_path / "a.avi")
    with pytest.raises(FileNotFoundError, match="does not exist. Create it"):
        movie(plane, tmp_path / "nowhere" / "a.gif")
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        movie(plane, tmp_path / "folder.gif")
    for options in ({"frames": 0}, {"frames": 2.5}, {"fps": 0}, {"dpi": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
            movie(plane, tmp_path / "a.gif", **options)
    with pytest.raises(TypeError, match="movie draws a Trajectory"):
        movie(None, tmp_path / "a.gif")

    def refuse(self, *args, **options):
        raise PermissionError(13, "Permission denied")

    # the tests may run as root, whom no folder refuses
    monkeypatch.setattr("attnlab.files.os.open", refuse)
    with pytest.raises(
        OSError, match=r"a.gif cannot be written \(Permission denied\): choose another folder"
    ):
        movie(plane, tmp_path / "a.gif")


def test_progress_shows_a_bar(plane, tmp_path, capsys):
    movie(plane, tmp_path / "a.gif", frames=2, dpi=30, progress=True)
    assert (tmp_path / "a.gif").exists()
    capsys.readouterr()
    movie(plane, tmp_path / "a.gif", frames=2, dpi=30)
    assert capsys.readouterr() == ("", "")
