"""flow: the equation of the theory with the matrices of a trained head, or of all heads of a layer.

    x' = sum_h sum_j P^h_ij V_h x_j,        P^h = softmax(<Q_h x_i, K_h x_j>)

No other part of the model is used. The study follows directions x / |x|: tokens grow along the
leading eigenvectors of V, and their directions converge if the rescaled tokens do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attnlab.analysis.attention import effective_rank, received
from attnlab.analysis.principal_axes import principal
from attnlab.checks import positive
from attnlab.displayed import LONGEST, VERBS, Displayed, short_repr, shorten
from attnlab.dynamics.attention import attention_matrices
from attnlab.engine.threads import one_blas_thread, pool
from attnlab.limits.allowance import WORK
from attnlab.models.checkpoints.head_names import name_heads
from attnlab.models.checkpoints.model import Model, check_stream
from attnlab.models.checkpoints.token_norms import entering, measure_radius
from attnlab.models.checkpoints.tokens import read_tokens
from attnlab.models.studies.flow_end import FlowEnd, read_end, times_to_show
from attnlab.models.studies.flow_steps import MOST_STEPS, TOLERANCE, describe_solver, solve_flow
from attnlab.models.studies.sentences import COSINE, measure_tokens
from attnlab.models.studies.spectra_table import MeasuredHead, measure_heads
from attnlab.progress import Progress, ProgressOption, track
from attnlab.registry import unknown_name
from attnlab.starts import start_laws
from attnlab.theory import theorems
from attnlab.theory.evidence import Evidence
from attnlab.theory.verbs import verdict
from attnlab.types import Dynamics, Limit, Spec, Status, Trajectory, Weights
from attnlab.verdicts import Verdict

if TYPE_CHECKING:
    import xarray

RESULTS = ("three_hyperplanes", "coordinate_extremes", "codimension")
"""The statements that are checked: those about a single head with a general V."""

MOST_CHECKED = 1.5e7
"""By default verdicts are computed up to this many multiplications per evaluation: their finer run
needs up to 60,000.
"""

IN_DOUBT = 0.1
"""If the directions for the two step lengths differ by more than this, the direction of that token
is unknown.
"""


class RandomStart(NamedTuple):
    """The meaning of a word of flow: a start law, and its keys. has_radius: whether tokens have the
    norm of those that the layer reads; otherwise their size does not depend on the model.
    """

    law: str
    keys: Mapping[str, float] = {}
    has_radius: bool = False

    def all_keys(self, radius: float) -> dict[str, float]:
        """Return the keys of the law, for layers that read tokens of this norm."""
        return {**self.keys, **({"radius": radius} if self.has_radius else {})}

    def __call__(self, rng: Any, n: int, d: int, radius: float | None = None) -> np.ndarray:
        """Return the tokens (n, d). The default radius is sqrt(d)."""
        keys = self.all_keys(math.sqrt(d) if radius is None else radius)
        tokens: np.ndarray = start_laws[self.law](n, d, **keys, rng=rng)
        return tokens


starts = {
    "sphere": RandomStart("sphere", has_radius=True),
    "normal": RandomStart("normal"),
    "cube": RandomStart("uniform_cube", {"low": -5.0, "high": 5.0}),
}
"""{word of flow: its start law}."""


@dataclass(frozen=True, eq=False)
class Flow(Displayed):
    """The flow of heads: the run, where it ends, verdicts, and numbers over time.

    data, by time: plane (.., token, axis) the directions on three principal axes, explained (axis);
    label, clusters, cosine and rank as in `sentence`; log_norm; eigenvalue (.., head, order) the
    moduli of the eigenvalues of P, largest first, and mean_eigenvalue (.., order) those of the mean
    over heads; radius, the spectral radius of the sum of all P^h, which is the number of heads;
    attention_rank (.., head) effective; received (.., token), leader; apart (.., token), see
    flow_steps.

    Attributes
    ----------
    run : Trajectory
        The run. `run.spec` reproduces it; it is None if the model is in memory only.
    data : xarray.Dataset
        The numbers over time.
    words : tuple of str
        The piece of text of each token.
    limit, no_limit : Limit or None, and str
        The limit, or the reason why there is none.
    verdicts, no_check : tuple of Verdict, and str
        The verdicts, or the reason why there are none.
    heads : tuple of MeasuredHead
        The numbers of each head that took part.
    """

    run: Trajectory
    data: xarray.Dataset
    words: tuple[str, ...]
    limit: Limit | None = None
    no_limit: str = ""
    verdicts: tuple[Verdict, ...] = ()
    heads: tuple[MeasuredHead, ...] = ()
    no_check: str = ""

    @property
    def name(self) -> str:
        """The name of the model and its head, such as minilm L5H10."""
        facts = self.data.attrs
        return (
            f"{facts['model']}"
            f" {name_heads(facts['layer'], facts['head'] if facts['head'] >= 0 else None)}"
        )

    def __repr__(self) -> str:
        first, last = (int(self.data["clusters"].values[at]) for at in (0, -1))
        reached = (
            f"{first} clusters of directions become {last} by t ="
            f" {float(self.data['time'].values[-1]):g}"
        )
        return shorten(f"Flow({self.name}: {len(self.words)} tokens, {reached})", LONGEST)

    @property
    def status(self) -> str:
        """A sentence about how the run ended."""
        if self.run.is_ok:
            return f"{self.run.status.value}"
        return (
            f"It stopped at t = {self.run.stats['reached']:.4g} of {self.run.solve.t_end:g}."
            f" {self.run.status.value}"
        )

    @property
    def in_doubt(self) -> np.ndarray:
        """The numbers of the tokens whose direction at the end depends on the length of steps."""
        if "apart" not in self.data:
            return np.zeros(0, dtype=int)
        return np.flatnonzero(~(self.data["apart"].values[-1] <= IN_DOUBT))

    @cached_property
    def clusters(self) -> list[Cluster]:
        """The clusters at the end, the largest first."""
        return _final_clusters(self.run, self.data["label"].values[-1].astype(int))

    @cached_property
    def end(self) -> FlowEnd | None:
        """What the limit certifies about groups, leaders and the horizon; None where nothing is."""
        return None if self.limit is None else read_end(self.limit)


@dataclass(frozen=True)
class Cluster(Displayed):
    """Tokens of one direction at the end of a flow. share: the share of their attention that the
    leader gets.

    nearest: the token whose direction at the start is closest to the present direction of the
    cluster, with its cosine.
    """

    members: tuple[int, ...]
    leader: int
    share: float
    nearest: int
    cosine: float
    __repr__ = short_repr
    instead = dict.fromkeys(VERBS, "It is a part of a Flow. Give the Flow.")


def flow(
    model: Model,
    layer: int = 0,
    head: int | None = None,
    *,
    text: str | None = None,
    ids: Any = None,
    special: bool = True,
    start: str | None = None,
    n: int | None = None,
    rng: int = 0,
    x0: Any = None,
    t_end: float = 5.0,
    saves: int = 51,
    stepper: str | None = None,
    dt: float | None = None,
    rtol: float = TOLERANCE,
    max_steps: int = MOST_STEPS,
    cosine: float = COSINE,
    limit: bool = True,
    check: bool | None = None,
    work: float | None = None,
    budget: float = 20.0,
    progress: ProgressOption = None,
) -> Flow:
    """Simulate the flow of one head, or of all heads of a layer, and return the Flow.

    A run that stops early is kept up to its end, and `status` says so.

    Parameters
    ----------
    model : Model
        The model.
    layer, head : int, optional
        The layer and the head, counted from 0. The default is all heads of layer 0.
    text, ids, special : optional
        Start from the stream that enters the layer when the model reads this text or these ids,
        with or without special tokens. A model without an embedding reads x (n, d) in the place of
        ids.
    start, n, rng : str, int, int, optional
        Otherwise: the law of n = 30 random tokens, and their seed. "sphere" has the radius that the
        tokens of this layer have: the root mean square norm of what its attention reads when the
        model reads random ids (always the same ones). A model without an embedding reads standard
        normal tokens there. Matrices alone say nothing about norms, so their radius is sqrt(d). The
        Spec of the run has the radius. "normal" (independent standard normal coordinates) and
        "cube" ([-5, 5]^d) do not depend on the model.
    x0 : array (n, d), optional
        Otherwise: these tokens, as attention reads them: after a norm, without its gain.
    t_end, saves : float, int, optional
        The end of the run, and the number of saved times.
    stepper, dt, rtol, max_steps : optional
        "adaptive" (to rtol, with max_steps), or "rk4" or "euler" (steps of dt, by default 0.01).
        The default is rk4 if dt is given, adaptive if dt is 0 or the system is small, and rk4
        otherwise.
    cosine : float, optional
        Tokens whose directions have at least this cosine are in one cluster.
    limit, work, budget : bool, float, float, optional
        Whether to compute t = infinity (of one head), with this work (by default 500,000) and these
        seconds. See `attnlab.limit`.
    check : bool, optional
        Whether to check the theorems (of one head). By default they are checked if that does not
        take minutes.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    Flow
        The run, its limit, its verdicts, and numbers over time.

    Examples
    --------
    >>> import attnlab as al
    >>> flow = al.models.flow(model, 0, 1, ids=[3, 1, 4, 1, 5], t_end=0.5, saves=6, limit=False, check=False)
    >>> flow.run.batch, flow.run.n, len(flow.run.times)
    ((), 5, 6)
    """
    weights = model.weights(layer, head)
    if not -1 < cosine < 1:
        raise ValueError(f"cosine must be between -1 and 1, got {cosine!r}.")
    x0, words, about, law = _start(model, layer, text, ids, special, start, n, rng, x0)
    with track(progress, "simulating") as progress:
        runs = solve_flow(
            weights,
            x0,
            stepper,
            dt,
            progress.part(0.0, 0.4),
            t_end=t_end,
            saves=saves,
            rtol=rtol,
            max_steps=max_steps,
            mask="causal" if model.config.is_causal else "full",
        )
        run = replace(runs[0], spec=_spec(model, layer, head, law, runs[0], saves))
        if any(one.status is Status.INTERRUPTED for one in runs):
            progress.raise_if_cancelled()
            raise KeyboardInterrupt
        if not len(run.times):
            raise ValueError(
                f"The flow must have at least one saved time; it has none. {run.status.value}"
            )
        data = measure_flow(run, words, cosine, progress.part(0.4, 0.6, "measuring"))
        if len(runs) > 1:
            data["apart"] = (("time", "token"), _apart(*runs))
        data.attrs |= {
            "model": model.name,
            "layer": layer,
            "head": -1 if head is None else head,
            "paper": _paper(model, head),
            "start": about,
            "text": text or "",
            "special": int(special),
            "cosine_scale": cosine,
            "weights": weights.source,
            "status": run.status.name,
            "solved": describe_solver(run),
        }
        no_check = _why_no_check(weights, len(x0), check)
        found, why, verdicts = _ends(run, limit, no_check, work, budget, progress.part(0.6, 0.95))
        heads = tuple(measure_heads(model, layer, head, progress=progress.part(0.95, 1.0)))
        return Flow(run, data, words, found, why, verdicts, heads, no_check)


def _paper(model: Model, head: int | None) -> str:
    """Return the name of this head in the paper, which counts those of albert-xlarge from 1; "" for
    any other model.
    """
    shape = (model.config.family, model.config.d, model.config.heads)
    return f"paper: head {head + 1}" if head is not None and shape == ("albert", 2048, 16) else ""


def _directions(run: Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (unit vectors (T, n, d), logarithms of norms (T, n), states). Directions need no
    scale.
    """
    states, log_scale = run.scaled_x()
    norms = np.linalg.norm(states, axis=-1)
    return states / norms[..., None], np.log(norms) + log_scale[:, None], states


