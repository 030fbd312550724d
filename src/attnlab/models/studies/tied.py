"""iterate: apply one layer of a model repeatedly to the tokens of a sentence.

ALBERT is such a map by design. For other models any layer can be studied: does it gather the
tokens, into which groups, how fast, and which words lead?
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.analysis.clusters import cluster_labels
from attnlab.analysis.principal_axes import principal
from attnlab.analysis.rates import fit_exponential
from attnlab.models.checkpoints.forward import enter, seen_by
from attnlab.models.checkpoints.model import Model
from attnlab.models.checkpoints.slices import check_index
from attnlab.models.checkpoints.tokens import Tokens, read_tokens
from attnlab.models.studies.idealised import repeat_idealised, start
from attnlab.models.studies.sentences import (
    COSINE,
    describe,
    measure_attention,
    measure_tokens,
    token_names,
)
from attnlab.models.studies.variants import repeat_layer
from attnlab.progress import Progress, ProgressOption, track

if TYPE_CHECKING:
    import xarray

STILL = 1e-10
"""Tokens that move by less than this part of their size are at rest; a cycle returns to within
it.
"""

MOVES = 1e-6
"""A cycle moves by more than this in each layer; an oscillating approach to rest is not a cycle."""

STILL_FOR = 3
"""The tokens must be at rest for so many layers in a row."""

LONGEST_PERIOD = 32
SAME = 1e-6
"""Tokens closer than this part of their size (single linkage) are one point in the end."""

LEVELS = (0.9, 0.99)
FIT_HIGH, FIT_LOW, FIT_LEAST = 0.1, 1e-11, 6
"""A rate is fitted while the values are between these parts of their largest value, over six layers
or more.
"""


def iterate(
    model: Model,
    text: str | None = None,
    *,
    ids: Any = None,
    special: bool = True,
    layer: int = 0,
    times: int = 400,
    cosine: float = COSINE,
    idealised: bool = False,
    progress: ProgressOption = None,
) -> xarray.Dataset:
    """Apply one layer of the model repeatedly, until the tokens settle or `times` layers are over.

    Variables by step (0 is the embedding): cosine, cosine_least, clusters, label, rank, norm,
    received, leader, entropy as in `sentence` (cosine_least is that of the two tokens that differ
    most, and leader is the first of equals); change, which is
    |X_k - X_(k-1)| / |X_k|; turning, the same for the directions; spread, the root mean square distance of the directions from
    the middle of their last group (NaN where every group has one token). By token: point, the
    tokens that share one point in the end. By level (0.9, 0.99): passed and passed_by_all, the
    layer after which the mean cosine, and that of every pair, stays above it. x (moment, token,
    coordinate) is the stream at the steps `at`: the start, the depth of the model, and the end.
    plane (step, token, axis) has the directions on the three principal axes of all steps together,
    and explained (axis) how much of their variance each axis shows.

    Attributes of the Dataset: `outcome` is settled, cycle (with `period`), settling, drifting,
    moving or overflow; `rate`, `rate_low` and `rate_high` are the factor by which the spread
    shrinks in a layer with its 95 % interval, fitted from `rate_from` to `rate_to`; `approach...`
    is the same for the change; `answer` describes everything in words.

    Parameters
    ----------
    model : Model
        The model.
    text, ids : str, or array (n,), optional
        A sentence, or the ids of tokens for a model without a tokenizer.
    special : bool, optional
        Whether to add the model's own tokens at the ends.
    layer : int, optional
        The layer to repeat.
    times : int, optional
        The largest number of layers.
    cosine : float, optional
        Tokens whose directions have this cosine or more are in one cluster.
    idealised : bool, optional
        Whether to follow the idealised model of this layer instead: the theory's flow with its
        attention matrices, for one unit of time per layer. `sentence` compares it with the model.
    progress : bool, function or Progress, optional
        False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
        cancel.

    Returns
    -------
    xarray.Dataset
        The variables.

    Examples
    --------
    >>> import attnlab as al
    >>> data = al.models.iterate(model, ids=[3, 1, 4], times=5)
    >>> data.sizes["step"] <= 6
    True
    """
    from attnlab.engine.threads import one_blas_thread

    tokens = read_tokens(model, text, ids, special)
    if isinstance(times, bool) or not isinstance(times, int | np.integer) or times < 2:
        raise ValueError(f"times must be a whole number of layers, 2 or more, got {times!r}.")
    if not -1 < cosine < 1:
        raise ValueError(f"cosine must be between -1 and 1, got {cosine!r}.")
    layer = check_index("layer", layer, model.config.layers)
    with (
        track(progress, "iterating") as progress,
        one_blas_thread(),
        np.errstate(over="ignore", invalid="ignore", divide="ignore"),
    ):
        path = _Path(model, tokens, layer, int(times), idealised, progress)
        data = _dataset(path, tokens, cosine)
    describe(data)
    data.attrs |= {
        "kind": "iteration",
        "model": model.name,
        "source": model.source,
        "family": model.config.family,
        "layers": model.config.layers,
        "is_tied": int(model.config.is_tied),
        "layer": layer,
        "text": tokens.text,
        "special": int(special),
        "unknown": tokens.unknown,
        "cosine_scale": cosine,
        "times": int(times),
        "idealised": int(idealised),
    }
    data.attrs["answer"] = _answer(data)
    return data


class _Path:
    """The states of an iteration, how far each is from the one before, and how it ended."""

    def __init__(
        self,
        model: Model,
        tokens: Tokens,
        layer: int,
        times: int,
        idealised: bool,
        progress: Progress,
    ):
        x0 = x = enter(model.parts, tokens.given, np.float64)
        if idealised:
            y, radius = start(model, x0)
            x = radius * y
        seen = seen_by(model.config, np.ones(len(tokens.ids), dtype=bool))
        self.seen, self.depth = seen, model.config.layers
        self.unit = [_directions(x)]  # (steps, n, d)
        self.norms, self.change = [np.linalg.norm(x, axis=-1)], [math.nan]
        self.attention: list[np.ndarray] = []
        self.outcome, self.period, self.returns = "", 0, (0, math.nan)
        recent = deque([x], maxlen=LONGEST_PERIOD + 1)
        repeated = (
            repeat_idealised(model, x0, layer, times)
            if idealised
            else repeat_layer(model, x0, seen, layer, times)
        )
        for number, step in enumerate(repeated, 1):
            size = float(np.linalg.norm(step.x))
            if not math.isfinite(size):
                self.outcome = "overflow"
                break
            size = size or 1.0
            self.unit.append(_directions(step.x))
            self.norms.append(np.linalg.norm(step.x, axis=-1))
            self.attention.append(step.attention)
            self.change.append(float(np.linalg.norm(step.x - recent[-1])) / size)
            self._look(step.x, recent, size)
            recent.append(step.x)
            progress(number / times, f"layer {number}")
            if self.outcome:
                break

    def _look(self, x: np.ndarray, recent: deque[np.ndarray], size: float) -> None:
        """Check whether the tokens have settled, or have returned to an earlier state."""
        last = self.change[-STILL_FOR:]
        if len(last) == STILL_FOR and max(last) <= STILL:  # NaN, the first, is never
            self.outcome, self.period = "settled", 1
        elif self.change[-1] > MOVES:
            before = list(recent)[::-1]  # 1, 2, ... layers ago
            gaps = [float(np.linalg.norm(x - earlier)) / size for earlier in before[1:]]
            nearest = int(np.argmin(gaps)) if gaps else 0
            self.returns = (nearest + 2, gaps[nearest]) if gaps else (0, math.nan)
            period = next((number + 2 for number, gap in enumerate(gaps) if gap <= STILL), 0)
            if period:
                self.outcome, self.period = "cycle", period


def _directions(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _dataset(path: _Path, tokens: Tokens, cosine: float) -> xarray.Dataset:
    import xarray

    unit, norms, change = np.stack(path.unit), np.stack(path.norms), np.array(path.change)
    numbers = measure_tokens(unit, cosine)
    del numbers["cosine_low"]
    numbers["norm"] = norms.mean(axis=1)
    numbers["cosine_least"] = np.array([(u @ u.T).min() for u in unit])
    if path.attention:  # not where the first layer overflows
        found = measure_attention(np.stack(path.attention), path.seen)
        numbers |= {
            name: np.concatenate([values, np.full((1, *values.shape[1:]), np.nan)])
            for name, values in found.items()
        }
        numbers["leader"] = np.append(_leading(found["received"]), np.nan)
        del numbers["attention_rank"]
    numbers["change"] = change
    numbers["turning"] = np.concatenate(
        [[np.nan], np.linalg.norm(np.diff(unit, axis=0), axis=(1, 2)) / math.sqrt(unit.shape[1])]
    )
    numbers["spread"] = _spread(unit, numbers["label"][-1])
    outcome = path.outcome or _unfinished(numbers)
    last = unit[-1] * norms[-1][:, None]
    size = math.sqrt(float((last**2).sum(axis=1).mean()))
    point = cluster_labels(last, SAME * size)
    moments = sorted({0, min(path.depth, len(unit) - 1), len(unit) - 1})
    plane, explained = principal(unit)
    passed = {
        name: [_stays_above(numbers[of], level) for level in LEVELS]
        for name, of in (("passed", "cosine"), ("passed_by_all", "cosine_least"))
    }
    data = xarray.Dataset(
        {name: (("step", "token")[: values.ndim], values) for name, values in numbers.items()}
        | {
            "point": ("token", point),
            "x": (("moment", "token", "coordinate"), unit[moments] * norms[moments][..., None]),
            "plane": (("step", "token", "axis"), plane),
            "explained": ("axis", explained),
        }
        | {name: ("level", np.array(values, dtype=float)) for name, values in passed.items()},
        coords={
            "step": np.arange(len(unit)),
            "level": list(LEVELS),
            "at": ("moment", moments),
            "word": ("token", list(tokens.words)),
            "is_special": ("token", tokens.is_special.astype(np.int8)),
            "id": ("token", tokens.ids),
        },
    )
    data.attrs |= {
        "outcome": outcome,
        "period": path.period,
        "steps": len(unit) - 1,
        "points": int(point.max()) + 1,
        "returns_after": path.returns[0],
        "returns_within": path.returns[1],
    }
    data.attrs |= fit_rate("rate", numbers["spread"]) | fit_rate("approach", change)
    return data


def _leading(shares: np.ndarray) -> np.ndarray:
    """Return the token that receives most in each layer, (layers,). Of tokens in one point it is
    the first.
    """
    return (shares > shares.max(axis=1, keepdims=True) * (1 - SAME)).argmax(axis=1)


def _spread(unit: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the width of the last groups at every step, (steps,). Groups of one token have no
    width and are left out.
    """
    squares, count = np.zeros(len(unit)), 0
    for label in np.unique(labels[np.isfinite(labels)]):
        members = unit[:, labels == label]
        if members.shape[1] > 1:
            squares += np.square(members - members.mean(axis=1, keepdims=True)).sum(axis=(1, 2))
            count += members.shape[1]
    return np.sqrt(squares / count) if count else np.full(len(unit), np.nan)


