"""The equation: the NumPy reference against double loops, and the compiled velocity against the
reference.

Weights and tokens lie on a grid where they can: scores are then exact, and beta = 1e4 costs no
digits.
"""

from __future__ import annotations

import math
from itertools import product

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg

import attnlab as al
from attnlab.dynamics import attention_matrices, next_layer, velocity_x, velocity_z
from attnlab.engine import plan
from attnlab.exponential import Exponential, Matrix
from helpers import loop_attention, loop_velocity

KERNELS, MASKS, GEOMETRIES = (
    ("softmax", "exp_mean", "hardmax"),
    ("full", "causal"),
    ("euclidean", "sphere"),
)
EPSILON = 2.0**-52


@pytest.fixture(autouse=True)
def known_sizes(monkeypatch):
    """Where small ends and large begins is a matter of speed: fixed here, so that both paths are
    tested whatever it is.
    """
    monkeypatch.setattr(plan, "MOST_PAIRS", 400_000)
    monkeypatch.setattr(plan, "MOST_COORDINATES", 64)


def grid(rng, *shape, size=1):
    return rng.integers(-4 * size, 4 * size + 1, shape) / 4.0


def draw_weights(rng, d, heads=1, k=None, rank=None, scale=1.0):
    Q, K = grid(rng, heads, k or d, d), grid(rng, heads, k or d, d)
    if rank is None:
        return al.Weights(Q=Q, K=K, V=scale * rng.standard_normal((heads, d, d)))
    return al.Weights(
        Q=Q, K=K, V=(rng.standard_normal((heads, d, rank)), rng.standard_normal((heads, rank, d)))
    )


def draw_tokens(rng, n, d, geometry="euclidean"):
    x = grid(rng, n, d, size=2)
    if geometry == "sphere":
        x = rng.standard_normal((n, d))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x


def tolerance(weights, x, beta=1.0, kernel="softmax", is_exact=False, sizes=None):
    """What rounding may do to a velocity: of the exponents, if scores are not exact, and of the
    sums. sizes: bounds of |x|.
    """
    sizes = np.abs(x) if sizes is None else sizes
    size, top, largest = 0.0, 0.0, 0.0
    for h in range(weights.heads):
        Q, K = weights.Q[h], weights.K[h]
        size += np.abs(np.abs(weights.full_V[h]) @ sizes.T).max()
        top = max(top, (sizes @ np.abs(Q).T @ np.abs(K) @ sizes.T).max())
        largest = max(largest, (beta * (x @ Q.T @ K @ x.T)).max())
    exponent = (
        0.0
        if is_exact or kernel == "hardmax"
        else abs(beta) * top * (weights.d + weights.Q.shape[1])
    )
    if kernel == "exp_mean":
        size *= math.exp(largest)
        exponent += abs(beta) * top
    return (2.0 * exponent + len(x) + 4 * weights.d + 20) * EPSILON * size


def tolerance_z(weights, z, t, beta=1.0, kernel="softmax"):
    """The same for z': rounding of x = e^{tW} z, of x', and on the way back."""
    grow, back = (scipy.linalg.expm(sign * t * weights.full_V.sum(axis=0)) for sign in (1.0, -1.0))
    cost = np.abs(back).sum(axis=1).max()
    return (
        10 * cost * tolerance(weights, z @ grow.T, beta, kernel, sizes=np.abs(z) @ np.abs(grow).T)
    )


# ----------------------------------------------------------------------------------------------
# reference = double loops


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_reference_equals_the_double_loops(kernel, mask, geometry):
    rng = np.random.default_rng(
        [KERNELS.index(kernel), MASKS.index(mask), GEOMETRIES.index(geometry)]
    )
    betas = {
        "softmax": (1.0, -1.5, 0.0, 1e4),
        "exp_mean": (0.25, -0.25, 0.0),
        "hardmax": (1.0, -1.5, 1e4),
    }[kernel]
    for beta, heads, k, rank, (n, d) in product(
        betas, (1, 2), (None, 2), (None, 1), ((1, 1), (5, 3), (6, 4))
    ):
        weights, x = draw_weights(rng, d, heads, k, rank), draw_tokens(rng, n, d, geometry)
        options = {"beta": beta, "kernel": kernel, "mask": mask}
        dynamics = al.Dynamics.of(weights, geometry=geometry, **options)
        P = attention_matrices(dynamics, x)
        loops = np.array(
            [loop_attention(weights.Q[h], weights.K[h], x, **options) for h in range(heads)]
        )
        exact = geometry == "euclidean"
        bound = tolerance(weights, x, beta, kernel, exact)
        unit = bound / max(np.abs(x).max() * np.abs(weights.full_V).max(), 1e-300)
        np.testing.assert_allclose(P, loops, rtol=0, atol=max(unit, 1e-15))
        truth = loop_velocity(weights.Q, weights.K, weights.full_V, x, geometry=geometry, **options)
        np.testing.assert_allclose(velocity_x(dynamics, x), truth, rtol=0, atol=2 * bound)
        if (d, k, rank) in (
            (1, None, None),
            (3, None, None),
            (3, 2, 1),
        ):  # each other shape is a kernel to compile
            ours = al.velocity(weights, x, method="direct", geometry=geometry, **options)
            np.testing.assert_allclose(ours, truth, rtol=0, atol=2 * bound)


