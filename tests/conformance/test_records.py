"""Every record and result of `al.models` with each of the verbs plot, movie, save and to_xarray: the
verb works, or it says in a sentence what to do instead. A record that is missing here fails.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pkgutil
import re
from typing import Any

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure
from PIL import Image

import attnlab as al
import tiny_models
from attnlab.displayed import VERBS, Displayed
from attnlab.models.catalog.catalog import known_models
from attnlab.models.checkpoints.forward import Mixed, steps
from attnlab.models.checkpoints.many import batches
from attnlab.models.checkpoints.record import Norm, Rotary
from attnlab.models.checkpoints.tokens import read_tokens
from attnlab.models.studies import dossier as dossiers
from attnlab.models.studies import dossier_findings
from attnlab.models.studies.flow_end import FlowEnd
from attnlab.models.studies.grades import Answer, Stacks
from attnlab.models.studies.head_ends import Start, compare_ends, measure_end
from attnlab.models.studies.head_numbers import reduce_head
from attnlab.models.studies.null import null_of
from figure_texts import faults
from stored import difference

IDS = [3, 1, 4, 1, 5]
TEXTS = [np.array(IDS), np.array(IDS[:3])]
LONGEST = 119
"""Characters of the text of a record."""

DRAWN, STORED, ALL = {"plot"}, {"save", "to_xarray"}, set(VERBS)


@functools.cache
def bert() -> al.models.Model:
    state, raw = tiny_models.bert()
    return al.models.load(state, config=raw)


def reader() -> al.models.Model:
    """A model that reads texts: each word is token 1."""
    state, raw = tiny_models.bert()
    return al.models.load(
        state,
        config=raw,
        tokenizer=lambda text, special=True: ([1] * len(text.split()), text.split()),
    )


@functools.cache
def dossier() -> Any:
    return dossiers.dossier(bert(), work=1e3, budget=2.0)


@functools.cache
def flow() -> al.models.Flow:
    return al.models.flow(bert(), 0, 0, ids=IDS, t_end=0.5, saves=4, limit=False, check=False)


def reduced() -> Any:
    weights = bert().weights(0, 0)
    return reduce_head(weights.Q[0], weights.K[0], weights.V[0][0], weights.V[1][0])


def layer() -> Any:
    return bert().parts.layers[0]


def step() -> Any:
    x = bert().hidden_states(IDS)[0]
    return next(iter(steps(bert().parts, x, np.ones((5, 5), dtype=bool))))


def head_end() -> Any:
    """Where the tokens of one head end, as the study measures it."""
    return measure_end(
        al.Weights(V=np.diag([1.0, -0.5])), np.array([[1.0, 2.0], [2.0, 1.0]]), "full"
    )


RECORDS: dict[str, tuple[Any, set[str]]] = {
    "Model": (bert, DRAWN),
    "Flow": (flow, ALL),
    # parts of a model
    "Config": (lambda: bert().config, set()),
    "Parts": (lambda: bert().parts, set()),
    "Embedding": (lambda: bert().parts.embedding, set()),
    "Layer": (layer, set()),
    "Block": (lambda: layer().attention_block, set()),
    "Attention": (lambda: layer().attention, set()),
    "FeedForward": (lambda: layer().feedforward, set()),
    "Norm": (lambda: Norm("rms", np.ones(3), None, 1e-6), set()),
    "Rotary": (lambda: Rotary(1e4, 4), set()),
    # parts of results
    "Cluster": (lambda: flow().clusters[0], set()),
    "MeasuredHead": (lambda: flow().heads[0], set()),
    "HeadNumbers": (lambda: flow().heads[0].numbers, set()),
    "Dossier": (dossier, set()),
    "ShownFlow": (lambda: dossier().flows[0], set()),
    "Finding": (lambda: dossier_findings.findings(dossier())[0], set()),
    "Reading": (lambda: dossiers.Reading("a text"), set()),
    "Tokens": (lambda: read_tokens(bert(), None, IDS, True), set()),
    "Entry": (lambda: known_models["minilm"], set()),
    "KeptFile": (lambda: known_models["minilm"].files[0], set()),
    "Piece": (lambda: known_models["minilm"].files[0].pieces[0], set()),
    "Step": (step, set()),
    "Reduced": (reduced, set()),
    "Null": (lambda: null_of(4, 2, 2, draws=3), set()),
    "Stacks": (lambda: Stacks(*[al.models.spectra(bert(), null=2)] * 3), set()),
    "FlowEnd": (
        lambda: FlowEnd(
            "group",
            ((0, 1),),
            (0,),
            1.0,
            2.0,
            None,
            None,
            growing=1,
            points=np.ones((1, 1)),
            columns=np.zeros(1, dtype=int),
            error=0.0,
        ),
        set(),
    ),
    "HeadEnd": (head_end, set()),
    "Compared": (lambda: compare_ends([head_end()], [head_end()])[0], set()),
    "Start": (lambda: Start((1, 2)), set()),
    "Mixed": (lambda: Mixed(np.ones((2, 3))), set()),
    "Batch": (lambda: next(iter(batches(bert(), [read_tokens(bert(), None, IDS, True)]))), set()),
    "Answer": (lambda: Answer("right", (), "yes", {}), set()),
}
"""{class: (an example, the verbs that take it)} of every record of models/."""

RESULTS: dict[str, tuple[Any, set[str]]] = {
    "spectra": (lambda: al.models.spectra(bert(), null=5), DRAWN | STORED),
    "sentence": (lambda: al.models.sentence(bert(), ids=IDS, only=["twin"]), ALL),
    "sentence, real stack alone": (lambda: al.models.sentence(bert(), ids=IDS, only=[]), ALL),
    "iterate": (lambda: al.models.iterate(bert(), ids=IDS, times=5), ALL),
    "several sentences": (
        lambda: al.models.sentence(bert(), ids=TEXTS, only=["twin"]),
        ALL,
    ),
    "several texts": (lambda: bert().run(TEXTS, keep=["x", "attention"]), STORED),
    "several hidden states": (lambda: bert().hidden_states(TEXTS), STORED),
    "several tokens": (lambda: reader().tokens(["a cat", "sat"]), STORED),
    "survey": (lambda: al.models.survey(bert(), TEXTS), DRAWN | STORED),
    "intervals": (lambda: al.models.intervals(example("survey")), STORED),
    "comparison": (lambda: al.models.compare(bert(), bert(), texts=TEXTS), DRAWN | STORED),
    "comparison of matrices": (lambda: al.models.compare(bert(), bert(), bert()), DRAWN | STORED),
    "table of a sentence": (lambda: al.models.table(example("sentence")), STORED),
    "table of a flow": (lambda: al.models.table(flow()), STORED),
    "weights of a head": (lambda: bert().weights(0, 1), set()),
    "findings": (lambda: al.models.findings(flow()), set()),
    "hidden states": (lambda: bert().hidden_states(IDS), set()),
}
"""What functions of models/ return that is no record of models/."""

EVERYTHING = RECORDS | RESULTS


@functools.cache
def example(name: str) -> Any:
    return EVERYTHING[name][0]()


RETURNED = {
    "load": "Model",
    "heads": "Model",
    "flow": "Flow",
    "spectra": "spectra",
    "sentence": "sentence",
    "iterate": "iterate",
    "findings": "findings",
    "survey": "survey",
    "intervals": "intervals",
    "compare": "comparison",
    "table": "table of a sentence",
    "dossier": "Dossier",
}
"""{function of al.models: the example above that it returns}."""


def test_what_every_function_returns_is_here():
    functions = {name for name in al.models.__all__ if inspect.isfunction(getattr(al.models, name))}
    assert functions == set(RETURNED) and set(RETURNED.values()) <= set(EVERYTHING)


def test_one_of_several_sentences_is_what_one_text_gives():
    from attnlab.models.studies.sentences import one_sentence

    several = example("several sentences")
    for number, ids in enumerate((IDS, IDS[:3])):
        alone = al.models.sentence(bert(), ids=ids, only=["twin"])
        one = one_sentence(several, number)
        xarray.testing.assert_equal(one, alone)
        assert one.attrs == alone.attrs
    assert al.plot(several, member=1).caption == al.plot(one).caption
    with pytest.raises(ValueError, match="0 to 1, got 2"):
        al.plot(several, member=2)
    with pytest.raises(ValueError, match="a Flow is one. Remove it"):
        al.plot(flow(), member=1)


def record_classes() -> set[str]:
    """Every class of models/ that a user sees as a record."""
    found = set()
    for module in pkgutil.walk_packages(al.models.__path__, "attnlab.models."):
        if module.name.endswith("tokenizer_child"):  # a program, not a module
            continue
        for name, thing in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(thing) and issubclass(thing, Displayed):
                if thing.__module__ == module.name:
                    found.add(name)
    return found


def test_every_record_is_here():
    missing = record_classes() - set(RECORDS)
    assert not missing, (
        f"RECORDS above needs an example of {', '.join(sorted(missing))}, with the verbs out of"
        f" {', '.join(VERBS)} that take it. For the others, set `instead` in the class."
    )
    assert set(RECORDS) <= record_classes()
    for name in RECORDS:
        assert type(example(name)).__name__ == name


def check_plot(thing: Any, folder: Any) -> None:
    for width in (None, 3.4):
        figure = al.plot(thing, width=width)
        assert isinstance(figure, Figure) and figure.caption and faults(figure) == []


def check_movie(thing: Any, folder: Any) -> None:
    with Image.open(al.movie(thing, folder / "a.gif", frames=3, dpi=40)) as image:
        assert image.n_frames == 3
        first = image.convert("RGB").tobytes()
        image.seek(2)
        assert image.convert("RGB").tobytes() != first  # something moves


def check_save(thing: Any, folder: Any) -> None:
    al.save(thing, folder / "a.nc")
    assert difference(thing, al.load(folder / "a.nc")) == ""


def check_to_xarray(thing: Any, folder: Any) -> None:
    data = al.to_xarray(thing)
    assert isinstance(data, xarray.Dataset) and data.sizes
    assert not any(str(axis).startswith("dim_") for axis in data.dims)


CHECKS = {
    "plot": check_plot,
    "movie": check_movie,
    "save": check_save,
    "to_xarray": check_to_xarray,
}
CALLS = {
    "plot": lambda thing, folder: al.plot(thing),
    "movie": lambda thing, folder: al.movie(thing, folder / "a.gif"),
    "save": lambda thing, folder: al.save(thing, folder / "a.nc"),
    "to_xarray": lambda thing, folder: al.to_xarray(thing),
}


@pytest.mark.parametrize("name, verb", list(itertools.product(EVERYTHING, VERBS)))
def test_a_verb_works_or_says_what_to_do(name, verb, tmp_path):
    if verb in EVERYTHING[name][1]:
        CHECKS[verb](example(name), tmp_path)
        return
    with pytest.raises(TypeError) as problem:
        CALLS[verb](example(name), tmp_path)
    said = str(problem.value)
    assert said.endswith(".") and "\n" not in said and len(said) < 420
    assert not list(tmp_path.iterdir())
    thing = example(name)
    if isinstance(thing, Displayed) and type(thing).instead:
        assert thing.instead[verb] in said  # its own words, not the list of everything
    for path in re.findall(r"\bal\.([a-z_]+(?:\.[a-z_]+)?)", said):  # what it names exists
        functools.reduce(getattr, path.split("."), al)


def test_what_to_do_instead_can_be_done():
    """The verbs that `instead` recommends to the owners of records take what they recommend."""
    for name, (_, works) in RECORDS.items():
        own = type(example(name)).instead
        assert set(own) in (set(), ALL, ALL - works), name


@pytest.mark.parametrize("name", EVERYTHING)
def test_texts_of_records_are_short(name):
    thing = example(name)
    if not isinstance(thing, Displayed):
        return
    said = repr(thing)
    assert len(said) <= LONGEST and "\n" not in said and "array([" not in said
    assert said.startswith(f"{type(thing).__name__}(")
    html = thing._repr_html_()
    assert html.startswith("<div") and "array([" not in html and "<pre>" not in html


def test_the_text_of_a_model_names_its_shape():
    assert repr(bert()) == "Model(in memory: bert, d = 24, 4 heads, 3 layers)" or re.fullmatch(
        r"Model\(.+: bert, d = \d+, \d+ heads, \d+ layers\)", repr(bert())
    )


def test_a_movie_takes_the_frame_of_the_figure():
    from attnlab.render.results import picture_of

    def shown(name: str, **options: Any) -> Any:
        thing = example(name)
        figure, show = picture_of(thing).stage(thing)
        show(0.0)
        drawn = al.plot(thing, **options)
        return figure.axes[0], [axes for axes in all_axes(drawn) if axes.name != "3d"]

    def all_axes(figure: Any) -> list[Any]:
        return [axes for part in (figure, *figure.subfigs) for axes in part.axes]

    axes, others = shown("Flow")
    frame = (axes.get_xlim(), axes.get_ylim(), axes.get_xlabel(), axes.get_ylabel())
    assert frame in [
        (one.get_xlim(), one.get_ylim(), one.get_xlabel(), one.get_ylabel()) for one in others
    ]
    axes, others = shown("sentence", kind="words")
    assert {(axes.get_xlim(), axes.get_ylim())} == {(o.get_xlim(), o.get_ylim()) for o in others}
    assert {text.get_text() for text in axes.texts} == {
        text.get_text() for one in others for text in one.texts
    }


def test_a_film_interpolates_between_layers():
    from attnlab.render.results import early_positions, picture_of

    data = example("sentence")
    figure, show = picture_of(data).stage(data)
    axes = figure.axes[0]

    def places() -> np.ndarray:
        tokens = [one for one in axes.collections if one.get_zorder() == 4]
        return np.concatenate([one.get_offsets() for one in tokens])

    found = []
    for position in (0.0, 0.5, 1.0):
        show(position)
        found.append(np.array(places()))
    np.testing.assert_allclose(found[1], 0.5 * (found[0] + found[2]))
    assert np.abs(found[2] - found[0]).max() > 0
    where = early_positions(101, 30)
    assert where[0] == 0 and where[-1] == 100 and (np.diff(where) > 0).all()
    assert where[15] < 25  # half of the frames belong to the first quarter of the layers