def _stays_above(values: np.ndarray, level: float) -> float:
    """Return the step after which values stay above the level; NaN if the last one is not above
    it.
    """
    below = np.flatnonzero(~(values > level))
    first = int(below[-1]) + 1 if len(below) else 0
    return float(first) if first < len(values) else math.nan


def _unfinished(numbers: dict[str, np.ndarray]) -> str:
    """Return the state after the last layer: settling, drifting or moving."""
    change, norm = numbers["change"], numbers["norm"]
    approach = fit_rate("approach", change)
    if change[-1] < 1e-3 * np.nanmax(change) and approach["approach_high"] < 1:
        return "settling"
    middle = len(norm) // 2
    steady = np.diff(norm[middle:])
    if len(steady) > 2 and norm[-1] > 1.2 * norm[middle] and (steady > 0).mean() > 0.9:
        return "drifting"
    return "moving"


def fit_rate(name: str, values: np.ndarray) -> dict[str, float | int]:
    """Fit the factor per layer by which values (steps,) shrink, with its 95 % interval and its
    layers; NaN if there is none.

    The window is where the values are between 0.1 and 1e-11 of their maximum and stay below. Its
    first half, which is not yet exponential, is left out. Neighbouring residuals are correlated.
    With r their correlation, the standard error of least squares is multiplied by the root of (1 +
    r) / (1 - r), and the number of points is reduced accordingly.
    """
    from scipy.stats import t as student

    nothing: dict[str, float | int] = {
        name: math.nan,
        f"{name}_low": math.nan,
        f"{name}_high": math.nan,
        f"{name}_from": -1,
        f"{name}_to": -1,
    }
    is_there = np.isfinite(values)
    if not is_there.any() or np.nanmax(values) <= 0:
        return nothing
    part = np.where(is_there, values, np.inf) / np.nanmax(values)
    start = int(np.flatnonzero(part > FIT_HIGH)[-1]) + 1
    low = np.flatnonzero(part[start:] < FIT_LOW)
    stop = start + int(low[0]) if len(low) else len(part)
    start += (stop - start) // 2
    if stop - start < FIT_LEAST:
        return nothing
    steps = np.arange(start, stop, dtype=float)
    fit = fit_exponential(steps, values[start:stop])
    rest = np.log(values[start:stop]) - fit.intercept - fit.slope * steps
    energy = float(rest @ rest)
    alike = min(max(float(rest[1:] @ rest[:-1]) / energy, 0.0), 0.99) if energy > 0 else 0.0
    free = max(len(steps) * (1 - alike) / (1 + alike), 3.0) - 2
    half = fit.slope_error * math.sqrt((1 + alike) / (1 - alike)) * float(student.ppf(0.975, free))
    return {
        name: math.exp(fit.slope),
        f"{name}_low": math.exp(fit.slope - half),
        f"{name}_high": math.exp(fit.slope + half),
        f"{name}_from": start,
        f"{name}_to": stop - 1,
    }


