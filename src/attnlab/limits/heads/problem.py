"""Several heads in the form that their limit is computed in.

    x_i' = sum_h v_h sum_j P^h_ij x_j,      P^h_ij = softmax_j( x_i^T M_h x_j ),      v_h > 0

Heads with equal scores are one, with the sum of their V; heads with V = 0 do nothing. What is not
of this form is refused by name.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attnlab.engine.coordinates import Coordinates, choose_coordinates
from attnlab.limits.problem import check_form, staying_equal
from attnlab.limits.products import score_matrices, sum_of
from attnlab.limits.settings import LEAST_MARGIN
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
    M_error: np.ndarray  # (H, d, d): 0 where scores are taken as given
    same_head: np.ndarray  # (h,): which of them each given head is; -1 where V_h = 0
    same_as: np.ndarray  # (n,): the first of the tokens that stay equal to this one for ever

    @property
    def total(self) -> float:
        """v, the sum of the v_h."""
        return float(self.v.sum())

    @property
    def rate(self) -> float:
        """The growth rate of everything: v, and log(1 + dt v) / dt in residual layers."""
        dt = self.dynamics.dt
        return self.total if dt is None else math.log1p(dt * self.total) / dt

    fastest = rate

    @property
    def mu(self) -> float:
        """The rate of the margin, G e^{mu s}."""
        return self.rate / 2.0

    def shrunk(self, t: float) -> float:
        """What an error is multiplied by in e^{-tW} x."""
        return math.exp(-self.rate * t)

    @property
    def basis(self) -> np.ndarray:
        """F: all of R^d, (d, d)."""
        return np.eye(self.M.shape[1])

    @property
    def is_causal(self) -> bool:
        """False: every token sees all."""
        return False

    def size_of(self, x: np.ndarray) -> np.ndarray:
        """What errors of tokens x (m, d) are relative to: the largest of all coordinates, (d,); 0
        along those that are 0 for all.

        All grow at the rate v, so the integrator gives them one tolerance together.
        """
        return np.where(x.any(axis=0), np.abs(x).max(initial=0.0), 0.0)

    def margin_at(self, log_size: float) -> float:
        """G: so large that what leaks is below e^{-50} in absolute terms, whatever the size of the
        tokens.
        """
        return (
            LEAST_MARGIN
            + math.log(max(len(self.same_as), 2))
            + max(log_size, 0.0)
            + layers_margin(self.dynamics.dt, self.total)
        )

    def unwound(self, x: np.ndarray, t: float) -> np.ndarray:
        """e^{-tW} x of tokens or limits, (..., d)."""
        return np.asarray(x * np.exp(-self.rate * t))

    def why_open(self, leader: np.ndarray) -> str:
        """What stands in the way of a closed form for these leaders."""
        return "no classes"

    def describe_values(self) -> tuple[str, str]:
        """V_h and the growing directions in words, for the text of a certificate."""
        shown = ", ".join(f"{v:.6g}" for v in self.v[:8])
        d = self.M.shape[1]
        return (
            f"v_h I, v_h = {shown}{', ...' if len(self.v) > 8 else ''}",
            f"k = {d} of {d}, all with the rate v = {self.rate:.6g}",
        )

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


def layers_margin(dt: float | None, v: float) -> float:
    """What G is larger by in residual layers, where softmax leaks a whole layer at a time."""
    return 0.0 if dt is None else 3.0 + 2.0 * math.log1p(dt * v)


def has_different_scores(weights: Weights) -> bool:
    """Whether heads that do something have different scores, so that they are not one head."""
    return weights.heads > 1 and len(merged(weights)) > 1


def is_plain(dynamics: Dynamics) -> bool:
    """Whether all tokens see all and all V_h are v_h I with v_h > 0: what classes of leaders are
    for.
    """
    identity = np.eye(dynamics.weights.d)
    return not dynamics.mask.is_causal and all(
        V[0, 0] > 0.0 and np.array_equal(V, V[0, 0] * identity) for _, V in merged(dynamics.weights)
    )


def merged(weights: Weights) -> list[tuple[list[int], np.ndarray]]:
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


def make_heads_problem(
    dynamics: Dynamics, x0: np.ndarray, M_error: np.ndarray | None = None
) -> HeadsProblem:
    """The HeadsProblem of one start x0 (n, d), or Refused. M_error: of beta Q^T K, (h, d, d)."""
    V, M, M_error, same_head = read_heads(dynamics, M_error)
    v, d = V[:, 0, 0], len(M[0])
    identity = np.tile(np.eye(d), (len(v), 1, 1))
    moved = dataclasses.replace(
        dynamics, weights=Weights(Q=identity, K=M, V=v[:, None, None] * identity), beta=1.0
    )
    return HeadsProblem(
        dynamics,
        choose_coordinates(moved, "x"),
        v,
        M,
        M_error,
        same_head,
        staying_equal(dynamics, x0),
    )


def vary(problem: Any, sign: float) -> Any:
    """The problem with scores moved by what computing them may have been off by, to one side or the
    other; itself where they are taken as given.
    """
    if not problem.M_error.any():
        return problem
    sides = np.random.default_rng(24).choice([-1.0, 1.0], problem.M.shape)
    M = problem.M + sign * sides * problem.M_error
    coordinates = problem.coordinates
    weights = coordinates.dynamics.weights
    moved = dataclasses.replace(
        coordinates.dynamics, weights=Weights(Q=weights.Q, K=M, V=weights.V)
    )
    return dataclasses.replace(problem, M=M, coordinates=coordinates._replace(dynamics=moved))


def read_heads(
    dynamics: Dynamics, M_error: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(V (H, d, d), M (H, d, d) with beta inside, its error, for each given head the number of its
    scores), or Refused. M_error (h, d, d): that of the given heads; by default 0.
    """
    check_form(dynamics)
    kept = merged(dynamics.weights)
    weights = dynamics.weights
    same_head = np.full(weights.heads, -1)
    for number, (heads, _) in enumerate(kept):
        same_head[heads] = number
    V, first = np.stack([V for _, V in kept]), [heads[0] for heads, _ in kept]
    M = dynamics.beta * score_matrices(weights)[first]
    return V, M, np.zeros(M.shape) if M_error is None else M_error[first], same_head


def refusal(count: int, where: str, what: str) -> str:
    """The sentence that refuses several heads: where, and what does not hold."""
    return f"{count} heads with different scores Q^T K {where}: no certificate is known. {what}."
