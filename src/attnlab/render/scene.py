"""A Scene: one member of a run made ready for drawing, so that no figure has to know about frames,
batches or clocks.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from attnlab.analysis.spectra import is_multiple_of_identity
from attnlab.dynamics import attention_matrices
from attnlab.render.about import describe_run, join_parts
from attnlab.render.groups import MOST_COORDINATES, Groups, group_tokens
from attnlab.render.paper import SCREEN, Paper
from attnlab.render.style import subscript
from attnlab.types import Status, Trajectory


@dataclass(frozen=True, eq=False)
class Scene:
    """What is drawn: points (T, n, d) at the times of `run`, which is a single run without holes.

    name: "z" or "x", how the points are called. axes: a label a coordinate.
    origin: "" or "member 3 of 0 to 7". is_projected: whether the axes are not those of the run.
    remark: what else a reader must know. paper: what the figure is drawn for.
    """

    run: Trajectory
    points: np.ndarray
    name: str
    axes: Sequence[str]
    origin: str = ""
    is_projected: bool = False
    remark: str = ""
    paper: Paper = SCREEN

    @property
    def times(self) -> np.ndarray:
        """The saved times (T,)."""
        return self.run.times

    @property
    def d(self) -> int:
        """The number of coordinates drawn."""
        return self.points.shape[-1]

    @property
    def is_sphere(self) -> bool:
        """Whether the tokens live on the sphere."""
        return self.run.dynamics.geometry.is_unit_sphere

    @cached_property
    def shows_hull(self) -> bool:
        """Whether the convex hull says something: it is monotone where V is a multiple of the
        identity, and else is not.
        """
        weights = self.run.dynamics.weights
        return not self.is_sphere and weights.heads == 1 and is_multiple_of_identity(weights)

    @property
    def shows_sphere(self) -> bool:
        """Whether the points lie on the unit sphere of the axes drawn."""
        return self.is_sphere and not self.is_projected

    @cached_property
    def groups(self) -> Groups:
        """Which tokens are drawn alike, and who leads."""
        return group_tokens(self.run)

    @cached_property
    def _scaled_x(self) -> tuple[np.ndarray, np.ndarray]:
        return self.run.scaled_x()

    def at(self, position: float) -> np.ndarray:
        """The points (n, d) at a saved time's number, or linearly between two of them."""
        low = min(int(position), len(self.times) - 1)
        high, part = min(low + 1, len(self.times) - 1), position - low
        if part == 0.0:
            return self.points[low]
        between = (1.0 - part) * self.points[low] + part * self.points[high]
        return (
            between / np.linalg.norm(between, axis=-1, keepdims=True)
            if self.shows_sphere
            else between
        )

    def history(self, position: float, since: float = 0.0) -> np.ndarray:
        """The points (k, n, d) from one position to another, the saved ones between them
        included.
        """
        inner = np.arange(int(np.floor(since)) + 1, int(np.ceil(position)))
        return np.concatenate([self.at(since)[None], self.points[inner], self.at(position)[None]])

    def attention(self, position: float) -> np.ndarray:
        """The attention matrices (h, n, n); between saved times the mean of both, which is
        row-stochastic too.
        """
        states, log_scale = self._scaled_x
        low = min(int(position), len(self.times) - 1)
        part = position - low
        first = attention_matrices(self.run.dynamics, states[low], log_scale[low])
        if part == 0.0 or low + 1 >= len(self.times):
            return first
        second = attention_matrices(self.run.dynamics, states[low + 1], log_scale[low + 1])
        return (1.0 - part) * first + part * second

    def clock(self, position: float, decimals: int | None = None) -> str:
        """'t = 1.25', or 'layer 7' for residual layers."""
        time = float(np.interp(position, np.arange(len(self.times)), self.times))
        if self.run.dynamics.dt is not None:
            return f"layer {round(time / self.run.dynamics.dt)}"
        return f"t = {time:.3g}" if decimals is None else f"t = {time:.{decimals}f}"

    def hyperplanes(self) -> list[tuple[np.ndarray, float, np.ndarray]]:
        """Where the groups at the end are hyperplanes <normal, z> = level of the axes drawn:
        normal, level, colour of each.
        """
        normal, labels = self.groups.normal, self.groups.labels
        if normal is None or labels is None or self.name != "z" or self.is_projected:
            return []
        levels = self.points[-1] @ normal
        return [
            (normal, float(levels[labels == k].mean()), self.groups.colours[np.argmax(labels == k)])
            for k in range(labels.max() + 1)
        ]

    def headline(self, what: str | None = None) -> str:
        """What is shown, by itself the points, of which run."""
        V = "V" if self.run.dynamics.weights.heads == 1 else "ΣV"
        if what is not None:
            pass
        elif self.is_sphere:
            what = "Tokens x on the circle" if self.run.d == 2 else "Tokens x on the sphere"
        elif self.name == "x":
            what = "Tokens x"
        else:
            what = (
                "Rescaled tokens z ="
                f" {f'(I + dt {V})⁻ᵏ' if self.run.dynamics.is_layers else f'exp(−t{V})'} x"
            )
        end = (
            ""
            if self.run.status is Status.OK
            else f"stopped early ({self.run.status.name.lower().replace('_', ' ')})"
        )
        return join_parts(
            [what, describe_run(self.run.dynamics, self.run.n, self.run.spec), self.origin, end]
        )


