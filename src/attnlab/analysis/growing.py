"""The growing directions of a run, and the part of its tokens that lies in them.

x of a token grows in F, the span of the eigendirections of W = sum_h V_h whose eigenvalue has a
positive real part (layers: whose factor 1 + dt lambda has a modulus above 1). There z = e^{-tW} x
converges, and there limits are counted. In the other directions z does not come to rest, or even
runs away.
"""

from __future__ import annotations

import numpy as np

from attnlab import frames
from attnlab.analysis import followed
from attnlab.analysis.spectra import frobenius_norm, splitting_of
from attnlab.types import Dynamics, Trajectory

STILL = 1e-12
"""A growth rate up to this fraction of |W| counts as 0."""


def growth_rates(dynamics: Dynamics, values: np.ndarray) -> np.ndarray:
    """Return the growth rates along the eigenvalues (m,) of sum_h V_h: Re lambda, or log|1 + dt
    lambda| / dt.
    """
    values = np.asarray(values, dtype=complex)
    if dynamics.dt is None:
        return values.real
    with np.errstate(divide="ignore"):
        return np.log(np.abs(1.0 + dynamics.dt * values)) / dynamics.dt


def growing_parts(run: Trajectory) -> np.ndarray:
    """The parts of the tokens z in F, along the other directions: (*batch, T, n, d) in the user's
    coordinates.

    All of z where every direction grows or none does, and x on the sphere. With several heads F
    belongs to W = sum_h V_h.
    """
    dynamics, total = run.dynamics, run.dynamics.weights.total
    if not dynamics.is_value_linear:
        return followed(run)
    least, values, has_coordinates = STILL * frobenius_norm(total), total.eigenvalues, False
    if (
        run.frame == "x"
        and run.basis is not None
        and run.growth is not None
        and run.turn is not None
    ):
        values, has_coordinates = (
            run.growth + 1j * (run.turn + np.append(0.0, run.turn[:-1])),
            True,
        )  # both rows of a pair
    grows = growth_rates(dynamics, values) > least
    if not grows.any() or grows.all():
        return followed(run)
    if not has_coordinates:
        projector = splitting_of(
            total, lambda value: bool(growth_rates(dynamics, np.array(value)) > least)
        ).projector
        return followed(run) @ projector.T
    # the other coordinates are left out before z is formed: when they are huge, their rounding
    # would destroy the rest
    assert run.basis is not None and run.growth is not None and run.turn is not None
    states, growth = np.where(grows, run.states, 0.0), np.where(grows, run.growth, 0.0)
    # a direction that layers forget, 1 + dt lambda = 0, has no z; like the others it is 0 here, at
    # any rate
    turn = np.where(grows, run.turn, 0.0)
    return frames.unwind(states, run.times, run.log_scale, run.basis, growth, turn, dynamics.dt)
