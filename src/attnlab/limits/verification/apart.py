"""That no token attends to another group again: Abel's test of all gaps between groups, from what a
limit stores.

    x_i(s) = f_i + sum_a v_a (c_a e^{lambda_a s} + offset) / lambda_a,      |offset| <= radius_a e^{|lambda_a| s}

with the eigenvectors v_a of V that are stored, the discs (c, radius) of the group of i, and f_i
what V does not move. Under the causal mask offsets from the first token of the group stay within
radius_ia e^{g_a s}, with a slower growth g_a (SLOWER) and a radius of each token. Written apart
from limits/groups.py, with tokens in place of reduced coordinates, and in NumPy's longest floating
point numbers.
"""

from __future__ import annotations

import math

import numpy as np

from attnlab.limits.problem import EPSILON, one_head
from attnlab.limits.products import score_matrices
from attnlab.limits.verification.gap_terms import Gap
from attnlab.limits.verification.record import require
from attnlab.types import Limit

LEAST = 50.0
"""Margins are at least this, plus log n and log of the largest coordinate: other groups have
weights below e^-50.
"""

SLOWER = (0.5, 0.1)
"""Under the causal mask offsets are bounded with this growth, beside the leading rate, where they
grow more slowly. Either may show it."""

KERNEL = 1e-9
"""Rates below this part of the largest do not move tokens."""


def check_apart(limit: Limit, span: float) -> None:
    """Check that no token attends to another group for the time `span` after the state, which may
    be infinite.
    """
    values, one = limit.state.values, one_head(limit.dynamics)
    weights, group, tokens = one.weights, values["group"][0], np.unique(values["same_as"])
    x0 = limit.x0[tokens]
    rates, vectors, u = values["rates"], values["vectors"], values["u"][0]
    moves = np.abs(rates) > KERNEL * np.abs(rates).max()
    require(
        bool(moves.all()) or not weights.is_factored,
        "An eigenvalue of V in factors is 0: offsets along it are not bounded.",
    )
    rates, vectors, u = rates[moves], vectors[:, moves], u[:, moves]
    V = weights.full_V[0]
    start = np.linalg.lstsq(vectors * rates, (x0 @ V.T).T.astype(complex), rcond=None)[0]
    fixed = (x0 - (vectors @ start).T.real).astype(np.longdouble)
    columns = (vectors / rates).astype(np.clongdouble)
    M = (one.beta * score_matrices(weights)[0]).astype(np.longdouble)
    product, lead = columns.T @ M @ columns, float(rates.real.max())
    # eigenvectors are known to this part, and products of which large terms cancel no better
    part = 8.0 * EPSILON * len(M) * float(values["condition"])
    reach, keys = np.abs(columns), np.abs(M) @ np.abs(columns)
    off = part * (reach.T @ keys)
    blur = float(values["tolerance"][0]) * np.abs(u).max(axis=0) + 2.0 * math.exp(-LEAST)
    counts = np.unique(values["same_as"], return_counts=True)[1]
    mu = 0.5 * lead
    margin = (
        max(LEAST, 4.0 * float(np.abs(rates).max()) / mu)
        + math.log(max(float(counts.sum()), 2.0))
        + max(math.log(float(np.abs(u).max())), 0.0)
    )
    is_causal = one.mask.is_causal
    if is_causal:
        tried = [np.minimum(np.abs(rates), np.maximum(rates.real, part * lead)) for part in SLOWER]
        ways = [(_chains(u, group, np.abs(rates) / growth, blur), growth) for growth in tried]
    else:
        excess = np.maximum(np.abs(rates) - lead, 0.0)
        require(
            math.isfinite(span) or not excess.any(),
            "Offsets may outgrow the tokens, and the limit is given for ever.",
        )
        grown = (
            np.exp(np.minimum(excess * span, 600.0)) if math.isfinite(span) else np.ones(len(rates))
        )
        require(
            bool((grown < math.exp(600.0)).all()),
            "Offsets outgrow the range of numbers before the horizon.",
        )
        of_group = [_disc(u[group == g], blur, grown) for g in range(int(group.max()) + 1)]
        ways = [([of_group[g] for g in group], np.minimum(np.abs(rates), lead))]
    for i in range(len(u)):
        seen = range(i) if is_causal else range(len(u))
        for k in (k for k in seen if group[k] != group[i]):
            still = fixed[i] - fixed[k]
            gaps = [
                Gap(
                    rates,
                    growth,
                    discs[i][0],
                    discs[i][0] - discs[k][0],
                    discs[i][1],
                    discs[i][1] + discs[k][1],
                    product,
                    off,
                    columns.T @ (M @ still),
                    (fixed[i] @ M) @ columns,
                    float(fixed[i] @ M @ still + math.log(counts[i]) - math.log(counts[k])),
                    margin,
                    mu,
                )
                for discs, growth in ways
            ]
            require(
                any(gap.stays_positive() for gap in gaps)
                if not is_causal
                else any(gap.is_open(span) for gap in gaps),
                f"It does not follow that token {int(tokens[i])} never attends to token "
                f"{int(tokens[k])}, which is in another group.",
            )


def _chains(
    u: np.ndarray, group: np.ndarray, factor: np.ndarray, blur: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(centre (r,), radius (r,)) of each token under the causal mask, where a token is moved by
    earlier ones of its group only: the centre is the first of them.
    """
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for i, own in enumerate(u):
        earlier = [j for j in range(i) if group[j] == group[i]]
        centre = u[earlier[0]] if earlier else own
        radius = np.abs(own - centre)
        for j in earlier:
            radius = np.maximum(radius, factor * found[j][1])
        found.append((centre.astype(np.clongdouble), radius + blur))
    return found


def _disc(
    members: np.ndarray, blur: np.ndarray, grown: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(centre (r,), radius (r,) as large as it becomes beside e^{lead s}) of the coordinates (n, r)
    of a group.
    """
    low = members.real.min(axis=0) + 1j * members.imag.min(axis=0)
    high = members.real.max(axis=0) + 1j * members.imag.max(axis=0)
    centre = (low + high) / 2.0
    return centre.astype(np.clongdouble), (np.abs(members - centre).max(axis=0) + blur) * grown
