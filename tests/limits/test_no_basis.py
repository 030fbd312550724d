"""What is said where V has no eigen-coordinates: a Jordan block only where there is one."""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.limits.problem import Refused, make_problem
from attnlab.models.catalog import catalog


def reason(V, d):
    """Why there are no eigen-coordinates. (Groups may be certified without them.)"""
    start = np.random.default_rng(0).normal(size=(4, d))
    try:
        make_problem(al.Dynamics(al.Weights(V=V)), start)
    except Refused as refusal:
        return str(refusal)
    return ""


def with_eigenvalue_near_kernel(d, r, angle, rng=0):
    """Factors B, C of V = B C with orthonormal eigenvectors for 1, 2, ..., r - 1, and one at
    `angle` to the kernel for 0.5.
    """
    Q = np.linalg.qr(np.random.default_rng(rng).normal(size=(d, d)))[0]
    B = Q[:, :r].copy()
    B[:, -1] = np.cos(angle) * Q[:, r] + np.sin(angle) * Q[:, r - 1]
    values = np.append(np.arange(r - 1.0, 0.0, -1.0), 0.5)
    C = np.linalg.inv(np.hstack([B, Q[:, r:]]))[:r] * values[:, None]
    return B, C


def test_a_jordan_block_is_called_one():
    assert "Jordan block near the eigenvalue 1, " in reason([[1.0, 1.0], [0.0, 1.0]], 2)
    S = np.random.default_rng(1).normal(size=(5, 5))
    J = np.diag([3.0, 2.0, 2.0, 2.0, 1.0]) + np.diag([0.0, 1.0, 1.0, 0.0], 1)
    assert "Jordan block near the eigenvalue 2" in reason(S @ J @ np.linalg.inv(S), 5)


def test_a_jordan_block_at_zero_is_called_one():
    # rank 2, but B C has the eigenvalues 1, 0, 0, 0: C B is singular
    B, C = np.zeros((4, 2)), np.zeros((2, 4))
    B[0, 0] = C[0, 0] = B[1, 1] = C[1, 2] = 1.0
    assert "Jordan block at the eigenvalue 0" in reason((B, C), 4)


@pytest.mark.parametrize("is_factored", [True, False])
def test_an_eigenvector_near_the_kernel_is_no_jordan_block(is_factored):
    B, C = with_eigenvalue_near_kernel(12, 4, angle=1e-4)
    said = reason((B, C) if is_factored else B @ C, 12)
    assert "Jordan" not in said and "Its rank is 4 in d = 12" in said, said
    assert "4 eigenvalues that are not 0 have condition 1." in said  # planted: orthonormal
    assert "of the eigenvalue 0.5, is within 0.0001 of the kernel" in said  # planted too
    assert "with the kernel the condition is 2e+04" in said  # (1 + cos) / sin of the angle


def test_a_full_matrix_of_low_rank_is_no_jordan_block():
    draw = np.random.default_rng(0)
    B, C = draw.normal(size=(384, 32)) / np.sqrt(384), draw.normal(size=(32, 384)) / np.sqrt(32)
    vectors = B @ np.linalg.eig(C @ B)[1]
    said = reason(B @ C, 384)
    assert "Jordan" not in said and "Its rank is 32 in d = 384" in said, said
    assert (
        f"not 0 have condition {np.linalg.cond(vectors / np.linalg.norm(vectors, axis=0)):.2g}."
        in said
    ), said


def test_dependent_eigenvectors_are_no_jordan_block():
    said = reason([[1.0, 5000.0], [0.0, 2.0]], 2)  # two eigenvalues that are far from equal
    # the eigenvectors e_1 and (5000, 1) enclose the angle 1 / 5000
    assert "Jordan" not in said and "its eigenvectors have condition 1e+04" in said, said


def test_a_large_full_matrix_is_not_called_anything_else():
    V = np.triu(np.ones((1100, 1100)))
    assert "eigenvectors are computed up to d = 1024" in reason(V, 1100)


def test_trained_heads_are_not_said_to_have_jordan_blocks():
    if not catalog.is_cached("albert-chem"):
        pytest.skip("albert-chem has not been fetched")
    head = al.models.load("albert-chem").weights(0, 5)
    said = reason(head.V, 256)
    assert "Jordan" not in said and "Its rank is 32 in d = 256" in said
