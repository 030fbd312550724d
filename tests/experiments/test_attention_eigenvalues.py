"""How attention_eigenvalues counts the eigenvalues that survive."""

from __future__ import annotations

import numpy as np

import attnlab as al
from attnlab.experiments.slides.attention_eigenvalues import experiment


def test_the_largest_other_eigenvalue_may_have_any_modulus_below_one(monkeypatch):
    monkeypatch.setattr(experiment, "eigenvalue_moduli", lambda P: np.array([1.0, 1.0, 0.9, 0.1]))
    found = experiment._certified(al.Weights(V=np.eye(2)), 2.0 * np.eye(2))
    assert found["survivors"] == 2 and found["largest_other"] == 0.9
