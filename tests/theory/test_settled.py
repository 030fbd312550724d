"""Whether a run has settled, on planted motions: rest, slow decay, a return, an end that lies past
double precision.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from attnlab.theory.evidence import CONTINUED, FOREIGN, WALL
from attnlab.theory.settled import settled
from attnlab.types import Status

T_END, RESOLUTION = 4.0, 0.01
LATER = np.concatenate([[0.0], T_END * CONTINUED])
"""The saved times of a continued run: 0, then from the end of the run to twice its time."""


def judge(
    value_at=lambda t: 0.0,
    *,
    worst=-0.5,
    error=1e-3,
    rate=1.0,
    run_error=1e-9,
    status=Status.OK,
    **about,
):
    """`settled` on one number that moves as `value_at` says; the other facts about the run as a
    sound one has them.
    """
    evidence = SimpleNamespace(
        **{
            "error": run_error,
            "departure": run_error,
            "t_end": T_END,
            "growth": 1.0,
            "finer_words": "use a smaller rtol",
            "not_before_words": lambda t: f"not before {t:.6g}",
            "continued": SimpleNamespace(status=status),
            **about,
        }
    )
    values = np.array([[value_at(t)] for t in LATER])
    return settled(
        evidence,
        lambda run: values,
        worst,
        resolution=RESOLUTION,
        error=error,
        what="it is so",
        rate=rate,
        why="A tie.",
        largest=0.25,
    )


def test_a_run_at_rest_supports_its_claim():
    # what happened before the end of the run does not count
    found = judge(lambda t: 7.0 if t == 0.0 else 3.0)
    assert (found.value, found.bound, found.error, found.resolution, found.largest) == (
        -0.5,
        0.0,
        1e-3,
        RESOLUTION,
        0.25,
    )
    assert not found.needs and "a settled run" in found.evidence and found.details["moved"] == 0.0


@pytest.mark.parametrize("height", [0.5, 0.99, 1.01, 2.0])
@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.17])
def test_a_slow_motion_counts_with_all_that_is_ahead_of_it(rate, height):
    """Of A e^{-rate t} there is A e^{-2 rate T} left after twice the time T, however little it
    moves meanwhile.
    """
    left = height * RESOLUTION
    size = left * math.exp(2.0 * rate * T_END)
    moved = size * (math.exp(-rate * T_END) - math.exp(-2.0 * rate * T_END))
    assert moved < 0.99 * RESOLUTION or rate > 0.1
    found = judge(lambda t: size * math.exp(-rate * t), rate=rate)
    assert found.details["moved"] == pytest.approx(moved, rel=1e-9)
    assert ("has not settled" in found.needs) == (height > 1.0) and np.isnan(found.value) == (
        height > 1.0
    )
    if height > 1.0:
        longer = max(1.05 * (T_END + math.log(height) / rate), 1.5 * T_END)
        assert f"not before {longer:.6g}" in found.needs


def test_a_fast_motion_counts_with_what_it_moves():
    # e^{rate T} is large: the distance moved is all that there is
    assert not judge(lambda t: 0.9 * RESOLUTION if t == T_END else 0.0, rate=50.0).needs
    assert (
        "has not settled"
        in judge(lambda t: 1.1 * RESOLUTION if t == T_END else 0.0, rate=50.0).needs
    )


def test_what_leaves_and_comes_back_has_not_settled():
    found = judge(
        lambda t: math.sin(math.pi * (t - T_END) / T_END) if t > T_END else 0.0, rate=50.0
    )
    assert "has not settled" in found.needs and found.details["moved"] == pytest.approx(1.0)


@pytest.mark.parametrize(("growth", "is_known"), [(0.99, True), (1.01, False), (1.9, False)])
def test_twice_the_time_must_lie_before_the_precision_wall(growth, is_known):
    found = judge(growth=growth * WALL / (2.0 * T_END))
    assert (found.needs == "") == is_known and (
        "past the precision wall" in found.needs
    ) != is_known


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status.PAST_DOUBLE_PRECISION, "past the precision wall"),
        (Status.STALLED, "could not be continued to twice its time, t = 8"),
    ],
)
def test_a_run_that_cannot_be_continued_stays_open(status, words):
    found = judge(status=status)
    assert np.isnan(found.value) and words in found.needs


@pytest.mark.parametrize(
    ("worst", "is_supported"), [(-1.0, True), (0.9e-3, True), (1.1e-3, False), (0.5, False)]
)
def test_a_claim_that_fails_at_rest_stays_open(worst, is_supported):
    found = judge(worst=worst)
    assert (found.value == worst and not found.needs) if is_supported else "plateau" in found.needs
    assert is_supported or found.details["worst"] == worst


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_data_far_from_the_flow_of_their_own_start_contradict(factor):
    allowed = FOREIGN * 1e-4 + 1e-5
    found = judge(run_error=1e-4, departure=factor * allowed)
    if factor < 1.0:
        assert found.value == -0.5 and found.bound == 0.0
    else:
        assert (
            found.value == pytest.approx(factor * allowed)
            and found.error == pytest.approx(allowed)
            and not found.needs
        )
        assert found.value - found.error > found.bound == 0.0 and "depart by" in found.evidence


def test_an_error_as_large_as_the_tokens_decides_nothing():
    found = judge(error=math.inf)
    assert np.isnan(found.value) and "use a smaller rtol" in found.needs
