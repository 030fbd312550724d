"""Several heads in the form that their limit is computed in.

    x_i' = sum_h v_h sum_j P^h_ij x_j,      P^h_ij = softmax_j( x_i^T M_h x_j ),      v_h > 0

Heads with equal scores are one, with the sum of their V; heads with V = 0 do nothing. What is not
of this form is refused by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from attnlab.engine.coordinates import Coordinates, choose_coordinates
from attnlab.limits.problem import Refused, check_form, staying_equal
from attnlab.limits.products import score_matrices, sum_of
from attnlab.types import Dynamics, Weights


@dataclass(frozen=True, eq=False)
class HeadsProblem:
    """What the integrator, the frozen flow and the certificate need to know."""

    dynamics: Dynamics  # as given
    coordinates: (
        Coordinates  # what the integrator runs: the user's coordinates, beta inside the scores
    )
    v: np.ndarray  # (H,): of the heads with different scores
    M: np.ndarray  # (H, d, d)
    same_head: np.ndarray  # (h,): which of them each given head is; -1 where V_h = 0
    same_as: np.ndarray  # (n,): the first of the tokens that stay equal to this one for ever

    @property
    def rate(self) -> float:
        """v, the growth rate of everything."""
        return float(self.v.sum())

    @property
    def parts(self) -> tuple[Fraction, ...]:
        """v_h as exact numbers: whether two tokens have the same limit is a question about their
        sums.
        """
        return tuple(Fraction(float(one)) for one in self.v)

    @property
    def tokens(self) -> np.ndarray:
        """The different tokens: the first of each set of equal ones."""
        return np.unique(self.same_as)

    @property
    def bonus(self) -> np.ndarray:
        """ln of how many tokens each different one stands for: what that adds to its scores."""
        return np.log(np.bincount(self.same_as, minlength=len(self.same_as))[self.tokens])


def has_different_scores(weights: Weights) -> bool:
    """Whether heads that do something have different scores, so that they are not one head."""
    return weights.heads > 1 and len(_merged(weights)) > 1


def _merged(weights: Weights) -> list[tuple[list[int], np.ndarray]]:
    """(heads with equal scores, the sum of their V), without heads that do nothing."""
    M, V = score_matrices(weights), weights.full_V
    found: list[list[int]] = []
    for h in range(weights.heads):
        if not V[h].any():
            continue
        for heads in found:
            if np.array_equal(M[h], M[heads[0]]):
                heads.append(h)
                break
        else:
            found.append([h])
    totals = [(heads, sum_of(V[heads])) for heads in found]
    return [one for one in totals if one[1].any()]


def make_heads_problem(dynamics: Dynamics, x0: np.ndarray) -> HeadsProblem:
    """The HeadsProblem of one start x0 (n, d), or Refused."""
    v, M, same_head = read_heads(dynamics)
    d = len(M[0])
    identity = np.tile(np.eye(d), (len(v), 1, 1))
    moved = dataclasses.replace(
        dynamics, weights=Weights(Q=identity, K=M, V=v[:, None, None] * identity), beta=1.0
    )
    return HeadsProblem(
        dynamics, choose_coordinates(moved, "x"), v, M, same_head, staying_equal(dynamics, x0)
    )


def read_heads(dynamics: Dynamics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(v (H,), M (H, d, d) with beta inside, for each given head the number of its scores), or
    Refused.
    """
    check_form(dynamics)
    merged = _merged(dynamics.weights)
    count = len(merged)
    if dynamics.dt is not None:
        raise Refused(
            _refusal(
                count,
                "in residual layers",
                "Limits of several heads are computed in continuous time, without dt",
            )
        )
    if dynamics.mask.is_causal:
        raise Refused(
            _refusal(
                count,
                "under the causal mask",
                'Limits of several heads are computed for mask="full"',
            )
        )
    weights = dynamics.weights
    v, identity = [], np.eye(weights.d)
    for heads, V in merged:
        what, has = (
            f"Head{'s' if len(heads) > 1 else ''} {_listed(heads)}",
            "have" if len(heads) > 1 else "has",
        )
        if not np.array_equal(V, V[0, 0] * identity):
            raise Refused(
                _refusal(
                    count,
                    "with their own V_h",
                    f"{what} {has} a V that is not a multiple of I. Limits of several heads are"
                    " computed for V_h = v_h I, v_h > 0; for other V_h z need not converge unless"
                    " they commute",
                )
            )
        if V[0, 0] < 0.0:
            raise Refused(
                _refusal(
                    count,
                    "with a negative V_h",
                    f"{what} {has} V = {V[0, 0]:.4g} I. Limits of several heads are computed for"
                    " V_h = v_h I, v_h > 0: a head with v_h < 0 pushes a token away from its"
                    " leader",
                )
            )
        v.append(V[0, 0])
    same_head = np.full(weights.heads, -1)
    for number, (heads, _) in enumerate(merged):
        same_head[heads] = number
    return (
        np.array(v),
        dynamics.beta * score_matrices(weights)[[heads[0] for heads, _ in merged]],
        same_head,
    )


def _listed(heads: Sequence[int]) -> str:
    return ", ".join(map(str, heads))


def _refusal(count: int, where: str, what: str) -> str:
    return f"{count} heads with different scores Q^T K {where}: no certificate is known. {what}."
