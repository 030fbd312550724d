"""Tables in notebooks: how many rows are shown, what is said about the others, which columns are
left out.
"""

from __future__ import annotations

import re

import pytest

from attnlab.notebook.html import MOST_ROWS, facts, table


def cells(page: str) -> list[list[str]]:
    """The cells of each row of a page, the head first."""
    return [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", page)
    ]


@pytest.mark.parametrize(
    ("count", "more"),
    [(1, None), (MOST_ROWS, None), (MOST_ROWS + 1, 1), (3 * MOST_ROWS + 7, 2 * MOST_ROWS + 7)],
)
def test_rows_that_are_not_shown_are_counted(count, more):
    page = table("one row per token", ["token", "name"], [[k, f"n{k}"] for k in range(count)])
    shown = cells(page)
    assert shown[0] == ["token", "name"]
    assert shown[1:] == [[str(k), f"n{k}"] for k in range(min(count, MOST_ROWS))]
    assert re.findall(r"and (\d+) more", page) == ([] if more is None else [str(more)])


def test_a_column_without_any_value_is_left_out():
    page = table("rows", ["a", "b", "c"], [[None, None, 1], [None, None, 2], [3, None, 4]])
    assert [len(row) for row in cells(page)] == [2, 2, 2, 2] and cells(page)[0] == ["a", "c"]


def test_facts_without_a_value_are_left_out():
    assert [row[0] for row in cells(facts({"a": 1, "b": None, "c": 0, "d": ""}))] == ["a", "c", "d"]
