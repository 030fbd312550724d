"""The command line and Python have the same numbers: every command about a trained model that writes
--csv or --json is compared with its function, column by column and key by key.
"""

from __future__ import annotations

import functools
import inspect
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import pytest
import xarray

import attnlab as al
import tiny_models
from attnlab.cli import verbs
from attnlab.cli.say import as_options
from attnlab.store.plain import plain_value
from command_line import attnlab
from stored import difference
from tiny_models import TOKENIZER

TEXTS = ("The cat sat", "the cat", "sat the cat sat")


@dataclass(frozen=True)
class Case:
    """A command, the function that computes the same, and where its parts stand in the JSON.

    rows: the key of the JSON that holds the rows of the table; findings: that of the sentences;
    others: {key: what is there, from the result}. facts: the result, or its table, whose attributes
    are keys as well.
    """

    options: tuple[str, ...]
    compute: Callable[[Any], Any]
    rows: str = "rows"
    findings: str = "said"
    others: dict[str, Callable[[Any], Any]] | None = None
    models: int = 1
    facts: Callable[[Any], Any] = al.models.table


def texts_file(folder: Any) -> Any:
    path = folder / "texts.txt"
    path.write_text("\n".join(TEXTS))
    return path


def flow(m: Any) -> Any:
    return al.models.flow(m, 1, 1, text=TEXTS[0], t_end=0.5, saves=4)


def spectra_keys(found: Any) -> Any:
    """The numbers of the heads of a flow that `spectra` has, too."""
    names = ("head", "lambda1", "lambda2", "gap", "score", "verdict", "applies", "why_not")
    facts = found.data.attrs
    table = al.models.spectra(MODELS["one"], facts["layer"], facts["head"], null=2)
    return [{name: row[name] for name in names} for row in table.to_dict("records")]


def flow_limit(found: Any) -> Any:
    limit = found.limit
    names = ("count", "certified", "labels", "leaders", "place_count", "error", "reason")
    return {
        "grade": str(limit.grade),
        **{name: getattr(limit, name) for name in names},
        **({} if found.end is None else found.end.record),
    }


def clusters(found: Any) -> Any:
    words = [word.strip() for word in found.words]
    return [
        {
            "tokens": len(one.members),
            "words": [words[i] for i in one.members],
            "leader": words[one.leader],
            "share": one.share,
            "nearest_start": words[one.nearest],
            "cosine": one.cosine,
        }
        for one in found.clusters
    ]


CASES = {
    "spectra": Case(
        ("--null", "5"),
        lambda m: al.models.spectra(m, null=5),
        findings="summary",
        others={"summary": lambda found: al.models.findings(found)[0]},
    ),
    "sentence": Case(
        (TEXTS[0], "--only", "twin"),
        lambda m: al.models.sentence(m, TEXTS[0], only=["twin"]),
        rows="variants",
        facts=lambda found: found,
        others={
            "words": lambda found: found["word"].values,
            "ids": lambda found: found["id"].values,
            "is_special": lambda found: found["is_special"].values.astype(bool),
            "received": lambda found: found["received"].sel(variant="real").values[:-1][:2],
            "about_variants": lambda found: json.loads(found.attrs["about_variants"]),
        },
    ),
    "survey": Case(TEXTS, lambda m: al.models.survey(m, TEXTS)),
    "compare": Case(
        ("--texts", "texts.txt"), lambda a, b: al.models.compare(a, b, texts=TEXTS), models=2
    ),
    "flow": Case(
        ("--text", TEXTS[0], "--layer", "1", "--head", "1", "--t-end", "0.5", "--saves", "4"),
        flow,
        rows="times",
        facts=lambda found: found.data,
        others={
            # the command names its options in the place of arguments
            "said": lambda found: [
                as_options(line, verbs["flow"]) for line in al.models.findings(found)
            ],
            "words": lambda found: found.words,
            "explained": lambda found: found.data["explained"].values,
            "heads": spectra_keys,
            "label": lambda found: found.data["label"].values[-1].astype(int),
            "received": lambda found: found.data["received"].values[-1],
            "eigenvalue_moduli": lambda found: found.data["eigenvalue"].values[-1],
            "in_doubt": lambda found: found.in_doubt,
            "clusters": clusters,
            "limit": flow_limit,
            "no_limit": lambda found: found.no_limit,
            "verdicts": lambda found: [plain_value(one) for one in found.verdicts],
            "no_check": lambda found: found.no_check,
            "statistics": lambda found: {
                name: found.run.stats.get(name)
                for name in ("steps", "rejected", "evaluations", "reached", "seconds")
            },
        },
    ),
}
"""{command: its case}."""

