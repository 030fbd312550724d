"""How fast tokens grow, and where: the natural clock of a flow with several heads."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from attnlab.types import Weights


@lru_cache(maxsize=16)
def growth_rate(weights: Weights, part: str = "modulus", *, from_factors: bool = True) -> float:
    """The largest eigenvalue of W = sum_h V_h. Tokens grow like e^{rate t}.

    The natural time of the flow is tau = rate t; for V_h = I it is Ht.

    part: "modulus", the spectral radius of W, or "real", the largest real part.
    from_factors: whether factors V_h = B_h C_h give the eigenvalues, where these are fewer than d;
    else W is multiplied out, with different rounding. The last 16 answers are cached, because one
    may cost more than a run.
    """
    if part not in ("modulus", "real"):
        raise ValueError(f"part must be 'modulus' or 'real', got {part!r}.")
    values = (
        weights.total.eigenvalues if from_factors else np.linalg.eigvals(weights.full_V.sum(axis=0))
    )
    return float((np.abs(values) if part == "modulus" else values.real).max())


def fastest_space(weights: Weights) -> np.ndarray:
    """Return an orthonormal basis (d, 1 or 2) of the directions in which tokens grow fastest.

    It is the real eigenspace of W = sum_h V_h for the eigenvalue of largest real part.
    """
    eigenvalues, vectors = np.linalg.eig(weights.full_V.sum(axis=0))
    lead = int(np.argmax(eigenvalues.real))
    parts = [vectors[:, lead].real]
    if abs(eigenvalues[lead].imag) > 1e-9:
        parts.append(vectors[:, lead].imag)
    return np.asarray(np.linalg.qr(np.array(parts).T)[0])


def fastest_modes(weights: Weights, P: np.ndarray, labels: np.ndarray, slack: float) -> np.ndarray:
    """Return an orthonormal basis (d, k) of where the largest cluster points in the end.

    P (h, n, n) is who attends to whom then, labels (n,) are the clusters. Tokens of a cluster move
    alike: x_c' = sum_h V_h x_c', c' the cluster that head h looks at from c. The basis is of the
    modes of this linear system whose rate is at least (1 - slack) times the largest.
    """
    count, d = int(labels.max()) + 1, weights.d
    system = np.zeros((count, d, count, d))
    for matrix, seen in zip(weights.full_V, P, strict=True):
        for c in range(count):
            looks = np.bincount(labels, weights=seen[labels == c].mean(axis=0), minlength=count)
            system[c, :, int(looks.argmax())] += matrix
    values, vectors = np.linalg.eig(system.reshape(count * d, count * d))
    fast = vectors[:, values.real >= (1 - slack) * values.real.max()]
    largest = fast.reshape(count, d, -1)[np.argmax(np.bincount(labels))]
    both = np.concatenate([largest.real, largest.imag], axis=1)
    basis, sizes, _ = np.linalg.svd(both, full_matrices=False)
    return basis[:, sizes > 1e-9]
