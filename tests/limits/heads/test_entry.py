"""al.limit for several heads on what is known by other means; what is refused; files, verification
and the command line.
"""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

import attnlab as al
from command_line import attnlab
from head_systems import HeadSystem, draw_heads, rescaled_by_loops, velocity
from stored import difference
from tampering import in_state, put


def two_heads(v=(1.0, 0.7), n=14, seed=33) -> HeadSystem:
    M = np.array([[[1.0, 0.3], [0.3, 0.7]], [[0.6, -0.2], [-0.2, 1.1]]])
    return HeadSystem(M, np.array(v), np.random.default_rng(seed).uniform(-2.0, 2.0, (n, 2)))


# ---- what is known
# --------------------------------------------------------------------------------------------------


def test_two_tokens_on_a_line_against_the_closed_form():
    # tokens u, -u: u' = sum_h v_h u tanh(m_h u^2), so ln z moves by the integral of sum_h v_h (tanh
    # - 1)
    from scipy.integrate import solve_ivp

    v, m = np.array([0.7, 0.5]), np.array([1.0, 0.3])
    limit = HeadSystem(m[:, None, None], v, np.array([[0.8], [-0.8]])).limit()
    found = solve_ivp(
        lambda t, log_z: (v * (np.tanh(m * np.exp(2 * (log_z + t * v.sum()))) - 1)).sum(
            keepdims=True
        ),
        (0.0, 12.0),
        [np.log(0.8)],
        rtol=1e-12,
        atol=1e-14,
    )
    assert limit.grade == "exact" and limit.count == 2
    assert (
        abs(limit.points[0, 0] - np.exp(found.y[0, -1])) < 1e-9 and abs(limit.points.sum()) < 1e-9
    )


@pytest.mark.parametrize("seed", [0, 3])
def test_the_tokens_are_those_of_the_flow_by_loops(seed):
    system = draw_heads(seed)
    t = 1.5 / system.v.sum()
    limit = system.limit(times=[0.0, t, 60.0 / system.v.sum()])
    assert limit.certified
    assert np.abs(limit.z[0] - system.x0).max() < 1e-13
    assert np.abs(limit.z[1] - rescaled_by_loops(system, t)).max() < 1e-8 * np.abs(system.x0).max()
    assert (
        np.abs(limit.z[2] - limit.points).max() < 1e-12 * np.abs(system.x0).max()
    )  # e^-60 of the size of a class


def test_a_token_between_classes_ends_at_their_mean():
    system = two_heads()
    limit = system.limit()
    mixed = np.flatnonzero(
        limit.labels[limit.head_leaders[0]] != limit.labels[limit.head_leaders[1]]
    )
    assert limit.count == 4 and mixed.size and "different classes" in limit.reason
    means = (limit.points[limit.head_leaders] * system.v[:, None, None]).sum(
        axis=0
    ) / system.v.sum()
    assert np.abs(means - limit.points).max() < 1e-12
    assert (limit.leaders[mixed] == -1).all() and limit.horizon is None and limit.certified
    # and each class wins in every head
    classes = np.unique(limit.points[np.unique(limit.head_leaders)], axis=0)
    for M in system.M:
        scores = classes @ M @ limit.points.T
        assert (np.einsum("ci,ij,cj->c", classes, M, classes)[:, None] >= scores - 1e-9).all()


def test_sixty_random_systems():
    grades = [draw_heads(seed).limit().grade for seed in range(20)]
    assert sum(grade == "exact" for grade in grades) >= 19


@pytest.mark.slow
def test_hundreds_of_random_systems():
    grades = [draw_heads(seed).limit().grade for seed in range(2000, 2200)]
    assert sum(grade != "undecided" for grade in grades) >= 190


def test_an_exactly_symmetric_start_is_not_decided_by_rounding():
    # mirror pairs and a token on the mirror: unstable, and every perturbation ends elsewhere
    half = np.array([[1.0, 0.4], [1.4, -0.3]])
    x0 = np.concatenate([half, half * [-1.0, 1.0], [[0.0, 0.2]]])
    limit = HeadSystem(np.stack([np.diag([1.0, 0.2]), np.diag([0.8, 0.3])]), np.ones(2), x0).limit()
    assert (
        not limit.certified
        or np.abs(limit.points - limit.points[[2, 3, 0, 1, 4]] * [-1.0, 1.0]).max() < 1e-8
    )
    line = HeadSystem(
        np.array([[[1.0]], [[0.5]]]), np.ones(2), np.array([[-1.0], [0.0], [1.0]])
    ).limit()
    assert line.grade == "undecided" and line.count is None


