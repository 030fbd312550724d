"""Q, K and V with independent Gaussian entries, for any number of heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.capacity import check_memory
from attnlab.starts import as_generator, positive_number, whole_number
from attnlab.types import Weights
from attnlab.weights import family


@family("gaussian")
def gaussian(
    d: int,
    heads: int = 1,
    k: int | None = None,
    rank: int | None = None,
    scale: float = 1.0,
    *,
    rng: Any = None,
) -> Weights:
    """Q, K (h, k, d) and V (h, d, d) with independent normal entries of standard deviation scale /
    sqrt(d); by default k = d.

    With scale = 1 the eigenvalues of one V fill the unit disc as d grows (circular law). rank = r
    keeps V as factors B (h, d, r) and C (h, r, d) of iid normal entries, scaled so that the entries
    of B C have that standard deviation too.
    """
    d, heads = whole_number("d", d), whole_number("heads", heads)
    k = d if k is None else whole_number("k", k)
    deviation = positive_number("scale", scale) / np.sqrt(d)
    r = d if rank is None else whole_number("rank", rank)
    what = f"{heads} heads in dimension d = {d}" if heads > 1 else f"Matrices of dimension d = {d}"
    check_memory(what, 4 * heads * d * (k + r), "Choose a smaller d, or fewer heads.")
    rng = as_generator(rng)
    Q = deviation * rng.standard_normal((heads, k, d))
    K = deviation * rng.standard_normal((heads, k, d))
    if rank is None:
        return Weights(Q=Q, K=K, V=deviation * rng.standard_normal((heads, d, d)))
    if r > d:
        raise ValueError(f"rank must be at most d = {d}, got {r}. Leave rank out for a full V.")
    # an entry of B C is a sum of r products: variance r (side^2)^2 = deviation^2
    side = np.sqrt(deviation / np.sqrt(r))
    return Weights(
        Q=Q,
        K=K,
        V=(side * rng.standard_normal((heads, d, r)), side * rng.standard_normal((heads, r, d))),
    )
