"""al.predict and al.check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from attnlab.batches import members
from attnlab.checks import positive
from attnlab.engine.given import find_differing, take_equation
from attnlab.engine.options import start_tokens
from attnlab.progress import ProgressOption, track
from attnlab.theory import theorems
from attnlab.theory.evidence import FOREIGN, WORK, Evidence
from attnlab.theory.openings import openings
from attnlab.types import Dynamics, Status, Trajectory, Weights
from attnlab.verdicts import (
    BatchVerdicts,
    Measured,
    Outcome,
    Prediction,
    Predictions,
    Theorem,
    Verdict,
    Verdicts,
)

ROUNDING = 1e-9

CONJECTURE = "a counterexample, not an error: it is a conjecture (see docs/errata.md)"


def predict(
    weights: Weights | Dynamics | Trajectory,
    x0: Any = None,
    *,
    beta: float = 1.0,
    geometry: Any = None,
    kernel: Any = "softmax",
    mask: Any = "full",
    feedforward: Any = None,
    layers: Any = None,
    dt: float | None = None,
    names: Sequence[str] | None = None,
    scores: Any = "dot",
    read: Any = None,
    write: Any = None,
    speed: Any = None,
    noise: Any = None,
    normalisation: str | None = None,
) -> Predictions:
    """Return what every registered statement says about weights, without a simulation.

    The list prints applicable statements first, and open questions at the end (`.openings`).
    Without first tokens, hypotheses about them are not evaluated.

    Parameters
    ----------
    weights : Weights, Dynamics or Trajectory
        The matrices, or the whole equation. A run gives the weights, the equation and the first
        tokens.
    x0 : array (n, d), optional
        The first tokens.
    names : sequence of str, optional
        The names of the statements. The default is all of them.
    beta, geometry, kernel, mask, feedforward, scores, read, write, speed, noise, normalisation : optional
        The words of the equation, as in `simulate`.
    layers, dt : optional
        Residual layers. Any value of `layers` asks for them, with dt = 1.

    Returns
    -------
    Predictions
        A list with one Prediction per statement.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> prediction, = al.predict(al.Weights(V=np.eye(2)), names=["polytope"])
    >>> prediction.theorem, prediction.applies
    ('polytope', True)
    """
    dt = 1.0 if layers is not None and dt is None else dt
    options = {
        "beta": beta,
        "geometry": geometry,
        "kernel": kernel,
        "mask": mask,
        "feedforward": feedforward,
        "dt": dt,
        "scores": scores,
        "read": read,
        "write": write,
        "speed": speed,
        "noise": noise,
        "normalisation": normalisation,
    }
    if isinstance(weights, Trajectory):
        if x0 is not None or find_differing(options):
            raise TypeError(
                "predict(run) takes its start and its equation from the run. Leave x0 and the"
                " options out."
            )
        if not len(weights.times) or weights.times[0] != 0.0:
            raise ValueError(
                "A run for predict must hold its start, t = 0; this one does not. "
                "Use predict(run.dynamics.weights, x0)."
            )
        dynamics, x0 = weights.dynamics, weights.x[..., 0, :, :]
    else:
        dynamics = take_equation(weights, options, "predict")
    if x0 is not None:
        x0 = start_tokens(x0, dynamics)
        if x0.ndim != 2:
            raise ValueError(
                f"predict takes one start x0 (n, d), got shape {x0.shape}. Call it once a member."
            )
    return predictions(dynamics, x0, _choose_statements(names))


def predictions(dynamics: Dynamics, x0: np.ndarray | None, names: Iterable[str]) -> Predictions:
    """Return the predictions of the statements with these names."""
    registry = theorems
    return Predictions(
        (prediction(registry[name], dynamics, x0) for name in names), openings(dynamics)
    )


def _choose_statements(names: Sequence[str] | None) -> list[str]:
    if isinstance(names, str):
        raise TypeError(
            f"names must be a list of names, got the single word {names!r}. Use names=[{names!r}]."
        )
    return list(theorems if names is None else dict.fromkeys(names))


def prediction(theorem: Theorem, dynamics: Dynamics, x0: np.ndarray | None) -> Prediction:
    """Return the prediction of one statement."""
    hypotheses = tuple(theorem.hypotheses(dynamics, x0))
    verdicts = [one.holds for one in hypotheses]
    applies = False if False in verdicts else None if None in verdicts else True
    words, data = theorem.predict(dynamics, x0) if applies is not False else ("", {})
    return Prediction(theorem.name, theorem.kind, applies, hypotheses, words, data)


def check(
    run: Trajectory,
    *,
    names: Sequence[str] | None = None,
    work: float = WORK,
    budget: float = 30.0,
    progress: ProgressOption = False,
) -> Verdicts | BatchVerdicts:
    """Return what every registered statement says about a run: its verdicts, or a list of them for
    each member of a batch.

    Parameters
    ----------
    run : Trajectory
        The run, from its start at t = 0.
    names : sequence of str, optional
        The names of the statements. The default is all of them.
    work, budget : float, optional
        The work and the seconds for the certified limit of the run, if a claim is about t =
        infinity. See `limit`.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    Verdicts or BatchVerdicts
        A list with one Verdict per statement. For a batch, a list of such lists.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> run = al.simulate(al.Weights(V=np.eye(2)), np.eye(2), t_end=2.0, measure_error=True)
    >>> verdict, = al.check(run, names=["hull_shrinks"])
    >>> verdict.outcome
    Outcome.SUPPORTED
    """
    if not isinstance(run, Trajectory):
        raise TypeError(
            "check needs a Trajectory, as simulate(...) and load(...) return it; got"
            f" {type(run).__name__}."
        )
    if not len(run.times):
        raise ValueError("A run for check must have at least one saved time; this one has none.")
    if run.times[0] != 0.0:
        raise ValueError(
            f"A run for check must begin at t = 0, but begins at {run.times[0]:g}. Save t = 0 too:"
            " times=[0, ...]."
        )
    registry = theorems
    chosen = [registry[name] for name in _choose_statements(names)]
    runs = members(run) if run.batch else [run]
    found = []
    with track(progress, "checking") as progress:
        for number, one in enumerate(runs):
            evidence, verdicts = (
                Evidence(one, positive("budget", budget), positive("work", work)),
                [],
            )
            for place, theorem in enumerate(chosen):
                evidence.progress = progress.piece(number, len(runs)).piece(
                    place, len(chosen), f"checking {theorem.name}"
                )
                evidence.progress(0.0)
                verdicts.append(verdict(theorem, evidence))
            found.append(Verdicts(verdicts))
    return BatchVerdicts(found) if run.batch else found[0]


def verdict(theorem: Theorem, evidence: Evidence) -> Verdict:
    """Judge one statement on one run: first the hypotheses, then the number and its error against
    the bound.
    """
    run = evidence.run
    hypotheses = tuple(theorem.hypotheses(run.dynamics, evidence.start))

    def say(outcome: Outcome, unmet: str = "", measured: Measured | None = None) -> Verdict:
        m = measured if measured is not None else Measured(np.nan, np.nan, np.nan, np.nan, "")
        return Verdict(
            theorem.name,
            theorem.kind,
            outcome,
            float(m.value),
            float(m.bound),
            float(m.resolution),
            float(m.error),
            m.evidence,
            unmet,
            hypotheses,
            m.details,
            evidence.known_error,
        )

    for one in hypotheses:
        if one.holds is False:
            return say(Outcome.OUT_OF_SCOPE, f"it needs: {one.asked}")
    for one in hypotheses:
        if one.holds is None:
            return say(Outcome.UNDECIDED, f"{one.says}: {one.note}")
    if len(run.times) > 1 and not np.isfinite(evidence.error):
        return say(
            Outcome.UNDECIDED,
            f"the error of this run could not be measured: {evidence.finer_words}",
        )
    try:
        m = theorem.measure(evidence)
    except ArithmeticError as problem:  # z does not fit in double, or rounding destroys it
        return say(Outcome.UNDECIDED, f"{problem} A shorter run would decide")
    if not np.isfinite(m.value) or not np.isfinite(m.error):
        return say(Outcome.UNDECIDED, m.needs or "the number cannot be measured on this run", m)
    if m.value - m.bound > m.error:
        # a theorem cannot be contradicted: then the data are wrong, or attnlab is
        return say(Outcome.CONTRADICTED, CONJECTURE if theorem.kind == "conjecture" else "", m)
    if m.largest - m.bound <= m.error:
        within = (
            f"the largest possible value, {m.largest:.2g}, is within the bound {m.bound:.2g} and"
            f" the error {m.error:.2g}"
        )
        more = "more tokens or a smaller error would decide"
        return say(Outcome.UNDECIDED, f"no data of this shape could fail: {within}; {more}", m)
    if m.error > m.resolution:
        hidden = (
            f"the error {m.error:.2g} is larger than the resolution {m.resolution:.2g} that a"
            " decision needs"
        )
        return say(Outcome.UNDECIDED, f"{hidden}: {evidence.finer_words}", m)
    if not m.is_reached:
        return say(Outcome.UNDECIDED, m.needs, m)
    if run.status not in (
        Status.OK,
        Status.PAST_DOUBLE_PRECISION,
    ):  # data before the wall are as good as any
        return say(Outcome.UNDECIDED, f"the run ended early. {run.status.value}", m)
    if not evidence.departure <= FOREIGN * evidence.error + ROUNDING:
        # they may satisfy the claim, but they are not an instance of it
        own = (
            f"the data are {evidence.departure:.2g} from the solution of their equation, although"
            f" their stated error is {evidence.error:.2g}"
        )
        return say(Outcome.UNDECIDED, f"{own}: a run of that equation would decide", m)
    return say(Outcome.SUPPORTED, "", m)
