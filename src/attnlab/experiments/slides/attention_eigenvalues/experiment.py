"""The eigenvalues of attention matrices along the flow, of one head and of the sum over heads: how many survive?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xarray
from scipy.special import softmax

from attnlab.analysis.attention import attention_rank, effective_rank, eigenvalue_moduli, is_boolean_row
from attnlab.analysis.growth import growth_rate
from attnlab.analysis.markov import unit_eigenvalue_count
from attnlab.analysis.plain_flow import flow_by_scipy
from attnlab.analysis.span import in_span
from attnlab.engine import simulate
from attnlab.engine.threads import one_blas_thread
from attnlab.experiments.common.heads import HEADS, VALUES, real_start, synthetic_heads, trained_heads, trained_model
from attnlab.experiments.datasets import table
from attnlab.progress import Progress
from attnlab.types import Weights

from .claims import END, REFERENCE_END
from .draws import DRAW_TOKENS, attention_at, drawn, draws, outermost, unrelated

REPEATS = {"full": {30: 8, 100: 5, 300: 3}, "small": {12: 2, 30: 6}}
"""{number of tokens: draws}, heads and starts anew for synthetic ones, pieces of text that do not overlap for trained ones."""
SYNTHETIC_D = 8

MOMENTS = (0.0, 0.5, 1.0, 2.0, 4.0, END)
"""In the natural time |lambda_1| t of sum V_h, which is Ht for V_h = I; double precision would end near 30."""

STEPS = {1000: 0.1, 50_000: 0.25, 10**9: 0.5}
"""Steps of order 4 in natural time, for up to so many numbers n d: adaptive steps look for each change of leader, for minutes."""

DECIDED = 18.5
"""A matrix is called decided when in every row all weights but one are below e^-18.5 = 1e-8 of it."""
SHOWN_TIMES = np.linspace(0.0, END, 41)


def compute(size: str, progress: Progress, model: str = "minilm") -> dict[str, Any]:
    """The cases of the table, many single heads with their certified limits, spectra to draw, and one by SciPy."""
    progress(0.0, "loading weights")
    trained, why = trained_model(size, model)
    with one_blas_thread():                                # matrices this small are faster on one
        data = {"cases": cases(size, trained, progress.part(0.0, 0.7)), "draws": draws(size, trained, progress.part(0.7, 0.9)),
                "shown": shown(size, trained)}
        progress(0.95, "integrating again, by other means")
        data["reference"] = reference(size)
    for one in data.values():
        # a stand-in has no words, and its heads are not trained: nothing is claimed of them that not all heads must do
        one.attrs |= {"model": trained.name if trained is not None else "", "why": why,
                      "is_trained": int(trained is not None and trained.tokenizer_file is not None)}
    progress(1.0)
    return data


def starts(n: int, draw: int, trained: Any) -> dict[str, np.ndarray]:
    """The first tokens by family: the cube [-5, 5]^d for synthetic heads, a piece of embedded text for trained ones."""
    found = {"synthetic": np.random.default_rng([n, draw]).uniform(-5.0, 5.0, (n, SYNTHETIC_D))}
    return found | ({"trained": real_start(trained, n, draw)} if trained is not None else {})


def system(family: str, values: str, heads: int, x0: np.ndarray, draw: int, trained: Any) -> tuple[Weights, np.ndarray]:
    """Weights and first tokens, for V_h = I in their span; synthetic heads are others for each draw and number of tokens."""
    if family == "synthetic":
        weights = synthetic_heads(heads, SYNTHETIC_D, values, rng=1000 * draw + len(x0))
    else:
        weights = trained_heads(trained, heads, values)
    return in_span(weights, x0)[:2] if values == "identity" else (weights, x0)


def followed(weights: Weights, x0: np.ndarray, moments: Any, step: float) -> Any:
    """The run at natural times `moments`, by steps of order 4."""
    rate = growth_rate(weights)
    times = np.asarray(moments) / rate
    frame = "x" if weights.is_factored else "z"
    return simulate(weights, x0, t_end=float(times[-1]), times=times, stepper="rk4", dt=step / rate, frame=frame, throw=False)


def step_for(x0: np.ndarray) -> float:
    """The step for such tokens."""
    return next(step for most, step in STEPS.items() if x0.size <= most)


def cases(size: str, trained: Any, progress: Progress) -> Any:
    """A row for each family, values, number of tokens, draw, number of heads and moment."""
    places = [(n, draw) for n, many in REPEATS[size].items() for draw in range(many)]
    work = np.cumsum([n**2 for n, _ in places]) / sum(n**2 for n, _ in places)
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(2) as two:                     # eigenvalues of one run while the next one is integrated
        for done, (n, draw) in zip(work, places, strict=True):
            of_family = starts(n, draw, trained)
            wanted = [(family, values, heads) for heads in HEADS for family in of_family for values in VALUES]
            futures = [two.submit(_case, size, *one, draw, of_family[one[0]], trained) for one in wanted]
            rows += [row for future in futures for row in future.result()]
            progress(done, f"n = {n}, draw {draw + 1}")
    return table({name: [row[name] for row in rows] for name in rows[0]})


def _case(size: str, family: str, values: str, heads: int, draw: int, start: np.ndarray, trained: Any) -> list[dict[str, Any]]:
    """The rows of one run; the first draw has all moments and, where that is cheap, a run with half the step."""
    weights, x0 = system(family, values, heads, start, draw, trained)
    n, moments = len(start), MOMENTS if draw == 0 else (MOMENTS[0], MOMENTS[-1])
    step, largest = step_for(x0), max(REPEATS[size])
    run = followed(weights, x0, moments, step)
    is_cheap = n == min(REPEATS[size]) and not weights.is_factored or n < largest and family == "synthetic"
    finer = followed(weights, x0, moments, step / 2) if is_cheap and draw == 0 else None
    return [{"family": family, "values": values, "n": n, "draw": draw, "heads": heads, "moment": moments[at], "t": run.times[at],
             **_numbers(attention_at(run, at), at == len(moments) - 1), "change": _change(run, finer, at)}
            for at in range(len(run.times))]


def _numbers(P: np.ndarray, is_last: bool) -> dict[str, Any]:
    """The numbers of attention matrices P (h, n, n); those of every single head at the last moment only."""
    heads, S = len(P), P.sum(axis=0)
    sizes = eigenvalue_moduli(S)
    of_heads = [outermost(eigenvalue_moduli(one)) for one in P] if is_last else [0]
    return {
        "radius": sizes[0] / heads, "second": sizes[1] / heads, "survivors": outermost(sizes, heads),
        "rows": np.abs(S.sum(axis=1) / heads - 1).max(), "rank": int(attention_rank(S)), "effective": float(effective_rank(S)),
        "is_decided": int(is_boolean_row(P, DECIDED).all()), "fewest": min(of_heads),
        "classes": unit_eigenvalue_count(S / heads) if is_last else 0, "unrelated": unrelated(P) if is_last else np.nan,
    }


def _change(run: Any, finer: Any, at: int) -> float:
    """How far |lambda_2| / H moves when steps are halved; NaN where that was not tried."""
    if finer is None:
        return float("nan")
    P, again = attention_at(run, at), attention_at(finer, at)
    return float(abs(eigenvalue_moduli(P.sum(axis=0))[1] - eigenvalue_moduli(again.sum(axis=0))[1]) / len(P))


def shown(size: str, trained: Any) -> Any:
    """Moduli over time (case, time, order), over the number of heads: one polytope, one head, and the sum of sixteen."""
    n = DRAW_TOKENS
    family = "trained" if trained is not None else "synthetic"
    x0 = starts(n, 0, trained)[family]
    systems = [drawn("polytope", 3, trained), *(system(family, "identity", heads, x0, 0, trained) for heads in (1, max(HEADS)))]
    found = []
    for weights, first in systems:
        run = followed(weights, first, SHOWN_TIMES, step_for(first))
        found.append([eigenvalue_moduli(attention_at(run, at).sum(axis=0)) / weights.heads for at in range(len(run.times))])
    return xarray.Dataset({"modulus": (("case", "time", "order"), np.array(found)), "moment": ("time", SHOWN_TIMES)},
                          attrs={"family": family, "n": n})


def reference(size: str) -> Any:
    """Eigenvalues of the sum of two heads at REFERENCE_END by our run, and by SciPy's DOP853 with a plain right-hand side."""
    n = min(REPEATS[size])
    weights, x0 = system("synthetic", "identity", 2, starts(n, 0, None)["synthetic"], 0, None)
    M = [Q.T @ K for Q, K in zip(weights.Q, weights.K, strict=True)]

    def total(x: np.ndarray) -> np.ndarray:
        return np.asarray(sum(softmax(x @ one @ x.T, axis=1) for one in M))

    end = REFERENCE_END / 2
    theirs = flow_by_scipy(weights, x0, end)
    ours = attention_at(simulate(weights, x0, t_end=end, times=[0.0, end], rtol=1e-9), -1).sum(axis=0)
    return table({"ours": eigenvalue_moduli(ours), "theirs": eigenvalue_moduli(total(theirs))}, "order")
