"""The reason why exp_mean fails at once: given where it is the reason, with the right numbers, and
nowhere else.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import attnlab as al
from attnlab import Status
from attnlab.analysis.blow_up import explain_blow_up
from command_line import attnlab

REASON = "exp_mean divides by the number of tokens, not by the sum of the weights"
CUBE = np.random.default_rng(0).uniform(-1, 1, (8, 3))


def tokens(largest):
    """Tokens of which the longest has |x|^2 = largest."""
    return CUBE * np.sqrt(largest / (CUBE**2).sum(axis=1).max())


def failed(x0, V=1.0, **options):
    """The run that stopped, and the message that it stopped with."""
    options = {"t_end": 2.0, **options} if "layers" not in options else options
    with pytest.raises(al.RunFailed) as caught:
        al.simulate(al.Weights(V=V * np.eye(3)), x0, **{"kernel": "exp_mean", **options})
    return caught.value.run, str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{}, {"stepper": "rk4", "dt": 0.01}, {"stepper": "euler", "dt": 0.01}, {"layers": 5}],
    ids=["adaptive", "rk4", "euler", "layers"],
)
@pytest.mark.parametrize(("largest", "beta"), [(50.0, 1.0), (100.0, 0.5), (2.0, 25.0)])
def test_scores_of_fifty_are_the_reason(options, largest, beta):
    run, said = failed(tokens(largest), beta=beta, **options)
    assert run.status in (Status.STALLED, Status.NON_FINITE)
    assert (
        REASON in said
        and "beta |x|^2 = 50, and e^50 = 5.2e+21 makes the first step too fast." in said
    )
    assert "Scale the tokens, beta, Q or K down, or use the kernel softmax." in said
    assert run.status.value not in said  # "Shorten t_end" would not help


def test_the_largest_score_is_that_of_two_tokens_where_it_is():
    """Q x = (x_1, x_1), K x = (x_2, x_2): the score of tokens 0 and 1 is 2 * 5 * 6, those of a
    token with itself are 0.
    """
    weights = al.Weights(Q=[[1.0, 0.0], [1.0, 0.0]], K=[[0.0, 1.0], [0.0, 1.0]], V=np.eye(2))
    with pytest.raises(
        al.RunFailed, match=r"the largest beta <Q x_i, K x_j> = 60, and e\^60 = 1.1e\+26 makes"
    ):
        al.simulate(weights, [[5.0, 0.0], [0.0, 6.0]], t_end=1.0, kernel="exp_mean")


def test_under_the_causal_mask_only_pairs_that_see_each_other_count():
    """Token 0 sees itself only, with score 0; under the full mask its score with token 1 would be
    60.
    """
    weights = al.Weights(Q=[[1.0, 0.0]], K=[[0.0, 2.0]], V=np.eye(2))
    x0 = np.array([[5.0, 0.0], [0.0, 6.0]])
    masked = al.simulate(weights, x0, t_end=0.1, kernel="exp_mean", mask="causal", throw=False)
    assert (
        masked.status is Status.STALLED
        and masked.stats["reached"] > 0.01
        and explain_blow_up(masked) == ""
    )
    with pytest.raises(al.RunFailed, match="<Q x_i, K x_j> = 60"):
        al.simulate(weights, x0, t_end=0.1, kernel="exp_mean")
    with pytest.raises(al.RunFailed, match="<Q x_i, K x_j> = 60"):
        al.simulate(weights, x0[::-1], t_end=0.1, kernel="exp_mean", mask="causal")


def test_the_number_is_that_of_a_pair_that_sees_each_other():
    """Row 0 and column 1 have the score 60, which the mask hides; row 2 and column 1 have 50."""
    weights = al.Weights(Q=[[1.0, 0.0]], K=[[0.0, 2.0]], V=np.eye(2))
    x0 = [[5.0, 0.0], [0.0, 6.0], [25 / 6, 0.0]]
    for mask, number in (("full", 60), ("causal", 50)):
        with pytest.raises(al.RunFailed, match=f"<Q x_i, K x_j> = {number}, "):
            al.simulate(weights, x0, t_end=0.1, kernel="exp_mean", mask=mask)


def test_a_score_beyond_double_precision_is_said_to_be():
    assert re.search(
        r"beta \|x\|\^2 = 5e\+03, and e\^5e\+03, beyond double precision, makes",
        failed(tokens(5000.0))[1],
    )


@pytest.mark.parametrize("options", [{}, {"stepper": "euler", "dt": 0.01}, {"layers": 4}])
def test_on_the_sphere_tokens_cannot_be_scaled(options):
    run, said = failed(
        CUBE / np.linalg.norm(CUBE, axis=1, keepdims=True),
        np.diag([1.0, 2.0, 3.0]),
        beta=800.0,
        geometry="sphere",
        **options,
    )
    assert REASON in said and "Scale beta, Q or K down, or use the kernel softmax." in said


@pytest.mark.parametrize(
    ("x0", "V", "options"),
    [
        (tokens(1.0), 1.0, {}),  # the tokens grow first, and the weights with them
        (tokens(1.0), 1.0, {"stepper": "rk4", "dt": 0.01}),
        (tokens(1.0), 1.0, {"layers": 9}),
        (tokens(0.1), 1e200, {"layers": 9}),  # V is too large, the weights are about 1
        (tokens(0.1), 1e6, {"stepper": "euler", "dt": 0.5}),
        (tokens(0.1), 3000.0, {"layers": 9}),
        (tokens(12.0), 1e-4, {"t_end": 1.0}),  # large weights, and V so small that it takes a while
        (tokens(50.0), -1e100, {"layers": 9}),  # softmax would fail as well
        (
            tokens(50.0),
            1e308,
            {"kernel": "softmax", "layers": 9},
        ),  # another kernel, the same tokens
        (tokens(50.0), 1.0, {"kernel": "softmax", "max_steps": 1}),
        (tokens(50.0), -1.0, {"max_steps": 3}),  # exp_mean, but it is the number of steps
        (tokens(50.0), 1e-25, {"stepper": "euler", "dt": 0.01, "t_end": 1e9, "max_steps": 3}),
    ],
)
def test_elsewhere_the_status_says_why(x0, V, options):
    run, said = failed(x0, V, **options)
    assert REASON not in said and run.status.value in said
    assert explain_blow_up(run) == ""


def test_an_observable_that_is_not_finite_is_the_reason_it_says():
    """The run of the first test, with the mark that an observable ended it."""
    run, said = failed(tokens(50.0))
    assert REASON in said and REASON in explain_blow_up(run)
    assert (
        explain_blow_up(dataclasses.replace(run, stats={**run.stats, "not_finite": "energy"})) == ""
    )


def test_large_scores_and_a_late_end_are_two_things():
    """V = -1 brings the tokens to rest although the scores are large: a run that stops much later
    has another reason.
    """
    run = al.simulate(al.Weights(V=-np.eye(3)), tokens(50.0), t_end=1.0, kernel="exp_mean")
    assert run.is_ok and explain_blow_up(run) == ""
    assert (
        explain_blow_up(dataclasses.replace(run, status=Status.STALLED)) == ""
    )  # it had reached t = 1


def test_of_a_batch_the_member_that_blew_up_is_named():
    both = np.stack([0.01 * CUBE, tokens(50.0)])
    run, said = failed(both, t_end=1e-3)
    assert "Member 1 of the batch (1 of 2 did not finish)" in said and "beta |x|^2 = 50" in said
    assert explain_blow_up(run, 0) == "" and "beta |x|^2 = 50" in explain_blow_up(run, 1)


def test_without_the_start_nothing_is_guessed():
    run = al.simulate(
        al.Weights(V=np.eye(3)), tokens(50.0), times=[0.5, 1.0], kernel="exp_mean", throw=False
    )
    assert not run.is_ok and explain_blow_up(run) == ""
    assert (
        "beta |x|^2 = 50" in failed(tokens(50.0), times=[0.5, 1.0], t_end=1.0)[1]
    )  # simulate knows it


SPEC = """
[weights]
family = "identity"
[dynamics]
kernel = "exp_mean"
[start]
law = "given"
x = [[5.0, 5.0], [1.0, 0.0]]
[solve]
t_end = 2.0
"""


def test_the_command_line_gives_the_reason(workplace):
    (workplace / "blow.toml").write_text(SPEC)
    said = attnlab("run", "blow.toml", code=1).stderr
    assert (
        "beta |x|^2 = 50, and e^50 = 5.2e+21" in said
        and "The part that was computed is in blow.nc." in said
    )
