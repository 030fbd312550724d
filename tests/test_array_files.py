"""Numbers of a Spec in files of their own: what is read, what the digest covers, and one sentence
for whatever is wrong.
"""

from __future__ import annotations

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

import attnlab as al
from attnlab import array_files
from attnlab.array_files import BadArray, read_array
from attnlab.run import resolve
from command_line import attnlab, refused

V = np.array([[1.0, 0.5, -0.1], [0.25, 2.0 / 3.0, 0.0], [1e-17, -0.3, 1.5]])
X = np.random.default_rng(0).normal(size=(5, 3))

SPEC = """
[weights]
family = "given"
V = "{V}"
[start]
law = "given"
x = "{x}"
[solve]
t_end = 0.01
saves = 2
"""


def write_spec(folder, V_name="V.npy", x_name="x0.csv"):
    (folder / "a.toml").write_text(SPEC.format(V=V_name, x=x_name))
    return folder / "a.toml"


def write(folder, name, array, **more):
    """A file of numbers in the format of its suffix."""
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, array)
    elif name.endswith(".npz"):
        np.savez(path, **more)
    else:
        path.write_text("\n".join(",".join(map(repr, row)) for row in array.tolist()))
    return path


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "V.npy", V)
    write(tmp_path, "x0.csv", X)
    return tmp_path


def test_every_bit_of_the_numbers_arrives(folder):
    resolved = resolve(al.Spec.load(write_spec(folder)))
    assert (
        resolved.dynamics.weights.V[0].tobytes() == V.tobytes()
        and resolved.x0.tobytes() == X.tobytes()
    )


def test_the_digest_is_that_of_the_numbers_written_out(folder):
    spec = al.Spec.load(write_spec(folder))
    written = al.Spec(
        weights={"family": "given", "V": V},
        start={"law": "given", "x": X},
        solve={"t_end": 0.01, "saves": 2},
    )
    assert spec.digest() == written.digest() and spec == written
    assert spec.files == {"weights.V": "V.npy", "start.x": "x0.csv"} and written.files == {}
    write(folder, "V.npy", np.nextafter(V, 9.0))
    assert al.Spec.load(folder / "a.toml").digest() != spec.digest()


def test_a_run_holds_everything_without_the_files(folder, monkeypatch):
    run = al.run_spec(al.Spec.load(write_spec(folder)))
    al.save(run, folder / "run.nc")
    (folder / "V.npy").unlink()
    back = al.load(folder / "run.nc")
    assert (
        back.spec == run.spec and resolve(back.spec).dynamics.weights.V[0].tobytes() == V.tobytes()
    )


def test_names_are_relative_to_the_spec(folder, monkeypatch, tmp_path_factory):
    inner = folder / "inner"
    inner.mkdir()
    spec = write_spec(inner, "../V.npy", str(folder / "x0.csv"))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert resolve(al.Spec.load(spec)).x0.tobytes() == X.tobytes()
    assert attnlab("run", spec, "-o", "run.nc").exit_code == 0


def test_several_heads_factors_and_lists(folder):
    heads = np.random.default_rng(1).normal(size=(2, 3, 3))
    np.save(folder / "heads.npy", heads)
    np.save(folder / "fortran.npy", np.asfortranarray(heads[0]))
    np.save(folder / "single.npy", heads[0].astype(np.float32))
    np.save(folder / "whole.npy", np.arange(9).reshape(3, 3))
    np.save(folder / "times.npy", np.array([[0.0], [0.005], [0.01]]))
    spec = al.Spec.load(write_spec(folder, "heads.npy"))
    assert np.array_equal(resolve(spec).dynamics.weights.V, heads)
    assert np.array_equal(read_array(folder / "fortran.npy", "V"), heads[0])
    assert np.array_equal(
        read_array(folder / "single.npy", "V"), heads[0].astype(np.float32).astype(float)
    )
    assert np.array_equal(read_array(folder / "whole.npy", "V"), np.arange(9.0).reshape(3, 3))
    (folder / "b.toml").write_text(
        SPEC.format(V="V.npy", x="x0.csv").replace("t_end = 0.01\nsaves = 2", 'times = "times.npy"')
    )
    assert al.Spec.load(folder / "b.toml").solve == {"times": [0.0, 0.005, 0.01]}


