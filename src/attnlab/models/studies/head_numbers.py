"""The numbers of one head, from small matrices: V = B C with B (d, r), C (r, d), and M = Q^T K with
Q, K (k, d).

With B = U R, U orthonormal, V maps into the span of U and is, in that span and its complement,

    [ T  rest ]      T = R C U  (r, r),   rest = R C (I - U U^T),
    [ 0    0  ]

so that the eigenvalues of V are those of T and zeros, an eigenvector of V is U times one of T, and
the departure from normality is that of T and the norm of rest. With [Q^T K^T] = W [query, key], W
orthonormal, M = W query key^T W^T, at most 2k x 2k. No d x d matrix is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.analysis.spectra import ROUNDING
from attnlab.displayed import VERBS, Displayed, short_repr

CANCELS = 1e-10
"""Below this part of |V|^2 the departure from normality comes from a Schur form: |T|^2 - sum
|lambda|^2 has lost its digits.
"""

SWEEPS = 3
"""Steps of inverse iteration: each reduces the other parts by 1e-16 over the relative distance to
the next eigenvalue.
"""


@dataclass(frozen=True, eq=False)
class Reduced(Displayed):
    """A head in the small matrices from the top of this file. If r or k were larger than d, they
    are d here.

    place(u) gives W^T U u, the coordinates in which `query` and `key` act, of an eigenvector u (r,)
    of T.
    """

    d: int
    T: np.ndarray  # (r, r)
    rest: np.ndarray  # (r, any)
    query: np.ndarray  # (2k, k)
    key: np.ndarray  # (2k, k)
    place: Callable[[np.ndarray], np.ndarray]
    value_size: float  # |B|_F |C|_F
    score_size: float  # |Q|_F |K|_F
    token_square: float  # |x|^2 of the tokens that the head reads
    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class HeadNumbers(Displayed):
    """The numbers of one head in a table of heads.

    lambda1, lambda2      the eigenvalues of V of largest modulus (of a pair the one above the real
                          axis first)
    gap                   (|lambda1| - |lambda2|) / |lambda1|: 0 for a complex pair
    condition             of lambda1, |phi_1| |phi*_1| / |phi*_1(phi_1)| >= 1: how sensitive lambda1
                          is to V
    resolution            the rounding error of lambda1, relative to it
    score_value, score    phi_1^T M phi_1 with |phi_1| = 1, and the cosine of Q phi_1 and K phi_1.
                          For a complex pair
                          Re(phi_1^* M phi_1), which no choice of the phase changes: the mean over
                          the plane the pair turns in
    positive, negative, zero    how many eigenvalues of sym(M) are so. k, k, d - 2k for almost all Q
                                and K with 2k <= d
    positive_share        the positive eigenvalues' part of the sum of moduli, for sym(M)
    effective_beta        |x|^2 |sym M|_F / sqrt(d) for tokens x of the norm that the head reads:
                          beta |x|^2 where M = beta I
    token_norm            that norm, the root of the mean of |x|^2
    attractive, repulsive, rotational    parts of the non-zero eigenvalues of V: |Im| <= |Re| with Re > 0; with Re < 0; the others
    attractive_weight, repulsive_weight, rotational_weight    parts of sum |Re| + |Im|: positive Re, negative Re, Im
    non_normality         Henrici's departure over the Frobenius norm, sqrt(1 - sum |lambda|^2 /
                          |V|_F^2): 0 iff V is normal
    """

    lambda1: complex
    lambda2: complex
    gap: float
    condition: float
    resolution: float
    score: float
    score_value: float
    positive: int
    negative: int
    zero: int
    positive_share: float
    effective_beta: float
    token_norm: float
    attractive: float
    repulsive: float
    rotational: float
    attractive_weight: float
    repulsive_weight: float
    rotational_weight: float
    non_normality: float
    value_size: float
    score_size: float
    beta_size: float  # score_size |x|^2
    eigenvalues: np.ndarray  # those of T, by decreasing modulus
    __repr__ = short_repr
    instead = dict.fromkeys(
        VERBS,
        "al.models.spectra(model, layer, head) returns the same numbers as a table. Give that.",
    ) | {"movie": "Film a flow of the head: al.movie(al.models.flow(model, layer, head), path)."}


def reduce_head(
    Q: np.ndarray, K: np.ndarray, B: np.ndarray, C: np.ndarray, token_square: float | None = None
) -> Reduced:
    """Return the small matrices of a head with Q, K (k, d), B (d, r), C (r, d).

    token_square: |x|^2 of the tokens that it reads; default d.
    """
    U, R = np.linalg.qr(B)  # (d, r), (r, r)
    inside = C @ U
    W, both = np.linalg.qr(np.concatenate([Q, K]).T)  # (d, 2k), (2k, 2k)
    return Reduced(
        d=B.shape[0],
        T=R @ inside,
        rest=R @ (C - inside @ U.T),
        query=both[:, : len(Q)],
        key=both[:, len(Q) :],
        place=lambda u: W.T @ (U @ u),
        value_size=_norm(B) * _norm(C),
        score_size=_norm(Q) * _norm(K),
        token_square=float(B.shape[0] if token_square is None else token_square),
    )


def head_numbers(head: Reduced) -> HeadNumbers:
    """Return all numbers of a head."""
    values = np.linalg.eigvals(head.T).astype(complex)
    values = values[np.lexsort((-values.imag, -values.real, -np.abs(values)))]
    lambda1, lambda2 = complex(values[0]), complex(values[1]) if len(values) > 1 else 0j
    size, length = abs(lambda1), float(np.hypot(_norm(head.T), _norm(head.rest)))
    condition, score, score_value = np.inf, 0.0, 0.0
    if size > 0:
        right, left = _eigenvectors(head.T, lambda1)
        condition = _condition(head, left, right, size)
        score, score_value = _scores(head, right)
    return HeadNumbers(
        lambda1=lambda1,
        lambda2=lambda2,
        gap=(size - abs(lambda2)) / size if size > 0 else 0.0,
        condition=condition,
        resolution=ROUNDING * length * condition / size if size > 0 else np.inf,
        score=score,
        score_value=score_value,
        **_form(head),
        **_directions(values, ROUNDING * length),
        non_normality=_non_normality(head, values, length),
        value_size=head.value_size,
        score_size=head.score_size,
        beta_size=head.score_size * head.token_square,
        eigenvalues=values,
    )


def _norm(array: np.ndarray) -> float:
    return float(np.linalg.norm(array))


def _eigenvectors(T: np.ndarray, value: complex) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors (right, left) with T right = value right, left^* T = value left^*, by
    inverse iteration.

    `eig` computes all of them, which takes twice as long as the eigenvalues. A multiple eigenvalue
    gets some of its vectors.
    """
    from scipy import linalg

    matrix = T - (value.real if value.imag == 0 else value) * np.eye(len(T))
    lapack: Any = linalg.get_lapack_funcs(("getrf", "getrs"), (matrix,))
    factorise, solve = lapack
    factors, pivots, _ = factorise(matrix)
    least, diagonal = np.finfo(float).eps * _norm(T), np.diag_indices(len(T))
    factors[diagonal] = np.where(
        np.abs(factors[diagonal]) < least, least, factors[diagonal]
    )  # singular to the last bit
    vectors = []
    for transposed in (0, 2):
        u = np.random.default_rng(0).normal(size=len(T)).astype(factors.dtype)
        for _ in range(SWEEPS):
            u = solve(factors, pivots, u, trans=transposed)[0]
            u = u / _norm(u)
        vectors.append(u)
    return vectors[0], vectors[1]


