"""Every function that takes texts: it reads each form that it names, and refuses the others with one
sentence. A function that is missing here fails.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest

import attnlab as al
import tiny_models
from attnlab.models.studies.dossier import choose_texts

IDS = np.array([3, 4, 5])


def reader() -> al.models.Model:
    """A model with a tokenizer: [CLS], one token per word, [SEP]."""

    def cut(text: str, special: bool = True) -> tuple[list[int], list[str]]:
        words = text.split()
        words = ["[CLS]", *words, "[SEP]"] if special else words
        return [1 + len(word) % 10 for word in words], words

    state, raw = tiny_models.bert()
    return al.models.load(state, config=raw, tokenizer=cut)


M = reader()

ONE: dict[str, Callable[[Any], Any]] = {
    "tokens(text)": lambda given: M.tokens(given),
    "run(texts)": lambda given: M.run(given, keep=("x",)),
    "sentence(text)": lambda given: al.models.sentence(M, given, only=["real"]),
    "iterate(text)": lambda given: al.models.iterate(M, given, times=3),
    "flow(text)": lambda given: al.models.flow(
        M, 0, 0, text=given, t_end=0.1, saves=2, limit=False, check=False
    ),
}
"""Functions that take one text."""

IDS_OF_ONE: dict[str, Callable[[Any], Any]] = {
    "hidden_states(ids)": lambda given: M.hidden_states(given),
    "attention(ids)": lambda given: M.attention(given),
    "run(texts)": lambda given: M.run(given, keep=("x",)),
    "sentence(ids)": lambda given: al.models.sentence(M, ids=given, only=["real"]),
    "iterate(ids)": lambda given: al.models.iterate(M, ids=given, times=3),
    "flow(ids)": lambda given: al.models.flow(
        M, 0, 0, ids=given, t_end=0.1, saves=2, limit=False, check=False
    ),
}
"""Functions that take the ids of one text."""

MANY: dict[str, Callable[[Any], Any]] = {
    "tokens(text)": lambda given: M.tokens(given),
    "hidden_states(ids)": lambda given: M.hidden_states(given),
    "attention(ids)": lambda given: M.attention(given),
    "run(texts)": lambda given: M.run(given, keep=("x",)),
    "without(mean)": lambda given: M.without(heads=[(0, 1)], mean=given),
    "sentence(text)": lambda given: al.models.sentence(M, given, only=["real"]),
    "sentence(ids)": lambda given: al.models.sentence(M, ids=given, only=["real"]),
    "survey(texts)": lambda given: al.models.survey(M, given),
    "compare(texts)": lambda given: al.models.compare(M, M, texts=given),
    "spectra(texts)": lambda given: al.models.spectra(M, null=2, texts=given),
    "dossier(texts)": lambda given: choose_texts(M, given),  # the rest takes seconds
}
"""Functions that take several texts."""

OPTIONAL = {"without(mean)", "flow(text)", "flow(ids)"}
"""None means none."""

NONE_AT_ALL = {"compare(texts)", "spectra(texts)", "dossier(texts)"}
"""An empty list means none."""

NAMES = ("text", "texts", "ids", "mean")
"""Arguments that hold texts."""


def test_every_function_that_takes_texts_is_here():
    functions = {name: getattr(al.models, name) for name in al.models.__all__}
    functions |= {name: thing for name, thing in vars(al.models.Model).items() if name[0] != "_"}
    found = {
        f"{name}({argument})"
        for name, thing in functions.items()
        if inspect.isfunction(thing)
        for argument in inspect.signature(thing).parameters
        if argument in NAMES
    }
    assert found == ONE.keys() | IDS_OF_ONE.keys() | MANY.keys()


@pytest.mark.parametrize("name", ONE)
def test_one_text(name):
    assert ONE[name]("the cat sat") is not None


@pytest.mark.parametrize("name", IDS_OF_ONE)
def test_the_ids_of_one_text(name):
    for given in (IDS, IDS.tolist(), tuple(IDS.tolist())):
        assert IDS_OF_ONE[name](given) is not None


GOOD: dict[str, Any] = {
    "texts": ["the cat sat", "a dog"],
    "a text and ids": ["the cat sat", IDS],
    "ids and a text": [IDS, "the cat sat"],
    "a text and a list of ids": ["the cat sat", IDS.tolist()],
    "arrays of ids": [IDS, IDS[:2]],
    "a tuple": ("the cat sat", "a dog"),
    "one text in a list": ["the cat sat"],
}


@pytest.mark.parametrize("name, form", [*itertools.product(MANY, GOOD)])
def test_several_texts_in_every_form(name, form):
    found = MANY[name](GOOD[form])
    if getattr(found, "sizes", {}).get("text"):
        assert found.sizes["text"] == len(GOOD[form])


@pytest.mark.parametrize(
    "name", ["survey(texts)", "compare(texts)", "spectra(texts)", "run(texts)"]
)
def test_a_column_of_a_table_and_an_array_hold_texts(name):
    texts = ["the cat sat", "a dog"]
    usual = MANY[name](texts)
    for given in (pandas.Series(texts, index=[7, 3]), np.array(texts)):
        found = MANY[name](given)
        assert found.equals(usual)


LONG = " ".join(["cat"] * 100)

BAD: dict[str, tuple[Any, str]] = {
    "None": (None, "None"),
    "an empty list": ([], "an empty list"),
    "an empty text": (["the cat", ""], "Text 1 of 2, from 0: .*empty"),
    "blanks": (["the cat", " \n"], "Text 1 of 2, from 0: .*empty"),
    "None in a list": (["the cat", None], "Text 1 of 2, from 0: .*None"),
    "a number in a list": (["the cat", 7], "Text 1 of 2, from 0: .*7"),
    "bytes in a list": (["the cat", b"a dog"], "Text 1 of 2, from 0: .*decode"),
    "a list of lists of texts": ([["the cat"], ["a dog"]], "got texts|got a list"),
    "ids that the model does not know": ([IDS, np.array([3, 10**6])], "Text 1 .* 0 to 18, got"),
    "numbers that are no ids": ([IDS, np.array([0.5, 1.0])], "Text 1 .*whole numbers"),
    "a text that is too long": (["the cat", LONG], "Text 1 .*places for 10 tokens, got 102"),
    "a number": (7, "got 7"),
    "bytes": (b"the cat", "decode"),
    "a table": (pandas.DataFrame({"text": ["the cat"]}), "got a DataFrame"),
    "a dict": ({"a": "the cat"}, "got a dict"),
}


SINGLE = ("iterate", "flow")
"""Functions that take one text at a time."""


@pytest.mark.parametrize("name, form", [*itertools.product(ONE | IDS_OF_ONE | MANY, BAD)])
def test_other_forms_are_refused_with_a_sentence(name, form):
    call = (ONE | IDS_OF_ONE | MANY)[name]
    given, says = BAD[form]
    if given is None and name in OPTIONAL or form == "an empty list" and name in NONE_AT_ALL:
        assert call(given) is not None
        return
    with pytest.raises(ValueError) as problem:
        call(given)
    said = str(problem.value)
    assert type(problem.value) in (ValueError, al.models.BadModel)
    assert said.endswith(".") and "\n" not in said and len(said) < 200
    if isinstance(given, list) and name.startswith(SINGLE) and "got a list of 2" in said:
        says = "Give one text, .* Call the function once for each of them."
    elif given is None and name.startswith(("sentence", "iterate")):
        says = "Give a text or ids, one of the two."
    assert re.search(says, said), said