def _apart(run: Trajectory, coarse: Trajectory) -> np.ndarray:
    """Return the distance between the directions of two runs, (T, n); NaN after the end of the
    second.
    """
    ours, theirs = (_directions(one)[0] for one in (run, coarse))
    apart = np.full(ours.shape[:2], np.nan)
    common = min(len(ours), len(theirs))
    apart[:common] = np.linalg.norm(ours[:common] - theirs[:common], axis=-1)
    return apart


def measure_flow(
    run: Trajectory, words: Any, cosine: float = COSINE, progress: Progress | None = None
) -> xarray.Dataset:
    """Return the numbers of a run over time; see Flow."""
    import xarray

    unit, log_norms, states = _directions(run)
    numbers = measure_tokens(unit, cosine)
    del numbers["norm"]
    plane, explained = principal(unit)
    _, log_scale = run.scaled_x()
    found = []
    with one_blas_thread():  # for such small matrices one thread per matrix is faster
        parts = pool().map(
            lambda at: _attention_numbers(run.dynamics, states[at], float(log_scale[at])),
            range(len(run.times)),
        )
        for number, part in enumerate(parts):
            found.append(part)
            if progress is not None:
                progress((number + 1) / len(run.times))
    moduli, mean_moduli, ranks, shares = (np.stack(column) for column in zip(*found, strict=True))
    variables: dict[str, Any] = {
        "plane": (("time", "token", "axis"), plane),
        "explained": ("axis", explained),
        "log_norm": ("time", log_norms.mean(axis=1)),
        "eigenvalue": (("time", "head", "order"), moduli),
        "mean_eigenvalue": (("time", "order"), mean_moduli),
        "radius": ("time", mean_moduli[:, 0] * moduli.shape[1]),
        "attention_rank": (("time", "head"), ranks),
        "received": (("time", "token"), shares),
        "leader": ("time", shares.argmax(axis=-1)),
    }
    variables |= {
        name: (("time", "token")[: values.ndim], values) for name, values in numbers.items()
    }
    return xarray.Dataset(variables, coords={"time": run.times, "word": ("token", list(words))})


