"""attnlab compare: its table, its files, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

import attnlab as al
import tiny_models
from attnlab.cli.compare import SHOWN
from command_line import attnlab, refused
from tiny_models import TOKENIZER

TEXTS = ("The cat sat", "the cat", "sat the cat sat")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model, and the same with other queries in head 1 of the last layer."""
    made = []
    for name in ("before", "after"):
        state, raw = tiny_models.bert()
        if name == "after":
            key = next(one for one in state if one.endswith("layer.1.attention.self.query.weight"))
            state[key] = np.array(state[key])
            size = raw["hidden_size"] // raw["num_attention_heads"]
            state[key][size : 2 * size] *= -3
        folder = tiny_models.write_folder(tmp_path_factory.mktemp(name), state, raw)
        (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        made.append(folder)
    return made


def test_the_command_has_the_columns_of_the_function(folders, tmp_path):
    file, csv, parquet = (tmp_path / name for name in ("texts.txt", "t.csv", "t.parquet"))
    file.write_text("\n".join(TEXTS))
    before, after = (al.models.load(folder) for folder in folders)
    table = al.models.compare(before, after, texts=TEXTS)
    shown = attnlab("compare", *folders, "--texts", file, "--csv", csv).stdout
    assert "V or M changed in 1 of 6 heads: L1H1." in " ".join(shown.split())
    assert csv.read_text() == table.to_csv(index=False)
    rows = [line for line in shown.splitlines() if "L1H1" in line and "%" in line]
    assert rows and "3 texts" in shown
    record = json.loads(attnlab("compare", *folders, "--texts", file, "--json").stdout)
    assert list(record["rows"][0]) == list(table.columns) and len(record["rows"]) == len(table)
    pytest.importorskip("pyarrow")
    attnlab("compare", *folders, "--texts", file, "--csv", parquet)
    assert list(pandas.read_parquet(parquet).columns) == list(pandas.read_csv(csv).columns)


def test_a_figure_is_drawn_and_can_be_drawn_from_the_saved_table(folders, tmp_path):
    options = ("--ids", "1,2,3", "--ids", "4,5")
    said = attnlab("compare", *folders, *options, "-o", tmp_path / "a.png").stdout
    assert f"Figure written to {tmp_path / 'a.png'}." in said.replace("\n", "")
    table = al.models.compare(*map(al.models.load, folders))
    al.save(table, tmp_path / "t.nc")
    attnlab("plot", tmp_path / "t.nc", "-o", tmp_path / "b.png")
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
    assert "exists already" in refused("compare", *folders, "-o", tmp_path / "a.png")
    assert "must end in .png" in refused("compare", *folders, "-o", tmp_path / "a.txt")
    assert "the same file" in refused(
        "compare", *folders, "-o", tmp_path / "c.png", "--csv", tmp_path / "c.png"
    )


def test_without_texts_and_with_itself(folders):
    record = json.loads(attnlab("compare", *folders, folders[0], "--json").stdout)
    assert len(record["rows"]) == 12 and "attention_change" not in record["rows"][0]
    assert [row["score_change"] > 0 for row in record["rows"]].count(True) == 1
    assert all(row["score_change"] == 0 for row in record["rows"][6:])
    shown = attnlab("compare", folders[0], folders[0], "--ids", "1,2,3", "--ids", "4,5").stdout
    assert "V and M are the same in all heads." in " ".join(shown.split())


def test_the_heads_that_changed_most_come_first(tmp_path):
    folders = []
    for name, head in (("one", None), ("other", 1)):
        state, raw = tiny_models.bert(layers=6)
        if head is not None:
            key = next(one for one in state if one.endswith("layer.5.attention.self.value.weight"))
            state[key] = np.array(state[key])
            state[key][:4] *= 2
        folders.append(tiny_models.write_folder(tmp_path / name, state, raw))
    lines = attnlab("compare", *folders).stdout.splitlines()
    rows = [line for line in lines if line.startswith("│")]
    assert len(rows) == SHOWN < 18 and "L5H0" in rows[0] and "100%" in rows[0]


def test_bad_input_is_one_sentence(folders, tmp_path):
    assert "must end in .csv" in refused("compare", *folders, "--csv", tmp_path / "t.txt")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    assert "at least one text" in refused("compare", *folders, "--texts", empty)
    same = tmp_path / "same.txt"
    same.write_text("the cat\nthe cat\n")
    assert "text 1 repeats text 0" in refused("compare", *folders, "--texts", same)
    state, raw = tiny_models.bert(layers=3)
    other = tiny_models.write_folder(tmp_path, state, raw)
    assert "must have one shape" in refused("compare", folders[0], other)
