"""Compiled counterparts of members of the axes: each equals the reference, and loops in Python, at
every size and scale.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import attnlab as al
from attnlab.engine import plan
from attnlab.engine.plan import counterparts

KERNELS, READS = sorted(counterparts("kernel")), ["plain", *sorted(counterparts("read"))]
SIZES, DIMENSIONS = (1, 2, 7, 8, 9, 33, 300), (1, 3, 6, 40)


def make_weights(d, heads=2, k=None, seed=0):
    rng = np.random.default_rng([seed, d, heads])
    Q, K = rng.normal(size=(2, heads, k or d, d)) / math.sqrt(d)
    return al.Weights(Q=Q, K=K, V=rng.normal(size=(heads, d, d)) / math.sqrt(d))


def tokens(n, d, geometry="euclidean", seed=1, batch=()):
    x = 0.7 * np.random.default_rng([seed, n, d]).normal(size=(*batch, n, d))
    return x / np.linalg.norm(x, axis=-1, keepdims=True) if geometry == "sphere" else x


def is_apart(fast, slow, tolerance):
    """Whether two velocities differ by more than a part of the largest, or are finite in other
    places.
    """
    if not np.array_equal(np.isnan(fast), np.isnan(slow)):
        return True
    size = np.nanmax(np.abs(slow), initial=0.0)
    return bool(np.nanmax(np.abs(fast - slow), initial=0.0) > tolerance * size)


def both(dynamics, x):
    """(the velocity by compiled code, by the reference)."""
    assert plan.choose_path(dynamics, x.shape[-2]) != "reference"
    return al.velocity(dynamics, x, method="direct"), al.velocity(dynamics, x, method="reference")


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_compiled_equals_reference_at_every_size(kernel, read, d):
    weights = make_weights(d)
    for n in SIZES:
        masks = ("full", "causal") if al.kernels[kernel].is_row_local else ("full",)
        for mask in masks if n < 300 else masks[:1]:
            geometry = ("euclidean", "sphere")[n % 2]
            dynamics = al.Dynamics.of(
                weights,
                kernel=kernel,
                read=read,
                mask=mask,
                geometry=geometry,
                beta=(-1.5, 0.7)[d % 2] if al.kernels[kernel].is_row_local else (-0.2, 0.3)[d % 2],
            )
            assert not is_apart(*both(dynamics, tokens(n, d, geometry)), 1e-11), (n, mask)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n, d, k", [(700, 3, None), (60, 130, None), (650, 12, 4)])
def test_large_systems_equal_the_reference(n, d, k, kernel, read):
    dynamics = al.Dynamics.of(
        make_weights(d, heads=1, k=k), kernel=kernel, read=read, geometry="sphere", beta=2.0
    )
    if plan.choose_path(dynamics, n) == "reference":
        assert not al.kernels[kernel].is_row_local
        return
    assert plan.choose_path(dynamics, n) == "threaded"
    assert not is_apart(*both(dynamics, tokens(n, d, "sphere")), 1e-11)


def loop_weights(kernel, scores, seen):
    """The weights of one row in Python's own arithmetic, for kernels that are row-local."""
    if kernel == "sigmoid":
        return [1 / (1 + math.exp(-(s - math.log(len(seen))))) for s in scores]
    top = max(scores)
    if kernel == "hardmax":
        return [float(s == top) / scores.count(top) for s in scores]
    weights = [math.exp(s) for s in scores]
    return [w / (math.fsum(weights) if kernel == "softmax" else len(seen)) for w in weights]


def loop_read(read, x, d):
    norm = math.sqrt(math.fsum(c * c for c in x))
    return x if read == "plain" else x * (math.sqrt(d) if read == "rms_norm" else 1.0) / norm


@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kernel", [name for name in KERNELS if al.kernels[name].is_row_local])
def test_compiled_equals_loops_over_tokens(kernel, read, mask):
    n, d = 11, 3
    weights, x = make_weights(d), tokens(n, d)
    dynamics = al.Dynamics.of(weights, kernel=kernel, read=read, mask=mask, beta=1.3)
    expected, u = np.zeros((n, d)), [loop_read(read, row, d) for row in x]
    for i in range(n):
        seen = range(i + 1) if mask == "causal" else range(n)
        for Q, K, V in zip(weights.Q, weights.K, weights.full_V, strict=True):
            P = loop_weights(kernel, [1.3 * float((Q @ u[i]) @ (K @ u[j])) for j in seen], seen)
            expected[i] += sum(p * V @ u[j] for p, j in zip(P, seen, strict=True))
    assert not is_apart(both(dynamics, x)[0], expected, 1e-13)