def test_an_archive_is_asked_for_the_key(folder):
    write(folder, "both.npz", None, V=V, K=2 * V)
    write(folder, "one.npz", None, anything=V)
    write(folder, "x.npz", None, x0=X, other=V)
    assert np.array_equal(read_array(folder / "both.npz", "V"), V) and np.array_equal(
        read_array(folder / "both.npz", "K"), 2 * V
    )
    assert np.array_equal(read_array(folder / "one.npz", "V"), V) and np.array_equal(
        read_array(folder / "x.npz", "x"), X
    )
    np.savez_compressed(folder / "small.npz", V=np.zeros((300, 300)))
    assert read_array(folder / "small.npz", "V").shape == (300, 300)
    with pytest.raises(
        BadArray, match="must hold an array called Q, or one array only. It holds: K, V."
    ):
        read_array(folder / "both.npz", "Q")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1 2\n3\t4", [[1, 2], [3, 4]]),
        ("a,b\n1,2", [[1, 2]]),
        ("# a\n\n1,2\n", [[1, 2]]),
        ("\ufeff1,2e-3", [[1, 0.002]]),
        ("1\n2\n", [[1], [2]]),
        (" 1 , 2 \r\n3,4\r\n", [[1, 2], [3, 4]]),
    ],
)
def test_tables_are_read(tmp_path, text, numbers):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    assert read_array(tmp_path / "a.csv", "V").tolist() == numbers


