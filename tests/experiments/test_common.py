"""What experiments share: ends of intervals that claims compare, and runs with half the step."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnlab.experiments.common.claims import of_mean, of_share
from attnlab.experiments.common.halved import Halved


def test_a_share_is_claimed_by_the_end_that_is_asked_for():
    """All of n: Clopper and Pearson's interval goes from 0.025^(1/n) to 1; none of n: from 0 to 1 -
    0.025^(1/n).
    """
    low, high = of_share(10, 10), of_share(0, 8, end="high", what="runs")
    assert low["measured"] == pytest.approx(0.025 ** (1 / 10), rel=1e-9) and low["value"] == 1.0
    assert (
        high["measured"] == pytest.approx(1.0 - 0.025 ** (1 / 8), rel=1e-9) and high["value"] == 0.0
    )
    assert low["interval"] == (low["measured"], 1.0) and high["interval"] == (0.0, high["measured"])
    assert (low["sample"], high["sample"]) == ("95 %, 10 starts", "95 %, 8 runs")
    assert math.isnan(of_share(0, 0)["value"]) and math.isnan(of_share(0, 0)["measured"])


def test_a_mean_is_claimed_by_the_end_that_is_asked_for():
    values = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    low, high = of_mean(values), of_mean(values, end="high")
    assert low["measured"] < low["value"] == high["value"] == 3.0 < high["measured"]
    assert low["interval"] == high["interval"] == (low["measured"], high["measured"])
    assert low["sample"] == "95 %, 4 starts"


def follow(step: float) -> float:
    """A run that is its step."""
    return step


def test_the_fine_run_has_half_the_step():
    runs = Halved.follow(follow, 0.5)
    assert (runs.coarse, runs.fine, runs.best, runs.is_tried) == (0.5, 0.25, 0.25, True)
    assert runs.compare(lambda coarse, fine: coarse - fine) == 0.25
    alone = Halved.follow(follow, 0.5, when=False)
    assert (alone.fine, alone.best, alone.is_tried) == (None, 0.5, False)
    assert math.isnan(alone.compare(lambda coarse, fine: 0.0)) and not alone.agree(
        lambda run: 1.0, absolute=9.0
    )


@pytest.mark.parametrize(
    ("coarse", "fine", "agrees"),
    [
        (1.0, 2.0, True),
        (2.0, 1.0, False),
        (-1.0, -2.0, True),
        (1.04, 1.0, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
    ],
)
def test_numbers_agree_relative_to_the_fine_run(coarse, fine, agrees):
    """A half of the fine number: 1 agrees with 2, and 2 does not agree with 1."""
    assert Halved(coarse, fine, 0.1).agree(lambda run: run, relative=0.5) is agrees


def test_numbers_agree_within_an_absolute_tolerance():
    found = [
        Halved(1.0, fine, 0.1).agree(lambda run: run, absolute=0.25) for fine in (1.25, 0.75, 1.26)
    ]
    assert found == [True, True, False]
