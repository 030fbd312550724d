"""Everything that can be stored: each sample of each kind comes back with its type and its bits,
and damage is seen.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import attnlab as al
import tiny_models
from attnlab.store import NotARun, load, save, to_xarray
from attnlab.store.document import CHECKSUM, KIND, VARIABLES
from attnlab.store.packing import kind_of, kinds
from stored import SAMPLES, difference


def test_the_judge_sees_a_difference():
    """A test of the tests: one bit, one type, one name."""
    assert not difference({"a": np.array([np.nan])}, {"a": np.array([np.nan])})
    for one, other in (([0.0], [-0.0]), ([1], [1.0]), ((1,), [1]), ({"a": 1}, {"b": 1})):
        if one == [0.0]:
            one, other = np.array(one), np.array(other)
        assert difference(one, other)
    exact = kinds["limit"].samples()["exact"]
    assert "points" in difference(exact, dataclasses.replace(exact, points=exact.points + 1e-16))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_bit_comes_back(name, tmp_path):
    save(SAMPLES[name], tmp_path / "a.nc")
    back = load(tmp_path / "a.nc")
    assert difference(SAMPLES[name], back) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]
    save(back, tmp_path / "b.nc")
    with h5py.File(tmp_path / "a.nc") as one, h5py.File(tmp_path / "b.nc") as other:
        assert one.attrs[CHECKSUM] == other.attrs[CHECKSUM]  # what is saved twice is the same


def another(value: Any) -> Any:
    """Another entry of the same type."""
    if isinstance(value, bytes | str):
        return "banana"
    return (
        np.nextafter(value, 9.0)
        if value.dtype.kind == "f" and np.isfinite(value)
        else 7.0
        if value.dtype.kind == "f"
        else value ^ 1
    )


SOME = 12
"""Arrays that are damaged in the quick test; the slow one damages all."""


@pytest.mark.parametrize(
    "most", [pytest.param(SOME, id="some"), pytest.param(None, id="all", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", sorted(kinds))
def test_a_number_or_word_that_changed_is_seen(kind, most, tmp_path):
    """Every array of a file, its kind and its words are under the checksum."""
    name = next(name for name in SAMPLES if name.startswith(f"{kind}: ") and "empty" not in name)
    path = tmp_path / "result.nc"
    save(SAMPLES[name], path)
    whole = path.read_bytes()
    with h5py.File(path, "r") as file:
        names = [entry for entry in json.loads(file.attrs[VARIABLES]) if file[entry].size]
        words = [word for word in (KIND, VARIABLES, *kinds[kind].words) if file.attrs[word]]
    for array in names[:: max(1, len(names) // most)] if most else names:
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            file[array][(0,) * file[array].ndim] = another(np.asarray(file[array][()]).ravel()[0])
        with pytest.raises(NotARun, match="is damaged"):
            load(path)
    for word in words:
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            before = file.attrs[word]
            file.attrs[word] = {KIND: "limit" if before != "limit" else "verdict"}.get(
                word, before + " "
            )
        with pytest.raises(NotARun, match="is damaged"):
            load(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_labelled_arrays_say_what_they_are(name):
    data = to_xarray(SAMPLES[name])
    assert isinstance(data, xarray.Dataset)
    for variable in data.data_vars:
        assert not any(str(axis).startswith("dim_") for axis in data[variable].dims)
    if kind_of(SAMPLES[name]) in ("limit", "trajectory", "verdict", "prediction"):
        assert all(data[variable].attrs.get("long_name") for variable in data.variables)


def real_results() -> dict[str, Any]:
    """What the verbs return: nothing in it was made for these tests."""
    state, raw = tiny_models.bert()
    model = al.models.load(state, config=raw)
    weights, x0 = al.Weights(V=np.diag([1.0, 0.5])), np.random.default_rng(0).normal(size=(2, 5, 2))
    run = al.simulate(weights, x0, t_end=3.0, saves=4)
    ids = [3, 1, 4, 1, 5]
    survey = al.models.survey(model, [np.array(ids), np.array(ids[:3])])
    return {
        "run": run,
        "limits": al.limit(weights, x0, times=[1.0]),
        "predictions": al.predict(weights, x0[0]),
        "verdicts": al.check(run, names=["codimension", "hull_shrinks", "distances_grow"]),
        "sentence": al.models.sentence(model, ids=ids, only=["no_mlp"]),
        "spectra": al.models.spectra(model, null=5),
        "texts": model.run([np.array(ids), np.array(ids[:3])]),
        "survey": survey,
        "intervals": al.models.intervals(survey),
        "sentences": al.models.sentence(model, ids=[np.array(ids)], only=["no_mlp"]),
        "flow": al.models.flow(model, 0, 0, ids=ids, t_end=0.5, saves=3, limit=False, check=False),
        "iterate": al.models.iterate(model, ids=ids, times=5),
    }


def test_results_of_the_verbs_come_back(tmp_path):
    for name, result in real_results().items():
        save(result, tmp_path / f"{name}.nc")
        assert difference(result, load(tmp_path / f"{name}.nc")) == "", name
        assert to_xarray(result).sizes, name


def test_members_of_a_list_share_what_is_equal(tmp_path):
    """Weights and Spec are stored once, arrays of one shape lie along the axis member, others one
    after the other.
    """
    one = kinds["limit"].samples()["exact"]
    more = dataclasses.replace(one, events=(*one.events, one.events[0]))
    save([one, more, one], tmp_path / "limits.nc")
    with xarray.open_dataset(tmp_path / "limits.nc") as data:
        assert data["V"].dims == ("head", "row", "coordinate") and data["spec"].dims == ()
        assert (
            data["points"].dims == ("member", "token", "direction")
            and data["grade"].values.tolist() == ["exact"] * 3
        )
        assert data["event_time"].dims == ("event",) and data["event_member"].values.tolist() == [
            0,
            1,
            1,
            2,
        ]
        assert data["limits"].dims == ("member", "token", "coordinate")
    other = dataclasses.replace(
        one,
        dynamics=dataclasses.replace(one.dynamics, weights=al.Weights(V=np.diag([2.0, 1.0, -1.0]))),
    )
    save([one, other], tmp_path / "limits.nc")
    assert difference(load(tmp_path / "limits.nc"), [one, other]) == ""


def test_a_member_of_another_length_is_kept(tmp_path):
    short = kinds["limit"].samples()["exact"]
    long = al.limit(al.Weights(V=np.eye(3)), np.random.default_rng(0).normal(size=(7, 3)))
    save([short, long], tmp_path / "limits.nc")
    assert difference(load(tmp_path / "limits.nc"), [short, long]) == ""


def test_what_cannot_be_stored_is_a_sentence(tmp_path):
    for thing in (
        3,
        "a",
        {"a": 1},
        [1, 2],
        [kinds["limit"].samples()["exact"], kinds["verdict"].samples()["supported"]],
    ):
        with pytest.raises(TypeError, match=r"cannot be stored\. These can: .*a Limit.*a run"):
            save(thing, tmp_path / "thing.nc")
    assert not list(tmp_path.iterdir())