def _attention_numbers(
    dynamics: Dynamics, y: np.ndarray, log_scale: float
) -> tuple[np.ndarray, ...]:
    """For tokens e^{log_scale} y (n, d), return moduli of eigenvalues of P (h, n) and of the mean
    of P (n,), ranks, shares.
    """
    P = attention_matrices(dynamics, y, log_scale)  # (h, n, n)
    return _moduli(P), _moduli(P.mean(axis=0)), effective_rank(P), received(P).mean(axis=0)


def _moduli(P: np.ndarray) -> np.ndarray:
    """Return |eigenvalues| of (..., n, n), largest first."""
    return -np.sort(-np.abs(np.linalg.eigvals(P)), axis=-1)


def _final_clusters(run: Trajectory, labels: np.ndarray) -> list[Cluster]:
    first, last = (
        run.states[at] if run.basis is None else run.states[at] @ run.basis.T for at in (0, -1)
    )
    unit, end = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (first, last))
    P = attention_matrices(run.dynamics, last, float(run.log_scale[-1])).mean(axis=0)
    clusters = []
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        looks = P[members].mean(axis=0)
        centre = end[members].mean(axis=0)
        near = unit @ centre / np.linalg.norm(centre)
        leader, nearest = int(looks.argmax()), int(near.argmax())
        clusters.append(
            Cluster(
                tuple(members.tolist()), leader, float(looks[leader]), nearest, float(near[nearest])
            )
        )
    return sorted(clusters, key=lambda one: (-len(one.members), one.members[0]))


