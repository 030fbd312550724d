"""What is solved in closed form with powers of the time: the equation, or the reason why not.

    x_i' = sum_h V_h sum_j P^h_ij x_j,      P^h_ij = softmax_j( x_i^T M_h x_j )

Either all V_h are diagonal, with any mask and scores that differ; or their sum is diagonal to the last
digit; or there is one head and V = D + N with D diagonal, N nilpotent, and N_ab = 0 where D_aa and
D_bb differ: Jordan blocks.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from attnlab.engine.coordinates import Coordinates, choose_coordinates
from attnlab.limits.closed.forms import (
    Form,
    coordinate_form,
    exact_diagonal,
    exponential,
    jordan_form,
    own_form,
)
from attnlab.limits.heads.classes import in_classes
from attnlab.limits.heads.problem import read_heads, refusal
from attnlab.limits.problem import Refused, check_form, one_head, staying_equal
from attnlab.limits.products import score_matrices
from attnlab.limits.settings import LEAST_MARGIN
from attnlab.types import Dynamics, Weights

MOST_TOKENS = 400
"""Different tokens: the closed forms take a matrix of all pairs for each exponent and power."""

MOST_COORDINATES = 64
"""For Jordan blocks: their powers are found in rational numbers."""

LEAK_MARGIN = 3.0
"""(G - 1) mu is at least this many times |V|: see docs/limits.md, Lemma 2 of these flows."""


@dataclass(frozen=True, eq=False)
class ClosedProblem:
    """What the integrator, the closed form and the certificate need to know."""

    dynamics: Dynamics  # as given
    coordinates: Coordinates  # the user's, with a tolerance for each rate
    V: np.ndarray  # (H, d, d): of the heads with different scores
    M: np.ndarray  # (H, d, d), beta inside
    M_error: np.ndarray  # (H, d, d): 0 where scores are taken as given
    same_head: np.ndarray  # (h,): which of them each given head is; -1 where V_h = 0
    same_as: np.ndarray  # (n,): the first of the tokens that stay equal to this one for ever

    @cached_property
    def growth(self) -> np.ndarray:
        """The rates of e^{tW}, W = sum of V_h, (d,): sums that are rounded once."""
        diagonals = np.diagonal(self.V, axis1=1, axis2=2).T.tolist()
        return np.array([float(sum(map(Fraction, one))) for one in diagonals])

    @property
    def fastest(self) -> float:
        """The largest of them."""
        return float(self.growth.max())

    @property
    def mu(self) -> float:
        """The rate of the margin, G e^{mu s}: half the smallest positive rate."""
        return 0.5 * float(self.growth[self.growth > 0.0].min())

    @property
    def basis(self) -> np.ndarray:
        """F: the growing coordinates, (d, k)."""
        return np.eye(len(self.growth))[:, self.growth > 0.0]

    @property
    def is_causal(self) -> bool:
        """Whether row i sees the tokens j <= i only."""
        return bool(self.dynamics.mask.is_causal)

    @property
    def is_jordan(self) -> bool:
        """Whether V has Jordan blocks."""
        return len(self.V) == 1 and has_blocks(self.V[0])

    @property
    def is_coupled(self) -> bool:
        """Whether several heads mix coordinates."""
        return len(self.V) > 1 and is_mixing(self.V)

    @property
    def tokens(self) -> np.ndarray:
        """The different tokens: the first of each set of equal ones."""
        return np.unique(self.same_as)

    @property
    def copies(self) -> np.ndarray:
        """How many equal tokens each different one stands for, (m,)."""
        return np.bincount(self.same_as, minlength=len(self.same_as))[self.tokens]

    @property
    def bonus(self) -> np.ndarray:
        """ln of the copies: what they add to scores."""
        return np.log(self.copies)

    @property
    def strength(self) -> float:
        """|V|: no velocity is larger than this times the largest coordinate of all tokens."""
        return float(np.abs(self.V).sum(axis=(0, 2)).max())

    def size_of(self, x: np.ndarray) -> np.ndarray:
        """What errors of tokens x (m, d) are relative to: the largest of all coordinates with one
        rate, (d,).
        """
        group, largest = self.coordinates.group, np.abs(x).max(axis=0, initial=0.0)
        return np.array([largest[group == number].max() for number in group])

    def margin_at(self, log_size: float) -> float:
        """G: so large that what leaks moves no token of the state by more than 6 e^{-50}."""
        large = LEAST_MARGIN + math.log(max(len(self.same_as), 2)) + max(log_size, 0.0)
        return max(large, 1.0 + LEAK_MARGIN * self.strength / self.mu)

    def unwound(self, x: np.ndarray, t: float) -> np.ndarray:
        """e^{-tW} x of tokens or limits, (..., d)."""
        return np.asarray(x @ self._back(t).T)

    def shrunk(self, t: float) -> float:
        """What an error along growing coordinates is multiplied by at most in e^{-tW} x."""
        return float(np.abs(self._back(t)[self.growth > 0.0]).sum(axis=1).max())

    def _back(self, t: float) -> np.ndarray:
        if self.is_jordan:
            return exponential(self.V[0], -t)
        with np.errstate(over="ignore"):
            return np.diag(np.exp(-self.growth * t))

    def form(self, leader: np.ndarray) -> Form | None:
        """The closed form for leaders (H, m), if there is one."""
        if self.is_jordan:
            return jordan_form(leader, self.V[0])
        if self.is_coupled:
            return own_form(leader, self.V)
        return coordinate_form(leader, np.diagonal(self.V, axis1=1, axis2=2))

    def why_open(self, leader: np.ndarray) -> str:
        """What stands in the way of a closed form for these leaders."""
        form = self.form(leader)
        if self.is_coupled and form is None and in_classes(leader):
            return "between classes"
        return "no limit" if form is not None and not form.converges else "no classes"

    def describe_values(self) -> tuple[str, str]:
        """V_h and the growing directions in words, for the text of a certificate."""
        rates = ", ".join(f"{rate:.6g}" for rate in -np.sort(-self.growth)[:8])
        what = (
            "Jordan blocks D + N"
            if self.is_jordan
            else f"{'of' if self.is_coupled else 'diagonal in'} {len(self.V)} heads"
            + (", with a diagonal sum" if self.is_coupled else "")
            + (", causal mask" if self.is_causal else "")
        )
        k, d = self.basis.shape[1], len(self.growth)
        return what, f"k = {k} of {d}; rates {rates}{', ...' if d > 8 else ''}"


def is_mixing(V: np.ndarray) -> bool:
    """Whether some of V (H, d, d) is not diagonal."""
    return bool((V * (1.0 - np.eye(V.shape[1]))).any())


def has_blocks(V: np.ndarray) -> bool:
    """Whether V = D + N with D diagonal, N nilpotent and not 0, and N_ab = 0 where D_aa and D_bb
    differ.
    """
    D = np.diagonal(V)
    N = V - np.diag(D)
    if not N.any() or (N[D[:, None] != D[None, :]] != 0.0).any():
        return False
    reached = pattern = (N != 0.0).astype(float)
    for _ in range(len(V)):  # a path longer than d would turn in a circle
        reached = (reached @ pattern > 0.0).astype(float)
    return not reached.any()


def is_one_head_with_blocks(dynamics: Dynamics) -> bool:
    """Whether the equation is one head in R^d with Jordan blocks that are given exactly."""
    weights = dynamics.weights
    if not dynamics.geometry.is_linear or weights.is_factored or weights.d > MOST_COORDINATES:
        return False
    try:
        return has_blocks(one_head(dynamics).weights.full_V[0])
    except Refused:
        return False


def make_block_problem(dynamics: Dynamics, x0: np.ndarray) -> ClosedProblem:
    """The ClosedProblem of one head with Jordan blocks, or Refused."""
    check_form(dynamics)
    if dynamics.dt is not None:
        raise Refused(
            "V has a Jordan block, in residual layers. Limits with Jordan blocks are computed in"
            " continuous time, without dt."
        )
    one = one_head(dynamics)
    V, M = one.weights.full_V, dynamics.beta * score_matrices(one.weights)
    acting = dynamics.weights.full_V.any(axis=(1, 2))
    return make_closed_problem(dynamics, x0, V, M, np.zeros(M.shape), np.where(acting, 0, -1))


def make_own_problem(
    dynamics: Dynamics, x0: np.ndarray, M_error: np.ndarray | None = None
) -> ClosedProblem:
    """The ClosedProblem of several heads with diagonal V_h, or Refused. M_error: of beta Q^T K, (h,
    d, d).
    """
    V, M, M_error, same_head = read_heads(dynamics, M_error)
    if dynamics.dt is not None:
        raise Refused(
            refusal(
                len(V),
                "in residual layers",
                "In layers, limits of several heads are computed for V_h = v_h I with v_h > 0 and no"
                " mask. For a mask or for other V_h take continuous time, without dt",
            )
        )
    if is_mixing(V) and exact_diagonal(V) is None:
        given = int(
            np.argmax(same_head == next(h for h in range(len(V)) if is_mixing(V[h : h + 1])))
        )
        raise Refused(
            refusal(
                len(V),
                "with their own V_h",
                f"Head {given} has a V that is not diagonal, nor is the sum of all V_h. Limits of"
                " several heads are computed for diagonal V_h, v_h I among them, and for V_h whose"
                " sum is diagonal to the last digit. So give tokens and weights in the eigenvectors"
                " of the sum, and set the first V_h to the diagonal sum minus the others",
            )
        )
    return make_closed_problem(dynamics, x0, V, M, M_error, same_head)


def make_closed_problem(
    dynamics: Dynamics,
    x0: np.ndarray,
    V: np.ndarray,
    M: np.ndarray,
    M_error: np.ndarray,
    same_head: np.ndarray,
) -> ClosedProblem:
    """The ClosedProblem for V, M (H, d, d) of the different heads, or Refused."""
    heads, d = len(V), V.shape[1]
    identity = np.tile(np.eye(d), (heads, 1, 1))
    moved = dataclasses.replace(dynamics, weights=Weights(Q=identity, K=M, V=V), beta=1.0)
    rates = np.diagonal(V, axis1=1, axis2=2)
    diagonal = dataclasses.replace(moved, weights=Weights(V=np.diag(rates.sum(axis=0))))
    coordinates = choose_coordinates(diagonal, "x")._replace(dynamics=moved)
    if heads > 1 and is_mixing(V):  # rounding of the largest coordinate comes to all others
        coordinates = coordinates._replace(group=np.zeros(d, np.int64))
    same_as = staying_equal(dynamics, x0)
    problem = ClosedProblem(dynamics, coordinates, V, M, M_error, same_head, same_as)
    if not (problem.growth > 0.0).any():
        raise Refused(
            f"No eigenvalue of {'V' if heads == 1 else 'the sum of the V_h'} has a positive real part,"
            " so nothing grows and attention need not become sharp."
            f"{' V has a Jordan block.' if problem.is_jordan else ''} Such limits are known for one"
            " head with V = 0, and where a Lyapunov function exists."
        )
    if len(problem.tokens) > MOST_TOKENS:
        raise Refused(
            f"Limits of this kind are computed for up to {MOST_TOKENS} different tokens, and there"
            f" are {len(problem.tokens)}. Take fewer tokens, or `simulate`."
        )
    return problem
