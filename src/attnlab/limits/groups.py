"""The certificate for groups: where tokens end together, and any of them may lead.

Let a group listen only to itself, to each member as it likes. Let u be the coordinate along an
eigenvector of V, of rate lambda. Then u stays in a disc (discs.py).

    lambda > 0 real:         the interval of e^{-lambda t} u over the group shrinks, for ever
    lambda = a + ib:         the disc of e^{-lambda t} u grows like e^{(|lambda| - a) s}, so what it
                             proves holds up to a horizon
    causal mask, a > 0:      that disc does not grow, and what it proves holds for ever

If all tokens are one group, nothing else is needed. Several groups need that no row listens to
another group: Abel's test on the gaps between groups, with discs instead of points. One error per
coordinate; a coordinate counts if its error is small (RESOLVED).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from attnlab.limits.certificate import LEAST_MARGIN, ROUNDING
from attnlab.limits.discs import Discs, make_discs
from attnlab.limits.merged import MergedFlow, Reach
from attnlab.limits.problem import EPSILON
from attnlab.limits.windows import Pair, open_until

RESOLVED = 1e-6
"""The error of a coordinate that is given, relative to the largest point along the leading one."""

LEAST_HORIZON = 10.0
"""lambda_1 times the time that a group must hold beyond its state; less is no answer."""

KEPT = 0.5
"""The part of RESOLVED that discs may use; the rest is for the error of the state."""

SAME_KERNEL = 1e-9
"""Rates below this, relative to the largest, count as the kernel's."""

HALVINGS = 30

LATER = (5.0, 10.0, 20.0, 40.0, 80.0)
"""lambda_1 times the times after a state up to which gaps are followed, to test them for ever from
there on.
"""

SLOWER = (0.5, 0.1)
"""Under the causal mask, growth that is tried for directions which grow more slowly, beside the
leading rate.
"""


@dataclass(frozen=True, eq=False)
class State:
    """Tokens at a time t in the coordinates u of the eigenvectors of S, with a partition into
    groups. Plain arrays.
    """

    reach: Reach
    t: float
    u: np.ndarray  # (n, r) complex
    group: np.ndarray  # (n,) numbered from 0
    tolerance: float  # relative error of u
    log_size: float

    @cached_property
    def discs(self) -> Discs:
        """Where each token stays beside its group, as narrow as growing directions allow."""
        return make_discs(self.u, self.group, self.reach.rates, self.reach.is_causal)


def state_of(flow: MergedFlow, group: np.ndarray | None = None) -> State:
    """The State of a flow; group None: the components of attention."""
    centres, _ = flow.references()
    left = flow.reach.left
    # offsets are transformed by themselves: beside large centres they would lose their digits
    u = (centres @ left.T)[flow.group] + flow.apart() @ left.T
    return State(
        flow.reach,
        flow.t,
        u,
        flow.components() if group is None else group,
        10.0 * flow.rtol,
        flow.log_size,
    )


@dataclass(frozen=True, eq=False)
class Found:
    """What is certified of a state: along `coordinates` (numbers of rates, of a pair the first)
    points and errors; until when.
    """

    state: State
    coordinates: np.ndarray
    horizon: float | None  # None: for ever

    @property
    def is_turning(self) -> bool:
        """Whether the leading eigenvalues are a pair."""
        return bool(self.state.reach.rates[leading(self.state.reach)].imag != 0.0)


def leading(reach: Reach) -> int:
    """The number of the rate with the largest real part, of a pair the first."""
    order = np.lexsort((-reach.rates.imag, -reach.rates.real))
    return int(order[0])


def columns(reach: Reach, coordinates: np.ndarray) -> np.ndarray:
    """The real eigenvectors of V along these coordinates, of length 1 at most, (d, k): a pair has
    two.
    """
    found = []
    for a in coordinates:
        vector = reach.B @ reach.right[:, a] / reach.rates[a]
        found += [vector.real] if reach.rates[a].imag == 0.0 else [vector.real, vector.imag]
    lengths = _lengths(reach, coordinates)
    return np.array(found).reshape(len(lengths), -1).T / lengths


