"""Limits of many tokens: cells decide what pairs decide, without memory for all pairs."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import attnlab as al
import attnlab.engine.near as near
import attnlab.limits.certificate as certificates
import attnlab.limits.double as double
import attnlab.limits.watched as watched
from attnlab.engine.doubts import SPARE, gap_cells, with_stand_ins
from attnlab.limits import attempt as attempts
from attnlab.limits.abel import Part, partial_sums
from attnlab.limits.allowance import Allowance
from attnlab.limits.attempt import attempt
from attnlab.limits.certificate import make_certificate
from attnlab.limits.double import DoubleFlow
from attnlab.limits.events import Undecidable
from attnlab.limits.frozen import Frozen, make_frozen
from attnlab.limits.problem import Problem, make_problem
from attnlab.limits.reasons import sentence
from attnlab.limits.settings import Settings
from attnlab.limits.watched import Watched
from attnlab.types import Dynamics
from limit_systems import C8


def plenty() -> Allowance:
    return Allowance(1e12, 120.0, time.monotonic() + 120.0)


def start(n: int, d: int, rng: int = 0, size: float = 5.0) -> np.ndarray:
    return np.random.default_rng(rng).uniform(-size, size, (n, d))


def frozen_states(
    V, n: int, log_sizes: list[float], rng: int = 0, M=None
) -> tuple[Problem, list[Frozen]]:
    """A problem, and the frozen flow from the first Boolean moments after each of these sizes."""
    V = np.array(V, dtype=float)
    weights = al.Weights(Q=np.eye(len(V)), K=np.eye(len(V)) if M is None else M, V=V)
    problem, found = make_problem(Dynamics.of(weights), x0 := start(n, len(V), rng)), []
    flow = DoubleFlow(problem, x0, Settings(rtol=1e-9), plenty())
    for log_size in log_sizes:
        while flow.log_size < log_size:
            flow.advance(0.25 / problem.fastest, np.zeros(0))
        leader, gap, _ = flow.leaders()
        if gap.min() > 40.0 and attempts.cycle_of(leader) is None:
            found.append(make_frozen(problem, flow, leader))
    return problem, found


CASES = {
    "identity": np.eye(2),
    "rates": np.diag([1.0, 0.6, -0.5]),
    "close": np.diag([1.0, 0.9, -0.5]),
    "complex": C8,
}


@pytest.mark.parametrize("name", ["identity", "rates", "complex"])
def test_cells_certify_what_pairs_certify(name, monkeypatch):
    # at every margin the answer of the cells is that of all pairs, one by one; and a doubt is a
    # doubt about that pair
    problem, states = frozen_states(CASES[name], 70, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    certificate = make_certificate(problem)
    seen = {True: 0, False: 0}
    for frozen in states:
        if not frozen.is_idempotent:
            continue
        size = np.exp(2 * frozen.log_size)
        for margin in (0.0, 50.0, 1e-4 * size, 1e-3 * size, 1e-2 * size, 0.1 * size):
            for first in (0, 41):
                monkeypatch.setattr(
                    certificates.Certificate, "margin_at", lambda *_, margin=margin: margin
                )
                monkeypatch.setattr(certificates, "MANY", 10**9)
                by_pairs = certificate.doubt(frozen, plenty(), first)
                monkeypatch.setattr(certificates, "MANY", 0)
                in_cells = certificate.doubt(frozen, plenty(), first)
                assert (by_pairs == (-1, -1)) == (in_cells == (-1, -1))
                seen[in_cells == (-1, -1)] += 1
                if in_cells != (-1, -1):
                    assert not passes(certificate, frozen, *in_cells, margin)
    assert seen[True] >= 4 and seen[False] >= 4


def passes(certificate, frozen: Frozen, i: int, k: int, margin: float, errors: float = 1.0) -> bool:
    """Abel's test of one pair in NumPy; errors: what its bounds are multiplied by."""
    problem, base, root, l = (
        frozen.problem,
        frozen.base[frozen.root],
        frozen.root,
        int(frozen.leader[i]),
    )
    apart, apart_error = (
        frozen.roots_apart(int(root[l]), int(root[k]))
        if root[l] != root[k]
        else (0.0 * frozen.D[0], 0.0)
    )
    leak = 2.0 * np.exp(-50.0) * np.abs(problem.rates) / problem.clock * errors
    D_error = np.where(frozen.D_error > 0, frozen.D_error + leak, 0.0) * errors
    apart_error = (
        (apart_error + (2.0 if base[l] == base[k] else 4.0) * leak) * errors
        if root[l] != root[k]
        else 0.0 * leak
    )
    sums = partial_sums(
        problem.M,
        problem.M_error * errors,
        certificate.ranks,
        Part(
            frozen.Y[base[i]] + frozen.E[root[i]],
            (frozen.Y_error[base[i]] + frozen.E_error[root[i]] + 2 * leak) * errors,
        ),
        Part(frozen.D[i], D_error[i]),
        Part(apart[None], np.asarray(apart_error)[None]),
        Part((frozen.D[l] - frozen.D[k])[None], (D_error[l] + D_error[k])[None]),
        np.array([frozen.scaled_bonus[l] - frozen.scaled_bonus[k]]),
        np.ldexp(margin, -2 * frozen.shift),
        certificates.ROUNDING * errors,
    )
    return bool((sums >= 0).all())


