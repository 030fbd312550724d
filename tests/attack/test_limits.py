"""Damaged files of limits: each is refused, or is the limit that was saved; with a new checksum, no
false claim is verified.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_runs
import workers
from mutations import damage_bytes, damage_table, hostile_values
from worker import Fault

FEW, MANY = 120, 2500

WORDS = ("attnlab_kind", "attnlab_variables", "content", "attnlab_format", "checksum")


def make_limits() -> list[Any]:
    """Sound limits of several ways, and a batch."""
    import attnlab as al

    rng = np.random.default_rng(3)
    x, V = rng.uniform(-2, 2, (6, 2)), np.array([[1.0, 0.3], [0.1, 0.5]])
    positive = np.abs(x) / np.linalg.norm(x, axis=1, keepdims=True)
    return [
        al.limit(al.Weights(V=V), x, times=[1.0, 50.0]),
        al.limit(al.Weights(V=np.eye(2)), x, mask="causal", dt=0.25),
        al.limit(al.Weights(V=-V), x),
        al.limit(al.Weights(V=np.eye(2)), positive, geometry="sphere"),
        al.limit(al.Weights(V=V), x, work=1.0),
        al.limit(al.Weights(V=V), rng.uniform(-2, 2, (3, 5, 2))),
    ]


def prepare(folder: Path) -> None:
    """Save sound limits, and verify them once, which compiles what is needed."""
    import attnlab as al

    for number, limit in enumerate(make_limits()):
        al.save(limit, folder / f"sound_{number}.nc")
        al.verify(folder / f"sound_{number}.nc")


def attempt(rng: random.Random, folder: Path) -> None:
    """One damaged file through `load` and `verify`."""
    import attnlab as al

    sound = folder / f"sound_{rng.randrange(6)}.nc"
    path = folder / "damaged.nc"
    how, is_signed = "bytes", False
    if rng.random() < 0.3:
        path.write_bytes(damage_bytes(sound.read_bytes(), rng))
    else:
        path.write_bytes(sound.read_bytes())
        how = damage_contents(path, rng)
        is_signed = rng.random() < 0.7 and sign(path)
    try:
        found = al.load(path)
        verified = al.verify(found)
    except (ValueError, OSError):
        raise
    except Exception as problem:
        raise Fault("traceback", f"{how}: {type(problem).__name__}: {str(problem)[:200]}") from None
    right = al.load(sound)
    if not is_signed and not test_runs.is_same(found, right):
        raise Fault("silent", f"{how}: another limit than {sound.name} was loaded")
    judge(found, right, verified, f"{how} in {sound.name}")


def judge(found: Any, right: Any, verified: Any, how: str) -> None:
    """A limit that is verified must claim what the sound one claims, up to its error."""
    lists = [one if isinstance(one, list) else [one] for one in (found, right, verified)]
    if len(lists[0]) != len(lists[1]):
        return
    for one, other, said in zip(*lists, strict=True):
        if said.holds and one.x0.tobytes() == other.x0.tobytes() and _is_same_equation(one, other):
            is_same = np.array_equal(one.labels, other.labels) and np.array_equal(
                one.leaders, other.leaders
            )
            near = one.limits.shape == other.limits.shape and np.abs(one.limits - other.limits).max(
                initial=0.0
            ) <= (
                1.01
                * (one.error + other.error)
                * max(np.abs(other.basis).sum(axis=1).max(initial=0.0), 1.0)
                + 1e-12
            )
            if not (is_same and near):
                raise Fault("silent", f"{how}: a false claim was verified")


def _is_same_equation(one: Any, other: Any) -> bool:
    words = ("geometry", "kernel", "mask", "beta", "dt")
    arrays = [
        (getattr(one.dynamics.weights, name), getattr(other.dynamics.weights, name))
        for name in ("Q", "K", "full_V")
    ]
    return all(
        getattr(one.dynamics, word) == getattr(other.dynamics, word) for word in words
    ) and all(np.array_equal(a, b) for a, b in arrays)


def sign(path: Path) -> bool:
    """Give the file the checksum of what it holds now, as somebody does on purpose; whether that
    could be done.
    """
    import h5py

    from attnlab import netcdf

    names = ("attnlab_kind", "attnlab_variables", "content")
    try:
        arrays, words = netcdf.read_file(
            path,
            lambda words: json.loads(words["attnlab_variables"]).__contains__,
            dict.fromkeys(names, "text"),
        )
        with h5py.File(path, "r+") as file:
            file.attrs["checksum"] = netcdf.checksum(arrays, {name: words[name] for name in names})
    except Exception:  # what cannot even be read cannot be signed
        return False
    return True


def damage_contents(path: Path, rng: random.Random) -> str:
    """Change a file as one who knows HDF5 would, and say what was changed."""
    import h5py

    ways = (
        _change_word,
        _change_content,
        _change_content,
        _drop,
        test_runs._reshape,
        test_runs._poison,
        test_runs._change_number,
        test_runs._change_number,
        _change_whole,
        _exchange,
        test_runs._link_elsewhere,
        test_runs._claim_room,
    )
    way = rng.choice(ways)
    with h5py.File(path, "r+") as file:
        return f"{way.__name__}: {way(file, rng)}"


def _change_word(file: Any, rng: random.Random) -> str:
    name, value = rng.choice(WORDS), rng.choice(hostile_values()[1:-1])
    try:
        file.attrs[name] = value
    except (TypeError, ValueError, OSError, OverflowError):
        value = file.attrs[name] = "banana"
    return f"{name} = {value!r:.60}"


def _change_content(file: Any, rng: random.Random) -> str:
    changed = damage_table(json.loads(file.attrs["content"]), rng)
    try:
        text = json.dumps(changed)
    except RecursionError:
        text = "[" * 3000
    if len(text) > 60000 or "\x00" in text:
        text = text[:100]
    file.attrs["content"] = text
    return f"content = {text:.200}"


def _drop(file: Any, rng: random.Random) -> str:
    name = rng.choice(sorted(json.loads(file.attrs["attnlab_variables"])))
    del file[name]
    file.attrs["attnlab_variables"] = json.dumps(
        [one for one in json.loads(file.attrs["attnlab_variables"]) if one != name]
    )
    return name


def _change_whole(file: Any, rng: random.Random) -> str:
    """Another leader, label, root or digit."""
    name = rng.choice(
        sorted(
            name
            for name in json.loads(file.attrs["attnlab_variables"])
            if file[name].dtype.kind in "iu" and file[name].size
        )
    )
    values = file[name][...]
    place = tuple(rng.randrange(length) for length in values.shape)
    values[place] = (
        rng.choice((-1, 0, 1, 2, 5, 100, 2**31 - 1))
        if values.dtype != np.int8
        else 1 - values[place]
    )
    file[name][...] = values
    return f"{name}{place} = {values[place]}"


def _exchange(file: Any, rng: random.Random) -> str:
    """Two arrays of one shape change places."""
    names = [
        name
        for name in json.loads(file.attrs["attnlab_variables"])
        if file[name].dtype.kind == "f" and file[name].size
    ]
    one = rng.choice(sorted(names))
    other = rng.choice(sorted(name for name in names if file[name].shape == file[one].shape))
    first, second = file[one][...], file[other][...]
    file[one][...], file[other][...] = second, first
    return f"{one} and {other}"


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(range(FEW), id="few"),
        pytest.param(range(FEW, MANY), id="many", marks=pytest.mark.slow),
    ],
)
def test_every_damaged_limit_is_refused_or_judged_rightly(numbers, tmp_path):
    outcomes = workers.try_all("test_limits", numbers, tmp_path)
    workers.assert_clean(outcomes)
    counts = workers.counted(outcomes)
    assert counts["refused"] > 0.4 * len(numbers) and counts["result"] > 0.05 * len(numbers), counts
