"""The cheap criterion of final leaders, and what the claims of vertices_and_tokens are made of."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.random_polytopes import LAWS, draw_points
from attnlab.analysis.self_leaders import self_leaders, settled_leaders
from attnlab.experiments import experiments
from attnlab.experiments.datasets import table
from attnlab.experiments.slides.vertices_and_tokens.claims import lost_share, named
from attnlab.experiments.slides.vertices_and_tokens.experiment import counted, final_leaders


@pytest.mark.parametrize("law", LAWS)
def test_criterion_agrees_with_the_certificate(law):
    """Token by token, on starts that no experiment looks at."""
    x = 3.0 * draw_points(law, 25, 2, np.random.default_rng([25, 77]))
    leaders, _ = final_leaders(x)
    end = al.limit(al.Weights(V=np.eye(2)), x)
    assert end.grade == "exact" and leaders is not None
    assert np.array_equal(leaders, end.leaders) and counted(leaders) == end.count


def test_criterion_waits_while_a_gap_is_small_or_falls():
    far = 100.0 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 0.0]])
    assert np.array_equal(settled_leaders(far), [0, 1, 0])
    assert settled_leaders(0.01 * far) is None  # gaps below 1
    tied = 100.0 * np.array([[1.0, 1e-6], [1.0, -1e-6], [-1.0, 0.0]])
    assert settled_leaders(tied) is None and np.isnan(counted(None))


def test_tokens_on_a_circle_lead_themselves():
    assert len(self_leaders(draw_points("sphere", 40, 2, 0))) == 40


@pytest.mark.parametrize("size", ["full", "small"])
def test_certificates_are_asked_for_starts_in_the_table(size):
    known, asked = (
        experiments["vertices_and_tokens"].compute.parts[name].cases(size)
        for name in ("limits", "certified")
    )
    assert asked and all(case in known for case in asked)


def test_lost_share_of_made_up_starts():
    """Half of the leaders lost at scale 2, a quarter at 20, in every start: the ratio is a half,
    without spread.
    """
    columns = {
        "law": ["cube"] * 8,
        "d": [2] * 8,
        "n": [10, 10, 30, 30] * 2,
        "start": [0, 1] * 4,
        "scale": [2.0] * 4 + [20.0] * 4,
        "leaders": [4] * 8,
        "limits": [2.0] * 4 + [3.0] * 4,
    }
    assert lost_share({"limits": table(columns)}) == pytest.approx((0.5, 0.5))


def test_undecided_starts_are_named():
    columns = {
        "law": ["sphere", "sphere", "ball"],
        "d": [2, 2, 3],
        "n": [1000, 1000, 10],
        "scale": [20.0, 20.0, 5.0],
    }
    rows = table(columns)
    assert (
        named(rows, np.ones(3, bool))
        == "circle, n = 1000, scale 20 (2 starts); ball in space, n = 10, scale 5"
    )
    assert named(rows, np.zeros(3, bool)) == "none"
