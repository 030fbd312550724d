"""The eigenvalues of attention matrices along the flow, of one head and of the sum over heads: how
many survive?
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray
from scipy.special import softmax

from attnlab.analysis.attention import (
    attention_rank,
    effective_rank,
    eigenvalue_moduli,
    is_boolean_row,
    second_if_unrelated,
)
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.markov import unit_eigenvalue_count
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.analysis.span import in_span
from attnlab.analysis.spectra import leading
from attnlab.dynamics import attention
from attnlab.engine import simulate
from attnlab.experiments.common.halved import Halved
from attnlab.experiments.common.heads import (
    FAMILIES,
    HEADS,
    VALUES,
    Trained,
    real_start,
    synthetic_heads,
)
from attnlab.experiments.datasets import table, table_of_rows
from attnlab.experiments.parts import Context, Part, Parts, Results
from attnlab.limits import limit
from attnlab.sweep.grid import Cell, Grid
from attnlab.types import Weights
from attnlab.weights.good_triple import good_triple

END = 8.0
"""The last moment of the table, in natural time."""
REFERENCE_END = 1.0

NEAR = 1e-5
"""An eigenvalue is counted as one of modulus H when it is within this part of it."""
KINDS = {
    "polytope": "Q = K = V = I, two dimensions",
    "random head": "Gaussian Q and K, V = I, four dimensions",
    "one side": "good triple, all tokens on one side of φ₁ = 0",
    "two sides": "good triple, tokens on both sides",
    "trained head": "trained Q and K, V = I, embedded text",
}
FAMILY_OF = {"trained head": "trained"}
"""The kinds that need a model, and the family that says so."""

DRAWS = {"full": 24, "small": 5}
TRAINED_DRAWS = {"full": 36, "small": 5}

WORK = 375_000.0
"""Units for one limit; the dearest that was certified took 63,000. What they do not certify is left
out, and counted.
"""
DRAW_TOKENS, DRAW_END = 20, 12.0


def outermost(sizes: np.ndarray, radius: float = 1.0) -> int:
    """How many moduli are the radius, within NEAR of it."""
    return int(np.sum(sizes > radius * (1 - NEAR)))


def drawn(kind: str, number: int, trained: Any) -> tuple[Weights, np.ndarray]:
    """One head and its first tokens."""
    rng = np.random.default_rng(number)
    if kind == "polytope":
        return Weights(V=np.eye(2)), rng.uniform(-5, 5, (DRAW_TOKENS, 2))
    if kind == "random head":
        return synthetic_heads(1, 4, rng=number), rng.uniform(-5, 5, (DRAW_TOKENS, 4))
    if kind == "trained head":
        config = trained.config
        one = trained.weights(number // config.heads % config.layers, number % config.heads)
        return in_span(
            Weights(Q=one.Q, K=one.K, V=np.eye(config.d)), real_start(trained, DRAW_TOKENS, number)
        )[:2]
    weights, x0 = good_triple(3, gap=0.6, rng=number), rng.uniform(-5, 5, (DRAW_TOKENS, 3))
    side = np.sign(x0 @ leading(weights).psi)[:, None]
    return weights, x0 * side if kind == "one side" else x0


def draw_grids(size: str) -> list[Grid]:
    """The single heads of each kind."""
    return [
        Grid(
            {"kind": [kind], "number": range((TRAINED_DRAWS if kind in FAMILY_OF else DRAWS)[size])}
        )
        for kind in KINDS
    ]


def measure_draw(context: Context, kind: str, number: int) -> dict[str, Any]:
    """A single head: its certified limit, and the attention matrix of the run at DRAW_END."""
    return _certified(*drawn(kind, number, context.shared.model))


def _certified(weights: Weights, x0: np.ndarray) -> dict[str, Any]:
    """Numbers of P* from the leaders of the certified limit, and of P(DRAW_END) from its
    eigenvalues and singular values.
    """
    end = limit(weights, x0, work=WORK)
    run = simulate(weights, x0, t_end=DRAW_END, times=[0.0, DRAW_END], throw=False)
    is_known = end.grade == "exact" and end.t <= DRAW_END and run.times[-1] == DRAW_END
    P = attention(run, at=-1)[0]
    sizes = eigenvalue_moduli(P)
    groups = np.unique(end.leaders, return_counts=True)[1]
    shares = np.sqrt(groups) / np.sqrt(groups).sum()
    return {
        "is_known": int(is_known),
        "limits": end.count or 0,
        "leaders": len(groups),
        "selfish": int(np.sum(end.leaders == np.arange(len(x0)))),
        "chains": int(np.sum(end.leaders[end.leaders] != end.leaders)),
        "effective_expected": float(np.exp(-np.sum(shares * np.log(shares)))),
        "survivors": outermost(sizes),
        "largest_other": float(sizes[outermost(sizes) :].max(initial=0.0)),
        "rank": int(attention_rank(P)),
        "effective": float(effective_rank(P)),
    }


REPEATS = {"full": {30: 8, 100: 5, 300: 3}, "small": {12: 2, 30: 6}}
"""{number of tokens: draws}: other synthetic heads and starts, or pieces of text that do not
overlap for trained heads.
"""
SYNTHETIC_D = 8

MOMENTS = (0.0, 0.5, 1.0, 2.0, 4.0, END)
"""In the natural time |lambda_1| t of sum V_h, which is Ht for V_h = I; double precision would end
near 30.
"""

STEPS = {1000: 0.1, 50_000: 0.25, 10**9: 0.5}
"""Steps of order 4 in natural time, for up to so many numbers n d: adaptive steps would take
minutes.
"""

DECIDED = 18.5
"""A matrix is called decided when in every row all weights but one are below e^-18.5 = 1e-8 of
it.
"""
SHOWN_TIMES = np.linspace(0.0, END, 41)


def system(
    family: str, values: str, heads: int, n: int, draw: int, shared: Trained
) -> tuple[Weights, np.ndarray]:
    """Weights and first tokens, for V_h = I in their span.

    Synthetic heads are others for each draw and number of tokens, which start in the cube [-5,
    5]^d. Trained heads read a piece of embedded text.
    """
    if family == "synthetic":
        weights = synthetic_heads(heads, SYNTHETIC_D, values, rng=1000 * draw + n)
        x0 = np.random.default_rng([n, draw]).uniform(-5.0, 5.0, (n, SYNTHETIC_D))
    else:
        weights, x0 = shared.heads(heads, values), real_start(shared.model, n, draw)
    return in_span(weights, x0)[:2] if values == "identity" else (weights, x0)


def followed(weights: Weights, x0: np.ndarray, moments: Any, step: float) -> Any:
    """The run at natural times `moments`, by steps of order 4."""
    rate = growth_rate(weights)
    times = np.asarray(moments) / rate
    frame = "x" if weights.is_factored else "z"
    return simulate(
        weights,
        x0,
        t_end=float(times[-1]),
        times=times,
        stepper="rk4",
        dt=step / rate,
        frame=frame,
        throw=False,
    )


def step_for(x0: np.ndarray) -> float:
    """The step for such tokens."""
    return next(step for most, step in STEPS.items() if x0.size <= most)


def measure_sum(
    context: Context, n: int, draw: int, heads: int, family: str, values: str
) -> list[dict[str, Any]]:
    """The rows of one run; the first draw has all moments and, where that is cheap, a run with half
    the step.
    """
    size, moments = context.size, MOMENTS if draw == 0 else (MOMENTS[0], MOMENTS[-1])
    weights, x0 = system(family, values, heads, n, draw, context.shared)
    step, largest = step_for(x0), max(REPEATS[size])
    is_cheap = (
        n == min(REPEATS[size]) and not weights.is_factored or n < largest and family == "synthetic"
    )
    runs = Halved.follow(
        lambda step: followed(weights, x0, moments, step), step, when=is_cheap and draw == 0
    )
    return [
        {
            "moment": moments[at],
            "t": runs.coarse.times[at],
            **_numbers(attention(runs.coarse, at=at), at == len(moments) - 1),
            "change": runs.compare(partial(_change, at)),
        }
        for at in range(len(runs.coarse.times))
    ]


def _numbers(P: np.ndarray, is_last: bool) -> dict[str, Any]:
    """The numbers of attention matrices P (h, n, n); those of every single head at the last moment
    only.
    """
    heads, S = len(P), P.sum(axis=0)
    sizes = eigenvalue_moduli(S)
    of_heads = [outermost(eigenvalue_moduli(one)) for one in P] if is_last else [0]
    return {
        "radius": sizes[0] / heads,
        "second": sizes[1] / heads,
        "survivors": outermost(sizes, heads),
        "rows": np.abs(S.sum(axis=1) / heads - 1).max(),
        "rank": int(attention_rank(S)),
        "effective": float(effective_rank(S)),
        "is_decided": int(is_boolean_row(P, DECIDED).all()),
        "fewest": min(of_heads),
        "classes": unit_eigenvalue_count(S / heads) if is_last else 0,
        "unrelated": second_if_unrelated(P) if is_last else np.nan,
    }


def _change(at: int, run: Any, finer: Any) -> float:
    """How far |lambda_2| / H moves when steps are halved."""
    P, again = attention(run, at=at), attention(finer, at=at)
    return float(
        abs(eigenvalue_moduli(P.sum(axis=0))[1] - eigenvalue_moduli(again.sum(axis=0))[1]) / len(P)
    )


def shown(context: Context) -> Any:
    """Moduli over time (case, time, order), over the number of heads: one polytope, one head, and
    the sum of sixteen.
    """
    n, shared = DRAW_TOKENS, context.shared
    family = "trained" if shared.model is not None else "synthetic"
    systems = [
        drawn("polytope", 3, None),
        *(system(family, "identity", heads, n, 0, shared) for heads in (1, max(HEADS))),
    ]
    found = []
    for weights, first in systems:
        run = followed(weights, first, SHOWN_TIMES, step_for(first))
        found.append(
            [
                eigenvalue_moduli(attention(run, at=at).sum(axis=0)) / weights.heads
                for at in range(len(run.times))
            ]
        )
    return xarray.Dataset(
        {"modulus": (("case", "time", "order"), np.array(found)), "moment": ("time", SHOWN_TIMES)},
        attrs={"family": family, "n": n},
    )


def reference(context: Context) -> Any:
    """Eigenvalues of the sum of two heads at REFERENCE_END by our run, and by SciPy's DOP853 with a
    plain right-hand side.
    """
    weights, x0 = system("synthetic", "identity", 2, min(REPEATS[context.size]), 0, context.shared)
    end = REFERENCE_END / 2
    theirs = flow_by_scipy(weights, x0, end)
    total = np.sum([softmax(theirs @ M @ theirs.T, axis=1) for M in weights.M], axis=0)
    ours = attention(simulate(weights, x0, t_end=end, times=[0.0, end], rtol=1e-9), at=-1).sum(
        axis=0
    )
    return table({"ours": eigenvalue_moduli(ours), "theirs": eigenvalue_moduli(total)}, "order")


def assemble(results: Results) -> dict[str, Any]:
    """The table of sums, many single heads with their certified limits, spectra to draw, and one by
    SciPy.
    """
    trained = results.shared.model
    data = {
        "cases": table_of_rows(results.rows("cases")),
        "draws": table_of_rows(results.rows("draws"), "draw"),
        "shown": results.values("shown")[0],
        "reference": results.values("reference")[0],
    }
    for one in data.values():
        # a stand-in has no words, and its heads are not trained: nothing is claimed of them that
        # not all heads must do
        one.attrs |= {
            "model": results.shared.name,
            "why": results.why,
            "is_trained": int(trained is not None and trained.tokenizer_file is not None),
        }
    return data


def leave_out(shared: Trained, case: Cell) -> str:
    """Why a case is left out: single heads that need a model have it in their kind."""
    return shared.without({"family": FAMILY_OF.get(case.get("kind", ""), case.get("family"))})


def sum_grids(size: str) -> list[Grid]:
    """The sums of heads: for each number of tokens its draws, and all heads, families and
    values.
    """
    return [
        Grid({"n": [n], "draw": range(many), "heads": HEADS, "family": FAMILIES, "values": VALUES})
        for n, many in REPEATS[size].items()
    ]


compute = Parts(
    {
        # two at once: eigenvalues of one run while the next one is integrated
        "cases": Part(
            measure_sum, sum_grids, "n = {n}, draw {draw}", 0.7, lambda n, **_: n**2, at_once=2
        ),
        "draws": Part(measure_draw, draw_grids, "single heads: {kind}", 0.2),
        "shown": Part(shown, doing="spectra to draw", share=0.05),
        "reference": Part(reference, doing="integrating again, by other means", share=0.05),
    },
    prepare=Trained,
    leave_out=leave_out,
    assemble=assemble,
)