def _lengths(reach: Reach, coordinates: np.ndarray) -> np.ndarray:
    """What the real eigenvectors are divided by, (k,): the two of a pair by the larger length."""
    found: list[float] = []
    for a in coordinates:
        vector = reach.B @ reach.right[:, a] / reach.rates[a]
        size = max(float(np.linalg.norm(vector.real)), float(np.linalg.norm(vector.imag)))
        found += [size] if reach.rates[a].imag == 0.0 else [size, size]
    return np.array(found)


def real_points(reach: Reach, u: np.ndarray, coordinates: np.ndarray, t: float) -> np.ndarray:
    """z along `columns` of tokens whose coordinates are u (.., r) at the time t, (.., k)."""
    found = []
    for a in coordinates:
        w = u[..., a] * np.exp(-reach.rates[a] * t)
        found += [w.real] if reach.rates[a].imag == 0.0 else [2.0 * w.real, -2.0 * w.imag]
    return (
        np.stack(found, axis=-1) * _lengths(reach, coordinates)
        if found
        else np.zeros((*u.shape[:-1], 0))
    )


def errors(state: State, coordinates: np.ndarray, s: float) -> np.ndarray:
    """How far z may be from the middle of its group up to a time s later, along `columns`, (k,). s
    infinite: for ever.
    """
    reach, found = state.reach, []
    radii = state.discs.radii.max(axis=0)
    for a in coordinates:
        rate = reach.rates[a]
        excess = float(state.discs.growth[a] - rate.real)
        grown = (
            1.0
            if excess == 0.0
            else math.exp(min(excess * s, 700.0))
            if math.isfinite(s)
            else math.inf
        )
        size = radii[a] * math.exp(-rate.real * state.t) * grown
        found += [size] if rate.imag == 0.0 else [2.0 * size, 2.0 * size]
    return np.array(found) * _lengths(reach, coordinates)


def certify(state: State) -> Found | None:
    """What holds from this state on; None where the leading coordinate is not resolved, or groups
    are not kept apart.
    """
    reach = state.reach
    lead = leading(reach)
    fastest = float(reach.rates[lead].real)
    allowed, at_once = _allowed(state), errors(state, np.array([lead]), 0.0).max()
    if not is_narrow(state):
        return None
    excess = float(state.discs.growth[lead]) - fastest
    longest = math.log(allowed / at_once) / excess if excess > 0.0 and at_once > 0.0 else math.inf
    span = _kept_apart(state, longest) if state.group.max() > 0 else longest
    if span is None or span * fastest < LEAST_HORIZON:
        return None
    growing = np.array(
        [
            a
            for a in np.lexsort((-reach.rates.imag, -reach.rates.real))
            if reach.rates[a].real > 1e-9 * reach.clock and reach.rates[a].imag >= 0.0
        ]
    )
    kept = [
        a for a in growing if errors(state, np.array([a]), span).max() <= allowed * (1.0 + 1e-9)
    ]
    if lead not in kept:
        return None
    return Found(state, np.array(kept), None if math.isinf(span) else float(state.t + span))


def _allowed(state: State) -> float:
    """What discs may use of the error of the leading coordinate."""
    lead = np.array([leading(state.reach)])
    return KEPT * RESOLVED * float(np.abs(real_points(state.reach, state.u, lead, state.t)).max())


def is_narrow(state: State) -> bool:
    """Whether the groups are resolved along the leading coordinate now; for how long is another
    question.
    """
    return bool(errors(state, np.array([leading(state.reach)]), 0.0).max() < _allowed(state))


def shortened(found: Found, room: float) -> Found | None:
    """The same with a horizon up to which the leading error stays below `room`; None if that is too
    near.

    What held up to a later horizon holds up to an earlier one.
    """
    state, lead = found.state, leading(found.state.reach)
    rate, at_once = state.reach.rates[lead], float(errors(state, np.array([lead]), 0.0).max())
    if not at_once < room:
        return None
    excess = float(state.discs.growth[lead] - rate.real)
    if found.horizon is None or excess == 0.0 or at_once == 0.0:
        return found
    span = min(found.horizon - state.t, math.log(room / at_once) / excess)
    return (
        replace(found, horizon=float(state.t + span))
        if span * float(rate.real) >= LEAST_HORIZON
        else None
    )


