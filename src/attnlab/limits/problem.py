"""The equation in the form that its limit is computed in: one head, eigen-coordinates of V, scores
with beta inside.

    c_i' = rates * sum_j P_ij c_j,      P_ij = softmax_j( c_i^T M c_j )

Residual layers are the same with rates = log(1 + dt lambda) / dt. What is not of this form is
refused with the reason.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from attnlab.axes.together import plain_axes
from attnlab.engine.coordinates import Coordinates, block_matrix, choose_coordinates
from attnlab.limits.no_basis import say_why_no_basis
from attnlab.limits.products import score_matrices, sum_of
from attnlab.types import Dynamics, Weights

EPSILON = 2.0**-52
SAME_RATE = 1e-11
"""Exponents closer than this, relative to the largest rate, are merged where eigenvalues had to be
computed, and that is said.
"""

SAME_EXACT_RATE = 1e-15
"""The same where V is diagonal, and its eigenvalues are exact: sums of them are rounded, no
more.
"""


class Refused(Exception):
    """The limit of this equation is not within reach; the message says why, and what can be done
    instead.
    """


@dataclass(frozen=True, eq=False)
class Problem:
    """What the integrator, the frozen flow and the certificate need to know."""

    dynamics: Dynamics  # as given
    coordinates: Coordinates  # what the integrator runs: real eigen-coordinates y, x = basis y
    rates: np.ndarray  # (d,), complex where eigenvalues come in pairs: of the coordinates c
    M: np.ndarray  # (d, d) in the coordinates c
    from_real: np.ndarray | None  # (d, d) complex with c = from_real y; None: c = y
    is_unstable: np.ndarray  # (d,) of both y and c: growing coordinates, which span F
    same_as: np.ndarray  # (n,): the first of the tokens that stay equal to this one for ever
    M_error: np.ndarray  # (d, d): what rounding may have done to M
    condition: float  # of the eigenvectors, cond(basis)
    has_cleaned_rate: bool = False  # whether an eigenvalue that is almost 0 was set to 0

    @property
    def is_exact(self) -> bool:
        """Whether the user's coordinates are eigen-coordinates: nothing was computed, nothing
        rounded.
        """
        assert self.coordinates.basis is not None
        return bool(np.array_equal(self.coordinates.basis, np.eye(len(self.rates))))

    @property
    def same_rate(self) -> float:
        """The difference below which two exponents are taken as equal."""
        return (SAME_EXACT_RATE if self.is_exact else SAME_RATE) * self.clock

    def noise(self, x: np.ndarray) -> np.ndarray:
        """What rounding may have done to the eigen-coordinates y of tokens x (n, d): (d,), 0 where
        they are x itself.
        """
        assert self.coordinates.inverse is not None and self.coordinates.basis is not None
        if self.is_exact:
            return np.zeros(x.shape[1])
        spread = np.abs(self.coordinates.inverse) @ np.abs(x).max(axis=0)
        return 8.0 * EPSILON * self.condition * spread

    @property
    def basis(self) -> np.ndarray:
        """F: the eigenvectors of the growing coordinates, (d, k)."""
        assert self.coordinates.basis is not None
        return np.array(self.coordinates.basis[:, self.is_unstable])

    @property
    def tokens(self) -> np.ndarray:
        """The different tokens: the first of each set of equal ones."""
        return np.unique(self.same_as)

    @property
    def bonus(self) -> np.ndarray:
        """ln of how many tokens each different one stands for: what that adds to its scores."""
        return np.log(np.bincount(self.same_as, minlength=len(self.same_as))[self.tokens])

    def complexified(self, y: np.ndarray) -> np.ndarray:
        """Coordinates c of the real eigen-coordinates y, (..., d)."""
        return y if self.from_real is None else y @ self.from_real.T

    def realified(self, c: np.ndarray) -> np.ndarray:
        """Real eigen-coordinates y of the coordinates c, (..., d)."""
        return c if self.from_real is None else (c @ np.linalg.inv(self.from_real).T).real

    @property
    def is_complex(self) -> bool:
        """Whether the coordinates c are complex."""
        return self.from_real is not None

    @property
    def is_turning(self) -> bool:
        """Whether the leading eigenvalues are a pair: then a group of two tokens has no final
        leader.
        """
        return bool(self.rates[np.lexsort((-self.rates.imag, -self.rates.real))[0]].imag != 0.0)

    @property
    def fastest(self) -> float:
        """The largest growth rate."""
        return float(self.rates.real.max())

    @property
    def slowest(self) -> float:
        """The smallest positive growth rate; infinity if there is none."""
        positive = self.rates.real[self.is_unstable]
        return float(positive.min()) if positive.size else math.inf

    @property
    def clock(self) -> float:
        """The rate that sets the length of looks ahead: the largest |rate|."""
        return float(np.abs(self.rates).max())

    @property
    def notes(self) -> list[str]:
        """What was taken for granted about eigenvalues that rounding does not tell apart."""
        assert self.coordinates.growth is not None
        growth = np.sort(self.coordinates.growth)
        splits = np.diff(growth)
        said = []
        if ((splits > 0.0) & (splits <= self.same_rate)).any():
            said.append(f"Eigenvalues of V closer than {self.same_rate:.0e} are taken as equal.")
        if self.has_cleaned_rate:
            said.append("An eigenvalue of V that rounding cannot tell from 0 is taken as 0.")
        return said


def make_problem(dynamics: Dynamics, x0: np.ndarray) -> Problem:
    """The Problem of one start x0 (n, d), or Refused."""
    check_form(dynamics)
    dynamics = one_head(dynamics)
    coordinates = choose_coordinates(dynamics, "x")
    if coordinates.basis is None:
        raise Refused(say_why_no_basis(dynamics.weights.total))
    return problem_in(dynamics, coordinates, staying_equal(dynamics, x0))


def problem_in(dynamics: Dynamics, coordinates: Coordinates, same_as: np.ndarray) -> Problem:
    """The Problem of an equation with one head in these eigen-coordinates, or Refused."""
    assert (
        coordinates.basis is not None
        and coordinates.growth is not None
        and coordinates.turn is not None
    )
    condition = float(np.linalg.cond(coordinates.basis))
    growth = _cleaned(coordinates, dynamics.weights, condition)
    M, M_error = _scores(dynamics, coordinates.basis)
    has_cleaned_rate = not np.array_equal(growth, coordinates.growth)
    coordinates = coordinates._replace(growth=growth)
    return _build(dynamics, coordinates, M, M_error, same_as, condition, has_cleaned_rate)


def _build(
    dynamics: Dynamics,
    coordinates: Coordinates,
    M: np.ndarray,
    M_error: np.ndarray,
    same_as: np.ndarray,
    condition: float,
    has_cleaned_rate: bool,
) -> Problem:
    """The Problem with the growth rates of `coordinates` and the scores M in its real coordinates,
    or Refused.
    """
    growth, turn = coordinates.growth, coordinates.turn
    assert growth is not None and turn is not None
    # the integrator runs with exactly these numbers; scores <y_i, M y_j>
    weights = Weights(Q=np.eye(len(M)), K=M, V=block_matrix(growth, turn))
    moved = dataclasses.replace(dynamics, weights=weights, beta=1.0)
    coordinates = coordinates._replace(dynamics=moved)
    rates: np.ndarray = growth + 0j
    from_real = None
    for row in np.flatnonzero(turn):
        rates[row], rates[row + 1] = (
            complex(growth[row], turn[row]),
            complex(growth[row], -turn[row]),
        )
    if dynamics.dt is not None:
        factors = 1.0 + dynamics.dt * rates
        if (np.abs(factors) < 1e-12).any():
            raise Refused(
                "I + dt V is singular: a layer forgets a direction, and z = (I + dt V)^{-k} x does"
                " not exist."
            )
        rates = np.log(factors) / dynamics.dt
    is_unstable = rates.real > 0.0
    if turn.any():
        from_real = _complex_coordinates(turn)
        back = np.linalg.inv(from_real)
        M = back.T @ M @ back
        M_error = np.abs(back.T) @ M_error @ np.abs(back)
    elif not rates.imag.any():
        rates = rates.real.copy()
    else:
        from_real = np.eye(
            len(M), dtype=complex
        )  # layers with 1 + dt lambda < 0: (-1)^k is an oscillation
        M = M.astype(complex)
    return Problem(
        dynamics,
        coordinates,
        rates,
        np.ascontiguousarray(M),
        from_real,
        is_unstable,
        same_as,
        np.ascontiguousarray(M_error),
        condition,
        has_cleaned_rate,
    )


def vary(problem: Problem, sign: float) -> Problem:
    """The Problem with rates and scores moved by what computing them may have been off by, to one
    side or the other.

    Rates that are taken as equal move alike, and a rate of 0 stays 0: for multiplicities no
    perturbed problem stands. Where V is diagonal nothing was computed, and nothing moves.
    """
    if problem.is_exact:
        return problem
    coordinates, dynamics = problem.coordinates, problem.dynamics
    assert coordinates.growth is not None and coordinates.turn is not None
    assert coordinates.basis is not None
    draw = np.random.default_rng(24)
    off = sign * rate_error(dynamics.weights, problem.condition)

    def moved(values: np.ndarray) -> np.ndarray:
        order = np.argsort(values)
        number = np.empty(len(values), np.int64)
        number[order] = np.concatenate([[0], np.cumsum(np.diff(values[order]) > problem.same_rate)])
        sides = draw.choice([-1.0, 1.0], len(values))[number]
        return np.where(values == 0.0, 0.0, values + off * sides)

    M, M_error = _scores(dynamics, coordinates.basis)
    M = M + sign * draw.choice([-1.0, 1.0], M.shape) * M_error
    other = _build(
        dynamics,
        coordinates._replace(growth=moved(coordinates.growth), turn=moved(coordinates.turn)),
        M,
        M_error,
        problem.same_as,
        problem.condition,
        problem.has_cleaned_rate,
    )
    # a layer with 1 + dt lambda near -1 neither grows nor shrinks: then rounding decides, and this
    # is another question
    return other if np.array_equal(other.is_unstable, problem.is_unstable) else problem


def rate_error(weights: Weights, condition: float) -> float:
    """How far a computed eigenvalue of V may be off: 8 eps |V| condition."""
    return 8.0 * EPSILON * condition * float(np.linalg.norm(weights.full_V[0], 2))


def staying_equal(dynamics: Dynamics, x0: np.ndarray) -> np.ndarray:
    """For each token the first one that is equal to it at all times, (n,). Equal tokens see the
    same, unless masked.
    """
    same_as = np.arange(len(x0))
    if dynamics.mask.is_causal:
        equal = (x0 == x0[0]).all(axis=1)
        block = (
            int(np.argmin(equal)) if not equal.all() else len(x0)
        )  # only those before which nobody differs
        same_as[:block] = 0
        return same_as
    _, first, inverse = np.unique(x0, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()].astype(np.int64)


def check_form(dynamics: Dynamics) -> None:
    """Refuse what no limit in R^d is computed for, whatever the heads."""
    if not dynamics.kernel.is_softmax:
        raise Refused(
            f'Limits are computed for kernel="softmax", not for "{dynamics.kernel.name}". Take softmax,'
            " with a large beta for leaders like those of hardmax, or `simulate`."
        )
    check_axes(dynamics)
    if not dynamics.feedforward.is_none:
        raise Refused(
            "With a feed-forward part the flow is not linear once leaders are fixed: no closed"
            " form, no certificate. `simulate` needs none."
        )


def is_covered(dynamics: Dynamics) -> bool:
    """Whether limits are proved for all members of this equation but the kernel and the space."""
    try:
        check_axes(dynamics)
    except Refused:
        return False
    return True


def check_axes(dynamics: Dynamics) -> None:
    """Refuse an axis on which no limit is proved; the sentence names its member."""
    if not (dynamics.mask.sees_all or dynamics.mask.is_causal):
        raise Refused(
            "Limits are computed where every token sees all, or all before it, not for"
            f' mask="{dynamics.mask.name}".'
        )
    for name, is_plain in plain_axes(dynamics).items():
        if not is_plain:
            raise Refused(
                f'Limits are not computed for {name}="{getattr(dynamics, name).name}": no closed'
                " form, no certificate."
            )


def one_head(dynamics: Dynamics) -> Dynamics:
    """The same equation with one head: heads with equal scores add up, heads with V = 0 do nothing.
    Else Refused.
    """
    weights = dynamics.weights
    if weights.heads == 1:
        return dynamics
    M, V = score_matrices(weights), weights.full_V
    kept = [h for h in range(weights.heads) if V[h].any()] or [0]
    if any(not np.array_equal(M[h], M[kept[0]]) for h in kept):
        raise Refused(
            f"{len(kept)} heads with different scores Q^T K: a token may follow a different leader"
            " in each head, and z need not converge unless the V_h commute. Limits are computed"
            " for one head, or for heads with equal scores."
        )
    total = sum_of(V[kept])
    return dataclasses.replace(
        dynamics,
        weights=Weights(
            Q=weights.Q[kept[0]],
            K=weights.K[kept[0]],
            V=total,
            source=f"sum of heads of {weights.source}",
        ),
    )


def _scores(dynamics: Dynamics, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(M, its error) in eigen-coordinates, (d, d). What is only rounding is set to 0, and stays in
    the error.

    Exact where nothing was computed; and for symmetric V with M = m I, whose eigenvectors are
    orthogonal.
    """
    own, V = dynamics.beta * score_matrices(dynamics.weights)[0], dynamics.weights.full_V[0]
    if np.array_equal(basis, np.eye(len(own))):
        return own, np.zeros(own.shape)
    if np.array_equal(V, V.T) and np.array_equal(own, own[0, 0] * np.eye(len(own))):
        return own, np.zeros(own.shape)
    M = basis.T @ own @ basis
    error = 8.0 * EPSILON * len(own) * (np.abs(basis).T @ np.abs(own) @ np.abs(basis))
    return np.where(np.abs(M) <= error, 0.0, M), error


def _cleaned(coordinates: Coordinates, weights: Weights, condition: float) -> np.ndarray:
    """The growth rates, those that rounding cannot tell from 0 set to 0: eigenvalues are known to
    eps |V| condition.
    """
    assert coordinates.basis is not None and coordinates.growth is not None
    growth = coordinates.growth
    if np.array_equal(coordinates.basis, np.eye(len(growth))):
        return growth
    return np.where(np.abs(growth) <= rate_error(weights, condition), 0.0, growth)


def _complex_coordinates(turn: np.ndarray) -> np.ndarray:
    """c = from_real y: a pair (y, y') of real coordinates becomes (zeta, its conjugate), zeta = (y
    - i y') / 2.
    """
    matrix = np.eye(len(turn), dtype=complex)
    for row in np.flatnonzero(turn):
        matrix[row : row + 2, row : row + 2] = [[0.5, -0.5j], [0.5, 0.5j]]
    return matrix