def _start(
    model: Model,
    layer: int,
    text: str | None,
    ids: Any,
    special: bool,
    start: str | None,
    n: int | None,
    rng: int,
    x0: Any,
) -> tuple[np.ndarray, tuple[str, ...], str, dict[str, Any]]:
    """Return the first tokens (n, d), their words, a description of their source, and the table
    [start] of a Spec.
    """
    d = model.config.d
    given = (text is not None, ids is not None, start is not None or n is not None, x0 is not None)
    if sum(given) > 1 and not (given[0] and given[1]):
        raise ValueError(
            "A flow starts from a text, from ids, from x0, or from random tokens (start and n). Give"
            " one of them."
        )
    if x0 is not None:
        tokens = check_stream(x0, model.config).astype(float)
        if tokens.ndim != 2 or len(tokens) < 2:
            raise ValueError(
                f"x0 must be the tokens of one start, two or more: (n, {d}). Got shape"
                f" {tokens.shape}."
            )
        words = tuple(f"#{place}" for place in range(len(tokens)))
        return tokens, words, f"{len(tokens)} given tokens", {"law": "given", "x": tokens}
    if text is not None or ids is not None:
        read = read_tokens(model, text, ids, special)
        # the gain of a norm before attention is in Q, K and V
        first = entering(model, layer, read.given)
        law: dict[str, Any] = {"law": "text", "model": model.address, "layer": layer}
        # a Spec finds the model with its own tokenizer, which may cut the text otherwise
        has_ids = text is None or model.given_tokenizer is not None
        law |= {"ids": read.ids} if has_ids else {"text": text, "special": bool(special)}
        if read.x is not None:
            law = {"law": "given", "x": first}
        what = "ids" if read.x is None else "vectors"
        about = f"'{read.text}'" if read.text else f"{len(read.ids)} {what}"
        return (
            first,
            read.words,
            f"{about} as it enters layer {layer}{'' if special else ', without special tokens'}",
            law,
        )
    count = 30 if n is None else n
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise ValueError(f"n must be a whole number of tokens, 2 or more, got {n!r}.")
    if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
        raise ValueError(f"rng must be a seed, a whole number that is not negative, got {rng!r}.")
    name = "sphere" if start is None else start
    if name not in starts:
        raise unknown_name("start", name, starts)
    drawn = starts[name]
    radius, source = measure_radius(model, layer) if drawn.has_radius else (math.sqrt(d), "")
    size = f" of radius {radius:.3g}, {source}" if source else ""
    law = {"law": drawn.law, "n": count, "d": d, **drawn.all_keys(radius), "rng": rng}
    return (
        drawn(rng, count, d, radius),
        tuple(str(i) for i in range(count)),
        f"{count} random tokens ({name}{size}, seed {rng})",
        law,
    )