def name_groups(data: xarray.Dataset, most: int = 8) -> list[str]:
    """Return the words of the last groups, the largest group first."""
    label, words = (
        data["label"].values[-1],
        np.array([str(word).strip() or "_" for word in data["word"].values]),
    )
    groups = [np.flatnonzero(label == value) for value in np.unique(label[np.isfinite(label)])]
    groups.sort(key=lambda members: (-len(members), members[0]))
    return [
        " ".join(words[members[:most]])
        + (f" ... ({len(members)} tokens)" if len(members) > most else "")
        for members in groups
    ]


def find_grouping_step(data: xarray.Dataset) -> int:
    """Return the step after which every token stays in its last group."""
    label = data["label"].values
    other = np.flatnonzero((label != label[-1]).any(axis=1))
    return int(other[-1]) + 1 if len(other) else 0


def _answer(data: xarray.Dataset) -> str:
    """Describe the iteration: its groups, how fast they form, how it ends, and which words lead."""
    if data.attrs["steps"] == 0:
        return "The numbers already overflow in the first layer."
    facts, change = data.attrs, data["change"].values
    return " ".join(
        [
            _describe_groups(data),
            *_describe_rate(data, "rate", "Differences within a group shrink"),
            ENDS[facts["outcome"]](data, float(change[-1])),
            _describe_leaders(data),
        ]
    )


