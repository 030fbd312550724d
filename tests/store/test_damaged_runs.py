"""Damaged and hostile runs: `load` gives back what was saved, or refuses with one sentence, within
seconds.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os

import h5py
import numpy as np
import pytest

from attnlab import netcdf, store
from attnlab.store import NotARun, document, load, save
from places import FROZEN
from run_files import assert_same_run, is_same, refused, signed

resource = pytest.importorskip("resource")


def another(value):
    """The next number, or another status."""
    if isinstance(value, bytes):
        return b"MAX_STEPS" if value == b"OK" else b"OK"
    if value.dtype.kind == "f":
        return np.nextafter(value, 9.0) if np.isfinite(value) else 7.0
    return value ^ 1


def test_a_number_that_changed_is_seen(any_run, tmp_path):
    save(any_run, tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r") as file:
        names = [name for name in json.loads(file.attrs[document.VARIABLES]) if file[name].size]
    assert {"states", "time"} < set(names)
    for name in names:
        save(any_run, tmp_path / "run.nc")
        with h5py.File(tmp_path / "run.nc", "r+") as file:
            file[name][(0,) * file[name].ndim] = another(np.asarray(file[name][()]).ravel()[0])
        assert "is damaged" in refused(tmp_path / "run.nc"), name


@pytest.mark.parametrize("word", store.WORDS)
def test_a_word_that_changed_is_seen(make_run, tmp_path, word):
    save(make_run("observed"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        before = file.attrs[word]
        after = {"frame": "z", "source": "gift", "digest": "0" * 16}.get(
            word, before.replace("0", "3", 1)
        )
        assert after != before
        file.attrs[word] = after
    assert "does not match its saved checksum" in refused(tmp_path / "run.nc")


def test_a_run_of_format_1_has_no_checksum_and_still_loads(make_run, tmp_path):
    """Written before there were checksums; all other checks are for it too."""
    old = FROZEN / "run_format_1.nc"
    run, made = load(old), make_run("observed")
    assert_same_run(run, made)
    assert is_same(dict(run.observed), dict(made.observed))
    save(run, tmp_path / "new.nc")
    with h5py.File(tmp_path / "new.nc") as file:
        assert int(file.attrs[store.MARKER][0]) == 3 and len(file.attrs[store.CHECKSUM]) == 64
    (tmp_path / "old.nc").write_bytes(old.read_bytes())
    with h5py.File(tmp_path / "old.nc", "r+") as file:
        file["states"][0, 0, 0] = np.inf
    assert "states must be finite" in refused(tmp_path / "old.nc")


def test_a_run_of_format_2_still_loads_and_is_still_protected(make_run, tmp_path):
    """Written before files named their kind and held x and z."""
    old = FROZEN / "run_format_2.nc"
    with h5py.File(old) as file:
        assert (
            int(file.attrs[store.MARKER][0]) == 2
            and document.KIND not in file.attrs
            and "x" not in file
        )
    assert_same_run(load(old), make_run("batch"))
    (tmp_path / "old.nc").write_bytes(old.read_bytes())
    with h5py.File(tmp_path / "old.nc", "r+") as file:
        file["states"][0, 0, 0, 0] += 1e-9
    assert "does not match its saved checksum" in refused(tmp_path / "old.nc")


def put(name, value):
    """Overwrite every entry of an array."""

    def change(file):
        file[name][...] = value

    return change


def add(name, make):
    """Add an array that depends on the file."""
    return lambda file: file.create_dataset(name, data=make(file))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (put("error", -1e-9), "error must not be negative"),
        (
            add("observed_diameter", lambda file: np.full(len(file["time"]), np.nan)),
            "diameter must be finite",
        ),
        (
            add("observed_diameter", lambda file: np.full(len(file["time"]), np.inf)),
            "diameter must be finite",
        ),
        (
            add("observed_energy", lambda file: np.ones((len(file["time"]) + 1, 9))),
            "energy must hold numbers for each",
        ),
        (add("observed_word", lambda file: [b"a"] * 3), "word must hold numbers"),
        (put("log_scale", 1e7), "log_scale must be at most"),
        (lambda file: file.attrs.__setitem__("stats", "5"), "stats must be a table"),
    ],
)
def test_a_run_of_format_1_with_numbers_that_no_run_has_is_refused(tmp_path, change, reason):
    path = tmp_path / "old.nc"
    path.write_bytes((FROZEN / "run_format_1.nc").read_bytes())
    with h5py.File(path, "r+") as file:
        change(file)
    assert reason in refused(path)


def test_an_error_that_could_not_be_measured_comes_back(make_run, tmp_path):
    """The finer run may not get as far: then the error is NaN, and so it is in the file."""
    run = dataclasses.replace(make_run("plain"), error=float("nan"))
    save(run, tmp_path / "run.nc")
    assert np.isnan(load(tmp_path / "run.nc").error)


def test_a_file_of_a_later_format_must_have_a_checksum(make_run, tmp_path):
    save(make_run("plain"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        del file.attrs[store.CHECKSUM]
    assert "does not match its saved checksum" in refused(tmp_path / "run.nc")


def words_changed(name, **changed):
    """A change of entries in one of the JSON tables."""

    def change(file):
        file.attrs[name] = json.dumps(json.loads(file.attrs[name]) | changed)

    return change


def attribute(name, value):
    return lambda file: file.attrs.__setitem__(name, value)


def entry(name, place, value):

    def change(file):
        file[name][place] = value

    return change


NONSENSE = {
    "frame": (attribute("frame", "banana"), "Unknown frame 'banana'"),
    "auto": (attribute("frame", "auto"), "Unknown frame 'auto'"),
    "kernel": (
        words_changed("dynamics", kernel="softmbx"),
        "Unknown kernel 'softmbx'. Did you mean 'softmax'",
    ),
    "geometry": (words_changed("dynamics", geometry="torus"), "Unknown geometry"),
    "mask": (words_changed("dynamics", mask="halloween"), "Unknown mask"),
    "sigma": (words_changed("dynamics", sigma="sigmoid"), "Unknown activation"),
    "beta": (words_changed("dynamics", beta=float("nan")), "beta must be a finite number"),
    "key": (
        words_changed("dynamics", gamma=1),
        "dynamics has 'gamma', which this version of attnlab does not know",
    ),
    "stepper": (words_changed("solve", stepper="leapfrog"), "Unknown stepper"),
    "t_end": (words_changed("solve", t_end="soon"), "t_end must be a number"),
    "layers": (words_changed("solve", layers=2.5), "layers must be a number"),
    "list": (attribute("solve", "[]"), "solve must be a table of"),
    "deep": (attribute("stats", "[" * 100_000), "recursion"),
    "no JSON": (attribute("stats", "{"), "Expecting property name"),
    "type": (
        attribute(
            "stats", '{"table": {"a": {"array": [1], "dtype": "S2000000000", "shape": [1]}}}'
        ),
        "numbers and words",
    ),
    "status": (entry("status", (), "FINE"), "Unknown status 'FINE'"),
    "infinite": (entry("states", (0, 0, 0), np.inf), "states must be finite"),
    "NaN": (entry("states", (-1,), np.nan), "states must be finite"),
    "scale": (entry("log_scale", (1,), np.nan), "states must be finite"),
    "time": (entry("time", (1,), np.nan), "times must be finite"),
    "backward": (entry("time", (1,), 7.0), "times must ascend"),
    "weights": (entry("V", (0, 0, 0), np.inf), "V must be finite"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_words_and_numbers_that_no_run_has_are_refused(make_run, tmp_path, name):
    """Also where the checksum is right."""
    change, sentence = NONSENSE[name]
    save(make_run("observed"), tmp_path / "run.nc")
    assert sentence in refused(signed(tmp_path / "run.nc", change))


def test_only_a_member_that_stopped_may_end_in_nan(make_run, tmp_path):
    run = make_run("batch")
    save(run, tmp_path / "run.nc")
    assert np.isnan(load(tmp_path / "run.nc").states[1, 2:]).all()
    for place, value in (
        ((1, 0), np.nan),
        ((1, 2, 0, 0), 1.0),
        ((0, 2), np.nan),
        ((1, 2, 0, 0), np.inf),
    ):
        save(run, tmp_path / "run.nc")
        assert "states must be finite" in refused(
            signed(tmp_path / "run.nc", entry("states", place, value))
        ), place


def renamed(file, name):
    """Take a variable out of its place, for another to take it; returns its array."""
    array = file[name][()]
    del file[name]
    return array


def external(file):
    array = renamed(file, "states")
    file.create_dataset(
        "states", array.shape, array.dtype, external=[("/etc/passwd", 0, array.nbytes)]
    )


def virtual(file):
    array = renamed(file, "states")
    layout = h5py.VirtualLayout(array.shape, array.dtype)
    layout[...] = h5py.VirtualSource("/etc/passwd", "states", array.shape)
    file.create_virtual_dataset("states", layout)


def linked(file):
    renamed(file, "states")
    file["states"] = h5py.ExternalLink("/etc/passwd", "states")


def linked_inside(file):
    renamed(file, "V")
    file["V"] = h5py.SoftLink("/Q")


def compressed(file):
    file.create_dataset("states", data=renamed(file, "states"), compression="gzip")


def in_pieces(file):
    array = renamed(file, "states")
    file.create_dataset(
        "states", (*array.shape[:-1], 10**12), array.dtype, chunks=(1, 1, 1)
    )  # of which none is there


def never_written(file):
    array = renamed(file, "states")
    file.create_dataset(
        "states", (10**7, *array.shape[1:]), array.dtype
    )  # 1 GB, in a file of 25 kB


def folder(file):
    renamed(file, "states")
    file.create_group("states")


def reference(file):
    renamed(file, "states")
    file.create_dataset("states", data=file["V"].ref, dtype=h5py.ref_dtype)


def empty(file):
    renamed(file, "states")
    file["states"] = h5py.Empty("f8")


ELSEWHERE = {
    external: "keeps states in another file", virtual: "keeps states in another file",
    linked: "points to another place", linked_inside: "points to another place",
    compressed: "compressed or in pieces", in_pieces: "compressed or in pieces", never_written: "longer than the file",
    folder: "is damaged", reference: "must hold numbers", empty: "has no entries",
}  # fmt: skip


@pytest.mark.parametrize("change", ELSEWHERE, ids=lambda change: change.__name__)
def test_what_does_not_lie_in_the_file_is_not_read(make_run, tmp_path, change):
    save(make_run("observed"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        change(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert ELSEWHERE[change] in refused(tmp_path / "run.nc")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_the_file_of_another_place_is_not_even_opened(make_run, tmp_path):
    """A pipe in its place would never answer; asking for the shape of an open-ended array already
    opens it.
    """
    os.mkfifo(tmp_path / "pipe")
    save(make_run("plain"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        array = renamed(file, "states")
        layout = h5py.VirtualLayout(array.shape, array.dtype, maxshape=(None, *array.shape[1:]))
        source = h5py.VirtualSource(
            tmp_path / "pipe", "states", array.shape, maxshape=(None, *array.shape[1:])
        )
        layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
        file.create_virtual_dataset("states", layout)
    assert "keeps states in another file" in refused(tmp_path / "run.nc")


def test_texts_that_are_shared_take_no_more_memory_than_the_file(make_run, tmp_path):
    """100 000 entries that are all the same text of 1 MB, which is in the file once."""
    save(make_run("batch"), tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        del file["status"]
        file.create_dataset("status", (2,), h5py.string_dtype(), data=["A" * 10**6, "B"])
        place = file["status"].id.get_offset()
    whole = bytearray((tmp_path / "run.nc").read_bytes())
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        del file["status"]
        file.create_dataset("status", (100_000,), h5py.string_dtype(), data=["C"] * 100_000)
        new = file["status"].id.get_offset()
        size = file["status"].id.get_storage_size()
    pointer = bytes(whole[place : place + 16])
    whole = bytearray((tmp_path / "run.nc").read_bytes())
    whole[new : new + size] = pointer * 100_000
    (tmp_path / "run.nc").write_bytes(whole)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(tmp_path / "run.nc")
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000
    )  # kB; all of them: 100 GB


def test_endless_and_oversized_files_are_refused_at_once(make_run, tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    (tmp_path / "zero.nc").symlink_to("/dev/zero")
    (tmp_path / "terminal.nc").symlink_to("/dev/tty")
    for name in ("pipe.nc", "zero.nc", "terminal.nc"):
        assert "is a device or a pipe" in refused(tmp_path / name)
    save(make_run("plain"), tmp_path / "run.nc")
    os.truncate(tmp_path / "run.nc", 10**13)  # of which the disk holds 25 kB
    assert "has 1e+04 GB, but " in refused(tmp_path / "run.nc")


def test_texts_from_which_hdf5_does_not_come_back_are_refused(make_run, tmp_path):
    """An entry of length 0 in a heap of texts: HDF5 walks on by 0 bytes for ever, and Ctrl-C does
    not end it.
    """
    save(make_run("observed"), tmp_path / "run.nc")
    whole = (tmp_path / "run.nc").read_bytes()
    heaps = [place for place in range(len(whole)) if whole[place : place + 4] == b"GCOL"]
    assert heaps
    for heap in heaps:
        place = heap + 16
        while (
            index := int.from_bytes(whole[place : place + 2], "little")
        ) != 0:  # entry 0 is the free rest
            place += 16 + -(-int.from_bytes(whole[place + 8 : place + 16], "little") // 8) * 8
        assert index == 0
        for length in (0, 2**64 - 16, 2**63):
            (tmp_path / "run.nc").write_bytes(
                whole[: place + 8] + length.to_bytes(8, "little") + whole[place + 16 :]
            )
            assert "is damaged: its words cannot be found" in refused(tmp_path / "run.nc")


@pytest.mark.parametrize("block", [5, 7, 64])
def test_heaps_are_found_wherever_blocks_end(monkeypatch, block):
    monkeypatch.setattr(netcdf, "READ_BLOCK", block)
    rng = np.random.default_rng(block)
    for _ in range(50):
        text = bytes(rng.choice(list(b"GCOL\1"), rng.integers(100)).astype("u1"))
        text += netcdf.HEAP * int(rng.integers(3))
        places = [place for place in range(len(text)) if text[place : place + 5] == netcdf.HEAP]
        file = io.BytesIO(text)
        assert [(place, file.seek(3))[0] for place in netcdf._places(file, netcdf.HEAP)] == places


def test_mutated_files_are_refused_or_the_same(make_run, tmp_path):
    rng = np.random.default_rng(17)
    for kind in ("plain", "batch", "observed"):
        save(make_run(kind), tmp_path / "run.nc")
        whole, right = (tmp_path / "run.nc").read_bytes(), load(tmp_path / "run.nc")
        for _ in range(70):
            place, length = int(rng.integers(len(whole))), int(rng.choice([1, 8, 64, 512]))
            filling = [bytes(length), b"\xff" * length, rng.bytes(length)][rng.integers(3)]
            (tmp_path / "run.nc").write_bytes(whole[:place] + filling + whole[place + length :])
            try:
                assert_same_run(load(tmp_path / "run.nc"), right)
            except NotARun:
                pass
