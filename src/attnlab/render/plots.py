"""plot: draw any result that has a figure. Only this file looks at the type of its argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from attnlab.displayed import say_instead
from attnlab.render.kinds import Kind, kinds, suitable
from attnlab.render.limit_figure import draw_limit
from attnlab.render.moments import choose_moments
from attnlab.render.paper import Paper
from attnlab.render.results import Picture, picture_of
from attnlab.render.scene import Scene, make_scene
from attnlab.render.style import house_style
from attnlab.render.verdict_figure import draw_verdicts
from attnlab.types import Limit, Trajectory
from attnlab.verdicts import Verdict


def plot(
    thing: Any,
    kind: str | None = None,
    *,
    times: Sequence[float] | float | None = None,
    member: int = 0,
    frame: str | None = None,
    head: int | None = None,
    width: float | None = None,
    title: bool = True,
) -> Figure:
    """Return a matplotlib Figure of a run, a Limit, verdicts, or a result of al.models.

    Save it with `figure.savefig("a.png")`, .pdf or .svg, or .pgf if TeX is installed. It needs
    neither a display nor pyplot.

    Parameters
    ----------
    thing : Trajectory, Limit, verdicts, or a result of al.models
        What to draw. `check` returns verdicts. A list of Limits shows one member. Of al.models it
        takes a Model, a Flow, the tables of `spectra` and `compare`, and the Datasets of `sentence`,
        `iterate` and `survey`.
    kind : str, optional
        "tokens" (points at a few times, for d = 2 and 3), "paths" (coordinates over time), "pca"
        and "pca3d" (two or three principal axes), "attention" (heat maps of P), "eigenvalues" (of
        P, in the complex plane), or "observed" (what `simulate(..., observe=[...])` kept). The
        default is paths for d = 1, tokens for d = 2 and 3, and pca above. A Limit has one kind,
        "limit". A sentence has "layers" (numbers over the layers) and "words" (its tokens in the
        plane). A Model, and the table of its spectra, has "map" (the leading eigenvalue of each
        head).
    times : sequence of float, or float, optional
        The times to show, each moved to the nearest saved one. The default is the first, the last
        and two between them, chosen so that neighbouring panels differ as much as possible.
    member : int, optional
        The member of a batch, or the text of several, counted from 0.
    frame : str, optional
        "z" or "x". The default is z, but x on the sphere and if no eigenvalue of V (summed over
        heads) has a positive real part.
    head : int, optional
        The head whose attention to show. The default is the first few heads.
    width : float, optional
        The width of the figure in inches, such as 3.4 for a column of a paper. Panels then use more
        rows, and letters have at least 7 points. The default depends on the kind.
    title : bool, optional
        False leaves out the headline and the note below. `figure.caption` has their text, for the
        caption of a paper.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0)
    >>> al.plot(run, "paths").savefig("paths.png")
    """
    paper = Paper(width, title)
    if (
        isinstance(thing, list | tuple) and thing and all(isinstance(one, Limit) for one in thing)
    ):  # the limits of a batch
        thing, member = _choose_member(thing, member), 0
    if isinstance(thing, Limit):
        check_limit_options(kind, times=times, member=member or None, frame=frame, head=head)
        with house_style(paper):
            return draw_limit(thing, paper)
    if isinstance(thing, Verdict | list | tuple):
        verdicts = choose_verdicts(thing, member)
        check_run_options(kind=kind, times=times, frame=frame, head=head)
        with house_style(paper):
            return draw_verdicts(verdicts, paper)
    if not isinstance(thing, Trajectory):
        picture = picture_of(thing)
        if picture is None or not picture.kinds:
            raise TypeError(_refusal(thing, picture))
        check_run_options(times=times, frame=frame, head=head)
        return picture.draw(picture.choose(thing, member), kind, paper)
    with house_style(paper):
        scene = make_scene(thing, member, frame, paper)
        chosen = choose_kind(scene, kind)
        return chosen.draw(
            scene, choose_moments(scene, times, chosen.shown, chosen.panels(scene, head)), head
        )


def _refusal(thing: Any, picture: Picture | None) -> str:
    """Say that a thing has no figure, and what to do instead."""
    name = type(thing).__name__
    if picture is not None:
        return f"plot has no figure of {picture.title}. {picture.no_figure}"
    instead = say_instead(thing, "plot")
    if instead:
        return f"plot has no figure of a record {name}. {instead}"
    return (
        "plot draws a Trajectory, as simulate(...) and load(...) return it, a Limit, as limit(...)"
        " does, verdicts, as check(...) does, a Model, or what models.spectra, models.sentence,"
        f" models.iterate, models.flow, models.survey and models.compare return; got {name}."
    )


def choose_kind(scene: Scene, kind: str | None) -> Kind:
    """Return the Kind of this name, or a suitable one. Raise ValueError if it cannot show the
    scene.
    """
    chosen: Kind = kinds[suitable(scene) if kind is None else kind]
    objection = chosen.objection(scene)
    if objection:
        raise ValueError(objection)
    return chosen


def check_limit_options(kind: str | None, **options: Any) -> None:
    """Refuse what only a figure of a run has."""
    if kind not in (None, "limit"):
        raise ValueError(
            f"A Limit has one kind of figure, 'limit', got kind = {kind!r}. Leave kind out, or plot"
            " a run."
        )
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name} applies only to figures of a run, and this is a Limit. Remove it. "
                "To show times, name them when the limit is computed: limit(..., times=[10, 50])."
            )


def choose_verdicts(thing: Any, member: int) -> list[Verdict]:
    """Return the verdicts of one run from a verdict, a list of verdicts, or the list of lists of a
    batch.
    """
    verdicts: list[Any] = [thing] if isinstance(thing, Verdict) else list(thing)
    if verdicts and all(isinstance(one, list | tuple) for one in verdicts):
        verdicts = list(_choose_member(verdicts, member))
    if not verdicts or not all(isinstance(one, Verdict) for one in verdicts):
        raise TypeError(
            "plot draws a list of verdicts, as check(run) returns it; this list holds "
            f"{type(verdicts[0]).__name__ if verdicts else 'nothing'}."
        )
    return verdicts


def _choose_member(batch: Sequence[Any], member: int) -> Any:
    """Return one of the results of a batch."""
    if not 0 <= member < len(batch):
        raise ValueError(
            f"member must be the number of a member of the batch, 0 to {len(batch) - 1}, got"
            f" {member}."
        )
    return batch[member]


def is_drawable(thing: Any) -> bool:
    """Whether plot has a figure for a loaded result."""
    if isinstance(thing, list | tuple):
        return bool(thing) and all(
            isinstance(one, Verdict | Limit) or is_drawable(one) for one in thing
        )
    picture = picture_of(thing)
    return isinstance(thing, Trajectory | Limit | Verdict) or bool(picture and picture.kinds)


def is_filmable(thing: Any) -> bool:
    """Whether movie can film a loaded result."""
    if isinstance(thing, Trajectory):
        return True
    picture = picture_of(thing)
    return picture is not None and picture.stage is not None


def check_run_options(**options: Any) -> None:
    """Refuse what only a figure of a run has."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} applies only to figures of a run. Remove it.")