@pytest.mark.parametrize("bias", [None, 0.0, -2.0, 700.0, -1e4])
def test_the_bias_of_the_sigmoid(bias):
    for n, d in ((9, 3), (40, 20)):
        dynamics = al.Dynamics.of(
            make_weights(d), kernel={"name": "sigmoid", "bias": bias}, mask="causal"
        )
        fast, slow = both(dynamics, tokens(n, d))
        assert not is_apart(fast, slow, 1e-12)
        assert (bias == -1e4) == (not fast.any())


def table_of_weights(scores, kernel):
    """P (n, n) as compiled code uses it: tokens are the unit vectors, so the velocity is P
    itself.
    """
    n = len(scores)
    dynamics = al.Dynamics.of(al.Weights(Q=np.eye(n), K=scores, V=np.eye(n)), kernel=kernel)
    return both(dynamics, np.eye(n))[0]


@pytest.mark.parametrize("size", [1e-3, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 40])
def test_compiled_sinkhorn_is_doubly_stochastic(n, size):
    scores = size * np.random.default_rng(n).normal(size=(n, n))
    P = table_of_weights(scores, "sinkhorn")
    np.testing.assert_allclose(P.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    ratio = np.log(P) - scores  # diag(u) e^s diag(v): log P - s is a sum of rows and columns
    ratio = ratio - ratio.mean(axis=1, keepdims=True)
    assert np.abs(ratio - ratio.mean(axis=0)).max() < 1e-9


def test_sinkhorn_factors_of_any_size_are_absorbed():
    """Scores a_i + b_j + s_ij have the weights of s_ij, however large a and b are: here up to
    e^5000.
    """
    rng = np.random.default_rng(3)
    s, a, b = rng.normal(size=(9, 9)), rng.uniform(-5000, 5000, (9, 1)), rng.uniform(-5000, 5000, 9)
    np.testing.assert_allclose(
        table_of_weights(s + a + b, "sinkhorn"), table_of_weights(s, "sinkhorn"), rtol=1e-10
    )
    # an assignment: the weights of the best one are 1, the others underflow
    order = rng.permutation(9)
    far = np.where(np.arange(9) == order[:, None], 4000.0, rng.uniform(-4000, 3000, (9, 9)))
    np.testing.assert_array_equal(table_of_weights(far, "sinkhorn"), np.eye(9)[order])


def test_sinkhorn_with_two_tokens_by_the_closed_form():
    """P = [[p, 1 - p], [1 - p, p]] with p / (1 - p) = e^{(s_11 + s_22 - s_12 - s_21) / 2}."""
    for scores in ([[0.3, -1.0], [2.0, 0.7]], [[5.0, 0.0], [0.0, 5.0]], [[0.0, 3.0], [4.0, 0.0]]):
        half = (scores[0][0] + scores[1][1] - scores[0][1] - scores[1][0]) / 2
        p = 1 / (1 + math.exp(-half))
        np.testing.assert_allclose(
            table_of_weights(np.array(scores), "sinkhorn"), [[p, 1 - p], [1 - p, p]], rtol=1e-11
        )


def test_a_compiled_sinkhorn_that_does_not_settle_is_a_status():
    """At the start, and later: tokens that grow have scores that grow, until no table is found."""
    x0, bad = tokens(7, 3), (al.Status.NON_FINITE, al.Status.STALLED)
    for beta, t_end, stays in ((60.0, 1.0, True), (1.0, 8.0, False)):
        run = al.simulate(
            al.Weights(V=np.eye(3)), x0, t_end=t_end, kernel="sinkhorn", beta=beta, throw=False
        )
        assert (
            run.stats["path"] == "compiled"
            and run.status in bad
            and run.stats["member_not_finite"] == 'kernel "sinkhorn"'
        )
        assert (run.stats["reached"] == 0.0) == stays and np.isfinite(run.states).all()
    with pytest.raises(
        al.RunFailed, match='The kernel "sinkhorn" returned non-finite numbers for finite tokens'
    ):
        al.simulate(al.Weights(V=np.eye(3)), x0, t_end=1.0, kernel="sinkhorn", beta=60.0)
    batch = al.simulate(
        al.Weights(V=np.eye(3)),
        np.stack([0.01 * x0, x0]),
        t_end=0.1,
        kernel="sinkhorn",
        beta=60.0,
        throw=False,
    )
    assert (
        batch.status[0] is al.Status.OK
        and batch.status[1] in bad
        and batch.stats["member_not_finite"] == 'kernel "sinkhorn"'
    )
    fine = al.simulate(al.Weights(V=np.eye(3)), x0, t_end=0.1, kernel="sinkhorn")
    assert fine.is_ok and "member_not_finite" not in fine.stats


def test_a_large_sinkhorn_is_computed_by_the_reference():
    dynamics = al.Dynamics.of(make_weights(3, heads=1), kernel="sinkhorn")
    assert [plan.choose_path(dynamics, n) for n in (632, 633)] == ["compiled", "reference"]


@pytest.mark.parametrize("eps", [0.0, 1e-300, 1e-5, 4.0, 1e200])
def test_the_eps_of_rms_norm(eps):
    """By the formula where its squares fit into double precision, and by the reference at every
    size.
    """
    for d in (3, 20):
        weights, x = make_weights(d), tokens(10, d)
        dynamics = al.Dynamics.of(weights, read={"name": "rms_norm", "eps": eps})
        for scale in (1e-200, 1e-3, 1.0, 1e200):
            assert not is_apart(*both(dynamics, scale * x), 1e-12)
        normed = np.array([row / math.sqrt(math.fsum(c * c for c in row) / d + eps) for row in x])
        expected = al.velocity(al.Dynamics.of(weights), normed, method="reference")
        assert not is_apart(both(dynamics, x)[0], expected, 1e-12)


@pytest.mark.parametrize("read", READS)
def test_a_token_at_the_origin(read):
    """It has no direction: the run ends there with a status. With eps > 0 it is read as 0."""
    x0 = tokens(9, 3)
    x0[4] = 0.0
    fast, slow = (
        run(make_weights(3), x0, t_end=1.0, read=read, throw=False)
        for run in (al.simulate, reference_run)
    )
    assert (fast.stats["path"], slow.stats["path"]) == (
        "compiled",
        "reference",
    ) and fast.status is slow.status
    assert fast.is_ok == (read == "plain") and np.isfinite(fast.states).all()
    if read == "rms_norm":
        dynamics = al.Dynamics.of(make_weights(3), read={"name": read, "eps": 1e-6})
        fast, slow = both(dynamics, x0)
        assert np.isfinite(fast).all() and not is_apart(fast, slow, 1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-3, 1e3, 1e100, 1e150])