def test_hardmax_with_beta_zero_attends_to_all_alike():
    """argmax_j of beta s_ij: with beta = 0 every token is one."""
    rng = np.random.default_rng(0)
    weights, x = draw_weights(rng, 3), draw_tokens(rng, 5, 3)
    tied = al.Dynamics.of(weights, kernel="hardmax", beta=0.0)
    np.testing.assert_array_equal(attention_matrices(tied, x)[0], np.full((5, 5), 0.2))


@pytest.mark.parametrize("method", ["reference", "direct"])
def test_ties_of_hardmax_are_shared(method):
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [-1.0, 2.0]])
    truth = loop_velocity(np.eye(2)[None], np.eye(2)[None], np.eye(2)[None], x, kernel="hardmax")
    np.testing.assert_allclose(
        truth[0], [1.0, 0.0]
    )  # two of a kind, and nobody further out that way
    np.testing.assert_allclose(
        al.velocity(al.Weights(V=np.eye(2)), x, kernel="hardmax", method=method),
        truth,
        atol=4 * EPSILON,
    )


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_attention_rows_are_weights(kernel, mask):
    rng = np.random.default_rng(1)
    weights, x = draw_weights(rng, 3, 2), draw_tokens(rng, 6, 3)
    P = attention_matrices(al.Dynamics.of(weights, kernel=kernel, mask=mask, beta=0.3), x)
    assert P.shape == (2, 6, 6) and (P >= 0).all()
    if mask == "causal":
        assert not np.triu(P, 1).any() and (np.diagonal(P, axis1=1, axis2=2) > 0).any()
    if kernel != "exp_mean":
        np.testing.assert_allclose(P.sum(axis=-1), 1.0, rtol=8 * EPSILON)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_scale_given_apart_is_a_scale(kernel):
    rng = np.random.default_rng(2)
    weights, x = draw_weights(rng, 3, 2), draw_tokens(rng, 6, 3)
    for exponent in (-3, 1):  # powers of two, so that both sides are the same numbers
        log_scale = exponent * math.log(2.0)
        dynamics = al.Dynamics.of(weights, kernel=kernel, beta=0.2)
        whole = velocity_x(dynamics, np.ldexp(x, exponent))
        apart = np.ldexp(velocity_x(dynamics, x, log_scale), exponent)
        bound = 4 * tolerance(weights, np.ldexp(x, exponent), 0.2, kernel)
        np.testing.assert_allclose(apart, whole, rtol=0, atol=bound)
        layers = al.Dynamics.of(weights, kernel=kernel, beta=0.2, dt=0.5)
        np.testing.assert_allclose(
            np.ldexp(next_layer(layers, x, log_scale), exponent),
            next_layer(layers, np.ldexp(x, exponent)),
            rtol=0,
            atol=bound,
        )


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_next_layer_equals_the_double_loops(kernel, geometry):
    rng = np.random.default_rng(3)
    for mask, heads, dt in product(MASKS, (1, 3), (0.1, 1.0)):
        weights, x = draw_weights(rng, 3, heads, 2), draw_tokens(rng, 5, 3, geometry)
        dynamics = al.Dynamics.of(
            weights, kernel=kernel, mask=mask, geometry=geometry, beta=0.5, dt=dt
        )
        truth = x + dt * loop_velocity(
            weights.Q, weights.K, weights.full_V, x, kernel=kernel, mask=mask, beta=0.5
        )
        bound = tolerance(weights, x, 0.5, kernel)
        if geometry == "sphere":
            bound /= np.linalg.norm(truth, axis=1).min()
            truth = np.array([row / math.sqrt(math.fsum(c * c for c in row)) for row in truth])
        np.testing.assert_allclose(
            next_layer(dynamics, x),
            truth,
            rtol=0,
            atol=2 * bound + 4 * EPSILON * np.abs(truth).max(),
        )