def _condition(head: Reduced, left: np.ndarray, right: np.ndarray, size: float) -> float:
    """|phi*| |phi| / |phi*(phi)|: a left eigenvector (w, s) of [T rest; 0 0] has s = w rest /
    lambda.
    """
    length = np.hypot(_norm(left), _norm(left.conj() @ head.rest) / size)
    overlap = abs(np.vdot(left, right))
    return float(length / overlap) if overlap > 0 else np.inf


def _scores(head: Reduced, u: np.ndarray) -> tuple[float, float]:
    """(cosine, value) of phi^* M phi, phi = U u, |u| = 1."""
    at = head.place(u)
    query, key = head.query.T @ at, head.key.T @ at
    value, lengths = float(np.vdot(query, key).real), _norm(query) * _norm(key)
    return (value / lengths if lengths > 0 else 0.0), value


def _form(head: Reduced) -> dict[str, Any]:
    """Signature and size of sym(M)."""
    M = head.query @ head.key.T
    values = np.linalg.eigvalsh((M + M.T) / 2)
    least = ROUNDING * max(_norm(M), np.abs(values).max())
    positive, negative = int(np.sum(values > least)), int(np.sum(values < -least))
    total = float(np.abs(values).sum())
    return {
        "positive": positive,
        "negative": negative,
        "zero": head.d - positive - negative,
        "positive_share": float(values[values > 0].sum()) / total if total > 0 else np.nan,
        "effective_beta": float(head.token_square / np.sqrt(head.d) * np.linalg.norm(values)),
        "token_norm": float(np.sqrt(head.token_square)),
    }


def _directions(values: np.ndarray, least: float) -> dict[str, Any]:
    """Return the shares of attractive, repulsive and rotational directions, by number and by
    weight.
    """
    values = values[np.abs(values) > least]
    if len(values) == 0:
        return dict.fromkeys(
            (
                "attractive",
                "repulsive",
                "rotational",
                "attractive_weight",
                "repulsive_weight",
                "rotational_weight",
            ),
            np.nan,
        )
    real, imaginary = values.real, np.abs(values.imag)
    is_rotational = imaginary > np.abs(real)
    total = float(np.abs(real).sum() + imaginary.sum())
    return {
        "attractive": float(np.mean(~is_rotational & (real > 0))),
        "repulsive": float(np.mean(~is_rotational & (real < 0))),
        "rotational": float(np.mean(is_rotational)),
        "attractive_weight": float(real[real > 0].sum()) / total,
        "repulsive_weight": float(-real[real < 0].sum()) / total,
        "rotational_weight": float(imaginary.sum()) / total,
    }


def _non_normality(head: Reduced, values: np.ndarray, length: float) -> float:
    from scipy import linalg

    if length == 0:
        return 0.0
    rest = _norm(head.rest) ** 2
    square = max(_norm(head.T) ** 2 - float(np.sum(np.abs(values) ** 2)), 0.0) + rest
    if square <= CANCELS * length**2:
        square = _norm(np.triu(linalg.schur(head.T, output="complex")[0], 1)) ** 2 + rest
    return float(np.sqrt(square) / length)
