"""The results of a sweep as tables: what was planted in the database comes out, in the order of the
grid.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys

import numpy as np
import pytest

from attnlab import UnknownName
from attnlab.checks import MissingLibrary
from attnlab.sweep import Row, Rows, Sweep
from attnlab.sweep.drawing import check_columns, plot
from attnlab.sweep.rows import NotRows
from attnlab.sweep.table import export, load, time_groups

TEXT = """
exclude = [{ "dynamics.beta" = 2, "start.n" = [7] }]
[base.weights]
family = "identity"
[base.start]
law = "sphere"
n = 4
d = 2
[base.solve]
t_end = 1
[axes]
"dynamics.beta" = [2, 0.5]
"start.n, start.rng" = [[5, 0], [7, 3]]
"dynamics.kernel" = ["softmax", "hardmax"]
[numbers]
spread = { observable = "diameter" }
share = { observable = "clustered_pairs", at = [0.5, 1] }
grade = { limit = "grade" }
"""


def numbers_of(cell: dict) -> dict:
    """Planted numbers: each can be computed from its cell."""
    base = cell["dynamics.beta"] + cell["start.n"]
    return {
        "spread": math.inf if cell["dynamics.kernel"] == "hardmax" else base,
        "share@0.5": base / 100,
        "share@1.0": base / 50,
        "grade": "exact" if cell["start.n"] == 5 else None,
    }


@pytest.fixture
def planted(tmp_path):
    """A sweep whose rows were made by hand, not in the order of the grid; one failed, one is
    missing, two are strangers.
    """
    (tmp_path / "a.toml").write_text(TEXT)
    sweep = Sweep.load(tmp_path / "a.toml")
    cells = list(sweep.grid)
    assert len(cells) == 6
    rows = [
        Row(
            sweep.digest_of(cell),
            "ok",
            cell,
            numbers_of(cell),
            seconds=0.25,
            seed=cell["start.rng"],
            measured=sweep.measured,
        )
        for cell in cells[:-1]
    ]
    rows[1] = Row(
        rows[1].digest, "max_steps", cells[1], {}, error="Too long.", measured=sweep.measured
    )
    strangers = [
        Row("other", "ok", {**cells[0], "start.n": 6}, {"spread": 99.0}, measured=sweep.measured),
        Row(
            sweep.digest_of(cells[-1]),
            "ok",
            cells[-1],
            {"spread": 98.0},
            measured="for other numbers",
        ),
    ]
    with Rows(
        sweep.rows_path, axes=sweep.grid.keys, numbers=tuple(sweep.numbers)
    ).open() as database:
        database.write([*strangers, *reversed(rows)])
    return sweep


def test_a_frame_has_one_row_per_cell_in_the_order_of_the_grid(planted):
    frame = load(planted.path)
    assert list(frame.columns) == [
        "dynamics.beta",
        "start.n",
        "start.rng",
        "dynamics.kernel",
        "spread",
        "share@0.5",
        "share@1.0",
        "grade",
        "status",
        "error",
        "seconds",
        "seed",
        "digest",
    ]
    cells = list(planted.grid)[:-1]
    assert frame["dynamics.beta"].tolist() == [cell["dynamics.beta"] for cell in cells]
    assert frame["start.n"].tolist() == [cell["start.n"] for cell in cells]
    for number, cell in enumerate(cells):
        wanted = numbers_of(cell) if number != 1 else dict.fromkeys(numbers_of(cell), None)
        for name, value in wanted.items():
            found = frame[name][number]
            assert found == value or (value is None and (found is None or math.isnan(found)))
    assert (
        frame["status"].tolist() == ["ok", "max_steps", "ok", "ok", "ok"]
        and frame["error"][1] == "Too long."
    )
    assert math.isnan(frame["seconds"][1]) and frame["digest"].tolist() == [
        planted.digest_of(cell) for cell in cells
    ]


def test_a_dataset_has_the_axes_as_dimensions_and_t(planted):
    data = load(planted, "xarray")
    assert dict(data.sizes) == {
        "dynamics.beta": 2,
        "start.n, start.rng": 2,
        "dynamics.kernel": 2,
        "t": 2,
    }
    assert data["start.n"].values.tolist() == [5, 7] and data["t"].values.tolist() == [0.5, 1.0]
    seen = 0
    for number, cell in enumerate(planted.grid):
        at = {
            "dynamics.beta": [2, 0.5].index(cell["dynamics.beta"]),
            "start.n, start.rng": [5, 7].index(cell["start.n"]),
            "dynamics.kernel": ["softmax", "hardmax"].index(cell["dynamics.kernel"]),
        }
        place = data.isel(at)
        if number in (1, 5):
            assert (
                np.isnan(place["spread"])
                and np.isnan(place["share"]).all()
                and place["grade"] == ""
            )
            continue
        assert place["share"].values.tolist() == [
            numbers_of(cell)["share@0.5"],
            numbers_of(cell)["share@1.0"],
        ]
        assert place["spread"] == numbers_of(cell)["spread"] and place["status"] == "ok"
        seen += 1
    assert seen == 4
    excluded = data.isel({"dynamics.beta": 0, "start.n, start.rng": 1})
    assert (excluded["status"] == "").all() and np.isnan(excluded["spread"]).all()


def test_the_database_alone_is_a_table_of_all_its_rows(planted):
    frame = load(planted.rows_path)
    assert (
        len(frame) == 7
        and sorted(frame["start.n"]) == frame.sort_values("start.n")["start.n"].tolist()
    )
    assert frame["dynamics.beta"].is_monotonic_increasing


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_what_is_exported_is_what_is_loaded(planted, suffix, tmp_path):
    import pandas
    import xarray

    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    target = tmp_path / f"table{suffix}"
    assert export(planted.path, target) == target
    if suffix == ".nc":
        with xarray.open_dataset(target, engine="h5netcdf") as read:
            xarray.testing.assert_equal(read.load(), load(planted, "xarray"))
    else:
        read = pandas.read_csv(target) if suffix == ".csv" else pandas.read_parquet(target)
        frame = load(planted)
        assert list(read.columns) == list(frame.columns)
        assert np.array_equal(read["spread"], frame["spread"], equal_nan=True) and np.isinf(
            read["spread"][3]
        )
        assert np.array_equal(read["share@0.5"], frame["share@0.5"], equal_nan=True)
        assert (
            read["error"][1] == "Too long." and read["digest"].tolist() == frame["digest"].tolist()
        )


def test_an_export_replaces_a_file_whole_or_not_at_all(planted, tmp_path, monkeypatch):
    target = tmp_path / "table.csv"
    export(planted, target)
    before = target.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError):
        export(planted, target)
    assert target.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == [
        "a.sqlite",
        "a.toml",
        "table.csv",
    ]


def test_values_that_are_lists_are_text_in_files_and_lists_in_frames(tmp_path):
    sweep = Sweep.from_dict(
        {
            "base": {
                "weights": {"family": "spectrum", "basis": "identity"},
                "start": {"law": "sphere", "n": 3},
                "solve": {"t_end": 1},
            },
            "axes": {"weights.eigenvalues": [[1.0, 0.5], [1.0, 0.25]]},
            "numbers": {"spread": {"observable": "diameter"}},
        },
        tmp_path / "a.toml",
    )
    with Rows(sweep.rows_path).open() as rows:
        rows.write(
            [
                Row(sweep.digest_of(cell), "ok", cell, {"spread": 1.0}, measured=sweep.measured)
                for cell in sweep.grid
            ]
        )
    assert load(sweep)["weights.eigenvalues"].tolist() == [[1.0, 0.5], [1.0, 0.25]]
    export(sweep, tmp_path / "a.csv")
    assert '"[1,0.5]"' in (tmp_path / "a.csv").read_text()
    assert [json.loads(word) for word in load(sweep, "xarray")["weights.eigenvalues"].values] == [
        [1, 0.5],
        [1, 0.25],
    ]


def test_what_is_wrong_is_one_sentence(planted, tmp_path, monkeypatch):
    with pytest.raises(UnknownName, match="pandas"):
        load(planted, "panda")
    with pytest.raises(ValueError, match=r"must end in .csv, .parquet or .nc"):
        export(planted, "table.xlsx")
    planted.path.rename(tmp_path / "b.toml")
    with pytest.raises(FileNotFoundError, match="Run the sweep first"):
        load(tmp_path / "b.toml")
    with Rows(tmp_path / "b.sqlite").open():
        pass
    with pytest.raises(ValueError, match="no rows"):
        load(tmp_path / "b.toml")
    (tmp_path / "b.sqlite").write_bytes(b"not a database at all" * 20)
    with pytest.raises(NotRows, match="Nothing in it was changed"):
        load(tmp_path / "b.toml")
    (tmp_path / "b.sqlite").unlink()
    sqlite3.connect(tmp_path / "b.sqlite").executescript("CREATE TABLE t (a)").connection.close()
    with pytest.raises(NotRows, match="not that of a sweep"):
        load(tmp_path / "b.toml")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibrary, match="pip install pyarrow"):
        export(planted, tmp_path / "table.parquet")


def test_numbers_with_times_are_grouped_by_their_name():
    assert time_groups(["a", "b@1.0", "b@0.5", "c@10.0"]) == {"a": [], "b": [0.5, 1.0], "c": [10.0]}


def test_columns_of_a_figure_are_checked_before_anything_runs(planted):
    check_columns(planted, ["dynamics.beta", "t", "share"])
    with pytest.raises(UnknownName, match="dynamics.beta"):
        check_columns(planted, ["dynamics.bta", "spread"])
    with pytest.raises(ValueError, match="two or three"):
        check_columns(planted, ["spread"])


def test_a_number_at_several_times_is_drawn_over_t_only(planted):
    assert "share" in plot(planted, "t", "share").caption
    with pytest.raises(ValueError, match="share@0.5"):
        plot(planted, "dynamics.beta", "share")
