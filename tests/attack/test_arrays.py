"""Damaged .npy, .npz and .csv files beside a Spec: refused with a sentence, or finite numbers;
nothing is executed.
"""

from __future__ import annotations

import io
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import workers
from mutations import SPLICES, damage_bytes
from worker import Fault

FEW, MANY = 160, 3000

SPEC = """
[weights]
family = "given"
V = "{name}"
[start]
law = "sphere"
n = 4
d = 3
[solve]
t_end = 0.1
"""

SHAPES = (
    "(3, 3)",
    "(9,)",
    "(3, 3, 1)",
    "(10**9,)",
    "(1000000000000, 3)",
    "(-3, 3)",
    "(0, 3)",
    "()",
    "(3.5, 2)",
    "(True, 9)",
    "None",
    "[3, 3]",
    "(2**62, 4)",
    "(" * 200,
    "(9, " + "1, " * 500 + ")",
    "__import__('os').mkdir('harmed')",
)
TYPES = (
    "<f8",
    ">f8",
    "<f4",
    "<i8",
    "|b1",
    "<c16",
    "|O",
    "<U3",
    "|V8",
    "|S9",
    "<f2",
    "<m8",
    "f8,f8",
    "banana",
    "|O8",
    "<f8" * 100,
)


class Harm:
    """Unpickling it makes a folder."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.mkdir, ("harmed",)


def prepare(folder: Path) -> None:
    """Load one sound Spec of each kind of file."""
    for suffix in (".npy", ".npz", ".csv"):
        (folder / f"V{suffix}").write_bytes(sound(suffix))
        loaded(folder, f"V{suffix}")


def sound(suffix: str) -> bytes:
    """A sound file of numbers."""
    V = np.random.default_rng(0).normal(size=(3, 3))
    out = io.BytesIO()
    if suffix == ".npy":
        np.save(out, V)
    elif suffix == ".npz":
        np.savez_compressed(out, V=V, K=V)
    else:
        out.write("\n".join(",".join(map(repr, row)) for row in V.tolist()).encode())
    return out.getvalue()


def loaded(folder: Path, name: str) -> np.ndarray:
    """The matrix that a Spec with that file means."""
    from attnlab.cli.inputs import read_spec
    from attnlab.run import resolve

    (folder / "a.toml").write_text(SPEC.format(name=name))
    return resolve(read_spec(folder / "a.toml")).dynamics.weights.full_V


def attempt(rng: random.Random, folder: Path) -> None:
    """One damaged file of numbers."""
    import os

    os.chdir(folder)
    suffix = rng.choice((".npy", ".npz", ".csv"))
    ways = {
        ".npy": (_bytes, _header, _pickle),
        ".npz": (_bytes, _members, _bomb),
        ".csv": (_bytes, _cells),
    }[suffix]
    data = rng.choice(ways)(suffix, rng)
    (folder / f"V{suffix}").write_bytes(data)
    try:
        found = loaded(folder, f"V{suffix}")
    finally:
        if (folder / "harmed").exists():
            raise Fault("executed", "A file of numbers was executed")
    if not np.isfinite(found).all():
        raise Fault("unhealthy", "numbers that are not finite were read")


def _bytes(suffix: str, rng: random.Random) -> bytes:
    return damage_bytes(sound(suffix), rng)


def _header(suffix: str, rng: random.Random) -> bytes:
    """A header that says something else, of the length that it has."""
    kind, order, shape = rng.choice(TYPES), rng.choice(("False", "True", "3")), rng.choice(SHAPES)
    header = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}"
    text = header.encode() + b"\n"
    version = rng.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text + sound(".npy")[-72:]


def _pickle(suffix: str, rng: random.Random) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([[Harm()]], dtype=object), allow_pickle=True)
    return rng.choice((out.getvalue(), pickle.dumps(Harm()), damage_bytes(out.getvalue(), rng)))


def _members(suffix: str, rng: random.Random) -> bytes:
    """An archive with other members."""
    out = io.BytesIO()
    names = ("V.npy", "V", "../V.npy", "/etc/V.npy", "V.npy/", "x.npy", "\u202eV.npy", "V.npy.npy")
    with zipfile.ZipFile(
        out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    ) as file:
        for name in rng.sample(names, rng.randint(0, 3)):
            data = rng.choice(
                (
                    sound(".npy"),
                    _header(".npy", rng),
                    _pickle(".npy", rng),
                    b"",
                    damage_bytes(sound(".npy"), rng),
                )
            )
            file.writestr(name, data)
    return out.getvalue()


def _bomb(suffix: str, rng: random.Random) -> bytes:
    """A member that is far longer than the file, and one whose length is a lie."""
    out = io.BytesIO()
    long = sound(".npy")[:-72].replace(
        b"(3, 3), }", b"(1, 9000000000), }"[:9]
    ) + b"\0" * rng.choice((10**5, 10**7))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("V.npy", long)
    data = bytearray(out.getvalue())
    if rng.random() < 0.5:
        place = data.rfind(b"PK\x01\x02")
        data[place + 24 : place + 28] = rng.choice(
            (b"\xff\xff\xff\x7f", b"\x10\0\0\0", b"\0\0\0\0")
        )  # its length unpacked
    return bytes(data)


def _cells(suffix: str, rng: random.Random) -> bytes:
    """A table with strange cells."""
    cells = (
        "1",
        "-0.5",
        "1e308",
        "1e999",
        "nan",
        "inf",
        "",
        " ",
        "banana",
        "0x10",
        "1_0",
        "1;2",
        "\u0661",
        "1,5",
        "#",
        '"1"',
        "\x00",
        "1 2",
    )
    rows = [
        ",".join(rng.choice(cells[:2] if rng.random() < 0.85 else cells) for _ in range(3))
        for _ in range(3)
    ]
    text = rng.choice(("\n", "\r\n", "\r", "\n\n")).join(rows).encode()
    return (
        rng.choice((b"", b"\xef\xbb\xbf", b"a,b,c\n", b"# x\n"))
        + text
        + rng.choice((b"", b"\n", *SPLICES[:3]))
    )


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(FEW), id="few"),
        pytest.param(range(FEW, MANY), id="many", marks=pytest.mark.slow),
    ],
)
def test_every_damaged_file_of_numbers_is_refused_or_finite(numbers, tmp_path):
    outcomes = workers.try_all("test_arrays", numbers, tmp_path)
    workers.assert_clean(outcomes)
    counts = workers.counted(outcomes)
    assert counts["refused"] > 0.5 * len(numbers) and counts["result"] > 0.05 * len(numbers), counts