MODELS: dict[str, Any] = {}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two models with a tokenizer of six words: the second has other queries."""
    made = []
    for name in ("one", "other"):
        state, raw = tiny_models.bert()
        if name == "other":
            key = next(one for one in state if one.endswith("layer.1.attention.self.query.weight"))
            state[key] = -3 * np.array(state[key])
        folder = tiny_models.write_folder(tmp_path_factory.mktemp(name), state, raw)
        (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        MODELS[name] = al.models.load(folder)
        made.append(folder)
    return made


def test_every_command_with_a_table_of_a_model_is_here():
    """The first argument of a command about a model is the model."""
    found = set()
    for name in verbs:
        arguments = inspect.signature(verbs[name]).parameters
        is_about_one = next(iter(arguments), "") == "model"
        if is_about_one and {"csv", "as_json"} & set(arguments):
            found.add(name)
    assert found == set(CASES)


@functools.cache
def computed(name: str) -> Any:
    case = CASES[name]
    return case.compute(*list(MODELS.values())[: case.models])


def call(name: str, folders: Any, tmp_path: Any, *options: Any) -> Any:
    case = CASES[name]
    given = [texts_file(tmp_path) if one == "texts.txt" else one for one in case.options]
    return attnlab(name, *folders[: case.models], *given, *options)


@pytest.mark.parametrize("name", CASES)
def test_the_table_is_that_of_python(name, folders, tmp_path):
    pytest.importorskip("pyarrow")
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    call(name, folders, tmp_path, "--csv", csv)
    call(name, folders, tmp_path, "--csv", parquet)
    result = computed(name)
    table = al.models.table(result)
    assert csv.read_text() == table.to_csv(index=False)
    again = pandas.read_csv(io.StringIO(csv.read_text()))
    assert list(pandas.read_parquet(parquet).columns) == list(again.columns)
    for suffix in ("csv", "parquet"):  # what al.save of the result itself writes
        al.save(result, tmp_path / f"saved.{suffix}")
    saved = pandas.read_csv(tmp_path / "saved.csv")
    pandas.testing.assert_frame_equal(saved, again, check_dtype=False)
    assert list(pandas.read_parquet(tmp_path / "saved.parquet").columns) == list(again.columns)


@pytest.mark.parametrize("name", CASES)
def test_the_json_is_that_of_python(name, folders, tmp_path):
    case, result = CASES[name], computed(name)
    record = json.loads(call(name, folders, tmp_path, "--json").stdout)
    table = al.models.table(result)
    rows = record.pop(case.rows)
    assert [list(row) for row in rows] == [list(table.columns)] * len(table)
    for column in table.columns:
        assert same(
            [row[column] for row in rows],
            [None if value is pandas.NA else value for value in table[column].tolist()],
        ), column
    facts = case.facts(result).attrs
    others = dict(case.others or {})
    others.setdefault(case.findings, lambda found: al.models.findings(found))
    assert set(record) <= set(facts) | set(others), set(record) - set(facts) - set(others)
    assert set(facts) <= set(record)
    for key, value in record.items():
        expected = others[key](result) if key in others else facts[key]
        if key == "statistics":
            expected, value = ({**one, "seconds": 0.0} for one in (expected, value))
        assert same(value, expected), (key, value, expected)


def same(got: Any, expected: Any) -> bool:
    """Whether JSON says what Python does."""
    return got == json.loads(json.dumps(plain_value(expected), allow_nan=False))


WITH_FILE = [name for name in CASES if "nc" in inspect.signature(verbs[name]).parameters]


@pytest.mark.parametrize("name", WITH_FILE)
def test_the_file_of_the_command_is_loaded_again(name, folders, tmp_path):
    call(name, folders, tmp_path, "--nc", tmp_path / "a.nc")
    back, result = al.load(tmp_path / "a.nc"), computed(name)
    if name == "flow":
        assert back.limit.certified and al.verify(back.limit).holds
        assert back.limit.labels.tolist() == result.limit.labels.tolist()
        assert back.limit.leaders.tolist() == result.limit.leaders.tolist()
        back, result = back.data, result.data
    assert difference(back, result) == ""
    with xarray.open_dataset(tmp_path / "a.nc") as plain:  # without attnlab
        for variable in result.variables:
            np.testing.assert_array_equal(plain[variable].values, result[variable].values)
        assert {name: plain.attrs[name] for name in result.attrs} == {
            name: int(value) if isinstance(value, bool) else value
            for name, value in result.attrs.items()
        }
