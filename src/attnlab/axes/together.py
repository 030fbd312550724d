"""Check that members of different axes fit together. Invalid pairs are refused here, by flags, in
one sentence each.
"""

from __future__ import annotations

from typing import Any

from attnlab.axes.members import AXES


class NoRescaledFrame(ValueError):
    """Raised if rescaled tokens z are needed but the equation has none, as on the sphere. The
    message says why.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=1.0, geometry="sphere")
    >>> run.z is None
    True
    >>> run.rescaled
    Traceback (most recent call last):
        ...
    attnlab.axes.together.NoRescaledFrame: There is no rescaled frame on the sphere: ...
    """


def check_rescaled(dynamics: Any, advice: str = 'Use frame="x".') -> None:
    """Refuse an equation without rescaled tokens z. The sentence names the member of an axis, then
    gives the advice.
    """
    if not dynamics.geometry.is_linear:
        raise NoRescaledFrame(
            f"There is no rescaled frame on the {dynamics.geometry.name}: tokens stay bounded."
            f" {advice}"
        )
    for name, is_plain in plain_axes(dynamics).items():
        if not is_plain and name != "scores":
            raise NoRescaledFrame(
                f"There is no rescaled frame with the {AXES[name].kind}"
                f' "{getattr(dynamics, name).name}". {advice}'
            )


def check_together(dynamics: Any) -> None:
    """Refuse an equation whose parts do not fit together. The sentence names both."""
    kernel, noise = dynamics.kernel, dynamics.noise
    check_dimension = getattr(dynamics.feedforward, "check_dimension", None)
    if check_dimension is not None:
        check_dimension(dynamics.weights.d)
    if dynamics.feedforward.acts_on_z:
        _check_feedforward(dynamics)
    if not kernel.is_row_local and not dynamics.mask.sees_all:
        raise ValueError(
            f'The kernel "{kernel.name}" needs whole columns of scores, which the mask'
            f' "{dynamics.mask.name}" hides. Use mask="full", or another kernel.'
        )
    if not noise.is_none and dynamics.dt is not None:
        raise ValueError(
            f'The noise "{noise.name}" is defined in continuous time only. Leave layers out, or the'
            " noise."
        )
    if not dynamics.speed.is_constant and dynamics.dt is not None:
        raise ValueError(
            f'The speed "{dynamics.speed.name}" is a factor in continuous time. Leave layers out,'
            " or the speed."
        )


def _check_feedforward(dynamics: Any) -> None:
    """The feed-forward variant is an equation for z of the plain flow."""
    space, kernel = dynamics.geometry, dynamics.kernel
    variant = f'The drift "{dynamics.feedforward.name}" makes the feed-forward variant, which is'
    if not space.is_linear:
        raise ValueError(
            f"{variant} an equation for rescaled tokens z in R^d and has no version on the geometry"
            f' "{space.name}". Use geometry="euclidean", or leave feedforward out.'
        )
    if not kernel.rows_sum_to_one:
        raise ValueError(
            f"{variant} defined for attention weights that sum to 1, and those of the kernel"
            f' "{kernel.name}" do not. Use kernel="softmax" or "hardmax".'
        )
    if dynamics.dt is not None:
        raise ValueError(
            f"{variant} defined in continuous time only. Leave layers out; "
            'stepper="euler", frame="z", dt=... uses the steps of the published scripts.'
        )
    for name, is_plain in plain_axes(dynamics).items():
        if not is_plain:
            raise ValueError(
                f"{variant} an equation for rescaled tokens z, which the "
                f'{AXES[name].kind} "{getattr(dynamics, name).name}" does not have. Leave one of'
                " them out."
            )


def plain_axes(dynamics: Any) -> dict[str, bool]:
    """Return {axis: whether its member is that of the paper}, without the kernel, the mask and the
    space.

    The feed-forward variant is in the paper too. Code that does not support it must test its flag.
    """
    drift = dynamics.feedforward
    return {
        "scores": dynamics.scores.is_dot,
        "read": dynamics.read.is_identity,
        "write": dynamics.write.is_identity,
        "speed": dynamics.speed.is_constant,
        "feedforward": drift.is_none or drift.acts_on_z,
        "noise": dynamics.noise.is_none,
    }
