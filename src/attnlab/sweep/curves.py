"""Curves of the theory, drawn over figures of sweeps with matching axes and equation.

A curve over one axis is the number itself, y = number(x). A curve over two axes is a line in their
plane, y(x), along which the theory predicts a change of the number. Its function takes the part of
the Spec that all cells share and the places x. It returns y, or None for another equation.

    @curves.register("name", axes=("dynamics.beta", "t"), number="clustered_pairs",
                     words="...", citation="arXiv ...")
    def name(base, x): ...
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.analysis.clusters import OBSERVED_SCALE
from attnlab.analysis.directions import CLUSTERED_COSINE
from attnlab.registry import Registry
from attnlab.sweep.definition import Sweep
from attnlab.sweep.grid import split_name

MOST_POINTS = 200
"""Points of a curve."""

GRID = 512
"""The number of angles of a density of noisy tokens."""

MOST_ROUNDS = 4000
"""The most rounds of the iteration for such a density. Near its threshold it is slow."""

Function = Callable[[Mapping[str, Any], np.ndarray], np.ndarray | None]


@dataclass(frozen=True)
class Curve:
    """A curve of the theory. number: the name of the observable, or of the field of the limit."""

    name: str
    axes: tuple[str, ...]
    number: str
    function: Function
    words: str
    citation: str


class Curves(Registry[Curve]):
    """The curves by name."""

    def register(  # type: ignore[override]
        self,
        name: str,
        *,
        axes: Sequence[str] = (),
        number: str = "",
        words: str = "",
        citation: str = "",
    ) -> Callable[[Function], Function]:
        """Return a decorator that registers the function of a curve with its axes, number, words
        and citation.
        """
        if not 1 <= len(axes) <= 2 or not number or not words or not citation:
            raise ValueError(
                f"The curve {name!r} needs one or two axes, a number, words and a citation."
            )
        file_it = super().register(name)

        def file_function(function: Function) -> Function:
            file_it(Curve(name, tuple(axes), number, function, words, citation))
            return function

        return file_function


curves = Curves("theory curve")
register = curves.register


def curves_over(
    sweep: Sweep, axes: Sequence[str], number: str, x: np.ndarray
) -> list[tuple[Curve, np.ndarray, np.ndarray]]:
    """Return (curve, x, y) of all curves for these axes and this number: x are places from the
    minimum to the maximum of `x`.

    number: a name in the sweep's table of numbers, without its time.
    """
    found = []
    definition = next(
        (
            one
            for name, one in sweep.numbers.items()
            if name.rpartition("@")[0] == number or name == number
        ),
        {},
    )
    measured = definition.get("observable", definition.get("limit"))
    for curve in map(curves.__getitem__, curves):
        if curve.axes != tuple(axes) or curve.number != measured:
            continue
        places = _between(x)
        y = curve.function(shared_part(sweep), places)
        if y is not None:
            found.append((curve, places, np.asarray(y, dtype=float)))
    return found


def shared_part(sweep: Sweep) -> dict[str, Any]:
    """Return the part of the Spec that all cells share, without the values that change."""
    shared = copy.deepcopy(dict(sweep.base))
    for name, values in sweep.grid.axes.items():
        for number, key in enumerate(keys := split_name(name)):
            column = [value[number] for value in values] if len(keys) > 1 else list(values)
            _put(shared, key.split("."), _common(column))
    return shared


def _common(values: Sequence[Any]) -> Any:
    """Return the common value; for tables their common part; None if there is none."""
    if len(values) > 1 and all(isinstance(value, Mapping) for value in values):
        return {
            key: one
            for key, one in values[0].items()
            if all(key in value and value[key] == one for value in values)
        }
    return values[0] if len(values) == 1 else None


def _put(table: Any, path: list[str], value: Any) -> None:
    """Put a value at a path. If it is None, remove the present one."""
    for name in path[:-1]:
        table = table.setdefault(name, {}) if isinstance(table, dict) else table[int(name)]
    if isinstance(table, list):
        table[int(path[-1])] = value
    elif value is None:
        table.pop(path[-1], None)
    else:
        table[path[-1]] = value


def _between(x: np.ndarray) -> np.ndarray:
    low, high = float(np.min(x)), float(np.max(x))
    return (
        np.geomspace(low, high, MOST_POINTS)
        if low > 0 and high > 10 * low
        else np.linspace(low, high, MOST_POINTS)
    )


def is_plain_sphere(
    base: Mapping[str, Any], kernels: Sequence[str], others: Sequence[str] = ()
) -> bool:
    """Whether the equation is x' = P_x(sum_j P_ij x_j) on the sphere, with Q = K = V = I, full
    attention and one of the kernels.

    others: keys of [dynamics] that are allowed besides geometry, kernel and beta.
    """
    weights, dynamics = base.get("weights", {}), base.get("dynamics", {})
    return (
        weights.get("family") == "identity"
        and set(weights) <= {"family", "d"}
        and "layers" not in base.get("solve", {})
        and dynamics.get("geometry") == "sphere"
        and dynamics.get("kernel", "softmax") in kernels
        and set(dynamics) <= {"geometry", "kernel", "beta", *others}
    )


@register(
    "orthogonal_start",
    axes=("dynamics.beta", "t"),
    number="clustered_pairs",
    words="the time at which all pairs of an orthogonal start have the cosine 0.999",
    citation="arXiv 2312.10794, section 6",
)
def orthogonal_start(base: Mapping[str, Any], beta: np.ndarray) -> np.ndarray | None:
    """The time t(beta) with gamma_beta(t) = 0.999, where gamma is the common cosine of n tokens
    that start orthogonal.

    Their scores stay equal, so gamma' = 2 w (1 - gamma) (1 + (n - 1) gamma), where w is the weight
    that a token gives to another: e^{beta gamma} / (e^beta + (n - 1) e^{beta gamma}) with softmax,
    e^{beta gamma} / n with exp_mean. t is the integral of 1 / gamma'.
    """
    n = base.get("start", {}).get("n")
    if not isinstance(n, int) or n < 2 or not is_plain_sphere(base, ("softmax", "exp_mean")):
        return None
    is_mean = base["dynamics"].get("kernel") == "exp_mean"
    return np.array([orthogonal_time(float(one), n, CLUSTERED_COSINE, is_mean) for one in beta])


def orthogonal_time(beta: float, n: int, cosine: float, is_mean: bool = False) -> float:
    """When n tokens that start orthogonal have this cosine; is_mean: with the kernel exp_mean."""
    from scipy.integrate import quad

    def slowness(s: float) -> float:  # with s = -log(1 - gamma) the end is no singularity
        gamma = -np.expm1(-s)
        weight = n * np.exp(-beta * gamma) if is_mean else np.exp(beta * (1 - gamma)) + n - 1
        return float(weight / (2 * (1 + (n - 1) * gamma)))

    return float(quad(slowness, 0.0, -np.log1p(-cosine), epsabs=0.0, epsrel=1e-10, limit=200)[0])


@register(
    "noisy_circle",
    axes=("dynamics.noise.kappa",),
    number="order_parameter",
    words=(
        "infinitely many tokens that start together: the density is exp(κ φ), where φ is their own"
        " potential"
    ),
    citation="stationary Fokker-Planck equation; arXiv 2312.10794, noisy dynamics",
)
def noisy_circle(base: Mapping[str, Any], kappa: np.ndarray) -> np.ndarray | None:
    """Return the order parameter of the ordered state of noisy tokens on the circle, 0 if there is
    none.

    The drift is the gradient of phi(theta) = (1/beta) int e^{beta cos(theta - s)} p(s) ds with
    exp_mean, and (1/beta) log of that integral with softmax. Without flux p = exp(kappa phi) / Z.
    The iteration starts from p concentrated in one point.
    """
    if base.get("start", {}).get("d") != 2 or not is_plain_sphere(
        base, ("softmax", "exp_mean"), ("noise",)
    ):
        return None
    if base["dynamics"].get("noise", {}).get("name") != "brownian":
        return None
    beta, is_mean = (
        float(base["dynamics"].get("beta", 1.0)),
        base["dynamics"].get("kernel") == "exp_mean",
    )
    if beta <= 0:
        return None
    return np.array([ordered_state(beta, float(one), is_mean) for one in kappa])


def ordered_state(beta: float, kappa: float, is_mean: bool) -> float:
    """Return the order parameter |int e^{i theta} p| of the fixed point p that the iteration
    reaches from a point mass.
    """
    angles = 2 * np.pi * np.arange(GRID) / GRID
    kernel = np.fft.rfft(np.exp(beta * (np.cos(angles) - 1)))
    density, before = np.zeros(GRID), 2.0
    density[0] = 1.0
    order = 1.0
    for _ in range(MOST_ROUNDS):
        integral = np.maximum(np.fft.irfft(kernel * np.fft.rfft(density), GRID), 1e-300)
        potential = integral * np.exp(beta) / beta if is_mean else np.log(integral) / beta
        density = np.exp(kappa * (potential - potential.max()))
        density /= density.sum()
        order = float(density @ np.cos(angles))
        if abs(order - before) < 1e-10:
            break
        before = order
    return order if order > 1e-3 else 0.0


@register(
    "orthogonal_deadline",
    axes=("start.d", "dynamics.beta"),
    number="cluster_count_all",
    words=(
        "below it an orthogonal start, which random tokens resemble where d is large, is one"
        " cluster by the end"
    ),
    citation="arXiv 2312.10794, section 6",
)
def orthogonal_deadline(base: Mapping[str, Any], d: np.ndarray) -> np.ndarray | None:
    """The beta at which n tokens that start orthogonal become one cluster, at 1 % of their first
    diameter, just at t_end.
    """
    from scipy.optimize import brentq

    n, end = base.get("start", {}).get("n"), base.get("solve", {}).get("t_end")
    if (
        not isinstance(n, int)
        or n < 2
        or not isinstance(end, int | float)
        or not is_plain_sphere(base, ("softmax", "exp_mean"))
    ):
        return None
    is_mean = base["dynamics"].get("kernel") == "exp_mean"
    cosine = 1 - OBSERVED_SCALE**2  # |x_i - x_j|^2 = 2 - 2 cosine, and 2 at the start

    def late(beta: float) -> float:
        return orthogonal_time(beta, n, cosine, is_mean) - end

    if late(0.0) > 0 or late(MOST_BETA) < 0:
        return None
    return np.full(len(d), brentq(late, 0.0, MOST_BETA))


MOST_BETA = 200.0
"""Beyond this beta tokens that start orthogonal stay for longer than any run."""
