"""What attention_eigenvalues compares sums of heads with: heads whose rows are dealt anew, and unrelated random maps."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.experiments.markov_classes import unrelated


def test_heads_with_one_leader_each_have_no_second_eigenvalue():
    P = np.zeros((3, 6, 6))
    P[range(3), :, range(3)] = 1.0
    assert unrelated(P) == pytest.approx(0.0, abs=1e-7)


def test_a_head_without_followers_stays_a_permutation():
    assert unrelated(np.eye(7)[None]) == pytest.approx(1.0)


def test_unrelated_random_maps_have_a_second_eigenvalue_of_one_over_root_h():
    """The circular law, which the claim on sixteen heads is read against; corrections are of order n^(-1/2) at most."""
    maps = np.eye(300)[np.random.default_rng(1).integers(0, 300, (16, 300))]
    assert unrelated(maps) == pytest.approx(1 / 4, rel=0.1)
