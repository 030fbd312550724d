"""What is drawn: the data on the artists, the words, the errors. Never pixels; one smoke image a kind."""

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
from attnlab.render import kinds, movie, plot
from attnlab.render.groups import group_tokens
from attnlab.render.hulls import outline
from attnlab.render.limits import shared_limits, squared
from attnlab.render.moments import moments
from attnlab.render.movies import positions
from attnlab.render.scene import make_scene
from attnlab.types import Dynamics, Solve, Status, Trajectory, Weights


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def made_run(V, z0, t_end, saves=21, steps=8):
    """A run by Euler steps in z, so that these tests need no engine: dz_i = V sum_j P_ij (z_j - z_i); V diagonal or symmetric."""
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
    return Trajectory(dynamics=dynamics, solve=solve, times=times, states=states, frame=frame,
                      log_scale=np.zeros((*states.shape[:-3], len(times))), status=status)


def uniform(n, d, size=5.0):
    return np.random.default_rng(1).uniform(-size, size, (n, d))


def made_sphere_run(n, d):
    x = np.random.default_rng(2).normal(size=(4, n, d))
    dynamics = Dynamics(weights=Weights(V=np.eye(d)), geometry="sphere")
    return made_trajectory(dynamics, np.linspace(0, 1, 4), x / np.linalg.norm(x, axis=-1, keepdims=True), "x")


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
    return figure.get_suptitle() + " | " + figure.get_supxlabel()


def drawn_tokens(axes, n):
    """The points of the token scatters of one panel, sorted; the rings of leaders have no face and are left out."""
    parts = []
    for artist in axes.collections:
        if isinstance(artist, PathCollection) and len(artist.get_facecolor()):
            space = isinstance(artist, Path3DCollection)
            parts.append(np.column_stack(artist._offsets3d) if space else np.asarray(artist.get_offsets()))
    points = np.concatenate(parts)
    assert len(points) == n
    return sorted_rows(points)


def sorted_rows(points):
    return points[np.lexsort(points.T)]


# what is drawn ---------------------------------------------------------------------------------------------------------


def test_the_kind_is_chosen_by_dimension(line, plane, space, high):
    assert len([a for a in plot(line).axes if a.images]) == 4                     # paths with attention
    assert [a.name for a in plot(plane).axes] == ["rectilinear"] * 4
    assert [a.name for a in plot(space).axes] == ["3d"] * 4
    assert "principal axis 1" in plot(high).axes[0].get_xlabel()


@pytest.mark.parametrize("name", ["plane", "space"])
def test_tokens_are_drawn_where_z_is(name, request):
    run = request.getfixturevalue(name)
    figure = plot(run, at=[0.0, 0.8, 8.0])
    for axes, t in zip(figure.axes, (0.0, 0.8, 8.0), strict=True):
        k = int(np.argmin(np.abs(run.times - t)))
        np.testing.assert_array_equal(drawn_tokens(axes, run.n), sorted_rows(run.z[k]))
        assert axes.get_title() == f"t = {run.times[k]:.3g}"


def test_the_hull_in_the_plane_is_the_hull_of_the_tokens(plane):
    axes = plot(plane, at=[0.0, 8.0]).axes[1]
    first, now = [patch for patch in axes.patches if isinstance(patch, Polygon)]
    assert first.get_visible() and now.get_visible()
    from scipy.spatial import ConvexHull

    for patch, points in ((first, plane.z[0]), (now, plane.z[-1])):
        corners = points[ConvexHull(points).vertices]
        drawn = patch.get_xy()[:-1]                                                # the polygon closes itself
        assert {tuple(p) for p in drawn} >= {tuple(p) for p in corners}
        x, y = drawn.T
        area = 0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))
        assert area == pytest.approx(ConvexHull(points).volume)                    # so the corners are in order


def test_the_hull_in_space_has_edges_and_faces(space):
    axes = plot(space, at=[0.0]).axes[0]
    edges = outline(space.z[0]).edges
    assert any(isinstance(a, Poly3DCollection) and a.get_visible() for a in axes.collections)
    assert any(isinstance(a, Line3DCollection) and len(a._segments3d) == len(edges) for a in axes.collections)