# ---------------------------------------------------------------------------------------------- the
# frame z

VALUES = {
    "scalar": 0.7 * np.eye(4),
    "symmetric": np.diag([1.0, 0.5, -0.25, 0.0]) + 0.2 * (np.eye(4, k=1) + np.eye(4, k=-1)),
    "eigen": np.array(
        [[0.6, -0.8, 0.1, 0.0], [0.7, 0.5, 0.0, 0.2], [0.0, 0.3, -0.4, 0.5], [0.2, 0.0, 0.1, 0.3]]
    ),
    "jordan": np.diag([0.5, 0.5, 0.5, -0.3]) + np.diag([1.0, 1.0, 0.0], 1),
    "nilpotent": np.diag([1.0, -0.5, 2.0], 1),
    "zero": np.zeros((4, 4)),
}
FACTORS = (
    np.array([[1.0, 0.2], [0.0, 0.5], [0.3, -0.2], [0.1, 0.0]]),
    np.array([[0.5, 0.0, 1.0, 0.1], [0.0, -0.7, 0.2, 0.4]]),
)


def z_velocity_by_loops(weights, z, t, **options):
    """z' = e^{-tW} (x' - W x) at x = e^{tW} z, with scipy's exponential and looped x'."""
    W = weights.full_V.sum(axis=0)
    x = z @ scipy.linalg.expm(t * W).T
    moved = loop_velocity(weights.Q, weights.K, weights.full_V, x, **options) - x @ W.T
    return moved @ scipy.linalg.expm(-t * W).T


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [*VALUES, "factors"])
def test_z_velocity_is_the_derivative_of_the_rescaled_tokens(value, kernel):
    rng = np.random.default_rng(4)
    V = FACTORS if value == "factors" else VALUES[value]
    for mask, beta, t, k in product(
        MASKS, (0.3, -0.4, 0.0), (0.0, 0.4, 1.1), (4, 2) if value == "eigen" else (4,)
    ):
        if kernel == "hardmax" and beta == 0.0:
            continue
        weights = al.Weights(Q=grid(rng, k, 4), K=grid(rng, k, 4), V=V)
        z = rng.standard_normal((5, 4))
        options = {"beta": beta, "kernel": kernel, "mask": mask}
        truth = z_velocity_by_loops(weights, z, t, **options)
        bound = tolerance_z(weights, z, t, beta, kernel)
        dynamics = al.Dynamics.of(weights, **options)
        np.testing.assert_allclose(velocity_z(dynamics, z, t), truth, rtol=0, atol=bound)
        ours = al.velocity(weights, z, t=t, frame="z", method="direct", **options)
        np.testing.assert_allclose(ours, truth, rtol=0, atol=bound)


