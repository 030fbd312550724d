"""Files for other programs: every sample of every kind in every format, and the numbers in them are
the numbers.
"""

from __future__ import annotations

import csv
import json
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as parquet
import pytest
import xarray
from scipy.io import loadmat

import attnlab as al
from attnlab.store import NotARun, load, save
from attnlab.store.formats import csv as csv_format
from attnlab.store.formats import formats
from attnlab.store.formats import mat as mat_format
from attnlab.store.packing import kinds
from command_line import attnlab, refused
from stored import SAMPLES


@pytest.mark.parametrize("suffix", sorted(formats))
@pytest.mark.parametrize("name", [name for name in SAMPLES if "of lists" not in name])
def test_every_sample_is_written_or_refused_with_a_sentence(name, suffix, tmp_path):
    path = tmp_path / f"result.{suffix}"
    try:
        save(SAMPLES[name], path)
    except ValueError as problem:
        assert (
            str(problem).endswith(".") and "\n" not in str(problem) and not list(tmp_path.iterdir())
        )
        assert suffix in ("csv", "json", "parquet")
        return
    assert path.stat().st_size
    if suffix == "npz":
        with np.load(path, allow_pickle=False) as arrays:
            assert all(arrays[entry].dtype != object for entry in arrays)
    elif suffix == "mat":
        assert all(
            entry.isidentifier() and len(entry) <= 31
            for entry in loadmat(path)
            if not entry.startswith("__")
        )
    elif suffix == "json":
        json.loads(path.read_text())
    elif suffix == "parquet":
        table = parquet.read_table(path)
        assert table.num_columns and isinstance(json.loads(table.schema.metadata[b"attnlab"]), dict)
    else:
        rows = list(csv.reader(path.read_text().splitlines()))
        assert len({len(row) for row in rows if row}) == 1
    with pytest.raises(
        NotARun,
        match=(
            "which `load` does not read: it does not hold everything. Save the result as a .nc file"
        ),
    ):
        load(path)