def test_trails_lead_from_the_start_to_the_tokens(plane):
    axes = plot(plane, at=[0.0, 8.0]).axes[1]
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
    figure = plot(line, at=[0.0, 10.0])
    lines = [a for a in figure.axes if a.get_ylabel() in ("z", "x")]
    assert [a.get_ylabel() for a in lines] == ["z", "x"]
    for axes, values in zip(lines, (line.z, line.x), strict=True):
        segments = axes.collections[0].get_segments()
        np.testing.assert_array_equal(np.array(segments)[..., 1].T, values[..., 0])
    assert lines[0].get_yscale() == "linear" and lines[1].get_yscale() == "symlog"
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
    weights = Weights(Q=np.stack([np.eye(2)] * 3), K=np.stack([np.eye(2)] * 3), V=np.stack([np.eye(2) / 3] * 3))
    run = replace(plane, dynamics=Dynamics(weights=weights))
    figure = plot(run, "attention", at=[0.0, 1.0])
    assert len([a for a in figure.axes if a.images]) == 6 and "heads 0, 1, 2 of 3" in words(figure)
    assert "head 1 of 3" in words(plot(run, "attention", head=1))
    with pytest.raises(ValueError, match="from 0 to 2, got 3"):
        plot(run, "attention", head=3)


def test_pca_keeps_distances_when_two_axes_hold_everything(plane):
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0][:, :2]
    run = made_trajectory(Dynamics(weights=Weights(V=np.eye(5))), plane.times, plane.z @ rotation.T, "z")
    figure = plot(run, at=[0.0])
    drawn = drawn_tokens(figure.axes[0], run.n)
    distances = np.sort(np.linalg.norm(drawn[:, None] - drawn, axis=-1).ravel())
    expected = np.sort(np.linalg.norm(plane.z[0][:, None] - plane.z[0], axis=-1).ravel())
    np.testing.assert_allclose(distances, expected, atol=1e-9)
    shares = [float(label.split("(")[1].split("%")[0]) for label in (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel())]
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
    with pytest.raises(ValueError, match="Euclidean"):
        plot(run, frame="z")


def test_paths_on_the_circle_are_angles():
    run = made_sphere_run(5, 2)
    (axes,) = plot(run, "paths").axes
    assert axes.get_ylabel() == "angle / π"
    angle = axes.collections[0].get_segments()[0][-1, 1] * np.pi
    np.testing.assert_allclose([np.cos(angle), np.sin(angle)], run.x[-1, 0])


def test_frame_x_draws_x(plane):
    axes = plot(plane, frame="x", at=[1.2]).axes[0]
    np.testing.assert_array_equal(drawn_tokens(axes, plane.n), sorted_rows(plane.x[3]))
    assert axes.get_xlabel() == "x₁"


def test_layers_count_layers(plane):
    run = replace(plane, dynamics=Dynamics(weights=Weights(V=np.eye(2)), dt=0.4), frame="x", times=0.4 * np.arange(21))
    assert plot(run, at=[0.8]).axes[0].get_title() == "layer 2"


# colours, times, limits ------------------------------------------------------------------------------------------------


def test_colours_are_the_clusters_at_the_end(plane):
    groups = group_tokens(plane)
    assert groups.labels is not None and 2 <= groups.labels.max() + 1 <= plane.n // 2
    for i in range(plane.n):
        for j in range(plane.n):
            is_near = np.linalg.norm(plane.z[-1, i] - plane.z[-1, j]) < 0.01
            assert (groups.labels[i] == groups.labels[j]) == is_near
    # a leader is a token that others look at: one a cluster here, and it stays where it was
    leaders = np.flatnonzero(groups.leaders)
    assert len(set(groups.labels[leaders])) == len(leaders) > 0
    np.testing.assert_allclose(plane.z[-1, leaders], plane.z[0, leaders], atol=0.2)


def test_colours_of_a_mixed_spectrum_look_at_the_unstable_part():
    run = made_run(np.diag([1.5, -0.5]), uniform(20, 2), 6.0)
    groups = group_tokens(run)
    assert "hyperplane" in groups.words and 2 <= groups.labels.max() + 1 <= 3


def test_scattered_tokens_are_not_called_clusters():
    still = np.broadcast_to(uniform(200, 2), (3, 200, 2))
    run = made_trajectory(Dynamics(weights=Weights(V=np.diag([1.0, 0.5]))), np.arange(3.0), still, "z")
    assert group_tokens(run).labels is None


