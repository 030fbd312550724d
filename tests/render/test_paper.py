"""Figures for papers: they fit a column, nothing is cut or too small, titles say what the run is,
and .pgf is literal.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

import attnlab as al
import tiny_models
from attnlab.render.about import describe_run, describe_values
from attnlab.render.kinds import kinds
from attnlab.render.moments import choose_moments
from attnlab.render.plots import plot
from attnlab.render.scene import make_scene
from attnlab.render.tex import tex_program, to_tex, write_pgf
from command_line import attnlab, refused
from figure_texts import faults

COLUMN = 3.4
needs_tex = pytest.mark.skipif(tex_program() is None, reason="TeX is not installed")


def made_run(
    d: int, heads: int = 1, n: int = 14, saves: int = 12, observe: tuple[str, ...] = ()
) -> al.Trajectory:
    rng = np.random.default_rng(d)
    one = al.Weights(Q=np.eye(d), K=np.eye(d), V=np.eye(d))
    many = al.Weights(
        Q=rng.normal(size=(heads, d, d)),
        K=rng.normal(size=(heads, d, d)),
        V=rng.normal(size=(heads, d, d)) / d,
    )
    weights = one if heads == 1 else many
    return al.simulate(
        weights, rng.uniform(-1, 1, (n, d)), t_end=3.0, saves=saves, observe=list(observe)
    )


@pytest.fixture(
    scope="module",
    params=[(1, 1), (2, 1), (3, 1), (2, 3), (7, 2)],
    ids=lambda shape: f"d{shape[0]}-heads{shape[1]}",
)
def run(request) -> al.Trajectory:
    return made_run(*request.param, observe=("diameter", "attention_rank"))


@pytest.mark.parametrize("kind", kinds)
def test_every_kind_fits_a_column(run, kind):
    scene = make_scene(run)
    if kinds[kind].objection(scene):
        pytest.skip("this kind cannot show this run, and says so")
    figure = plot(run, kind, width=COLUMN, title=False)
    assert figure.get_size_inches()[0] == pytest.approx(COLUMN) and faults(figure) == []
    assert figure.get_suptitle() == "" and figure.get_supxlabel() == ""
    for word in ("β = 1", f"n = {run.n}", f"d = {run.d}", "V"):
        assert word in " ".join(figure.caption.split())


@pytest.mark.parametrize("width", [2.5, 5.0, 7.2])
def test_titles_are_broken_and_never_cut(run, width):
    figure = plot(run, width=width)
    assert figure.get_size_inches()[0] == pytest.approx(width) and faults(figure) == []
    assert " ".join(figure.get_suptitle().split()) in " ".join(figure.caption.split())


@pytest.mark.parametrize("width", [0, 2.4, 41, float("nan"), "3.4", True])
def test_a_width_that_is_none_is_refused(run, width):
    with pytest.raises(
        ValueError, match="width must be the width of the figure in inches, from 2.5 to 40"
    ):
        plot(run, width=width)


def test_limits_verdicts_and_flows_fit_a_column():
    run = made_run(2)
    state, raw = tiny_models.bert()
    model = al.models.load(state, config=raw)
    flow = al.models.flow(model, ids=[3, 1, 4, 1, 5], layer=0, head=1, t_end=1.0)
    for thing in (
        al.limit(run),
        al.check(run),
        flow,
        al.models.sentence(model, ids=[3, 1, 4, 1, 5]),
    ):
        figure = plot(thing, width=COLUMN, title=False)
        assert figure.get_size_inches()[0] == pytest.approx(COLUMN) and faults(figure) == [], type(
            thing
        )


def test_what_v_is_called():
    def words(V, **more):
        V = np.array(V, dtype=float)
        return describe_values(
            al.Weights(Q=np.eye(V.shape[-1]), K=np.eye(V.shape[-1]), V=V, **more)
        )

    assert (
        words(np.eye(3)) == "V = I"
        and words(-np.eye(2)) == "V = −I"
        and words(0.5 * np.eye(2)) == "V = 0.5 I"
    )
    assert (
        words(np.zeros((2, 2))) == "V = 0"
        and words([[2.0]]) == "V = 2"
        and words([[1.0]]) == "V = 1"
    )
    assert (
        words(np.diag([1, 1, -0.5])) == "V = diag(1, 1, −0.5)"
        and words([[1, 2], [0, 1]]) == "V = [1 2; 0 1]"
    )
    turn = np.array([[0.0, -2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 3.0]])  # eigenvalues 3 and ± 2i
    assert words(turn) == "V with eigenvalues 3, 0 ± 2i"
    assert (
        words(np.random.default_rng(0).normal(size=(9, 9)), source="hub $x$")
        == r"V 9 × 9 (hub \$x\$)"
    )


def test_the_seed_is_named_where_it_is_known(polytope):
    dynamics = al.resolve(polytope).dynamics
    assert describe_run(dynamics, 5, polytope) == "V = I, β = 1, n = 5, d = 3, seed\u00a00"
    assert describe_run(dynamics, 5) == "V = I, β = 1, n = 5, d = 3"
    two = al.Spec(
        weights={"family": "good_triple", "d": 3, "rng": 7},
        start=dict(polytope.start),
        solve=dict(polytope.solve),
    )
    assert "seeds 0\u00a0(tokens), 7\u00a0(weights)" in describe_run(dynamics, 5, two)


def test_panels_show_the_times_when_most_happens():
    # tokens that stop at t = 1 of 10: times spread by the clock would show three equal panels
    times = np.linspace(0, 10, 101)
    places = (
        np.random.default_rng(0).normal(size=(9, 2)) * np.maximum(1 - times, 0.1)[:, None, None]
    )
    still = al.Dynamics(al.Weights(Q=np.eye(2), K=np.eye(2), V=np.zeros((2, 2))))
    solve = al.Solve(t_end=10.0, times=times)
    run = al.Trajectory(
        still, solve, times, places, log_scale=np.zeros(101), status=al.Status.OK, frame="x"
    )
    chosen = times[choose_moments(make_scene(run), None)]
    assert (
        chosen[0] == 0
        and chosen[-1] == 10
        and (chosen[1:-1] < 1).all()
        and np.diff(chosen).min() > 0.1
    )


def test_eigenvalues_are_those_of_p():
    run = made_run(2)
    panels = [axes for axes in plot(run, "eigenvalues").axes if axes.collections]
    x = run.x[-1]
    P = np.array([[np.exp(x[i] @ x[j]) for j in range(run.n)] for i in range(run.n)])
    P /= P.sum(axis=1, keepdims=True)
    drawn = panels[-1].collections[0].get_offsets()
    expected = np.linalg.eigvals(P)
    for value in expected:
        assert np.abs(drawn[:, 0] + 1j * drawn[:, 1] - value).min() < 1e-8
    assert f"{(np.abs(expected) > 0.99).sum()} on the circle" in panels[-1].get_title()


def test_three_principal_axes_of_a_plane_in_seven_dimensions():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    x0 = rng.uniform(-1, 1, (12, 7)) * (3, 2, 1, 0, 0, 0, 0) @ basis.T  # three dimensions of seven
    run = al.simulate(al.Weights(Q=np.eye(7), K=np.eye(7), V=np.eye(7)), x0, t_end=1.0, saves=5)
    figure = plot(run, "pca3d")
    shares = [
        float(part)
        for part in figure.caption.split("with ")[1].split(" % of")[0].replace(" %", "").split(", ")
    ]
    assert sum(shares) == pytest.approx(100, abs=2) and all(
        axes.name == "3d" for axes in figure.axes
    )


@pytest.mark.parametrize(
    "values, scale",
    [
        (np.exp(-np.linspace(0, 12, 30)), "log"),
        (np.linspace(1, 20, 30), "linear"),
        (np.exp(-np.linspace(0, 12, 30)) - 0.5, "linear"),
    ],
)
def test_observables_ask_for_their_axis(values, scale):
    run = made_run(2, saves=30)
    run = replace(run, observed={"planted": values[: len(run.times)]})
    assert plot(run, "observed").axes[0].get_yscale() == scale


def test_six_clusters_have_six_colours():
    angles = np.arange(6) * np.pi / 3
    corners = 4 * np.column_stack([np.cos(angles), np.sin(angles)])
    x0 = np.concatenate([corners, 0.7 * corners])
    run = al.simulate(al.Weights(Q=np.eye(2), K=np.eye(2), V=np.eye(2)), x0, t_end=8.0, saves=5)
    tokens = plot(run).axes[-1]
    colours = {
        to_hex(colour)
        for dots in tokens.collections
        for colour in dots.get_facecolors()
        if len(dots.get_offsets()) > 1
    }
    assert len(colours - {"#ffffff"}) >= 6


def test_the_command_line_has_width_and_title(workplace):
    said = attnlab("plot", "polytope_2d", "-o", "a.png", "--width", "3.4", "--no-title")
    words = " ".join(said.stdout.replace("\u00a0", " ").split())
    assert "Caption: Rescaled tokens" in words and "V = I, β = 1, n = 20, d = 2, seed 0" in words
    assert "from 2.5 to 40" in refused("plot", "polytope_2d", "-o", "b.png", "--width", "1")
    assert "apply only to figures" in refused("plot", "polytope_2d", "-o", "b.gif", "--width", "3")


def test_without_tex_a_sentence_says_so(workplace, monkeypatch):
    monkeypatch.setenv("PATH", str(workplace))
    with pytest.raises(
        ValueError,
        match=r"A \.pgf figure needs TeX: pdflatex, xelatex or lualatex must be on the PATH",
    ):
        plot(made_run(2)).savefig("a.pgf")
    assert not list(workplace.iterdir())


def test_texts_are_literal_in_tex():
    assert (
        to_tex(r"\input{a} 5 % of $ & #_^~", False)
        == r"\textbackslash{}input\{a\} 5 \% of \$ \& \#\_\textasciicircum{}\textasciitilde{}"
    )
    assert to_tex(r"weight $P_{ij}$ of a\$b", True) == r"weight $P_{ij}$ of a\$b"
    assert to_tex("β ≥ 1, 漢", False).count(r"\ensuremath") == 2 and "漢" not in to_tex("漢", False)


@needs_tex
def test_a_pgf_figure_is_read_by_tex(workplace):
    figure = plot(made_run(2), width=COLUMN)
    figure.axes[0].set_title(r"\input{secret} 100 % β_1 $x$ & #")
    figure.savefig("figure.pgf")
    (workplace / "secret.tex").write_text("\\errmessage{read}")
    (workplace / "paper.tex").write_text(
        r"\documentclass{article}\usepackage{pgf}\usepackage[T1]{fontenc}\begin{document}"
        r"\input{figure.pgf}\end{document}"
    )
    done = subprocess.run(
        [tex_program(), "-interaction=batchmode", "-halt-on-error", "paper.tex"],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0 and (workplace / "paper.pdf").stat().st_size > 1000


@needs_tex
def test_a_pgf_figure_is_whole_or_not_there(workplace, monkeypatch):
    figure = plot(made_run(2))
    monkeypatch.setattr("attnlab.render.tex.to_tex", lambda words, has_math: r"\nosuchcommand")
    with pytest.raises(ValueError, match="could not set the texts of the figure"):
        write_pgf(figure, "a.pgf")
    assert not list(workplace.iterdir())
