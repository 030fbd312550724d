"""The numbers of random heads: Gaussian factors Q, K, B, C of the same shapes and Frobenius norms.

Numbers that do not depend on those norms, or are divided by them, have one law for each shape (d,
r, k). So one set of draws is enough for all heads of that shape. They depend only on small
matrices, whose laws are known (Bartlett). For Gaussian B = U R the frame U is uniform and
independent of the triangular R, whose entries are independent normal and chi. C U and the rest of C
are independent Gaussians. The eigenvector of V is uniform relative to the frame of Q and K. No d x
r matrix is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from attnlab.displayed import Displayed, short_repr
from attnlab.engine.threads import one_blas_thread, pool
from attnlab.models.studies.head_numbers import HeadNumbers, Reduced, head_numbers
from attnlab.models.studies.judgement import is_real
from attnlab.progress import Progress, as_progress
from attnlab.types import Weights

STATISTICS: Mapping[str, str] = {
    "lambda1": "value_size",
    "lambda2": "value_size",
    "gap": "",
    "condition": "",
    "score": "",
    "score_value": "score_size",
    "positive_share": "",
    "effective_beta": "beta_size",
    "attractive": "",
    "repulsive": "",
    "rotational": "",
    "attractive_weight": "",
    "repulsive_weight": "",
    "rotational_weight": "",
    "non_normality": "",
}
"""The numbers with a quantile, and the norms by which they are divided. Complex numbers are ranked
by modulus.
"""


@dataclass(frozen=True, eq=False)
class Null(Displayed):
    """Draws of one shape: sorted values of each statistic (draws,), and the expected frequency of
    each verdict.
    """

    draws: int
    values: Mapping[str, np.ndarray]
    shares: Mapping[str, float]  # of the verdicts, and "real", "positive leader"
    __repr__ = short_repr

    def quantile(self, name: str, head: HeadNumbers) -> float:
        """Return the quantile of a head's number among the draws, strictly between 0 and 1. Equal
        draws count half.

        (draws below + half of those equal + 1/2) / (draws + 1): uniform for a head that is itself
        drawn from the null.
        """
        value, values = statistic(name, head), self.values[name]
        if np.isnan(value) or len(values) == 0:
            return float("nan")
        below, not_above = (
            np.searchsorted(values, value, "left"),
            np.searchsorted(values, value, "right"),
        )
        return float((below + not_above + 1) / 2 / (len(values) + 1))


def statistic(name: str, head: HeadNumbers) -> float:
    """Return the number for the ranking, without the norms of the factors."""
    size = getattr(head, STATISTICS[name]) if STATISTICS[name] else 1.0
    value = getattr(head, name)
    return (
        float(abs(value) if isinstance(value, complex) else value) / size
        if size > 0
        else float("nan")
    )


def null_of(
    d: int, r: int, k: int, *, draws: int = 200, rng: int | np.random.Generator = 0
) -> Null:
    """Return the null of heads with B (d, r), C (r, d), Q and K (k, d). For an integer `rng` it is
    cached.
    """
    if draws < 1:
        raise ValueError(
            f"A null needs one draw or more, got null={draws}. 200 tell quantiles to 3 %."
        )
    if isinstance(rng, np.random.Generator):
        return _draw(d, r, k, draws, rng)
    return _remembered(d, r, k, draws, int(rng))


@lru_cache(maxsize=64)
def _remembered(d: int, r: int, k: int, draws: int, seed: int) -> Null:
    if seed < 0:
        raise ValueError(f"rng must be 0 or a positive integer, or a numpy Generator, got {seed}.")
    return _draw(d, r, k, draws, np.random.default_rng([seed, d, r, k]))


def _draw(d: int, r: int, k: int, draws: int, rng: np.random.Generator) -> Null:
    heads = in_parallel(
        lambda stream: head_numbers(draw_head(d, r, k, rng=stream)), rng.spawn(draws)
    )
    values = {name: np.sort([statistic(name, head) for head in heads]) for name in STATISTICS}
    real = float(np.mean([is_real(head) for head in heads]))
    # -B and -Q are as likely as B and Q: half of the real leading eigenvalues are positive, half of
    # these with positive score
    shares = {
        "good triple": real / 4,
        "positive": real / 4,
        "negative": real / 2,
        "complex": 1 - real,
        "zero": 0.0,
        "real": real,
        "positive leader": real / 2,
    }
    return Null(
        draws, {name: of_name[~np.isnan(of_name)] for name, of_name in values.items()}, shares
    )


def draw_head(d: int, r: int, k: int, *, rng: np.random.Generator) -> Reduced:
    """Return the small matrices of a head whose Q, K, B, C have independent standard normal
    entries.
    """
    R, r_small = (_triangle(d, r, rng), r) if r < d else (rng.normal(size=(d, r)), d)
    inside = rng.normal(size=(r, r_small))  # C U
    outside = _triangle(d - r, r, rng).T if d - r >= r else rng.normal(size=(r, max(d - r, 0)))
    m = min(2 * k, d)
    both = _triangle(d, 2 * k, rng) if 2 * k < d else rng.normal(size=(d, 2 * k))
    frame = np.linalg.qr(rng.normal(size=(d, min(2, d))))[0][
        :m
    ]  # where a plane of the stream lies to W

    def place(u: np.ndarray) -> np.ndarray:
        # lengths and angle of real and imaginary part
        within = np.asarray(np.linalg.qr(np.stack([u.real, u.imag], axis=1), mode="r"))
        return frame @ (within[:, 0] + 1j * within[:, 1])

    return Reduced(
        d=d,
        T=R @ inside,
        rest=R @ outside,
        query=both[:, :k],
        key=both[:, k:],
        place=place,
        value_size=float(
            np.linalg.norm(R) * np.hypot(np.linalg.norm(inside), np.linalg.norm(outside))
        ),
        score_size=float(np.linalg.norm(both[:, :k]) * np.linalg.norm(both[:, k:])),
        token_square=float(d),
    )


def draw_like(weights: Weights, *, rng: np.random.Generator) -> Weights:
    """Return a random head: Gaussian factors with the shapes and Frobenius norms of those of one
    factored head.

    It has the law of `draw_head`, but in R^d, where a flow needs it.
    """
    if weights.heads != 1 or not weights.is_factored:
        raise ValueError("A random head is drawn like one head with factors B and C of V.")

    def draw(given: np.ndarray) -> np.ndarray:
        drawn = rng.normal(size=given.shape)
        return drawn * (np.linalg.norm(given) / np.linalg.norm(drawn))

    return Weights(
        Q=draw(weights.Q[0]),
        K=draw(weights.K[0]),
        V=(draw(weights.V[0][0]), draw(weights.V[1][0])),
    )


def in_parallel(
    function: Callable[[Any], HeadNumbers], things: Sequence[Any], progress: Progress | None = None
) -> list[HeadNumbers]:
    """Apply a function to each thing on all threads. BLAS uses one thread each: two are slower for
    such small matrices.
    """
    progress, found = as_progress(progress), []
    with one_blas_thread():
        for one in pool().map(function, things):
            found.append(one)
            progress(len(found) / len(things))
    return found


def _triangle(d: int, r: int, rng: np.random.Generator) -> np.ndarray:
    """Draw R (r, r) of a Gaussian matrix (d, r) = U R, r <= d.

    It is normal above the diagonal, and chi with d, d - 1, ... degrees of freedom on it.
    """
    R = np.triu(rng.normal(size=(r, r)), 1)
    R[np.diag_indices(r)] = np.sqrt(rng.chisquare(d - np.arange(r)))
    return R
