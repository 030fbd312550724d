"""The starts of docs/limits.md and their certified limits, one record each."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.stats import chi, norm

import attnlab as al
from attnlab.analysis.clusters import cluster_count
from attnlab.analysis.distances import diameter
from attnlab.analysis.hull import convex_hull
from attnlab.weights import weights_families

PAPER_T = 5.0
"""The time at which the paper's figures stop."""

WATCHED = np.arange(0.0, 61.0)
"""Times at which clusters are counted, for the figure."""

Record = dict[str, Any]


def record(limit: al.Limit) -> Record:
    """What the page needs of a Limit, as plain numbers and words."""
    sizes = np.sort(np.bincount(limit.labels))[::-1] if limit.certified else np.zeros(0, int)
    leaders = np.unique(limit.leaders) if limit.certified else np.zeros(0, int)
    return {
        "count": limit.count, "grade": limit.grade, "kind": limit.stats.get("kind", ""), "t": float(limit.t),
        "events": len(limit.events), "digits": int(limit.digits), "error": number_or_none(limit.error),
        "seconds": float(limit.stats.get("seconds", 0.0)), "condition": number_or_none(limit.stats.get("condition", np.inf)),
        "k": int(limit.basis.shape[1]), "sizes": sizes.tolist(), "leaders": leaders.tolist(),
        "reason": limit.reason, "certificate": limit.certificate,
        "said": f"{limit.grade} {limit.count} t={limit.t:.3g} events={len(limit.events)}",
    }


def number_or_none(value: Any) -> float | None:
    """JSON has no infinity."""
    return float(value) if np.isfinite(value) else None
CODIMENSION = (
    ("C9", 30, 200), ("diag(1, 0.9, -0.5)", 30, 200), ("diag(1.2, 0.8, -0.5)", 30, 100), ("C9", 10, 100), ("C9", 100, 50),
)
"""Matrix, tokens, starts."""

NUDGES = (0.0, 1e-9, 1e-6, 1e-3)
"""By which the symmetric example is perturbed."""


def value_matrix(name: str) -> np.ndarray:
    """V of a row of the first table: the paper's matrix, or a diagonal one."""
    if name == "C9":
        return weights_families["published"](matrix="codimension").V[0]
    return np.diag([float(entry) for entry in name.removeprefix("diag(").removesuffix(")").split(", ")])


def codimension(name: str, n: int, seed: int) -> Record:
    """The limit of n tokens from [-5, 5]^3, and the clusters that one counts on the way."""
    V = value_matrix(name)
    x0 = np.random.default_rng([1, n, seed]).uniform(-5.0, 5.0, (n, 3))
    limit = al.limit(al.Weights(V=V), x0, times=WATCHED)
    leading = np.linalg.eigh(V)[1][:, -1]                       # V is symmetric: projections on F are orthogonal
    run = al.simulate(al.Weights(V=V), x0, t_end=PAPER_T)
    early = run.z[-1] @ limit.basis
    out = record(limit)
    out["seen"] = [clusters(tokens, 0.01) for tokens in limit.path]
    out["early"] = [clusters(early, share) for share in (0.01, 0.05)]
    out["check"] = float(np.abs(early - limit.path[WATCHED.tolist().index(PAPER_T)]).max())
    if limit.certified:
        values = limit.limits @ leading
        out["sides"] = len(np.unique(np.sign(values)))
        out["is_extreme"] = set(out["leaders"]) == {int(np.argmax(x0 @ leading)), int(np.argmin(x0 @ leading))}
    return out


def clusters(tokens: np.ndarray, share: float) -> int | None:
    """How many groups one sees in tokens (n, k) at that share of their diameter; None where they are not known."""
    return int(cluster_count(tokens, share * float(diameter(tokens)))) if np.isfinite(tokens).all() else None


def cross(nudge: float) -> Record:
    """Four tokens on the axes, V = diag(1.2, 0.8), perturbed by a nudge."""
    x0 = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return record(al.limit(al.Weights(V=np.diag([1.2, 0.8])), x0 + nudge * np.random.default_rng(0).standard_normal((4, 2))))

