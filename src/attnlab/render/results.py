"""How results of trained models are drawn and filmed: one Picture per kind of result.

To add one, append a Picture. `plot`, `movie` and `attnlab plot` find it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from attnlab.models.checkpoints.model import Model
from attnlab.models.studies.flows import Flow
from attnlab.models.studies.sentences import one_sentence
from attnlab.models.studies.spectra_table import spectra
from attnlab.registry import unknown_name
from attnlab.render.comparison_figure import draw_comparison
from attnlab.render.flow_figure import draw_flow
from attnlab.render.kinds import Stage
from attnlab.render.paper import Paper
from attnlab.render.result_movies import (
    early_positions,
    stage_flow,
    stage_iteration,
    stage_sentence,
)
from attnlab.render.sentence_figure import draw_iteration, draw_sentence
from attnlab.render.sentence_planes import draw_words
from attnlab.render.spectra_figure import draw_verdict_map
from attnlab.render.survey_figure import draw_survey

Draw = Callable[[Any, Paper], Figure]


def even_positions(steps: int, frames: int) -> np.ndarray:
    """The position of every frame: numbers of steps, or between them where there are fewer of them
    than frames.
    """
    even = np.linspace(0, steps - 1, frames)
    return np.rint(even) if steps >= frames else even


@dataclass(frozen=True)
class Picture:
    """The figures and the movie of a kind of result.

    title      its name in messages
    is_one     thing -> bool: whether it is a result of this kind
    kinds      {name: (thing, paper) -> Figure}: its figures, the usual one first; empty: none
    member     (thing, number) -> one of several results in it, which is drawn; None where it is one
    stage      thing -> (figure, show): the movie; None where nothing moves
    steps      thing -> the number of steps that the movie goes through
    positions  (steps, frames) -> the step of each frame
    no_movie   what to do instead of filming it
    no_figure  what to do instead of drawing it
    """

    title: str
    is_one: Callable[[Any], bool]
    kinds: Mapping[str, Draw]
    stage: Callable[[Any], Stage] | None = None
    steps: Callable[[Any], int] = lambda thing: 1
    positions: Callable[[int, int], np.ndarray] = even_positions
    no_movie: str = ""
    no_figure: str = ""
    member: Callable[[Any, int], Any] | None = None

    def choose(self, thing: Any, member: int) -> Any:
        """Return the thing, or one of several in it."""
        if self.member is not None:
            return self.member(thing, member)
        if member:
            raise ValueError(f"member chooses one of several, and {self.title} is one. Remove it.")
        return thing

    def draw(self, thing: Any, kind: str | None, paper: Paper) -> Figure:
        """Return a figure of the thing, the usual one if kind is None."""
        if kind is not None and kind not in self.kinds:
            raise unknown_name(f"kind of figure of {self.title}", kind, self.kinds)
        return self.kinds[kind or next(iter(self.kinds))](thing, paper)


def _is_dataset(kind: str) -> Callable[[Any], bool]:
    return lambda thing: hasattr(thing, "data_vars") and thing.attrs.get("kind") == kind


def _is_comparison(thing: Any) -> bool:
    """Whether it is the table of a comparison."""
    return {"layer", "head", "value_change"} <= set(getattr(thing, "columns", ()))


def _is_table_of_result(thing: Any) -> bool:
    """Whether it is a table of a survey, or another one that al.models.table made."""
    kind = str(getattr(thing, "attrs", {}).get("kind", ""))
    is_survey = {"number", "layer", "head", "mean"} <= set(getattr(thing, "columns", ()))
    return is_survey or hasattr(thing, "columns") and kind.endswith(" table")


def _is_spectra(thing: Any) -> bool:
    """Whether it is a table with one row per head."""
    return {"layer", "head", "verdict"} <= set(getattr(thing, "columns", ()))


PICTURES = (
    Picture(
        title="a Flow",
        is_one=lambda thing: isinstance(thing, Flow),
        kinds={"flow": draw_flow},
        stage=stage_flow,
        steps=lambda flow: flow.data.sizes["time"],
    ),
    Picture(
        title="a sentence",
        is_one=_is_dataset("sentence"),
        kinds={"layers": draw_sentence, "words": draw_words},
        stage=stage_sentence,
        steps=lambda data: data.attrs["layers"] + 1,
    ),
    Picture(
        title="several sentences",
        is_one=_is_dataset("sentences"),
        kinds={"layers": draw_sentence, "words": draw_words},
        stage=stage_sentence,
        steps=lambda data: data.attrs["layers"] + 1,
        member=one_sentence,
    ),
    Picture(
        title="a repeated layer",
        is_one=_is_dataset("iteration"),
        kinds={"iteration": draw_iteration},
        stage=stage_iteration,
        steps=lambda data: data.sizes["step"],
        positions=early_positions,
    ),
    Picture(
        title="a survey",
        is_one=_is_dataset("survey"),
        kinds={"sinks": draw_survey},
        no_movie="A survey has no time axis. Film a sentence: al.models.sentence(model, text).",
    ),
    Picture(
        title="the table of a result",
        is_one=_is_table_of_result,
        kinds={},
        no_figure="plot(data) draws the result that the table is made of.",
        no_movie="A table has no time axis. Film a sentence: al.models.sentence(model, text).",
    ),
    Picture(
        title="the table of a comparison",
        is_one=_is_comparison,
        kinds={"heads": draw_comparison},
        no_movie="A table has no time axis. Film a sentence: al.models.sentence(model, text).",
    ),
    Picture(
        title="a table of heads",
        is_one=_is_spectra,
        kinds={"map": draw_verdict_map},
        no_movie=(
            "A table of heads has no time axis. Film a flow of one of them:"
            " al.movie(al.models.flow(model, layer, head), path)."
        ),
    ),
    *(
        Picture(
            title=title,
            is_one=_is_dataset(kind),
            kinds={},
            no_figure="al.models.sentence(model, texts) measures the texts: plot that.",
            no_movie="al.models.sentence(model, texts) measures the texts: film that.",
        )
        for title, kind in (
            ("the stream of several texts", "texts"),
            ("the tokens of several texts", "tokens"),
        )
    ),
    Picture(
        title="a Model",
        is_one=lambda thing: isinstance(thing, Model),
        kinds={
            "map": lambda model, paper: draw_verdict_map(spectra(model), paper),
        },
    ),
)


def picture_of(thing: Any) -> Picture | None:
    """Return the Picture of a result of a trained model, or None."""
    return next((picture for picture in PICTURES if picture.is_one(thing)), None)
