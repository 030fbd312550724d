"""Figures and movies of runs, figures of limits and verdicts: the only place that knows matplotlib.

    plot(run), plot(limit), plot(check(run)) -> Figure      movie(run, "run.mp4")

    plots.py, movies.py   the two verbs;  names.py: whether a file can be written, asked before a long run
    scene.py              one run made ready for drawing;  groups.py: colours;  moments.py: times;  ranges.py, ticks.py: axes;
                          hulls.py
    panels/               one picture inside a figure, which can move
    kinds/                one file per kind of figure, made of panels
    limit_figure.py       the figure of a Limit;  limit_view.py: a Limit made ready for drawing
    verdict_figure.py     the figure of a list of verdicts
    spectra_figure.py, sentence_figure.py, flow_figure.py    of trained models;  word_labels.py: words that do not collide
    heat_maps.py          matrices and strips as colours
    page.py, dossier.py, tour_page.py    pages of HTML: the experiments, a model, the tour
    style.py              the house style

To add a kind of figure: one new file in kinds/.
"""

from typing import TYPE_CHECKING

from attnlab.registry import import_name
from attnlab.render.kinds import kinds

if TYPE_CHECKING:
    from attnlab.render.movies import movie as movie
    from attnlab.render.names import check_figure_name as check_figure_name
    from attnlab.render.names import check_movie_name as check_movie_name
    from attnlab.render.plots import plot as plot

_HOME = {
    "check_figure_name": "attnlab.render.names",
    "check_movie_name": "attnlab.render.names",
    "movie": "attnlab.render.movies",
    "plot": "attnlab.render.plots",
}
__all__ = ["check_figure_name", "check_movie_name", "kinds", "movie", "plot"]


if not TYPE_CHECKING:  # which sees the imports above, and then knows the types

    def __getattr__(name: str) -> object:
        return import_name(__name__, _HOME, name)
