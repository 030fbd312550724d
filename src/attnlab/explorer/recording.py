"""A run as a recording that a page plays: a few hundred frames of tokens, leaders, and the series
of the clock.

Frames are equally spaced in u = t / (t + tau), tau = 1 / lambda_1, because most changes happen
early. They show the limit frame, in which tokens converge: z along growing directions, x along the
others. More than three dimensions are projected on the three directions of largest variance.
Between saved times tokens are interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab import frames
from attnlab.analysis.attention import leaders as leaders_of
from attnlab.analysis.attention import row_entropy
from attnlab.analysis.clusters import OBSERVED_SCALE, cluster_labels
from attnlab.analysis.distances import diameter
from attnlab.analysis.growing import growth_rates
from attnlab.dynamics.attention import attention_matrices
from attnlab.engine.coordinates import MOST_DENSE, real_eigenbasis
from attnlab.explorer.members import describe_strange, strange_members
from attnlab.explorer.packing import pack_leaders, pack_shares, pack_tokens
from attnlab.progress import Progress, ProgressOption, track
from attnlab.types import Dynamics, Trajectory

FRAMES, FRAMES_OF_MANY, MANY = 480, 240, 300
"""Frames of a recording; half as many for more than MANY tokens."""

EVERY = 4
"""The series of the clock have one number per so many frames."""

DRAWN = 3
"""Dimensions of a picture."""

MOST_TOKENS = 2000
"""The most tokens of a recording: the attention of more takes minutes, and a picture of more shows
nothing.
"""


MOST_ROWS = 20_000
"""Tokens, over all times, from which the directions of largest variance are computed."""


@dataclass(frozen=True)
class Picture:
    """Tokens of the saved times in eigen-coordinates (T, n, d), z where `grows` and x elsewhere; x
    = basis @ coordinates.
    """

    coordinates: np.ndarray
    basis: np.ndarray
    growth: np.ndarray
    turn: np.ndarray
    grows: np.ndarray

    @property
    def limit_frame(self) -> np.ndarray:
        """Return the tokens (T, n, d) in the user's coordinates."""
        return self.coordinates @ self.basis.T

    @property
    def counted(self) -> np.ndarray:
        """Return the parts of the tokens (T, n, d) that decide groups: along growing directions, if
        there are any.
        """
        kept = self.grows if self.grows.any() else ~self.grows
        return np.where(kept, self.coordinates, 0.0) @ self.basis.T


def frame_times(dynamics: Dynamics, n: int, t_end: float) -> np.ndarray:
    """Return the times (T,) of the frames of a recording up to t_end; of layers, the times of
    layers.
    """
    count = FRAMES if n <= MANY else FRAMES_OF_MANY
    if dynamics.dt is not None:
        layers = round(t_end / dynamics.dt)
        return np.unique(np.rint(np.linspace(0, layers, min(count, layers + 1)))) * dynamics.dt
    tau = clock_unit(dynamics, t_end)
    u = np.linspace(0.0, t_end / (t_end + tau), count)
    times = tau * u / (1.0 - u)
    times[-1] = t_end
    return times


def clock_unit(dynamics: Dynamics, t_end: float) -> float:
    """Return tau of the clock u = t / (t + tau): 1 / lambda_1 if tokens grow, else t_end / 8."""
    fastest = float(growth_rates(dynamics, dynamics.weights.total.eigenvalues).max(initial=0.0))
    return 1.0 / fastest if dynamics.is_value_linear and fastest > 1e-9 else max(t_end, 1e-9) / 8.0


def record_run(
    run: Trajectory,
    *,
    words: Sequence[str] | None = None,
    directions: bool = False,
    progress: ProgressOption = False,
) -> dict[str, Any]:
    """Return the recording of a run without batch as a table for JSON.

    words: one per token, shown when the reader points at the token.
    directions: show x / |x|, as for flows of trained models, instead of the limit frame.
    progress: False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
    cancel.
    """
    if run.batch:
        raise ValueError(
            f"A recording shows one run, and this is a batch of shape {run.batch}. Choose a member."
        )
    if run.n > MOST_TOKENS:
        raise ValueError(
            f"A recording shows at most {MOST_TOKENS} tokens, and this run has {run.n}."
        )
    if not len(run.times):
        raise ValueError("This run must have at least one saved time; it has none.")
    if words is not None and len(words) != run.n:
        raise ValueError(f"words must be one per token, {run.n}, got {len(words)}.")
    from attnlab.engine.threads import one_blas_thread

    with (
        track(progress, "recording the run") as progress,
        one_blas_thread(),
    ):  # for small products threads only wait
        return _recording(run, words, directions, progress)


