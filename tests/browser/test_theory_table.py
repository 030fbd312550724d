"""theory.js against al.predict: what it cites applies, and it is silent only where nothing
applies.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from modules import open_modules

import attnlab as al

LIMITS = (
    "low_rank_boolean",
    "polytope",
    "collapse_to_origin",
    "three_hyperplanes",
    "polytope_times_subspace",
)
"""Results that say where tokens end."""

BOUNDS = ("hull_shrinks", "coordinate_extremes")
CITES = {"low_rank_boolean": "theorem 2.1", "polytope": "theorem 3.1", "collapse_to_origin": "section 8",
         "generic_scores": "section 12",
         "three_hyperplanes": "theorem 4.2", "polytope_times_subspace": "theorem 5.2", "hull_shrinks": "section 8",
         "coordinate_extremes": "section 9"}  # fmt: skip
BASIS = {
    1: np.eye(1),
    2: np.array([[1.0, 0.4], [-0.3, 1.0]]),
    3: np.array([[1.0, 0.4, 0.1], [-0.3, 1.0, 0.2], [0.2, -0.5, 1.0]]),
}


def block_diagonal(values) -> np.ndarray:
    from attnlab.weights.spectrum import real_form

    return real_form(values)


def cases() -> list[tuple[str, al.Weights, dict, dict]]:
    """(name, weights, dynamics, solve) over spectra, scores, kernels, masks, spheres, heads and
    layers.
    """
    real = [1.0, 0.9, 0.5, 0.0, -0.5, -1.0]
    spectra = [(value,) for value in (1.0, -1.0, 0.3)]
    spectra += list(itertools.combinations_with_replacement(real, 2)) + list(
        itertools.combinations_with_replacement(real, 3)
    )
    spectra += [
        ([0.5, 1.2],),
        ([-0.5, 0.3],),
        (1.0, [0.2, 0.5]),
        (0.3, [0.2, 0.5]),
        (1.0, [0.6, 0.8]),
        (-1.0, [0.2, 0.5]),
        (1.0, [-2.0, 0.5]),
    ]
    made = []
    for values in spectra:
        D = block_diagonal(values)
        if not D.any():
            continue
        made.append((f"{values}", al.Weights(V=D), {}, {}))
        if len(D) > 1:
            S = BASIS[len(D)]
            made.append((f"{values} oblique", al.Weights(V=S @ D @ np.linalg.inv(S)), {}, {}))
    chosen = [(1.0,), (-1.0,), (1.0, 1.0), (1.0, 0.5), (-1.0, -1.0), (1.0, -1.0), (1.0, 1.0, -0.5), (1.0, 1.0, 1.0),
              (1.0, 0.9, -0.5),
              ([0.5, 1.2],), (-1.0, [0.2, 0.5]), (-1.0, -0.5)]  # fmt: skip
    for values in chosen:
        V = block_diagonal(values)
        d = len(V)
        for dynamics in (
            {"beta": -1.0},
            {"beta": 0.0},
            {"beta": 4.0},
            {"mask": "causal"},
            {"kernel": "hardmax"},
            {"kernel": "exp_mean"},
            {"geometry": "sphere"},
            {"kernel": "hardmax", "mask": "causal"},
        ):
            made.append((f"{values} {dynamics}", al.Weights(V=V), dynamics, {}))
        for name, M in scores(d).items():
            made.append((f"{values} scores {name}", al.Weights(Q=np.eye(d), K=M, V=V), {}, {}))
        made.append((f"{values} layers", al.Weights(V=V), {}, {"layers": 5}))
        made.append((f"{values} short layers", al.Weights(V=V), {}, {"layers": 5, "dt": 0.25}))
        made.append((f"{values} two heads", al.Weights(V=np.stack([V, V])), {}, {}))
        made.append((f"{values} opposite heads", al.Weights(V=np.stack([V, -0.5 * V])), {}, {}))
    made.append(("a Jordan block", al.Weights(V=[[1.0, 1.0], [0.0, 1.0]]), {}, {}))
    made.append(
        (
            "a Jordan block below",
            al.Weights(V=[[1.0, 0.0, 0.0], [0.0, 0.3, 1.0], [0.0, 0.0, 0.3]]),
            {},
            {},
        )
    )
    made.append(("nilpotent", al.Weights(V=[[0.0, 1.0], [0.0, 0.0]]), {}, {}))
    made.append(("nearly equal", al.Weights(V=np.diag([1.0, 0.999])), {}, {}))
    return made


def scores(d: int) -> dict[str, np.ndarray]:
    turn = np.eye(d) + 0.7 * (np.tri(d, k=-1) - np.tri(d, k=-1).T)
    return {
        "definite": BASIS[d] @ BASIS[d].T,
        "negative": -np.eye(d),
        "indefinite": np.diag([-1.0, 1.0, 2.0][:d]),
        "unsymmetric": turn,
        "zero": np.zeros((d, d)),
        "semidefinite": np.diag([1.0, 0.0, 2.0][:d]),
    }


def matrices_of(weights: al.Weights) -> dict:
    """What weights.js hands to theory.js; the eigenvalues here are NumPy's."""
    total = weights.total.dense()
    values = sorted(
        np.linalg.eigvals(total), key=lambda value: (-value.real, -abs(value.imag), -value.imag)
    )
    growth, turn = [value.real for value in values], [max(value.imag, 0.0) for value in values]
    heads = [
        {"M": M.tolist(), "V": V.tolist()} for M, V in zip(weights.M, weights.full_V, strict=True)
    ]
    return {"d": weights.d, "heads": heads, "total": total.tolist(), "growth": growth, "turn": turn}


