"""Every registered result, four ways: holds -> SUPPORTED, breaks -> OUT_OF_SCOPE, short ->
UNDECIDED, spoiled -> CONTRADICTED.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import attnlab as al
from attnlab.theory import theorems
from attnlab.theory.evidence import CONTINUED, Evidence
from attnlab.theory.specimens import in_z
from attnlab.theory.verbs import verdict as judge
from attnlab.verdicts import Outcome

NAMES = list(theorems)


@functools.cache
def holding(name: str) -> al.Trajectory:
    return theorems[name].holds()


def judged(name: str, run: al.Trajectory):
    (verdict,) = al.check(run, names=[name])
    return verdict


@pytest.mark.parametrize("name", NAMES)
def test_a_run_it_is_true_of_supports_it(name):
    verdict = judged(name, holding(name))
    assert verdict.outcome is Outcome.SUPPORTED, verdict.paragraph()
    assert verdict.error <= verdict.resolution and verdict.measured - verdict.bound <= verdict.error
    assert verdict.evidence and all(one.holds for one in verdict.hypotheses)


@pytest.mark.parametrize("name", NAMES)
def test_outside_its_hypotheses_it_says_nothing(name):
    verdict = judged(name, theorems[name].breaks())
    assert verdict.outcome is Outcome.OUT_OF_SCOPE, verdict.paragraph()
    assert verdict.unmet


@pytest.mark.parametrize("name", NAMES)
def test_a_run_too_short_or_too_coarse_decides_nothing(name):
    verdict = judged(name, theorems[name].short())
    assert verdict.outcome is Outcome.UNDECIDED, verdict.paragraph()
    assert any(word in verdict.unmet for word in ("would decide", "use rtol", "use stepper")), (
        verdict.unmet
    )


@pytest.mark.parametrize("name", NAMES)
def test_spoiled_data_contradict_it(name):
    verdict = judged(name, theorems[name].spoil(holding(name)))
    assert verdict.outcome is Outcome.CONTRADICTED, verdict.paragraph()


@pytest.mark.parametrize("name", NAMES)
def test_data_of_another_equation_do_not_support_it(name):
    # the same start, the same claim to accuracy; but what happened was another equation with
    # weights a little different
    run = holding(name)
    other = al.Weights(
        Q=run.dynamics.weights.Q,
        K=1.3 * run.dynamics.weights.K,
        V=1.1 * run.dynamics.weights.full_V,
    )
    options = {
        "beta": run.dynamics.beta,
        "mask": run.dynamics.mask,
        "feedforward": run.dynamics.feedforward,
    }
    foreign = al.simulate(other, run.x[0], times=run.times, throw=False, **options)
    assert foreign.states.shape == run.states.shape
    verdict = judged(name, dataclasses.replace(foreign, dynamics=run.dynamics, error=run.error))
    assert verdict.outcome is not Outcome.SUPPORTED, verdict.paragraph()


class Believed(Evidence):
    """Evidence of data that nobody asks whether they belong to their equation: whatever rests at
    the end rests for ever.
    """

    departure = 0.0

    @property
    def continued(self) -> al.Trajectory:
        rest = in_z(self.run, self.run.z[[0, *[-1] * len(CONTINUED)]])
        times = np.concatenate([[0.0], self.t_end * CONTINUED])
        return dataclasses.replace(rest, times=times, log_scale=np.zeros(len(times)))


class Uncertified(Believed):
    """The same where no limit is certified, so that the end of the run is judged."""

    @functools.cached_property
    def limit(self) -> al.Limit:
        return dataclasses.replace(super().limit, grade="undecided", reason="left out by this test")


@pytest.mark.parametrize("kind", [Believed, Uncertified])
@pytest.mark.parametrize("name", NAMES)
def test_random_numbers_do_not_support_it(name, kind):
    for seed in range(3):
        data = theorems[name].nonsense(holding(name), np.random.default_rng(seed))
        assert data.states.shape == holding(name).states.shape and not np.array_equal(
            data.z, holding(name).z
        )
        found = judge(theorems[name], kind(data))
        assert found.outcome is not Outcome.SUPPORTED, found.paragraph()


@pytest.mark.parametrize("name", NAMES)
def test_what_it_says_beforehand(name):
    run = holding(name)
    dynamics = run.dynamics
    names = ("beta", "mask", "geometry", "dt", "kernel", "feedforward")
    options = {name: getattr(dynamics, name) for name in names}
    (before,) = al.predict(dynamics.weights, run.x[0], names=[name], **options)
    assert before.applies is True and before.limit and before.theorem == name, str(before)
    (without,) = al.predict(dynamics.weights, names=[name], **options)
    assert without.applies is not False


@pytest.mark.parametrize("name", NAMES)
def test_the_record_is_complete(name):
    theorem = theorems[name]
    assert theorem.name == name and theorem.kind in ("theorem", "conjecture", "estimate")
    assert "arXiv" in theorem.cite and len(theorem.statement) > 40