@pytest.mark.parametrize("is_factored", [False, True], ids=["full", "factored"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_z_velocity_of_several_heads_is_conjugated(kernel, is_factored):
    rng = np.random.default_rng(5)
    d = 5
    for rank, mask, t in product((1, 2), MASKS, (0.0, 0.5, 1.0)):
        V = (rng.standard_normal((2, d, rank)) / 2, rng.standard_normal((2, rank, d)) / 2)
        V = V if is_factored else V[0] @ V[1]
        weights, z = (
            al.Weights(Q=grid(rng, 2, 2, d), K=grid(rng, 2, 2, d), V=V),
            rng.standard_normal((4, d)),
        )
        assert weights.total.is_factored == is_factored
        options = {"beta": 0.2, "kernel": kernel, "mask": mask}
        truth = z_velocity_by_loops(weights, z, t, **options)
        bound = tolerance_z(weights, z, t, 0.2, kernel)
        np.testing.assert_allclose(
            velocity_z(al.Dynamics.of(weights, **options), z, t), truth, rtol=0, atol=bound
        )
        ours = al.velocity(weights, z, t=t, frame="z", method="direct", **options)
        np.testing.assert_allclose(ours, truth, rtol=0, atol=bound)


def test_z_velocity_with_beta_1e4_and_with_a_grown_scale():
    """V = I: scores carry e^{2t} beta, here up to 1e300, and z' is still a difference of tokens."""
    rng = np.random.default_rng(6)
    z, weights = draw_tokens(rng, 7, 3), al.Weights(V=np.eye(3))
    for beta, t in ((1e4, 0.0), (1e4, 3.0), (1.0, 300.0), (-1.0, 300.0)):
        # scores on the grid differ by 1/16 or not at all
        truth = loop_velocity(weights.Q, weights.K, weights.V, z, beta=math.copysign(1e4, beta)) - z
        for method in ("reference", "direct"):
            ours = al.velocity(weights, z, t=t, frame="z", beta=beta, method=method)
            np.testing.assert_allclose(ours, truth, rtol=0, atol=64 * EPSILON)


# ----------------------------------------------------------------------------------------------
# feed-forward


@pytest.mark.parametrize("method", ["reference", "direct"])
@pytest.mark.parametrize("sigma", ["relu", "tanh", "identity"])
def test_feedforward_is_its_formula(sigma, method):
    rng = np.random.default_rng(7)
    active = {"relu": lambda u: max(u, 0.0), "tanh": math.tanh, "identity": lambda u: u}[sigma]
    for has_W, has_bias, has_outside, mask, t in product((0, 1), (0, 1), (0, 1), MASKS, (0.0, 0.8)):
        V, z = VALUES["eigen"], rng.standard_normal((5, 4))
        W, bias, outside = (
            rng.standard_normal((4, 4)),
            rng.standard_normal(4),
            rng.standard_normal(4),
        )
        weights = al.Weights(Q=grid(rng, 3, 4), K=grid(rng, 3, 4), V=V)
        layer = al.FeedForward(
            W=W if has_W else None,
            sigma=sigma,
            bias=bias if has_bias else None,
            bias_outside=outside if has_outside else None,
        )
        x = z @ scipy.linalg.expm(t * V).T
        P = loop_attention(weights.Q[0], weights.K[0], x, beta=0.5, mask=mask)
        truth = np.zeros_like(z)
        for i in range(5):
            inside = V @ sum(P[i, j] * (z[j] - z[i]) for j in range(5)) + has_bias * bias
            inside = np.array([active(u) for u in inside])
            truth[i] = (W @ inside if has_W else inside) + has_outside * outside
        ours = al.velocity(
            weights, z, t=t, frame="z", beta=0.5, mask=mask, feedforward=layer, method=method
        )
        np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-12)


def test_the_identity_layer_gives_back_the_equation():
    rng = np.random.default_rng(8)
    weights, z = al.Weights(V=VALUES["eigen"]), rng.standard_normal((5, 4))
    for layer, method in product(
        ({"sigma": "identity"}, {"sigma": "identity", "W": np.eye(4)}), ("reference", "direct")
    ):
        with_layer = al.velocity(weights, z, t=0.5, frame="z", feedforward=layer, method=method)
        np.testing.assert_allclose(
            with_layer, al.velocity(weights, z, t=0.5, frame="z", method=method), rtol=0, atol=1e-14
        )


@pytest.mark.parametrize("method", ["reference", "direct"])
def test_equal_tokens_stand_still_where_sigma_of_zero_is_zero(method):
    rng = np.random.default_rng(9)
    weights, z = (
        al.Weights(V=VALUES["eigen"]),
        np.repeat(rng.integers(-3, 4, (1, 4)) + 0.0, 4, axis=0),
    )
    for sigma in ("relu", "tanh", "identity"):
        ours = al.velocity(
            weights,
            z,
            frame="z",
            feedforward={"sigma": sigma, "W": rng.standard_normal((4, 4))},
            method=method,
        )
        np.testing.assert_allclose(ours, 0.0, rtol=0, atol=40 * EPSILON)


# ----------------------------------------------------------------------------------------------
# symmetries

METHODS = ("reference", "direct")


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", METHODS)
def test_permuting_tokens_permutes_velocities(method, kernel, geometry):
    rng = np.random.default_rng(10)
    for n, d in ((9, 3), (20, 6)):
        weights, x, order = (
            draw_weights(rng, d, 2, scale=1 / d),
            draw_tokens(rng, n, d, geometry),
            rng.permutation(n),
        )
        options = {"kernel": kernel, "beta": 0.1, "geometry": geometry, "method": method}
        bound = 2 * tolerance(weights, x, 0.1, kernel)
        np.testing.assert_allclose(
            al.velocity(weights, x[order], **options),
            al.velocity(weights, x, **options)[order],
            rtol=0,
            atol=bound,
        )
        if geometry == "euclidean":
            first, second = (
                al.velocity(weights, y, t=0.3, frame="z", **options) for y in (x[order], x)
            )
            np.testing.assert_allclose(
                first, second[order], rtol=0, atol=tolerance_z(weights, x, 0.3, 0.1, kernel)
            )


def test_a_causal_mask_is_not_permutation_equivariant():
    rng = np.random.default_rng(11)
    x, weights = rng.standard_normal((4, 2)), al.Weights(V=np.eye(2))
    gap = (
        al.velocity(weights, x[::-1], mask="causal") - al.velocity(weights, x, mask="causal")[::-1]
    )
    assert np.abs(gap).max() > 0.1


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kernel", ["softmax", "exp_mean"])
@pytest.mark.parametrize("method", METHODS)
def test_rotations_commute_when_the_weights_do(method, kernel, geometry):
    rng = np.random.default_rng(12)
    for d in (3, 7):
        R = scipy.linalg.qr(rng.standard_normal((d, d)))[0]
        weights = al.Weights(Q=0.5 * np.eye(d), K=np.eye(d), V=-0.8 * np.eye(d))
        x = draw_tokens(rng, 10, d, geometry)
        for mask in MASKS:
            options = {
                "kernel": kernel,
                "mask": mask,
                "geometry": geometry,
                "beta": 0.3,
                "method": method,
            }
            x_turned = x @ R.T
            if geometry == "sphere":
                x_turned /= np.linalg.norm(x_turned, axis=1, keepdims=True)
            bound = 4 * tolerance(weights, x, 0.3, kernel) * math.sqrt(d)
            turned = al.velocity(weights, x, **options) @ R.T
            np.testing.assert_allclose(
                al.velocity(weights, x_turned, **options), turned, rtol=0, atol=bound
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["softmax", "exp_mean"])
def test_a_change_of_basis_changes_nothing(method, kernel):
    rng = np.random.default_rng(13)
    d = 3
    S = np.eye(d) + 0.4 * rng.standard_normal((d, d))
    inverse = np.linalg.inv(S)
    for heads, rank in product((1, 2), (None, 1)):
        weights, x = draw_weights(rng, d, heads, 2, rank), rng.standard_normal((6, d))
        V = (S @ weights.V[0], weights.V[1] @ inverse) if rank else S @ weights.V @ inverse
        moved = al.Weights(Q=weights.Q @ inverse, K=weights.K @ inverse, V=V)
        bound = 20 * np.linalg.cond(S) ** 2 * tolerance(weights, x, 0.3, kernel)
        ours = al.velocity(moved, x @ S.T, kernel=kernel, beta=0.3, method=method)
        there = al.velocity(weights, x, kernel=kernel, beta=0.3, method=method) @ S.T
        np.testing.assert_allclose(ours, there, rtol=0, atol=bound)
        ours = al.velocity(moved, x @ S.T, t=0.3, frame="z", kernel=kernel, beta=0.3, method=method)
        there = (
            al.velocity(weights, x, t=0.3, frame="z", kernel=kernel, beta=0.3, method=method) @ S.T
        )
        np.testing.assert_allclose(ours, there, rtol=0, atol=100 * bound)


@pytest.mark.parametrize("method", METHODS)
def test_sphere_velocities_are_tangent(method):
    rng = np.random.default_rng(14)
    for (n, d), kernel, mask in product(
        ((12, 3), (9, 8), (5, 70), (640, 3)), ("softmax", "hardmax"), MASKS
    ):
        weights, x = (
            al.Weights(Q=rng.standard_normal((d, d)), K=np.eye(d), V=np.eye(d)),
            draw_tokens(rng, n, d, "sphere"),
        )
        velocity = al.velocity(
            weights, x, geometry="sphere", kernel=kernel, mask=mask, beta=2.0, method=method
        )
        assert np.abs((velocity * x).sum(axis=1)).max() <= 1e-14
        assert np.abs(velocity).max() > 0.01


# ----------------------------------------------------------------------------------------------
# compiled = reference

LARGE = {"many tokens": (640, 3, 1, None), "heads": (450, 5, 2, None), "wide": (9, 66, 1, None), "wide heads": (33, 70, 3, 4),
         "factors": (20, 80, 1, 6), "long factors": (12, 66, 1, 70), "long queries": (14, 5, 1, 65)}  # fmt: skip
SMALL = {"one": (1, 1, 1, None), "pair": (2, 1, 2, None), "space": (17, 3, 1, None), "four": (40, 4, 3, None),
         "tiled": (100, 9, 2, None), "tiled factors": (31, 24, 2, 5), "64": (50, 64, 1, None)}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [*SMALL, *LARGE])
