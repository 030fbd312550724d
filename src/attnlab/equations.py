"""The equation as records: Weights, FeedForward, and Dynamics, which has a member of every axis
(attnlab.axes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from attnlab.axes.drifts import Drift
    from attnlab.axes.kernels import Kernel
    from attnlab.axes.masks import Mask
    from attnlab.axes.noises import Noise
    from attnlab.axes.reads import Read
    from attnlab.axes.scores import Scores
    from attnlab.axes.spaces import Space
    from attnlab.axes.speeds import Speed
    from attnlab.axes.writes import Write


@dataclass(frozen=True, eq=False)
class Weights(Displayed):
    """The matrices of one attention layer with one or several heads.

    The score of tokens i and j is <Q x_i, K x_j>, so M = Q^T K. A matrix that is given once belongs
    to all heads. All matrices are stored with the axis of the heads first. M and a full V are
    computed only when they are needed.

    Parameters
    ----------
    Q, K : array (k, d) or (h, k, d), optional
        The query and key matrices of h heads. The default is the identity.
    V : array (d, d) or (h, d, d), or a pair of arrays, or a number
        The value matrices, or factors (B, C) of V = B C, with B (d, r) or (h, d, r) and C (r, d) or
        (h, r, d). A number is a matrix for d = 1.
    source : str, optional
        The source of the matrices, in words. Figures and results show it.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> weights = al.Weights(V=np.diag([1.0, -0.5]))
    >>> weights.heads, weights.d
    (1, 2)
    >>> weights.M.shape
    (1, 2, 2)
    """

    instead = {
        "plot": "Plot what they do: al.plot(al.simulate(weights, x0, t_end=5)).",
        "movie": "Film what they do: al.movie(al.simulate(weights, x0, t_end=5), path).",
        "save": (
            "Runs and limits contain their weights: save one of them. numpy.savez stores the"
            " matrices alone."
        ),
        "to_xarray": "Runs contain their weights: al.to_xarray(al.simulate(weights, x0, t_end=5)).",
    }

    Q: np.ndarray = None  # type: ignore[assignment]
    K: np.ndarray = None  # type: ignore[assignment]
    V: np.ndarray | tuple[np.ndarray, np.ndarray] = None  # type: ignore[assignment]
    source: str = "given"

    if TYPE_CHECKING:  # more is accepted than is kept

        def __init__(
            self, Q: Any = None, K: Any = None, V: Any = None, source: str = "given"
        ) -> None: ...

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
        return self.V[0] @ self.V[1] if isinstance(self.V, tuple) else self.V

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
        return (
            f"Weights({shape}{f', rank={self.V[0].shape[2]}' if self.is_factored else ''},"
            f" source={shorten(self.source)!r})"
        )


@dataclass(frozen=True, eq=False)
class Dynamics(Displayed):
    """The equation: weights, and one member of each axis of the equation.

    Make one with `Dynamics.of`, which checks that its parts fit together. Change one with
    `replace`.

    Attributes
    ----------
    weights : Weights
        The matrices.
    geometry, kernel, mask, scores, read, write, speed, feedforward, noise : object
        The member of each axis, an object with functions and flags. `al.kernels` and the other
        registries have them by name.
    beta : float
        The inverse temperature: scores are beta <Q x_i, K x_j>.
    dt : float or None
        None for continuous time. A number for residual layers x <- x + dt * attention, which are
        another equation.
    normalisation : str or None
        The scheme that chose geometry, read, write and speed, if one did.

    Examples
    --------
    >>> import numpy as np
    >>> import attnlab as al
    >>> dynamics = al.Dynamics.of(al.Weights(V=np.eye(2)), beta=4.0, mask="causal")
    >>> dynamics.mask == "causal", dynamics.is_layers
    (True, False)
    >>> dynamics.replace(dt=1.0).is_layers
    True
    """

    weights: Weights
    geometry: Space = "euclidean"  # type: ignore[assignment]
    kernel: Kernel = "softmax"  # type: ignore[assignment]
    mask: Mask = "full"  # type: ignore[assignment]
    beta: float = 1.0
    feedforward: Drift = "none"  # type: ignore[assignment]
    dt: float | None = None
    scores: Scores = "dot"  # type: ignore[assignment]
    read: Read = "plain"  # type: ignore[assignment]
    write: Write = "plain"  # type: ignore[assignment]
    speed: Speed = "constant"  # type: ignore[assignment]
    noise: Noise = "none"  # type: ignore[assignment]
    normalisation: str | None = None
    __repr__ = short_repr

    if TYPE_CHECKING:  # a word of an axis is accepted, and its member is kept

        def __init__(
            self,
            weights: Weights,
            geometry: Any = "euclidean",
            kernel: Any = "softmax",
            mask: Any = "full",
            beta: float = 1.0,
            feedforward: Any = "none",
            dt: float | None = None,
            scores: Any = "dot",
            read: Any = "plain",
            write: Any = "plain",
            speed: Any = "constant",
            noise: Any = "none",
            normalisation: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name, registry in AXES.items():
            object.__setattr__(self, name, registry.make(getattr(self, name)))

    @classmethod
    def of(
        cls,
        weights: Weights,
        *,
        scores: Any = "dot",
        kernel: Any = "softmax",
        mask: Any = "full",
        geometry: Any = None,
        read: Any = None,
        write: Any = None,
        speed: Any = None,
        beta: float = 1.0,
        feedforward: Any = None,
        noise: Any = None,
        normalisation: str | None = None,
        dt: float | None = None,
    ) -> Dynamics:
        """Return the equation of these weights and words, after every word is checked.

        A word is a name, a table of a name and parameters, such as {"name": "sigmoid", "bias":
        -2.0}, or a member itself.

        Parameters
        ----------
        weights : Weights
            The matrices.
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
            A drift, which moves tokens besides attention. None is "none".
        noise : name, table or member, optional
            What moves tokens at random. None is "none".
        beta : float, optional
            The inverse temperature.
        normalisation : str, optional
            A scheme that chooses geometry, read, write and speed: "post", "pre", "peri", "ngpt" or
            "ln_scaling".
        dt : float, optional
            The step of residual layers. None is continuous time.

        Returns
        -------
        Dynamics
            The equation.

        Raises
        ------
        UnknownName
            No member has this name. The message suggests the nearest one.
        ValueError
            The parts do not fit together.
        """
        if not isinstance(weights, Weights):
            raise TypeError(
                f"The weights must be an attnlab.Weights(Q=, K=, V=), got {type(weights).__name__}."
            )
        real_number("beta", beta)
        if dt is not None:
            dt = positive("dt", dt)
        if normalisation is not None:
            chosen = normalisation_axes(normalisation, geometry, read, write, speed)
            geometry, read, write, speed = (chosen[name] for name in NORMALISED_AXES)
        found = cls(
            weights,
            geometry,
            kernel,
            mask,
            float(beta),
            feedforward,
            dt,
            scores,
            read,
            write,
            speed,
            noise,
            normalisation,
        )
        check_together(found)
        return found

    def replace(self, **changes: Any) -> Dynamics:
        """Return the same equation with other weights, or with other words on some axes, checked
        again.

        Parameters
        ----------
        **changes
            `weights`, or any keyword of `Dynamics.of`.

        Returns
        -------
        Dynamics
            The changed equation.
        """
        words = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        if self.normalisation is not None and "normalisation" not in changes:
            words = {
                name: value
                for name, value in words.items()
                if name not in NORMALISED_AXES or name in changes
            }
        return self.of(words.pop("weights"), **words)

    def words(self) -> dict[str, Any]:
        """Return the equation without its weights as words and numbers.

        Returns
        -------
        dict
            A table that `from_words` reads.
        """
        found: dict[str, Any] = {
            name: registry.words(getattr(self, name)) for name, registry in AXES.items()
        }
        return found | {"beta": self.beta, "dt": self.dt, "normalisation": self.normalisation}

    @classmethod
    def from_words(cls, words: Mapping[str, Any], weights: Weights) -> Dynamics:
        """Return the equation of weights and words. Refuse an axis that this version does not know.

        Parameters
        ----------
        words : mapping
            A table, as `words` returns it.
        weights : Weights
            The matrices.

        Returns
        -------
        Dynamics
            The equation.
        """
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
        """Whether sum_j P_ij V x_j itself moves the tokens, in R^d. Then z = e^{-tV} x exists, and
        a scale can be removed.
        """
        plain = plain_axes(self)
        return bool(
            self.geometry.is_linear and all(plain[name] for name in plain if name != "scores")
        )
