"""The table of a result has the numbers of the result, each in its own row."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import attnlab as al
from attnlab.models.studies.tidy import OF_FLOW, OF_ITERATION, OF_SENTENCE
from tiny_models import MAKERS

IDS = [np.array([3, 1, 4, 1, 5]), np.array([2, 7, 1])]


def load(family: str = "bert"):
    state, raw = MAKERS[family]()
    return al.models.load(state, config=raw)


@pytest.fixture(scope="module")
def data():
    return al.models.sentence(load(), ids=IDS[0], only=["twin", "tied"])


def test_a_sentence_has_a_row_for_each_variant_and_step(data):
    table = al.models.table(data)
    expected = []
    for variant in data["variant"].values:
        for step in range(data.sizes["step"]):
            one = data.sel(variant=variant).isel(step=step)
            if np.isnan(one["cosine"]):
                continue  # beyond the depth of the variant
            leader = float(one["leader"])
            word = "" if np.isnan(leader) else str(data["word"].values[int(leader)])
            expected.append((variant, step, float(one["cosine"]), float(one["turn"]), word))
    for name, wanted in zip(
        ("variant", "step", "cosine", "turn", "leader_word"),
        zip(*expected, strict=True),
        strict=True,
    ):
        np.testing.assert_array_equal(table[name].to_numpy(), wanted)
    layers = load().config.layers
    real = table[table["variant"] == "real"]
    assert real["read_by_layer"].tolist() == [*range(layers), pandas.NA]
    assert list(table.columns) == [
        *("variant", "step", *OF_SENTENCE, "read_by_layer", "leader_word")
    ]


def test_sentences_have_one_table_with_the_number_of_the_text():
    model = load()
    table = al.models.table(al.models.sentence(model, ids=IDS, only=["twin"]))
    for number, ids in enumerate(IDS):
        alone = al.models.table(al.models.sentence(model, ids=ids, only=["twin"]))
        part = table[table["text"] == number].drop(columns=["text", "content"])
        pandas.testing.assert_frame_equal(
            pandas.DataFrame(part.reset_index(drop=True)), pandas.DataFrame(alone)
        )


def test_an_iteration_and_a_flow_have_a_row_for_each_step_and_time():
    model = load()
    data = al.models.iterate(model, ids=IDS[0], times=5)
    table = al.models.table(data)
    assert table["step"].tolist() == data["step"].values.tolist()
    for name in OF_ITERATION:
        np.testing.assert_array_equal(table[name], data[name].values)
    flow = al.models.flow(model, 0, ids=IDS[0], t_end=0.5, saves=4, limit=False, check=False)
    table = al.models.table(flow)
    assert table["time"].tolist() == flow.run.times.tolist()
    for name in OF_FLOW:
        np.testing.assert_array_equal(table[name], flow.data[name].values)
    for number, row in enumerate(table.itertuples()):
        one = flow.data.isel(time=number)
        assert row.attention_rank == pytest.approx(float(one["attention_rank"].mean()))
        assert row.leader_share == float(one["received"].values[row.leader])
        assert row.leader_word == flow.words[row.leader]
        assert row.second_modulus == float(one["mean_eigenvalue"].values[1])
        assert row.gap == pytest.approx(1 - row.second_modulus, abs=1e-12)


def test_tables_stay_what_they_are():
    model = load()
    survey = al.models.survey(model, IDS)
    table = al.models.intervals(survey)
    pandas.testing.assert_frame_equal(al.models.table(survey), table)
    for frame in (table, al.models.spectra(model, null=2), al.models.table(survey)):
        assert al.models.table(frame) is frame


def test_what_has_no_table_says_what_to_do(tmp_path):
    model = load()
    with pytest.raises(TypeError, match=r"al.models.survey\(model, texts\) measures the texts"):
        al.models.table(model.run(IDS))
    with pytest.raises(TypeError, match="got int"):
        al.models.table(3)
    for suffix in ("csv", "parquet"):
        with pytest.raises(ValueError, match="Or save it as a .nc file"):
            al.save(model.run(IDS), tmp_path / f"a.{suffix}")
    assert not list(tmp_path.iterdir())


def test_a_table_comes_back_from_a_file(data, tmp_path):
    table = al.models.table(data)
    al.save(table, tmp_path / "a.nc")
    back = al.load(tmp_path / "a.nc")
    pandas.testing.assert_frame_equal(back, table)
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "a.parquet")
    again = pandas.read_parquet(tmp_path / "a.parquet")
    assert list(again.columns) == list(table.columns)
    np.testing.assert_array_equal(again["cosine"], table["cosine"])
    assert again["read_by_layer"].dtype == "Int64"
    assert table.describe().loc["count", "cosine"] == len(table)


@pytest.mark.parametrize("kind", ["table", "intervals", "texts", "tokens"])
def test_findings_of_a_table_name_the_result(kind, data):
    model = load()
    thing = {
        "table": lambda: al.models.table(data),
        "intervals": lambda: al.models.intervals(al.models.survey(model, IDS)),
        "texts": lambda: model.run(IDS),
        "tokens": lambda: model.tokens(IDS),
    }[kind]()
    with pytest.raises(TypeError, match="findings reads what a study returns, and not .* Give "):
        al.models.findings(thing)
