"""Runs on disk: every bit comes back, a file is whole or not there, and what is no run is refused
with the reason.
"""

from __future__ import annotations

import dataclasses
import json
import os

import h5py
import numpy as np
import pytest
import xarray

from attnlab import Spec, Status, Weights, files, simulate, store
from attnlab.store import CannotWrite, load, save, to_xarray
from run_files import assert_same_run, is_same, open_files, refused


def test_every_bit_comes_back(any_run, tmp_path):
    save(any_run, tmp_path / "run.nc")
    back = load(tmp_path / "run.nc")
    assert_same_run(any_run, back)
    assert is_same(dict(any_run.observed), dict(back.observed))
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.parametrize("batch", [(), (3,)], ids=["one", "batch"])
def test_a_run_without_a_saved_time_comes_back(batch, tmp_path):
    x0 = np.random.default_rng(0).normal(size=(*batch, 4, 2))
    run = simulate(Weights(V=np.eye(2)), x0, times=[1.0, 2.0], max_steps=1, throw=False)
    assert run.states.shape == (*batch, 0, 4, 2)
    save(run, tmp_path / "run.nc")
    assert_same_run(load(tmp_path / "run.nc"), run)


def test_numbers_about_the_run_come_back(make_run, tmp_path):
    run = make_run("observed")
    save(run, tmp_path / "run.nc")
    stats = dict(load(tmp_path / "run.nc").stats)
    assert (
        stats["steps"] == 12
        and stats["path"] == "tiled"
        and stats["more"] == {"a": [1, 2.5]}
        and stats["seconds"] == 0.1
    )
    assert is_same(stats["each"], np.arange(3))


def test_a_long_spec_fits(make_run, tmp_path):
    """An HDF5 attribute that is not a string of variable length ends at 64 KiB."""
    numbers = np.random.default_rng(0).standard_normal((2000, 10))
    spec = Spec(
        weights={"family": "identity"}, start={"law": "given", "x": numbers}, solve={"t_end": 1}
    )
    run = dataclasses.replace(make_run("plain"), spec=spec, stats={"each": numbers})
    save(run, tmp_path / "run.nc")
    back = load(tmp_path / "run.nc")
    assert back.spec == spec and is_same(back.stats["each"], numbers)


def test_what_is_saved_twice_is_the_same(make_run, tmp_path):
    save(make_run("batch"), tmp_path / "a.nc")
    save(load(tmp_path / "a.nc"), tmp_path / "b.nc")
    assert_same_run(load(tmp_path / "a.nc"), load(tmp_path / "b.nc"))


def test_the_file_says_where_it_comes_from(make_run, tmp_path):
    run = make_run("observed")
    save(run, tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert json.loads(data.attrs["spec"]) == run.spec.to_dict()
        assert data.attrs["digest"] == run.spec.digest()
        assert data.attrs["numpy_version"] == np.__version__
        assert {"attnlab_version", "numba_version", "python_version", "created"} <= set(data.attrs)
        assert data["states"].dims == ("time", "token", "coordinate")


def test_a_file_has_the_rights_of_any_new_file(make_run, tmp_path):
    save(make_run("plain"), tmp_path / "run.nc")
    (tmp_path / "plain.txt").write_text("")
    assert os.stat(tmp_path / "run.nc").st_mode == os.stat(tmp_path / "plain.txt").st_mode


# ------------------------------------------------------------------------------------------- whole
# or not at all


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("a bug"), KeyboardInterrupt()]
)
def test_a_write_that_fails_leaves_the_old_file(make_run, tmp_path, monkeypatch, error):
    path = tmp_path / "run.nc"
    save(make_run("plain"), path)
    before = path.read_bytes()

    def fails(file):
        raise error  # with all of it written, and nothing renamed

    monkeypatch.setattr(files.os, "fsync", fails)
    with pytest.raises(CannotWrite if isinstance(error, OSError) else type(error)) as caught:
        save(make_run("batch"), path)
    if isinstance(error, OSError):
        sentence = (
            f"{path} cannot be written (No space left on device): make room there, or choose"
            " another folder."
        )
        assert str(caught.value) == sentence
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.nc"]


def test_a_file_is_replaced_whole(make_run, tmp_path):
    path = tmp_path / "run.nc"
    save(make_run("plain"), path)
    load(path)
    save(make_run("batch"), path)
    assert_same_run(load(path), make_run("batch"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (".", "is a folder: give the name"),
        ("no/run.nc", "There is no folder .*no. Create"),
        ("file/run.nc", "There is no folder"),
    ],
)
def test_a_place_that_takes_no_file_is_a_sentence(make_run, tmp_path, name, sentence):
    (tmp_path / "file").write_text("a regular file is no folder, for root neither")
    with pytest.raises(CannotWrite, match=sentence) as caught:
        save(make_run("plain"), tmp_path / name)
    assert isinstance(caught.value, OSError)