def _describe_groups(data: xarray.Dataset) -> str:
    n, clusters = data.sizes["token"], data["clusters"].values
    count, scale, points = int(clusters[-1]), data.attrs["cosine_scale"], data.attrs["points"]
    since = find_grouping_step(data)
    is_one_point = "; the tokens of a group have met in one point" if points == count < n else ""
    if count == 1:
        everybody = data["passed_by_all"].values
        level = next((number for number in (1, 0) if np.isfinite(everybody[number])), None)
        if level is None:
            return (
                f"After {since} layers the {n} tokens are one group, connected by chains of cosines"
                f" > {scale:g}."
            )
        end = ", and in the end they are one point" if points == 1 else ""
        alike = f"point the same way (cosine > {LEVELS[level]:g} for every pair)"
        return f"After {everybody[level]:.0f} layers all {n} tokens {alike}{end}."
    if count == n and clusters[0] == n:
        return (
            f"No clusters form: at cosine {scale:g} the {n} tokens are {n} groups, as at the start."
        )
    if count >= clusters[0]:
        return (
            f"No clusters form: {count} groups at cosine {scale:g}, and {int(clusters[0])} at the"
            f" start, of {n} tokens."
        )
    named = name_groups(data)
    shown = " | ".join(named[:4]) + (f" | and {count - 4} more" if count > 4 else "")
    return (
        f"After {since} layers the {n} tokens are in {count} groups at cosine {scale:g}"
        f" ({shown}){is_one_point}."
    )