def rows_of(path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_a_table_of_a_run_has_a_row_for_each_member_time_and_token(tmp_path):
    run = al.simulate(
        al.Weights(V=np.diag([1.0, -0.5])),
        np.random.default_rng(0).normal(size=(2, 3, 2)),
        times=[0.0, 0.3, 1.0],
    )
    save(run, tmp_path / "run.csv")
    rows = rows_of(tmp_path / "run.csv")
    assert (
        list(rows[0]) == ["member", "time", "token", "x1", "x2", "z1", "z2"]
        and len(rows) == 2 * 3 * 3
    )
    for row in rows:
        place = (
            int(row["member"]),
            int(np.flatnonzero(run.times == float(row["time"]))[0]),
            int(row["token"]),
        )
        assert [float(row["x1"]), float(row["x2"])] == run.x[
            place
        ].tolist()  # all digits: equal, not close
        assert [float(row["z1"]), float(row["z2"])] == run.z[place].tolist()
    one = al.simulate(al.Weights(V=np.eye(2)), np.ones((2, 2)), t_end=1.0, saves=2)
    save(one, tmp_path / "one.csv")
    assert list(rows_of(tmp_path / "one.csv")[0])[:2] == ["time", "token"]


@pytest.mark.parametrize("rows", [1, 9_999, 10_000, 10_001, 25_000])
def test_a_large_table_has_every_row_once_and_in_order(tmp_path, rows):
    """Rows are turned into text some thousands at a time: the second and the last of these pieces
    are rows of their own.
    """
    numbers = np.arange(rows) / 7
    kind = SimpleNamespace(
        title="rows", tabulate=lambda thing: {"row": np.arange(rows), "value": thing}
    )
    formats["csv"].write(numbers, kind, tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().split("\n")
    assert lines[0] == "row,value" and lines[-1] == "" and len(lines) == rows + 2
    assert [line.split(",") for line in lines[1:-1]] == [
        [str(row), repr(row / 7)] for row in range(rows)
    ]


@pytest.mark.parametrize("at_once", [1, 4, 17, 18])
def test_a_run_in_pieces_is_the_same_file(tmp_path, monkeypatch, at_once):
    run = al.simulate(
        al.Weights(V=np.diag([1.0, -0.5])),
        np.random.default_rng(0).normal(size=(2, 3, 2)),
        times=[0.0, 0.3, 1.0],
    )
    save(run, tmp_path / "whole.csv")
    monkeypatch.setattr(csv_format, "ROWS_AT_ONCE", at_once)
    save(run, tmp_path / "pieces.csv")
    assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert len(rows_of(tmp_path / "whole.csv")) == 18


def test_what_is_no_number_is_written_as_r_and_pandas_read_it(make_run, tmp_path):
    import pandas

    save(make_run("batch"), tmp_path / "run.csv")
    assert (
        ",NaN," in (tmp_path / "run.csv").read_text()
        and "nan" not in (tmp_path / "run.csv").read_text()
    )
    frame = pandas.read_csv(tmp_path / "run.csv")
    assert frame["x1"].isna().sum() == 4 and frame["x1"].dtype == float
    save(make_run("sphere"), tmp_path / "sphere.csv")
    assert list(rows_of(tmp_path / "sphere.csv")[0]) == ["time", "token", "x1", "x2", "x3"]
    with pytest.raises(
        ValueError,
        match="Neither x nor z of this run can be written as numbers. Save it as a .nc file.",
    ):
        save(make_run("huge"), tmp_path / "huge.csv")


def test_numpy_and_matlab_get_the_same_numbers(make_run, tmp_path):
    run = make_run("observed")
    save(run, tmp_path / "run.npz")
    save(run, tmp_path / "run.mat")
    matlab = loadmat(tmp_path / "run.mat")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as arrays:
        for name in ("x", "z"):
            assert arrays[name].tobytes() == getattr(run, name).tobytes()
            assert np.array_equal(matlab[name], getattr(run, name))
        assert al.Spec.from_json(str(arrays["spec"])) == run.spec and str(arrays["status"]) == "OK"
        assert arrays["complex"].tobytes() == run.observed["complex"].tobytes()
    assert al.Spec.from_json(str(matlab["spec"][0])) == run.spec and matlab["time"].shape == (3, 1)


def test_names_that_matlab_does_not_take_are_changed():
    assert mat_format._matlab_name("a" * 40, {}) == "a" * 31
    assert mat_format._matlab_name("a" * 40, {"a" * 31: 1}) == "a" * 27 + "_2"
    assert (
        mat_format._matlab_name("2 x-y", {}) == "a2_x_y"
        and mat_format._matlab_name("_a", {}) == "a_a"
    )


def test_absurd_sizes_are_refused_with_a_sentence(make_run, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_format, "MOST_CELLS", 50)
    with pytest.raises(
        ValueError, match=r"a table of 12 rows and 8 columns is too large for text.*\.nc or \.npz"
    ):
        save(make_run("plain"), tmp_path / "run.csv")
    monkeypatch.setattr(mat_format, "MOST_BYTES", 100)
    with pytest.raises(
        ValueError, match="an array in a .mat file may have 2 GB. Save it as a .nc file"
    ):
        save(make_run("plain"), tmp_path / "run.mat")
    assert not list(tmp_path.iterdir())


def test_limits_and_verdicts_as_tables_and_json(tmp_path):
    limits = [
        al.limit(al.Weights(V=np.eye(2)), np.random.default_rng(seed).normal(size=(4, 2)))
        for seed in (0, 1)
    ]
    save(limits, tmp_path / "limits.csv")
    rows = rows_of(tmp_path / "limits.csv")
    assert (
        list(rows[0]) == ["member", "token", "label", "leader", "limit1", "limit2"]
        and len(rows) == 8
    )
    assert [int(row["leader"]) for row in rows] == [
        int(leader) for one in limits for leader in one.leaders
    ]
    assert float(rows[5]["limit2"]) == limits[1].limits[1, 1]
    save(limits, tmp_path / "limits.json")
    assert [one["count"] for one in json.loads((tmp_path / "limits.json").read_text())] == [
        one.count for one in limits
    ]
    verdicts = list(kinds["verdict"].samples().values())
    save(verdicts, tmp_path / "verdicts.csv")
    assert [row["outcome"] for row in rows_of(tmp_path / "verdicts.csv")] == [
        "SUPPORTED",
        "UNDECIDED",
    ]
    save([verdicts, verdicts], tmp_path / "batch.csv")
    assert [row["member"] for row in rows_of(tmp_path / "batch.csv")] == ["0", "0", "1", "1"]


# -------------------------------------------------------------------------------------------------
# x and z in a run's file


def test_a_batch_of_one_token_says_which_member_a_row_is(tmp_path):
    save(al.limit(al.Weights(V=1.0), np.array([[[1.0]], [[2.0]]])), tmp_path / "limits.csv")
    assert [(row["member"], row["limit1"]) for row in rows_of(tmp_path / "limits.csv")] == [
        ("0", "1.0"),
        ("1", "2.0"),
    ]


def test_a_runs_file_has_plain_tokens_with_names_and_units(any_run, tmp_path):
    save(any_run, tmp_path / "run.nc")
    labelled = al.to_xarray(any_run)
    with xarray.open_dataset(tmp_path / "run.nc") as data:
        for name in ("x", "z"):
            assert (name in data) == (name in labelled)
            if name in data:
                assert data[name].dims == labelled[name].dims
                assert data[name].values.tobytes() == labelled[name].values.tobytes()
                assert data[name].attrs["long_name"] and data[name].attrs["units"] == "1"
            else:
                assert data.attrs[f"{name}_absent"] == labelled.attrs[f"{name}_absent"]
        assert data["time"].attrs["long_name"] == "time t" and "time" in data.coords


def test_large_or_costly_tokens_are_left_out_with_the_reason(tmp_path, monkeypatch):
    from attnlab.store.kinds import trajectory

    run = al.simulate(
        al.Weights(V=np.eye(2) + np.eye(2, k=1)), np.ones((3, 2)) + np.eye(3, 2), t_end=0.1, saves=3
    )
    assert run.basis is None
    monkeypatch.setattr(trajectory, "MOST_EXPONENTIAL", 1)
    save(run, tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc") as data:
        assert (
            "x" in data
            and "z" not in data
            and "takes a matrix exponential in 2 dimensions" in data.attrs["z_absent"]
        )
    monkeypatch.setattr(trajectory, "MOST_VIEWED", 10)
    save(run, tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc") as data:
        assert (
            "x" not in data
            and "x has 18 numbers, and up to 10 are put into the file" in data.attrs["x_absent"]
        )
    assert load(tmp_path / "run.nc").states.tobytes() == run.states.tobytes()
    assert "x" in al.to_xarray(run)


def test_a_forged_x_does_not_change_the_run(make_run, tmp_path):
    """x and z are derived: with a checksum that somebody made again, what is loaded still comes from
    the states.
    """
    import h5py

    from run_files import signed

    run = make_run("plain")
    save(run, tmp_path / "run.nc")

    def forge(file: h5py.File) -> None:
        file["x"][...] = 0.0

    back = load(signed(tmp_path / "run.nc", forge))
    assert back.x.tobytes() == run.x.tobytes()


# --------------------------------------------------------------------------------------------------
# the command line


def test_the_command_writes_several_files(workplace, polytope):
    polytope.save("a.toml")
    words = attnlab(
        "run", "a.toml", "-o", "a.nc", "-o", "a.csv", "-o", "a.npz", "-o", "a.mat"
    ).stdout
    assert "a.nc, a.csv, a.npz, a.mat" in words
    assert len(rows_of(workplace / "a.csv")) == 15
    assert "exists already" in refused("run", "a.toml", "-o", "b.nc", "-o", "a.csv")
    assert not (workplace / "b.nc").exists()
    assert "are the same file" in refused("run", "a.toml", "-o", "b.csv", "-o", "b.csv")
    assert "must end in .nc, .csv, .npz or .mat" in refused("run", "a.toml", "-o", "a.json")
    assert "JSON, which `load` does not read" in refused("verify", _made(workplace / "a.json"))


def _made(path):
    path.write_text("{}")
    return path


def test_a_run_that_the_format_cannot_hold_is_kept(workplace, polytope, monkeypatch):
    monkeypatch.setattr(csv_format, "MOST_CELLS", 5)
    polytope.save("a.toml")
    result = attnlab("run", "a.toml", "-o", "b.csv")
    assert "too large for text" in result.stderr and "The run is in b.nc instead." in result.stderr
    assert load("b.nc").is_ok and not (workplace / "b.csv").exists()


def test_the_command_saves_a_limit_as_data_and_figure(workplace, polytope):
    polytope.save("a.toml")
    words = attnlab("limit", "a.toml", "-o", "a.nc", "-o", "a.json", "-o", "a.png").stdout
    assert words.strip().endswith("Saved as a.nc.\nSaved as a.json.\nFigure written to a.png.")
    record = json.loads((workplace / "a.json").read_text())
    assert record == json.loads(attnlab("limit", "a.toml", "--json").stdout) | {
        "work": record["work"]
    }
    assert load("a.nc").leaders.tolist() == record["leaders"]
    assert "is the name of a movie" in refused("limit", "a.toml", "-o", "a.gif")


def test_a_limit_is_not_taken_for_a_run(workplace, polytope):
    polytope.save("a.toml")
    attnlab("limit", "a.toml", "-o", "a.nc")
    for verb in (
        ("limit", "a.nc"),
        ("check", "a.nc"),
        ("predict", "a.nc"),
    ):
        assert "a.nc must hold a run or a Spec; it holds Limit" in refused(*verb)
    said = refused("plot", "a.nc", "-o", "b.gif")
    assert "a.nc must hold a run, a flow, a sentence or a repeated layer to be filmed" in said
    attnlab("plot", "a.nc", "-o", "b.png")
    assert (workplace / "b.png").read_bytes().startswith(b"\x89PNG")