def make_scene(
    run: Trajectory, member: int = 0, frame: str | None = None, paper: Paper = SCREEN
) -> Scene:
    """The Scene of one member of `run`, in the frame asked for.

    By itself in z; in x on the sphere, where z leaves double precision, and where V has no growing
    direction.
    """
    if frame not in (None, "x", "z"):
        raise ValueError(f"frame must be 'x', 'z' or None (z where it has limits), got {frame!r}.")
    single, origin = _member(run, member)
    points: np.ndarray | None = None
    if frame is None and not _grows(single):
        frame = "x"
    if frame != "x":
        try:
            points = single.rescaled
        except (OverflowError, ValueError):
            if frame == "z":
                raise
    name = "z" if points is not None else "x"
    points = points if points is not None else single.x
    labels = [name] if run.d == 1 else [f"{name}{subscript(k + 1)}" for k in range(run.d)]
    return Scene(single, points, name, labels, origin, paper=paper)


def _grows(run: Trajectory) -> bool:
    """Whether sum_h V_h has an eigenvalue with Re > 0. If not, x stays bounded, and it is z that
    grows without limits.
    """
    W = run.dynamics.weights.total
    if (
        np.trace(W.small) > 0 or len(W.small) > MOST_COORDINATES
    ):  # a positive sum has a positive term
        return True
    return bool(W.eigenvalues.real.max() > 1e-12 * np.abs(W.small).max())


def _member(run: Trajectory, member: int) -> tuple[Trajectory, str]:
    """One member of a batch, cut where it stopped, and the words that say which one it is."""
    count = int(np.prod(run.batch, dtype=int))
    try:
        member = operator.index(member)
    except TypeError:
        raise TypeError(
            f"member must be the number of one member of the batch, got {member!r}."
        ) from None
    if not 0 <= member < count:
        held = (
            f"a batch of {count} members, numbered 0 to {count - 1}"
            if run.batch
            else "a single run, number 0"
        )
        raise ValueError(
            f"member must be the number of one member of the batch; this is {held}, got member ="
            f" {member}."
        )
    T, n, d = run.states.shape[-3:]
    states = run.states.reshape(count, T, n, d)[member]
    good = np.isfinite(states).all(axis=(-2, -1))
    T = T if good.all() else int(np.argmin(good))
    if T == 0:
        raise ValueError(
            "A run must have at least one saved time with finite tokens to be drawn; this one has"
            " none."
        )
    log_scale = np.broadcast_to(run.log_scale, (*run.batch, len(run.times))).reshape(count, -1)[
        member
    ]
    status = np.asarray(run.status, dtype=object).ravel()[member if run.batch else 0]
    observed = {
        name: array.reshape(count, *array.shape[len(run.batch) :])[member, :T]
        for name, array in run.observed.items()
    }
    single = replace(
        run,
        times=run.times[:T],
        states=states[:T],
        log_scale=log_scale[:T],
        status=status,
        error=None,
        observed=observed,
    )
    return single, f"member {member} of 0 to {count - 1}" if run.batch else ""