def test_direct_equals_reference(size, kernel):
    rng = np.random.default_rng(15)
    n, d, heads, rank = (SMALL | LARGE)[size]
    k = 65 if size == "long queries" else {"wide heads": 8, "factors": 6}.get(size)
    scale = 1.0 / d
    Q, K = (scale * rng.standard_normal((heads, k or d, d)) for _ in range(2))
    V = scale * rng.standard_normal((heads, d, d))
    if rank:
        V = (rng.standard_normal((heads, d, rank)) / d, rng.standard_normal((heads, rank, d)))
    weights, x = al.Weights(Q=Q, K=K, V=V), rng.standard_normal((n, d))
    for mask, beta in zip(MASKS, (0.3, -0.2) if kernel == "exp_mean" else (1.0, -2.0), strict=True):
        options = {"kernel": kernel, "mask": mask, "beta": beta}
        assert plan.is_small(al.Dynamics.of(weights, **options), n) == (size in SMALL)
        bound = 2 * tolerance(weights, x, beta, kernel)
        direct, reference = (
            al.velocity(weights, x, method=m, **options) for m in ("direct", "reference")
        )
        np.testing.assert_allclose(direct, reference, rtol=0, atol=bound)
        direct, reference = (
            al.velocity(weights, x, t=0.6, frame="z", method=m, **options)
            for m in ("direct", "reference")
        )
        np.testing.assert_allclose(
            direct, reference, rtol=0, atol=tolerance_z(weights, x, 0.6, beta, kernel)
        )
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        direct, reference = (
            al.velocity(weights, unit, method=m, geometry="sphere", **options)
            for m in ("direct", "reference")
        )
        np.testing.assert_allclose(direct, reference, rtol=0, atol=2 * bound)


