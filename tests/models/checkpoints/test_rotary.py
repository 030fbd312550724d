"""Rotary positions against their formulas, entry by entry: the angles, the planes, the stretched
ones, the window beside them.
"""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from attnlab.models.checkpoints.forward import attention_matrix
from attnlab.models.checkpoints.record import Attention, Rotary
from attnlab.models.checkpoints.rotary import frequencies, read_rotary, rotate

SIZE, THETA = 8, 500.0
ANGLES = [THETA ** (-2.0 * plane / SIZE) for plane in range(SIZE // 2)]


def stretched(angle: float, *, factor: float, low: float, high: float, original: int) -> float:
    """The rule of Llama 3, case by case, in wavelengths."""
    wave = 2.0 * math.pi / angle
    if wave < original / high:  # short: left as it is
        return angle
    if wave > original / low:  # long: stretched by the factor
        return angle / factor
    part = (original / wave - low) / (high - low)
    return part * angle + (1.0 - part) * angle / factor


def test_angles_without_stretching():
    theta, angles = read_rotary({"rope_theta": THETA}, SIZE)
    assert (theta, angles) == (THETA, ())
    assert frequencies(Rotary(theta=THETA, size=SIZE, pairs="halves")) == pytest.approx(
        ANGLES, rel=1e-15
    )


def test_linear_stretching_makes_every_wave_longer():
    _, angles = read_rotary(
        {"rope_theta": THETA, "rope_scaling": {"type": "linear", "factor": 4.0}}, SIZE
    )
    assert angles == pytest.approx([angle / 4.0 for angle in ANGLES], rel=1e-15)


@pytest.mark.parametrize("original", [8, 40, 200, 8192])
def test_llama_3_stretches_long_waves_only(original):
    rule = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 6.0}
    said = {
        "rope_type": "llama3",
        "rope_theta": THETA,
        "original_max_position_embeddings": original,
        **rule,
    }
    theta, angles = read_rotary({"rope_parameters": said}, SIZE)
    expected = [
        stretched(angle, factor=4.0, low=1.0, high=6.0, original=original) for angle in ANGLES
    ]
    assert theta == THETA and angles == pytest.approx(expected, rel=1e-14)
    assert (angles == pytest.approx(ANGLES)) == (original == 8192)  # else something is stretched


@pytest.mark.parametrize("pairs", ["halves", "neighbours"])
def test_a_plane_is_turned_by_its_place_times_its_angle(pairs):
    """As complex numbers: (x_a + i x_b) e^{i place angle}; coordinates beyond the rotated part
    stay.
    """
    x, places = np.random.default_rng(0).normal(size=(3, SIZE + 2)), np.array([0, 3, 11])
    found = rotate(Rotary(theta=THETA, size=SIZE, pairs=pairs), x, places)
    for token, place in enumerate(places):
        for plane, angle in enumerate(ANGLES):
            a, b = (plane, plane + SIZE // 2) if pairs == "halves" else (2 * plane, 2 * plane + 1)
            turned = complex(x[token, a], x[token, b]) * cmath.exp(1j * float(place) * angle)
            assert found[token, [a, b]] == pytest.approx(
                [turned.real, turned.imag], rel=1e-13, abs=1e-13
            )
    assert np.array_equal(found[:, SIZE:], x[:, SIZE:])


@pytest.mark.parametrize("window", [1, 2, 3, 9])
def test_a_window_of_w_tokens_holds_the_token_and_those_less_than_w_away(window):
    ones = np.ones((1, 2, 2))
    attention = Attention(query=ones, key=ones, value=ones, output=ones, window=window)
    found = attention_matrix(attention, np.zeros((6, 2)), np.tri(6, dtype=bool))
    for i in range(6):
        seen = [j for j in range(6) if i - window < j <= i]
        assert found[0, i] == pytest.approx(
            [1.0 / len(seen) if j in seen else 0.0 for j in range(6)], rel=1e-14
        )