def archive_of(*members) -> bytes:
    """A zip archive of (name, bytes)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


def npy(array, **options) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def claims(shape: str) -> bytes:
    """A .npy file whose header claims another shape."""
    return npy(np.zeros((2, 3))).replace(b"(2, 3), }", f"{shape}, }}".encode()[:60])


class Harm:
    """Unpickling it makes a file."""

    def __reduce__(self):
        return os.mkdir, ("harmed",)


BAD = {
    "words.csv": (b"1,2\n3,four\n", "line 2 has 'four' where a finite number must be"),
    "nan.csv": (b"1,2\n3,nan\n", "line 2 has 'nan' where a finite number"),
    "nan_first.csv": (b"nan,nan\n1,2\n3,4\n", "line 1 has 'nan' where a finite number"),
    "huge.csv": (b"1e999,2\n", "line 1 has '1e999' where a finite number"),
    "ragged.csv": (b"1,2\n\n3,4,5\n", "line 3 has 3 numbers, but the lines before it have 2"),
    "two_headers.csv": (b"a,b\nc,d\n1,2\n", "line 2 has 'c'"),
    "semicolons.csv": (b"1,5;2,5\n", "line 1 contains ';'"),
    "empty.csv": (b"\n# nothing\n", "holds no numbers"),
    "bytes.csv": (b"\xff\xfe1,2", "is not a text"),
    "underscores.csv": (b"1_000,2\n", "line 1 has '1_000'"),
    "objects.npy": (
        npy(np.array([Harm()], dtype=object), allow_pickle=True),
        "holds pickled objects, which are never read",
    ),
    "complex.npy": (npy(np.ones((2, 2)) * 1j), "must hold real numbers, but holds complex128"),
    "texts.npy": (npy(np.array(["a"])), "must hold real numbers"),
    "records.npy": (npy(np.zeros(2, dtype=[("a", float)])), "must hold real numbers"),
    "nan.npy": (npy(np.array([[1.0, np.nan]])), r"entry \(0, 1\) is nan"),
    "none.npy": (npy(np.zeros((0, 3))), "holds no numbers"),
    "cut.npy": (npy(np.zeros((20, 3)))[:-8], "is cut off|longer than the file"),
    "claims.npy": (claims("(10000000000, 3)"), "holds more than|longer than the file"),
    "claims_more.npy": (claims("(1000, 1000)"), "more than the file can hold"),
    "negative.npy": (claims("(-2, 3)"), "is damaged"),
    "text.npy": (b"hello", "is damaged, or not a .npy file"),
    "pickle.npy": (pickle.dumps(Harm()), "is damaged, or not a .npy file"),
    "text.npz": (b"hello", "is damaged, or not a .npz file"),
    "nothing.npz": (archive_of(("a.txt", b"a")), "must hold an array called V"),
    "objects.npz": (
        archive_of(("V.npy", npy(np.array([Harm()], dtype=object), allow_pickle=True))),
        "pickled objects",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_a_sentence(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    content, words = BAD[name]
    (folder / name).write_bytes(content)
    spec = write_spec(folder, name)
    with pytest.raises(ValueError, match=words) as caught:
        al.Spec.load(spec)
    assert str(caught.value).startswith(
        f"{spec}: Spec.weights.V: {folder / name} "
    ) and "\n" not in str(caught.value)
    assert not (folder / "harmed").exists()


def test_too_many_numbers_are_refused(folder, monkeypatch):
    monkeypatch.setattr(array_files, "MOST_NUMBERS", 8)
    for name in ("V.npy", "x0.csv"):
        with pytest.raises(BadArray, match="holds more than 8 numbers, too many for a Spec"):
            read_array(folder / name, "V")
    monkeypatch.setattr(array_files, "LONGEST_FILE", 1000)
    (folder / "bomb.npz").write_bytes(archive_of(("V.npy", b"\0" * 100_000)))
    assert (folder / "bomb.npz").stat().st_size < 1000
    with pytest.raises(BadArray, match="holds an array of 0 MB"):
        read_array(folder / "bomb.npz", "V")
    monkeypatch.setattr(array_files, "LONGEST_FILE", 100)
    with pytest.raises(BadArray, match="a file of numbers may have 0 MB"):
        read_array(folder / "V.npy", "V")


def test_what_is_no_file_is_a_sentence(folder):
    os.mkfifo(folder / "pipe.npy")
    (folder / "zero.npy").symlink_to("/dev/zero")
    (folder / "folder.npy").mkdir()
    for name, words in (
        ("pipe.npy", "is a device or a pipe"),
        ("zero.npy", "is a device or a pipe"),
        ("folder.npy", "is a folder"),
        ("missing.npy", "There is no file"),
        ("a" * 300 + ".npy", "cannot be read"),
    ):
        with pytest.raises(ValueError, match=words):
            al.Spec.load(write_spec(folder, name))
    assert "There is no file" in refused("run", write_spec(folder, "missing.csv"))


def test_nothing_is_read_unless_asked_for(folder, monkeypatch):
    """A Spec in Python reads no files by itself, and neither does one that comes out of a run's
    file.
    """
    monkeypatch.chdir(folder)
    spec = al.Spec(
        weights={"family": "given", "V": "V.npy"},
        start={"law": "given", "x": X},
        solve={"t_end": 1},
    )
    assert spec.weights["V"] == "V.npy" and spec.unread_files == {"weights.V": "V.npy"}
    with pytest.raises(
        ValueError, match=r"Spec.weights.V = 'V.npy' names a file that was not read"
    ):
        resolve(spec)
    assert resolve(spec.read_files()).dynamics.weights.V[0].tobytes() == V.tobytes()
    assert al.Spec.from_json(spec.to_json()).weights["V"] == "V.npy"
    assert spec.read_files(folder).unread_files == {}


def test_errors_name_the_file(folder):
    np.save(folder / "V.npy", V[:2])
    with pytest.raises(
        ValueError,
        match=r"V must be square.*\(Read from files: weights.V from V.npy, start.x from x0.csv.\)",
    ):
        resolve(al.Spec.load(write_spec(folder)))
