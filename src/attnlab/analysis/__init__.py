"""Numbers from tokens x (..., n, d) and attention matrices P (..., n, n): one file per topic, pure
functions.

    spectra.py          eigenvalues of V, its splittings, and the predicates that theorems and
                        weights families name
    clusters.py         groups of tokens at a stated scale
    hull.py             convex hulls and support functions
    distances.py        pairwise distances, diameter, radius
    directions.py       which tokens point the same way
    attention.py        ranks, entropies and leaders of P
    energy.py           the interaction energies
    collapse.py         neural collapse, NC1 and NC2
    growing.py          the part of the tokens that grows
    growth.py           how fast tokens grow: the natural clock
    self_leaders.py     tokens that lead themselves, final leaders
    blow_up.py          why exp_mean fails at once
    rates.py            fits of exponential and power laws
    decay.py            which law of decay holds
    intervals.py        Wilson, Clopper-Pearson, Student, bootstrap
    markov.py           closed classes of a stochastic matrix
    propagators.py      attention as a linear flow, and frozen
    mixtures.py         limits as mixtures of first tokens
    transport.py        laws on the line, Wasserstein distances
    stability.py        how fast two measures can separate
    finite_volumes.py   the mean-field equation on a grid, d = 1
    hyperplanes.py      distance to three parallel hyperplanes
    random_polytopes.py expected numbers of hull vertices
    span.py             the same flow in fewer dimensions
    plain_flow.py       the flow and its derivative by SciPy
    principal_axes.py   tokens on the principal axes of all times
    under_way.py        observables that go from time to time

`observables` are the numbers that a Spec may name: functions f(run: Trajectory) -> array (*batch,
T, ...).

To add one
----------
Write the pure function in the file of its topic, and below it the observable, decorated with
`@observables.register("<name>")`. It must be NaN after a member of a batch has stopped.
`followed(run)` returns the tokens of the theorems. For a slow observable use `@time_by_time()`
(under_way.py), so that Ctrl-C keeps the finished times.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from attnlab.registry import Registry
from attnlab.types import Trajectory

observables: Registry[Callable[[Trajectory], np.ndarray]] = Registry(
    "observable", package="attnlab.analysis"
)


def followed(run: Trajectory) -> np.ndarray:
    """Return the tokens (*batch, T, n, d) whose limits the theorems describe: z in Euclidean space,
    x on the sphere.
    """
    return run.rescaled if run.dynamics.is_value_linear else run.x


def over_leading_axes(number: Callable[[np.ndarray], float], arrays: np.ndarray) -> np.ndarray:
    """number(a) for every trailing matrix a of `arrays` (..., a, b) -> (...); NaN where a is not
    finite.
    """
    arrays = np.asarray(arrays, dtype=float)
    flat = arrays.reshape(-1, *arrays.shape[-2:])
    values = [number(entry) if np.isfinite(entry).all() else np.nan for entry in flat]
    return np.array(values, dtype=float).reshape(arrays.shape[:-2])