def _spec(
    model: Model, layer: int, head: int | None, start: dict[str, Any], run: Trajectory, saves: int
) -> Spec | None:
    """Return the Spec of a run with the weights of a head, or of all heads of a layer
    (head=None).
    """
    if model.address is None:
        return None
    solve, dynamics = run.solve, {"mask": "causal"} if model.config.is_causal else {}
    how = (
        {"rtol": solve.rtol}
        if solve.stepper == "adaptive"
        else {"stepper": solve.stepper, "dt": solve.dt, "frame": solve.frame}
    )
    weights = {"family": "model", "name": model.address, "layer": layer} | (
        {} if head is None else {"head": head}
    )
    return Spec(
        weights,
        start,
        {"t_end": solve.t_end, "saves": saves, **how, "max_steps": solve.max_steps},
        dynamics,
    )


def _why_no_check(weights: Weights, n: int, asked: bool | None) -> str:
    """Return "" if the theorems are checked, else the reason why not."""
    if asked is False:
        return "not asked for"
    if weights.heads > 1:
        return "the statements that a flow checks are about one head"
    width = weights.Q.shape[1] + (weights.V[0].shape[2] if weights.is_factored else weights.d)
    if asked is None and 2 * n * weights.d * width > MOST_CHECKED:
        return (
            f"the finer run for {n} tokens of d = {weights.d} would take minutes; give check=True"
            " to compute it"
        )
    return ""


def _ends(
    run: Trajectory,
    is_limit: bool,
    no_check: str,
    work: float | None,
    budget: float,
    progress: Progress,
) -> tuple[Limit | None, str, tuple[Verdict, ...]]:
    """Return (the certified limit or None, why there is none, verdicts). Both use one attempt at
    the limit.
    """
    is_single = run.dynamics.weights.heads == 1
    evidence = Evidence(
        run,
        positive("budget", budget),
        WORK / 3.0 if work is None else positive("work", work),
        times=times_to_show(run.dynamics.weights) if is_limit and is_single else (),
    )
    found, why = None, "not asked for"
    if is_limit and not is_single:
        why = (
            "With several heads a limit is certified only if V_h = v_h I in every head, which"
            " trained heads do not satisfy. Choose one head."
        )
    elif is_limit:
        evidence.progress = progress.part(0.0, 0.3, "reaching t = infinity")
        try:
            found = evidence.end
        except (
            ValueError,
            NotImplementedError,
        ) as problem:  # `limit` refuses it, such as Jordan blocks: not a failure
            why = str(problem)
        if found is not None:
            why = "" if found.certified else found.reason
            found = None if found.count is None and not found.certified else found
    verdicts = []
    for number, name in enumerate(() if no_check else RESULTS):
        evidence.progress = progress.part(0.3, 1.0).piece(number, len(RESULTS), f"checking {name}")
        evidence.progress(0.0)
        verdicts.append(verdict(theorems[name], evidence))
    return found, why, tuple(verdicts)