@pytest.mark.parametrize("sigma", ["relu", "tanh", "identity"])
@pytest.mark.parametrize("size", ["many tokens", "wide"])
def test_feedforward_on_large_systems(size, sigma):
    rng = np.random.default_rng(16)
    n, d, *_ = LARGE[size]
    weights, z = (
        al.Weights(V=rng.standard_normal((d, d)) / d),
        rng.standard_normal((n, d)) / math.sqrt(d),
    )
    bias, outside = rng.standard_normal((2, d))
    layer = {
        "W": rng.standard_normal((d, d)) / d,
        "sigma": sigma,
        "bias": bias,
        "bias_outside": outside,
    }
    direct, reference = (
        al.velocity(weights, z, t=0.5, frame="z", feedforward=layer, method=m)
        for m in ("direct", "reference")
    )
    np.testing.assert_allclose(direct, reference, rtol=0, atol=1e-12)


@pytest.mark.parametrize("frame", ["x", "z"])
@pytest.mark.parametrize("n, d", [(5, 3), (640, 2)])
def test_a_batch_is_its_members(n, d, frame):
    rng = np.random.default_rng(17)
    weights, x = draw_weights(rng, d, 1), rng.standard_normal((2, 2, n, d))
    for method in METHODS:
        together = al.velocity(weights, x, t=0.2, frame=frame, method=method)
        assert together.shape == x.shape
        for index in np.ndindex(2, 2):
            alone = al.velocity(weights, x[index], t=0.2, frame=frame, method=method)
            bound = 0.0 if method == "direct" else 100 * tolerance(weights, x[index])
            np.testing.assert_allclose(together[index], alone, rtol=0, atol=bound)


def test_auto_is_as_good_as_direct():
    rng = np.random.default_rng(18)
    weights, x = draw_weights(rng, 3), rng.standard_normal((6, 3))
    np.testing.assert_allclose(
        al.velocity(weights, x),
        al.velocity(weights, x, method="reference"),
        rtol=0,
        atol=2 * tolerance(weights, x),
    )


# ----------------------------------------------------------------------------------------------
# huge and tiny tokens


def mp_velocity(x, beta):
    """x' of Q = K = V = I in 400 digits."""
    n, d = x.shape
    with mp.workdps(400):
        rows = [[mp.mpf(float(c)) for c in row] for row in x]
        out = np.zeros((n, d))
        for i in range(n):
            scores = [
                mp.mpf(beta) * mp.fsum(a * b for a, b in zip(rows[i], rows[j], strict=True))
                for j in range(n)
            ]
            top = max(scores)
            weights = [mp.exp(s - top) if s - top > -2000 else mp.mpf(0) for s in scores]
            total = mp.fsum(weights)
            out[i] = [
                float(mp.fsum(w * r[c] for w, r in zip(weights, rows, strict=True)) / total)
                for c in range(d)
            ]
    return out


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "size, beta", [(1e150, 1.0), (1e150, 1e-300), (1e150, -1.0), (1e-150, 1.0), (1e-150, 1e300)]
)
def test_tokens_of_every_size(size, beta, method):
    rng = np.random.default_rng(19)
    for d in (2, 6):
        x = size * rng.standard_normal((5, d))
        weights = al.Weights(V=np.eye(d))
        ours = al.velocity(weights, x, beta=beta, method=method)
        assert np.isfinite(ours).all()
        # the factor e^{2 log_scale} beta is made from logarithms of up to 1000: it has 1000
        # roundings
        strength = min(abs(beta) * size**2, 1.0)
        logarithms = abs(math.log2(abs(beta))) + 2 * abs(math.log2(size))
        bound = tolerance(weights, x / size, strength * (1 + logarithms / d)) * size
        np.testing.assert_allclose(ours, mp_velocity(x, beta), rtol=0, atol=bound)


