"""The spectrum of V, and the predicates that theorems ask and weights families promise.

Predicates take Weights of one head and a relative tolerance and return a bool; the functions
`*_margins` give the numbers behind them. Factors V = B C are never multiplied out for eigenvalues:
those of B C are those of the r x r matrix C B, and zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.exponential import Matrix
from attnlab.types import Weights

ROUNDING = 100 * np.finfo(float).eps
"""An eigenvalue of A is known to about eps |A| times the norm of its spectral projector; 100 leaves
room for the QR sweeps.
"""


def value_matrix(weights: Weights) -> Matrix:
    """V of Weights with one head, factored where it is."""
    if weights.heads != 1:
        raise ValueError(
            f"Spectra and predicates are about one head, these weights have {weights.heads}. Take"
            " them one by one."
        )
    return weights.total


def eigenvalues(weights: Weights) -> np.ndarray:
    """The d eigenvalues of V by decreasing modulus (ties: larger real, then imaginary part first),
    (d,) complex.
    """
    V = value_matrix(weights)
    values = np.zeros(weights.d, dtype=complex)
    small = np.linalg.eigvals(V.small)
    values[: len(small)] = small
    return values[_order(values)]


def _order(values: np.ndarray) -> np.ndarray:
    return np.lexsort((-values.imag, -values.real, -np.abs(values)))


@dataclass(frozen=True, eq=False)
class Leading(Displayed):
    """The eigenvalue of V of largest modulus, with V phi = value phi, psi V = value psi, |phi| = 1,
    psi(phi) = 1.

    phi (d,) is phi_1 and psi (d,) is phi*_1 of the paper; both are real where the eigenvalue is,
    and complex otherwise. The largest entry of phi is positive. A defective eigenvalue has psi(phi)
    = 0 up to rounding: then psi is huge.
    """

    value: complex
    phi: np.ndarray
    psi: np.ndarray
    __repr__ = short_repr


def leading(weights: Weights) -> Leading:
    """The leading eigenvalue of V and its right and left eigenvectors."""
    from scipy import linalg

    V = value_matrix(weights)
    values, left, right = linalg.eig(V.small, left=True, right=True)
    k = _order(values)[0]
    value, phi, psi = values[k], right[:, k], left[:, k].conj()
    if V.is_factored:
        assert V.left is not None and V.right is not None
        phi, psi = V.left @ phi, psi @ V.right
    phi = phi / np.linalg.norm(phi)
    largest = phi[np.argmax(np.abs(phi))]
    phi = phi * (np.abs(largest) / largest)
    with np.errstate(divide="ignore", invalid="ignore"):
        psi = psi / (psi @ phi)
    if value.imag == 0:
        phi, psi = phi.real, psi.real
    return Leading(complex(value), phi, psi)


@dataclass(frozen=True, eq=False)
class Splitting(Displayed):
    """R^d = F + G, both V-invariant: F belongs to chosen eigenvalues, G to the others.

    F (d, m) and G (d, d - m) are orthonormal bases; projector (d, d) is pi_F, the projection on F
    ALONG G, oblique in general.
    """

    F: np.ndarray
    G: np.ndarray
    projector: np.ndarray
    __repr__ = short_repr


def splitting(A: np.ndarray, is_chosen: Callable[[complex], bool]) -> Splitting:
    """The splitting of R^d by the eigenvalues of A (d, d) that are chosen; a conjugate pair must be
    chosen together.

    From ordered real Schur forms: the leading columns span F (and, with the choice reversed, G).
    """
    from scipy import linalg

    _, columns, m = linalg.schur(A, output="real", sort=lambda re, im: is_chosen(complex(re, im)))
    _, others, _ = linalg.schur(
        A, output="real", sort=lambda re, im: not is_chosen(complex(re, im))
    )
    F, G = columns[:, :m], others[:, : len(A) - m]
    # pi_F (F a + G b) = F a
    return Splitting(F, G, F @ np.linalg.solve(np.hstack([F, G]), np.eye(len(A)))[:m])


def splitting_of(V: Matrix, is_chosen: Callable[[complex], bool]) -> Splitting:
    """`splitting` of V; of factors V = B C from r x r matrices, where the eigenvalue 0 is not
    chosen.

    S = C B has the eigenvalues of V. With S F_s = F_s T and P_s = F_s L its projector, pi_F = B F_s
    T^-1 L C.
    """
    if not V.is_factored or is_chosen(0j):
        return splitting(V.dense(), is_chosen)
    assert V.left is not None and V.right is not None
    small = splitting(V.small, is_chosen)
    F_small, m = small.F, small.F.shape[1]
    T, L = F_small.T @ V.small @ F_small, F_small.T @ small.projector
    along = np.linalg.solve(T, L @ V.right)  # (m, d), pi_F = B F_s along
    lifted = V.left @ F_small
    return Splitting(
        np.linalg.qr(lifted)[0], np.linalg.qr(along.T, mode="complete")[0][:, m:], lifted @ along
    )


def unstable_splitting(weights: Weights, tolerance: float = 1e-12) -> Splitting:
    """The splitting with F of the eigenvalues whose real part exceeds tolerance |V| (the subspaces
    of Conj. 4.3 are along G).
    """
    V = value_matrix(weights)
    least = tolerance * frobenius_norm(V)
    return splitting_of(V, lambda value: value.real > least)


def unstable_dimension(weights: Weights, tolerance: float = 1e-12) -> int:
    """The number k of eigenvalues of V, with multiplicity, whose real part exceeds tolerance
    |V|.
    """
    return int(
        np.sum(eigenvalues(weights).real > tolerance * frobenius_norm(value_matrix(weights)))
    )


def frobenius_norm(V: Matrix) -> float:
    """The Frobenius norm of V; of factors from r x r matrices."""
    if V.left is None or V.right is None:
        return float(np.linalg.norm(V.dense()))
    left, right = (np.asarray(np.linalg.qr(part, mode="r")) for part in (V.left, V.right.T))
    return float(np.linalg.norm(left @ right.T))


def product_norm(left: np.ndarray, right: np.ndarray) -> float:
    """The spectral norm of left right, left (d, r), right (r, d), from r x r matrices where r <
    d.
    """
    if left.shape[1] < left.shape[0]:
        left, right = (
            np.asarray(np.linalg.qr(left, mode="r")),
            np.asarray(np.linalg.qr(right.T, mode="r")).T,
        )
    return float(np.linalg.norm(left @ right, 2))


def score_norm(weights: Weights, head: int = 0) -> float:
    """The spectral norm of M = Q^T K of a head."""
    return product_norm(weights.Q[head].T, weights.K[head])


def value_norm(weights: Weights, head: int = 0) -> float:
    """The spectral norm of V of a head."""
    if weights.is_factored:
        return product_norm(weights.V[0][head], weights.V[1][head])
    return float(np.linalg.norm(weights.V[head], 2))


def good_triple_margins(weights: Weights) -> dict[str, float]:
    """The numbers behind `is_good_triple`; eigenvalues are divided by |lambda_1|.

    imaginary : |Im lambda_1|, must be 0               real : Re lambda_1, must be positive
    gap : |lambda_1| - |lambda_2|, must exceed `resolution`, the accuracy to which rounding lets
    lambda_1 be known (d = 1: gap 1) score : cosine of the angle between Q phi_1 and K phi_1, must
    be positive
    """
    values, first = eigenvalues(weights), leading(weights)
    size = abs(values[0])
    if size == 0:
        return {"imaginary": 0.0, "real": 0.0, "gap": 0.0, "resolution": 0.0, "score": 0.0}
    query, key = weights.Q[0] @ first.phi.real, weights.K[0] @ first.phi.real
    lengths = np.linalg.norm(query) * np.linalg.norm(key)
    return {
        "imaginary": float(abs(values[0].imag) / size),
        "real": float(values[0].real / size),
        "gap": float((size - abs(values[1])) / size) if weights.d > 1 else 1.0,
        "resolution": _resolution(weights, float(np.linalg.norm(first.psi)), size),
        "score": float(query @ key / lengths) if lengths > 0 else 0.0,
    }


def _resolution(weights: Weights, projector_norm: float, size: float) -> float:
    """A defective eigenvalue splits by eps^{1/m} when computed; the norm of its projector tells the
    pieces from separate ones.
    """
    error = ROUNDING * np.linalg.norm(value_matrix(weights).dense()) * projector_norm / size
    return float(error) if np.isfinite(error) else np.inf


def is_good_triple(weights: Weights, tolerance: float = 1e-8) -> bool:
    """Whether lambda_1 is real, positive, simple and strictly dominant in modulus, and <Q phi_1, K
    phi_1> > 0 (Def. 4.1).
    """
    margins = good_triple_margins(weights)
    return _is_dominant(margins, tolerance) and margins["score"] > tolerance


def _is_dominant(margins: dict[str, float], tolerance: float) -> bool:
    return margins["imaginary"] <= tolerance < margins["real"] and margins["gap"] > max(
        tolerance, margins["resolution"]
    )


def leading_splitting(weights: Weights, tolerance: float = 1e-8) -> tuple[float, Splitting]:
    """(lambda, F + G) with F of the eigenvalues within tolerance |lambda_1| of lambda_1, lambda the
    real part of their mean.
    """
    V, values = value_matrix(weights), eigenvalues(weights)
    first = complex(values[0])
    radius = float(tolerance * abs(first) + ROUNDING * frobenius_norm(V))
    near = np.abs(values - first) <= radius
    # conjugates go together, as `splitting` needs
    parts = splitting_of(
        V, lambda value: min(abs(value - first), abs(value.conjugate() - first)) <= radius
    )
    return float(values[near].mean().real), parts


def paranormal_margins(weights: Weights, tolerance: float = 1e-8) -> dict[str, float]:
    """The numbers behind `is_paranormal`; eigenvalues are divided by |lambda_1|, F and G are those
    of `leading_splitting`.

    imaginary, real, resolution : as in `good_triple_margins`        gap : lambda - spectral radius on G (1 where G = 0)
    defect : |V - lambda Id| on F, must be 0: algebraic = geometric multiplicity
    """
    from scipy import linalg

    values, V = eigenvalues(weights), value_matrix(weights).dense()
    size = abs(values[0])
    if size == 0:
        return {"imaginary": 0.0, "real": 0.0, "gap": 0.0, "resolution": 0.0, "defect": 0.0}
    position = {
        "imaginary": float(abs(values[0].imag) / size),
        "real": float(values[0].real / size),
    }
    if (total := value_matrix(weights)).is_factored:
        return {**position, **_factored_paranormal_margins(total, values, tolerance)}
    try:
        value, parts = leading_splitting(weights, tolerance)
    except linalg.LinAlgError:  # pieces of a defective eigenvalue that cannot be separated
        return {**position, "gap": 0.0, "resolution": np.inf, "defect": np.inf}
    m = parts.F.shape[1]
    if m == 0:  # pieces of one, which two algorithms place differently
        return {**position, "gap": 0.0, "resolution": np.inf, "defect": np.inf}
    return {
        **position,
        "gap": float((size - abs(values[m])) / size) if m < weights.d else 1.0,
        "resolution": _resolution(weights, float(np.linalg.norm(parts.projector)), size),
        "defect": float(np.linalg.norm(V @ parts.F - value * parts.F) / size),
    }


def _factored_paranormal_margins(
    V: Matrix, values: np.ndarray, tolerance: float
) -> dict[str, float]:
    """gap, resolution and defect of V = B C from r x r matrices: where C B u = lambda u, V B u =
    lambda B u.
    """
    from scipy import linalg

    assert V.left is not None and V.right is not None
    small, first, size = V.small, complex(values[0]), abs(values[0])
    length = float(np.linalg.norm(V.left, 2) * np.linalg.norm(V.right, 2))  # at least |V|
    radius = float(tolerance * size + ROUNDING * length)
    try:
        parts = splitting(
            small, lambda value: min(abs(value - first), abs(value.conjugate() - first)) <= radius
        )
    except linalg.LinAlgError:
        return {"gap": 0.0, "resolution": np.inf, "defect": np.inf}
    m = parts.F.shape[1]
    if m == 0:
        return {"gap": 0.0, "resolution": np.inf, "defect": np.inf}
    F, _ = np.linalg.qr(V.left @ parts.F)  # (d, m)
    value = float(values[:m].mean().real)
    projector = (
        np.linalg.norm(V.left @ parts.projector, 2)
        * np.linalg.norm(parts.projector @ V.right, 2)
        / size
    )
    return {
        "gap": float((size - abs(values[m])) / size) if m < len(values) else 1.0,
        "resolution": float(ROUNDING * length * projector / size),
        "defect": float(np.linalg.norm(V.left @ (V.right @ F) - value * F) / size),
    }


def is_paranormal(weights: Weights, tolerance: float = 1e-8) -> bool:
    """Whether R^d = F + G, V-invariant, V = lambda Id on F, lambda > 0, spectral radius of V on G
    below lambda (Def. 5.1).
    """
    margins = paranormal_margins(weights, tolerance)
    return _is_dominant(margins, tolerance) and margins["defect"] <= tolerance


def spd_margins(weights: Weights) -> dict[str, float]:
    """The numbers behind `is_spd_scores`.

    asymmetry : |M - M^T| / |M|, must be 0        least : smallest eigenvalue of (M + M^T) / 2 over its norm, must be positive
    """
    value_matrix(weights)  # one head only
    M, k = weights.M[0], weights.Q.shape[1]
    if 2 * k < weights.d:
        # (Q^T K + K^T Q) / 2 = L J L^T with L = [Q^T K^T]: at most 2k eigenvalues are not 0
        R = np.asarray(
            np.linalg.qr(np.concatenate([weights.Q[0], weights.K[0]]).T, mode="r")
        )  # (2k, 2k)
        J = np.kron([[0.0, 0.5], [0.5, 0.0]], np.eye(k))
        symmetric = np.sort(np.append(np.linalg.eigvalsh(R @ J @ R.T), 0.0))
    else:
        symmetric = np.linalg.eigvalsh((M + M.T) / 2)
    size = np.abs(symmetric).max()
    if size == 0:
        return {"asymmetry": float(np.any(M)), "least": 0.0}
    return {
        "asymmetry": float(np.linalg.norm(M - M.T) / np.linalg.norm(M)),
        "least": float(symmetric[0] / size),
    }


def is_spd_scores(weights: Weights, tolerance: float = 1e-10) -> bool:
    """Whether M = Q^T K is symmetric and positive definite: the condition Q^T K > 0 of the paper,
    symmetry included.
    """
    margins = spd_margins(weights)
    return margins["asymmetry"] <= tolerance < margins["least"]


def identity_margins(weights: Weights) -> dict[str, float]:
    """The numbers behind `is_multiple_of_identity`. factor : c = tr V / d;  distance : |V - c I| / |V|, must be
    0.
    """
    V = value_matrix(weights).dense()
    c, size = np.trace(V) / len(V), np.linalg.norm(V)
    return {
        "factor": float(c),
        "distance": float(np.linalg.norm(V - c * np.eye(len(V))) / size) if size > 0 else 0.0,
    }


def is_multiple_of_identity(weights: Weights, tolerance: float = 1e-12) -> bool:
    """Whether V = c I for some number c, of either sign."""
    return identity_margins(weights)["distance"] <= tolerance


def is_symmetric_value(weights: Weights, tolerance: float = 1e-12) -> bool:
    """Whether V = V^T."""
    V = value_matrix(weights).dense()
    return bool(np.linalg.norm(V - V.T) <= tolerance * np.linalg.norm(V))


def largest_modulus(weights: Weights) -> float:
    """Return |lambda_1| of V = B C by Arnoldi's iteration, which only multiplies by the factors.

    An independent check of `eigenvalues`, for ranks of at least 3.
    """
    from scipy.sparse.linalg import LinearOperator, eigs

    B, C = weights.V[0][0], weights.V[1][0]
    d, r = B.shape
    operator = LinearOperator((d, d), matvec=lambda x: B @ (C @ x), dtype=float)
    start = B @ np.random.default_rng(0).normal(size=r)
    sizes = {"k": min(4, r - 2), "ncv": min(r, 40), "maxiter": 20000}
    found = eigs(operator, v0=start, return_eigenvectors=False, tol=1e-12, **sizes)
    return float(np.abs(found).max())