def _recording(
    run: Trajectory, words: Sequence[str] | None, directions: bool, progress: Progress
) -> dict[str, Any]:
    picture = picture_directions(run) if directions else make_picture(run)
    t_begin, t_end = float(run.times[0]), float(run.times[-1])
    times = (
        t_begin + frame_times(run.dynamics, run.n, t_end - t_begin)
        if t_end > t_begin
        else run.times[:1]
    )
    saved = (
        np.searchsorted(run.times, times * (1 + 1e-12) + 1e-300, side="right") - 1
    )  # the last one before a frame
    leaders, shares, listened = _leaders(run, saved, progress)
    drawn, about = _draw(picture, run)
    series = saved[::EVERY]
    labels, groups = _groups(picture.counted, series)
    changes = times[1:][(leaders[1:] != leaders[:-1]).any(axis=1)]
    record = {
        "version": 1,
        "n": run.n,
        "T": len(times),
        "tau": clock_unit(run.dynamics, t_end),
        "times": _short(times),
        "tokens": pack_tokens(_at_times(run.times, drawn, times)),
        "leaders": pack_leaders(leaders),
        "shares": pack_shares(shares),
        "every": EVERY,
        "groups": groups,
        "listened": _short(np.array([listened[at] for at in series.tolist()])),
        "labels": labels.tolist(),
        "count": int(labels.max()) + 1,
        "changes": _short(changes),
        **about,
        "status": run.status.name,
        "sentence": run.status.value,
        "trusted": None,
        **{
            name: int(np.max(run.stats.get(name, 0))) for name in ("steps", "evaluations")
        },  # a member has those of its batch
    }
    if strange_members(run.dynamics):
        record["equation"] = describe_strange(run.dynamics)
    if run.dynamics.dt is not None:
        record["layers"] = {"dt": run.dynamics.dt}
    return record if words is None else {**record, "words": [str(word) for word in words]}


def make_picture(run: Trajectory) -> Picture:
    """Return the tokens of a run in coordinates in which they converge."""
    dynamics, d = run.dynamics, run.d
    own, none = np.eye(d), np.zeros(d)
    if not dynamics.is_value_linear:
        return Picture(run.x, own, none, none, np.zeros(d, bool))
    if dynamics.feedforward.acts_on_z:  # the equation is in z alone
        return Picture(run.rescaled, own, np.ones(d), none, np.ones(d, bool))
    if (
        run.frame == "x"
        and run.basis is not None
        and run.growth is not None
        and run.turn is not None
    ):
        y, log_scale, basis, growth, turn = (
            run.states,
            run.log_scale,
            run.basis,
            run.growth,
            run.turn,
        )
    else:
        found = _eigenbasis(dynamics)
        if found is None:  # no eigenbasis: use the fastest rate for all
            fastest = float(growth_rates(dynamics, dynamics.weights.total.eigenvalues).max())
            y, log_scale = run.scaled_x()
            rates = np.full(d, max(fastest, 0.0))
            return Picture(
                y * np.exp(log_scale - rates[0] * run.times)[:, None, None],
                own,
                rates,
                none,
                rates > 0,
            )
        basis, growth, turn = found
        scaled, log_scale = run.scaled_x()
        y = scaled @ np.linalg.inv(basis).T
    both = turn + np.append(0.0, turn[:-1])  # on both rows of a pair
    grows = growth_rates(dynamics, growth + 1j * both) > 1e-12 * max(
        1.0, float(np.abs(growth).max())
    )
    coordinates = frames.unwind(
        y,
        run.times,
        log_scale,
        own,
        np.where(grows, growth, 0.0),
        np.where(grows, turn, 0.0),
        dynamics.dt,
    )
    return Picture(coordinates, basis, growth, turn, grows)


def picture_directions(run: Trajectory) -> Picture:
    """Return the directions x / |x| of the tokens."""
    y, _ = run.scaled_x()
    lengths = np.linalg.norm(y, axis=-1, keepdims=True)
    none = np.zeros(run.d)
    return Picture(
        y / np.where(lengths > 0, lengths, 1.0), np.eye(run.d), none, none, np.zeros(run.d, bool)
    )


def _eigenbasis(dynamics: Dynamics) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    return (
        real_eigenbasis(dynamics.weights.total.dense())
        if dynamics.weights.d <= MOST_DENSE
        else None
    )


def _draw(picture: Picture, run: Trajectory) -> tuple[np.ndarray, dict[str, Any]]:
    """Return tokens (T, n, 3) of the saved times, and the facts about their directions that a page
    needs.
    """
    tokens, d = picture.limit_frame, run.d
    if d <= DRAWN:
        drawn = np.zeros((*tokens.shape[:2], DRAWN))
        drawn[..., :d] = tokens
        geometry = "sphere" if run.dynamics.geometry.is_unit_sphere else "euclidean"
        about = {
            "d": d,
            "dimension": d,
            "geometry": geometry,
            "basis": picture.basis.tolist(),
            "growth": picture.growth.tolist(),
            "turn": picture.turn.tolist(),
            "x0": run.x[0].tolist(),
        }
        return drawn, about
    axes, shares, centre = principal_axes(tokens)
    about = {
        "d": DRAWN,
        "dimension": d,
        "geometry": "euclidean",
        "basis": np.eye(DRAWN).tolist(),
        "turn": [0.0] * DRAWN,
        "growth": [float(picture.grows.any())] * DRAWN,
        "axes": name_axes(shares),
    }
    return (tokens - centre) @ axes, about


