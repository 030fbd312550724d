"""How fast n tokens approach the mean-field limit: like 1/n from quantiles, like n^(-1/2) from
independent draws, d = 1.

Theory. Tokens start at the quantiles q(u), u = (i - 1/2)/n, and follow the mean-field flow x(t, u),
but for the error 1/n² of the midpoint rule in the velocity. Token i of n stands between the tokens
u - 1/(4n) and u + 1/(4n) of 2n, so

    n W_2(n, 2n; t)  ->  c(t) = (1/4) ( int_0^1 |d_u x(t, u)|² du )^(1/2),      c(0) = (1/4) ( int dx / density )^(1/2),

and d_u x grows along a token at the rate V Var, Var the variance of attention there. For V = 1 it
never shrinks in x; in the middle, between the camps that go to + and - infinity, Var goes like
e^{2t}, and c grows like exp(k e^{2t}) at last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray
from scipy.integrate import solve_ivp

from attnlab.analysis.transport import Law, truncated_bells, uniform_law, wasserstein
from attnlab.engine import simulate
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.sweep.grid import Grid
from attnlab.types import Weights

SIZES = {"full": tuple(2**k for k in range(4, 13)), "small": tuple(2**k for k in range(4, 10))}
LATE_SIZES = {
    "full": tuple(sorted(a * 2**k for a in (16, 20, 24, 28) for k in range(6))),
    "small": tuple(sorted(a * 2**k for a in (16, 20, 24, 28) for k in range(4))),
}

TIMES, JUDGED, LATE = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), 5, 9.0
"""Saved times; how many of them are early enough to show 1/n with these n; a time when all tokens
have long split.
"""
DRAWS = {"full": 400, "small": 200}
RANDOM_SIZES = {"full": (16, 32, 64, 128, 256), "small": (16, 32, 64, 128)}
RANDOM_TIMES = np.array([0.0, 1.0])

MOST = 256
"""Tokens at which the constant of theory is integrated."""


def laws() -> dict[str, Law]:
    """The laws of the start, all on [-1, 1] with a density above 0 everywhere."""
    return {
        "uniform": uniform_law(),
        "bell": truncated_bells("Gaussian, cut off", (1.0, 0.0, 0.5)),
        "two_bells": truncated_bells("two bells", (0.35, -0.6, 0.3), (0.65, 0.5, 0.3)),
    }


def tokens_of(
    start: np.ndarray, times: np.ndarray, V: float = 1.0, rtol: float = 1e-10
) -> np.ndarray:
    """The tokens x of the runs from these starts (*batch, n, 1): (*batch, T, n)."""
    return np.array(
        simulate(Weights(V=V * np.eye(1)), start, times=times, t_end=float(times[-1]), rtol=rtol).x[
            ..., 0
        ]
    )


def side_by_side(law: Law, sizes: tuple[int, ...], times: np.ndarray, V: float = 1.0) -> Any:
    """A Dataset of runs of all sizes, behind one another along `token`; `size` says which run a
    token is of.
    """
    x = np.concatenate([tokens_of(law.start(n), times, V) for n in sizes], axis=1)
    return xarray.Dataset(
        {"x": (("time", "token"), x), "size": ("token", np.repeat(sizes, sizes))},
        coords={"time": times},
        attrs={"V": V, "label": law.label},
    )


def constants(law: Law, V: float, times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """c(t) of the theory at these times, by SciPy's DOP853 in plain NumPy; nothing of attnlab is in
    it.

    MOST tokens make the field; d_u x is followed at the middle of every cell of levels u between
    these edges.
    """
    levels = (edges[1:] + edges[:-1]) / 2
    x, places = law.start(MOST)[:, 0], law.quantiles(levels)

    def rate(_: float, state: np.ndarray) -> np.ndarray:
        tokens, at = state[:MOST], state[: -len(levels)]
        P = np.exp(np.outer(at, tokens) - np.abs(tokens).max() * np.abs(at)[:, None])
        P /= P.sum(axis=1, keepdims=True)
        mean = P @ tokens
        return V * np.append(mean, (P @ tokens**2 - mean**2)[MOST:])

    start = np.concatenate([x, places, -np.log(law.density(places))])
    found = solve_ivp(
        rate, (0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-8, atol=1e-12
    ).y[-len(levels) :]
    return np.asarray(np.sqrt(np.diff(edges) @ np.exp(2 * found)) / 4)


def measure_law(context: Context, name: str, V: float) -> dict[str, Any]:
    """Runs of all sizes from the quantiles of a law, and the constants of theory."""
    law, sizes = laws()[name], SIZES[context.size][: None if V > 0 else -1]
    return {
        "runs": side_by_side(law, sizes, TIMES, V),
        "theory": constants(law, V, TIMES[:JUDGED], np.linspace(0, 1, MOST + 1)),
    }


def measure_torn(_: Context) -> Any:
    """The constant of the uniform law until the last time.

    In the middle, where tokens are torn apart, cells of all sizes down to 1e-14 are needed; one
    half is enough, by symmetry.
    """
    half, fine = np.append(0.5, 0.5 + np.geomspace(1e-14, 0.5, 160)), np.linspace(0, TIMES[-1], 25)
    torn = np.sqrt(2) * constants(laws()["uniform"], 1.0, fine, half)
    return xarray.Dataset({"constant": ("time", torn)}, coords={"time": fine})


def run_late(context: Context) -> Any:
    """Runs of two bells to a time when all tokens have split."""
    return side_by_side(laws()["two_bells"], LATE_SIZES[context.size], np.array([0.0, LATE]))


def measure_draws(context: Context) -> Any:
    """W_2 squared between n and 2n tokens that are drawn independently, uniform on [-1, 1], over
    e^{2t}: (size, draw, T).
    """
    rng, sizes, many = np.random.default_rng(11), RANDOM_SIZES[context.size], DRAWS[context.size]
    squares = np.zeros((len(sizes), many, len(RANDOM_TIMES)))
    for number, n in enumerate(sizes):
        context.progress(number / len(sizes), f"independent draws, n = {n}")
        one, other = (
            tokens_of(rng.uniform(-1, 1, size=(many, m, 1)), RANDOM_TIMES, rtol=1e-7)
            for m in (n, 2 * n)
        )
        squares[number] = [
            [
                wasserstein(one[k, j], other[k, j]) ** 2 * np.exp(-2 * t)
                for j, t in enumerate(RANDOM_TIMES)
            ]
            for k in range(many)
        ]
    return xarray.Dataset(
        {"square": (("size", "draw", "time"), squares)},
        coords={"size": list(sizes), "time": RANDOM_TIMES},
    )


def assemble(results: Results) -> dict[str, Any]:
    """One Dataset of runs per law, "minus" for V = -1; the constants of theory; and the Datasets of
    the other parts.
    """
    found = dict(zip((*laws(), "minus"), results.values("laws"), strict=True))
    theory = xarray.Dataset(
        {name: ("time", one["theory"]) for name, one in found.items()},
        coords={"time": TIMES[:JUDGED]},
    )
    others = {name: results.values(name)[0] for name in ("torn", "late", "draws")}
    return {**{name: one["runs"] for name, one in found.items()}, "theory": theory, **others}


compute = Parts(
    {
        "laws": Part(
            measure_law,
            [Grid({"name": list(laws()), "V": [1.0]}), Grid({"name": ["two_bells"], "V": [-1.0]})],
            "runs from the law {name}, V = {V:g}",
            share=0.5,
        ),
        "torn": Part(measure_torn, share=0.05),
        "late": Part(run_late, doing="late times", share=0.15),
        "draws": Part(measure_draws, share=0.3),
    },
    assemble,
)
