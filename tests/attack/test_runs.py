"""Damaged .nc files: each is refused with a sentence, or loads as the run that was saved, bit for
bit.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import workers
from mutations import damage_bytes, damage_table, hostile_values
from test_specs import SPECS
from worker import Fault

FEW, MANY = 160, 3000

WORDS = ("frame", "dynamics", "solve", "source", "spec", "stats", "attnlab_format")
"""Attributes that say what a run is."""


def prepare(folder: Path) -> None:
    """Save sound runs."""
    from attnlab.run import run_spec
    from attnlab.store import save
    from attnlab.types import Spec

    for number, table in enumerate(SPECS):
        save(run_spec(Spec.from_dict(table)), folder / f"sound_{number}.nc")


def attempt(rng: random.Random, folder: Path) -> None:
    """One damaged file through `load`."""
    from attnlab.store import load

    sound = folder / f"sound_{rng.randrange(len(SPECS))}.nc"
    path = folder / "damaged.nc"
    if rng.random() < 0.5:
        path.write_bytes(damage_bytes(sound.read_bytes(), rng))
        how = "bytes"
    else:
        path.write_bytes(sound.read_bytes())
        how = damage_contents(path, rng)
    try:
        found = load(path)
    except (ValueError, OSError):
        raise
    except Exception as problem:
        raise Fault("traceback", f"{how}: {type(problem).__name__}: {str(problem)[:200]}") from None
    if not is_same(found, load(sound)):
        raise Fault("silent", f"{how}: another run than {sound.name} was loaded")


def damage_contents(path: Path, rng: random.Random) -> str:
    """Change a file as one who knows HDF5 would, and say what was changed."""
    import h5py

    ways = (
        _change_word,
        _change_table,
        _drop,
        _reshape,
        _poison,
        _change_number,
        _link_elsewhere,
        _hide_storage,
        _claim_room,
    )
    way = rng.choice(ways)
    with h5py.File(path, "r+") as file:
        return f"{way.__name__}: {way(file, rng)}"


def _array(file: Any, rng: random.Random) -> str:
    return rng.choice(
        sorted(
            name
            for name in file
            if file[name].dtype.kind == "f" and file[name].ndim and file[name].size
        )
    )


def _change_word(file: Any, rng: random.Random) -> str:
    name, value = rng.choice(WORDS), rng.choice(hostile_values()[1:-1])
    try:
        file.attrs[name] = value
    except (
        TypeError,
        ValueError,
        OSError,
        OverflowError,
    ):  # HDF5 cannot hold it: a word that it can
        value = file.attrs[name] = "banana"
    return f"{name} = {value!r:.60}"


def _change_table(file: Any, rng: random.Random) -> str:
    name = rng.choice(("dynamics", "solve", "stats"))
    changed = damage_table(json.loads(file.attrs[name]), rng)
    try:
        text = json.dumps(changed)
    except RecursionError:
        text = "[" * 3000
    if len(text) > 60000 or "\x00" in text:
        text = text[:100]
    file.attrs[name] = text
    return f"{name} = {text:.200}"


def _drop(file: Any, rng: random.Random) -> str:
    if rng.random() < 0.5:
        name = rng.choice(sorted(file))
        del file[name]
    else:
        name = rng.choice(WORDS)
        del file.attrs[name]
    return name


def _reshape(file: Any, rng: random.Random) -> str:
    name = _array(file, rng)
    old = file[name][...]
    with np.errstate(all="ignore"):
        new = rng.choice(
            [
                old[..., :0],
                old[..., None],
                old.ravel(),
                old.astype("f4"),
                old.astype("i8"),
                np.float64(1.0),
                np.array([b"banana"]),
                old[..., ::-1],
                old.astype(complex),
                np.concatenate([old, old]),
            ]
        )
    del file[name]
    file[name] = new
    return f"{name} {old.shape} -> {np.shape(new)} {np.asarray(new).dtype}"


def _poison(file: Any, rng: random.Random) -> str:
    name = _array(file, rng)
    values = file[name][...]
    place = tuple(rng.randrange(length) for length in values.shape)
    with np.errstate(over="ignore"):  # the marks of axes are in single precision
        values[place] = rng.choice((math.nan, math.inf, -math.inf, 1e308))
    file[name][...] = values
    return f"{name}{place} = {values[place]}"


def _change_number(file: Any, rng: random.Random) -> str:
    name = _array(file, rng)
    values = file[name][...]
    place = tuple(rng.randrange(length) for length in values.shape)
    values[place] = values[place] * (1 + 2.0 ** -rng.randrange(1, 40)) + 2.0 ** -rng.randrange(
        20, 40
    )
    file[name][...] = values
    return f"{name}{place} = {values[place]}"


def _link_elsewhere(file: Any, rng: random.Random) -> str:
    import h5py

    name = _array(file, rng)
    del file[name]
    link = rng.choice(
        (
            h5py.ExternalLink("/etc/passwd", "/"),
            h5py.ExternalLink("sound_0.nc", "states"),
            h5py.SoftLink("/"),
            h5py.SoftLink(f"/{name}"),
            h5py.SoftLink("/nowhere"),
        )
    )
    file[name] = link
    return f"{name} -> {link!r}"


def _hide_storage(file: Any, rng: random.Random) -> str:
    """Numbers out of another file of the reader's: external storage, or a virtual dataset."""
    import h5py

    name = _array(file, rng)
    shape = file[name].shape
    secret = Path(file.filename).with_name("secret.bin")
    secret.write_bytes(np.ones(shape).tobytes())
    del file[name]
    if rng.random() < 0.5:
        file.create_dataset(name, shape, "f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])
        return f"{name}: external storage"
    layout = h5py.VirtualLayout(shape, "f8")
    layout[...] = h5py.VirtualSource(str(Path(file.filename).with_name("sound_0.nc")), name, shape)
    file.create_virtual_dataset(name, layout)
    return f"{name}: virtual"


def _claim_room(file: Any, rng: random.Random) -> str:
    """An array that takes no room on disk and more than all memory when it is read."""
    name = _array(file, rng)
    axes = file[name].ndim
    del file[name]
    file.create_dataset(
        name, (10**13 // 10 ** (3 * (axes - 1)), *[1000] * (axes - 1)), "f8", chunks=True
    )
    return name


def is_same(one: Any, other: Any) -> bool:
    """Whether two records are the same, arrays to the bit."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(
            is_same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return (
            one.tobytes() == other.tobytes()
            if one.dtype != object
            else one.tolist() == other.tolist()
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(
            is_same(a, b) for a, b in zip(one, other, strict=True)
        )
    return one == other or one != one and other != other


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(FEW), id="few"),
        pytest.param(range(FEW, MANY), id="many", marks=pytest.mark.slow),
    ],
)
def test_every_damaged_run_is_refused_or_the_same(numbers, tmp_path):
    outcomes = workers.try_all("test_runs", numbers, tmp_path)
    workers.assert_clean(outcomes)
    assert workers.counted(outcomes)["refused"] > 0.5 * len(numbers)


def test_the_judge_sees_a_change(tmp_path):
    """A run in which one bit differs is another run."""
    from attnlab.run import run_spec
    from attnlab.types import Spec

    one, other = (run_spec(Spec.from_dict(SPECS[0])) for _ in range(2))
    stats = dict(one.stats)
    object.__setattr__(other, "stats", stats)  # seconds differ
    assert is_same(one, other)
    states = np.array(other.states)
    states.ravel()[0] = np.nextafter(states.ravel()[0], 1)
    object.__setattr__(other, "states", states)
    assert not is_same(one, other)