DIMENSIONS = ((32, 20, 7.5e6), (64, 10, 1.5e7), (128, 4, 5e7))
"""d = n, draws, units of work for each."""

POLYTOPE_WORK, SECONDS = 7.5e6, 3600.0
"""Units of work for one polytope, and seconds for any limit: a cap that two cores do not reach, since work must decide."""


def sparse_symmetric(d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(V, its eigenvalues ascending) as the paper draws it.

    A d x d matrix with entries U(0, 1) at density 0.1, symmetrized; eigenvalues of modulus at most 1 become their sign times
    U(1, 2).
    """
    A = rng.random((d, d)) * (rng.random((d, d)) < 0.1)
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    is_small = np.abs(values) <= 1.0
    values[is_small] = np.sign(values[is_small]) * rng.uniform(1.0, 2.0, int(is_small.sum()))
    return (vectors * values) @ vectors.T, np.sort(values)


def high_dimension(d: int, seed: int, work: float) -> Record:
    """The limit of d tokens from [-1/2, 1/2]^d."""
    rng = np.random.default_rng([11, d, seed])
    V, values = sparse_symmetric(d, rng)
    x0 = rng.uniform(-0.5, 0.5, (d, d))
    limit = al.limit(al.Weights(V=V), x0, work=work, budget=SECONDS)
    return {**record(limit), "values": [*values[-2:].tolist(), float(values[0])]}

LAWS = {"uniform [-5, 5]^d": "u5", "uniform [-1, 1]^d": "u1", "Gaussian, deviation 5": "g5"}

POLYTOPES = {10: 40, 20: 40, 50: 40, 100: 40, 200: 20, 500: 8, 1000: 4}
"""n: starts."""


def draw(law: str, n: int, d: int, seed: int) -> np.ndarray:
    """n tokens in R^d."""
    rng = np.random.default_rng([3, n, d, seed])
    return 5.0 * rng.standard_normal((n, d)) if law == "g5" else {"u5": 5.0, "u1": 1.0}[law] * rng.uniform(-1.0, 1.0, (n, d))


def polytope(law: str, n: int, d: int, seed: int) -> Record:
    """The limit for V = I; the start's hull and the tokens of the start that attend to themselves most."""
    x0 = draw(law, n, d, seed)
    limit = al.limit(al.Weights(V=np.eye(d)), x0, work=POLYTOPE_WORK, budget=SECONDS)
    own = np.flatnonzero(np.argmax(x0 @ x0.T, axis=1) == np.arange(n))
    out = {**record(limit), "hull": len(convex_hull(x0).vertices), "own": len(own)}
    if limit.certified:
        out["vertices"] = len(convex_hull(limit.limits[np.unique(limit.labels, return_index=True)[1]]).vertices)
        out["led_by_own"] = len(np.intersect1d(own, out["leaders"]))
    return out


def expected_own(n: int, d: int) -> float:
    """How many of n Gaussian tokens in R^d attend to themselves most, in the mean: n E (1 - Phi(-|x|))^(n-1)."""
    return n * quad(lambda r: chi(d).pdf(r) * np.exp((n - 1) * norm.logcdf(r)), 0.0, 12.0, limit=200, points=[2.0, 4.0, 6.0])[0]
OWN_SIZES = (100, 1000, 10_000, 100_000)


def own_of_cubes(n: int, d: int, starts: int = 100) -> Record:
    """The mean number of self-leading tokens of uniform starts in a cube; they are vertices of the hull."""
    found = []
    for seed in range(starts):
        x0 = np.random.default_rng([4, n, d, seed]).uniform(-1.0, 1.0, (n, d))
        hull = x0[convex_hull(x0).vertices]
        found.append(int((np.argmax(hull @ hull.T, axis=1) == np.arange(len(hull))).sum()))
    return {"mean": float(np.mean(found)), "error": float(np.std(found, ddof=1) / np.sqrt(starts))}
