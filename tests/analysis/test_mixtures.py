"""What limits are made of: certified mixtures beside SciPy's, and what a leader keeps."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.mixtures import late_difference, lost_attention, mixture_error
from attnlab.analysis.propagators import carry_names, direction_of
from attnlab.limits import limit
from attnlab.types import Weights


class TestLateDifference:
    def case(self):
        weights, x0 = Weights(V=np.eye(2)), np.random.default_rng(1).uniform(-3, 3, (7, 2))
        end = limit(*carry_names(weights, x0))
        assert end.certified
        return weights, x0, end.limits[:, 2:], end.limits[:, :2], end

    def test_certified_rows_are_those_of_scipy(self):
        weights, x0, U, z, end = self.case()
        assert late_difference(weights, x0, U, z, np.unique(end.leaders)) < 1e-9

    def test_sees_what_the_mixtures_do_not(self):
        weights, x0, U, z, end = self.case()
        wrong = np.full_like(U, 1 / len(U))  # another stochastic matrix, and its z
        assert mixture_error(wrong, wrong @ x0, x0, end.labels) < 1e-12
        assert late_difference(weights, x0, wrong, wrong @ x0, np.unique(end.leaders)) > 0.1


def test_a_leader_keeps_what_the_bound_says():
    weights, x0 = Weights(V=np.eye(2)), np.random.default_rng(2).uniform(-3, 3, (6, 2))
    named, start = carry_names(weights, x0)
    end = limit(named, start)
    leaders = np.unique(end.leaders)
    lost = lost_attention(al.simulate(weights, x0, t_end=12.0, saves=801, rtol=1e-9), leaders)
    kept = end.limits[leaders, 2 + leaders]
    assert (kept >= np.exp(-lost) - 1e-3).all() and (lost > 0).all()


def test_the_attention_lost_by_two_opposite_tokens_is_known():
    """x = +-r e^t: 1 - P_ii = 1 / (1 + e^(2 r^2 e^(2 t))) while both stay opposite, so r' = -2 r (1
    - P).
    """
    x0 = np.array([[0.8, 0.0], [-0.8, 0.0]])
    run = al.simulate(Weights(V=np.eye(2)), x0, t_end=6.0, saves=4001, rtol=1e-11)
    lost = lost_attention(run, np.array([0, 1]))
    assert lost[0] == pytest.approx(lost[1], rel=1e-9)
    assert np.linalg.norm(run.rescaled[-1, 0]) == pytest.approx(
        0.8 * np.exp(-2 * lost[0]), rel=1e-5
    )


def test_a_complex_eigenvector_is_turned_to_the_real_axis():
    vector = np.exp(0.7j) * np.array([[1.0, -2.0], [0.5, 0.0]])
    found = direction_of(vector)
    assert found * np.sign(found[0, 0]) == pytest.approx(np.array([[1.0, -2.0], [0.5, 0.0]]))
