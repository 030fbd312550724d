"""Find the member that made a velocity not finite, after a run has failed."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab.axes.members import AXES
from attnlab.dynamics.attention import attention_matrices
from attnlab.dynamics.reference import values
from attnlab.types import Dynamics


def find_culprit(dynamics: Dynamics, x: np.ndarray, t: float) -> str:
    """Return the first member whose result for finite tokens x (n, d) is not finite, as 'kernel
    "sinkhorn"'; "" if none is.
    """
    if not np.isfinite(x).all():
        return ""
    with np.errstate(all="ignore"):
        read = dynamics.read(x)
        if not np.isfinite(read).all():
            return _name("read", dynamics)
        P = attention_matrices(dynamics, x)
        if not np.isfinite(P).all():
            return _name("kernel", dynamics)
        output = values(dynamics, P, read)
        if not np.isfinite(output).all():  # tokens of 1e300: not the fault of a member
            return ""
        output = dynamics.write(output)
        if not np.isfinite(output).all():
            return _name("write", dynamics)
        if not np.isfinite(dynamics.speed(t)):
            return _name("speed", dynamics)
        if (
            dynamics.feedforward.acts_on_z
            or not np.isfinite(added := dynamics.feedforward(x, t)).all()
        ):
            return _name("feedforward", dynamics)
        is_tangent = np.isfinite(dynamics.geometry.project(x, output + added)).all()
    return "" if is_tangent else _name("geometry", dynamics)


def _name(axis: str, dynamics: Dynamics) -> str:
    member: Any = getattr(dynamics, axis)
    return f'{AXES[axis].kind} "{member.name}"'
