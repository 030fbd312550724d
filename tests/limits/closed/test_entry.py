"""al.limit for causal masks with several heads, diagonal V_h and Jordan blocks on what is known by
other means; what is refused; files and the check; the same question asked otherwise.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import attnlab as al
from head_systems import HeadSystem, draw_heads, partition
from stored import difference
from tampering import in_state, put

BLOCK = np.array([[1.0, 1.0], [0.0, 1.0]])


def own(seed=0, n=7, **more) -> tuple[al.Weights, np.ndarray]:
    """Two heads with diagonal V_h."""
    rng = np.random.default_rng([24, 5, seed])
    M = np.array([[[1.0, 0.3], [0.3, 0.7]], [[0.6, -0.2], [-0.2, 1.1]]])
    V = np.array([np.diag([1.0, 0.5]), np.diag([0.5, 0.75])])
    return al.Weights(Q=np.tile(np.eye(2), (2, 1, 1)), K=M, V=V), rng.uniform(-2.0, 2.0, (n, 2))


def block(seed=0, n=7, V=BLOCK) -> tuple[al.Weights, np.ndarray]:
    d = len(V)
    return al.Weights(V=V), np.random.default_rng([24, 6, seed]).uniform(-2.0, 2.0, (n, d))


def causal(seed=0) -> al.Limit:
    return draw_heads(seed).limit(mask="causal")


# ---- what is known


def test_a_token_that_leads_itself_in_one_head_only():
    # x_0' = 2 x_0; token 1 takes the larger of the two in head 0 and the smaller in head 1, for
    # ever: x_1 - x_0 grows like e^t, so both end at x_0(0), and no class condition holds
    M = np.array([[[1.0]], [[-0.5]]])
    limit = HeadSystem(M, np.ones(2), np.array([[1.0], [1.5]])).limit(mask="causal", times=[9.0])
    assert limit.grade == "exact" and limit.head_leaders.tolist() == [[0, 1], [0, 0]]
    assert limit.labels.tolist() == [0, 0] and np.abs(limit.points - 1.0).max() < 1e-9
    assert np.abs(limit.z[0, 0] - 1.0) < 1e-9 and 0.0 < limit.z[0, 1, 0] - 1.0 < 2 * np.exp(-9.0)
    assert al.verify(limit).holds


def test_the_first_token_moves_alone_under_the_mask():
    system = draw_heads(4)
    limit = system.limit(mask="causal", times=[0.0, 1.0 / system.v.sum(), 40.0 / system.v.sum()])
    assert limit.certified
    assert np.abs(limit.points[0] - system.x0[0]).max() < 1e-9
    run = al.simulate(
        system.weights, system.x0, times=[1.0 / system.v.sum()], mask="causal", rtol=1e-12
    )
    assert np.abs(limit.z[1] - run.x[0] * np.exp(-1.0)).max() < 1e-8
    # the tokens before one do not feel it
    shorter = HeadSystem(system.M, system.v, system.x0[:-2]).limit(mask="causal")
    assert np.abs(shorter.points - limit.points[:-2]).max() <= shorter.error + limit.error


def test_one_token_under_a_jordan_block_stays_where_it_is():
    limit = al.limit(al.Weights(V=BLOCK), [[0.3, -0.7]], times=[0.0, 5.0])
    assert limit.certified and np.abs(limit.z - [0.3, -0.7]).max() < 1e-12
    assert np.abs(limit.points - [0.3, -0.7]).max() < 1e-12


def test_a_jordan_block_is_the_limit_of_diagonalizable_ones():
    # V with eigenvalues 1 and 1 + e; points differ by about e times the time of the decision
    weights, x0 = block(2)
    exact = al.limit(weights, x0)
    V = np.array([[1.0, 1.0], [0.0, 1.0 + 2.0**-9]])
    near = al.limit(al.Weights(V=V), x0, budget=20.0)
    assert exact.grade == "exact" and exact.head_leaders is None
    if near.certified:
        assert np.array_equal(near.labels, exact.labels)
        assert np.abs(near.limits - exact.limits).max() < 0.1


def test_diagonal_values_of_a_single_score_agree_with_one_head():
    # scores that differ in nothing that matters: 2 M asks for the same leaders, and beta is large
    x0 = np.random.default_rng(3).uniform(-2, 2, (6, 2))
    V = np.diag([1.0, 0.5])
    one = al.limit(al.Weights(V=V), x0, beta=40.0)
    two = al.limit(
        al.Weights(
            Q=np.tile(np.eye(2), (2, 1, 1)),
            K=np.array([40.0 * np.eye(2), 80.0 * np.eye(2)]),
            V=np.array([0.25 * V, 0.75 * V]),
        ),
        x0,
    )
    if one.certified and two.certified:
        assert np.array_equal(one.labels, two.labels)
        assert np.array_equal(two.head_leaders[0], one.leaders)
        assert np.abs(one.points - two.points).max() < 1e-6
    assert two.certified


def turning(n=4, seed=0) -> tuple[al.Weights, np.ndarray]:
    """Two heads that do not commute, with the sum diag(1, 0.5)."""
    other = np.array([[0.25, 0.125], [-0.25, 0.25]])
    V = np.array([np.diag([1.0, 0.5]) - other, other])
    M = np.array([[[1.0, 0.3], [0.3, 0.7]], [[0.6, -0.2], [-0.2, 1.1]]])
    x0 = np.random.default_rng([24, 8, seed]).uniform(-2.0, 2.0, (n, 2))
    return al.Weights(Q=np.tile(np.eye(2), (2, 1, 1)), K=M, V=V), x0


def test_heads_that_do_not_commute_against_a_long_run():
    # z converges where all heads of a token choose one class
    from scipy.integrate import solve_ivp

    seen = 0
    for seed in range(6):
        weights, x0 = turning(seed=seed)
        limit = al.limit(weights, x0, times=[0.0, 2.0, 9.0])
        if not limit.certified:
            continue
        seen += 1

        def velocity(_, y, weights=weights, shape=x0.shape):
            x, out = y.reshape(shape), np.zeros(shape)
            for M, V in zip(np.array(weights.M), weights.full_V, strict=True):
                scores = x @ M @ x.T
                P = np.exp(scores - scores.max(axis=1, keepdims=True))
                out += (P / P.sum(axis=1, keepdims=True)) @ x @ V.T
            return out.ravel()

        run = solve_ivp(velocity, (0, 9), x0.ravel(), "DOP853", [2.0, 9.0], rtol=1e-12, atol=1e-12)
        for number, t in enumerate([2.0, 9.0]):
            z = run.y[:, number].reshape(x0.shape) * np.exp(-np.array([1.0, 0.5]) * t)
            assert np.abs(limit.z[number + 1] - z).max() < 1e-7
        assert np.abs(limit.z[2] - limit.points).max() < 0.3 and al.verify(limit).holds
    assert seen >= 3


def test_tokens_with_a_negative_head_against_the_closed_form():
    # tokens u, -u: u' = sum_h v_h u tanh(m_h u^2), so ln z moves by the integral of sum_h v_h (tanh
    # - 1); v_1 < 0
    from scipy.integrate import solve_ivp

    v, m = np.array([1.0, -0.3]), np.array([1.0, 0.5])
    limit = HeadSystem(m[:, None, None], v, np.array([[0.8], [-0.8]])).limit()
    found = solve_ivp(
        lambda t, y: (v * (np.tanh(m * np.exp(2 * (y + t * v.sum()))) - 1)).sum(keepdims=True),
        (0.0, 20.0),
        [np.log(0.8)],
        rtol=1e-12,
        atol=1e-14,
    )
    assert limit.grade == "exact" and limit.count == 2 and al.verify(limit).holds
    assert abs(limit.points[0, 0] - np.exp(found.y[0, -1])) < 1e-9


def test_many_random_starts_are_answered():
    grades = [causal(seed).grade for seed in range(1, 7)]
    grades += [al.limit(*own(seed)).grade for seed in range(7)]
    grades += [al.limit(*block(seed)).grade for seed in (0, 2, 3, 5, 6, 7)]
    assert sum(grade == "exact" for grade in grades) >= 17


def test_statements_are_checked_against_these_limits():
    weights, x0 = block(2)
    run = al.simulate(weights, x0, t_end=8.0, measure_error=True)
    found = {one.theorem: one for one in al.check(run, names=["codimension"])}
    codimension = found["codimension"]
    assert codimension.outcome.name == "SUPPORTED" and "limit certified" in codimension.evidence
    # F is the first coordinate; at infinity tokens are compared along it
    V = np.array([np.diag([1.0, -0.5]), np.diag([0.5, -0.25])])
    other = al.Weights(Q=own()[0].Q, K=own()[0].K, V=V)
    run = al.simulate(other, x0, t_end=6.0, measure_error=True)
    assert al.limit(run).basis.tolist() == [[1.0], [0.0]]
    assert al.check(run, names=["stability"])


# ---- what is refused or open


@pytest.mark.parametrize(
    ("weights", "options", "words"),
    [
        (
            al.Weights(
                Q=np.tile(np.eye(2), (2, 1, 1)),
                K=np.array([np.eye(2), 2 * np.eye(2)]),
                V=np.array([BLOCK, np.eye(2)]),
            ),
            {},
            (
                "with their own V_h",
                "Head 0 has a V that is not diagonal",
                "eigenvectors of the sum",
            ),
        ),
        (own()[0], {"dt": 0.1}, ("in residual layers", "without dt")),
        (own()[0], {"mask": "causal", "dt": 0.1}, ("in residual layers", "without dt")),
        (own()[0], {"kernel": "hardmax"}, ('kernel="softmax", not for "hardmax"',)),
        (al.Weights(V=BLOCK), {"dt": 0.1}, ("Jordan block", "without dt")),
        (al.Weights(V=BLOCK), {"kernel": "hardmax"}, ('kernel="softmax", not for "hardmax"',)),
        (
            al.Weights(V=np.array([[1.0, 0.5], [-0.5, 2.0]])),
            {},
            ("Jordan block near the eigenvalue 1.5", "give tokens and weights in a basis"),
        ),
        (
            al.Weights(
                Q=np.tile(np.eye(2), (2, 1, 1)),
                K=np.array([np.eye(2), 2 * np.eye(2)]),
                V=np.array([np.diag([1.0, -1.0]), np.diag([-1.0, 0.5])]),
            ),
            {},
            ("nothing grows", "Lyapunov"),
        ),
        (al.Weights(V=-BLOCK), {}, ("nothing grows", "Lyapunov")),
    ],
    ids=[
        "own V that is not diagonal",
        "own V in layers",
        "causal layers",
        "hardmax with heads",
        "a block in layers",
        "a block under hardmax",
        "a block in another basis",
        "nothing grows",
        "a block that shrinks",
    ],
)
def test_what_is_refused_is_named(weights, options, words):
    limit = al.limit(weights, own()[1], **options)
    assert limit.grade == "undecided" and limit.reason.startswith("Undecided (not covered)")
    assert limit.head_leaders is None and all(word in limit.reason for word in words), limit.reason


def test_a_token_that_is_pushed_away_has_no_limit_and_the_reason_says_so():
    # v = (1, -0.2): a token that leads itself in head 0 only grows like e^t, and v is 0.8
    M = np.array([[[1.0]], [[-0.5]]])
    system = HeadSystem(M, np.array([1.0, -0.2]), np.array([[1.0], [1.5]]))
    limit = system.limit(mask="causal")
    assert limit.grade == "undecided" and "(no limit)" in limit.reason
    assert "has no limit" in limit.reason


def test_a_mirrored_start_is_not_decided_by_rounding():
    half = np.array([[1.0, 0.4], [1.4, -0.3]])
    x0 = np.concatenate([half, half * [-1.0, 1.0], [[0.0, 0.2]]])
    M = np.stack([np.diag([1.0, 0.2]), np.diag([0.8, 0.3])])
    V = np.array([np.diag([1.0, 0.5]), np.diag([0.5, 0.75])])
    limit = al.limit(al.Weights(Q=np.stack([np.eye(2)] * 2), K=M, V=V), x0)
    mirrored = limit.points[[2, 3, 0, 1, 4]] * [-1.0, 1.0]
    assert not limit.certified or np.abs(limit.points - mirrored).max() < 1e-8


def test_too_many_tokens_are_named():
    x0 = np.random.default_rng(0).normal(size=(401, 2))
    assert "up to 400 different tokens" in al.limit(own()[0], x0).reason


# ---- the same question asked otherwise


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tokens_and_heads_in_another_order(seed):
    weights, x0 = own(seed)
    order = np.random.default_rng(seed).permutation(len(x0))
    ours = al.limit(weights, x0)
    turned = al.Weights(Q=weights.Q, K=weights.K[::-1], V=weights.V[::-1])
    theirs = al.limit(turned, x0[order])
    back = np.argsort(order)
    assert ours.certified and theirs.certified
    assert np.array_equal(partition(ours.labels), partition(theirs.labels[back]))
    assert np.abs(ours.points - theirs.points[back]).max() <= 3 * (ours.error + theirs.error)
    assert np.array_equal(order[theirs.head_leaders[::-1]][:, back], ours.head_leaders)


@pytest.mark.parametrize("which", ["own", "block"])
def test_units_and_later_tokens(which):
    weights, x0 = own(2) if which == "own" else block(2)
    ours = al.limit(weights, x0)
    other = al.limit(
        al.Weights(Q=weights.Q, K=np.array(weights.K) / 4.0, V=3.0 * np.array(weights.V)), 2.0 * x0
    )
    # three times as fast: t M V is the same only where powers of t are scaled, too
    assert ours.certified and other.certified
    assert np.array_equal(ours.labels, other.labels)
    assert np.abs(ours.points - other.points / 2.0).max() <= 3 * (ours.error + other.error)
    run = al.simulate(weights, x0, times=[0.2, 0.6], rtol=1e-13)
    late = al.limit(run, times=[0.2, 30.0])
    assert late.certified and np.abs(late.points - ours.points).max() <= 3 * (
        late.error + ours.error
    )
    assert np.abs(late.z[0] - run.z[0]).max() < 1e-9
    assert al.verify(late, again=True).holds


def test_equal_tokens_under_the_mask():
    # only those before which nothing differs stay equal
    system = draw_heads(3)
    x0 = np.concatenate([system.x0[:1], system.x0[:1], system.x0, system.x0[-1:]])
    limit = HeadSystem(system.M, system.v, x0).limit(mask="causal")
    assert limit.certified and al.verify(limit).holds
    assert np.array_equal(limit.points[0], limit.points[1])
    assert limit.labels[0] == limit.labels[1] == limit.labels[2]
    assert (limit.head_leaders <= np.arange(len(x0))).all()


# ---- files and the check


@pytest.mark.parametrize("which", ["causal", "own", "sum", "block"])
def test_a_file_holds_all_of_it_and_the_check_passes(tmp_path, which):
    limit = {
        "causal": lambda: draw_heads(5).limit(mask="causal", times=[0.5, 20.0]),
        "own": lambda: al.limit(*own(1), times=[0.5, 20.0]),
        "sum": lambda: al.limit(*turning(), times=[0.5, 20.0]),
        "block": lambda: al.limit(*block(2), times=[0.5, 20.0]),
    }[which]()
    al.save(limit, tmp_path / "limit.nc")
    assert difference(limit, al.load(tmp_path / "limit.nc")) == ""
    found = al.verify(tmp_path / "limit.nc", again=True)
    assert found.holds and found.way == "closed", found
    assert all(one.holds and one.says.endswith(".") for one in found.checks)


def test_different_rates_that_round_to_one_are_verified():
    V = np.array([[1.0 + 2.0**-52, 1.0], [1.0, 1.0], [1.0, 1.0]])  # both columns add up to 3.0
    M = np.random.default_rng(4).uniform(-1.0, 1.0, (3, 2, 2))
    weights = al.Weights(
        Q=np.tile(np.eye(2), (3, 1, 1)), K=M, V=np.stack([np.diag(one) for one in V])
    )
    found = al.limit(weights, np.array([[0.3, -0.7]]), mask="causal")
    assert (V.sum(axis=0) == 3.0).all() and (V[0, 0] != V[0, 1])
    assert found.certified and al.verify(found).holds


def test_coordinates_that_shrink_stay_accurate_where_large_terms_cancel():
    """The V_h are of size 4, and their sum is diag(1, -0.5): V_h x_l cancels all but W x_l."""
    A = np.array([[0.4267578125, -3.673828125], [3.64453125, -3.4091796875]])
    B = np.array([[3.853515625, 2.765625], [-2.7314453125, 1.2373046875]])
    V = np.array([np.diag([1.0, -0.5]) - A - B, A, B])
    M = [[[2.0, 0.1], [0.6, 1.4]], [[1.9, 0.2], [0.7, 0.6]], [[0.04, 0.65], [-0.43, 0.05]]]
    weights = al.Weights(Q=np.tile(np.eye(2), (3, 1, 1)), K=np.array(M), V=V)
    x0 = np.array([[0.05, 0.6], [0.98, 0.25]])
    found = al.limit(weights, x0, mask="causal", times=[12.0, 22.0, 30.0])
    assert found.certified and al.verify(found).holds
    # the first token only sees itself, so its z rests
    assert np.abs(found.z[:, 0] - x0[0]).max() < 1e-9


SPOILED = {
    "labels": (
        lambda one: dataclasses.replace(one, labels=0 * one.labels),
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
    "error": (lambda one: dataclasses.replace(one, error=1e-16), "ten times|given as"),
    "grade": (lambda one: dataclasses.replace(one, grade="group"), "does not follow"),
    "another leader": (
        lambda one: in_state(
            one, leader=put((0, 0, 3), (int(one.state.values["leader"][0, 0, 3]) + 1) % 7)
        ),
        "not shown to stay open|no closed form|no limit",
    ),
    "another token": (
        lambda one: in_state(one, tokens=put((1, 0, 4, 0), 1e3)),
        "not shown to stay open",
    ),
    "tokens halfway": (
        lambda one: in_state(one, tokens=lambda x: 0.05 * x),
        "not shown to stay open",
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
    "time": (
        lambda one: in_state(one, t=lambda t: t + 0.1),
        "time of the decision|away from|outside|are .* apart|given as|ten times",
    ),
    "later times": (
        lambda one: dataclasses.replace(one, z=one.z + 1e-3),
        "is not where the state leads",
    ),
    "basis": (
        lambda one: dataclasses.replace(one, basis=one.basis[:, ::-1]),
        "basis of F",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_certificate_is_refused_with_the_reason(name):
    change, words = SPOILED[name]
    limit = al.limit(*own(3), times=[50.0])
    assert limit.certified and len(np.unique(limit.labels)) > 1
    found = al.verify(change(limit))
    assert found.holds is False and re.search(words, found.reason), found.reason


def test_a_forged_way_is_refused():
    limit = al.limit(*own(1))
    for V in (
        np.array([BLOCK, np.eye(2)]),
        np.array([np.eye(2), [[1.0, 0.0], [1.0, 1.0]]]),
        np.array([[[0.5, 1e-17], [0.0, 0.5]], np.eye(2)]),
    ):
        weights = al.Weights(Q=limit.dynamics.weights.Q, K=limit.dynamics.weights.K, V=V)
        other = dataclasses.replace(limit.dynamics, weights=weights)
        found = al.verify(dataclasses.replace(limit, dynamics=other))
        assert found.holds is False and "not diagonal" in found.reason
    masked = dataclasses.replace(limit.dynamics, mask="causal")
    found = al.verify(dataclasses.replace(limit, dynamics=masked))
    assert found.holds is False, found
