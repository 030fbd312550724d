"""starts_compared: the exact reduction to the tokens and the ranges of the heads, ends of runs, how
starts are counted.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.span import in_reach
from attnlab.experiments.common import heads
from attnlab.experiments.datasets import table
from attnlab.experiments.slides.starts_compared import experiment as starts_compared
from attnlab.experiments.slides.starts_compared.claims import ended, starts_that


@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_tokens_stay_in_reach_of_themselves_and_the_heads(geometry):
    model = heads.stand_in()
    weights, x0 = heads.trained_heads(model, 2, "own"), heads.real_start(model, 5)
    x0 = x0 / np.linalg.norm(x0, axis=1, keepdims=True) if geometry == "sphere" else x0
    reduced, y0 = in_reach(weights, x0)
    assert y0.shape == (5, 5 + 2 * 6) and reduced.d < weights.d
    options = {
        "t_end": 1.0,
        "stepper": "rk4",
        "dt": 0.05,
        "frame": "x",
        "geometry": geometry,
        "times": [0.0, 1.0],
    }
    x, y = (al.simulate(*one, **options).x[-1] for one in ((weights, x0), (reduced, y0)))
    assert np.allclose(x @ x.T, y @ y.T, rtol=1e-9, atol=1e-9)


def test_all_dimensions_are_left_where_the_heads_reach_them():
    model = heads.stand_in()
    weights, x0 = heads.trained_heads(model, 4, "own"), heads.real_start(model, 5)
    assert in_reach(weights, x0)[0] is weights


def one_gaussian_head(rng: int, law: str) -> dict:
    weights = heads.synthetic_heads(1, 2, "own", rng=rng)
    return starts_compared._case(
        weights, starts_compared.start_of(law, 2, 5.0, rng, 24), 5.0, "own", "euclidean"
    )


def test_a_run_whose_clusters_still_merge_later_has_not_ended():
    """Twenty clusters at the end of the clock, nine at twice that time, though the steps suffice
    for both.
    """
    merging, at_rest = one_gaussian_head(3, "cube"), one_gaussian_head(4, "cube")
    assert merging["reached"] == at_rest["reached"] == starts_compared.OWN_CLOCK[-1]
    assert merging["growth"] > 0 and not merging["is_ok"]
    assert at_rest["growth"] > 0 and at_rest["is_ok"]


def test_runs_without_a_growing_direction_are_not_counted():
    case = one_gaussian_head(0, "sphere")
    growth = np.linalg.eigvals(heads.synthetic_heads(1, 2, "own", rng=0).full_V[0]).real.max()
    assert case["growth"] == pytest.approx(growth) and growth < 0
    assert ended(table({"is_ok": [1, 1, 0], "growth": [-0.1, 0.1, 0.1]})).tolist() == [
        False,
        True,
        False,
    ]


def test_a_start_holds_only_in_all_its_rows_and_sphere_and_normal_are_one():
    cases = table({"law": ["sphere", "normal", "cube", "cube", "cube"], "rng": [0, 0, 0, 0, 1]})
    holds, rows = (
        np.array([True, False, True, True, False]),
        np.array([True, True, True, True, False]),
    )
    assert starts_that(holds, cases, rows) == {("cube", 0): True, ("sphere", 0): False}


def test_trained_heads_start_from_the_normal_law_only_where_it_is_not_the_sphere():
    rows = starts_compared.compute.parts["trained"].cases("small")
    assert {row["geometry"] for row in rows if row["law"] == "normal"} == {"euclidean"}
    assert {row["geometry"] for row in rows if row["law"] != "normal"} == {"euclidean", "sphere"}
    sphere, normal = (starts_compared.start_of(law, 24, 3.0, 1, 10) for law in ("sphere", "normal"))
    assert np.allclose(
        sphere, 3.0 * normal / np.linalg.norm(normal, axis=1, keepdims=True), rtol=1e-12
    )
