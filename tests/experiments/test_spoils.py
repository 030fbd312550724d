"""Generic spoils and keywords of claims: what they change, and that the data they are given stay as
they were.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray

from attnlab.experiments.common.claims import furthest_from, of_verdicts
from attnlab.experiments.spoils import computed, constant, replaced, together


@pytest.fixture
def data():
    return {
        "runs": xarray.Dataset(
            {"x": (("time", "token"), np.arange(6.0).reshape(3, 2)), "kind": ("token", ["a", "b"])},
            coords={"time": [0.0, 1.0, 2.0]},
            attrs={"d": 1},
        ),
        "other": xarray.Dataset({"n": ("row", [1, 2])}),
    }


def test_computed_columns_see_the_dataset_as_it_was(data):
    before = data["runs"].copy(deep=True)
    spoil = computed(
        "runs",
        x=lambda runs: runs["time"] * 10 + runs["x"].isel(time=0, drop=True),
        kind=lambda _: ["c", "d"],
    )
    spoiled = spoil(data)
    np.testing.assert_array_equal(spoiled["runs"]["x"].values, [[0, 1], [10, 11], [20, 21]])
    assert spoiled["runs"]["x"].dims == ("time", "token") and spoiled["runs"][
        "kind"
    ].values.tolist() == ["c", "d"]
    assert spoiled["other"] is data["other"] and data["runs"].identical(before)


def test_two_computed_columns_do_not_see_each_other(data):
    both = computed("other", n=lambda other: other["n"] + 1)
    assert together(both, both)(data)["other"]["n"].values.tolist() == [3, 4]
    swapped = {"pair": xarray.Dataset({"a": ("row", [1.0]), "b": ("row", [2.0])})}
    found = computed("pair", a=lambda pair: pair["b"], b=lambda pair: pair["a"])(swapped)["pair"]
    assert (float(found["a"][0]), float(found["b"][0])) == (2.0, 1.0)


def test_a_longer_word_is_not_cut(data):
    spoiled = constant("runs", "kind", "good triple", where={"kind": "b"})(data)
    assert spoiled["runs"]["kind"].values.tolist() == ["a", "good triple"]


def test_integers_become_floats_where_the_change_needs_it(data):
    assert replaced("other", "n", lambda n: n / 4)(data)["other"]["n"].values.tolist() == [
        0.25,
        0.5,
    ]


def test_the_value_that_is_furthest_from_what_is_expected():
    assert (
        furthest_from(1, [0.9, 1.05, 1.2]) == 1.2
        and furthest_from(1, np.array([[0.5, 1.2]])) == 0.5
    )
    assert math.isnan(furthest_from(1, []))


@pytest.mark.parametrize(
    ("outcome", "measured"), [("SUPPORTED", 2.0), ("UNDECIDED", 1.0), ("CONTRADICTED", 1.0)]
)
def test_a_claim_counts_the_theorems_that_are_supported(outcome, measured):
    verdicts = xarray.Dataset(
        {"theorem": ("verdict", ["one", "two"]), "outcome": ("verdict", ["SUPPORTED", outcome])}
    )
    assert of_verdicts(verdicts, "one", "two") == {"measured": measured, "low": 2, "high": 2}
    assert (
        of_verdicts(verdicts, "three")["measured"] == 0.0
    )  # a theorem without a verdict is not supported