@pytest.fixture(scope="module")
def answers(browser_tab, tmp_path_factory):
    """[(case, what JavaScript says, what Python says)]"""
    page = open_modules(browser_tab, tmp_path_factory.mktemp("theory"), "theory")
    made = cases()
    told = page.call(
        "cases => cases.map(([spec, weights]) => theory.predict(spec, weights))",
        [
            [
                {"weights": {}, "start": {}, "dynamics": dynamics, "solve": solve or {"t_end": 1}},
                matrices_of(weights),
            ]
            for _, weights, dynamics, solve in made
        ],
    )
    found = []
    for (name, weights, dynamics, solve), says in zip(made, told, strict=True):
        x0 = np.random.default_rng(0).normal(size=(5, weights.d))
        if dynamics.get("geometry") == "sphere":
            x0 /= np.linalg.norm(x0, axis=1, keepdims=True)
        applies = {one.theorem: one.applies for one in al.predict(weights, x0, **dynamics, **solve)}
        found.append((name, weights, dynamics, solve, says, applies))
    return found


def test_what_is_cited_applies(answers):
    wrong = [
        (name, says["theorem"])
        for name, _, _, _, says, applies in answers
        if says["theorem"] and applies[says["theorem"]] is not True
    ]
    assert wrong == []


def test_a_theorem_about_the_end_is_never_missed(answers):
    missed = [
        (name, says["cite"], [one for one in LIMITS if applies[one]])
        for name, _, _, _, says, applies in answers
        if any(applies[one] for one in LIMITS) and says["theorem"] not in LIMITS
    ]
    assert missed == []
    assert {says["theorem"] for *_, says, _ in answers} >= {*LIMITS, *BOUNDS, "generic_scores", ""}


def test_it_is_open_exactly_where_nothing_ends(answers):
    for name, _, dynamics, _, says, applies in answers:
        if dynamics.get("geometry") == "sphere":
            continue
        assert says["isOpen"] is not any(applies[one] for one in LIMITS), name
        if not says["theorem"]:
            assert not any(applies[one] for one in (*LIMITS, *BOUNDS)), name


def test_citations_are_those_of_python(answers):
    from attnlab.theory import theorems

    for name, *_, says, _ in answers:
        if says["theorem"]:
            cite, place = theorems[says["theorem"]].cite, CITES[says["theorem"]]
            assert says["paper"] in cite and place in cite and says["cite"].lower() == place, name
        assert says["says"].endswith(".") and 20 < len(says["says"]) < 300


def test_the_sphere(answers):
    """Only V = QᵀK = I, beta >= 0, softmax, one head and no mask have a result, and it is of other
    papers.
    """
    for name, weights, dynamics, _, says, _ in answers:
        if dynamics.get("geometry") == "sphere":
            is_identity = (
                np.array_equal(weights.full_V[0], np.eye(weights.d)) and weights.heads == 1
            )
            assert (says["shape"] == "point") == (is_identity and weights.d > 1), name
            assert says["paper"] == (
                ""
                if says["isOpen"]
                else "arXiv:2507.22857"
                if weights.d == 2
                else "arXiv:2312.10794"
            )


def test_bounds_and_conjectures(answers):
    for name, weights, *_, says, _ in answers:
        growing = int(np.sum(np.linalg.eigvals(weights.total.dense()).real > 1e-9))
        if says["theorem"] == "three_hyperplanes":
            assert says["most"] == 3 and says["isConjecture"] == (growing > 1), name
            assert ("Conjecture 4.3" in says["says"]) == (growing > 1)
        if says["theorem"] in ("polytope", "polytope_times_subspace", *BOUNDS):
            assert says["most"] is None, name
    words = {name: says["says"] for name, *_, says, _ in answers}
    assert (
        "no clusters are expected" in words["([0.5, 1.2],)"] and "negative" in words["(-0.5, -1.0)"]
    )
    assert (
        "Several different" in words["(1.0, -1.0)"]
        and "lacks eigenvectors" in words["a Jordan block"]
    )
    assert (
        "infinity in finite time" in words["(1.0, 0.5) {'kernel': 'exp_mean'}"]
        and "2 heads" in words["(1.0, 0.5) two heads"]
    )
