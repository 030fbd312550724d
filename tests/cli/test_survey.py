"""attnlab survey: its table, its files, and what it refuses."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas
import pytest

import attnlab as al
import tiny_models
from command_line import attnlab, refused
from tiny_models import TOKENIZER

TEXTS = ("The cat sat", "the cat", "sat the cat sat")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tiny_models.write_folder(tmp_path_factory.mktemp("bert"), *tiny_models.bert())
    (made / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return made


@pytest.fixture(scope="module")
def table(folder):
    return al.models.intervals(al.models.survey(al.models.load(folder), TEXTS))


def test_the_command_has_the_columns_of_the_function(folder, table, tmp_path):
    names = {"--csv": tmp_path / "t.csv", "--nc": tmp_path / "t.nc", "-o": tmp_path / "t.png"}
    options = [part for pair in names.items() for part in pair]
    shown = attnlab("survey", folder, *TEXTS, *options).stdout
    for words in ("3 texts", "first token", "strongest head", "L0H", "more than half in", "95 %"):
        assert words in shown, words
    assert names["--csv"].read_text() == table.to_csv(index=False)
    assert all(path.stat().st_size for path in names.values())
    found = pandas.read_csv(io.StringIO(names["--csv"].read_text()))
    np.testing.assert_allclose(found["mean"], table["mean"])
    record = json.loads(attnlab("survey", folder, *TEXTS, "--json").stdout)
    assert list(record["rows"][0]) == list(table.columns) and len(record["rows"]) == len(table)
    assert record["texts"] == 3 and record["rows"][-1]["head"] is None


def test_texts_of_a_file_and_ids(folder, table, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("The cat sat\n\nthe cat\nsat the cat sat\n")
    shown = json.loads(attnlab("survey", folder, "--file", file, "--json").stdout)
    np.testing.assert_allclose([row["mean"] for row in shown["rows"]], table["mean"])
    ids = json.loads(attnlab("survey", folder, "--ids", "1,2,3", "--ids", "4,5", "--json").stdout)
    assert ids["texts"] == 2


def test_bad_input_is_one_sentence(folder, tmp_path):
    assert "Give texts in quotation marks" in refused("survey", folder)
    assert "must end in .csv" in refused("survey", folder, "the cat", "--csv", tmp_path / "t.txt")
    assert "at least two tokens" in refused("survey", folder, "cat", "--no-special")
    wrong = tmp_path / "latin.txt"
    wrong.write_bytes(b"caf\xe9")
    assert "UTF-8" in refused("survey", folder, "--file", wrong)
    assert "missing.txt" in refused("survey", folder, "--file", tmp_path / "missing.txt")