def test_tokens_of_1e200_have_scores_beyond_double_precision():
    x = 1e200 * np.random.default_rng(20).standard_normal((5, 3))
    ours = al.velocity(al.Weights(V=np.eye(3)), x, method="direct")
    np.testing.assert_allclose(ours, mp_velocity(x, 1.0), rtol=1e-14)


# ----------------------------------------------------------------------------------------------
# e^{tA}

_rng = np.random.default_rng(21)
FULL = {
    "zero": np.zeros((3, 3)),
    "scalar": -0.7 * np.eye(3),
    "symmetric": np.array([[1.0, 0.5, 0.0], [0.5, -2.0, 0.25], [0.0, 0.25, 0.5]]),
    "eigen": np.array([[0.25, -1.0, 0.0], [1.0, 0.25, 0.5], [0.0, 0.0, -1.5]]),
    "pade": np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]]),
}
THIN = {
    "eigen": (_rng.standard_normal((6, 2)), _rng.standard_normal((2, 6))),
    "turning": (np.eye(6)[:, :2], np.array([[0.1, -2.0], [2.0, 0.1]]) @ np.eye(6)[:2]),
    "pade": (np.eye(6)[:, :2], np.array([[-0.5, 1.0], [0.0, -0.5]]) @ np.eye(6)[:2]),
    "nilpotent": (np.eye(6)[:, :1], 2.0 * np.eye(6)[5:]),
    "zero": (np.zeros((6, 2)), np.zeros((2, 6))),
    "negative": (np.eye(6)[:, :2] * [2.0, 3.0], -np.eye(6)[:2]),
}
METHOD = {"turning": "eigen", "nilpotent": "eigen", "negative": "eigen"}


def mp_expm(A, t, log_scale=0.0):
    """e^{log_scale} e^{tA} in 150 digits, as an mpmath matrix."""
    with mp.workdps(150):
        return mp.exp(mp.mpf(log_scale)) * mp.expm(
            mp.mpf(t) * mp.matrix(A.tolist()), method="taylor"
        )


def as_array(matrix):
    return np.array([[float(matrix[i, j]) for j in range(matrix.cols)] for i in range(matrix.rows)])


def dense_of(matrix):
    return matrix.full if matrix.full is not None else matrix.left @ matrix.right


def exponential_cases():
    for name, A in FULL.items():
        yield pytest.param(name, Matrix(full=A), id=f"full-{name}")
    for name, (left, right) in THIN.items():
        yield pytest.param(
            METHOD.get(name, name), Matrix(left=left, right=right), id=f"thin-{name}"
        )


@pytest.mark.parametrize("method, matrix", list(exponential_cases()))
def test_exponential_is_that_of_mpmath(method, matrix):
    exponential, A = Exponential(matrix), dense_of(matrix)
    assert exponential.method == method
    rate = exponential.rate
    np.testing.assert_allclose(
        rate,
        max(np.linalg.eigvals(A).real.max(), -np.inf if matrix.full is not None else 0.0),
        atol=1e-5,
    )
    small = matrix.small
    condition = (
        1.0
        if method in ("zero", "scalar", "symmetric", "pade")
        else np.linalg.cond(np.linalg.eig(small)[1])
    )
    y = np.random.default_rng(22).standard_normal((2, 4, len(A)))
    for t in (0.0, 1e-9, 0.3, -0.8, 5.0, 30.0):
        truth = as_array(mp_expm(A, t, -rate * t))
        bound = (
            50
            * EPSILON
            * condition
            * (1 + abs(t) * np.linalg.norm(A, 1))
            * max(np.abs(truth).max(), 1e-300)
            * len(A)
        )
        np.testing.assert_allclose(exponential.matrix(t), truth, rtol=0, atol=bound)
        moved = exponential.apply(t, y)
        assert moved.shape == y.shape
        np.testing.assert_allclose(
            moved, y @ truth.T, rtol=0, atol=bound * np.abs(y).max() * len(A)
        )