@pytest.mark.parametrize("beta", [0.0, 1.0, -2.0, 1e300])
def test_scores_of_every_size(scale, beta):
    """Nothing overflows: tokens of any size, in both spaces that have a scale and under reads that
    have none.
    """
    for d in (3, 12):
        for kernel in ("softmax", "sigmoid"):
            for read in READS:
                if beta == 1e300 and kernel == "softmax":
                    continue  # the reference and compiled code round such scores in other ways
                dynamics = al.Dynamics.of(make_weights(d), kernel=kernel, read=read, beta=beta)
                x = scale * tokens(10, d)
                fast, slow = both(dynamics, x)
                assert np.isfinite(fast).all()
                assert not is_apart(fast, slow, 1e-11), (d, kernel, read)


def test_sigmoid_tokens_that_grow_to_1e100():
    """The scale that is taken out of the tokens comes back in the scores: in the end every weight
    is 0 or 1.
    """
    x0 = 1e-3 * np.abs(tokens(8, 2))
    options = {"kernel": "sigmoid", "t_end": 40.0, "saves": 9, "rtol": 1e-10}
    fast = al.simulate(al.Weights(V=np.eye(2)), x0, **options)
    slow = al.simulate(al.Weights(V=np.eye(2)), x0, mask={"name": "window", "width": 8}, **options)
    assert (
        (fast.stats["path"], slow.stats["path"]) == ("compiled", "reference")
        and fast.is_ok
        and slow.is_ok
    )
    assert np.abs(fast.x[-1]).max() > 1e100
    size = np.abs(slow.x).max(axis=(1, 2), keepdims=True)
    assert np.abs((fast.x - slow.x) / size).max() < 1e-7
    late = fast.x[-1]  # all scores are positive: each token moves by the sum of all
    np.testing.assert_allclose(
        al.velocity(fast.dynamics, late), np.tile(late.sum(axis=0), (8, 1)), rtol=1e-12
    )


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "hardmax"])
@pytest.mark.parametrize("read", READS)
def test_runs_equal_the_reference_path(kernel, read):
    """Also in z, where there is one, in layers, and on the sphere."""
    weights, x0 = make_weights(3, seed=4), tokens(9, 3, "sphere")
    cases = [
        {"geometry": "sphere", "t_end": 2.0},
        {"t_end": 0.5},
        {"layers": 6, "dt": 0.1},
    ]  # exp_mean blows up later
    if read == "plain":
        cases.append({"t_end": 0.5, "frame": "z"})
    for options in cases:
        if "layers" not in options:
            options |= {"rtol": 1e-10, "saves": 4}
        fast = al.simulate(weights, x0, kernel=kernel, read=read, beta=0.8, **options)
        assert fast.stats["path"] == "compiled"
        slow = reference_run(weights, x0, kernel=kernel, read=read, beta=0.8, **options)
        assert slow.stats["path"] == "reference"
        assert np.abs(fast.x - slow.x).max() < 1e-8 * np.abs(slow.x).max()