# ---- what is refused
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (
            {"V": np.stack([np.eye(2), [[1.0, 0.1], [0.1, 0.5]]])},
            {},
            ("with their own V_h", "Head 1 has a V that is not diagonal"),
        ),
        (
            {"V": np.stack([np.eye(2), -0.2 * np.eye(2)])},
            {"dt": 0.1},
            ("in residual layers", "v_h > 0", "without dt"),
        ),
        ({}, {"dt": 0.1, "mask": "causal"}, ("in residual layers", "no mask", "without dt")),
        ({}, {"feedforward": {"sigma": "relu"}}, ("feed-forward",)),
        ({}, {"kernel": "hardmax"}, ("softmax",)),
    ],
    ids=["own V", "negative V in layers", "masked layers", "feed-forward", "hardmax"],
)
def test_other_equations_of_several_heads_are_refused_by_name(change, options, words):
    system = two_heads()
    weights = al.Weights(
        Q=system.weights.Q, K=system.weights.K, V=change.get("V", system.weights.V)
    )
    limit = al.limit(weights, system.x0, **options)
    assert (
        limit.grade == "undecided"
        and limit.reason.startswith("Undecided (not covered)")
        and limit.head_leaders is None
    )
    assert all(word in limit.reason for word in words), limit.reason


# ---- residual layers


@pytest.mark.parametrize("dt", [0.05, 0.5, 1.0])
def test_layers_are_those_of_a_loop(dt):
    # x_{k+1} = x_k + dt sum_h v_h (mean of head h); z = (1 + dt v)^{-k} x
    system = draw_heads(3)
    v, x, factor = system.v.sum(), system.x0, 1.0
    few, many = 4, int(np.ceil(22.0 / np.log1p(dt * v)))
    limit = system.limit(dt=dt, times=[few * dt, many * dt])
    seen = []
    for k in range(many):
        x, factor = x + dt * velocity(system, x), factor * (1.0 + dt * v)
        if k + 1 in (few, many):
            seen.append(x / factor)
    assert limit.grade == "exact" and al.verify(limit).holds
    assert np.abs(limit.z[0] - seen[0]).max() < 1e-12
    # doubles lose the digits inside a class, and not where it is
    assert np.abs(limit.z[1] - seen[1]).max() < 1e-9
    assert np.abs(limit.points - seen[1]).max() < 1e-8


def test_many_layers_of_small_steps_are_the_flow():
    system = draw_heads(5)
    flow, layers = system.limit(), system.limit(dt=2.0**-12)
    assert flow.certified and layers.certified
    assert np.array_equal(flow.labels, layers.labels)
    assert np.abs(flow.points - layers.points).max() < 0.01 * np.abs(system.x0).max()


def test_layers_are_answered():
    grades = [
        draw_heads(seed).limit(dt=[0.02, 0.1, 0.5, 1.0][seed % 4]).grade for seed in range(16)
    ]
    assert sum(grade == "exact" for grade in grades) >= 15


def test_a_certificate_of_layers_is_not_one_of_the_flow():
    limit = two_heads().limit(dt=0.5)
    for dt in (None, 0.25):
        dynamics = dataclasses.replace(limit.dynamics, dt=dt)
        assert al.verify(dataclasses.replace(limit, dynamics=dynamics)).holds is False


def test_a_head_with_scores_of_zero_never_decides():
    limit = HeadSystem(np.stack([np.eye(2), np.zeros((2, 2))]), np.ones(2), two_heads().x0).limit()
    assert limit.grade == "undecided" and "(not boolean)" in limit.reason


def test_too_little_work_is_said():
    limit = two_heads().limit(work=100.0)
    assert (
        limit.reason.startswith("Undecided (work)")
        and "work=" in limit.reason
        and (limit.labels == -1).all()
    )


def test_a_proof_is_for_one_head():
    limit = two_heads().limit(proof=True)
    assert limit.grade == "exact" and "not proved: proofs are for one head" in limit.reason


# ---- files, the check, the command line
# ----------------------------------------------------------------------------------------


def test_a_file_holds_all_of_it_and_the_check_passes(tmp_path):
    limit = two_heads().limit(times=[1.0, 20.0])
    al.save(limit, tmp_path / "limit.nc")
    assert difference(limit, al.load(tmp_path / "limit.nc")) == ""
    found = al.verify(tmp_path / "limit.nc", again=True)
    assert (
        found.holds
        and found.way == "heads"
        and all(one.holds and one.says.endswith(".") for one in found.checks)
    ), found
    late = al.limit(
        al.simulate(two_heads().weights, two_heads().x0, times=[0.4, 0.9]), times=[1.0, 30.0]
    )
    assert al.verify(late, again=True).holds


