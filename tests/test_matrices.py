"""Weights given once for all heads, and numbers where d = 1: equal to the same matrices written
out, bit by bit.
"""

from __future__ import annotations

import numpy as np
import pytest

import attnlab as al
from attnlab.run import resolve

RNG = np.random.default_rng(18)
HEADS, SIZE, D, RANK = 3, 2, 4, 2
Q, K = RNG.standard_normal((2, HEADS, SIZE, D))
V = RNG.standard_normal((HEADS, D, D))
B, C = RNG.standard_normal((HEADS, D, RANK)), RNG.standard_normal((HEADS, RANK, D))


def copies(matrix):
    """One copy of the matrix per head, written out."""
    return np.stack([matrix, matrix, matrix])


@pytest.mark.parametrize(
    ("once", "written_out"),
    [
        ({"Q": Q, "K": K, "V": V[0]}, {"Q": Q, "K": K, "V": copies(V[0])}),
        ({"Q": Q, "K": K, "V": V[:1]}, {"Q": Q, "K": K, "V": copies(V[0])}),
        ({"Q": Q, "K": K, "V": (B[0], C[0])}, {"Q": Q, "K": K, "V": (copies(B[0]), copies(C[0]))}),
        ({"Q": Q, "K": K, "V": (B, C[0])}, {"Q": Q, "K": K, "V": (B, copies(C[0]))}),
        ({"Q": Q[0], "K": K[0], "V": V}, {"Q": copies(Q[0]), "K": copies(K[0]), "V": V}),
        ({"Q": Q[0], "K": K[0], "V": (B, C)}, {"Q": copies(Q[0]), "K": copies(K[0]), "V": (B, C)}),
        ({"Q": Q[0], "K": K, "V": V[0]}, {"Q": copies(Q[0]), "K": K, "V": copies(V[0])}),
        ({"Q": V, "V": V[0]}, {"Q": V, "K": copies(np.eye(D)), "V": copies(V[0])}),
    ],
    ids=[
        "V",
        "V with a head axis",
        "B and C",
        "C",
        "Q and K",
        "Q and K, factors",
        "Q and V",
        "K left out",
    ],
)
def test_what_is_given_once_belongs_to_all_heads(once, written_out):
    ours, theirs = al.Weights(**once), al.Weights(**written_out)
    assert ours.heads == theirs.heads == HEADS
    for name in ("Q", "K", "M", "full_V"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    x0 = np.random.default_rng(1).standard_normal((5, D))
    runs = [al.simulate(weights, x0, t_end=0.2, saves=3) for weights in (ours, theirs)]
    assert np.array_equal(runs[0].states, runs[1].states)
    for array in (ours.Q, ours.K, *(ours.V if ours.is_factored else (ours.V,))):
        assert array.flags.c_contiguous and not array.flags.writeable


@pytest.mark.parametrize("one", [1.5, 3, np.float64(1.5), np.int64(3), np.array(1.5)])
def test_a_number_is_a_matrix_where_d_is_one(one):
    weights, written_out = (
        al.Weights(Q=2.0, K=-1, V=one),
        al.Weights(Q=[[2.0]], K=[[-1.0]], V=[[float(one)]]),
    )
    assert weights.d == weights.heads == 1
    for name in ("Q", "K", "V"):
        assert np.array_equal(getattr(weights, name), getattr(written_out, name))
    factors = al.Weights(V=(one, 2.0))
    assert factors.is_factored and factors.full_V.item() == 2.0 * float(one)
    several = al.Weights(Q=np.ones((3, 2, 1)), K=np.ones((3, 2, 1)), V=one)
    assert several.heads == 3 and np.array_equal(several.V, np.full((3, 1, 1), float(one)))


def test_a_number_for_one_token_coordinate_follows_the_closed_form():
    """Two tokens x and -x in one dimension, V = 1, Q = K = 0: attention is the mean, 0, so neither
    of them moves.
    """
    run = al.simulate(al.Weights(Q=0.0, K=0.0, V=1.0), [[0.5], [-0.5]], t_end=1.0, saves=2)
    assert np.array_equal(run.x[-1], [[0.5], [-0.5]])
    single = al.simulate(al.Weights(V=0.5), [[2.0]], t_end=1.0, saves=2)  # x' = x / 2
    assert single.x[-1].item() == pytest.approx(2.0 * np.exp(0.5), rel=1e-7)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"V": np.eye(3), "Q": 2.0, "K": 2.0},
            ["same dimension as V", "Q has d = 1, V has d = 3", "write 2 * np.eye(3)"],
        ),
        ({"V": np.eye(3), "Q": 2.0}, ["Q and K must have the same shape", "write 2 * np.eye(3)"]),
        ({"V": "3"}, ["V must have 2 or 3 axes", "()"]),
        ({"V": True}, ["V must have 2 or 3 axes", "()"]),
        ({"V": 1j}, ["V must be an array of real numbers"]),
        ({"V": float("nan")}, ["V must be finite"]),
        ({"V": (2.0, np.ones((2, 1)))}, ["(h, d, r) and (h, r, d)", "(1, 1, 1)", "(1, 2, 1)"]),
    ],
)
def test_what_does_not_fit_is_a_sentence(parts, words):
    with pytest.raises(ValueError) as caught:
        al.Weights(**parts)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("table", "d"),
    [
        ({"V": 1.0, "Q": 2.0, "K": 3}, 1),
        ({"B": 2.0, "C": 0.5}, 1),
        (
            {
                "V": [[1.0, 0.5], [0.0, -0.5]],
                "Q": [[[1.0, 0.0]], [[0.0, 1.0]]],
                "K": [[[1.0, 1.0]], [[2.0, 1.0]]],
            },
            2,
        ),
        (
            {
                "B": [[1.0], [2.0]],
                "C": [[3.0, 4.0]],
                "Q": [[[1.0, 0.0]], [[0.0, 1.0]]],
                "K": [[1.0, 1.0]],
            },
            2,
        ),
        (
            {
                "V": [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.0, 0.25]]],
                "Q": [[1.0, 2.0]],
                "K": [[2.0, 1.0]],
            },
            2,
        ),
    ],
)
def test_specs_and_files_keep_them(table, d, tmp_path):
    spec = al.Spec(
        weights={"family": "given", **table},
        start={"law": "normal", "n": 3},
        solve={"t_end": 0.1, "saves": 2},
    )
    for name in ("run.toml", "run.json"):
        spec.save(tmp_path / name)
        assert al.Spec.load(tmp_path / name) == spec
    assert resolve(spec).dynamics.weights.d == d
    run = al.run_spec(spec)
    al.save(run, tmp_path / "run.nc")
    loaded = al.load(tmp_path / "run.nc")
    assert (
        np.array_equal(loaded.states, run.states)
        and loaded.dynamics.weights.heads == run.dynamics.weights.heads
    )
    for name in ("Q", "K", "full_V"):
        assert np.array_equal(
            getattr(loaded.dynamics.weights, name), getattr(run.dynamics.weights, name)
        )
