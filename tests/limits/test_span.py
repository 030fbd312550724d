"""Several heads with fewer tokens than coordinates: the limit in combinations of the first tokens is
that of the flow itself.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from fractions import Fraction

import numpy as np
import pytest

import attnlab as al
from attnlab.analysis.span import in_span
from attnlab.engine.given import take_equation
from attnlab.limits.allowance import Allowance
from attnlab.limits.heads.problem import make_heads_problem, vary
from attnlab.limits.products import scores_between
from attnlab.limits.span import find_close, find_span, lifted_error
from attnlab.limits.verification.span import exact_scores
from command_line import attnlab
from head_systems import HeadSystem, partition, rescaled_by_loops
from stored import difference
from tampering import in_state, put, signed

D = 14


def wide(seed: int, n: int = 7, heads: int = 3, v=(1.0, 0.75, 0.5, 0.25)):
    """(weights of thin heads in D coordinates, n first tokens)."""
    rng = np.random.default_rng([24, seed])
    Q, K = rng.normal(size=(2, heads, 5, D)) / 2.0
    V = np.array(v[:heads])[:, None, None] * np.eye(D)
    return al.Weights(Q=Q, K=K, V=V), rng.uniform(-1.0, 1.0, (n, D))


def by_hand(weights, x0, **options):
    """(the limit in an orthonormal basis of the span, the basis)."""
    basis = np.linalg.svd(x0, full_matrices=False)[2].T
    few = al.Weights(
        Q=weights.Q @ basis,
        K=weights.K @ basis,
        V=weights.V[:, :1, :1] * np.eye(basis.shape[1]),
    )
    return al.limit(few, x0 @ basis, **options), basis


def agree(ours, other, basis) -> None:
    """The same verdict, and limits within what both claim."""
    assert ours.grade == other.grade
    if not ours.certified:
        return
    assert np.array_equal(ours.labels, other.labels)
    assert np.array_equal(ours.head_leaders, other.head_leaders)
    rows = np.abs(basis).sum(axis=1).max()
    assert np.abs(ours.limits - other.limits @ basis.T).max() <= ours.error + rows * other.error


# ---- the same limit


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [{}, {"beta": 0.4}, {"mask": "causal"}, {"dt": 0.25}],
    ids=["flow", "beta", "causal", "layers"],
)
def test_it_is_the_limit_in_coordinates_reduced_by_hand(seed, options):
    weights, x0 = wide(seed, n=5)
    ours = al.limit(weights, x0, **options)
    agree(ours, *by_hand(weights, x0, **options))
    assert ours.certified and ours.state.way == "span" and al.verify(ours).holds
    assert np.array_equal(ours.basis, np.eye(D)) and ours.points.shape == x0.shape
    assert ours.error < 1e-7


def test_it_is_the_limit_that_the_whole_space_has():
    # in_span is another reduction; eight coordinates are not reduced at all
    weights, x0 = wide(3)
    small = al.Weights(Q=weights.Q[:, :, :8], K=weights.K[:, :, :8], V=weights.V[:, :8, :8])
    zeros = np.zeros((len(x0), D - 8))
    whole = al.limit(small, x0[:, :8])
    ours = al.limit(weights, np.hstack([x0[:, :8], zeros]))
    assert whole.state.way == "heads" and ours.state.way == "span"
    assert np.array_equal(whole.labels, ours.labels)
    assert np.abs(whole.limits - ours.limits[:, :8]).max() <= whole.error + ours.error
    assert not ours.limits[:, 8:].any()


@pytest.mark.parametrize("seed", [0, 4])
def test_the_tokens_are_those_of_the_flow_by_loops(seed):
    weights, x0 = wide(seed)
    v = weights.V[:, 0, 0]
    system = HeadSystem(np.swapaxes(weights.Q, 1, 2) @ weights.K, v, x0)
    t = 1.2 / v.sum()
    limit = al.limit(weights, x0, times=[0.0, t, 60.0 / v.sum()])
    assert limit.state.way == "span" and np.abs(limit.z[0] - x0).max() < 1e-15
    assert np.abs(limit.z[1] - rescaled_by_loops(system, t)).max() < 1e-8
    assert np.abs(limit.z[2] - limit.limits).max() < 1e-12
    assert np.array_equal(limit.path, limit.z)


def test_negative_heads_under_the_mask_and_heads_that_do_nothing():
    weights, x0 = wide(3, n=5, heads=4, v=(1.0, -0.25, 0.0, 0.5))
    ours = al.limit(weights, x0, mask="causal")
    agree(ours, *by_hand(weights, x0, mask="causal"))
    assert ours.certified and (ours.head_leaders[2] == -1).all() and al.verify(ours).holds


def test_equal_tokens_and_tokens_that_depend_on_each_other():
    weights, x0 = wide(5)
    x0 = np.concatenate([x0[:3], x0[1:2], 0.5 * (x0[:1] + x0[1:2])])
    for mask in ("full", "causal"):
        ours = al.limit(weights, x0, mask=mask)
        agree(ours, *by_hand(weights, x0, mask=mask))
        assert ours.certified and al.verify(ours).holds
        assert mask == "causal" or ours.labels[1] == ours.labels[3]


def test_tokens_renamed_give_the_limit_renamed():
    weights, x0 = wide(1)
    order = np.random.default_rng(0).permutation(len(x0))
    ours, other = al.limit(weights, x0), al.limit(weights, x0[order])
    assert np.array_equal(partition(ours.labels[order]), partition(other.labels))
    assert np.abs(ours.limits[order] - other.limits).max() <= ours.error + other.error


def test_a_run_that_begins_later_has_the_same_limit():
    weights, x0 = wide(0)
    run = al.simulate(weights, x0, times=[0.2, 0.5], rtol=1e-13)
    late, ours = al.limit(run, times=[0.3, 20.0]), al.limit(weights, x0, times=[0.3, 20.0])
    assert late.certified and np.array_equal(late.labels, ours.labels)
    assert np.abs(late.limits - ours.limits).max() <= 3.0 * (late.error + ours.error)
    assert np.abs(late.z - ours.z).max() < 1e-9
    assert al.verify(late, again=True).holds
    other = in_state(late, frame=lambda x: 1.001 * x)
    assert al.verify(other).holds is False


@pytest.mark.slow
def test_hundreds_of_random_starts_are_as_in_reduced_coordinates():
    grades = []
    for seed in range(100, 200):
        weights, x0 = wide(seed, n=3 + seed % 11, heads=2 + seed % 3)
        options = {} if seed % 4 else {"mask": "causal"}
        ours = al.limit(weights, x0, **options)
        agree(ours, *by_hand(weights, x0, **options))
        grades.append(ours.grade)
        assert al.verify(ours).holds is (True if ours.certified else None)
    assert sum(grade == "exact" for grade in grades) >= 95


# ---- what is not reduced


def test_only_multiples_of_the_identity_are_reduced():
    weights, x0 = wide(0)
    assert find_span(take_equation(weights, {}, "limit"), x0) is not None

    def changed(place, value):
        V = np.array(weights.V)
        V[place] = value
        return take_equation(al.Weights(Q=weights.Q, K=weights.K, V=V), {}, "limit")

    for place, value in (
        ((0, 3, 3), 1.0 + 2.0**-52),
        ((2, 0, 5), 1e-300),
        ((1, 4, 4), 0.5),
    ):
        assert find_span(changed(place, value), x0) is None
    own = np.stack([np.diag(np.linspace(0.5, 1.0, D)), *weights.V[1:]])
    limit = al.limit(al.Weights(Q=weights.Q, K=weights.K, V=own), x0[:2], work=1e5)
    assert limit.state is None or limit.state.way == "closed"


def test_few_coordinates_and_many_tokens_are_not_reduced():
    weights, x0 = wide(0)
    many = np.random.default_rng(0).normal(size=(D, D))
    assert find_span(take_equation(weights, {}, "limit"), many) is None
    few = al.Weights(Q=weights.Q[:, :, :8], K=weights.K[:, :, :8], V=weights.V[:, :8, :8])
    assert find_span(take_equation(few, {}, "limit"), x0[:, :8]) is None


def test_scores_that_are_equal_in_the_span_only_are_left_to_the_whole_space():
    weights, x0 = wide(0, heads=2)
    x0 = x0 * (np.arange(D) < 8)
    Q = np.where(np.arange(D) < 8, weights.Q[:1], weights.Q)  # the heads differ where no token is
    K = np.repeat(weights.K[:1], 2, axis=0)
    assert find_span(take_equation(al.Weights(Q=Q, K=K, V=weights.V), {}, "limit"), x0) is None


# ---- scores and their error


def fractions_of(A) -> list[list[Fraction]]:
    return [[Fraction(float(one)) for one in row] for row in A]


def times_of(A, B):
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*B, strict=True)]
        for row in A
    ]


@pytest.mark.parametrize("size", [1.0, 1e-20, 1e15])
def test_scores_are_those_of_exact_fractions(size):
    # a large part that cancels exactly, times numbers of very different sizes
    rng = np.random.default_rng(7)
    Q, K = rng.normal(size=(2, 2, 4, D))
    Q[:, 3], K[:, 3] = 1e8 * Q[:, 2] + rng.normal(size=(2, D)), -1e8 * K[:, 2]
    Q[:, 2], K[:, 2] = 1e8 * Q[:, 2], 1e8 * K[:, 2]
    weights = al.Weights(Q=size * Q, K=K, V=np.eye(D)[None].repeat(2, axis=0))
    x = rng.normal(size=(4, D)) * 10.0 ** rng.integers(-4, 5, D)
    found, error = scores_between(weights, x)
    again, worst = exact_scores(weights, x), 0.0
    for h in range(2):
        columns = [list(row) for row in zip(*fractions_of(x), strict=True)]
        q = times_of(fractions_of(weights.Q[h]), columns)
        k = times_of(fractions_of(weights.K[h]), columns)
        exact = times_of([list(row) for row in zip(*q, strict=True)], k)
        plain = x @ weights.M[h] @ x.T
        for i in range(4):
            for j in range(4):
                off = abs(exact[i][j] - Fraction(float(found[h, i, j])))
                assert off <= Fraction(float(error[h, i, j]))
                assert again[h, i, j] == float(exact[i][j])  # rounded once
                worst = max(worst, abs(plain[i, j] / float(exact[i][j]) - 1.0))
    assert worst > 1e-7 and (error < 1e-11 * np.abs(found)).all()  # a plain product is not of use


def test_numbers_too_large_for_the_bound_are_not_reduced():
    weights, x0 = wide(0)
    assert scores_between(weights, 1e70 * x0) is None
    scores, _ = scores_between(weights, 0.0 * x0)
    assert not scores.any()


def test_replicas_vary_the_scores_by_their_errors_to_both_sides():
    weights, x0 = wide(0)
    span = find_span(take_equation(weights, {}, "limit"), x0)
    problem = make_heads_problem(span.dynamics, span.start, 1e3 * span.M_error)
    up, down = vary(problem, 1.0), vary(problem, -1.0)
    assert (np.abs(up.M - problem.M) > 0.0).all()
    assert np.allclose(up.M - problem.M, problem.M - down.M, rtol=1e-2, atol=0.0)
    assert (np.abs(up.M - problem.M) <= 1.01 * problem.M_error).all()
    assert np.array_equal(up.coordinates.dynamics.weights.K, up.M)
    given = make_heads_problem(span.dynamics, span.start)
    assert vary(given, 1.0) is given


def test_scores_of_zero_in_the_span_are_never_decided():
    # heads that act where no token is: all scores are 0, whatever the rest of Q and K
    weights, x0 = wide(0, heads=2)
    inside = np.arange(D) < 9
    weights = al.Weights(Q=np.where(inside, 0.0, weights.Q), K=weights.K, V=weights.V)
    limit = al.limit(weights, x0 * inside)
    assert limit.grade == "undecided" and (limit.labels == -1).all()
    assert limit.points.shape == x0.shape and np.isnan(limit.points).all()


def test_an_exactly_symmetric_start_is_not_decided_by_rounding():
    weights, x0 = wide(0, n=3, heads=2)
    x0 = np.concatenate([x0, -x0, 0.0 * x0[:1]])  # the token at 0 cannot choose
    limit = al.limit(weights, x0)
    assert not limit.certified and al.verify(limit).holds is None


# ---- limits that may coincide in R^d


def test_limits_that_coincide_in_R_d_are_not_called_different():
    weights, x0 = wide(6, v=(1.0, 1.0, 1.0), n=8)
    dynamics = take_equation(weights, {}, "limit")
    span = find_span(dynamics, x0)
    inside = al.limit(span.dynamics, span.start)
    labels = np.arange(len(x0)) % 2
    inside = dataclasses.replace(inside, labels=labels, points=np.eye(len(x0)))
    flat = dataclasses.replace(span, frame=np.repeat(x0[:1], len(span.frame), axis=0))
    common = {"dynamics": dynamics, "x0": x0, "spec": None}
    allowance = Allowance(1e6, 60.0, time.monotonic() + 60.0)
    found = flat.lifted(inside, common, 0.0, allowance)
    assert found.grade == "undecided" and "(close limits)" in found.reason and found.state is None
    assert span.lifted(inside, common, 0.0, allowance).grade == inside.grade


def test_close_limits_by_brute_force():
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(300):
        labels = rng.integers(0, 3, 5)
        labels = np.unique(labels, return_inverse=True)[1]
        points = rng.integers(0, 3, (3, 2))[labels] * 1.0
        error = rng.choice([0.4, 0.6], 2)
        close = any(
            labels[i] != labels[j] and (np.abs(points[i] - points[j]) <= 2 * error).all()
            for i in range(5)
            for j in range(5)
        )
        assert (find_close(labels, points, error) is not None) == close
        seen.add(close)
    assert seen == {True, False}


def test_the_error_is_carried_to_the_given_coordinates():
    rng = np.random.default_rng(2)
    frame, points = rng.normal(size=(5, D)), rng.uniform(size=(6, 5))
    error = lifted_error(points, 1e-3, frame)
    for _ in range(200):
        moved = points + 1e-3 * rng.choice([-1.0, 1.0], points.shape)
        assert (np.abs(moved @ frame - points @ frame) <= error).all()
    worst = np.abs((points + 1e-3 * np.sign(frame[:, 0])) @ frame - points @ frame)[:, 0]
    assert worst.max() > 0.99 * error[0]


# ---- files, the check, the command line


def test_a_file_holds_all_of_it_and_the_check_passes(tmp_path):
    for name, options in (("heads", {}), ("closed", {"mask": "causal"})):
        weights, x0 = wide(1, n=5)
        limit = al.limit(weights, x0, times=[0.5, 20.0], **options)
        al.save(limit, tmp_path / "limit.nc")
        assert difference(limit, al.load(tmp_path / "limit.nc")) == ""
        found = al.verify(tmp_path / "limit.nc", again=True)
        assert found.holds and found.way == "span", found
        assert str(limit.state.values["inside_way"]) == name
        assert all(one.holds and one.says.endswith(".") for one in found.checks)
        assert f"5 different first tokens X in R^{D}" in limit.certificate
        assert limit.certificate.endswith(f"error in R^{D}        {limit.error:.2g}")


def closer(one, factor):
    values = one.state.values
    return in_state(
        dataclasses.replace(one, error=factor * one.error),
        inside_error=lambda error: factor * error,
        inside_points=lambda _: values["inside_points"],
    )


SPOILED = {
    "labels": (
        lambda one: dataclasses.replace(one, labels=np.arange(len(one.labels))),
        "grouped otherwise",
    ),
    "points": (
        lambda one: dataclasses.replace(one, points=one.points + 1e-8),
        "not the combination",
    ),
    "points, inside too": (
        lambda one: in_state(
            dataclasses.replace(one, points=one.points + 1e-6 * one.state.values["frame"][0]),
            inside_points=lambda x: x + 1e-6 * (np.arange(x.shape[1]) == 0),
        ),
        "away from where the state shows it",
    ),
    "leaders of heads": (
        lambda one: dataclasses.replace(one, head_leaders=one.head_leaders[::-1]),
        "leaders of the heads",
    ),
    "leaders": (lambda one: dataclasses.replace(one, leaders=0 * one.leaders), "leader of token"),
    "error": (lambda one: dataclasses.replace(one, error=0.5 * one.error), "given as"),
    "larger error": (lambda one: dataclasses.replace(one, error=2.0 * one.error), "given as"),
    "error, inside too": (lambda one: closer(one, 0.01), "ten times|given as"),
    "larger error, inside too": (lambda one: closer(one, 100.0), "given as"),
    "basis": (lambda one: dataclasses.replace(one, basis=-one.basis), "that of R\\^d"),
    "grade": (lambda one: dataclasses.replace(one, grade="group"), "does not follow"),
    "frame": (
        lambda one: in_state(one, frame=lambda x: put((0, 0), x[0, 0] + 1e-12)(x)),
        "not those given",
    ),
    "frame of equal tokens": (lambda one: in_state(one, frame=lambda x: 0 * x), "different ones"),
    "numbers": (lambda one: in_state(one, number=lambda x: x[::-1]), "not those given"),
    "numbers that are none": (lambda one: in_state(one, number=lambda x: x + 1), "must name"),
    "first tokens": (
        lambda one: signed(dataclasses.replace(one, x0=one.x0 + 1e-9)),
        "not those given",
    ),
    "unsigned first tokens": (
        lambda one: dataclasses.replace(one, x0=one.x0 + 1e-9),
        "other first tokens",
    ),
    "tokens": (
        lambda one: in_state(one, inside_tokens=put((1, 0, 4, 0), 1e3)),
        "is not shown to stay open|are .* apart",
    ),
    "tokens halfway": (
        lambda one: in_state(one, inside_tokens=lambda x: 0.05 * x),
        "is not shown to stay open",
    ),
    "copies": (
        lambda one: in_state(one, inside_tokens=lambda x: np.stack([x[0]] * 3)),
        "are copies",
    ),
    "tolerance": (
        lambda one: in_state(one, inside_tolerance=lambda x: 1e-4 * x),
        "a tolerance that double precision",
    ),
    "way": (
        lambda one: in_state(one, inside_way=lambda _: np.array("frozen")),
        "No certificate of heads",
    ),
    "nothing inside": (lambda one: in_state(one, inside_points=None), "is missing"),
    "no tokens": (lambda one: in_state(one, inside_tokens=None), "is missing"),
    "z": (lambda one: dataclasses.replace(one, z=one.z + 1e-9), "z is not the combination"),
    "path": (lambda one: dataclasses.replace(one, path=one.path + 1e-9), "z is not"),
    "z, inside too": (
        lambda one: in_state(
            dataclasses.replace(
                one,
                z=one.z + 1e-3 * one.state.values["frame"][0],
                path=one.z + 1e-3 * one.state.values["frame"][0],
            ),
            inside_z=lambda z: z + 1e-3 * (np.arange(z.shape[2]) == 0),
        ),
        "is not where the state leads",
    ),
    "events": (
        lambda one: dataclasses.replace(one, events=(al.Event(0.1, 0, 1, 2),)),
        "names some",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_certificate_is_refused_with_the_reason(name):
    weights, x0 = wide(1)
    limit = al.limit(weights, x0, times=[20.0])
    assert limit.count < len(x0) and al.verify(limit).holds
    change, words = SPOILED[name]
    found = al.verify(change(limit))
    assert found.holds is False and re.search(words, found.reason), found.reason


@pytest.mark.parametrize("place", [(0, 3, 3), (1, 0, 5)])
def test_values_that_leave_the_span_are_refused_by_the_check(place):
    weights, x0 = wide(1)
    limit = al.limit(weights, x0)
    V = put(place, 1.0 + 2.0**-52)(np.array(weights.V))
    other = dataclasses.replace(limit.dynamics, weights=al.Weights(Q=weights.Q, K=weights.K, V=V))
    found = al.verify(signed(dataclasses.replace(limit, dynamics=other)))
    assert found.holds is False and "not a multiple of I" in found.reason


def test_other_scores_are_refused_by_the_check():
    weights, x0 = wide(1)
    limit = al.limit(weights, x0)
    for Q in (-weights.Q, 0.01 * weights.Q):
        other = dataclasses.replace(
            limit.dynamics, weights=al.Weights(Q=Q, K=weights.K, V=weights.V)
        )
        found = al.verify(signed(dataclasses.replace(limit, dynamics=other)))
        assert found.holds is False and "is not shown to stay open" in found.reason


def test_the_experiments_basis_of_the_span_gives_the_same():
    weights, x0 = wide(4, v=(1.0, 1.0, 1.0))
    few, start, basis = in_span(weights, x0)
    agree(al.limit(weights, x0), al.limit(few, start), basis)


def test_the_command_line_has_the_limit_in_the_given_coordinates(tmp_path):
    weights, x0 = wide(1)
    spec = {
        "weights": {"family": "given"}
        | {name: getattr(weights, name).tolist() for name in ("Q", "K", "V")},
        "start": {"law": "given", "x": x0.tolist()},
        "solve": {"t_end": 3.0},
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    files = ["-o", str(tmp_path / "limit.nc"), "-o", str(tmp_path / "limit.csv")]
    out = attnlab("limit", str(tmp_path / "spec.json"), *files).stdout
    assert "Certified" in out and "HOLDS" in attnlab("verify", str(tmp_path / "limit.nc")).stdout
    head, *rows = (tmp_path / "limit.csv").read_text().splitlines()
    assert head.split(",")[-1] == f"limit{D}" and len(rows) == len(x0)
    limits = np.array([row.split(",")[-D:] for row in rows], dtype=float)
    ours = al.limit(weights, x0)
    assert np.abs(limits - ours.limits).max() < 1e-9