def test_limits_of_many_kinds_pass_the_check():
    for seed in (1, 4, 7, 12):
        system = draw_heads(seed)
        assert al.verify(
            HeadSystem(system.M, system.v, np.concatenate([system.x0, system.x0[:3]])).limit()
        ).holds


SPOILED = {
    "labels": (
        lambda one: dataclasses.replace(one, labels=np.zeros_like(one.labels)),
        "grouped otherwise",
    ),
    "points": (
        lambda one: dataclasses.replace(one, points=one.points + 1e-6),
        "away from where the state shows it",
    ),
    "leaders of heads": (
        lambda one: dataclasses.replace(one, head_leaders=one.head_leaders[::-1]),
        "leaders of the heads",
    ),
    "leaders": (
        lambda one: dataclasses.replace(one, leaders=np.zeros_like(one.leaders)),
        "leader of token",
    ),
    "error": (lambda one: dataclasses.replace(one, error=1e-16), "10 times|ten times|given as"),
    "grade": (lambda one: dataclasses.replace(one, grade="group"), "does not follow"),
    "events": (
        lambda one: dataclasses.replace(one, events=(al.Event(0.1, 0, 1, 2),)),
        "names some",
    ),
    "another leader": (
        lambda one: in_state(
            one, leader=put((0, 0, 3), int(one.state.values["leader"][0, 0, 3]) ^ 1)
        ),
        "is not shown to stay open|does not listen",
    ),
    "another token": (
        lambda one: in_state(one, tokens=put((1, 0, 4, 0), 1e3)),
        "is not shown to stay open",
    ),
    "tokens halfway": (
        lambda one: in_state(one, tokens=lambda x: 0.05 * x),
        "is not shown to stay open",
    ),
    "copies": (lambda one: in_state(one, tokens=lambda x: np.stack([x[0]] * 3)), "are copies"),
    "tolerance": (
        lambda one: in_state(one, tolerance=lambda x: 1e-4 * x),
        "a tolerance that double precision",
    ),
    "start size": (
        lambda one: in_state(one, start_size=lambda x: 0.1 * x),
        "are larger than the state says",
    ),
    "mixed size": (
        lambda one: in_state(one, mixed_size=lambda x: 1e-9 * x),
        "were mixed at the start",
    ),
    "time": (
        lambda one: in_state(one, t=lambda t: t + 0.1),
        "time of the decision|away from|outside|are .* apart|given as|ten times",
    ),
    "start": (lambda one: dataclasses.replace(one, x0=one.x0 + 1e-9), "other first tokens"),
    "numbers that are none": (
        lambda one: in_state(one, tokens=put((0, 0, 0, 0), np.nan)),
        "must be numbers",
    ),
    "later times": (
        lambda one: dataclasses.replace(one, z=one.z + 1e-3),
        "is not where the state leads",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_certificate_is_refused_with_the_reason(name):
    change, words = SPOILED[name]
    found = al.verify(change(two_heads().limit(times=[50.0])))
    assert found.holds is False and re.search(words, found.reason), found.reason


def test_weights_that_are_not_covered_are_refused_by_the_check():
    limit, system = two_heads().limit(), two_heads()
    for V in (np.stack([np.eye(2), -np.eye(2)]), np.stack([np.eye(2), np.diag([1.0, 2.0])])):
        weights = al.Weights(Q=system.weights.Q, K=system.weights.K, V=V)
        found = al.verify(
            dataclasses.replace(
                limit, dynamics=dataclasses.replace(limit.dynamics, weights=weights)
            )
        )
        assert found.holds is False and "positive multiple of I" in found.reason


def test_the_command_line_prints_one_leader_for_each_head(tmp_path):
    system = two_heads()
    spec = {
        "weights": {
            "family": "given",
            "Q": system.weights.Q.tolist(),
            "K": system.M.tolist(),
            "V": system.weights.V.tolist(),
        },
        "start": {"law": "given", "x": system.x0.tolist()},
        "solve": {"t_end": 3.0},
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    limit = system.limit()
    files = ["-o", str(tmp_path / "limit.nc"), "-o", str(tmp_path / "limit.csv")]
    out = attnlab("limit", str(tmp_path / "spec.json"), *files).stdout
    one, other = (
        int(token)
        for token in limit.head_leaders[
            :, np.argmax(limit.head_leaders[0] != limit.head_leaders[1])
        ]
    )
    assert f"{one}/{other}" in out and "classes" in out
    assert "HOLDS" in attnlab("verify", str(tmp_path / "limit.nc")).stdout
    assert (
        (tmp_path / "limit.csv")
        .read_text()
        .startswith("token,label,leader,leader_head0,leader_head1,limit1,limit2")
    )