def reference_run(*arguments, **options):
    """simulate, with no compiled counterparts."""
    kept = plan.FOLDERS
    plan.FOLDERS = {}
    plan.counterparts.cache_clear()
    try:
        return al.simulate(*arguments, **options)
    finally:
        plan.FOLDERS = kept
        plan.counterparts.cache_clear()


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "hardmax"])
@pytest.mark.parametrize("read", READS)
def test_observed_order(kernel, read):
    def end(**options):
        run = al.simulate(
            make_weights(3),
            tokens(9, 3, "sphere"),
            t_end=0.5,
            saves=2,
            kernel=kernel,
            read=read,
            **options,
        )
        assert run.stats["path"] == "compiled"
        return run.x[-1]

    truth = end(rtol=1e-12)
    for stepper, order in (("euler", 1), ("rk4", 4)):
        errors = [np.abs(end(stepper=stepper, dt=dt) - truth).max() for dt in (0.1, 0.05)]
        assert order - 0.35 < np.log2(errors[0] / errors[1]) < order + 0.6


BITS = """
import sys, numpy as np, attnlab as al
kernel, read, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = np.random.default_rng(0)
x0 = rng.normal(size=(3, n, 5)); x0 /= np.linalg.norm(x0, axis=-1, keepdims=True)
w = al.Weights(Q=rng.normal(size=(2, 5, 5)), K=rng.normal(size=(2, 5, 5)), V=rng.normal(size=(2, 5, 5)))
options = dict(geometry="sphere", kernel=kernel, read=read, t_end=0.05, saves=2, rtol=1e-6, beta=0.5)
batch = al.simulate(w, x0, **options)
alone = [al.simulate(w, x, **options) for x in x0[:2]]
assert all(np.array_equal(batch.states[i], one.states) for i, one in enumerate(alone))
import hashlib; print(batch.stats["path"], hashlib.sha256(batch.states.tobytes()).hexdigest())
"""


@pytest.mark.parametrize(
    "kernel, read, n",
    [
        ("sinkhorn", "plain", 40),
        ("sigmoid", "plain", 40),
        pytest.param("sigmoid", "plain", 500, marks=pytest.mark.slow),
        ("softmax", "rms_norm", 40),
        pytest.param("exp_mean", "unit_norm", 500, marks=pytest.mark.slow),
    ],
)
def test_bits_do_not_depend_on_threads_or_batches(kernel, read, n):
    said = [
        subprocess.run(
            [sys.executable, "-c", BITS, kernel, read, str(n)],
            env=os.environ | {"NUMBA_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for threads in ("1", "2")
    ]
    assert said[0] == said[1] and said[0].startswith(
        "threaded" if 2 * n * n > plan.MOST_PAIRS else "compiled"
    )
