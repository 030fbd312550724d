"""Which tokens are drawn alike: by the limit they go to, as far as the end of the run shows it.

Theory says where to look. For V = I whole tokens z_i converge to points; for a mixed spectrum only
their part in the unstable subspace (Re eigenvalue > 0) does; for a simple leading eigenvalue at
first only that one coordinate. Hyperplanes are at most three, and none are known with a
feed-forward layer. The first of these in which the last tokens form groups gives the colours.
Tokens that form none are coloured by where they start, along the widest direction, so that
neighbours look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.colors import to_rgb

from attnlab.analysis.clusters import cluster_labels
from attnlab.dynamics import attention
from attnlab.exponential import spectral_projector
from attnlab.render.style import MARKERS, PALETTE, TOKENS
from attnlab.types import Trajectory

MOST_TOKENS = 2000
"""Beyond this, all pairs of tokens take longer than the picture is worth, and single tokens are not
seen anyway.
"""

MOST_HYPERPLANES = 3
"""The theorem allows three parallel hyperplanes at most: more groups are not what it speaks of."""

MOST_COORDINATES = 256
"""Beyond this, spectral projectors take longer than the picture is worth."""


@dataclass(frozen=True, eq=False)
class Groups:
    """How tokens are drawn: colours (n, 3), markers (n,), whether they lead (n,), labels (n,) or
    None, and the words for it.

    normal (d,) is perpendicular to the hyperplanes, where the groups are hyperplanes.
    """

    colours: np.ndarray
    markers: np.ndarray
    leaders: np.ndarray
    labels: np.ndarray | None
    words: str
    normal: np.ndarray | None = None


def group_tokens(run: Trajectory) -> Groups:
    """The Groups of a single run."""
    leaders = _leaders(run)
    for what, rank, first, last, normal in _projections(run):
        labels = _clusters(first, last, rank)
        if labels is not None and (normal is None or labels.max() < MOST_HYPERPLANES):
            colours = np.array([to_rgb(PALETTE[k % len(PALETTE)]) for k in labels])
            markers = np.array([MARKERS[k // len(PALETTE)] for k in labels])
            words = f"Colour: {what} at the end ({labels.max() + 1} groups)."
            return Groups(colours, markers, leaders, labels, words, normal)
    return Groups(
        _colours_by_start(run),
        np.full(run.n, MARKERS[0]),
        leaders,
        None,
        "Colour: place at the start.",
    )


def _colours_by_start(run: Trajectory) -> np.ndarray:
    """Colours (n, 3) by the order of the first tokens along their widest direction."""
    start = run.scaled_x()[0][0]  # its scale does not matter
    centred = start - start.mean(axis=0)
    along = centred @ np.linalg.svd(centred, full_matrices=False)[2][0]
    if along[np.argmax(np.abs(along))] < 0:  # a singular vector's sign is arbitrary: fix it
        along = -along
    order = np.argsort(np.argsort(along, kind="stable"))
    shares = order / max(run.n - 1, 1)
    return np.asarray(TOKENS(shares))[:, :3]


def _projections(
    run: Trajectory,
) -> Iterator[tuple[str, int, np.ndarray, np.ndarray, np.ndarray | None]]:
    """Where the theory lets limits appear: words for a group there, the dimension, the first and
    the last points (n, k), the normal of hyperplanes.
    """
    if run.n > MOST_TOKENS or len(run.times) < 2:
        return
    if run.dynamics.geometry.is_unit_sphere:
        yield "cluster", run.d - 1, run.x[0], run.x[-1], None
        return
    try:
        z = run.rescaled
    except (OverflowError, ValueError):
        return
    yield "cluster", run.d, z[0], z[-1], None
    if run.d > MOST_COORDINATES:
        return
    V = run.dynamics.weights.total.dense()
    projector = spectral_projector(V)
    rank = run.d if projector is None else round(np.trace(projector))
    has_hyperplanes = run.dynamics.feedforward.is_none
    if projector is not None and 0 < rank < run.d and (rank > 1 or has_hyperplanes):
        words, normal = "limit in the unstable subspace", None
        if rank == 1:
            words, normal = "hyperplane", np.linalg.svd(projector)[2][0]
        yield words, rank, z[0] @ projector.T, z[-1] @ projector.T, normal
    values, vectors = np.linalg.eig(V.T)
    order = np.argsort(-values.real)
    top = values[order[0]]
    if (
        has_hyperplanes
        and run.d > 1
        and top.imag == 0
        and top.real > 0
        and values[order[1]].real < (1 - 1e-6) * top.real
    ):
        dual = vectors[:, order[:1]].real
        yield "hyperplane", 1, z[0] @ dual, z[-1] @ dual, dual[:, 0]


def _clusters(first: np.ndarray, last: np.ndarray, rank: int) -> np.ndarray | None:
    """Labels (n,) of the groups of `last`, largest group 0; None unless there are between two and
    n/2 of them.

    Tokens are linked within 1 % of the first size, or a fifth of the usual gap n^{-1/rank} of n
    points if that is less: points thrown at random then keep more than n/2 groups, so chance is not
    seen as clusters.
    """
    n = len(last)
    size = np.linalg.norm(np.ptp(first, axis=0))
    if n < 4 or not size > 0:
        return None
    labels = cluster_labels(last, min(0.01, 0.2 * n ** (-1.0 / max(rank, 1))) * size)
    names, counts = np.unique(labels, return_counts=True)
    if not 2 <= len(names) <= min(n // 2, len(PALETTE) * len(MARKERS)):
        return None
    # ties go by the smallest token number: the same run gives the same colours
    order = sorted(
        range(len(names)), key=lambda k: (-counts[k], int(np.argmax(labels == names[k])))
    )
    place = np.empty(len(names), dtype=int)
    place[order] = np.arange(len(names))
    return place[np.searchsorted(names, labels)]


def _leaders(run: Trajectory) -> np.ndarray:
    """Whether (n,) a token has more than half of some token's attention at the end, in some head.

    Its own counts: a vertex of a polytope that no one else goes to leads itself.
    """
    if run.n > MOST_TOKENS:
        return np.zeros(run.n, dtype=bool)
    if not run.dynamics.kernel.rows_sum_to_one:  # softmax has the shares
        run = replace(run, dynamics=run.dynamics.replace(kernel="softmax"))
    return np.any(attention(run, -1) > 0.5, axis=(0, 1))  # of (h, n, n)
