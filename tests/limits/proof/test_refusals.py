"""al.limit(proof=True): what is not proved says why."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.proof.equation import NotProved, take_equation
from attnlab.limits.proof.spectrum import find_spectrum
from proofs import LATE, late_start, start


@pytest.mark.parametrize(
    "options, words",
    [
        ({"V": [[1.0, 1.0], [1.0, 1.0]]}, "told from 0"),
        ({"V": -np.eye(2)}, "no direction grows"),
        ({"V": np.eye(2), "dt": 0.5}, "continuous time"),
        ({"V": np.eye(2), "kernel": "hardmax"}, "softmax attention in R^d"),
        ({"V": np.stack([np.eye(2), np.eye(2)])}, "one head"),
    ],
)
def test_what_is_not_covered_says_so_and_stays_the_limit_that_it_was(options, words):
    x0, more = start(4, 2, 3), {name: value for name, value in options.items() if name != "V"}
    plain = al.limit(al.Weights(V=options["V"]), x0, **more)
    limit = al.limit(al.Weights(V=options["V"]), x0, proof=True, **more)
    assert (
        words in limit.reason
        and limit.reason.startswith(plain.reason)
        and limit.grade == plain.grade != "proved"
    )
    assert np.array_equal(limit.points, plain.points, equal_nan=True) and limit.error == plain.error
    assert limit.certificate.split("\n")[1:] == plain.certificate.split("\n")[1:]


def test_symmetric_data_are_not_proved():
    """A tie for ever, which only the exact symmetry holds: no enclosure of the tokens can show
    it.
    """
    limit = al.limit(al.Weights(V=np.eye(2)), [[1.0, 0.2], [-1.0, 0.2], [0.0, 0.5]], proof=True)
    assert limit.grade != "proved" or al.verify(limit).holds


def test_a_run_that_starts_late_is_not_proved():
    run = al.simulate(al.Weights(V=np.eye(2)), start(4, 2, 3), times=[0.1, 0.2])
    assert "proofs start at t = 0" in al.limit(run, proof=True).reason


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_tokens_whose_squares_underflow_are_not_proved(scale):
    dynamics = al.Dynamics.of(al.Weights(V=np.diag([1.0, 0.5]), K=np.eye(2) / scale / scale))
    with pytest.raises(NotProved, match="proofs are for tokens of sizes"):
        take_equation(dynamics, scale * start(3, 2, 1))


def test_proof_is_true_or_false():
    with pytest.raises(TypeError, match="proof must be True or False"):
        al.limit(al.Weights(V=np.eye(2)), start(4, 2, 3), proof="yes")


def test_without_flint_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    limit = al.limit(al.Weights(V=LATE), late_start(), proof=True)
    assert limit.grade == "exact" and 'pip install "attnlab[proof]"' in limit.reason


@pytest.mark.parametrize(
    "V, words",
    [
        ([[1.0, 0.2], [-0.1, 1.0]], "complex eigenvalues"),
        ([[1.0, 1.0], [0.0, 1.0]], "V has no basis|told apart|too close"),
        ([[1.0, 2.0], [0.5, 1.0]], "told from 0"),
    ],
)
def test_a_spectrum_that_cannot_be_enclosed_is_refused(V, words):
    with pytest.raises(NotProved, match=words):
        find_spectrum(np.array(V))
