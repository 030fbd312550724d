"""check and predict on starts and runs out of the ordinary: each a verdict or a sentence, never a
traceback of ours.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.theory import theorems
from attnlab.verdicts import Outcome

EYE = al.Weights(V=np.eye(2))
X0 = np.random.default_rng(0).uniform(-2, 2, (6, 2))
CLAIMS = [
    "codimension",
    "coordinate_extremes",
    "distances_grow",
    "hull_shrinks",
    "polytope",
    "three_hyperplanes",
]


def outcomes(run, names=CLAIMS) -> dict[str, Outcome]:
    return {verdict.theorem: verdict.outcome for verdict in al.check(run, names=names)}


@pytest.mark.parametrize("x0", [X0[:1], np.ones((4, 2))], ids=["one token", "equal tokens"])
def test_tokens_that_do_not_move_in_z_support_what_applies(x0):
    found = outcomes(al.simulate(EYE, x0, t_end=5.0))
    assert (
        set(found.values()) == {Outcome.SUPPORTED, Outcome.OUT_OF_SCOPE}
        and found["hull_shrinks"] is Outcome.SUPPORTED
    )


def test_a_batch_gives_a_list_of_lists_equal_to_single_checks():
    x0 = np.stack([X0, X0 + 1.0])
    both = al.check(al.simulate(EYE, x0, t_end=5.0), names=CLAIMS)
    assert [len(one) for one in both] == [len(CLAIMS)] * 2
    for member, verdicts in zip(x0, both, strict=True):
        assert [
            str(one) for one in al.check(al.simulate(EYE, member, t_end=5.0), names=CLAIMS)
        ] == [str(one) for one in verdicts]


def test_a_run_on_the_sphere_has_no_z_and_is_out_of_scope():
    on_sphere = X0 / np.linalg.norm(X0, axis=1, keepdims=True)
    run = al.simulate(EYE, on_sphere, t_end=5.0, geometry="sphere")
    assert {one.outcome for one in al.check(run)} == {Outcome.OUT_OF_SCOPE} and len(
        al.check(run)
    ) == len(theorems)


def test_a_run_that_stopped_early_supports_nothing_but_the_wall_is_no_fault():
    cut = al.simulate(EYE, X0, t_end=5.0, max_steps=5, throw=False)
    verdicts = al.check(cut, names=CLAIMS)
    assert Outcome.SUPPORTED not in {one.outcome for one in verdicts}
    assert any("max_steps" in one.unmet for one in verdicts)
    assert outcomes(al.simulate(EYE, X0, t_end=60.0, throw=False))["polytope"] is Outcome.SUPPORTED


def test_what_makes_no_sense_is_a_sentence():
    with pytest.raises(TypeError, match="Trajectory"):
        al.check(3)
    with pytest.raises(ValueError, match="t = 0"):
        al.check(al.simulate(EYE, X0, times=[1.0, 2.0]))
    with pytest.raises(LookupError, match="polytope"):
        al.check(al.simulate(EYE, X0, t_end=1.0), names=["polytop"])
    with pytest.raises(ValueError, match="one start"):
        al.predict(EYE, np.stack([X0, X0]))


def test_near_misses_are_said():
    (found,) = al.predict(al.Weights(V=np.diag([1.0, 1.0 - 3e-9])), names=["three_hyperplanes"])
    (open_one,) = [one for one in found.hypotheses if one.holds is None]
    assert found.applies is None and "3.0e-09 may be 0" in open_one.note
    (found,) = al.predict(al.Weights(V=[[1.0, -0.5], [0.5, 1.0]]), names=["three_hyperplanes"])
    assert found.applies is False and "real" in str(found)


@pytest.mark.parametrize(
    ("d", "rank"), [(384, 24), pytest.param(2048, 128, marks=pytest.mark.slow)]
)
def test_a_large_thin_matrix_is_read_in_seconds(d, rank):

    rng = np.random.default_rng(0)
    B, C, Q = (
        rng.normal(size=(d, rank)) / d**0.5,
        rng.normal(size=(rank, d)) / d**0.5,
        rng.normal(size=(rank, d)) / d**0.5,
    )
    assert len(al.predict(al.Weights(Q=Q, K=Q, V=(B, C)))) == len(theorems)


def test_a_run_brings_its_equation_and_its_start():
    weights, x0 = al.Weights(V=np.eye(2)), np.random.default_rng(3).normal(size=(5, 2))
    run = al.simulate(weights, x0, t_end=1.0, beta=0.5, mask="causal")
    ours, theirs = al.predict(run), al.predict(weights, x0, beta=0.5, mask="causal")
    assert str(ours) == str(theirs) and [one.applies for one in ours] == [
        one.applies for one in theirs
    ]


@pytest.mark.parametrize("options", [
    {"x0": np.ones((3, 2))}, {"beta": 2.0}, {"mask": "causal"}, {"layers": 3}, {"feedforward": {}},
])  # fmt: skip
def test_a_run_takes_no_other_equation(options):
    run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=0.5)
    with pytest.raises(TypeError, match="Leave x0 and the options out"):
        al.predict(run, **options)


def test_a_run_without_its_start_is_refused():
    run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=0.5, times=[0.25, 0.5])
    with pytest.raises(ValueError, match="must hold its start"):
        al.predict(run)
