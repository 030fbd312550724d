"""simulate: weights and start tokens in, a Trajectory out."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.analysis.blow_up import explain_blow_up
from attnlab.capacity import TooLarge, check_memory
from attnlab.dynamics import next_layer
from attnlab.engine.coordinates import choose_coordinates
from attnlab.engine.given import take_equation
from attnlab.engine.observing import (
    add_observables,
    find_observables,
    is_interrupted,
    mark_interrupted,
)
from attnlab.engine.options import (
    FEWER,
    check_run_memory,
    check_scales,
    solve_options,
    start_tokens,
)
from attnlab.engine.plan import choose_frame, choose_path
from attnlab.progress import Progress, ProgressOption, track
from attnlab.types import Dynamics, RunFailed, RunInterrupted, Solve, Status, Trajectory, Weights

REFERENCE_RTOL = 1e-11
"""measure_error=True measures fixed steps against the adaptive stepper at this tolerance."""

SHARES = {
    (False, False): (1.0, 1.0),
    (True, False): (0.4, 1.0),
    (False, True): (0.7, 0.7),
    (True, True): (0.3, 0.8),
}
"""{(measure_error, observe): the fractions of the progress at which measuring the error begins, and
observing}, roughly.
"""

DOING = "comparing with the reference"

PAIRS, TABLES = 8, 3
"""Numbers per pair of tokens and head on the reference path: scores, weights and temporary arrays.
And numbers per pair of a compiled kernel with a table of all pairs.
"""


def simulate(
    weights: Weights | Dynamics,
    x0: Any,
    *,
    t_end: float | None = None,
    beta: float = 1.0,
    scores: Any = "dot",
    kernel: Any = "softmax",
    mask: Any = "full",
    geometry: Any = None,
    read: Any = None,
    write: Any = None,
    speed: Any = None,
    feedforward: Any = None,
    noise: Any = None,
    normalisation: str | None = None,
    layers: int | None = None,
    dt: float | None = None,
    times: Any = None,
    saves: int | None = None,
    rtol: float = 1e-8,
    atol: float = 0.0,
    stepper: str = "adaptive",
    frame: str = "auto",
    max_steps: int = 100_000,
    measure_error: bool = False,
    throw: bool = True,
    progress: ProgressOption = False,
    observe: Sequence[str] = (),
    rng: Any = None,
) -> Trajectory:
    """Simulate self-attention from the first tokens x0 and return the Trajectory.

    The usual equation is::

        x_i' = sum_h sum_j P^h_ij V_h x_j,     P^h_ij = softmax_j(beta <Q_h x_i, K_h x_j>)

    Each axis of the equation takes a word: a name, a table such as {"name": "window", "width": 16},
    or a member. `attnlab list` shows the names.

    Parameters
    ----------
    weights : Weights or Dynamics
        The matrices, or the whole equation. With a Dynamics, leave out the words of the equation.
    x0 : array (n, d) or (batch, n, d)
        The first tokens of one run or of each member of a batch.
    t_end : float, optional
        The end of the run. It may be left out if `times` or `layers` is given.
    beta : float, optional
        The inverse temperature.
    scores : name, table or member, optional
        How queries are compared with keys.
    kernel : name, table or member, optional
        How scores become attention weights.
    mask : name, table or member, optional
        Which tokens see each other.
    geometry : name, table or member, optional
        The space of the tokens. None is "euclidean", or the choice of the normalisation.
    read : name, table or member, optional
        What attention and the values see of a token. None is "plain", or the choice of the
        normalisation.
    write : name, table or member, optional
        What happens to the output of attention. None is "plain", or the choice of the
        normalisation.
    speed : name, table or member, optional
        A factor in time. None is "constant", or the choice of the normalisation.
    feedforward : FeedForward, name or table, optional
        A drift, which moves tokens besides attention. A table of W, sigma and bias is the
        feed-forward variant (frame z).
    noise : name, table or member, optional
        What moves tokens at random.
    normalisation : str, optional
        A scheme that chooses geometry, read, write and speed: "post", "pre", "peri", "ngpt" or
        "ln_scaling".
    layers : int, optional
        The number of residual layers x <- x + dt * attention. This is another equation, with dt = 1
        by default.
    dt : float, optional
        The step of a layer, or of the steppers "euler" and "rk4".
    times : array (T,), optional
        The times to save, ascending.
    saves : int, optional
        The number of equally spaced times to save, if `times` is left out. The default is 101; with
        `layers`, every layer.
    rtol, atol : float, optional
        The tolerances of a step. rtol is relative to the largest token, and atol is added to it.
    stepper : str, optional
        "adaptive", or "euler" or "rk4" with steps of length `dt`.
    frame : str, optional
        The tokens that are integrated: "x", "z", or "auto".
    max_steps : int, optional
        The number of steps after which the run gives up.
    measure_error : bool, optional
        Whether to fill `run.error` by a second run that is ten times more accurate.
    throw : bool, optional
        Whether a run that does not reach its end raises RunFailed. False returns the part that was
        computed.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.
    observe : sequence of str, optional
        The observables to keep in `run.observed`. `attnlab list observables` shows their names.
    rng : int, optional
        The seed of the noise. Each member of a batch has its own stream, and rng=(7, i) gives
        member i alone.

    Returns
    -------
    Trajectory
        The run, with x and z at the saved times.

    Raises
    ------
    RunFailed
        The run did not reach its end. `.run` is the part that was computed.
    UnknownName
        No member has this name. The message suggests the nearest one.
    ValueError
        An argument is invalid. The message says what must hold.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> x0 = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> run = al.simulate(al.Weights(V=np.eye(2)), x0, t_end=2.0, saves=11)
    >>> run.x.shape
    (11, 3, 2)
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=2.0, geometry="sphere", observe=["diameter"])
    >>> bool(np.allclose(np.linalg.norm(run.x, axis=-1), 1.0))
    True
    >>> run.observed["diameter"].shape
    (101,)
    """
    given_dt = weights.dt if isinstance(weights, Dynamics) else None
    if layers is not None and dt is None and given_dt is None:
        dt = 1.0
    dynamics = take_equation(
        weights,
        {
            "beta": beta,
            "scores": scores,
            "kernel": kernel,
            "mask": mask,
            "geometry": geometry,
            "read": read,
            "write": write,
            "speed": speed,
            "feedforward": feedforward,
            "noise": noise,
            "normalisation": normalisation,
            "dt": dt if layers is not None else None,
        },
        "simulate",
    )
    weights = dynamics.weights
    solve = solve_options(
        dynamics,
        t_end=t_end,
        layers=layers,
        times=times,
        saves=saves,
        rtol=rtol,
        atol=atol,
        stepper=stepper,
        dt=None if dynamics.is_layers else dt,
        frame=frame,
        max_steps=max_steps,
        rng=rng,
    )
    if measure_error and not dynamics.noise.is_none:
        raise ValueError(
            "measure_error=True compares with a more accurate run, but with noise "
            f'("{dynamics.noise.name}") there is none. Leave it out.'
        )
    if measure_error and solve.rtol < 1e-13:
        raise ValueError(
            "measure_error=True runs again at rtol / 10, so rtol must be at least 1e-13; got"
            f" {solve.rtol:g}."
        )
    start = start_tokens(x0, dynamics)
    n, d = start.shape[-2:]
    check_scales(solve, start)
    path = choose_path(dynamics, n)
    tables = TABLES * n * n if path == "compiled" and not dynamics.kernel.is_row_local else 0
    check_run_memory(start.size // (n * d), len(solve.times), n, d, measure_error, tables)
    if measure_error and dynamics.is_layers:
        check_memory(
            f"The pairs of {n} tokens, for measure_error=True,",
            6 * weights.heads * n * n,
            "Leave it out.",
        )
    if path == "reference":
        check_memory(
            f"The pairs of {n} tokens, on the reference path,",
            PAIRS * weights.heads * n * n,
            "Take fewer tokens.",
        )
    functions = find_observables(observe, start.shape, weights.heads)
    measured, observed = SHARES[bool(measure_error), bool(functions)]
    with track(progress, "integrating", keeps=True) as progress:
        try:
            run = _integrate(dynamics, solve, start, progress.part(0.0, measured))
            if measure_error and len(run.times) and not is_interrupted(run):
                run = add_error(run, start, progress.part(measured, observed, "error"))
        except MemoryError:
            many = f"{len(solve.times)} saved times of {n} tokens in dimension {d}"
            raise TooLarge(f"{many} need more memory than this machine has. {FEWER}") from None
        if functions and len(run.times) and not is_interrupted(run):
            run = add_observables(run, functions, progress.part(observed, 1.0))
        if throw and not run.is_ok:
            raise _failure(run, start)
        return run


def _integrate(
    dynamics: Dynamics, solve: Solve, start: np.ndarray, progress: Progress
) -> Trajectory:
    from attnlab.engine.members import integrate_members

    batch, (n, d) = start.shape[:-2], start.shape[-2:]
    frame = choose_frame(dynamics, solve)
    began = time.perf_counter()
    coordinates = choose_coordinates(dynamics, frame)
    start = start.reshape(-1, n, d)
    if coordinates.inverse is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            given, start = start, start @ coordinates.inverse.T
        if not np.isfinite(start).all():
            raise ValueError(
                "x0 must be small enough for its coordinates along the eigenvectors of V to fit"
                f" into double precision, but its largest entry is {np.abs(given).max():.3g}. Scale"
                " the tokens down."
            )
    if dynamics.noise.is_none:
        out = integrate_members(coordinates, solve, frame, start, progress)
    else:
        from attnlab.engine.noisy import integrate_noisy

        out = integrate_noisy(dynamics, solve, start, progress)
    # multiply by the scale, exactly, if this stays in the range of double; member by member, as in
    # single runs
    kept = out.saved.max(initial=0)
    states, log_scale = out.states[:, :kept], out.log_scale[:, :kept]
    size = np.fmax.reduce(np.abs(states), axis=(-2, -1), initial=0.0)  # NaN is passed over
    log_size = log_scale + np.log(np.where(size > 0, size, 1.0))
    fits = (np.maximum(np.abs(log_size), np.abs(log_scale)) < 600.0).all(axis=-1)  # (b,)
    # a power of two by ldexp, which is exact everywhere, and one product: ldexp of all states takes
    # ten times as long
    factors = np.ldexp(
        1.0, np.where(fits[:, None], np.rint(log_scale / np.log(2.0)), 0.0).astype(int)
    )
    states, log_scale = states * factors[..., None, None], np.where(fits[:, None], 0.0, log_scale)
    statuses = np.array([list(Status)[code] for code in out.status], dtype=object).reshape(batch)
    stats = {
        name: np.asarray(getattr(out, name)).reshape(batch)
        for name in ("steps", "rejected", "evaluations", "reached")
    }
    if not batch:
        stats = {name: value.item() for name, value in stats.items()}
    return Trajectory(
        dynamics=dynamics,
        solve=solve,
        times=solve.times[:kept],
        states=states.reshape(*batch, kept, n, d),
        frame=frame,
        log_scale=log_scale.reshape(*batch, kept),
        status=statuses if batch else statuses.item(),
        basis=coordinates.basis,
        growth=coordinates.growth,
        turn=coordinates.turn,
        stats={
            **stats,
            "path": out.path,
            "seconds": time.perf_counter() - began,
            **(
                {"member_not_finite": out.culprit}
                if out.culprit and (out.status != 0).any()
                else {}
            ),
        },
    )


def add_error(run: Trajectory, start: np.ndarray, progress: Progress) -> Trajectory:
    """Add the error (*batch,): the largest difference to a more accurate run, relative to the
    largest token at that time.
    """
    if run.dynamics.is_layers:
        from attnlab.engine.threads import do_unless_interrupted

        errors: list[Any] = []
        if not do_unless_interrupted(
            lambda: errors.append(_layer_error(run, start)), lambda: None, progress, DOING
        ):
            return mark_interrupted(run, "its error was measured")
        return dataclasses.replace(run, error=errors[0])
    rtol = (
        run.solve.rtol / 10
        if run.solve.stepper == "adaptive"
        else min(REFERENCE_RTOL, run.solve.rtol / 10)
    )
    finer = dataclasses.replace(
        run.solve,
        times=run.times,
        t_end=float(run.times[-1]),
        rtol=rtol,
        atol=run.solve.atol / 10,
        stepper="adaptive",
        dt=None,
        frame="auto" if run.solve.stepper != "adaptive" else run.solve.frame,
        max_steps=10 * run.solve.max_steps,
    )
    truth = _integrate(run.dynamics, finer, start, progress)
    if is_interrupted(truth):
        # the run itself is complete, but Ctrl-C means stop, and the error of half a run would be
        # wrong
        return mark_interrupted(run, "its error was measured")
    return dataclasses.replace(run, error=_relative_difference(run, truth))


def _relative_difference(run: Trajectory, truth: Trajectory) -> Any:
    """Return the largest difference over times and tokens, in x and z, relative to the largest
    token; NaN: not measurable.
    """
    reached = len(truth.times)
    views = [(run.scaled_x(), truth.scaled_x())]
    with contextlib.suppress(ArithmeticError):  # z that cannot be represented is not compared
        if run.dynamics.is_value_linear:
            views.append(
                (
                    (run.rescaled, np.zeros(run.log_scale.shape)),
                    (truth.rescaled, np.zeros(truth.log_scale.shape)),
                )
            )
    worst = np.zeros(run.batch)
    for (ours, our_scale), (theirs, their_scale) in views:
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a run with wrong growth has an infinite error
            ours = (
                ours[..., :reached, :, :]
                * np.exp(our_scale[..., :reached] - their_scale)[..., None, None]
            )
        size = np.abs(theirs).max(axis=(-2, -1))
        gap = np.abs(ours - theirs).max(axis=(-2, -1)) / np.where(size > 0, size, 1.0)
        # a member that stopped early is NaN after its last good time: compare only before
        worst = np.maximum(
            worst, np.where(np.isnan(ours).any(axis=(-2, -1)), 0.0, gap).max(axis=-1)
        )
    ok, finer_ok = (
        np.asarray(status, dtype=object) == Status.OK for status in (run.status, truth.status)
    )
    worst = np.where(
        ok & ~finer_ok, np.nan, worst
    )  # the finer run ended earlier: the error is unknown
    return worst if run.batch else float(worst)


def _layer_error(run: Trajectory, start: np.ndarray) -> Any:
    """Return the difference to the recursion of the NumPy reference. Layers are exact up to
    rounding.
    """
    assert run.dynamics.dt is not None
    x, exponent, layer, gaps = start, 0.0, 0, []
    states, log_scale = run.scaled_x()
    for i, number in enumerate(np.rint(run.times / run.dynamics.dt).astype(int)):
        while layer < number:
            x, layer = next_layer(run.dynamics, x, exponent, layer * run.dynamics.dt), layer + 1
            shift = np.frexp(np.abs(x).max())[1]
            if abs(shift) > 100:
                x, exponent = np.ldexp(x, -shift), exponent + shift * np.log(2.0)
        ours = states[..., i, :, :] * np.exp(log_scale[..., i] - exponent)[..., None, None]
        gaps.append(
            np.nan_to_num(np.abs(ours - x).max(axis=(-2, -1)) / np.abs(x).max(axis=(-2, -1)))
        )
    worst = np.max(gaps, axis=0)
    return worst if run.batch else float(worst)


def _failure(run: Trajectory, start: np.ndarray) -> RunFailed:
    statuses = np.ravel(np.asarray(run.status, dtype=object))
    bad = [i for i, status in enumerate(statuses) if status is not Status.OK]
    status, reached = statuses[bad[0]], np.ravel(run.stats["reached"])[bad[0]]
    which = (
        f"Member {bad[0]} of the batch ({len(bad)} of {len(statuses)} did not finish)"
        if run.batch
        else "The run"
    )
    if status is Status.INTERRUPTED and "interrupted" in run.stats:
        words = (
            f"{which} was interrupted while {run.stats['interrupted']}. Its states are complete."
        )
    else:
        culprit = (
            f"The observable {run.stats['not_finite']} is not finite from there on. "
            if "not_finite" in run.stats
            else ""
        )
        if "member_not_finite" in run.stats:
            culprit += (
                f"The {run.stats['member_not_finite']} returned non-finite numbers for finite"
                " tokens. "
            )
        reason = explain_blow_up(run, bad[0], start.reshape(-1, *start.shape[-2:])[bad[0]])
        words = (
            f"{which} stopped at t = {reached:g} of {run.solve.t_end:g}."
            f" {culprit}{reason or status.value}"
        )
    kind = RunInterrupted if any(statuses[i] is Status.INTERRUPTED for i in bad) else RunFailed
    return kind(
        f"{words} (This error's .run has the part that was computed; throw=False returns it"
        " instead.)",
        run,
    )