@pytest.mark.parametrize("name", ["close", "complex"])
def test_stand_ins_hold_the_tokens_of_their_cells(name):
    _, states = frozen_states(CASES[name], 90, [6.0, 9.0])
    assert states
    for frozen in states:
        bonus = np.random.default_rng(0).uniform(size=frozen.n)
        begin, order = gap_cells(frozen.leader, frozen.D, frozen.is_alive)
        assert np.array_equal(np.sort(order), np.arange(frozen.n)) and (np.diff(begin) >= 1).all()
        leader, root, D, D_error, most = with_stand_ins(
            begin, order, frozen.leader, frozen.root, frozen.D, frozen.D_error, bonus
        )
        assert np.array_equal(D[: frozen.n], frozen.D) and np.array_equal(
            D_error[: frozen.n], frozen.D_error
        )
        for cell in range(len(begin) - 1):
            members, at = order[begin[cell] : begin[cell + 1]], frozen.n + cell
            assert (leader[members] == leader[at]).all() and (root[members] == root[at]).all()
            off = np.abs(D[members] - D[at]) + D_error[members]
            assert (off <= D_error[at]).all() and (
                D_error[at] <= 2.1 * off.max(axis=0) + 1e-300
            ).all()
            assert most[at] == bonus[members].max()
            assert len(members) == 1 or not np.isin(members, frozen.leader).any()
    assert SPARE < 1e-6