def test_groups_beyond_the_palette_change_the_marker():
    places = np.repeat(np.random.default_rng(0).uniform(-5, 5, (9, 2)), 3, axis=0)
    run = made_trajectory(Dynamics(weights=Weights(V=np.eye(2))), np.arange(2.0), np.stack([places, places]), "z")
    groups = group_tokens(run)
    looks = {(*colour, marker) for colour, marker in zip(groups.colours, groups.markers, strict=True)}
    assert len(looks) == 9


def test_moments_begin_and_end_with_the_run_and_show_the_early_motion(plane):
    chosen = moments(make_scene(plane), None)
    assert chosen[0] == 0 and chosen[-1] == 20 and len(set(chosen)) == 4 and chosen == sorted(chosen)
    assert chosen[1] <= 4                                     # V = I: nearly all happens in the first fifth
    assert moments(make_scene(plane), [8.0, 0.0, 0.05]) == [20, 0]


def test_limits_are_shared_unless_the_tokens_outgrow_them():
    small, large = np.array([[-1.0, -1.0], [1.0, 1.0]]), np.array([[-1.0, -100.0], [1.0, 100.0]])
    limits = shared_limits([small, large])
    np.testing.assert_array_equal(limits[0, 0], limits[1, 0])
    assert limits[0, 1, 1] < 2 and limits[1, 1, 1] > 100
    np.testing.assert_array_equal(*shared_limits([large, small]))              # a collapse is seen at the size it had
    assert np.diff(squared(np.array([[0.0, 1.0], [0.0, 2.0]]))).ravel() == pytest.approx([2.0, 2.0])
    np.testing.assert_array_equal(squared(limits[1]), limits[1])


def test_diverging_tokens_get_axes_of_their_own():
    figure = plot(made_run(np.diag([1.0, -1.0]), uniform(10, 2), 5.0))
    heights = [np.diff(axes.get_ylim())[0] for axes in figure.axes]
    assert heights[-1] > 20 * heights[0] and "Axes differ" in words(figure)


# degenerate data -------------------------------------------------------------------------------------------------------

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
    run = made_trajectory(Dynamics(weights=Weights(V=np.zeros((d, d)))), np.arange(2.0), np.stack([points, points]), "z")
    figure = plot(run, at=[1.0])
    figure.savefig(io.BytesIO(), dpi=20)
    np.testing.assert_array_equal(drawn_tokens(figure.axes[0], len(points)), sorted_rows(points))
    limits = [figure.axes[0].get_xlim(), figure.axes[0].get_ylim()]
    assert all(np.isfinite(limit).all() and limit[0] < limit[1] for limit in limits)


def test_outlines_of_flat_sets():
    assert len(outline(FLAT_SETS["cube"]).edges) == 12
    assert len(outline(FLAT_SETS["cube"][:, :2]).ring) == 4
    coplanar = outline(FLAT_SETS["coplanar"])
    assert len(coplanar.faces) == 1 and len(coplanar.edges) == len(coplanar.faces[0])
    assert len(outline(FLAT_SETS["collinear"]).edges) == 1 and not outline(FLAT_SETS["collinear"]).faces
    assert len(outline(FLAT_SETS["one"]).edges) == 0


def test_a_run_of_one_saved_time_is_one_panel(space):
    run = replace(space, times=space.times[:1], states=space.states[:1], log_scale=space.log_scale[:1])
    assert len(plot(run).axes) == 1
    for kind in kinds:
        plot(run, kind).savefig(io.BytesIO(), dpi=20)


# saving ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(kinds))
def test_every_kind_saves(kind, space, tmp_path):
    figure = plot(space, kind)
    assert isinstance(figure, Figure)
    for suffix, magic in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        file = tmp_path / f"a.{suffix}"
        figure.savefig(file, dpi=30)
        assert file.read_bytes().startswith(magic)


def test_a_figure_shows_itself_and_leaves_no_trace(plane):
    before = dict(matplotlib.rcParams)
    assert plot(plane)._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


