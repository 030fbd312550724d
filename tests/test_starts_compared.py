"""starts_compared: the exact reduction to the tokens and the ranges of the heads, and starts that are pieces of text."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.experiments import heads
from attnlab.experiments.starts_compared_exact import in_reach


@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_tokens_stay_in_reach_of_themselves_and_the_heads(geometry):
    model = heads.stand_in()
    weights, x0 = heads.trained_heads(model, 2, "own"), heads.real_start(model, 5)
    x0 = x0 / np.linalg.norm(x0, axis=1, keepdims=True) if geometry == "sphere" else x0
    reduced, y0 = in_reach(weights, x0)
    assert y0.shape == (5, 5 + 2 * 6) and reduced.d < weights.d
    options = {"t_end": 1.0, "stepper": "rk4", "dt": 0.05, "frame": "x", "geometry": geometry, "times": [0.0, 1.0]}
    x, y = (al.simulate(*one, **options).x[-1] for one in ((weights, x0), (reduced, y0)))
    assert np.allclose(x @ x.T, y @ y.T, rtol=1e-9, atol=1e-9)


def test_all_dimensions_are_left_where_the_heads_reach_them():
    model = heads.stand_in()
    weights, x0 = heads.trained_heads(model, 4, "own"), heads.real_start(model, 5)
    assert in_reach(weights, x0)[0] is weights
