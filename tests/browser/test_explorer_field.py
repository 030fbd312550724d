"""The page's velocity, eigenbases and weights against attnlab's plain NumPy reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from modules import module_page
from tab import JavaScriptError

import attnlab as al
from attnlab.dynamics import velocity_x
from attnlab.dynamics.attention import attention_matrices
from attnlab.engine.coordinates import block_matrix
from attnlab.types import Dynamics

page = module_page("field", "weights", "eigen", "linear", "exponential")

EVALUATE = """({ n, d, heads, beta, kernel, isCausal, isSphere, y, exponent, again }) => {
  const one = new field.Field({ n, d, heads, beta, kernel, isCausal, isSphere }), out = new Float64Array(n * d);
  for (let k = 0; k < again; k++) one.evaluate(Float64Array.from(y), exponent, out);
  return { out: Array.from(out), best: Array.from(one.best), listened: one.listened }; }"""


def evaluate(page, dynamics: al.Dynamics, x: np.ndarray, exponent: int = 0, again: int = 1) -> dict:
    n, d = x.shape
    heads = [
        {"M": M.tolist(), "V": V.tolist()}
        for M, V in zip(dynamics.weights.M, dynamics.weights.full_V, strict=True)
    ]
    y = (x * 2.0**-exponent).T.ravel().tolist()
    return page.call(
        EVALUATE,
        {
            "n": n,
            "d": d,
            "heads": heads,
            "beta": dynamics.beta,
            "kernel": dynamics.kernel.name,
            "isCausal": dynamics.mask.is_causal,
            "isSphere": dynamics.geometry.is_unit_sphere,
            "y": y,
            "exponent": exponent,
            "again": again,
        },
    )


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("mask", ["full", "causal"])
@pytest.mark.parametrize("kernel", ["softmax", "exp_mean", "hardmax"])
@pytest.mark.parametrize("geometry", ["euclidean", "sphere"])
def test_velocities(page, kernel, mask, geometry, d):
    rng = np.random.default_rng(d)
    for heads, beta, exponent in ((1, 1.0, 0), (1, -0.7, 3), (3, 2.5, -2), (2, 0.0, 1)):
        weights = al.Weights(
            Q=rng.standard_normal((heads, d, d)),
            K=rng.standard_normal((heads, d, d)),
            V=rng.standard_normal((heads, d, d)),
        )
        x = rng.standard_normal((17, d))
        x[5] = x[3]  # equal tokens: ties of hardmax are shared
        if geometry == "sphere":
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            exponent = 0
        dynamics = Dynamics.of(weights, kernel=kernel, mask=mask, geometry=geometry, beta=beta)
        expected, P = velocity_x(dynamics, x), attention_matrices(dynamics, x)
        found = evaluate(page, dynamics, x, exponent)
        velocity = np.array(found["out"]).reshape(d, 17).T * 2.0**exponent
        size = max(np.abs(expected).max(), np.abs(P).max())
        assert np.abs(velocity - expected).max() < 2e-14 * size * max(
            1.0, math.log(np.abs(P).max())
        )  # e^score of exp_mean
        best = np.array(found["best"]).reshape(heads, 17)
        top = np.take_along_axis(P, best[..., None], axis=-1)[..., 0]
        assert (top >= P.max(axis=-1) * (1 - 1e-12)).all()
        if beta != 0 and kernel != "exp_mean":
            assert np.array_equal(best, P.argmax(axis=-1))  # the first of equals, as NumPy says
        rows = P / P.sum(axis=-1, keepdims=True)
        entropy = -(rows * np.log(np.maximum(rows, 1e-300))).sum(axis=-1)
        assert math.isclose(found["listened"], np.exp(entropy).mean(), rel_tol=1e-10)


def test_what_was_best_the_last_time_does_not_matter(page):
    """Rows begin with the token that was best before: the result is the same from any of them."""
    rng = np.random.default_rng(0)
    dynamics, x = Dynamics.of(al.Weights(V=np.eye(3))), 9 * rng.standard_normal((50, 3))
    expected = velocity_x(dynamics, x)
    for again in (1, 2):
        found = np.array(evaluate(page, dynamics, x, again=again)["out"]).reshape(3, 50).T
        assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


def test_boolean_rows_give_followers_equal_velocities_to_the_last_bit(page):
    x = np.array([[1e5, 2.0], [1e5 + 1, 3.0], [9e4, -1.0], [-1e5, 0.5]])
    found = (
        np.array(evaluate(page, Dynamics.of(al.Weights(V=[[1.0, 0.3], [0.0, 0.7]])), x)["out"])
        .reshape(2, 4)
        .T
    )
    assert (
        np.array_equal(found[0], found[1])
        and np.array_equal(found[0], found[2])
        and found[0][0] == 1e5 + 1 + 0.3 * 3.0
    )


def test_huge_scales_do_not_overflow_and_nan_is_seen(page):
    x, one = np.random.default_rng(1).standard_normal((8, 2)), [[1, 0], [0, 1]]
    about = {
        "n": 8,
        "d": 2,
        "heads": [{"M": one, "V": one}],
        "beta": 1,
        "isCausal": False,
        "isSphere": False,
        "again": 1,
    }
    huge = page.call(
        EVALUATE, {**about, "kernel": "softmax", "y": x.T.ravel().tolist(), "exponent": 3000}
    )
    assert np.array_equal(np.array(huge["out"]).reshape(2, 8).T, x[(x @ x.T).argmax(axis=1)])
    for kernel in ("softmax", "hardmax", "exp_mean"):
        out = page.call(
            f"about => ({EVALUATE})({{ ...about, y: about.y.map((v, i) => i === 3 ? NaN : v)"
            " }).out.map(String)",
            {**about, "kernel": kernel, "y": x.T.ravel().tolist(), "exponent": 0},
        )
        assert "NaN" in out


def test_the_exponential(page):
    x = -45 * np.random.default_rng(2).random(20_000)
    found = np.array(page.call("x => x.map(exponential.expOfGap)", x.tolist()))
    assert (
        np.abs(found / np.exp(x) - 1).max() < 5e-16
        and page.evaluate("exponential.expOfGap(0)") == 1
    )


@pytest.mark.parametrize("seed", range(40))
def test_eigenvalues_and_eigenbases(page, seed):
    rng = np.random.default_rng(seed)
    d = 1 + seed % 3
    A = rng.standard_normal((d, d)) * 10.0 ** rng.integers(-3, 4)
    if seed % 5 == 1:
        A = A + A.T
    if seed % 5 == 2 and d == 3:  # a double eigenvalue with two eigenvectors
        S = rng.standard_normal((3, 3))
        A = S @ np.diag([1.0, 1.0, -0.5]) @ np.linalg.inv(S)
    found = page.call(
        "A => ({ values: eigen.eigenvalues(A), basis: eigen.eigenbasis(A) })", A.tolist()
    )
    values = np.array([value["re"] + 1j * value["im"] for value in found["values"]])
    expected = np.linalg.eigvals(A)
    size = np.abs(A).max()
    assert max(np.abs(expected - value).min() for value in values) < 1e-7 * size
    assert abs(values.sum() - np.trace(A)) < 1e-13 * d * size
    assert found["basis"] is not None
    basis, inverse, growth, turn = (
        np.array(found["basis"][key]) for key in ("basis", "inverse", "growth", "turn")
    )
    assert np.abs(basis @ inverse - np.eye(d)).max() < 1e-11 and (turn >= 0).all()
    assert np.abs(basis @ block_matrix(growth, turn) @ inverse - A).max() < 1e-11 * size


@pytest.mark.parametrize("A", [
    [[1, 1], [0, 1]], [[0, 1], [0, 0]], [[0.5, 1, 0], [0, 0.5, 1], [0, 0, 0.5]], [[1, 1000, 0], [0, 0.999, 0], [0, 0, -0.2]],
])  # fmt: skip
def test_no_basis_where_double_precision_has_none(page, A):
    assert page.call("eigen.eigenbasis", A) is None
    values = sorted(value["re"] for value in page.call("eigen.eigenvalues", A))
    assert np.allclose(values, np.sort(np.diag(A)), atol=2e-5)


SPECS = [
    {"family": "identity", "scale": 0.7}, {"family": "published", "matrix": "hyperplanes_3d_decaying"},
    {"family": "published", "matrix": "polytope_times_line"}, {"family": "spectrum", "eigenvalues": [1, [0.3, -2], ]},
    {"family": "spectrum", "eigenvalues": [1, 0.9, -0.5], "rng": 12},
    {"family": "spectrum", "eigenvalues": [1, 1, -0.5], "basis": "random"},
    {"family": "spectrum", "eigenvalues": [[0.2, 1.0], 3], "basis": "identity"},
    {"family": "given", "V": np.arange(9.0).reshape(3, 3).tolist(), "Q": [[1, 2, 3]], "K": [[0, 1, 0.5]]},
    {"family": "given", "B": [[1, 0], [2, 1], [0, 1]], "C": [[1, 2, 3], [0, 0, 1]]},
    {"family": "given", "V": [np.eye(3).tolist(), (-np.eye(3)).tolist()], "Q": (2 * np.eye(3)).tolist()},
]  # fmt: skip


@pytest.mark.parametrize("weights", SPECS, ids=lambda weights: weights["family"])
def test_weights(page, weights):
    spec = {"weights": weights, "start": {"law": "normal", "n": 3, "d": 3}, "solve": {"t_end": 1.0}}
    found = page.call("weights.resolveWeights", spec)
    expected = al.resolve(al.Spec.from_dict(spec)).dynamics.weights
    V, M = (np.array([head[key] for head in found["heads"]]) for key in "VM")
    assert np.abs(V - expected.full_V).max() < 1e-14 * 10 and np.abs(M - expected.M).max() < 1e-14
    assert np.allclose(found["total"], expected.total.dense(), atol=1e-14)
    basis, inverse = np.array(found["basis"]), np.array(found["inverse"])
    for own, moved in zip(found["heads"], found["eigenHeads"], strict=True):
        assert np.allclose(inverse @ own["V"] @ basis, moved["V"], atol=1e-12)
        assert np.allclose(basis.T @ own["M"] @ basis, moved["M"], atol=1e-12)
    if weights["family"] == "spectrum":  # the Spec's own words, in their order
        flat = [
            part
            for value in weights["eigenvalues"]
            for part in ([value[0]] * 2 if isinstance(value, list) else [value])
        ]
        assert found["growth"] == flat and found["isEigenbasis"]


def test_weights_that_python_resolved(page):
    spec = {
        "weights": {"family": "gaussian", "rng": 3},
        "start": {"law": "normal", "n": 3, "d": 2},
        "solve": {"t_end": 1.0},
    }
    drawn = al.resolve(al.Spec.from_dict(spec)).dynamics.weights
    resolved = {"spec": spec, "M": drawn.M.tolist(), "V": drawn.full_V.tolist()}
    found = page.call("weights.resolveWeights", spec, resolved)["heads"]
    assert found == [{"M": drawn.M[0].tolist(), "V": drawn.full_V[0].tolist()}]
    with pytest.raises(JavaScriptError, match="The page draws the weights families"):
        page.call(
            "weights.resolveWeights",
            {**spec, "weights": {"family": "gaussian", "rng": 4}},
            resolved,
        )


@pytest.mark.parametrize("weights, words", [
    ({}, "The page draws the weights families"), ({"family": "toString"}, "The page draws the weights families"),
    ({"family": "identity", "rng": 1}, 'got "rng"'), ({"family": "identity", "scale": "x"}, "weights.scale must be a finite"),
    ({"family": "identity", "d": 2}, "weights.d = 2 and start.d = 3 must be equal"),
    ({"family": "spectrum", "eigenvalues": [1, 2]}, "act on dimension 2, but d = 3"),
    ({"family": "spectrum", "eigenvalues": []}, "must be a list of at least one"),
    ({"family": "spectrum", "eigenvalues": [1, [2], 1]}, "a pair"),
    ({"family": "spectrum", "eigenvalues": [1, 2, 3], "basis": "skew"}, "weights.basis must be one of"),
    ({"family": "published", "matrix": "hyperplanes_4d"}, "weights.matrix must be one of"),
    ({"family": "given"}, "needs V, or both factors"), ({"family": "given", "V": [[1, 2, 3]]}, "must be square"),
    ({"family": "given", "V": np.eye(3).tolist(), "Q": [[1, 2]]}, "must have the same shape"),
    ({"family": "given", "V": [np.eye(3).tolist()] * 2, "Q": [np.eye(3).tolist()] * 3}, "the same number of heads"),
    ({"family": "given", "V": np.full((3, 3), 1e60).tolist()}, "must be below 1e\\+50"),
])  # fmt: skip
def test_refused_weights(page, weights, words):
    with pytest.raises(JavaScriptError, match=f"Refusal: .*{words}"):
        page.call(
            "weights.resolveWeights",
            {"weights": weights, "start": {"law": "normal", "n": 3, "d": 3}, "solve": {}},
        )


def test_dimensions_beyond_three_are_refused(page):
    for weights in (
        {"family": "identity"},
        {"family": "published", "matrix": "polytope_times_line"},
    ):
        with pytest.raises(JavaScriptError, match="dimension 1, 2 or 3, and this Spec has d = 7"):
            page.call(
                "weights.resolveWeights",
                {"weights": weights, "start": {"law": "normal", "n": 3, "d": 7}, "solve": {}},
            )


def test_the_matrix_exponential(page):
    from scipy.linalg import expm

    for seed in range(10):
        A = np.random.default_rng(seed).standard_normal((3, 3)) * (seed + 0.1)
        assert (
            np.abs(np.array(page.call("linear.exponential", A.tolist())) / expm(A) - 1).max() < 1e-8
        )