def _kept_apart(state: State, longest: float) -> float | None:
    """The longest time up to `longest` for which no row is shown to listen to another group; None
    if not even at once.
    """
    if state.reach.is_causal:
        return _kept_apart_by_mask(state)
    gaps = _Gaps(state)
    if not gaps.is_sound:
        return None
    if math.isinf(longest):
        if gaps.hold(math.inf):
            return math.inf
        longest = 600.0 / gaps.fastest
    if gaps.hold(longest):
        return longest
    low, high = 0.0, longest
    if not gaps.hold(LEAST_HORIZON / gaps.fastest):
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gaps.hold(middle) else (low, middle)
    return low


def _kept_apart_by_mask(state: State) -> float | None:
    """The same under the causal mask, where no disc outgrows the tokens: Abel's test now, or at a
    later time up to which gaps are followed; or gaps for some time.
    """
    tried = [_Gaps(state, least) for least in SLOWER]
    if not tried[0].is_sound:
        return None
    if any(gaps.hold(math.inf) for gaps in tried):
        return math.inf
    gaps = tried[0]
    spans = [one / gaps.fastest for one in LATER]
    end = next((s for s in spans if gaps.after(s).hold(math.inf)), None)
    reached = gaps.open_until(spans[-1] if end is None else end)
    if end is not None and reached >= end:
        return math.inf
    return reached if reached * gaps.fastest >= LEAST_HORIZON else None


class _Gaps:
    """Abel's test for x_i^T M (x_i - x_k) of all i and k in different groups, centres exact and
    offsets in discs.

    least: see `make_discs`, here beside the leading rate.
    """

    def __init__(self, state: State, least: float = 0.0):
        reach, self.state = state.reach, state
        rates = reach.rates
        self.fastest = float(rates.real.max())
        moves = np.abs(rates) > SAME_KERNEL * reach.clock
        factored = reach.B.shape[1] < reach.B.shape[0]
        self.is_sound = bool(moves.all()) or not factored
        inverse = np.where(moves, 1.0 / np.where(moves, rates, 1.0), 0.0)
        self.rates = rates[moves]
        right = reach.right * inverse
        self.q, self.k = (
            (reach.QB @ right)[:, moves],
            (reach.KB @ right)[:, moves],
        )  # Q, K of the eigenvectors, per u
        start = reach.c0 @ reach.left.T
        # what rounding may have done: to eigenvectors, and to products in which large terms cancel
        self.part = 8.0 * EPSILON * len(reach.QB) * reach.condition
        size_q, size_k = (np.abs(one) @ np.abs(right) for one in (reach.QB, reach.KB))
        self.size_q, self.size_k = size_q[:, moves], size_k[:, moves]
        self.all_q = np.abs(reach.q0) + np.abs(start * moves) @ size_q.T
        self.all_k = np.abs(reach.k0) + np.abs(start * moves) @ size_k.T
        self.fixed_q = reach.q0 - ((start * moves) @ (reach.QB @ right).T).real
        self.fixed_k = reach.k0 - ((start * moves) @ (reach.KB @ right).T).real
        leak = 2.0 * math.exp(-LEAST_MARGIN)
        blur = state.tolerance * np.abs(state.u).max(axis=0) + leak
        discs = make_discs(
            state.u,
            state.group,
            rates,
            reach.is_causal,
            blur=blur,
            least=least * self.fastest,
        )
        self.centres, self.radii = discs.centres[:, moves], discs.radii[:, moves]
        self.growth = discs.growth[moves]
        self.product = self.q.T @ self.k  # (r, r)
        self.off = self.part * (self.size_q.T @ self.size_k)
        self.mu = 0.5 * self.fastest
        counts = float(np.exp(reach.bonus).sum())
        self.margin = (
            max(LEAST_MARGIN, 4.0 * reach.clock / self.mu)
            + math.log(max(counts, 2.0))
            + max(state.log_size, 0.0)
        )

    def hold(self, s: float) -> bool:
        """Whether all gaps stay above the margin up to s."""
        excess = np.maximum(self.growth - self.fastest, 0.0)
        if math.isinf(s):
            if excess.any():
                return False
            inflated = self.radii
        else:
            with np.errstate(over="ignore"):
                inflated = self.radii * np.exp(np.minimum(excess * s, 600.0))
        widest = np.minimum(self.growth, self.fastest)
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is not shown to hold
            return all(self._row(i, inflated, widest) for i in range(self.state.reach.n))

    def _row(self, i: int, radii: np.ndarray, widest: np.ndarray) -> bool:
        return all(_stays_open(self.pair(i, int(k), radii, widest)) for k in self.others(i))

    def others(self, i: int) -> np.ndarray:
        """The tokens of other groups that row i sees."""
        found = np.flatnonzero(self.state.group != self.state.group[i])
        return found[found < i] if self.state.reach.is_causal else found

    def pair(self, i: int, k: int, radii: np.ndarray, growth: np.ndarray) -> Pair:
        """The gap of row i to token k, with discs that grow with `growth`."""
        own, radius = self.centres[i], radii[i]
        fixed = self.fixed_k[i] - self.fixed_k[k]
        all_k = self.all_k[i] + self.all_k[k]
        bonus = self.state.reach.bonus
        constant = float(self.fixed_q[i] @ fixed) + float(bonus[i] - bonus[k])
        return Pair(
            self.rates,
            growth,
            own,
            own - self.centres[k],
            radius,
            radius + radii[k],
            self.product,
            self.off,
            self.q.T @ fixed,
            self.part * (self.size_q.T @ all_k),
            self.fixed_q[i] @ self.k,
            self.part * (self.all_q[i] @ self.size_k),
            constant,
            1e-12 * abs(constant) + 2.0 * self.part * float(self.all_q[i] @ all_k),
            self.margin,
            self.mu,
        )

    def after(self, s: float) -> _Gaps:
        """The same at a time s later: centres move, and discs grow."""
        later = copy.copy(self)
        later.centres = self.centres * np.exp(self.rates * s)
        later.radii = self.radii * np.exp(self.growth * s)
        later.margin = self.margin * math.exp(self.mu * s)
        return later

    def open_until(self, end: float) -> float:
        """A time up to which all gaps are shown to stay above the margin, at most `end`."""
        with np.errstate(over="ignore", invalid="ignore"):
            for i in range(self.state.reach.n):
                for k in self.others(i):
                    if not end > 0.0:
                        return 0.0
                    pair = self.pair(i, int(k), self.radii, self.growth)
                    end = open_until(pair, end)
        return end


