"""The equation as records: Weights, FeedForward, and Dynamics, which has a member of every axis (attnlab.axes)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from attnlab.axes.drifts.feedforward import ACTIVATIONS as ACTIVATIONS
from attnlab.axes.drifts.feedforward import FeedForward as FeedForward
from attnlab.axes.members import AXES
from attnlab.axes.normalisations import NORMALISED_AXES, normalisation_axes
from attnlab.axes.together import check_together, plain_axes
from attnlab.checks import positive, real_number
from attnlab.displayed import Displayed, short_repr, shorten
from attnlab.exponential import Matrix
from attnlab.matrices import complete_matrices
from attnlab.registry import unknown_name


@dataclass(frozen=True, eq=False)
class Weights(Displayed):
    """The matrices of one attention layer, one or several heads.

    Q, K : (k, d) or (h, k, d); identity where left out.     Scores <Q x_i, K x_j>, M = Q^T K.
    V    : (d, d) or (h, d, d), or factors (B, C) with B (d, r) or (h, d, r), C (r, d) or (h, r, d), V = B C.
    A matrix given once belongs to all heads; a number is a matrix where d = 1. Stored with the head axis always there. M and a
    full V are formed only when asked for.
    """

    Q: np.ndarray = None  # type: ignore[assignment]
    K: np.ndarray = None  # type: ignore[assignment]
    V: Any = None
    source: str = "given"

    def __post_init__(self) -> None:
        for name, array in zip("QKV", complete_matrices(self.Q, self.K, self.V), strict=True):
            object.__setattr__(self, name, array)

    @property
    def heads(self) -> int:
        """The number of heads h."""
        return self.Q.shape[0]

    @property
    def d(self) -> int:
        """The dimension of a token."""
        return self.Q.shape[2]

    @property
    def is_factored(self) -> bool:
        """Whether V is kept as factors (B, C)."""
        return isinstance(self.V, tuple)

    @property
    def M(self) -> np.ndarray:
        """The score matrices Q^T K, (h, d, d)."""
        return np.swapaxes(self.Q, 1, 2) @ self.K

    @property
    def full_V(self) -> np.ndarray:
        """The value matrices as an array (h, d, d)."""
        return self.V[0] @ self.V[1] if self.is_factored else self.V

    @cached_property
    def total(self) -> Matrix:
        """sum_h V_h: the matrix of z = exp(-t sum_h V_h) x. Factored where that is smaller."""
        if self.is_factored:
            B, C = self.V
            if B.shape[0] * B.shape[2] < self.d:
                left, right = np.concatenate(B, axis=1), np.concatenate(C, axis=0)
                return Matrix(left=left, right=right)
        return Matrix(full=np.sum(self.full_V, axis=0))

    def __repr__(self) -> str:
        shape = f"heads={self.heads}, k={self.Q.shape[1]}, d={self.d}"
        return f"Weights({shape}{f', rank={self.V[0].shape[2]}' if self.is_factored else ''}, source={shorten(self.source)!r})"


@dataclass(frozen=True, eq=False)
class Dynamics(Displayed):
    """The equation: weights, and a member of each axis of attnlab.axes, as an object with flags. The clock is dt.

    dt is None: continuous time.  dt > 0: residual layers x <- x + dt * attention, another equation.
    Make one with Dynamics.of, which checks that its parts go together, and change one with .replace.
    """

    weights: Weights
    geometry: Any = "euclidean"
    kernel: Any = "softmax"
    mask: Any = "full"
    beta: float = 1.0
    feedforward: Any = "none"
    dt: float | None = None
    scores: Any = "dot"
    read: Any = "plain"
    write: Any = "plain"
    speed: Any = "constant"
    noise: Any = "none"
    normalisation: str | None = None
    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name, registry in AXES.items():
            object.__setattr__(self, name, registry.make(getattr(self, name)))

    @classmethod
    def of(cls, weights: Weights, *, scores: Any = "dot", kernel: Any = "softmax", mask: Any = "full",
           geometry: Any = "euclidean", read: Any = "plain", write: Any = "plain", speed: Any = "constant", beta: float = 1.0,
           feedforward: Any = None, noise: Any = None, normalisation: str | None = None,
           dt: float | None = None) -> Dynamics:
        """The equation of these weights and words, every one checked: kernel="softmax", geometry="sphere", beta=4.0, ...

        A word is a name, a table of a name and parameters, {"name": "sigmoid", "bias": -2.0}, or a member itself.
        """
        if not isinstance(weights, Weights):
            raise TypeError(f"The weights must be an attnlab.Weights(Q=, K=, V=), got {type(weights).__name__}.")
        real_number("beta", beta)
        if dt is not None:
            dt = positive("dt", dt)
        if normalisation is not None:
            chosen = normalisation_axes(normalisation, geometry, read, write, speed)
            geometry, read, write, speed = (chosen[name] for name in NORMALISED_AXES)
        found = cls(weights, geometry, kernel, mask, float(beta), feedforward, dt, scores, read, write, speed, noise,
                    normalisation)
        check_together(found)
        return found

    def replace(self, **changes: Any) -> Dynamics:
        """The same equation with other weights, or with other words on some axes, checked again."""
        words = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if self.normalisation is not None and "normalisation" not in changes:
            words = {name: value for name, value in words.items() if name not in NORMALISED_AXES or name in changes}
        return self.of(words.pop("weights"), **words)

    def words(self) -> dict[str, Any]:
        """The equation without its weights as words and numbers, from which `from_words` makes it again."""
        found: dict[str, Any] = {name: registry.words(getattr(self, name)) for name, registry in AXES.items()}
        return found | {"beta": self.beta, "dt": self.dt, "normalisation": self.normalisation}

    @classmethod
    def from_words(cls, words: Mapping[str, Any], weights: Weights) -> Dynamics:
        """The equation of weights and words, as `words` gives them. An axis that this version does not know is refused."""
        known = [field.name for field in fields(cls) if field.name != "weights"]
        for key in words:
            if key not in known:
                raise unknown_name("axis of the equation", key, known)
        given = dict(words)
        if given.get("normalisation") is not None:
            given = {name: value for name, value in given.items() if name not in NORMALISED_AXES}
        return cls.of(weights, **given)

    @property
    def is_layers(self) -> bool:
        """Whether the clock is residual layers."""
        return self.dt is not None

    @property
    def is_value_linear(self) -> bool:
        """Whether tokens are moved by sum_j P_ij V x_j itself, in R^d: then there are z = e^{-tV} x and a scale to take out."""
        plain = plain_axes(self)
        return bool(self.geometry.is_linear and all(plain[name] for name in plain if name != "scores"))