def test_a_doubtful_pair_is_found_wherever_it_hides():
    # one follower of a certified state is moved to where its leader loses it, or made uncertain:
    # only its own gaps show it
    problem, states = frozen_states(np.eye(2), 300, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    certificate = make_certificate(problem)
    frozen = next(
        state
        for state in states
        if state.is_idempotent and certificate.doubt(state, plenty()) == (-1, -1)
    )
    followers = np.flatnonzero(frozen.root != np.arange(frozen.n))
    for token in followers[:: len(followers) // 12]:
        kept, kept_error = frozen.D[token].copy(), frozen.D_error[token].copy()
        leader = frozen.positions()[frozen.root[token]]
        frozen.D[token] = 0.5 * leader  # beyond its leader: it would lead itself
        row, column = certificate.doubt(frozen, plenty())
        assert column == token and frozen.root[row] == frozen.root[token]
        frozen.D[token] = kept
        frozen.D_error[token] = np.abs(leader)
        assert token in certificate.doubt(frozen, plenty())
        frozen.D_error[token] = kept_error
    assert certificate.doubt(frozen, plenty()) == (-1, -1)


@pytest.mark.parametrize("name", ["close", pytest.param("complex", marks=pytest.mark.slow)])
def test_listed_pairs_are_those_that_abels_test_does_not_show_open(name, monkeypatch):
    problem, states = frozen_states(CASES[name], 60, [7.0, 9.0, 11.0])
    certificate = make_certificate(problem)
    monkeypatch.setattr(watched, "MOST_TABLE", 0)
    checked = 0
    for frozen in states:
        listed = Watched(frozen, certificate, plenty())
        pairs = {
            (i, int(k))
            for i in range(frozen.n)
            for k in listed.column[listed.start[i] : listed.start[i + 1]]
        }
        is_root = frozen.leader == np.arange(frozen.n)
        for i in range(frozen.n):
            for k in range(frozen.n):
                if k == frozen.leader[i]:
                    continue
                is_steady = is_root[frozen.leader[i]] and is_root[frozen.leader[k]]
                assert ((i, k) in pairs) == (
                    not is_steady or not passes(certificate, frozen, i, k, 0.0, errors=0.0)
                )
                checked += (i, k) in pairs
        assert all(
            np.all(np.diff(listed.column[a:b]) > 0)
            for a, b in zip(listed.start, listed.start[1:], strict=False)
        )
    assert checked > 10


def test_listed_pairs_change_no_event(monkeypatch):
    seen = 0
    for rng in range(4):
        x0 = start(25, 3, rng)
        problem = make_problem(Dynamics.of(al.Weights(V=CASES["close"])), x0)
        found = []
        for most in (2500, 0):
            monkeypatch.setattr(watched, "MOST_TABLE", most)
            for may_glue in (False, True):
                settings = Settings(may_glue=may_glue)
                found.append(
                    attempt(problem, x0, make_certificate(problem), settings, plenty(), np.zeros(0))
                )
        for table, listed in zip(found[:2], found[2:], strict=True):
            assert table.kind == listed.kind and np.array_equal(table.leaders, listed.leaders)
            assert [(e.row, e.before, e.after) for e in table.events] == [
                (e.row, e.before, e.after) for e in listed.events
            ]
            np.testing.assert_allclose(
                [e.t for e in table.events], [e.t for e in listed.events], rtol=1e-11
            )
            seen += len(table.events)
    assert seen > 60


@pytest.mark.parametrize("mask", ["full", "causal"])
def test_rows_are_watched_against_the_tokens_that_they_see(mask):
    n, x0 = 9, start(9, 2)
    problem = make_problem(Dynamics.of(al.Weights(V=np.eye(2)), mask=mask), x0)
    leader = np.zeros(n, np.int64)
    flow = DoubleFlow(problem, x0, Settings(), plenty())
    table = Watched(make_frozen(problem, flow, leader), make_certificate(problem), plenty())
    rows = np.repeat(np.arange(n), np.diff(table.start))
    pairs = {(i, k) for i in range(n) for k in range(i + 1 if mask == "causal" else n)}
    assert len(rows) == len(pairs)
    assert set(zip(rows.tolist(), table.column.tolist(), strict=True)) == pairs
    table.safe[:] = 1.0
    table.look_again(np.isin(np.arange(n), [2, 5]))
    is_reset = np.isin(rows, [2, 5]) | np.isin(table.column, [2, 5])
    assert np.array_equal(table.safe == 0.0, is_reset)


def test_too_many_pairs_are_not_listed(monkeypatch):
    monkeypatch.setattr(watched, "MOST_TABLE", 0)
    monkeypatch.setattr(watched, "MOST_LISTED", 5)
    monkeypatch.setattr(watched, "ROOM", 5)
    problem, (frozen, *_) = frozen_states(CASES["close"], 40, [9.0, 12.0])
    with pytest.raises(Undecidable, match="pairs"):
        Watched(frozen, make_certificate(problem), plenty())
    assert "memory" in sentence("pairs", plenty())


# ---------------------------------------------------------------------- whole limits


def in_pairs(monkeypatch, call):
    """What `call` finds when all pairs are looked at everywhere, as for few tokens."""
    with monkeypatch.context() as patch:
        patch.setattr(near, "may_be_near", lambda *_: False)
        patch.setattr(certificates, "MANY", 10**9)
        patch.setattr(double, "MANY", 10**9)
        return call()


def same_limit(one: al.Limit, other: al.Limit, order=None) -> None:
    """One certified answer, `other` for the tokens one.x0[order]."""
    order = np.arange(len(one.labels)) if order is None else order
    assert one.grade == other.grade == "exact"
    assert np.array_equal(order[other.leaders], one.leaders[order])
    assert np.abs(one.points[order] - other.points).max() <= one.error + other.error


@pytest.mark.parametrize(
    ("V", "n", "size"),
    [
        (np.eye(3), 700, 5.0),
        (np.eye(2), 700, 5.0),
        (np.eye(2), 650, 1.0),
        pytest.param(np.diag([1.2, 0.8]), 260, 5.0, marks=pytest.mark.slow),
        pytest.param(np.eye(6), 650, 3.0, marks=pytest.mark.slow),
    ],
    ids=["R3", "R2", "soft", "two rates", "R6"],
)
def test_cells_answer_as_pairs_do(V, n, size, monkeypatch):
    x0, weights = start(n, len(V), 3, size), al.Weights(V=V)
    ours = al.limit(weights, x0)
    truth = in_pairs(monkeypatch, lambda: al.limit(weights, x0))
    same_limit(truth, ours)
    assert ours.stats["work"] < truth.stats["work"]


@pytest.mark.slow
@pytest.mark.parametrize("rng", range(6))
@pytest.mark.parametrize("law", ["cube", "normal", "spd scores", "two rates"])
def test_cells_answer_as_pairs_do_on_many(law, rng, monkeypatch):
    draw = np.random.default_rng([rng, 77])
    n, d = int(draw.integers(640, 1001)), int(draw.integers(1, 4))
    A = draw.normal(size=(d, d))
    M = A @ A.T / d + 0.3 * np.eye(d) if law == "spd scores" else np.eye(d)
    V = np.diag([1.0, 0.6, -0.4][:d]) if law == "two rates" else np.eye(d)
    x0 = draw.normal(size=(n, d)) * 2.0 if law == "normal" else draw.uniform(-3, 3, (n, d))
    weights = al.Weights(Q=np.eye(d), K=M, V=V)
    ours = al.limit(weights, x0, work=2e7, budget=120.0)
    truth = in_pairs(monkeypatch, lambda: al.limit(weights, x0, work=2e7, budget=120.0))
    assert ours.grade == truth.grade
    if ours.grade == "exact":
        same_limit(truth, ours)


def test_the_order_of_many_tokens_does_not_matter():
    x0, weights = start(660, 2, 5), al.Weights(V=np.eye(2))
    order = np.random.default_rng(0).permutation(660)
    same_limit(al.limit(weights, x0), al.limit(weights, x0[order]), order)


def test_copies_of_many_tokens_end_where_they_do():
    # 330 tokens twice, and 660 tokens with one copy, take the way without cells for the flow: equal
    # tokens stay equal
    x0, weights = start(330, 2, 6), al.Weights(V=np.eye(2))
    twice = al.limit(weights, np.concatenate([x0, x0]))
    assert twice.grade == "exact" and np.array_equal(twice.points[:330], twice.points[330:])
    assert np.array_equal(twice.labels[:330], twice.labels[330:])
    # scores of tokens that each count twice: for beta = 1 the same as without copies, as softmax is
    # a mean
    same_limit(al.limit(weights, x0), al.limit(weights, np.concatenate([x0, x0])[:330]))
    once = al.limit(weights, x0)
    assert (
        np.array_equal(once.labels, twice.labels[:330])
        and np.abs(once.points - twice.points[:330]).max() < 1e-8
    )


def test_a_larger_start_is_a_larger_beta():
    # x -> 2 x with beta -> beta / 4 is the same flow
    x0, weights = start(650, 2, 7), al.Weights(V=np.eye(2))
    one, other = al.limit(weights, x0), al.limit(weights, 2.0 * x0, beta=0.25)
    assert one.grade == other.grade == "exact" and np.array_equal(one.leaders, other.leaders)
    assert np.abs(2.0 * one.points - other.points).max() <= 2.0 * one.error + other.error


@pytest.mark.parametrize("d", [2, 3])
def test_corners_that_were_planted_win(d):
    # corners 10 (+-1, .., +-1) hear only themselves: e^-400 of anybody else. Every other token has
    # all |x_a| in [0.6, 1]; at the
    # start its own corner beats the next one by 12 and all inner tokens by 15, and so it does from
    # then on.
    n, draw = 1000, np.random.default_rng(d)
    corners = 10.0 * np.array(np.meshgrid(*[[-1.0, 1.0]] * d)).reshape(d, -1).T
    inner = draw.uniform(0.6, 1.0, (n - len(corners), d)) * draw.choice(
        [-1.0, 1.0], (n - len(corners), d)
    )
    x0 = np.concatenate([corners, inner])[order := draw.permutation(n)]
    limit = al.limit(al.Weights(V=np.eye(d)), x0)
    assert limit.grade == "exact" and limit.count == 2**d
    np.testing.assert_allclose(limit.points, 10.0 * np.sign(x0), rtol=0, atol=1e-8)
    assert set(order[limit.leaders]) == set(range(2**d))


def test_leaders_of_many_tokens_are_vertices():
    from scipy.spatial import ConvexHull

    x0 = start(1000, 3, 8)
    limit = al.limit(al.Weights(V=np.eye(3)), x0)
    assert limit.grade == "exact"
    points = limit.points[np.unique(limit.leaders)]
    assert len(points) == limit.count == len(ConvexHull(points).vertices)
    assert set(np.unique(limit.leaders)) <= set(ConvexHull(x0).vertices)
    # each follows the limit that its own is: the best of all for it
    scores = limit.points @ points.T
    assert np.array_equal(np.unique(limit.leaders)[scores.argmax(axis=1)], limit.leaders)


def test_work_with_cells_is_the_same_each_time():
    x0, weights = start(700, 3, 9), al.Weights(V=np.eye(3))
    one, other = al.limit(weights, x0), al.limit(weights, x0)
    assert one.stats["work"] == other.stats["work"] and np.array_equal(one.points, other.points)
    little = al.limit(weights, x0, work=one.stats["work"] / 10.0)
    assert (
        little.reason.startswith("Undecided (work)")
        and little.stats["work"] < 1.2 * one.stats["work"] / 10.0 + 1000.0
    )


PROGRAM = """
import re
from pathlib import Path
import numpy as np
import attnlab as al
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
def limit(n):
    x0 = np.random.default_rng(1).uniform(-5, 5, (n, 2))
    return al.limit(al.Weights(V=np.eye(2)), x0, work=1e9, budget=600.0)
limit(700)
before = peak()
found = limit({n})
print(found.grade, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak of the memory is read from /proc"
)
def test_four_thousand_tokens_do_not_take_memory_for_all_pairs():
    n = 4000
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{n}", str(n))],
        capture_output=True,
        text=True,
        check=True,
    )
    grade, more = answer.stdout.split()
    assert grade == "exact" and int(more) < n**2 * 8 / 2