def _stays_open(pair: Pair) -> bool:
    """Whether Abel's test shows that the gap stays above its margin for ever."""
    own, apart, size = np.abs(pair.own), np.abs(pair.apart), np.abs(pair.product) + pair.off
    real, widest = pair.rates.real, pair.growth
    pairs = pair.own[:, None] * pair.product * pair.apart[None, :]
    turning = (pair.rates[:, None] + pair.rates[None, :]).imag != 0.0
    low = [
        np.where(turning, -np.abs(pairs), pairs.real)
        - ROUNDING * 100.0 * np.abs(pairs)
        - pair.off * own[:, None] * apart[None, :],
        -own[:, None] * size * pair.both[None, :],
        -pair.radius[:, None] * size * apart[None, :],
        -pair.radius[:, None] * size * pair.both[None, :],
        _low(pair.own * pair.to_fixed, pair.rates) - own * pair.to_off,
        -pair.radius * (np.abs(pair.to_fixed) + pair.to_off),
        _low(pair.from_fixed * pair.apart, pair.rates) - pair.from_off * apart,
        -(np.abs(pair.from_fixed) + pair.from_off) * pair.both,
        np.array([pair.constant - pair.constant_off]),
        np.array([-pair.margin]),
    ]
    exponents = [
        real[:, None] + real[None, :],
        real[:, None] + widest[None, :],
        widest[:, None] + real[None, :],
        widest[:, None] + widest[None, :],
        real,
        widest,
        real,
        widest,
        np.zeros(1),
        np.array([pair.mu]),
    ]
    return _abel(
        np.concatenate([one.ravel() for one in low]),
        np.concatenate([one.ravel() for one in exponents]),
    )


def _low(values: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Lower bounds of the factors of e^{Re rate s}."""
    return np.where(rates.imag != 0.0, -np.abs(values), values.real) - ROUNDING * 100.0 * np.abs(
        values
    )


def _abel(values: np.ndarray, exponents: np.ndarray) -> bool:
    """Whether all partial sums are >= 0, in the order of falling exponents, equal ones together."""
    order = np.argsort(-exponents, kind="stable")
    sums = np.cumsum(values[order])
    is_last = np.append(np.diff(exponents[order]) < 0.0, True)
    return bool(np.isfinite(sums).all() and (sums[is_last] >= 0.0).all())