def test_no_pyplot_and_no_display_are_needed():
    code = "import sys, attnlab.render; assert 'matplotlib.pyplot' not in sys.modules; import attnlab.render.kinds.tokens"
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "MPLBACKEND")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# errors ----------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_drawn_is_refused_with_a_sentence(plane, high, line, batch):
    with pytest.raises(TypeError, match="plot draws a Trajectory.*got int"):
        plot(3)
    with pytest.raises(UnknownName, match="Unknown kind of figure 'tokns'. Did you mean 'tokens'"):
        plot(plane, "tokns")
    with pytest.raises(ValueError, match="2 or 3 coordinates, got d = 7. Use kind='pca' or 'paths'"):
        plot(high, "tokens")
    with pytest.raises(ValueError, match="got d = 1. Use kind='paths'"):
        plot(line, "pca")
    with pytest.raises(ValueError, match="0 to 2, got member = 3"):
        plot(batch, member=3)
    with pytest.raises(ValueError, match="single run, number 0, got member = 1"):
        plot(plane, member=1)
    with pytest.raises(ValueError, match="from 0 to 8, got 9"):
        plot(plane, at=[0.0, 9.0])
    with pytest.raises(ValueError, match="one time or a list of times, got 'late'"):
        plot(plane, at="late")
    with pytest.raises(ValueError, match="frame must be"):
        plot(plane, frame="w")


def test_a_member_of_a_batch_is_named_and_cut_where_it_stopped(batch):
    figure = plot(batch, member=1)
    assert "member 1 of 0 to 2" in words(figure) and "stopped early (stalled)" in words(figure)
    np.testing.assert_array_equal(drawn_tokens(figure.axes[-1], 20), sorted_rows(batch.states[1, 14]))
    with pytest.raises(ValueError, match="at least one saved time"):
        plot(replace(batch, states=np.full_like(batch.states, np.nan)))


# movies ----------------------------------------------------------------------------------------------------------------


MOVIES = [("tokens", "space"), ("tokens", "plane"), ("pca", "high"), ("attention", "plane"), ("paths", "line"),
          ("paths", "plane")]


@pytest.mark.parametrize("kind, name", MOVIES)
def test_gif_of_every_kind(kind, name, request, tmp_path):
    file = movie(request.getfixturevalue(name), tmp_path / "a.gif", frames=5, kind=kind, dpi=40)
    with Image.open(file) as image:
        assert image.format == "GIF" and image.n_frames == 5 and image.info["duration"] == 50
    assert os.listdir(tmp_path) == ["a.gif"]


def test_mp4_has_the_frames_asked_for(space, tmp_path):
    import imageio_ffmpeg

    file = movie(space, str(tmp_path / "a.mp4"), frames=5, fps=10, dpi=40)
    assert file.read_bytes()[4:8] == b"ftyp"
    assert imageio_ffmpeg.count_frames_and_secs(str(file)) == (5, pytest.approx(0.5, abs=0.01))
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_frames_are_saved_times_or_lie_between_them(plane):
    scene = make_scene(plane)
    assert set(positions(scene, 5)) <= set(range(21)) and positions(scene, 5)[-1] == 20
    assert len(positions(scene, 41)) == 41
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


@pytest.mark.parametrize("suffix, writer", [("gif", "PillowWriter"), ("mp4", "FFMpegWriter")])
@pytest.mark.parametrize(
    "problem, message", [(KeyboardInterrupt, "Ctrl-C"), (RuntimeError, "no room"), (BrokenPipeError, "disk full")])
def test_a_failed_movie_leaves_the_old_file_and_nothing_else(suffix, writer, problem, message, plane, tmp_path, monkeypatch):
    file = tmp_path / f"a.{suffix}"
    file.write_bytes(b"old")

    def fail(self, **options):
        raise problem(message)

    monkeypatch.setattr(f"matplotlib.animation.{writer}.grab_frame", fail)
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
    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(PermissionError, match="cannot be written to .Permission denied."):
        movie(plane, tmp_path / "a.gif")


def test_progress_shows_a_bar(plane, tmp_path, capsys):
    movie(plane, tmp_path / "a.gif", frames=2, dpi=30, progress=True)
    assert (tmp_path / "a.gif").exists()
    capsys.readouterr()
    movie(plane, tmp_path / "a.gif", frames=2, dpi=30)
    assert capsys.readouterr() == ("", "")
