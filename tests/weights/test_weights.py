"""Every weights family by one conformance test; then the laws, the numbers and the refusals of
each.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest

from attnlab.analysis import spectra
from attnlab.registry import UnknownName
from attnlab.types import Spec, Weights
from attnlab.weights import weights_families

FAMILIES = [
    name
    for name in weights_families
    if name != "model" and weights_families[name].__module__.startswith("attnlab.weights.")
]
"""The family `model` reads a checkpoint: tests/models/test_named.py."""

SIGMAS = 5.0


def is_equal(a: Weights, b: Weights) -> bool:
    return all(np.array_equal(p, q) for p, q in ((a.Q, b.Q), (a.K, b.K), (a.full_V, b.full_V)))


def cases() -> Iterator:
    """Every family with its example, at several d where it must be told d."""
    for name in FAMILIES:
        parameter = inspect.signature(weights_families[name]).parameters["d"]
        for d in (1, 2, 3, 8) if parameter.default is parameter.empty else (None,):
            yield pytest.param(
                name,
                dict(weights_families[name].example) | ({} if d is None else {"d": d}),
                id=f"{name}-{d}",
            )


def test_the_families_of_the_design_are_registered():
    named = {
        "identity",
        "given",
        "spectrum",
        "goe",
        "gaussian",
        "spd_scores",
        "good_triple",
        "paranormal",
        "published",
    }
    assert set(FAMILIES) == named


@pytest.mark.parametrize(("name", "parameters"), list(cases()))
def test_every_family(name, parameters):
    family = weights_families[name]
    takes_rng = "rng" in inspect.signature(family).parameters
    for rng in range(5):
        w = family(**parameters, **({"rng": rng} if takes_rng else {}))
        assert isinstance(w, Weights)
        assert w.Q.shape == w.K.shape == (w.heads, w.Q.shape[1], w.d) and w.full_V.shape == (
            w.heads,
            w.d,
            w.d,
        )
        assert "d" not in parameters or w.d == parameters["d"]
        for promise in family.promises:
            assert getattr(spectra, promise)(w) is True, promise
        assert w.source.startswith(f"{name}(") and all(key in w.source for key in parameters)
        assert not takes_rng or f"rng={rng}" in w.source
    table = Spec(
        weights={"family": name, **parameters}, start={"law": "normal"}, solve={"t_end": 1.0}
    )
    again = {
        key: value
        for key, value in Spec.from_toml(table.to_toml()).weights.items()
        if key != "family"
    }
    seed = {"rng": 3} if takes_rng else {}
    assert is_equal(family(**again, **seed), family(**parameters, **seed))
    if takes_rng:
        assert is_equal(
            family(**parameters, rng=3), family(**parameters, rng=np.random.default_rng(3))
        )
        # one dimension leaves no choice of basis, and these families fix the only eigenvalue
        if parameters.get("d") != 1:
            assert not is_equal(family(**parameters, rng=3), family(**parameters, rng=4))
            assert not is_equal(family(**parameters), family(**parameters))
    assert len(family.__doc__) > 40


@pytest.mark.parametrize(
    "name",
    [name for name in FAMILIES if "rng" in inspect.signature(weights_families[name]).parameters],
)
def test_families_refuse_a_bad_rng_and_a_bad_d(name):
    family = weights_families[name]
    with pytest.raises(ValueError, match="rng must be an integer"):
        family(**family.example, **({"d": 3} if name != "spectrum" else {}), rng="seven")
    with pytest.raises(ValueError, match="d must be a whole number|but d = 0"):
        family(**family.example, d=0, rng=0)


def test_every_promise_is_a_predicate_that_can_say_no():
    complex_pair = Weights(Q=[[1.0, 2.0], [0.0, 1.0]], K=-np.eye(2), V=[[0.0, 1.0], [-1.0, 0.0]])
    for name in FAMILIES:
        for promise in weights_families[name].promises:
            assert getattr(spectra, promise)(complex_pair) is False, promise


def test_identity():
    w = weights_families["identity"](3, scale=-2.0)
    assert np.array_equal(w.V[0], -2.0 * np.eye(3)) and np.array_equal(w.M[0], np.eye(3))
    with pytest.raises(ValueError, match="scale must be a finite number"):
        weights_families["identity"](3, scale=np.inf)


def test_given():
    given = weights_families["given"]
    V = [[1.0, 2.0], [3.0, 4.0]]
    assert np.array_equal(given(V=V).V[0], V) and np.array_equal(given(V=V).Q[0], np.eye(2))
    factored = given(Q=[[1.0, 0.0]], K=[[0.0, 1.0]], B=[[1.0], [2.0]], C=[[3.0, 4.0]], d=2)
    assert factored.is_factored and np.array_equal(factored.full_V[0], [[3.0, 4.0], [6.0, 8.0]])
    assert np.array_equal(factored.M[0], [[0.0, 1.0], [0.0, 0.0]])
    for parameters, sentence in (
        ({"V": V, "d": 3}, "act on dimension 2, but d = 3"),
        ({}, "needs either V, or its factors"),
        ({"V": V, "B": [[1.0]], "C": [[1.0]]}, "needs either V, or its factors"),
        ({"B": [[1.0]]}, "Give both factors B and C"),
    ):
        with pytest.raises(ValueError, match=sentence):
            given(**parameters)


@pytest.mark.parametrize("basis", ["orthogonal", "random", "identity"])
def test_spectrum_has_the_eigenvalues_asked_for(basis):
    w = weights_families["spectrum"](eigenvalues=[-0.5, [0.25, 2.0], 1.5, 0.0], basis=basis, rng=0)
    found = np.sort_complex(np.linalg.eigvals(w.V[0]))
    assert np.allclose(found, np.sort_complex([-0.5, 0.25 + 2j, 0.25 - 2j, 1.5, 0.0]), atol=1e-12)
    # orthogonal and identity bases give normal matrices: V V^T = V^T V
    commutator = np.linalg.norm(w.V[0] @ w.V[0].T - w.V[0].T @ w.V[0])
    assert (commutator < 1e-12) == (basis != "random")


def test_spectrum_refusals():
    spectrum = weights_families["spectrum"]
    for parameters, sentence in (
        ({"d": 2, "eigenvalues": [1.0, [0.0, 1.0]]}, "stand for 3 dimensions .* but d = 2"),
        ({"eigenvalues": []}, "at least one number"),
        ({"eigenvalues": 1.0}, "must be a list"),
        ({"eigenvalues": [[1.0, 2.0, 3.0]]}, "must be a number, or a pair"),
        ({"eigenvalues": ["a"]}, "must be a number, or a pair"),
    ):
        with pytest.raises(ValueError, match=sentence):
            spectrum(**parameters, rng=0)
    with pytest.raises(UnknownName, match="Did you mean 'orthogonal'"):
        spectrum(eigenvalues=[1.0], basis="orthogonl")


def test_goe_entries_and_semicircle():
    d = 300
    V = weights_families["goe"](d, rng=0).V[0]
    assert np.array_equal(V, V.T)
    above = V[np.triu_indices(d, 1)]
    assert abs(above.mean()) <= SIGMAS / np.sqrt(d * above.size)
    assert abs((d * above**2).mean() - 1) <= SIGMAS * np.sqrt(2 / above.size)
    assert abs((d * np.diag(V) ** 2).mean() - 2) <= SIGMAS * np.sqrt(8 / d)
    # the semicircle on [-2, 2] gives |lambda| <= 1 the mass 1/3 + sqrt(3) / (2 pi); eigenvalues are
    # rigid to about log(d) / d
    share = np.mean(np.abs(np.linalg.eigvalsh(V)) <= 1)
    assert abs(share - (1 / 3 + np.sqrt(3) / (2 * np.pi))) <= 2 * np.log(d) / d


@pytest.mark.parametrize("rank", [None, 5])
def test_gaussian_scales(rank):
    d, heads, k, scale = 40, 6, 10, 0.5
    w = weights_families["gaussian"](d, heads=heads, k=k, rank=rank, scale=scale, rng=0)
    assert w.Q.shape == (heads, k, d) and w.heads == heads and w.is_factored == (rank is not None)
    for entries in (w.Q, w.K) + (() if rank else (w.V,)):
        squares = entries.ravel() ** 2 * d / scale**2
        assert abs(squares.mean() - 1) <= SIGMAS * np.sqrt(2 / squares.size)
    if rank:
        assert [np.linalg.matrix_rank(V) for V in w.full_V] == [rank] * heads
        # standard normal B, C: |B C|_F^2 = sum_k w_k chi2_d with w the eigenvalues of the Wishart
        # matrix C C^T, so its mean is d^2 r and its variance 2 d E(tr W^2) + d^2 Var(tr W) = 4 r
        # d^3 + 2 r^2 d^2 + 2 r d^2
        ratios = np.sum(w.full_V**2, axis=(1, 2)) / (d * scale**2)
        variance = (4 / (rank * d) + 2 / d**2 + 2 / (rank * d**2)) / heads
        assert abs(ratios.mean() - 1) <= SIGMAS * np.sqrt(variance)
    with pytest.raises(ValueError, match="rank must be at most d = 3, got 4"):
        weights_families["gaussian"](3, rank=4)


def test_spd_scores_condition():
    for rng in range(10):
        M = weights_families["spd_scores"](6, condition=100.0, rng=rng).M[0]
        m = np.linalg.eigvalsh(M)
        assert 0.1 * (1 - 1e-12) <= m[0] and m[-1] <= 10.0 * (1 + 1e-12)
    with pytest.raises(ValueError, match="condition must be between 1 and"):
        weights_families["spd_scores"](3, condition=0.5)


def test_good_triple_numbers():
    asymmetries = []
    for rng in range(10):
        w = weights_families["good_triple"](5, leading=2.0, gap=0.5, rng=rng)
        values, vectors = np.linalg.eig(w.V[0])
        order = np.argsort(-np.abs(values))
        assert abs(values[order[0]] - 2.0) < 1e-12 and np.abs(values[order[1]]) <= 1.5 + 1e-12
        phi = vectors[:, order[0]].real
        assert phi @ w.M[0] @ phi > 0
        asymmetries.append(np.linalg.norm(w.M[0] - w.M[0].T))
    assert min(asymmetries) > 0.1
    with pytest.raises(ValueError, match="gap must be at most leading"):
        weights_families["good_triple"](3, leading=1.0, gap=2.0)


@pytest.mark.parametrize("oblique", [True, False])
@pytest.mark.parametrize("multiplicity", [1, 2, 4])
def test_paranormal_numbers(oblique, multiplicity):
    w = weights_families["paranormal"](
        4, multiplicity=multiplicity, leading=1.5, gap=0.5, oblique=oblique, rng=1
    )
    V = w.V[0]
    assert np.linalg.matrix_rank(V - 1.5 * np.eye(4), tol=1e-10) == 4 - multiplicity
    others = np.sort(np.abs(np.linalg.eigvals(V)))[: 4 - multiplicity]
    assert (others <= 1.0 + 1e-12).all()
    if multiplicity == 4:
        assert np.array_equal(V, 1.5 * np.eye(4))
        return
    _, parts = spectra.leading_splitting(w)
    assert (np.linalg.norm(parts.F.T @ parts.G) < 1e-12) == (not oblique)
    with pytest.raises(ValueError, match="at most d = 4, got 5"):
        weights_families["paranormal"](4, multiplicity=5)


@pytest.mark.parametrize(
    ("matrix", "d", "quoted"),
    [  # the eigenvalues quoted next to the figures, with the digits quoted
        ("hyperplanes_2d", 2, [1.348, -0.0683]),
        ("hyperplanes_3d_decaying", 3, [0.991, -0.0547 + 0.254j, -0.0547 - 0.254j]),
        ("hyperplanes_3d_growing", 3, [1.0783, 0.0991 + 0.0819j, 0.0991 - 0.0819j]),
        ("codimension", 3, [1.963, 0.253, -0.222]),
        ("polytope_times_line", 3, [1.0, 1.0, -0.5]),
    ],
)
def test_published_matrices(matrix, d, quoted):
    published = weights_families["published"]
    w = published(matrix)
    assert w.d == d and np.allclose(spectra.eigenvalues(w), quoted, atol=1e-3)
    assert spectra.is_good_triple(w) == (matrix != "polytope_times_line")
    assert spectra.is_paranormal(w)
    if matrix == "polytope_times_line":
        assert np.array_equal(published(matrix, d=5).V[0], np.diag([1.0, 1.0, 1.0, 1.0, -0.5]))
    else:
        with pytest.raises(ValueError, match=f"acts on dimension {d}, but d = 7"):
            published(matrix, d=7)


def test_published_names_are_suggested():
    with pytest.raises(
        UnknownName, match="Unknown published matrix 'hyperplane_2d'. Did you mean 'hyperplanes_2d'"
    ):
        weights_families["published"]("hyperplane_2d")


def test_the_source_shortens_matrices():
    w = weights_families["given"](V=np.eye(5))
    assert w.source == "given(V=array of shape (5, 5))"
    assert (
        weights_families["goe"](3, rng=np.random.default_rng(0)).source == "goe(d=3, rng=Generator)"
    )