def test_a_folder_that_forbids_writing_is_a_sentence(make_run):
    """/proc takes no files, not even from root, and is no folder at all on other systems."""
    with pytest.raises(
        CannotWrite, match="/proc/run.nc cannot be written|There is no folder /proc"
    ):
        save(make_run("plain"), "/proc/run.nc")


# --------------------------------------------------------------------------------------------- what
# is no run


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(make_run, tmp_path, part):
    save(make_run("observed"), tmp_path / "run.nc")
    whole = (tmp_path / "run.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(whole[: int(part * len(whole))])
    assert any(
        words in refused(tmp_path / "cut.nc") for words in ("is cut off", "is not a NetCDF-4 file")
    )


def test_one_byte_less_is_cut_off(make_run, tmp_path):
    save(make_run("plain"), tmp_path / "run.nc")
    (tmp_path / "cut.nc").write_bytes((tmp_path / "run.nc").read_bytes()[:-1])
    assert "is cut off: it was not written or copied to its end" in refused(tmp_path / "cut.nc")


def test_an_empty_file_and_a_text_are_refused(tmp_path):
    for name, text in (("empty.nc", ""), ("text.nc", "[weights]\n" * 1000)):
        (tmp_path / name).write_text(text)
        assert "is not a NetCDF-4 file" in refused(tmp_path / name)


def test_no_file_and_a_folder_are_refused(tmp_path):
    assert refused(tmp_path / "no.nc") == f"There is no run at {tmp_path / 'no.nc'}."
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "no.nc")
    assert "is a folder" in refused(tmp_path)


def test_the_file_of_another_program_is_refused(tmp_path):
    xarray.Dataset({"a": ("t", np.arange(3.0))}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["a"] = np.arange(3)
    for name in ("other.nc", "plain.h5"):
        assert "not a run that" in refused(tmp_path / name)


def test_a_newer_format_is_refused(make_run, tmp_path):
    save(make_run("plain"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        file.attrs[store.MARKER] = store.FORMAT + 1
    assert (
        f"has format {store.FORMAT + 1}, but this attnlab reads up to format {store.FORMAT}"
        in refused(tmp_path / "run.nc")
    )


def test_a_run_that_lacks_a_part_is_refused(make_run, tmp_path):
    save(make_run("plain"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        del file["log_scale"]
    assert "is damaged" in refused(tmp_path / "run.nc")


def test_a_run_that_is_read_is_closed(make_run, tmp_path):
    save(make_run("plain"), tmp_path / "run.nc")
    load(tmp_path / "run.nc")
    assert os.path.realpath(tmp_path / "run.nc") not in open_files()


# ------------------------------------------------------------------------------------------------
# labelled arrays


def test_labelled_arrays_hold_both_frames(any_run):
    data = to_xarray(any_run)
    batch = ("batch",) if any_run.batch else ()
    for name in ("x", "z"):
        if name in data:
            assert data[name].dims == (*batch, "time", "token", "coordinate")
            np.testing.assert_array_equal(data[name].values, getattr(any_run, name))
        else:
            assert data.attrs[f"{name}_absent"].endswith(".")
    np.testing.assert_array_equal(data["time"], any_run.times)
    assert data["status"].dims == batch
    assert ("error" in data) == (any_run.error is not None)


def test_a_frame_that_is_not_there_is_explained(make_run):
    assert "sphere" in to_xarray(make_run("sphere")).attrs["z_absent"]
    huge = to_xarray(make_run("huge"))
    assert "x" not in huge and "exceeds the range of double precision" in huge.attrs["x_absent"]


def test_labelled_arrays_hold_what_was_observed(make_run):
    run = make_run("observed")
    data = to_xarray(run)
    assert data["real"].dims == ("time",) and data["complex"].dims == ("time", "complex_axis_0")
    assert data["counts"].dims == ("counts_axis_0",)
    assert (
        data.attrs["digest"] == run.spec.digest() and data.attrs["numpy_version"] == np.__version__
    )


@pytest.mark.parametrize("kind", ["plain", "batch", "factored"])
def test_one_number_a_head_has_the_axis_head(make_run, tmp_path, kind):
    run = make_run(kind)
    heads = run.dynamics.weights.heads
    numbers = np.zeros((*run.batch, len(run.times), heads))
    run = dataclasses.replace(
        run, observed={"rank": numbers, "other": np.zeros((*numbers.shape[:-1], heads + 4))}
    )
    data = to_xarray(run)
    assert data["rank"].dims[-2:] == ("time", "head") and data["other"].dims[-1] == "other_axis_0"
    save(run, tmp_path / "run.nc")
    assert is_same(dict(load(tmp_path / "run.nc").observed), dict(run.observed))
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as file:
        assert file["observed_rank"].dims == data["rank"].dims


def test_the_status_of_each_member_is_named(make_run):
    assert list(to_xarray(make_run("batch"))["status"].values) == [
        Status.OK.name,
        Status.STALLED.name,
    ]