@pytest.mark.parametrize("method, matrix", list(exponential_cases()))
def test_huge_scales_cancel(method, matrix):
    """e^{log_scale} e^{tA} with tA of 900 and a log_scale that takes it back."""
    exponential, A = Exponential(matrix), dense_of(matrix)
    y = np.random.default_rng(23).standard_normal((3, len(A)))
    for growth in (900.0, -900.0):
        rate = exponential.rate
        if abs(rate) < 0.1 or (growth < 0 and method != "scalar"):
            continue
        t = growth / rate if rate * growth > 0 else -growth / rate
        log_scale = -rate * t
        truth = y @ as_array(mp_expm(A, t, log_scale)).T
        ours = exponential.apply_scaled(t, y, np.array(log_scale))
        condition = (
            1.0
            if method in ("scalar", "symmetric", "pade")
            else np.linalg.cond(np.linalg.eig(matrix.small)[1])
        )
        bound = (
            50
            * EPSILON
            * condition
            * (1 + abs(t) * np.linalg.norm(A, 1))
            * max(np.abs(truth).max(), 1e-3)
            * len(A)
        )
        np.testing.assert_allclose(ours, truth, rtol=0, atol=bound)


def test_scales_cancel_in_each_coordinate():
    for A in (
        np.diag([1.0, -1.0]),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[1.0, 1.0], [0.0, -1.0]]),
    ):
        exponential = Exponential(Matrix(full=A))
        values, vectors = np.linalg.eig(A)
        y = vectors[:, np.argmax(values)][None]  # the growing direction, shrunk by its own scale
        ours = exponential.apply_scaled(800.0, y, np.array(-800.0))
        np.testing.assert_allclose(ours, y, rtol=0, atol=800 * 10 * EPSILON)


def test_nothing_grows_to_nothing():
    """A = diag(1, -1): e^{800} times e^{-800} is 1, while the coordinate that grows to e^{1600} has
    nothing in it.
    """
    moved = Exponential(Matrix(full=np.diag([1.0, -1.0]))).apply_scaled(
        800.0, np.array([[0.0, 2.0]]), np.array(800.0)
    )
    np.testing.assert_allclose(moved, [[0.0, 2.0]], rtol=800 * 10 * EPSILON)


def test_scales_of_a_batch_go_with_their_members():
    exponential = Exponential(Matrix(full=np.array([[1.0, 0.5], [0.5, -1.0]])))
    y, scales = np.random.default_rng(24).standard_normal((3, 4, 2)), np.array([0.0, -700.0, 2.0])
    truth = as_array(mp_expm(exponential.A.full, 1.5))
    ours = exponential.apply_scaled(1.5, y, scales)
    for member, scale, moved in zip(y, scales, ours, strict=True):
        np.testing.assert_allclose(
            moved, member @ truth.T * math.exp(scale), rtol=0, atol=1e-12 * math.exp(scale)
        )


def test_an_exponential_that_overflows_is_not_a_number_one_could_believe():
    for A in (np.diag([1.0, 2.0]), 2.0 * np.eye(2), np.array([[2.0, 1.0], [0.0, 2.0]])):
        moved = Exponential(Matrix(full=A)).apply_scaled(600.0, np.ones((1, 2)), np.array(0.0))
        assert not np.isfinite(moved[0, 1])


@pytest.mark.parametrize("is_thin", [False, True], ids=["full", "thin"])
def test_matrix_is_a_matrix(is_thin):
    matrix = (
        Matrix(left=THIN["eigen"][0], right=THIN["eigen"][1])
        if is_thin
        else Matrix(full=FULL["eigen"])
    )
    A, y = (
        dense_of(matrix),
        np.random.default_rng(25).standard_normal((2, 3, len(dense_of(matrix)))),
    )
    np.testing.assert_allclose(matrix.dense(), A)
    np.testing.assert_allclose(matrix.apply(y), np.einsum("ab,...nb->...na", A, y), atol=1e-13)
    np.testing.assert_allclose(matrix.scaled(-2.5).dense(), -2.5 * A)
    truth = np.linalg.eigvals(A)
    for value in matrix.eigenvalues:
        assert np.abs(truth - value).min() < 1e-6
    for value in truth:
        assert np.abs(matrix.eigenvalues - value).min() < 1e-6
