"""What each flag of a member says, checked by what the member does. A member whose flag lies fails
with an AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attnlab.axes.members import AXES
from axes_members import NAMES, SCORES, D, N, make, start

TOKENS = 3.0 * start(seed=3)
EVERYTHING = np.ones(SCORES.shape, bool)


def axis_flags(axis: str) -> tuple[str, ...]:
    """All flags that members of an axis have."""
    return (*AXES[axis].flags, *AXES[axis].later)


def check_member(axis: str, member: Any) -> None:
    """Fail where a member does not do what its flags say, or what every member of its axis must
    do.
    """
    if axis == "kernel":
        check_weights(member)
    for flag in axis_flags(axis):
        if (axis, flag) not in UNCHECKED:
            check_flag(axis, member, flag)


def check_flag(axis: str, member: Any, flag: str) -> None:
    """Fail where one flag of a member lies."""
    declared, found = getattr(member, flag), CHECKS[axis, flag](member)
    assert declared == found, (
        f"The {AXES[axis].kind} {member.name} says {flag} = {declared}, and behaves as {found}."
    )


# -------------------------------------------------------------------------------------------
# kernels


def tables_seen(kernel: Any) -> list[np.ndarray]:
    """What masks let tokens see, for those masks that the kernel goes with."""
    tables = [np.broadcast_to(make("mask", name).seen(N), SCORES.shape) for name in NAMES["mask"]]
    return [seen for seen in tables if kernel.is_row_local or seen.all()]


def check_weights(kernel: Any) -> None:
    """Weights are finite, of the right shape, and 0 where a token does not see another."""
    for seen in tables_seen(kernel):
        P = kernel.weights(SCORES, seen)
        assert P.shape == SCORES.shape and (P[~seen] == 0).all() and np.isfinite(P).all()


def have_rows_of_sum_one(kernel: Any) -> bool:
    return all(
        (np.abs(kernel.weights(SCORES, seen).sum(axis=-1) - 1) < 1e-12).all()
        for seen in tables_seen(kernel)
    )


def are_rows_alone(kernel: Any) -> bool:
    """Whether row 0 stays the same, bit for bit, when all other rows of scores change."""
    other = SCORES.copy()
    other[..., 1:, :] += np.random.default_rng(2).normal(size=other[..., 1:, :].shape)
    return np.array_equal(
        kernel.weights(other, EVERYTHING)[..., 0, :], kernel.weights(SCORES, EVERYTHING)[..., 0, :]
    )


def become_hardmax(kernel: Any) -> bool:
    """Whether large scores give equal weights to the best that a row sees, of which row 1 has two,
    and 0 to others.
    """
    scores = 40.0 * np.array([[9, 1, 2], [5, 5, 0], [7, 3, 6.0]])
    hard = np.array([[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0]])
    with np.errstate(over="ignore"):
        if not np.allclose(kernel.weights(scores, np.ones((3, 3), bool)), hard, rtol=0, atol=1e-9):
            return False
        for seen in tables_seen(kernel):
            best = np.where(seen, SCORES, -np.inf)
            hard = best == best.max(axis=-1, keepdims=True)
            if not np.allclose(kernel.weights(1e4 * SCORES, seen), hard, rtol=0, atol=1e-9):
                return False
    return True


def are_negative(kernel: Any) -> bool:
    return any(
        (kernel.weights(size * SCORES, seen) < 0).any()
        for size in (0.1, 1.0, 5.0)
        for seen in tables_seen(kernel)
    )


def are_softmax(kernel: Any) -> bool:
    def softmax(seen):
        weights = np.where(seen, np.exp(SCORES), 0.0)
        return weights / weights.sum(axis=-1, keepdims=True)

    return all(
        np.allclose(kernel.weights(SCORES, seen), softmax(seen), rtol=1e-12, atol=0)
        for seen in tables_seen(kernel)
    )


def are_exponential(kernel: Any) -> bool:
    """Whether log P_ij - s_ij is the same number in all of a row, wherever i sees j."""
    for seen in tables_seen(kernel):
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.log(kernel.weights(SCORES, seen)) - SCORES
        if not all(
            np.ptp(row[sees]) < 1e-11
            for row, sees in zip(apart.reshape(-1, N), seen.reshape(-1, N), strict=True)
        ):
            return False
    return True


def can_scale(kernel: Any) -> bool:
    """Whether there is a function scaled_weights; what it gives must then be the weights of the
    scores times the factor.
    """
    if not hasattr(kernel, "scaled_weights"):
        return False
    for seen in tables_seen(kernel):
        for factor in (0.0, 0.5, 3.0):
            scaled = kernel.scaled_weights(SCORES, np.array(factor), seen)
            np.testing.assert_allclose(scaled, kernel.weights(factor * SCORES, seen), rtol=1e-12)
        assert np.isfinite(kernel.scaled_weights(-np.abs(SCORES), np.array(1e300), seen)).all()
    return True


# ------------------------------------------------------------------------------------------- other
# axes


def leave_everything(space: Any) -> bool:
    """Whether all tokens are in the space, and every velocity is tangent."""
    velocity = np.random.default_rng(1).normal(size=TOKENS.shape)
    try:
        checked = space.check(TOKENS.copy())
    except ValueError:
        return False
    return all(
        np.array_equal(one, other)
        for one, other in (
            (checked, TOKENS),
            (space.project(TOKENS, velocity), velocity),
            (space.retract(TOKENS), TOKENS),
        )
    )


def is_sphere(space: Any) -> bool:
    """Whether tokens are put on the unit sphere, and velocities lose their part along the token."""
    unit = TOKENS / np.linalg.norm(TOKENS, axis=-1, keepdims=True)
    velocity = np.random.default_rng(1).normal(size=TOKENS.shape)
    tangent = velocity - (velocity * unit).sum(axis=-1, keepdims=True) * unit
    found = space.retract(TOKENS), space.project(unit, velocity)
    return np.allclose(found[0], unit, rtol=1e-14) and np.allclose(found[1], tangent, rtol=1e-13)


def is_inner_product(scores: Any) -> bool:
    queries, keys = np.random.default_rng(4).normal(size=(2, 2, N, D))
    return np.allclose(
        scores.compare(queries, keys),
        np.einsum("hid,hjd->hij", queries, keys),
        rtol=1e-13,
        atol=1e-14,
    )


def is_identity(member: Any) -> bool:
    return all(np.array_equal(member(x), x) for x in (TOKENS, 1e-3 * TOKENS))


def moves_nothing(drift: Any) -> bool:
    return not drift.acts_on_z and not any(drift(TOKENS, t).any() for t in (0.0, 0.3, 2.0))


CHECKS: dict[tuple[str, str], Callable[[Any], bool]] = {
    ("kernel", "rows_sum_to_one"): have_rows_of_sum_one,
    ("kernel", "is_row_local"): are_rows_alone,
    ("kernel", "hardens"): become_hardmax,
    ("kernel", "may_be_negative"): are_negative,
    ("kernel", "is_softmax"): are_softmax,
    ("kernel", "is_exponential"): are_exponential,
    ("kernel", "has_scale"): can_scale,
    ("mask", "sees_all"): lambda mask: bool(mask.seen(N).all()),
    ("mask", "is_causal"): lambda mask: np.array_equal(mask.seen(N), np.tri(N, dtype=bool)),
    ("geometry", "is_linear"): leave_everything,
    ("geometry", "is_unit_sphere"): is_sphere,
    ("scores", "is_dot"): is_inner_product,
    ("read", "is_identity"): is_identity,
    ("write", "is_identity"): is_identity,
    ("speed", "is_constant"): lambda speed: all(speed(t) == 1.0 for t in (0.0, 0.3, 2.0)),
    ("feedforward", "is_none"): moves_nothing,
    ("noise", "is_none"): lambda noise: (
        not noise.increment(np.random.default_rng(7), TOKENS, 0.1).any()
    ),
}
"""{(axis, flag): what a member does: True where the flag must be True}."""

UNCHECKED = {
    (
        "feedforward",
        "acts_on_z",
    ): "It says in which equation the function stands. Any function of (n, d) may stand in either.",
}
"""{(axis, flag): why no behaviour of the member alone can contradict it}."""
