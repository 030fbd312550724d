"""velocity: one evaluation of the right-hand side, by compiled code or by the reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnlab.axes.together import check_rescaled
from attnlab.dynamics import velocity_x, velocity_z
from attnlab.engine.given import take_equation
from attnlab.engine.memory import remembered
from attnlab.engine.options import start_tokens
from attnlab.engine.plan import choose_path
from attnlab.registry import unknown_name
from attnlab.types import Dynamics, Weights

METHODS = ("auto", "direct", "reference")


def velocity(
    weights: Weights | Dynamics,
    x: Any,
    t: float = 0.0,
    frame: str = "x",
    method: str = "auto",
    **options: Any,
) -> np.ndarray:
    """Return the velocity of tokens: the right-hand side of the equation.

    Parameters
    ----------
    weights : Weights or Dynamics
        The matrices, or the whole equation.
    x : array (n, d) or (batch, n, d)
        The tokens, in `frame`.
    t : float, optional
        The time, which matters in the frame z and if the speed is not constant.
    frame : str, optional
        "x", or "z" for rescaled tokens.
    method : str, optional
        "direct" is the compiled sum, "reference" is the plain NumPy formula, and "auto" is the
        fastest that is as accurate.
    **options
        The words of the equation, as in `simulate`: beta, geometry, kernel, mask, feedforward and
        the other axes.

    Returns
    -------
    array (n, d) or (batch, n, d)
        The velocity.

    Examples
    --------
    A single token attends to itself, so its velocity is V x.

    >>> import numpy as np
    >>> import attnlab as al
    >>> al.velocity(al.Weights(V=np.diag([2.0, -1.0])), [[1.0, 3.0]]).tolist()
    [[2.0, -3.0]]
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if frame not in ("x", "z"):
        raise unknown_name("frame", frame, ("x", "z"))
    dynamics = take_equation(weights, options, "velocity")
    tokens = start_tokens(x, dynamics)
    if frame == "z":
        check_rescaled(dynamics)
    if frame == "x" and dynamics.feedforward.acts_on_z:
        raise ValueError('The feed-forward variant is an equation for z. Use frame="z".')
    n, d = tokens.shape[-2:]
    members, path = tokens.reshape(-1, n, d), choose_path(dynamics, n)
    result = np.empty_like(members)
    for member, out in zip(members, result, strict=True):
        # tokens of size 1e150 have scores of 1e300: the scale is removed exactly and passed
        # separately
        may_scale = dynamics.is_value_linear and dynamics.feedforward.is_none
        exponent = math.frexp(max(float(member.max()), -float(member.min())))[1] if may_scale else 0
        arguments = (float(t), exponent * math.log(2.0))
        if method == "reference" or path == "reference":
            out[:] = _shift(
                _reference(dynamics, frame, _shift(member, -exponent), *arguments), exponent
            )
        else:
            _direct(dynamics, frame, path, member, exponent, *arguments, out)
    return result.reshape(tokens.shape)


def _shift(x: np.ndarray, exponent: int, out: np.ndarray | None = None) -> np.ndarray:
    """Return x 2^exponent. A product is ten times as fast as ldexp, and exact while the power is a
    normal number.
    """
    return (
        np.multiply(x, 2.0**exponent, out=out)
        if abs(exponent) < 1000
        else np.ldexp(x, exponent, out=out)
    )


def _reference(
    dynamics: Dynamics, frame: str, y: np.ndarray, t: float, log_scale: float
) -> np.ndarray:
    return (
        velocity_x(dynamics, y, log_scale, t)
        if frame == "x"
        else velocity_z(dynamics, y, t, log_scale)
    )


def _direct(
    dynamics: Dynamics,
    frame: str,
    path: str,
    y: np.ndarray,
    exponent: int,
    t: float,
    log_scale: float,
    out: np.ndarray,
) -> None:
    """out = the velocity of the tokens y = 2^exponent (what is computed with), by compiled code on
    this path.
    """
    from attnlab.engine.field import fill_stages
    from attnlab.engine.large import large_system
    from attnlab.engine.records import Record
    from attnlab.engine.system import make_system, pad_count, work_shapes
    from attnlab.engine.threads import one_blas_thread

    n, d = y.shape
    if path == "compiled":
        system = remembered(
            dynamics, (n, frame, False), lambda: Record(make_system(dynamics, n, frame))
        )
        work, state = (
            Record.zeros(work_shapes(system.fields)),
            np.zeros((2, d, pad_count(n, bool(system.fields.is_tiled)))),
        )
        _shift(y.T, -exponent, state[0, :, :n])
        rates, nothing = np.zeros((1, *state.shape[1:])), np.zeros((1, 1))
        fill_stages(
            system.address,
            work.address,
            t,
            0.0,
            log_scale,
            state,
            False,
            nothing,
            np.zeros(1),
            0,
            1,
            rates,
            np.zeros_like(state),
        )
        rate = rates[0]
    else:
        large = large_system(dynamics, n, frame, np.zeros(1, np.int64))
        state = np.empty((1, d, large.n_pad))  # hi only: lo is not read
        _shift(y.T, -exponent, state[0, :, :n])
        state[0, :, n:] = 0.0
        rate = np.empty_like(state[0])
        with one_blas_thread(), np.errstate(all="ignore"):
            large.velocity(t, log_scale, state, False, rate)
    _shift(rate[:, :n].T, exponent, out)
