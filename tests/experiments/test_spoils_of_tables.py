"""The damages of experiments, each on a small table: what changes, what stays, and that the data
given are left alone.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray

from attnlab.experiments import spoils

ROWS = {
    "family": ["a", "a", "b", "b"],
    "n": [1, 2, 1, 2],
    "value": [1.0, 2.0, 3.0, 4.0],
    "count": [5, 6, 7, 8],
}


def data():
    """A table of four rows, and another one."""
    table = xarray.Dataset({name: ("row", np.array(values)) for name, values in ROWS.items()})
    verdicts = xarray.Dataset({"outcome": ("row", np.array(["SUPPORTED", "OUT_OF_SCOPE"]))})
    return {
        "table": table,
        "verdicts": verdicts,
        "other": xarray.Dataset({"value": ("row", np.zeros(2))}),
    }


BOTH = {"family": "a", "n": 2}
CASES = {
    "all rows": (spoils.scaled("table", "value", 10.0), {"value": [10, 20, 30, 40]}),
    "rows of one condition": (
        spoils.scaled("table", "value", 10.0, where={"family": "b"}),
        {"value": [1, 2, 30, 40]},
    ),
    "rows of both conditions": (
        spoils.scaled("table", "value", 10.0, where=BOTH),
        {"value": [1, 20, 3, 4]},
    ),
    "one of several values": (
        spoils.shifted("table", "value", 0.5, where={"n": [2, 9]}),
        {"value": [1, 2.5, 3, 4.5]},
    ),
    "two columns": (
        spoils.constant("table", ("value", "count"), 9),
        {"value": [9] * 4, "count": [9] * 4},
    ),
    "whole numbers become halves": (
        spoils.scaled("table", "count", 0.5),
        {"count": [2.5, 3, 3.5, 4]},
    ),
    "words": (
        spoils.constant("table", "family", "c", where={"n": 1}),
        {"family": ["c", "a", "c", "b"]},
    ),
    "reversed": (spoils.reversed_rows("table", "value"), {"value": [4, 3, 2, 1]}),
    "reversed inside": (
        spoils.reversed_rows("table", "value", where={"family": "b"}),
        {"value": [1, 2, 4, 3]},
    ),
    "the first for all": (
        spoils.first_for_all("table", ("value", "count")),
        {"value": [1] * 4, "count": [5] * 4},
    ),
    "the last row is gone": (
        spoils.dropped("table"),
        {name: values[:3] for name, values in ROWS.items()},
    ),
    "three rows are gone": (
        spoils.dropped("table", 3),
        {name: values[:1] for name, values in ROWS.items()},
    ),
    "more than there are": (spoils.dropped("table", 7), {name: [] for name in ROWS}),
    "several at once": (
        spoils.together(spoils.dropped("table"), spoils.shifted("table", "value", 1)),
        {name: values[:3] for name, values in ROWS.items()} | {"value": [2, 3, 4]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_damage_is_what_its_name_says_and_no_more(name):
    spoil, expected = CASES[name]
    given = data()
    found = spoil(given)
    assert {column: found["table"][column].values.tolist() for column in ROWS} == ROWS | expected
    assert list(found) == list(given) and found["other"].identical(given["other"])
    assert all(given[one].identical(whole) for one, whole in data().items()), (
        "the data that were given have changed"
    )


def test_shuffled_columns_stay_together_and_do_not_stay_as_they_were():
    found = spoils.shuffled("table", ("value", "count"))(data())["table"]
    assert sorted(found["value"].values) == ROWS["value"] != found["value"].values.tolist()
    assert (found["count"].values - found["value"].values == 4).all()


def test_entries_are_dropped_along_the_axis_that_is_named():
    given = {"run": xarray.Dataset({"x": (("time", "token"), np.arange(6.0).reshape(3, 2))})}
    assert spoils.dropped("run", axis="token")(given)["run"]["x"].values.tolist() == [[0], [2], [4]]
    assert spoils.dropped("run")(given)["run"]["x"].values.tolist() == [[0, 1], [2, 3]]


def test_contradicted_verdicts_are_all_contradicted():
    assert (
        spoils.contradicted(data())["verdicts"]["outcome"].values.tolist() == ["CONTRADICTED"] * 2
    )