def _describe_rate(data: xarray.Dataset, name: str, words: str) -> list[str]:
    value, low, high, start, stop = (
        data.attrs[f"{name}{end}"] for end in ("", "_low", "_high", "_from", "_to")
    )
    if not math.isfinite(value):
        return []
    if high >= 1:
        return []  # it may not shrink at all
    digits = next(
        (digits for digits in (2, 3, 4) if f"{low:.{digits}f}" != f"{high:.{digits}f}"), 4
    )
    return [
        f"{words} by a factor {value:.{digits}f} per layer "
        f"({low:.{digits}f} to {high:.{digits}f}, layers {start} to {stop})."
    ]


def _describe_settled(data: xarray.Dataset, change: float) -> str:
    moved = np.flatnonzero(data["change"].values > STILL)
    still = int(moved[-1]) + 1 if len(moved) else 1
    points = data.attrs["points"]
    approach = "".join(
        f" {words}" for words in _describe_rate(data, "approach", "It is approached")
    )
    return (
        f"After layer {still} no token moves:"
        f" {'one fixed point' if points == 1 else f'{points} fixed points'}, to {STILL:g} of the"
        f" size.{approach}"
    )


def _describe_cycle(data: xarray.Dataset, change: float) -> str:
    period = data.attrs["period"]
    return (
        f"The tokens end in a cycle: they return every {period} layers, and each layer moves them"
        f" by {change:.2g}."
    )


def _describe_settling(data: xarray.Dataset, change: float) -> str:
    approach = "".join(f" {words}" for words in _describe_rate(data, "approach", "That shrinks"))
    return (
        f"The tokens are settling: layer {data.attrs['steps']} moves them by {change:.2g} of their"
        f" size.{approach}"
    )


def _describe_drifting(data: xarray.Dataset, change: float) -> str:
    norm, turning = data["norm"].values, data["turning"].values
    middle, last = len(norm) // 2, len(norm) - 1
    return (
        f"The tokens drift: norms grow {norm[-1] / norm[middle]:.2g} times from layer {middle} to"
        f" {last}, and directions still turn by {turning[-1]:.2g} per layer."
    )


def _describe_moving(data: xarray.Dataset, change: float) -> str:
    after, within = data.attrs["returns_after"], data.attrs["returns_within"]
    nearly = (
        f", and they return to within {within:.2g} after {after} layers"
        if after and within < change / 2
        else ""
    )
    return (
        f"The tokens have not settled: layer {data.attrs['steps']} moves them by {change:.2g} of"
        f" their size{nearly}."
    )


def _describe_overflow(data: xarray.Dataset, change: float) -> str:
    return f"After {data.attrs['steps']} layers the numbers overflow."


ENDS = {
    "settled": _describe_settled,
    "cycle": _describe_cycle,
    "settling": _describe_settling,
    "drifting": _describe_drifting,
    "moving": _describe_moving,
    "overflow": _describe_overflow,
}


def _describe_leaders(data: xarray.Dataset) -> str:
    """Say which token receives most in the first layers, also among the words of the text, and in
    the end.
    """
    shares, word = data["received"].values[:-1], data["word"].values
    everybody = data["passed_by_all"].values[1]
    until = max(int(everybody), 1) if np.isfinite(everybody) else len(shares)
    names = token_names(data)
    own = np.flatnonzero(data["is_special"].values == 0)
    best = data["leader"].values[:until].astype(int)
    first = int(np.bincount(best).argmax())
    said = (
        f"{names[first]} leads in {(best == first).sum()} of"
        f" {'the first ' if until < len(shares) else ''}{until} layers"
    )
    counted = ", special tokens counted" if len(own) < len(word) else ""
    said += f" ({shares[:until, first].mean():.0%} of the attention{counted})"
    if first not in own and len(own):
        said += (
            f", of the text's own tokens {names[own[shares[:until, own].mean(axis=0).argmax()]]}"
        )
    top = np.flatnonzero(shares[-1] > shares[-1].max() * (1 - SAME))
    if len(top) == len(word):
        return f"{said}; in the end all tokens receive the same."
    if len(top) > 3:
        return f"{said}; in the end {len(top)} share the lead with {shares[-1].max():.0%} each."
    each = " each" if len(top) > 1 else ""
    return (
        f"{said}; in the end {' and '.join(names[one] for one in top)} with"
        f" {shares[-1].max():.0%}{each}."
    )
