"""What attention_eigenvalues compares sums of heads with: heads whose rows are dealt anew, and unrelated random maps."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.experiments.slides.attention_eigenvalues import draws
from attnlab.experiments.slides.attention_eigenvalues.draws import unrelated


def test_heads_with_one_leader_each_have_no_second_eigenvalue():
    P = np.zeros((3, 6, 6))
    P[range(3), :, range(3)] = 1.0
    assert unrelated(P) == pytest.approx(0.0, abs=1e-7)


def test_a_head_without_followers_stays_a_permutation():
    assert unrelated(np.eye(7)[None]) == pytest.approx(1.0)


@pytest.mark.slow
def test_unrelated_random_maps_have_a_second_eigenvalue_of_one_over_root_h():
    """The circular law, which the claim on sixteen heads is read against; corrections are of order n^(-1/2) at most."""
    maps = np.eye(300)[np.random.default_rng(1).integers(0, 300, (16, 300))]
    assert unrelated(maps) == pytest.approx(1 / 4, rel=0.1)


def test_rows_are_dealt_anew_in_each_head_by_itself():
    """Sixteen equal heads: left as they are, or dealt alike, their sum keeps |lambda_2| = H; sixteen permutations do not.

    The mean of 16 unrelated permutations of 60 tokens has the radius 1/4 of the circular law; corrections are of order n^(-1/2).
    """
    assert unrelated(np.repeat(np.eye(60)[None], 16, axis=0)) == pytest.approx(1 / 4, rel=0.2)


def test_the_largest_other_eigenvalue_may_have_any_modulus_below_one(monkeypatch):
    monkeypatch.setattr(draws, "eigenvalue_moduli", lambda P: np.array([1.0, 1.0, 0.9, 0.1]))
    found = draws._certified(al.Weights(V=np.eye(2)), 2.0 * np.eye(2))
    assert found["survivors"] == 2 and found["largest_other"] == 0.9