def name_axes(shares: np.ndarray) -> list[str]:
    """Return the names of the axes of a projection: their shares of the variance."""
    return [f"{share:.0%} of the variance" for share in shares.tolist()]


def principal_axes(tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes (d, 3) of largest variance of tokens (T, n, d), their shares of the variance
    (3,), and the mean (d,).
    """
    from scipy.linalg import eigh

    flat = tokens.reshape(-1, tokens.shape[-1])
    flat = flat[:: max(1, len(flat) // MOST_ROWS)]
    centre = flat.mean(axis=0)
    centred = flat - centre
    is_tall = len(centred) >= centred.shape[1]
    gram = (
        centred.T @ centred if is_tall else centred @ centred.T
    )  # the smaller of the two: an SVD takes seconds
    size, total = len(gram), float(np.trace(gram))
    axes, shares = np.zeros((flat.shape[1], DRAWN)), np.zeros(DRAWN)
    if total > 0:
        values, vectors = eigh(gram, subset_by_index=[max(0, size - DRAWN), size - 1])
        kept = np.flatnonzero(values[::-1] > 1e-13 * total)  # other axes have no variance
        found = vectors[:, ::-1][:, kept] if is_tall else centred.T @ vectors[:, ::-1][:, kept]
        axes[:, kept] = found / np.linalg.norm(found, axis=0)
        shares[kept] = values[::-1][kept] / total
    signs = np.sign(
        axes[np.abs(axes).argmax(axis=0), np.arange(DRAWN)]
    )  # the largest entry is positive
    return axes * signs, shares, centre


def _leaders(
    run: Trajectory, saved: np.ndarray, progress: Progress
) -> tuple[np.ndarray, np.ndarray, Mapping[int, float]]:
    """Return, for the frames, the leaders (T, n), -1 where heads disagree; the share (T, n) of its
    attention that each token gives to its leader, averaged over heads; and how many tokens a row
    attends to on average.
    """
    found: dict[int, np.ndarray] = {}
    shares: dict[int, np.ndarray] = {}
    listened: dict[int, float] = {}
    needed = np.unique(saved).tolist()
    for number, at in enumerate(needed):
        progress(number / len(needed))
        y, log_scale = run.scaled_x(slice(at, at + 1))
        P = attention_matrices(run.dynamics, y[0], log_scale[0])  # (h, n, n)
        chosen = leaders_of(P)  # (h, n)
        found[at] = np.where((chosen == chosen[0]).all(axis=0), chosen[0], -1)
        rows = P / np.maximum(P.sum(axis=-1, keepdims=True), 1e-300)  # exp_mean does not sum to 1
        shares[at] = np.where(found[at] >= 0, rows.max(axis=-1).mean(axis=0), 0.0)
        listened[at] = float(np.exp(row_entropy(rows)).mean())
    leaders, largest = (np.array([known[at] for at in saved.tolist()]) for known in (found, shares))
    return leaders, largest, listened


def _groups(tokens: np.ndarray, series: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the groups at the end (n,), the largest first, and how many there are at the saved
    times of the series.
    """
    scale = OBSERVED_SCALE * float(diameter(tokens[0]))

    def labels_at(at: int) -> np.ndarray:
        return cluster_labels(tokens[at], scale) if scale > 0 else np.zeros(tokens.shape[1], int)

    counts = {at: int(labels_at(at).max()) + 1 for at in np.unique(series).tolist()}
    return rank_groups(labels_at(-1)), [counts[at] for at in series.tolist()]


def rank_groups(labels: np.ndarray) -> np.ndarray:
    """Return labels (n,), 0, 1, ..., with the largest group first."""
    rank = np.argsort(np.argsort(-np.bincount(labels), kind="stable"), kind="stable")
    return np.asarray(rank[labels])


def _at_times(saved: np.ndarray, tokens: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return tokens (T, n, 3) of the saved times at other times: themselves, or a monotone cubic
    between them.
    """
    from scipy.interpolate import PchipInterpolator

    if len(saved) == 1 or np.array_equal(saved, times):
        return tokens[: len(times)]
    return np.asarray(PchipInterpolator(saved, tokens, axis=0)(np.clip(times, saved[0], saved[-1])))


def _short(numbers: np.ndarray) -> list[float]:
    """Return numbers with seven digits: enough for a clock."""
    return [float(f"{number:.7g}") for number in numbers.tolist()]
